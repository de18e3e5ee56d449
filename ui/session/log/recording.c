/*
 * Writing a recording. Not for the selection of recorded lines (ui/session/record.c).
 */
#include "ui/session/log/recording.h"

#include "solver/base/arena.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hv__recording {
    int fd; /* −1 = none */
    char *path;
    bool ran; /* a run was recorded and its end not yet waited for */
};

struct hv__recording *hv__recording_new(void)
{
    struct hv__recording *r = hv_xcalloc(1, sizeof *r);
    r->fd = -1;
    return r;
}

void hv__recording_free(struct hv__recording *r)
{
    hv__recording_stop(r);
    free(r);
}

void hv__recording_stop(struct hv__recording *r)
{
    if (r->fd >= 0) {
        close(r->fd);
    }
    r->fd = -1;
    free(r->path);
    r->path = NULL;
}

bool hv__recording_is_on(const struct hv__recording *r)
{
    return r->fd >= 0;
}

const char *hv__recording_path(const struct hv__recording *r)
{
    return r->path;
}

void hv__recording_ran(struct hv__recording *r)
{
    r->ran = true;
}

static enum hv_status put(struct hv__recording *r, const char *text, size_t n, struct hv_err *err)
{
    while (n > 0) {
        ssize_t k = write(r->fd, text, n);
        if (k < 0 && errno == EINTR) {
            continue;
        }
        if (k <= 0) {
            enum hv_status st = hv_err_set(err, HV_EIO, "%s: %s", r->path, strerror(errno));
            hv__recording_stop(r);
            return st;
        }
        text += k;
        n -= (size_t)k;
    }
    return HV_OK;
}

enum hv_status hv__recording_write(struct hv__recording *r, const char *line, size_t n,
                                   bool runs_left, struct hv_err *err)
{
    struct hv_str text = {0};
    if (r->ran && !runs_left) {
        hv_str_adds(&text, "settle\n"); /* the user saw the runs end before this line */
        r->ran = false;
    }
    hv_str_addc(&text, ':');
    hv_str_add(&text, line, n);
    hv_str_addc(&text, '\n');
    enum hv_status st = put(r, text.p, text.n, err);
    hv_str_free(&text);
    return st;
}

enum hv_status hv__recording_open(struct hv__recording *r, const char *path, struct hv_err *err)
{
    hv__recording_stop(r);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return hv_err_set(err, HV_EIO, "%s: %s", path, strerror(errno));
    }
    r->fd = fd;
    r->path = hv_xstrdup(path);
    r->ran = false;
    return HV_OK;
}

enum hv_status hv__recording_write_head(struct hv__recording *r, struct hv_err *err)
{
    static const char head[] = "# hetviz --script THIS WORKSPACE replays these changes\n";
    return put(r, head, sizeof head - 1, err);
}

void hv__word_add(struct hv_str *out, const char *word)
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
