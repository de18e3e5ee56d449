/* Communication beside compute: closed forms and an independent recurrence; more chunks are never
 * slower, and what shows is never more than what is sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>

#include "solver/base/attr.h"
#include "solver/base/rng.h"
#include "solver/cost/network/overlap.h"

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(fabs(want), 1e-12))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

/* Zero now and then, else up to 10. */
static double seconds(struct hv_rng *r)
{
    return hv_rng_below(r, 6) == 0 ? 0 : 10 * hv_rng_double(r);
}

/* By hand: out 0-1 and 1-2, compute 1-4 and 4-7, back 4-5 and 7-8. */
static void test_two_chunks_by_hand(void **state)
{
    (void)state;
    struct hv_overlap o = hv_overlap_round_trips(2, (struct hv_round_trip){1, 3, 1});
    near(o.exposed_s, 2);
    near(o.hidden_s, 2);
    o = hv_overlap_round_trips(1, (struct hv_round_trip){1, 3, 1});
    near(o.exposed_s, 2);
    near(o.hidden_s, 0);
}

/* The longest path through n chunks starts with one chunk of each kind and stays on one of them. */
static double trips_s(int n, double out, double compute, double back)
{
    double longest = fmax(compute + (out + back) / n, back + (out + compute) / n);
    return fmax(fmax(longest, out + (compute + back) / n), n > 1 ? out + back : 0);
}

static void test_chunks_follow_the_longest_path(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 5);
    for (int i = 0; i < 2000; i++) {
        double out = seconds(&r), compute = seconds(&r), back = seconds(&r), before = HUGE_VAL;
        for (int n = 1; n <= 16; n++) {
            struct hv_overlap o =
                hv_overlap_round_trips(n, (struct hv_round_trip){out / n, compute / n, back / n});
            assert_true(fabs(o.exposed_s - (trips_s(n, out, compute, back) - compute)) < 1e-9);
            assert_true(o.exposed_s <= before + 1e-9); /* no latency: more chunks, no slower */
            assert_true(o.exposed_s <= out + back + 1e-9);
            assert_true(fabs(o.exposed_s + o.hidden_s - out - back) < 1e-9);
            before = o.exposed_s;
        }
    }
}

/* A hop beside each step but the last: (n - 1) max(0, hop - step) shows. */
static void test_ring_closed_form(void **state)
{
    (void)state;
    for (int n = 2; n <= 9; n++) {
        near(hv_overlap_ring(n, (struct hv_ring_step){3, 2, 0}).exposed_s, 0);
        near(hv_overlap_ring(n, (struct hv_ring_step){3, 2, 0}).hidden_s, 2 * (n - 1));
        near(hv_overlap_ring(n, (struct hv_ring_step){2, 5, 0}).exposed_s, 3 * (n - 1));
    }
    near(hv_overlap_ring(1, (struct hv_ring_step){2, 5, 5}).exposed_s, 0);
    /* by hand, 3 ranks: ahead 0-2, 2-4; behind 4-6 after the step 0-1, 6-8 after the step 2-3;
     * the last step runs 4-5: 8 in all, 3 of compute */
    near(hv_overlap_ring(3, (struct hv_ring_step){1, 2, 2}).exposed_s, 5);
    near(hv_overlap_ring(3, (struct hv_ring_step){9, 2, 2}).exposed_s, 0);
}

static void test_ring_bounds(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 6);
    for (int i = 0; i < 2000; i++) {
        int n = 2 + (int)hv_rng_below(&r, 15);
        struct hv_ring_step s = {seconds(&r), seconds(&r), seconds(&r)};
        struct hv_overlap o = hv_overlap_ring(n, s);
        double sent = (n - 1) * (s.ahead_s + s.behind_s);
        assert_true(o.exposed_s >= sent - n * s.compute_s - 1e-9 && o.exposed_s <= sent + 1e-9);
        assert_true(fabs(o.exposed_s + o.hidden_s - sent) < 1e-9);
    }
}

/* Equal units, one gathered ahead: g + (n - 1) max(g, c) + c; none ahead: everything in a row. */
static void test_units_closed_form(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 12; n++) {
        double k = (double)n;
        struct hv_units hidden = {2, 3, 0, n}, seen = {5, 3, 0, n}, behind = {0, 3, 2, n};
        near(hv_overlap_units(&hidden, 1, 2).exposed_s, 2);
        near(hv_overlap_units(&hidden, 1, 1).exposed_s, 2 * k);
        near(hv_overlap_units(&seen, 1, 2).exposed_s, 5 + 2 * (k - 1));
        near(hv_overlap_units(&behind, 1, 2).exposed_s, 2); /* the last scatter */
    }
    assert_true(hv_overlap_units(NULL, 0, 2).exposed_s == 0.0);
}

enum { MOST_UNITS = 40 };

/* The same without tasks: when each lane is free, unit by unit. */
static double units_s(const struct hv_units *u, size_t n, size_t window)
{
    double link = 0, computed = 0, arrived[MOST_UNITS];
    for (size_t i = 0; i < n && i < window; i++) {
        arrived[i] = link += u[i].gather_s;
    }
    for (size_t i = 0; i < n; i++) {
        computed = fmax(computed, arrived[i]) + u[i].compute_s;
        if (u[i].scatter_s > 0) {
            link = fmax(link, computed) + u[i].scatter_s;
        }
        if (i + window < n) {
            arrived[i + window] = link = fmax(link, computed) + u[i + window].gather_s;
        }
    }
    return fmax(link, computed);
}

static void test_units_follow_the_recurrence(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 7);
    for (int i = 0; i < 2000; i++) {
        struct hv_units u[MOST_UNITS];
        size_t n = 1 + hv_rng_below(&r, MOST_UNITS);
        double compute = 0, sent = 0;
        bool gathers_only = hv_rng_below(&r, 2) > 0;
        for (size_t k = 0; k < n; k++) {
            u[k] = (struct hv_units){seconds(&r), seconds(&r), gathers_only ? 0 : seconds(&r), 1};
            compute += u[k].compute_s;
            sent += u[k].gather_s + u[k].scatter_s;
        }
        double before = HUGE_VAL;
        for (size_t window = 1; window < 5; window++) {
            struct hv_overlap o = hv_overlap_units(u, n, window);
            assert_true(fabs(o.exposed_s - (units_s(u, n, window) - compute)) < 1e-9);
            assert_true(fabs(o.exposed_s + o.hidden_s - sent) < 1e-9);
            assert_true(o.exposed_s >= u[0].gather_s + u[n - 1].scatter_s - 1e-9);
            assert_true(!gathers_only || o.exposed_s <= before + 1e-9);
            before = o.exposed_s;
        }
    }
}

/* A run of n equal units is n units. */
static void test_runs_are_units(void **state)
{
    (void)state;
    struct hv_units runs[] = {{2, 1, 1, 3}, {0, 4, 0, 0}, {1, 3, 2, 2}};
    struct hv_units each[] = {{2, 1, 1, 1}, {2, 1, 1, 1}, {2, 1, 1, 1}, {1, 3, 2, 1}, {1, 3, 2, 1}};
    for (size_t window = 1; window < 8; window++) {
        near(hv_overlap_units(runs, HV_COUNT(runs), window).exposed_s,
             hv_overlap_units(each, HV_COUNT(each), window).exposed_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_chunks_by_hand),
        cmocka_unit_test(test_chunks_follow_the_longest_path),
        cmocka_unit_test(test_ring_closed_form),
        cmocka_unit_test(test_ring_bounds),
        cmocka_unit_test(test_units_closed_form),
        cmocka_unit_test(test_units_follow_the_recurrence),
        cmocka_unit_test(test_runs_are_units),
    };
    return cmocka_run_group_tests_name("cost_overlap", tests, NULL, NULL);
}
