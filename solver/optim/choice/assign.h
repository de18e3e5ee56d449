/** Assignment of rows to columns: least sum, or least maximum. Exact. */
#ifndef HV_SOLVER_OPTIM_CHOICE_ASSIGN_H
#define HV_SOLVER_OPTIM_CHOICE_ASSIGN_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>

/** Largest number of rows and of columns. */
#define HV_ASSIGN_MAX ((size_t)1 << 12)

/** Figure to minimise. */
enum hv_assign_goal { HV_ASSIGN_SUM, HV_ASSIGN_BOTTLENECK };

/** Answer; the array lives in the arena of the call. */
struct hv_assign_result {
    bool feasible; /**< false: at least `unmatched` rows stay without a column */
    bool proven;  /**< sum: the dual prices prove it; bottleneck: no smaller value has a matching */
    double value; /**< HV_UNKNOWN when infeasible */
    double bound;
    size_t unmatched;
    size_t *column; /**< one per row */
};

/**
 * Gives every row a column of its own; cost[r · n_columns + c], infinity = not allowed, negative is
 * fine. Sum: shortest augmenting paths with prices, O(rows² · columns). Bottleneck: binary search
 * over the costs with augmenting paths, O(rows² · columns · log).
 * Errors: HV_EINPUT on NaN, -infinity or more rows than columns; HV_ELIMIT.
 */
enum hv_status hv_assign_solve(const double *cost, size_t n_rows, size_t n_columns,
                               enum hv_assign_goal goal, struct hv_arena *arena,
                               struct hv_assign_result *out, struct hv_err *err) HV_NODISCARD;

#endif
