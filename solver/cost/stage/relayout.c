/*
 * Change of layout between parts of a stage: activations of one micro-batch, split by the degrees
 * of one part, go to the devices that need them under those of the next part; their gradients go
 * back the same way. Both parts use all devices of the stage in the same order, so only devices
 * within the wider of the two data-parallel ranks exchange. Source: Miao et al. 2023 (Galvatron),
 * section 3.2, the transformation by slices and all-gathers.
 */
#include "solver/cost/stage/relayout.h"

#include <stdlib.h>

#include "solver/base/whole.h"

/* Devices with one set of sequences, and how many of them hold the same part of these. */
struct split {
    size_t width, copies;
    enum hv_tp_scheme scheme;
};

static struct split split_of(const struct hv_stage *s)
{
    size_t tp = s->tp.degree > 1 ? (size_t)s->tp.degree : 1;
    size_t cp = s->cp.degree > 1 ? (size_t)s->cp.degree : 1;
    return (struct split){tp * cp, hv_stage_spreads(s) ? 1 : tp, s->tp.scheme};
}

/* What the devices of a group exchange. */
struct exchange {
    enum hv_collective op;
    size_t first, size, stride; /* every stride-th of `size` devices; size 0: nothing moves */
    double bytes;
};

static struct exchange exchange_of(const struct hv__relayout *x, const struct hv_stage *from,
                                   const struct hv_stage *to)
{
    struct split a = split_of(from), b = split_of(to);
    struct exchange e = {.size = (size_t)hv_lcm((int64_t)a.width, (int64_t)b.width), .stride = 1};
    e.size = e.size < x->n_devices ? e.size : x->n_devices;
    e.first = x->unit / e.size * e.size;
    bool alike = a.width == b.width && a.copies == b.copies && a.scheme == b.scheme;
    if (alike || a.copies == e.size) {
        return (struct exchange){0}; /* every device has what it needs */
    }
    e.bytes = x->bytes * (double)e.size / (double)x->n_devices;
    if (b.copies == e.size) {
        e.op = HV_ALL_GATHER;
        e.stride = a.copies;
    } else {
        e.op = HV_ALL_TO_ALL;
        e.bytes *= (double)b.copies / (double)e.size;
    }
    return e;
}

double hv__relayout_s(struct hv__context *k, const struct hv__relayout *x,
                      const struct hv_stage *from, const struct hv_stage *to)
{
    struct exchange e = exchange_of(x, from, to);
    if (e.size < 2 || !(e.bytes > 0)) {
        return 0;
    }
    uint32_t *ids = hv_xmalloc((e.size / e.stride + 1) * sizeof *ids);
    size_t n = 0;
    for (size_t i = 0; i < e.size; i += e.stride) {
        ids[n++] = x->devices[e.first + i];
    }
    const struct hv_family f = {x->devices, x->n_devices, e.stride, n};
    const struct hv_collective_query q = {.op = e.op,
                                          .bytes = e.bytes,
                                          .devices = ids,
                                          .n = n,
                                          .together = hv_cost_together(k->cluster, &f, e.first)};
    double time_s =
        hv__collective_s(&k->network, k->cluster, &q, hv__signature(k->cluster, ids, n));
    free(ids);
    return time_s;
}

bool hv__relayout_is_far(const struct hv__context *k, const struct hv__relayout *x,
                         const struct hv_stage *from, const struct hv_stage *to)
{
    struct exchange e = exchange_of(x, from, to);
    return e.size > 1 && hv_cluster_is_far(k->cluster, x->devices + e.first, e.size, 1);
}
