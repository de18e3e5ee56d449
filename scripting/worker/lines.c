/* Lines of JSON between a worker and its parent. */
#include "scripting/worker/worker_int.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define JOB_LIMIT ((size_t)64 << 20)

enum hv_status hv__lines_next(struct hv__lines *l, const char **out, size_t *n, struct hv_err *err)
{
    struct hv_str *t = &l->text;
    const char *end = NULL;
    char buf[65536];

    while (t->n == l->at || (end = memchr(t->p + l->at, '\n', t->n - l->at)) == NULL) {
        ssize_t got = read(l->fd, buf, sizeof buf);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return hv_err_set(err, HV_EIO, "cannot read the job: %s", strerror(errno));
        }
        if (got == 0) {
            break;
        }
        if (l->at > 0) { /* nothing was read yet: there is no memory */
            memmove(t->p, t->p + l->at, t->n - l->at);
        }
        t->n -= l->at;
        l->at = 0;
        hv_str_add(t, buf, (size_t)got);
        if (t->n > JOB_LIMIT) {
            return hv_err_set(err, HV_ELIMIT, "the job is larger than 64 MiB");
        }
    }
    *out = t->n > l->at ? t->p + l->at : NULL;
    *n = end != NULL ? (size_t)(end - *out) : t->n - l->at;
    l->at += *n + (end != NULL);
    return HV_OK;
}

void hv__write_line(int fd, const json_t *line)
{
    struct hv_str text = {0};

    hv_json_write(&text, line, false);
    hv_str_addc(&text, '\n');
    for (size_t at = 0; at < text.n;) {
        ssize_t n = write(fd, text.p + at, text.n - at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break; /* the parent is gone; SIGPIPE or the next look at the pipe ends us */
        }
        at += (size_t)n;
    }
    hv_str_free(&text);
}
