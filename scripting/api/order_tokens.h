/** Orders written as Lua lists (order_tokens.c). Includes Lua. */
#ifndef HV_SCRIPTING_API_ORDER_TOKENS_H
#define HV_SCRIPTING_API_ORDER_TOKENS_H

#include "scripting/host/host_int.h"
#include "solver/sim/schedule/schedule.h"

/**
 * Copies the list of lists of tokens at absolute index `at` into the arena: one list per rank.
 * Raises errors that name `fn`.
 */
struct hv_order_text *hv__take_order(lua_State *L, int at, const char *fn, int32_t ranks,
                                     struct hv_arena *a);

#endif
