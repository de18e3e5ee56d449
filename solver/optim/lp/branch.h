/**
 * Branch and bound with a certificate at every leaf: small linear and integer programs from start
 * to proof. Not for other modules.
 *
 * A leaf counts only when the safe bound of its duals, a checked proof that it has no point
 * (certificate.h), or exact rational numbers (rational.h) close it. Depth first, on one tableau.
 */
#ifndef HV_SOLVER_OPTIM_LP_BRANCH_H
#define HV_SOLVER_OPTIM_LP_BRANCH_H

#include "solver/optim/lp/lp_int.h"

/** Limits of one tree. */
struct hv__branch_limits {
    double work;             /**< operations on doubles */
    int64_t max_nodes;       /**< 0 = no limit */
    double gap;              /**< relative gap at which it ends, 0 = none */
    bool (*stop)(void *ctx); /**< asked often; true ends the tree; may be NULL */
    void *ctx;
};

/** Answer of a tree. Owner: hv__branch_free. */
struct hv__branch {
    enum hv_lp_outcome outcome; /**< HV_LP_OPTIMAL, INFEASIBLE and UNBOUNDED are proven; else
                                     FEASIBLE with a checked point, or FAILED */
    double *x;                  /**< n_vars, NULL without a point */
    double *y;                  /**< n_rows duals of the minimum; programs without integers only */
    double value, bound;        /**< of the minimum; bound: no point is below it, or -inf */
    int64_t nodes;
    bool complete; /**< the tree came to its end, which may be the gap that was asked for */
};

/**
 * Solves a model that fits (hv__simplex_fits). Deterministic but for `stop`.
 * @param start  a checked point whose value must be beaten, or NULL
 */
void hv__branch_solve(const struct hv_lp *lp, const struct hv__branch_limits *limits,
                      const double *start, struct hv__branch *out);
/** Frees the arrays. */
void hv__branch_free(struct hv__branch *b);

#endif
