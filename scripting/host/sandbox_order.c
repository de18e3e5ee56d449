/*
 * Replacements for functions of Lua's library that depend on hashing or a clock: `pairs` and `next`
 * in sorted order, a stable table.sort. The other globals are in sandbox.c.
 */
#include "scripting/host/sandbox_int.h"

#include <stdlib.h>
#include <string.h>

/** A key for sorting; texts are anchored by the table they are keys of. */
struct key {
    enum { KEY_FALSE, KEY_TRUE, KEY_NUMBER, KEY_TEXT } type;
    bool integer;
    lua_Integer i;
    lua_Number x;
    const char *text;
    size_t n;
};

static struct key read_key(lua_State *L, int at)
{
    struct key k = {0};

    switch (lua_type(L, at)) {
    case LUA_TBOOLEAN:
        k.type = lua_toboolean(L, at) ? KEY_TRUE : KEY_FALSE;
        break;
    case LUA_TNUMBER:
        k.type = KEY_NUMBER;
        k.integer = lua_isinteger(L, at) != 0;
        k.i = lua_tointeger(L, at);
        k.x = lua_tonumber(L, at);
        break;
    case LUA_TSTRING:
        k.type = KEY_TEXT;
        k.text = lua_tolstring(L, at, &k.n);
        break;
    default:
        luaL_error(L, "keys of type %s have no order; keep such values in a list",
                   luaL_typename(L, at));
    }
    return k;
}

static int compare_keys(const void *pa, const void *pb)
{
    const struct key *a = pa, *b = pb;

    if (a->type != b->type) {
        return a->type < b->type ? -1 : 1;
    }
    if (a->type == KEY_NUMBER) {
        if (a->integer && b->integer) {
            return (a->i > b->i) - (a->i < b->i);
        }
        return (a->x > b->x) - (a->x < b->x);
    }
    if (a->type == KEY_TEXT) {
        size_t n = a->n < b->n ? a->n : b->n;
        int c = memcmp(a->text, b->text, n);
        return c != 0 ? c : (a->n > b->n) - (a->n < b->n);
    }
    return 0;
}

/** Pushes the keys of the table at t as a sorted list. */
static void push_sorted_keys(lua_State *L, int t)
{
    size_t n = 0, i = 0;

    for (lua_pushnil(L); lua_next(L, t) != 0; lua_pop(L, 1)) {
        n++;
    }
    struct key *keys = lua_newuserdatauv(L, (n + 1) * sizeof *keys, 0);
    for (lua_pushnil(L); lua_next(L, t) != 0; lua_pop(L, 1)) {
        keys[i++] = read_key(L, -2);
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    lua_createtable(L, (int)n, 0);
    for (i = 0; i < n; i++) {
        const struct key *k = &keys[i];
        if (k->type == KEY_TEXT) {
            lua_pushlstring(L, k->text, k->n);
        } else if (k->type != KEY_NUMBER) {
            lua_pushboolean(L, k->type == KEY_TRUE);
        } else if (k->integer) {
            lua_pushinteger(L, k->i);
        } else {
            lua_pushnumber(L, k->x);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_remove(L, -2);
}

/** Upvalues: table, sorted keys, position. */
static int pairs_step(lua_State *L)
{
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(3));

    while (true) {
        if (lua_rawgeti(L, lua_upvalueindex(2), ++i) == LUA_TNIL) {
            return 1;
        }
        lua_pushvalue(L, -1);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) {
            break;
        }
        lua_pop(L, 2);
    }
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(3));
    return 2;
}

int hv__sorted_pairs(lua_State *L)
{
    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 3);
        return 3;
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushvalue(L, 1);
    push_sorted_keys(L, 1);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, pairs_step, 3);
    return 1;
}

/** The smallest key above the given one; O(n). */
int hv__sorted_next(lua_State *L)
{
    struct key best = {0}, after = {0};
    bool found = false;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    bool first = lua_isnil(L, 2);
    if (!first) {
        after = read_key(L, 2);
    }
    lua_pushnil(L); /* 3: best key */
    for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
        struct key k = read_key(L, -2);
        if ((!first && compare_keys(&k, &after) <= 0) || (found && compare_keys(&k, &best) >= 0)) {
            continue;
        }
        best = k;
        found = true;
        lua_pushvalue(L, -2);
        lua_replace(L, 3);
    }
    if (!found) {
        return 1;
    }
    lua_pushvalue(L, 3);
    lua_rawget(L, 1);
    return 2;
}

static bool is_less(lua_State *L, int order)
{
    bool less;

    if (lua_isnil(L, order)) {
        less = lua_compare(L, -2, -1, LUA_OPLT) != 0;
    } else {
        lua_pushvalue(L, order);
        lua_pushvalue(L, -3);
        lua_pushvalue(L, -3);
        lua_call(L, 2, 1);
        less = lua_toboolean(L, -1) != 0;
        lua_pop(L, 1);
    }
    return less;
}

/** Merges [lo, mid) and [mid, hi) (from 1) of the list `from` into `to`. */
static void merge(lua_State *L, int from, int to, lua_Integer lo, lua_Integer mid, lua_Integer hi)
{
    lua_Integer a = lo, b = mid;

    for (lua_Integer at = lo; at < hi; at++) {
        bool take_b = a >= mid;
        if (a < mid && b < hi) {
            lua_rawgeti(L, from, b);
            lua_rawgeti(L, from, a);
            take_b = is_less(L, 2);
            lua_pop(L, 2);
        }
        lua_rawgeti(L, from, take_b ? b++ : a++);
        lua_rawseti(L, to, at);
    }
}

/** table.sort as a stable merge sort: no clock, no "invalid order function". O(n log n). */
int hv__stable_sort(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Integer n = luaL_len(L, 1);
    if (!lua_isnoneornil(L, 2)) {
        luaL_checktype(L, 2, LUA_TFUNCTION);
    }
    lua_settop(L, 2);
    lua_createtable(L, (int)(n < 1 << 24 ? n : 0), 0); /* 3 and 4: the two halves of the game */
    lua_createtable(L, (int)(n < 1 << 24 ? n : 0), 0);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, 1, i);
        lua_rawseti(L, 3, i);
    }
    int from = 3, to = 4;
    for (lua_Integer width = 1; width < n; width *= 2) {
        for (lua_Integer lo = 1; lo <= n; lo += 2 * width) {
            lua_Integer mid = lo + width < n + 1 ? lo + width : n + 1;
            lua_Integer hi = lo + 2 * width < n + 1 ? lo + 2 * width : n + 1;
            merge(L, from, to, lo, mid, hi);
        }
        int swap = from;
        from = to;
        to = swap;
    }
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, from, i);
        lua_seti(L, 1, i);
    }
    return 0;
}
