/* Puts a host for plugins together: the sandbox, the API tables, the hints. */
#include "scripting/plugin/plugin_host.h"
#include "scripting/api/table.h"
#include "scripting/plugin/hint_int.h"

enum hv_status hv_plugin_host_new(struct hv_host **out, const struct hv_host_limits *limits,
                                  struct hv_err *err)
{
    struct hv_host_limits full = *limits;

    full.open_api = hv_api_open;
    full.hint = hv__hint;
    return hv_host_new(out, &full, err);
}
