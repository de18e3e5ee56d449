/** The application over a session: `:` commands, saving, undo, messages. */
#include "ui/screens/screens.h"

#include <string.h>

#include "ui/session/prompt/prompt.h"
#include "ui/view/grid/picture.h"

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

/** Performs the action returned by the prompt. */
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
                           "unsaved changes: `:write` saves them, `:quit !` discards them");
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
            hv_app_message(app, HV_MSG_INFO, "%zu cancelled; their best plans are kept", n);
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
    size_t running = hv_session_n_running(s), queued = hv_session_n_queued(s);
    if (running + queued > 0) {
        hv_str_addf(out, "%zu running", running);
        if (queued > 0) {
            hv_str_addf(out, ", %zu queued", queued);
        }
        hv_str_adds(out, "  ");
    }
    hv_str_addf(out, "%s%s", hv_session_name(s), hv_session_dirty(s) ? "*" : "");
}

static bool unsaved(const void *model)
{
    return hv_session_dirty(hv_ui_session(model));
}

/** Warnings and errors remain readable on screen 8. */
static void said(void *model, enum hv_message kind, const char *text)
{
    if (kind != HV_MSG_INFO) {
        hv_session_log(hv_ui_session(model), kind == HV_MSG_ERROR ? HV_LOG_ERROR : HV_LOG_WARN,
                       "screen", "%s", text);
    }
}

struct hv_app *hv_ui_app(struct hv_ui *ui, struct hv_keymap *keys, bool ascii)
{
    size_t n_screens = 0;
    const struct hv_view_ops *const *screens = hv_ui_screens(&n_screens);
    struct hv_app_config c = {.model = ui,
                              .views = screens,
                              .n_views = n_screens,
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
