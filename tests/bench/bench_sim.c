/* Benchmark of schedules: generate, compile, price, draw. Prints milliseconds; the larger cases in
 * bytes too. */
#include "solver/base/rng.h"
#include "solver/sim/lanes.h"
#include "solver/sim/pipeline.h"
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static double read_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double now_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

/* of this thread alone, for what is too short to be told apart from what else the machine does */
static double thread_ms(void)
{
    return read_ms(CLOCK_THREAD_CPUTIME_ID);
}

static int measure(const char *name, int32_t p, int32_t m, int32_t v)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_arena a = {0};
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_run run;
    struct hv_err err;
    if (hv_schedule_find(name, &row, &err) != HV_OK) {
        return 1;
    }
    hv_schedule_input_init(&in, row, p, m);
    in.chunks = v;
    double t0 = now_ms();
    enum hv_status st = hv_schedule_make(&a, &in, &s, &err);
    double t1 = now_ms();
    st = st == HV_OK ? hv_pipe_compile(&a, &s, &g, &err) : st;
    double t2 = now_ms();
    if (st != HV_OK) {
        fprintf(stderr, "%s: %s\n", name, err.text);
        hv_arena_free(&a);
        return 1;
    }
    double *stage_s = hv_arena_new(&a, double, (size_t)s.n_stages *HV_OP_KIND_N);
    for (size_t i = 0; i < (size_t)s.n_stages * HV_OP_KIND_N; i++) {
        stage_s[i] = 1 + (double)(i % HV_OP_KIND_N);
    }
    struct hv_pipe_cost cost = {.stage_s = stage_s, .hop_all_s = 0.1};
    hv_pipe_run_new(&a, &g, &run);
    hv_pipe_time(&g, &cost, &run);
    int repeats = hv_schedule_n_ops(&s) > 500000 ? 3 : 100;
    double t3 = now_ms();
    for (int i = 0; i < repeats; i++) {
        hv_pipe_time(&g, &cost, &run);
    }
    double t4 = now_ms();
    printf(
        "sim %-14s p=%-3d m=%-5d v=%-2d ops=%-8zu make %8.3f ms  compile %8.3f ms  time %8.3f ms  "
        "arena %.1f MiB\n",
        name, p, m, v, hv_schedule_n_ops(&s), t1 - t0, t2 - t1, (t4 - t3) / repeats,
        (double)a.used_bytes / (1024.0 * 1024.0));
    hv_arena_free(&a);
    return 0;
}

/* generates, compiles and prices into the arena: all that a first picture of a schedule needs */
static enum hv_status whole(struct hv_arena *a, const struct hv_schedule_input *in,
                            struct hv_pipe *g, struct hv_pipe_run *run, struct hv_err *err)
{
    struct hv_schedule s;
    enum hv_status st = hv_schedule_make(a, in, &s, err);
    st = st == HV_OK ? hv_pipe_compile(a, &s, g, err) : st;
    if (st != HV_OK) {
        return st;
    }
    double *stage_s = hv_arena_new(a, double, (size_t)s.n_stages *HV_OP_KIND_N);
    for (size_t i = 0; i < (size_t)s.n_stages * HV_OP_KIND_N; i++) {
        stage_s[i] = 1 + (double)(i % HV_OP_KIND_N);
    }
    hv_pipe_run_new(a, g, run);
    hv_pipe_time(g, &(struct hv_pipe_cost){.stage_s = stage_s, .hop_all_s = 0.1}, run);
    return HV_OK;
}

/* from nothing to times, the best of five */
static int end_to_end(const char *name, int32_t p, int32_t m, int32_t v)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_err err;
    double best = -1;
    size_t n_ops = 0, bytes = 0;
    if (hv_schedule_find(name, &row, &err) != HV_OK) {
        return 1;
    }
    hv_schedule_input_init(&in, row, p, m);
    in.chunks = v;
    for (int i = 0; i < 5; i++) {
        struct hv_arena a = {0};
        struct hv_pipe g;
        struct hv_pipe_run run;
        double t0 = now_ms();
        if (whole(&a, &in, &g, &run, &err) != HV_OK) {
            fprintf(stderr, "%s: %s\n", name, err.text);
            hv_arena_free(&a);
            return 1;
        }
        double t = now_ms() - t0;
        best = best < 0 || t < best ? t : best;
        n_ops = hv_schedule_n_ops(&g.s);
        bytes = a.used_bytes;
        hv_arena_free(&a);
    }
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("sim %-14s p=%-3d m=%-5d v=%-2d end to end %8.3f ms, %.1f M ops/s, arena %.1f MB, "
           "largest resident set %.1f MB\n",
           name, p, m, v, best, (double)n_ops / best / 1e3, (double)bytes / 1e6,
           (double)u.ru_maxrss * 1024 / 1e6);
    return 0;
}

/* draws 100 random windows on as many lanes and columns, from a random lane on */
static void draw_windows(const struct hv_lanes *lanes, size_t rows, int columns)
{
    enum { MOST = 240 };
    double sum = 0, slowest = 0, busy = 0, at_s[MOST + 1];
    struct hv_cover covers[MOST];
    struct hv_rng rng;
    hv_rng_seed(&rng, 1);
    for (int i = 0; i < 100; i++) {
        double from = hv_rng_double(&rng) * lanes->end_s;
        double width = (lanes->end_s - from) * hv_rng_double(&rng) / columns;
        size_t first = (size_t)hv_rng_below(&rng, lanes->n - rows + 1);
        for (int c = 0; c <= columns; c++) {
            at_s[c] = from + c * width;
        }
        double t0 = thread_ms();
        for (size_t r = first; r < first + rows; r++) {
            hv_lane_columns(&lanes->items[r], at_s, (size_t)columns, covers);
            busy += covers[columns / 2].busy_frac;
        }
        double t = thread_ms() - t0;
        sum += t;
        slowest = t > slowest ? t : slowest;
    }
    printf("sim any window on %zu lanes x %d columns: mean %.3f ms, slowest of 100 %.3f ms (mean "
           "cover %.2f)\n",
           rows, columns, sum / 100, slowest, busy / (100.0 * (double)rows));
}

/* the timeline of a large schedule, and windows of it on a usual terminal and on a large one */
static int redraw(void)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_err err;
    struct hv_arena a = {0};
    struct hv_pipe g;
    struct hv_pipe_run run;
    struct hv_lanes lanes = {0};
    enum hv_status st = hv_schedule_find("zb-h1", &row, &err);
    hv_schedule_input_init(&in, row, 64, 2048);
    in.chunks = 8;
    st = st == HV_OK ? whole(&a, &in, &g, &run, &err) : st;
    double t0 = now_ms();
    for (int32_t r = 0; r < 64 && st == HV_OK; r++) {
        struct hv_arena scratch = {0};
        size_t from = (size_t)g.rank_node_at[r], n = (size_t)g.rank_node_at[r + 1] - from;
        struct hv_span *spans = hv_arena_new(&scratch, struct hv_span, n);
        for (size_t i = 0; i < n; i++) {
            spans[i] = (struct hv_span){.start_s = run.node_start_s[from + i],
                                        .end_s = run.node_end_s[from + i],
                                        .id = (int32_t)(from + i),
                                        .kind = g.s.ops[from + i].kind};
        }
        st = hv_lanes_add(&a, &lanes, &(struct hv_lane){.spans = spans, .n_spans = n}, &err);
        hv_arena_free(&scratch);
    }
    printf("sim lanes of %d ops: built in %.1f ms\n", st == HV_OK ? g.n_nodes : 0, now_ms() - t0);
    if (st == HV_OK) {
        draw_windows(&lanes, 40, 120);
        draw_windows(&lanes, 64, 240);
    }
    hv_arena_free(&a);
    return st != HV_OK;
}

int main(void)
{
    int failed = measure("1f1b", 16, 512, 1);
    failed += measure("interleaved", 16, 512, 4);
    failed += measure("zb-h1", 16, 512, 1);
    failed += measure("zb-2p", 16, 512, 1);
    failed += measure("dualpipe", 16, 512, 1);
    failed += measure("zb-2p", 32, 256, 1);
    failed += measure("interleaved", 64, 2048, 8);
    failed += measure("zb-h1", 64, 2048, 8);
    failed += end_to_end("zb-2p", 32, 256, 1);
    failed += end_to_end("zb-h1", 64, 2048, 8);
    failed += redraw();
    return failed > 0;
}
