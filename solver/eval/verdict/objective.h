/** Objective figures of a judged plan: the figure to minimise, and the limits. */
#ifndef HV_SOLVER_EVAL_VERDICT_OBJECTIVE_H
#define HV_SOLVER_EVAL_VERDICT_OBJECTIVE_H

#include "solver/eval/verdict/verdict.h"

/** True where the figure to minimise is known for the plan. A price or a power may be missing. */
bool hv_eval_has_figure(const struct hv_objective *o, const struct hv_metrics *m);
/** The figure of a judged plan that the objective minimises: seconds, USD per million tokens, or
 * joules; seconds where a price or a power is missing. */
double hv_eval_figure(const struct hv_objective *o, const struct hv_metrics *m);
/** True where the plan is within the objective's price and deadline. */
bool hv_eval_within(const struct hv_objective *o, const struct hv_metrics *m);
/** Ranks plans: first plans within the limits, by hv_eval_figure; then plans whose figure is not
 * known, by their seconds; last plans that exceed limits, by the excess, so that the plan nearest
 * to the limits comes first. */
double hv_eval_worth(const struct hv_objective *o, const struct hv_metrics *m);
/** Rank value of a second where the figure is not known: larger than any figure. */
#define HV_EVAL_NO_FIGURE 1e20
/** Least rank value of a plan that exceeds limits. */
#define HV_EVAL_OVER 1e32
/** Key of that figure among those of `simulated`. */
const char *hv_eval_figure_key(const struct hv_objective *o);

#endif
