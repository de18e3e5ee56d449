/** Internals of the workers: the next group to average from a queue. */
#ifndef HV_SOLVER_SIM_EVENTS_WORKERS_INT_H
#define HV_SOLVER_SIM_EVENTS_WORKERS_INT_H

#include "solver/sim/events/workers.h"

/** The last groups, and room to look for components. */
struct hv__groups {
    size_t n, group;
    bool connect;
    size_t window, n_made; /**< groups looked back at; made so far */
    size_t *history;       /**< [window × group], a ring */
    size_t *sizes;         /**< [window] members of each */
    size_t *component;     /**< [n] */
    bool *seen;            /**< [n] components already in the group */
};

/** Starts with an empty history of groups; arrays live in the arena. O(n + window · group). */
void hv__groups_init(struct hv_arena *a, struct hv__groups *g, const struct hv_workers *w);
/** Moves the members of the next group to the front of the queue, in their order; returns their
 * number; 0: it has to wait. `late`: the group need not be full. O(n + window · group)
 * where components count, else O(1). */
size_t hv__groups_next(struct hv__groups *g, size_t *queue, size_t n_queue, bool late);

#endif
