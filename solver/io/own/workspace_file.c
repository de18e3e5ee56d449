/* Workspace files. Open workspaces are managed in ui/session. */
#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/doc/load.h"
#include "solver/io/own/docs_int.h"
#include "solver/io/own/workspace.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LIST 100000

static enum hv_status read_ref(struct hv_workspace *w, const struct hv_jp *p,
                               struct hv_workspace_ref *out, struct hv_err *err)
{
    if (hv_jp_none(p)) {
        return HV_OK;
    }
    if (json_is_object(p->v)) {
        out->inline_ = p->v;
        return HV_OK;
    }
    const char *s = NULL;
    if (!json_is_string(p->v)) {
        return hv_jp_expected(p, err, "a path, a shipped name or the document itself");
    }
    enum hv_status st = hv_jp_string(p, &s, err);
    out->name = hv_arena_strdup(&w->arena, s);
    return st;
}

/* A list that may be absent; *n = 0 then. */
static enum hv_status open_list(const struct hv_jp *root, const char *key, struct hv_jp *list,
                                size_t *n, struct hv_err *err)
{
    *list = hv_jp_get(root, key);
    *n = 0;
    if (hv_jp_none(list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(list, n, err);
    return st == HV_OK && *n > MAX_LIST ? hv_jp_fail(list, err, "more than %d elements", MAX_LIST)
                                        : st;
}

static enum hv_status read_strategy(struct hv_workspace *w, const struct hv_jp *p,
                                    struct hv_workspace_strategy *s, struct hv_err *err)
{
    struct hv_jp id = *p, options = {0};
    enum hv_status st = HV_OK;
    if (!json_is_string(p->v)) {
        if (!json_is_object(p->v)) {
            return hv_jp_expected(p, err, "the id of a strategy, or an object with id and options");
        }
        if ((st = hv_keys_check(p, HV_KEYS_STRATEGY, err)) ||
            (st = hv_jp_need(p, "id", "the id of a strategy", &id, err))) {
            return st;
        }
        options = hv_jp_get(p, "options");
        if (!hv_jp_none(&options)) {
            if (!json_is_object(options.v)) {
                return hv_jp_expected(&options, err, "an object of options");
            }
            s->options = options.v;
        }
    }
    st = hv_jp_string(&id, &s->id, err);
    s->id = st ? NULL : hv_arena_strdup(&w->arena, s->id);
    return st;
}

static enum hv_status read_job(struct hv_workspace *w, const struct hv_jp *p,
                               struct hv_workspace_job *j, struct hv_err *err)
{
    struct hv_jp name = hv_jp_get(p, "name"), model, job;
    struct hv_queued_job q;
    enum hv_status st = hv__queued_read(p, HV_KEYS_WORKSPACE_JOB, &q, err);
    if (st) {
        return st;
    }
    j->name = q.name;
    j->arrival_s = q.arrival_s;
    j->weight = q.weight;
    for (const struct hv_workspace_job *o = w->jobs; o < j; o++) {
        if (strcmp(o->name, j->name) == 0) {
            return hv_jp_fail(&name, err, "the name \"%.80s\" is taken by another job", j->name);
        }
    }
    j->name = hv_arena_strdup(&w->arena, j->name);
    model = hv_jp_get(p, "model");
    job = hv_jp_get(p, "job");
    st = read_ref(w, &model, &j->model, err);
    return st ? st : read_ref(w, &job, &j->job, err);
}

static enum hv_status read_lists(struct hv_workspace *w, const struct hv_jp *root,
                                 struct hv_err *err)
{
    struct hv_jp list;
    enum hv_status st;
    if ((st = open_list(root, "strategies", &list, &w->n_strategies, err))) {
        return st;
    }
    w->strategies = hv_arena_new(&w->arena, struct hv_workspace_strategy, w->n_strategies + 1);
    for (size_t i = 0; i < w->n_strategies; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        if ((st = read_strategy(w, &at, &w->strategies[i], err))) {
            return st;
        }
    }
    if ((st = open_list(root, "plans", &list, &w->n_plans, err))) {
        return st;
    }
    w->plans = hv_arena_new(&w->arena, struct hv_workspace_ref, w->n_plans + 1);
    for (size_t i = 0; i < w->n_plans; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        if ((st = read_ref(w, &at, &w->plans[i], err))) {
            return st;
        }
    }
    if ((st = open_list(root, "jobs", &list, &w->n_jobs, err))) {
        return st;
    }
    w->jobs = hv_arena_new(&w->arena, struct hv_workspace_job, w->n_jobs + 1);
    for (size_t i = 0; st == HV_OK && i < w->n_jobs; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_job(w, &at, &w->jobs[i], err);
    }
    return st;
}

static enum hv_status build(struct hv_workspace *w, struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(&w->json);
    const char *name = NULL;
    enum hv_status st;
    if ((st = hv_jp_format(&root, "hetviz.workspace/1", err)) ||
        (st = hv_keys_check(&root, HV_KEYS_WORKSPACE, err)) ||
        (st = hv_jp_opt_string(&root, "name", &name, err))) {
        return st;
    }
    w->name = hv_arena_strdup(&w->arena, name ? name : "workspace");
    struct hv_jp cluster = hv_jp_get(&root, "cluster"), model = hv_jp_get(&root, "model");
    struct hv_jp job = hv_jp_get(&root, "job");
    if ((st = read_ref(w, &cluster, &w->cluster, err)) ||
        (st = read_ref(w, &model, &w->model, err)) || (st = read_ref(w, &job, &w->job, err))) {
        return st;
    }
    return read_lists(w, &root, err);
}

enum hv_status hv_workspace_build(struct hv_workspace *out, struct hv_json json, const char *folder,
                                  struct hv_err *err)
{
    *out = (struct hv_workspace){.json = json};
    out->folder = folder ? hv_xstrdup(folder) : NULL;
    enum hv_status st = build(out, err);
    if (st) {
        hv_workspace_free(out);
    }
    return st;
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* The file of a path or of a shipped name. */
static void find_file(const char *path_or_name, struct hv_str *out)
{
    if (is_folder(path_or_name)) {
        hv_str_addf(out, "%s/workspace.json", path_or_name);
        return;
    }
    if (strcmp(path_or_name, "-") != 0 && !strchr(path_or_name, '/') &&
        access(path_or_name, F_OK) != 0) {
        struct hv_str shipped = {0};
        hv_str_addf(&shipped, "samples/workspaces/%s/workspace.json", path_or_name);
        enum hv_status st = hv_data_path(out, hv_str_cstr(&shipped), NULL);
        hv_str_free(&shipped);
        if (st == HV_OK) {
            return;
        }
        hv_str_clear(out);
    }
    hv_str_adds(out, path_or_name);
}

/* Removes what killed programs left where a workspace and its plans lie. */
static void sweep(const char *folder)
{
    struct hv_str plans = {0};
    hv_str_addf(&plans, "%s/plans", folder);
    hv_file_sweep(folder);
    hv_file_sweep(hv_str_cstr(&plans));
    hv_str_free(&plans);
}

enum hv_status hv_workspace_read(struct hv_workspace *out, const char *path_or_name,
                                 struct hv_err *err)
{
    *out = (struct hv_workspace){0};
    struct hv_str path = {0}, folder = {0};
    struct hv_json json = {0};
    find_file(path_or_name, &path);
    const char *file = hv_str_cstr(&path), *slash = strrchr(file, '/');
    if (slash) {
        hv_str_add(&folder, file, slash > file ? (size_t)(slash - file) : 1);
    } else {
        hv_str_addc(&folder, '.');
    }
    sweep(hv_str_cstr(&folder));
    enum hv_status st = hv__doc_load(&json, file, "samples/workspaces", err);
    if (st == HV_OK) {
        st = hv_workspace_build(out, json, hv_str_cstr(&folder), err);
    }
    if (st == HV_OK) {
        out->path = hv_xstrdup(file);
    }
    hv_str_free(&path);
    hv_str_free(&folder);
    return st;
}

void hv_workspace_resolve(const struct hv_workspace *w, const char *name, struct hv_str *out)
{
    static const char *const ends[] = {"", ".json"};
    bool relative = w->folder && name[0] != '/' && strcmp(name, "-") != 0;
    for (size_t i = 0; relative && i < HV_COUNT(ends); i++) {
        struct hv_str beside = {0};
        hv_str_addf(&beside, "%s/%s%s", w->folder, name, ends[i]);
        bool there = access(hv_str_cstr(&beside), F_OK) == 0 && !is_folder(hv_str_cstr(&beside));
        if (there) {
            hv_str_add(out, beside.p, beside.n);
        }
        hv_str_free(&beside);
        if (there) {
            return;
        }
    }
    hv_str_adds(out, name);
}

/* A document of the workspace as a tree of its own: inline parts are shared, files are read. */
static enum hv_status load(const struct hv_workspace *w, const struct hv_workspace_ref *r,
                           const char *folder, struct hv_json *out, char **path, struct hv_err *err)
{
    *path = NULL;
    if (r->inline_) {
        hv_json_wrap(out, json_incref(r->inline_), w->path ? w->path : w->name);
        return HV_OK;
    }
    if (!r->name) {
        const char *what = r == &w->cluster ? "cluster" : "model";
        return hv_err_set(err, HV_EINPUT, "%s: missing key \"%s\", expected a path or a name",
                          w->path ? w->path : w->name, what);
    }
    struct hv_str at = {0};
    hv_workspace_resolve(w, r->name, &at);
    enum hv_status st = hv__doc_load(out, hv_str_cstr(&at), folder, err);
    if (st == HV_OK) {
        *path = hv_xstrdup(hv_str_cstr(&at));
    }
    hv_str_free(&at);
    return st;
}

/* Adds the place at which the workspace names or holds the document that could not be read; returns
 * st. */
static enum hv_status blame(const struct hv_workspace *w, const char *key, enum hv_status st,
                            struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(&w->json), at = hv_jp_get(&root, key);
    if (st != HV_OK && at.v != NULL) {
        hv_jp_blame(&at, err);
    }
    return st;
}

/* Replaces the name of an input in an entry by a path that other processes can resolve too. */
static void resolve_key(const struct hv_workspace *w, json_t *entry, const char *key)
{
    const char *name = json_string_value(json_object_get(entry, key));
    struct hv_str at = {0};
    if (name) {
        hv_workspace_resolve(w, name, &at);
        json_object_set_new(entry, key, json_string(hv_str_cstr(&at)));
    }
    hv_str_free(&at);
}

/* The workspace's jobs as the queue of its job, where that has none of its own: so strategies get
 * them, in whichever process they run. The tree of the job is replaced, as it may be shared. */
static void add_queue(const struct hv_workspace *w, struct hv_json *job)
{
    json_t *list = json_object_get(w->json.root, "jobs"), *entry;
    size_t i;
    if (w->n_jobs == 0 || json_array_size(json_object_get(job->root, "jobs")) > 0) {
        return;
    }
    json_t *root = json_copy(job->root), *jobs = json_deep_copy(list);
    json_array_foreach(jobs, i, entry)
    {
        resolve_key(w, entry, "model");
        resolve_key(w, entry, "job");
    }
    json_object_set_new(root, "jobs", jobs);
    json_decref(job->root);
    job->root = root;
}

static enum hv_status read_job_input(const struct hv_workspace *w, struct hv_inputs *out,
                                     struct hv_err *err)
{
    struct hv_json json = {0};
    char *path = NULL;
    int max_sequence = out->model.model->max_sequence;
    enum hv_status st = HV_OK;
    if (w->job.name || w->job.inline_) {
        st = load(w, &w->job, "samples/jobs", &json, &path, err);
    } else {
        hv__job_doc_default(&json);
    }
    if (st == HV_OK) {
        add_queue(w, &json);
        st = hv_job_doc_build(&out->job, json, max_sequence, err);
    }
    if (st) {
        free(path);
    } else {
        out->job.path = path;
    }
    return st;
}

static enum hv_status read_cluster_input(const struct hv_workspace *w, struct hv_inputs *out,
                                         struct hv_err *err)
{
    struct hv_json json = {0};
    char *path = NULL;
    enum hv_status st = load(w, &w->cluster, "samples/clusters", &json, &path, err);
    if (st == HV_OK) {
        st = hv_cluster_doc_build(&out->cluster, json, &out->devices, err);
    }
    if (st) {
        free(path);
    } else {
        out->cluster.path = path;
    }
    return st;
}

static enum hv_status read_model_input(const struct hv_workspace *w, struct hv_inputs *out,
                                       struct hv_err *err)
{
    struct hv_json json = {0};
    char *path = NULL;
    enum hv_status st = load(w, &w->model, "share/models", &json, &path, err);
    if (st == HV_OK) {
        st = hv_model_doc_build(&out->model, json, err);
    }
    if (st) {
        free(path);
    } else {
        out->model.path = path;
    }
    return st;
}

enum hv_status hv_workspace_inputs(const struct hv_workspace *w, struct hv_inputs *out,
                                   struct hv_err *err)
{
    *out = (struct hv_inputs){0};
    enum hv_status st;
    if ((st = hv_device_catalogue_read(&out->devices, err)) ||
        (st = blame(w, "cluster", read_cluster_input(w, out, err), err)) ||
        (st = blame(w, "model", read_model_input(w, out, err), err)) ||
        (st = blame(w, "job", read_job_input(w, out, err), err))) {
        hv_inputs_free(out);
    }
    return st;
}

void hv_workspace_free(struct hv_workspace *w)
{
    hv_json_free(&w->json);
    hv_arena_free(&w->arena);
    free(w->path);
    free(w->folder);
    *w = (struct hv_workspace){0};
}
