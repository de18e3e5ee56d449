/*
 * The pool: queue, reading and writing without blocking, limits and ends. Processes themselves are
 * in pool_process.c, the meaning of lines in pool_line.c.
 */
#include "ui/process/pool_int.h"

#include "solver/base/units.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Bytes taken from one worker per poll: a worker that writes without end must not block the
 * program. */
#define READ_PER_POLL ((size_t)1 << 20)
/* Interval of the check of a worker that closed its output but has not ended. */
#define END_CHECK_MS 5

static double system_now_s(void *ctx)
{
    (void)ctx;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* An event of a job that never had a process. */
static void tell_unstarted(struct hv_pool *p, uint32_t id, enum hv_pool_event_kind kind,
                           const char *text)
{
    struct hv_pool_event ev = {.id = id,
                               .kind = kind,
                               .frac = HV_UNKNOWN,
                               .seconds = HV_UNKNOWN,
                               .text = text,
                               .tail = "",
                               .unstarted = kind == HV_POOL_FAILED};
    if (p->on_event != NULL) {
        p->on_event(p->ctx, &ev);
    }
}

struct hv_pool *hv_pool_new(const struct hv_pool_config *config)
{
    struct hv_pool *p = hv_xcalloc(1, sizeof *p);
    size_t n_args = 0;
    while (config->argv != NULL && config->argv[n_args] != NULL) {
        n_args++;
    }
    if (n_args > 0) {
        p->argv = hv_xcalloc(n_args + 1, sizeof *p->argv);
        for (size_t i = 0; i < n_args; i++) {
            p->argv[i] = hv_xstrdup(config->argv[i]);
        }
    }
    p->n_max = config->n_workers;
    p->on_event = config->on_event;
    p->ctx = config->ctx;
    p->now_s = config->now_s != NULL ? config->now_s : system_now_s;
    return p;
}

void hv_pool_free(struct hv_pool *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->workers.n; i++) {
        hv__pool_worker_signal(p->workers.items[i], SIGKILL);
    }
    for (size_t i = 0; i < p->workers.n; i++) {
        hv__pool_worker_reap(p->workers.items[i]);
        hv__pool_worker_free(p->workers.items[i]);
    }
    for (size_t i = 0; i < p->queue.n; i++) {
        free(p->queue.items[i].text);
    }
    for (size_t i = 0; p->argv != NULL && p->argv[i] != NULL; i++) {
        free(p->argv[i]);
    }
    free(p->argv);
    hv_vec_free(&p->workers);
    hv_vec_free(&p->queue);
    free(p);
}

/* Counts the cores only when there is work, because the call is slow. */
static size_t most_workers(struct hv_pool *p)
{
    if (p->n_max == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        p->n_max = cores > 0 ? (size_t)cores : 1;
    }
    return p->n_max;
}

uint32_t hv_pool_submit(struct hv_pool *p, const json_t *job, double time_limit_s)
{
    return hv_pool_submit_behind(p, job, time_limit_s, 0);
}

uint32_t hv_pool_submit_behind(struct hv_pool *p, const json_t *job, double time_limit_s,
                               uint32_t first)
{
    struct hv_str text = {0};
    hv_json_write(&text, job, false);
    while (text.n > 0 && text.p[text.n - 1] == '\n') {
        text.n--;
    }
    hv_str_addc(&text, '\n');
    const char *kind = json_string_value(json_object_get(job, "kind"));
    struct hv__pending pending = {.id = ++p->last_id,
                                  .text = text.p,
                                  .n = text.n,
                                  .time_limit_s = time_limit_s,
                                  .talks = kind != NULL && strcmp(kind, "lua") == 0,
                                  .behind = first};
    hv_vec_push(&p->queue, pending);
    (void)most_workers(p);
    return pending.id;
}

/* Puts a line behind a text on the heap. */
static void append_line(char **text, size_t *n, const json_t *line)
{
    struct hv_str more = {0};
    hv_str_add(&more, *text, *n);
    hv_json_write(&more, line, false);
    hv_str_addc(&more, '\n');
    free(*text);
    *text = more.p;
    *n = more.n;
}

bool hv_pool_send(struct hv_pool *p, uint32_t id, const json_t *line)
{
    for (size_t i = 0; i < p->workers.n; i++) {
        struct hv__worker *w = p->workers.items[i];
        if (w->id != id || !w->talks || w->in_fd < 0) {
            continue;
        }
        memmove(w->job, w->job + w->job_at, w->job_n - w->job_at);
        w->job_n -= w->job_at;
        w->job_at = 0;
        append_line(&w->job, &w->job_n, line);
        return true;
    }
    for (size_t i = 0; i < p->queue.n; i++) {
        struct hv__pending *job = &p->queue.items[i];
        if (job->id != id || !job->talks) {
            continue;
        }
        append_line(&job->text, &job->n, line);
        return true;
    }
    return false;
}

/* Sends SIGTERM; SIGKILL follows where the worker does not end. */
static void ask_to_end(struct hv_pool *p, struct hv__worker *w)
{
    w->cancelled = true;
    if (hv_known(w->kill_s)) {
        return;
    }
    w->kill_s = hv__pool_now(p) + HV_POOL_KILL_AFTER_S;
    hv__pool_worker_signal(w, SIGTERM);
}

/* Number in the queue of the next job for this process; queue.n where none waits for it. */
static size_t next_of(const struct hv_pool *p, const struct hv__worker *w)
{
    size_t i = 0;
    while (i < p->queue.n && (w->first == 0 || p->queue.items[i].behind != w->first)) {
        i++;
    }
    return i;
}

/* Number of the first job that may start in a process of its own, which is one that waits for no
 * process that lives or is to come; queue.n where there is none. */
static size_t next_to_start(const struct hv_pool *p)
{
    for (size_t i = 0; i < p->queue.n; i++) {
        uint32_t behind = p->queue.items[i].behind;
        bool waits = false;
        for (size_t k = 0; k < p->workers.n && behind != 0 && !waits; k++) {
            waits = p->workers.items[k]->first == behind;
        }
        for (size_t k = 0; k < i && behind != 0 && !waits; k++) {
            waits = p->queue.items[k].id == behind;
        }
        if (!waits) {
            return i;
        }
    }
    return p->queue.n;
}

/* Takes a job out of the queue. */
static struct hv__pending take_pending(struct hv_pool *p, size_t i)
{
    struct hv__pending job = p->queue.items[i];
    memmove(&p->queue.items[i], &p->queue.items[i + 1],
            (p->queue.n - i - 1) * sizeof p->queue.items[0]);
    p->queue.n--;
    return job;
}

/* Puts a job before all others of the queue. */
static void put_first(struct hv_pool *p, struct hv__pending job)
{
    hv_vec_push(&p->queue, job);
    memmove(&p->queue.items[1], &p->queue.items[0], (p->queue.n - 1) * sizeof p->queue.items[0]);
    p->queue.items[0] = job;
}

bool hv_pool_cancel(struct hv_pool *p, uint32_t id)
{
    for (size_t i = 0; i < p->workers.n; i++) {
        if (p->workers.items[i]->id == id) {
            ask_to_end(p, p->workers.items[i]);
            return true;
        }
    }
    for (size_t i = 0; i < p->queue.n; i++) {
        if (p->queue.items[i].id == id) {
            free(p->queue.items[i].text);
            (void)take_pending(p, i);
            tell_unstarted(p, id, HV_POOL_CANCELLED, "cancelled before the start");
            return true;
        }
    }
    return false;
}

size_t hv_pool_fds(const struct hv_pool *p, struct pollfd *out, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < p->workers.n; i++) {
        const struct hv__worker *w = p->workers.items[i];
        const struct pollfd rows[] = {{.fd = w->in_fd, .events = POLLOUT},
                                      {.fd = w->out_fd, .events = POLLIN},
                                      {.fd = w->err_fd, .events = POLLIN}};
        for (size_t j = 0; j < HV_COUNT(rows); j++) {
            bool nothing = j == 0 && w->job_at == w->job_n; /* no line to write */
            if (rows[j].fd < 0 || nothing) {
                continue;
            }
            if (n < cap) {
                out[n] = rows[j];
            }
            n++;
        }
    }
    return n;
}

/* Milliseconds from now to a clock time, rounded up; −1 when there is none. */
static int until_ms(double now_s, double at_s)
{
    if (!hv_known(at_s)) {
        return -1;
    }
    double ms = ceil((at_s - now_s) * 1e3);
    return ms < 0 ? 0 : (ms > (double)INT_MAX ? INT_MAX : (int)ms);
}

static int sooner(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

int hv_pool_timeout_ms(const struct hv_pool *p)
{
    if (p->workers.n < p->n_max && next_to_start(p) < p->queue.n) {
        return 0;
    }
    int ms = -1;
    double now = hv__pool_now(p);
    for (size_t i = 0; i < p->workers.n; i++) {
        const struct hv__worker *w = p->workers.items[i];
        if (!w->killed) {
            ms = sooner(ms, until_ms(now, hv_known(w->kill_s) ? w->kill_s : w->limit_s));
        }
        if (w->out_fd < 0 || w->killed || hv_known(w->kill_s)) {
            ms = sooner(ms, END_CHECK_MS);
        }
    }
    return ms;
}

static void write_job(const struct hv_pool *p, struct hv__worker *w)
{
    while (w->in_fd >= 0 && w->job_at < w->job_n) {
        ssize_t n = send(w->in_fd, w->job + w->job_at, w->job_n - w->job_at, MSG_NOSIGNAL);
        if (n > 0) {
            w->job_at += (size_t)n;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            w->talks = false; /* it reads no more: its output will contain the reason */
            hv__pool_close(&w->in_fd);
            return;
        }
    }
    if (!w->talks && next_of(p, w) == p->queue.n) {
        hv__pool_close(&w->in_fd);
    }
}

/* Ends the job of a process that goes on with the next one of its chain, once it has a result. */
static void go_on(struct hv_pool *p, struct hv__worker *w)
{
    size_t next = next_of(p, w);
    bool done = w->result != NULL || w->error != NULL;
    if (!done || next == p->queue.n || w->in_fd < 0 || w->out_fd < 0 || w->killed ||
        hv_known(w->kill_s)) {
        return;
    }
    struct hv__pending job = take_pending(p, next);
    hv__pool_worker_conclude(p, w, 0);
    hv__pool_worker_next(p, w, &job);
    hv__pool_tell(
        p, w,
        (struct hv_pool_event){.kind = HV_POOL_STARTED, .frac = HV_UNKNOWN, .seconds = HV_UNKNOWN});
    write_job(p, w);
}

/* Gives the job of a process that ended without a result of it back to the queue, where it was not
 * the first one there: it may be that process that failed. */
static bool runs_again(struct hv_pool *p, struct hv__worker *w)
{
    bool done = w->broken.n == 0 && (w->result != NULL || w->error != NULL);
    if (w->n_done == 0 || w->cancelled || done) {
        return false;
    }
    put_first(p, (struct hv__pending){
                     .id = w->id, .text = w->job, .n = w->job_n, .time_limit_s = w->job_limit_s});
    w->job = NULL;
    return true;
}

/* Reads until there is nothing now, at most `limit` bytes; closes the descriptor at its end. */
static void read_from(struct hv_pool *p, struct hv__worker *w, int *fd, size_t limit)
{
    char buf[1 << 16];
    size_t total = 0;
    while (*fd >= 0 && total < limit) {
        ssize_t n = read(*fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n <= 0) {
            hv__pool_close(fd);
            return;
        }
        total += (size_t)n;
        if (fd == &w->err_fd) {
            hv__pool_worker_take_stderr(w, buf, (size_t)n);
        } else {
            hv__pool_worker_take(p, w, buf, (size_t)n);
        }
    }
}

static void enforce_limits(struct hv_pool *p, struct hv__worker *w)
{
    double now = hv__pool_now(p);
    if (!hv_known(w->kill_s) && hv_known(w->limit_s) && now >= w->limit_s) {
        w->timed_out = true;
        ask_to_end(p, w);
    } else if (!hv_known(w->kill_s) && w->out_fd < 0) {
        w->kill_s = now + HV_POOL_KILL_AFTER_S; /* its output has ended: it should exit by itself */
    } else if (!w->killed && hv_known(w->kill_s) && now >= w->kill_s) {
        w->killed = true;
        hv__pool_worker_signal(w, SIGKILL);
    }
}

/* True when the worker is gone; its last event has been reported then. */
static bool finish(struct hv_pool *p, struct hv__worker *w)
{
    if (!hv__pool_worker_has_ended(w)) {
        return false;
    }
    hv__pool_worker_signal(w, SIGKILL); /* what it left behind in its group */
    read_from(p, w, &w->out_fd, SIZE_MAX);
    read_from(p, w, &w->err_fd, SIZE_MAX);
    int status = hv__pool_worker_reap(w);
    if (w->result == NULL && !w->cancelled && status == 0) {
        hv__pool_worker_take_rest(p, w);
    }
    if (!runs_again(p, w)) {
        hv__pool_worker_conclude(p, w, status);
    }
    return true;
}

static void serve_workers(struct hv_pool *p)
{
    for (size_t i = 0; i < p->workers.n;) {
        struct hv__worker *w = p->workers.items[i];
        write_job(p, w);
        read_from(p, w, &w->out_fd, READ_PER_POLL);
        read_from(p, w, &w->err_fd, READ_PER_POLL);
        go_on(p, w);
        enforce_limits(p, w);
        if (!finish(p, w)) {
            i++;
            continue;
        }
        hv__pool_worker_free(w);
        memmove(&p->workers.items[i], &p->workers.items[i + 1],
                (p->workers.n - i - 1) * sizeof(struct hv__worker *));
        p->workers.n--;
    }
}

static void start_queued(struct hv_pool *p)
{
    size_t next;
    while (p->workers.n < p->n_max && (next = next_to_start(p)) < p->queue.n) {
        struct hv__pending job = take_pending(p, next);
        struct hv__worker *w = NULL;
        struct hv_err err;
        enum hv_status st = hv__pool_worker_start(p, &job, &w, &err);
        if (st == HV_ELIMIT && p->workers.n > 0) { /* again when one has ended */
            put_first(p, job);
            return;
        }
        if (st != HV_OK) {
            free(job.text);
            tell_unstarted(p, job.id, HV_POOL_FAILED, err.text);
            continue;
        }
        hv_vec_push(&p->workers, w);
        hv__pool_tell(p, w,
                      (struct hv_pool_event){
                          .kind = HV_POOL_STARTED, .frac = HV_UNKNOWN, .seconds = HV_UNKNOWN});
        write_job(p, w);
    }
}

void hv_pool_poll(struct hv_pool *p)
{
    serve_workers(p);
    start_queued(p);
}

void hv_pool_wait(struct hv_pool *p, int timeout_ms)
{
    size_t n = hv_pool_fds(p, NULL, 0);
    struct pollfd *fds = hv_xcalloc(n + 1, sizeof *fds);
    n = hv_pool_fds(p, fds, n);
    int own = hv_pool_timeout_ms(p);
    poll(fds, (nfds_t)n, timeout_ms < 0 ? own : sooner(own, timeout_ms));
    free(fds);
    hv_pool_poll(p);
}

size_t hv_pool_n_running(const struct hv_pool *p)
{
    return p->workers.n;
}

size_t hv_pool_n_queued(const struct hv_pool *p)
{
    return p->queue.n;
}
