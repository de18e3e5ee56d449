/** Counterfactual gain of the second plan from single choices of the first, by evaluation. */
#ifndef HV_UI_CLI_COMPARE_TRY_H
#define HV_UI_CLI_COMPARE_TRY_H

#include "solver/base/str.h"
#include "solver/io/own/docs.h"
#include <jansson.h>

/** A plan and its strategy. */
struct hv_compare_plan {
    const char *strategy;
    const json_t *plan; /**< with `simulated` */
};

/**
 * Gives the second plan one choice of the first at a time (schedule, synchronisation, micro-batch,
 * recomputation, sharding of states), evaluates it again, and appends a sentence about the choice
 * with the largest gain, or that there is none. Nothing where the first plan is not faster, or no
 * choice that differs can be evaluated. A few evaluations.
 */
void hv_cli_compare_try(const struct hv_inputs *in, const struct hv_compare_plan *first,
                        const struct hv_compare_plan *second, struct hv_str *out);

#endif
