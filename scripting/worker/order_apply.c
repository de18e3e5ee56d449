/*
 * Gives a plan the order of a plugin's order(p): the schedule part of a composition. The call of
 * order(p) is in plugin/order.c.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/order_tokens.h"
#include "scripting/api/plan_int.h"
#include "scripting/plugin/order_int.h"
#include "scripting/worker/parts_int.h"

#include <math.h>

/** Stage costs of a replica's stages, one micro-batch on the first rank. Raises errors. */
static void price_stages(lua_State *L, const struct hv_plan *plan, const struct hv_replica *r,
                         struct hv_order_request *q)
{
    struct hv__run *run = hv__run_of(L, "order");
    struct hv_arena *a = &hv__host(L)->arena;
    size_t n = r->n_stages * (size_t)q->chunks;
    struct hv_stage_cost *costs = hv_arena_new(a, struct hv_stage_cost, n);
    double *bytes = hv_arena_new(a, double, n);
    struct hv_err err = {0};

    for (size_t i = 0; i < n; i++) {
        const struct hv_stage_query sq = {
            .plan = plan, .replica = r, .stage = i % r->n_stages, .chunk = i / r->n_stages};
        struct hv_pass pass;
        if (hv_cost_pass(run->cost, &sq, &pass, &err) != HV_OK) {
            hv__raise(L, &err);
        }
        costs[i] = (struct hv_stage_cost){pass.forward_s, pass.input_grad_s + pass.recompute_s,
                                          pass.weight_grad_s};
        bytes[i] = pass.activation_bytes;
        q->cost.f_s = fmax(q->cost.f_s, costs[i].f_s);
        q->cost.b_s = fmax(q->cost.b_s, costs[i].b_s);
        q->cost.w_s = fmax(q->cost.w_s, costs[i].w_s);
    }
    q->costs = costs;
    q->activation_bytes = bytes;
}

/** Why a plan cannot take an order of its own, or NULL. */
static const char *order_misfit(const struct hv_plan *plan)
{
    const struct hv_replica *r = plan->replicas;

    if (plan->n_replicas == 0) {
        return "the plan has no pipeline";
    }
    for (size_t i = 1; i < plan->n_replicas; i++) {
        if (r[i].n_stages != r->n_stages || r[i].micro_batches != r->micro_batches) {
            return "its pipelines differ in stages or micro-batches, but an order fits one shape "
                   "only";
        }
    }
    for (size_t s = 1; s < r->n_stages; s++) {
        if (r->stages[s].n_ranges != r->stages[0].n_ranges) {
            return "its stages differ in the number of layer ranges";
        }
    }
    return NULL;
}

void hv__apply_order(lua_State *L, const struct hv_plugin *p, const json_t *options)
{
    const struct hv__plan *handle = hv__plan_make(L, -1);
    const struct hv_plan *plan = handle->doc.plan;
    const char *misfit = order_misfit(plan);

    if (misfit != NULL) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s does not fit this plan: %s", p->id, misfit);
        return;
    }
    const struct hv_replica *r = plan->replicas;
    struct hv_order_request q = {
        .plugin = p,
        .ranks = (int32_t)r->n_stages,
        .micro_batches = (int32_t)r->micro_batches,
        .chunks = (int32_t)(r->stages[0].n_ranges > 0 ? r->stages[0].n_ranges : 1)};
    price_stages(L, plan, r, &q);
    hv__push_json(L, handle->doc.json.root); /* the plan as a table, to be given another schedule */
    hv__push_json(L, options);
    if (!hv__call_order(L, &q)) {
        return;
    }
    lua_pop(L, 1);
    (void)hv__take_order(L, lua_gettop(L), "order", q.ranks, &hv__host(L)->arena);
    lua_createtable(L, 0, 2);
    lua_insert(L, -2);
    lua_setfield(L, -2, "order");
    hv__set_text(L, "name", "explicit");
    lua_setfield(L, -2, "schedule");
    lua_pushnil(L);
}
