/* Reads an order of operations from Lua lists into tokens. The call of order(p) is in
 * plugin/order.c. */
#include "scripting/api/order_tokens.h"

struct hv_order_text *hv__take_order(lua_State *L, int at, const char *fn, int32_t ranks,
                                     struct hv_arena *a)
{
    struct hv_order_text *out = hv_arena_new(a, struct hv_order_text, (size_t)ranks + 1);

    if (!lua_istable(L, at) || lua_rawlen(L, at) != (size_t)ranks) {
        luaL_error(
            L, "%s: expected a list of %d lists of operations, one per rank, found %s with %d", fn,
            (int)ranks, luaL_typename(L, at), lua_istable(L, at) ? (int)lua_rawlen(L, at) : 0);
    }
    for (int32_t r = 0; r < ranks; r++) {
        if (lua_rawgeti(L, at, r + 1) != LUA_TTABLE) {
            luaL_error(L, "%s: rank %d: expected a list of operations, found a %s", fn, (int)r + 1,
                       luaL_typename(L, -1));
        }
        size_t n = lua_rawlen(L, -1);
        const char **tokens = hv_arena_new(a, const char *, n + 1);
        for (size_t i = 0; i < n; i++) {
            if (lua_rawgeti(L, -1, (lua_Integer)i + 1) != LUA_TSTRING) {
                luaL_error(
                    L, "%s: rank %d, operation %d: expected a text such as \"F0.0\", found a %s",
                    fn, (int)r + 1, (int)i + 1, luaL_typename(L, -1));
            }
            tokens[i] = hv_arena_strdup(a, lua_tostring(L, -1));
            lua_pop(L, 1);
        }
        out[r] = (struct hv_order_text){.tokens = tokens, .n = n};
        lua_pop(L, 1);
    }
    return out;
}
