/** What an objective wants of a judged plan: which figure is minimised, and within which limits. */
#ifndef HV_SOLVER_EVAL_VERDICT_OBJECTIVE_H
#define HV_SOLVER_EVAL_VERDICT_OBJECTIVE_H

#include "solver/eval/verdict/verdict.h"

/** Is what the objective wants to be small known of the plan? A price or a power may be missing. */
bool hv_eval_has_figure(const struct hv_objective *o, const struct hv_metrics *m);
/** What of a judged plan the objective wants to be small: seconds, USD per million tokens, or
 * joules; seconds where a price or a power is missing. */
double hv_eval_figure(const struct hv_objective *o, const struct hv_metrics *m);
/** Is the plan within the objective's price and deadline? */
bool hv_eval_within(const struct hv_objective *o, const struct hv_metrics *m);
/** What ranks plans: hv_eval_figure within the limits; behind all those, by their seconds, plans
 * whose figure is not known; behind these, by how far they miss them, plans that miss limits, so
 * that the plan nearest to them comes first. */
double hv_eval_worth(const struct hv_objective *o, const struct hv_metrics *m);
/** Worth of a second where the figure is not known: more than any figure is. */
#define HV_EVAL_NO_FIGURE 1e20
/** Worth of a plan that misses limits by nothing. */
#define HV_EVAL_OVER 1e32
/** Key of that figure among those of `simulated`. */
const char *hv_eval_figure_key(const struct hv_objective *o);

#endif
