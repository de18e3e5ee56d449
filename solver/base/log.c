/*
 * One sink for log lines. The only state of solver/base besides the die hook. Results are returned
 * and input errors are recorded in `struct hv_err`; neither is logged.
 */
#include "solver/base/log.h"

#include "solver/base/str.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

void hv_log_err(const char *who, const struct hv_err *err)
{
    char buf[sizeof err->text + sizeof err->file + 64];
    struct hv_str text = {0};
    if (err->text[0] == '\0') {
        return;
    }
    (void)hv_err_format(err, buf, sizeof buf);
    hv_str_addf(&text, "%s: ", who);
    for (const char *line = buf;; line++) {
        size_t n = strcspn(line, "\n");
        hv_text_clean_lines(&text, line, n);
        hv_str_addc(&text, '\n');
        line += n;
        if (*line == '\0') {
            break;
        }
        hv_str_adds(&text, line[1] == ' ' || line[1] == '\t' ? "" : "  ");
    }
    (void)fputs(hv_str_cstr(&text), stderr);
    hv_str_free(&text);
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
