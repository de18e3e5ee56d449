/* A worker as console: reads one chunk of Lua per line and writes its output and changes. The
 * console itself is in console.c; jobs that make plans are in worker.c. */
#include "scripting/worker/console.h"
#include "scripting/worker/worker_int.h"

#include <string.h>

/** The answer to one chunk. */
static json_t *answer(struct hv_console *c, const char *text)
{
    static const char *const states[] = {"done", "more", "error"};
    struct hv_str out = {0}, clean = {0};
    struct hv_err err = {0};
    json_t *e = json_object();
    enum hv_console_state state = hv_console_eval(c, text, &out, &err);

    json_object_set_new(e, "event", json_string("answer"));
    json_object_set_new(e, "state", json_string(states[state]));
    json_t *said = json_stringn(hv_str_cstr(&out), out.n);
    json_object_set_new(e, "text", said != NULL ? said : json_string("(not UTF-8)\n"));
    if (state == HV_CONSOLE_ERROR) {
        json_t *why = json_object();
        hv_text_clean(&clean, err.text, strlen(err.text));
        json_object_set_new(why, "text", json_string(hv_str_cstr(&clean)));
        if (err.file[0] != '\0') {
            json_object_set_new(why, "file", json_string(err.file));
        }
        if (err.line > 0) {
            json_object_set_new(why, "line", json_integer((json_int_t)err.line));
        }
        json_object_set_new(e, "error", why);
    }
    json_t *commands = hv_console_commands(c);
    if (commands != NULL) {
        json_object_set_new(e, "commands", commands);
    }
    hv_str_free(&out);
    hv_str_free(&clean);
    return e;
}

/** The text of a line {"eval": text}. */
static enum hv_status read_chunk(struct hv_json *json, const char *line, size_t n,
                                 const char **text, struct hv_err *err)
{
    static const char *const keys[] = {"eval"};
    struct hv_jp at;
    enum hv_status s = hv_json_parse(json, line, n, "console", err);

    if (s != HV_OK) {
        return s;
    }
    struct hv_jp root = hv_jp_root(json);
    s = hv_jp_object(&root, keys, 1, err);
    if (s == HV_OK) {
        s = hv_jp_need(&root, "eval", "a text", &at, err);
    }
    return s == HV_OK ? hv_jp_string(&at, text, err) : s;
}

enum hv_status hv__worker_console(struct hv__lines *in, int out_fd,
                                  const struct hv_run_request *request, struct hv_err *err)
{
    const struct hv_console_config config = {
        .inputs = request->inputs, .plugins = request->plugins, .seed = request->seed};
    struct hv_console *c = NULL;
    const char *line = NULL, *text = NULL;
    size_t n = 0;
    enum hv_status s = hv_console_new(&c, &config, err);

    while (s == HV_OK && (s = hv__lines_next(in, &line, &n, err)) == HV_OK && line != NULL) {
        struct hv_json json = {0};
        s = read_chunk(&json, line, n, &text, err);
        if (s == HV_OK) {
            json_t *e = answer(c, text);
            hv__write_line(out_fd, e);
            json_decref(e);
        }
        hv_json_free(&json);
    }
    hv_console_free(c);
    return s;
}
