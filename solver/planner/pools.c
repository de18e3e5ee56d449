/*
 * Pools: which devices are alike, and what a planner has to know of them. Drained and spare nodes,
 * CPUs and devices that lack the precision or the measured times of a layer take no part.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"

#include <math.h>
#include <string.h>

static bool is_priced(const struct hv__search *s, const struct hv_device_kind *k)
{
    double all_s = 0;
    for (unsigned i = 0; i < hv_cost_n_classes(s->k); i++)
        all_s += hv_cost_floor_s(s->k, HV_PART_ATTENTION, hv_cost_class_block(s->k, i), k);
    return all_s > 0; /* false too when one is unknown */
}

static bool takes_part(const struct hv__search *s, const struct hv_node_group *g,
                       const struct hv_device_kind *k)
{
    return g->state == HV_NODE_OK && k->cls != HV_CLASS_CPU &&
           hv_device_has(k, s->job->precision) && is_priced(s, k);
}

static double pool_speed(const struct hv__search *s, const struct hv__pool *p)
{
    double peak = hv_device_peak_flops_per_s(p->kind, s->job->precision);
    return p->n * hv_or(peak, 1);
}

static void append_ids(struct hv__search *s, struct hv__pool *p, const uint32_t *ids, int n)
{
    uint32_t *all = hv_arena_new(&s->arena, uint32_t, (size_t)(p->n + n));
    if (p->n > 0)
        memcpy(all, p->ids, (size_t)p->n * sizeof *all);
    memcpy(all + p->n, ids, (size_t)n * sizeof *all);
    p->ids = all;
    p->n += n;
}

/* Makes room: joins q to an equal pool, or gives up the weakest of all. */
static void add_pool(struct hv__search *s, const struct hv__pool *q)
{
    if (s->n_pools < HV__POOLS) {
        s->pools[s->n_pools++] = *q;
        return;
    }
    int weakest = 0;
    for (int i = 0; i < s->n_pools; i++) {
        struct hv__pool *p = &s->pools[i];
        if (p->kind == q->kind && p->per_node == q->per_node &&
            p->node_devices == q->node_devices) {
            append_ids(s, p, q->ids, q->n);
            p->flow_bytes_per_s = fmin(p->flow_bytes_per_s, q->flow_bytes_per_s);
            return;
        }
        if (pool_speed(s, p) < pool_speed(s, &s->pools[weakest]))
            weakest = i;
    }
    if (pool_speed(s, q) > pool_speed(s, &s->pools[weakest]))
        s->pools[weakest] = *q;
}

static double reserve_bytes(const struct hv__search *s, const struct hv_device_kind *k)
{
    return hv_or(s->job->memory_reserve_bytes, 0.02 * k->memory_bytes);
}

struct kernels {
    bool fused, dropout, eager;
};

static struct kernels kernels_of(const struct hv__search *s, const struct hv_device_kind *d,
                                 bool sharded, bool contexts)
{
    const struct hv_model *m = hv_cost_model(s->k);
    struct hv_kernel_query q = {d, sharded, contexts};
    return (struct kernels){hv_job_flash_attention(s->job, m, &q), hv_job_dropout(s->job, m, &q),
                            hv_job_eager_kernels(s->job, m, &q)};
}

static bool differ(struct kernels a, struct kernels b)
{
    return a.fused != b.fused || a.dropout != b.dropout || a.eager != b.eager;
}

static void add_slots(struct hv__search *s, const struct hv_node_group *g,
                      const struct hv_slots *slots)
{
    struct hv__pool p = {.kind = slots->kind, .node_devices = (int)slots->count};
    uint32_t joined = g->domain_nodes > 1 ? g->domain_nodes : 1;
    p.n = (int)(g->count * slots->count);
    p.per_node = (int)(slots->count * (joined < g->count ? joined : g->count));
    p.ids = hv_arena_new(&s->arena, uint32_t, (size_t)p.n);
    for (uint32_t node = 0, at = 0; node < g->count; node++) {
        for (uint32_t d = 0; d < slots->count; d++)
            p.ids[at++] = g->first_device + node * g->n_devices + slots->first + d;
    }
    p.node_usd_h = hv_node_price_usd_per_h(g, false);
    p.limit_bytes = slots->kind->memory_bytes - reserve_bytes(s, slots->kind);
    p.flow_bytes_per_s = hv_or(g->nic.bytes_per_s, HV_NIC_BYTES_PER_S) / slots->count;
    struct kernels plain = kernels_of(s, p.kind, false, false);
    p.shards_change = differ(plain, kernels_of(s, p.kind, true, false));
    p.contexts_change = differ(plain, kernels_of(s, p.kind, false, true));
    add_pool(s, &p);
}

void hv__find_pools(struct hv__search *s)
{
    const struct hv_cluster *c = hv_cost_cluster(s->k);
    for (size_t i = 0; i < c->n_groups; i++) {
        const struct hv_node_group *g = &c->groups[i];
        for (size_t k = 0; k < g->n_slots; k++) {
            if (takes_part(s, g, g->slots[k].kind) && g->slots[k].count > 0 && g->count > 0)
                add_slots(s, g, &g->slots[k]);
        }
    }
}
