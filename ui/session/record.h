/** The log of a session, and the recording of its changes. */
#ifndef HV_UI_SESSION_RECORD_H
#define HV_UI_SESSION_RECORD_H

#include "solver/base/attr.h"
#include "solver/base/status.h"
#include "ui/session/log/line.h"
#include <stddef.h>

struct hv_session;

/** Adds a line (of a text with newlines several). */
void hv_session_log(struct hv_session *s, enum hv_log_level level, const char *area,
                    const char *fmt, ...) HV_PRINTF(4, 5);
/** The last lines (2,000 at least), oldest first; borrowed until the next change of the session. */
const struct hv_log_line *hv_session_log_lines(const struct hv_session *s, size_t *n);
/**
 * Records all further changes in a new file as a script for `--script`: first the unsaved changes,
 * then each edit, run, undo and export as its `:` line. NULL ends the recording. Errors: HV_EIO.
 */
enum hv_status hv_session_record(struct hv_session *s, const char *path,
                                 struct hv_err *err) HV_NODISCARD;
/** File of the recording, or NULL. */
const char *hv_session_recording(const struct hv_session *s);

#endif
