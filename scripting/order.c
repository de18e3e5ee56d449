/*
 * Calls order(p) of a plugin: by itself for `hetviz schedule`, or on a plan as part of a
 * composition. Checking and timing the order is solver/sim's.
 */
#include "scripting/order.h"
#include "scripting/run_int.h"
#include "solver/base/units.h"

#include <string.h>

#define ORDER_DEADLINE_S 30.0

/** One figure of every stage as a list into the table at the top. */
static void set_column(lua_State *L, const char *key, const double *first, size_t stride, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushnumber(L, first == NULL ? 1 : first[i * stride]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, key);
}

/** Pushes p. */
static void push_query(lua_State *L, const struct hv_order_query *q)
{
    size_t n = (size_t)q->ranks * (size_t)q->chunks;
    size_t stride = sizeof *q->costs / sizeof(double);

    lua_createtable(L, 0, 8);
    hv__set_num(L, "ranks", q->ranks);
    hv__set_num(L, "micro_batches", q->micro_batches);
    hv__set_num(L, "chunks", q->chunks);
    hv__set_num(L, "stages", (double)n);
    lua_createtable(L, 0, 4);
    set_column(L, "forward", &q->costs[0].f_s, stride, n);
    set_column(L, "backward", &q->costs[0].b_s, stride, n);
    set_column(L, "weight", &q->costs[0].w_s, stride, n);
    hv__set_num(L, "hop", q->hop_s);
    lua_setfield(L, -2, "times");
    set_column(L, "memory", q->activation_bytes, 1, n);
    hv__push_json(L, q->options);
    lua_setfield(L, -2, "options");
}

/** Pushes the lists that order(p) answers, or nil and the reason. Raises errors. */
static void call_order(lua_State *L, const struct hv_plugin *p, const struct hv_order_query *q)
{
    struct hv_err err = {0};

    if (hv__plugin_push(hv__host(L), p->path, p->name, &err) != HV_OK)
        hv__raise(L, &err);
    lua_getfield(L, -1, "order");
    lua_remove(L, -2);
    push_query(L, q);
    lua_call(L, 1, 2);
    if (lua_isnil(L, -2))
        return;
    if (!lua_istable(L, -2) || lua_rawlen(L, -2) != (lua_Unsigned)q->ranks)
        luaL_error(L, "order() of '%s' returned %s, expected %d lists of tokens, one per rank",
                   p->id, lua_istable(L, -2) ? "another number of lists" : luaL_typename(L, -2),
                   (int)q->ranks);
}

/** What hv_order_make's protected part works on. */
struct making {
    const struct hv_plugin *plugin;
    const struct hv_order_query *query;
    struct hv_arena *arena;
    struct hv_order_text *order;
    const char *reason;
};

/** Copies the list of tokens at the top. */
static void copy_tokens(lua_State *L, struct hv_arena *a, struct hv_order_text *out)
{
    if (!lua_istable(L, -1))
        luaL_error(L, "order(): expected a list of tokens per rank, found %s",
                   luaL_typename(L, -1));
    out->n = (size_t)lua_rawlen(L, -1);
    if (out->n > HV_SCHEDULE_OPS_MAX)
        luaL_error(L, "order(): the list is too long");
    const char **tokens = hv_arena_new(a, const char *, out->n + 1);
    for (size_t k = 0; k < out->n; k++) {
        if (lua_rawgeti(L, -1, (lua_Integer)k + 1) != LUA_TSTRING)
            luaL_error(L, "order(): expected tokens such as \"F0.1\", found %s",
                       luaL_typename(L, -1));
        tokens[k] = hv_arena_strdup(a, lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    out->tokens = tokens;
}

static int make_protected(lua_State *L)
{
    struct making *m = lua_touserdata(L, 1);

    call_order(L, m->plugin, m->query);
    if (lua_isnil(L, -2)) {
        m->reason = hv_arena_strdup(m->arena, lua_isstring(L, -1) ? lua_tostring(L, -1)
                                                                  : "the schedule gave no reason");
        return 0;
    }
    lua_pop(L, 1);
    m->order = hv_arena_new(m->arena, struct hv_order_text, (size_t)m->query->ranks);
    for (int32_t r = 0; r < m->query->ranks; r++) {
        lua_rawgeti(L, -1, r + 1);
        copy_tokens(L, m->arena, &m->order[r]);
        lua_pop(L, 1);
    }
    return 0;
}

enum hv_status hv_order_make(const struct hv_plugin *p, const struct hv_order_query *q,
                             struct hv_arena *a, struct hv_order_text **out, struct hv_err *err)
{
    struct making m = {.plugin = p, .query = q, .arena = a};
    const struct hv_host_limits limits = {.deadline_s = ORDER_DEADLINE_S, .seed = q->seed};
    struct hv_host *h = NULL;
    enum hv_status s = hv_host_new(&h, &limits, err);

    if (s == HV_OK)
        s = hv__guard(h, make_protected, &m, err);
    hv_host_free(h);
    if (s == HV_OK && m.reason != NULL)
        s = hv_err_set(err, HV_ENO, "%s: %s", p->id, m.reason);
    *out = m.order;
    return s;
}

/** Stage costs of a replica's stages, one micro-batch on the first rank. Raises errors. */
static void price_stages(lua_State *L, const struct hv_plan *plan, const struct hv_replica *r,
                         struct hv_order_query *q)
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
        if (hv_cost_pass(run->cost, &sq, &pass, &err) != HV_OK)
            hv__raise(L, &err);
        costs[i] = (struct hv_stage_cost){pass.forward_s, pass.input_grad_s + pass.recompute_s,
                                          pass.weight_grad_s};
        bytes[i] = pass.activation_bytes;
    }
    q->costs = costs;
    q->activation_bytes = bytes;
}

/** Why a plan cannot take an order of its own, or NULL. */
static const char *order_misfit(const struct hv_plan *plan)
{
    const struct hv_replica *r = plan->replicas;

    if (plan->n_replicas == 0)
        return "the plan has no pipeline";
    for (size_t i = 1; i < plan->n_replicas; i++)
        if (r[i].n_stages != r->n_stages || r[i].micro_batches != r->micro_batches)
            return "its pipelines differ in stages or micro-batches, and an order fits one shape";
    for (size_t s = 1; s < r->n_stages; s++)
        if (r->stages[s].n_ranges != r->stages[0].n_ranges)
            return "its stages differ in the number of layer ranges";
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
    struct hv_order_query q = {.ranks = (int32_t)r->n_stages,
                               .micro_batches = (int32_t)r->micro_batches,
                               .chunks =
                                   (int32_t)(r->stages[0].n_ranges > 0 ? r->stages[0].n_ranges : 1),
                               .options = options};
    price_stages(L, plan, r, &q);
    hv__push_json(L, handle->doc.json.root); /* the plan as a table, to be given another schedule */
    call_order(L, p, &q);
    if (lua_isnil(L, -2))
        return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 2);
    lua_insert(L, -2);
    lua_setfield(L, -2, "order");
    hv__set_text(L, "name", "explicit");
    lua_setfield(L, -2, "schedule");
    lua_pushnil(L);
}
