/* Pieces of JSON files: a buffer that is refilled, and the subset of tokens that long lists need.
 */
#include "solver/base/json/stream.h"

#include "solver/base/arena.h"
#include "solver/base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes in memory at a time. */
#define BUFFER ((size_t)1 << 16)

bool hv_json_stream_open(struct hv_json_stream *s, const char *path)
{
    struct stat st;
    *s = (struct hv_json_stream){
        .file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
    };
    if (s->file < 0) {
        return false;
    }
    if (fstat(s->file, &st) != 0 || !S_ISREG(st.st_mode) || (uintmax_t)st.st_size > HV_FILE_LIMIT) {
        return false;
    }
    s->bytes = (size_t)st.st_size;
    s->buffer = hv_xmalloc(BUFFER + 1);
    s->buffer[0] = '\0';
    s->at = s->end = s->buffer;
    hv_json_stream_fill(s);
    return true;
}

void hv_json_stream_close(struct hv_json_stream *s)
{
    if (s->file >= 0) {
        close(s->file);
    }
    free(s->buffer);
    *s = (struct hv_json_stream){.file = -1};
}

void hv_json_stream_fill(struct hv_json_stream *s)
{
    size_t n = (size_t)(s->end - s->at);
    memmove(s->buffer, s->at, n);
    s->at = s->buffer;
    while (!s->over && n < BUFFER) {
        ssize_t got = read(s->file, s->buffer + n, BUFFER - n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        s->over = got <= 0; /* a file that cannot be read on ends too early for its reader */
        n += got > 0 ? (size_t)got : 0;
    }
    s->end = s->buffer + n;
    s->buffer[n] = '\0';
}

static const char *digits(const char *p)
{
    while (*p >= '0' && *p <= '9') {
        p++;
    }
    return p;
}

/* The end of the number at p; NULL where JSON has none like it. */
static const char *number_end(const char *p)
{
    p += *p == '-';
    const char *whole = digits(p);
    if (whole == p || (*p == '0' && whole > p + 1)) {
        return NULL;
    }
    p = whole;
    if (*p == '.') {
        const char *from = ++p;
        p = digits(p);
        if (p == from) {
            return NULL;
        }
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '-' || *p == '+';
        const char *from = p;
        p = digits(p);
        if (p == from) {
            return NULL;
        }
    }
    return p;
}

bool hv_json_stream_number(struct hv_json_stream *s, double *out)
{
    (void)hv_json_stream_peek(s);
    const char *to = number_end(s->at);
    char *end = NULL;
    if (!to || (size_t)(to - s->at) > HV_JSON_STREAM_TOKEN ||
        strcmp(localeconv()->decimal_point, ".") != 0) {
        return false;
    }
    *out = strtod(s->at, &end);
    bool ok = end == to && isfinite(*out);
    s->at = to;
    return ok;
}

bool hv_json_stream_key(struct hv_json_stream *s, char key[HV_JSON_STREAM_TOKEN + 1],
                        struct hv_str *out)
{
    if (!hv_json_stream_take(s, '"')) {
        return false;
    }
    size_t n =
        0; /* the whole key is in memory, as the quotation mark was taken with what follows */
    while ((unsigned char)s->at[n] >= ' ' && s->at[n] != '"' && s->at[n] != '\\') {
        n++;
    }
    if (n > HV_JSON_STREAM_TOKEN || s->at[n] != '"') {
        return false;
    }
    memcpy(key, s->at, n);
    key[n] = '\0';
    s->at += n + 1;
    if (!hv_json_stream_take(s, ':')) {
        return false;
    }
    hv_str_addf(out, "\"%s\":", key);
    return true;
}

/* Appends a string to `out` whose quotation mark is next. */
static bool copy_string(struct hv_json_stream *s, struct hv_str *out)
{
    hv_str_addc(out, *s->at++);
    for (bool escaped = false;; s->at++) {
        if (s->at == s->end) {
            hv_json_stream_fill(s);
        }
        if (s->at == s->end) {
            return false;
        }
        hv_str_addc(out, *s->at);
        if (*s->at == '"' && !escaped) {
            s->at++;
            return true;
        }
        escaped = *s->at == '\\' && !escaped;
    }
}

bool hv_json_stream_copy(struct hv_json_stream *s, struct hv_str *out)
{
    for (size_t depth = 0;;) {
        const char *from = s->at;
        char c = hv_json_stream_peek(s);
        if (s->at != from) { /* two numbers stay two */
            hv_str_addc(out, ' ');
        }
        bool closes = c == ']' || c == '}';
        if (depth == 0 && (c == ',' || closes)) {
            return true;
        }
        if (c == '\0') {
            return false;
        }
        if (c == '"') {
            if (!copy_string(s, out)) {
                return false;
            }
            continue;
        }
        depth += c == '[' || c == '{';
        depth -= closes;
        hv_str_addc(out, c);
        s->at++;
    }
}
