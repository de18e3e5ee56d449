/*
 * Showing a schedule: text, JSON, pictures and trace. The character chart is in schedule_chart.c.
 */
#include "ui/cli/schedule_show.h"

#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include "solver/io/export/gantt.h"
#include "ui/cli/print.h"
#include <string.h>

/* default widths: of the chart without a terminal, and of pictures in pixels */
#define CHART_COLUMNS 120
#define PICTURE_PX    1200
/* width of the labels before the first column of time */
#define CHART_LABEL 7

/* ---- why ranks are idle */

enum { WARM_UP, STEADY, COOL_DOWN, HOP, CAUSES };
static const char *const cause_keys[CAUSES] = {"warm_up", "steady", "cool_down", "hop"};

static double idle_s(const struct hv_pipe_rank *x, size_t cause)
{
    const double by[CAUSES] = {[WARM_UP] = x->warmup_s,
                               [STEADY] = x->steady_s,
                               [COOL_DOWN] = x->cooldown_s,
                               [HOP] = x->comm_s};
    return by[cause];
}

/* share of the time of all ranks that is idle for one cause */
static double idle_frac(const struct hv_schedule_shown *r, size_t cause)
{
    double sum = 0, all = r->run.makespan_s * r->s.n_ranks;
    for (int32_t i = 0; i < r->s.n_ranks && all > 0; i++) {
        sum += idle_s(&r->idle[i], cause) / all;
    }
    return sum;
}

/* ---- JSON */

static json_t *json_ints(const int32_t *x, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_integer(x[i]));
    }
    return list;
}

static json_t *json_numbers(const double *x, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, hv_json_num(x[i]));
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

static json_t *json_times(struct hv_schedule_times t)
{
    json_t *times = json_object();
    json_object_set_new(times, "f", hv_json_num(t.f));
    json_object_set_new(times, "b", hv_json_num(t.b));
    json_object_set_new(times, "w", hv_json_num(t.w));
    json_object_set_new(times, "c", hv_json_num(t.c));
    return times;
}

/* idle time of each rank by cause */
static json_t *json_idle(const struct hv_schedule_shown *r)
{
    json_t *root = json_object();
    for (size_t k = 0; k < CAUSES; k++) {
        json_t *list = json_array();
        for (int32_t i = 0; i < r->s.n_ranks; i++) {
            json_array_append_new(list, hv_json_num(idle_s(&r->idle[i], k)));
        }
        json_object_set_new(root, cause_keys[k], list);
    }
    return root;
}

/* the same of all ranks together, as shares of the makespan: they sum to idle_share */
static json_t *json_shares(const struct hv_schedule_shown *r)
{
    json_t *root = json_object();
    for (size_t k = 0; k < CAUSES; k++) {
        json_object_set_new(root, cause_keys[k], hv_json_num(idle_frac(r, k)));
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

static json_t *result_json(const struct hv_schedule_shown *r)
{
    const struct hv_schedule *s = &r->s;
    size_t p = (size_t)s->n_ranks;
    json_t *root = json_object();
    json_object_set_new(root, "schedule", json_string(r->name));
    json_object_set_new(root, "p", json_integer(s->n_ranks));
    json_object_set_new(root, "m", json_integer(s->n_micro_batches));
    json_object_set_new(root, "v", json_integer(s->n_stages / s->n_ranks));
    json_object_set_new(root, "times", json_times(r->times));
    if (r->scale) {
        json_object_set_new(root, "scale", json_numbers(r->scale, (size_t)s->n_stages));
    }
    json_object_set_new(root, "ranks", json_ranks(s));
    json_object_set_new(root, "stage_to_rank", json_placement(s));
    json_object_set_new(root, "makespan", hv_json_num(r->run.makespan_s));
    json_object_set_new(root, "longest_span", hv_json_num(r->run.longest_span_s));
    json_object_set_new(root, "bubble", hv_json_num(r->run.span_bubble_frac));
    json_object_set_new(root, "idle_share", hv_json_num(r->run.bubble_frac));
    json_object_set_new(root, "idle_shares", json_shares(r));
    json_object_set_new(root, "idle", json_idle(r));
    json_object_set_new(root, "steady_state", json_steady(&r->steady));
    json_object_set_new(root, "peak_inflight", json_ints(r->inflight, p));
    if (r->gathers != NULL) {
        json_object_set_new(root, "gathers", json_ints(r->gathers, p));
        json_object_set_new(root, "reductions", json_ints(r->reductions, p));
    }
    json_object_set_new(root, "weight_versions", json_ints(s->weight_versions, p));
    return root;
}

/* ---- text */

static void add_title(const struct hv_schedule_shown *r, struct hv_str *out)
{
    const struct hv_schedule *s = &r->s;
    hv_text_addf(out, "%s: p = %d, m = %d, v = %d; times f %g, b %g, w %g, hop %g%s", r->name,
                 s->n_ranks, s->n_micro_batches, s->n_stages / s->n_ranks, r->times.f, r->times.b,
                 r->times.w, r->times.c, r->scale ? ", scaled by stage" : "");
}

static void add_makespans(const struct hv_schedule_shown *r, struct hv_str *out)
{
    char bubble[HV_FMT_CAP];
    hv_text_addf(out, "makespan %.10g (wall), longest span of a rank %.10g, bubble %s of that span",
                 r->run.makespan_s, r->run.longest_span_s,
                 hv_fmt_percent(bubble, sizeof bubble, r->run.span_bubble_frac));
}

static void add_causes(const struct hv_schedule_shown *r, struct hv_str *out)
{
    char by[CAUSES][HV_FMT_CAP], all[HV_FMT_CAP];
    double sum = 0;
    for (size_t k = 0; k < CAUSES; k++) {
        double frac = idle_frac(r, k);
        sum += frac;
        hv_fmt_percent(by[k], sizeof by[k], frac);
    }
    hv_text_addf(out,
                 "idle %s of the wall makespan: warm-up %s, steady %s, cool-down %s, waiting for "
                 "communication %s\n",
                 hv_fmt_percent(all, sizeof all, sum), by[WARM_UP], by[STEADY], by[COOL_DOWN],
                 by[HOP]);
}

static void add_steady(const struct hv_steady *x, struct hv_str *out)
{
    if (x->micro_batches > 0) {
        hv_text_addf(out, "steady state %.6g per micro-batch", x->per_micro_batch_s);
        if (x->rank >= 0) {
            hv_text_addf(out, ", limited by rank %d%s", x->rank,
                         x->n_ranks > 1 ? " and by ranks it waits for" : " alone");
        }
        hv_str_addc(out, '\n');
    }
}

static void add_ranks(const struct hv_schedule_shown *r, struct hv_str *out)
{
    hv_str_adds(out,
                " rank  in flight  weights      busy   warm-up    steady cool-down     comm.\n");
    for (int32_t i = 0; i < r->s.n_ranks; i++) {
        const struct hv_pipe_rank *x = &r->idle[i];
        hv_text_addf(out, "%5d %10d %8d %9.6g %9.6g %9.6g %9.6g %9.6g\n", i, r->inflight[i],
                     r->s.weight_versions[i], x->busy_s, x->warmup_s, x->steady_s, x->cooldown_s,
                     x->comm_s);
    }
}

static void add_shards(const struct hv_schedule_shown *r, struct hv_str *out)
{
    const struct {
        const char *name;
        const int32_t *of_rank;
    } rows[] = {{"gathers", r->gathers}, {"reductions", r->reductions}};
    for (size_t k = 0; r->gathers != NULL && k < HV_COUNT(rows); k++) {
        hv_text_addf(out, "%s of sharded chunks by rank:", rows[k].name);
        for (int32_t i = 0; i < r->s.n_ranks; i++) {
            hv_text_addf(out, " %d", rows[k].of_rank[i]);
        }
        hv_str_addc(out, '\n');
    }
}

static enum hv_status print_text(const struct hv_args *args, const struct hv_schedule_shown *r,
                                 struct hv_err *err)
{
    struct hv_str out = {0};
    int columns = (int)hv_args_number(args, "width", hv_cli_columns(CHART_COLUMNS + CHART_LABEL));
    add_title(r, &out);
    hv_str_addc(&out, '\n');
    add_makespans(r, &out);
    hv_str_addc(&out, '\n');
    add_causes(r, &out);
    if (!hv_args_has(args, "gantt")) {
        add_steady(&r->steady, &out);
        add_ranks(r, &out);
    }
    add_shards(r, &out);
    hv_schedule_chart(r, columns - CHART_LABEL, &out);
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

/* ---- pictures */

static enum hv_span_kind span_kind(const struct hv_op *op)
{
    static const enum hv_span_kind kinds[HV_OP_KIND_N] = {[HV_OP_F] = HV_SPAN_F,
                                                          [HV_OP_B] = HV_SPAN_B,
                                                          [HV_OP_W] = HV_SPAN_W,
                                                          [HV_OP_BW] = HV_SPAN_BW,
                                                          [HV_OP_R] = HV_SPAN_R};
    return op->group >= 0 ? HV_SPAN_PAIR : kinds[op->kind];
}

/* spans and operations of one rank; returns how many */
static size_t fill_rank(const struct hv_schedule_shown *r, size_t rank, struct hv_timeline *t,
                        struct hv_span *spans)
{
    size_t n = 0;
    for (int32_t k = r->g.rank_node_at[rank]; k < r->g.rank_node_at[rank + 1]; k++) {
        const struct hv_op *op = &r->s.ops[hv_pipe_first_op(&r->g, k)];
        uint8_t kind = (uint8_t)span_kind(op);
        t->ops[t->n_ops] = (struct hv_timeline_op){.stage = op->stage,
                                                   .micro_batch = op->mb,
                                                   .slice = op->slice,
                                                   .paired = op->group >= 0 ? op[1].mb : -1,
                                                   .kind = kind};
        spans[n++] = (struct hv_span){.start_s = r->run.node_start_s[k],
                                      .end_s = r->run.node_end_s[k],
                                      .id = (int32_t)t->n_ops++,
                                      .kind = kind};
    }
    return n;
}

/* the timeline of ranks without a plan */
static enum hv_status make_timeline(struct hv_arena *arena, const struct hv_schedule_shown *r,
                                    struct hv_timeline *t, struct hv_err *err)
{
    size_t n_ranks = (size_t)r->s.n_ranks;
    double end_s = r->run.makespan_s;
    *t = (struct hv_timeline){.end_s = end_s};
    t->rows = hv_arena_new(arena, struct hv_timeline_row, n_ranks);
    t->ops = hv_arena_new(arena, struct hv_timeline_op, (size_t)r->g.n_nodes);
    struct hv_span *spans = hv_arena_new(arena, struct hv_span, (size_t)r->g.n_nodes);
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < n_ranks && st == HV_OK; i++) {
        size_t n = fill_rank(r, i, t, spans);
        struct hv_timeline_row *row = &t->rows[t->n_rows++];
        row->multiplicity = 1;
        row->name = hv_arena_printf(arena, "rank %zu", i);
        row->layers = hv_arena_printf(arena, "%d in flight", r->inflight[i]);
        row->busy_frac = end_s > 0 ? r->idle[i].busy_s / end_s : 0;
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

static enum hv_status write_files(const struct hv_args *args, const struct hv_schedule_shown *r,
                                  struct hv_arena *arena, struct hv_err *err)
{
    struct hv_timeline t;
    struct hv_str title = {0}, subtitle = {0}, out = {0};
    int width = (int)hv_args_number(args, "width", PICTURE_PX);
    enum hv_status st = make_timeline(arena, r, &t, err);
    add_title(r, &title);
    add_makespans(r, &subtitle);
    const struct hv_gantt_text text = {
        .title = hv_str_cstr(&title), .subtitle = hv_str_cstr(&subtitle), .bare = true};
    if (st == HV_OK && hv_args_has(args, "svg")) {
        hv_gantt_svg(&t, &text, width, &out);
        st = hv_file_write(hv_args_text(args, "svg", "-"), hv_str_cstr(&out), out.n, err);
        hv_str_clear(&out);
    }
    if (st == HV_OK && hv_args_has(args, "png")) {
        st = hv_gantt_png(&t, &text, width, &out, err);
        st = st == HV_OK
                 ? hv_file_write(hv_args_text(args, "png", "-"), hv_str_cstr(&out), out.n, err)
                 : st;
    }
    hv_str_free(&title);
    hv_str_free(&subtitle);
    hv_str_free(&out);
    return st;
}

enum hv_status hv_schedule_show(struct hv_args *args, const struct hv_schedule_shown *r,
                                struct hv_arena *arena, struct hv_err *err)
{
    if (hv_args_has(args, "svg") || hv_args_has(args, "png")) {
        return write_files(args, r, arena, err);
    }
    if (hv_args_has(args, "json")) {
        return hv_cli_print_json(result_json(r), err);
    }
    return print_text(args, r, err);
}

/* ---- more micro-batches than are simulated */

static json_t *told_json(const struct hv_schedule_told *t, double idle_frac_of_wall)
{
    json_t *root = json_object();
    json_object_set_new(root, "schedule", json_string(t->name));
    json_object_set_new(root, "p", json_integer(t->ranks));
    json_object_set_new(root, "m", json_integer(t->micro_batches));
    json_object_set_new(root, "v", json_integer(t->chunks));
    json_object_set_new(root, "times", json_times(t->times));
    json_object_set_new(root, "makespan", hv_json_num(t->x.makespan_s));
    json_object_set_new(root, "longest_span", hv_json_num(t->longest_span_s));
    json_object_set_new(root, "idle_share", hv_json_num(idle_frac_of_wall));
    json_object_set_new(root, "extrapolated_from", json_integer(t->x.from_micro_batches));
    json_object_set_new(root, "exact", json_boolean(t->x.exact));
    json_object_set_new(root, "steady_state", json_steady(&t->x.steady));
    return root;
}

enum hv_status hv_schedule_show_told(struct hv_args *args, const struct hv_schedule_told *t,
                                     struct hv_err *err)
{
    double wall_s = t->x.makespan_s, idle = wall_s > 0 ? 1 - t->work_s / wall_s : 0;
    if (hv_args_has(args, "json")) {
        return hv_cli_print_json(told_json(t, idle), err);
    }
    struct hv_str out = {0};
    hv_text_addf(&out,
                 "%s: p = %d, m = %lld, v = %d; too many micro-batches to simulate one by one\n",
                 t->name, t->ranks, (long long)t->micro_batches, t->chunks);
    hv_text_addf(&out,
                 "makespan %.15g (wall), longest span of a rank %.15g, idle %.3g%% of the wall "
                 "makespan\n%s from m = %d and %.6g per micro-batch\n",
                 wall_s, t->longest_span_s, 100 * idle, t->x.exact ? "exact," : "estimated",
                 t->x.from_micro_batches, t->x.steady.per_micro_batch_s);
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}
