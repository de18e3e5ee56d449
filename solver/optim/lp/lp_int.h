/** Internals of the LP model, shared by the builder and the solver; not for other modules. */
#ifndef HV_SOLVER_OPTIM_LP_LP_INT_H
#define HV_SOLVER_OPTIM_LP_LP_INT_H

#include "solver/base/vec.h"
#include "solver/optim/lp/lp.h"

/** Least margin of a proof that no point exists, as a share of its largest term: above the rounding
 * of the model's own numbers. */
#define HV__LP_MARGIN 0x1p-44

/** One variable. */
struct hv__lp_var {
    double lower, upper, cost;
    bool integer;
};

/** One row: terms [first, first + n) of the model's pool. */
struct hv__lp_row {
    size_t first, n;
    enum hv_lp_op op;
    double rhs;
};

/** A model as it was built: columns, rows, and the terms of all rows in one pool. */
struct hv_lp {
    enum hv_lp_sense sense;
    bool has_integers;
    HV_VEC(struct hv__lp_var) vars;
    HV_VEC(struct hv__lp_row) rows;
    HV_VEC(struct hv_lp_term) terms;
};

/** Powers of two that bring a model's numbers near 1: row i is multiplied by row[i], x_j =
 * col[j]·x'_j, costs are multiplied by col[j] and `objective`. */
struct hv__lp_scale {
    double *row, *col, objective;
};

/** Geometric scaling, rows and columns in turns; `row` (n_rows) and `col` (n_vars) are the
 * caller's. Without `integers` the columns of integer variables keep their unit. O(terms). */
void hv__lp_scale_all(const struct hv_lp *lp, bool integers, struct hv__lp_scale *s);
/** Makes a scaling for lp_solve, integer columns as they are (owner: caller frees row and col); all
 * ones when the numbers are fine already. */
void hv__lp_scaling(const struct hv_lp *lp, struct hv__lp_scale *out);
/** True when bounds, empty rows, or the divisors of an equation of integers alone make the model
 * infeasible. */
bool hv__lp_is_hopeless(const struct hv_lp *lp);
/** An entry of a column. */
struct hv__lp_entry {
    size_t row;
    double coef;
};
/** Columns from rows: column j is out[at[j]] … out[at[j + 1] - 1]; `at` has n_vars + 3 zeros.
 * Owner: caller frees. */
struct hv__lp_entry *hv__lp_columns(const struct hv_lp *lp, size_t *at);
/** Objective of a point. */
double hv__lp_value(const struct hv_lp *lp, const double *x);

#endif
