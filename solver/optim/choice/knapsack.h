/**
 * Multiple-choice knapsack: one option out of every group, most value within a capacity. Exact.
 */
#ifndef HV_SOLVER_OPTIM_CHOICE_KNAPSACK_H
#define HV_SOLVER_OPTIM_CHOICE_KNAPSACK_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>

/** Largest number of options of all groups together. */
#define HV_KNAPSACK_MAX_OPTIONS ((size_t)1 << 20)

/** One option: its value (any finite number) and its weight (≥ 0). */
struct hv_knapsack_option {
    double value, weight;
};

/** Answer; the array lives in the arena of the call. */
struct hv_knapsack_result {
    bool feasible, proven;
    double value, weight;
    double bound;   /**< no choice is worth more */
    double excess;  /**< infeasible: excess of the lightest choice over the capacity */
    size_t *choice; /**< one per group, counted inside the group */
    const char *method;
};

/**
 * Group g holds options[first[g]] … options[first[g + 1] - 1]; `first` has n_groups + 1 entries.
 *
 * Lists of undominated (weight, value) pairs, group after group, pruned with the linear relaxation
 * of the remaining groups and a greedy answer. `proven` is false (and the bound covers the dropped
 * pairs) only when a list grew beyond a million pairs. Pseudo-polynomial; small when bounds are
 * tight. Errors: HV_EINPUT on numbers that are not finite, negative weights, empty groups;
 * HV_ELIMIT.
 */
enum hv_status hv_knapsack_solve(const struct hv_knapsack_option *options, const size_t *first,
                                 size_t n_groups, double capacity, struct hv_arena *arena,
                                 struct hv_knapsack_result *out, struct hv_err *err) HV_NODISCARD;

#endif
