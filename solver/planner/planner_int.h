/** Internals of the planner: pools, sketches of plans, and the search that owns them. */
#ifndef HV_SOLVER_PLANNER_PLANNER_INT_H
#define HV_SOLVER_PLANNER_PLANNER_INT_H

#include "solver/planner/planner.h"

#define HV__POOLS    6   /**< distinct pools */
#define HV__RUNS     8   /**< of one replica */
#define HV__REPLICAS 8   /**< of one plan */
#define HV__CHUNKS   256 /**< stages × chunks of one replica */
/** Bit of an enum hv_offload_what in a mask of offloaded states. */
#define HV__HOST(what) (1U << (what))

/** Equal devices of equal nodes. */
struct hv__pool {
    const struct hv_device_kind *kind;
    uint32_t *ids;           /**< node by node */
    size_t slots;            /**< which of the node's lists of slots holds them */
    int n, room;             /**< number of ids; capacity of the array */
    int per_node;            /**< devices joined by the fast link: of a node, or of a link domain */
    int node_devices;        /**< of these, in one node */
    double node_usd_h;       /**< HV_UNKNOWN: no price */
    double limit_bytes;      /**< memory of a device less the reserve */
    double flow_bytes_per_s; /**< between nodes, per device in use */
    bool shards_change, contexts_change; /**< kernels, where weights are sharded; with cp */
};

/** Consecutive equal stages: data-parallel ranks of one pool and, in mixed stages, behind them
 * ranks of a second pool that take their own share of every micro-batch. */
struct hv__stage_run {
    int pool, n_stages, tp, cp, dp, ep; /**< dp: ranks of the run's own pool */
    int cp_way;                         /**< row of hv__cp_ways; 0 where cp is 1 */
    int second_pool, second_dp; /**< second_dp: ranks of the second pool, beside dp; 0: none */
    int second_sequences; /**< sequences of a micro-batch that the second pool's ranks take together
                           */
    unsigned recompute;
    unsigned offload;     /**< HV__HOST of the states offloaded to host memory */
    bool stages_adjacent; /**< consecutive devices hold the stages of one data-parallel rank;
                             otherwise the ranks of one stage */
};

/** One replica entry of a plan. */
struct hv__replica_sketch {
    int n_runs;
    struct hv__stage_run runs[HV__RUNS];
    int zero;
    int shard_group;        /**< ranks that share sharded states; 0: all that hold them */
    bool reduce_late;       /**< gradients are reduce-scattered once, after the last micro-batch */
    bool keeps_gathered;    /**< gathered weights stay until the optimizer step */
    int micro_batch;        /**< sequences that enter all its pipelines at once */
    int64_t micro_batches;  /**< of every pipeline (hv__pipelines) */
    int n_longer;           /**< pipelines that run one micro-batch more */
    int counts[HV__CHUNKS]; /**< half blocks per chunk in model order */
};

/** A pipeline schedule that the search uses, with its parameters. */
struct hv__schedule_row {
    const char *name;
    int chunks;
    bool folded;           /**< chunk 2 runs back over the ranks */
    int slices;            /**< of a sequence; 1: whole */
    int rounds;            /**< micro-batches of a group, in depths; 0: there are no groups */
    double in_flight_more; /**< activations kept beyond those of 1F1B, as a share of the depth */
    const char *option[2]; /**< key and value, or NULL */
    int effort;            /**< time to evaluate it relative to 1F1B; 0: 1 */
    int memory;            /**< micro-batches that a rank may hold, in depths; 0: not given */
};

/** How context-parallel ranks exchange what attention needs. */
struct hv__cp_row {
    enum hv_cp_scheme scheme;
    enum hv_cp_backward backward;
};

/** A plan in the variables of the search. */
struct hv__sketch {
    int n_replicas, schedule; /**< schedule: row of hv__schedules */
    int bucket_mib;           /**< of gradients that are reduced together; 0: the plan's default */
    struct hv__replica_sketch replicas[HV__REPLICAS];
};

/** Prices of one average block on one pool for one set of degrees. */
struct hv__price {
    int pool, tp, cp, cp_way, ep, sequences;
    unsigned recompute;
    bool sharded, known; /**< known: the cost model has a price */
    int fetched; /**< ranks that fetch a block's weights from their host together; 0: none do */
    double block_s, ends_s[2];            /**< forward and backward; embedding, head */
    double fetch_s;                       /**< of block_s: of weights, beyond what passes hide */
    double parameters, expert_parameters; /**< of a block on a rank: all; of these, of experts */
    double ends_parameters[2];
    double saved_bytes, peak_bytes, head_bytes;    /**< kept per block; live during recompute */
    double first_s, first_parameters, first_saved; /**< fractions of a block that are attention */
    struct hv_layer_table table;
};

/** Seconds of a transfer between the first devices of two pools. */
struct hv__pool_hop {
    int from, n_from, to, n_to; /**< pools and numbers of devices; n_from 0: none */
    double bytes, seconds;
};

/** A search. */
struct hv__search {
    struct hv_cost *k;
    const struct hv_planner_options *o;
    const struct hv_job *job;
    int n_blocks, n_pools;
    struct hv__pool pools[HV__POOLS];
    struct hv_arena arena, scratch; /**< of the search; of one evaluation */
    struct hv__price **prices;      /**< open addressing */
    size_t n_prices, cap_prices;
    struct hv__pool_hop *hops; /**< open addressing */
    size_t n_hops, cap_hops;
    struct hv__sketch best;
    double best_value, reported_value;
    double best_s, best_common_s; /**< common: see hv_verdict.common_s */
    double work, work_limit;      /**< operations of evaluations, done and allowed */
    int64_t evaluations;
    bool over_limits; /**< plans that miss the objective's limits are starting points too */
    unsigned offload; /**< HV__HOST of the states that initial plans offload */
    bool fine;        /**< blocks are split inside where a plan is close to the best */
    bool stopped;
    struct hv_verdict last; /**< of the latest evaluation, in `scratch` */
    double room; /**< fraction of the memory that would suffice, of the latest plan; 0: it fits, or
                    fails for another reason */
    struct hv__known *known; /**< plans evaluated, open addressing */
    size_t n_known, cap_known;
};

extern const struct hv__schedule_row hv__schedules[];
extern const int hv__n_schedules;
extern const struct hv__cp_row hv__cp_ways[];
extern const int hv__n_cp_ways;

/* ---- pools.c: equal devices and equal blocks ---- */
/** Fills the pools of the cluster. O(devices). */
void hv__find_pools(struct hv__search *s);
/** Experts of the first block with experts; 0: there is none. */
int hv__experts(const struct hv__search *s);
/** True where a block can be split between attention and feed-forward network. */
bool hv__splits_blocks(const struct hv__search *s);

/* ---- sketch.c: degrees, devices, and the plan of a sketch ---- */
/** The plan of a sketch. Owner: hv_plan_unref. */
struct hv_plan *hv__plan_of_sketch(const struct hv__search *s, const struct hv__sketch *k);
/** Stages of a replica. */
int hv__depth(const struct hv__replica_sketch *r);
/** Independent pipelines of a replica: its data-parallel ranks, as far as all its runs divide
 * alike. 1 where experts are spread over them or ranks are mixed. */
int hv__pipelines(const struct hv__replica_sketch *r);
/** Number of the first replica entry of the plan that stands for replica r. */
size_t hv__first_replica(const struct hv__sketch *k, int r);
/** The run that holds a stage. */
const struct hv__stage_run *hv__run_at(const struct hv__replica_sketch *r, int stage);
/** Devices that a run takes of its own pool; of its second pool. */
int hv__run_devices(const struct hv__stage_run *run);
int hv__second_devices(const struct hv__stage_run *run);
/** The run with its two pools exchanged. */
struct hv__stage_run hv__run_swapped(const struct hv__replica_sketch *r,
                                     const struct hv__stage_run *run);
/** Ranks that hold the same parameters of a run. */
int hv__run_holders(const struct hv__stage_run *run);
/** Of these, ranks that share one sharded state. */
int hv__run_sharers(const struct hv__replica_sketch *r, const struct hv__stage_run *run);
/** Devices of the pool that no run of the sketch takes; negative where it takes too many. */
int hv__spare_devices(const struct hv__search *s, const struct hv__sketch *k, int pool);
/** True where every pool has the devices that the sketch takes. */
bool hv__has_devices(const struct hv__search *s, const struct hv__sketch *k);
/** Data-parallel ranks, at most `most` (>= 1), that divide a micro-batch of `batch` sequences. */
int hv__even_ranks(int batch, int most);
/** The same where ranks may differ by one sequence, as 17 sequences have no even ranks: more than
 * even ranks only where each then has at least a quarter less to do. A power of two where there are
 * experts, which are spread over the ranks. */
int hv__uneven_ranks(const struct hv__search *s, int batch, int most);
/** Context parallelism of a run: its exchange, and the layout of sequences over its ranks, zigzag
 * where that balances causal attention. */
struct hv_cp hv__cp_of(const struct hv__search *s, const struct hv__stage_run *run);

/* ---- sketch_of_plan.c ---- */
/** The sketch of a plan; its blocks and batch may have to be split anew. Errors: HV_ENO naming the
 * property that a sketch cannot express. O(devices). */
enum hv_status hv__sketch_of_plan(struct hv__search *s, const struct hv_plan *p,
                                  struct hv__sketch *out, struct hv_err *err) HV_NODISCARD;

/* ---- price.c: prices of blocks ---- */
/** Prices a block on a run of the replica; `known` is false where the cost model has no price. */
const struct hv__price *hv__price_of(struct hv__search *s, const struct hv__replica_sketch *r,
                                     const struct hv__stage_run *run);
/** Seconds of a micro-batch's transfer to run i (>= 1) of the replica from the run before it, for
 * estimates. O(devices) the first time, and counted as work. */
double hv__run_hop_s(struct hv__search *s, const struct hv__replica_sketch *r, int i);
/** The price of the slower of the run's two pools. */
const struct hv__price *hv__slower_of(struct hv__search *s, const struct hv__replica_sketch *r,
                                      const struct hv__stage_run *run);
/** Bytes of weights, gradients and optimizer states per parameter on a rank, where `holders` ranks
 * share the sharded states and the states in `host` (bits HV__HOST) are offloaded. */
double hv__bytes_per_parameter(const struct hv_job *j, const struct hv__replica_sketch *r,
                               int holders, unsigned host);
/** Bytes of states of a block on one rank of the run: experts are sharded over fewer ranks. */
double hv__state_bytes(const struct hv_job *j, const struct hv__replica_sketch *r,
                       const struct hv__stage_run *run, const struct hv__price *p);

/* ---- blocks.c: blocks over stages ---- */
/** How blocks are partitioned over chunks. */
struct hv__block_split {
    double room; /**< fraction of the memory that may be filled */
    bool fill;   /**< minimise the time to fill the pipeline too, not the slowest stage alone */
    bool halves; /**< attention and feed-forward network of a block may be apart */
};
/** Partitions the blocks of a replica over its chunks (solver/optim/chain/partition.h). False when
 * they do not fit. */
bool hv__split_blocks(struct hv__search *s, struct hv__replica_sketch *r, int schedule,
                      const struct hv__block_split *split);
/** True where the time to fill the pipeline is worth minimising: stages differ and there are few
 * micro-batches. */
bool hv__fill_matters(const struct hv__replica_sketch *r, int schedule);

/* ---- batch.c: the batch over replicas and ranks ---- */
/** Splits the batch between the replicas (solver/optim/batch/distribute.h): whole rounds of all
 * pipelines of a replica or, where that is faster, one micro-batch more to some of them.
 * `fractions`: as if pipelines could run fractions of rounds, for estimates. False when it is not
 * possible. */
bool hv__split_batch(struct hv__search *s, struct hv__sketch *k, bool fractions);
/** Splits the micro-batch between the run's two pools so that the slower one ends as early as
 * possible. False where a rank would have no sequence, or the second pool has too few devices. */
bool hv__share_micro_batch(struct hv__search *s, const struct hv__replica_sketch *r,
                           struct hv__stage_run *run);
/** Seconds of a micro-batch in the slowest stage, and to fill the pipeline, by prices. */
void hv__replica_times(struct hv__search *s, const struct hv__replica_sketch *r, int schedule,
                       double *each_s, double *fill_s);

/* ---- judge.c: evaluation ---- */
/** Value of a sketch as it is: the objective's, infinity when it breaks a rule, or is worse than
 * `most` (HUGE_VAL: no limit) and that was found early. The best sketch is kept; a sketch that was
 * evaluated before is looked up. */
double hv__judge_sketch(struct hv__search *s, const struct hv__sketch *k, double most);
/** The same without limit, evaluated in any case: s->last is its verdict. */
double hv__judge_again(struct hv__search *s, const struct hv__sketch *k);
/** Values above which a plan is of no use; HUGE_VAL: none. */
struct hv__limits {
    double by_prices; /**< it is not evaluated where prices alone give more */
    double judged;    /**< it is not evaluated to its end: see hv__judge_sketch */
};

/** Splits blocks and batch and evaluates, with less and less memory until it fits; *k is left as
 * evaluated. Infinity for a plan beyond the limits. */
double hv__refit(struct hv__search *s, struct hv__sketch *k, struct hv__limits most);
/** Operations to evaluate a sketch, roughly: the unit of the default budget. */
double hv__work_of(const struct hv__search *s, const struct hv__sketch *k);
/** True when the budget is spent or the caller has requested a stop. */
bool hv__is_over(struct hv__search *s);

/* ---- initial.c, improve.c, fine_moves.c: the phases of the search ---- */
/** Initial plans: candidates and sets of candidates by estimate, the best of them evaluated. Fills
 * up to `cap` good starting points that differ in their grouping of pools; returns their number. */
int hv__initial_plans(struct hv__search *s, struct hv__sketch *starts, int cap);
/** Improves a sketch move by move until none helps; returns the value then. `quick`: only moves
 * that are evaluated soon, no schedules that take long to make. */
double hv__improve(struct hv__search *s, struct hv__sketch *k, double value, bool quick);
/** Moves single blocks and micro-batches until none helps; returns the value then. */
double hv__fine_moves(struct hv__search *s, struct hv__sketch *k, double value);
/** Removes offloading and recompute from the best plan where it is as good without. */
void hv__drop_unneeded(struct hv__search *s);

#endif
