/**
 * The `:` prompt: executes the rows of HV_PROMPT_MAP against a session. Actions of a screen (change
 * the view, write a picture of it, quit) are returned to the caller.
 */
#ifndef HV_UI_SESSION_PROMPT_PROMPT_H
#define HV_UI_SESSION_PROMPT_PROMPT_H

#include "solver/base/str.h"
#include "ui/command/command.h"
#include "ui/session/session.h"
#include <stdbool.h>

/** Action that the caller has to perform. */
enum hv_prompt_todo {
    HV_TODO_NOTHING,
    HV_TODO_HELP,        /**< show the keys, searched for `arg` */
    HV_TODO_SCREEN,      /**< go to the screen named in `arg` */
    HV_TODO_SAVE_SCREEN, /**< write what is shown to the file in `arg` */
    HV_TODO_IMPORT,      /**< show the import of the files in `arg` */
    HV_TODO_QUIT         /**< quit; without `force` only where there are no unsaved changes */
};

/** Result of a command. Owner: hv_prompt_outcome_free. `{0}` is valid. */
struct hv_prompt_outcome {
    enum hv_prompt_todo todo;
    bool force;            /**< quit ! */
    struct hv_str message; /**< one line for the status row; may be empty */
    struct hv_str arg;
};
void hv_prompt_outcome_free(struct hv_prompt_outcome *o);

/**
 * Runs one line ("set cluster.nodes[0].count 4", without the colon; an empty line does nothing).
 * Errors: HV_EUSAGE naming the command and its arguments, or the error of the session; nothing is
 * changed then.
 */
enum hv_status hv_session_command(struct hv_session *s, const char *line,
                                  struct hv_prompt_outcome *out, struct hv_err *err) HV_NODISCARD;
/**
 * Appends the n-th completion of the line's last word as a file, as the whole new line; false when
 * none is left. Folders end with a slash.
 */
bool hv_session_complete_path(const void *session, const char *line, size_t n, struct hv_str *out);
/**
 * The same for a line that is a `:` command: commands, strategies, options and their values, key
 * paths, row names and files. `session` is a `const struct hv_session *` (the signature is that of
 * ui/view's line editor).
 */
bool hv_session_complete(const void *session, const char *line, size_t n, struct hv_str *out);

#endif
