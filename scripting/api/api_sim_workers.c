/*
 * hv.sim.workers: workers that exchange updates through a server or with each other. The caller
 * gives the duration of a clock of each worker.
 */
#include "scripting/api/table.h"
#include "scripting/host/host_int.h"
#include "solver/base/units.h"
#include "solver/sim/events/workers.h"

#define FN "hv.sim.workers"

enum { WORKERS_MAX = 4096 };

/* Field `key`: one number per worker; a number alone stands for all where their count is known. */
static const double *read_each(lua_State *L, struct hv_arena *a, const char *key, size_t n)
{
    int type = lua_getfield(L, 1, key);
    lua_pop(L, 1);
    if (type == LUA_TNIL) {
        return NULL;
    }
    if (type == LUA_TTABLE) {
        size_t found = 0;
        const double *x = hv__numbers(L, 1, FN, key, &found);
        if (found != n) {
            luaL_error(L, FN ": %s: expected %d numbers, one per worker, found %d", key, (int)n,
                       (int)found);
        }
        return x;
    }
    double one = hv__num(L, 1, FN, key, 0, 0, 1e12);
    double *x = hv_arena_new(a, double, n);
    for (size_t i = 0; i < n; i++) {
        x[i] = one;
    }
    return x;
}

/* Field `weights`: one list of n numbers per worker, or nil. */
static const double *read_weights(lua_State *L, struct hv_arena *a, size_t n)
{
    if (lua_getfield(L, 1, "weights") == LUA_TNIL) {
        lua_pop(L, 1);
        return NULL;
    }
    double *out = hv_arena_new(a, double, n *n);
    if (!lua_istable(L, -1) || lua_rawlen(L, -1) != n) {
        hv__bad(L, FN, "weights", "a list of lists, one per worker", -1);
    }
    for (size_t i = 0; i < n; i++, lua_pop(L, 1)) {
        size_t found = 0;
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        if (!lua_istable(L, -1)) {
            hv__bad(L, FN, "weights", "a list of lists, one per worker", -1);
        }
        const double *row = hv__numbers(L, lua_gettop(L), FN, NULL, &found);
        if (found != n) {
            hv__bad(L, FN, "weights", "as many numbers in every list as workers", -1);
        }
        for (size_t k = 0; k < n; k++) {
            out[i * n + k] = row[k];
        }
    }
    lua_pop(L, 1);
    return out;
}

/* A horizon that shows the steady state: 400 clocks of the slowest with its hops. */
static double usual_horizon(const struct hv_workers *w)
{
    double slowest_s = 0;
    for (size_t i = 0; i < w->n; i++) {
        double t = w->period_s[i] + (w->hop_s != NULL ? 2 * w->hop_s[i] : 0);
        slowest_s = t > slowest_s ? t : slowest_s;
    }
    return 400 * slowest_s;
}

static void read_workers(lua_State *L, struct hv_workers *w, struct hv_arena *a)
{
    static const char *const keys[] = {"period_s", "hop_s",       "kind",   "staleness", "group",
                                       "weights",  "horizon_s",   "jitter", "seed",      "connect",
                                       "wait_s",   "wait_most_s", "least",  NULL};

    luaL_checktype(L, 1, LUA_TTABLE);
    hv__check_keys(L, 1, FN, keys);
    lua_settop(L, 1);
    w->period_s = hv__numbers(L, 1, FN, "period_s", &w->n);
    if (w->n < 1 || w->n > WORKERS_MAX) {
        luaL_error(L, FN ": period_s: expected 1 to %d numbers, one per worker", WORKERS_MAX);
    }
    w->kind = (enum hv_workers_kind)hv__word(L, 1, FN, "kind", hv_workers_words, HV_WORKERS_KIND_N,
                                             HV_WORKERS_PS);
    w->hop_s = read_each(L, a, "hop_s", w->n);
    w->staleness = hv__int(L, 1, FN, "staleness", -1, -1, HV_WORKERS_CLOCKS_MAX);
    w->group = (size_t)hv__int(L, 1, FN, "group", (int64_t)w->n, 1, (int64_t)w->n);
    w->weights = read_weights(L, a, w->n);
    w->horizon_s = hv__num(L, 1, FN, "horizon_s", HV_UNKNOWN, 0, 1e18);
    w->jitter = hv__num(L, 1, FN, "jitter", 0, 0, 10);
    w->connect = hv__bool(L, 1, FN, "connect", false);
    w->wait_s = hv__num(L, 1, FN, "wait_s", 0, 0, 1e12);
    w->wait_most_s = hv__num(L, 1, FN, "wait_most_s", w->wait_s, w->wait_s, 1e12);
    w->least = (size_t)hv__int(L, 1, FN, "least", 0, 0, (int64_t)w->n);
    w->seed = (uint64_t)hv__int(L, 1, FN, "seed", 0, 0, INT64_MAX);
    if (!hv_known(w->horizon_s)) {
        w->horizon_s = usual_horizon(w);
    }
}

/* Sets t.staleness: how many clocks had 0, 1, 2, … up to the last that any had. */
static void push_staleness(lua_State *L, const struct hv_workers_run *run)
{
    size_t n = HV_WORKERS_STALENESS;
    while (n > 0 && run->staleness[n - 1] == 0) {
        n--;
    }
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushinteger(L, (lua_Integer)run->staleness[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "staleness");
}

/***
Simulates workers that train at their own pace and exchange updates.
@function hv.sim.workers
@tparam table w {period_s = one number per worker: a clock of work (a mini-batch, or a wave of a
pipeline), hop_s? (one for all, or one per worker: one way to the server, or one exchange), kind =
"ps" (push and pull after every clock), "wsp" (HetPipe: pushes overlap with the next wave),
"partial_reduce" (the first `group` workers that are ready average), "gossip" (each averages with
one that it draws, `weights` = how often row draws column), staleness? (ps, wsp: clock c begins when
everybody's push of clock c - 1 - staleness has arrived; nil: nobody waits; partial reduce: a worker
begins a step when it has ended no more than so many above the slowest; 0: nobody waits), group =
all, connect? (partial reduce: groups must not freeze into cliques), wait_s? (partial reduce: a
group goes on that long after its first member, full or not; the wait is doubled, to wait_most_s at
most, by groups of fewer than `least`, and shortened by a tenth by others), horizon_s? (400 clocks
of the slowest), jitter? (spread of the logarithm of every clock), seed = 0}
@treturn table {rate (clocks per second of all, in the second half of the horizon), rates and wait
(share of the time) per worker, clocks per worker, staleness (how many clocks had 0, 1, 2, …),
mean_staleness, mean_group (members of a group), mixing (mean averaging matrix, a list per worker;
partial_reduce and gossip)}
@units seconds; clocks per second
@raise wrong tables or words, numbers out of range, more than 10,000,000 clocks
@usage local r = hv.sim.workers{period_s = {2, 3}, kind = "wsp", staleness = 1}
print(r.rate, r.wait[1])
*/
static int sim_workers(lua_State *L)
{
    hv__check_stop(L);
    struct hv_arena *a = &hv__host(L)->arena;
    struct hv_arena_mark mark = hv_arena_mark(a);
    struct hv_workers w = {0};
    struct hv_workers_run run;
    struct hv_err err = {0};

    read_workers(L, &w, a);
    if (hv_workers_run(a, &w, &run, &err) != HV_OK) {
        return luaL_error(L, FN ": %s", err.text);
    }
    lua_newtable(L);
    hv__set_num(L, "rate", run.sum_per_s);
    hv__set_num(L, "mean_staleness", run.mean_staleness);
    hv__set_num(L, "mean_group", run.mean_group);
    hv__push_numbers(L, run.rate_per_s, w.n);
    lua_setfield(L, -2, "rates");
    hv__push_numbers(L, run.wait_frac, w.n);
    lua_setfield(L, -2, "wait");
    lua_createtable(L, (int)w.n, 0);
    for (size_t i = 0; i < w.n; i++) {
        lua_pushinteger(L, (lua_Integer)run.clocks[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "clocks");
    push_staleness(L, &run);
    if (run.mixing != NULL) {
        lua_createtable(L, (int)w.n, 0);
        for (size_t i = 0; i < w.n; i++) {
            hv__push_numbers(L, run.mixing + i * w.n, w.n);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_setfield(L, -2, "mixing");
    }
    hv_arena_rewind(a, mark);
    return 1;
}

void hv__api_sim_workers(lua_State *L)
{
    static const luaL_Reg rows[] = {{"workers", sim_workers}, {NULL, NULL}};

    hv__api_add(L, "sim", rows);
}
