/** Plans that the judge cannot simulate yet: they are refused by name instead of approximated. */
#ifndef HV_SOLVER_EVAL_NOT_SIMULATED_H
#define HV_SOLVER_EVAL_NOT_SIMULATED_H

#include "solver/eval/verdict/verdict.h"
#include "solver/workload/model.h"

/**
 * HV_ENO, "not simulated yet: replicas[0].stages[1].tp: …", where a plan with stages uses what no
 * judge simulates: operators named one by one (`ops`), meshes, shards, placements and fused pairs;
 * and of operator graphs those that are no chain, tensor and context parallelism, devices of
 * another class than an operator asks for, and operators of unknown output size whose output goes
 * to another stage. O(stages + operators + edges, and devices where there are operators).
 */
enum hv_status hv__refuse_unsimulated(const struct hv_plan *p, const struct hv_model *m,
                                      struct hv_arena *arena, struct hv_err *err) HV_NODISCARD;

/** Lists what an operator graph leaves unknown among the approximated knobs of the verdict: the
 * activations of operators without `bytes` take no memory. O(operators). */
void hv__tell_operators(const struct hv_model *m, struct hv_arena *arena, struct hv_verdict *out);
/** Likewise measured layers of pieces that give no backward pass. O(layers). */
void hv__tell_forward_only(const struct hv_model *m, struct hv_arena *arena,
                           struct hv_verdict *out);

#endif
