/** The heat map of a sweep. */
#ifndef HV_UI_CLI_SWEEP_MAP_H
#define HV_UI_CLI_SWEEP_MAP_H

#include "solver/sweep/store.h"
#include "ui/command/command.h"

/**
 * Writes the picture of --svg: the best --value over --x and --y, among the rows that meet --where.
 * Errors: HV_EUSAGE where an axis or figure is missing or unknown; HV_ENO without a row; HV_EIO.
 */
enum hv_status hv_cli_sweep_map(const struct hv_args *args, const struct hv_store *store,
                                struct hv_err *err) HV_NODISCARD;

#endif
