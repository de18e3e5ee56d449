/**
 * The judge: a plan becomes passes, an outer graph, a tail, a timeline and metrics
 * (architecture.md §1b). Every plan, whoever made it, is judged here and only here.
 */
#ifndef HV_SOLVER_EVAL_EVAL_H
#define HV_SOLVER_EVAL_EVAL_H

#include "solver/cost/cost.h"
#include "solver/eval/goodput.h"
#include "solver/plan/check.h"
#include "solver/plan/plan.h"
#include "solver/sim/lanes.h"

/* clang-format off */
/** Where the time of an iteration goes, averaged over the used devices; the rows add up to iteration_s. */
#define HV_BREAKDOWN_MAP(X)                                                                 \
    X(HV_TIME_COMPUTE,   "compute",   "forward and backward compute")                       \
    X(HV_TIME_RECOMPUTE, "recompute", "forward compute done again in the backward pass")    \
    X(HV_TIME_TP,        "tp",        "exposed tensor-parallel collectives")                \
    X(HV_TIME_CP,        "cp",        "exposed context-parallel exchange")                  \
    X(HV_TIME_EP,        "ep",        "exposed expert all-to-all")                          \
    X(HV_TIME_ZERO,      "zero",      "exposed gathers of sharded weights")                 \
    X(HV_TIME_IMBALANCE, "imbalance", "waiting for slower ranks of the same stage")         \
    X(HV_TIME_PP,        "pp",        "waiting for activations on the wire")                \
    X(HV_TIME_BUBBLE,    "bubble",    "idle, in the pipeline or for a slower replica")       \
    X(HV_TIME_DP,        "dp",        "exposed gradient reduction")                         \
    X(HV_TIME_OPTIMIZER, "optimizer", "optimizer step and weight gather")                   \
    X(HV_TIME_STEP,      "step",      "host work of an iteration, and waiting for the slowest of many devices")
/* clang-format on */
enum hv_breakdown {
#define X(c, key, help) c,
    HV_BREAKDOWN_MAP(X)
#undef X
        HV_BREAKDOWN_N
};
const char *hv_breakdown_name(enum hv_breakdown b); /**< key in files */
const char *hv_breakdown_help(enum hv_breakdown b);

/** Memory of the worst device of a stage, by category, at its peak. */
struct hv_stage_memory {
    size_t replica, stage; /**< replica entry and stage number */
    uint32_t device;       /**< the worst one */
    double weights_bytes, gradients_bytes, master_bytes, optimizer_bytes, activations_bytes,
        transient_bytes, overhead_bytes;
    double buffers_bytes;           /**< of the overhead: what the framework's allocator counts */
    double peak_bytes, limit_bytes; /**< limit: what the device has, less the reserve */
    double peak_at_s;
    int in_flight; /**< micro-batches alive at the peak */
};

/** One stage of one replica entry: what its rank does per micro-batch and per iteration. */
struct hv_stage_metrics {
    size_t replica, stage;
    double forward_s, backward_s; /**< per micro-batch, all chunks, slowest dp rank */
    double busy_frac;
    double hop_s; /**< transfer to the next stage; 0 for the last */
};

/** The figures of formats.md §5 `simulated`. */
struct hv_metrics {
    double iteration_s, tokens_per_s, mfu, bubble_frac;
    bool exact;
    int staleness; /**< updates, when not exact */
    double dropped_frac;
    double bound_s, gap_frac;
    double usd_per_h, usd_per_mtoken; /**< HV_UNKNOWN when a price is missing */
    double pipeline_s;                /**< end of the last backward */
    double breakdown_s[HV_BREAKDOWN_N];
    size_t n_devices_used;
};

/* clang-format off */
/** What a drawn span is: constant, letter in cells and files, words. */
#define HV_SPAN_MAP(X)                                  \
    X(HV_SPAN_F,    "f",  "forward")                    \
    X(HV_SPAN_B,    "b",  "backward, input gradient")   \
    X(HV_SPAN_W,    "w",  "backward, weight gradient")  \
    X(HV_SPAN_BW,   "b",  "backward")                   \
    X(HV_SPAN_R,    "r",  "recompute")                  \
    X(HV_SPAN_PAIR, "x",  "forward and backward overlapped") \
    X(HV_SPAN_HOP,  "~",  "transfer to the next stage") \
    X(HV_SPAN_SYNC, "g",  "gradient reduction")         \
    X(HV_SPAN_OPT,  "o",  "optimizer step")             \
    X(HV_SPAN_GATHER, "a", "gather of updated weights") \
    X(HV_SPAN_STEP, "h",  "host work and waiting for the slowest device")
/* clang-format on */
enum hv_span_kind {
#define X(c, letter, text) c,
    HV_SPAN_MAP(X)
#undef X
        HV_SPAN_KIND_N
};
const char *hv_span_kind_letter(enum hv_span_kind k);
const char *hv_span_kind_text(enum hv_span_kind k);

/** What is behind a span: `hv_span.id` of sim/lanes.h counts in hv_timeline.ops. */
struct hv_timeline_op {
    int32_t stage, micro_batch, slice; /**< −1 where it has none */
    int32_t paired; /**< micro-batch of the other half of an overlapped pair (HV_SPAN_PAIR) */
    uint8_t kind;   /**< enum hv_span_kind */
    bool critical;  /**< on the critical path of its pipeline */
    double slack_s; /**< how much later it could end without a later pipeline end */
};

/** Flag of a span whose operation is critical; its item is the micro-batch, its group the stage. */
#define HV_SPAN_CRITICAL 1u

/** One drawn row: a pipeline rank of one replica entry, with its compute lane and its link lane. */
struct hv_timeline_row {
    size_t replica, stage; /**< entry and stage number in the plan */
    int multiplicity;      /**< equal pipelines drawn once */
    const char *name;      /**< "s1 a[0].0-7" */
    const char *layers;    /**< "22 L" */
    double busy_frac;
    size_t compute_lane, link_lane; /**< numbers in `lanes` */
    struct hv_steps memory;         /**< bytes over time on the worst device */
    double memory_limit_bytes;
};

/** A drawn iteration. */
struct hv_timeline {
    struct hv_lanes lanes;
    struct hv_timeline_row *rows;
    size_t n_rows;
    struct hv_timeline_op *ops;
    size_t n_ops;
    double end_s;
};

/** A verdict. Everything lives in the arena given to hv_eval. */
struct hv_verdict {
    struct hv_metrics metrics;
    struct hv_findings findings;
    struct hv_stage_memory *memory; /**< one per stage, replica entries one after the other */
    size_t n_memory;
    struct hv_stage_metrics *stages; /**< likewise */
    size_t n_stages;
    const char *bound_why;     /**< one sentence */
    struct hv_goodput goodput; /**< known where the job or the inventory speaks of failures */
    /** Knobs of the plan that the judge only approximates: "replicas[0].stages[1].deal: …". */
    const char **approximated;
    size_t n_approximated;
    struct hv_timeline *timeline; /**< NULL unless asked for */
};

/** What to compute. */
struct hv_eval_options {
    bool timeline; /**< keep spans for drawing */
    bool no_bound; /**< leave the bound unknown, and goodput (inner loops of searches) */
    bool failures; /**< goodput also with no_bound */
};

/**
 * Judges a plan. A plan with violations still gets all figures that make sense; those that do not
 * are HV_UNKNOWN. Errors: HV_ENO when nothing can be timed (reason in words), HV_EINPUT never.
 * Complexity O(operations of one pipeline per distinct replica entry).
 */
enum hv_status hv_eval(struct hv_cost *k, const struct hv_plan *p, const struct hv_eval_options *o,
                       struct hv_arena *arena, struct hv_verdict *out,
                       struct hv_err *err) HV_NODISCARD;

/** Lower bound of the iteration time of any plan for these inputs. */
struct hv_bound {
    double iteration_s;
    const char *why;  /**< one sentence, in the arena */
    double compute_s; /**< forward and backward work alone on all devices that can hold a rank: no
                         plan with stale weights is faster either */
};
/**
 * No exact plan can be faster: every sequence's work in the best kernels of the cost model, spread
 * over all devices that are not drained without any loss, the optimizer step of every weight, and
 * what an iteration costs around them. Weak duality over block classes keeps it true for mixed
 * kinds (derivation: bound.c). O(2^kinds + kinds² × classes), kinds up to 8.
 */
void hv_eval_bound(struct hv_cost *k, struct hv_arena *arena, struct hv_bound *out);

#endif
