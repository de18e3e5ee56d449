/*
 * Configs whose layers are not all attention and feed-forward.
 *
 * State-space and linear-attention layers become attention over a short window with as many
 * parameters: their chunked forms (Mamba-2, arXiv 2405.21060, section 6) have the cost of attention
 * inside a chunk. The model's `source` states this approximation.
 */
#include "solver/base/units.h"
#include "solver/io/own/model/hf_int.h"
#include <math.h>
#include <string.h>

#define CHUNK 128 /* tokens that a linear layer works on at once, where the config does not say */

static const char *word_at(const struct hv__hf *c, const char *key, int layer)
{
    json_t *list = hv__hf_member(c, key).v;
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
    const char *p = json_string_value(hv__hf_member(c, "hybrid_override_pattern").v);
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
    int period = hv__hf_int(c, "attn_layer_period", 0),
        experts = hv__hf_int(c, "expert_layer_period", 0);
    if (period > 0) {
        bool attention = layer % period == hv__hf_int(c, "attn_layer_offset", 0) % period;
        out->mixer = attention ? HV__HF_ATTENTION : HV__HF_LINEAR;
    }
    if (experts > 0) {
        bool mixture = layer % experts == hv__hf_int(c, "expert_layer_offset", 0) % experts;
        out->ffn = mixture ? HV__HF_MIXTURE : HV__HF_DENSE;
    }
    return period > 0;
}

/* Lists of layer numbers, and every n-th layer. */
static bool by_number(const struct hv__hf *c, int layer, struct hv__hf_layer *out)
{
    int every = hv__hf_int(c, "full_attention_interval", 0);
    json_t *kinds = hv__hf_member(c, "attn_type_list").v;
    if (json_is_array(hv__hf_member(c, "attn_layer_indices").v)) {
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
    inner.p = hv__hf_member(c, "linear_attn_config");
    inner.inside = "linear_attn_config.";
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
    json_t *flags = hv__hf_member(c, "moe_layer_freq").v;
    if (*word) {
        out->ffn = is_one_of(word, sparse, HV_COUNT(sparse)) ? HV__HF_MIXTURE : HV__HF_DENSE;
    } else if ((size_t)layer < json_array_size(flags)) {
        json_t *x = json_array_get(flags, (size_t)layer);
        out->ffn = json_is_true(x) || json_number_value(x) > 0 ? HV__HF_MIXTURE : HV__HF_DENSE;
    } else if (json_array_size(hv__hf_member(c, "moe_layers").v) > 0) {
        out->ffn = hv__hf_listed(c, "moe_layers", layer) ? HV__HF_MIXTURE : HV__HF_DENSE;
    }
}

static bool by_word(const struct hv__hf *c, int layer, struct hv__hf_layer *out)
{
    static const char *const linear[] = {"linear", "mamba", "recurrent", "ssm", "conv", "kda"};
    const char *word = kind_word(c, layer);
    if (!*word || strstr(word, "hybrid")) {
        return false;
    }
    out->mixer = is_one_of(word, linear, HV_COUNT(linear)) ? HV__HF_LINEAR : HV__HF_ATTENTION;
    if (strcmp(word, "moe") == 0 || strcmp(word, "mlp") == 0) {
        out->mixer = HV__HF_NO_MIXER;
        out->ffn = *word == 'm' && word[1] == 'o' ? HV__HF_MIXTURE : HV__HF_DENSE;
    }
    return true;
}

/* The family's own rules: "mixer" and "half" name the two halves of a layer. */
static void by_family(const struct hv__hf *c, struct hv__hf_layer *out)
{
    static const char *const mixers[] = {"attention", "linear", "both", "none"};
    static const char *const halves[] = {"", "dense", "mixture", "none"};
    struct hv__value mixer = hv__hf_rule(c, "mixer"), half = hv__hf_rule(c, "half");
    for (size_t i = 0; i < HV_COUNT(mixers); i++) {
        out->mixer = hv__value_is(mixer, mixers[i]) ? (enum hv__hf_mixer)i : out->mixer;
        out->ffn = i > 0 && hv__value_is(half, halves[i]) ? (enum hv__hf_ffn)i : out->ffn;
    }
}

struct hv__hf_layer hv__hf_layer_of(const struct hv__hf *c, int layer)
{
    struct hv__hf_layer out = {HV__HF_ATTENTION, HV__HF_ANY_FFN};
    struct hv__hf at = *c;
    at.layer = layer;
    if (!by_pattern(&at, layer, &out) && !by_period(&at, layer, &out) &&
        !by_word(&at, layer, &out)) {
        (void)by_number(&at, layer, &out);
    }
    by_family(&at, &out);
    if (out.ffn == HV__HF_ANY_FFN) {
        mixture_by_list(&at, layer, &out);
    }
    return out;
}

const char *hv__hf_linear_element(const struct hv__hf *c)
{
    static const struct {
        const char *member, *element;
    } rows[] = {{"linear_num_value_heads", "element-delta"},
                {"mamba_num_heads", "element-mamba2"},
                {"mamba_n_heads", "element-mamba2"},
                {"n_mamba_heads", "element-mamba2"},
                {"mamba_d_state", "element-mamba"},
                {"ssm_state_size", "element-mamba"},
                {"state_size", "element-mamba"},
                {"conv_L_cache", "element-conv"}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (hv__hf_has(c, rows[i].member)) {
            return rows[i].element;
        }
    }
    return NULL;
}

double hv__hf_linear_weights(const struct hv__hf *c)
{
    bool any;
    double weights = hv__hf_extra(c, HV__HF_AT_LINEAR, &any);
    return any ? weights : 4.0 * c->m->hidden * c->m->hidden; /* query, key, value, output */
}

void hv__hf_linear_block(const struct hv__hf *c, double weights, struct hv_block *b)
{
    int hidden = c->m->hidden, dim = hidden >= 1024 ? 128 : 16;
    double each = 4.0 * hidden * dim, heads = fmin(fmax(floor(weights / each), 1), HV_MAX_HEADS);
    b->heads = b->kv_heads = (int)heads;
    b->head_dim = dim;
    b->mla = (struct hv_mla){0};
    b->window = hv__hf_int(c, "chunk_size", hv__hf_int(c, "mamba_chunk_size", CHUNK));
    b->attention_bias = false;
    b->attention_extra = weights - heads * each;
}

bool hv__hf_is_low_rank(const struct hv__hf *c)
{
    return hv__hf_has(c, "q_lora_rank") && hv__hf_has(c, "o_lora_rank");
}

void hv__hf_low_rank_block(const struct hv__hf *c, const struct hv_model *m, struct hv_block *b)
{
    /* queries and outputs through a low rank: as many full heads as have the same weights */
    double h = m->hidden, q = hv__hf_int(c, "q_lora_rank", 0), o = hv__hf_int(c, "o_lora_rank", 0);
    double width = (double)b->heads * b->head_dim, kv = (double)b->kv_heads * b->head_dim;
    double weights =
        h * q + q * width + 2 * h * kv + width * o + o * hv__hf_int(c, "o_groups", 1) * h;
    double heads = round((weights - 2 * h * kv) / (2 * h * b->head_dim));
    b->heads = (int)fmin(fmax(heads, 1), b->heads);
    b->heads -= b->heads % b->kv_heads;
    b->heads = b->heads > 0 ? b->heads : b->kv_heads;
}

void hv__hf_compressed_window(const struct hv__hf *c, int layer, const struct hv_model *m,
                              struct hv_block *b)
{
    json_t *ratio = json_array_get(hv__hf_member(c, "compress_ratios").v, (size_t)layer);
    if (!json_is_integer(ratio)) {
        return;
    }
    double r = (double)json_integer_value(ratio), top = hv__hf_int(c, "index_topk", 0);
    double window = hv__hf_int(c, "sliding_window", 0);
    if (r > 0) { /* compressed keys are read completely, or only the selected ones */
        double read = m->max_sequence / r;
        window += top > 0 ? fmin(top, read) : read;
    }
    b->window = window > 0 && window < m->max_sequence ? (int)window : 0;
}
