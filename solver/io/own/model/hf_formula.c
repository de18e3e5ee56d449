/* Evaluates formulas on the members of a config while it reads them, without a tree. */
#include "solver/io/own/model/hf_formula.h"
#include "solver/base/attr.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 4

struct reader {
    const char *at, *end;
    hv__name_fn *names;
    void *ctx;
    bool broken;
};

static const struct hv__value missing = {.kind = HV__MISSING};

struct hv__value hv__value_number(double x)
{
    return isfinite(x) ? (struct hv__value){.kind = HV__NUMBER, .x = x} : missing;
}

struct hv__value hv__value_of(json_t *v)
{
    if (json_is_number(v)) {
        return hv__value_number(json_number_value(v));
    }
    if (json_is_boolean(v)) {
        return hv__value_number(json_is_true(v));
    }
    if (json_is_string(v)) {
        return (struct hv__value){
            .kind = HV__TEXT, .text = json_string_value(v), .n = json_string_length(v)};
    }
    bool tree = json_is_array(v) || json_is_object(v);
    return tree ? (struct hv__value){.kind = HV__TREE, .tree = v} : missing;
}

bool hv__value_true(struct hv__value v)
{
    switch (v.kind) {
    case HV__NUMBER:
        return v.x != 0;
    case HV__TEXT:
        return v.n > 0;
    case HV__TREE:
        return json_array_size(v.tree) + json_object_size(v.tree) > 0;
    case HV__MISSING:
        break;
    }
    return false;
}

static bool same_text(struct hv__value a, struct hv__value b)
{
    return a.n == b.n && memcmp(a.text, b.text, a.n) == 0;
}

bool hv__value_is(struct hv__value v, const char *text)
{
    return v.kind == HV__TEXT && v.n == strlen(text) && memcmp(v.text, text, v.n) == 0;
}

static bool same(struct hv__value a, struct hv__value b)
{
    return a.kind == b.kind && (a.kind == HV__NUMBER ? a.x == b.x
                                : a.kind == HV__TEXT ? same_text(a, b)
                                                     : false);
}

/* ---- functions: each gets its arguments, as many as its row in the table says ------------------
 */

static bool is_number(struct hv__value v)
{
    return v.kind == HV__NUMBER;
}

static struct hv__value element(struct hv__value list, double n)
{
    bool good = list.kind == HV__TREE && n >= 0 && n < (double)json_array_size(list.tree);
    return good ? hv__value_of(json_array_get(list.tree, (size_t)n)) : missing;
}

static size_t size_of(struct hv__value list)
{
    return json_array_size(list.kind == HV__TREE ? list.tree : NULL);
}

static struct hv__value f_if(const struct hv__value *a)
{
    return hv__value_true(a[0]) ? a[1] : a[2];
}

static struct hv__value f_has(const struct hv__value *a)
{
    return hv__value_number(a[0].kind != HV__MISSING);
}

static struct hv__value f_max(const struct hv__value *a)
{
    return is_number(a[0]) && is_number(a[1]) ? hv__value_number(fmax(a[0].x, a[1].x)) : missing;
}

static struct hv__value f_min(const struct hv__value *a)
{
    return is_number(a[0]) && is_number(a[1]) ? hv__value_number(fmin(a[0].x, a[1].x)) : missing;
}

static struct hv__value f_floor(const struct hv__value *a)
{
    return is_number(a[0]) ? hv__value_number(floor(a[0].x)) : missing;
}

static struct hv__value f_ceil(const struct hv__value *a)
{
    return is_number(a[0]) ? hv__value_number(ceil(a[0].x)) : missing;
}

static struct hv__value f_round(const struct hv__value *a)
{
    return is_number(a[0]) ? hv__value_number(round(a[0].x)) : missing;
}

static struct hv__value f_up(const struct hv__value *a)
{
    bool good = is_number(a[0]) && is_number(a[1]) && a[1].x > 0;
    return good ? hv__value_number(ceil(a[0].x / a[1].x) * a[1].x) : missing;
}

static struct hv__value f_in(const struct hv__value *a)
{
    for (size_t i = 0; i < size_of(a[0]); i++) {
        if (same(hv__value_of(json_array_get(a[0].tree, i)), a[1])) {
            return hv__value_number(1);
        }
    }
    return hv__value_number(0);
}

/* The place of the n-th element that is x, or the length where there are fewer. */
static struct hv__value f_nth(const struct hv__value *a)
{
    double left = is_number(a[2]) ? a[2].x : 0;
    for (size_t i = 0; i < size_of(a[0]); i++) {
        left -= same(hv__value_of(json_array_get(a[0].tree, i)), a[1]);
        if (left < 0) {
            return hv__value_number((double)i);
        }
    }
    return is_number(a[2]) ? hv__value_number((double)size_of(a[0])) : missing;
}

static struct hv__value f_len(const struct hv__value *a)
{
    return a[0].kind == HV__TREE   ? hv__value_number((double)size_of(a[0]))
           : a[0].kind == HV__TEXT ? hv__value_number((double)a[0].n)
                                   : missing;
}

static struct hv__value f_part(const struct hv__value *a)
{
    bool texts = a[0].kind == HV__TEXT && a[1].kind == HV__TEXT, found = false;
    for (size_t i = 0; texts && i + a[1].n <= a[0].n; i++) {
        found = found || memcmp(a[0].text + i, a[1].text, a[1].n) == 0;
    }
    return hv__value_number(found);
}

static struct hv__value f_at(const struct hv__value *a)
{
    bool good = a[0].kind == HV__TEXT && is_number(a[1]) && a[1].x >= 0 && a[1].x < (double)a[0].n;
    return good ? (struct hv__value){.kind = HV__TEXT, .text = a[0].text + (size_t)a[1].x, .n = 1}
                : missing;
}

static struct hv__value f_repeat(const struct hv__value *a)
{
    bool good = size_of(a[0]) > 0 && is_number(a[1]);
    return good ? element(a[0], fmod(a[1].x, (double)size_of(a[0]))) : missing;
}

/* The member whose name is the number, with any zeros before it ("05"). */
static struct hv__value f_row(const struct hv__value *a)
{
    json_t *o = a[0].kind == HV__TREE ? a[0].tree : NULL;
    for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
        const char *key = json_object_iter_key(it);
        char *end;
        double n = strtod(key, &end);
        if (isdigit((unsigned char)*key) && *end == '\0' && is_number(a[1]) && n == a[1].x) {
            return hv__value_of(json_object_iter_value(it));
        }
    }
    return missing;
}

static struct hv__value f_get(const struct hv__value *a)
{
    json_t *o = a[0].kind == HV__TREE ? a[0].tree : NULL;
    for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
        if (hv__value_is(a[1], json_object_iter_key(it))) {
            return hv__value_of(json_object_iter_value(it));
        }
    }
    return missing;
}

static const struct {
    const char *name;
    size_t arguments;
    struct hv__value (*call)(const struct hv__value *arguments);
} functions[] = {
    {"if", 3, f_if},       {"has", 1, f_has},       {"max", 2, f_max},     {"min", 2, f_min},
    {"floor", 1, f_floor}, {"ceil", 1, f_ceil},     {"round", 1, f_round}, {"up", 2, f_up},
    {"in", 2, f_in},       {"nth", 3, f_nth},       {"len", 1, f_len},     {"part", 2, f_part},
    {"at", 2, f_at},       {"repeat", 2, f_repeat}, {"row", 2, f_row},     {"get", 2, f_get}};

/* ---- grammar ----------------------------------------------------------------------------------
 */

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at)) {
        r->at++;
    }
}

/* Takes a sign where it comes next. */
static bool take(struct reader *r, const char *sign)
{
    size_t n = strlen(sign);
    skip_blanks(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, sign, n) != 0) {
        return false;
    }
    r->at += n;
    return true;
}

static struct hv__value expression(struct reader *r);

static struct hv__value function_call(struct reader *r, const char *name, size_t n)
{
    struct hv__value arguments[MAX_ARGUMENTS] = {0};
    size_t count = 0;
    do {
        arguments[count++] = expression(r);
    } while (take(r, ",") && count < MAX_ARGUMENTS);
    r->broken = r->broken || !take(r, ")");
    for (size_t f = 0; f < HV_COUNT(functions); f++) {
        if (strlen(functions[f].name) == n && memcmp(functions[f].name, name, n) == 0 &&
            functions[f].arguments == count) {
            return functions[f].call(arguments);
        }
    }
    r->broken = true;
    return missing;
}

/* Names may hold dots: members of objects of the config. */
static size_t name_length(const struct reader *r)
{
    size_t n = 0;
    while (r->at + n < r->end &&
           (isalnum((unsigned char)r->at[n]) || r->at[n] == '_' || (n > 0 && r->at[n] == '.'))) {
        n++;
    }
    return n;
}

static struct hv__value text_literal(struct reader *r)
{
    const char *start = r->at;
    while (r->at < r->end && *r->at != '\'') {
        r->at++;
    }
    struct hv__value v = {.kind = HV__TEXT, .text = start, .n = (size_t)(r->at - start)};
    r->broken = r->broken || !take(r, "'");
    return v;
}

static struct hv__value primary(struct reader *r)
{
    skip_blanks(r);
    if (take(r, "(")) {
        struct hv__value v = expression(r);
        r->broken = r->broken || !take(r, ")");
        return v;
    }
    if (take(r, "'")) {
        return text_literal(r);
    }
    if (r->at < r->end && isdigit((unsigned char)*r->at)) {
        char *stop;
        double x = strtod(r->at, &stop);
        r->at = stop;
        return hv__value_number(x);
    }
    size_t n = name_length(r);
    const char *name = r->at;
    r->at += n;
    if (n == 0) {
        r->broken = true;
        return missing;
    }
    return take(r, "(") ? function_call(r, name, n) : r->names(r->ctx, name, n);
}

static struct hv__value postfix(struct reader *r)
{
    struct hv__value v = primary(r);
    while (!r->broken) {
        if (take(r, "[")) {
            struct hv__value n = expression(r);
            v = n.kind == HV__NUMBER ? element(v, n.x) : missing;
            r->broken = r->broken || !take(r, "]");
        } else {
            break;
        }
    }
    return v;
}

static struct hv__value unary(struct reader *r)
{
    if (take(r, "!")) {
        return hv__value_number(!hv__value_true(unary(r)));
    }
    if (take(r, "-")) {
        struct hv__value v = unary(r);
        return v.kind == HV__NUMBER ? hv__value_number(-v.x) : missing;
    }
    return postfix(r);
}

static struct hv__value both(struct hv__value a, struct hv__value b, double x)
{
    return a.kind == HV__NUMBER && b.kind == HV__NUMBER ? hv__value_number(x) : missing;
}

static struct hv__value product(struct reader *r)
{
    struct hv__value a = unary(r);
    while (!r->broken) {
        if (take(r, "*")) {
            struct hv__value b = unary(r);
            a = both(a, b, a.x * b.x);
        } else if (take(r, "/")) {
            struct hv__value b = unary(r);
            a = b.x != 0 ? both(a, b, a.x / b.x) : missing;
        } else if (take(r, "%")) {
            struct hv__value b = unary(r);
            a = b.x > 0 ? both(a, b, fmod(a.x, b.x)) : missing;
        } else {
            break;
        }
    }
    return a;
}

static struct hv__value sum(struct reader *r)
{
    struct hv__value a = product(r);
    while (!r->broken) {
        if (take(r, "+")) {
            struct hv__value b = product(r);
            a = both(a, b, a.x + b.x);
        } else if (take(r, "-")) {
            struct hv__value b = product(r);
            a = both(a, b, a.x - b.x);
        } else {
            break;
        }
    }
    return a;
}

static struct hv__value comparison(struct reader *r)
{
    struct hv__value a = sum(r);
    if (take(r, "=")) {
        return hv__value_number(same(a, sum(r)));
    }
    if (take(r, "!=")) {
        return hv__value_number(!same(a, sum(r)));
    }
    if (take(r, "<=")) {
        struct hv__value b = sum(r);
        return both(a, b, a.x <= b.x);
    }
    if (take(r, ">=")) {
        struct hv__value b = sum(r);
        return both(a, b, a.x >= b.x);
    }
    if (take(r, "<")) {
        struct hv__value b = sum(r);
        return both(a, b, a.x < b.x);
    }
    if (take(r, ">")) {
        struct hv__value b = sum(r);
        return both(a, b, a.x > b.x);
    }
    return a;
}

static struct hv__value conjunction(struct reader *r)
{
    struct hv__value a = comparison(r);
    while (!r->broken && take(r, "&")) {
        struct hv__value b = comparison(r);
        a = hv__value_number(hv__value_true(a) && hv__value_true(b));
    }
    return a;
}

static struct hv__value disjunction(struct reader *r)
{
    struct hv__value a = conjunction(r);
    while (!r->broken && take(r, "|")) {
        struct hv__value b = conjunction(r);
        a = hv__value_number(hv__value_true(a) || hv__value_true(b));
    }
    return a;
}

static struct hv__value expression(struct reader *r)
{
    struct hv__value a = disjunction(r);
    while (!r->broken && take(r, "??")) {
        struct hv__value b = disjunction(r);
        a = a.kind == HV__MISSING ? b : a;
    }
    return a;
}

struct hv__value hv__formula(const char *text, const char *end, hv__name_fn *names, void *ctx,
                             bool *valid)
{
    struct reader r = {.at = text, .end = end, .names = names, .ctx = ctx};
    struct hv__value v = expression(&r);
    skip_blanks(&r);
    *valid = !r.broken && r.at == r.end;
    return *valid ? v : missing;
}
