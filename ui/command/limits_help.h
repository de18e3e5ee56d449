/** Limits of targets and runtimes as text. */
#ifndef HV_UI_COMMAND_LIMITS_HELP_H
#define HV_UI_COMMAND_LIMITS_HELP_H

#include "solver/base/str.h"
#include "solver/workload/target.h"

/** Appends the properties of plans that are beyond the limits, after "cannot `verb`: ", and the
 * lists, each part behind "; ". Nothing where there is no limit. */
void hv_limits_add(const struct hv_says_limits *can, const char *verb, struct hv_str *out);

#endif
