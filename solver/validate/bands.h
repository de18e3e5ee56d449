/**
 * Bands of predictions: how far off they are, by class of devices, width of the number format and
 * sort of model, from rows whose source had no part in the fit (hv_validation_predict_left_out).
 *
 * The score of a row is |log(predicted / measured)|, divided by what its exposed exchange
 * multiplies a band with (eval/verdict/band.h). Rows of one source, class and sort of model are a
 * group; software and network are the same in it, so groups and not rows are drawn at random: each
 * weighs the same, and half for every one of class, width and sort in which it differs from what is
 * asked for. Half a band is the weighted quantile of the scores at the level c · (1 + 1 / 2K) for a
 * cover of c and K effective groups, by Kish's formula: with groups of one row 1 + 1 / K would be
 * exact (Dunn, Wasserman, Ramdas, Distribution-free prediction sets for two-layer hierarchical
 * models, 2022), with rows drawn one by one 1, and about half of the variance is between groups.
 *
 * Predictions of two kinds are kept apart: by a fit of the class on other sources, and by a similar
 * class or all other classes.
 */
#ifndef HV_SOLVER_VALIDATE_BANDS_H
#define HV_SOLVER_VALIDATE_BANDS_H

#include "solver/validate/validate.h"

/** How many of the left-out rows lie in bands made without their source. */
struct hv_validation_cover {
    size_t n, n_held;         /**< rows with a band; those that it holds */
    size_t n_own, n_own_held; /**< of these, predicted by a fit of their class on other sources */
    double mean_half;         /**< mean half width of the bands, as a logarithm */
};

/**
 * Half bands of all rows, each from rows of other sources, as logarithms: `half` [n_rows]. A row
 * has none (HV_UNKNOWN) where it is not predicted by a fit without its source, or no other source
 * has a row of its kind of prediction. O(groups · rows · log rows).
 */
void hv_validation_bands(const struct hv_validation *v, const struct hv_prediction *left_out,
                         double *half, struct hv_validation_cover *out);

/**
 * Half bands of a class of devices for its calibration file (without the part of exposed exchange):
 * from all rows that were predicted by a fit of their class on other sources. Where only one source
 * measured the class, also from what the shipped fit on it misses there. `class_name` NULL: those
 * of devices without a class, from rows predicted by fits of other classes. An entry without any
 * row stays as it is. O(rows · log rows).
 */
void hv_validation_class_errors(const struct hv_validation *v, const struct hv_prediction *left_out,
                                const struct hv_prediction *shipped, const char *class_name,
                                double out[HV_ERROR_N]);

#endif
