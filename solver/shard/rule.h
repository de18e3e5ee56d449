/**
 * Rules: what an operator does to the dimensions of its operands and results, as *factors*. A
 * factor is a loop of the operator; a dimension is a list of factors, the major one first (a
 * reshape has several per dimension). The model is that of Shardy's op sharding rules (OpenXLA,
 * "Sharding representation", 2024); einsum, SBP signatures, nnScaler annotations and TDL are
 * special cases.
 */
#ifndef HV_SOLVER_SHARD_RULE_H
#define HV_SOLVER_SHARD_RULE_H

#include "solver/shard/layout.h"

#define HV_RULE_FACTORS 24 /**< factors of one operator */
#define HV_DIM_FACTORS  8  /**< factors of one dimension */

/** What happens along a factor when it is split. */
enum hv_factor_kind {
    HV_FACTOR_PARALLEL, /**< every part is computed by itself */
    HV_FACTOR_SUM,      /**< results of the parts are summands */
    HV_FACTOR_MAX,      /**< the largest of the parts' results counts */
    HV_FACTOR_WINDOW,   /**< parts need rows of their neighbours, or are moved: halo, slice, reverse
                         */
    HV_FACTOR_INDEXED, /**< rows are chosen by values: a part gives its own rows and zeros, a sum */
    HV_FACTOR_WHOLE    /**< the operator needs all of it on one device */
};

/** One factor. */
struct hv_factor {
    enum hv_factor_kind kind;
    int64_t size;
    bool blocked; /**< nothing is propagated along it */
    bool least;   /**< MAX: the smallest counts */
};

/** Which elements of an operand's dimension a range [lo, hi) of the factor reads: from
 * lo·stride − pad to (hi − 1)·stride − pad + (taps − 1)·dilation, in units of 1/base element; a
 * reversed one counts from the end. taps 0: no window, the ranges are the same. */
struct hv_window {
    int64_t taps, stride, pad, dilation, base;
    int64_t range; /**< length of the factor: elements of the other side */
    bool reversed;
};

/** Factors of one dimension, the major one first. */
struct hv_dim_map {
    uint8_t n;
    uint8_t factor[HV_DIM_FACTORS];
    uint8_t at; /**< the window is of factor[at]; where there is one, no other factor is split */
    struct hv_window window;
};

/** Factors of a tensor. */
struct hv_tensor_map {
    uint8_t n_dims;
    struct hv_dim_map dim[HV_SHARD_DIMS];
};

/** Order in which operators take part in propagation. */
enum hv_flow {
    HV_FLOW_PLAIN,
    HV_FLOW_THROUGH,  /**< elementwise, reshape, transpose: first, and in both directions */
    HV_FLOW_BROADCAST /**< from the result to the operand first */
};

/** A rule. `map` has n_in operands, then n_out results; borrowed from the arena that built it. */
struct hv_op_rule {
    uint8_t n_factors;
    struct hv_factor factor[HV_RULE_FACTORS];
    size_t n_in, n_out;
    struct hv_tensor_map *map;
    uint32_t linear_in;   /**< operands (bits) that the result is linear in while all others stay */
    uint32_t additive_in; /**< operands (bits) that it is linear in together while all others stay:
                             f(a + a', b + b') = f(a, b) + f(a', b'); 0: none */
    uint32_t added; /**< operands that are added to a sum over a factor: where that is split they
                       are summands */
    bool moves;     /**< only moves values: any kind of partial passes through */
    bool elementwise;
    enum hv_flow flow;
};

/** True where the factor passes through: neither reduced, nor moved, nor needed whole. */
bool hv_factor_passes(const struct hv_factor *f);
/**
 * The elements [*lo, *hi) of a dimension of `extent` elements that part `part` of `parts` of the
 * factor reads, cut to the dimension.
 */
void hv_window_needs(const struct hv_window *w, int64_t extent, int64_t part, int64_t parts,
                     int64_t *lo, int64_t *hi);

#endif
