/** Internals of the sandbox: globals that have their own files. */
#ifndef HV_SCRIPTING_HOST_SANDBOX_INT_H
#define HV_SCRIPTING_HOST_SANDBOX_INT_H

#include "scripting/host/host_int.h"

/** `pairs` and `next` in sorted order of the keys, table.sort as a stable merge sort. */
int hv__sorted_pairs(lua_State *L);
int hv__sorted_next(lua_State *L);
int hv__stable_sort(lua_State *L);
/** `require`. Upvalues: environment, table of loaded modules, folder or nil, its name in
 * messages. */
int hv__require(lua_State *L);

#endif
