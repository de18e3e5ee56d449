/**
 * A calculation in a child process: where it crashes or hangs only its answer is lost. For library
 * code that may crash or not terminate (lp_solve); strategies run in the pool.
 */
#ifndef HV_UI_PROCESS_FORK_H
#define HV_UI_PROCESS_FORK_H

#include "solver/base/str.h"
#include <stdbool.h>

/** How it ended. */
enum hv_apart_end {
    HV_APART_DONE,      /**< the work returned, its text is there */
    HV_APART_LATE,      /**< killed at the time limit */
    HV_APART_CANCELLED, /**< killed because `cancel` returned true */
    HV_APART_DIED       /**< it crashed, or no process could be started */
};

/** What to do. Everything is borrowed. */
struct hv_apart {
    /** Runs in the child on a copy of all memory; appends its answer. Its standard output is
     * discarded. */
    void (*work)(void *ctx, struct hv_str *out);
    void *ctx;
    double limit_s;                   /**< wall seconds until it is killed; 0 = none */
    bool (*cancel)(void *cancel_ctx); /**< called every 20 ms in the parent; may be NULL */
    void *cancel_ctx;
};

/**
 * Runs the work and waits; the child has been reaped on return. Text goes to *out only when DONE.
 * Not for programs with several threads (fork).
 */
enum hv_apart_end hv_apart_run(const struct hv_apart *a, struct hv_str *out);

#endif
