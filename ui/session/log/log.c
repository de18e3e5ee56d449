/*
 * The log of a session and the recording of what is done to it: every change as the line for the
 * prompt that makes it again. Not for making changes.
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Lines kept; the older half goes when there are twice as many. */
#define KEPT 2000

static double wall_s(const struct hv_session *s)
{
    if (s->env.now_s != NULL) {
        return s->env.now_s(s->env.ctx);
    }
    return (double)time(NULL);
}

static void line_free(struct hv_log_line *l)
{
    free(l->area);
    free(l->text);
}

static void add(struct hv_session *s, enum hv_log_level level, const char *area, char *text,
                bool command)
{
    struct hv_log_line line = {.at_s = wall_s(s),
                               .level = level,
                               .command = command,
                               .area = hv_xstrdup(area),
                               .text = text};
    hv_vec_push(&s->log, line);
    if (s->log.n >= (size_t)2 * KEPT) {
        for (size_t i = 0; i < KEPT; i++) {
            line_free(&s->log.items[i]);
        }
        memmove(s->log.items, s->log.items + KEPT, (s->log.n - KEPT) * sizeof *s->log.items);
        s->log.n -= KEPT;
    }
    hv__session_moved(s);
}

void hv_session_log(struct hv_session *s, enum hv_log_level level, const char *area,
                    const char *fmt, ...)
{
    struct hv_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&text, fmt, ap);
    va_end(ap);
    const char *at = hv_str_cstr(&text);
    do { /* one line each: a traceback is several */
        size_t n = strcspn(at, "\n");
        struct hv_str clean = {0};
        hv_text_clean(&clean, at, n);
        if (n > 0) {
            add(s, level, area, hv_xstrdup(hv_str_cstr(&clean)), false);
        }
        hv_str_free(&clean);
        at += n + (at[n] == '\n');
    } while (*at != '\0');
    hv_str_free(&text);
}

const struct hv_log_line *hv_session_log_lines(const struct hv_session *s, size_t *n)
{
    *n = s->log.n;
    return s->log.items;
}

void hv__session_log_free(struct hv_session *s)
{
    for (size_t i = 0; i < s->log.n; i++) {
        line_free(&s->log.items[i]);
    }
    hv_vec_free(&s->log);
}

/* ---- recording ---------------------------------------------------------------------------------
 */

void hv__session_record_stop(struct hv_session *s)
{
    if (s->record_fd >= 0) {
        close(s->record_fd);
    }
    s->record_fd = -1;
    free(s->record_path);
    s->record_path = NULL;
}

/* A recording that cannot go on ends and says so: half a line would not replay. */
static void put(struct hv_session *s, const char *text, size_t n)
{
    while (s->record_fd >= 0 && n > 0) {
        ssize_t k = write(s->record_fd, text, n);
        if (k < 0 && errno == EINTR) {
            continue;
        }
        if (k <= 0) {
            hv_str_clear(&s->notice);
            hv_str_addf(&s->notice, "the recording ends: %s: %s", s->record_path, strerror(errno));
            hv_session_log(s, HV_LOG_ERROR, "record", "%s", hv_str_cstr(&s->notice));
            hv__session_record_stop(s);
            return;
        }
        text += k;
        n -= (size_t)k;
    }
}

static void put_line(struct hv_session *s, const char *line, size_t n)
{
    struct hv_str text = {0};
    if (s->record_runs && hv_session_n_running(s) + hv_session_n_queued(s) == 0) {
        hv_str_adds(&text, "settle\n"); /* whoever did this had seen the runs end */
        s->record_runs = false;
    }
    hv_str_addc(&text, ':');
    hv_str_add(&text, line, n);
    hv_str_addc(&text, '\n');
    put(s, text.p, text.n);
    hv_str_free(&text);
}

void hv__session_did(struct hv_session *s, const char *fmt, ...)
{
    struct hv_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&text, fmt, ap);
    va_end(ap);
    if (s->record_fd >= 0) {
        put_line(s, hv_str_cstr(&text), text.n);
    }
    s->record_runs = s->record_runs || strncmp(hv_str_cstr(&text), "run ", 4) == 0;
    add(s, HV_LOG_INFO, "command", hv_xstrdup(hv_str_cstr(&text)), true);
    hv_str_free(&text);
}

void hv__session_did_doc(struct hv_session *s, enum hv_doc d, const json_t *before,
                         const json_t *after)
{
    struct hv_str lines = {0};
    size_t n = hv__session_diff(d, before, after, &lines);
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

void hv__session_add_word(struct hv_str *out, const char *word)
{
    if (word[0] != '\0' && strpbrk(word, " \t\"\\") == NULL) {
        hv_str_adds(out, word);
        return;
    }
    hv_str_addc(out, '"');
    for (; *word != '\0'; word++) {
        if (*word == '"' || *word == '\\') {
            hv_str_addc(out, '\\');
        }
        hv_str_addc(out, *word);
    }
    hv_str_addc(out, '"');
}

/* What was changed since the workspace was saved comes first: a replay starts from there. */
static void put_unsaved(struct hv_session *s)
{
    struct hv_str lines = {0};
    for (int d = 0; d < HV_DOC_N; d++) {
        if (s->saved_tree[d] != NULL && s->saved_tree[d] != s->tree[d]) {
            (void)hv__session_diff((enum hv_doc)d, s->saved_tree[d], s->tree[d], &lines);
        }
    }
    for (const char *at = hv_str_cstr(&lines); *at != '\0';) {
        size_t n = strcspn(at, "\n");
        put_line(s, at, n);
        at += n + 1;
    }
    hv_str_free(&lines);
}

enum hv_status hv_session_record(struct hv_session *s, const char *path, struct hv_err *err)
{
    static const char head[] = "# hetviz --script THIS WORKSPACE does all of this again\n";
    hv__session_record_stop(s);
    if (path == NULL) {
        return HV_OK;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return hv_err_set(err, HV_EIO, "%s: %s", path, strerror(errno));
    }
    s->record_fd = fd;
    s->record_path = hv_xstrdup(path);
    s->record_floor = s->journal_at;
    s->record_runs = false;
    put(s, head, sizeof head - 1);
    put_unsaved(s);
    if (s->record_fd < 0) {
        return hv_err_set(err, HV_EIO, "%s: it cannot be written", path);
    }
    return HV_OK;
}

const char *hv_session_recording(const struct hv_session *s)
{
    return s->record_path;
}
