/* Places in a document: steps down the tree, the path in words, and errors at a place. */
#include "solver/base/json/json.h"

#include "solver/base/json/json_int.h"
#include <stdarg.h>
#include <string.h>

struct hv_jp hv_jp_root(const struct hv_json *j)
{
    return (struct hv_jp){.doc = j, .v = j->root};
}

struct hv_jp hv_jp_get(const struct hv_jp *p, const char *key)
{
    return (struct hv_jp){.doc = p->doc, .up = p, .v = json_object_get(p->v, key), .key = key};
}

struct hv_jp hv_jp_at(const struct hv_jp *p, size_t i)
{
    return (struct hv_jp){.doc = p->doc, .up = p, .v = json_array_get(p->v, i), .index = i};
}

bool hv_jp_none(const struct hv_jp *p)
{
    return !p->v || json_is_null(p->v);
}

void hv__json_excerpt(struct hv_str *out, const char *text, size_t n)
{
    size_t keep = n;
    if (n > 60) {
        keep = 57;
        while (keep > 0 && ((unsigned char)text[keep] & 0xC0) == 0x80) {
            keep--;
        }
    }
    hv_text_clean(out, text, keep);
    if (keep < n) {
        hv_str_adds(out, "\u2026");
    }
}

static bool is_plain_key(const char *key)
{
    size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return n > 0 && n <= 60 && key[n] == '\0';
}

static void add_step(const struct hv_jp *p, struct hv_str *out, bool first)
{
    if (!p->key) {
        hv_str_addf(out, "[%zu]", p->index);
    } else if (is_plain_key(p->key)) {
        hv_str_addf(out, "%s%s", first ? "" : ".", p->key);
    } else {
        hv_str_adds(out, "[\"");
        hv__json_excerpt(out, p->key, strlen(p->key));
        hv_str_adds(out, "\"]");
    }
}

void hv_jp_path(const struct hv_jp *p, struct hv_str *out)
{
    size_t n = 0;
    for (const struct hv_jp *q = p; q->up; q = q->up) {
        n++;
    }
    if (n == 0) {
        hv_str_adds(out, "(top level)");
    }
    for (size_t k = n; k > 0; k--) {
        const struct hv_jp *q = p;
        for (size_t up = 1; up < k; up++) {
            q = q->up;
        }
        add_step(q, out, k == n);
    }
}

enum hv_status hv_jp_fail(const struct hv_jp *p, struct hv_err *err, const char *fmt, ...)
{
    if (!err) {
        return HV_EINPUT;
    }
    struct hv_str t = {0};
    hv_jp_path(p, &t);
    hv_str_adds(&t, ": ");
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&t, fmt, ap);
    va_end(ap);
    unsigned line, col;
    hv_jp_where(p, &line, &col);
    hv_err_at(err, HV_EINPUT, p->doc ? p->doc->name : NULL, line, col, "%s", hv_str_cstr(&t));
    hv_str_free(&t);
    return HV_EINPUT;
}

void hv_jp_blame(const struct hv_jp *p, struct hv_err *err)
{
    if (err == NULL || err->line != 0) {
        return;
    }
    const char *name = p->doc != NULL && p->doc->name != NULL ? p->doc->name : "";
    struct hv_str path = {0};
    hv_jp_path(p, &path);
    if (err->file[0] != '\0' && strcmp(err->file, name) != 0) {
        hv_str_addf(&path, ": %s", err->file);
    }
    (void)hv_err_context(err, "%s", hv_str_cstr(&path));
    (void)snprintf(err->file, sizeof err->file, "%s", name);
    hv_jp_where(p, &err->line, &err->col);
    hv_str_free(&path);
}
