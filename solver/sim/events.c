/*
 * The event-driven engine: a clock, a heap of what happens next, and per resource what is ready.
 * All that happens at one moment is taken in before anything starts. What a pipeline asks of it is
 * translated in pipeline_play.c.
 */
#include "solver/sim/events.h"

#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/sim/heap.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* what can happen; an event's id is task · EVENTS + kind */
enum { END, ARRIVAL, CUT, EVENTS };
enum state { WAITING, READY, RUNNING, DONE };

/* one task while it is played */
struct progress {
    double left_s;  /* of its duration */
    double from_s;  /* start of the stretch that runs */
    double until_s; /* its end if nothing cuts it */
    int32_t waits;  /* deps not yet there */
    uint8_t state;
    bool begun, to_cut;
};

struct player {
    const struct hv_event_graph *g;
    const struct hv_event_rules *rules;
    struct hv_event_run *run;
    struct hv_arena scratch;
    struct progress *p;
    int32_t *next_at, *next; /* who waits for a task: index into dep */
    int32_t *who;            /* task of each index into dep */
    int32_t *list_at, *list; /* tasks of a resource by index */
    int32_t *head;           /* per resource, into list: first not started */
    int32_t *holder;         /* per resource: task that runs on it, -1 = free */
    struct hv__heap *ready;  /* per resource: ready tasks that wait there, see home_of */
    struct hv__heap events;
    double *bytes;
    int32_t *credits;
    bool tangled; /* tasks hold several resources or share limits: all resources are looked at */
    int32_t *dirty;
    bool *is_dirty;
    size_t n_dirty, n_done;
    double now_s;
};

/* ---- setting up
 * ---------------------------------------------------------------------------------------------- */

static enum hv_status check_task(const struct hv_event_graph *g, size_t i, struct hv_err *err)
{
    const struct hv_event_task *t = &g->tasks[i];
    bool ok = t->duration_s >= 0 && isfinite(t->duration_s) && t->piece_s >= 0 &&
              g->res_at[i + 1] > g->res_at[i] && t->pool < (int32_t)g->n_pools &&
              t->memory < (int32_t)g->n_memories && t->credits >= 0;
    for (int32_t k = g->res_at[i]; k < g->res_at[i + 1]; k++) {
        ok = ok && g->res[k] >= 0 && (size_t)g->res[k] < g->n_resources;
        ok = ok && (k == g->res_at[i] || g->res[k] > g->res[k - 1]);
    }
    for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
        ok = ok && g->dep[k] >= 0 && (size_t)g->dep[k] < g->n_tasks;
        ok = ok && (!g->lag_s || (g->lag_s[k] >= 0 && isfinite(g->lag_s[k])));
    }
    if (!ok) {
        return hv_err_set(
            err, HV_EUSAGE,
            "task %zu: its duration, resources (ascending, at least one), deps, lags, "
            "memory, pool or credits are out of range",
            i);
    }
    return HV_OK;
}

/* lists by counting: at[x]…at[x + 1] of the positions k in [0, n) with key[k] = x */
static void group(struct hv_arena *a, const int32_t *key, size_t n, size_t n_keys, int32_t **at,
                  int32_t **out)
{
    *at = hv_arena_new(a, int32_t, n_keys + 2);
    *out = hv_arena_new(a, int32_t, n + 1);
    for (size_t k = 0; k < n; k++) {
        (*at)[key[k] + 2]++;
    }
    for (size_t x = 2; x < n_keys + 2; x++) {
        (*at)[x] += (*at)[x - 1];
    }
    for (size_t k = 0; k < n; k++) {
        (*out)[(*at)[key[k] + 1]++] = (int32_t)k;
    }
}

/* a factor of mean 1 with the logarithm spread by `jitter` (Box and Muller, 1958) */
static double factor(const struct hv_event_rules *rules, size_t task)
{
    struct hv_rng r;
    if (!(rules->jitter > 0)) {
        return 1;
    }
    hv_rng_seed(
        &r, hv_hash(hv_hash(HV_HASH_START, &rules->seed, sizeof rules->seed), &task, sizeof task));
    double u = 1 - hv_rng_double(&r), v = hv_rng_double(&r);
    double z = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
    return exp(rules->jitter * z - rules->jitter * rules->jitter / 2);
}

static void set_up(struct player *y)
{
    const struct hv_event_graph *g = y->g;
    struct hv_arena *a = &y->scratch;
    size_t n = g->n_tasks, n_res = g->n_resources, n_dep = (size_t)g->dep_at[n];
    y->p = hv_arena_new(a, struct progress, n + 1);
    y->who = hv_arena_new(a, int32_t, n_dep + 1);
    int32_t *task_of = hv_arena_new(a, int32_t, (size_t)g->res_at[n] + 1);
    for (size_t i = 0; i < n; i++) {
        y->p[i].left_s = g->tasks[i].duration_s * factor(y->rules, i);
        y->p[i].waits = g->dep_at[i + 1] - g->dep_at[i];
        y->tangled |=
            g->res_at[i + 1] - g->res_at[i] > 1 || g->tasks[i].pool >= 0 || g->tasks[i].memory >= 0;
        for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
            y->who[k] = (int32_t)i;
        }
        for (int32_t k = g->res_at[i]; k < g->res_at[i + 1]; k++) {
            task_of[k] = (int32_t)i;
        }
    }
    group(a, g->dep, n_dep, n, &y->next_at, &y->next);
    group(a, g->res, (size_t)g->res_at[n], n_res, &y->list_at, &y->list);
    y->head = hv_arena_new(a, int32_t, n_res + 1);
    y->holder = hv_arena_new(a, int32_t, n_res + 1);
    y->ready = hv_arena_new(a, struct hv__heap, n_res + 1);
    y->dirty = hv_arena_new(a, int32_t, n_res + 1);
    y->is_dirty = hv_arena_new(a, bool, n_res + 1);
    for (int32_t k = 0; k < g->res_at[n]; k++) {
        y->list[k] = task_of[y->list[k]];
    }
    for (size_t r = 0; r < n_res; r++) {
        size_t on_it = (size_t)(y->list_at[r + 1] - y->list_at[r]);
        y->head[r] = y->list_at[r];
        y->holder[r] = -1;
        y->ready[r].items = hv_arena_new(a, struct hv__entry, on_it + 1);
    }
    y->events.items = hv_arena_new(a, struct hv__entry, 3 * n + n_dep + 1);
    y->bytes = hv_arena_new(a, double, g->n_memories + 1);
    y->credits = hv_arena_new(a, int32_t, g->n_pools + 1);
    for (size_t k = 0; k < g->n_pools; k++) {
        y->credits[k] = g->pool_credits[k];
    }
}

/* ---- what is ready
 * ------------------------------------------------------------------------------------------- */

static bool in_order(const struct player *y, int32_t r)
{
    return y->g->rules && y->g->rules[r] == HV_QUEUE_ORDER;
}

/* where a ready task waits: its first resource without an order, -1 = all have one and offer it */
static int32_t home_of(const struct player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        if (!in_order(y, g->res[k])) {
            return g->res[k];
        }
    }
    return -1;
}

static void touch(struct player *y, int32_t r)
{
    if (!y->is_dirty[r]) {
        y->is_dirty[r] = true;
        y->dirty[y->n_dirty++] = r;
    }
}

/* higher priority first, begun before fresh, then by index */
static double rank_key(const struct player *y, int32_t t)
{
    return -2.0 * y->g->tasks[t].priority - (y->p[t].begun ? 1 : 0);
}

/* may a task be set aside? One in an order keeps its turn */
static bool may_stop(const struct player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    bool may = g->tasks[t].piece_s > 0 && !y->p[t].to_cut;
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        may = may && !in_order(y, g->res[k]);
    }
    return may;
}

/* asks the tasks that keep t from its resources to stop at their next piece */
static void ask_for_room(struct player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        int32_t u = y->holder[g->res[k]];
        if (u < 0 || g->tasks[u].priority >= g->tasks[t].priority || !may_stop(y, u)) {
            continue;
        }
        double piece = g->tasks[u].piece_s;
        double at = y->p[u].from_s + ceil((y->now_s - y->p[u].from_s) / piece) * piece;
        at = at < y->now_s ? y->now_s : at;
        if (at < y->p[u].until_s) {
            y->p[u].to_cut = true;
            hv__heap_push(&y->events, at, (int64_t)u * EVENTS + CUT);
        }
    }
}

static void make_ready(struct player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    y->p[t].state = READY;
    int32_t home = home_of(y, t);
    if (home >= 0) {
        hv__heap_push(&y->ready[home], rank_key(y, t), t);
    }
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        touch(y, g->res[k]);
    }
    ask_for_room(y, t);
}

/* the task that a resource with an order offers, -1 = none */
static int32_t offered(const struct player *y, int32_t r)
{
    int32_t end = y->list_at[r + 1], left = y->rules->look_ahead;
    for (int32_t k = y->head[r]; k < end; k++) {
        int32_t t = y->list[k];
        if (y->p[t].state == RUNNING || y->p[t].state == DONE) {
            continue;
        }
        if (y->p[t].state == READY && (k == y->head[r] || y->g->tasks[t].may_jump)) {
            return t;
        }
        if (left-- <= 0) {
            break;
        }
    }
    return -1;
}

static bool can_start(const struct player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    const struct hv_event_task *x = &g->tasks[t];
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        int32_t r = g->res[k];
        if (y->holder[r] >= 0 || (in_order(y, r) && offered(y, r) != t)) {
            return false;
        }
    }
    if (y->p[t].begun) {
        return true;
    }
    if (x->pool >= 0 && y->credits[x->pool] < x->credits) {
        return false;
    }
    return x->memory < 0 || !(x->start_bytes > 0) ||
           y->bytes[x->memory] + x->start_bytes <= g->capacity_bytes[x->memory];
}

/* the best task that resource r can start now, taken out of its heap, -1 = none */
static int32_t candidate(struct player *y, int32_t r)
{
    if (y->holder[r] >= 0) {
        return -1;
    }
    if (in_order(y, r)) {
        int32_t t = offered(y, r);
        return t >= 0 && home_of(y, t) < 0 && can_start(y, t) ? t : -1;
    }
    struct hv__heap *h = &y->ready[r];
    size_t n = h->n, skipped = 0;
    int32_t found = -1;
    while (h->n > 0 && found < 0) {
        struct hv__entry e = hv__heap_pop(h);
        if (can_start(y, (int32_t)e.id)) {
            found = (int32_t)e.id;
        } else {
            h->items[n - 1 - skipped++] = e; /* kept at the far end, which the heap has left */
        }
    }
    for (size_t k = 0; k < skipped; k++) {
        struct hv__entry e = h->items[n - skipped + k];
        hv__heap_push(h, e.key, e.id);
    }
    return found;
}

/* ---- playing
 * ---------------------------------------------------------------------------------------------- */

static void add_bytes(struct player *y, int32_t memory, double bytes)
{
    if (memory >= 0) {
        y->bytes[memory] += bytes;
        if (y->bytes[memory] > y->run->peak_bytes[memory]) {
            y->run->peak_bytes[memory] = y->bytes[memory];
        }
    }
}

static void start(struct player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    const struct hv_event_task *x = &g->tasks[t];
    struct progress *p = &y->p[t];
    if (!p->begun) {
        y->run->start_s[t] = y->now_s;
        add_bytes(y, x->memory, x->start_bytes);
        if (x->pool >= 0) {
            y->credits[x->pool] -= x->credits;
        }
    }
    p->begun = true;
    p->to_cut = false;
    p->state = RUNNING;
    p->from_s = y->now_s;
    p->until_s = y->now_s + p->left_s;
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        int32_t r = g->res[k];
        y->holder[r] = t;
        while (y->head[r] < y->list_at[r + 1] && y->p[y->list[y->head[r]]].state >= RUNNING) {
            y->head[r]++;
        }
    }
    hv__heap_push(&y->events, p->until_s, (int64_t)t * EVENTS + END);
}

static void release(struct player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        y->run->busy_s[g->res[k]] += y->now_s - y->p[t].from_s;
        y->holder[g->res[k]] = -1;
        touch(y, g->res[k]);
    }
}

static void arrive(struct player *y, int32_t t)
{
    if (--y->p[t].waits == 0) {
        make_ready(y, t);
    }
}

static void finish(struct player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    const struct hv_event_task *x = &g->tasks[t];
    y->p[t].state = DONE;
    y->n_done++;
    y->run->end_s[t] = y->now_s;
    y->run->makespan_s = y->now_s;
    add_bytes(y, x->memory, x->end_bytes);
    if (x->pool >= 0) {
        y->credits[x->pool] += x->credits;
    }
    release(y, t);
    for (int32_t k = y->next_at[t]; k < y->next_at[t + 1]; k++) {
        int32_t dep = y->next[k];
        if (g->lag_s && g->lag_s[dep] > 0) {
            hv__heap_push(&y->events, y->now_s + g->lag_s[dep],
                          (int64_t)y->who[dep] * EVENTS + ARRIVAL);
        } else {
            arrive(y, y->who[dep]);
        }
    }
}

static void happen(struct player *y, int64_t id)
{
    int32_t t = (int32_t)(id / EVENTS);
    struct progress *p = &y->p[t];
    switch (id % EVENTS) {
    case END: /* of a stretch that was cut meanwhile: nothing */
        if (p->state == RUNNING && p->until_s <= y->now_s) {
            finish(y, t);
        }
        break;
    case ARRIVAL:
        arrive(y, t);
        break;
    default:
        if (p->state == RUNNING && p->to_cut) {
            p->left_s = p->until_s - y->now_s;
            y->run->n_interrupted++;
            release(y, t);
            make_ready(y, t);
        }
        break;
    }
}

static int by_number(const void *x, const void *y)
{
    const int32_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* of two that can start */
static bool goes_first(const struct player *y, int32_t t, int32_t other)
{
    double a = rank_key(y, t), b = rank_key(y, other);
    return a < b || (a <= b && t < other);
}

/* starts what can: the best of all resources, again and again */
static void start_best(struct player *y)
{
    for (;;) {
        int32_t best = -1;
        for (int32_t r = 0; r < (int32_t)y->g->n_resources; r++) {
            int32_t t = candidate(y, r);
            if (t < 0) {
                continue;
            }
            bool better = best < 0 || goes_first(y, t, best);
            int32_t loser = better ? best : t;
            best = better ? t : best;
            int32_t home = loser >= 0 && loser != best ? home_of(y, loser) : -1;
            if (home >= 0) {
                hv__heap_push(&y->ready[home], rank_key(y, loser), loser);
            }
        }
        if (best < 0) {
            return;
        }
        start(y, best);
    }
}

static void start_all(struct player *y)
{
    if (y->tangled) {
        start_best(y);
    } else {
        qsort(y->dirty, y->n_dirty, sizeof *y->dirty, by_number);
        for (size_t i = 0; i < y->n_dirty; i++) {
            int32_t t = candidate(y, y->dirty[i]);
            if (t >= 0) {
                start(y, t);
            }
        }
    }
    for (size_t i = 0; i < y->n_dirty; i++) {
        y->is_dirty[y->dirty[i]] = false;
    }
    y->n_dirty = 0;
}

/* ---- when nothing goes on
 * ---------------------------------------------------------------------------------------------- */

static const char *name_of(const struct player *y, int32_t t, char *buf, size_t cap)
{
    if (y->rules->name) {
        return y->rules->name(y->rules->ctx, t, buf, cap);
    }
    snprintf(buf, cap, "task %d", t);
    return buf;
}

/* why t does not start */
static void tell_block(const struct player *y, int32_t t, struct hv_str *out)
{
    const struct hv_event_graph *g = y->g;
    const struct hv_event_task *x = &g->tasks[t];
    char buf[64];
    hv_str_addf(out, "%s waits for ", name_of(y, t, buf, sizeof buf));
    for (int32_t k = g->dep_at[t]; k < g->dep_at[t + 1]; k++) {
        if (y->p[g->dep[k]].state != DONE) {
            hv_str_adds(out, name_of(y, g->dep[k], buf, sizeof buf));
            return;
        }
    }
    if (x->pool >= 0 && y->credits[x->pool] < x->credits) {
        hv_str_addf(out, "%d credits of pool %d, which has %d left", x->credits, x->pool,
                    y->credits[x->pool]);
    } else if (x->memory >= 0 && x->start_bytes > 0 &&
               y->bytes[x->memory] + x->start_bytes > g->capacity_bytes[x->memory]) {
        hv_str_addf(out, "%g of memory %d, which holds %g of %g", x->start_bytes, x->memory,
                    y->bytes[x->memory], g->capacity_bytes[x->memory]);
    } else {
        hv_str_adds(out, "its turn on another resource");
    }
}

static enum hv_status blocked(const struct player *y, struct hv_err *err)
{
    struct hv_str text = {0};
    int told = 0;
    for (size_t r = 0; r < y->g->n_resources && told < 8; r++) {
        for (int32_t k = y->head[r]; k < y->list_at[r + 1]; k++) {
            int32_t t = y->list[k];
            if (y->p[t].state == WAITING || y->p[t].state == READY) {
                hv_str_adds(&text, told++ ? "; " : "");
                tell_block(y, t, &text);
                break;
            }
        }
    }
    hv_err_set(err, HV_ENO, "nothing can go on: %s", hv_str_cstr(&text));
    hv_str_free(&text);
    return HV_ENO;
}

void hv_events_run_new(struct hv_arena *a, const struct hv_event_graph *g, struct hv_event_run *out)
{
    *out = (struct hv_event_run){0};
    out->start_s = hv_arena_new(a, double, g->n_tasks + 1);
    out->end_s = hv_arena_new(a, double, g->n_tasks + 1);
    out->busy_s = hv_arena_new(a, double, g->n_resources + 1);
    out->peak_bytes = hv_arena_new(a, double, g->n_memories + 1);
}

enum hv_status hv_events_run(const struct hv_event_graph *g, const struct hv_event_rules *rules,
                             struct hv_event_run *run, struct hv_err *err)
{
    for (size_t i = 0; i < g->n_tasks; i++) {
        enum hv_status st = check_task(g, i, err);
        if (st != HV_OK) {
            return st;
        }
    }
    struct player y = {.g = g, .rules = rules, .run = run};
    run->makespan_s = 0;
    run->n_interrupted = 0;
    memset(run->busy_s, 0, g->n_resources * sizeof *run->busy_s);
    memset(run->peak_bytes, 0, g->n_memories * sizeof *run->peak_bytes);
    set_up(&y);
    for (size_t i = 0; i < g->n_tasks; i++) {
        if (y.p[i].waits == 0) {
            make_ready(&y, (int32_t)i);
        }
    }
    start_all(&y);
    while (y.events.n > 0) {
        y.now_s = y.events.items[0].key;
        while (y.events.n > 0 && y.events.items[0].key <= y.now_s) {
            happen(&y, hv__heap_pop(&y.events).id);
        }
        start_all(&y);
    }
    enum hv_status st = y.n_done == g->n_tasks ? HV_OK : blocked(&y, err);
    hv_arena_free(&y.scratch);
    return st;
}
