/* The table of targets. */
#include "solver/workload/target.h"

#include <string.h>

#define X(c, name) name,
static const char *const names[HV_TARGET_N] = {HV_TARGET_MAP(X)};
#undef X
#define X(c, name, text) name,
static const char *const says_names[HV_SAYS_N] = {HV_SAYS_MAP(X)};
#undef X
#define X(c, name, text) text,
static const char *const says_texts[HV_SAYS_N] = {HV_SAYS_MAP(X)};
#undef X

#define BIT(name)  HV_SAYS_BIT(HV_SAYS_##name)
#define ALL_OF_ONE (HV_SAYS_ALL & ~BIT(JOBS)) /* whatever one training plan has */

/* What Megatron-Core's own layout string and arguments have. */
#define MEGATRON_SAYS                                                                              \
    (BIT(STAGES) | BIT(UNEVEN) | BIT(CHUNKS) | BIT(SHARD_GROUPS) | BIT(EXPERTS) | BIT(CAPACITY) |  \
     BIT(PLACES))
#define MEGATRON_CP "ring/zigzag ulysses all_gather/zigzag"

static const struct hv_target_row rows[HV_TARGET_N] = {
    [HV_TARGET_ANY] =
        {
            .title = "no target: every plan",
            .can.says = HV_SAYS_ALL,
            .writes = "nothing",
            .source = "definition",
        },
    [HV_TARGET_MEGATRON] =
        {
            .title = "Megatron-LM",
            .letter = 'M',
            .writes_layout = true,
            .can.says = MEGATRON_SAYS,
            .can.schedules = "1f1b interleaved",
            .can.zero = "0 1",
            .can.zero_alone = "0 1",
            .can.cp = MEGATRON_CP,
            .can.recompute = "none selective full",
            .can.offload = "optimizer",
            .writes = "megatron.args (arguments, one a line), launch.sh, ranks.csv",
            .source = "Megatron-LM, training/arguments.py; megatron-core 0.16.1, "
                      "pipeline_parallel_layer_layout.py and parallel_state.py (RankGenerator, "
                      "order tp-cp-ep-dp-pp)",
        },
    [HV_TARGET_BRIDGE] =
        {
            .title = "Megatron-Bridge",
            .letter = 'b',
            .writes_layout = true,
            .can.says = MEGATRON_SAYS,
            .can.schedules = "1f1b interleaved",
            .can.zero = "0 1",
            .can.zero_alone = "0 1",
            .can.cp = MEGATRON_CP,
            .can.recompute = "none selective full",
            .can.offload = "",
            .writes = "overrides.yaml, overrides.args (the same for the command line), launch.sh, "
                      "ranks.csv",
            .source = "Megatron-Bridge, examples/*/conf/*_override_example.yaml; not run",
        },
    [HV_TARGET_FLAGSCALE] =
        {
            .title = "FlagScale",
            .letter = 'F',
            .can.says = (MEGATRON_SAYS & ~BIT(CHUNKS)) | BIT(STAGE_DEGREES) | BIT(STAGE_DP) |
                        BIT(STAGE_RECOMPUTE) | BIT(KINDS),
            .can.schedules = "1f1b",
            .can.zero = "0 1",
            .can.zero_alone = "0 1",
            .can.cp = MEGATRON_CP,
            .can.recompute = "none full",
            .can.offload = "",
            .writes = "train.yaml (hetero_process_meshes, hetero_pipeline_layer_split), launch.sh, "
                      "ranks.csv",
            .source = "FlagScale, flagscale/train/arguments.py and examples of heterogeneous "
                      "training; not run",
        },
    [HV_TARGET_TORCHTITAN] =
        {
            .title = "torchtitan",
            .letter = 'T',
            .writes_layout = true,
            .can.says = BIT(STAGES) | BIT(UNEVEN) | BIT(CHUNKS) | BIT(SHARD_GROUPS) | BIT(EXPERTS) |
                        BIT(ORDER) | BIT(PLACES),
            .can.schedules =
                "1f1b gpipe interleaved breadth-first zb-h1 zb-h2 zb-1p zb-1.5p zb-2p "
                "zb-v 1f1b-v v-half v-min v-adaptive group-interleaved autopipe explicit",
            .can.zero = "0 3",
            .can.zero_alone = "0 3",
            .can.cp = "all_gather/zigzag all_gather/contiguous",
            .can.recompute = "none full",
            .can.offload = "optimizer+weights",
            .can.only_sharded = BIT(OFFLOAD),
            .writes = "torchtitan.args (flags), torchtitan.toml (tables of older versions), "
                      "schedule.csv where the schedule has no name there, launch.sh, ranks.csv",
            .source = "torchtitan 0.3.0, config/configs.py; torch.distributed.pipelining."
                      "schedules (get_schedule_class, _load_csv)",
        },
    [HV_TARGET_DEEPSPEED] =
        {
            .title = "DeepSpeed",
            .letter = 'D',
            .writes_layout = true,
            .can.says = BIT(STAGES) | BIT(PLACES),
            .can.schedules = "1f1b",
            .can.zero = "0 1",
            .can.zero_alone = "0 1 2 3",
            .can.cp = "ulysses",
            .can.recompute = "none full",
            .can.offload = "optimizer optimizer+weights",
            .can.only_sharded = BIT(OFFLOAD),
            .writes = "ds_config.json, hostfile, launch.sh, ranks.csv",
            .source = "DeepSpeed 0.19.8, runtime/config.py, runtime/pipe/module.py "
                      "(partition_method) and runtime/pipe/topology.py",
        },
    [HV_TARGET_ACCELERATE] =
        {
            .title = "Accelerate (FSDP2)",
            .letter = 'A',
            .writes_layout = true,
            .can.says = BIT(SHARD_GROUPS),
            .can.schedules = "",
            .can.zero = "",
            .can.zero_alone = "0 2 3",
            .can.cp = "ring/zigzag all_gather/zigzag",
            .can.recompute = "none full",
            .can.offload = "optimizer+weights",
            .can.only_sharded = BIT(OFFLOAD) | BIT(RECOMPUTE),
            .writes = "accelerate.yaml, hostfile, ranks.csv",
            .source = "accelerate 1.15.0, commands/config/config_args.py, parallelism_config.py",
        },
    [HV_TARGET_PIPELINING_CSV] =
        {
            .title = "schedule of torch.distributed.pipelining",
            .can.says = ALL_OF_ONE & ~(BIT(SLICES) | BIT(SYNC) | BIT(FORM)),
            .can.schedules =
                "1f1b gpipe dapple interleaved breadth-first group-interleaved zb-h1 zb-h2 "
                "zb-1p zb-1.5p zb-2p zb-v 1f1b-v v-half v-min v-adaptive varuna autopipe "
                "hanayo explicit",
            .writes = "schedule.csv, or schedule-N.csv for each of pipelines that differ",
            .source = "torch 2.15, distributed/pipelining/schedules.py: _load_csv, "
                      "_Action.from_str; order only, no times",
        },
    [HV_TARGET_SLURM] =
        {
            .title = "Slurm",
            .can.says = ALL_OF_ONE,
            .writes = "job.sbatch (a heterogeneous job, one component per node group), ranks.csv",
            .source = "slurm.schedmd.com/heterogeneous_jobs.html",
        },
    [HV_TARGET_HOSTFILE] =
        {
            .title = "host file",
            .can.says = ALL_OF_ONE,
            .writes = "hostfile (HOST slots=N), rankfile (Open MPI), ranks.csv",
            .source = "DeepSpeed's launcher and mpirun(1)",
        },
    [HV_TARGET_REPORT] =
        {
            .title = "report",
            .can.says = HV_SAYS_ALL,
            .writes = "report.md and report.html, one page that needs no other file",
            .source = "definition",
        },
    [HV_TARGET_CSV] =
        {
            .title = "table of stages",
            .can.says = ALL_OF_ONE,
            .writes = "stages.csv, ranks.csv (RFC 4180)",
            .source = "RFC 4180",
        },
    [HV_TARGET_DOT] =
        {
            .title = "graph of stages",
            .can.says = ALL_OF_ONE,
            .writes = "plan.dot for Graphviz",
            .source = "graphviz.org, the DOT language",
        },
};

const char *hv_says_name(enum hv_says s)
{
    return says_names[s];
}

const char *hv_says_text(enum hv_says s)
{
    return says_texts[s];
}

const char *hv_target_name(enum hv_target_id t)
{
    return names[t];
}

bool hv_target_find(const char *name, enum hv_target_id *out)
{
    for (int i = 0; i < HV_TARGET_N; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum hv_target_id)i;
            return true;
        }
    }
    return false;
}

const struct hv_target_row *hv_target_row(enum hv_target_id t)
{
    return &rows[t];
}

bool hv_target_list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, " ");
        if (len == n && memcmp(at, word, n) == 0) {
            return true;
        }
        at += len + (at[len] != '\0');
    }
    return list == NULL;
}
