/** Private to the files of the Plans screen: its state, the rows of one frame, its layout. */
#ifndef HV_UI_SCREENS_PLANS_PLANS_INT_H
#define HV_UI_SCREENS_PLANS_PLANS_INT_H

#include "solver/base/vec.h"
#include "ui/screens/common/ui.h"
#include "ui/screens/plans/panels.h"

/** Panels; the last one is there while comparing. */
enum hv_plans_panel {
    HV_PLANS_TABLE,
    HV_PLANS_SCATTER,
    HV_PLANS_DETAILS,
    HV_PLANS_COMPARE,
    HV_PLANS_PANEL_N
};

/** Fields that can be an axis of the scatter. */
#define HV_PLANS_AXES 9
/** Plans that are compared at most. */
#define HV_PLANS_COMPARED 8

/** State of the screen. */
struct hv_plans {
    struct hv_table table;
    HV_VEC(uint32_t) marks; /**< rows */
    enum hv_plans_panel focus;
    size_t detail_top;
    unsigned axis_x, axis_y; /**< below HV_PLANS_AXES */
    bool axis_chosen;        /**< an axis was chosen by hand */
    bool compare, front_only;
    char filter[64];
    uint32_t asked; /**< row a question is about */
};

/** The rows shown, with their facts. Made for one event or frame. */
struct hv_plans_list {
    const struct hv_plans *st;
    struct hv_plan_facts *facts; /**< of all rows, in sort order */
    size_t n;
    size_t *shown; /**< numbers in facts */
    size_t n_shown;
};

/** Where the panels are; empty ones are not shown. */
struct hv_plans_places {
    struct hv_rect r[HV_PLANS_PANEL_N];
    int table_rows; /**< below the head */
};

/** Arguments of an action. */
struct hv_plans_at {
    struct hv_plans *st;
    struct hv_app *app;
    struct hv_session *s;
    struct hv_plans_list *l;
    uint32_t id; /**< row under the cursor, or 0 */
};

/** Actions on the row under the cursor; false when it is none of them. */
bool hv_plans_row_action(const struct hv_plans_at *at, enum hv_action a);

/** Appearance of the table. */
extern const struct hv_table_look hv_plans_look;

/** Evaluates plans without a verdict and selects the rows that pass the filter. Free with
 * hv_plans_list_free. */
struct hv_plans_list hv_plans_list(const struct hv_plans *st, struct hv_session *s);
void hv_plans_list_free(struct hv_plans_list *l);
/** Table source over a list. */
struct hv_table_source hv_plans_source(const struct hv_plans_list *l);
/** The table with its cursor on the session's selected row. */
struct hv_table hv_plans_table(const struct hv_plans *st, const struct hv_session *s,
                               const struct hv_table_source *src, int height);
/** Row under the cursor, or 0. */
uint32_t hv_plans_cursor(const struct hv_table *t, const struct hv_plans_list *l);
/** Number of a row's mark, or the number of marks when it has none. */
size_t hv_plans_mark(const struct hv_plans *st, uint32_t id);
/** The plans compared: the marked ones, or the one marked and the one under the cursor. Returns how
 * many, 0 when there are not two. */
size_t hv_plans_compared(const struct hv_plans_list *l, uint32_t cursor,
                         struct hv_plan_facts out[HV_PLANS_COMPARED]);
/** The plan of the Pareto front that lies next to a row along the x axis (direction 1 or -1), 0
 * when there is none. O(rows²). */
uint32_t hv_plans_front_step(const struct hv_plans_list *l, uint32_t id, int direction);
/** A click on the head sorts by the column at x; a second one turns the order round. */
void hv_plans_click_head(struct hv_session *s, int x);
/** Panels for a body. */
struct hv_plans_places hv_plans_place(const struct hv_plans *st, struct hv_rect body);
/** The scatter over the axes chosen. */
struct hv_plan_scatter hv_plans_scatter(const struct hv_plans_list *l, uint32_t selected);
/** Draws everything. */
void hv_plans_draw(const void *state, const void *model, const struct hv_view_ctx *ctx);

#endif
