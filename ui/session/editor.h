/** The user's editor as a child on the terminal. Whoever holds the terminal gives it away first. */
#ifndef HV_UI_SESSION_EDITOR_H
#define HV_UI_SESSION_EDITOR_H

#include "solver/base/status.h"

/** The command: $VISUAL, else $EDITOR, else "vi". Never NULL. */
const char *hv_editor_command(void);
/**
 * Edits a file and waits for the end. The command may have words of its own ("code --wait"): the
 * shell splits it. Meanwhile interrupts are the editor's, and both stop together (^Z).
 * Errors: HV_EIO when the file cannot be read, or the editor could not be started or failed.
 */
enum hv_status hv_editor_run(const char *path, struct hv_err *err) HV_NODISCARD;

#endif
