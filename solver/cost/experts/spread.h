/**
 * Experts on the ranks of an expert-parallel group where every expert has the same number of
 * tokens: figures of the busiest rank. Which ranks hold which expert is in solver/plan/experts.h.
 * Thread: any.
 */
#ifndef HV_SOLVER_COST_EXPERTS_SPREAD_H
#define HV_SOLVER_COST_EXPERTS_SPREAD_H

#include "solver/plan/experts.h"

/** Distribution of experts over ranks: figures of the busiest rank under uniform routing. */
struct hv__spread {
    double held;    /**< experts, or shards of one, that it holds, copies too */
    double work;    /**< its tokens over the mean */
    double traffic; /**< its tokens from other ranks over what an even spread sends */
};
/** From owners, copies and shards of `experts` over `ep` ranks. O(experts × ep) with owners or
 * copies, else O(1). */
struct hv__spread hv__spread_of(const struct hv_moe_knobs *m, int experts, int ep);
/** Capacity of one expert over its mean number of tokens; 0: it takes all. */
double hv__capacity_of(const struct hv_moe_knobs *m, double tokens_per_expert);

#endif
