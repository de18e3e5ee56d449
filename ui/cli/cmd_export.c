/** `hetviz export`: the files of a program that runs a plan, or shows it. */
#include <stdio.h>
#include <string.h>

#include "scripting/worker/run.h"
#include "solver/base/units.h"
#include "solver/io/export/target/export.h"
#include "ui/cli/cli.h"
#include "ui/cli/interrupt.h"
#include "ui/cli/judged.h"
#include "ui/cli/print.h"

/** An export, and the plan in place of one that the target cannot say. */
struct exporting {
    const struct hv_args *args;
    enum hv_target_id target;
    struct hv_judged judged; /**< the plan as it is given */
    struct hv_export files;
    /* --nearest */
    struct hv_plugins plugins;
    struct hv_run_result found;
    struct hv_plan_doc doc;
    struct hv_cost *cost;
    struct hv_arena arena;
    struct hv_verdict verdict;
};

static void free_exporting(struct exporting *x)
{
    hv_export_free(&x->files);
    hv_cost_free(x->cost);
    hv_arena_free(&x->arena);
    hv_plan_doc_free(&x->doc);
    hv_run_result_free(&x->found);
    hv_plugins_free(&x->plugins);
    hv_judged_free(&x->judged);
}

/** The plan's own name, else that of its file. */
static const char *name_of(const struct exporting *x)
{
    const char *name = json_string_value(json_object_get(x->judged.plan.json.root, "name"));
    const char *path = x->args->positional[0], *slash = strrchr(path, '/');
    return name != NULL ? name : slash != NULL ? slash + 1 : path;
}

static enum hv_status export_one(struct exporting *x, const struct hv_plan *plan,
                                 const struct hv_verdict *verdict, struct hv_err *err)
{
    const struct hv_inputs *in = &x->judged.inputs;
    struct hv_export_source source = {.plan = plan,
                                      .model = in->model.model,
                                      .job = &in->job.job,
                                      .verdict = verdict,
                                      .cluster = in->cluster.json.root,
                                      .name = name_of(x)};
    return hv_export_plan(&source, x->target, &x->files, err);
}

/** Searches the best plan that the target can say, and judges it. */
static enum hv_status search(struct exporting *x, struct hv_err *err)
{
    struct hv_inputs *in = &x->judged.inputs;
    struct hv_json json = {0};
    struct hv_eval_options o = {.timeline = true};
    enum hv_status st = hv_inputs_set_job(in, "target", hv_target_name(x->target), err);
    st = st == HV_OK ? hv_plugins_read(&x->plugins, err) : st;
    if (st == HV_OK) {
        hv_interrupt_catch();
        struct hv_run_request r = {.inputs = in,
                                   .plugins = &x->plugins,
                                   .strategy = "auto",
                                   .seed = (uint64_t)hv_args_number(x->args, "seed", 1),
                                   .budget = (int64_t)hv_args_number(x->args, "budget", 0),
                                   .cancel = hv_interrupted};
        st = hv_run_strategy(&r, &x->found, err);
    }
    if (st == HV_OK && x->found.plan == NULL) {
        st = hv_err_set(err, HV_ENO, "no plan that %s can say was found",
                        hv_target_row(x->target)->title);
    }
    if (st == HV_OK) {
        hv_json_wrap(&json, json_deep_copy(x->found.plan), "nearest plan");
        st = hv_plan_doc_build(&x->doc, json, in->cluster.cluster, err);
    }
    if (st == HV_OK) {
        x->cost = hv_cost_new(in->cluster.cluster, in->model.model, &in->job.job);
        st = hv_eval(x->cost, x->doc.plan, &o, &x->arena, &x->verdict, err);
    }
    return st;
}

/** Exports the nearest plan: its file is among those written, and its price is told. */
static enum hv_status export_nearest(struct exporting *x, const char *why, struct hv_err *err)
{
    double before_s = x->judged.verdict.metrics.iteration_s;
    struct hv_str text = {0}, plan = {0};
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    enum hv_status st = search(x, err);
    st = st == HV_OK ? export_one(x, x->doc.plan, &x->verdict, err) : st;
    if (st == HV_OK) {
        double after_s = x->verdict.metrics.iteration_s;
        hv_json_write(&plan, x->found.plan, true);
        hv_vec_push(&x->files.files, (struct hv_export_file){.name = "plan.json", .text = plan});
        hv_text_addf(&text,
                     "hetviz: %s\nhetviz: the nearest plan that it can say takes %s instead of %s "
                     "(%+.1f%%)\n",
                     why, hv_fmt_seconds(a, sizeof a, after_s),
                     hv_fmt_seconds(b, sizeof b, before_s), 100 * (after_s / before_s - 1));
        (void)fputs(hv_str_cstr(&text), stderr);
    }
    hv_str_free(&text);
    return st;
}

static void print_notes(const struct exporting *x)
{
    struct hv_str text = {0};
    for (size_t i = 0; i < x->files.notes.n && !hv_args_has(x->args, "quiet"); i++) {
        hv_text_addf(&text, "note: %s\n", x->files.notes.items[i]);
    }
    (void)fputs(hv_str_cstr(&text), stderr);
    hv_str_free(&text);
}

static enum hv_status put_files(const struct exporting *x, struct hv_err *err)
{
    struct hv_str text = {0};
    const char *folder = hv_args_text(x->args, "out", NULL);
    enum hv_status st = HV_OK;
    if (folder != NULL && strcmp(folder, "-") != 0) {
        st = hv_export_write(&x->files, folder, err);
        for (size_t i = 0; st == HV_OK && i < x->files.files.n; i++) {
            hv_text_addf(&text, "%s/%s\n", folder, x->files.files.items[i].name);
        }
    } else {
        hv_export_text(&x->files, &text);
    }
    st = st == HV_OK ? hv_cli_print(&text, err) : st;
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_export(struct hv_args *args, struct hv_err *err)
{
    struct exporting x = {.args = args};
    (void)hv_target_find(hv_args_text(args, "to", ""), &x.target);
    enum hv_status st = hv_cli_judge(args, true, &x.judged, err);
    if (st == HV_OK) {
        st = export_one(&x, x.judged.plan.plan, &x.judged.verdict, err);
        if (st == HV_ENO && hv_args_has(args, "nearest") && x.judged.plan.plan->n_jobs == 0) {
            struct hv_err why = *err;
            st = export_nearest(&x, why.text, err);
        }
    }
    st = st == HV_OK ? put_files(&x, err) : st;
    if (st == HV_OK) {
        print_notes(&x);
    }
    free_exporting(&x);
    return st;
}
