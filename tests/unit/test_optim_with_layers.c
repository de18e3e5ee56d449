/* Layers and batch together, against enumeration of all partitions and all counts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/batch/with_layers.h"

enum { L = 6, S = 3, P = 3, MAX_N = 9 };

/* One pipeline with its arrays. */
struct pipe {
    double time[S][L + 1], memory[S][L + 1], cut[S][L + 1];
    const double *cuts[S];
    struct hv_part_stage stage[S];
};

static void make(struct hv_rng *rng, struct pipe *x, struct hv_partition *p)
{
    size_t stages = 1 + hv_rng_below(rng, S);
    for (size_t s = 0; s < S; s++) {
        double pace = 1 + 2 * hv_rng_double(rng);
        x->time[s][0] = x->memory[s][0] = x->cut[s][L] = 0;
        for (size_t l = 0; l < L; l++) {
            x->time[s][l + 1] = x->time[s][l] + pace * (double)(1 + hv_rng_below(rng, 4));
            x->memory[s][l + 1] = x->memory[s][l] + 1;
            x->cut[s][l] = 2 * hv_rng_double(rng);
        }
        x->cuts[s] = x->cut[s];
        x->stage[s] = (struct hv_part_stage){.time = x->time[s],
                                             .memory = x->memory[s],
                                             .capacity = 2 + (double)hv_rng_below(rng, 5)};
    }
    *p = (struct hv_partition){.n_layers = L,
                               .n_stages = stages,
                               .stages = x->stage,
                               .cuts = hv_rng_below(rng, 2) ? x->cuts : NULL,
                               .min_layers = 1};
}

/* Least Σ + (n - 1) · max over all partitions. */
static double brute_time(const struct hv_partition *p, size_t s, size_t i, double sum, double max,
                         double n)
{
    double best = HUGE_VAL;
    for (size_t j = i; j <= L; j++) {
        double v = hv_partition_value(p, s, s, i, j);
        if (isinf(v)) {
            continue;
        }
        double m = fmax(max, v);
        if (s + 1 < p->n_stages) {
            best = fmin(best, brute_time(p, s + 1, j, sum + v, m, n));
        } else if (j == L) {
            best = fmin(best, sum + v + (n - 1) * m);
        }
    }
    return best;
}

static double brute(double time[P][MAX_N + 1], const struct hv_batch_layers *j, size_t p,
                    int64_t left)
{
    double best = HUGE_VAL;
    if (p == j->n_pipelines) {
        return left == 0 ? 0 : HUGE_VAL;
    }
    for (int64_t n = j->min[p]; n <= left && n <= j->max[p]; n++) {
        best = fmin(best, fmax(time[p][n], brute(time, j, p + 1, left - n)));
    }
    return best;
}

static void random_pipelines_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    int solved = 0;
    hv_rng_seed(&rng, 21);
    for (int k = 0; k < 3000; k++) {
        struct pipe x[P];
        struct hv_partition part[P];
        double time[P][MAX_N + 1];
        int64_t min[P], max[P];
        struct hv_batch_layers j = {1 + hv_rng_below(&rng, P), part,
                                    (int64_t)hv_rng_below(&rng, MAX_N + 1), min, max};
        for (size_t p = 0; p < j.n_pipelines; p++) {
            make(&rng, &x[p], &part[p]);
            if (p && hv_rng_below(&rng, 3) == 0) {
                part[p] = part[p - 1];
            }
            min[p] = (int64_t)hv_rng_below(&rng, 2);
            max[p] = min[p] + (int64_t)hv_rng_below(&rng, MAX_N);
            time[p][0] = 0;
            for (int n = 1; n <= MAX_N; n++) {
                time[p][n] = brute_time(&part[p], 0, 0, 0, 0, n);
            }
        }
        struct hv_arena arena = {0};
        struct hv_batch_layers_result r;
        double want = brute(time, &j, 0, j.total);
        assert_int_equal(hv_batch_layers_solve(&j, NULL, &arena, &r, NULL), HV_OK);
        assert_int_equal(r.feasible, !isinf(want));
        assert_true(r.proven);
        if (r.feasible) {
            double worst = 0;
            int64_t sum = 0;
            if (fabs(r.objective - want) > 1e-9 * fmax(1, want)) {
                fail_msg("case %d: %.12g, enumeration says %.12g", k, r.objective, want);
            }
            for (size_t p = 0; p < j.n_pipelines; p++) {
                sum += r.count[p];
                if (r.count[p] > 0) {
                    worst = fmax(worst, r.part[p].sum + (double)(r.count[p] - 1) * r.part[p].max);
                }
            }
            assert_true(sum == j.total && fabs(worst - want) <= 1e-9 * fmax(1, want));
            solved++;
        } else {
            assert_non_null(r.proof);
        }
        hv_arena_free(&arena);
    }
    assert_true(solved > 1000);
}

static bool yes(void *ctx)
{
    (void)ctx;
    return true;
}

/* Stopped at once: what is known is given, with a bound that holds. */
static void a_stop_keeps_the_best(void **state)
{
    (void)state;
    struct hv_rng rng;
    int stopped = 0;
    hv_rng_seed(&rng, 22);
    for (int k = 0; k < 200; k++) {
        struct pipe x[2];
        struct hv_partition part[2];
        const struct hv_batch_layers j = {2, part, 40, NULL, NULL};
        const struct hv_solve_limits limits = {.cancel = yes};
        struct hv_arena arena = {0};
        struct hv_batch_layers_result r, full;
        make(&rng, &x[0], &part[0]);
        make(&rng, &x[1], &part[1]);
        assert_int_equal(hv_batch_layers_solve(&j, &limits, &arena, &r, NULL), HV_OK);
        assert_int_equal(hv_batch_layers_solve(&j, NULL, &arena, &full, NULL), HV_OK);
        if (r.feasible) {
            assert_true(r.stopped && !r.proven && full.feasible);
            assert_true(r.bound <= full.objective * (1 + 1e-9));
            assert_true(r.objective >= full.objective * (1 - 1e-9));
            stopped++;
        }
        hv_arena_free(&arena);
    }
    assert_true(stopped > 50);
}

static void senseless_counts_are_refused(void **state)
{
    (void)state;
    const double time[] = {0, 1};
    const struct hv_part_stage s = {.time = time, .capacity = HUGE_VAL};
    const struct hv_partition p = {.n_layers = 1, .n_stages = 1, .stages = &s};
    const int64_t two = 2, one = 1;
    struct hv_arena arena = {0};
    struct hv_batch_layers_result r;
    struct hv_batch_layers j = {1, &p, -1, NULL, NULL};
    assert_int_equal(hv_batch_layers_solve(&j, NULL, &arena, &r, NULL), HV_EINPUT);
    j = (struct hv_batch_layers){1, &p, 4, &two, &one};
    assert_int_equal(hv_batch_layers_solve(&j, NULL, &arena, &r, NULL), HV_EINPUT);
    j = (struct hv_batch_layers){1, &p, HV_BATCH_LAYERS_MAX_TOTAL + 1, NULL, NULL};
    assert_int_equal(hv_batch_layers_solve(&j, NULL, &arena, &r, NULL), HV_ELIMIT);
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_pipelines_match_enumeration),
        cmocka_unit_test(a_stop_keeps_the_best),
        cmocka_unit_test(senseless_counts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
