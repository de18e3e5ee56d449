/*
 * The application: view stack, messages and the clock. Events are in input.c, the frame around a
 * view in draw.c. Uses no terminal and no clock, and never dereferences the model.
 */
#include "ui/view/app/app_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "ui/view/grid/layout.h"

struct hv__open_view *hv__app_top(struct hv_app *app)
{
    return app->n_stack > 0 ? &app->stack[app->n_stack - 1] : &app->tabs[app->tab];
}

const struct hv__open_view *hv__app_top_const(const struct hv_app *app)
{
    return app->n_stack > 0 ? &app->stack[app->n_stack - 1] : &app->tabs[app->tab];
}

static void open_view(struct hv_app *app, struct hv__open_view *v, const struct hv_view_ops *ops)
{
    v->ops = ops;
    v->state = hv_xcalloc(1, ops->state_size > 0 ? ops->state_size : 1);
    if (ops->open) {
        ops->open(v->state, app);
    }
}

static void close_view(struct hv_app *app, struct hv__open_view *v)
{
    if (!v->ops) {
        return;
    }
    if (v->ops->close) {
        v->ops->close(v->state, app);
    }
    free(v->state);
    *v = (struct hv__open_view){0};
}

const struct hv_view_ops *hv__app_tab_ops(const struct hv_app *app, int tab)
{
    for (size_t i = 0; i < app->config.n_views; i++) {
        if (app->config.views[i]->tab == tab) {
            return app->config.views[i];
        }
    }
    return NULL;
}

bool hv__app_show_tab(struct hv_app *app, int tab)
{
    const struct hv_view_ops *ops =
        tab > 0 && tab <= HV__MAX_TABS ? hv__app_tab_ops(app, tab) : NULL;
    if (!ops) {
        return false;
    }
    while (app->n_stack > 0) {
        close_view(app, &app->stack[--app->n_stack]);
    }
    app->tab = tab;
    app->dirty = true;
    if (!app->tabs[tab].ops) {
        open_view(app, &app->tabs[tab], ops);
    }
    return true;
}

struct hv_app *hv_app_new(const struct hv_app_config *config)
{
    struct hv_app *app = hv_xcalloc(1, sizeof *app);
    app->config = *config;
    app->w = HV_FULL_W;
    app->h = HV_FULL_H;
    app->dirty = true;
    app->command.complete = config->complete;
    app->command.complete_ctx = config->model;
    for (int tab = 1; tab <= HV__MAX_TABS && app->tab == 0; tab++) {
        (void)hv__app_show_tab(app, tab);
    }
    if (app->tab == 0) {
        HV_BUG("an application needs a view with a tab");
    }
    return app;
}

void hv_app_free(struct hv_app *app)
{
    if (!app) {
        return;
    }
    while (app->n_stack > 0) {
        close_view(app, &app->stack[--app->n_stack]);
    }
    for (int i = 0; i <= HV__MAX_TABS; i++) {
        close_view(app, &app->tabs[i]);
    }
    hv_line_free(&app->command);
    hv_line_free(&app->find);
    hv_line_free(&app->ask);
    hv_str_free(&app->pasted);
    hv_help_free(&app->help);
    free(app);
}

enum hv_status hv_app_open(struct hv_app *app, const char *name, struct hv_err *err)
{
    const char *names[64];
    size_t n = app->config.n_views < 64 ? app->config.n_views : 64;
    for (size_t i = 0; i < n; i++) {
        const struct hv_view_ops *ops = app->config.views[i];
        names[i] = ops->name;
        if (strcmp(ops->name, name) != 0) {
            continue;
        }
        app->dirty = true;
        if (ops->tab > 0) {
            (void)hv__app_show_tab(app, ops->tab);
            return HV_OK;
        }
        if (app->n_stack == HV__MAX_STACK) {
            return hv_err_set(err, HV_ELIMIT, "too many views are open; close one with q");
        }
        open_view(app, &app->stack[app->n_stack++], ops);
        return HV_OK;
    }
    const char *near = hv_suggest(name, names, n);
    return hv_err_set(err, HV_EUSAGE, "there is no view '%s'%s%s%s", name,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

const char *hv_app_view(const struct hv_app *app)
{
    return hv__app_top_const(app)->ops->name;
}

void *hv_app_model(const struct hv_app *app)
{
    return app->config.model;
}

bool hv_app_is_dirty(const struct hv_app *app)
{
    return app->dirty;
}

bool hv_app_is_done(const struct hv_app *app)
{
    return app->done;
}

void hv_app_touch(struct hv_app *app)
{
    app->dirty = true;
}

void hv_app_set_terminal(struct hv_app *app, struct hv_app_terminal terminal)
{
    app->terminal = terminal;
}

void hv_app_outside(struct hv_app *app, void (*run)(void *ctx), void *ctx)
{
    if (app->terminal.give) {
        app->terminal.give(app->terminal.ctx);
    }
    run(ctx);
    if (app->terminal.take) {
        app->terminal.take(app->terminal.ctx, app);
    }
    app->dirty = true;
}

bool hv_app_set_mouse(struct hv_app *app, bool on)
{
    app->dirty = true;
    return app->terminal.mouse && app->terminal.mouse(app->terminal.ctx, on);
}

enum hv_status hv_app_set_theme(struct hv_app *app, const char *name, struct hv_err *err)
{
    app->dirty = true;
    return app->terminal.theme
               ? app->terminal.theme(app->terminal.ctx, name, err)
               : hv_err_set(err, HV_ENO, "there is no terminal whose colours could change");
}

void hv_app_set_ascii(struct hv_app *app, bool ascii)
{
    app->config.ascii = ascii;
    app->dirty = true;
}

void hv_app_set_mono(struct hv_app *app, bool mono)
{
    app->config.mono = mono;
}

const char *hv_app_find_text(const struct hv_app *app)
{
    return app->find_text;
}

const char *hv_app_message_text(const struct hv_app *app)
{
    return app->message;
}

void hv_app_message(struct hv_app *app, enum hv_message kind, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(app->message, sizeof app->message, fmt, ap);
    va_end(ap);
    app->message_kind = kind;
    app->message_ms = -1;
    app->dirty = true;
    if (app->config.said) {
        app->config.said(app->config.model, kind, app->message);
    }
}

void hv_app_clear_message(struct hv_app *app)
{
    app->message[0] = '\0';
    app->dirty = true;
}

void hv_app_notice(struct hv_app *app, const char *text)
{
    (void)snprintf(app->notice, sizeof app->notice, "%s", text);
    app->n_notices++;
    app->dirty = true;
}

/* Milliseconds until the notice may be shown; -1 = there is none, or it waits for a key. */
static int notice_due_ms(const struct hv_app *app)
{
    if (!app->notice[0] || (app->message[0] && app->message_kind == HV_MSG_ERROR)) {
        return -1;
    }
    if (!app->message[0] || app->message_ms < 0) {
        return 0;
    }
    int64_t left = app->message_ms + HV_APP_ANSWER_MS - app->now_ms;
    return left > 0 ? (int)left : 0;
}

static void tick_notice(struct hv_app *app)
{
    if (app->message[0] && app->message_ms < 0) {
        app->message_ms = app->now_ms;
    }
    if (notice_due_ms(app) != 0) {
        return;
    }
    char text[sizeof app->notice];
    (void)memcpy(text, app->notice, sizeof text);
    size_t others = app->n_notices - 1;
    app->notice[0] = '\0';
    app->n_notices = 0;
    if (others > 0) {
        hv_app_message(app, HV_MSG_INFO, "%s (and %zu more before)", text, others);
    } else {
        hv_app_message(app, HV_MSG_INFO, "%s", text);
    }
    app->message_ms = app->now_ms - HV_APP_ANSWER_MS; /* the next notice may follow at once */
}

void hv__app_try_quit(struct hv_app *app)
{
    if (app->config.unsaved && app->config.unsaved(app->config.model)) {
        app->prompt = HV__PROMPT_QUIT;
    } else {
        app->done = true;
    }
    app->dirty = true;
}

void hv__app_close_top(struct hv_app *app)
{
    app->dirty = true;
    if (app->n_stack > 0) {
        close_view(app, &app->stack[--app->n_stack]);
    } else {
        hv__app_try_quit(app);
    }
}

void hv__app_apply(struct hv_app *app, unsigned flags)
{
    if (flags & HV_APP_REDRAW) {
        app->dirty = true;
    }
    if (flags & HV_APP_CLOSE) {
        hv__app_close_top(app);
    }
    if (flags & HV_APP_QUIT) {
        hv__app_try_quit(app);
    }
}

int hv_app_timeout_ms(const struct hv_app *app)
{
    const struct hv__open_view *v = hv__app_top_const(app);
    int view_ms =
        v->ops->timeout_ms ? v->ops->timeout_ms(v->state, app->config.model, app->now_ms) : -1;
    int notice_ms = notice_due_ms(app);
    return view_ms < 0 || (notice_ms >= 0 && notice_ms < view_ms) ? notice_ms : view_ms;
}

void hv_app_tick(struct hv_app *app, int64_t now_ms)
{
    struct hv__open_view *v = hv__app_top(app);
    app->now_ms = now_ms;
    if (v->ops->tick) {
        hv__app_apply(app, v->ops->tick(v->state, app, now_ms));
    }
    tick_notice(app);
}
