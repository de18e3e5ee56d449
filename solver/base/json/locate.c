/*
 * Positions in JSON text, found by reading it once more when there is an error to report. jansson
 * does not store them. `locate` follows a key path in a text that is known to be valid; `diagnose`
 * finds and reports the first mistake in an invalid text. Both are iterative, and neither builds
 * values.
 */
#include "solver/base/arena.h"
#include "solver/base/json/json_int.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

void hv__json_line_col(const char *text, size_t at, unsigned *line, unsigned *col)
{
    *line = *col = 1;
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') {
            ++*line;
            *col = 1;
        } else if (((unsigned char)text[i] & 0xC0) != 0x80) {
            ++*col;
        }
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_space(const char *s, size_t n, size_t i)
{
    while (i < n && is_space(s[i])) {
        i++;
    }
    return i;
}

/* ---- walking in good text -------------------------------------------------------------------- */

/* Byte after the string that starts at s[i]. */
static size_t skip_string(const char *s, size_t n, size_t i)
{
    for (i++; i < n && s[i] != '"'; i++) {
        i += s[i] == '\\';
    }
    return i < n ? i + 1 : n;
}

/* Byte after the value that starts at s[i]. */
static size_t skip_value(const char *s, size_t n, size_t i)
{
    size_t depth = 0;
    while (i < n) {
        char c = s[i];
        if (c == '"') {
            i = skip_string(s, n, i);
        } else if (depth == 0 && (c == ',' || c == ']' || c == '}' || is_space(c))) {
            return i;
        } else {
            i++;
        }
        if (c == '[' || c == '{') {
            depth++;
        } else if ((c == ']' || c == '}') && --depth == 0) {
            return i;
        } else if (c == '"' && depth == 0) {
            return i;
        }
    }
    return n;
}

static unsigned hex4(const char *s)
{
    unsigned x = 0;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        unsigned d = c <= '9' ? (unsigned)(c - '0') : ((unsigned)c & 0xDFu) - 'A' + 10;
        x = x * 16 + d;
    }
    return x;
}

/* Decodes one escape at s[i] = '\\' of a good string; returns the byte after it. */
static size_t decode_escape(const char *s, size_t i, struct hv_str *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = s[i + 1];
    if (c != 'u') {
        const char *at = strchr(from, c);
        hv_str_addc(out, at ? to[at - from] : c);
        return i + 2;
    }
    unsigned x = hex4(s + i + 2);
    i += 6;
    if (x >= 0xD800 && x < 0xDC00) {
        x = 0x10000 + ((x & 0x3FF) << 10) + (hex4(s + i + 2) & 0x3FF);
        i += 6;
    }
    utf8proc_uint8_t bytes[4];
    utf8proc_ssize_t k = utf8proc_encode_char((utf8proc_int32_t)x, bytes);
    for (utf8proc_ssize_t j = 0; j < k; j++) {
        hv_str_addc(out, (char)bytes[j]);
    }
    return i;
}

/* True where the valid string s[i..end), quotes included, equals key. */
static bool string_is(const char *s, size_t i, size_t end, const char *key)
{
    size_t len = strlen(key);
    if (!memchr(s + i, '\\', end - i)) {
        return end - i - 2 == len && memcmp(s + i + 1, key, len) == 0;
    }
    struct hv_str decoded = {0};
    for (i++; i < end - 1;) {
        if (s[i] == '\\') {
            i = decode_escape(s, i, &decoded);
        } else {
            hv_str_addc(&decoded, s[i++]);
        }
    }
    bool same = decoded.n == len && memcmp(hv_str_cstr(&decoded), key, len) == 0;
    hv_str_free(&decoded);
    return same;
}

/* Where member `key` of the object at s[i] starts (*key_at: its name), or SIZE_MAX. */
static size_t find_member(const char *s, size_t n, size_t i, const char *key, size_t *key_at)
{
    if (i >= n || s[i] != '{') {
        return SIZE_MAX;
    }
    i = skip_space(s, n, i + 1);
    while (i < n && s[i] == '"') {
        size_t start = i, end = skip_string(s, n, i);
        i = skip_space(s, n, end);
        i = skip_space(s, n, i + 1); /* the colon */
        if (string_is(s, start, end, key)) {
            *key_at = start;
            return i;
        }
        i = skip_space(s, n, skip_value(s, n, i));
        i = skip_space(s, n, i + 1); /* the comma */
    }
    return SIZE_MAX;
}

static size_t find_element(const char *s, size_t n, size_t i, size_t index)
{
    if (i >= n || s[i] != '[') {
        return SIZE_MAX;
    }
    i = skip_space(s, n, i + 1);
    for (; index > 0 && i < n && s[i] != ']'; index--) {
        i = skip_space(s, n, skip_value(s, n, i));
        if (i < n && s[i] != ']') {
            i = skip_space(s, n, i + 1);
        }
    }
    return i < n && s[i] != ']' ? i : SIZE_MAX;
}

size_t hv__json_locate(const struct hv_jp *p, bool of_key)
{
    const struct hv_json *doc = p->doc;
    if (!doc || !doc->text) {
        return SIZE_MAX;
    }
    size_t n_steps = 0, k = 0;
    for (const struct hv_jp *q = p; q->up; q = q->up) {
        n_steps++;
    }
    const struct hv_jp **steps = hv_xcalloc(n_steps + 1, sizeof *steps);
    k = n_steps;
    for (const struct hv_jp *q = p; q->up; q = q->up) {
        steps[--k] = q;
    }
    size_t at = skip_space(doc->text, doc->n, 0), key_at = SIZE_MAX;
    for (; k < n_steps; k++) {
        key_at = SIZE_MAX;
        size_t next = steps[k]->key ? find_member(doc->text, doc->n, at, steps[k]->key, &key_at)
                                    : find_element(doc->text, doc->n, at, steps[k]->index);
        if (next == SIZE_MAX) {
            break;
        }
        at = next;
    }
    free(steps);
    return of_key && key_at != SIZE_MAX ? key_at : at;
}

void hv_jp_where(const struct hv_jp *p, unsigned *line, unsigned *col)
{
    size_t at = hv__json_locate(p, false);
    if (at == SIZE_MAX) {
        *line = *col = 0;
    } else {
        hv__json_line_col(p->doc->text, at, line, col);
    }
}
