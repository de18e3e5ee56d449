/*
 * hv.sim.replay: iterations of a routing under a policy of the plugin that places experts. The
 * caller gives the seconds of tokens, copies and moves; the time of a plan is judged with its
 * `moe.adapt`.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/table.h"
#include "solver/base/units.h"
#include "solver/workload/replay.h"

#include <stdlib.h>
#include <string.h>

#define FN "hv.sim.replay"

enum { ITERATIONS_MAX = 1 << 16, LAYERS_MAX = 4096, CELLS_MAX = 1 << 22 };

/** One replay: its figures, the trace, and the places at hand. */
struct replay {
    struct hv_replay r;
    size_t iterations, layers, sources, experts;
    struct hv_routing *tokens;            /**< [layers], of the iteration at hand */
    struct hv_expert_placement *now, *at; /**< [layers] */
    double move_bytes;
    struct hv_arena *arena;
};

/** Reads one layer of the trace, the table at the top: a list per source. */
static void read_layer(lua_State *L, struct replay *x, double *to)
{
    if (!lua_istable(L, -1) || lua_rawlen(L, -1) != x->sources) {
        luaL_error(L, FN ": trace: expected %d lists in every layer, one per source",
                   (int)x->sources);
    }
    for (size_t s = 0; s < x->sources; s++, lua_pop(L, 1)) {
        size_t n = 0;
        lua_rawgeti(L, -1, (lua_Integer)s + 1);
        const double *row = hv__numbers(L, lua_gettop(L), FN, NULL, &n);
        if (n != x->experts) {
            luaL_error(L, FN ": trace: expected %d numbers per source, found %d", (int)x->experts,
                       (int)n);
        }
        for (size_t e = 0; e < n; e++) {
            if (!(row[e] >= 0 && row[e] <= 1e15)) {
                luaL_error(L, FN ": trace: expected numbers of tokens of at least 0");
            }
            to[s * n + e] = row[e];
        }
    }
}

/** Reads iteration t of the trace at stack position `trace`. */
static void read_iteration(lua_State *L, struct replay *x, int trace, size_t t)
{
    lua_rawgeti(L, trace, (lua_Integer)t + 1);
    if (!lua_istable(L, -1) || lua_rawlen(L, -1) != x->layers) {
        luaL_error(L, FN ": trace: expected %d layers in every iteration", (int)x->layers);
    }
    for (size_t l = 0; l < x->layers; l++, lua_pop(L, 1)) {
        lua_rawgeti(L, -1, (lua_Integer)l + 1);
        double *cells = hv_arena_new(x->arena, double, x->sources * x->experts);
        read_layer(L, x, cells);
        x->tokens[l] = (struct hv_routing){x->sources, x->experts, cells};
    }
    lua_pop(L, 1);
}

/** Sizes from the first iteration. */
static void read_sizes(lua_State *L, struct replay *x, int trace)
{
    int top = lua_gettop(L);
    x->iterations = lua_istable(L, trace) ? (size_t)lua_rawlen(L, trace) : 0;
    if (x->iterations > 0 && lua_rawgeti(L, trace, 1) == LUA_TTABLE) {
        x->layers = (size_t)lua_rawlen(L, -1);
    }
    if (x->layers > 0 && lua_rawgeti(L, -1, 1) == LUA_TTABLE) {
        x->sources = (size_t)lua_rawlen(L, -1);
    }
    if (x->sources > 0 && lua_rawgeti(L, -1, 1) == LUA_TTABLE) {
        x->experts = (size_t)lua_rawlen(L, -1);
    }
    lua_settop(L, top);
    if (x->experts == 0) {
        hv__bad(L, FN, "trace", "lists of iterations, layers, sources and experts", trace);
    }
    if (x->iterations > ITERATIONS_MAX || x->layers > LAYERS_MAX ||
        x->layers * x->sources * x->experts > CELLS_MAX) {
        luaL_error(L, FN ": trace: expected at most %d iterations, %d layers, %d cells of one",
                   ITERATIONS_MAX, LAYERS_MAX, CELLS_MAX);
    }
}

/** A rank of the value at the top; pops it. */
static uint32_t pop_rank(lua_State *L, const struct replay *x, const char *key)
{
    lua_Integer v = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
    if (v < 1 || (size_t)v > x->r.ranks) {
        luaL_error(L, FN ": %s: expected ranks from 1 to %d", key, (int)x->r.ranks);
    }
    lua_pop(L, 1);
    return (uint32_t)(v - 1);
}

/** Adds a holder that is not among those from `from` on. */
static void add_holder(uint32_t *holders, size_t from, size_t *n, uint32_t rank)
{
    for (size_t i = from; i < *n; i++) {
        if (holders[i] == rank) {
            return;
        }
    }
    holders[(*n)++] = rank;
}

/** Places of one layer from the table at the top: {owners, copies}, where both are optional; NULL
 * `before`: by blocks. */
static struct hv_expert_placement read_places(lua_State *L, const struct replay *x,
                                              const struct hv_expert_placement *before)
{
    int top = lua_gettop(L);
    size_t *at = hv_arena_new(x->arena, size_t, x->experts + 1), n = 0;
    uint32_t *holders = hv_arena_new(x->arena, uint32_t, x->experts *(x->r.ranks + 1));
    bool owners = lua_getfield(L, top, "owners") == LUA_TTABLE;
    bool copies = lua_getfield(L, top, "copies") == LUA_TTABLE;
    if (owners && lua_rawlen(L, top + 1) != x->experts) {
        luaL_error(L, FN ": owners: expected %d ranks, one per expert", (int)x->experts);
    }
    for (size_t e = 0; e < x->experts; e++) {
        at[e] = n;
        holders[n] = before != NULL ? before->holders[before->holder_at[e]]
                                    : (uint32_t)(e * x->r.ranks / x->experts);
        if (owners) {
            lua_rawgeti(L, top + 1, (lua_Integer)e + 1);
            holders[n] = pop_rank(L, x, "owners");
        }
        n++;
        int type = copies ? lua_rawgeti(L, top + 2, (lua_Integer)e + 1) : LUA_TNIL;
        for (size_t k = 0; type == LUA_TTABLE && k < lua_rawlen(L, -1); k++) {
            lua_rawgeti(L, -1, (lua_Integer)k + 1);
            add_holder(holders, at[e], &n, pop_rank(L, x, "copies"));
        }
        for (size_t r = 0; type == LUA_TSTRING && r < x->r.ranks; r++) {
            add_holder(holders, at[e], &n, (uint32_t)r);
        }
        lua_settop(L, top + 2);
    }
    at[x->experts] = n;
    lua_settop(L, top);
    return (struct hv_expert_placement){.ranks = x->r.ranks, .holder_at = at, .holders = holders};
}

/** Calls the policy with the iteration's number, the iteration before it, and reads its answer. */
static void call_policy(lua_State *L, struct replay *x, int policy, int trace, size_t t)
{
    int top = lua_gettop(L);
    lua_pushvalue(L, policy);
    lua_pushinteger(L, (lua_Integer)t + 1);
    if (t > 0) {
        lua_rawgeti(L, trace, (lua_Integer)t);
    } else {
        lua_pushnil(L);
    }
    lua_call(L, 2, 1);
    for (size_t l = 0; l < x->layers; l++) {
        x->at[l] = x->now[l];
        if (lua_istable(L, -1) && lua_rawgeti(L, -1, (lua_Integer)l + 1) == LUA_TTABLE) {
            x->at[l] = read_places(L, x, &x->now[l]);
        }
        lua_settop(L, top + 1);
    }
    if (!lua_isnil(L, -1) && !lua_istable(L, -1)) {
        luaL_error(L, FN ": policy: expected nil or a list of layers, found %s",
                   luaL_typename(L, -1));
    }
    lua_settop(L, top);
}

static void read_figures(lua_State *L, struct replay *x)
{
    static const char *const keys[] = {"trace",    "policy", "ranks",  "token_s",    "send_s",
                                       "copy_s",   "lent",   "move_s", "move_bytes", "hidden_s",
                                       "capacity_factor", NULL};
    hv__check_keys(L, 1, FN, keys);
    lua_settop(L, 1);
    lua_getfield(L, 1, "trace");
    lua_getfield(L, 1, "policy");
    read_sizes(L, x, 2);
    if (!lua_isnil(L, 3) && !lua_isfunction(L, 3)) {
        hv__bad(L, FN, "policy", "a function", 3);
    }
    x->r = (struct hv_replay){
        .ranks = (size_t)hv__int(L, 1, FN, "ranks", (int64_t)x->sources, (int64_t)x->sources,
                                 1 << 16),
        .token_s = hv__num(L, 1, FN, "token_s", 1, 0, 1e12),
        .send_s = hv__num(L, 1, FN, "send_s", 0, 0, 1e12),
        .copy_s = hv__num(L, 1, FN, "copy_s", 0, 0, 1e12),
        .hidden_s = hv__num(L, 1, FN, "hidden_s", 0, 0, 1e12),
        .move_s = hv__num(L, 1, FN, "move_s", 0, 0, 1e12),
        .lent = hv__bool(L, 1, FN, "lent", false),
        .capacity_factor = hv__num(L, 1, FN, "capacity_factor", 0, 0, 1e6)};
    x->move_bytes = hv__num(L, 1, FN, "move_bytes", 0, 0, 1e18);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Pushes the figures of all iterations; `seconds` are sorted on the way. */
static void push_result(lua_State *L, const struct replay *x, double *seconds,
                        const struct hv_replayed *sum, double balance)
{
    lua_createtable(L, 0, 7);
    hv__push_numbers(L, seconds, x->iterations);
    lua_setfield(L, -2, "seconds");
    qsort(seconds, x->iterations, sizeof *seconds, by_value);
    hv__set_num(L, "mean_s", sum->time_s / (double)x->iterations);
    hv__set_num(L, "p95_s", seconds[(95 * x->iterations + 99) / 100 - 1]);
    hv__set_num(L, "move_s", sum->move_s);
    hv__set_num(L, "moves", (double)sum->moves);
    hv__set_num(L, "moved_bytes", (double)sum->moves * x->move_bytes);
    hv__set_num(L, "dropped_frac", sum->tokens > 0 ? sum->dropped / sum->tokens : 0);
    hv__set_num(L, "balance", balance / (double)x->iterations);
}

/***
Walks over the iterations of a routing. Before each of them a policy may place the experts of every
layer anew; it sees the iteration before, not the one to come. A layer takes as long as its busiest
rank exchanges, computes and has copies; moves come before the iteration.
@function hv.sim.replay
@tparam table q {trace = lists of iterations, layers, sources and experts with numbers of tokens,
policy? = function(t, last) with the number of the iteration and the layers of the last one (nil for
the first), which returns nil (experts stay) or a list with {owners? = one rank per expert, copies?
= {[expert] = list of further ranks, or "*"}} for every layer that changes (copies of before end),
ranks = the sources, token_s = 1 (to compute a token), send_s = 0 (to send or receive one, all
exchanges), copy_s = 0 (of an expert with copies, on every rank that has it), hidden_s = 0 (of the
copies of a layer, behind other work), lent = false (copies are sent anew every iteration: they are
no moves), move_s = 0 (of an expert that leaves a rank or arrives), move_bytes = 0, capacity_factor =
0}
@treturn table {mean_s, p95_s, seconds = list per iteration, move_s (in all), moves, moved_bytes,
dropped_frac, balance (mean of the worst layer: mean load over that of the busiest rank)}
@units seconds, bytes, shares of the tokens
@raise lists of another length, ranks that do not exist
@usage local r = hv.sim.replay{
  trace = {{{{4, 0}, {4, 0}}}, {{{4, 0}, {4, 0}}}},
  policy = function(t, last) if last then return {{copies = {"*"}}} end end,
}
print(r.mean_s, r.moves)
*/
static int sim_replay(lua_State *L)
{
    struct replay x = {.arena = &hv__host(L)->arena};
    struct hv_arena_mark whole = hv_arena_mark(x.arena);
    struct hv_replayed sum = {0}, one;
    struct hv_err err = {0};
    double balance = 0;
    hv__check_stop(L);
    read_figures(L, &x);
    double *seconds = hv_arena_new(x.arena, double, x.iterations);
    x.tokens = hv_arena_new(x.arena, struct hv_routing, x.layers);
    x.now = hv_arena_new(x.arena, struct hv_expert_placement, x.layers);
    x.at = hv_arena_new(x.arena, struct hv_expert_placement, x.layers);
    lua_newtable(L);
    for (size_t l = 0; l < x.layers; l++) {
        x.now[l] = read_places(L, &x, NULL);
    }
    lua_pop(L, 1);
    for (size_t t = 0; t < x.iterations; t++) {
        hv__check_stop(L);
        if (lua_isfunction(L, 3)) {
            call_policy(L, &x, 3, 2, t);
        } else {
            memcpy(x.at, x.now, x.layers * sizeof *x.at);
        }
        struct hv_arena_mark before = hv_arena_mark(x.arena);
        read_iteration(L, &x, 2, t);
        if (hv_replay_iteration(x.arena, &x.r, x.layers, x.tokens, x.at, t > 0 ? x.now : NULL, &one,
                                &err) != HV_OK) {
            return luaL_error(L, FN ": %s", err.text);
        }
        hv_arena_rewind(x.arena, before);
        memcpy(x.now, x.at, x.layers * sizeof *x.at);
        seconds[t] = one.time_s;
        sum.time_s += one.time_s;
        sum.move_s += one.move_s;
        sum.moves += one.moves;
        sum.tokens += one.tokens;
        sum.dropped += one.dropped;
        balance += one.balance;
    }
    push_result(L, &x, seconds, &sum, balance);
    hv_arena_rewind(x.arena, whole);
    return 1;
}

void hv__api_sim_replay(lua_State *L)
{
    static const luaL_Reg rows[] = {{"replay", sim_replay}, {NULL, NULL}};
    hv__api_add(L, "sim", rows);
}
