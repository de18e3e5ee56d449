/** The folder of a sweep: its specification and its store. */
#ifndef HV_UI_CLI_SWEEP_KEPT_H
#define HV_UI_CLI_SWEEP_KEPT_H

#include "solver/base/str.h"
#include "solver/sweep/sweep.h"
#include "ui/command/command.h"

/** Name of the specification inside a folder of results, with every document in it. */
#define HV_SWEEP_SPEC "sweep.json"
/** Name of the store inside that folder. */
#define HV_SWEEP_STORE "sweep.sqlite"

/** The file of the first argument behind the action, or NULL. */
const char *hv_cli_sweep_file(const struct hv_args *args);
/** DIR/NAME. */
void hv_cli_sweep_path(const char *folder, const char *name, struct hv_str *out);
/**
 * Writes the specification with all documents into the folder, which is made where there is none.
 * Errors: HV_EIO.
 */
enum hv_status hv_cli_sweep_keep(const struct hv_sweep *s, const char *folder,
                                 struct hv_err *err) HV_NODISCARD;
/**
 * Checks the strategies and their options, and the inputs with every value of every axis once.
 * O(values). Errors: HV_EUSAGE, HV_EINPUT with the cell that is wrong.
 */
enum hv_status hv_cli_sweep_check(const struct hv_sweep *s, struct hv_err *err) HV_NODISCARD;

#endif
