/** Inside cost: the generation of training software on a device, by the age of the device. */
#ifndef HV_SOLVER_COST_DEVICE_ERA_H
#define HV_SOLVER_COST_DEVICE_ERA_H

#include "solver/workload/job.h"
#include "solver/workload/model.h"

/** True where a transformer runs on a software stack of 2021 and 2022, before fused attention. Such
 * pipelines keep outputs after sending them, and their ZeRO is DeepSpeed's. A later device with
 * unfused attention by choice of the job does not count. O(1). */
bool hv__older_stack(const struct hv_job *j, const struct hv_model *m,
                     const struct hv_kernel_query *q);
/** True for devices without fused attention kernels (NVIDIA before Ampere). O(1). */
bool hv__before_fused(const struct hv_job *j, const struct hv_model *m,
                      const struct hv_device_kind *d);
/** True for Hopper and Blackwell, whose tensor cores have at least twice the FLOPs of Ampere's per
 * exponential that the device can compute. O(1). */
bool hv__since_hopper(const struct hv_device_kind *d);
/** The slower of two kinds at large products in that precision; an unknown rate counts as the
 * slowest. O(1). */
const struct hv_device_kind *hv__slower(enum hv_precision p, const struct hv_device_kind *a,
                                        const struct hv_device_kind *b);

#endif
