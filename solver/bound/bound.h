/** Lower bounds of the iteration time that hold for every plan of a job on a cluster. */
#ifndef HV_SOLVER_BOUND_BOUND_H
#define HV_SOLVER_BOUND_BOUND_H

#include "solver/cost/cost.h"

/** Lower bound of the iteration time of any plan for these inputs. */
struct hv_bound {
    double iteration_s;
    const char *why;  /**< one sentence, in the arena */
    double compute_s; /**< forward and backward work alone on all devices that can hold a rank: no
                         plan with stale weights is faster either */
    double any_s; /**< of any exact plan, also with stages that branch, parts of micro-batches or
                     tensor parallelism that is not 1d: passes of any size */
    const char *any_why, *compute_why;
    double spread_s; /**< of plans that iteration_s is for, and of those that exchange inside
                        passes or shard states across the cut, or sum gradients on servers */
    const char *spread_why;
    double even_s; /**< of those that spread_s is for which are copies of one pipeline with all
                      passes of a stage alike: above spread_s, or 0 */
    const char *even_why;
    const char *cut_why; /**< what cut_s is; NULL where no cut counts */
    const bool *beyond;  /**< [groups] the second side of the cut; NULL: none counts */
    /* what iteration_s is made of besides compute_s */
    double shapes_s;    /**< kernels of the shapes that valid degrees leave, their exchanges */
    double passes_s;    /**< fill and drain: passes of limited size, and devices better left out */
    double optimizer_s; /**< the step of every weight */
    double host_s;      /**< of the host, once per iteration and in one pass */
    double wait_s;      /**< for the slowest of many devices */
    double cut_s;       /**< because a slow network lies between the devices */
    double fewest;      /**< devices that it takes to hold the gradients; 0: not known */
};
/**
 * No exact plan can be faster: every sequence's work in the best kernels that passes of some size
 * reach and that fit into memory, with the exchanges of tensor parallelism over the slowest link
 * that its ranks cannot avoid, spread over all devices that are not drained without any loss, all
 * its layers in turn before the iteration ends (fill and drain), the optimizer step of every
 * weight, and what an iteration costs around them, on devices enough to hold all gradients; and
 * between two sides of a slow network either little work is shared, or activations of all sequences
 * cross it, or gradients of all weights; and where all passes of a stage are alike none goes
 * backward before one has gone forward through all layers. Weak duality over block classes keeps it
 * true for mixed kinds (derivations: least.c, chain.c, cut.c, even.c).
 * O(2^kinds × kinds × classes × cells), kinds up to 8; the cells are remembered by the context.
 */
void hv_bound_iteration(struct hv_cost *k, struct hv_arena *arena, struct hv_bound *out);

#endif
