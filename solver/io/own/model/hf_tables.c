/*
 * Hugging Face configs: one table of the names that families give to the same figure, one table of
 * the defaults of each family, and the look-up of members. Figures are interpreted in the other hf_
 * files.
 *
 * Facts about the families: their published configurations (transformers, Apache-2.0).
 */
#include "solver/io/own/model/hf_int.h"
#include <string.h>

static const char *const names_of[HV__HF_FIGURE_N][HV__HF_NAMES] = {
    [HV__HF_HIDDEN] = {"hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "dim"},
    [HV__HF_LAYERS] = {"num_hidden_layers", "n_layer", "num_layers", "n_layers"},
    [HV__HF_HEADS] = {"num_attention_heads", "n_head", "n_heads", "num_heads"},
    [HV__HF_KV_HEADS] = {"num_key_value_heads", "num_kv_heads", "n_head_kv",
                         "multi_query_group_num"},
    [HV__HF_HEAD_DIM] = {"head_dim", "kv_channels", "attention_head_dim"},
    [HV__HF_FFN] = {"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff",
                    "hidden_dim"},
    [HV__HF_VOCAB] = {"vocab_size", "padded_vocab_size"},
    [HV__HF_MAX_SEQUENCE] = {"max_position_embeddings", "n_positions", "seq_length", "n_ctx",
                             "max_seq_len", "max_sequence_length"},
    [HV__HF_EXPERTS] = {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"},
    [HV__HF_TOP_K] = {"num_experts_per_tok", "num_experts_per_token", "experts_per_token",
                      "moe_top_k", "moe_k", "top_k_experts"},
    [HV__HF_MOE_FFN] = {"moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size"},
    [HV__HF_SHARED_EXPERTS] = {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"},
    [HV__HF_SHARED_FFN] = {"shared_expert_intermediate_size", "shared_intermediate_size",
                           "moe_shared_expert_intermediate_size"},
    [HV__HF_FIRST_DENSE] = {"first_k_dense_replace", "moe_layer_start_index"},
    [HV__HF_MOE_EVERY] = {"moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step"},
    [HV__HF_ACTIVATION] = {"hidden_act", "activation_function", "hidden_activation",
                           "mlp_hidden_act", "activation"},
    [HV__HF_WINDOW] = {"sliding_window", "sliding_window_size"},
};

#define NO_RECUR "its layers are recurrent, for which hetviz has no cost"
#define NO_BOTH                                                                                    \
    "its layers run attention and state space side by side, for which hetviz has no cost"
#define LINEAR "state-space and linear-attention layers counted as attention over a chunk"
#define HALVES "encoder and decoder as two modules"
#define REFUSE(type, why)                                                                          \
    {                                                                                              \
        type, why, HV__ASK, -1, -1, true, false, false, false, NULL                                \
    }
/* clang-format off */
static const struct hv__hf_family families[] = {
    REFUSE("rwkv", NO_RECUR), REFUSE("xlstm", NO_RECUR), REFUSE("falcon_h1", NO_BOTH), REFUSE("zamba", NO_BOTH),
    /*                     gated norm               position              causal tied   bias: attention, ffn */
    {"jamba",        NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_NONE,    true,  false, false, false, LINEAR},
    {"falcon_mamba", NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_NONE,    true,  true,  false, false, LINEAR},
    {"mamba",        NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_NONE,    true,  true,  false, false, LINEAR},
    {"nemotron_h",   NULL, HV__NO,  HV_NORM_RMSNORM,   HV_POSITION_NONE,    true,  false, false, false, LINEAR},
    {"bamba",        NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, LINEAR},
    {"granitemoehybrid", NULL, HV__YES, HV_NORM_RMSNORM, HV_POSITION_NONE,  true,  false, false, false, LINEAR},
    {"recurrent_gemma", NULL, HV__YES, HV_NORM_RMSNORM, HV_POSITION_ROPE,   true,  true,  false, false, LINEAR},
    {"qwen3_5",      NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, LINEAR},
    {"qwen3_next",   NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, LINEAR},
    {"kimi_linear",  NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_NONE,    true,  false, false, false, LINEAR},
    {"minimax_text", NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, LINEAR},
    {"deepseek_v4",  NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, "compressed attention counted as attention over the tokens that it reads"},
    {"whisper",      NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  HALVES},
    {"t5",           NULL, HV__ASK, HV_NORM_RMSNORM,   HV_POSITION_NONE,    false, true,  false, false, HALVES},
    {"mt5",          NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_NONE,    false, false, false, false, HALVES},
    {"gpt2",         NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  true,  true,  NULL},
    {"gpt_bigcode",  NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  true,  true,  NULL},
    {"gpt_neox",     NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, true,  true,  NULL},
    {"gpt_neo",      NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  false, true,  NULL},
    {"gptj",         NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, false, true,  NULL},
    {"codegen",      NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, false, true,  NULL},
    {"opt",          NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  true,  true,  NULL},
    {"bloom",        NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_ALIBI,   true,  true,  true,  true,  NULL},
    {"mpt",          NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_ALIBI,   true,  true,  false, false, NULL},
    {"falcon",       NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  true,  false, false, NULL},
    {"RefinedWeb",   NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  true,  false, false, NULL},
    {"starcoder2",   NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  true,  true,  true,  NULL},
    {"phi3",         NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, NULL},
    {"phi",          NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, true,  true,  NULL},
    {"stablelm",     NULL, HV__YES, HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  false, false, false, NULL},
    {"cohere",       NULL, HV__YES, HV_NORM_LAYERNORM, HV_POSITION_ROPE,    true,  true,  false, false, NULL},
    {"gemma",        NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  true,  false, false, NULL},
    {"chatglm",      NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, true,  false, NULL},
    {"qwen3",        NULL, HV__ASK, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, NULL},
    {"qwen2",        NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, true,  false, NULL},
    {"qwen",         NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, true,  false, NULL},
    {"gpt_oss",      NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, true,  true,  NULL},
    {"glm_moe_dsa",  NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, "sparse attention counted as full attention"},
    {"deepseek_v32", NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, "sparse attention counted as full attention"},
    {"mllama",       NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, "cross-attention counted as self-attention"},
    {"llama4",       NULL, HV__YES, HV_NORM_RMSNORM,   HV_POSITION_ROPE,    true,  false, false, false, "chunked attention counted as full attention"},
    {"albert",       NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  "shared layers counted as separate ones, the factored embedding as a full one"},
    {"bert",         NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"roberta",      NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"xlm-roberta",  NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"distilbert",   NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"electra",      NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"clip_text",    NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, true,  true,  true,  true,  NULL},
    {"clip_vision",  NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"siglip",       NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"vit",          NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"deit",         NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"dinov2",       NULL, HV__NO,  HV_NORM_LAYERNORM, HV_POSITION_LEARNED, false, true,  true,  true,  NULL},
    {"",             NULL, HV__ASK, -1,                -1,                  true,  false, false, false, NULL},
};
/* clang-format on */

const char *const *hv__hf_names(enum hv__hf_figure f)
{
    return names_of[f];
}

/* The member that holds a figure; v NULL when none of its names is there. */
struct hv_jp hv__hf_find(const struct hv__hf *c, enum hv__hf_figure f)
{
    struct hv_jp at = {0};
    for (int i = 0; i < HV__HF_NAMES && names_of[f][i]; i++) {
        at = hv_jp_get(&c->p, names_of[f][i]);
        if (!hv_jp_none(&at)) {
            return at;
        }
    }
    at.v = NULL;
    return at;
}

enum hv_status hv__hf_opt(const struct hv__hf *c, enum hv__hf_figure f, int64_t lo, int64_t hi,
                          int *io)
{
    struct hv_jp at = hv__hf_find(c, f);
    int64_t x = *io;
    enum hv_status st = at.v ? hv_jp_int(&at, lo, hi, &x, c->err) : HV_OK;
    *io = (int)x;
    return st;
}

enum hv_status hv__hf_need(const struct hv__hf *c, enum hv__hf_figure f, int64_t hi, int *out)
{
    struct hv_jp at = hv__hf_find(c, f);
    if (!at.v) {
        return hv_jp_fail(&c->p, c->err, "missing key \"%s\" (or another name for it)",
                          names_of[f][0]);
    }
    return hv__hf_opt(c, f, 1, hi, out);
}

bool hv__hf_flag(const struct hv__hf *c, const char *key, bool otherwise)
{
    struct hv_jp at = hv_jp_get(&c->p, key);
    if (hv_jp_none(&at) && c->outer) {
        at = hv_jp_get(c->outer, key);
    }
    return json_is_boolean(at.v) ? json_is_true(at.v) : otherwise;
}

bool hv__hf_has(const struct hv__hf *c, const char *key)
{
    struct hv_jp at = hv_jp_get(&c->p, key);
    return !hv_jp_none(&at);
}

bool hv__hf_listed(const struct hv__hf *c, const char *key, int layer)
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

const char *hv__hf_layer_type(const struct hv__hf *c, int layer)
{
    const char *s =
        json_string_value(json_array_get(json_object_get(c->p.v, "layer_types"), (size_t)layer));
    return s ? s : "";
}

const struct hv__hf_family *hv__hf_family_of(const char *type)
{
    const struct hv__hf_family *f = families;
    while (strncmp(type, f->type, strlen(f->type)) != 0) {
        f++;
    }
    return f;
}
