/** Runs the screens: on the real terminal, or in memory for scripts and screen dumps. */
#include "ui/term/tui.h"

#include <fcntl.h>
#include <langinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "solver/base/file.h"
#include "solver/base/log.h"
#include "ui/command/command.h"
#include "ui/screens/screens.h"
#include "ui/term/plain.h"
#include "ui/term/term.h"
#include "ui/view/app/script.h"
#include "ui/view/grid/picture.h"

/* Operations from which on a timeline is drawn while keys are answered: some milliseconds of work.
 */
enum { APART_FROM = 20000 };
enum { WATCHED = 64, DEFAULT_WIDTH = 80, DEFAULT_HEIGHT = 24, MOST_TICKS = 5000 };

/** Options of the command line. */
struct tui_options {
    const char *workspace, *script, *dump, *theme;
    const char *out; /**< file of the dump, NULL = standard output as text */
    enum hv_color color;
    int w, h;
    bool ascii, plain, no_mouse, memory;
};

bool hv_tui_is_workspace(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static enum hv_status usage(struct hv_err *err, const char *word)
{
    struct hv_str known = {0};
    size_t n = 0;
    const struct hv_opt *rows = hv_front_options(&n);
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(&known, " [--%s%s%s]", rows[i].name, rows[i].metavar ? " " : "",
                    rows[i].metavar ? rows[i].metavar : "");
    }
    enum hv_status st = hv_err_set(err, HV_EUSAGE, "\"%s\": expected hetviz [WORKSPACE]%s", word,
                                   hv_str_cstr(&known));
    hv_str_free(&known);
    return st;
}

/** Value of the option at *i: `--name=value` or the next word. */
static const char *value_of(int argc, char **argv, int *i)
{
    const char *eq = strchr(argv[*i], '=');
    if (eq != NULL) {
        return eq + 1;
    }
    *i += 1;
    return *i < argc ? argv[*i] : NULL;
}

static bool is_option(const char *word, const char *name)
{
    size_t n = strlen(name);
    return strncmp(word, name, n) == 0 && (word[n] == '\0' || word[n] == '=');
}

static enum hv_status read_color(const char *v, struct tui_options *o, struct hv_err *err)
{
    static const char *const words[] = {"auto", "always", "never"};
    for (int k = 0; v != NULL && k < 3; k++) {
        if (strcmp(v, words[k]) == 0) {
            o->color = (enum hv_color)k;
            return HV_OK;
        }
    }
    return usage(err, "--color");
}

static enum hv_status read_valued(int argc, char **argv, int *i, struct tui_options *o,
                                  struct hv_err *err)
{
    const char *word = argv[*i], *v = value_of(argc, argv, i);
    if (v == NULL) {
        return usage(err, word);
    }
    if (is_option(word, "--color")) {
        return read_color(v, o, err);
    }
    if (is_option(word, "--script")) {
        o->script = v;
    } else if (is_option(word, "--theme")) {
        o->theme = v;
    } else if (is_option(word, "--dump")) {
        o->dump = v;
    } else if (is_option(word, "--out")) {
        o->out = v;
    } else if (is_option(word, "--term")) {
        o->memory = strcmp(v, "memory") == 0;
    } else if (is_option(word, "--size")) {
        if (sscanf(v, "%4dx%4d", &o->w, &o->h) != 2 || o->w < 1 || o->h < 1) {
            return usage(err, v);
        }
    } else {
        return usage(err, word);
    }
    return HV_OK;
}

static enum hv_status read_options(int argc, char **argv, struct tui_options *o, struct hv_err *err)
{
    *o = (struct tui_options){.w = DEFAULT_WIDTH, .h = DEFAULT_HEIGHT};
    for (int i = 0; i < argc; i++) {
        enum hv_status st = HV_OK;
        if (strcmp(argv[i], "--ascii") == 0) {
            o->ascii = true;
        } else if (strcmp(argv[i], "--plain") == 0) {
            o->plain = true;
        } else if (strcmp(argv[i], "--no-mouse") == 0) {
            o->no_mouse = true;
        } else if (argv[i][0] == '-' && argv[i][1] != '\0') {
            st = read_valued(argc, argv, &i, o, err);
        } else if (o->workspace == NULL) {
            o->workspace = argv[i];
        } else {
            st = usage(err, argv[i]);
        }
        if (st != HV_OK) {
            return st;
        }
    }
    return HV_OK;
}

/** File of the user's own settings in $XDG_CONFIG_HOME/hetviz (or ~/.config/hetviz), when it is
 * there. */
static bool config_file(const char *name, struct hv_str *out)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (xdg != NULL && xdg[0] == '/') {
        hv_str_addf(out, "%s/hetviz/%s", xdg, name);
    } else if (home != NULL) {
        hv_str_addf(out, "%s/.config/hetviz/%s", home, name);
    }
    return out->n > 0 && hv_tui_is_workspace(hv_str_cstr(out));
}

/** True where the terminal reports a light background. Some terminals set COLORFGBG to e.g. "0;15";
 * the last number is the background among the sixteen colours. */
static bool is_light(void)
{
    const char *all = getenv("COLORFGBG"), *last = all != NULL ? strrchr(all, ';') : NULL;
    return last != NULL && (strcmp(last, ";7") == 0 || strcmp(last, ";15") == 0);
}

/** Keys and theme: compiled in, changed by the user's files; an invalid line is logged and
 * ignored. */
static enum hv_status read_settings(const struct tui_options *o, struct hv_keymap *keys,
                                    struct hv_theme *theme, struct hv_err *wrong)
{
    struct hv_str path = {0};
    struct hv_err err = {0};
    char buf[1400];
    hv_keymap_default(keys);
    hv_theme_default(theme);
    if (config_file("keys", &path) && hv_keymap_read(keys, hv_str_cstr(&path), &err) != HV_OK) {
        hv_log(HV_LOG_WARN, "keys", "%s", hv_err_format(&err, buf, sizeof buf));
    }
    hv_str_clear(&path);
    const char *env = getenv("HETVIZ_THEME");
    const char *name = o->theme != NULL ? o->theme : env != NULL && env[0] != '\0' ? env : NULL;
    enum hv_status st = HV_OK;
    if (name != NULL) {
        st = hv_theme_named(theme, name, wrong);
    } else if (config_file("theme", &path)) {
        if (hv_theme_read(theme, hv_str_cstr(&path), &err) != HV_OK) {
            hv_log(HV_LOG_WARN, "theme", "%s", hv_err_format(&err, buf, sizeof buf));
        }
    } else if (is_light() && hv_theme_named(theme, "light", &err) != HV_OK) {
        hv_log(HV_LOG_WARN, "theme", "%s", hv_err_format(&err, buf, sizeof buf));
    }
    hv_str_free(&path);
    return st;
}

static size_t watch_list(void *ctx, int *fds, size_t cap)
{
    struct pollfd rows[WATCHED];
    size_t n = hv_session_fds(ctx, rows, WATCHED), k = 0;
    for (size_t i = 0; i < n && i < WATCHED && k < cap; i++) {
        if (rows[i].events & POLLIN) {
            fds[k++] = rows[i].fd;
        }
    }
    return k;
}

static void watch_ready(void *ctx, struct hv_app *app, int fd)
{
    (void)ctx;
    (void)fd;
    if (hv_ui_tick(NULL, app, 0) & HV_APP_REDRAW) {
        hv_app_touch(app);
    }
}

/** Waits in real time for workers, for scripts. */
static void script_idle(void *ctx, struct hv_app *app, int ms)
{
    struct pollfd rows[WATCHED];
    size_t n = hv_session_fds(ctx, rows, WATCHED);
    int limit = hv_app_timeout_ms(app);
    int wait = limit >= 0 && limit < ms ? limit : ms;
    (void)poll(rows, (nfds_t)(n < WATCHED ? n : WATCHED), wait);
    watch_ready(ctx, app, -1);
    hv_app_tick(app, (int64_t)(hv_session_now_s(ctx) * 1000));
}

static bool script_busy(void *ctx)
{
    return hv_session_n_running(ctx) + hv_session_n_queued(ctx) > 0 || hv_session_lua_busy(ctx);
}

static void offer_recovery(struct hv_session *s, struct hv_app *app);

/** Lists the edits on screen 8. */
static void view_recovery(struct hv_session *s, struct hv_app *app)
{
    struct hv_str lines = {0};
    struct hv_err err = {0};
    hv_session_recovery_diff(s, &lines);
    hv_session_log(s, HV_LOG_INFO, "recovery", "%s", hv_str_cstr(&lines));
    hv_str_free(&lines);
    if (hv_app_open(app, "console", &err) != HV_OK) {
        hv_ui_error(app, &err);
    }
}

static unsigned answer_recovery(void *ctx, struct hv_app *app, const char *text)
{
    struct hv_session *s = ctx;
    struct hv_err err = {0};
    char first = text[0] >= 'A' && text[0] <= 'Z' ? (char)(text[0] - 'A' + 'a') : text[0];
    if (first == 'd') {
        hv_session_recovery_discard(s);
        hv_app_message(app, HV_MSG_INFO, "unsaved edits of the earlier run discarded");
    } else if (first != 'r' && first != '\0') {
        if (first == 'v') {
            view_recovery(s, app);
        }
        offer_recovery(s, app);
    } else if (hv_session_recover(s, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO,
                       "unsaved edits of the earlier run restored; u undoes them");
    }
    return HV_APP_REDRAW;
}

static void offer_recovery(struct hv_session *s, struct hv_app *app)
{
    if (hv_session_recovery_offered(s)) {
        hv_app_ask(app, "unsaved edits found: [r]ecover, d discard, v view: ", "", answer_recovery,
                   s);
    }
}

/** Opens the screen given by the options; saves it to their file (hv_grid_save), else appends its
 * text to `out`. */
static enum hv_status dump_screen(const struct tui_options *o, const struct hv_theme *theme,
                                  struct hv_app *app, struct hv_grid *grid, struct hv_str *out,
                                  struct hv_err *err)
{
    enum hv_status st = hv_app_open(app, o->dump, err);
    for (int i = 0; st == HV_OK && i < MOST_TICKS && (i == 0 || hv_app_timeout_ms(app) == 0); i++) {
        hv_app_tick(app, i); /* finish incremental computations before the picture */
    }
    if (st != HV_OK) {
        return st;
    }
    hv_app_draw(app, grid);
    if (o->out != NULL) {
        return hv_grid_save(grid, theme, o->out, err);
    }
    hv_grid_dump(grid, out);
    return HV_OK;
}

static enum hv_status run_script(const struct tui_options *o, const struct hv_theme *theme,
                                 struct hv_session *s, struct hv_app *app, struct hv_err *err)
{
    struct hv_grid grid = {0};
    struct hv_str text = {0}, out = {0};
    struct hv_event size = hv_event_resize(o->w, o->h);
    (void)hv_app_feed(app, &size);
    struct hv_script script = {.app = app,
                               .grid = &grid,
                               .idle = script_idle,
                               .idle_ctx = s,
                               .busy = script_busy,
                               .out = &out};
    enum hv_status st = HV_OK;
    if (o->script != NULL) {
        st = hv_file_read(o->script, &text, err);
        if (st == HV_OK) {
            st = hv_script_run(&script, hv_str_cstr(&text), text.n, o->script, err);
        }
    }
    if (st == HV_OK && o->dump != NULL) {
        st = dump_screen(o, theme, app, &grid, &out, err);
    }
    if (out.n > 0) {
        (void)fwrite(out.p, 1, out.n, stdout);
    }
    hv_str_free(&out);
    hv_str_free(&text);
    hv_grid_free(&grid);
    return st;
}

/** Log output of libraries goes to screen 8, because nothing may write over the screens. */
static void log_line(void *ctx, enum hv_log_level level, const char *area, const char *text)
{
    hv_session_log(ctx, level, area, "%s", text);
}

/** Runs on the terminal; *signo = the signal that ended it, or 0. */
static enum hv_status run_terminal(const struct tui_options *o, const struct hv_theme *theme,
                                   struct hv_session *s, struct hv_app *app, int *signo,
                                   struct hv_err *err)
{
    struct hv_term_config config = {
        .theme = theme, .color = o->color, .no_mouse = o->no_mouse, .w = o->w, .h = o->h};
    const struct hv_term_ops *ops = o->memory ? &hv_term_memory : &hv_term_curses;
    struct hv_term *t = NULL;
    enum hv_status st = ops->open(&config, &t, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_term_watch watch = {.list = watch_list, .ready = watch_ready, .ctx = s};
    *signo = hv_term_run(ops, t, app, &watch);
    ops->close(t);
    return HV_OK;
}

/** True for the plain front end: by option or HETVIZ_PLAIN, on dumb terminals, and between
 * pipes. */
static bool wants_plain(const struct tui_options *o)
{
    const char *asked = getenv("HETVIZ_PLAIN"), *term = getenv("TERM");
    return o->plain || (asked != NULL && asked[0] != '\0' && strcmp(asked, "0") != 0) ||
           (term != NULL && strcmp(term, "dumb") == 0) ||
           (!isatty(STDOUT_FILENO) && !isatty(STDIN_FILENO));
}

/** Welcome at the first start, else the screen that was left last. */
static void open_first_screen(struct hv_session *s, struct hv_app *app)
{
    struct hv_str screen = {0};
    if (hv_session_is_first(s)) {
        hv_str_adds(&screen, "welcome");
    } else if (!hv_session_last_place(s, &screen)) {
        return;
    }
    if (hv_app_open(app, hv_str_cstr(&screen), NULL) != HV_OK) {
        hv_session_log(s, HV_LOG_INFO, "session", "the last screen, %s, does not exist any more",
                       hv_str_cstr(&screen));
    }
    hv_str_free(&screen);
}

/** How the front end ended. */
struct tui_end {
    int signo;    /**< signal that ended it, or 0 */
    bool abandon; /**< unsaved edits stay in the recovery file */
};

static enum hv_status run_plain(struct hv_session *s, struct hv_app *app, struct tui_end *end,
                                struct hv_err *err)
{
    bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    const struct hv_plain_config config = {
        .app = app, .session = s, .in = STDIN_FILENO, .out = STDOUT_FILENO, .ascii = !utf8};
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is reported as an error */
    return hv_plain_run(&config, &end->abandon, err);
}

static enum hv_status run(const struct tui_options *o, struct hv_session *s, struct tui_end *end,
                          struct hv_err *err)
{
    struct hv_ui ui = {.session = s, .scripted = o->script != NULL || o->dump != NULL};
    struct hv_keymap keys = {0};
    struct hv_theme theme;
    enum hv_status st = HV_OK;
    hv_log_to(log_line, s, HV_LOG_INFO);
    st = read_settings(o, &keys, &theme, err);
    if (st != HV_OK) {
        hv_keymap_free(&keys);
        hv_log_to(hv_log_stderr, NULL, HV_LOG_WARN);
        return st;
    }
    struct hv_app *app = hv_ui_app(&ui, &keys, o->ascii);
    offer_recovery(s, app);
    if (ui.scripted) {
        st = run_script(o, &theme, s, app, err);
    } else {
        open_first_screen(s, app);
        if (!o->memory && wants_plain(o)) {
            st = run_plain(s, app, end, err);
        } else {
            st = run_terminal(o, &theme, s, app, &end->signo, err);
            end->abandon = end->signo != 0;
        }
        if (st == HV_OK) {
            hv_session_last_keep(s, hv_app_view(app));
        }
    }
    hv_app_free(app);
    hv_keymap_free(&keys);
    hv_log_to(hv_log_stderr, NULL, HV_LOG_WARN);
    return st;
}

int hv_tui_main(int argc, char **argv)
{
    struct tui_options o;
    struct hv_err err = {0};
    struct hv_session *s = NULL;
    struct tui_end end = {0};
    enum hv_status st = read_options(argc, argv, &o, &err);
    if (st == HV_OK && fcntl(STDIN_FILENO, F_GETFD) < 0 && o.script == NULL && o.dump == NULL) {
        st = hv_err_set(&err, HV_EUSAGE, "standard input is closed, so no input is possible");
    }
    bool scripted = o.script != NULL || o.dump != NULL;
    if (st == HV_OK && !scripted && !o.memory && !wants_plain(&o)) {
        st =
            hv_term_curses_check(&err); /* before files are read, so that the error comes at once */
    }
    struct hv_session_env env = {.plugins_later = true,
                                 .apart_from = scripted || wants_plain(&o) ? 0 : APART_FROM};
    struct hv_str last = {0};
    if (st == HV_OK && o.workspace == NULL && !scripted && hv_session_last_workspace(NULL, &last)) {
        o.workspace = hv_str_cstr(&last);
    }
    if (st == HV_OK) {
        st = hv_session_open(&s, o.workspace, &env, &err);
    }
    if (st == HV_OK) {
        st = run(&o, s, &end, &err);
    }
    if (end.abandon) {
        hv_session_abandon(s); /* the recovery file keeps what was not saved */
    } else if (!scripted) {
        hv_session_leave(s);
    } else {
        hv_session_close(s);
    }
    hv_str_free(&last);
    if (end.signo != 0) { /* so that the parent process sees it */
        (void)signal(end.signo, SIG_DFL);
        (void)raise(end.signo);
        return 128 + end.signo;
    }
    if (st != HV_OK) {
        hv_log_err("hetviz", &err);
        return hv_status_exit_code(st);
    }
    return 0;
}
