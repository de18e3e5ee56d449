/**
 * Bounded robust least squares on numbers: Levenberg–Marquardt with finite differences, Huber
 * weights and a ridge towards prior values.
 *
 * Minimises Σ_i w_i · ρ(r_i(x)) + ½ Σ_k q_k · (x_k − prior_k)² over least ≤ x ≤ most, where ρ is
 * Huber's function: r²/2 up to the threshold δ and δ·(|r| − δ/2) beyond; with a small δ it is
 * practically the sum of absolute values. Deterministic: the same callback gives the same bytes.
 *
 * Sources: D. Marquardt, "An Algorithm for Least-Squares Estimation of Nonlinear Parameters"
 * (1963); P. Huber, "Robust Estimation of a Location Parameter" (1964); C. Broyden, "A Class of
 * Methods for Solving Nonlinear Simultaneous Equations" (1965), for the secant update between
 * Jacobians.
 */
#ifndef HV_SOLVER_OPTIM_CHOICE_FIT_H
#define HV_SOLVER_OPTIM_CHOICE_FIT_H

#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>

/** Residuals at x. Anything but HV_OK ends the fit with that status. */
typedef enum hv_status hv_fit_residuals_fn(void *ctx, const double *x, double *residuals,
                                           struct hv_err *err);

/** A problem. Arrays are borrowed. */
struct hv_fit {
    size_t n_params, n_residuals;
    const double *start;        /**< n_params; clipped into the bounds */
    const double *least, *most; /**< n_params; equal: the parameter stays fixed */
    const double *prior;        /**< n_params, or NULL: no ridge */
    const double *ridge;        /**< q, n_params; ignored without a prior */
    const double *weights;      /**< w ≥ 0, n_residuals, or NULL: 1. Residuals of weight 0 are
                                     ignored, even where they are NaN */
    double huber;               /**< δ; ≤ 0: plain squares */
    double step;                /**< of finite differences, in units of x; ≤ 0: 1e-5 */
    int max_jacobians;          /**< by finite differences, n_params calls each; ≥ 0 */
    int max_steps;              /**< trial steps, one call each */
    double tolerance;           /**< stop when a step gains less than this share; ≤ 0: 1e-8 */
    hv_fit_residuals_fn *residuals;
    void *ctx;
};

/** Result of a fit. Arrays belong to the caller. */
struct hv_fit_result {
    double *x;           /**< n_params: written */
    double *residuals;   /**< n_residuals at x: written */
    double *jacobian;    /**< n_residuals × n_params, rows of residuals: written; `known_jacobian`
                              makes it input too */
    bool known_jacobian; /**< `jacobian` holds (about) that at `start`: none is computed first */
    double objective, objective_at_start;
    int n_calls; /**< of the callback */
};

/**
 * Fits. Errors: the callback's; HV_ENO when a residual of positive weight is not finite at the
 * start (trial points with such residuals are refused, not an error). Time: calls + O(residuals ·
 * params² + params³) per step.
 */
enum hv_status hv_fit_solve(const struct hv_fit *f, struct hv_fit_result *out,
                            struct hv_err *err) HV_NODISCARD;

#endif
