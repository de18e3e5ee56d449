/**
 * A second opinion on the optimum of a chain: cut windows and a checked lp_solve model.
 *
 * The model has one binary per (cut, layer inside the cut's window), the stage rows with explicit
 * slacks. It is asked twice: no partition may exist below the optimum · (1 - 1e-6), and one must
 * exist at the optimum. What is proven so rests on the windows and lp_solve together.
 */
#ifndef HV_SOLVER_OPTIM_CERTIFY_H
#define HV_SOLVER_OPTIM_CERTIFY_H

#include "solver/base/str.h"
#include "solver/optim/partition.h"

/** What the second opinion came to. */
enum hv_certify_outcome {
    HV_CERTIFY_AGREES,     /**< nothing below the optimum, and a partition at it */
    HV_CERTIFY_OPEN,       /**< a limit ended it, or lp_solve gave no usable answer */
    HV_CERTIFY_CONTRADICTS /**< a partition below the optimum was found, or none at it */
};

/** True for what the model can express: fixed order and number of stages, max only, no tables. */
bool hv_certify_applies(const struct hv_partition *p);

/**
 * Checks a feasible result; appends one sentence about what was proven to `text`.
 * @param limit_s  wall seconds for each of the two questions; 0 = 1 s
 */
enum hv_certify_outcome hv_certify_chain(const struct hv_partition *p,
                                         const struct hv_partition_result *r, double limit_s,
                                         struct hv_str *text);

/**
 * Appends the integer program of the second question (a partition at the optimum) in LP format,
 * or in free MPS format.
 * Errors: HV_EUSAGE when the model cannot express the instance (hv_certify_applies).
 */
enum hv_status hv_certify_write_lp(const struct hv_partition *p,
                                   const struct hv_partition_result *r, bool mps,
                                   struct hv_str *out, struct hv_err *err) HV_NODISCARD;

#endif
