/**
 * Delayed sums: values that are added to each other stay summands of devices until then, so that
 * one reduction does for several.
 */
#ifndef HV_SOLVER_SHARD_DELAY_H
#define HV_SOLVER_SHARD_DELAY_H

#include "solver/base/arena.h"
#include "solver/shard/graph.h"

/** After propagation, before lowering: where an operator of [from, n_ops) that adds its operands
 * (additive_in) is the only reader of both, and both come from sums over equally many devices along
 * the same atoms, leaves both partial over these. Tensors that are fixed, or results of the graph,
 * are reduced. O(operators). */
void hv_delay_sums(struct hv_shard_graph *g, size_t from, struct hv_arena *arena);

#endif
