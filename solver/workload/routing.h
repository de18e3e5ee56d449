/** Routing of the tokens of a mixture of experts to ranks. Numbers of tokens may be fractions. */
#ifndef HV_SOLVER_WORKLOAD_ROUTING_H
#define HV_SOLVER_WORKLOAD_ROUTING_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stddef.h>
#include <stdint.h>

/** Number of tokens that every source sends to every expert. Borrowed. */
struct hv_routing {
    size_t sources, experts;
    const double *tokens; /**< [sources × experts] */
};

/** Placement of experts, and the padding of their kernels. Borrowed. */
struct hv_expert_placement {
    size_t ranks;            /**< at least `sources`: source s is rank s */
    const size_t *holder_at; /**< [experts + 1] into holders */
    const uint32_t *holders; /**< ranks with a copy of each expert, at least one */
    double capacity_factor;  /**< an expert takes at most this times the mean; 0 = all */
    double tile;             /**< copies compute multiples of this many tokens; 0: no padding */
};

/** Loads after routing. Arrays from the arena of the call. */
struct hv_routed {
    double *loads;   /**< [ranks] tokens computed, without padding */
    double *experts; /**< [experts] tokens computed */
    double *sent;    /**< [sources × ranks] tokens, own ones included */
    double dropped, padded;
};

/**
 * Sends the tokens: an expert above its capacity drops the same share of every source; a source
 * that holds a copy keeps its tokens, the other tokens are spread evenly over the copies. O(sources
 * · experts + sources · holders). Errors: HV_EUSAGE for a holder that is not a rank, or an expert
 * without a holder.
 */
enum hv_status hv_route(struct hv_arena *a, const struct hv_routing *r,
                        const struct hv_expert_placement *p, struct hv_routed *out,
                        struct hv_err *err) HV_NODISCARD;

#endif
