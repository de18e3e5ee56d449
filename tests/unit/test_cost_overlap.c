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
    struct hv_overlap o =
        hv_overlap_round_trips(2, (struct hv_round_trip){1, 3, 1, {0}, {0}}, HV_TRIP_ARRIVAL);
    near(o.exposed_s, 2);
    near(o.hidden_s, 2);
    o = hv_overlap_round_trips(1, (struct hv_round_trip){1, 3, 1, {0}, {0}}, HV_TRIP_ARRIVAL);
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
            struct hv_overlap o = hv_overlap_round_trips(
                n, (struct hv_round_trip){out / n, compute / n, back / n, {0}, {0}},
                HV_TRIP_ARRIVAL);
            assert_true(fabs(o.exposed_s - (trips_s(n, out, compute, back) - compute)) < 1e-9);
            assert_true(o.exposed_s <= before + 1e-9); /* no latency: more chunks, no slower */
            assert_true(o.exposed_s <= out + back + 1e-9);
            assert_true(fabs(o.exposed_s + o.hidden_s - out - back) < 1e-9);
            before = o.exposed_s;
            o = hv_overlap_round_trips(
                n, (struct hv_round_trip){out / n, compute / n, back / n, {0}, {0}},
                HV_TRIP_OPTSCHE);
            assert_true(fabs(o.exposed_s - before) < 1e-9); /* nothing is left to order */
        }
    }
}

/* ---- compression, two chunks, every order ---------------------------------------------------- */

enum { DEVICE_WORK = 5, LINK_WORK = 2, CHUNKS = 2 };

/* Orders of both lanes: which chunk is next. */
struct orders {
    int device[DEVICE_WORK * CHUNKS], link[LINK_WORK * CHUNKS];
};

/* End of the last piece of work; HUGE_VAL: the lanes wait for each other. Works of a chunk in turn:
 * compress, send, expand, experts, compress, send back, expand. */
static double end_of(const struct orders *o, const struct hv_round_trip *c)
{
    const double time[7] = {c->compress_s[0], c->out_s,  c->expand_s[0], c->compute_s,
                            c->compress_s[1], c->back_s, c->expand_s[1]};
    int done[CHUNKS] = {0}, at[2] = {0, 0};
    double free_s[2] = {0, 0}, ready[CHUNKS] = {0, 0}, end = 0;
    const int *lanes[2] = {o->device, o->link}, n[2] = {DEVICE_WORK * CHUNKS, LINK_WORK * CHUNKS};
    for (int left = 7 * CHUNKS; left > 0;) {
        bool moved = false;
        for (int lane = 0; lane < 2; lane++) {
            int i = at[lane] < n[lane] ? lanes[lane][at[lane]] : -1;
            if (i < 0 || done[i] > 6 || (done[i] == 1 || done[i] == 5) != (lane == 1)) {
                continue;
            }
            free_s[lane] = fmax(free_s[lane], ready[i]) + time[done[i]++];
            ready[i] = free_s[lane];
            end = fmax(end, ready[i]);
            at[lane]++;
            left--;
            moved = true;
        }
        if (!moved) {
            return HUGE_VAL;
        }
    }
    return end;
}

/* The least over all orders: bits of a mask say whose turn it is. */
static double best_order(const struct hv_round_trip *c)
{
    double best = HUGE_VAL;
    struct orders o;
    for (unsigned d = 0; d < 1u << (DEVICE_WORK * CHUNKS); d++) {
        if (__builtin_popcount(d) != DEVICE_WORK) {
            continue;
        }
        for (int i = 0; i < DEVICE_WORK * CHUNKS; i++) {
            o.device[i] = d >> i & 1;
        }
        for (unsigned l = 0; l < 1u << (LINK_WORK * CHUNKS); l++) {
            for (int i = 0; i < LINK_WORK * CHUNKS; i++) {
                o.link[i] = l >> i & 1;
            }
            best = __builtin_popcount(l) == LINK_WORK ? fmin(best, end_of(&o, c)) : best;
        }
    }
    return best;
}

static double end_under(int n, struct hv_round_trip c, enum hv_trip_order order)
{
    return n * c.compute_s + hv_overlap_round_trips(n, c, order).exposed_s;
}

/* Chunks with works of 1, 3, 1, 4, 1, 3, 1: 20 in the best order, 28 without chunks (Shi et al.
 * 2024, ScheMoE). By arrival the first result is expanded while the last chunk could have been
 * compressed: one later. */
static void test_no_order_beats_optsche(void **state)
{
    (void)state;
    const struct hv_round_trip c = {3, 4, 3, {1, 1}, {1, 1}};
    near(end_under(2, c, HV_TRIP_OPTSCHE), 20);
    near(end_under(2, c, HV_TRIP_ARRIVAL), 21);
    near(end_under(1, (struct hv_round_trip){6, 8, 6, {2, 2}, {2, 2}}, HV_TRIP_OPTSCHE), 28);
    near(best_order(&c), 20);
    struct hv_rng r;
    hv_rng_seed(&r, 7);
    for (int i = 0; i < 60; i++) {
        double send_s = seconds(&r), squeeze_s = seconds(&r);
        const struct hv_round_trip x = {
            send_s, seconds(&r), send_s, {squeeze_s, squeeze_s}, {squeeze_s, squeeze_s}};
        near(end_under(2, x, HV_TRIP_OPTSCHE), best_order(&x));
        assert_true(end_under(2, x, HV_TRIP_ARRIVAL) >= best_order(&x) - 1e-9);
    }
}

/* A ring of n equal steps whose products are handed on after all steps but the last. */
static struct hv_overlap ring(int n, double compute_s, double ahead_s, double behind_s)
{
    const struct hv_ring r = {.steps = n,
                              .first_s = compute_s,
                              .step_s = compute_s,
                              .ahead_s = ahead_s,
                              .behind_s = behind_s,
                              .behind_to = n - 1};
    return hv_overlap_ring(&r);
}

/* A hop beside each step but the last: (n - 1) max(0, hop - step) shows. */
static void test_ring_closed_form(void **state)
{
    (void)state;
    for (int n = 2; n <= 9; n++) {
        near(ring(n, 3, 2, 0).exposed_s, 0);
        near(ring(n, 3, 2, 0).hidden_s, 2 * (n - 1));
        near(ring(n, 2, 5, 0).exposed_s, 3 * (n - 1));
    }
    near(ring(1, 2, 5, 5).exposed_s, 0);
    /* by hand, 3 ranks: ahead 0-2, 2-4; behind 4-6 after the step 0-1, 6-8 after the step 2-3;
     * the last step runs 4-5: 8 in all, 3 of compute */
    near(ring(3, 1, 2, 2).exposed_s, 5);
    near(ring(3, 9, 2, 2).exposed_s, 0);
}

/* By hand: the hop before step 1 runs 0-3 beside step 0 (0-2), which waits 1 for it; its own hop
 * begins when step 0 is done and the link is free, 3-6; step 2 waits for that from 5 to 6. */
static void test_ring_steps_by_hand(void **state)
{
    (void)state;
    const struct hv_ring r = {.steps = 3, .first_s = 2, .step_s = 2, .ahead_s = 3};
    struct hv_why_step s[3];
    near(hv_overlap_ring_steps(&r, s), 0);
    const double want[3][5] = {{0, 2, 0, 0, 0}, {3, 5, 0, 3, 1}, {6, 8, 3, 6, 1}};
    for (int i = 0; i < 3; i++) {
        near(s[i].work_s, want[i][0]);
        near(s[i].done_s, want[i][1]);
        near(s[i].hop_from_s, want[i][2]);
        near(s[i].hop_to_s, want[i][3]);
        near(s[i].waited_s, want[i][4]);
        assert_false(s[i].outer);
    }
    near(hv_overlap_ring(&r).exposed_s, 2);
    /* windows of 2: step 2 needs the outer hop, which began with step 0 and takes 9 */
    const struct hv_ring nested = {
        .steps = 4, .first_s = 2, .step_s = 2, .ahead_s = 1, .window = 2, .outer_ahead_s = 9};
    struct hv_why_step w[4];
    near(hv_overlap_ring_steps(&nested, w), 0);
    assert_true(w[2].outer && !w[1].outer && !w[3].outer);
    near(w[2].hop_to_s, 9);
    near(w[2].waited_s, 5);
}

/* What steps wait, and what hops take after the last, is what the ring leaves exposed. */
static void test_ring_steps_add_up(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 11);
    for (int i = 0; i < 2000; i++) {
        int n = 1 + (int)hv_rng_below(&r, 12);
        bool nested = n % 4 == 0 && hv_rng_below(&r, 2) == 0;
        const struct hv_ring ring = {.steps = n,
                                     .first_s = seconds(&r),
                                     .step_s = seconds(&r),
                                     .ahead_s = seconds(&r),
                                     .behind_s = seconds(&r),
                                     .behind_to = n,
                                     .window = nested ? 4 : 0,
                                     .outer_ahead_s = seconds(&r),
                                     .outer_behind_s = seconds(&r)};
        struct hv_why_step s[12];
        double sum = hv_overlap_ring_steps(&ring, s), before_s = 0;
        for (int k = 0; k < n; k++) {
            assert_true(s[k].waited_s >= 0 && s[k].hop_to_s <= s[k].work_s + 1e-12);
            near(s[k].work_s, before_s + s[k].waited_s);
            before_s = s[k].done_s;
            sum += s[k].waited_s;
        }
        near(sum, hv_overlap_ring(&ring).exposed_s);
    }
}

/* Gradients of keys go n hops: the last one, back to the owner, follows the last step. */
static void test_ring_returns(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n++) {
        const struct hv_ring r = {
            .steps = n, .first_s = 9, .step_s = 9, .ahead_s = 2, .behind_s = 3, .behind_to = n};
        near(hv_overlap_ring(&r).exposed_s, 3);
        near(hv_overlap_ring(&r).hidden_s, 2 * (n - 1) + 3 * (n - 1));
    }
}

/* 8 ranks on 2 nodes of 4, hops of 64 MiB at 200 and 25 GB/s, steps of 1 ms: one ring takes
 * 7 x 2.684 + 1 ms, an inner ring of 4 with its outer hop beside a window 8 ms. */
static void test_nested_rings(void **state)
{
    (void)state;
    double mib = 1024.0 * 1024.0, in = 64 * mib / 200e6, out = 64 * mib / 25e6; /* ms */
    struct hv_ring r = {.steps = 8, .first_s = 1, .step_s = 1, .ahead_s = out};
    near(8 + hv_overlap_ring(&r).exposed_s, 7 * out + 1);
    r.ahead_s = in;
    r.window = 4;
    r.outer_ahead_s = out;
    near(8 + hv_overlap_ring(&r).exposed_s, 8);
    /* steps of 0.5 ms: the outer hop, 2.684 ms, is longer than its window of 2 ms */
    r.first_s = r.step_s = 0.5;
    near(4 + hv_overlap_ring(&r).exposed_s, out + 2);
    /* steps shorter than the inner hop */
    r.first_s = r.step_s = 0.1;
    near(0.8 + hv_overlap_ring(&r).exposed_s, out + 3 * in + 0.1);
    /* sums return inside the window, then to the other node: after long steps both are seen once */
    r.first_s = r.step_s = 10;
    r.behind_s = 2 * in;
    r.outer_behind_s = 2 * out;
    r.behind_to = 8;
    near(hv_overlap_ring(&r).exposed_s, 2 * in + 2 * out);
}

/* Hops of their own per step: only the second one is longer than the compute beside it. */
static void test_ring_of_unequal_hops(void **state)
{
    (void)state;
    const double ahead[] = {0, 1, 5, 1}, behind[] = {0, 0.5, 0.5, 0.5};
    struct hv_ring r = {.steps = 4, .first_s = 2, .step_s = 2, .ahead_of_s = ahead};
    near(hv_overlap_ring(&r).exposed_s, 3);
    r.behind_of_s = behind;
    r.behind_from = 3;
    r.behind_to = 4;
    near(hv_overlap_ring(&r).exposed_s, 3.5);
}

static void test_ring_bounds(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 6);
    for (int i = 0; i < 2000; i++) {
        int n = 2 + (int)hv_rng_below(&r, 15);
        double compute_s = seconds(&r), ahead_s = seconds(&r), behind_s = seconds(&r);
        struct hv_overlap o = ring(n, compute_s, ahead_s, behind_s);
        double sent = (n - 1) * (ahead_s + behind_s);
        assert_true(o.exposed_s >= sent - n * compute_s - 1e-9 && o.exposed_s <= sent + 1e-9);
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

/* Products in panels, worked out by hand: links of their own work side by side, the first panels
 * wait for nothing, and at most two are there before the product that needs them. */
static void test_panels(void **state)
{
    (void)state;
    static const struct {
        struct hv_panels p;
        double exposed_s;
    } rows[] = {
        /* links 1 and 2, products 3: the first panel, then products alone: 2 + 4 x 3 */
        {{4, 3, {1, 2}, {0, 0}, false}, 2},
        /* on one link 3 a step: as fast as products */
        {{4, 3, {1, 2}, {0, 0}, true}, 3},
        /* panels of 5: the link works all the time, the last product comes behind: 4 x 5 + 3 */
        {{4, 3, {5, 2}, {0, 0}, false}, 23 - 12},
        {{4, 3, {5, 2}, {0, 0}, true}, 31 - 12},
        /* sums behind products of 3: the last one is exposed */
        {{4, 3, {0, 2}, {1, 0}, false}, 3},
        /* sums of 5: the first starts at 2 + 3, and all follow */
        {{4, 3, {0, 2}, {5, 0}, false}, 25 - 12},
        /* one step: nothing is beside anything */
        {{1, 3, {1, 2}, {1, 1}, true}, 5},
        {{1, 3, {1, 2}, {1, 1}, false}, 3},
        /* no compute: a link is busy with everything it carries */
        {{4, 0, {1, 2}, {0, 1}, true}, 16},
        {{4, 0, {0, 0}, {0, 0}, true}, 0},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        near(hv_overlap_panels(&rows[i].p).exposed_s, rows[i].exposed_s);
    }
}

/* More links, faster links and fewer panels never take longer. */
static void test_panels_are_monotonic(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 11);
    for (int i = 0; i < 2000; i++) {
        struct hv_panels p = {1 + (int)hv_rng_below(&r, 8),
                              seconds(&r),
                              {seconds(&r), seconds(&r)},
                              {seconds(&r), seconds(&r)},
                              true};
        double one = hv_overlap_panels(&p).exposed_s;
        double sum = p.steps * (p.before_s[0] + p.before_s[1] + p.after_s[0] + p.after_s[1]);
        assert_true(one <= sum + 1e-9);
        assert_true(one >= sum - p.steps * p.step_s - 1e-9);
        p.one_link = false;
        double two = hv_overlap_panels(&p).exposed_s;
        assert_true(two <= one + 1e-9);
        p.before_s[hv_rng_below(&r, 2)] *= 0.5;
        assert_true(hv_overlap_panels(&p).exposed_s <= two + 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_chunks_by_hand),
        cmocka_unit_test(test_chunks_follow_the_longest_path),
        cmocka_unit_test(test_no_order_beats_optsche),
        cmocka_unit_test(test_ring_closed_form),
        cmocka_unit_test(test_ring_steps_by_hand),
        cmocka_unit_test(test_ring_steps_add_up),
        cmocka_unit_test(test_ring_returns),
        cmocka_unit_test(test_nested_rings),
        cmocka_unit_test(test_ring_of_unequal_hops),
        cmocka_unit_test(test_ring_bounds),
        cmocka_unit_test(test_units_closed_form),
        cmocka_unit_test(test_units_follow_the_recurrence),
        cmocka_unit_test(test_runs_are_units),
        cmocka_unit_test(test_panels),
        cmocka_unit_test(test_panels_are_monotonic),
    };
    return cmocka_run_group_tests_name("cost_overlap", tests, NULL, NULL);
}
