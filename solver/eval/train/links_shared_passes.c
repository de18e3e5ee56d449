/**
 * Communication of ranks that shares links: inside passes, gathers of sharded weights,
 * tensor-parallel all-reduces and all-to-alls of experts that leave their nodes, of stages or
 * pipelines on the same nodes or over the same named link. It is spread evenly over its pass
 * (sim/links/links.h): this is exact for the total load of a link, and ignores bursts that collide
 * where the bandwidth suffices on average. Streams of gathers and scatters beside the passes use
 * them task by task.
 */
#include "solver/eval/train/steps.h"

#include <stdlib.h>

struct demand_list {
    struct hv__demand *items;
    size_t n, cap;
    double *rate_bytes_per_s; /* see hv__demands */
};

static void add(struct demand_list *x, enum hv_wire kind, uint64_t number, size_t rank,
                double busy_s)
{
    if (x->n == x->cap) {
        x->cap = x->cap > 0 ? 2 * x->cap : 64;
        x->items = hv_xrealloc(x->items, x->cap, sizeof *x->items);
    }
    x->items[x->n++] = (struct hv__demand){hv_wire_id(kind, number), rank, busy_s};
}

static int by_wire(const void *x, const void *y)
{
    const struct hv__demand *a = x, *b = y;
    if (a->wire != b->wire) {
        return a->wire < b->wire ? -1 : 1;
    }
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/** Share of every operation of a pipeline that is communication. NULL: no operation communicates.
 */
static double *list_fracs(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    size_t n = pl->n_pipes * pl->n_gstages;
    double *frac = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct hv__gstage *g = &pl->gstages[i];
        double f = g->network_forward_s, b = g->network_backward_s;
        if (!(f > 0 || b > 0)) {
            continue;
        }
        if (frac == NULL) {
            frac = hv_arena_new(l->arena, double, n *HV_OP_KIND_N);
        }
        double *x = frac + i * HV_OP_KIND_N;
        x[HV_OP_F] = g->forward_s[g->shape] > 0 ? fmin(1, f / g->forward_s[g->shape]) : 0;
        double input_s = g->input_grad_s[g->shape], weight_s = g->weight_grad_s[g->shape];
        double w = g->network_weight_s;
        x[HV_OP_B] = input_s > 0 ? fmin(1, fmax(0, b - w) / input_s) : 0;
        x[HV_OP_W] = weight_s > 0 ? fmin(1, w / weight_s) : 0;
        x[HV_OP_BW] = g->backward_s[g->shape] > 0 ? fmin(1, b / g->backward_s[g->shape]) : 0;
    }
    return frac;
}

/** The largest share of any operation of a rank. */
static double peak_of(const struct hv__pipeline *pl, const double *frac, size_t rank)
{
    double most = pl->cost.pair_s != NULL; /* pairs may exchange all the time */
    for (size_t i = 0; i < pl->n_pipes * pl->n_gstages; i++) {
        for (size_t k = 0; pl->gstages[i].rank == rank && k < HV_OP_KIND_N; k++) {
            most = fmax(most, frac[i * HV_OP_KIND_N + k]);
        }
    }
    return most;
}

/** Adds the seconds per byte of a step of a ring from one node to the next: the network of both,
 * and what is between them. Returns the rate of the slowest. */
static double add_step(const struct hv_cluster *c, uint32_t from, uint32_t to, size_t rank,
                       struct demand_list *out)
{
    const struct hv_network_link *x = c->n_links > 0 ? hv_cluster_link(c, from, to) : NULL;
    double sends = hv_cost_node_bytes_per_s(c, from, x);
    double takes = hv_cost_node_bytes_per_s(c, to, x), slowest = fmin(sends, takes);
    add(out, HV_WIRE_NODE_OUT, from, rank, 1 / sends);
    add(out, HV_WIRE_NODE_IN, to, rank, 1 / takes);
    if (x != NULL && hv_known(x->bytes_per_s)) {
        add(out, HV_WIRE_LINK, 2 * (uint64_t)(x - c->links), rank, 1 / x->bytes_per_s);
        add(out, HV_WIRE_LINK, 2 * (uint64_t)(x - c->links) + 1, rank, 1 / x->bytes_per_s);
        slowest = fmin(slowest, x->bytes_per_s);
    } else if (c->matrix_bytes_per_s != NULL) {
        double between = hv_cluster_node_path(c, from, to).bytes_per_s;
        add(out, HV_WIRE_PAIR, (uint64_t)from * c->n_nodes + to, rank, 1 / between);
        slowest = fmin(slowest, between);
    }
    return slowest;
}

/** Adds the demand of a rank per second of exchanges that are its part of a ring through the nodes
 * of devices: their networks, and what is between them. The slowest is busy all the time. */
static void add_ring(const struct hv_cluster *c, const uint32_t *devices, size_t n, size_t rank,
                     double part, struct demand_list *out)
{
    struct demand_list own = {0};
    double slowest = HUGE_VAL;
    uint32_t before = hv_cluster_node_of(c, devices[n - 1]);
    for (size_t i = 0; i < n; i++) { /* seconds per byte, until the slowest is known */
        uint32_t node = hv_cluster_node_of(c, devices[i]);
        if (node != before) {
            slowest = fmin(slowest, add_step(c, before, node, rank, &own));
        }
        before = node;
    }
    if (own.n > 1) {
        qsort(own.items, own.n, sizeof *own.items, by_wire);
    }
    out->rate_bytes_per_s[rank] = fmin(out->rate_bytes_per_s[rank], slowest);
    for (size_t i = 0, last; i < own.n; i = last) { /* a ring passes everything once */
        double busy_s = 0;
        for (last = i; last < own.n && own.items[last].wire == own.items[i].wire; last++) {
            busy_s = fmax(busy_s, own.items[last].busy_s);
        }
        uint64_t wire = own.items[i].wire;
        add(out, (enum hv_wire)(wire % HV_WIRE_N), wire / HV_WIRE_N, rank, part * busy_s * slowest);
    }
    free(own.items);
}

/** Adds the demands of the groups of one copy: those of several data-parallel ranks on a NIC have
 * their part of it each, as they are priced. */
static void add_groups(const struct hv__lowered *l, const struct hv__rank *rk,
                       const uint32_t *devices, size_t flat, struct demand_list *out)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    size_t group = rk->width * rk->cuts; /* ranks with unequal shards are of one group */
    const struct hv_family f = {devices, rk->n_devices, 1, group};
    double *part = hv_arena_new(l->arena, double, rk->n_dp);
    for (size_t d = 0; d < rk->n_dp; d += rk->cuts) {
        const uint32_t *own = devices + d * rk->width;
        if (!hv_cluster_is_far(c, own, group, 1)) {
            continue;
        }
        part[d] = rk->like[d] != d ? part[rk->like[d]] : 1 / hv_cost_together(c, &f, d * rk->width);
        add_ring(c, own, group, flat, part[d], out);
    }
}

/** True where passes gather weights or scatter gradients. */
static bool shards_passes(const struct hv_zero *z)
{
    return !hv_zero_by_schedule(z) && (z->stage >= 3 || hv_zero_scatters(z));
}

/** Adds the ring of all copies of an entry, which hold shards of the same: each pipeline has its
 * part of it. */
static void add_copies(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t rank,
                       size_t flat, struct demand_list *out)
{
    const struct hv__rank *rk = &pl->ranks[rank];
    const struct hv_stage *s = &pl->replica->stages[rk->stage];
    size_t copies = (size_t)pl->replica->count;
    double part = (double)pl->multiplicity / (double)copies;
    add_ring(hv_cost_cluster(l->k), s->devices, copies * rk->n_devices, flat, part, out);
}

/** Demands of a rank of a pipeline. Each copy has a ring of its own; where states are sharded,
 * all copies of the entry form one. */
static void add_rank(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t rank,
                     size_t flat, struct demand_list *out)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const struct hv__rank *rk = &pl->ranks[rank];
    const struct hv_stage *s = &pl->replica->stages[rk->stage];
    bool shards = shards_passes(&s->zero);
    for (size_t i = 0; i < s->n_degrees; i++) {
        shards = shards || shards_passes(&s->degrees[i].zero);
    }
    if (pl->replica->count > 1 && shards) {
        add_copies(l, pl, rank, flat, out);
        return;
    }
    for (int k = 0; k < pl->multiplicity; k++) {
        const uint32_t *devices = s->devices + (size_t)pl->copies[k] * rk->n_devices;
        if (k > 0 && pl->hops.apart[k]) {
            continue;
        }
        if (!shards && s->ep < 2 && s->n_moe == 0 && s->n_degrees == 0) {
            add_groups(l, rk, devices, flat, out);
        } else {
            add_ring(c, devices, rk->n_devices, flat, 1, out);
        }
    }
}

/** Adds up the demands of the copies of a rank. */
static void merge_copies(struct demand_list *x)
{
    size_t kept = 0;
    qsort(x->items, x->n, sizeof *x->items, by_wire);
    for (size_t i = 0; i < x->n; i++) {
        if (kept > 0 && by_wire(&x->items[kept - 1], &x->items[i]) == 0) {
            x->items[kept - 1].busy_s += x->items[i].busy_s;
        } else {
            x->items[kept++] = x->items[i];
        }
    }
    x->n = kept;
}

/** Adds what the passes of a pipeline ask for, and what its streams do. */
static void add_pipeline(const struct hv__lowered *l, size_t i, const struct hv__demands *d,
                         struct demand_list *out)
{
    const struct hv__pipeline *pl = &l->pipelines.items[i];
    size_t n_ranks = l->pipelines.rank_at[l->pipelines.n];
    for (size_t r = 0; r < pl->n_ranks; r++) {
        size_t flat = l->pipelines.rank_at[i] + r, stream = n_ranks + flat;
        d->peak[flat] = d->frac[i] != NULL ? peak_of(pl, d->frac[i], r) : 0;
        if (d->peak[flat] > 0) {
            add_rank(l, pl, r, flat, out);
        }
        if (d->task_frac[i] != NULL) {
            const size_t *at = pl->cost.stream->task_at;
            for (size_t k = at[r]; k < at[r + 1]; k++) {
                d->peak[stream] = fmax(d->peak[stream], d->task_frac[i][k]);
            }
        }
        if (d->peak[stream] > 0) {
            add_copies(l, pl, r, stream, out);
        }
    }
}

const struct hv__demands *hv__find_demands(const struct hv__lowered *l)
{
    size_t n = l->pipelines.n, n_ranks = l->pipelines.rank_at[n];
    bool any = false;
    double **frac = hv_arena_new(l->arena, double *, 2 * n + 1);
    for (size_t i = 0; i < n; i++) {
        frac[i] = list_fracs(l, &l->pipelines.items[i]);
        frac[n + i] = hv__task_fracs(l, &l->pipelines.items[i]);
        any = any || frac[i] != NULL || frac[n + i] != NULL;
    }
    if (!any) {
        return NULL;
    }
    struct hv__demands *out = hv_arena_new(l->arena, struct hv__demands, 1);
    *out = (struct hv__demands){.frac = frac,
                                .task_frac = frac + n,
                                .peak = hv_arena_new(l->arena, double, 2 * n_ranks),
                                .rate_bytes_per_s = hv_arena_new(l->arena, double, 2 * n_ranks)};
    struct demand_list all = {.rate_bytes_per_s = out->rate_bytes_per_s};
    for (size_t i = 0; i < 2 * n_ranks; i++) {
        all.rate_bytes_per_s[i] = HUGE_VAL;
    }
    for (size_t i = 0; i < n; i++) {
        add_pipeline(l, i, out, &all);
    }
    if (all.n > 1) {
        merge_copies(&all);
    }
    out->n = all.n;
    out->items = all.n > 0 ? hv_arena_copy(l->arena, all.items, all.n, sizeof *all.items) : NULL;
    free(all.items);
    return out->n > 0 ? out : NULL;
}
