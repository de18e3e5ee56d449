/*
 * Bookkeeping of changes: the clock, change counters, the notice, the unsaved state, and steps of
 * the journal. Calls no other file of this folder.
 */
#include "ui/session/session_int.h"

#include <time.h>

double hv_session_now_s(const struct hv_session *s)
{
    if (s->env.now_s != NULL) {
        return s->env.now_s(s->env.ctx);
    }
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void hv__session_moved(struct hv_session *s)
{
    s->changes++;
}

void hv__session_touch(struct hv_session *s)
{
    hv__session_moved(s);
    hv__recovery_edited(s->recovery, hv_session_now_s(s));
}

void hv__session_set_notice(struct hv_session *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    hv_str_clear(&s->notice);
    hv_str_addv(&s->notice, fmt, ap);
    va_end(ap);
}

uint64_t hv_session_changes(const struct hv_session *s)
{
    return s->changes + hv__log_changes(s->log) + hv__console_changes(s->console);
}

const char *hv_session_notice(struct hv_session *s)
{
    struct hv_str shown = s->notice;
    s->notice = s->notice_shown;
    s->notice_shown = shown;
    hv_str_clear(&s->notice);
    return hv_str_cstr(&s->notice_shown);
}

bool hv_session_dirty(const struct hv_session *s)
{
    for (int d = 0; d < HV_DOC_N; d++) {
        if (hv__docs_is_edited(s->docs, (enum hv_doc)d)) {
            return true;
        }
    }
    return hv__rows_are_edited(s->rows);
}

void hv__session_rows_sweep(struct hv_session *s)
{
    hv__rows_sweep(s->rows, s->journal);
    hv__cache_sweep(s->cache, s->rows);
}

void hv__session_journal_push(struct hv_session *s, struct hv__step step)
{
    if (hv__journal_push(s->journal, step)) {
        hv__session_rows_sweep(s);
    }
}
