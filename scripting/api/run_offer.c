/*
 * Handling of the plans of a run: they are judged and ranked, and the best is kept and reported.
 * The calls that make them are in worker/run.c.
 */
#include "scripting/api/offer_int.h"
#include "scripting/api/queue_int.h"
#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/verdict_file.h"

void hv__emit(struct hv__run *r, json_t *line)
{
    if (r->request->event != NULL) {
        r->request->event(r->request->ctx, line);
    }
    json_decref(line);
}

/** Contexts of a plan's jobs, those of the queue by name; NULL entries: the run's own. */
static struct hv_cost **costs_of(struct hv__run *r, const struct hv_plan *p, struct hv_arena *arena)
{
    struct hv_cost **costs = hv_arena_new(arena, struct hv_cost *, p->n_jobs + 1);

    for (size_t i = 0; i < p->n_jobs; i++) {
        int before = p->jobs[i].continues;
        size_t at = before < 0 ? hv__queue_find(r, p->jobs[i].name) : r->n_queue;
        costs[i] = before >= 0 ? costs[before] : at < r->n_queue ? hv__queue_cost(r, at) : NULL;
    }
    return costs;
}

enum hv_status hv__judge(struct hv__run *r, const struct hv_plan *p, const struct hv__judging *how,
                         struct hv_arena *arena, struct hv_verdict *out, struct hv_err *err)
{
    const struct hv_eval_options o = {.no_bound = !how->bound,
                                      .iterations = how->iterations,
                                      .jobs = p->n_jobs > 0 ? costs_of(r, p, arena) : NULL};

    r->evaluations++;
    return hv_eval(r->cost, p, &o, arena, out, err);
}

/** The class of a judged plan. */
static enum hv__plan_rank rank_of(const struct hv_verdict *v)
{
    return hv_findings_of_rules(&v->findings) > 0 ? HV__PLAN_BROKEN
           : v->findings.n > 0                    ? HV__PLAN_OVER
           : v->metrics.exact                     ? HV__PLAN_EXACT
                                                  : HV__PLAN_STALE;
}

/** Value to minimise of a judged plan: the job's objective; a plan above the price or after the
 * deadline is worse than any within them. */
static double figure_of(const struct hv__run *r, const struct hv_metrics *m)
{
    const struct hv_objective *o = &r->request->inputs->job.job.objective;
    /* a serving plan has no iteration: more tokens per second are better */
    return hv_known(m->iteration_s) ? hv_eval_worth(o, m)
           : m->tokens_per_s > 0    ? 1 / m->tokens_per_s
                                    : HUGE_VAL;
}

/** The plan with format, strategy and inputs in front, in the usual order. */
static json_t *complete_plan(const struct hv__run *r, json_t *plan)
{
    const struct hv_inputs *in = r->request->inputs;
    json_t *full = json_object();

    json_object_set_new(full, "format", json_string("hetviz.plan/1"));
    json_object_set(full, "strategy", json_object_get(plan, "strategy"));
    json_object_set_new(full, "cluster", hv__reference(in->cluster.path, &in->cluster.json));
    json_object_set_new(full, "model", hv__reference(in->model.path, &in->model.json));
    json_object_set(full, "job", in->job.json.root);
    json_object_update_missing(full, plan);
    hv__queue_complete(r, full);
    return full;
}

enum hv_status hv__offer(struct hv__run *r, json_t *plan, struct hv_err *err)
{
    struct hv_arena arena = {0};
    struct hv_verdict v = {0};
    struct hv_plan_doc doc = {0};
    struct hv_json json = {0};
    json_t *full = complete_plan(r, plan);

    hv_json_wrap(&json, json_incref(full), "plan");
    enum hv_status s = hv_plan_doc_build(&doc, json, r->request->inputs->cluster.cluster, err);
    const char *lost = s == HV_OK ? hv__uses_lost(r, doc.plan, &arena) : NULL;
    if (lost != NULL) {
        s = hv_err_set(err, HV_ENO, "%s", lost);
    }
    if (s == HV_OK) {
        const struct hv__judging how = {.bound = true};
        s = hv__judge(r, doc.plan, &how, &arena, &v, err);
    }
    if (s == HV_OK) {
        enum hv__plan_rank rank = rank_of(&v);
        double t = figure_of(r, &v.metrics);
        /* a plan reported during the search is replaced by the same plan with strategy and claim */
        bool signs = r->best != NULL && json_object_get(r->best, "strategy") == NULL;
        double prefer = r->returned ? 1 + r->prefer_frac : 1;
        bool faster =
            rank == r->best_rank && (t < r->best_figure || (t <= r->best_figure && signs) ||
                                     (prefer > 1 && t <= prefer * r->best_figure));
        if (r->best == NULL || rank < r->best_rank || faster) {
            json_decref(r->best);
            r->best = hv_plan_with_verdict(full, &v, v.findings.n > 0);
            r->best_figure = t;
            r->best_rank = rank;
            json_t *e = json_object();
            json_object_set_new(e, "event", json_string("incumbent"));
            json_object_set_new(e, "iteration_s", hv_json_num(v.metrics.iteration_s));
            json_object_set(e, "plan", r->best);
            hv__emit(r, e);
        }
    }
    hv_plan_doc_free(&doc);
    hv_arena_free(&arena);
    json_decref(full);
    return s;
}

const char *hv__uses_lost(const struct hv__run *r, const struct hv_plan *p, struct hv_arena *a)
{
    for (size_t i = 0; r->lost != NULL && i < p->n_replicas; i++) {
        for (size_t s = 0; s < p->replicas[i].n_stages; s++) {
            const struct hv_stage *stage = &p->replicas[i].stages[s];
            for (size_t d = 0; d < stage->n_devices; d++) {
                if (r->lost[stage->devices[d]]) {
                    return hv_arena_printf(
                        a, "replicas[%zu].stages[%zu] uses a device that is lost", i, s);
                }
            }
        }
    }
    return NULL;
}

bool hv__run_is_late(struct hv__run *r, double share)
{
    bool late = r->soft_limit_s > 0 && hv__elapsed_s(r->host) > share * r->soft_limit_s;
    r->late = r->late || (late && share > 0); /* a share of nothing is used up at once */
    return late;
}
