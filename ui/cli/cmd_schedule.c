/*
 * `hetviz schedule`: prints the order of every rank, its time and its memory. Only arguments and
 * printing; schedules and timing are solver/sim's.
 */
#include "scripting/order.h"
#include "solver/base/file.h"
#include "solver/base/json.h"
#include "solver/base/units.h"
#include "solver/io/export/gantt.h"
#include "solver/sim/pipeline_play.h"
#include "solver/sim/steady.h"
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
    double jitter;
    int64_t look_ahead, cap, seed; /* 0 = none */
};

/* everything that is printed */
struct result {
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_cost cost;
    struct hv_pipe_run run;
    struct hv_pipe_rank *idle;
    struct hv_steady steady; /* micro_batches 0: there is none */
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
                            .v = (int64_t)hv_args_number(args, "chunks", 0),
                            .jitter = hv_args_number(args, "jitter", 0),
                            .look_ahead = (int64_t)hv_args_number(args, "look-ahead", 0),
                            .cap = (int64_t)hv_args_number(args, "cap", 0),
                            .seed = (int64_t)hv_args_number(args, "seed", 1)};
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

/* the plugin with order(p) of that name, or of that file where it ends in .lua; NULL = there is
 * none
 */
static enum hv_status find_plugin(const char *name, struct hv_plugins *all,
                                  const struct hv_plugin **out, struct hv_err *err)
{
    size_t n = strlen(name);
    *out = NULL;
    if (n > 4 && strcmp(name + n - 4, ".lua") == 0) {
        enum hv_status st = hv_plugins_read_file(all, name, err);
        *out = st == HV_OK ? &all->items[0] : NULL;
    } else if (hv_plugins_read(all, NULL) == HV_OK) {
        *out = hv_plugins_find(all, name);
    }
    if (*out && !(*out)->has[HV_PLUGIN_ORDER] && !(*out)->error) {
        return hv_err_set(err, HV_EUSAGE, "%s is a strategy without order(p), not a schedule",
                          name);
    }
    return *out ? HV_OK : HV_EUSAGE;
}

/* a schedule written in Lua: its order, as `explicit` takes it */
static enum hv_status lua_input(struct hv_arena *arena, const struct arguments *a,
                                const struct hv_plugin *plugin, struct hv_schedule_input *in,
                                struct hv_err *err)
{
    const struct hv_schedule_row *row;
    json_t *options = NULL;
    enum hv_status st = hv_schedule_find("explicit", &row, err);
    if (st == HV_OK) {
        st = hv_options_parse(plugin, a->options, a->n_options, &options, err);
    }
    if (st == HV_OK && a->m > HV_SCHEDULE_MB_MAX) {
        st = hv_err_set(err, HV_ELIMIT, "schedule %s: at most %d micro-batches", a->name,
                        HV_SCHEDULE_MB_MAX);
    }
    if (st == HV_OK) {
        struct times t = a->has_plan_times ? a->plan_times : a->times;
        hv_schedule_input_init(in, row, (int32_t)a->p, (int32_t)a->m);
        in->chunks = a->v ? (int32_t)a->v : 1;
        const struct hv_order_request r = {.plugin = plugin,
                                           .options = options,
                                           .ranks = in->ranks,
                                           .micro_batches = in->micro_batches,
                                           .chunks = in->chunks,
                                           .cost = {t.f, t.b, t.w},
                                           .hop_s = t.c,
                                           .seed = (uint64_t)a->seed};
        st = hv_run_order(arena, &r, &in->order, err);
    }
    json_decref(options);
    return st;
}

static enum hv_status make_input(struct hv_arena *arena, const struct arguments *a,
                                 struct hv_schedule_input *in, struct hv_err *err)
{
    const struct hv_schedule_row *row;
    enum hv_status st = hv_schedule_find(a->name, &row, err);
    if (st != HV_OK) {
        struct hv_plugins all = {0};
        struct hv_err why = {0};
        const struct hv_plugin *plugin;
        enum hv_status found = find_plugin(a->name, &all, &plugin, &why);
        if (found == HV_OK) {
            st = lua_input(arena, a, plugin, in, err);
        } else if (why.text[0] != '\0') {
            *err = why;
            st = found;
        }
        hv_plugins_free(&all);
        return st;
    }
    /* beyond the limit only the check of sizes sees it */
    hv_schedule_input_init(in, row, (int32_t)a->p,
                           (int32_t)(a->m > HV_SCHEDULE_MB_MAX ? HV_SCHEDULE_MB_MAX + 1 : a->m));
    struct times t = a->has_plan_times ? a->plan_times : a->times;
    in->cost = (struct hv_stage_cost){t.f, t.b, t.w};
    in->hop_s = t.c;
    for (size_t i = 0; i < a->n_options && st == HV_OK; i++) {
        const char *eq = strchr(a->options[i], '=');
        const char *key = hv_arena_strndup(arena, a->options[i], (size_t)(eq - a->options[i]));
        st = hv_schedule_set_option(in, key, eq + 1, err);
    }
    in->chunks = a->v ? (int32_t)a->v : hv_schedule_usual_chunks(in);
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

/* plays the order event by event and takes over what came out */
static enum hv_status play(struct hv_arena *arena, const struct arguments *a, struct result *r,
                           struct hv_err *err)
{
    size_t n = (size_t)r->s.n_stages, p = (size_t)r->s.n_ranks;
    double *one = hv_arena_new(arena, double, n), *limit = hv_arena_new(arena, double, p);
    double *kept = hv_arena_new(arena, double, n);
    double *start = hv_arena_new(arena, double, n *HV_OP_KIND_N);
    double *end = hv_arena_new(arena, double, n *HV_OP_KIND_N);
    for (size_t i = 0; i < n; i++) {
        one[i] = kept[i] = 1; /* an activation counts until its W or BW, as in peak_inflight */
    }
    for (size_t i = 0; i < p; i++) {
        limit[i] = (double)a->cap;
    }
    hv_pipe_memory_simple(&r->s, one, kept, NULL, start, end);
    struct hv_pipe_memory memory = {.start_bytes = start, .end_bytes = end};
    struct hv_pipe_play how = {.jitter = a->jitter,
                               .seed = (uint64_t)a->seed,
                               .look_ahead = (int32_t)a->look_ahead,
                               .jump = 1u << HV_OP_F | 1u << HV_OP_W,
                               .limit_bytes = a->cap > 0 ? limit : NULL,
                               .memory = &memory};
    struct hv_pipe_run run;
    struct hv_pipe strict = r->g;
    hv_pipe_run_new(arena, &r->g, &run);
    enum hv_status st = hv_pipe_play(&strict, &r->cost, &how, &run, err);
    if (st == HV_OK) {
        st = hv_pipe_played(arena, &strict, &run, &r->g, &r->run, err);
        r->s = r->g.s;
    }
    return st;
}

static enum hv_status compute(struct hv_arena *arena, const struct arguments *a,
                              const struct hv_schedule_input *in, struct result *r,
                              struct hv_err *err)
{
    enum hv_status st = hv_schedule_make(arena, in, &r->s, err);
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
    if (hv_pipe_steady(&r->g, &r->cost, &r->steady, NULL) != HV_OK) {
        r->steady.micro_batches = 0;
    }
    if (a->jitter > 0 || a->look_ahead > 0 || a->cap > 0) {
        st = play(arena, a, r, err);
        if (st != HV_OK) {
            return st;
        }
    }
    r->idle = hv_arena_new(arena, struct hv_pipe_rank, (size_t)r->s.n_ranks);
    hv_pipe_idle(&r->g, &r->cost, &r->run, r->idle);
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

static json_t *json_times(struct times t)
{
    json_t *times = json_object();
    json_object_set_new(times, "f", hv_json_num(t.f));
    json_object_set_new(times, "b", hv_json_num(t.b));
    json_object_set_new(times, "w", hv_json_num(t.w));
    json_object_set_new(times, "c", hv_json_num(t.c));
    return times;
}

/* idle time of each rank by cause */
static json_t *json_idle(const struct result *r)
{
    static const char *const keys[] = {"warm_up", "steady", "cool_down", "hop"};
    json_t *root = json_object();
    for (size_t k = 0; k < HV_COUNT(keys); k++) {
        json_t *list = json_array();
        for (int32_t i = 0; i < r->s.n_ranks; i++) {
            const struct hv_pipe_rank *x = &r->idle[i];
            const double by[] = {x->warmup_s, x->steady_s, x->cooldown_s, x->comm_s};
            json_array_append_new(list, hv_json_num(by[k]));
        }
        json_object_set_new(root, keys[k], list);
    }
    return root;
}

static json_t *json_steady(const struct hv_steady *s)
{
    if (s->micro_batches == 0) {
        return json_null();
    }
    json_t *root = json_object();
    json_object_set_new(root, "per_micro_batch", hv_json_num(s->per_micro_batch_s));
    json_object_set_new(root, "repeats_after", json_integer(s->micro_batches));
    json_object_set_new(root, "paced_by_rank", s->rank < 0 ? json_null() : json_integer(s->rank));
    json_object_set_new(root, "ranks_in_its_circle", json_integer(s->n_ranks));
    return root;
}

static json_t *result_json(const struct arguments *a, const struct result *r)
{
    const struct hv_schedule *s = &r->s;
    size_t p = (size_t)s->n_ranks;
    json_t *root = json_object();
    json_object_set_new(root, "schedule", json_string(a->name));
    json_object_set_new(root, "p", json_integer(s->n_ranks));
    json_object_set_new(root, "m", json_integer(s->n_micro_batches));
    json_object_set_new(root, "v", json_integer(s->n_stages / s->n_ranks));
    json_object_set_new(root, "times", json_times(a->times));
    json_object_set_new(root, "ranks", json_ranks(s));
    json_object_set_new(root, "stage_to_rank", json_placement(s));
    json_object_set_new(root, "makespan", hv_json_num(r->run.makespan_s));
    json_object_set_new(root, "longest_span", hv_json_num(r->run.longest_span_s));
    json_object_set_new(root, "bubble", hv_json_num(r->run.span_bubble_frac));
    json_object_set_new(root, "idle_share", hv_json_num(r->run.bubble_frac));
    json_object_set_new(root, "idle", json_idle(r));
    json_object_set_new(root, "steady_state", json_steady(&r->steady));
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

static void add_summary(const struct result *r, struct hv_str *out)
{
    const struct hv_schedule *s = &r->s;
    const struct hv_pipe_rank *idle = r->idle;
    double warm = 0, steady = 0, cool = 0, hop = 0, all = r->run.makespan_s * s->n_ranks;
    for (int32_t i = 0; i < s->n_ranks && all > 0; i++) {
        warm += 100 * idle[i].warmup_s / all;
        steady += 100 * idle[i].steady_s / all;
        cool += 100 * idle[i].cooldown_s / all;
        hop += 100 * idle[i].comm_s / all;
    }
    hv_str_addf(out,
                "idle %.1f%% of the makespan: warm-up %.1f%%, between %.1f%%, cool-down %.1f%%, "
                "waiting for hops %.1f%%\n",
                warm + steady + cool + hop, warm, steady, cool, hop);
    if (r->steady.micro_batches > 0) {
        const struct hv_steady *x = &r->steady;
        hv_str_addf(out, "steady state %.6g per micro-batch, paced by rank %d%s\n",
                    x->per_micro_batch_s, x->rank,
                    x->n_ranks > 1 ? " and what it waits for on others" : " alone");
    }
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
    add_headline(a, r, &out);
    if (!hv_args_has(args, "gantt")) {
        add_summary(r, &out);
    }
    add_gantt(r, (int)hv_args_number(args, "width", GANTT_COLUMNS), &out);
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

/* more micro-batches than are laid out: their time from the steady state */
static enum hv_status show_extrapolated(struct hv_args *args, const struct arguments *a,
                                        const struct hv_schedule_input *in, struct hv_arena *arena,
                                        struct hv_err *err)
{
    struct hv_pipe_cost cost = {.stage_s = stage_times(arena, in->ranks * in->chunks, a->times),
                                .hop_all_s = a->times.c};
    struct hv_extrapolated x;
    enum hv_status st = hv_schedule_extrapolate(in, &cost, a->m, &x, err);
    if (st != HV_OK) {
        return st;
    }
    double work = (double)a->m * in->chunks * (a->times.f + a->times.b + a->times.w);
    double bubble = x.makespan_s > 0 ? 1 - work / x.makespan_s : 0;
    if (hv_args_has(args, "json")) {
        json_t *root = json_object();
        json_object_set_new(root, "schedule", json_string(a->name));
        json_object_set_new(root, "p", json_integer(in->ranks));
        json_object_set_new(root, "m", json_integer(a->m));
        json_object_set_new(root, "v", json_integer(in->chunks));
        json_object_set_new(root, "times", json_times(a->times));
        json_object_set_new(root, "makespan", hv_json_num(x.makespan_s));
        json_object_set_new(root, "idle_share", hv_json_num(bubble));
        json_object_set_new(root, "extrapolated_from", json_integer(x.from_micro_batches));
        json_object_set_new(root, "exact", json_boolean(x.exact));
        json_object_set_new(root, "steady_state", json_steady(&x.steady));
        return hv_cli_print_json(root, err);
    }
    struct hv_str out = {0};
    hv_str_addf(&out, "%s: p = %d, m = %lld, v = %d; too many to lay out\n", a->name, in->ranks,
                (long long)a->m, in->chunks);
    hv_str_addf(&out,
                "makespan %.15g, idle %.3g%% of it; %s from m = %d and %.6g per micro-batch\n",
                x.makespan_s, 100 * bubble, x.exact ? "exact," : "estimated", x.from_micro_batches,
                x.steady.per_micro_batch_s);
    st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

enum hv_status hv_cli_schedule(struct hv_args *args, struct hv_err *err)
{
    struct arguments a;
    struct hv_arena arena = {0};
    struct result r = {0};
    struct hv_schedule_input in = {0};
    enum hv_status st = read_arguments(args, &a, err);
    if (st == HV_OK) {
        st = make_input(&arena, &a, &in, err);
    }
    bool drawn = hv_args_has(args, "gantt") || hv_args_has(args, "svg");
    if (st == HV_OK && a.m > HV_SCHEDULE_MB_MAX && !drawn) {
        st = show_extrapolated(args, &a, &in, &arena, err);
        hv_arena_free(&arena);
        return st;
    }
    if (st == HV_OK) {
        st = compute(&arena, &a, &in, &r, err);
    }
    if (st == HV_OK) {
        st = show(args, &a, &r, &arena, err);
    }
    hv_arena_free(&arena);
    return st;
}
