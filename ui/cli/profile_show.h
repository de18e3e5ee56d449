/** A profile in words and as a roofline chart: `hetviz profile --show F`. */
#ifndef HV_UI_CLI_PROFILE_SHOW_H
#define HV_UI_CLI_PROFILE_SHOW_H

#include "ui/command/command.h"

/** Reads the profile, prints it (or, with --json, its figures), writes --svg where given. Errors:
 * those of reading; HV_EIO. */
enum hv_status hv_cli_profile_show(struct hv_args *args, const char *path,
                                   struct hv_err *err) HV_NODISCARD;

#endif
