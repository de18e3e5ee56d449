/** What gates of experts ask for and cannot get: refused by name before a plan is timed. */
#ifndef HV_SOLVER_EVAL_GATES_H
#define HV_SOLVER_EVAL_GATES_H

#include "solver/base/status.h"
#include "solver/plan/plan.h"
#include "solver/workload/job.h"
#include "solver/workload/model.h"

/**
 * HV_ENO for a target that is not of the ranks of its group, sends tokens of a rank nowhere, to a
 * rank without experts, or more of them to a rank than each of its experts can have once; or where
 * the job's routing says otherwise where tokens go. O(blocks · (ranks² + experts)).
 */
enum hv_status hv__refuse_gates(const struct hv_plan *p, const struct hv_model *m,
                                const struct hv_job *job, struct hv_err *err) HV_NODISCARD;

#endif
