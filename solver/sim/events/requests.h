/**
 * Requests in a queue: the wait for one of many equal slots, simulated event by event and as a
 * closed form, and the wait for room in places on their path, such as caches. Pure numbers:
 * the caller defines slots and places and gives the time that a request holds them.
 */
#ifndef HV_SOLVER_SIM_EVENTS_REQUESTS_H
#define HV_SOLVER_SIM_EVENTS_REQUESTS_H

#include "solver/base/arena.h"
#include "solver/base/attr.h"
#include <stddef.h>
#include <stdint.h>

/** Most slots that are simulated. */
enum { HV_REQUESTS_SLOTS_MAX = 100000 };

/** Requests of one size. */
struct hv_request_class {
    double share;   /**< of all requests; the shares add up to 1 */
    double first_s; /**< from the start to the first token, > 0 */
    double whole_s; /**< from the start to the last token, ≥ first_s: so long it holds its slot */
    double size;    /**< room that it takes in every place that it passes, for as long */
};

/** The outside, where requests enter and leave. */
enum { HV_REQUESTS_END = -1 };
/** A link between places, and the target share of the requests at `from` that take it. */
struct hv_request_link {
    int from, to; /**< places, or HV_REQUESTS_END */
    double weight;
};

/** Places with limited room. A request goes from link to link: at every place it takes the one
 * whose load with it, over its weight, is least (interleaved weighted round robin), among those
 * whose place stays below the mark with it, or is empty (Helix, Mei et al., ASPLOS'25: nodes above
 * the high-water mark are masked). Where no link is left the request, and all behind it, wait
 * until another request ends. */
struct hv_request_places {
    const double *room; /**< [n], in the unit of `size`; HUGE_VAL: no limit */
    size_t n;
    const struct hv_request_link *links; /**< without circles */
    size_t n_links;
    double mark_frac; /**< of the room, in (0, 1] */
};

/** Arrivals and slots. */
struct hv_requests {
    double per_s; /**< mean rate of a Poisson process, > 0 */
    size_t slots; /**< requests served at the same time, 1 … HV_REQUESTS_SLOTS_MAX */
    const struct hv_request_class *classes;
    size_t n_classes;
    const struct hv_request_places *places; /**< or NULL */
    uint64_t seed;
};

/** Figures of the simulation; seconds are HV_UNKNOWN at a load of 1 or more: the queue grows
 * without end. */
struct hv_request_figures {
    double load_frac;      /**< of the slots, in the mean */
    size_t n;              /**< requests counted, those before a warm-up left out */
    double mean_wait_s;    /**< for a slot and for room */
    double formula_wait_s; /**< for a slot alone, by hv_requests_wait_s */
    double room_wait_s;    /**< of mean_wait_s: with a slot free, but no room */
    double no_room_frac;   /**< share of the requests that wait so */
    double first_p50_s, first_p99_s, whole_p50_s, whole_p99_s;
};

/**
 * Plays Poisson arrivals, first come first served, on equal slots: a request starts when it has
 * come and a slot is free, and holds it for its whole time. 20 requests for every slot, at least
 * 20,000, at most 200,000; the first fifth is warm-up. The same numbers and seed give the same
 * figures. O(n log slots + n log n), and n · links on the way with places. Scratch is taken from
 * the arena.
 */
void hv_requests_run(const struct hv_requests *q, struct hv_arena *arena,
                     struct hv_request_figures *out);

/**
 * Mean wait in a queue with Poisson arrivals, general service times and many slots: that of
 * exponential times (Erlang, 1917) times (1 + c²)/2, c the coefficient of variation (Lee and
 * Longton, 1959); exact for one slot (Pollaczek and Khinchine) and for exponential times.
 * @param per_s   arrivals; @param mean_s of the service; @param cv2 its squared variation
 * Returns seconds; HV_UNKNOWN at a load of 1 or more. O(slots).
 */
double hv_requests_wait_s(double per_s, size_t slots, double mean_s, double cv2);

#endif
