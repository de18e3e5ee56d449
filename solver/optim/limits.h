/** Limits and progress reports of the exact solvers of solver/optim. */
#ifndef HV_SOLVER_OPTIM_LIMITS_H
#define HV_SOLVER_OPTIM_LIMITS_H

#include <stdbool.h>

/** Limits of one solve; `{0}` = none. */
struct hv_solve_limits {
    double deadline_s;         /**< wall seconds; 0 = none */
    bool (*cancel)(void *ctx); /**< true ends the search; may be NULL */
    /** Called regularly during a search with the best so far (infinity = none) and a bound; may be
     * NULL. */
    void (*report)(void *ctx, double incumbent, double bound);
    void *ctx;
};

#endif
