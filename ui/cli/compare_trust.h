/** How far a compared plan is simulated whole, and which rows have the same plan. */
#ifndef HV_UI_CLI_COMPARE_TRUST_H
#define HV_UI_CLI_COMPARE_TRUST_H

#include "solver/base/str.h"
#include "solver/io/own/docs.h"
#include <jansson.h>

/**
 * The plan as a text that is the same for equal plans: what it does, defaults left out, without
 * strategy, claim and verdict. NULL where it is no plan of one job, or cannot be read. Owner: free.
 */
char *hv_cli_plan_text(const struct hv_inputs *in, const json_t *plan);
/** Appends "whole", or "~n": so many parts of the plan are approximated. */
void hv_cli_trust(const json_t *plan, struct hv_str *out);

#endif
