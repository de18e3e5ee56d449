/*
 * Status table, error records, and the two causes that abort the program: a bug and lack of memory.
 * Logging is in log.c; bad input is a returned status.
 */
#include "solver/base/status.h"

#include "solver/base/arena.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_code;
} status_table[] = {
#define X(name, exit_code, text) {#name, exit_code},
    HV_STATUS_MAP(X)
#undef X
};

static void (*die_restore)(void);

static bool is_status(enum hv_status s)
{
    return (unsigned)s < (unsigned)HV_STATUS_N;
}

const char *hv_status_name(enum hv_status s)
{
    return is_status(s) ? status_table[s].name : "HV_?";
}

int hv_status_exit_code(enum hv_status s)
{
    return is_status(s) ? status_table[s].exit_code : status_table[HV_EINTERNAL].exit_code;
}

/* snprintf may have cut a UTF-8 character in two: drops the incomplete one. */
static void mend_tail(char *s)
{
    size_t n = strlen(s), i = n;
    while (i > 0 && n - i < 3 && ((unsigned char)s[i - 1] & 0xC0) == 0x80) {
        i--;
    }
    if (i == 0) {
        return;
    }
    unsigned char lead = (unsigned char)s[i - 1];
    size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (want > n - i + 1) {
        s[i - 1] = '\0';
    }
}

/* The end of a path is more useful than its start, so a long path is cut at its start. */
static void set_file(struct hv_err *err, const char *file)
{
    size_t n = file ? strlen(file) : 0, cap = sizeof err->file;
    if (n < cap) {
        memcpy(err->file, file ? file : "", n + 1);
        return;
    }
    const char *tail = file + n - (cap - 4);
    while (((unsigned char)*tail & 0xC0) == 0x80) {
        tail++;
    }
    snprintf(err->file, cap, "...%s", tail);
}

enum hv_status hv_err_set(struct hv_err *err, enum hv_status s, const char *fmt, ...)
{
    if (!err) {
        return s;
    }
    char text[sizeof err->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    mend_tail(text);
    *err = (struct hv_err){.status = s};
    memcpy(err->text, text, sizeof text);
    return s;
}

enum hv_status hv_err_at(struct hv_err *err, enum hv_status s, const char *file, unsigned line,
                         unsigned col, const char *fmt, ...)
{
    if (!err) {
        return s;
    }
    struct hv_err made = {.status = s, .line = line, .col = col};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(made.text, sizeof made.text, fmt, ap);
    va_end(ap);
    mend_tail(made.text);
    set_file(&made, file);
    *err = made;
    return s;
}

enum hv_status hv_err_context(struct hv_err *err, const char *fmt, ...)
{
    if (!err) {
        return HV_EINTERNAL;
    }
    char what[512], old[sizeof err->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    mend_tail(what);
    memcpy(old, err->text, sizeof old);
    size_t n = strlen(what), room = sizeof err->text - n - 3, keep = strlen(old);
    keep = keep < room ? keep : room;
    memcpy(err->text, what, n);
    memcpy(err->text + n, ": ", 2);
    memcpy(err->text + n + 2, old, keep);
    err->text[n + 2 + keep] = '\0';
    mend_tail(err->text);
    return err->status;
}

const char *hv_err_format(const struct hv_err *err, char *buf, unsigned long cap)
{
    if (cap == 0) {
        return buf;
    }
    if (err->file[0] && err->line && err->col) {
        snprintf(buf, cap, "%s:%u:%u: %s", err->file, err->line, err->col, err->text);
    } else if (err->file[0] && err->line) {
        snprintf(buf, cap, "%s:%u: %s", err->file, err->line, err->text);
    } else if (err->file[0]) {
        snprintf(buf, cap, "%s: %s", err->file, err->text);
    } else {
        snprintf(buf, cap, "%s", err->text);
    }
    mend_tail(buf);
    return buf;
}

void hv_die_hook(void (*restore)(void))
{
    die_restore = restore;
}

static void run_die_hook(void)
{
    void (*restore)(void) = die_restore;
    die_restore = NULL; /* once: the hook itself may fail */
    if (restore) {
        restore();
    }
}

void hv_bug(const char *file, int line, const char *fmt, ...)
{
    run_die_hook();
    fprintf(stderr, "hetviz: internal error at %s:%d: ", file, line);
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}

void hv_oom(size_t wanted_bytes)
{
    run_die_hook();
    fprintf(stderr, "hetviz: out of memory (%zu bytes wanted)\n", wanted_bytes);
    _Exit(status_table[HV_EINTERNAL].exit_code);
}
