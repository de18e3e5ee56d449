/* Series-parallel graphs: recognition on graphs made and broken by hand, fronts against
 * enumeration. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/graph/series_parallel.h"

enum { MAX_E = 7, MAX_V = 8, WAYS = 2 };

/* A random series-parallel graph between vertices 0 and 1: an edge is doubled or gets a vertex. */
static struct hv_series_parallel_graph grow(struct hv_rng *rng,
                                            struct hv_series_parallel_edge *edges, size_t n_edges)
{
    struct hv_series_parallel_graph g = {2, 1, edges, 0, 1};
    edges[0] = (struct hv_series_parallel_edge){0, 1};
    while (g.n_edges < n_edges) {
        struct hv_series_parallel_edge *e = &edges[hv_rng_below(rng, g.n_edges)];
        edges[g.n_edges] = *e;
        if (hv_rng_below(rng, 3)) {
            edges[g.n_edges].from = e->to = g.n_vertices;
            g.n_vertices++;
        }
        g.n_edges++;
    }
    return g;
}

static void what_is_grown_is_taken_apart(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 3);
    for (int k = 0; k < 3000; k++) {
        struct hv_series_parallel_edge edges[60];
        struct hv_arena arena = {0};
        struct hv_series_parallel_tree t;
        struct hv_series_parallel_graph g = grow(&rng, edges, 1 + hv_rng_below(&rng, 50));
        assert_int_equal(hv_series_parallel_decompose(&g, &arena, &t, NULL), HV_OK);
        assert_true(t.complete && t.n == 2 * g.n_edges - 1);
        for (size_t p = 0; p < t.n; p++) {
            const struct hv_series_parallel_part *x = &t.parts[p];
            if (x->kind == HV_SERIES_PARALLEL_EDGE) {
                continue;
            }
            const struct hv_series_parallel_part *l = &t.parts[x->left], *r = &t.parts[x->right];
            assert_true(x->left < p && x->right < p && l->from == x->from && r->to == x->to);
            if (x->kind == HV_SERIES_PARALLEL_ROW) {
                assert_true(l->to == x->vertex && r->from == x->vertex);
            } else {
                assert_true(l->to == x->to && r->from == x->from);
            }
        }
        hv_arena_free(&arena);
    }
}

static void others_are_told_apart(void **state)
{
    (void)state;
    /* the Wheatstone bridge, the forbidden minor */
    const struct hv_series_parallel_edge bridge[] = {{0, 2}, {0, 3}, {2, 3}, {2, 1}, {3, 1}};
    const struct hv_series_parallel_edge cycle[] = {{0, 2}, {2, 3}, {3, 2}, {3, 1}};
    const struct hv_series_parallel_edge apart[] = {{0, 1}, {2, 3}};
    struct hv_series_parallel_graph g = {4, 5, bridge, 0, 1};
    struct hv_arena arena = {0};
    struct hv_series_parallel_tree t;
    struct hv_series_parallel_result r;
    struct hv_err err = {0};
    void *value;
    assert_int_equal(hv_series_parallel_decompose(&g, &arena, &t, NULL), HV_OK);
    assert_true(!t.complete && t.n_left == 5);
    assert_int_equal(hv_series_parallel_fold(&t, NULL, NULL, &value, &err), HV_EINPUT);
    g = (struct hv_series_parallel_graph){4, 4, cycle, 0, 1};
    assert_int_equal(hv_series_parallel_decompose(&g, &arena, &t, NULL), HV_OK);
    assert_false(t.complete);
    g = (struct hv_series_parallel_graph){4, 2, apart, 0, 1};
    assert_int_equal(hv_series_parallel_decompose(&g, &arena, &t, NULL), HV_OK);
    assert_false(t.complete);
    g.n_edges = 0;
    assert_int_equal(hv_series_parallel_decompose(&g, &arena, &t, NULL), HV_OK);
    assert_true(!t.complete && t.n_left == 0);
    g.sink = 9;
    assert_int_equal(hv_series_parallel_decompose(&g, &arena, &t, NULL), HV_EINPUT);
    const struct hv_series_parallel_option bad = {-1, 0};
    const struct hv_series_parallel_choice choice = {1, &bad};
    const struct hv_series_parallel_edge one = {0, 1};
    const struct hv_series_parallel_work w = {{2, 1, &one, 0, 1}, &choice, NULL, false, 0};
    assert_int_equal(hv_series_parallel_solve(&w, &arena, &r, &err), HV_EINPUT);
    hv_arena_free(&arena);
}

/* A random graph of work with its arrays. */
struct inst {
    struct hv_series_parallel_edge edges[MAX_E];
    struct hv_series_parallel_option option[MAX_E + MAX_V][WAYS];
    struct hv_series_parallel_choice edge[MAX_E], vertex[MAX_V];
    struct hv_series_parallel_work w;
};

static void make(struct hv_rng *rng, struct inst *in)
{
    in->w = (struct hv_series_parallel_work){.graph =
                                                 grow(rng, in->edges, 1 + hv_rng_below(rng, MAX_E)),
                                             .edges = in->edge,
                                             .vertices = hv_rng_below(rng, 4) ? in->vertex : NULL,
                                             .shared = hv_rng_below(rng, 2)};
    for (size_t k = 0; k < MAX_E + MAX_V; k++) {
        for (size_t o = 0; o < WAYS; o++) {
            in->option[k][o] = (struct hv_series_parallel_option){(double)hv_rng_below(rng, 9),
                                                                  (double)hv_rng_below(rng, 9)};
        }
        struct hv_series_parallel_choice c = {hv_rng_below(rng, WAYS + 1), in->option[k]};
        if (k < MAX_E) {
            in->edge[k] = c;
        } else {
            in->vertex[k - MAX_E] = c;
        }
    }
}

static struct hv_series_parallel_option way(const struct hv_series_parallel_choice *c, size_t k)
{
    return c->n ? c->options[k] : (struct hv_series_parallel_option){0, 0};
}

/* Longest path to the sink from v, by definition; the graph has no cycle. */
static double longest(const struct hv_series_parallel_work *w, const size_t *chosen, size_t v)
{
    double best = 0;
    double own = w->vertices ? way(&w->vertices[v], chosen[MAX_E + v]).time : 0;
    for (size_t e = 0; e < w->graph.n_edges; e++) {
        if (w->graph.edges[e].from == v) {
            best = fmax(best, way(&w->edges[e], chosen[e]).time +
                                  longest(w, chosen, w->graph.edges[e].to));
        }
    }
    return own + best;
}

static struct hv_series_parallel_option price(const struct hv_series_parallel_work *w,
                                              const size_t *chosen)
{
    struct hv_series_parallel_option sum = {0, 0};
    for (size_t k = 0; k < MAX_E + MAX_V; k++) {
        bool edge = k < MAX_E;
        if (edge ? k >= w->graph.n_edges : !w->vertices || k - MAX_E >= w->graph.n_vertices) {
            continue;
        }
        struct hv_series_parallel_option o =
            way(edge ? &w->edges[k] : &w->vertices[k - MAX_E], chosen[k]);
        sum.time += o.time;
        sum.memory += o.memory;
    }
    if (!w->shared) {
        sum.time = longest(w, chosen, w->graph.source);
    }
    return sum;
}

/* Least memory within a time over all choices. */
static double least_memory(const struct hv_series_parallel_work *w, double time)
{
    size_t chosen[MAX_E + MAX_V] = {0}, k;
    double best = HUGE_VAL;
    for (;;) {
        struct hv_series_parallel_option p = price(w, chosen);
        if (p.time <= time) {
            best = fmin(best, p.memory);
        }
        for (k = 0; k < MAX_E + MAX_V; k++) {
            bool edge = k < MAX_E, there = edge ? k < w->graph.n_edges
                                                : w->vertices && k - MAX_E < w->graph.n_vertices;
            size_t n = !there ? 1 : edge ? w->edges[k].n : w->vertices[k - MAX_E].n;
            if (++chosen[k] < n) {
                break;
            }
            chosen[k] = 0;
        }
        if (k == MAX_E + MAX_V) {
            return best;
        }
    }
}

static void fronts_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 12);
    for (int k = 0; k < 250; k++) {
        struct inst in;
        struct hv_arena arena = {0};
        struct hv_series_parallel_result r;
        make(&rng, &in);
        assert_int_equal(hv_series_parallel_solve(&in.w, &arena, &r, NULL), HV_OK);
        assert_true(r.proven && r.n_points > 0);
        for (size_t p = 0; p < r.n_points; p++) {
            const struct hv_series_parallel_point *x = &r.points[p];
            size_t chosen[MAX_E + MAX_V] = {0};
            for (size_t e = 0; e < in.w.graph.n_edges; e++) {
                chosen[e] = x->edge[e];
            }
            for (size_t v = 0; v < in.w.graph.n_vertices; v++) {
                chosen[MAX_E + v] = x->vertex[v];
            }
            struct hv_series_parallel_option own = price(&in.w, chosen);
            assert_true(own.time == x->time && own.memory == x->memory);
            assert_true(least_memory(&in.w, x->time) == x->memory);
            double before = p ? r.points[p - 1].memory : HUGE_VAL;
            assert_true(least_memory(&in.w, x->time - 1) == before); /* times are whole */
        }
        in.w.keep = 1 + hv_rng_below(&rng, 2);
        size_t n = r.n_points;
        assert_int_equal(hv_series_parallel_solve(&in.w, &arena, &r, NULL), HV_OK);
        assert_true(r.n_points <= in.w.keep && (r.proven ? r.n_points == n : true));
        hv_arena_free(&arena);
    }
}

/* Counts paths: 1 on an edge, products in a row, sums side by side. */
static enum hv_status one_path(void *ctx, size_t edge, void **out, struct hv_err *err)
{
    (void)edge;
    (void)err;
    size_t *n = hv_arena_new(ctx, size_t, 1);
    *n = 1;
    *out = n;
    return HV_OK;
}

static enum hv_status paths_in_row(void *ctx, size_t vertex, void *left, void *right, void **out,
                                   struct hv_err *err)
{
    size_t *n = hv_arena_new(ctx, size_t, 1);
    (void)err;
    *n = *(size_t *)left * *(size_t *)right;
    *out = n;
    return vertex == 63 ? hv_err_set(err, HV_ENO, "vertex 63") : HV_OK;
}

static enum hv_status paths_beside(void *ctx, void *left, void *right, void **out,
                                   struct hv_err *err)
{
    size_t *n = hv_arena_new(ctx, size_t, 1);
    (void)err;
    *n = *(size_t *)left + *(size_t *)right;
    *out = n;
    return HV_OK;
}

static void any_value_can_be_folded(void **state)
{
    (void)state;
    enum { ROWS = 40 };
    static const struct hv_series_parallel_ops ops = {one_path, paths_in_row, paths_beside};
    struct hv_series_parallel_edge edges[2 * 70];
    struct hv_arena arena = {0};
    struct hv_series_parallel_tree t;
    void *value;
    for (size_t k = 0; k < 70; k++) {
        edges[2 * k] = edges[2 * k + 1] = (struct hv_series_parallel_edge){k, k + 1};
    }
    struct hv_series_parallel_graph g = {ROWS + 1, 2 * ROWS, edges, 0, ROWS};
    assert_int_equal(hv_series_parallel_decompose(&g, &arena, &t, NULL), HV_OK);
    assert_int_equal(hv_series_parallel_fold(&t, &ops, &arena, &value, NULL), HV_OK);
    assert_true(*(size_t *)value == (size_t)1 << ROWS);
    g = (struct hv_series_parallel_graph){71, 140, edges, 0, 70};
    assert_int_equal(hv_series_parallel_decompose(&g, &arena, &t, NULL), HV_OK);
    assert_int_equal(hv_series_parallel_fold(&t, &ops, &arena, &value, NULL),
                     HV_ENO); /* as returned */
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_grown_is_taken_apart),
        cmocka_unit_test(others_are_told_apart),
        cmocka_unit_test(fronts_match_enumeration),
        cmocka_unit_test(any_value_can_be_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
