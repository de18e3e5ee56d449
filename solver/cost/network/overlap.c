/*
 * Builds the task graphs of overlap.h and has sim time them. The callers supply the seconds of the
 * tasks (part/exchange.c, stage/pass.c).
 */
#include "solver/cost/network/overlap.h"
#include "solver/base/units.h"

#include <math.h>

#include "solver/sim/events/tasks.h"

enum { COMPUTE, LINK, OUTER, LANES };

struct graph {
    struct hv_arena arena;
    struct hv_task *tasks;
    int32_t *dep_at, *dep;
    size_t n, n_dep;
};

static void start(struct graph *g, size_t most)
{
    g->tasks = hv_arena_new(&g->arena, struct hv_task, most + 1);
    g->dep_at = hv_arena_new(&g->arena, int32_t, most + 2);
    g->dep = hv_arena_new(&g->arena, int32_t, 2 * most + 1);
}

/* Adds a task that waits for its lane and for another one (negative: none); returns its number. */
static int32_t add(struct graph *g, int lane, double duration_s, int32_t after)
{
    g->tasks[g->n] = (struct hv_task){.duration_s = duration_s, .resource = lane};
    if (after >= 0) {
        g->dep[g->n_dep++] = after;
    }
    g->dep_at[++g->n] = (int32_t)g->n_dep;
    return (int32_t)g->n - 1;
}

/* Places all tasks; false: they could not be. The run lives in the graph's arena. */
static bool place(struct graph *g, struct hv_task_run *run)
{
    static const enum hv_resource_kind lanes[LANES] = {HV_RESOURCE_COMPUTE, HV_RESOURCE_LINK,
                                                       HV_RESOURCE_LINK};
    struct hv_task_graph t = {.n_tasks = g->n,
                              .n_resources = LANES,
                              .tasks = g->tasks,
                              .resources = lanes,
                              .dep_at = g->dep_at,
                              .dep = g->dep};
    hv_tasks_run_new(&g->arena, &t, run);
    return hv_tasks_place(&g->arena, &t, run, NULL) == HV_OK;
}

/* Compute idles only while a link works: link time beside which it does not idle overlaps it.
 * `extra_s`: of the compute lane, what is part of the exchange. */
static struct hv_overlap finish(struct graph *g, double extra_s)
{
    struct hv_task_run run;
    struct hv_overlap out = {HV_UNKNOWN, HV_UNKNOWN};
    if (place(g, &run)) {
        double idle_s = fmax(0, run.makespan_s - run.busy_s[COMPUTE]);
        out.exposed_s = idle_s + extra_s;
        out.hidden_s = fmax(0, run.busy_s[LINK] + run.busy_s[OUTER] - idle_s);
    }
    hv_arena_free(&g->arena);
    return out;
}

/* Work of the device on a chunk, in this order. */
enum work { COMPRESS, EXPAND, WORK, COMPRESS_BACK, EXPAND_BACK, WORKS };

/* Chunks on their way: how many each kind of work has behind it, and when the next one of it can
 * begin and has ended last. */
struct trips {
    int n, done[WORKS];
    struct hv_round_trip chunk;
    double *ready_s[WORKS];  /* [n] */
    double link_s, device_s; /* when both are free */
    struct graph *g;
    int32_t *last; /* [n] task of the chunk */
};

static double duration_of(const struct hv_round_trip *c, enum work w)
{
    const double of[WORKS] = {[COMPRESS] = c->compress_s[0],
                              [EXPAND] = c->expand_s[0],
                              [WORK] = c->compute_s,
                              [COMPRESS_BACK] = c->compress_s[1],
                              [EXPAND_BACK] = c->expand_s[1]};
    return of[w];
}

/* Sends chunk `i`; what follows can begin when it has arrived. */
static void send(struct trips *t, int i, bool back)
{
    double time_s = back ? t->chunk.back_s : t->chunk.out_s;
    double begin_s = fmax(t->link_s, t->ready_s[back ? EXPAND_BACK : EXPAND][i]);
    t->last[i] = add(t->g, LINK, time_s, t->last[i]);
    t->link_s = begin_s + time_s;
    t->ready_s[back ? EXPAND_BACK : EXPAND][i] = t->link_s;
}

/* Runs the next chunk's work of a kind, and sends back what is then complete. */
static void step(struct trips *t, enum work w)
{
    int i = t->done[w]++;
    double time_s = duration_of(&t->chunk, w);
    t->device_s = fmax(t->device_s, t->ready_s[w][i]) + time_s;
    if (time_s > 0 || w == WORK) {
        t->last[i] = add(t->g, COMPUTE, time_s, t->last[i]);
    }
    if (w + 1 < WORKS) {
        t->ready_s[w + 1][i] = t->device_s;
    }
    if (w == COMPRESS_BACK) {
        send(t, i, true);
    }
}

/* The kind of work whose next chunk has waited longest; earlier chunks first. */
static enum work longest_waiting(const struct trips *t)
{
    enum work best = WORKS;
    for (enum work w = EXPAND; w < WORKS; w++) {
        int i = t->done[w];
        if (i >= t->n || i >= t->done[w - 1]) {
            continue;
        }
        double own_s = t->ready_s[w][i];
        double best_s = best < WORKS ? t->ready_s[best][t->done[best]] : HUGE_VAL;
        best = own_s < best_s || (own_s <= best_s && i < t->done[best]) ? w : best;
    }
    return best;
}

static void run_chunks(struct trips *t, enum hv_trip_order order)
{
    for (int i = 0; i < t->n; i++) {
        step(t, COMPRESS);
    }
    for (int i = 0; i < t->n; i++) {
        send(t, i, false);
    }
    if (order == HV_TRIP_OPTSCHE) {
        for (int i = 0; i < t->n; i++) {
            step(t, EXPAND);
            step(t, WORK);
            step(t, COMPRESS_BACK);
        }
    }
    for (enum work w; (w = longest_waiting(t)) < WORKS;) {
        step(t, w);
    }
}

struct hv_overlap hv_overlap_round_trips(int n, struct hv_round_trip chunk,
                                         enum hv_trip_order order)
{
    double extra_s =
        chunk.compress_s[0] + chunk.compress_s[1] + chunk.expand_s[0] + chunk.expand_s[1];
    if (n < 2) {
        return (struct hv_overlap){chunk.out_s + chunk.back_s + extra_s, 0};
    }
    struct graph g = {0};
    struct trips t = {.n = n, .chunk = chunk, .g = &g};
    start(&g, 7 * (size_t)n);
    t.last = hv_arena_new(&g.arena, int32_t, (size_t)n);
    for (int w = 0; w < WORKS; w++) {
        t.ready_s[w] = hv_arena_new(&g.arena, double, (size_t)n);
    }
    for (int i = 0; i < n; i++) {
        t.last[i] = -1;
    }
    run_chunks(&t, order);
    return finish(&g, n * extra_s);
}

/* Lets the task that is added next wait for one more. */
static void also_after(struct graph *g, int32_t task)
{
    if (task >= 0) {
        g->dep[g->n_dep++] = task;
    }
}

/* The hop before step `i`, begun after task `computed`: on the outer ring's link where a window
 * begins with that step. The first hop of a window passes on what the outer one has brought. */
static int32_t hop_ahead(struct graph *g, const struct hv_ring *r, int i, int32_t computed,
                         int32_t *outer)
{
    int at = r->window > 1 ? i % r->window : -1;
    int32_t brought = *outer;
    if (at == 0) {
        return brought;
    }
    if (at == 1 && i - 1 + r->window < r->steps) {
        *outer = add(g, OUTER, r->outer_ahead_s, computed);
    }
    also_after(g, at == 1 ? brought : -1);
    return add(g, LINK, r->ahead_of_s ? r->ahead_of_s[i] : r->ahead_s, computed);
}

/* At the end of a window sums return to the rank that began it before they go on to the next. */
static void hop_behind(struct graph *g, const struct hv_ring *r, int step, int32_t computed)
{
    double time_s = r->behind_of_s ? r->behind_of_s[step] : r->behind_s;
    if (time_s > 0 && step >= r->behind_from && step < r->behind_to) {
        int32_t returned = add(g, LINK, time_s, computed);
        if (r->window > 1 && (step + 1) % r->window == 0) {
            add(g, OUTER, r->outer_behind_s, returned);
        }
    }
}

/* Tasks of a step: its work, and the hop that it needs (-1: none). */
struct ring_task {
    int32_t work, hop;
};

/* Adds the tasks of a ring; of[steps] may be NULL. */
static void add_ring(struct graph *g, const struct hv_ring *ring, struct ring_task *of)
{
    start(g, 5 * (size_t)ring->steps + 4);
    int32_t ahead = -1, computed = -1, outer = -1;
    for (int i = 0; i < ring->steps; i++) {
        int32_t arrived = ahead;
        if (i + 1 < ring->steps) { /* into the buffer that the step before has read */
            ahead = hop_ahead(g, ring, i + 1, computed, &outer);
        }
        if (i > 0) {
            hop_behind(g, ring, i - 1, computed);
        }
        computed = add(g, COMPUTE, i > 0 ? ring->step_s : ring->first_s, arrived);
        if (of != NULL) {
            of[i] = (struct ring_task){computed, arrived};
        }
    }
    hop_behind(g, ring, ring->steps - 1, computed);
}

struct hv_overlap hv_overlap_ring(const struct hv_ring *ring)
{
    if (ring->steps < 1) {
        return (struct hv_overlap){0};
    }
    struct graph g = {0};
    add_ring(&g, ring, NULL);
    return finish(&g, 0);
}

double hv_overlap_ring_steps(const struct hv_ring *ring, struct hv_why_step *steps)
{
    struct graph g = {0};
    struct hv_task_run run;
    double before_s = 0, after_s = 0;
    if (ring->steps < 1) {
        return 0;
    }
    struct ring_task *of = hv_arena_new(&g.arena, struct ring_task, (size_t)ring->steps);
    add_ring(&g, ring, of);
    bool placed = place(&g, &run);
    for (int i = 0; i < ring->steps; i++) {
        int32_t work = of[i].work, hop = of[i].hop;
        steps[i] = (struct hv_why_step){0};
        if (placed) {
            steps[i].work_s = run.start_s[work];
            steps[i].done_s = run.end_s[work];
            steps[i].waited_s = run.start_s[work] - before_s;
            before_s = run.end_s[work];
        }
        if (placed && hop >= 0) {
            steps[i].hop_from_s = run.start_s[hop];
            steps[i].hop_to_s = run.end_s[hop];
            steps[i].outer = g.tasks[hop].resource == OUTER;
        }
    }
    after_s = placed ? run.makespan_s - before_s : 0;
    hv_arena_free(&g.arena);
    return after_s;
}

/* A task on each link that has one, after task `after`; out[2]: their numbers, or -1. */
static void add_on_links(struct graph *g, const struct hv_panels *p, const double *time_s,
                         int32_t after, int32_t *out)
{
    for (int i = 0; i < 2; i++) {
        int lane = i == 0 || p->one_link ? LINK : OUTER;
        out[i] = time_s[i] > 0 ? add(g, lane, time_s[i], after) : -1;
    }
}

struct hv_overlap hv_overlap_panels(const struct hv_panels *p)
{
    struct graph g = {0};
    start(&g, 5 * (size_t)p->steps);
    int32_t came[2][2], left[2][2] = {{-1, -1}, {-1, -1}}; /* of the last two steps, by link */
    for (int i = 0; i < 2 && i < p->steps; i++) {
        add_on_links(&g, p, p->before_s, -1, came[i]);
    }
    for (int i = 0; i < p->steps; i++) {
        int at = i % 2;
        also_after(&g, came[at][1]);
        also_after(&g, left[at][0]);
        also_after(&g, left[at][1]);
        int32_t computed = add(&g, COMPUTE, p->step_s, came[at][0]);
        add_on_links(&g, p, p->after_s, computed, left[at]);
        if (i + 2 < p->steps) {
            add_on_links(&g, p, p->before_s, computed, came[at]);
        }
    }
    return finish(&g, 0);
}

/* Goes through the units of all runs one by one. */
struct cursor {
    const struct hv_units *runs;
    size_t n_runs, run, at;
};

static const struct hv_units *next(struct cursor *c)
{
    while (c->run < c->n_runs && c->at >= c->runs[c->run].n) {
        c->run++;
        c->at = 0;
    }
    c->at++;
    return c->run < c->n_runs ? &c->runs[c->run] : NULL;
}

struct hv_overlap hv_overlap_units(const struct hv_units *runs, size_t n_runs, size_t window)
{
    size_t n = 0;
    for (size_t i = 0; i < n_runs; i++) {
        n += runs[i].n;
    }
    window = window < 1 ? 1 : window < n ? window : n;
    struct graph g = {0};
    start(&g, 3 * n);
    int32_t *gathers = hv_arena_new(&g.arena, int32_t, n + 1);
    struct cursor ahead = {runs, n_runs, 0, 0}, here = ahead;
    size_t gathered = 0;
    for (; gathered < window; gathered++) {
        gathers[gathered] = add(&g, LINK, next(&ahead)->gather_s, -1);
    }
    for (size_t i = 0; i < n; i++) {
        const struct hv_units *u = next(&here);
        int32_t computed = add(&g, COMPUTE, u->compute_s, gathers[i]);
        if (u->scatter_s > 0) {
            add(&g, LINK, u->scatter_s, computed);
        }
        if (gathered < n) {
            gathers[gathered] = add(&g, LINK, next(&ahead)->gather_s, computed);
            gathered++;
        }
    }
    return finish(&g, 0);
}
