/*
 * A child process behind walls, and what it answers. Not here: the walls (jail*.c), the contents of
 * the lines (message.c).
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, syscall */
#include "scripting/host/cell.h"
#include "scripting/host/jail.h"
#include "solver/base/file.h"
#include "solver/base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#if HV_ASAN
#include <sanitizer/lsan_interface.h>
#endif

/* Interval of the calls of `cancel`, and of the looks at a child that has been asked to end. */
#define LOOK_S 0.1
/* A child that is to end has this long: so many seconds, in which it computed for so many, since it
 * may have less than a whole core. One that sleeps has the longer time. */
#define GRACE_S       1.0
#define GRACE_CPU_S   0.5
#define GRACE_SLEEP_S 60.0
/* The descriptor of the child's output. */
#define OUT_FD 3
/* Most descriptors that are closed one by one. */
#define FDS_MAX 4096
/* Longest line that is taken of a child. */
#define LINE_LIMIT ((size_t)1 << 30)

static double clock_s(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec : HV_UNKNOWN;
}

static double now_s(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

/* ---- the child ------------------------------------------------------------------------------- */

/** Closes every descriptor from `first` on. */
static void close_from(int first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0) {
        return;
    }
#endif
    for (int fd = first; fd < FDS_MAX; fd++) {
        (void)close(fd);
    }
}

/** Leaves the child with /dev/null, /dev/null, standard error (where there is none, /dev/null) and
 * its output. */
static void keep_files(int out)
{
    int null = open("/dev/null", O_RDWR);

    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
        if (fcntl(STDERR_FILENO, F_GETFD) < 0) {
            (void)dup2(null, STDERR_FILENO);
        }
    }
    if (out != OUT_FD) {
        (void)dup2(out, OUT_FD);
    }
    close_from(OUT_FD + 1);
}

/** Signals as a fresh program has them, but for those that are for the parent. */
static void reset_signals(void)
{
    static const int usual[] = {SIGHUP,  SIGQUIT,  SIGPIPE, SIGALRM, SIGTSTP, SIGCONT,
                                SIGCHLD, SIGWINCH, SIGUSR1, SIGUSR2, SIGXCPU};
    static const int fatal[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    for (size_t i = 0; i < HV_COUNT(usual); i++) {
        (void)signal(usual[i], SIG_DFL);
    }
    for (size_t i = 0; !HV_ASAN && i < HV_COUNT(fatal); i++) {
        (void)signal(fatal[i], SIG_DFL);
    }
    hv_die_hook(NULL);
}

/** Never returns. */
static void be_child(const struct hv__cell *c, int out, pid_t parent)
{
    struct hv__cell_inside inside = {.fd = OUT_FD, .stop = c->stop};

    reset_signals();
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) {
        _exit(1);
    }
    keep_files(out);
    hv_lock_process(c->work.cpu_s);
    c->work.run(c->work.ctx, &inside);
#if HV_ASAN
    if (__lsan_do_recoverable_leak_check() != 0) {
        _exit(99);
    }
#endif
    _exit(0);
}

void hv__cell_write(const struct hv__cell_inside *inside, const char *line, size_t n)
{
    struct hv_str text = {0};

    hv_str_add(&text, line, n);
    hv_str_addc(&text, '\n');
    for (size_t at = 0; at < text.n;) {
        ssize_t k = write(inside->fd, text.p + at, text.n - at);
        if (k < 0 && errno == EINTR) {
            continue;
        }
        if (k <= 0) {
            break; /* the parent is gone */
        }
        at += (size_t)k;
    }
    hv_str_free(&text);
}

bool hv__cell_is_asked(void *inside)
{
    const struct hv__cell_inside *in = inside;
    return atomic_load_explicit(in->stop, memory_order_relaxed);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static void close_both(const int fd[2])
{
    (void)close(fd[0]);
    (void)close(fd[1]);
}

enum hv_status hv__cell_start(struct hv__cell *c, const struct hv__cell_work *work,
                              struct hv_err *err)
{
    int fd[2];
    pid_t parent = getpid();

    *c = (struct hv__cell){.work = *work, .fd = -1};
    if (pipe(fd) != 0 || !hv_descriptors_lift(fd)) {
        return hv_descriptors_error(err, "cannot start a process for Lua", errno);
    }
    void *shared =
        mmap(NULL, sizeof *c->stop, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        int why = errno;
        close_both(fd);
        return hv_descriptors_error(err, "cannot start a process for Lua", why);
    }
    c->stop = shared;
    atomic_init(c->stop, false);
    c->pid = fork();
    if (c->pid == 0) {
        be_child(c, fd[1], parent);
    }
    if (c->pid < 0) {
        int why = errno;
        close_both(fd);
        c->pid = 0;
        (void)hv__cell_end(c);
        return hv_descriptors_error(err, "cannot start a process for Lua", why);
    }
    (void)close(fd[1]);
    c->fd = fd[0];
    hv__cell_rewind(c);
    return HV_OK;
}

void hv__cell_rewind(struct hv__cell *c)
{
    c->end_s = c->work.limit_s > 0 ? now_s() + c->work.limit_s : 0;
}

/** CPU seconds of the child so far. */
static double child_s(const struct hv__cell *c)
{
    clockid_t clock;
    return clock_getcpuclockid(c->pid, &clock) == 0 ? clock_s(clock) : HV_UNKNOWN;
}

/** Notes that the child is to end. A cancelled one is told; a late one has its own clock. */
static void ask(struct hv__cell *c, bool late)
{
    c->late = late;
    c->asked = true;
    c->asked_s = now_s();
    c->asked_child_s = child_s(c);
    if (!late) {
        atomic_store_explicit(c->stop, true, memory_order_relaxed);
    }
}

/** True where the child has had its time; until then decides whether it is to end. */
static bool is_over(struct hv__cell *c)
{
    if (!c->asked && c->work.cancel != NULL && c->work.cancel(c->work.cancel_ctx)) {
        ask(c, false);
    } else if (!c->asked && c->end_s > 0 && now_s() > c->end_s) {
        ask(c, true);
    }
    if (!c->asked) {
        return false;
    }
    double passed_s = now_s() - c->asked_s, computed_s = child_s(c) - c->asked_child_s;
    return passed_s > GRACE_SLEEP_S || (passed_s > GRACE_S && computed_s > GRACE_CPU_S);
}

/** Milliseconds until is_over has to be called again. */
static int patience_ms(const struct hv__cell *c)
{
    double left_s = c->end_s > 0 ? c->end_s - now_s() : HV_UNKNOWN;

    if (c->asked || c->work.cancel != NULL) {
        left_s = hv_known(left_s) && left_s < LOOK_S && !c->asked ? left_s : LOOK_S;
    }
    if (!hv_known(left_s)) {
        return -1;
    }
    left_s = left_s < 0 ? 0 : left_s > 3600 ? 3600 : left_s;
    return (int)(left_s * 1000) + 1;
}

/** The next whole line of what has been read, or false. */
static bool take_line(struct hv__cell *c, size_t from, const char **line, size_t *n)
{
    if (c->text.n <= from) {
        return false;
    }
    const char *end = memchr(c->text.p + from, '\n', c->text.n - from);
    if (end == NULL) {
        return false;
    }
    *line = c->text.p + c->at;
    *n = (size_t)(end - *line);
    c->at += *n + 1;
    return true;
}

/** Throws away what has been given out. */
static void drop_used(struct hv__cell *c)
{
    if (c->at > 0) {
        memmove(c->text.p, c->text.p + c->at, c->text.n - c->at);
        c->text.n -= c->at;
        c->at = 0;
    }
}

/** Waits until there is something to read, and reads it; false at the end of the output. */
static bool read_more(struct hv__cell *c)
{
    char buf[1 << 16];
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    if (poll(&p, 1, patience_ms(c)) <= 0) {
        return true;
    }
    ssize_t got = read(c->fd, buf, sizeof buf);
    if (got > 0) {
        hv_str_add(&c->text, buf, (size_t)got);
    }
    return got > 0 || (got < 0 && errno == EINTR);
}

enum hv__heard hv__cell_next(struct hv__cell *c, const char **line, size_t *n)
{
    size_t searched = c->at;

    while (!take_line(c, searched, line, n)) {
        drop_used(c);
        searched = c->text.n;
        if (!read_more(c) || c->text.n > LINE_LIMIT) {
            return HV__CELL_END;
        }
        if (is_over(c)) {
            (void)kill(c->pid, SIGKILL);
            return c->late ? HV__CELL_LATE : HV__CELL_CANCELLED;
        }
    }
    return HV__CELL_LINE;
}

int hv__cell_end(struct hv__cell *c)
{
    int status = 0;

    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    if (c->pid > 0) {
        (void)kill(c->pid, SIGKILL);
        while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {
            continue;
        }
    }
    if (c->stop != NULL) {
        (void)munmap((void *)(uintptr_t)c->stop, sizeof *c->stop);
    }
    hv_str_free(&c->text);
    *c = (struct hv__cell){.fd = -1};
    return status;
}

void hv__cell_describe(int status, struct hv_str *out)
{
    if (WIFSIGNALED(status)) {
        hv_str_addf(out, "it ended by signal %d (%s)", WTERMSIG(status),
                    strsignal(WTERMSIG(status)));
    } else {
        hv_str_addf(out, "it ended with status %d", WEXITSTATUS(status));
    }
}
