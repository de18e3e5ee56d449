/**
 * Prices of transfers between two ends of a pipeline, with all copies of it that send at the same
 * time: seconds, and the elements that they keep busy.
 */
#include "solver/cost/network/device_links.h"
#include "solver/eval/moves/moves.h"

#include <stdlib.h>
#include <string.h>

/** Uses of the network, one after the other. */
struct list {
    struct hv_wire_use *items;
    size_t n, cap;
};

static void append(struct list *l, const struct hv_wire_use *x, size_t n)
{
    if (l->n + n > l->cap) {
        l->cap = 2 * (l->n + n);
        l->items = hv_xrealloc(l->items, l->cap, sizeof *l->items);
    }
    if (n > 0) {
        memcpy(l->items + l->n, x, n * sizeof *x);
    }
    l->n += n;
}

static int by_wire(const void *x, const void *y)
{
    const struct hv_wire_use *a = x, *b = y;
    return (a->wire > b->wire) - (a->wire < b->wire);
}

/** Adds up the demand of the copies on each element. */
static void merge(struct list *l)
{
    size_t n = 0;
    if (l->n > 1) {
        qsort(l->items, l->n, sizeof *l->items, by_wire);
    }
    for (size_t i = 0; i < l->n; i++) {
        if (n > 0 && l->items[n - 1].wire == l->items[i].wire) {
            l->items[n - 1].busy_s += l->items[i].busy_s;
        } else {
            l->items[n++] = l->items[i];
        }
    }
    l->n = n;
}

const uint32_t *hv__devices_of(const struct hv__pipeline *pl, const struct hv__rank *rk, int copy)
{
    return pl->replica->stages[rk->stage].devices + (size_t)copy * rk->n_devices;
}

/** Devices of one end of a sending in one copy; NULL: hosts. */
static const uint32_t *end_of(const struct hv__pipeline *pl, const struct hv__sending *x,
                              size_t rank, int copy, size_t *n)
{
    *n = rank == HV__NO_RANK ? x->n_devices : pl->ranks[rank].n_devices;
    return rank == HV__NO_RANK ? x->devices : hv__devices_of(pl, &pl->ranks[rank], copy);
}

/** Most elements that one copy of a sending uses. */
static size_t most_uses(const struct hv_cluster *c, const struct hv__pipeline *pl,
                        const struct hv__sending *x)
{
    size_t from = 0, to = 0;
    (void)end_of(pl, x, x->from, pl->copies[0], &from);
    (void)end_of(pl, x, x->to, pl->copies[0], &to);
    return (4 + HV_DEVICE_USES) * (from > to ? from : to) + 2 * c->n_links + 1;
}

/** Adds what copies between a rank and its hosts use in one copy of the pipeline. */
static void add_host(const struct hv__lowered *l, const struct hv__pipeline *pl,
                     const struct hv__sending *x, int copy, struct hv_wire_use *uses,
                     struct list *all)
{
    bool out = x->to == HV__NO_RANK;
    struct hv_host_query q = {.bytes = x->bytes, .to_host = out};
    q.devices = end_of(pl, x, out ? x->from : x->to, copy, &q.n);
    append(all, uses, hv_cost_host_uses(hv_cost_cluster(l->k), &q, uses));
}

/** Adds what a sending uses in one copy of the pipeline; `cost`: where asked for, the parts of its
 * price. */
static void add_copy(const struct hv__lowered *l, const struct hv__pipeline *pl,
                     const struct hv__sending *x, int copy, struct hv_hop_cost *cost,
                     struct list *all)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    struct hv_wire_use *uses = hv_xmalloc(most_uses(c, pl, x) * sizeof *uses);
    struct hv_hop_query q = {.bytes = x->bytes};
    q.from = end_of(pl, x, x->from, copy, &q.n_from);
    q.to = end_of(pl, x, x->to, copy, &q.n_to);
    if (q.from == NULL || q.to == NULL) {
        add_host(l, pl, x, copy, uses, all);
        if (cost != NULL) {
            size_t n = q.from != NULL ? q.n_from : q.n_to;
            *cost = (struct hv_hop_cost){.flow_bytes = x->bytes / (double)n};
        }
        free(uses);
        return;
    }
    size_t n = 0;
    if (cost != NULL) {
        *cost = hv_cost_hop_parts(c, &q, uses, &n, NULL);
    } else {
        n = hv_cost_hop_uses(c, &q, uses);
    }
    append(all, uses, n);
    if (pl->hops.devices) {
        append(all, uses, hv_cost_device_uses(c, &q, uses));
    }
    free(uses);
}

/** True for elements inside a node. */
static bool is_inside(uint64_t wire)
{
    return wire % HV_WIRE_N > HV_WIRE_OWN;
}

void hv__price_sending(const struct hv__lowered *l, const struct hv__pipeline *pl,
                       struct hv__sending *x)
{
    struct list all = {0};
    bool ranks = x->from != HV__NO_RANK && x->to != HV__NO_RANK;
    add_copy(l, pl, x, pl->copies[0], &x->cost, &all);
    for (int k = 1; k < pl->multiplicity; k++) {
        if (!pl->hops.apart[k]) {
            add_copy(l, pl, x, pl->copies[k], NULL, &all);
        }
    }
    merge(&all);
    for (size_t i = 0; i < all.n; i++) {
        if (ranks && is_inside(all.items[i].wire)) { /* copies of stages do not share devices */
            all.items[i].busy_s = fmin(all.items[i].busy_s, x->cost.alone_s);
        }
        x->cost.bytes_s = fmax(x->cost.bytes_s, all.items[i].busy_s);
    }
    x->n_loads = all.n;
    if (all.n > 0) {
        x->loads = hv_arena_copy(l->arena, all.items, all.n, sizeof *all.items);
    }
    free(all.items);
}
