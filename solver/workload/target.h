/**
 * Targets: programs that a plan can be handed to, and what each of them can say of a plan. One
 * table, which feeds the check of plans (solver/plan/says.h), the exports
 * (solver/io/export/target), the reader of jobs, the help, the completion and the tests. The row
 * `any` limits nothing: it is the target of a job that names none.
 */
#ifndef HV_SOLVER_WORKLOAD_TARGET_H
#define HV_SOLVER_WORKLOAD_TARGET_H

#include <stdbool.h>
#include <stddef.h>

/** Targets: constant, name in files. Runtimes first, those with the most users in front. */
#define HV_TARGET_MAP(X)                                                                           \
    X(HV_TARGET_ANY, "any")                                                                        \
    X(HV_TARGET_MEGATRON, "megatron")                                                              \
    X(HV_TARGET_BRIDGE, "megatron-bridge")                                                         \
    X(HV_TARGET_FLAGSCALE, "flagscale")                                                            \
    X(HV_TARGET_TORCHTITAN, "torchtitan")                                                          \
    X(HV_TARGET_DEEPSPEED, "deepspeed")                                                            \
    X(HV_TARGET_ACCELERATE, "accelerate")                                                          \
    X(HV_TARGET_PIPELINING_CSV, "pipelining-csv")                                                  \
    X(HV_TARGET_SLURM, "slurm")                                                                    \
    X(HV_TARGET_HOSTFILE, "hostfile")                                                              \
    X(HV_TARGET_REPORT, "report")                                                                  \
    X(HV_TARGET_CSV, "csv")                                                                        \
    X(HV_TARGET_DOT, "dot")
/** A target: index into the table. */
enum hv_target_id {
#define X(c, name) c,
    HV_TARGET_MAP(X)
#undef X
        HV_TARGET_N
};

/* clang-format off */
/** Properties of a plan that a target can say or cannot: constant, name, what the plan then has. */
#define HV_SAYS_MAP(X)                                                                              \
    X(HV_SAYS_STAGES,          "stages",          "pipeline stages")                                \
    X(HV_SAYS_UNEVEN,          "uneven",          "unlike numbers of layers in its stages")         \
    X(HV_SAYS_HALVES,          "halves",          "a cut inside a layer")                           \
    X(HV_SAYS_CHUNKS,          "chunks",          "several chunks of layers in a stage")            \
    X(HV_SAYS_STAGE_DEGREES,   "stage-degrees",   "tensor, context or expert degrees that differ between stages") \
    X(HV_SAYS_STAGE_DP,        "stage-dp",        "data-parallel degrees that differ between stages") \
    X(HV_SAYS_LAYER_DEGREES,   "layer-degrees",   "degrees that differ between layers of a stage")  \
    X(HV_SAYS_REPLICAS,        "replicas",        "pipelines that differ from each other")          \
    X(HV_SAYS_KINDS,           "kinds",           "devices of several vendors")                     \
    X(HV_SAYS_TENSOR_GRIDS,    "tensor-grids",    "tensor parallelism in more than one dimension")  \
    X(HV_SAYS_STAGE_RECOMPUTE, "stage-recompute", "recomputation that differs between stages")      \
    X(HV_SAYS_LAYER_RECOMPUTE, "layer-recompute", "recomputation that differs between layers of a stage") \
    X(HV_SAYS_SHARD_GROUPS,    "shard-groups",    "ZeRO shards over a part of the data-parallel ranks") \
    X(HV_SAYS_SHARES,          "shares",          "unequal shares of a batch or of a tensor")       \
    X(HV_SAYS_EXPERTS,         "experts",         "expert parallelism")                             \
    X(HV_SAYS_EXPERT_PLACES,   "expert-places",   "places, copies or exchanges of experts of its own") \
    X(HV_SAYS_CAPACITY,        "capacity",        "a capacity of experts")                          \
    X(HV_SAYS_ORDER,           "order",           "an order of operations of its own")              \
    X(HV_SAYS_SLICES,          "slices",          "slices of sequences")                            \
    X(HV_SAYS_SYNC,            "sync",            "updates by other means than an all-reduce")      \
    X(HV_SAYS_FORM,            "form",            "operators, modules, branches or ends of the model in other stages") \
    X(HV_SAYS_JOBS,            "jobs",            "several jobs, or serving")                       \
    X(HV_SAYS_PLACES,          "places",          "ranks that do not go node by node, equally many on each") \
    /* these have lists in the rows instead of a bit */                                             \
    X(HV_SAYS_SCHEDULE,        "schedule",        "a schedule that is not among its own")           \
    X(HV_SAYS_ZERO,            "zero",            "a ZeRO stage that is not among its own")         \
    X(HV_SAYS_CP,              "cp",              "context parallelism that is not among its own")  \
    X(HV_SAYS_RECOMPUTE,       "recompute",       "recomputation that is not among its own")        \
    X(HV_SAYS_OFFLOAD,         "offload",         "offloading that is not among its own")
/* clang-format on */
enum hv_says {
#define X(c, name, text) c,
    HV_SAYS_MAP(X)
#undef X
        HV_SAYS_N
};
const char *hv_says_name(enum hv_says s); /**< "stage-dp" */
const char *hv_says_text(enum hv_says s); /**< what a plan with it has, as a part of a sentence */

/** Bit of a property in hv_target_row.says. */
#define HV_SAYS_BIT(s) (1U << (unsigned)(s))

/** What can be said of a plan, or run of it. Lists are words with blanks between; NULL: anything.
 */
struct hv_says_limits {
    unsigned says;          /**< HV_SAYS_BIT of the properties before HV_SAYS_SCHEDULE */
    const char *schedules;  /**< that order the stages; "" where there are no stages */
    const char *zero;       /**< ZeRO stages beside pipeline stages: "0 1" */
    const char *zero_alone; /**< ZeRO stages without pipeline stages */
    const char *cp;         /**< schemes of context parallelism, or scheme/layout: "ring/zigzag" */
    const char *cp_alone;   /**< further ones without pipeline stages; NULL: none */
    const char *recompute;  /**< "none selective full" */
    const char
        *offload; /**< sets that may be in the host's memory: "optimizer optimizer+weights" */
    unsigned only_sharded; /**< HV_SAYS_BIT of lists that hold only where ZeRO shards states */
};
/** hv_says_limits.says of all properties of plans. */
#define HV_SAYS_ALL (HV_SAYS_BIT(HV_SAYS_SCHEDULE) - 1)

/** What a target can say, and writes. */
struct hv_target_row {
    const char *title;
    char letter;        /**< in tables of plans: 'M'; 0: not a runtime */
    bool writes_layout; /**< its files can be imported as a layout */
    struct hv_says_limits can;
    const char *writes; /**< the files that are written, for the help */
    const char *source; /**< where the row comes from */
};

const char *hv_target_name(enum hv_target_id t); /**< name in files */
/** The target of a name in files. False: there is none. O(targets). */
bool hv_target_find(const char *name, enum hv_target_id *out);
/** The row of a target. O(1). */
const struct hv_target_row *hv_target_row(enum hv_target_id t);
/** True where the word is in a list of a row. O(length of the list). */
bool hv_target_list_has(const char *list, const char *word);

#endif
