/*
 * Model files (hetviz.model/1): the choice of the kind, models of modules, and documents. The other
 * kinds are read in transformer_file.c and graph_file.c (layers, graphs), Hugging Face configs in
 * hf_config.c.
 */
#include "solver/base/units.h"
#include "solver/io/own/doc/docs.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/doc/load.h"
#include "solver/io/own/model/model_int.h"
#include <stdlib.h>

static const char *const kind_words[HV_MODEL_KIND_N] = {"transformer", "layers", "graph",
                                                        "modules"};

/* Reads a model object of any kind, or a Hugging Face config. `depth` counts modules inside
 * modules. */
static enum hv_status read_model(const struct hv_jp *p, struct hv_model *m, int depth,
                                 struct hv_err *err);

static enum hv_status read_module(const struct hv_jp *p, struct hv_model *m, int depth,
                                  struct hv_err *err)
{
    struct hv_module *x = &m->modules[m->n_modules++];
    x->name = hv_arena_strdup(&m->arena, p->key);
    x->model = hv_xcalloc(1, sizeof *x->model);
    x->model->refs = 1;
    enum hv_status st = read_model(p, x->model, depth + 1, err);
    m->n_blocks += x->model->n_blocks;
    if (x->model->max_sequence > m->max_sequence) {
        m->max_sequence = x->model->max_sequence;
    }
    if (st == HV_OK && m->n_blocks > HV_MAX_LAYERS) {
        return hv_jp_fail(p, err, "the modules have more than %d layers together", HV_MAX_LAYERS);
    }
    return st;
}

static enum hv_status read_modules(const struct hv_jp *p, struct hv_model *m, int depth,
                                   struct hv_err *err)
{
    struct hv_jp list = {0};
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_MODULES, err)) ||
        (st = hv_jp_need(p, "modules", "an object of models by name", &list, err))) {
        return st;
    }
    size_t n = json_object_size(list.v), i = 0;
    if (n == 0 || n > HV_MAX_MODULES) {
        return hv_jp_expected(&list, err, "an object of 1 to 1000 models by name");
    }
    if (depth >= HV_MODULE_DEPTH) {
        return hv_jp_fail(&list, err, "modules lie more than %d deep", HV_MODULE_DEPTH);
    }
    m->modules = hv_arena_new(&m->arena, struct hv_module, n);
    struct hv__name_index *names = hv_xcalloc(n, sizeof *names);
    const char *key;
    json_t *v;
    json_object_foreach(list.v, key, v)
    {
        struct hv_jp at = hv_jp_get(&list, key);
        names[i] = (struct hv__name_index){key, (uint32_t)i};
        i++;
        if (st == HV_OK) {
            st = read_module(&at, m, depth, err);
        }
    }
    if (st == HV_OK) {
        hv__names_sort(names, n);
        st = hv__edges_read(p, m, names, n, err);
    }
    free(names);
    return st == HV_OK ? hv__read_int(p, "max_sequence", 1, HV_MAX_WIDTH, &m->max_sequence, err)
                       : st;
}

static enum hv_status read_own(const struct hv_jp *p, struct hv_model *m, int depth,
                               struct hv_err *err)
{
    int kind = HV_MODEL_TRANSFORMER;
    const char *name = NULL, *source = NULL;
    enum hv_status st;
    if ((st = depth == 0 ? hv_jp_format(p, "hetviz.model/1", err) : HV_OK) ||
        (st = hv_jp_opt_word(p, "kind", kind_words, HV_MODEL_KIND_N, &kind, err)) ||
        (st = hv_jp_opt_string(p, "name", &name, err)) ||
        (st = hv_jp_opt_string(p, "x-source", &source, err))) {
        return st;
    }
    m->kind = (enum hv_model_kind)kind;
    m->name = hv_arena_strdup(&m->arena, name ? name : "model");
    m->source = hv_arena_strdup(&m->arena, source);
    switch (m->kind) {
    case HV_MODEL_TRANSFORMER:
        return hv__transformer_read(p, m, err);
    case HV_MODEL_LAYERS:
        return hv__layers_read(p, m, err);
    case HV_MODEL_GRAPH:
        return hv__graph_read(p, m, err);
    case HV_MODEL_MODULES:
        return read_modules(p, m, depth, err);
    case HV_MODEL_KIND_N:
        break;
    }
    return HV_EINTERNAL;
}

static enum hv_status read_model(const struct hv_jp *p, struct hv_model *m, int depth,
                                 struct hv_err *err)
{
    enum hv_status st = hv__hf_looks_like(p) ? hv__hf_read(p, m, err) : read_own(p, m, depth, err);
    if (st == HV_OK) {
        hv_model_finish(m);
    }
    return st;
}

enum hv_status hv_model_doc_build(struct hv_model_doc *out, struct hv_json json, struct hv_err *err)
{
    *out = (struct hv_model_doc){0};
    struct hv_model *m = hv_xcalloc(1, sizeof *m);
    m->refs = 1;
    struct hv_jp root = hv_jp_root(&json);
    enum hv_status st = read_model(&root, m, 0, err);
    if (st) {
        hv_model_unref(m);
        hv_json_free(&json);
        return st;
    }
    out->json = json;
    out->model = m;
    return HV_OK;
}

enum hv_status hv_model_doc_read(struct hv_model_doc *out, const char *path_or_name,
                                 struct hv_err *err)
{
    struct hv_json json = {0};
    *out = (struct hv_model_doc){0};
    enum hv_status st = hv__doc_load(&json, path_or_name, "share/models", err);
    if (st == HV_OK) {
        st = hv_model_doc_build(out, json, err);
    }
    if (st == HV_OK) {
        out->path = hv_xstrdup(path_or_name);
    }
    return st;
}

void hv_model_doc_free(struct hv_model_doc *d)
{
    hv_model_unref(d->model);
    hv_json_free(&d->json);
    free(d->path);
    *d = (struct hv_model_doc){0};
}
