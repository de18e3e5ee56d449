/** The console's Lua, and the commands that it gives back. */
#ifndef HV_UI_SESSION_CONSOLE_H
#define HV_UI_SESSION_CONSOLE_H

#include "solver/base/status.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct hv_session;

/**
 * Runs a line of Lua in a worker with a copy of the workspace (started when there is none). What it
 * prints goes to the log, what it changes of `workspace` comes back as edits that can be undone.
 */
void hv_session_lua(struct hv_session *s, const char *text);
/** Was the last line the beginning of something? The next one is put behind it. */
bool hv_session_lua_wants_more(const struct hv_session *s);
/** Does a line run? */
bool hv_session_lua_busy(const struct hv_session *s);
/** Ends the line that runs; false when none does. Variables begin anew. */
bool hv_session_lua_stop(struct hv_session *s);
/**
 * Carries out the commands a console has given back (hv_console_commands), each edit as one undo
 * step, each plan as a row; *n_done = how many. Errors: as the edit that was refused; those
 * before it stay done.
 */
enum hv_status hv_session_apply(struct hv_session *s, const json_t *commands, size_t *n_done,
                                struct hv_err *err) HV_NODISCARD;

#endif
