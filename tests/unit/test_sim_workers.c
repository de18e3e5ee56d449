/* Workers at their own pace: by hand, by closed forms, and against a walk tick by tick. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/sim/events/workers_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR(a, b) assert_true(fabs((a) - (double)(b)) <= 1e-9 * (1 + fabs((double)(b))))

/* HetPipe's virtual workers of 2 and 3 seconds, no hops. D = 0: in step, a wave every 3 seconds,
 * the fast one waits a third. D = 1: after the first waves the fast one is one clock ahead and
 * waits as long. Nobody waits: each at its own pace. */
static void waves_by_hand(void **state)
{
    (void)state;
    static const double period_s[] = {2, 3};
    struct hv_arena a = {0};
    struct hv_workers_run run;
    struct hv_workers w = {.kind = HV_WORKERS_WSP, .n = 2, .period_s = period_s, .horizon_s = 600};
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    assert_int_equal(run.clocks[0], 200);
    NEAR(run.end_s[0], 599);
    NEAR(run.rate_per_s[0], 1.0 / 3);
    NEAR(run.wait_frac[0], 1.0 / 3);
    NEAR(run.wait_frac[1], 0);
    w.staleness = 1; /* ends 2, 4, then 3 + 2, 6 + 2, …: 3k - 1 */
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    assert_int_equal(run.clocks[0], 201);
    NEAR(run.end_s[0], 599);
    assert_int_equal(run.staleness[0], 2); /* the first clocks */
    assert_int_equal(run.staleness[2], 0);
    w.staleness = -1;
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    assert_int_equal(run.clocks[0], 300);
    NEAR(run.sum_per_s, 1.0 / 2 + 1.0 / 3);
    hv_arena_free(&a);
}

/* pushes of 1 second each way: with D = 0 a wave ends 2 + 3 seconds after the one before; with D =
 * 1 they hide behind the next wave */
static void hops_hide_behind_waves(void **state)
{
    (void)state;
    static const double period_s[] = {2, 3}, hop_s[] = {1, 1};
    struct hv_arena a = {0};
    struct hv_workers_run run;
    struct hv_workers w = {
        .kind = HV_WORKERS_WSP, .n = 2, .period_s = period_s, .hop_s = hop_s, .horizon_s = 1000};
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    NEAR(run.rate_per_s[1], 1.0 / 5);
    w.staleness = 1;
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    assert_true(fabs(run.rate_per_s[1] - 1.0 / 3) < 3e-3);
    w.kind = HV_WORKERS_PS; /* waits for both hops after every clock */
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    assert_true(fabs(run.rate_per_s[1] - 1.0 / 5) < 3e-3);
    hv_arena_free(&a);
}

enum { N = 5, CLOCKS = 400 };

/* the same tick by tick: in every second pushes arrive first, then work ends, then whoever may
 * begins. Shares nothing with the program but the rules */
static void tick_by_tick(const struct hv_workers *w, int64_t *clocks, double *last)
{
    int64_t left[N], pulled[N], push_at[N][CLOCKS], n_end[N] = {0}, n_push[N] = {0}, passed[CLOCKS];
    bool works[N] = {false};
    int64_t slowest = 0;
    memset(passed, 0, sizeof passed);
    memset(pulled, 0, sizeof pulled);
    for (int64_t t = 0; (double)t <= w->horizon_s; t++) {
        for (size_t i = 0; i < w->n; i++) {
            while (n_push[i] < n_end[i] && push_at[i][n_push[i]] == t) {
                n_push[i]++;
                pulled[i] = t + (int64_t)w->hop_s[i];
            }
            if (works[i] && --left[i] == 0) {
                works[i] = false;
                last[i] = (double)t;
                push_at[i][n_end[i]++] = t + (int64_t)w->hop_s[i];
            }
        }
        for (size_t i = 0; i < w->n; i++) { /* a push without a hop */
            while (n_push[i] < n_end[i] && push_at[i][n_push[i]] == t) {
                n_push[i]++;
                pulled[i] = t + (int64_t)w->hop_s[i];
            }
        }
        for (bool all = true; all;) {
            for (size_t i = 0; i < w->n; i++) {
                all = all && n_push[i] > slowest;
            }
            if (all) {
                passed[++slowest] = t;
            }
        }
        for (size_t i = 0; i < w->n; i++) {
            int64_t must = w->staleness < 0 ? 0 : n_end[i] - w->staleness;
            bool may = !works[i] && must <= slowest;
            may = may && (must <= 0 || passed[must] + (int64_t)w->hop_s[i] <= t);
            if (w->kind == HV_WORKERS_PS && n_end[i] > 0) {
                may = may && n_push[i] == n_end[i] && pulled[i] <= t;
            }
            if (may) {
                works[i] = true;
                left[i] = (int64_t)w->period_s[i];
            }
        }
    }
    memcpy(clocks, n_end, w->n * sizeof *clocks);
}

static void as_tick_by_tick(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 3);
    for (int round = 0; round < 2000; round++) {
        double period_s[N], hop_s[N], last[N] = {0};
        int64_t clocks[N];
        struct hv_arena a = {0};
        struct hv_workers_run run;
        struct hv_workers w = {.kind = round % 2 ? HV_WORKERS_PS : HV_WORKERS_WSP,
                               .n = 1 + (size_t)hv_rng_below(&r, N),
                               .period_s = period_s,
                               .hop_s = hop_s,
                               .staleness = (int64_t)hv_rng_below(&r, 6) - 1,
                               .horizon_s = (double)hv_rng_below(&r, CLOCKS - 1)};
        for (size_t i = 0; i < N; i++) {
            period_s[i] = (double)(1 + hv_rng_below(&r, 9));
            hop_s[i] = (double)hv_rng_below(&r, 5);
        }
        tick_by_tick(&w, clocks, last);
        assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
        for (size_t i = 0; i < w.n; i++) {
            assert_int_equal(run.clocks[i], clocks[i]);
            NEAR(run.end_s[i], last[i]);
        }
        hv_arena_free(&a);
    }
}

/* rows of the mixing matrix add up to 1, and so do columns; groups of all are averages of all,
 * which is a barrier; gossip waits for nobody */
static void mixing(void **state)
{
    (void)state;
    static const double period_s[] = {1, 2, 3, 4};
    struct hv_arena a = {0};
    struct hv_workers_run run;
    struct hv_workers w = {.n = 4, .period_s = period_s, .horizon_s = 4800, .seed = 7};
    for (size_t group = 1; group <= 5; group++) {
        w.kind = group < 5 ? HV_WORKERS_PARTIAL : HV_WORKERS_GOSSIP;
        w.group = group;
        assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
        for (size_t i = 0; i < 4; i++) {
            double row = 0, column = 0;
            for (size_t k = 0; k < 4; k++) {
                row += run.mixing[i * 4 + k];
                column += run.mixing[k * 4 + i];
                assert_true(run.mixing[i * 4 + k] >= 0);
            }
            NEAR(row, 1);
            NEAR(column, 1);
            if (group == 4) {
                NEAR(run.mixing[i], 0.25);
                NEAR(run.rate_per_s[i], 0.25);
                NEAR(run.wait_frac[i], (4 - period_s[i]) / 4);
            }
            if (group == 1 || group == 5) {
                NEAR(run.rate_per_s[i], 1 / period_s[i]);
            }
        }
    }
    static const double only_next[] = {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0};
    w.weights = only_next;
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    NEAR(run.mixing[2], 0); /* 0 and 2 never meet */
    assert_true(run.mixing[1] > 0 && run.mixing[3] > 0);
    hv_arena_free(&a);
}

/* the catalogue's cases: 4 workers of 1, 1, 2 and 2 seconds freeze into two pairs, unless the
 * controller joins components: {1,2}@1, {1,2}@2, {3,4}@2, {1,3}@4, {2,4}@4 */
static void partial_reduce_keeps_workers_connected(void **state)
{
    (void)state;
    static const double period_s[] = {1, 1, 2, 2};
    static const struct {
        double at_s;
        size_t members[2];
    } want[] = {{1, {0, 1}}, {2, {0, 1}}, {2, {2, 3}}, {4, {0, 2}}, {4, {1, 3}}};
    struct hv_arena a = {0};
    struct hv_workers_run run;
    struct hv_workers w = {.kind = HV_WORKERS_PARTIAL,
                           .n = 4,
                           .period_s = period_s,
                           .group = 2,
                           .horizon_s = 400,
                           .keep = 5};
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    NEAR(hv_workers_mixing_rho(run.mixing, 4), 1);
    w.connect = true;
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    assert_true(hv_workers_mixing_rho(run.mixing, 4) < 0.99);
    assert_int_equal(run.n_groups, 5);
    for (size_t i = 0; i < 5; i++) {
        NEAR(run.groups[i].end_s, want[i].at_s);
        assert_int_equal(run.groups[i].members[0], want[i].members[0]);
        assert_int_equal(run.groups[i].members[1], want[i].members[1]);
    }
    hv_arena_free(&a);
}

/* Three workers of 1, 1 and 2 s that would all average together, and go on without the third after
 * half a second; by hand: {1,2}@1.5 and 0.45 s from then on, {3}@2.45, {1,2}@2.905, {1,2}@4.2695.
 * Where less than two double the wait, {3} makes it 0.9 s: {1,2}@3.4 and all at 4.45. */
static void partial_reduce_goes_on_without_the_late(void **state)
{
    (void)state;
    static const double period_s[] = {1, 1, 2};
    static const double want[2][4] = {{1.5, 2.45, 2.905, 4.2695}, {1.5, 2.45, 3.4, 4.45}};
    static const size_t members[2][4] = {{2, 1, 2, 2}, {2, 1, 2, 3}};
    struct hv_arena a = {0};
    struct hv_workers_run run;
    struct hv_workers w = {.kind = HV_WORKERS_PARTIAL,
                           .n = 3,
                           .period_s = period_s,
                           .group = 3,
                           .horizon_s = 40,
                           .keep = 4,
                           .wait_s = 0.5,
                           .wait_most_s = 10};
    for (int k = 0; k < 2; k++) {
        w.least = k == 0 ? 0 : 2;
        w.connect = k == 1; /* groups that are late may be of one component */
        assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
        for (size_t g = 0; g < 4; g++) {
            NEAR(run.groups[g].end_s, want[k][g]);
            assert_int_equal(run.groups[g].n, members[k][g]);
        }
        assert_true(run.mean_group > 1 && run.mean_group < 3);
    }
    w.wait_most_s = 0.4; /* less than the first wait */
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_EUSAGE);
    hv_arena_free(&a);
}

/* Steps of 1, 1 and 4 s in pairs, nobody more than one step ahead of the slowest: by hand the first
 * groups are ready at 1, 2, 5, 9, 10 and 14 s, the third of worker 2 and 0. Without a bound pairs
 * of the fast ones never wait. */
static void partial_reduce_waits_for_the_slowest(void **state)
{
    (void)state;
    static const double period_s[] = {1, 1, 4}, want_s[] = {1, 2, 5, 9, 10, 14};
    struct hv_arena a = {0};
    struct hv_workers w = {.kind = HV_WORKERS_PARTIAL,
                           .n = 3,
                           .period_s = period_s,
                           .group = 2,
                           .keep = 6,
                           .staleness = 1,
                           .horizon_s = 400};
    struct hv_workers_run run;
    struct hv_err err = {0};
    assert_int_equal(hv_workers_run(&a, &w, &run, &err), HV_OK);
    for (size_t i = 0; i < 6; i++) {
        assert_true(run.groups[i].start_s == want_s[i]);
    }
    assert_int_equal(run.groups[2].members[0], 2);
    assert_int_equal(run.groups[2].members[1], 0);
    int64_t most = run.clocks[0] > run.clocks[1] ? run.clocks[0] : run.clocks[1];
    assert_true(most - run.clocks[2] <= 2); /* one ahead, and the step it does */
    assert_true(run.wait_frac[0] > 0.5);
    w.staleness = 0;
    assert_int_equal(hv_workers_run(&a, &w, &run, &err), HV_OK);
    assert_true(run.clocks[0] > 2 * run.clocks[2]);
    /* the bound may be wide enough never to matter */
    w.staleness = 1000;
    struct hv_workers_run wide;
    assert_int_equal(hv_workers_run(&a, &w, &wide, &err), HV_OK);
    assert_int_equal(wide.clocks[0], run.clocks[0]);
    hv_arena_free(&a);
}

/* 3 workers of 1, 1 and 2 seconds in pairs: {1,2}@1, {1,2}@2, {3,1}@3, {2,1}@4, …: two gradients a
 * second against 1.5 of all-reduce, and rho = (1 + sqrt(1/3)) / 2 in the long run */
static void partial_reduce_mixes_as_its_eigenvalue_says(void **state)
{
    (void)state;
    static const double period_s[] = {1, 1, 2};
    struct hv_arena a = {0};
    struct hv_workers_run run;
    struct hv_workers w = {
        .kind = HV_WORKERS_PARTIAL, .n = 3, .period_s = period_s, .group = 2, .horizon_s = 6000};
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    assert_true(fabs(run.sum_per_s - 2) < 2e-3);
    assert_true(fabs(hv_workers_mixing_rho(run.mixing, 3) - (1 + sqrt(1.0 / 3)) / 2) < 1e-3);
    static const double even[] = {2.0 / 3, 1.0 / 6, 1.0 / 6, 1.0 / 6, 2.0 / 3,
                                  1.0 / 6, 1.0 / 6, 1.0 / 6, 2.0 / 3};
    NEAR(hv_workers_mixing_rho(even, 3), 0.5); /* 1 - (P - 1)/(N - 1) */
    static const double uneven[] = {0.625, 0.25, 0.125, 0.25, 0.625, 0.125, 0.125, 0.125, 0.75};
    NEAR(hv_workers_mixing_rho(uneven, 3), 0.625);
    static const double all[] = {0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25,
                                 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25};
    NEAR(hv_workers_mixing_rho(all, 4), 0);
    hv_arena_free(&a);
}

/* One second alone, on the link that ctx tells for the first member. */
static double shared_s(void *ctx, const size_t *members, size_t n, struct hv_workers_links *links)
{
    const struct hv_workers_link *of = ctx;
    (void)n;
    if (links != NULL) {
        *links = (struct hv_workers_links){&of[members[0]], 1};
    }
    return 1;
}

/* Pairs of four workers of a second: two exchanges at a time. On one link both take two seconds; on
 * links of their own, or where each needs half of the link, one. */
static void exchanges_share_links(void **state)
{
    (void)state;
    static const double period_s[] = {1, 1, 1, 1};
    static struct hv_workers_link one[] = {{0, 1}, {0, 1}, {0, 1}, {0, 1}};
    static struct hv_workers_link own[] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}};
    static struct hv_workers_link half[] = {{0, 0.5}, {0, 0.5}, {0, 0.5}, {0, 0.5}};
    struct hv_arena a = {0};
    struct hv_workers_run run;
    struct hv_workers w = {.kind = HV_WORKERS_PARTIAL,
                           .n = 4,
                           .period_s = period_s,
                           .group = 2,
                           .exchange_s = shared_s,
                           .ctx = one,
                           .keep = 3,
                           .horizon_s = 600};
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    NEAR(run.rate_per_s[0], 1.0 / 2);
    w.n_links = 4;
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    NEAR(run.rate_per_s[0], 1.0 / 3);
    NEAR(run.rate_per_s[3], 1.0 / 3);
    NEAR(run.mean_exchange_s, 2);
    NEAR(run.groups[0].start_s, 1);
    NEAR(run.groups[0].end_s, 3);
    w.ctx = own;
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    NEAR(run.rate_per_s[0], 1.0 / 2);
    NEAR(run.mean_exchange_s, 1);
    w.ctx = half;
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    NEAR(run.rate_per_s[0], 1.0 / 2);
    hv_arena_free(&a);
}

/* Gossip of 1 and 1.5 seconds on one link: the first exchange is alone until 1.5, then both go at
 * half speed until 2.5, when the second has half of its second left. */
static void gossip_shares_links(void **state)
{
    (void)state;
    static const double period_s[] = {1, 1.5};
    static struct hv_workers_link one[] = {{0, 1}, {0, 1}};
    struct hv_arena a = {0};
    struct hv_workers_run run;
    struct hv_workers w = {.kind = HV_WORKERS_GOSSIP,
                           .n = 2,
                           .period_s = period_s,
                           .exchange_s = shared_s,
                           .ctx = one,
                           .n_links = 1,
                           .horizon_s = 3.4};
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    NEAR(run.mean_exchange_s, 1.5); /* 1 to 2.5, 1.5 to 3 */
    w.horizon_s = 4.6;
    assert_int_equal(hv_workers_run(&a, &w, &run, NULL), HV_OK);
    assert_int_equal(run.clocks[0], 2);
    assert_int_equal(run.clocks[1], 2);
    NEAR(run.end_s[0], 3.5);
    NEAR(run.end_s[1], 4.5);
    hv_arena_free(&a);
}

/* Random exchanges against small steps of time: what ends when. */
static void exchanges_end_as_in_small_steps(void **state)
{
    (void)state;
    enum { SOME = 6, LINKS = 3 };
    struct hv_rng r;
    hv_rng_seed(&r, 5);
    for (int round = 0; round < 40; round++) {
        struct hv_workers_link of[SOME][2];
        double left[SOME], end[SOME] = {0}, load[LINKS], step = 1e-4;
        struct hv__exchanges x = {.load = load, .n_links = LINKS};
        for (size_t i = 0; i < SOME; i++) {
            size_t first = hv_rng_below(&r, LINKS);
            of[i][0] = (struct hv_workers_link){first, 0.25 * (double)(1 + hv_rng_below(&r, 4))};
            of[i][1] = (struct hv_workers_link){(first + 1) % LINKS, 0.5};
            left[i] = 0.2 + hv_rng_double(&r);
            const struct hv__exchange e = {
                .left_s = left[i], .links = {of[i], 2}, .members = &i, .waited_s = left, .n = 1};
            hv__exchanges_add(&x, 0, &e);
        }
        for (double t = 0, some = 1; some > 0; t += step) {
            double sum[LINKS] = {0};
            some = 0;
            for (size_t i = 0; i < SOME; i++) {
                for (int k = 0; k < 2 && left[i] > 0; k++) {
                    sum[of[i][k].link] += of[i][k].share;
                }
            }
            for (size_t i = 0; i < SOME; i++) {
                if (left[i] > 0) {
                    double most = fmax(1, fmax(sum[of[i][0].link], sum[of[i][1].link]));
                    left[i] -= step / most;
                    end[i] = t + step;
                    some = 1;
                }
            }
        }
        struct hv__exchange e;
        for (double now; (now = hv__exchanges_next(&x)) < HUGE_VAL;) {
            while (hv__exchanges_take(&x, now, &e)) {
                assert_true(fabs(end[e.members[0]] - now) < 2e-3);
                free(e.room);
            }
        }
        hv__exchanges_free(&x);
    }
}

/* One group of three workers by hand: weights 2/3 and 1/3 leave J W = (2, 1, -3) times rows of 2/9,
 * 2/9 and -4/9, whose squares add up to 84/81: a frozen pair draws away from the third. Members
 * that are level have equal weights, and all workers together agree whatever the weights. */
static void weights_mix_as_their_squares_say(void **state)
{
    (void)state;
    const size_t all[] = {0, 1, 2};
    const int64_t behind[] = {0, 1, 3}, level[] = {2, 2, 2};
    double m[9] = {0}, equal[9] = {0}, weighted[9] = {0};
    hv__mix(m, 3, all, behind, 2, 0.5);
    hv__mix_end(m, 3, 1, 0.5);
    NEAR(hv_workers_mixing_rho(m, 3), 84.0 / 81);
    hv__mix(equal, 3, all, level, 2, 0);
    hv__mix(equal, 3, all + 1, level, 2, 0);
    hv__mix_end(equal, 3, 2, 0);
    hv__mix(weighted, 3, all, level, 2, 0.5);
    hv__mix(weighted, 3, all + 1, level, 2, 0.5);
    hv__mix_end(weighted, 3, 2, 0.5);
    for (int i = 0; i < 9; i++) {
        NEAR(weighted[i], equal[i]);
    }
    memset(m, 0, sizeof m);
    hv__mix(m, 3, all, behind, 3, 0.5);
    hv__mix_end(m, 3, 1, 0.5);
    NEAR(hv_workers_mixing_rho(m, 3), 0);
}

static void bad_numbers(void **state)
{
    (void)state;
    double period_s[] = {1, 0};
    struct hv_arena a = {0};
    struct hv_workers_run run;
    struct hv_err err;
    struct hv_workers w = {.kind = HV_WORKERS_PS, .n = 2, .period_s = period_s, .horizon_s = 1};
    assert_int_equal(hv_workers_run(&a, &w, &run, &err), HV_EUSAGE);
    period_s[1] = 1e-9;
    assert_int_equal(hv_workers_run(&a, &w, &run, &err), HV_ELIMIT);
    period_s[1] = 1;
    w.kind = HV_WORKERS_PARTIAL;
    assert_int_equal(hv_workers_run(&a, &w, &run, &err), HV_EUSAGE);
    hv_arena_free(&a);
}

/** A ring of n that averages with both neighbours: eigenvalues (1 + 2 cos 2πk/n)/3, the second
 * twice; and a mean of all: none but 1. */
static void rings_mix_as_their_eigenvalues_say(void **state)
{
    (void)state;
    for (size_t n = 3; n <= 300; n += 33) {
        double *m = calloc(n * n, sizeof *m);
        assert_non_null(m);
        for (size_t i = 0; i < n; i++) {
            m[i * n + i] += 1.0 / 3;
            m[i * n + (i + 1) % n] += 1.0 / 3;
            m[(i + 1) % n * n + i] += 1.0 / 3;
        }
        double want = fmax(0, (1 + 2 * cos(8 * atan(1) / (double)n)) / 3);
        assert_true(fabs(hv_workers_mixing_rho(m, n) - want) < 1e-12);
        for (size_t i = 0; i < n * n; i++) {
            m[i] = 1 / (double)n;
        }
        assert_true(hv_workers_mixing_rho(m, n) < 1e-12);
        free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_mix_as_their_eigenvalues_say),
        cmocka_unit_test(waves_by_hand),
        cmocka_unit_test(hops_hide_behind_waves),
        cmocka_unit_test(as_tick_by_tick),
        cmocka_unit_test(mixing),
        cmocka_unit_test(partial_reduce_keeps_workers_connected),
        cmocka_unit_test(partial_reduce_goes_on_without_the_late),
        cmocka_unit_test(partial_reduce_waits_for_the_slowest),
        cmocka_unit_test(partial_reduce_mixes_as_its_eigenvalue_says),
        cmocka_unit_test(bad_numbers),
        cmocka_unit_test(exchanges_share_links),
        cmocka_unit_test(gossip_shares_links),
        cmocka_unit_test(exchanges_end_as_in_small_steps),
        cmocka_unit_test(weights_mix_as_their_squares_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
