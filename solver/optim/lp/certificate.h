/**
 * Certificates of a linear or integer program: a point is checked against the model, and duals give
 * a bound that holds whatever program computed them. Not for other modules.
 *
 * Everything here is a minimum: for a maximum the costs, duals and bounds have the other sign. A
 * row is "lower ≤ Σ a x ≤ upper", one side of it infinite for an inequality.
 */
#ifndef HV_SOLVER_OPTIM_LP_CERTIFICATE_H
#define HV_SOLVER_OPTIM_LP_CERTIFICATE_H

#include "solver/optim/lp/exact_sum.h"
#include "solver/optim/lp/lp_int.h"

/** By how much a point may miss rows and bounds, as a share of the row's largest term or
 * right-hand side, or of the bound. */
struct hv__lp_tolerance {
    double mixed; /**< rows with a continuous variable, and bounds of continuous variables */
    double whole; /**< rows of integer variables only, whose terms are exact or nearly so */
};
/** Of a proven point of a linear program. */
#define HV__LP_LINEAR ((struct hv__lp_tolerance){1e-9, 1e-9})
/** Of a proven point of a program with integers: little more than the rounding of doubles. */
#define HV__LP_ROUNDED ((struct hv__lp_tolerance){0x1p-42, 0x1p-50})
/** The same for programs that exact numbers can solve. */
#define HV__LP_EXACT ((struct hv__lp_tolerance){0x1p-48, 0x1p-50})
/** Of a point that is not proven. */
#define HV__LP_LOOSE ((struct hv__lp_tolerance){1e-6, 1e-6})

/** Cost of variable j in the minimum. */
double hv__lp_cost(const struct hv_lp *lp, size_t j);
/** Lower and upper limit of row i; infinite where it has none. */
void hv__lp_row_limits(const struct hv__lp_row *r, double *lower, double *upper);
/** True when the point keeps every row (evaluated in about 106 bits) and bound within the
 * tolerance, and integrality and the bounds of integer variables exactly. */
bool hv__lp_point_holds(const struct hv_lp *lp, const double *x, struct hv__lp_tolerance t);
/** Objective of a point in the minimum, and the magnitude of its largest term. */
double hv__lp_min_value(const struct hv_lp *lp, const double *x, double *size);

/** A number that is not above the exact objective of a point in the minimum. */
double hv__lp_min_value_down(const struct hv_lp *lp, const double *x);

/** Buffers of hv__lp_safe_bound. Owner: hv__lp_prover_free. */
struct hv__lp_prover {
    const struct hv_lp *lp;
    struct hv__sum *d;       /**< n_vars reduced costs */
    double *far_lo, *far_hi; /**< n_vars implied bounds, see hv__lp_prover_reach */
    double size;             /**< largest term of the last bound */
};
/** Makes the buffers; the implied bounds are those of the rows alone. */
void hv__lp_prover_init(struct hv__lp_prover *p, const struct hv_lp *lp);
/** Frees the buffers. */
void hv__lp_prover_free(struct hv__lp_prover *p);
/**
 * Implied bounds of variables that have none of their own, for every point of the model whose value
 * is not above `cutoff` (+inf: for every point), by activities of rows; rounded outwards. O(terms)
 * for each of a few rounds.
 */
void hv__lp_prover_reach(struct hv__lp_prover *p, double cutoff);
/**
 * A number that no point of the box [lo, hi] has a value below, from duals y (n_rows, any numbers);
 * -inf when y says nothing. With `no_cost` the costs count as 0: a bound above 0 proves that the
 * box has no point (Farkas), see hv__lp_no_point. Points above the cutoff of hv__lp_prover_reach
 * are not counted. Every operation is rounded to the safe side. Source: A. Neumaier and O.
 * Shcherbina, "Safe bounds in linear and mixed-integer linear programming", Math. Program. 99,
 * 2004. O(terms).
 */
double hv__lp_safe_bound(struct hv__lp_prover *p, const double *y, const double *lo,
                         const double *hi, bool no_cost);
/**
 * True when the multipliers y prove that the box has no point, by a margin above HV__LP_MARGIN.
 */
bool hv__lp_no_point(struct hv__lp_prover *p, const double *y, const double *lo, const double *hi);
/** Reduced costs of duals, in the model's own direction, rounded (out: n_vars). */
void hv__lp_reduced_costs(const struct hv_lp *lp, const double *duals, double *out);
/**
 * True when no row and no bound ends the direction: Σ a·ray = 0 exactly in equalities and not
 * against the side of an inequality, and the objective falls along it.
 */
bool hv__lp_is_ray(const struct hv_lp *lp, const double *ray);

#endif
