/** Can a target launch the plan of a strategy? The answer of `export`, without its files. */
#ifndef HV_UI_CLI_COMPARE_LAUNCH_H
#define HV_UI_CLI_COMPARE_LAUNCH_H

#include "solver/base/str.h"
#include "solver/inventory/cluster.h"
#include "solver/workload/target.h"
#include <jansson.h>

/**
 * True where the target can say the plan (solver/plan/says.h) and the plan breaks no rule; limits
 * of the objective are none. Else appends the first reason to `why`, one line: what the target
 * cannot say with its stage, else the rule that is broken. `plan` is a plan document with
 * `violations`, as workers return it, on this cluster. O(stages · (devices + layers)).
 */
bool hv_cli_compare_launch(struct hv_cluster *cluster, const json_t *plan, enum hv_target_id target,
                           struct hv_str *why);

#endif
