/* The blocks of a Hugging Face config: attention, feed-forward, experts, windows. */
#include "solver/io/own/model/hf_int.h"
#include <string.h>

static bool is_gated(const struct hv__hf *c, const char *activation)
{
    if (c->f->gated != HV__ASK) {
        return c->f->gated == HV__YES;
    }
    return strstr(activation, "glu") || strcmp(activation, "silu") == 0 ||
           strcmp(activation, "swish") == 0;
}

static enum hv_status read_activation(const struct hv__hf *c, enum hv_ffn_kind *out)
{
    struct hv_jp at = hv__hf_find(c, HV__HF_ACTIVATION);
    const char *s = hv__hf_has(c, "rms_norm_eps") ? "silu" : "gelu";
    if (json_is_string(at.v)) {
        s = json_string_value(at.v);
    } else if (at.v) {
        return hv_jp_expected(&at, c->err, "the name of an activation");
    }
    bool gelu = strstr(s, "gelu") || strstr(s, "geglu"), silu = strstr(s, "silu") != NULL;
    if (is_gated(c, s)) {
        *out = gelu ? HV_FFN_GEGLU : HV_FFN_SWIGLU;
    } else if (strcmp(s, "relu2") == 0) {
        *out = HV_FFN_RELU2;
    } else if (strcmp(s, "relu") == 0) {
        *out = HV_FFN_RELU;
    } else {
        *out = silu ? HV_FFN_SILU : HV_FFN_GELU;
    }
    return HV_OK;
}

static enum hv_status read_mla(const struct hv__hf *c, struct hv_block *b)
{
    const struct {
        const char *key;
        int *to;
    } rows[] = {{"q_lora_rank", &b->mla.q_rank},
                {"kv_lora_rank", &b->mla.kv_rank},
                {"qk_rope_head_dim", &b->mla.rope_dim},
                {"qk_nope_head_dim", &b->mla.nope_dim},
                {"v_head_dim", &b->mla.value_dim}};
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(rows); i++) {
        st = hv__read_int(&c->p, rows[i].key, 0, HV_MAX_WIDTH, rows[i].to, c->err);
    }
    if (st == HV_OK && (b->mla.rope_dim == 0 || b->mla.nope_dim == 0 || b->mla.value_dim == 0)) {
        return hv_jp_fail(&c->p, c->err,
                          "kv_lora_rank needs qk_rope_head_dim, qk_nope_head_dim and v_head_dim");
    }
    b->head_dim = b->mla.nope_dim + b->mla.rope_dim;
    return st;
}

static enum hv_status read_heads(const struct hv__hf *c, const struct hv_model *m,
                                 struct hv_block *b)
{
    enum hv_status st = hv__hf_need(c, HV__HF_HEADS, HV_MAX_HEADS, &b->heads);
    if (st) {
        return st;
    }
    b->kv_heads = b->heads;
    bool multi_query =
        hv__hf_flag(c, "multi_query", false) && !hv__hf_flag(c, "new_decoder_architecture", false);
    if (multi_query) {
        b->kv_heads = 1;
    } else if ((st = hv__hf_opt(c, HV__HF_KV_HEADS, 1, HV_MAX_HEADS, &b->kv_heads))) {
        return st;
    }
    struct hv_jp rank = hv_jp_get(&c->p, "kv_lora_rank");
    if (!hv_jp_none(&rank)) {
        b->kv_heads = b->heads;
        return read_mla(c, b);
    }
    if (!hv__hf_find(c, HV__HF_HEAD_DIM).v) {
        if (m->hidden % b->heads != 0) {
            return hv_jp_fail(&c->p, c->err, "%d heads do not divide the hidden size %d", b->heads,
                              m->hidden);
        }
        b->head_dim = m->hidden / b->heads;
    }
    return hv__hf_opt(c, HV__HF_HEAD_DIM, 1, HV_MAX_WIDTH, &b->head_dim);
}

static enum hv_status read_dense(const struct hv__hf *c, const struct hv_model *m,
                                 struct hv_block *b)
{
    enum hv_status st = read_activation(c, &b->ffn_kind);
    if (st) {
        return st;
    }
    if (!hv__hf_find(c, HV__HF_FFN).v && hv_ffn_kind_matrices(b->ffn_kind) > 2 &&
        !hv__hf_find(c, HV__HF_MOE_FFN).v) {
        return hv__hf_need(c, HV__HF_FFN, HV_MAX_WIDTH, &b->ffn);
    }
    b->ffn = 4 * m->hidden;
    st = hv__hf_opt(c, HV__HF_FFN, 1, HV_MAX_WIDTH, &b->ffn);
    if (strcmp(c->type, "qwen") == 0) {
        b->ffn /= 2; /* the first generation writes the width of both halves */
    }
    bool qkv = hv__hf_flag(c, "use_qkv_bias", hv__hf_flag(c, "qkv_bias", c->f->attention_bias));
    b->attention_bias = hv__hf_flag(c, "attention_bias", hv__hf_flag(c, "bias", qkv));
    b->ffn_bias = hv__hf_flag(c, "mlp_bias", hv__hf_flag(c, "bias", c->f->ffn_bias));
    return st;
}

/* Experts of one block, were it a mixture; experts 0 when the config has none. */
static enum hv_status read_experts(const struct hv__hf *c, struct hv_block *dense,
                                   struct hv_block *moe)
{
    enum hv_status st;
    *moe = *dense;
    moe->top_k = 1;
    moe->expert_ffn = dense->ffn;
    if ((st = hv__hf_opt(c, HV__HF_EXPERTS, 0, HV_MAX_EXPERTS, &moe->experts)) ||
        moe->experts < 2) {
        moe->experts = 0;
        return st;
    }
    if ((st = hv__hf_opt(c, HV__HF_TOP_K, 1, HV_MAX_EXPERTS, &moe->top_k)) ||
        (st = hv__hf_opt(c, HV__HF_MOE_FFN, 1, HV_MAX_WIDTH, &moe->expert_ffn)) ||
        (st = hv__hf_opt(c, HV__HF_SHARED_EXPERTS, 0, HV_MAX_EXPERTS, &moe->shared_experts)) ||
        (st = hv__hf_opt(c, HV__HF_SHARED_FFN, 0, HV_MAX_WIDTH, &moe->shared_ffn))) {
        return st;
    }
    moe->ffn = 0;
    if (moe->shared_ffn > 0 && moe->shared_experts == 0) {
        moe->shared_experts = 1;
    }
    if (strncmp(c->type, "llama4", 6) == 0) {
        moe->shared_experts = 1;
        st = hv__read_int(&c->p, "intermediate_size_mlp", 1, HV_MAX_WIDTH, &dense->ffn, c->err);
    }
    if (moe->shared_experts && moe->shared_ffn == 0) {
        moe->shared_ffn = moe->expert_ffn;
    }
    return st;
}

/* Which layers have the window: named one by one, every one but each n-th, or all. */
static bool is_windowed(const struct hv__hf *c, int layer, int pattern)
{
    const char *type = hv__hf_layer_type(c, layer);
    if (*type) {
        return strcmp(type, "sliding_attention") == 0;
    }
    if (pattern > 1) {
        return (layer + 1) % pattern != 0;
    }
    return strncmp(c->type, "gemma2", 6) != 0 || layer % 2 == 0;
}

static enum hv_status read_window(const struct hv__hf *c, struct hv_model *m)
{
    int window = 0, pattern = 0, from = 0;
    enum hv_status st;
    if (!hv__hf_flag(c, "use_sliding_window", true)) {
        return HV_OK;
    }
    if ((st = hv__hf_opt(c, HV__HF_WINDOW, 0, HV_MAX_WIDTH, &window)) ||
        (st = hv__read_int(&c->p, "sliding_window_pattern", 0, HV_MAX_LAYERS, &pattern, c->err))) {
        return st;
    }
    if (strncmp(c->type, "qwen", 4) == 0 &&
        (st = hv__read_int(&c->p, "max_window_layers", 0, HV_MAX_LAYERS, &from, c->err))) {
        return st;
    }
    for (size_t i = (size_t)from; i < m->n_blocks && window < m->max_sequence; i++) {
        m->blocks[i].window = is_windowed(c, (int)i, pattern) ? window : 0;
    }
    return HV_OK;
}

/* The config's general rule: mixtures of experts are the layers i ≥ first with i mod every = phase.
 */
struct mixture_rule {
    int first, every, phase;
};

static enum hv_status read_rule(const struct hv__hf *c, struct mixture_rule *r)
{
    *r = (struct mixture_rule){0, 1, 0};
    struct hv_jp every = hv__hf_find(c, HV__HF_MOE_EVERY);
    enum hv_status st = hv__hf_opt(c, HV__HF_FIRST_DENSE, 0, HV_MAX_LAYERS, &r->first);
    if (st == HV_OK && json_is_integer(every.v)) {
        st = hv__hf_opt(c, HV__HF_MOE_EVERY, 1, HV_MAX_LAYERS, &r->every);
    }
    /* DeepSeek counts its frequency from layer 0, the others name the last of each step */
    r->phase = every.v && strcmp(every.key, "moe_layer_freq") == 0 ? 0 : r->every - 1;
    return st;
}

/* Figures common to all layers. Configs of models without attention give no heads. */
static enum hv_status read_both(const struct hv__hf *c, struct hv_model *m, struct hv_block *dense,
                                struct hv_block *moe)
{
    struct hv__hf_layer first = hv__hf_layer_of(c, 0);
    bool bare = first.mixer == HV__HF_LINEAR && first.ffn == HV__HF_NO_FFN &&
                !hv__hf_find(c, HV__HF_HEADS).v;
    *dense = *moe = (struct hv_block){.kv_heads = 1, .head_dim = 1, .ffn_kind = HV_FFN_GELU};
    if (bare) {
        return HV_OK;
    }
    enum hv_status st = read_heads(c, m, dense);
    st = st ? st : read_dense(c, m, dense);
    return st ? st : read_experts(c, dense, moe);
}

/* One layer before its window is known. */
static struct hv_block make_block(const struct hv__hf *c, const struct mixture_rule *r, int i,
                                  const struct hv_block *dense, const struct hv_block *moe)
{
    struct hv__hf_layer l = hv__hf_layer_of(c, i);
    bool mixed =
        moe->experts && (l.ffn == HV__HF_MIXTURE ||
                         (l.ffn == HV__HF_ANY_FFN && i >= r->first && i % r->every == r->phase &&
                          !hv__hf_listed(c, "mlp_only_layers", i)));
    struct hv_block b = mixed ? *moe : *dense;
    if (l.ffn == HV__HF_NO_FFN) {
        b.ffn = b.experts = b.top_k = b.expert_ffn = b.shared_experts = b.shared_ffn = 0;
    }
    b.heads = l.mixer == HV__HF_NO_MIXER ? 0 : b.heads;
    return b;
}

/* Replaces layers that are modelled by another kind of block, after the windows of the others are
 * set. */
static void settle_blocks(const struct hv__hf *c, struct hv_model *m)
{
    bool low_rank = hv__hf_is_low_rank(c);
    for (size_t i = 0; i < m->n_blocks; i++) {
        if (hv__hf_layer_of(c, (int)i).mixer == HV__HF_LINEAR) {
            hv__hf_linear_block(c, m, &m->blocks[i]);
        } else if (m->blocks[i].heads > 0 && low_rank) {
            hv__hf_low_rank_block(c, m, &m->blocks[i]);
        }
        hv__hf_compressed_window(c, (int)i, m, &m->blocks[i]);
    }
}

enum hv_status hv__hf_blocks(const struct hv__hf *c, struct hv_model *m)
{
    struct hv_block dense, moe;
    struct mixture_rule rule;
    int layers = 0;
    enum hv_status st;
    if ((st = hv__hf_need(c, HV__HF_LAYERS, HV_MAX_LAYERS, &layers)) ||
        (st = read_both(c, m, &dense, &moe)) || (st = read_rule(c, &rule))) {
        return st;
    }
    m->n_blocks = (size_t)layers;
    m->blocks = hv_arena_new(&m->arena, struct hv_block, m->n_blocks);
    for (int i = 0; i < layers; i++) {
        m->blocks[i] = make_block(c, &rule, i, &dense, &moe);
        if ((st = hv__block_check(&c->p, &m->blocks[i], c->err))) {
            return st;
        }
    }
    if ((st = read_window(c, m))) {
        return st;
    }
    settle_blocks(c, m);
    return HV_OK;
}
