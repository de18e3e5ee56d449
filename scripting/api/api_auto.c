/*
 * hv.plan.auto: the planner of solver/planner inside a run, with its events, limits and cancel.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/offer_int.h"
#include "scripting/api/plan_int.h"
#include "scripting/api/table.h"
#include "solver/bound/bound.h"
#include "solver/eval/stress/stress.h"
#include "solver/io/own/plan/write.h"
#include "solver/planner/planner.h"

#include "solver/base/units.h"

#include <string.h>

/** State of a search inside a run. */
struct searching {
    struct hv__run *run;
    double share; /**< of the run's time */
};

static bool planner_stop(void *ctx)
{
    const struct searching *w = ctx;
    const struct hv_run_request *q = w->run->request;
    return hv__run_is_late(w->run, w->share) || (q->cancel != NULL && q->cancel(q->ctx));
}

static void planner_incumbent(void *ctx, const struct hv_plan *plan)
{
    const struct searching *w = ctx;
    json_t *tree = hv_plan_to_json(plan, NULL, NULL, NULL);
    enum hv_status s = hv__offer(w->run, tree, NULL);

    (void)s; /* a plan that the host refuses is not kept */
    json_decref(tree);
}

static void planner_progress(void *ctx, double frac, const char *text)
{
    const struct searching *w = ctx;
    json_t *e = json_object();
    json_object_set_new(e, "event", json_string("progress"));
    json_object_set_new(e, "frac", hv_json_num(frac));
    json_object_set_new(e, "text", json_string(text));
    hv__emit(w->run, e);
}

static void emit_bound(struct hv__run *r, double bound_s)
{
    json_t *e = json_object();
    json_object_set_new(e, "event", json_string("bound"));
    json_object_set_new(e, "iteration_s", hv_json_num(bound_s));
    hv__emit(r, e);
}

/** Reads {start = plan, share = number, stress = boolean}; an unknown key is an error. */
static const struct hv_plan *read_options(lua_State *L, double *share, bool *stress)
{
    const struct hv_plan *start = NULL;
    if (lua_isnoneornil(L, 1)) {
        return NULL;
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        if (strcmp(key, "start") == 0) {
            start = hv__plan_at(L, lua_gettop(L))->doc.plan;
        } else if (strcmp(key, "share") == 0) {
            *share = luaL_checknumber(L, -1);
        } else if (strcmp(key, "stress") == 0) {
            luaL_checktype(L, -1, LUA_TBOOLEAN);
            *stress = lua_toboolean(L, -1);
        } else {
            luaL_error(L, "hv.plan.auto: unknown key '%s', expected start, share or stress", key);
        }
    }
    luaL_argcheck(L, *share > 0 && *share <= 1, 1, "expected a share above 0 and up to 1");
    return start;
}

/***
hetviz's own search over plans, within the limits of this run. It reports improved plans while it
runs, and without `start` also a lower bound and its progress.
@function hv.plan.auto
@tparam[opt] table options {start = a plan to improve instead of a search over all plans, share =
share of the time limit after which the search ends (1), stress = true: a search for the best plan
on links that are twice as slow with a tenth less memory, which reports no plan while it runs}
@treturn handle plan: with check, eval, stress and table; nil and the reason where there is none, or
where the search cannot express the start
@units share is a fraction; budget and time limit are those of the run
@raise outside a run, unknown options, a share that is not above 0 and at most 1
@usage local best, why = hv.plan.auto { share = 0.6 }
local more = hv.plan.auto { start = hv.strategy "uniform" }
local sturdy = hv.plan.auto { stress = true }
*/
static int plan_auto(lua_State *L)
{
    struct searching w = {hv__run_of(L, "hv.plan.auto"), 1};
    struct hv__run *r = w.run;
    const struct hv_run_request *q = r->request;
    struct hv_planner_options o = {.lost = r->lost,
                                   .stop = planner_stop,
                                   .incumbent = planner_incumbent,
                                   .progress = planner_progress,
                                   .ctx = &w};
    struct hv_planner_result found = {0};
    struct hv_bound bound = {0};
    struct hv_err err = {0};

    bool stress = false;
    struct hv_cluster *slow = NULL;
    o.start = read_options(L, &w.share, &stress);
    struct hv_cost *cost = stress ? hv_stress_cost(r->cost, &slow) : r->cost;
    if (stress) {
        o.progress = NULL;
        o.incumbent = NULL;
    } else if (o.start == NULL) {
        hv_bound_iteration(r->cost, &r->host->arena, &bound);
        emit_bound(r, bound.spread_s);
    } else {
        o.progress = NULL; /* its parts do not give a bound for the whole */
    }
    if (q->budget > 0) {
        o.budget = q->budget > r->evaluations ? q->budget - r->evaluations : 1;
    }
    enum hv_status s = hv_planner_run(cost, &o, &found, &err);
    r->evaluations += found.evaluations;
    json_t *tree = s == HV_OK ? hv_plan_to_json(found.plan, NULL, NULL, NULL) : NULL;
    hv_plan_unref(found.plan);
    if (stress) {
        hv_cost_free(cost);
        hv_cluster_unref(slow);
    }
    if (s != HV_OK) {
        lua_pushnil(L);
        lua_pushstring(L, err.text);
        return 2;
    }
    json_t **guard = lua_newuserdatauv(L, sizeof *guard, 0);
    *guard = tree;
    luaL_setmetatable(L, HV__TREE);
    hv__push_json(L, tree);
    hv__plan_make(L, -1);
    return 1;
}

void hv__api_auto(lua_State *L)
{
    static const luaL_Reg rows[] = {{"auto", plan_auto}, {NULL, NULL}};
    hv__api_add(L, "plan", rows);
}
