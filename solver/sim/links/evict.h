/** The moves of a schedule whose ranks keep activations for each other (hv_schedule.stash). */
#ifndef HV_SOLVER_SIM_LINKS_EVICT_H
#define HV_SOLVER_SIM_LINKS_EVICT_H

#include "solver/sim/links/links.h"

/** Lane on which the activations of a rank leave for rank n_ranks − 1 − r, and on which they come
 * back. Lanes of ranks that keep everything have no moves. */
static inline int32_t hv_evict_lane(int32_t rank, bool back)
{
    return 2 * rank + back;
}

/**
 * The evictions of all ranks (sim/schedule/evictions.h) as moves, each with scale 1: an activation
 * leaves when its forward has ended and comes back, behind it, when there is a place for it; the
 * forward that takes its place waits for the one, its backward for the other. Move 2k comes back as
 * move 2k + 1. In `a`; *n = how many, 0 without a stash. O(operations).
 */
struct hv_link_move *hv_evict_moves(struct hv_arena *a, const struct hv_pipe *g, size_t *n);

#endif
