/** The log of a session: the last lines that runs, commands and the console wrote. */
#ifndef HV_UI_SESSION_LOG_LOG_H
#define HV_UI_SESSION_LOG_LOG_H

#include "solver/base/attr.h"
#include "ui/session/log/line.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/** A log. Owner: hv__log_free. */
struct hv__log;

/** An empty log. `now_s` stamps its lines (seconds); NULL: the time of day. `ctx` is for now_s. */
struct hv__log *hv__log_new(double (*now_s)(void *ctx), void *ctx);
void hv__log_free(struct hv__log *log);
/** Adds a text; one with newlines becomes several lines, empty lines are left out. */
void hv__log_add(struct hv__log *log, enum hv_log_level level, const char *area, const char *fmt,
                 ...) HV_PRINTF(4, 5);
/** The same with its arguments in a list. */
void hv__log_addv(struct hv__log *log, enum hv_log_level level, const char *area, const char *fmt,
                  va_list ap) HV_PRINTF(4, 0);
/** Adds a prompt line that repeats a change; the text is copied unchanged. */
void hv__log_add_command(struct hv__log *log, const char *line);
/** The last lines (2,000 at least once there were so many), oldest first. Borrowed until the next
 * line is added. */
const struct hv_log_line *hv__log_lines(const struct hv__log *log, size_t *n);
/** Number of lines added so far; increases with every change of the log. */
uint64_t hv__log_changes(const struct hv__log *log);

#endif
