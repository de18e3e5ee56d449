/** Inside cost/graph: seconds of an exchange on the devices of its axes. */
#ifndef HV_SOLVER_COST_GRAPH_EXCHANGE_H
#define HV_SOLVER_COST_GRAPH_EXCHANGE_H

#include "solver/cost/graph/place.h"

/** Where exchanges run. */
struct hv__wires {
    struct hv__context *k;
    const struct hv__mesh_place *place;
    const uint32_t
        *all; /**< devices of all data-parallel ranks of the copy, which exchange at once */
    size_t n_all;
    double wait_s;        /**< of ranks for each other, before each exchange */
    struct hv__memo memo; /**< exchanges by kind, atoms and bytes. Owner: the caller */
};
/** Price of an exchange. */
struct hv__wire_price {
    double time_s, latency_s;
    uint64_t far; /**< 1: between nodes */
};
/** An empty table for hv__wires.memo. */
struct hv__memo hv__wires_memo(void);
/** Seconds of an exchange: the slowest of the groups along its atoms, all of which run at once.
 * Remembered. */
struct hv__wire_price hv__wire_price(struct hv__wires *w, const struct hv_exchange *x);
/** Text of an exchange: axes it lies along. Lives in the arena. */
const char *hv__wire_text(const struct hv__wires *w, const struct hv_exchange *x,
                          struct hv_arena *arena);

#endif
