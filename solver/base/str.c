/* Growable strings. Text from files or plugins has to be cleaned by text.c before it is shown. */
#include "solver/base/str.h"

#include "solver/base/arena.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hv_str_reserve(struct hv_str *s, size_t more)
{
    if (more > SIZE_MAX / 4 - s->n) {
        hv_oom(more);
    }
    size_t want = s->n + more + 1;
    if (want <= s->cap) {
        return;
    }
    size_t cap = s->cap * 2 > 32 ? s->cap * 2 : 32;
    s->cap = cap > want ? cap : want;
    s->p = hv_xrealloc(s->p, s->cap, 1);
}

void hv_str_add(struct hv_str *s, const char *bytes, size_t n)
{
    hv_str_reserve(s, n);
    if (n) {
        memcpy(s->p + s->n, bytes, n);
    }
    s->n += n;
    s->p[s->n] = '\0';
}

void hv_str_adds(struct hv_str *s, const char *text)
{
    hv_str_add(s, text, strlen(text));
}

void hv_str_addu(struct hv_str *s, unsigned long x)
{
    char digits[3 * sizeof x], *end = digits + sizeof digits, *at = end;
    do {
        *--at = (char)('0' + x % 10);
    } while ((x /= 10) > 0);
    hv_str_add(s, at, (size_t)(end - at));
}

void hv_str_addv(struct hv_str *s, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    hv_str_reserve(s, 64);
    size_t room = s->cap - s->n;
    int n = vsnprintf(s->p + s->n, room, fmt, ap);
    if (n >= 0 && (size_t)n >= room) {
        hv_str_reserve(s, (size_t)n);
        vsnprintf(s->p + s->n, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    s->n += n > 0 ? (size_t)n : 0;
    s->p[s->n] = '\0';
}

void hv_str_addf(struct hv_str *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(s, fmt, ap);
    va_end(ap);
}

void hv_str_clear(struct hv_str *s)
{
    s->n = 0;
    if (s->p) {
        s->p[0] = '\0';
    }
}

void hv_str_free(struct hv_str *s)
{
    free(s->p);
    *s = (struct hv_str){0};
}

const char *hv_str_cstr(const struct hv_str *s)
{
    return s->p ? s->p : "";
}

bool hv_text_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}
