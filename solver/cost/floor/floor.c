/*
 * Least cost of a part over all sizes of its passes and all ways of running it. Floors by the size
 * of passes: cells.c. Lower bounds of a whole plan: solver/bound.
 */
#include "solver/cost/floor/floor_int.h"

#include "solver/base/units.h"
#include <math.h>

size_t hv__different_ways(const struct hv__context *k, const struct hv_device_kind *d,
                          struct hv__way out[HV__WAYS])
{
    static const struct hv__way all_ways[HV__WAYS] = {
        {false, false}, {true, false}, {false, true}, {true, true}};
    unsigned seen[HV__WAYS];
    size_t n = 0;
    for (size_t i = 0; i < HV__WAYS; i++) {
        struct hv_kernel_query q = {d, all_ways[i].sharded, all_ways[i].context_parallel};
        unsigned kernels = (unsigned)hv_job_flash_attention(&k->job, k->model, &q) |
                           (unsigned)hv_job_dropout(&k->job, k->model, &q) << 1 |
                           (unsigned)hv_job_eager_kernels(&k->job, k->model, &q) << 2;
        size_t at = 0;
        while (at < n && seen[at] != kernels) {
            at++;
        }
        seen[at] = kernels;
        out[at] = at < n ? out[at] : all_ways[i];
        n += at == n;
    }
    return n;
}

struct hv_part_query hv__floor_query(const struct hv__context *k, const struct hv_device_kind *d,
                                     struct hv__way way, int tp)
{
    int cp = way.context_parallel ? 2 : 1;
    return (struct hv_part_query){.device = d,
                                  .tp = tp,
                                  .cp = cp,
                                  .ep = 1,
                                  .expert_tp = tp,
                                  .cp_scheme = HV_CP_RING,
                                  .cp_layout = HV_CP_ZIGZAG, /* no rank waits for another */
                                  .sequence_parallel = tp > 1,
                                  .sharded_weights = way.sharded,
                                  .sequences = cp,
                                  .tokens = hv__tokens(k)};
}

static double least_s(struct hv__ask *ask, const struct hv_device_kind *device)
{
    struct hv__way ways[HV__WAYS] = {{false, false}};
    size_t n = ask->k->parts->analytic ? hv__different_ways(ask->k, device, ways) : 1;
    double least = HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        const struct hv_part_query q = hv__floor_query(ask->k, device, ways[i], 1);
        ask->q = &q;
        struct hv_part_cost c = ask->k->parts->price(ask);
        double sum = c.forward_s + c.input_grad_s + c.weight_grad_s;
        if (!hv_known(sum)) {
            return HV_UNKNOWN;
        }
        least = fmin(least, sum);
    }
    return least;
}

/* Parts times classes of blocks: place of a floor in the row of its device. */
static size_t column_of(const struct hv__context *k, enum hv_part part, size_t block)
{
    return (size_t)part * k->n_classes + (hv__in_block(part) ? k->cls[block] : 0);
}

double hv__floor_s(struct hv__context *k, enum hv_part part, size_t block,
                   const struct hv_device_kind *device)
{
    bool in_block = hv__in_block(part);
    size_t n_kinds = k->cluster->n_kinds, columns = HV_PART_N * (size_t)k->n_classes + 1;
    if (in_block && block >= k->model->n_blocks) {
        return 0;
    }
    if (k->floors == NULL) {
        k->floors = hv_arena_new(&k->arena, double, n_kinds *columns + 1);
        for (size_t i = 0; i < n_kinds * columns; i++) {
            k->floors[i] = -1;
        }
    }
    struct hv__ask ask = {.k = k,
                          .part = part,
                          .block = in_block ? k->representative[k->cls[block]] : 0,
                          .rates = &hv__best_rates,
                          .passes = &hv__any_pass};
    for (size_t i = 0; i < n_kinds; i++) {
        double *known = &k->floors[i * columns + column_of(k, part, block)];
        if (k->cluster->kinds[i] != device) {
            continue;
        }
        if (*known < 0) {
            *known = least_s(&ask, device);
        }
        return *known;
    }
    return least_s(&ask, device);
}
