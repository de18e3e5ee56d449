/*
 * Small task graphs on resources: one pass in given order, then one sweep for exposed time and
 * memory. Pipelines of whole stages belong to solver/sim/pipeline/pipeline.c, tasks by priority to
 * events.c.
 */
#include "solver/sim/events/tasks.h"
#include "solver/sim/events/heap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void hv_tasks_run_new(struct hv_arena *a, const struct hv_task_graph *g, struct hv_task_run *out)
{
    *out = (struct hv_task_run){0};
    out->start_s = hv_arena_new(a, double, g->n_tasks + 1);
    out->end_s = hv_arena_new(a, double, g->n_tasks + 1);
    out->busy_s = hv_arena_new(a, double, g->n_resources + 1);
}

static enum hv_status check_graph(const struct hv_task_graph *g, struct hv_err *err)
{
    for (size_t i = 0; i < g->n_tasks; i++) {
        const struct hv_task *t = &g->tasks[i];
        if (t->resource < 0 || (size_t)t->resource >= g->n_resources || !(t->duration_s >= 0) ||
            t->cause >= HV_TASK_CAUSES) {
            return hv_err_set(err, HV_EUSAGE,
                              "task %zu: its resource, duration or cause is out of range", i);
        }
        for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
            if (g->dep[k] < 0 || (size_t)g->dep[k] >= i) {
                return hv_err_set(err, HV_EUSAGE,
                                  "task %zu cannot wait for task %d, which is not before it", i,
                                  g->dep[k]);
            }
        }
    }
    return HV_OK;
}

static void reset(const struct hv_task_graph *g, struct hv_task_run *run)
{
    struct hv_task_run old = *run;
    *run = (struct hv_task_run){.start_s = old.start_s, .end_s = old.end_s, .busy_s = old.busy_s};
    memset(run->busy_s, 0, g->n_resources * sizeof *run->busy_s);
}

/* places one task and keeps the sums */
static void place(const struct hv_task_graph *g, struct hv_task_run *run, size_t i, double start)
{
    const struct hv_task *t = &g->tasks[i];
    run->start_s[i] = start;
    run->end_s[i] = start + t->duration_s;
    run->busy_s[t->resource] += t->duration_s;
    run->makespan_s = run->end_s[i] > run->makespan_s ? run->end_s[i] : run->makespan_s;
}

/* ---- sweep over starts and ends -------------------------------------------------------------- */

struct event {
    double at_s;
    int32_t task;
    bool is_start;
};

static int by_time(const void *x, const void *y)
{
    const struct event *a = x, *b = y;
    if (a->at_s < b->at_s || a->at_s > b->at_s) {
        return a->at_s < b->at_s ? -1 : 1;
    }
    if (a->is_start != b->is_start) {
        return a->is_start ? 1 : -1; /* ends free memory before starts take it */
    }
    return (a->task > b->task) - (a->task < b->task);
}

struct sweep {
    const struct hv_task_graph *g;
    struct hv_task_run *run;
    struct hv__heap other; /* running tasks that do not compute; ended ones leave late */
    double bytes;
    size_t computing;
};

/* assigns the time from t0 to t1, in which nothing starts or ends, to its causes */
static void share_out(struct sweep *w, double t0_s, double t1_s)
{
    if (w->computing > 0) {
        w->run->compute_s += t1_s - t0_s;
        return;
    }
    while (w->other.n > 0 && w->run->end_s[w->other.items[0].id] <= t0_s) {
        hv__heap_pop(&w->other);
    }
    if (w->other.n > 0) {
        uint8_t cause = w->g->tasks[w->other.items[0].id].cause;
        w->run->exposed_by_cause_s[cause] += t1_s - t0_s;
    }
}

static void apply(struct sweep *w, const struct event *e)
{
    const struct hv_task *t = &w->g->tasks[e->task];
    bool computes = w->g->resources[t->resource] == HV_RESOURCE_COMPUTE;
    w->bytes += e->is_start ? t->start_bytes : t->end_bytes;
    if (w->bytes > w->run->peak_bytes) {
        w->run->peak_bytes = w->bytes;
        w->run->peak_at_s = e->at_s;
    }
    if (!(t->duration_s > 0)) {
        return;
    }
    if (computes) {
        w->computing = e->is_start ? w->computing + 1 : w->computing - 1;
    } else if (e->is_start) {
        hv__heap_push(&w->other, 0, e->task);
    }
}

static void sweep(const struct hv_task_graph *g, struct hv_task_run *run)
{
    size_t n = 2 * g->n_tasks;
    struct event *events = hv_xcalloc(n + 1, sizeof *events);
    struct sweep w = {.g = g, .run = run};
    w.other.items = hv_xcalloc(g->n_tasks + 1, sizeof *w.other.items);
    for (size_t i = 0; i < g->n_tasks; i++) {
        events[2 * i] = (struct event){run->start_s[i], (int32_t)i, true};
        events[2 * i + 1] = (struct event){run->end_s[i], (int32_t)i, false};
    }
    qsort(events, n, sizeof *events, by_time);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && events[i].at_s > events[i - 1].at_s) {
            share_out(&w, events[i - 1].at_s, events[i].at_s);
        }
        apply(&w, &events[i]);
    }
    run->exposed_s = run->makespan_s - run->compute_s;
    free(events);
    free(w.other.items);
}

/* ---- fixed order ----------------------------------------------------------------------------- */

enum hv_status hv_tasks_place(struct hv_arena *scratch, const struct hv_task_graph *g,
                              struct hv_task_run *run, struct hv_err *err)
{
    enum hv_status st = check_graph(g, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_arena_mark mark = hv_arena_mark(scratch);
    double *free_at = hv_arena_new(scratch, double, g->n_resources + 1);
    reset(g, run);
    for (size_t i = 0; i < g->n_tasks; i++) {
        double start = free_at[g->tasks[i].resource];
        for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
            double ready = run->end_s[g->dep[k]];
            start = ready > start ? ready : start;
        }
        place(g, run, i, start);
        free_at[g->tasks[i].resource] = run->end_s[i];
    }
    hv_arena_rewind(scratch, mark);
    return HV_OK;
}

enum hv_status hv_tasks_run(struct hv_arena *scratch, const struct hv_task_graph *g,
                            struct hv_task_run *run, struct hv_err *err)
{
    enum hv_status st = hv_tasks_place(scratch, g, run, err);
    if (st == HV_OK) {
        sweep(g, run);
    }
    return st;
}
