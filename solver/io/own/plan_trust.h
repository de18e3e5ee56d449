/** How far a plan beside others is simulated whole, and which plans are equal. */
#ifndef HV_SOLVER_IO_OWN_PLAN_TRUST_H
#define HV_SOLVER_IO_OWN_PLAN_TRUST_H

#include "solver/base/str.h"
#include "solver/inventory/cluster.h"
#include <jansson.h>

/**
 * The plan as a text that is the same for equal plans on this cluster: what it does, defaults left
 * out, without strategy, claim and verdict. NULL where it is no plan of one job, or cannot be read.
 * Owner: free.
 */
char *hv_plan_same_text(struct hv_cluster *cluster, const json_t *plan);
/** Appends "whole", or "~n" for n approximated parts of the plan. */
void hv_plan_trust(size_t n_approximated, struct hv_str *out);

#endif
