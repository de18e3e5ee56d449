/*
 * Elimination of nodes from a graph of choices, with single values or fronts in the table cells.
 * Choices that others can always replace (dominated.h) are taken out first.
 * Not here: the meaning of the choices.
 */
#include "solver/optim/graph/graph_dp.h"
#include "solver/base/vec.h"
#include "solver/optim/graph/dominated.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* A value and the points it is the sum of; a leaf of a node holds its choice. */
struct point {
    double a, b;
    uint32_t kids, n_kids, node, choice;
};

/* A table over some nodes: cell c holds points at[c] … at[c + 1] - 1 of the pool. */
struct table {
    size_t n_scope, n_cells, *scope; /* rising node numbers; the last changes fastest */
    uint32_t *at;
    bool dead;
};

/* A sum under construction: the sum before it and one point of the pool. */
struct part {
    double a, b;
    uint32_t before, kid;
};

struct solver {
    const struct hv_graph_dp *g;
    struct hv_arena *arena;
    struct hv_err *err;
    HV_VEC(struct point) pool;
    HV_VEC(uint32_t) kids;
    HV_VEC(struct table) tables;
    HV_VEC(struct part) parts;
    HV_VEC(struct part) front, made, all; /* `before` = index into parts */
    size_t *value;                        /* choice of every node in the cell at hand */
    size_t width;
    double cells; /* of all tables made */
    bool thinned;
    bool dry; /* tables get their nodes, but no cells: to learn how large they will be */
};

static int by_cost(const void *pa, const void *pb)
{
    const struct part *a = pa, *b = pb;
    if (a->a != b->a) {
        return a->a < b->a ? -1 : 1;
    }
    if (a->b != b->b) {
        return a->b < b->b ? -1 : 1;
    }
    return (a->before > b->before) - (a->before < b->before);
}

/* Keeps the least point, or the undominated points, at most `keep` of them (0: all). */
static size_t filter(struct solver *q, struct part *p, size_t n)
{
    size_t kept = 0, keep = q->g->keep;
    if (n == 0) {
        return 0;
    }
    if (!q->g->pareto) {
        for (size_t i = 1; i < n; i++) {
            if (p[i].a < p[0].a) {
                p[0] = p[i];
            }
        }
        return 1;
    }
    qsort(p, n, sizeof *p, by_cost);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || p[i].b < p[kept - 1].b) {
            p[kept++] = p[i];
        }
    }
    if (keep == 0 || kept <= keep) {
        return kept;
    }
    q->thinned = true;
    for (size_t i = 0; i < keep; i++) { /* the cheapest and the smallest stay */
        p[i] = p[keep > 1 ? i * (kept - 1) / (keep - 1) : 0];
    }
    return keep;
}

static size_t choices_of(const struct solver *q, size_t node)
{
    return q->g->nodes[node].n_choices;
}

static size_t cell_of(const struct solver *q, const struct table *t)
{
    size_t cell = 0;
    for (size_t k = 0; k < t->n_scope; k++) {
        cell = cell * choices_of(q, t->scope[k]) + q->value[t->scope[k]];
    }
    return cell;
}

/* Adds one point of the table's cell to every sum of the front. */
static void join_table(struct solver *q, const struct table *t)
{
    size_t cell = cell_of(q, t);
    q->made.n = 0;
    for (size_t f = 0; f < q->front.n; f++) {
        for (uint32_t k = t->at[cell]; k < t->at[cell + 1]; k++) {
            const struct part *from = &q->front.items[f];
            struct part p = {from->a + q->pool.items[k].a, from->b + q->pool.items[k].b,
                             from->before, k};
            hv_vec_push(&q->made, p);
        }
    }
    q->made.n = filter(q, q->made.items, q->made.n);
    q->front.n = 0;
    for (size_t k = 0; k < q->made.n; k++) {
        struct part p = q->made.items[k];
        hv_vec_push(&q->parts, p);
        p.before = (uint32_t)(q->parts.n - 1);
        hv_vec_push(&q->front, p);
    }
}

/* The sums of one cell over all choices of `node` (NONE: one) become points of the pool. */
static enum hv_status fill_cell(struct solver *q, const size_t *joined, size_t n_joined,
                                size_t node)
{
    size_t n = node == NONE ? 1 : choices_of(q, node);
    q->parts.n = q->all.n = 0;
    for (size_t c = 0; c < n; c++) {
        if (node != NONE) {
            q->value[node] = c;
        }
        q->front.n = 0;
        hv_vec_push(&q->front, (struct part){0, 0, NONE, NONE});
        for (size_t k = 0; k < n_joined && q->front.n; k++) {
            join_table(q, &q->tables.items[joined[k]]);
        }
        for (size_t k = 0; k < q->front.n; k++) {
            hv_vec_push(&q->all, q->front.items[k]);
        }
    }
    q->all.n = filter(q, q->all.items, q->all.n);
    if (q->pool.n + q->all.n > HV_GRAPH_MAX_POINTS ||
        q->kids.n + q->all.n * n_joined > 4 * HV_GRAPH_MAX_POINTS) {
        return hv_err_set(q->err, HV_ELIMIT,
                          "more than %zu points in the tables; keep fewer points per cell",
                          HV_GRAPH_MAX_POINTS);
    }
    for (size_t k = 0; k < q->all.n; k++) {
        struct point p = {q->all.items[k].a, q->all.items[k].b, (uint32_t)q->kids.n, 0, NONE, 0};
        for (uint32_t at = q->all.items[k].before; at != NONE; at = q->parts.items[at].before) {
            hv_vec_push(&q->kids, q->parts.items[at].kid);
            p.n_kids++;
        }
        hv_vec_push(&q->pool, p);
    }
    return HV_OK;
}

/* Tables that hold the node (NONE: all that are left); their number. */
static size_t tables_with(const struct solver *q, size_t node, size_t *out)
{
    size_t n = 0;
    for (size_t t = 0; t < q->tables.n; t++) {
        const struct table *x = &q->tables.items[t];
        bool has = node == NONE;
        for (size_t k = 0; k < x->n_scope && !has; k++) {
            has = x->scope[k] == node;
        }
        if (!x->dead && has) {
            out[n++] = t;
        }
    }
    return n;
}

static int by_size(const void *pa, const void *pb)
{
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    return (a > b) - (a < b);
}

/* Nodes of the joined tables without `node`; returns their number, *cells = the new table's. */
static size_t scope_of(const struct solver *q, const size_t *joined, size_t n_joined, size_t node,
                       size_t *scope, double *cells)
{
    size_t n = 0, kept = 0;
    for (size_t k = 0; k < n_joined; k++) {
        const struct table *t = &q->tables.items[joined[k]];
        for (size_t i = 0; i < t->n_scope; i++) {
            if (t->scope[i] != node) {
                scope[n++] = t->scope[i];
            }
        }
    }
    if (n) {
        qsort(scope, n, sizeof *scope, by_size);
    }
    *cells = 1;
    for (size_t i = 0; i < n; i++) {
        if (kept && scope[kept - 1] == scope[i]) {
            continue;
        }
        scope[kept++] = scope[i];
        *cells *= (double)choices_of(q, scope[i]);
    }
    return kept;
}

static void next_assignment(struct solver *q, const struct table *t)
{
    for (size_t k = t->n_scope; k-- > 0;) {
        if (++q->value[t->scope[k]] < choices_of(q, t->scope[k])) {
            return;
        }
        q->value[t->scope[k]] = 0;
    }
}

/* Work space for one elimination. */
struct room {
    size_t *joined, *scope;
};

static void replace(struct solver *q, const struct room *w, size_t n_joined, const struct table *by)
{
    for (size_t k = 0; k < n_joined; k++) {
        q->tables.items[w->joined[k]].dead = true;
    }
    hv_vec_push(&q->tables, *by);
}

/* Sums a node out (NONE: joins all that is left into one cell). */
static enum hv_status eliminate(struct solver *q, size_t node, const struct room *w)
{
    double cells = 1;
    size_t n_joined = tables_with(q, node, w->joined);
    size_t n_scope = scope_of(q, w->joined, n_joined, node, w->scope, &cells);
    if (cells > (double)HV_GRAPH_MAX_CELLS) {
        return hv_err_set(q->err, HV_ELIMIT,
                          "the table that replaces node %zu would have %.3g cells over %zu nodes; "
                          "at most %zu are made",
                          node + 1, cells, n_scope, HV_GRAPH_MAX_CELLS);
    }
    q->cells += cells;
    if (q->cells > (double)HV_GRAPH_MAX_POINTS) {
        return hv_err_set(q->err, HV_ELIMIT, "the tables would have more than %zu cells",
                          HV_GRAPH_MAX_POINTS);
    }
    struct table t = {.n_scope = n_scope, .n_cells = (size_t)cells};
    t.scope = hv_arena_copy(q->arena, w->scope, n_scope, sizeof *t.scope);
    if (q->dry) {
        replace(q, w, n_joined, &t);
        return HV_OK;
    }
    t.at = hv_arena_new(q->arena, uint32_t, t.n_cells + 1);
    q->width = n_scope + 1 > q->width && node != NONE ? n_scope + 1 : q->width;
    for (size_t k = 0; k < n_scope; k++) {
        q->value[t.scope[k]] = 0;
    }
    for (size_t c = 0; c < t.n_cells; c++) {
        t.at[c] = (uint32_t)q->pool.n;
        enum hv_status st = fill_cell(q, w->joined, n_joined, node);
        if (st != HV_OK) {
            return st;
        }
        next_assignment(q, &t);
    }
    t.at[t.n_cells] = (uint32_t)q->pool.n;
    replace(q, w, n_joined, &t);
    return HV_OK;
}

/* A table of the input; `node` = whose choices its cells are, or NONE for an edge. */
static void add_table(struct solver *q, const size_t *scope, size_t n_scope,
                      const struct hv_graph_cost *cost, uint32_t node)
{
    struct table t = {.n_scope = n_scope, .n_cells = 1};
    t.scope = hv_arena_copy(q->arena, scope, n_scope, sizeof *scope);
    for (size_t k = 0; k < n_scope; k++) {
        t.n_cells *= choices_of(q, scope[k]);
    }
    t.at = hv_arena_new(q->arena, uint32_t, t.n_cells + 1);
    for (size_t c = 0; c < t.n_cells; c++) {
        size_t swapped = c;
        if (n_scope == 2 && scope[0] > scope[1]) { /* the scope is kept rising */
            size_t rows = choices_of(q, scope[0]), columns = choices_of(q, scope[1]);
            swapped = c % rows * columns + c / rows;
        }
        t.at[c] = (uint32_t)q->pool.n;
        if (isinf(cost[swapped].a) || isinf(cost[swapped].b)) {
            continue;
        }
        struct point p = {cost[swapped].a, cost[swapped].b, 0, 0, node, (uint32_t)c};
        hv_vec_push(&q->pool, p);
    }
    t.at[t.n_cells] = (uint32_t)q->pool.n;
    if (n_scope == 2 && scope[0] > scope[1]) {
        t.scope[0] = scope[1];
        t.scope[1] = scope[0];
    }
    hv_vec_push(&q->tables, t);
}

static enum hv_status check_costs(const struct hv_graph_cost *cost, size_t n, const char *what,
                                  size_t at, struct hv_err *err)
{
    for (size_t k = 0; k < n; k++) {
        if (isnan(cost[k].a) || isnan(cost[k].b) || cost[k].a == -HUGE_VAL ||
            cost[k].b == -HUGE_VAL) {
            return hv_err_set(err, HV_EINPUT, "%s %zu: expected costs, found NaN or -inf", what,
                              at + 1);
        }
    }
    return HV_OK;
}

static enum hv_status check(const struct hv_graph_dp *g, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    double cells = 0;
    for (size_t v = 0; v < g->n_nodes && st == HV_OK; v++) {
        if (g->nodes[v].n_choices == 0) {
            return hv_err_set(err, HV_EINPUT, "node %zu: expected at least one choice", v + 1);
        }
        cells += (double)g->nodes[v].n_choices;
        st = check_costs(g->nodes[v].cost, g->nodes[v].n_choices, "node", v, err);
    }
    for (size_t e = 0; e < g->n_edges && st == HV_OK; e++) {
        const struct hv_graph_edge *x = &g->edges[e];
        if (x->u >= g->n_nodes || x->v >= g->n_nodes || x->u == x->v) {
            return hv_err_set(err, HV_EINPUT, "edge %zu: expected two different nodes out of %zu",
                              e + 1, g->n_nodes);
        }
        if (g->method == HV_GRAPH_CHAIN && x->u + 1 != x->v && x->v + 1 != x->u) {
            return hv_err_set(err, HV_EINPUT,
                              "edge %zu joins nodes %zu and %zu: a chain has edges between "
                              "neighbours only",
                              e + 1, x->u + 1, x->v + 1);
        }
        size_t n = g->nodes[x->u].n_choices * g->nodes[x->v].n_choices;
        cells += (double)n;
        st = check_costs(x->cost, n, "edge", e, err);
    }
    if (st == HV_OK && cells > (double)HV_GRAPH_MAX_POINTS) {
        return hv_err_set(err, HV_ELIMIT, "more than %zu costs", HV_GRAPH_MAX_POINTS);
    }
    return st;
}

/* Cells of the table that would replace a node. */
static double fill_of(const struct solver *q, size_t node, const struct room *w)
{
    double cells;
    size_t n = tables_with(q, node, w->joined);
    scope_of(q, w->joined, n, node, w->scope, &cells);
    return cells;
}

static enum hv_status run(struct solver *q, const struct room *w)
{
    size_t n = q->g->n_nodes;
    bool *gone = hv_arena_new(q->arena, bool, n);
    double *fill = hv_arena_new(q->arena, double, n);
    bool choose = q->g->method == HV_GRAPH_ELIMINATE;
    for (size_t v = 0; choose && v < n; v++) {
        fill[v] = fill_of(q, v, w);
    }
    for (size_t step = 0; step < n; step++) {
        size_t best = choose ? n : step;
        for (size_t v = 0; choose && v < n; v++) {
            if (!gone[v] && (best == n || fill[v] < fill[best])) {
                best = v;
            }
        }
        gone[best] = true;
        enum hv_status st = eliminate(q, best, w);
        if (st != HV_OK) {
            return st;
        }
        const struct table *t = &q->tables.items[q->tables.n - 1];
        for (size_t k = 0; choose && k < t->n_scope; k++) {
            fill[t->scope[k]] = fill_of(q, t->scope[k], w);
        }
    }
    return eliminate(q, NONE, w);
}

/* Refuses tables that are too large before any is filled. */
static enum hv_status run_dry(struct solver *q, const struct room *w)
{
    size_t n = q->tables.n;
    q->dry = true;
    enum hv_status st = run(q, w);
    q->dry = false;
    q->cells = 0;
    q->width = 0;
    q->tables.n = n;
    for (size_t t = 0; t < n; t++) {
        q->tables.items[t].dead = false;
    }
    return st;
}

/* Reads the choices behind a point. */
static void trace(struct solver *q, uint32_t at, size_t *choice)
{
    HV_VEC(uint32_t) todo = {0};
    hv_vec_push(&todo, at);
    while (todo.n) {
        const struct point *p = &q->pool.items[todo.items[--todo.n]];
        if (p->node != NONE) {
            choice[p->node] = p->choice;
        }
        for (uint32_t k = 0; k < p->n_kids; k++) {
            hv_vec_push(&todo, q->kids.items[p->kids + k]);
        }
    }
    hv_vec_free(&todo);
}

static void take(struct solver *q, const struct hv_graph_reduced *reduced,
                 struct hv_graph_dp_result *out)
{
    const struct table *t = &q->tables.items[q->tables.n - 1];
    out->n_points = t->at[1] - t->at[0];
    out->points = hv_arena_new(q->arena, struct hv_graph_point, out->n_points);
    for (size_t k = 0; k < out->n_points; k++) {
        struct hv_graph_point *p = &out->points[k];
        p->choice = hv_arena_new(q->arena, size_t, q->g->n_nodes);
        trace(q, t->at[0] + (uint32_t)k, p->choice);
        for (size_t v = 0; v < q->g->n_nodes; v++) {
            p->choice[v] = reduced->kept[v][p->choice[v]];
        }
        p->a = q->pool.items[t->at[0] + k].a;
        p->b = q->pool.items[t->at[0] + k].b;
    }
    out->feasible = out->n_points > 0;
    out->proven = !q->thinned;
    out->width = q->width;
}

enum hv_status hv_graph_dp_solve(const struct hv_graph_dp *whole, struct hv_arena *arena,
                                 struct hv_graph_dp_result *out, struct hv_err *err)
{
    struct solver q = {.arena = arena, .err = err};
    memset(out, 0, sizeof *out);
    enum hv_status st = check(whole, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_graph_reduced reduced;
    hv_graph_reduce(whole, arena, &reduced);
    const struct hv_graph_dp *g = q.g = &reduced.g;
    q.value = hv_arena_new(arena, size_t, g->n_nodes);
    for (size_t v = 0; v < g->n_nodes; v++) {
        add_table(&q, &v, 1, g->nodes[v].cost, (uint32_t)v);
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        add_table(&q, (size_t[]){g->edges[e].u, g->edges[e].v}, 2, g->edges[e].cost, NONE);
    }
    size_t scopes = g->n_nodes * 2 + g->n_edges * 2;
    struct room w = {hv_arena_new(arena, size_t, 2 * q.tables.n + g->n_nodes + 2),
                     hv_arena_new(arena, size_t, scopes * 4 + 64)};
    st = run_dry(&q, &w);
    st = st ? st : run(&q, &w);
    if (st == HV_OK) {
        take(&q, &reduced, out);
    }
    hv_vec_free(&q.pool);
    hv_vec_free(&q.kids);
    hv_vec_free(&q.tables);
    hv_vec_free(&q.parts);
    hv_vec_free(&q.front);
    hv_vec_free(&q.made);
    hv_vec_free(&q.all);
    return st;
}
