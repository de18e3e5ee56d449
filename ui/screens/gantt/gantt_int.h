/** Private to the files of the Gantt screen: the plan shown, a trial of it, and a second plan. */
#ifndef HV_UI_SCREENS_GANTT_GANTT_INT_H
#define HV_UI_SCREENS_GANTT_GANTT_INT_H

#include "solver/eval/experts/loads.h"
#include "ui/lever/lever.h"
#include "ui/screens/facts/shown.h"
#include "ui/screens/gantt/panel.h"
#include "ui/screens/gantt/pick.h"

/** A trial of a plan with another schedule, micro-batch or number of chunks. */
struct hv_gantt_try {
    uint32_t row;       /**< 0 = none */
    const json_t *plan; /**< tree it was made from */
    uint64_t generation[HV_DOC_N];
    struct hv_levers levers;
    double *values;
    double before_s;        /**< step of the plan as it is */
    struct hv_trial *trial; /**< NULL = nothing is changed */
};

/** Loads of ranks with experts, in place of the lanes. */
struct hv_gantt_experts {
    bool on;
    uint32_t row;       /**< the data is of this row, 0 = there is none */
    const json_t *plan; /**< tree it was made from */
    uint64_t generation[HV_DOC_N];
    struct hv_arena arena; /**< of all below */
    struct hv_expert_layer *layers;
    size_t n_layers, layer; /**< layer: the one shown */
    bool ok;                /**< the loads are known, else err says why not */
    struct hv_expert_loads loads;
    struct hv_err err;
    size_t iteration, rank, top; /**< cursor; first rank shown */
};

/** State of the screen. */
struct hv_gantt_screen {
    struct hv_gantt_state view;
    uint32_t row;    /**< the window belongs to this row, 0 = none yet */
    double end_s;    /**< and to a timeline of this length */
    bool flip;       /**< details hidden (full screen) or shown (small screen) */
    unsigned tracks; /**< HV_TRACKS_PARTS, HV_TRACKS_LINKS: what has lanes of its own */
    bool split;      /**< a second plan below, on the same axis */
    uint32_t other;  /**< that plan's row, 0 = the next one */
    bool dragging;
    int drag_x;
    struct hv_gantt_try attempt;
    struct hv_gantt_pick pick;
    struct hv_gantt_experts *experts; /**< refreshed also while drawing; owned, NULL = none yet */
};

/** The row to draw: the selected one of this screen, else that of all screens about one plan. */
static inline const struct hv_row *hv_gantt_row(const struct hv_ui *ui)
{
    const struct hv_row *row = hv_session_row(ui->session, ui->gantt_row);
    return row != NULL ? row : hv_ui_plan_row(ui->session);
}
/** The source to draw, and the state's window fitted to it in *view; false where there is no
 * timeline, with the reason in err. */
bool hv_gantt_subject_get(const struct hv_gantt_screen *st, const struct hv_ui *ui,
                          struct hv_gantt_state *view, struct hv_gantt_subject *out,
                          struct hv_err *err);
/** The second plan of the split view; false when there is none. */
bool hv_gantt_lower_get(const struct hv_gantt_screen *st, const struct hv_ui *ui,
                        struct hv_gantt_subject *out);
/** The line that shows a row of the timeline. */
size_t hv_gantt_lane_of_row(const struct hv_timeline_tracks *tracks, size_t row);
/** The row that is shown below, the next with a timeline when the one chosen is gone; 0 = none. */
uint32_t hv_gantt_other(const struct hv_gantt_screen *st, const struct hv_ui *ui, int step);

/** Draws the progress of the row's timeline, while it is made or after it was stopped; false where
 * the timeline is not pending. */
bool hv_gantt_wait_draw(const struct hv_ui *ui, struct hv_grid *g, struct hv_rect body);
/** Keys available while the timeline is pending, or without a plan; NULL = those of the chart. */
const enum hv_action *hv_gantt_wait_keybar(const struct hv_ui *ui);
/** Stops or restarts the timeline, or selects another plan; false for other actions. */
bool hv_gantt_wait_action(struct hv_ui *ui, struct hv_app *app, enum hv_action a);
/** Exports to the file that the user entered: a picture, a trace or text by the name's ending. ctx:
 * the screen. */
unsigned hv_gantt_answer_export(void *ctx, struct hv_app *app, const char *path);

/** True where a trial of this row in its present state is shown. */
bool hv_gantt_try_is_on(const struct hv_gantt_try *t, const struct hv_session *s,
                        const struct hv_row *row);
/** True where the levers are those of this row in its present state. */
bool hv_gantt_try_is_current(const struct hv_gantt_try *t, const struct hv_session *s,
                             const struct hv_row *row);
/** Reads the levers of the row as it is now; those turned stay turned while it is the same. Errors:
 * as hv_levers_read, HV_ENO without a plan. */
enum hv_status hv_gantt_try_prepare(struct hv_gantt_try *t, struct hv_session *s,
                                    const struct hv_row *row, struct hv_err *err) HV_NODISCARD;
/** Turns a lever and judges; the trial before and its value stay where that fails. */
enum hv_status hv_gantt_try_set(struct hv_gantt_try *t, struct hv_session *s, size_t lever,
                                double value, struct hv_err *err) HV_NODISCARD;
/** All levers as they are in the plan, no trial; the levers stay. */
void hv_gantt_try_back(struct hv_gantt_try *t);
/** Makes the trial a plan of its own, as one step of undo; false, with a message, where it cannot.
 */
bool hv_gantt_try_keep(struct hv_gantt_try *t, struct hv_app *app);
/** Actions that switch, keep and drop; false when it is none. */
bool hv_gantt_try_action(struct hv_gantt_screen *st, struct hv_app *app, enum hv_action a);
/** Appends the changes of the trial and their result. */
void hv_gantt_try_status(const struct hv_gantt_screen *st, const struct hv_gantt_subject *s,
                         struct hv_str *out);
/** Brings the loads up to date and shows them; false, with a message, where there are none. */
bool hv_gantt_experts_open(struct hv_gantt_screen *st, struct hv_app *app,
                           const struct hv_gantt_subject *subject);
/** Draws strips and box. O(ranks shown · iterations). */
void hv_gantt_experts_draw(struct hv_gantt_experts *x, struct hv_session *s,
                           const struct hv_gantt_subject *subject, struct hv_grid *g,
                           struct hv_rect body);
/** Appends the cursor's iteration and rank. */
void hv_gantt_experts_status(const struct hv_gantt_experts *x, const char *name,
                             struct hv_str *out);
/** Moves and switches of this view; false when the action is none. */
bool hv_gantt_experts_action(struct hv_gantt_experts *x, struct hv_app *app,
                             const struct hv_gantt_subject *subject, enum hv_action a);
/** Moves the cursor to a cell; false where there is no strip. */
bool hv_gantt_experts_press(struct hv_gantt_experts *x, const struct hv_gantt_subject *subject,
                            struct hv_rect body, int column, int row);
/** Frees the data. */
void hv_gantt_experts_free(struct hv_gantt_experts *x);

/** Drops the trial and frees. */
void hv_gantt_try_free(struct hv_gantt_try *t);

#endif
