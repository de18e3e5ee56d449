/*
 * hv.routing, hv.trace, hv.attention_work, hv.lengths: the work that a batch gives to ranks, before
 * it is priced. solver/workload does the counting.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/table.h"
#include "solver/base/units.h"
#include "solver/workload/attention_work.h"
#include "solver/workload/router.h"
#include "solver/workload/routing.h"

#include <math.h>
#include <string.h>

#define ROUTING   "hv.routing"
#define CELLS_MAX ((size_t)1 << 22)

/** A routing in a userdata: the matrix follows. */
struct routing {
    size_t sources, experts;
    double tokens[];
};

/** Rows of equal length at field `key` into x[rows × columns]. */
static void read_matrix(lua_State *L, const char *fn, const char *key, double *x, size_t rows,
                        size_t columns)
{
    lua_getfield(L, 1, key);
    if (!lua_istable(L, -1) || lua_rawlen(L, -1) != rows) {
        hv__bad(L, fn, key, lua_pushfstring(L, "%d lists, one per source", (int)rows), -2);
    }
    for (size_t r = 0; r < rows; r++) {
        size_t n = 0;
        lua_rawgeti(L, -1, (lua_Integer)r + 1);
        const double *row = hv__numbers(L, lua_gettop(L), fn, NULL, &n);
        if (n != columns) {
            luaL_error(L, "%s: %s: expected %d numbers per source, found %d", fn, key, (int)columns,
                       (int)n);
        }
        memcpy(x + r * columns, row, columns * sizeof *x);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/***
Routing of tokens: the number of tokens that every source sends to each expert.
@function hv.routing
@tparam table q {sources, experts, top_k = 1, tokens = the job's sequence (of one source), dist =
list of one weight per expert (default: all equal)}, or {sources, experts, matrix = one list per
source with the tokens for each expert}
@treturn handle routing: with apply
@units tokens, fractions allowed; weights need not sum to 1
@raise sizes that do not fit, negative or unknown numbers
@usage local r = hv.routing{sources = 4, experts = 8, top_k = 2, tokens = 1024}
print(r:apply{owners = {1, 1, 2, 2, 3, 3, 4, 4}}.loads[1])
*/
static int api_routing(lua_State *L)
{
    static const char *const keys[] = {"sources", "experts", "top_k", "tokens",
                                       "dist",    "matrix",  NULL};
    static const char fn[] = "hv.routing";
    struct hv_host *h = hv__host(L);

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    size_t sources = (size_t)hv__int(L, 1, fn, "sources", -1, 1, 1 << 16);
    size_t experts = (size_t)hv__int(L, 1, fn, "experts", -1, 1, 1 << 16),
           cells = sources * experts;
    if (cells > CELLS_MAX) {
        return luaL_error(L, "%s: expected at most %d sources times experts", fn, (int)CELLS_MAX);
    }
    struct routing *r = lua_newuserdatauv(L, sizeof *r + cells * sizeof(double), 0);
    r->sources = sources;
    r->experts = experts;
    luaL_setmetatable(L, ROUTING);
    bool given = lua_getfield(L, 1, "matrix") != LUA_TNIL,
         weighted = lua_getfield(L, 1, "dist") != LUA_TNIL;
    lua_pop(L, 2);
    if (given) {
        read_matrix(L, fn, "matrix", r->tokens, sources, experts);
    } else {
        double usual = h->run != NULL ? (double)hv_cost_job(h->run->cost)->sequence : 1;
        double all = hv__num(L, 1, fn, "tokens", usual, 0, 1e12) *
                     (double)hv__int(L, 1, fn, "top_k", 1, 1, (int64_t)experts);
        size_t n = experts;
        const double *w = weighted ? hv__numbers(L, 1, fn, "dist", &n) : NULL;
        double sum = 0;
        if (n != experts) {
            return luaL_error(L, "%s: dist: expected %d numbers, found %d", fn, (int)experts,
                              (int)n);
        }
        for (size_t e = 0; e < experts; e++) {
            sum += w != NULL ? w[e] : 1;
        }
        for (size_t i = 0; i < cells; i++) {
            r->tokens[i] = all * (w != NULL ? w[i % experts] : 1) / sum;
        }
    }
    for (size_t i = 0; i < cells; i++) {
        if (!(r->tokens[i] >= 0 && r->tokens[i] <= 1e15)) {
            return luaL_error(L, "%s: expected numbers of tokens of at least 0", fn);
        }
    }
    return 1;
}

/** A rank (from 1) of the value at the top; pops it. */
static uint32_t rank_at(lua_State *L, const char *fn, const char *key, size_t ranks)
{
    lua_Integer v = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;

    if (v < 1 || v > (lua_Integer)ranks) {
        hv__bad(L, fn, key, lua_pushfstring(L, "ranks from 1 to %d", (int)ranks), -2);
    }
    lua_pop(L, 1);
    return (uint32_t)(v - 1);
}

/** Fills holders from owners = {rank per expert} and copies = {[expert] = {ranks}}. */
static void read_holders(lua_State *L, const char *fn, size_t experts,
                         struct hv_expert_placement *p)
{
    struct hv_arena *a = &hv__host(L)->arena;
    size_t *at = hv_arena_new(a, size_t, experts + 1), n = 0, cap = experts;
    int copies = lua_gettop(L) + 1;

    lua_getfield(L, 2, "copies");
    if (lua_getfield(L, 2, "owners") != LUA_TTABLE || lua_rawlen(L, -1) != experts) {
        hv__bad(L, fn, "owners", lua_pushfstring(L, "%d ranks, one per expert", (int)experts), -2);
    }
    for (size_t e = 0; e < experts && lua_istable(L, copies); e++) {
        if (lua_rawgeti(L, copies, (lua_Integer)e + 1) == LUA_TTABLE) {
            cap += (size_t)lua_rawlen(L, -1);
        }
        lua_pop(L, 1);
    }
    if (cap > CELLS_MAX) {
        luaL_error(L, "%s: copies: too many", fn);
    }
    uint32_t *holders = hv_arena_new(a, uint32_t, cap);
    for (size_t e = 0; e < experts; e++) {
        at[e] = n;
        lua_rawgeti(L, copies + 1, (lua_Integer)e + 1);
        holders[n++] = rank_at(L, fn, "owners", p->ranks);
        bool more =
            lua_istable(L, copies) && lua_rawgeti(L, copies, (lua_Integer)e + 1) == LUA_TTABLE;
        for (lua_Unsigned k = 1; more && k <= lua_rawlen(L, copies + 2); k++) {
            lua_rawgeti(L, copies + 2, (lua_Integer)k);
            uint32_t rank = rank_at(L, fn, "copies", p->ranks);
            if (rank != holders[at[e]]) {
                holders[n++] = rank;
            }
        }
        lua_settop(L, copies + 1);
    }
    at[experts] = n;
    lua_settop(L, copies - 1);
    p->holder_at = at;
    p->holders = holders;
}

/***
Sends the tokens to ranks. A source is the rank of the same number. An expert above its capacity
drops the same share of every source; a source that holds a copy keeps its tokens, other tokens are
spread evenly over the copies.
@function routing:apply
@tparam table q {owners = list of one rank per expert, copies = {[expert] = list of further ranks},
ranks = how many (default: the sources), capacity_factor = 0 (all are taken), tile = 0 (copies work
on multiples of so many tokens), token_bytes = 1}
@treturn table {loads = list per rank, experts = list per expert, bytes = one list per source with
what it sends to each rank, dropped, padded}
@units tokens; bytes = tokens times token_bytes
@raise ranks that do not exist, lists of another length
@usage local r = hv.routing{sources = 2, experts = 2, matrix = {{3, 1}, {3, 1}}}
local a = r:apply{owners = {1, 2}, capacity_factor = 1}
print(a.loads[1], a.dropped)
*/
static int routing_apply(lua_State *L)
{
    static const char *const keys[] = {"owners", "copies",      "ranks", "capacity_factor",
                                       "tile",   "token_bytes", NULL};
    static const char fn[] = "routing:apply";
    const struct routing *r = luaL_checkudata(L, 1, ROUTING);
    const struct hv_routing q = {r->sources, r->experts, r->tokens};
    struct hv_routed out = {0};
    struct hv_err err = {0};

    hv__check_stop(L);
    hv__check_keys(L, 2, fn, keys);
    struct hv_expert_placement p = {
        .ranks = (size_t)hv__int(L, 2, fn, "ranks", (int64_t)r->sources, 1, 1 << 16),
        .capacity_factor = hv__num(L, 2, fn, "capacity_factor", 0, 0, 1e6),
        .tile = hv__num(L, 2, fn, "tile", 0, 0, 1e9)};
    double bytes = hv__num(L, 2, fn, "token_bytes", 1, 0, 1e12);
    if (p.ranks * r->sources > CELLS_MAX) {
        return luaL_error(L, "%s: ranks: too many", fn);
    }
    read_holders(L, fn, r->experts, &p);
    if (hv_route(&hv__host(L)->arena, &q, &p, &out, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    lua_createtable(L, 0, 5);
    hv__push_numbers(L, out.loads, p.ranks);
    lua_setfield(L, -2, "loads");
    hv__push_numbers(L, out.experts, r->experts);
    lua_setfield(L, -2, "experts");
    lua_createtable(L, (int)r->sources, 0);
    for (size_t s = 0; s < r->sources; s++) {
        for (size_t k = 0; k < p.ranks; k++) {
            out.sent[s * p.ranks + k] *= bytes;
        }
        hv__push_numbers(L, out.sent + s * p.ranks, p.ranks);
        lua_rawseti(L, -2, (lua_Integer)s + 1);
    }
    lua_setfield(L, -2, "bytes");
    hv__set_num(L, "dropped", out.dropped);
    hv__set_num(L, "padded", out.padded);
    return 1;
}

/***
Attention work of every rank of a ring at every step. At step k rank r works on the keys of the rank
k − 1 places before it.
@function hv.attention_work
@tparam table q {ranks, layout = "contiguous|zigzag|striped", causal = true, tile = 128, tokens =
the job's sequence}
@treturn table {work = one list per rank with a number per step, per_rank = list, total, steps =
list: the most of any rank, balance = total / (ranks times the sum of steps)}
@units pairs of tokens, counted in whole tiles; balance is a share
@raise tokens that do not split evenly over the ranks
@usage local w = hv.attention_work{ranks = 4, layout = "zigzag", tokens = 4096}
print(w.balance, w.per_rank[1])
*/
static int api_attention_work(lua_State *L)
{
    static const char *const keys[] = {"ranks", "layout", "causal", "tile", "tokens", NULL};
    static const char *const layouts[] = {"contiguous", "zigzag", "striped"};
    static const char fn[] = "hv.attention_work";
    struct hv_host *h = hv__host(L);
    struct hv_err err = {0};
    double *work = NULL, total = 0, longest = 0;

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    int64_t usual = h->run != NULL ? hv_cost_job(h->run->cost)->sequence : 0;
    const struct hv_attention_ring ring = {
        .ranks = hv__int(L, 1, fn, "ranks", -1, 1, 2048),
        .layout = (enum hv_token_layout)hv__word(L, 1, fn, "layout", layouts, 3, 0),
        .causal = hv__bool(L, 1, fn, "causal", true),
        .tile = hv__int(L, 1, fn, "tile", 128, 1, 1 << 30),
        .tokens = hv__int(L, 1, fn, "tokens", usual, 1, INT64_C(1) << 40)};
    if (hv_attention_work(&h->arena, &ring, &work, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    size_t n = (size_t)ring.ranks;
    double *ranks = hv_arena_new(&h->arena, double, n), *steps = hv_arena_new(&h->arena, double, n);
    lua_createtable(L, 0, 5);
    lua_createtable(L, (int)n, 0);
    for (size_t r = 0; r < n; r++) {
        for (size_t k = 0; k < n; k++) {
            ranks[r] += work[r * n + k];
            steps[k] = fmax(steps[k], work[r * n + k]);
        }
        total += ranks[r];
        hv__push_numbers(L, work + r * n, n);
        lua_rawseti(L, -2, (lua_Integer)r + 1);
    }
    lua_setfield(L, -2, "work");
    for (size_t k = 0; k < n; k++) {
        longest += steps[k];
    }
    hv__push_numbers(L, ranks, n);
    lua_setfield(L, -2, "per_rank");
    hv__push_numbers(L, steps, n);
    lua_setfield(L, -2, "steps");
    hv__set_num(L, "total", total);
    hv__set_num(L, "balance", total / ((double)n * longest));
    return 1;
}

/***
The lengths of the job's sequences.
@function hv.lengths
@treturn table list of {tokens, frac} in the job's order; one row with the job's sequence where it
gives no distribution
@units tokens; frac is the share of sequences
@raise outside a run
@usage for _, row in ipairs(hv.lengths()) do print(row.tokens, row.frac) end
*/
static int api_lengths(lua_State *L)
{
    const struct hv_job *j = hv_cost_job(hv__run_of(L, "hv.lengths")->cost);
    size_t n = j->n_lengths > 0 ? j->n_lengths : 1;

    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_createtable(L, 0, 2);
        hv__set_num(L, "tokens", (double)(j->n_lengths > 0 ? j->lengths[i].tokens : j->sequence));
        hv__set_num(L, "frac", j->n_lengths > 0 ? j->lengths[i].frac : 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/** The routing of a run on its way to Lua: what of it is asked for. */
struct traced {
    const struct hv_model *m;
    const struct hv_router *router;
    size_t sources, iterations;
    double tokens; /**< of one source */
};

/** Pushes the tokens of one layer: a list per source, the same one where sources are alike. */
static void push_traced_layer(lua_State *L, const struct traced *x, struct hv_router_at at)
{
    struct hv_arena *a = &hv__host(L)->arena;
    struct hv_arena_mark before = hv_arena_mark(a);
    at.sources = hv_router_has_sources(x->router) ? x->sources : 1;
    double *tokens = hv_arena_new(a, double, at.sources *at.experts);
    hv_router_tokens(x->router, &at, tokens);
    if (!hv_known(tokens[0])) {
        luaL_error(L, "hv.trace: the job's routing has another number of experts or layers than "
                      "the model; give the job a routing of its own");
    }
    for (size_t i = 0; i < at.sources * at.experts; i++) {
        tokens[i] *= x->tokens * at.top_k;
    }
    lua_createtable(L, (int)x->sources, 0);
    for (size_t s = 0; s < x->sources; s++) {
        if (s < at.sources) {
            hv__push_numbers(L, tokens + s * at.experts, at.experts);
        } else {
            lua_rawgeti(L, -1, 1);
        }
        lua_rawseti(L, -2, (lua_Integer)s + 1);
    }
    hv_arena_rewind(a, before);
}

/** Pushes the layers of one iteration; layers that are alike are the same list. `known` is the
 * stack position of the lists by class and number of experts. */
static void push_traced_iteration(lua_State *L, const struct traced *x, size_t iteration, int known)
{
    lua_newtable(L);
    for (size_t b = 0, layer = 0; b < x->m->n_blocks; b++) {
        const struct hv_block *block = &x->m->blocks[b];
        if (block->experts <= 0) {
            continue;
        }
        struct hv_router_at at = {.iteration = iteration,
                                  .layer = layer,
                                  .experts = (size_t)block->experts,
                                  .top_k = block->top_k,
                                  .of = x->sources};
        lua_pushfstring(L, "%I/%d/%d", (lua_Integer)hv_router_class(x->router, iteration, layer),
                        block->experts, block->top_k);
        if (lua_pushvalue(L, -1), lua_rawget(L, known) == LUA_TNIL) {
            lua_pop(L, 1);
            push_traced_layer(L, x, at);
            lua_pushvalue(L, -2);
            lua_pushvalue(L, -2);
            lua_rawset(L, known);
        }
        lua_remove(L, -2);
        lua_rawseti(L, -2, (lua_Integer)++layer);
    }
}

/***
The job's own routing: tokens of every source for every expert, in every iteration that differs and
every layer that has experts. Even routing is one iteration. Sources and layers that are alike share
a list.
@function hv.trace
@tparam table q {sources = ranks that have tokens, tokens = of one source (the job's sequence), each
counted once per expert that it goes to}
@treturn table lists of iterations, layers with experts, sources and experts with numbers of tokens,
as hv.sim.replay takes them; nil and the reason where the model has no layers with experts
@units tokens, fractions allowed
@raise a routing for another number of experts or layers, more than 4 million figures
@usage local trace, why = hv.trace{sources = 4}
print(trace and #trace[1][1][4] or why)
*/
static int api_trace(lua_State *L)
{
    static const char *const keys[] = {"sources", "tokens", NULL};
    static const char fn[] = "hv.trace";
    const struct hv_cost *cost = hv__run_of(L, fn)->cost;
    const struct hv_job *j = hv_cost_job(cost);
    struct traced x = {.m = hv_cost_model(cost), .router = j->routing, .iterations = 1};

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    x.sources = (size_t)hv__int(L, 1, fn, "sources", -1, 1, 1 << 16);
    x.tokens = hv__num(L, 1, fn, "tokens", (double)j->sequence, 0, 1e12);
    if (!hv_router_is_even(x.router)) {
        x.iterations = x.router->iterations > 1 ? x.router->iterations : 1;
    }
    size_t cells = 0, rows = hv_router_has_sources(x.router) ? x.sources : 1;
    for (size_t b = 0; x.m->blocks != NULL && b < x.m->n_blocks; b++) {
        cells += (size_t)x.m->blocks[b].experts * rows;
    }
    if (cells == 0) {
        lua_pushnil(L);
        lua_pushstring(L, "the model has no layers with experts");
        return 2;
    }
    if (cells * x.iterations > CELLS_MAX) {
        return luaL_error(L,
                          "%s: expected at most %d iterations times layers times sources times "
                          "experts; ask for fewer sources",
                          fn, (int)CELLS_MAX);
    }
    lua_createtable(L, (int)x.iterations, 0);
    lua_newtable(L);
    for (size_t t = 0; t < x.iterations; t++) {
        push_traced_iteration(L, &x, t, lua_gettop(L));
        lua_rawseti(L, -3, (lua_Integer)t + 1);
    }
    lua_pop(L, 1);
    return 1;
}

void hv__api_work(lua_State *L)
{
    static const luaL_Reg rows[] = {{"routing", api_routing},
                                    {"trace", api_trace},
                                    {"attention_work", api_attention_work},
                                    {"lengths", api_lengths},
                                    {NULL, NULL}};
    static const luaL_Reg methods[] = {{"apply", routing_apply}, {NULL, NULL}};

    hv__api_names(L, "routing", methods);
    luaL_newmetatable(L, ROUTING);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    hv__api_add(L, NULL, rows);
}
