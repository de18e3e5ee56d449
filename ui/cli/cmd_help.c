/** `hetviz help` and `hetviz completion`: printed from the tables. */
#include <string.h>

#include "scripting/reference.h"
#include "ui/cli/cli.h"

/** `help api` lists, `help api NAME` explains; `help man plugin` is the manual page of both. */
static enum hv_status help_api(const struct hv_args *args, struct hv_str *text, struct hv_err *err)
{
    if (args->n_positional > 1) {
        return hv_api_describe(args->positional[1], text, err);
    }
    hv_api_list(text);
    return HV_OK;
}

static enum hv_status help_man(const struct hv_args *args, struct hv_str *text, struct hv_err *err)
{
    if (args->n_positional == 1) {
        hv_command_man(text);
    } else if (strcmp(args->positional[1], "plugin") == 0) {
        hv_api_man(text);
    } else {
        return hv_err_set(err, HV_EUSAGE, "help man: expected nothing or plugin, found \"%s\"",
                          args->positional[1]);
    }
    return HV_OK;
}

enum hv_status hv_cli_help(struct hv_args *args, struct hv_err *err)
{
    struct hv_str text = {0};
    enum hv_status st = HV_OK;
    if (args->n_positional == 0) {
        hv_command_list(&text);
    } else if (strcmp(args->positional[0], "man") == 0) {
        st = help_man(args, &text, err);
    } else if (strcmp(args->positional[0], "api") == 0) {
        st = help_api(args, &text, err);
    } else if (args->n_positional > 1) {
        st = hv_err_set(err, HV_EUSAGE, "help: only api and man take a second word, found \"%s\"",
                        args->positional[1]);
    } else {
        size_t n = 0;
        const struct hv_command *rows = hv_commands(&n);
        const struct hv_command *c = hv_command_find(rows, n, args->positional[0]);
        if (c != NULL) {
            hv_command_help(&text, c);
        } else if (strcmp(args->positional[0], "schedules") == 0) {
            hv_schedule_list(&text);
        } else if (!hv_schedule_help(&text, args->positional[0])) {
            st = hv_err_set(err, HV_EUSAGE,
                            "no command or schedule \"%s\"; `hetviz help` lists commands, "
                            "`hetviz help schedules` schedules",
                            args->positional[0]);
        }
    }
    st = st == HV_OK ? hv_cli_print(&text, err) : st;
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_completion(struct hv_args *args, struct hv_err *err)
{
    struct hv_str text = {0};
    enum hv_status st = hv_command_completion(&text, args->positional[0], err);
    st = st == HV_OK ? hv_cli_print(&text, err) : st;
    hv_str_free(&text);
    return st;
}
