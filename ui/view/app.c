/*
 * The application: view stack, prompts, help, key dispatch and the frame around a view. Reads no
 * terminal and no clock; knows nothing of the model.
 */
#include "ui/view/app.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "ui/view/help.h"
#include "ui/view/layout.h"
#include "ui/view/plain.h"

#define MAX_TABS  9
#define MAX_STACK 16
#define MAX_BAR   32

enum prompt { PROMPT_NONE, PROMPT_COMMAND, PROMPT_FIND, PROMPT_ASK, PROMPT_QUIT };

/* An open view. */
struct open_view {
    const struct hv_view_ops *ops;
    void *state;
};

struct hv_app {
    struct hv_app_config config;
    struct open_view tabs[MAX_TABS + 1]; /* by tab number; ops NULL = never opened */
    int tab;
    struct open_view stack[MAX_STACK]; /* on top of the tab */
    size_t n_stack;
    int w, h;
    bool dirty, done, in_help;
    struct hv_help help;
    enum prompt prompt;
    struct hv_line command, find, ask;
    hv_app_answer *answer;
    void *answer_ctx;
    char ask_label[80], find_text[256], message[512];
    enum hv_message message_kind;
    int64_t message_ms; /* when the message was first ticked; -1 = not yet */
    char notice[512];   /* waits behind the message */
    size_t n_notices;
    int64_t now_ms;
    struct hv_app_terminal terminal;
    struct hv_keybar_item bar[MAX_BAR];
    size_t n_bar;
};

static struct open_view *top_view(struct hv_app *app)
{
    return app->n_stack > 0 ? &app->stack[app->n_stack - 1] : &app->tabs[app->tab];
}

static const struct open_view *top_view_const(const struct hv_app *app)
{
    return app->n_stack > 0 ? &app->stack[app->n_stack - 1] : &app->tabs[app->tab];
}

static void open_view(struct hv_app *app, struct open_view *v, const struct hv_view_ops *ops)
{
    v->ops = ops;
    v->state = hv_xcalloc(1, ops->state_size > 0 ? ops->state_size : 1);
    if (ops->open)
        ops->open(v->state, app);
}

static void close_view(struct hv_app *app, struct open_view *v)
{
    if (!v->ops)
        return;
    if (v->ops->close)
        v->ops->close(v->state, app);
    free(v->state);
    *v = (struct open_view){0};
}

static const struct hv_view_ops *tab_ops(const struct hv_app *app, int tab)
{
    for (size_t i = 0; i < app->config.n_views; i++)
        if (app->config.views[i]->tab == tab)
            return app->config.views[i];
    return NULL;
}

static bool show_tab(struct hv_app *app, int tab)
{
    const struct hv_view_ops *ops = tab > 0 && tab <= MAX_TABS ? tab_ops(app, tab) : NULL;
    if (!ops)
        return false;
    while (app->n_stack > 0)
        close_view(app, &app->stack[--app->n_stack]);
    app->tab = tab;
    app->dirty = true;
    if (!app->tabs[tab].ops)
        open_view(app, &app->tabs[tab], ops);
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
    for (int tab = 1; tab <= MAX_TABS && app->tab == 0; tab++)
        (void)show_tab(app, tab);
    if (app->tab == 0)
        HV_BUG("an application needs a view with a tab");
    return app;
}

void hv_app_free(struct hv_app *app)
{
    if (!app)
        return;
    while (app->n_stack > 0)
        close_view(app, &app->stack[--app->n_stack]);
    for (int i = 0; i <= MAX_TABS; i++)
        close_view(app, &app->tabs[i]);
    hv_line_free(&app->command);
    hv_line_free(&app->find);
    hv_line_free(&app->ask);
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
        if (strcmp(ops->name, name) != 0)
            continue;
        app->dirty = true;
        if (ops->tab > 0) {
            (void)show_tab(app, ops->tab);
            return HV_OK;
        }
        if (app->n_stack == MAX_STACK)
            return hv_err_set(err, HV_ELIMIT, "too many views are open; close one with q");
        open_view(app, &app->stack[app->n_stack++], ops);
        return HV_OK;
    }
    const char *near = hv_suggest(name, names, n);
    return hv_err_set(err, HV_EUSAGE, "there is no view '%s'%s%s%s", name,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

const char *hv_app_view(const struct hv_app *app)
{
    return top_view_const(app)->ops->name;
}

void *hv_app_view_state(struct hv_app *app, const char *name)
{
    for (size_t i = app->n_stack; i > 0; i--)
        if (strcmp(app->stack[i - 1].ops->name, name) == 0)
            return app->stack[i - 1].state;
    for (int i = 0; i <= MAX_TABS; i++)
        if (app->tabs[i].ops && strcmp(app->tabs[i].ops->name, name) == 0)
            return app->tabs[i].state;
    return NULL;
}

void *hv_app_model(const struct hv_app *app)
{
    return app->config.model;
}

struct hv_rect hv_app_body(const struct hv_app *app)
{
    return hv_layout_frame(app->w, app->h).body;
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
    if (app->terminal.give)
        app->terminal.give(app->terminal.ctx);
    run(ctx);
    if (app->terminal.take)
        app->terminal.take(app->terminal.ctx, app);
    app->dirty = true;
}

void hv_app_set_ascii(struct hv_app *app, bool ascii)
{
    app->config.ascii = ascii;
    app->dirty = true;
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
    if (app->config.said)
        app->config.said(app->config.model, kind, app->message);
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

/* Milliseconds until the notice may be shown; -1 = there is none, or only a key lets it in. */
static int notice_due_ms(const struct hv_app *app)
{
    if (!app->notice[0] || (app->message[0] && app->message_kind == HV_MSG_ERROR))
        return -1;
    if (!app->message[0] || app->message_ms < 0)
        return 0;
    int64_t left = app->message_ms + HV_APP_ANSWER_MS - app->now_ms;
    return left > 0 ? (int)left : 0;
}

static void tick_notice(struct hv_app *app)
{
    if (app->message[0] && app->message_ms < 0)
        app->message_ms = app->now_ms;
    if (notice_due_ms(app) != 0)
        return;
    char text[sizeof app->notice];
    (void)memcpy(text, app->notice, sizeof text);
    size_t others = app->n_notices - 1;
    app->notice[0] = '\0';
    app->n_notices = 0;
    if (others > 0)
        hv_app_message(app, HV_MSG_INFO, "%s (and %zu more before)", text, others);
    else
        hv_app_message(app, HV_MSG_INFO, "%s", text);
    app->message_ms = app->now_ms - HV_APP_ANSWER_MS; /* the next notice may follow at once */
}

void hv_app_ask(struct hv_app *app, const char *label, const char *start, hv_app_answer *done,
                void *ctx)
{
    (void)snprintf(app->ask_label, sizeof app->ask_label, "%s", label);
    hv_line_set(&app->ask, start);
    app->answer = done;
    app->answer_ctx = ctx;
    app->prompt = PROMPT_ASK;
    app->dirty = true;
}

static void apply(struct hv_app *app, unsigned flags);

static void try_quit(struct hv_app *app)
{
    if (app->config.unsaved && app->config.unsaved(app->config.model))
        app->prompt = PROMPT_QUIT;
    else
        app->done = true;
    app->dirty = true;
}

static void close_top(struct hv_app *app)
{
    app->dirty = true;
    if (app->n_stack > 0)
        close_view(app, &app->stack[--app->n_stack]);
    else
        try_quit(app);
}

static void apply(struct hv_app *app, unsigned flags)
{
    if (flags & HV_APP_REDRAW)
        app->dirty = true;
    if (flags & HV_APP_CLOSE)
        close_top(app);
    if (flags & HV_APP_QUIT)
        try_quit(app);
}

static void find(struct hv_app *app, int direction)
{
    struct open_view *v = top_view(app);
    if (!app->find_text[0]) {
        hv_app_message(app, HV_MSG_INFO, "nothing to find yet; / asks for a text");
        return;
    }
    unsigned flags = v->ops->find ? v->ops->find(v->state, app, app->find_text, direction) : 0;
    app->dirty = true;
    if (!(flags & HV_APP_HANDLED))
        hv_app_message(app, HV_MSG_WARNING, "not found: %s", app->find_text);
    apply(app, flags);
}

static void start_prompt(struct hv_app *app, enum prompt p)
{
    hv_line_set(p == PROMPT_COMMAND ? &app->command : &app->find, "");
    app->prompt = p;
}

void hv_app_type(struct hv_app *app, const char *line)
{
    start_prompt(app, PROMPT_COMMAND);
    hv_line_set(&app->command, line);
    app->dirty = true;
}

/* Actions of the frame itself; false when it is none. */
static bool frame_action(struct hv_app *app, enum hv_action a)
{
    if (a >= HV_ACT_SCREEN_1 && a <= HV_ACT_SCREEN_8) {
        if (!show_tab(app, (int)a - (int)HV_ACT_SCREEN_1 + 1))
            hv_app_message(app, HV_MSG_WARNING, "there is no screen %d",
                           (int)a - (int)HV_ACT_SCREEN_1 + 1);
    } else if (a == HV_ACT_HELP) {
        hv_help_open(&app->help, &app->config, top_view(app)->ops);
        app->in_help = true;
    } else if (a == HV_ACT_QUIT) {
        try_quit(app);
    } else if (a == HV_ACT_CLOSE) {
        close_top(app);
    } else if (a == HV_ACT_CANCEL) {
        app->message[0] = '\0';
        if (app->n_stack > 0)
            close_top(app);
    } else if (a == HV_ACT_COMMAND) {
        start_prompt(app, PROMPT_COMMAND);
    } else if (a == HV_ACT_FIND) {
        start_prompt(app, PROMPT_FIND);
    } else if (a == HV_ACT_FIND_NEXT || a == HV_ACT_FIND_PREV) {
        find(app, a == HV_ACT_FIND_NEXT ? 1 : -1);
    } else {
        return a == HV_ACT_REDRAW;
    }
    return true;
}

bool hv_app_do(struct hv_app *app, enum hv_action a)
{
    struct open_view *v = top_view(app);
    unsigned flags = v->ops->action ? v->ops->action(v->state, app, a) : 0;
    if (!(flags & HV_APP_HANDLED) && frame_action(app, a)) {
        app->dirty = true;
        return true;
    }
    if (!(flags & HV_APP_HANDLED) && app->config.action)
        flags |= app->config.action(app->config.model, app, a);
    apply(app, flags);
    return (flags & HV_APP_HANDLED) != 0;
}

void hv_app_command(struct hv_app *app, const char *line)
{
    while (*line == ' ')
        line++;
    app->dirty = true;
    if (strcmp(line, "q") == 0 || strcmp(line, "quit") == 0)
        try_quit(app);
    else if (strcmp(line, "q!") == 0)
        app->done = true;
    else if (*line && app->config.command)
        apply(app, app->config.command(app->config.model, app, line));
    else if (*line)
        hv_app_message(app, HV_MSG_ERROR, "no command is known: %s", line);
}

static void quit_key(struct hv_app *app, struct hv_key k)
{
    app->prompt = PROMPT_NONE;
    bool is_char = k.code == HV_KEY_CHAR && !k.mods;
    if (is_char && (k.cp == 'y' || k.cp == 'Y'))
        app->done = true;
    else if (is_char && (k.cp == 's' || k.cp == 'S') && hv_app_do(app, HV_ACT_SAVE))
        app->done = !app->config.unsaved || !app->config.unsaved(app->config.model);
}

static void prompt_key(struct hv_app *app, struct hv_key k)
{
    enum prompt p = app->prompt;
    app->dirty = true;
    if (p == PROMPT_QUIT) {
        quit_key(app, k);
        return;
    }
    struct hv_line *l = p == PROMPT_COMMAND ? &app->command
                        : p == PROMPT_FIND  ? &app->find
                                            : &app->ask;
    bool empty_back = k.code == HV_KEY_BACKSPACE && l->text.n == 0 && p != PROMPT_ASK;
    enum hv_edit e = empty_back ? HV_EDIT_CANCEL : hv_line_key(l, k);
    if (e == HV_EDIT_ACCEPT || e == HV_EDIT_CANCEL)
        app->prompt = PROMPT_NONE;
    if (e != HV_EDIT_ACCEPT)
        return;
    char *text = hv_xstrdup(hv_str_cstr(&l->text));
    if (p == PROMPT_COMMAND) {
        hv_app_command(app, text);
    } else if (p == PROMPT_ASK) {
        apply(app, app->answer ? app->answer(app->answer_ctx, app, text) : 0);
    } else {
        if (*text)
            (void)snprintf(app->find_text, sizeof app->find_text, "%s", text);
        find(app, 0);
    }
    free(text);
}

static void help_key(struct hv_app *app, struct hv_key k)
{
    enum hv_action run = HV_ACT_NONE;
    app->dirty = true;
    app->in_help = hv_help_key(&app->help, k, hv_app_body(app).h, &run);
    if (run != HV_ACT_NONE)
        (void)hv_app_do(app, run);
}

static void feed_key(struct hv_app *app, const struct hv_event *ev)
{
    if (app->prompt != PROMPT_NONE) {
        prompt_key(app, ev->key);
        return;
    }
    if (app->message[0])
        hv_app_clear_message(app);
    if (app->in_help) {
        help_key(app, ev->key);
        return;
    }
    struct open_view *v = top_view(app);
    unsigned flags = v->ops->event ? v->ops->event(v->state, app, ev) : 0;
    apply(app, flags);
    if (flags & HV_APP_HANDLED)
        return;
    const struct hv_bind *b = hv_keymap_find(app->config.keys, v->ops->name, ev->key);
    if (b && b->command)
        hv_app_command(app, b->command);
    else if (b)
        (void)hv_app_do(app, b->action);
}

/* Tabs and their titles in order of their numbers. */
static struct hv_tabs make_tabs(const struct hv_app *app, const char **titles, const char **shorts)
{
    struct hv_tabs t = {.titles = titles, .short_titles = shorts};
    for (int tab = 1; tab <= MAX_TABS; tab++) {
        const struct hv_view_ops *ops = tab_ops(app, tab);
        titles[t.n] = ops ? ops->title : "-";
        shorts[t.n] = ops ? ops->short_title : "-";
        if (!ops && tab > app->tab)
            break;
        t.n++;
    }
    t.active = (size_t)app->tab - 1;
    return t;
}

static void feed_mouse(struct hv_app *app, const struct hv_event *ev)
{
    struct hv_frame f = hv_layout_frame(app->w, app->h);
    if (app->prompt != PROMPT_NONE)
        return;
    if (app->in_help) {
        bool wheel = ev->mouse == HV_MOUSE_WHEEL_UP || ev->mouse == HV_MOUSE_WHEEL_DOWN;
        enum hv_key_code code = ev->mouse == HV_MOUSE_WHEEL_UP ? HV_KEY_UP : HV_KEY_DOWN;
        for (int i = 0; wheel && i < 3; i++)
            help_key(app, (struct hv_key){.code = code});
        return;
    }
    if (ev->mouse == HV_MOUSE_PRESS && !f.tiny && ev->y == f.tabs.y) {
        const char *titles[MAX_TABS], *shorts[MAX_TABS];
        struct hv_tabs t = make_tabs(app, titles, shorts);
        size_t hit = hv_tabs_hit(&t, f.tabs, ev->x);
        if (hit != SIZE_MAX)
            (void)show_tab(app, (int)hit + 1);
        return;
    }
    if (ev->mouse == HV_MOUSE_PRESS && !f.tiny && ev->y == f.keybar.y) {
        enum hv_action a = hv_keybar_hit(app->bar, app->n_bar, ev->x);
        if (a != HV_ACT_NONE)
            (void)hv_app_do(app, a);
        return;
    }
    struct open_view *v = top_view(app);
    apply(app, v->ops->event ? v->ops->event(v->state, app, ev) : 0);
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

static void add_bar(struct hv_app *app, enum hv_action a)
{
    struct hv_key k;
    const char *view = top_view(app)->ops->name;
    if (app->n_bar == MAX_BAR || !hv_keymap_key_of(app->config.keys, view, a, &k))
        return;
    struct hv_keybar_item *item = &app->bar[app->n_bar++];
    char name[32];
    *item = (struct hv_keybar_item){.action = a, .label = hv_action_row(a)->label};
    if (a == HV_ACT_CLOSE && app->n_stack > 0)
        item->label = "Back";
    if (k.code == HV_KEY_CHAR && k.mods == 0 && (k.cp == '<' || k.cp == '>'))
        (void)snprintf(name, sizeof name, "%c", (char)k.cp);
    else
        (void)hv_key_name(k, name, sizeof name);
    size_t n = strlen(name);
    bool bracketed = n > 2 && name[0] == '<' && name[n - 1] == '>';
    (void)snprintf(item->key, sizeof item->key, "%.*s", (int)(bracketed ? n - 2 : n),
                   name + (bracketed ? 1 : 0));
}

static void draw_keybar(struct hv_app *app, struct hv_grid *g, struct hv_rect row)
{
    const enum hv_action *a = top_view(app)->ops->keybar;
    app->n_bar = 0;
    add_bar(app, HV_ACT_HELP);
    for (; a && *a != HV_ACT_NONE && app->n_bar < MAX_BAR - 1; a++)
        add_bar(app, *a);
    add_bar(app, HV_ACT_CLOSE);
    hv_keybar_fit(app->bar, app->n_bar, row.w);
    hv_keybar_draw(app->bar, app->n_bar, g, row);
}

static const char quit_question[] =
    "Unsaved changes. y quits without saving, s saves and quits, any other key stays";

const char *hv_app_question(const struct hv_app *app, const char **typed)
{
    const struct hv_line *lines[] = {NULL, &app->command, &app->find, &app->ask, NULL};
    const char *labels[] = {NULL, ":", "/", app->ask_label, quit_question};
    if (typed)
        *typed = lines[app->prompt] ? hv_str_cstr(&lines[app->prompt]->text) : "";
    return labels[app->prompt];
}

void hv_app_reply(struct hv_app *app, const char *text)
{
    struct hv_line *lines[] = {NULL, &app->command, &app->find, &app->ask, NULL};
    if (text && lines[app->prompt])
        hv_line_set(lines[app->prompt], text);
    else if (text && text[0] && app->prompt == PROMPT_QUIT)
        prompt_key(app, (struct hv_key){.code = HV_KEY_CHAR, .cp = (unsigned char)text[0]});
    else
        text = NULL;
    if (app->prompt != PROMPT_NONE)
        prompt_key(app, (struct hv_key){.code = text ? HV_KEY_ENTER : HV_KEY_ESC});
}

void hv_app_status(const struct hv_app *app, struct hv_str *out)
{
    const struct open_view *v = top_view_const(app);
    if (v->ops->status)
        v->ops->status(v->state, app->config.model, out);
}

size_t hv_app_bar_actions(const struct hv_app *app, enum hv_action *out, size_t cap)
{
    const enum hv_action *a = top_view_const(app)->ops->keybar;
    size_t n = 0;
    for (; a && a[n] != HV_ACT_NONE; n++)
        if (n < cap)
            out[n] = a[n];
    return n;
}

void hv_app_plain(struct hv_app *app, struct hv_str *out)
{
    struct hv_plain plain = {.out = out};
    struct hv_grid g = {.ascii = true, .plain = &plain};
    const struct open_view *v = top_view(app);
    hv_grid_resize(&g, app->w, app->h);
    struct hv_view_ctx ctx = {.grid = &g, .body = hv_layout_frame(app->w, app->h).body, .app = app};
    if (app->in_help)
        hv_help_draw(&app->help, &g, ctx.body);
    else
        v->ops->draw(v->state, app->config.model, &ctx);
    hv_plain_end(&g);
    hv_grid_free(&g);
}

static void draw_status(struct hv_app *app, struct hv_grid *g, struct hv_rect row)
{
    static const unsigned styles[] = {HV_STYLE_STATUS, HV_STYLE_WARNING, HV_STYLE_ERROR};
    const struct open_view *v = top_view(app);
    struct hv_str text = {0};
    if (app->prompt == PROMPT_COMMAND) {
        hv_line_draw(&app->command, g, row, ":", HV_STYLE_FIELD);
    } else if (app->prompt == PROMPT_FIND) {
        hv_line_draw(&app->find, g, row, "/", HV_STYLE_FIELD);
    } else if (app->prompt == PROMPT_ASK) {
        hv_line_draw(&app->ask, g, row, app->ask_label, HV_STYLE_FIELD);
    } else if (app->prompt == PROMPT_QUIT) {
        hv_grid_put_field(g, row, HV_LEFT, quit_question, HV_STYLE_WARNING);
    } else if (app->message[0]) {
        if (app->message_kind != HV_MSG_INFO)
            hv_str_adds(&text, app->message_kind == HV_MSG_ERROR ? "error: " : "! ");
        hv_str_adds(&text, app->message);
        hv_grid_put_field(g, row, HV_LEFT, hv_str_cstr(&text), styles[app->message_kind]);
    } else if (v->ops->status) {
        v->ops->status(v->state, app->config.model, &text);
        hv_grid_put_field(g, row, HV_LEFT, hv_str_cstr(&text), HV_STYLE_STATUS);
    }
    hv_str_free(&text);
}

void hv_app_draw(struct hv_app *app, struct hv_grid *g)
{
    struct hv_frame f = hv_layout_frame(app->w, app->h);
    const struct open_view *v = top_view(app);
    app->dirty = false;
    g->ascii = app->config.ascii;
    hv_grid_resize(g, app->w, app->h);
    if (f.tiny) {
        (void)hv_grid_putf(g, 0, 0, HV_STYLE_TEXT, "%s: needs %dx%d, q quits", v->ops->title,
                           HV_FLOOR_W, HV_FLOOR_H);
        return;
    }
    const char *titles[MAX_TABS], *shorts[MAX_TABS];
    struct hv_tabs tabs = make_tabs(app, titles, shorts);
    struct hv_str project = {0};
    if (app->config.project)
        app->config.project(app->config.model, &project);
    tabs.right = hv_str_cstr(&project);
    hv_tabs_draw(&tabs, g, f.tabs);
    struct hv_view_ctx ctx = {.grid = g, .body = f.body, .app = app};
    struct hv_rect old = hv_grid_clip(g, f.body);
    v->ops->draw(v->state, app->config.model, &ctx);
    if (app->in_help)
        hv_help_draw(&app->help, g, f.body);
    hv_grid_unclip(g, old);
    draw_status(app, g, f.status);
    draw_keybar(app, g, f.keybar);
    hv_str_free(&project);
}

int hv_app_timeout_ms(const struct hv_app *app)
{
    const struct open_view *v = top_view_const(app);
    int view_ms =
        v->ops->timeout_ms ? v->ops->timeout_ms(v->state, app->config.model, app->now_ms) : -1;
    int notice_ms = notice_due_ms(app);
    return view_ms < 0 || (notice_ms >= 0 && notice_ms < view_ms) ? notice_ms : view_ms;
}

void hv_app_tick(struct hv_app *app, int64_t now_ms)
{
    struct open_view *v = top_view(app);
    app->now_ms = now_ms;
    if (v->ops->tick)
        apply(app, v->ops->tick(v->state, app, now_ms));
    tick_notice(app);
}
