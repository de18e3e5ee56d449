/**
 * Reductions of gradients on the link lanes, in order of readiness. Which gradients make up a
 * bucket is in buckets.c, the members of reductions are in eval/train/reduce.c.
 */
#include "solver/eval/exchange/buckets.h"

#include <string.h>

/** Times until which lanes are in use. */
struct taken {
    double *rank_s; /**< by flat rank */
    double *lane_s; /**< by node, then by named link */
    struct hv__links_left *traffic;
};

/** Number of lanes of the network: nodes and named links. */
static size_t n_lanes(const struct hv__lowered *l)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    return c->n_nodes + c->n_links;
}

/** A stream and its next bucket. */
struct waiting {
    struct hv__bucket_stream *stream;
    struct hv__bucket bucket;
    bool more;
};

/** Reductions of a plan as they are run. */
struct run {
    struct hv__lowered *l;
    struct waiting *streams;
    size_t n;
    struct taken taken;
};

/** The stream whose next bucket is ready first, the one listed first among equals; NULL: all are
 * done. *until_s: readiness of the first bucket of another. */
static struct waiting *first_ready(const struct run *r, double *until_s)
{
    struct waiting *first = NULL;
    *until_s = HUGE_VAL;
    for (size_t i = 0; i < r->n; i++) {
        struct waiting *x = &r->streams[i];
        if (!x->more) {
            continue;
        }
        if (first == NULL || x->bucket.ready_s < first->bucket.ready_s) {
            *until_s = first != NULL ? first->bucket.ready_s : *until_s;
            first = x;
        } else {
            *until_s = fmin(*until_s, x->bucket.ready_s);
        }
    }
    return first;
}

/** The later of two times that are known: fmax, which also has to ask whether they are, is a call.
 */
static inline double later_s(double a_s, double b_s)
{
    return a_s > b_s ? a_s : b_s;
}

/** Time from which all lanes of a bucket are free. */
static double lanes_free_s(const struct run *r, const struct waiting *w)
{
    double free_s = 0;
    for (size_t i = 0; i < w->stream->n_ranks; i++) {
        free_s = later_s(free_s, r->taken.rank_s[w->stream->ranks[i]]);
    }
    for (size_t i = 0; i < w->bucket.lanes.n; i++) {
        free_s = later_s(free_s, r->taken.lane_s[w->bucket.lanes.ids[i]]);
    }
    return free_s;
}

/** Keeps a reduction for drawing. */
static void keep_reduction(struct hv__lowered *l, const struct hv__bucket_stream *s, double start_s,
                           double end_s)
{
    struct hv__iteration *o = &l->iteration;
    if (!l->spans) {
        return;
    }
    if (o->n_reductions == o->most_reductions) {
        o->most_reductions = o->most_reductions > 0 ? 2 * o->most_reductions : 64;
        struct hv__reduction *more =
            hv_arena_new(l->arena, struct hv__reduction, o->most_reductions);
        if (o->n_reductions > 0) {
            memcpy(more, o->reductions, o->n_reductions * sizeof *more);
        }
        o->reductions = more;
    }
    o->reductions[o->n_reductions++] = (struct hv__reduction){
        .start_s = start_s, .end_s = end_s, .ranks = s->ranks, .n_ranks = s->n_ranks};
}

/** Counts a reduction, or several without a gap. */
static void count_one(struct hv__lowered *l, const struct hv__bucket_stream *s, double start_s,
                      double end_s)
{
    for (size_t i = 0; i < s->n_ranks; i++) {
        struct hv__rank *rk = s->members[i];
        rk->sync_end_s = later_s(rk->sync_end_s, end_s);
        rk->sync_exposed_s += later_s(0, end_s - later_s(start_s, hv__own_end_s(rk)));
    }
    keep_reduction(l, s, start_s, end_s);
}

/** Counts reductions with gaps between them. Those that begin after the last compute of a rank are
 * exposed whole, the one before them in part. */
static void count_spread(struct hv__lowered *l, const struct hv__bucket_stream *s,
                         const struct hv__reduced *x)
{
    double last_s = x->start_s + (x->n - 1) * x->step_s;
    for (size_t i = 0; i < s->n_ranks; i++) {
        struct hv__rank *rk = s->members[i];
        double before = fmin(x->n, fmax(0, ceil((hv__own_end_s(rk) - x->start_s) / x->step_s)));
        double ends_s = x->start_s + (before - 1) * x->step_s + x->duration_s;
        double part_s = before > 0 ? fmax(0, ends_s - hv__own_end_s(rk)) : 0;
        rk->sync_exposed_s += (x->n - before) * x->duration_s + part_s;
        rk->sync_end_s = fmax(rk->sync_end_s, last_s + x->duration_s);
    }
    for (double k = 0; k < x->n && l->spans; k++) {
        double at_s = x->start_s + k * x->step_s;
        double next_s = x->start_s + (k + 1) * x->step_s; /* sums may be off by a last digit */
        keep_reduction(l, s, at_s, fmin(next_s, at_s + x->duration_s));
    }
}

void hv__count_reductions(struct hv__lowered *l, const struct hv__bucket_stream *s,
                          const struct hv__reduced *x)
{
    l->iteration.reduces = true;
    if (x->n > 1) {
        count_spread(l, s, x);
    } else {
        count_one(l, s, x->start_s, x->start_s + x->duration_s);
    }
}

double hv__run_some(struct hv__links_left *traffic, const struct hv__bucket *b, double done,
                    double n, struct hv__lane_use *u, struct hv__reduced *out)
{
    double ready_s = b->ready_s + done * b->step_s, left = n - done;
    bool alone = ready_s >= u->end_s && !hv__links_busy_after(traffic, ready_s);
    if (done > 0 && left > 1 && alone) {
        double last_s = ready_s + (left - 1) * b->step_s;
        *u = (struct hv__lane_use){last_s, last_s + b->duration_s};
        *out = (struct hv__reduced){ready_s, b->duration_s, left, b->step_s};
        return left;
    }
    double start_s = fmax(u->end_s, ready_s), each = left;
    if (b->step_s > b->duration_s) { /* traffic beside them only makes the gaps smaller */
        each = fmin(each, 1 + floor((start_s - ready_s) / (b->step_s - b->duration_s)));
    }
    u->end_s = hv__end_on_links_left(traffic, &b->lanes, start_s, each * b->duration_s);
    u->start_s = u->end_s - (u->end_s - start_s) / each;
    *out = (struct hv__reduced){start_s, u->end_s - start_s, 1, 0};
    return each;
}

/** Runs the first `n` buckets of a run of equal ones. */
static void run_buckets(struct run *r, const struct waiting *w, double n, struct hv__lane_use *u)
{
    struct hv__reduced x;
    for (double done = 0; done < n;) {
        done += hv__run_some(r->taken.traffic, &w->bucket, done, n, u, &x);
        hv__count_reductions(r->l, w->stream, &x);
    }
}

double hv__ready_before(const struct hv__bucket *b, double until_s)
{
    if (b->n < 2 || !(b->step_s > 0)) {
        return b->n;
    }
    return fmin(b->n, fmax(1, ceil((until_s - b->ready_s) / b->step_s)));
}

/**
 * Reduces the buckets of a stream one after the other, each as soon as it is ready and its lanes
 * are free, as long as none of another stream is ready before. It uses the link lanes of its ranks
 * and, where it leaves a node, that node's network and the named links between nodes, next to
 * activations still in transfer.
 */
static void run_stream(struct run *r, struct waiting *w, double until_s)
{
    struct hv__lane_use u = {0, lanes_free_s(r, w)};
    struct hv__lanes lanes;
    bool same = true;
    do {
        lanes = w->bucket.lanes;
        double n = hv__ready_before(&w->bucket, until_s);
        run_buckets(r, w, n, &u);
        if (n < w->bucket.n) {
            w->bucket.n -= n;
            w->bucket.ready_s += n * w->bucket.step_s;
            break;
        }
        w->more = hv__next_bucket(r->l, w->stream, &w->bucket);
        same = w->more && w->bucket.lanes.ids == lanes.ids;
    } while (same && w->bucket.ready_s < until_s);
    for (size_t i = 0; i < lanes.n; i++) {
        r->taken.lane_s[lanes.ids[i]] = u.start_s + lanes.shares[i] * (u.end_s - u.start_s);
    }
    for (size_t i = 0; i < w->stream->n_ranks; i++) {
        r->taken.rank_s[w->stream->ranks[i]] = u.end_s;
    }
}

/** The streams of the plan, each with its first bucket. */
static struct run open_run(struct hv__lowered *l)
{
    struct run r = {.l = l};
    struct hv__bucket_stream *s = hv__bucket_streams(l, &r.n);
    size_t flat = l->pipelines.rank_at[l->pipelines.n];
    r.streams = hv_arena_new(l->arena, struct waiting, r.n + 1);
    r.taken.rank_s = hv_arena_new(l->arena, double, flat + 1);
    r.taken.lane_s = hv_arena_new(l->arena, double, n_lanes(l) + 1);
    for (size_t i = 0; i < r.n; i++) {
        r.streams[i].stream = &s[i];
        r.streams[i].more = hv__next_bucket(l, &s[i], &r.streams[i].bucket);
    }
    return r;
}

void hv__run_reductions(struct hv__lowered *l)
{
    struct run r = open_run(l);
    double until_s = 0;
    struct waiting *w = first_ready(&r, &until_s);
    if (w != NULL) {
        r.taken.traffic = hv__links_left_after(l, w->bucket.ready_s, NULL);
    }
    while (w != NULL) {
        run_stream(&r, w, until_s);
        w = first_ready(&r, &until_s);
    }
}

/** Adds a bucket, or a run of them, to what a round keeps busy. */
static void add_to_round(const struct hv__bucket *b, const struct hv__bucket_stream *s,
                         struct hv__round *o)
{
    for (size_t k = 0; k < b->lanes.n; k++) {
        double *lane_s = &o->lane_s[b->lanes.ids[k]];
        *lane_s += b->lanes.shares[k] * b->n * b->duration_s;
        o->time_s = fmax(o->time_s, *lane_s);
    }
    for (size_t h = 0; h < s->n_holders; h++) {
        double *rank_s = &o->rank_s[s->holders[h].flat_rank];
        *rank_s += b->n * b->duration_s;
        o->time_s = fmax(o->time_s, *rank_s);
    }
}

struct hv__round hv__exchange_round(struct hv__lowered *l)
{
    struct run r = open_run(l);
    struct hv__round o = {
        .rank_s = r.taken.rank_s, .lane_s = r.taken.lane_s, .n_lanes = n_lanes(l)};
    for (size_t i = 0; i < r.n; i++) {
        struct waiting *w = &r.streams[i];
        for (; w->more; w->more = hv__next_bucket(l, w->stream, &w->bucket)) {
            add_to_round(&w->bucket, w->stream, &o);
        }
    }
    return o;
}
