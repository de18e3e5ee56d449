/*
 * What becomes of the plans of a run: judged, ranked, the best kept and told. Not for the calls
 * that make them (run.c).
 */
#include "scripting/run_int.h"
#include "solver/base/units.h"
#include "solver/io/own/verdict_file.h"

#include <string.h>

void hv__emit(struct hv__run *r, json_t *line)
{
    if (r->request->event != NULL)
        r->request->event(r->request->ctx, line);
    json_decref(line);
}

bool hv__applies(const struct hv__run *r, const struct hv_plugin *p, struct hv_str *reason)
{
    enum hv_model_kind kind = r->request->inputs->model.model->kind;
    const char *need = p->needs_model;

    if (p->needs_jobs != NULL || p->needs_mode != NULL) {
        hv_str_addf(reason, "%s needs %s", p->id,
                    p->needs_jobs != NULL ? "a workspace with several jobs" : "a serving workload");
        return false;
    }
    bool fits = need == NULL || strcmp(need, hv_model_kind_name(kind)) == 0 ||
                (kind == HV_MODEL_TRANSFORMER &&
                 (strcmp(need, "layers") == 0 || strcmp(need, "graph") == 0)) ||
                (kind == HV_MODEL_MODULES && strcmp(need, "layers") == 0 &&
                 hv__model_has_layers(r->request->inputs->model.model));
    if (!fits)
        hv_str_addf(reason, "%s needs a model of kind %s, this one is of kind %s", p->id, need,
                    hv_model_kind_name(kind));
    return fits;
}

enum hv_status hv__judge(struct hv__run *r, const struct hv_plan *p, bool bound,
                         struct hv_arena *arena, struct hv_verdict *out, struct hv_err *err)
{
    const struct hv_eval_options o = {.no_bound = !bound};

    r->evaluations++;
    return hv_eval(r->cost, p, &o, arena, out, err);
}

enum hv__plan_rank hv__plan_rank(const struct hv_verdict *v)
{
    return hv_findings_of_rules(&v->findings) > 0 ? HV__PLAN_BROKEN
           : v->findings.n > 0                    ? HV__PLAN_OVER
           : v->metrics.exact                     ? HV__PLAN_EXACT
                                                  : HV__PLAN_STALE;
}

/** What of a judged plan is to be small: the job's objective; over its price or after its deadline,
 * worse than any within. */
static double figure_of(const struct hv__run *r, const struct hv_metrics *m)
{
    const struct hv_objective *o = &r->request->inputs->job.job.objective;
    /* what serves has no iteration: the most tokens win */
    return hv_known(m->iteration_s) ? hv_eval_worth(o, m)
           : m->tokens_per_s > 0    ? 1 / m->tokens_per_s
                                    : HUGE_VAL;
}

/** A document as plans refer to it: by the name it was read from, or whole where that cannot be
 * read twice (standard input, a pipe of the shell). */
static json_t *reference(const char *path, const struct hv_json *json)
{
    bool again = path != NULL && strcmp(path, "-") != 0 && strncmp(path, "/dev/", 5) != 0 &&
                 strncmp(path, "/proc/", 6) != 0;
    return again ? json_string(path) : json_incref(json->root);
}

/** The plan with format, strategy and inputs in front, in the usual order. */
static json_t *complete_plan(const struct hv__run *r, json_t *plan)
{
    const struct hv_inputs *in = r->request->inputs;
    json_t *full = json_object();

    json_object_set_new(full, "format", json_string("hetviz.plan/1"));
    json_object_set(full, "strategy", json_object_get(plan, "strategy"));
    json_object_set_new(full, "cluster", reference(in->cluster.path, &in->cluster.json));
    json_object_set_new(full, "model", reference(in->model.path, &in->model.json));
    json_object_set(full, "job", in->job.json.root);
    json_object_update_missing(full, plan);
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
    if (s == HV_OK)
        s = hv__judge(r, doc.plan, true, &arena, &v, err);
    if (s == HV_OK) {
        enum hv__plan_rank rank = hv__plan_rank(&v);
        double t = figure_of(r, &v.metrics);
        /* what a search has shown on its way gives way to the same plan with its signature */
        bool signs = r->best != NULL && json_object_get(r->best, "strategy") == NULL;
        bool faster =
            rank == r->best_rank && (t < r->best_figure || (t <= r->best_figure && signs));
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
    for (size_t i = 0; r->lost != NULL && i < p->n_replicas; i++)
        for (size_t s = 0; s < p->replicas[i].n_stages; s++) {
            const struct hv_stage *stage = &p->replicas[i].stages[s];
            for (size_t d = 0; d < stage->n_devices; d++)
                if (r->lost[stage->devices[d]])
                    return hv_arena_printf(
                        a, "replicas[%zu].stages[%zu] uses a device that is lost", i, s);
        }
    return NULL;
}
