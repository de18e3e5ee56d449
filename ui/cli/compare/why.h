/** Why the first strategy of a comparison is first, in words. */
#ifndef HV_UI_CLI_COMPARE_WHY_H
#define HV_UI_CLI_COMPARE_WHY_H

#include "solver/base/json/json.h"
#include "solver/base/str.h"
#include "solver/workload/job.h"

/** A strategy and the `simulated` member of its plan. */
struct hv_compare_side {
    const char *strategy;
    const json_t *simulated;
};

/** Objective value of a training plan from its figures (hv_eval_worth); HUGE_VAL where it is not
 * timed. O(1). */
double hv_cli_compare_worth(const struct hv_objective *o, const json_t *simulated);
/**
 * The same for two serving plans: tokens per second or their price, requests in flight, time per
 * token, stages. Nothing where a figure is missing. O(1).
 */
void hv_cli_compare_serving(const struct hv_objective *o, const struct hv_compare_side *first,
                            const struct hv_compare_side *second, struct hv_str *out);
/**
 * Appends a sentence or two: by how much `first` is ahead of `second` in what the job minimises, on
 * which causes of the breakdown it spends less time and on which more, and how many devices both
 * use. Nothing where a figure is missing. O(causes).
 */
void hv_cli_compare_why(const struct hv_objective *o, const struct hv_compare_side *first,
                        const struct hv_compare_side *second, struct hv_str *out);

/** Why a plan is first without a comparison with the second: no reason to report; no plan is within
 * the limits of the objective and it is closest; it is the only exact plan, the only one within the
 * limits, or the only one. */
enum hv_compare_alone {
    HV_COMPARE_NO_WORD,
    HV_COMPARE_OVER,
    HV_COMPARE_EXACT,
    HV_COMPARE_WITHIN,
    HV_COMPARE_ONLY
};
/** Appends that reason as a sentence; for HV_COMPARE_OVER also the excess over the limits. O(1). */
void hv_cli_compare_alone(const struct hv_objective *o, const struct hv_compare_side *first,
                          enum hv_compare_alone why, struct hv_str *out);

#endif
