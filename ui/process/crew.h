/**
 * Many small tasks dealt out to a few child processes, which live on from task to task: a process
 * and what it has read cost less than a task. A child that crashes or hangs loses only its present
 * task; another child takes its place. Not for programs with several threads (fork).
 */
#ifndef HV_UI_PROCESS_CREW_H
#define HV_UI_PROCESS_CREW_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** How a task ended. */
enum hv_crew_end {
    HV_CREW_DONE, /**< its answer is there */
    HV_CREW_LATE, /**< its child was killed at the limit */
    HV_CREW_DIED  /**< its child crashed */
};

/** Tasks and what is done for them. Everything is borrowed. */
struct hv_crew {
    size_t n_workers; /**< 0: one per core */
    double limit_s;   /**< wall seconds of a task until its child is killed; 0: none */
    /** In the parent: the next task. False: there is none left. */
    bool (*next)(void *ctx, size_t *task);
    /** In the child, once before its first task. May be NULL. */
    void (*begin)(void *ctx);
    /** In the child: appends the answer. Standard output is discarded. */
    void (*work)(void *ctx, size_t task, struct hv_str *answer);
    /** In the parent: takes the answer (empty where the task is not DONE). An error ends the crew.
     */
    enum hv_status (*done)(void *ctx, size_t task, enum hv_crew_end end,
                           const struct hv_str *answer, struct hv_err *err);
    /** In the parent, at least every 100 ms. True: no more tasks are dealt, and those in work are
     * given up (`done` is not called for them). May be NULL. */
    bool (*stop)(void *ctx);
    void *ctx;
};

/**
 * Runs until all tasks are done. All children have ended on return. Errors: HV_ESTOPPED where
 * `stop` said so; HV_EIO where no child can be started; what `done` returns.
 */
enum hv_status hv_crew_run(const struct hv_crew *c, struct hv_err *err) HV_NODISCARD;

#endif
