/* Lanes and steps: every question against a plain walk over all spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/sim/lanes/lanes.h"
#include <math.h>
#include <string.h>

/* one window by itself */
static struct hv_cover cover_of(const struct hv_lane *lane, double t0_s, double t1_s)
{
    struct hv_cover c;
    hv_lane_columns(lane, (const double[]){t0_s, t1_s}, 1, &c);
    return c;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

enum { MAX_SPANS = 700 };

static size_t random_spans(struct hv_span *spans, struct hv_rng *r)
{
    size_t n = (size_t)hv_rng_below(r, MAX_SPANS);
    double t = 0;
    for (size_t i = 0; i < n; i++) {
        t += hv_rng_below(r, 2) ? (double)hv_rng_below(r, 5) : 0;
        double end = t + 0.5 * (double)(1 + hv_rng_below(r, 9));
        spans[i] = (struct hv_span){
            .start_s = t, .end_s = end, .id = (int32_t)i, .kind = (uint8_t)hv_rng_below(r, 4)};
        t = end;
    }
    return n;
}

/* the same by walking over everything */
static struct hv_cover naive(const struct hv_span *spans, size_t n, double t0, double t1)
{
    struct hv_cover c = {.kind = -1, .i_span = -1};
    double busy[HV_SPAN_KINDS] = {0}, all = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        double part = fmin(spans[i].end_s, t1) - fmax(spans[i].start_s, t0);
        if (part > 0) {
            c.n_spans++;
            busy[spans[i].kind] += part;
            all += part;
            if (part > most) {
                most = part;
                c.i_span = (int32_t)i;
            }
        }
    }
    for (int k = 0; k < HV_SPAN_KINDS; k++) {
        if (busy[k] > 0 && (c.kind < 0 || busy[k] > busy[c.kind])) {
            c.kind = k;
        }
    }
    c.busy_frac = all / (t1 - t0);
    c.kind_frac = c.kind < 0 ? 0 : busy[c.kind] / (t1 - t0);
    return c;
}

static void check_points(const struct hv_lane *l, const struct hv_span *spans, size_t n, double t)
{
    int32_t at = -1, next = -1, prev = -1;
    for (size_t i = 0; i < n; i++) {
        at = spans[i].start_s <= t && t < spans[i].end_s ? (int32_t)i : at;
        next = next < 0 && spans[i].start_s > t ? (int32_t)i : next;
        prev = spans[i].start_s < t ? (int32_t)i : prev;
    }
    assert_int_equal(hv_lane_at(l, t), at);
    assert_int_equal(hv_lane_next(l, t), next);
    assert_int_equal(hv_lane_prev(l, t), prev);
}

static void lanes_as_naive(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 5);
    static struct hv_span spans[MAX_SPANS];
    for (int round = 0; round < 40; round++) {
        struct hv_arena a = {0};
        struct hv_lanes t = {0};
        size_t n = random_spans(spans, &r);
        struct hv_lane lane = {.name = "x", .spans = spans, .n_spans = n};
        assert_int_equal(hv_lanes_add(&a, &t, &lane, NULL), HV_OK);
        double end = n ? spans[n - 1].end_s + 2 : 2;
        assert_true(is_near(t.end_s, n ? end - 2 : 0));
        for (int k = 0; k < 100; k++) {
            double t0 = floor(hv_rng_double(&r) * end * 4) / 4;
            double t1 = t0 + 0.25 + floor(hv_rng_double(&r) * (end - t0) * 4) / 4;
            struct hv_cover got = cover_of(&t.items[0], t0, t1);
            struct hv_cover want = naive(spans, n, t0, t1);
            assert_true(is_near(got.busy_frac, want.busy_frac));
            assert_int_equal(got.kind, want.kind);
            assert_true(is_near(got.kind_frac, want.kind_frac));
            assert_int_equal(got.i_span, want.i_span);
            assert_int_equal(got.n_spans, want.n_spans);
            check_points(&t.items[0], spans, n, t0);
        }
        hv_arena_free(&a);
    }
}

/* busy time by kind of windows side by side: as walking over everything */
static void busy_as_naive(void **state)
{
    (void)state;
    enum { MOST = 150 };
    struct hv_rng r;
    hv_rng_seed(&r, 7);
    static struct hv_span spans[MAX_SPANS];
    double at_s[MOST + 1], got[MOST * HV_SPAN_KINDS];
    for (int round = 0; round < 100; round++) {
        struct hv_arena a = {0};
        struct hv_lanes t = {0};
        size_t n = random_spans(spans, &r), windows = (size_t)hv_rng_below(&r, MOST + 1);
        struct hv_lane lane = {.name = "x", .spans = spans, .n_spans = n};
        assert_int_equal(hv_lanes_add(&a, &t, &lane, NULL), HV_OK);
        at_s[0] = hv_rng_below(&r, 2) ? -3 : floor(t.end_s * hv_rng_double(&r));
        for (size_t i = 0; i < windows; i++) {
            at_s[i + 1] = at_s[i] + 1e-3 + t.end_s * hv_rng_double(&r) / (double)windows;
        }
        const struct hv_lane *l = &t.items[0];
        hv_lane_busy(l, at_s, windows, got);
        for (size_t i = 0; i < windows; i++) {
            for (size_t k = 0; k < l->n_kinds; k++) {
                double want = 0;
                for (size_t j = 0; j < n; j++) {
                    double part =
                        fmin(spans[j].end_s, at_s[i + 1]) - fmax(spans[j].start_s, at_s[i]);
                    want += spans[j].kind == l->kinds[k] ? fmax(0, part) : 0;
                }
                assert_true(is_near(got[i * l->n_kinds + k], want));
            }
        }
        hv_arena_free(&a);
    }
}

/* windows side by side, narrow and wide ones, some of no width, over spans of which some have no
 * length: as each by itself */
static void columns_as_one_by_one(void **state)
{
    (void)state;
    enum { MOST = 200 };
    struct hv_rng r;
    hv_rng_seed(&r, 6);
    static struct hv_span spans[MAX_SPANS];
    double at_s[MOST + 1];
    static struct hv_cover got[MOST];
    for (int round = 0; round < 200; round++) {
        struct hv_arena a = {0};
        struct hv_lanes t = {0};
        size_t n = random_spans(spans, &r), columns = (size_t)hv_rng_below(&r, MOST + 1);
        for (size_t i = 0; i < n && round % 2; i++) {
            spans[i].end_s = hv_rng_below(&r, 3) ? spans[i].end_s : spans[i].start_s;
        }
        struct hv_lane lane = {.name = "x", .spans = spans, .n_spans = n};
        assert_int_equal(hv_lanes_add(&a, &t, &lane, NULL), HV_OK);
        double width = t.end_s * hv_rng_double(&r) / (double)(columns + 1);
        at_s[0] = hv_rng_below(&r, 2) ? -width : floor(t.end_s * hv_rng_double(&r));
        for (size_t i = 0; i < columns; i++) {
            at_s[i + 1] = at_s[i] + (hv_rng_below(&r, 2) ? width : floor(width * 2) / 2);
        }
        hv_lane_columns(&t.items[0], at_s, columns, got);
        for (size_t i = 0; i < columns; i++) {
            struct hv_cover want = cover_of(&t.items[0], at_s[i], at_s[i + 1]);
            assert_memory_equal(&got[i], &want, sizeof want);
        }
        hv_arena_free(&a);
    }
}

static void bad_lanes(void **state)
{
    (void)state;
    static const struct hv_span overlap[] = {{.end_s = 2}, {.start_s = 1, .end_s = 3, .id = 1}};
    static const struct hv_span back[] = {{.start_s = 2, .end_s = 1}};
    static const struct hv_span kind[] = {{.end_s = 1, .kind = HV_SPAN_KINDS}};
    struct hv_lane lanes[] = {{.name = "o", .spans = overlap, .n_spans = 2},
                              {.name = "b", .spans = back, .n_spans = 1},
                              {.name = "k", .spans = kind, .n_spans = 1}};
    for (size_t i = 0; i < HV_COUNT(lanes); i++) {
        struct hv_arena a = {0};
        struct hv_lanes t = {0};
        struct hv_err err = {0};
        assert_int_equal(hv_lanes_add(&a, &t, &lanes[i], &err), HV_EUSAGE);
        assert_int_equal(t.n, 0);
        hv_arena_free(&a);
    }
}

static void steps_as_naive(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 9);
    static struct hv_memory_step steps[MAX_SPANS];
    for (int round = 0; round < 40; round++) {
        struct hv_arena a = {0};
        struct hv_steps s;
        size_t n = (size_t)hv_rng_below(&r, MAX_SPANS);
        for (size_t i = 0; i < n; i++) {
            steps[i] = (struct hv_memory_step){(double)i * 2 + 1, (double)hv_rng_below(&r, 1000)};
        }
        assert_int_equal(hv_steps_make(&a, steps, n, &s, NULL), HV_OK);
        for (int k = 0; k < 100; k++) {
            double t0 = floor(hv_rng_double(&r) * (double)(2 * n + 2));
            double t1 = t0 + 1 + floor(hv_rng_double(&r) * (double)(2 * n + 2));
            double at = 0, most;
            for (size_t i = 0; i < n && steps[i].at_s <= t0; i++) {
                at = steps[i].bytes;
            }
            most = at;
            for (size_t i = 0; i < n; i++) {
                if (steps[i].at_s >= t0 && steps[i].at_s < t1) {
                    most = fmax(most, steps[i].bytes);
                }
            }
            assert_true(is_near(hv_steps_at(&s, t0), at));
            assert_true(is_near(hv_steps_max(&s, t0, t1), most));
        }
        hv_arena_free(&a);
    }
    static const struct hv_memory_step back[] = {{2, 0}, {1, 0}};
    struct hv_arena a = {0};
    struct hv_steps s;
    assert_int_equal(hv_steps_make(&a, back, 2, &s, NULL), HV_EUSAGE);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_as_naive),        cmocka_unit_test(busy_as_naive),
        cmocka_unit_test(columns_as_one_by_one), cmocka_unit_test(bad_lanes),
        cmocka_unit_test(steps_as_naive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
