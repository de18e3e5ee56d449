/**
 * Small task graphs on resources: the inside of a pass (operators, collectives, prefetches), the
 * tail of an iteration, placed operators.
 */
#ifndef HV_SOLVER_SIM_EVENTS_TASKS_H
#define HV_SOLVER_SIM_EVENTS_TASKS_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stddef.h>
#include <stdint.h>

/** Kind of a resource. */
enum hv_resource_kind {
    HV_RESOURCE_COMPUTE,
    HV_RESOURCE_LINK,
    HV_RESOURCE_COPY,
    HV_RESOURCE_KIND_N
};

/** Largest number of different causes. */
#define HV_TASK_CAUSES 16

/** One task. */
struct hv_task {
    double duration_s;
    double start_bytes, end_bytes; /**< added at its start and at its end (negative = given back) */
    int32_t resource;
    uint8_t cause; /**< the caller's own mark, < HV_TASK_CAUSES; exposed time is summed by it */
};

/** Tasks and their dependencies. Borrowed by every call. */
struct hv_task_graph {
    size_t n_tasks, n_resources;
    const struct hv_task *tasks;
    const enum hv_resource_kind *resources; /**< [n_resources] */
    const int32_t *dep_at;                  /**< [n_tasks + 1] */
    const int32_t *dep;                     /**< tasks that must have ended */
};

/** Result of a run. Allocate with hv_tasks_run_new. */
struct hv_task_run {
    double *start_s, *end_s; /**< [n_tasks] */
    double *busy_s;          /**< [n_resources] */
    double makespan_s;
    double compute_s; /**< time during which some compute resource is busy */
    double exposed_s; /**< makespan − compute_s */
    double exposed_by_cause_s[HV_TASK_CAUSES]; /**< exposed time shared out, per moment, to the
                                                  running task of lowest index; its sum may miss
                                                  pure waiting */
    double peak_bytes, peak_at_s;
};

/** Arrays for a run of g. */
void hv_tasks_run_new(struct hv_arena *a, const struct hv_task_graph *g, struct hv_task_run *out);
/**
 * Streams: every resource runs its tasks in index order; a task starts when the one before it on
 * the resource and all it waits for have ended. Tasks may wait only for tasks of lower index
 * (HV_EUSAGE). O(tasks + deps) and a sort of the spans for exposed time and memory.
 */
enum hv_status hv_tasks_run(struct hv_arena *scratch, const struct hv_task_graph *g,
                            struct hv_task_run *run, struct hv_err *err) HV_NODISCARD;
/** As hv_tasks_run, for starts, ends, busy_s and makespan_s alone; the rest is 0. O(tasks + deps).
 */
enum hv_status hv_tasks_place(struct hv_arena *scratch, const struct hv_task_graph *g,
                              struct hv_task_run *run, struct hv_err *err) HV_NODISCARD;

#endif
