/**
 * Transformers as graphs in long form: dense, with grouped or latent attention, with experts. What
 * stands in the model's blocks becomes operators over named dimensions: batch, tokens, keys,
 * hidden, heads or kv_heads and group, head_dim, ffn, experts, capacity, vocab.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_MODEL_TRANSFORMER_H
#define HV_SOLVER_WORKLOAD_GRAPH_MODEL_TRANSFORMER_H

#include "solver/workload/graph/tensor_graph.h"
#include "solver/workload/model.h"

/** Size of what a graph computes. */
struct hv_graph_of_model {
    int64_t sequences, tokens; /**< of one sequence; images have patch_tokens instead */
    enum hv_dtype dtype;       /**< of weights and activations */
    bool loss;                 /**< ends with the cross-entropy of every token */
};

/**
 * The graph of a transformer. Names: "layer3.up" is an operator, "layer3.up.weight" its weight.
 * Tokens of an expert are as many for all ("capacity": all copies of tokens divided by experts,
 * rounded up), chosen by rows. Rotary positions are a product with a table, sliding windows a mask.
 * *out lives in the arena. Errors: HV_EINPUT for models of another kind, for weights that the model
 * gives beside its shape (`*_extra`), and for tokens in several dimensions (`attends`).
 */
enum hv_status hv_transformer_graph(const struct hv_model *m, const struct hv_graph_of_model *q,
                                    struct hv_arena *arena, struct hv_tensor_graph *out,
                                    struct hv_err *err) HV_NODISCARD;

#endif
