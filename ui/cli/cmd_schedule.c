/*
 * `hetviz schedule`: parses the arguments, builds the schedule and simulates it. Schedules and
 * timing are in solver/sim, printing is in schedule_show.c.
 */
#include "scripting/plugin/order.h"
#include "solver/base/json/json.h"
#include "solver/sim/pipeline/play.h"
#include "solver/sim/schedule/shards.h"
#include "ui/cli/cli.h"
#include "ui/cli/schedule_show.h"
#include <stdlib.h>
#include <string.h>

/* an optional list of numbers */
struct numbers {
    const double *x;
    size_t n;
};

struct arguments {
    const char *name;
    int64_t p, m, v; /* v 0 = not given */
    const char **options;
    size_t n_options;
    struct hv_schedule_times times, plan_times;
    bool has_plan_times;
    double jitter;
    int64_t look_ahead, cap, seed; /* 0 = none */
    int64_t shard_window;          /* 0 = weights are not sharded */
    struct numbers scale, hops, limits;
};

static enum hv_status read_times(struct hv_args *args, const char *option,
                                 struct hv_schedule_times *out, struct hv_err *err)
{
    size_t n = 0;
    const double *x = hv_args_numbers(args, option, &n);
    if (n != 4) {
        return hv_err_set(err, HV_EUSAGE,
                          "--%s: expected four numbers f,b,w,c such as 1,1,1,0, found %zu", option,
                          n);
    }
    *out = (struct hv_schedule_times){x[0], x[1], x[2], x[3]};
    return HV_OK;
}

/* takes `shard_window`, which every schedule has, out of the options */
static enum hv_status take_shard_window(struct arguments *a, struct hv_err *err)
{
    static const char key[] = "shard_window=";
    size_t n = 0;
    for (size_t i = 0; i < a->n_options; i++) {
        if (strncmp(a->options[i], key, sizeof key - 1) != 0) {
            a->options[n++] = a->options[i];
            continue;
        }
        const char *value = a->options[i] + sizeof key - 1;
        char *end = NULL;
        long long x = strtoll(value, &end, 10);
        if (end == value || *end != '\0' || x < 1 || x > HV_SCHEDULE_CHUNKS_MAX) {
            return hv_err_set(err, HV_EUSAGE,
                              "option shard_window: expected a number of chunks from 1 to %d, "
                              "found \"%.40s\"",
                              HV_SCHEDULE_CHUNKS_MAX, value);
        }
        a->shard_window = x;
    }
    a->n_options = n;
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
    enum hv_status st = take_shard_window(a, err);
    a->has_plan_times = hv_args_has(args, "plan-times");
    if (st == HV_OK && hv_args_has(args, "times")) {
        st = read_times(args, "times", &a->times, err);
    }
    if (st == HV_OK && a->has_plan_times) {
        st = read_times(args, "plan-times", &a->plan_times, err);
    }
    a->scale.x = hv_args_numbers(args, "scale", &a->scale.n);
    a->hops.x = hv_args_numbers(args, "hops", &a->hops.n);
    a->limits.x = hv_args_numbers(args, "limits", &a->limits.n);
    return st;
}

/* the plugin with order(p) of that name, file or folder; NULL = there is none */
static enum hv_status find_plugin(const char *name, struct hv_plugins *all,
                                  const struct hv_plugin **out, struct hv_err *err)
{
    *out = NULL;
    if (hv_plugin_is_path(name)) {
        enum hv_status st = hv_plugins_read_file(all, name, err);
        if (st != HV_OK) {
            return st;
        }
        *out = &all->items[0];
        for (size_t i = all->n; i-- > 0;) { /* of a family, its first row with order(p) */
            *out = all->items[i].has[HV_PLUGIN_ORDER] ? &all->items[i] : *out;
        }
    } else if (hv_plugins_read(all, NULL) == HV_OK) {
        *out = hv_plugins_find(all, name);
    }
    if (*out && !(*out)->has[HV_PLUGIN_ORDER] && !(*out)->error) {
        return hv_err_set(err, HV_EUSAGE, "%s is a strategy without order(p), not a schedule",
                          name);
    }
    return *out ? HV_OK : HV_EUSAGE;
}

/* checks that a list is absent or has exactly `want` numbers */
static enum hv_status check_list(const char *option, const struct numbers *list, size_t want,
                                 const char *of_what, struct hv_err *err)
{
    if (list->n == 0 || list->n == want) {
        return HV_OK;
    }
    return hv_err_set(err, HV_EUSAGE, "--%s: expected %zu number%s, one for each %s, found %zu",
                      option, want, want == 1 ? "" : "s", of_what, list->n);
}

/* the inputs of the schedulers: durations of every stage, hops, limits. in->ranks and in->chunks
 * must be set */
static enum hv_status fill_costs(struct hv_arena *arena, const struct arguments *a,
                                 struct hv_schedule_input *in, struct hv_err *err)
{
    struct hv_schedule_times t = a->has_plan_times ? a->plan_times : a->times;
    size_t p = (size_t)in->ranks, n = p * (size_t)in->chunks;
    in->cost = (struct hv_stage_cost){t.f, t.b, t.w};
    in->hop_s = t.c;
    enum hv_status st = check_list("scale", &a->scale, n, "stage", err);
    st = st == HV_OK ? check_list("hops", &a->hops, n - 1, "two neighbouring stages", err) : st;
    st = st == HV_OK ? check_list("limits", &a->limits, p, "rank", err) : st;
    if (st != HV_OK) {
        return st;
    }
    struct hv_stage_cost *costs = hv_arena_new(arena, struct hv_stage_cost, a->scale.n + 1);
    for (size_t i = 0; i < a->scale.n; i++) {
        double x = a->scale.x[i];
        costs[i] = (struct hv_stage_cost){t.f * x, t.b * x, t.w * x};
    }
    double *hops_s = hv_arena_new(arena, double, 2 * a->hops.n + 1);
    for (size_t i = 0; i < 2 * a->hops.n; i++) {
        hops_s[i] = a->hops.x[i % a->hops.n];
    }
    in->costs = a->scale.n > 0 ? costs : NULL;
    in->hops_s = a->hops.n > 0 ? hops_s : NULL;
    in->limits = a->limits.n > 0 ? a->limits.x : NULL;
    return HV_OK;
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
        hv_schedule_input_init(in, row, (int32_t)a->p, (int32_t)a->m);
        in->chunks = a->v ? (int32_t)a->v : 1;
        st = fill_costs(arena, a, in, err);
    }
    if (st == HV_OK) {
        const struct hv_order_request r = {.plugin = plugin,
                                           .options = options,
                                           .ranks = in->ranks,
                                           .micro_batches = in->micro_batches,
                                           .chunks = in->chunks,
                                           .cost = in->cost,
                                           .costs = in->costs,
                                           .hop_s = in->hop_s,
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
    /* beyond the limit only the check of sizes reads the number: it is clamped to fit an int32 */
    hv_schedule_input_init(in, row, (int32_t)a->p,
                           (int32_t)(a->m > HV_SCHEDULE_MB_MAX ? HV_SCHEDULE_MB_MAX + 1 : a->m));
    for (size_t i = 0; i < a->n_options && st == HV_OK; i++) {
        const char *eq = strchr(a->options[i], '=');
        const char *key = hv_arena_strndup(arena, a->options[i], (size_t)(eq - a->options[i]));
        st = hv_schedule_set_option(in, key, eq + 1, err);
    }
    in->chunks = a->v ? (int32_t)a->v : hv_schedule_usual_chunks(in);
    return st == HV_OK ? fill_costs(arena, a, in, err) : st;
}

/* durations of every stage and hop for the simulation (which may differ from the planned ones) */
static struct hv_pipe_cost real_cost(struct hv_arena *arena, const struct arguments *a,
                                     int32_t n_stages)
{
    double *x = hv_arena_new(arena, double, (size_t)n_stages *HV_OP_KIND_N);
    for (size_t s = 0; s < (size_t)n_stages; s++) {
        double *row = x + s * HV_OP_KIND_N, by = a->scale.n > 0 ? a->scale.x[s] : 1;
        row[HV_OP_F] = row[HV_OP_R] = a->times.f * by;
        row[HV_OP_B] = a->times.b * by;
        row[HV_OP_W] = a->times.w * by;
        row[HV_OP_BW] = (a->times.b + a->times.w) * by;
    }
    return (struct hv_pipe_cost){.stage_s = x, .hop_all_s = a->times.c};
}

/* hops that differ, for every direction there and back */
static const double *real_hops(struct hv_arena *arena, const struct arguments *a,
                               const struct hv_pipe *g)
{
    if (a->hops.n == 0) {
        return NULL;
    }
    double *x = hv_arena_new(arena, double, (size_t)g->n_hops + 1);
    for (size_t i = 0; i < (size_t)g->n_hops; i++) {
        x[i] = a->hops.x[i % a->hops.n];
    }
    return x;
}

/* HV_ENO; names the least --cap: a fixed order needs the peak number of activations of its fullest
 * rank */
static enum hv_status cap_too_small(struct hv_arena *arena, const struct arguments *a,
                                    const struct hv_schedule *s, struct hv_err *err)
{
    int32_t *held = hv_arena_new(arena, int32_t, (size_t)s->n_ranks), most = 0;
    hv_schedule_peak_inflight(s, held);
    for (int32_t r = 0; r < s->n_ranks; r++) {
        most = held[r] > most ? held[r] : most;
    }
    if (most > a->cap) {
        hv_err_context(err, "--cap %lld is too small for this order, use --cap %d",
                       (long long)a->cap, most);
    }
    return HV_ENO;
}

/* runs the event-driven simulation of the order and stores its results */
static enum hv_status play(struct hv_arena *arena, const struct arguments *a,
                           struct hv_schedule_shown *r, struct hv_err *err)
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
    if (st == HV_ENO && a->cap > 0) {
        return cap_too_small(arena, a, &strict.s, err);
    }
    if (st == HV_OK) {
        st = hv_pipe_played(arena, &strict, &run, &r->g, &r->run, err);
        r->s = r->g.s;
    }
    return st;
}

static enum hv_status compute(struct hv_arena *arena, const struct arguments *a,
                              const struct hv_schedule_input *in, struct hv_schedule_shown *r,
                              struct hv_err *err)
{
    enum hv_status st = hv_schedule_make(arena, in, &r->s, err);
    if (st == HV_OK) {
        st = hv_pipe_compile(arena, &r->s, &r->g, err);
    }
    if (st != HV_OK) {
        return st;
    }
    r->cost = real_cost(arena, a, r->s.n_stages);
    r->cost.hop_s = real_hops(arena, a, &r->g);
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
    size_t p = (size_t)r->s.n_ranks;
    struct hv_pipe_rank *idle = hv_arena_new(arena, struct hv_pipe_rank, p);
    int32_t *inflight = hv_arena_new(arena, int32_t, p);
    hv_pipe_idle(&r->g, &r->cost, &r->run, idle);
    hv_schedule_peak_inflight(&r->s, inflight);
    r->name = a->name;
    r->times = a->times;
    r->scale = a->scale.n > 0 ? a->scale.x : NULL;
    r->idle = idle;
    r->inflight = inflight;
    if (a->shard_window > 0) {
        int32_t *gathers = hv_arena_new(arena, int32_t, p);
        int32_t *reductions = hv_arena_new(arena, int32_t, p);
        hv_schedule_shards(&r->s, (int32_t)a->shard_window, gathers, reductions);
        r->gathers = gathers;
        r->reductions = reductions;
    }
    return HV_OK;
}

/* makespan minus the longest span of a rank with m micro-batches; the same for more of them,
 * because both then grow alike */
static enum hv_status lead_of(struct hv_arena *arena, const struct hv_schedule_input *in,
                              const struct hv_pipe_cost *cost, int32_t m, double *out_s,
                              struct hv_err *err)
{
    struct hv_schedule_input smaller = *in;
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_run run;
    smaller.micro_batches = m;
    enum hv_status st = hv_schedule_make(arena, &smaller, &s, err);
    st = st == HV_OK ? hv_pipe_compile(arena, &s, &g, err) : st;
    if (st == HV_OK) {
        hv_pipe_run_new(arena, &g, &run);
        hv_pipe_time(&g, cost, &run);
        *out_s = run.makespan_s - run.longest_span_s;
    }
    return st;
}

/* more micro-batches than are simulated: their time follows from the steady state */
static enum hv_status show_told(struct hv_args *args, const struct arguments *a,
                                const struct hv_schedule_input *in, struct hv_arena *arena,
                                struct hv_err *err)
{
    struct hv_schedule_told t = {.name = a->name,
                                 .times = a->times,
                                 .ranks = in->ranks,
                                 .chunks = in->chunks,
                                 .micro_batches = a->m};
    if (a->scale.n + a->hops.n > 0) {
        return hv_err_set(err, HV_EUSAGE,
                          "with --scale or --hops every micro-batch is simulated: use at most %d",
                          HV_SCHEDULE_MB_MAX);
    }
    struct hv_pipe_cost cost = real_cost(arena, a, in->ranks * in->chunks);
    double lead_s = 0;
    enum hv_status st = hv_schedule_extrapolate(in, &cost, a->m, &t.x, err);
    if (st == HV_OK) {
        st = lead_of(arena, in, &cost, t.x.from_micro_batches, &lead_s, err);
    }
    if (st != HV_OK) {
        return st;
    }
    t.longest_span_s = t.x.makespan_s - lead_s;
    t.work_s = (double)a->m * in->chunks * (a->times.f + a->times.b + a->times.w);
    return hv_schedule_show_told(args, &t, err);
}

enum hv_status hv_cli_schedule(struct hv_args *args, struct hv_err *err)
{
    struct arguments a;
    struct hv_arena arena = {0};
    struct hv_schedule_shown r = {0};
    struct hv_schedule_input in = {0};
    enum hv_status st = read_arguments(args, &a, err);
    if (st == HV_OK) {
        st = make_input(&arena, &a, &in, err);
    }
    bool drawn = hv_args_has(args, "gantt") || hv_args_has(args, "svg") || hv_args_has(args, "png");
    if (st == HV_OK && a.m > HV_SCHEDULE_MB_MAX && !drawn) {
        st = show_told(args, &a, &in, &arena, err);
    } else if (st == HV_OK) {
        st = compute(&arena, &a, &in, &r, err);
        if (st != HV_OK && (in.row->flags & HV_SCHEDULE_ORDER)) {
            hv_err_context(err, "%s", a.name); /* the error names the row `explicit` */
        }
        st = st == HV_OK ? hv_schedule_show(args, &r, &arena, err) : st;
    }
    hv_arena_free(&arena);
    return st;
}
