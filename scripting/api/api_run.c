/*
 * hv.log, hv.random, hv.stopping, hv.progress, hv.incumbent, hv.bound, hv.strategies, hv.strategy:
 * the run itself. Functions that need a run do nothing while only the metadata of a plugin is read.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/offer_int.h"
#include "scripting/api/plan_int.h"
#include "scripting/api/queue_int.h"
#include "scripting/api/table.h"
#include "solver/base/json/json.h"
#include "solver/base/units.h"

#include <math.h>
#include <string.h>

#define TEXT_MAX 200

/***
Writes a line to the log of the run; arguments are joined by spaces.
@function hv.log
@tparam[opt] any ... values of any type
@treturn nil nothing
@units none
@raise none
@usage hv.log("nodes", ctx.cluster.n_nodes)
*/
static int api_log(lua_State *L)
{
    return hv__print(L);
}

/***
A seeded random number: without argument in [0, 1), with n a whole number from 1 to n.
@function hv.random
@tparam[opt] integer n upper end
@treturn number the random number
@units none
@raise n below 1
@usage assert(hv.random(6) <= 6 and hv.random() < 1)
*/
static int api_random(lua_State *L)
{
    struct hv_host *h = hv__host(L);

    if (lua_isnoneornil(L, 1)) {
        lua_pushnumber(L, hv_rng_double(&h->rng));
        return 1;
    }
    lua_Integer n = luaL_checkinteger(L, 1);
    luaL_argcheck(L, n >= 1, 1, "expected a whole number of at least 1");
    lua_pushinteger(L, 1 + (lua_Integer)hv_rng_below(&h->rng, (uint64_t)n));
    return 1;
}

static json_t *new_event(const char *name)
{
    json_t *e = json_object();
    json_object_set_new(e, "event", json_string(name));
    return e;
}

/***
Reports the progress of the run.
@function hv.progress
@tparam number frac from 0 to 1
@tparam[opt] string text the current step
@treturn nil nothing
@units frac is a share
@raise a share below 0 or above 1; outside a run
@usage hv.progress(0.5, "second half")
*/
static int api_progress(lua_State *L)
{
    struct hv__run *r = hv__run_of(L, "hv.progress");
    double frac = luaL_checknumber(L, 1);
    const char *text = luaL_optstring(L, 2, NULL);

    luaL_argcheck(L, frac >= 0 && frac <= 1, 1, "expected a number from 0 to 1");
    json_t *e = new_event("progress");
    json_object_set_new(e, "frac", hv_json_num(frac));
    json_t *s = text != NULL ? json_stringn(text, strnlen(text, TEXT_MAX)) : NULL;
    if (s != NULL) {
        json_object_set_new(e, "text", s);
    }
    hv__emit(r, e);
    return 0;
}

/***
Reports a good plan during the search: it is judged, shown, and kept if the run ends early.
@function hv.incumbent
@tparam handle|table plan handle, or table as hv.plan.new takes {micro_batch, replicas, …}
@treturn boolean true when it is the best so far; false and the reason when it cannot be judged
@units none
@raise a table that is not a plan; outside a run
@usage assert(hv.incumbent(hv.strategy("uniform")))
*/
static int api_incumbent(lua_State *L)
{
    struct hv__run *r = hv__run_of(L, "hv.incumbent");
    struct hv_err err = {0};
    const json_t *before = r->best;

    lua_settop(L, 1);
    if (r->i_job > 0) { /* this plan is for one job, not for the run */
        lua_pushboolean(L, 0);
        lua_pushliteral(L, "inside hv.for_job no plan is kept");
        return 2;
    }
    r->calls->compose(L, r);
    if (lua_isnil(L, 1)) {
        lua_pushboolean(L, 0);
        lua_pushliteral(L, "the composition refuses the plan");
        return 2;
    }
    const struct hv__plan *p = hv__plan_make(L, 1);
    const char *lost = hv__uses_lost(r, p->doc.plan, &r->host->arena);
    if (lost != NULL) {
        lua_pushboolean(L, 0);
        lua_pushstring(L, lost);
        return 2;
    }
    if (hv__offer(r, p->doc.json.root, &err) != HV_OK) {
        lua_pushboolean(L, 0);
        lua_pushstring(L, err.text);
        return 2;
    }
    lua_pushboolean(L, r->best != before);
    return 1;
}

/***
Reports a lower bound of the iteration time of all plans of this search.
@function hv.bound
@tparam number seconds least iteration time, in seconds
@treturn nil nothing
@units seconds
@raise a negative or unknown number; outside a run
@usage hv.bound(0.5)
*/
static int api_bound(lua_State *L)
{
    struct hv__run *r = hv__run_of(L, "hv.bound");
    double s = luaL_checknumber(L, 1);

    luaL_argcheck(L, s >= 0 && isfinite(s), 1, "expected seconds");
    if (r->i_job > 0) {
        return 0;
    }
    json_t *e = new_event("bound");
    json_object_set_new(e, "iteration_s", hv_json_num(s));
    hv__emit(r, e);
    return 0;
}

/***
True when the search should end: near the time limit and when the budget of evaluations is spent.
With a share, true when that part of the time is used, so that a step that only lists candidates
leaves the rest of the time for their evaluation.
@function hv.stopping
@tparam[opt] number share of the time until then, from 0 to 1 (1)
@treturn boolean true when it should
@units share is a fraction
@raise a share below 0 or above 1; outside a run
@usage while not hv.stopping(0.5) do break end
*/
static int api_stopping(lua_State *L)
{
    struct hv__run *r = hv__run_of(L, "hv.stopping");
    double share = luaL_optnumber(L, 1, 1);

    luaL_argcheck(L, share >= 0 && share <= 1, 1, "expected a share from 0 to 1");
    lua_pushboolean(L, hv__run_is_late(r, share) ||
                           (r->request->budget > 0 && r->evaluations >= r->request->budget));
    return 1;
}

/***
Another strategy's plan for the same input, inside this run's budget.
@function hv.strategy
@tparam string id name of the strategy
@tparam[opt] table options {key = value} as its rows allow
@treturn handle plan: with check, eval and table; nil and the reason where it has none
@units none
@raise unknown strategy or option, strategies that call each other more than 4 deep, errors of the
other strategy
@usage local start = hv.strategy("manual", {tp = 4})
print(start and start:eval().iteration_s)
*/
static int api_strategy(lua_State *L)
{
    struct hv__run *r = hv__run_of(L, "hv.strategy");
    return r->calls->strategy(L, r);
}

/***
The strategies of this run: shipped ones and the user's own, sorted by id; broken plugins are left
out.
@function hv.strategies
@treturn table list of {id, kind = its kinds joined by ", ", kinds = list, family = the plugin that
it is a row of or nil, effort = "quick|medium|slow" or nil, most_devices = largest
cluster on which one of that effort is asked without being named (0: none), stale = its plans
compute with stale weights, serves = it plans inference, plans = it has plan(ctx)}
@units most_devices is a number of devices
@raise outside a run
@usage for _, s in ipairs(hv.strategies()) do print(s.id, s.effort) end
*/
static int api_strategies(lua_State *L)
{
    struct hv__run *r = hv__run_of(L, "hv.strategies");
    r->calls->strategies(L, r);
    return 1;
}

/***
Lets the plan that this run returns be its answer although a better one was reported: where it is
worse by no more than this share of what the job minimises.
@function hv.prefer
@tparam number frac from 0 to 1
@treturn nil nothing
@units a fraction
@raise a share below 0 or above 1, outside a run
@usage hv.prefer(0.06)
*/
static int api_prefer(lua_State *L)
{
    struct hv__run *r = hv__run_of(L, "hv.prefer");
    double frac = luaL_checknumber(L, 1);

    luaL_argcheck(L, frac >= 0 && frac <= 1, 1, "expected a fraction from 0 to 1");
    if (r->depth == 0) {
        r->prefer_frac = frac;
    }
    return 0;
}

void hv__api_run(lua_State *L)
{
    static const luaL_Reg rows[] = {{"log", api_log},
                                    {"prefer", api_prefer},
                                    {"random", api_random},
                                    {"progress", api_progress},
                                    {"incumbent", api_incumbent},
                                    {"bound", api_bound},
                                    {"stopping", api_stopping},
                                    {"strategies", api_strategies},
                                    {"strategy", api_strategy},
                                    {"for_job", hv__for_job},
                                    {NULL, NULL}};
    hv__api_add(L, NULL, rows);
}
