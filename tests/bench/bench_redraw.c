/*
 * Redraws of any window of a timeline of 3.1 million operations: the question to the lanes alone,
 * and the painter of cells on top of it. CPU time of this thread; every window is drawn in each of
 * three rounds, which are far larger than the caches, and its best time counts, so that what else
 * the machine does matters little.
 */
#include "solver/base/rng.h"
#include "solver/io/export/gantt.h"
#include "solver/sim/pipeline/pipeline.h"
#include "ui/view/gantt/timeline.h"
#include <math.h>
#include <stdio.h>
#include <time.h>

enum { RANKS = 64, WINDOWS = 100, ROUNDS = 3, MOST_COLUMNS = 240 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* interleaved with F, B and W, a lane per rank */
static enum hv_status make_timeline(struct hv_arena *a, struct hv_timeline *t, struct hv_err *err)
{
    static const uint8_t kinds[HV_OP_KIND_N] = {HV_SPAN_F, HV_SPAN_B, HV_SPAN_W, HV_SPAN_BW,
                                                HV_SPAN_R};
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_run run;
    enum hv_status st = hv_schedule_find("zb-h1", &row, err);
    hv_schedule_input_init(&in, row, RANKS, 2048);
    in.chunks = 8;
    st = st == HV_OK ? hv_schedule_make(a, &in, &s, err) : st;
    st = st == HV_OK ? hv_pipe_compile(a, &s, &g, err) : st;
    if (st != HV_OK) {
        return st;
    }
    double *stage_s = hv_arena_new(a, double, (size_t)s.n_stages *HV_OP_KIND_N);
    for (size_t i = 0; i < (size_t)s.n_stages * HV_OP_KIND_N; i++) {
        stage_s[i] = 1 + (double)(i % HV_OP_KIND_N);
    }
    hv_pipe_run_new(a, &g, &run);
    hv_pipe_time(&g, &(struct hv_pipe_cost){.stage_s = stage_s, .hop_all_s = 0.1}, &run);
    *t = (struct hv_timeline){.n_rows = RANKS, .n_ops = (size_t)g.n_nodes};
    t->rows = hv_arena_new(a, struct hv_timeline_row, RANKS);
    t->ops = hv_arena_new(a, struct hv_timeline_op, t->n_ops);
    for (int32_t r = 0; r < RANKS && st == HV_OK; r++) {
        struct hv_arena scratch = {0};
        size_t from = (size_t)g.rank_node_at[r], n = (size_t)g.rank_node_at[r + 1] - from;
        struct hv_span *spans = hv_arena_new(&scratch, struct hv_span, n);
        for (size_t i = 0; i < n; i++) {
            const struct hv_op *op = &s.ops[from + i];
            uint8_t kind = kinds[op->kind];
            t->ops[from + i] =
                (struct hv_timeline_op){.stage = op->stage, .micro_batch = op->mb, .kind = kind};
            spans[i] = (struct hv_span){.start_s = run.node_start_s[from + i],
                                        .end_s = run.node_end_s[from + i],
                                        .id = (int32_t)(from + i),
                                        .item = op->mb,
                                        .group = op->stage,
                                        .kind = kind};
        }
        t->rows[r] = (struct hv_timeline_row){.multiplicity = 1,
                                              .name = "rank",
                                              .layers = "",
                                              .compute_lane = 2 * (size_t)r,
                                              .link_lane = 2 * (size_t)r + 1};
        st = hv_lanes_add(a, &t->lanes, &(struct hv_lane){.spans = spans, .n_spans = n}, err);
        st = st == HV_OK ? hv_lanes_add(a, &t->lanes, &(struct hv_lane){0}, err) : st;
        hv_arena_free(&scratch);
    }
    t->end_s = t->lanes.end_s;
    return st;
}

/* a window on some lanes */
struct window {
    double from_s, column_s;
    size_t first;
};

/* one redraw by the lanes alone (no grid) or by the painter of cells */
static double redraw_ms(const struct hv_timeline *t, const struct window *w, size_t rows,
                        int columns, struct hv_grid *g)
{
    static struct hv_cover covers[MOST_COLUMNS];
    double at_s[MOST_COLUMNS + 1];
    struct hv_gantt_source src = hv_gantt_timeline_source(t);
    struct hv_gantt_state st;
    hv_gantt_init(&st, &src);
    st.t0_s = w->from_s;
    st.t1_s = w->from_s + columns * w->column_s;
    st.lane = st.top_lane = w->first;
    double begin = now_ms();
    if (g) {
        hv_gantt_draw(&st, &src, g, (struct hv_rect){0, 0, g->w, g->h});
        return now_ms() - begin;
    }
    for (int c = 0; c <= columns; c++) {
        at_s[c] = w->from_s + c * w->column_s;
    }
    for (size_t r = w->first; r < w->first + rows; r++) {
        hv_lane_columns(&t->lanes.items[t->rows[r].compute_lane], at_s, (size_t)columns, covers);
    }
    return now_ms() - begin;
}

static void measure(const struct hv_timeline *t, size_t rows, int columns, struct hv_grid *g)
{
    double best[WINDOWS], sum = 0, slowest = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct hv_rng rng;
        hv_rng_seed(&rng, 1);
        for (int i = 0; i < WINDOWS; i++) {
            struct window w = {.from_s = hv_rng_double(&rng) * t->end_s};
            w.column_s = (t->end_s - w.from_s) * hv_rng_double(&rng) / columns;
            w.first = (size_t)hv_rng_below(&rng, t->n_rows - rows + 1);
            double ms = redraw_ms(t, &w, rows, columns, g);
            best[i] = round == 0 ? ms : fmin(best[i], ms);
        }
    }
    for (int i = 0; i < WINDOWS; i++) {
        sum += best[i];
        slowest = fmax(slowest, best[i]);
    }
    printf("redraw of any window, %s, %zu lanes x %d columns: mean %.3f ms, slowest of %d %.3f ms "
           "(target: 2 ms)\n",
           g ? "painter of cells" : "lanes alone", rows, columns, sum / WINDOWS, WINDOWS, slowest);
}

int main(void)
{
    struct hv_arena a = {0};
    struct hv_timeline t;
    struct hv_err err;
    struct hv_grid grid = {0};
    double begin = now_ms();
    if (make_timeline(&a, &t, &err) != HV_OK) {
        fprintf(stderr, "%s\n", err.text);
        hv_arena_free(&a);
        return 1;
    }
    printf("timeline of %zu operations made in %.1f ms\n", t.n_ops, now_ms() - begin);
    measure(&t, 40, 120, NULL);
    measure(&t, RANKS, MOST_COLUMNS, NULL);
    hv_grid_resize(&grid, 120 + 17, 40 + 3);
    measure(&t, 40, 120, &grid);
    hv_grid_resize(&grid, MOST_COLUMNS + 17, RANKS + 3);
    measure(&t, RANKS, MOST_COLUMNS, &grid);
    struct hv_str text = {0};
    begin = now_ms();
    hv_gantt_svg(&t, &(struct hv_gantt_text){.title = "", .subtitle = ""}, MOST_COLUMNS + 200,
                 &text);
    printf("the whole as SVG, %zu bytes: %.1f ms\n", text.n, now_ms() - begin);
    hv_str_free(&text);
    hv_grid_free(&grid);
    hv_arena_free(&a);
    return 0;
}
