/*
 * Fast reader of the subset of JSON that most files use: plain keys, strings with the short
 * escapes, numbers. Texts outside the subset, and all texts with errors, are parsed by jansson,
 * which also reports the errors.
 */
#include "solver/base/json/json_int.h"

#include "solver/base/str.h"
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Longest key and longest number that the fast reader accepts, bytes. */
#define TOKEN_MAX 255
/* A whole number of this many digits fits into 64 bits. */
#define DIGITS_MAX 18
/* Powers of ten up to this exponent, and whole numbers up to 2^53, are exact as doubles. */
#define POWER_MAX 22
#define EXACT_MAX (UINT64_C(1) << 53)

/* The text ends with a NUL byte behind its last one. */
struct scan {
    const char *at;
    struct hv_str scratch; /* buffer for a string with its escapes decoded */
};

static void skip_blanks(struct scan *s)
{
    while (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r') {
        s->at++;
    }
}

/* Byte that the character after a backslash encodes; 0: outside the subset. */
static char unescaped(char c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *p = c != '\0' ? strchr(from, c) : NULL;
    return (char)(p ? to[p - from] : '\0');
}

/* Advances to the next byte that ends the string or has to be decoded or rejected. */
static void skip_plain(struct scan *s)
{
    while ((unsigned char)*s->at >= ' ' && *s->at != '"' && *s->at != '\\') {
        s->at++;
    }
}

/* Reads the string after its opening quotation mark. jansson checks that it is UTF-8. */
static json_t *read_string(struct scan *s)
{
    const char *from = s->at;
    skip_plain(s);
    if (*s->at == '"') {
        return json_stringn(from, (size_t)(s->at++ - from));
    }
    hv_str_clear(&s->scratch);
    while (*s->at == '\\') {
        char c = unescaped(s->at[1]);
        if (!c) {
            return NULL;
        }
        hv_str_add(&s->scratch, from, (size_t)(s->at - from));
        hv_str_addc(&s->scratch, c);
        from = s->at += 2;
        skip_plain(s);
    }
    hv_str_add(&s->scratch, from, (size_t)(s->at - from));
    return *s->at == '"' && s->at++ ? json_stringn(hv_str_cstr(&s->scratch), s->scratch.n) : NULL;
}

/* A partly read number: its digits without the point, and the power of ten that scales them. */
struct number {
    uint64_t digits;
    int n_digits, power;
    bool is_real;
};

/* Reads a run of digits; false when there are none or too many. */
static bool read_digits(struct scan *s, struct number *n)
{
    const char *from = s->at;
    for (; *s->at >= '0' && *s->at <= '9'; s->at++) {
        n->digits = n->digits * 10 + (uint64_t)(*s->at - '0');
        n->n_digits++;
    }
    return s->at > from && s->at - from <= TOKEN_MAX;
}

static bool read_exponent(struct scan *s, struct number *n)
{
    struct number e = {0};
    s->at++;
    bool negative = *s->at == '-';
    if (*s->at == '-' || *s->at == '+') {
        s->at++;
    }
    if (!read_digits(s, &e) || e.n_digits > 4) {
        return false;
    }
    n->power += negative ? -(int)e.digits : (int)e.digits;
    n->is_real = true;
    return true;
}

/* One operation on two exact doubles is rounded once, so it gives the nearest (Clinger 1990, "How
 * to read floating point numbers accurately"). */
static bool is_exact(const struct number *n)
{
    return FLT_EVAL_METHOD == 0 && n->n_digits <= DIGITS_MAX && n->digits <= EXACT_MAX &&
           abs(n->power) <= POWER_MAX;
}

static double exact_value(const struct number *n)
{
    static const double powers[POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double x = (double)n->digits;
    return n->power < 0 ? x / powers[-n->power] : x * powers[n->power];
}

static json_t *make_real(const char *from, const char *to, const struct number *n)
{
    if (is_exact(n)) {
        return json_real(*from == '-' ? -exact_value(n) : exact_value(n));
    }
    char text[TOKEN_MAX + 1], *end = NULL;
    size_t length = (size_t)(to - from);
    if (length > TOKEN_MAX || strcmp(localeconv()->decimal_point, ".") != 0) {
        return NULL;
    }
    memcpy(text, from, length);
    text[length] = '\0';
    double x = strtod(text, &end);
    return end == text + length && isfinite(x) ? json_real(x) : NULL;
}

static json_t *read_number(struct scan *s)
{
    const char *from = s->at;
    struct number n = {0};
    s->at += *s->at == '-';
    if (*s->at == '0' && s->at[1] >= '0' && s->at[1] <= '9') {
        return NULL;
    }
    bool ok = read_digits(s, &n);
    if (ok && *s->at == '.') {
        int before = n.n_digits;
        s->at++;
        ok = read_digits(s, &n);
        n.power = before - n.n_digits;
        n.is_real = true;
    }
    if (ok && (*s->at == 'e' || *s->at == 'E')) {
        ok = read_exponent(s, &n);
    }
    if (!ok || (!n.is_real && n.n_digits > DIGITS_MAX)) {
        return NULL;
    }
    if (n.is_real) {
        return make_real(from, s->at, &n);
    }
    return json_integer(*from == '-' ? -(json_int_t)n.digits : (json_int_t)n.digits);
}

static json_t *read_value(struct scan *s, unsigned depth);

/* Adds a member to the object; false when the key is not plain or is a duplicate. Takes the
 * reference to the value. */
static bool put_member(json_t *object, const char *key, size_t n, json_t *value)
{
    char name[TOKEN_MAX + 1];
    size_t before = json_object_size(object);
    if (n == 0 || n > TOKEN_MAX) {
        json_decref(value);
        return false;
    }
    memcpy(name, key, n);
    name[n] = '\0';
    return json_object_set_new(object, name, value) == 0 && json_object_size(object) == before + 1;
}

/* The members after the opening brace; false: outside the subset. */
static bool read_members(struct scan *s, json_t *object, unsigned depth)
{
    skip_blanks(s);
    if (*s->at == '}') {
        return s->at++;
    }
    for (;;) {
        if (*s->at != '"') {
            return false;
        }
        const char *key = ++s->at;
        skip_plain(s);
        size_t n = (size_t)(s->at - key);
        if (*s->at != '"') {
            return false;
        }
        s->at++;
        skip_blanks(s);
        if (*s->at++ != ':') {
            return false;
        }
        json_t *value = read_value(s, depth + 1);
        if (!value || !put_member(object, key, n, value)) {
            return false;
        }
        skip_blanks(s);
        if (*s->at != ',') {
            return *s->at++ == '}';
        }
        s->at++;
        skip_blanks(s);
    }
}

static bool read_elements(struct scan *s, json_t *array, unsigned depth)
{
    skip_blanks(s);
    if (*s->at == ']') {
        return s->at++;
    }
    for (;;) {
        json_t *value = read_value(s, depth + 1);
        if (!value || json_array_append_new(array, value) != 0) {
            return false;
        }
        skip_blanks(s);
        if (*s->at != ',') {
            return *s->at++ == ']';
        }
        s->at++;
    }
}

static json_t *read_container(struct scan *s, unsigned depth)
{
    bool is_object = *s->at++ == '{';
    if (depth >= HV__JSON_DEPTH) {
        return NULL;
    }
    json_t *v = is_object ? json_object() : json_array();
    if (is_object ? read_members(s, v, depth) : read_elements(s, v, depth)) {
        return v;
    }
    json_decref(v);
    return NULL;
}

static json_t *read_word(struct scan *s, const char *word, json_t *value)
{
    size_t n = strlen(word);
    bool is_it = strncmp(s->at, word, n) == 0;
    s->at += is_it ? n : 0;
    return is_it ? value : NULL;
}

/* Recursion is bounded by HV__JSON_DEPTH. */
static json_t *read_value(struct scan *s, unsigned depth)
{
    skip_blanks(s);
    switch (*s->at) {
    case '{':
    case '[':
        return read_container(s, depth);
    case '"':
        s->at++;
        return read_string(s);
    case 't':
        return read_word(s, "true", json_true());
    case 'f':
        return read_word(s, "false", json_false());
    case 'n':
        return read_word(s, "null", json_null());
    default:
        return read_number(s);
    }
}

json_t *hv__json_fast(const char *text, size_t n)
{
    struct scan s = {.at = text};
    json_t *root = read_value(&s, 0);
    hv_str_free(&s.scratch);
    if (root) { /* else it may be behind the end of the text */
        skip_blanks(&s);
    }
    if (root && s.at == text + n) {
        return root;
    }
    json_decref(root);
    return NULL;
}
