/**
 * An independent check of the optimum of a chain, by lp_solve.
 *
 * Inside cut windows every run of layers with a value within a limit is an arc from one boundary to
 * the next; a partition within the limit is a path. lp_solve computes the maximum flow along the
 * arcs, a linear program with coefficients 0 and ±1 whose optimum is 0 or 1 without integer
 * variables. It solves two programs: the flow must be 0 at the limit optimum · (1 - 1e-6), and 1 at
 * the optimum. A flow of 0 is proven by the duals of the program, which are checked here; a flow of
 * 1 is followed and its runs are evaluated.
 */
#ifndef HV_SOLVER_OPTIM_CHAIN_CERTIFY_H
#define HV_SOLVER_OPTIM_CHAIN_CERTIFY_H

#include "solver/base/str.h"
#include "solver/optim/chain/partition.h"

/** Result of the check. */
enum hv_certify_outcome {
    HV_CERTIFY_AGREES,     /**< nothing below the optimum, and a partition at it */
    HV_CERTIFY_OPEN,       /**< a limit ended it, or there are more than 2^18 runs in the windows */
    HV_CERTIFY_CONTRADICTS /**< a partition below the optimum was found, or none at it */
};

/** True where the check applies: fixed order and number of stages, max only, no tables. */
bool hv_certify_applies(const struct hv_partition *p);

/**
 * Checks a feasible result; appends one sentence with the proven statement to `text`.
 * @param limit_s  wall seconds for each of the two programs; 0 = 1 s
 */
enum hv_certify_outcome hv_certify_chain(const struct hv_partition *p,
                                         const struct hv_partition_result *r, double limit_s,
                                         struct hv_str *text);

/**
 * Appends the chain as an integer program in LP format, or in free MPS format: the least maximum
 * over prefix cuts in the windows of the optimum, for other solvers.
 * Errors: HV_EUSAGE when the model cannot express the instance (hv_certify_applies).
 */
enum hv_status hv_certify_write_lp(const struct hv_partition *p,
                                   const struct hv_partition_result *r, bool mps,
                                   struct hv_str *out, struct hv_err *err) HV_NODISCARD;

#endif
