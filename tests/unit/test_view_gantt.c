/* Gantt painter: golden text of a hand-made schedule, and the window's functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "ui/view/gantt/timeline.h"

/* A lane of a timeline held in arrays. Spans are sorted and do not overlap. */
struct array_lane {
    struct hv_gantt_lane lane;
    const struct hv_gantt_span *spans;
    size_t n_spans;
};
struct array {
    const struct array_lane *lanes;
    size_t n_lanes;
};

static const struct array_lane *lane_of(const void *ctx, size_t lane)
{
    const struct array *a = ctx;
    return &a->lanes[lane];
}

/* Index of the first span that starts after t. */
static size_t upper(const struct array_lane *l, double t)
{
    size_t lo = 0, hi = l->n_spans;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->spans[mid].start_s > t) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return lo;
}

static void get_lane(const void *ctx, size_t lane, struct hv_gantt_lane *out)
{
    *out = lane_of(ctx, lane)->lane;
}

static void get_cover(const struct array_lane *l, double t0_s, double t1_s,
                      struct hv_gantt_cover *out)
{
    size_t i = upper(l, t0_s);
    double busy = 0, most = -1;
    *out = (struct hv_gantt_cover){0};
    for (i = i > 0 ? i - 1 : 0; i < l->n_spans && l->spans[i].start_s < t1_s; i++) {
        double part = fmin(l->spans[i].end_s, t1_s) - fmax(l->spans[i].start_s, t0_s);
        if (part <= 0) {
            continue;
        }
        busy += part;
        out->n_spans++;
        if (part > most) {
            most = part;
            out->span = l->spans[i];
        }
    }
    out->busy_frac = t1_s > t0_s ? busy / (t1_s - t0_s) : 0;
}

static void get_columns(const void *ctx, size_t lane, const double *at_s, size_t n,
                        struct hv_gantt_cover *out)
{
    for (size_t i = 0; i < n; i++) {
        get_cover(lane_of(ctx, lane), at_s[i], at_s[i + 1], &out[i]);
    }
}

static void get_shares(const void *ctx, size_t lane, const double *at_s, size_t n, double *out)
{
    const struct array_lane *l = lane_of(ctx, lane);
    memset(out, 0, n * HV_GANTT_KIND_N * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < l->n_spans; k++) {
            double part = fmin(l->spans[k].end_s, at_s[i + 1]) - fmax(l->spans[k].start_s, at_s[i]);
            out[i * HV_GANTT_KIND_N + l->spans[k].kind] += fmax(0, part) / (at_s[i + 1] - at_s[i]);
        }
    }
}

static size_t get_spans(const void *ctx, size_t lane, double t0_s, double t1_s, size_t most,
                        struct hv_gantt_span *out, size_t *n_out)
{
    const struct array_lane *l = lane_of(ctx, lane);
    size_t n = 0;
    for (size_t k = 0; k < l->n_spans; k++) {
        if (l->spans[k].start_s < t1_s && l->spans[k].end_s > t0_s) {
            if (n < most) {
                out[n] = l->spans[k];
            }
            n++;
        }
    }
    *n_out = n <= most ? n : 0;
    return n;
}

static bool get_at(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct array_lane *l = lane_of(ctx, lane);
    size_t i = upper(l, t_s);
    if (i == 0 || l->spans[i - 1].end_s <= t_s) {
        return false;
    }
    *out = l->spans[i - 1];
    return true;
}

static bool get_next(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct array_lane *l = lane_of(ctx, lane);
    size_t i = upper(l, t_s);
    if (i == l->n_spans) {
        return false;
    }
    *out = l->spans[i];
    return true;
}

static bool get_prev(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct array_lane *l = lane_of(ctx, lane);
    size_t i = upper(l, t_s);
    while (i > 0 && l->spans[i - 1].start_s >= t_s) {
        i--;
    }
    if (i == 0) {
        return false;
    }
    *out = l->spans[i - 1];
    return true;
}

static struct hv_gantt_source array_source(const struct array *a)
{
    double end = 0;
    for (size_t i = 0; i < a->n_lanes; i++) {
        if (a->lanes[i].n_spans > 0) {
            end = fmax(end, a->lanes[i].spans[a->lanes[i].n_spans - 1].end_s);
        }
    }
    return (struct hv_gantt_source){.ctx = a,
                                    .n_lanes = a->n_lanes,
                                    .end_s = end,
                                    .lane = get_lane,
                                    .columns = get_columns,
                                    .shares = get_shares,
                                    .spans = get_spans,
                                    .at = get_at,
                                    .next = get_next,
                                    .prev = get_prev};
}

/* Two stages, two micro-batches, GPipe order: F = 1 s, B = 2 s; makespan (m + p - 1)(F + B) = 9 s.
 */
static const struct hv_gantt_span s1[] = {{0, 1, 0, 0, 0, HV_GANTT_F, true},
                                          {1, 2, 1, 1, 0, HV_GANTT_F, false},
                                          {5, 7, 2, 0, 0, HV_GANTT_B, false},
                                          {7, 9, 3, 1, 0, HV_GANTT_B, true}};
static const struct hv_gantt_span s2[] = {{1, 2, 4, 0, 1, HV_GANTT_F, true},
                                          {2, 3, 5, 1, 1, HV_GANTT_F, true},
                                          {3, 5, 6, 0, 1, HV_GANTT_B, true},
                                          {5, 7, 7, 1, 1, HV_GANTT_B, true}};
static const struct array_lane lanes[] = {{{"s1 h100", NULL}, s1, 4}, {{"s2 l40s", NULL}, s2, 4}};
static const struct array timeline = {lanes, 2};

static void prints_a_timeline(void **state)
{
    (void)state;
    struct hv_gantt_source src = array_source(&timeline);
    struct hv_gantt_print o = {.width = 45, .ascii = true};
    struct hv_str s = {0};
    hv_gantt_print(&src, &o, &s);
    const char *text = hv_str_cstr(&s);
    assert_non_null(strstr(text, " s1 h100 f0-|f1-|............b0=====|b1=====|\n"));
    assert_non_null(strstr(text, " s2 l40s ....f0-|f1-|b0=====|b1=====|........\n"));
    hv_str_free(&s);
}

static void the_micro_batch_at_the_cursor_is_followed(void **state)
{
    (void)state;
    struct hv_gantt_source src = array_source(&timeline);
    struct hv_gantt_state st;
    struct hv_grid g = {.ascii = true};
    struct hv_str s = {0};
    hv_gantt_init(&st, &src);
    st.show_memory = st.show_critical = st.show_minimap = false;
    hv_gantt_goto(&st, &src, 1.5); /* f1 of the first stage */
    hv_grid_resize(&g, 45, 3);
    hv_gantt_draw(&st, &src, &g, (struct hv_rect){0, 0, 45, 3});
    hv_grid_dump(&g, &s);
    assert_non_null(strstr(hv_str_cstr(&s), "s1 h100 f0-|F1-|............b0=====|B1=====|\n"));
    assert_non_null(strstr(hv_str_cstr(&s), "s2 l40s ....f0-|F1-|b0=====|B1=====|"));
    hv_gantt_goto(&st, &src, 3.5); /* idle there: nothing to follow */
    hv_gantt_draw(&st, &src, &g, (struct hv_rect){0, 0, 45, 3});
    hv_str_clear(&s);
    hv_grid_dump(&g, &s);
    assert_non_null(strstr(hv_str_cstr(&s), "f0-|f1-|............b0=====|b1=====|\n"));
    hv_str_free(&s);
    hv_grid_free(&g);
}

/* What a back end that knows no style would have to show: a column's glyph and both sides. */
static void assert_edge(const struct hv_grid *g, int x, int eighths, unsigned left, unsigned right)
{
    const struct hv_cell *c = &g->cells[g->w + x];
    assert_int_equal(c->style & HV_STYLE_ID_MASK, left);
    assert_int_equal(HV_STYLE_RIGHT(c->style), right);
    assert_int_equal(hv_cell_eighths(c), eighths);
}

/* Columns of 1 s: F from 0.25 to 3.5, then B at once to 7.375; F again from 8.75 on. */
static void ends_lie_within_cells(void **state)
{
    (void)state;
    static const struct hv_gantt_span spans[] = {{0.25, 3.5, 0, 0, 0, HV_GANTT_F, false},
                                                 {3.5, 7.375, 1, 0, 0, HV_GANTT_B, false},
                                                 {8.75, 20, 2, 2, 0, HV_GANTT_F, false}};
    static const struct array_lane lane[] = {{{"s1", NULL}, spans, 3}};
    static const struct array one = {lane, 1};
    struct hv_gantt_source src = array_source(&one);
    struct hv_gantt_state st;
    struct hv_grid g = {0};
    hv_gantt_init(&st, &src);
    st.show_memory = st.show_critical = st.show_minimap = st.show_cursor = false;
    hv_grid_resize(&g, 20 + hv_gantt_label_width(&src, 28), 2);
    struct hv_gantt_places p = hv_gantt_layout(&st, &src, (struct hv_rect){0, 0, g.w, 2});
    assert_int_equal(p.chart.w, 20);
    hv_gantt_draw(&st, &src, &g, (struct hv_rect){0, 0, g.w, 2});
    assert_edge(&g, p.chart.x, 2, HV_STYLE_IDLE, HV_STYLE_OP_F);
    assert_edge(&g, p.chart.x + 3, 4, HV_STYLE_OP_F, HV_STYLE_OP_B);
    assert_edge(&g, p.chart.x + 7, 3, HV_STYLE_OP_B, HV_STYLE_IDLE);
    assert_edge(&g, p.chart.x + 8, 6, HV_STYLE_IDLE, HV_STYLE_OP_F);
    assert_string_equal(g.cells[g.w + p.chart.x + 1].utf8, "f");
    assert_string_equal(g.cells[g.w + p.chart.x + 4].utf8, "b");
    g.ascii = true;
    hv_gantt_draw(&st, &src, &g, (struct hv_rect){0, 0, g.w, 2});
    for (int x = p.chart.x; x < g.w; x++) {
        assert_int_equal(HV_STYLE_RIGHT(g.cells[g.w + x].style), 0);
    }
    hv_grid_free(&g);
}

static void zoom_keeps_the_time_under_the_cursor(void **state)
{
    (void)state;
    struct hv_gantt_source src = array_source(&timeline);
    struct hv_gantt_state st;
    hv_gantt_init(&st, &src);
    hv_gantt_zoom(&st, &src, 3, 6);
    assert_true(fabs((st.t1_s - st.t0_s) - (3)) < 1e-9);
    assert_true(fabs(((6 - st.t0_s) / 3) - (6.0 / 9)) < 1e-9);
    hv_gantt_pan(&st, &src, 100);
    assert_true(fabs((st.t1_s) - (9)) < 1e-9);
    for (int i = 0; i < 200; i++) {
        hv_gantt_zoom(&st, &src, 2, 8);
    }
    assert_true(st.t1_s > st.t0_s);
    hv_gantt_fit(&st, &src);
    assert_true(fabs((st.t1_s - st.t0_s) - (9)) < 1e-9);
}

static void steps_and_finds(void **state)
{
    (void)state;
    struct hv_gantt_source src = array_source(&timeline);
    struct hv_gantt_state st;
    struct hv_gantt_span at;
    hv_gantt_init(&st, &src);
    assert_true(hv_gantt_step(&st, &src, 1));
    assert_true(hv_gantt_at_cursor(&st, &src, &at));
    assert_int_equal(at.id, 1);
    assert_true(hv_gantt_step_mb(&st, &src, 1));
    assert_true(hv_gantt_at_cursor(&st, &src, &at));
    assert_int_equal(at.id, 5);
    assert_true(hv_gantt_find(&st, &src, "b1", 1));
    assert_true(hv_gantt_at_cursor(&st, &src, &at));
    assert_int_equal(at.id, 7);
    assert_true(hv_gantt_find(&st, &src, "b1", 1));
    assert_true(hv_gantt_at_cursor(&st, &src, &at));
    assert_int_equal(at.id, 3);
    assert_false(hv_gantt_find(&st, &src, "b9", 1));
    assert_true(hv_gantt_find(&st, &src, "l40s", 0));
    assert_int_equal(st.lane, 1);
}

enum { ROWS_OF_MANY = 4, SPANS_OF_ROW = 120 };

/* Spans of many micro-batches on some rows, a few transfers beside. */
static void make_many(struct hv_arena *a, struct hv_timeline *t)
{
    static const uint8_t kinds[] = {HV_SPAN_F, HV_SPAN_B, HV_SPAN_W};
    struct hv_rng rng;
    hv_rng_seed(&rng, 3);
    *t = (struct hv_timeline){.n_rows = ROWS_OF_MANY};
    t->rows = hv_arena_new(a, struct hv_timeline_row, ROWS_OF_MANY);
    for (size_t lane = 0; lane < (size_t)2 * ROWS_OF_MANY; lane++) {
        size_t n = lane % 2 == 0 ? SPANS_OF_ROW : 3;
        struct hv_span *spans = hv_arena_new(a, struct hv_span, n);
        double at_s = hv_rng_double(&rng);
        for (size_t i = 0; i < n; i++) {
            double long_s = 0.1 + (double)hv_rng_below(&rng, 3);
            spans[i] = (struct hv_span){.start_s = at_s,
                                        .end_s = at_s + long_s,
                                        .item = (int32_t)hv_rng_below(&rng, 30),
                                        .kind = kinds[hv_rng_below(&rng, HV_COUNT(kinds))]};
            at_s += long_s + (double)hv_rng_below(&rng, 2);
        }
        assert_int_equal(
            hv_lanes_add(a, &t->lanes, &(struct hv_lane){.spans = spans, .n_spans = n}, NULL),
            HV_OK);
        t->rows[lane / 2] = (struct hv_timeline_row){.name = "row",
                                                     .layers = "",
                                                     .compute_lane = lane / 2 * 2,
                                                     .link_lane = lane / 2 * 2 + 1};
    }
    t->end_s = t->lanes.end_s;
}

/* Reading lanes straight finds what stepping from span to span finds. */
static void a_search_finds_what_steps_find(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_timeline t;
    struct hv_rng rng;
    make_many(&a, &t);
    hv_rng_seed(&rng, 9);
    struct hv_gantt_source fast = hv_gantt_timeline_source(&t), slow = fast;
    slow.seek = NULL;
    size_t n_found = 0;
    for (int i = 0; i < 3000; i++) {
        struct hv_gantt_state x, y;
        char text[16];
        int way = i % 2 == 0 ? 1 : -1;
        hv_gantt_init(&x, &fast);
        x.lane = hv_rng_below(&rng, ROWS_OF_MANY);
        hv_gantt_goto(&x, &fast, hv_rng_double(&rng) * t.end_s);
        y = x;
        (void)snprintf(text, sizeof text, "b%d", (int)hv_rng_below(&rng, 30));
        bool found =
            i % 3 == 0 ? hv_gantt_find(&x, &fast, text, way) : hv_gantt_step_mb(&x, &fast, way);
        assert_int_equal(found, i % 3 == 0 ? hv_gantt_find(&y, &slow, text, way)
                                           : hv_gantt_step_mb(&y, &slow, way));
        assert_true(x.lane == y.lane && x.cursor_s == y.cursor_s);
        n_found += found;
    }
    assert_true(n_found > 1500);
    hv_arena_free(&a);
}

/* Twenty lanes in a chart of five rows: the pinned one stays, the cursor's is always there, and a
 * click finds what is drawn. */
static void a_pinned_lane_stays(void **state)
{
    (void)state;
    struct array_lane many[20];
    for (int i = 0; i < 20; i++) {
        many[i] = lanes[i % 2];
    }
    struct array tall = {many, 20};
    struct hv_gantt_source src = array_source(&tall);
    struct hv_gantt_state st;
    hv_gantt_init(&st, &src);
    st.show_memory = st.show_critical = st.show_minimap = false;
    for (size_t pin = 0; pin < 20; pin++) {
        st.has_pin = true;
        st.pin_lane = pin;
        for (int step = 0; step < 60; step++) {
            st.lane = (size_t)(step * 7 % 20);
            struct hv_gantt_places p = hv_gantt_layout(&st, &src, (struct hv_rect){0, 0, 40, 6});
            /* five rows, of which one or two tell of the lanes that are hidden */
            assert_int_equal((int)p.n_shown + p.above.h + p.below.h, 5);
            assert_true(p.above.h == (p.top_lane > 0) &&
                        p.below.h == (p.top_lane + p.n_shown < 20));
            bool sees_pin = false, sees_cursor = false;
            for (size_t k = 0; k < p.n_shown; k++) {
                size_t lane = hv_gantt_lane_at(&st, &p, k), hit = 99;
                double t = 0;
                assert_true(lane < 20 && (k == 0 || lane > hv_gantt_lane_at(&st, &p, k - 1)));
                assert_true(hv_gantt_hit(&st, &p, p.chart.x, p.chart.y + (int)k, &hit, &t));
                assert_int_equal(hit, lane);
                sees_pin |= lane == pin;
                sees_cursor |= lane == st.lane;
            }
            assert_true(sees_cursor);
            assert_true(sees_pin || pin > p.top_lane);
            st.top_lane = p.top_lane;
        }
    }
}

/* Lanes that do not fit are told of: how many, which, how busy (6 of 9 seconds each). */
static void hidden_lanes_are_told_of(void **state)
{
    (void)state;
    struct array_lane many[20];
    for (int i = 0; i < 20; i++) {
        many[i] = lanes[i % 2];
    }
    struct array tall = {many, 20};
    struct hv_gantt_source src = array_source(&tall);
    struct hv_gantt_state st;
    struct hv_grid g = {.ascii = true};
    struct hv_str s = {0};
    hv_gantt_init(&st, &src);
    st.show_memory = st.show_critical = st.show_minimap = false;
    hv_grid_resize(&g, 60, 6);
    hv_gantt_draw(&st, &src, &g, (struct hv_rect){0, 0, 60, 6});
    hv_grid_dump(&g, &s);
    assert_non_null(strstr(hv_str_cstr(&s), "\n v 16 more: s1 to s2, busy 67%"));
    assert_null(strstr(hv_str_cstr(&s), "^ "));
    st.lane = 9;
    hv_grid_resize(&g, 60, 6);
    hv_gantt_draw(&st, &src, &g, (struct hv_rect){0, 0, 60, 6});
    hv_str_clear(&s);
    hv_grid_dump(&g, &s);
    assert_non_null(strstr(hv_str_cstr(&s), "\n ^ 7 more: s1 to s1, busy 67%"));
    assert_non_null(strstr(hv_str_cstr(&s), "\n v 10 more: s1 to s2, busy 67%"));
    hv_str_free(&s);
    hv_grid_free(&g);
}

static void paints_at_any_size(void **state)
{
    (void)state;
    struct hv_gantt_source src = array_source(&timeline);
    struct hv_gantt_state st;
    struct hv_grid g = {0};
    hv_gantt_init(&st, &src);
    for (int w = 1; w < 120; w += 3) {
        for (int h = 1; h < 30; h++) {
            hv_grid_resize(&g, w, h);
            hv_gantt_draw(&st, &src, &g, (struct hv_rect){0, 0, w, h});
        }
    }
    hv_grid_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prints_a_timeline),
                                       cmocka_unit_test(the_micro_batch_at_the_cursor_is_followed),
                                       cmocka_unit_test(ends_lie_within_cells),
                                       cmocka_unit_test(zoom_keeps_the_time_under_the_cursor),
                                       cmocka_unit_test(steps_and_finds),
                                       cmocka_unit_test(a_search_finds_what_steps_find),
                                       cmocka_unit_test(a_pinned_lane_stays),
                                       cmocka_unit_test(hidden_lanes_are_told_of),
                                       cmocka_unit_test(paints_at_any_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
