/*
 * JSON writer: members in order, lines of at most 100 columns where the values allow it, shortest
 * digits. Characters that a terminal would obey, or that hide or reorder text, are escaped. The
 * output parses to an equal tree (except NaN and infinities, which become null), and the same tree
 * always gives the same bytes.
 */
#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include <math.h>
#include <string.h>

#define WIDTH 100

struct writer {
    struct hv_str *out;
    size_t line_start; /* byte in out where the line begins */
};

/* A character that may not stand as it is: the syntax forbids it, or a terminal would obey it. */
static void write_escape(struct hv_str *out, int32_t c)
{
    static const char raw[] = "\"\\\b\f\n\r\t", name[] = "\"\\bfnrt";
    const char *at = c > 0 && c < 0x80 ? strchr(raw, c) : NULL;
    if (at) {
        hv_str_addf(out, "\\%c", name[at - raw]);
    } else if (c < 0x10000) {
        hv_str_addf(out, "\\u%04x", (unsigned)c);
    } else { /* a pair of surrogates */
        unsigned rest = (unsigned)c - 0x10000;
        hv_str_addf(out, "\\u%04x\\u%04x", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
    }
}

/* The character at s, and its bytes. Strings of trees are valid UTF-8. */
static size_t next_char(const char *s, size_t n, int32_t *c)
{
    size_t len = hv_text_char(s, n, c);
    if (len == 0) {
        *c = 0xFFFD;
    }
    return len > 0 ? len : 1;
}

static void write_string(struct hv_str *out, const char *s, size_t n)
{
    hv_str_addc(out, '"');
    size_t clean = 0;
    for (size_t i = 0, len = 1; i < n; i += len) {
        int32_t c = (unsigned char)s[i];
        len = c < 0x80 ? 1 : next_char(s + i, n - i, &c);
        bool as_it_is = c < 0x80 ? c >= 0x20 && c != '"' && c != '\\' && c != 0x7F
                                 : c != 0xFFFD && !hv_text_is_unsafe(c);
        if (!as_it_is) {
            hv_str_add(out, s + clean, i - clean);
            write_escape(out, c);
            clean = i + len;
        }
    }
    hv_str_add(out, s + clean, n - clean);
    hv_str_addc(out, '"');
}

static void write_real(struct hv_str *out, double x)
{
    char d[HV_FMT_CAP];
    if (!isfinite(x)) {
        hv_str_adds(out, "null");
        return;
    }
    hv_str_adds(out, hv_fmt_double(d, sizeof d, x));
    /* without a point or exponent it would be parsed as an integer */
    if (!strpbrk(d, ".e")) {
        hv_str_adds(out, ".0");
    }
}

static bool is_container(const json_t *v)
{
    return json_is_object(v) || json_is_array(v);
}

static void write_scalar(struct hv_str *out, const json_t *v)
{
    if (json_is_string(v)) {
        write_string(out, json_string_value(v), json_string_length(v));
    } else if (json_is_integer(v)) {
        hv_str_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    } else if (json_is_real(v)) {
        write_real(out, json_real_value(v));
    } else {
        hv_str_adds(out, json_is_true(v) ? "true" : json_is_false(v) ? "false" : "null");
    }
}

/* One line: `[1, 2]` and `{ "a": 1 }`, or without any space when compact. Fails as soon as out is
 * longer than `limit`; the partial line then stays in out. */
static bool write_line(struct hv_str *out, json_t *v, bool compact, size_t limit)
{
    size_t i, k = 0;
    json_t *child;
    void *it;
    if (!is_container(v)) {
        write_scalar(out, v);
        return out->n <= limit;
    }
    if (json_is_array(v)) {
        hv_str_addc(out, '[');
        json_array_foreach(v, i, child)
        {
            hv_str_adds(out, !i ? "" : compact ? "," : ", ");
            if (!write_line(out, child, compact, limit)) {
                return false;
            }
        }
        hv_str_addc(out, ']');
        return out->n <= limit;
    }
    hv_str_addc(out, '{');
    for (it = json_object_iter(v); it; it = json_object_iter_next(v, it), k++) {
        const char *key = json_object_iter_key(it);
        hv_str_adds(out, compact ? (k ? "," : "") : (k ? ", " : " "));
        write_string(out, key, strlen(key));
        hv_str_adds(out, compact ? ":" : ": ");
        if (!write_line(out, json_object_iter_value(it), compact, limit)) {
            return false;
        }
    }
    hv_str_adds(out, k && !compact ? " }" : "}");
    return out->n <= limit;
}

/* True where v nests at most `levels` containers and has few enough members for one line. An array
 * of objects is written with one line per object. */
static bool may_be_line(json_t *v, int levels)
{
    size_t i, n = json_is_array(v) ? json_array_size(v) : json_object_size(v);
    json_t *child;
    const char *key;
    if (!is_container(v) || n == 0) {
        return true;
    }
    if (levels == 0 || n > WIDTH / 2) {
        return false;
    }
    json_array_foreach(v, i, child)
    {
        if ((json_is_object(child) && json_object_size(child)) || !may_be_line(child, levels - 1)) {
            return false;
        }
    }
    json_object_foreach(v, key, child)
    {
        if (!may_be_line(child, levels - 1)) {
            return false;
        }
    }
    return true;
}

static size_t columns(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        k += ((unsigned char)s[i] & 0xC0) != 0x80;
    }
    return k;
}

static size_t column(const struct writer *w)
{
    return columns(w->out->p + w->line_start, w->out->n - w->line_start);
}

static void new_line(struct writer *w, size_t indent)
{
    hv_str_addc(w->out, '\n');
    w->line_start = w->out->n;
    for (size_t i = 0; i < indent; i++) {
        hv_str_adds(w->out, "  ");
    }
}

/* Writes v on the rest of this line if it fits, leaving a column for a comma. */
static bool write_if_fits(struct writer *w, json_t *v)
{
    if (!may_be_line(v, 2)) {
        return false;
    }
    size_t start = w->out->n;
    /* a column holds at most four bytes */
    if (write_line(w->out, v, false, start + (size_t)4 * WIDTH) && column(w) + 1 <= WIDTH) {
        return true;
    }
    w->out->p[w->out->n = start] = '\0';
    return false;
}

static bool all_scalar(const json_t *array)
{
    size_t i;
    json_t *child;
    json_array_foreach(array, i, child)
    {
        if (is_container(child)) {
            return false;
        }
    }
    return true;
}

/* A long array of scalars: as many per line as fit. */
static void write_wrapped(struct writer *w, json_t *v, size_t indent)
{
    struct hv_str one = {0};
    size_t i, n = json_array_size(v), col = 0;
    json_t *child;
    json_array_foreach(v, i, child)
    {
        hv_str_clear(&one);
        write_scalar(&one, child);
        size_t need = columns(one.p, one.n) + (i + 1 < n);
        if (i == 0 || col + 1 + need > WIDTH) {
            new_line(w, indent + 1);
            col = 2 * (indent + 1);
        } else {
            hv_str_addc(w->out, ' ');
            col++;
        }
        hv_str_add(w->out, one.p, one.n);
        if (i + 1 < n) {
            hv_str_addc(w->out, ',');
        }
        col += need;
    }
    hv_str_free(&one);
}

static void write_pretty(struct writer *w, json_t *v, size_t indent);

static void write_broken_array(struct writer *w, json_t *v, size_t indent)
{
    size_t i, n = json_array_size(v);
    json_t *child;
    hv_str_addc(w->out, '[');
    if (all_scalar(v)) {
        write_wrapped(w, v, indent);
    } else {
        json_array_foreach(v, i, child)
        {
            new_line(w, indent + 1);
            write_pretty(w, child, indent + 1);
            if (i + 1 < n) {
                hv_str_addc(w->out, ',');
            }
        }
    }
    new_line(w, indent);
    hv_str_addc(w->out, ']');
}

static void write_broken_object(struct writer *w, json_t *v, size_t indent)
{
    hv_str_addc(w->out, '{');
    for (void *it = json_object_iter(v); it;) {
        const char *key = json_object_iter_key(it);
        new_line(w, indent + 1);
        write_string(w->out, key, strlen(key));
        hv_str_adds(w->out, ": ");
        write_pretty(w, json_object_iter_value(it), indent + 1);
        it = json_object_iter_next(v, it);
        if (it) {
            hv_str_addc(w->out, ',');
        }
    }
    new_line(w, indent);
    hv_str_addc(w->out, '}');
}

static void write_pretty(struct writer *w, json_t *v, size_t indent)
{
    bool root_object = indent == 0 && json_object_size(v) > 0; /* a file is not one line */
    if (!is_container(v)) {
        write_scalar(w->out, v);
    } else if (root_object || !write_if_fits(w, v)) {
        if (json_is_array(v)) {
            write_broken_array(w, v, indent);
        } else {
            write_broken_object(w, v, indent);
        }
    }
}

void hv_json_write(struct hv_str *out, const json_t *v, bool pretty)
{
    /* jansson's iterators take a pointer to non-const although they change nothing */
    union {
        const json_t *in;
        json_t *out;
    } node = {.in = v};
    if (!pretty) {
        write_line(out, node.out, true, (size_t)-1);
        return;
    }
    struct writer w = {.out = out, .line_start = out->n};
    write_pretty(&w, node.out, 0);
    hv_str_addc(out, '\n');
}

json_t *hv_json_num(double x)
{
    if (!isfinite(x)) {
        return json_null();
    }
    if (x == floor(x) && fabs(x) < 0x1p53) {
        return json_integer((json_int_t)x);
    }
    return json_real(x);
}
