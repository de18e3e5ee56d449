/* The table of runtimes. */
#include "solver/workload/runtime.h"

#include <string.h>

#include "solver/base/units.h"

#define BIT(name) HV_SAYS_BIT(HV_SAYS_##name)
/* What stages of layers and mixtures of experts need. */
#define STAGES_AND_EXPERTS (BIT(STAGES) | BIT(UNEVEN) | BIT(EXPERTS) | BIT(CAPACITY) | BIT(PLACES))

#define X(c, name) name,
static const char *const names[HV_RUNTIME_N] = {HV_RUNTIME_MAP(X)};
#undef X

static const struct hv_runtime_row rows[HV_RUNTIME_N] = {
    [HV_RUNTIME_HETVIZ] =
        {
            .title = "no runtime: the plan as it is written, nothing assumed",
            .sends = HV_SENDS_BESIDE,
            .reduction = HV_REDUCTION_PLANNED,
            .library_bytes = HV_UNKNOWN,
            .fragmentation_frac = HV_UNKNOWN,
            .fragmentation_again_frac = HV_UNKNOWN,
            .can.says = HV_SAYS_ALL,
            .degrees = "any that a plan can say",
            .source = "definition",
        },
    [HV_RUNTIME_MEGATRON] =
        {
            .title = "Megatron-LM with Megatron-Core",
            .sends = HV_SENDS_BESIDE,
            .reduction = HV_REDUCTION_PLANNED,
            .bucket_of_tensors = true,
            .whole_tensors = 4,
            .library_bytes = HV_UNKNOWN,
            .fragmentation_frac = HV_UNKNOWN,
            .fragmentation_again_frac = HV_UNKNOWN,
            .can.says = STAGES_AND_EXPERTS | BIT(CHUNKS) | BIT(SHARD_GROUPS),
            .can.schedules = "1f1b interleaved breadth-first group-interleaved zb-1p zb-2p zb-h1 "
                             "zb-h2 zb-v v-half v-min dualpipev",
            .can.zero = "0 1",
            .can.zero_alone = "0 1 2 3",
            .can.cp = "ring/zigzag ulysses all_gather/zigzag",
            .can.recompute = "none selective full",
            .can.offload = "optimizer",
            .degrees = "tp, cp and ep of one size on all stages; equal pipelines; layers per stage "
                       "as given; ZeRO 1 (distributed optimizer), or FSDP without stages",
            .source =
                "schedules: megatron/core/pipeline_parallel/schedules.py, zero-bubble ones in the "
                "fork of arXiv:2401.10241; reductions: option --overlap-grad-reduce of "
                "core/distributed; buckets: param_and_grad_buffer.py there; whole tensors without "
                "sequence parallelism: arXiv:2205.05198, "
                "equation 2 (10 of its 34 sbh: inputs of two norms and two products, masks)",
        },
    [HV_RUNTIME_DEEPSPEED] =
        {
            .title = "DeepSpeed's pipeline engine, with Megatron's tensor parallelism",
            .sends = HV_SENDS_BLOCK,
            .splits_sends = true,
            .reduction = HV_REDUCTION_LATE,
            .bucket_of_tensors = true,
            .tensor_s = 20 * HV_US,
            .flat_elements = 5e8,
            .step_bytes = 4,
            .whole_tensors = 4,
            .library_bytes = 2.0 * HV_GIB,
            .channel_bytes = 50 * HV_MIB,
            .fragmentation_frac = 0.05,
            .fragmentation_again_frac = 0.08,
            .can.says = STAGES_AND_EXPERTS,
            .can.schedules = "1f1b gpipe",
            .can.zero = "0 1",
            .can.zero_alone = "0 1 2 3",
            .can.cp = "",
            .can.cp_alone = "ulysses",
            .can.recompute = "none selective full",
            .can.offload = "optimizer optimizer+weights",
            .can.only_sharded = BIT(OFFLOAD),
            .degrees = "tp of one size on all stages; equal pipelines; layers per stage as given; "
                       "ZeRO 0 or 1 beside stages, 2 and 3 without; context parallelism by "
                       "Ulysses, without stages",
            .source =
                "sends: runtime/pipe/p2p.py (torch.distributed.send on the stream of compute) and "
                "schedule.py (TrainSchedule: sends and receives between passes); shares of "
                "activations: PartitionedTensor in runtime/utils.py, options pipe_partitioned and "
                "grad_partitioned; reductions: ReduceGrads as one of the last instructions of "
                "TrainSchedule; flat copies: allreduce_bucket in runtime/engine.py "
                "(MEMORY_OPT_ALLREDUCE_SIZE); step: torch.optim.Adam, foreach (one more copy of "
                "the parameters at the peak), not with its own fused optimizers; channels: 5 "
                "connections of 10 MiB (NVIDIA/nccl issues 864 and 1685); host time per tensor, "
                "libraries and fragmentation: estimated from measured runs",
        },
    [HV_RUNTIME_TORCHTITAN] =
        {
            .title = "torchtitan",
            .sends = HV_SENDS_BESIDE,
            .reduction = HV_REDUCTION_PLANNED,
            .bucket_of_tensors = true,
            .library_bytes = HV_UNKNOWN,
            .fragmentation_frac = HV_UNKNOWN,
            .fragmentation_again_frac = HV_UNKNOWN,
            .can.says = STAGES_AND_EXPERTS | BIT(CHUNKS) | BIT(SHARD_GROUPS),
            .can.schedules = "gpipe 1f1b interleaved zb-v zb-h1 dualpipev",
            .can.zero = "0 2 3",
            .can.zero_alone = "0 2 3",
            .can.cp = "ring/zigzag ring/contiguous all_gather/zigzag all_gather/contiguous",
            .can.offload = "optimizer+weights",
            .can.only_sharded = BIT(OFFLOAD),
            .degrees = "FSDP2 or HSDP with tp (always with sequence parallelism), cp, ep and "
                       "stages; layers per stage as given; equal pipelines",
            .source = "torch.distributed.pipelining.schedules; torchtitan docs/fsdp.md and "
                      "docs/composability.md; buckets: torch's reducer.cpp, "
                      "compute_bucket_assignment_by_size",
        },
    [HV_RUNTIME_FSDP] =
        {
            .title = "PyTorch FSDP",
            .sends = HV_SENDS_BESIDE,
            .reduction = HV_REDUCTION_PLANNED,
            .bucket_of_tensors = true,
            .library_bytes = HV_UNKNOWN,
            .fragmentation_frac = HV_UNKNOWN,
            .fragmentation_again_frac = HV_UNKNOWN,
            .can.says = BIT(SHARD_GROUPS) | BIT(EXPERTS) | BIT(PLACES),
            .can.schedules = "",
            .can.zero = "",
            .can.zero_alone = "0 2 3",
            .can.cp = "ring/zigzag all_gather/zigzag",
            .can.offload = "optimizer+weights",
            .can.only_sharded = BIT(OFFLOAD),
            .degrees = "ZeRO 2 or 3 over all ranks or over shard groups; no stages of its own",
            .source = "torch.distributed.fsdp: FullyShardedDataParallel, ShardingStrategy and "
                      "BackwardPrefetch; buckets: torch's reducer.cpp, "
                      "compute_bucket_assignment_by_size",
        },
};

static const char *const sends[HV_RUNTIME_SENDS_N] = {
    [HV_SENDS_BESIDE] = "a stage sends beside its compute",
    [HV_SENDS_BLOCK] = "a stage that sends waits until the transfer is through",
};
static const char *const reductions[HV_RUNTIME_REDUCTION_N] = {
    [HV_REDUCTION_PLANNED] = "gradients are reduced as the plan says (sync.overlap)",
    [HV_REDUCTION_LATE] = "gradients are reduced after the last backward pass",
};

const char *hv_runtime_sends_text(enum hv_runtime_sends s)
{
    return sends[s];
}

const char *hv_runtime_reduction_text(enum hv_runtime_reduction r)
{
    return reductions[r];
}

const char *hv_runtime_name(enum hv_runtime r)
{
    return names[r];
}

bool hv_runtime_find(const char *name, enum hv_runtime *out)
{
    for (int i = 0; i < HV_RUNTIME_N; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum hv_runtime)i;
            return true;
        }
    }
    return false;
}

const struct hv_runtime_row *hv_runtime_row(enum hv_runtime r)
{
    return &rows[r];
}
