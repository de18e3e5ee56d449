/**
 * Bandwidth that activations, and communication inside passes, leave to the gradient reductions at
 * the end of an iteration. They have priority, because a pipeline waits for them, while gradients
 * may use the whole end of the iteration.
 */
#include "solver/eval/exchange/exchange_int.h"

#include "solver/base/rng.h"

#include <stdlib.h>

/** A transfer on the network, or the exchanges of a pass. */
struct transfer {
    double start_s, end_s;
    double times; /**< multiple of the demand of its sending on lanes */
};

/** Share of a lane that a transfer uses while it is in progress. */
struct part {
    size_t transfer;
    double start_s, share;
    double until_s; /**< latest end of the parts of its kind up to it */
};

/** Demand of a sending on a kind of lanes; of a rank, per second of its exchanges. */
struct demand {
    size_t kind;
    double busy_s;
};

/** Parts of a kind that the current reduction may still share lanes with, and the share in use now.
 */
struct stream {
    const struct part *next, *end;
    double taken;
};

/** Traffic that a reduction shares one kind of its lanes with. */
struct met {
    double start_s, end_s, share;
    size_t stream;
};

/** Lanes that all transfers use alike are one kind: a stage on many nodes has only one kind. */
struct hv__links_left {
    struct transfer *transfers;
    size_t n;
    double until_s;  /**< the last of them ends */
    size_t *kind_of; /**< [lanes] 0: no transfer uses it */
    size_t n_kinds;
    size_t *demands_at; /**< [sendings of all pipelines, then flat ranks, + 1] into demands */
    struct demand *demands;
    size_t *at;         /**< [n_kinds + 2] into parts */
    struct part *parts; /**< by start within a kind */
    /* of the reduction at hand */
    struct met *active; /**< [parts] */
    struct stream *streams;
    size_t *seen; /**< [n_kinds + 1] mark */
    size_t n_streams, mark;
};

/** A lane, with a hash of all demands on it. */
struct lane {
    uint64_t hash;
    size_t number;
};

/** The lane of an element; −1: the element is not a lane. */
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
    case HV_WIRE_DEVICE_OUT:
    case HV_WIRE_DEVICE_IN:
    case HV_WIRE_HOST_OUT:
    case HV_WIRE_HOST_IN:
    case HV_WIRE_ROOT_OUT:
    case HV_WIRE_ROOT_IN:
    case HV_WIRE_HOST:
    case HV_WIRE_N:
        break;
    }
    return -1;
}

static int by_hash(const void *x, const void *y)
{
    const struct lane *a = x, *b = y;
    if (a->hash != b->hash) {
        return a->hash < b->hash ? -1 : 1;
    }
    return (a->number > b->number) - (a->number < b->number);
}

/** Number of a pipeline's first sending among all. */
static size_t *first_sendings(const struct hv__lowered *l)
{
    size_t *first = hv_arena_new(l->arena, size_t, l->pipelines.n + 1);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        first[i + 1] = first[i] + l->pipelines.items[i].hops.n_sendings;
    }
    return first;
}

static void add_to_hash(uint64_t *h, size_t number, double busy_s)
{
    *h = hv_hash(*h != 0 ? *h : HV_HASH_START, &number, sizeof number);
    *h = hv_hash(*h, &busy_s, sizeof busy_s);
}

/** Groups lanes into kinds by the demands on them. Returns the first lane of each kind. */
static size_t *find_kinds(const struct hv__lowered *l, const size_t *first,
                          struct hv__links_left *t)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    size_t n_lanes = c->n_nodes + c->n_links, n = 0;
    struct lane *lanes = hv_arena_new(l->arena, struct lane, n_lanes + 1);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        for (size_t k = 0; k < l->pipelines.items[i].hops.n_sendings; k++) {
            const struct hv__sending *s = &l->pipelines.items[i].hops.sendings[k];
            size_t number = first[i] + k;
            for (size_t w = 0; w < s->n_loads; w++) {
                int64_t lane = lane_of(c, s->loads[w].wire);
                if (lane >= 0) {
                    add_to_hash(&lanes[lane].hash, number, s->loads[w].busy_s);
                }
            }
        }
    }
    for (size_t i = 0; l->network.demands != NULL && i < l->network.demands->n; i++) {
        const struct hv__demand *x = &l->network.demands->items[i];
        int64_t lane = lane_of(c, x->wire);
        if (lane >= 0) {
            add_to_hash(&lanes[lane].hash, first[l->pipelines.n] + x->rank, x->busy_s);
        }
    }
    for (size_t i = 0; i < n_lanes; i++) {
        if (lanes[i].hash != 0) {
            lanes[n++] = (struct lane){lanes[i].hash, i};
        }
    }
    qsort(lanes, n, sizeof *lanes, by_hash);
    size_t *first_lane = hv_arena_new(l->arena, size_t, n + 1);
    t->kind_of = hv_arena_new(l->arena, size_t, n_lanes + 1);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || lanes[i].hash != lanes[i - 1].hash) {
            first_lane[++t->n_kinds] = lanes[i].number;
        }
        t->kind_of[lanes[i].number] = t->n_kinds;
    }
    return first_lane;
}

static bool is_listed(const struct demand *demands, size_t from, size_t to, size_t kind)
{
    for (size_t i = from; i < to; i++) {
        if (demands[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/** Adds the demand of one sending, whose demands begin at `from`, on an element: on the first lane
 * of a kind only, and once where a lane is a node's network in both directions. */
static size_t add_demand(const struct hv_cluster *c, struct hv__links_left *t,
                         const size_t *first_lane, size_t from, size_t n,
                         const struct hv_wire_use *use)
{
    int64_t lane = lane_of(c, use->wire);
    size_t kind = lane < 0 ? 0 : t->kind_of[lane];
    if (kind > 0 && first_lane[kind] == (size_t)lane && !is_listed(t->demands, from, n, kind)) {
        t->demands[n++] = (struct demand){kind, use->busy_s};
    }
    return n;
}

/** Exchanges of all ranks and, behind them, streams, by rank: [at[rank], at[rank + 1]). */
static struct hv_wire_use *by_rank(const struct hv__lowered *l, size_t n_ranks, size_t *at)
{
    size_t n = l->network.demands != NULL ? l->network.demands->n : 0;
    struct hv_wire_use *out = hv_arena_new(l->arena, struct hv_wire_use, n + 1);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            const struct hv__demand *x = &l->network.demands->items[i];
            if (pass == 0) {
                at[x->rank + 2]++;
            } else {
                out[at[x->rank + 1]++] = (struct hv_wire_use){x->wire, x->busy_s, NULL};
            }
        }
        for (size_t r = 2; pass == 0 && r < n_ranks + 2; r++) {
            at[r] += at[r - 1];
        }
    }
    return out;
}

/** Demand of every sending, and behind them of every rank and every rank's stream, on the first
 * lane of each kind. */
static void list_demands(const struct hv__lowered *l, const size_t *first, struct hv__links_left *t)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const size_t *first_lane = find_kinds(l, first, t);
    size_t n = 0, most = l->network.demands != NULL ? l->network.demands->n : 0;
    size_t n_ranks = l->network.demands != NULL ? 2 * l->pipelines.rank_at[l->pipelines.n] : 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        for (size_t k = 0; k < l->pipelines.items[i].hops.n_sendings; k++) {
            most += l->pipelines.items[i].hops.sendings[k].n_loads;
        }
    }
    t->demands_at = hv_arena_new(l->arena, size_t, first[l->pipelines.n] + n_ranks + 2);
    t->demands = hv_arena_new(l->arena, struct demand, most + 1);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        for (size_t k = 0; k < l->pipelines.items[i].hops.n_sendings; k++) {
            const struct hv__sending *s = &l->pipelines.items[i].hops.sendings[k];
            size_t from = n;
            for (size_t w = 0; w < s->n_loads; w++) {
                n = add_demand(c, t, first_lane, from, n, &s->loads[w]);
            }
            t->demands_at[first[i] + k + 1] = n;
        }
    }
    size_t *at = hv_arena_new(l->arena, size_t, n_ranks + 2);
    const struct hv_wire_use *uses = by_rank(l, n_ranks, at);
    for (size_t r = 0; r < n_ranks; r++) {
        size_t from = n;
        for (size_t k = at[r]; k < at[r + 1]; k++) {
            n = add_demand(c, t, first_lane, from, n, &uses[k]);
        }
        t->demands_at[first[l->pipelines.n] + r + 1] = n;
    }
}

static int by_start(const void *x, const void *y)
{
    const struct part *a = x, *b = y;
    if (a->start_s != b->start_s) {
        return a->start_s < b->start_s ? -1 : 1;
    }
    return (a->transfer > b->transfer) - (a->transfer < b->transfer);
}

/** Parts of all transfers by kind and start. */
static void list_parts(const struct hv__lowered *l, const size_t *sending_of,
                       struct hv__links_left *t)
{
    t->at = hv_arena_new(l->arena, size_t, t->n_kinds + 3);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < t->n; i++) {
            const struct transfer *x = &t->transfers[i];
            for (size_t k = t->demands_at[sending_of[i]]; k < t->demands_at[sending_of[i] + 1];
                 k++) {
                const struct demand *a = &t->demands[k];
                if (pass == 0) {
                    t->at[a->kind + 2]++;
                } else {
                    double share = fmin(1, x->times * a->busy_s / (x->end_s - x->start_s));
                    t->parts[t->at[a->kind + 1]++] = (struct part){i, x->start_s, share, 0};
                }
            }
        }
        for (size_t i = 1; pass == 0 && i < t->n_kinds + 3; i++) {
            t->at[i] += t->at[i - 1];
        }
        t->parts =
            pass == 0 ? hv_arena_new(l->arena, struct part, t->at[t->n_kinds + 2] + 1) : t->parts;
    }
    for (size_t kind = 1; kind <= t->n_kinds; kind++) {
        struct part *p = t->parts + t->at[kind];
        size_t n = t->at[kind + 1] - t->at[kind];
        qsort(p, n, sizeof *p, by_start);
        double until_s = 0;
        for (size_t i = 0; i < n; i++) {
            until_s = fmax(until_s, t->transfers[p[i].transfer].end_s);
            p[i].until_s = until_s;
        }
    }
}

/** True where any transfer uses a network. */
static bool any_network(const struct hv__lowered *l)
{
    bool network = l->network.demands != NULL;
    for (size_t i = 0; l->network.share != NULL && i < l->pipelines.n; i++) {
        for (size_t k = 0; k < l->pipelines.items[i].hops.n_sendings; k++) {
            network = network || l->pipelines.items[i].hops.sendings[k].n_loads > 0;
        }
    }
    return network;
}

/** Number of the last nodes of a rank, which end after from_s. */
static size_t count_nodes(const struct hv__pipeline *pl, size_t rank, double from_s)
{
    int32_t end = pl->pipe->rank_node_at[rank + 1], n = end;
    while (n > pl->pipe->rank_node_at[rank] && pl->run.node_end_s[n - 1] > from_s) {
        n--;
    }
    return (size_t)(end - n);
}

/** Adds the communication of passes that ends after from_s. Returns an upper bound of its number;
 * t == NULL: does nothing else. */
static size_t add_exchanges(const struct hv__lowered *l, double from_s, const bool *in_turns,
                            size_t first, struct hv__links_left *t, size_t *sending_of)
{
    size_t all = 0;
    for (size_t i = 0; l->network.demands != NULL && i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        for (size_t r = 0; l->network.demands->frac[i] != NULL && r < pl->n_ranks; r++) {
            size_t n = count_nodes(pl, r, from_s), flat = first + l->pipelines.rank_at[i] + r;
            all += n;
            if (t == NULL || t->demands_at[flat + 1] == t->demands_at[flat]) {
                continue;
            }
            int32_t end = pl->pipe->rank_node_at[r + 1];
            for (int32_t k = end - (int32_t)n; k < end; k++) {
                double frac =
                    hv_links_node_frac(pl->pipe, &pl->cost, l->network.demands->frac[i], k);
                double s = hv_pipe_node_duration_s(pl->pipe, &pl->cost, k);
                double apart_s = in_turns != NULL && in_turns[i] ? hv__exchanges_s(pl, k) : 0;
                struct transfer x = {pl->run.node_start_s[k], pl->run.node_end_s[k],
                                     frac * s - apart_s};
                if (x.times > 0 && x.end_s > x.start_s) {
                    sending_of[t->n] = flat;
                    t->transfers[t->n++] = x;
                }
            }
        }
    }
    return all;
}

/** The same of the tasks of streams. */
static size_t add_tasks(const struct hv__lowered *l, double from_s, size_t first,
                        struct hv__links_left *t, size_t *sending_of)
{
    size_t all = 0;
    if (l->network.demands == NULL || l->network.demands->task_frac == NULL) {
        return 0;
    }
    size_t n_ranks = l->pipelines.rank_at[l->pipelines.n];
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        const double *frac = l->network.demands->task_frac[i];
        for (size_t r = 0; frac != NULL && r < pl->n_ranks; r++) {
            size_t flat = first + n_ranks + l->pipelines.rank_at[i] + r;
            const struct hv_stream *s = pl->cost.stream;
            for (size_t k = s->task_at[r]; k < s->task_at[r + 1]; k++) {
                struct transfer x = {pl->run.stream->start_s[k], pl->run.stream->end_s[k],
                                     frac[k] * s->tasks[k].time_s};
                bool counts = x.times > 0 && x.end_s > x.start_s && x.end_s > from_s;
                all += counts;
                if (t != NULL && counts && t->demands_at[flat + 1] > t->demands_at[flat]) {
                    sending_of[t->n] = flat;
                    t->transfers[t->n++] = x;
                }
            }
        }
    }
    return all;
}

struct hv__links_left *hv__links_left_after(const struct hv__lowered *l, double from_s,
                                            const bool *in_turns)
{
    if (!any_network(l)) {
        return NULL;
    }
    size_t n = 0, *first = first_sendings(l), n_sendings = first[l->pipelines.n];
    struct hv__links_left *t = hv_arena_new(l->arena, struct hv__links_left, 1);
    list_demands(l, first, t);
    const struct hv_link_transfer *x =
        l->network.share != NULL ? hv_links_transfers(l->arena, l->network.share, from_s, &n)
                                 : NULL;
    size_t most = n + add_exchanges(l, from_s, in_turns, n_sendings, NULL, NULL) +
                  add_tasks(l, from_s, n_sendings, NULL, NULL);
    size_t *sending_of = hv_arena_new(l->arena, size_t, most + 1);
    t->transfers = hv_arena_new(l->arena, struct transfer, most + 1);
    for (size_t i = 0; i < n; i++) {
        size_t s =
            first[x[i].pipe] + (size_t)l->pipelines.items[x[i].pipe].hops.sending_of[x[i].hop];
        if (x[i].end_s > x[i].start_s && t->demands_at[s + 1] > t->demands_at[s]) {
            sending_of[t->n] = s;
            t->transfers[t->n++] = (struct transfer){x[i].start_s, x[i].end_s, 1};
        }
    }
    (void)add_exchanges(l, from_s, in_turns, n_sendings, t, sending_of);
    (void)add_tasks(l, from_s, n_sendings, t, sending_of);
    for (size_t i = 0; i < t->n; i++) {
        t->until_s = fmax(t->until_s, t->transfers[i].end_s);
    }
    list_parts(l, sending_of, t);
    t->active = hv_arena_new(l->arena, struct met, t->at[t->n_kinds + 1] + 1);
    t->streams = hv_arena_new(l->arena, struct stream, t->n_kinds + 1);
    t->seen = hv_arena_new(l->arena, size_t, t->n_kinds + 1);
    return t;
}

/** The first part of a kind that may end after start_s. */
static const struct part *first_after(const struct hv__links_left *t, size_t kind, double start_s)
{
    size_t lo = t->at[kind], hi = t->at[kind + 1];
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->parts[mid].until_s > start_s) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return t->parts + lo;
}

/** The parts of these lanes, kind by kind. */
static void open_streams(struct hv__links_left *t, const struct hv__lanes *w, double start_s)
{
    t->mark++;
    t->n_streams = 0;
    for (size_t i = 0; i < w->n; i++) {
        size_t kind = t->kind_of[w->ids[i]];
        if (kind > 0 && t->seen[kind] != t->mark) {
            t->seen[kind] = t->mark;
            t->streams[t->n_streams++] =
                (struct stream){first_after(t, kind, start_s), t->parts + t->at[kind + 1], 0};
        }
    }
}

/** The next part on any of the lanes that ends after start_s, by start. */
static bool next_met(const struct hv__links_left *t, double start_s, struct met *out)
{
    struct stream *best = NULL;
    for (size_t i = 0; i < t->n_streams; i++) {
        struct stream *s = &t->streams[i];
        while (s->next < s->end && t->transfers[s->next->transfer].end_s <= start_s) {
            s->next++;
        }
        if (s->next < s->end && (best == NULL || s->next->start_s < best->next->start_s)) {
            best = s;
        }
    }
    if (best == NULL) {
        return false;
    }
    const struct part *p = best->next++;
    const struct transfer *x = &t->transfers[p->transfer];
    *out = (struct met){x->start_s, x->end_s, p->share, (size_t)(best - t->streams)};
    return true;
}

/** Drops parts that have ended. Returns the share that the fullest lane leaves from now on, since a
 * ring is as fast as its slowest link. *until_s: lowered to the time of the next change. */
static double left_over(const struct hv__links_left *t, size_t *n_active, double now_s,
                        double *until_s)
{
    double most = 0;
    for (size_t i = 0; i < t->n_streams; i++) {
        t->streams[i].taken = 0;
    }
    for (size_t i = 0; i < *n_active;) {
        const struct met *m = &t->active[i];
        if (m->end_s <= now_s) {
            t->active[i] = t->active[--*n_active];
            continue;
        }
        t->streams[m->stream].taken += m->share;
        most = fmax(most, t->streams[m->stream].taken);
        *until_s = fmin(*until_s, m->end_s);
        i++;
    }
    return fmax(0, 1 - most);
}

bool hv__links_busy_after(const struct hv__links_left *t, double start_s)
{
    return t != NULL && t->until_s > start_s;
}

double hv__end_on_links_left(struct hv__links_left *t, const struct hv__lanes *w, double start_s,
                             double work_s)
{
    if (w->n == 0 || !hv__links_busy_after(t, start_s)) {
        return start_s + work_s;
    }
    struct met next = {0};
    size_t n_active = 0;
    open_streams(t, w, start_s);
    bool more = next_met(t, start_s, &next);
    double now = start_s, left = work_s;
    while (left > 0 && (more || n_active > 0)) {
        double until = more ? fmax(now, next.start_s) : HUGE_VAL;
        double rate = left_over(t, &n_active, now, &until);
        if (left <= rate * (until - now)) {
            return now + left / rate;
        }
        left -= isinf(until) ? 0 : rate * (until - now);
        now = isinf(until) ? now : until;
        while (more && next.start_s <= now) {
            t->active[n_active++] = next;
            more = next_met(t, start_s, &next);
        }
    }
    return now + fmax(0, left);
}
