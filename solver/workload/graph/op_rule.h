/**
 * The rule of a whole operator, over its named dimensions: what a plan splits. Inside, softmax and
 * normalisations exchange statistics when their dimension is split; here they need it whole.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_OP_RULE_H
#define HV_SOLVER_WORKLOAD_GRAPH_OP_RULE_H

#include "solver/shard/rule.h"
#include "solver/workload/graph/tensor_graph.h"

/** Rule of an operator: its operands, then its result. Factors are its dimensions: those of the
 * result in their order, then the others; factor_dim[f] (may be NULL, HV_RULE_FACTORS entries) is
 * the number of the dimension, HV_NO_DIM for factors of reshapes. Lives in the arena. Errors:
 * HV_ELIMIT for too many factors. */
enum hv_status hv_tensor_op_rule(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                 struct hv_arena *arena, struct hv_op_rule *out,
                                 uint32_t *factor_dim, struct hv_err *err) HV_NODISCARD;

#endif
