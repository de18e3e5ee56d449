/**
 * A graph of operators on a mesh, as far as layouts need it: shapes, rules and layouts. Operators
 * stand in an order in which every tensor is written before it is read.
 */
#ifndef HV_SOLVER_SHARD_GRAPH_H
#define HV_SOLVER_SHARD_GRAPH_H

#include "solver/shard/rule.h"

/** A tensor. */
struct hv_shard_tensor {
    struct hv_shape shape;
    struct hv_layout layout;
    bool fixed; /**< the layout was given: propagation does not change it */
};
/** An operator: tensor has rule->n_in operands, then rule->n_out results. */
struct hv_shard_op {
    const struct hv_op_rule *rule;
    const uint32_t *tensor;
};
/** A result of the whole graph; `asked`: in this layout, else in the tensor's. */
struct hv_shard_output {
    uint32_t tensor;
    bool asked;
    struct hv_layout layout;
};
/** A graph; everything is the caller's. */
struct hv_shard_graph {
    struct hv_mesh mesh;
    struct hv_shard_tensor *tensors;
    size_t n_tensors;
    const struct hv_shard_op *ops;
    size_t n_ops;
    size_t n_kept; /**< lowering: what tensors were brought into for the first n_kept operators is
                      not kept for those behind; 0: all is */
    struct hv_shard_output *outputs;
    size_t n_outputs;
};

#endif
