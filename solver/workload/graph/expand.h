/**
 * Expansion: a graph of operators as primitives, the way jax lowers its functions (softmax, layer
 * normalisation, gelu, cross-entropy by one-hot rows, …), so that statistics, masks and their
 * exchanges are seen.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_EXPAND_H
#define HV_SOLVER_WORKLOAD_GRAPH_EXPAND_H

#include "solver/workload/graph/prims.h"

/** A graph as primitives: tensor_of[t] is the primitive tensor of tensor t. */
struct hv_expansion {
    struct hv_prim_graph prims;
    uint32_t *tensor_of;
};

/** Expands a checked graph (hv_tensor_op_check). Everything lives in the arena. Errors: HV_EINPUT
 * for an operator whose dimensions do not tell what it does, with its name. */
enum hv_status hv_expand(const struct hv_tensor_graph *g, struct hv_arena *arena,
                         struct hv_expansion *out, struct hv_err *err) HV_NODISCARD;
/** Shape of a tensor of the graph. */
struct hv_shape hv_tensor_shape(const struct hv_tensor_graph *g, const struct hv_tensor *t);

#endif
