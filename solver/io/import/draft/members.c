/* Names the members of a text in the report: understood when the reader used them, else ignored. */
#include "solver/io/import/draft/members.h"
#include "solver/base/rng.h"
#include "solver/io/import/draft/draft.h"
#include <string.h>

#define MAX_VALUE     80
#define MAX_DEPTH     64
#define MOST_LINES    200    /* paths whose line is looked for; the search is linear */
#define WHOLE         "\001" /* after a key: the member is used with all that lies in it */
#define MIN_INDEX     256
#define LIST_IN_VALUE 8

static uint64_t mark_of(const json_t *o, const char *key, const char *suffix)
{
    uint64_t h = hv_hash(HV_HASH_START, &o, sizeof o);
    h = hv_hash(hv_hash(h, key, strlen(key)), suffix, strlen(suffix) + 1);
    return h != 0 ? h : 1;
}

static size_t mark_slot(const struct hv__members *m, uint64_t mark)
{
    size_t at = (size_t)(mark & (m->cap_marks - 1));
    while (m->marks[at] != 0 && m->marks[at] != mark) {
        at = (at + 1) & (m->cap_marks - 1);
    }
    return at;
}

static void add_mark(struct hv__members *m, uint64_t mark)
{
    if (2 * (m->n_marks + 1) > m->cap_marks) {
        struct hv__members old = *m;
        m->cap_marks = old.cap_marks > 0 ? 4 * old.cap_marks : MIN_INDEX;
        m->marks = hv_xcalloc(m->cap_marks, sizeof *m->marks);
        for (size_t i = 0; i < old.cap_marks; i++) {
            if (old.marks[i] != 0) {
                m->marks[mark_slot(m, old.marks[i])] = old.marks[i];
            }
        }
        free(old.marks);
    }
    size_t at = mark_slot(m, mark);
    m->n_marks += m->marks[at] == 0;
    m->marks[at] = mark;
}

static bool is_marked(const struct hv__members *m, const json_t *o, const char *key,
                      const char *suffix)
{
    if (m->n_marks == 0) {
        return false;
    }
    uint64_t mark = mark_of(o, key, suffix);
    return m->marks[mark_slot(m, mark)] == mark;
}

static json_t *look_up(struct hv__in *in, json_t *o, const char *key, const char *suffix)
{
    json_t *v = json_object_get(o, key);
    if (v) {
        add_mark(&in->members, mark_of(o, key, suffix));
    }
    return v;
}

json_t *hv__get(struct hv__in *in, json_t *o, const char *key)
{
    return look_up(in, o, key, "");
}

json_t *hv__get_whole(struct hv__in *in, json_t *o, const char *key)
{
    return look_up(in, o, key, WHOLE);
}

void hv__uses(struct hv__in *in, const char *const *paths)
{
    for (size_t i = 0; paths[i]; i++) {
        hv_vec_push(&in->members.uses, paths[i]);
    }
}

/* '*' in the pattern stands for any text. O(path · pattern). */
static bool fits(const char *path, const char *pattern)
{
    const char *star = NULL, *from = NULL;
    while (*path) {
        if (*pattern == '*') {
            star = pattern++;
            from = path;
        } else if (*pattern == *path) {
            pattern++;
            path++;
        } else if (star) {
            pattern = star + 1;
            path = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

static bool is_stated(const struct hv__members *m, const char *path)
{
    for (size_t i = 0; i < m->uses.n; i++) {
        if (fits(path, m->uses.items[i])) {
            return true;
        }
    }
    return false;
}

static size_t path_slot(const struct hv__members *m, const char *path)
{
    uint64_t h = hv_hash(HV_HASH_START, path, strlen(path));
    size_t at = (size_t)(h & (m->n_index - 1));
    while (m->index[at] != 0 && strcmp(m->names.items[m->index[at] - 1].path, path) != 0) {
        at = (at + 1) & (m->n_index - 1);
    }
    return at;
}

static void grow_index(struct hv__members *m)
{
    free(m->index);
    m->n_index = m->n_index > 0 ? 4 * m->n_index : MIN_INDEX;
    m->index = hv_xcalloc(m->n_index, sizeof *m->index);
    for (size_t i = 0; i < m->names.n; i++) {
        m->index[path_slot(m, m->names.items[i].path)] = (uint32_t)i + 1;
    }
}

/* The member of this path, made when it is new; NULL when there are too many. */
static struct hv__member_name *named(struct hv__in *in, const char *path, bool *is_new)
{
    struct hv__members *m = &in->members;
    if (2 * (m->names.n + 1) > m->n_index) {
        grow_index(m);
    }
    size_t at = path_slot(m, path);
    *is_new = m->index[at] == 0;
    if (*is_new && m->names.n >= HV__MAX_MEMBERS) {
        m->beyond++;
        return NULL;
    }
    if (*is_new) {
        struct hv__member_name x = {.path = hv_arena_strdup(&in->im->arena, path)};
        hv_vec_push(&m->names, x);
        m->index[at] = (uint32_t)m->names.n;
    }
    return &m->names.items[m->index[at] - 1];
}

void hv__member(struct hv__in *in, bool used, unsigned line, const char *path, const char *value)
{
    bool is_new = false;
    struct hv__member_name *x = named(in, path, &is_new);
    if (!x) {
        return;
    }
    if (is_new) {
        x->line = line;
        x->value =
            value ? hv_arena_strndup(&in->im->arena, value, strnlen(value, MAX_VALUE)) : NULL;
    }
    x->times++;
    x->used = x->used || used;
}

/* ---- trees ------------------------------------------------------------------------------------
 */

/* Shortens a text that is not empty to its first n bytes. */
static void cut(struct hv_str *s, size_t n)
{
    if (n < s->n) {
        s->n = n;
        s->p[n] = '\0';
    }
}

static void add_scalar(struct hv_str *out, const json_t *v)
{
    if (json_is_string(v)) {
        hv_str_adds(out, json_string_value(v));
        return;
    }
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
    hv_str_adds(out, text ? text : "?");
    free(text);
}

static bool is_scalar(const json_t *v)
{
    return !json_is_object(v) && !json_is_array(v);
}

/* True for a value whose members have no names: a scalar, a list of scalars, something empty. */
static bool is_leaf(const json_t *v)
{
    if (json_is_object(v)) {
        return json_object_size(v) == 0;
    }
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
        if (!is_scalar(json_array_get(v, i))) {
            return false;
        }
    }
    return true;
}

static void add_value(struct hv_str *out, const json_t *v, bool whole)
{
    size_t n = json_array_size(v);
    if (whole && json_is_object(v)) {
        hv_str_addf(out, "%zu members", json_object_size(v));
    } else if (json_is_object(v)) {
        hv_str_adds(out, "{}");
    } else if (json_is_array(v) && (n > LIST_IN_VALUE || !is_leaf(v))) {
        hv_str_addf(out, "a list of %zu", n);
    } else if (json_is_array(v)) {
        hv_str_addc(out, '[');
        for (size_t i = 0; i < n; i++) {
            hv_str_adds(out, i > 0 ? ", " : "");
            add_scalar(out, json_array_get(v, i));
        }
        hv_str_addc(out, ']');
    } else {
        add_scalar(out, v);
    }
}

static void tell_leaf(struct hv__in *in, const char *path, json_t *v, bool used, bool whole)
{
    struct hv_str value = {0};
    bool is_new = false;
    struct hv__member_name *x = named(in, path, &is_new);
    if (!x) {
        return;
    }
    if (is_new) {
        add_value(&value, v, whole);
        if (value.n > MAX_VALUE) {
            cut(&value, MAX_VALUE);
            hv_str_adds(&value, "...");
        }
        x->value = hv_arena_strdup(&in->im->arena, hv_str_cstr(&value));
        x->line = in->members.names.n < MOST_LINES ? hv__line_of(in, v) : 0;
        x->used = is_stated(&in->members, path);
        hv_str_free(&value);
    }
    x->times++;
    x->used = x->used || used;
}

static void walk(struct hv__in *in, json_t *v, struct hv_str *path, int depth);

static void walk_member(struct hv__in *in, json_t *o, const char *key, struct hv_str *path,
                        int depth)
{
    size_t n = path->n;
    json_t *v = json_object_get(o, key);
    bool whole = is_marked(&in->members, o, key, WHOLE);
    hv_str_adds(path, n > 0 ? "." : "");
    hv_str_adds(path, key);
    if (whole || is_leaf(v) || depth >= MAX_DEPTH) {
        tell_leaf(in, hv_str_cstr(path), v, whole || is_marked(&in->members, o, key, ""), whole);
    } else {
        walk(in, v, path, depth + 1);
    }
    cut(path, n);
}

static void walk(struct hv__in *in, json_t *v, struct hv_str *path, int depth)
{
    size_t n = path->n;
    for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
        walk_member(in, v, json_object_iter_key(it), path, depth);
    }
    if (json_is_array(v)) {
        hv_str_adds(path, "[]");
        for (size_t i = 0; i < json_array_size(v) && depth < MAX_DEPTH; i++) {
            json_t *x = json_array_get(v, i);
            if (is_scalar(x)) {
                tell_leaf(in, hv_str_cstr(path), x, false, false);
            } else {
                walk(in, x, path, depth + 1);
            }
        }
        cut(path, n);
    }
}

void hv__members_of_part(struct hv__in *in, json_t *part, const char *path)
{
    struct hv_str at = {0};
    hv_str_adds(&at, path);
    walk(in, part, &at, 0);
    hv_str_free(&at);
}

static void walk_xml(struct hv__in *in, const struct hv__xml *e, struct hv_str *path, int depth)
{
    size_t n = path->n;
    for (size_t i = 0; e->attributes && e->attributes[i]; i += 2) {
        hv_str_addf(path, "@%s", e->attributes[i]);
        hv__member(in, is_stated(&in->members, hv_str_cstr(path)), e->line, hv_str_cstr(path),
                   e->attributes[i + 1]);
        cut(path, n);
    }
    if (!e->first && n > 0 && (*hv__xml_text(e) || !e->attributes || !e->attributes[0])) {
        hv__member(in, is_stated(&in->members, hv_str_cstr(path)), e->line, hv_str_cstr(path),
                   hv__xml_text(e));
    }
    for (const struct hv__xml *c = e->first; c && depth < MAX_DEPTH; c = c->next) {
        hv_str_addf(path, "%s%s", n > 0 ? "." : "", c->name);
        walk_xml(in, c, path, depth + 1);
        cut(path, n);
    }
}

/* ---- the report -------------------------------------------------------------------------------
 */

static void add_note(struct hv__in *in, const struct hv__member_name *x)
{
    struct hv_str text = {0}, clean = {0};
    hv_str_addf(&text, x->value ? "%s = %s" : "%s", x->path, x->value ? x->value : "");
    hv_text_clean(&clean, hv_str_cstr(&text), text.n);
    struct hv_import_note note = {.level = x->used ? HV_IMPORT_UNDERSTOOD : HV_IMPORT_IGNORED,
                                  .file = in->name,
                                  .line = x->line,
                                  .times = x->times,
                                  .member = true,
                                  .text = hv_arena_strdup(&in->im->arena, hv_str_cstr(&clean))};
    hv_vec_push(&in->im->notes, note);
    hv_str_free(&text);
    hv_str_free(&clean);
}

void hv__members_tell(struct hv__in *in)
{
    struct hv__members *m = &in->members;
    struct hv_str path = {0};
    if (in->tree && m->n_marks + m->uses.n > 0) {
        walk(in, in->tree, &path, 0);
    } else if (in->xml && m->uses.n > 0) {
        walk_xml(in, in->xml, &path, 0);
    }
    hv_str_free(&path);
    for (size_t i = 0; i < m->names.n; i++) {
        add_note(in, &m->names.items[i]);
    }
    if (m->beyond > 0) {
        hv__ignored(in, 0, "%zu members more than the %d that are named", m->beyond,
                    HV__MAX_MEMBERS);
    }
}

void hv__members_free(struct hv__members *m)
{
    hv_vec_free(&m->names);
    hv_vec_free(&m->uses);
    free(m->index);
    free(m->marks);
    *m = (struct hv__members){0};
}
