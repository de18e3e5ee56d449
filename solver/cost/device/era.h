/** Inside cost: which generation of training software a device runs, by its age. */
#ifndef HV_SOLVER_COST_DEVICE_ERA_H
#define HV_SOLVER_COST_DEVICE_ERA_H

#include "solver/workload/job.h"
#include "solver/workload/model.h"

/** Does a transformer run on a stack of 2021 and 2022 here, before fused attention? Such pipelines
 * keep what they handed on, and ZeRO in them is DeepSpeed's. Attention that the job leaves unfused
 * on a later device does not make the stack an old one. O(1). */
bool hv__older_stack(const struct hv_job *j, const struct hv_model *m,
                     const struct hv_kernel_query *q);
/** Is this a device that no fused attention was written for (NVIDIA before Ampere)? O(1). */
bool hv__before_fused(const struct hv_job *j, const struct hv_model *m,
                      const struct hv_device_kind *d);
/** The slower of two kinds at large products in that precision; an unknown rate counts as the
 * slowest. O(1). */
const struct hv_device_kind *hv__slower(enum hv_precision p, const struct hv_device_kind *a,
                                        const struct hv_device_kind *b);

#endif
