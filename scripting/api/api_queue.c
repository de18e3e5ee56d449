/*
 * hv.for_job: work on one job of the queue as if it were the run's own.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/offer_int.h"
#include "scripting/api/queue_int.h"
#include "solver/base/units.h"

/** One call of hv.for_job: the run as if a job of the queue were its own. */
struct visit {
    struct hv__run *run;
    size_t i; /**< from 0 */
    struct hv_inputs inputs;
    struct hv_run_request request;
};

/** Calls f at 2 with the ctx of the job; the ctx at 1 has the options. It runs protected, so that
 * the caller can restore the run's own inputs after any error. */
static int call_inside(lua_State *L)
{
    struct visit *v = lua_touserdata(L, 3);
    struct hv__run *r = v->run;
    const struct hv_job_inputs *own = &r->queue[v->i].own;

    lua_settop(L, 2);
    v->inputs = *r->request->inputs;
    v->request = *r->request;
    if (own->model.model != NULL) {
        v->inputs.model = own->model;
    }
    if (own->has_job) {
        v->inputs.job = own->job;
    }
    v->request.inputs = &v->inputs;
    r->cost = hv__queue_cost(r, v->i);
    r->request = &v->request;
    r->i_job = v->i + 1;
    hv__renew_views(L);
    hv__push_ctx(L, json_null());
    lua_getfield(L, 1, "options");
    lua_setfield(L, -2, "options");
    lua_getfield(L, 1, "system");
    lua_setfield(L, -2, "system");
    lua_call(L, 1, LUA_MULTRET);
    return lua_gettop(L) - 1;
}

/***
Works on one job of the queue as if it were the run's own: inside, ctx, hv.cost, hv.plan and what
`require` loads know its model and job only. Plans handed to hv.incumbent there are not kept.
@function hv.for_job
@tparam table ctx {cluster, model, job, jobs, options}, what plan() got
@tparam integer i which of ctx.jobs
@tparam function f called with the ctx of that job
@treturn any what f returns
@units none
@raise a number that no job has, a call inside another, errors of f; outside a run
@usage local n = #ctx.jobs > 1 and hv.for_job(ctx, 1, function(own) return own.model.n_layers end)
*/
int hv__for_job(lua_State *L)
{
    struct hv__run *r = hv__run_of(L, "hv.for_job");
    lua_Integer i = luaL_checkinteger(L, 2);
    const struct hv_run_request *request = r->request;
    struct hv_cost *cost = r->cost;

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    if (r->i_job > 0) {
        return luaL_error(L, "hv.for_job: another call is active (let it end first)");
    }
    bool alone = r->n_queue == 0 && i == 1; /* the run's own job is the queue */
    luaL_argcheck(L, alone || (i >= 1 && (size_t)i <= r->n_queue), 2,
                  "expected the number of a job in ctx.jobs");
    lua_settop(L, 3);
    if (alone) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, LUA_MULTRET);
        return lua_gettop(L) - 2;
    }
    struct visit v = {.run = r, .i = (size_t)i - 1};
    lua_remove(L, 2);
    lua_pushcfunction(L, call_inside);
    lua_insert(L, 1);
    lua_pushlightuserdata(L, &v);
    int status = lua_pcall(L, 3, LUA_MULTRET, 0);
    r->request = request;
    r->cost = cost;
    r->i_job = 0;
    hv__renew_views(L);
    return status != LUA_OK ? lua_error(L) : lua_gettop(L);
}
