/* Children that take one task after another. A task is a number, an answer its length and bytes. */
#include "ui/process/crew.h"

#include "solver/base/arena.h"
#include "solver/base/file.h"
#include "solver/base/units.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { POLL_MS = 50, WORKERS_MAX = 1024, BLOCK = 65536 };

/** Longest answer (bytes); a child that writes more is ended. */
static const uint64_t answer_max = (uint64_t)64 << 20;

/** A child. pid 0: none. */
struct worker {
    pid_t pid;
    int to, from; /**< our ends of its pipes */
    bool busy;
    size_t task;
    double since_s;
    struct hv_str read; /**< length and bytes so far */
};

struct crew {
    const struct hv_crew *c;
    struct worker *workers;
    size_t n;
    bool dry; /**< there are no more tasks */
};

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the child ------------------------------------------------------------------------------- */

static bool read_whole(int fd, void *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, (char *)to + at, n - at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += (size_t)got;
    }
    return true;
}

static bool write_whole(int fd, const void *from, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t put = write(fd, (const char *)from + at, n - at);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        at += (size_t)put;
    }
    return true;
}

/** Takes tasks until its pipe ends. Never returns. */
static void be_child(const struct hv_crew *c, int in, int out, pid_t parent)
{
    const struct rlimit none = {0, 0};
    int null = open("/dev/null", O_WRONLY);
    uint64_t task = 0;

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
    }
    if (c->begin != NULL) {
        c->begin(c->ctx);
    }
    struct hv_str answer = {0};
    while (read_whole(in, &task, sizeof task)) {
        hv_str_clear(&answer);
        c->work(c->ctx, (size_t)task, &answer);
        uint64_t n = answer.n;
        if (!write_whole(out, &n, sizeof n) || !write_whole(out, answer.p, answer.n)) {
            break;
        }
    }
    _exit(0);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static void shut(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}

/** Ends a child and waits for it. */
static void end_worker(struct worker *w)
{
    if (w->pid <= 0) {
        return;
    }
    (void)kill(w->pid, SIGKILL);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) {
        continue;
    }
    shut(&w->to);
    shut(&w->from);
    hv_str_free(&w->read);
    *w = (struct worker){.to = -1, .from = -1};
}

static enum hv_status start_worker(struct crew *crew, struct worker *w, struct hv_err *err)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    pid_t parent = getpid(), pid = -1;
    int why = 0;

    if (pipe(to) == 0 && hv_descriptors_lift(to) && pipe(from) == 0 && hv_descriptors_lift(from)) {
        (void)fflush(NULL); /* nothing buffered may be written twice */
        pid = fork();
    }
    why = errno;
    if (pid == 0) {
        (void)close(to[1]);
        (void)close(from[0]);
        for (size_t i = 0; i < crew->n; i++) {
            shut(&crew->workers[i].to);
            shut(&crew->workers[i].from);
        }
        be_child(crew->c, to[0], from[1], parent);
    }
    shut(&to[0]);
    shut(&from[1]);
    if (pid < 0) {
        shut(&to[1]);
        shut(&from[0]);
        return hv_descriptors_error(err, "cannot start a process", why);
    }
    (void)fcntl(from[0], F_SETFL, O_NONBLOCK);
    *w = (struct worker){.pid = pid, .to = to[1], .from = from[0]};
    return HV_OK;
}

/** Gives every idle worker a task while there are any. */
static enum hv_status deal(struct crew *crew, struct hv_err *err)
{
    for (size_t i = 0; i < crew->n; i++) {
        struct worker *w = &crew->workers[i];
        size_t task = 0;
        if (w->busy || crew->dry) {
            continue;
        }
        if (!crew->c->next(crew->c->ctx, &task)) {
            crew->dry = true;
            continue;
        }
        enum hv_status st = w->pid > 0 ? HV_OK : start_worker(crew, w, err);
        if (st != HV_OK) {
            return st;
        }
        uint64_t number = task;
        w->busy = true;
        w->task = task;
        w->since_s = now_s();
        /* a child that has died is found when its answers are read */
        (void)write_whole(w->to, &number, sizeof number);
    }
    return HV_OK;
}

static enum hv_status finish(struct crew *crew, struct worker *w, enum hv_crew_end end,
                             const struct hv_str *answer, struct hv_err *err)
{
    static const struct hv_str nothing = {0};
    w->busy = false;
    return crew->c->done(crew->c->ctx, w->task, end, answer != NULL ? answer : &nothing, err);
}

/** Reads what a child has written. */
static enum hv_status take(struct crew *crew, struct worker *w, struct hv_err *err)
{
    char block[BLOCK];
    ssize_t n = read(w->from, block, sizeof block);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return HV_OK;
    }
    if (n > 0) {
        hv_str_add(&w->read, block, (size_t)n);
    }
    uint64_t want = 0;
    if (w->read.n >= sizeof want) {
        memcpy(&want, w->read.p, sizeof want);
    }
    if (n <= 0 || want > answer_max) {
        bool was_busy = w->busy;
        enum hv_status st = was_busy ? finish(crew, w, HV_CREW_DIED, NULL, err) : HV_OK;
        end_worker(w);
        return st;
    }
    if (w->read.n < sizeof want || w->read.n - sizeof want < want) {
        return HV_OK;
    }
    struct hv_str answer = {0};
    hv_str_add(&answer, w->read.p + sizeof want, (size_t)want);
    hv_str_clear(&w->read);
    enum hv_status st = finish(crew, w, HV_CREW_DONE, &answer, err);
    hv_str_free(&answer);
    return st;
}

static enum hv_status end_late(struct crew *crew, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < crew->n && st == HV_OK; i++) {
        struct worker *w = &crew->workers[i];
        if (w->busy && crew->c->limit_s > 0 && now_s() - w->since_s > crew->c->limit_s) {
            st = finish(crew, w, HV_CREW_LATE, NULL, err);
            end_worker(w);
        }
    }
    return st;
}

static bool any_busy(const struct crew *crew)
{
    for (size_t i = 0; i < crew->n; i++) {
        if (crew->workers[i].busy) {
            return true;
        }
    }
    return false;
}

static enum hv_status wait_for_answers(struct crew *crew, struct hv_err *err)
{
    struct pollfd *fds = hv_xcalloc(crew->n, sizeof *fds);
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < crew->n; i++) {
        fds[i] = (struct pollfd){.fd = crew->workers[i].busy ? crew->workers[i].from : -1,
                                 .events = POLLIN};
    }
    int ready = poll(fds, (nfds_t)crew->n, POLL_MS);
    for (size_t i = 0; i < crew->n && ready > 0 && st == HV_OK; i++) {
        if (fds[i].revents != 0) {
            st = take(crew, &crew->workers[i], err);
        }
    }
    free(fds);
    return st;
}

static size_t n_of(const struct hv_crew *c)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = c->n_workers > 0 ? c->n_workers : cores > 0 ? (size_t)cores : 1;
    return n < WORKERS_MAX ? n : WORKERS_MAX;
}

enum hv_status hv_crew_run(const struct hv_crew *c, struct hv_err *err)
{
    struct crew crew = {.c = c, .n = n_of(c)};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    enum hv_status st = HV_OK;

    crew.workers = hv_xcalloc(crew.n, sizeof *crew.workers);
    for (size_t i = 0; i < crew.n; i++) {
        crew.workers[i] = (struct worker){.to = -1, .from = -1};
    }
    /* a task written to a child that has just died must not end this program */
    (void)sigaction(SIGPIPE, &ignore, &before);
    do {
        if (c->stop != NULL && c->stop(c->ctx)) {
            st = hv_err_set(err, HV_ESTOPPED, "stopped");
            break;
        }
        st = deal(&crew, err);
        st = st == HV_OK ? wait_for_answers(&crew, err) : st;
        st = st == HV_OK ? end_late(&crew, err) : st;
    } while (st == HV_OK && (any_busy(&crew) || !crew.dry));
    for (size_t i = 0; i < crew.n; i++) {
        end_worker(&crew.workers[i]);
    }
    (void)sigaction(SIGPIPE, &before, NULL);
    free(crew.workers);
    return st;
}
