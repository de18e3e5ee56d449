/* Steady states: circle ratios against all circles, periods against long runs, extrapolation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/sim/cycle.h"
#include "solver/sim/pipeline/steady.h"
#include "tests/sim_fixture.h"

enum { NODES = 6 };

/* the best ratio over all simple circles through `first` and higher nodes, by walking them all */
static void walk(const struct hv_cycle_edge *edges, size_t n, int32_t first, int32_t at,
                 unsigned seen, double weight, int32_t tokens, double *best)
{
    for (size_t e = 0; e < n; e++) {
        if (edges[e].from != at || edges[e].to < first) {
            continue;
        }
        double w = weight + edges[e].weight_s;
        int32_t t = tokens + edges[e].tokens;
        if (edges[e].to == first) {
            *best = fmax(*best, w / t);
        } else if (!(seen >> edges[e].to & 1)) {
            walk(edges, n, first, edges[e].to, seen | 1u << edges[e].to, w, t, best);
        }
    }
}

static void ratios_as_by_walking(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 19);
    for (int round = 0; round < 2000; round++) {
        struct hv_cycle_edge edges[14];
        size_t n = 6 + (size_t)hv_rng_below(&r, 9), n_path;
        for (size_t e = 0; e < n; e++) {
            int32_t from = (int32_t)hv_rng_below(&r, NODES), to = (int32_t)hv_rng_below(&r, NODES);
            edges[e] = (struct hv_cycle_edge){from, to, (to <= from) + (int32_t)hv_rng_below(&r, 2),
                                              1 + (double)hv_rng_below(&r, 9)};
        }
        double best = 0, got = 0, weight = 0;
        for (int32_t v = 0; v < NODES; v++) {
            walk(edges, n, v, v, 1u << v, 0, 0, &best);
        }
        struct hv_arena a = {0};
        const int32_t *path;
        int32_t tokens = 0;
        enum hv_status st = hv_cycle_ratio(&a, edges, n, NODES, &got, &path, &n_path, NULL);
        assert_int_equal(st, best > 0 ? HV_OK : HV_ENO);
        if (st == HV_OK) {
            NEAR(got, best);
            for (size_t i = 0; i < n_path; i++) {
                assert_int_equal(edges[path[i]].to, edges[path[(i + 1) % n_path]].from);
                weight += edges[path[i]].weight_s;
                tokens += edges[path[i]].tokens;
            }
            NEAR(weight / tokens, best);
        }
        hv_arena_free(&a);
    }
    static const struct hv_cycle_edge dead[] = {{0, 1, 0, 1}, {1, 0, 0, 1}};
    struct hv_arena a = {0};
    double got;
    assert_int_equal(hv_cycle_ratio(&a, dead, 2, 2, &got, NULL, NULL, NULL), HV_ENO);
    hv_arena_free(&a);
}

/* random unequal stages and hops */
static void make_unequal(struct fixture *x, struct hv_rng *r, double hop)
{
    price(x, 1, 1, 1, hop);
    for (size_t i = 0; i < (size_t)x->s.n_stages * HV_OP_KIND_N; i++) {
        x->stage_s[i] = some(r, 0.5, 4);
    }
    hv_pipe_time(&x->g, &x->cost, &x->run);
}

static const struct {
    const char *name;
    int32_t v;
} repeating[] = {{"1f1b", 1},      {"interleaved", 2}, {"zb-h1", 1},    {"zb-h2", 1},
                 {"pipedream", 1}, {"dualpipev", 2},   {"dualpipe", 1}, {"hetpipe", 1},
                 {"zb-v", 2},      {"dapple", 1},      {"v-half", 2},   {"1f1b-v", 2}};

/* the makespan of long runs grows by the period: exactly, over a stretch that holds every cyclicity
 * there can be */
static void periods_of_long_runs(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 23);
    for (int i = 0; i < 120; i++) {
        size_t k = (size_t)i % HV_COUNT(repeating);
        int32_t p = 2 * (1 + (int32_t)hv_rng_below(&r, 2));
        double hop = some(&r, 0, 2), t[2];
        struct hv_steady steady;
        struct hv_rng again = r;
        for (int run = 0; run < 2; run++) {
            struct fixture x;
            int32_t m = 240 + run * 120;
            r = again;
            build(&x, repeating[k].name, p, m, repeating[k].v, NULL, NULL);
            make_unequal(&x, &r, hop);
            t[run] = x.run.makespan_s;
            assert_int_equal(hv_pipe_steady(&x.g, &x.cost, &steady, NULL), HV_OK);
            assert_true(steady.n_ranks >= 1 && steady.rank >= 0 && steady.rank < p);
            hv_arena_free(&x.a);
        }
        NEAR(t[1] - t[0], 120 * steady.per_micro_batch_s);
    }
}

/* by hand: 1F1B without hops goes at the pace of its slowest stage; PipeDream, SOSP'19, section 3.2
 */
static void the_slowest_stage_sets_the_pace(void **state)
{
    (void)state;
    struct fixture x;
    struct hv_steady steady;
    struct hv_err err;
    build(&x, "pipedream", 4, 40, 1, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    x.stage_s[2 * HV_OP_KIND_N + HV_OP_F] = 2;
    x.stage_s[2 * HV_OP_KIND_N + HV_OP_BW] = 5;
    assert_int_equal(hv_pipe_steady(&x.g, &x.cost, &steady, NULL), HV_OK);
    NEAR(steady.per_micro_batch_s, 7);
    assert_int_equal(steady.micro_batches, 1);
    assert_int_equal(steady.n_ranks, 1);
    assert_int_equal(steady.rank, 2);
    hv_arena_free(&x.a);
    build(&x, "gpipe", 4, 40, 1, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    assert_int_equal(hv_pipe_steady(&x.g, &x.cost, &steady, &err), HV_ENO);
    assert_non_null(strstr(err.text, "does not repeat"));
    hv_arena_free(&x.a);
}

/* extrapolated and laid out in full: equal where it says that it is exact, as it nearly always is;
 * a million million micro-batches take no time */
static void extrapolation(void **state)
{
    (void)state;
    struct hv_rng r;
    size_t n_exact = 0;
    hv_rng_seed(&r, 29);
    for (size_t k = 0; k < 3 * HV_COUNT(repeating); k++) {
        const struct hv_schedule_row *row;
        struct hv_schedule_input in;
        struct hv_extrapolated got;
        struct fixture x;
        int32_t p = 4, m = 1000 + 4 * (int32_t)hv_rng_below(&r, 50);
        build(&x, repeating[k / 3].name, p, m, repeating[k / 3].v, NULL, NULL);
        make_unequal(&x, &r, some(&r, 0, 1));
        assert_int_equal(hv_schedule_find(repeating[k / 3].name, &row, NULL), HV_OK);
        hv_schedule_input_init(&in, row, p, 1);
        in.chunks = repeating[k / 3].v;
        assert_int_equal(hv_schedule_extrapolate(&in, &x.cost, m, &got, NULL), HV_OK);
        if (got.exact) {
            NEAR(got.makespan_s, x.run.makespan_s);
            n_exact++;
        }
        assert_true(fabs(got.makespan_s / x.run.makespan_s - 1) < 1e-3);
        assert_true(got.from_micro_batches <= m);
        int64_t huge = 1000000000000;
        assert_int_equal(hv_schedule_extrapolate(&in, &x.cost, huge, &got, NULL), HV_OK);
        assert_true(fabs(got.makespan_s / (1e12 * got.steady.per_micro_batch_s) - 1) < 1e-9);
        hv_arena_free(&x.a);
    }
    assert_true(n_exact + 2 >= 3 * HV_COUNT(repeating));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratios_as_by_walking),
        cmocka_unit_test(periods_of_long_runs),
        cmocka_unit_test(the_slowest_stage_sets_the_pace),
        cmocka_unit_test(extrapolation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
