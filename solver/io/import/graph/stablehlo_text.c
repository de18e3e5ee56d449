/* Words of StableHLO text: statements, names, lists of numbers, types. */
#include "solver/io/import/graph/stablehlo_text.h"

#include <ctype.h>
#include <string.h>

bool hv__span_is(struct hv__span s, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(s.end - s.at) == n && memcmp(s.at, text, n) == 0;
}

const char *hv__find_in(struct hv__span s, const char *text)
{
    size_t n = strlen(text);
    for (const char *c = s.at; (size_t)(s.end - c) >= n; c++) {
        if (memcmp(c, text, n) == 0) {
            return c;
        }
    }
    return NULL;
}

static struct hv__span strip(struct hv__span s)
{
    while (s.at < s.end && isspace((unsigned char)*s.at)) {
        s.at++;
    }
    while (s.at < s.end && isspace((unsigned char)s.end[-1])) {
        s.end--;
    }
    return s;
}

/* Behind a quoted text that begins at c. */
static const char *skip_quoted(const char *c, const char *end)
{
    for (c++; c < end && *c != '"'; c++) {
        c += *c == '\\' && c + 1 < end;
    }
    return c < end ? c + 1 : end;
}

/* End of the statement from c on: the first end of line with all brackets closed. */
static const char *statement_end(const char *c, const char *end)
{
    int depth = 0;
    while (c < end && !(*c == '\n' && depth <= 0)) {
        if (*c == '"') {
            c = skip_quoted(c, end);
            continue;
        }
        depth += *c == '(' || *c == '{' || *c == '[';
        depth -= *c == ')' || *c == '}' || *c == ']';
        c++;
    }
    return c;
}

/* The last " : " outside of brackets. */
static const char *type_mark(struct hv__span s)
{
    const char *found = NULL;
    int depth = 0;
    for (const char *c = s.at; c + 2 < s.end;) {
        if (*c == '"') {
            c = skip_quoted(c, s.end);
            continue;
        }
        depth += *c == '(' || *c == '{' || *c == '[';
        depth -= *c == ')' || *c == '}' || *c == ']';
        found = depth == 0 && memcmp(c, " : ", 3) == 0 ? c : found;
        c++;
    }
    return found;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$' || c == '-';
}

static void split(struct hv__span s, struct hv__statement *out)
{
    *out = (struct hv__statement){.result = {s.at, s.at}};
    if (*s.at == '%') {
        const char *equals = hv__find_in(s, " = ");
        const char *c = s.at + 1;
        while (c < s.end && is_name(*c)) {
            c++;
        }
        out->result = (struct hv__span){s.at, c};
        s.at = equals != NULL ? equals + 3 : s.end;
    }
    bool quoted = s.at < s.end && *s.at == '"';
    s.at += quoted;
    const char *c = s.at;
    while (c < s.end && is_name(*c)) {
        c++;
    }
    out->op = (struct hv__span){s.at, c};
    c += quoted && c < s.end && *c == '"';
    out->body = (struct hv__span){c, s.end};
    out->types = (struct hv__span){s.end, s.end};
    const char *mark = type_mark(out->body);
    if (mark != NULL) {
        out->types = (struct hv__span){mark + 3, s.end};
        out->body.end = mark;
        const char *arrow = hv__find_in(out->types, "->");
        out->types.at = arrow != NULL ? arrow + 2 : out->types.at;
    }
}

bool hv__next_statement(struct hv__span *rest, struct hv__statement *out)
{
    while (rest->at < rest->end) {
        const char *end = statement_end(rest->at, rest->end);
        struct hv__span s = strip((struct hv__span){rest->at, end});
        rest->at = end < rest->end ? end + 1 : end;
        if (s.at < s.end) {
            split(s, out);
            return true;
        }
    }
    return false;
}

size_t hv__value_names(struct hv__span s, struct hv__span *out)
{
    size_t n = 0;
    int regions = 0;
    for (const char *c = s.at; c < s.end && n < HV__HLO_VALUES;) {
        regions += *c == '{';
        regions -= *c == '}';
        if (*c != '%' || regions > 0) {
            c++;
            continue;
        }
        const char *first = c++;
        while (c < s.end && (is_name(*c) || *c == '#')) {
            c++;
        }
        out[n++] = (struct hv__span){first, c};
    }
    return n;
}

/* A whole number at *c; false where none begins here. */
static bool number_at(const char **c, const char *end, int64_t *out)
{
    const char *d = *c;
    bool minus = d < end && *d == '-';
    int64_t x = 0;
    d += minus;
    if (d == end || !isdigit((unsigned char)*d)) {
        return false;
    }
    for (; d < end && isdigit((unsigned char)*d) && x < (INT64_C(1) << 50); d++) {
        x = 10 * x + (*d - '0');
    }
    *out = minus ? -x : x;
    *c = d;
    return true;
}

int hv__numbers_after(struct hv__span s, const char *key, int64_t *out, int most)
{
    const char *c = hv__find_in(s, key);
    int n = 0, depth = 1;
    if (c == NULL) {
        return -1;
    }
    for (c += strlen(key); c < s.end && depth > 0 && n < most;) {
        if (number_at(&c, s.end, &out[n])) {
            n++;
            continue;
        }
        depth += *c == '[';
        depth -= *c == ']' || *c == '>';
        c++;
    }
    return n;
}

static const char *dtype_of(struct hv__span s)
{
    static const struct {
        const char *word, *dtype;
    } rows[] = {{"f32", "f32"},  {"f64", "f64"}, {"f16", "f16"},  {"bf16", "bf16"}, {"i1", "bool"},
                {"i8", "s8"},    {"ui8", "s8"},  {"i32", "s32"},  {"ui32", "s32"},  {"i64", "s64"},
                {"ui64", "s64"}, {"i16", "f16"}, {"ui16", "f16"}, {"i4", "s8"},     {"ui4", "s8"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (hv__span_is(s, rows[i].word)) {
            return rows[i].dtype;
        }
    }
    return s.at < s.end && s.at[0] == 'f' ? "f8" : "f64"; /* f8E4M3FN, …; complex<f32> is 8 bytes */
}

bool hv__next_type(struct hv__span *s, struct hv__tensor *t)
{
    const char *c = hv__find_in(*s, "tensor<");
    *t = (struct hv__tensor){.given = -1};
    if (c == NULL) {
        return false;
    }
    c += strlen("tensor<");
    while (t->n < HV__PROGRAM_DIMS) {
        const char *before = c;
        int64_t size = 0;
        if (!number_at(&c, s->end, &size) || c == s->end || *c != 'x') {
            c = before;
            break;
        }
        if (size < 1 || size > (INT64_C(1) << 40)) {
            return false;
        }
        t->size[t->n++] = size;
        c++;
    }
    struct hv__span word = {c, c};
    while (word.end < s->end && isalnum((unsigned char)*word.end)) {
        word.end++;
    }
    if (word.at == word.end || isdigit((unsigned char)*word.at)) { /* "?", or a ninth dimension */
        return false;
    }
    t->dtype = dtype_of(word);
    s->at = word.end;
    return true;
}
