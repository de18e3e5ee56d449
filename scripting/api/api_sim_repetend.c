/*
 * hv.sim.repetend: the repeating middle of a pipeline whose blocks may sit on several devices.
 * Numbers from Lua count from 1.
 */
#include "scripting/api/table.h"
#include "scripting/host/host_int.h"
#include "solver/sim/schedule/tessel.h"

#include <math.h>

#define FN             "hv.sim.repetend"
#define MOST_BLOCKS    64
#define MOST_DEVICES   64
#define MOST_REPETENDS 63
#define MOST_RUNS      ((int64_t)1 << 20)

/** The request as it is read. */
struct repetend {
    struct hv_tessel t;
    struct hv_tessel_block *blocks;
    int32_t *dep_at, *dep;
    int64_t micro_batches;
};

/** A whole number of the list x from 1 to most, from 0. */
static int32_t index_of(lua_State *L, const char *key, size_t block, double x, int32_t most)
{
    if (!(x >= 1 && x <= most) || x != floor(x)) {
        luaL_error(L, FN ": blocks: %s of block %d: expected whole numbers from 1 to %d", key,
                   (int)block + 1, (int)most);
    }
    return (int32_t)x - 1;
}

/** Reads block k, which is at the top of the stack. */
static void read_block(lua_State *L, struct repetend *q, size_t k)
{
    static const char *const keys[] = {"time_s", "memory", "devices", "after", NULL};
    int at = lua_gettop(L);
    size_t n = 0;

    hv__check_keys(L, at, FN, keys);
    q->blocks[k].span_s = hv__num(L, at, FN, "time_s", -1, 0, 1e300);
    q->blocks[k].memory = hv__num(L, at, FN, "memory", 0, -1e300, 1e300);
    const double *x = hv__numbers(L, at, FN, "devices", &n);
    for (size_t i = 0; i < n; i++) {
        int32_t d = index_of(L, "devices", k, x[i], MOST_DEVICES);
        q->blocks[k].devices |= (uint64_t)1 << d;
        q->t.n_devices = d >= q->t.n_devices ? d + 1 : q->t.n_devices;
    }
    q->dep_at[k + 1] = q->dep_at[k];
    if (lua_getfield(L, at, "after") != LUA_TNIL) {
        x = hv__numbers(L, at, FN, "after", &n);
        for (size_t i = 0; i < n && i < k; i++) {
            q->dep[q->dep_at[k + 1]++] = index_of(L, "after", k, x[i], (int32_t)k);
        }
        if (n > k) {
            luaL_error(L, FN ": blocks: block %d waits for earlier ones only", (int)k + 1);
        }
    }
    lua_pop(L, 1);
}

static void read_blocks(lua_State *L, struct repetend *q)
{
    if (lua_getfield(L, 1, "blocks") != LUA_TTABLE) {
        hv__bad(L, FN, "blocks", "a list", -1);
    }
    size_t n = (size_t)lua_rawlen(L, -1);
    if (n == 0 || n > MOST_BLOCKS) {
        luaL_error(L, FN ": blocks: expected 1 to %d blocks, found %d", MOST_BLOCKS, (int)n);
    }
    q->blocks = hv__scratch_new(L, struct hv_tessel_block, n);
    q->dep_at = hv__scratch_new(L, int32_t, n + 1);
    q->dep = hv__scratch_new(L, int32_t, n * n + 1);
    for (size_t k = 0; k < n; k++) {
        lua_rawgeti(L, -1, (lua_Integer)k + 1);
        read_block(L, q, k);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    q->t.n_blocks = (int32_t)n;
    q->t.blocks = q->blocks;
    q->t.dep_at = q->dep_at;
    q->t.dep = q->dep;
}

/** Limits of the devices: a number for all, a list of one for each, or none. */
static void read_limits(lua_State *L, struct repetend *q)
{
    size_t n = 0;

    q->t.memory_limit = HUGE_VAL;
    if (lua_getfield(L, 1, "limit") == LUA_TTABLE) {
        q->t.limits = hv__numbers(L, 1, FN, "limit", &n);
        if (n != (size_t)q->t.n_devices) {
            luaL_error(L, FN ": limit: expected %d numbers, found %d", (int)q->t.n_devices, (int)n);
        }
    } else if (!lua_isnil(L, -1)) {
        q->t.memory_limit = hv__num(L, 1, FN, "limit", 0, 0, HUGE_VAL);
    }
    lua_pop(L, 1);
}

/** Sets `runs` and `makespan` of the table at the top. */
static void push_runs(lua_State *L, const struct repetend *q, const struct hv_repetend *r)
{
    size_t n = (size_t)q->micro_batches * (size_t)q->t.n_blocks;
    struct hv_tessel_run *runs = hv__scratch_new(L, struct hv_tessel_run, n + 1);
    struct hv_err err = {0};
    double makespan_s = 0;

    if (hv_tessel_unroll(&q->t, r, (int32_t)q->micro_batches, runs, &makespan_s, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    hv__set_num(L, "makespan", makespan_s);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        const double x[] = {runs[i].block + 1, runs[i].mb + 1, runs[i].start_s};
        hv__push_numbers(L, x, 3);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "runs");
}

/***
The repeating middle of a pipeline: every block once, each for a micro-batch of its own, in the
shortest period over all offsets of micro-batches and all orders on the devices. A block may hold
several devices at once; memory counts across the seam of two periods. The first period without
idle time on the busiest device ends the search; after 200,000 branches the best so far is given.
@function hv.sim.repetend
@tparam table q {blocks = list of {time_s, memory = what its devices hold from its start (negative:
no more from its end) (0), devices = list of numbers, after = list of earlier blocks}, limit =
memory of every device, or a list (no limit), most = micro-batches in a repetend at most (8),
micro_batches = of a whole run, to lay out warm-up, repetends and cool-down (none)}
@treturn table {period, micro_batches = in a repetend, mid = how many micro-batches ahead of the
oldest each block is, start = of each block in the repetend, zero_bubble, proven, makespan and runs
= list of {block, micro-batch, start} where micro_batches is given}; nil and the reason where no
repetend fits, or none was found
@units any unit of time and of memory, the same in and out; blocks, devices and micro-batches from 1
@raise wrong tables, blocks that wait for later ones
@usage local r = hv.sim.repetend{blocks = {{time_s = 1, devices = {1}},
  {time_s = 2, devices = {1, 2}, after = {1}}}}
assert(r.period == 3 and r.zero_bubble)
*/
static int sim_repetend(lua_State *L)
{
    static const char *const keys[] = {"blocks", "limit", "most", "micro_batches", NULL};
    struct repetend q = {0};
    struct hv_repetend r;
    struct hv_err err = {0};

    hv__check_stop(L);
    hv__check_keys(L, 1, FN, keys);
    read_blocks(L, &q);
    read_limits(L, &q);
    q.t.most_micro_batches = (int32_t)hv__int(L, 1, FN, "most", 8, 1, MOST_REPETENDS);
    q.micro_batches = hv__int(L, 1, FN, "micro_batches", 0, 0, MOST_RUNS / (int64_t)q.t.n_blocks);
    enum hv_status s = hv_tessel_search(&hv__host(L)->arena, &q.t, &r, &err);
    if (s == HV_ENO || s == HV_ELIMIT) {
        lua_pushnil(L);
        lua_pushstring(L, err.text);
        return 2;
    } else if (s != HV_OK) {
        return hv__raise(L, &err);
    }
    double *mid = hv__scratch_new(L, double, (size_t)q.t.n_blocks);
    for (int32_t k = 0; k < q.t.n_blocks; k++) {
        mid[k] = r.mid[k];
    }
    lua_newtable(L);
    hv__set_num(L, "period", r.period_s);
    lua_pushinteger(L, r.micro_batches);
    lua_setfield(L, -2, "micro_batches");
    hv__push_numbers(L, mid, (size_t)q.t.n_blocks);
    lua_setfield(L, -2, "mid");
    hv__push_numbers(L, r.start_s, (size_t)q.t.n_blocks);
    lua_setfield(L, -2, "start");
    lua_pushboolean(L, r.zero_bubble);
    lua_setfield(L, -2, "zero_bubble");
    lua_pushboolean(L, r.proven);
    lua_setfield(L, -2, "proven");
    if (q.micro_batches > 0) {
        push_runs(L, &q, &r);
    }
    return 1;
}

void hv__api_sim_repetend(lua_State *L)
{
    static const luaL_Reg rows[] = {{"repetend", sim_repetend}, {NULL, NULL}};

    hv__api_add(L, "sim", rows);
}
