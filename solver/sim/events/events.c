/*
 * The event-driven engine: a clock, a heap of events, and per resource a heap of ready tasks. All
 * events of one moment are processed before any task starts. solver/sim/pipeline/play.c translates
 * pipelines for it.
 */
#include "solver/base/str.h"
#include "solver/sim/events/events_int.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ready tasks
 * ------------------------------------------------------------------------------------------- */

static bool in_order(const struct hv__player *y, int32_t r)
{
    return y->g->rules && y->g->rules[r] == HV_QUEUE_ORDER;
}

/* the resource in whose heap a ready task waits: its first one without an order, -1 = all its
 * resources have an order and offer it in its turn */
static int32_t home_of(const struct hv__player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        if (!in_order(y, g->res[k])) {
            return g->res[k];
        }
    }
    return -1;
}

static void touch(struct hv__player *y, int32_t r)
{
    if (!y->is_dirty[r]) {
        y->is_dirty[r] = true;
        y->dirty[y->n_dirty++] = r;
    }
}

/* order of ready tasks: higher priority first, begun tasks before new ones, then by index */
static double rank_key(const struct hv__player *y, int32_t t)
{
    return -2.0 * y->g->tasks[t].priority - (y->p[t].begun ? 1 : 0);
}

/* true where a task may be set aside; a task of a resource with an order keeps its turn */
static bool may_stop(const struct hv__player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    bool may = g->tasks[t].piece_s > 0 && !y->p[t].to_cut;
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        may = may && !in_order(y, g->res[k]);
    }
    return may;
}

/* interrupts the tasks that hold the resources of t at the end of their current piece */
static void ask_for_room(struct hv__player *y, int32_t t)
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

static void make_ready(struct hv__player *y, int32_t t)
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
static int32_t offered(const struct hv__player *y, int32_t r)
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

static bool can_start(const struct hv__player *y, int32_t t)
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
static int32_t candidate(struct hv__player *y, int32_t r)
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

static void add_bytes(struct hv__player *y, int32_t memory, double bytes)
{
    if (memory >= 0) {
        y->bytes[memory] += bytes;
        if (y->bytes[memory] > y->run->peak_bytes[memory]) {
            y->run->peak_bytes[memory] = y->bytes[memory];
        }
    }
}

static void start(struct hv__player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    const struct hv_event_task *x = &g->tasks[t];
    struct hv__event_progress *p = &y->p[t];
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

static void release(struct hv__player *y, int32_t t)
{
    const struct hv_event_graph *g = y->g;
    for (int32_t k = g->res_at[t]; k < g->res_at[t + 1]; k++) {
        y->run->busy_s[g->res[k]] += y->now_s - y->p[t].from_s;
        y->holder[g->res[k]] = -1;
        touch(y, g->res[k]);
    }
}

static void arrive(struct hv__player *y, int32_t t)
{
    if (--y->p[t].waits == 0) {
        make_ready(y, t);
    }
}

static void finish(struct hv__player *y, int32_t t)
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

static void happen(struct hv__player *y, int64_t id)
{
    int32_t t = (int32_t)(id / EVENTS);
    struct hv__event_progress *p = &y->p[t];
    switch (id % EVENTS) {
    case END: /* no effect where the stretch was interrupted meanwhile */
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

/* true where t starts before the other task, both able to start */
static bool goes_first(const struct hv__player *y, int32_t t, int32_t other)
{
    double a = rank_key(y, t), b = rank_key(y, other);
    return a < b || (a <= b && t < other);
}

/* starts all tasks that can start: the best task over all resources, repeatedly */
static void start_best(struct hv__player *y)
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

static void start_all(struct hv__player *y)
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

/* ---- deadlock
 * ---------------------------------------------------------------------------------------------- */

static const char *name_of(const struct hv__player *y, int32_t t, char *buf, size_t cap)
{
    if (y->rules->name) {
        return y->rules->name(y->rules->ctx, t, buf, cap);
    }
    snprintf(buf, cap, "task %d", t);
    return buf;
}

/* writes why t does not start */
static void tell_block(const struct hv__player *y, int32_t t, struct hv_str *out)
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

static enum hv_status blocked(const struct hv__player *y, struct hv_err *err)
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
    hv_err_set(err, HV_ENO, "no task can continue: %s", hv_str_cstr(&text));
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
        enum hv_status st = hv__event_check(g, i, err);
        if (st != HV_OK) {
            return st;
        }
    }
    struct hv__player y = {.g = g, .rules = rules, .run = run};
    run->makespan_s = 0;
    run->n_interrupted = 0;
    memset(run->busy_s, 0, g->n_resources * sizeof *run->busy_s);
    memset(run->peak_bytes, 0, g->n_memories * sizeof *run->peak_bytes);
    hv__event_set_up(&y);
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
