/** Orders inside of the scripting room: from Lua's stack to tokens. Includes Lua. */
#ifndef HV_SCRIPTING_API_ORDER_INT_H
#define HV_SCRIPTING_API_ORDER_INT_H

#include "scripting/api/order.h"
#include "scripting/host/host_int.h"

/** Takes the list of lists of tokens at absolute index `at` into the arena; raises errors. */
struct hv_order_text *hv__take_order(lua_State *L, int at, const char *fn, int32_t ranks,
                                     struct hv_arena *a);
/**
 * Calls order(p) of the request's plugin with the options table at the top of the stack, which it
 * replaces by two results. False when the first is nil. Raises errors.
 */
bool hv__call_order(lua_State *L, const struct hv_order_request *r);

#endif
