/*
 * Checks of values at places: type, range, word, known keys. Each error message states what was
 * expected and what was found. Rules between several values are checked by the modules that read
 * the files.
 */
#include "solver/base/json/json_int.h"
#include "solver/base/units.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STRING_CAP 4096

/* Appends a short description of the value: `-2`, `"abc"`, `an array of 3`, `nothing`. */
static void describe(const json_t *v, struct hv_str *out)
{
    char d[HV_FMT_CAP];
    if (!v) {
        hv_str_adds(out, "nothing");
        return;
    }
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        hv_str_adds(out, json_object_size(v) ? "an object" : "an empty object");
        break;
    case JSON_ARRAY:
        if (json_array_size(v)) {
            hv_str_addf(out, "an array of %zu", json_array_size(v));
        } else {
            hv_str_adds(out, "an empty array");
        }
        break;
    case JSON_STRING:
        hv_str_addc(out, '"');
        hv__json_excerpt(out, json_string_value(v), json_string_length(v));
        hv_str_addc(out, '"');
        break;
    case JSON_INTEGER:
        hv_str_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        break;
    case JSON_REAL:
        hv_str_adds(out, hv_fmt_double(d, sizeof d, json_real_value(v)));
        break;
    case JSON_TRUE:
        hv_str_adds(out, "true");
        break;
    case JSON_FALSE:
        hv_str_adds(out, "false");
        break;
    case JSON_NULL:
        hv_str_adds(out, "null");
        break;
    }
}

enum hv_status hv_jp_expected(const struct hv_jp *p, struct hv_err *err, const char *what)
{
    struct hv_str found = {0};
    describe(p->v, &found);
    enum hv_status s = hv_jp_fail(p, err, "expected %s, found %s", what, hv_str_cstr(&found));
    hv_str_free(&found);
    return s;
}

static void add_words(struct hv_str *out, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(out, "%s\"%s\"", i ? ", " : "", words[i]);
    }
}

static enum hv_status unknown_key(const struct hv_jp *p, const char *key, const char *const *keys,
                                  size_t n, struct hv_err *err)
{
    struct hv_str t = {0};
    hv_jp_path(p, &t);
    hv_str_adds(&t, ": unknown key \"");
    hv__json_excerpt(&t, key, strlen(key));
    hv_str_addc(&t, '"');
    const char *near = hv_suggest(key, keys, n);
    if (near) {
        hv_str_addf(&t, ", did you mean \"%s\"?", near);
    } else {
        hv_str_adds(&t, n ? "; known keys: " : "; no keys are known here");
        add_words(&t, keys, n);
    }
    struct hv_jp member = hv_jp_get(p, key);
    size_t at = hv__json_locate(&member, true);
    unsigned line = 0, col = 0;
    if (at != SIZE_MAX) {
        hv__json_line_col(p->doc->text, at, &line, &col);
    }
    hv_err_at(err, HV_EINPUT, p->doc->name, line, col, "%s", hv_str_cstr(&t));
    hv_str_free(&t);
    return HV_EINPUT;
}

enum hv_status hv_jp_object(const struct hv_jp *p, const char *const *keys, size_t n,
                            struct hv_err *err)
{
    if (!json_is_object(p->v)) {
        return hv_jp_expected(p, err, "an object");
    }
    const char *key;
    json_t *v;
    json_object_foreach(p->v, key, v)
    {
        size_t i = 0;
        while (i < n && strcmp(key, keys[i]) != 0) {
            i++;
        }
        if (i == n && strncmp(key, "x-", 2) != 0) {
            return unknown_key(p, key, keys, n, err);
        }
    }
    return HV_OK;
}

enum hv_status hv_jp_array(const struct hv_jp *p, size_t *out_n, struct hv_err *err)
{
    if (!json_is_array(p->v)) {
        return hv_jp_expected(p, err, "an array");
    }
    *out_n = json_array_size(p->v);
    return HV_OK;
}

/* "a number from 0 to 1", "a whole number of at least 1", "a positive number". */
static void add_range(struct hv_str *out, const char *what, double lo, double hi)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    bool has_lo = lo > -DBL_MAX, has_hi = hi < DBL_MAX;
    hv_fmt_double(a, sizeof a, lo);
    hv_fmt_double(b, sizeof b, hi);
    bool above_zero = lo > 0 && lo < 1e-30; /* callers write DBL_MIN for an open end at 0 */
    hv_str_addf(out, "a %s", what);
    if (above_zero) {
        hv_str_addf(out, " above 0%s%s", has_hi ? " and at most " : "", has_hi ? b : "");
    } else if (has_lo && has_hi) {
        hv_str_addf(out, " from %s to %s", a, b);
    } else if (has_lo) {
        hv_str_addf(out, " of at least %s", a);
    } else if (has_hi) {
        hv_str_addf(out, " of at most %s", b);
    }
}

enum hv_status hv_jp_number(const struct hv_jp *p, double lo, double hi, double *out,
                            struct hv_err *err)
{
    double x = json_number_value(p->v);
    if (json_is_number(p->v) && isfinite(x) && x >= lo && x <= hi) {
        *out = x;
        return HV_OK;
    }
    struct hv_str what = {0};
    add_range(&what, "number", lo, hi);
    enum hv_status s = hv_jp_expected(p, err, hv_str_cstr(&what));
    hv_str_free(&what);
    return s;
}

/* Converts the value to a whole number; false where it is not one. */
static bool whole(const json_t *v, int64_t *out)
{
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return true;
    }
    double x = json_real_value(v);
    if (!json_is_real(v) || !(x >= -9223372036854775808.0 && x < 9223372036854775808.0) ||
        x != floor(x)) {
        return false;
    }
    *out = (int64_t)x;
    return true;
}

enum hv_status hv_jp_int(const struct hv_jp *p, int64_t lo, int64_t hi, int64_t *out,
                         struct hv_err *err)
{
    int64_t x = 0;
    if (whole(p->v, &x) && x >= lo && x <= hi) {
        *out = x;
        return HV_OK;
    }
    char what[128];
    if (lo == INT64_MIN && hi == INT64_MAX) {
        snprintf(what, sizeof what, "a whole number");
    } else if (hi == INT64_MAX) {
        snprintf(what, sizeof what, "a whole number of at least %" PRId64, lo);
    } else if (lo == INT64_MIN) {
        snprintf(what, sizeof what, "a whole number of at most %" PRId64, hi);
    } else {
        snprintf(what, sizeof what, "a whole number from %" PRId64 " to %" PRId64, lo, hi);
    }
    return hv_jp_expected(p, err, what);
}

enum hv_status hv_jp_bool(const struct hv_jp *p, bool *out, struct hv_err *err)
{
    if (!json_is_boolean(p->v)) {
        return hv_jp_expected(p, err, "true or false");
    }
    *out = json_is_true(p->v);
    return HV_OK;
}

enum hv_status hv_jp_string(const struct hv_jp *p, const char **out, struct hv_err *err)
{
    size_t n = json_string_length(p->v);
    if (!json_is_string(p->v)) {
        return hv_jp_expected(p, err, "a string");
    }
    if (n == 0) {
        return hv_jp_fail(p, err, "expected a string that is not empty, found \"\"");
    }
    if (n > STRING_CAP) {
        return hv_jp_fail(p, err, "expected a string of at most %d bytes, found one of %zu",
                          STRING_CAP, n);
    }
    *out = json_string_value(p->v);
    return HV_OK;
}

enum hv_status hv_jp_word(const struct hv_jp *p, const char *const *words, size_t n, int *out,
                          struct hv_err *err)
{
    const char *s = json_string_value(p->v);
    for (size_t i = 0; s && i < n; i++) {
        if (strcmp(s, words[i]) == 0) {
            *out = (int)i;
            return HV_OK;
        }
    }
    struct hv_str what = {0}, found = {0};
    hv_str_adds(&what, n > 1 ? "one of " : "");
    add_words(&what, words, n);
    describe(p->v, &found);
    const char *near = s ? hv_suggest(s, words, n) : NULL;
    hv_jp_fail(p, err, "expected %s, found %s%s%s%s", hv_str_cstr(&what), hv_str_cstr(&found),
               near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    hv_str_free(&what);
    hv_str_free(&found);
    return HV_EINPUT;
}

enum hv_status hv_jp_opt_number(const struct hv_jp *p, const char *key, double lo, double hi,
                                double *out, struct hv_err *err)
{
    struct hv_jp q = hv_jp_get(p, key);
    return hv_jp_none(&q) ? HV_OK : hv_jp_number(&q, lo, hi, out, err);
}

enum hv_status hv_jp_opt_int(const struct hv_jp *p, const char *key, int64_t lo, int64_t hi,
                             int64_t *out, struct hv_err *err)
{
    struct hv_jp q = hv_jp_get(p, key);
    return hv_jp_none(&q) ? HV_OK : hv_jp_int(&q, lo, hi, out, err);
}

enum hv_status hv_jp_opt_bool(const struct hv_jp *p, const char *key, bool *out, struct hv_err *err)
{
    struct hv_jp q = hv_jp_get(p, key);
    return hv_jp_none(&q) ? HV_OK : hv_jp_bool(&q, out, err);
}

enum hv_status hv_jp_opt_string(const struct hv_jp *p, const char *key, const char **out,
                                struct hv_err *err)
{
    struct hv_jp q = hv_jp_get(p, key);
    return hv_jp_none(&q) ? HV_OK : hv_jp_string(&q, out, err);
}

enum hv_status hv_jp_opt_word(const struct hv_jp *p, const char *key, const char *const *words,
                              size_t n, int *out, struct hv_err *err)
{
    struct hv_jp q = hv_jp_get(p, key);
    return hv_jp_none(&q) ? HV_OK : hv_jp_word(&q, words, n, out, err);
}

enum hv_status hv_jp_need(const struct hv_jp *p, const char *key, const char *what,
                          struct hv_jp *out, struct hv_err *err)
{
    if (!json_is_object(p->v)) {
        return hv_jp_expected(p, err, "an object");
    }
    *out = hv_jp_get(p, key);
    if (!out->v) {
        return hv_jp_fail(p, err, "missing key \"%s\", expected %s", key, what);
    }
    return HV_OK;
}

/* "hetviz.cluster/1" and "hetviz.cluster/2": same kind, another version. */
static bool same_kind(const char *a, const char *b)
{
    size_t n = strcspn(a, "/");
    return a[n] == '/' && strncmp(a, b, n + 1) == 0;
}

enum hv_status hv_jp_format(const struct hv_jp *root, const char *format, struct hv_err *err)
{
    char what[160];
    if (!json_is_object(root->v)) {
        return hv_jp_expected(root, err, "an object");
    }
    struct hv_jp p = hv_jp_get(root, "format");
    if (!p.v) {
        return hv_jp_fail(root, err,
                          "missing key \"format\", expected \"format\": \"%s\" as the "
                          "first member",
                          format);
    }
    const char *s = json_string_value(p.v);
    snprintf(what, sizeof what, "\"%s\"", format);
    if (!s) {
        return hv_jp_expected(&p, err, what);
    }
    if (strcmp(s, format) != 0) {
        if (!same_kind(format, s)) {
            return hv_jp_expected(&p, err, what);
        }
        struct hv_str found = {0};
        describe(p.v, &found);
        hv_jp_fail(&p, err, "expected %s, found %s: a version this program does not know", what,
                   hv_str_cstr(&found));
        hv_str_free(&found);
        return HV_EINPUT;
    }
    if (strcmp(json_object_iter_key(json_object_iter(root->v)), "format") != 0) {
        return hv_jp_fail(&p, err, "\"format\" must be the first member of the file");
    }
    return HV_OK;
}
