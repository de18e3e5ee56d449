/*
 * The table of formats. Command, help, completion, manual page, screens and tests read it; to add a
 * format, add a row here and its functions to HV__FORMAT_READERS (draft/readers.h).
 */
#include "solver/io/import/formats.h"

#include <ctype.h>
#include <string.h>

/* clang-format off */
#define ROW(name, title, part, help) NAMED(#name, name, title, part, help)
#define NAMED(text, name, title, part, help) {{text, title, part, help}, hv__is_##name, hv__read_##name, NULL}
/* The order is that of detection: formats that are recognised with certainty come first. */
static const struct hv__format formats[] = {
    ROW(onnx, "ONNX model", HV_IMPORT_MODEL, "recognised but not read; the message names a format to export instead"),
    ROW(stablehlo, "StableHLO text", HV_IMPORT_MODEL, "jax.jit(f).lower(...).as_text(): a graph model; operations without a kind stand as opaque and are named"),
    ROW(nvidia_smi_xml, "nvidia-smi -q -x", HV_IMPORT_CLUSTER, "cards of one machine: kind, memory, PCIe, MIG"),
    ROW(nccl_topo_xml, "NCCL topology", HV_IMPORT_CLUSTER, "the inside of a node as NCCL sees it (NCCL_TOPO_DUMP_FILE): cards, NVLinks, network cards"),
    ROW(nvidia_smi_q_text, "nvidia-smi -q", HV_IMPORT_CLUSTER, "as nvidia_smi_xml, from the plain text output"),
    ROW(nvidia_smi_nvlink, "nvidia-smi nvlink -s", HV_IMPORT_CLUSTER, "NVLinks of each card and their speed"),
    NAMED("nvidia_smi_L", nvidia_smi_list, "nvidia-smi -L", HV_IMPORT_CLUSTER, "cards by name, with their MIG slices"),
    ROW(nvidia_smi_topo, "nvidia-smi topo -m", HV_IMPORT_CLUSTER, "connections between cards: NVLink, PCIe, network cards"),
    ROW(nccl_tests, "nccl-tests", HV_IMPORT_LINKS, "all_reduce_perf and its siblings: bandwidth and latency of the links, and the cards they ran on"),
    ROW(nvbandwidth, "nvbandwidth, ib_write_bw", HV_IMPORT_LINKS, "copies between host and cards, between cards, or over one network card"),
    ROW(slurm_json, "Slurm JSON", HV_IMPORT_CLUSTER, "sinfo --json, scontrol show node --json, slurmrestd: nodes with their GPUs and states"),
    ROW(k8s_nodes, "Kubernetes nodes", HV_IMPORT_CLUSTER, "kubectl get nodes -o json (or yaml): GPUs by label and capacity, MIG, zones, taints"),
    ROW(safetensors_index, "index of weights", HV_IMPORT_MODEL, "model.safetensors.index.json: layers and size; checks a config.json given with it"),
    ROW(chrome_trace, "Chrome trace", HV_IMPORT_TRACE, "PyTorch profiler, Kineto, Perfetto JSON: busy time per stream, kernels, collectives, steps"),
    ROW(deepspeed, "DeepSpeed config", HV_IMPORT_JOB, "batch, precision, optimizer, ZeRO stage, offload, recomputation"),
    ROW(hf_config, "Hugging Face config.json", HV_IMPORT_MODEL, "the model's shape, completed by the defaults of its family"),
    ROW(sbatch, "sbatch script", HV_IMPORT_CLUSTER, "#SBATCH lines: the nodes and GPUs that are requested, also by heterogeneous jobs"),
    ROW(torchtitan_toml, "torchtitan TOML", HV_IMPORT_JOB, "batch, sequence, parallel degrees, recomputation"),
    ROW(megatron_args, "Megatron-LM arguments", HV_IMPORT_JOB, "--num-layers, --tensor-model-parallel-size and so on, alone or in a script: model, job and layout"),
    ROW(megatron_yaml, "Megatron-LM YAML", HV_IMPORT_JOB, "MODEL_ARGS of its functional tests, or Megatron-Bridge overrides"),
    ROW(accelerate_yaml, "accelerate config", HV_IMPORT_JOB, "processes, precision, FSDP or DeepSpeed settings"),
    ROW(pipelining_csv, "torch.distributed.pipelining schedule", HV_IMPORT_SCHEDULE, "one line per rank: a plan with exactly this order"),
    ROW(slurm, "Slurm text", HV_IMPORT_CLUSTER, "scontrol show node, sinfo with GRES: nodes with their GPUs and states"),
    {{"cloud_prices", "cloud price list", HV_IMPORT_PRICES, "CSV or JSON (SkyPilot, cloud-gpus, gpuhunt, APIs of AWS, Azure, Google Cloud, Lambda, RunPod, Vast): prices for the nodes of a cluster, or a cluster of one machine each"}, hv__is_cloud_prices, hv__read_cloud_prices, hv__prices_apply},
    ROW(nvidia_smi_csv, "nvidia-smi --query-gpu", HV_IMPORT_CLUSTER, "the cards as CSV, with or without header and units"),
};
/* clang-format on */

const struct hv__format *hv__format_table(size_t *n)
{
    *n = HV_COUNT(formats);
    return formats;
}

static const char *const part_names[HV_IMPORT_PART_N] = {
    [HV_IMPORT_CLUSTER] = "cluster",    [HV_IMPORT_LINKS] = "links",
    [HV_IMPORT_PRICES] = "prices",      [HV_IMPORT_MODEL] = "model",
    [HV_IMPORT_JOB] = "job and layout", [HV_IMPORT_SCHEDULE] = "plan",
    [HV_IMPORT_TRACE] = "trace"};

const char *hv_import_part_name(enum hv_import_part p)
{
    return part_names[p];
}

const struct hv_import_format *hv_import_format_at(size_t i)
{
    return i < HV_COUNT(formats) ? &formats[i].public : NULL;
}

/* Ignores case and the difference of - and _: NVIDIA-SMI-XML is nvidia_smi_xml. */
static bool same_name(const char *a, const char *b)
{
    while (*a && *b) {
        char x = *a == '-' ? '_' : (char)tolower((unsigned char)*a);
        if (x != (char)tolower((unsigned char)*b)) {
            return false;
        }
        a++;
        b++;
    }
    return *a == *b;
}

const struct hv_import_format *hv_import_format_find(const char *name)
{
    for (size_t i = 0; i < HV_COUNT(formats); i++) {
        if (same_name(name, formats[i].public.name)) {
            return &formats[i].public;
        }
    }
    return NULL;
}
