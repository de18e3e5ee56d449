/*
 * `hetviz schedule`: prints the order of every rank, its time and its memory. Only arguments and
 * printing; schedules and timing are solver/sim's.
 */
#include "scripting/order.h"
#include "solver/base/file.h"
#include "solver/base/json.h"
#include "solver/base/units.h"
#include "solver/io/export/gantt.h"
#include "solver/sim/pipeline.h"
#include "ui/cli/cli.h"
#include <string.h>

/* widest Gantt chart, in characters of time */
#define GANTT_COLUMNS 120

struct times {
    double f, b, w, c;
};

struct arguments {
    const char *name;
    int64_t p, m, v; /* v 0 = not given */
    const char **options;
    size_t n_options;
    struct times times, plan_times;
    bool has_plan_times;
};

/* everything that is printed */
struct result {
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_cost cost;
    struct hv_pipe_run run;
    int32_t *inflight;
};

static enum hv_status read_times(struct hv_args *args, const char *option, struct times *out,
                                 struct hv_err *err)
{
    size_t n = 0;
    const double *x = hv_args_numbers(args, option, &n);
    if (n != 4) {
        return hv_err_set(err, HV_EUSAGE,
                          "--%s: expected four numbers f,b,w,c such as 1,1,1,0, found %zu", option,
                          n);
    }
    *out = (struct times){x[0], x[1], x[2], x[3]};
    return HV_OK;
}

static enum hv_status read_arguments(struct hv_args *args, struct arguments *a, struct hv_err *err)
{
    *a = (struct arguments){.name = args->positional[0],
                            .times = {1, 1, 1, 0},
                            .p = (int64_t)hv_args_number(args, "ranks", 0),
                            .m = (int64_t)hv_args_number(args, "micro-batches", 0),
                            .v = (int64_t)hv_args_number(args, "chunks", 0)};
    a->options = hv_args_all(args, "option", &a->n_options);
    a->has_plan_times = hv_args_has(args, "plan-times");
    enum hv_status st = HV_OK;
    if (hv_args_has(args, "times")) {
        st = read_times(args, "times", &a->times, err);
    }
    if (st == HV_OK && a->has_plan_times) {
        st = read_times(args, "plan-times", &a->plan_times, err);
    }
    return st;
}

/* the order of a plugin that has order() */
static enum hv_status make_plugin_order(struct hv_arena *arena, const struct arguments *a,
                                        const struct hv_plugin *p, struct hv_schedule_input *in,
                                        struct hv_err *err)
{
    size_t n = (size_t)in->ranks * (size_t)in->chunks;
    struct hv_stage_cost *costs = hv_arena_new(arena, struct hv_stage_cost, n);
    struct hv_order_text *order = NULL;
    json_t *options = NULL;
    for (size_t i = 0; i < n; i++) {
        costs[i] = in->cost;
    }
    enum hv_status st = hv_options_parse(p, a->options, a->n_options, &options, err);
    if (st == HV_OK) {
        const struct hv_order_query q = {.ranks = in->ranks,
                                         .micro_batches = in->micro_batches,
                                         .chunks = in->chunks,
                                         .costs = costs,
                                         .hop_s = in->hop_s,
                                         .options = options,
                                         .seed = 1};
        st = hv_order_make(p, &q, arena, &order, err);
    }
    json_decref(options);
    in->order = order;
    return st;
}

/* a name that no schedule has may be a plugin's; the error stays that of the schedules */
static enum hv_status find_schedule(const struct arguments *a, const struct hv_schedule_row **row,
                                    struct hv_plugins *plugins, const struct hv_plugin **plugin,
                                    struct hv_err *err)
{
    enum hv_status st = hv_schedule_find(a->name, row, err);
    if (st == HV_OK || hv_plugins_read(plugins, NULL) != HV_OK) {
        return st;
    }
    const struct hv_plugin *p = hv_plugins_find(plugins, a->name);
    if (p == NULL || p->error != NULL || !p->has[HV_PLUGIN_ORDER]) {
        return p != NULL && p->error != NULL ? hv_err_set(err, HV_EPLUGIN, "%s", p->error) : st;
    }
    *plugin = p;
    return hv_schedule_find("explicit", row, err);
}

static enum hv_status make_input(struct hv_arena *arena, const struct arguments *a,
                                 struct hv_schedule_input *in, struct hv_err *err)
{
    const struct hv_schedule_row *row = NULL;
    struct hv_plugins plugins = {0};
    const struct hv_plugin *plugin = NULL;
    enum hv_status st = find_schedule(a, &row, &plugins, &plugin, err);
    if (st == HV_OK) {
        hv_schedule_input_init(in, row, (int32_t)a->p, (int32_t)a->m);
        struct times t = a->has_plan_times ? a->plan_times : a->times;
        in->cost = (struct hv_stage_cost){t.f, t.b, t.w};
        in->hop_s = t.c;
    }
    for (size_t i = 0; i < a->n_options && st == HV_OK && plugin == NULL; i++) {
        const char *eq = strchr(a->options[i], '=');
        const char *key = hv_arena_strndup(arena, a->options[i], (size_t)(eq - a->options[i]));
        st = hv_schedule_set_option(in, key, eq + 1, err);
    }
    if (st == HV_OK) {
        in->chunks = a->v ? (int32_t)a->v : hv_schedule_usual_chunks(in);
        if (plugin != NULL) {
            st = make_plugin_order(arena, a, plugin, in, err);
        }
    }
    hv_plugins_free(&plugins);
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

static json_t *result_json(const struct arguments *a, const struct result *r)
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
    return root;
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
static void add_gantt(const struct result *r, int most_columns, struct hv_str *out)
{
    double end = r->run.makespan_s;
    double unit = end > most_columns ? end / most_columns : 1;
    int columns = (int)(end / unit + 0.5);
    for (int32_t rank = 0; rank < r->s.n_ranks; rank++) {
        int32_t n = r->g.rank_node_at[rank], to = r->g.rank_node_at[rank + 1];
        hv_str_addf(out, "%5d  ", rank);
        for (int c = 0; c < columns; c++) {
            double t = (c + 0.5) * unit;
            while (n < to && r->run.node_end_s[n] <= t) {
                n++;
            }
            bool busy = n < to && r->run.node_start_s[n] <= t;
            hv_str_addc(out, busy ? gantt_char(&r->s.ops[hv_pipe_first_op(&r->g, n)]) : '.');
        }
        hv_str_addc(out, '\n');
    }
    char buf[HV_FMT_CAP];
    hv_str_addf(out,
                "       one column = %s; 0-9 forward, a-j backward (micro-batch mod 10), w weight "
                "gradient, r recompute, . idle\n",
                hv_fmt_double(buf, sizeof buf, unit));
}

static void add_headline(const struct arguments *a, const struct result *r, struct hv_str *out)
{
    const struct hv_schedule *s = &r->s;
    char b1[HV_FMT_CAP], b2[HV_FMT_CAP], b3[HV_FMT_CAP];
    hv_str_addf(out, "%s: p = %d, m = %d, v = %d; times f %g, b %g, w %g, hop %g\n", a->name,
                s->n_ranks, s->n_micro_batches, s->n_stages / s->n_ranks, a->times.f, a->times.b,
                a->times.w, a->times.c);
    hv_str_addf(out, "makespan %s, longest span of a rank %s, bubble %s (of that span)\n",
                hv_fmt_double(b1, sizeof b1, r->run.makespan_s),
                hv_fmt_double(b2, sizeof b2, r->run.longest_span_s),
                hv_fmt_percent(b3, sizeof b3, r->run.span_bubble_frac));
}

static void add_summary(const struct arguments *a, const struct result *r, struct hv_arena *arena,
                        struct hv_str *out)
{
    const struct hv_schedule *s = &r->s;
    add_headline(a, r, out);
    struct hv_pipe_rank *idle = hv_arena_new(arena, struct hv_pipe_rank, (size_t)s->n_ranks);
    hv_pipe_idle(&r->g, &r->cost, &r->run, idle);
    hv_str_adds(out,
                " rank  in flight  weights      busy   warm-up    steady cool-down       hop\n");
    for (int32_t i = 0; i < s->n_ranks; i++) {
        hv_str_addf(out, "%5d %10d %8d %9.6g %9.6g %9.6g %9.6g %9.6g\n", i, r->inflight[i],
                    s->weight_versions[i], idle[i].busy_s, idle[i].warmup_s, idle[i].steady_s,
                    idle[i].cooldown_s, idle[i].comm_s);
    }
}

/* the timeline of bare ranks, for pictures */
static enum hv_status make_timeline(struct hv_arena *arena, const struct result *r,
                                    struct hv_timeline *t, struct hv_err *err)
{
    static const uint8_t kinds[HV_OP_KIND_N] = {HV_SPAN_F, HV_SPAN_B, HV_SPAN_W, HV_SPAN_BW,
                                                HV_SPAN_R};
    size_t n_ranks = (size_t)r->s.n_ranks;
    *t = (struct hv_timeline){.end_s = r->run.makespan_s};
    t->rows = hv_arena_new(arena, struct hv_timeline_row, n_ranks);
    t->ops = hv_arena_new(arena, struct hv_timeline_op, (size_t)r->g.n_nodes);
    struct hv_span *spans = hv_arena_new(arena, struct hv_span, (size_t)r->g.n_nodes);
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < n_ranks && st == HV_OK; i++) {
        size_t n = 0;
        for (int32_t k = r->g.rank_node_at[i]; k < r->g.rank_node_at[i + 1]; k++) {
            const struct hv_op *op = &r->s.ops[hv_pipe_first_op(&r->g, k)];
            t->ops[t->n_ops] = (struct hv_timeline_op){.stage = op->stage,
                                                       .micro_batch = op->mb,
                                                       .slice = op->slice,
                                                       .kind = kinds[op->kind]};
            spans[n++] = (struct hv_span){.start_s = r->run.node_start_s[k],
                                          .end_s = r->run.node_end_s[k],
                                          .id = (int32_t)t->n_ops++,
                                          .kind = kinds[op->kind]};
        }
        struct hv_timeline_row *row = &t->rows[t->n_rows++];
        row->multiplicity = 1;
        row->name = hv_arena_printf(arena, "rank %zu", i);
        row->layers = hv_arena_printf(arena, "%d in flight", r->inflight[i]);
        row->compute_lane = t->lanes.n;
        st = hv_lanes_add(arena, &t->lanes,
                          &(struct hv_lane){.name = row->name, .spans = spans, .n_spans = n}, err);
        row->link_lane = t->lanes.n;
        if (st == HV_OK) {
            st = hv_lanes_add(arena, &t->lanes, &(struct hv_lane){.name = row->name}, err);
        }
    }
    return st;
}

static enum hv_status write_svg(const struct hv_args *args, const struct arguments *a,
                                const struct result *r, struct hv_arena *arena, struct hv_err *err)
{
    struct hv_timeline t;
    enum hv_status st = make_timeline(arena, r, &t, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_str title = {0}, out = {0};
    add_headline(a, r, &title);
    char *line = hv_arena_strdup(arena, hv_str_cstr(&title)), *second = strchr(line, '\n');
    *second++ = '\0';
    second[strcspn(second, "\n")] = '\0';
    hv_gantt_svg(&t, &(struct hv_gantt_text){line, second},
                 (int)hv_args_number(args, "width", 1200), &out);
    st = hv_file_write(hv_args_text(args, "svg", "-"), hv_str_cstr(&out), out.n, err);
    hv_str_free(&title);
    hv_str_free(&out);
    return st;
}

static enum hv_status show(struct hv_args *args, const struct arguments *a, const struct result *r,
                           struct hv_arena *arena, struct hv_err *err)
{
    if (hv_args_has(args, "svg")) {
        return write_svg(args, a, r, arena, err);
    }
    if (hv_args_has(args, "json")) {
        return hv_cli_print_json(result_json(a, r), err);
    }
    struct hv_str out = {0};
    if (!hv_args_has(args, "gantt")) {
        add_summary(a, r, arena, &out);
    }
    add_gantt(r, (int)hv_args_number(args, "width", GANTT_COLUMNS), &out);
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

enum hv_status hv_cli_schedule(struct hv_args *args, struct hv_err *err)
{
    struct arguments a;
    struct hv_arena arena = {0};
    struct result r = {0};
    enum hv_status st = read_arguments(args, &a, err);
    if (st == HV_OK) {
        st = compute(&arena, &a, &r, err);
    }
    if (st == HV_OK) {
        st = show(args, &a, &r, &arena, err);
    }
    hv_arena_free(&arena);
    return st;
}
