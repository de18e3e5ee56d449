/*
 * Models: names, ownership, parameter counts, content hash. FLOPs are in flops.c; files are read in
 * solver/io/own.
 */
#include "solver/workload/model.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Megatron pads the vocabulary to a multiple of this per tensor-parallel rank. */
#define VOCAB_MULTIPLE 128.0

static const char *const kind_names[HV_MODEL_KIND_N] = {"transformer", "layers", "graph",
                                                        "modules"};
#define X(c, name, mats) name,
static const char *const ffn_names[HV_FFN_KIND_N] = {HV_FFN_KIND_MAP(X)};
#undef X
#define X(c, name, mats) mats,
static const int ffn_matrices[HV_FFN_KIND_N] = {HV_FFN_KIND_MAP(X)};
#undef X
static const char *const norm_names[HV_NORM_KIND_N] = {"layernorm", "rmsnorm"};
static const char *const position_names[HV_POSITION_KIND_N] = {"learned", "rope", "alibi", "none"};

const char *hv_model_kind_name(enum hv_model_kind k)
{
    return kind_names[k];
}

const char *hv_ffn_kind_name(enum hv_ffn_kind k)
{
    return ffn_names[k];
}

int hv_ffn_kind_matrices(enum hv_ffn_kind k)
{
    return ffn_matrices[k];
}

const char *hv_norm_kind_name(enum hv_norm_kind k)
{
    return norm_names[k];
}

const char *hv_position_kind_name(enum hv_position_kind k)
{
    return position_names[k];
}

struct hv_model *hv_model_ref(struct hv_model *m)
{
    m->refs++;
    return m;
}

void hv_model_unref(struct hv_model *m)
{
    if (!m || --m->refs != 0) {
        return;
    }
    for (size_t i = 0; i < m->n_modules; i++) {
        hv_model_unref(m->modules[i].model);
    }
    hv_arena_free(&m->arena);
    free(m);
}

static double norm_parameters(const struct hv_model *m)
{
    return (m->norm == HV_NORM_LAYERNORM ? 2.0 : 1.0) * m->hidden;
}

/* Low-rank query and key/value projections; DeepSeek-V2, arXiv 2405.04434, section 2.1. */
static double mla_parameters(const struct hv_model *m, const struct hv_block *b)
{
    const struct hv_mla *x = &b->mla;
    double h = m->hidden, a = b->heads, qk = x->nope_dim + x->rope_dim;
    double q = x->q_rank ? h * x->q_rank + x->q_rank + x->q_rank * a * qk : h * a * qk;
    double kv =
        h * (x->kv_rank + x->rope_dim) + x->kv_rank + x->kv_rank * a * (x->nope_dim + x->value_dim);
    return q + kv + a * x->value_dim * h;
}

double hv_block_attention_parameters(const struct hv_model *m, const struct hv_block *b)
{
    if (b->heads == 0) {
        return 0;
    }
    if (b->mla.kv_rank) {
        return mla_parameters(m, b) + norm_parameters(m) + b->attention_extra;
    }
    double h = m->hidden, q = (double)b->heads * b->head_dim, kv = 2.0 * b->kv_heads * b->head_dim;
    double bias = b->attention_bias ? q + kv + h : 0;
    return h * (q + kv) + q * h + bias + norm_parameters(m) + b->attention_extra;
}

/* One feed-forward part of this width: its matrices and biases. */
static double part_parameters(const struct hv_model *m, const struct hv_block *b, double width)
{
    int mats = hv_ffn_kind_matrices(b->ffn_kind);
    double bias = b->ffn_bias ? (mats - 1) * width + m->hidden : 0;
    return mats * width * m->hidden + bias;
}

double hv_block_ffn_parameters(const struct hv_model *m, const struct hv_block *b)
{
    double p = b->ffn ? part_parameters(m, b, b->ffn) : 0;
    if (b->experts) {
        p += b->shared_experts * part_parameters(m, b, b->shared_ffn);
        p += (double)m->hidden * b->experts;
    }
    return p > 0 ? p + norm_parameters(m) + b->ffn_extra : 0;
}

double hv_block_expert_parameters(const struct hv_model *m, const struct hv_block *b)
{
    return b->experts ? b->experts * part_parameters(m, b, b->expert_ffn) : 0;
}

double hv_model_embedding_parameters(const struct hv_model *m)
{
    double table = m->position == HV_POSITION_LEARNED ? (double)m->max_sequence * m->hidden : 0;
    return (double)m->vocab * m->hidden + table + m->embedding_extra;
}

double hv_model_head_parameters(const struct hv_model *m)
{
    return (m->tied_embeddings ? 0 : (double)m->vocab * m->hidden) + norm_parameters(m) +
           m->head_extra;
}

double hv_model_padded_vocab(const struct hv_model *m, int tp)
{
    double multiple = VOCAB_MULTIPLE * tp;
    return m->patch_tokens > 0 ? m->vocab : multiple * ceil(m->vocab / multiple);
}

static double transformer_parameters(const struct hv_model *m, bool active)
{
    double sum = hv_model_embedding_parameters(m) + hv_model_head_parameters(m);
    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct hv_block *b = &m->blocks[i];
        double experts = hv_block_expert_parameters(m, b);
        if (active && b->experts) {
            experts *= (double)b->top_k / b->experts;
        }
        sum += hv_block_attention_parameters(m, b) + hv_block_ffn_parameters(m, b) + experts;
    }
    return sum;
}

static double parameters(const struct hv_model *m, bool active);

/* A module whose output another module reads has no head. */
static double modules_parameters(const struct hv_model *m, bool active)
{
    double sum = 0;
    size_t n = hv_model_n_leaves(m);
    struct hv_model_leaf *leaves = hv_xcalloc(n, sizeof *leaves);
    hv_model_leaves(m, leaves);
    for (size_t i = 0; i < n; i++) {
        bool headless = leaves[i].feeds && leaves[i].model->kind == HV_MODEL_TRANSFORMER;
        sum += parameters(leaves[i].model, active);
        sum -= headless ? hv_model_head_parameters(leaves[i].model) : 0;
    }
    free(leaves);
    return sum;
}

static double parameters(const struct hv_model *m, bool active)
{
    double sum = 0;
    switch (m->kind) {
    case HV_MODEL_TRANSFORMER:
        return transformer_parameters(m, active);
    case HV_MODEL_LAYERS:
        for (size_t i = 0; i < m->n_blocks; i++) {
            sum += m->measured[i].parameter_bytes / 2;
        }
        return sum;
    case HV_MODEL_GRAPH:
        for (size_t i = 0; i < m->n_ops; i++) {
            sum += hv_or(m->ops[i].parameter_bytes, 0) / 2;
        }
        return sum;
    case HV_MODEL_MODULES:
        return modules_parameters(m, active);
    case HV_MODEL_KIND_N:
        break;
    }
    return HV_UNKNOWN;
}

double hv_model_parameters(const struct hv_model *m)
{
    return parameters(m, false);
}

double hv_model_active_parameters(const struct hv_model *m)
{
    return parameters(m, true);
}

static uint64_t hash_text(uint64_t h, const char *s)
{
    return hv_hash(h, s ? s : "", s ? strlen(s) + 1 : 1);
}

static uint64_t hash_num(uint64_t h, double x)
{
    double y = hv_known(x) ? x + 0.0 : -1.0;
    return hv_hash(h, &y, sizeof y);
}

/* Nothing for the usual model, which has none. */
static uint64_t hash_extra(uint64_t h, double x)
{
    return x != 0 ? hash_num(h, x) : h;
}

static uint64_t hash_block(uint64_t h, const struct hv_block *b)
{
    const int parts[] = {b->heads,          b->kv_heads,     b->head_dim,       b->mla.q_rank,
                         b->mla.kv_rank,    b->mla.rope_dim, b->mla.nope_dim,   b->mla.value_dim,
                         b->window,         b->ffn,          (int)b->ffn_kind,  b->experts,
                         b->top_k,          b->expert_ffn,   b->shared_experts, b->shared_ffn,
                         b->attention_bias, b->ffn_bias};
    h = hv_hash(h, parts, sizeof parts);
    h = hash_extra(hash_extra(h, b->attention_extra), b->ffn_extra);
    return hash_extra(hash_extra(h, b->attends), b->reach);
}

static uint64_t hash_both_ways(uint64_t h, const struct hv_both_ways *list, size_t n)
{
    for (size_t i = 0; list && i < n; i++) {
        h = hash_num(hash_num(h, list[i].forward_s), list[i].backward_s);
    }
    return hash_num(h, list != NULL);
}

static uint64_t hash_pieces(uint64_t h, const struct hv_measured_pieces *p, size_t n)
{
    h = hash_both_ways(h, p->attention_block, n);
    h = hash_both_ways(h, p->expert_fixed, n);
    h = hash_both_ways(h, p->expert_token, n);
    h = hash_num(hash_num(h, p->dispatch_bytes), p->kv_bytes);
    return hash_num(hash_num(h, p->experts), p->top_k);
}

static uint64_t hash_measured(uint64_t h, const struct hv_model *m)
{
    if (m->measured != NULL) {
        h = hv_hash(h, m->grid_tp, m->n_grid_tp * sizeof *m->grid_tp);
        h = hv_hash(h, m->grid_batch, m->n_grid_batch * sizeof *m->grid_batch);
    }
    for (size_t i = 0; i < m->n_devices; i++) {
        h = hash_text(h, m->devices[i]);
    }
    for (size_t i = 0; m->measured && i < m->n_blocks; i++) {
        const struct hv_measured_layer *l = &m->measured[i];
        for (size_t d = 0; d < m->n_devices * m->n_grid_tp * m->n_grid_batch; d++) {
            h = hash_num(hash_num(h, l->forward_s[d]), l->backward_s[d]);
        }
        for (size_t d = 0; d < m->n_devices; d++) {
            h = hash_num(h, l->update_s[d]);
        }
        h = hash_num(hash_num(h, l->parameter_bytes), l->activation_bytes);
        h = hash_num(hash_num(h, l->output_bytes), l->transfer_s);
        h = hash_num(hash_text(h, l->name), l->parallel_frac);
        if (!hv_measured_is_whole(l)) {
            h = hash_num(hash_pieces(h, &l->pieces, m->n_devices + 1), l->forward_only);
        }
    }
    return h;
}

static uint64_t hash_op(uint64_t h, const struct hv_graph_op *o)
{
    h = hash_text(hash_text(hash_text(hash_text(h, o->id), o->op), o->group), o->device_class);
    for (size_t i = 0; i < o->n_out_dims; i++) {
        h = hash_text(h, o->out_dims[i]);
    }
    h = hash_text(h, "/");
    for (size_t i = 0; i < o->n_contract_dims; i++) {
        h = hash_text(h, o->contract_dims[i]);
    }
    h = hash_num(hash_num(h, o->flops), o->parameter_bytes);
    return hash_num(hash_num(h, o->bytes), o->time_s);
}

void hv_model_finish(struct hv_model *m)
{
    const int parts[] = {(int)m->kind,    m->hidden,          m->vocab,
                         m->max_sequence, m->tied_embeddings, m->causal,
                         (int)m->norm,    (int)m->position,   m->patch_tokens};
    uint64_t h = hv_hash(HV_HASH_START, parts, sizeof parts);
    for (size_t i = 0; m->blocks && i < m->n_blocks; i++) {
        h = hash_block(h, &m->blocks[i]);
    }
    h = hash_extra(hash_extra(h, m->embedding_extra), m->head_extra);
    h = hash_measured(h, m);
    for (size_t i = 0; i < m->n_dims; i++) {
        h = hash_num(hash_text(h, m->dims[i].name), (double)m->dims[i].size);
    }
    for (size_t i = 0; i < m->n_ops; i++) {
        h = hash_op(h, &m->ops[i]);
    }
    for (size_t i = 0; i < m->n_modules; i++) {
        h = hash_text(h, m->modules[i].name);
        h = hv_hash(h, &m->modules[i].model->hash, sizeof m->modules[i].model->hash);
    }
    for (size_t i = 0; i < m->n_edges; i++) {
        h = hv_hash(h, &m->edges[i], sizeof m->edges[i]);
    }
    m->hash = h;
}
