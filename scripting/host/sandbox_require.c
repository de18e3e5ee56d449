/*
 * `require` for plugins: looks in the plugin's folder, then in share/lua, nowhere else. A dot in a
 * name is a folder: `require "data.x"` is data/x.lua. A chunk has the name of its file, so that
 * errors name the file. The other globals are in sandbox.c.
 */
#include "scripting/host/run_state.h"
#include "scripting/host/sandbox_int.h"
#include "solver/base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COMPILED     "hv.compiled"
#define MODULE_LIMIT ((size_t)1 << 20)
#define NAME_MAX_    64
#define LIBRARIES    "share/lua"
#define RENAMED_FILE LIBRARIES "/renamed.txt"
/* upvalues of hv__require */
#define UP_ENV    lua_upvalueindex(1)
#define UP_LOADED lua_upvalueindex(2)
#define UP_FOLDER lua_upvalueindex(3)
#define UP_LABEL  lua_upvalueindex(4)

/** Result of the search for a module. */
enum found { FOUND, NOWHERE, NO_FILE, OUTSIDE, UNREADABLE, TOO_LARGE };

/** Words of letters, digits and _ with single dots between them. */
static bool is_module_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    if (strlen(name) >= NAME_MAX_) {
        return false;
    }
    for (;;) {
        size_t n = strspn(name, letters);
        if (n == 0) {
            return false;
        }
        name += n;
        if (*name == '\0') {
            return true;
        }
        if (*name++ != '.') {
            return false;
        }
    }
}

/** Appends a module's file inside its folder: "data/x.lua". */
static void add_file_of(struct hv_str *out, const char *name)
{
    for (; *name != '\0'; name++) {
        hv_str_addc(out, *name == '.' ? '/' : *name);
    }
    hv_str_adds(out, ".lua");
}

/** True where the path, with symbolic links resolved, lies below the folder. */
static bool lies_below(const char *path, const char *folder)
{
    char *real_path = realpath(path, NULL), *real_folder = realpath(folder, NULL);
    bool below = false;

    if (real_path != NULL && real_folder != NULL) {
        size_t n = strlen(real_folder);
        below = strncmp(real_path, real_folder, n) == 0 &&
                (real_path[n] == '/' || (n > 0 && real_folder[n - 1] == '/'));
    }
    free(real_path);
    free(real_folder);
    return below;
}

/** Reads a module's file; `folder` is where it has to lie, or NULL. A pipe or a device is not
 * opened. */
static enum found read_module(const char *path, const char *folder, struct hv_str *text)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        return lstat(path, &st) == 0 ? UNREADABLE : NOWHERE;
    }
    if (!S_ISREG(st.st_mode)) {
        return NO_FILE;
    }
    if (folder != NULL && !lies_below(path, folder)) {
        return OUTSIDE;
    }
    if (hv_file_read_regular(path, text, NULL) != HV_OK) {
        return UNREADABLE;
    }
    return text->n > MODULE_LIMIT ? TOO_LARGE : FOUND;
}

/** Pushes the text and the chunk's name, both copied to the arena first: pushing may raise an error
 * of memory, and nothing on the heap would be freed then. */
static void push_found(lua_State *L, struct hv_str *text, struct hv_str *chunk)
{
    struct hv_host *h = hv__host(L);
    const char *kept_text = hv_arena_strndup(&h->arena, hv_str_cstr(text), text->n);
    const char *kept_chunk = hv_arena_strdup(&h->arena, hv_str_cstr(chunk));
    size_t n = text->n;

    hv_str_free(text);
    hv_str_free(chunk);
    lua_pushlstring(L, kept_text, n);
    lua_pushstring(L, kept_chunk);
}

/** Looks in the plugin's folder; pushes text and chunk name when the module is there. Raises an
 * error when it is there and cannot be used. */
static bool push_own(lua_State *L, const char *name)
{
    static const char *const why[] = {[NO_FILE] = "is not a regular file",
                                      [OUTSIDE] = "is a link out of the plugin's folder",
                                      [UNREADABLE] = "cannot be read",
                                      [TOO_LARGE] = "is larger than 1 MiB"};
    const char *folder = lua_tostring(L, UP_FOLDER), *label = lua_tostring(L, UP_LABEL);
    struct hv_str path = {0}, chunk = {0}, text = {0};

    if (folder == NULL) {
        return false;
    }
    hv_str_addf(&path, "%s/", folder);
    add_file_of(&path, name);
    hv_str_addf(&chunk, "@%s/", label != NULL ? label : folder);
    add_file_of(&chunk, name);
    enum found f = read_module(hv_str_cstr(&path), folder, &text);
    hv_str_free(&path);
    push_found(L, &text, &chunk);
    if (f == FOUND) {
        return true;
    }
    if (f != NOWHERE) {
        luaL_error(L, "module '%s': %s %s", name, lua_tostring(L, -1) + 1, why[f]);
    }
    lua_pop(L, 2);
    return false;
}

/** Looks in share/lua in the same way. */
static bool push_library(lua_State *L, const char *name)
{
    struct hv_str path = {0}, chunk = {0}, text = {0};

    hv_str_adds(&chunk, "@" LIBRARIES "/");
    add_file_of(&chunk, name);
    enum hv_status s = hv_data_path(&path, hv_str_cstr(&chunk) + 1, NULL);
    enum found f = s == HV_OK ? read_module(hv_str_cstr(&path), NULL, &text) : NOWHERE;
    hv_str_free(&path);
    push_found(L, &text, &chunk);
    if (f != FOUND) {
        lua_pop(L, 2);
    }
    return f == FOUND;
}

/** Raises the error for a module that was not found. RENAMED_FILE has lines "old name: new
 * name", or what became of the module. */
static int fail_nowhere(lua_State *L, const char *name)
{
    struct hv_str path = {0}, text = {0};
    size_t n = strlen(name);
    const char *now = NULL;

    if (hv_data_path(&path, RENAMED_FILE, NULL) == HV_OK &&
        read_module(hv_str_cstr(&path), NULL, &text) == FOUND) {
        const char *line = hv_str_cstr(&text);
        while (line != NULL && (strncmp(line, name, n) != 0 || line[n] != ':')) {
            line = strchr(line, '\n');
            line += line != NULL;
        }
        if (line != NULL) {
            line += n + 1 + strspn(line + n + 1, " ");
            now = hv_arena_strndup(&hv__host(L)->arena, line, strcspn(line, "\n"));
        }
    }
    hv_str_free(&path);
    hv_str_free(&text);
    if (now != NULL) {
        return luaL_error(L, "module '%s' has a new name: %s", name, now);
    }
    return luaL_error(L, "module '%s' is neither in the plugin's folder nor in share/lua", name);
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

/** Raises an error when the chunk of that name is being run further up: the module requires itself,
 * perhaps through others. */
static void check_loop(lua_State *L, const char *chunk)
{
    lua_Debug ar;

    for (int level = 1; lua_getstack(L, level, &ar) != 0; level++) {
        if (lua_getinfo(L, "S", &ar) != 0 && strcmp(ar.what, "main") == 0 &&
            strcmp(ar.source, chunk) == 0) {
            luaL_error(L, "%s requires itself, perhaps through other modules", chunk + 1);
        }
    }
}

/**
 * Replaces text and chunk name at the top by the module's main function. A text that this state has
 * compiled before is loaded in the form it got then; nothing but what we compiled gets there.
 */
static void compile(lua_State *L)
{
    int text = lua_gettop(L) - 1, key = text + 2, table = text + 3;
    const char *chunk = lua_tostring(L, text + 1);
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

/** Pushes the key under which a module is stored: separate keys for a plugin's modules and for
 * libraries, since a library sees libraries only, and for each job of a queue, since libraries
 * store prices. */
static void push_key(lua_State *L, const char *name, bool own, size_t i_job)
{
    lua_pushfstring(L, "%s%s@%d", own ? "./" : "", name, (int)i_job);
}

/** True where the caller of `require` is a library, which must not find a plugin's module of the
 * same name. */
static bool called_by_library(lua_State *L)
{
    lua_Debug ar;
    return lua_getstack(L, 1, &ar) != 0 && lua_getinfo(L, "S", &ar) != 0 &&
           strncmp(ar.source, "@" LIBRARIES "/", strlen("@" LIBRARIES "/")) == 0;
}

/** Runs the module whose text and chunk name are at the top; leaves its value there. */
static void run_module(lua_State *L)
{
    check_loop(L, lua_tostring(L, -1));
    compile(L);
    lua_pushvalue(L, UP_ENV);
    lua_setupvalue(L, -2, 1);
    lua_call(L, 0, 1);
    if (lua_isnil(L, -1)) {
        lua_pushboolean(L, 1);
        lua_replace(L, -2);
    }
}

/** Remembers the value at the top under the key. */
static void remember(lua_State *L, const char *name, bool own, size_t i_job)
{
    push_key(L, name, own, i_job);
    lua_pushvalue(L, -2);
    lua_rawset(L, UP_LOADED);
}

int hv__require(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const struct hv__run *run = hv__host(L)->run;
    size_t i_job = run != NULL ? run->i_job : 0;
    bool own = !called_by_library(L);

    lua_settop(L, 1);
    push_key(L, name, own, i_job);
    if (lua_rawget(L, UP_LOADED) != LUA_TNIL) {
        return 1;
    }
    if (!is_module_name(name)) {
        return fail_nowhere(L, name);
    }
    if (own && push_own(L, name)) {
        run_module(L);
        remember(L, name, true, i_job);
        return 1;
    }
    push_key(L, name, false, i_job);
    if (lua_rawget(L, UP_LOADED) == LUA_TNIL) {
        if (!push_library(L, name)) {
            return fail_nowhere(L, name);
        }
        run_module(L);
        remember(L, name, false, i_job);
    }
    if (own) {
        remember(L, name, true, i_job);
    }
    return 1;
}
