/*
 * The console: one host that is kept from line to line, with a run that does not end, on inputs
 * that a line may change. Lines are read in ui/cli/cmd_lua.c and worker_console.c.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/plan_int.h"
#include "scripting/plugin/plugin_host.h"
#include "scripting/worker/console_int.h"
#include "scripting/worker/parts_int.h"
#include "solver/base/json/json.h"

#include <stdlib.h>
#include <string.h>

#define LINE_INSTRUCTIONS INT64_C(20000000000)
#define ENVIRONMENT       "hv.console"

struct hv_console {
    struct hv_console_config config;
    struct hv_run_request request;
    struct hv__run run;
    struct hv_str *out; /**< of the line that runs */
    struct hv__workspace workspace;
    struct hv_inputs now; /**< the inputs as they are: documents of `own`, else of the config */
    struct hv_inputs
        own;          /**< documents that lines have changed; cluster, model, job may be empty */
    json_t *commands; /**< not fetched yet, or NULL */
};

static void take_log(void *ctx, const char *text)
{
    const struct hv_console *c = ctx;
    if (c->out != NULL) {
        hv_str_addf(c->out, "%s\n", text);
    }
}

static bool is_cancelled(void *ctx)
{
    const struct hv_console *c = ctx;
    return c->config.cancel != NULL && c->config.cancel(c->config.ctx);
}

/** Sets ctx in the environment at the top. */
static void put_ctx(lua_State *L)
{
    json_t **options = lua_newuserdatauv(L, sizeof *options, 0);

    *options = json_object();
    luaL_setmetatable(L, HV__TREE);
    hv__push_ctx(L, *options);
    lua_setfield(L, -3, "ctx");
    lua_pop(L, 1);
}

/** Makes the environment with ctx and workspace in it and keeps it in the registry. */
static int open_environment(lua_State *L)
{
    struct hv_console *c = lua_touserdata(L, 1);

    hv__env_push(L, ".", ".");
    put_ctx(L);
    hv__workspace_open(L, &c->workspace, &c->now);
    lua_setfield(L, -2, "workspace");
    lua_setfield(L, LUA_REGISTRYINDEX, ENVIRONMENT);
    return 0;
}

/** Marks handles of the old inputs as stale after a change of the inputs. */
static int renew_ctx(lua_State *L)
{
    hv__host(L)->generation++;
    hv__renew_views(L);
    lua_getfield(L, LUA_REGISTRYINDEX, ENVIRONMENT);
    put_ctx(L);
    return 0;
}

static enum hv_status open_host(struct hv_console *c, struct hv_err *err)
{
    const struct hv_host_limits limits = {.instructions = LINE_INSTRUCTIONS,
                                          .seed = c->config.seed,
                                          .cancel = is_cancelled,
                                          .log = take_log,
                                          .ctx = c};
    enum hv_status s = hv_plugin_host_new(&c->run.host, &limits, err);

    if (s != HV_OK) {
        return s;
    }
    c->run.host->run = &c->run;
    return hv__guard(c->run.host, open_environment, c, err);
}

enum hv_status hv_console_new(struct hv_console **out, const struct hv_console_config *config,
                              struct hv_err *err)
{
    struct hv_console *c = hv_xcalloc(1, sizeof *c);
    const struct hv_inputs *in = config->inputs;

    c->config = *config;
    c->now = *in;
    c->workspace.plans = json_object();
    c->request = (struct hv_run_request){
        .inputs = &c->now, .plugins = config->plugins, .strategy = "console", .seed = config->seed};
    c->run.request = &c->request;
    c->run.calls = hv__run_calls();
    c->run.cost = hv_cost_new(in->cluster.cluster, in->model.model, &in->job.job);
    enum hv_status s = open_host(c, err);
    if (s != HV_OK) {
        hv_console_free(c);
        c = NULL;
    }
    *out = c;
    return s;
}

void hv_console_free(struct hv_console *c)
{
    if (c == NULL) {
        return;
    }
    hv_host_free(c->run.host);
    hv_cost_free(c->run.cost);
    json_decref(c->run.best);
    json_decref(c->commands);
    hv__workspace_free(&c->workspace);
    hv_inputs_free(&c->own);
    free(c);
}

/** A chunk on its way through the protected call. */
struct line {
    struct hv_console *console;
    const char *text;
    bool more;
};

/** Adds a value as text: tables as JSON where possible. */
static void show_value(lua_State *L, int i, struct hv_str *out)
{
    struct hv_err err = {0};
    json_t *tree = lua_istable(L, i) ? hv__to_json(L, i, &err) : NULL;

    if (tree != NULL) {
        hv_json_write(out, tree, false);
        json_decref(tree);
        return;
    }
    hv_str_adds(out, hv__tolstring(L, i, NULL));
    lua_pop(L, 1);
}

/** Compiles the text as an expression, else as statements; false where it is not complete. */
static bool compile(lua_State *L, struct line *line)
{
    struct hv_str text = {0};

    hv_str_addf(&text, "return %s", line->text);
    int code = luaL_loadbufferx(L, hv_str_cstr(&text), text.n, "=console", "t");
    hv_str_free(&text);
    if (code == LUA_OK) {
        return true;
    }
    lua_pop(L, 1);
    if (luaL_loadbufferx(L, line->text, strlen(line->text), "=console", "t") == LUA_OK) {
        return true;
    }
    const char *why = lua_tostring(L, -1);
    size_t n = why != NULL ? strlen(why) : 0;
    line->more = n > 5 && strcmp(why + n - 5, "<eof>") == 0;
    if (!line->more) {
        lua_error(L);
    }
    return false;
}

static int run_line(lua_State *L)
{
    struct line *line = lua_touserdata(L, 1);

    lua_settop(L, 0);
    if (!compile(L, line)) {
        return 0;
    }
    lua_getfield(L, LUA_REGISTRYINDEX, ENVIRONMENT);
    lua_setupvalue(L, -2, 1);
    lua_call(L, 0, LUA_MULTRET);
    int n = lua_gettop(L);
    luaL_checkstack(L, 8, NULL);
    for (int i = 1; i <= n; i++) {
        show_value(L, i, line->console->out);
        hv_str_addc(line->console->out, i < n ? '\t' : '\n');
    }
    return 0;
}

/** A changed tree as a document's text, named for messages. */
static struct hv_json text_of(json_t *tree, const char *name)
{
    struct hv_json j = {0};
    hv_json_wrap(&j, json_deep_copy(tree), name);
    return j;
}

/** Builds the documents that the last line has changed, all or none. */
static enum hv_status build_changed(struct hv_console *c, struct hv_inputs *fresh,
                                    struct hv_err *err)
{
    json_t *const *trees = c->workspace.changed;
    enum hv_status s = HV_OK;

    if (trees[0] != NULL) {
        s = hv_cluster_doc_build(&fresh->cluster, text_of(trees[0], "workspace.cluster"),
                                 &c->config.inputs->devices, err);
    }
    if (s == HV_OK && trees[1] != NULL) {
        s = hv_model_doc_build(&fresh->model, text_of(trees[1], "workspace.model"), err);
    }
    const struct hv_model *m = trees[1] != NULL ? fresh->model.model : c->now.model.model;
    json_t *job = trees[2] != NULL ? trees[2] : c->workspace.trees[2];
    bool job_changed = trees[2] != NULL || (trees[1] != NULL && job != NULL);
    if (s == HV_OK && job_changed) {
        s = hv_job_doc_build(&fresh->job, text_of(job, "workspace.job"), m->max_sequence, err);
    }
    return s;
}

/** Replaces the old documents by the new ones. */
static void take_over(struct hv_console *c, struct hv_inputs *fresh)
{
    if (fresh->cluster.cluster != NULL) {
        hv_cluster_doc_free(&c->own.cluster);
        c->now.cluster = c->own.cluster = fresh->cluster;
    }
    if (fresh->model.model != NULL) {
        hv_model_doc_free(&c->own.model);
        c->now.model = c->own.model = fresh->model;
    }
    if (fresh->job.json.root != NULL) {
        hv_job_doc_free(&c->own.job);
        c->now.job = c->own.job = fresh->job;
    }
}

/** Arguments of take_protected and settle_protected. */
struct taking {
    struct hv_console *console;
    json_t *commands;
    struct hv_err *err;
    bool ok;
};

static int take_protected(lua_State *L)
{
    struct taking *t = lua_touserdata(L, 1);

    t->ok = hv__workspace_take(L, &t->console->workspace, t->commands, t->err);
    return 0;
}

static int settle_protected(lua_State *L)
{
    struct taking *t = lua_touserdata(L, 1);

    hv__workspace_settle(L, &t->console->workspace, t->ok);
    return 0;
}

/** Builds the changed documents and replaces the old ones by them. */
static enum hv_status rebuild(struct hv_console *c, struct hv_err *err)
{
    struct hv_inputs fresh = {0};
    enum hv_status s = build_changed(c, &fresh, err);

    if (s != HV_OK) {
        hv_inputs_free(&fresh);
        return s;
    }
    hv_cost_free(c->run.cost);
    take_over(c, &fresh);
    c->run.cost = hv_cost_new(c->now.cluster.cluster, c->now.model.model, &c->now.job.job);
    return HV_OK;
}

/** Finds the changes of the line and updates everything that depends on them. */
static enum hv_status take_changes(struct hv_console *c, json_t *commands, struct hv_err *err)
{
    struct taking t = {.console = c, .commands = commands, .err = err};
    struct hv_err ignored;
    bool any = false;
    enum hv_status s = hv__guard(c->run.host, take_protected, &t, err);

    if (s == HV_OK && !t.ok) {
        s = HV_EPLUGIN;
    }
    for (int d = 0; d < HV__CONSOLE_DOCS; d++) {
        any = any || c->workspace.changed[d] != NULL;
    }
    if (s == HV_OK && any) {
        s = rebuild(c, err);
    }
    t.ok = s == HV_OK;
    enum hv_status settled = hv__guard(c->run.host, settle_protected, &t, t.ok ? err : &ignored);
    if (s == HV_OK) {
        s = settled;
    }
    return s == HV_OK && any ? hv__guard(c->run.host, renew_ctx, NULL, err) : s;
}

json_t *hv_console_commands(struct hv_console *c)
{
    json_t *commands = c->commands;
    c->commands = NULL;
    return commands;
}

/** Appends the commands of a line that went well. */
static void keep_commands(struct hv_console *c, json_t *commands)
{
    if (c->commands == NULL && json_array_size(commands) > 0) {
        c->commands = json_array();
    }
    if (c->commands != NULL) {
        json_array_extend(c->commands, commands);
    }
}

/** Replaces the host after a kill, because the old one runs no more Lua. */
static void start_again(struct hv_console *c, struct hv_err *err)
{
    struct hv_err again = {0};
    char text[sizeof err->text];

    hv_host_free(c->run.host);
    c->run.host = NULL;
    bool ok = open_host(c, &again) == HV_OK;
    snprintf(text, sizeof text, "%s", err->text);
    hv_err_set(err, err->status, "%s; %s", text, ok ? "variables are gone" : again.text);
}

enum hv_console_state hv_console_eval(struct hv_console *c, const char *text, struct hv_str *out,
                                      struct hv_err *err)
{
    struct line line = {.console = c, .text = text};

    *err = (struct hv_err){0};
    if (c->run.host == NULL && open_host(c, err) != HV_OK) {
        return HV_CONSOLE_ERROR;
    }
    c->out = out;
    c->run.host->instructions_left = LINE_INSTRUCTIONS;
    enum hv_status s = hv__guard(c->run.host, run_line, &line, err);
    c->out = NULL;
    if (s == HV_OK && !line.more) {
        json_t *commands = json_array();
        s = take_changes(c, commands, err);
        if (s == HV_OK) {
            keep_commands(c, commands);
        }
        json_decref(commands);
    }
    hv_arena_free(&c->run.host->arena);
    if (s != HV_OK && c->run.host->killed != NULL) {
        start_again(c, err);
    }
    return s != HV_OK ? HV_CONSOLE_ERROR : line.more ? HV_CONSOLE_MORE : HV_CONSOLE_DONE;
}
