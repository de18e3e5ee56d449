/** A plan that a command reads and judges. */
#include "ui/cli/judged.h"

/** `keep_tree`: the JSON of the plan is kept beside it, which is large for plans of many entries.
 */
static enum hv_status judge(const struct hv_args *args, struct hv_eval_options *o, bool keep_tree,
                            struct hv_judged *out, struct hv_err *err)
{
    *out = (struct hv_judged){0};
    enum hv_status st = hv_plan_doc_read(
        &out->plan, args->positional[0], hv_args_text(args, "cluster", NULL),
        hv_args_text(args, "model", NULL), hv_args_text(args, "job", NULL), &out->inputs, err);
    if (st != HV_OK) {
        return st;
    }
    if (!keep_tree) {
        hv_json_free(&out->plan.json);
    }
    out->cost =
        hv_cost_new(out->inputs.cluster.cluster, out->inputs.model.model, &out->inputs.job.job);
    size_t n = out->plan.plan->n_jobs;
    out->jobs = hv_job_costs_new(&out->inputs, out->inputs.own, n);
    o->jobs = out->jobs;
    return hv_eval(out->cost, out->plan.plan, o, &out->arena, &out->verdict, err);
}

enum hv_status hv_cli_judge(const struct hv_args *args, bool timeline, struct hv_judged *out,
                            struct hv_err *err)
{
    struct hv_eval_options o = {.timeline = timeline};
    return judge(args, &o, true, out, err);
}

/** What the thread of hv_cli_judge_watched needs. */
struct work {
    const struct hv_args *args;
    struct hv_judged *out;
};

static enum hv_status work(void *ctx, struct hv_eval_watch *watch, struct hv_err *err)
{
    struct work *w = ctx;
    struct hv_eval_options o = {.watch = watch};
    return judge(w->args, &o, hv_args_has(w->args, "json"), w->out, err);
}

enum hv_status hv_cli_judge_watched(const struct hv_args *args, struct hv_judged *out,
                                    struct hv_err *err)
{
    struct work w = {args, out};
    return hv_cli_watched(args, work, &w, err);
}

void hv_judged_free(struct hv_judged *j)
{
    hv_job_costs_free(j->jobs, j->inputs.n_own);
    hv_cost_free(j->cost);
    hv_plan_doc_free(&j->plan);
    hv_inputs_free(&j->inputs);
    hv_arena_free(&j->arena);
    *j = (struct hv_judged){0};
}
