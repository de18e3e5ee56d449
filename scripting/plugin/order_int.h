/** The call of order(p) inside a state that runs already. Includes Lua. */
#ifndef HV_SCRIPTING_PLUGIN_ORDER_INT_H
#define HV_SCRIPTING_PLUGIN_ORDER_INT_H

#include "scripting/host/host_int.h"
#include "scripting/plugin/order.h"

/**
 * Calls order(p) of the request's plugin with the options table at the top of the stack, which it
 * replaces by two results. False when the first is nil. Raises errors.
 */
bool hv__call_order(lua_State *L, const struct hv_order_request *r);

#endif
