/** A judged plan's timeline as a source for the Gantt painter. */
#ifndef HV_UI_VIEW_GANTT_TIMELINE_H
#define HV_UI_VIEW_GANTT_TIMELINE_H

#include "solver/eval/eval.h"
#include "ui/view/gantt_view.h"

/**
 * One lane per pipeline rank: its operations, and where those leave it idle the reductions and
 * gathers it takes part in. Borrows the timeline. Queries are O(log spans).
 */
struct hv_gantt_source hv_gantt_timeline_source(const struct hv_timeline *t);
/** Two lanes per rank: what it computes, and below it what goes over its links. Row = lane / 2. */
struct hv_gantt_source hv_gantt_links_source(const struct hv_timeline *t);
/** The timeline's own record of a span the source gave out. */
const struct hv_timeline_op *hv_gantt_timeline_op(const struct hv_timeline *t,
                                                  const struct hv_gantt_span *s);

#endif
