/*
 * Values between Lua, C and JSON: fields of argument tables with error messages, arrays, trees.
 * Handles are made elsewhere.
 */
#include "scripting/host/host_int.h"
#include "solver/base/json/json.h"
#include "solver/base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX   40
#define LENGTH_MAX  ((lua_Unsigned)1 << 22)
#define SCRATCH_MAX ((size_t)1 << 30)

/* Lua → JSON. */

/** The order in which members of a plan file are usually written; others follow in byte order. */
static const char *const usual_order[] = {"format",      "strategy",
                                          "name",        "options",
                                          "cluster",     "model",
                                          "job",         "mode",
                                          "micro_batch", "replicas",
                                          "count",       "micro_batches",
                                          "stages",      "devices",
                                          "module",      "layers",
                                          "ops",         "embedding",
                                          "head",        "after",
                                          "tp",          "sequence_parallel",
                                          "cp",          "dp",
                                          "deal",        "shares",
                                          "ep",          "moe",
                                          "zero",        "degrees",
                                          "recompute",   "offload",
                                          "in_flight",   "schedule",
                                          "sync",        "kind",
                                          "key",         "type",
                                          "default"};

static size_t usual_rank(const char *key)
{
    for (size_t i = 0; i < HV_COUNT(usual_order); i++) {
        if (strcmp(usual_order[i], key) == 0) {
            return i;
        }
    }
    return HV_COUNT(usual_order);
}

static int compare_members(const void *pa, const void *pb)
{
    const char *a = *(const char *const *)pa, *b = *(const char *const *)pb;
    size_t ra = usual_rank(a), rb = usual_rank(b);

    return ra != rb ? (ra < rb ? -1 : 1) : strcmp(a, b);
}

static json_t *tree_of(lua_State *L, int i, int depth, struct hv_err *err);

static json_t *array_of(lua_State *L, int t, lua_Unsigned n, int depth, struct hv_err *err)
{
    json_t *a = json_array();

    for (lua_Unsigned i = 1; i <= n; i++) {
        lua_rawgeti(L, t, (lua_Integer)i);
        json_t *v = tree_of(L, lua_gettop(L), depth + 1, err);
        lua_pop(L, 1);
        if (v == NULL) {
            hv_err_context(err, "[%d]", (int)i);
            json_decref(a);
            return NULL;
        }
        json_array_append_new(a, v);
    }
    return a;
}

/** Names of the members in usual order (borrowed from the table); NULL when a key is not a name. */
static const char **member_names(lua_State *L, int t, size_t *n, struct hv_err *err)
{
    size_t i = 0;

    *n = 0;
    for (lua_pushnil(L); lua_next(L, t) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_rawlen(L, -2) == 0) {
            hv_err_set(err, HV_EPLUGIN,
                       "a table is either a list or has names as keys, found a key of type %s",
                       luaL_typename(L, -2));
            lua_pop(L, 2);
            return NULL;
        }
        ++*n;
    }
    const char **names = hv_xcalloc(*n + 1, sizeof *names);
    for (lua_pushnil(L); lua_next(L, t) != 0; lua_pop(L, 1)) {
        names[i++] = lua_tostring(L, -2);
    }
    qsort(names, *n, sizeof *names, compare_members);
    return names;
}

static json_t *object_of(lua_State *L, int t, int depth, struct hv_err *err)
{
    size_t n = 0;
    const char **names = member_names(L, t, &n, err);

    if (names == NULL) {
        return NULL;
    }
    json_t *o = json_object();
    for (size_t i = 0; i < n && o != NULL; i++) {
        /* lua_getfield may allocate a string; walking the members again does not */
        for (lua_pushnil(L); lua_next(L, t) != 0 && lua_tostring(L, -2) != names[i];) {
            lua_pop(L, 1);
        }
        json_t *v = tree_of(L, lua_gettop(L), depth + 1, err);
        lua_pop(L, 2);
        if (v == NULL || json_object_set_new(o, names[i], v) != 0) {
            hv_err_context(err, "%s", names[i]);
            json_decref(o);
            o = NULL;
        }
    }
    free(names);
    return o;
}

static json_t *tree_of(lua_State *L, int i, int depth, struct hv_err *err)
{
    size_t n = 0;

    if (depth > DEPTH_MAX || !lua_checkstack(L, 8)) {
        hv_err_set(err, HV_EPLUGIN, "tables are nested too deeply (a cycle?)");
        return NULL;
    }
    switch (lua_type(L, i)) {
    case LUA_TBOOLEAN:
        return json_boolean(lua_toboolean(L, i));
    case LUA_TNUMBER:
        return hv_json_num(lua_tonumber(L, i));
    case LUA_TSTRING: {
        const char *text = lua_tolstring(L, i, &n);
        json_t *s = strlen(text) == n ? json_stringn(text, n) : NULL;
        if (s == NULL) {
            hv_err_set(err, HV_EPLUGIN, "expected UTF-8 text without NUL");
        }
        return s;
    }
    case LUA_TTABLE: {
        lua_Unsigned len = lua_rawlen(L, i);
        if (len > LENGTH_MAX) {
            hv_err_set(err, HV_EPLUGIN, "the list is too long");
            return NULL;
        }
        lua_pushnil(L);
        bool empty = lua_next(L, i) == 0;
        if (!empty) {
            lua_pop(L, 2);
        }
        return empty || len > 0 ? array_of(L, i, len, depth, err) : object_of(L, i, depth, err);
    }
    default:
        hv_err_set(err, HV_EPLUGIN, "expected a number, a text, a boolean or a table, found %s%s",
                   luaL_typename(L, i),
                   lua_isnil(L, i) ? " (a hole in a list: table.remove leaves none)" : "");
        return NULL;
    }
}

json_t *hv__to_json(lua_State *L, int i, struct hv_err *err)
{
    return tree_of(L, lua_absindex(L, i), 0, err);
}

void hv__push_json(lua_State *L, const json_t *v)
{
    const char *key;
    json_t *member;

    luaL_checkstack(L, 6, NULL);
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        lua_createtable(L, 0, (int)json_object_size(v));
        /* jansson's iterators want a non-const tree but do not change it */
        for (void *it = json_object_iter((json_t *)(uintptr_t)v); it != NULL;
             it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
            key = json_object_iter_key(it);
            member = json_object_iter_value(it);
            hv__push_json(L, member);
            lua_setfield(L, -2, key);
        }
        break;
    case JSON_ARRAY:
        lua_createtable(L, (int)json_array_size(v), 0);
        for (size_t i = 0; i < json_array_size(v); i++) {
            hv__push_json(L, json_array_get(v, i));
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        break;
    case JSON_STRING:
        lua_pushlstring(L, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
        lua_pushinteger(L, json_integer_value(v));
        break;
    case JSON_REAL:
        lua_pushnumber(L, json_real_value(v));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        lua_pushboolean(L, json_is_true(v));
        break;
    case JSON_NULL:
        lua_pushnil(L);
        break;
    }
}

/* Fields of argument tables. */

int hv__bad(lua_State *L, const char *fn, const char *key, const char *expected, int found)
{
    hv__tolstring(L, found, NULL);
    const char *shown = lua_tostring(L, -1);
    return luaL_error(L, "%s: %s: expected %s, found %s", fn, key, expected,
                      lua_isnil(L, found)  ? "nothing"
                      : strlen(shown) < 60 ? shown
                                           : luaL_typename(L, found));
}

void hv__check_keys(lua_State *L, int i, const char *fn, const char *const *keys)
{
    size_t n = 0;

    if (!lua_istable(L, i)) {
        luaL_error(L, "%s: expected a table of named arguments, found %s", fn, luaL_typename(L, i));
    }
    while (keys[n] != NULL) {
        n++;
    }
    for (lua_pushnil(L); lua_next(L, i) != 0; lua_pop(L, 1)) {
        bool known = false;
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        for (size_t k = 0; k < n && key != NULL; k++) {
            known = known || strcmp(keys[k], key) == 0;
        }
        if (known) {
            continue;
        }
        const char *near = key != NULL ? hv_suggest(key, keys, n) : NULL;
        luaL_error(L, "%s: unknown argument '%s'%s%s%s", fn, key != NULL ? key : "(not a name)",
                   near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
    }
}

double hv__num(lua_State *L, int i, const char *fn, const char *key, double otherwise, double lo,
               double hi)
{
    double x = otherwise;

    if (lua_getfield(L, i, key) != LUA_TNIL || (!isnan(otherwise) && otherwise < lo)) {
        x = lua_tonumber(L, -1);
        if (lua_type(L, -1) != LUA_TNUMBER || !(x >= lo && x <= hi)) {
            const char *want = lua_pushfstring(L, "a number from %f to %f", lo, hi);
            hv__bad(L, fn, key, want, -2);
        }
    }
    lua_pop(L, 1);
    return x;
}

int64_t hv__int(lua_State *L, int i, const char *fn, const char *key, int64_t otherwise, int64_t lo,
                int64_t hi)
{
    int64_t x = otherwise;

    if (lua_getfield(L, i, key) != LUA_TNIL || otherwise < lo) {
        int ok = 0;
        x = lua_tointegerx(L, -1, &ok);
        if (lua_type(L, -1) != LUA_TNUMBER || !ok || x < lo || x > hi) {
            const char *want = lua_pushfstring(L, "a whole number from %I to %I", (LUAI_UACINT)lo,
                                               (LUAI_UACINT)hi);
            hv__bad(L, fn, key, want, -2);
        }
    }
    lua_pop(L, 1);
    return x;
}

bool hv__bool(lua_State *L, int i, const char *fn, const char *key, bool otherwise)
{
    bool x = otherwise;

    if (lua_getfield(L, i, key) != LUA_TNIL) {
        if (!lua_isboolean(L, -1)) {
            hv__bad(L, fn, key, "true or false", -1);
        }
        x = lua_toboolean(L, -1) != 0;
    }
    lua_pop(L, 1);
    return x;
}

const char *hv__text(lua_State *L, int i, const char *fn, const char *key, const char *otherwise)
{
    const char *x = otherwise;

    if (lua_getfield(L, i, key) != LUA_TNIL) {
        if (lua_type(L, -1) != LUA_TSTRING) {
            hv__bad(L, fn, key, "a text", -1);
        }
        x = lua_tostring(L, -1);
    }
    lua_pop(L, 1);
    return x;
}

int hv__word(lua_State *L, int i, const char *fn, const char *key, const char *const *words,
             size_t n, int otherwise)
{
    const char *text = hv__text(L, i, fn, key, NULL);

    if (text == NULL && otherwise >= 0) {
        return otherwise;
    }
    for (size_t k = 0; k < n && text != NULL; k++) {
        if (strcmp(words[k], text) == 0) {
            return (int)k;
        }
    }
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, "one of");
    for (size_t k = 0; k < n; k++) {
        luaL_addstring(&b, k > 0 ? ", " : " ");
        luaL_addstring(&b, words[k]);
    }
    luaL_pushresult(&b);
    lua_getfield(L, i, key);
    return hv__bad(L, fn, key, lua_tostring(L, -2), -1);
}

void *hv__scratch(lua_State *L, size_t n, size_t size)
{
    struct hv_arena *a = &hv__host(L)->arena;
    size_t left = a->used_bytes < SCRATCH_MAX ? SCRATCH_MAX - a->used_bytes : 0;

    if (n > left / size) {
        luaL_error(L, "the arguments need more than %d MiB of memory", (int)(SCRATCH_MAX >> 20));
    }
    return hv_arena_alloc(a, n, size);
}

double *hv__numbers(lua_State *L, int i, const char *fn, const char *key, size_t *n)
{
    if (key != NULL) {
        lua_getfield(L, i, key);
    } else {
        lua_pushvalue(L, i);
    }
    if (!lua_istable(L, -1)) {
        hv__bad(L, fn, key != NULL ? key : "argument", "a list of numbers", -1);
    }
    lua_Unsigned len = lua_rawlen(L, -1);
    if (len > LENGTH_MAX) {
        luaL_error(L, "%s: %s: the list is too long", fn, key != NULL ? key : "argument");
    }
    *n = (size_t)len;
    double *x = hv__scratch_new(L, double, *n + 1);
    for (size_t k = 0; k < *n; k++) {
        if (lua_rawgeti(L, -1, (lua_Integer)k + 1) != LUA_TNUMBER || isnan(lua_tonumber(L, -1))) {
            hv__bad(L, fn, key != NULL ? key : "argument", "a list of numbers", -1);
        }
        x[k] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return x;
}

void hv__push_numbers(lua_State *L, const double *x, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushnumber(L, x[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

void hv__set_num(lua_State *L, const char *key, double x)
{
    if (!hv_known(x)) {
        return;
    }
    if (x == floor(x) && fabs(x) < 9007199254740992.0) {
        lua_pushinteger(L, (lua_Integer)x);
    } else {
        lua_pushnumber(L, x);
    }
    lua_setfield(L, -2, key);
}

void hv__set_text(lua_State *L, const char *key, const char *text)
{
    if (text == NULL) {
        return;
    }
    lua_pushstring(L, text);
    lua_setfield(L, -2, key);
}
