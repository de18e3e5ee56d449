/** Rings of context parallelism inside the passes of a row, in words. */
#ifndef HV_SOLVER_EVAL_TIMELINE_RING_TEXT_H
#define HV_SOLVER_EVAL_TIMELINE_RING_TEXT_H

#include "solver/base/str.h"
#include "solver/eval/timeline/timeline.h"

/** Which rings are asked for. */
enum hv_timeline_ring_pass { HV_RING_ANY, HV_RING_FORWARD, HV_RING_BACKWARD };

/** The ring of a row that leaves most of its hops exposed in one pass, of the passes and the chunk
 * asked for (−1 = all); the first of equals, NULL = there is none. O(rings · steps). */
const struct hv_timeline_ring *hv_timeline_ring_most(const struct hv_timeline_row *row,
                                                     enum hv_timeline_ring_pass pass, int chunk);
/** Appends which hop of a ring is not hidden, and by how much: "forward ring of 8: hop 3 of 7 not
 * hidden, 0.4 ms a layer, 3.2 ms a pass (keys and values; all hops 5.1 ms)"; or that all are
 * hidden. O(steps). */
void hv_timeline_ring_text(const struct hv_timeline_ring *ring, struct hv_str *out);
/** Appends one step of a ring: "step 2  hop 3 ms to 6 ms  work 6 ms to 8 ms  waited 1 ms". O(1). */
void hv_timeline_ring_step_text(const struct hv_timeline_ring *ring, size_t step,
                                struct hv_str *out);

#endif
