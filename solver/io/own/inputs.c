/*
 * Reads a plan together with its inputs. A plan holds cluster, model and job as objects or names
 * them; names are searched beside the plan file, then in the working folder, then in the catalogue.
 */
#include "solver/base/file.h"
#include "solver/io/own/doc/load.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/docs_int.h"
#include "solver/io/own/plan/read.h"
#include "solver/workload/graph/model/transformer.h"
#include <stdlib.h>
#include <string.h>

/* An object held by the plan as a document of its own; `format` may be left out there. */
static void held_object(struct hv_json *out, const struct hv_jp *p, const char *format)
{
    json_t *copy = json_object();
    if (json_object_get(p->v, "format") == NULL) {
        json_object_set_new(copy, "format", json_string(format));
    }
    json_object_update(copy, p->v);
    hv_json_wrap(out, copy, p->doc->name);
}

/* Source of one input: a path or name in `name`, an object held by the plan, or none; `named` is
 * the name given by the plan. */
struct source {
    struct hv_jp held, named;
    struct hv_str name;
};

static enum hv_status find_source(const struct hv_jp *plan, const char *key, const char *given,
                                  const char *plan_path, struct source *out, struct hv_err *err)
{
    if (given != NULL) {
        hv_str_adds(&out->name, given);
        return HV_OK;
    }
    struct hv_jp p = hv_jp_get(plan, key);
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    out->named = p;
    if (json_is_object(p.v)) {
        out->held = p;
        return HV_OK;
    }
    const char *name = NULL;
    if (!json_is_string(p.v)) {
        return hv_jp_expected(&p, err, "a file or catalogue name, or the object itself");
    }
    HV_TRY(hv_jp_string(&p, &name, err));
    hv__doc_beside(&out->name, plan_path, name);
    return HV_OK;
}

static enum hv_status missing_input(const struct hv_jp *plan, const char *key, const char *flag,
                                    struct hv_err *err)
{
    return hv_jp_fail(plan, err,
                      "expected key \"%s\" (a file, a catalogue name or the object "
                      "itself), found none; add it or give %s",
                      key, flag);
}

static enum hv_status fill_cluster(struct hv_inputs *in, const struct hv_jp *plan,
                                   const struct source *src, struct hv_err *err)
{
    if (src->held.v != NULL) {
        struct hv_json json;
        held_object(&json, &src->held, "hetviz.cluster/1");
        return hv_cluster_doc_build(&in->cluster, json, &in->devices, err);
    }
    if (src->name.n == 0) {
        return missing_input(plan, "cluster", "-c CLUSTER", err);
    }
    return hv_cluster_doc_read(&in->cluster, hv_str_cstr(&src->name), &in->devices, err);
}

static enum hv_status fill_model(struct hv_model_doc *model, const struct hv_jp *plan,
                                 const struct source *src, struct hv_err *err)
{
    if (src->held.v != NULL) {
        struct hv_json json;
        held_object(&json, &src->held, "hetviz.model/1");
        return hv_model_doc_build(model, json, err);
    }
    if (src->name.n == 0) {
        return missing_input(plan, "model", "-m MODEL", err);
    }
    return hv_model_doc_read(model, hv_str_cstr(&src->name), err);
}

static enum hv_status fill_job(struct hv_job_doc *job, int longest, const struct source *src,
                               struct hv_err *err)
{
    if (src->held.v != NULL) {
        struct hv_json json;
        held_object(&json, &src->held, "hetviz.job/1");
        return hv_job_doc_build(job, json, longest, err);
    }
    return hv_job_doc_read(job, src->name.n > 0 ? hv_str_cstr(&src->name) : NULL, longest, err);
}

/* Adds the place at which the plan names or holds the input that could not be read; returns st. */
static enum hv_status blame(const struct source *src, enum hv_status st, struct hv_err *err)
{
    if (st != HV_OK && src->named.v != NULL) {
        hv_jp_blame(&src->named, err);
    }
    return st;
}

/* The plan of one of several jobs; the plan reader checks it. It lives as long as `entry`. */
static struct hv_jp job_plan(const struct hv_jp *jobs, size_t i, struct hv_jp *entry)
{
    *entry = hv_jp_at(jobs, i);
    return json_is_object(entry->v) ? hv_jp_get(entry, "plan") : (struct hv_jp){0};
}

enum { SOURCE_CLUSTER, SOURCE_MODEL, SOURCE_JOB, SOURCES };

static enum hv_status fill_inputs(const struct hv_jp *root, const char *path,
                                  const char *const given[SOURCES], struct source src[SOURCES],
                                  struct hv_inputs *in, struct hv_err *err)
{
    static const char *const keys[SOURCES] = {"cluster", "model", "job"};
    if (!json_is_object(root->v)) {
        return hv_jp_expected(root, err, "a plan object");
    }
    for (size_t i = 0; i < SOURCES; i++) {
        HV_TRY(find_source(root, keys[i], given[i], path, &src[i], err));
    }
    struct hv_jp jobs = hv_jp_get(root, "jobs"), entry, first;
    bool no_model = src[SOURCE_MODEL].held.v == NULL && src[SOURCE_MODEL].name.n == 0;
    if (no_model && json_array_size(jobs.v) > 0) { /* every job may name its own */
        first = job_plan(&jobs, 0, &entry);
        HV_TRY(find_source(&first, "model", NULL, path, &src[SOURCE_MODEL], err));
    }
    HV_TRY(hv_device_catalogue_read(&in->devices, err));
    HV_TRY(blame(&src[SOURCE_CLUSTER], fill_cluster(in, root, &src[SOURCE_CLUSTER], err), err));
    HV_TRY(blame(&src[SOURCE_MODEL], fill_model(&in->model, root, &src[SOURCE_MODEL], err), err));
    int longest = in->model.model->max_sequence;
    return blame(&src[SOURCE_JOB], fill_job(&in->job, longest, &src[SOURCE_JOB], err), err);
}

enum hv_status hv__job_inputs_fill(const struct hv_jp *plan, const char *path,
                                   const struct hv_inputs *all, struct hv_job_inputs *own,
                                   struct hv_err *err)
{
    struct source model = {0}, job = {0};
    enum hv_status s = find_source(plan, "model", NULL, path, &model, err);
    s = s == HV_OK ? find_source(plan, "job", NULL, path, &job, err) : s;
    if (s == HV_OK && model.named.v != NULL) {
        s = blame(&model, fill_model(&own->model, plan, &model, err), err);
    }
    own->has_job = job.named.v != NULL;
    const struct hv_model *m = own->model.model != NULL ? own->model.model : all->model.model;
    if (s == HV_OK && own->has_job) {
        s = blame(&job, fill_job(&own->job, m->max_sequence, &job, err), err);
    }
    hv_str_free(&model.name);
    hv_str_free(&job.name);
    return s;
}

enum hv_status hv_job_inputs_read(const struct hv_json *plan, const struct hv_inputs *all,
                                  struct hv_job_inputs **out, size_t *n, struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(plan), jobs = hv_jp_get(&root, "jobs");
    *n = json_array_size(jobs.v);
    *out = *n > 0 ? hv_xcalloc(*n, sizeof **out) : NULL;
    for (size_t i = 0; i < *n; i++) {
        struct hv_jp entry, p = job_plan(&jobs, i, &entry);
        if (json_is_object(p.v)) {
            HV_TRY(hv__job_inputs_fill(&p, plan->name, all, &(*out)[i], err));
        }
    }
    return HV_OK;
}

void hv_job_inputs_free(struct hv_job_inputs *own, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hv_job_doc_free(&own[i].job);
        hv_model_doc_free(&own[i].model);
    }
    free(own);
}

/* A file, standard input, or a shipped plan by name; out->name = where it was found. */
static enum hv_status parse_file(struct hv_json *out, const char *path, struct hv_err *err)
{
    struct hv_str text = {0};
    if (strcmp(path, "-") != 0) {
        return hv__doc_load(out, path, "samples/plans", err);
    }
    enum hv_status s = hv_file_read(path, &text, err);
    if (s == HV_OK) {
        s = hv_json_parse(out, hv_str_cstr(&text), text.n, "(standard input)", err);
    }
    hv_str_free(&text);
    return s;
}

/* Names in the plan, or in each of its jobs, that the model does not have. */
static enum hv_status check_names(const struct hv_plan_doc *doc, const struct hv_inputs *in,
                                  struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(&doc->json), jobs = hv_jp_get(&root, "jobs"), entry;
    const struct hv_model *m = in->model.model;
    HV_TRY(hv_plan_check_names(&root, doc->plan, m, err));
    for (size_t i = 0; i < doc->plan->n_jobs; i++) {
        struct hv_jp p = job_plan(&jobs, i, &entry);
        const struct hv_model *own = i < in->n_own ? in->own[i].model.model : NULL;
        HV_TRY(hv_plan_check_names(&p, doc->plan->jobs[i].plan, own != NULL ? own : m, err));
    }
    return HV_OK;
}

static bool names_operators(const struct hv_plan *p)
{
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            const struct hv_stage *s = &p->replicas[i].stages[k];
            if (s->n_ops > 0 || s->mesh.n > 0) {
                return true;
            }
        }
    }
    return false;
}

/* A plan for the operators of a transformer names the transformer: they follow from it. */
static enum hv_status take_operators(const struct hv_plan *p, struct hv_inputs *in,
                                     struct hv_err *err)
{
    bool is_graph_plan = in->model.model->kind == HV_MODEL_TRANSFORMER && names_operators(p);
    return is_graph_plan ? hv_inputs_set_graph(in, 1, err) : HV_OK;
}

enum hv_status hv_plan_doc_read(struct hv_plan_doc *out, const char *path, const char *cluster,
                                const char *model, const char *job, struct hv_inputs *inputs,
                                struct hv_err *err)
{
    *out = (struct hv_plan_doc){0};
    *inputs = (struct hv_inputs){0};
    struct hv_json json = {0};
    HV_TRY(parse_file(&json, path, err));
    struct hv_jp root = hv_jp_root(&json);
    const char *const given[SOURCES] = {cluster, model, job};
    struct source src[SOURCES] = {0};
    enum hv_status s = fill_inputs(&root, json.name, given, src, inputs, err);
    s = s == HV_OK ? hv_job_inputs_read(&json, inputs, &inputs->own, &inputs->n_own, err) : s;
    for (size_t i = 0; i < SOURCES; i++) {
        hv_str_free(&src[i].name);
    }
    if (s != HV_OK) {
        hv_json_free(&json);
        hv_inputs_free(inputs);
        return s;
    }
    s = hv_plan_doc_build(out, json, inputs->cluster.cluster, err);
    if (s == HV_OK && ((s = take_operators(out->plan, inputs, err)) != HV_OK ||
                       (s = check_names(out, inputs, err)) != HV_OK)) {
        hv_plan_doc_free(out);
    }
    if (s != HV_OK) {
        hv_inputs_free(inputs);
    } else {
        out->path = hv_xstrdup(path);
    }
    return s;
}

enum hv_status hv_inputs_read(struct hv_inputs *out, const char *cluster, const char *model,
                              const char *job, struct hv_err *err)
{
    *out = (struct hv_inputs){0};
    enum hv_status st;
    if ((st = hv_device_catalogue_read(&out->devices, err)) ||
        (st = hv_cluster_doc_read(&out->cluster, cluster, &out->devices, err)) ||
        (st = hv_model_doc_read(&out->model, model, err)) ||
        (st = hv_job_doc_read(&out->job, job, out->model.model->max_sequence, err))) {
        hv_inputs_free(out);
    }
    return st;
}

enum hv_status hv_inputs_set_job(struct hv_inputs *in, const char *key, const char *text,
                                 struct hv_err *err)
{
    struct hv_json json = {0};
    struct hv_job_doc job = {0};
    json_t *copy = json_deep_copy(in->job.json.root);
    json_object_set_new(copy, key, json_string(text));
    hv_json_wrap(&json, copy, in->job.json.name);
    HV_TRY(hv_job_doc_build(&job, json, in->model.model->max_sequence, err));
    job.path = in->job.path;
    in->job.path = NULL;
    hv_job_doc_free(&in->job);
    in->job = job;
    return HV_OK;
}

static enum hv_dtype type_of(enum hv_precision p)
{
    static const enum hv_dtype types[HV_PRECISION_N] = {
        [HV_FP32] = HV_DTYPE_F32,  [HV_TF32] = HV_DTYPE_F32, [HV_FP16] = HV_DTYPE_F16,
        [HV_BF16] = HV_DTYPE_BF16, [HV_FP8] = HV_DTYPE_F8,   [HV_FP4] = HV_DTYPE_F8,
    };
    return types[p];
}

enum hv_status hv_inputs_set_graph(struct hv_inputs *in, int64_t sequences, struct hv_err *err)
{
    struct hv_model_doc graph = {0};
    if (in->model.model->kind == HV_MODEL_GRAPH) {
        return HV_OK;
    }
    HV_TRY(hv_model_doc_graph(&in->model,
                              &(struct hv_graph_of_model){sequences, in->job.job.sequence,
                                                          type_of(in->job.job.precision), true},
                              &graph, err));
    graph.path = in->model.path;
    in->model.path = NULL;
    hv_model_doc_free(&in->model);
    in->model = graph;
    return HV_OK;
}

void hv_inputs_free(struct hv_inputs *in)
{
    hv_job_inputs_free(in->own, in->n_own);
    in->own = NULL;
    in->n_own = 0;
    hv_job_doc_free(&in->job);
    hv_model_doc_free(&in->model);
    hv_cluster_doc_free(&in->cluster);
    hv_device_catalogue_free(&in->devices);
}
