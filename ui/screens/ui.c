/** Joins the app to the session: commands, saving, undo, messages. What is drawn is the screens'
 * own. */
#include "ui/screens/screens.h"

#include <string.h>

#include "ui/session/prompt/prompt.h"
#include "ui/view/grid/picture.h"

static const struct hv_view_ops *const screens[] = {
    &hv_screen_cluster, &hv_screen_model,   &hv_screen_strategies, &hv_screen_plans,
    &hv_screen_gantt,   &hv_screen_explain, &hv_screen_what_if,    &hv_screen_console,
    &hv_screen_welcome, &hv_screen_import,
};

struct hv_session *hv_ui_session(const void *model)
{
    const struct hv_ui *ui = model;
    return ui->session;
}

const struct hv_row *hv_ui_plan_row(const struct hv_session *s)
{
    const struct hv_row *row = hv_session_row(s, hv_session_selected(s));
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    for (size_t i = 0; i < n && row == NULL; i++) {
        row = rows[i]->plan != NULL ? rows[i] : NULL;
    }
    return row;
}

void hv_ui_switch_plan(struct hv_ui *ui, struct hv_app *app, uint32_t id, int step)
{
    size_t n = 0, at = 0;
    const struct hv_row *const *rows = hv_session_rows(ui->session, &n);
    while (at < n && rows[at]->id != id) {
        at++;
    }
    for (size_t k = 1; at < n && k < n; k++) {
        const struct hv_row *row = rows[step > 0 ? (at + k) % n : (at + n - k) % n];
        if (row->plan != NULL) {
            ui->gantt_row = 0;
            hv_session_select(ui->session, row->id);
            return;
        }
    }
    hv_app_message(app, HV_MSG_INFO, "there is no other plan");
}

const enum hv_action *hv_ui_no_plan_keybar(const struct hv_row *row)
{
    static const enum hv_action keys[] = {HV_ACT_SCREEN_3, HV_ACT_SCREEN_4, HV_ACT_GANTT_PLAN_NEXT,
                                          HV_ACT_NONE};
    return row == NULL || row->plan == NULL ? keys : NULL;
}

/** The reasons, one below the other; returns the rows used. */
static int put_reasons(const struct hv_plan_facts *f, const char *reason, struct hv_grid *g,
                       struct hv_rect r)
{
    size_t n = f->verdict != NULL && reason[0] == '\0' ? f->verdict->findings.n : 0;
    struct hv_str text = {0};
    int used = 0;
    for (size_t i = 0; i < n && used < r.h; i++) {
        hv_str_clear(&text);
        hv_str_addf(&text, "! %s", f->verdict->findings.items[i].text);
        used += hv_words_draw(g, (struct hv_rect){r.x, r.y + used, r.w, r.h - used},
                              hv_str_cstr(&text), HV_STYLE_WARNING);
    }
    if (n == 0) {
        hv_str_adds(&text, reason);
        if (text.n == 0) {
            hv_plan_trouble(f, &text);
        }
        used = hv_words_draw(g, r, hv_str_cstr(&text), HV_STYLE_WARNING);
    }
    hv_str_free(&text);
    return used;
}

void hv_ui_no_plan(const struct hv_plan_facts *facts, const char *reason, struct hv_grid *g,
                   struct hv_rect body)
{
    enum { HINTS = 3 };
    const struct hv_row *row = facts->row;
    struct hv_str text = {0};
    struct hv_rect in = {body.x + 1, body.y + 1, body.w - 2, body.h - 1};
    if (row == NULL) {
        hv_str_adds(&text, "no plan to draw yet");
    } else if (row->plan == NULL) {
        hv_str_addf(&text, "%s has no plan: %s", row->name, hv_row_state_name(row->state));
        reason = row->reason;
    } else {
        hv_str_addf(&text, "%s has no timeline%s", row->name,
                    row->outdated ? ": it was made before an edit of the workspace" : "");
    }
    int y = hv_words_draw(g, in, hv_str_cstr(&text), HV_STYLE_TITLE);
    if (row != NULL && in.h - y > HINTS + 1) {
        struct hv_rect at = {in.x, in.y + y, in.w, in.h - y - HINTS - 1};
        y += put_reasons(facts, reason, g, at);
    }
    static const char *const hints[HINTS] = {"3  choose a strategy, Enter runs it",
                                             "4  choose another plan, Enter draws it",
                                             "u  undo the edit, if that was it"};
    for (int i = 0; i < HINTS - (row == NULL || !row->outdated); i++) {
        (void)hv_grid_put(g, in.x, in.y + y + 1 + i, in.w, hints[i], HV_STYLE_TEXT);
    }
    hv_str_free(&text);
}

void hv_ui_error(struct hv_app *app, const struct hv_err *err)
{
    char buf[sizeof err->text + sizeof err->file + 64];
    hv_app_message(app, HV_MSG_ERROR, "%s", hv_err_format(err, buf, sizeof buf));
}

unsigned hv_ui_tick(void *state, struct hv_app *app, int64_t now_ms)
{
    (void)state;
    (void)now_ms;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    bool changed = hv_session_tick(s);
    const char *notice = hv_session_notice(s);
    if (notice[0] != '\0') {
        hv_app_notice(app, notice);
        changed = true;
    }
    return changed ? HV_APP_REDRAW : 0;
}

int hv_ui_timeout_ms(const void *state, const void *model, int64_t now_ms)
{
    (void)state;
    (void)now_ms;
    return hv_session_timeout_ms(hv_ui_session(model));
}

const struct hv_view_ops *const *hv_ui_screens(size_t *n)
{
    *n = HV_COUNT(screens);
    return screens;
}

/** Writes what is on the screen. */
static void save_screen(struct hv_app *app, const char *path)
{
    struct hv_grid grid = {0};
    struct hv_err err = {0};
    hv_app_draw(app, &grid);
    if (hv_grid_save(&grid, NULL, path, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "screen written to %s", path);
    }
    hv_grid_free(&grid);
}

/** Does what the prompt handed back. */
static unsigned finish_command(struct hv_app *app, const struct hv_prompt_outcome *o)
{
    struct hv_err err = {0};
    switch (o->todo) {
    case HV_TODO_NOTHING:
        return HV_APP_REDRAW;
    case HV_TODO_SCREEN:
        if (hv_app_open(app, hv_str_cstr(&o->arg), &err) != HV_OK) {
            hv_ui_error(app, &err);
        }
        return HV_APP_REDRAW;
    case HV_TODO_HELP:
        hv_app_help(app, hv_str_cstr(&o->arg));
        return HV_APP_REDRAW;
    case HV_TODO_SAVE_SCREEN:
        save_screen(app, hv_str_cstr(&o->arg));
        return HV_APP_REDRAW;
    case HV_TODO_IMPORT:
        hv_ui_import(app, hv_str_cstr(&o->arg));
        return HV_APP_REDRAW;
    case HV_TODO_QUIT:
        if (!o->force && hv_session_dirty(hv_ui_session(hv_app_model(app)))) {
            hv_app_message(app, HV_MSG_WARNING,
                           "unsaved changes: `:write` saves them, `:quit !` leaves without");
            return HV_APP_REDRAW;
        }
        return HV_APP_QUIT;
    }
    return 0;
}

static unsigned run_command(void *model, struct hv_app *app, const char *line)
{
    struct hv_prompt_outcome o = {0};
    struct hv_err err = {0};
    unsigned flags = HV_APP_REDRAW;
    if (hv_ui_command(app, line)) {
        return flags;
    }
    if (hv_session_command(hv_ui_session(model), line, &o, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        if (o.message.n > 0) {
            hv_app_message(app, HV_MSG_INFO, "%s", hv_str_cstr(&o.message));
        }
        flags = finish_command(app, &o);
    }
    hv_prompt_outcome_free(&o);
    return flags;
}

static unsigned save_to(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_err err = {0};
    struct hv_session *s = hv_ui_session(ctx);
    if (hv_session_save(s, path, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "saved %s",
                       hv_session_path(s) != NULL ? hv_session_path(s) : "");
    }
    return HV_APP_REDRAW;
}

static unsigned save(void *model, struct hv_app *app)
{
    if (hv_session_path(hv_ui_session(model)) == NULL) {
        hv_app_ask(app, "save workspace in folder: ", "", save_to, model);
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    return HV_APP_HANDLED | save_to(model, app, NULL);
}

static unsigned undo(struct hv_session *s, struct hv_app *app, bool back)
{
    const char *label = back ? hv_session_undo_label(s) : hv_session_redo_label(s);
    char text[256] = "";
    if (label != NULL) {
        (void)strncat(text, label, sizeof text - 1);
    }
    bool done = back ? hv_session_undo(s) : hv_session_redo(s);
    if (done) {
        hv_app_message(app, HV_MSG_INFO, "%s: %s", back ? "undone" : "redone", text);
    } else {
        hv_app_message(app, HV_MSG_INFO, "nothing to %s", back ? "undo" : "redo");
    }
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned import_answer(void *ctx, struct hv_app *app, const char *words)
{
    (void)ctx;
    hv_ui_import(app, words);
    return HV_APP_REDRAW;
}

static unsigned common_action(void *model, struct hv_app *app, enum hv_action a)
{
    struct hv_session *s = hv_ui_session(model);
    if (a == HV_ACT_SAVE) {
        return save(model, app);
    }
    if (a == HV_ACT_TOUR) {
        hv_ui_tour(model, app);
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    if (a == HV_ACT_UNDO || a == HV_ACT_REDO) {
        return undo(s, app, a == HV_ACT_UNDO);
    }
    if (a == HV_ACT_IMPORT) {
        hv_app_ask_path(app, "files of other programs, or local: ", "", import_answer, NULL);
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    if (a == HV_ACT_STOP) {
        size_t n = hv_session_cancel_all(s) + hv_session_lua_stop(s);
        if (n > 0) {
            hv_app_message(app, HV_MSG_INFO, "%zu cancelled; the best plans so far are kept", n);
        } else {
            hv_app_message(app, HV_MSG_INFO, "nothing is running");
        }
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    return 0;
}

static bool complete_path(const void *model, const char *text, size_t n, struct hv_str *out)
{
    return hv_session_complete_path(hv_ui_session(model), text, n, out);
}

static void project(const void *model, struct hv_str *out)
{
    const struct hv_session *s = hv_ui_session(model);
    size_t running = hv_session_n_running(s) + hv_session_n_queued(s);
    if (running > 0) {
        hv_str_addf(out, "%zu running  ", running);
    }
    hv_str_addf(out, "%s%s", hv_session_name(s), hv_session_dirty(s) ? "*" : "");
}

static bool unsaved(const void *model)
{
    return hv_session_dirty(hv_ui_session(model));
}

/** Warnings and errors stay to be read on screen 8. */
static void said(void *model, enum hv_message kind, const char *text)
{
    if (kind != HV_MSG_INFO) {
        hv_session_log(hv_ui_session(model), kind == HV_MSG_ERROR ? HV_LOG_ERROR : HV_LOG_WARN,
                       "screen", "%s", text);
    }
}

struct hv_app *hv_ui_app(struct hv_ui *ui, struct hv_keymap *keys, bool ascii)
{
    struct hv_app_config c = {.model = ui,
                              .views = screens,
                              .n_views = HV_COUNT(screens),
                              .command = run_command,
                              .action = common_action,
                              .complete = hv_ui_complete,
                              .describe = hv_ui_describe,
                              .complete_path = complete_path,
                              .project = project,
                              .unsaved = unsaved,
                              .said = said,
                              .guide = hv_ui_tour_guide,
                              .did = hv_ui_tour_did,
                              .keys = keys,
                              .ascii = ascii};
    ui->keys = keys;
    return hv_app_new(&c);
}
