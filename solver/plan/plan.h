/**
 * The plan: which devices form which stages, with which degrees, schedule and synchronisation. It
 * holds all plan inputs of the simulator; rules A–F and the knobs are those of the plan format.
 *
 * Immutable once built (solver/io/own/plan fills it). Everything lives in the plan's arena. io
 * keeps the document's JSON tree beside it, so that a plan is written back without loss.
 */
#ifndef HV_SOLVER_PLAN_PLAN_H
#define HV_SOLVER_PLAN_PLAN_H

#include "solver/base/arena.h"
#include "solver/inventory/cluster.h"
#include "solver/workload/job.h"
#include "solver/workload/model.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of the plan format: one X-macro per knob; `hv_word_*` tables are generated from them. The
 * first word is the default. */
/* clang-format off */
#define HV_TP_SCHEME_MAP(X) X(HV_TP_1D,"1d") X(HV_TP_2D,"2d") X(HV_TP_25D,"2.5d") X(HV_TP_3D,"3d")
#define HV_CP_SCHEME_MAP(X) X(HV_CP_RING,"ring") X(HV_CP_ULYSSES,"ulysses") X(HV_CP_USP,"usp") X(HV_CP_LOONGTRAIN,"loongtrain") \
    X(HV_CP_RSA,"rsa") X(HV_CP_DISTFLASH,"distflash") X(HV_CP_WALLFACER,"wallfacer") X(HV_CP_DSP,"dsp") X(HV_CP_ALL_GATHER,"all_gather")
#define HV_CP_LAYOUT_MAP(X) X(HV_CP_CONTIGUOUS,"contiguous") X(HV_CP_ZIGZAG,"zigzag") X(HV_CP_STRIPED,"striped")
#define HV_CP_ORDER_MAP(X) X(HV_CP_HEADS_INNER,"heads_inner") X(HV_CP_RING_INNER,"ring_inner")
#define HV_CP_BACKWARD_MAP(X) X(HV_CP_KV,"kv") X(HV_CP_Q_DO,"q_do")
#define HV_DEAL_MAP(X) X(HV_DEAL_SPLIT,"split") X(HV_DEAL_TURNS,"turns")
#define HV_A2A_MAP(X) X(HV_A2A_FLAT,"flat") X(HV_A2A_2DH,"2dh") X(HV_A2A_HIERARCHICAL,"hierarchical") X(HV_A2A_PIPE,"pipe") X(HV_A2A_TP,"tp_coordinated")
#define HV_MOE_KERNEL_MAP(X) X(HV_MOE_GROUPED,"grouped") X(HV_MOE_PADDED,"padded") X(HV_MOE_BLOCK,"block") X(HV_MOE_SCATTER,"scatter")
#define HV_MOE_DISPATCH_MAP(X) X(HV_MOE_SPARSE,"sparse") X(HV_MOE_ONE_HOT,"one_hot")
#define HV_MOE_ORDER_MAP(X) X(HV_MOE_PLAIN,"plain") X(HV_MOE_OPTSCHE,"optsche")
#define HV_MOE_MOVE_MAP(X) X(HV_MOE_TOKENS,"tokens") X(HV_MOE_EXPERTS,"experts")
#define HV_COPY_LIFE_MAP(X) X(HV_COPY_PERMANENT,"permanent") X(HV_COPY_ITERATION,"iteration")
#define HV_ADAPT_MAP(X) X(HV_ADAPT_NONE,"none") X(HV_ADAPT_BALANCE,"balance") X(HV_ADAPT_COPY,"copy") X(HV_ADAPT_RECORD,"record")
#define HV_ZERO_UNIT_MAP(X) X(HV_ZERO_LAYER,"layer") X(HV_ZERO_CHUNK,"chunk") X(HV_ZERO_STAGE,"stage")
#define HV_ZERO_GATHER_MAP(X) X(HV_GATHER_AUTO,"auto") X(HV_GATHER_FLAT,"flat") X(HV_GATHER_HIERARCHICAL,"hierarchical")
#define HV_ZERO_GATHER_AT_MAP(X) X(HV_GATHER_END,"end") X(HV_GATHER_NEXT_FORWARD,"next_forward")
#define HV_ZERO_REDUCE_MAP(X) X(HV_REDUCE_EACH,"each") X(HV_REDUCE_END,"end") X(HV_REDUCE_TWO_HOP,"two_hop")
#define HV_SYNC_KIND_MAP(X) X(HV_SYNC_ALLREDUCE,"allreduce") X(HV_SYNC_PS,"ps") X(HV_SYNC_WSP,"wsp") X(HV_SYNC_PARTIAL,"partial_reduce") X(HV_SYNC_GOSSIP,"gossip") X(HV_SYNC_NONE,"none")
#define HV_SYNC_ALGORITHM_MAP(X) X(HV_ALGO_AUTO,"auto") X(HV_ALGO_RING,"ring") X(HV_ALGO_TREE,"tree") X(HV_ALGO_HIERARCHICAL,"hierarchical") X(HV_ALGO_NVLS,"nvls") X(HV_ALGO_HFREDUCE,"hfreduce")
#define HV_SYNC_PRIORITY_MAP(X) X(HV_PRIORITY_FIFO,"fifo") X(HV_PRIORITY_AFTER_A2A,"after_all_to_all")
#define HV_SYNC_WEIGHTS_MAP(X) X(HV_WEIGHTS_CONSTANT,"constant") X(HV_WEIGHTS_STALENESS,"staleness")
#define HV_OFFLOAD_MAP(X) X(HV_OFFLOAD_ACTIVATIONS,"activations") X(HV_OFFLOAD_OPTIMIZER,"optimizer") X(HV_OFFLOAD_WEIGHTS,"weights")
#define HV_MODE_MAP(X) X(HV_MODE_TRAIN,"train") X(HV_MODE_SERVE,"serve")
#define HV_RECOVERY_MAP(X) X(HV_RECOVER_CHECKPOINT,"checkpoint") X(HV_RECOVER_PEERS,"peers")
/** Recompute units: bit constants with their names; `none` = 0, `selective` = core, `full` = all bits. */
#define HV_RECOMPUTE_MAP(X) X(HV_RC_QKV,"qkv") X(HV_RC_CORE,"core") X(HV_RC_OUT,"out") X(HV_RC_UP,"up") X(HV_RC_ACT,"act") X(HV_RC_DOWN,"down") X(HV_RC_NORM,"norm") X(HV_RC_EXPERTS,"experts")

#define HV_WORD_TABLES(X) X(hv_tp_scheme,HV_TP_SCHEME_MAP) X(hv_cp_scheme,HV_CP_SCHEME_MAP) X(hv_cp_layout,HV_CP_LAYOUT_MAP) \
    X(hv_cp_order,HV_CP_ORDER_MAP) X(hv_cp_backward,HV_CP_BACKWARD_MAP) X(hv_deal,HV_DEAL_MAP) X(hv_a2a,HV_A2A_MAP) \
    X(hv_moe_kernel,HV_MOE_KERNEL_MAP) X(hv_moe_dispatch,HV_MOE_DISPATCH_MAP) X(hv_moe_order,HV_MOE_ORDER_MAP) X(hv_moe_move,HV_MOE_MOVE_MAP) X(hv_copy_life,HV_COPY_LIFE_MAP) X(hv_adapt,HV_ADAPT_MAP) \
    X(hv_zero_unit,HV_ZERO_UNIT_MAP) X(hv_zero_gather,HV_ZERO_GATHER_MAP) X(hv_zero_gather_at,HV_ZERO_GATHER_AT_MAP) X(hv_zero_reduce,HV_ZERO_REDUCE_MAP) \
    X(hv_sync_kind,HV_SYNC_KIND_MAP) X(hv_sync_algorithm,HV_SYNC_ALGORITHM_MAP) X(hv_sync_priority,HV_SYNC_PRIORITY_MAP) X(hv_sync_weights,HV_SYNC_WEIGHTS_MAP) \
    X(hv_offload_what,HV_OFFLOAD_MAP) X(hv_plan_mode,HV_MODE_MAP) X(hv_recovery,HV_RECOVERY_MAP)
/* each row: enum name { constants…, N }, and its words */
#define HV_ROW_ENUM(c, word) c,
#define HV_DECLARE_WORDS(name, map) enum name { map(HV_ROW_ENUM) name##_N }; extern const char *const name##_words[name##_N];
HV_WORD_TABLES(HV_DECLARE_WORDS)
#define HV_ROW_BIT(c, word) c##_AT,
/** Position of each recomputed unit in a mask, and its word. */
enum hv_recompute_bit { HV_RECOMPUTE_MAP(HV_ROW_BIT) hv_recompute_N };
extern const char *const hv_recompute_words[hv_recompute_N];
#define HV_ROW_MASK(c, word) c = 1 << c##_AT,
/** Masks of recomputed units: a sum of them gives the units that a stage (or one layer) recomputes.
 */
enum hv_recompute { HV_RC_NONE = 0, HV_RECOMPUTE_MAP(HV_ROW_MASK) HV_RC_FULL = (1 << hv_recompute_N) - 1 };
/* clang-format on */

/** Tensor parallelism. */
struct hv_tp {
    enum hv_tp_scheme scheme;
    int degree, depth;
    bool regather;
    int *shares; /**< 1d: [degree] share of each rank in every cut dimension (heads, widths and
                    vocabulary); NULL: equal */
};

/** Context parallelism; `ulysses` = the heads part. */
struct hv_cp {
    enum hv_cp_scheme scheme;
    int degree, ulysses;
    int inner; /**< ranks of the inner ring (ring, usp, loongtrain), or of a team (wallfacer) */
    int tile;  /**< queries and keys that an attention kernel works on at once */
    enum hv_cp_layout layout;
    enum hv_cp_order order;
    enum hv_cp_backward backward;
    const char *const *dims; /**< dsp: sharded dimension per block, or NULL */
    size_t n_dims;
};

/** Copies of one expert: on the ranks listed, or on every rank. */
struct hv_expert_copies {
    int expert;
    bool everywhere; /**< written `"*"`; `ranks` is empty then */
    int *ranks;
    size_t n_ranks;
};

/** Places of experts from an iteration of the routing on, for blocks [from, to) (−1, −1 = all). */
struct hv_placement {
    int iteration, from, to;
    int *owners;
    size_t n_owners;
    struct hv_expert_copies *copies;
    size_t n_copies;
};

/** How places of experts follow the tokens of the iterations before. */
struct hv_adapting {
    enum hv_adapt policy;
    int interval; /**< iterations between two decisions, over which moves must pay */
    int experts;  /**< copy: how many of the hottest ones get copies at the most */
    struct hv_placement *placements; /**< record: in the order of iterations */
    size_t n_placements;
};

/** Expert-parallel knobs, for blocks [from, to) of the stage (−1, −1 = all). */
struct hv_moe_knobs {
    int from, to;
    int ep; /**< 0: the stage's */
    double capacity_factor;
    int min_capacity, expert_shards, degree_forward, degree_backward;
    enum hv_a2a all_to_all;
    enum hv_moe_kernel kernel;
    enum hv_moe_dispatch dispatch;
    enum hv_moe_order order;
    enum hv_moe_move move;
    enum hv_copy_life copy_life;
    struct hv_adapting adapt;
    int prefetch; /**< blocks ahead that copies of one iteration and experts that move set out */
    int *owners;
    size_t n_owners;
    struct hv_expert_copies *copies;
    size_t n_copies;
    double off_node_frac;                        /**< most of a source's tokens that leave its link
                                                    domain; HV_UNKNOWN: as they are routed */
    double *target;                              /**< ranks × ranks: shares of the tokens of each
                                                    rank (row) that go to each, or NULL */
    size_t n_target;                             /**< ranks */
    double compress_ratio, compress_bytes_per_s; /**< HV_UNKNOWN: none */
};

/** Sharding of states over the data-parallel holders. */
struct hv_zero {
    int stage;       /**< 0–3 */
    int shard_group; /**< 0: all holders */
    enum hv_zero_unit unit;
    bool reshard;
    int prefetch, limit;
    enum hv_zero_gather gather;
    enum hv_zero_gather_at gather_at;
    enum hv_zero_reduce reduce;
};

/** Offload: data that leaves the device memory. */
struct hv_offload {
    enum hv_offload_what what;
    double frac;
    bool to_host;
    uint32_t *devices; /**< when not to_host */
    size_t n_devices;
};

/** A pair of strings: shard pattern and axis → dim, place pattern and address, fuse pair, mesh
 * axis. */
struct hv_named_pairs {
    const char *name;
    const char **keys, **values;
    size_t n;
};

/** A range of half blocks: [from, to) × 2, so that `.5` cuts are whole numbers. */
struct hv_range {
    int from2, to2;
};

/** Degrees of some blocks of a stage, in place of the stage's own: layer-wise strategies (Miao et
 * al., VLDB 2023, section 3). */
struct hv_degrees {
    int from, to; /**< blocks [from, to), counted as the stage's ranges are */
    struct hv_tp tp;
    bool sequence_parallel;
    struct hv_cp cp;
    int dp;
    struct hv_zero zero;
};

/** A stage. */
struct hv_stage {
    uint32_t *devices; /**< all `count` copies, in written order */
    size_t n_devices;
    struct hv_range *ranges; /**< one per chunk, in model order */
    size_t n_ranges;
    const char **ops; /**< name patterns of graph operators, or NULL */
    size_t n_ops;
    const char *module;  /**< NULL: the whole model */
    int embedding, head; /**< −1 by position, 0 no, 1 yes */
    int *after;          /**< stage numbers feeding this one; n_after = −1: the one before */
    int n_after;
    struct hv_tp tp;
    bool sequence_parallel;
    struct hv_cp cp;
    int dp;
    enum hv_deal deal;
    int *shares; /**< dp entries or NULL (equal) */
    int ep;
    struct hv_moe_knobs *moe;
    size_t n_moe;
    struct hv_zero zero;
    struct hv_degrees *degrees; /**< see solver/plan/parts.h */
    size_t n_degrees;
    unsigned recompute;      /**< mask of enum hv_recompute */
    unsigned *recompute_per; /**< per block of the stage, or NULL */
    size_t n_recompute_per;
    struct hv_offload *offload;
    size_t n_offload;
    int in_flight;   /**< 0: the schedule's own */
    int micro_batch; /**< 0: the replica's */
    int lanes;       /**< of a plan in the judge: stages that hold the same blocks, this one and
                        those it takes micro-batches in turns with; 0: as 1 */
    struct hv_named_pairs mesh, place, fuse;
    struct hv_named_pairs *shard;
    size_t n_shard;
};

/** One micro-batch with its own size. */
struct hv_micro_batch {
    int64_t sequences, tokens; /**< tokens 0: sequences × the job's sequence */
    const char **modules;
    double *scales;
    size_t n_scales;
    int *documents; /**< lengths of those packed into the micro-batch, which do not see each other;
                       NULL: every sequence is one */
    size_t n_documents;
};

/** Documents packed into the sequences of a micro-batch. */
struct hv_documents {
    const int *lengths;
    size_t n;
    double tokens; /**< of the micro-batch, with those behind the last document */
};

/** `count` equal, independent pipelines. */
struct hv_replica {
    int count;
    int micro_batch;       /**< 0: the plan's */
    int64_t micro_batches; /**< number, also when `list` is given */
    struct hv_micro_batch *list;
    struct hv_stage *stages;
    size_t n_stages;
};

/** An option as written: text form of a scalar. */
struct hv_option {
    const char *key, *value;
};

/** The schedule, by name. */
struct hv_plan_schedule {
    const char *name;
    struct hv_option *options;
    size_t n_options;
    int64_t *slice_tokens; /**< explicit slice lengths, or NULL */
    size_t n_slice_tokens;
    int slices;          /**< 1 */
    const char ***order; /**< explicit: token lists, one per device or stage */
    size_t *n_order;     /**< tokens in each */
    size_t n_orders;
};

/** Synchronization of replicas. */
struct hv_sync {
    enum hv_sync_kind kind;
    enum hv_sync_algorithm algorithm;
    double *bucket_bytes; /**< last repeats; never NULL */
    size_t n_buckets;
    bool overlap;
    double cycle_s, chunk_bytes;
    enum hv_sync_priority priority;
    const char *servers; /**< "sharded", "local" or an address */
    int staleness; /**< ps, wsp: clocks; partial reduce: steps that a worker may be ahead of the
                      slowest, 0: any */
    int group;
    enum hv_sync_weights weights;
    /** Partial reduce: a group averages after wait_s, full or not (0: when it is full); the wait
     * doubles, to wait_most_s at most, after groups of fewer than `least`. */
    double wait_s, wait_most_s;
    int least;
    bool connect; /**< partial reduce: groups must not freeze into cliques; true */
};

/** Size of a gradient bucket where the plan gives none: that of PyTorch's DistributedDataParallel.
 */
#define HV_PLAN_BUCKET_BYTES (25.0 * 1024 * 1024)
/** Least share of the cache memory that a plan may leave to requests. */
#define HV_PLAN_CACHE_MARK_MIN 0.01
/** Ends of a flow that are no stages. */
enum { HV_FLOW_SOURCE = -1, HV_FLOW_SINK = -2 };
/** Flow of a serving plan between two stages, counted over all replica entries. */
struct hv_plan_flow {
    int from, to;
    double tokens_per_s;
};

/** Claim: the prediction of the strategy's own formula; keys as written with unit. */
struct hv_claim {
    const char **keys;
    double *values;
    size_t n;
    const char **term_keys; /**< `terms`: parts of the formula */
    double *term_values;
    size_t n_terms;
    const char *formula; /**< NULL: none */
    const char
        *leaves_out; /**< parts of the time that the formula leaves out, as text; NULL: not given */
    const char **warnings; /**< what the strategy's search left out or missed, a text each */
    size_t n_warnings;
    double iteration_s, tokens_per_s; /**< HV_UNKNOWN when not claimed */
};

struct hv_plan;
/** One job of a plan for many. */
struct hv_plan_job {
    const char *name;
    struct hv_plan *plan;
    double arrival_s;  /**< time of submission */
    double start_s;    /**< start on its devices, ≥ arrival_s */
    double iterations; /**< number of iterations; HV_UNKNOWN: unlimited */
    int continues;     /**< the earlier job of which it is a further part, on devices of its own: it
                          starts no sooner than that ends; -1: none */
};

/** A plan. Owner: hv_plan_unref. Holds a reference to its cluster, which device numbers refer to.
 */
struct hv_plan {
    struct hv_arena arena;
    struct hv_cluster *cluster;
    const char *strategy; /**< name, or NULL */
    struct hv_option *strategy_options;
    size_t n_strategy_options;
    enum hv_plan_mode mode;
    enum hv_recovery recovery; /**< source of lost states after a failure */
    int micro_batch;
    struct hv_replica *replicas;
    size_t n_replicas;
    struct hv_plan_job *jobs;
    size_t n_jobs;
    struct hv_plan_flow *flow;
    size_t n_flow;
    double cache_mark_frac; /**< serving: share of a stage's room for caches that requests may fill
                               (Helix' high-water mark); 1 */
    bool partial_inference; /**< serving: tokens may enter a stage behind its first block, where the
                               stage before ended; else only where it begins; true */
    struct hv_plan_schedule schedule;
    struct hv_sync sync;
    struct hv_claim claimed;
};

/** Frees the plan. NULL is fine. */
void hv_plan_unref(struct hv_plan *p);
/** Fills in the default of every knob of a stage, the schedule and the synchronisation. */
void hv_stage_defaults(struct hv_stage *s);
/** The same for the knobs of experts: all blocks of the stage, the stage's `ep`. */
void hv_moe_defaults(struct hv_moe_knobs *k);
/** When the gradients of a ZeRO stage (0 to 3) are reduced unless the plan says otherwise: from
 * stage 2 on after each micro-batch, since no rank keeps them whole, in shard groups (0: all
 * holders are one) in two hops; below once, at the end. */
enum hv_zero_reduce hv_zero_default_reduce(int stage, int shard_group);
/** True where whole chunks or stages of weights are gathered, when the window of the schedule
 * reaches them, and not layer by layer inside every pass. */
static inline bool hv_zero_by_schedule(const struct hv_zero *z)
{
    return z->stage >= 3 && z->unit != HV_ZERO_LAYER;
}
/** True where every backward pass sums its gradients over the shard group (MiCS, Zhang et al. 2022,
 * section 3.4, the first of two hops), and not once at the end of the iteration. */
bool hv_zero_scatters(const struct hv_zero *z);
/** True where the sums of shard groups meet behind each of these passes too, and not once at the
 * end of the iteration (hybrid sharding of PyTorch FSDP without gradient accumulation, Zhao et al.
 * 2023, section 3.2.2). */
bool hv_zero_sums_groups(const struct hv_zero *z);
/** The algorithm of gathers of sharded states; `automatic` where the plan leaves it open. */
enum hv_sync_algorithm hv_zero_gather_algorithm(const struct hv_zero *z,
                                                enum hv_sync_algorithm automatic);
/** A new empty plan with all defaults that keeps a reference to `cluster`. Owner: hv_plan_unref. */
struct hv_plan *hv_plan_new(struct hv_cluster *cluster);

/** Ranks of one pipeline copy of the stage: n_devices / count. */
size_t hv_stage_ranks(const struct hv_replica *r, const struct hv_stage *s);
/** Micro-batch size (sequences) of a stage after all defaults. */
int hv_stage_micro_batch(const struct hv_plan *p, const struct hv_replica *r,
                         const struct hv_stage *s);
/** Stages of a replica that hold the same blocks: those that take micro-batches in turns. */
static inline int hv_stage_lanes(const struct hv_stage *s)
{
    return s->lanes > 1 ? s->lanes : 1;
}
/** True where the stage holds the embedding or the head (rule C). `i` = its number in the replica.
 */
bool hv_stage_has_embedding(const struct hv_replica *r, size_t i);
bool hv_stage_has_head(const struct hv_replica *r, size_t i);
/** First half block of the module the stage counts in, among those of the whole model, and how many
 * it has (no `module`: the whole model); false: the model has no such module. */
bool hv_stage_module(const struct hv_model *m, const struct hv_stage *s, size_t *first2,
                     size_t *n2);
/** The model of the module that the stage counts in, or the whole model; NULL: there is no such
 * module. */
const struct hv_model *hv_stage_model(const struct hv_model *m, const struct hv_stage *s);
/** True where the stage reads the output of stages other than the one before it, or of none
 * although it is not the first, so that the stages do not form a chain. `i` = its number in the
 * replica. */
bool hv_stage_branches(const struct hv_stage *s, size_t i);
/** Sequences per iteration of one copy of the replica. */
int64_t hv_replica_sequences(const struct hv_plan *p, const struct hv_replica *r);
/** True where training with this plan uses weights older than the last update (pipedream*, hetpipe,
 * sync wsp, partial_reduce, gossip, ps with staleness), or copies of weights that are never
 * synchronized (sync none with several holders). Such a plan is not exact. O(stages). */
bool hv_plan_is_stale(const struct hv_plan *p);
/** True where one device may run several stages under this schedule (rule B). False for unknown
 * names. */
bool hv_plan_schedule_shares_devices(const char *schedule);
/** True where a device of the plan is in two stages of one entry and the schedule allows it.
 * O(devices of the cluster and the stages); O(1) where it does not. */
bool hv_plan_shares_devices(const struct hv_plan *p);
/** Degree of the heads part of context parallelism (1: no heads are split). */
int hv_cp_heads_degree(const struct hv_cp *cp);
/** The knobs of experts of a block of the whole model: the last entry that names it; NULL: none.
 * O(entries). */
const struct hv_moe_knobs *hv_stage_moe(const struct hv_stage *s, size_t block);
/** Expert-parallel degree of blocks with these knobs (NULL: none): their own or the stage's, at
 * least 1. O(1). */
int hv_moe_ep(const struct hv_stage *s, const struct hv_moe_knobs *k);
/** Largest expert-parallel degree of the stage's blocks, at least 1. */
int hv_stage_experts_over(const struct hv_stage *s);
/** True where the tensor-parallel ranks of a stage hold different parts of the activations between
 * blocks: with sequence parallelism, and on a grid or a cube. O(1). */
bool hv_stage_spreads(const struct hv_stage *s);
/** Ranks of a tensor-parallel group that hold different weights: its degree, over the depth
 * of 2.5d, whose grids are copies (consecutive ranks are one grid). */
int hv_tp_cuts(const struct hv_tp *tp);
/** Share of rank `i` of a tensor-parallel group in every cut dimension, 0 to 1. O(degree). */
double hv_tp_frac(const struct hv_tp *tp, size_t i);
/** The largest share of a rank. O(degree). */
double hv_tp_largest_frac(const struct hv_tp *tp);
/** Ranks that cut one expert of blocks with expert-parallel degree `ep`: tp where ep divides dp ×
 * cp; else 1: experts are whole and spread over consecutive ranks of tp × cp × dp, tensor ranks too
 * ("parallel folding", Liu et al. 2025, Megatron-Core). */
int hv_stage_expert_tp(const struct hv_stage *s, int ep);
/** True where `text` matches a name pattern (`*` any run, `?` any one byte). O(|pattern| · |text|).
 */
bool hv_name_match(const char *pattern, const char *text);

#endif
