/*
 * The lines of the log. Not for the selection of logged changes (ui/session/record.c).
 */
#include "ui/session/log/log.h"

#include "solver/base/str.h"
#include "solver/base/vec.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Lines kept; the older half is dropped at twice this number. */
#define KEPT 2000

struct hv__log {
    double (*now_s)(void *ctx);
    void *ctx;
    HV_VEC(struct hv_log_line) lines;
    uint64_t n_added;
};

struct hv__log *hv__log_new(double (*now_s)(void *ctx), void *ctx)
{
    struct hv__log *log = hv_xcalloc(1, sizeof *log);
    log->now_s = now_s;
    log->ctx = ctx;
    return log;
}

static void line_free(struct hv_log_line *l)
{
    free(l->area);
    free(l->text);
}

void hv__log_free(struct hv__log *log)
{
    for (size_t i = 0; i < log->lines.n; i++) {
        line_free(&log->lines.items[i]);
    }
    hv_vec_free(&log->lines);
    free(log);
}

static void add(struct hv__log *log, enum hv_log_level level, const char *area, const char *text,
                bool command)
{
    struct hv_log_line line = {.at_s =
                                   log->now_s != NULL ? log->now_s(log->ctx) : (double)time(NULL),
                               .level = level,
                               .command = command,
                               .area = hv_xstrdup(area),
                               .text = hv_xstrdup(text)};
    hv_vec_push(&log->lines, line);
    if (log->lines.n >= (size_t)2 * KEPT) {
        for (size_t i = 0; i < KEPT; i++) {
            line_free(&log->lines.items[i]);
        }
        memmove(log->lines.items, log->lines.items + KEPT,
                (log->lines.n - KEPT) * sizeof *log->lines.items);
        log->lines.n -= KEPT;
    }
    log->n_added++;
}

void hv__log_addv(struct hv__log *log, enum hv_log_level level, const char *area, const char *fmt,
                  va_list ap)
{
    struct hv_str text = {0};
    hv_str_addv(&text, fmt, ap);
    const char *at = hv_str_cstr(&text);
    do { /* one line each: a traceback is several */
        size_t n = strcspn(at, "\n");
        struct hv_str clean = {0};
        hv_text_clean(&clean, at, n);
        if (n > 0) {
            add(log, level, area, hv_str_cstr(&clean), false);
        }
        hv_str_free(&clean);
        at += n + (at[n] == '\n');
    } while (*at != '\0');
    hv_str_free(&text);
}

void hv__log_add(struct hv__log *log, enum hv_log_level level, const char *area, const char *fmt,
                 ...)
{
    va_list ap;
    va_start(ap, fmt);
    hv__log_addv(log, level, area, fmt, ap);
    va_end(ap);
}

void hv__log_add_command(struct hv__log *log, const char *line)
{
    add(log, HV_LOG_INFO, "command", line, true);
}

const struct hv_log_line *hv__log_lines(const struct hv__log *log, size_t *n)
{
    *n = log->lines.n;
    return log->lines.items;
}

uint64_t hv__log_changes(const struct hv__log *log)
{
    return log->n_added;
}
