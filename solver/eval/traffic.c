/**
 * What activations leave of a network to the reductions at the end of an iteration. They go first:
 * a pipeline waits for them, while gradients have the whole tail.
 */
#include "solver/eval/reduce_int.h"

#include <stdlib.h>

/** A transfer on the network. */
struct transfer {
    double start_s, end_s;
    size_t mark; /**< of the last reduction that met it */
};

/** What a transfer takes of a lane while it is under way. */
struct part {
    size_t transfer;
    double share;
};

/** A transfer that a reduction meets. */
struct met {
    double start_s, end_s, share;
};

struct hv__traffic {
    struct transfer *transfers;
    size_t *at; /**< [lanes + 1] into parts */
    struct part *parts;
    struct met *met; /**< [n] of the reduction at hand: each transfer at most once */
    size_t mark, n;
};

/** The lane of an element; −1: it is none. */
static int64_t lane_of(const struct hv_cluster *c, uint64_t wire)
{
    uint64_t number = wire / HV_WIRE_N;
    switch ((enum hv_wire)(wire % HV_WIRE_N)) {
    case HV_WIRE_NODE_OUT:
    case HV_WIRE_NODE_IN:
        return (int64_t)number;
    case HV_WIRE_LINK:
        return (int64_t)(c->n_nodes + number / 2);
    case HV_WIRE_PAIR:
    case HV_WIRE_OWN:
    case HV_WIRE_N:
        break;
    }
    return -1;
}

static const struct hv__sending *sending_of(const struct hv__lowered *l,
                                            const struct hv_share_transfer *x)
{
    const struct hv__unit *u = &l->units[x->pipe];
    return &u->sendings[u->sending_of_hop[x->hop]];
}

/** Parts of all transfers by lane; pass 0 counts them. */
static void list_parts(const struct hv__lowered *l, const struct hv_share_transfer *x, bool count,
                       struct hv__traffic *t)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    for (size_t i = 0; i < t->n; i++) {
        const struct hv__sending *s = sending_of(l, &x[i]);
        for (size_t k = 0; k < s->n_loads; k++) {
            int64_t lane = lane_of(c, s->loads[k].wire);
            if (lane >= 0 && count) {
                t->at[lane + 2]++;
            } else if (lane >= 0) {
                double share = fmin(1, s->loads[k].busy_s / (x[i].end_s - x[i].start_s));
                t->parts[t->at[lane + 1]++] = (struct part){i, share};
            }
        }
    }
}

struct hv__traffic *hv__traffic_after(struct hv__lowered *l, double from_s)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    bool network = false;
    for (size_t i = 0; l->share != NULL && i < l->n_units; i++) {
        for (size_t k = 0; k < l->units[i].n_sendings; k++) {
            network = network || l->units[i].sendings[k].n_loads > 0;
        }
    }
    if (!network) {
        return NULL;
    }
    size_t n = 0, n_lanes = c->n_nodes + c->n_links;
    struct hv_share_transfer *x = hv_share_transfers(l->arena, l->share, &n);
    struct hv__traffic *t = hv_arena_new(l->arena, struct hv__traffic, 1);
    for (size_t i = 0; i < n; i++) {
        if (x[i].end_s > from_s && x[i].end_s > x[i].start_s && sending_of(l, &x[i])->n_loads > 0) {
            x[t->n++] = x[i];
        }
    }
    t->transfers = hv_arena_new(l->arena, struct transfer, t->n + 1);
    for (size_t i = 0; i < t->n; i++) {
        t->transfers[i] = (struct transfer){.start_s = x[i].start_s, .end_s = x[i].end_s};
    }
    t->met = hv_arena_new(l->arena, struct met, t->n + 1);
    t->at = hv_arena_new(l->arena, size_t, n_lanes + 2);
    list_parts(l, x, true, t);
    for (size_t i = 2; i < n_lanes + 2; i++) {
        t->at[i] += t->at[i - 1];
    }
    t->parts = hv_arena_new(l->arena, struct part, t->at[n_lanes + 1] + 1);
    list_parts(l, x, false, t);
    return t;
}

static int by_start(const void *x, const void *y)
{
    const struct met *a = x, *b = y;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

/** Transfers on any of the lanes that are not through before start_s, each once, sorted. */
static struct met *find_met(struct hv__traffic *t, const struct hv__lanes *w, double start_s,
                            size_t *n)
{
    struct met *out = t->met;
    t->mark++;
    *n = 0;
    for (size_t i = 0; i < w->n; i++) {
        for (size_t k = t->at[w->ids[i]]; k < t->at[w->ids[i] + 1]; k++) {
            struct transfer *x = &t->transfers[t->parts[k].transfer];
            if (x->end_s > start_s && x->mark != t->mark) {
                x->mark = t->mark;
                out[(*n)++] = (struct met){x->start_s, x->end_s, t->parts[k].share};
            }
        }
    }
    qsort(out, *n, sizeof *out, by_start);
    return out;
}

double hv__end_beside(struct hv__traffic *t, const struct hv__lanes *w, double start_s,
                      double work_s)
{
    if (t == NULL || w->n == 0) {
        return start_s + work_s;
    }
    size_t n = 0, next = 0, n_active = 0;
    struct met *all = find_met(t, w, start_s, &n); /* those under way are kept at its front */
    double now = start_s, left = work_s;
    while (left > 0 && (next < n || n_active > 0)) {
        double taken = 0, until = next < n ? fmax(now, all[next].start_s) : HUGE_VAL;
        for (size_t i = 0; i < n_active;) {
            if (all[i].end_s <= now) {
                all[i] = all[--n_active];
                continue;
            }
            taken += all[i].share;
            until = fmin(until, all[i++].end_s);
        }
        double rate = fmax(0, 1 - taken);
        if (left <= rate * (until - now)) {
            return now + left / rate;
        }
        left -= isinf(until) ? 0 : rate * (until - now);
        now = isinf(until) ? now : until;
        while (next < n && all[next].start_s <= now) {
            all[n_active++] = all[next++];
        }
    }
    return now + fmax(0, left);
}
