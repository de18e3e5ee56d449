/** `hetviz compare`: many strategies, one worker process per core, one ranked table. */
#include <stdlib.h>
#include <string.h>

#include "scripting/plugin/plugin.h"
#include "solver/base/units.h"
#include "solver/eval/verdict/band.h"
#include "solver/io/own/plan_trust.h"
#include "ui/cli/cli.h"
#include "ui/cli/compare/launch.h"
#include "ui/cli/compare/try.h"
#include "ui/cli/compare/why.h"
#include "ui/cli/interrupt.h"
#include "ui/cli/print.h"
#include "ui/cli/run_options.h"
#include "ui/cli/verdict_text.h"
#include "ui/process/pool.h"

/** TRUST_WIDTH: columns of trust and mark where a column stands behind them. */
enum { POLL_MS = 100, REASON_MAX = 300, TRUST_WIDTH = 18 };

/** Seconds after its time limit in which a worker may still return its best result; then it is
 * killed. */
static const double grace_s = 0.5;

/** One strategy in the table. */
struct entry {
    const char *strategy;
    const struct hv_plugin *plugin; /**< its first part; NULL where there is none of that name */
    const char *same;               /**< an earlier row with an equal plan, or NULL */
    char *text;                     /**< of the plan, as hv_plan_same_text; on the heap */
    uint32_t id;                    /**< of the pool's job */
    bool applies;
    bool unstarted; /**< there was no process for it */
    bool answered;  /**< its worker gave a result: it did not fail and was not ended */
    json_t *plan;
    char *reason;
    struct hv_str launch; /**< "yes", or why the target of --target cannot launch the plan; empty:
                             there is no plan or no target */
    bool can_launch;
};

struct comparison {
    struct hv_inputs inputs;
    struct hv_plugins plugins;
    struct entry *entries;
    size_t n;
    enum hv_target_id target; /**< of --target; HV_TARGET_ANY: not given */
};

static struct entry *entry_of(struct comparison *c, uint32_t id)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->entries[i].id == id) {
            return &c->entries[i];
        }
    }
    return NULL;
}

static void set_reason(struct entry *e, const char *text)
{
    free(e->reason);
    e->reason = hv_xstrdup(text != NULL && text[0] != '\0' ? text : "no reason given");
}

static void keep_plan(struct entry *e, const json_t *plan)
{
    if (json_is_object(plan)) {
        json_decref(e->plan);
        e->plan = json_deep_copy(plan);
    }
}

static void on_event(void *ctx, const struct hv_pool_event *ev)
{
    struct entry *e = entry_of(ctx, ev->id);
    if (e == NULL) {
        return;
    }
    if (ev->kind == HV_POOL_INCUMBENT) {
        keep_plan(e, json_object_get(ev->line, "plan"));
    } else if (ev->kind == HV_POOL_RESULT) {
        e->answered = true;
        e->applies = !json_is_false(json_object_get(ev->line, "applies"));
        keep_plan(e, json_object_get(ev->line, "plan"));
        set_reason(e, json_string_value(json_object_get(ev->line, "reason")));
    } else if (ev->kind == HV_POOL_FAILED || ev->kind == HV_POOL_CANCELLED) {
        e->applies = true;
        e->unstarted = ev->unstarted;
        set_reason(e, ev->text);
    }
}

/** True where no strategy was run, for want of a process. */
static bool none_started(const struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (!c->entries[i].unstarted) {
            return false;
        }
    }
    return c->n > 0;
}

/** The plugin of the first part of a strategy. */
static const struct hv_plugin *first_part(const struct hv_plugins *all, const char *strategy)
{
    char id[64];
    (void)snprintf(id, sizeof id, "%.*s", (int)strcspn(strategy, "+"), strategy);
    return hv_plugins_find(all, id);
}

/** Adds a strategy, once. */
static void add_entry(struct comparison *c, const char *strategy)
{
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->entries[i].strategy, strategy) == 0) {
            return;
        }
    }
    c->entries[c->n++] =
        (struct entry){.strategy = strategy, .plugin = first_part(&c->plugins, strategy)};
}

/** Adds what a word stands for: a strategy, or where none has that id all of a kind that plan. */
static enum hv_status add_word(struct comparison *c, const char *word, struct hv_err *err)
{
    enum hv_kind kind = hv_plugins_find(&c->plugins, word) == NULL ? hv_kind_of(word) : HV_KIND_N;
    size_t before = c->n;

    if (kind == HV_KIND_N) {
        add_entry(c, word);
        return HV_OK;
    }
    for (size_t i = 0; i < c->plugins.n; i++) {
        const struct hv_plugin *p = &c->plugins.items[i];
        if (p->has[HV_PLUGIN_PLAN] && hv_plugin_is_of(p, kind)) {
            add_entry(c, p->id);
        }
    }
    return c->n > before ? HV_OK
                         : hv_err_set(err, HV_EUSAGE, "compare: no strategy is of kind %s", word);
}

/** Selected strategies: the listed names and kinds, else every strategy that produces plans. */
static enum hv_status choose(struct comparison *c, struct hv_args *args, struct hv_err *err)
{
    size_t n = 0;
    const char **names = hv_args_all(args, "strategies", &n);
    bool all = n == 0 || (n == 1 && strcmp(names[0], "all") == 0);
    enum hv_status st = HV_OK;
    c->entries = hv_arena_new(&args->arena, struct entry, c->plugins.n + n + 1);
    for (size_t i = 0; !all && i < n && st == HV_OK; i++) {
        st = add_word(c, names[i], err);
    }
    for (size_t i = 0; all && i < c->plugins.n; i++) {
        if (c->plugins.items[i].has[HV_PLUGIN_PLAN]) {
            add_entry(c, c->plugins.items[i].id);
        }
    }
    if (st == HV_OK && c->n == 0) {
        st = hv_err_set(err, HV_EUSAGE, "there is no strategy to run");
    }
    return st;
}

static json_t *make_job(const struct comparison *c, const struct hv_args *args,
                        const char *strategy, json_t *options)
{
    json_t *job = json_object();
    json_object_set(job, "cluster", c->inputs.cluster.json.root);
    json_object_set(job, "model", c->inputs.model.json.root);
    json_object_set(job, "job", c->inputs.job.json.root);
    json_object_set_new(job, "strategy", json_string(strategy));
    json_object_set_new(job, "options", options);
    json_object_set_new(job, "seed", json_integer((json_int_t)hv_args_number(args, "seed", 1)));
    if (hv_args_has(args, "budget")) {
        json_object_set_new(job, "budget",
                            json_integer((json_int_t)hv_args_number(args, "budget", 0)));
    }
    if (hv_args_has(args, "time-limit")) {
        json_object_set_new(job, "time_limit_s",
                            hv_json_num(hv_args_number(args, "time-limit", 0)));
    }
    return job;
}

/** True where two rows are of one family: they run in one process, which prices their common stages
 * once. */
static bool same_family(const struct entry *a, const struct entry *b)
{
    return a->plugin != NULL && b->plugin != NULL && a->plugin->family != NULL &&
           strcmp(a->plugin->path, b->plugin->path) == 0;
}

/** Number of the first row of the family of row i; *n: how many rows it has. */
static size_t first_of_family(const struct comparison *c, size_t i, size_t *n)
{
    size_t first = i;
    *n = 1;
    for (size_t k = 0; k < c->n; k++) {
        if (k != i && same_family(&c->entries[k], &c->entries[i])) {
            first = k < first ? k : first;
            ++*n;
        }
    }
    return first;
}

static void submit(struct comparison *c, const struct hv_args *args, struct hv_pool *pool, size_t i,
                   json_t *options)
{
    double limit_s = hv_args_number(args, "time-limit", 0);
    size_t n;
    size_t first = first_of_family(c, i, &n);
    json_t *job = make_job(c, args, c->entries[i].strategy, options);
    json_object_set_new(job, "jobs_in_process", json_integer((json_int_t)n));
    c->entries[i].id = hv_pool_submit_behind(pool, job, limit_s > 0 ? limit_s + grace_s : 0,
                                             first < i ? c->entries[first].id : 0);
    json_decref(job);
}

static enum hv_status submit_all(struct comparison *c, struct hv_args *args, struct hv_pool *pool,
                                 struct hv_err *err)
{
    size_t n = 0;
    const char **texts = hv_args_all(args, "option", &n);
    enum hv_status st = hv_cli_job_options(texts, n, &c->inputs, err);
    if (st != HV_OK) {
        return st;
    }
    bool *used = hv_xcalloc(n + 1, sizeof *used);
    for (size_t i = 0; i < c->n; i++) {
        json_t *options = NULL;
        st = hv_cli_run_options(&c->plugins, c->entries[i].strategy, texts, n, used, &options, err);
        if (st != HV_OK) {
            break;
        }
        submit(c, args, pool, i, options);
    }
    for (size_t i = 0; i < n && st == HV_OK; i++) {
        if (!used[i]) {
            st = hv_err_set(err, HV_EUSAGE, "compare: --option: none of the strategies has \"%s\"",
                            texts[i]);
        }
    }
    free(used);
    return st;
}

/** Runs until everything has ended; an interrupt cancels what is left. */
static bool run_pool(struct comparison *c, struct hv_pool *pool)
{
    bool cancelled = false;
    hv_pool_poll(pool);
    while (hv_pool_n_running(pool) + hv_pool_n_queued(pool) > 0) {
        hv_pool_wait(pool, POLL_MS);
        if (hv_interrupted(NULL) && !cancelled) {
            cancelled = true;
            for (size_t i = 0; i < c->n; i++) {
                (void)hv_pool_cancel(pool, c->entries[i].id);
            }
        }
    }
    return cancelled;
}

static double figure(const struct entry *e, const char *key)
{
    const json_t *v = json_object_get(json_object_get(e->plan, "simulated"), key);
    return json_is_number(v) ? json_number_value(v) : HV_UNKNOWN;
}

/** "train", "serve", or "jobs" for a plan of many. */
static const char *mode_of(const struct entry *e)
{
    const char *mode = json_string_value(json_object_get(e->plan, "mode"));
    return json_object_get(e->plan, "jobs") != NULL ? "jobs" : mode != NULL ? mode : "train";
}

/** Classes of rows: in this order, and only the first four have ranks. ROW_OVER: it misses the
 * objective's price or deadline. */
enum row_class {
    ROW_EXACT,
    ROW_STALE,
    ROW_OVER,
    ROW_BROKEN,
    ROW_OTHER,
    ROW_NO_PLAN,
    ROW_NOT_APPLYING
};

/** True where the plan violates limits of the objective and no other rule. */
static bool misses_limits(const json_t *violations)
{
    for (size_t i = 0; i < json_array_size(violations); i++) {
        const char *code =
            json_string_value(json_object_get(json_array_get(violations, i), "code"));
        if (code == NULL || (strcmp(code, hv_violation_name(HV_V_DEADLINE)) != 0 &&
                             strcmp(code, hv_violation_name(HV_V_PRICE)) != 0)) {
            return false;
        }
    }
    return true;
}

/** ROW_OTHER: a serving or multi-job plan, which has no iteration time to rank by. */
static enum row_class rank_class(const struct entry *e, bool allow_stale)
{
    if (!e->applies) {
        return ROW_NOT_APPLYING;
    }
    if (e->plan != NULL && (strcmp(mode_of(e), "train") != 0)) {
        return ROW_OTHER;
    }
    if (e->plan == NULL || !hv_known(figure(e, "iteration_s"))) {
        return ROW_NO_PLAN;
    }
    const json_t *violations = json_object_get(e->plan, "violations");
    if (json_array_size(violations) > 0) {
        return misses_limits(violations) ? ROW_OVER : ROW_BROKEN;
    }
    bool exact = !json_is_false(json_object_get(json_object_get(e->plan, "simulated"), "exact"));
    return exact || allow_stale ? ROW_EXACT : ROW_STALE;
}

/** Sort key of a row inside its class; lower is better. */
static double worth_of(const struct entry *e, const struct hv_objective *o)
{
    if (e->plan == NULL || strcmp(mode_of(e), "serve") != 0) {
        return hv_cli_compare_worth(o, json_object_get(e->plan, "simulated"));
    }
    bool broken = json_array_size(json_object_get(e->plan, "violations")) > 0;
    return broken                       ? HUGE_VAL
           : o->minimize == HV_MIN_COST ? hv_or(figure(e, hv_eval_figure_key(o)), HUGE_VAL)
                                        : -hv_or(figure(e, "tokens_per_s"), 0);
}

/** Stable insertion sort: by class, then by the sort key, then in the order given. */
static void rank(struct comparison *c)
{
    const struct hv_objective *o = &c->inputs.job.job.objective;
    for (size_t i = 1; i < c->n; i++) {
        struct entry x = c->entries[i];
        enum row_class cls = rank_class(&x, o->allow_stale);
        double v = worth_of(&x, o);
        size_t k = i;
        while (k > 0) {
            enum row_class other = rank_class(&c->entries[k - 1], o->allow_stale);
            double w = worth_of(&c->entries[k - 1], o);
            if (other < cls || (other == cls && w <= v)) {
                break;
            }
            c->entries[k] = c->entries[k - 1];
            k--;
        }
        c->entries[k] = x;
    }
}

/** Finds rows whose plans are equal: each names the first of them in the ranking. */
static void find_equal(struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct entry *e = &c->entries[i];
        e->text = e->plan != NULL ? hv_plan_same_text(c->inputs.cluster.cluster, e->plan) : NULL;
        for (size_t k = 0; k < i && e->text != NULL && e->same == NULL; k++) {
            const struct entry *other = &c->entries[k];
            if (other->text != NULL && strcmp(other->text, e->text) == 0) {
                e->same = other->strategy;
            }
        }
    }
}

/** Finds which plans the target of --target can launch. */
static void find_launchable(struct comparison *c)
{
    for (size_t i = 0; c->target != HV_TARGET_ANY && i < c->n; i++) {
        struct entry *e = &c->entries[i];
        if (e->plan == NULL) {
            continue;
        }
        e->can_launch =
            hv_cli_compare_launch(c->inputs.cluster.cluster, e->plan, c->target, &e->launch);
        if (e->can_launch) {
            hv_str_adds(&e->launch, "yes");
        }
    }
}

/** How many parts of its plan are approximated. */
static size_t n_approximated(const struct entry *e)
{
    return json_array_size(json_object_get(json_object_get(e->plan, "simulated"), "approximated"));
}

/** "whole", "~2" or "= zero2". */
static void add_trust(const struct entry *e, struct hv_str *out)
{
    if (e->same != NULL) {
        hv_str_addf(out, "= %s", e->same);
    } else {
        hv_plan_trust(n_approximated(e), out);
    }
}

/** Heading of a row. */
static enum hv_kind kind_of(const struct entry *e)
{
    return e->plugin != NULL && e->plugin->n_kinds > 0 ? e->plugin->kinds[0] : HV_KIND_YOURS;
}

/** Explains why the first serving plan is ranked first, where two of them break no rule. */
static void add_why_serving(const struct comparison *c, struct hv_str *out)
{
    struct hv_compare_side side[2];
    size_t n = 0;
    for (size_t i = 0; i < c->n && n < 2; i++) {
        const struct entry *e = &c->entries[i];
        bool serves = e->plan != NULL && strcmp(mode_of(e), "serve") == 0;
        if (serves && json_array_size(json_object_get(e->plan, "violations")) == 0) {
            side[n++] =
                (struct hv_compare_side){e->strategy, json_object_get(e->plan, "simulated")};
        }
    }
    if (n == 2) {
        hv_str_adds(out, hv_str_cstr(out)[0] != '\0' ? "\n" : "");
        hv_cli_compare_serving(&c->inputs.job.job.objective, &side[0], &side[1], out);
    }
}

/** Time and band of a row. */
static struct hv_metrics banded(const struct entry *e)
{
    const json_t *band = json_object_get(json_object_get(e->plan, "simulated"), "band");
    struct hv_metrics m = {.iteration_s = figure(e, "iteration_s")};
    if (band != NULL) {
        m.band = (struct hv_band){json_number_value(json_object_get(band, "low_s")),
                                  json_number_value(json_object_get(band, "high_s")),
                                  json_number_value(json_object_get(band, "cover"))};
    }
    return m;
}

/** Names the rows whose order with the first one is within the accuracy of their times. */
static void add_within_bands(const struct comparison *c, struct hv_str *out)
{
    struct hv_metrics first = banded(&c->entries[0]);
    struct hv_str names = {0};
    size_t n = 0;
    for (size_t i = 1; i < c->n; i++) {
        const struct entry *e = &c->entries[i];
        if (rank_class(e, c->inputs.job.job.objective.allow_stale) != ROW_EXACT) {
            break; /* they come first */
        }
        struct hv_metrics m = banded(e);
        if (hv_band_within(&first, &m) && e->same == NULL) {
            hv_str_addf(&names, "%s%s", n++ > 0 ? ", " : "", e->strategy);
        }
    }
    if (n > 0) {
        char low[HV_FMT_CAP], high[HV_FMT_CAP];
        hv_text_addf(out,
                     " Within each other's 80%% bands, so in no certain order: %s (%s to %s) and "
                     "%s.",
                     c->entries[0].strategy, hv_fmt_seconds(low, sizeof low, first.band.low_s),
                     hv_fmt_seconds(high, sizeof high, first.band.high_s), hv_str_cstr(&names));
    }
    hv_str_free(&names);
}

/** Explains why the first row is ranked first: compared with the second where both are ROW_EXACT,
 * else by hv_cli_compare_alone. */
static void add_why(const struct comparison *c, struct hv_str *out)
{
    const struct hv_objective *o = &c->inputs.job.job.objective;
    struct hv_compare_side side[2];
    enum row_class cls[2] = {ROW_NO_PLAN, ROW_NO_PLAN};
    for (size_t i = 0; i < 2 && c->n >= 2; i++) {
        cls[i] = rank_class(&c->entries[i], o->allow_stale);
        side[i] = (struct hv_compare_side){c->entries[i].strategy,
                                           json_object_get(c->entries[i].plan, "simulated")};
    }
    if (cls[0] != ROW_EXACT || cls[1] != ROW_EXACT) {
        hv_cli_compare_alone(o, &side[0],
                             cls[0] == ROW_OVER    ? HV_COMPARE_OVER
                             : cls[0] != ROW_EXACT ? HV_COMPARE_NO_WORD
                             : cls[1] == ROW_STALE ? HV_COMPARE_EXACT
                             : cls[1] == ROW_OVER  ? HV_COMPARE_WITHIN
                                                   : HV_COMPARE_ONLY,
                             out);
        return;
    }
    hv_cli_compare_why(o, &side[0], &side[1], out);
    add_within_bands(c, out);
    if (o->minimize == HV_MIN_TIME) {
        struct hv_compare_plan best = {c->entries[0].strategy, c->entries[0].plan};
        struct hv_compare_plan next = {c->entries[1].strategy, c->entries[1].plan};
        hv_cli_compare_try(&c->inputs, &best, &next, out);
    }
}

/** The reason why a row is not ranked. */
static const char *apart_reason(const struct entry *e)
{
    return strcmp(mode_of(e), "jobs") == 0
               ? "a plan for several jobs has no single iteration time, so it is not ranked"
               : "a serving plan has a token rate and no iteration time, so it is not ranked among "
                 "training plans";
}

/** {"target": "megatron", "can": false, "reason": "stage 1: tp 8 beside …"} */
static json_t *launch_json(enum hv_target_id target, const struct entry *e)
{
    json_t *v = json_object();
    json_object_set_new(v, "target", json_string(hv_target_name(target)));
    json_object_set_new(v, "can", json_boolean(e->can_launch));
    if (!e->can_launch) {
        json_object_set_new(v, "reason", json_string(hv_str_cstr(&e->launch)));
    }
    return v;
}

static json_t *rows_json(const struct comparison *c, bool stopped)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < c->n; i++) {
        const struct entry *e = &c->entries[i];
        json_t *row = json_object();
        json_object_set_new(row, "strategy", json_string(e->strategy));
        json_object_set_new(row, "kind", json_string(hv_kind_name(kind_of(e))));
        json_object_set_new(row, "applies", json_boolean(e->applies));
        bool other = rank_class(e, true) == ROW_OTHER;
        if (other) {
            json_object_set_new(row, "reason", json_string(apart_reason(e)));
        } else if (e->plan == NULL && e->reason != NULL) {
            json_object_set_new(row, "reason", json_string(e->reason));
        }
        if (e->plan != NULL) {
            json_object_set(row, "plan", e->plan);
            json_object_set(row, "simulated", json_object_get(e->plan, "simulated"));
            struct hv_str trust = {0};
            hv_plan_trust(n_approximated(e), &trust);
            json_object_set_new(row, "trust", json_string(hv_str_cstr(&trust)));
            hv_str_free(&trust);
            if (e->same != NULL) {
                json_object_set_new(row, "same_as", json_string(e->same));
            }
            if (e->launch.n > 0) {
                json_object_set_new(row, "launch", launch_json(c->target, e));
            }
            json_t *claimed = json_object_get(e->plan, "claimed");
            if (claimed != NULL) {
                json_object_set(row, "claimed", claimed);
            }
        }
        json_array_append_new(rows, row);
    }
    json_t *out = json_object();
    json_object_set_new(out, "rows", rows);
    struct hv_str why = {0};
    add_why(c, &why);
    add_why_serving(c, &why);
    if (hv_str_cstr(&why)[0] != '\0') {
        json_object_set_new(out, "why", json_string(hv_str_cstr(&why)));
    }
    hv_str_free(&why);
    if (stopped) {
        json_object_set_new(out, "stopped", json_true());
    }
    return out;
}

/** True where a plan is not exact because experts drop tokens, not because weights are old. */
static bool drops_tokens(const struct entry *e)
{
    const json_t *simulated = json_object_get(e->plan, "simulated");
    const json_t *routing = json_object_get(simulated, "routing");
    double frac = json_number_value(json_object_get(simulated, "dropped_frac")) +
                  json_number_value(json_object_get(routing, "dropped_frac"));
    return frac > 0 && !(json_number_value(json_object_get(simulated, "staleness")) > 0);
}

/** Describes a plan that is not ranked: its figures, the reason, and whether the target can launch
 * it. */
static void add_apart(const struct entry *e, enum hv_target_id target, struct hv_str *out)
{
    char tok[HV_FMT_CAP], usd[HV_FMT_CAP], claim[HV_FMT_CAP];
    const json_t *claimed = json_object_get(json_object_get(e->plan, "claimed"), "tokens_per_s");
    bool broken = json_array_size(json_object_get(e->plan, "violations")) > 0;
    hv_text_addf(out, " ·%s %-14s %s tokens/s", broken ? "!" : " ", e->strategy,
                 hv_fmt_count(tok, sizeof tok, figure(e, "tokens_per_s")));
    if (claimed != NULL) {
        hv_text_addf(out, " (claimed %s)",
                     hv_fmt_count(claim, sizeof claim, json_number_value(claimed)));
    }
    hv_text_addf(out, ", %s USD per million: %s",
                 hv_fmt_fixed(usd, sizeof usd, figure(e, "usd_per_Mtoken"), 3), apart_reason(e));
    if (e->launch.n > 0) {
        hv_str_addf(out, "; %s: %s", hv_target_name(target), hv_str_cstr(&e->launch));
    }
    hv_str_addc(out, '\n');
}

/** The column of --target, behind `width` columns of trust; nothing without the option. */
static void add_launch(const struct entry *e, size_t width, struct hv_str *out)
{
    size_t n = e->launch.n < REASON_MAX ? e->launch.n : REASON_MAX;
    if (n > 0) {
        hv_str_addf(out, "%*s", width < TRUST_WIDTH ? (int)(TRUST_WIDTH - width) : 0, "");
        hv_str_adds(out, "  ");
        hv_text_clean(out, e->launch.p, n);
        hv_str_adds(out, n < e->launch.n ? "…" : "");
    }
}

static void add_row(const struct entry *e, size_t rank, enum hv_target_id target,
                    struct hv_str *out)
{
    if (rank_class(e, true) == ROW_OTHER) {
        add_apart(e, target, out);
        return;
    }
    if (e->plan == NULL) {
        size_t n = strlen(e->reason);
        hv_text_addf(out, " -  %-14s ", e->strategy);
        hv_text_clean(out, e->reason, n < REASON_MAX ? n : REASON_MAX);
        hv_str_adds(out, n < REASON_MAX ? "\n" : "…\n");
        return;
    }
    char it[HV_FMT_CAP], tok[HV_FMT_CAP], mfu[HV_FMT_CAP], bub[HV_FMT_CAP], bound[HV_FMT_CAP],
        gap[HV_FMT_CAP], usd[HV_FMT_CAP], claim[HV_FMT_CAP];
    const json_t *claimed = json_object_get(json_object_get(e->plan, "claimed"), "iteration_s");
    bool exact = !json_is_false(json_object_get(json_object_get(e->plan, "simulated"), "exact"));
    enum row_class cls = rank_class(e, true);
    struct hv_str trust = {0};
    add_trust(e, &trust);
    hv_str_adds(&trust, cls == ROW_OVER   ? "  over"
                        : exact           ? ""
                        : drops_tokens(e) ? "  drops"
                                          : "  stale");
    hv_text_addf(out, "%2zu%s %-14s %9s %9s %12s %7s %7s %9s %8s %7s  %-13s %s", rank,
                 cls == ROW_BROKEN ? "!" : " ", e->strategy,
                 hv_fmt_seconds(it, sizeof it, figure(e, "iteration_s")),
                 hv_fmt_seconds(claim, sizeof claim,
                                claimed != NULL ? json_number_value(claimed) : HV_UNKNOWN),
                 hv_fmt_count(tok, sizeof tok, figure(e, "tokens_per_s")),
                 hv_fmt_percent(mfu, sizeof mfu, figure(e, "mfu")),
                 hv_fmt_percent(bub, sizeof bub, figure(e, "bubble")),
                 hv_fmt_seconds(bound, sizeof bound, figure(e, "bound_s")),
                 hv_fmt_percent(gap, sizeof gap, figure(e, "gap")),
                 hv_fmt_fixed(usd, sizeof usd, figure(e, "usd_per_Mtoken"), 3),
                 hv_kind_name(kind_of(e)), hv_str_cstr(&trust));
    add_launch(e, trust.n, out);
    hv_str_addc(out, '\n');
    hv_str_free(&trust);
}

/** The reason why a row does not apply, without the id in front of it. */
static const char *reason_of(const struct entry *e)
{
    size_t n = strlen(e->strategy);
    bool named = strncmp(e->reason, e->strategy, n) == 0 && e->reason[n] == ' ';
    return named ? e->reason + n + 1 : e->reason;
}

/** True for a row of the kind without a plan: one that does not apply, or (`applies`) one that
 * found none. */
static bool is_left_out(const struct entry *e, enum hv_kind kind, bool applies)
{
    return e->applies == applies && e->plan == NULL && kind_of(e) == kind;
}

/** True for a row that found no plan for the reason that others of its kind have too: they stand in
 * one line. Runs that failed have a line each. */
static bool shares_reason(const struct comparison *c, const struct entry *e)
{
    for (size_t k = 0; e->answered && e->applies && e->plan == NULL && k < c->n; k++) {
        const struct entry *x = &c->entries[k];
        if (x != e && x->answered && is_left_out(x, kind_of(e), true) &&
            strcmp(reason_of(x), reason_of(e)) == 0) {
            return true;
        }
    }
    return false;
}

/** Appends the rows of the kind that have the reason of row i, which is the first: "helix, hexgen
 * (needs …)". Returns how many. */
static size_t add_same_reason(const struct comparison *c, size_t i, struct hv_str *out)
{
    const char *reason = reason_of(&c->entries[i]);
    enum hv_kind kind = kind_of(&c->entries[i]);
    bool applies = c->entries[i].applies;
    size_t n = 0, len = strlen(reason);

    for (size_t k = 0; k < c->n; k++) {
        const struct entry *e = &c->entries[k];
        if (e->answered != c->entries[i].answered || !is_left_out(e, kind, applies) ||
            strcmp(reason_of(e), reason) != 0) {
            continue;
        }
        if (k < i) {
            return 0; /* they stand with that one */
        }
        hv_str_addf(out, "%s%s", n > 0 ? ", " : out->n > 0 ? "; " : "", e->strategy);
        n++;
    }
    hv_str_adds(out, " (");
    hv_text_clean(out, reason, len < REASON_MAX ? len : REASON_MAX);
    hv_str_adds(out, len < REASON_MAX ? ")" : "…)");
    return n;
}

/** What does not apply, and what found no plan for the same reason, one line per kind each. */
static void add_not_applying(const struct comparison *c, struct hv_str *out)
{
    for (int kind = 0; kind < 2 * HV_KIND_N; kind++) {
        enum hv_kind of = (enum hv_kind)(kind / 2);
        bool applies = kind % 2 == 1;
        struct hv_str reasons = {0};
        size_t n = 0;
        for (size_t i = 0; i < c->n; i++) {
            const struct entry *e = &c->entries[i];
            if (is_left_out(e, of, applies) && (!applies || shares_reason(c, e))) {
                n += add_same_reason(c, i, &reasons);
            }
        }
        if (n > 0 && applies) {
            hv_str_addf(out, "kind %s, %zu find no plan: %s\n", hv_kind_name(of), n,
                        hv_str_cstr(&reasons));
        } else if (n > 0) {
            hv_str_addf(out, "kind %s, %zu do%s not apply: %s\n", hv_kind_name(of), n,
                        n == 1 ? "es" : "", hv_str_cstr(&reasons));
        }
        hv_str_free(&reasons);
    }
}

/** Explains the marks of the table that occur in it. */
static void add_notes(const struct comparison *c, struct hv_str *out)
{
    const struct hv_objective *o = &c->inputs.job.job.objective;
    bool stale = false, drops = false, broken = false, over = false;
    for (size_t i = 0; i < c->n; i++) {
        bool behind = rank_class(&c->entries[i], o->allow_stale) == ROW_STALE;
        stale = stale || (behind && !drops_tokens(&c->entries[i]));
        drops = drops || (behind && drops_tokens(&c->entries[i]));
        broken = broken || rank_class(&c->entries[i], o->allow_stale) == ROW_BROKEN;
        over = over || rank_class(&c->entries[i], o->allow_stale) == ROW_OVER;
    }
    if (stale) {
        hv_str_adds(out, "stale: the plan computes with older weights and ranks behind exact plans "
                         "(objective.allow_stale in the job changes this)\n");
    }
    if (drops) {
        hv_str_adds(out, "drops: experts of the plan drop tokens that they have no place for; it "
                         "ranks behind exact plans (objective.allow_stale in the job changes "
                         "this)\n");
    }
    if (over) {
        hv_str_adds(out,
                    "over: the plan exceeds the price or the deadline of the objective and ranks "
                    "behind plans within the limits; `hetviz eval` prints by how much\n");
    }
    if (broken) {
        hv_str_adds(out, "!: the plan breaks a rule; `hetviz eval` prints which one\n");
    }
    bool rough = false;
    for (size_t i = 0; i < c->n; i++) {
        rough = rough || n_approximated(&c->entries[i]) > 0;
    }
    if (rough) {
        hv_str_adds(out, "~n: n parts of the plan are approximated; `hetviz eval` lists them\n");
    }
    if (c->target != HV_TARGET_ANY) {
        hv_str_addf(out,
                    "%s: whether it can launch the plan, or the first reason why not; `hetviz "
                    "export` writes its files, -o target=%s searches only plans that it can say\n",
                    hv_target_name(c->target), hv_target_name(c->target));
    }
    for (size_t i = 0; i < c->n; i++) {
        hv_cli_claim_note(c->entries[i].strategy, c->entries[i].plan, out);
    }
}

static void add_table(const struct comparison *c, struct hv_str *out)
{
    hv_text_addf(out, "    %-14s %9s %9s %12s %7s %7s %9s %8s %7s  %-13s %s", "strategy",
                 "iteration", "claimed", "tokens/s", "MFU", "bubble", "bound", "gap", "$/Mtok",
                 "kind", "trust");
    if (c->target != HV_TARGET_ANY) {
        hv_str_addf(out, "%*s%s", TRUST_WIDTH + 2 - (int)strlen("trust"), "",
                    hv_target_name(c->target));
    }
    hv_str_addc(out, '\n');
    for (size_t i = 0; i < c->n; i++) {
        const struct entry *e = &c->entries[i];
        if ((e->applies || e->plan != NULL) && !shares_reason(c, e)) {
            add_row(e, i + 1, c->target, out);
        }
    }
    add_not_applying(c, out);
    add_notes(c, out);
    struct hv_str why = {0};
    add_why(c, &why);
    add_why_serving(c, &why);
    if (hv_str_cstr(&why)[0] != '\0') {
        hv_str_addc(out, '\n');
        hv_str_add(out, why.p, why.n);
        hv_str_addc(out, '\n');
    }
    hv_str_free(&why);
}

static enum hv_status show(const struct hv_args *args, const struct comparison *c, bool stopped,
                           struct hv_err *err)
{
    if (hv_args_has(args, "json")) {
        return hv_cli_print_json(rows_json(c, stopped), err);
    }
    struct hv_str out = {0};
    add_table(c, &out);
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

static enum hv_status compare(struct comparison *c, struct hv_args *args, struct hv_err *err)
{
    enum hv_status st =
        hv_inputs_read(&c->inputs, hv_args_text(args, "cluster", NULL),
                       hv_args_text(args, "model", NULL), hv_args_text(args, "job", NULL), err);
    st = st == HV_OK ? hv_plugins_read(&c->plugins, err) : st;
    st = st == HV_OK ? choose(c, args, err) : st;
    if (st != HV_OK) {
        return st;
    }
    struct hv_pool_config config = {
        .n_workers = (size_t)hv_args_number(args, "jobs", 0), .on_event = on_event, .ctx = c};
    struct hv_pool *pool = hv_pool_new(&config);
    hv_interrupt_catch();
    st = submit_all(c, args, pool, err);
    bool cancelled = st == HV_OK && run_pool(c, pool);
    hv_pool_free(pool);
    if (st != HV_OK) {
        return st;
    }
    if (none_started(c)) {
        return hv_err_set(err, HV_EIO, "no strategy was run: %s", c->entries[0].reason);
    }
    rank(c);
    find_equal(c);
    find_launchable(c);
    st = show(args, c, cancelled, err);
    if (st == HV_OK && cancelled) {
        return hv_err_set(
            err, HV_ESTOPPED,
            "interrupted: strategies that were still running show their best plan so far");
    }
    bool any = false;
    for (size_t i = 0; i < c->n; i++) {
        any = any || c->entries[i].plan != NULL;
    }
    return st == HV_OK && !any ? hv_err_set(err, HV_ENO, "no strategy has a plan for these inputs")
                               : st;
}

enum hv_status hv_cli_compare(struct hv_args *args, struct hv_err *err)
{
    struct comparison c = {.n = 0};
    (void)hv_target_find(hv_args_text(args, "target", hv_target_name(HV_TARGET_ANY)), &c.target);
    enum hv_status st = compare(&c, args, err);
    for (size_t i = 0; i < c.n; i++) {
        json_decref(c.entries[i].plan);
        free(c.entries[i].reason);
        free(c.entries[i].text);
        hv_str_free(&c.entries[i].launch);
    }
    hv_plugins_free(&c.plugins);
    hv_inputs_free(&c.inputs);
    return st;
}
