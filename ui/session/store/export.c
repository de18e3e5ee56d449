/* Export of a row: the plan is judged with its timeline, since saved verdicts have none. */
#include "ui/session/store/export.h"

#include "solver/io/export/target/export.h"

enum hv_status hv__export_row(const struct hv_inputs *in, const json_t *tree, const char *name,
                              enum hv_target_id t, const char *folder, struct hv_err *err)
{
    struct hv_json json = {0};
    struct hv_plan_doc doc = {0};
    struct hv_arena arena = {0};
    struct hv_verdict verdict = {0};
    struct hv_export files = {0};
    struct hv_eval_options o = {.timeline = true};
    struct hv_cost *k = hv_cost_new(in->cluster.cluster, in->model.model, &in->job.job);
    hv_json_wrap(&json, json_deep_copy(tree), name);
    enum hv_status st = hv_plan_doc_build(&doc, json, in->cluster.cluster, err);
    if (st == HV_OK && doc.plan->n_jobs > 0) {
        st = hv_err_set(err, HV_ENO, "a plan of several jobs is exported by `hetviz export`");
    }
    st = st == HV_OK ? hv_eval(k, doc.plan, &o, &arena, &verdict, err) : st;
    if (st == HV_OK) {
        struct hv_export_source source = {.plan = doc.plan,
                                          .model = in->model.model,
                                          .job = &in->job.job,
                                          .verdict = &verdict,
                                          .cluster = in->cluster.json.root,
                                          .name = name};
        st = hv_export_plan(&source, t, &files, err);
    }
    st = st == HV_OK ? hv_export_write(&files, folder, err) : st;
    hv_export_free(&files);
    hv_arena_free(&arena);
    hv_plan_doc_free(&doc);
    hv_cost_free(k);
    return st;
}
