/**
 * Experts on the ranks of an expert-parallel group: what one of them holds, and the figures of the
 * busiest one where every expert has the same number of tokens. Which ranks hold which expert is in
 * solver/plan/experts.h. Thread: any.
 */
#ifndef HV_SOLVER_COST_PART_SPREAD_H
#define HV_SOLVER_COST_PART_SPREAD_H

#include "solver/cost/part/context.h"
#include "solver/plan/experts.h"

/** Distribution of experts over ranks: figures of the busiest rank under uniform routing. */
struct hv__spread {
    double held;    /**< experts, or shards of one, that it holds, copies too */
    double work;    /**< its tokens over the mean */
    double traffic; /**< its tokens from other ranks over what an even spread sends */
};
/** What one rank of an expert-parallel group holds. */
struct hv__held {
    double experts; /**< or shards of them, copies too */
    double lent;    /**< of these, copies that come anew in every iteration, without states */
    double shards;  /**< of the others' states, sharded over all that hold the same ones */
    double most;    /**< experts on the rank of the group that has most */
};
/** The ranks over which states are sharded: at most `limit` of those in `groups` groups. */
struct hv__sharing {
    double groups, limit;
};
/** What rank `at` holds of the experts that the query's plan places, remembered (held.c).
 * O(experts × ep) when new. */
struct hv__held hv__held_by(struct hv__context *k, const struct hv_part_query *q, int experts,
                            int at, const struct hv__sharing *s);
/** From owners, copies and shards of `experts` over `ep` ranks. O(experts × ep) with owners or
 * copies, else O(1). */
struct hv__spread hv__spread_of(const struct hv_moe_knobs *m, int experts, int ep);

#endif
