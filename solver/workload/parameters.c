/* Parameters of blocks, of the ends of a model, and of models. */
#include <math.h>
#include <stdlib.h>

#include "solver/base/units.h"
#include "solver/workload/graph/work.h"
#include "solver/workload/tensors.h"

/* Megatron pads the vocabulary to a multiple of this per tensor-parallel rank. */
#define VOCAB_MULTIPLE 128.0

/* Parameters of a half of a block, of the routed experts or of the rest. */
static double half_parameters(const struct hv_model *m, const struct hv_block *b, bool feed_forward,
                              bool routed)
{
    struct hv_weight list[HV_HALF_TENSORS];
    size_t n = hv_half_tensors(m, b, feed_forward, list);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += list[i].routed == routed ? list[i].parameters : 0;
    }
    return sum;
}

double hv_block_attention_parameters(const struct hv_model *m, const struct hv_block *b)
{
    return half_parameters(m, b, false, false);
}

double hv_block_ffn_parameters(const struct hv_model *m, const struct hv_block *b)
{
    return half_parameters(m, b, true, false);
}

double hv_block_expert_parameters(const struct hv_model *m, const struct hv_block *b)
{
    return half_parameters(m, b, true, true);
}

double hv_model_embedding_parameters(const struct hv_model *m)
{
    double table = m->position == HV_POSITION_LEARNED ? (double)m->max_sequence * m->hidden : 0;
    return (double)m->vocab * m->hidden + table + m->embedding_extra;
}

double hv_model_head_parameters(const struct hv_model *m)
{
    return (m->tied_embeddings ? 0 : (double)m->vocab * m->hidden) + hv_norm_parameters(m) +
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
        if (m->tensors != NULL) { /* operators may share them */
            return hv_tensor_graph_parameters(m->tensors);
        }
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
