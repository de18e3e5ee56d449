/* Choices on graphs against enumeration, with single values and fronts; the multilevel cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/graph/graph_dp.h"
#include "solver/optim/graph/partition.h"

enum { N = 5, K = 3, MAX_E = 10 };

/* A random instance with its arrays. */
struct inst {
    struct hv_graph_cost node[N][K], edge[MAX_E][K * K];
    struct hv_graph_node nodes[N];
    struct hv_graph_edge edges[MAX_E];
    struct hv_graph_dp g;
};

static struct hv_graph_cost draw(struct hv_rng *rng)
{
    if (hv_rng_below(rng, 12) == 0) {
        return (struct hv_graph_cost){HUGE_VAL, 0};
    }
    return (struct hv_graph_cost){(double)hv_rng_below(rng, 20), (double)hv_rng_below(rng, 20)};
}

static void make(struct hv_rng *rng, struct inst *in)
{
    memset(in, 0, sizeof *in);
    in->g = (struct hv_graph_dp){.n_nodes = 1 + hv_rng_below(rng, N),
                                 .nodes = in->nodes,
                                 .edges = in->edges,
                                 .method = (enum hv_graph_method)hv_rng_below(rng, 3),
                                 .pareto = hv_rng_below(rng, 2)};
    for (size_t v = 0; v < in->g.n_nodes; v++) {
        in->nodes[v] = (struct hv_graph_node){1 + hv_rng_below(rng, K), in->node[v]};
        for (size_t k = 0; k < K; k++) {
            in->node[v][k] = draw(rng);
        }
    }
    for (size_t e = 0; e < MAX_E && in->g.n_nodes > 1; e++) {
        size_t u = hv_rng_below(rng, in->g.n_nodes), v = hv_rng_below(rng, in->g.n_nodes);
        if (u == v || (in->g.method == HV_GRAPH_CHAIN && u + 1 != v && v + 1 != u)) {
            continue;
        }
        in->edges[in->g.n_edges] = (struct hv_graph_edge){u, v, in->edge[e]};
        for (size_t k = 0; k < K * K; k++) {
            in->edge[e][k] = draw(rng);
        }
        in->g.n_edges++;
    }
}

static struct hv_graph_cost cost_of(const struct hv_graph_dp *g, const size_t *choice)
{
    struct hv_graph_cost sum = {0, 0};
    for (size_t v = 0; v < g->n_nodes; v++) {
        sum.a += g->nodes[v].cost[choice[v]].a;
        sum.b += g->nodes[v].cost[choice[v]].b;
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        const struct hv_graph_edge *x = &g->edges[e];
        const struct hv_graph_cost *c =
            &x->cost[choice[x->u] * g->nodes[x->v].n_choices + choice[x->v]];
        sum.a += c->a;
        sum.b += c->b;
    }
    return sum;
}

/* Every choice against the answer: none better, and every point is what its choices cost. */
static void compare(const struct hv_graph_dp *g, const struct hv_graph_dp_result *r, int at)
{
    size_t choice[N] = {0}, v = 0;
    bool any = false;
    while (v < g->n_nodes) {
        struct hv_graph_cost c = cost_of(g, choice);
        bool covered = isinf(c.a);
        any = any || !covered;
        for (size_t k = 0; k < r->n_points; k++) {
            covered = covered || (r->points[k].a <= c.a && (!g->pareto || r->points[k].b <= c.b));
        }
        if (!covered) {
            fail_msg("case %d: a choice of %g, %g is better", at, c.a, c.b);
        }
        for (v = 0; v < g->n_nodes && ++choice[v] == g->nodes[v].n_choices; v++) {
            choice[v] = 0;
        }
    }
    assert_int_equal(r->feasible, any);
    assert_true(g->pareto || r->n_points <= 1);
    for (size_t k = 0; k < r->n_points; k++) {
        struct hv_graph_cost c = cost_of(g, r->points[k].choice);
        assert_true(c.a == r->points[k].a && c.b == r->points[k].b);
        if (k) {
            assert_true(c.a > r->points[k - 1].a && c.b < r->points[k - 1].b);
        }
    }
}

static void choices_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 41);
    for (int k = 0; k < 3000; k++) {
        struct inst in;
        struct hv_arena arena = {0};
        struct hv_graph_dp_result r;
        make(&rng, &in);
        assert_int_equal(hv_graph_dp_solve(&in.g, &arena, &r, NULL), HV_OK);
        assert_true(r.proven);
        compare(&in.g, &r, k);
        hv_arena_free(&arena);
    }
}

/* Of a clique whose choices are all alike one choice is left of each node. */
static void what_can_be_replaced_is_taken_out(void **state)
{
    enum { MANY = 30 };
    static const struct hv_graph_cost cost[K * K];
    struct hv_graph_node nodes[MANY];
    struct hv_graph_edge edges[MANY * MANY];
    struct hv_graph_dp g = {.n_nodes = MANY, .nodes = nodes, .edges = edges};
    struct hv_arena arena = {0};
    struct hv_graph_dp_result r;
    (void)state;
    for (size_t v = 0; v < MANY; v++) {
        nodes[v] = (struct hv_graph_node){K, cost};
        for (size_t u = 0; u < v; u++) {
            edges[g.n_edges++] = (struct hv_graph_edge){u, v, cost};
        }
    }
    assert_int_equal(hv_graph_dp_solve(&g, &arena, &r, NULL), HV_OK);
    for (size_t v = 0; v < MANY; v++) {
        assert_int_equal(r.points[0].choice[v], 0);
    }
    hv_arena_free(&arena);
}

static void limits_and_bad_graphs_are_refused(void **state)
{
    (void)state;
    enum { MANY = 30 };
    struct hv_graph_cost cost[K * K];
    struct hv_graph_node nodes[MANY];
    struct hv_graph_edge edges[MANY * MANY];
    struct hv_graph_dp g = {.n_nodes = MANY, .nodes = nodes, .edges = edges};
    struct hv_arena arena = {0};
    struct hv_graph_dp_result r;
    struct hv_err err = {0};
    for (size_t c = 0; c < K * K; c++) { /* neighbours want to be alike: nothing replaces another */
        cost[c] = (struct hv_graph_cost){c / K == c % K ? 0 : 1, 0};
    }
    for (size_t v = 0; v < MANY; v++) {
        nodes[v] = (struct hv_graph_node){K, cost};
    }
    for (size_t u = 0; u < MANY; u++) {
        for (size_t v = u + 1; v < MANY; v++) {
            edges[g.n_edges++] = (struct hv_graph_edge){u, v, cost};
        }
    }
    assert_int_equal(hv_graph_dp_solve(&g, &arena, &r, &err), HV_ELIMIT); /* a clique */
    assert_non_null(strstr(err.text, "cells"));
    g.method = HV_GRAPH_CHAIN;
    assert_int_equal(hv_graph_dp_solve(&g, &arena, &r, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "chain"));
    hv_arena_free(&arena);
}

/* Two cliques joined by one edge: the cut is that edge. */
static void cliques_are_kept_together(void **state)
{
    (void)state;
    enum { HALF = 40 };
    static struct hv_graph_partition_edge e[HALF * HALF];
    size_t n = 0;
    for (size_t c = 0; c < 2; c++) {
        for (size_t u = 0; u < HALF; u++) {
            for (size_t v = u + 1; v < HALF; v++) {
                if ((u + v) % 3 == 0) {
                    e[n++] = (struct hv_graph_partition_edge){c * HALF + u, c * HALF + v, 1};
                }
            }
        }
    }
    e[n++] = (struct hv_graph_partition_edge){0, HALF, 1};
    const struct hv_graph_partition g = {2 * HALF, n, 2, NULL, e, NULL, 0.05, 1};
    struct hv_arena arena = {0};
    struct hv_graph_partition_result r;
    assert_int_equal(hv_graph_partition_solve(&g, &arena, &r, NULL), HV_OK);
    assert_true(r.cut == 1 && r.excess == 0);
    assert_true(r.load[0] == HALF && r.load[1] == HALF);
    hv_arena_free(&arena);
}

/* A grid of 40 × 40 in four parts: squares cut 80 edges; what is told agrees with the parts. */
static void grids_are_cut_well(void **state)
{
    (void)state;
    enum { W = 40 };
    static struct hv_graph_partition_edge e[2 * W * W];
    size_t n = 0;
    for (size_t y = 0; y < W; y++) {
        for (size_t x = 0; x < W; x++) {
            if (x + 1 < W) {
                e[n++] = (struct hv_graph_partition_edge){y * W + x, y * W + x + 1, 1};
            }
            if (y + 1 < W) {
                e[n++] = (struct hv_graph_partition_edge){y * W + x, y * W + x + W, 1};
            }
        }
    }
    const struct hv_graph_partition g = {(size_t)W * W, n, 4, NULL, e, NULL, 0.05, 7};
    struct hv_arena arena = {0};
    struct hv_graph_partition_result r, again;
    double cut = 0, load[4] = {0};
    assert_int_equal(hv_graph_partition_solve(&g, &arena, &r, NULL), HV_OK);
    for (size_t k = 0; k < n; k++) {
        cut += r.part[e[k].u] != r.part[e[k].v];
    }
    for (size_t v = 0; v < g.n_nodes; v++) {
        load[r.part[v]] += 1;
    }
    assert_true(cut == r.cut && r.excess == 0);
    assert_true(cut <= 140);
    for (size_t p = 0; p < 4; p++) {
        assert_true(load[p] == r.load[p] && load[p] <= 420);
    }
    assert_int_equal(hv_graph_partition_solve(&g, &arena, &again, NULL), HV_OK);
    assert_memory_equal(r.part, again.part, g.n_nodes * sizeof *r.part);
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_match_enumeration),
        cmocka_unit_test(what_can_be_replaced_is_taken_out),
        cmocka_unit_test(limits_and_bad_graphs_are_refused),
        cmocka_unit_test(cliques_are_kept_together),
        cmocka_unit_test(grids_are_cut_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
