/** Screen 4, Plans: the table of runs and plans, two of them compared, a scatter with the Pareto
 * front. Verdicts and storage are in ui/session, drawing is in draw.c, actions on a row are in
 * rows.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/plans/plans.h"
#include "ui/screens/plans/plans_int.h"
#include "ui/view/grid/layout.h"

static void plans_open(void *state, struct hv_app *app)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_plans *st = state;
    st->axis_y = 1;
    if (hv_session_sort_key(s, NULL) ==
        HV_SORT_ID) { /* the fastest first, until another order is chosen */
        hv_session_sort(s, HV_SORT_TIME, false);
    }
}

static void plans_close(void *state, struct hv_app *app)
{
    (void)app;
    struct hv_plans *st = state;
    hv_vec_free(&st->marks);
}

static void plans_status(const void *state, const void *model, struct hv_str *out)
{
    const struct hv_plans *st = state;
    struct hv_session *s = hv_ui_session(model);
    bool descending = false;
    size_t n = 0;
    (void)hv_session_rows(s, &n);
    enum hv_sort key = hv_session_sort_key(s, &descending);
    hv_str_addf(out, "%zu plan%s, %zu marked | sorted by %s%s", n, n == 1 ? "" : "s", st->marks.n,
                hv_sort_name(key), descending ? ", turned" : "");
    const struct hv_row *row = hv_session_row(s, hv_session_selected(s));
    if (row != NULL) {
        struct hv_plan_facts f = hv_plan_facts(s, row);
        struct hv_str why = {0};
        hv_plan_trouble(f.row, f.verdict, &why);
        hv_str_addf(out, " | %s%s%s", row->name, why.n > 0 ? ": " : "", hv_str_cstr(&why));
        hv_str_free(&why);
    }
    hv_str_adds(out, " | P front, ! violation, * marked");
}

static bool can_focus(const struct hv_plans *st, enum hv_plans_panel panel,
                      const struct hv_plans_places *p, bool stacked)
{
    return stacked ? panel != HV_PLANS_COMPARE || st->compare : p->r[panel].w > 0;
}

static void move_focus(struct hv_plans *st, struct hv_rect body, int step)
{
    struct hv_plans_places p = hv_plans_place(st, body);
    bool stacked = hv_layout_stacked(body);
    int i = (int)st->focus;
    for (int tries = 0; tries < HV_PLANS_PANEL_N; tries++) {
        i = (i + step + HV_PLANS_PANEL_N) % HV_PLANS_PANEL_N;
        if (can_focus(st, (enum hv_plans_panel)i, &p, stacked)) {
            st->focus = (enum hv_plans_panel)i;
            return;
        }
    }
}

/* ---- actions ---- */

static unsigned answer_filter(void *ctx, struct hv_app *app, const char *text)
{
    (void)app;
    struct hv_plans *st = ctx;
    (void)snprintf(st->filter, sizeof st->filter, "%s", text);
    return HV_APP_REDRAW;
}

/** Removes marks of deleted rows. */
static void clean_marks(struct hv_plans *st, struct hv_session *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < st->marks.n; i++) {
        if (hv_session_row(s, st->marks.items[i]) != NULL) {
            st->marks.items[kept++] = st->marks.items[i];
        }
    }
    st->marks.n = kept;
}

static void start_compare(const struct hv_plans_at *at)
{
    struct hv_plan_facts set[HV_PLANS_COMPARED];
    at->st->compare = !at->st->compare;
    at->st->detail_top = 0;
    bool stacked = hv_layout_stacked(hv_app_body(at->app));
    if (!at->st->compare) {
        at->st->focus = HV_PLANS_TABLE;
    } else if (hv_plans_compared(at->l, at->id, set) == 0) {
        hv_app_message(at->app, HV_MSG_INFO,
                       "mark two or more plans with Space, or mark one and move to another");
    } else if (stacked) {
        at->st->focus = HV_PLANS_COMPARE;
    }
    if (at->st->focus == HV_PLANS_DETAILS && at->st->compare) {
        at->st->focus = HV_PLANS_COMPARE;
    }
}

static void next_sort(const struct hv_plans_at *at, bool turn)
{
    bool descending = false;
    enum hv_sort key = hv_session_sort_key(at->s, &descending);
    if (turn) {
        hv_session_sort(at->s, key, !descending);
        return;
    }
    key = (enum hv_sort)(((int)key + 1) % HV_SORT_N);
    hv_session_sort(at->s, key, key == HV_SORT_TOKENS || key == HV_SORT_MFU);
}

/** The axis after one; a figure over itself would be a diagonal. */
static unsigned next_axis(unsigned axis, unsigned other)
{
    axis = (axis + 1) % HV_PLANS_AXES;
    return axis == other ? (axis + 1) % HV_PLANS_AXES : axis;
}

/** Actions on the view; false when it is none of them. */
static bool view_action(const struct hv_plans_at *at, enum hv_action a)
{
    struct hv_plans *st = at->st;
    switch ((int)a) {
    case HV_ACT_PANEL_NEXT:
    case HV_ACT_PANEL_PREV:
        move_focus(st, hv_app_body(at->app), a == HV_ACT_PANEL_NEXT ? 1 : -1);
        st->detail_top = 0;
        return true;
    case HV_ACT_SORT:
    case HV_ACT_SORT_REVERSE:
        next_sort(at, a == HV_ACT_SORT_REVERSE);
        /* the cursor stays on its plan, with as much of what is above it as there is room for */
        st->table.top = 0;
        st->table.cursor = (size_t)hv_app_body(at->app).h;
        return true;
    case HV_ACT_FILTER:
        hv_app_ask(at->app, "show only rows with: ", st->filter, answer_filter, st);
        return true;
    case HV_ACT_PLAN_FRONT:
        st->front_only = !st->front_only;
        return true;
    case HV_ACT_PLAN_AXIS_X:
        st->axis_chosen = true;
        st->axis_x = next_axis(st->axis_x, st->axis_y);
        return true;
    case HV_ACT_PLAN_AXIS_Y:
        st->axis_chosen = true;
        st->axis_y = next_axis(st->axis_y, st->axis_x);
        return true;
    case HV_ACT_PLAN_COMPARE:
        start_compare(at);
        return true;
    case HV_ACT_CANCEL:
        if (!st->compare && st->focus == HV_PLANS_TABLE) {
            return false;
        }
        st->compare = false;
        st->focus = HV_PLANS_TABLE;
        return true;
    default:
        return false;
    }
}

/** Scrolls the lower panels. */
static bool scroll_details(struct hv_plans *st, enum hv_action a)
{
    if (st->focus != HV_PLANS_DETAILS && st->focus != HV_PLANS_COMPARE) {
        return false;
    }
    if (a == HV_ACT_UP || a == HV_ACT_TOP) {
        st->detail_top = a == HV_ACT_UP && st->detail_top > 0 ? st->detail_top - 1 : 0;
    } else if (a == HV_ACT_DOWN && st->detail_top < 500) {
        st->detail_top++;
    } else {
        return false;
    }
    return true;
}

/** In the scatter arrows go along the Pareto front. */
static bool walk_front(const struct hv_plans_at *at, enum hv_action a)
{
    bool back = a == HV_ACT_LEFT || a == HV_ACT_UP;
    if (at->st->focus != HV_PLANS_SCATTER || (!back && a != HV_ACT_RIGHT && a != HV_ACT_DOWN)) {
        return false;
    }
    uint32_t id = hv_plans_front_step(at->l, at->id, back ? -1 : 1);
    if (id == 0) {
        hv_app_message(at->app, HV_MSG_INFO, "this is the end of the Pareto front");
    } else {
        hv_session_select(at->s, id);
        at->st->detail_top = 0;
    }
    return true;
}

/** Stores the state of the table and selects the row under its cursor. */
static void settle(struct hv_plans *st, struct hv_session *s, const struct hv_table *t,
                   const struct hv_plans_list *l)
{
    uint32_t id = hv_plans_cursor(t, l);
    st->table = *t;
    st->table.find = NULL;
    if (id != 0 && id != hv_session_selected(s)) {
        hv_session_select(s, id);
        st->detail_top = 0;
    }
}

static unsigned plans_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct hv_plans *st = state;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    clean_marks(st, s);
    struct hv_plans_list l = hv_plans_list(st, s);
    struct hv_table_source src = hv_plans_source(&l);
    int rows = hv_plans_place(st, hv_app_body(app)).table_rows;
    struct hv_table t = hv_plans_table(st, s, &src, rows);
    struct hv_plans_at at = {st, app, s, &l, hv_plans_cursor(&t, &l)};
    bool done = scroll_details(st, a) || walk_front(&at, a);
    if (!done && hv_table_action(&t, &src, a, rows)) {
        settle(st, s, &t, &l);
        done = true;
    }
    done = done || view_action(&at, a);
    if (!done && at.id != 0) {
        done = hv_plans_row_action(&at, a);
        if (done && a == HV_ACT_MARK && hv_table_action(&t, &src, HV_ACT_DOWN, rows)) {
            settle(st, s, &t, &l);
        }
    }
    hv_plans_list_free(&l);
    return done ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

static unsigned plans_find(void *state, struct hv_app *app, const char *text, int direction)
{
    struct hv_plans *st = state;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_plans_list l = hv_plans_list(st, s);
    struct hv_table_source src = hv_plans_source(&l);
    struct hv_table t =
        hv_plans_table(st, s, &src, hv_plans_place(st, hv_app_body(app)).table_rows);
    bool found = hv_table_find(&t, &src, &hv_plans_look, text, direction);
    if (found) {
        settle(st, s, &t, &l);
    }
    hv_plans_list_free(&l);
    return found ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

/* ---- mouse ---- */

static void click_table(const struct hv_plans_at *at, struct hv_table *t,
                        const struct hv_table_source *src, const struct hv_plans_places *p,
                        const struct hv_event *ev)
{
    struct hv_rect in = hv_rect_inner(p->r[HV_PLANS_TABLE]);
    size_t row = hv_table_hit(t, src, in, ev->x, ev->y);
    if (ev->y == in.y && hv_rect_has(in, ev->x, ev->y)) {
        hv_plans_click_head(at->s, ev->x - in.x);
    } else if (row != SIZE_MAX && row == t->cursor && at->id != 0) {
        (void)hv_plans_row_action(at, HV_ACT_OPEN);
    } else if (row != SIZE_MAX) {
        hv_table_goto(t, src, row, p->table_rows);
        settle(at->st, at->s, t, at->l);
    }
}

static void mouse(const struct hv_plans_at *at, struct hv_table *t,
                  const struct hv_table_source *src, const struct hv_event *ev)
{
    struct hv_plans *st = at->st;
    struct hv_plans_places p = hv_plans_place(st, hv_app_body(at->app));
    int wheel = ev->mouse == HV_MOUSE_WHEEL_UP ? -3 : ev->mouse == HV_MOUSE_WHEEL_DOWN ? 3 : 0;
    for (int i = 0; i < HV_PLANS_PANEL_N; i++) {
        if (!hv_rect_has(p.r[i], ev->x, ev->y)) {
            continue;
        }
        if (wheel != 0 && i == HV_PLANS_TABLE) {
            hv_table_scroll(t, src, wheel, p.table_rows);
            settle(st, at->s, t, at->l);
        } else if (wheel != 0) {
            st->detail_top = wheel > 0            ? st->detail_top + 3
                             : st->detail_top > 3 ? st->detail_top - 3
                                                  : 0;
            st->detail_top = st->detail_top < 500 ? st->detail_top : 500;
        } else if (ev->mouse == HV_MOUSE_PRESS) {
            st->focus = (enum hv_plans_panel)i;
            struct hv_plan_scatter scatter = hv_plans_scatter(at->l, at->id);
            uint32_t hit = i != HV_PLANS_SCATTER
                               ? 0
                               : hv_plan_scatter_hit(&scatter, hv_rect_inner(p.r[i]), ev->x, ev->y);
            if (hit != 0) {
                hv_session_select(at->s, hit);
            } else if (i == HV_PLANS_TABLE) {
                click_table(at, t, src, &p, ev);
            }
        }
        return;
    }
}

static unsigned plans_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    if (ev->type != HV_EV_MOUSE) {
        return 0;
    }
    struct hv_plans *st = state;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_plans_list l = hv_plans_list(st, s);
    struct hv_table_source src = hv_plans_source(&l);
    struct hv_table t =
        hv_plans_table(st, s, &src, hv_plans_place(st, hv_app_body(app)).table_rows);
    struct hv_plans_at at = {st, app, s, &l, hv_plans_cursor(&t, &l)};
    mouse(&at, &t, &src, ev);
    hv_plans_list_free(&l);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static const enum hv_action keybar[] = {
    HV_ACT_OPEN,      HV_ACT_MARK,        HV_ACT_PLAN_COMPARE, HV_ACT_SORT,        HV_ACT_FILTER,
    HV_ACT_EXPORT,    HV_ACT_FIND,        HV_ACT_DELETE,       HV_ACT_PLAN_RENAME, HV_ACT_RUN,
    HV_ACT_PLAN_NOTE, HV_ACT_PLAN_AXIS_X, HV_ACT_PLAN_AXIS_Y,  HV_ACT_UNDO,        HV_ACT_NONE,
};

/** Keys that make a plan, shown while there is none. */
static const enum hv_action *plans_keybar_now(const void *state, const void *model)
{
    static const enum hv_action none[] = {HV_ACT_SCREEN_3, HV_ACT_SCREEN_1, HV_ACT_SCREEN_2,
                                          HV_ACT_TOUR,     HV_ACT_UNDO,     HV_ACT_NONE};
    size_t n = 0;
    (void)state;
    (void)hv_session_rows(hv_ui_session(model), &n);
    return n == 0 ? none : NULL;
}

const struct hv_view_ops hv_screen_plans = {
    .name = "plans",
    .title = "Plans",
    .short_title = "Plan",
    .tab = 4,
    .state_size = sizeof(struct hv_plans),
    .keybar = keybar,
    .keybar_now = plans_keybar_now,
    .help = "In the scatter plot the arrow keys move along the Pareto front. A click on a heading "
            "sorts, a click on a dot selects a plan, and a second click on a row opens it.",
    .open = plans_open,
    .close = plans_close,
    .draw = hv_plans_draw,
    .action = plans_action,
    .event = plans_event,
    .find = plans_find,
    .status = plans_status,
    .tick = hv_ui_tick,
    .timeout_ms = hv_ui_timeout_ms,
};
