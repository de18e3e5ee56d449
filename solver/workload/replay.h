/**
 * Iterations of a routing under places of experts that may change between them: what each takes,
 * from seconds that the caller gives. Pure numbers; the judge's own walk is solver/eval/adapt.h.
 *
 * Every layer waits for its busiest rank at each of its steps: exchange, experts, exchange, and
 * copies of experts. An iteration is the sum over its layers, after the moves of experts that are
 * placed anew. Thread: any.
 */
#ifndef HV_SOLVER_WORKLOAD_REPLAY_H
#define HV_SOLVER_WORKLOAD_REPLAY_H

#include "solver/workload/routing.h"
#include <stdbool.h>

/** Seconds of a replay. */
struct hv_replay {
    size_t ranks;           /**< at least the sources */
    double token_s;         /**< that a rank computes for one token, all passes */
    double send_s;          /**< that a rank sends or receives for one token, all exchanges */
    double copy_s;          /**< of an expert with copies, on every rank that has it */
    double hidden_s;        /**< of the copies of a layer, behind the compute of others */
    double move_s;          /**< of an expert that leaves a rank or arrives there for good */
    bool lent;              /**< copies come anew every iteration: the first holder is the owner */
    double capacity_factor; /**< as hv_expert_placement has it */
};

/** One iteration. */
struct hv_replayed {
    double time_s;  /**< moves included */
    double move_s;  /**< of it */
    double tokens, dropped;
    size_t moves;   /**< experts that came to a rank */
    double balance; /**< mean load over the busiest rank's, of the layer where that is least */
};

/**
 * One iteration of `layers` layers: their tokens, where their experts are, and where they were
 * before (NULL: the same). Work space from the arena. O(layers · (sources · experts + sources ·
 * holders)). Errors: as hv_route.
 */
enum hv_status hv_replay_iteration(struct hv_arena *a, const struct hv_replay *r, size_t layers,
                                   const struct hv_routing *tokens,
                                   const struct hv_expert_placement *places,
                                   const struct hv_expert_placement *before,
                                   struct hv_replayed *out, struct hv_err *err) HV_NODISCARD;

#endif
