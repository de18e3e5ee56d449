/** Verdicts as JSON: the `simulated` and `violations` members of a plan file. */
#ifndef HV_SOLVER_IO_OWN_VERDICT_FILE_H
#define HV_SOLVER_IO_OWN_VERDICT_FILE_H

#include "solver/base/json/json.h"
#include "solver/eval/eval.h"
#include "solver/eval/stress/stress.h"

/** Goodput of a plan under failures. Owner: caller. */
json_t *hv_goodput_json(const struct hv_goodput *g);
/** Elements that a rank sends in an iteration by kind of exchange, as `simulated.traffic`; of rings
 * also in one hop. Owner: caller. */
json_t *hv_traffic_json(const struct hv_traffic *x);
/** The `simulated` object. Unknown figures are null. Owner: caller (json_decref). */
json_t *hv_verdict_simulated(const struct hv_verdict *v);
/**
 * A shallow copy of a plan's tree with `simulated` set (and `violations`, where requested). Members
 * `cluster`, `model` and `job` stay as they are. Owner: caller.
 */
json_t *hv_plan_with_verdict(const json_t *plan, const struct hv_verdict *v, bool violations);

/** What a plan loses where a run turns out worse. Caller: json_decref. */
json_t *hv_stress_json(const struct hv_stress *s);

#endif
