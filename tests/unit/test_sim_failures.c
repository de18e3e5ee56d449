/** Closed forms of interrupted work, against a simulation of it and against the papers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/rng.h"
#include "solver/sim/failures.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.12g is not within %g of %.12g", got, rel, want);
    }
}

static double until_next(struct hv_rng *r, double mean)
{
    return -mean * log(1 - hv_rng_double(r));
}

/* Plays the run out: shares of the wall clock after many segments. */
static struct hv_failure_shares play(const struct hv_failure_run *r, int segments, uint64_t seed)
{
    struct hv_rng rng;
    hv_rng_seed(&rng, seed);
    struct hv_failure_shares s = {0};
    double next = until_next(&rng, r->mtbf_s), each = r->segment_s + r->write_s, total;
    int interrupted = 0;
    for (int done = 0; done < segments;) {
        if (next >= each) {
            next -= each;
            done++;
            continue;
        }
        s.rollback += next;
        interrupted++;
        next = until_next(&rng, r->mtbf_s);
        while (next < r->recover_s) { /* interrupted while recovering: from the start */
            s.recover += next;
            next = until_next(&rng, r->mtbf_s);
        }
        s.recover += r->recover_s;
        next -= r->recover_s;
    }
    s.rollback_s = s.rollback / interrupted;
    s.useful = segments * r->segment_s;
    s.write = segments * r->write_s;
    total = s.useful + s.write + s.rollback + s.recover;
    s.useful /= total;
    s.write /= total;
    s.rollback /= total;
    s.recover /= total;
    return s;
}

static void the_long_run_is_what_a_simulation_gives(void **state)
{
    (void)state;
    static const struct hv_failure_run runs[] = {
        {1000, 100, 5, 30}, {1000, 900, 50, 400}, {100, 10, 0, 80}, {5000, 60, 20, 0}};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct hv_failure_shares s, got = play(&runs[i], 400000, 7 + i);
        hv_failure_shares(&runs[i], &s);
        assert_near(s.useful, got.useful, 5e-3);
        assert_near(1 + s.write, 1 + got.write, 5e-3);
        assert_near(1 + s.rollback, 1 + got.rollback, 5e-3);
        assert_near(1 + s.recover, 1 + got.recover, 5e-3);
        assert_near(s.rollback_s, got.rollback_s, 3e-2); /* 6,000 interruptions at least */
        assert_near(s.useful + s.write + s.rollback + s.recover, 1, 1e-12);
    }
}

static double useful(double segment_s, double write_s, double mtbf_s)
{
    struct hv_failure_run r = {mtbf_s, segment_s, write_s, 17};
    struct hv_failure_shares s;
    hv_failure_shares(&r, &s);
    return s.useful;
}

static void the_best_segment_is_the_best(void **state)
{
    (void)state;
    for (double write_s = 1e-3; write_s < 3e4; write_s *= 7) {
        double best = hv_failure_best_segment_s(write_s, 3600);
        assert_true(best > 0 && best < 3600);
        for (double f = 0.8; f < 1.25; f += 0.05) {
            assert_true(useful(best, write_s, 3600) >= useful(best * f, write_s, 3600) - 1e-15);
        }
    }
    assert_true(hv_failure_best_segment_s(0, 3600) == 0);
    /* Young 1974: sqrt(2 delta M), to first order; Daly 2006, equation 37, closer: delta = 5 min
     * and M = 24 h give 115.2 min by it */
    assert_near(hv_failure_best_segment_s(1e-3, 1e6), sqrt(2 * 1e-3 * 1e6), 1e-4);
    double d = 5 * 60, m = 24 * 3600, h = sqrt(d / (2 * m));
    assert_near(hv_failure_best_segment_s(d, m), sqrt(2 * d * m) * (1 + h / 3 + h * h / 9) - d,
                1e-3);
}

static void nodes_are_away_by_themselves(void **state)
{
    (void)state;
    /* two nodes away half of the time, one a quarter: by hand */
    const struct hv_failure_nodes groups[] = {{2, 1e-3, 1e3}, {1, 1e-3, 1e3 / 3}};
    double p[5];
    hv_failure_away(groups, 2, p, 5);
    assert_near(p[0], 0.25 * 0.75, 1e-12);
    assert_near(p[1], 0.5 * 0.75 + 0.25 * 0.25, 1e-12);
    assert_near(p[2], 0.25 * 0.75 + 0.5 * 0.25, 1e-12);
    assert_near(p[3], 0.25 * 0.25, 1e-12);
    assert_true(p[4] == 0);
    double few[2], none[1];
    hv_failure_away(groups, 2, few, 2);
    assert_near(few[1], 1 - p[0], 1e-12);
    hv_failure_away(groups, 2, none, 1);
    assert_near(none[0], 1, 1e-12);
}

/* A node comes and goes: its share of the time away, by a simulation of exponential spans. */
static void a_node_is_away_as_long_as_a_simulation_says(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 3);
    double there = 0, away = 0, p[2];
    for (int i = 0; i < 300000; i++) {
        there += until_next(&rng, 500);
        away += until_next(&rng, 120);
    }
    hv_failure_away(&(struct hv_failure_nodes){1, 1.0 / 500, 120}, 1, p, 2);
    assert_near(p[1], away / (there + away), 1e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_long_run_is_what_a_simulation_gives),
        cmocka_unit_test(the_best_segment_is_the_best),
        cmocka_unit_test(nodes_are_away_by_themselves),
        cmocka_unit_test(a_node_is_away_as_long_as_a_simulation_says),
    };
    return cmocka_run_group_tests_name("sim_failures", tests, NULL, NULL);
}
