/** Shared by the files of solver/cost only: the context, its memo and the pricing of one part. */
#ifndef HV_SOLVER_COST_COST_INT_H
#define HV_SOLVER_COST_COST_INT_H

#include "solver/cost/cost.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/network/overlap.h"

/** Blocks [from, to) of one class. */
struct hv__run {
    int from, to;
    unsigned cls;
};

struct hv__memo; /* cost.c */

/** A list of milestones that was handed out, to be handed out again when an equal one comes. */
struct hv__milestones {
    const struct hv_milestone *items;
    size_t n;
    uint64_t hash;
};

/** The context: blocks that are alike share a class and a price; prices asked for once are kept. */
struct hv_cost {
    struct hv_cluster *cluster;
    struct hv_model *model;
    struct hv_job job;
    struct hv_arena arena;  /**< classes, runs, milestones */
    unsigned *cls;          /**< per block */
    size_t *representative; /**< a block per class */
    unsigned n_classes;
    struct hv__run *runs;
    size_t n_runs;
    struct hv__memo *memo;
    struct hv_arena milestones_arena;
    double *floors; /**< floor.c: [kinds × its columns]; NULL before the first */
    /* floor.c: what was asked for before */
    struct hv__box *boxes;
    struct hv__slices *slices;
    struct hv__by_size *by_size;
    struct hv__milestones *milestones; /**< lists already handed out */
    size_t n_milestones, cap_milestones;
    struct hv_cost **subs; /**< modules: the context of every leaf; else NULL */
    struct hv_model_leaf *leaves;
    size_t n_subs;
};

/**
 * The floor of a part (floor.c): products at the best rate that any cut of them with so many rows
 * reaches, streams at that of their size, widths cut without rounding up unless `exact`. What a
 * pass costs whatever its size, and what tensor-parallel ranks exchange, is counted apart.
 */
struct hv__ideal {
    double more;  /**< largest pass, in rows of the query; HUGE_VAL: no limit */
    double least; /**< smallest */
    bool exact;   /**< the query has the very degree: widths are cut as the real price has them */
    double sums_frac; /**< share of the query's weights that a rank may hold at the least */
    double forward_start_s, back_start_s, weight_start_s; /**< out: starts and sums of a pass: of F,
                                                             B and the weight gradient */
    double tp_bytes, tp_forward, tp_backward; /**< out: bytes of an all-reduce, and how many of
                                                 them either way */
};

/** A part to price. */
struct hv__ask {
    struct hv_cost *k;
    enum hv_part part;
    size_t block;
    const struct hv_part_query *q;
    struct hv_why *why;
    struct hv__ideal *ideal; /**< NULL: the real price; else its floor, without exchanges */
};

/** Ways to run a part that change its kernels (workload/job.h). */
struct hv__way {
    bool sharded, context_parallel;
};
#define HV__WAYS 4
/** Which of them differ on this device; the rest of a query only adds to a price. Returns how many.
 */
size_t hv__different_ways(const struct hv_cost *k, const struct hv_device_kind *d,
                          struct hv__way out[HV__WAYS]);
/** One sequence in that way; two over two context-parallel ranks leave the rows and pairs of one.
 */
struct hv_part_query hv__floor_query(const struct hv_cost *k, const struct hv_device_kind *d,
                                     struct hv__way way, int tp);
/**
 * Seconds over the query-key pairs of one sequence, `a` per pair in products and `b` in memory,
 * however its tokens are cut into slices (floor.c). Remembered.
 */
double hv__slices_s(struct hv_cost *k, double a, double b, double tokens);
/** Largest size of a pass of this part whose gradients and logits fit into the device's memory;
 * HUGE_VAL: does not matter. Attention is left out: its slices have fewer scores. */
double hv__largest_pass(struct hv__ask *ask, const struct hv_part_query *q);
/** Prices a part of any model, not remembered. */
struct hv_part_cost hv__price(const struct hv__ask *a);
/** Prices a part of a transformer (part.c). All figures HV_UNKNOWN when the device lacks the
 * precision. */
struct hv_part_cost hv__price_transformer(const struct hv__ask *a);
/** Seconds of the optimizer step per parameter as measured with the layers on that kind;
 * HV_UNKNOWN: was not. O(layers × devices). */
double hv__measured_update_s(const struct hv_cost *k, const struct hv_device_kind *device);
/** Prices a measured layer or a graph operator; the attention half carries all (part_layers.c). */
struct hv_part_cost hv__price_layer(const struct hv__ask *a);

/** What one pass moves between the ranks of its group, and how. */
struct hv__exchange {
    double tp_bytes;                /**< of one all-reduce (1d), forward */
    double tp_forward, tp_backward; /**< how many of them */
    double grid_bytes;     /**< 2d, 2.5d, 3d: moved per rank forward; backward twice that */
    double cp_bytes;       /**< keys and values of one rank */
    double cp_heads_bytes; /**< ulysses: queries, keys, values and outputs of one rank */
    double cp_queries_bytes, cp_outputs_bytes;        /**< queries; outputs of the core */
    double cp_hidden_forward_s, cp_hidden_backward_s; /**< compute that hides the ring */
    double ep_bytes;                                  /**< one dispatch or combine of one rank */
    double ep_copies;                                 /**< experts a token goes to */
    int ep_chunks_forward, ep_chunks_backward;        /**< that exchanges are cut into */
    double ep_hidden_forward_s, ep_hidden_backward_s; /**< experts' compute of one chunk */
    bool ep_again;                                    /**< recompute sends tokens once more */
};
/** How the context-parallel ranks fall into all-to-alls over heads and rings. */
struct hv__cp_shape {
    int heads, ring;
    size_t heads_apart, ring_apart; /**< ranks between neighbours, in tensor-parallel groups */
};
struct hv__cp_shape hv__cp_shape_of(const struct hv_part_query *q);
/** Adds the seconds of these exchanges to the price (part_exchange.c). */
void hv__price_exchange(const struct hv__ask *a, const struct hv__exchange *x,
                        struct hv_part_cost *out);

/** Does this part run on a stack of 2021 and 2022, before fused attention? Such pipelines keep what
 * they handed on, and ZeRO in them is DeepSpeed's. Models that are no transformers: no. */
bool hv__older_stack(const struct hv_cost *k, const struct hv_part_query *q);
/** Is this a device that no fused attention was written for (NVIDIA before Ampere)? */
bool hv__before_fused(const struct hv_cost *k, const struct hv_device_kind *d);
/** Entries of the vocabulary with those that Megatron adds so that `tp` ranks get a multiple of
 * 128; 0 without a vocabulary. */
double hv__padded_vocab(const struct hv_model *m, int tp);

/** Models of modules (modules.c): each call does for all leaves what its namesake does for one. */
void hv__modules_open(struct hv_cost *k);
void hv__modules_close(struct hv_cost *k);
/** The context of the leaf that holds a block, and the block's number there. */
struct hv_cost *hv__modules_leaf(const struct hv_cost *k, size_t *block);
struct hv_part_cost hv__modules_part(struct hv_cost *k, enum hv_part part, size_t block,
                                     const struct hv_part_query *q, struct hv_why *why);
double hv__modules_floor_s(struct hv_cost *k, enum hv_part part, size_t block,
                           const struct hv_device_kind *device);
enum hv_status hv__modules_layers(struct hv_cost *k, const struct hv_part_query *q,
                                  struct hv_arena *arena, struct hv_layer_table *out,
                                  struct hv_err *err) HV_NODISCARD;
enum hv_status hv__modules_pass(struct hv_cost *k, const struct hv_stage_query *q,
                                struct hv_pass *out, struct hv_err *err) HV_NODISCARD;
enum hv_status hv__modules_memory(struct hv_cost *k, const struct hv_stage_query *q,
                                  struct hv_memory *out, struct hv_err *err) HV_NODISCARD;
/** Hands out a list of milestones, the one of before where an equal one was asked for. */
void hv__keep_milestones(struct hv_cost *k, const struct hv_milestone *items, size_t n,
                         struct hv_pass *out);

/** Why this device cannot price the model, or HV_OK. */
enum hv_status hv__check_device(struct hv_cost *k, const struct hv_device_kind *d,
                                struct hv_err *err) HV_NODISCARD;
/** Equal for groups that cost the same; 0 for none. O(n log groups). */
uint64_t hv__signature(const struct hv_cluster *c, const uint32_t *devices, size_t n);
/** Seconds of a collective, remembered by the signature of its members. */
double hv__collective_s(struct hv_cost *k, const struct hv_collective_query *q, uint64_t signature);
/** Overlap of the units of a pass, remembered. O(runs) when seen before. */
struct hv_overlap hv__units(struct hv_cost *k, const struct hv_units *runs, size_t n_runs,
                            size_t window);
/** Slower of two kinds for the job's precision (unknown counts as slowest). */
const struct hv_device_kind *hv__slower(const struct hv_cost *k, const struct hv_device_kind *a,
                                        const struct hv_device_kind *b);
/** Most further kinds that are looked at in one rank group. */
#define HV__GROUP_KINDS 4

/** One rank of a stage: where it is and what it holds (stage.c). */
struct hv__rank {
    const struct hv_stage *stage;
    const uint32_t *group;               /**< its tp × cp devices */
    const uint32_t *part;                /**< all ranks of its copy */
    const struct hv_device_kind *device; /**< slowest of the group for large products */
    const struct hv_device_kind *others[HV__GROUP_KINDS]; /**< further kinds of the group */
    size_t n_others;
    size_t dp, cp, tp, at; /**< degrees; data-parallel rank */
    size_t tp_at;          /**< tensor rank, where shards are unequal; else 0 */
    bool embedding, head;
};
/** Finds the rank; errors: HV_ENO when the stage's devices and degrees do not fit each other. */
enum hv_status hv__find_rank(struct hv_cost *k, const struct hv_stage_query *q,
                             struct hv__rank *out, struct hv_err *err) HV_NODISCARD;
/** Query of the stage's parts on that rank, for block `block` of the model and number `i` in the
 * stage. */
struct hv_part_query hv__part_query(const struct hv_stage_query *q, const struct hv__rank *r,
                                    size_t block, size_t i);
/** Do every stride-th of n × stride devices lie in more than one link domain? */
bool hv__is_far(const struct hv_cluster *c, const uint32_t *ids, size_t n, size_t stride);
/** Which of its copy's groups share the network with a rank's tensor- and context-parallel ones;
 * and with its expert-parallel one. As hv_cost_together. */
struct hv_beside hv__beside_of(const struct hv_cluster *c, const struct hv__rank *r,
                               const struct hv_part_query *q);
double hv__beside_ep(const struct hv_cluster *c, const struct hv__rank *r,
                     const struct hv_part_query *q);
/** Holders of a rank's shard: every `stride`-th rank of all copies (tp: of what it cuts); returns
 * how many. The array lives on the heap (caller frees). `limit` > 0 cuts the group. */
size_t hv__holders(const struct hv_stage_query *q, const struct hv__rank *r, size_t stride,
                   size_t limit, uint32_t **out);
/** First half block at or after `at` that starts another piece: a run of equal blocks, a recompute
 * mask or knobs of its own ends before it. */
int hv__piece_end(const struct hv_cost *k, const struct hv_stage *s, int at, int to2);

/** Share of a state that stays on the device. */
double hv__offload_stays(const struct hv_stage *s, enum hv_offload_what what);
/** Adds what copies of activations and of `weight_bytes` take beside a pass, and takes away the
 * activations that leave. */
void hv__price_offload(const struct hv_cost *k, const struct hv_stage_query *q,
                       const struct hv__rank *r, double weight_bytes, struct hv_pass *p);

/** Parts of this rank's size that everything tensor-parallel would be cut into. */
static inline double hv__tp_parts(const struct hv_part_query *q)
{
    return q->tp_frac > 0 ? 1 / q->tp_frac : q->tp;
}

/** 2.5d: grids that share the sequences and hold the same weights; 1 otherwise. */
static inline double hv__tp_depth(const struct hv_part_query *q)
{
    return q->tp_scheme == HV_TP_25D && q->tp_depth > 1 ? q->tp_depth : 1;
}

#endif
