/*
 * Trees and built objects of the documents; each new tree is checked by the code that reads files.
 * Not for key paths (path.c) nor for steps of undo (journal.c).
 */
#include "ui/session/doc/documents.h"

#include <stdlib.h>

struct hv__docs {
    struct hv_inputs inputs;
    json_t *tree[HV_DOC_N];  /* immutable: an edit makes a new one */
    json_t *saved[HV_DOC_N]; /* as in the saved workspace; NULL = never saved */
    char *ref[HV_DOC_N];     /* name in the workspace; NULL = held inline */
    uint64_t generation[HV_DOC_N];
    uint64_t epoch;            /* increases with every change of an input */
    bool grouped;              /* edits are collected … */
    json_t *pending[HV_DOC_N]; /* … in these trees; NULL = not edited */
};

struct hv__docs *hv__docs_new(void)
{
    struct hv__docs *docs = hv_xcalloc(1, sizeof *docs);
    docs->epoch = 1;
    return docs;
}

void hv__docs_free(struct hv__docs *docs)
{
    hv__docs_group_drop(docs);
    for (int d = 0; d < HV_DOC_N; d++) {
        json_decref(docs->tree[d]);
        json_decref(docs->saved[d]);
        free(docs->ref[d]);
    }
    hv_inputs_free(&docs->inputs);
    free(docs);
}

struct hv_inputs *hv__docs_inputs(struct hv__docs *docs)
{
    return &docs->inputs;
}

const struct hv_inputs *hv__docs_nouns(const struct hv__docs *docs)
{
    return &docs->inputs;
}

void hv__docs_begin(struct hv__docs *docs, json_t *strategies)
{
    const struct hv_json *read[HV_DOC_INPUTS] = {&docs->inputs.cluster.json,
                                                 &docs->inputs.model.json, &docs->inputs.job.json};
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        docs->tree[d] = json_incref(read[d]->root);
    }
    docs->tree[HV_DOC_STRATEGIES] =
        json_is_array(strategies) ? json_incref(strategies) : json_array();
    hv__docs_mark_saved(docs);
}

json_t *hv__docs_tree(const struct hv__docs *docs, enum hv_doc d)
{
    return docs->tree[d];
}

json_t *hv__docs_saved_tree(const struct hv__docs *docs, enum hv_doc d)
{
    return docs->saved[d];
}

bool hv__docs_is_edited(const struct hv__docs *docs, enum hv_doc d)
{
    return docs->tree[d] != docs->saved[d];
}

void hv__docs_mark_saved(struct hv__docs *docs)
{
    for (int d = 0; d < HV_DOC_N; d++) {
        json_incref(docs->tree[d]);
        json_decref(docs->saved[d]);
        docs->saved[d] = docs->tree[d];
    }
}

const char *hv__docs_ref(const struct hv__docs *docs, enum hv_doc d)
{
    return docs->ref[d];
}

void hv__docs_set_ref(struct hv__docs *docs, enum hv_doc d, const char *ref)
{
    char *copy = ref != NULL ? hv_xstrdup(ref) : NULL;
    free(docs->ref[d]);
    docs->ref[d] = copy;
}

uint64_t hv__docs_generation(const struct hv__docs *docs, enum hv_doc d)
{
    return docs->generation[d];
}

uint64_t hv__docs_epoch(const struct hv__docs *docs)
{
    return docs->epoch;
}

void hv__docs_add_inputs(const struct hv__docs *docs, json_t *to)
{
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        json_object_set(to, hv_doc_name((enum hv_doc)d), docs->tree[d]);
    }
}

/* ---- a new tree ------------------------------------------------------------------------------ */

/* An in-memory tree as a document with the name of its source, so that messages name the file. */
static struct hv_json wrap(const struct hv__docs *docs, enum hv_doc d, json_t *tree)
{
    struct hv_json json = {0};
    hv_json_wrap(&json, json_incref(tree), docs->ref[d] != NULL ? docs->ref[d] : hv_doc_name(d));
    return json;
}

static enum hv_status put_cluster(struct hv__docs *docs, json_t *tree, struct hv_err *err)
{
    struct hv_cluster_doc doc = {0};
    enum hv_status st =
        hv_cluster_doc_build(&doc, wrap(docs, HV_DOC_CLUSTER, tree), &docs->inputs.devices, err);
    if (st != HV_OK) {
        return st;
    }
    hv_cluster_doc_free(&docs->inputs.cluster);
    docs->inputs.cluster = doc;
    return HV_OK;
}

static enum hv_status put_job(struct hv__docs *docs, json_t *tree, int max_sequence,
                              struct hv_err *err)
{
    struct hv_job_doc doc = {0};
    enum hv_status st = hv_job_doc_build(&doc, wrap(docs, HV_DOC_JOB, tree), max_sequence, err);
    if (st != HV_OK) {
        return st;
    }
    hv_job_doc_free(&docs->inputs.job);
    docs->inputs.job = doc;
    return HV_OK;
}

/* The job's sequence may come from the model, so a new model builds the job again. */
static enum hv_status put_model(struct hv__docs *docs, json_t *tree, struct hv_err *err)
{
    struct hv_model_doc doc = {0};
    enum hv_status st = hv_model_doc_build(&doc, wrap(docs, HV_DOC_MODEL, tree), err);
    if (st == HV_OK) {
        st = put_job(docs, docs->tree[HV_DOC_JOB], doc.model->max_sequence, err);
    }
    if (st != HV_OK) {
        hv_model_doc_free(&doc);
        return st;
    }
    hv_model_doc_free(&docs->inputs.model);
    docs->inputs.model = doc;
    return HV_OK;
}

static enum hv_status put_noun(struct hv__docs *docs, enum hv_doc d, json_t *tree,
                               struct hv_err *err)
{
    switch (d) {
    case HV_DOC_CLUSTER:
        return put_cluster(docs, tree, err);
    case HV_DOC_MODEL:
        return put_model(docs, tree, err);
    case HV_DOC_JOB:
        return put_job(docs, tree, docs->inputs.model.model->max_sequence, err);
    case HV_DOC_STRATEGIES:
        return HV_OK;
    case HV_DOC_N:
        break;
    }
    return HV_EINTERNAL;
}

enum hv_status hv__docs_put(struct hv__docs *docs, enum hv_doc d, json_t *tree, struct hv_err *err)
{
    enum hv_status st = put_noun(docs, d, tree, err);
    if (st != HV_OK) {
        return st;
    }
    json_incref(tree);
    json_decref(docs->tree[d]);
    docs->tree[d] = tree;
    docs->generation[d]++;
    docs->epoch += d < HV_DOC_INPUTS;
    return HV_OK;
}

/* ---- edits that are collected ---------------------------------------------------------------- */

void hv__docs_group_drop(struct hv__docs *docs)
{
    for (int d = 0; d < HV_DOC_N; d++) {
        json_decref(docs->pending[d]);
        docs->pending[d] = NULL;
    }
    docs->grouped = false;
}

void hv__docs_group_begin(struct hv__docs *docs)
{
    hv__docs_group_drop(docs);
    docs->grouped = true;
}

bool hv__docs_is_grouped(const struct hv__docs *docs)
{
    return docs->grouped;
}

json_t *hv__docs_edited_tree(const struct hv__docs *docs, enum hv_doc d)
{
    return docs->pending[d] != NULL ? docs->pending[d] : docs->tree[d];
}

json_t *hv__docs_collected(const struct hv__docs *docs, enum hv_doc d)
{
    return docs->pending[d];
}

void hv__docs_collect(struct hv__docs *docs, enum hv_doc d, json_t *tree)
{
    json_incref(tree);
    json_decref(docs->pending[d]);
    docs->pending[d] = tree;
}
