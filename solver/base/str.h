/**
 * Growable string. Invariants: `{0}` is the empty string; `hv_str_cstr` is always NUL-terminated;
 * p[n] == 0 whenever p is not NULL; embedded NULs are allowed.
 */
#ifndef HV_SOLVER_BASE_STR_H
#define HV_SOLVER_BASE_STR_H

#include "solver/base/attr.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/** A string on the heap. Owner: whoever owns the struct calls hv_str_free. */
struct hv_str {
    char *p;
    size_t n, cap;
};

/** Appends n bytes. */
void hv_str_add(struct hv_str *s, const char *bytes, size_t n);
/** Appends a C string. */
void hv_str_adds(struct hv_str *s, const char *text);
/** Appends a whole number in decimal digits. */
void hv_str_addu(struct hv_str *s, unsigned long x);
/** Appends formatted text. */
void hv_str_addf(struct hv_str *s, const char *fmt, ...) HV_PRINTF(2, 3);
/** Reserves `more` bytes behind the text and the final NUL; changes nothing else. */
void hv_str_reserve(struct hv_str *s, size_t more);
/** Appends one byte. */
static inline void hv_str_addc(struct hv_str *s, char c)
{
    if (s->n + 1 >= s->cap) {
        hv_str_reserve(s, 1);
    }
    s->p[s->n++] = c;
    s->p[s->n] = '\0';
}
/** As hv_str_addf with a va_list. */
void hv_str_addv(struct hv_str *s, const char *fmt, va_list ap) HV_PRINTF(2, 0);
/** Empties it, keeps the memory. */
void hv_str_clear(struct hv_str *s);
/** Frees it; empty and usable again. */
void hv_str_free(struct hv_str *s);
/** The text, "" when empty. Borrowed. */
const char *hv_str_cstr(const struct hv_str *s);

/**
 * Makes text from files or plugins safe to show: control characters, ESC, invalid UTF-8 and
 * bidirectional overrides become visible escapes such as `<U+202E>`; newlines and tabs become one
 * space. Appends the clean text to `out`.
 */
void hv_text_clean(struct hv_str *out, const char *text, size_t n);

/** True where the text is longer than `end` and ends with it, such as a file name with its
 * extension; compares bytes. */
bool hv_text_ends_with(const char *text, const char *end);

/**
 * The candidate nearest to `word` by edit distance (with transpositions, case-blind), or NULL when
 * none is near (distance > 2 and > a third of the length). Ties: the first. O(n · |word| ·
 * |candidate|).
 */
const char *hv_suggest(const char *word, const char *const *candidates, size_t n);

#endif
