/**
 * The result of the judge for a plan: time, memory, throughput, price, findings. Types only, and
 * the texts of their enumerations; the figure that an objective minimises is in objective.h.
 */
#ifndef HV_SOLVER_EVAL_VERDICT_VERDICT_H
#define HV_SOLVER_EVAL_VERDICT_VERDICT_H

#include "solver/cost/part/part.h"
#include "solver/plan/check.h"
#include "solver/plan/plan.h"
#include "solver/sim/events/requests.h"
#include "solver/sim/failures.h"
#include "solver/workload/runtime.h"

#include <stdatomic.h>

/* clang-format off */
/** Where the time of an iteration goes, averaged over the used devices; the rows add up to iteration_s. */
#define HV_BREAKDOWN_MAP(X)                                                                 \
    X(HV_TIME_COMPUTE,   "compute",   "forward and backward compute")                       \
    X(HV_TIME_RECOMPUTE, "recompute", "forward compute repeated in the backward pass")    \
    X(HV_TIME_TP,        "tp",        "exposed tensor-parallel collectives")                \
    X(HV_TIME_CP,        "cp",        "exposed context-parallel exchange")                  \
    X(HV_TIME_EP,        "ep",        "exposed expert all-to-all")                          \
    X(HV_TIME_ZERO,      "zero",      "exposed gathers of sharded weights")                 \
    X(HV_TIME_IMBALANCE, "imbalance", "waiting for slower ranks of the same stage")         \
    X(HV_TIME_PP,        "pp",        "waiting for the transfer of activations")                \
    X(HV_TIME_BUBBLE,    "bubble",    "waiting for another stage or a slower replica")       \
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
    double kept_bytes;              /**< more than without offloads of others that it keeps */
    double peak_bytes, limit_bytes; /**< limit: what the device has, less the reserve */
    double peak_at_s;
    int in_flight; /**< micro-batches alive at the peak */
};

/** Of the peak, the bytes that the framework's allocator has handed out: without context,
 * communicators and what it holds in reserve. O(1). */
double hv_stage_allocated_bytes(const struct hv_stage_memory *m);

/** A memory that keeps what stages offload. */
struct hv_kept_memory {
    bool host;         /**< of a node, else of a device */
    const char *place; /**< "host of a[0]", "a[7].0" */
    size_t n_alike;    /**< hosts that keep the same */
    double kept_bytes; /**< most of it at one time */
    double peak_bytes; /**< with what the device holds itself */
    double peak_at_s;
    double limit_bytes; /**< HV_UNKNOWN: the cluster does not give the host's memory */
};

/** One stage of one replica entry: times of its rank per micro-batch and per iteration. */
struct hv_stage_metrics {
    size_t replica, stage;
    double forward_s, backward_s; /**< per micro-batch, all chunks, slowest dp rank */
    double busy_frac;
    double hop_s; /**< transfer to the next stage; 0 for the last */
};

/** Range that holds the time of a real iteration with a known probability. */
struct hv_band {
    double low_s, high_s;
    double cover; /**< the probability; 0: there is no band */
};

/** The figures of a verdict: `simulated` of a plan file. */
struct hv_metrics {
    double iteration_s, tokens_per_s, mfu, bubble_frac;
    bool exact;          /**< as one device would train: no stale weights, no dropped tokens */
    int staleness;       /**< updates, when not exact */
    double dropped_frac; /**< mean share of the tokens that experts drop, as the job routes them */
    double bound_s, gap_frac;
    double usd_per_h, usd_per_mtoken; /**< HV_UNKNOWN when a price is missing */
    double energy_j;   /**< of an iteration, all used devices at their rated power; HV_UNKNOWN when
                          a rating is missing */
    double pipeline_s; /**< end of the last backward */
    double breakdown_s[HV_BREAKDOWN_N];
    size_t n_devices_used;
    /** Values that a rank sends in an iteration, by kind of exchange: each of the rank that sends
     * most of it. */
    struct hv_traffic traffic;
    struct hv_band band; /**< of iteration_s; band.h */
};

/** One iteration of the job's routing. */
struct hv_routing_step {
    double time_s;      /**< of the iteration, with the moves before it */
    double move_s;      /**< in which experts move before it; 0: none do */
    size_t moves;       /**< experts that are placed anew before it */
    double moved_bytes; /**< weights and states that this sends */
    /** With the places that experts have in it; NULL: the plan's own. Lives with the plan that was
     * judged, and shares with it all that is equal. */
    const struct hv_plan *plan;
};

/** Iterations of a plan whose job routes tokens unevenly (hetviz.routing/1). */
struct hv_routing_figures {
    size_t n;             /**< iterations that were timed; 0: tokens are spread evenly */
    double mean_s, p95_s; /**< of their times */
    size_t moves;         /**< experts that were placed anew between them */
    double moved_bytes;   /**< weights and states that this sent */
    double dropped_frac;  /**< mean share of the tokens */
    const struct hv_routing_step *steps; /**< [n]; NULL: there is one only */
};

/** Expectations of a plan under failures. */
struct hv_goodput {
    bool known;            /**< false: the fields below are not set */
    enum hv_recovery from; /**< `peers` only where every state outlives any one node */
    double failures_per_h; /**< of all nodes that the plan uses */
    size_t n_nodes;
    double checkpoint_bytes;
    double write_s;         /**< of a checkpoint, all nodes at once */
    double load_s;          /**< reading it, or copying the states of a node from its peers */
    double best_interval_s; /**< useful work between checkpoints with the largest useful share;
                               HV_UNKNOWN where no node ever fails */
    double interval_s;      /**< the interval in use: the job's, or the best */
    double detect_s, rollback_s, restore_s; /**< lost by one failure; restore: replacement, start
                                               and states */
    struct hv_failure_shares share;
    double away_frac; /**< share of the nodes that is away while the others continue (peers) */
    double tokens_per_s, sequences_per_s;
    double usd_per_h, usd_per_mtoken; /**< spot prices where nodes are preempted */
};

/** Synchronization of the workers (pipelines) of a stale plan. */
struct hv_stale_sync {
    enum hv_sync_kind kind;
    size_t n_workers;
    int group;               /**< partial reduce: how many average at a time; 0 */
    double mean_group;       /**< partial reduce: how many did, in the mean; 0 */
    int clock_distance;      /**< wsp, ps: D */
    int own_staleness;       /**< micro-batches of a worker whose updates its weights lack */
    double wave_s;           /**< from one exchange of a worker to its next; mean over workers */
    double exchange_s;       /**< of one exchange: push and pull, or a group's average; mean */
    double wait_frac;        /**< share of the time that workers wait for each other, mean */
    double staleness_clocks; /**< steps that the members of a group are apart, mean; wsp, ps: D */
    /** Second eigenvalue of the mean averaging: 0 all agree at once, 1 they never do; HV_UNKNOWN
     * where there is no averaging in groups. The spectral gap is 1 − rho. */
    double rho;
};

/** Appends a description as one sentence: which workers wait for each other, how long, how stale.
 */
void hv_eval_stale_sync_text(const struct hv_stale_sync *a, struct hv_str *out);

/** One stage of a serving plan; all copies together. */
struct hv_serve_stage {
    size_t replica, stage; /**< replica entry and stage number */
    double prompt_s;       /**< one pass over the prompts of a batch */
    double token_s;        /**< one pass that generates the next token of every sequence of a batch,
                              half-way through the output; 0 where nothing is generated */
    double capacity_tokens_per_s; /**< prompt and output alike */
    double flow_tokens_per_s;
    double cache_bytes; /**< keys and values on one device, of the sequences in flight */
};

/** Figures of a serving plan. A request is one sequence of the job: prompt, then output. */
struct hv_serving {
    double max_tokens_per_s;   /**< max flow through the placement */
    double bound_tokens_per_s; /**< upper bound of any placement on these stages' devices */
    const char *bound_why;
    double requests_per_s;
    double first_token_s;      /**< prompt through all stages, mean over the flow */
    double next_token_s;       /**< from one generated token to the next, likewise */
    double request_s;          /**< first token and all others */
    double requests_in_flight; /**< by Little's law */
    double output_tokens;      /**< of a request */
    double arrivals_per_s;     /**< arrival rate: the job's rate, else a share of the capacity */
    double slots;              /**< requests that are in flight at most: at full flow */
    struct hv_request_figures queue; /**< waiting for a slot, estimated; queue.n = 0: not asked for,
                                        or they come faster than they go */
    struct hv_serve_stage *stages;   /**< replica entries one after the other */
    size_t n_stages;
    const struct hv_plan_flow *flow; /**< in use: the plan's own, else the max flow */
    size_t n_flow;
};

struct hv_job_verdict;

/** Figures of a plan for many jobs. Times are HV_UNKNOWN where a job has no end. */
struct hv_jobs_verdict {
    struct hv_job_verdict *items; /**< in the plan's order */
    size_t n;
    double makespan_s;                     /**< last end */
    double mean_wait_s, mean_completion_s; /**< start less arrival; end less arrival */
};

/** Version of the judge: it rises whenever verdicts of plans may have changed, so that saved ones
 * of an older judge are known as such. */
#define HV_JUDGE_VERSION 6

/** A verdict. Everything lives in the arena given to hv_eval. */
struct hv_verdict {
    enum hv_runtime runtime; /**< for which the plan was judged */
    struct hv_metrics metrics;
    struct hv_findings findings;
    struct hv_stage_memory *memory; /**< one per stage, replica entries one after the other */
    size_t n_memory;
    struct hv_kept_memory *kept; /**< where offloads lie; none without offloads */
    size_t n_kept;
    struct hv_stage_metrics *stages; /**< one per stage, as memory */
    size_t n_stages;
    const char *bound_why; /**< one sentence */
    bool bound_some; /**< plans of other families may be below bound_s: bound_why names them */
    struct hv_routing_figures routing;
    struct hv_goodput goodput; /**< known where the job or the inventory speaks of failures */
    /** Approximated knobs of the plan: "replicas[0].stages[1].deal: …". */
    const char **approximated;
    size_t n_approximated;
    struct hv_timeline *timeline;     /**< NULL unless asked for */
    struct hv_stale_sync *stale_sync; /**< of stale plans, else NULL */
    struct hv_serving *serving;       /**< of plans of mode serve: then no iteration is timed */
    struct hv_jobs_verdict *jobs;     /**< of plans for many jobs: the metrics are sums over those
                                         without an end, else means until the last has ended */
    double steps; /**< of the simulation of shared links (hv_links.steps); 0: it was not needed */
    double common_s;  /**< of a job with sequence_lengths: expected time of iterations whose
                         micro-batches are equally long; else 0 */
    bool common_only; /**< the figures are those of such iterations (hv_eval_options.beat_s) */
    /** The iteration takes longer, and there are no figures (hv_eval_options.give_up_s); else 0. */
    double at_least_s;
};

/** One job, judged alone on its own devices. */
struct hv_job_verdict {
    const char *name;
    struct hv_verdict verdict;
    double arrival_s, start_s, end_s; /**< end: start and all iterations */
    double wait_s;                    /**< from the arrival, or the end of the part before it */
    double usd;                       /**< of its nodes while it runs; HV_UNKNOWN without an end */
};

/** Observer of an evaluation, also from another thread: its progress, and a flag to stop it. */
struct hv_eval_watch {
    atomic_uint permille; /**< done so far; the judge only raises it */
    atomic_bool stop;     /**< set from outside: hv_eval returns HV_ESTOPPED soon */
};

/** Adds a line to the approximated knobs of the plan; `text` is kept. */
void hv__add_approximated(struct hv_verdict *out, struct hv_arena *arena, const char *text);

#endif
