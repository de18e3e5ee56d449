/** `hetviz eval`, `hetviz bound` and `hetviz explain`: judgements in figures and words. */
#include <math.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/bound/bound.h"
#include "solver/eval/balance.h"
#include "solver/eval/explain.h"
#include "solver/eval/slower.h"
#include "solver/eval/stress/stress.h"
#include "solver/io/own/verdict_file.h"
#include "ui/cli/cli.h"
#include "ui/cli/judged.h"
#include "ui/cli/print.h"
#include "ui/cli/verdict_text.h"
#include "ui/view/gantt/timeline.h"

enum hv_status hv_cli_eval(struct hv_args *args, struct hv_err *err)
{
    struct hv_judged j;
    enum hv_status st = hv_cli_judge_watched(args, &j, err);
    if (st == HV_OK && hv_args_has(args, "json")) {
        st = hv_cli_print_json(hv_plan_with_verdict(j.plan.json.root, &j.verdict, true), err);
    } else if (st == HV_OK) {
        struct hv_str text = {0};
        hv_cli_verdict_text(j.plan.plan, &j.verdict, &text);
        st = hv_cli_print(&text, err);
        hv_str_free(&text);
    }
    if (st == HV_OK && j.verdict.findings.n > 0) {
        st = hv_err_set(err, HV_ENO, "%zu violation%s: %s", j.verdict.findings.n,
                        j.verdict.findings.n == 1 ? "" : "s", j.verdict.findings.items[0].text);
    }
    hv_judged_free(&j);
    return st;
}

/** The parts of a bound, each under its own key; null where there is no bound. */
static void add_bound_parts(json_t *o, const struct hv_bound *b, bool any)
{
    const struct {
        const char *key;
        double time_s;
    } parts[] = {{"compute_s", b->compute_s},
                 {"shapes_s", b->shapes_s},
                 {"passes_s", b->passes_s},
                 {"optimizer_s", b->optimizer_s},
                 {"host_s", b->host_s},
                 {"wait_s", b->wait_s},
                 {"cut_s", b->cut_s},
                 {"kept_plans_s", b->iteration_s},
                 {"even_plans_s", fmax(b->even_s, b->spread_s)},
                 {"other_plans_s", b->any_s}};
    for (size_t i = 0; i < HV_COUNT(parts); i++) {
        json_object_set_new(o, parts[i].key, hv_json_num(any ? parts[i].time_s : HV_UNKNOWN));
    }
    json_object_set_new(o, "fewest_devices", hv_json_num(b->fewest > 0 ? b->fewest : HV_UNKNOWN));
}

static enum hv_status bound_json(const struct hv_bound *b, bool any, struct hv_err *err)
{
    json_t *o = json_object();
    json_object_set_new(o, "bound_s", hv_json_num(any ? b->spread_s : HV_UNKNOWN));
    json_object_set_new(o, "why", json_string(any ? b->spread_why : b->why));
    add_bound_parts(o, b, any);
    if (b->stopped) {
        json_object_set_new(o, "stopped", json_true());
    }
    return hv_cli_print_json(o, err);
}

static enum hv_status bound_text(const struct hv_bound *b, struct hv_err *err)
{
    char buf[HV_FMT_CAP];
    struct hv_str text = {0};
    hv_text_addf(&text, "lower bound of all plans %s: %s\n",
                 hv_fmt_seconds(buf, sizeof buf, b->spread_s), b->spread_why);
    if (b->even_why != NULL) {
        hv_text_addf(&text, "lower bound of plans with equal pipelines %s: %s\n",
                     hv_fmt_seconds(buf, sizeof buf, b->even_s), b->even_why);
    }
    if (b->cut_why != NULL) {
        hv_text_addf(&text, "lower bound of most plans %s: %s\n",
                     hv_fmt_seconds(buf, sizeof buf, b->iteration_s), b->cut_why);
    }
    enum hv_status st = hv_cli_print(&text, err);
    hv_str_free(&text);
    return st;
}

/** A bound and what it is computed from. */
struct bounding {
    const struct hv_args *args;
    struct hv_inputs in;
    struct hv_cost *cost;
    struct hv_arena arena;
    struct hv_bound bound;
};

/** HV_ESTOPPED where the work is watched and was asked to stop. */
static enum hv_status go_on(struct hv_eval_watch *watch, struct hv_err *err)
{
    return watch != NULL && atomic_load(&watch->stop) ? hv_err_set(err, HV_ESTOPPED, "stopped")
                                                      : HV_OK;
}

/** The `stop` of hv_bound_within. */
static bool is_stopped(void *ctx)
{
    struct hv_eval_watch *watch = ctx;
    return atomic_load(&watch->stop);
}

static enum hv_status find_bound(void *ctx, struct hv_eval_watch *watch, struct hv_err *err)
{
    struct bounding *b = ctx;
    const struct hv_args *args = b->args;
    enum hv_status st =
        hv_inputs_read(&b->in, hv_args_text(args, "cluster", NULL),
                       hv_args_text(args, "model", NULL), hv_args_text(args, "job", NULL), err);
    st = st == HV_OK ? go_on(watch, err) : st;
    if (st == HV_OK) {
        b->cost = hv_cost_new(b->in.cluster.cluster, b->in.model.model, &b->in.job.job);
        hv_bound_within(b->cost, watch != NULL ? is_stopped : NULL, watch, &b->arena, &b->bound);
    }
    return st;
}

enum hv_status hv_cli_bound(struct hv_args *args, struct hv_err *err)
{
    struct bounding b = {.args = args};
    enum hv_status st = hv_cli_watched(args, find_bound, &b, err);
    bool any = b.bound.iteration_s > 0;
    if (st == HV_OK && hv_args_has(args, "json")) {
        st = bound_json(&b.bound, any, err);
    } else if (st == HV_OK && any) {
        st = bound_text(&b.bound, err);
    }
    if (st == HV_OK && !any) {
        st = hv_err_set(err, HV_ENO, "%s", b.bound.why);
    } else if (st == HV_OK && b.bound.stopped) {
        st =
            hv_err_set(err, HV_ESTOPPED,
                       "the search was stopped: this bound holds, and more time (--time-limit) may "
                       "give a higher one");
    }
    hv_arena_free(&b.arena);
    hv_cost_free(b.cost);
    hv_inputs_free(&b.in);
    return st;
}

/** The optimal distribution of layers over the stages of the slowest replica entry, with its
 * binding constraints (the duals of the linear program). Nothing where no layers can be
 * redistributed. */
static void add_share(const struct hv_judged *j, size_t replica, int number, struct hv_str *out)
{
    struct hv_arena a = {0};
    struct hv_balance b;
    char t[HV_FMT_CAP], u[HV_FMT_CAP];
    if (hv_eval_balance(&j->verdict, j->plan.plan, replica, &a, &b, NULL) != HV_OK) {
        hv_arena_free(&a);
        return;
    }
    if (!hv_known(b.best_pace_s)) {
        hv_text_addf(out,
                     "%d the layers do not fit into memory in any distribution over the stages\n",
                     number);
        hv_arena_free(&a);
        return;
    }
    hv_text_addf(out, "%d best distribution of the layers:", number);
    for (size_t i = 0; i < b.n; i++) {
        hv_text_addf(out, "%s%.1f", i > 0 ? " | " : " ", b.stages[i].best_layers);
    }
    hv_text_addf(out, ", %s per micro-batch instead of %s; dual values:",
                 hv_fmt_seconds(t, sizeof t, b.best_pace_s), hv_fmt_seconds(u, sizeof u, b.pace_s));
    for (size_t i = 0; i < b.n; i++) {
        const struct hv_balance_stage *s = &b.stages[i];
        if (s->memory_price_s_per_byte > 0) {
            hv_text_addf(out, " memory of stage %zu %.3g s of the iteration per GiB,", i,
                         s->memory_price_s_per_byte * b.micro_batches * HV_GIB);
        } else {
            hv_text_addf(out, " time of stage %zu %.2f,", i, s->time_price);
        }
    }
    out->p[out->n - 1] = '\n';
    hv_arena_free(&a);
}

/** What explains a judged plan beside its verdict: parts that, made faster, make it slower, and
 * what it loses where a run turns out worse. */
struct anomalies {
    const struct hv_judged *judged;
    struct hv_arena arena;
    struct hv_slower *items;
    size_t n;
    const struct hv_timeline *timeline; /**< NULL: there is none */
    struct hv_stress stress;            /**< of a training plan that was timed */
    bool stressed;
};

static enum hv_status find_anomalies(void *ctx, struct hv_eval_watch *watch, struct hv_err *err)
{
    struct anomalies *x = ctx;
    const struct hv_judged *j = x->judged;
    struct hv_eval_options o = {.timeline = true, .watch = watch, .jobs = j->jobs};
    struct hv_verdict *drawn = hv_arena_new(&x->arena, struct hv_verdict, 1);
    enum hv_status st = hv_eval(j->cost, j->plan.plan, &o, &x->arena, drawn, err);
    if (st == HV_ESTOPPED) {
        return st;
    }
    x->timeline = st == HV_OK ? drawn->timeline : NULL;
    struct hv_err unheard = {0};
    st = hv_eval_stress(j->cost, j->plan.plan, &j->verdict, watch, &x->stress, &unheard);
    x->stressed = st == HV_OK;
    if (st == HV_ESTOPPED) {
        return hv_err_set(err, HV_ESTOPPED, "stopped");
    }
    return hv_eval_slower(j->cost, j->plan.plan, j->verdict.metrics.iteration_s, watch, &x->arena,
                          &x->items, &x->n, err);
}

/** One line each: who holds the critical path, the stage with the longest busy time, the largest
 * loss other than compute, the bound, the throughput under failures, the best distribution of the
 * layers, and the parts that, made faster, make the plan slower. */
static void add_causes(const struct hv_judged *j, const struct anomalies *x, struct hv_str *out)
{
    const struct hv_verdict *v = &j->verdict;
    size_t slowest = 0;
    for (size_t i = 1; i < v->n_stages; i++) {
        slowest = v->stages[i].busy_frac > v->stages[slowest].busy_frac ? i : slowest;
    }
    int cause = HV_TIME_RECOMPUTE;
    for (int i = cause + 1; i < HV_BREAKDOWN_N; i++) {
        cause = v->metrics.breakdown_s[i] > v->metrics.breakdown_s[cause] ? i : cause;
    }
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    size_t n = 1;
    if (x->timeline != NULL && x->timeline->path.lanes.n > 0) {
        hv_text_addf(out, "%zu critical path: ", n++);
        hv_gantt_path_text(x->timeline, out);
        hv_str_addc(out, '\n');
    }
    if (v->n_stages > 0) {
        hv_text_addf(out,
                     "%zu stage %zu of replica %zu is busy most: %s of the iteration, %s per "
                     "micro-batch\n",
                     n++, v->stages[slowest].stage, v->stages[slowest].replica,
                     hv_fmt_percent(a, sizeof a, v->stages[slowest].busy_frac),
                     hv_fmt_seconds(b, sizeof b,
                                    v->stages[slowest].forward_s + v->stages[slowest].backward_s));
        hv_text_addf(
            out, "%zu largest loss: %s, %s (%s)\n", n++,
            hv_breakdown_help((enum hv_breakdown)cause),
            hv_fmt_seconds(a, sizeof a, v->metrics.breakdown_s[cause]),
            hv_fmt_percent(b, sizeof b, v->metrics.breakdown_s[cause] / v->metrics.iteration_s));
    }
    if (v->bound_why != NULL) {
        hv_text_addf(out, "%zu lower bound of all plans%s %s: %s\n", n++,
                     v->bound_some ? " like this" : "",
                     hv_fmt_seconds(a, sizeof a, v->metrics.bound_s), v->bound_why);
    }
    if (v->goodput.known) {
        hv_text_addf(
            out, "%zu expected throughput with failures and preemptions: %s, %s tokens/s\n", n++,
            hv_fmt_percent(a, sizeof a, v->goodput.tokens_per_s / v->metrics.tokens_per_s),
            hv_fmt_count(b, sizeof b, v->goodput.tokens_per_s));
    }
    if (v->n_stages > 0) {
        add_share(j, v->stages[slowest].replica, (int)n++, out);
    }
    for (size_t i = 0; i < x->n; i++) {
        hv_text_addf(out, "%zu %s\n", n + i, x->items[i].text);
    }
}

static enum hv_status explain_text(const struct hv_judged *j, const struct anomalies *x,
                                   struct hv_err *err)
{
    struct hv_str text = {0};
    hv_cli_verdict_line(&j->verdict, &text);
    hv_str_addc(&text, '\n');
    add_causes(j, x, &text);
    if (x->stressed) {
        hv_cli_stress_text(j->plan.plan, &j->verdict, &x->stress, &text);
    }
    hv_str_addc(&text, '\n');
    hv_cli_verdict_text(j->plan.plan, &j->verdict, &text);
    enum hv_status st = hv_cli_print(&text, err);
    hv_str_free(&text);
    return st;
}

/** The JSON of `eval --json`, with the causes as a list of texts under "explain". */
static enum hv_status explain_json(const struct hv_judged *j, const struct anomalies *x,
                                   struct hv_err *err)
{
    struct hv_str text = {0};
    add_causes(j, x, &text);
    json_t *lines = json_array();
    for (const char *line = hv_str_cstr(&text), *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n'); /* every line has one */
        json_array_append_new(lines, json_stringn(line, (size_t)(end - line)));
    }
    hv_str_free(&text);
    json_t *out = hv_plan_with_verdict(j->plan.json.root, &j->verdict, true);
    json_object_set_new(out, "explain", lines);
    if (x->stressed) {
        json_object_set_new(out, "stress", hv_stress_json(&x->stress));
    }
    return hv_cli_print_json(out, err);
}

static void add_term(const struct hv_why_term *t, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    if (strcmp(t->unit, "x") == 0) {
        hv_text_addf(out, "  %g x %s\n", t->value, t->text);
        return;
    }
    const char *value = strcmp(t->unit, "s") == 0       ? hv_fmt_seconds(buf, sizeof buf, t->value)
                        : strcmp(t->unit, "bytes") == 0 ? hv_fmt_bytes(buf, sizeof buf, t->value)
                                                        : hv_fmt_count(buf, sizeof buf, t->value);
    hv_text_addf(out, "    %-22s %10s  %s\n", t->name, value, t->text);
}

static void put_positive(json_t *o, const char *key, double x)
{
    if (x > 0) {
        json_object_set_new(o, key, hv_json_num(x));
    }
}

/** A term of time, with the work behind it. */
static json_t *timed_term(const struct hv_why_term *t, const char *phase, double time_s)
{
    const struct hv_why_work *w = &t->work;
    bool back = strcmp(phase, "backward") == 0;
    json_t *o = json_pack("{s:s, s:s, s:o}", "name", t->name, "phase", phase, "time_s",
                          hv_json_num(time_s));
    put_positive(o, "flops", back ? w->backward_flops : w->flops);
    put_positive(o, "flops_per_s", back ? w->backward_flops_per_s : w->flops_per_s);
    put_positive(o, "bytes", back ? w->backward_bytes : w->bytes);
    if (w->source != NULL) {
        json_object_set_new(o, "source", json_string(w->source));
    }
    return o;
}

/** Adds the terms of one chapter; `part` is the blocks that a term belongs to. */
static void add_terms(const struct hv_explained *c, json_t *list)
{
    const char *part = "", *title = c->title;
    for (size_t i = 0; i < c->n_terms; i++) {
        const struct hv_why_term *t = &c->terms[i];
        bool timed = strcmp(t->unit, "s") == 0;
        if (strcmp(t->unit, "x") == 0) {
            part = t->text;
            continue;
        }
        json_t *o = timed ? timed_term(t, "forward", t->value)
                          : json_pack("{s:s, s:o, s:s}", "name", t->name, "value",
                                      hv_json_num(t->value), "unit", t->unit);
        json_object_set_new(o, "chapter", json_string(title));
        json_object_set_new(o, "of", json_string(part));
        json_object_set_new(o, "why", json_string(t->text));
        json_array_append_new(list, o);
        if (timed && t->work.backward_s > 0) {
            o = timed_term(t, "backward", t->work.backward_s);
            json_object_set_new(o, "chapter", json_string(title));
            json_object_set_new(o, "of", json_string(part));
            json_array_append_new(list, o);
        }
    }
}

/** Every term of one stage. */
static enum hv_status explain_stage(const struct hv_args *args, struct hv_judged *j,
                                    struct hv_err *err)
{
    struct hv_explained *chapters = NULL;
    size_t n = 0;
    enum hv_status st =
        hv_eval_explain(j->cost, j->plan.plan, (size_t)hv_args_number(args, "replica", 0),
                        (size_t)hv_args_number(args, "stage", 0), &j->arena, &chapters, &n, err);
    if (st != HV_OK) {
        return st;
    }
    if (hv_args_has(args, "json")) {
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++) {
            add_terms(&chapters[i], list);
        }
        return hv_cli_print_json(json_pack("{s:o}", "terms", list), err);
    }
    struct hv_str text = {0};
    for (size_t i = 0; i < n; i++) {
        hv_str_adds(&text, i > 0 ? "\n" : "");
        hv_text_addf(&text, "%s\n", chapters[i].title);
        for (size_t t = 0; t < chapters[i].n_terms; t++) {
            add_term(&chapters[i].terms[t], &text);
        }
    }
    st = hv_cli_print(&text, err);
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_explain(struct hv_args *args, struct hv_err *err)
{
    struct hv_judged j;
    enum hv_status st = hv_cli_judge_watched(args, &j, err);
    if (st == HV_OK && (hv_args_has(args, "stage") || hv_args_has(args, "replica"))) {
        st = explain_stage(args, &j, err);
    } else if (st == HV_OK) {
        struct anomalies x = {.judged = &j};
        st = hv_cli_watched(args, find_anomalies, &x, err);
        if (st == HV_OK) {
            st = hv_args_has(args, "json") ? explain_json(&j, &x, err) : explain_text(&j, &x, err);
        }
        hv_arena_free(&x.arena);
    }
    hv_judged_free(&j);
    return st;
}
