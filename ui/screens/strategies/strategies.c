/** Screen 3, Strategies: choose one, set its parameters, run it, watch it. Runs are in ui/session,
 * drawing is in draw.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/process/editor.h"
#include "ui/screens/strategies/strategies.h"
#include "ui/screens/strategies/strategies_int.h"

static void strategies_open(void *state, struct hv_app *app)
{
    struct hv_strategies *st = state;
    st->table.sort_column = -1;
    st->data = hv_xcalloc(1, sizeof *st->data);
    const struct hv_ui *ui = hv_app_model(app);
    if (!ui->scripted) {
        hv_strategies_restore(st, ui->session);
    }
}

static void strategies_close(void *state, struct hv_app *app)
{
    struct hv_strategies *st = state;
    const struct hv_ui *ui = hv_app_model(app);
    if (!ui->scripted) {
        hv_strategies_keep(st, ui->session);
    }
    hv_strategy_form_free(&st->form);
    hv_strategies_data_free(st->data);
}

/** The list as an event finds it. */
struct at {
    struct hv_strategies *st;
    struct hv_app *app;
    const struct hv_strategies_data *d;
    struct hv_table_source src;
    int rows;                              /**< of the list below its head */
    const struct hv_strategies_line *line; /**< under the cursor, or NULL */
    const struct hv_plugin *plugin;        /**< of that line, or NULL */
};

/** Brings the list up to date; the cursor stays on its line. */
static struct at look(struct hv_strategies *st, struct hv_app *app)
{
    struct at at = {.st = st, .app = app};
    struct hv_rect r[HV_STRATEGIES_PANEL_N];
    at.d = hv_strategies_sync(st, hv_ui_session(hv_app_model(app)));
    at.src = hv_strategies_source(at.d);
    hv_strategies_place(st, at.d, hv_app_body(app), r);
    at.rows = r[HV_STRATEGIES_LIST].h - 3;
    hv_table_refresh(&st->table, &at.src, at.rows);
    at.line = hv_strategies_line_at(at.d, st->table.cursor);
    at.plugin = hv_strategies_at(at.d, st->table.cursor);
    return at;
}

/** Moves the cursor to a line, or where it is not shown to its heading. */
static void go_to(struct hv_strategies *st, struct hv_app *app, enum hv_kind kind, size_t plugin)
{
    struct at at = look(st, app);
    size_t to = SIZE_MAX;
    for (size_t i = 0; i < at.d->lines.n; i++) {
        const struct hv_strategies_line *line = &at.d->lines.items[i];
        bool heading = line->plugin == HV_NO_STRATEGY && to == SIZE_MAX;
        if (line->kind == kind && (line->plugin == plugin || heading)) {
            to = i;
        }
    }
    if (to != SIZE_MAX) {
        hv_table_goto(&st->table, &at.src, to, at.rows);
    }
}

/* ---- status ---- */

/** "2 running, 17 queued: alpa 40%", nothing when all runs have ended. */
static void add_runs(const struct hv_strategies_data *d, struct hv_str *out)
{
    size_t running = hv_session_n_running(d->s), queued = hv_session_n_queued(d->s), told = 0;
    if (running + queued == 0) {
        return;
    }
    hv_str_addf(out, " | %zu running, %zu queued", running, queued);
    for (size_t i = 0; i < d->n; i++) {
        const struct hv_row *row = d->facts[i].row;
        if (row != NULL && row->state == HV_ROW_RUNNING && hv_known(row->progress_frac)) {
            hv_str_addf(out, "%s %s %.0f%%", told++ > 0 ? "," : ":", d->plugins[i].id,
                        row->progress_frac * 100);
        }
    }
}

/** "9 of 80 hold "zero": 4 by name, 5 by text or knob". */
static void add_hits(const struct hv_strategies_data *d, const char *filter, struct hv_str *out)
{
    size_t named = 0, told = 0;
    for (size_t i = 0; i < d->n; i++) {
        named += d->facts[i].match == HV_MATCH_NAME;
        told += d->facts[i].match == HV_MATCH_TEXT;
    }
    hv_str_addf(out, "%zu of %zu hold \"%s\": %zu by name, %zu by text or knob", named + told, d->n,
                filter, named, told);
}

static void add_counts(const struct hv_strategies_data *d, struct hv_str *out)
{
    size_t kinds = 0;
    for (int k = 0; k < HV_KIND_N; k++) {
        kinds += !hv_strategies_is_plain((enum hv_kind)k) && d->kinds[k].n > 0;
    }
    hv_str_addf(out, "%zu strategies in %zu kind%s", d->n, kinds, kinds == 1 ? "" : "s");
}

static void strategies_status(const void *state, const void *model, struct hv_str *out)
{
    const struct hv_strategies *st = state;
    const struct hv_form *f = &st->form.form;
    if (st->focus == HV_STRATEGIES_PARAMS && f->cursor < f->n_fields) {
        const struct hv_field *field = &f->fields[f->cursor];
        hv_str_addf(out, "%s: %s", field->name,
                    field->bad[0] != '\0' ? field->bad
                    : field->help != NULL ? field->help
                                          : "");
        return;
    }
    const struct hv_strategies_data *d = hv_strategies_sync(st, hv_ui_session(model));
    bool idle = hv_session_n_running(d->s) + hv_session_n_queued(d->s) == 0;
    if (st->filter[0] != '\0') {
        add_hits(d, st->filter, out);
    } else {
        add_counts(d, out);
    }
    add_runs(d, out);
    if (st->sort != HV_STRATEGIES_BY_ID) {
        hv_str_addf(out, " | sorted by %s", hv_strategies_sort_name(st->sort));
    }
    if (st->filter[0] != '\0') {
        hv_str_adds(out, " | Esc clears the filter");
    } else if (idle) {
        hv_str_adds(out, " | Enter runs, l opens a kind, A runs all");
    }
}

/* ---- actions ---- */

/** Moves the cursor to the first strategy that is shown. */
static void go_to_first(struct hv_strategies *st, struct hv_app *app)
{
    struct at at = look(st, app);
    size_t i = 0;
    while (i < at.d->lines.n && at.d->lines.items[i].plugin == HV_NO_STRATEGY) {
        i++;
    }
    hv_table_goto(&st->table, &at.src, i < at.d->lines.n ? i : 0, at.rows);
}

/** Shows only what holds the text. The cursor stays on its strategy; else it goes to the first one,
 * where all are shown again to its heading. */
static unsigned answer_filter(void *ctx, struct hv_app *app, const char *text)
{
    struct hv_strategies *st = ctx;
    const struct hv_strategies_line *line = look(st, app).line;
    struct hv_strategies_line was = line != NULL ? *line : (struct hv_strategies_line){0};
    (void)snprintf(st->filter, sizeof st->filter, "%s", text);
    st->shut = 0;
    bool hit = line != NULL && was.plugin != HV_NO_STRATEGY &&
               look(st, app).d->facts[was.plugin].match != HV_MATCH_NONE;
    if (hit || (line != NULL && text[0] == '\0')) {
        go_to(st, app, was.kind, was.plugin);
    } else {
        go_to_first(st, app);
    }
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

/** Moves the cursor to the strategy of the id, whose heading may be another one now. */
static void go_to_id(struct hv_strategies *st, struct hv_app *app, const char *id)
{
    struct at at = look(st, app);
    size_t n = 0;
    struct hv_strategies_line *all = hv_strategies_all_lines(st, at.d, &n);
    for (size_t i = 0; i < n; i++) {
        const char *own = all[i].plugin != HV_NO_STRATEGY ? at.d->plugins[all[i].plugin].id : NULL;
        if (own != NULL && strcmp(own, id) == 0 && (at.plugin == NULL || at.plugin->id != own)) {
            hv_strategies_fold(st, all[i].kind, true);
            go_to(st, app, all[i].kind, all[i].plugin);
            break;
        }
    }
    free(all);
}

/** Reads changed plugins again, that of `id` (may be NULL) in any case; the form is made anew. */
static void reload(struct hv_strategies *st, struct hv_app *app, const char *id)
{
    struct hv_err err = {0};
    size_t n = 0;
    char kept[128] = "";
    (void)snprintf(kept, sizeof kept, "%s", id != NULL ? id : ""); /* the old one is freed */
    hv_strategy_form_free(&st->form);
    enum hv_status status =
        hv_session_strategies_reload(hv_ui_session(hv_app_model(app)), id, &n, &err);
    if (kept[0] != '\0') {
        go_to_id(st, app, kept);
    }
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

/** Opens a heading, with as many of its rows in view as there is room for. */
static void open_heading(const struct at *at)
{
    struct hv_strategies *st = at->st;
    enum hv_kind kind = at->line->kind;
    hv_strategies_fold(st, kind, true);
    struct at now = look(st, at->app);
    size_t i = st->table.cursor, n = 1, h = now.rows > 1 ? (size_t)now.rows : 1;
    while (i + n < now.d->lines.n && n < h && now.d->lines.items[i + n].kind == kind) {
        n++;
    }
    if (i + n > st->table.top + h) {
        st->table.top = i + n - h;
    }
    hv_table_goto(&st->table, &now.src, i, now.rows);
}

/** Closes the heading of the line under the cursor, which goes to it. */
static void close_heading(const struct at *at)
{
    enum hv_kind kind = at->line->kind;
    hv_strategies_fold(at->st, kind, false);
    go_to(at->st, at->app, kind, HV_NO_STRATEGY);
}

/** Left and Right in the list; false where there is nothing to fold. */
static bool fold(const struct at *at, enum hv_action a)
{
    if (at->line == NULL || hv_strategies_is_plain(at->line->kind)) {
        return false;
    }
    bool heading = at->line->plugin == HV_NO_STRATEGY;
    if (a == HV_ACT_RIGHT && heading && !hv_strategies_is_open(at->st, at->line->kind)) {
        open_heading(at);
    } else if (a == HV_ACT_RIGHT && heading) { /* open already: its first row */
        (void)hv_table_action(&at->st->table, &at->src, HV_ACT_DOWN, at->rows);
    } else if (a == HV_ACT_LEFT) {
        close_heading(at);
    }
    return true;
}

/** Sorts by another key, or the other way round by the same. */
static void sort_by(struct hv_strategies *st, struct hv_app *app, enum hv_strategies_sort sort)
{
    bool again = st->sort == sort;
    st->sort = sort;
    st->descending = again ? !st->descending : sort == HV_STRATEGIES_BY_YEAR;
    hv_app_message(app, HV_MSG_INFO, "sorted inside kinds by %s%s",
                   hv_strategies_sort_name(st->sort),
                   st->sort != HV_STRATEGIES_BY_ID && st->descending ? ", descending" : "");
}

/** Actions on the view; false for others. */
static bool view_action(const struct at *at, enum hv_action a)
{
    struct hv_strategies *st = at->st;
    switch ((int)a) {
    case HV_ACT_LEFT:
    case HV_ACT_RIGHT:
        return st->focus == HV_STRATEGIES_LIST && fold(at, a);
    case HV_ACT_SORT:
    case HV_ACT_SORT_REVERSE:
        sort_by(st, at->app,
                a == HV_ACT_SORT_REVERSE
                    ? st->sort
                    : (enum hv_strategies_sort)((st->sort + 1) % HV_STRATEGIES_SORT_N));
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
        hv_app_ask(at->app, "show only strategies with: ", st->filter, answer_filter, st);
        return true;
    case HV_ACT_CANCEL:
        if (st->focus != HV_STRATEGIES_LIST) {
            st->focus = HV_STRATEGIES_LIST;
            return true;
        }
        if (st->filter[0] != '\0') {
            (void)answer_filter(st, at->app, "");
            return true;
        }
        return false;
    default:
        return false;
    }
}

/** Actions on what the line stands for; false for others. */
static bool line_action(const struct at *at, enum hv_action a)
{
    struct hv_strategies *st = at->st;
    switch ((int)a) {
    case HV_ACT_STRATEGY_RUN:
    case HV_ACT_RUN:
    case HV_ACT_STRATEGY_QUEUE:
        if (at->line != NULL) {
            hv_strategies_run(st, at->app, at->d, at->line, a != HV_ACT_STRATEGY_QUEUE);
        }
        return true;
    case HV_ACT_STRATEGY_RUN_ALL:
        hv_app_message(at->app, HV_MSG_INFO, "%zu queued", hv_session_run_all(at->d->s));
        return true;
    case HV_ACT_STOP:
        return at->line != NULL && hv_strategies_stop(st, at->app, at->d, at->line);
    case HV_ACT_STRATEGY_EDITOR:
        if (at->plugin != NULL) {
            edit_plugin(st, at->app, at->plugin);
        } else {
            hv_app_message(at->app, HV_MSG_INFO, "a heading has no plugin; l opens it");
        }
        return true;
    case HV_ACT_RELOAD:
        reload(st, at->app, at->plugin != NULL ? at->plugin->id : NULL);
        return true;
    case HV_ACT_DELETE:
        if (st->focus == HV_STRATEGIES_PARAMS && at->plugin != NULL) {
            reset_option(st, at->app, at->d->s, at->plugin);
        }
        return st->focus == HV_STRATEGIES_PARAMS;
    default:
        return false;
    }
}

static unsigned strategies_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct hv_strategies *st = state;
    struct at at = look(st, app);
    bool done =
        st->focus != HV_STRATEGIES_PARAMS && hv_table_action(&st->table, &at.src, a, at.rows);
    done = done || view_action(&at, a) || line_action(&at, a);
    if (done) {
        at = look(st, app);
        if (a == HV_ACT_STRATEGY_QUEUE) {
            (void)hv_table_action(&st->table, &at.src, HV_ACT_DOWN, at.rows);
        }
        hv_strategies_follow(st, at.d, hv_strategies_line_at(at.d, st->table.cursor));
    }
    return done ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

/** True where the line holds the text: the word of a heading, or what is declared of a strategy. */
static bool holds(const struct hv_strategies_data *d, const struct hv_strategies_line *line,
                  const char *text)
{
    struct hv_str where = {0};
    bool found = line->plugin == HV_NO_STRATEGY
                     ? hv_text_has(hv_strategies_heading(line->kind), text)
                     : hv_strategy_match(&d->plugins[line->plugin], text, &where) != HV_MATCH_NONE;
    hv_str_free(&where);
    return found;
}

/** `/` looks into closed headings too, and opens the one with the hit. Names come before other
 * texts where the search begins. */
static unsigned strategies_find(void *state, struct hv_app *app, const char *text, int direction)
{
    struct hv_strategies *st = state;
    struct at at = look(st, app);
    size_t n = 0, from = 0, hit = SIZE_MAX;
    struct hv_strategies_line *all = hv_strategies_all_lines(st, at.d, &n);
    for (size_t i = 0; at.line != NULL && i < n; i++) {
        bool here = all[i].kind == at.line->kind && all[i].plugin == at.line->plugin;
        from = here ? i : from;
    }
    for (size_t step = direction == 0 ? 0 : 1; n > 0 && step <= n && hit == SIZE_MAX; step++) {
        size_t i = direction < 0 ? (from + n - step % n) % n : (from + step) % n;
        bool shown = all[i].plugin == HV_NO_STRATEGY || at.d->facts[all[i].plugin].match;
        hit = shown && holds(at.d, &all[i], text) ? i : SIZE_MAX;
    }
    if (hit != SIZE_MAX) {
        if (all[hit].plugin != HV_NO_STRATEGY) {
            hv_strategies_fold(st, all[hit].kind, true);
        }
        go_to(st, app, all[hit].kind, all[hit].plugin);
        at = look(st, app);
        hv_strategies_follow(st, at.d, at.line);
    }
    free(all);
    return hit != SIZE_MAX ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

/* ---- raw events: the form and the mouse ---- */

static unsigned form_key(struct hv_strategies *st, struct hv_app *app, const struct hv_plugin *p,
                         struct hv_key key)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_form *f = &st->form.form;
    struct hv_err err = {0};
    if (!f->editing && key.code == HV_KEY_TAB) {
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

/** A click on the mark of a heading folds it, as a second one on the heading does; a second one on
 * a strategy runs it. */
static void click_line(const struct at *at, const struct hv_strategies_line *line, bool on_mark,
                       bool again)
{
    if (line->plugin == HV_NO_STRATEGY && (on_mark || again)) {
        hv_strategies_fold(at->st, line->kind, !hv_strategies_is_open(at->st, line->kind));
    } else if (again) {
        hv_strategies_run(at->st, at->app, at->d, line, true);
    }
}

static void click(const struct at *at, enum hv_strategies_panel panel, struct hv_rect r,
                  const struct hv_event *ev)
{
    struct hv_strategies *st = at->st;
    struct hv_rect in = hv_rect_inner(r);
    int wheel = ev->mouse == HV_MOUSE_WHEEL_UP ? -3 : ev->mouse == HV_MOUSE_WHEEL_DOWN ? 3 : 0;
    size_t row = hv_table_hit(&st->table, &at->src, in, ev->x, ev->y);
    if (wheel != 0 && panel == HV_STRATEGIES_LIST) {
        hv_table_scroll(&st->table, &at->src, wheel, in.h - 1);
    } else if (wheel == 0 && ev->mouse == HV_MOUSE_PRESS) {
        bool again = st->focus == HV_STRATEGIES_LIST && row == st->table.cursor;
        st->focus = panel;
        st->form.form.editing = false;
        if (panel == HV_STRATEGIES_LIST && row != SIZE_MAX) {
            hv_table_goto(&st->table, &at->src, row, in.h - 1);
            click_line(at, &at->d->lines.items[row], ev->x == in.x + 1, again);
        } else if (panel == HV_STRATEGIES_LIST) {
            size_t column = hv_table_head_hit(&hv_strategies_look, in, ev->x, ev->y);
            enum hv_strategies_sort sort = hv_strategies_sort_of(column);
            if (sort != HV_STRATEGIES_SORT_N) {
                sort_by(st, at->app, sort);
            }
        } else if (panel == HV_STRATEGIES_PARAMS && st->form.form.n_fields > 0) {
            size_t field = hv_form_hit(&st->form.form, in, ev->x, ev->y);
            st->form.form.cursor = field != SIZE_MAX ? field : st->form.form.cursor;
        }
    }
}

static unsigned strategies_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    struct hv_strategies *st = state;
    struct at at = look(st, app);
    struct hv_rect r[HV_STRATEGIES_PANEL_N];
    if (ev->type == HV_EV_KEY && st->focus == HV_STRATEGIES_PARAMS) {
        return form_key(st, app, at.plugin, ev->key);
    }
    if (ev->type == HV_EV_PASTE) {
        bool taken = st->focus == HV_STRATEGIES_PARAMS &&
                     hv_form_paste(&st->form.form, ev->text) != HV_FORM_NONE;
        return taken ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
    }
    if (ev->type != HV_EV_MOUSE) {
        return 0;
    }
    if (!st->form.form.editing) {
        hv_strategy_form_fill(&st->form, at.d->s, at.plugin);
    }
    hv_strategies_place(st, at.d, hv_app_body(app), r);
    for (int i = 0; i < HV_STRATEGIES_PANEL_N; i++) {
        if (hv_rect_has(r[i], ev->x, ev->y)) {
            click(&at, (enum hv_strategies_panel)i, r[i], ev);
            break;
        }
    }
    at = look(st, app);
    hv_strategies_follow(st, at.d, at.line);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

/** Runs that end change which plan of a heading is the fastest. */
static unsigned strategies_tick(void *state, struct hv_app *app, int64_t now_ms)
{
    struct hv_strategies *st = state;
    unsigned flags = hv_ui_tick(state, app, now_ms);
    const struct hv_ui *ui = hv_app_model(app);
    if (!ui->scripted) {
        hv_strategies_keep_when_due(st, ui->session, now_ms);
    }
    if (flags != 0) {
        struct at at = look(st, app);
        hv_strategies_follow(st, at.d, at.line);
    }
    return flags;
}

static int strategies_timeout_ms(const void *state, const void *model, int64_t now_ms)
{
    const struct hv_ui *ui = model;
    int ui_ms = hv_ui_timeout_ms(state, model, now_ms);
    int keep_ms = ui->scripted ? -1 : hv_strategies_keep_timeout_ms(state, now_ms);
    return ui_ms < 0 ? keep_ms : keep_ms < 0 || ui_ms < keep_ms ? ui_ms : keep_ms;
}

static const enum hv_action keybar[] = {
    HV_ACT_STRATEGY_RUN,
    HV_ACT_STRATEGY_QUEUE,
    HV_ACT_STRATEGY_RUN_ALL,
    HV_ACT_STOP,
    HV_ACT_STRATEGY_PARAMS,
    HV_ACT_FILTER,
    HV_ACT_FIND,
    HV_ACT_STRATEGY_EDITOR,
    HV_ACT_SORT,
    HV_ACT_UNDO,
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
    .help = "Kinds: Right opens a heading, Left closes it, Enter runs all of it, Space queues it. "
            "Find and filter look into id, title, citation, summary and knobs.\nParameters: Enter "
            "edits, arrow keys choose, d restores the default.\nA click on the head of a column "
            "sorts inside kinds, a second one the other way round.\nPlugins: E opens "
            "the file in $VISUAL or $EDITOR and reloads it, r reloads all changed plugins.",
    .open = strategies_open,
    .close = strategies_close,
    .draw = hv_strategies_draw,
    .action = strategies_action,
    .event = strategies_event,
    .find = strategies_find,
    .status = strategies_status,
    .tick = strategies_tick,
    .timeout_ms = strategies_timeout_ms,
};
