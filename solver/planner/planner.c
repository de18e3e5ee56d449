/*
 * The search as a whole: pools, first plans, improvement of the best of them, the answer.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"

#include <math.h>

#define STARTS      24
#define FIRST_SHARE 0.3 /* of the work left, for a few steps from every start */
#define START_SHARE 0.2 /* of the work of a whole search, for the improvement of one plan */
#define WORK_LIMIT  1e7 /* operations of judgements without a limit from outside; about a second */

static void report(const struct hv__search *s, double frac, const char *text)
{
    if (s->o->progress != NULL)
        s->o->progress(s->o->ctx, frac, text);
}

/* First plans that fit: as much as must be waits in host memory. */
static int first_plans(struct hv__search *s, struct hv__sketch *starts)
{
    static const unsigned hosts[] = {0, HV__HOST(HV_OFFLOAD_OPTIMIZER),
                                     HV__HOST(HV_OFFLOAD_OPTIMIZER) | HV__HOST(HV_OFFLOAD_WEIGHTS),
                                     HV__HOST(HV_OFFLOAD_OPTIMIZER) | HV__HOST(HV_OFFLOAD_WEIGHTS) |
                                         HV__HOST(HV_OFFLOAD_ACTIVATIONS)};
    int n = 0;
    for (size_t i = 0; i < HV_COUNT(hosts) && n == 0 && !hv__over(s); i++) {
        s->offload = hosts[i];
        n = hv__first_plans(s, starts, STARTS);
    }
    return n;
}

/* Every start a few steps, then the best of them first: those that begin well do not always end
 * well. */
static void improve_each(struct hv__search *s, struct hv__sketch *starts, int n)
{
    double value[STARTS], whole = s->work_limit,
                          each = FIRST_SHARE * (whole - s->work) / fmax(n, 1);
    for (int i = 0; i < n && !s->stopped; i++) {
        struct hv__sketch k = starts[i];
        report(s, 0.2 + 0.2 * i / n, "improvement");
        s->work_limit = s->work + each;
        double least = hv__improve(s, &k, hv__judge_sketch(s, &k));
        int at = i;
        for (; at > 0 && value[at - 1] > least; at--) {
            value[at] = value[at - 1];
            starts[at] = starts[at - 1];
        }
        value[at] = least;
        starts[at] = k;
    }
    s->work_limit = whole;
}

static void search(struct hv__search *s)
{
    struct hv__sketch *starts = hv_arena_new(&s->arena, struct hv__sketch, STARTS);
    report(s, 0, "first plans");
    const struct hv_objective *o = &s->job->objective;
    int n = first_plans(s, starts);
    if (n == 0 && (hv_known(o->deadline_s) || hv_known(o->max_usd_per_h)) && !s->stopped) {
        s->beyond = true; /* none keeps to the limits: then the one that is nearest to them */
        n = first_plans(s, starts);
    }
    double whole = s->work_limit;
    improve_each(s, starts, n);
    for (int i = 0; i < n && !s->stopped; i++) {
        /* the best start may use a third of what is left, the next a third of the rest, … */
        report(s, 0.4 + 0.6 * i / n, "improvement");
        s->work_limit = i + 1 < n ? s->work + 0.3 * (whole - s->work) : whole;
        (void)hv__improve(s, &starts[i], hv__judge_sketch(s, &starts[i]));
    }
    s->work_limit = whole;
    report(s, 1, "done");
}

/* Improves the plan given, as it is and with blocks and batch dealt out anew. */
static enum hv_status improve_start(struct hv__search *s, struct hv_err *err)
{
    struct hv__sketch k, dealt;
    enum hv_status st = hv__take_plan(s, s->o->start, &k, err);
    if (st != HV_OK)
        return st;
    s->work_limit *= START_SHARE;
    dealt = k;
    double value = hv__judge_sketch(s, &k), other = hv__refit(s, &dealt, HUGE_VAL);
    if (other < value)
        k = dealt;
    (void)hv__improve(s, &k, fmin(value, other));
    return HV_OK;
}

/* What the objective asks for besides the least. */
static const char *limits_of(const struct hv_objective *o)
{
    bool price = hv_known(o->max_usd_per_h), deadline = hv_known(o->deadline_s);
    return price && deadline ? " within the objective's price and deadline"
           : price           ? " within the objective's price"
           : deadline        ? " within the objective's deadline for an iteration"
                             : "";
}

static enum hv_status nothing_found(const struct hv__search *s, struct hv_err *err)
{
    const char *limits = limits_of(&s->job->objective);
    bool measured = hv_cost_model(s->k)->kind == HV_MODEL_LAYERS;
    if (s->n_pools == 0)
        return hv_err_set(err, HV_ENO, "no usable device of the cluster computes in %s%s",
                          hv_precision_name(s->job->precision),
                          measured ? " and has the measured times of every layer" : "");
    if (s->evaluations == 0 && !s->stopped)
        return hv_err_set(err, HV_ENO,
                          "no plan that fits was found: by prices, no group of devices holds "
                          "the model's states%s",
                          limits);
    return hv_err_set(err, HV_ENO, "no plan that fits was found among %lld%s%s",
                      (long long)s->evaluations, limits,
                      s->stopped ? ", before the search was ended" : "");
}

static enum hv_status answer(struct hv__search *s, struct hv_planner_result *out,
                             struct hv_err *err)
{
    struct hv_bound b = {0};
    hv_eval_bound(s->k, &s->arena, &b);
    out->bound_s = b.iteration_s;
    out->evaluations = s->evaluations;
    out->stopped = s->stopped;
    if (!(s->best_value < HUGE_VAL)) {
        return nothing_found(s, err);
    }
    out->plan = hv__draw(s, &s->best);
    out->value = s->best_value;
    out->iteration_s = s->best_s;
    return HV_OK;
}

enum hv_status hv_planner_run(struct hv_cost *k, const struct hv_planner_options *o,
                              struct hv_planner_result *out, struct hv_err *err)
{
    struct hv__search s = {.k = k,
                           .o = o,
                           .job = hv_cost_job(k),
                           .n_blocks = (int)hv_cost_model(k)->n_blocks,
                           .best_value = HUGE_VAL,
                           .told_value = HUGE_VAL,
                           .work_limit = WORK_LIMIT};
    *out = (struct hv_planner_result){.value = HV_UNKNOWN, .iteration_s = HV_UNKNOWN};
    hv__find_pools(&s);
    enum hv_status st = HV_OK;
    if (s.n_pools > 0 && o->start != NULL)
        st = improve_start(&s, err);
    else if (s.n_pools > 0)
        search(&s);
    st = st == HV_OK ? answer(&s, out, err) : st;
    hv_arena_free(&s.scratch);
    hv_arena_free(&s.arena);
    return st;
}
