/**
 * Arithmetic of operators of graphs in long form, and the parameters of a graph. Counts: a
 * multiplication with its addition is two FLOPs; others as the table of kinds says.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_WORK_H
#define HV_SOLVER_WORKLOAD_GRAPH_WORK_H

#include "solver/workload/graph/tensor_graph.h"

/** Elements of a tensor. */
double hv_tensor_elements(const struct hv_tensor_graph *g, const struct hv_tensor *t);
/** Forward FLOPs of an operator: products 2 per term (einsum: pair by pair in order of the
 * operands; conv: channels of a group times the kernel), pools one per element of a window, others
 * a figure per element of their largest operand or result. */
double hv_tensor_op_flops(const struct hv_tensor_graph *g, const struct hv_tensor_op *op);
/** Forward FLOPs of products alone (einsum, conv): what publications count. 0 for others. */
double hv_tensor_op_product_flops(const struct hv_tensor_graph *g, const struct hv_tensor_op *op);
/** Elements of all tensors of role parameter. */
double hv_tensor_graph_parameters(const struct hv_tensor_graph *g);

#endif
