/** Screen 3, Strategies: choose one, set its parameters, run it, watch it. Running is the
 * session's. */
#include "ui/screens/screens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/strategy_form.h"
#include "ui/screens/strategy_panel.h"
#include "ui/view/layout.h"

enum panel { PANEL_LIST, PANEL_PARAMS, PANEL_PROGRESS, PANEL_N };

/** State of the screen. */
struct strategies {
    struct hv_table table;
    enum panel focus;
    struct hv_strategy_form form;
    char filter[64];
};

/** The strategies shown. Made for one event or frame. */
struct list {
    struct hv_session *s;
    const struct hv_plugin *plugins;
    size_t n;
    size_t *shown; /**< numbers in plugins */
    size_t n_shown;
};

enum column { COL_ID, COL_STATE, COL_ITERATION, COL_KIND, COL_TITLE, COL_N };

static const struct hv_column columns[COL_N] = {
    {"STRATEGY", HV_LEFT, 14, 1}, {"STATE", HV_LEFT, 11, 0}, {"S/ITER", HV_RIGHT, 8, 0},
    {"KIND", HV_LEFT, 9, 0},      {"TITLE", HV_LEFT, 12, 3},
};

static void strategies_open(void *state, struct hv_app *app)
{
    (void)app;
    struct strategies *st = state;
    st->table.sort_column = -1;
}

static void strategies_close(void *state, struct hv_app *app)
{
    (void)app;
    struct strategies *st = state;
    hv_strategy_form_free(&st->form);
}

/* ---- rows ---- */

static const struct hv_plugin *shown_at(const struct list *l, size_t row)
{
    return row < l->n_shown ? &l->plugins[l->shown[row]] : NULL;
}

static const char *text_or(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

static bool is_shown(const struct hv_plugin *p, const char *filter)
{
    const char *const texts[] = {p->id, p->title, p->kind, p->system, p->reference, p->name};
    bool hit = filter[0] == '\0';
    for (size_t i = 0; i < HV_COUNT(texts) && !hit; i++) {
        hit = texts[i] != NULL && hv_text_has(texts[i], filter);
    }
    return hit;
}

static struct list make_list(const struct strategies *st, struct hv_session *s)
{
    struct list l = {.s = s};
    l.plugins = hv_session_strategies(s, &l.n);
    l.shown = hv_xcalloc(l.n + 1, sizeof *l.shown);
    for (size_t i = 0; i < l.n; i++) {
        if (is_shown(&l.plugins[i], st->filter)) {
            l.shown[l.n_shown++] = i;
        }
    }
    return l;
}

/** True when the run ended with a plan that breaks a rule. */
static bool has_violations(const struct list *l, const struct hv_row *row)
{
    const struct hv_verdict *v =
        row != NULL && row->plan != NULL ? hv_session_verdict(l->s, row->id, false, NULL) : NULL;
    return v != NULL && v->findings.n > 0;
}

static void add_state(const struct list *l, const struct hv_plugin *p, const struct hv_row *row,
                      struct hv_str *out)
{
    if (p->error != NULL) {
        hv_str_adds(out, "broken");
    } else if (row == NULL) {
        return;
    } else if (row->state == HV_ROW_RUNNING && hv_known(row->progress_frac)) {
        hv_str_addf(out, "RUN %.0f%%", row->progress_frac * 100);
    } else if (row->state == HV_ROW_RUNNING) {
        hv_str_adds(out, "RUN");
    } else if (row->state == HV_ROW_DONE && has_violations(l, row)) {
        hv_str_adds(out, "misfit");
    } else {
        hv_str_adds(out, row->state == HV_ROW_NOT_APPLICABLE ? "not for it"
                                                             : hv_row_state_name(row->state));
    }
}

static void add_iteration(const struct list *l, const struct hv_row *row, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    if (row == NULL || row->plan == NULL) {
        return;
    }
    const struct hv_verdict *v = hv_session_verdict(l->s, row->id, false, NULL);
    if (v != NULL) {
        hv_str_adds(out, hv_fmt_seconds(buf, sizeof buf, v->metrics.iteration_s));
    }
}

static const struct hv_row *latest(const struct list *l, const struct hv_plugin *p)
{
    return p->id != NULL ? hv_strategy_latest(l->s, p->id) : NULL;
}

static void cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    const struct list *l = ctx;
    const struct hv_plugin *p = shown_at(l, row);
    switch ((enum column)column) {
    case COL_ID:
        hv_str_adds(out, text_or(p->id, p->name));
        break;
    case COL_STATE:
        add_state(l, p, latest(l, p), out);
        break;
    case COL_ITERATION:
        add_iteration(l, latest(l, p), out);
        break;
    case COL_KIND:
        hv_str_adds(out, text_or(p->kind, ""));
        break;
    case COL_TITLE:
        hv_str_adds(out, text_or(p->error != NULL ? p->error : p->title, ""));
        break;
    case COL_N:
        break;
    }
}

static unsigned row_flags(const void *ctx, size_t row)
{
    const struct hv_plugin *p = shown_at(ctx, row);
    const struct hv_row *run = latest(ctx, p);
    if (p->error != NULL) {
        return HV_ROW_PROBLEM;
    }
    if (run == NULL) {
        return 0;
    }
    switch ((int)run->state) {
    case HV_ROW_DONE:
        return has_violations(ctx, run) ? HV_ROW_PROBLEM : HV_ROW_CHECK;
    case HV_ROW_QUEUED:
    case HV_ROW_RUNNING:
        return HV_ROW_MARKED;
    case HV_ROW_FAILED:
    case HV_ROW_INFEASIBLE:
        return HV_ROW_PROBLEM;
    default:
        return HV_ROW_DIM;
    }
}

static uint64_t row_id(const void *ctx, size_t row)
{
    const struct list *l = ctx;
    return l->shown[row];
}

static struct hv_table_source make_source(const struct list *l)
{
    return (struct hv_table_source){
        .ctx = l, .n_rows = l->n_shown, .cell = cell, .flags = row_flags, .id = row_id};
}

static const struct hv_table_look look = {
    .columns = columns,
    .n_columns = COL_N,
    .focused = true,
    .empty = "no strategy passes the filter; f and an empty text shows all again",
};

/* ---- layout ---- */

static void place(const struct strategies *st, struct hv_rect body, struct hv_rect out[PANEL_N])
{
    for (int i = 0; i < PANEL_N; i++) {
        out[i] = (struct hv_rect){0};
    }
    if (hv_layout_stacked(body)) {
        out[st->focus] = body;
        return;
    }
    struct hv_split two[2] = {{.flex = 1, .min = 30}, {.flex = 1, .min = 30}};
    struct hv_split halves[2] = {{.flex = 1, .min = 6}, {.flex = 1, .min = 5}};
    struct hv_rect sides[2], left[2];
    hv_layout_split(body, HV_COLUMNS, two, 2, sides);
    hv_layout_split(sides[0], HV_ROWS, halves, 2, left);
    out[PANEL_LIST] = left[0];
    out[PANEL_PARAMS] = left[1];
    out[PANEL_PROGRESS] = sides[1];
}

/** Rows of the list below its head. */
static int list_rows(const struct strategies *st, struct hv_rect body)
{
    struct hv_rect r[PANEL_N];
    place(st, body, r);
    return r[PANEL_LIST].h - 3;
}

/* ---- drawing ---- */

static void draw_panel(const struct strategies *st, const struct list *l,
                       const struct hv_table *table, enum panel panel, struct hv_grid *g,
                       struct hv_rect r)
{
    const struct hv_plugin *p = shown_at(l, table->cursor);
    bool focused = st->focus == panel;
    struct hv_rect in = hv_rect_inner(r);
    char title[160];
    if (panel == PANEL_LIST) {
        (void)snprintf(title, sizeof title, "Strategies%s%s",
                       st->filter[0] != '\0' ? "  filter:" : "", st->filter);
    } else if (panel == PANEL_PARAMS) {
        (void)snprintf(title, sizeof title, "Parameters of %s",
                       p != NULL ? text_or(p->id, p->name) : "-");
    } else {
        (void)snprintf(title, sizeof title, "%s", p != NULL ? text_or(p->id, p->name) : "Progress");
    }
    hv_grid_box(g, r, title, focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    if (panel == PANEL_LIST) {
        struct hv_table_source src = make_source(l);
        struct hv_table_look own = look;
        own.focused = focused;
        own.empty = l->n > 0 ? look.empty : "no strategy is installed";
        hv_table_draw(table, &src, &own, g, in);
    } else if (panel == PANEL_PARAMS && p != NULL) {
        hv_strategy_form_draw(&st->form, l->s, p, g, in, focused);
    } else if (p != NULL) {
        hv_strategy_panel_draw(l->s, p, g, in);
    }
}

static void strategies_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct strategies *st = state;
    struct list l = make_list(st, hv_ui_session(model));
    struct hv_table_source src = make_source(&l);
    struct hv_rect r[PANEL_N];
    struct hv_table t = st->table;
    const char *find = hv_app_find_text(ctx->app);
    place(st, ctx->body, r);
    hv_table_refresh(&t, &src, r[PANEL_LIST].h - 3);
    t.find = find[0] != '\0' ? find : NULL;
    for (int i = 0; i < PANEL_N; i++) {
        if (r[i].w > 2 && r[i].h > 2) {
            draw_panel(st, &l, &t, (enum panel)i, ctx->grid, r[i]);
        }
    }
    free(l.shown);
}

static void strategies_status(const void *state, const void *model, struct hv_str *out)
{
    const struct strategies *st = state;
    const struct hv_form *f = &st->form.form;
    struct hv_session *s = hv_ui_session(model);
    if (st->focus == PANEL_PARAMS && f->cursor < f->n_fields) {
        const struct hv_field *d = &f->fields[f->cursor];
        hv_str_addf(out, "%s: %s", d->name, d->bad[0] != '\0' ? d->bad : text_or(d->help, ""));
        return;
    }
    size_t n = 0, running = hv_session_n_running(s), queued = hv_session_n_queued(s);
    (void)hv_session_strategies(s, &n);
    if (running + queued > 0) {
        hv_str_addf(out,
                    "%zu running, %zu queued | leaving the screen leaves them running, "
                    "x cancels and keeps the best so far",
                    running, queued);
    } else {
        hv_str_addf(out, "%zu strategies | Enter runs one, A all of them; Tab goes to parameters",
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
    struct strategies *st = ctx;
    (void)snprintf(st->filter, sizeof st->filter, "%s", text);
    return HV_APP_REDRAW;
}

static void reset_option(struct strategies *st, struct hv_app *app, struct hv_session *s,
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

/** What an action does besides moving in the list; false when nothing. */
static bool do_action(struct strategies *st, struct hv_app *app, const struct hv_plugin *p,
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
    case HV_ACT_STRATEGY_PARAMS:
    case HV_ACT_EDIT:
        st->focus = PANEL_PARAMS;
        return true;
    case HV_ACT_PANEL_NEXT:
        st->focus = (enum panel)((st->focus + 1) % PANEL_N);
        return true;
    case HV_ACT_PANEL_PREV:
        st->focus = (enum panel)((st->focus + PANEL_N - 1) % PANEL_N);
        return true;
    case HV_ACT_FILTER:
        hv_app_ask(app, "show only strategies with: ", st->filter, answer_filter, st);
        return true;
    case HV_ACT_DELETE:
        if (st->focus == PANEL_PARAMS && p != NULL) {
            reset_option(st, app, s, p);
        }
        return st->focus == PANEL_PARAMS;
    case HV_ACT_CANCEL:
        if (st->focus != PANEL_LIST) {
            st->focus = PANEL_LIST;
            return true;
        }
        return false;
    default:
        return false;
    }
}

static unsigned strategies_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct strategies *st = state;
    struct list l = make_list(st, hv_ui_session(hv_app_model(app)));
    struct hv_table_source src = make_source(&l);
    int rows = list_rows(st, hv_app_body(app));
    hv_table_refresh(&st->table, &src, rows);
    const struct hv_plugin *p = shown_at(&l, st->table.cursor);
    bool done = st->focus != PANEL_PARAMS && hv_table_action(&st->table, &src, a, rows);
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
    struct strategies *st = state;
    struct list l = make_list(st, hv_ui_session(hv_app_model(app)));
    struct hv_table_source src = make_source(&l);
    hv_table_refresh(&st->table, &src, list_rows(st, hv_app_body(app)));
    bool found = hv_table_find(&st->table, &src, &look, text, direction);
    free(l.shown);
    return found ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

/* ---- raw events: the form and the mouse ---- */

static unsigned form_key(struct strategies *st, struct hv_app *app, const struct hv_plugin *p,
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
        }
        break;
    case HV_FORM_REFUSED:
        hv_app_message(app, HV_MSG_WARNING, "%s", f->fields[f->cursor].bad);
        break;
    case HV_FORM_CLOSE:
        st->focus = PANEL_LIST;
        break;
    }
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static void click(struct strategies *st, struct hv_app *app, struct list *l, enum panel panel,
                  struct hv_rect r, const struct hv_event *ev)
{
    struct hv_table_source src = make_source(l);
    struct hv_rect in = hv_rect_inner(r);
    int wheel = ev->mouse == HV_MOUSE_WHEEL_UP ? -3 : ev->mouse == HV_MOUSE_WHEEL_DOWN ? 3 : 0;
    size_t row = hv_table_hit(&st->table, &src, in, ev->x, ev->y);
    if (wheel != 0 && panel == PANEL_LIST) {
        hv_table_scroll(&st->table, &src, wheel, in.h - 1);
    } else if (wheel == 0 && ev->mouse == HV_MOUSE_PRESS) {
        bool again = st->focus == PANEL_LIST && row == st->table.cursor;
        st->focus = panel;
        st->form.form.editing = false;
        if (panel == PANEL_LIST && row != SIZE_MAX && again) {
            run(app, hv_ui_session(hv_app_model(app)), shown_at(l, row), true);
        } else if (panel == PANEL_LIST && row != SIZE_MAX) {
            hv_table_goto(&st->table, &src, row, in.h - 1);
        } else if (panel == PANEL_PARAMS && st->form.form.n_fields > 0) {
            size_t field = hv_form_hit(&st->form.form, in, ev->x, ev->y);
            st->form.form.cursor = field != SIZE_MAX ? field : st->form.form.cursor;
        }
    }
}

static unsigned strategies_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    struct strategies *st = state;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct list l = make_list(st, s);
    struct hv_table_source src = make_source(&l);
    struct hv_rect r[PANEL_N];
    unsigned flags = 0;
    place(st, hv_app_body(app), r);
    hv_table_refresh(&st->table, &src, r[PANEL_LIST].h - 3);
    const struct hv_plugin *p = shown_at(&l, st->table.cursor);
    if (ev->type == HV_EV_KEY && st->focus == PANEL_PARAMS) {
        flags = form_key(st, app, p, ev->key);
    } else if (ev->type == HV_EV_MOUSE) {
        if (p != NULL && !st->form.form.editing) {
            hv_strategy_form_fill(&st->form, s, p);
        }
        for (int i = 0; i < PANEL_N; i++) {
            if (hv_rect_has(r[i], ev->x, ev->y)) {
                click(st, app, &l, (enum panel)i, r[i], ev);
                break;
            }
        }
        flags = HV_APP_HANDLED | HV_APP_REDRAW;
    }
    free(l.shown);
    return flags;
}

static const enum hv_action keybar[] = {
    HV_ACT_STRATEGY_RUN,
    HV_ACT_STRATEGY_QUEUE,
    HV_ACT_STRATEGY_RUN_ALL,
    HV_ACT_STOP,
    HV_ACT_STRATEGY_PARAMS,
    HV_ACT_FIND,
    HV_ACT_FILTER,
    HV_ACT_UNDO,
    HV_ACT_NONE,
};

const struct hv_view_ops hv_screen_strategies = {
    .name = "strategies",
    .title = "Strategy",
    .short_title = "Strat",
    .tab = 3,
    .state_size = sizeof(struct strategies),
    .keybar = keybar,
    .help = "Parameters: Enter edits, Space or arrows change a choice, d sets the default again. "
            ":run a+b runs a composition.",
    .open = strategies_open,
    .close = strategies_close,
    .draw = strategies_draw,
    .action = strategies_action,
    .event = strategies_event,
    .find = strategies_find,
    .status = strategies_status,
    .tick = hv_ui_tick,
    .timeout_ms = hv_ui_timeout_ms,
};
