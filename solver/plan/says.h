/**
 * Can a target say a plan? The check of a plan against a row of the table of targets
 * (solver/workload/target.h): every property that the target has no words for, with its stage.
 */
#ifndef HV_SOLVER_PLAN_SAYS_H
#define HV_SOLVER_PLAN_SAYS_H

#include "solver/plan/plan.h"
#include "solver/workload/target.h"

/** Stage of what holds for the whole plan. */
#define HV_UNSAID_PLAN ((size_t)-1)

/** A property that the target cannot say. */
struct hv_unsaid {
    enum hv_says what;
    size_t replica, stage; /**< entry and stage number, or HV_UNSAID_PLAN both */
    const char *key;       /**< of the stage, or of the plan: "tp", "schedule.name" */
    const char *text;      /**< "tp 2 beside tp 1 of stage 0" */
};

/**
 * Lists what target `t` cannot say of the plan, stage by stage; returns the number, 0: it can say
 * all of it. A property is listed once per stage. Texts live in `arena`. Plans that break rules of
 * the format (solver/plan/check.h) may be given: what they break is not listed here. O(stages ·
 * (devices + layers)).
 */
size_t hv_plan_unsaid(const struct hv_plan *p, enum hv_target_id t, struct hv_arena *arena,
                      struct hv_unsaid **out);
/** True where target `t` can say the plan: hv_plan_unsaid is 0. */
bool hv_target_says(enum hv_target_id t, const struct hv_plan *p);
/** Appends "stage 1 (replica entry 0): tp 2 beside …", or the text alone where it holds for the
 * whole plan. The entry is named where the plan has several. */
void hv_unsaid_text(const struct hv_plan *p, const struct hv_unsaid *u, struct hv_str *out);
/** Sum over all replica entries of count × dp of their first stage: data-parallel ranks of plans
 * whose stages are alike. O(replicas). */
int64_t hv_plan_data_ranks(const struct hv_plan *p);

#endif
