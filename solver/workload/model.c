/*
 * Models: names, ownership, content hash. FLOPs are in flops.c; files are read in
 * solver/io/own.
 */
#include "solver/workload/model.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/workload/graph/tensor_graph.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    if (m->tensors != NULL && m->tensors->batch != HV_NO_DIM) {
        h = hash_text(h, m->tensors->dims[m->tensors->batch].name);
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

double hv_graph_op_parameters(const struct hv_model *m, size_t op)
{
    const struct hv_tensor_graph *g = m->tensors;
    double sum = 0;
    for (size_t i = 0; i < g->ops[op].n_in; i++) {
        const struct hv_tensor *t = &g->tensors[g->ops[op].in[i].tensor];
        double n = t->role == HV_TENSOR_PARAMETER ? 1 : 0;
        for (size_t d = 0; d < t->n_dims; d++) {
            n *= (double)g->dims[t->dim[d]].size;
        }
        sum += n;
    }
    return sum;
}
