/**
 * Plans made by C code as JSON trees: exactly the file's keys in their usual order, defaults left
 * out, devices as the shortest addresses. Building the tree again gives an equal plan.
 */
#ifndef HV_SOLVER_IO_OWN_PLAN_WRITE_H
#define HV_SOLVER_IO_OWN_PLAN_WRITE_H

#include "solver/base/str.h"
#include "solver/plan/plan.h"
#include <jansson.h>

/**
 * The tree of a plan, with "format" first. Inputs (`cluster`, `model`, `job`) are not in the plan
 * struct: give their names or NULL (left out). Owner: json_decref. O(size of the plan).
 */
json_t *hv_plan_to_json(const struct hv_plan *p, const char *cluster, const char *model,
                        const char *job);
/** The tree of a flow: [from, to, tokens per second] in a list. Owner: json_decref. */
json_t *hv_flow_to_json(const struct hv_plan_flow *flow, size_t n);
/** The tree of one stage. Owner: json_decref. */
json_t *hv_stage_to_json(const struct hv_cluster *c, const struct hv_stage *s);
/** Text of a recompute mask: "none", "selective", "full" or units joined by `+`; appended to out.
 */
void hv_recompute_format(unsigned mask, struct hv_str *out);
/** An option's text as a JSON value: number, true, false or list when it reads as one, else text.
 */
json_t *hv_option_to_json(const char *text);

#endif
