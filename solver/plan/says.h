/**
 * Can a target say a plan, can a runtime run it? The check of a plan against the limits of a row of
 * the tables of targets and runtimes (solver/workload): every property beyond them, with its stage.
 */
#ifndef HV_SOLVER_PLAN_SAYS_H
#define HV_SOLVER_PLAN_SAYS_H

#include "solver/plan/plan.h"
#include "solver/workload/runtime.h"

/** Stage of what holds for the whole plan. */
#define HV_UNSAID_PLAN ((size_t)-1)

/** A property beyond the limits. */
struct hv_unsaid {
    enum hv_says what;
    size_t replica, stage; /**< entry and stage number, or HV_UNSAID_PLAN both */
    const char *key;       /**< of the stage, or of the plan: "tp", "schedule.name" */
    const char *text;      /**< "tp 2 beside tp 1 of stage 0" */
};

/**
 * Lists what of the plan is beyond the limits, stage by stage; returns the number, 0: nothing. A
 * property is listed once per stage. Texts live in `arena`. Plans that break rules of the format
 * (solver/plan/check.h) may be given: what they break is not listed here. O(stages · (devices +
 * layers)).
 */
size_t hv_plan_beyond(const struct hv_plan *p, const struct hv_says_limits *can,
                      struct hv_arena *arena, struct hv_unsaid **out);
/** hv_plan_beyond by what target `t` can say. */
size_t hv_plan_unsaid(const struct hv_plan *p, enum hv_target_id t, struct hv_arena *arena,
                      struct hv_unsaid **out);
/** hv_plan_beyond by what runtime `r` can run. */
size_t hv_plan_not_run(const struct hv_plan *p, enum hv_runtime r, struct hv_arena *arena,
                       struct hv_unsaid **out);
/** True where target `t` can say the plan: hv_plan_unsaid is 0. */
bool hv_target_says(enum hv_target_id t, const struct hv_plan *p);
/** True where runtime `r` can run the plan: hv_plan_not_run is 0. */
bool hv_runtime_runs(enum hv_runtime r, const struct hv_plan *p);
/** Appends "stage 1 (replica entry 0): tp 2 beside …", or the text alone where it holds for the
 * whole plan. The entry is named where the plan has several. */
void hv_unsaid_text(const struct hv_plan *p, const struct hv_unsaid *u, struct hv_str *out);
/** Sum over all replica entries of count × dp of their first stage: data-parallel ranks of plans
 * whose stages are alike. O(replicas). */
int64_t hv_plan_data_ranks(const struct hv_plan *p);

#endif
