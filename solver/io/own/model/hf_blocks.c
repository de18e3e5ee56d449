/* The blocks of a Hugging Face config: attention, feed-forward, experts, windows. */
#include "solver/io/own/model/hf_int.h"
#include <string.h>

/* Gated or not: the family decides, else the config's own flags, else the activation. */
static bool is_gated(const struct hv__hf *c, const char *activation)
{
    struct hv__value ruled = hv__hf_rule(c, "gated");
    if (ruled.kind != HV__MISSING) {
        return hv__value_true(ruled);
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
        enum hv__hf_figure figure;
        int *to;
    } rows[] = {{HV__HF_Q_RANK, &b->mla.q_rank},
                {HV__HF_KV_RANK, &b->mla.kv_rank},
                {HV__HF_ROPE_DIM, &b->mla.rope_dim},
                {HV__HF_NOPE_DIM, &b->mla.nope_dim},
                {HV__HF_VALUE_DIM, &b->mla.value_dim}};
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(rows); i++) {
        st = hv__hf_opt(c, rows[i].figure, 0, HV_MAX_WIDTH, rows[i].to);
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
    if (hv__hf_given(c, HV__HF_KV_RANK)) {
        b->kv_heads = b->heads;
        return read_mla(c, b);
    }
    if (!hv__hf_given(c, HV__HF_HEAD_DIM)) {
        b->head_dim = m->hidden / b->heads;
        if (m->hidden % b->heads != 0) {
            return hv_jp_fail(&c->p, c->err, "%d heads do not divide the hidden size %d", b->heads,
                              m->hidden);
        }
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
    if (!hv__hf_given(c, HV__HF_FFN) && hv_ffn_kind_matrices(b->ffn_kind) > 2 &&
        !hv__hf_given(c, HV__HF_MOE_FFN)) {
        return hv__hf_need(c, HV__HF_FFN, HV_MAX_WIDTH, &b->ffn);
    }
    b->ffn = 4 * m->hidden;
    st = hv__hf_opt(c, HV__HF_FFN, 1, HV_MAX_WIDTH, &b->ffn);
    bool qkv = hv__hf_flag(c, "use_qkv_bias", hv__hf_flag(c, "qkv_bias", false));
    b->attention_bias = hv__hf_rule_flag(
        c, "attention_bias", hv__hf_flag(c, "attention_bias", hv__hf_flag(c, "bias", qkv)));
    b->ffn_bias =
        hv__hf_rule_flag(c, "ffn_bias", hv__hf_flag(c, "mlp_bias", hv__hf_flag(c, "bias", false)));
    return st;
}

/* Experts of one block, were it a mixture; experts 0 when the config has none. */
static enum hv_status read_experts(const struct hv__hf *c, const struct hv_block *dense,
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
    if (moe->shared_experts && moe->shared_ffn == 0) {
        moe->shared_ffn = moe->expert_ffn;
    }
    return st;
}

/* Which layers have the window: by the family, named one by one, every one but each n-th, or all.
 */
static bool is_windowed(const struct hv__hf *c, int layer, int pattern)
{
    struct hv__hf at = *c;
    at.layer = layer;
    struct hv__value ruled = hv__hf_rule(&at, "windowed");
    if (ruled.kind != HV__MISSING) {
        return hv__value_true(ruled);
    }
    const char *type = hv__hf_layer_type(c, layer);
    if (*type) {
        return strstr(type, "sliding") != NULL;
    }
    if (pattern > 1) {
        return (layer + 1) % pattern != 0;
    }
    return true;
}

static enum hv_status read_window(const struct hv__hf *c, struct hv_model *m)
{
    int window = 0, from = 0;
    if (!hv__hf_flag(c, "use_sliding_window", true)) {
        return HV_OK;
    }
    enum hv_status st = hv__hf_opt(c, HV__HF_WINDOW, 0, HV_MAX_WIDTH, &window);
    if (st != HV_OK) {
        return st;
    }
    int pattern =
        hv__hf_int(c, "sliding_window_pattern", hv__hf_int(c, "_sliding_window_pattern", 0));
    if (hv__hf_rule_flag(c, "window_from_layer", false)) {
        from = hv__hf_int(c, "max_window_layers", 0);
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
static enum hv_status read_both(struct hv__hf *c, struct hv_model *m, struct hv_block *dense,
                                struct hv_block *moe)
{
    struct hv__hf_layer first = hv__hf_layer_of(c, 0);
    bool bare = first.mixer == HV__HF_LINEAR &&
                (hv__hf_rule_flag(c, "bare", false) || !hv__hf_given(c, HV__HF_HEADS));
    *dense = *moe = (struct hv_block){.kv_heads = 1, .head_dim = 1, .ffn_kind = HV_FFN_GELU};
    if (bare && first.ffn == HV__HF_NO_FFN) {
        return HV_OK;
    }
    enum hv_status st = bare ? HV_OK : read_heads(c, m, dense);
    st = st ? st : read_dense(c, m, dense);
    c->b = dense;
    st = st ? st : read_experts(c, dense, moe);
    c->b = NULL;
    return st;
}

/* True where the layer is a mixture of experts. */
static bool is_mixture(const struct hv__hf *c, const struct mixture_rule *r, struct hv__hf_layer l)
{
    int i = c->layer;
    return l.ffn == HV__HF_MIXTURE ||
           (l.ffn == HV__HF_ANY_FFN && i >= r->first && i % r->every == r->phase &&
            !hv__hf_listed(c, "mlp_only_layers", i));
}

/* Figures that the family gives for each layer. */
static enum hv_status vary(const struct hv__hf *c, struct hv_block *b)
{
    const struct {
        const char *rule;
        enum hv__hf_figure figure;
        bool there;
        int *to;
    } rows[] = {{"heads", HV__HF_HEADS, b->heads > 0, &b->heads},
                {"kv_heads", HV__HF_KV_HEADS, b->heads > 0, &b->kv_heads},
                {"head_dim", HV__HF_HEAD_DIM, b->heads > 0, &b->head_dim},
                {"ffn", HV__HF_FFN, b->ffn > 0, &b->ffn},
                {"top_k", HV__HF_TOP_K, b->experts > 0, &b->top_k},
                {"experts", HV__HF_EXPERTS, b->experts > 0, &b->experts},
                {"moe_ffn", HV__HF_MOE_FFN, b->experts > 0, &b->expert_ffn}};
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < HV_COUNT(rows) && st == HV_OK; i++) {
        if (rows[i].there && hv__hf_rule_varies(c, rows[i].rule)) {
            st = hv__hf_opt(c, rows[i].figure, 1, HV_MAX_WIDTH, rows[i].to);
        }
    }
    return st;
}

static enum hv_status make_block(struct hv__hf *c, const struct mixture_rule *r,
                                 const struct hv_block *dense, const struct hv_block *moe,
                                 struct hv_block *b)
{
    struct hv__hf_layer l = hv__hf_layer_of(c, c->layer);
    bool mixed = moe->experts > 0 && is_mixture(c, r, l);
    *b = mixed ? *moe : *dense;
    if (mixed && hv__hf_rule_flag(c, "dense_too", false)) {
        b->ffn = dense->ffn;
    }
    if (l.ffn == HV__HF_NO_FFN) {
        b->ffn = b->experts = b->top_k = b->expert_ffn = b->shared_experts = b->shared_ffn = 0;
    }
    b->heads = l.mixer == HV__HF_NO_MIXER ? 0 : b->heads;
    c->b = b;
    enum hv_status st = vary(c, b);
    return st ? st : hv__block_check(&c->p, b, c->err);
}

/* The weights of a layer beside its usual matrices; those of a layer that repeats an earlier one
 * are taken off. */
static void add_extras(const struct hv__hf *c, enum hv__hf_mixer mixer, struct hv_block *b)
{
    bool any, shared = hv__hf_rule_flag(c, "shared", false);
    double attention = 0, ffn = 0, layer = hv__hf_extra(c, HV__HF_AT_LAYER, &any);
    if (shared && mixer != HV__HF_LINEAR) {
        attention = b->heads > 0 ? -hv_block_attention_parameters(c->m, b) : 0;
        ffn = -hv_block_ffn_parameters(c->m, b) - hv_block_expert_parameters(c->m, b);
    } else {
        attention += mixer == HV__HF_ATTENTION || mixer == HV__HF_BOTH
                         ? hv__hf_extra(c, HV__HF_AT_ATTENTION, &any)
                         : 0;
        ffn += b->ffn > 0 ? hv__hf_extra(c, HV__HF_AT_DENSE, &any) : 0;
        ffn += b->experts > 0 ? hv__hf_extra(c, HV__HF_AT_MIXTURE, &any) : 0;
    }
    attention += mixer == HV__HF_BOTH ? hv__hf_linear_weights(c) : 0;
    if (mixer == HV__HF_LINEAR) {
        hv__hf_linear_block(c, hv__hf_linear_weights(c), b);
    }
    b->attention_extra += attention + (b->heads > 0 ? layer : 0);
    b->ffn_extra += ffn + (b->heads > 0 ? 0 : layer);
}

/* Sets what depends on the windows, and replaces layers that are modelled by another kind of
 * block. */
static void settle_blocks(struct hv__hf *c, struct hv_model *m)
{
    bool low_rank = hv__hf_is_low_rank(c);
    for (size_t i = 0; i < m->n_blocks; i++) {
        struct hv_block *b = &m->blocks[i];
        c->layer = (int)i;
        c->b = b;
        enum hv__hf_mixer mixer = hv__hf_layer_of(c, (int)i).mixer;
        if (b->heads > 0 && mixer == HV__HF_ATTENTION && low_rank) {
            hv__hf_low_rank_block(c, m, b);
        }
        add_extras(c, mixer, b);
        hv__hf_compressed_window(c, (int)i, m, b);
    }
    c->b = NULL;
    c->layer = 0;
}

enum hv_status hv__hf_blocks(struct hv__hf *c, struct hv_model *m)
{
    struct hv_block dense, moe;
    struct mixture_rule rule;
    int layers = 0;
    bool any;
    enum hv_status st;
    if ((st = hv__hf_need(c, HV__HF_LAYERS, HV_MAX_LAYERS, &layers)) ||
        (st = read_both(c, m, &dense, &moe)) || (st = read_rule(c, &rule))) {
        return st;
    }
    m->n_blocks = (size_t)layers;
    m->blocks = hv_arena_new(&m->arena, struct hv_block, m->n_blocks);
    for (int i = 0; i < layers && st == HV_OK; i++) {
        c->layer = i;
        st = make_block(c, &rule, &dense, &moe, &m->blocks[i]);
    }
    c->b = NULL;
    c->layer = 0;
    st = st ? st : read_window(c, m);
    if (st == HV_OK) {
        settle_blocks(c, m);
        m->embedding_extra += hv__hf_extra(c, HV__HF_AT_EMBEDDING, &any);
        m->head_extra += hv__hf_extra(c, HV__HF_AT_HEAD, &any);
    }
    return st;
}
