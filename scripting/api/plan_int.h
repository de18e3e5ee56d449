/** Plan handles (api_plan.c). Includes Lua. */
#ifndef HV_SCRIPTING_API_PLAN_INT_H
#define HV_SCRIPTING_API_PLAN_INT_H

#include "scripting/host/host_int.h"
#include "scripting/host/run_state.h"
#include "solver/io/own/docs.h"

/** A plan handle: in Lua a userdata of this. */
struct hv__plan {
    struct hv_plan_doc doc;
    uint32_t generation; /**< of the host when it was made */
};
#define HV__PLAN "hv.plan"
/** Metatable of a userdata json_t *: the tree is released with it, also after a Lua error. */
#define HV__TREE "hv.tree"

/** The plan at argument i; raises an error when it is none or stale. */
struct hv__plan *hv__plan_at(lua_State *L, int i);
/** Builds a plan from the table (or takes the handle) at i; pushes the handle and returns it. */
struct hv__plan *hv__plan_make(lua_State *L, int i);

#endif
