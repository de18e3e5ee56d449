/*
 * The worker behind the console. Not for Lua itself (scripting/worker/console.h) nor for carrying
 * commands out (ui/session/console.c).
 */
#include "ui/session/run/console.h"

#include "solver/base/str.h"
#include <string.h>

struct hv__console {
    struct hv__console_config config;
    struct hv_pool *pool; /* separate from the pool of runs; NULL before the first line */
    uint32_t job;         /* 0 = no worker */
    uint64_t epoch;       /* state of the documents that the worker has */
    size_t n_waiting;     /* lines without an answer */
    bool more;
    struct hv_str chunk; /* lines of an incomplete statement */
    uint64_t changes;
};

struct hv__console *hv__console_new(const struct hv__console_config *config)
{
    struct hv__console *c = hv_xcalloc(1, sizeof *c);
    c->config = *config;
    return c;
}

void hv__console_free(struct hv__console *c)
{
    hv_pool_free(c->pool);
    hv_str_free(&c->chunk);
    free(c);
}

static void forget_chunk(struct hv__console *c)
{
    hv_str_clear(&c->chunk);
    c->more = false;
}

static void take_answer(struct hv__console *c, const json_t *line)
{
    const char *state = json_string_value(json_object_get(line, "state"));
    const char *text = json_string_value(json_object_get(line, "text"));
    const json_t *error = json_object_get(line, "error");
    const json_t *commands = json_object_get(line, "commands");
    const char *why = json_string_value(json_object_get(error, "text"));
    c->n_waiting -= c->n_waiting > 0;
    hv__log_add(c->config.log, HV_LOG_INFO, "lua", "%s", text != NULL ? text : "");
    if (why != NULL) {
        hv__log_add(c->config.log, HV_LOG_ERROR, "lua", "%s", why);
    }
    if (state != NULL && strcmp(state, "more") == 0 && c->n_waiting == 0) {
        c->more = true;
    } else if (c->n_waiting == 0) {
        forget_chunk(c);
    }
    if (json_array_size(commands) > 0) {
        c->config.on_commands(c->config.ctx, commands);
        c->epoch = hv__docs_epoch(c->config.docs); /* the worker's copy has the same changes */
    }
}

static void on_event(void *ctx, const struct hv_pool_event *ev)
{
    struct hv__console *c = ctx;
    if (ev->id != c->job) {
        return; /* an event of a replaced worker */
    }
    if (ev->kind == HV_POOL_ANSWER) {
        take_answer(c, ev->line);
    } else if (ev->kind == HV_POOL_RESULT || ev->kind == HV_POOL_FAILED ||
               ev->kind == HV_POOL_CANCELLED) {
        bool asked = ev->kind == HV_POOL_CANCELLED;
        hv__log_add(c->config.log, asked ? HV_LOG_INFO : HV_LOG_ERROR, "lua",
                    "%s; the next line starts with new variables%s%s",
                    asked ? "stopped" : "the console ended",
                    ev->text[0] != '\0' && !asked ? ": " : "", asked ? "" : ev->text);
        c->job = 0;
        c->n_waiting = 0;
        forget_chunk(c);
    }
    c->changes++;
}

static double now_s(void *ctx)
{
    const struct hv__console *c = ctx;
    return c->config.now_s(c->config.ctx);
}

/* Makes sure of a worker with the present workspace; replaces one whose copy is outdated. */
static void ensure_worker(struct hv__console *c, uint64_t seed)
{
    if (c->pool == NULL) {
        c->pool = hv_pool_new(&(struct hv_pool_config){.argv = c->config.worker_argv,
                                                       .n_workers = 1,
                                                       .on_event = on_event,
                                                       .ctx = c,
                                                       .now_s = now_s});
    }
    if (c->job != 0 && c->epoch != hv__docs_epoch(c->config.docs) && c->n_waiting == 0) {
        uint32_t old = c->job;
        c->job = 0;
        hv_pool_cancel(c->pool, old);
        forget_chunk(c);
        hv__log_add(c->config.log, HV_LOG_INFO, "lua",
                    "the workspace has changed: variables are reset");
    }
    if (c->job != 0) {
        return;
    }
    json_t *job = json_object();
    json_object_set_new(job, "kind", json_string("lua"));
    hv__docs_add_inputs(c->config.docs, job);
    json_object_set_new(job, "seed", json_integer((json_int_t)seed));
    c->job = hv_pool_submit(c->pool, job, 0);
    c->epoch = hv__docs_epoch(c->config.docs);
    json_decref(job);
}

void hv__console_line(struct hv__console *c, const char *text, uint64_t seed)
{
    ensure_worker(c, seed);
    hv__log_add(c->config.log, HV_LOG_INFO, "lua", "%s %s", c->more ? ">>" : ">", text);
    if (!c->more) {
        hv_str_clear(&c->chunk);
    } else {
        hv_str_addc(&c->chunk, '\n');
    }
    hv_str_adds(&c->chunk, text);
    c->more = false;
    json_t *line = json_object();
    json_object_set_new(line, "eval", json_string(hv_str_cstr(&c->chunk)));
    if (hv_pool_send(c->pool, c->job, line)) {
        c->n_waiting++;
    }
    json_decref(line);
    hv_pool_poll(c->pool);
}

bool hv__console_wants_more(const struct hv__console *c)
{
    return c->more;
}

bool hv__console_is_busy(const struct hv__console *c)
{
    return c->n_waiting > 0;
}

bool hv__console_stop(struct hv__console *c)
{
    return c->n_waiting > 0 && hv_pool_cancel(c->pool, c->job);
}

void hv__console_poll(struct hv__console *c)
{
    if (c->pool != NULL) {
        hv_pool_poll(c->pool);
    }
}

size_t hv__console_fds(const struct hv__console *c, struct pollfd *out, size_t cap)
{
    return c->pool != NULL ? hv_pool_fds(c->pool, out, cap) : 0;
}

int hv__console_timeout_ms(const struct hv__console *c)
{
    return c->pool != NULL ? hv_pool_timeout_ms(c->pool) : -1;
}

uint64_t hv__console_changes(const struct hv__console *c)
{
    return c->changes;
}
