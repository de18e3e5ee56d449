/* Reads a specification: documents, limits, strategies. The axes are read in axes.c, the grid is
 * made in cells.c. */
#include "solver/sweep/sweep_int.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
#include <stdlib.h>
#include <string.h>

#define FORMAT "hetviz.sweep/1"

enum { STRATEGIES_MAX = 1000 };

static enum hv_status read_documents(struct hv_sweep *s, const struct hv_jp *root,
                                     const char *folder, struct hv_err *err)
{
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        const char *name = hv_doc_name((enum hv_doc)d);
        struct hv_jp at = hv_jp_get(root, name);
        if (hv_jp_none(&at) && d == HV_DOC_JOB) {
            enum hv_status given = hv__sweep_default_job(&s->docs[d], err);
            if (given != HV_OK) {
                return given;
            }
            continue;
        }
        enum hv_status st =
            hv_jp_need(root, name, "the name of a document, or one itself", &at, err);
        st = st == HV_OK ? hv__sweep_document((enum hv_doc)d, &at, folder, &s->docs[d], err) : st;
        if (st != HV_OK) {
            return st;
        }
    }
    return HV_OK;
}

static enum hv_status read_strategies(struct hv_sweep *s, const struct hv_jp *root,
                                      struct hv_err *err)
{
    struct hv_jp list;
    enum hv_status st = hv_jp_need(root, "strategies", "a list of names", &list, err);
    st = st == HV_OK ? hv_jp_array(&list, &s->n_strategies, err) : st;
    if (st == HV_OK && (s->n_strategies == 0 || s->n_strategies > STRATEGIES_MAX)) {
        return hv_jp_fail(&list, err, "expected 1 to %d strategies, found %zu", STRATEGIES_MAX,
                          s->n_strategies);
    }
    s->strategies = hv_arena_new(&s->arena, const char *, s->n_strategies + 1);
    for (size_t i = 0; i < s->n_strategies && st == HV_OK; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = hv_jp_string(&at, &s->strategies[i], err);
        for (size_t k = 0; k < i && st == HV_OK; k++) {
            if (strcmp(s->strategies[k], s->strategies[i]) == 0) {
                st = hv_jp_fail(&at, err, "%s stands in the list twice", s->strategies[i]);
            }
        }
    }
    return st;
}

static enum hv_status read_limits(struct hv_sweep *s, const struct hv_jp *root, struct hv_err *err)
{
    static const char *const kept[] = {"figures", "plans"};
    int64_t seed = 1;
    int keep = HV_SWEEP_FIGURES;
    enum hv_status st = hv_jp_opt_int(root, "seed", 0, INT64_C(9007199254740991), &seed, err);
    st = st == HV_OK ? hv_jp_opt_int(root, "budget", 0, INT64_C(9007199254740991), &s->budget, err)
                     : st;
    st = st == HV_OK ? hv_jp_opt_number(root, "time_limit_s", 0, 1e9, &s->time_limit_s, err) : st;
    st = st == HV_OK ? hv_jp_opt_word(root, "keep", kept, HV_COUNT(kept), &keep, err) : st;
    s->seed = (uint64_t)seed;
    s->keep = (enum hv_sweep_keep)keep;
    return st;
}

static enum hv_status read_root(struct hv_sweep *s, const char *folder, struct hv_err *err)
{
    static const char *const keys[] = {"format", "cluster",      "model",      "job",
                                       "axes",   "where",        "strategies", "seed",
                                       "budget", "time_limit_s", "keep"};
    struct hv_jp root = hv_jp_root(&s->json);
    struct hv_jp axes = hv_jp_get(&root, "axes"), where = hv_jp_get(&root, "where");
    enum hv_status st = hv_jp_object(&root, keys, HV_COUNT(keys), err);
    st = st == HV_OK ? hv_jp_format(&root, FORMAT, err) : st;
    st = st == HV_OK ? read_documents(s, &root, folder, err) : st;
    st = st == HV_OK ? read_strategies(s, &root, err) : st;
    st = st == HV_OK ? read_limits(s, &root, err) : st;
    st = st == HV_OK && !hv_jp_none(&axes) ? hv__sweep_axes(s, &axes, folder, err) : st;
    return st == HV_OK ? hv__sweep_cells(s, &where, err) : st;
}

enum hv_status hv_sweep_build(struct hv_sweep *out, struct hv_json json, const char *folder,
                              struct hv_err *err)
{
    *out = (struct hv_sweep){.json = json};
    enum hv_status st = read_root(out, folder, err);
    if (st != HV_OK) {
        hv_sweep_free(out);
    }
    return st;
}

enum hv_status hv_sweep_read(struct hv_sweep *out, const char *path, struct hv_err *err)
{
    struct hv_str text = {0}, folder = {0};
    struct hv_json json = {0};
    const char *slash = strrchr(path, '/');

    *out = (struct hv_sweep){0};
    hv_str_add(&folder, path, slash != NULL ? (size_t)(slash - path) : 0);
    enum hv_status st = hv_file_read(path, &text, err);
    st = st == HV_OK ? hv_json_parse(&json, hv_str_cstr(&text), text.n, path, err) : st;
    st = st == HV_OK ? hv_sweep_build(out, json, hv_str_cstr(&folder), err) : st;
    hv_str_free(&folder);
    hv_str_free(&text);
    return st;
}

void hv_sweep_free(struct hv_sweep *s)
{
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        json_decref(s->docs[d]);
    }
    for (size_t i = 0; i < s->n_axes; i++) {
        for (size_t k = 0; k < s->axes[i].n; k++) {
            json_decref(s->axes[i].values[k].value);
        }
    }
    free(s->cells);
    hv_arena_free(&s->arena);
    hv_json_free(&s->json);
    *s = (struct hv_sweep){0};
}

/** Values with their labels, so that a document keeps the name that it had. */
static json_t *axis_tree(const struct hv_sweep_axis *a)
{
    json_t *values = json_array(), *tree = json_object();
    for (size_t i = 0; i < a->n; i++) {
        json_t *value = json_object();
        json_object_set_new(value, "label", json_string(a->values[i].label));
        json_object_set(value, "value", a->values[i].value);
        json_array_append_new(values, value);
    }
    json_object_set_new(tree, "name", json_string(a->name));
    json_object_set_new(tree, "at", json_string(a->at));
    json_object_set_new(tree, "values", values);
    return tree;
}

json_t *hv_sweep_whole(const struct hv_sweep *s)
{
    json_t *tree = json_object(), *axes = json_array();
    const char *key;
    json_t *member;

    json_object_foreach(s->json.root, key, member)
    {
        json_object_set(tree, key, member);
    }
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        json_object_set(tree, hv_doc_name((enum hv_doc)d), s->docs[d]);
    }
    for (size_t i = 0; i < s->n_axes; i++) {
        json_array_append_new(axes, axis_tree(&s->axes[i]));
    }
    json_object_set_new(tree, "axes", axes);
    return tree;
}
