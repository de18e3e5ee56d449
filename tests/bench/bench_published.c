/*
 * Our answers beside those of published programs: bench_published [FOLDER], a folder of operator
 * graphs (`hetviz.partition/1`, kind dag) whose key `expected` holds what other programs found and
 * the CPU time they took; HETVIZ_INSTANCES names it when there is no argument. Ends with status 1
 * when a published objective is better than ours.
 */
#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/io/own/instance/partition_file.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_FILES = 256, MAX_PATH = 4096 };

static double cpu_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Our two answers to an instance. */
struct ours {
    double split, split_s, full, full_s;
    bool proven, split_proven;
};

static struct ours solve(const struct hv_dag *g)
{
    const struct hv_solve_limits limits = {.deadline_s = 10};
    struct ours o = {.split = HV_UNKNOWN, .split_s = HUGE_VAL};
    struct hv_dag_result r;
    for (int k = 0; k < 5 && g->objective == HV_DAG_MAX_LOAD; k++) {
        struct hv_arena a = {0};
        double begin = cpu_now_s();
        if (hv_dag_split(g, NULL, &a, &r, NULL) != HV_OK) {
            abort();
        }
        o.split_s = fmin(o.split_s, cpu_now_s() - begin);
        o.split = r.objective;
        o.split_proven = r.contiguous_proven;
        hv_arena_free(&a);
    }
    struct hv_arena a = {0};
    double begin = cpu_now_s();
    if (hv_dag_solve(g, &limits, &a, &r, NULL) != HV_OK) {
        abort();
    }
    o.full_s = cpu_now_s() - begin;
    o.full = r.objective;
    o.proven = r.proven;
    hv_arena_free(&a);
    return o;
}

static const char *word(double ours, double theirs)
{
    if (fabs(ours - theirs) <= 1e-5 * theirs) {
        return "equal";
    }
    return ours < theirs ? "better" : "WORSE";
}

/* One line for each published answer; returns how many are better than ours. */
static int compare(const struct ours *o, json_t *expected)
{
    const char *name;
    json_t *e;
    int worse = 0;
    json_object_foreach(expected, name, e)
    {
        const json_t *value = json_object_get(e, "objective"), *cpu = json_object_get(e, "cpu_s");
        double theirs = json_is_number(value) ? json_number_value(value) : HV_UNKNOWN;
        printf("  %-16s %12.4f", name, theirs);
        if (hv_known(theirs)) {
            printf("  ours %-6s", word(o->full, theirs));
            if (hv_known(o->split)) {
                printf("  our split %-6s", word(o->split, theirs));
            }
            worse += strcmp(word(o->full, theirs), "WORSE") == 0;
        }
        if (json_is_number(cpu)) {
            double s = json_number_value(cpu);
            printf("  CPU %8.3f s = %9.1fx our split, %7.2fx our whole search", s, s / o->split_s,
                   s / o->full_s);
        }
        putchar('\n');
    }
    return worse;
}

static int bench_file(const char *path)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    struct hv_err err = {0};
    struct hv_instance in = {.name = ""};
    int worse = 0;
    enum hv_status st = hv_file_read(path, &text, &err);
    if (st == HV_OK) {
        st = hv_json_parse(&json, hv_str_cstr(&text), text.n, path, &err);
    }
    if (st == HV_OK) {
        st = hv_instance_read(&in, &json, &err);
    }
    if (st != HV_OK) {
        fprintf(stderr, "%s\n", err.text);
    }
    if (st == HV_OK && in.kind == HV_INSTANCE_DAG) {
        struct ours o = solve(&in.dag);
        printf("%s\n", in.name);
        if (hv_known(o.split)) {
            printf("  %-16s %12.4f%s CPU %10.6f s\n", "our split", o.split,
                   o.split_proven ? "*" : " ", o.split_s);
        }
        printf("  %-16s %12.4f%s CPU %10.6f s\n", "ours", o.full, o.proven ? "*" : " ", o.full_s);
        worse = compare(&o, json_object_get(json.root, "expected"));
    }
    hv_instance_free(&in);
    hv_json_free(&json);
    hv_str_free(&text);
    return st == HV_OK ? worse : 1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : getenv("HETVIZ_INSTANCES");
    DIR *d = folder ? opendir(folder) : NULL;
    char *names[MAX_FILES], path[MAX_PATH];
    size_t n = 0;
    int worse = 0;
    if (!d) {
        puts("no instances: HETVIZ_INSTANCES names a folder of operator graphs");
        return 0;
    }
    for (struct dirent *e = readdir(d); e && n < MAX_FILES; e = readdir(d)) {
        if (strstr(e->d_name, ".json")) {
            names[n++] = hv_xstrdup(e->d_name);
        }
    }
    closedir(d);
    if (n > 1) {
        qsort(names, n, sizeof *names, by_name);
    }
    puts("* = proven optimal, a split among contiguous ones, which the program dp looks for too");
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        worse += bench_file(path);
        free(names[i]);
    }
    printf("published objectives that are better than ours: %d\n", worse);
    return worse > 0;
}
