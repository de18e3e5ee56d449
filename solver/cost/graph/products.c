/** Matrix products of the shapes that one device has. */
#include "solver/cost/device/efficiency.h"
#include "solver/cost/device/era.h"
#include "solver/cost/device/gemm.h"
#include "solver/cost/graph/kernels.h"

#include <math.h>

/* Iterations of a loop on one device. */
static double local_size(const struct hv_loop *l, const struct hv_mesh *m,
                         const struct hv_layout *layouts)
{
    int side = l->dim[0] >= 0 ? 0 : l->dim[1] >= 0 ? 1 : 2;
    if (l->role == HV_ROLE_SPATIAL) {
        side = 2; /* rows of the result, not of the window's operand */
    }
    int8_t dim = l->dim[side];
    double parts = dim >= 0 ? (double)hv_axes_parts(m, &layouts[side].dim[dim]) : 1;
    return ceil((double)l->size / parts);
}

struct hv__local_product hv__local_product(const struct hv_prim *p, const struct hv_mesh *m,
                                           const struct hv_layout *layouts)
{
    struct hv__local_product x = {1, 1, 1, 1};
    for (size_t i = 0; i < p->n_loops; i++) {
        const struct hv_loop *l = &p->loop[i];
        double size = local_size(l, m, layouts);
        switch (l->role) {
        case HV_ROLE_BATCH:
            x.groups *= size;
            break;
        case HV_ROLE_FREE:
            *(l->dim[0] >= 0 ? &x.m : &x.n) *= size;
            break;
        case HV_ROLE_CONTRACT:
            x.k *= size;
            break;
        case HV_ROLE_SPATIAL:
            x.m *= size;
            x.k *= (double)(l->window.taps > 0 ? l->window.taps : 1);
            break;
        }
    }
    return x;
}

double hv__local_product_s(const struct hv__context *k, const struct hv_device_kind *d,
                           const struct hv__local_product *p)
{
    struct hv_efficiency e = hv_efficiency_of(d, k->job.precision);
    struct hv_gemm_pricer g = hv_gemm_pricer_of(d, k->job.precision);
    double rows = p->m * p->groups, flops = 2 * rows * p->n * p->k;
    double share = hv_gemm_share(&g, rows, p->n, p->k, p->groups);
    return e.gemm_start_s + flops / (e.gemm_flops_per_s * share);
}

double hv__core_product_s(const struct hv__context *k, const struct hv_device_kind *d,
                          const struct hv__local_product *p, bool backward)
{
    struct hv_efficiency e = hv_efficiency_of(d, k->job.precision);
    double flops = 2 * p->m * p->groups * p->n * p->k, width = fmin(p->n, p->k);
    double rate = backward ? e.core_backward_flops_per_s : e.core_forward_flops_per_s;
    if (width < HV_EFF_CORE_WIDTH && hv__since_hopper(d) && !d->plain_rates) {
        double pairs = backward ? HV_EFF_CORE_PAIRS_BACK : HV_EFF_CORE_PAIRS;
        rate /= 1 - pairs + pairs * HV_EFF_CORE_WIDTH / width;
    }
    return flops / rate;
}
