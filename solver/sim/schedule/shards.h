/**
 * Weights that are sharded over data-parallel ranks under a schedule: how often a rank gathers the
 * chunks that it computes, and how often it reduces their gradients.
 */
#ifndef HV_SOLVER_SIM_SCHEDULE_SHARDS_H
#define HV_SOLVER_SIM_SCHEDULE_SHARDS_H

#include "solver/sim/schedule/schedule.h"

/**
 * Counts the gathers and reductions of every rank, in an in-order stream beside its operations. A
 * rank holds the `window` ≥ 1 chunks whole that its operations use next, itself included: before
 * each operation (an overlapped pair is one) chunks outside of the window are given up, and those
 * inside that are not held are gathered, not once per micro-batch. A chunk's gradients are reduced
 * once, after its last backward operation. Source of the rule: torch 2.15,
 * distributed/pipelining/schedules.py, _add_unshard_reshard and _add_reduce_grad.
 * @param gathers, reductions  [ranks]
 *
 * O(ops · chunks of a rank · window).
 */
void hv_schedule_shards(const struct hv_schedule *s, int32_t window, int32_t *gathers,
                        int32_t *reductions);

#endif
