/**
 * Unequal devices grouped into replicas that share a batch: which devices form a pipeline, how the
 * layers are cut in each, and how many micro-batches each one gets. Numbers only.
 */
#ifndef HV_SOLVER_OPTIM_CHAIN_GROUP_H
#define HV_SOLVER_OPTIM_CHAIN_GROUP_H

#include "solver/optim/chain/partition.h"

/** Time of a group for n ≥ 1 micro-batches is the least of fixed + n · rate over its lines. */
struct hv_group_line {
    double fixed, rate; /**< fixed may be negative as long as fixed + rate ≥ 0 */
};

/** One way to form a group. */
struct hv_group_type {
    const size_t *uses; /**< devices of each kind */
    size_t n_lines;
    const struct hv_group_line *lines;
};

/** An instance; everything is borrowed. */
struct hv_group {
    size_t n_kinds;
    const size_t *count; /**< devices there are of each kind */
    size_t n_types;
    const struct hv_group_type *types;
    int64_t total; /**< micro-batches, > 0 */
};

/** Answer; arrays live in the arena of the call. */
struct hv_group_result {
    bool feasible, proven, stopped;
    double objective, bound; /**< HV_UNKNOWN when infeasible */
    size_t n_groups;
    size_t *type;   /**< of each group */
    int64_t *share; /**< micro-batches of each group, > 0 */
    const char *method, *proof;
};

/** Largest product of (count + 1) over the kinds, and of that times the number of types. */
#define HV_GROUP_MAX_STATES ((size_t)1 << 22)
#define HV_GROUP_MAX_WORK   ((size_t)1 << 28)

/**
 * Chooses groups, each kind's devices used at most as often as there are, and shares out the total
 * so that the slowest group ends first. For a threshold the most micro-batches are found by a
 * dynamic program over what is used of each kind; the threshold by bisection. Proven to 1e-9.
 * O(states · types) per threshold, about 45 of them.
 * Errors: HV_EINPUT on numbers that make no sense, HV_ELIMIT.
 */
enum hv_status hv_group_solve(const struct hv_group *g, const struct hv_part_limits *limits,
                              struct hv_arena *arena, struct hv_group_result *out,
                              struct hv_err *err) HV_NODISCARD;

#endif
