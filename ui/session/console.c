/*
 * Runs lines of the console and executes the commands that they return: each is an edit that can be
 * undone. Not for the worker (run/console.c) nor for Lua (scripting/worker/console.h).
 */
#include "ui/session/session_int.h"

#include <string.h>

static enum hv_status apply_plan(struct hv_session *s, const json_t *command, struct hv_err *err)
{
    const char *name = json_string_value(json_object_get(command, "name"));
    const json_t *plan = json_object_get(command, "plan");
    uint32_t id = 0;

    if (name == NULL || !json_is_object(plan)) {
        return hv_err_set(err, HV_EUSAGE, "the command `plan` needs a name and a plan");
    }
    json_t *copy =
        json_object(); /* with the format in front, which a table at the prompt may lack */
    json_object_set_new(copy, "format", json_string("hetviz.plan/1"));
    json_object_update(copy, (json_t *)(uintptr_t)plan);
    return hv_session_row_add_step(s, name, copy, NULL, &id, err);
}

static enum hv_status apply_one(struct hv_session *s, const json_t *command, struct hv_err *err)
{
    const char *what = json_string_value(json_object_get(command, "do"));
    const char *path = json_string_value(json_object_get(command, "path"));
    json_t *value = json_object_get(command, "value");

    if (what != NULL && strcmp(what, "plan") == 0) {
        return apply_plan(s, command, err);
    }
    if (what == NULL || path == NULL) {
        return hv_err_set(err, HV_EUSAGE, "a command needs a verb and a key path");
    }
    if (strcmp(what, "remove") == 0) {
        return hv_session_remove(s, path, err);
    }
    if (value != NULL && strcmp(what, "set") == 0) {
        return hv_session_set(s, path, json_deep_copy(value), err);
    }
    if (value != NULL && strcmp(what, "insert") == 0) {
        return hv_session_insert(s, path, json_deep_copy(value), err);
    }
    return hv_err_set(err, HV_EUSAGE,
                      "expected set, insert or remove with a value, found \"%.40s\"", what);
}

enum hv_status hv_session_apply(struct hv_session *s, const json_t *commands, size_t *n_done,
                                struct hv_err *err)
{
    *n_done = 0;
    for (size_t i = 0; i < json_array_size(commands); i++) {
        enum hv_status st = apply_one(s, json_array_get(commands, i), err);
        if (st != HV_OK) {
            return st;
        }
        ++*n_done;
    }
    return HV_OK;
}

void hv__session_console_commands(void *ctx, const json_t *commands)
{
    struct hv_session *s = ctx;
    struct hv_err err = {0};
    size_t n = 0;
    if (hv_session_apply(s, commands, &n, &err) != HV_OK) {
        hv_session_log(s, HV_LOG_ERROR, "lua", "%s", err.text);
    }
    hv_session_log(s, HV_LOG_INFO, "lua", "%zu change%s of the workspace; u undoes the last one", n,
                   n == 1 ? "" : "s");
}

void hv_session_lua(struct hv_session *s, const char *text)
{
    hv__console_line(s->console, text, s->limits.seed);
}

bool hv_session_lua_wants_more(const struct hv_session *s)
{
    return hv__console_wants_more(s->console);
}

bool hv_session_lua_busy(const struct hv_session *s)
{
    return hv__console_is_busy(s->console);
}

bool hv_session_lua_stop(struct hv_session *s)
{
    return hv__console_stop(s->console);
}
