/** The user's editor as a child process on the terminal. The caller releases the terminal first. */
#ifndef HV_UI_PROCESS_EDITOR_H
#define HV_UI_PROCESS_EDITOR_H

#include "solver/base/status.h"

/**
 * Runs a command on a file and waits for the end. It may have arguments ("code --wait"): the shell
 * splits it. Until then only the command receives interrupts, and ^Z stops both processes. SIGTERM
 * and SIGHUP are passed on to it, so that it can save what it has; once it has ended (after ten
 * seconds in any case) this process receives them too, with the caller's handlers. Errors: HV_EIO
 * when it could not be started, failed, or was ended so.
 */
enum hv_status hv_editor_call(const char *command, const char *path,
                              struct hv_err *err) HV_NODISCARD;
/** The same with the user's editor ($VISUAL, else $EDITOR, else vi), on a file that can be read. */
enum hv_status hv_editor_run(const char *path, struct hv_err *err) HV_NODISCARD;

#endif
