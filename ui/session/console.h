/** The Lua console, and the commands that it returns. */
#ifndef HV_UI_SESSION_CONSOLE_H
#define HV_UI_SESSION_CONSOLE_H

#include "solver/base/status.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct hv_session;

/**
 * Runs a line of Lua in a worker with a copy of the workspace (started when there is none). Its
 * output goes to the log; its changes of `workspace` become edits that can be undone.
 */
void hv_session_lua(struct hv_session *s, const char *text);
/** True where the last line is an incomplete statement. The next line continues it. */
bool hv_session_lua_wants_more(const struct hv_session *s);
/** True while a line runs. */
bool hv_session_lua_busy(const struct hv_session *s);
/** Ends the running line; false where there is none. All variables are lost. */
bool hv_session_lua_stop(struct hv_session *s);
/**
 * Executes the commands that a console returned (hv_console_commands), each edit as one undo step,
 * each plan as a row; *n_done = how many. Errors: as the edit that failed; earlier edits stay
 * applied.
 */
enum hv_status hv_session_apply(struct hv_session *s, const json_t *commands, size_t *n_done,
                                struct hv_err *err) HV_NODISCARD;

#endif
