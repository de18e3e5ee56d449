/*
 * `hetviz solve`: reads an instance, solves it, prints the answer. Only arguments and printing;
 * the solvers are solver/optim's, the reader is solver/io's.
 */
#include "solver/base/file.h"
#include "solver/base/json.h"
#include "solver/base/units.h"
#include "solver/io/own/partition_file.h"
#include "solver/optim/certify.h"
#include "ui/cli/cli.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct arguments {
    const char *write_lp; /* file, or NULL */
    double time_limit_s;  /* 0 = none */
    bool certify, progress;
};

/* One answer, whatever was asked. */
struct answer {
    bool feasible, proven, stopped;
    double objective, bound, seconds;
    const char *method;
    struct hv_str certificate;
    json_t *solution;
};

/* Takes over what the results of all solvers have under the same names. */
#define TAKE(out, r)                                                                               \
    do {                                                                                           \
        (out)->feasible = (r).feasible;                                                            \
        (out)->proven = (r).proven;                                                                \
        (out)->objective = (r).objective;                                                          \
        (out)->bound = (r).bound;                                                                  \
        (out)->method = (r).method;                                                                \
        hv_str_adds(&(out)->certificate, (r).proof);                                               \
    } while (0)

/* A line on the terminal while a search runs: best so far, bound, and how far apart they are. */
static void show_progress(void *ctx, double incumbent, double bound)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    (void)ctx;
    if (isinf(incumbent))
        fprintf(stderr, "\rno solution yet, bound %s\033[K", hv_fmt_double(b, sizeof b, bound));
    else
        fprintf(stderr, "\rbest %s, bound %s, gap %.2f %%\033[K",
                hv_fmt_double(a, sizeof a, incumbent), hv_fmt_double(b, sizeof b, bound),
                incumbent > 0 ? 100 * (incumbent - bound) / incumbent : 0);
}

static struct hv_part_limits limits_of(const struct arguments *a)
{
    return (struct hv_part_limits){.deadline_s = a->time_limit_s,
                                   .report = a->progress ? show_progress : NULL};
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static json_t *list_of_sizes(const size_t *x, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, hv_json_num((double)x[i]));
    return list;
}

static json_t *list_of_numbers(const double *x, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, hv_json_num(x[i]));
    return list;
}

static enum hv_status write_lp(const struct hv_partition *p, const struct hv_partition_result *r,
                               const char *file, struct hv_err *err)
{
    struct hv_str text = {0};
    size_t n = strlen(file);
    bool mps = n > 4 && strcmp(file + n - 4, ".mps") == 0;
    enum hv_status st = hv_certify_write_lp(p, r, mps, &text, err);
    if (st == HV_OK)
        st = hv_file_write(file, hv_str_cstr(&text), text.n, err);
    hv_str_free(&text);
    return st;
}

static enum hv_status solve_chain(const struct hv_partition *p, const struct arguments *a,
                                  struct hv_arena *arena, struct answer *out, struct hv_err *err)
{
    const struct hv_part_limits limits = limits_of(a);
    struct hv_partition_result r;
    double start = seconds_now();
    enum hv_status st = hv_partition_solve(p, &limits, arena, &r, err);
    if (st != HV_OK)
        return st;
    out->seconds = seconds_now() - start;
    TAKE(out, r);
    out->stopped = r.stopped;
    if (!r.feasible)
        return HV_OK;
    if (a->certify && hv_certify_applies(p)) {
        hv_str_adds(&out->certificate, "; ");
        hv_certify_chain(p, &r, a->time_limit_s, &out->certificate);
    }
    st = a->write_lp ? write_lp(p, &r, a->write_lp, err) : HV_OK;
    if (st != HV_OK)
        return st;
    out->solution = json_object();
    json_object_set_new(out->solution, "cut", list_of_sizes(r.cut, r.n_stages));
    if (p->free_order)
        json_object_set_new(out->solution, "order", list_of_sizes(r.order, r.n_stages));
    json_object_set_new(out->solution, "stage_ms", list_of_numbers(r.value, r.n_stages));
    return HV_OK;
}

static enum hv_status solve_split(const struct hv_instance *in, struct hv_arena *arena,
                                  struct answer *out, struct hv_err *err)
{
    struct hv_distribution d;
    double start = seconds_now();
    enum hv_status st = hv_distribute_minmax(in->shares, in->n_shares, in->total, arena, &d, err);
    if (st != HV_OK)
        return st;
    out->seconds = seconds_now() - start;
    TAKE(out, d);
    if (!d.feasible)
        return HV_OK;
    json_t *counts = json_array();
    for (size_t i = 0; i < in->n_shares; i++)
        json_array_append_new(counts, json_integer(d.count[i]));
    out->solution = json_object();
    json_object_set_new(out->solution, "counts", counts);
    return HV_OK;
}

static enum hv_status solve_dag(const struct hv_dag *g, const struct arguments *a,
                                struct hv_arena *arena, struct answer *out, struct hv_err *err)
{
    const struct hv_part_limits limits = limits_of(a);
    struct hv_dag_result r;
    double start = seconds_now();
    enum hv_status st = hv_dag_solve(g, &limits, arena, &r, err);
    if (st != HV_OK)
        return st;
    out->seconds = seconds_now() - start;
    TAKE(out, r);
    out->stopped = r.stopped;
    if (!r.feasible)
        return HV_OK;
    out->solution = json_object();
    json_object_set_new(out->solution, "device", list_of_sizes(r.device, g->n_nodes));
    json_object_set_new(out->solution, "load",
                        list_of_numbers(r.load, g->n_accelerators + g->n_cpus));
    json_object_set_new(out->solution, "contiguous", hv_json_num(r.contiguous));
    return HV_OK;
}

static json_t *answer_tree(const struct answer *w)
{
    json_t *tree = json_object();
    json_object_set_new(tree, "objective", hv_json_num(w->objective));
    json_object_set_new(tree, "bound", hv_json_num(w->bound));
    json_object_set_new(tree, "optimal", json_boolean(w->feasible && w->proven));
    if (w->stopped)
        json_object_set_new(tree, "stopped", json_true());
    json_object_set(tree, "solution", w->solution ? w->solution : json_null());
    json_object_set_new(tree, "seconds", hv_json_num(w->seconds));
    json_object_set_new(tree, "method", json_string(w->method));
    json_object_set_new(tree, "certificate", json_string(hv_str_cstr(&w->certificate)));
    return tree;
}

static void print_text(const struct answer *w, struct hv_str *out)
{
    char num[HV_FMT_CAP];
    if (w->feasible) {
        hv_str_addf(out, "objective    %s%s\n", hv_fmt_double(num, sizeof num, w->objective),
                    w->proven ? " (optimal)" : "");
        hv_str_addf(out, "bound        %s\n",
                    hv_known(w->bound) ? hv_fmt_double(num, sizeof num, w->bound) : "–");
        hv_str_adds(out, "solution     ");
        hv_json_write(out, w->solution, false);
        hv_str_addc(out, '\n');
    } else {
        hv_str_adds(out, "objective    –\n");
    }
    hv_str_addf(out, "time         %s\n", hv_fmt_seconds(num, sizeof num, w->seconds));
    hv_str_addf(out, "method       %s\n", w->method);
    hv_str_addf(out, "certificate  %s\n", hv_str_cstr(&w->certificate));
}

static enum hv_status print_answer(const struct answer *w, bool json, struct hv_err *err)
{
    if (json)
        return hv_cli_print_json(answer_tree(w), err);
    struct hv_str out = {0};
    print_text(w, &out);
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

static enum hv_status solve_any(const struct hv_instance *in, const struct arguments *a,
                                struct hv_arena *arena, struct answer *out, struct hv_err *err)
{
    switch (in->kind) {
    case HV_INSTANCE_CHAIN:
        return solve_chain(&in->chain, a, arena, out, err);
    case HV_INSTANCE_DAG:
        return solve_dag(&in->dag, a, arena, out, err);
    case HV_INSTANCE_DISTRIBUTE:
        return solve_split(in, arena, out, err);
    }
    return HV_EINTERNAL;
}

static enum hv_status read_instance(const char *file, struct hv_instance *in, struct hv_err *err)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    enum hv_status st = hv_file_read(file, &text, err);
    if (st == HV_OK)
        st = hv_json_parse(&json, hv_str_cstr(&text), text.n, file, err);
    if (st == HV_OK)
        st = hv_instance_read(in, &json, err);
    hv_json_free(&json);
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_solve(struct hv_args *args, struct hv_err *err)
{
    struct arguments a = {.write_lp = hv_args_text(args, "write-lp", NULL),
                          .time_limit_s = hv_args_number(args, "time-limit", 0),
                          .certify = hv_args_has(args, "certify"),
                          .progress = isatty(STDERR_FILENO) && !hv_args_has(args, "quiet")};
    struct hv_instance in = {.name = ""};
    struct hv_arena arena = {0};
    struct answer w = {.objective = HV_UNKNOWN, .bound = HV_UNKNOWN, .method = ""};
    enum hv_status st = read_instance(args->positional[0], &in, err);
    if (st == HV_OK)
        st = solve_any(&in, &a, &arena, &w, err);
    if (a.progress)
        fputs("\r\033[K", stderr);
    if (st == HV_OK) {
        st = print_answer(&w, hv_args_has(args, "json"), err);
        if (st == HV_OK && w.stopped)
            st = hv_err_set(err, HV_ESTOPPED, "the time limit ended the search");
        else if (st == HV_OK && !w.feasible)
            st = hv_err_set(err, HV_ENO, "no solution: %s", hv_str_cstr(&w.certificate));
    }
    json_decref(w.solution);
    hv_str_free(&w.certificate);
    hv_arena_free(&arena);
    hv_instance_free(&in);
    return st;
}
