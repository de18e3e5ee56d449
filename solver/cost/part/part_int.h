/** Shared by the files that price the parts of a transformer: what is being added up. */
#ifndef HV_SOLVER_COST_PART_PART_INT_H
#define HV_SOLVER_COST_PART_PART_INT_H

#include "solver/cost/cost_int.h"
#include "solver/cost/device/gemm.h"

#include <math.h>

/** What is being added up. */
struct hv__sum {
    const struct hv__ask *a;
    const struct hv_part_query *q;
    const struct hv_model *m;
    struct hv_efficiency e;
    struct hv_gemm_pricer gemm;
    double t;         /**< tensor-parallel ranks */
    double t_experts; /**< of these, ranks that cut one expert */
    double t_norm;    /**< ranks that share what is not inside a split product */
    double depth;     /**< 2.5d: grids that share the sequences; 1 otherwise */
    double rows;      /**< tokens of this rank */
    double elem;      /**< bytes of an activation value */
    bool flash, dropout, eager;
    double full_bytes, kept_bytes, weight_only_bytes;
    double a_full,
        c_full; /**< inputs and outputs of the split products, values per token, all ranks */
    struct hv_part_cost out;
    struct hv__exchange x;
};

/** `total` over so many ranks: rounded up, but not in a floor of any cut. */
static inline double hv__cut(const struct hv__sum *s, double total, double ranks)
{
    bool any = s->a->ideal && !s->a->ideal->exact;
    return any ? total / ranks : ceil(total / ranks * (1 - 1e-12)); /* 3/8 of it is no whole
                                                                         number of ranks */
}

/** A product of `m` rows in all with `groups` weight matrices of k × n. */
struct hv__product {
    const char *name;
    unsigned unit;
    double m, n, k, groups;
};

/** A memory-bound kernel. */
struct hv__stream {
    const char *name;
    unsigned unit;
    double bytes, backward; /**< forward bytes; backward bytes per forward byte */
};

/** Adds a product: forward, both gradients, and once more where its unit is recomputed. */
void hv__add_product(struct hv__sum *s, const struct hv__product *p);
/** Shares of a product under the floor's limit of rows (floor.c). O(boxes known). */
struct hv_gemm_shares hv__best_shares(const struct hv__sum *s, const struct hv__product *p);
/** In a floor: counts seconds that a pass costs whatever its size, `chain_s` of them in F and B. */
void hv__count_start(const struct hv__sum *s, double forward_s, double back_s, double weight_s);

/** Adds a memory-bound kernel. */
void hv__add_stream(struct hv__sum *s, const struct hv__stream *p);
/** A tensor of so many bytes, kept unless all units in `dropped_by` are recomputed. */
void hv__keep(struct hv__sum *s, double bytes, unsigned dropped_by);

/** Both or three matrices of a feed-forward of one rank: what goes in, and how wide it is there. */
struct hv__ffn {
    double width, rows;
    double groups; /**< equal experts that share the rows; 0: no experts */
};
/** Adds the products and the activation of a feed-forward (part_experts.c). */
void hv__add_ffn(struct hv__sum *s, const struct hv_block *b, const struct hv__ffn *f);
/** Adds router, routed and shared experts, and what their exchanges carry (part_experts.c). */
void hv__add_experts(struct hv__sum *s, const struct hv_block *b);
/** How experts fall on ranks: figures of the busiest one under uniform routing. */
struct hv__spread {
    double held;    /**< experts, or shards of one, that it holds, copies too */
    double work;    /**< its tokens over the mean */
    double traffic; /**< its tokens from other ranks over what an even spread sends */
};
/** From owners, copies and shards of `experts` over `ep` ranks. O(experts × ep) with owners or
 * copies, else O(1). */
struct hv__spread hv__spread_of(const struct hv_moe_knobs *m, int experts, int ep);

/** Widths of the attention half on one rank. */
struct hv__widths {
    double heads, kv_heads, qk, v; /**< heads of this rank; values per head */
    double projected;              /**< values that enter the core and what they were made of */
    double core_out;
};
/** Widths of a block's attention on the rank that is asked for. */
struct hv__widths hv__widths_of(const struct hv__sum *s, const struct hv_block *b);
/** Adds the core's time, work and explanation, and what context parallelism can hide behind it
 * (part_core.c). */
void hv__add_core(struct hv__sum *s, const struct hv_block *b, const struct hv__widths *w);

#endif
