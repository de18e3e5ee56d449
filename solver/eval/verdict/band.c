/** Bands around simulated iteration times. */
#include "solver/eval/verdict/band.h"

#include "solver/base/units.h"
#include "solver/inventory/calibration.h"
#include "solver/inventory/cluster.h"

#include <math.h>

/** Weight of the exposed part: see band.h. */
#define EXCHANGE_WEIGHT 5

enum hv_error_of hv_band_error_of(const struct hv_model *m, enum hv_precision p)
{
    bool low = hv_precision_bytes(p) <= 1, experts = false;
    if (m->kind == HV_MODEL_LAYERS) {
        return HV_ERROR_LAYERS;
    }
    for (size_t i = 0; i < m->n_blocks && !experts; i++) {
        experts = hv_model_has_experts(m, i);
    }
    return experts ? (low ? HV_ERROR_EXPERTS_8 : HV_ERROR_EXPERTS_16)
                   : (low ? HV_ERROR_DENSE_8 : HV_ERROR_DENSE_16);
}

double hv_band_exposed_frac(const struct hv_metrics *m)
{
    static const enum hv_breakdown exchange[] = {HV_TIME_TP,   HV_TIME_CP, HV_TIME_EP,
                                                 HV_TIME_ZERO, HV_TIME_PP, HV_TIME_DP};
    double sum = 0;
    for (size_t i = 0; i < HV_COUNT(exchange); i++) {
        sum += hv_or(m->breakdown_s[exchange[i]], 0);
    }
    return m->iteration_s > 0 ? fmin(fmax(sum / m->iteration_s, 0), 1) : 0;
}

double hv_band_scale(double exposed_frac)
{
    return hypot(1, EXCHANGE_WEIGHT * exposed_frac);
}

/** The largest error among the classes of the plan's devices; 0: one of them says nothing. */
static double error_of(const struct hv_plan *p, enum hv_error_of e)
{
    const struct hv_calibration *last = NULL;
    double most = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        for (size_t s = 0; s < r->n_stages; s++) {
            for (size_t d = 0; d < r->stages[s].n_devices; d++) {
                uint32_t device = r->stages[s].devices[d];
                const struct hv_calibration *c =
                    hv_device_calibration(hv_cluster_device(p->cluster, device).kind);
                if (c != last && c->error[e] <= 0) {
                    return 0;
                }
                most = fmax(most, c->error[e]);
                last = c;
            }
        }
    }
    return most;
}

void hv_band_of(const struct hv_plan *p, const struct hv_model *model, const struct hv_job *job,
                struct hv_metrics *m)
{
    m->band = (struct hv_band){.low_s = HV_UNKNOWN, .high_s = HV_UNKNOWN};
    if (!hv_known(m->iteration_s) || m->staleness > 0) {
        return;
    }
    double half = error_of(p, hv_band_error_of(model, job->precision));
    if (half > 0) {
        double times = exp(half * hv_band_scale(hv_band_exposed_frac(m)));
        m->band = (struct hv_band){m->iteration_s / times, m->iteration_s * times, HV_BAND_COVER};
    }
}

double hv_band_frac(const struct hv_band *b)
{
    return b->cover > 0 ? sqrt(b->high_s / b->low_s) - 1 : HV_UNKNOWN;
}

bool hv_band_within(const struct hv_metrics *a, const struct hv_metrics *b)
{
    return a->band.cover > 0 && b->band.cover > 0 && a->iteration_s >= b->band.low_s &&
           a->iteration_s <= b->band.high_s && b->iteration_s >= a->band.low_s &&
           b->iteration_s <= a->band.high_s;
}
