/** What the files behind hv.opt.partition share; not for other modules. */
#ifndef HV_SCRIPTING_API_API_OPT_INT_H
#define HV_SCRIPTING_API_API_OPT_INT_H

#include "scripting/host/host_int.h"
#include "solver/optim/chain/partition.h"

/** Pushes an answer as a table. */
void hv__push_partition(lua_State *L, const struct hv_partition_result *r);
/** Returns nil and the reason (NULL: nothing fits) to Lua. */
int hv__push_no(lua_State *L, const char *reason);
/** hv.opt.partition with `ranks`: the table is at 1, the instance has been read and checked. */
int hv__opt_chunks(lua_State *L, const struct hv_partition *p);
/** hv.opt.partition with `replicas`: the table is at 1. */
int hv__opt_replicas(lua_State *L);

#endif
