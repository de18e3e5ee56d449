/**
 * Activations that a rank has no place for: which of them leave for the rank that keeps them, when
 * they may leave, and when they may come back.
 */
#ifndef HV_SOLVER_SIM_SCHEDULE_EVICTIONS_H
#define HV_SOLVER_SIM_SCHEDULE_EVICTIONS_H

#include "solver/sim/schedule/schedule.h"

/** Marks that there is no such operation. */
#define HV_NO_OP SIZE_MAX

/** One activation that leaves its rank and comes back. Operations are positions in
 * hv_schedule.ops. */
struct hv_eviction {
    int32_t mb;
    size_t forward;  /**< makes it; it leaves when this has ended */
    size_t backward; /**< needs it back */
    size_t place_of; /**< a later forward that takes the place it leaves, or HV_NO_OP: its place is
                        taken by an activation that comes back, or by none */
    /** What leaves the place into which it comes back: the backward that ends, or (HV_NO_OP) the
     * eviction of that number on the same rank; −1 with HV_NO_OP: the place was never taken. */
    size_t after_op;
    int32_t after_eviction;
};

/**
 * The evictions of one rank with a stash (hv_schedule.stash), in the order in which they leave and
 * come back; *out = NULL and 0 where it keeps everything. The rank has `stash` places, at least 2.
 * A forward takes one from its start on, an activation that comes back from the start of its
 * transfer on; a backward gives one back at its end, an eviction when it has left. An activation
 * leaves after its forward unless it is among the first stash − 1 that backwards need at the next
 * forward, and comes back as soon as there is a place that no forward takes next: with two
 * transfers for each forward and backward of the steady state (BPipe, ICML 2023, section 3). Needs
 * backwards in the order of the forwards and one stage per rank, as every schedule with a stash has
 * them. O(ops of the rank).
 */
size_t hv_schedule_evictions(struct hv_arena *a, const struct hv_schedule *s, int32_t rank,
                             const struct hv_eviction **out);

#endif
