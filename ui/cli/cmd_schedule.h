/** `hetviz schedule`: the order, time and memory of a named schedule. */
#ifndef HV_UI_CLI_CMD_SCHEDULE_H
#define HV_UI_CLI_CMD_SCHEDULE_H

#include "solver/base/status.h"

/**
 * Runs the subcommand; argv without program and subcommand name. Prints on standard output.
 * Errors: HV_EUSAGE for arguments and constraints of the schedule, HV_ENO, HV_ELIMIT.
 */
enum hv_status hv_cmd_schedule(int argc, char **argv, struct hv_err *err) HV_NODISCARD;

#endif
