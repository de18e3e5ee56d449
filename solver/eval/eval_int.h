/** Shared inside eval: the lowered form of a plan. */
#ifndef HV_SOLVER_EVAL_EVAL_INT_H
#define HV_SOLVER_EVAL_EVAL_INT_H

#include "solver/base/units.h"
#include "solver/cost/network/collective.h"
#include "solver/eval/eval.h"
#include "solver/sim/links/links.h"
#include "solver/sim/pipeline/pipeline.h"

/** A global stage as one rank runs it: its passes per shape of micro-batch (or slice). */
struct hv__gstage {
    size_t plan_stage; /**< whose blocks it holds */
    size_t rank;       /**< who runs it */
    struct hv_range range;
    int embedding, head;   /**< 0 no, 1 yes; −1: of every leaf whose outermost block it holds */
    bool again;            /**< the schedule has recompute operations of its own for it */
    struct hv_pass *pass;  /**< [n_shapes × n_dp], with all recompute */
    struct hv_pass *plain; /**< as pass; where `again`, of a micro-batch without R */
    double *forward_s, *input_grad_s,
        *weight_grad_s;  /**< [n_shapes]: the slowest dp rank; input gradient with the recompute
                            that no R does */
    double *recompute_s; /**< [n_shapes] of R */
    double network_forward_s, network_backward_s; /**< of the first shape: how long exchanges
                                                     between nodes keep their networks busy */
};

/** One rank of a pipeline: a stage of the plan with all its devices. */
struct hv__rank {
    size_t stage;
    const uint32_t *devices; /**< of this copy */
    /** width = tp × cp ranks of one dp rank. Where tensor shards are unequal, each of the `cuts`
     * tensor ranks of a data-parallel rank counts as one: n_dp = dp × tp, width 1. */
    size_t n_devices, n_dp, width, cuts;
    double compute_end_s, sync_end_s, optimizer_s, gather_s;
    double sync_exposed_s;    /**< reductions it takes part in, after its last compute */
    struct hv_memory *memory; /**< [n_dp] static memory */
    double shares_sum;        /**< of the stage's shares */
    bool near;                /**< all groups of each dp rank are on one node */
    size_t *like;             /**< [n_dp] first dp rank with equal prices */
    size_t *n_like;           /**< [n_dp] how many are like it; 0 where it is not the first */
    double hop_next_s;
};

/** A size of micro-batch or slice that occurs. */
struct hv__shape {
    double sequences, tokens, context;
    const double *scales; /**< samples of every leaf per sequence, or NULL: 1 */
};

/** What one rank sends another, micro-batch for micro-batch. */
struct hv__sending {
    size_t from, to; /**< ranks */
    double bytes;
    struct hv_hop_cost cost;   /**< bytes_s: with what the copies in step send at the same time */
    struct hv_wire_use *loads; /**< of the network, by all copies together */
    size_t n_loads;
};

/** One distinct pipeline: a replica entry's copies that are alike. */
struct hv__unit {
    size_t i_replica;
    const struct hv_replica *replica;
    struct hv_replica *scratch; /**< its copy that pricing changes and restores */
    int first_copy, multiplicity;
    size_t first_unit; /**< first unit of the same entry */
    int *copies;       /**< [multiplicity] */
    size_t n_ranks, n_gstages, n_pipes;
    struct hv__rank *ranks;
    struct hv__gstage *gstages; /**< [n_pipes × n_gstages] */
    struct hv__shape *shapes;
    size_t n_shapes;
    int32_t n_mb, n_slices; /**< n_mb: micro-batches that were laid out */
    int64_t more_mb;   /**< micro-batches left out of the middle of a long run that repeats; run and
                          idle are of the whole */
    int32_t *shape_of; /**< [n_mb × n_slices] */
    double *n_of_shape; /**< [n_shapes] how many of them */
    struct hv_schedule schedule;
    struct hv_pipe pipe;
    struct hv_pipe_cost cost;
    struct hv_pipe_run run;
    struct hv_pipe_rank *idle;
    double *stage_s, *op_s, *hop_s;
    double *hop_bytes; /**< [n_hops] by hv_pipe_hop */
    struct hv__sending *sendings;
    size_t n_sendings;
    int32_t *sending_of_hop;   /**< [n_hops], −1: takes no time */
    bool *apart;               /**< [multiplicity] what this copy sends meets nothing that the first
                                  copy's does not meet */
    double period_s;           /**< stale schedules: steady seconds per micro-batch */
    double waves;              /**< stale plans: waves of a worker in one iteration */
    double exposed_s;          /**< of a wave: exchanges that its compute does not hide */
    struct hv_span *exchanges; /**< stale plans that are drawn: [n_exchanges × n_ranks] start and
                                  end on the link of each rank */
    size_t n_exchanges;
};

/** One reduction on the wire: who waits for it. */
struct hv__reduction {
    double start_s, end_s;
    size_t *ranks; /**< flat rank numbers (see hv__lowered.rank_at) */
    size_t n_ranks;
    int from2, to2;
};

/** Everything about one evaluation. */
struct hv__lowered {
    struct hv_cost *k;
    const struct hv_plan *plan;
    struct hv_arena *arena;
    struct hv_findings *findings;
    const struct hv_schedule_row *row;
    struct hv__unit *units;
    size_t n_units;
    size_t *rank_at; /**< [n_units + 1] first flat rank number of each unit */
    struct hv__reduction *reductions;
    size_t n_reductions;
    bool *serves;                /**< [nodes] a parameter server runs there; NULL: not looked for */
    double *host_parameters;     /**< [nodes] updated by the node's host; NULL: not counted yet */
    bool *crowded_nodes;         /**< [nodes] two pipelines have devices there */
    struct hv_links *share;      /**< links that transfers share; NULL: nothing is sent */
    const struct hv__asks *asks; /**< by hv__find_asks */
    double pipeline_s, iteration_s;
    double step_s; /**< of iteration_s: what happens around passes, reductions and optimizer */
    bool spans;    /**< every operation is wanted, to be drawn */
    struct hv_eval_watch *watch;        /**< NULL = nobody looks */
    const struct hv_model_leaf *leaves; /**< of the model */
    size_t n_leaves;
    bool scaled; /**< micro-batches say how many samples modules have in them */
    bool stale;
    int staleness;
    const bool *const *members; /**< [units][copies] who takes part in exchanges; NULL: all */
};

/**
 * The plan with all layers counted through the whole model, so that nothing behind knows of
 * modules: the plan itself where the model has none. NULL: a stage names a module that the model
 * does not have.
 */
const struct hv_plan *hv__flat_plan(const struct hv_plan *p, const struct hv_model *m,
                                    struct hv_arena *arena);
/* Shares of the work on very many operations, measured on a pipeline of a million. */
enum {
    HV__AT_SCHEDULE = 120,
    HV__AT_LOWERED = 200,
    HV__AT_TIMED = 250,
    HV__AT_JUDGED = 330,
    HV__AT_RANKS = 800,
    HV__AT_DRAWN = 1000
};
/** Tells whoever looks how far the work is; HV_ESTOPPED when it shall end. */
enum hv_status hv__went_on(const struct hv__lowered *l, unsigned permille,
                           struct hv_err *err) HV_NODISCARD;
/** Fills l->leaves. */
void hv__find_leaves(struct hv__lowered *l);
/** The leaf that holds a block. O(leaves). */
size_t hv__leaf_of(const struct hv__lowered *l, size_t block);
/** Modules of a stage, "vision+llm"; NULL: the model has none. */
const char *hv__modules_of(const struct hv__lowered *l, const struct hv_stage *s);
/** Samples of every leaf per sequence of a micro-batch; NULL: 1 of each. */
const double *hv__leaf_scales(const struct hv__lowered *l, const struct hv_micro_batch *mb);
/**
 * Bytes of modules whose readers are further down the pipeline, by global stage that hands them on
 * besides its own: in a chain they pass through every stage between. NULL: there are none.
 * O(modules · (edges + stages) · shapes).
 */
double *hv__passing_bytes(struct hv__lowered *l, const struct hv__unit *u);
/** Does a global stage hold the embedding (or head) of a leaf? */
bool hv__holds_end(const struct hv__lowered *l, const struct hv__gstage *g, size_t leaf, bool head);
/** Groups the copies of every replica entry into units. O(devices). */
void hv__find_units(struct hv__lowered *l);
/** Fills the ranks of a unit, with which dp ranks are alike. O(devices of one copy). */
void hv__fill_ranks(struct hv__lowered *l, struct hv__unit *u);
/** Fills one stage of a copy of a replica as a rank. O(devices of it). */
void hv__fill_rank(struct hv__lowered *l, const struct hv_replica *r, size_t stage, int copy,
                   struct hv__rank *out);
/** Sequences of a micro-batch on dp rank d: by shares, or evenly. */
double hv__rank_sequences(const struct hv__rank *rk, const struct hv_stage *s, double sequences,
                          size_t d);
/** A copy of a replica and its stages that may be changed. */
struct hv_replica *hv__copy_replica(struct hv__lowered *l, const struct hv_replica *from);
/** Prices one global stage on its rank for all shapes and dp ranks. */
enum hv_status hv__price_gstage(struct hv__lowered *l, struct hv__unit *u, struct hv__gstage *g,
                                struct hv_err *err) HV_NODISCARD;
/** Static memory of every dp rank: all its global stages, overheads once. */
enum hv_status hv__price_memory(struct hv__lowered *l, struct hv__unit *u,
                                struct hv_err *err) HV_NODISCARD;
/** Hop cost of every edge of the stage graph, both ways. O(flows of all copies that meet others).
 */
void hv__price_hops(struct hv__lowered *l, struct hv__unit *u);
/** Finds the distinct pipelines, prices their passes and makes their schedules. HV_ENO: cannot be
 * timed. */
enum hv_status hv__lower(struct hv__lowered *l, struct hv_err *err) HV_NODISCARD;
/** What exchanges inside the passes of a rank ask of an element of the network. */
struct hv__ask {
    uint64_t wire;
    size_t rank;   /**< flat */
    double busy_s; /**< of a second of its exchanges, all copies in step together */
};
/** Exchanges that go between nodes; of all others passes take what they take. */
struct hv__asks {
    struct hv__ask *items; /**< by element and rank */
    size_t n;
    double **frac; /**< [n_units] share of each operation that exchanges take, alone: see
                      hv_link_pipe.frac */
    double *peak;  /**< [flat ranks] the largest of these of a rank */
};
/**
 * What exchanges inside passes ask of the network. NULL: none goes there. O(global stages), and
 * where exchanges go between nodes O(devices log devices).
 */
const struct hv__asks *hv__find_asks(struct hv__lowered *l);
/**
 * Lets the transfers of all pipelines share links: sets share, and replaces the runs where links
 * are crowded. false: all runs stand as they were. O(transfers · log), else hv_links_play.
 */
bool hv__contend(struct hv__lowered *l);
/** Durations into run; steady period of stale schedules. */
enum hv_status hv__time(struct hv__lowered *l, struct hv_err *err) HV_NODISCARD;
/** Gradient reductions, optimizer, gathers: sets iteration_s. */
void hv__tail(struct hv__lowered *l);
/** Optimizer and weight gather of one rank. */
void hv__finish_rank(struct hv__lowered *l, const struct hv__unit *u, struct hv__rank *rk);
/** Host work of an iteration, and waiting for the slowest of many devices. */
double hv__step_s(const struct hv__lowered *l);
/** Longest total time that a link lane or a node's network is busy with one round of reductions;
 * `busy_s`, where asked for: that of every flat rank's lane. */
double hv__exchange_s(struct hv__lowered *l, double *busy_s);
/** Steady time of stale plans: sets iteration_s, staleness, agreement. */
enum hv_status hv__steady(struct hv__lowered *l, struct hv_verdict *out,
                          struct hv_err *err) HV_NODISCARD;
/** Peak memory per stage, memory findings. */
void hv__memory(struct hv__lowered *l, struct hv_verdict *out);
/** Tokens of one iteration: of the global batch, or of the lists of micro-batches that give theirs.
 */
double hv__tokens_of_iteration(const struct hv__lowered *l);
/** Figures of the verdict. */
void hv__metrics(struct hv__lowered *l, struct hv_verdict *out);
/** Is stage i fed by others than the one before it alone? */
bool hv__stage_branches(const struct hv_stage *s, size_t i);
/** Lists what of the plan is judged only roughly, so that no knob is ignored in silence. */
void hv__approximated(const struct hv_plan *p, struct hv_arena *arena, struct hv_verdict *out);
/** Adds a line to that list; `text` is kept. */
void hv__approximate(struct hv_verdict *out, struct hv_arena *arena, const char *text);
/** Judges a plan of mode serve: capacities, flow, latency, memory, and with `queue` how long
 * requests wait. HV_ENO: cannot be priced. */
enum hv_status hv__serve(struct hv__lowered *l, bool queue, struct hv_verdict *out,
                         struct hv_err *err) HV_NODISCARD;
/** Judges every job of a plan for many, and what they are together. HV_ENO: none can be timed. */
enum hv_status hv__judge_jobs(struct hv_cost *k, const struct hv_plan *p,
                              const struct hv_eval_options *o, struct hv_arena *arena,
                              struct hv_verdict *out, struct hv_err *err) HV_NODISCARD;
/** Hourly price of the nodes that the plan's stages use, and peak rate and power of their devices,
 * each counted once. Returns how many. */
size_t hv__use_of(const struct hv__lowered *l, double *usd_per_h, double *flops_per_s,
                  double *power_w);
/** Do all micro-batches of the plan pass through its stages one after the other, in pieces that the
 * cost model prices by their size? Then hv_bound.iteration_s holds, else any_s. O(stages). */
bool hv__bound_covers(const struct hv__lowered *l);
/** Does the plan keep every exchange inside passes, and the states that it shards, to one side of a
 * cut, and sum gradients without servers? Then that cut holds, else hv_bound.spread_s. O(devices ·
 * log groups + stages²). */
bool hv__keeps_to_sides(const struct hv__lowered *l, const bool *beyond);
/** Is the plan copies of one pipeline with all passes of a stage alike: of one size, on devices of
 * one kind, and no two pipelines on the same? Then hv_bound.even_s holds too. O(devices). */
bool hv__is_even(const struct hv__lowered *l);
/** Lanes for drawing. */
enum hv_status hv__timeline(struct hv__lowered *l, struct hv_verdict *out,
                            struct hv_err *err) HV_NODISCARD;

/** Memory tables of one dp rank kind: [n_gstages × HV_OP_KIND_N] each, in the arena. */
struct hv_pipe_memory hv__memory_tables(const struct hv__lowered *l, const struct hv__unit *u,
                                        size_t i_dp);

#endif
