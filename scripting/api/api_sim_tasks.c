/*
 * hv.sim.tasks: a graph of tasks on resources, played by the event engine of the simulator. Orders
 * of pipelines are api_sim.c's.
 */
#include "scripting/api/table.h"
#include "scripting/host/host_int.h"
#include "solver/base/units.h"
#include "solver/sim/events/events.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FN "hv.sim.tasks"

enum { TASKS_MAX = 1 << 20, RESOURCES_MAX = 4096, LINKS_MAX = 1 << 24 };

/* One request. Positions on the Lua stack: 1 the argument, 2 its tasks, 3 number of a resource by
 * name. */
struct tasks {
    struct hv_event_graph g;
    struct hv_event_task *items;
    int32_t *res_at, *res, *dep_at, *dep;
    size_t n_res, n_dep; /* room in res and dep */
    struct hv_event_run run;
};

/* Length of the list at the top of the stack, which must be one. */
static size_t list_length(lua_State *L, const char *key, size_t most)
{
    if (!lua_istable(L, -1)) {
        hv__bad(L, FN, key, "a list", -1);
    }
    size_t n = (size_t)lua_rawlen(L, -1);
    if (n > most) {
        luaL_error(L, FN ": %s: more than %I", key, (LUAI_UACINT)most);
    }
    return n;
}

/* Fills the table at 3 from `resources`: a number, or a list of names. */
static void read_resources(lua_State *L, struct tasks *x)
{
    if (lua_getfield(L, 1, "resources") == LUA_TNUMBER) {
        lua_pop(L, 1);
        x->g.n_resources = (size_t)hv__int(L, 1, FN, "resources", 0, 1, RESOURCES_MAX);
        return;
    }
    x->g.n_resources = list_length(L, "resources", RESOURCES_MAX);
    for (size_t i = 1; i <= x->g.n_resources; i++, lua_pop(L, 1)) {
        if (lua_rawgeti(L, -1, (lua_Integer)i) != LUA_TSTRING) {
            hv__bad(L, FN, "resources", "a number of them, or a list of names", -1);
        }
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 3) != LUA_TNIL) {
            luaL_error(L, FN ": resources: %s occurs twice", lua_tostring(L, -2));
        }
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_pushinteger(L, (lua_Integer)i);
        lua_rawset(L, 3);
    }
    lua_pop(L, 1);
}

/* The resource that the value at the top names or counts. */
static int32_t read_resource(lua_State *L, const struct tasks *x)
{
    lua_pushvalue(L, -1);
    if (lua_type(L, -1) == LUA_TSTRING) {
        lua_rawget(L, 3);
    }
    lua_Integer k = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
    lua_pop(L, 1);
    if (k < 1 || k > (lua_Integer)x->g.n_resources) {
        hv__bad(L, FN, "resource", "the name or the number of a resource, or a list of them", -1);
    }
    return (int32_t)k - 1;
}

/* A field that comes from a metatable may have another value each time it is read. */
static void changed(lua_State *L, size_t i, const char *key)
{
    luaL_error(L, FN ": task %I: %s has changed while it was read", (LUAI_UACINT)i + 1, key);
}

static void add_resource(lua_State *L, struct tasks *x, size_t i)
{
    int32_t r = read_resource(L, x), at = x->res_at[i + 1];
    if ((size_t)at >= x->n_res) {
        changed(L, i, "resource");
    }
    x->res_at[i + 1]++;
    for (; at > x->res_at[i] && x->res[at - 1] >= r; at--) { /* ascending */
        if (x->res[at - 1] == r) {
            luaL_error(L, FN ": task %I: holds a resource twice", (LUAI_UACINT)i + 1);
        }
        x->res[at] = x->res[at - 1];
    }
    x->res[at] = r;
}

/* Reads the resources and dependencies of task i, the table at the top. */
static void read_links(lua_State *L, struct tasks *x, size_t i)
{
    x->res_at[i + 1] = x->res_at[i];
    x->dep_at[i + 1] = x->dep_at[i];
    if (lua_getfield(L, -1, "resource") == LUA_TTABLE) {
        size_t n = list_length(L, "resource", RESOURCES_MAX);
        for (size_t k = 1; k <= n; k++, lua_pop(L, 1)) {
            lua_rawgeti(L, -1, (lua_Integer)k);
            add_resource(L, x, i);
        }
        if (n == 0) {
            hv__bad(L, FN, "resource", "at least one", -1);
        }
    } else {
        add_resource(L, x, i);
    }
    lua_pop(L, 1);
    if (lua_getfield(L, -1, "after") != LUA_TNIL) {
        size_t n = list_length(L, "after", x->g.n_tasks);
        for (size_t k = 1; k <= n; k++, lua_pop(L, 1)) {
            lua_rawgeti(L, -1, (lua_Integer)k);
            lua_Integer task = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
            if (task < 1 || task > (lua_Integer)x->g.n_tasks) {
                hv__bad(L, FN, "after", "numbers of tasks", -1);
            }
            if ((size_t)x->dep_at[i + 1] >= x->n_dep) {
                changed(L, i, "after");
            }
            x->dep[x->dep_at[i + 1]++] = (int32_t)task - 1;
        }
    }
    lua_pop(L, 1);
}

static void read_task(lua_State *L, struct tasks *x, size_t i)
{
    static const char *const keys[] = {"resource", "time_s",  "after",   "memory_bytes",
                                       "priority", "credits", "chunk_s", NULL};
    int at = lua_gettop(L);
    hv__check_keys(L, at, FN, keys);
    read_links(L, x, i);
    double bytes = hv__num(L, at, FN, "memory_bytes", 0, -1e18, 1e18);
    int32_t credits = (int32_t)hv__int(L, at, FN, "credits", 0, 0, INT32_MAX);
    x->items[i] = (struct hv_event_task){
        .duration_s = hv__num(L, at, FN, "time_s", -1, 0, 1e12),
        .piece_s = hv__num(L, at, FN, "chunk_s", 0, 0, 1e12),
        .priority = (int32_t)hv__int(L, at, FN, "priority", 0, -1000000, 1000000),
        .pool = credits > 0 && x->g.n_pools > 0 ? 0 : -1,
        .credits = credits,
        .memory = x->res[x->res_at[i]],
        .start_bytes = fmax(0, bytes),
        .end_bytes = fmin(0, bytes)};
}

/* Number of entries of field `key` over all tasks; a value that is no list counts as one. */
static size_t count_links(lua_State *L, size_t n, const char *key)
{
    size_t sum = 0;
    for (size_t i = 1; i <= n; i++) {
        if (lua_rawgeti(L, 2, (lua_Integer)i) != LUA_TTABLE) {
            hv__bad(L, FN, "tasks", "a list of tables", -1);
        }
        sum += lua_getfield(L, -1, key) == LUA_TTABLE ? (size_t)lua_rawlen(L, -1) : 1;
        lua_pop(L, 2);
        if (sum > LINKS_MAX) {
            luaL_error(L, FN ": %s: more than %d in all", key, LINKS_MAX);
        }
    }
    return sum;
}

/* Limits from field `caps`: memory of every resource, and credits that all tasks share. */
static void read_caps(lua_State *L, struct tasks *x, struct hv_arena *a)
{
    static const char *const keys[] = {"memory_bytes", "credits", NULL};
    size_t n = x->g.n_resources;
    double *capacity = hv_arena_new(a, double, n);
    int32_t *credits = hv_arena_new(a, int32_t, 1);

    for (size_t r = 0; r < n; r++) {
        capacity[r] = HUGE_VAL;
    }
    if (lua_getfield(L, 1, "caps") != LUA_TNIL) {
        int at = lua_gettop(L);
        hv__check_keys(L, at, FN, keys);
        if (lua_getfield(L, at, "memory_bytes") == LUA_TTABLE) {
            for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
                double bytes = lua_tonumber(L, -1);
                if (lua_type(L, -1) != LUA_TNUMBER || !(bytes >= 0)) {
                    hv__bad(L, FN, "memory_bytes", "bytes by resource", -1);
                }
                lua_pushvalue(L, -2);
                capacity[read_resource(L, x)] = bytes;
                lua_pop(L, 1);
            }
            lua_pop(L, 1);
        } else {
            lua_pop(L, 1);
            double bytes = hv__num(L, at, FN, "memory_bytes", HV_UNKNOWN, 0, 1e18);
            for (size_t r = 0; r < n && !isnan(bytes); r++) {
                capacity[r] = bytes;
            }
        }
        *credits = (int32_t)hv__int(L, at, FN, "credits", 0, 0, INT32_MAX);
    }
    lua_pop(L, 1);
    x->g.n_pools = *credits > 0;
    x->g.pool_credits = credits;
    x->g.n_memories = n;
    x->g.capacity_bytes = capacity;
}

static void read_graph(lua_State *L, struct tasks *x, struct hv_arena *a)
{
    static const char *const keys[] = {"tasks", "resources", "caps", NULL};

    luaL_checktype(L, 1, LUA_TTABLE);
    hv__check_keys(L, 1, FN, keys);
    lua_settop(L, 1);
    lua_getfield(L, 1, "tasks");
    size_t n = list_length(L, "tasks", TASKS_MAX);
    lua_newtable(L);
    read_resources(L, x);
    read_caps(L, x, a);
    x->g.n_tasks = n;
    x->items = hv_arena_new(a, struct hv_event_task, n + 1);
    x->res_at = hv_arena_new(a, int32_t, n + 1);
    x->dep_at = hv_arena_new(a, int32_t, n + 1);
    x->n_res = count_links(L, n, "resource");
    x->n_dep = count_links(L, n, "after");
    x->res = hv_arena_new(a, int32_t, x->n_res + 1);
    x->dep = hv_arena_new(a, int32_t, x->n_dep + 1);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        read_task(L, x, i);
        lua_pop(L, 1);
    }
    x->g.tasks = x->items;
    x->g.res_at = x->res_at;
    x->g.res = x->res;
    x->g.dep_at = x->dep_at;
    x->g.dep = x->dep;
}

/* Name of a task in messages: its number, counted from 1 as in Lua. */
static const char *task_name(const void *ctx, int32_t task, char *buf, size_t cap)
{
    (void)ctx;
    (void)snprintf(buf, cap, "task %d", task + 1);
    return buf;
}

/* A task by its end. */
struct ending {
    double end_s;
    int32_t task;
};

static int by_end(const void *x, const void *y)
{
    const struct ending *a = x, *b = y;
    int order = (a->end_s > b->end_s) - (a->end_s < b->end_s);
    return order != 0 ? order : (a->task > b->task) - (a->task < b->task);
}

static bool shares_resource(const struct tasks *x, int32_t a, int32_t b)
{
    for (int32_t i = x->res_at[a]; i < x->res_at[a + 1]; i++) {
        for (int32_t k = x->res_at[b]; k < x->res_at[b + 1]; k++) {
            if (x->res[i] == x->res[k]) {
                return true;
            }
        }
    }
    return false;
}

/* The task that kept task t from starting earlier and is not yet on the path: of those that end
 * when it starts, one it waits for, else one on a resource of its own, else one that gave memory or
 * credits back. -1 = nothing. */
static int32_t blocker(const struct tasks *x, const struct ending *by, const bool *on_path,
                       int32_t t)
{
    const double *end = x->run.end_s, start_s = x->run.start_s[t];
    for (int32_t k = x->dep_at[t]; k < x->dep_at[t + 1]; k++) {
        if (end[x->dep[k]] >= start_s && !on_path[x->dep[k]]) {
            return x->dep[k];
        }
    }
    size_t lo = 0, hi = x->g.n_tasks;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (by[mid].end_s < start_s) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    int32_t other = -1;
    for (; lo < x->g.n_tasks && by[lo].end_s <= start_s; lo++) {
        int32_t u = by[lo].task;
        if (on_path[u] || x->run.start_s[u] >= start_s) {
            continue;
        }
        if (shares_resource(x, t, u)) {
            return u;
        }
        other = other < 0 ? u : other;
    }
    return start_s > 0 ? other : -1;
}

/* Sets t.critical: tasks of which each starts when the one before it ends, up to the last end. */
static void push_critical(lua_State *L, const struct tasks *x, struct hv_arena *a)
{
    size_t n = x->g.n_tasks, len = 0;
    struct ending *by = hv_arena_new(a, struct ending, n + 1);
    int32_t *path = hv_arena_new(a, int32_t, n + 1);
    bool *on_path = hv_arena_new(a, bool, n + 1);

    for (size_t i = 0; i < n; i++) {
        by[i] = (struct ending){x->run.end_s[i], (int32_t)i};
    }
    qsort(by, n, sizeof *by, by_end);
    for (int32_t t = n > 0 ? by[n - 1].task : -1; t >= 0; t = blocker(x, by, on_path, t)) {
        path[len++] = t;
        on_path[t] = true;
    }
    lua_createtable(L, (int)len, 0);
    for (size_t i = 0; i < len; i++) {
        lua_pushinteger(L, path[len - 1 - i] + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "critical");
}

static void push_spans(lua_State *L, const struct tasks *x)
{
    lua_createtable(L, (int)x->g.n_tasks, 0);
    for (size_t i = 0; i < x->g.n_tasks; i++) {
        hv__push_numbers(L, (const double[]){x->run.start_s[i], x->run.end_s[i]}, 2);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "spans");
}

/***
Tasks on resources, played event by event. A free resource takes the ready task of highest priority
(ties: the first in the list).
@function hv.sim.tasks
@tparam table t tasks = list of {resource (name or number, or a list of what it holds all at once),
time_s, after? (numbers of tasks that must have ended), memory_bytes? (taken at its start from the
memory of its first resource; negative: given back at its end), priority?, credits? (held while it
runs), chunk_s? (may be interrupted each time so much is done)}; resources = how many, or a list of
names; caps? {memory_bytes (of each, or by resource), credits (of all together)}
@treturn table spans (list of {start, end}), makespan, peak (bytes) and busy per resource, critical
(numbers of the tasks that set the makespan), interruptions
@units seconds (or any unit of time, the same in and out) and bytes
@raise wrong tables, task or resource numbers out of range, tasks that can never start (naming what
each waits for)
@usage local r = hv.sim.tasks{resources = 2, tasks = {
  {resource = 1, time_s = 2}, {resource = 2, time_s = 1, after = {1}}}}
print(r.makespan, #r.critical)
*/
static int sim_tasks(lua_State *L)
{
    hv__check_stop(L);
    struct hv_arena *a = &hv__host(L)->arena;
    struct hv_arena_mark mark = hv_arena_mark(a);
    const struct hv_event_rules rules = {.name = task_name};
    struct hv_err err = {0};
    struct tasks x = {0};

    read_graph(L, &x, a);
    hv_events_run_new(a, &x.g, &x.run);
    if (hv_events_run(&x.g, &rules, &x.run, &err) != HV_OK) {
        return luaL_error(L, FN ": %s", err.text);
    }
    lua_newtable(L);
    hv__set_num(L, "makespan", x.run.makespan_s);
    hv__push_numbers(L, x.run.peak_bytes, x.g.n_memories);
    lua_setfield(L, -2, "peak");
    hv__push_numbers(L, x.run.busy_s, x.g.n_resources);
    lua_setfield(L, -2, "busy");
    lua_pushinteger(L, (lua_Integer)x.run.n_interrupted);
    lua_setfield(L, -2, "interruptions");
    push_spans(L, &x);
    push_critical(L, &x, a);
    hv_arena_rewind(a, mark);
    return 1;
}

void hv__api_sim_tasks(lua_State *L)
{
    static const luaL_Reg rows[] = {{"tasks", sim_tasks}, {NULL, NULL}};

    hv__api_add(L, "sim", rows);
}
