/*
 * Builds the task graphs of overlap.h and has sim time them. The callers supply the seconds of the
 * tasks (part/exchange.c, stage/pass.c).
 */
#include "solver/cost/network/overlap.h"
#include "solver/base/units.h"

#include <math.h>

#include "solver/sim/events/tasks.h"

enum { COMPUTE, LINK, LANES };

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
    g->dep = hv_arena_new(&g->arena, int32_t, most + 1);
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

/* A lane idles only while the other one works: link time that is not exposed overlaps compute. */
static struct hv_overlap finish(struct graph *g)
{
    static const enum hv_resource_kind lanes[LANES] = {HV_RESOURCE_COMPUTE, HV_RESOURCE_LINK};
    struct hv_task_graph t = {.n_tasks = g->n,
                              .n_resources = LANES,
                              .tasks = g->tasks,
                              .resources = lanes,
                              .dep_at = g->dep_at,
                              .dep = g->dep};
    struct hv_task_run run;
    struct hv_overlap out = {HV_UNKNOWN, HV_UNKNOWN};
    hv_tasks_run_new(&g->arena, &t, &run);
    if (hv_tasks_run(&g->arena, &t, &run, NULL) == HV_OK) {
        out.exposed_s = fmax(0, run.makespan_s - run.busy_s[COMPUTE]);
        out.hidden_s = fmax(0, run.busy_s[LINK] - out.exposed_s);
    }
    hv_arena_free(&g->arena);
    return out;
}

struct hv_overlap hv_overlap_round_trips(int n, struct hv_round_trip chunk)
{
    if (n < 2) {
        return (struct hv_overlap){chunk.out_s + chunk.back_s, 0};
    }
    struct graph g = {0};
    start(&g, 3 * (size_t)n);
    for (int i = 0; i < n; i++) {
        add(&g, LINK, chunk.out_s, -1);
    }
    for (int i = 0; i < n; i++) {
        add(&g, COMPUTE, chunk.compute_s, i);
    }
    for (int i = 0; i < n; i++) {
        add(&g, LINK, chunk.back_s, n + i);
    }
    return finish(&g);
}

struct hv_overlap hv_overlap_ring(int n, struct hv_ring_step step)
{
    if (n < 2) {
        return (struct hv_overlap){0};
    }
    struct graph g = {0};
    start(&g, 3 * (size_t)n);
    int32_t ahead = -1, computed = -1;
    for (int i = 0; i < n; i++) {
        int32_t arrived = ahead;
        if (i + 1 < n) { /* into the buffer that the step before has read */
            ahead = add(&g, LINK, step.ahead_s, computed);
        }
        if (i > 0 && step.behind_s > 0) {
            add(&g, LINK, step.behind_s, computed);
        }
        computed = add(&g, COMPUTE, step.compute_s, arrived);
    }
    return finish(&g);
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
    return finish(&g);
}
