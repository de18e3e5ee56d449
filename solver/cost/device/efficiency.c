/* From calibrated shares to rates. Not for formulas: those are in part/ and network/. */
#include "solver/cost/device/efficiency.h"

#include <math.h>

static double peak16(const struct hv_device_kind *d)
{
    double bf16 = d->flops_per_s[HV_BF16];
    return bf16 > 0 ? bf16 : d->flops_per_s[HV_FP16];
}

static enum hv_calibrated share_of(enum hv_precision p)
{
    switch (p) {
    case HV_FP8:
    case HV_INT8:
        return HV_CAL_GEMM_8;
    case HV_FP4:
        return HV_CAL_GEMM_4;
    case HV_FP32:
    case HV_TF32:
    case HV_FP16:
    case HV_BF16:
    case HV_PRECISION_N:
        break;
    }
    return HV_CAL_GEMM_16;
}

/* Where the class is not calibrated, the measured best matmul of this device is more accurate. */
static double gemm_frac(const struct hv_device_kind *d, enum hv_calibrated share,
                        const char **source)
{
    const struct hv_calibration *c = hv_device_calibration(d);
    double peak = peak16(d);
    *source = c->source;
    if (d->plain_rates || c->devices[0] || !(d->matmul_flops_per_s > 0 && peak > 0)) {
        return c->v[share];
    }
    *source = "estimated: 0.84 of the best measured matmul";
    double relative = c->v[share] / c->v[HV_CAL_GEMM_16];
    double frac = HV_EFF_OF_MATMUL * d->matmul_flops_per_s / peak * relative;
    return frac < 0.95 ? frac : 0.95;
}

struct hv_efficiency hv_efficiency_of(const struct hv_device_kind *d, enum hv_precision p)
{
    const struct hv_calibration *c = hv_device_calibration(d);
    double kernel_s =
        d->cls == HV_CLASS_CPU && !d->plain_rates ? 1 * HV_US : c->v[HV_CAL_KERNEL_US] * HV_US;
    struct hv_efficiency e = {.calibration = c,
                              .bytes_per_s = d->memory_bytes_per_s * c->v[HV_CAL_STREAM],
                              .gemm_start_s = kernel_s,
                              .launch_s = kernel_s,
                              .peak_flops_per_s = hv_device_peak_flops_per_s(d, p)};
    bool narrow = share_of(p) != HV_CAL_GEMM_16;
    double core_peak = narrow ? peak16(d) : e.peak_flops_per_s;
    e.gemm_frac = gemm_frac(d, share_of(p), &e.source);
    e.gemm_flops_per_s = e.peak_flops_per_s * e.gemm_frac;
    const char *same;
    e.core16_flops_per_s = core_peak * gemm_frac(d, HV_CAL_GEMM_16, &same);
    double fp32 = hv_or(d->flops_per_s[HV_FP32], HUGE_VAL);
    e.scalar_flops_per_s = fmin(e.core16_flops_per_s, fp32 * e.core16_flops_per_s / core_peak);
    e.core_forward_flops_per_s = core_peak * c->v[HV_CAL_CORE_FORWARD];
    e.core_backward_flops_per_s = core_peak * c->v[HV_CAL_CORE_BACKWARD];
    return e;
}

double hv_efficiency_thin(double m, double n, double k)
{
    return -expm1(-m / HV_EFF_THIN) * -expm1(-n / HV_EFF_THIN) * -expm1(-k / HV_EFF_THIN);
}
