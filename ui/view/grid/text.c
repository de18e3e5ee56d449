/*
 * Text by graphemes: number of bytes and columns, line breaks. Independent of cells.
 */
#include "ui/view/grid/grid_int.h"

#include <limits.h>
#include <string.h>

#include <utf8proc.h>

size_t hv__text_plain(const char *s)
{
    size_t n = 0;
    while (s[n] >= ' ' && s[n] < 0x7f) {
        n++;
    }
    return s[n] == '\0' ? n : SIZE_MAX;
}

static utf8proc_ssize_t decode(const char *s, size_t n, utf8proc_int32_t *cp)
{
    utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n, cp);
    if (len <= 0) {
        *cp = '?';
        return 1;
    }
    return len;
}

struct hv__grapheme hv__text_grapheme(const char *s, size_t n)
{
    utf8proc_int32_t cp = 0, prev = 0, state = 0;
    struct hv__grapheme out = {0};
    if (n > 0 && hv__text_is_plain(s, n)) {
        return (struct hv__grapheme){1, 1, 1};
    }
    while (out.n < n) {
        utf8proc_ssize_t len = decode(s + out.n, n - out.n, &cp);
        if (out.n > 0 && utf8proc_grapheme_break_stateful(prev, cp, &state)) {
            break;
        }
        int w = utf8proc_charwidth(cp);
        if (w > out.width) {
            out.width = w > 2 ? 2 : w;
        }
        out.n += (size_t)len;
        if (out.n < sizeof((struct hv_cell *)0)->utf8) {
            out.keep = out.n;
        }
        prev = cp;
    }
    return out;
}

size_t hv_text_next(const char *text, size_t at)
{
    return hv__text_grapheme(text + at, strlen(text + at)).n;
}

size_t hv_text_prev(const char *text, size_t at)
{
    size_t i = 0, last = 0;
    while (i < at && text[i]) {
        last = i;
        i += hv_text_next(text, i);
    }
    return last;
}

size_t hv_text_fit(const char *text, int max_w)
{
    size_t i = 0, n = strlen(text);
    int used = 0;
    while (i < n) {
        struct hv__grapheme gr = hv__text_grapheme(text + i, n - i);
        if (used + gr.width > max_w) {
            break;
        }
        used += gr.width;
        i += gr.n;
    }
    return i;
}

size_t hv_text_wrap(const char *text, int w)
{
    size_t line = strcspn(text, "\n"), n = hv_text_fit(text, w);
    if (line <= n) {
        return line;
    }
    size_t cut = n;
    while (cut > 0 && text[cut] != ' ') {
        cut--;
    }
    return cut > 0 ? cut : n > 0 ? n : 1;
}

int hv_text_width(const char *text)
{
    size_t i = 0, n = strlen(text), plain = hv__text_plain(text);
    int used = 0;
    if (plain < INT_MAX) {
        return (int)plain;
    }
    while (i < n) {
        struct hv__grapheme gr = hv__text_grapheme(text + i, n - i);
        used += gr.width;
        i += gr.n;
    }
    return used;
}
