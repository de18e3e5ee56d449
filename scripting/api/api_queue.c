/*
 * Runs for a queue of jobs: the list of jobs for the strategy, and work on one of them as if it
 * were the run's own. The strategy chooses the devices of each job.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/offer_int.h"
#include "scripting/api/queue_int.h"
#include "solver/base/units.h"

#include <stdlib.h>
#include <string.h>

enum hv_status hv__queue_open(struct hv__run *r, struct hv_err *err)
{
    enum hv_status s = hv_queue_read(r->request->inputs, &r->queue, &r->n_queue, err);

    r->queue_costs = r->n_queue > 0 ? hv_xcalloc(r->n_queue, sizeof *r->queue_costs) : NULL;
    return s;
}

void hv__queue_close(struct hv__run *r)
{
    hv_job_costs_free(r->queue_costs, r->n_queue);
    hv_queue_free(r->queue, r->n_queue);
    r->queue = NULL;
    r->queue_costs = NULL;
    r->n_queue = 0;
}

struct hv_cost *hv__queue_cost(struct hv__run *r, size_t i)
{
    if (r->queue_costs[i] == NULL) {
        r->queue_costs[i] = hv_job_cost_new(r->request->inputs, &r->queue[i].own);
    }
    return r->queue_costs[i];
}

size_t hv__queue_find(const struct hv__run *r, const char *name)
{
    size_t i = 0;

    while (i < r->n_queue && strcmp(r->queue[i].name, name) != 0) {
        i++;
    }
    return i;
}

/** The queue entry of job `at` of a plan, which may be a further part of that entry; n_queue: none.
 */
static size_t entry_of(const struct hv__run *r, const json_t *jobs, size_t at)
{
    const char *name = json_string_value(json_object_get(json_array_get(jobs, at), "name"));
    const char *first = name;

    for (size_t i = at + 1; i-- > 0;) { /* parts stand behind what they continue */
        const json_t *e = json_array_get(jobs, i);
        const char *own = json_string_value(json_object_get(e, "name"));
        const char *before = json_string_value(json_object_get(e, "continues"));
        if (own != NULL && first != NULL && strcmp(own, first) == 0 && before != NULL) {
            first = before;
        }
    }
    return first != NULL ? hv__queue_find(r, first) : r->n_queue;
}

void hv__queue_complete(const struct hv__run *r, json_t *plan)
{
    json_t *jobs = json_object_get(plan, "jobs"), *full = json_array();

    for (size_t i = 0; i < json_array_size(jobs); i++) {
        json_t *e = json_copy(json_array_get(jobs, i));
        json_t *own = json_copy(json_object_get(e, "plan"));
        size_t at = entry_of(r, jobs, i);
        const struct hv_job_inputs *in = at < r->n_queue ? &r->queue[at].own : NULL;
        if (in != NULL && in->model.model != NULL) {
            json_object_set_new(own, "model", hv__reference(in->model.path, &in->model.json));
        }
        if (in != NULL && in->has_job) {
            json_object_set(own, "job", in->job.json.root);
        }
        if (own != NULL) {
            json_object_set_new(e, "plan", own);
        }
        json_array_append_new(full, e);
    }
    if (json_array_size(jobs) > 0) {
        json_object_set(plan, "jobs", full);
    }
    json_decref(full);
}

void hv__push_queue(lua_State *L, const struct hv__run *r)
{
    lua_createtable(L, (int)r->n_queue, 0);
    for (size_t i = 0; i < r->n_queue; i++) {
        const struct hv_queued_job *q = &r->queue[i];
        const struct hv_inputs *in = r->request->inputs;
        const struct hv_model *m =
            q->own.model.model != NULL ? q->own.model.model : in->model.model;
        lua_createtable(L, 0, 9);
        hv__set_num(L, "position", (double)i + 1);
        hv__set_text(L, "name", q->name);
        hv__set_num(L, "arrival_s", q->arrival_s);
        hv__set_num(L, "weight", q->weight);
        hv__set_num(L, "iterations", q->iterations);
        hv__set_num(L, "deadline_s", q->deadline_s);
        hv__set_num(L, "devices", q->n_devices > 0 ? (double)q->n_devices : HV_UNKNOWN);
        hv__push_job(L, q->own.has_job ? &q->own.job.job : &in->job.job);
        lua_setfield(L, -2, "job");
        lua_createtable(L, 0, 3);
        hv__set_text(L, "name", m->name);
        hv__set_text(L, "kind", hv_model_kind_name(m->kind));
        hv__set_num(L, "n_layers", (double)m->n_blocks);
        lua_setfield(L, -2, "model");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

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
