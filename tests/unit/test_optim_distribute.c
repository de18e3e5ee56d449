/* Integer distribution against enumeration, and figures from the literature. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/batch/distribute.h"

enum { MAX_N = 5 };

#define SHARE(r, sz, lo, hi)                                                                       \
    {                                                                                              \
        .rate = (r), .size = (sz), .min = (lo), .max = (hi)                                        \
    }

static double judge(const struct hv_share *s, const int64_t *c, size_t n, bool variance)
{
    double max = 0, mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        max = fmax(max, s[i].fixed + (double)c[i] * s[i].rate);
        mean += s[i].rate * (double)c[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        squares += pow(s[i].rate * (double)c[i] - mean, 2);
    }
    return variance ? squares : max;
}

static double brute(const struct hv_share *s, int64_t *c, size_t n, size_t i, int64_t left,
                    bool variance)
{
    double best = HUGE_VAL;
    if (i == n) {
        return left == 0 ? judge(s, c, n, variance) : HUGE_VAL;
    }
    for (c[i] = s[i].min; c[i] <= s[i].max && c[i] * s[i].size <= left; c[i]++) {
        best = fmin(best, brute(s, c, n, i + 1, left - c[i] * s[i].size, variance));
    }
    return best;
}

static void check_answer(const struct hv_share *s, size_t n, int64_t total, bool variance,
                         const struct hv_distribution *d, int at)
{
    int64_t c[MAX_N], sum = 0;
    double want = brute(s, c, n, 0, total, variance);
    if (isinf(want)) {
        assert_false(d->feasible);
        return;
    }
    assert_true(d->feasible && d->proven);
    if (fabs(d->objective - want) > 1e-9 * fmax(1, want)) {
        fail_msg("case %d: %.12g, enumeration says %.12g", at, d->objective, want);
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(d->count[i] >= s[i].min && d->count[i] <= s[i].max);
        sum += d->count[i] * s[i].size;
    }
    assert_true(sum == total);
    assert_true(fabs(judge(s, d->count, n, variance) - want) < 1e-9 * fmax(1, want));
}

static void random_splits_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 9);
    for (int k = 0; k < 8000; k++) {
        struct hv_share s[MAX_N] = {{0}};
        struct hv_distribution d;
        struct hv_arena arena = {0};
        size_t n = 1 + hv_rng_below(&rng, MAX_N);
        bool whole = hv_rng_below(&rng, 2), mixed = hv_rng_below(&rng, 2);
        for (size_t i = 0; i < n; i++) {
            s[i].fixed = whole ? (double)hv_rng_below(&rng, 5) : 5 * hv_rng_double(&rng);
            s[i].rate = whole ? (double)hv_rng_below(&rng, 4) : 3 * hv_rng_double(&rng);
            s[i].size = mixed ? 1 + (int64_t)hv_rng_below(&rng, 4) : 1 + (k % 3 == 0);
            s[i].min = (int64_t)hv_rng_below(&rng, 2);
            s[i].max = s[i].min + (int64_t)hv_rng_below(&rng, 12);
        }
        int64_t total = (int64_t)hv_rng_below(&rng, 26);
        assert_int_equal(hv_distribute_minmax(s, n, total, &arena, &d, NULL), HV_OK);
        check_answer(s, n, total, false, &d, k);
        for (size_t i = 0; i < n; i++) {
            s[i].rate += 0.5;
        }
        assert_int_equal(hv_distribute_minvar(s, n, total, &arena, &d, NULL), HV_OK);
        check_answer(s, n, total, true, &d, k);
        hv_arena_free(&arena);
    }
}

/* Oobleck's batch distribution (SOSP'23, §4.2.2): T/S = (4, 3), 14 micro-batches → (6, 8), 0;
 * T/S = (6, 4) with two pipelines of the first template, 16 → (5, 6), 18. */
static void least_variance_of_the_literature(void **state)
{
    (void)state;
    struct hv_arena arena = {0};
    struct hv_distribution d;
    const struct hv_share a[] = {SHARE(4, 1, 1, 99), SHARE(3, 1, 1, 99)};
    const struct hv_share b[] = {SHARE(6, 2, 1, 99), SHARE(4, 1, 1, 99)};
    assert_int_equal(hv_distribute_minvar(a, 2, 14, &arena, &d, NULL), HV_OK);
    assert_true(d.objective == 0 && d.count[0] == 6 && d.count[1] == 8);
    assert_int_equal(hv_distribute_minvar(b, 2, 16, &arena, &d, NULL), HV_OK);
    assert_true(fabs(d.objective - 18) < 1e-9 && d.count[0] == 5 && d.count[1] == 6);
    hv_arena_free(&arena);
}

static void proportions_keep_limits(void **state)
{
    (void)state;
    struct hv_arena arena = {0};
    struct hv_distribution d;
    struct hv_share s[] = {SHARE(1, 1, 0, 99), SHARE(1, 1, 0, 99), SHARE(1, 1, 0, 99)};
    assert_int_equal(hv_distribute_ratio(s, 3, 10, &arena, &d, NULL), HV_OK);
    assert_true(d.count[0] == 4 && d.count[1] == 3 && d.count[2] == 3);
    s[0].rate = 8;
    s[0].max = 5;
    assert_int_equal(hv_distribute_ratio(s, 3, 10, &arena, &d, NULL), HV_OK);
    assert_true(d.count[0] == 5 && d.count[1] == 3 && d.count[2] == 2);
    s[2].min = 4;
    assert_int_equal(hv_distribute_ratio(s, 3, 10, &arena, &d, NULL), HV_OK);
    assert_true(d.count[0] == 5 && d.count[1] == 1 && d.count[2] == 4);
    s[1].max = 0;
    s[2].max = 4;
    assert_int_equal(hv_distribute_ratio(s, 3, 10, &arena, &d, NULL), HV_OK);
    assert_false(d.feasible);
    hv_arena_free(&arena);
}

static void longest_first_has_a_valid_bound(void **state)
{
    (void)state;
    struct hv_arena arena = {0};
    struct hv_distribution d;
    const double items[] = {5, 5, 4, 4, 3, 3, 3}; /* Graham's example: 11 for an optimum of 9 */
    assert_int_equal(hv_distribute_lpt(items, 7, 3, 0, &arena, &d, NULL), HV_OK);
    assert_true(d.objective == 11 && d.bound == 9 && !d.proven);
    assert_int_equal(hv_distribute_lpt(items, 7, 0, 0, &arena, &d, NULL), HV_EINPUT);
    /* two per slot: 9 | 1, 1 is not allowed to be 9 | 1, 1, 1 */
    const double few[] = {9, 1, 1, 1};
    int64_t held[2] = {0};
    assert_int_equal(hv_distribute_lpt(few, 4, 2, 2, &arena, &d, NULL), HV_OK);
    assert_true(d.objective == 10 && d.bound == 10 && d.proven);
    for (size_t i = 0; i < 4; i++) {
        held[d.count[i]]++;
    }
    assert_true(held[0] == 2 && held[1] == 2);
    assert_int_equal(hv_distribute_lpt(few, 4, 1, 3, &arena, &d, NULL), HV_OK);
    assert_false(d.feasible);
    assert_non_null(strstr(d.proof, "hold 1 fewer"));
    hv_arena_free(&arena);
}

static void bad_shares_are_refused(void **state)
{
    (void)state;
    struct hv_arena arena = {0};
    struct hv_distribution d;
    struct hv_share s = SHARE(1, 1, 0, 9);
    assert_int_equal(hv_distribute_minmax(&s, 0, 1, &arena, &d, NULL), HV_EINPUT);
    s.rate = (double)NAN;
    assert_int_equal(hv_distribute_minmax(&s, 1, 1, &arena, &d, NULL), HV_EINPUT);
    s.rate = 1;
    s.size = 0;
    assert_int_equal(hv_distribute_minmax(&s, 1, 1, &arena, &d, NULL), HV_EINPUT);
    s.size = 1;
    s.min = 10;
    assert_int_equal(hv_distribute_minmax(&s, 1, 1, &arena, &d, NULL), HV_EINPUT);
    hv_arena_free(&arena);
}

enum { POINTS = 4 };

/* Curves, tables and straight lines; convex ones where the least sum is asked for. */
struct curves {
    struct hv_share s[MAX_N];
    struct hv_share_point point[MAX_N][POINTS];
    size_t n;
};

static void make_curves(struct hv_rng *rng, struct curves *c, bool convex, bool mixed)
{
    memset(c, 0, sizeof *c);
    c->n = 1 + hv_rng_below(rng, MAX_N - 1);
    for (size_t i = 0; i < c->n; i++) {
        struct hv_share *s = &c->s[i];
        double slope = 0, step = (double)hv_rng_below(rng, 3);
        s->size = mixed ? 1 + (int64_t)hv_rng_below(rng, 3) : 1;
        s->min = (int64_t)hv_rng_below(rng, 2);
        s->max = s->min + (int64_t)hv_rng_below(rng, 9);
        s->fixed = (double)hv_rng_below(rng, 4);
        s->rate = (double)hv_rng_below(rng, 4) + hv_rng_double(rng);
        if (hv_rng_below(rng, 4) == 0) {
            continue;
        }
        struct hv_share_point *p = c->point[i];
        for (size_t k = 1; k < POINTS; k++) {
            slope = convex ? slope + step * hv_rng_double(rng) : 3 * hv_rng_double(rng);
            slope = hv_rng_below(rng, 5) ? slope : convex ? slope : 0;
            p[k].count = p[k - 1].count + 1 + (int64_t)hv_rng_below(rng, 3);
            p[k].time = p[k - 1].time + slope * (double)(p[k].count - p[k - 1].count);
        }
        s->points = p;
        s->n_points = POINTS;
    }
}

/* Time of a count, straight from the definition. */
static double time_of(const struct hv_share *s, int64_t count)
{
    if (!s->points) {
        return s->fixed + (double)count * s->rate;
    }
    for (size_t k = 1; k < s->n_points; k++) {
        const struct hv_share_point *a = &s->points[k - 1], *b = &s->points[k];
        if (count <= b->count) {
            return a->time +
                   (b->time - a->time) * (double)(count - a->count) / (double)(b->count - a->count);
        }
    }
    return HUGE_VAL;
}

static double least(const struct curves *c, size_t i, int64_t left, bool sum)
{
    double best = HUGE_VAL;
    if (i == c->n) {
        return left == 0 ? 0 : HUGE_VAL;
    }
    for (int64_t k = c->s[i].min; k <= c->s[i].max && k * c->s[i].size <= left; k++) {
        double here = time_of(&c->s[i], k), rest = least(c, i + 1, left - k * c->s[i].size, sum);
        best = fmin(best, sum ? here + rest : fmax(here, rest));
    }
    return best;
}

static void curves_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    int feasible = 0;
    hv_rng_seed(&rng, 21);
    for (int k = 0; k < 12000; k++) {
        struct curves c;
        struct hv_distribution d;
        struct hv_arena arena = {0};
        bool sum = k % 3 == 0;
        make_curves(&rng, &c, sum, !sum && k % 2);
        int64_t total = (int64_t)hv_rng_below(&rng, 22), met = 0;
        double want = least(&c, 0, total, sum), got = 0;
        assert_int_equal(sum ? hv_distribute_sum(c.s, c.n, total, &arena, &d, NULL)
                             : hv_distribute_minmax(c.s, c.n, total, &arena, &d, NULL),
                         HV_OK);
        assert_true(d.proven && d.feasible == !isinf(want));
        for (size_t i = 0; d.feasible && i < c.n; i++) {
            double t = time_of(&c.s[i], d.count[i]);
            assert_true(d.count[i] >= c.s[i].min && d.count[i] <= c.s[i].max);
            met += d.count[i] * c.s[i].size;
            got = sum ? got + t : fmax(got, t);
        }
        if (d.feasible && (met != total || fabs(got - want) > 1e-9 * fmax(1, want) ||
                           fabs(d.objective - want) > 1e-9 * fmax(1, want))) {
            fail_msg("case %d: %.12g, enumeration says %.12g", k, d.objective, want);
        }
        feasible += d.feasible;
        hv_arena_free(&arena);
    }
    assert_true(feasible > 4000);
}

/* Large totals cost no more than small ones; a step of equal times takes them all. */
static void curves_reach_far(void **state)
{
    (void)state;
    struct hv_arena arena = {0};
    struct hv_distribution d;
    const int64_t far = (int64_t)1 << 38;
    const struct hv_share_point flat[] = {{0, 1}, {far, 1}, {far + 9, 100}};
    const struct hv_share s[] = {
        {.size = 1, .max = 2 * far, .points = flat, .n_points = 3},
        {.rate = 1, .size = 1, .max = far},
    };
    assert_int_equal(hv_distribute_minmax(s, 2, far + 1, &arena, &d, NULL), HV_OK);
    assert_true(d.objective == 1 && d.count[0] == far && d.count[1] == 1);
    assert_int_equal(hv_distribute_sum(s, 2, far + 1, &arena, &d, NULL), HV_OK);
    assert_true(d.objective == 2 && d.count[0] == far);
    hv_arena_free(&arena);
}

static void bad_curves_are_refused(void **state)
{
    (void)state;
    struct hv_arena arena = {0};
    struct hv_distribution d;
    struct hv_err err = {0};
    const struct hv_share_point bent[] = {{0, 0}, {2, 4}, {4, 5}}, falls[] = {{0, 3}, {1, 2}};
    struct hv_share s = {.size = 1, .max = 9, .points = bent, .n_points = 3};
    assert_int_equal(hv_distribute_minmax(&s, 1, 3, &arena, &d, &err), HV_OK);
    assert_true(d.objective == 4.5);
    assert_int_equal(hv_distribute_sum(&s, 1, 3, &arena, &d, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "share 1, point 2: the curve is not convex"));
    assert_int_equal(hv_distribute_ratio(&s, 1, 3, &arena, &d, &err), HV_EINPUT);
    assert_int_equal(hv_distribute_minvar(&s, 1, 3, &arena, &d, &err), HV_EINPUT);
    s.points = falls;
    s.n_points = 2;
    assert_int_equal(hv_distribute_minmax(&s, 1, 1, &arena, &d, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "share 1, point 2"));
    s.n_points = 0;
    assert_int_equal(hv_distribute_minmax(&s, 1, 1, &arena, &d, &err), HV_EINPUT);
    hv_arena_free(&arena);
}

/* Proportions: the total, the limits, and without limits that bind less than 1 away. */
static void proportions_are_near(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 5);
    for (int k = 0; k < 3000; k++) {
        struct hv_share s[MAX_N] = {{0}};
        struct hv_arena arena = {0};
        struct hv_distribution d;
        size_t n = 1 + hv_rng_below(&rng, MAX_N);
        bool free = k % 2;
        int64_t total = (int64_t)hv_rng_below(&rng, 60), low = 0, high = 0, sum = 0;
        for (size_t i = 0; i < n; i++) {
            s[i].size = 1;
            s[i].rate = 0.1 + hv_rng_double(&rng);
            s[i].min = free ? 0 : (int64_t)hv_rng_below(&rng, 8);
            s[i].max = free ? total : s[i].min + (int64_t)hv_rng_below(&rng, 20);
            low += s[i].min;
            high += s[i].max;
        }
        assert_int_equal(hv_distribute_ratio(s, n, total, &arena, &d, NULL), HV_OK);
        assert_true(d.feasible == (low <= total && total <= high));
        for (size_t i = 0; d.feasible && i < n; i++) {
            assert_true(d.count[i] >= s[i].min && d.count[i] <= s[i].max);
            sum += d.count[i];
        }
        assert_true(!d.feasible || sum == total);
        assert_true(!free || d.objective < 1);
        hv_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_splits_match_enumeration),
        cmocka_unit_test(least_variance_of_the_literature),
        cmocka_unit_test(proportions_keep_limits),
        cmocka_unit_test(curves_match_enumeration),
        cmocka_unit_test(curves_reach_far),
        cmocka_unit_test(bad_curves_are_refused),
        cmocka_unit_test(proportions_are_near),
        cmocka_unit_test(longest_first_has_a_valid_bound),
        cmocka_unit_test(bad_shares_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
