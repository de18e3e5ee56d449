/** The text panel below the Gantt chart: the operation at the cursor, the marked area, the plan. */
#ifndef HV_UI_SCREENS_GANTT_PANEL_H
#define HV_UI_SCREENS_GANTT_PANEL_H

#include "ui/screens/facts/plan_facts.h"
#include "ui/view/gantt/view.h"

/** Content of the Gantt chart: a row with verdict and timeline. */
struct hv_gantt_subject {
    struct hv_plan_facts facts; /**< verdict->timeline is set */
    struct hv_gantt_source src;
    const struct hv_gantt_state *view;
    const struct hv_timeline_tracks *tracks; /**< what the source's lanes are */
    bool has_ghost;                          /**< a trial is shown … */
    struct hv_gantt_source ghost;            /**< … over this */
    const struct hv_verdict *before;         /**< of the ghost */
};

/** Draws the panel; with 110 columns or more the plan's time and memory stand beside it. O(lines).
 */
void hv_gantt_panel_draw(const struct hv_gantt_subject *s, struct hv_grid *g, struct hv_rect r);
/** The compute operation at the cursor, NULL = there is none. */
const struct hv_span *hv_gantt_compute_at_cursor(const struct hv_gantt_subject *s);
/** Appends "f3 of s2" or "idle" for the cursor. */
void hv_gantt_cursor_text(const struct hv_gantt_subject *s, struct hv_str *out);

#endif
