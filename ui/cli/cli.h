/**
 * The command line: one function per command, found by its id in the table of ui/command/command.h.
 *
 * Results go to standard output, everything else to standard error. A command returns a status;
 * main turns it into the exit code. HV_ENO without text means that the answer has been printed
 * already.
 */
#ifndef HV_UI_CLI_CLI_H
#define HV_UI_CLI_CLI_H

#include "ui/command/command.h"

#define X(id, name) enum hv_status hv_cli_##name(struct hv_args *args, struct hv_err *err);
/** One entry per command: parses nothing, prints its result. */
HV_COMMAND_MAP(X)
#undef X

/** Runs `hetviz ARGV…` for a command name; prints errors; returns the exit code. `program_argc`
 * counts what follows the name. */
int hv_cli_run(const struct hv_command *command, int argc, char **argv);
/** Prints an error as "hetviz: file:line:col: text" and returns its exit code. */
int hv_cli_fail(const struct hv_err *err);

#endif
