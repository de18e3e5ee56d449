/** Screen 7, What-if: sliders over numbers of the workspace and the plan; nothing is changed until
 * the change is accepted. */
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/what_if/what_if.h"
#include "ui/screens/what_if/what_if_int.h"
#include "ui/view/grid/layout.h"

/** Seconds a tick may spend on the curve: less than a frame, so that keys are processed in time. */
#define TICK_S 0.004
#define FAR    5

static void what_if_open(void *state, struct hv_app *app)
{
    struct hv_what_if *st = state;
    struct hv_ui *ui = hv_app_model(app);
    st->data = hv_xcalloc(1, sizeof *st->data);
    hv_what_if_sync(st->data, ui->session);
}

static void what_if_close(void *state, struct hv_app *app)
{
    struct hv_what_if *st = state;
    (void)app;
    hv_what_if_free(st->data);
    free(st->data);
}

/** Updates all data; returns the number of rows of the sliders. */
static int refresh(struct hv_what_if *st, struct hv_app *app)
{
    struct hv_ui *ui = hv_app_model(app);
    struct hv_what_if_data *d = st->data;
    struct hv_rect r[HV_WHAT_IF_PANEL_N];
    hv_what_if_sync(d, ui->session);
    hv_what_if_take_turn(d, ui);
    hv_what_if_place(st, hv_app_body(app), r);
    int height = hv_rect_inner(r[HV_WHAT_IF_SLIDERS]).h - hv_layout_stacked(hv_app_body(app));
    struct hv_table_source src = hv_what_if_source(d);
    hv_table_refresh(&d->table, &src, height);
    return height;
}

static unsigned what_if_tick(void *state, struct hv_app *app, int64_t now_ms)
{
    struct hv_what_if *st = state;
    struct hv_what_if_data *d = st->data;
    unsigned flags = hv_ui_tick(state, app, now_ms);
    (void)refresh(st, app);
    if (d->curve_lever < d->levers.n &&
        d->n_curve_done < d->levers.items[d->curve_lever].n_values) {
        (void)hv_what_if_curve_some(d, hv_ui_session(hv_app_model(app)), TICK_S);
        flags |= HV_APP_REDRAW;
    }
    return hv_what_if_share_tick(d, hv_ui_session(hv_app_model(app))) ? flags | HV_APP_REDRAW
                                                                      : flags;
}

static int what_if_timeout_ms(const void *state, const void *model, int64_t now_ms)
{
    const struct hv_what_if *st = state;
    const struct hv_what_if_data *d = st->data;
    bool busy =
        d->curve_lever < d->levers.n && d->n_curve_done < d->levers.items[d->curve_lever].n_values;
    int share = hv_what_if_share_wait_ms(d, hv_ui_session(model));
    int other = hv_ui_timeout_ms(state, model, now_ms);
    return busy ? 0 : share >= 0 && (other < 0 || share < other) ? share : other;
}

/* ---- actions ---- */

static void turn(struct hv_what_if_data *d, struct hv_session *s, double value)
{
    d->values[d->table.cursor] = value;
    hv_what_if_judge(d, s);
}

static unsigned answer_value(void *ctx, struct hv_app *app, const char *text)
{
    struct hv_what_if *st = ctx;
    struct hv_what_if_data *d = st->data;
    struct hv_err err = {0};
    double value = 0;
    (void)refresh(st, app);
    if (d->table.cursor >= d->levers.n) {
        return HV_APP_REDRAW;
    }
    if (hv_lever_parse(&d->levers.items[d->table.cursor], text, &value, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        turn(d, hv_ui_session(hv_app_model(app)), value);
    }
    return HV_APP_REDRAW;
}

static void ask_value(struct hv_what_if *st, struct hv_app *app)
{
    struct hv_what_if_data *d = st->data;
    const struct hv_lever *l = &d->levers.items[d->table.cursor];
    struct hv_str label = {0}, now = {0};
    char buf[HV_FMT_CAP];
    hv_str_addf(&label, "%s%s%s: ", l->name, hv_lever_unit(l)[0] != '\0' ? ", " : "",
                hv_lever_unit(l));
    if (l->words != NULL) {
        hv_lever_text(l, d->values[d->table.cursor], &now);
    } else {
        hv_str_adds(&now, hv_fmt_double(buf, sizeof buf, d->values[d->table.cursor]));
    }
    hv_app_ask(app, hv_str_cstr(&label), hv_str_cstr(&now), answer_value, st);
    hv_str_free(&label);
    hv_str_free(&now);
}

/** Applies the change; false where there is none or it fails. */
static bool accept(struct hv_what_if_data *d, struct hv_app *app)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_str said = {0};
    struct hv_err err = {0};
    bool done = false;
    if (hv_what_if_turned(d) == 0) {
        hv_app_message(app, HV_MSG_INFO, "no lever was moved; h and l move one");
        return false;
    }
    if (hv_levers_accept(s, &d->levers, d->values, &said, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "changed: %s; u undoes it", hv_str_cstr(&said));
        done = true;
        hv_what_if_reset(d); /* what was accepted is the base now */
    }
    hv_str_free(&said);
    hv_what_if_sync(d, s);
    return done;
}

static void solve(struct hv_what_if_data *d, struct hv_app *app)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_err err = {0};
    char strategy[128] = "";
    (void)strncat(strategy, d->facts.row->strategy, sizeof strategy - 1);
    if (hv_session_strategy(s, strategy) == NULL) {
        hv_app_message(
            app, HV_MSG_WARNING,
            "the strategy of the plan is not installed; Enter accepts, 3 chooses another one");
    } else if (hv_what_if_turned(d) > 0 && !accept(d, app)) {
        return;
    } else if (hv_session_run(s, strategy, NULL, NULL, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "%s is running with the new workspace; 4 shows the plan",
                       strategy);
    }
}

/** Changes the lever at the cursor; false for other actions. */
static bool slide(struct hv_what_if_data *d, struct hv_session *s, enum hv_action a)
{
    const struct hv_lever *l = &d->levers.items[d->table.cursor];
    double now = d->values[d->table.cursor];
    switch ((int)a) {
    case HV_ACT_LEFT:
    case HV_ACT_RIGHT:
    case HV_ACT_WHAT_IF_LESS:
    case HV_ACT_WHAT_IF_MORE:
        turn(d, s, hv_lever_step(l, now, a == HV_ACT_LEFT || a == HV_ACT_WHAT_IF_LESS ? -1 : 1));
        return true;
    case HV_ACT_WHAT_IF_FAR_LESS:
    case HV_ACT_WHAT_IF_FAR_MORE:
        turn(d, s, hv_lever_step(l, now, a == HV_ACT_WHAT_IF_FAR_LESS ? -FAR : FAR));
        return true;
    case HV_ACT_WHAT_IF_RESET:
        turn(d, s, l->base);
        return true;
    case HV_ACT_WHAT_IF_RESET_ALL:
        hv_what_if_reset(d);
        hv_what_if_judge(d, s);
        return true;
    default:
        return false;
    }
}

static bool act(struct hv_what_if *st, struct hv_app *app, enum hv_action a)
{
    struct hv_what_if_data *d = st->data;
    switch ((int)a) {
    case HV_ACT_PANEL_NEXT:
    case HV_ACT_PANEL_PREV:
        st->focus = st->focus == HV_WHAT_IF_SLIDERS ? HV_WHAT_IF_RESULT : HV_WHAT_IF_SLIDERS;
        return true;
    case HV_ACT_EDIT:
        ask_value(st, app);
        return true;
    case HV_ACT_WHAT_IF_ACCEPT:
        (void)accept(d, app);
        return true;
    case HV_ACT_WHAT_IF_SOLVE:
        solve(d, app);
        return true;
    case HV_ACT_WHAT_IF_SHARE:
        if (!hv_what_if_share_take(d, hv_ui_session(hv_app_model(app)))) {
            hv_app_message(app, HV_MSG_INFO, "no better distribution of the layers is known");
        }
        return true;
    case HV_ACT_GANTT_PLAN_PREV:
    case HV_ACT_GANTT_PLAN_NEXT:
        hv_ui_switch_plan(hv_app_model(app), app, d->row, a == HV_ACT_GANTT_PLAN_NEXT ? 1 : -1);
        return true;
    default:
        return false;
    }
}

/** The cursor moved: the curve is that of the lever under it. */
static void settle(struct hv_what_if_data *d)
{
    if (d->curve_lever != d->table.cursor) {
        hv_what_if_curve_start(d, d->table.cursor);
    }
}

static unsigned what_if_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct hv_what_if *st = state;
    struct hv_what_if_data *d = st->data;
    int height = refresh(st, app);
    if (d->levers.n == 0) {
        return 0;
    }
    struct hv_table_source src = hv_what_if_source(d);
    bool done = hv_table_action(&d->table, &src, a, height) ||
                slide(d, hv_ui_session(hv_app_model(app)), a) || act(st, app, a);
    settle(d);
    return done ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

static unsigned what_if_find(void *state, struct hv_app *app, const char *text, int direction)
{
    static const struct hv_column column = {.title = "", .min = 1};
    static const struct hv_table_look look = {.columns = &column, .n_columns = 1};
    struct hv_what_if *st = state;
    (void)refresh(st, app);
    struct hv_table_source src = hv_what_if_source(st->data);
    bool found = hv_table_find(&st->data->table, &src, &look, text, direction);
    settle(st->data);
    return found ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

static unsigned what_if_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    struct hv_what_if *st = state;
    struct hv_what_if_data *d = st->data;
    struct hv_rect r[HV_WHAT_IF_PANEL_N];
    if (ev->type != HV_EV_MOUSE) {
        return 0;
    }
    int height = refresh(st, app);
    hv_what_if_place(st, hv_app_body(app), r);
    struct hv_table_source src = hv_what_if_source(d);
    struct hv_rect in = hv_rect_inner(r[HV_WHAT_IF_SLIDERS]);
    int wheel = ev->mouse == HV_MOUSE_WHEEL_UP ? -3 : ev->mouse == HV_MOUSE_WHEEL_DOWN ? 3 : 0;
    if (wheel != 0 && d->levers.n > 0) {
        hv_table_scroll(&d->table, &src, wheel, height);
    }
    for (int i = 0; ev->mouse == HV_MOUSE_PRESS && i < HV_WHAT_IF_PANEL_N; i++) {
        if (hv_rect_has(r[i], ev->x, ev->y)) {
            st->focus = (enum hv_what_if_panel)i;
        }
    }
    size_t row = d->table.top + (size_t)(ev->y > in.y ? ev->y - in.y : 0);
    if (ev->mouse == HV_MOUSE_PRESS && hv_rect_has(in, ev->x, ev->y) && row < d->levers.n) {
        bool again = row == d->table.cursor;
        hv_table_goto(&d->table, &src, row, height);
        if (again) { /* left or right of the middle: one position that way */
            (void)slide(d, hv_ui_session(hv_app_model(app)),
                        ev->x < in.x + in.w / 2 ? HV_ACT_WHAT_IF_LESS : HV_ACT_WHAT_IF_MORE);
        }
    }
    settle(d);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static void what_if_status(const void *state, const void *model, struct hv_str *out)
{
    const struct hv_what_if *st = state;
    const struct hv_what_if_data *d = st->data;
    char took[HV_FMT_CAP];
    (void)model;
    if (d->facts.verdict == NULL || d->table.cursor >= d->levers.n) {
        return;
    }
    size_t n = hv_what_if_turned(d);
    const struct hv_lever *l = &d->levers.items[d->table.cursor];
    if (n == 0) {
        const char *unit = hv_lever_unit(l);
        hv_str_addf(out, "%s%s%s%s: %s", l->name, unit[0] != '\0' ? " (" : "", unit,
                    unit[0] != '\0' ? ")" : "", hv_lever_help(l));
    } else {
        hv_str_addf(out, "%zu moved, nothing changes until Enter; simulated in %s", n,
                    hv_fmt_seconds(took, sizeof took, d->took_s));
    }
}

static const enum hv_action keybar[] = {
    HV_ACT_WHAT_IF_LESS,
    HV_ACT_WHAT_IF_MORE,
    HV_ACT_WHAT_IF_ACCEPT,
    HV_ACT_WHAT_IF_RESET,
    HV_ACT_EDIT,
    HV_ACT_WHAT_IF_SOLVE,
    HV_ACT_WHAT_IF_SHARE,
    HV_ACT_FIND,
    HV_ACT_WHAT_IF_FAR_LESS,
    HV_ACT_WHAT_IF_FAR_MORE,
    HV_ACT_WHAT_IF_RESET_ALL,
    HV_ACT_UNDO,
    HV_ACT_PANEL_NEXT,
    HV_ACT_GANTT_PLAN_PREV,
    HV_ACT_GANTT_PLAN_NEXT,
    HV_ACT_NONE,
};

static const enum hv_action *keybar_now(const void *state, const void *model)
{
    (void)state;
    return hv_ui_no_plan_keybar(hv_ui_plan_row(hv_ui_session(model)));
}

const struct hv_view_ops hv_screen_what_if = {
    .name = "what-if",
    .title = "What-if",
    .short_title = "What",
    .tab = 7,
    .state_size = sizeof(struct hv_what_if),
    .keybar = keybar,
    .keybar_now = keybar_now,
    .help = "h and l (Left, Right) move the lever at the cursor, H and L move it by five "
            "positions, e sets a value. A second click moves it. 0.3 s after the last key a linear "
            "program computes the best distribution of the layers; b applies it.",
    .open = what_if_open,
    .close = what_if_close,
    .draw = hv_what_if_draw,
    .action = what_if_action,
    .event = what_if_event,
    .find = what_if_find,
    .status = what_if_status,
    .tick = what_if_tick,
    .timeout_ms = what_if_timeout_ms,
};
