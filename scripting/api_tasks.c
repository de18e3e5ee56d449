/*
 * hv.sim.tasks: graphs of tasks on resources, played event by event. Numbers only; no plan, no
 * device.
 */
#include "scripting/host_int.h"
#include "solver/base/units.h"
#include "solver/sim/events.h"

#include <math.h>

#define TASKS_MAX ((size_t)1 << 20)

/** A graph while it is read. */
struct graph {
    size_t n;
    struct hv_event_task *tasks;
    int32_t *res_at, *res, *dep_at, *dep;
    size_t n_res, n_dep; /**< entries so far */
};

/** Whole numbers from 1 to `most` in a list field (or one number) of the task at `t`, as indexes
 * from 0. Returns how many; `to` NULL only counts. */
static size_t read_indexes(lua_State *L, int t, const char *fn, const char *key, size_t most,
                           int32_t *to)
{
    int type = lua_getfield(L, t, key);
    size_t n = type == LUA_TNIL ? 0 : type == LUA_TTABLE ? (size_t)lua_rawlen(L, -1) : 1;

    for (size_t k = 0; k < n && to != NULL; k++) {
        if (type == LUA_TTABLE)
            lua_rawgeti(L, -1, (lua_Integer)k + 1);
        else
            lua_pushvalue(L, -1);
        lua_Integer v = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
        if (v < 1 || v > (lua_Integer)most)
            hv__bad(L, fn, key, lua_pushfstring(L, "numbers from 1 to %d", (int)most), -2);
        to[k] = (int32_t)v - 1;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return n;
}

static void read_task(lua_State *L, const char *fn, struct graph *g, size_t i, size_t n_resources)
{
    static const char *const keys[] = {"resource",     "time_s",      "after",
                                       "memory_bytes", "freed_bytes", "priority",
                                       "credits",      "chunk_s",     NULL};
    int t = lua_gettop(L);

    hv__check_keys(L, t, fn, keys);
    g->tasks[i] = (struct hv_event_task){
        .duration_s = hv__num(L, t, fn, "time_s", -1, 0, 1e12),
        .piece_s = hv__num(L, t, fn, "chunk_s", 0, 0, 1e12),
        .priority = (int32_t)hv__int(L, t, fn, "priority", 0, INT32_MIN, INT32_MAX),
        .credits = (int32_t)hv__int(L, t, fn, "credits", 0, 0, INT32_MAX),
        .start_bytes = hv__num(L, t, fn, "memory_bytes", 0, 0, 1e18)};
    g->tasks[i].end_bytes = -hv__num(L, t, fn, "freed_bytes", 0, 0, 1e18);
    g->tasks[i].pool = g->tasks[i].credits > 0 ? 0 : -1;
    g->res_at[i] = (int32_t)g->n_res;
    g->dep_at[i] = (int32_t)g->n_dep;
    g->n_res += read_indexes(L, t, fn, "resource", n_resources, g->res + g->n_res);
    g->n_dep += read_indexes(L, t, fn, "after", g->n, g->dep + g->n_dep);
}

/** Reads the list at stack index `list`. */
static void read_graph(lua_State *L, int list, const char *fn, size_t n_resources, struct graph *g)
{
    struct hv_arena *a = &hv__host(L)->arena;
    size_t n_res = 0, n_dep = 0;

    g->n = (size_t)lua_rawlen(L, list);
    if (g->n > TASKS_MAX)
        luaL_error(L, "%s: tasks: expected at most %d", fn, (int)TASKS_MAX);
    for (size_t i = 0; i < g->n; i++) {
        if (lua_rawgeti(L, list, (lua_Integer)i + 1) != LUA_TTABLE)
            hv__bad(L, fn, "tasks", "a list of tables", -1);
        n_res += read_indexes(L, lua_gettop(L), fn, "resource", n_resources, NULL);
        n_dep += read_indexes(L, lua_gettop(L), fn, "after", g->n, NULL);
        lua_pop(L, 1);
    }
    if (n_res + n_dep > 16 * TASKS_MAX)
        luaL_error(L, "%s: tasks: too many dependences", fn);
    g->tasks = hv_arena_new(a, struct hv_event_task, g->n + 1);
    g->res_at = hv_arena_new(a, int32_t, g->n + 1);
    g->dep_at = hv_arena_new(a, int32_t, g->n + 1);
    g->res = hv_arena_new(a, int32_t, n_res + 1);
    g->dep = hv_arena_new(a, int32_t, n_dep + 1);
    for (size_t i = 0; i < g->n; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        read_task(L, fn, g, i, n_resources);
        lua_pop(L, 1);
    }
    g->res_at[g->n] = (int32_t)g->n_res;
    g->dep_at[g->n] = (int32_t)g->n_dep;
}

/** The tasks of one longest chain that ends with the makespan: by each task's latest predecessor,
 * by dependence or on the same resource. */
static void push_critical(lua_State *L, const struct graph *g, const struct hv_event_run *run)
{
    size_t at = 0;
    lua_Integer n = 0;

    for (size_t i = 1; i < g->n; i++)
        at = run->end_s[i] > run->end_s[at] ? i : at;
    lua_newtable(L);
    for (bool more = g->n > 0; more;) {
        lua_pushinteger(L, (lua_Integer)at + 1);
        lua_rawseti(L, -2, ++n);
        more = false;
        for (int32_t k = g->dep_at[at]; k < g->dep_at[at + 1] && !more; k++)
            if (run->end_s[g->dep[k]] >= run->start_s[at] && run->start_s[at] > 0 &&
                run->start_s[g->dep[k]] < run->start_s[at]) {
                at = (size_t)g->dep[k];
                more = true;
            }
    }
    for (lua_Integer i = 1; i <= n / 2; i++) { /* in order of time */
        lua_rawgeti(L, -1, i);
        lua_rawgeti(L, -2, n + 1 - i);
        lua_rawseti(L, -3, i);
        lua_rawseti(L, -2, n + 1 - i);
    }
}

static void push_tasks_run(lua_State *L, const struct graph *g, const struct hv_event_graph *eg,
                           const struct hv_event_run *run)
{
    lua_createtable(L, 0, 6);
    hv__set_num(L, "makespan", run->makespan_s);
    hv__push_numbers(L, run->start_s, g->n);
    lua_setfield(L, -2, "starts");
    hv__push_numbers(L, run->end_s, g->n);
    lua_setfield(L, -2, "ends");
    hv__push_numbers(L, run->busy_s, eg->n_resources);
    lua_setfield(L, -2, "busy");
    hv__set_num(L, "peak", run->peak_bytes[0]);
    push_critical(L, g, run);
    lua_setfield(L, -2, "critical");
}

/***
Plays a graph of tasks on resources: a free resource takes the ready task of highest priority (ties:
the first).
@function hv.sim.tasks
@tparam table q {tasks = list of {resource = number or list (all held at once), time_s, after = list
of task numbers, memory_bytes (taken at the start), freed_bytes (given back at the end), priority =
0, credits = 0 (of the pool, while it runs), chunk_s = 0 (may be set aside after so much work)},
resources = how many, caps = {memory_bytes, credits}}
@treturn table {makespan, starts = list, ends = list, busy = list per resource, peak, critical =
list of task numbers: a chain of dependences that ends last}; nil and the reason when tasks are left
that can never start
@units seconds (or any unit of time, the same in and out) and bytes
@raise wrong tables, task or resource numbers out of range
@usage local r = hv.sim.tasks{resources = 2, tasks = {
  {resource = 1, time_s = 2}, {resource = 2, time_s = 1, after = {1}}}}
print(r.makespan, #r.critical)
*/
static int sim_tasks(lua_State *L)
{
    static const char *const keys[] = {"tasks", "resources", "caps", NULL};
    static const char *const cap_keys[] = {"memory_bytes", "credits", NULL};
    static const char fn[] = "hv.sim.tasks";
    struct hv_arena *a = &hv__host(L)->arena;
    struct graph g = {0};
    struct hv_event_run run = {0};
    const struct hv_event_rules rules = {0};
    struct hv_err err = {0};
    double capacity = HUGE_VAL;
    int32_t credits = INT32_MAX;

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    size_t n_resources = (size_t)hv__int(L, 1, fn, "resources", -1, 1, 1 << 20);
    if (lua_getfield(L, 1, "caps") != LUA_TNIL) {
        hv__check_keys(L, -1, fn, cap_keys);
        capacity = hv__num(L, lua_gettop(L), fn, "memory_bytes", HUGE_VAL, 0, HUGE_VAL);
        credits = (int32_t)hv__int(L, lua_gettop(L), fn, "credits", INT32_MAX, 0, INT32_MAX);
    }
    lua_pop(L, 1);
    if (lua_getfield(L, 1, "tasks") != LUA_TTABLE)
        hv__bad(L, fn, "tasks", "a list of tasks", -1);
    read_graph(L, lua_gettop(L), fn, n_resources, &g);
    const struct hv_event_graph eg = {.n_tasks = g.n,
                                      .n_resources = n_resources,
                                      .n_memories = 1,
                                      .n_pools = 1,
                                      .tasks = g.tasks,
                                      .res_at = g.res_at,
                                      .res = g.res,
                                      .dep_at = g.dep_at,
                                      .dep = g.dep,
                                      .capacity_bytes = &capacity,
                                      .pool_credits = &credits};
    hv_events_run_new(a, &eg, &run);
    enum hv_status s = hv_events_run(&eg, &rules, &run, &err);
    if (s == HV_ENO) {
        lua_pushnil(L);
        lua_pushstring(L, err.text);
        return 2;
    }
    if (s != HV_OK)
        return hv__raise(L, &err);
    push_tasks_run(L, &g, &eg, &run);
    return 1;
}

void hv__api_tasks(lua_State *L)
{
    static const luaL_Reg rows[] = {{"tasks", sim_tasks}, {NULL, NULL}};
    hv__api_add(L, "sim", rows);
}
