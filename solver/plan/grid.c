/*
 * Uniform plans from degrees: devices in file order, ranges of blocks, one replica entry. Whether
 * the plan is valid or fits is checked by check.c and solver/eval.
 */
#include "solver/plan/grid.h"

#include "solver/base/units.h"
#include <math.h>
#include <string.h>

static int at_least_one(int n)
{
    return n > 0 ? n : 1;
}

/* The grid with every zero replaced by its default. */
static struct hv_grid with_defaults(const struct hv_grid *given)
{
    struct hv_grid g = *given;
    g.tp = at_least_one(g.tp);
    g.pp = at_least_one(g.pp);
    g.dp = at_least_one(g.dp);
    g.cp = at_least_one(g.cp);
    g.ep = at_least_one(g.ep);
    g.chunks = at_least_one(g.chunks);
    g.micro_batch = at_least_one(g.micro_batch);
    if (g.schedule == NULL) {
        g.schedule = g.chunks > 1 ? "interleaved" : "1f1b";
    }
    return g;
}

int64_t hv_grid_devices(const struct hv_grid *given)
{
    struct hv_grid g = with_defaults(given);
    const int degrees[] = {g.tp, g.pp, g.cp, g.dp};
    int64_t n = 1;
    for (size_t i = 0; i < HV_COUNT(degrees); i++) {
        n *= degrees[i];
        if (n > HV_CLUSTER_MAX_DEVICES) {
            return (int64_t)HV_CLUSTER_MAX_DEVICES + 1;
        }
    }
    return n;
}

static void spread_evenly(size_t n, int parts, int *counts)
{
    int each = (int)(n / (size_t)parts), more = (int)(n % (size_t)parts);
    for (int i = 0; i < parts; i++) {
        counts[i] = each + (i < more ? 1 : 0);
    }
}

enum hv_status hv_grid_counts(size_t n_blocks, int parts, int *counts, struct hv_err *err)
{
    size_t p = (size_t)parts;
    if (parts > 2 && n_blocks % p != 0 && (n_blocks + 2) % p == 0) {
        spread_evenly(n_blocks + 2, parts, counts);
        counts[0]--;
        counts[parts - 1]--;
        return HV_OK;
    }
    if (p > n_blocks) {
        return hv_err_set(err, HV_ENO, "%d chunks are more than the %zu layers of the model", parts,
                          n_blocks);
    }
    spread_evenly(n_blocks, parts, counts);
    return HV_OK;
}

/* True where a rank may run on the device: neither drained nor spare, not a CPU, able to compute in
 * the precision. */
static bool takes_part(const struct hv_node_group *g, const struct hv_device_kind *k,
                       enum hv_precision precision)
{
    return g->state == HV_NODE_OK && k->cls != HV_CLASS_CPU && hv_device_has(k, precision);
}

static bool same_fabric(const struct hv_device_kind *a, const struct hv_device_kind *b)
{
    return strcmp(a->fabric ? a->fabric : "", b->fabric ? b->fabric : "") == 0;
}

/* Devices of a's fabric that can take part. */
static uint64_t fabric_size(const struct hv_cluster *c, const struct hv_device_kind *a,
                            enum hv_precision precision)
{
    uint64_t n = 0;
    for (size_t i = 0; i < c->n_groups; i++) {
        const struct hv_node_group *g = &c->groups[i];
        for (size_t s = 0; s < g->n_slots; s++) {
            const struct hv_device_kind *k = g->slots[s].kind;
            if (takes_part(g, k, precision) && same_fabric(a, k)) {
                n += (uint64_t)g->count * g->slots[s].count;
            }
        }
    }
    return n;
}

/* A kind of the fabric with most devices; the first mentioned wins ties. */
static const struct hv_device_kind *largest_fabric(const struct hv_cluster *c,
                                                   enum hv_precision precision, uint64_t *n)
{
    const struct hv_device_kind *best = NULL;
    *n = 0;
    for (size_t i = 0; i < c->n_kinds; i++) {
        uint64_t size = fabric_size(c, c->kinds[i], precision);
        if (size > *n) {
            best = c->kinds[i];
            *n = size;
        }
    }
    return best;
}

/* The free end of a list of devices, with the kind and precision that it accepts. */
struct taker {
    const struct hv_device_kind *like;
    enum hv_precision precision;
    uint32_t *ids;
    size_t left;
};

static void take_node(struct taker *t, const struct hv_node_group *g, uint32_t first)
{
    for (size_t s = 0; s < g->n_slots; s++) {
        const struct hv_slots *slots = &g->slots[s];
        if (!takes_part(g, slots->kind, t->precision) || !same_fabric(t->like, slots->kind)) {
            continue;
        }
        for (uint32_t d = 0; d < slots->count && t->left > 0; d++, t->left--) {
            *t->ids++ = first + slots->first + d;
        }
    }
}

/* The first `n` devices in file order. */
static uint32_t *take_devices(const struct hv_cluster *c, struct hv_arena *arena, struct taker t)
{
    uint32_t *ids = t.ids = hv_arena_new(arena, uint32_t, t.left);
    for (size_t i = 0; i < c->n_groups && t.left > 0; i++) {
        const struct hv_node_group *g = &c->groups[i];
        for (uint32_t node = 0; node < g->count && t.left > 0; node++) {
            take_node(&t, g, g->first_device + node * g->n_devices);
        }
    }
    return ids;
}

static void fill_stage(struct hv_plan *p, struct hv_stage *s, const struct hv_grid *g)
{
    hv_stage_defaults(s);
    s->ranges = hv_arena_new(&p->arena, struct hv_range, (size_t)g->chunks);
    s->n_ranges = (size_t)g->chunks;
    s->tp.degree = g->tp;
    s->cp.degree = g->cp;
    s->cp.layout = g->cp > 1 ? g->cp_layout : HV_CP_CONTIGUOUS;
    s->dp = g->dp;
    s->ep = g->ep;
    s->zero.stage = g->zero;
    s->zero.shard_group = g->shard_group;
    s->zero.reduce = hv_zero_default_reduce(g->zero, g->shard_group);
    s->recompute = g->recompute;
    s->sequence_parallel = g->sequence_parallel && g->tp > 1;
}

/* Ranges of blocks; where a chunk is the embedding or head alone, every stage states explicitly
 * what it holds. */
static void fill_ranges(struct hv_replica *r, const struct hv_grid *g, const int *counts)
{
    int parts = g->pp * g->chunks, at = 0;
    bool hollow = counts[0] == 0 || counts[parts - 1] == 0;
    for (int i = 0; i < parts; i++) {
        struct hv_stage *s = &r->stages[i % g->pp];
        s->ranges[i / g->pp] = (struct hv_range){2 * at, 2 * (at + counts[i])};
        at += counts[i];
    }
    for (int i = 0; hollow && i < g->pp; i++) {
        r->stages[i].embedding = i == 0;
        r->stages[i].head = i == g->pp - 1;
    }
}

/* Megatron-LM's default size of a gradient bucket (DistributedDataParallelConfig): 40 million
 * parameters, or a million for each rank that reduces them where that is more. */
static double bucket_bytes(const struct hv_grid *g)
{
    return fmax(40e6, 1e6 * g->dp * g->cp) * g->grad_bytes;
}

static struct hv_plan *build(struct hv_cluster *cluster, const struct hv_grid *g, const int *counts)
{
    struct hv_plan *p = hv_plan_new(cluster);
    p->micro_batch = g->micro_batch * g->dp;
    p->schedule.name = hv_arena_strdup(&p->arena, g->schedule);
    p->replicas = hv_arena_new(&p->arena, struct hv_replica, 1);
    p->n_replicas = 1;
    p->sync.overlap = !g->late_sync;
    if (g->grad_bytes > 0) {
        p->sync.bucket_bytes[0] = bucket_bytes(g);
    }
    struct hv_replica *r = &p->replicas[0];
    r->count = 1;
    r->micro_batches = g->global_batch / p->micro_batch;
    r->stages = hv_arena_new(&p->arena, struct hv_stage, (size_t)g->pp);
    r->n_stages = (size_t)g->pp;
    for (int i = 0; i < g->pp; i++) {
        fill_stage(p, &r->stages[i], g);
    }
    fill_ranges(r, g, counts);
    return p;
}

enum hv_status hv_plan_grid(struct hv_cluster *cluster, enum hv_precision precision,
                            size_t n_blocks, const struct hv_grid *given, struct hv_plan **out,
                            struct hv_err *err)
{
    struct hv_grid g = with_defaults(given);
    struct hv_arena scratch = {0};
    uint64_t have = 0;
    const struct hv_device_kind *like = largest_fabric(cluster, precision, &have);
    int64_t need = hv_grid_devices(&g), per_step = (int64_t)g.dp * g.micro_batch;
    *out = NULL;
    if (like == NULL || (uint64_t)need > have) {
        return hv_err_set(err, HV_ENO,
                          "tp %d x pp %d x cp %d x dp %d = %lld devices, the cluster has %llu that "
                          "can compute in %s",
                          g.tp, g.pp, g.cp, g.dp, (long long)need, (unsigned long long)have,
                          hv_precision_name(precision));
    }
    if (g.global_batch < per_step || g.global_batch % per_step != 0) {
        return hv_err_set(err, HV_ENO,
                          "a global batch of %lld is not dp %d x micro_batch %d x a whole number",
                          (long long)g.global_batch, g.dp, g.micro_batch);
    }
    if ((int64_t)g.pp * g.chunks > (int64_t)n_blocks + 2) {
        return hv_err_set(err, HV_ENO, "%d stages x %d chunks are more than the %zu layers", g.pp,
                          g.chunks, n_blocks);
    }
    int parts = g.pp * g.chunks;
    int *counts = hv_arena_new(&scratch, int, (size_t)parts);
    enum hv_status st = HV_OK;
    if (g.counts != NULL) {
        memcpy(counts, g.counts, (size_t)parts * sizeof *counts);
    } else {
        st = hv_grid_counts(n_blocks, parts, counts, err);
    }
    if (st == HV_OK) {
        *out = build(cluster, &g, counts);
        struct taker t = {.like = like, .precision = precision, .left = (size_t)need};
        uint32_t *ids = take_devices(cluster, &(*out)->arena, t);
        for (int i = 0; i < g.pp; i++) {
            (*out)->replicas[0].stages[i].n_devices = (size_t)(need / g.pp);
            (*out)->replicas[0].stages[i].devices = ids + i * (need / g.pp);
        }
    }
    hv_arena_free(&scratch);
    return st;
}
