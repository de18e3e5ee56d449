/** One line of a session's log. */
#ifndef HV_UI_SESSION_LOG_LINE_H
#define HV_UI_SESSION_LOG_LINE_H

#include "solver/base/log.h"
#include <stdbool.h>

/** One line of the log. */
struct hv_log_line {
    double at_s; /**< seconds since 1970; by the session's clock where it was given one */
    enum hv_log_level level;
    bool command; /**< `text` is a prompt line that repeats this change */
    char *area;   /**< "run", "command", a strategy's name */
    char *text;   /**< clean, without newline */
};

#endif
