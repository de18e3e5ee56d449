/** A host as plugins get it: the sandbox with all of `hv`, and hints for errors. */
#ifndef HV_SCRIPTING_PLUGIN_PLUGIN_HOST_H
#define HV_SCRIPTING_PLUGIN_PLUGIN_HOST_H

#include "scripting/host/host.h"

/** As hv_host_new, with open_api and hint of the limits filled in. */
enum hv_status hv_plugin_host_new(struct hv_host **out, const struct hv_host_limits *limits,
                                  struct hv_err *err) HV_NODISCARD;

#endif
