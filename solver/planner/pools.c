/*
 * Pools: groups of equal devices, and their properties. Drained and spare nodes, CPUs, and devices
 * that lack the precision or the measured times of a layer are left out.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"

#include <math.h>
#include <string.h>

#define POOLS_FOUND 64 /* distinct pools of a cluster, of which the strongest are searched */

static bool is_priced(const struct hv__search *s, const struct hv_device_kind *k)
{
    double all_s = 0;
    for (unsigned i = 0; i < hv_cost_n_classes(s->k); i++) {
        all_s += hv_cost_floor_s(s->k, HV_PART_ATTENTION, hv_cost_class_block(s->k, i), k);
    }
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
    if (p->n + n > p->room) {
        int room = 2 * (p->n + n);
        uint32_t *all = hv_arena_new(&s->arena, uint32_t, (size_t)room);
        memcpy(all, p->ids, (size_t)p->n * sizeof *all);
        p->ids = all;
        p->room = room;
    }
    memcpy(p->ids + p->n, ids, (size_t)n * sizeof *ids);
    p->n += n;
}

/* True where one group of all their nodes would be the same cluster. (An inventory may list
 * every node by itself.) */
static bool are_alike(const struct hv__search *s, const struct hv__pool *p,
                      const struct hv__pool *q)
{
    const struct hv_cluster *c = hv_cost_cluster(s->k);
    const struct hv_node_group *a = &c->groups[hv_cluster_device(c, p->ids[0]).group];
    const struct hv_node_group *b = &c->groups[hv_cluster_device(c, q->ids[0]).group];
    bool same_price =
        p->node_usd_h == q->node_usd_h || (!hv_known(p->node_usd_h) && !hv_known(q->node_usd_h));
    return p->kind == q->kind && p->per_node == q->per_node && p->node_devices == q->node_devices &&
           p->slots == q->slots && same_price && hv_node_groups_alike(a, b) &&
           hv_cluster_network_alike(c, a, b);
}

/* Pools found so far, equal ones merged. */
struct found {
    struct hv__pool pools[POOLS_FOUND];
    int n;
};

/* The pool of the same kind in nodes of the same size, with other links or in another place; NULL:
 * there is none. */
static struct hv__pool *same_kind(struct hv__pool *pools, int n, const struct hv__pool *q)
{
    for (int i = 0; i < n; i++) {
        struct hv__pool *p = &pools[i];
        if (p->kind == q->kind && p->per_node == q->per_node &&
            p->node_devices == q->node_devices) {
            return p;
        }
    }
    return NULL;
}

/* Merges q into a pool of the same kind. False: there is none. */
static bool join_same_kind(struct hv__search *s, struct hv__pool *pools, int n,
                           const struct hv__pool *q)
{
    struct hv__pool *p = same_kind(pools, n, q);
    if (p != NULL) {
        append_ids(s, p, q->ids, q->n);
        p->flow_bytes_per_s = fmin(p->flow_bytes_per_s, q->flow_bytes_per_s);
    }
    return p != NULL;
}

static int weakest_of(const struct hv__search *s, const struct found *f)
{
    int weakest = 0;
    for (int i = 1; i < f->n; i++) {
        weakest = pool_speed(s, &f->pools[i]) < pool_speed(s, &f->pools[weakest]) ? i : weakest;
    }
    return weakest;
}

/* Merges q into an equal pool. Where there are too many pools: into one of the same kind, otherwise
 * the weakest pool is dropped. */
static void add_pool(struct hv__search *s, struct found *f, const struct hv__pool *q)
{
    for (int i = 0; i < f->n; i++) {
        if (are_alike(s, &f->pools[i], q)) {
            append_ids(s, &f->pools[i], q->ids, q->n);
            return;
        }
    }
    if (f->n < POOLS_FOUND) {
        f->pools[f->n++] = *q;
        return;
    }
    int weakest = weakest_of(s, f);
    if (!join_same_kind(s, f->pools, f->n, q) &&
        pool_speed(s, q) > pool_speed(s, &f->pools[weakest])) {
        f->pools[weakest] = *q;
    }
}

/* The strongest pools become those of the search; the others join one of the same kind, where there
 * is one. All equal nodes were merged before, so that it does not matter how many groups of a file
 * they form. */
static void keep_strongest(struct hv__search *s, struct found *f)
{
    struct found weak = {.n = 0};
    while (f->n > HV__POOLS) {
        int weakest = weakest_of(s, f);
        weak.pools[weak.n++] = f->pools[weakest];
        memmove(&f->pools[weakest], &f->pools[weakest + 1],
                (size_t)(f->n - weakest - 1) * sizeof *f->pools);
        f->n--;
    }
    memcpy(s->pools, f->pools, (size_t)f->n * sizeof *s->pools);
    s->n_pools = f->n;
    while (weak.n > 0) {
        (void)join_same_kind(s, s->pools, s->n_pools, &weak.pools[--weak.n]);
    }
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

/* Devices of a node's slots that are not lost, into `ids` (NULL: only counted). */
static int left_of(const struct hv__search *s, const struct hv_node_group *g,
                   const struct hv_slots *slots, uint32_t node, uint32_t *ids)
{
    uint32_t first = g->first_device + node * g->n_devices + slots->first;
    int n = 0;
    for (uint32_t d = first; d < first + slots->count; d++) {
        if (s->o->lost != NULL && s->o->lost[d]) {
            continue;
        }
        if (ids != NULL) {
            ids[n] = d;
        }
        n++;
    }
    return n;
}

/* The pool of the nodes in which this many devices of these slots remain; a link domain that lost a
 * node counts as single nodes. */
static void add_slots_with(struct hv__search *s, struct found *f, const struct hv_node_group *g,
                           const struct hv_slots *slots, int left)
{
    struct hv__pool p = {
        .kind = slots->kind, .node_devices = left, .slots = (size_t)(slots - g->slots)};
    p.room = (int)(g->count * slots->count);
    p.ids = hv_arena_new(&s->arena, uint32_t, (size_t)p.room);
    for (uint32_t node = 0; node < g->count; node++) {
        if (left_of(s, g, slots, node, NULL) == left) {
            p.n += left_of(s, g, slots, node, p.ids + p.n);
        }
    }
    if (p.n == 0) {
        return;
    }
    uint32_t joined = g->domain_nodes > 1 && p.n == p.room ? g->domain_nodes : 1;
    p.per_node = left * (int)(joined < g->count ? joined : g->count);
    p.node_usd_h = hv_node_price_usd_per_h(g, false);
    p.limit_bytes = slots->kind->memory_bytes - reserve_bytes(s, slots->kind);
    p.flow_bytes_per_s = hv_or(g->nic.bytes_per_s, HV_NIC_BYTES_PER_S) / left;
    struct kernels plain = kernels_of(s, p.kind, false, false);
    p.shards_change = differ(plain, kernels_of(s, p.kind, true, false));
    p.contexts_change = differ(plain, kernels_of(s, p.kind, false, true));
    add_pool(s, f, &p);
}

static void add_slots(struct hv__search *s, struct found *f, const struct hv_node_group *g,
                      const struct hv_slots *slots)
{
    int least = s->o->lost != NULL ? 1 : (int)slots->count;
    for (int left = (int)slots->count; left >= least; left--) {
        add_slots_with(s, f, g, slots, left);
    }
}

static int by_number(double a, double b)
{
    double x = hv_or(a, -1), y = hv_or(b, -1);
    return x > y ? -1 : x < y;
}

/* Fastest device first, then by everything else that a plan depends on: the order of groups in the
 * file has no meaning, so it must not decide between equally good plans. */
static int order_of(const struct hv__search *s, const struct hv__pool *p, const struct hv__pool *q)
{
    enum hv_precision in = s->job->precision;
    const double a[] = {hv_device_peak_flops_per_s(p->kind, in),
                        p->kind->memory_bytes,
                        p->kind->memory_bytes_per_s,
                        p->kind->link_bytes_per_s,
                        p->limit_bytes,
                        p->node_devices,
                        p->per_node,
                        p->n,
                        p->flow_bytes_per_s,
                        p->node_usd_h};
    const double b[] = {hv_device_peak_flops_per_s(q->kind, in),
                        q->kind->memory_bytes,
                        q->kind->memory_bytes_per_s,
                        q->kind->link_bytes_per_s,
                        q->limit_bytes,
                        q->node_devices,
                        q->per_node,
                        q->n,
                        q->flow_bytes_per_s,
                        q->node_usd_h};
    int way = 0;
    for (size_t i = 0; i < HV_COUNT(a) && way == 0; i++) {
        way = by_number(a[i], b[i]);
    }
    return way != 0 ? way : strcmp(p->kind->name, q->kind->name);
}

static void sort_pools(struct hv__search *s)
{
    for (int i = 1; i < s->n_pools; i++) {
        struct hv__pool p = s->pools[i];
        int at = i;
        for (; at > 0 && order_of(s, &s->pools[at - 1], &p) > 0; at--) {
            s->pools[at] = s->pools[at - 1];
        }
        s->pools[at] = p;
    }
}

void hv__find_pools(struct hv__search *s)
{
    const struct hv_cluster *c = hv_cost_cluster(s->k);
    struct found *f = hv_arena_new(&s->arena, struct found, 1);
    for (size_t i = 0; i < c->n_groups; i++) {
        const struct hv_node_group *g = &c->groups[i];
        for (size_t k = 0; k < g->n_slots; k++) {
            if (takes_part(s, g, g->slots[k].kind) && g->slots[k].count > 0 && g->count > 0) {
                add_slots(s, f, g, &g->slots[k]);
            }
        }
    }
    keep_strongest(s, f);
    sort_pools(s);
}

int hv__experts(const struct hv__search *s)
{
    const struct hv_model *m = hv_cost_model(s->k);
    int experts = 0;
    for (size_t i = 0; m->blocks != NULL && i < m->n_blocks && experts == 0; i++) {
        experts = m->blocks[i].experts;
    }
    return experts;
}

bool hv__splits_blocks(const struct hv__search *s)
{
    return hv_cost_model(s->k)->kind == HV_MODEL_TRANSFORMER;
}
