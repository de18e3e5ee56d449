/** The training job: batch, sequence, precision, optimizer, objective. Source: the schema
 * share/schema/job.schema.json. */
#ifndef HV_SOLVER_WORKLOAD_JOB_H
#define HV_SOLVER_WORKLOAD_JOB_H

#include "solver/base/arena.h"
#include "solver/inventory/device.h"
#include "solver/workload/runtime.h"
#include "solver/workload/target.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hv_model;
struct hv_router;

/* clang-format off */
/** Optimizers: constant, name, fp32 state values per parameter. */
#define HV_OPTIMIZER_MAP(X)              \
    X(HV_OPT_ADAM,      "adam",      2)  \
    X(HV_OPT_ADAMW,     "adamw",     2)  \
    X(HV_OPT_SGD,       "sgd",       0)  \
    X(HV_OPT_MOMENTUM,  "momentum",  1)  \
    X(HV_OPT_ADAFACTOR, "adafactor", 0)  \
    X(HV_OPT_NONE,      "none",      0)
/* clang-format on */
enum hv_optimizer {
#define X(c, name, states) c,
    HV_OPTIMIZER_MAP(X)
#undef X
        HV_OPTIMIZER_N
};
const char *hv_optimizer_name(enum hv_optimizer o); /**< name in files */

/* clang-format off */
/** Attention cores: constant, name. `flash`: one fused kernel that keeps row statistics only;
 * `unfused`: two products and a softmax that keep the scores of every pair. */
#define HV_ATTENTION_MAP(X)            \
    X(HV_ATTENTION_AUTO,    "auto")    \
    X(HV_ATTENTION_FLASH,   "flash")   \
    X(HV_ATTENTION_UNFUSED, "unfused")
/** Dropout behind attention, feed-forward and embedding: constant, name. */
#define HV_DROPOUT_MAP(X)       \
    X(HV_DROPOUT_AUTO, "auto")  \
    X(HV_DROPOUT_ON,   "on")    \
    X(HV_DROPOUT_OFF,  "off")
/** Kernels around the products: constant, name in files. Eager: one by one, as plain PyTorch runs them. */
#define HV_KERNELS_MAP(X)       \
    X(HV_KERNELS_AUTO,  "auto")  \
    X(HV_KERNELS_FUSED, "fused") \
    X(HV_KERNELS_EAGER, "eager")
/* clang-format on */
/** How the kernels around products run. */
enum hv_kernels {
#define X(c, name) c,
    HV_KERNELS_MAP(X)
#undef X
        HV_KERNELS_N
};
/** How the attention core runs. */
enum hv_attention {
#define X(c, name) c,
    HV_ATTENTION_MAP(X)
#undef X
        HV_ATTENTION_N
};
/** Whether dropout runs. */
enum hv_dropout {
#define X(c, name) c,
    HV_DROPOUT_MAP(X)
#undef X
        HV_DROPOUT_N
};
const char *hv_attention_name(enum hv_attention a); /**< name in files */
const char *hv_dropout_name(enum hv_dropout d);     /**< name in files */

/** Figure that ranks plans: seconds, USD or joules of an iteration. */
enum hv_minimize { HV_MIN_TIME, HV_MIN_COST, HV_MIN_ENERGY, HV_MINIMIZE_N };
const char *hv_minimize_name(enum hv_minimize m); /**< "time", "cost", "energy" */

/** Objective of the user. */
struct hv_objective {
    enum hv_minimize minimize;
    double max_usd_per_h;
    double deadline_s; /**< of an iteration; both HV_UNKNOWN: no limit */
    bool allow_stale, allow_drop;
    /** The file contains the key: only an explicit `false` makes a stale or dropping plan a
     * violation. */
    bool allow_stale_given, allow_drop_given;
};

/* clang-format off */
/** Default failure model for members that the job does not give: member, key in files, value,
 * least, most, meaning. */
#define HV_FAILURE_MAP(X)                                                                                        \
    X(per_device_h,   "per_device_hour",       1.97e-5, 0, 1e3, "failures per device and hour, without preemptions; 419 in 54 days of 16,384 H100 (Llama 3, arXiv:2407.21783, section 3.3.4)") \
    X(detect_s,       "detect_s",              60,  0, 1e6, "until a failure is noticed (estimated)")            \
    X(replace_s,      "replace_s",             600, 0, 1e9, "until a lost node is replaced (estimated)")  \
    X(restart_s,      "restart_s",             180, 0, 1e6, "start of all processes and communicators (estimated)") \
    X(regroup_s,      "regroup_s",             10,  0, 1e6, "new communicators among the remaining processes (estimated)") \
    X(store_GBps,     "checkpoint_GBps",       1,   1e-6, 1e6, "storage rate of a node, writing and reading (estimated)")
/* clang-format on */
/** Failure model; all HV_FAILURE_MAP members in the units of their keys. */
struct hv_failure_rules {
#define X(member, key, value, least, most, help) double member;
    HV_FAILURE_MAP(X)
#undef X
    double interval_s; /**< between checkpoints; HV_UNKNOWN: the best one */
    bool given;        /**< the job has an object `failures` */
};

/** One bin of the sequence-length distribution. */
struct hv_length_bin {
    int64_t tokens;
    double frac;
};

/** The job. Plain value; arrays borrowed from the arena of its document. */
struct hv_job {
    int64_t global_batch, sequence; /**< sequences per iteration; tokens per sequence */
    enum hv_precision precision;
    enum hv_optimizer optimizer;
    bool master_weights;         /**< fp32 copy of the weights when precision is below 4 bytes */
    bool grad_fp32;              /**< grad_precision: "fp32", or "same" (default of fp16 files) */
    enum hv_attention attention; /**< resolved by hv_job_flash_attention */
    enum hv_dropout dropout;     /**< resolved by hv_job_dropout */
    enum hv_kernels kernels;     /**< resolved by hv_job_eager_kernels */
    enum hv_runtime runtime;  /**< that will run the plan; HV_RUNTIME_HETVIZ: none in particular */
    enum hv_target_id target; /**< only plans that it can say; HV_TARGET_ANY: every plan */
    double memory_reserve_bytes; /**< HV_UNKNOWN: by device */
    int64_t output_tokens; /**< when serving, the last ones of a sequence, which are generated one
                              by one; −1: ask hv_job_output_tokens */
    double requests_per_s; /**< when serving, the mean arrival rate of requests; HV_UNKNOWN: a share
                              of the plan's capacity */
    const struct hv_length_bin *lengths;
    size_t n_lengths;
    const struct hv_router *routing; /**< of tokens over experts; NULL: even */
    struct hv_objective objective;
    struct hv_failure_rules failures;
    const char *name;
};

/** Mean length of a sequence: by the distribution, else the job's `sequence`. O(bins). */
double hv_job_mean_tokens(const struct hv_job *j);
/** Probability that the longest of so many sequences drawn by the distribution has at most
 * `tokens`, to which a micro-batch of them is padded. O(bins). */
double hv_job_padded_share(const struct hv_job *j, double sequences, double tokens);
/** That length at a quantile from 0 to 1; without a distribution the job's `sequence`. O(bins²). */
double hv_job_padded_tokens(const struct hv_job *j, double sequences, double quantile);
/** Defaults: batch 256, the model's max_sequence (or 2048), bf16, adam, master weights, fp32
 * gradients, minimise time. */
struct hv_job hv_job_default(int max_sequence);
/** Default of fp32 gradient sums where the file gives none. False for fp16: Megatron-LM and
 * DeepSpeed sum those gradients in 16 bit. */
bool hv_job_default_grad_fp32(enum hv_precision p);
/** Tokens of a sequence that are generated when serving: as given in the job, else a quarter
 * (Azure's conversations, with which Helix was measured: 763 tokens in, 232 out; ASPLOS'25,
 * section 6.2). */
int64_t hv_job_output_tokens(const struct hv_job *j);
/** Bytes per parameter of weights, gradients, master copy, optimizer state (each ≥ 0). */
double hv_job_weight_bytes(const struct hv_job *j);
double hv_job_grad_bytes(const struct hv_job *j);      /**< gradient accumulator per parameter */
double hv_job_master_bytes(const struct hv_job *j);    /**< fp32 master copy per parameter, or 0 */
double hv_job_optimizer_bytes(const struct hv_job *j); /**< optimizer state per parameter */
/** Copy per parameter of gradients that are summed in 16 bit and unscaled into 32 (Megatron-LM,
 * DeepSpeed), as large as the shard that a rank updates; it stays on the device. 0: there is none.
 */
double hv_job_unscaled_bytes(const struct hv_job *j);
/** Bytes per activation element (fp8 jobs keep activations in 2 bytes, fp32 and tf32 in 4). */
double hv_job_activation_bytes(const struct hv_job *j);

/** Properties of a stage that determine the choice of kernels. */
struct hv_kernel_query {
    const struct hv_device_kind *device;
    bool sharded_weights;  /**< every rank holds a shard of each weight (ZeRO-3, FSDP) */
    bool context_parallel; /**< a sequence is split over ranks: rings exist for fused cores only */
};

/**
 * True where the attention core runs fused: as given in the job; `auto` is an estimate of what
 * published runs of such a model on such a device used. NVIDIA before Ampere: never. Ampere: with a
 * LLaMA-style model (gated feed-forward, RMSNorm, rotary positions or grouped queries), sharded
 * weights, context parallelism, or sequences above 4096 tokens; GPT-2/3-style runs of Megatron and
 * DeepSpeed kept three kernels there until 2023. Every other device: always. O(1); decided by the
 * first block.
 */
bool hv_job_flash_attention(const struct hv_job *j, const struct hv_model *m,
                            const struct hv_kernel_query *q);
/**
 * True where dropout runs: as given in the job; `auto`: for GPT-style models (LayerNorm, plain
 * feed-forward, as many key/value heads as heads, no rotary positions) without sharded weights on
 * devices before Hopper, whose published recipes have none. O(1).
 */
bool hv_job_dropout(const struct hv_job *j, const struct hv_model *m,
                    const struct hv_kernel_query *q);

/**
 * True where the kernels around the products run one by one: as given in the job; `auto`: where
 * weights are fully sharded and the model is GPT-style, as the published runs of PyTorch FSDP
 * stacks of such models did (llm-foundry); stacks of LLaMA-style models compile or fuse them. O(1).
 */
bool hv_job_eager_kernels(const struct hv_job *j, const struct hv_model *m,
                          const struct hv_kernel_query *q);

#endif
