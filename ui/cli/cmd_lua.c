/** `hetviz lua`: lines of Lua with everything that plugins can call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scripting/console.h"
#include "ui/cli/cli.h"
#include "ui/cli/interrupt.h"

/** A session at the prompt. */
struct talk {
    struct hv_inputs inputs;
    struct hv_plugins plugins;
    struct hv_console *console;
    bool asks; /**< standard input is a terminal */
    size_t n_errors;
};

/** Runs what has been typed so far; true when it was complete. */
static bool run_chunk(struct talk *t, const char *chunk)
{
    struct hv_str out = {0}, clean = {0};
    struct hv_err err = {0};
    char text[sizeof err.text + sizeof err.file + 64];
    hv_interrupt_insist(0); /* a solver that never asks must not keep the prompt for ever */
    enum hv_console_state state = hv_console_eval(t->console, chunk, &out, &err);
    hv_interrupt_relax();

    hv_cli_clean_lines(&clean, hv_str_cstr(&out));
    (void)fputs(hv_str_cstr(&clean), stdout);
    (void)fflush(stdout);
    if (state == HV_CONSOLE_ERROR) {
        t->n_errors++;
        hv_str_clear(&clean);
        hv_cli_clean_lines(&clean, hv_err_format(&err, text, sizeof text));
        (void)fprintf(stderr, "%s\n", hv_str_cstr(&clean));
    }
    hv_str_free(&out);
    hv_str_free(&clean);
    return state != HV_CONSOLE_MORE;
}

static void read_lines(struct talk *t)
{
    struct hv_str chunk = {0};
    char *line = NULL;
    size_t cap = 0;

    for (;;) {
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
        if (hv_interrupted(NULL)) {
            break;
        }
    }
    if (chunk.n > 0) {
        t->n_errors++;
        (void)fputs("the last lines are not complete\n", stderr);
    }
    if (t->asks) {
        (void)fputs("\n", stdout);
    }
    free(line);
    hv_str_free(&chunk);
}

enum hv_status hv_cli_lua(struct hv_args *args, struct hv_err *err)
{
    struct talk t = {.asks = isatty(STDIN_FILENO) != 0};
    enum hv_status st = hv_inputs_read(&t.inputs, hv_args_text(args, "cluster", "two-generations"),
                                       hv_args_text(args, "model", "llama-3-8b"),
                                       hv_args_text(args, "job", NULL), err);
    if (st == HV_OK) {
        st = hv_plugins_read(&t.plugins, err);
    }
    if (st == HV_OK) {
        hv_interrupt_catch();
        const struct hv_console_config config = {.inputs = &t.inputs,
                                                 .plugins = &t.plugins,
                                                 .seed = (uint64_t)hv_args_number(args, "seed", 1),
                                                 .cancel = hv_interrupted};
        st = hv_console_new(&t.console, &config, err);
    }
    if (st == HV_OK) {
        read_lines(&t);
    }
    if (st == HV_OK && hv_interrupted(NULL)) {
        st = hv_err_set(err, HV_ESTOPPED, "interrupted");
    }
    if (st == HV_OK && t.n_errors > 0 && !t.asks) {
        st = hv_err_set(err, HV_EPLUGIN, "%zu chunk%s failed", t.n_errors,
                        t.n_errors == 1 ? "" : "s");
    }
    hv_console_free(t.console);
    hv_plugins_free(&t.plugins);
    hv_inputs_free(&t.inputs);
    return st;
}
