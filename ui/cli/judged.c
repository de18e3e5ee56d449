/** A plan that a command reads and judges. */
#include "ui/cli/judged.h"

enum hv_status hv_cli_judge(const struct hv_args *args, bool timeline, struct hv_judged *out,
                            struct hv_err *err)
{
    *out = (struct hv_judged){0};
    enum hv_status st = hv_plan_doc_read(
        &out->plan, args->positional[0], hv_args_text(args, "cluster", NULL),
        hv_args_text(args, "model", NULL), hv_args_text(args, "job", NULL), &out->inputs, err);
    if (st != HV_OK) {
        return st;
    }
    out->cost =
        hv_cost_new(out->inputs.cluster.cluster, out->inputs.model.model, &out->inputs.job.job);
    size_t n = out->plan.plan->n_jobs;
    out->jobs = hv_job_costs_new(&out->inputs, out->inputs.own, n);
    struct hv_eval_options o = {.timeline = timeline, .jobs = out->jobs};
    return hv_eval(out->cost, out->plan.plan, &o, &out->arena, &out->verdict, err);
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
