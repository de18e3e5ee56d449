/*
 * Topological order of a compiled pipeline, and the proof that it has no deadlock. Ranks take
 * turns, each until it is blocked; the dependences of a chain are found during the sort. The graph
 * itself is made in compile.c.
 */
#include "solver/sim/pipeline/compile_int.h"

#include "solver/base/str.h"
#include <stdlib.h>

/* a backward depends on the stages behind its own */
static struct hv__link link_of(const struct hv__compiler *c, const struct hv_op *op)
{
    size_t row = (size_t)op->pipe + (op->kind == HV_OP_F ? 0 : (size_t)c->s->n_pipes);
    return c->links[row * (size_t)c->s->n_stages + (size_t)op->stage];
}

enum hv_status hv__missing(const struct hv__compiler *c, const struct hv_op *op, int32_t rank,
                           int32_t stage)
{
    char token[HV_OP_TOKEN_CAP], other[HV_OP_TOKEN_CAP];
    struct hv_op want = *op;
    want.stage = stage;
    return hv_err_set(
        c->err, HV_EINPUT, "order of rank %d: %s waits for %s, which is not in the order", rank,
        hv_op_format(op, token, sizeof token), hv_op_format(&want, other, sizeof other));
}

enum { NOT_THERE = -2 };

/* as add_edges for a chain, where nodes are ops with one edge at most: the node that node n of a
 * rank waits for and its rank, -1 = none, NOT_THERE = its op is not in the order */
static inline int32_t chain_dep(const struct hv__compiler *c, int32_t rank, int32_t n, int32_t *its)
{
    const struct hv_schedule *s = c->s;
    const struct hv_op *op = &s->ops[n];
    if (op->kind == HV_OP_W || (op->kind == HV_OP_R && !s->recompute_waits)) {
        return -1;
    }
    struct hv__link x = link_of(c, op);
    if (x.stage < 0) {
        return -1;
    }
    int32_t other = (op->kind == HV_OP_F ? c->fwd : c->bwd)[hv__slot(s, x.stage, op)];
    *its = x.rank;
    return other < 0 ? NOT_THERE : x.rank == rank && other < n ? -1 : other;
}

/* the deps of all nodes, including those that sorting did not reach; reports missing ops */
static enum hv_status fill_deps(struct hv__compiler *c)
{
    for (int32_t r = 0; r < c->s->n_ranks; r++) {
        for (int32_t n = c->g->rank_node_at[r]; n < c->g->rank_node_at[r + 1]; n++) {
            int32_t its = 0;
            c->dep[n] = chain_dep(c, r, n, &its);
            if (c->dep[n] == NOT_THERE) {
                const struct hv_op *op = &c->s->ops[n];
                return hv__missing(c, op, r, link_of(c, op).stage);
            }
        }
    }
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
    hv_err_set(err, HV_ENO, "the order deadlocks: %s", hv_str_cstr(&text));
    hv_str_free(&text);
    return HV_ENO;
}

/* state of the sort, per rank. A node has run when its rank's head is beyond it, so no state per
 * node is needed */
struct sorter {
    const struct hv_pipe *g;
    const struct hv__compiler *c;
    int32_t *head, *edge;               /* next node; which of its edges comes next */
    int32_t *waits_for, *waiter, *next; /* node waited for; first rank waiting for this one, list */
    int32_t *stack;
    const int32_t *hop_rank; /* [n_hops] rank on which a hop begins */
    struct hv_pipe_stretch *stretches;
    size_t n_stretches;
    int32_t n_stack, n_run;
};

/* resumes the ranks that wait for node n of rank r */
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

/* notes that rank r stops before a node of rank `its` */
static void wait_for(struct sorter *t, int32_t r, int32_t node, int32_t its)
{
    t->waits_for[r] = node;
    t->next[r] = t->waiter[its];
    t->waiter[its] = r;
}

/* runs one rank until it is blocked or complete */
static void run_rank(struct sorter *t, int32_t r)
{
    const struct hv_pipe *g = t->g;
    int32_t from = t->head[r];
    while (t->head[r] < g->rank_node_at[r + 1]) {
        int32_t n = t->head[r];
        int32_t n_edges = hv_pipe_n_edges(g, n);
        for (; t->edge[r] < n_edges; t->edge[r]++) {
            struct hv_pipe_edge e = hv_pipe_edge_of(g, n, t->edge[r]);
            int32_t its = e.hop >= 0   ? t->hop_rank[e.hop]
                          : g->s.waits ? rank_of_node(g, e.node)
                                       : r;
            if (e.node >= t->head[its]) {
                wait_for(t, r, e.node, its);
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

/* the address that chain_dep will read for the dependency of an op */
static const int32_t *entry_of(const struct hv__compiler *c, const struct hv_op *op)
{
    int32_t stage = link_of(c, op).stage;
    return (op->kind == HV_OP_F ? c->fwd : c->bwd) + hv__slot(c->s, stage < 0 ? 0 : stage, op);
}

/* prefetch distance ahead of the node at which a rank stops: there are more ranks than the hardware
 * prefetcher tracks */
enum { AHEAD_OPS = 16, AHEAD_ENTRIES = 6 };

/* as run_rank for a chain, whose deps are found during the run */
static void run_chain(struct sorter *t, int32_t r)
{
    const struct hv_pipe *g = t->g;
    int32_t from = t->head[r], end = g->rank_node_at[r + 1], n = from;
    for (; n < end; n++) {
        int32_t its = 0, dep = chain_dep(t->c, r, n, &its);
        t->c->dep[n] = dep;
        if (dep == NOT_THERE) {
            break;
        }
        if (dep >= 0 && dep >= (its == r ? n : t->head[its])) {
            wait_for(t, r, dep, its);
            break;
        }
        if (t->waiter[r] >= 0) {
            t->head[r] = n + 1;
            wake(t, r, n);
        }
    }
    t->head[r] = n;
    __builtin_prefetch(g->s.ops + n + AHEAD_OPS);
    __builtin_prefetch(t->c->dep + n + AHEAD_OPS, 1);
    if (n + AHEAD_ENTRIES < end) {
        __builtin_prefetch(entry_of(t->c, &g->s.ops[n + AHEAD_ENTRIES]));
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

enum hv_status hv__sort_nodes(struct hv_arena *a, struct hv__compiler *c)
{
    struct hv_pipe *g = c->g;
    size_t p = (size_t)g->s.n_ranks;
    struct hv_arena scratch = {0}; /* room for the worst case; untouched pages cost nothing */
    struct sorter t = {.g = g,
                       .c = c,
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
        int32_t r = t.stack[--t.n_stack];
        if (c->dep) {
            run_chain(&t, r);
        } else {
            run_rank(&t, r);
        }
    }
    g->n_stretches = t.n_stretches;
    g->stretches = hv_arena_copy(a, t.stretches, t.n_stretches, sizeof *t.stretches);
    hv_arena_free(&scratch);
    enum hv_status st = HV_OK;
    if (t.n_run < g->n_nodes) {
        st = c->dep ? fill_deps(c) : HV_OK;
        st = st == HV_OK ? deadlock(g, t.head, c->err) : st;
    }
    free(work);
    return st;
}
