/*
 * Hugging Face config.json: io/own reads it, and this file reports the members that were read and
 * those that were not. Code that a config names (auto_map) is never read.
 */
#include "solver/io/import/draft/model_out.h"
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/model/hf_int.h"
#include <string.h>

bool hv__is_hf_config(const struct hv__in *in)
{
    struct hv_json doc = {.root = in->tree, .name = (char *)(uintptr_t)in->name};
    struct hv_jp root = hv_jp_root(&doc);
    return json_is_object(in->tree) && in->is_json && hv__hf_looks_like(&root);
}

/* Members that are read besides the figures of the table. */
static const char *const more[] = {"model_type",
                                   "tie_word_embeddings",
                                   "attention_bias",
                                   "mlp_bias",
                                   "bias",
                                   "qkv_bias",
                                   "alibi",
                                   "multi_query",
                                   "new_decoder_architecture",
                                   "rms_norm_eps",
                                   "q_lora_rank",
                                   "kv_lora_rank",
                                   "qk_rope_head_dim",
                                   "qk_nope_head_dim",
                                   "v_head_dim",
                                   "layer_types",
                                   "mlp_only_layers",
                                   "mlp_layer_types",
                                   "moe_layers",
                                   "use_sliding_window",
                                   "max_window_layers",
                                   "sliding_window_pattern",
                                   "text_config",
                                   "vision_config",
                                   "image_size",
                                   "patch_size",
                                   "num_channels",
                                   "hybrid_override_pattern",
                                   "attn_layer_period",
                                   "attn_layer_offset",
                                   "expert_layer_period",
                                   "expert_layer_offset",
                                   "full_attention_interval",
                                   "layers_block_type",
                                   "compress_ratios",
                                   "index_topk",
                                   "o_lora_rank",
                                   "o_groups",
                                   "is_encoder_decoder",
                                   "encoder_layers",
                                   "decoder_layers",
                                   "encoder_ffn_dim",
                                   "decoder_ffn_dim",
                                   "encoder_attention_heads",
                                   "decoder_attention_heads",
                                   "d_kv",
                                   "max_source_positions",
                                   "max_target_positions",
                                   "num_mel_bins",
                                   "ssm_state_size",
                                   "expand",
                                   "mamba_expand",
                                   "mamba_d_state",
                                   "mamba_dt_rank",
                                   "mamba_num_heads",
                                   "mamba_head_dim",
                                   "n_groups",
                                   "chunk_size",
                                   "linear_num_value_heads",
                                   "linear_num_key_heads",
                                   "linear_key_head_dim",
                                   "linear_value_head_dim",
                                   "intermediate_size_mlp",
                                   "num_decoder_layers",
                                   "feed_forward_proj",
                                   "rope_theta",
                                   "rope_scaling",
                                   "rope_parameters"};

/* Members without influence on shape or cost; they are not reported, to keep the report short. */
static const char *const plain[] = {"architectures",     "transformers_version",
                                    "_name_or_path",     "initializer_range",
                                    "use_cache",         "bos_token_id",
                                    "eos_token_id",      "pad_token_id",
                                    "auto_map",          "return_dict",
                                    "id2label",          "label2id",
                                    "unk_token_id",      "sep_token_id",
                                    "cls_token_id",      "mask_token_id",
                                    "torch_dtype",       "dtype",
                                    "attention_dropout", "hidden_dropout",
                                    "init_std",          "layer_norm_epsilon",
                                    "layer_norm_eps",    "norm_eps"};

static bool is_in(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(key, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_figure(const char *key)
{
    for (int f = 0; f < HV__HF_FIGURE_N; f++) {
        const char *const *names = hv__hf_names((enum hv__hf_figure)f);
        for (int i = 0; i < HV__HF_NAMES && names[i]; i++) {
            if (strcmp(key, names[i]) == 0) {
                return true;
            }
        }
    }
    return false;
}

static const char *value_text(struct hv__in *in, json_t *v)
{
    if (json_is_string(v)) {
        return json_string_value(v);
    }
    if (json_is_object(v) || json_is_array(v)) {
        return json_is_array(v) ? "a list" : "an object";
    }
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
    const char *copy = hv_arena_strdup(&in->im->arena, text ? text : "?");
    free(text);
    return copy;
}

static void tell_members(struct hv__in *in, json_t *config, const char *inside)
{
    size_t unread = 0;
    for (void *it = json_object_iter(config); it; it = json_object_iter_next(config, it)) {
        const char *key = json_object_iter_key(it);
        json_t *v = json_object_iter_value(it);
        unsigned line = hv__line_of(in, v);
        const char *text = value_text(in, v);
        if (json_is_null(v)) {
            continue;
        }
        if (is_figure(key) || is_in(key, more, HV_COUNT(more))) {
            hv__understood(in, line, "%s%s = %s", inside, key, text);
        } else if (is_in(key, plain, HV_COUNT(plain))) {
            unread++;
        } else {
            hv__ignored(in, line, "%s%s = %s", inside, key, text);
            hv__raw(in, key, text);
        }
    }
    if (unread > 0) {
        hv__ignored(in, 0, "%zu members that do not describe the shape", unread);
    }
}

static void guess(struct hv__in *in, bool absent, const char *what, const char *value)
{
    if (absent) {
        hv__guessed(in, 0, "%s is not given: %s", what, value);
    }
}

/* Notes the figures supplied by the family or by the usual rule. */
static void tell_guesses(struct hv__in *in, json_t *config, const struct hv_model *m,
                         const char *type)
{
    struct hv_json doc = {.root = config, .name = (char *)(uintptr_t)in->name};
    struct hv__hf c = {.p = hv_jp_root(&doc), .type = type, .f = hv__hf_family_of(type)};
    const struct hv_block *b = m->n_blocks > 0 && m->blocks ? &m->blocks[0] : NULL;
    struct hv_arena *a = &in->im->arena;
    if (c.f->type[0] == '\0') {
        hv__guessed(in, 0,
                    "the family \"%s\" is not known: norm, positions and gating are taken "
                    "from the other members",
                    type);
    }
    if (c.f->note) {
        hv__guessed(in, 0, "%s", c.f->note);
    }
    if (!b || b->heads == 0) {
        return;
    }
    guess(in, !hv__hf_find(&c, HV__HF_KV_HEADS).v, "the number of key/value heads",
          hv_arena_printf(a, "%d", b->kv_heads));
    guess(in, !hv__hf_find(&c, HV__HF_HEAD_DIM).v && b->mla.kv_rank == 0, "the width of a head",
          hv_arena_printf(a, "%d", b->head_dim));
    guess(in, !hv__hf_find(&c, HV__HF_FFN).v && b->ffn > 0, "the width of the feed-forward",
          hv_arena_printf(a, "%d", b->ffn));
    guess(in, !hv__hf_find(&c, HV__HF_ACTIVATION).v, "the activation",
          hv_ffn_kind_name(b->ffn_kind));
    guess(in, !hv__hf_has(&c, "tie_word_embeddings") && !m->patch_tokens,
          "whether embedding and head are tied",
          m->tied_embeddings ? "they are, as usual in the family"
                             : "they are not, as usual in the family");
    guess(in, !hv__hf_find(&c, HV__HF_MAX_SEQUENCE).v && !m->patch_tokens, "the longest sequence",
          hv_arena_printf(a, "%d", m->max_sequence));
}

enum hv_status hv__read_hf_config(struct hv__in *in, struct hv_err *err)
{
    struct hv_model_doc doc = {0};
    struct hv_json json = {0};
    struct hv_jp root;
    if (!json_is_object(in->tree)) {
        return hv_err_at(err, HV_EINPUT, in->name, in->broken.line, in->broken.col, "%s",
                         in->broken.text[0] ? in->broken.text
                                            : "expected a config.json: an object");
    }
    hv_json_wrap(&json, json_incref(in->tree), in->name);
    root = hv_jp_root(&json);
    if (!hv__hf_looks_like(&root)) {
        hv_json_free(&json);
        return hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                         "expected a config.json with model_type, hidden_size or the like");
    }
    if (in->json.root) { /* errors get positions from the text */
        json.text = hv_xcalloc(in->n + 1, 1);
        memcpy(json.text, in->text, in->n);
        json.n = in->n;
    }
    enum hv_status st = hv_model_doc_build(&doc, json, err);
    if (st != HV_OK) {
        return st;
    }
    json_t *text = json_object_get(in->tree, "text_config");
    bool nested = json_is_object(text) && doc.model->kind == HV_MODEL_TRANSFORMER;
    const char *type = json_string_value(json_object_get(in->tree, "model_type"));
    tell_members(in, in->tree, "");
    if (nested) {
        tell_members(in, text, "text_config.");
        hv__guessed(in, hv__line_of(in, text), "the language part only; other towers are left out");
    }
    tell_guesses(in, nested ? text : in->tree, doc.model, type ? type : "");
    if (doc.model->kind == HV_MODEL_TRANSFORMER) {
        hv__understood(in, 0, "%zu layers, %.4g parameters", doc.model->n_blocks,
                       hv_model_parameters(doc.model));
    }
    if (in->im->model) {
        hv__guessed(in, 0, "an earlier file describes a model too: this one replaces it");
        json_decref(in->im->model);
    }
    in->im->model = hv_import_model_json(doc.model);
    hv_model_doc_free(&doc);
    return HV_OK;
}
