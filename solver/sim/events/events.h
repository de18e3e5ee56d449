/**
 * Event-driven simulation of task graphs, for everything that a fixed order cannot express:
 * priorities, credits, work that may be interrupted between pieces, tasks that hold several
 * resources at once, memory that is limited, durations that jitter, and ranks that take the next
 * thing that is ready.
 *
 * For a fixed order with given durations, hv_tasks_run and hv_pipe_time give the same answer in one
 * pass.
 */
#ifndef HV_SOLVER_SIM_EVENTS_EVENTS_H
#define HV_SOLVER_SIM_EVENTS_EVENTS_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Rule by which a free resource chooses its next task. */
enum hv_queue_rule {
    HV_QUEUE_PRIORITY, /**< the ready task of highest priority; ties, also between tasks that keep
                          each other from several resources: one already begun, then the lowest
                          index */
    HV_QUEUE_ORDER     /**< its tasks by index; with `look_ahead` it takes, while the first is not
                          ready, the first ready one that may jump among as many behind it */
};

/** One task. */
struct hv_event_task {
    double duration_s;
    double piece_s;   /**< may be interrupted by a task of higher priority each time so much is
                         done; 0 = never, and never on resources with an order */
    int32_t priority; /**< larger goes first */
    int32_t pool;     /**< pool of credits that it takes `credits` from while it runs, -1 = none */
    int32_t credits;
    int32_t memory;                /**< memory that its bytes belong to, -1 = none */
    double start_bytes, end_bytes; /**< added at its start and at its end (negative = given back) */
    bool may_jump;                 /**< HV_QUEUE_ORDER with look_ahead: may go before its turn */
};

/** Tasks with their resources and dependencies. Borrowed. */
struct hv_event_graph {
    size_t n_tasks, n_resources, n_memories, n_pools;
    const struct hv_event_task *tasks;
    const int32_t *res_at, *res;     /**< [n_tasks + 1], resources that a task holds all at once */
    const int32_t *dep_at, *dep;     /**< [n_tasks + 1], tasks that must have ended */
    const double *lag_s;             /**< per dep: how long after that end, or NULL */
    const enum hv_queue_rule *rules; /**< [n_resources], NULL = all by priority */
    const double *capacity_bytes;    /**< [n_memories], infinite = no limit */
    const int32_t *pool_credits;     /**< [n_pools] */
};

/** Settings of a simulation. `{0}` = durations as given, strict orders. */
struct hv_event_rules {
    double jitter;      /**< standard deviation of the logarithm of a factor of mean 1 on every
                           duration */
    uint64_t seed;      /**< the factor of a task depends on this and its index alone */
    int32_t look_ahead; /**< see HV_QUEUE_ORDER */
    /** Writes the name of a task for messages into buf; NULL = "task 7". */
    const char *(*name)(const void *ctx, int32_t task, char *buf, size_t cap);
    const void *ctx;
};

/** Result of a simulation. Allocate with hv_events_run_new. */
struct hv_event_run {
    double *start_s, *end_s; /**< [n_tasks]; of an interrupted task its first start and last end */
    double *busy_s;          /**< [n_resources] */
    double *peak_bytes;      /**< [n_memories] */
    double makespan_s;
    size_t n_interrupted; /**< how often a task was set aside between pieces */
};

/** Arrays for a run of g. */
void hv_events_run_new(struct hv_arena *a, const struct hv_event_graph *g,
                       struct hv_event_run *out);
/**
 * Simulates the graph. Deterministic. A task starts when its dependencies have ended (and its lags
 * have passed), all its resources are free and offer it, its credits are available and its bytes
 * fit. Errors: HV_EUSAGE for indexes or numbers out of range; HV_ENO when nothing runs and tasks
 * are left: the message names up to eight blocked heads and what each waits for. O((tasks + deps)
 * log tasks); where tasks hold several resources, O(resources) more per start.
 */
enum hv_status hv_events_run(const struct hv_event_graph *g, const struct hv_event_rules *rules,
                             struct hv_event_run *run, struct hv_err *err) HV_NODISCARD;

#endif
