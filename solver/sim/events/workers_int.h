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

/** Adds an averaging of a group, `behind` clocks each, to the sum of n × n matrices: W − 1, or with
 * decay W'JW − 1. O(members²). */
void hv__mix(double *sum, size_t n, const size_t *members, const int64_t *behind, size_t n_members,
             double decay);
/** Makes the mean of so many of the sum. O(n²). */
void hv__mix_end(double *sum, size_t n, int64_t n_mixed, double decay);

/** An exchange under way. */
struct hv__exchange {
    double start_s, left_s; /**< left_s: of its time alone */
    double rate;            /**< share of its speed alone */
    struct hv_workers_links links;
    const size_t *members;  /**< of a group, in the order in which they were ready; gossip: the one
                               that waits */
    const double *waited_s; /**< [n] before it began */
    size_t n;
    void *room; /**< of its lists where it is under way */
};
/** Exchanges under way on shared links. */
struct hv__exchanges {
    struct hv__exchange *items;
    size_t n, cap;
    double *load; /**< [n_links] sum of their shares */
    size_t n_links;
    double at_s; /**< when left_s was right */
};
/** Adds an exchange that takes left_s alone and slows those on its links; copies its lists. O(all
 * links of exchanges under way). */
void hv__exchanges_add(struct hv__exchanges *x, double now_s, const struct hv__exchange *e);
/** When the first of them ends if none is added; HUGE_VAL: there are none. O(n). */
double hv__exchanges_next(const struct hv__exchanges *x);
/** Takes one that has ended by now into *out; false: none has. Owner of its lists: the caller, who
 * frees `room`. O(all links of exchanges under way). */
bool hv__exchanges_take(struct hv__exchanges *x, double now_s, struct hv__exchange *out);
/** Frees those that are left. */
void hv__exchanges_free(struct hv__exchanges *x);

#endif
