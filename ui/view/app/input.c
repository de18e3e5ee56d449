/*
 * Input: keys and mouse, prompts, actions and commands. Not for drawing (draw.c) nor for the stack
 * of views (app.c).
 */
#include "ui/view/app/app_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "solver/base/arena.h"
#include "ui/view/grid/layout.h"

void hv_app_ask(struct hv_app *app, const char *label, const char *start, hv_app_answer *done,
                void *ctx)
{
    (void)snprintf(app->ask_label, sizeof app->ask_label, "%s", label);
    hv_line_set(&app->ask, start);
    app->ask.complete = NULL;
    app->answer = done;
    app->answer_ctx = ctx;
    app->prompt = HV__PROMPT_ASK;
    app->dirty = true;
}

void hv_app_ask_path(struct hv_app *app, const char *label, const char *start, hv_app_answer *done,
                     void *ctx)
{
    hv_app_ask(app, label, start, done, ctx);
    app->ask.complete = app->config.complete_path;
    app->ask.complete_ctx = app->config.model;
}

static void find(struct hv_app *app, int direction)
{
    struct hv__open_view *v = hv__app_top(app);
    if (!app->find_text[0]) {
        hv_app_message(app, HV_MSG_INFO, "no search text yet; / asks for one");
        return;
    }
    unsigned flags = v->ops->find ? v->ops->find(v->state, app, app->find_text, direction) : 0;
    app->dirty = true;
    if (!(flags & HV_APP_HANDLED)) {
        hv_app_message(app, HV_MSG_WARNING, "not found: %s", app->find_text);
    }
    hv__app_apply(app, flags);
}

bool hv_app_goto(struct hv_app *app, const char *text)
{
    struct hv__open_view *v = hv__app_top(app);
    unsigned flags = v->ops->find ? v->ops->find(v->state, app, text, 0) : 0;
    hv__app_apply(app, flags);
    return (flags & HV_APP_HANDLED) != 0;
}

static void start_prompt(struct hv_app *app, enum hv__prompt p)
{
    hv_line_set(p == HV__PROMPT_COMMAND ? &app->command : &app->find, "");
    app->prompt = p;
}

void hv_app_type(struct hv_app *app, const char *line)
{
    start_prompt(app, HV__PROMPT_COMMAND);
    hv_line_set(&app->command, line);
    app->dirty = true;
}

void hv_app_help(struct hv_app *app, const char *word)
{
    hv_help_open(&app->help, &app->config, hv__app_top(app)->ops);
    hv_line_set(&app->help.search, word);
    app->in_help = app->dirty = true;
}

/* Actions of the frame itself; false when it is none. */
static bool frame_action(struct hv_app *app, enum hv_action a)
{
    if (a >= HV_ACT_SCREEN_1 && a <= HV_ACT_SCREEN_8) {
        if (!hv__app_show_tab(app, (int)a - (int)HV_ACT_SCREEN_1 + 1)) {
            hv_app_message(app, HV_MSG_WARNING, "there is no screen %d",
                           (int)a - (int)HV_ACT_SCREEN_1 + 1);
        }
    } else if (a == HV_ACT_HELP) {
        hv_app_help(app, "");
    } else if (a == HV_ACT_QUIT || (a == HV_ACT_CLOSE && hv__app_top(app)->ops->quits)) {
        hv__app_try_quit(app);
    } else if (a == HV_ACT_CLOSE) {
        hv__app_close_top(app);
    } else if (a == HV_ACT_CANCEL) {
        app->message[0] = '\0';
        if (app->n_stack > 0) {
            hv__app_close_top(app);
        }
    } else if (a == HV_ACT_COMMAND) {
        start_prompt(app, HV__PROMPT_COMMAND);
    } else if (a == HV_ACT_FIND) {
        start_prompt(app, HV__PROMPT_FIND);
    } else if (a == HV_ACT_FIND_NEXT || a == HV_ACT_FIND_PREV) {
        find(app, a == HV_ACT_FIND_NEXT ? 1 : -1);
    } else {
        return a == HV_ACT_REDRAW;
    }
    return true;
}

bool hv_app_do(struct hv_app *app, enum hv_action a)
{
    struct hv__open_view *v = hv__app_top(app);
    const char *view = v->ops->name;
    unsigned flags = v->ops->action ? v->ops->action(v->state, app, a) : 0;
    bool done = (flags & HV_APP_HANDLED) != 0;
    if (!done && frame_action(app, a)) {
        app->dirty = done = true;
    } else {
        if (!done && app->config.action) {
            flags |= app->config.action(app->config.model, app, a);
        }
        hv__app_apply(app, flags);
        done = (flags & HV_APP_HANDLED) != 0;
    }
    if (done && app->config.did) {
        app->config.did(app->config.model, app, view, a);
    }
    return done;
}

void hv_app_command(struct hv_app *app, const char *line)
{
    while (*line == ' ') {
        line++;
    }
    app->dirty = true;
    if (strcmp(line, "q") == 0 || strcmp(line, "quit") == 0) {
        hv__app_try_quit(app);
    } else if (strcmp(line, "q!") == 0) {
        app->done = true;
    } else if (*line && app->config.command) {
        hv__app_apply(app, app->config.command(app->config.model, app, line));
    } else if (*line) {
        hv_app_message(app, HV_MSG_ERROR, "unknown command: %s", line);
    }
}

static void quit_key(struct hv_app *app, struct hv_key k)
{
    app->prompt = HV__PROMPT_NONE;
    bool is_char = k.code == HV_KEY_CHAR && !k.mods;
    if (is_char && (k.cp == 'y' || k.cp == 'Y')) {
        app->done = true;
    } else if (is_char && (k.cp == 's' || k.cp == 'S') && hv_app_do(app, HV_ACT_SAVE)) {
        app->done = !app->config.unsaved || !app->config.unsaved(app->config.model);
    }
}

static void prompt_key(struct hv_app *app, struct hv_key k)
{
    enum hv__prompt p = app->prompt;
    app->dirty = true;
    if (p == HV__PROMPT_QUIT) {
        quit_key(app, k);
        return;
    }
    struct hv_line *l = p == HV__PROMPT_COMMAND ? &app->command
                        : p == HV__PROMPT_FIND  ? &app->find
                                                : &app->ask;
    bool empty_back = k.code == HV_KEY_BACKSPACE && l->text.n == 0 && p != HV__PROMPT_ASK;
    enum hv_edit e = empty_back ? HV_EDIT_CANCEL : hv_line_key(l, k);
    if (e == HV_EDIT_ACCEPT || e == HV_EDIT_CANCEL) {
        app->prompt = HV__PROMPT_NONE;
    }
    if (e != HV_EDIT_ACCEPT) {
        return;
    }
    char *text = hv_xstrdup(hv_str_cstr(&l->text));
    if (p == HV__PROMPT_COMMAND) {
        hv_app_command(app, text);
    } else if (p == HV__PROMPT_ASK) {
        hv__app_apply(app, app->answer ? app->answer(app->answer_ctx, app, text) : 0);
    } else {
        if (*text) {
            (void)snprintf(app->find_text, sizeof app->find_text, "%s", text);
        }
        find(app, 0);
    }
    free(text);
}

static void help_key(struct hv_app *app, struct hv_key k)
{
    enum hv_action run = HV_ACT_NONE;
    app->dirty = true;
    app->in_help = hv_help_key(&app->help, k, hv_app_body(app).h, &run);
    if (run != HV_ACT_NONE) {
        (void)hv_app_do(app, run);
    }
}

/* A click on the key bar of the help. */
static void help_click(struct hv_app *app, enum hv_action a)
{
    enum hv_key_code code = a == HV_ACT_HELP_RUN ? HV_KEY_ENTER
                            : a == HV_ACT_UP     ? HV_KEY_UP
                            : a == HV_ACT_DOWN   ? HV_KEY_DOWN
                                                 : HV_KEY_ESC;
    if (a != HV_ACT_NONE) {
        help_key(app, (struct hv_key){.code = code});
    }
}

static void feed_key(struct hv_app *app, const struct hv_event *ev)
{
    if (app->prompt != HV__PROMPT_NONE) {
        prompt_key(app, ev->key);
        return;
    }
    if (app->message[0]) {
        hv_app_clear_message(app);
    }
    if (app->in_help) {
        help_key(app, ev->key);
        return;
    }
    struct hv__open_view *v = hv__app_top(app);
    unsigned flags = v->ops->event ? v->ops->event(v->state, app, ev) : 0;
    hv__app_apply(app, flags);
    if (flags & HV_APP_HANDLED) {
        return;
    }
    const struct hv_bind *b = hv_keymap_find(app->config.keys, v->ops->name, ev->key);
    if (b && b->command) {
        hv_app_command(app, b->command);
    } else if (b) {
        (void)hv_app_do(app, b->action);
    }
}

static void feed_mouse(struct hv_app *app, const struct hv_event *ev)
{
    const struct hv_key no_key = {.code = HV_KEY_NONE};
    struct hv_frame f = hv__app_frame(app);
    bool on_bar = ev->mouse == HV_MOUSE_PRESS && !f.tiny && ev->y == f.keybar.y;
    struct hv_key hint = on_bar ? hv_keybar_press(app->bar, app->n_bar, ev->x) : no_key;
    if (hint.code != HV_KEY_NONE) {
        struct hv_event press = hv_event_key(hint);
        feed_key(app, &press);
        return;
    }
    if (app->prompt != HV__PROMPT_NONE) {
        return;
    }
    if (app->in_help) {
        bool wheel = ev->mouse == HV_MOUSE_WHEEL_UP || ev->mouse == HV_MOUSE_WHEEL_DOWN;
        enum hv_key_code code = ev->mouse == HV_MOUSE_WHEEL_UP ? HV_KEY_UP : HV_KEY_DOWN;
        for (int i = 0; wheel && i < 3; i++) {
            help_key(app, (struct hv_key){.code = code});
        }
        if (on_bar) {
            help_click(app, hv_keybar_hit(app->bar, app->n_bar, ev->x));
        }
        return;
    }
    if (ev->mouse == HV_MOUSE_PRESS && !f.tiny && ev->y == f.tabs.y) {
        const char *titles[HV__MAX_TABS], *shorts[HV__MAX_TABS];
        struct hv_tabs t = hv__app_tabs(app, titles, shorts);
        size_t hit = hv_tabs_hit(&t, f.tabs, ev->x);
        if (hit != SIZE_MAX) {
            (void)hv__app_show_tab(app, (int)hit + 1);
        }
        return;
    }
    if (on_bar) {
        enum hv_action a = hv_keybar_hit(app->bar, app->n_bar, ev->x);
        if (a != HV_ACT_NONE) {
            (void)hv_app_do(app, a);
        }
        return;
    }
    struct hv__open_view *v = hv__app_top(app);
    hv__app_apply(app, v->ops->event ? v->ops->event(v->state, app, ev) : 0);
}

/* A character of pasted text is kept until the text is complete; line ends become blanks. */
static void feed_pasting(struct hv_app *app, uint32_t cp)
{
    utf8proc_uint8_t utf8[4];
    utf8proc_ssize_t n = utf8proc_encode_char((utf8proc_int32_t)(cp == '\n' ? ' ' : cp), utf8);
    bool blank = utf8[0] == ' ' && (app->pasted.n == 0 || cp == '\n') &&
                 (app->pasted.n == 0 || hv_str_cstr(&app->pasted)[app->pasted.n - 1] == ' ');
    if (n <= 0 || blank) {
        return;
    }
    if (app->pasted.n + (size_t)n > HV_LINE_MAX) {
        app->paste_cut = true;
        return;
    }
    hv_str_add(&app->pasted, (const char *)utf8, (size_t)n);
}

/* True where a text goes into the line that has the keys. */
static bool paste_into_line(struct hv_app *app, const char *text)
{
    struct hv_line *lines[] = {NULL, &app->command, &app->find, &app->ask, NULL};
    struct hv_line *l = app->prompt != HV__PROMPT_NONE ? lines[app->prompt]
                        : app->in_help                 ? &app->help.search
                                                       : NULL;
    if (l != NULL) {
        (void)hv_line_paste(l, text);
    }
    return l != NULL;
}

/* Pasted text changes the field that is edited, and nothing else. */
static void feed_paste(struct hv_app *app, const struct hv_event *ev)
{
    struct hv_event paste = *ev;
    size_t end = app->pasted.n;
    const char *all = hv_str_cstr(&app->pasted);
    while (end > 0 && all[end - 1] == ' ') {
        end--;
    }
    char *text = hv_xstrdup(all);
    text[end] = '\0';
    paste.text = text;
    app->dirty = true;
    bool taken = paste_into_line(app, text);
    if (!taken && app->prompt == HV__PROMPT_NONE && !app->in_help) {
        struct hv__open_view *v = hv__app_top(app);
        unsigned flags = v->ops->event ? v->ops->event(v->state, app, &paste) : 0;
        hv__app_apply(app, flags);
        taken = (flags & HV_APP_HANDLED) != 0;
    }
    if (!taken && app->prompt == HV__PROMPT_NONE) {
        hv_app_message(app, HV_MSG_WARNING,
                       "pasted text was ignored: no field is being edited here");
    } else if (taken && app->paste_cut) {
        hv_app_message(app, HV_MSG_WARNING, "only the first %d bytes were pasted", HV_LINE_MAX);
    }
    free(text);
    hv_str_clear(&app->pasted);
    app->paste_cut = false;
}

bool hv_app_feed(struct hv_app *app, const struct hv_event *ev)
{
    switch (ev->type) {
    case HV_EV_KEY:
        feed_key(app, ev);
        break;
    case HV_EV_MOUSE:
        feed_mouse(app, ev);
        break;
    case HV_EV_PASTING:
        feed_pasting(app, ev->key.cp);
        break;
    case HV_EV_PASTE:
        feed_paste(app, ev);
        break;
    case HV_EV_RESIZE:
        app->w = ev->w < 0 ? 0 : ev->w > HV_GRID_MAX ? HV_GRID_MAX : ev->w;
        app->h = ev->h < 0 ? 0 : ev->h > HV_GRID_MAX ? HV_GRID_MAX : ev->h;
        app->dirty = true;
        break;
    case HV_EV_REDRAW:
        app->dirty = true;
        break;
    case HV_EV_QUIT:
        app->done = true;
        break;
    case HV_EV_NONE:
    case HV_EV_FD:
        break;
    }
    return !app->done;
}

void hv_app_reply(struct hv_app *app, const char *text)
{
    struct hv_line *lines[] = {NULL, &app->command, &app->find, &app->ask, NULL};
    if (text && lines[app->prompt]) {
        hv_line_set(lines[app->prompt], text);
    } else if (text && text[0] && app->prompt == HV__PROMPT_QUIT) {
        prompt_key(app, (struct hv_key){.code = HV_KEY_CHAR, .cp = (unsigned char)text[0]});
    } else {
        text = NULL;
    }
    if (app->prompt != HV__PROMPT_NONE) {
        prompt_key(app, (struct hv_key){.code = text ? HV_KEY_ENTER : HV_KEY_ESC});
    }
}
