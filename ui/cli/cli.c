/** Runs a command by its row of the table, and prints errors. */
#include "ui/cli/cli.h"

#include "solver/base/log.h"
#include "ui/cli/print.h"

typedef enum hv_status command_fn(struct hv_args *args, struct hv_err *err);

static command_fn *const functions[HV_CMD_N] = {
#define X(id, name) [HV_CMD_##id] = hv_cli_##name,
    HV_COMMAND_MAP(X)
#undef X
};

int hv_cli_fail(const struct hv_err *err)
{
    hv_log_err("hetviz", err);
    return hv_status_exit_code(err->status);
}

int hv_cli_run(const struct hv_command *command, int argc, char **argv)
{
    struct hv_err err = {0};
    struct hv_args args = {0};
    enum hv_status st = hv_args_parse(&args, command, argc, (const char *const *)argv, &err);
    if (st == HV_OK && args.wants_help) {
        struct hv_str text = {0};
        hv_command_help(&text, command);
        st = hv_cli_print(&text, &err);
        hv_str_free(&text);
    } else if (st == HV_OK) {
        st = functions[command->id](&args, &err);
    }
    hv_args_free(&args);
    if (st == HV_OK) {
        return 0;
    }
    err.status = st;
    return hv_cli_fail(&err);
}
