/** Screen 3, Strategies: choose one, set its parameters, run it, watch it. Runs are in ui/session,
 * drawing is in draw.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/process/editor.h"
#include "ui/screens/strategies/strategies.h"
#include "ui/screens/strategies/strategies_int.h"

static void strategies_open(void *state, struct hv_app *app)
{
    (void)app;
    struct hv_strategies *st = state;
    st->table.sort_column = -1;
}

static void strategies_close(void *state, struct hv_app *app)
{
    (void)app;
    struct hv_strategies *st = state;
    hv_strategy_form_free(&st->form);
}

/** Rows of the list below its head. */
static int list_rows(const struct hv_strategies *st, struct hv_rect body)
{
    struct hv_rect r[HV_STRATEGIES_PANEL_N];
    hv_strategies_place(st, body, r);
    return r[HV_STRATEGIES_LIST].h - 3;
}

static void strategies_status(const void *state, const void *model, struct hv_str *out)
{
    const struct hv_strategies *st = state;
    const struct hv_form *f = &st->form.form;
    struct hv_session *s = hv_ui_session(model);
    if (st->focus == HV_STRATEGIES_PARAMS && f->cursor < f->n_fields) {
        const struct hv_field *d = &f->fields[f->cursor];
        hv_str_addf(out, "%s: %s", d->name,
                    d->bad[0] != '\0' ? d->bad
                    : d->help != NULL ? d->help
                                      : "");
        return;
    }
    size_t n = 0, running = hv_session_n_running(s), queued = hv_session_n_queued(s);
    (void)hv_session_strategies(s, &n);
    if (running + queued > 0) {
        hv_str_addf(out,
                    "%zu running, %zu queued | runs continue on other screens; x cancels and keeps "
                    "the best plan",
                    running, queued);
    } else {
        hv_str_addf(out, "%zu strategies | Enter runs one, A runs all; Tab goes to the parameters",
                    n);
    }
}

/* ---- actions ---- */

static void run(struct hv_app *app, struct hv_session *s, const struct hv_plugin *p, bool select)
{
    struct hv_err err = {0};
    uint32_t id = 0;
    if (p == NULL) {
        return;
    }
    if (p->error != NULL) {
        hv_app_message(app, HV_MSG_ERROR, "%s", p->error);
    } else if (hv_session_run(s, p->id, NULL, &id, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        if (select) {
            hv_session_select(s, id);
        }
        hv_app_message(app, HV_MSG_INFO, "%s %s", p->id,
                       hv_session_n_queued(s) > 0 ? "queued" : "runs");
    }
}

/** Cancels the latest run of the strategy; false when it does not run. */
static bool stop(struct hv_app *app, struct hv_session *s, const struct hv_plugin *p)
{
    const struct hv_row *row = p != NULL && p->error == NULL ? hv_strategy_latest(s, p->id) : NULL;
    if (row == NULL || !hv_session_cancel(s, row->id)) {
        return false;
    }
    hv_app_message(app, HV_MSG_INFO, "%s cancelled; the best plan so far is kept", p->id);
    return true;
}

static unsigned answer_filter(void *ctx, struct hv_app *app, const char *text)
{
    (void)app;
    struct hv_strategies *st = ctx;
    (void)snprintf(st->filter, sizeof st->filter, "%s", text);
    return HV_APP_REDRAW;
}

static void reset_option(struct hv_strategies *st, struct hv_app *app, struct hv_session *s,
                         const struct hv_plugin *p)
{
    struct hv_err err = {0};
    hv_strategy_form_fill(&st->form, s, p);
    if (hv_strategy_form_reset(&st->form, s, st->form.form.cursor, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "back to the default");
    }
}

/** Reads changed plugins again, that of `id` (may be NULL) in any case; the form is made anew. */
static void reload(struct hv_strategies *st, struct hv_app *app, const char *id)
{
    struct hv_err err = {0};
    size_t n = 0;
    hv_strategy_form_free(&st->form);
    enum hv_status status =
        hv_session_strategies_reload(hv_ui_session(hv_app_model(app)), id, &n, &err);
    if (status != HV_OK) {
        hv_ui_error(app, &err);
    } else if (n == 0) {
        hv_app_message(app, HV_MSG_INFO, "no plugin has changed on disk");
    } else {
        hv_app_message(app, HV_MSG_INFO, "%zu plugin%s reloaded", n, n == 1 ? "" : "s");
    }
}

/** Input and result of run_editor, which runs while the terminal is released. */
struct editing {
    const char *path;
    enum hv_status status;
    struct hv_err err;
};

static void run_editor(void *ctx)
{
    struct editing *e = ctx;
    e->status = hv_editor_run(e->path, &e->err);
}

static void edit_plugin(struct hv_strategies *st, struct hv_app *app, const struct hv_plugin *p)
{
    struct editing e = {.path = p->path};
    hv_app_outside(app, run_editor, &e);
    if (e.status != HV_OK) {
        hv_ui_error(app, &e.err);
    } else {
        reload(st, app, p->id);
    }
}

/** Performs actions other than moves in the list; false for other actions. */
static bool do_action(struct hv_strategies *st, struct hv_app *app, const struct hv_plugin *p,
                      enum hv_action a)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    size_t n;
    switch ((int)a) {
    case HV_ACT_STRATEGY_RUN:
    case HV_ACT_RUN:
        run(app, s, p, true);
        return true;
    case HV_ACT_STRATEGY_QUEUE:
        run(app, s, p, false);
        return true;
    case HV_ACT_STRATEGY_RUN_ALL:
        n = hv_session_run_all(s);
        hv_app_message(app, HV_MSG_INFO, "%zu queued", n);
        return true;
    case HV_ACT_STOP:
        return stop(app, s, p);
    case HV_ACT_STRATEGY_EDITOR:
        if (p != NULL) {
            edit_plugin(st, app, p);
        }
        return true;
    case HV_ACT_RELOAD:
        reload(st, app, p != NULL ? p->id : NULL);
        return true;
    case HV_ACT_STRATEGY_PARAMS:
    case HV_ACT_EDIT:
        st->focus = HV_STRATEGIES_PARAMS;
        return true;
    case HV_ACT_PANEL_NEXT:
        st->focus = (enum hv_strategies_panel)((st->focus + 1) % HV_STRATEGIES_PANEL_N);
        return true;
    case HV_ACT_PANEL_PREV:
        st->focus = (enum hv_strategies_panel)((st->focus + HV_STRATEGIES_PANEL_N - 1) %
                                               HV_STRATEGIES_PANEL_N);
        return true;
    case HV_ACT_FILTER:
        hv_app_ask(app, "show only strategies with: ", st->filter, answer_filter, st);
        return true;
    case HV_ACT_DELETE:
        if (st->focus == HV_STRATEGIES_PARAMS && p != NULL) {
            reset_option(st, app, s, p);
        }
        return st->focus == HV_STRATEGIES_PARAMS;
    case HV_ACT_CANCEL:
        if (st->focus != HV_STRATEGIES_LIST) {
            st->focus = HV_STRATEGIES_LIST;
            return true;
        }
        return false;
    default:
        return false;
    }
}

static unsigned strategies_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct hv_strategies *st = state;
    struct hv_strategies_list l = hv_strategies_list(st, hv_ui_session(hv_app_model(app)));
    struct hv_table_source src = hv_strategies_source(&l);
    int rows = list_rows(st, hv_app_body(app));
    hv_table_refresh(&st->table, &src, rows);
    const struct hv_plugin *p = hv_strategies_at(&l, st->table.cursor);
    bool done = st->focus != HV_STRATEGIES_PARAMS && hv_table_action(&st->table, &src, a, rows);
    if (!done) {
        done = do_action(st, app, p, a);
    }
    if (done && a == HV_ACT_STRATEGY_QUEUE) {
        (void)hv_table_action(&st->table, &src, HV_ACT_DOWN, rows);
    }
    free(l.shown);
    return done ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

static unsigned strategies_find(void *state, struct hv_app *app, const char *text, int direction)
{
    struct hv_strategies *st = state;
    struct hv_strategies_list l = hv_strategies_list(st, hv_ui_session(hv_app_model(app)));
    struct hv_table_source src = hv_strategies_source(&l);
    hv_table_refresh(&st->table, &src, list_rows(st, hv_app_body(app)));
    bool found = hv_table_find(&st->table, &src, &hv_strategies_look, text, direction);
    free(l.shown);
    return found ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

/* ---- raw events: the form and the mouse ---- */

static unsigned form_key(struct hv_strategies *st, struct hv_app *app, const struct hv_plugin *p,
                         struct hv_key key)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_form *f = &st->form.form;
    struct hv_err err = {0};
    if (p == NULL || (!f->editing && key.code == HV_KEY_TAB)) {
        return 0;
    }
    if (!f->editing || st->form.plugin != p) {
        hv_strategy_form_fill(&st->form, s, p);
    }
    size_t field = f->cursor;
    switch (hv_form_key(f, key)) {
    case HV_FORM_NONE:
        return 0;
    case HV_FORM_MOVED:
        break;
    case HV_FORM_CHANGED:
        if (hv_strategy_form_store(&st->form, s, field, &err) != HV_OK) {
            hv_ui_error(app, &err);
        } else if (key.code == HV_KEY_TAB) {
            (void)hv_form_key(f, key);
        }
        break;
    case HV_FORM_REFUSED:
        hv_app_message(app, HV_MSG_WARNING, "%s", f->fields[f->cursor].bad);
        break;
    case HV_FORM_CLOSE:
        st->focus = HV_STRATEGIES_LIST;
        break;
    }
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static void click(struct hv_strategies *st, struct hv_app *app, struct hv_strategies_list *l,
                  enum hv_strategies_panel panel, struct hv_rect r, const struct hv_event *ev)
{
    struct hv_table_source src = hv_strategies_source(l);
    struct hv_rect in = hv_rect_inner(r);
    int wheel = ev->mouse == HV_MOUSE_WHEEL_UP ? -3 : ev->mouse == HV_MOUSE_WHEEL_DOWN ? 3 : 0;
    size_t row = hv_table_hit(&st->table, &src, in, ev->x, ev->y);
    if (wheel != 0 && panel == HV_STRATEGIES_LIST) {
        hv_table_scroll(&st->table, &src, wheel, in.h - 1);
    } else if (wheel == 0 && ev->mouse == HV_MOUSE_PRESS) {
        bool again = st->focus == HV_STRATEGIES_LIST && row == st->table.cursor;
        st->focus = panel;
        st->form.form.editing = false;
        if (panel == HV_STRATEGIES_LIST && row != SIZE_MAX && again) {
            run(app, hv_ui_session(hv_app_model(app)), hv_strategies_at(l, row), true);
        } else if (panel == HV_STRATEGIES_LIST && row != SIZE_MAX) {
            hv_table_goto(&st->table, &src, row, in.h - 1);
        } else if (panel == HV_STRATEGIES_PARAMS && st->form.form.n_fields > 0) {
            size_t field = hv_form_hit(&st->form.form, in, ev->x, ev->y);
            st->form.form.cursor = field != SIZE_MAX ? field : st->form.form.cursor;
        }
    }
}

static unsigned strategies_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    struct hv_strategies *st = state;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_strategies_list l = hv_strategies_list(st, s);
    struct hv_table_source src = hv_strategies_source(&l);
    struct hv_rect r[HV_STRATEGIES_PANEL_N];
    unsigned flags = 0;
    hv_strategies_place(st, hv_app_body(app), r);
    hv_table_refresh(&st->table, &src, r[HV_STRATEGIES_LIST].h - 3);
    const struct hv_plugin *p = hv_strategies_at(&l, st->table.cursor);
    if (ev->type == HV_EV_KEY && st->focus == HV_STRATEGIES_PARAMS) {
        flags = form_key(st, app, p, ev->key);
    } else if (ev->type == HV_EV_MOUSE) {
        if (p != NULL && !st->form.form.editing) {
            hv_strategy_form_fill(&st->form, s, p);
        }
        for (int i = 0; i < HV_STRATEGIES_PANEL_N; i++) {
            if (hv_rect_has(r[i], ev->x, ev->y)) {
                click(st, app, &l, (enum hv_strategies_panel)i, r[i], ev);
                break;
            }
        }
        flags = HV_APP_HANDLED | HV_APP_REDRAW;
    }
    free(l.shown);
    return flags;
}

static const enum hv_action keybar[] = {
    HV_ACT_STRATEGY_RUN, HV_ACT_STRATEGY_QUEUE,  HV_ACT_STRATEGY_RUN_ALL,
    HV_ACT_STOP,         HV_ACT_STRATEGY_PARAMS, HV_ACT_STRATEGY_EDITOR,
    HV_ACT_FIND,         HV_ACT_FILTER,          HV_ACT_UNDO,
    HV_ACT_NONE,
};

static const struct hv_key_hint *strategies_hints(const void *state, const void *model)
{
    static const struct hv_key_hint form[] = {
        {"Enter", "Change"}, {"Down", "Next"},      {"d", "Default"}, {"F5", "Run"},
        {"Tab", "Panel"},    {"Esc", "Strategies"}, {NULL, NULL}};
    const struct hv_strategies *st = state;
    (void)model;
    if (st->focus != HV_STRATEGIES_PARAMS) {
        return NULL;
    }
    const struct hv_key_hint *typing = hv_form_hints(&st->form.form);
    return typing != NULL ? typing : form;
}

const struct hv_view_ops hv_screen_strategies = {
    .name = "strategies",
    .title = "Strategy",
    .short_title = "Strat",
    .tab = 3,
    .state_size = sizeof(struct hv_strategies),
    .keybar = keybar,
    .hints = strategies_hints,
    .help = "Parameters: Enter edits, arrow keys choose, d restores the default.\nPlugins: E opens "
            "the file in $VISUAL or $EDITOR and reloads it, r reloads all changed plugins.",
    .open = strategies_open,
    .close = strategies_close,
    .draw = hv_strategies_draw,
    .action = strategies_action,
    .event = strategies_event,
    .find = strategies_find,
    .status = strategies_status,
    .tick = hv_ui_tick,
    .timeout_ms = hv_ui_timeout_ms,
};
