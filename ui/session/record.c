/*
 * Logging of changes: each becomes a prompt line that repeats it, in the log and in the recording.
 * Not for making changes.
 */
#include "ui/session/record.h"
#include "ui/session/session_int.h"

#include "ui/session/doc/diff.h"
#include <string.h>

void hv_session_log(struct hv_session *s, enum hv_log_level level, const char *area,
                    const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    hv__log_addv(s->log, level, area, fmt, ap);
    va_end(ap);
}

const struct hv_log_line *hv_session_log_lines(const struct hv_session *s, size_t *n)
{
    return hv__log_lines(s->log, n);
}

/* Shows the failure that ended the recording. */
static void recording_failed(struct hv_session *s, const struct hv_err *err)
{
    hv__session_set_notice(s, "the recording ends: %s", err->text);
    hv_session_log(s, HV_LOG_ERROR, "record", "%s", hv_str_cstr(&s->notice));
}

static void record_line(struct hv_session *s, const char *line, size_t n)
{
    struct hv_err err = {0};
    bool runs_left = hv_pool_n_running(s->pool) + hv_pool_n_queued(s->pool) > 0;
    if (hv__recording_is_on(s->recording) &&
        hv__recording_write(s->recording, line, n, runs_left, &err) != HV_OK) {
        recording_failed(s, &err);
    }
}

void hv__session_did(struct hv_session *s, const char *fmt, ...)
{
    struct hv_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&text, fmt, ap);
    va_end(ap);
    record_line(s, hv_str_cstr(&text), text.n);
    if (strncmp(hv_str_cstr(&text), "run ", 4) == 0) {
        hv__recording_ran(s->recording);
    }
    hv__log_add_command(s->log, hv_str_cstr(&text));
    hv_str_free(&text);
}

void hv__session_did_words(struct hv_session *s, const char *verb, const char *first,
                           const char *second)
{
    struct hv_str line = {0};
    hv_str_adds(&line, verb);
    for (int i = 0; i < 2; i++) {
        const char *word = i == 0 ? first : second;
        if (word != NULL) {
            hv_str_addc(&line, ' ');
            hv__word_add(&line, word);
        }
    }
    hv__session_did(s, "%s", hv_str_cstr(&line));
    hv_str_free(&line);
}

void hv__session_did_doc(struct hv_session *s, enum hv_doc d, const json_t *before,
                         const json_t *after)
{
    struct hv_str lines = {0};
    size_t n = hv__doc_diff(d, before, after, &lines);
    const char *at = hv_str_cstr(&lines);
    if (n > 1) {
        hv__session_did(s, "begin");
    }
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(at, "\n");
        hv__session_did(s, "%.*s", (int)len, at);
        at += len + 1;
    }
    if (n > 1) {
        hv__session_did(s, "end");
    }
    hv_str_free(&lines);
}

/* The recording begins with the unsaved changes, because a replay starts from the saved
 * workspace. */
static void record_unsaved(struct hv_session *s)
{
    struct hv_str lines = {0};
    for (int d = 0; d < HV_DOC_N; d++) {
        const json_t *saved = hv__docs_saved_tree(s->docs, (enum hv_doc)d);
        if (saved != NULL && hv__docs_is_edited(s->docs, (enum hv_doc)d)) {
            (void)hv__doc_diff((enum hv_doc)d, saved, hv__docs_tree(s->docs, (enum hv_doc)d),
                               &lines);
        }
    }
    for (const char *at = hv_str_cstr(&lines); *at != '\0';) {
        size_t n = strcspn(at, "\n");
        record_line(s, at, n);
        at += n + 1;
    }
    hv_str_free(&lines);
}

enum hv_status hv_session_record(struct hv_session *s, const char *path, struct hv_err *err)
{
    hv__recording_stop(s->recording);
    if (path == NULL) {
        return HV_OK;
    }
    struct hv_err why = {0};
    enum hv_status st = hv__recording_open(s->recording, path, err);
    if (st != HV_OK) {
        return st;
    }
    hv__journal_mark(s->journal);
    if (hv__recording_write_head(s->recording, &why) != HV_OK) {
        recording_failed(s, &why);
    }
    record_unsaved(s);
    if (!hv__recording_is_on(s->recording)) {
        return hv_err_set(err, HV_EIO, "%s: it cannot be written", path);
    }
    return HV_OK;
}

const char *hv_session_recording(const struct hv_session *s)
{
    return hv__recording_path(s->recording);
}
