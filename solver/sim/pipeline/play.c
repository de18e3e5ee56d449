/*
 * Translates a compiled pipeline into tasks for the event-driven engine, and the result back into a
 * run.
 */
#include "solver/sim/pipeline/play.h"

#include "solver/base/str.h"
#include "solver/sim/events/events.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* the nodes that run the ops of one (stage, micro-batch, slice), -1 = there is none */
struct cell {
    int32_t f, r, b;
};

struct translation {
    const struct hv_pipe *g;
    const struct hv_pipe_cost *c;
    const struct hv_pipe_play *play;
    struct hv_arena a;
    struct cell *cells;
    struct hv_event_task *tasks;
    int32_t *res_at, *res, *dep_at, *dep;
    double *lag_s;
};

static size_t cell_of(const struct hv_schedule *s, const struct hv_op *op)
{
    int32_t q = op->slice > 0 ? op->slice : 0;
    return ((size_t)op->stage * (size_t)s->n_micro_batches + (size_t)op->mb) * (size_t)s->n_slices +
           (size_t)q;
}

static void fill_cells(struct translation *t)
{
    const struct hv_schedule *s = &t->g->s;
    size_t n = (size_t)s->n_stages * (size_t)s->n_micro_batches * (size_t)s->n_slices;
    t->cells = hv_arena_new(&t->a, struct cell, n + 1);
    for (size_t i = 0; i < n; i++) {
        t->cells[i] = (struct cell){-1, -1, -1};
    }
    for (int32_t k = 0; k < t->g->n_nodes; k++) {
        for (size_t i = hv_pipe_first_op(t->g, k); i < hv_pipe_first_op(t->g, k + 1); i++) {
            struct cell *x = &t->cells[cell_of(s, &s->ops[i])];
            switch ((enum hv_op_kind)s->ops[i].kind) {
            case HV_OP_F:
                x->f = k;
                break;
            case HV_OP_R:
                x->r = k;
                break;
            case HV_OP_B:
            case HV_OP_BW:
                x->b = k;
                break;
            case HV_OP_W:
            case HV_OP_KIND_N:
                break;
            }
        }
    }
}

static void add_dep(struct translation *t, int32_t node, int32_t other, double lag_s, size_t *n)
{
    if (other >= 0 && other != node) {
        t->dep[*n] = other;
        t->lag_s[(*n)++] = lag_s;
    }
}

/* the dependencies of an op on its own rank: implied by the order unless ops may run before their
 * turn */
static void add_own_deps(struct translation *t, int32_t node, const struct hv_op *op, size_t *n)
{
    const struct hv_schedule *s = &t->g->s;
    const struct cell *x = &t->cells[cell_of(s, op)];
    switch ((enum hv_op_kind)op->kind) {
    case HV_OP_F:
        add_dep(t, node, op->slice > 0 ? x[-1].f : -1, 0, n);
        break;
    case HV_OP_R:
        add_dep(t, node, x->f, 0, n);
        break;
    case HV_OP_B:
    case HV_OP_BW:
        for (int32_t q = 0; q < (s->parts ? s->n_slices : 1); q++) {
            add_dep(t, node, x[q].f, 0, n);
        }
        add_dep(t, node, x->r, 0, n);
        add_dep(t, node, op->slice >= 0 && op->slice + 1 < s->n_slices ? x[1].b : -1, 0, n);
        break;
    case HV_OP_W:
        add_dep(t, node, x->b, 0, n);
        break;
    case HV_OP_KIND_N:
        break;
    }
}

static void fill_task(struct translation *t, int32_t node, int32_t rank)
{
    struct hv_event_task *x = &t->tasks[node];
    *x = (struct hv_event_task){.duration_s = hv_pipe_node_duration_s(t->g, t->c, node),
                                .pool = -1,
                                .memory = t->play->limit_bytes ? rank : -1,
                                .may_jump = true};
    for (size_t i = hv_pipe_first_op(t->g, node); i < hv_pipe_first_op(t->g, node + 1); i++) {
        const struct hv_op *op = &t->g->s.ops[i];
        x->may_jump = x->may_jump && (t->play->jump >> op->kind & 1);
        if (t->play->limit_bytes) {
            x->start_bytes +=
                hv_pipe_op_bytes(&t->g->s, t->play->memory, t->play->memory->start_bytes, op);
            x->end_bytes +=
                hv_pipe_op_bytes(&t->g->s, t->play->memory, t->play->memory->end_bytes, op);
        }
    }
}

static void translate(struct translation *t)
{
    const struct hv_pipe *g = t->g;
    size_t n = (size_t)g->n_nodes, n_ops = hv_schedule_n_ops(&g->s),
           n_edges = (3 + (size_t)g->s.n_slices) * n_ops;
    for (int32_t k = 0; k < g->n_nodes; k++) {
        n_edges += (size_t)hv_pipe_n_edges(g, k);
    }
    t->tasks = hv_arena_new(&t->a, struct hv_event_task, n + 1);
    t->res_at = hv_arena_new(&t->a, int32_t, n + 1);
    t->res = hv_arena_new(&t->a, int32_t, n + 1);
    t->dep_at = hv_arena_new(&t->a, int32_t, n + 1);
    t->dep = hv_arena_new(&t->a, int32_t, n_edges + 1);
    t->lag_s = hv_arena_new(&t->a, double, n_edges + 1);
    size_t n_dep = 0;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        for (int32_t k = g->rank_node_at[r]; k < g->rank_node_at[r + 1]; k++) {
            fill_task(t, k, r);
            t->res[k] = r;
            t->res_at[k + 1] = k + 1;
            for (int32_t e = 0; e < hv_pipe_n_edges(g, k); e++) {
                struct hv_pipe_edge x = hv_pipe_edge_of(g, k, e);
                add_dep(t, k, x.node,
                        hv_pipe_op_hop_s(g, t->c, hv_pipe_hop_end(g, k, x.hop), x.hop), &n_dep);
            }
            for (size_t i = hv_pipe_first_op(g, k); i < hv_pipe_first_op(g, k + 1); i++) {
                add_own_deps(t, k, &g->s.ops[i], &n_dep);
            }
            t->dep_at[k + 1] = (int32_t)n_dep;
        }
    }
}

static const char *node_name(const void *ctx, int32_t node, char *buf, size_t cap)
{
    const struct hv_pipe *g = ctx;
    struct hv_str text = {0};
    size_t i = hv_pipe_first_op(g, node);
    hv_schedule_add_token(&g->s, i, &text);
    snprintf(buf, cap, "%s on rank %d", hv_str_cstr(&text), hv_schedule_rank_of(&g->s, i));
    hv_str_free(&text);
    return buf;
}

enum hv_status hv_pipe_play(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                            const struct hv_pipe_play *play, struct hv_pipe_run *run,
                            struct hv_err *err)
{
    struct translation t = {.g = g, .c = c, .play = play};
    size_t p = (size_t)g->s.n_ranks;
    fill_cells(&t);
    translate(&t);
    enum hv_queue_rule *rules = hv_arena_new(&t.a, enum hv_queue_rule, p);
    double *capacity = hv_arena_new(&t.a, double, p);
    for (size_t r = 0; r < p; r++) {
        const double *base = play->memory ? play->memory->base_bytes : NULL;
        rules[r] = HV_QUEUE_ORDER;
        capacity[r] =
            play->limit_bytes ? play->limit_bytes[r] - (base ? base[r] : 0) : (double)INFINITY;
    }
    struct hv_event_graph graph = {.n_tasks = (size_t)g->n_nodes,
                                   .n_resources = p,
                                   .n_memories = play->limit_bytes ? p : 0,
                                   .tasks = t.tasks,
                                   .res_at = t.res_at,
                                   .res = t.res,
                                   .dep_at = t.dep_at,
                                   .dep = t.dep,
                                   .lag_s = t.lag_s,
                                   .rules = rules,
                                   .capacity_bytes = capacity};
    struct hv_event_rules how = {.jitter = play->jitter,
                                 .seed = play->seed,
                                 .look_ahead = play->look_ahead,
                                 .name = node_name,
                                 .ctx = g};
    struct hv_event_run out = {.start_s = run->node_start_s, .end_s = run->node_end_s};
    out.busy_s = hv_arena_new(&t.a, double, p);
    out.peak_bytes = hv_arena_new(&t.a, double, p);
    enum hv_status st = hv_events_run(&graph, &how, &out, err);
    if (st == HV_OK) {
        hv_pipe_summarise(g, run);
    }
    hv_arena_free(&t.a);
    return st;
}

struct started {
    double at_s;
    int32_t node;
};

static int by_start(const void *x, const void *y)
{
    const struct started *a = x, *b = y;
    if (a->at_s < b->at_s || a->at_s > b->at_s) {
        return a->at_s < b->at_s ? -1 : 1;
    }
    return (a->node > b->node) - (a->node < b->node);
}

enum hv_status hv_pipe_played(struct hv_arena *a, const struct hv_pipe *g,
                              const struct hv_pipe_run *run, struct hv_pipe *out,
                              struct hv_pipe_run *out_run, struct hv_err *err)
{
    size_t n = (size_t)g->n_nodes, n_ops = 0;
    struct started *order = hv_xcalloc(n + 1, sizeof *order);
    struct hv_schedule s = g->s;
    struct hv_op *ops = hv_arena_new(a, struct hv_op, hv_schedule_n_ops(&s) + 1);
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct started){run->node_start_s[i], (int32_t)i};
    }
    for (int32_t r = 0; r < s.n_ranks; r++) {
        int32_t from = g->rank_node_at[r], to = g->rank_node_at[r + 1];
        qsort(order + from, (size_t)(to - from), sizeof *order, by_start);
        for (int32_t k = from; k < to; k++) {
            size_t i = hv_pipe_first_op(g, order[k].node);
            for (; i < hv_pipe_first_op(g, order[k].node + 1); i++) {
                ops[n_ops++] = s.ops[i];
            }
        }
    }
    s.ops = ops;
    enum hv_status st = hv_pipe_compile(a, &s, out, err);
    if (st == HV_OK) {
        hv_pipe_run_new(a, out, out_run);
        for (size_t k = 0; k < n; k++) {
            out_run->node_start_s[k] = run->node_start_s[order[k].node];
            out_run->node_end_s[k] = run->node_end_s[order[k].node];
        }
        hv_pipe_summarise(out, out_run);
    }
    free(order);
    return st;
}
