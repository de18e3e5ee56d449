/** Screen 8, Console: the log with its levels, and every change as the command that repeats it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "solver/base/vec.h"
#include "ui/screens/screens.h"
#include "ui/view/grid/layout.h"

/** Filter of the log. */
enum show { SHOW_ALL, SHOW_INFO, SHOW_WARNINGS, SHOW_ERRORS, SHOW_COMMANDS, SHOW_N };
static const char *const show_names[] = {"all", "info", "warnings", "errors", "commands"};

/** Columns of the log. */
enum { COLUMN_TIME, COLUMN_LEVEL, COLUMN_AREA, COLUMN_TEXT, COLUMN_N };
static const struct hv_column columns[COLUMN_N] = {
    {.title = "TIME", .min = 8},
    {.title = "LEVEL", .min = 7},
    {.title = "AREA", .min = 8},
    {.title = "TEXT", .min = 10, .flex = 1},
};
static const struct hv_table_look look = {
    .columns = columns, .n_columns = COLUMN_N, .focused = true, .empty = "no log messages yet"};
/** On narrow screens only the marks show the level. */
static const struct hv_table_look narrow_look = {
    .columns = columns + COLUMN_TEXT, .n_columns = 1, .focused = true, .empty = "no lines yet"};
#define NARROW 60

/** Cached rows of the log, also updated while drawing. */
struct lines {
    uint64_t changes; /**< of the session when it was made */
    const struct hv_log_line *all;
    HV_VEC(size_t) shown;
    struct hv_table table;
    bool follows; /**< the cursor stays on the last line */
    bool narrow;  /**< only the text is shown */
};

/** State of the screen. */
struct console {
    struct lines *lines;
    enum show show;
    char filter[128];
};

static void cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    const struct lines *l = ctx;
    const struct hv_log_line *line = &l->all[l->shown.items[row]];
    column = l->narrow ? COLUMN_TEXT : column;
    if (column == COLUMN_TIME) {
        time_t at = (time_t)line->at_s;
        struct tm tm = {0};
        (void)localtime_r(&at, &tm);
        hv_str_addf(out, "%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
    } else if (column == COLUMN_LEVEL) {
        hv_str_adds(out, line->command ? "did" : levels[line->level]);
    } else {
        hv_str_adds(out, column == COLUMN_AREA ? line->area : line->text);
    }
}

static unsigned flags(const void *ctx, size_t row)
{
    const struct lines *l = ctx;
    const struct hv_log_line *line = &l->all[l->shown.items[row]];
    return line->level == HV_LOG_ERROR || line->level == HV_LOG_WARN ? HV_ROW_PROBLEM
           : line->command                                           ? HV_ROW_CHECK
           : line->level == HV_LOG_DEBUG                             ? HV_ROW_DIM
                                                                     : 0;
}

static struct hv_table_source source(const struct lines *l)
{
    return (struct hv_table_source){.ctx = l, .n_rows = l->shown.n, .cell = cell, .flags = flags};
}

static bool is_shown(const struct console *st, const struct hv_log_line *line)
{
    static const enum hv_log_level most[SHOW_N] = {[SHOW_ALL] = HV_LOG_DEBUG,
                                                   [SHOW_INFO] = HV_LOG_INFO,
                                                   [SHOW_WARNINGS] = HV_LOG_WARN,
                                                   [SHOW_ERRORS] = HV_LOG_ERROR,
                                                   [SHOW_COMMANDS] = HV_LOG_DEBUG};
    return line->level <= most[st->show] && (st->show != SHOW_COMMANDS || line->command) &&
           (st->filter[0] == '\0' || hv_text_has(line->text, st->filter) ||
            hv_text_has(line->area, st->filter));
}

/** Lists the lines of the log that pass the filter; nothing to do where the session has not changed
 * and not `again` (the filter changed). */
static void refresh(const struct console *st, const struct hv_session *s, int height, bool again)
{
    struct lines *l = st->lines;
    size_t n = 0;
    if (!again && l->changes == hv_session_changes(s) && l->all != NULL) {
        return;
    }
    l->changes = hv_session_changes(s);
    l->all = hv_session_log_lines(s, &n);
    l->shown.n = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_shown(st, &l->all[i])) {
            hv_vec_push(&l->shown, i);
        }
    }
    struct hv_table_source src = source(l);
    hv_table_goto(&l->table, &src, l->follows && l->shown.n > 0 ? l->shown.n - 1 : l->table.cursor,
                  height);
}

static void console_open(void *state, struct hv_app *app)
{
    struct console *st = state;
    (void)app;
    st->show = SHOW_INFO;
    st->lines = hv_xcalloc(1, sizeof *st->lines);
    st->lines->table.sort_column = -1;
    st->lines->follows = true;
}

static void console_close(void *state, struct hv_app *app)
{
    struct console *st = state;
    (void)app;
    hv_vec_free(&st->lines->shown);
    free(st->lines);
}

static const struct hv_log_line *current(const struct lines *l)
{
    return l->table.cursor < l->shown.n ? &l->all[l->shown.items[l->table.cursor]] : NULL;
}

/** The log above, the whole line at the cursor below where there is room. */
static void place(struct hv_rect body, struct hv_rect *list, struct hv_rect *line)
{
    struct hv_rect r[2];
    static const struct hv_split parts[] = {{.flex = 1, .min = 5}, {.fixed = 6}};
    hv_layout_panels(body, HV_ROWS, parts, 2, 0, r);
    *list = r[0];
    *line = r[1];
}

static int list_height(struct hv_rect body)
{
    struct hv_rect list, line;
    place(body, &list, &line);
    return hv_rect_inner(list).h - 1;
}

/** Puts text into lines of the rectangle, cut where they are full. */
static void draw_wrapped(struct hv_grid *g, struct hv_rect r, const char *text)
{
    for (int y = 0; y < r.h && *text != '\0'; y++) {
        size_t n = hv_text_fit(text, r.w);
        if (n == 0) {
            return;
        }
        struct hv_str part = {0};
        hv_str_add(&part, text, n);
        (void)hv_grid_put(g, r.x, r.y + y, r.w, hv_str_cstr(&part), HV_STYLE_TEXT);
        hv_str_free(&part);
        text += n;
    }
}

static void console_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct console *st = state;
    struct lines *l = st->lines;
    struct hv_rect list, line;
    struct hv_str title = {0};
    place(ctx->body, &list, &line);
    refresh(st, hv_ui_session(model), hv_rect_inner(list).h - 1, false);
    const char *file = hv_session_recording(hv_ui_session(model));
    hv_str_addf(&title, "Log  %s", show_names[st->show]);
    if (st->filter[0] != '\0') {
        hv_str_addf(&title, "  filter:%s", st->filter);
    }
    hv_str_addf(&title, "%s", l->follows ? "  follow" : "");
    if (file != NULL) {
        hv_str_addf(&title, "  recording to %s", file);
    }
    hv_grid_box(ctx->grid, list, hv_str_cstr(&title), true, HV_STYLE_FRAME_FOCUS);
    struct hv_table_source src = source(l);
    l->table.find = hv_app_find_text(ctx->app)[0] != '\0' ? hv_app_find_text(ctx->app) : NULL;
    l->narrow = list.w < NARROW;
    hv_table_draw(&l->table, &src, l->narrow ? &narrow_look : &look, ctx->grid,
                  hv_rect_inner(list));
    if (line.h > 2) {
        const struct hv_log_line *at = current(l);
        hv_grid_box(ctx->grid, line, at != NULL && at->command ? "Command" : "Line", false,
                    HV_STYLE_FRAME);
        if (at != NULL) {
            draw_wrapped(ctx->grid, hv_rect_inner(line), at->text);
        }
    }
    hv_str_free(&title);
}

static void console_status(const void *state, const void *model, struct hv_str *out)
{
    const struct console *st = state;
    const struct hv_log_line *at = current(st->lines);
    const char *file = hv_session_recording(hv_ui_session(model));
    hv_str_addf(out, "%zu lines shown", st->lines->shown.n);
    if (at != NULL && at->command) {
        hv_str_adds(out, " | Enter copies the command to the : line");
    }
    hv_str_addf(out, " | %s%s", file != NULL ? "recording to " : "R records your changes",
                file != NULL ? file : "");
}

/* ---- actions ---- */

static unsigned answer_record(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_err err = {0};
    (void)ctx;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    if (path[0] == '\0') {
        return HV_APP_REDRAW;
    }
    if (hv_session_record(s, path, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO,
                       "recording to %s; R ends it, hetviz --script %s replays it", path, path);
    }
    return HV_APP_REDRAW;
}

static void record(struct hv_app *app, struct hv_session *s)
{
    const char *file = hv_session_recording(s);
    if (file == NULL) {
        hv_app_ask(app, "record your changes in: ", "hetviz.script", answer_record, NULL);
        return;
    }
    hv_app_message(app, HV_MSG_INFO, "recorded in %s; hetviz --script %s replays it", file, file);
    enum hv_status st = hv_session_record(s, NULL, NULL);
    (void)st; /* ending cannot fail */
}

static unsigned answer_filter(void *ctx, struct hv_app *app, const char *text)
{
    struct console *st = ctx;
    (void)snprintf(st->filter, sizeof st->filter, "%s", text);
    refresh(st, hv_ui_session(hv_app_model(app)), list_height(hv_app_body(app)), true);
    return HV_APP_REDRAW;
}

static void ask_lua(struct hv_app *app);

static unsigned answer_lua(void *ctx, struct hv_app *app, const char *text)
{
    (void)ctx;
    text += text[0] == '='; /* "=1+1" of older interpreters */
    if (text[0] != '\0') {
        hv_session_lua(hv_ui_session(hv_app_model(app)), text);
        ask_lua(app); /* the prompt opens again until it is left */
    }
    return HV_APP_REDRAW;
}

static void ask_lua(struct hv_app *app)
{
    bool more = hv_session_lua_wants_more(hv_ui_session(hv_app_model(app)));
    hv_app_ask(app, more ? "lua>> " : "lua> ", "", answer_lua, NULL);
}

static bool act(struct console *st, struct hv_app *app, enum hv_action a)
{
    const struct hv_log_line *at = current(st->lines);
    switch ((int)a) {
    case HV_ACT_CONSOLE_LEVEL:
        st->show = (st->show + 1) % SHOW_N;
        return true;
    case HV_ACT_CONSOLE_COMMANDS:
        st->show = st->show == SHOW_COMMANDS ? SHOW_INFO : SHOW_COMMANDS;
        return true;
    case HV_ACT_CONSOLE_LUA:
        st->lines->follows = true;
        ask_lua(app);
        return true;
    case HV_ACT_CONSOLE_RECORD:
        record(app, hv_ui_session(hv_app_model(app)));
        return true;
    case HV_ACT_FILTER:
        hv_app_ask(app, "filter: ", st->filter, answer_filter, st);
        return true;
    case HV_ACT_OPEN:
        if (at != NULL && at->command) {
            hv_app_type(app, at->text);
        } else {
            hv_app_message(app, HV_MSG_INFO, "Enter repeats a command: c shows only those");
        }
        return true;
    default:
        return false;
    }
}

static unsigned console_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct console *st = state;
    struct lines *l = st->lines;
    int height = list_height(hv_app_body(app));
    refresh(st, hv_ui_session(hv_app_model(app)), height, false);
    struct hv_table_source src = source(l);
    if (hv_table_action(&l->table, &src, a, height)) {
        l->follows = l->table.cursor + 1 >= l->shown.n;
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    if (!act(st, app, a)) {
        return 0;
    }
    refresh(st, hv_ui_session(hv_app_model(app)), height, true);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned console_find(void *state, struct hv_app *app, const char *text, int direction)
{
    struct console *st = state;
    refresh(st, hv_ui_session(hv_app_model(app)), list_height(hv_app_body(app)), false);
    struct hv_table_source src = source(st->lines);
    st->lines->narrow = false;
    if (!hv_table_find(&st->lines->table, &src, &look, text, direction)) {
        return 0;
    }
    st->lines->follows = false;
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned console_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    struct console *st = state;
    struct lines *l = st->lines;
    struct hv_rect list, line;
    if (ev->type != HV_EV_MOUSE) {
        return 0;
    }
    place(hv_app_body(app), &list, &line);
    struct hv_table_source src = source(l);
    struct hv_rect in = hv_rect_inner(list);
    int wheel = ev->mouse == HV_MOUSE_WHEEL_UP ? -3 : ev->mouse == HV_MOUSE_WHEEL_DOWN ? 3 : 0;
    if (wheel != 0 && l->shown.n > 0) {
        hv_table_scroll(&l->table, &src, wheel, in.h - 1);
    }
    size_t row =
        ev->mouse == HV_MOUSE_PRESS ? hv_table_hit(&l->table, &src, in, ev->x, ev->y) : SIZE_MAX;
    if (row != SIZE_MAX && row == l->table.cursor) {
        (void)act(st, app, HV_ACT_OPEN);
    } else if (row != SIZE_MAX) {
        hv_table_goto(&l->table, &src, row, in.h - 1);
    }
    l->follows = l->table.cursor + 1 >= l->shown.n;
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static const enum hv_action keybar[] = {
    HV_ACT_CONSOLE_LUA,    HV_ACT_OPEN,   HV_ACT_CONSOLE_LEVEL, HV_ACT_CONSOLE_COMMANDS,
    HV_ACT_CONSOLE_RECORD, HV_ACT_FILTER, HV_ACT_FIND,          HV_ACT_COMMAND,
    HV_ACT_NONE,
};

const struct hv_view_ops hv_screen_console = {
    .name = "console",
    .title = "Console",
    .short_title = "Cons",
    .tab = 8,
    .state_size = sizeof(struct console),
    .keybar = keybar,
    .help = "Lua runs on a copy of the workspace, with ctx and hv as in plugins. Changes of the "
            "table `workspace` become edits that u undoes. A line marked v is a change: Enter "
            "copies it to the : line. The cursor follows the last line until you move it. :record "
            "FILE writes the changes as a script.",
    .open = console_open,
    .close = console_close,
    .draw = console_draw,
    .action = console_action,
    .event = console_event,
    .find = console_find,
    .status = console_status,
    .tick = hv_ui_tick,
    .timeout_ms = hv_ui_timeout_ms,
};
