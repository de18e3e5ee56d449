/*
 * The real terminal through ncursesw: opening it, signals and waiting. Input is read in
 * term_curses_input.c and decoded in term_keys.c, output is encoded in term_out.c. Independent of
 * views.
 */
#include "ui/term/term_curses_int.h"
#include "ui/term/tui.h"

#include "solver/base/arena.h"
#include "ui/term/term_signals.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* last: it defines short words as macros */
#include <term.h>

#define MAX_FDS 32
/* Time after Esc within which the rest of a sequence must arrive. */
#define ESC_MS 25

static const char mouse_on[] = "\033[?1000h\033[?1002h\033[?1006h";
static const char mouse_off[] = "\033[?1006l\033[?1002l\033[?1000l";
/* Bracketed paste: what is pasted comes between marks, so that it cannot act as keys. */
static const char paste_on[] = "\033[?2004h";
static const char paste_off[] = "\033[?2004l";

/* ---- opening ---- */

enum hv_status hv_term_curses_check(struct hv_err *err)
{
    const char *name = getenv("TERM");
    int result = 0;
    static const char advice[] =
        "use --plain or the subcommands, for example 'hetviz plan' or 'hetviz help'";
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return hv_err_set(err, HV_EUSAGE, "standard %s is not a terminal; %s",
                          isatty(STDOUT_FILENO) ? "input" : "output", advice);
    }
    if (!name || !*name || strcmp(name, "dumb") == 0) {
        return hv_err_set(err, HV_EUSAGE, "TERM is %s: this terminal cannot show full screens; %s",
                          name && *name ? name : "not set", advice);
    }
    if (setupterm(NULL, STDOUT_FILENO, &result) != OK) {
        return hv_err_set(err, HV_EUSAGE, "terminal type TERM=%s is not known; %s", name, advice);
    }
    if (!tigetstr("cup") || tigetflag("gn") > 0) {
        (void)del_curterm(cur_term);
        return hv_err_set(err, HV_EUSAGE, "terminal type TERM=%s cannot place the cursor; %s", name,
                          advice);
    }
    return HV_OK;
}

static bool use_color(const struct hv_term_config *c)
{
    const char *no = getenv("NO_COLOR");
    return c->color != HV_COLOR_NEVER && !(c->color == HV_COLOR_AUTO && no && *no);
}

/* Flow control off (^S, ^Q are keys), ^C and ^\ are keys, ^Z stays job control. */
static void set_line(void)
{
    struct termios now;
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    if (tcgetattr(STDIN_FILENO, &now) == 0) {
        now.c_iflag &= ~(tcflag_t)(IXON | IXOFF);
        now.c_cc[VINTR] = now.c_cc[VQUIT] = _POSIX_VDISABLE;
#ifdef VLNEXT
        now.c_cc[VLNEXT] = _POSIX_VDISABLE;
#endif
#ifdef VDISCARD
        now.c_cc[VDISCARD] = _POSIX_VDISABLE;
#endif
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    (void)def_prog_mode();
}

/* Writes the pending output in one piece; a failed write means that the terminal is gone. */
static void send_bytes(struct hv_term *t)
{
    const char *p = t->out.bytes.p;
    size_t n = t->out.bytes.n;
    while (n > 0 && !t->gone) {
        ssize_t k = write(STDOUT_FILENO, p, n);
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        } else if (k < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (k == 0 || errno != EINTR) {
            t->gone = true;
        }
    }
    hv_str_clear(&t->out.bytes);
}

/* The size may have changed, and the content of the terminal is unknown. curses is updated only
 * when it is used again: its own windows are never drawn. */
static void forget(struct hv_term *t)
{
    struct winsize ws;
    int w = getmaxx(stdscr), h = getmaxy(stdscr);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 && ws.ws_row > 0) {
        w = ws.ws_col;
        h = ws.ws_row;
    }
    t->w = w < 0 ? 0 : w > HV_GRID_MAX ? HV_GRID_MAX : w;
    t->h = h < 0 ? 0 : h > HV_GRID_MAX ? HV_GRID_MAX : h;
    hv__out_forget(&t->out, t->w, t->h);
}

/* Terminals of the kind of xterm know the mode; others would show its letters. */
static bool has_paste(const struct hv_term *t)
{
    return t->out.caps.ansi_move && t->out.caps.ansi_pen;
}

/* The text that a crashing program writes. */
static void build_reset(const struct hv_term *t, struct hv_str *out)
{
    const struct hv_out_caps *c = &t->out.caps;
    const char *all[] = {c->plain, c->colours, c->show, c->keys_off, c->leave};
    if (t->has_mouse) { /* it may be enabled later */
        hv_str_adds(out, mouse_off);
    }
    hv_str_adds(out, has_paste(t) ? paste_off : "");
    for (size_t i = 0; i < HV_COUNT(all); i++) {
        hv_str_adds(out, all[i] ? all[i] : "");
    }
}

/* Schedules a full redraw and, where it is wanted, enables the mouse with the next frame. Pending
 * output of curses goes first: curses buffers it until keypad() is called. */
static void take_over(struct hv_term *t)
{
    (void)keypad(stdscr, TRUE);
    forget(t);
    hv_str_adds(&t->out.bytes, t->mouse ? mouse_on : "");
    hv_str_adds(&t->out.bytes, has_paste(t) ? paste_on : "");
}

static void give_back(struct hv_term *t)
{
    hv_str_adds(&t->out.bytes, t->mouse ? mouse_off : "");
    hv_str_adds(&t->out.bytes, has_paste(t) ? paste_off : "");
    hv__out_leave(&t->out);
    send_bytes(t);
    if (t->w > 0 && t->h > 0 && (t->w != getmaxx(stdscr) || t->h != getmaxy(stdscr))) {
        (void)resize_term(t->h, t->w);
    }
    (void)endwin();
}

static enum hv_status open_curses(const struct hv_term_config *c, struct hv_term **out,
                                  struct hv_err *err)
{
    if (!cur_term && hv_term_curses_check(err) != HV_OK) { /* else it was checked before */
        return HV_EUSAGE;
    }
    struct hv_term *t = hv_xcalloc(1, sizeof *t);
    struct hv_str reset = {0};
    (void)tcgetattr(STDIN_FILENO, &t->saved);
    const char *kmous = tigetstr("kmous");
    t->has_mouse = kmous && kmous != (const char *)-1;
    t->mouse = !c->no_mouse && t->has_mouse;
    t->colour = use_color(c);
    hv__out_open(&t->out, c->theme, t->colour);
    build_reset(t, &reset);
    t->signal_fd = hv_signals_open(STDOUT_FILENO, hv_str_cstr(&reset), reset.n, &t->saved);
    hv_str_free(&reset);
    hv_signals_arm(1);
    TERMINAL *probed = cur_term; /* newterm allocates its own description and drops this one */
    t->screen = t->signal_fd < 0 ? NULL : newterm(NULL, stdout, stdin);
    if (probed != cur_term || !t->screen) {
        (void)del_curterm(probed);
    }
    if (!t->screen) {
        hv_signals_arm(0);
        hv_signals_close();
        hv__out_close(&t->out);
        free(t);
        return hv_err_set(err, HV_EUSAGE, "the terminal cannot be set up (TERM=%s)",
                          getenv("TERM"));
    }
    set_line();
    t->ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    t->keys.mouse = t->mouse;
    hv__term_learn_keys(&t->keys);
    take_over(t);
    *out = t;
    return HV_OK;
}

static void close_curses(struct hv_term *t)
{
    give_back(t);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &t->saved);
    hv_signals_arm(0);
    hv_signals_close();
    delscreen(t->screen);
    hv__out_close(&t->out);
    free(t);
}

static bool set_mouse(struct hv_term *t, bool on)
{
    on = on && t->has_mouse;
    if (on != t->mouse) {
        hv_str_adds(&t->out.bytes, on ? mouse_on : mouse_off);
    }
    t->mouse = t->keys.mouse = on;
    return t->has_mouse;
}

static bool set_theme(struct hv_term *t, const struct hv_theme *theme)
{
    hv__out_look(&t->out, theme, t->colour);
    forget(t);
    return true;
}

static void get_size(const struct hv_term *t, int *w, int *h)
{
    *w = t->w;
    *h = t->h;
}

static bool is_ascii(const struct hv_term *t)
{
    return t->ascii;
}

static bool is_mono(const struct hv_term *t)
{
    return hv__out_is_mono(&t->out);
}

static void present(struct hv_term *t, const struct hv_grid *g)
{
    hv__out_draw(&t->out, g);
    send_bytes(t);
}

/* ---- waiting ---- */

static void suspend(struct hv_term *t)
{
    give_back(t);
    hv_signals_arm(0);
}

static void resume(struct hv_term *t)
{
    hv_signals_arm(1);
    (void)reset_prog_mode();
    (void)refresh(); /* curses takes the screen again */
    take_over(t);
}

static struct hv_event on_signal(struct hv_term *t)
{
    int signo = hv_signals_next();
    if (signo == 0) {
        return hv__term_no_event();
    }
    if (signo == SIGTSTP) {
        suspend(t);
        hv_signals_stop();
        resume(t);
        return hv_event_resize(t->w, t->h);
    }
    if (signo == SIGCONT) {
        suspend(t);
        resume(t);
        return hv_event_resize(t->w, t->h);
    }
    if (signo == SIGWINCH) {
        forget(t);
        return hv_event_resize(t->w, t->h);
    }
    return (struct hv_event){.type = HV_EV_QUIT, .signo = signo};
}

static int64_t now_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Decodes bytes read before. An incomplete sequence waits a limited time for its rest: `*wait_ms`
 * is reduced to that. */
static struct hv_event decode(struct hv_term *t, int *wait_ms)
{
    struct hv_event ev = hv__keys_next(&t->keys, false);
    if (ev.type != HV_EV_NONE || !hv__keys_waiting(&t->keys)) {
        t->waits = false;
        return ev;
    }
    int64_t now = now_ms();
    t->since_ms = t->waits ? t->since_ms : now;
    t->waits = true;
    int64_t left = t->since_ms + ESC_MS - now;
    if (left <= 0) {
        t->waits = false;
        return hv__keys_next(&t->keys, true);
    }
    if (*wait_ms < 0 || *wait_ms > (int)left) {
        *wait_ms = (int)left;
    }
    return ev;
}

static struct hv_event quit_event(void)
{
    return (struct hv_event){.type = HV_EV_QUIT, .signo = SIGHUP};
}

/* Waits once; HV_EV_NONE with *again set: there may be more to decode. */
static struct hv_event wait_once(struct hv_term *t, int timeout_ms, const int *fds, size_t n,
                                 bool *again)
{
    struct pollfd p[MAX_FDS + 2] = {{.fd = t->signal_fd, .events = POLLIN},
                                    {.fd = STDIN_FILENO, .events = POLLIN}};
    for (size_t i = 0; i < n; i++) {
        p[i + 2] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    }
    int ready = poll(p, (nfds_t)(n + 2), timeout_ms);
    *again = false;
    if (ready < 0 || p[0].revents) {
        return on_signal(t);
    }
    if (p[1].revents & POLLIN && hv__term_read(t)) {
        *again = true;
        return hv__term_no_event();
    }
    if (p[1].revents) {
        return quit_event();
    }
    for (size_t i = 0; i < n; i++) {
        if (p[i + 2].revents) {
            return (struct hv_event){.type = HV_EV_FD, .fd = fds[i]};
        }
    }
    return hv__term_no_event();
}

static struct hv_event wait_event(struct hv_term *t, int timeout_ms, const int *fds, size_t n_fds)
{
    bool again = true;
    struct hv_event ev = hv__term_no_event();
    while (again && ev.type == HV_EV_NONE) {
        int ms = timeout_ms;
        if (t->gone) {
            return quit_event();
        }
        ev = decode(t, &ms);
        if (ev.type != HV_EV_NONE) {
            break;
        }
        ev = wait_once(t, ms, fds, n_fds < MAX_FDS ? n_fds : MAX_FDS, &again);
        again = again || (t->waits && timeout_ms < 0);
    }
    return ev;
}

const struct hv_term_ops hv_term_curses = {.name = "curses",
                                           .open = open_curses,
                                           .close = close_curses,
                                           .size = get_size,
                                           .is_ascii = is_ascii,
                                           .is_mono = is_mono,
                                           .present = present,
                                           .wait_event = wait_event,
                                           .mouse = set_mouse,
                                           .theme = set_theme,
                                           .suspend = suspend,
                                           .resume = resume};

const char *hv_tui_library(void)
{
    return curses_version();
}
