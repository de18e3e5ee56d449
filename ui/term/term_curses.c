/*
 * The real terminal through ncursesw: opening it, cells out, signals and waiting. What keys and
 * mouse send is read in term_curses_input.c. Knows nothing of views.
 */
#include "ui/term/term_curses_int.h"

#include "solver/base/arena.h"
#include "ui/term/term_signals.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

/* last: it defines short words as macros */
#include <term.h>

#define MAX_FDS  32
#define DEAD_MAX 50 /* readable but nothing read: so often in a row means the terminal is gone */

static const char mouse_on[] = "\033[?1002h";
static const char mouse_off[] = "\033[?1006l\033[?1002l\033[?1000l";

/* ---- opening ---- */

enum hv_status hv_term_curses_check(struct hv_err *err)
{
    const char *name = getenv("TERM");
    int result = 0;
    static const char advice[] =
        "use --plain or the subcommands, for example 'hetviz plan' or 'hetviz help'";
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return hv_err_set(err, HV_EUSAGE, "standard %s is no terminal; %s",
                          isatty(STDOUT_FILENO) ? "input" : "output", advice);
    if (!name || !*name || strcmp(name, "dumb") == 0)
        return hv_err_set(err, HV_EUSAGE, "TERM is %s: no full screen is possible; %s",
                          name && *name ? name : "not set", advice);
    if (setupterm(NULL, STDOUT_FILENO, &result) != OK)
        return hv_err_set(err, HV_EUSAGE, "terminal type TERM=%s is not known; %s", name, advice);
    if (!tigetstr("cup") || tigetflag("gn") > 0) {
        (void)del_curterm(cur_term);
        return hv_err_set(err, HV_EUSAGE, "terminal type TERM=%s cannot place the cursor; %s", name,
                          advice);
    }
    return HV_OK;
}

/* Appends a capability without its padding. */
static void add_capability(struct hv_str *out, const char *capability)
{
    const char *s = tigetstr(capability);
    if (!s || s == (const char *)-1)
        return;
    while (*s) {
        const char *end = s[0] == '$' && s[1] == '<' ? strchr(s, '>') : NULL;
        if (end)
            s = end + 1;
        else
            hv_str_addc(out, *s++);
    }
}

static bool use_color(const struct hv_term_config *c)
{
    const char *no = getenv("NO_COLOR");
    if (c->color == HV_COLOR_NEVER || (c->color == HV_COLOR_AUTO && no && *no))
        return false;
    return has_colors() && start_color() == OK && COLORS >= 8;
}

static attr_t attr_bits(unsigned bits)
{
    return (bits & HV_ATTR_BOLD ? A_BOLD : A_NORMAL) | (bits & HV_ATTR_DIM ? A_DIM : A_NORMAL) |
           (bits & HV_ATTR_REVERSE ? A_REVERSE : A_NORMAL) |
           (bits & HV_ATTR_UNDERLINE ? A_UNDERLINE : A_NORMAL);
}

/* One colour pair per style; 8 colours get bold for the bright ones. */
static void set_styles(struct hv_term *t, const struct hv_term_config *c)
{
    bool color = use_color(c), is_default = color && use_default_colors() == OK;
    for (short i = 0; i < (short)HV_STYLE_N; i++) {
        const struct hv_style_look *k = &c->theme->looks[i];
        t->attrs[i] = attr_bits(color ? k->attr : k->mono);
        t->backs[i] = -1;
        if (!color || i + 1 >= COLOR_PAIRS)
            continue;
        short fg = COLORS >= 256 ? k->fg : k->fg16, bg = COLORS >= 256 ? k->bg : k->bg16;
        if (COLORS < 16 && fg >= 8) {
            fg = (short)(fg - 8);
            t->attrs[i] |= A_BOLD;
        }
        if (COLORS < 16 && bg >= 8)
            bg = (short)(bg - 8);
        if (!is_default) {
            fg = fg < 0 ? COLOR_WHITE : fg;
            bg = bg < 0 ? COLOR_BLACK : bg;
        }
        t->pairs[i] = init_pair((short)(i + 1), fg, bg) == OK ? (short)(i + 1) : 0;
        t->backs[i] = k->attr & HV_ATTR_REVERSE ? fg : bg;
    }
    t->color = color;
    t->n_pairs = (short)(HV_STYLE_N + 1);
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

static void send_bytes(const char *s)
{
    (void)fputs(s, stdout);
    (void)fflush(stdout);
}

static void set_mouse(struct hv_term *t, bool on)
{
    mmask_t mask = BUTTON1_PRESSED | BUTTON1_RELEASED | BUTTON4_PRESSED | BUTTON5_PRESSED |
                   BUTTON_SHIFT | BUTTON_CTRL | REPORT_MOUSE_POSITION;
    if (!t->mouse)
        return;
    if (on) {
        (void)mouseinterval(0);
        (void)mousemask(mask, NULL);
        send_bytes(mouse_on);
    } else {
        (void)mousemask(0, NULL);
        send_bytes(mouse_off);
    }
}

static void forget(struct hv_term *t)
{
    int w = getmaxx(stdscr), h = getmaxy(stdscr);
    t->w = w < 0 ? 0 : w > HV_GRID_MAX ? HV_GRID_MAX : w;
    t->h = h < 0 ? 0 : h > HV_GRID_MAX ? HV_GRID_MAX : h;
    free(t->shown);
    t->shown = hv_xcalloc((size_t)t->w * (size_t)t->h + 1, sizeof *t->shown);
    (void)clearok(curscr, TRUE);
}

static void build_reset(const struct hv_term *t, struct hv_str *out)
{
    if (t->mouse)
        hv_str_adds(out, mouse_off);
    add_capability(out, "sgr0");
    add_capability(out, "op");
    add_capability(out, "cnorm");
    add_capability(out, "rmkx");
    add_capability(out, "rmcup");
}

static enum hv_status open_curses(const struct hv_term_config *c, struct hv_term **out,
                                  struct hv_err *err)
{
    (void)setlocale(LC_ALL, "");
    (void)setlocale(LC_NUMERIC, "C");
    if (hv_term_curses_check(err) != HV_OK)
        return HV_EUSAGE;
    struct hv_term *t = hv_xcalloc(1, sizeof *t);
    struct hv_str reset = {0};
    (void)tcgetattr(STDIN_FILENO, &t->saved);
    const char *kmous = tigetstr("kmous");
    t->mouse = !c->no_mouse && kmous && kmous != (const char *)-1;
    build_reset(t, &reset);
    t->signal_fd = hv_signals_open(STDOUT_FILENO, hv_str_cstr(&reset), reset.n, &t->saved);
    hv_str_free(&reset);
    hv_signals_arm(1);
    TERMINAL *probed = cur_term; /* newterm makes its own description and forgets this one */
    t->screen = t->signal_fd < 0 ? NULL : newterm(NULL, stdout, stdin);
    if (probed != cur_term || !t->screen)
        (void)del_curterm(probed);
    if (!t->screen) {
        hv_signals_arm(0);
        hv_signals_close();
        free(t);
        return hv_err_set(err, HV_EUSAGE, "the terminal cannot be set up (TERM=%s)",
                          getenv("TERM"));
    }
    (void)set_escdelay(25);
    set_line();
    t->ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    t->input = newpad(1, 1);
    (void)keypad(t->input, TRUE);
    (void)nodelay(t->input, TRUE);
    (void)leaveok(stdscr, FALSE);
    set_styles(t, c);
    set_mouse(t, true);
    forget(t);
    *out = t;
    return HV_OK;
}

static void close_curses(struct hv_term *t)
{
    set_mouse(t, false);
    (void)curs_set(1);
    (void)endwin();
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &t->saved);
    hv_signals_arm(0);
    hv_signals_close();
    (void)delwin(t->input);
    delscreen(t->screen);
    free(t->shown);
    free(t);
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

/* ---- output ---- */

/* The pair that shows the left background as foreground on the right one; 0 = there is none. A
 * background that is the terminal's own can only be one: the other then is the foreground, and the
 * cell is shown in reverse. */
static short edge_pair(struct hv_term *t, unsigned left, unsigned right, bool *reverse)
{
    short fg = t->backs[left], bg = t->backs[right];
    *reverse = fg < 0;
    if (!t->color || (fg < 0 && bg < 0))
        return 0;
    short *pair = &t->edges[left][right];
    if (*pair == 0) {
        bool room = t->n_pairs < COLOR_PAIRS && t->n_pairs < SHRT_MAX;
        bool made = room && init_pair(t->n_pairs, *reverse ? bg : fg, *reverse ? fg : bg) == OK;
        *pair = made ? t->n_pairs++ : -1;
    }
    return *pair > 0 ? *pair : 0;
}

/* An edge cell in its two colours, or whole in the style that has more of it. */
static struct hv_cell resolve_edge(struct hv_term *t, const struct hv_cell *c, attr_t *attr,
                                   short *pair)
{
    struct hv_cell out = *c;
    unsigned left = c->style & HV_STYLE_ID_MASK, right = HV_STYLE_RIGHT(c->style);
    bool reverse = false;
    *attr = A_NORMAL;
    *pair = left < HV_STYLE_N && right < HV_STYLE_N ? edge_pair(t, left, right, &reverse) : 0;
    if (*pair != 0) {
        *attr = reverse ? A_REVERSE : A_NORMAL;
        return out;
    }
    unsigned id = hv_cell_eighths(c) >= 4 ? left : right;
    *attr = t->attrs[id];
    *pair = t->pairs[id];
    memcpy(out.utf8, " ", 2);
    return out;
}

static void put_cell(struct hv_term *t, int x, int y, const struct hv_cell *c)
{
    wchar_t text[CCHARW_MAX + 1] = {0};
    cchar_t cc;
    unsigned id = c->style & HV_STYLE_ID_MASK;
    id = id < HV_STYLE_N ? id : 0;
    attr_t attr = t->attrs[id];
    short pair = t->pairs[id];
    struct hv_cell edge;
    if (HV_STYLE_RIGHT(c->style) != 0) {
        edge = resolve_edge(t, c, &attr, &pair);
        c = &edge;
    }
    if (c->style & HV_STYLE_REVERSE)
        attr ^= A_REVERSE;
    if (c->style & HV_STYLE_BOLD)
        attr |= A_BOLD;
    if (c->style & HV_STYLE_UNDERLINE)
        attr |= A_UNDERLINE;
    size_t n = mbstowcs(text, c->utf8, CCHARW_MAX);
    if (n == (size_t)-1 || n == 0 || wcwidth(text[0]) != c->width) {
        text[0] = c->utf8[0] >= ' ' && c->width == 1 && !c->utf8[1] ? (wchar_t)c->utf8[0] : L'?';
        text[1] = L'\0';
    }
    (void)setcchar(&cc, text, attr, pair, NULL);
    (void)mvadd_wch(y, x, &cc);
    if (c->width == 2 && wcwidth(text[0]) == 1)
        (void)mvadd_wch(y, x + 1, &cc);
}

static void present(struct hv_term *t, const struct hv_grid *g)
{
    int w = g->w < t->w ? g->w : t->w, h = g->h < t->h ? g->h : t->h;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            const struct hv_cell *c = &g->cells[(size_t)y * (size_t)g->w + (size_t)x];
            struct hv_cell *old = &t->shown[(size_t)y * (size_t)t->w + (size_t)x];
            bool same = old->style == c->style && old->width == c->width &&
                        memcmp(old->utf8, c->utf8, sizeof c->utf8) == 0;
            if (same)
                continue;
            *old = *c;
            if (c->width > 0)
                put_cell(t, x, y, c);
        }
    }
    bool cursor = g->cursor_x >= 0 && g->cursor_x < w && g->cursor_y < h;
    (void)curs_set(cursor ? 1 : 0);
    if (cursor)
        (void)move(g->cursor_y, g->cursor_x);
    (void)refresh();
}

/* ---- waiting ---- */

static void suspend(struct hv_term *t)
{
    set_mouse(t, false);
    (void)curs_set(1);
    (void)endwin();
    hv_signals_arm(0);
}

static void resume(struct hv_term *t)
{
    struct winsize ws;
    hv_signals_arm(1);
    (void)reset_prog_mode();
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 && ws.ws_row > 0)
        (void)resize_term(ws.ws_row, ws.ws_col);
    set_mouse(t, true);
    forget(t);
    (void)refresh();
}

static struct hv_event on_signal(struct hv_term *t)
{
    int signo = hv_signals_next();
    if (signo == 0)
        return hv__term_no_event();
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
        struct winsize ws;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 && ws.ws_row > 0)
            (void)resize_term(ws.ws_row, ws.ws_col);
        forget(t);
        return hv_event_resize(t->w, t->h);
    }
    return (struct hv_event){.type = HV_EV_QUIT, .signo = signo};
}

static struct hv_event wait_event(struct hv_term *t, int timeout_ms, const int *fds, size_t n_fds)
{
    struct pollfd p[MAX_FDS + 2] = {{.fd = t->signal_fd, .events = POLLIN},
                                    {.fd = STDIN_FILENO, .events = POLLIN}};
    struct hv_event ev = hv__term_read_key(t);
    if (ev.type != HV_EV_NONE)
        return ev;
    size_t n = n_fds < MAX_FDS ? n_fds : MAX_FDS;
    for (size_t i = 0; i < n; i++)
        p[i + 2] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    int ready = poll(p, (nfds_t)(n + 2), timeout_ms);
    if (ready <= 0 && !(ready < 0 && errno == EINTR))
        return hv__term_no_event();
    ev = on_signal(t);
    if (ev.type != HV_EV_NONE || ready < 0)
        return ev;
    if (p[1].revents & (POLLHUP | POLLERR | POLLNVAL))
        return (struct hv_event){.type = HV_EV_QUIT, .signo = SIGHUP};
    if (p[1].revents & POLLIN) {
        ev = hv__term_read_key(t);
        if (ev.type != HV_EV_NONE)
            return ev;
        if (++t->dead > DEAD_MAX)
            return (struct hv_event){.type = HV_EV_QUIT, .signo = SIGHUP};
    }
    for (size_t i = 0; i < n; i++)
        if (p[i + 2].revents)
            return (struct hv_event){.type = HV_EV_FD, .fd = fds[i]};
    return hv__term_no_event();
}

const struct hv_term_ops hv_term_curses = {.name = "curses",
                                           .open = open_curses,
                                           .close = close_curses,
                                           .size = get_size,
                                           .is_ascii = is_ascii,
                                           .present = present,
                                           .wait_event = wait_event,
                                           .suspend = suspend,
                                           .resume = resume};
