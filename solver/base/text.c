/*
 * Untrusted text: makes it safe to show, and compares words by edit distance. Wrapping is computed
 * by the user interface.
 */
#include "solver/base/str.h"
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---- safe text ------------------------------------------------------------------------------- */

bool hv_text_is_unsafe(int32_t c)
{
    const utf8proc_property_t *p = utf8proc_get_property(c);
    bool no_character = (c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF);
    return p->category == UTF8PROC_CATEGORY_CC || /* control: C0, DEL, C1 */
           p->category == UTF8PROC_CATEGORY_CF || /* format: bidirectional, zero width, tags */
           p->category == UTF8PROC_CATEGORY_ZL || /* line separator */
           p->category == UTF8PROC_CATEGORY_ZP || /* paragraph separator */
           p->ignorable ||                        /* drawn as nothing: fillers, selectors */
           no_character;
}

/* The selector of the coloured form belongs to the pictograph before it. */
static bool is_emoji_style(int32_t before, int32_t c)
{
    return c == 0xFE0F && before > 0 &&
           utf8proc_get_property(before)->boundclass == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}

size_t hv_text_char(const char *s, size_t n, int32_t *c)
{
    utf8proc_ssize_t len =
        utf8proc_iterate((const utf8proc_uint8_t *)s, n > 4 ? 4 : (utf8proc_ssize_t)n, c);
    return len > 0 ? (size_t)len : 0;
}

/* What stands for an unsafe character, or for a byte that is no UTF-8 (len = 0). */
static void add_visible(struct hv_str *out, const char *s, size_t left, size_t len, int32_t c)
{
    if (len == 0) {
        hv_str_addf(out, "<0x%02X>", (unsigned)(unsigned char)*s);
    } else if (c != '\r' || left < 2 || s[1] != '\n') { /* CR LF is one line end */
        hv_str_addf(out, "<U+%04X>", (unsigned)c);
    }
}

/* Appends text; `blank` tells what line ends and tabs become, 0 = they stay. */
static void add_clean(struct hv_str *out, const char *text, size_t n, char blank)
{
    int32_t c = 0, before = 0;
    size_t clean = 0; /* text[clean..i) is safe and not yet copied */
    for (size_t i = 0, len = 1; i<n; i += len> 0 ? len : 1, before = c) {
        if (text[i] >= ' ' && text[i] < 0x7F) {
            c = text[i], len = 1;
            continue;
        }
        len = hv_text_char(text + i, n - i, &c);
        bool space = len > 0 && (c == '\n' || c == '\t');
        if (len > 0 && (space ? blank == 0 : !hv_text_is_unsafe(c) || is_emoji_style(before, c))) {
            continue;
        }
        hv_str_add(out, text + clean, i - clean);
        if (space) {
            hv_str_addc(out, blank);
        } else {
            add_visible(out, text + i, n - i, len, c);
        }
        clean = i + (len > 0 ? len : 1);
    }
    hv_str_add(out, text + clean, n - clean);
}

void hv_text_clean(struct hv_str *out, const char *text, size_t n)
{
    add_clean(out, text, n, ' ');
}

void hv_text_clean_lines(struct hv_str *out, const char *text, size_t n)
{
    add_clean(out, text, n, 0);
}

/* ---- formatting of text that people read ----------------------------------------------------- */

/* A conversion of a format. */
struct conversion {
    const char *end;      /* behind it */
    bool left;            /* flag '-' */
    int width, precision; /* -1 = none */
    int longs;            /* number of 'l' */
    char size, kind;      /* 'z', 'j', 't', 'L' or 0; 's', 'd', … */
};

/* The arguments that are left. */
struct arguments {
    va_list ap;
};

static int number_at(const char **at, struct arguments *args)
{
    if (**at == '*') {
        ++*at;
        return va_arg(args->ap, int);
    }
    char *end = NULL;
    long n = strtol(*at, &end, 10);
    *at = end;
    return (int)n;
}

/* Reads the conversion behind a '%'; takes the arguments of its width and precision. */
static struct conversion read_conversion(const char *at, struct arguments *args)
{
    struct conversion v = {.width = -1, .precision = -1};
    for (; *at != '\0' && strchr("-+ #0'", *at) != NULL; at++) {
        v.left |= *at == '-';
    }
    if (*at == '*' || isdigit((unsigned char)*at)) {
        v.width = number_at(&at, args);
        v.left |= v.width < -1;
        v.width = v.width < -1 ? -v.width : v.width;
    }
    if (*at == '.') {
        at++;
        v.precision = number_at(&at, args);
    }
    for (; *at != '\0' && strchr("hlzjtL", *at) != NULL; at++) {
        v.longs += *at == 'l';
        v.size = *at == 'h' || *at == 'l' ? v.size : *at;
    }
    v.kind = *at;
    v.end = *at != '\0' ? at + 1 : at;
    return v;
}

/* Passes over an argument that is a whole number. */
static void pass_whole(const struct conversion *v, struct arguments *args)
{
    if (v->size == 'z') {
        (void)va_arg(args->ap, size_t);
    } else if (v->size == 'j') {
        (void)va_arg(args->ap, intmax_t);
    } else if (v->size == 't') {
        (void)va_arg(args->ap, ptrdiff_t);
    } else if (v->longs > 1) {
        (void)va_arg(args->ap, long long);
    } else if (v->longs == 1) {
        (void)va_arg(args->ap, long);
    } else {
        (void)va_arg(args->ap, int);
    }
}

/* Passes over the argument of a conversion that is not a text. */
static void pass_over(const struct conversion *v, struct arguments *args)
{
    switch (v->kind) {
    case '%':
    case '\0':
        return;
    case 'p':
        (void)va_arg(args->ap, void *);
        return;
    case 'a':
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G':
        if (v->size == 'L') {
            (void)va_arg(args->ap, long double);
        } else {
            (void)va_arg(args->ap, double);
        }
        return;
    default:
        pass_whole(v, args);
    }
}

/* Bytes of the first characters that fill at most `most` columns (< 0 = all); their columns. */
static size_t fit(const struct hv_str *s, int most, int *columns)
{
    size_t i = 0;
    *columns = 0;
    while (i < s->n) {
        int32_t c = 0;
        size_t len = hv_text_char(s->p + i, s->n - i, &c);
        int w = utf8proc_charwidth(c);
        if (most >= 0 && *columns + w > most) {
            break;
        }
        *columns += w;
        i += len > 0 ? len : 1;
    }
    return i;
}

static void add_word(struct hv_str *out, const struct conversion *v, const char *text)
{
    struct hv_str clean = {0};
    int columns = 0;
    hv_text_clean(&clean, text != NULL ? text : "(null)", text != NULL ? strlen(text) : 6);
    size_t n = fit(&clean, v->precision, &columns);
    for (int i = columns; !v->left && i < v->width; i++) {
        hv_str_addc(out, ' ');
    }
    hv_str_add(out, clean.p, n);
    for (int i = columns; v->left && i < v->width; i++) {
        hv_str_addc(out, ' ');
    }
    hv_str_free(&clean);
}

/* Formats a part of a format that has no %s, with a copy of the arguments. */
static void add_part(struct hv_str *out, const char *from, const char *to, struct arguments *args)
{
    struct hv_str part = {0};
    struct arguments copy;
    if (from == to) {
        return;
    }
    hv_str_add(&part, from, (size_t)(to - from));
    va_copy(copy.ap, args->ap);
    hv_str_addv(out, hv_str_cstr(&part), copy.ap);
    va_end(copy.ap);
    hv_str_free(&part);
}

void hv_text_addf(struct hv_str *out, const char *fmt, ...)
{
    struct arguments args, at_part;
    const char *part = fmt;
    va_start(args.ap, fmt);
    va_copy(at_part.ap, args.ap);
    for (const char *at = strchr(fmt, '%'); at != NULL; at = strchr(at, '%')) {
        struct conversion v = read_conversion(at + 1, &args);
        if (v.kind == 's') {
            add_part(out, part, at, &at_part);
            add_word(out, &v, va_arg(args.ap, const char *));
            va_end(at_part.ap);
            va_copy(at_part.ap, args.ap);
            part = v.end;
        } else {
            pass_over(&v, &args);
        }
        at = v.end;
    }
    add_part(out, part, part + strlen(part), &at_part);
    va_end(at_part.ap);
    va_end(args.ap);
}

/* ---- words ----------------------------------------------------------------------------------- */

#define WORD_CAP 128 /* candidates are names in hetviz's tables; longer words are never near */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edit distance with swaps of neighbours (optimal string alignment), three rolling rows. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][WORD_CAP + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++) {
        last[j] = j, before[j] = 0;
    }
    for (size_t i = 1; i <= na; i++) {
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t cost = lower(a[i - 1]) != lower(b[j - 1]);
            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]) && before[j - 2] + 1 < row[j]) {
                row[j] = before[j - 2] + 1;
            }
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[nb];
}

const char *hv_suggest(const char *word, const char *const *candidates, size_t n)
{
    size_t len = strlen(word), limit = len / 3 > 2 ? len / 3 : 2;
    const char *best = NULL;
    size_t best_d = limit + 1;
    for (size_t i = 0; i < n; i++) {
        size_t c = strlen(candidates[i]), gap = c > len ? c - len : len - c;
        if (gap > limit || c > WORD_CAP) {
            continue;
        }
        size_t d = distance(word, len, candidates[i], c);
        /* as many edits as letters: no letter in common */
        if (d < best_d && d < (c > len ? c : len)) {
            best = candidates[i];
            best_d = d;
        }
    }
    return best;
}
