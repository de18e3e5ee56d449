/*
 * Adds a table of C functions to `hv`: each function is wrapped so that it frees its scratch
 * memory, and its name is listed for the reference. The tables are in scripting/api.
 */
#include "scripting/host/host_int.h"

/**
 * Calls the function in upvalue 1, then frees the scratch memory it took: the inner loop of a
 * plugin makes thousands of calls, and their memory must not stay until the run ends. After an
 * error it stays until then.
 */
static int call_with_scratch(lua_State *L)
{
    struct hv_host *h = hv__host(L);
    struct hv_arena_mark mark = hv_arena_mark(&h->arena);
    int n = lua_tocfunction(L, lua_upvalueindex(1))(L);

    hv_arena_rewind(&h->arena, mark);
    return n;
}

/** Appends a name to the list of functions that the reference has to describe. */
static void add_name(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, HV__API_NAMES);
    lua_pushstring(L, name);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

void hv__api_names(lua_State *L, const char *object, const luaL_Reg *methods)
{
    for (; methods->name != NULL; methods++) {
        add_name(L, lua_pushfstring(L, "%s:%s", object, methods->name));
        lua_pop(L, 1);
    }
}

/** Adds the rows to the table at the top, each wrapped in call_with_scratch. */
static void add_rows(lua_State *L, const char *table, const luaL_Reg *rows)
{
    for (; rows->name != NULL; rows++) {
        add_name(L, lua_pushfstring(L, "hv.%s%s%s", table != NULL ? table : "",
                                    table != NULL ? "." : "", rows->name));
        lua_pop(L, 1);
        lua_pushcfunction(L, rows->func);
        lua_pushcclosure(L, call_with_scratch, 1);
        lua_setfield(L, -2, rows->name);
    }
}

void hv__api_add(lua_State *L, const char *table, const luaL_Reg *rows)
{
    if (table == NULL) {
        add_rows(L, NULL, rows);
        return;
    }
    if (lua_getfield(L, -1, table) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, table);
    }
    add_rows(L, table, rows);
    lua_pop(L, 1);
}
