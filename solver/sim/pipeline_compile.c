/*
 * From an order to a graph of who waits for whom, and proof that it can run. Prices belong to
 * pipeline.c.
 *
 * A chain of stages without overlapped pairs, by far the usual case, gives every node one data edge
 * at most; then `dep` holds it and no list of edges is kept.
 */
#include "solver/sim/pipeline.h"

#include "solver/base/str.h"
#include <stdlib.h>
#include <string.h>

/* what exists only while compiling */
struct compiler {
    const struct hv_schedule *s;
    struct hv_pipe *g;
    int32_t *fwd, *bwd;         /* node of F and of B or BW by slot, -1 = none */
    int32_t *in_at, *in_edge;   /* stage edges that end in a stage */
    int32_t *out_at, *out_edge; /* stage edges that start in a stage */
    struct hv_pipe_edge *edges;
    struct hv_err *err;
};

static size_t slot(const struct hv_schedule *s, int32_t stage, const struct hv_op *op)
{
    int32_t q = op->slice > 0 ? op->slice : 0;
    return ((size_t)stage * (size_t)s->n_micro_batches + (size_t)op->mb) * (size_t)s->n_slices +
           (size_t)q;
}

static bool is_backward(const struct hv_op *op)
{
    return op->kind == HV_OP_B || op->kind == HV_OP_BW;
}

/* numbers the nodes: an overlapped pair is one */
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

static enum hv_status missing(const struct compiler *c, const struct hv_op *op, int32_t rank,
                              int32_t stage)
{
    char token[HV_OP_TOKEN_CAP], other[HV_OP_TOKEN_CAP];
    struct hv_op want = *op;
    want.stage = stage;
    return hv_err_set(
        c->err, HV_EINPUT, "order of rank %d: %s waits for %s, which is not in the order", rank,
        hv_op_format(op, token, sizeof token), hv_op_format(&want, other, sizeof other));
}

/* what one op waits for on other stages, by the rules of the header */
struct needs {
    const int32_t *list, *end; /* stage edges, and the stage at their other end */
    const int32_t *node;       /* node of that stage's op by slot */
    int32_t from, to;          /* part of list */
    bool back;
};

static struct needs needs_of(const struct compiler *c, const struct hv_op *op)
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

/* adds the data edges of one op to node n; those the rank's own order implies are left out */
static enum hv_status add_edges(struct compiler *c, int32_t rank, int32_t n, const struct hv_op *op,
                                size_t *n_edges)
{
    const struct hv_schedule *s = c->s;
    struct needs x = needs_of(c, op);
    const int32_t *place = s->stage_to_rank + (size_t)op->pipe * (size_t)s->n_stages;
    for (int32_t k = x.from; k < x.to; k++) {
        int32_t e = x.list[k];
        int32_t other = x.node[slot(s, x.end[e], op)];
        if (other < 0) {
            return missing(c, op, rank, x.end[e]);
        }
        bool crosses = place[x.end[e]] != rank;
        if (!crosses && other < n) {
            continue;
        }
        int32_t hop = crosses ? hv_pipe_hop(c->g, x.back, op->pipe, e) : -1;
        c->edges[(*n_edges)++] = (struct hv_pipe_edge){other, hop};
    }
    return HV_OK;
}

/* has every stage one neighbour at most on each side, and every node one op? */
static bool is_chain(const struct compiler *c)
{
    bool chain = c->s->n_groups == 0;
    for (int32_t i = 0; i < c->s->n_stages && chain; i++) {
        chain = c->in_at[i + 1] - c->in_at[i] < 2 && c->out_at[i + 1] - c->out_at[i] < 2;
    }
    return chain;
}

/* the hop of the one edge into each (backward, pipe, stage) */
static void fill_hop_of(struct hv_arena *a, struct compiler *c)
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

/* as add_edges for a chain: nodes are ops, and each has one edge at most */
static enum hv_status fill_deps(struct hv_arena *a, struct compiler *c)
{
    const struct hv_schedule *s = c->s;
    int32_t *dep = hv_arena_new(a, int32_t, (size_t)c->g->n_nodes + 1);
    for (int32_t r = 0; r < s->n_ranks; r++) {
        for (int32_t n = c->g->rank_node_at[r]; n < c->g->rank_node_at[r + 1]; n++) {
            const struct hv_op *op = &s->ops[n];
            dep[n] = -1;
            if (op->kind == HV_OP_W) {
                continue;
            }
            struct needs x = needs_of(c, op);
            if (x.from == x.to) {
                continue;
            }
            int32_t stage = x.end[x.list[x.from]], other = x.node[slot(s, stage, op)];
            if (other < 0) {
                return missing(c, op, r, stage);
            }
            size_t at = (size_t)op->pipe * (size_t)s->n_stages + (size_t)stage;
            dep[n] = s->stage_to_rank[at] == r && other < n ? -1 : other;
        }
    }
    c->g->dep = dep;
    return HV_OK;
}

/* room for every edge that there can be */
static size_t most_edges(const struct hv_schedule *s)
{
    size_t units = (size_t)s->n_micro_batches * (size_t)s->n_slices;
    return (size_t)s->graph.n_edges * units * (s->recompute_waits ? 3 : 2);
}

/* which node runs the forward and the backward of each slot */
static void fill_slots(struct compiler *c)
{
    const struct hv_schedule *s = c->s;
    size_t slots = (size_t)s->n_stages * (size_t)s->n_micro_batches * (size_t)s->n_slices;
    memset(c->fwd, 0xff, slots * sizeof *c->fwd);
    memset(c->bwd, 0xff, slots * sizeof *c->bwd);
    for (int32_t n = 0; n < c->g->n_nodes; n++) {
        for (size_t i = hv_pipe_first_op(c->g, n); i < hv_pipe_first_op(c->g, n + 1); i++) {
            const struct hv_op *op = &s->ops[i];
            if (op->kind == HV_OP_F) {
                c->fwd[slot(s, op->stage, op)] = n;
            } else if (is_backward(op)) {
                c->bwd[slot(s, op->stage, op)] = n;
            }
        }
    }
}

static enum hv_status build_edges(struct hv_arena *a, struct compiler *c)
{
    const struct hv_schedule *s = c->s;
    fill_slots(c);
    if (is_chain(c)) {
        fill_hop_of(a, c);
        return fill_deps(a, c);
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
        }
    }
    edge_at[c->g->n_nodes] = (int32_t)n_edges;
    c->g->edge_at = edge_at;
    c->g->edges = c->edges;
    return HV_OK;
}

/* rank of a node, for messages. O(log ranks) */
static int32_t rank_of_node(const struct hv_pipe *g, int32_t n)
{
    return hv_schedule_rank_of(&g->s, hv_pipe_first_op(g, n));
}

/* the first op of rank r's head node, and the first it waits for, in words */
static void tell_head(const struct hv_pipe *g, int32_t r, const int32_t *head, struct hv_str *out)
{
    hv_str_addf(out, "rank %d stops at ", r);
    hv_schedule_add_token(&g->s, hv_pipe_first_op(g, head[r]), out);
    for (int32_t k = 0; k < hv_pipe_n_edges(g, head[r]); k++) {
        int32_t other = hv_pipe_edge_of(g, head[r], k).node, its = rank_of_node(g, other);
        if (other >= head[its]) {
            hv_str_adds(out, ", waiting for ");
            hv_schedule_add_token(&g->s, hv_pipe_first_op(g, other), out);
            hv_str_addf(out, " of rank %d", its);
            return;
        }
    }
}

static enum hv_status deadlock(const struct hv_pipe *g, const int32_t *head, struct hv_err *err)
{
    struct hv_str text = {0};
    int told = 0;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        if (head[r] < g->rank_node_at[r + 1] && told < 8) {
            hv_str_adds(&text, told++ ? "; " : "");
            tell_head(g, r, head, &text);
        }
    }
    hv_err_set(err, HV_ENO, "the order blocks itself: %s", hv_str_cstr(&text));
    hv_str_free(&text);
    return HV_ENO;
}

/* what sorting keeps per rank. A node has run when its rank's head is beyond it, so that nothing is
 * kept per node */
struct sorter {
    const struct hv_pipe *g;
    int32_t *head, *edge;               /* next node; which of its edges comes next */
    int32_t *waits_for, *waiter, *next; /* node waited for; first rank waiting for this one, list */
    int32_t *stack;
    const int32_t *hop_rank; /* [n_hops] rank on which a hop begins */
    struct hv_pipe_stretch *stretches;
    size_t n_stretches;
    int32_t n_stack, n_run;
};

/* lets the ranks go on that wait for node n of rank r */
static void wake(struct sorter *t, int32_t r, int32_t n)
{
    int32_t *link = &t->waiter[r];
    while (*link >= 0) {
        int32_t w = *link;
        if (t->waits_for[w] == n) {
            *link = t->next[w];
            t->stack[t->n_stack++] = w;
        } else {
            link = &t->next[w];
        }
    }
}

/* notes that rank r has run from node `from` up to its head */
static void note_stretch(struct sorter *t, int32_t r, int32_t from)
{
    if (from == t->head[r]) {
        return;
    }
    t->stretches[t->n_stretches++] = (struct hv_pipe_stretch){from, t->head[r]};
    t->n_run += t->head[r] - from;
}

/* runs one rank as far as it gets */
static void run_rank(struct sorter *t, int32_t r)
{
    const struct hv_pipe *g = t->g;
    int32_t from = t->head[r];
    while (t->head[r] < g->rank_node_at[r + 1]) {
        int32_t n = t->head[r];
        int32_t n_edges = hv_pipe_n_edges(g, n);
        for (; t->edge[r] < n_edges; t->edge[r]++) {
            struct hv_pipe_edge e = hv_pipe_edge_of(g, n, t->edge[r]);
            int32_t its = e.hop < 0 ? r : t->hop_rank[e.hop];
            if (e.node >= t->head[its]) {
                t->waits_for[r] = e.node;
                t->next[r] = t->waiter[its];
                t->waiter[its] = r;
                note_stretch(t, r, from);
                return;
            }
        }
        t->head[r]++;
        t->edge[r] = 0;
        wake(t, r, n);
    }
    note_stretch(t, r, from);
}

/* rank on which each hop begins, in the order of hv_pipe_hop */
static void fill_hop_ranks(const struct hv_pipe *g, int32_t *out)
{
    const struct hv_schedule *s = &g->s;
    for (int32_t d = 0; d < s->n_pipes; d++) {
        const int32_t *place = s->stage_to_rank + (size_t)d * (size_t)s->n_stages;
        for (int32_t e = 0; e < s->graph.n_edges; e++) {
            out[hv_pipe_hop(g, false, d, e)] = place[s->graph.from[e]];
            out[hv_pipe_hop(g, true, d, e)] = place[s->graph.to[e]];
        }
    }
}

static enum hv_status sort_nodes(struct hv_arena *a, struct hv_pipe *g, struct hv_err *err)
{
    size_t p = (size_t)g->s.n_ranks;
    struct hv_arena scratch = {0}; /* room for the worst case; what is not touched costs nothing */
    struct sorter t = {.g = g,
                       .stretches =
                           hv_arena_new(&scratch, struct hv_pipe_stretch, (size_t)g->n_nodes + 1)};
    int32_t *work = hv_xcalloc(6 * p + (size_t)g->n_hops + 1, sizeof *work);
    t.head = work;
    t.edge = work + p;
    t.next = work + 2 * p;
    t.stack = work + 3 * p;
    t.waits_for = work + 4 * p;
    t.waiter = work + 5 * p;
    fill_hop_ranks(g, work + 6 * p);
    t.hop_rank = work + 6 * p;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        t.head[r] = g->rank_node_at[r];
        t.waiter[r] = -1;
        t.stack[g->s.n_ranks - 1 - r] = r;
    }
    t.n_stack = g->s.n_ranks;
    while (t.n_stack > 0) {
        run_rank(&t, t.stack[--t.n_stack]);
    }
    g->n_stretches = t.n_stretches;
    g->stretches = hv_arena_copy(a, t.stretches, t.n_stretches, sizeof *t.stretches);
    hv_arena_free(&scratch);
    enum hv_status st = t.n_run == g->n_nodes ? HV_OK : deadlock(g, t.head, err);
    free(work);
    return st;
}

enum hv_status hv_pipe_compile(struct hv_arena *a, const struct hv_schedule *s, struct hv_pipe *out,
                               struct hv_err *err)
{
    enum hv_status st = hv_schedule_check(s, err);
    if (st != HV_OK) {
        return st;
    }
    *out = (struct hv_pipe){.s = *s, .n_hops = 2 * s->n_pipes * s->graph.n_edges};
    number_nodes(a, out);
    size_t slots = (size_t)s->n_stages * (size_t)s->n_micro_batches * (size_t)s->n_slices;
    struct compiler c = {.s = s, .g = out, .err = err};
    struct hv_arena tables = {0};
    c.fwd = hv_arena_new(&tables, int32_t, slots + 1);
    c.bwd = hv_arena_new(&tables, int32_t, slots + 1);
    stage_csr(s, s->graph.to, &c.in_at, &c.in_edge);
    stage_csr(s, s->graph.from, &c.out_at, &c.out_edge);
    st = build_edges(a, &c);
    hv_arena_free(&tables);
    free(c.in_at);
    free(c.in_edge);
    free(c.out_at);
    free(c.out_edge);
    return st == HV_OK ? sort_nodes(a, out, err) : st;
}
