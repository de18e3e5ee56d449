/**
 * The steps from a plan to the time of its iteration, in the order in which the judge of training
 * plans takes them, and declarations shared with the judges of serving plans and of failures. Each
 * function names the file it is in by its section. All results live in the arena of the evaluation.
 */
#ifndef HV_SOLVER_EVAL_TRAIN_STEPS_H
#define HV_SOLVER_EVAL_TRAIN_STEPS_H

#include "solver/eval/lowered/lowered.h"

/* ---- rewrite/modules.c
 * --------------------------------------------------------------------------------
 */

/**
 * The plan with all layers counted through the whole model, so that the other steps need not handle
 * modules: the plan itself where the model has none. NULL: a stage names a module that the model
 * does not have. O(stages).
 */
const struct hv_plan *hv__flat_plan(const struct hv_plan *p, const struct hv_model *m,
                                    struct hv_arena *arena);
/** Fills l->leaves. O(leaves). */
void hv__find_leaves(struct hv__lowered *l);
/** The leaf that holds a block. O(leaves). */
size_t hv__leaf_of(const struct hv__lowered *l, size_t block);
/** Modules of a stage, "vision+llm"; NULL: the model has none. */
const char *hv__modules_of(const struct hv__lowered *l, const struct hv_stage *s);
/** Samples of every leaf per sequence of a micro-batch; NULL: 1 of each. */
const double *hv__leaf_scales(const struct hv__lowered *l, const struct hv_micro_batch *mb);
/**
 * Bytes of modules whose readers are further down the pipeline, by global stage that passes them on
 * besides its own output: in a chain they pass through every stage between. NULL: there are none.
 * O(modules · (edges + stages) · shapes).
 */
double *hv__passing_bytes(const struct hv__lowered *l, const struct hv__pipeline *pl);
/** True where a global stage holds the embedding (or head) of a leaf. */
bool hv__holds_end(const struct hv__lowered *l, const struct hv__gstage *g, size_t leaf, bool head);

/* ---- rewrite/meshes.c
 * ---------------------------------------------------------------------------
 */

/**
 * The plan with stages of operators as the other steps know them: ranges for patterns of operators,
 * data- and tensor-parallel degrees for a mesh, which stays. The plan itself where no stage is one.
 * O(stages · operators).
 */
const struct hv_plan *hv__meshed_plan(const struct hv_plan *p, const struct hv_model *m,
                                      struct hv_arena *arena);

/* ---- rewrite/split_stages.c
 * ---------------------------------------------------------------------------
 */

/**
 * The plan with every rank that takes micro-batches in turns as a stage of its own, and with one
 * micro-batch per replica that those of all its stages divide: the plan itself where no stage asks
 * for it. *out: how each replica is split, or NULL. O(devices of such replicas).
 */
const struct hv_plan *hv__split_plan(const struct hv_plan *p, struct hv_arena *arena,
                                     const struct hv__split **out);
/** How a replica entry is split; NULL: it is not. */
const struct hv__split *hv__split_of(const struct hv__lowered *l, size_t entry);
/** The stage of the plan as written that a lowered stage belongs to. O(stages). */
size_t hv__written_stage(const struct hv__lowered *l, size_t entry, size_t stage);
/** The first of the lowered stages that belong to the same stage as written. O(stages). */
size_t hv__first_lane(const struct hv__lowered *l, size_t entry, size_t stage);
/** Stages of an entry as written. */
size_t hv__n_written(const struct hv__lowered *l, size_t entry);

/* ---- lower.c: from plan to schedules -----------------------------------------------------------
 */

/** Finds the distinct pipelines, prices their passes and makes their schedules; where that sets
 * l->iteration.least_s, it is not done to the end. HV_ENO: cannot be timed. O(operations of the
 * distinct pipelines). */
enum hv_status hv__lower(struct hv__lowered *l, struct hv_err *err) HV_NODISCARD;
/** Numbers of the orders among which l->order chooses, from 1. */
enum { HV__ORDERS = 5 };
/** Takes up another order, l->order, of a lowered plan that was not timed: what does not depend on
 * it is kept. false: it can only be lowered again, as moves follow from the order. */
bool hv__can_reorder(const struct hv__lowered *l);
/** O(operations) where the order was not made before. HV_ENO: cannot be timed. */
enum hv_status hv__reorder(struct hv__lowered *l, struct hv_err *err) HV_NODISCARD;
/** True where a lowered plan has any of them: an order is decided by cost and not by who comes
 * first. O(pipelines). */
bool hv__chooses_order(const struct hv__lowered *l);

/* ---- least.c ----------------------------------------------------------------------------------
 */

/** True where the priced passes of a pipeline take longer than l->give_up_s in any order: sets
 * l->iteration.least_s. */
bool hv__busy_too_long(struct hv__lowered *l, const struct hv__pipeline *pl);

/* ---- alike.c ----------------------------------------------------------------------------------
 */

/** The last different pipelines that were lowered. */
struct hv__recent {
    struct hv__pipeline *items[16];
    size_t n; /**< noted so far */
};
/** Gives a pipeline the tables of an equal one among those noted, on its own devices, and returns
 * true; false: it has to be lowered. O(noted · ranges). */
bool hv__take_like(const struct hv__lowered *l, struct hv__recent *recent, struct hv__pipeline *pl);
/** Gives a pipeline the tables of `from` once more, after these have changed. */
void hv__take_again(const struct hv__lowered *l, struct hv__pipeline *pl,
                    struct hv__pipeline *from);
/** Notes a pipeline that was lowered, where others may share its tables. */
void hv__note_lowered(struct hv__recent *recent, struct hv__pipeline *pl);

/* ---- lengths.c --------------------------------------------------------------------------------
 */

/** Iterations whose weighted times add up to the expected one; n = 0: micro-batches have the
 * lengths that the plan or the job gives. */
struct hv__length_runs {
    struct hv__length_run *items; /**< those of one quantile for all micro-batches come first */
    size_t n, n_common;
};
/** Lists them, in the arena of the evaluation. O(bins · sizes of micro-batches · log), and
 * O(micro-batches · bins) where lengths are drawn. */
struct hv__length_runs hv__length_runs(const struct hv__lowered *l);
/** True where the expectation needs draws: stages or replicas wait for each other. O(1). */
bool hv__lengths_are_drawn(const struct hv_plan *p);
/** True where a replica of the plan does not list the lengths of its micro-batches, so that they
 * are those of the job. O(replicas). */
bool hv__lengths_are_the_jobs(const struct hv_plan *p);

/* ---- pipelines.c ------------------------------------------------------------------------------
 */

/** Groups the copies of every replica entry into distinct pipelines. O(devices). */
void hv__find_pipelines(struct hv__lowered *l);
/** Fills the ranks of a pipeline, with which dp ranks are alike. O(devices of one copy). */
void hv__fill_ranks(const struct hv__lowered *l, struct hv__pipeline *pl);
/** Fills one stage of a copy of a replica as a rank. O(devices of it). */
void hv__fill_rank(const struct hv__lowered *l, const struct hv_replica *r, size_t stage, int copy,
                   struct hv__rank *out);
/** Sequences of a micro-batch on dp rank d: by shares, or evenly. */
double hv__rank_sequences(const struct hv__rank *rk, const struct hv_stage *s, double sequences,
                          size_t d);

/* ---- price.c, hops.c ---------------------------------------------------------------------------
 */

/** A copy of a replica and its stages that may be changed. */
struct hv_replica *hv__copy_replica(const struct hv__lowered *l, const struct hv_replica *from);
/** A forward and a backward that a schedule runs as one overlapped pair. */
struct hv__pair {
    int32_t group;
    size_t rank;
    const struct hv_pass *forward, *backward; /**< [n_dp of the rank] */
    double sends_forward_s, sends_backward_s;
};
/** The next pair from op *i_op on, which is then moved behind it; false: there is none. */
bool hv__next_pair(const struct hv__pipeline *pl, size_t *i_op, struct hv__pair *out);
/** Seconds by which a pair is shorter on dp rank d than its two passes one after the other. */
double hv__pair_saves_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                        const struct hv__pair *x, size_t d);
/** Durations of all overlapped pairs, [groups]; NULL: no pair exchanges with experts, so each takes
 * as long as its two passes. O(operations). */
const double *hv__price_pairs(const struct hv__lowered *l, const struct hv__pipeline *pl);
/** Prices one global stage on its rank for all shapes and dp ranks. */
enum hv_status hv__price_gstage(const struct hv__lowered *l, struct hv__pipeline *pl,
                                struct hv__gstage *g, struct hv_err *err) HV_NODISCARD;
/** Static memory of every dp rank: all its global stages, overheads once. */
enum hv_status hv__price_memory(const struct hv__lowered *l, struct hv__pipeline *pl,
                                struct hv_err *err) HV_NODISCARD;
/** Sets l->leaves.held where the model is a graph of operators with operands. O(stages ·
 * operators). */
enum hv_status hv__find_held(struct hv__lowered *l, struct hv_err *err) HV_NODISCARD;
/** Cost of every edge of the stage graph, in both directions. O(flows of all copies that share
 * links). */
void hv__price_hops(const struct hv__lowered *l, struct hv__pipeline *pl);

/* ---- shards.c: whole chunks of sharded weights
 * ---------------------------------------------------
 */

/** The zero knobs of a stage (or of its first layers with degrees of their own) whose weights the
 * schedule gathers in whole chunks; NULL: it has none. O(degrees). */
const struct hv_zero *hv__scheduled_zero(const struct hv_stage *s);
/** True where a rank of the pipeline has such weights. O(ranks). */
bool hv__has_stream(const struct hv__pipeline *pl);
/** Plans and prices the gathers and scatters of all ranks beside their order: pl->cost.stream.
 * O(operations · chunks of a rank · limit) where there are any. */
void hv__plan_stream(const struct hv__lowered *l, struct hv__pipeline *pl);
/** Arrays for a run of the pipeline with its streams. */
void hv__new_run(const struct hv__lowered *l, const struct hv__pipeline *pl,
                 struct hv_pipe_run *out);
/** Lets tables of memory hold what the streams hold over time, for data-parallel rank i_dp, and
 * takes out of base_bytes, [ranks], what is there of it all the time otherwise. */
void hv__stream_memory(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t i_dp,
                       double *base_bytes, struct hv_pipe_memory *mem);
/** Share of each task's time in which its bytes move between nodes, see hv_link_pipe.task_frac;
 * NULL: none do. O(tasks · global stages). */
double *hv__task_fracs(const struct hv__lowered *l, const struct hv__pipeline *pl);
/** When the last gradients of a global stage are scattered in the stream; 0: they are not. O(tasks
 * of its rank). */
double hv__scattered_s(const struct hv__pipeline *pl, size_t gstage);

/* ---- runtime.c ---------------------------------------------------------------------------------
 */

/** The runtime of the job. */
const struct hv_runtime_row *hv__runtime(const struct hv__lowered *l);
/** True where gradients are reduced beside the backward passes: the plan says so, and the runtime
 * does it. */
bool hv__overlaps(const struct hv__lowered *l);
/**
 * Factor on the time that bytes take between nodes where nothing hides them. The calibrated rate of
 * a class is fitted on runs that hide exchanges behind compute, so it may be above that of the
 * links; here it counts at most as their own. 1 inside a node or link domain. O(n).
 */
double hv__unhidden(const struct hv__lowered *l, const uint32_t *devices, size_t n);
/** Where sends block: makes the transfers of priced hops parts of the operations that send them,
 * and the gathers of their shares parts of those that receive them. Such transfers do not share
 * links with those of other pipelines. O(edges). */
void hv__block_sends(const struct hv__lowered *l, struct hv__pipeline *pl);
/** Seconds that a rank spends on flat copies of its gradients around a reduction; 0 where the
 * runtime reduces in place. O(blocks). */
double hv__flat_copies_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                         const struct hv__rank *rk);

/* ---- time.c, links_shared*.c: the runs
 * ----------------------------------------------------------- */

/** Runs of every pipeline where transfers share no link. HV_ENO: two stages are not connected.
 * O(operations). */
enum hv_status hv__time_alone(struct hv__lowered *l, struct hv_err *err) HV_NODISCARD;
/** Lets transfers share links, where that changes the runs: run, idle time, steady period,
 * l->iteration.pipeline_s. O(operations), more where links are shared. */
void hv__time_together(struct hv__lowered *l);
/** Idle time of a run, extended to a long run that was folded, and the end of every rank's compute;
 * once more where the run has changed. `shared`: l->network has its transfers. O(nodes). */
void hv__finish_run(struct hv__lowered *l, struct hv__pipeline *pl, bool shared);
/**
 * Lets the transfers of all pipelines share links: sets l->network, and replaces the runs where
 * links are overloaded. false: all runs are kept. O(transfers · log), else hv_links_play.
 */
bool hv__share_links(struct hv__lowered *l);
/**
 * Demand of exchanges inside passes on the network. NULL: none leaves its node. O(global stages),
 * and where exchanges go between nodes O(devices log devices).
 */
const struct hv__demands *hv__find_demands(const struct hv__lowered *l);

/* ---- memory.c, metrics.c: figures of the verdict
 * ------------------------------------------------- */

/** Peak memory per stage, memory findings. */
void hv__memory(const struct hv__lowered *l, struct hv_verdict *out);
/** Memory tables of one dp rank kind: [n_gstages × HV_OP_KIND_N] each, in the arena. */
struct hv_pipe_memory hv__memory_tables(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                        size_t i_dp);
/** Figures of the verdict: throughput, breakdown, price, stages. Needs out->memory. */
void hv__metrics(const struct hv__lowered *l, struct hv_verdict *out);
/** Tokens of one iteration: of the global batch, or of the lists of micro-batches that give theirs.
 */
double hv__tokens_of_iteration(const struct hv__lowered *l);
/** Hourly price of the nodes that the plan's stages use, and peak rate and power of their devices,
 * each counted once. Returns how many devices. O(devices). */
size_t hv__use_of(const struct hv__lowered *l, double *usd_per_h, double *flops_per_s,
                  double *power_w);

#endif
