/** Matrix products of the shapes that one device has. */
#include "solver/cost/device/efficiency.h"
#include "solver/cost/device/era.h"
#include "solver/cost/device/gemm.h"
#include "solver/cost/graph/kernels.h"

#include <math.h>

/* Parts that a dimension of an operand or the result is cut into; −1: there is none. */
static double parts_of(const struct hv_mesh *m, const struct hv_layout *layouts, int side, int dim)
{
    return dim >= 0 ? (double)hv_axes_parts(m, &layouts[side].dim[dim]) : 1;
}

/* Iterations of a loop on one device. */
static double local_size(const struct hv_loop *l, const struct hv_mesh *m,
                         const struct hv_layout *layouts)
{
    int side = l->dim[0] >= 0 ? 0 : l->dim[1] >= 0 ? 1 : 2;
    return ceil((double)l->size / parts_of(m, layouts, side, l->dim[side]));
}

/* A window: a row of the product per row of the result, and a term per tap, of which an operand
 * that is spread by a stride has one in `base`: kernels leave out the zeros between. */
static void add_window(const struct hv_loop *l, const struct hv_mesh *m,
                       const struct hv_layout *layouts, const struct hv_shape *result,
                       struct hv__local_product *x)
{
    double rows = l->dim[2] >= 0 ? (double)result->size[l->dim[2]] : 1;
    double taps = (double)(l->window.taps > 0 ? l->window.taps : 1);
    double base = (double)(l->window.base > 0 ? l->window.base : 1);
    x->m *= ceil(rows / parts_of(m, layouts, 2, l->dim[2]));
    x->k *= fmax(1, taps / parts_of(m, layouts, 1, l->dim[1]) / base);
}

struct hv__local_product hv__local_product(const struct hv_prim_graph *g, const struct hv_prim *p,
                                           const struct hv_mesh *m, const struct hv_layout *layouts)
{
    struct hv__local_product x = {1, 1, 1, 1};
    for (size_t i = 0; i < p->n_loops; i++) {
        const struct hv_loop *l = &p->loop[i];
        switch (l->role) {
        case HV_ROLE_BATCH:
            x.groups *= local_size(l, m, layouts);
            break;
        case HV_ROLE_FREE:
            *(l->dim[0] >= 0 ? &x.m : &x.n) *= local_size(l, m, layouts);
            break;
        case HV_ROLE_CONTRACT:
            x.k *= local_size(l, m, layouts);
            break;
        case HV_ROLE_SPATIAL:
            add_window(l, m, layouts, hv_prim_shape(g, p->tensor[p->n_in]), &x);
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
