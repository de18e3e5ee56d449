/*
 * hv.sim: pipeline schedules and task graphs over solver/sim. Numbers only; no plan, no device.
 */
#include "scripting/host_int.h"
#include "solver/base/units.h"
#include "solver/sim/events.h"
#include "solver/sim/pipeline.h"

#include <math.h>
#include <string.h>

#define TASKS_MAX ((size_t)1 << 20)
#define OPS_SHOWN ((size_t)1 << 16)
#define OPS_MAX   ((int64_t)1 << 22)

/** What a call of hv.sim.schedule has made so far. */
struct pipeline {
    struct hv_schedule_input in;
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_cost cost;
    struct hv_pipe_run run;
};

/** The lists of tokens at stack index i, one per rank. */
static const struct hv_order_text *read_order(lua_State *L, int i, const char *fn, int32_t ranks)
{
    struct hv_arena *a = &hv__host(L)->arena;
    struct hv_order_text *order = hv_arena_new(a, struct hv_order_text, (size_t)ranks);

    if (lua_rawlen(L, i) != (lua_Unsigned)ranks)
        luaL_error(L, "%s: order: expected %d lists of tokens, one per rank, found %d", fn,
                   (int)ranks, (int)lua_rawlen(L, i));
    for (int32_t r = 0; r < ranks; r++) {
        if (lua_rawgeti(L, i, r + 1) != LUA_TTABLE)
            hv__bad(L, fn, "order", "a list of tokens for every rank", -1);
        size_t n = (size_t)lua_rawlen(L, -1);
        if (n > HV_SCHEDULE_OPS_MAX)
            luaL_error(L, "%s: order: the list is too long", fn);
        const char **tokens = hv_arena_new(a, const char *, n + 1);
        for (size_t k = 0; k < n; k++) {
            if (lua_rawgeti(L, -1, (lua_Integer)k + 1) != LUA_TSTRING)
                hv__bad(L, fn, "order", "tokens such as \"F0.1\"", -1);
            tokens[k] = hv_arena_strdup(a, lua_tostring(L, -1));
            lua_pop(L, 1);
        }
        order[r] = (struct hv_order_text){.tokens = tokens, .n = n};
        lua_pop(L, 1);
    }
    return order;
}

/** Sets the options of the schedule from the table field `options`. */
static void read_options(lua_State *L, const char *fn, struct hv_schedule_input *in)
{
    struct hv_err err = {0};

    if (lua_getfield(L, 2, "options") != LUA_TNIL) {
        if (!lua_istable(L, -1))
            hv__bad(L, fn, "options", "a table of options of the schedule", -1);
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
            if (lua_type(L, -2) != LUA_TSTRING)
                luaL_error(L, "%s: options: expected names as keys", fn);
            lua_pushvalue(L, -1);
            const char *text = hv__tolstring(L, -1, NULL);
            enum hv_status s = hv_schedule_set_option(in, lua_tostring(L, -4), text, &err);
            lua_pop(L, 2);
            if (s != HV_OK)
                hv__raise(L, &err);
        }
    }
    lua_pop(L, 1);
}

/** times = {forward, backward, weight, recompute}: numbers for all stages, or one list per stage.
 */
static const double *read_times(lua_State *L, const char *fn, int32_t n_stages)
{
    static const char *const keys[] = {"forward", "backward", "weight", "recompute", NULL};
    static const double usual[] = {1, 1, 1, -1};
    double *x = hv_arena_new(&hv__host(L)->arena, double, (size_t)n_stages *HV_OP_KIND_N);

    if (lua_getfield(L, 2, "times") == LUA_TNIL)
        lua_newtable(L);
    int at = lua_gettop(L);
    hv__check_keys(L, at, fn, keys);
    for (int k = 0; k < 4; k++) {
        static const int columns[] = {HV_OP_F, HV_OP_B, HV_OP_W, HV_OP_R};
        size_t n = 0;
        bool list = lua_getfield(L, at, keys[k]) == LUA_TTABLE;
        const double *each = list ? hv__numbers(L, lua_gettop(L), fn, NULL, &n) : NULL;
        lua_pop(L, 1);
        if (list && n != (size_t)n_stages)
            luaL_error(L, "%s: times.%s: expected %d numbers, one per stage, found %d", fn, keys[k],
                       (int)n_stages, (int)n);
        double one =
            list ? 0 : hv__num(L, at, fn, keys[k], usual[k] < 0 ? HV_UNKNOWN : usual[k], 0, 1e12);
        for (int32_t s = 0; s < n_stages; s++) {
            double v = list ? each[s] : one;
            if (!(v >= 0) && k < 3)
                luaL_error(L, "%s: times.%s: expected numbers of at least 0", fn, keys[k]);
            x[s * HV_OP_KIND_N + columns[k]] = hv_known(v) ? v : x[s * HV_OP_KIND_N + HV_OP_F];
        }
    }
    for (int32_t s = 0; s < n_stages; s++)
        x[s * HV_OP_KIND_N + HV_OP_BW] =
            x[s * HV_OP_KIND_N + HV_OP_B] + x[s * HV_OP_KIND_N + HV_OP_W];
    lua_pop(L, 1);
    return x;
}

/** Durations that a scheduler decides with, from the table read_times made. */
static void decide_by(lua_State *L, struct hv_schedule_input *in, const double *times,
                      int32_t n_stages)
{
    struct hv_stage_cost *c =
        hv_arena_new(&hv__host(L)->arena, struct hv_stage_cost, (size_t)n_stages);

    for (int32_t s = 0; s < n_stages; s++)
        c[s] = (struct hv_stage_cost){.f_s = times[s * HV_OP_KIND_N + HV_OP_F],
                                      .b_s = times[s * HV_OP_KIND_N + HV_OP_B],
                                      .w_s = times[s * HV_OP_KIND_N + HV_OP_W]};
    in->costs = c;
}

static void make_pipeline(lua_State *L, const char *fn, struct pipeline *p)
{
    static const char *const keys[] = {"ranks", "micro_batches", "chunks",  "times",
                                       "hop_s", "memory",        "options", NULL};
    struct hv_arena *a = &hv__host(L)->arena;
    const struct hv_schedule_row *row = NULL;
    struct hv_err err = {0};
    bool by_name = lua_type(L, 1) == LUA_TSTRING;

    if (!by_name && !lua_istable(L, 1))
        hv__bad(L, fn, "1", "the name of a schedule or an order", 1);
    hv__check_keys(L, 2, fn, keys);
    int32_t ranks = (int32_t)hv__int(L, 2, fn, "ranks", -1, 1, HV_SCHEDULE_RANKS_MAX);
    int32_t batches = (int32_t)hv__int(L, 2, fn, "micro_batches", -1, 1, HV_SCHEDULE_MB_MAX);
    if (hv_schedule_find(by_name ? lua_tostring(L, 1) : "explicit", &row, &err) != HV_OK)
        hv__raise(L, &err);
    hv_schedule_input_init(&p->in, row, ranks, batches);
    p->in.hop_s = hv__num(L, 2, fn, "hop_s", 0, 0, 1e12);
    read_options(L, fn, &p->in);
    p->in.chunks = (int32_t)hv__int(L, 2, fn, "chunks", hv_schedule_usual_chunks(&p->in), 1,
                                    HV_SCHEDULE_CHUNKS_MAX);
    if ((int64_t)ranks * batches * p->in.chunks > OPS_MAX)
        luaL_error(L, "%s: ranks times micro_batches times chunks: expected at most %d", fn,
                   (int)OPS_MAX);
    if (!by_name)
        p->in.order = read_order(L, 1, fn, ranks);
    int32_t stages = ranks * p->in.chunks;
    const double *times = read_times(L, fn, stages);
    decide_by(L, &p->in, times, stages);
    enum hv_status s = hv_schedule_make(a, &p->in, &p->s, &err);
    if (s == HV_OK && p->s.n_stages != stages) /* the options chose another number of chunks */
        times = read_times(L, fn, p->s.n_stages);
    if (s == HV_OK)
        s = hv_pipe_compile(a, &p->s, &p->g, &err);
    if (s != HV_OK)
        hv__raise(L, &err);
    p->cost = (struct hv_pipe_cost){.stage_s = times, .hop_all_s = p->in.hop_s};
    hv_pipe_run_new(a, &p->g, &p->run);
    hv_pipe_time(&p->g, &p->cost, &p->run);
}

/** Pushes every rank's tokens, as a plan's schedule.order has them. */
static void push_order(lua_State *L, const struct hv_schedule *s)
{
    lua_createtable(L, s->n_ranks, 0);
    for (int32_t r = 0; r < s->n_ranks; r++) {
        lua_Integer k = 0;
        lua_newtable(L);
        for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1];) {
            char one[HV_OP_TOKEN_CAP], two[HV_OP_TOKEN_CAP];
            bool pair = s->ops[i].group >= 0 && i + 1 < s->rank_at[r + 1] &&
                        s->ops[i + 1].group == s->ops[i].group;
            const char *first = hv_op_format(&s->ops[i], one, sizeof one);
            if (pair)
                lua_pushfstring(L, "{%s|%s}", first, hv_op_format(&s->ops[i + 1], two, sizeof two));
            else
                lua_pushstring(L, first);
            lua_rawseti(L, -2, ++k);
            i += pair ? 2 : 1;
        }
        lua_rawseti(L, -2, r + 1);
    }
}

/** Pushes start and end of every op of every rank: {{s, e, s, e, …}, …}. */
static void push_spans(lua_State *L, const struct pipeline *p)
{
    lua_createtable(L, p->s.n_ranks, 0);
    for (int32_t r = 0; r < p->s.n_ranks; r++) {
        int32_t from = p->g.rank_node_at[r], to = p->g.rank_node_at[r + 1];
        lua_createtable(L, 2 * (to - from), 0);
        for (int32_t n = from; n < to; n++) {
            lua_pushnumber(L, p->run.node_start_s[n]);
            lua_rawseti(L, -2, 2 * (n - from) + 1);
            lua_pushnumber(L, p->run.node_end_s[n]);
            lua_rawseti(L, -2, 2 * (n - from) + 2);
        }
        lua_rawseti(L, -2, r + 1);
    }
}

/** Most bytes per rank, from `memory` = bytes of one stage's activation of one micro-batch. */
static void push_peaks(lua_State *L, const char *fn, const struct pipeline *p)
{
    struct hv_arena *a = &hv__host(L)->arena;
    size_t n = (size_t)p->s.n_stages, cells = n * HV_OP_KIND_N, given = 0;
    double *bytes = hv_arena_new(a, double, n);
    bool list = lua_getfield(L, 2, "memory") == LUA_TTABLE;
    const double *each = list ? hv__numbers(L, lua_gettop(L), fn, NULL, &given) : NULL;

    lua_pop(L, 1);
    double one = list ? 0 : hv__num(L, 2, fn, "memory", 1, 0, 1e18);
    if (list && given != n)
        luaL_error(L, "%s: memory: expected %d numbers, one per stage, found %d", fn, (int)n,
                   (int)given);
    for (size_t s = 0; s < n; s++)
        bytes[s] = list ? each[s] : one;
    double *start = hv_arena_new(a, double, cells), *end = hv_arena_new(a, double, cells);
    hv_pipe_memory_simple(&p->s, bytes, NULL, NULL, start, end);
    const struct hv_pipe_memory m = {.start_bytes = start, .end_bytes = end};
    struct hv_pipe_peak *peak = hv_arena_new(a, struct hv_pipe_peak, (size_t)p->s.n_ranks);
    hv_pipe_peaks(&p->g, &p->run, &m, peak);
    double *x = hv_arena_new(a, double, (size_t)p->s.n_ranks);
    for (int32_t r = 0; r < p->s.n_ranks; r++)
        x[r] = peak[r].peak_bytes;
    hv__push_numbers(L, x, (size_t)p->s.n_ranks);
}

/***
Makes the order of a pipeline schedule (or takes one) and times it: exact, one pass, no plan and no
device in it.
@function hv.sim.schedule
@tparam string|table what name of a schedule as `hetviz schedule` knows it, or an order: one list of
tokens per rank
@tparam table q {ranks, micro_batches, chunks = stages per rank, times = {forward = 1, backward = 1
(input gradient), weight = 1, recompute = forward}, each a number or a list of one per stage, hop_s
= 0, memory = 1 (bytes of a stage's activation of one micro-batch, a number or a list), options =
table of options of the schedule}
@treturn table {makespan, longest_span, bubble (idle share of the makespan), peak = list per rank,
in_flight = list per rank, order = list per rank of tokens, spans = list per rank of {start, end,
start, end, …} in the same order}; order and spans are left out above 65536 operations
@units seconds (or any unit of time, the same in and out); peak in the unit of memory; bubble is a
share
@raise unknown schedule or option, sizes the schedule cannot have, an order that blocks (naming the
operation)
@usage local r = hv.sim.schedule("1f1b", {ranks = 4, micro_batches = 8, times = {backward = 2}})
print(r.makespan, r.bubble, r.order[1][1])
*/
static int sim_schedule(lua_State *L)
{
    static const char fn[] = "hv.sim.schedule";
    struct pipeline p = {0};

    hv__check_stop(L);
    make_pipeline(L, fn, &p);
    size_t ranks = (size_t)p.s.n_ranks;
    int32_t *alive = hv_arena_new(&hv__host(L)->arena, int32_t, ranks);
    double *x = hv_arena_new(&hv__host(L)->arena, double, ranks);
    hv_schedule_peak_inflight(&p.s, alive);
    for (size_t r = 0; r < ranks; r++)
        x[r] = alive[r];
    lua_createtable(L, 0, 7);
    hv__set_num(L, "makespan", p.run.makespan_s);
    hv__set_num(L, "longest_span", p.run.longest_span_s);
    hv__set_num(L, "bubble", p.run.bubble_frac);
    hv__push_numbers(L, x, ranks);
    lua_setfield(L, -2, "in_flight");
    push_peaks(L, fn, &p);
    lua_setfield(L, -2, "peak");
    if (hv_schedule_n_ops(&p.s) <= OPS_SHOWN) {
        push_order(L, &p.s);
        lua_setfield(L, -2, "order");
        push_spans(L, &p);
        lua_setfield(L, -2, "spans");
    }
    return 1;
}

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

void hv__api_sim(lua_State *L)
{
    static const luaL_Reg rows[] = {{"schedule", sim_schedule}, {"tasks", sim_tasks}, {NULL, NULL}};
    hv__api_add(L, "sim", rows);
}
