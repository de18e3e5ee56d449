/*
 * Configs of encoder-decoder models: two modules. A decoder's layer is two blocks: self-attention
 * alone, then cross-attention with the feed-forward. Encoder and decoder are described by members
 * of one config (encoder_layers, d_ff), or by a config each ("encoder", "decoder").
 */
#include "solver/base/units.h"
#include "solver/io/own/model/hf_int.h"
#include <string.h>

#define NAMES 4

struct half {
    const char *name, *layers[NAMES], *heads[NAMES], *ffn[NAMES], *length[NAMES], *sparse;
    int blocks_per_layer;
};

static const struct half halves[] = {
    {"encoder",
     {"encoder_layers", "num_encoder_layers", "num_layers"},
     {"encoder_attention_heads", "num_encoder_attention_heads", "num_heads"},
     {"encoder_ffn_dim", "d_ff"},
     {"max_source_positions", "max_encoder_position_embeddings", "max_position_embeddings",
      "n_positions"},
     "encoder_sparse_step",
     1},
    {"decoder",
     {"decoder_layers", "num_decoder_layers", "num_layers"},
     {"decoder_attention_heads", "num_decoder_attention_heads", "num_heads"},
     {"decoder_ffn_dim", "d_ff"},
     {"max_target_positions", "max_decoder_position_embeddings", "max_position_embeddings",
      "n_positions"},
     "decoder_sparse_step",
     2}};

static int first_int(const struct hv__hf *c, const char *const keys[NAMES], int otherwise)
{
    for (int i = 0; i < NAMES && keys[i]; i++) {
        if (hv__hf_has(c, keys[i])) {
            return hv__hf_int(c, keys[i], otherwise);
        }
    }
    return otherwise;
}

static struct hv_block block_of(const struct hv__hf *c, const struct half *h, int heads,
                                const struct hv_model *m)
{
    static const char *const dims[NAMES] = {"d_kv", "head_dim"};
    struct hv_block b = {.heads = heads, .kv_heads = heads};
    const char *act = json_string_value(hv__hf_member(c, "feed_forward_proj").v);
    bool gated = hv__hf_rule_flag(c, "gated", act && strncmp(act, "gated", 5) == 0);
    b.ffn_kind = gated ? HV_FFN_GEGLU : act ? HV_FFN_RELU : HV_FFN_GELU;
    b.head_dim = first_int(c, dims, m->hidden / heads > 0 ? m->hidden / heads : 1);
    b.ffn = first_int(c, h->ffn, 4 * m->hidden);
    b.attention_bias = b.ffn_bias = hv__hf_rule_flag(c, "attention_bias", !act);
    return b;
}

/* Mixtures of experts are the last layers of each sparse step. */
static void add_experts(const struct hv__hf *c, const struct half *h, int layer, struct hv_block *b)
{
    int every = hv__hf_int(c, h->sparse, 0), experts = hv__hf_int(c, "num_experts", 0);
    if (every > 0 && experts > 1 && layer % every == every - 1) {
        b->experts = experts;
        b->top_k = hv__hf_int(c, "router_top_k", hv__hf_rule_flag(c, "two_experts", false) ? 2 : 1);
        b->top_k = b->top_k > 0 && b->top_k <= experts ? b->top_k : 1;
        b->expert_ffn = b->ffn;
        b->ffn = 0;
    }
}

static void fill_blocks(struct hv__hf *c, const struct half *h, struct hv_model *m,
                        struct hv_block b)
{
    bool any;
    for (size_t i = 0; i < m->n_blocks; i++) {
        struct hv_block *to = &m->blocks[i];
        bool first = i % (size_t)h->blocks_per_layer == 0;
        *to = b;
        c->layer = (int)i / h->blocks_per_layer;
        if (h->blocks_per_layer > 1 && first) {
            to->ffn = 0;
        } else {
            add_experts(c, h, c->layer, to);
        }
        c->b = to;
        double attention = first ? hv__hf_extra(c, HV__HF_AT_ATTENTION, &any) : 0;
        to->attention_extra = attention;
        to->ffn_extra = to->ffn > 0       ? hv__hf_extra(c, HV__HF_AT_DENSE, &any)
                        : to->experts > 0 ? hv__hf_extra(c, HV__HF_AT_MIXTURE, &any)
                                          : 0;
    }
    c->b = NULL;
    c->layer = 0;
}

static enum hv_status read_half(struct hv__hf *c, const struct half *h, struct hv_model *m)
{
    int layers = first_int(c, h->layers, hv__hf_int(c, "num_hidden_layers", 0));
    int heads = first_int(c, h->heads, hv__hf_int(c, "num_attention_heads", 0));
    bool any;
    enum hv_status st = hv__hf_need(c, HV__HF_HIDDEN, HV_MAX_WIDTH, &m->hidden);
    if (st) {
        return st;
    }
    if (layers < 1 || layers > HV_MAX_LAYERS / 2 || heads < 1) {
        return hv_jp_fail(&c->p, c->err,
                          "the %s has no number of layers (\"%s\") or heads (\"%s\")", h->name,
                          h->layers[0], h->heads[0]);
    }
    bool plain =
        hv__hf_has(c, "relative_attention_num_buckets") && hv__hf_has(c, "feed_forward_proj");
    m->norm = plain ? HV_NORM_RMSNORM : HV_NORM_LAYERNORM;
    m->position = plain || hv__hf_rule_flag(c, "no_positions", false) ? HV_POSITION_NONE
                                                                      : HV_POSITION_LEARNED;
    m->max_sequence = first_int(c, h->length, 512);
    m->max_sequence = m->max_sequence > 0 ? m->max_sequence : 512;
    m->n_blocks = (size_t)layers * (size_t)h->blocks_per_layer;
    m->blocks = hv_arena_new(&m->arena, struct hv_block, m->n_blocks);
    c->m = m;
    fill_blocks(c, h, m, block_of(c, h, heads, m));
    m->embedding_extra += hv__hf_extra(c, HV__HF_AT_EMBEDDING, &any);
    m->head_extra += hv__hf_extra(c, HV__HF_AT_HEAD, &any);
    return HV_OK;
}

/* Both halves read tokens with one table, unless the config says otherwise or the encoder reads
 * frames of audio. */
static void share_table(const struct hv__hf *c, int mel, struct hv_model *encoder)
{
    bool own = hv__hf_rule_flag(c, "own_tables", false);
    if (mel == 0 && !own && hv__hf_flag(c, "share_encoder_decoder_embeddings", true)) {
        encoder->embedding_extra -= (double)encoder->vocab * encoder->hidden;
        hv__hf_guess(c, "encoder and decoder share the table of embeddings: it is counted once, "
                        "at the decoder");
    }
}

void hv__hf_join_halves(struct hv_model *m)
{
    m->edges = hv_arena_new(&m->arena, struct hv_model_edge, 1);
    m->edges[0] = (struct hv_model_edge){0, 1};
    m->n_edges = 1;
}

static enum hv_status add_half(struct hv__hf *c, struct hv_model *m, size_t i, int vocab, int mel)
{
    struct hv_module *x = &m->modules[m->n_modules++];
    x->name = halves[i].name;
    x->model = hv_xcalloc(1, sizeof *x->model);
    x->model->refs = 1;
    x->model->kind = HV_MODEL_TRANSFORMER;
    x->model->causal = i == 1;
    x->model->name = halves[i].name;
    /* the input is audio frames of three times mel_bins values, or text tokens */
    x->model->vocab = i == 0 && mel > 0 ? 3 * mel : vocab;
    c->half = (int)i + 1;
    enum hv_status st = read_half(c, &halves[i], x->model);
    x->model->patch_tokens = i == 0 && mel > 0 ? x->model->max_sequence : 0;
    x->model->tied_embeddings =
        i == 0 || hv__hf_rule_flag(c, "tied", hv__hf_flag(c, "tie_word_embeddings", true));
    if (st == HV_OK) {
        if (i == 0) {
            share_table(c, mel, x->model);
        }
        hv_model_finish(x->model);
        m->n_blocks += x->model->n_blocks;
        m->max_sequence =
            x->model->max_sequence > m->max_sequence ? x->model->max_sequence : m->max_sequence;
    }
    return st;
}

enum hv_status hv__hf_two_halves(struct hv__hf *c, struct hv_model *m)
{
    int vocab = 0, mel = hv__hf_int(c, "num_mel_bins", 0);
    enum hv_status st = hv__hf_need(c, HV__HF_VOCAB, HV_MAX_WIDTH, &vocab);
    m->kind = HV_MODEL_MODULES;
    m->source = "Hugging Face config; encoder and decoder side by side, a decoder layer is two "
                "blocks (self-attention; cross-attention and feed-forward)";
    hv__hf_guess(c, "encoder and decoder are two modules; a decoder layer is two blocks: "
                    "self-attention, then cross-attention and feed-forward");
    m->modules = hv_arena_new(&m->arena, struct hv_module, HV_COUNT(halves));
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(halves); i++) {
        st = add_half(c, m, i, vocab, mel);
    }
    c->m = m;
    c->half = 0;
    hv__hf_join_halves(m);
    return st;
}
