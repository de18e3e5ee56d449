/** Hints for errors of plugins. */
#ifndef HV_SCRIPTING_PLUGIN_HINT_INT_H
#define HV_SCRIPTING_PLUGIN_HINT_INT_H

#include "scripting/host/host.h"

/** Appends a hint for the author of a failing line, or nothing: hv_host_limits.hint. */
void hv__hint(const struct hv_host *h, const char *message, struct hv_str *out);

#endif
