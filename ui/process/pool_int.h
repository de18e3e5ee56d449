/** Private to the files of the pool. */
#ifndef HV_UI_PROCESS_POOL_INT_H
#define HV_UI_PROCESS_POOL_INT_H

#include "solver/base/json/json.h"
#include "solver/base/vec.h"
#include "ui/process/pool.h"
#include <sys/types.h>

/** A worker process and its output so far. */
struct hv__worker {
    uint32_t id;
    pid_t pid;
    int in_fd, out_fd, err_fd; /**< −1 when closed */
    char *job;                 /**< the line to write */
    size_t job_n, job_at;
    bool talks;         /**< its input stays open for more lines */
    uint32_t first;     /**< its first job, behind which others may wait; 0: it takes no others */
    size_t n_done;      /**< jobs that ended before this one */
    double job_limit_s; /**< of this job; ≤ 0 or unknown: none */
    struct hv_str line; /**< bytes of an incomplete line */
    char tail[HV_POOL_STDERR_KEPT + 1];
    size_t tail_n;
    double started_s, limit_s; /**< limit_s: clock time of the end; HV_UNKNOWN = none */
    double kill_s; /**< clock time of SIGKILL, once SIGTERM was sent or its output ended; else
                      HV_UNKNOWN */
    bool cancelled, timed_out;
    bool killed;          /**< by SIGKILL from the pool */
    struct hv_str broken; /**< why its output is invalid; empty while it is valid */
    json_t *result;       /**< last result event, or NULL */
    json_t *error;        /**< last error event, or NULL */
};

/** A job that waits. */
struct hv__pending {
    uint32_t id;
    char *text;
    size_t n;
    double time_limit_s;
    bool talks;
    uint32_t behind; /**< the first job of the process that is to run it; 0: one of its own */
};

/** A pool. */
struct hv_pool {
    char **argv;
    size_t n_max; /**< workers at a time; 0: not known before the first job */
    hv_pool_fn *on_event;
    void *ctx;
    double (*now_s)(void *ctx);
    HV_VEC(struct hv__worker *) workers;
    HV_VEC(struct hv__pending) queue;
    uint32_t last_id;
};

/** Clock of the pool. */
static inline double hv__pool_now(const struct hv_pool *p)
{
    return p->now_s(p->ctx);
}

/* ---- processes (pool_process.c) -------------------------------------------------------------- */

/** Starts a process for the job with three pipes; the job's text is taken over on success. Errors:
 * HV_ELIMIT where the system has no descriptor or process left just now, HV_EIO. */
enum hv_status hv__pool_worker_start(struct hv_pool *p, struct hv__pending *job,
                                     struct hv__worker **out, struct hv_err *err) HV_NODISCARD;
/** Lets a process whose job has ended begin with another one, whose text is taken over. */
void hv__pool_worker_next(const struct hv_pool *p, struct hv__worker *w, struct hv__pending *job);
/** Sends a signal to the process group of the worker. */
void hv__pool_worker_signal(const struct hv__worker *w, int signal);
/** True where it has ended. The process stays a zombie, so its id is not reused. */
bool hv__pool_worker_has_ended(const struct hv__worker *w);
/** Waits for it and returns the status of waitpid(2). */
int hv__pool_worker_reap(const struct hv__worker *w);
/** Closes everything and frees; the process must have been reaped. */
void hv__pool_worker_free(struct hv__worker *w);
/** Closes a descriptor and sets it to −1. */
void hv__pool_close(int *fd);

/* ---- output of a worker (pool_line.c) -------------------------------------------------------- */

/** Calls the callback; fills id and elapsed time. */
void hv__pool_tell(struct hv_pool *p, const struct hv__worker *w, struct hv_pool_event ev);
/** Processes bytes of its standard output; reports each complete line. */
void hv__pool_worker_take(struct hv_pool *p, struct hv__worker *w, const char *bytes, size_t n);
/** Processes the last line where it lacks a line feed. */
void hv__pool_worker_take_rest(struct hv_pool *p, struct hv__worker *w);
/** Stores bytes of its standard error; keeps the last HV_POOL_STDERR_KEPT. */
void hv__pool_worker_take_stderr(struct hv__worker *w, const char *bytes, size_t n);
/** Reports its end: result, failed or cancelled. `status` is that of waitpid(2). */
void hv__pool_worker_conclude(struct hv_pool *p, struct hv__worker *w, int status);

#endif
