#include "ui/cli/calibrate/launched.h"

#include "scripting/worker/run.h"
#include "solver/base/file.h"
#include "solver/io/import/import.h"

#include <string.h>

bool hv_cli_is_launch(const char *path)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    bool own = false;
    if (hv_file_read(path, &text, NULL) == HV_OK && text.n > 0 && text.p[0] == '{' &&
        hv_json_parse(&json, text.p, text.n, path, NULL) == HV_OK) {
        own = json_object_get(json.root, "format") != NULL;
        hv_json_free(&json);
    }
    hv_str_free(&text);
    return !own;
}

/** The part of the launch as a document to build from. */
static struct hv_json part_of(json_t *part, const char *path)
{
    struct hv_json json = {0};
    hv_json_wrap(&json, json_deep_copy(part), path);
    return json;
}

/** Cluster, model and job: as named, else as the launch says. */
static enum hv_status read_inputs(const struct hv_import *im, const char *path,
                                  const struct hv_cli_named *named, struct hv_inputs *in,
                                  struct hv_err *err)
{
    json_t *model = hv_import_model(im), *job = hv_import_job(im);
    if (named->cluster == NULL || (named->model == NULL && model == NULL)) {
        return hv_err_set(
            err, HV_EINPUT, "%s: a launch without its %s; name the one it ran with (%s)", path,
            named->cluster == NULL ? "cluster" : "model", named->cluster == NULL ? "-c" : "-m");
    }
    enum hv_status st = hv_device_catalogue_read(&in->devices, err);
    st = st ? st : hv_cluster_doc_read(&in->cluster, named->cluster, &in->devices, err);
    if (st == HV_OK) {
        st = named->model != NULL ? hv_model_doc_read(&in->model, named->model, err)
                                  : hv_model_doc_build(&in->model, part_of(model, path), err);
    }
    if (st == HV_OK) {
        int most = in->model.model->max_sequence;
        st = named->job != NULL || job == NULL
                 ? hv_job_doc_read(&in->job, named->job, most, err)
                 : hv_job_doc_build(&in->job, part_of(job, path), most, err);
    }
    return st;
}

/** The layout by the strategy `manual`, which also judges plans that would not fit. */
static enum hv_status lay_out(const json_t *layout, struct hv_inputs *in, struct hv_plan_doc *out,
                              struct hv_err *err)
{
    struct hv_plugins plugins = {0};
    struct hv_run_result result = {0};
    json_t *options = json_deep_copy(layout);
    json_object_set_new(options, "allow_oom", json_true());
    enum hv_status st = hv_plugins_read(&plugins, err);
    if (st == HV_OK) {
        const struct hv_run_request r = {
            .inputs = in, .plugins = &plugins, .strategy = "manual", .options = options, .seed = 1};
        st = hv_run_strategy(&r, &result, err);
    }
    if (st == HV_OK) {
        struct hv_json json = {0};
        hv_json_wrap(&json, json_deep_copy(result.plan), "plan of the launch");
        st = hv_plan_doc_build(out, json, in->cluster.cluster, err);
    }
    hv_run_result_free(&result);
    json_decref(options);
    hv_plugins_free(&plugins);
    return st;
}

enum hv_status hv_cli_read_launch(const char *path, const struct hv_cli_named *named,
                                  struct hv_plan_doc *out, struct hv_inputs *inputs,
                                  struct hv_err *err)
{
    struct hv_device_catalogue devices = {0};
    *out = (struct hv_plan_doc){0};
    *inputs = (struct hv_inputs){0};
    enum hv_status st = hv_device_catalogue_read(&devices, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_import *im = hv_import_new(&devices);
    st = hv_import_file(im, NULL, path, err);
    st = st == HV_OK ? hv_import_finish(im, err) : st;
    if (st == HV_OK && hv_import_layout(im) == NULL) {
        st = hv_err_set(err, HV_EINPUT,
                        "%s: expected a plan or the arguments of a launch with its layout, found "
                        "%s; `hetviz import %s` says what it holds",
                        path, hv_import_format_of(im, 0)->title, path);
    }
    st = st == HV_OK ? read_inputs(im, path, named, inputs, err) : st;
    st = st == HV_OK ? lay_out(hv_import_layout(im), inputs, out, err) : st;
    hv_import_free(im);
    hv_device_catalogue_free(&devices);
    if (st != HV_OK) {
        hv_inputs_free(inputs);
        *inputs = (struct hv_inputs){0};
    }
    return st;
}
