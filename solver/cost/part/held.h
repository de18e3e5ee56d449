/**
 * What one rank of an expert-parallel group holds of experts that a plan places itself. Thread:
 * any.
 */
#ifndef HV_SOLVER_COST_PART_HELD_H
#define HV_SOLVER_COST_PART_HELD_H

#include "solver/cost/experts/spread.h"
#include "solver/cost/part/context.h"
#include "solver/plan/experts.h"

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

/** Experts on the ranks of a group. Lists of the context, valid until the next call. */
struct hv__holding {
    struct hv__spread spread;
    const size_t *at;      /**< [experts + 1] into `ranks` */
    const uint32_t *ranks; /**< that hold each expert or a part of it, in ascending order */
    /** [experts] the rank that holds it, or the number of ranks + its place in `several`. */
    const uint32_t *column;
    const uint32_t *several; /**< [n_several] experts that several ranks hold, in ascending order */
    size_t n_several;
};
/** Which ranks of the query's group hold which of `experts`, remembered (held.c). O(experts × ep)
 * when new. */
struct hv__holding hv__holding_of(struct hv__context *k, const struct hv_part_query *q,
                                  int experts);
#endif
