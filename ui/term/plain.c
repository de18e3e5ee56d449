/* The loop of the plain front end: reads a line, prints text. ui/view converts screens to text
 * (grid/plain.h). */
#include "ui/term/plain.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "solver/base/units.h"
#include "ui/command/command.h"

/* Size of the screens: all panels and columns fit. */
#define SHEET_W 480
#define SHEET_H 300
/* Numbers below are screens; actions count from here. */
#define FIRST_ACTION 11
#define MAX_ACTIONS  48
#define MAX_FDS      64
/* Progress is written at every tenth, or after this many seconds. */
#define PROGRESS_FRAC 0.1
#define PROGRESS_S    10.0
#define SETTLE_S      1.0
#define LINE_LIMIT    ((size_t)1 << 20)

/* The state of a run as last written. */
struct told {
    uint32_t row;
    double frac, at_s;
};

struct plain {
    struct hv_plain_config config;
    struct hv_str in, out;
    HV_VEC(struct told) told;
    bool ended, asks;
    enum hv_status status;
    struct hv_err *err;
};

static void tick(struct plain *p);

/* ---- writing --------------------------------------------------------------------------------- */

/* Text, with non-ASCII characters replaced where the option is set. */
static void add_text(struct plain *p, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x80 || !p->config.ascii) {
            hv_str_addc(&p->out, (char)c);
        } else if (c >= 0xC0) {
            hv_str_addc(&p->out, '?'); /* one '?' per character */
        }
    }
}

static void flush(struct plain *p)
{
    const char *at = hv_str_cstr(&p->out);
    for (size_t n = p->out.n; n > 0 && p->status == HV_OK;) {
        ssize_t k = write(p->config.out, at, n);
        if (k < 0 && errno == EINTR) {
            continue;
        }
        if (k <= 0) {
            p->status = hv_err_set(p->err, HV_EIO, "cannot write: %s", strerror(errno));
            break;
        }
        at += k;
        n -= (size_t)k;
    }
    hv_str_clear(&p->out);
}

/* Writes the message of the status row and clears it, so that the next can follow. */
static void tell_message(struct plain *p)
{
    const char *text = hv_app_message_text(p->config.app);
    struct hv_str clean = {0};
    if (text[0] == '\0') {
        return;
    }
    hv_text_clean(&clean, text, strlen(text));
    add_text(p, hv_str_cstr(&clean));
    add_text(p, "\n");
    hv_str_free(&clean);
    hv_app_clear_message(p->config.app);
}

static void tell_status(struct plain *p)
{
    struct hv_str text = {0}, clean = {0};
    hv_app_status(p->config.app, &text);
    hv_text_clean(&clean, hv_str_cstr(&text), text.n);
    if (clean.n > 0) {
        add_text(p, hv_str_cstr(&clean));
        add_text(p, "\n");
    }
    hv_str_free(&text);
    hv_str_free(&clean);
}

static void tell_screen(struct plain *p)
{
    struct hv_str text = {0};
    double start_s = hv_session_now_s(p->config.session);
    /* incremental computations of the screen finish first, within SETTLE_S */
    while (hv_app_timeout_ms(p->config.app) == 0 &&
           hv_session_now_s(p->config.session) < start_s + SETTLE_S) {
        tick(p);
    }
    hv_str_addf(&text, "== %s ==\n", hv_app_view(p->config.app));
    hv_app_plain(p->config.app, &text);
    add_text(p, hv_str_cstr(&text));
    hv_str_free(&text);
    tell_status(p);
}

static void tell_menu(struct plain *p)
{
    enum hv_action a[MAX_ACTIONS];
    struct hv_str text = {0};
    size_t n = hv_app_bar_actions(p->config.app, a, MAX_ACTIONS);
    hv_str_adds(&text, "1 Cluster, 2 Model, 3 Strategies, 4 Plans, 5 Gantt, 6 Explain, 7 What-if, "
                       "8 Console\n");
    for (size_t i = 0; i < n && i < MAX_ACTIONS; i++) {
        hv_str_addf(&text, "%zu %s: %s\n", i + FIRST_ACTION, hv_action_row(a[i])->label,
                    hv_action_row(a[i])->help);
    }
    hv_str_adds(&text, "row N selects a row, an empty line prints the screen again, ? lists all "
                       "commands, q quits\n");
    add_text(p, hv_str_cstr(&text));
    hv_str_free(&text);
}

static void tell_help(struct plain *p)
{
    struct hv_str text = {0};
    size_t n = 0;
    const struct hv_command *rows = hv_prompt_commands(&n);
    tell_menu(p);
    hv_str_adds(&text,
                "find TEXT: search for a text; find alone: go to the next match\nkeys jj<Enter>: "
                "press keys as on the full screen\nwait: wait until all runs have ended\nthe name "
                "of an action, such as undo or gantt-op-next, runs it\n");
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(&text, "%s%s%s: %s\n", rows[i].name, rows[i].args[0] != '\0' ? " " : "",
                    rows[i].args, rows[i].summary);
    }
    add_text(p, hv_str_cstr(&text));
    hv_str_free(&text);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static struct told *told_of(struct plain *p, uint32_t row)
{
    for (size_t i = 0; i < p->told.n; i++) {
        if (p->told.items[i].row == row) {
            return &p->told.items[i];
        }
    }
    struct told fresh = {.row = row, .at_s = hv_session_now_s(p->config.session)};
    hv_vec_push(&p->told, fresh);
    return &p->told.items[p->told.n - 1];
}

static void tell_progress(struct plain *p, const struct hv_row *r)
{
    struct told *t = told_of(p, r->id);
    double now = hv_session_now_s(p->config.session);
    double frac = hv_known(r->progress_frac) ? r->progress_frac : 0;
    if (frac < t->frac + PROGRESS_FRAC && now < t->at_s + PROGRESS_S) {
        return;
    }
    t->frac = floor(frac / PROGRESS_FRAC) * PROGRESS_FRAC;
    t->at_s = now;
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    struct hv_str line = {0};
    hv_str_addf(&line, "%s: running for %s", r->name, hv_fmt_seconds(a, sizeof a, r->elapsed_s));
    if (hv_known(r->progress_frac)) {
        hv_str_addf(&line, ", %.0f%%", frac * 100);
    }
    if (r->n_points > 0 && hv_known(r->points[r->n_points - 1].iteration_s)) {
        hv_str_addf(&line, ", best %s",
                    hv_fmt_seconds(b, sizeof b, r->points[r->n_points - 1].iteration_s));
    }
    hv_str_addc(&line, '\n');
    add_text(p, hv_str_cstr(&line));
    hv_str_free(&line);
}

/* Processes events of workers. */
static void tick(struct plain *p)
{
    struct hv_app *app = p->config.app;
    size_t n = 0;
    hv_app_tick(app, (int64_t)(hv_session_now_s(p->config.session) * 1000));
    const struct hv_row *const *rows = hv_session_rows(p->config.session, &n);
    for (size_t i = 0; i < n; i++) {
        if (rows[i]->state == HV_ROW_RUNNING) {
            tell_progress(p, rows[i]);
        }
    }
    tell_message(p);
}

static bool busy(const struct plain *p)
{
    return hv_session_n_running(p->config.session) + hv_session_n_queued(p->config.session) > 0 ||
           hv_session_lua_busy(p->config.session);
}

/* Waits for input or workers. `with_input`: a line may end the wait. */
static void wait_once(struct plain *p, bool with_input)
{
    struct pollfd fds[MAX_FDS + 1] = {{.fd = with_input ? p->config.in : -1, .events = POLLIN}};
    size_t n = hv_session_fds(p->config.session, fds + 1, MAX_FDS);
    n = n < MAX_FDS ? n : MAX_FDS;
    flush(p);
    (void)poll(fds, (nfds_t)(n + 1), hv_app_timeout_ms(p->config.app));
    tick(p);
    if (!with_input || (fds[0].revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) == 0) {
        return;
    }
    char buf[4096];
    ssize_t k = read(p->config.in, buf, sizeof buf);
    if (k > 0) {
        hv_str_add(&p->in, buf, (size_t)k);
    } else if (k == 0 || errno != EINTR) {
        p->ended = true;
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void act(struct plain *p, enum hv_action a)
{
    if (!hv_app_do(p->config.app, a)) {
        add_text(p, "this has no effect here\n");
    }
}

/* "row 3": the table's cursor, or the lane. */
static void go_to_row(struct plain *p, const char *text)
{
    struct hv_app *app = p->config.app;
    long row = strtol(text, NULL, 10);
    if (row < 1 || row > 1000000) {
        add_text(p, "row: expected a number from 1\n");
        return;
    }
    (void)hv_app_do(app, HV_ACT_TOP);
    for (int i = 0; i < SHEET_H; i++) { /* lanes of a timeline have no other action to move up */
        (void)hv_app_do(app, HV_ACT_PAGE_UP);
    }
    for (long i = 1; i < row; i++) {
        (void)hv_app_do(app, HV_ACT_DOWN);
    }
    tell_status(p);
}

static void press_keys(struct plain *p, const char *text)
{
    struct hv_key k;
    struct hv_err why = {0};
    while (hv_keys_next(&text, &k, &why)) {
        struct hv_event ev = hv_event_key(k);
        if (!hv_app_feed(p->config.app, &ev)) {
            return;
        }
    }
    if (why.status != HV_OK) {
        add_text(p, why.text);
        add_text(p, "\n");
    }
}

/* A number chooses a screen or an action of the menu. */
static bool choose(struct plain *p, const char *line)
{
    enum hv_action a[MAX_ACTIONS];
    size_t n = hv_app_bar_actions(p->config.app, a, MAX_ACTIONS);
    if (strspn(line, "0123456789") != strlen(line) || strlen(line) > 3) {
        return false;
    }
    size_t x = (size_t)strtoul(line, NULL, 10);
    if (x >= 1 && x <= 8) {
        act(p, (enum hv_action)((size_t)HV_ACT_SCREEN_1 + x - 1));
    } else if (x >= FIRST_ACTION && x - FIRST_ACTION < n) {
        act(p, a[x - FIRST_ACTION]);
    } else {
        add_text(p, "unknown number; menu lists the numbers\n");
    }
    return true;
}

/* The rest of the line behind a word, or NULL when it begins with another. */
static const char *after(const char *line, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(line, word, n) != 0 || (line[n] != '\0' && line[n] != ' ')) {
        return NULL;
    }
    return line + n + strspn(line + n, " ");
}

static void find(struct plain *p, const char *text)
{
    act(p, text[0] != '\0' ? HV_ACT_FIND : HV_ACT_FIND_NEXT);
    if (text[0] != '\0') {
        hv_app_reply(p->config.app, text);
    }
}

static void wait_for_runs(struct plain *p)
{
    while (busy(p) && p->status == HV_OK) {
        wait_once(p, false);
    }
    tick(p); /* the notice of the last end */
}

static void run_word(struct plain *p, const char *line)
{
    const char *rest = NULL;
    enum hv_action a = hv_action_find(line);
    if (strcmp(line, "?") == 0 || strcmp(line, "help") == 0) {
        tell_help(p);
    } else if (strcmp(line, "menu") == 0) {
        tell_menu(p);
    } else if (strcmp(line, "q") == 0) {
        act(p, HV_ACT_QUIT);
    } else if ((rest = after(line, "row")) != NULL) {
        go_to_row(p, rest);
    } else if ((rest = after(line, "keys")) != NULL) {
        press_keys(p, rest);
    } else if ((rest = after(line, "find")) != NULL) {
        find(p, rest);
    } else if (strcmp(line, "wait") == 0) {
        wait_for_runs(p);
    } else if (a < HV_ACT_N && a != HV_ACT_QUIT && a != HV_ACT_UNDO && a != HV_ACT_REDO) {
        act(p, a);
    } else {
        hv_app_command(p->config.app, line + (line[0] == ':'));
    }
}

/* Runs one line, then writes its results. */
static void take_line(struct plain *p, const char *line)
{
    struct hv_app *app = p->config.app;
    char view[32];
    (void)snprintf(view, sizeof view, "%s", hv_app_view(app));
    bool answer = hv_app_question(app, NULL) != NULL;
    if (!p->asks) { /* a file or a pipe: echo the line before its answer */
        add_text(p, "> ");
        add_text(p, line);
        add_text(p, "\n");
    }
    if (answer) {
        hv_app_reply(app, line[0] == '\0' ? NULL : line);
    } else if (line[0] == '\0') {
        tell_screen(p);
    } else if (!choose(p, line)) {
        run_word(p, line);
    }
    if (hv_app_is_done(app)) {
        return;
    }
    tick(p);
    if (strcmp(view, hv_app_view(app)) != 0) {
        tell_screen(p);
    }
}

static void prompt(struct plain *p)
{
    const char *typed = "", *question = hv_app_question(p->config.app, &typed);
    if (question != NULL) {
        add_text(p, question);
        if (typed[0] != '\0') {
            add_text(p, "(now: ");
            add_text(p, typed);
            add_text(p, ") ");
        }
    } else if (p->asks) {
        add_text(p, hv_app_view(p->config.app));
        add_text(p, "> ");
    }
    if (question != NULL && !p->asks) {
        add_text(p, "\n");
    }
}

/* Takes the lines that are complete. */
static void take_lines(struct plain *p)
{
    while (!hv_app_is_done(p->config.app) && p->status == HV_OK) {
        char *nl = p->in.n > 0 ? memchr(p->in.p, '\n', p->in.n) : NULL;
        if (nl == NULL && !(p->ended && p->in.n > 0) && p->in.n < LINE_LIMIT) {
            return;
        }
        size_t n = nl != NULL ? (size_t)(nl - p->in.p) : p->in.n;
        struct hv_str line = {0}, clean = {0};
        hv_str_add(&line, p->in.p, n);
        hv_text_clean(&clean, hv_str_cstr(&line), line.n);
        size_t used = n + (nl != NULL);
        memmove(p->in.p, p->in.p + used, p->in.n - used);
        p->in.n -= used;
        while (clean.n > 0 && clean.p[clean.n - 1] == ' ') {
            clean.p[--clean.n] = '\0';
        }
        take_line(p, hv_str_cstr(&clean));
        hv_str_free(&line);
        hv_str_free(&clean);
        if (!hv_app_is_done(p->config.app)) {
            prompt(p);
        }
    }
}

enum hv_status hv_plain_run(const struct hv_plain_config *config, bool *abandoned,
                            struct hv_err *err)
{
    struct plain p = {.config = *config, .err = err, .asks = isatty(config->in) != 0};
    struct hv_event size = hv_event_resize(SHEET_W, SHEET_H);
    (void)hv_app_feed(config->app, &size);
    add_text(&p, "hetviz, plain text: ? lists all commands, q quits\n");
    tick(&p);
    tell_screen(&p);
    tell_menu(&p);
    prompt(&p);
    while (!hv_app_is_done(config->app) && p.status == HV_OK && !(p.ended && p.in.n == 0)) {
        wait_once(&p, true);
        take_lines(&p);
    }
    *abandoned = !hv_app_is_done(config->app) && hv_session_dirty(config->session);
    if (*abandoned) {
        add_text(&p, "not saved; hetviz offers these changes at the next start\n");
    }
    flush(&p);
    hv_str_free(&p.in);
    hv_str_free(&p.out);
    hv_vec_free(&p.told);
    return p.status;
}
