/** The real program on a pseudo-terminal: started in a folder of its own, fed, read through
 * libvterm. Nothing sleeps; everything waits for a sign with a deadline. Include the headers of
 * cmocka first and define _DEFAULT_SOURCE. */
#ifndef HV_TESTS_PTY_PTY_H
#define HV_TESTS_PTY_PTY_H

#include "solver/base/arena.h"
#include "solver/base/file.h"
#include "solver/base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <vterm.h>

/* the deadline ends what hangs; no machine is so slow that it meets it otherwise */
enum { DEADLINE_MS = 600000, COLUMNS = 80, ROWS = 24 };

/* What the leader tells: the program's pid first, then each change of its state. */
struct news {
    int pid, status;
};

/* A program on a pseudo-terminal. */
struct pty {
    char folder[256];
    int master, slave, news;
    pid_t leader, program;
    struct termios before;
    VTerm *vt;
    VTermScreen *screen;
    int w, h;
    struct hv_str raw; /* everything it wrote */
    /* what tests may ask for before start */
    int start_w, start_h;           /* 0: COLUMNS × ROWS */
    const char *workspace;          /* argument; NULL = none */
    void (*prepare)(struct pty *p); /* called in the program's process before it begins */
};

static inline int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline void environment(const char *folder)
{
    char path[512];
    (void)setenv("HOME", folder, 1);
    (void)snprintf(path, sizeof path, "%s/config", folder);
    (void)setenv("XDG_CONFIG_HOME", path, 1);
    (void)snprintf(path, sizeof path, "%s/state", folder);
    (void)setenv("XDG_STATE_HOME", path, 1);
    (void)snprintf(path, sizeof path, "%s/cache", folder);
    (void)setenv("XDG_CACHE_HOME", path, 1);
    (void)snprintf(path, sizeof path, "suppressions=%s/known:print_suppressions=0", folder);
    (void)setenv("LSAN_OPTIONS", path, 1);
    /* without `rep`, which libvterm gets wrong by one at the right border */
    (void)setenv("TERM", "screen-256color", 1);
    (void)setenv("LC_ALL", "C", 1);
    (void)unsetenv("COLORFGBG");
    (void)unsetenv("HETVIZ_THEME");
    (void)unsetenv("LINES");
    (void)unsetenv("COLUMNS");
}

/* Becomes the program in a process group of its own, in the foreground. */
static inline void become_program(struct pty *p, int tty)
{
    const char *program = getenv("HETVIZ");
    char *argv[] = {(char *)(uintptr_t) "hetviz", (char *)(uintptr_t)p->workspace, NULL};
    (void)setpgid(0, 0);
    (void)signal(SIGTTOU, SIG_IGN);
    (void)tcsetpgrp(tty, getpid());
    (void)signal(SIGTTOU, SIG_DFL);
    (void)dup2(tty, STDIN_FILENO);
    (void)dup2(tty, STDOUT_FILENO);
    (void)dup2(tty, STDERR_FILENO);
    if (p->prepare != NULL) {
        p->prepare(p);
    }
    (void)execv(program != NULL ? program : "build/hetviz", argv);
    _exit(127);
}

/* The leader of the session, so that the program's group is no orphan and can be stopped. */
static inline void lead(struct pty *p, int tty, int news)
{
    (void)setsid();
    (void)ioctl(tty, TIOCSCTTY, 0);
    (void)signal(SIGHUP, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGHUP, SIG_DFL);
        become_program(p, tty);
    }
    struct news n = {pid, -1};
    bool gone = false;
    while (write(news, &n, sizeof n) == (ssize_t)sizeof n && !gone) {
        while (waitpid(pid, &n.status, WUNTRACED | WCONTINUED) < 0 && errno == EINTR) {
        }
        gone = WIFEXITED(n.status) || WIFSIGNALED(n.status);
    }
    _exit(0);
}

static inline struct news get_news(struct pty *p);

static inline void start(struct pty *p)
{
    p->w = p->start_w > 0 ? p->start_w : COLUMNS;
    p->h = p->start_h > 0 ? p->start_h : ROWS;
    struct winsize size = {.ws_row = (unsigned short)p->h, .ws_col = (unsigned short)p->w};
    int news[2];
    assert_int_equal(openpty(&p->master, &p->slave, NULL, NULL, &size), 0);
    assert_int_equal(pipe(news), 0);
    (void)fcntl(p->master, F_SETFD, FD_CLOEXEC);
    (void)fcntl(news[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(news[1], F_SETFD, FD_CLOEXEC);
    assert_int_equal(tcgetattr(p->slave, &p->before), 0);
    p->vt = vterm_new(p->h, p->w);
    vterm_set_utf8(p->vt, 1);
    p->screen = vterm_obtain_screen(p->vt);
    vterm_screen_enable_altscreen(p->screen, 1);
    vterm_screen_reset(p->screen, 1);
    p->leader = fork();
    assert_true(p->leader >= 0);
    if (p->leader == 0) {
        (void)close(p->master); /* when the test dies, the terminal hangs up */
        (void)close(news[0]);
        environment(p->folder);
        lead(p, p->slave, news[1]);
    }
    (void)close(news[1]);
    p->news = news[0];
    p->program = get_news(p).pid;
    assert_true(p->program > 0);
}

/* Takes in what the program wrote; false when nothing came for a while. */
static inline bool drink(struct pty *p, int ms)
{
    char buf[4096];
    struct pollfd fd = {.fd = p->master, .events = POLLIN};
    if (poll(&fd, 1, ms) <= 0 || !(fd.revents & POLLIN)) {
        return false;
    }
    ssize_t n = read(p->master, buf, sizeof buf);
    if (n <= 0) {
        return false;
    }
    hv_str_add(&p->raw, buf, (size_t)n);
    (void)vterm_input_write(p->vt, buf, (size_t)n);
    vterm_screen_flush_damage(p->screen);
    return true;
}

static inline struct news get_news(struct pty *p)
{
    struct news n = {0, 0};
    int64_t end = now_ms() + DEADLINE_MS;
    struct pollfd fd = {.fd = p->news, .events = POLLIN};
    while (now_ms() < end) {
        (void)drink(p, 0); /* a program that waits for its terminal would never change */
        if (poll(&fd, 1, 20) > 0) {
            assert_int_equal(read(p->news, &n, sizeof n), sizeof n);
            return n;
        }
    }
    fail_msg("no news of the program");
    return n;
}

/* The screen as text. Owner: caller frees. */
static inline char *shown(struct pty *p)
{
    size_t cap = (size_t)(p->w * p->h) * 6 + 1;
    char *text = hv_xcalloc(cap, 1);
    VTermRect all = {0, p->h, 0, p->w};
    size_t n = vterm_screen_get_text(p->screen, text, cap - 1, all);
    text[n] = '\0';
    return text;
}

static inline void wait_for(struct pty *p, const char *text)
{
    int64_t end = now_ms() + DEADLINE_MS;
    for (;;) {
        char *now = shown(p);
        bool found = strstr(now, text) != NULL;
        if (!found && now_ms() > end) {
            (void)fprintf(stderr, "%s\n", now); /* longer than the library prints */
            fail_msg("'%s' is not shown", text);
        }
        free(now);
        if (found) {
            return;
        }
        (void)drink(p, 50);
    }
}

static inline void type(struct pty *p, const char *keys)
{
    assert_int_equal(write(p->master, keys, strlen(keys)), strlen(keys));
}

static inline void resize(struct pty *p, int w, int h)
{
    struct winsize size = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
    p->w = w;
    p->h = h;
    vterm_set_size(p->vt, h, w);
    assert_int_equal(ioctl(p->master, TIOCSWINSZ, &size), 0);
}

/* All that is left to read; the terminal must be as it was and the alternate screen left. */
static inline void assert_restored(struct pty *p)
{
    struct termios now;
    while (drink(p, 50)) {
    }
    assert_int_equal(tcgetattr(p->slave, &now), 0);
    assert_int_equal(now.c_lflag, p->before.c_lflag);
    assert_int_equal(now.c_iflag, p->before.c_iflag);
    assert_int_equal(now.c_oflag, p->before.c_oflag);
    const char *raw = hv_str_cstr(&p->raw), *in = strstr(raw, "\033[?1049h"), *out = NULL;
    assert_non_null(in);
    for (const char *at = raw; (at = strstr(at, "\033[?1049l")) != NULL; at++) {
        out = at;
    }
    assert_non_null(out);
    assert_null(strstr(out, "\033[?1049h"));
    const char *hide = NULL, *show = NULL;
    for (const char *at = raw; (at = strstr(at, "\033[?25l")) != NULL; at++) {
        hide = at;
    }
    for (const char *at = raw; (at = strstr(at, "25h")) != NULL; at++) {
        show = at;
    }
    assert_true(hide == NULL || (show != NULL && show > hide));
}

static inline void finish(struct pty *p)
{
    (void)kill(p->program, SIGKILL);
    (void)waitpid(p->leader, NULL, 0);
    (void)close(p->master);
    (void)close(p->slave);
    (void)close(p->news);
    vterm_free(p->vt);
    hv_str_free(&p->raw);
}

static inline int setup(void **state)
{
    struct pty *p = hv_xcalloc(1, sizeof *p);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(p->folder, sizeof p->folder, "%s/hv_pty_XXXXXX",
                   tmp != NULL && tmp[0] != '\0' ? tmp : P_tmpdir);
    *state = p;
    if (mkdtemp(p->folder) == NULL) {
        return -1;
    }
    /* what ncurses keeps for good is no leak of ours */
    static const char known[] = "leak:libtinfo\nleak:libncurses\n";
    char path[300];
    (void)snprintf(path, sizeof path, "%s/known", p->folder);
    return hv_file_write(path, known, sizeof known - 1, NULL) == HV_OK ? 0 : -1;
}

static inline int teardown(void **state)
{
    struct pty *p = *state;
    char command[512];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", p->folder);
    int rc = system(command);
    free(p);
    return rc;
}

#define ON_PTY(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
