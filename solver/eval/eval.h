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
#include "solver/sim/events/requests.h"
#include "solver/sim/lanes/lanes.h"

#include <stdatomic.h>

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
struct hv_metrics;
/** Is what the objective wants to be small known of the plan? A price or a power may be missing. */
bool hv_eval_has_figure(const struct hv_objective *o, const struct hv_metrics *m);
/** What of a judged plan the objective wants to be small: seconds, USD per million tokens, or
 * joules; seconds where a price or a power is missing. */
double hv_eval_figure(const struct hv_objective *o, const struct hv_metrics *m);
/** Is the plan within the objective's price and deadline? */
bool hv_eval_within(const struct hv_objective *o, const struct hv_metrics *m);
/** How far a plan misses them: the larger of its price and its time as a multiple of what is
 * allowed, at least 1; HUGE_VAL where the price is unknown and limited. */
double hv_eval_excess(const struct hv_objective *o, const struct hv_metrics *m);
/** What ranks plans: hv_eval_figure within the limits; behind all those, by their seconds, plans
 * whose figure is not known; behind these, by hv_eval_excess, plans that miss limits, so that the
 * plan nearest to them comes first. */
double hv_eval_worth(const struct hv_objective *o, const struct hv_metrics *m);
/** Worth of a second where the figure is not known: more than any figure is. */
#define HV_EVAL_NO_FIGURE 1e20
/** Worth of a plan that misses limits by nothing. */
#define HV_EVAL_OVER 1e32
/** Key of that figure among those of `simulated`. */
const char *hv_eval_figure_key(const struct hv_objective *o);
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
    double energy_j;   /**< of an iteration, all used devices at their rated power; HV_UNKNOWN when
                          a rating is missing */
    double pipeline_s; /**< end of the last backward */
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
    int32_t paired; /**< micro-batch of the other half of an overlapped pair (HV_SPAN_PAIR); number
                       in hv_timeline.hops (HV_SPAN_HOP) */
    uint8_t kind;   /**< enum hv_span_kind */
    bool critical;  /**< on the critical path of its pipeline */
    double slack_s; /**< how much later it could end without a later pipeline end */
};

/** Flag of a span whose operation is critical; its item is the micro-batch, its group the stage. */
#define HV_SPAN_CRITICAL 1u

/** dp ranks of a row that do the same, where not all of them do. */
struct hv_timeline_part {
    const char *name;     /**< "  v[0].0-3 x2": devices of the first, how many there are */
    size_t dp_rank, rank; /**< the first of them, in its pipeline rank */
    size_t n_alike;
    struct hv_steps memory; /**< bytes over time on one of its devices */
    double memory_limit_bytes;
    const struct hv__unit *unit; /**< what hv_timeline_part_end_s reads */
};

/** A link between two rows, in one direction. */
struct hv_timeline_link {
    size_t from_row, to_row;
    const char *name; /**< "  s0>s1" */
    size_t lane;      /**< number in `lanes` */
};

/** What is sent over an edge of the stage graph in one direction. */
struct hv_timeline_hop {
    size_t i_link;
    double bytes, seconds; /**< all devices of the stage together */
    bool backward;         /**< gradients */
};

/** What a line of a picture shows of a row: compute, and where that is idle reductions; compute
 * alone; a part of its dp ranks; its reductions and gathers; what it sends over a link. */
enum hv_track_kind { HV_TRACK_ALL, HV_TRACK_COMPUTE, HV_TRACK_PART, HV_TRACK_SYNC, HV_TRACK_HOPS };
/** One line. `index`: of the row's parts (PART) or of the timeline's links (HOPS). */
struct hv_timeline_track {
    enum hv_track_kind kind;
    size_t row, index;
};
/** Lines from top to bottom. */
struct hv_timeline_tracks {
    const struct hv_timeline *timeline;
    struct hv_timeline_track *items;
    size_t n;
};
/** What pictures may show besides rows; `tracks` of a timeline counts in sums of these. */
#define HV_TRACKS_PARTS 1u
#define HV_TRACKS_LINKS 2u
#define HV_TRACKS_N     4

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
    struct hv_timeline_part *parts; /**< dp ranks that differ; none where all do the same */
    size_t n_parts;
};

/** A drawn iteration. */
struct hv_timeline {
    struct hv_lanes lanes;
    struct hv_timeline_row *rows;
    size_t n_rows;
    struct hv_timeline_op *ops;
    size_t n_ops;
    struct hv_timeline_link *links;
    size_t n_links;
    struct hv_timeline_hop *hops;
    size_t n_hops;
    struct hv_timeline_tracks tracks[HV_TRACKS_N];
    double end_s;
};

/** When the devices of a part are done with an operation of their row: a faster one waits for the
 * slowest. Of an overlapped pair both halves are taken to be of one stage. O(dp). */
double hv_timeline_part_end_s(const struct hv_timeline *t, const struct hv_timeline_part *part,
                              const struct hv_span *s);

/** How the workers (pipelines) of a stale plan agree. */
struct hv_agreement {
    enum hv_sync_kind kind;
    size_t n_workers;
    int group;               /**< partial reduce: how many average at a time; 0 */
    double mean_group;       /**< partial reduce: how many did, in the mean; 0 */
    int clock_distance;      /**< wsp, ps: D */
    int own_staleness;       /**< micro-batches of a worker that its weights do not know yet */
    double wave_s;           /**< from one exchange of a worker to its next; mean over workers */
    double exchange_s;       /**< of one exchange: push and pull, or a group's average; mean */
    double wait_frac;        /**< share of the time that workers wait for each other, mean */
    double staleness_clocks; /**< steps that the members of a group are apart, mean; wsp, ps: D */
    /** Second eigenvalue of the mean averaging: 0 all agree at once, 1 they never do; HV_UNKNOWN
     * where there is no averaging in groups. The spectral gap is 1 − rho. */
    double rho;
};

/** Appends that in words, one sentence: who waits for whom, how long, how stale. */
void hv_eval_agreement_text(const struct hv_agreement *a, struct hv_str *out);

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
    double bound_tokens_per_s; /**< no placement on these stages' devices passes more */
    const char *bound_why;
    double requests_per_s;
    double first_token_s;            /**< prompt through all stages, mean over the flow */
    double next_token_s;             /**< from one generated token to the next, likewise */
    double request_s;                /**< first token and all others */
    double requests_in_flight;       /**< by Little's law */
    double output_tokens;            /**< of a request */
    double arrivals_per_s;           /**< requests that come: the job's rate, else a share */
    double slots;                    /**< requests that are in flight at most: at full flow */
    struct hv_request_figures queue; /**< waiting for a slot, estimated; queue.n = 0: not asked for,
                                        or they come faster than they go */
    struct hv_serve_stage *stages;   /**< replica entries one after the other */
    size_t n_stages;
    const struct hv_plan_flow *flow; /**< in use: the plan's own, else the max flow */
    size_t n_flow;
};

struct hv_job_verdict;

/** Figures of a plan for many jobs. Times are HV_UNKNOWN while a job has no end. */
struct hv_jobs_verdict {
    struct hv_job_verdict *items; /**< in the plan's order */
    size_t n;
    double makespan_s;                     /**< last end */
    double mean_wait_s, mean_completion_s; /**< start less arrival; end less arrival */
};

/** A verdict. Everything lives in the arena given to hv_eval. */
struct hv_verdict {
    struct hv_metrics metrics;
    struct hv_findings findings;
    struct hv_stage_memory *memory; /**< one per stage, replica entries one after the other */
    size_t n_memory;
    struct hv_stage_metrics *stages; /**< likewise */
    size_t n_stages;
    const char *bound_why; /**< one sentence */
    bool bound_some; /**< other plans than those like this may be below bound_s: why says which */
    struct hv_goodput goodput; /**< known where the job or the inventory speaks of failures */
    /** Knobs of the plan that the judge only approximates: "replicas[0].stages[1].deal: …". */
    const char **approximated;
    size_t n_approximated;
    struct hv_timeline *timeline;   /**< NULL unless asked for */
    struct hv_agreement *agreement; /**< of stale plans, else NULL */
    struct hv_serving *serving;     /**< of plans of mode serve: then no iteration is timed */
    struct hv_jobs_verdict *jobs;   /**< of plans for many jobs: the metrics are sums over those
                                       without an end, else means until the last has ended */
};

/** One job, judged alone on its own devices. */
struct hv_job_verdict {
    const char *name;
    struct hv_verdict verdict;
    double arrival_s, start_s, end_s; /**< end: start and all iterations */
    double wait_s;                    /**< from the arrival, or the end of the part before it */
    double usd;                       /**< of its nodes while it runs; HV_UNKNOWN without an end */
};

/** A look at a judgement from outside, by another thread too: how far it is, and a way to end it.
 */
struct hv_eval_watch {
    atomic_uint permille; /**< done so far; the judge only raises it */
    atomic_bool stop;     /**< set from outside: hv_eval returns HV_ESTOPPED soon */
};

/** What to compute. */
struct hv_eval_options {
    bool timeline;               /**< keep spans for drawing */
    bool no_bound;               /**< leave the bound unknown, and goodput (inner loops) */
    bool failures;               /**< goodput also with no_bound */
    struct hv_cost *const *jobs; /**< of a plan for many jobs: the context of each with its own
                                    model and job; NULL, or a NULL entry: the one given */
    struct hv_eval_watch *watch; /**< NULL = nobody looks */
};

/**
 * Judges a plan. A plan with violations still gets all figures that make sense; those that do not
 * are HV_UNKNOWN. Errors: HV_ENO when nothing can be timed (reason in words), HV_EINPUT never.
 * Complexity O(operations of one pipeline per distinct replica entry).
 */
enum hv_status hv_eval(struct hv_cost *k, const struct hv_plan *p, const struct hv_eval_options *o,
                       struct hv_arena *arena, struct hv_verdict *out,
                       struct hv_err *err) HV_NODISCARD;

/**
 * The timelines of all jobs as one, each iteration from 0 on, rows named by their jobs. NULL where
 * no job has one. Rows count replicas and stages in the plans of their jobs. O(spans).
 */
struct hv_timeline *hv_eval_jobs_timeline(const struct hv_verdict *v, struct hv_arena *arena);

/** Lower bound of the iteration time of any plan for these inputs. */
struct hv_bound {
    double iteration_s;
    const char *why;  /**< one sentence, in the arena */
    double compute_s; /**< forward and backward work alone on all devices that can hold a rank: no
                         plan with stale weights is faster either */
    double any_s; /**< of any exact plan, also with stages that branch, parts of micro-batches or
                     tensor parallelism that is not 1d: passes of any size */
    const char *any_why, *compute_why;
    double spread_s; /**< of plans that iteration_s is for, and of those that exchange inside
                        passes or shard states across the cut, or sum gradients on servers */
    const char *spread_why;
    double even_s; /**< of those that spread_s is for which are copies of one pipeline with all
                      passes of a stage alike: above spread_s, or 0 */
    const char *even_why;
    const char *cut_why; /**< what cut_s is; NULL where no cut counts */
    const bool *beyond;  /**< [groups] the second side of the cut; NULL: none counts */
    /* what iteration_s is made of besides compute_s */
    double shapes_s;    /**< kernels of the shapes that valid degrees leave, their exchanges */
    double passes_s;    /**< fill and drain: passes of limited size, and devices better left out */
    double optimizer_s; /**< the step of every weight */
    double host_s;      /**< of the host, once per iteration and in one pass */
    double wait_s;      /**< for the slowest of many devices */
    double cut_s;       /**< because a slow network lies between the devices */
    double fewest;      /**< devices that it takes to hold the gradients; 0: not known */
};
/**
 * No exact plan can be faster: every sequence's work in the best kernels that passes of some size
 * reach and that fit into memory, with the exchanges of tensor parallelism over the slowest link
 * that its ranks cannot avoid, spread over all devices that are not drained without any loss, all
 * its layers in turn before the iteration ends (fill and drain), the optimizer step of every
 * weight, and what an iteration costs around them, on devices enough to hold all gradients; and
 * between two sides of a slow network either little work is shared, or activations of all sequences
 * cross it, or gradients of all weights; and where all passes of a stage are alike none goes
 * backward before one has gone forward through all layers. Weak duality over block classes keeps it
 * true for mixed kinds (derivations: bound.c, bound_chain.c, bound_cut.c, bound_even.c).
 * O(2^kinds × kinds × classes × cells), kinds up to 8; the cells are remembered by the context.
 */
void hv_eval_bound(struct hv_cost *k, struct hv_arena *arena, struct hv_bound *out);

#endif
