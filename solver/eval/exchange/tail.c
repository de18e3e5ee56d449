/** The end of an iteration: reductions, host work around the passes, optimizer, gathers. */
#include "solver/eval/exchange/exchange.h"
#include "solver/eval/exchange/exchange_int.h"
#include "solver/plan/mesh.h"

/** Host work of an iteration, and the wait for the slowest of all devices, seconds. */
struct step {
    double fixed_s, wait_s;
};

/**
 * Host work around the passes of an iteration: data, logging, clipping, and the wait for the
 * slowest of many devices with jitter. Both are calibrated per class of devices; the slowest class
 * counts. Measured layers hold whatever was measured with them; under a runtime, ranks wait for
 * each other there too.
 */
static struct step step_of(const struct hv__lowered *l)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const struct hv_model *m = hv_cost_model(l->k);
    bool measured = !hv_model_has_transformer(m) && !hv_model_has_operands(m);
    struct step s = {0};
    double jitter = 0, devices = 0;
    if (measured && hv_cost_job(l->k)->runtime == HV_RUNTIME_HETVIZ) {
        return s;
    }
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        for (size_t r = 0; r < pl->n_ranks; r++) {
            const struct hv__rank *rk = &pl->ranks[r];
            for (size_t d = 0; d < rk->n_devices; d++) {
                if (rk->like[d / rk->width] != d / rk->width) {
                    continue;
                }
                const struct hv_calibration *cal =
                    hv_device_calibration(hv_cluster_device(c, rk->devices[d]).kind);
                s.fixed_s = fmax(s.fixed_s, measured ? 0 : cal->v[HV_CAL_STEP_MS] * 1e-3);
                jitter = fmax(jitter, cal->v[HV_CAL_JITTER]);
            }
            devices += (double)(rk->n_devices * (size_t)pl->multiplicity);
        }
    }
    /* stale plans have no barrier to wait at */
    s.wait_s = l->schedule.stale ? 0 : jitter * log2(fmax(1, devices)) * l->iteration.pipeline_s;
    return s;
}

double hv__step_s(const struct hv__lowered *l)
{
    struct step s = step_of(l);
    return s.fixed_s + s.wait_s;
}

/** Of the wait for the slowest device, what is seen in reductions: all of it where they begin after
 * the last backward passes, since the devices of different pipelines first meet there. */
static double late_s(const struct hv__lowered *l)
{
    bool late = hv__runtime(l)->reduction == HV_REDUCTION_LATE && l->iteration.reduces;
    return late ? step_of(l).wait_s : 0;
}

void hv__tail(struct hv__lowered *l)
{
    l->iteration.step_s = hv__step_s(l);
    if (l->plan->sync.kind != HV_SYNC_NONE && !hv__reduce_in_turns(l)) {
        hv__run_reductions(l);
    }
    l->iteration.late_s = late_s(l);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *pl = &l->pipelines.items[i];
        for (size_t r = 0; r < pl->n_ranks; r++) {
            struct hv__rank *rk = &pl->ranks[r];
            double copies_s = hv__flat_copies_s(l, pl, rk);
            rk->sync_end_s += copies_s;
            rk->sync_exposed_s += copies_s;
            hv__optimizer_step(l, pl, rk);
            l->iteration.total_s =
                fmax(l->iteration.total_s, rk->sync_end_s + rk->optimizer_s + rk->gather_s);
        }
    }
    l->iteration.total_s += l->iteration.step_s;
}
