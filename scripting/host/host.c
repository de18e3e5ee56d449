/*
 * Lua state of a host, and the one way to call Lua from C (protected, with file:line and
 * traceback). Not for the limits (limits.c), the globals (sandbox.c) and what plugins can call
 * (api_*.c).
 */
#include "scripting/host/host_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MEMORY_BYTES ((size_t)256 << 20)

/** Keeps the levels of a traceback that name Lua code; none where only C was running. */
static void keep_traceback(struct hv_host *h, const char *text)
{
    size_t levels = 0;

    for (const char *line = text; *line != '\0';) {
        size_t n = strcspn(line, "\n");
        bool empty = strncmp(line, "\t[C]: in ?", 10) == 0;
        if (!empty) {
            hv_str_addf(&h->traceback, "%s%.*s", h->traceback.n > 0 ? "\n" : "", (int)n, line);
            levels += line != text;
        }
        line += n + (line[n] == '\n');
    }
    if (levels == 0) {
        hv_str_clear(&h->traceback);
    }
}

/** Message handler: keeps text and traceback in the host, outside Lua's memory. */
static int on_error(lua_State *L)
{
    struct hv_host *h = hv__host(L);
    size_t n = 0;

    hv_str_clear(&h->message);
    hv_str_clear(&h->traceback);
    if (lua_type(L, 1) == LUA_TSTRING) {
        const char *text = lua_tolstring(L, 1, &n);
        hv_str_add(&h->message, text, n);
    } else {
        hv_str_addf(&h->message, "(error value is a %s)", luaL_typename(L, 1));
    }
    luaL_traceback(L, L, NULL, 1);
    keep_traceback(h, lua_tostring(L, -1));
    return 1;
}

/** Where "file:line:" begins in a line of text; false when there is none. `rest` = what follows. */
static bool find_position(const char *text, char *file, size_t cap, unsigned *line,
                          const char **rest)
{
    size_t end = strcspn(text, "\n");

    for (const char *colon = strchr(text, ':'); colon != NULL && colon < text + end;
         colon = strchr(colon + 1, ':')) {
        size_t digits = strspn(colon + 1, "0123456789"), n = (size_t)(colon - text);
        if (digits == 0 || colon[1 + digits] != ':' || n >= cap) {
            continue;
        }
        memcpy(file, text, n);
        file[n] = '\0';
        *line = (unsigned)strtoul(colon + 1, NULL, 10);
        *rest = colon + 2 + digits + strspn(colon + 2 + digits, " ");
        return true;
    }
    return false;
}

/** Splits "file:line: text"; an error of a C function gets the position of its caller from the
 * traceback. */
static void fill_err(const struct hv_host *h, struct hv_err *err, enum hv_status s)
{
    const char *text = hv_str_cstr(&h->message), *trace = hv_str_cstr(&h->traceback), *ignored;
    char file[256];
    unsigned line = 0;

    bool found = find_position(text, file, sizeof file, &line, &text);
    for (trace = strchr(trace, '\n'); !found && trace != NULL; trace = strchr(trace, '\n')) {
        trace += 1 + strspn(trace + 1, "\t");
        found = find_position(trace, file, sizeof file, &line, &ignored);
    }
    if (found) {
        hv_err_at(err, s, file, line, 0, "%s", text);
    } else if (h->origin_file[0] != '\0') {
        hv_err_at(err, s, h->origin_file, h->origin_line, 0, "%s", text);
    } else {
        hv_err_set(err, s, "%s", text);
    }
}

static enum hv_status report(struct hv_host *h, int code, struct hv_err *err)
{
    enum hv_status s = h->killed != NULL && h->stopped ? HV_ESTOPPED : HV_EPLUGIN;

    if (code == LUA_ERRMEM) {
        hv_str_clear(&h->traceback);
        return hv_err_set(err, s, "the plugin needs more than the %zu MiB of memory it may use",
                          h->limits.memory_bytes >> 20);
    }
    if (h->message.n == 0) {
        hv_str_adds(&h->message, "error in the error handler");
    }
    struct hv_str hint = {0};
    if (h->limits.hint != NULL) {
        h->limits.hint(h, hv_str_cstr(&h->message), &hint);
    }
    if (hint.n > 0) {
        hv_str_addf(&h->message, "; %s", hv_str_cstr(&hint));
    }
    hv_str_free(&hint);
    fill_err(h, err, s);
    return s;
}

enum hv_status hv__call(lua_State *L, int n_args, int n_results, struct hv_err *err)
{
    struct hv_host *h = hv__host(L);
    int handler = lua_gettop(L) - n_args;

    hv_str_clear(&h->message);
    lua_pushcfunction(L, on_error);
    lua_insert(L, handler);
    hv__host_watch(L);
    int code = lua_pcall(L, n_args, n_results, handler);
    lua_remove(L, handler);
    if (code == LUA_OK) {
        return HV_OK;
    }
    lua_pop(L, 1);
    return report(h, code, err);
}

void hv__blame(lua_State *L)
{
    struct hv_host *h = hv__host(L);
    lua_Debug ar;

    if (!lua_isfunction(L, -1) || lua_iscfunction(L, -1)) {
        return;
    }
    lua_pushvalue(L, -1);
    if (lua_getinfo(L, ">S", &ar) != 0 && ar.linedefined > 0) {
        (void)snprintf(h->origin_file, sizeof h->origin_file, "%s",
                       ar.source[0] == '@' ? ar.source + 1 : ar.short_src);
        h->origin_line = (unsigned)ar.linedefined;
    }
}

enum hv_status hv__guard(struct hv_host *h, lua_CFunction f, void *arg, struct hv_err *err)
{
    h->origin_file[0] = '\0';
    lua_pushcfunction(h->L, f);
    lua_pushlightuserdata(h->L, arg);
    return hv__call(h->L, 1, 0, err);
}

enum hv_status hv__load(lua_State *L, const char *text, size_t n, const char *name, int env,
                        struct hv_err *err)
{
    struct hv_host *h = hv__host(L);
    char chunk[512];

    env = lua_absindex(L, env);
    snprintf(chunk, sizeof chunk, "@%s", name);
    int code = luaL_loadbufferx(L, text, n, chunk, "t");
    if (code != LUA_OK) {
        hv_str_clear(&h->message);
        hv_str_clear(&h->traceback);
        hv_str_adds(&h->message, lua_tostring(L, -1));
        lua_pop(L, 1);
        return report(h, code, err);
    }
    lua_pushvalue(L, env);
    lua_setupvalue(L, -2, 1);
    return hv__call(L, 0, 1, err);
}

int hv__raise(lua_State *L, const struct hv_err *err)
{
    char text[1400];
    return luaL_error(L, "%s", hv_err_format(err, text, sizeof text));
}

static int open_sandbox(lua_State *L)
{
    lua_settop(L, 0);
    hv__sandbox_open(L, hv__host(L)->limits.open_api);
    return 0;
}

enum hv_status hv_host_new(struct hv_host **out, const struct hv_host_limits *limits,
                           struct hv_err *err)
{
    struct hv_host *h = hv_xcalloc(1, sizeof *h);

    *out = NULL;
    h->limits = *limits;
    if (h->limits.memory_bytes == 0) {
        h->limits.memory_bytes = DEFAULT_MEMORY_BYTES;
    }
    h->generation = 1;
    hv__host_rearm(h);
    h->L = lua_newstate(hv__limited_alloc, h);
    if (h->L == NULL) {
        hv_host_free(h);
        return hv_err_set(err, HV_ELIMIT, "the memory limit of %zu bytes is too small for Lua",
                          limits->memory_bytes);
    }
    memcpy(lua_getextraspace(h->L), &h, sizeof h);
    enum hv_status s = hv__guard(h, open_sandbox, NULL, err);
    if (s != HV_OK) {
        hv_host_free(h);
        return s;
    }
    *out = h;
    return HV_OK;
}

void hv_host_free(struct hv_host *h)
{
    if (h == NULL) {
        return;
    }
    if (h->L != NULL) {
        lua_close(h->L);
    }
    hv_arena_free(&h->arena);
    hv_str_free(&h->message);
    hv_str_free(&h->traceback);
    free(h);
}

/** Where `require` of an environment looks first. */
struct place {
    const char *folder, *label;
};

static int push_env(lua_State *L)
{
    const struct place *p = lua_touserdata(L, 1);
    hv__env_push(L, p->folder, p->label);
    return 1;
}

enum hv_status hv__env(lua_State *L, const char *folder, const char *label, struct hv_err *err)
{
    struct place place = {folder, label};
    lua_pushcfunction(L, push_env);
    lua_pushlightuserdata(L, &place);
    return hv__call(L, 1, 1, err);
}

const char *hv_host_traceback(const struct hv_host *h)
{
    return hv_str_cstr(&h->traceback);
}

size_t hv_host_used_bytes(const struct hv_host *h)
{
    return h->used_bytes;
}

const char *hv_lua_library(void)
{
    return LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE;
}
