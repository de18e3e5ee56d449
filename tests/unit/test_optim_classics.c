/* Knapsack, flow, assignment, paths: each against enumeration, and its own proof checked. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/optim/choice/assign.h"
#include "solver/optim/choice/knapsack.h"
#include "solver/optim/graph/flow.h"
#include "solver/optim/graph/path.h"

enum { CASES = 1500, MAX_N = 6 };

static double brute_knapsack(const struct hv_knapsack_option *o, const size_t *first, size_t n,
                             size_t g, double room)
{
    double best = -HUGE_VAL;
    if (g == n) {
        return 0;
    }
    for (size_t i = first[g]; i < first[g + 1]; i++) {
        if (o[i].weight <= room) {
            best = fmax(best, o[i].value + brute_knapsack(o, first, n, g + 1, room - o[i].weight));
        }
    }
    return best;
}

static void knapsacks_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 31);
    for (int k = 0; k < CASES; k++) {
        struct hv_knapsack_option o[24];
        size_t first[MAX_N + 1] = {0}, n = 1 + hv_rng_below(&rng, MAX_N);
        for (size_t g = 0; g < n; g++) {
            first[g + 1] = first[g] + 1 + hv_rng_below(&rng, 4);
            for (size_t i = first[g]; i < first[g + 1]; i++) {
                o[i] = (struct hv_knapsack_option){(double)hv_rng_below(&rng, 12) - 2,
                                                   (double)hv_rng_below(&rng, 9)};
            }
        }
        double cap = (double)hv_rng_below(&rng, 30);
        struct hv_arena arena = {0};
        struct hv_knapsack_result r;
        double want = brute_knapsack(o, first, n, 0, cap);
        assert_int_equal(hv_knapsack_solve(o, first, n, cap, &arena, &r, NULL), HV_OK);
        assert_int_equal(r.feasible, !isinf(want));
        assert_true(r.proven);
        if (r.feasible) {
            double weight = 0;
            for (size_t g = 0; g < n; g++) {
                weight += o[first[g] + r.choice[g]].weight;
            }
            if (r.value != want) {
                fail_msg("case %d: %g, enumeration says %g", k, r.value, want);
            }
            assert_true(weight <= cap && weight == r.weight);
        } else {
            assert_true(r.excess > 0);
        }
        hv_arena_free(&arena);
    }
}

/* Thousands of options: the lists stay short, the answer meets its bound. */
static void large_knapsack_is_proven(void **state)
{
    (void)state;
    enum { G = 200, K = 5 };
    static struct hv_knapsack_option o[G * K];
    static size_t first[G + 1];
    struct hv_rng rng;
    struct hv_arena arena = {0};
    struct hv_knapsack_result r;
    hv_rng_seed(&rng, 5);
    for (size_t g = 0; g < G; g++) {
        first[g + 1] = (g + 1) * K;
        for (size_t i = 0; i < K; i++) {
            o[g * K + i] = (struct hv_knapsack_option){(double)i * (1 + hv_rng_double(&rng)),
                                                       (double)i * (1 + hv_rng_double(&rng))};
        }
    }
    assert_int_equal(hv_knapsack_solve(o, first, G, 400, &arena, &r, NULL), HV_OK);
    assert_true(r.feasible && r.weight <= 400);
    assert_true(r.bound >= r.value && r.bound <= r.value * 1.001);
    hv_arena_free(&arena);
}

static void flows_meet_their_cuts(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 32);
    for (int k = 0; k < CASES; k++) {
        struct hv_flow_edge e[30];
        size_t n = 2 + hv_rng_below(&rng, 6), m = hv_rng_below(&rng, 30);
        for (size_t i = 0; i < m; i++) {
            e[i] = (struct hv_flow_edge){hv_rng_below(&rng, n), hv_rng_below(&rng, n),
                                         10 * hv_rng_double(&rng)};
        }
        struct hv_arena arena = {0};
        struct hv_flow_result r;
        double out[8] = {0}, least = HUGE_VAL;
        assert_int_equal(hv_flow_max(e, m, n, 0, n - 1, &arena, &r, NULL), HV_OK);
        for (size_t side = 0; side < (size_t)1 << n; side++) { /* every cut */
            double cut = 0;
            if (!(side & 1) || side >> (n - 1) & 1) {
                continue;
            }
            for (size_t i = 0; i < m; i++) {
                cut += side >> e[i].from & 1 && !(side >> e[i].to & 1) ? e[i].capacity : 0;
            }
            least = fmin(least, cut);
        }
        assert_true(r.proven && fabs(r.value - least) < 1e-9);
        for (size_t i = 0; i < m; i++) {
            assert_true(r.flow[i] >= 0 && r.flow[i] <= e[i].capacity + 1e-12);
            out[e[i].from] += r.flow[i];
            out[e[i].to] -= r.flow[i];
        }
        for (size_t v = 1; v + 1 < n; v++) {
            assert_true(fabs(out[v]) < 1e-9);
        }
        assert_true(fabs(out[0] - r.value) < 1e-9);
        hv_arena_free(&arena);
    }
}

static void endless_flow_is_said_to_be(void **state)
{
    (void)state;
    const struct hv_flow_edge e[] = {{0, 1, HUGE_VAL}, {1, 2, HUGE_VAL}, {0, 2, 1}};
    struct hv_arena arena = {0};
    struct hv_flow_result r;
    assert_int_equal(hv_flow_max(e, 3, 3, 0, 2, &arena, &r, NULL), HV_OK);
    assert_true(isinf(r.value));
    assert_int_equal(hv_flow_max(e, 3, 3, 0, 0, &arena, &r, NULL), HV_EINPUT);
    hv_arena_free(&arena);
}

static double brute_assign(const double *c, size_t rows, size_t columns, size_t r, unsigned used,
                           bool sum)
{
    double best = HUGE_VAL;
    if (r == rows) {
        return sum ? 0 : -HUGE_VAL;
    }
    for (size_t j = 0; j < columns; j++) {
        double v = c[r * columns + j];
        if (used >> j & 1 || isinf(v)) {
            continue;
        }
        double rest = brute_assign(c, rows, columns, r + 1, used | 1u << j, sum);
        best = fmin(best, sum ? v + rest : fmax(v, rest));
    }
    return best;
}

static void assignments_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 33);
    for (int k = 0; k < CASES; k++) {
        double c[36];
        size_t rows = 1 + hv_rng_below(&rng, 5), columns = rows + hv_rng_below(&rng, 7 - rows);
        bool sum = k % 2;
        for (size_t i = 0; i < rows * columns; i++) {
            c[i] = hv_rng_below(&rng, 4) ? 10 * hv_rng_double(&rng) - 2 : HUGE_VAL;
        }
        struct hv_arena arena = {0};
        struct hv_assign_result r;
        double want = brute_assign(c, rows, columns, 0, 0, sum);
        assert_int_equal(hv_assign_solve(c, rows, columns,
                                         sum ? HV_ASSIGN_SUM : HV_ASSIGN_BOTTLENECK, &arena, &r,
                                         NULL),
                         HV_OK);
        assert_int_equal(r.feasible, want < HUGE_VAL);
        assert_true(r.proven);
        if (r.feasible) {
            assert_true(fabs(r.value - want) < 1e-9);
        } else {
            assert_true(r.unmatched > 0);
        }
        hv_arena_free(&arena);
    }
}

static double brute_tour(const double *c, size_t n, size_t last, unsigned used, bool heaviest)
{
    double best = heaviest ? -HUGE_VAL : HUGE_VAL;
    if (used == (1u << n) - 1) {
        return 0;
    }
    for (size_t v = 0; v < n; v++) {
        if (used >> v & 1 || (last < n && isinf(c[last * n + v]))) {
            continue;
        }
        double x = brute_tour(c, n, v, used | 1u << v, heaviest) + (last < n ? c[last * n + v] : 0);
        best = heaviest ? fmax(best, x) : fmin(best, x);
    }
    return best;
}

static void paths_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 34);
    for (int k = 0; k < CASES / 3; k++) {
        double c[MAX_N * MAX_N], far[MAX_N][MAX_N];
        size_t n = 1 + hv_rng_below(&rng, MAX_N);
        for (size_t i = 0; i < n * n; i++) {
            c[i] = hv_rng_below(&rng, 5) ? 10 * hv_rng_double(&rng) : HUGE_VAL;
        }
        struct hv_arena arena = {0};
        struct hv_path_result r;
        for (size_t u = 0; u < n; u++) { /* all pairs, Floyd and Warshall */
            for (size_t v = 0; v < n; v++) {
                far[u][v] = u == v ? 0 : c[u * n + v];
            }
        }
        for (size_t m = 0; m < n; m++) {
            for (size_t u = 0; u < n; u++) {
                for (size_t v = 0; v < n; v++) {
                    far[u][v] = fmin(far[u][v], far[u][m] + far[m][v]);
                }
            }
        }
        size_t to = n - 1;
        assert_int_equal(hv_path_shortest(c, n, 0, to, &arena, &r, NULL), HV_OK);
        assert_int_equal(r.feasible, !isinf(far[0][to]));
        if (r.feasible) {
            assert_true(fabs(r.value - far[0][to]) < 1e-9 && r.order[0] == 0 &&
                        r.order[r.n - 1] == to);
        }
        for (int heavy = 0; heavy < 2; heavy++) {
            double want = brute_tour(c, n, n, 0, heavy == 1), sum = 0;
            assert_int_equal(hv_path_through_all(c, n, heavy == 1, &arena, &r, NULL), HV_OK);
            assert_int_equal(r.feasible, !isinf(want));
            assert_true(r.proven || !r.feasible);
            for (size_t i = 0; r.feasible && i + 1 < n; i++) {
                sum += c[r.order[i] * n + r.order[i + 1]];
            }
            if (r.feasible) {
                assert_true(fabs(r.value - want) < 1e-9 && fabs(sum - want) < 1e-9);
            }
        }
        hv_arena_free(&arena);
    }
}

/* Points on a line in random order: the best open tour is the line itself. */
static void larger_tours_have_honest_bounds(void **state)
{
    (void)state;
    enum { N = 40 };
    static double c[N * N];
    double at[N];
    struct hv_rng rng;
    struct hv_arena arena = {0};
    struct hv_path_result r;
    double lo = HUGE_VAL, hi = 0;
    hv_rng_seed(&rng, 6);
    for (size_t v = 0; v < N; v++) {
        at[v] = 100 * hv_rng_double(&rng);
        lo = fmin(lo, at[v]);
        hi = fmax(hi, at[v]);
    }
    for (size_t u = 0; u < N; u++) {
        for (size_t v = 0; v < N; v++) {
            c[u * N + v] = fabs(at[u] - at[v]);
        }
    }
    assert_int_equal(hv_path_through_all(c, N, false, &arena, &r, NULL), HV_OK);
    assert_true(r.feasible && !r.proven);
    assert_true(r.bound <= hi - lo + 1e-9 && r.value >= hi - lo - 1e-9);
    assert_true(r.value <= 1.3 * (hi - lo));
    assert_int_equal(hv_path_through_all(c, N, true, &arena, &r, NULL), HV_OK);
    assert_true(r.feasible && r.bound >= r.value);
    hv_arena_free(&arena);
}

static void bad_numbers_are_refused(void **state)
{
    (void)state;
    const double nan[] = {(double)NAN}, minus[] = {0, -1, -1, 0};
    const struct hv_knapsack_option heavy = {1, -1};
    const struct hv_flow_edge out = {0, 7, 1};
    const size_t first[] = {0, 1}, empty[] = {0, 0};
    struct hv_arena arena = {0};
    struct hv_knapsack_result k;
    struct hv_flow_result f;
    struct hv_assign_result a;
    struct hv_path_result p;
    assert_int_equal(hv_knapsack_solve(&heavy, first, 1, 1, &arena, &k, NULL), HV_EINPUT);
    assert_int_equal(hv_knapsack_solve(&heavy, empty, 1, 1, &arena, &k, NULL), HV_EINPUT);
    assert_int_equal(hv_flow_max(&out, 1, 2, 0, 1, &arena, &f, NULL), HV_EINPUT);
    assert_int_equal(hv_assign_solve(nan, 1, 1, HV_ASSIGN_SUM, &arena, &a, NULL), HV_EINPUT);
    assert_int_equal(hv_assign_solve(minus, 2, 1, HV_ASSIGN_SUM, &arena, &a, NULL), HV_EINPUT);
    assert_int_equal(hv_path_shortest(minus, 2, 0, 1, &arena, &p, NULL), HV_EINPUT);
    assert_int_equal(hv_path_through_all(minus, HV_PATH_MAX + 1, false, &arena, &p, NULL),
                     HV_ELIMIT);
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knapsacks_match_enumeration),
        cmocka_unit_test(large_knapsack_is_proven),
        cmocka_unit_test(flows_meet_their_cuts),
        cmocka_unit_test(endless_flow_is_said_to_be),
        cmocka_unit_test(assignments_match_enumeration),
        cmocka_unit_test(paths_match_enumeration),
        cmocka_unit_test(larger_tours_have_honest_bounds),
        cmocka_unit_test(bad_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
