/* Benchmark of schedules: generate, compile, price. Prints milliseconds; the larger case in bytes
 * too. */
#include "solver/sim/pipeline.h"
#include <stdio.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
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

int main(void)
{
    int failed = measure("1f1b", 16, 512, 1);
    failed += measure("interleaved", 16, 512, 4);
    failed += measure("zb-h1", 16, 512, 1);
    failed += measure("zb-2p", 16, 512, 1);
    failed += measure("dualpipe", 16, 512, 1);
    failed += measure("interleaved", 64, 2048, 8);
    failed += measure("zb-h1", 64, 2048, 8);
    return failed > 0;
}
