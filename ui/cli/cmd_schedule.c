/*
 * `hetviz schedule`: prints the order of every rank, its time and its memory. Only arguments and
 * printing; schedules and timing are solver/sim's.
 */
#include "ui/cli/cmd_schedule.h"

#include "solver/base/json.h"
#include "solver/base/units.h"
#include "solver/sim/pipeline.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* widest Gantt chart, in characters of time */
#define GANTT_COLUMNS 120

struct times {
    double f, b, w, c;
};

struct arguments {
    const char *name;
    int64_t p, m, v; /* 0 = not given */
    const char *options[HV_SCHEDULE_OPTIONS_MAX * 4];
    size_t n_options;
    struct times times, plan_times;
    bool has_plan_times, json, gantt;
};

/* everything that is printed */
struct result {
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_cost cost;
    struct hv_pipe_run run;
    int32_t *inflight;
};

static enum hv_status read_size(const char *flag, const char *text, int64_t *out,
                                struct hv_err *err)
{
    char *end = NULL;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || x < 1 || x > INT32_MAX) {
        return hv_err_set(err, HV_EUSAGE, "%s: expected a whole number of at least 1, found \"%s\"",
                          flag, text);
    }
    *out = x;
    return HV_OK;
}

static enum hv_status read_times(const char *flag, const char *text, struct times *out,
                                 struct hv_err *err)
{
    double x[4];
    const char *p = text;
    for (int i = 0; i < 4; i++) {
        char *end = NULL;
        x[i] = strtod(p, &end);
        if (end == p || !(x[i] >= 0 && x[i] <= 1e15) || *end != (i < 3 ? ',' : '\0')) {
            return hv_err_set(err, HV_EUSAGE,
                              "%s: expected four numbers f,b,w,c of at least 0, such as 1,1,1,0, "
                              "found \"%s\"",
                              flag, text);
        }
        p = end + 1;
    }
    *out = (struct times){x[0], x[1], x[2], x[3]};
    return HV_OK;
}

static enum hv_status add_option(struct arguments *a, const char *text, struct hv_err *err)
{
    if (!strchr(text, '=')) {
        return hv_err_set(err, HV_EUSAGE, "-o: expected KEY=VALUE, found \"%s\"", text);
    }
    if (a->n_options == HV_COUNT(a->options)) {
        return hv_err_set(err, HV_EUSAGE, "-o: more than %zu options", HV_COUNT(a->options));
    }
    a->options[a->n_options++] = text;
    return HV_OK;
}

static enum hv_status read_flag(struct arguments *a, const char *flag, const char *value,
                                struct hv_err *err)
{
    static const char *const flags[] = {"-p",      "-m",           "-v",     "-o",
                                        "--times", "--plan-times", "--json", "--gantt"};
    if (strcmp(flag, "-p") == 0) {
        return read_size(flag, value, &a->p, err);
    } else if (strcmp(flag, "-m") == 0) {
        return read_size(flag, value, &a->m, err);
    } else if (strcmp(flag, "-v") == 0) {
        return read_size(flag, value, &a->v, err);
    } else if (strcmp(flag, "-o") == 0) {
        return add_option(a, value, err);
    } else if (strcmp(flag, "--times") == 0) {
        return read_times(flag, value, &a->times, err);
    } else if (strcmp(flag, "--plan-times") == 0) {
        a->has_plan_times = true;
        return read_times(flag, value, &a->plan_times, err);
    }
    const char *near = hv_suggest(flag, flags, HV_COUNT(flags));
    return hv_err_set(err, HV_EUSAGE, "schedule: unknown option \"%s\"%s%s%s", flag,
                      near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static enum hv_status read_arguments(int argc, char **argv, struct arguments *a, struct hv_err *err)
{
    *a = (struct arguments){.times = {1, 1, 1, 0}};
    for (int i = 0; i < argc; i++) {
        enum hv_status st = HV_OK;
        if (strcmp(argv[i], "--json") == 0) {
            a->json = true;
        } else if (strcmp(argv[i], "--gantt") == 0) {
            a->gantt = true;
        } else if (argv[i][0] != '-') {
            if (a->name) {
                return hv_err_set(err, HV_EUSAGE, "schedule: one name, found \"%s\" and \"%s\"",
                                  a->name, argv[i]);
            }
            a->name = argv[i];
        } else {
            st = read_flag(a, argv[i], i + 1 < argc ? argv[i + 1] : "", err);
            i++;
        }
        if (st != HV_OK) {
            return st;
        }
    }
    if (!a->name || !a->p || !a->m) {
        return hv_err_set(err, HV_EUSAGE,
                          "usage: hetviz schedule NAME -p P -m M [-v V] [-o KEY=VALUE]… "
                          "[--times f,b,w,c] [--plan-times f,b,w,c] [--json|--gantt]");
    }
    return HV_OK;
}

static enum hv_status make_input(struct hv_arena *arena, const struct arguments *a,
                                 struct hv_schedule_input *in, struct hv_err *err)
{
    const struct hv_schedule_row *row;
    enum hv_status st = hv_schedule_find(a->name, &row, err);
    if (st != HV_OK) {
        return st;
    }
    hv_schedule_input_init(in, row, (int32_t)a->p, (int32_t)a->m);
    in->chunks = a->v ? (int32_t)a->v : row->chunks;
    struct times t = a->has_plan_times ? a->plan_times : a->times;
    in->cost = (struct hv_stage_cost){t.f, t.b, t.w};
    in->hop_s = t.c;
    for (size_t i = 0; i < a->n_options && st == HV_OK; i++) {
        const char *eq = strchr(a->options[i], '=');
        const char *key = hv_arena_strndup(arena, a->options[i], (size_t)(eq - a->options[i]));
        st = hv_schedule_set_option(in, key, eq + 1, err);
    }
    return st;
}

/* one table of durations for all stages */
static const double *stage_times(struct hv_arena *arena, int32_t n_stages, struct times t)
{
    double *x = hv_arena_new(arena, double, (size_t)n_stages *HV_OP_KIND_N);
    for (int32_t s = 0; s < n_stages; s++) {
        double *row = x + (size_t)s * HV_OP_KIND_N;
        row[HV_OP_F] = row[HV_OP_R] = t.f;
        row[HV_OP_B] = t.b;
        row[HV_OP_W] = t.w;
        row[HV_OP_BW] = t.b + t.w;
    }
    return x;
}

static enum hv_status compute(struct hv_arena *arena, const struct arguments *a, struct result *r,
                              struct hv_err *err)
{
    struct hv_schedule_input in;
    enum hv_status st = make_input(arena, a, &in, err);
    if (st == HV_OK) {
        st = hv_schedule_make(arena, &in, &r->s, err);
    }
    if (st == HV_OK) {
        st = hv_pipe_compile(arena, &r->s, &r->g, err);
    }
    if (st != HV_OK) {
        return st;
    }
    r->cost = (struct hv_pipe_cost){.stage_s = stage_times(arena, r->s.n_stages, a->times),
                                    .hop_all_s = a->times.c};
    hv_pipe_run_new(arena, &r->g, &r->run);
    hv_pipe_time(&r->g, &r->cost, &r->run);
    r->inflight = hv_arena_new(arena, int32_t, (size_t)r->s.n_ranks);
    hv_schedule_peak_inflight(&r->s, r->inflight);
    return HV_OK;
}

static json_t *json_ints(const int32_t *x, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_integer(x[i]));
    }
    return list;
}

static json_t *json_ranks(const struct hv_schedule *s)
{
    json_t *ranks = json_array();
    struct hv_str token = {0};
    for (int32_t r = 0; r < s->n_ranks; r++) {
        json_t *list = json_array();
        for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1];) {
            hv_str_clear(&token);
            i += hv_schedule_add_token(s, i, &token);
            json_array_append_new(list, json_string(hv_str_cstr(&token)));
        }
        json_array_append_new(ranks, list);
    }
    hv_str_free(&token);
    return ranks;
}

/* one list, or one per direction */
static json_t *json_placement(const struct hv_schedule *s)
{
    if (s->n_pipes == 1) {
        return json_ints(s->stage_to_rank, (size_t)s->n_stages);
    }
    json_t *list = json_array();
    for (int32_t d = 0; d < s->n_pipes; d++) {
        json_array_append_new(list, json_ints(s->stage_to_rank + (size_t)d * (size_t)s->n_stages,
                                              (size_t)s->n_stages));
    }
    return list;
}

static void print_json(const struct arguments *a, const struct result *r)
{
    const struct hv_schedule *s = &r->s;
    size_t p = (size_t)s->n_ranks;
    json_t *root = json_object(), *times = json_object();
    json_object_set_new(times, "f", hv_json_num(a->times.f));
    json_object_set_new(times, "b", hv_json_num(a->times.b));
    json_object_set_new(times, "w", hv_json_num(a->times.w));
    json_object_set_new(times, "c", hv_json_num(a->times.c));
    json_object_set_new(root, "schedule", json_string(a->name));
    json_object_set_new(root, "p", json_integer(s->n_ranks));
    json_object_set_new(root, "m", json_integer(s->n_micro_batches));
    json_object_set_new(root, "v", json_integer(s->n_stages / s->n_ranks));
    json_object_set_new(root, "times", times);
    json_object_set_new(root, "ranks", json_ranks(s));
    json_object_set_new(root, "stage_to_rank", json_placement(s));
    json_object_set_new(root, "makespan", hv_json_num(r->run.makespan_s));
    json_object_set_new(root, "longest_span", hv_json_num(r->run.longest_span_s));
    json_object_set_new(root, "bubble", hv_json_num(r->run.span_bubble_frac));
    json_object_set_new(root, "idle_share", hv_json_num(r->run.bubble_frac));
    json_object_set_new(root, "peak_inflight", json_ints(r->inflight, p));
    json_object_set_new(root, "weight_versions", json_ints(s->weight_versions, p));
    struct hv_str out = {0};
    hv_json_write(&out, root, true);
    fwrite(out.p, 1, out.n, stdout);
    hv_str_free(&out);
    json_decref(root);
}

/* '0'…'9' for forwards, 'a'…'j' for backwards, both by the micro-batch's last digit */
static char gantt_char(const struct hv_op *op)
{
    switch ((enum hv_op_kind)op->kind) {
    case HV_OP_F:
        return (char)('0' + op->mb % 10);
    case HV_OP_B:
    case HV_OP_BW:
        return (char)('a' + op->mb % 10);
    case HV_OP_W:
        return 'w';
    case HV_OP_R:
        return 'r';
    case HV_OP_KIND_N:
        break;
    }
    return '?';
}

/* one column per unit of time as long as that fits, else the picture is scaled */
static void print_gantt(const struct result *r)
{
    double end = r->run.makespan_s;
    double unit = end > GANTT_COLUMNS ? end / GANTT_COLUMNS : 1;
    int columns = (int)(end / unit + 0.5);
    for (int32_t rank = 0; rank < r->s.n_ranks; rank++) {
        int32_t n = r->g.rank_node_at[rank], to = r->g.rank_node_at[rank + 1];
        printf("%5d  ", rank);
        for (int c = 0; c < columns; c++) {
            double t = (c + 0.5) * unit;
            while (n < to && r->run.node_end_s[n] <= t) {
                n++;
            }
            bool busy = n < to && r->run.node_start_s[n] <= t;
            putchar(busy ? gantt_char(&r->s.ops[hv_pipe_first_op(&r->g, n)]) : '.');
        }
        putchar('\n');
    }
    char buf[HV_FMT_CAP];
    printf("       one column = %s; 0-9 forward, a-j backward (micro-batch mod 10), w weight "
           "gradient, r recompute, . idle\n",
           hv_fmt_double(buf, sizeof buf, unit));
}

static void print_summary(const struct arguments *a, const struct result *r, struct hv_arena *arena)
{
    const struct hv_schedule *s = &r->s;
    char b1[HV_FMT_CAP], b2[HV_FMT_CAP], b3[HV_FMT_CAP];
    printf("%s: p = %d, m = %d, v = %d; times f %g, b %g, w %g, hop %g\n", a->name, s->n_ranks,
           s->n_micro_batches, s->n_stages / s->n_ranks, a->times.f, a->times.b, a->times.w,
           a->times.c);
    printf("makespan %s, longest span of a rank %s, bubble %s (of that span)\n",
           hv_fmt_double(b1, sizeof b1, r->run.makespan_s),
           hv_fmt_double(b2, sizeof b2, r->run.longest_span_s),
           hv_fmt_percent(b3, sizeof b3, r->run.span_bubble_frac));
    struct hv_pipe_rank *idle = hv_arena_new(arena, struct hv_pipe_rank, (size_t)s->n_ranks);
    hv_pipe_idle(&r->g, &r->cost, &r->run, idle);
    printf(" rank  in flight  weights      busy   warm-up    steady cool-down       hop\n");
    for (int32_t i = 0; i < s->n_ranks; i++) {
        printf("%5d %10d %8d %9.6g %9.6g %9.6g %9.6g %9.6g\n", i, r->inflight[i],
               s->weight_versions[i], idle[i].busy_s, idle[i].warmup_s, idle[i].steady_s,
               idle[i].cooldown_s, idle[i].comm_s);
    }
}

enum hv_status hv_cmd_schedule(int argc, char **argv, struct hv_err *err)
{
    struct arguments a;
    struct hv_arena arena = {0};
    struct result r = {0};
    enum hv_status st = read_arguments(argc, argv, &a, err);
    if (st == HV_OK) {
        st = compute(&arena, &a, &r, err);
    }
    if (st == HV_OK && a.json) {
        print_json(&a, &r);
    } else if (st == HV_OK) {
        if (!a.gantt) {
            print_summary(&a, &r, &arena);
        }
        print_gantt(&r);
    }
    hv_arena_free(&arena);
    return st;
}
