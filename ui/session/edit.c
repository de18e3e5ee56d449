/*
 * Documents: reading them, changing them, each change checked by the code that reads files. Not for
 * the journal's steps back and forth (session_undo.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/units.h"
#include <math.h>
#include <string.h>

const struct hv_cluster_doc *hv_session_cluster(const struct hv_session *s)
{
    return &s->inputs.cluster;
}

const struct hv_model_doc *hv_session_model(const struct hv_session *s)
{
    return &s->inputs.model;
}

const struct hv_job_doc *hv_session_job(const struct hv_session *s)
{
    return &s->inputs.job;
}

const struct hv_device_catalogue *hv_session_devices(const struct hv_session *s)
{
    return &s->inputs.devices;
}

const json_t *hv_session_tree(const struct hv_session *s, enum hv_doc d)
{
    return s->tree[d];
}

uint64_t hv_session_generation(const struct hv_session *s, enum hv_doc d)
{
    return s->generation[d];
}

const char *hv_session_source(const struct hv_session *s, enum hv_doc d)
{
    return s->ref[d];
}

const json_t *hv_session_get(const struct hv_session *s, const char *path)
{
    struct hv_arena a = {0};
    struct hv__path p;
    const json_t *v = NULL;
    if (hv__session_path_parse(&a, path, &p, NULL) == HV_OK) {
        v = hv__session_path_find(s->tree[p.doc], &p);
    }
    hv_arena_free(&a);
    return v;
}

/* A tree of ours as a document, named as its source so that messages say which one. */
static struct hv_json wrap(const struct hv_session *s, enum hv_doc d, json_t *tree)
{
    struct hv_json json = {0};
    hv_json_wrap(&json, json_incref(tree), s->ref[d] != NULL ? s->ref[d] : hv_doc_name(d));
    return json;
}

static enum hv_status put_cluster(struct hv_session *s, json_t *tree, struct hv_err *err)
{
    struct hv_cluster_doc doc = {0};
    enum hv_status st =
        hv_cluster_doc_build(&doc, wrap(s, HV_DOC_CLUSTER, tree), &s->inputs.devices, err);
    if (st != HV_OK) {
        return st;
    }
    hv_cluster_doc_free(&s->inputs.cluster);
    s->inputs.cluster = doc;
    return HV_OK;
}

static enum hv_status put_job(struct hv_session *s, json_t *tree, int max_sequence,
                              struct hv_err *err)
{
    struct hv_job_doc doc = {0};
    enum hv_status st = hv_job_doc_build(&doc, wrap(s, HV_DOC_JOB, tree), max_sequence, err);
    if (st != HV_OK) {
        return st;
    }
    hv_job_doc_free(&s->inputs.job);
    s->inputs.job = doc;
    return HV_OK;
}

/* The job's sequence may come from the model, so a new model builds the job again. */
static enum hv_status put_model(struct hv_session *s, json_t *tree, struct hv_err *err)
{
    struct hv_model_doc doc = {0};
    enum hv_status st = hv_model_doc_build(&doc, wrap(s, HV_DOC_MODEL, tree), err);
    if (st == HV_OK) {
        st = put_job(s, s->tree[HV_DOC_JOB], doc.model->max_sequence, err);
    }
    if (st != HV_OK) {
        hv_model_doc_free(&doc);
        return st;
    }
    hv_model_doc_free(&s->inputs.model);
    s->inputs.model = doc;
    return HV_OK;
}

/* The options of a strategy that is not there (another machine, a plugin moved away) are kept. */
static enum hv_status check_strategy(const struct hv_session *s,
                                     const struct hv_workspace_strategy *row, struct hv_err *err)
{
    const struct hv_plugin *p = hv_session_strategy(s, row->id);
    json_t *full = NULL;
    if (p == NULL || p->error != NULL || row->options == NULL) {
        return HV_OK;
    }
    enum hv_status st = hv_options_check(p, row->options, &full, err);
    json_decref(full);
    return st;
}

static enum hv_status put_strategies(struct hv_session *s, json_t *tree, struct hv_err *err)
{
    struct hv_workspace w;
    json_t *root = json_object();
    json_object_set_new(root, "format", json_string("hetviz.workspace/1"));
    json_object_set(root, "strategies", tree);
    struct hv_json json = {0};
    hv_json_wrap(&json, root, "strategies");
    enum hv_status st = hv_workspace_build(&w, json, NULL, err);
    if (st != HV_OK) {
        return st;
    }
    for (size_t i = 0; st == HV_OK && i < w.n_strategies; i++) {
        st = check_strategy(s, &w.strategies[i], err);
    }
    hv_workspace_free(&w);
    return st;
}

enum hv_status hv__session_doc_put(struct hv_session *s, enum hv_doc d, json_t *tree,
                                   struct hv_err *err)
{
    enum hv_status st = HV_EINTERNAL;
    switch (d) {
    case HV_DOC_CLUSTER:
        st = put_cluster(s, tree, err);
        break;
    case HV_DOC_MODEL:
        st = put_model(s, tree, err);
        break;
    case HV_DOC_JOB:
        st = put_job(s, tree, s->inputs.model.model->max_sequence, err);
        break;
    case HV_DOC_STRATEGIES:
        st = put_strategies(s, tree, err);
        break;
    case HV_DOC_N:
        break;
    }
    if (st != HV_OK) {
        return st;
    }
    json_incref(tree);
    json_decref(s->tree[d]);
    s->tree[d] = tree;
    s->generation[d]++;
    s->epoch += d < HV__INPUTS;
    hv__session_touch(s);
    hv__session_rows_publish(s);
    hv__session_rows_sort(s);
    return HV_OK;
}

enum hv_status hv__session_doc_change(struct hv_session *s, enum hv_doc d, json_t *tree,
                                      char *label, struct hv_err *err)
{
    if (json_equal(s->tree[d], tree)) {
        free(label);
        return HV_OK;
    }
    json_t *before = json_incref(s->tree[d]);
    enum hv_status st = hv__session_doc_put(s, d, tree, err);
    if (st != HV_OK) {
        json_decref(before);
        free(label);
        return st;
    }
    struct hv__step step = {.kind = HV__STEP_DOC,
                            .doc = d,
                            .before = before,
                            .after = json_incref(tree),
                            .label = label};
    json_incref(before);
    hv__session_journal_push(s, step);
    hv__session_did_doc(s, d, before, tree);
    json_decref(before);
    return HV_OK;
}

void hv__session_group_drop(struct hv_session *s)
{
    for (int d = 0; d < HV_DOC_N; d++) {
        json_decref(s->pending[d]);
        s->pending[d] = NULL;
    }
    s->grouped = false;
}

void hv_session_group_begin(struct hv_session *s)
{
    hv__session_group_drop(s);
    s->grouped = true;
}

enum hv_status hv_session_group_end(struct hv_session *s, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (int d = 0; st == HV_OK && d < HV_DOC_N; d++) {
        struct hv_str label = {0};
        if (s->pending[d] == NULL) {
            continue;
        }
        hv_str_addf(&label, "several changes of %s", hv_doc_name((enum hv_doc)d));
        st = hv__session_doc_change(s, (enum hv_doc)d, s->pending[d], label.p, err);
    }
    hv__session_group_drop(s);
    return st;
}

/* The tree that an edit starts from. */
static json_t *edited_tree(const struct hv_session *s, enum hv_doc d)
{
    return s->pending[d] != NULL ? s->pending[d] : s->tree[d];
}

/* "set cluster.nodes[0].count 4": what the journal shows. Owner: caller. */
static char *label_of(const char *verb, const char *path, const json_t *value)
{
    struct hv_str text = {0}, json = {0};
    hv_str_addf(&text, "%s %s", verb, path);
    if (value != NULL) {
        hv_json_write(&json, value, false);
        hv_str_addc(&text, ' ');
        hv_text_clean(&text, hv_str_cstr(&json), json.n < 60 ? json.n : 60);
        hv_str_adds(&text, json.n < 60 ? "" : "…");
    }
    hv_str_free(&json);
    return text.p;
}

/* One change at several paths of one document: built, checked and remembered once. */
static enum hv_status change_at(struct hv_session *s, const char *const *paths, size_t n,
                                enum hv__change change, json_t *value, struct hv_err *err)
{
    static const char *const verbs[] = {
        [HV__SET] = "set", [HV__REMOVE] = "remove", [HV__INSERT] = "insert"};
    struct hv_arena a = {0};
    struct hv__path p = {0};
    json_t *tree = NULL;
    enum hv_status st = HV_OK;
    enum hv_doc doc = HV_DOC_CLUSTER;
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        json_t *next = NULL;
        st = hv__session_path_parse(&a, paths[i], &p, err);
        if (st == HV_OK && i > 0 && p.doc != doc) {
            st = hv_err_set(err, HV_EUSAGE, "one step changes one document, found %s and %s",
                            hv_doc_name(doc), hv_doc_name(p.doc));
        }
        doc = st == HV_OK ? p.doc : doc;
        if (st == HV_OK) {
            st = hv__session_path_change(tree != NULL ? tree : edited_tree(s, doc), &p, change,
                                         value, &next, err);
        }
        json_decref(tree);
        tree = next;
    }
    if (st == HV_OK && tree != NULL && s->grouped) {
        json_decref(s->pending[doc]);
        s->pending[doc] = json_incref(tree);
    } else if (st == HV_OK && tree != NULL) {
        char *label = label_of(verbs[change], paths[0], value);
        if (n > 1) {
            struct hv_str many = {0};
            hv_str_addf(&many, "%s (and %zu more)", label, n - 1);
            free(label);
            label = many.p;
        }
        st = hv__session_doc_change(s, doc, tree, label, err);
    }
    json_decref(tree);
    hv_arena_free(&a);
    return st;
}

enum hv_status hv_session_set(struct hv_session *s, const char *path, json_t *value,
                              struct hv_err *err)
{
    enum hv_status st = value != NULL ? change_at(s, &path, 1, HV__SET, value, err)
                                      : hv_err_set(err, HV_EUSAGE, "%.200s: no value given", path);
    json_decref(value);
    return st;
}

/* JSON where it looks like it, else a bare word. Owner of *out: caller. */
enum hv_status hv__session_value(const char *text, json_t **out, struct hv_err *err)
{
    struct hv_json json = {0};
    struct hv_err why;
    *out = NULL;
    while (*text == ' ' || *text == '\t') {
        text++;
    }
    if (*text == '\0') {
        return hv_err_set(err, HV_EUSAGE, "expected a value: JSON or a word");
    }
    enum hv_status st = hv_json_parse(&json, text, strlen(text), "value", &why);
    if (st == HV_OK) {
        *out = json_incref(json.root);
        hv_json_free(&json);
        return HV_OK;
    }
    if (strchr("[{\"", *text) != NULL) {
        if (err != NULL) {
            *err = why;
        }
        return st;
    }
    *out = json_string(text);
    return *out != NULL ? HV_OK : hv_err_set(err, HV_EUSAGE, "the value is not valid UTF-8");
}

enum hv_status hv_session_set_text(struct hv_session *s, const char *path, const char *text,
                                   struct hv_err *err)
{
    return hv_session_set_many(s, &path, 1, text, err);
}

enum hv_status hv_session_set_many(struct hv_session *s, const char *const *paths, size_t n,
                                   const char *text, struct hv_err *err)
{
    json_t *value = NULL;
    enum hv_status st = hv__session_value(text, &value, err);
    if (st == HV_OK) {
        st = change_at(s, paths, n, HV__SET, value, err);
    }
    json_decref(value);
    return st;
}

enum hv_status hv_session_remove(struct hv_session *s, const char *path, struct hv_err *err)
{
    return change_at(s, &path, 1, HV__REMOVE, NULL, err);
}

enum hv_status hv_session_insert(struct hv_session *s, const char *path, json_t *value,
                                 struct hv_err *err)
{
    enum hv_status st = value != NULL ? change_at(s, &path, 1, HV__INSERT, value, err)
                                      : hv_err_set(err, HV_EUSAGE, "%.200s: no value given", path);
    json_decref(value);
    return st;
}

enum hv_status hv_session_replace(struct hv_session *s, enum hv_doc d, json_t *tree,
                                  const char *label, struct hv_err *err)
{
    enum hv_status st = hv__session_doc_change(s, d, tree, hv_xstrdup(label), err);
    json_decref(tree);
    return st;
}
