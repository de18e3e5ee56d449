/** The member `claimed` of a plan file, for callers that write it without a plan. */
#ifndef HV_SOLVER_IO_OWN_PLAN_CLAIM_FILE_H
#define HV_SOLVER_IO_OWN_PLAN_CLAIM_FILE_H

#include "solver/base/status.h"
#include <jansson.h>

/**
 * Checks that the object is a valid `claimed` of a plan file. Errors: HV_EINPUT naming the key,
 * what was expected and what was found.
 */
enum hv_status hv_claim_check(const json_t *claim, struct hv_err *err) HV_NODISCARD;

#endif
