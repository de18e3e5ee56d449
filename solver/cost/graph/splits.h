/**
 * Splits: seconds and bytes of every operator of a stage under every way to split it over the mesh,
 * and seconds to bring tensors from the layout that one operator leaves them in to the one that
 * another reads them in. What systems choose from that decide per operator (OptCNN, Jia et al.,
 * ICML 2018, equation 1: compute, sums of gradients and transfers add up).
 *
 * Each operator is solved and priced by itself, forward and backward, as a stage of one operator:
 * by the same kernels and exchanges that the judge prices. What a whole stage hides (exchanges
 * beside kernels that do not need them, operators that are fused) is not hidden here.
 */
#ifndef HV_SOLVER_COST_GRAPH_SPLITS_H
#define HV_SOLVER_COST_GRAPH_SPLITS_H

#include "solver/cost/stage/stage.h"
#include "solver/shard/choice.h"
#include "solver/workload/graph/tensor_graph.h"

/** One way: layouts of the operands, then of the result, none of them partial; axes of the same
 * dimension lie in the order of the mesh, as plans say them. */
struct hv_op_split {
    const struct hv_layout *layouts; /**< [operands + 1] */
    struct hv_choice choice;         /**< axes per factor of the operator (op_rule.h) */
    double forward_s, backward_s;    /**< kernels */
    double exchange_s; /**< of both passes: what the operator must send and wait for to have its
                          result, and the gradients of its operands, in these layouts */
    double sums_s;     /**< sums of gradients of its parameters */
    double parameters; /**< on one device */
    double kept_bytes; /**< on one device, kept for its backward pass; what several operators keep
                          counts at each of them */
};
/** Operators that are equal but for their names: they have the same ways. */
struct hv_split_class {
    uint32_t op; /**< the first of them */
    size_t n;
    const struct hv_op_split *split;
    const uint32_t *factor_dim; /**< per factor: number of the dimension of `op`, HV_NO_DIM */
    size_t n_factors;
};
/** A tensor between two operators: the one that writes it, or reads it first, and a reader. */
struct hv_split_edge {
    uint32_t from, to; /**< operators */
    uint32_t table;
};
/** Seconds by the way of `from`, then of `to`: s[way of from · ways of to + way of to]. */
struct hv_split_table {
    size_t n_from, n_to;
    const double *s;
};
/** All of them. Everything lives in the arena of the call. */
struct hv_splits {
    struct hv_tensor_graph graph; /**< of the stage's operators, for one micro-batch */
    struct hv_mesh mesh;
    const char *const *axis; /**< names of its axes. Owner: the plan */
    uint32_t *class_of;      /**< per operator */
    struct hv_split_class *classes;
    size_t n_classes;
    struct hv_split_edge *edges;
    size_t n_edges;
    struct hv_split_table *tables;
    size_t n_tables;
};

#endif
