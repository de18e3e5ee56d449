/** Expansion of one operator. For files of this folder. */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_EXPAND_INT_H
#define HV_SOLVER_WORKLOAD_GRAPH_EXPAND_INT_H

#include "solver/workload/graph/expand.h"

/** The operator being expanded. */
struct hv__expand {
    const struct hv_tensor_graph *g;
    const struct hv_tensor_op *op;
    struct hv_expansion *out;
};
/** Primitive tensor of operand i as it is. */
uint32_t hv__operand(const struct hv__expand *x, size_t i);
/** Operand i in the dimensions of the result. */
uint32_t hv__aligned(const struct hv__expand *x, size_t i);

/** Functions of several primitives (functions.c); each returns the tensor of its result. */
uint32_t hv__scale(struct hv__expand *x);
uint32_t hv__relu(struct hv__expand *x);
uint32_t hv__silu(struct hv__expand *x);
uint32_t hv__gelu(struct hv__expand *x);
uint32_t hv__softmax(struct hv__expand *x);
uint32_t hv__layernorm(struct hv__expand *x);
uint32_t hv__rmsnorm(struct hv__expand *x);
uint32_t hv__cross_entropy(struct hv__expand *x);

#endif
