/**
 * Status codes and error records.
 *
 * A fallible function returns `enum hv_status` and takes `struct hv_err *err` last; `err` may be
 * NULL. The record lives on the caller's stack; nothing has to be freed. Input errors carry
 * file:line:col of the input and state what was found and what was expected.
 */
#ifndef HV_SOLVER_BASE_STATUS_H
#define HV_SOLVER_BASE_STATUS_H

#include "solver/base/attr.h"
#include <stdarg.h>
#include <stdbool.h>

/* clang-format off */
/** One row per status: constant, exit code of the program, text. */
#define HV_STATUS_MAP(X)                                                  \
    X(HV_OK,        0,  "ok")                                             \
    X(HV_ENO,       1,  "the answer is no")                               \
    X(HV_EUSAGE,    2,  "wrong usage")                                    \
    X(HV_EINPUT,    3,  "bad input")                                      \
    X(HV_EIO,       3,  "cannot read or write")                           \
    X(HV_ELIMIT,    3,  "over a limit")                                   \
    X(HV_ESTOPPED,  4,  "stopped early")                                      \
    X(HV_EPLUGIN,   5,  "plugin error")                                   \
    X(HV_EINTERNAL, 70, "internal error")
/* clang-format on */

/** Result of a fallible call. */
enum hv_status {
#define X(name, exit_code, text) name,
    HV_STATUS_MAP(X)
#undef X
        HV_STATUS_N
};

/** One error: what, and where in which input. `line` 0 = no position known (columns count from 1).
 */
struct hv_err {
    enum hv_status status;
    char file[256];
    unsigned line, col;
    char text[1024];
};

/** Constant's name, e.g. "HV_EINPUT". */
const char *hv_status_name(enum hv_status s);
/** Exit code of the program for this status. */
int hv_status_exit_code(enum hv_status s);

/** Records an error without position; returns `s` so that callers can `return hv_err_set(…)`. */
enum hv_status hv_err_set(struct hv_err *err, enum hv_status s, const char *fmt, ...)
    HV_PRINTF(3, 4);
/** As hv_err_set, with the input's name and position (line and column from 1; 0 = unknown). */
enum hv_status hv_err_at(struct hv_err *err, enum hv_status s, const char *file, unsigned line,
                         unsigned col, const char *fmt, ...) HV_PRINTF(6, 7);
/**
 * Puts context and ": " in front of the text that is already there:
 * hv_err_context(err, "while reading %s", path). Returns the recorded status (HV_EINTERNAL when
 * err is NULL: a caller that needs the status keeps it).
 */
enum hv_status hv_err_context(struct hv_err *err, const char *fmt, ...) HV_PRINTF(2, 3);
/** Writes "file:line:col: text" (parts that are unknown left out) into buf; returns buf. */
const char *hv_err_format(const struct hv_err *err, char *buf, unsigned long cap);

/** Reports an internal error and aborts; the registered hook restores the terminal first. */
void hv_bug(const char *file, int line, const char *fmt, ...) HV_PRINTF(3, 4) HV_NORETURN;
/** hv_bug with the current file and line. */
#define HV_BUG(...) hv_bug(__FILE__, __LINE__, __VA_ARGS__)
/** Hook run once before the program dies in hv_bug or on lack of memory (NULL = none). */
void hv_die_hook(void (*restore)(void));

#endif
