/*
 * Prices of a compiled order: time, idle, critical path, slack. The graph comes from
 * compile.c, memory stands in memory.c.
 */
#include "solver/sim/pipeline/pipeline_int.h"

#include <math.h>
#include <stdlib.h>

static bool is_backward(const struct hv_op *op)
{
    return op->kind == HV_OP_B || op->kind == HV_OP_BW;
}

/* ---- time
 * ----------------------------------------------------------------------------------------- */

double hv_pipe_op_duration_s(const struct hv_pipe *g, const struct hv_pipe_cost *c, size_t i)
{
    const struct hv_op *op = &g->s.ops[i]; /* an R is never the first op of its rank */
    if (op->kind == HV_OP_R && g->s.free_adjacent_recompute && op[-1].kind == HV_OP_F &&
        op[-1].stage == op->stage && op[-1].mb == op->mb && op[-1].slice == op->slice) {
        return 0;
    }
    if (c->op_s) {
        return c->op_s[i];
    }
    double x = c->stage_s[(size_t)op->stage * HV_OP_KIND_N + op->kind] * hv_op_share(&g->s, op);
    if (c->rank_scale) {
        size_t place = (size_t)op->pipe * (size_t)g->s.n_stages + (size_t)op->stage;
        x *= c->rank_scale[g->s.stage_to_rank[place]];
    }
    if (c->mb_scale) {
        size_t q = op->slice > 0 ? (size_t)op->slice : 0;
        x *= c->mb_scale[(size_t)op->mb * (size_t)g->s.n_slices + q];
    }
    return x;
}

const struct hv_op *hv_pipe_hop_end(const struct hv_pipe *g, int32_t n, int32_t hop)
{
    size_t from = hv_pipe_first_op(g, n), to = hv_pipe_first_op(g, n + 1);
    bool back = hop >= g->s.n_pipes * g->s.graph.n_edges;
    for (size_t i = from; i + 1 < to; i++) {
        if ((g->s.ops[i].kind != HV_OP_F) == back) {
            return &g->s.ops[i];
        }
    }
    return &g->s.ops[to - 1];
}

double hv_pipe_node_duration_s(const struct hv_pipe *g, const struct hv_pipe_cost *c, int32_t n)
{
    size_t i = hv_pipe_first_op(g, n);
    const struct hv_op *op = &g->s.ops[i];
    if (op->group < 0) {
        return hv_pipe_op_duration_s(g, c, i);
    }
    if (c->pair_s) {
        return c->pair_s[op->group];
    }
    return hv_pipe_op_duration_s(g, c, i) + hv_pipe_op_duration_s(g, c, i + 1);
}

void hv_pipe_run_new(struct hv_arena *a, const struct hv_pipe *g, struct hv_pipe_run *out)
{
    *out = (struct hv_pipe_run){0};
    out->node_start_s = hv_arena_new(a, double, (size_t)g->n_nodes + 1);
    out->node_end_s = hv_arena_new(a, double, (size_t)g->n_nodes + 1);
}

void hv_pipe_summarise(const struct hv_pipe *g, struct hv_pipe_run *run)
{
    double last = 0, span = 0, busy = 0;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        int32_t from = g->rank_node_at[r], to = g->rank_node_at[r + 1];
        double first = from < to ? run->node_start_s[from] : 0, end = 0;
        for (int32_t n = from; n < to; n++) {
            double a = run->node_start_s[n], z = run->node_end_s[n];
            first = a < first ? a : first;
            end = z > end ? z : end;
            busy += z - a;
        }
        last = end > last ? end : last;
        span = end - first > span ? end - first : span;
    }
    double p = g->s.n_ranks;
    run->makespan_s = last;
    run->longest_span_s = span;
    run->busy_s = busy;
    run->bubble_frac = last > 0 ? 1 - busy / (p * last) : 0;
    run->span_bubble_frac = span > 0 ? 1 - busy / (p * span) : 0;
}

/* sums for a strict order, in which a rank's first op is its first and its last the last */
static void summarise(const struct hv_pipe *g, double busy, struct hv_pipe_run *run)
{
    double last = 0, span = 0;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        int32_t from = g->rank_node_at[r], to = g->rank_node_at[r + 1];
        if (from == to) {
            continue;
        }
        double end = run->node_end_s[to - 1], len = end - run->node_start_s[from];
        last = end > last ? end : last;
        span = len > span ? len : span;
    }
    double p = g->s.n_ranks;
    run->makespan_s = last;
    run->longest_span_s = span;
    run->busy_s = busy;
    run->bubble_frac = last > 0 ? 1 - busy / (p * last) : 0;
    run->span_bubble_frac = span > 0 ? 1 - busy / (p * span) : 0;
}

/* prefetch distance in nodes, ahead of the node at which a rank stops: ranks take turns, and there
 * are more of them than the hardware prefetcher tracks */
enum { AHEAD = 16 };

/* the usual case: a chain, one table of stage times. Same sums in the same order */
static double time_chain(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                         struct hv_pipe_run *run)
{
    double busy = 0;
    double *start = run->node_start_s, *end = run->node_end_s;
    for (size_t k = 0; k < g->n_stretches; k++) {
        struct hv_pipe_stretch x = g->stretches[k];
        double t = hv_pipe_is_first(g, x.from) ? 0 : end[x.from - 1];
        __builtin_prefetch(g->s.ops + x.to + AHEAD);
        __builtin_prefetch(g->dep + x.to + AHEAD);
        __builtin_prefetch(start + x.to + AHEAD, 1);
        __builtin_prefetch(end + x.to + AHEAD, 1);
        for (int32_t n = x.from; n < x.to; n++) {
            const struct hv_op *op = &g->s.ops[n];
            int32_t dep = g->dep[n];
            if (dep >= 0) {
                double ready = end[dep] + hv_pipe_hop_s(c, hv_pipe_dep_hop(g, op));
                t = ready > t ? ready : t;
            }
            double d = c->stage_s[(size_t)op->stage * HV_OP_KIND_N + op->kind];
            start[n] = t;
            t += d;
            end[n] = t;
            busy += d;
        }
    }
    return busy;
}

int32_t hv_pipe_rank_of(const struct hv_pipe *g, int32_t node)
{
    int32_t low = 0, high = g->s.n_ranks;
    while (high - low > 1) {
        int32_t mid = low + (high - low) / 2;
        *(g->rank_node_at[mid] <= node ? &low : &high) = mid;
    }
    return low;
}

/* any order: nodes of several ops, several edges, times of their own, a stream beside them */
static double time_any(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                       struct hv_pipe_run *run)
{
    double busy = 0;
    double *start = run->node_start_s, *end = run->node_end_s;
    for (size_t k = 0; k < g->n_stretches; k++) {
        struct hv_pipe_stretch x = g->stretches[k];
        double t = hv_pipe_is_first(g, x.from) ? 0 : end[x.from - 1];
        int32_t rank = c->stream ? hv_pipe_rank_of(g, x.from) : -1;
        for (int32_t n = x.from; n < x.to; n++) {
            double gathered = c->stream ? hv_stream_ready_s(c->stream, run->stream, rank, n, t) : 0;
            t = gathered > t ? gathered : t;
            for (int32_t e = 0; e < hv_pipe_n_edges(g, n); e++) {
                struct hv_pipe_edge edge = hv_pipe_edge_of(g, n, e);
                double ready = end[edge.node] +
                               hv_pipe_op_hop_s(g, c, hv_pipe_hop_end(g, n, edge.hop), edge.hop);
                t = ready > t ? ready : t;
            }
            double d = hv_pipe_node_duration_s(g, c, n);
            d += c->stream ? hv_stream_slows_s(c->stream, run->stream, rank, t, d) : 0;
            start[n] = t;
            t += d;
            end[n] = t;
            busy += d;
        }
    }
    return busy;
}

void hv_pipe_time(const struct hv_pipe *g, const struct hv_pipe_cost *c, struct hv_pipe_run *run)
{
    bool chain = g->dep && !g->s.parts && !c->op_s && !c->rank_scale && !c->mb_scale &&
                 !c->hop_scale && !g->s.free_adjacent_recompute && !c->stream;
    if (c->stream) {
        hv_stream_begin(g, c->stream, run->stream);
    }
    summarise(g, chain ? time_chain(g, c, run) : time_any(g, c, run), run);
    if (c->stream) {
        hv_stream_finish(g, c->stream, run->node_end_s, run->stream);
    }
}

/* ---- idle time
 * ------------------------------------------------------------------------------------ */

/* first node with a backward and last node with a forward, as far as there are any */
static void find_phases(const struct hv_pipe *g, int32_t r, int32_t *first_b, int32_t *last_f)
{
    int32_t from = g->rank_node_at[r], to = g->rank_node_at[r + 1];
    *first_b = from;
    *last_f = to;
    bool seen_b = false;
    for (int32_t n = from; n < to; n++) {
        for (size_t i = hv_pipe_first_op(g, n); i < hv_pipe_first_op(g, n + 1); i++) {
            if (g->s.ops[i].kind == HV_OP_F) {
                *last_f = n;
            } else if (is_backward(&g->s.ops[i]) && !seen_b) {
                seen_b = true;
                *first_b = n;
            }
        }
    }
}

double hv_pipe_waited_s(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                        const struct hv_pipe_run *run, int32_t n)
{
    double most = hv_pipe_is_held(run, n) ? (double)INFINITY : 0;
    for (int32_t e = 0; e < hv_pipe_n_edges(g, n); e++) {
        struct hv_pipe_edge x = hv_pipe_edge_of(g, n, e);
        double hop = hv_pipe_edge_s(g, c, run, n, e);
        if (run->node_end_s[x.node] + hop >= run->node_start_s[n] && hop > most) {
            most = hop;
        }
    }
    return most;
}

/* the part of the gap before node n in which only its gather was missing */
static double gather_waited_s(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                              const struct hv_pipe_run *run, int32_t n, double free_at)
{
    double ready = free_at;
    if (!c->stream || c->stream->needs[n] < 0) {
        return 0;
    }
    for (int32_t e = 0; e < hv_pipe_n_edges(g, n); e++) {
        double at =
            run->node_end_s[hv_pipe_edge_of(g, n, e).node] + hv_pipe_edge_s(g, c, run, n, e);
        ready = at > ready ? at : ready;
    }
    ready = run->held && run->held[n].until_s > ready ? run->held[n].until_s : ready;
    double gathered = run->stream->end_s[c->stream->needs[n]];
    double to = gathered < run->node_start_s[n] ? gathered : run->node_start_s[n];
    return to > ready ? to - ready : 0;
}

void hv_pipe_idle(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                  const struct hv_pipe_run *run, struct hv_pipe_rank *out)
{
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        int32_t from = g->rank_node_at[r], to = g->rank_node_at[r + 1], first_b, last_f;
        struct hv_pipe_rank *o = &out[r];
        *o = (struct hv_pipe_rank){0};
        find_phases(g, r, &first_b, &last_f);
        double free_at = 0;
        for (int32_t n = from; n < to; n++) {
            double stream = gather_waited_s(g, c, run, n, free_at);
            double gap = run->node_start_s[n] - free_at - stream;
            o->stream_s += stream;
            double hop = gap > 0 ? hv_pipe_waited_s(g, c, run, n) : 0;
            double comm = hop < gap ? hop : gap;
            o->comm_s += comm;
            *(n <= first_b ? &o->warmup_s
              : n > last_f ? &o->cooldown_s
                           : &o->steady_s) += gap - comm;
            free_at = run->node_end_s[n];
            o->busy_s += run->node_end_s[n] - run->node_start_s[n];
        }
        o->first_s = from < to ? run->node_start_s[from] : 0;
        o->last_s = free_at;
        o->cooldown_s += run->makespan_s - free_at;
    }
}

/* ---- critical path and slack
 * ------------------------------------------------------------------------ */

/* the node whose end started the row of tasks without a pause that ends with `task` */
static int32_t issued_by(const struct hv_pipe *g, const struct hv_stream *x,
                         const struct hv_pipe_run *run, int64_t task, struct hv_pipe_link *link)
{
    const struct hv_stream_run *y = run->stream;
    int32_t rank = hv_pipe_rank_of(g, link->node);
    size_t k = (size_t)task;
    while (k > x->task_at[rank] && y->end_s[k - 1] >= y->start_s[k]) {
        k--;
    }
    link->reason = HV_PIPE_GATHER;
    link->hop_s = y->end_s[task] - y->start_s[k];
    return x->tasks[k].before > g->rank_node_at[rank] ? x->tasks[k].before - 1 : -1;
}

/* the dependency that determined the start of node n, its hop included: prefers its own rank, then
 * the first edge. Returns the node or -1. */
static int32_t bound_by(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                        const struct hv_pipe_run *run, int32_t n, struct hv_pipe_link *link)
{
    double start = run->node_start_s[n];
    *link = (struct hv_pipe_link){.node = n, .reason = HV_PIPE_START};
    if (!hv_pipe_is_first(g, n) && run->node_end_s[n - 1] >= start) {
        link->reason = HV_PIPE_ORDER;
        return n - 1;
    }
    for (int32_t e = 0; e < hv_pipe_n_edges(g, n); e++) {
        struct hv_pipe_edge x = hv_pipe_edge_of(g, n, e);
        double hop = hv_pipe_edge_s(g, c, run, n, e);
        if (run->node_end_s[x.node] + hop >= start) {
            link->reason = hop > 0 ? HV_PIPE_HOP : HV_PIPE_DATA;
            link->hop_s = hop;
            return x.node;
        }
    }
    if (hv_pipe_is_held(run, n) && run->held[n].node >= 0) {
        link->reason = HV_PIPE_HOP;
        link->hop_s = start - run->node_end_s[run->held[n].node];
        return run->held[n].node;
    }
    if (c->stream && c->stream->needs[n] >= 0) {
        return issued_by(g, c->stream, run, c->stream->needs[n], link);
    }
    return -1;
}

void hv_pipe_critical(struct hv_arena *a, const struct hv_pipe *g, const struct hv_pipe_cost *c,
                      const struct hv_pipe_run *run, const struct hv_pipe_link **out, size_t *out_n)
{
    int32_t last = -1;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        int32_t n = g->rank_node_at[r + 1] - 1;
        if (n >= g->rank_node_at[r] && (last < 0 || run->node_end_s[n] > run->node_end_s[last])) {
            last = n;
        }
    }
    hv_pipe_critical_to(a, g, c, run, last, out, out_n);
}

void hv_pipe_critical_to(struct hv_arena *a, const struct hv_pipe *g, const struct hv_pipe_cost *c,
                         const struct hv_pipe_run *run, int32_t last,
                         const struct hv_pipe_link **out, size_t *out_n)
{
    struct hv_pipe_link link;
    size_t len = 0;
    for (int32_t n = last; n >= 0; n = bound_by(g, c, run, n, &link)) {
        len++;
    }
    struct hv_pipe_link *path = hv_arena_new(a, struct hv_pipe_link, len + 1);
    size_t i = len;
    for (int32_t n = last; n >= 0;) {
        n = bound_by(g, c, run, n, &path[--i]);
    }
    *out = path;
    *out_n = len;
}

/* limits the latest ends of the dependencies of node n to n's latest start; out_s: latest ends;
 * tasks_s: those of the stream's tasks, where there is one */
static void let_before(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                       const struct hv_pipe_run *run, int32_t n, double *out_s, double *tasks_s)
{
    double late = out_s[n] - (run->node_end_s[n] - run->node_start_s[n]);
    if (tasks_s) {
        int32_t rank = hv_pipe_rank_of(g, n);
        hv__stream_let(g, c->stream, run->stream, rank, n, late, tasks_s, out_s);
    }
    if (!hv_pipe_is_first(g, n) && late < out_s[n - 1]) {
        out_s[n - 1] = late;
    }
    for (int32_t e = 0; e < hv_pipe_n_edges(g, n); e++) {
        struct hv_pipe_edge x = hv_pipe_edge_of(g, n, e);
        double end = late - hv_pipe_edge_s(g, c, run, n, e);
        out_s[x.node] = end < out_s[x.node] ? end : out_s[x.node];
    }
    if (hv_pipe_is_held(run, n) && run->held[n].node >= 0) {
        int32_t from = run->held[n].node;
        double end = late - (run->node_start_s[n] - run->node_end_s[from]);
        out_s[from] = end < out_s[from] ? end : out_s[from];
    }
}

void hv_pipe_slack(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                   const struct hv_pipe_run *run, double *out_s)
{
    for (int32_t n = 0; n < g->n_nodes; n++) {
        out_s[n] = run->makespan_s; /* latest end for now */
    }
    double *tasks_s = c->stream ? hv__stream_latest(g, c->stream, run, out_s) : NULL;
    for (size_t k = g->n_stretches; k-- > 0;) {
        for (int32_t n = g->stretches[k].to; n-- > g->stretches[k].from;) {
            let_before(g, c, run, n, out_s, tasks_s);
        }
    }
    free(tasks_s);
    for (int32_t n = 0; n < g->n_nodes; n++) {
        double slack = out_s[n] - run->node_end_s[n];
        out_s[n] = slack > 0 ? slack : 0;
    }
}
