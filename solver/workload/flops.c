/*
 * FLOPs of one forward pass. A multiply-add counts as two; norms, activations and softmax are left
 * out, as is usual in the literature.
 */
#include "solver/workload/model.h"

#include <stdlib.h>

#include "solver/base/units.h"
#include "solver/workload/graph/tensor_graph.h"
#include <math.h>
#include <string.h>

/* Keys that one query attends to on average: s, s/2 when causal counts half, at most 2 · window (w
 * when half). */
static double attention_context(const struct hv_block *b, double sequence, bool causal_half)
{
    double all = b->reach > 0 ? fmin(sequence, b->reach) : sequence;
    double s = b->window > 0 ? fmin(all, 2.0 * b->window) : all;
    return causal_half ? s / 2 : s;
}

/* Every weight beside the usual matrices works on every token; shared ones are counted already. */
static double extra_flops(double weights)
{
    return 2 * fmax(weights, 0);
}

double hv_block_attention_flops(const struct hv_model *m, const struct hv_block *b)
{
    double h = m->hidden, a = b->heads, extra = extra_flops(b->attention_extra);
    const struct hv_mla *x = &b->mla;
    if (x->kv_rank) {
        double qk = x->nope_dim + x->rope_dim;
        double q = x->q_rank ? h * x->q_rank + x->q_rank * a * qk : h * a * qk;
        double kv = h * (x->kv_rank + x->rope_dim) + x->kv_rank * a * (x->nope_dim + x->value_dim);
        return 2 * (q + kv + a * x->value_dim * h) + extra;
    }
    return 2 * h * (a + 2.0 * b->kv_heads) * b->head_dim + 2 * a * b->head_dim * h + extra;
}

double hv_block_core_flops(const struct hv_block *b, double sequence, bool causal_half)
{
    double width =
        b->mla.kv_rank ? b->mla.nope_dim + b->mla.rope_dim + b->mla.value_dim : 2.0 * b->head_dim;
    return 2 * b->heads * width * attention_context(b, sequence, causal_half);
}

double hv_block_ffn_flops(const struct hv_model *m, const struct hv_block *b)
{
    double h = m->hidden, mats = hv_ffn_kind_matrices(b->ffn_kind);
    double width = b->ffn;
    if (b->experts) {
        width += (double)b->top_k * b->expert_ffn + (double)b->shared_experts * b->shared_ffn;
    }
    return 2 * mats * h * width + 2 * h * b->experts + extra_flops(b->ffn_extra);
}

static double dim_size(const struct hv_model *m, const char *name)
{
    for (size_t i = 0; i < m->n_dims; i++) {
        if (strcmp(m->dims[i].name, name) == 0) {
            return (double)m->dims[i].size;
        }
    }
    return HV_UNKNOWN;
}

double hv_graph_op_flops(const struct hv_model *m, const struct hv_graph_op *o)
{
    if (hv_known(o->flops)) {
        return o->flops;
    }
    double x = o->n_contract_dims ? 2 : 1;
    for (size_t i = 0; i < o->n_out_dims; i++) {
        x *= dim_size(m, o->out_dims[i]);
    }
    for (size_t i = 0; i < o->n_contract_dims; i++) {
        x *= dim_size(m, o->contract_dims[i]);
    }
    return x;
}

static double transformer_flops(const struct hv_model *m, double sequence, bool causal_half,
                                bool head)
{
    double per_token = head ? 2.0 * m->hidden * m->vocab : 0;
    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct hv_block *b = &m->blocks[i];
        if (b->heads) {
            per_token += hv_block_attention_flops(m, b) +
                         hv_block_core_flops(b, sequence, causal_half && m->causal);
        }
        per_token += hv_block_ffn_flops(m, b);
    }
    return per_token * sequence;
}

double hv_leaf_forward_flops(const struct hv_model_leaf *leaf, double sequence, bool causal_half)
{
    const struct hv_model *m = leaf->model;
    if (m->kind == HV_MODEL_TRANSFORMER) {
        double tokens = m->patch_tokens > 0 ? m->patch_tokens : sequence;
        return transformer_flops(m, tokens, causal_half, !leaf->feeds);
    }
    return hv_model_forward_flops(m, sequence, causal_half);
}

double hv_model_forward_flops(const struct hv_model *m, double sequence, bool causal_half)
{
    double sum = 0;
    switch (m->kind) {
    case HV_MODEL_TRANSFORMER:
        return hv_leaf_forward_flops(&(struct hv_model_leaf){.model = m}, sequence, causal_half);
    case HV_MODEL_GRAPH:
        for (size_t i = 0; i < m->n_ops; i++) {
            sum += hv_graph_op_flops(m, &m->ops[i]);
        }
        if (m->tensors != NULL && m->tensors->batch != HV_NO_DIM) {
            sum /= (double)m->tensors->dims[m->tensors->batch].size;
        }
        return sum;
    case HV_MODEL_MODULES: {
        size_t n = hv_model_n_leaves(m);
        struct hv_model_leaf *leaves = hv_xcalloc(n, sizeof *leaves);
        hv_model_leaves(m, leaves);
        for (size_t i = 0; i < n; i++) {
            sum += hv_leaf_forward_flops(&leaves[i], sequence, causal_half);
        }
        free(leaves);
        return sum;
    }
    case HV_MODEL_LAYERS:
    case HV_MODEL_KIND_N:
        break;
    }
    return HV_UNKNOWN;
}
