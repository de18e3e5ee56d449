/** Concurrent reductions of slices and shards: how many of them share the network of a node. */
#include "solver/eval/train/reduce_int.h"

/** Number of devices over which a stage is cut into slices. */
static size_t cuts_of(const struct hv_stage *st, bool experts)
{
    return hv__holder_stride(st, experts) / (size_t)(st->tp.degree / hv_tp_cuts(&st->tp));
}

/** True where every block of so many consecutive devices is on one node. Numbers rise node by node.
 */
static bool blocks_are_near(const struct hv_cluster *c, const uint32_t *d, size_t n, size_t block)
{
    for (size_t i = 0; block > 1 && i < n; i += block) {
        size_t end = i + block < n ? i + block : n;
        for (size_t k = i + 1; k < end; k++) {
            if (d[k] < d[k - 1]) {
                return false;
            }
        }
        if (hv_cluster_node_of(c, d[i]) != hv_cluster_node_of(c, d[end - 1])) {
            return false;
        }
    }
    return true;
}

bool hv__all_concurrent(const struct hv__lowered *l, const struct hv__segment *s,
                        const struct hv__cut *cut)
{
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv_stage *st = s->holders[i].stage;
        size_t stride = hv__holder_stride(st, cut->experts), cuts = cuts_of(st, cut->experts);
        if (cuts != stride || cut->slices % cuts != 0) {
            return true; /* grids of 2.5d; slices that do not come out even */
        }
        if (hv_stage_lanes(st) > 1 && stride * cut->shards > st->n_devices) {
            return false; /* shards are spread over stages that take turns */
        }
        bool near = s->holders[i].rank->near && stride * cut->shards <= s->holders[i].rank->width;
        if (!near && !blocks_are_near(hv_cost_cluster(l->k), st->devices, st->n_devices,
                                      stride * cut->shards)) {
            return false;
        }
    }
    return true;
}

double hv__concurrent_reductions(const struct hv__lowered *l, const struct hv__segment *s,
                                 const struct hv__cut *cut)
{
    size_t most = 0, n = 0, stride = cut->slices * cut->shards;
    if (stride == 1 || hv__all_concurrent(l, s, cut)) {
        return (double)stride;
    }
    for (size_t i = 0; i < s->n_holders; i++) {
        most += s->holders[i].stage->n_devices * cut->slices;
    }
    uint32_t *d = hv_arena_new(l->arena, uint32_t, most);
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[s->holders[i].pipeline];
        const struct hv_stage *st = s->holders[i].stage;
        size_t each = s->holders[i].rank->n_devices,
               times = cut->slices / cuts_of(st, cut->experts);
        for (int c = 0; c < pl->multiplicity; c++) {
            if (l->members != NULL && !l->members[s->holders[i].pipeline][c]) {
                continue;
            }
            for (size_t k = 0; k < each * times; k++) {
                d[n++] = st->devices[(size_t)pl->copies[c] * each + k / times];
            }
        }
    }
    const struct hv_family f = {d, n, stride, cut->members > 0 ? cut->members : n / stride};
    return hv_cost_sharing(l->k, &f);
}
