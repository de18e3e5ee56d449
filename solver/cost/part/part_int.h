/** Shared by the files that price parts: the part whose price is being summed. */
#ifndef HV_SOLVER_COST_PART_PART_INT_H
#define HV_SOLVER_COST_PART_PART_INT_H

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/device/gemm.h"
#include "solver/cost/experts/spread.h"
#include "solver/cost/part/context.h"
#include "solver/cost/part/held.h"

#include <math.h>

/** Attention of a ring as steps of the slowest rank: the first one and equal further ones. */
struct hv__ring_steps {
    int n;
    double first, step;
};

/** Values of one rank that context parallelism exchanges; none: keys is 0. */
struct hv__cp_values {
    double queries, keys, outputs; /**< keys: keys and values */
    double statistics;             /**< one per query and head */
    double activations;            /**< of the residual stream */
    double keys_per_rank;          /**< 1 / heads of keys and values of this rank */
    double elem;                   /**< bytes of a value; statistics and sums of gradients have 4 */
};

/** Ways in which a kernel's rows are cut: whole, in the chunks of the forward pass, and in those of
 * the backward pass. */
#define HV__LOAD_CUTS 3
/** Tokens of a layer's experts on the ranks of an expert-parallel group, as the job routes them
 * (load.c). */
struct hv__load {
    double kept_frac; /**< share of all tokens that find a place */
    double capacity;  /**< of experts all of whose places are sent and computed, as
                         hv__capacity_of; 0: tokens alone are */
    double tokens;    /**< that come to the rank with most of them, in units of what a rank sends in
                         the mean */
    double work;      /**< what the busiest rank computes over what a rank sends in the mean */
    double in_chunks[HV__LOAD_CUTS - 1]; /**< work in the chunks of the forward and the backward
                                            pass, each of which fills its tiles */
    const double *done;                  /**< [ranks] what each computes, in units of that mean */
    const double *sent; /**< [ranks × ranks] from rank to rank, in units of that mean */
    const struct hv_ways *ways;
    struct hv__spare room; /**< owned: hv__load_free, which gives it back to the context */
    struct hv__context *k;
};
/** The load of a block with experts, for `rows` copies of tokens of a rank; false: tokens are
 * spread evenly over experts in their usual places, or the group is not known. Owner of *out:
 * hv__load_free. O(ranks · (ranks + experts)). */
bool hv__load_of(const struct hv__ask *a, const struct hv_block *b, double rows,
                 struct hv__load *out);
/** Tokens of a layer's experts on the busiest rank, in units of the copies of tokens that a rank
 * sends in the mean; shards count whole. */
struct hv__dispatched {
    double held;              /**< experts, or shards of one, on that rank */
    double groups;            /**< experts whose products it computes */
    double shards;            /**< of an expert, each of which gets all its tokens */
    double tokens;            /**< rows of tokens that come to it and find a place */
    double places;            /**< of a rank's own tokens at all experts, over their rows */
    double own;               /**< rows of the buffer of a rank's own tokens */
    double arrived;           /**< rows that are sent to it, with places that are not used */
    double computed;          /**< rows of its products, with padding */
    double in_chunks[2];      /**< the same in the chunks of the forward and the backward pass */
    double inputs, outputs;   /**< rows that it keeps in front of the experts and behind them */
    double between;           /**< rows of the values inside them */
    double moved, moved_back; /**< rows read or written before and behind the products */
    double sent;      /**< rows that a rank sends in one exchange, as x.ep_bytes counts them */
    double kept_frac; /**< share of the group's tokens that find a place */
    bool routed;      /**< *load says who sends what */
};
/** Tokens of the experts of `b` for `rows` copies of tokens of a rank (dispatched.c). Owner of
 * *load: hv__load_free. */
struct hv__dispatched hv__dispatched_of(const struct hv__ask *a, const struct hv_block *b,
                                        double rows, struct hv__load *load);
/** The kernel of experts; `m` may be NULL. */
static inline enum hv_moe_kernel hv__kernel_of(const struct hv_moe_knobs *m)
{
    return m ? m->kernel : HV_MOE_GROUPED;
}
/** True where tokens come to their places by products with a one-hot tensor; `m` may be NULL. */
static inline bool hv__is_one_hot(const struct hv_moe_knobs *m)
{
    return m != NULL && m->dispatch == HV_MOE_ONE_HOT;
}
/** Rows that the kernel of experts works on at once, over `rows` and all chunks; 0: any number
 * (load.c). */
void hv__kernel_tiles(const struct hv_moe_knobs *m, double rows, double tile[HV__LOAD_CUTS]);
/** So many tokens in whole tiles; tile 0: as they are (load.c). */
double hv__whole_tiles(double tokens, double tile);
/** Frees a load. */
void hv__load_free(struct hv__load *l);
/** Links between the devices of a group, remembered; the context owns them. O(n² log groups) when
 * new. */
const struct hv_ways *hv__ways_between(struct hv__context *k, const uint32_t *devices, size_t n);
/** True where experts come to the tokens of all ranks (`move`). */
static inline bool hv__moves_experts(const struct hv_part_query *q)
{
    return q->moe && q->moe->move == HV_MOE_EXPERTS && q->ep > 1;
}
/** Frees the links of groups that the context remembers. */
void hv__free_ways(struct hv__context *k);

/** Products of a part whose blocks are exchanged on a grid or a cube. */
enum { HV__GRID_PRODUCTS = 12 };
/** One of them: values of the blocks of input, weights and output that a rank works on in one step,
 * and seconds of all its steps. */
struct hv__grid_product {
    double a, b, c;
    double forward_s, input_grad_s, weight_grad_s;
    bool again; /**< the backward pass computes it once more */
};
/** What a part exchanges on a grid (2d, 2.5d) or a cube (3d) of ranks. */
struct hv__grid {
    int side; /**< ranks along each axis; below 2: nothing is exchanged */
    int n;
    struct hv__grid_product products[HV__GRID_PRODUCTS];
    double norms, norms_again; /**< of forward; repeated in the backward pass */
    double norm_sums;          /**< values that one of them sums over the ranks of an axis */
};

/** Communication of one pass between the ranks of its group. */
struct hv__exchange {
    double tp_bytes;                /**< of one all-reduce (1d), forward */
    double tp_forward, tp_backward; /**< how many of them */
    /** Experts' tokens in slices, one per tensor-parallel rank: bytes of the whole buffers that are
     * gathered from them and summed into them, at the experts and where the tokens are from; 0: no
     * slices. */
    double slices_at_experts, slices_at_source;
    struct hv__grid grid; /**< 2d, 2.5d, 3d */
    struct hv__cp_values cp;
    struct hv__ring_steps ring_forward_s, ring_backward_s; /**< seconds of compute beside a ring */
    double ep_bytes;                                  /**< one dispatch or combine of one rank */
    double ep_own, ep_arrived;                        /**< bytes of the buffers of a rank's own
                                                         tokens, and of those at the busiest rank */
    double ep_copies;                                 /**< experts a token goes to */
    int ep_chunks_forward, ep_chunks_backward;        /**< that exchanges are cut into */
    double ep_hidden_forward_s, ep_hidden_backward_s; /**< experts' compute of one chunk */
    bool ep_again;                                    /**< recompute sends tokens once more */
    const struct hv__load *load; /**< which rank sends what where; NULL: all send alike */
    bool forward_only;           /**< no backward pass follows */
};
/** Adds the seconds of these exchanges to the price (exchange.c). */
void hv__price_exchange(const struct hv__ask *a, const struct hv__exchange *x,
                        struct hv_part_cost *out);

/** Adds the seconds and values of the exchanges of context parallelism (ring.c). */
void hv__add_cp(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out);
/** Bytes of the buffers that context parallelism needs during a pass (ring.c). */
double hv__cp_buffers_bytes(const struct hv_part_query *q, const struct hv__cp_values *v);
/** An operation over devices, `together` groups at a time; on the device's own link where the query
 * has no group. */
struct hv__call {
    enum hv_collective op;
    double bytes;
    const uint32_t *members;
    int n;
    double together;
    enum hv_sync_algorithm algorithm;
    double copies;
    bool pipe; /**< of hv_collective_query */
};
/** Seconds of an exchange from start to end, and those of them in which no bytes move. */
struct hv__span {
    double time_s, latency_s;
};
/** One after the other. */
static inline struct hv__span hv__span_sum(struct hv__span a, struct hv__span b)
{
    return (struct hv__span){a.time_s + b.time_s, a.latency_s + b.latency_s};
}
/** Wait before an exchange: ranks whose hosts launch kernels one by one do not arrive at the same
 * time (call.c). */
double hv__wait_s(const struct hv_part_query *q);
/** Groups of expert-parallel ranks that share the network with one: as found, else one for each of
 * its tensor-parallel ranks, unless experts are whole on consecutive ranks. O(1). */
static inline double hv__expert_groups(const struct hv_part_query *q)
{
    bool whole = q->expert_tp > 0 && q->expert_tp < q->tp;
    return q->beside.ep > 0 ? q->beside.ep : whole ? 1 : q->tp;
}
/** The seconds of an operation (call.c). */
struct hv__span hv__call_span(const struct hv__ask *a, const struct hv__call *c);
/** Seconds by which communication lengthens compute beside it: the exposed part, and the slowdown
 * of compute by the overlapped part (call.c). */
double hv__shown_s(const struct hv__ask *a, struct hv_overlap o);

/** A part of a transformer whose price is being summed. */
struct hv__sum {
    const struct hv__ask *a;
    const struct hv_part_query *q;
    const struct hv_model *m;
    struct hv_efficiency e;
    struct hv_gemm_pricer gemm;
    double t;            /**< ranks that cut heads, inner widths and vocabulary */
    double weights_over; /**< ranks that cut a weight matrix: as many, or all of a grid or cube */
    double t_experts;    /**< of these, ranks that cut one expert */
    double t_norm;       /**< ranks that share what is not inside a split product */
    double depth; /**< tensor-parallel ranks that share the sequences: grids of 2.5d, and rows
                       of a grid; 1 otherwise */
    double rows;  /**< tokens of this rank */
    double elem;  /**< bytes of an activation value */
    bool flash, dropout, eager;
    double full_bytes, kept_bytes, weight_only_bytes;
    struct hv_part_cost out;
    struct hv__left_out starts; /**< costs of kernels and sums that do not depend on their size */
    struct hv__exchange x;
    struct hv__load load; /**< of its experts; x.load where there is one */
    bool in_experts;      /**< products of experts are being added */
};

/** `total` over so many ranks: rounded up, but not in a floor of any cut. */
static inline double hv__cut(const struct hv__sum *s, double total, double ranks)
{
    return s->a->passes->exact ? ceil(total / ranks * (1 - 1e-12)) /* 3/8 of it is no whole
                                                                       number of ranks */
                               : total / ranks;
}

/** Which dimension of a weight matrix tensor parallelism cuts; a grid cuts the other one too. */
enum hv__cut_of { HV__CUT_COLUMNS, HV__CUT_ROWS, HV__CUT_NONE };
/** A product of `m` rows in all with `groups` matrices of k × n. */
struct hv__product {
    const char *name;
    unsigned unit;
    double m, n, k, groups;
    enum hv__cut_of cut;
};
/** The product that a rank computes in one of *steps on a grid or a cube (summa.c). */
struct hv__product hv__grid_step(const struct hv__sum *s, const struct hv__product *p,
                                 double *steps);
/** Ranks over which a cube scatters the gradients of a gathered block of weights; 1 otherwise
 * (summa.c). */
double hv__grid_scattered(const struct hv__sum *s);
/** Adds the look-up of an embedding whose table lies on a grid or a cube (summa.c). */
void hv__add_look_up(struct hv__sum *s);
/** Notes a product whose blocks are exchanged (summa.c). */
void hv__note_grid_product(struct hv__sum *s, const struct hv__grid_product *p);
/** Bytes of gathered blocks that a cube holds until the backward pass (summa.c). */
double hv__grid_kept_bytes(const struct hv__sum *s, const struct hv__grid_product *p);
/** Bytes of two panels each of what a grid broadcasts, or of the gathered blocks of a cube
 * (summa.c). */
double hv__grid_buffers_bytes(const struct hv__sum *s);
/** Adds the seconds and values of the exchanges on a grid or a cube (summa.c). O(products · lines ·
 * side log side). */
void hv__add_grid(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out);

/** A memory-bound kernel. */
struct hv__stream {
    const char *name;
    unsigned unit;
    double bytes, backward; /**< forward bytes; backward bytes per forward byte */
};

/** Adds a product: forward, both gradients, and once more where its unit is recomputed. */
void hv__add_product(struct hv__sum *s, const struct hv__product *p);
/** Adds a product of two tensors, neither of them weights: gradients of the second one (`both`: and
 * of the first) are parts of the input's backward pass, and no sums of gradients are in memory. */
void hv__add_tensor_product(struct hv__sum *s, const struct hv__product *p, bool both);
/** Adds seconds of a pass that do not depend on its size: of F, of B and of the weight gradient. */
static inline void hv__count_start(struct hv__sum *s, double forward_s, double back_s,
                                   double weight_s)
{
    s->starts.forward_start_s += forward_s;
    s->starts.back_start_s += back_s;
    s->starts.weight_start_s += weight_s;
}

/** Adds a memory-bound kernel. */
void hv__add_stream(struct hv__sum *s, const struct hv__stream *p);
/** A tensor of so many bytes, kept unless all units in `dropped_by` are recomputed. */
void hv__keep(struct hv__sum *s, double bytes, unsigned dropped_by);

/** The two or three matrices of a feed-forward on one rank: rows, and widths on the rank. */
struct hv__ffn {
    double width, rows;
    double groups; /**< equal experts that share the rows; 0: no experts */
    double kept;   /**< rows of the values between the products; 0: as many */
};
/** Rate of the products of experts, relative to single ones of their size (rates.c). */
double hv__kernel_share(const struct hv__sum *s, const struct hv__product *p);
/** Adds the products and the activation of a feed-forward (experts.c). */
void hv__add_ffn(struct hv__sum *s, const struct hv_block *b, const struct hv__ffn *f);
/** Adds router, routed and shared experts, and the bytes of their exchanges (experts.c). */
void hv__add_experts(struct hv__sum *s, const struct hv_block *b);
/** Adds the seconds and buffers of experts that come to the tokens of their block (travel.c). */
void hv__add_travel(struct hv__sum *s, const struct hv_block *b);
/** The measured column for a device, and the factor on its times. */
struct hv__column {
    size_t at;
    double factor;
    const char *measured_on; /**< NULL: neither that device nor one of the cluster was measured */
};
/** What the pieces of a measured layer add to it. */
struct hv__pieces_of {
    double forward_s, backward_s; /**< compute, however it overlaps with exchanges */
    double buffers_bytes;         /**< live during a pass */
    double dropped_frac;          /**< of the tokens of its experts */
    struct hv__exchange x;        /**< added to */
    struct hv__load load;         /**< owned: hv__load_free */
};
/** Adds the pieces of a layer (pieces.c). */
void hv__add_pieces(const struct hv__ask *a, const struct hv_measured_layer *l,
                    const struct hv__column *c, struct hv__pieces_of *out);

/** Seconds of a measured layer by its grid for this query (grid.c). HV_UNKNOWN: not measured.
 * O(grid). */
double hv__grid_s(const struct hv_model *m, const double *grid, const struct hv_part_query *q,
                  double parallel_frac);
/** The least that any plan spends on so many sequences, rank by rank (grid.c). O(grid). */
double hv__least_grid_s(const struct hv_model *m, const double *grid, const struct hv_part_query *q,
                        double parallel_frac);

/** An empty table of prices of parts (memo.c). */
struct hv__memo hv__part_memo(void);
/** Empty tables of what ranks hold, and of the ranks that hold an expert (held.c). */
struct hv__memo hv__held_memo(void);
struct hv__memo hv__places_memo(void);
/** Empty tables of best rates (rates.c). */
struct hv__memo hv__box_memo(void);
struct hv__memo hv__slices_memo(void);

/** Widths of the attention half on one rank. */
struct hv__widths {
    double heads, kv_heads, qk, v; /**< heads of this rank; values per head */
    double projected; /**< values that enter the core and the inputs of their projections */
    double core_out;
};
/** Widths of a block's attention on the rank of the query. */
struct hv__widths hv__widths_of(const struct hv__sum *s, const struct hv_block *b);
/** Adds the core's time, work and explanation, and what context parallelism can hide behind it
 * (core.c). */
void hv__add_core(struct hv__sum *s, const struct hv_block *b, const struct hv__widths *w);

#endif
