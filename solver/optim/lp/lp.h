/**
 * Linear and mixed-integer programs, by lp_solve and an own branch and bound; what is called proven
 * has a certificate.
 *
 * A model is built here, in arrays of this module; every solve makes a new lp_solve object. Points,
 * duals and rays may come from lp_solve or from the simplex methods of this folder, in doubles or
 * in exact rational numbers (GMP); a proof never rests on the word of one of them. A point is
 * evaluated again in about 106 bits. A bound is computed from duals with every rounding to the safe
 * side, for linear programs as for every leaf of a branch and bound (certificate.h); where that
 * leaves a small program open, rational numbers decide it.
 *
 * Known wrong answers of lp_solve 5.5.2.5 and what is done about each: programs with integers whose
 * coefficients spread over more than seven decades (its optimum is never called proven), min-max
 * models pruned by a false improvement step (inequality rows of integer programs get an explicit
 * real slack; an answer with a non-zero step is solved again), "infeasible" and "unbounded" that
 * are not (said only with a certificate), empty rows and inverted bounds (decided before lp_solve
 * sees them), large units (rows and continuous columns are scaled by powers of two), NaN, bad
 * indices and duplicate indices (refused or merged here), a model solved twice (never happens).
 *
 * Thread: lp_solve is not safe to use from two threads at once; run solves in one thread.
 */
#ifndef HV_SOLVER_OPTIM_LP_LP_H
#define HV_SOLVER_OPTIM_LP_LP_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A model under construction. Owner: hv_lp_free. */
struct hv_lp;

/** Direction of the objective. */
enum hv_lp_sense { HV_LP_MIN, HV_LP_MAX };
/** Relation of a row to its right-hand side. */
enum hv_lp_op { HV_LP_LE, HV_LP_GE, HV_LP_EQ };

/** One summand `coef · x[var]`. */
struct hv_lp_term {
    size_t var;
    double coef;
};

/** Outcome of a solve. */
enum hv_lp_outcome {
    HV_LP_OPTIMAL,    /**< a checked point, proven to be the best one */
    HV_LP_FEASIBLE,   /**< a checked point that may not be the best one */
    HV_LP_INFEASIBLE, /**< no point exists; certified */
    HV_LP_UNBOUNDED,  /**< the objective has no limit; certified */
    HV_LP_STOPPED,    /**< stopped before any point was found */
    HV_LP_FAILED      /**< no answer: no point passed the checks, and none was excluded */
};

/** Limits of one solve; `{0}` = none. */
struct hv_lp_limits {
    double deadline_s;         /**< wall seconds from the start of the solve; 0 = none */
    double gap;                /**< relative gap at which the search may end; 0 = 1e-9 */
    int64_t max_nodes;         /**< branch-and-bound nodes; 0 = no limit */
    bool unproven;             /**< programs with integers by lp_solve alone: no proof, no bound */
    bool (*cancel)(void *ctx); /**< called from time to time; true ends the solve; may be NULL */
    void *ctx;
};

/** Answer of one solve. Owner: hv_lp_result_free. */
struct hv_lp_result {
    enum hv_lp_outcome outcome;
    bool proven;      /**< the outcome is HV_LP_OPTIMAL, see hv_lp_solve */
    bool stopped;     /**< a limit or the cancel callback ended it */
    double objective; /**< of x, evaluated here; HV_UNKNOWN without a point */
    double bound;     /**< certified: no point is better; HV_UNKNOWN when none is known */
    size_t n_vars, n_rows;
    double *x;       /**< n_vars values, NULL without a point */
    double *duals;   /**< n_rows values (LP only, change of the objective per unit of rhs) */
    double *reduced; /**< n_vars reduced costs (LP only) */
    int64_t nodes;
    double seconds;
};

/** A new empty model. */
struct hv_lp *hv_lp_new(enum hv_lp_sense sense);
/** Frees a model; NULL is allowed. */
void hv_lp_free(struct hv_lp *lp);
/**
 * Adds a variable with lower and upper bound (infinities allowed); *out = its index.
 * lower > upper is accepted and makes the model infeasible.
 * Errors: HV_EINPUT on NaN, on lower = +inf or upper = -inf; HV_ELIMIT above 4 million variables.
 */
enum hv_status hv_lp_add_var(struct hv_lp *lp, double lower, double upper, bool integer,
                             size_t *out, struct hv_err *err) HV_NODISCARD;
/**
 * Adds Σ terms (op) rhs. Terms of the same variable are merged. O(n log n).
 * Errors: HV_EINPUT on an index out of range or a number that is not finite; HV_ELIMIT.
 */
enum hv_status hv_lp_add_row(struct hv_lp *lp, const struct hv_lp_term *terms, size_t n,
                             enum hv_lp_op op, double rhs, struct hv_err *err) HV_NODISCARD;
/**
 * Adds "x[top] is at least constant + Σ terms", the row of a min-max model.
 * Errors: as hv_lp_add_row.
 */
enum hv_status hv_lp_add_max_row(struct hv_lp *lp, size_t top, const struct hv_lp_term *terms,
                                 size_t n, double constant, struct hv_err *err) HV_NODISCARD;
/** Sets the objective Σ terms (replaces an earlier one). Errors: as hv_lp_add_row. */
enum hv_status hv_lp_set_objective(struct hv_lp *lp, const struct hv_lp_term *terms, size_t n,
                                   struct hv_err *err) HV_NODISCARD;
/**
 * Adds a special ordered set: of these variables, in this order, at most one (type 1), or at most
 * two that are neighbours (type 2), may differ from 0 (E. Beale and J. Tomlin, 1970). Modelled with
 * binary variables and rows, so that it is checked as every integer program: new variables are
 * appended where the variables are not binary themselves. Errors: HV_EINPUT for another type, fewer
 * than two variables, one that is named twice or has an infinite bound; HV_ELIMIT.
 */
enum hv_status hv_lp_add_sos(struct hv_lp *lp, int type, const size_t *vars, size_t n,
                             struct hv_err *err) HV_NODISCARD;
/** Number of variables. */
size_t hv_lp_n_vars(const struct hv_lp *lp);

/**
 * Solves the model; the model stays as it is and can be extended and solved again.
 *
 * `proven` is true when no point that keeps all rows exactly is better than `bound`, which was
 * computed with rounding to the safe side, and x has this value: objective and bound differ by at
 * most 2e-9 of the value (and 1e-13 of the largest term of the objective; where variables times
 * rows exceed 4,000, 1e-11 of the largest term of the bound). x of a proven answer misses a row by
 * at most 1e-9 of the row's largest term or right-hand side in a linear program; in a program with
 * integers by at most 2^-50 where the row has integer variables only, and by 2^-48 in other rows
 * (2^-42 where variables times rows exceed 4,000). Other points miss rows by at most 1e-6 of that.
 * Integer variables are whole numbers within their bounds.
 *
 * Programs with integers: up to 10,000 variables times rows the own branch and bound comes first,
 * else lp_solve, whose point the own one then has to prove. It gives up after about a second of
 * work, or in a program with more than 400,000 variables times rows; the answer is HV_LP_FEASIBLE
 * then. With a `gap` the search may end early: an answer within the gap is HV_LP_FEASIBLE, and
 * `bound` says how far it may be off.
 *
 * Errors: HV_EINTERNAL only when lp_solve refuses the model (numbers from 1e30 on) and the own
 * branch and bound has no answer either; outcomes are not errors.
 */
enum hv_status hv_lp_solve(const struct hv_lp *lp, const struct hv_lp_limits *limits,
                           struct hv_lp_result *out, struct hv_err *err) HV_NODISCARD;
/** Frees the arrays of a result. */
void hv_lp_result_free(struct hv_lp_result *r);

/** An interval; an infinity where it does not end, HV_UNKNOWN where a limit came first. */
struct hv_lp_range {
    double from, till;
};
/** Ranges in which the numbers of a model may change, each alone. Owner: hv_lp_ranges_free. */
struct hv_lp_ranges {
    size_t n_vars, n_rows;
    struct hv_lp_range *cost; /**< n_vars: objective coefficients for which x stays optimal */
    struct hv_lp_range *rhs;  /**< n_rows: right-hand sides for which the duals stay the prices */
    bool complete;            /**< no end is HV_UNKNOWN */
};
/**
 * Sensitivity of a solved linear program.
 *
 * lp_solve's own ranges depend on the basis it ends with and are not used. Every end is the optimum
 * of a program of its own (x fixed and the duals free, or the other way round, with complementary
 * slackness), solved by hv_lp_solve with duals that prove it: the ranges are those of the point and
 * of the prices, also where the model is degenerate. An end more than 1e5 times the number or
 * the largest of its kind away counts as infinite; ends are exact to about 1e-9 of that. 2 ·
 * (n_vars + n_rows) solves; the limits are for all together.
 * @param r  a proven answer of this model
 * Errors: HV_EUSAGE for a model with integer variables or an answer that is not proven.
 */
enum hv_status hv_lp_ranges(const struct hv_lp *lp, const struct hv_lp_result *r,
                            const struct hv_lp_limits *limits, struct hv_lp_ranges *out,
                            struct hv_err *err) HV_NODISCARD;
/** Frees the arrays. */
void hv_lp_ranges_free(struct hv_lp_ranges *r);

/**
 * Appends the model in LP format (lp_solve's dialect: `min: …; r1: …; int …;`), variables x1, x2, …
 * Written here; lp_solve's own writer is not used.
 */
void hv_lp_write(const struct hv_lp *lp, struct hv_str *out);
/**
 * Appends the model in free MPS format (read by glpsol --freemps, cbc, lp_solve -fmps), rows r1,
 * r2, … and columns x1, x2, …; a maximum is written as the minimum of the negated objective.
 */
void hv_lp_write_mps(const struct hv_lp *lp, struct hv_str *out);

/** Appends the version of lp_solve ("5.5.2.8"). */
void hv_lp_library(struct hv_str *out);
/** The version of GMP, which proves answers of linear programs. */
const char *hv_lp_exact_library(void);

#endif
