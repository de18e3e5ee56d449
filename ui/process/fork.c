/*
 * Runs a calculation in a forked child, which returns text through a pipe. Not here: the
 * calculation, and workers that receive their job as text (pool.c).
 */
#include "ui/process/fork.h"

#include "solver/base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { POLL_MS = 20 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** The child: without standard output or core file, killed at the end of its parent (Linux). Never
 * returns. */
static void be_child(const struct hv_apart *a, int fd, pid_t parent)
{
    const struct rlimit none = {0, 0};
    struct hv_str text = {0};
    int null = open("/dev/null", O_WRONLY);

    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C goes to the whole group; the parent decides */
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &none);
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) {
        _exit(1);
    }
    if (null >= 0) {
        (void)dup2(null, STDOUT_FILENO);
        if (null > STDERR_FILENO) {
            (void)close(null);
        }
    }
    a->work(a->ctx, &text);
    for (size_t at = 0; at < text.n;) {
        ssize_t n = write(fd, text.p + at, text.n - at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            _exit(1);
        }
        at += (size_t)n;
    }
    _exit(0);
}

/** Reads until the child closes its end; DONE then. */
static enum hv_apart_end collect(const struct hv_apart *a, int fd, struct hv_str *text)
{
    double end_s = now_s() + a->limit_s;
    char buf[4096];

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, POLL_MS);
        if (ready < 0 && errno != EINTR) {
            return HV_APART_DIED;
        }
        if (ready > 0) {
            ssize_t n = read(fd, buf, sizeof buf);
            if (n == 0) {
                return HV_APART_DONE;
            }
            if (n > 0) {
                hv_str_add(text, buf, (size_t)n);
            } else if (errno != EINTR) {
                return HV_APART_DIED;
            }
        }
        if (a->cancel && a->cancel(a->cancel_ctx)) {
            return HV_APART_CANCELLED;
        }
        if (a->limit_s > 0 && now_s() > end_s) {
            return HV_APART_LATE;
        }
    }
}

enum hv_apart_end hv_apart_run(const struct hv_apart *a, struct hv_str *out)
{
    struct hv_str text = {0};
    int pipe_fd[2], state = 0;
    pid_t parent = getpid();

    if (pipe(pipe_fd) != 0 || !hv_descriptors_lift(pipe_fd)) {
        return HV_APART_DIED;
    }
    (void)fflush(NULL); /* nothing buffered may be written twice */
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pipe_fd[0]);
        be_child(a, pipe_fd[1], parent);
    }
    (void)close(pipe_fd[1]);
    enum hv_apart_end end = pid > 0 ? collect(a, pipe_fd[0], &text) : HV_APART_DIED;
    (void)close(pipe_fd[0]);
    if (pid > 0) {
        if (end != HV_APART_DONE) {
            (void)kill(pid, SIGKILL);
        }
        while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
            continue;
        }
        if (end == HV_APART_DONE && !(WIFEXITED(state) && WEXITSTATUS(state) == 0)) {
            end = HV_APART_DIED;
        }
    }
    if (end == HV_APART_DONE) {
        hv_str_add(out, hv_str_cstr(&text), text.n);
    }
    hv_str_free(&text);
    return end;
}
