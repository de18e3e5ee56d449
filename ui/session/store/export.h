/** A plan of the session as the files of a program that runs or shows it. */
#ifndef HV_UI_SESSION_STORE_EXPORT_H
#define HV_UI_SESSION_STORE_EXPORT_H

#include "solver/base/json/json.h"
#include "solver/io/own/docs.h"
#include "solver/workload/target.h"

/**
 * Judges a plan and writes the files of target `t` into a folder. `tree` is the plan's (borrowed),
 * `in` the session's documents, `name` the row's. Errors: as hv_export_plan, HV_EIO.
 */
enum hv_status hv__export_row(const struct hv_inputs *in, const json_t *tree, const char *name,
                              enum hv_target_id t, const char *folder,
                              struct hv_err *err) HV_NODISCARD;

#endif
