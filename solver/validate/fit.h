/**
 * Fitting of device classes to published measurements, and prediction of rows by fits without the
 * rows' source.
 *
 * Per class the objective is the mean over sources (inside a source: over its groups of one device,
 * width and sort of model) of the mean |log(predicted / measured)|, plus a weak pull towards
 * the fit of the similar class, else the typical values of solver/inventory/calibration, which are
 * not fitted on these rows. First the numbers of dense models are fitted on dense rows, then those
 * of experts on mixtures. Plans and memory do not depend on the numbers, so every row's plan is
 * built once.
 */
#ifndef HV_SOLVER_VALIDATE_FIT_H
#define HV_SOLVER_VALIDATE_FIT_H

#include "solver/validate/validate.h"

/** A class fitted without one of its sources. */
struct hv_class_without {
    const char *source;
    struct hv_calibration fit;
};

/** The fits of one class of devices. */
struct hv_class_fit {
    struct hv_calibration all;           /**< fit on all rows; `source` gives their origin */
    double uncertainty[HV_CALIBRATED_N]; /**< one standard deviation of the logarithms of `all` */
    double error_before,
        error_after; /**< the objective's error part, with the shipped numbers and with `all` */
    struct hv_class_without *without; /**< one per source, where there are at least two */
    size_t n_without;
    const char **sources; /**< that measured the class */
    size_t n_sources, n_rows;
    size_t n_calls; /**< evaluations of all rows of the class */
};

/** Inputs of the fits. */
struct hv_fit_request {
    const struct hv_calibration *classes; /**< shipped: names, similar classes, error_before */
    size_t n_classes;
    bool leave_out; /**< fit also without each source */
};

/**
 * Fits every class that has a timed row: `out` holds n_classes entries, those without rows with
 * n_rows 0. `shipped`: predictions of all rows, for the recomputation they took. Leaves the
 * clusters of `v` with fitted numbers that are valid as long as `arena`. Errors: HV_ENO when a plan
 * cannot be built. Time: evaluations of the class's distinct rows × (parameters + steps) for the
 * fit on all, and × steps for every left-out source.
 */
enum hv_status hv_validation_fit(struct hv_validation *v, const struct hv_prediction *shipped,
                                 const struct hv_fit_request *what, struct hv_arena *arena,
                                 struct hv_class_fit *out, struct hv_err *err) HV_NODISCARD;

/**
 * Replaces iteration times, and with them exposed_frac: a row whose class other sources measured
 * too is predicted by the fit without its source; else by the similar class, fitted without that
 * source; else by the generic fit, the mean of the other classes' fits (without the row's source
 * where they know it; geometric where the generic value is not 0). A row for which there is no fit
 * at all keeps its time, and so do rows of several kinds, rows that no fit uses
 * (hv_validation_row.held_out) and rows without a measured or predicted time.
 */
enum hv_status hv_validation_predict_left_out(struct hv_validation *v,
                                              const struct hv_class_fit *fits, size_t n_fits,
                                              struct hv_arena *arena, struct hv_prediction *io,
                                              struct hv_err *err) HV_NODISCARD;

#endif
