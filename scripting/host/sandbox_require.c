/*
 * `require` for plugins: looks in the plugin's folder and in share/lua, nowhere else. Not for the
 * other globals (sandbox.c).
 */
#include "scripting/host/run_state.h"
#include "scripting/host/sandbox_int.h"
#include "solver/base/file.h"

#include <string.h>

#define COMPILED     "hv.compiled"
#define MODULE_LIMIT ((size_t)1 << 20)

static bool is_module_name(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n < 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

/** Reads NAME.lua from the folder or from share/lua as a Lua string; false when it is nowhere. */
static bool push_module_text(lua_State *L, const char *folder, const char *name)
{
    struct hv_str path = {0}, text = {0};
    enum hv_status s = HV_EIO;

    if (folder != NULL) {
        hv_str_addf(&path, "%s/%s.lua", folder, name);
        s = hv_file_read(hv_str_cstr(&path), &text, NULL);
    }
    if (s != HV_OK) {
        struct hv_str inside = {0};
        hv_str_addf(&inside, "share/lua/%s.lua", name);
        hv_str_clear(&path);
        hv_str_clear(&text);
        s = hv_data_path(&path, hv_str_cstr(&inside), NULL);
        if (s == HV_OK) {
            s = hv_file_read(hv_str_cstr(&path), &text, NULL);
        }
        hv_str_free(&inside);
    }
    bool ok = s == HV_OK && text.n <= MODULE_LIMIT;
    struct hv_host *h = hv__host(L);
    const char *kept = ok ? hv_arena_strndup(&h->arena, hv_str_cstr(&text), text.n) : NULL;
    size_t n = text.n;
    hv_str_free(&path);
    hv_str_free(&text);
    if (ok) {
        lua_pushlstring(L, kept, n);
    }
    return ok;
}

static int add_to_text(lua_State *L, const void *p, size_t n, void *text)
{
    (void)L;
    hv_str_add(text, p, n);
    return 0;
}

/** Pushes the function at the top in its binary form. */
static void push_binary(lua_State *L)
{
    struct hv_str text = {0};

    (void)lua_dump(L, add_to_text, &text, 0);
    /* in the arena, since pushing may raise a memory error */
    size_t n = text.n;
    const char *kept = hv_arena_copy(&hv__host(L)->arena, text.p, n, 1);
    hv_str_free(&text);
    lua_pushlstring(L, kept, n);
}

/** Pushes the table of compiled modules of this state: text with the module's name in front →
 * binary form. */
static void push_compiled(lua_State *L)
{
    if (lua_getfield(L, LUA_REGISTRYINDEX, COMPILED) == LUA_TTABLE) {
        return;
    }
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, COMPILED);
}

/**
 * Replaces the module's text at the top by its main function. A text that this state has compiled
 * before is loaded in the form it got then; nothing but what we compiled gets there.
 */
static void compile(lua_State *L, const char *name)
{
    int text = lua_gettop(L), key = text + 2, table = text + 3;
    const char *chunk = lua_pushfstring(L, "@lua/%s.lua", name);
    size_t n = 0;

    lua_pushvalue(L, text + 1);
    lua_pushvalue(L, text);
    lua_concat(L, 2);
    push_compiled(L);
    lua_pushvalue(L, key);
    bool known = lua_rawget(L, table) == LUA_TSTRING;
    const char *source = lua_tolstring(L, known ? -1 : text, &n);
    if (luaL_loadbufferx(L, source, n, chunk, known ? "b" : "t") != LUA_OK) {
        lua_error(L);
    }
    if (!known) {
        lua_pushvalue(L, key);
        lua_pushvalue(L, -2);
        push_binary(L);
        lua_remove(L, -2);
        lua_rawset(L, table);
    }
    lua_replace(L, text);
    lua_settop(L, text);
}

/** Under which a module is remembered: libraries remember prices, which each job of a queue has of
 * its own. */
static void push_key(lua_State *L, const char *name, size_t i_job)
{
    if (i_job > 0) {
        lua_pushfstring(L, "%s@%d", name, (int)i_job);
    } else {
        lua_pushstring(L, name);
    }
}

int hv__require(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const char *folder = lua_tostring(L, lua_upvalueindex(3));
    const struct hv__run *run = hv__host(L)->run;

    lua_settop(L, 1);
    push_key(L, name, run != NULL ? run->i_job : 0);
    if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) {
        return 1;
    }
    if (!is_module_name(name) || !push_module_text(L, folder, name)) {
        return luaL_error(L, "module '%s' is neither in the plugin's folder nor in share/lua",
                          name);
    }
    compile(L, name);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_setupvalue(L, -2, 1);
    lua_call(L, 0, 1);
    if (lua_isnil(L, -1)) {
        lua_pushboolean(L, 1);
        lua_replace(L, -2);
    }
    push_key(L, name, run != NULL ? run->i_job : 0);
    lua_pushvalue(L, -2);
    lua_rawset(L, lua_upvalueindex(2));
    return 1;
}
