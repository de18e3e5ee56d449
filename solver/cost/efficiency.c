/* The table behind efficiency.h. Not for formulas: those are in part.c and collective.c. */
#include "solver/cost/efficiency.h"

#include <string.h>

/* One row per device family: share of peak, share of bandwidth, starts, fused attention shares. */
struct row {
    const char *family;
    double gemm, bytes, gemm_start_s, core_forward, core_backward;
    const char *source;
};

static const struct row rows[] = {
    {"A100", 0.72, 0.80, 8 * HV_US, 0.60, 0.50,
     "products fitted on vidur A100 profiles; attention estimated (FlashAttention-2)"},
    {"A800", 0.72, 0.80, 8 * HV_US, 0.60, 0.50, "estimated: as A100, same chip"},
    {"H100", 0.68, 0.90, 8 * HV_US, 0.55, 0.45,
     "products fitted on vidur H100 profiles; attention estimated (FlashAttention-2/3)"},
    {"H800", 0.68, 0.90, 8 * HV_US, 0.55, 0.45, "estimated: as H100, same chip"},
    {"H200", 0.68, 0.90, 8 * HV_US, 0.55, 0.45, "estimated: as H100, same chip"},
    {"A40", 0.76, 0.70, 12 * HV_US, 0.55, 0.45,
     "products fitted on vidur A40 profiles; attention estimated"},
};

static const struct row other = {
    "", HV_EFF_UNMEASURED, 0.80, 10 * HV_US, 0.45, 0.36, "estimated: no profile of this device"};

static const struct row *row_of(const struct hv_device_kind *d)
{
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        size_t n = strlen(rows[i].family);
        if (!strncmp(d->name, rows[i].family, n) && (d->name[n] == '-' || d->name[n] == '\0'))
            return &rows[i];
    }
    return &other;
}

static double peak16(const struct hv_device_kind *d)
{
    double bf16 = d->flops_per_s[HV_BF16];
    return bf16 > 0 ? bf16 : d->flops_per_s[HV_FP16];
}

/* Share of peak of large products: the row's, else from the best measured matmul. */
static double gemm_frac(const struct hv_device_kind *d, const struct row *r, const char **source)
{
    *source = r->source;
    double frac = r->gemm;
    double peak = peak16(d);
    if (r == &other && d->matmul_flops_per_s > 0 && peak > 0) {
        frac = HV_EFF_OF_MATMUL * d->matmul_flops_per_s / peak;
        *source = "estimated: 0.84 of the best measured matmul";
    }
    return frac < 0.95 ? frac : 0.95;
}

struct hv_efficiency hv_efficiency_of(const struct hv_device_kind *d, enum hv_precision p)
{
    const struct row *r = row_of(d);
    struct hv_efficiency e = {.bytes_per_s = d->memory_bytes_per_s * r->bytes,
                              .gemm_start_s = r->gemm_start_s,
                              .launch_s = 5 * HV_US,
                              .peak_flops_per_s = hv_device_peak_flops_per_s(d, p)};
    if (d->cls == HV_CLASS_CPU)
        e.gemm_start_s = e.launch_s = 1 * HV_US;
    e.gemm_frac = gemm_frac(d, r, &e.source);
    double core_peak = e.peak_flops_per_s;
    if (p == HV_FP8 || p == HV_FP4 || p == HV_INT8) {
        e.gemm_frac *= HV_EFF_FP8;
        core_peak = peak16(d);
    }
    e.gemm_flops_per_s = e.peak_flops_per_s * e.gemm_frac;
    e.core_forward_flops_per_s = core_peak * r->core_forward;
    e.core_backward_flops_per_s = core_peak * r->core_backward;
    return e;
}

double hv_efficiency_thin(double m, double n, double k)
{
    return -expm1(-m / HV_EFF_THIN) * -expm1(-n / HV_EFF_THIN) * -expm1(-k / HV_EFF_THIN);
}

double hv_efficiency_link(enum hv_path_level level, bool p2p)
{
    const double collective = HV_EFF_NODE_COLLECTIVE, pair = HV_EFF_NODE_P2P;
    switch (level) {
    case HV_PATH_SELF:
        return 1;
    case HV_PATH_ISLAND:
    case HV_PATH_NODE:
    case HV_PATH_DOMAIN:
        return p2p ? pair : collective;
    case HV_PATH_NETWORK:
    case HV_PATH_WAN:
        break;
    }
    return HV_EFF_NETWORK;
}
