/* Lines, fields, numbers with units, lists of hosts and CSV rows. The readers interpret them. */
#include "solver/io/import/text/words.h"
#include "solver/base/units.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool hv__next_line(struct hv__lines *l)
{
    if (l->left == 0) {
        return false;
    }
    const char *end = memchr(l->rest, '\n', l->left);
    size_t n = end ? (size_t)(end - l->rest) : l->left;
    l->piece = (struct hv__piece){l->rest, n};
    while (l->piece.n > 0 && l->piece.p[l->piece.n - 1] == '\r') {
        l->piece.n--;
    }
    l->rest += n + (end != NULL);
    l->left -= n + (end != NULL);
    l->line++;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

struct hv__piece hv__strip(struct hv__piece s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_blank(s.p[s.n - 1])) {
        s.n--;
    }
    return s;
}

struct hv__piece hv__unquote(struct hv__piece s)
{
    s = hv__strip(s);
    while (s.n > 1 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0]) {
        s.p++;
        s.n -= 2;
    }
    return s;
}

struct hv__piece hv__next_word(struct hv__piece *rest)
{
    size_t i = 0, n = 0;
    while (i < rest->n && is_blank(rest->p[i])) {
        i++;
    }
    while (i + n < rest->n && !is_blank(rest->p[i + n])) {
        n++;
    }
    struct hv__piece w = {rest->p + i, n};
    rest->p += i + n;
    rest->n -= i + n;
    return w;
}

struct hv__piece hv__before(struct hv__piece *rest, char c)
{
    const char *at = rest->n > 0 ? memchr(rest->p, c, rest->n) : NULL;
    size_t n = at ? (size_t)(at - rest->p) : rest->n;
    struct hv__piece s = {rest->p, n};
    rest->p += n + (at != NULL);
    rest->n -= n + (at != NULL);
    return s;
}

bool hv__is(struct hv__piece s, const char *text)
{
    return strlen(text) == s.n && memcmp(s.p, text, s.n) == 0;
}

bool hv__like(struct hv__piece s, const char *text)
{
    return strlen(text) == s.n && strncasecmp(s.p, text, s.n) == 0;
}

bool hv__starts(struct hv__piece s, const char *with)
{
    size_t n = strlen(with);
    return s.n >= n && memcmp(s.p, with, n) == 0;
}

const char *hv__find(struct hv__piece s, const char *what)
{
    size_t n = strlen(what);
    for (; s.n >= n; s.p++, s.n--) {
        const char *at = memchr(s.p, what[0], s.n - n + 1);
        if (!at) {
            return NULL;
        }
        s.n -= (size_t)(at - s.p);
        s.p = at;
        if (memcmp(at, what, n) == 0) {
            return at;
        }
    }
    return NULL;
}

const char *hv__find_like(struct hv__piece s, const char *what)
{
    size_t n = strlen(what);
    for (; s.n >= n; s.p++, s.n--) {
        if (strncasecmp(s.p, what, n) == 0) {
            return s.p;
        }
    }
    return NULL;
}

char *hv__copy(struct hv_arena *a, struct hv__piece s)
{
    return hv_arena_strndup(a, s.p ? s.p : "", s.n);
}

struct hv__piece hv__piece_of(const char *s)
{
    return (struct hv__piece){s, s ? strlen(s) : 0};
}

bool hv__number(struct hv__piece s, double *out, struct hv__piece *rest)
{
    char digits[64];
    size_t n = 0, i = 0;
    bool digit = false, point = false;
    s = hv__strip(s);
    for (; i < s.n && n + 1 < sizeof digits; i++) {
        char c = s.p[i];
        bool sign = (c == '-' || c == '+') && n == 0;
        if (isdigit((unsigned char)c)) {
            digit = true;
        } else if (c == '_' && digit) {
            continue;
        } else if (c == '.' && !point) {
            point = true;
        } else if (!sign) {
            break;
        }
        digits[n++] = c;
    }
    /* an exponent only where digits follow it: "2e8", but not "16e" */
    if (digit && i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
        size_t j = i + 1 + (i + 1 < s.n && (s.p[i + 1] == '-' || s.p[i + 1] == '+'));
        if (j < s.n && isdigit((unsigned char)s.p[j])) {
            for (; i < s.n && n + 1 < sizeof digits && (i < j || isdigit((unsigned char)s.p[i]));
                 i++) {
                digits[n++] = s.p[i];
            }
        }
    }
    if (!digit) {
        return false;
    }
    digits[n] = '\0';
    *out = strtod(digits, NULL);
    if (rest) {
        *rest = hv__strip((struct hv__piece){s.p + i, s.n - i});
    }
    return isfinite(*out);
}

double hv__plain_number(struct hv__piece s)
{
    double x;
    struct hv__piece rest;
    return hv__number(s, &x, &rest) && rest.n == 0 ? x : HV_UNKNOWN;
}

double hv__bytes(struct hv__piece s, double unit)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {
        {"B", 1},
        {"bytes", 1},
        {"KiB", HV_KIB},
        {"Ki", HV_KIB},
        {"kB", 1e3},
        {"k", 1e3},
        {"K", HV_KIB},
        {"MiB", HV_MIB},
        {"Mi", HV_MIB},
        {"MB", HV_MIB},
        {"M", HV_MIB},
        {"GiB", HV_GIB},
        {"Gi", HV_GIB},
        {"GB", HV_GIB},
        {"G", HV_GIB},
        {"TiB", 1024 * HV_GIB},
        {"Ti", 1024 * HV_GIB},
        {"TB", 1024 * HV_GIB},
        {"T", 1024 * HV_GIB},
        {"m", 1e-3}, /* Kubernetes: thousandths */
    };
    double x;
    struct hv__piece rest;
    if (!hv__number(s, &x, &rest) || x < 0) {
        return HV_UNKNOWN;
    }
    for (size_t i = 0; i < HV_COUNT(units); i++) {
        if (hv__is(rest, units[i].name)) {
            return x * units[i].bytes;
        }
    }
    return rest.n == 0 ? x * unit : HV_UNKNOWN;
}

/* ---- hosts ------------------------------------------------------------------------------------
 */

/* A host name under construction: the expansion of the brackets so far. */
struct hosts {
    struct hv_str name;
    size_t n, most;
    hv__host_fn *each;
    void *ctx;
    bool stop;
};

static void expand(struct hosts *h, struct hv__piece rest);

static void expand_range(struct hosts *h, struct hv__piece item, struct hv__piece rest)
{
    struct hv__piece to = item, from = hv__before(&to, '-');
    double a = hv__plain_number(from), b = to.n > 0 ? hv__plain_number(to) : a;
    if (!hv_known(a) || !hv_known(b) || a < 0 || b < a || b > 1e9) {
        a = b = 0;
        to = from = item; /* not a number: a word between commas */
    }
    for (double x = a; x <= b && !h->stop; x++) {
        size_t at = h->name.n;
        if (from.p == to.p && from.n == to.n) {
            hv_str_add(&h->name, item.p, item.n);
        } else {
            hv_str_addf(&h->name, "%0*.0f", (int)(from.n < 18 ? from.n : 18), x);
        }
        expand(h, rest);
        h->name.n = at;
        h->name.p[at] = '\0';
    }
}

/* Appends `rest` with its first brackets expanded; passes the name to the callback when there are
 * none. */
static void expand(struct hosts *h, struct hv__piece rest)
{
    size_t start = h->name.n;
    struct hv__piece tail = rest, head = hv__before(&tail, '[');
    hv_str_add(&h->name, head.p, head.n);
    if (head.n == rest.n) {
        if (h->name.n > 0) {
            h->stop = ++h->n >= h->most || !h->each(h->ctx, hv_str_cstr(&h->name), h->name.n);
        }
    } else {
        struct hv__piece list = hv__before(&tail, ']');
        while (list.n > 0 && !h->stop) {
            expand_range(h, hv__strip(hv__before(&list, ',')), tail);
        }
    }
    h->name.n = start;
    if (h->name.p) {
        h->name.p[start] = '\0';
    }
}

size_t hv__hosts(struct hv__piece list, size_t most, hv__host_fn *each, void *ctx)
{
    struct hosts h = {.most = most, .each = each, .ctx = ctx};
    list = hv__strip(list);
    while (list.n > 0 && !h.stop) {
        size_t i = 0, opened = 0;
        for (int depth = 0; i < list.n && (depth > 0 || list.p[i] != ','); i++) {
            depth += (list.p[i] == '[') - (list.p[i] == ']');
            opened += list.p[i] == '[';
        }
        if (opened <= 8) { /* more brackets than any cluster's names have: not a list of hosts */
            expand(&h, (struct hv__piece){list.p, i});
        }
        i += i < list.n;
        list.p += i;
        list.n -= i;
    }
    hv_str_free(&h.name);
    return h.n;
}

/* ---- CSV --------------------------------------------------------------------------------------
 */

static void push_field(struct hv__csv *c, struct hv__row *row, struct hv__piece f)
{
    if (row->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 32;
        struct hv__piece *more = hv_arena_new(c->arena, struct hv__piece, cap);
        if (row->n > 0) {
            memcpy(more, c->fields, row->n * sizeof *more);
        }
        c->fields = more;
        c->cap = cap;
    }
    c->fields[row->n++] = f;
}

/* A field that begins with a quotation mark: "" stands for one. */
static struct hv__piece quoted_field(struct hv__csv *c)
{
    const char *start = ++c->rest;
    c->left--;
    bool doubled = false;
    while (c->left > 0) {
        if (c->rest[0] == '\n') {
            c->line++;
        }
        if (c->rest[0] == '"') {
            if (c->left < 2 || c->rest[1] != '"') {
                break;
            }
            doubled = true;
            c->rest++;
            c->left--;
        }
        c->rest++;
        c->left--;
    }
    struct hv__piece f = {start, (size_t)(c->rest - start)};
    if (c->left > 0) {
        c->rest++;
        c->left--;
    }
    if (doubled) {
        char *copy = hv_arena_strndup(c->arena, f.p, f.n);
        size_t n = 0;
        for (size_t i = 0; i < f.n; i++) {
            copy[n++] = f.p[i];
            i += f.p[i] == '"';
        }
        f = (struct hv__piece){copy, n};
    }
    return f;
}

bool hv__csv_next(struct hv__csv *c, struct hv__row *row)
{
    if (c->left == 0) {
        return false;
    }
    *row = (struct hv__row){.line = ++c->line};
    for (bool more = true; more;) {
        while (c->left > 0 && (c->rest[0] == ' ' || c->rest[0] == '\t') && c->separator != '\t') {
            c->rest++;
            c->left--;
        }
        struct hv__piece f = {c->rest, 0};
        if (c->left > 0 && c->rest[0] == '"') {
            f = quoted_field(c);
        }
        size_t n = 0;
        while (n < c->left && c->rest[n] != c->separator && c->rest[n] != '\n') {
            n++;
        }
        push_field(c, row, hv__strip(f.p == c->rest ? (struct hv__piece){f.p, n} : f));
        more = n < c->left && c->rest[n] == c->separator;
        n += n < c->left;
        c->rest += n;
        c->left -= n;
    }
    row->fields = c->fields;
    return true;
}
