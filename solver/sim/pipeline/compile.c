/*
 * From an order to a graph of dependencies, with a proof that it has no deadlock. Durations are
 * applied in pipeline.c.
 *
 * A chain of stages without overlapped pairs, by far the usual case, gives every node one data edge
 * at most; then `dep` holds it and no list of edges is kept.
 */
#include "solver/sim/pipeline/compile_int.h"

#include "solver/base/str.h"
#include "solver/sim/schedule/check_int.h"
#include <stdlib.h>
#include <string.h>

static bool is_backward(const struct hv_op *op)
{
    return op->kind == HV_OP_B || op->kind == HV_OP_BW;
}

/* numbers the nodes: an overlapped pair is one node */
static void number_nodes(struct hv_arena *a, struct hv_pipe *g)
{
    const struct hv_schedule *s = &g->s;
    size_t n_ops = hv_schedule_n_ops(s);
    g->n_nodes = (int32_t)(n_ops - (size_t)s->n_groups);
    bool pairs = s->n_groups > 0;
    int32_t *of = pairs ? hv_arena_new(a, int32_t, n_ops) : NULL;
    int32_t *first = pairs ? hv_arena_new(a, int32_t, (size_t)g->n_nodes + 1) : NULL;
    int32_t *at = hv_arena_new(a, int32_t, (size_t)s->n_ranks + 1);
    uint8_t *bits = hv_arena_new(a, uint8_t, (size_t)g->n_nodes / 8 + 1);
    int32_t n = 0;
    for (int32_t r = 0; r < s->n_ranks; r++) {
        size_t i = s->rank_at[r];
        at[r] = n;
        bits[n / 8] |= (uint8_t)((i < s->rank_at[r + 1]) << n % 8);
        if (!pairs) {
            n += (int32_t)(s->rank_at[r + 1] - i);
            continue;
        }
        for (; i < s->rank_at[r + 1]; n++) {
            size_t width = s->ops[i].group >= 0 ? 2 : 1;
            for (size_t k = 0; k < width; k++) {
                of[i + k] = n;
            }
            first[n] = (int32_t)i;
            i += width;
        }
    }
    at[s->n_ranks] = n;
    if (pairs) {
        first[n] = (int32_t)n_ops;
    }
    g->node_of_op = of;
    g->first_op = first;
    g->rank_node_at = at;
    g->first_bits = bits;
}

/* stage edges by the stage at one end; `by` = graph.from or graph.to */
static void stage_csr(const struct hv_schedule *s, const int32_t *by, int32_t **at, int32_t **edge)
{
    *at = hv_xcalloc((size_t)s->n_stages + 2, sizeof **at);
    *edge = hv_xcalloc((size_t)s->graph.n_edges + 1, sizeof **edge);
    for (int32_t e = 0; e < s->graph.n_edges; e++) {
        (*at)[by[e] + 2]++;
    }
    for (int32_t i = 2; i < s->n_stages + 2; i++) {
        (*at)[i] += (*at)[i - 1];
    }
    for (int32_t e = 0; e < s->graph.n_edges; e++) {
        (*edge)[(*at)[by[e] + 1]++] = e;
    }
}

/* the dependencies of one op on other stages, by the rules of the header */
struct needs {
    const int32_t *list, *end; /* stage edges, and the stage at their other end */
    const int32_t *node;       /* node of that stage's op by slot */
    int32_t from, to;          /* part of list */
    bool back;
};

static struct needs needs_of(const struct hv__compiler *c, const struct hv_op *op)
{
    const struct hv_schedule *s = c->s;
    bool back = is_backward(op) || (op->kind == HV_OP_R && s->recompute_waits);
    if (!back && op->kind != HV_OP_F) {
        return (struct needs){0};
    }
    const int32_t *at = back ? c->out_at : c->in_at;
    return (struct needs){.list = back ? c->out_edge : c->in_edge,
                          .end = back ? s->graph.to : s->graph.from,
                          .node = back ? c->bwd : c->fwd,
                          .from = at[op->stage],
                          .to = at[op->stage + 1],
                          .back = back};
}

/* One edge of the stage graph into node n: the op of stage `end` for micro-batch `mb`. What the
 * rank's own order implies is left out. */
static enum hv_status add_edge(struct hv__compiler *c, int32_t rank, int32_t n,
                               const struct hv_op *op, const struct needs *x, int32_t e, int32_t mb,
                               size_t *n_edges)
{
    const struct hv_schedule *s = c->s;
    const int32_t *place = s->stage_to_rank + (size_t)op->pipe * (size_t)s->n_stages;
    struct hv_op want = *op;
    want.mb = mb;
    int32_t other = x->node[hv__slot(s, x->end[e], &want)];
    if (other < 0) {
        return hv__missing(c, &want, rank, x->end[e]);
    }
    bool crosses = place[x->end[e]] != rank;
    if (crosses || other >= n) {
        int32_t hop = crosses ? hv_pipe_hop(c->g, x->back, op->pipe, e) : -1;
        c->edges[(*n_edges)++] = (struct hv_pipe_edge){other, hop};
    }
    return HV_OK;
}

/* Edges from a stage with other micro-batches: those that hold samples of this one and run on that
 * lane. A result that feeds several micro-batches of one rank is sent once, to the first of them.
 */
static enum hv_status add_unlike(struct hv__compiler *c, int32_t rank, int32_t n,
                                 const struct hv_op *op, const struct needs *x, int32_t e,
                                 size_t *n_edges)
{
    const struct hv_stage_unit *own = &c->s->units[op->stage], *its = &c->s->units[x->end[e]];
    int64_t from = (int64_t)op->mb * its->n / own->n;
    int64_t to = ((int64_t)(op->mb + 1) * its->n + own->n - 1) / own->n;
    enum hv_status st = HV_OK;
    for (int64_t mb = from; mb < to && st == HV_OK; mb++) {
        bool again = own->lanes == 1 && mb * own->n / its->n < op->mb;
        if (mb % its->lanes == its->lane && !again) {
            st = add_edge(c, rank, n, op, x, e, (int32_t)mb, n_edges);
        }
    }
    return st;
}

/* adds the data edges of one op to node n */
static enum hv_status add_edges(struct hv__compiler *c, int32_t rank, int32_t n,
                                const struct hv_op *op, size_t *n_edges)
{
    struct needs x = needs_of(c, op);
    enum hv_status st = HV_OK;
    for (int32_t k = x.from; k < x.to && st == HV_OK; k++) {
        st = c->s->units ? add_unlike(c, rank, n, op, &x, x.list[k], n_edges)
                         : add_edge(c, rank, n, op, &x, x.list[k], op->mb, n_edges);
    }
    return st;
}

/* true where every stage has at most one neighbour on each side, and every node one op */
static bool is_chain(const struct hv__compiler *c)
{
    bool chain = c->s->n_groups == 0 && c->s->units == NULL && c->s->waits == NULL;
    for (int32_t i = 0; i < c->s->n_stages && chain; i++) {
        chain = c->in_at[i + 1] - c->in_at[i] < 2 && c->out_at[i + 1] - c->out_at[i] < 2;
    }
    return chain;
}

/* the hop of the one edge into each (backward, pipe, stage) */
static void fill_hop_of(struct hv_arena *a, struct hv__compiler *c)
{
    const struct hv_schedule *s = c->s;
    size_t n = (size_t)s->n_pipes * (size_t)s->n_stages;
    int32_t *hop_of = hv_arena_new(a, int32_t, 2 * n);
    for (int32_t d = 0; d < s->n_pipes; d++) {
        const int32_t *place = s->stage_to_rank + (size_t)d * (size_t)s->n_stages;
        int32_t *fore = hop_of + (size_t)d * (size_t)s->n_stages, *back = fore + n;
        for (int32_t i = 0; i < s->n_stages; i++) {
            fore[i] = back[i] = -1;
        }
        for (int32_t e = 0; e < s->graph.n_edges; e++) {
            int32_t from = s->graph.from[e], to = s->graph.to[e];
            bool crosses = place[from] != place[to];
            fore[to] = crosses ? hv_pipe_hop(c->g, false, d, e) : -1;
            back[from] = crosses ? hv_pipe_hop(c->g, true, d, e) : -1;
        }
    }
    c->g->hop_of = hop_of;
}

/* the other end of the one edge into each (backward, pipe, stage) */
static void fill_links(struct hv__compiler *c)
{
    const struct hv_schedule *s = c->s;
    size_t n = (size_t)s->n_pipes * (size_t)s->n_stages;
    c->links = hv_arena_new(&c->tables, struct hv__link, 2 * n);
    for (size_t i = 0; i < n; i++) {
        size_t stage = i % (size_t)s->n_stages;
        const int32_t *place = s->stage_to_rank + (i - stage);
        bool in = c->in_at[stage + 1] > c->in_at[stage],
             out = c->out_at[stage + 1] > c->out_at[stage];
        int32_t before = in ? s->graph.from[c->in_edge[c->in_at[stage]]] : -1;
        int32_t after = out ? s->graph.to[c->out_edge[c->out_at[stage]]] : -1;
        c->links[i] = (struct hv__link){before, in ? place[before] : -1};
        c->links[n + i] = (struct hv__link){after, out ? place[after] : -1};
    }
}

/* room for every edge that there can be */
static size_t most_edges(const struct hv_schedule *s)
{
    size_t units = (size_t)s->n_micro_batches * (size_t)s->n_slices;
    size_t n = (size_t)s->graph.n_edges * units;
    if (s->units) { /* every result goes to each lane behind it once, and whole */
        n = 0;
        for (int32_t e = 0; e < s->graph.n_edges; e++) {
            const struct hv_stage_unit *a = &s->units[s->graph.from[e]];
            const struct hv_stage_unit *b = &s->units[s->graph.to[e]];
            n += ((size_t)a->n + (size_t)b->n) * (size_t)s->n_slices;
        }
    }
    size_t waits = s->waits ? s->wait_at[hv_schedule_n_ops(s)] : 0;
    return n * (s->recompute_waits ? 3 : 2) + waits;
}

/* which node runs the forward and the backward of each slot of a rank */
static void fill_slots(struct hv__compiler *c, int32_t r)
{
    const struct hv_schedule *s = c->s;
    for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1]; i++) {
        const struct hv_op *op = &s->ops[i];
        int32_t n = c->g->node_of_op ? c->g->node_of_op[i] : (int32_t)i;
        if (op->kind == HV_OP_F) {
            c->fwd[hv__slot(s, op->stage, op)] = n;
        } else if (is_backward(op)) {
            c->bwd[hv__slot(s, op->stage, op)] = n;
        }
    }
}

/* checks the order and fills the tables, rank by rank while ops are nodes: the ops of a rank stay
 * in the cache for both steps, and memory access dominates the time */
static enum hv_status check_and_fill(struct hv_arena *a, struct hv__compiler *c)
{
    const struct hv_schedule *s = c->s;
    bool pairs = s->n_groups > 0;
    struct hv__checker check;
    enum hv_status st = hv__check_begin(&check, s, c->err);
    if (st == HV_OK) {
        size_t slots = (size_t)s->n_stages * (size_t)s->n_micro_batches * (size_t)s->n_slices;
        c->fwd = hv_arena_new(&c->tables, int32_t, slots + 1);
        c->bwd = hv_arena_new(&c->tables, int32_t, slots + 1);
        memset(c->fwd, 0xff, slots * sizeof *c->fwd);
        memset(c->bwd, 0xff, slots * sizeof *c->bwd);
    }
    for (int32_t r = 0; r < s->n_ranks && st == HV_OK; r++) {
        st = hv__check_rank(&check, r);
        if (st == HV_OK && !pairs) {
            fill_slots(c, r);
        }
    }
    st = hv__check_end(&check, st);
    if (st == HV_OK) {
        number_nodes(a, c->g);
    }
    for (int32_t r = 0; r < s->n_ranks && st == HV_OK && pairs; r++) {
        fill_slots(c, r);
    }
    return st;
}

/* adds the edges of op i to the ops before it on the same resources; returns how many there are now
 */
static size_t add_waits(struct hv__compiler *c, size_t i, size_t n_edges)
{
    const struct hv_schedule *s = c->s;
    for (size_t k = s->waits ? s->wait_at[i] : 0; s->waits && k < s->wait_at[i + 1]; k++) {
        int32_t node = c->g->node_of_op ? c->g->node_of_op[s->waits[k]] : (int32_t)s->waits[k];
        c->edges[n_edges++] = (struct hv_pipe_edge){node, -1};
    }
    return n_edges;
}

static enum hv_status build_edges(struct hv_arena *a, struct hv__compiler *c)
{
    const struct hv_schedule *s = c->s;
    if (is_chain(c)) {
        fill_hop_of(a, c);
        c->dep = hv_arena_new(a, int32_t, (size_t)c->g->n_nodes + 1);
        c->g->dep = c->dep;
        return HV_OK;
    }
    size_t n_edges = 0;
    int32_t *edge_at = hv_arena_new(a, int32_t, (size_t)c->g->n_nodes + 1);
    c->edges = hv_arena_new(a, struct hv_pipe_edge, most_edges(s) + 1);
    for (int32_t n = 0, rank = 0; n < c->g->n_nodes; n++) {
        while (n >= c->g->rank_node_at[rank + 1]) {
            rank++;
        }
        edge_at[n] = (int32_t)n_edges;
        for (size_t i = hv_pipe_first_op(c->g, n); i < hv_pipe_first_op(c->g, n + 1); i++) {
            enum hv_status st = add_edges(c, rank, n, &c->s->ops[i], &n_edges);
            if (st != HV_OK) {
                return st;
            }
            n_edges = add_waits(c, i, n_edges);
        }
    }
    edge_at[c->g->n_nodes] = (int32_t)n_edges;
    c->g->edge_at = edge_at;
    c->g->edges = c->edges;
    return HV_OK;
}

enum hv_status hv_pipe_compile(struct hv_arena *a, const struct hv_schedule *s, struct hv_pipe *out,
                               struct hv_err *err)
{
    *out = (struct hv_pipe){.s = *s, .n_hops = 2 * s->n_pipes * s->graph.n_edges};
    struct hv__compiler c = {.s = s, .g = out, .err = err};
    stage_csr(s, s->graph.to, &c.in_at, &c.in_edge);
    stage_csr(s, s->graph.from, &c.out_at, &c.out_edge);
    enum hv_status st = check_and_fill(a, &c);
    if (st == HV_OK) {
        fill_links(&c);
        st = build_edges(a, &c);
        st = st == HV_OK ? hv__sort_nodes(a, &c) : st;
    }
    hv_arena_free(&c.tables);
    free(c.in_at);
    free(c.in_edge);
    free(c.out_at);
    free(c.out_edge);
    return st;
}
