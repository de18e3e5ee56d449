/**
 * Transfers that meet on a link: which of a plan's transfers load which elements of the network,
 * and the runs of its pipelines when they share them (sim/share.h). Where nothing meets, the runs
 * stand as they are.
 */
#include "solver/eval/eval_int.h"

#include "solver/base/rng.h"

#include <stdlib.h>

/** Shares of an element that add up to this much more than all of it are rounding. */
#define ROUNDING 1e-9

/** What one sending asks of one element; sendings are numbered through all units. */
struct use {
    uint64_t wire;
    size_t sending;
    double busy_s;
};

/** An element: its uses. */
struct element {
    size_t from, to;
    uint64_t hash; /**< of what asks how much of it */
};

struct uses {
    struct use *items;
    size_t n;
    size_t *first_sending; /**< [n_units + 1] */
};

static int by_wire(const void *x, const void *y)
{
    const struct use *a = x, *b = y;
    if (a->wire != b->wire) {
        return a->wire < b->wire ? -1 : 1;
    }
    return (a->sending > b->sending) - (a->sending < b->sending);
}

static int by_hash(const void *x, const void *y)
{
    const struct element *a = x, *b = y;
    if (a->hash != b->hash) {
        return a->hash < b->hash ? -1 : 1;
    }
    return (a->from > b->from) - (a->from < b->from);
}

/** What joins two ranks belongs to them alone: in files it has no name. */
static uint64_t own_wire(const struct hv__lowered *l, size_t unit, const struct hv__sending *x)
{
    uint64_t ranks = l->rank_at[l->n_units];
    return hv_wire_id(HV_WIRE_OWN, (l->rank_at[unit] + x->from) * ranks + l->rank_at[unit] + x->to);
}

/** Everything that sendings and, behind them, exchanges of ranks ask for, by element. */
static struct uses list_uses(struct hv__lowered *l, const struct hv__asks *asks)
{
    struct uses u = {.first_sending = hv_arena_new(l->arena, size_t, l->n_units + 1)};
    size_t most = asks != NULL ? asks->n : 0;
    for (size_t i = 0; i < l->n_units; i++) {
        u.first_sending[i + 1] = u.first_sending[i] + l->units[i].n_sendings;
        for (size_t k = 0; k < l->units[i].n_sendings; k++) {
            most += l->units[i].sendings[k].n_loads + 1;
        }
    }
    u.items = hv_arena_new(l->arena, struct use, most + 1);
    for (size_t i = 0; i < l->n_units; i++) {
        for (size_t k = 0; k < l->units[i].n_sendings; k++) {
            const struct hv__sending *x = &l->units[i].sendings[k];
            size_t number = u.first_sending[i] + k;
            if (x->cost.alone_s > 0) {
                u.items[u.n++] = (struct use){own_wire(l, i, x), number, x->cost.alone_s};
            }
            for (size_t w = 0; w < x->n_loads; w++) {
                u.items[u.n++] = (struct use){x->loads[w].wire, number, x->loads[w].busy_s};
            }
        }
    }
    for (size_t i = 0; asks != NULL && i < asks->n; i++) {
        const struct hv__ask *x = &asks->items[i];
        u.items[u.n++] = (struct use){x->wire, u.first_sending[l->n_units] + x->rank, x->busy_s};
    }
    if (u.n > 1) {
        qsort(u.items, u.n, sizeof *u.items, by_wire);
    }
    return u;
}

/** The unit of a sending, by halving. */
static size_t unit_of(const struct uses *u, size_t n_units, size_t sending)
{
    size_t low = 0, high = n_units;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        *(u->first_sending[mid] <= sending ? &low : &high) = mid;
    }
    return low;
}

/** How much of an element is busy while a sending is under way or a rank exchanges most. */
static double share_of(const struct hv__lowered *l, const struct uses *u, const struct use *x)
{
    size_t n_sendings = u->first_sending[l->n_units];
    if (x->sending >= n_sendings) {
        return x->busy_s * l->asks->peak[x->sending - n_sendings];
    }
    size_t unit = unit_of(u, l->n_units, x->sending);
    const struct hv__sending *s = &l->units[unit].sendings[x->sending - u->first_sending[unit]];
    return s->cost.bytes_s > 0 ? x->busy_s / s->cost.bytes_s : 0;
}

/** Leaves out exchanges on elements that have room for all that may be under way at once. Are any
 * left? */
static bool keep_tight(const struct hv__lowered *l, struct uses *u)
{
    size_t kept = 0, n_sendings = u->first_sending[l->n_units];
    bool any = false;
    for (size_t i = 0, last; i < u->n; i = last) {
        double sum = 0;
        for (last = i; last < u->n && u->items[last].wire == u->items[i].wire; last++) {
            sum += share_of(l, u, &u->items[last]);
        }
        for (size_t k = i; k < last; k++) {
            bool exchange = u->items[k].sending >= n_sendings;
            if (!exchange || sum > 1 + ROUNDING) {
                any = any || exchange;
                u->items[kept++] = u->items[k];
            }
        }
    }
    u->n = kept;
    return any;
}

/** Elements that are asked for in the same way say the same: one of them is kept. Returns how many
 * are left. */
static size_t find_elements(struct hv__lowered *l, const struct uses *u, struct element **out)
{
    struct element *e = hv_arena_new(l->arena, struct element, u->n + 1);
    size_t n = 0, kept = 0;
    for (size_t i = 0, last; i < u->n; i = last) {
        uint64_t h = HV_HASH_START;
        for (last = i; last < u->n && u->items[last].wire == u->items[i].wire; last++) {
            h = hv_hash(h, &u->items[last].sending, sizeof u->items[last].sending);
            h = hv_hash(h, &u->items[last].busy_s, sizeof u->items[last].busy_s);
        }
        e[n++] = (struct element){i, last, h};
    }
    if (n > 1) {
        qsort(e, n, sizeof *e, by_hash);
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || e[i].hash != e[i - 1].hash) {
            e[kept++] = e[i];
        }
    }
    *out = e;
    return kept;
}

/** Loads of every sending and every rank on the elements. */
static struct hv_link_hop *list_loads(struct hv__lowered *l, const struct uses *u,
                                      const struct element *e, size_t n)
{
    size_t n_sendings = u->first_sending[l->n_units] + l->rank_at[l->n_units];
    struct hv_link_hop *out = hv_arena_new(l->arena, struct hv_link_hop, n_sendings + 1);
    struct hv_link_load *loads = hv_arena_new(l->arena, struct hv_link_load, u->n + 1);
    size_t *at = hv_arena_new(l->arena, size_t, n_sendings + 2);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = e[i].from; k < e[i].to; k++) {
            at[u->items[k].sending + 2]++;
        }
    }
    for (size_t s = 2; s < n_sendings + 2; s++) {
        at[s] += at[s - 1];
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = e[i].from; k < e[i].to; k++) {
            loads[at[u->items[k].sending + 1]++] =
                (struct hv_link_load){(int32_t)i, u->items[k].busy_s};
        }
    }
    for (size_t i = 0; i < l->n_units; i++) {
        for (size_t k = 0; k < l->units[i].n_sendings; k++) {
            const struct hv_hop_cost *c = &l->units[i].sendings[k].cost;
            size_t s = u->first_sending[i] + k;
            out[s] = (struct hv_link_hop){.latency_s = c->latency_s,
                                          .bytes_s = c->bytes_s,
                                          .flow_bytes = c->flow_bytes,
                                          .loads = loads + at[s],
                                          .n_loads = at[s + 1] - at[s]};
        }
    }
    for (size_t s = u->first_sending[l->n_units]; s < n_sendings; s++) {
        out[s] = (struct hv_link_hop){.loads = loads + at[s], .n_loads = at[s + 1] - at[s]};
    }
    return out;
}

/** What the ranks of a unit ask for: a ring is a flow per device of a node. */
static struct hv_link_rank *list_ranks(struct hv__lowered *l, size_t unit,
                                       const struct hv_link_hop *loads)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const struct hv__unit *u = &l->units[unit];
    struct hv_link_rank *out = hv_arena_new(l->arena, struct hv_link_rank, u->n_ranks);
    for (size_t r = 0; r < u->n_ranks; r++) {
        const struct hv_link_hop *x = &loads[l->rank_at[unit] + r];
        const struct hv__rank *rk = &u->ranks[r];
        uint32_t node = hv_cluster_node_of(c, rk->devices[0]);
        double flows = 0;
        for (size_t d = 0; d < rk->n_devices; d++) {
            flows += hv_cluster_node_of(c, rk->devices[d]) == node;
        }
        double rate = hv_cluster_group_of_node(c, node)->nic.bytes_per_s;
        out[r] = (struct hv_link_rank){x->loads, x->n_loads, rate / flows};
    }
    return out;
}

/** The pipes with what their hops load. A run of which the middle was left out is timed anew, as
 * short as it was laid out. */
static void fill_pipes(struct hv__lowered *l, const struct uses *u,
                       const struct hv_link_hop *sendings, const struct hv__asks *asks,
                       struct hv_links *s)
{
    s->pipes = hv_arena_new(l->arena, struct hv_link_pipe, l->n_units);
    s->n_pipes = l->n_units;
    for (size_t i = 0; i < l->n_units; i++) {
        struct hv__unit *x = &l->units[i];
        size_t n = (size_t)x->pipe.n_hops;
        struct hv_link_hop *hops = hv_arena_new(l->arena, struct hv_link_hop, n + 1);
        for (size_t h = 0; h < n; h++) {
            if (x->sending_of_hop[h] >= 0) {
                hops[h] = sendings[u->first_sending[i] + (size_t)x->sending_of_hop[h]];
            }
        }
        s->pipes[i] =
            (struct hv_link_pipe){.g = &x->pipe, .c = &x->cost, .hops = hops, .run = &x->run};
        if (asks != NULL && asks->frac[i] != NULL) {
            s->pipes[i].ranks = list_ranks(l, i, sendings + u->first_sending[l->n_units]);
            s->pipes[i].frac = asks->frac[i];
        }
        if (x->more_mb > 0) {
            s->pipes[i].run = hv_arena_new(l->arena, struct hv_pipe_run, 1);
            hv_pipe_run_new(l->arena, &x->pipe, s->pipes[i].run);
            hv_pipe_time(&x->pipe, &x->cost, s->pipes[i].run);
        }
    }
}

bool hv__contend(struct hv__lowered *l)
{
    size_t sendings = 0;
    for (size_t i = 0; i < l->n_units; i++) {
        sendings += l->units[i].n_sendings;
    }
    const struct hv__asks *asks = l->asks = hv__find_asks(l);
    if (sendings == 0 && asks == NULL) {
        return false;
    }
    struct uses u = list_uses(l, asks);
    if (asks != NULL && !keep_tight(l, &u)) {
        asks = NULL;
    }
    if (u.n == 0) {
        return false;
    }
    struct element *e = NULL;
    l->share = hv_arena_new(l->arena, struct hv_links, 1);
    l->share->n_links = find_elements(l, &u, &e);
    fill_pipes(l, &u, list_loads(l, &u, e, l->share->n_links), asks, l->share);
    bool crowded = asks != NULL || hv_links_crowded(l->share);
    if (crowded) {
        hv_links_play(l->arena, l->share);
    }
    for (size_t i = 0; i < l->n_units; i++) {
        if (crowded) {
            l->units[i].run = *l->share->pipes[i].run;
        }
        l->share->pipes[i].run = &l->units[i].run;
    }
    return crowded;
}
