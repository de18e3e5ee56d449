/**
 * Linear programs in exact rational numbers: small ones, whose proof rounding errors leave open.
 * Not for other modules.
 */
#ifndef HV_SOLVER_OPTIM_LP_RATIONAL_H
#define HV_SOLVER_OPTIM_LP_RATIONAL_H

#include "solver/optim/lp/simplex.h"

/** Exact answer, rounded to doubles. Arrays: owner is the caller, n and m numbers. */
struct hv__rational {
    double *x, *y; /**< point and duals of the minimum, to the nearest double */
    double value;  /**< not above the exact optimum of the minimum */
    size_t split;  /**< an integer variable with a fraction; n when there is none */
    double floor;  /**< whole number below that variable's exact value */
    double margin; /**< infeasible: what a row misses, as a share of its largest term */
    double work;   /**< estimated in operations on doubles */
};

/** True when the model is small enough for exact numbers. */
bool hv__rational_fits(const struct hv_lp *lp);
/**
 * Solves the model within the bounds lo, hi (n numbers each, model units) exactly, from the basis
 * of `start`. The end is proven, except HV__SIMPLEX_LOST: too many steps or too long numbers, or
 * the callback of `start` ended it. After HV__SIMPLEX_UNBOUNDED a feasible point and a ray exist.
 * Source: D. Applegate, W. Cook, S. Dash, D. Espinoza, "Exact solutions to linear programming
 * problems", Oper. Res. Lett. 35, 2007 (the basis in doubles, the answer in rationals).
 */
enum hv__simplex_end hv__rational_solve(const struct hv__simplex *start, const double *lo,
                                        const double *hi, struct hv__rational *out);

#endif
