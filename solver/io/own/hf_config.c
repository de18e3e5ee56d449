/*
 * Hugging Face config.json as it is: one table of the names that families give to the same figure,
 * one table of what a family means without saying it. Families whose layers hetviz has no cost for
 * are refused with the reason; what is approximated is said in the model's `source`.
 *
 * Facts about the families: their published configurations (transformers, Apache-2.0).
 */
#include "solver/base/units.h"
#include "solver/io/own/model_int.h"
#include <string.h>

#define MAX_NAMES 8

/* Figures and the names they go by; the first that is present and not null counts. */
enum figure {
    HIDDEN,
    LAYERS,
    HEADS,
    KV_HEADS,
    HEAD_DIM,
    FFN,
    VOCAB,
    MAX_SEQUENCE,
    EXPERTS,
    TOP_K,
    MOE_FFN,
    SHARED_EXPERTS,
    SHARED_FFN,
    FIRST_DENSE,
    MOE_EVERY,
    ACTIVATION,
    WINDOW,
    FIGURE_N
};
static const char *const names_of[FIGURE_N][MAX_NAMES] = {
    [HIDDEN] = {"hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "dim"},
    [LAYERS] = {"num_hidden_layers", "n_layer", "num_layers", "n_layers"},
    [HEADS] = {"num_attention_heads", "n_head", "n_heads", "num_heads"},
    [KV_HEADS] = {"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"},
    [HEAD_DIM] = {"head_dim", "kv_channels", "attention_head_dim"},
    [FFN] = {"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff", "hidden_dim"},
    [VOCAB] = {"vocab_size", "padded_vocab_size"},
    [MAX_SEQUENCE] = {"max_position_embeddings", "n_positions", "seq_length", "n_ctx",
                      "max_seq_len", "max_sequence_length"},
    [EXPERTS] = {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"},
    [TOP_K] = {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k",
               "moe_k", "top_k_experts"},
    [MOE_FFN] = {"moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size"},
    [SHARED_EXPERTS] = {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"},
    [SHARED_FFN] = {"shared_expert_intermediate_size", "shared_intermediate_size",
                    "moe_shared_expert_intermediate_size"},
    [FIRST_DENSE] = {"first_k_dense_replace", "moe_layer_start_index"},
    [MOE_EVERY] = {"moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step"},
    [ACTIVATION] = {"hidden_act", "activation_function", "hidden_activation", "activation"},
    [WINDOW] = {"sliding_window", "sliding_window_size"},
};

enum { NO, YES, ASK }; /* ASK: the config itself or its activation decides */

/* What a family means without saying it. */
struct family {
    const char *type; /* start of model_type; the first row that fits counts */
    const char *refuse;
    int gated;
    int norm, position; /* -1: the config decides */
    bool causal, tied, attention_bias, ffn_bias;
    const char *note;
};

#define NO_MAMBA    "it mixes attention with state-space (Mamba) layers, for which hetviz has no cost"
#define NO_LINEAR   "it mixes attention with linear attention, for which hetviz has no cost"
#define NO_ENCDEC   "it has an encoder and a decoder; describe them as a model of kind modules"
#define NO_RECUR    "its layers are recurrent, for which hetviz has no cost"
#define NO_COMPRESS "it compresses its attention in a way that hetviz has no cost for"
#define REFUSE(type, why)                                                                          \
    {                                                                                              \
        type, why, ASK, -1, -1, true, false, false, false, NULL                                    \
    }
/* clang-format off */
static const struct family families[] = {
    REFUSE("jamba", NO_MAMBA), REFUSE("mamba", NO_MAMBA), REFUSE("falcon_mamba", NO_MAMBA), REFUSE("falcon_h1", NO_MAMBA),
    REFUSE("nemotron_h", NO_MAMBA), REFUSE("zamba", NO_MAMBA), REFUSE("bamba", NO_MAMBA), REFUSE("granitemoehybrid", NO_MAMBA),
    REFUSE("qwen3_5", NO_LINEAR), REFUSE("qwen3_next", NO_LINEAR), REFUSE("kimi_linear", NO_LINEAR), REFUSE("minimax_text", NO_LINEAR),
    REFUSE("rwkv", NO_RECUR), REFUSE("recurrent_gemma", NO_RECUR), REFUSE("xlstm", NO_RECUR),
    REFUSE("deepseek_v4", NO_COMPRESS),
    REFUSE("whisper", NO_ENCDEC), REFUSE("t5", NO_ENCDEC), REFUSE("mt5", NO_ENCDEC), REFUSE("bart", NO_ENCDEC), REFUSE("m2m_100", NO_ENCDEC),
    /*                     gated norm               position              causal tied   bias: attention, ffn */
    {"gpt2",         NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  true,  true,  NULL},
    {"gpt_bigcode",  NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  true,  true,  NULL},
    {"gpt_neox",     NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, true,  true,  NULL},
    {"gpt_neo",      NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  false, true,  NULL},
    {"gptj",         NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, false, true,  NULL},
    {"codegen",      NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, false, true,  NULL},
    {"opt",          NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  true,  true,  NULL},
    {"bloom",        NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_ALIBI,   true,  true,  true,  true,  NULL},
    {"mpt",          NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_ALIBI,   true,  true,  false, false, NULL},
    {"falcon",       NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  true,  false, false, NULL},
    {"RefinedWeb",   NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  true,  false, false, NULL},
    {"starcoder2",   NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  true,  true,  true,  NULL},
    {"phi3",         NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, NULL},
    {"phi",          NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, true,  true,  NULL},
    {"stablelm",     NULL, YES, HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, false, false, NULL},
    {"cohere",       NULL, YES, HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  true,  false, false, NULL},
    {"gemma",        NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  true,  false, false, NULL},
    {"chatglm",      NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, true,  false, NULL},
    {"qwen3",        NULL, ASK, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, NULL},
    {"qwen2",        NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, true,  false, NULL},
    {"qwen",         NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, true,  false, NULL},
    {"gpt_oss",      NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, true,  true,  NULL},
    {"glm_moe_dsa",  NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, "sparse attention counted as full attention"},
    {"deepseek_v32", NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, "sparse attention counted as full attention"},
    {"mllama",       NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, "cross-attention counted as self-attention"},
    {"llama4",       NULL, YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, "chunked attention counted as full attention"},
    {"albert",       NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  "shared layers and the factored embedding counted as if they were not"},
    {"bert",         NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"roberta",      NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"xlm-roberta",  NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"distilbert",   NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"electra",      NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"clip_text",    NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  true,  true,  NULL},
    {"clip_vision",  NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"siglip",       NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"vit",          NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"deit",         NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"dinov2",       NULL, NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"",             NULL, ASK, -1,                -1,                  true,  false, false, false, NULL},
};
/* clang-format on */

/* A config being read: its own place, the place around it (text_config lies inside), its family. */
struct config {
    struct hv_jp p;
    const struct hv_jp *outer;
    const struct family *f;
    const char *type;
    struct hv_err *err;
};

/* The member that holds a figure; v NULL when none of its names is there. */
static struct hv_jp find(const struct config *c, enum figure f)
{
    struct hv_jp at = {0};
    for (int i = 0; i < MAX_NAMES && names_of[f][i]; i++) {
        at = hv_jp_get(&c->p, names_of[f][i]);
        if (!hv_jp_none(&at)) {
            return at;
        }
    }
    at.v = NULL;
    return at;
}

static enum hv_status opt(const struct config *c, enum figure f, int64_t lo, int64_t hi, int *io)
{
    struct hv_jp at = find(c, f);
    int64_t x = *io;
    enum hv_status st = at.v ? hv_jp_int(&at, lo, hi, &x, c->err) : HV_OK;
    *io = (int)x;
    return st;
}

static enum hv_status need(const struct config *c, enum figure f, int64_t hi, int *out)
{
    struct hv_jp at = find(c, f);
    if (!at.v) {
        return hv_jp_fail(&c->p, c->err, "missing key \"%s\" (or another name for it)",
                          names_of[f][0]);
    }
    return opt(c, f, 1, hi, out);
}

static bool flag(const struct config *c, const char *key, bool otherwise)
{
    struct hv_jp at = hv_jp_get(&c->p, key);
    if (hv_jp_none(&at) && c->outer) {
        at = hv_jp_get(c->outer, key);
    }
    return json_is_boolean(at.v) ? json_is_true(at.v) : otherwise;
}

static bool has(const struct config *c, const char *key)
{
    struct hv_jp at = hv_jp_get(&c->p, key);
    return !hv_jp_none(&at);
}

bool hv__hf_looks_like(const struct hv_jp *p)
{
    static const char *const signs[] = {"model_type", "architectures", "hidden_size",      "n_embd",
                                        "d_model",    "text_config",   "num_hidden_layers"};
    if (!json_is_object(p->v) || json_object_get(p->v, "format")) {
        return false;
    }
    for (size_t i = 0; i < HV_COUNT(signs); i++) {
        if (json_object_get(p->v, signs[i])) {
            return true;
        }
    }
    return false;
}

static const struct family *family_of(const char *type)
{
    const struct family *f = families;
    while (strncmp(type, f->type, strlen(f->type)) != 0) {
        f++;
    }
    return f;
}

static bool is_gated(const struct config *c, const char *activation)
{
    if (c->f->gated != ASK) {
        return c->f->gated == YES;
    }
    return strstr(activation, "glu") || strcmp(activation, "silu") == 0 ||
           strcmp(activation, "swish") == 0;
}

static enum hv_status read_activation(const struct config *c, enum hv_ffn_kind *out)
{
    struct hv_jp at = find(c, ACTIVATION);
    const char *s = has(c, "rms_norm_eps") ? "silu" : "gelu";
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

static void read_style(const struct config *c, struct hv_model *m)
{
    bool rms = has(c, "rms_norm_eps");
    bool rope = rms || has(c, "rope_theta") || has(c, "rope_scaling") ||
                has(c, "rope_parameters") || has(c, "rotary_dim");
    m->norm = c->f->norm >= 0 ? (enum hv_norm_kind)c->f->norm
              : rms           ? HV_NORM_RMSNORM
                              : HV_NORM_LAYERNORM;
    m->position = c->f->position >= 0 ? (enum hv_position_kind)c->f->position
                  : rope              ? HV_POSITION_ROPE
                                      : HV_POSITION_LEARNED;
    if (flag(c, "alibi", false)) {
        m->position = HV_POSITION_ALIBI;
    }
    m->causal = c->f->causal;
    m->tied_embeddings = flag(c, "tie_word_embeddings", c->f->tied);
}

static enum hv_status read_mla(const struct config *c, struct hv_block *b)
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

static enum hv_status read_heads(const struct config *c, const struct hv_model *m,
                                 struct hv_block *b)
{
    enum hv_status st = need(c, HEADS, HV_MAX_HEADS, &b->heads);
    if (st) {
        return st;
    }
    b->kv_heads = b->heads;
    bool multi_query = flag(c, "multi_query", false) && !flag(c, "new_decoder_architecture", false);
    if (multi_query) {
        b->kv_heads = 1;
    } else if ((st = opt(c, KV_HEADS, 1, HV_MAX_HEADS, &b->kv_heads))) {
        return st;
    }
    struct hv_jp rank = hv_jp_get(&c->p, "kv_lora_rank");
    if (!hv_jp_none(&rank)) {
        b->kv_heads = b->heads;
        return read_mla(c, b);
    }
    if (!find(c, HEAD_DIM).v) {
        if (m->hidden % b->heads != 0) {
            return hv_jp_fail(&c->p, c->err, "%d heads do not divide the hidden size %d", b->heads,
                              m->hidden);
        }
        b->head_dim = m->hidden / b->heads;
    }
    return opt(c, HEAD_DIM, 1, HV_MAX_WIDTH, &b->head_dim);
}

static enum hv_status read_dense(const struct config *c, const struct hv_model *m,
                                 struct hv_block *b)
{
    enum hv_status st = read_activation(c, &b->ffn_kind);
    if (st) {
        return st;
    }
    if (!find(c, FFN).v && hv_ffn_kind_matrices(b->ffn_kind) > 2 && !find(c, MOE_FFN).v) {
        return need(c, FFN, HV_MAX_WIDTH, &b->ffn);
    }
    b->ffn = 4 * m->hidden;
    st = opt(c, FFN, 1, HV_MAX_WIDTH, &b->ffn);
    if (strcmp(c->type, "qwen") == 0) {
        b->ffn /= 2; /* the first generation writes the width of both halves */
    }
    bool qkv = flag(c, "use_qkv_bias", flag(c, "qkv_bias", c->f->attention_bias));
    b->attention_bias = flag(c, "attention_bias", flag(c, "bias", qkv));
    b->ffn_bias = flag(c, "mlp_bias", flag(c, "bias", c->f->ffn_bias));
    return st;
}

/* Experts of one block, were it a mixture; experts 0 when the config has none. */
static enum hv_status read_experts(const struct config *c, struct hv_block *dense,
                                   struct hv_block *moe)
{
    enum hv_status st;
    *moe = *dense;
    moe->top_k = 1;
    moe->expert_ffn = dense->ffn;
    if ((st = opt(c, EXPERTS, 0, HV_MAX_EXPERTS, &moe->experts)) || moe->experts < 2) {
        moe->experts = 0;
        return st;
    }
    if ((st = opt(c, TOP_K, 1, HV_MAX_EXPERTS, &moe->top_k)) ||
        (st = opt(c, MOE_FFN, 1, HV_MAX_WIDTH, &moe->expert_ffn)) ||
        (st = opt(c, SHARED_EXPERTS, 0, HV_MAX_EXPERTS, &moe->shared_experts)) ||
        (st = opt(c, SHARED_FFN, 0, HV_MAX_WIDTH, &moe->shared_ffn))) {
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

static bool listed(const struct config *c, const char *key, int layer)
{
    json_t *list = json_object_get(c->p.v, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *x = json_array_get(list, i);
        if (json_is_integer(x) && json_integer_value(x) == layer) {
            return true;
        }
    }
    return false;
}

static const char *layer_type(const struct config *c, int layer)
{
    const char *s =
        json_string_value(json_array_get(json_object_get(c->p.v, "layer_types"), (size_t)layer));
    return s ? s : "";
}

/* Which layers have the window: named one by one, every one but each n-th, or all. */
static bool is_windowed(const struct config *c, int layer, int pattern)
{
    const char *type = layer_type(c, layer);
    if (*type) {
        return strcmp(type, "sliding_attention") == 0;
    }
    if (pattern > 1) {
        return (layer + 1) % pattern != 0;
    }
    return strncmp(c->type, "gemma2", 6) != 0 || layer % 2 == 0;
}

static enum hv_status read_window(const struct config *c, struct hv_model *m)
{
    int window = 0, pattern = 0, from = 0;
    enum hv_status st;
    if (!flag(c, "use_sliding_window", true)) {
        return HV_OK;
    }
    if ((st = opt(c, WINDOW, 0, HV_MAX_WIDTH, &window)) ||
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

static enum hv_status read_blocks(const struct config *c, struct hv_model *m)
{
    struct hv_block dense = {0}, moe = {0};
    int layers = 0, first = 0, every = 1;
    enum hv_status st;
    if ((st = need(c, LAYERS, HV_MAX_LAYERS, &layers)) || (st = read_heads(c, m, &dense)) ||
        (st = read_dense(c, m, &dense)) || (st = read_experts(c, &dense, &moe)) ||
        (st = opt(c, FIRST_DENSE, 0, HV_MAX_LAYERS, &first))) {
        return st;
    }
    struct hv_jp at_every = find(c, MOE_EVERY);
    if (json_is_integer(at_every.v) && (st = opt(c, MOE_EVERY, 1, HV_MAX_LAYERS, &every))) {
        return st;
    }
    /* DeepSeek counts its frequency from layer 0, the others name the last of each step */
    int phase = at_every.v && strcmp(at_every.key, "moe_layer_freq") == 0 ? 0 : every - 1;
    m->n_blocks = (size_t)layers;
    m->blocks = hv_arena_new(&m->arena, struct hv_block, m->n_blocks);
    for (int i = 0; i < layers; i++) {
        bool mixed =
            moe.experts && i >= first && i % every == phase && !listed(c, "mlp_only_layers", i);
        m->blocks[i] = mixed ? moe : dense;
        if (strstr(layer_type(c, i), "linear") || strstr(layer_type(c, i), "mamba")) {
            return hv_jp_fail(&c->p, c->err, "layer %d is a %s layer, for which hetviz has no cost",
                              i, layer_type(c, i));
        }
    }
    if ((st = hv__block_check(&c->p, &m->blocks[layers - 1], c->err))) {
        return st;
    }
    return read_window(c, m);
}

/* Images: the patches are the tokens, and the patch projection takes the place of the embedding. */
static enum hv_status read_image(const struct config *c, struct hv_model *m)
{
    int image = 224, patch = 16, channels = 3;
    enum hv_status st;
    if ((st = hv__read_int(&c->p, "image_size", 1, 65536, &image, c->err)) ||
        (st = hv__read_int(&c->p, "patch_size", 1, 4096, &patch, c->err)) ||
        (st = hv__read_int(&c->p, "num_channels", 1, 1024, &channels, c->err))) {
        return st;
    }
    int side = image / patch > 0 ? image / patch : 1;
    if ((int64_t)patch * patch * channels > HV_MAX_WIDTH || side > 8192) {
        return hv_jp_fail(&c->p, c->err, "an image of %d pixels in patches of %d is too large",
                          image, patch);
    }
    m->patch_tokens = side * side + 1;
    m->max_sequence = m->patch_tokens;
    m->vocab = patch * patch * channels;
    m->tied_embeddings = true;
    return HV_OK;
}

static enum hv_status read_config(const struct config *c, struct hv_model *m)
{
    enum hv_status st;
    if (c->f->refuse) {
        return hv_jp_fail(&c->p, c->err, "a model of type \"%s\" cannot be read: %s", c->type,
                          c->f->refuse);
    }
    if (flag(c, "is_encoder_decoder", false)) {
        return hv_jp_fail(&c->p, c->err, "a model of type \"%s\" cannot be read: %s", c->type,
                          NO_ENCDEC);
    }
    m->kind = HV_MODEL_TRANSFORMER;
    m->max_sequence = 2048;
    read_style(c, m);
    bool image = has(c, "patch_size") && !find(c, VOCAB).v;
    if ((st = need(c, HIDDEN, HV_MAX_WIDTH, &m->hidden)) ||
        (st = image ? read_image(c, m) : need(c, VOCAB, HV_MAX_WIDTH, &m->vocab)) ||
        (st = image ? HV_OK : opt(c, MAX_SEQUENCE, 1, HV_MAX_WIDTH, &m->max_sequence))) {
        return st;
    }
    return read_blocks(c, m);
}

static enum hv_status start(struct config *c, const struct hv_jp *p, const struct hv_jp *outer,
                            struct hv_model *m, struct hv_err *err)
{
    *c = (struct config){.p = *p, .outer = outer, .type = "", .err = err};
    enum hv_status st = hv_jp_opt_string(p, "model_type", &c->type, err);
    const char *inner = outer ? NULL : "text_config";
    struct hv_jp text = inner ? hv_jp_get(p, inner) : (struct hv_jp){0};
    c->f = family_of(c->type);
    const char *note = json_is_object(text.v) && has(c, "vision_config")
                           ? "language part only, the vision tower is left out"
                           : NULL;
    m->name = hv_arena_strdup(&m->arena, *c->type ? c->type : "model");
    m->source = hv_arena_printf(&m->arena, "Hugging Face config%s%s%s%s", c->f->note ? "; " : "",
                                c->f->note ? c->f->note : "", note ? "; " : "", note ? note : "");
    return st;
}

static enum hv_status read_part(const struct hv_jp *p, const struct hv_jp *outer,
                                struct hv_model *m, struct hv_err *err)
{
    struct config c;
    enum hv_status st = start(&c, p, outer, m, err);
    return st ? st : read_config(&c, m);
}

/* CLIP and its kin: two towers side by side. */
static enum hv_status read_towers(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    static const char *const keys[] = {"text_config", "vision_config"};
    static const char *const names[] = {"text", "vision"};
    m->kind = HV_MODEL_MODULES;
    m->source = "Hugging Face config; two towers side by side";
    m->modules = hv_arena_new(&m->arena, struct hv_module, HV_COUNT(keys));
    for (size_t i = 0; i < HV_COUNT(keys); i++) {
        struct hv_jp at = hv_jp_get(p, keys[i]);
        struct hv_module *x = &m->modules[m->n_modules++];
        x->name = names[i];
        x->model = hv_xcalloc(1, sizeof *x->model);
        x->model->refs = 1;
        enum hv_status st = read_part(&at, p, x->model, err);
        if (st) {
            return st;
        }
        hv_model_finish(x->model);
        m->n_blocks += x->model->n_blocks;
        m->max_sequence =
            x->model->max_sequence > m->max_sequence ? x->model->max_sequence : m->max_sequence;
    }
    return HV_OK;
}

enum hv_status hv__hf_read(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    struct config c;
    enum hv_status st = start(&c, p, NULL, m, err);
    if (st) {
        return st;
    }
    struct hv_jp text = hv_jp_get(p, "text_config"), vision = hv_jp_get(p, "vision_config");
    bool towers = strcmp(c.type, "clip") == 0 || strcmp(c.type, "siglip") == 0;
    if (towers && json_is_object(text.v) && json_is_object(vision.v)) {
        return read_towers(p, m, err);
    }
    if (json_is_object(text.v) && !c.f->refuse) {
        c.p = text;
        c.outer = p;
    }
    return read_config(&c, m);
}
