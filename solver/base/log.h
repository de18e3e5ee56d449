/** Log: leveled lines to one sink. Never writes to standard output; silent until a sink is set. */
#ifndef HV_SOLVER_BASE_LOG_H
#define HV_SOLVER_BASE_LOG_H

#include "solver/base/attr.h"
#include "solver/base/status.h"

/** Levels, the most severe first: a sink set to one level also receives all more severe ones. */
enum hv_log_level { HV_LOG_ERROR, HV_LOG_WARN, HV_LOG_INFO, HV_LOG_DEBUG };

/** Receives one clean line (no newline). */
typedef void hv_log_sink(void *ctx, enum hv_log_level level, const char *area, const char *text);

/** Sets the sink (NULL = silence) and the most verbose level that reaches it. */
void hv_log_to(hv_log_sink *sink, void *ctx, enum hv_log_level most);
/** Ready-made sink: "hetviz: warning: area: text" on standard error. */
hv_log_sink hv_log_stderr;
/** Logs one line; `area` names the module, e.g. "optim/lp". */
void hv_log(enum hv_log_level level, const char *area, const char *fmt, ...) HV_PRINTF(3, 4);
/**
 * Prints an error to standard error: "WHO: file:line: text", safe for terminals. Lines after the
 * first are indented, so that text of a file cannot pass for another message. Prints nothing for an
 * error without text.
 */
void hv_log_err(const char *who, const struct hv_err *err);

#endif
