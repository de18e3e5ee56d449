/* Models of kind transformer: blocks from a base, mixtures of experts, and layers of their own. */
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/model/model_int.h"
#include <string.h>

#define X(c, name, mats) name,
static const char *const ffn_words[HV_FFN_KIND_N] = {HV_FFN_KIND_MAP(X)};
#undef X
static const char *const norm_words[HV_NORM_KIND_N] = {"layernorm", "rmsnorm"};
static const char *const position_words[HV_POSITION_KIND_N] = {"learned", "rope", "alibi", "none"};

/* Mixture of experts: the members that select its blocks. */
struct moe_rule {
    int experts, top_k, ffn, shared_experts, shared_ffn, dense_ffn;
    int every, first_dense;
};

static enum hv_status need_int(const struct hv_jp *p, const char *key, int64_t hi, int *out,
                               struct hv_err *err)
{
    struct hv_jp at = {0};
    int64_t x = 0;
    enum hv_status st;
    if ((st = hv_jp_need(p, key, "a whole number", &at, err)) ||
        (st = hv_jp_int(&at, 1, hi, &x, err))) {
        return st;
    }
    *out = (int)x;
    return HV_OK;
}

enum hv_status hv__block_check(const struct hv_jp *p, const struct hv_block *b, struct hv_err *err)
{
    if (b->heads > 0 && b->heads % b->kv_heads != 0) {
        return hv_jp_fail(p, err, "kv_heads %d does not divide heads %d", b->kv_heads, b->heads);
    }
    if (b->experts > 0 && b->top_k > b->experts) {
        return hv_jp_fail(p, err, "top_k %d is more than the %d experts", b->top_k, b->experts);
    }
    return HV_OK;
}

static enum hv_status read_moe(const struct hv_jp *p, int ffn, struct moe_rule *r,
                               struct hv_err *err)
{
    *r = (struct moe_rule){.top_k = 1, .ffn = ffn, .every = 1};
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_MOE, err)) ||
        (st = need_int(p, "experts", HV_MAX_EXPERTS, &r->experts, err)) ||
        (st = hv__read_int(p, "top_k", 1, HV_MAX_EXPERTS, &r->top_k, err)) ||
        (st = hv__read_int(p, "ffn", 1, HV_MAX_WIDTH, &r->ffn, err))) {
        return st;
    }
    r->shared_ffn = r->ffn;
    if ((st = hv__read_int(p, "shared_experts", 0, HV_MAX_EXPERTS, &r->shared_experts, err)) ||
        (st = hv__read_int(p, "shared_ffn", 1, HV_MAX_WIDTH, &r->shared_ffn, err)) ||
        (st = hv__read_int(p, "dense_ffn", 0, HV_MAX_WIDTH, &r->dense_ffn, err)) ||
        (st = hv__read_int(p, "every", 1, HV_MAX_LAYERS, &r->every, err))) {
        return st;
    }
    return hv__read_int(p, "first_dense", 0, HV_MAX_LAYERS, &r->first_dense, err);
}

/* Turns a block into a mixture of experts. */
static void apply_moe(struct hv_block *b, const struct moe_rule *r)
{
    b->ffn = r->dense_ffn;
    b->experts = r->experts;
    b->top_k = r->top_k;
    b->expert_ffn = r->ffn;
    b->shared_experts = r->shared_experts;
    b->shared_ffn = r->shared_experts ? r->shared_ffn : 0;
}

static enum hv_status read_mla(const struct hv_jp *p, struct hv_block *b, struct hv_err *err)
{
    struct hv_jp at = hv_jp_get(p, "mla");
    if (hv_jp_none(&at)) {
        return HV_OK;
    }
    enum hv_status st;
    if ((st = hv_keys_check(&at, HV_KEYS_MLA, err)) ||
        (st = hv__read_int(&at, "q_rank", 0, HV_MAX_WIDTH, &b->mla.q_rank, err)) ||
        (st = need_int(&at, "kv_rank", HV_MAX_WIDTH, &b->mla.kv_rank, err)) ||
        (st = need_int(&at, "rope_dim", HV_MAX_WIDTH, &b->mla.rope_dim, err)) ||
        (st = need_int(&at, "nope_dim", HV_MAX_WIDTH, &b->mla.nope_dim, err))) {
        return st;
    }
    return need_int(&at, "value_dim", HV_MAX_WIDTH, &b->mla.value_dim, err);
}

static enum hv_status read_ffn_kind(const struct hv_jp *p, struct hv_block *b, struct hv_err *err)
{
    int kind = (int)b->ffn_kind;
    enum hv_status st = hv_jp_opt_word(p, "ffn_kind", ffn_words, HV_FFN_KIND_N, &kind, err);
    b->ffn_kind = (enum hv_ffn_kind)kind;
    return st;
}

/* Heads: one of kv_heads and head_dim may follow from the others. */
static enum hv_status read_heads(const struct hv_jp *p, const struct hv_model *m,
                                 struct hv_block *b, struct hv_err *err)
{
    b->kv_heads = b->heads;
    enum hv_status st = hv__read_int(p, "kv_heads", 1, HV_MAX_HEADS, &b->kv_heads, err);
    if (st) {
        return st;
    }
    struct hv_jp dim = hv_jp_get(p, "head_dim");
    if (hv_jp_none(&dim) && b->heads > 0) {
        if (m->hidden % b->heads != 0) {
            struct hv_jp heads = hv_jp_get(p, "heads");
            return hv_jp_fail(heads.v != NULL ? &heads : p, err,
                              "%d does not divide hidden %d; give head_dim", b->heads, m->hidden);
        }
        b->head_dim = m->hidden / b->heads;
        return HV_OK;
    }
    return hv__read_int(p, "head_dim", 1, HV_MAX_WIDTH, &b->head_dim, err);
}

/* The base block of all layers; gated feed-forwards and RMS norms come without biases. */
static enum hv_status read_base(const struct hv_jp *p, struct hv_model *m, struct hv_block *b,
                                struct hv_err *err)
{
    enum hv_status st;
    b->ffn = 4 * m->hidden;
    b->ffn_kind = HV_FFN_GELU;
    if ((st = need_int(p, "heads", HV_MAX_HEADS, &b->heads, err)) ||
        (st = read_heads(p, m, b, err)) ||
        (st = hv__read_int(p, "ffn", 0, HV_MAX_WIDTH, &b->ffn, err)) ||
        (st = read_ffn_kind(p, b, err)) ||
        (st = hv__read_int(p, "window", 0, HV_MAX_WIDTH, &b->window, err)) ||
        (st = read_mla(p, b, err))) {
        return st;
    }
    bool gated = hv_ffn_kind_matrices(b->ffn_kind) > 2;
    int norm = gated ? HV_NORM_RMSNORM : HV_NORM_LAYERNORM;
    int position = gated ? HV_POSITION_ROPE : HV_POSITION_LEARNED;
    if ((st = hv_jp_opt_word(p, "norm", norm_words, HV_NORM_KIND_N, &norm, err)) ||
        (st = hv_jp_opt_word(p, "position", position_words, HV_POSITION_KIND_N, &position, err))) {
        return st;
    }
    m->norm = (enum hv_norm_kind)norm;
    m->position = (enum hv_position_kind)position;
    b->attention_bias = b->ffn_bias = m->norm == HV_NORM_LAYERNORM;
    if ((st = hv_jp_opt_bool(p, "attention_bias", &b->attention_bias, err)) ||
        (st = hv_jp_opt_bool(p, "ffn_bias", &b->ffn_bias, err))) {
        return st;
    }
    return hv__block_check(p, b, err);
}

/* Weights beside the usual matrices; negative where they are shared. */
static enum hv_status read_extra(const struct hv_jp *p, const char *key, double *io,
                                 struct hv_err *err)
{
    return hv_jp_opt_number(p, key, -HV_MAX_EXTRA, HV_MAX_EXTRA, io, err);
}

static enum hv_status read_block_extras(const struct hv_jp *p, struct hv_block *b,
                                        struct hv_err *err)
{
    enum hv_status st = read_extra(p, "attention_extra", &b->attention_extra, err);
    return st ? st : read_extra(p, "ffn_extra", &b->ffn_extra, err);
}

/* "mla" of an element; null: without, where the base has it. */
static enum hv_status read_own_mla(const struct hv_jp *p, struct hv_block *b, struct hv_err *err)
{
    struct hv_jp mla = hv_jp_get(p, "mla");
    if (mla.v != NULL) {
        b->mla = (struct hv_mla){0};
    }
    return read_mla(p, b, err);
}

/* Dimensions of the tokens, in the order of the file. */
static enum hv_status read_tokens(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(p, "tokens");
    const char *key;
    json_t *v;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    if (!json_is_object(list.v) || json_object_size(list.v) == 0) {
        return hv_jp_expected(&list, err, "an object of sizes by the name of a dimension");
    }
    m->token_dims = hv_arena_new(&m->arena, struct hv_graph_dim, json_object_size(list.v));
    json_object_foreach(list.v, key, v)
    {
        struct hv_jp at = hv_jp_get(&list, key);
        struct hv_graph_dim *d = &m->token_dims[m->n_token_dims++];
        d->name = hv_arena_strdup(&m->arena, key);
        enum hv_status st = hv_jp_int(&at, 1, HV_MAX_WIDTH, &d->size, err);
        if (st != HV_OK) {
            return st;
        }
    }
    return HV_OK;
}

/* The dimension that a block attends along; null: all tokens. */
static enum hv_status set_attends(const struct hv_jp *at, const struct hv_model *m,
                                  struct hv_block *b, struct hv_err *err)
{
    b->attends = b->reach = 0;
    if (hv_jp_none(at)) {
        return HV_OK;
    }
    for (size_t i = 0; json_is_string(at->v) && i < m->n_token_dims; i++) {
        if (strcmp(json_string_value(at->v), m->token_dims[i].name) == 0) {
            b->attends = (int)i + 1;
            b->reach = (int)m->token_dims[i].size;
            return HV_OK;
        }
    }
    return hv_jp_expected(at, err, "the name of a dimension in \"tokens\", or null: all tokens");
}

/* "attends" of the model: one dimension, or a list that blocks take in turn. */
static enum hv_status read_attends(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    struct hv_jp at = hv_jp_get(p, "attends");
    size_t n = 0;
    if (hv_jp_none(&at)) {
        return HV_OK;
    }
    enum hv_status st = json_is_array(at.v) ? hv_jp_array(&at, &n, err) : HV_OK;
    if (st == HV_OK && json_is_array(at.v) && n == 0) {
        return hv_jp_expected(&at, err, "at least one dimension");
    }
    for (size_t i = 0; st == HV_OK && i < m->n_blocks; i++) {
        struct hv_jp element = n > 0 ? hv_jp_at(&at, i % n) : at;
        st = set_attends(&element, m, &m->blocks[i], err);
    }
    return st;
}

/* One element of layer_list over blocks [at, at + repeat). */
static enum hv_status read_override(const struct hv_jp *p, struct hv_model *m, size_t *at,
                                    struct hv_err *err)
{
    int repeat = 1;
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_LAYER_LIST, err)) ||
        (st = hv__read_int(p, "repeat", 1, HV_MAX_LAYERS, &repeat, err))) {
        return st;
    }
    if (*at + (size_t)repeat > m->n_blocks) {
        return hv_jp_fail(p, err, "the list describes more than the %zu layers", m->n_blocks);
    }
    struct hv_jp heads = hv_jp_get(p, "heads"), ffn = hv_jp_get(p, "ffn"),
                 moe = hv_jp_get(p, "moe"), attends = hv_jp_get(p, "attends");
    for (size_t i = *at; i < *at + (size_t)repeat; i++) {
        struct hv_block *b = &m->blocks[i];
        if ((st = hv__read_int(p, "heads", 0, HV_MAX_HEADS, &b->heads, err)) ||
            (st = !hv_jp_none(&heads) ? read_heads(p, m, b, err) : HV_OK) ||
            (st = hv__read_int(p, "kv_heads", 1, HV_MAX_HEADS, &b->kv_heads, err)) ||
            (st = hv__read_int(p, "head_dim", 1, HV_MAX_WIDTH, &b->head_dim, err)) ||
            (st = hv__read_int(p, "ffn", 0, HV_MAX_WIDTH, &b->ffn, err)) ||
            (st = read_ffn_kind(p, b, err)) ||
            (st = hv__read_int(p, "window", 0, HV_MAX_WIDTH, &b->window, err)) ||
            (st = read_own_mla(p, b, err)) ||
            (st = hv_jp_opt_bool(p, "attention_bias", &b->attention_bias, err)) ||
            (st = hv_jp_opt_bool(p, "ffn_bias", &b->ffn_bias, err)) ||
            (st = read_block_extras(p, b, err)) ||
            (st = attends.v != NULL ? set_attends(&attends, m, b, err) : HV_OK)) {
            return st;
        }
        struct moe_rule r;
        if (!hv_jp_none(&moe)) {
            if ((st = read_moe(&moe, b->ffn, &r, err))) {
                return st;
            }
            apply_moe(b, &r);
        } else if (moe.v || !hv_jp_none(&ffn)) { /* an own width, or "moe": null: dense */
            b->experts = b->top_k = b->expert_ffn = b->shared_experts = b->shared_ffn = 0;
        }
        if ((st = hv__block_check(p, b, err))) {
            return st;
        }
    }
    *at += (size_t)repeat;
    return HV_OK;
}

static enum hv_status read_overrides(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(p, "layer_list");
    size_t n = 0, at = 0;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&list, &n, err);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp element = hv_jp_at(&list, i);
        st = read_override(&element, m, &at, err);
    }
    return st;
}

static enum hv_status read_blocks(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    int layers = 0;
    struct hv_block base = {0};
    struct moe_rule r = {0};
    struct hv_jp moe = hv_jp_get(p, "moe");
    enum hv_status st;
    if ((st = need_int(p, "layers", HV_MAX_LAYERS, &layers, err)) ||
        (st = read_base(p, m, &base, err)) || (st = read_block_extras(p, &base, err)) ||
        (st = hv_jp_none(&moe) ? HV_OK : read_moe(&moe, base.ffn, &r, err))) {
        return st;
    }
    m->n_blocks = (size_t)layers;
    m->blocks = hv_arena_new(&m->arena, struct hv_block, m->n_blocks);
    for (int i = 0; i < layers; i++) {
        m->blocks[i] = base;
        if (r.experts && i >= r.first_dense && (i - r.first_dense) % r.every == r.every - 1) {
            apply_moe(&m->blocks[i], &r);
            if ((st = hv__block_check(&moe, &m->blocks[i], err))) {
                return st;
            }
        }
    }
    st = read_attends(p, m, err);
    return st != HV_OK ? st : read_overrides(p, m, err);
}

enum hv_status hv__transformer_read(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    enum hv_status st;
    m->causal = true;
    m->max_sequence = 2048;
    if ((st = hv_keys_check(p, HV_KEYS_TRANSFORMER, err)) ||
        (st = need_int(p, "hidden", HV_MAX_WIDTH, &m->hidden, err)) ||
        (st = need_int(p, "vocab", HV_MAX_WIDTH, &m->vocab, err)) ||
        (st = hv__read_int(p, "max_sequence", 1, HV_MAX_WIDTH, &m->max_sequence, err)) ||
        (st = hv__read_int(p, "patch_tokens", 0, HV_MAX_WIDTH, &m->patch_tokens, err)) ||
        (st = read_tokens(p, m, err)) ||
        (st = hv_jp_opt_bool(p, "tied_embeddings", &m->tied_embeddings, err)) ||
        (st = hv_jp_opt_bool(p, "causal", &m->causal, err)) ||
        (st = read_extra(p, "embedding_extra", &m->embedding_extra, err)) ||
        (st = read_extra(p, "head_extra", &m->head_extra, err))) {
        return st;
    }
    return read_blocks(p, m, err);
}
