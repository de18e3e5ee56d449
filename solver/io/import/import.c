/*
 * An import from the first file to the document: bytes are decoded, the format is found, its reader
 * runs, and at the end the parts are combined and checked by hetviz's own readers.
 */
#include "solver/base/file.h"
#include "solver/io/import/formats.h"
#include "solver/io/import/text/decode.h"
#include "solver/io/import/text/words.h"
#include "solver/io/import/trace/trace.h"
#include "solver/io/own/docs.h"
#include <string.h>

#define MAX_FILES 1000

struct hv_import *hv_import_new(const struct hv_device_catalogue *devices)
{
    struct hv_import *im = hv_xcalloc(1, sizeof *im);
    im->devices = devices;
    im->weights_bytes = im->parameters = HV_UNKNOWN;
    return im;
}

void hv_import_free(struct hv_import *im)
{
    if (!im) {
        return;
    }
    for (size_t i = 0; i < im->nodes.n; i++) {
        hv_vec_free(&im->nodes.items[i].cards);
    }
    json_t *trees[] = {im->raw,     im->own,  im->model, im->job,      im->layout,
                       im->cluster, im->plan, im->trace, im->document, im->guessed_model};
    for (size_t i = 0; i < HV_COUNT(trees); i++) {
        json_decref(trees[i]);
    }
    hv_vec_free(&im->nodes);
    hv_vec_free(&im->notes);
    hv_vec_free(&im->prices);
    hv_vec_free(&im->wishes);
    hv_vec_free(&im->choices);
    hv_vec_free(&im->files);
    hv_vec_free(&im->formats);
    free(im->node_index);
    hv_arena_free(&im->arena);
    free(im);
}

/* hetviz's own files are opened, not imported. */
static enum hv_status refuse_own(const struct hv__in *in, struct hv_err *err)
{
    const char *format = json_string_value(json_object_get(in->tree, "format"));
    if (!format || strncmp(format, "hetviz.", 7) != 0) {
        return HV_OK;
    }
    return hv_err_at(
        err, HV_EINPUT, in->name, 0, 0,
        "this file has hetviz's own format %.40s and needs no import (hetviz check FILE checks it)",
        format);
}

/* First line with a known error message of a program that failed to write its output; NULL: none.
 */
static const char *failed_program(const struct hv__in *in)
{
    static const char *const words[] = {"nvidia-smi -h",
                                        "NVIDIA-SMI has failed",
                                        "No devices were found",
                                        "command not found",
                                        "slurm_load_node",
                                        "Unable to contact slurm",
                                        "The connection to the server",
                                        "No such file or directory",
                                        "couldn't communicate",
                                        "Failed to initialize NVML"};
    struct hv__lines l = {.rest = in->text, .left = in->n};
    while (hv__next_line(&l) && l.line < 20) {
        for (size_t i = 0; i < HV_COUNT(words); i++) {
            if (hv__find(l.piece, words[i])) {
                return hv__copy(&in->im->arena, hv__strip(l.piece));
            }
        }
    }
    return NULL;
}

static enum hv_status unknown_format(const struct hv__in *in, struct hv_err *err)
{
    if (in->n == 0 || in->text[strspn(in->text, " \t\r\n\f\v")] == '\0') {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "the file is empty: did the program that should write it fail?");
    }
    const char *said = failed_program(in);
    if (said) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "the program that should write it failed with this message: %.200s", said);
    }
    if (in->broken.text[0] != '\0') {
        if (err) {
            *err = in->broken;
        }
        return in->broken.status;
    }
    return hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                     "the format is not one that hetviz knows; `hetviz help import` lists them, "
                     "and `hetviz import FORMAT FILE` tries one of them anyway");
}

static const struct hv__format *find_format(const struct hv__in *in)
{
    size_t n;
    const struct hv__format *rows = hv__format_table(&n);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].is(in)) {
            return &rows[i];
        }
    }
    return NULL;
}

static enum hv_status read_text(struct hv_import *im, const struct hv__format *f, struct hv__in *in,
                                struct hv_err *err)
{
    hv__parse(in);
    enum hv_status st = refuse_own(in, err);
    if (st == HV_OK && (!f || hv__is_binary(in->text, in->n))) {
        f = find_format(in);
        st = f ? HV_OK : unknown_format(in, err);
    } else if (st == HV_OK && in->broken.text[0] != '\0' && !in->tree && !in->xml) {
        st = f->is(in) ? HV_OK : unknown_format(in, err);
    }
    if (st == HV_OK) {
        hv_vec_push(&im->formats, &f->public);
        hv__understood(in, 0, "%s (%s)", f->public.title, f->public.name);
        im->here = 0;
        st = f->read(in, err);
    }
    if (st == HV_OK) {
        hv__machine_settle(in);
        hv__members_tell(in);
    }
    hv__members_free(&in->members);
    hv__parse_free(in);
    return st;
}

enum hv_status hv_import_text(struct hv_import *im, const struct hv_import_format *format,
                              const char *name, const char *bytes, size_t n, struct hv_err *err)
{
    struct hv_str text = {0};
    size_t rows;
    const struct hv__format *table = hv__format_table(&rows), *f = NULL;
    for (size_t i = 0; format && i < rows; i++) {
        f = &table[i].public == format ? &table[i] : f;
    }
    if (im->files.n >= MAX_FILES) {
        return hv_err_set(err, HV_ELIMIT, "more than %d files in one import", MAX_FILES);
    }
    enum hv_status st = hv__decode(name, bytes, n, HV_IMPORT_MAX_BYTES, &text, err);
    if (st == HV_OK) {
        struct hv__in in = {.im = im,
                            .name = hv_arena_strdup(&im->arena, name),
                            .text = hv_arena_strndup(&im->arena, hv_str_cstr(&text), text.n),
                            .n = text.n};
        hv_vec_push(&im->files, in.name);
        st = read_text(im, f, &in, err);
    }
    hv_str_free(&text);
    if (st != HV_OK && err && err->file[0] == '\0') {
        (void)strncpy(err->file, name, sizeof err->file - 1);
    }
    return st;
}

/* A trace may be large: it is not held in memory. */
static enum hv_status stream_trace(struct hv_import *im, const struct hv_import_format *format,
                                   const char *path, struct hv_err *err)
{
    if (im->files.n >= MAX_FILES) {
        return hv_err_set(err, HV_ELIMIT, "more than %d files in one import", MAX_FILES);
    }
    struct hv__in in = {
        .im = im, .name = hv_arena_strdup(&im->arena, path), .text = "", .is_json = true};
    hv_vec_push(&im->files, in.name);
    hv_vec_push(&im->formats, format);
    hv__understood(&in, 0, "%s (%s)", format->title, format->name);
    enum hv_status st = hv__stream_chrome_trace(&in, path, err);
    if (st == HV_OK) {
        hv__members_tell(&in);
    }
    hv__members_free(&in.members);
    return st;
}

enum hv_status hv_import_file(struct hv_import *im, const struct hv_import_format *format,
                              const char *path, struct hv_err *err)
{
    const struct hv_import_format *trace = hv_import_format_find("chrome_trace");
    if ((!format || format == trace) && hv__is_trace_file(path)) {
        return stream_trace(im, trace, path, err);
    }
    struct hv_str bytes = {0};
    enum hv_status st = hv_file_read(path, &bytes, err);
    if (st == HV_OK) {
        st = hv_import_text(im, format, path, hv_str_cstr(&bytes), bytes.n, err);
    }
    hv_str_free(&bytes);
    return st;
}

/* ---- the document -----------------------------------------------------------------------------
 */

/* Origin of the document, and values without a place of their own. */
static json_t *origin_json(const struct hv_import *im)
{
    json_t *o = json_object(), *files = json_array();
    for (size_t i = 0; i < im->files.n && i < im->formats.n; i++) {
        const char *slash = strrchr(im->files.items[i], '/');
        const char *name = slash ? slash + 1 : im->files.items[i];
        struct hv_str clean = {0};
        hv_text_clean(&clean, name, strlen(name));
        json_array_append_new(files, json_pack("{s:s, s:s}", "file", hv_str_cstr(&clean), "format",
                                               im->formats.items[i]->name));
        hv_str_free(&clean);
    }
    json_object_set_new(o, "files", files);
    if (im->raw) {
        json_object_set(o, "raw", im->raw);
    }
    return o;
}

/* Names and free texts of the files may hold any bytes; the document has to be UTF-8. */
static enum hv_status check_cluster(struct hv_import *im, struct hv_err *err)
{
    struct hv_json json = {0};
    struct hv_cluster_doc doc = {0};
    hv_json_wrap(&json, json_incref(im->cluster), "the imported cluster");
    enum hv_status st = hv_cluster_doc_build(&doc, json, im->devices, err);
    hv_cluster_doc_free(&doc);
    return st;
}

static enum hv_status check_model(struct hv_import *im, struct hv_err *err)
{
    struct hv_json json = {0};
    struct hv_model_doc doc = {0};
    hv_json_wrap(&json, json_incref(im->model), "the imported model");
    enum hv_status st = hv_model_doc_build(&doc, json, err);
    im->parameters = st == HV_OK ? hv_model_parameters(doc.model) : HV_UNKNOWN;
    if (st == HV_OK && hv_known(im->weights_bytes)) {
        double each = im->weight_bytes_each, parameters = hv_model_parameters(doc.model);
        double off = parameters * each / im->weights_bytes - 1;
        hv__note(im, fabs(off) < 0.02 ? HV_IMPORT_UNDERSTOOD : HV_IMPORT_GUESSED,
                 "the model's %.4g parameters are %.4g GB in %.3g bits, the index of weights gives "
                 "%.4g GB%s",
                 parameters, parameters * each / 1e9, each * 8, im->weights_bytes / 1e9,
                 fabs(off) < 0.02 ? "" : ": check the guessed values or the precision");
    }
    hv_model_doc_free(&doc);
    return st;
}

static enum hv_status check_job(struct hv_import *im, struct hv_err *err)
{
    struct hv_json json = {0};
    struct hv_job_doc doc = {0};
    hv_json_wrap(&json, json_incref(im->job), "the imported job");
    enum hv_status st = hv_job_doc_build(&doc, json, 0, err);
    hv_job_doc_free(&doc);
    return st;
}

/* Several parts belong together in a workspace, which needs a cluster and a model. */
static json_t *workspace_json(struct hv_import *im)
{
    if (!im->cluster) {
        hv__cluster_guess(im);
    }
    json_t *w = json_pack("{s:s, s:s, s:O, s:O}", "format", "hetviz.workspace/1", "name",
                          "imported", "cluster", im->cluster, "model", im->model);
    if (im->job) {
        json_object_set(w, "job", im->job);
    }
    json_t *manual = json_pack("{s:s}", "id", "manual");
    if (im->layout) {
        json_object_set(manual, "options", im->layout);
    }
    json_object_set_new(w, "strategies", json_pack("[o]", manual));
    return w;
}

/* A job alone keeps its layout beside it. */
static json_t *job_json(struct hv_import *im)
{
    json_t *o = json_deep_copy(im->job);
    if (im->layout) {
        json_object_set_new(o, "x-strategy",
                            json_pack("{s:s, s:O}", "id", "manual", "options", im->layout));
    }
    return o;
}

static json_t *assemble(struct hv_import *im)
{
    if (im->plan || im->trace) {
        return json_deep_copy(im->plan ? im->plan : im->trace);
    }
    if (im->model && (im->job || im->cluster)) {
        return workspace_json(im);
    }
    if (im->model || (im->cluster && !im->job)) {
        return json_deep_copy(im->model ? im->model : im->cluster);
    }
    if (im->job && im->cluster) {
        json_t *o = json_deep_copy(im->cluster);
        json_object_set_new(o, "x-job", job_json(im));
        return o;
    }
    return im->job ? job_json(im) : NULL;
}

/* Runs the final step of every format after all files are read. */
static void apply_all(struct hv_import *im)
{
    size_t n;
    const struct hv__format *rows = hv__format_table(&n);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].apply != NULL) {
            rows[i].apply(im);
        }
    }
}

enum hv_status hv_import_finish(struct hv_import *im, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    apply_all(im);
    if (!im->model) {
        im->model = im->guessed_model;
        im->guessed_model = NULL;
    }
    if (im->nodes.n > 0) {
        st = hv__cluster_make(im, err);
    }
    if (st == HV_OK) {
        st = hv__wishes_check(im, err);
    }
    if (st == HV_OK && im->cluster) {
        st = check_cluster(im, err);
    }
    if (st == HV_OK && im->model) {
        st = check_model(im, err);
    }
    if (st == HV_OK && im->job) {
        st = check_job(im, err);
    }
    if (st != HV_OK) {
        return st;
    }
    im->document = assemble(im);
    if (!im->document) {
        return hv_err_set(err, HV_ENO,
                          "the files hold no data for a cluster, a model, a job or a plan");
    }
    json_object_set_new(im->document, "x-import", origin_json(im));
    hv__notes_sort(im);
    return HV_OK;
}

json_t *hv_import_document(const struct hv_import *im)
{
    return im->document;
}

json_t *hv_import_cluster(const struct hv_import *im)
{
    return im->cluster;
}

json_t *hv_import_model(const struct hv_import *im)
{
    return im->model;
}

json_t *hv_import_job(const struct hv_import *im)
{
    return im->job;
}

double hv_import_parameters(const struct hv_import *im)
{
    return im->parameters;
}

json_t *hv_import_layout(const struct hv_import *im)
{
    return im->layout;
}

bool hv_import_cluster_is_guess(const struct hv_import *im)
{
    return im->guessed_cluster;
}

const struct hv_import_format *hv_import_format_of(const struct hv_import *im, size_t file)
{
    return file < im->formats.n ? im->formats.items[file] : NULL;
}
