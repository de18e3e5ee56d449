/** The file that a session is recorded in: a script of `:` lines for `hetviz --script`. */
#ifndef HV_UI_SESSION_LOG_RECORDING_H
#define HV_UI_SESSION_LOG_RECORDING_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdbool.h>

/** A recording, or none yet. Owner: hv__recording_free. */
struct hv__recording;

/** A recording that is off. Owner: hv__recording_free. */
struct hv__recording *hv__recording_new(void);
/** Ends the recording and frees it. */
void hv__recording_free(struct hv__recording *r);
/** Starts a recording to a new file (truncated where it exists); ends a previous recording. Errors:
 * HV_EIO. */
enum hv_status hv__recording_open(struct hv__recording *r, const char *path,
                                  struct hv_err *err) HV_NODISCARD;
/** Writes the first line, a comment. Errors: as hv__recording_write. */
enum hv_status hv__recording_write_head(struct hv__recording *r, struct hv_err *err) HV_NODISCARD;
/** Ends the recording; no effect without one. */
void hv__recording_stop(struct hv__recording *r);
/** True while a recording is active. */
bool hv__recording_is_on(const struct hv__recording *r);
/** Its file, or NULL. */
const char *hv__recording_path(const struct hv__recording *r);
/**
 * Writes the `:` line [n]. Where runs were recorded and none is left (`runs_left` false), a line
 * comes before it that waits for their end. A failed write ends the recording, because an
 * incomplete line cannot be replayed. Errors: HV_EIO.
 */
enum hv_status hv__recording_write(struct hv__recording *r, const char *line, size_t n,
                                   bool runs_left, struct hv_err *err) HV_NODISCARD;
/** A run was started: the next line written after its end waits for it. */
void hv__recording_ran(struct hv__recording *r);

/** Appends a word of a `:` line, in quotation marks where it needs them. */
void hv__word_add(struct hv_str *out, const char *word);

#endif
