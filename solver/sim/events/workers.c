/*
 * Workers at their own pace, event by event: a clock of work ends, a push arrives. The work of a
 * clock is simulated in solver/sim/pipeline/pipeline.c.
 */
#include "solver/sim/events/workers_int.h"

#include "solver/base/rng.h"
#include "solver/sim/events/heap.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *const hv_workers_words[HV_WORKERS_KIND_N] = {"ps", "wsp", "partial_reduce", "gossip"};

/* kinds of events; an event's id is kind · workers + worker: pushes of one moment arrive before any
 * worker decides by them, and a worker that ends when a group's time is up still joins the group */
enum { ARRIVAL, END, TIME_UP, EXCHANGED };

/* factors by which each group changes the wait of the next (Hetu's client) */
#define WAIT_LONGER  2.0
#define WAIT_SHORTER 0.9

struct worker {
    int64_t clock;    /* the one it does or waits for */
    int64_t n_pushed; /* clocks whose push has arrived; partial reduce: steps of its own */
    double free_s;    /* when it was through with the last */
    double ended_s;
    int64_t read_at; /* ps: updates that the server had when it read */
    bool waits;
};

struct player {
    const struct hv_workers *w;
    struct hv_workers_run *out;
    struct worker *workers;
    struct hv__heap events;
    size_t n_room;    /* for events */
    double *passed_s; /* by how many clocks all have pushed: since when, a ring */
    size_t ring;
    int64_t slowest;   /* clocks that all have pushed */
    size_t n_slowest;  /* workers that have pushed no more than that */
    int64_t n_updates; /* at the server */
    size_t *queue, n_queue;
    int64_t *behind;  /* of the members of a group that averages */
    double *waited_s; /* likewise */
    struct hv__exchanges exchanges;
    int64_t n_exchanged;
    struct hv__groups groups;
    double wait_s, close_s; /* of the group that fills: how long, and until when */
    struct hv_arena *told;  /* arena of the result */
    int64_t n_mixed, n_clocks, n_averaged;
    struct hv_rng rng;
    double now_s;
};

static double hop(const struct player *y, size_t i)
{
    return y->w->hop_s ? y->w->hop_s[i] : 0;
}

/* one clock per worker, and pushes behind it: many where a hop lasts longer than a clock */
static void add_event(struct player *y, double at_s, int64_t id)
{
    if (y->events.n == y->n_room) {
        y->n_room = 2 * y->n_room + 2 * y->w->n;
        y->events.items = hv_xrealloc(y->events.items, y->n_room, sizeof *y->events.items);
    }
    hv__heap_push(&y->events, at_s, id);
}

static void note_staleness(struct player *y, int64_t x)
{
    y->out->staleness[x < HV_WORKERS_STALENESS ? x : HV_WORKERS_STALENESS - 1]++;
    y->out->mean_staleness += (double)x;
}

/* Box and Muller, 1958; mean 1 */
static double factor(struct player *y)
{
    double s = y->w->jitter;
    if (!(s > 0)) {
        return 1;
    }
    double u = 1 - hv_rng_double(&y->rng), v = hv_rng_double(&y->rng);
    return exp(s * sqrt(-2 * log(u)) * cos(6.283185307179586 * v) - s * s / 2);
}

static void begin(struct player *y, size_t i, double at_s, double waited_s)
{
    struct worker *k = &y->workers[i];
    k->waits = false;
    y->out->wait_frac[i] += waited_s;
    add_event(y, at_s + y->w->period_s[i] * factor(y), (int64_t)(END * y->w->n + i));
}

/* ---- through a server
 * --------------------------------------------------------------------------------- */

/* begins the worker's clock if all pushes that it requires have arrived */
static void begin_if_seen(struct player *y, size_t i)
{
    struct worker *k = &y->workers[i];
    int64_t must = k->clock - (y->w->staleness < 0 ? k->clock : y->w->staleness);
    must = must < 0 ? 0 : must;
    k->waits = must > y->slowest;
    if (k->waits) {
        return;
    }
    double passed_s = must > 0 ? y->passed_s[(size_t)must % y->ring] : 0;
    double at_s = must > 0 ? fmax(k->free_s, passed_s + hop(y, i)) : k->free_s;
    if (y->w->kind == HV_WORKERS_WSP) {
        note_staleness(y, k->clock - must);
    }
    k->read_at = y->n_updates;
    begin(y, i, at_s, fmax(0, passed_s - k->free_s));
}

/* the push of a clock is at the server */
static void arrive(struct player *y, size_t i)
{
    struct worker *k = &y->workers[i];
    bool was_slowest = k->n_pushed == y->slowest;
    k->n_pushed++;
    if (y->w->kind == HV_WORKERS_PS) {
        note_staleness(y, y->n_updates - k->read_at);
        k->free_s = y->now_s + hop(y, i);
    }
    y->n_updates++;
    if (was_slowest && --y->n_slowest == 0) {
        y->slowest++;
        y->passed_s[(size_t)y->slowest % y->ring] = y->now_s;
        for (size_t j = 0; j < y->w->n; j++) {
            y->n_slowest += y->workers[j].n_pushed == y->slowest;
        }
        for (size_t j = 0; j < y->w->n; j++) {
            if (y->workers[j].waits) {
                begin_if_seen(y, j);
            }
        }
    }
    if (y->w->kind == HV_WORKERS_PS) {
        k->clock++;
        begin_if_seen(y, i);
    }
}

static void push(struct player *y, size_t i)
{
    struct worker *k = &y->workers[i];
    add_event(y, y->now_s + hop(y, i), (int64_t)(ARRIVAL * y->w->n + i));
    if (y->w->kind == HV_WORKERS_WSP) {
        k->clock++;
        k->free_s = y->now_s;
        begin_if_seen(y, i);
    }
}

/* ---- with each other
 * ---------------------------------------------------------------------------------- */

/* begins the worker's next step if the slowest is not too far behind */
static void begin_in_bound(struct player *y, size_t i, double waited_s)
{
    struct worker *k = &y->workers[i];
    k->waits = y->w->staleness > 0 && k->n_pushed > y->slowest + y->w->staleness;
    if (k->waits) {
        y->out->wait_frac[i] += waited_s;
    } else {
        begin(y, i, fmax(y->now_s, k->free_s), waited_s);
    }
}

/* a worker has ended a step: if it was the last of the slowest, workers that waited for it resume
 */
static void count_step(struct player *y, size_t i)
{
    bool was_slowest = y->workers[i].n_pushed++ == y->slowest;
    if (y->w->staleness <= 0 || !was_slowest || --y->n_slowest > 0) {
        return;
    }
    y->slowest++;
    for (size_t j = 0; j < y->w->n; j++) {
        y->n_slowest += y->workers[j].n_pushed == y->slowest;
    }
    for (size_t j = 0; j < y->w->n; j++) {
        if (y->workers[j].waits) {
            begin_in_bound(y, j, fmax(0, y->now_s - y->workers[j].free_s));
        }
    }
}

/* averages the members of a list, which are behind by y->behind */
static void mix(struct player *y, const size_t *list, size_t n)
{
    hv__mix(y->out->mixing, y->w->n, list, y->behind, n, y->w->decay);
    y->n_mixed++;
}

/* keeps the first groups in the result, for drawings */
static void tell_group(struct player *y, const struct hv__exchange *e)
{
    struct hv_workers_run *out = y->out;
    if (out->n_groups < y->w->keep) {
        const size_t *members = hv_arena_copy(y->told, e->members, e->n, sizeof *e->members);
        out->groups[out->n_groups++] =
            (struct hv_workers_group){e->start_s, y->now_s + e->left_s, members, e->n};
    }
}

/* the exchange of these workers alone, with its links */
static struct hv__exchange exchange_of(const struct player *y, const size_t *members, size_t n)
{
    struct hv__exchange e = {
        .start_s = y->now_s, .members = members, .waited_s = y->waited_s, .n = n};
    if (y->w->exchange_s != NULL) {
        e.left_s = y->w->exchange_s(y->w->ctx, members, n, y->w->n_links > 0 ? &e.links : NULL);
    }
    for (size_t k = 0; y->w->exchange_s == NULL && k < n; k++) {
        e.left_s = fmax(e.left_s, hop(y, members[k]));
    }
    return e;
}

/* an exchange ends, or is known to end after left_s: its workers go on then */
static void go_on(struct player *y, const struct hv__exchange *e)
{
    y->n_exchanged++;
    y->out->mean_exchange_s += y->now_s + e->left_s - e->start_s;
    if (y->w->kind == HV_WORKERS_GOSSIP) {
        begin(y, e->members[0], y->now_s + e->left_s, 0);
        return;
    }
    tell_group(y, e);
    for (size_t k = 0; k < e->n; k++) {
        y->workers[e->members[k]].free_s = y->now_s + e->left_s;
        begin_in_bound(y, e->members[k], e->waited_s[k]);
    }
}

/* makes the next end of an exchange an event; those that were expected before are overtaken */
static void expect_exchange(struct player *y)
{
    double next_s = hv__exchanges_next(&y->exchanges);
    if (isfinite(next_s)) {
        add_event(y, next_s, (int64_t)(EXCHANGED * y->w->n));
    }
}

static void start_exchange(struct player *y, const struct hv__exchange *e)
{
    if (e->links.n == 0 || !(e->left_s > 0)) {
        go_on(y, e);
        return;
    }
    hv__exchanges_add(&y->exchanges, y->now_s, e);
    expect_exchange(y);
}

static void end_exchanges(struct player *y)
{
    struct hv__exchange e;
    bool some = false;
    while (hv__exchanges_take(&y->exchanges, y->now_s, &e)) {
        some = true;
        e.left_s = 0;
        go_on(y, &e);
        free(e.room);
    }
    if (some) {
        expect_exchange(y);
    }
}

/* the first n of the queue average; all of them then have the clock of the furthest */
static void average_group(struct player *y, size_t n)
{
    int64_t newest = 0;
    for (size_t k = 0; k < n; k++) {
        int64_t clock = y->workers[y->queue[k]].clock;
        newest = clock > newest ? clock : newest;
    }
    for (size_t k = 0; k < n; k++) {
        struct worker *x = &y->workers[y->queue[k]];
        y->behind[k] = newest - x->clock;
        y->waited_s[k] = y->now_s - x->ended_s;
        note_staleness(y, y->behind[k]);
        x->clock = newest + 1;
    }
    mix(y, y->queue, n);
    struct hv__exchange e = exchange_of(y, y->queue, n);
    start_exchange(y, &e);
    y->n_queue -= n;
    memmove(y->queue, y->queue + n, y->n_queue * sizeof *y->queue);
    y->n_averaged += (int64_t)n;
    bool few = n < y->w->least;
    y->wait_s = few ? fmin(WAIT_LONGER * y->wait_s, y->w->wait_most_s) : WAIT_SHORTER * y->wait_s;
}

/* starts the wait of the first of the queue */
static void set_time(struct player *y)
{
    if (y->w->wait_s > 0 && y->n_queue > 0) {
        y->close_s = y->now_s + y->wait_s;
        add_event(y, y->close_s, (int64_t)(TIME_UP * y->w->n));
    }
}

/* forms groups while the queue has enough workers; `late`: the first one need not be full */
static void make_groups(struct player *y, bool late)
{
    size_t n, made = 0;
    while ((n = hv__groups_next(&y->groups, y->queue, y->n_queue, late)) > 0) {
        average_group(y, n);
        late = false;
        made++;
    }
    if (made > 0) {
        set_time(y);
    }
}

static void join_group(struct player *y, size_t i)
{
    y->queue[y->n_queue++] = i;
    if (y->n_queue == 1) {
        set_time(y);
    }
    make_groups(y, false);
}

/* draws the partner of worker i by its weights, whose sum is arbitrary */
static size_t draw_peer(struct player *y, size_t i)
{
    size_t n = y->w->n, last = i;
    if (!y->w->weights) {
        size_t j = (size_t)hv_rng_below(&y->rng, n - 1);
        return j + (j >= i);
    }
    const double *row = y->w->weights + i * n;
    double sum = 0;
    for (size_t j = 0; j < n; j++) {
        sum += j == i ? 0 : row[j];
    }
    double x = hv_rng_double(&y->rng) * sum;
    for (size_t j = 0; j < n; j++) {
        if (j != i && row[j] > 0) {
            last = j;
            if (x < row[j]) {
                return j;
            }
            x -= row[j];
        }
    }
    return last;
}

static void average_with_one(struct player *y, size_t i)
{
    struct worker *k = &y->workers[i];
    size_t pair[2] = {i, y->w->n > 1 ? draw_peer(y, i) : i};
    struct hv__exchange e = {
        .start_s = y->now_s, .left_s = hop(y, i), .members = pair, .waited_s = y->waited_s, .n = 1};
    if (pair[1] != i) {
        int64_t apart = k->clock - y->workers[pair[1]].clock;
        note_staleness(y, apart < 0 ? -apart : apart);
        mix(y, pair, 2);
        e = y->w->exchange_s != NULL ? exchange_of(y, pair, 2) : e;
        e.n = 1; /* the peer does not wait */
    }
    k->clock++;
    start_exchange(y, &e);
}

/* ---- the simulation
 * -------------------------------------------------------------------------------------------- */

static void happen(struct player *y, int64_t id)
{
    size_t i = (size_t)id % y->w->n;
    if ((size_t)id / y->w->n == ARRIVAL) {
        arrive(y, i);
        return;
    }
    if ((size_t)id / y->w->n == TIME_UP) { /* of the group that fills now, or of one before it */
        make_groups(y, y->now_s >= y->close_s);
        return;
    }
    if ((size_t)id / y->w->n == EXCHANGED) {
        end_exchanges(y);
        return;
    }
    y->workers[i].ended_s = y->now_s;
    y->out->end_s[i] = y->now_s;
    y->out->clocks[i]++;
    y->out->rate_per_s[i] += y->now_s > y->w->horizon_s / 2;
    y->n_clocks++;
    switch (y->w->kind) {
    case HV_WORKERS_PS:
    case HV_WORKERS_WSP:
        push(y, i);
        break;
    case HV_WORKERS_PARTIAL:
        count_step(y, i);
        join_group(y, i);
        break;
    case HV_WORKERS_GOSSIP:
        average_with_one(y, i);
        break;
    case HV_WORKERS_KIND_N:
        break;
    }
}

static enum hv_status check(const struct hv_workers *w, struct hv_err *err)
{
    double clocks = 0;
    bool ok = w->n > 0 && w->kind < HV_WORKERS_KIND_N && w->horizon_s >= 0 && w->jitter >= 0 &&
              isfinite(w->horizon_s) && isfinite(w->jitter) && w->staleness >= -1;
    ok = ok && (w->kind != HV_WORKERS_PARTIAL || (w->group >= 1 && w->group <= w->n));
    ok = ok && w->wait_s >= 0 && isfinite(w->wait_s) && w->least <= w->n &&
         (w->wait_s == 0 || (w->wait_most_s >= w->wait_s && isfinite(w->wait_most_s)));
    for (size_t i = 0; i < w->n && ok; i++) {
        double h = w->hop_s ? w->hop_s[i] : 0;
        ok = w->period_s[i] > 0 && isfinite(w->period_s[i]) && h >= 0 && isfinite(h);
        clocks += w->horizon_s / w->period_s[i];
    }
    for (size_t i = 0; i < w->n * w->n && ok && w->weights; i++) {
        ok = w->weights[i] >= 0 && isfinite(w->weights[i]);
    }
    if (!ok) {
        return hv_err_set(err, HV_EUSAGE,
                          "workers: periods must be above 0, hops, weights, jitter and horizon at "
                          "least 0, staleness at least -1, the group from 1 to all workers, and "
                          "the longest wait of a group no less than its first");
    }
    if (clocks > HV_WORKERS_CLOCKS_MAX) {
        return hv_err_set(err, HV_ELIMIT,
                          "workers: about %.0f clocks within the horizon, the limit is %d; use a "
                          "shorter horizon",
                          clocks, HV_WORKERS_CLOCKS_MAX);
    }
    return HV_OK;
}

static void finish(struct player *y)
{
    struct hv_workers_run *out = y->out;
    int64_t n_stale = 0;
    for (size_t i = 0; i < y->w->n; i++) {
        bool is_left = y->workers[i].waits; /* and those that wait for a group to fill */
        for (size_t k = 0; k < y->n_queue; k++) {
            is_left = is_left || y->queue[k] == i;
        }
        bool held = y->w->kind == HV_WORKERS_PARTIAL && y->workers[i].waits;
        double since_s =
            held || y->w->kind == HV_WORKERS_PS ? y->workers[i].free_s : y->workers[i].ended_s;
        out->wait_frac[i] += is_left ? fmax(0, y->w->horizon_s - since_s) : 0;
        out->wait_frac[i] = y->w->horizon_s > 0 ? out->wait_frac[i] / y->w->horizon_s : 0;
        out->rate_per_s[i] = y->w->horizon_s > 0 ? out->rate_per_s[i] / (y->w->horizon_s / 2) : 0;
        out->sum_per_s += out->rate_per_s[i];
    }
    if (out->mixing != NULL) {
        hv__mix_end(out->mixing, y->w->n, y->n_mixed, y->w->decay);
    }
    out->mean_exchange_s /= y->n_exchanged > 0 ? (double)y->n_exchanged : 1;
    for (size_t i = 0; i < HV_WORKERS_STALENESS; i++) {
        n_stale += out->staleness[i];
    }
    bool grouped = y->w->kind == HV_WORKERS_PARTIAL && y->n_mixed > 0;
    out->mean_group = grouped ? (double)y->n_averaged / (double)y->n_mixed : 0;
    out->mean_staleness = n_stale > 0 ? out->mean_staleness / (double)n_stale : 0;
}

/* True where workers reduce among themselves, without a server. */
static bool are_peers(const struct hv_workers *w)
{
    return w->kind == HV_WORKERS_PARTIAL || w->kind == HV_WORKERS_GOSSIP;
}

/* Allocates the arrays: results in `a`, the rest in `scratch`. */
static void prepare(struct player *y, struct hv_arena *a, struct hv_arena *scratch)
{
    const struct hv_workers *w = y->w;
    struct hv_workers_run *out = y->out;
    *out = (struct hv_workers_run){0};
    out->rate_per_s = hv_arena_new(a, double, w->n);
    out->wait_frac = hv_arena_new(a, double, w->n);
    out->end_s = hv_arena_new(a, double, w->n);
    out->clocks = hv_arena_new(a, int64_t, w->n);
    out->mixing = are_peers(w) ? hv_arena_new(a, double, w->n * w->n) : NULL;
    y->workers = hv_arena_new(scratch, struct worker, w->n);
    y->queue = hv_arena_new(scratch, size_t, w->n);
    y->behind = hv_arena_new(scratch, int64_t, w->n + 2);
    y->waited_s = hv_arena_new(scratch, double, w->n + 2);
    y->exchanges = (struct hv__exchanges){.load = hv_arena_new(scratch, double, w->n_links + 1),
                                          .n_links = w->n_links};
    y->told = a;
    out->groups = hv_arena_new(a, struct hv_workers_group, w->keep + 1);
    if (w->kind == HV_WORKERS_PARTIAL) {
        hv__groups_init(scratch, &y->groups, w);
    }
    /* a worker looks back by no more than D clocks, nor than there can be */
    double most = fmin((double)w->staleness, HV_WORKERS_CLOCKS_MAX);
    y->ring = (size_t)fmax(0, most) + 2;
    y->passed_s = hv_arena_new(scratch, double, y->ring);
    hv_rng_seed(&y->rng, w->seed);
}

enum hv_status hv_workers_run(struct hv_arena *a, const struct hv_workers *w,
                              struct hv_workers_run *out, struct hv_err *err)
{
    enum hv_status st = check(w, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_arena scratch = {0};
    struct player y = {.w = w, .out = out, .n_slowest = w->n, .wait_s = w->wait_s};
    prepare(&y, a, &scratch);
    for (size_t i = 0; i < w->n; i++) {
        if (are_peers(w)) {
            begin(&y, i, 0, 0);
        } else {
            begin_if_seen(&y, i);
        }
    }
    while (y.events.n > 0 && y.events.items[0].key <= w->horizon_s) {
        struct hv__entry e = hv__heap_pop(&y.events);
        y.now_s = e.key;
        happen(&y, e.id);
        if (y.n_clocks > HV_WORKERS_CLOCKS_MAX) { /* jitter can make clocks very short */
            st = hv_err_set(err, HV_ELIMIT, "workers: more than %d clocks within the horizon",
                            HV_WORKERS_CLOCKS_MAX);
            break;
        }
    }
    finish(&y);
    free(y.events.items);
    hv__exchanges_free(&y.exchanges);
    hv_arena_free(&scratch);
    return st;
}
