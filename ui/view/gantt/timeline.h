/** A judged plan's timeline as a source for the Gantt painter. */
#ifndef HV_UI_VIEW_GANTT_TIMELINE_H
#define HV_UI_VIEW_GANTT_TIMELINE_H

#include "solver/eval/eval.h"
#include "ui/view/gantt/view.h"

/**
 * One lane per pipeline rank: its operations, and in its idle time the reductions and gathers of
 * which it is part. Borrows the timeline. Queries are O(log spans).
 */
struct hv_gantt_source hv_gantt_timeline_source(const struct hv_timeline *t);
/** The lines of one of the timeline's `tracks`: rows, and below each the dp ranks that differ, its
 * reductions and its transfers. Queries are O(log spans + dp). Borrows the timeline. */
struct hv_gantt_source hv_gantt_tracks_source(const struct hv_timeline_tracks *tracks);
/** The timeline's record of a span returned by the source. */
const struct hv_timeline_op *hv_gantt_timeline_op(const struct hv_timeline *t,
                                                  const struct hv_gantt_span *s);
/** Appends which stages hold the critical path: "s2 holds 12 of 13.7 s, s0 0.8 s, transfers 0.1 s",
 * the longest first; nothing where no path is known. O(rows²). */
void hv_gantt_path_text(const struct hv_timeline *t, struct hv_str *out);

#endif
