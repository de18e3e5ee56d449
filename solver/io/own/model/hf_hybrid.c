/*
 * Configs whose layers are not all attention and feed-forward, and configs of encoder-decoder
 * models.
 *
 * State-space and linear-attention layers become attention over a short window with as many
 * parameters: their chunked forms (Mamba-2, arXiv 2405.21060, section 6) have the cost of attention
 * inside a chunk. The model's `source` states this approximation. Encoder and decoder become two
 * modules; a decoder's layer is two blocks: self-attention alone, then cross-attention with the
 * feed-forward.
 */
#include "solver/base/units.h"
#include "solver/io/own/model/hf_int.h"
#include <math.h>
#include <string.h>

#define CHUNK    128 /* tokens that a linear layer works on at once, where the config does not say */
#define MAX_SIDE 1000000

static int int_of(const struct hv__hf *c, const char *key, int otherwise)
{
    struct hv_jp at = hv_jp_get(&c->p, key);
    double x = json_is_number(at.v) ? json_number_value(at.v) : otherwise;
    return x >= 0 && x <= MAX_SIDE ? (int)x : otherwise;
}

static const char *word_at(const struct hv__hf *c, const char *key, int layer)
{
    json_t *list = json_object_get(c->p.v, key);
    size_t n = json_array_size(list);
    const char *s = n > 0 ? json_string_value(json_array_get(list, (size_t)layer % n)) : NULL;
    return s ? s : "";
}

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strstr(word, words[i])) {
            return true;
        }
    }
    return false;
}

/* Lists of the kinds of layers, under the names that configs use. */
static const char *kind_word(const struct hv__hf *c, int layer)
{
    static const char *const lists[] = {"layer_types", "layers_block_type", "block_types",
                                        "_block_types"};
    const char *s = "";
    for (size_t i = 0; i < HV_COUNT(lists) && !*s; i++) {
        s = word_at(c, lists[i], layer);
    }
    return s;
}

/* One letter of hybrid_override_pattern: M state space, * attention, - feed-forward, E experts. */
static bool by_pattern(const struct hv__hf *c, int layer, struct hv__hf_layer *out)
{
    const char *p = json_string_value(json_object_get(c->p.v, "hybrid_override_pattern"));
    size_t n = p ? strlen(p) : 0;
    if (n == 0) {
        return false;
    }
    char x = (size_t)layer < n ? p[layer] : 'M';
    out->mixer = x == '*' ? HV__HF_ATTENTION : x == 'M' ? HV__HF_LINEAR : HV__HF_NO_MIXER;
    out->ffn = x == '-' ? HV__HF_DENSE : x == 'E' ? HV__HF_MIXTURE : HV__HF_NO_FFN;
    return true;
}

static bool by_period(const struct hv__hf *c, int layer, struct hv__hf_layer *out)
{
    int period = int_of(c, "attn_layer_period", 0), experts = int_of(c, "expert_layer_period", 0);
    if (period > 0) {
        bool attention = layer % period == int_of(c, "attn_layer_offset", 0) % period;
        out->mixer = attention ? HV__HF_ATTENTION : HV__HF_LINEAR;
    }
    if (experts > 0) {
        bool mixture = layer % experts == int_of(c, "expert_layer_offset", 0) % experts;
        out->ffn = mixture ? HV__HF_MIXTURE : HV__HF_DENSE;
    }
    return period > 0;
}

/* Lists of layer numbers, and every n-th layer. */
static bool by_number(const struct hv__hf *c, int layer, struct hv__hf_layer *out)
{
    int every = int_of(c, "full_attention_interval", 0);
    json_t *kinds = json_object_get(c->p.v, "attn_type_list");
    if (json_is_array(json_object_get(c->p.v, "attn_layer_indices"))) {
        out->mixer =
            hv__hf_listed(c, "attn_layer_indices", layer) ? HV__HF_ATTENTION : HV__HF_LINEAR;
        return true;
    }
    if (json_is_array(kinds)) {
        json_t *x = json_array_get(kinds, (size_t)layer);
        out->mixer = json_integer_value(x) == 0 ? HV__HF_LINEAR : HV__HF_ATTENTION;
        return true;
    }
    struct hv__hf inner = *c;
    inner.p = hv_jp_get(&c->p, "linear_attn_config");
    if (json_is_object(inner.p.v)) { /* counts from 1 */
        bool full = hv__hf_listed(&inner, "full_attn_layers", layer + 1);
        out->mixer = full ? HV__HF_ATTENTION : HV__HF_LINEAR;
        return true;
    }
    if (every > 1) {
        out->mixer = (layer + 1) % every == 0 ? HV__HF_ATTENTION : HV__HF_LINEAR;
    }
    return every > 1;
}

/* Lists of the layers whose feed-forward is a mixture of experts: words, ones and zeros, or the
 * numbers of those that are. */
static void mixture_by_list(const struct hv__hf *c, int layer, struct hv__hf_layer *out)
{
    static const char *const sparse[] = {"sparse", "moe"};
    const char *word = word_at(c, "mlp_layer_types", layer);
    json_t *flags = json_object_get(c->p.v, "moe_layer_freq");
    if (*word) {
        out->ffn = is_one_of(word, sparse, HV_COUNT(sparse)) ? HV__HF_MIXTURE : HV__HF_DENSE;
    } else if ((size_t)layer < json_array_size(flags)) {
        json_t *x = json_array_get(flags, (size_t)layer);
        out->ffn = json_is_true(x) || json_number_value(x) > 0 ? HV__HF_MIXTURE : HV__HF_DENSE;
    } else if (json_array_size(json_object_get(c->p.v, "moe_layers")) > 0) {
        out->ffn = hv__hf_listed(c, "moe_layers", layer) ? HV__HF_MIXTURE : HV__HF_DENSE;
    }
}

static struct hv__hf_layer kind_of_layer(const struct hv__hf *c, int layer)
{
    static const char *const linear[] = {"linear", "mamba", "recurrent", "ssm", "conv", "kda"};
    struct hv__hf_layer out = {HV__HF_ATTENTION, HV__HF_ANY_FFN};
    const char *word = kind_word(c, layer);
    if (strncmp(c->type, "mamba", 5) == 0 || strcmp(c->type, "falcon_mamba") == 0) {
        return (struct hv__hf_layer){HV__HF_LINEAR, HV__HF_NO_FFN};
    }
    if (by_pattern(c, layer, &out) || by_period(c, layer, &out)) {
        return out;
    }
    if (*word && !strstr(word, "hybrid")) {
        bool pattern = strncmp(c->type, "nemotron_h", 10) == 0;
        out.mixer = is_one_of(word, linear, HV_COUNT(linear)) ? HV__HF_LINEAR : HV__HF_ATTENTION;
        if (pattern) {
            out.ffn = HV__HF_NO_FFN;
        }
        if (strcmp(word, "moe") == 0 || strcmp(word, "mlp") == 0) {
            out.mixer = HV__HF_NO_MIXER;
            out.ffn = *word == 'm' && word[1] == 'o' ? HV__HF_MIXTURE : HV__HF_DENSE;
        }
        return out;
    }
    (void)by_number(c, layer, &out);
    return out;
}

struct hv__hf_layer hv__hf_layer_of(const struct hv__hf *c, int layer)
{
    struct hv__hf_layer out = kind_of_layer(c, layer);
    if (out.ffn == HV__HF_ANY_FFN) {
        mixture_by_list(c, layer, &out);
    }
    return out;
}

/* Weights of one linear layer. */
static double linear_parameters(const struct hv__hf *c, const struct hv_model *m)
{
    double h = m->hidden, heads = int_of(c, "mamba_num_heads", int_of(c, "mamba_n_heads", 0));
    double v_heads = int_of(c, "linear_num_value_heads", 0);
    if (v_heads > 0) { /* gated delta rule: q, k, v, gate, two scalars per head; output */
        double k =
            (double)int_of(c, "linear_num_key_heads", 0) * int_of(c, "linear_key_head_dim", 128);
        double v = v_heads * int_of(c, "linear_value_head_dim", 128);
        return h * (2 * k + 2 * v + 2 * v_heads) + v * h;
    }
    double state =
        int_of(c, "ssm_state_size", int_of(c, "mamba_d_state", int_of(c, "state_size", 0)));
    double expand = int_of(c, "mamba_expand", int_of(c, "expand", 2));
    double inner = expand * h,
           rank = int_of(c, "mamba_dt_rank", int_of(c, "time_step_rank", (int)h / 16));
    if (heads > 0) { /* Mamba-2 */
        double dim = int_of(c, "mamba_head_dim", int_of(c, "mamba_d_head", 0));
        inner = dim > 0 ? heads * dim : inner;
        double groups = int_of(c, "n_groups", int_of(c, "mamba_n_groups", 1));
        return h * (2 * inner + 2 * groups * state + heads) + inner * h;
    }
    if (state > 0) { /* Mamba */
        return 3 * h * inner + inner * (2 * rank + 2 * state);
    }
    return 4 * h * h;
}

void hv__hf_linear_block(const struct hv__hf *c, const struct hv_model *m, struct hv_block *b)
{
    int dim = m->hidden >= 1024 ? 128 : 16;
    double heads = round(linear_parameters(c, m) / (4.0 * m->hidden * dim));
    b->heads = b->kv_heads = (int)fmin(fmax(heads, 1), HV_MAX_HEADS);
    b->head_dim = dim;
    b->mla = (struct hv_mla){0};
    b->window = int_of(c, "chunk_size", int_of(c, "mamba_chunk_size", CHUNK));
    b->attention_bias = false;
}

bool hv__hf_is_low_rank(const struct hv__hf *c)
{
    return hv__hf_has(c, "q_lora_rank") && hv__hf_has(c, "o_lora_rank");
}

void hv__hf_low_rank_block(const struct hv__hf *c, const struct hv_model *m, struct hv_block *b)
{
    /* queries and outputs through a low rank: as many full heads as have the same weights */
    double h = m->hidden, q = int_of(c, "q_lora_rank", 0), o = int_of(c, "o_lora_rank", 0);
    double width = (double)b->heads * b->head_dim, kv = (double)b->kv_heads * b->head_dim;
    double weights = h * q + q * width + 2 * h * kv + width * o + o * int_of(c, "o_groups", 1) * h;
    double heads = round((weights - 2 * h * kv) / (2 * h * b->head_dim));
    b->heads = (int)fmin(fmax(heads, 1), b->heads);
    b->heads -= b->heads % b->kv_heads;
    b->heads = b->heads > 0 ? b->heads : b->kv_heads;
}

void hv__hf_compressed_window(const struct hv__hf *c, int layer, const struct hv_model *m,
                              struct hv_block *b)
{
    json_t *ratio = json_array_get(json_object_get(c->p.v, "compress_ratios"), (size_t)layer);
    if (!json_is_integer(ratio)) {
        return;
    }
    double r = (double)json_integer_value(ratio), top = int_of(c, "index_topk", 0);
    double window = int_of(c, "sliding_window", 0);
    if (r > 0) { /* compressed keys are read completely, or only the selected ones */
        double read = m->max_sequence / r;
        window += top > 0 ? fmin(top, read) : read;
    }
    b->window = window > 0 && window < m->max_sequence ? (int)window : 0;
}

/* ---- encoder and decoder ----------------------------------------------------------------------
 */

struct half {
    const char *name, *layers[3], *heads[3], *ffn[3], *length[3];
    int blocks_per_layer;
};

static int first_int(const struct hv__hf *c, const char *const keys[3], int otherwise)
{
    for (int i = 0; i < 3 && keys[i]; i++) {
        if (hv__hf_has(c, keys[i])) {
            return int_of(c, keys[i], otherwise);
        }
    }
    return otherwise;
}

static enum hv_status read_half(const struct hv__hf *c, const struct half *h, struct hv_model *m)
{
    static const char *const dims[3] = {"d_kv", "head_dim"};
    int layers = first_int(c, h->layers, 0), heads = first_int(c, h->heads, 0);
    enum hv_status st;
    if ((st = hv__hf_need(c, HV__HF_HIDDEN, HV_MAX_WIDTH, &m->hidden))) {
        return st;
    }
    if (layers < 1 || layers > HV_MAX_LAYERS / 2 || heads < 1) {
        return hv_jp_fail(&c->p, c->err,
                          "the %s has no number of layers (\"%s\") or heads (\"%s\")", h->name,
                          h->layers[0], h->heads[0]);
    }
    struct hv_block b = {.heads = heads, .kv_heads = heads, .ffn_kind = HV_FFN_GELU};
    const char *act = json_string_value(json_object_get(c->p.v, "feed_forward_proj"));
    b.ffn_kind = act && strncmp(act, "gated", 5) == 0 ? HV_FFN_GEGLU
                 : act                                ? HV_FFN_RELU
                                                      : HV_FFN_GELU;
    b.head_dim = first_int(c, dims, m->hidden / heads > 0 ? m->hidden / heads : 1);
    b.ffn = first_int(c, h->ffn, 4 * m->hidden);
    b.attention_bias = b.ffn_bias = !act;
    m->norm = act ? HV_NORM_RMSNORM : HV_NORM_LAYERNORM;
    m->position = act ? HV_POSITION_NONE : HV_POSITION_LEARNED;
    m->max_sequence = first_int(c, h->length, 512);
    m->max_sequence = m->max_sequence > 0 ? m->max_sequence : 512;
    m->n_blocks = (size_t)layers * (size_t)h->blocks_per_layer;
    m->blocks = hv_arena_new(&m->arena, struct hv_block, m->n_blocks);
    for (size_t i = 0; i < m->n_blocks; i++) {
        m->blocks[i] = b;
        if (h->blocks_per_layer > 1 && i % 2 == 0) {
            m->blocks[i].ffn = 0;
        }
    }
    return HV_OK;
}

enum hv_status hv__hf_two_halves(const struct hv__hf *c, struct hv_model *m)
{
    static const struct half halves[] = {
        {"encoder",
         {"encoder_layers", "num_layers", "num_hidden_layers"},
         {"encoder_attention_heads", "num_heads", "num_attention_heads"},
         {"encoder_ffn_dim", "d_ff"},
         {"max_source_positions", "max_position_embeddings", "n_positions"},
         1},
        {"decoder",
         {"decoder_layers", "num_decoder_layers", "num_layers"},
         {"decoder_attention_heads", "num_heads", "num_attention_heads"},
         {"decoder_ffn_dim", "d_ff"},
         {"max_target_positions", "max_position_embeddings", "n_positions"},
         2}};
    int vocab = 0, mel = int_of(c, "num_mel_bins", 0);
    enum hv_status st = hv__hf_need(c, HV__HF_VOCAB, HV_MAX_WIDTH, &vocab);
    m->kind = HV_MODEL_MODULES;
    m->source = "Hugging Face config; encoder and decoder side by side, a decoder layer is two "
                "blocks (self-attention; cross-attention and feed-forward)";
    m->modules = hv_arena_new(&m->arena, struct hv_module, HV_COUNT(halves));
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(halves); i++) {
        struct hv_module *x = &m->modules[m->n_modules++];
        x->name = halves[i].name;
        x->model = hv_xcalloc(1, sizeof *x->model);
        x->model->refs = 1;
        x->model->kind = HV_MODEL_TRANSFORMER;
        x->model->causal = i == 1;
        x->model->name = halves[i].name;
        st = read_half(c, &halves[i], x->model);
        /* the input is audio frames of three times mel_bins values, or text tokens */
        x->model->vocab = i == 0 && mel > 0 ? 3 * mel : vocab;
        x->model->patch_tokens = i == 0 && mel > 0 ? x->model->max_sequence : 0;
        x->model->tied_embeddings = i == 0 || hv__hf_flag(c, "tie_word_embeddings", true);
        if (st == HV_OK) {
            hv_model_finish(x->model);
            m->n_blocks += x->model->n_blocks;
            m->max_sequence =
                x->model->max_sequence > m->max_sequence ? x->model->max_sequence : m->max_sequence;
        }
    }
    m->edges = hv_arena_new(&m->arena, struct hv_model_edge, 1);
    m->edges[0] = (struct hv_model_edge){0, 1};
    m->n_edges = 1;
    return st;
}
