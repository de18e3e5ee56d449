/** Operators that a case names by a word and shapes, as graphs of one operator. For files of this
 * folder. */
#ifndef HV_SOLVER_IO_OWN_GRAPH_SHARD_OPERATOR_H
#define HV_SOLVER_IO_OWN_GRAPH_SHARD_OPERATOR_H

#include "solver/shard/layout.h"
#include "solver/workload/graph/tensor_graph.h"

#define HV__OPERANDS 8 /**< operands of such an operator */

/**
 * The graph of one operator. `name` is a word of PyTorch ("mm", "add", "softmax", …; a digit behind
 * it is its dimension: "sum1"); `means` is an einsum ("b m, m h -> b h") or, for others, words.
 * Sizes that the case leaves open: the major part of a split dimension is as many as there are
 * devices (`devices`), a slice takes all. Errors: HV_EINPUT for an unknown word or shapes that do
 * not fit.
 */
enum hv_status hv__operator_graph(const char *name, const char *means,
                                  const struct hv_shape *shapes, size_t n, int64_t devices,
                                  struct hv_arena *arena, struct hv_tensor_graph *out,
                                  struct hv_err *err) HV_NODISCARD;

#endif
