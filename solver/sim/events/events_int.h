/**
 * Internals of the event-driven engine, shared by events.c and setup.c.
 */
#ifndef HV_SOLVER_SIM_EVENTS_EVENTS_INT_H
#define HV_SOLVER_SIM_EVENTS_EVENTS_INT_H

#include "solver/sim/events/events.h"
#include "solver/sim/events/heap.h"

/** Kinds of events; an event's id is task · EVENTS + kind */
enum { END, ARRIVAL, CUT, EVENTS };
/** State of a task. */
enum hv__event_state { WAITING, READY, RUNNING, DONE };

/** One task while it is played */
struct hv__event_progress {
    double left_s;  /* of its duration */
    double from_s;  /* start of the stretch that runs */
    double until_s; /* its end if nothing cuts it */
    int32_t waits;  /* deps not yet there */
    uint8_t state;
    bool begun, to_cut;
};

/** A graph during a simulation. */
struct hv__player {
    const struct hv_event_graph *g;
    const struct hv_event_rules *rules;
    struct hv_event_run *run;
    struct hv_arena scratch;
    struct hv__event_progress *p;
    int32_t *next_at, *next; /* the tasks that wait for a task: index into dep */
    int32_t *who;            /* task of each index into dep */
    int32_t *list_at, *list; /* tasks of a resource by index */
    int32_t *head;           /* per resource, into list: first not started */
    int32_t *holder;         /* per resource: task that runs on it, -1 = free */
    struct hv__heap *ready;  /* per resource: ready tasks that wait there, see home_of */
    struct hv__heap events;
    double *bytes;
    int32_t *credits;
    bool tangled; /* tasks hold several resources or share limits: all resources are looked at */
    int32_t *dirty;
    bool *is_dirty;
    size_t n_dirty, n_done;
    double now_s;
};

/** Checks the numbers of task i. Errors: HV_EUSAGE. O(its resources and dependencies). */
enum hv_status hv__event_check(const struct hv_event_graph *g, size_t i, struct hv_err *err);
/** Makes the lists of a player whose graph and rules are set; all in its scratch arena. O(tasks +
 * dependencies + resources). */
void hv__event_set_up(struct hv__player *y);

#endif
