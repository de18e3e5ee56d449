/* The real program on a pseudo-terminal: what it shows, how it leaves. Nothing sleeps; everything
 * waits for a sign with a deadline. */
#define _DEFAULT_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

#include "solver/base/arena.h"
#include "solver/base/file.h"
#include "solver/base/str.h"

enum { DEADLINE_MS = 20000, COLUMNS = 80, ROWS = 24 };

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
};

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void environment(const char *folder)
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
    (void)setenv("TERM", "xterm-256color", 1);
    (void)setenv("LC_ALL", "C", 1);
    (void)unsetenv("LINES");
    (void)unsetenv("COLUMNS");
}

/* Becomes the program in a process group of its own, in the foreground. */
static void become_program(int tty)
{
    const char *program = getenv("HETVIZ");
    char *argv[] = {(char *)(uintptr_t) "hetviz", NULL};
    (void)setpgid(0, 0);
    (void)signal(SIGTTOU, SIG_IGN);
    (void)tcsetpgrp(tty, getpid());
    (void)signal(SIGTTOU, SIG_DFL);
    (void)dup2(tty, STDIN_FILENO);
    (void)dup2(tty, STDOUT_FILENO);
    (void)dup2(tty, STDERR_FILENO);
    (void)execv(program != NULL ? program : "build/hetviz", argv);
    _exit(127);
}

/* The leader of the session, so that the program's group is no orphan and can be stopped. */
static void lead(int tty, int news)
{
    (void)setsid();
    (void)ioctl(tty, TIOCSCTTY, 0);
    (void)signal(SIGHUP, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGHUP, SIG_DFL);
        become_program(tty);
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

static struct news get_news(struct pty *p);

static void start(struct pty *p)
{
    struct winsize size = {.ws_row = ROWS, .ws_col = COLUMNS};
    int news[2];
    assert_int_equal(openpty(&p->master, &p->slave, NULL, NULL, &size), 0);
    assert_int_equal(pipe(news), 0);
    (void)fcntl(p->master, F_SETFD, FD_CLOEXEC);
    (void)fcntl(news[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(news[1], F_SETFD, FD_CLOEXEC);
    assert_int_equal(tcgetattr(p->slave, &p->before), 0);
    p->w = COLUMNS;
    p->h = ROWS;
    p->vt = vterm_new(ROWS, COLUMNS);
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
        lead(p->slave, news[1]);
    }
    (void)close(news[1]);
    p->news = news[0];
    p->program = get_news(p).pid;
    assert_true(p->program > 0);
}

/* Takes in what the program wrote; false when nothing came for a while. */
static bool drink(struct pty *p, int ms)
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

static struct news get_news(struct pty *p)
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
static char *shown(struct pty *p)
{
    size_t cap = (size_t)(p->w * p->h) * 6 + 1;
    char *text = hv_xcalloc(cap, 1);
    VTermRect all = {0, p->h, 0, p->w};
    size_t n = vterm_screen_get_text(p->screen, text, cap - 1, all);
    text[n] = '\0';
    return text;
}

static void wait_for(struct pty *p, const char *text)
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

static void type(struct pty *p, const char *keys)
{
    assert_int_equal(write(p->master, keys, strlen(keys)), strlen(keys));
}

static void resize(struct pty *p, int w, int h)
{
    struct winsize size = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
    p->w = w;
    p->h = h;
    vterm_set_size(p->vt, h, w);
    assert_int_equal(ioctl(p->master, TIOCSWINSZ, &size), 0);
}

/* All that is left to read; the terminal must be as it was and the alternate screen left. */
static void assert_restored(struct pty *p)
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

static void finish(struct pty *p)
{
    (void)kill(p->program, SIGKILL);
    (void)waitpid(p->leader, NULL, 0);
    (void)close(p->master);
    (void)close(p->slave);
    (void)close(p->news);
    vterm_free(p->vt);
    hv_str_free(&p->raw);
}

static int setup(void **state)
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

static int teardown(void **state)
{
    struct pty *p = *state;
    char command[512];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", p->folder);
    int rc = system(command);
    free(p);
    return rc;
}

static void the_first_screen_shows_the_sample_and_keys_switch(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "<1 Clu");
    wait_for(p, "F1 Help");
    wait_for(p, "> a ");
    type(p, "2");
    wait_for(p, "<2 Mod");
    wait_for(p, "Memory per GPU");
    type(p, "4");
    wait_for(p, "<4 Plan");
    type(p, "1");
    wait_for(p, "<1 Clu");
    resize(p, 40, 10);
    wait_for(p, "<1 Clu");
    resize(p, COLUMNS, ROWS);
    wait_for(p, "<1 Clu");
    wait_for(p, "Links");
    type(p, "q");
    struct news n = get_news(p);
    assert_true(WIFEXITED(n.status));
    assert_int_equal(WEXITSTATUS(n.status), 0);
    assert_restored(p);
    finish(p);
}

/* A strategy is run, its plan explained, a line's lever tried and accepted, and taken back. */
static void a_plan_is_explained_and_a_lever_tried(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "F1 Help");
    type(p, "6");
    wait_for(p, "choose a strategy");
    type(p, "3/uniform\r\r");
    wait_for(p, "uniform-1: "); /* how the run ended: its notice would hide later messages */
    type(p, "6");
    wait_for(p, "<6 Why>");
    wait_for(p, "sets the pace");
    type(p, "/(all\r");
    wait_for(p, "tried)");
    resize(p, 160, 48);
    wait_for(p, "<6 Explain>");
    wait_for(p, "No plan can be faster");
    type(p, "7");
    wait_for(p, "<7 What-if>");
    type(p, "/network\rl");
    wait_for(p, "1 turned");
    wait_for(p, "best at");
    type(p, "\r");
    wait_for(p, "changed: cluster");
    type(p, "u");
    wait_for(p, "undone: what-if: network");
    resize(p, 40, 10);
    wait_for(p, "<7 What>");
    resize(p, COLUMNS, ROWS);
    type(p, "q");
    wait_for(p, "Unsaved changes");
    type(p, "y");
    struct news n = get_news(p);
    assert_true(WIFEXITED(n.status));
    assert_int_equal(WEXITSTATUS(n.status), 0);
    assert_restored(p);
    finish(p);
}

static void stopping_gives_the_terminal_back_and_continuing_draws_again(void **state)
{
    struct pty *p = *state;
    struct termios now;
    start(p);
    wait_for(p, "<1 Clu");
    wait_for(p, "F1 Help");
    assert_int_equal(kill(p->program, SIGTSTP), 0);
    struct news n = get_news(p);
    assert_true(WIFSTOPPED(n.status));
    assert_restored(p);
    hv_str_clear(&p->raw);
    assert_int_equal(kill(p->program, SIGCONT), 0);
    n = get_news(p);
    assert_true(WIFCONTINUED(n.status));
    wait_for(p, "<1 Clu");
    type(p, "2");
    wait_for(p, "<2 Mod");
    assert_int_equal(tcgetattr(p->slave, &now), 0);
    assert_false(now.c_lflag & ICANON);
    type(p, "q");
    n = get_news(p);
    assert_true(WIFEXITED(n.status));
    assert_restored(p);
    finish(p);
}

/* Ends the program by a signal; returns its status. */
static int end_by(struct pty *p, int signo)
{
    start(p);
    wait_for(p, "<1 Clu");
    wait_for(p, "F1 Help");
    assert_int_equal(kill(p->program, signo), 0);
    struct news n = get_news(p);
    assert_restored(p);
    finish(p);
    return n.status;
}

static void signals_that_end_it_restore_the_terminal(void **state)
{
    static const int ordinary[] = {SIGTERM, SIGHUP};
    for (size_t i = 0; i < HV_COUNT(ordinary); i++) {
        int status = end_by(*state, ordinary[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 128 + ordinary[i]);
    }
}

static void crashes_restore_the_terminal(void **state)
{
    int status = end_by(*state, SIGSEGV);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void edits_survive_a_hangup_and_are_offered(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "F1 Help");
    type(p, "D");
    wait_for(p, "not in use");
    assert_int_equal(kill(p->program, SIGHUP), 0);
    (void)get_news(p);
    finish(p);
    start(p);
    wait_for(p, "not saved were found");
    type(p, "\r");
    wait_for(p, "not in use");
    finish(p);
}

#define ON_PTY(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_PTY(the_first_screen_shows_the_sample_and_keys_switch),
        ON_PTY(a_plan_is_explained_and_a_lever_tried),
        ON_PTY(stopping_gives_the_terminal_back_and_continuing_draws_again),
        ON_PTY(signals_that_end_it_restore_the_terminal),
        ON_PTY(crashes_restore_the_terminal),
        ON_PTY(edits_survive_a_hangup_and_are_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
