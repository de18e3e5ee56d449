/*
 * Calls from inside a solver back into the plugin: a Lua function as a function of numbers, and the
 * test whether the run has to end. Neither raises Lua errors, so a solver can free what it holds.
 */
#include "scripting/host/host_int.h"

#include <math.h>

bool hv__is_cancelled(void *ctx)
{
    const struct hv_host *h = ctx;
    return (h->limits.cancel != NULL && h->limits.cancel(h->limits.ctx)) ||
           (h->limits.deadline_s > 0 && hv__elapsed_s(h) > h->limits.deadline_s);
}

/** Numbers that become one Lua list. */
struct numbers {
    const double *x;
    size_t n;
};

/** Calls the function at 1 with the list of the numbers at 2. Runs protected: it allocates. */
static int call_with_list(lua_State *L)
{
    const struct numbers *v = lua_touserdata(L, 2);

    lua_settop(L, 1);
    hv__push_numbers(L, v->x, v->n);
    lua_call(L, 1, 1);
    return 1;
}

enum hv_status hv__call_number(lua_State *L, const double *x, size_t n, bool as_list, double *out,
                               struct hv_err *err)
{
    struct numbers v = {x, n};
    enum hv_status s = HV_OK;
    int function = lua_gettop(L);

    if (!lua_checkstack(L, (int)n + 4)) {
        return hv_err_set(err, HV_EPLUGIN, "the stack has no room for a callback");
    }
    if (as_list) {
        lua_pushcfunction(L, call_with_list);
    }
    lua_pushvalue(L, function);
    if (as_list) {
        lua_pushlightuserdata(L, &v);
    }
    for (size_t k = 0; !as_list && k < n; k++) {
        lua_pushinteger(L, (lua_Integer)x[k]);
    }
    if (lua_pcall(L, as_list ? 2 : (int)n, 1, 0) != LUA_OK) {
        /* a number as error value would have to be turned into a text, which takes memory */
        const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        s = hv_err_set(err, HV_EPLUGIN, "%s", text != NULL ? text : "error in a callback");
    } else if (lua_isnil(L, -1)) {
        *out = HUGE_VAL;
    } else if (lua_type(L, -1) == LUA_TNUMBER && !isnan(lua_tonumber(L, -1))) {
        *out = lua_tonumber(L, -1);
    } else {
        s = hv_err_set(err, HV_EPLUGIN, "a callback must return a number or nil, found %s",
                       luaL_typename(L, -1));
    }
    lua_pop(L, 1);
    return s;
}
