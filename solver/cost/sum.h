/** Sums of passes and memories of pieces that run one after the other on the same devices. */
#ifndef HV_SOLVER_COST_SUM_H
#define HV_SOLVER_COST_SUM_H

#include "solver/base/vec.h"
#include "solver/cost/stage/stage_int.h"

/** Passes added so far. Starts as {0}; hv__end_sum frees it. */
struct hv__sum_of_passes {
    struct hv_pass pass;
    HV_VEC(struct hv_milestone) milestones;
};

/** Adds the pass of the next piece in model order; its backward pass comes first. `first2` is added
 * to the half blocks of its milestones. O(milestones). */
void hv__add_pass(struct hv__sum_of_passes *sum, const struct hv_pass *x, int first2);
/** Writes the sum to `out`, with its milestones in the memo of `k`, and frees it. O(milestones). */
void hv__end_sum(struct hv__context *k, struct hv__sum_of_passes *sum, struct hv_pass *out);
/** Adds the memory of a piece; `again`: it is not the first, and what the runtime needs counts
 * once. O(1). */
void hv__add_memory(const struct hv_memory *x, bool again, struct hv_memory *o);

#endif
