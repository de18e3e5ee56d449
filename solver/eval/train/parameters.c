/** Parameters of the blocks, embeddings and heads that a reduction sums the gradients of. */
#include "solver/eval/train/reduce_int.h"

struct hv__parameters hv__range_parameters(struct hv_cost *k, const struct hv_model_leaf *leaves,
                                           size_t n_leaves, struct hv_range r)
{
    double weight_bytes = hv_job_weight_bytes(hv_cost_job(k));
    struct hv__parameters p = {0};
    size_t leaf = 0;
    for (int h = r.from2; h < r.to2; h++) {
        while (leaf + 1 < n_leaves && (size_t)h / 2 >= leaves[leaf + 1].first) {
            leaf++;
        }
        const struct hv_model *m = leaves[leaf].model;
        size_t i = (size_t)h / 2 - leaves[leaf].first;
        if (m->kind == HV_MODEL_LAYERS) {
            p.dense += m->measured[i].parameter_bytes / weight_bytes / 2;
        } else if (m->kind == HV_MODEL_GRAPH) {
            p.dense += hv_or(m->ops[i].parameter_bytes, 0) / weight_bytes / 2;
        } else if (h % 2 == 0) {
            p.dense += hv_block_attention_parameters(m, &m->blocks[i]);
        } else {
            p.dense += hv_block_ffn_parameters(m, &m->blocks[i]);
            p.experts += hv_block_expert_parameters(m, &m->blocks[i]);
        }
    }
    return p;
}

struct hv__parameters hv__segment_parameters(const struct hv__lowered *l,
                                             const struct hv__segment *s)
{
    if (s->from2 < 0) {
        const struct hv_model *m = l->leaves.items[hv__end_leaf(s->from2)].model;
        return (struct hv__parameters){hv__end_is_head(s->from2) ? hv_model_head_parameters(m)
                                                                 : hv_model_embedding_parameters(m),
                                       0};
    }
    return hv__range_parameters(l->k, l->leaves.items, l->leaves.n,
                                (struct hv_range){s->from2, s->to2});
}
