/** `hetviz check`: reads files of every kind by their `format` member; runs nothing. */
#include <string.h>
#include <sys/stat.h>

#include "scripting/plugin/plugin.h"
#include "solver/base/file.h"
#include "solver/base/save/save.h"
#include "solver/io/own/cluster/calibration_file.h"
#include "solver/io/own/cluster/probe_file.h"
#include "solver/io/own/cluster/profile_file.h"
#include "solver/io/own/instance/partition_file.h"
#include "solver/io/own/routing_file.h"
#include "solver/io/own/trace_file.h"
#include "solver/io/own/validation/validation_file.h"
#include "solver/io/own/workspace.h"
#include "ui/cli/cli.h"
#include "ui/cli/print.h"

/** What a file may be, by its member `format`; a JSON object without one is a model. */
enum kind {
    CLUSTER,
    JOB,
    PLAN,
    WORKSPACE,
    INSTANCE,
    VALIDATION,
    CALIBRATION,
    PROFILE,
    TRACE,
    ROUTING,
    MODEL
};

static enum kind kind_of(const struct hv_json *j)
{
    static const struct {
        const char *format;
        enum kind kind;
    } formats[] = {
        {"hetviz.cluster/1", CLUSTER},
        {"hetviz.job/1", JOB},
        {"hetviz.plan/1", PLAN},
        {"hetviz.workspace/1", WORKSPACE},
        {"hetviz.partition/1", INSTANCE},
        {"hetviz.distribute/1", INSTANCE},
        {"hetviz.validation/1", VALIDATION},
        {"hetviz.calibration/1", CALIBRATION},
        {"hetviz.profile/1", PROFILE},
        {"hetviz.trace/1", TRACE},
        {"hetviz.routing/1", ROUTING},
    };
    const char *format = json_string_value(json_object_get(j->root, "format"));
    for (size_t i = 0; format != NULL && i < HV_COUNT(formats); i++) {
        if (strcmp(format, formats[i].format) == 0) {
            return formats[i].kind;
        }
    }
    return MODEL;
}

static enum hv_status check_cluster(struct hv_json json, struct hv_err *err)
{
    struct hv_device_catalogue devices = {0};
    struct hv_cluster_doc doc = {0};
    enum hv_status st = hv_device_catalogue_read(&devices, err);
    if (st == HV_OK) {
        st = hv_cluster_doc_build(&doc, json, &devices, err);
    } else {
        hv_json_free(&json);
    }
    hv_cluster_doc_free(&doc);
    hv_device_catalogue_free(&devices);
    return st;
}

/** A plan or a workspace is only right together with the files it names. */
static enum hv_status check_plan(const char *path, struct hv_err *err)
{
    struct hv_plan_doc plan = {0};
    struct hv_inputs in = {0};
    enum hv_status st = hv_plan_doc_read(&plan, path, NULL, NULL, NULL, &in, err);
    hv_plan_doc_free(&plan);
    hv_inputs_free(&in);
    return st;
}

static enum hv_status check_workspace(const char *path, struct hv_err *err)
{
    struct hv_workspace w = {0};
    struct hv_inputs in = {0};
    enum hv_status st = hv_workspace_read(&w, path, err);
    st = st == HV_OK ? hv_workspace_inputs(&w, &in, err) : st;
    hv_inputs_free(&in);
    hv_workspace_free(&w);
    return st;
}

static enum hv_status check_instance(const struct hv_json *json, struct hv_err *err)
{
    struct hv_instance in = {0};
    enum hv_status st = hv_instance_read(&in, json, err);
    hv_instance_free(&in);
    return st;
}

static enum hv_status check_validation(const struct hv_json *json, struct hv_err *err)
{
    struct hv_device_catalogue devices = {0};
    struct hv_validation rows = {0};
    enum hv_status st = hv_device_catalogue_read(&devices, err);
    if (st == HV_OK) {
        struct hv_validation_reader *r = hv_validation_reader_new(&rows, &devices);
        st = hv_validation_read(r, json, "measurements", err);
        hv_validation_reader_free(r);
    }
    hv_validation_free(&rows);
    hv_device_catalogue_free(&devices);
    return st;
}

static enum hv_status check_calibration(const struct hv_json *json, struct hv_err *err)
{
    struct hv_device_catalogue classes = {0};
    enum hv_status st = hv_calibration_add(&classes, json, err);
    hv_device_catalogue_free(&classes);
    return st;
}

/** A profile belongs to a kind of the catalogue; its samples are read too. */
static enum hv_status check_profile(const struct hv_json *json, struct hv_err *err)
{
    struct hv_device_catalogue devices = {0};
    struct hv_probe_report report;
    enum hv_status st = hv_device_catalogue_read(&devices, err);
    if (st == HV_OK && (st = hv_profile_add(&devices, json, err)) == HV_OK) {
        st = hv_probe_report_read(json, &devices.arena, &report, err);
    }
    hv_device_catalogue_free(&devices);
    return st;
}

/** Builds the object of the document's `format`; takes over `json`. */
static enum hv_status check_document(struct hv_json json, const char *path, const char **what,
                                     struct hv_err *err)
{
    struct hv_job_doc job = {0};
    struct hv_model_doc model = {0};
    enum hv_status st = HV_OK;
    switch (kind_of(&json)) {
    case CLUSTER:
        *what = "cluster";
        return check_cluster(json, err);
    case JOB:
        *what = "job";
        st = hv_job_doc_build(&job, json, 0, err);
        hv_job_doc_free(&job);
        return st;
    case PLAN:
        *what = "plan";
        hv_json_free(&json);
        return check_plan(path, err);
    case WORKSPACE:
        *what = "workspace";
        hv_json_free(&json);
        return check_workspace(path, err);
    case INSTANCE:
        *what = "instance";
        st = check_instance(&json, err);
        hv_json_free(&json);
        return st;
    case VALIDATION:
        *what = "published measurements";
        st = check_validation(&json, err);
        hv_json_free(&json);
        return st;
    case PROFILE:
        *what = "profile";
        st = check_profile(&json, err);
        hv_json_free(&json);
        return st;
    case TRACE:
        *what = "trace";
        st = hv_trace_check(&json, err);
        hv_json_free(&json);
        return st;
    case ROUTING:
        *what = "routing";
        st = hv_routing_check(&json, err);
        hv_json_free(&json);
        return st;
    case CALIBRATION:
        *what = "calibration";
        st = check_calibration(&json, err);
        hv_json_free(&json);
        return st;
    case MODEL:
        *what = "model";
        st = hv_model_doc_build(&model, json, err);
        hv_model_doc_free(&model);
        return st;
    }
    return HV_OK;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* a file of Lua, or a folder with plugin.lua */
static bool is_plugin(const char *path)
{
    if (!is_folder(path)) {
        return strlen(path) >= 4 && hv_text_ends_with(path, ".lua");
    }
    struct hv_str file = {0};
    struct stat st;
    hv_str_addf(&file, "%s/plugin.lua", path);
    bool there = lstat(hv_str_cstr(&file), &st) == 0;
    hv_str_free(&file);
    return there;
}

static enum hv_status check_file(const char *path, const char **what, struct hv_err *err)
{
    if (is_folder(path) && !is_plugin(path)) {
        *what = "workspace";
        return check_workspace(path, err);
    }
    if (is_plugin(path)) {
        struct hv_plugins p = {0};
        *what = "plugin";
        enum hv_status st = hv_plugins_read_file(&p, path, err);
        hv_plugins_free(&p);
        return st;
    }
    struct hv_str text = {0};
    struct hv_json json = {0};
    enum hv_status st = hv_save_recover_beside(path, err);
    st = st == HV_OK ? hv_file_read(path, &text, err) : st;
    st = st == HV_OK ? hv_json_parse(&json, hv_str_cstr(&text), text.n, path, err) : st;
    st = st == HV_OK ? check_document(json, path, what, err) : st;
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_check(struct hv_args *args, struct hv_err *err)
{
    struct hv_str out = {0};
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < args->n_positional && st == HV_OK; i++) {
        const char *what = "file";
        st = check_file(args->positional[i], &what, err);
        if (st == HV_OK) {
            hv_text_addf(&out, "%s: %s, ok\n", args->positional[i], what);
        }
    }
    struct hv_err print_err = {0};
    enum hv_status printed = hv_cli_print(&out, &print_err);
    hv_str_free(&out);
    if (st == HV_OK && printed != HV_OK && err != NULL) {
        *err = print_err;
    }
    return st != HV_OK ? st : printed;
}
