/* The search: builds pools and initial plans, improves the best of them, and returns the best
 * plan. */
#include "solver/bound/bound.h"
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"

#include <math.h>

#define STARTS      24
#define FIRST_SHARE 0.3  /* of the work left, for a few steps from every start */
#define BEST_SHARE  0.3  /* of the work left, for the best start at a time */
#define LAST_SHARE  0.08 /* of all work, for the best at the end */
#define START_SHARE 0.2  /* of the work of a whole search, for the improvement of one plan */
#define MANY_DEVICES                                                                               \
    16384.0           /* devices for which a search gets twice the work: a plan takes longer */
#define MOST_MORE 1.0 /* more work at most, as a share: the default search ends in seconds */
/* operations of evaluations without a limit from outside; about a second */
#define WORK_LIMIT 1.4e7

static void report(const struct hv__search *s, double frac, const char *text)
{
    if (s->o->progress != NULL) {
        s->o->progress(s->o->ctx, frac, text);
    }
}

/* Initial plans that fit: with as little offloaded to host memory as possible. */
static int initial_plans(struct hv__search *s, struct hv__sketch *starts)
{
    static const unsigned hosts[] = {0, HV__HOST(HV_OFFLOAD_OPTIMIZER),
                                     HV__HOST(HV_OFFLOAD_OPTIMIZER) | HV__HOST(HV_OFFLOAD_WEIGHTS),
                                     HV__HOST(HV_OFFLOAD_OPTIMIZER) | HV__HOST(HV_OFFLOAD_WEIGHTS) |
                                         HV__HOST(HV_OFFLOAD_ACTIVATIONS)};
    int n = 0;
    for (size_t i = 0; i < HV_COUNT(hosts) && n == 0 && !hv__is_over(s); i++) {
        s->offload = hosts[i];
        n = hv__initial_plans(s, starts, STARTS);
    }
    return n;
}

/** Starting points being improved, best first. */
struct starts {
    struct hv__sketch k[STARTS];
    double value[STARTS];
    bool done[STARTS]; /* no move helps any more */
    int n;
};

/* Improves start number i with a fraction `share` of the work up to `whole`, and sorts it in
 * again. */
static void improve_one(struct hv__search *s, struct starts *f, int i, double share, double whole)
{
    struct hv__sketch k = f->k[i];
    s->work_limit = s->work + share * (whole - s->work);
    double value = hv__improve(s, &k, f->value[i], false);
    bool done = !hv__is_over(s);
    s->work_limit = whole;
    for (; i > 0 && f->value[i - 1] > value; i--) {
        f->k[i] = f->k[i - 1];
        f->value[i] = f->value[i - 1];
        f->done[i] = f->done[i - 1];
    }
    f->k[i] = k;
    f->value[i] = value;
    f->done[i] = done;
}

/* Improves every start a little, as the best starts do not always give the best plans; then always
 * the best that can still be improved. */
static void improve_all(struct hv__search *s, struct starts *f)
{
    double whole = s->work_limit;
    for (int i = 0; i < f->n && !s->stopped; i++) {
        report(s, 0.2 + 0.2 * i / f->n, "improvement");
        improve_one(s, f, i, FIRST_SHARE / (f->n - FIRST_SHARE * i), whole);
    }
    s->fine = true;
    for (int at = 0; at < f->n && !hv__is_over(s);) {
        report(s, 0.4 + 0.6 * at / f->n, "improvement");
        if (!f->done[at]) {
            improve_one(s, f, at, at + 1 < f->n ? BEST_SHARE : 1, whole);
        }
        for (at = 0; at < f->n && f->done[at];) {
            at++;
        }
    }
}

/* Improves the best of all once more with the work reserved for it: its climb may have been cut
 * short. */
static void finish(struct hv__search *s, double whole)
{
    struct hv__sketch k = s->best;
    s->work_limit = whole;
    if (s->best_value < HUGE_VAL) {
        (void)hv__improve(s, &k, s->best_value, false);
    }
    if (s->best_value < HUGE_VAL && !s->stopped) {
        hv__drop_unneeded(s);
    }
}

static void search(struct hv__search *s)
{
    double whole = s->work_limit;
    s->work_limit = (1 - LAST_SHARE) * whole;
    struct starts *f = hv_arena_new(&s->arena, struct starts, 1);
    report(s, 0, "first plans");
    const struct hv_objective *o = &s->job->objective;
    int n = initial_plans(s, f->k);
    if (n == 0 && (hv_known(o->deadline_s) || hv_known(o->max_usd_per_h)) && !s->stopped) {
        s->over_limits = true; /* no plan keeps to the limits: search for the one nearest to them */
        n = initial_plans(s, f->k);
    }
    f->n = n;
    for (int i = 0; i < n; i++) {
        f->value[i] = hv__judge_sketch(s, &f->k[i], HUGE_VAL);
    }
    improve_all(s, f);
    finish(s, whole);
    report(s, 1, "done");
}

/* Improves the given plan, as it is and with blocks and batch split anew. */
static enum hv_status improve_start(struct hv__search *s, struct hv_err *err)
{
    struct hv__sketch k, dealt;
    enum hv_status st = hv__sketch_of_plan(s, s->o->start, &k, err);
    if (st != HV_OK) {
        return st;
    }
    s->work_limit *= START_SHARE;
    s->fine = true;
    dealt = k;
    const struct hv__limits none = {HUGE_VAL, HUGE_VAL};
    double value = hv__judge_sketch(s, &k, HUGE_VAL), other = hv__refit(s, &dealt, none);
    if (other < value) {
        k = dealt;
    }
    (void)hv__improve(s, &k, fmin(value, other), false);
    return HV_OK;
}

/* The limits of the objective, as text. */
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
    if (s->n_pools == 0) {
        return hv_err_set(err, HV_ENO, "no usable device %s computes in %s%s",
                          s->o->lost != NULL ? "of those left" : "of the cluster",
                          hv_precision_name(s->job->precision),
                          measured ? " and has the measured times of every layer" : "");
    }
    if (s->evaluations == 0 && !s->stopped) {
        return hv_err_set(err, HV_ENO,
                          "no plan that fits was found: by the cost model, no group of devices "
                          "holds the model's states%s",
                          limits);
    }
    return hv_err_set(err, HV_ENO, "no plan that fits was found in %lld evaluation%s%s%s",
                      (long long)s->evaluations, s->evaluations == 1 ? "" : "s", limits,
                      s->stopped ? ", and the search was stopped early" : "");
}

static enum hv_status answer(struct hv__search *s, struct hv_planner_result *out,
                             struct hv_err *err)
{
    struct hv_bound b = {0};
    hv_bound_iteration(s->k, &s->arena, &b);
    out->bound_s = b.spread_s;
    out->evaluations = s->evaluations;
    out->stopped = s->stopped;
    if (!(s->best_value < HUGE_VAL)) {
        return nothing_found(s, err);
    }
    out->plan = hv__plan_of_sketch(s, &s->best);
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
                           .reported_value = HUGE_VAL,
                           .work_limit = WORK_LIMIT};
    *out = (struct hv_planner_result){.value = HV_UNKNOWN, .iteration_s = HV_UNKNOWN};
    hv__find_pools(&s);
    s.work_limit *= 1 + fmin(hv_cost_cluster(k)->n_devices / MANY_DEVICES, MOST_MORE);
    enum hv_status st = HV_OK;
    if (s.n_pools > 0 && o->start != NULL) {
        st = improve_start(&s, err);
    } else if (s.n_pools > 0) {
        search(&s);
    }
    st = st == HV_OK ? answer(&s, out, err) : st;
    hv_arena_free(&s.scratch);
    hv_arena_free(&s.arena);
    return st;
}
