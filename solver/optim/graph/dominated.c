/** Goldstein's criterion on graphs of choices. */
#include "solver/optim/graph/dominated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TRIED  16 /* choices that others are compared with */
#define MOST_ROUNDS 8

/* An edge as one of its nodes sees it. */
struct side {
    uint32_t edge, other;
    size_t own_step, other_step; /* between choices of the node, and of the other one */
};

struct reduction {
    const struct hv_graph_dp *g;
    struct hv_arena *arena;
    bool **alive;
    size_t *n_alive;
    struct side *sides; /* of node v: first[v] to first[v + 1] - 1 */
    size_t *first;
};

static void index_edges(struct reduction *x)
{
    const struct hv_graph_dp *g = x->g;
    size_t *at = hv_arena_new(x->arena, size_t, g->n_nodes + 1);
    x->first = hv_arena_new(x->arena, size_t, g->n_nodes + 2);
    x->sides = hv_arena_new(x->arena, struct side, 2 * g->n_edges + 1);
    for (size_t e = 0; e < g->n_edges; e++) {
        x->first[g->edges[e].u + 1]++;
        x->first[g->edges[e].v + 1]++;
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        x->first[v + 1] += x->first[v];
        at[v] = x->first[v];
    }
    for (uint32_t e = 0; e < g->n_edges; e++) {
        const struct hv_graph_edge *edge = &g->edges[e];
        size_t columns = g->nodes[edge->v].n_choices;
        x->sides[at[edge->u]++] = (struct side){e, (uint32_t)edge->v, columns, 1};
        x->sides[at[edge->v]++] = (struct side){e, (uint32_t)edge->u, 1, columns};
    }
}

static bool is_infinite(const struct hv_graph_cost *c)
{
    return isinf(c->a) || isinf(c->b);
}

/* How much more r costs than t at least. */
struct difference {
    double a, b;
};

/* Adds the least difference of an edge over the neighbour's choices. False where t is not allowed
 * beside one that r is allowed with; *stuck: r is allowed with none. */
static bool add_edge(const struct reduction *x, const struct side *s, size_t r, size_t t,
                     struct difference *d, bool *stuck)
{
    const struct hv_graph_cost *cost = x->g->edges[s->edge].cost;
    double least_a = HUGE_VAL, least_b = HUGE_VAL;
    for (size_t k = 0; k < x->g->nodes[s->other].n_choices; k++) {
        const struct hv_graph_cost *of_r = &cost[r * s->own_step + k * s->other_step];
        const struct hv_graph_cost *of_t = &cost[t * s->own_step + k * s->other_step];
        if (!x->alive[s->other][k] || is_infinite(of_r)) {
            continue;
        }
        if (is_infinite(of_t)) {
            return false;
        }
        least_a = fmin(least_a, of_r->a - of_t->a);
        least_b = fmin(least_b, of_r->b - of_t->b);
    }
    *stuck = *stuck || isinf(least_a);
    d->a += least_a;
    d->b += least_b;
    return true;
}

static bool replaces(const struct reduction *x, size_t v, size_t t, size_t r)
{
    const struct hv_graph_cost *cost = x->g->nodes[v].cost;
    bool stuck = is_infinite(&cost[r]);
    if (stuck) {
        return true;
    }
    if (is_infinite(&cost[t])) {
        return false;
    }
    struct difference d = {cost[r].a - cost[t].a, x->g->pareto ? cost[r].b - cost[t].b : 0};
    for (size_t s = x->first[v]; s < x->first[v + 1]; s++) {
        if (!add_edge(x, &x->sides[s], r, t, &d, &stuck)) {
            return false;
        }
        if (stuck) {
            return true;
        }
    }
    double b = x->g->pareto ? d.b : 0;
    return d.a >= 0 && b >= 0 && (d.a > 0 || b > 0 || t < r);
}

/* The cheapest choices that are left, cheapest first. */
static size_t cheapest(const struct reduction *x, size_t v, size_t *out)
{
    const struct hv_graph_node *node = &x->g->nodes[v];
    size_t n = 0;
    for (size_t c = 0; c < node->n_choices; c++) {
        if (!x->alive[v][c]) {
            continue;
        }
        size_t at = n < MOST_TRIED ? n++ : MOST_TRIED;
        for (; at > 0 && node->cost[c].a < node->cost[out[at - 1]].a; at--) {
            if (at < MOST_TRIED) {
                out[at] = out[at - 1];
            }
        }
        if (at < MOST_TRIED) {
            out[at] = c;
        }
    }
    return n;
}

/* Takes choices of a node out; true where there were any. */
static bool reduce_node(struct reduction *x, size_t v)
{
    size_t tried[MOST_TRIED + 1], n = cheapest(x, v, tried);
    bool any = false;
    for (size_t r = 0; r < x->g->nodes[v].n_choices && x->n_alive[v] > 1; r++) {
        for (size_t i = 0; i < n && x->alive[v][r]; i++) {
            if (tried[i] != r && x->alive[v][tried[i]] && replaces(x, v, tried[i], r)) {
                x->alive[v][r] = false;
                x->n_alive[v]--;
                any = true;
            }
        }
    }
    return any;
}

/* ---- the smaller instance -------------------------------------------------------------------- */

static const struct hv_graph_cost *kept_edge(const struct reduction *x,
                                             const struct hv_graph_reduced *out, size_t e)
{
    const struct hv_graph_edge *edge = &x->g->edges[e];
    size_t rows = x->n_alive[edge->u], columns = x->n_alive[edge->v];
    size_t step = x->g->nodes[edge->v].n_choices;
    struct hv_graph_cost *cost = hv_arena_new(x->arena, struct hv_graph_cost, rows * columns + 1);
    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < columns; k++) {
            cost[i * columns + k] =
                edge->cost[out->kept[edge->u][i] * step + out->kept[edge->v][k]];
        }
    }
    return cost;
}

static void keep_rest(const struct reduction *x, struct hv_graph_reduced *out)
{
    const struct hv_graph_dp *g = x->g;
    struct hv_graph_node *nodes = hv_arena_new(x->arena, struct hv_graph_node, g->n_nodes + 1);
    struct hv_graph_edge *edges = hv_arena_new(x->arena, struct hv_graph_edge, g->n_edges + 1);
    out->g = *g;
    out->kept = hv_arena_new(x->arena, uint32_t *, g->n_nodes + 1);
    for (size_t v = 0; v < g->n_nodes; v++) {
        struct hv_graph_cost *cost = hv_arena_new(x->arena, struct hv_graph_cost, x->n_alive[v]);
        out->kept[v] = hv_arena_new(x->arena, uint32_t, x->n_alive[v]);
        nodes[v] = (struct hv_graph_node){0, cost};
        for (uint32_t c = 0; c < g->nodes[v].n_choices; c++) {
            if (x->alive[v][c]) {
                out->kept[v][nodes[v].n_choices] = c;
                cost[nodes[v].n_choices++] = g->nodes[v].cost[c];
            }
        }
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        edges[e] = (struct hv_graph_edge){g->edges[e].u, g->edges[e].v, kept_edge(x, out, e)};
    }
    out->g.nodes = nodes;
    out->g.edges = edges;
}

void hv_graph_reduce(const struct hv_graph_dp *whole, struct hv_arena *arena,
                     struct hv_graph_reduced *out)
{
    struct reduction x = {.g = whole, .arena = arena};
    bool any = true;
    index_edges(&x);
    x.alive = hv_arena_new(arena, bool *, whole->n_nodes + 1);
    x.n_alive = hv_arena_new(arena, size_t, whole->n_nodes + 1);
    for (size_t v = 0; v < whole->n_nodes; v++) {
        x.n_alive[v] = whole->nodes[v].n_choices;
        x.alive[v] = hv_arena_new(arena, bool, x.n_alive[v] + 1);
        memset(x.alive[v], true, x.n_alive[v] * sizeof *x.alive[v]);
    }
    for (size_t round = 0; round < MOST_ROUNDS && any; round++) {
        any = false;
        for (size_t v = 0; v < whole->n_nodes; v++) {
            any = reduce_node(&x, v) || any;
        }
    }
    keep_rest(&x, out);
}
