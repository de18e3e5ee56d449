/** `hetviz solve`: a bare optimisation instance; optimum, bound, proof and time. */
#ifndef HV_UI_CLI_CMD_SOLVE_H
#define HV_UI_CLI_CMD_SOLVE_H

#include "solver/base/status.h"

/**
 * Runs the subcommand; argv without program and subcommand name: INSTANCE [--time-limit S]
 * [--json] [--certify]. Prints on standard output.
 * Errors: HV_EUSAGE; HV_EINPUT, HV_EIO and HV_ELIMIT of the file; HV_ENO when there is no solution,
 * HV_ESTOPPED when the time limit ended the search (the best so far is printed).
 */
enum hv_status hv_cmd_solve(int argc, char **argv, struct hv_err *err) HV_NODISCARD;

#endif
