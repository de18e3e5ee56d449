/*
 * Benchmark of judging plans: every shipped plan read, evaluated cold (a new cost context, as after
 * an edit of cluster or model) and warm (the context of the last judgement, as after an edit of the
 * plan). Prints medians; judges nothing.
 */
#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/eval/eval.h"
#include "solver/io/own/docs.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 21, MAX_PLANS = 64 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x)
{
    qsort(x, REPEATS, sizeof *x, by_value);
    return x[REPEATS / 2];
}

/* Seconds of one judgement. */
static double judge(struct hv_cost *k, const struct hv_plan *plan, bool timeline)
{
    struct hv_eval_options o = {.timeline = timeline};
    struct hv_arena arena = {0};
    struct hv_verdict v;
    double start = now_s();
    enum hv_status st = hv_eval(k, plan, &o, &arena, &v, NULL);
    double seconds = now_s() - start;
    hv_arena_free(&arena);
    if (st != HV_OK) {
        exit(1);
    }
    return seconds;
}

static void report(const char *name, const char *what, double *seconds)
{
    char buf[HV_FMT_CAP];
    printf("  %-34s %-24s %10s\n", name, what, hv_fmt_seconds(buf, sizeof buf, median(seconds)));
}

static int bench_plan(const char *name)
{
    double read[REPEATS], cold[REPEATS], warm[REPEATS], drawn[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        struct hv_plan_doc plan;
        struct hv_inputs in;
        struct hv_err err = {0};
        double start = now_s();
        if (hv_plan_doc_read(&plan, name, NULL, NULL, NULL, &in, &err) != HV_OK) {
            fprintf(stderr, "%s: %s\n", name, err.text);
            return 1;
        }
        read[r] = now_s() - start;
        start = now_s();
        struct hv_cost *k = hv_cost_new(in.cluster.cluster, in.model.model, &in.job.job);
        cold[r] = now_s() - start + judge(k, plan.plan, false);
        warm[r] = judge(k, plan.plan, false);
        drawn[r] = judge(k, plan.plan, true);
        hv_cost_free(k);
        hv_plan_doc_free(&plan);
        hv_inputs_free(&in);
    }
    report(name, "read", read);
    report("", "eval, cold", cold);
    report("", "eval, warm", warm);
    report("", "eval, warm, timeline", drawn);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Plans given as arguments, else every shipped one. */
int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        bad |= bench_plan(argv[i]);
    }
    struct hv_str folder = {0};
    DIR *d = argc < 2 && hv_data_path(&folder, "samples/plans", NULL) == HV_OK
                 ? opendir(hv_str_cstr(&folder))
                 : NULL;
    char *names[MAX_PLANS];
    size_t n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e && n < MAX_PLANS; e = readdir(d)) {
        char *dot = strstr(e->d_name, ".json");
        if (dot) {
            *dot = '\0';
            names[n++] = hv_xstrdup(e->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
    if (n > 1) {
        qsort(names, n, sizeof *names, by_name);
    }
    for (size_t i = 0; i < n; i++) {
        bad |= bench_plan(names[i]);
        free(names[i]);
    }
    hv_str_free(&folder);
    return bad;
}
