/* Ranks that share the shards of a stage, and what their exchanges take. */
#include "solver/cost/stage/holders.h"

#include <stdlib.h>

#include "solver/base/arena.h"

/* Sets what a collective of `n` members costs beside those of its kind: every `stride`-th device of
 * the entry is in one of them. */
static void set_members(struct hv__context *k, const struct hv_stage_query *q,
                        const struct hv__rank *rank, size_t stride, struct hv__members *m)
{
    size_t all = hv_stage_ranks(q->replica, rank->stage) * (size_t)q->replica->count;
    const struct hv_family f = {rank->stage->devices, all, stride, m->n};
    bool look = m->n * stride < all || hv_cluster_is_far(k->cluster, f.devices, stride, 1);
    m->together = look ? hv_cost_together(k->cluster, &f, 0) : (double)stride;
    m->signature = hv__signature(k->cluster, m->ids, m->n);
    m->far = hv_cluster_is_far(k->cluster, m->ids, m->n, 1);
}

void hv__find_shard_holders(struct hv__context *k, const struct hv_stage_query *q,
                            const struct hv__rank *rank, size_t stride, struct hv__shard_holders *h)
{
    const struct hv_zero *z = &rank->stage->zero;
    size_t all = hv__holders(q, rank, stride, 0, &h->own.ids);
    size_t limit = z->shard_group > 0 ? (size_t)z->shard_group : all;
    h->own.n = limit < all ? limit : all;
    set_members(k, q, rank, stride, &h->own);
    h->across = (struct hv__members){0};
    if (hv_zero_sums_groups(z) && h->own.n < all) {
        h->across.ids = hv_xmalloc((all / h->own.n + 1) * sizeof *h->across.ids);
        for (size_t i = 0; i < all; i += h->own.n) {
            h->across.ids[h->across.n++] = h->own.ids[i];
        }
        set_members(k, q, rank, stride * h->own.n, &h->across);
    }
}

void hv__free_shard_holders(struct hv__shard_holders *h)
{
    free(h->own.ids);
    free(h->across.ids);
}

/* A collective of sharded states. */
static double collective_s(struct hv__context *k, const struct hv_stage_query *q,
                           const struct hv_zero *z, enum hv_collective op,
                           const struct hv__members *m, double bytes)
{
    struct hv_collective_query c = {.op = op,
                                    .bytes = bytes,
                                    .devices = m->ids,
                                    .n = m->n,
                                    .algorithm = op == HV_ALL_REDUCE
                                                     ? q->plan->sync.algorithm
                                                     : hv_zero_gather_algorithm(z, HV_ALGO_AUTO),
                                    .together = m->together};
    return m->n > 1 && bytes > 0 ? hv__collective_s(&k->network, k->cluster, &c, m->signature) : 0;
}

struct hv__shard_s hv__share_s(struct hv__context *k, const struct hv_stage_query *q,
                               const struct hv__rank *rank, enum hv_collective op,
                               const struct hv__shard_holders *h, double bytes)
{
    const struct hv_zero *z = &rank->stage->zero;
    struct hv__shard_s s = {.all_s = collective_s(k, q, z, op, &h->own, bytes)};
    s.network_s = h->own.far ? s.all_s : 0;
    if (op == HV_REDUCE_SCATTER && h->across.n > 1) {
        double sum_s = collective_s(k, q, z, HV_ALL_REDUCE, &h->across, bytes / (double)h->own.n);
        s.all_s += sum_s;
        s.network_s += h->across.far ? sum_s : 0;
    }
    return s;
}
