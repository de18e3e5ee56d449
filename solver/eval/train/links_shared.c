/**
 * Transfers that share links: the elements of the network that a plan's transfers load, and the
 * runs of its pipelines when they share them (sim/links/links.h). Where no transfers share a link,
 * the runs are kept.
 */
#include "solver/eval/train/steps.h"

#include "solver/base/rng.h"

#include <stdlib.h>

/** Shares of an element whose sum exceeds 1 by no more than this differ by rounding only. */
#define ROUNDING 1e-9

/** Demand of one sending on one element; sendings are numbered through all pipelines. */
struct use {
    uint64_t wire;
    size_t sending;
    double busy_s;
};

/** An element: its uses. */
struct element {
    size_t from, to;
    uint64_t hash; /**< of all demands on it */
};

struct uses {
    struct use *items;
    size_t n;
    size_t *first_sending; /**< [n_pipelines + 1] */
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

/** The link between two ranks belongs to them alone; in files it has no name. */
static uint64_t own_wire(const struct hv__lowered *l, size_t pipeline, const struct hv__sending *x)
{
    uint64_t ranks = l->pipelines.rank_at[l->pipelines.n];
    return hv_wire_id(HV_WIRE_OWN, (l->pipelines.rank_at[pipeline] + x->from) * ranks +
                                       l->pipelines.rank_at[pipeline] + x->to);
}

/**
 * The way out of a rank. What a rank sends to others, it sends in turn: sends to the next and the
 * previous stage are enqueued in the order of its program on one stream of the communicator of its
 * pipeline (batch_isend_irecv of PyTorch, by which Megatron-LM sends). That order is fixed, so a
 * result that is ready earlier is not delayed by a later one of the same rank. Moves have streams
 * of their own.
 */
static uint64_t way_out(const struct hv__lowered *l, size_t pipeline, const struct hv__sending *x)
{
    uint64_t ranks = l->pipelines.rank_at[l->pipelines.n];
    return hv_wire_id(HV_WIRE_OWN, ranks * ranks + l->pipelines.rank_at[pipeline] + x->from);
}

/** Demands of all sendings and, behind them, of the exchanges of ranks, by element. */
static struct uses list_uses(const struct hv__lowered *l, const struct hv__demands *demands)
{
    struct uses u = {.first_sending = hv_arena_new(l->arena, size_t, l->pipelines.n + 1)};
    size_t most = demands != NULL ? demands->n : 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        u.first_sending[i + 1] = u.first_sending[i] + l->pipelines.items[i].hops.n_sendings;
        for (size_t k = 0; k < l->pipelines.items[i].hops.n_sendings; k++) {
            most += l->pipelines.items[i].hops.sendings[k].n_loads + 2;
        }
    }
    u.items = hv_arena_new(l->arena, struct use, most + 1);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        for (size_t k = 0; k < l->pipelines.items[i].hops.n_sendings; k++) {
            const struct hv__sending *x = &l->pipelines.items[i].hops.sendings[k];
            size_t number = u.first_sending[i] + k;
            if (x->cost.alone_s > 0 && x->from != HV__NO_RANK && x->to != HV__NO_RANK) {
                u.items[u.n++] = (struct use){own_wire(l, i, x), number, x->cost.alone_s};
            }
            if (x->cost.alone_s > 0 && !x->beside) {
                u.items[u.n++] = (struct use){way_out(l, i, x), number, x->cost.alone_s};
            }
            for (size_t w = 0; w < x->n_loads; w++) {
                u.items[u.n++] = (struct use){x->loads[w].wire, number, x->loads[w].busy_s};
            }
        }
    }
    for (size_t i = 0; demands != NULL && i < demands->n; i++) {
        const struct hv__demand *x = &demands->items[i];
        u.items[u.n++] =
            (struct use){x->wire, u.first_sending[l->pipelines.n] + x->rank, x->busy_s};
    }
    if (u.n > 1) {
        qsort(u.items, u.n, sizeof *u.items, by_wire);
    }
    return u;
}

/** The pipeline of a sending, by halving. */
static size_t pipeline_of(const struct uses *u, size_t n_pipelines, size_t sending)
{
    size_t low = 0, high = n_pipelines;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        *(u->first_sending[mid] <= sending ? &low : &high) = mid;
    }
    return low;
}

/** Share of an element that is busy during a transfer, or while a rank communicates most. */
static double share_of(const struct hv__lowered *l, const struct uses *u, const struct use *x)
{
    size_t n_sendings = u->first_sending[l->pipelines.n];
    if (x->sending >= n_sendings) {
        return x->busy_s * l->network.demands->peak[x->sending - n_sendings];
    }
    size_t pipeline = pipeline_of(u, l->pipelines.n, x->sending);
    const struct hv__sending *s =
        &l->pipelines.items[pipeline].hops.sendings[x->sending - u->first_sending[pipeline]];
    return s->cost.bytes_s > 0 ? x->busy_s / s->cost.bytes_s : 0;
}

/** Leaves out communication on elements whose bandwidth suffices for everything that may be in
 * progress at once. True where some is left. */
static bool keep_tight(const struct hv__lowered *l, struct uses *u)
{
    size_t kept = 0, n_sendings = u->first_sending[l->pipelines.n];
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

/** Elements with the same demands give the same result: one of them is kept. Returns the number of
 * elements left. */
static size_t find_elements(const struct hv__lowered *l, const struct uses *u, struct element **out)
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
static struct hv_link_hop *list_loads(const struct hv__lowered *l, const struct uses *u,
                                      const struct element *e, size_t n)
{
    size_t n_sendings = u->first_sending[l->pipelines.n] + 2 * l->pipelines.rank_at[l->pipelines.n];
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
    for (size_t i = 0; i < l->pipelines.n; i++) {
        for (size_t k = 0; k < l->pipelines.items[i].hops.n_sendings; k++) {
            const struct hv_hop_cost *c = &l->pipelines.items[i].hops.sendings[k].cost;
            size_t s = u->first_sending[i] + k;
            out[s] = (struct hv_link_hop){.latency_s = c->latency_s,
                                          .bytes_s = c->bytes_s,
                                          .flow_bytes = c->flow_bytes,
                                          .loads = loads + at[s],
                                          .n_loads = at[s + 1] - at[s]};
        }
    }
    for (size_t s = u->first_sending[l->pipelines.n]; s < n_sendings; s++) {
        out[s] = (struct hv_link_hop){.loads = loads + at[s], .n_loads = at[s + 1] - at[s]};
    }
    return out;
}

/** Demands of the ranks of a pipeline, or of their streams: a ring is a flow per device of a node,
 * and all of them move at the rate of its slowest element. */
static struct hv_link_rank *list_ranks(const struct hv__lowered *l, size_t pipeline, bool streams,
                                       const struct hv_link_hop *loads)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const struct hv__pipeline *pl = &l->pipelines.items[pipeline];
    struct hv_link_rank *out = hv_arena_new(l->arena, struct hv_link_rank, pl->n_ranks);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        size_t flat = l->pipelines.rank_at[pipeline] + r +
                      (streams ? l->pipelines.rank_at[l->pipelines.n] : 0);
        const struct hv_link_hop *x = &loads[flat];
        const struct hv__rank *rk = &pl->ranks[r];
        uint32_t node = hv_cluster_node_of(c, rk->devices[0]);
        double flows = 0;
        for (size_t d = 0; d < rk->n_devices; d++) {
            flows += hv_cluster_node_of(c, rk->devices[d]) == node;
        }
        out[r] = (struct hv_link_rank){x->loads, x->n_loads,
                                       l->network.demands->rate_bytes_per_s[flat] / flows};
    }
    return out;
}

/** Lists the pipelines with the loads of their transfers. A run whose middle was left out is timed
 * again in its short form, and one that several pipelines have becomes one for each. */
static void fill_pipes(const struct hv__lowered *l, const struct uses *u,
                       const struct hv_link_hop *sendings, const struct hv__demands *demands,
                       struct hv_links *s)
{
    s->pipes = hv_arena_new(l->arena, struct hv_link_pipe, l->pipelines.n);
    s->n_pipes = l->pipelines.n;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *x = &l->pipelines.items[i];
        size_t n = (size_t)(x->pipe->n_hops + x->moving.n_lanes);
        struct hv_link_hop *hops = hv_arena_new(l->arena, struct hv_link_hop, n + 1);
        for (size_t h = 0; h < n; h++) {
            int32_t k = x->hops.sending_of[h];
            if (k >= 0) {
                size_t from = x->hops.sendings[k].from;
                hops[h] = sendings[u->first_sending[i] + (size_t)k];
                hops[h].channel = h < (size_t)x->pipe->n_hops ? (int32_t)from + 1 : 0;
            }
        }
        s->pipes[i] = (struct hv_link_pipe){.g = x->pipe,
                                            .c = &x->cost,
                                            .hops = hops,
                                            .run = &x->run,
                                            .n_lanes = x->moving.n_lanes,
                                            .moves = x->moving.moves,
                                            .n_moves = x->moving.n,
                                            .moved = x->moving.moved};
        if (demands != NULL && demands->frac[i] != NULL) {
            s->pipes[i].ranks =
                list_ranks(l, i, false, sendings + u->first_sending[l->pipelines.n]);
            s->pipes[i].frac = demands->frac[i];
        }
        if (demands != NULL && demands->task_frac[i] != NULL) {
            s->pipes[i].streams =
                list_ranks(l, i, true, sendings + u->first_sending[l->pipelines.n]);
            s->pipes[i].task_frac = demands->task_frac[i];
        }
        if (x->more_mb > 0 || x->shared || x->like != NULL) {
            s->pipes[i].run = hv_arena_new(l->arena, struct hv_pipe_run, 1);
            hv__new_run(l, x, s->pipes[i].run);
            hv_pipe_time(x->pipe, &x->cost, s->pipes[i].run);
        }
    }
}

bool hv__share_links(struct hv__lowered *l)
{
    size_t sendings = 0;
    bool moves = false;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        sendings += l->pipelines.items[i].hops.n_sendings;
        moves = moves || l->pipelines.items[i].moving.n > 0;
    }
    const struct hv__demands *demands = l->network.demands = hv__find_demands(l);
    if (sendings == 0 && demands == NULL) {
        return false;
    }
    struct uses u = list_uses(l, demands);
    if (demands != NULL && !keep_tight(l, &u)) {
        demands = NULL;
    }
    if (u.n == 0) {
        return false;
    }
    struct element *e = NULL;
    l->network.share = hv_arena_new(l->arena, struct hv_links, 1);
    l->network.share->n_links = find_elements(l, &u, &e);
    fill_pipes(l, &u, list_loads(l, &u, e, l->network.share->n_links), demands, l->network.share);
    bool crowded = demands != NULL || moves || hv_links_crowded(l->network.share);
    if (crowded) {
        hv_links_play(l->arena, l->network.share);
    }
    for (size_t i = 0; i < l->pipelines.n; i++) {
        if (crowded) {
            l->pipelines.items[i].run = *l->network.share->pipes[i].run;
        }
        l->network.share->pipes[i].run = &l->pipelines.items[i].run;
    }
    return crowded;
}
