/** Orders, ideals, antichains and liveness against brute force over all sets of small graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/optim/graph/precedence.h"
#include <math.h>
#include <string.h>

#define NODES 10

struct graph {
    struct hv_precedence_edge edges[NODES * NODES];
    struct hv_precedence g;
};

/* Edges from lower to higher places of a random order. */
static void draw(struct hv_rng *rng, struct graph *x)
{
    size_t n = 1 + hv_rng_below(rng, NODES), name[NODES];
    x->g = (struct hv_precedence){.n_nodes = n, .edges = x->edges};
    for (size_t i = 0; i < n; i++) {
        size_t k = hv_rng_below(rng, i + 1);
        name[i] = name[k];
        name[k] = i;
    }
    uint64_t dense = 1 + hv_rng_below(rng, 6);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n; k++) {
            if (hv_rng_below(rng, 6) < dense) {
                x->edges[x->g.n_edges++] = (struct hv_precedence_edge){name[i], name[k]};
            }
        }
    }
}

static bool is_ideal(const struct hv_precedence *g, unsigned set)
{
    for (size_t e = 0; e < g->n_edges; e++) {
        if ((set >> g->edges[e].to & 1) != 0 && (set >> g->edges[e].from & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* reach[i]: nodes behind node i. */
static void reachable(const struct hv_precedence *g, unsigned *reach)
{
    memset(reach, 0, NODES * sizeof *reach);
    for (size_t turn = 0; turn < g->n_nodes; turn++) {
        for (size_t e = 0; e < g->n_edges; e++) {
            reach[g->edges[e].from] |= 1U << g->edges[e].to | reach[g->edges[e].to];
        }
    }
}

static bool is_antichain(const unsigned *reach, unsigned set)
{
    for (size_t i = 0; i < NODES; i++) {
        if ((set >> i & 1) != 0 && (reach[i] & set) != 0) {
            return false;
        }
    }
    return true;
}

/* Exactly the sets that satisfy the definition, each once. */
static void sets_as_by_brute_force(void **state)
{
    struct hv_rng rng;
    (void)state;
    hv_rng_seed(&rng, 7);
    for (int turn = 0; turn < 400; turn++) {
        struct graph x;
        struct hv_arena arena = {0};
        struct hv_node_sets s;
        unsigned reach[NODES], n_ideals = 0, n_antichains = 0;
        bool seen[1 << NODES] = {false};
        draw(&rng, &x);
        reachable(&x.g, reach);
        for (unsigned set = 0; set < 1U << x.g.n_nodes; set++) {
            n_ideals += is_ideal(&x.g, set);
            n_antichains += is_antichain(reach, set);
        }
        assert_int_equal(n_ideals, n_antichains);
        assert_int_equal(hv_precedence_ideals(&x.g, 1 << NODES, &arena, &s, NULL), HV_OK);
        assert_int_equal(s.n, n_ideals);
        for (size_t i = 0; i < s.n; i++) {
            assert_true(is_ideal(&x.g, (unsigned)s.bits[i]) && !seen[s.bits[i]]);
            seen[s.bits[i]] = true;
        }
        memset(seen, 0, sizeof seen);
        hv_precedence_antichains(&x.g, &s);
        for (size_t i = 0; i < s.n; i++) {
            assert_true(is_antichain(reach, (unsigned)s.bits[i]) && !seen[s.bits[i]]);
            seen[s.bits[i]] = true;
        }
        hv_arena_free(&arena);
    }
}

/* Of all orders the first one in the order of numbers. */
static void order_is_the_first(void **state)
{
    struct hv_rng rng;
    (void)state;
    hv_rng_seed(&rng, 8);
    for (int turn = 0; turn < 400; turn++) {
        struct graph x;
        struct hv_arena arena = {0};
        size_t *order = NULL;
        unsigned done = 0;
        draw(&rng, &x);
        assert_int_equal(hv_precedence_order(&x.g, &arena, &order, NULL), HV_OK);
        assert_true(hv_precedence_is_order(&x.g, order, &arena));
        for (size_t i = 0; i < x.g.n_nodes; i++) {
            size_t k = 0;
            while ((done >> k & 1) != 0 || !is_ideal(&x.g, done | 1U << k)) {
                k++;
            }
            assert_int_equal(order[i], k);
            done |= 1U << k;
        }
        hv_arena_free(&arena);
    }
}

/* What is held while a node runs, straight from the definition. */
static void held_as_defined(void **state)
{
    struct hv_rng rng;
    (void)state;
    hv_rng_seed(&rng, 9);
    for (int turn = 0; turn < 400; turn++) {
        struct graph x;
        struct hv_arena arena = {0};
        size_t *order = NULL, place[NODES];
        double bytes[NODES], held[NODES], peak = 0;
        draw(&rng, &x);
        assert_int_equal(hv_precedence_order(&x.g, &arena, &order, NULL), HV_OK);
        for (size_t i = 0; i < x.g.n_nodes; i++) {
            place[order[i]] = i;
            bytes[i] = (double)hv_rng_below(&rng, 100);
        }
        double most = hv_precedence_held(&x.g, order, bytes, &arena, held);
        for (size_t i = 0; i < x.g.n_nodes; i++) {
            double want = 0;
            for (size_t k = 0; k < x.g.n_nodes; k++) {
                bool read = false, later = false;
                for (size_t e = 0; e < x.g.n_edges; e++) {
                    if (x.edges[e].from == k) {
                        read = true;
                        later = later || place[x.edges[e].to] >= i;
                    }
                }
                want += place[k] <= i && (!read || later) ? bytes[k] : 0;
            }
            assert_true(held[i] == want);
            peak = fmax(peak, want);
        }
        assert_true(most == peak);
        hv_arena_free(&arena);
    }
}

static void refusals(void **state)
{
    static const struct hv_precedence_edge ring[] = {{0, 1}, {1, 2}, {2, 1}}, far[] = {{0, 7}};
    struct hv_arena arena = {0};
    struct hv_node_sets s;
    struct hv_err err = {0};
    size_t *order = NULL;
    (void)state;
    assert_int_equal(hv_precedence_order(&(struct hv_precedence){3, 3, ring}, &arena, &order, &err),
                     HV_EINPUT);
    assert_non_null(strstr(err.text, "node 1 waits for itself"));
    assert_int_equal(hv_precedence_order(&(struct hv_precedence){3, 1, far}, &arena, &order, &err),
                     HV_EINPUT);
    assert_int_equal(
        hv_precedence_ideals(&(struct hv_precedence){12, 0, NULL}, 4095, &arena, &s, &err),
        HV_ELIMIT);
    assert_int_equal(
        hv_precedence_ideals(&(struct hv_precedence){12, 0, NULL}, 4096, &arena, &s, &err), HV_OK);
    assert_int_equal(s.n, 4096);
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_as_by_brute_force), cmocka_unit_test(order_is_the_first),
        cmocka_unit_test(held_as_defined), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
