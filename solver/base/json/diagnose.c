/*
 * Syntax errors in JSON: finds the first mistake by our own grammar (RFC 8259 plus our limits) and
 * reports what was found and what was expected. Runs only after jansson has rejected the text.
 * Iterative: the open brackets are a fixed array as deep as the nesting limit.
 */
#include "solver/base/json/json_int.h"
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

struct diag {
    const char *s, *name;
    size_t n, i, dup_end;
    struct hv_err *err;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '+' || c == '-';
}

static enum hv_status mistake(const struct diag *d, size_t at, const char *text)
{
    unsigned line, col;
    hv__json_line_col(d->s, at, &line, &col);
    return hv_err_at(d->err, HV_EINPUT, d->name, line, col, "%s", text);
}

/* Hints for syntax of JavaScript, Python or JSON5 that JSON does not have. */
static const char *hint_for(const char *s, size_t n, const char *expected)
{
    if (s[0] == '\'') {
        return "; strings and keys stand in double quotes";
    }
    if (s[0] == '/' || s[0] == '#') {
        return "; JSON has no comments";
    }
    if ((s[0] == ']' || s[0] == '}') && strstr(expected, "after the comma")) {
        return "; no comma before a closing bracket";
    }
    if (n == 3 && memcmp(s, "NaN", 3) == 0) {
        return "; write null for a number nobody knows";
    }
    if ((n == 4 && memcmp(s, "None", 4) == 0) || (n == 9 && memcmp(s, "undefined", 9) == 0)) {
        return "; write null";
    }
    if ((n == 4 && memcmp(s, "True", 4) == 0) || (n == 5 && memcmp(s, "False", 5) == 0)) {
        return "; write true and false in small letters";
    }
    return "";
}

static enum hv_status unexpected(const struct diag *d, const char *expected)
{
    struct hv_str t = {0};
    if (d->i >= d->n) {
        hv_str_addf(&t, "expected %s, but the text ends here: is the file cut off?", expected);
    } else {
        const char *s = d->s + d->i;
        size_t left = d->n - d->i, k = 0;
        while (k < left && k < 40 && is_word(s[k])) {
            k++;
        }
        hv_str_addf(&t, "expected %s, found ", expected);
        utf8proc_int32_t c;
        if (k == 0) {
            utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)s,
                                                    left > 4 ? 4 : (utf8proc_ssize_t)left, &c);
            k = len > 0 ? (size_t)len : 1;
        }
        if (s[0] == '"') {
            hv_str_adds(&t, "a string");
        } else {
            hv_str_addc(&t, '\'');
            hv__json_excerpt(&t, s, k);
            hv_str_addc(&t, '\'');
        }
        hv_str_adds(&t, hint_for(s, k, expected));
    }
    enum hv_status s = mistake(d, d->i, hv_str_cstr(&t));
    hv_str_free(&t);
    return s;
}

static enum hv_status cut_string(const struct diag *d)
{
    return mistake(d, d->n, "the text ends inside a string: is the file cut off?");
}

/* Four hexadecimal digits at `at`, or -1. */
static long hex4(const struct diag *d, size_t at)
{
    if (at + 4 > d->n) {
        return -1;
    }
    char digits[5] = {0}, *end;
    memcpy(digits, d->s + at, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4) {
        return -1;
    }
    return strtol(digits, &end, 16);
}

/* Checks the escape at d->i and moves behind it. */
static enum hv_status diag_escape(struct diag *d)
{
    if (d->i + 1 >= d->n) {
        return cut_string(d);
    }
    char c = d->s[d->i + 1];
    if (c == '\0' || !strchr("\"\\/bfnrtu", c)) {
        return mistake(d, d->i, "unknown escape in a string: a backslash itself is written \\\\");
    }
    if (c != 'u') {
        d->i += 2;
        return HV_OK;
    }
    if (d->i + 6 > d->n) {
        return cut_string(d);
    }
    long x = hex4(d, d->i + 2);
    if (x < 0) {
        return mistake(d, d->i, "\\u needs four hexadecimal digits");
    }
    if (x == 0) {
        return mistake(d, d->i, "\\u0000 (a NUL character) is not allowed in strings");
    }
    size_t len = 6;
    if (x >= 0xD800 && x < 0xE000) {
        bool pair = x < 0xDC00 && d->i + 8 <= d->n && memcmp(d->s + d->i + 6, "\\u", 2) == 0;
        long y = pair ? hex4(d, d->i + 8) : -1;
        if (y < 0xDC00 || y >= 0xE000) {
            return mistake(d, d->i, "half of a \\u surrogate pair without its other half");
        }
        len = 12;
    }
    d->i += len;
    return HV_OK;
}

static enum hv_status diag_string(struct diag *d)
{
    d->i++;
    while (d->i < d->n && d->s[d->i] != '"') {
        unsigned char c = (unsigned char)d->s[d->i];
        if (c == '\\') {
            enum hv_status s = diag_escape(d);
            if (s != HV_OK) {
                return s;
            }
            continue;
        }
        if (c == '\n' || c == '\r') {
            return mistake(d, d->i, "a line ends inside a string: is the closing \" missing?");
        }
        if (c < 0x20) {
            return mistake(d, d->i, "raw control character in a string: write it as an escape");
        }
        size_t left = d->n - d->i;
        utf8proc_int32_t x;
        utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)d->s + d->i,
                                                left > 4 ? 4 : (utf8proc_ssize_t)left, &x);
        if (len <= 0) {
            return mistake(d, d->i, "not UTF-8: save the file in UTF-8 encoding");
        }
        d->i += (size_t)len;
    }
    if (d->i >= d->n) {
        return cut_string(d);
    }
    d->i++;
    return HV_OK;
}

static void skip_digits(struct diag *d)
{
    while (d->i < d->n && is_digit(d->s[d->i])) {
        d->i++;
    }
}

static enum hv_status check_range(const struct diag *d, size_t start, bool real)
{
    size_t len = d->i - start;
    struct hv_str t = {0};
    hv_str_add(&t, d->s + start, len);
    errno = 0;
    bool over = real ? isinf(strtod(t.p, NULL)) : (strtoll(t.p, NULL, 10), errno == ERANGE);
    hv_str_free(&t);
    if (!over) {
        return HV_OK;
    }
    return mistake(d, start,
                   real ? "this number is too large (the largest is about 1.8e308)"
                        : "this whole number is too large (the largest is "
                          "9223372036854775807); write it with an exponent, as 1e19");
}

static enum hv_status diag_number(struct diag *d)
{
    size_t start = d->i;
    bool real = false;
    if (d->s[d->i] == '-') {
        d->i++;
    }
    if (d->i >= d->n || !is_digit(d->s[d->i])) {
        return unexpected(d, "a digit");
    }
    if (d->s[d->i] == '0' && d->i + 1 < d->n && is_digit(d->s[d->i + 1])) {
        return mistake(d, d->i, "a number must not start with a superfluous 0");
    }
    skip_digits(d);
    if (d->i < d->n && d->s[d->i] == '.') {
        real = true;
        d->i++;
        if (d->i >= d->n || !is_digit(d->s[d->i])) {
            return unexpected(d, "a digit after the decimal point");
        }
        skip_digits(d);
    }
    if (d->i < d->n && (d->s[d->i] == 'e' || d->s[d->i] == 'E')) {
        real = true;
        d->i++;
        if (d->i < d->n && (d->s[d->i] == '+' || d->s[d->i] == '-')) {
            d->i++;
        }
        if (d->i >= d->n || !is_digit(d->s[d->i])) {
            return unexpected(d, "a digit of the exponent");
        }
        skip_digits(d);
    }
    return check_range(d, start, real);
}

static enum hv_status diag_literal(struct diag *d, const char *expected)
{
    static const char *const words[] = {"true", "false", "null"};
    size_t left = d->n - d->i, k = 0;
    while (k < left && is_word(d->s[d->i + k])) {
        k++;
    }
    for (size_t w = 0; w < HV_COUNT(words); w++) {
        size_t len = strlen(words[w]);
        if (k == len && memcmp(d->s + d->i, words[w], len) == 0) {
            d->i += len;
            return HV_OK;
        }
        if (k == left && k > 0 && k < len && memcmp(d->s + d->i, words[w], k) == 0) {
            d->i = d->n;
            return unexpected(d, "the rest of a word");
        }
    }
    return unexpected(d, expected);
}

static enum hv_status diag_scalar(struct diag *d, const char *expected)
{
    char c = d->s[d->i];
    if (c == '"') {
        return diag_string(d);
    }
    if (c == '-' || is_digit(c)) {
        return diag_number(d);
    }
    return diag_literal(d, expected);
}

static enum hv_status diag_key(struct diag *d, const char *expected)
{
    if (d->i >= d->n || d->s[d->i] != '"') {
        return unexpected(d, expected);
    }
    size_t start = d->i;
    enum hv_status s = diag_string(d);
    if (s != HV_OK) {
        return s;
    }
    if (d->i - start == 2) {
        return mistake(d, start, "a key must not be empty");
    }
    if (d->i != d->dup_end) {
        return HV_OK;
    }
    struct hv_str t = {0};
    hv_str_adds(&t, "the key \"");
    hv__json_excerpt(&t, d->s + start + 1, d->i - start - 2);
    hv_str_adds(&t, "\" stands twice in this object: remove one of them");
    s = mistake(d, start, hv_str_cstr(&t));
    hv_str_free(&t);
    return s;
}

/* The tokens that are allowed next. */
enum want {
    WANT_VALUE,
    WANT_FIRST_VALUE,
    WANT_NEXT_VALUE,
    WANT_FIRST_KEY,
    WANT_NEXT_KEY,
    WANT_SEP
};

struct nest {
    char open[HV__JSON_DEPTH];
    size_t n;
};

/* A value starts at d->i: opens a container or reads a scalar. */
static enum hv_status diag_value(struct diag *d, struct nest *nest, enum want *want)
{
    const char *expected = *want == WANT_FIRST_VALUE  ? "a value or ']'"
                           : *want == WANT_NEXT_VALUE ? "a value after the comma"
                                                      : "a value";
    if (d->i >= d->n) {
        return unexpected(d, expected);
    }
    char c = d->s[d->i];
    if (c != '[' && c != '{') {
        *want = WANT_SEP;
        return diag_scalar(d, expected);
    }
    if (nest->n == HV__JSON_DEPTH) {
        char text[80];
        snprintf(text, sizeof text, "nested more than %d levels deep", HV__JSON_DEPTH);
        return mistake(d, d->i, text);
    }
    nest->open[nest->n++] = c;
    d->i++;
    *want = c == '[' ? WANT_FIRST_VALUE : WANT_FIRST_KEY;
    return HV_OK;
}

static enum hv_status diag_member(struct diag *d, enum want *want)
{
    enum hv_status s = diag_key(d, *want == WANT_FIRST_KEY ? "a key in double quotes or '}'"
                                                           : "a key after the comma");
    if (s != HV_OK) {
        return s;
    }
    while (d->i < d->n && is_space(d->s[d->i])) {
        d->i++;
    }
    if (d->i >= d->n || d->s[d->i] != ':') {
        return unexpected(d, "':' after the key");
    }
    d->i++;
    *want = WANT_VALUE;
    return HV_OK;
}

/* After a value inside a container: a comma. */
static enum hv_status diag_separator(struct diag *d, const struct nest *nest, enum want *want)
{
    bool array = nest->open[nest->n - 1] == '[';
    if (d->i >= d->n || d->s[d->i] != ',') {
        return unexpected(d, array ? "',' or ']'" : "',' or '}'");
    }
    d->i++;
    *want = array ? WANT_NEXT_VALUE : WANT_NEXT_KEY;
    return HV_OK;
}

static enum hv_status diag_step(struct diag *d, struct nest *nest, enum want *want)
{
    char close = nest->n == 0 ? '\0' : nest->open[nest->n - 1] == '[' ? ']' : '}';
    bool may_close = *want == WANT_SEP || *want == WANT_FIRST_VALUE || *want == WANT_FIRST_KEY;
    if (may_close && close && d->i < d->n && d->s[d->i] == close) {
        d->i++;
        nest->n--;
        *want = WANT_SEP;
        return HV_OK;
    }
    switch (*want) {
    case WANT_VALUE:
    case WANT_FIRST_VALUE:
    case WANT_NEXT_VALUE:
        return diag_value(d, nest, want);
    case WANT_FIRST_KEY:
    case WANT_NEXT_KEY:
        return diag_member(d, want);
    case WANT_SEP:
        return diag_separator(d, nest, want);
    }
    return HV_OK;
}

enum hv_status hv__json_diagnose(const char *text, size_t n, const char *name, size_t dup_end,
                                 struct hv_err *err)
{
    struct diag d = {.s = text, .name = name, .n = n, .dup_end = dup_end, .err = err};
    struct nest nest = {.n = 0};
    enum want want = WANT_VALUE;
    if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        return mistake(&d, 0, "starts with a byte order mark: save the file as UTF-8 without BOM");
    }
    do {
        while (d.i < n && is_space(text[d.i])) {
            d.i++;
        }
        if (d.i >= n && nest.n == 0) {
            return mistake(&d, 0, "the text is empty, expected a JSON value");
        }
        enum hv_status s = diag_step(&d, &nest, &want);
        if (s != HV_OK) {
            return s;
        }
    } while (nest.n > 0 || want != WANT_SEP);
    while (d.i < n && is_space(text[d.i])) {
        d.i++;
    }
    return d.i < n ? unexpected(&d, "nothing more after the end of the value") : HV_OK;
}
