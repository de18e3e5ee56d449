/*
 * hv.cost.layers: every layer priced once on every kind of device, with prefix sums. Numbers come
 * from solver/cost; nothing is computed here but sums.
 */
#include "scripting/api/cost_int.h"
#include "scripting/api/input_int.h"
#include "solver/base/units.h"

#include <string.h>

#define TABLE "hv.layer_table"

/** Prefix sums of one kind, all in one userdata: `x` holds n_kinds × 2 rows of n + 1, then
 * parameters and saved bytes. */
struct table {
    size_t n, n_kinds;
    double output_bytes;
    double ends[64][2]; /**< per kind: embedding and head, forward + backward */
    double x[];
};

static double part_s(const struct hv_part_cost *p)
{
    return p->forward_s + p->input_grad_s + p->weight_grad_s + p->recompute_s + p->tp_forward_s +
           p->tp_backward_s;
}

/** The kinds named in `kinds`; when the field is missing all of the cluster that compute in the
 * precision. */
static size_t push_kinds(lua_State *L, int i, const struct hv_cluster *c, enum hv_precision p,
                         const struct hv_device_kind **out)
{
    size_t n = 0;

    if (lua_getfield(L, i, "kinds") == LUA_TNIL) {
        lua_pop(L, 1);
        for (size_t k = 0; k < c->n_kinds && n < 64; k++) {
            if (hv_device_has(c->kinds[k], p)) {
                out[n++] = c->kinds[k];
            }
        }
        return n;
    }
    if (!lua_istable(L, -1) || lua_rawlen(L, -1) < 1 || lua_rawlen(L, -1) > 64) {
        hv__bad(L, "hv.cost.layers", "kinds", "a list of 1 to 64 device kinds", -1);
    }
    for (lua_Unsigned k = 1; k <= lua_rawlen(L, -1); k++) {
        lua_rawgeti(L, -1, (lua_Integer)k);
        const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        out[n] = hv__kind_by_name(c, name);
        if (out[n++] == NULL) {
            hv__bad(L, "hv.cost.layers", "kinds", "names of device kinds in the cluster", -1);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return n;
}

/***
Prices every layer on every kind of device once; sums over ranges then take constant time.
@function hv.cost.layers
@tparam table q {kinds = list of names (default: all that compute in the precision), tp, cp, ep,
micro_batch, tokens, context, recompute, sequence_parallel}; times are those of one rank for one
micro-batch
@treturn handle layers: with time, bytes, times and sizes
@units tokens per sequence; context = tokens seen before these; tp, cp, ep are numbers of ranks;
micro_batch is a number of sequences
@raise unknown kinds, a device without the precision, a model that has no layers
@usage local t = hv.cost.layers{tp = 2, micro_batch = 1}
print(t:time(1, 4, ctx.cluster:groups()[1].kind, "both"))
*/
int hv__cost_layers(lua_State *L)
{
    static const char *const keys[] = {"kinds",   "tp",          "cp",
                                       "ep",      "micro_batch", "tokens",
                                       "context", "recompute",   "sequence_parallel",
                                       NULL};
    static const char fn[] = "hv.cost.layers";
    struct hv__run *r = hv__run_of(L, fn);
    const struct hv_job *job = hv_cost_job(r->cost);
    const struct hv_device_kind *kinds[64];
    struct hv_arena *arena = &hv__host(L)->arena;
    struct hv_err err = {0};

    hv__check_keys(L, 1, fn, keys);
    struct hv_part_query q = hv__part_args(L, fn, job);
    size_t n_kinds = push_kinds(L, 1, hv_cost_cluster(r->cost), job->precision, kinds);
    size_t n = hv_cost_model(r->cost)->n_blocks, row = n + 1;
    struct table *t = lua_newuserdatauv(L, sizeof *t + (2 * n_kinds + 2) * row * sizeof(double), 1);
    memset(t, 0, sizeof *t);
    t->n = n;
    t->n_kinds = n_kinds;
    luaL_setmetatable(L, TABLE);
    lua_newtable(L);
    struct hv_arena_mark mark = hv_arena_mark(arena);
    for (size_t k = 0; k < n_kinds; k++) {
        struct hv_layer_table lt = {0};
        q.device = kinds[k];
        if (hv_cost_layers(r->cost, &q, arena, &lt, &err) != HV_OK) {
            return hv__raise(L, &err);
        }
        memcpy(t->x + 2 * k * row, lt.forward_s, row * sizeof(double));
        memcpy(t->x + (2 * k + 1) * row, lt.backward_s, row * sizeof(double));
        memcpy(t->x + 2 * n_kinds * row, lt.parameters, row * sizeof(double));
        memcpy(t->x + (2 * n_kinds + 1) * row, lt.saved_bytes, row * sizeof(double));
        t->output_bytes = lt.output_bytes;
        t->ends[k][0] = part_s(&lt.embedding);
        t->ends[k][1] = part_s(&lt.head);
        lua_pushinteger(L, (lua_Integer)k);
        lua_setfield(L, -2, kinds[k]->name);
    }
    hv_arena_rewind(arena, mark);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

static const char *const phases[] = {"forward", "backward", "both", NULL};
static const char *const what_words[] = {"parameters", "saved", "output", NULL};

/** Seconds of the layers i … j − 1 (from 0) on the k-th kind. */
static double range_s(const struct table *t, size_t k, int phase, size_t i, size_t j)
{
    size_t row = t->n + 1;
    const double *f = t->x + 2 * k * row, *b = f + row;
    double s = (phase != 1 ? f[j] - f[i] : 0) + (phase != 0 ? b[j] - b[i] : 0);
    double share = phase == 2 ? 1 : phase == 0 ? 1.0 / 3 : 2.0 / 3;

    if (i == 0 && j > i) {
        s += share * hv_or(t->ends[k][0], 0);
    }
    if (j == t->n && j > i) {
        s += share * hv_or(t->ends[k][1], 0);
    }
    return s;
}

/** Range i … j (from 1, inclusive; empty when j = i − 1) as prefix positions. */
static void check_range(lua_State *L, const struct table *t, size_t *from, size_t *to)
{
    lua_Integer i = luaL_checkinteger(L, 2), j = luaL_checkinteger(L, 3);
    if (i < 1 || i > (lua_Integer)t->n + 1 || j < i - 1 || j > (lua_Integer)t->n) {
        luaL_error(L, "layers %I to %I: expected a range from 1 to %d, both ends included",
                   (LUAI_UACINT)i, (LUAI_UACINT)j, (int)t->n);
    }
    *from = (size_t)(i - 1);
    *to = (size_t)j;
}

/** Pushes the names of the kinds in the table at i, joined by commas; returns the text. */
static const char *kinds_text(lua_State *L, int i)
{
    struct hv_str text = {0};
    int top = lua_gettop(L);
    size_t n = 0;

    i = lua_absindex(L, i);
    for (bool found = true; found; n += found) { /* in the order of their columns */
        found = false;
        for (lua_pushnil(L); !found && lua_next(L, i) != 0; lua_pop(L, 1)) {
            found = (size_t)lua_tointeger(L, -1) == n;
            if (found) {
                hv_str_addf(&text, "%s%s", n > 0 ? ", " : "", lua_tostring(L, -2));
            }
        }
        lua_settop(L, top);
    }
    const char *kept = hv_arena_strdup(&hv__host(L)->arena, hv_str_cstr(&text));
    hv_str_free(&text);
    lua_pushstring(L, kept);
    return lua_tostring(L, -1);
}

/** Position of the kind named at argument `arg`. */
static size_t kind_at(lua_State *L, int arg)
{
    const char *kind = luaL_checkstring(L, arg);

    lua_getiuservalue(L, 1, 1);
    if (lua_getfield(L, -1, kind) != LUA_TNUMBER) {
        luaL_error(L, "device kind: expected one of %s, found '%s'", kinds_text(L, -2), kind);
    }
    size_t k = (size_t)lua_tointeger(L, -1);
    lua_pop(L, 2);
    return k;
}

/***
Seconds of a range of layers on a kind of device. Embedding and head count with the first and the
last layer. O(1).
@function layers:time
@tparam integer i first layer, from 1
@tparam integer j last layer, i − 1 for an empty range
@tparam string kind device kind
@tparam[opt] string phase forward, backward or both (the default)
@treturn number time of one micro-batch on one rank
@units seconds
@raise a layer that does not exist, a kind that the table does not have
@usage local kind = ctx.cluster:groups()[1].kind
print(hv.cost.layers{tp = 2}:time(1, 4, kind, "forward"))
*/
static int table_time(lua_State *L)
{
    const struct table *t = luaL_checkudata(L, 1, TABLE);
    size_t i, j;

    check_range(L, t, &i, &j);
    size_t k = kind_at(L, 4);
    int phase = luaL_checkoption(L, 5, "both", phases);
    lua_pushnumber(L, range_s(t, k, phase, i, j));
    return 1;
}

/***
The times of all layers at once, for loops in Lua and for hv.opt.partition.
@function layers:times
@tparam string kind device kind
@tparam[opt] string phase forward, backward or both (the default)
@treturn table list of one number per layer, layers:time(i, i) each
@units seconds
@raise a kind that the table does not have
@usage local kind, n = ctx.cluster:groups()[1].kind, ctx.model.n_layers
local times = hv.cost.layers{tp = 2}:times(kind)
print(#times, hv.opt.partition{n = n, parts = 2, load = times}.value)
*/
static int table_times(lua_State *L)
{
    const struct table *t = luaL_checkudata(L, 1, TABLE);
    size_t k = kind_at(L, 2);
    int phase = luaL_checkoption(L, 3, "both", phases);

    lua_createtable(L, (int)t->n, 0);
    for (size_t i = 0; i < t->n; i++) {
        lua_pushnumber(L, range_s(t, k, phase, i, i + 1));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/***
The result of layers:bytes for every layer, in one list.
@function layers:sizes
@tparam[opt] string what parameters, saved (the default) or output
@treturn table list of one number per layer
@units bytes; parameters are a count
@raise another value of what
@usage print(#hv.cost.layers{}:sizes("parameters"))
*/
static int table_sizes(lua_State *L)
{
    const struct table *t = luaL_checkudata(L, 1, TABLE);
    int w = luaL_checkoption(L, 2, "saved", what_words);
    const double *p = t->x + (2 * t->n_kinds + (w == 1 ? 1 : 0)) * (t->n + 1);

    lua_createtable(L, (int)t->n, 0);
    for (size_t i = 0; i < t->n; i++) {
        lua_pushnumber(L, w == 2 ? t->output_bytes : p[i + 1] - p[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/***
Bytes of a range of layers, or how many parameters it has.
@function layers:bytes
@tparam integer i first layer, from 1
@tparam integer j last layer, i − 1 for an empty range
@tparam[opt] string what parameters, saved (the default) or output
@treturn number parameters: a count on one rank; saved: bytes kept from forward to backward for one
micro-batch; output: bytes sent behind layer j by all ranks of a tensor-parallel group
@units bytes; parameters are a count
@raise a layer that does not exist, another value of what
@usage local t = hv.cost.layers{tp = 2}
print(t:bytes(1, 4, "saved"), t:bytes(1, 4, "parameters"))
*/
static int table_bytes(lua_State *L)
{
    const struct table *t = luaL_checkudata(L, 1, TABLE);
    size_t i, j, row = t->n + 1;

    check_range(L, t, &i, &j);
    int w = luaL_checkoption(L, 4, "saved", what_words);
    const double *p = t->x + (2 * t->n_kinds + (w == 1 ? 1 : 0)) * row;
    lua_pushnumber(L, w == 2 ? t->output_bytes : p[j] - p[i]);
    return 1;
}

void hv__api_layer_table(lua_State *L)
{
    static const luaL_Reg methods[] = {{"time", table_time},
                                       {"bytes", table_bytes},
                                       {"times", table_times},
                                       {"sizes", table_sizes},
                                       {NULL, NULL}};

    hv__api_names(L, "layers", methods);
    luaL_newmetatable(L, TABLE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
