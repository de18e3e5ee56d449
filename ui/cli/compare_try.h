/** What the runner-up would gain from single choices of the winner: tried, not guessed. */
#ifndef HV_UI_CLI_COMPARE_TRY_H
#define HV_UI_CLI_COMPARE_TRY_H

#include "solver/base/str.h"
#include "solver/io/own/docs.h"
#include <jansson.h>

/** A plan and who made it. */
struct hv_compare_plan {
    const char *strategy;
    const json_t *plan; /**< with `simulated` */
};

/**
 * Gives the second plan one choice of the first at a time (schedule, synchronisation, micro-batch,
 * recomputation, sharding of states), judges it again, and appends a sentence about the one that
 * helps most, or that none does. Nothing where the two have no such choice that differs. A few
 * evaluations.
 */
void hv_cli_compare_try(const struct hv_inputs *in, const struct hv_compare_plan *first,
                        const struct hv_compare_plan *second, struct hv_str *out);

#endif
