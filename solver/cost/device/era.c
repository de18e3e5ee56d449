/* Order of devices by age and by speed. workload/job.c decides which kernels a job uses. */
#include "solver/cost/device/era.h"

#include <string.h>

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"

bool hv__older_stack(const struct hv_job *j, const struct hv_model *m,
                     const struct hv_kernel_query *q)
{
    if (hv_job_flash_attention(j, m, q)) {
        return false;
    }
    struct hv_job by_device = *j;
    by_device.attention = HV_ATTENTION_AUTO;
    return !hv_job_flash_attention(&by_device, m, q);
}

bool hv__before_fused(const struct hv_job *j, const struct hv_model *m,
                      const struct hv_device_kind *d)
{
    struct hv_kernel_query q = {d, true, true};
    struct hv_job by_device = *j;
    by_device.attention = HV_ATTENTION_AUTO;
    return !hv_job_flash_attention(&by_device, m, &q);
}

bool hv__since_hopper(const struct hv_device_kind *d)
{
    return d->arch && (strcmp(d->arch, "Hopper") == 0 || strcmp(d->arch, "Blackwell") == 0);
}

const struct hv_device_kind *hv__slower(enum hv_precision p, const struct hv_device_kind *a,
                                        const struct hv_device_kind *b)
{
    if (a == b) {
        return a; /* the devices of a group are mostly of one kind */
    }
    double x = hv_efficiency_of(a, p).gemm_flops_per_s;
    double y = hv_efficiency_of(b, p).gemm_flops_per_s;
    if (!hv_known(x) || !hv_known(y)) {
        return hv_known(y) ? a : b;
    }
    return y < x ? b : a;
}
