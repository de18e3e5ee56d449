/** Summaries of measured traces (hetviz.trace/1), as `hetviz import` writes them. */
#ifndef HV_SOLVER_IO_OWN_TRACE_FILE_H
#define HV_SOLVER_IO_OWN_TRACE_FILE_H

#include "solver/base/json/json.h"

/** Checks a summary: known members, times of at least 0. Errors: HV_EINPUT with position. */
enum hv_status hv_trace_check(const struct hv_json *json, struct hv_err *err) HV_NODISCARD;

#endif
