/** `hetviz lua`: lines of Lua with everything that plugins can call, run in a worker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "solver/io/own/docs.h"
#include "ui/cli/cli.h"
#include "ui/cli/interrupt.h"
#include "ui/cli/print.h"
#include "ui/process/pool.h"

#define LOOK_MS 100 /* interval of the check for Ctrl-C while waiting for an answer */

/** A session at the prompt. */
struct talk {
    struct hv_pool *pool;
    uint32_t id;
    bool asks;      /**< standard input is a terminal */
    bool answered;  /**< the chunk that was sent last */
    bool more;      /**< the chunk is an incomplete statement */
    bool gone;      /**< the worker has ended */
    bool unstarted; /**< there was no process for it */
    size_t n_errors;
    struct hv_str why; /**< reason of its end */
};

/** Prints lines; the tab that `print` puts between values becomes one blank. */
static void print_clean(FILE *to, const char *text)
{
    struct hv_str clean = {0};

    hv_text_clean_lines(&clean, text, strlen(text));
    for (size_t i = 0; i < clean.n; i++) {
        clean.p[i] = clean.p[i] == '\t' ? ' ' : clean.p[i];
    }
    (void)fputs(hv_str_cstr(&clean), to);
    hv_str_free(&clean);
}

static void print_error(const json_t *error)
{
    const char *file = json_string_value(json_object_get(error, "file"));
    const char *text = json_string_value(json_object_get(error, "text"));
    json_int_t line = json_integer_value(json_object_get(error, "line"));
    struct hv_str out = {0};

    if (file != NULL && line > 0) {
        hv_text_addf(&out, "%s:%d: ", file, (int)line);
    } else if (file != NULL) {
        hv_text_addf(&out, "%s: ", file);
    }
    hv_str_adds(&out, text != NULL ? text : "the line failed");
    hv_str_addc(&out, '\n');
    print_clean(stderr, hv_str_cstr(&out));
    hv_str_free(&out);
}

/** "set cluster.nodes[0].count 4", as the commands of the program read. */
static void print_command(const json_t *c)
{
    const char *what = json_string_value(json_object_get(c, "do"));
    const char *path = json_string_value(json_object_get(c, "path"));
    const char *name = json_string_value(json_object_get(c, "name"));
    const json_t *value = json_object_get(c, "value");
    struct hv_str out = {0};

    hv_text_addf(&out, "-- %s %s", what != NULL ? what : "?", path != NULL ? path : name);
    if (value != NULL) {
        hv_str_addc(&out, ' ');
        hv_json_write(&out, value, false);
    }
    hv_str_addc(&out, '\n');
    print_clean(stdout, hv_str_cstr(&out));
    hv_str_free(&out);
}

static void take_answer(struct talk *t, const json_t *line)
{
    const char *state = json_string_value(json_object_get(line, "state"));
    const char *text = json_string_value(json_object_get(line, "text"));
    const json_t *commands = json_object_get(line, "commands");

    t->answered = true;
    t->more = state != NULL && strcmp(state, "more") == 0;
    print_clean(stdout, text != NULL ? text : "");
    for (size_t i = 0; i < json_array_size(commands); i++) {
        print_command(json_array_get(commands, i));
    }
    (void)fflush(stdout);
    if (state != NULL && strcmp(state, "error") == 0) {
        t->n_errors++;
        print_error(json_object_get(line, "error"));
    }
}

static void on_event(void *ctx, const struct hv_pool_event *ev)
{
    struct talk *t = ctx;

    if (ev->kind == HV_POOL_ANSWER) {
        take_answer(t, ev->line);
    } else if (ev->kind == HV_POOL_RESULT || ev->kind == HV_POOL_FAILED ||
               ev->kind == HV_POOL_CANCELLED) {
        t->gone = true;
        t->unstarted = ev->unstarted;
        hv_str_adds(&t->why, ev->text);
    }
}

/** Runs what has been typed so far; true when it was complete. */
static bool run_chunk(struct talk *t, const char *chunk)
{
    json_t *text = json_string(chunk);

    if (text == NULL) {
        t->n_errors++;
        (void)fputs("expected UTF-8\n", stderr);
        return true;
    }
    json_t *line = json_pack("{s:o}", "eval", text);
    t->answered = t->more = false;
    t->gone = t->gone || !hv_pool_send(t->pool, t->id, line);
    json_decref(line);
    while (!t->answered && !t->gone && !hv_interrupted(NULL)) {
        hv_pool_wait(t->pool, LOOK_MS);
    }
    return !t->more;
}

static void read_lines(struct talk *t)
{
    struct hv_str chunk = {0};
    char *line = NULL;
    size_t cap = 0;

    while (!t->gone && !hv_interrupted(NULL)) {
        if (t->asks) {
            (void)fputs(chunk.n > 0 ? ">> " : "> ", stdout);
            (void)fflush(stdout);
        }
        if (getline(&line, &cap, stdin) < 0) {
            break;
        }
        hv_str_adds(&chunk, line);
        if (run_chunk(t, hv_str_cstr(&chunk))) {
            hv_str_clear(&chunk);
        }
    }
    if (chunk.n > 0 && !t->gone) {
        t->n_errors++;
        (void)fputs("the last lines are incomplete\n", stderr);
    }
    if (t->asks) {
        (void)fputs("\n", stdout);
    }
    free(line);
    hv_str_free(&chunk);
}

/** Starts the worker on copies of the inputs. */
static void start(struct talk *t, const struct hv_inputs *in, double seed)
{
    const struct hv_pool_config config = {.n_workers = 1, .on_event = on_event, .ctx = t};
    json_t *job = json_pack("{s:s, s:O, s:O, s:I}", "kind", "lua", "cluster", in->cluster.json.root,
                            "model", in->model.json.root, "seed", (json_int_t)seed);

    if (json_is_object(in->job.json.root)) {
        json_object_set(job, "job", in->job.json.root);
    }
    t->pool = hv_pool_new(&config);
    t->id = hv_pool_submit(t->pool, job, 0);
    json_decref(job);
}

static enum hv_status conclude(const struct talk *t, struct hv_err *err)
{
    if (hv_interrupted(NULL)) {
        return hv_err_set(err, HV_ESTOPPED, "interrupted");
    }
    if (t->gone) {
        return hv_err_set(err, t->unstarted ? HV_EIO : HV_EPLUGIN, "%s",
                          t->why.n > 0 ? hv_str_cstr(&t->why) : "the worker has ended");
    }
    if (t->n_errors > 0 && !t->asks) {
        return hv_err_set(err, HV_EPLUGIN, "%zu chunk%s failed", t->n_errors,
                          t->n_errors == 1 ? "" : "s");
    }
    return HV_OK;
}

enum hv_status hv_cli_lua(struct hv_args *args, struct hv_err *err)
{
    struct talk t = {.asks = isatty(STDIN_FILENO) != 0};
    struct hv_inputs in = {0};
    enum hv_status st = hv_inputs_read(&in, hv_args_text(args, "cluster", "two-generations"),
                                       hv_args_text(args, "model", "llama-3-8b"),
                                       hv_args_text(args, "job", NULL), err);

    if (st == HV_OK) {
        hv_interrupt_catch();
        start(&t, &in, hv_args_number(args, "seed", 1));
        read_lines(&t);
        st = conclude(&t, err);
    }
    hv_pool_free(t.pool);
    hv_str_free(&t.why);
    hv_inputs_free(&in);
    return st;
}
