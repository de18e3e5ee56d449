/*
 * Small task graphs on resources: one pass in given order, or event by event with priorities, then
 * one sweep for exposed time and memory. Pipelines of whole stages belong to
 * solver/sim/pipeline/pipeline.c.
 */
#include "solver/sim/events/tasks.h"
#include "solver/sim/events/heap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- what both modes share
 * -------------------------------------------------------------------------- */

void hv_tasks_run_new(struct hv_arena *a, const struct hv_task_graph *g, struct hv_task_run *out)
{
    *out = (struct hv_task_run){0};
    out->start_s = hv_arena_new(a, double, g->n_tasks + 1);
    out->end_s = hv_arena_new(a, double, g->n_tasks + 1);
    out->busy_s = hv_arena_new(a, double, g->n_resources + 1);
}

static enum hv_status check_graph(const struct hv_task_graph *g, bool in_order, struct hv_err *err)
{
    for (size_t i = 0; i < g->n_tasks; i++) {
        const struct hv_task *t = &g->tasks[i];
        if (t->resource < 0 || (size_t)t->resource >= g->n_resources || !(t->duration_s >= 0) ||
            t->cause >= HV_TASK_CAUSES) {
            return hv_err_set(err, HV_EUSAGE,
                              "task %zu: its resource, duration or cause is out of range", i);
        }
        for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
            if (g->dep[k] < 0 || (size_t)g->dep[k] >= (in_order ? i : g->n_tasks)) {
                return hv_err_set(err, HV_EUSAGE, "task %zu cannot wait for task %d%s", i,
                                  g->dep[k], in_order ? ", which is not before it" : "");
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

/* ---- sweep over starts and ends
 * --------------------------------------------------------------------- */

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
        return a->is_start ? 1 : -1; /* what ends makes room first */
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

/* shares out the time from t0 to t1, in which nothing starts or ends */
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

/* ---- fixed order
 * ------------------------------------------------------------------------------------ */

enum hv_status hv_tasks_run(struct hv_arena *scratch, const struct hv_task_graph *g,
                            struct hv_task_run *run, struct hv_err *err)
{
    enum hv_status st = check_graph(g, true, err);
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
    sweep(g, run);
    return HV_OK;
}

/* ---- event by event
 * --------------------------------------------------------------------------------- */

struct events {
    const struct hv_task_graph *g;
    struct hv_task_run *run;
    struct hv__heap *ready; /* per resource, key −priority */
    struct hv__heap ends;   /* running tasks by end */
    bool *busy;             /* per resource */
    int32_t *left;          /* per task: what it still waits for */
    int32_t *next_at, *next;
    size_t n_done;
};

static void build_events(struct hv_arena *a, struct events *v)
{
    const struct hv_task_graph *g = v->g;
    size_t n = g->n_tasks;
    int32_t *count = hv_arena_new(a, int32_t, g->n_resources + 1);
    v->ready = hv_arena_new(a, struct hv__heap, g->n_resources + 1);
    v->busy = hv_arena_new(a, bool, g->n_resources + 1);
    v->left = hv_arena_new(a, int32_t, n + 1);
    v->next_at = hv_arena_new(a, int32_t, n + 2);
    v->next = hv_arena_new(a, int32_t, (size_t)g->dep_at[n] + 1);
    v->ends.items = hv_arena_new(a, struct hv__entry, n + 1);
    for (size_t i = 0; i < n; i++) {
        count[g->tasks[i].resource]++;
        v->left[i] = g->dep_at[i + 1] - g->dep_at[i];
        for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
            v->next_at[g->dep[k] + 2]++;
        }
    }
    for (size_t i = 2; i < n + 2; i++) {
        v->next_at[i] += v->next_at[i - 1];
    }
    for (size_t i = 0; i < n; i++) {
        for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
            v->next[v->next_at[g->dep[k] + 1]++] = (int32_t)i;
        }
    }
    for (size_t r = 0; r < g->n_resources; r++) {
        v->ready[r].items = hv_arena_new(a, struct hv__entry, (size_t)count[r] + 1);
    }
}

static void make_ready(struct events *v, int32_t task)
{
    const struct hv_task *t = &v->g->tasks[task];
    hv__heap_push(&v->ready[t->resource], -(double)t->priority, task);
}

static void start_all(struct events *v, double now)
{
    for (size_t r = 0; r < v->g->n_resources; r++) {
        if (!v->busy[r] && v->ready[r].n > 0) {
            int32_t task = (int32_t)hv__heap_pop(&v->ready[r]).id;
            place(v->g, v->run, (size_t)task, now);
            v->busy[r] = true;
            hv__heap_push(&v->ends, v->run->end_s[task], task);
        }
    }
}

static void end_one(struct events *v)
{
    int32_t task = (int32_t)hv__heap_pop(&v->ends).id;
    v->busy[v->g->tasks[task].resource] = false;
    v->n_done++;
    for (int32_t k = v->next_at[task]; k < v->next_at[task + 1]; k++) {
        if (--v->left[v->next[k]] == 0) {
            make_ready(v, v->next[k]);
        }
    }
}

enum hv_status hv_tasks_run_by_priority(struct hv_arena *scratch, const struct hv_task_graph *g,
                                        struct hv_task_run *run, struct hv_err *err)
{
    enum hv_status st = check_graph(g, false, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_arena_mark mark = hv_arena_mark(scratch);
    struct events v = {.g = g, .run = run};
    reset(g, run);
    build_events(scratch, &v);
    for (size_t i = 0; i < g->n_tasks; i++) {
        if (v.left[i] == 0) {
            make_ready(&v, (int32_t)i);
        }
    }
    start_all(&v, 0);
    while (v.ends.n > 0) {
        double now = v.ends.items[0].key;
        while (v.ends.n > 0 && v.ends.items[0].key <= now) {
            end_one(&v);
        }
        start_all(&v, now);
    }
    for (size_t i = 0; i < g->n_tasks && v.n_done < g->n_tasks; i++) {
        if (v.left[i] > 0) {
            st = hv_err_set(
                err, HV_ENO,
                "tasks wait for each other in a cycle; task %zu is one of those that never start",
                i);
            break;
        }
    }
    hv_arena_rewind(scratch, mark);
    if (st == HV_OK) {
        sweep(g, run);
    }
    return st;
}
