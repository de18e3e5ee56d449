/**
 * Weight tensors of half a block, as frameworks keep them: matrices that multiply the same input
 * are one tensor (queries, keys and values; gate and up), and so are those of all routed experts
 * that a rank holds (Megatron-LM: linear_qkv, linear_proj, linear_fc1, linear_fc2; torchtitan:
 * GroupedExperts). A bias counts with its matrix. Counts, not bytes. Thread: any.
 */
#ifndef HV_SOLVER_WORKLOAD_TENSORS_H
#define HV_SOLVER_WORKLOAD_TENSORS_H

#include "solver/workload/model.h"

/** Most tensors of a half. */
enum { HV_HALF_TENSORS = 9 };

/** A tensor of weights. */
struct hv_weight {
    double parameters; /**< below 0: of those before it, so many belong to an earlier block */
    bool routed;       /**< of the routed experts, all of them together */
};

/** Weights of one norm: a scale, and with LayerNorm a shift. */
double hv_norm_parameters(const struct hv_model *m);
/**
 * Lists the tensors of the attention half of a block, or of its feed-forward half, in the order in
 * which a backward pass makes their gradients: from the output of the half to its norm. `out` has
 * room for HV_HALF_TENSORS. Returns their number; 0: the block has no such half. O(1).
 */
size_t hv_half_tensors(const struct hv_model *m, const struct hv_block *b, bool feed_forward,
                       struct hv_weight *out);

#endif
