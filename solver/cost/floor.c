/*
 * The least that a part can cost: every way of running it, at its best. What follows for a whole
 * plan is in eval/bound.c.
 */
#include "solver/cost/cost_int.h"

#include <math.h>

/* Which kernels run depends on the device, on whether weights are sharded and on context
 * parallelism (workload/job.h); the rest of the query only adds to a price. Two sequences over two
 * context-parallel ranks leave the rows and pairs of one. */
static double least_s(struct hv__ask *ask, const struct hv_device_kind *device)
{
    double least = HUGE_VAL;
    for (int way = 0; way < 4; way++) {
        int cp = way / 2 + 1;
        const struct hv_part_query q = {.device = device,
                                        .tp = 1,
                                        .cp = cp,
                                        .ep = 1,
                                        .cp_scheme = HV_CP_RING,
                                        .sharded_weights = way % 2 == 1,
                                        .sequences = cp,
                                        .tokens = hv_cost_tokens(ask->k)};
        ask->q = &q;
        struct hv_part_cost c = hv__price(ask);
        double sum = c.forward_s + c.input_grad_s + c.weight_grad_s;
        if (!hv_known(sum))
            return HV_UNKNOWN;
        least = fmin(least, sum);
        if (ask->k->model->kind != HV_MODEL_TRANSFORMER)
            break;
    }
    return least;
}

/* Parts times classes of blocks: place of a floor in the row of its device. */
static size_t column_of(const struct hv_cost *k, enum hv_part part, size_t block)
{
    bool in_block = part == HV_PART_ATTENTION || part == HV_PART_FFN;
    return (size_t)part * k->n_classes + (in_block ? k->cls[block] : 0);
}

double hv_cost_floor_s(struct hv_cost *k, enum hv_part part, size_t block,
                       const struct hv_device_kind *device)
{
    bool in_block = part == HV_PART_ATTENTION || part == HV_PART_FFN;
    size_t n_kinds = k->cluster->n_kinds, columns = HV_PART_N * (size_t)k->n_classes + 1;
    if (in_block && block >= k->model->n_blocks)
        return 0;
    if (k->subs)
        return hv__modules_floor_s(k, part, block, device);
    if (k->floors == NULL) {
        k->floors = hv_arena_new(&k->arena, double, n_kinds *columns + 1);
        for (size_t i = 0; i < n_kinds * columns; i++)
            k->floors[i] = -1;
    }
    struct hv__ask ask = {k,    part, in_block ? k->representative[k->cls[block]] : 0,
                          NULL, NULL, true};
    for (size_t i = 0; i < n_kinds; i++) {
        double *known = &k->floors[i * columns + column_of(k, part, block)];
        if (k->cluster->kinds[i] != device)
            continue;
        if (*known < 0)
            *known = least_s(&ask, device);
        return *known;
    }
    return least_s(&ask, device);
}
