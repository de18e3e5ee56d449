/*
 * hv.plan.new and plan handles: check, eval, table. The run judges the tree of the handle.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/offer_int.h"
#include "scripting/api/plan_int.h"
#include "scripting/api/table.h"
#include "solver/base/units.h"
#include "solver/eval/stress/stress.h"
#include "solver/io/own/plan/write.h"
#include "solver/io/own/verdict_file.h"

#include <string.h>

#define COLLECT_KIB 16

/** json_t that lives as long as a userdata: freed when Lua raises an error. */
static int tree_gc(lua_State *L)
{
    json_t **t = lua_touserdata(L, 1);
    json_decref(*t);
    *t = NULL;
    return 0;
}

static int plan_gc(lua_State *L)
{
    struct hv__plan *p = lua_touserdata(L, 1);
    hv_plan_doc_free(&p->doc);
    memset(&p->doc, 0, sizeof p->doc);
    return 0;
}

struct hv__plan *hv__plan_at(lua_State *L, int i)
{
    struct hv__plan *p = luaL_checkudata(L, i, HV__PLAN);

    hv__check_stop(L);
    if (p->doc.plan == NULL || p->generation != hv__host(L)->generation) {
        luaL_error(L, "plan handle is stale: its run has ended");
    }
    return p;
}

struct hv__plan *hv__plan_make(lua_State *L, int i)
{
    struct hv__run *r = hv__run_of(L, "hv.plan.new");
    struct hv_err err = {0};
    struct hv_json json = {0};

    i = lua_absindex(L, i);
    if (luaL_testudata(L, i, HV__PLAN) != NULL) {
        lua_pushvalue(L, i);
        return hv__plan_at(L, -1);
    }
    luaL_checktype(L, i, LUA_TTABLE);
    /* a plan lies outside Lua's memory, so each new plan triggers a step of the collector */
    lua_gc(L, LUA_GCSTEP, COLLECT_KIB);
    struct hv__plan *p = lua_newuserdatauv(L, sizeof *p, 0);
    memset(p, 0, sizeof *p);
    p->generation = hv__host(L)->generation;
    luaL_setmetatable(L, HV__PLAN);
    json_t *tree = hv__to_json(L, i, &err);
    if (tree == NULL) {
        hv__raise(L, &err);
    }
    json_t *full = json_object();
    json_object_set_new(full, "format", json_string("hetviz.plan/1"));
    json_object_update_missing(full, tree);
    json_decref(tree);
    hv_json_wrap(&json, full, "plan");
    if (hv_plan_doc_build(&p->doc, json, r->request->inputs->cluster.cluster, &err) != HV_OK) {
        memset(&p->doc, 0, sizeof p->doc);
        hv__raise(L, &err);
    }
    return p;
}

/***
Makes a plan from a table with exactly the keys of a plan file (format, cluster, model and job may
be left out).
@function hv.plan.new
@tparam table plan {micro_batch, replicas = list of {micro_batches, stages = list of {devices,
layers, …}}, schedule, sync, …}; a handle is given back as it is
@treturn handle plan: with check, eval, stress and table
@units those of a plan file (MiB, counts); layers from 0, half open
@raise keys that a plan does not have, values of another type, addresses that do not exist
@usage local g = ctx.cluster:groups()[1]
local p = hv.plan.new{micro_batch = 1, replicas = {{micro_batches = ctx.job.global_batch, stages = {
  {devices = g.name .. "[0].*", layers = {0, ctx.model.n_layers}, tp = g.devices}}}}}
print(#p:check())
*/
static int plan_new(lua_State *L)
{
    hv__plan_make(L, 1);
    return 1;
}

/** Lists violated rules only: `within` tells whether the plan is within the objective's limits. */
static void push_findings(lua_State *L, const struct hv_findings *f)
{
    lua_Integer n = 0;
    lua_createtable(L, (int)f->n, 0);
    for (size_t k = 0; k < f->n; k++) {
        if (hv_violation_is_limit(f->items[k].code)) {
            continue;
        }
        lua_createtable(L, 0, 4);
        hv__set_text(L, "code", hv_violation_name(f->items[k].code));
        hv__set_text(L, "where", f->items[k].where);
        hv__set_text(L, "text", f->items[k].text);
        hv__set_num(L, "by", f->items[k].by);
        lua_rawseti(L, -2, ++n);
    }
}

/***
Checks the rules that follow from shapes alone (no costs).
@function plan:check
@treturn table list of {code, where, text, by}; empty when all rules hold
@units by: in the unit the text names
@raise a handle of a run that has ended
@usage for _, v in ipairs(hv.strategy("uniform"):check()) do print(v.code, v.text) end
*/
static int plan_check(lua_State *L)
{
    const struct hv__plan *p = hv__plan_at(L, 1);
    const struct hv_inputs *in = hv__run_of(L, "plan:check")->request->inputs;
    struct hv_findings f = {.arena = &hv__host(L)->arena};

    hv_plan_check(p->doc.plan, in->model.model, &in->job.job, &f);
    push_findings(L, &f);
    return 1;
}

static void push_stage_memory(lua_State *L, const struct hv_verdict *v)
{
    lua_createtable(L, (int)v->n_memory, 0);
    for (size_t k = 0; k < v->n_memory; k++) {
        lua_createtable(L, 0, 6);
        hv__set_num(L, "replica", (double)v->memory[k].replica + 1);
        hv__set_num(L, "stage", (double)v->memory[k].stage + 1);
        hv__set_num(L, "device", (double)v->memory[k].device + 1);
        hv__set_num(L, "peak_bytes", v->memory[k].peak_bytes);
        hv__set_num(L, "limit_bytes", v->memory[k].limit_bytes);
        hv__set_num(L, "activations_bytes", v->memory[k].activations_bytes);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
}

/** The flow of a plan that serves, with the keys of a plan file. */
static void push_flow(lua_State *L, const struct hv_serving *s)
{
    json_t *flow = hv_flow_to_json(s->flow, s->n_flow);
    hv__push_json(L, flow);
    json_decref(flow);
    lua_setfield(L, -2, "flow");
}

/** What a rank sends, as the member `traffic` of the table at the top. */
static void push_traffic(lua_State *L, const struct hv_verdict *v)
{
    json_t *traffic = hv_traffic_json(&v->metrics.traffic);
    hv__push_json(L, traffic);
    json_decref(traffic);
    lua_setfield(L, -2, "traffic");
}

/** Parts of the iteration time by name. */
static void push_breakdown(lua_State *L, const struct hv_metrics *m)
{
    lua_createtable(L, 0, HV_BREAKDOWN_N);
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        hv__set_num(L, hv_breakdown_name((enum hv_breakdown)i), m->breakdown_s[i]);
    }
    lua_setfield(L, -2, "breakdown_s");
}

static void push_approximated(lua_State *L, const struct hv_verdict *v)
{
    lua_createtable(L, (int)v->n_approximated, 0);
    for (size_t i = 0; i < v->n_approximated; i++) {
        lua_pushstring(L, v->approximated[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "approximated");
}

/** Iterations of the job's routing, where they differ. */
static void push_routing(lua_State *L, const struct hv_verdict *v)
{
    if (v->routing.n == 0) {
        return;
    }
    lua_createtable(L, 0, 5);
    hv__set_num(L, "iterations", (double)v->routing.n);
    hv__set_num(L, "mean_s", v->routing.mean_s);
    hv__set_num(L, "p95_s", v->routing.p95_s);
    hv__set_num(L, "moves", (double)v->routing.moves);
    hv__set_num(L, "moved_bytes", v->routing.moved_bytes);
    lua_setfield(L, -2, "routing");
}

/***
Judges the plan as `hetviz eval` does. Counts as one evaluation of the budget.
@function plan:eval
@tparam[opt] table how {iterations = how many of the job's routing are timed, evenly spaced, and
stand for all (0: all; where experts follow the routing, always all): for the rough part of a
search}
@treturn table {iteration_s, value = the figure that the job minimises (where the plan misses the
price or the deadline: a value above that of every plan within them, which grows with the excess),
tokens_per_s, mfu, bubble, exact, within = true when the plan is within the job's price and
deadline, violations = list as plan:check, memory = list of {replica, stage, device, peak_bytes,
limit_bytes, activations_bytes}, breakdown_s = parts of iteration_s by name, traffic = values that a
rank sends by kind of exchange, as simulated.traffic of `eval --json`, approximated = list of texts,
dropped_frac = share of the tokens that no expert computes, routing = {iterations, mean_s, p95_s,
moves, moved_bytes} where the job's routing has iterations}; a plan that serves has no iteration_s,
but flow as in a plan file; nil and the reason when nothing can be timed
@units seconds, tokens per second, bytes; value in seconds, USD per million tokens or joules; mfu,
bubble and dropped_frac are shares
@raise a handle of a run that has ended
@usage local e = hv.strategy("uniform"):eval()
print(e.iteration_s, #e.violations)
*/
static int plan_eval(lua_State *L)
{
    const struct hv__plan *p = hv__plan_at(L, 1);
    static const char fn[] = "plan:eval";
    struct hv__run *r = hv__run_of(L, fn);
    struct hv_arena *arena = &hv__host(L)->arena;
    struct hv_arena_mark mark = hv_arena_mark(arena);
    struct hv_verdict v = {0};
    struct hv_err err = {0};

    struct hv__judging how = {.bound = false};

    if (!lua_isnoneornil(L, 2)) {
        static const char *const keys[] = {"iterations", NULL};
        hv__check_keys(L, 2, fn, keys);
        how.iterations = (size_t)hv__int(L, 2, fn, "iterations", 0, 0, INT64_C(1) << 31);
    }
    if (hv__judge(r, p->doc.plan, &how, arena, &v, &err) != HV_OK) {
        lua_pushnil(L);
        lua_pushstring(L, err.text);
        return 2;
    }
    lua_createtable(L, 0, 8);
    hv__set_num(L, "iteration_s", v.metrics.iteration_s);
    const struct hv_objective *o = &hv_cost_job(r->cost)->objective;
    hv__set_num(L, "value",
                hv_known(v.metrics.iteration_s) ? hv_eval_worth(o, &v.metrics)
                                                : hv_eval_figure(o, &v.metrics));
    lua_pushboolean(L, hv_eval_within(o, &v.metrics));
    lua_setfield(L, -2, "within");
    hv__set_num(L, "tokens_per_s", v.metrics.tokens_per_s);
    hv__set_num(L, "mfu", v.metrics.mfu);
    hv__set_num(L, "bubble", v.metrics.bubble_frac);
    lua_pushboolean(L, v.metrics.exact);
    lua_setfield(L, -2, "exact");
    push_findings(L, &v.findings);
    lua_setfield(L, -2, "violations");
    push_stage_memory(L, &v);
    lua_setfield(L, -2, "memory");
    push_traffic(L, &v);
    push_breakdown(L, &v.metrics);
    push_approximated(L, &v);
    hv__set_num(L, "dropped_frac", v.metrics.dropped_frac);
    push_routing(L, &v);
    if (v.serving != NULL) {
        push_flow(L, v.serving);
    }
    hv_arena_rewind(arena, mark);
    return 1;
}

/***
Judges the plan where a run turns out worse: links twice as slow, memory a tenth larger, a node 5 %
slower. Counts as two evaluations of the budget.
@function plan:stress
@treturn table {exchange_s and node_s = seconds of an iteration, memory_frac = fullest device with
more memory, of its limit (above 1 the plan does not fit), worst_s = the longest iteration, nil
where the plan does not fit, worst_frac = lost at worst, of the iteration, math.huge where it does
not fit, worst = name of the worst case}; nil and the reason where nothing can be timed
@units seconds; fractions
@raise a handle of a run that has ended
@usage local s = hv.strategy("uniform"):stress()
print(s.worst, s.worst_frac)
*/
static int plan_stress(lua_State *L)
{
    const struct hv__plan *p = hv__plan_at(L, 1);
    struct hv__run *r = hv__run_of(L, "plan:stress");
    struct hv_arena *arena = &hv__host(L)->arena;
    struct hv_arena_mark mark = hv_arena_mark(arena);
    struct hv_verdict v = {0};
    struct hv_stress s = {0};
    struct hv_err err = {0};
    const struct hv__judging how = {.bound = false};
    enum hv_status st = hv__judge(r, p->doc.plan, &how, arena, &v, &err);

    r->evaluations++;
    st = st == HV_OK ? hv_eval_stress(r->cost, p->doc.plan, &v, NULL, &s, &err) : st;
    hv_arena_rewind(arena, mark);
    if (st != HV_OK) {
        lua_pushnil(L);
        lua_pushstring(L, err.text);
        return 2;
    }
    lua_createtable(L, 0, 6);
    hv__set_num(L, "exchange_s", s.exchange_s);
    hv__set_num(L, "node_s", s.node_s);
    hv__set_num(L, "memory_frac", s.memory_frac);
    hv__set_num(L, "worst_frac", s.worst_frac);
    hv__set_text(L, "worst", hv_stress_worst_name(&s));
    if (hv_known(s.worst_s)) {
        hv__set_num(L, "worst_s", s.worst_s);
    }
    return 1;
}

/***
The plan as a table with the keys of a plan file; changing it does not change the plan.
@function plan:table
@treturn table {micro_batch, replicas = list, schedule, …}: a copy
@units those of a plan file
@raise a handle of a run that has ended
@usage print(hv.strategy("uniform"):table().micro_batch)
*/
static int plan_table(lua_State *L)
{
    hv__push_json(L, hv__plan_at(L, 1)->doc.json.root);
    return 1;
}

/***
Compares a heuristic with exhaustive search on cases small enough for it: oracle.compare of
the library `testing.oracle`, where plans are states unless `cost` says otherwise.
@function hv.plan.oracle
@tparam table q {cases = list, solve = function(case) giving a state, states = function(case) giving
a list or iterator of all states, cost = function(state, case) giving a number or nil (the simulated
seconds of a plan without violations)}
@treturn table {cases, optimal = how many were solved to the optimum, worst = largest relative gap,
mean = mean gap, wrong = list of {case, got, best}}
@units gaps are shares of the optimum's cost
@raise errors of the three functions
@usage local r = hv.plan.oracle{cases = {3, 4}, solve = function(n) return n end,
  states = function(n) return {1, n} end, cost = function(s) return s end}
assert(r.optimal == 0 and r.worst == 3)
*/
static int plan_oracle(lua_State *L)
{
    static const char *const keys[] = {"cases", "solve", "states", "cost", NULL};

    hv__check_keys(L, 1, "hv.plan.oracle", keys);
    hv__env_push(L, NULL, NULL);
    lua_getfield(L, -1, "require");
    lua_pushliteral(L, "testing.oracle");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "compare");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

/** Raises an error for a member that a plan handle does not have, since nil would hide the mistake.
 */
static int no_member(lua_State *L)
{
    return luaL_error(L,
                      "a plan handle has no member '%s': it has check, eval, stress and table; "
                      "plan:eval().iteration_s is its time, plan:table() its keys",
                      hv__tolstring(L, 2, NULL));
}

void hv__api_plan(lua_State *L)
{
    static const luaL_Reg rows[] = {{"new", plan_new}, {"oracle", plan_oracle}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"check", plan_check},
                                       {"eval", plan_eval},
                                       {"stress", plan_stress},
                                       {"table", plan_table},
                                       {NULL, NULL}};

    hv__api_names(L, "plan", methods);
    luaL_newmetatable(L, HV__TREE);
    lua_pushcfunction(L, tree_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_newmetatable(L, HV__PLAN);
    lua_pushcfunction(L, plan_gc);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, methods);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, no_member);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    hv__api_add(L, "plan", rows);
}
