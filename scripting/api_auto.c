/*
 * hv.plan.auto: the planner of solver/planner inside a run, with its events, limits and cancel.
 */
#include "scripting/run_int.h"
#include "solver/io/own/plan_write.h"
#include "solver/planner/planner.h"

#include "solver/base/units.h"

static bool planner_stop(void *ctx)
{
    struct hv__run *r = ctx;
    return hv__run_is_late(r) ||
           (r->request->cancel != NULL && r->request->cancel(r->request->ctx));
}

static void planner_incumbent(void *ctx, const struct hv_plan *plan)
{
    struct hv__run *r = ctx;
    json_t *tree = hv_plan_to_json(plan, NULL, NULL, NULL);
    enum hv_status s = hv__offer(r, tree, NULL);

    (void)s; /* what the host refuses is just not kept */
    json_decref(tree);
}

static void planner_progress(void *ctx, double frac, const char *text)
{
    json_t *e = json_object();
    json_object_set_new(e, "event", json_string("progress"));
    json_object_set_new(e, "frac", hv_json_num(frac));
    json_object_set_new(e, "text", json_string(text));
    hv__emit(ctx, e);
}

static void emit_bound(struct hv__run *r, double bound_s)
{
    json_t *e = json_object();
    json_object_set_new(e, "event", json_string("bound"));
    json_object_set_new(e, "iteration_s", hv_json_num(bound_s));
    hv__emit(r, e);
}

/***
hetviz's own search over plans, inside the limits of this run: bounds and better and better plans
are shown while it runs.
@function hv.plan.auto
@treturn handle plan: with check, eval and table; nil and the reason where there is none
@units none; budget and time limit are those of the run
@raise outside of plan()
@usage local best, why = hv.plan.auto()
*/
static int plan_auto(lua_State *L)
{
    struct hv__run *r = hv__run_of(L, "hv.plan.auto");
    const struct hv_run_request *q = r->request;
    struct hv_arena *arena = &r->host->arena;
    struct hv_planner_options o = {.stop = planner_stop,
                                   .incumbent = planner_incumbent,
                                   .progress = planner_progress,
                                   .ctx = r};
    struct hv_planner_result found = {0};
    struct hv_bound bound = {0};
    struct hv_err err = {0};

    hv_eval_bound(r->cost, arena, &bound);
    emit_bound(r, bound.iteration_s);
    if (q->budget > 0)
        o.budget = q->budget > r->evaluations ? q->budget - r->evaluations : 1;
    enum hv_status s = hv_planner_run(r->cost, &o, &found, &err);
    r->evaluations += found.evaluations;
    if (s != HV_OK) {
        lua_pushnil(L);
        lua_pushstring(L, err.text);
        return 2;
    }
    json_t *tree = hv_plan_to_json(found.plan, NULL, NULL, NULL);
    hv_plan_unref(found.plan);
    json_t **guard = lua_newuserdatauv(L, sizeof *guard, 0);
    *guard = tree;
    luaL_setmetatable(L, "hv.tree");
    hv__push_json(L, tree);
    hv__plan_make(L, -1);
    return 1;
}

void hv__api_auto(lua_State *L)
{
    static const luaL_Reg rows[] = {{"auto", plan_auto}, {NULL, NULL}};
    hv__api_add(L, "plan", rows);
}
