/*
 * The console's Lua: a worker with a copy of the workspace that lives from line to line. What a
 * line says goes to the log, what it changes comes back as commands and becomes steps of the
 * journal. Not for Lua itself (scripting/worker/console.h).
 */
#include "ui/session/session_int.h"

#include <string.h>

static void forget_chunk(struct hv_session *s)
{
    hv_str_clear(&s->lua.chunk);
    s->lua.more = false;
}

/* The commands of an answer, as edits that can be undone. */
static void take_commands(struct hv_session *s, const json_t *commands)
{
    struct hv_err err = {0};
    size_t n = 0;
    if (json_array_size(commands) == 0) {
        return;
    }
    if (hv_session_apply(s, commands, &n, &err) != HV_OK) {
        hv_session_log(s, HV_LOG_ERROR, "lua", "%s", err.text);
    }
    hv_session_log(s, HV_LOG_INFO, "lua",
                   "%zu change%s of the workspace; u takes the last one back", n,
                   n == 1 ? "" : "s");
    s->lua.epoch = s->epoch; /* its copy went the same way */
}

static void take_answer(struct hv_session *s, const json_t *line)
{
    const char *state = json_string_value(json_object_get(line, "state"));
    const char *text = json_string_value(json_object_get(line, "text"));
    const json_t *error = json_object_get(line, "error");
    const char *why = json_string_value(json_object_get(error, "text"));
    s->lua.n_waiting -= s->lua.n_waiting > 0;
    hv_session_log(s, HV_LOG_INFO, "lua", "%s", text != NULL ? text : "");
    if (why != NULL) {
        hv_session_log(s, HV_LOG_ERROR, "lua", "%s", why);
    }
    if (state != NULL && strcmp(state, "more") == 0 && s->lua.n_waiting == 0) {
        s->lua.more = true;
    } else if (s->lua.n_waiting == 0) {
        forget_chunk(s);
    }
    take_commands(s, json_object_get(line, "commands"));
}

static void on_event(void *ctx, const struct hv_pool_event *ev)
{
    struct hv_session *s = ctx;
    if (ev->id != s->lua.job) {
        return; /* one that was told to end */
    }
    if (ev->kind == HV_POOL_ANSWER) {
        take_answer(s, ev->line);
    } else if (ev->kind == HV_POOL_RESULT || ev->kind == HV_POOL_FAILED ||
               ev->kind == HV_POOL_CANCELLED) {
        bool asked = ev->kind == HV_POOL_CANCELLED;
        hv_session_log(s, asked ? HV_LOG_INFO : HV_LOG_ERROR, "lua",
                       "%s; the next line begins anew%s%s", asked ? "stopped" : "the console ended",
                       ev->text[0] != '\0' && !asked ? ": " : "", asked ? "" : ev->text);
        s->lua.job = 0;
        s->lua.n_waiting = 0;
        forget_chunk(s);
    }
    hv__session_moved(s);
}

static double lua_now_s(void *ctx)
{
    return hv__session_now(ctx);
}

/* A worker on the workspace as it is now; an older one goes when something else was changed. */
static void ensure_worker(struct hv_session *s)
{
    if (s->lua.pool == NULL) {
        s->lua.pool =
            hv_pool_new(&(struct hv_pool_config){.argv = (const char *const *)s->env.worker_argv,
                                                 .n_workers = 1,
                                                 .on_event = on_event,
                                                 .ctx = s,
                                                 .now_s = lua_now_s});
    }
    if (s->lua.job != 0 && s->lua.epoch != s->epoch && s->lua.n_waiting == 0) {
        uint32_t old = s->lua.job;
        s->lua.job = 0;
        hv_pool_cancel(s->lua.pool, old);
        forget_chunk(s);
        hv_session_log(s, HV_LOG_INFO, "lua", "the workspace was changed: variables begin anew");
    }
    if (s->lua.job != 0) {
        return;
    }
    json_t *job = json_object();
    json_object_set_new(job, "kind", json_string("lua"));
    for (int d = 0; d < HV__INPUTS; d++) {
        json_object_set(job, hv_doc_name((enum hv_doc)d), s->tree[d]);
    }
    json_object_set_new(job, "seed", json_integer((json_int_t)s->limits.seed));
    s->lua.job = hv_pool_submit(s->lua.pool, job, 0);
    s->lua.epoch = s->epoch;
    json_decref(job);
}

void hv_session_lua(struct hv_session *s, const char *text)
{
    ensure_worker(s);
    hv_session_log(s, HV_LOG_INFO, "lua", "%s %s", s->lua.more ? ">>" : ">", text);
    if (!s->lua.more) {
        hv_str_clear(&s->lua.chunk);
    } else {
        hv_str_addc(&s->lua.chunk, '\n');
    }
    hv_str_adds(&s->lua.chunk, text);
    s->lua.more = false;
    json_t *line = json_object();
    json_object_set_new(line, "eval", json_string(hv_str_cstr(&s->lua.chunk)));
    if (hv_pool_send(s->lua.pool, s->lua.job, line)) {
        s->lua.n_waiting++;
    }
    json_decref(line);
    hv_pool_poll(s->lua.pool);
}

bool hv_session_lua_wants_more(const struct hv_session *s)
{
    return s->lua.more;
}

bool hv_session_lua_busy(const struct hv_session *s)
{
    return s->lua.n_waiting > 0;
}

bool hv_session_lua_stop(struct hv_session *s)
{
    return s->lua.n_waiting > 0 && hv_pool_cancel(s->lua.pool, s->lua.job);
}

void hv__session_lua_free(struct hv_session *s)
{
    hv_pool_free(s->lua.pool);
    hv_str_free(&s->lua.chunk);
}
