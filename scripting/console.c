/*
 * The console: one host that lives from line to line, with a run that never ends. Not for reading
 * lines (ui/cli/cmd_lua.c).
 */
#include "scripting/console.h"
#include "scripting/run_int.h"
#include "solver/base/json.h"

#include <stdlib.h>
#include <string.h>

#define LINE_INSTRUCTIONS INT64_C(20000000000)
#define ENVIRONMENT       "hv.console"

struct hv_console {
    struct hv_console_config config;
    struct hv_run_request request;
    struct hv__run run;
    struct hv_str *out; /**< of the line that runs */
};

static void take_log(void *ctx, const char *text)
{
    const struct hv_console *c = ctx;
    if (c->out != NULL)
        hv_str_addf(c->out, "%s\n", text);
}

static bool is_cancelled(void *ctx)
{
    const struct hv_console *c = ctx;
    return c->config.cancel != NULL && c->config.cancel(c->config.ctx);
}

/** Makes the environment with ctx in it and keeps it in the registry. */
static int open_environment(lua_State *L)
{
    hv__env_push(L, ".");
    json_t **options = lua_newuserdatauv(L, sizeof *options, 0);
    *options = json_object();
    luaL_setmetatable(L, "hv.tree");
    hv__push_ctx(L, *options);
    lua_setfield(L, -3, "ctx");
    lua_pop(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, ENVIRONMENT);
    return 0;
}

static enum hv_status open_host(struct hv_console *c, struct hv_err *err)
{
    const struct hv_host_limits limits = {.instructions = LINE_INSTRUCTIONS,
                                          .seed = c->config.seed,
                                          .cancel = is_cancelled,
                                          .log = take_log,
                                          .ctx = c};
    enum hv_status s = hv_host_new(&c->run.host, &limits, err);

    if (s != HV_OK)
        return s;
    c->run.host->run = &c->run;
    return hv__guard(c->run.host, open_environment, NULL, err);
}

enum hv_status hv_console_new(struct hv_console **out, const struct hv_console_config *config,
                              struct hv_err *err)
{
    struct hv_console *c = hv_xcalloc(1, sizeof *c);
    const struct hv_inputs *in = config->inputs;

    c->config = *config;
    c->request = (struct hv_run_request){
        .inputs = in, .plugins = config->plugins, .strategy = "console", .seed = config->seed};
    c->run.request = &c->request;
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
    if (c == NULL)
        return;
    hv_host_free(c->run.host);
    hv_cost_free(c->run.cost);
    json_decref(c->run.best);
    free(c);
}

/** A chunk on its way through the protected call. */
struct line {
    struct hv_console *console;
    const char *text;
    bool more;
};

/** Adds a value as text: tables as JSON where they can be written so. */
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
    if (code == LUA_OK)
        return true;
    lua_pop(L, 1);
    if (luaL_loadbufferx(L, line->text, strlen(line->text), "=console", "t") == LUA_OK)
        return true;
    const char *why = lua_tostring(L, -1);
    size_t n = why != NULL ? strlen(why) : 0;
    line->more = n > 5 && strcmp(why + n - 5, "<eof>") == 0;
    if (!line->more)
        lua_error(L);
    return false;
}

static int run_line(lua_State *L)
{
    struct line *line = lua_touserdata(L, 1);

    lua_settop(L, 0);
    if (!compile(L, line))
        return 0;
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

/** After a kill nothing of Lua runs any more: another host takes the place. */
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
    if (c->run.host == NULL && open_host(c, err) != HV_OK)
        return HV_CONSOLE_ERROR;
    c->out = out;
    c->run.host->instructions_left = LINE_INSTRUCTIONS;
    enum hv_status s = hv__guard(c->run.host, run_line, &line, err);
    c->out = NULL;
    hv_arena_free(&c->run.host->arena);
    if (s != HV_OK && c->run.host->killed != NULL)
        start_again(c, err);
    return s != HV_OK ? HV_CONSOLE_ERROR : line.more ? HV_CONSOLE_MORE : HV_CONSOLE_DONE;
}
