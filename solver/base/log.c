/*
 * One sink for log lines. The only state of solver/base besides the die hook. Results are returned
 * and input errors are recorded in `struct hv_err`; neither is logged.
 */
#include "solver/base/log.h"

#include "solver/base/str.h"
#include <stdarg.h>
#include <stdio.h>

static struct {
    hv_log_sink *sink;
    void *ctx;
    enum hv_log_level most;
} log_state;

void hv_log_to(hv_log_sink *sink, void *ctx, enum hv_log_level most)
{
    log_state.sink = sink;
    log_state.ctx = ctx;
    log_state.most = most;
}

void hv_log_stderr(void *ctx, enum hv_log_level level, const char *area, const char *text)
{
    static const char *const names[] = {"error", "warning", "note", "debug"};
    (void)ctx;
    fprintf(stderr, "hetviz: %s: %s: %s\n", names[level], area, text);
}

void hv_log(enum hv_log_level level, const char *area, const char *fmt, ...)
{
    if (!log_state.sink || level > log_state.most) {
        return;
    }
    struct hv_str raw = {0}, clean = {0};
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&raw, fmt, ap);
    va_end(ap);
    hv_text_clean(&clean, hv_str_cstr(&raw), raw.n);
    log_state.sink(log_state.ctx, level, area, hv_str_cstr(&clean));
    hv_str_free(&raw);
    hv_str_free(&clean);
}
