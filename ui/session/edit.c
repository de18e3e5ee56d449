/*
 * Documents: reading them and changing them, each change a step of undo. Not for undo (undo.c) nor
 * for the trees (doc/documents.c).
 */
#include "ui/session/session_int.h"

#include "solver/io/own/doc/key_path.h"
#include <stdlib.h>
#include <string.h>

const struct hv_cluster_doc *hv_session_cluster(const struct hv_session *s)
{
    return &hv__docs_nouns(s->docs)->cluster;
}

const struct hv_model_doc *hv_session_model(const struct hv_session *s)
{
    return &hv__docs_nouns(s->docs)->model;
}

const struct hv_job_doc *hv_session_job(const struct hv_session *s)
{
    return &hv__docs_nouns(s->docs)->job;
}

const struct hv_device_catalogue *hv_session_devices(const struct hv_session *s)
{
    return &hv__docs_nouns(s->docs)->devices;
}

const json_t *hv_session_tree(const struct hv_session *s, enum hv_doc d)
{
    return hv__docs_tree(s->docs, d);
}

uint64_t hv_session_generation(const struct hv_session *s, enum hv_doc d)
{
    return hv__docs_generation(s->docs, d);
}

const char *hv_session_source(const struct hv_session *s, enum hv_doc d)
{
    return hv__docs_ref(s->docs, d);
}

const json_t *hv_session_get(const struct hv_session *s, const char *path)
{
    struct hv_arena a = {0};
    struct hv_key_path p;
    const json_t *v = NULL;
    if (hv_key_path_parse(&a, path, &p, NULL) == HV_OK) {
        v = hv_key_path_find(hv__docs_tree(s->docs, p.doc), &p);
    }
    hv_arena_free(&a);
    return v;
}

enum hv_status hv__session_doc_put(struct hv_session *s, enum hv_doc d, json_t *tree,
                                   struct hv_err *err)
{
    enum hv_status st = HV_OK;
    if (d == HV_DOC_STRATEGIES) {
        st = hv__strategies_check(s->strategies, tree, err);
    }
    if (st == HV_OK) {
        st = hv__docs_put(s->docs, d, tree, err);
    }
    if (st != HV_OK) {
        return st;
    }
    hv__session_touch(s);
    hv__rows_update_outdated(s->rows, s->docs);
    hv__session_rows_sort(s);
    return HV_OK;
}

enum hv_status hv__session_doc_change(struct hv_session *s, enum hv_doc d, json_t *tree,
                                      char *label, struct hv_err *err)
{
    if (json_equal(hv__docs_tree(s->docs, d), tree)) {
        free(label);
        return HV_OK;
    }
    json_t *before = json_incref(hv__docs_tree(s->docs, d));
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

void hv_session_group_begin(struct hv_session *s)
{
    hv__docs_group_begin(s->docs);
}

enum hv_status hv_session_group_end(struct hv_session *s, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (int d = 0; st == HV_OK && d < HV_DOC_N; d++) {
        json_t *tree = hv__docs_collected(s->docs, (enum hv_doc)d);
        struct hv_str label = {0};
        if (tree == NULL) {
            continue;
        }
        hv_str_addf(&label, "several changes of %s", hv_doc_name((enum hv_doc)d));
        st = hv__session_doc_change(s, (enum hv_doc)d, tree, label.p, err);
    }
    hv__docs_group_drop(s->docs);
    return st;
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

/* One change at several paths of one document: one build, one check and one undo step. */
static enum hv_status change_at(struct hv_session *s, const char *const *paths, size_t n,
                                enum hv_key_path_edit change, json_t *value, struct hv_err *err)
{
    static const char *const verbs[] = {[HV_KEY_PATH_SET] = "set",
                                        [HV_KEY_PATH_REMOVE] = "remove",
                                        [HV_KEY_PATH_INSERT] = "insert"};
    struct hv_arena a = {0};
    struct hv_key_path p = {0};
    json_t *tree = NULL;
    enum hv_status st = HV_OK;
    enum hv_doc doc = HV_DOC_CLUSTER;
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        json_t *next = NULL;
        st = hv_key_path_parse(&a, paths[i], &p, err);
        if (st == HV_OK && i > 0 && p.doc != doc) {
            st = hv_err_set(err, HV_EUSAGE, "one undo step changes one document, found %s and %s",
                            hv_doc_name(doc), hv_doc_name(p.doc));
        }
        doc = st == HV_OK ? p.doc : doc;
        if (st == HV_OK) {
            st = hv_key_path_change(tree != NULL ? tree : hv__docs_edited_tree(s->docs, doc), &p,
                                    change, value, &next, err);
        }
        json_decref(tree);
        tree = next;
    }
    if (st == HV_OK && tree != NULL && hv__docs_is_grouped(s->docs)) {
        hv__docs_collect(s->docs, doc, tree);
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
    enum hv_status st = value != NULL ? change_at(s, &path, 1, HV_KEY_PATH_SET, value, err)
                                      : hv_err_set(err, HV_EUSAGE, "%.200s: no value given", path);
    json_decref(value);
    return st;
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
    enum hv_status st = hv_value_parse(text, &value, err);
    if (st == HV_OK) {
        st = change_at(s, paths, n, HV_KEY_PATH_SET, value, err);
    }
    json_decref(value);
    return st;
}

enum hv_status hv_session_remove(struct hv_session *s, const char *path, struct hv_err *err)
{
    return change_at(s, &path, 1, HV_KEY_PATH_REMOVE, NULL, err);
}

enum hv_status hv_session_insert(struct hv_session *s, const char *path, json_t *value,
                                 struct hv_err *err)
{
    enum hv_status st = value != NULL ? change_at(s, &path, 1, HV_KEY_PATH_INSERT, value, err)
                                      : hv_err_set(err, HV_EUSAGE, "%.200s: no value given", path);
    json_decref(value);
    return st;
}

enum hv_status hv_session_insert_text(struct hv_session *s, const char *path, const char *text,
                                      struct hv_err *err)
{
    json_t *value = NULL;
    enum hv_status st = hv_value_parse(text, &value, err);
    return st == HV_OK ? hv_session_insert(s, path, value, err) : st;
}

enum hv_status hv_session_replace(struct hv_session *s, enum hv_doc d, json_t *tree,
                                  const char *label, struct hv_err *err)
{
    enum hv_status st = hv__session_doc_change(s, d, tree, hv_xstrdup(label), err);
    json_decref(tree);
    return st;
}
