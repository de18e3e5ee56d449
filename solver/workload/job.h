/** The training job: batch, sequence, precision, optimizer, objective. Source: formats.md §3. */
#ifndef HV_SOLVER_WORKLOAD_JOB_H
#define HV_SOLVER_WORKLOAD_JOB_H

#include "solver/base/arena.h"
#include "solver/inventory/device.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
const char *hv_optimizer_name(enum hv_optimizer o);    /**< name in files */
double hv_optimizer_state_values(enum hv_optimizer o); /**< fp32 values per parameter */

/** What makes one plan better than another: seconds, USD or joules of an iteration. */
enum hv_minimize { HV_MIN_TIME, HV_MIN_COST, HV_MIN_ENERGY, HV_MINIMIZE_N };
const char *hv_minimize_name(enum hv_minimize m); /**< "time", "cost", "energy" */

/** What the user wants. */
struct hv_objective {
    enum hv_minimize minimize;
    double max_usd_per_h, deadline_s; /**< HV_UNKNOWN: no limit */
    bool allow_stale, allow_drop;
    /** The file says so itself: only a written `false` makes a stale or dropping plan a violation.
     */
    bool allow_stale_given, allow_drop_given;
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
    bool grad_fp32;              /**< grad_precision: "fp32" (default) or "same" */
    double memory_reserve_bytes; /**< HV_UNKNOWN: by device */
    const struct hv_length_bin *lengths;
    size_t n_lengths;
    struct hv_objective objective;
    const char *name;
};

/** Defaults: batch 256, the model's max_sequence (or 2048), bf16, adam, master weights, fp32
 * gradients, minimise time. */
struct hv_job hv_job_default(int max_sequence);
/** Bytes per parameter of weights, gradients, master copy, optimizer state (each ≥ 0). */
double hv_job_weight_bytes(const struct hv_job *j);
double hv_job_grad_bytes(const struct hv_job *j);      /**< gradient accumulator per parameter */
double hv_job_master_bytes(const struct hv_job *j);    /**< fp32 master copy per parameter, or 0 */
double hv_job_optimizer_bytes(const struct hv_job *j); /**< optimizer state per parameter */
/** Bytes per activation element (fp8 jobs keep activations in 2 bytes, fp32 and tf32 in 4). */
double hv_job_activation_bytes(const struct hv_job *j);

#endif
