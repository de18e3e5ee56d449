/*
 * The model that Megatron-LM's settings describe. Sources: Megatron-LM, training/arguments.py
 * (defaults), core/transformer/transformer_config.py, core/ssm.
 */
#include "solver/io/import/draft/model_out.h"
#include "solver/io/import/training/megatron.h"
#include "solver/io/own/docs.h"
#include <ctype.h>
#include <string.h>

static bool whole(double x)
{
    return hv_known(x) && x >= 1 && x <= 1e8 && floor(x) == x;
}

static void set(json_t *o, const char *key, double x)
{
    if (hv_known(x) && x >= 0 && x <= 1e9 && floor(x) == x) {
        json_object_set_new(o, key, hv_json_num(x));
    }
}

static void set_flag(json_t *o, const char *key, bool x)
{
    json_object_set_new(o, key, json_boolean(x));
}

static bool is(struct hv__settings *s, const char *name, const char *value)
{
    const struct hv__setting *x = hv__setting(s, name);
    return x && hv__like(hv__piece_of(x->value), value);
}

static double vocabulary(struct hv__in *in, struct hv__settings *s)
{
    double v = hv__setting_number(s, "vocab-size"),
           by = hv__setting_number(s, "make-vocab-size-divisible-by");
    double tp = hv_or(hv__setting_number(s, "tensor-model-parallel-size"), 1);
    if (!whole(v)) {
        v = hv__setting_number(s, "padded-vocab-size");
    }
    if (!whole(v)) {
        hv__guessed(in, 0, "the vocabulary is the tokenizer's: 50304 stands in");
        return 50304;
    }
    by = fmax(hv_or(by, 128), 1) * fmax(tp, 1);
    return ceil(v / by) * by;
}

/* ---- mixtures ---------------------------------------------------------------------------------
 */

/* "([0]*3+[1]*58)": the number of leading layers without experts; a number: every n-th has them. */
static void layer_rule(const char *text, int *first_dense, int *every)
{
    *first_dense = 0;
    *every = 1;
    double n = hv__plain_number(hv__piece_of(text));
    if (whole(n)) {
        *every = (int)n;
        return;
    }
    const char *zeros = strstr(text, "[0]");
    if (zeros) {
        zeros += 3;
        double times =
            zeros[0] == '*'
                ? hv__plain_number((struct hv__piece){zeros + 1, strspn(zeros + 1, "0123456789")})
                : 1;
        *first_dense = whole(times) && times < 1e5 ? (int)times : 0;
    } else if (strncmp(text, "[0,", 3) == 0) {
        while (strncmp(text + 1 + 2 * *first_dense, "0,", 2) == 0) {
            (*first_dense)++;
        }
    }
}

static void set_moe(struct hv__in *in, struct hv__settings *s, json_t *o, double ffn)
{
    double experts = hv__setting_number(s, "num-experts");
    int first, every;
    if (!(experts >= 2)) {
        return;
    }
    json_t *moe = json_object();
    double width = hv_or(hv__setting_number(s, "moe-ffn-hidden-size"), ffn);
    double shared = hv__setting_number(s, "moe-shared-expert-intermediate-size");
    set(moe, "experts", experts);
    set(moe, "top_k", hv_or(hv__setting_number(s, "moe-router-topk"), 2));
    set(moe, "ffn", width);
    if (whole(shared)) {
        set(moe, "shared_experts", 1);
        set(moe, "shared_ffn", shared);
    }
    const struct hv__setting *freq = hv__setting(s, "moe-layer-freq");
    layer_rule(freq ? freq->value : "1", &first, &every);
    if (first > 0) {
        set(moe, "first_dense", first);
    }
    if (every > 1) {
        set(moe, "every", every);
        hv__guessed(in, 0, "every %d-th layer has experts, the last of each step", every);
    }
    json_object_set_new(o, "moe", moe);
}

static void set_mla(struct hv__settings *s, json_t *o, double *head_dim)
{
    if (!hv__setting_on(s, "multi-latent-attention")) {
        return;
    }
    double nope = hv_or(hv__setting_number(s, "qk-head-dim"), 128);
    double rope = hv_or(hv__setting_number(s, "qk-pos-emb-head-dim"), 64);
    json_t *mla = json_object();
    set(mla, "q_rank", hv_or(hv__setting_number(s, "q-lora-rank"), 0));
    set(mla, "kv_rank", hv_or(hv__setting_number(s, "kv-lora-rank"), 512));
    set(mla, "rope_dim", rope);
    set(mla, "nope_dim", nope);
    set(mla, "value_dim", hv_or(hv__setting_number(s, "v-head-dim"), 128));
    json_object_set_new(o, "mla", mla);
    *head_dim = nope + rope;
}

/* ---- the block --------------------------------------------------------------------------------
 */

static const char *activation(struct hv__settings *s)
{
    return hv__setting_on(s, "swiglu")         ? "swiglu"
           : hv__setting_on(s, "squared-relu") ? "relu2"
                                               : "gelu";
}

/* Megatron's own rule: 4 h; two thirds of it for a gated one, rounded down to a multiple of 64. */
static double ffn_width(struct hv__settings *s, double hidden)
{
    double given = hv__setting_number(s, "ffn-hidden-size");
    return whole(given)                  ? given
           : hv__setting_on(s, "swiglu") ? floor(4 * hidden * 2 / 3 / 64) * 64
                                         : 4 * hidden;
}

static const char *position(struct hv__settings *s)
{
    return is(s, "position-embedding-type", "rope") ||
                   hv__setting_on(s, "use-rotary-position-embeddings")
               ? "rope"
           : is(s, "position-embedding-type", "none") || hv__setting_on(s, "no-position-embedding")
               ? "none"
               : "learned";
}

static double kv_heads(struct hv__settings *s, double heads)
{
    double groups = hv__setting_number(s, "num-query-groups");
    bool grouped = hv__setting_on(s, "group-query-attention");
    return grouped && whole(groups) ? groups : heads;
}

/* ---- hybrids ----------------------------------------------------------------------------------
 */

/* Reads a hybrid pattern as a config of the family that uses the same letters. */
static json_t *hybrid(struct hv__in *in, struct hv__settings *s, const char *pattern, double hidden,
                      double heads)
{
    struct hv_str letters = {0};
    for (const char *c = pattern; *c && *c != '/' && letters.n < 100000; c++) {
        if (strchr("M*-E", *c)) {
            hv_str_addc(&letters, *c);
        }
    }
    double dim = hv_or(hv__setting_number(s, "mamba-head-dim"), 64);
    json_t *o = json_pack("{s:s, s:s, s:s}", "model_type", "nemotron_h", "hybrid_override_pattern",
                          hv_str_cstr(&letters), "mlp_hidden_act",
                          hv__setting_on(s, "squared-relu") ? "relu2" : "gelu");
    set(o, "num_hidden_layers", (double)letters.n);
    set(o, "hidden_size", hidden);
    set(o, "num_attention_heads", heads);
    set(o, "num_key_value_heads", kv_heads(s, heads));
    set(o, "head_dim", hv__setting_number(s, "kv-channels"));
    set(o, "intermediate_size", ffn_width(s, hidden));
    set(o, "vocab_size", vocabulary(in, s));
    set(o, "max_position_embeddings", hv__setting_number(s, "max-position-embeddings"));
    set(o, "mamba_head_dim", dim);
    set(o, "mamba_num_heads",
        hv_or(hv__setting_number(s, "mamba-num-heads"), floor(2 * hidden / dim)));
    set(o, "ssm_state_size", hv_or(hv__setting_number(s, "mamba-state-dim"), 128));
    set(o, "n_groups", hv_or(hv__setting_number(s, "mamba-num-groups"), 8));
    set(o, "n_routed_experts", hv__setting_number(s, "num-experts"));
    set(o, "num_experts_per_tok", hv__setting_number(s, "moe-router-topk"));
    set(o, "moe_intermediate_size", hv__setting_number(s, "moe-ffn-hidden-size"));
    set_flag(o, "tie_word_embeddings", !hv__setting_on(s, "untie-embeddings-and-output-weights"));
    hv_str_free(&letters);
    struct hv_json json = {0};
    struct hv_model_doc doc = {0};
    struct hv_err err = {0};
    hv_json_wrap(&json, o, in->name);
    json_t *out = NULL;
    if (hv_model_doc_build(&doc, json, &err) == HV_OK) {
        hv__guessed(in, 0, "state-space layers are counted as attention over a chunk");
        out = hv_import_model_json(doc.model);
    } else {
        hv__ignored(in, 0, "the hybrid model: %.200s", err.text);
    }
    hv_model_doc_free(&doc);
    return out;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

/* True where hetviz's own reader accepts the model. A rejected model would stop the whole
 * import. */
static json_t *checked(struct hv__in *in, json_t *o)
{
    struct hv_json json = {0};
    struct hv_model_doc doc = {0};
    struct hv_err err = {0};
    hv_json_wrap(&json, json_incref(o), in->name);
    if (hv_model_doc_build(&doc, json, &err) != HV_OK) {
        hv__ignored(in, 0, "the model: %.200s", err.text);
        json_decref(o);
        o = NULL;
    }
    hv_model_doc_free(&doc);
    return o;
}

json_t *hv__megatron_model(struct hv__in *in, struct hv__settings *s)
{
    double layers = hv__setting_number(s, "num-layers"),
           hidden = hv__setting_number(s, "hidden-size");
    double heads = hv__setting_number(s, "num-attention-heads");
    double dim = hv__setting_number(s, "kv-channels"), ffn = ffn_width(s, hidden);
    const struct hv__setting *pattern = hv__setting(s, "hybrid-layer-pattern");
    pattern = pattern ? pattern : hv__setting(s, "hybrid-override-pattern");
    if (whole(hidden) && whole(heads) && pattern && *pattern->value) {
        return hybrid(in, s, pattern->value, hidden, heads);
    }
    if (!whole(layers) || !whole(hidden) || !whole(heads)) {
        hv__guessed(in, 0, "layers, hidden size or heads are not said: no model comes of it");
        return NULL;
    }
    json_t *o = json_pack("{s:s, s:s, s:s}", "format", "hetviz.model/1", "name", "megatron", "kind",
                          "transformer");
    set(o, "layers", layers);
    set(o, "hidden", hidden);
    set(o, "heads", heads);
    set(o, "kv_heads", kv_heads(s, heads));
    set_mla(s, o, &dim);
    set(o, "head_dim", hv_or(dim, floor(hidden / heads)));
    set(o, "ffn", ffn);
    json_object_set_new(o, "ffn_kind", json_string(activation(s)));
    bool bias = !hv__setting_on(s, "disable-bias-linear");
    set_flag(o, "attention_bias", bias || hv__setting_on(s, "add-qkv-bias"));
    set_flag(o, "ffn_bias", bias);
    set(o, "vocab", vocabulary(in, s));
    set_flag(o, "tied_embeddings", !hv__setting_on(s, "untie-embeddings-and-output-weights"));
    json_object_set_new(o, "norm",
                        json_string(is(s, "normalization", "RMSNorm") ? "rmsnorm" : "layernorm"));
    json_object_set_new(o, "position", json_string(position(s)));
    set(o, "max_sequence", hv__setting_number(s, "max-position-embeddings"));
    set_moe(in, s, o, ffn);
    return checked(in, o);
}
