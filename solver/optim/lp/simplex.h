/**
 * A bounded simplex method in doubles, on a dense tableau that is kept while bounds of variables
 * change: linear programs of a branch and bound, and duals and rays for certificates. Its answers
 * are proposals: certificate.h checks them. Not for other modules.
 *
 * Every row is a logical variable of its own, s_i = Σ a x, between the limits of the row; variable
 * n + i is that of row i. Nonbasic variables are columns of the tableau, basic ones its rows.
 */
#ifndef HV_SOLVER_OPTIM_LP_SIMPLEX_H
#define HV_SOLVER_OPTIM_LP_SIMPLEX_H

#include "solver/optim/lp/lp_int.h"

/** How a run ended. */
enum hv__simplex_end {
    HV__SIMPLEX_OPTIMAL,
    HV__SIMPLEX_INFEASIBLE,
    HV__SIMPLEX_UNBOUNDED,
    HV__SIMPLEX_LOST /**< too many steps, a number that is not finite, or the callback's word */
};

/** State of a linear program; numbers are scaled by powers of two. */
struct hv__simplex {
    const struct hv_lp *lp;
    size_t n, m;              /**< structural variables and rows */
    double *tableau;          /**< m × n */
    double *cost, *phase;     /**< n reduced costs, true and of the phase that finds a point */
    double *lo, *hi, *x;      /**< n + m, of every variable */
    size_t *basic, *nonbasic; /**< variables of the m rows and the n columns */
    size_t *list;             /**< n columns of numbers that are not 0, scratch */
    double *row, *col, unit; /**< scales: s_i = row · Σ a x, x = col · x', cost' = unit · cost */
    size_t pivots;           /**< since the tableau was made from the model */
    double work;             /**< multiplications so far */
    size_t at;               /**< row (infeasible) or column (unbounded) where the last run ended */
    double sign;             /**< infeasible: 1 below its lower bound, -1 above; unbounded: way */
    bool (*stop)(void *ctx); /**< asked every few steps; may be NULL */
    void *ctx;
};

/** True when the tableau of the model has a size that the dense method handles. */
bool hv__simplex_fits(const struct hv_lp *lp);
/** A tableau of the model with its bounds. Owner: hv__simplex_free. */
void hv__simplex_init(struct hv__simplex *s, const struct hv_lp *lp);
/** Frees it. */
void hv__simplex_free(struct hv__simplex *s);
/** Sets the bounds of structural variable j, in the model's units. */
void hv__simplex_bound(struct hv__simplex *s, size_t j, double lo, double hi);
/** Solves from where the last run ended. */
enum hv__simplex_end hv__simplex_run(struct hv__simplex *s);
/** The point, in the model's units (n values). */
void hv__simplex_point(const struct hv__simplex *s, double *x);
/** Duals of the minimum, in the model's units (m values). */
void hv__simplex_duals(const struct hv__simplex *s, double *y);
/** After HV__SIMPLEX_INFEASIBLE: multipliers for hv__lp_no_point (m values). */
void hv__simplex_farkas(const struct hv__simplex *s, double *y);
/** After HV__SIMPLEX_UNBOUNDED: the direction (n values). */
void hv__simplex_ray(const struct hv__simplex *s, double *ray);

#endif
