/* The inputs of a cell: documents with the values of the axes in place. */
#include "solver/sweep/sweep_int.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include <stdio.h>

enum hv_status hv_sweep_inputs_begin(struct hv_sweep_inputs *i, struct hv_err *err)
{
    *i = (struct hv_sweep_inputs){0};
    return hv_device_catalogue_read(&i->in.devices, err);
}

void hv_sweep_inputs_free(struct hv_sweep_inputs *i)
{
    hv_inputs_free(&i->in);
    *i = (struct hv_sweep_inputs){0};
}

static bool is_axis_of(const struct hv_sweep_axis *a, enum hv_doc d)
{
    return a->option == NULL && a->path.doc == d;
}

/** Hash of the values that axes give to the document. */
static uint64_t values_of(const struct hv_sweep *s, const struct hv_sweep_cell *cell, enum hv_doc d)
{
    uint64_t h = HV_HASH_START;
    for (size_t i = 0; i < s->n_axes; i++) {
        if (is_axis_of(&s->axes[i], d)) {
            size_t index = hv_sweep_index(s, cell, i);
            h = hv_hash(h, &index, sizeof index);
        }
    }
    return h;
}

/** Puts the value of each axis of the document in place; whole documents first. */
static enum hv_status tree_of(const struct hv_sweep *s, const struct hv_sweep_cell *cell,
                              enum hv_doc d, json_t **out, struct hv_err *err)
{
    json_t *tree = json_incref(s->docs[d]);
    enum hv_status st = HV_OK;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < s->n_axes && st == HV_OK; i++) {
            const struct hv_sweep_axis *a = &s->axes[i];
            json_t *changed = NULL;
            if (!is_axis_of(a, d) || (a->path.n > 0) != (pass == 1)) {
                continue;
            }
            st = hv_key_path_change(tree, &a->path, HV_KEY_PATH_SET,
                                    hv_sweep_value(s, cell, i)->value, &changed, err);
            if (st == HV_OK) {
                json_decref(tree);
                tree = changed;
            }
        }
    }
    *out = tree;
    return st;
}

/** Builds one document from a tree, in place of the one there. Takes the reference. */
static enum hv_status build(struct hv_sweep_inputs *i, enum hv_doc d, json_t *tree,
                            struct hv_err *err)
{
    struct hv_inputs *in = &i->in;
    struct hv_json json = {0};
    hv_json_wrap(&json, tree, hv_doc_name(d));
    if (d == HV_DOC_CLUSTER) {
        hv_cluster_doc_free(&in->cluster);
        return hv_cluster_doc_build(&in->cluster, json, &in->devices, err);
    }
    if (d == HV_DOC_MODEL) {
        hv_model_doc_free(&in->model);
        return hv_model_doc_build(&in->model, json, err);
    }
    hv_job_doc_free(&in->job);
    return hv_job_doc_build(&in->job, json, in->model.model->max_sequence, err);
}

/** Names the specification and the axis values of the cell in front of an error: the document is
 * one that was made of them, so no line of a file is to blame. */
static void blame(const struct hv_sweep *s, const struct hv_sweep_cell *cell, struct hv_err *err)
{
    struct hv_str text = {0};
    for (size_t i = 0; i < s->n_axes; i++) {
        hv_str_addf(&text, "%s%s=%.60s", i > 0 ? " " : "", s->axes[i].name,
                    hv_sweep_value(s, cell, i)->label);
    }
    if (text.n > 0) {
        hv_err_context(err, "%.400s", hv_str_cstr(&text));
    }
    (void)snprintf(err->file, sizeof err->file, "%s", s->json.name != NULL ? s->json.name : "");
    err->line = err->col = 0;
    hv_str_free(&text);
}

enum hv_status hv_sweep_inputs_of(struct hv_sweep_inputs *i, const struct hv_sweep *s,
                                  const struct hv_sweep_cell *cell, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    bool model_changed = false;

    for (int d = 0; d < HV_DOC_INPUTS && st == HV_OK; d++) {
        uint64_t values = values_of(s, cell, (enum hv_doc)d);
        /* the default sequence of a job is that of the model */
        bool stale = !i->has[d] || i->built[d] != values || (d == HV_DOC_JOB && model_changed);
        json_t *tree = NULL;
        if (!stale) {
            continue;
        }
        i->has[d] = false;
        model_changed = model_changed || d == HV_DOC_MODEL;
        st = tree_of(s, cell, (enum hv_doc)d, &tree, err);
        if (st != HV_OK) {
            json_decref(tree);
        } else {
            st = build(i, (enum hv_doc)d, tree, err);
        }
        i->has[d] = st == HV_OK;
        i->built[d] = values;
    }
    if (st != HV_OK && err != NULL) {
        st = st == HV_EUSAGE ? (err->status = HV_EINPUT) : st;
        blame(s, cell, err);
    }
    return st;
}
