/*
 * The Gantt counted: the colours (letters in ASCII) of any 20 columns of a lane against what the
 * timeline holds there, for random plans and zooms. The truth is summed span by span.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/sim/pipeline/pipeline.h"
#include "ui/view/gantt/timeline.h"

enum { IDLE = HV_GANTT_KIND_N, SHARES, WINDOW = 20, MOST_W = 260 };

/* ---- timelines ---- */

static const uint8_t op_spans[HV_OP_KIND_N] = {HV_SPAN_F, HV_SPAN_B, HV_SPAN_W, HV_SPAN_BW,
                                               HV_SPAN_R};

/* Transfers of one row: some anywhere, over and beside the operations, one at the end. */
static size_t draw_transfers(struct hv_rng *rng, double end_s, struct hv_span *out)
{
    size_t n = (size_t)hv_rng_below(rng, 6);
    double at_s = 0;
    for (size_t i = 0; i < n; i++) {
        double from_s = at_s + hv_rng_double(rng) * end_s / 4;
        at_s = from_s + hv_rng_double(rng) * end_s / 8;
        out[i] = (struct hv_span){.start_s = from_s,
                                  .end_s = at_s,
                                  .item = -1,
                                  .kind = i % 2 == 0 ? HV_SPAN_SYNC : HV_SPAN_GATHER};
    }
    return n;
}

/* A row of the timeline: the operations of a rank, and transfers. */
static void add_row(struct hv_arena *a, struct hv_timeline *t, const struct hv_schedule *s,
                    const struct hv_pipe *g, const struct hv_pipe_run *run, int32_t rank,
                    struct hv_rng *rng)
{
    size_t from = (size_t)g->rank_node_at[rank], n = (size_t)g->rank_node_at[rank + 1] - from;
    struct hv_span *spans = hv_arena_new(a, struct hv_span, n + 1), transfers[6];
    for (size_t i = 0; i < n; i++) {
        const struct hv_op *op = &s->ops[hv_pipe_first_op(g, (int32_t)(from + i))];
        spans[i] = (struct hv_span){.start_s = run->node_start_s[from + i],
                                    .end_s = run->node_end_s[from + i],
                                    .item = op->mb,
                                    .group = op->stage,
                                    .kind = op_spans[op->kind]};
    }
    size_t n_transfers = draw_transfers(rng, run->makespan_s, transfers);
    t->rows[rank] = (struct hv_timeline_row){.multiplicity = 1,
                                             .name = "row",
                                             .layers = "",
                                             .compute_lane = t->lanes.n,
                                             .link_lane = t->lanes.n + 1};
    assert_int_equal(
        hv_lanes_add(a, &t->lanes, &(struct hv_lane){.spans = spans, .n_spans = n}, NULL), HV_OK);
    assert_int_equal(hv_lanes_add(a, &t->lanes,
                                  &(struct hv_lane){.spans = transfers, .n_spans = n_transfers},
                                  NULL),
                     HV_OK);
}

/* Simulates a schedule on stages of random speeds. */
static void simulate(struct hv_arena *a, const char *name, int ranks, int micro_batches, int chunks,
                     struct hv_rng *rng, struct hv_timeline *t)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_run run;
    assert_int_equal(hv_schedule_find(name, &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, ranks, micro_batches);
    in.chunks = chunks;
    struct hv_err err = {0};
    if (hv_schedule_make(a, &in, &s, &err) != HV_OK) {
        fail_msg("%s: %s", name, err.text);
    }
    assert_int_equal(hv_pipe_compile(a, &s, &g, NULL), HV_OK);
    double *stage_s = hv_arena_new(a, double, (size_t)s.n_stages *HV_OP_KIND_N);
    for (size_t i = 0; i < (size_t)s.n_stages * HV_OP_KIND_N; i++) {
        stage_s[i] = 0.02 + hv_rng_double(rng) * (1 + (double)(i % HV_OP_KIND_N));
    }
    hv_pipe_run_new(a, &g, &run);
    hv_pipe_time(&g, &(struct hv_pipe_cost){.stage_s = stage_s, .hop_all_s = 0.1}, &run);
    *t = (struct hv_timeline){.n_rows = (size_t)ranks};
    t->rows = hv_arena_new(a, struct hv_timeline_row, (size_t)ranks);
    for (int32_t r = 0; r < ranks; r++) {
        add_row(a, t, &s, &g, &run, r, rng);
    }
    t->end_s = t->lanes.end_s;
}

static void random_plan(struct hv_arena *a, struct hv_rng *rng, struct hv_timeline *t)
{
    static const struct {
        const char *name;
        int chunks;
    } schedules[] = {{"gpipe", 1}, {"1f1b", 1},  {"zb-h1", 1},      {"zb-h2", 1},
                     {"zb-v", 2},  {"zb-h1", 2}, {"interleaved", 2}};
    size_t i = (size_t)hv_rng_below(rng, HV_COUNT(schedules));
    int ranks = 2 + (int)hv_rng_below(rng, 7);
    int micro_batches = ranks * (2 + (int)hv_rng_below(rng, 12));
    simulate(a, schedules[i].name, ranks, micro_batches, schedules[i].chunks, rng, t);
}

/* Rows of operations of any kinds, each kind with a length of its own, and idle time of one. */
static void random_mix(struct hv_arena *a, struct hv_rng *rng, struct hv_timeline *t)
{
    static const uint8_t kinds[] = {HV_SPAN_F, HV_SPAN_BW,   HV_SPAN_W,
                                    HV_SPAN_R, HV_SPAN_SYNC, HV_SPAN_OPT};
    enum { ROWS = 3, MOST = 700 };
    *t = (struct hv_timeline){.n_rows = ROWS};
    t->rows = hv_arena_new(a, struct hv_timeline_row, ROWS);
    for (size_t row = 0; row < ROWS; row++) {
        struct hv_span *spans = hv_arena_new(a, struct hv_span, MOST);
        size_t n = 20 + (size_t)hv_rng_below(rng, MOST - 20),
               used = 1 + (size_t)hv_rng_below(rng, 6);
        double length_s[HV_COUNT(kinds) + 1], at_s = 0;
        for (size_t k = 0; k <= HV_COUNT(kinds); k++) {
            length_s[k] = 0.01 + pow(hv_rng_double(rng), 3);
        }
        for (size_t i = 0; i < n; i++) {
            size_t k = (size_t)hv_rng_below(rng, used);
            double from_s = at_s + (hv_rng_below(rng, 3) == 0 ? length_s[HV_COUNT(kinds)] : 0);
            at_s = from_s + length_s[k];
            spans[i] = (struct hv_span){
                .start_s = from_s, .end_s = at_s, .item = (int32_t)i, .kind = kinds[k]};
        }
        t->rows[row] = (struct hv_timeline_row){
            .name = "row", .layers = "", .compute_lane = t->lanes.n, .link_lane = t->lanes.n + 1};
        assert_int_equal(
            hv_lanes_add(a, &t->lanes, &(struct hv_lane){.spans = spans, .n_spans = n}, NULL),
            HV_OK);
        assert_int_equal(hv_lanes_add(a, &t->lanes, &(struct hv_lane){0}, NULL), HV_OK);
    }
    t->end_s = t->lanes.end_s;
}

/* ---- truth ---- */

static int kind_of(const struct hv_span *s)
{
    switch (s->kind) {
    case HV_SPAN_F:
        return HV_GANTT_F;
    case HV_SPAN_B:
    case HV_SPAN_BW:
        return HV_GANTT_B;
    case HV_SPAN_W:
        return HV_GANTT_W;
    case HV_SPAN_R:
        return HV_GANTT_R;
    case HV_SPAN_OPT:
        return HV_GANTT_OTHER;
    default:
        return HV_GANTT_COMM;
    }
}

/* Columns of a view, [column][kind] in cells. */
struct columns {
    double share[MOST_W][SHARES];
};

/* Adds [from, to) to the columns of [t0, t1). */
static void add_time(struct columns *c, int w, double t0, double t1, double from, double to,
                     int kind)
{
    double per_s = w / (t1 - t0);
    from = fmax(0, (from - t0) * per_s);
    to = fmin(w, (to - t0) * per_s);
    for (int i = (int)from; i < w && i < to; i++) {
        double part = fmin(to, i + 1) - fmax(from, i);
        if (part > 0) {
            c->share[i][kind] += part;
            c->share[i][IDLE] -= part;
        }
    }
}

/* Operations, and transfers where there is none. O(spans + transfers · spans). */
static void true_columns(const struct hv_timeline *t, size_t row, int w, double t0, double t1,
                         struct columns *c)
{
    const struct hv_lane *l = &t->lanes.items[t->rows[row].compute_lane],
                         *k = &t->lanes.items[t->rows[row].link_lane];
    memset(c, 0, sizeof *c);
    for (int i = 0; i < w; i++) {
        c->share[i][IDLE] = 1;
    }
    for (size_t i = 0; i < l->n_spans; i++) {
        add_time(c, w, t0, t1, l->spans[i].start_s, l->spans[i].end_s, kind_of(&l->spans[i]));
    }
    for (size_t j = 0; j < k->n_spans; j++) {
        double at_s = k->spans[j].start_s, end_s = k->spans[j].end_s;
        for (size_t i = 0; i < l->n_spans && at_s < end_s; i++) {
            if (l->spans[i].start_s > at_s) {
                add_time(c, w, t0, t1, at_s, fmin(end_s, l->spans[i].start_s), HV_GANTT_COMM);
            }
            at_s = fmax(at_s, l->spans[i].end_s);
        }
        if (at_s < end_s) {
            add_time(c, w, t0, t1, at_s, end_s, HV_GANTT_COMM);
        }
    }
}

/* ---- counting ---- */

static int kind_of_style(unsigned style)
{
    switch (style & HV_STYLE_ID_MASK) {
    case HV_STYLE_OP_F:
    case HV_STYLE_OP_F_ALT:
        return HV_GANTT_F;
    case HV_STYLE_OP_B:
    case HV_STYLE_OP_B_ALT:
        return HV_GANTT_B;
    case HV_STYLE_OP_W:
    case HV_STYLE_OP_W_ALT:
        return HV_GANTT_W;
    case HV_STYLE_OP_R:
    case HV_STYLE_OP_R_ALT:
        return HV_GANTT_R;
    case HV_STYLE_OP_COMM:
    case HV_STYLE_OP_COMM_ALT:
        return HV_GANTT_COMM;
    case HV_STYLE_OP_OTHER:
        return HV_GANTT_OTHER;
    default:
        assert_int_equal(style & HV_STYLE_ID_MASK, HV_STYLE_IDLE);
        return IDLE;
    }
}

/* What a lane's cells show, each row as much of its column. */
static void drawn_columns(const struct hv_grid *g, const struct hv_gantt_places *p, size_t slot,
                          struct columns *c)
{
    memset(c, 0, sizeof *c);
    for (int y = 0; y < p->rows_per_lane; y++) {
        for (int i = 0; i < p->chart.w; i++) {
            const struct hv_cell *cell =
                &g->cells[(p->chart.y + (int)slot * p->rows_per_lane + y) * g->w + p->chart.x + i];
            unsigned rest = HV_STYLE_RIGHT(cell->style);
            double first = rest != 0 ? hv_cell_eighths(cell) / 8.0 : 1;
            c->share[i][kind_of_style(cell->style)] += first / p->rows_per_lane;
            if (rest != 0) {
                assert_false(g->ascii || g->mono);
                c->share[i][kind_of_style(rest)] += (1 - first) / p->rows_per_lane;
            }
        }
    }
}

/* The largest difference of a kind in any WINDOW columns, in points. */
static double worst_points(const struct columns *a, const struct columns *b, int w)
{
    double worst = 0;
    for (int kind = 0; kind < SHARES; kind++) {
        double sum = 0;
        for (int i = 0; i < w; i++) {
            sum += a->share[i][kind] - b->share[i][kind];
            if (i >= WINDOW) {
                sum -= a->share[i - WINDOW][kind] - b->share[i - WINDOW][kind];
            }
            if (i >= WINDOW - 1) {
                worst = fmax(worst, fabs(sum) / WINDOW * 100);
            }
        }
    }
    return worst;
}

/* How cells are drawn. */
enum mode { UTF8, MONO, ASCII };

/* Worst of all lanes shown in a window of the timeline, on a chart of so many columns and rows per
 * lane. */
static double measure(const struct hv_timeline *t, double t0, double t1, int w, int rows,
                      enum mode mode)
{
    static struct columns truth, drawn;
    struct hv_gantt_source src = hv_gantt_timeline_source(t);
    struct hv_gantt_state st;
    struct hv_grid g = {.ascii = mode == ASCII, .mono = mode == MONO};
    hv_gantt_init(&st, &src);
    st.show_memory = st.show_critical = st.show_minimap = st.show_cursor = false;
    st.t0_s = t0;
    st.t1_s = t1;
    struct hv_rect r = {0, 0, w, 1 + rows * (int)t->n_rows};
    hv_grid_resize(&g, r.w, r.h);
    hv_gantt_draw(&st, &src, &g, r);
    struct hv_gantt_places p = hv_gantt_layout(&st, &src, r);
    assert_int_equal(p.rows_per_lane, rows);
    double worst = 0;
    for (size_t k = 0; k < p.n_shown; k++) {
        true_columns(t, hv_gantt_lane_at(&st, &p, k), p.chart.w, t0, t1, &truth);
        drawn_columns(&g, &p, k, &drawn);
        worst = fmax(worst, worst_points(&truth, &drawn, p.chart.w));
    }
    hv_grid_free(&g);
    return worst;
}

/* Points that a mode may be off in any WINDOW columns: one character is 5 points of them. */
static double limit_of(enum mode mode, int rows)
{
    return mode == UTF8 ? 3.5 : rows > 1 ? 8 : 10;
}

static void check_views(const struct hv_timeline *t, int plan, int zooms, struct hv_rng *rng)
{
    for (int zoom = 0; zoom < zooms; zoom++) {
        double part = zoom == 0 ? 1 : fmax(1e-3, pow(hv_rng_double(rng), 2));
        double t0 = hv_rng_double(rng) * (1 - part) * t->end_s, t1 = t0 + part * t->end_s;
        int w = 40 + (int)hv_rng_below(rng, 200), rows = 1 + (int)hv_rng_below(rng, 3);
        for (int mode = UTF8; mode <= ASCII; mode++) {
            double worst = measure(t, t0, t1, w, rows, (enum mode)mode);
            if (worst > limit_of((enum mode)mode, rows)) {
                fail_msg("plan %d, [%g, %g], %d columns, %d rows, mode %d: %g points off", plan, t0,
                         t1, w, rows, mode, worst);
            }
        }
    }
}

static void any_twenty_columns_show_the_truth(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 25);
    for (int plan = 0; plan < 200; plan++) {
        struct hv_arena a = {0};
        struct hv_timeline t;
        random_plan(&a, &rng, &t);
        check_views(&t, plan, 6, &rng);
        hv_arena_free(&a);
    }
}

static void any_mix_of_kinds_is_shown(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 25);
    for (int plan = 0; plan < 200; plan++) {
        struct hv_arena a = {0};
        struct hv_timeline t;
        random_mix(&a, &rng, &t);
        check_views(&t, plan, 4, &rng);
        hv_arena_free(&a);
    }
}

/* 16 stages with 32,768 micro-batches: 1,048,576 operations. */
static void a_million_operations_are_shown(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_timeline t;
    struct hv_rng rng;
    hv_rng_seed(&rng, 25);
    simulate(&a, "1f1b", 16, 32768, 1, &rng, &t);
    check_views(&t, 0, 12, &rng);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_twenty_columns_show_the_truth),
                                       cmocka_unit_test(any_mix_of_kinds_is_shown),
                                       cmocka_unit_test(a_million_operations_are_shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
