/** The picker of the Gantt screen: all schedules, micro-batches, chunks or degrees that the plan
 * can have, each with its figures; the one under the cursor is tried in the lanes. */
#ifndef HV_UI_SCREENS_GANTT_PICK_H
#define HV_UI_SCREENS_GANTT_PICK_H

#include "solver/base/vec.h"
#include "ui/lever/lever.h"
#include "ui/view/app/app.h"

struct hv_gantt_screen;
struct hv_ui;

/** Its tabs, in order. */
enum hv_gantt_pick_tab {
    HV_PICK_SCHEDULE,
    HV_PICK_MICRO,
    HV_PICK_CHUNKS,
    HV_PICK_DEGREES,
    HV_PICK_TAB_N
};
/** Orders of the rows, in the order of the key. */
enum hv_gantt_pick_sort {
    HV_PICK_BY_STEP,
    HV_PICK_BY_BUBBLE,
    HV_PICK_BY_PEAK,
    HV_PICK_BY_NAME,
    HV_PICK_SORT_N
};

/** A value of a lever with the figures of the plan that has it. */
struct hv_gantt_choice {
    size_t lever; /**< of the trial's levers */
    double value;
    bool now;          /**< the value that the trial, or the plan, has */
    bool search;       /**< a schedule that is searched: only tried when it is chosen */
    bool done, failed; /**< was judged; cannot be (why) */
    struct hv_figures figures;
    size_t full_stage, n_stages; /**< fullest stage, counted through the replica entries; all */
    double over_bytes;           /**< more than it has, <= 0: it fits */
    char why[120];               /**< reason, "" = none */
};

/** State. `{0}` is closed. Owner: hv_gantt_pick_free. */
struct hv_gantt_pick {
    bool open;
    enum hv_gantt_pick_tab tab;
    enum hv_gantt_pick_sort sort;
    bool all; /**< rows that do not apply are listed */
    HV_VEC(struct hv_gantt_choice) rows;
    HV_VEC(size_t) order; /**< shown rows */
    size_t cursor, n_done;
};

/** Frees the rows; closed. */
void hv_gantt_pick_free(struct hv_gantt_pick *p);
/** True where the picker is open and its plan is still the one shown. */
bool hv_gantt_pick_is_open(const struct hv_gantt_screen *st, const struct hv_ui *ui);
/** Opens a tab with the cursor on the present value, moved by `by` rows; says why it cannot. */
void hv_gantt_pick_show(struct hv_gantt_screen *st, struct hv_app *app, enum hv_gantt_pick_tab tab,
                        int by);
/** Opens it, or acts on the open one; false when the action is none of its. */
bool hv_gantt_pick_action(struct hv_gantt_screen *st, struct hv_app *app, enum hv_action a);
/** Judges rows until `budget_s` is spent, at least one; true where something changed. */
bool hv_gantt_pick_some(struct hv_gantt_screen *st, struct hv_ui *ui, double budget_s);
/** True while rows are to be judged. */
bool hv_gantt_pick_is_busy(const struct hv_gantt_screen *st, const struct hv_ui *ui);
/** Moves the cursor to the row at a cell of r and tries it, keeps it where it is the cursor's;
 * false where none is. */
bool hv_gantt_pick_click(struct hv_gantt_screen *st, struct hv_app *app, struct hv_rect r, int x,
                         int y);
/** Draws it into r. */
void hv_gantt_pick_draw(const struct hv_gantt_screen *st, struct hv_grid *g, struct hv_rect r);
/** First row shown in a panel of h rows inside its frame. */
size_t hv_gantt_pick_top(const struct hv_gantt_pick *p, int h);
/** Rows that it wants with its frame in a body of this height. */
int hv_gantt_pick_rows(const struct hv_gantt_pick *p, int body_h);

#endif
