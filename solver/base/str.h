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
#include <stdint.h>

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
 * True for a character that text from files or plugins may not bring to a terminal: it moves the
 * cursor, hides text, reorders it or is not visible (Unicode categories Cc, Cf, Zl, Zp, and what is
 * ignorable by default). Line ends and tabs are among them.
 */
bool hv_text_is_unsafe(int32_t c);
/** Bytes of the character that `s` of n bytes begins with, stored in *c; 0 = it is no UTF-8, and *c
 * is negative. */
size_t hv_text_char(const char *s, size_t n, int32_t *c);
/**
 * Makes text from files or plugins safe to show on one line: unsafe characters and bytes that are
 * no UTF-8 become visible escapes such as `<U+202E>` and `<0xFF>`; newlines and tabs become one
 * space. Appends the clean text to `out`; clean text stays as it is.
 */
void hv_text_clean(struct hv_str *out, const char *text, size_t n);
/** As hv_text_clean for text of several lines: newlines and tabs stay. */
void hv_text_clean_lines(struct hv_str *out, const char *text, size_t n);
/**
 * As hv_str_addf for text that people read: every text argument (%s) may come from files or plugins
 * and becomes one safe line (hv_text_clean); its width and precision count columns, not bytes. A
 * text argument ends with NUL.
 */
void hv_text_addf(struct hv_str *out, const char *fmt, ...) HV_PRINTF(2, 3);

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
