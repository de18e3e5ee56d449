/*
 * What the API tables call back in a run: hv.strategies, hv.strategy, and the schedules of plugins.
 * The composition is run_parts.c's.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/plan_int.h"
#include "scripting/plugin/order_int.h"
#include "scripting/worker/parts_int.h"

#define STRATEGY_DEPTH 4
#define GUEST          "hv.guest" /* metatable */

void hv__call_plan(lua_State *L, const struct hv_plugin *p, const json_t *options)
{
    struct hv_err err = {0};

    if (hv__plugin_push_of(L, p, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    int system = lua_gettop(L);
    lua_getfield(L, system, "plan");
    hv__blame(L);
    hv__push_ctx_of(L, system, options);
    lua_remove(L, system);
    lua_call(L, 1, 2);
}

/** Leaves the guest whose run is in the userdata at 1. */
static int leave_guest(lua_State *L)
{
    struct hv__run **r = lua_touserdata(L, 1);
    (*r)->depth--;
    return 0;
}

/** Counts one more strategy that is called by another. Returns the stack index of the value that
 * counts it off again: when its slot is closed, or when an error passes it. */
static int enter_guest(lua_State *L, struct hv__run *r)
{
    struct hv__run **held = lua_newuserdatauv(L, sizeof *held, 0);

    *held = r;
    if (luaL_newmetatable(L, GUEST)) {
        lua_pushcfunction(L, leave_guest);
        lua_setfield(L, -2, "__close");
    }
    lua_setmetatable(L, -2);
    r->depth++;
    lua_toclose(L, -1);
    return lua_gettop(L);
}

static int call_strategy(lua_State *L, struct hv__run *r)
{
    const struct hv_plugin *p = NULL;
    struct hv_err err = {0};
    json_t *given = NULL, *options = NULL;

    if (r->depth >= STRATEGY_DEPTH) {
        return luaL_error(L, "hv.strategy: strategies call each other more than %d deep",
                          STRATEGY_DEPTH);
    }
    if (hv_plugins_get(r->request->plugins, luaL_checkstring(L, 1), &p, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    if (!p->has[HV_PLUGIN_PLAN]) {
        return luaL_error(L, "hv.strategy: '%s' has no plan()", p->id);
    }
    if (lua_istable(L, 2)) {
        given = hv__to_json(L, 2, &err);
        if (given == NULL) {
            return hv__raise(L, &err);
        }
    }
    enum hv_status s = hv_options_check(p, json_is_object(given) ? given : NULL, &options, &err);
    json_decref(given);
    if (s != HV_OK) {
        return hv__raise(L, &err);
    }
    struct hv_str reason = {0};
    bool applies = hv__applies(r, p, &reason);
    const char *why = hv_arena_strdup(&r->host->arena, hv_str_cstr(&reason));
    hv_str_free(&reason);
    json_t **guard = lua_newuserdatauv(L, sizeof *guard, 0);
    *guard = options;
    luaL_setmetatable(L, HV__TREE);
    if (!applies) {
        lua_pushnil(L);
        lua_pushstring(L, why);
        return 2;
    }
    int guest = enter_guest(L, r);
    hv__call_plan(L, p, options);
    lua_closeslot(L, guest);
    if (lua_isnil(L, -2)) {
        return 2;
    }
    lua_pop(L, 1);
    if (lua_istable(L, -1) && lua_rawlen(L, -1) > 0) {
        lua_rawgeti(L, -1, 1);
    }
    hv__plan_make(L, -1);
    return 1;
}

/** Pushes one row of hv.strategies(). */
static void push_strategy(lua_State *L, const struct hv_plugin *p)
{
    lua_newtable(L);
    lua_pushstring(L, p->id);
    lua_setfield(L, -2, "id");
    lua_pushstring(L, p->kind);
    lua_setfield(L, -2, "kind");
    lua_createtable(L, (int)p->n_kinds, 0);
    for (size_t i = 0; i < p->n_kinds; i++) {
        lua_pushstring(L, hv_kind_name(p->kinds[i]));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "kinds");
    if (p->family != NULL) {
        lua_pushstring(L, p->family);
        lua_setfield(L, -2, "family");
    }
    if (p->effort != HV_EFFORT_UNKNOWN) {
        lua_pushstring(L, hv_effort_name(p->effort));
        lua_setfield(L, -2, "effort");
    }
    lua_pushinteger(L, (lua_Integer)hv_effort_devices(p->effort));
    lua_setfield(L, -2, "most_devices");
    lua_pushboolean(L, p->stale);
    lua_setfield(L, -2, "stale");
    lua_pushboolean(L, p->serves);
    lua_setfield(L, -2, "serves");
    lua_pushboolean(L, p->has[HV_PLUGIN_PLAN]);
    lua_setfield(L, -2, "plans");
}

static void push_strategies(lua_State *L, const struct hv__run *r)
{
    const struct hv_plugins *all = r->request->plugins;
    lua_Integer n = 0;

    lua_newtable(L);
    for (size_t i = 0; i < all->n; i++) {
        if (all->items[i].error == NULL) {
            push_strategy(L, &all->items[i]);
            lua_rawseti(L, -2, ++n);
        }
    }
}

static bool is_schedule(const struct hv_plugin *p)
{
    return p->error == NULL && p->has[HV_PLUGIN_ORDER];
}

static const struct hv_plugin *find_schedule(const struct hv__run *r, const char *id)
{
    const struct hv_plugin *p = hv_plugins_find(r->request->plugins, id);
    return p != NULL && is_schedule(p) ? p : NULL;
}

static const char *schedule_at(const struct hv__run *r, size_t i, const char **summary)
{
    const struct hv_plugins *all = r->request->plugins;

    for (size_t k = 0; k < all->n; k++) {
        if (is_schedule(&all->items[k]) && i-- == 0) {
            *summary = all->items[k].summary;
            return all->items[k].id;
        }
    }
    return NULL;
}

/** Checks the table of options at the top and puts the checked one in its place. */
static void check_options(lua_State *L, const struct hv_plugin *p)
{
    struct hv_err err = {0};
    json_t *checked = NULL, *given = hv__to_json(L, -1, &err);
    enum hv_status s = given != NULL ? hv_options_check(p, given, &checked, &err) : HV_EPLUGIN;

    json_decref(given);
    if (s != HV_OK) {
        hv__raise(L, &err);
    }
    lua_pop(L, 1);
    hv__push_json(L, checked);
    json_decref(checked);
}

static bool call_order(lua_State *L, const struct hv_plugin *p, const struct hv_schedule_input *in)
{
    const struct hv_order_request r = {.plugin = p,
                                       .ranks = in->ranks,
                                       .micro_batches = in->micro_batches,
                                       .chunks = in->chunks,
                                       .cost = in->cost,
                                       .costs = in->costs,
                                       .hop_s = in->hop_s};
    check_options(L, p);
    return hv__call_order(L, &r);
}

const struct hv__run_calls *hv__run_calls(void)
{
    static const struct hv__run_calls calls = {.strategies = push_strategies,
                                               .strategy = call_strategy,
                                               .compose = hv__compose,
                                               .find_schedule = find_schedule,
                                               .schedule_at = schedule_at,
                                               .order = call_order};
    return &calls;
}
