/** Arrows of a trace: which operation sends a transfer, and which one waits for it. */
#ifndef HV_SOLVER_IO_EXPORT_TRACE_FLOW_H
#define HV_SOLVER_IO_EXPORT_TRACE_FLOW_H

#include "solver/eval/eval.h"

/** The operations of all rows, found by row, direction and micro-batch. */
struct hv__flows;

/** Makes the index in the arena. O(spans · log spans). */
struct hv__flows *hv__flows_new(struct hv_arena *arena, const struct hv_timeline *t);
/** The operation that a transfer comes from: the last one of its stage and micro-batch on the row
 * that ends before the transfer begins. NULL: none is drawn. O(log spans + operations of one
 * micro-batch on the row). */
const struct hv_span *hv__flow_from(const struct hv__flows *f, const struct hv_span *hop);
/** The operation that the transfer is for: the first one of its micro-batch on the receiving row
 * that begins after it. NULL: none is drawn. */
const struct hv_span *hv__flow_to(const struct hv__flows *f, const struct hv_span *hop);

#endif
