/*
 * The globals of a plugin: an allow-list of Lua's own functions, in which functions are replaced
 * that would show an address, depend on hash order or a clock, or run without the hook. `hv` is
 * filled in scripting/api.
 *
 * Traps closed here: table.sort and pairs of stock Lua depend on addresses or the clock for some
 * inputs;
 * `%p` and `%s` of string.format show addresses; finalizers run with hooks off; the string
 * metatable is shared by every plugin of the state.
 */
#include "scripting/host/sandbox_int.h"

#include <stdlib.h>
#include <string.h>

#define MASTER     "hv.globals"
#define COPY_DEPTH 4

/* Texts without addresses */

const char *hv__tolstring(lua_State *L, int i, size_t *n)
{
    i = lua_absindex(L, i);
    if (luaL_callmeta(L, i, "__tostring")) {
        if (lua_type(L, -1) != LUA_TSTRING) {
            luaL_error(L, "'__tostring' must return a string");
        }
        return lua_tolstring(L, -1, n);
    }
    int t = lua_type(L, i);
    if (t == LUA_TSTRING || t == LUA_TNUMBER || t == LUA_TBOOLEAN || t == LUA_TNIL) {
        return luaL_tolstring(L, i, n);
    }
    if (luaL_getmetafield(L, i, "__name") != LUA_TSTRING) {
        lua_pushstring(L, lua_typename(L, t));
    }
    return lua_tolstring(L, -1, n);
}

static int safe_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    hv__tolstring(L, 1, NULL);
    return 1;
}

int hv__print(lua_State *L)
{
    struct hv_host *h = hv__host(L);
    luaL_Buffer b;
    int n = lua_gettop(L);

    hv__check_stop(L);
    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        if (i > 1) {
            luaL_addchar(&b, ' ');
        }
        hv__tolstring(L, i, NULL);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    if (h->limits.log != NULL) {
        h->limits.log(h->limits.ctx, lua_tostring(L, -1));
    }
    return 0;
}

/** string.format: `%p` is refused, other values reach `%s` as texts without addresses. */
static int safe_format(lua_State *L)
{
    const char *f = luaL_checkstring(L, 1);
    int n = lua_gettop(L);

    for (; *f != '\0'; f++) {
        if (*f != '%') {
            continue;
        }
        f += 1 + strspn(f + 1, "-+ #0123456789.");
        if (*f == 'p') {
            return luaL_error(L, "format '%%p' would show an address and is not available");
        }
        if (*f == '\0') {
            break;
        }
    }
    for (int i = 2; i <= n; i++) {
        if (lua_type(L, i) > LUA_TSTRING || lua_type(L, i) == LUA_TLIGHTUSERDATA) {
            hv__tolstring(L, i, NULL);
            lua_replace(L, i);
        }
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, 1);
    return 1;
}

/* Functions replaced */

/** math.random with the host's generator; same forms as Lua's own. */
static int seeded_random(lua_State *L)
{
    struct hv_host *h = hv__host(L);
    lua_Integer lo = 1, hi;

    if (lua_gettop(L) == 0) {
        lua_pushnumber(L, hv_rng_double(&h->rng));
        return 1;
    }
    if (lua_gettop(L) == 1) {
        hi = luaL_checkinteger(L, 1);
    } else {
        lo = luaL_checkinteger(L, 1);
        hi = luaL_checkinteger(L, 2);
    }
    luaL_argcheck(L, lo <= hi, lua_gettop(L) == 1 ? 1 : 2, "interval is empty");
    uint64_t width = (uint64_t)hi - (uint64_t)lo;
    uint64_t r = width == UINT64_MAX ? hv_rng_u64(&h->rng) : hv_rng_below(&h->rng, width + 1);
    lua_pushinteger(L, (lua_Integer)((uint64_t)lo + r));
    return 1;
}

/** setmetatable without finalizers (they run with hooks off) and weak tables (they depend on the
 * collector). */
static int safe_setmetatable(lua_State *L)
{
    static const char *const refused[] = {"__gc", "__mode"};

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    for (size_t i = 0; lua_istable(L, 2) && i < HV_COUNT(refused); i++) {
        lua_pushstring(L, refused[i]);
        if (lua_rawget(L, 2) != LUA_TNIL) {
            return luaL_error(L, "metatables with %s are not available", refused[i]);
        }
        lua_pop(L, 1);
    }
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL) {
        return luaL_error(L, "cannot change a protected metatable");
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/*
 * An error raised by the hook reaches a message handler while hooks are still off, so a handler
 * that loops would never end: once the run has to end, handlers written in Lua are not called any
 * more.
 */
static int guarded_handler(lua_State *L)
{
    if (hv__host(L)->killed != NULL) {
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static int return_all(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    return lua_gettop(L);
}

/** Upvalue: Lua's own xpcall. */
static int safe_xpcall(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, guarded_handler, 1);
    lua_replace(L, 2);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, return_all);
    return lua_gettop(L);
}

/** Resumes the coroutine in upvalue 1 through Lua's resume in upvalue 2; a dead coroutine is never
 * closed. */
static int wrapped_step(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 2);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    if (lua_toboolean(L, 1)) {
        return lua_gettop(L) - 1;
    }
    hv__check_stop(L);
    lua_settop(L, 2);
    return lua_error(L);
}

/**
 * coroutine.wrap without Lua's closing of dead coroutines, because their pending close handlers
 * would run with hooks off. Upvalues: Lua's create and resume.
 */
static int safe_wrap(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushcclosure(L, wrapped_step, 2);
    return 1;
}

/* The master table */

/** Copies the named members of the library table at the top into a new table and sets it in the
 * master below. */
static void keep_members(lua_State *L, const char *library, const char *const *names)
{
    lua_newtable(L);
    for (; *names != NULL; names++) {
        lua_getfield(L, -2, *names);
        lua_setfield(L, -2, *names);
    }
    lua_remove(L, -2);
    lua_setfield(L, -2, library);
}

static void set_member(lua_State *L, const char *library, const char *name, lua_CFunction f)
{
    lua_getfield(L, -1, library);
    lua_pushcfunction(L, f);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

static void open_libraries(lua_State *L)
{
    static const char *const string_names[] = {
        "byte", "char",    "find", "gmatch", "gsub", "len",      "lower",  "match",
        "rep",  "reverse", "sub",  "upper",  "pack", "packsize", "unpack", NULL};
    static const char *const table_names[] = {"concat", "insert", "move", "pack",
                                              "remove", "unpack", NULL};
    static const char *const math_names[] = {
        "abs",  "acos", "asin", "atan", "ceil",       "cos",  "deg",        "exp",  "floor",
        "fmod", "huge", "log",  "max",  "maxinteger", "min",  "mininteger", "modf", "pi",
        "rad",  "sin",  "sqrt", "tan",  "tointeger",  "type", "ult",        NULL};
    static const char *const utf8_names[] = {"char", "charpattern", "codepoint", "codes",
                                             "len",  "offset",      NULL};
    static const char *const coroutine_names[] = {"create", "isyieldable", "resume", "running",
                                                  "status", "wrap",        "yield",  NULL};
    static const struct {
        const char *name;
        lua_CFunction open;
        const char *const *members;
    } libraries[] = {{"string", luaopen_string, string_names},
                     {"table", luaopen_table, table_names},
                     {"math", luaopen_math, math_names},
                     {"utf8", luaopen_utf8, utf8_names},
                     {"coroutine", luaopen_coroutine, coroutine_names}};

    for (size_t i = 0; i < HV_COUNT(libraries); i++) {
        luaL_requiref(L, libraries[i].name, libraries[i].open, 0);
        keep_members(L, libraries[i].name, libraries[i].members);
    }
}

/** Base functions worth keeping as they are. */
static void open_base(lua_State *L)
{
    static const char *const names[] = {"assert",   "error",  "getmetatable", "ipairs",   "pcall",
                                        "rawequal", "rawget", "rawlen",       "rawset",   "select",
                                        "tonumber", "type",   "xpcall",       "_VERSION", NULL};
    static const luaL_Reg own[] = {{"tostring", safe_tostring},         {"print", hv__print},
                                   {"pairs", hv__sorted_pairs},         {"next", hv__sorted_next},
                                   {"setmetatable", safe_setmetatable}, {NULL, NULL}};

    luaL_requiref(L, "_G", luaopen_base, 0);
    for (const char *const *n = names; *n != NULL; n++) {
        lua_getfield(L, -1, *n);
        lua_setfield(L, -3, *n);
    }
    lua_pop(L, 1);
    luaL_setfuncs(L, own, 0);
}

/** Replaces xpcall and coroutine.wrap of the master table at the top. */
static void seal_calls(lua_State *L)
{
    lua_getfield(L, -1, "xpcall");
    lua_pushcclosure(L, safe_xpcall, 1);
    lua_setfield(L, -2, "xpcall");
    lua_getfield(L, -1, "coroutine");
    lua_getfield(L, -1, "create");
    lua_getfield(L, -2, "resume");
    lua_pushcclosure(L, safe_wrap, 2);
    lua_setfield(L, -2, "wrap");
    lua_pop(L, 1);
}

/** string.format and the metatable of strings, whose methods are ours and cannot be changed. */
static void seal_strings(lua_State *L)
{
    lua_getfield(L, -1, "string");
    luaL_requiref(L, "string", luaopen_string, 0);
    lua_getfield(L, -1, "format");
    lua_pushcclosure(L, safe_format, 1);
    lua_setfield(L, -3, "format");
    lua_pop(L, 1);
    lua_pushliteral(L, "");
    lua_createtable(L, 0, 2);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, -5) != 0;) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_settable(L, -4);
    }
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 2);
}

void hv__sandbox_open(lua_State *L, void (*open_api)(lua_State *L))
{
    lua_newtable(L);
    open_base(L);
    open_libraries(L);
    set_member(L, "table", "sort", hv__stable_sort);
    set_member(L, "math", "random", seeded_random);
    seal_calls(L);
    seal_strings(L);
    lua_newtable(L);
    lua_setfield(L, LUA_REGISTRYINDEX, HV__API_NAMES);
    lua_newtable(L);
    if (open_api != NULL) {
        open_api(L);
    }
    lua_setfield(L, -2, "hv");
    lua_setfield(L, LUA_REGISTRYINDEX, MASTER);
}

/** Pushes a deep copy of the table at t (tables inside tables, to a fixed depth). */
static void push_copy(lua_State *L, int t, int depth)
{
    t = lua_absindex(L, t);
    luaL_checkstack(L, 8, NULL);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, t) != 0;) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        if (lua_istable(L, -1) && depth > 1) {
            push_copy(L, -1, depth - 1);
            lua_remove(L, -2);
        }
        lua_rawset(L, -4);
    }
}

void hv__env_push(lua_State *L, const char *folder, const char *label)
{
    lua_getfield(L, LUA_REGISTRYINDEX, MASTER);
    push_copy(L, -1, COPY_DEPTH);
    lua_remove(L, -2);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "_G");
    lua_pushvalue(L, -1);
    lua_newtable(L);
    lua_pushstring(L, folder);
    lua_pushstring(L, label);
    lua_pushcclosure(L, hv__require, 4);
    lua_setfield(L, -2, "require");
}
