/**
 * Names in the stages of a plan that must be names of its model: operators (`ops`, `shard`,
 * `place`, `fuse`), dimensions and axes of the mesh (`shard`).
 */
#ifndef HV_SOLVER_PLAN_NAMES_H
#define HV_SOLVER_PLAN_NAMES_H

#include "solver/plan/plan.h"

/** A name that the model, or the stage's mesh, does not have, and its place in the plan. */
struct hv_unknown_name {
    size_t replica, stage;
    const char *key;   /**< member of the stage: "ops", "shard", "place", "fuse" */
    size_t at;         /**< ops, fuse: number of the entry */
    size_t side;       /**< fuse: which of the pair */
    const char *entry; /**< shard, place: member of that name; NULL for ops and fuse */
    const char
        *axis; /**< shard: member of the entry, whose axis or dimension is unknown; or NULL */
    const char *text; /**< what was found and what was expected, with the nearest name */
};

/**
 * Lists the unknown names of a plan with replicas, in the order of its stages; returns their
 * number. A stage of a module that the model does not have is left out. Everything lives in
 * `arena`. O(patterns · operators).
 */
size_t hv_plan_unknown_names(const struct hv_plan *p, const struct hv_model *m,
                             struct hv_arena *arena, struct hv_unknown_name **out);

#endif
