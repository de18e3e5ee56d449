/** Inside of the planner: pools, sketches of plans, and the search that owns them. */
#ifndef HV_SOLVER_PLANNER_PLANNER_INT_H
#define HV_SOLVER_PLANNER_PLANNER_INT_H

#include "solver/planner/planner.h"

#define HV__POOLS  6   /**< pools told apart */
#define HV__LEGS   8   /**< of one team */
#define HV__TEAMS  8   /**< of one plan */
#define HV__CHUNKS 256 /**< stages × chunks of one team */
/** The bit of an enum hv_offload_what. */
#define HV__HOST(what) (1U << (what))

/** Equal devices of equal nodes. */
struct hv__pool {
    const struct hv_device_kind *kind;
    uint32_t *ids;           /**< node by node */
    int n, room;             /**< ids there are, and there may be before they move */
    int per_node;            /**< devices joined by the fast link: of a node, or of a link domain */
    int node_devices;        /**< of these, in one node */
    double node_usd_h;       /**< HV_UNKNOWN: no price */
    double limit_bytes;      /**< memory of a device less the reserve */
    double flow_bytes_per_s; /**< between nodes, per device in use */
    bool shards_change, contexts_change; /**< kernels, where weights are sharded; with cp */
};

/** Consecutive stages, all alike: data-parallel ranks of one pool, and after them, where there are
 * guests, ranks of another that take a share of their own of every micro-batch. */
struct hv__leg {
    int pool, n_stages, tp, cp, dp, ep;
    int guest_pool, guests; /**< guests: ranks, beside the dp of the leg's own pool */
    int guest_share;        /**< sequences of a micro-batch that all guests take */
    unsigned recompute;
    unsigned offload; /**< HV__HOST of what waits in host memory */
    bool beside; /**< stages of one data-parallel rank lie side by side, not those of one stage */
};

/** One replica entry. */
struct hv__team {
    int n_legs;
    struct hv__leg legs[HV__LEGS];
    int zero;
    int group;              /**< ranks that share sharded states; 0: all that hold them */
    bool late;              /**< gradients are scattered once, at the end */
    bool keeps;             /**< weights, once gathered, stay */
    int micro_batch;        /**< sequences that enter all its pipelines at once */
    int64_t micro_batches;  /**< of every pipeline (hv__pipelines) */
    int more;               /**< pipelines that run one more */
    int counts[HV__CHUNKS]; /**< half blocks per chunk in model order */
};

/** How ranks take turns: a row of the table of schedules in use. */
struct hv__order {
    const char *name;
    int chunks;
    bool folded;           /**< chunk 2 runs back over the ranks */
    int slices;            /**< of a sequence; 1: whole */
    int rounds;            /**< micro-batches of a group, in depths; 0: there are no groups */
    double in_flight_more; /**< activations kept beyond those of 1F1B, as a share of the depth */
    const char *option[2]; /**< key and value, or NULL */
    int effort;            /**< of judging it, in those of 1F1B; 0: 1 */
    int memory;            /**< micro-batches that a rank may hold, in depths; 0: not given */
};

/** A plan before it is written out. */
struct hv__sketch {
    int n_teams, order; /**< number in hv__orders */
    int bucket_mib;     /**< of gradients that are reduced together; 0: as plans have it */
    struct hv__team teams[HV__TEAMS];
};

/** Remembered prices of one block on average, for one way to run it. */
struct hv__price {
    int pool, tp, cp, ep, sequences;
    unsigned recompute;
    bool sharded, known;
    int fetched; /**< ranks that fetch a block's weights from their host together; 0: none do */
    double block_s, ends_s[2];            /**< forward and backward; embedding, head */
    double fetch_s;                       /**< of block_s: of weights, beyond what passes hide */
    double parameters, expert_parameters; /**< of a block on a rank: all; of these, of experts */
    double ends_parameters[2];
    double saved_bytes, peak_bytes, head_bytes;    /**< kept per block; live while one runs again */
    double first_s, first_parameters, first_saved; /**< shares of a block that are its attention */
    struct hv_layer_table table;
};

/** A search. */
struct hv__search {
    struct hv_cost *k;
    const struct hv_planner_options *o;
    const struct hv_job *job;
    int n_blocks, n_pools;
    struct hv__pool pools[HV__POOLS];
    struct hv_arena arena, scratch; /**< of the search; of one judgement */
    struct hv__price **prices;      /**< open addressing */
    size_t n_prices, cap_prices;
    struct hv__sketch best;
    double best_value, told_value, best_s;
    double work, work_limit;
    int64_t evaluations;
    bool beyond;      /**< plans that miss the objective's limits are starts too */
    unsigned offload; /**< what the legs of first plans leave to the host */
    bool fine;        /**< blocks are cut inside, where a plan is near the best */
    bool stopped;
    struct hv_verdict last; /**< of the latest judgement, in `scratch` */
    double room; /**< share of the memory that would do, of the latest plan; 0: it did, or that was
                    not what it lacked */
    struct hv__known *known; /**< plans judged, open addressing */
    size_t n_known, cap_known;
};

extern const struct hv__order hv__orders[];
extern const int hv__n_orders;

/** Fills the pools of the cluster. O(devices). */
void hv__find_pools(struct hv__search *s);
/** The sketch of a plan; the blocks and the batch may have to be dealt out anew. Errors: HV_ENO
 * with what a sketch cannot say. O(devices). */
enum hv_status hv__take_plan(struct hv__search *s, const struct hv_plan *p, struct hv__sketch *out,
                             struct hv_err *err) HV_NODISCARD;
/** Micro-batches of a group under an order that has groups: at least those of its rounds, such that
 * all teams fall into groups; 0: the order's own, also where there is none. */
int64_t hv__group(const struct hv__sketch *k);
/** The plan of a sketch. Owner: hv_plan_unref. */
struct hv_plan *hv__draw(const struct hv__search *s, const struct hv__sketch *k);
/** How a leg cuts sequences over its context-parallel ranks: so that all see equally many pairs. */
enum hv_cp_layout hv__layout(const struct hv__search *s, const struct hv__leg *l);
/** Stages of a team. */
int hv__depth(const struct hv__team *t);
/** Independent pipelines that the team is: its data-parallel ranks, as far as all its legs can be
 * cut alike. 1 where experts are spread over them. */
int hv__pipelines(const struct hv__team *t);
/** Does no pool lack devices for the sketch? */
bool hv__has_devices(const struct hv__search *s, const struct hv__sketch *k);
/** Experts of the first block that has some; 0: none has. */
int hv__experts(const struct hv__search *s);
/** Data-parallel ranks, at most `most` (>= 1), that share a micro-batch evenly. */
int hv__even_ranks(int batch, int most);
/** The same where ranks may differ by a sequence, as 17 sequences have no even ones: more than even
 * ranks only where each then has clearly less to do. A power of two where there are experts, which
 * go over them. */
int hv__uneven_ranks(const struct hv__search *s, int batch, int most);
/** Number of the first replica entry of a team. */
size_t hv__first_replica(const struct hv__sketch *k, int team);
/** Leg of a stage. */
const struct hv__leg *hv__leg_at(const struct hv__team *t, int stage);
/** Devices a leg takes of its own pool; of its guests'. */
int hv__leg_devices(const struct hv__leg *l);
int hv__guest_devices(const struct hv__leg *l);
/** The leg as its guests see it: they are the owners, and its owners their guests. */
struct hv__leg hv__leg_turned(const struct hv__team *t, const struct hv__leg *l);
/** Shares the micro-batch between owners and guests so that the slower ends soonest. False where a
 * rank would be left without a sequence, or the guests are more than their pool has. */
bool hv__share_guests(struct hv__search *s, const struct hv__team *t, struct hv__leg *l);
/** Devices of the pool that no leg of the sketch takes; below 0 where it takes more than there are.
 */
int hv__spare_devices(const struct hv__search *s, const struct hv__sketch *k, int pool);
/** Prices a block on a leg of the team; `known` is false where the cost model cannot. */
const struct hv__price *hv__price_of(struct hv__search *s, const struct hv__team *t,
                                     const struct hv__leg *l);
/** The price of the slower of owners and guests. */
const struct hv__price *hv__slower_of(struct hv__search *s, const struct hv__team *t,
                                      const struct hv__leg *l);
/** Ranks that hold the same parameters of a leg. */
int hv__leg_holders(const struct hv__leg *l);
/** Of these, ranks that share one sharded state. */
int hv__leg_sharers(const struct hv__team *t, const struct hv__leg *l);
/** Bytes of states of a block on one rank of the leg: experts are sharded over fewer ranks. */
double hv__state_bytes(const struct hv_job *j, const struct hv__team *t, const struct hv__leg *l,
                       const struct hv__price *p);
/** How blocks are dealt out: `room` scales the memory that may be filled; `fill`: with an eye to
 * the time that the pipeline takes to fill, not to the slowest stage alone; `halves`: attention and
 * feed-forward network of a block by themselves. */
struct hv__cut {
    double room;
    bool fill, halves;
};
/** May a block be cut between attention and feed-forward network? */
bool hv__cuts_blocks(const struct hv__search *s);
/** Splits the blocks of a team over its chunks (solver/optim/chain/partition.h). False when they do
 * not fit. */
bool hv__split(struct hv__search *s, struct hv__team *t, int order, const struct hv__cut *cut);
/** Is the time to fill the pipeline worth counting? Where stages differ and there are few
 * micro-batches: then blocks on fast stages pay twice. */
bool hv__fill_matters(const struct hv__team *t, int order);
/** Deals the batch out to the teams (solver/optim/batch/distribute.h): whole rounds of all
 * pipelines of a team, or, where that is faster, one more to some of them. `rough`: as if pipelines
 * could be cut at will, for estimates. False when it cannot. */
bool hv__deal(struct hv__search *s, struct hv__sketch *k, bool rough);
/** Seconds of a micro-batch in the slowest stage, and of filling the pipeline, by prices. */
void hv__team_times(struct hv__search *s, const struct hv__team *t, int order, double *each,
                    double *fill);
/** Value of a sketch as it is, which is kept when it is the best: the objective's, infinity when it
 * breaks a rule. A plan that was judged before is not judged again. */
double hv__judge_sketch(struct hv__search *s, const struct hv__sketch *k);
/** The same, judged in any case: s->last is its verdict. */
double hv__judge_again(struct hv__search *s, const struct hv__sketch *k);
/** Splits, deals and judges, with less and less memory until it fits; *k is left as judged. A plan
 * that is worth less than `most` by prices alone is not judged. */
double hv__refit(struct hv__search *s, struct hv__sketch *k, double most);
/** Operations of judging a sketch, roughly: what the default budget counts. */
double hv__work_of(const struct hv__search *s, const struct hv__sketch *k);
/** Is the budget spent, or an end asked for? */
bool hv__over(struct hv__search *s);
/** First plans: estimates of all teams and sets of teams, the best of them judged. Fills up to
 * `cap` good starts with distinct teams. */
int hv__first_plans(struct hv__search *s, struct hv__sketch *starts, int cap);
/** Moves single blocks and micro-batches until none helps; returns the value then. */
double hv__polish(struct hv__search *s, struct hv__sketch *k, double value);
/** Takes back what the best plan leaves to the host, or computes twice, for nothing. */
void hv__tidy(struct hv__search *s);
/** Improves a start move by move until none helps; returns the value then. `quick`: only by steps
 * that are soon judged, no orders of operations that take long to make. */
double hv__improve(struct hv__search *s, struct hv__sketch *k, double value, bool quick);

#endif
