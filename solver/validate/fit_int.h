/** Shared by the files behind fit.h only: numbers in the fit's coordinates, and similar classes. */
#ifndef HV_SOLVER_VALIDATE_FIT_INT_H
#define HV_SOLVER_VALIDATE_FIT_INT_H

#include "solver/validate/fit.h"

/** No number moves farther from its typical value than this many spreads. */
#define HV__FIT_FARTHEST 12.0

/**
 * Coordinates of a fit: logarithms in units of a spread, from the typical values. The shares of
 * 8-bit products stand relative to those of 16-bit products, and 4-bit relative to 8-bit: formats
 * of one card share its power and its memory, so that what is measured in one moves the others.
 */
void hv__fit_to_x(const double *v, double *x);
/** The inverse, clamped to the parameters' bounds. */
void hv__fit_to_v(const double *x, double *v);
/** What a change of x[k] by 1 does to the logarithm of number k. */
double hv__fit_spread(int k);
/** The class of a row's devices. */
const struct hv_calibration *hv__fit_class_of(const struct hv_validation_row *row);
/** The plan of a row, with the recomputation that its prediction took. */
enum hv_status hv__fit_plan(const struct hv_validation_row *row, const struct hv_prediction *taken,
                            struct hv_plan **out, struct hv_err *err) HV_NODISCARD;

/** Where a fit of a class is pulled to, and how hard. */
struct hv__fit_prior {
    double x[HV_CALIBRATED_N];
    double pull[HV_CALIBRATED_N]; /**< 1: by the spread of the parameter */
};

/**
 * The prior of class `c` without `source` (NULL: with all): the numbers of the similar class where
 * it has a fit, else typical values; and the best product of the measured table of its chip. Chips
 * of one process need about the same energy for a product: one with fewer watts per FLOP/s of its
 * data sheet sustains as much less of it; cards of the very same chip also as much more. How much
 * of an exchange is hidden is half a matter of software: between the similar class and the typical
 * value. O(rows).
 */
void hv__fit_prior_of(const struct hv_validation *v, const struct hv_calibration *c,
                      const char *source, const struct hv_class_fit *fits, size_t n,
                      struct hv__fit_prior *out);

/** Numbers of that prior; false where the class has neither similar class nor table. */
bool hv__fit_relative(const struct hv_validation *v, const struct hv_calibration *c,
                      const char *source, const struct hv_class_fit *fits, size_t n,
                      struct hv_calibration *out);

#endif
