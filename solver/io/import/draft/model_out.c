/* Writes a model as a hetviz.model/1 document. The reader is solver/io/own/model/model_file.c. */
#include "solver/io/import/draft/model_out.h"
#include "solver/io/import/draft/draft.h"
#include "solver/workload/model.h"
#include <string.h>

static void set_int(json_t *o, const char *key, int x)
{
    json_object_set_new(o, key, json_integer(x));
}

static json_t *moe_json(const struct hv_block *b)
{
    json_t *o = json_object();
    set_int(o, "experts", b->experts);
    set_int(o, "top_k", b->top_k);
    set_int(o, "ffn", b->expert_ffn);
    set_int(o, "shared_experts", b->shared_experts);
    if (b->shared_experts > 0) {
        set_int(o, "shared_ffn", b->shared_ffn);
    }
    if (b->ffn > 0) {
        set_int(o, "dense_ffn", b->ffn);
    }
    return o;
}

static void set_extra(json_t *o, const char *key, double x)
{
    if (x != 0) {
        json_object_set_new(o, key, hv_json_num(x));
    }
}

static void set_block(json_t *o, const struct hv_block *b)
{
    set_int(o, "heads", b->heads);
    if (b->heads > 0) {
        set_int(o, "kv_heads", b->kv_heads);
        set_int(o, "head_dim", b->head_dim);
        set_int(o, "window", b->window);
    }
    set_int(o, "ffn", b->ffn);
    json_object_set_new(o, "ffn_kind", json_string(hv_ffn_kind_name(b->ffn_kind)));
}

static json_t *mla_json(const struct hv_mla *x)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i}", "q_rank", x->q_rank, "kv_rank", x->kv_rank,
                     "rope_dim", x->rope_dim, "nope_dim", x->nope_dim, "value_dim", x->value_dim);
}

/* The figures that few models give layer by layer: an element states all of them, since it follows
 * another kind. */
static void set_extras(json_t *o, const struct hv_block *b)
{
    json_object_set_new(o, "mla", b->mla.kv_rank > 0 ? mla_json(&b->mla) : json_null());
    json_object_set_new(o, "attention_bias", json_boolean(b->attention_bias));
    json_object_set_new(o, "ffn_bias", json_boolean(b->ffn_bias));
    json_object_set_new(o, "attention_extra", hv_json_num(b->attention_extra));
    json_object_set_new(o, "ffn_extra", hv_json_num(b->ffn_extra));
}

static bool same_extras(const struct hv_block *a, const struct hv_block *b)
{
    return a->mla.kv_rank == b->mla.kv_rank && a->attention_bias == b->attention_bias &&
           a->ffn_bias == b->ffn_bias && a->attention_extra == b->attention_extra &&
           a->ffn_extra == b->ffn_extra;
}

static bool same_block(const struct hv_block *a, const struct hv_block *b)
{
    return a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
           a->window == b->window && a->ffn == b->ffn && a->ffn_kind == b->ffn_kind &&
           a->experts == b->experts && a->top_k == b->top_k && a->expert_ffn == b->expert_ffn &&
           a->shared_experts == b->shared_experts && a->shared_ffn == b->shared_ffn &&
           same_extras(a, b);
}

/* Runs of equal blocks; an element that follows another kind states all of its figures. */
static json_t *layer_list(const struct hv_model *m, const struct hv_block *base)
{
    json_t *list = json_array();
    bool extras = false;
    for (size_t i = 0; i < m->n_blocks; i++) {
        extras = extras || !same_extras(&m->blocks[i], base);
    }
    for (size_t i = 0, n; i < m->n_blocks; i += n) {
        json_t *o = json_object();
        for (n = 1; i + n < m->n_blocks && same_block(&m->blocks[i], &m->blocks[i + n]); n++) {
            continue;
        }
        set_int(o, "repeat", (int)n);
        set_block(o, &m->blocks[i]);
        if (extras) {
            set_extras(o, &m->blocks[i]);
        }
        json_object_set_new(o, "moe",
                            m->blocks[i].experts > 0 ? moe_json(&m->blocks[i]) : json_null());
        json_array_append_new(list, o);
    }
    return list;
}

/* The block that the head of the document describes: one with attention. */
static const struct hv_block *head_block(const struct hv_model *m)
{
    for (size_t i = 0; i < m->n_blocks; i++) {
        if (m->blocks[i].heads > 0) {
            return &m->blocks[i];
        }
    }
    return &m->blocks[0];
}

static void transformer(const struct hv_model *m, json_t *o)
{
    const struct hv_block *b = head_block(m);
    struct hv_block one = *b;
    bool uniform = true;
    one.heads = one.heads > 0 ? one.heads : 1;
    one.kv_heads = one.kv_heads > 0 ? one.kv_heads : 1;
    one.head_dim = one.head_dim > 0 ? one.head_dim : 1;
    for (size_t i = 0; i < m->n_blocks; i++) {
        uniform = uniform && same_block(&m->blocks[i], &one);
    }
    set_int(o, "layers", (int)m->n_blocks);
    set_int(o, "hidden", m->hidden);
    set_block(o, &one);
    if (b->mla.kv_rank > 0) {
        json_object_set_new(o, "mla", mla_json(&b->mla));
    }
    json_object_set_new(o, "attention_bias", json_boolean(b->attention_bias));
    json_object_set_new(o, "ffn_bias", json_boolean(b->ffn_bias));
    set_extra(o, "attention_extra", one.attention_extra);
    set_extra(o, "ffn_extra", one.ffn_extra);
    set_extra(o, "embedding_extra", m->embedding_extra);
    set_extra(o, "head_extra", m->head_extra);
    set_int(o, "vocab", m->vocab);
    json_object_set_new(o, "tied_embeddings", json_boolean(m->tied_embeddings));
    json_object_set_new(o, "norm", json_string(hv_norm_kind_name(m->norm)));
    json_object_set_new(o, "causal", json_boolean(m->causal));
    json_object_set_new(o, "position", json_string(hv_position_kind_name(m->position)));
    set_int(o, "max_sequence", m->max_sequence);
    if (m->patch_tokens > 0) {
        set_int(o, "patch_tokens", m->patch_tokens);
    }
    if (uniform && b->experts > 0) {
        json_object_set_new(o, "moe", moe_json(b));
    } else if (!uniform) {
        json_object_set_new(o, "layer_list", layer_list(m, &one));
    }
}

static json_t *model_object(const struct hv_model *m, bool top)
{
    json_t *o = json_object();
    if (top) {
        json_object_set_new(o, "format", json_string("hetviz.model/1"));
    }
    json_object_set_new(o, "name", json_string(m->name ? m->name : "model"));
    json_object_set_new(o, "kind", json_string(hv_model_kind_name(m->kind)));
    if (m->source) {
        json_object_set_new(o, "x-source", json_string(m->source));
    }
    if (m->kind == HV_MODEL_TRANSFORMER) {
        transformer(m, o);
        return o;
    }
    json_t *modules = json_object(), *edges = json_array();
    for (size_t i = 0; i < m->n_modules; i++) {
        json_object_set_new(modules, m->modules[i].name, model_object(m->modules[i].model, false));
    }
    for (size_t i = 0; i < m->n_edges; i++) {
        json_array_append_new(edges, json_pack("[s, s]", m->modules[m->edges[i].from].name,
                                               m->modules[m->edges[i].to].name));
    }
    json_object_set_new(o, "modules", modules);
    if (m->n_edges > 0) {
        json_object_set(o, "edges", edges);
    }
    json_decref(edges);
    return o;
}

json_t *hv_import_model_json(const struct hv_model *m)
{
    return model_object(m, true);
}
