/** Detector and reader of every format; their rows are in formats.c. */
#ifndef HV_SOLVER_IO_IMPORT_DRAFT_READERS_H
#define HV_SOLVER_IO_IMPORT_DRAFT_READERS_H

#include "solver/io/import/draft/draft.h"

/** Reads a text into the draft and adds notes. */
typedef enum hv_status hv__reader(struct hv__in *in, struct hv_err *err);
/** Completes the draft when all files are read. */
typedef void hv__applier(struct hv_import *im);
/** True where the text has this format. */
typedef bool hv__detector(const struct hv__in *in);

/** Every format by the name of its functions: a new one is added here and in formats.c. */
/* clang-format off */
#define HV__FORMAT_READERS(X) \
    X(nvidia_smi_xml) X(nvidia_smi_csv) X(nvidia_smi_topo) X(nvidia_smi_list) X(nvidia_smi_nvlink) X(nvidia_smi_q_text) \
    X(nccl_topo_xml) X(slurm) X(slurm_json) X(k8s_nodes) X(sbatch) X(cloud_prices) X(nccl_tests) X(nvbandwidth) \
    X(hf_config) X(safetensors_index) X(onnx) X(stablehlo) X(deepspeed) X(megatron_args) X(megatron_yaml) X(accelerate_yaml) \
    X(torchtitan_toml) X(pipelining_csv) X(chrome_trace)
/* clang-format on */
/** Detector and reader of every format. */
#define X(name)                                                                                    \
    bool hv__is_##name(const struct hv__in *in);                                                   \
    enum hv_status hv__read_##name(struct hv__in *in, struct hv_err *err);
HV__FORMAT_READERS(X)
#undef X

/** Assigns prices to the nodes of the draft, or creates nodes from the prices where there are none.
 */
void hv__prices_apply(struct hv_import *im);

#endif
