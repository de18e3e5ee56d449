/*
 * Commands that turn one tree of a document into another: the shortest `set`, `insert` and `remove`
 * lines that make the change. Used for recordings and for the changes that a console worker
 * returns. Not for making the change.
 */
#include "ui/session/doc/diff.h"

#include <ctype.h>
#include <string.h>

/* Above this number of lines, one line sets the whole document. */
#define MOST_LINES 24

/* State of a recursive comparison. */
struct walk {
    struct hv_str path, lines;
    size_t n_lines;
};

static void add_line(struct walk *w, const char *verb, const json_t *value)
{
    hv_str_addf(&w->lines, "%s %s", verb, hv_str_cstr(&w->path));
    if (value != NULL) {
        hv_str_addc(&w->lines, ' ');
        hv_json_write(&w->lines, value, false);
        while (w->lines.n > 0 && w->lines.p[w->lines.n - 1] == '\n') {
            w->lines.n--;
        }
    }
    hv_str_addc(&w->lines, '\n');
    w->n_lines++;
}

static void push_key(struct walk *w, const char *key)
{
    bool plain = key[0] != '\0';
    for (const char *p = key; *p != '\0'; p++) {
        plain = plain && (isalnum((unsigned char)*p) || *p == '_' || *p == '-');
    }
    if (plain) {
        hv_str_addf(&w->path, ".%s", key);
        return;
    }
    hv_str_adds(&w->path, "[\"");
    for (const char *p = key; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            hv_str_addc(&w->path, '\\');
        }
        hv_str_addc(&w->path, *p);
    }
    hv_str_adds(&w->path, "\"]");
}

static void cut(struct walk *w, size_t n)
{
    w->path.n = n;
    w->path.p[n] = '\0';
}

static void compare(struct walk *w, const json_t *a, const json_t *b);

/* A key that no path can name makes the whole object one value. */
static bool has_nameless(const json_t *v)
{
    return json_object_get(v, "") != NULL;
}

static void compare_objects(struct walk *w, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    size_t at = w->path.n;
    json_object_foreach((json_t *)(uintptr_t)a, key, value)
    {
        if (json_object_get(b, key) != NULL) {
            continue;
        }
        push_key(w, key);
        add_line(w, "remove", NULL);
        cut(w, at);
    }
    json_object_foreach((json_t *)(uintptr_t)b, key, value)
    {
        const json_t *old = json_object_get(a, key);
        push_key(w, key);
        if (old != NULL) {
            compare(w, old, value);
        } else {
            add_line(w, "set", value);
        }
        cut(w, at);
    }
}

static void compare_at(struct walk *w, size_t i, const char *verb, const json_t *a, const json_t *b)
{
    size_t at = w->path.n;
    hv_str_addf(&w->path, "[%zu]", i);
    if (verb != NULL) {
        add_line(w, verb, b);
    } else {
        compare(w, a, b);
    }
    cut(w, at);
}

/* Elements added or removed at one position become insertions or removals there. */
static void compare_arrays(struct walk *w, const json_t *a, const json_t *b)
{
    size_t n = json_array_size(a), m = json_array_size(b), head = 0, tail = 0;
    while (head < n && head < m && json_equal(json_array_get(a, head), json_array_get(b, head))) {
        head++;
    }
    while (tail < n - head && tail < m - head &&
           json_equal(json_array_get(a, n - 1 - tail), json_array_get(b, m - 1 - tail))) {
        tail++;
    }
    if (n == m) {
        for (size_t i = head; i < n - tail; i++) {
            compare_at(w, i, NULL, json_array_get(a, i), json_array_get(b, i));
        }
    } else if (m > n && head + tail == n) {
        for (size_t i = head; i < m - tail; i++) {
            compare_at(w, i, "insert", NULL, json_array_get(b, i));
        }
    } else if (n > m && head + tail == m) {
        for (size_t i = head; i < n - tail; i++) {
            compare_at(w, head, "remove", NULL, NULL);
        }
    } else {
        add_line(w, "set", b);
    }
}

static void compare(struct walk *w, const json_t *a, const json_t *b)
{
    if (a == b || json_equal(a, b)) {
        return;
    }
    if (json_is_object(a) && json_is_object(b) && !has_nameless(a) && !has_nameless(b)) {
        compare_objects(w, a, b);
    } else if (json_is_array(a) && json_is_array(b)) {
        compare_arrays(w, a, b);
    } else {
        add_line(w, "set", b);
    }
}

size_t hv__doc_diff(enum hv_doc d, const json_t *before, const json_t *after, struct hv_str *out)
{
    struct walk w = {0};
    hv_str_adds(&w.path, hv_doc_name(d));
    compare(&w, before, after);
    if (w.n_lines > MOST_LINES) {
        w.n_lines = 0;
        hv_str_clear(&w.lines);
        cut(&w, strlen(hv_doc_name(d)));
        add_line(&w, "set", after);
    }
    hv_str_add(out, hv_str_cstr(&w.lines), w.lines.n);
    hv_str_free(&w.path);
    hv_str_free(&w.lines);
    return w.n_lines;
}
