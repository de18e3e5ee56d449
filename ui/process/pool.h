/**
 * Worker processes: jobs in, events out.
 *
 * A job is one JSON value, written to the standard input of a fresh `hetviz worker`; the worker
 * answers with one JSON value per line on its standard output. A crash of a plugin or a solver
 * therefore only fails one job. Nothing blocks: the caller puts the pool's file descriptors into
 * its own poll set and calls hv_pool_poll when one of them, or the time-out, is due. There is no
 * signal handler: the end of a worker is detected by the end of its pipe.
 *
 * A job of a run:
 *     {"cluster": document, "model": document, "job": document, "strategy": "a+b", "options": {…},
 *      "seed": N, "budget": N?, "time_limit_s": S?, "replan": plan?, "lost": […]?,
 *      "jobs_in_process": N?}
 * Its events:
 *     {"event": "start"}
 *     {"event": "progress", "frac": 0…1 or null, "text": "…"?}
 *     {"event": "incumbent", "plan": plan, "iteration_s": S?}
 *     {"event": "bound", "iteration_s": S}
 *     {"event": "log", "text": "…"}
 *     {"event": "result", "applies": bool?, "plan": plan or null, "reason": "…"?, …}
 *     {"event": "error", "text": "…", "status": "HV_…"?, "traceback": "…"?}
 * A job of a console:
 *     {"kind": "lua", "cluster", "model", "job", "seed"?}, then a line {"eval": text} per chunk
 *     (hv_pool_send), each answered by
 *     {"event": "answer", "state": "done|more|error", "text": "…",
 *      "error": {"text", "file"?, "line"?}?, "commands": as hv_console_commands?}
 * Unknown events and members are ignored. A job ends with the worker's end; its last `result` or
 * `error` counts, and an end without either is a failure. Only a job behind which others wait for
 * the same process (hv_pool_submit_behind) ends with its first `result` or `error`.
 */
#ifndef HV_UI_PROCESS_POOL_H
#define HV_UI_PROCESS_POOL_H

#include "solver/base/status.h"
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Longest line a worker may write (bytes); a longer one fails the job. */
#define HV_POOL_LINE_LIMIT ((size_t)16 << 20)
/** How much of a worker's standard error is kept (bytes, the end of it). */
#define HV_POOL_STDERR_KEPT 8192
/** Seconds between SIGTERM and SIGKILL. */
#define HV_POOL_KILL_AFTER_S 0.1

/** A pool. Owner: hv_pool_free. Not shared between threads. */
struct hv_pool;

/** Types of events. */
enum hv_pool_event_kind {
    HV_POOL_STARTED,
    HV_POOL_PROGRESS,
    HV_POOL_INCUMBENT,
    HV_POOL_BOUND,
    HV_POOL_LOG,
    HV_POOL_ANSWER, /**< of a console */
    HV_POOL_RESULT,
    HV_POOL_FAILED,
    HV_POOL_CANCELLED
};

/**
 * One event. RESULT, FAILED and CANCELLED come once per job, last, and after the process is gone or
 * has gone on to the next job.
 * Everything in it is borrowed until the callback returns.
 */
struct hv_pool_event {
    uint32_t id; /**< of the job */
    enum hv_pool_event_kind kind;
    double frac;    /**< progress; HV_UNKNOWN when not reported */
    double seconds; /**< bound, incumbent: iteration time; HV_UNKNOWN when not reported */
    const char
        *text; /**< progress, log, answer, failed (the reason in words), cancelled; never NULL */
    const char *tail; /**< failed: end of the standard error; never NULL */
    const json_t
        *line; /**< the whole line of progress, incumbent, bound, log, answer, result; else NULL */
    double elapsed_s; /**< since the worker was started; 0 when it never was */
    bool timed_out;   /**< cancelled: by the job's time limit */
    bool unstarted;   /**< failed: no process could be started for it */
};
typedef void hv_pool_fn(void *ctx, const struct hv_pool_event *ev);

/** How a pool works. */
struct hv_pool_config {
    const char *const
        *argv; /**< worker's command line, NULL-terminated; NULL: this program with `worker` */
    size_t n_workers;           /**< at the same time; 0: one per core */
    hv_pool_fn *on_event;       /**< called from hv_pool_poll and hv_pool_cancel */
    void *ctx;                  /**< for on_event and now_s */
    double (*now_s)(void *ctx); /**< monotonic clock; NULL: the system's */
};

/** A new pool without workers. argv is copied. */
struct hv_pool *hv_pool_new(const struct hv_pool_config *config);
/** Kills running workers, waits for them and frees the pool; reports no events. NULL is fine. */
void hv_pool_free(struct hv_pool *p);

/**
 * Puts a job at the end of the queue (it starts at the next hv_pool_poll with a free worker).
 * @param job           written as one line; not kept
 * @param time_limit_s  wall-clock limit after which the worker is cancelled; ≤ 0 or unknown: none
 * Returns its number (from 1, never used twice).
 */
uint32_t hv_pool_submit(struct hv_pool *p, const json_t *job, double time_limit_s);
/**
 * The same for a job that runs in the process of the earlier job `first`, after it and those that
 * were submitted behind it before: they share what the process keeps, such as prices. Its time
 * limit counts from its own start. Where that process is gone, or ends without a result of this
 * job, the job starts (again) in a process of its own.
 */
uint32_t hv_pool_submit_behind(struct hv_pool *p, const json_t *job, double time_limit_s,
                               uint32_t first);
/**
 * Sends one more line to a job of kind "lua", which reads until it is cancelled. False when there
 * is no such job. O(length of what is not written yet).
 */
bool hv_pool_send(struct hv_pool *p, uint32_t id, const json_t *line);
/**
 * Cancels a job: a queued one is reported CANCELLED at once, a running one gets SIGTERM and after
 * HV_POOL_KILL_AFTER_S SIGKILL; events that arrive meanwhile are still reported. False when there
 * is no such job.
 */
bool hv_pool_cancel(struct hv_pool *p, uint32_t id);

/** Fills at most `cap` entries for poll(2); returns the number of entries (≤ 3 per worker). */
size_t hv_pool_fds(const struct hv_pool *p, struct pollfd *out, size_t cap);
/** Milliseconds until hv_pool_poll must be called without input; −1 = never. */
int hv_pool_timeout_ms(const struct hv_pool *p);
/**
 * Starts queued jobs, reads available output, enforces limits, reaps ended workers; never blocks.
 * O(bytes read).
 */
void hv_pool_poll(struct hv_pool *p);
/** Waits at most `timeout_ms` for something to happen (for tests and the command line), then polls.
 */
void hv_pool_wait(struct hv_pool *p, int timeout_ms);

size_t hv_pool_n_running(const struct hv_pool *p); /**< worker processes */
size_t hv_pool_n_queued(const struct hv_pool *p);  /**< jobs without a process */

#endif
