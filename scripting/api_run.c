/*
 * hv.log, hv.random, hv.stopping, hv.progress, hv.incumbent, hv.bound, hv.strategy: the run itself.
 * What belongs to a run only does nothing while a plugin is merely looked at.
 */
#include "scripting/host_int.h"

/***
Writes a line to the log of the run; arguments are joined by spaces.
@function hv.log
@param ... any values
@usage hv.log("templates", #templates)
*/
static int api_log(lua_State *L)
{
    struct hv_host *h = hv__host(L);
    luaL_Buffer b;
    int n = lua_gettop(L);

    hv__check_stop(L);
    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            luaL_addchar(&b, ' ');
        hv__tolstring(L, i, NULL);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    if (h->limits.log != NULL)
        h->limits.log(h->limits.ctx, lua_tostring(L, -1));
    return 0;
}

/***
A seeded random number: without argument in [0, 1), with n a whole number from 1 to n.
@function hv.random
@tparam[opt] integer n upper end
@treturn number
*/
static int api_random(lua_State *L)
{
    struct hv_host *h = hv__host(L);

    if (lua_isnoneornil(L, 1)) {
        lua_pushnumber(L, hv_rng_double(&h->rng));
        return 1;
    }
    lua_Integer n = luaL_checkinteger(L, 1);
    luaL_argcheck(L, n >= 1, 1, "expected a whole number of at least 1");
    lua_pushinteger(L, 1 + (lua_Integer)hv_rng_below(&h->rng, (uint64_t)n));
    return 1;
}

void hv__api_run(lua_State *L)
{
    static const luaL_Reg rows[] = {{"log", api_log}, {"random", api_random}, {NULL, NULL}};
    hv__api_add(L, NULL, rows);
}
