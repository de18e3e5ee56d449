/*
 * Counterfactuals of a comparison: a choice of one plan in another, judged by eval. Sentences about
 * the breakdowns are in why.c.
 */
#include "ui/cli/compare/try.h"

#include "solver/base/units.h"
#include "solver/eval/eval.h"

#include <string.h>

/** Least share of the difference that a choice must recover to be named as its cause. */
#define WORTH_TELLING 0.05

/** Outcome of the transfer of a choice from one plan to another. */
enum taken { SAME, GIVEN, IMPOSSIBLE };

/** Gives `to` the choice of `from`. */
typedef enum taken give_fn(const json_t *from, json_t *to);

static enum taken give_key(const json_t *from, json_t *to, const char *key)
{
    json_t *own = json_object_get(from, key);
    if (json_equal(own, json_object_get(to, key))) {
        return SAME;
    }
    if (own == NULL) {
        (void)json_object_del(to, key);
    } else {
        json_object_set(to, key, own);
    }
    return GIVEN;
}

static enum taken give_schedule(const json_t *from, json_t *to)
{
    return give_key(from, to, "schedule");
}

static enum taken give_sync(const json_t *from, json_t *to)
{
    return give_key(from, to, "sync");
}

/** Gives every stage the value that all stages of `from` have. */
static enum taken give_stage_key(const json_t *from, json_t *to, const char *key)
{
    const json_t *replica = NULL, *stage = NULL;
    const json_t *value = NULL;
    size_t i = 0, k = 0;
    bool first = true, differs = false;
    json_array_foreach(json_object_get(from, "replicas"), i, replica)
    {
        json_array_foreach(json_object_get(replica, "stages"), k, stage)
        {
            const json_t *own = json_object_get(stage, key);
            if (!first && !json_equal(own, value)) {
                return IMPOSSIBLE; /* every stage has its own */
            }
            value = own;
            first = false;
        }
    }
    json_array_foreach(json_object_get(to, "replicas"), i, replica)
    {
        size_t n = json_array_size(json_object_get(replica, "stages"));
        for (k = 0; k < n; k++) {
            json_t *x = json_array_get(json_object_get(replica, "stages"), k);
            differs = differs || !json_equal(json_object_get(x, key), value);
            if (value == NULL) {
                (void)json_object_del(x, key);
            } else {
                json_object_set_new(x, key, json_deep_copy(value));
            }
        }
    }
    return differs ? GIVEN : SAME;
}

static enum taken give_recompute(const json_t *from, json_t *to)
{
    return give_stage_key(from, to, "recompute");
}

/** True where stages give degrees layer by layer. */
static bool has_degrees(const json_t *plan)
{
    const json_t *replica = NULL, *stage = NULL;
    size_t i = 0, k = 0;
    bool any = false;
    json_array_foreach(json_object_get(plan, "replicas"), i, replica)
    {
        json_array_foreach(json_object_get(replica, "stages"), k, stage)
        {
            any = any || json_object_get(stage, "degrees") != NULL;
        }
    }
    return any;
}

static enum taken give_zero(const json_t *from, json_t *to)
{
    if (has_degrees(from) || has_degrees(to)) {
        return IMPOSSIBLE; /* layers have their own */
    }
    return give_stage_key(from, to, "zero");
}

static json_int_t micro_batch_of(const json_t *plan)
{
    const json_t *v = json_object_get(plan, "micro_batch");
    return v != NULL ? json_integer_value(v) : 1;
}

/** The same sequences in micro-batches of another size. */
static enum taken give_micro_batch(const json_t *from, json_t *to)
{
    json_int_t size = micro_batch_of(from), own = micro_batch_of(to);
    json_t *replica = NULL;
    size_t i = 0;
    if (size == own || size < 1) {
        return SAME;
    }
    json_array_foreach(json_object_get(to, "replicas"), i, replica)
    {
        json_t *n = json_object_get(replica, "micro_batches");
        json_int_t sequences = json_integer_value(n) * own;
        if (!json_is_integer(n) || json_object_get(replica, "micro_batch") != NULL ||
            sequences % size != 0) {
            return IMPOSSIBLE;
        }
        json_object_set_new(replica, "micro_batches", json_integer(sequences / size));
    }
    json_object_set_new(to, "micro_batch", json_integer(size));
    return GIVEN;
}

static const struct {
    const char *what;
    give_fn *give;
} choices[] = {{"schedule", give_schedule},
               {"synchronisation", give_sync},
               {"micro-batch size", give_micro_batch},
               {"recomputation", give_recompute},
               {"sharding of states", give_zero}};

/** Iteration time of a plan tree; HV_UNKNOWN where it breaks a rule. Takes over the tree. */
static double judge(const struct hv_inputs *in, struct hv_cost *cost, json_t *tree)
{
    struct hv_json json = {0};
    struct hv_plan_doc doc = {0};
    struct hv_arena arena = {0};
    struct hv_verdict v = {0};
    const struct hv_eval_options o = {.no_bound = true};
    hv_json_wrap(&json, tree, "tried plan");
    double t = HV_UNKNOWN;
    if (hv_plan_doc_build(&doc, json, in->cluster.cluster, NULL) == HV_OK) {
        if (hv_eval(cost, doc.plan, &o, &arena, &v, NULL) == HV_OK && v.findings.n == 0) {
            t = v.metrics.iteration_s;
        }
        hv_plan_doc_free(&doc);
    }
    hv_arena_free(&arena);
    return t;
}

static double iteration_s(const json_t *plan)
{
    const json_t *v = json_object_get(json_object_get(plan, "simulated"), "iteration_s");
    return json_is_number(v) ? json_number_value(v) : HV_UNKNOWN;
}

/** The outcomes of all choices. */
struct trials {
    bool tried[HV_COUNT(choices)], untried[HV_COUNT(choices)];
    double best_s;
    size_t best;
    bool any;
};

static void try_all(const struct hv_inputs *in, const json_t *first, const json_t *second,
                    struct trials *t)
{
    struct hv_cost *cost = hv_cost_new(in->cluster.cluster, in->model.model, &in->job.job);
    for (size_t i = 0; i < HV_COUNT(choices); i++) {
        json_t *tree = json_deep_copy(second);
        enum taken taken = choices[i].give(first, tree);
        double s = taken == GIVEN ? judge(in, cost, json_incref(tree)) : HV_UNKNOWN;
        json_decref(tree);
        t->tried[i] = hv_known(s);
        t->untried[i] = taken != SAME && !t->tried[i];
        t->any = t->any || t->tried[i];
        if (s < t->best_s) {
            t->best_s = s;
            t->best = i;
        }
    }
    hv_cost_free(cost);
}

/** The names of some choices after `before`, separated by commas. */
static void add_names(const bool *which, const char *before, struct hv_str *out)
{
    for (size_t i = 0; i < HV_COUNT(choices); i++) {
        if (which[i]) {
            hv_text_addf(out, "%s%s", before, choices[i].what);
            before = ", ";
        }
    }
}

void hv_cli_compare_try(const struct hv_inputs *in, const struct hv_compare_plan *first,
                        const struct hv_compare_plan *second, struct hv_str *out)
{
    double a = iteration_s(first->plan), b = iteration_s(second->plan);
    struct trials t = {.best_s = b};
    char text[HV_FMT_CAP], share[HV_FMT_CAP];
    if (!(a < b)) {
        return;
    }
    try_all(in, first->plan, second->plan, &t);
    if (b - t.best_s > WORTH_TELLING * (b - a)) {
        hv_text_addf(
            out, " With the %s of %s, the plan of %s would take %s; this is %s of the difference.",
            choices[t.best].what, first->strategy, second->strategy,
            hv_fmt_seconds(text, sizeof text, t.best_s),
            hv_fmt_percent(share, sizeof share, (b - t.best_s) / (b - a)));
    } else if (t.any) {
        hv_text_addf(
            out, " Single changes of the plan of %s were simulated, with these properties of %s: ",
            second->strategy, first->strategy);
        add_names(t.tried, "", out);
        hv_text_addf(out,
                     ". None explains %s of the difference, so it comes from the other properties: "
                     "devices, degrees, layers",
                     hv_fmt_percent(share, sizeof share, WORTH_TELLING));
        add_names(t.untried, ", ", out);
        hv_str_adds(out, ".");
    }
}
