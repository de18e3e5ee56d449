/**
 * The lowered form of a plan: distinct pipelines with priced passes, their schedules and their
 * simulated runs. One structure is filled step by step (train/steps.h); every part of it names the
 * file that writes it and the files that read it. A part does not change after its step, unless its
 * comment states otherwise. Everything lives in the arena of the evaluation.
 */
#ifndef HV_SOLVER_EVAL_LOWERED_LOWERED_H
#define HV_SOLVER_EVAL_LOWERED_LOWERED_H

#include "solver/base/units.h"
#include "solver/cost/cost.h"
#include "solver/cost/network/collective.h"
#include "solver/eval/verdict/verdict.h"
#include "solver/sim/lanes/lanes.h"
#include "solver/sim/links/links.h"
#include "solver/sim/pipeline/pipeline.h"

/** How a replica entry is split into lanes. Written by rewrite/split_stages.c before any step. */
struct hv__split {
    const struct hv_replica *whole; /**< with the stages as written; NULL: it is not split */
    struct hv_stage_split *of;      /**< [stages as written] */
    size_t *lane_at;                /**< [stages as written + 1] first lane of each: a stage of the
                                       lowered plan */
    bool unlike;                    /**< stages have micro-batches of unlike size */
};

/** A global stage as one rank runs it: its passes per shape of micro-batch (or slice). Written by
 * lower.c (which blocks) and price.c (seconds). */
struct hv__gstage {
    size_t plan_stage; /**< whose blocks it holds */
    size_t rank;       /**< who runs it */
    struct hv_range range;
    int embedding, head;   /**< 0 no, 1 yes; −1: of every leaf whose outermost block it holds */
    bool again;            /**< the schedule has recompute operations of its own for it */
    size_t shape;          /**< whose times stand for the stage: of its own micro-batches, else 0 */
    struct hv_pass *pass;  /**< [n_shapes × n_dp], with all recompute */
    struct hv_pass *plain; /**< as pass; where `again`, for a micro-batch without R */
    double *forward_s, *input_grad_s,
        *weight_grad_s;  /**< [n_shapes]: the slowest dp rank, of gradients that run apart; input
                            gradient with the recompute that no R does */
    double *backward_s;  /**< [n_shapes] of both gradients in one: the dp rank that takes longest */
    double *recompute_s; /**< [n_shapes] of R */
    /** Where sends block (runtime.c): the transfer of its result, and the gather of its input's
     * shares, of a micro-batch; parts of the operation. */
    double sends_forward_s, sends_backward_s;
    double copies_s; /**< copies of experts that arrive in the first forward pass of an iteration */
    /** Of its shape: how long exchanges between nodes keep their networks busy, without their
     * latency; the backward's include W's. */
    double network_forward_s, network_backward_s, network_weight_s;
};

/** One rank of a pipeline: a stage of the plan with all its devices. */
struct hv__rank {
    /* pipelines.c */
    size_t stage;
    const uint32_t *devices; /**< of this copy */
    /** width = tp × cp ranks of one dp rank. Where tensor shards are unequal, each of the `cuts`
     * tensor ranks of a data-parallel rank counts as one: n_dp = dp × tp, width 1. */
    size_t n_devices, n_dp, width, cuts;
    double shares_sum; /**< of the stage's shares */
    bool near;         /**< all groups of each dp rank are on one node */
    size_t *like;      /**< [n_dp] first dp rank with equal prices */
    size_t *n_like;    /**< [n_dp] how many are like it; 0 where it is not the first */
    size_t *peer; /**< [n_dp] first dp rank whose passes keep other bytes of experts' tokens, and
                     are alike in the rest; NULL: each is its own */
    /* price.c, hops.c */
    struct hv_memory *memory; /**< [n_dp] static memory */
    double hop_next_s;
    /* time.c; optimizer_step.c */
    double compute_end_s;
    double stream_end_s; /**< time.c: of its last gather or scatter beside the passes; 0: none */
    double optimizer_s, gather_s;
    /* time.c sets the end of compute, tail.c raises it */
    double sync_end_s;
    double sync_exposed_s; /**< tail.c: reductions it takes part in, after its last compute;
                              late_gathers.c: waits of its first passes */
    double late_gather_s;  /**< late_gathers.c: gathers of weights from the start on */
};

/** A size of micro-batch or slice that occurs. */
struct hv__shape {
    double sequences, tokens, context;
    const double *scales; /**< samples of every leaf per sequence, or NULL: 1 */
    struct hv_documents documents;
};

/** Marks an end of a sending that is no rank. */
#define HV__NO_RANK SIZE_MAX

/** Transfer from one rank to another, for each micro-batch; of a lane of moves also to or from
 * other devices or the hosts of the rank's own. */
struct hv__sending {
    size_t from, to;         /**< ranks; one of them may be HV__NO_RANK */
    const uint32_t *devices; /**< of the end that is no rank; NULL: the hosts */
    size_t n_devices;
    bool beside; /**< of a move, in a stream of its own: not in turn with what its rank sends */
    double bytes;
    struct hv_hop_cost
        cost; /**< bytes_s: including the simultaneous transfers of the copies that run in step */
    struct hv_wire_use *loads; /**< of the network, by all copies together */
    size_t n_loads;
};

/** Transfers of a pipeline. Written by hops.c; read by lower.c, links_shared*.c, links_left.c and
 * the timeline. */
struct hv__hops {
    double
        *time_s; /**< [n_hops] by hv_pipe_hop: of a transfer of average size that shares no link */
    double *latency_s; /**< [n_hops] the part of it that does not depend on the size */
    double *bytes;     /**< [n_hops] likewise */
    struct hv__sending *sendings;
    size_t n_sendings;
    int32_t *sending_of; /**< [n_hops + lanes of moves], −1: takes no time */
    bool devices; /**< sendings share the links of devices inside nodes too: the pipeline has moves
                   */
    bool *apart;  /**< [multiplicity] transfers of this copy share links only as those of the first
                     copy do */
};

/** Moves of one rank's activations to one place, or back from it. */
struct hv__move_lane {
    size_t rank; /**< whose activations */
    bool back;
    size_t keeper;               /**< rank of the pipeline that keeps them, or HV__NO_RANK */
    const struct hv_offload *to; /**< where the stage sends them otherwise, or NULL */
    double share;                /**< of what the stage offloads of its activations */
    double bytes;                /**< of a move of scale 1, on all devices of the rank together */
};

/** What moves beside the operations of a pipeline. Written by moves.c, the times by links_shared.c;
 * read by moves/memory.c and the timeline. */
struct hv__moving {
    struct hv_link_move *moves; /**< see hv_link_pipe */
    struct hv_link_moved *moved;
    size_t n;
    size_t *rank_at; /**< [n_ranks + 1] moves of each rank's offloads; evictions come before */
    struct hv__move_lane *lanes;
    int32_t n_lanes;
    /** time.c, where a short run stands for a long one: times of the short one, [n_nodes] and of
     * the moves, and how much later its second half is in the long one. Else NULL and 0. */
    double *short_start_s, *short_end_s, later_s;
    struct hv_link_moved *short_moved;
};

/** A worker of a stale plan. Written by stale.c; read by metrics.c and the timeline. */
struct hv__worker_waves {
    double per_iteration;      /**< waves of a worker in one iteration */
    double exposed_s;          /**< of a wave: exchanges that its compute does not hide */
    struct hv_span *exchanges; /**< where drawn: [n_exchanges × n_ranks] start and end on the link
                                  of each rank */
    size_t n_exchanges;
};

/** An order of a schedule that decides by cost. */
struct hv__made_order {
    bool made;
    const struct hv_schedule *schedule; /**< NULL: it cannot be made, or does not run */
    const struct hv_pipe *pipe;
    double alone_s; /**< its time where transfers share no link */
};

/** One distinct pipeline: equal copies of a replica entry. */
struct hv__pipeline {
    /* pipelines.c */
    size_t i_replica;
    const struct hv_replica *replica;
    int first_copy, multiplicity;
    uint64_t placement;    /**< fingerprint: equal where all costs of two copies are equal */
    size_t first_of_entry; /**< first pipeline of the same entry */
    int *copies;           /**< [multiplicity] */
    size_t n_ranks;
    struct hv__rank *ranks;
    /* alike.c */
    const struct hv__pipeline *like; /**< the pipeline whose tables and run this one has; NULL:
                                        they are its own */
    bool shared;                     /**< others have the tables and the run of this one */
    /* lower.c: micro-batches, schedule, global stages */
    struct hv__shape *shapes;
    size_t n_shapes;
    int32_t n_mb, n_slices; /**< n_mb: micro-batches that were laid out */
    int64_t more_mb;    /**< micro-batches left out of the middle of a long run that repeats; run
                           and idle are of the whole */
    int32_t *shape_of;  /**< [n_mb × n_slices] */
    double *n_of_shape; /**< [n_shapes] how many of them */
    size_t *shape_of_stage; /**< [n_gstages] where stages have micro-batches of unlike size, each of
                               one; else NULL */
    const struct hv_schedule *schedule;
    const struct hv_pipe *pipe;
    struct hv__made_order *orders; /**< [HV__ORDERS] those among which lowered.order chooses, as
                                      far as they were made; NULL: it does not choose */
    size_t n_gstages, n_pipes;
    struct hv__gstage *gstages; /**< [n_pipes × n_gstages] */
    struct hv_replica *scratch; /**< copy of the replica that price.c changes and restores */
    struct hv_pipe_cost cost;   /**< durations: of stages or of operations, and of hops; shards.c:
                                   streams beside them */
    struct hv__hops hops;
    struct hv__moving moving;
    /* lower.c where the run is folded, else time.c; links_shared.c replaces it where links are
     * crowded */
    struct hv_pipe_run run;
    struct hv_pipe_rank *idle; /**< time.c: [n_ranks] */
    double period_s; /**< time.c, schedules without flush: steady seconds per micro-batch */
    struct hv__worker_waves waves;
};

/** Shape of an operation's micro-batch or slice. */
static inline size_t hv__shape_of(const struct hv__pipeline *pl, int32_t stage, int32_t mb,
                                  int32_t slice)
{
    size_t k = (size_t)(pl->n_slices > 1 ? pl->n_slices : 1);
    if (pl->shape_of_stage != NULL) {
        return pl->shape_of_stage[stage];
    }
    return (size_t)pl->shape_of[(size_t)mb * k + (k > 1 && slice > 0 ? (size_t)slice : 0)];
}

/** Distinct pipelines of the plan. Written by pipelines.c; read by everyone. */
struct hv__pipelines {
    struct hv__pipeline *items;
    size_t n;
    size_t *rank_at;     /**< [n + 1] first flat rank number of each pipeline */
    bool *crowded_nodes; /**< [nodes] two pipelines have devices there */
};

/** Leaves of the model, in order of their blocks. Written by hv__find_leaves before any step. */
struct hv__leaves {
    const struct hv_model_leaf *items;
    size_t n;
    const double *held; /**< [blocks] lower.c: parameters of each operator that the tensor-parallel
                           ranks of a data-parallel rank hold together; NULL: those of the model */
};

/** Properties that follow from the schedule's name and the micro-batches. Written by lower.c; read
 * by everyone. */
struct hv__schedule_facts {
    const struct hv_schedule_row *row;
    bool stale;  /**< pipelines do not wait for all gradients of an iteration */
    bool packed; /**< micro-batches give the documents in them */
    bool scaled; /**< micro-batches give the number of samples per module */
};

/** Demand of the exchanges inside the passes of a rank, or of its stream of gathers and scatters
 * beside them, on one element of the network. */
struct hv__demand {
    uint64_t wire;
    size_t rank;   /**< flat; streams behind all ranks */
    double busy_s; /**< of a second of its exchanges, all copies in step together */
};

/** Communication of ranks between nodes, inside passes and in streams; other communication does not
 * share links. */
struct hv__demands {
    struct hv__demand *items; /**< by element and rank */
    size_t n;
    double **frac;      /**< [n_pipelines] share of each operation that exchanges take, alone: see
                           hv_link_pipe.frac */
    double **task_frac; /**< [n_pipelines] see hv_link_pipe.task_frac */
    double *peak;       /**< [2 × flat ranks] the largest of these of a rank, of a stream */
    double *rate_bytes_per_s; /**< [2 × flat ranks] of the slowest element of its rings */
};

/** Use of the network by transfers and by exchanges inside passes. Written by links_shared.c; read
 * by time.c and links_left.c. */
struct hv__network_use {
    struct hv_links *share; /**< links that transfers share; NULL: there are no transfers */
    const struct hv__demands *demands; /**< NULL: no communication inside passes leaves a node */
    bool crowded; /**< time.c: the runs are those of transfers that share links */
};

/** Facts about nodes, found when first needed. */
struct hv__nodes {
    bool *serve;             /**< servers.c: [nodes] a parameter server runs there */
    double *host_parameters; /**< optimizer_step.c: [nodes] updated by the node's host */
};

/** One reduction on the network, with the ranks that take part. */
struct hv__reduction {
    double start_s, end_s;
    const size_t *ranks; /**< flat rank numbers (see hv__pipelines.rank_at) */
    size_t n_ranks;
};

/** The iteration as timed. Read by metrics.c and the timeline. */
struct hv__iteration {
    double pipeline_s; /**< time.c: end of the last backward */
    double step_s;     /**< tail.c or stale.c: host work around all of them, and the wait for
                          the slowest of many devices */
    double late_s;     /**< tail.c: of step_s, the wait for the slowest device that is seen in
                          reductions after the last backward pass */
    double total_s;    /**< tail.c or stale.c: whole iteration */
    int staleness;     /**< stale.c: updates */
    bool reduces;      /**< tail.c: gradients are summed over ranks */
    double least_s;    /**< least.c, give_up.c: > 0: it takes at least this, which is more than
                          give_up_s,    and was simulated no further */
    struct hv__reduction *reductions;     /**< tail.c, where drawn */
    size_t n_reductions, most_reductions; /**< in use; that there is room for */
};

/** Lengths of the micro-batches of one iteration: quantiles of the distribution of the longest of
 * their sequences. */
struct hv__length_run {
    double weight;                  /**< in the expectation; below 0 where it corrects draws */
    double common_weight;           /**< in the expectation over iterations of one quantile; 0:
                                       drawn */
    double quantile;                /**< of all micro-batches; unless drawn */
    size_t draw, n_draws;           /**< its number of so many */
    const double *const *quantiles; /**< [replica entries] of their micro-batches, draw by draw;
                                       NULL: not drawn */
};

/** Static memory of the ranks of a pipeline, priced in an earlier iteration of the same plan. */
struct hv__kept_memory {
    size_t i_replica, n_ranks;
    int first_copy;
    struct hv_memory **ranks; /**< [n_ranks][data-parallel ranks] */
    struct hv__kept_memory *next;
};
/** All that were priced, where several iterations of one plan are timed. */
struct hv__kept_memories {
    struct hv_arena *arena;
    struct hv__kept_memory *first;
};

/** One evaluation. */
struct hv__lowered {
    /* input of the judge, written before any step */
    struct hv_cost *k;
    const struct hv_plan *plan;     /**< layers counted through the whole model, lanes as stages */
    const struct hv_plan *written;  /**< as plan, with the stages as written */
    const struct hv__split *splits; /**< [replicas]; NULL: no stage is split */
    struct hv_arena *arena;
    struct hv_findings *findings;         /**< every step may add to them */
    size_t routed;                        /**< iteration of the job's routing that is timed */
    const struct hv__length_run *lengths; /**< padded lengths of micro-batches; NULL: the job has
                                             one length, or the plan lists them */
    int order;        /**< of schedules that decide by cost: which of their orders, from 1; 0: the
                         shortest where transfers share no links and no streams run beside the passes */
    bool spans;       /**< every operation is kept, for drawing */
    double give_up_s; /**< see hv_eval_options; 0: never */
    struct hv_eval_watch *watch; /**< NULL = no observer */
    struct hv__leaves leaves;
    struct hv__kept_memories *memories; /**< NULL: the plan changes, or is timed once */
    /* results of the steps */
    struct hv__schedule_facts schedule;
    struct hv__pipelines pipelines;
    struct hv__network_use network;
    struct hv__nodes nodes;
    struct hv__iteration iteration;
    /** [pipelines][copies] copies that take part in gradient averages; NULL: all. Set by stale.c
     * while it prices the average of a group, read by reduce.c and concurrent_reductions.c. */
    const bool *const *members;
};

/** Progress of an evaluation in permille, measured on a pipeline of a million operations. */
enum {
    HV__AT_SCHEDULE = 120,
    HV__AT_LOWERED = 200,
    HV__AT_TIMED = 250,
    HV__AT_JUDGED = 330,
    HV__AT_RANKS = 800,
    HV__AT_DRAWN = 1000
};
/** Reports progress to the watch; HV_ESTOPPED when the caller has asked the evaluation to stop.
 * O(1). */
static inline HV_NODISCARD enum hv_status hv__report_progress(const struct hv__lowered *l,
                                                              unsigned permille, struct hv_err *err)
{
    struct hv_eval_watch *w = l->watch;
    if (w == NULL) {
        return HV_OK;
    }
    if (atomic_load(&w->stop)) {
        return hv_err_set(err, HV_ESTOPPED, "stopped");
    }
    if (permille > atomic_load(&w->permille)) {
        atomic_store(&w->permille, permille);
    }
    return HV_OK;
}

#endif
