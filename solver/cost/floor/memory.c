/*
 * Least memory of a job on its devices under any offload, sharding and recompute: the minimum of
 * what stage/memory.c and the prices of parts count. Bound of a whole plan: bound/least.c.
 */
#include "solver/cost/floor/floor_int.h"

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include <math.h>

double hv__usable_bytes(const struct hv_job *j, const struct hv_device_kind *d)
{
    /* a group of several kinds keeps back what its slowest does: the least of any */
    double left =
        d->memory_bytes - hv_or(j->memory_reserve_bytes, HV_RESERVE_FRAC * d->memory_bytes);
    return d->cls == HV_CLASS_CPU ? left : left - HV_CONTEXT_BYTES - HV_WORKSPACE_BYTES;
}

double hv__least_state_bytes(const struct hv__context *k)
{
    const struct hv_job *j = &k->job;
    /* sums of gradients, whole or in shards, and their unscaled copy: neither is ever offloaded */
    bool scaled = j->precision == HV_FP16 && !j->grad_fp32 && j->master_weights;
    return hv_model_parameters(k->model) * (hv_job_grad_bytes(j) + (scaled ? 4 : 0));
}

double hv__largest_pass(struct hv__ask *ask, const struct hv_part_query *q)
{
    struct hv_part_query whole = *q;
    if (ask->part != HV_PART_FFN && ask->part != HV_PART_HEAD) {
        return HUGE_VAL;
    }
    whole.sequence_parallel = false; /* no copies gathered for it */
    ask->q = &whole;
    ask->passes = &hv__any_pass;
    ask->left_out = NULL;
    double each = q->tp * ask->k->parts->price(ask).transient_bytes;
    return each > 0 ? fmax(0, hv__usable_bytes(&ask->k->job, q->device)) / each : HUGE_VAL;
}
