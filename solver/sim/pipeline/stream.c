/*
 * Tasks of a stream in a run: every task depends only on earlier ones and on nodes that have ended
 * before the node it is issued for, so that its times are known when that node is reached.
 */
#include "solver/sim/pipeline/pipeline_int.h"

#include <stdlib.h>
#include <string.h>

void hv_stream_begin(const struct hv_pipe *g, const struct hv_stream *x, struct hv_stream_run *y)
{
    memcpy(y->next, x->task_at, (size_t)g->s.n_ranks * sizeof *y->next);
    memset(y->slowed_s, 0, (size_t)g->s.n_ranks * sizeof *y->slowed_s);
}

/* Runs the tasks of a rank that are issued up to node n, the last of them when all nodes before it
 * have ended, at before_s. */
static void issue(const struct hv_stream *x, struct hv_stream_run *y, int32_t rank, int32_t n,
                  double before_s)
{
    size_t k = y->next[rank];
    for (; k < x->task_at[rank + 1] && x->tasks[k].before <= n; k++) {
        double free_s = k > x->task_at[rank] ? y->end_s[k - 1] : 0;
        y->start_s[k] = before_s > free_s ? before_s : free_s;
        y->end_s[k] = y->start_s[k] + x->tasks[k].time_s;
    }
    y->next[rank] = k;
}

double hv_stream_ready_s(const struct hv_stream *x, struct hv_stream_run *y, int32_t rank,
                         int32_t n, double before_s)
{
    issue(x, y, rank, n, before_s);
    return x->needs[n] >= 0 ? y->end_s[x->needs[n]] : 0;
}

double hv_stream_slows_s(const struct hv_stream *x, struct hv_stream_run *y, int32_t rank,
                         double start_s, double duration_s)
{
    double beside_s = 0, end_s = start_s + duration_s;
    if (!(x->slowdown[rank] > 0)) {
        return 0;
    }
    for (size_t k = y->next[rank]; k-- > x->task_at[rank] && y->end_s[k] > start_s;) {
        double from = y->start_s[k] > start_s ? y->start_s[k] : start_s;
        double to = y->end_s[k] < end_s ? y->end_s[k] : end_s;
        beside_s += to > from ? to - from : 0;
    }
    y->slowed_s[rank] += x->slowdown[rank] * beside_s;
    return x->slowdown[rank] * beside_s;
}

void hv_stream_finish(const struct hv_pipe *g, const struct hv_stream *x, const double *node_end_s,
                      struct hv_stream_run *y)
{
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        int32_t n = g->rank_node_at[r + 1];
        issue(x, y, r, n, n > g->rank_node_at[r] ? node_end_s[n - 1] : 0);
    }
}

/* limits what comes before the tasks of a rank that are issued for node n */
static void let_tasks(const struct hv_pipe *g, const struct hv_stream *x, struct hv_stream_run *y,
                      int32_t rank, int32_t n, double *tasks_s, double *nodes_s)
{
    size_t k = y->next[rank];
    for (; k > x->task_at[rank] && x->tasks[k - 1].before == n; k--) {
        double late_s = tasks_s[k - 1] - x->tasks[k - 1].time_s;
        if (k - 1 > x->task_at[rank] && late_s < tasks_s[k - 2]) {
            tasks_s[k - 2] = late_s;
        }
        if (n > g->rank_node_at[rank] && late_s < nodes_s[n - 1]) {
            nodes_s[n - 1] = late_s;
        }
    }
    y->next[rank] = k;
}

double *hv__stream_latest(const struct hv_pipe *g, const struct hv_stream *x,
                          const struct hv_pipe_run *run, double *nodes_s)
{
    size_t n = x->task_at[g->s.n_ranks];
    double *tasks_s = hv_xcalloc(n + 1, sizeof *tasks_s), end_s = run->makespan_s;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        double own_s = hv_pipe_stream_end_s(x, run->stream, r);
        end_s = own_s > end_s ? own_s : end_s;
    }
    for (size_t k = 0; k < n; k++) {
        tasks_s[k] = end_s;
    }
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        run->stream->next[r] = x->task_at[r + 1];
        let_tasks(g, x, run->stream, r, g->rank_node_at[r + 1], tasks_s, nodes_s);
    }
    return tasks_s;
}

void hv__stream_let(const struct hv_pipe *g, const struct hv_stream *x, struct hv_stream_run *y,
                    int32_t rank, int32_t n, double late_s, double *tasks_s, double *nodes_s)
{
    if (x->needs[n] >= 0 && late_s < tasks_s[x->needs[n]]) {
        tasks_s[x->needs[n]] = late_s;
    }
    let_tasks(g, x, y, rank, n, tasks_s, nodes_s);
}

void hv_pipe_stream_new(struct hv_arena *a, const struct hv_pipe *g, const struct hv_stream *x,
                        struct hv_pipe_run *out)
{
    size_t n = x->task_at[g->s.n_ranks];
    struct hv_stream_run *y = hv_arena_new(a, struct hv_stream_run, 1);
    y->start_s = hv_arena_new(a, double, n + 1);
    y->end_s = hv_arena_new(a, double, n + 1);
    y->slowed_s = hv_arena_new(a, double, (size_t)g->s.n_ranks);
    y->next = hv_arena_new(a, size_t, (size_t)g->s.n_ranks);
    out->stream = y;
}

double hv_pipe_stream_end_s(const struct hv_stream *x, const struct hv_stream_run *y, int32_t rank)
{
    size_t n = x->task_at[rank + 1];
    return n > x->task_at[rank] ? y->end_s[n - 1] : 0;
}
