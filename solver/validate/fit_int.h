/** Shared by the files behind fit.h only: numbers in the fit's coordinates, and similar classes. */
#ifndef HV_SOLVER_VALIDATE_FIT_INT_H
#define HV_SOLVER_VALIDATE_FIT_INT_H

#include "solver/validate/fit.h"

/** No number moves farther from its typical value than this many spreads. */
#define HV__FIT_FARTHEST 12.0

/** A number by its logarithm, in units of its spread, from its typical value. */
double hv__fit_to_x(int k, double v);
/** The inverse, clamped to the parameter's bounds. */
double hv__fit_to_v(int k, double x);
/** The class of a row's devices. */
const struct hv_calibration *hv__fit_class_of(const struct hv_validation_row *row);
/** The plan of a row, with the recomputation that its prediction took. */
enum hv_status hv__fit_plan(const struct hv_validation_row *row, const struct hv_prediction *taken,
                            struct hv_plan **out, struct hv_err *err) HV_NODISCARD;

/**
 * Numbers of the class similar to `c`, fitted without `source` (NULL: on all rows). Chips of one
 * process need about the same energy for a product: one with fewer watts per FLOP/s of its data
 * sheet sustains as much less of it. False where there is no such class or fit. O(rows).
 */
bool hv__fit_relative(const struct hv_validation *v, const struct hv_calibration *c,
                      const char *source, const struct hv_class_fit *fits, size_t n,
                      struct hv_calibration *out);

#endif
