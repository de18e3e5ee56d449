/**
 * Meshes of stages: which axes are data parallel, and which operators patterns name.
 */
#ifndef HV_SOLVER_PLAN_MESH_H
#define HV_SOLVER_PLAN_MESH_H

#include "solver/plan/plan.h"

/** True where the model is a graph of operators with operands, which meshes can split. */
bool hv_model_has_operands(const struct hv_model *m);
/** Operators of a graph model that the patterns of the stage name, as ranges of half blocks in the
 * order of the model. The list lives in the arena; returns its length. O(patterns · operators). */
size_t hv_stage_op_ranges(const struct hv_stage *s, const struct hv_model *m,
                          struct hv_arena *arena, struct hv_range **out);
/**
 * Data-parallel ranks of a mesh: the product of its leading axes that split nothing but the batch,
 * and whose ranks need nothing from each other before the gradients. Such an axis is named in
 * `shard` with the batch dimension alone, and no operator reads sums over the batch. 1: none.
 * O(rules + operators).
 */
int hv_mesh_data_ranks(const struct hv_stage *s, const struct hv_model *m);
struct hv_tensor_graph;
/**
 * Groups of operators that pairs of patterns let run as one kernel: group[n_ops] gets the number of
 * the first operator of each. A pair joins an operator that the second pattern names to one of the
 * first that writes an operand of it, or, of products (einsum), to one before it that reads the
 * same tensor beside a parameter. Returns the number of the first pair that joins none; f->n: all
 * do. O(pairs · operators).
 */
size_t hv_fused_groups(const struct hv_named_pairs *f, const struct hv_tensor_graph *g,
                       uint32_t *group);
/** Places of a mesh. */
double hv_mesh_places(const struct hv_stage *s);

#endif
