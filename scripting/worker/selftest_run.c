/*
 * t.with of self-tests: a run on inputs that the test writes down, so that plans of a strategy go
 * through the judge. The tests themselves are in selftest.c.
 */
#include "scripting/api/input_int.h"
#include "scripting/worker/parts_int.h"
#include "scripting/worker/worker_int.h"
#include "solver/cost/cost.h"

#include <string.h>

/** A run inside a self-test. */
struct inside {
    const struct hv_plugin *plugin;
    struct hv_inputs inputs;
    struct hv_plugins plugins; /**< the one of the test */
    struct hv_run_request request;
    struct hv__run run;
    json_t *options;
};

/** Number of the run in this state: libraries store prices, so each run has its own. */
static size_t next_run(lua_State *L)
{
    lua_Integer n = 0;

    if (lua_getfield(L, LUA_REGISTRYINDEX, "hv.selftest.runs") == LUA_TNUMBER) {
        n = lua_tointeger(L, -1);
    }
    lua_pop(L, 1);
    lua_pushinteger(L, n + 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "hv.selftest.runs");
    return (size_t)n + 1;
}

/** Reads the table at 1 into inputs and options. */
static enum hv_status read_table(lua_State *L, struct inside *in, struct hv_err *err)
{
    static const char *const keys[] = {"cluster", "model", "job", "options"};
    struct hv_json doc = {0};
    json_t *tree = hv__to_json(L, 1, err);

    if (tree == NULL) {
        return HV_EPLUGIN;
    }
    hv_json_wrap(&doc, tree, "inputs");
    struct hv_jp root = hv_jp_root(&doc);
    enum hv_status s = hv_jp_object(&root, keys, HV_COUNT(keys), err);
    if (s == HV_OK) {
        s = hv__job_inputs(&root, &in->inputs, err);
    }
    struct hv_jp given = hv_jp_get(&root, "options");
    if (s == HV_OK) {
        s = hv_options_check(in->plugin, json_is_object(given.v) ? given.v : NULL, &in->options,
                             err);
    }
    hv_json_free(&doc);
    return s;
}

/** Calls f at 1 with ctx and the plugin's table; protected. */
static int call_inside(lua_State *L)
{
    struct inside *in = lua_touserdata(L, 2);
    struct hv_err err = {0};

    lua_settop(L, 1);
    if (hv__plugin_push_of(L, in->plugin, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    hv__renew_views(L);
    hv__push_ctx_of(L, 2, in->options);
    lua_insert(L, 2);
    lua_call(L, 2, LUA_MULTRET);
    return lua_gettop(L);
}

/** Makes the run of the inputs. */
static void open_run(lua_State *L, struct inside *in)
{
    in->plugins = (struct hv_plugins){.items = (struct hv_plugin *)(uintptr_t)in->plugin, .n = 1};
    in->request = (struct hv_run_request){
        .inputs = &in->inputs, .plugins = &in->plugins, .strategy = in->plugin->id, .seed = 1};
    in->run = (struct hv__run){.request = &in->request,
                               .calls = hv__run_calls(),
                               .host = hv__host(L),
                               .i_job = next_run(L),
                               .cost = hv_cost_new(in->inputs.cluster.cluster,
                                                   in->inputs.model.model, &in->inputs.job.job)};
    in->run.host->run = &in->run;
}

static void close_run(struct inside *in)
{
    hv_cost_free(in->run.cost);
    json_decref(in->run.best);
    json_decref(in->options);
    hv_inputs_free(&in->inputs);
}

int hv__selftest_with(lua_State *L, const struct hv_plugin *p)
{
    struct inside in = {.plugin = p};
    struct hv_host *h = hv__host(L);
    struct hv_err err = {0};

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    if (h->run != NULL) {
        return luaL_error(L, "t.with: another call is active (let it end first)");
    }
    lua_settop(L, 2);
    if (read_table(L, &in, &err) != HV_OK) {
        close_run(&in);
        return hv__raise(L, &err);
    }
    open_run(L, &in);
    lua_pushcfunction(L, call_inside);
    lua_replace(L, 1);
    lua_pushlightuserdata(L, &in);
    int status = lua_pcall(L, 2, LUA_MULTRET, 0);
    h->run = NULL;
    h->generation++; /* handles of the run are stale from here on */
    close_run(&in);
    return status != LUA_OK ? lua_error(L) : lua_gettop(L);
}
