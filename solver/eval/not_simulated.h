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
 * to another stage; ranks that take micro-batches in turns and share states, experts or devices,
 * and stages of unlike micro-batches beside them. O(stages + operators + edges, and devices where
 * there are operators).
 */
enum hv_status hv__refuse_unsimulated(const struct hv_plan *p, const struct hv_model *m,
                                      struct hv_arena *arena, struct hv_err *err) HV_NODISCARD;

/**
 * What gates of experts ask for and cannot get (gates.c): HV_ENO for a target that is not of the
 * ranks of its group, sends tokens of a rank nowhere, to a rank without experts, or more of them to
 * a rank than each of its experts can have once; or where the job's routing says otherwise where
 * tokens go. O(blocks · (ranks² + experts)).
 */
enum hv_status hv__refuse_gates(const struct hv_plan *p, const struct hv_model *m,
                                const struct hv_job *job, struct hv_err *err) HV_NODISCARD;

/** HV_ENO for what a stage of operators with operands asks for and no judge simulates; HV_OK for
 * other models. O(operators). */
enum hv_status hv__refuse_operators(const struct hv_plan *p, const struct hv_model *m,
                                    size_t replica, size_t stage, struct hv_arena *arena,
                                    struct hv_err *err) HV_NODISCARD;
/** Lists what an operator graph leaves unknown among the approximated knobs of the verdict: the
 * activations of operators without `bytes` take no memory. O(operators). */
void hv__tell_operators(const struct hv_model *m, struct hv_arena *arena, struct hv_verdict *out);
/** Likewise measured layers of pieces that give no backward pass. O(layers). */
void hv__tell_forward_only(const struct hv_model *m, struct hv_arena *arena,
                           struct hv_verdict *out);

#endif
