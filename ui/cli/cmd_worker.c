/** `hetviz worker` and `hetviz selftest`: the two commands that only hand over to scripting. */
#include "scripting/run.h"
#include "scripting/worker.h"
#include "ui/cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum hv_status hv_cli_worker(struct hv_args *args, struct hv_err *err)
{
    (void)args;
    if (hv_worker_main(STDIN_FILENO, STDOUT_FILENO) != 0)
        return hv_err_set(err, HV_EIO, "the worker could not write its result");
    return HV_OK;
}

/** Is the plugin one of those asked for? */
static bool is_wanted(const struct hv_args *args, const struct hv_plugin *p)
{
    for (size_t i = 0; i < args->n_positional; i++)
        if (strcmp(args->positional[i], p->id) == 0)
            return true;
    return args->n_positional == 0;
}

static bool is_file(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".lua") == 0;
}

enum hv_status hv_cli_selftest(struct hv_args *args, struct hv_err *err)
{
    struct hv_plugins all = {0};
    struct hv_selftest_counts counts = {0};
    struct hv_str out = {0};
    enum hv_status s = hv_plugins_read(&all, err);

    for (size_t i = 0; s == HV_OK && i < args->n_positional; i++) {
        const struct hv_plugin *p = NULL;
        struct hv_plugins one = {0};
        if (!is_file(args->positional[i])) {
            s = hv_plugins_get(&all, args->positional[i], &p, err);
            continue;
        }
        s = hv_plugins_read_file(&one, args->positional[i], err);
        if (s == HV_OK)
            hv_selftest(&one.items[0], &counts, &out);
        hv_plugins_free(&one);
    }
    for (size_t i = 0; s == HV_OK && i < all.n; i++)
        if (is_wanted(args, &all.items[i]))
            hv_selftest(&all.items[i], &counts, &out);
    if (s == HV_OK) {
        hv_str_addf(&out, "%zu passed, %zu failed\n", counts.passed, counts.failed);
        s = hv_cli_print(&out, err);
    }
    if (s == HV_OK && counts.failed > 0)
        s = hv_err_set(err, HV_ENO, "%zu self-tests failed", counts.failed);
    hv_str_free(&out);
    hv_plugins_free(&all);
    return s;
}
