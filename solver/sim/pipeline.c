/*
 * From an order to a priced graph: compile, time, idle, critical path, slack. Memory stands in
 * pipeline_memory.c.
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

/* adds the data edges of one op to node n; those the rank's own order implies are left out */
static enum hv_status add_edges(struct compiler *c, int32_t rank, int32_t n, const struct hv_op *op,
                                size_t *n_edges)
{
    const struct hv_schedule *s = c->s;
    bool back = is_backward(op) || (op->kind == HV_OP_R && s->recompute_waits);
    if (!back && op->kind != HV_OP_F) {
        return HV_OK;
    }
    const int32_t *at = back ? c->out_at : c->in_at;
    const int32_t *list = back ? c->out_edge : c->in_edge;
    const int32_t *end = back ? s->graph.to : s->graph.from;
    const int32_t *place = s->stage_to_rank + (size_t)op->pipe * (size_t)s->n_stages;
    for (int32_t k = at[op->stage]; k < at[op->stage + 1]; k++) {
        int32_t e = list[k];
        int32_t other = (back ? c->bwd : c->fwd)[slot(s, end[e], op)];
        if (other < 0) {
            return missing(c, op, rank, end[e]);
        }
        bool crosses = place[end[e]] != rank;
        if (!crosses && other < n) {
            continue;
        }
        int32_t hop = crosses ? hv_pipe_hop(c->g, back, op->pipe, e) : -1;
        c->edges[(*n_edges)++] = (struct hv_pipe_edge){other, hop};
    }
    return HV_OK;
}

/* room for every edge that there can be */
static size_t most_edges(const struct hv_schedule *s)
{
    size_t units = (size_t)s->n_micro_batches * (size_t)s->n_slices;
    return (size_t)s->graph.n_edges * units * (s->recompute_waits ? 3 : 2);
}

static enum hv_status build_edges(struct hv_arena *a, struct compiler *c)
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
    for (int32_t e = g->edge_at[head[r]]; e < g->edge_at[head[r] + 1]; e++) {
        int32_t other = g->edges[e].node, its = rank_of_node(g, other);
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
    int32_t *head, *edge;               /* next node, its next edge to look at */
    int32_t *waits_for, *waiter, *next; /* node waited for; first rank waiting for this one, list */
    int32_t *stack;
    const int32_t *hop_rank; /* [n_hops] rank on which a hop begins */
    int32_t *topo;
    int32_t n_stack, n_topo;
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

/* runs one rank as far as it gets */
static void run_rank(struct sorter *t, int32_t r)
{
    const struct hv_pipe *g = t->g;
    while (t->head[r] < g->rank_node_at[r + 1]) {
        int32_t n = t->head[r];
        for (; t->edge[r] < g->edge_at[n + 1]; t->edge[r]++) {
            struct hv_pipe_edge e = g->edges[t->edge[r]];
            int32_t its = e.hop < 0 ? r : t->hop_rank[e.hop];
            if (e.node >= t->head[its]) {
                t->waits_for[r] = e.node;
                t->next[r] = t->waiter[its];
                t->waiter[its] = r;
                return;
            }
        }
        t->topo[t->n_topo++] = n;
        t->head[r]++;
        wake(t, r, n);
    }
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
    size_t p = (size_t)g->s.n_ranks, n = (size_t)g->n_nodes;
    struct sorter t = {.g = g, .topo = hv_arena_new(a, int32_t, n + 1)};
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
        t.edge[r] = g->edge_at[t.head[r]];
        t.waiter[r] = -1;
        t.stack[g->s.n_ranks - 1 - r] = r;
    }
    t.n_stack = g->s.n_ranks;
    while (t.n_stack > 0) {
        run_rank(&t, t.stack[--t.n_stack]);
    }
    g->topo = t.topo;
    enum hv_status st = t.n_topo == g->n_nodes ? HV_OK : deadlock(g, t.head, err);
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
    c.fwd = hv_xcalloc(slots + 1, sizeof *c.fwd);
    c.bwd = hv_xcalloc(slots + 1, sizeof *c.bwd);
    stage_csr(s, s->graph.to, &c.in_at, &c.in_edge);
    stage_csr(s, s->graph.from, &c.out_at, &c.out_edge);
    st = build_edges(a, &c);
    free(c.fwd);
    free(c.bwd);
    free(c.in_at);
    free(c.in_edge);
    free(c.out_at);
    free(c.out_edge);
    return st == HV_OK ? sort_nodes(a, out, err) : st;
}

/* ---- time
 * ----------------------------------------------------------------------------------------- */

static double op_duration(const struct hv_pipe *g, const struct hv_pipe_cost *c, size_t i)
{
    const struct hv_op *op = &g->s.ops[i]; /* an R is never the first op of its rank */
    if (op->kind == HV_OP_R && g->s.free_adjacent_recompute && op[-1].kind == HV_OP_F &&
        op[-1].stage == op->stage && op[-1].mb == op->mb && op[-1].slice == op->slice) {
        return 0;
    }
    if (c->op_s) {
        return c->op_s[i];
    }
    double x = c->stage_s[(size_t)op->stage * HV_OP_KIND_N + op->kind];
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

static double node_duration(const struct hv_pipe *g, const struct hv_pipe_cost *c, int32_t n)
{
    size_t i = hv_pipe_first_op(g, n);
    const struct hv_op *op = &g->s.ops[i];
    if (op->group < 0) {
        return op_duration(g, c, i);
    }
    if (c->pair_s) {
        return c->pair_s[op->group];
    }
    return op_duration(g, c, i) + op_duration(g, c, i + 1);
}

static double hop_cost(const struct hv_pipe_cost *c, int32_t hop)
{
    return hop < 0 ? 0 : c->hop_s ? c->hop_s[hop] : c->hop_all_s;
}

void hv_pipe_run_new(struct hv_arena *a, const struct hv_pipe *g, struct hv_pipe_run *out)
{
    *out = (struct hv_pipe_run){0};
    out->node_start_s = hv_arena_new(a, double, (size_t)g->n_nodes + 1);
    out->node_end_s = hv_arena_new(a, double, (size_t)g->n_nodes + 1);
}

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

/* the usual case: one table of stage times, nothing overlapped. Same sums in the same order */
static double time_plain(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                         struct hv_pipe_run *run)
{
    double busy = 0;
    double *start = run->node_start_s, *end = run->node_end_s;
    for (int32_t k = 0; k < g->n_nodes; k++) {
        int32_t n = g->topo[k];
        const struct hv_op *op = &g->s.ops[n];
        double t = hv_pipe_is_first(g, n) ? 0 : end[n - 1];
        for (int32_t e = g->edge_at[n]; e < g->edge_at[n + 1]; e++) {
            double ready = end[g->edges[e].node] + hop_cost(c, g->edges[e].hop);
            t = ready > t ? ready : t;
        }
        double d = c->stage_s[(size_t)op->stage * HV_OP_KIND_N + op->kind];
        start[n] = t;
        end[n] = t + d;
        busy += d;
    }
    return busy;
}

void hv_pipe_time(const struct hv_pipe *g, const struct hv_pipe_cost *c, struct hv_pipe_run *run)
{
    if (!g->first_op && !c->op_s && !c->rank_scale && !c->mb_scale &&
        !g->s.free_adjacent_recompute) {
        summarise(g, time_plain(g, c, run), run);
        return;
    }
    double busy = 0;
    double *start = run->node_start_s, *end = run->node_end_s;
    for (int32_t k = 0; k < g->n_nodes; k++) {
        int32_t n = g->topo[k];
        double t = hv_pipe_is_first(g, n) ? 0 : end[n - 1];
        for (int32_t e = g->edge_at[n]; e < g->edge_at[n + 1]; e++) {
            double ready = end[g->edges[e].node] + hop_cost(c, g->edges[e].hop);
            t = ready > t ? ready : t;
        }
        double d = node_duration(g, c, n);
        start[n] = t;
        end[n] = t + d;
        busy += d;
    }
    summarise(g, busy, run);
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

/* the largest hop among the edges that node n really waited for */
static double binding_hop(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                          const struct hv_pipe_run *run, int32_t n)
{
    double most = 0;
    for (int32_t e = g->edge_at[n]; e < g->edge_at[n + 1]; e++) {
        double hop = hop_cost(c, g->edges[e].hop);
        if (run->node_end_s[g->edges[e].node] + hop >= run->node_start_s[n] && hop > most) {
            most = hop;
        }
    }
    return most;
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
            double gap = run->node_start_s[n] - free_at;
            double hop = gap > 0 ? binding_hop(g, c, run, n) : 0;
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

/* what node n waited for last: prefers its own rank, then the first edge. Returns the node or -1.
 */
static int32_t bound_by(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                        const struct hv_pipe_run *run, int32_t n, struct hv_pipe_link *link)
{
    double start = run->node_start_s[n];
    *link = (struct hv_pipe_link){.node = n, .reason = HV_PIPE_START};
    if (!hv_pipe_is_first(g, n) && run->node_end_s[n - 1] >= start) {
        link->reason = HV_PIPE_ORDER;
        return n - 1;
    }
    for (int32_t e = g->edge_at[n]; e < g->edge_at[n + 1]; e++) {
        double hop = hop_cost(c, g->edges[e].hop);
        if (run->node_end_s[g->edges[e].node] + hop >= start) {
            link->reason = hop > 0 ? HV_PIPE_HOP : HV_PIPE_DATA;
            link->hop_s = hop;
            return g->edges[e].node;
        }
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

void hv_pipe_slack(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                   const struct hv_pipe_run *run, double *out_s)
{
    for (int32_t n = 0; n < g->n_nodes; n++) {
        out_s[n] = run->makespan_s; /* latest end for now */
    }
    for (int32_t k = g->n_nodes - 1; k >= 0; k--) {
        int32_t n = g->topo[k];
        double late = out_s[n] - (run->node_end_s[n] - run->node_start_s[n]);
        if (!hv_pipe_is_first(g, n) && late < out_s[n - 1]) {
            out_s[n - 1] = late;
        }
        for (int32_t e = g->edge_at[n]; e < g->edge_at[n + 1]; e++) {
            double end = late - hop_cost(c, g->edges[e].hop);
            int32_t other = g->edges[e].node;
            out_s[other] = end < out_s[other] ? end : out_s[other];
        }
    }
    for (int32_t n = 0; n < g->n_nodes; n++) {
        double slack = out_s[n] - run->node_end_s[n];
        out_s[n] = slack > 0 ? slack : 0;
    }
}
