/** Handling of the plans of a run: they are judged, ranked, kept and reported (run_offer.c). */
#ifndef HV_SCRIPTING_API_OFFER_INT_H
#define HV_SCRIPTING_API_OFFER_INT_H

#include "scripting/host/host_int.h"
#include "scripting/host/run_state.h"
#include "solver/eval/eval.h"

/** How a plan of a run is judged. */
struct hv__judging {
    bool bound;        /**< also the lower bound */
    size_t iterations; /**< see hv_eval_options */
};

/** Judges a plan; counts as one evaluation. Errors: of hv_eval. */
enum hv_status hv__judge(struct hv__run *r, const struct hv_plan *p, const struct hv__judging *how,
                         struct hv_arena *arena, struct hv_verdict *out,
                         struct hv_err *err) HV_NODISCARD;
/** Judges the plan and keeps it when it is the best so far; then emits an incumbent event.
 * Errors: HV_ENO when it uses a lost device, and those of reading and judging a plan. */
enum hv_status hv__offer(struct hv__run *r, json_t *plan, struct hv_err *err) HV_NODISCARD;
/** Sends an event (takes the reference). */
void hv__emit(struct hv__run *r, json_t *line);
/** True where this share of the time limit is used (1: the run should end). */
bool hv__run_is_late(struct hv__run *r, double share);
/** A text (arena) where one of the plan's devices is lost, else NULL. Raises no error. */
const char *hv__uses_lost(const struct hv__run *r, const struct hv_plan *p, struct hv_arena *a);

#endif
