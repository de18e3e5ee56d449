/*
 * YAML texts as JSON trees, by libyaml's events. Plain words are numbers, true, false or null as
 * YAML 1.2's core schema has it; quoted scalars are text. Aliases are copied by reference and the
 * number of values is limited, so that a few lines cannot become gigabytes.
 */
#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include "solver/io/import/text/trees.h"
#include "solver/io/import/text/words.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* A collection being filled. */
struct level {
    json_t *v;
    char *key; /* key of the next member; NULL: a key is expected next */
};

struct anchor {
    char *name;
    json_t *v; /* owned */
};

struct reader {
    const char *name; /* of the file, for messages */
    struct hv__line_list *lines;
    yaml_parser_t parser;
    HV_VEC(struct level) open;
    HV_VEC(struct anchor) anchors;
    json_t *documents;
    size_t values;
    struct hv_err *err;
};

static enum hv_status fail(struct reader *r, const yaml_mark_t *at, const char *what)
{
    return hv_err_at(r->err, HV_EINPUT, r->name, (unsigned)at->line + 1, (unsigned)at->column + 1,
                     "%s", what);
}

static json_t *plain_value(const char *s, size_t n)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const yes[] = {"true", "True", "TRUE"};
    static const char *const no[] = {"false", "False", "FALSE"};
    struct hv__piece p = {s, n};
    for (size_t i = 0; i < HV_COUNT(nulls); i++) {
        if (hv__is(p, nulls[i])) {
            return json_null();
        }
    }
    for (size_t i = 0; i < HV_COUNT(yes); i++) {
        if (hv__is(p, yes[i]) || hv__is(p, no[i])) {
            return json_boolean(hv__is(p, yes[i]));
        }
    }
    double x = strcspn(s, "_") == n && n < 60 ? hv__plain_number(p) : HV_UNKNOWN;
    return hv_known(x) ? hv_json_num(x) : json_stringn(s, n);
}

/* Adds a value to the current collection; takes the reference. */
static enum hv_status place(struct reader *r, json_t *v, const yaml_event_t *e)
{
    if (!v || ++r->values > HV__MAX_ITEMS / 4) {
        json_decref(v);
        return v ? hv_err_at(r->err, HV_ELIMIT, r->name, (unsigned)e->start_mark.line + 1, 0,
                             "more values than an import may have (aliases count)")
                 : fail(r, &e->start_mark, "this text is not UTF-8");
    }
    if (!json_is_true(v) && !json_is_false(v) && !json_is_null(v)) {
        hv_vec_push(r->lines, (struct hv__line){v, (unsigned)e->start_mark.line + 1});
    }
    if (r->open.n == 0) {
        json_array_append_new(r->documents, v);
        return HV_OK;
    }
    struct level *l = &r->open.items[r->open.n - 1];
    if (json_is_array(l->v)) {
        json_array_append_new(l->v, v);
    } else if (l->key) {
        json_object_set_new(l->v, l->key, v);
        free(l->key);
        l->key = NULL;
    } else if (json_is_string(v)) {
        l->key = hv_xstrdup(json_string_value(v));
        json_decref(v);
        r->lines->n--;
    } else { /* a number or a list as a key: its text */
        char *text = json_dumps(v, JSON_ENCODE_ANY);
        l->key = text ? hv_xstrdup(text) : hv_xstrdup("?");
        free(text);
        bool noted = r->lines->n > 0 && r->lines->items[r->lines->n - 1].v == v;
        r->lines->n -= noted;
        json_decref(v);
    }
    return HV_OK;
}

static void keep_anchor(struct reader *r, const yaml_char_t *name, json_t *v)
{
    if (name && r->anchors.n < 1000) {
        hv_vec_push(&r->anchors, (struct anchor){hv_xstrdup((const char *)name), json_incref(v)});
    }
}

static enum hv_status scalar(struct reader *r, const yaml_event_t *e)
{
    const char *s = (const char *)e->data.scalar.value;
    size_t n = e->data.scalar.length;
    struct level *l = r->open.n > 0 ? &r->open.items[r->open.n - 1] : NULL;
    bool is_key = l && json_is_object(l->v) && !l->key;
    json_t *v = is_key || e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE ? json_stringn(s, n)
                                                                          : plain_value(s, n);
    keep_anchor(r, e->data.scalar.anchor, v);
    return place(r, v, e);
}

static enum hv_status open_level(struct reader *r, json_t *v, const yaml_char_t *anchor,
                                 const yaml_event_t *e)
{
    if (r->open.n >= HV__MAX_DEPTH) {
        json_decref(v);
        return fail(r, &e->start_mark, "nested more deeply than such files are");
    }
    struct level *up = r->open.n > 0 ? &r->open.items[r->open.n - 1] : NULL;
    if (up && json_is_object(up->v) && !up->key) {
        json_decref(v);
        return fail(r, &e->start_mark, "a list or mapping as a key");
    }
    keep_anchor(r, anchor, v);
    enum hv_status st = place(r, json_incref(v), e);
    if (st == HV_OK) {
        hv_vec_push(&r->open, (struct level){v, NULL});
    } else {
        json_decref(v);
    }
    return st;
}

/* Values of a tree; stops counting at `most`. */
static size_t count_values(const json_t *v, size_t most)
{
    size_t n = 1, i;
    const char *key;
    json_t *x;
    if (json_is_array(v)) {
        json_array_foreach(v, i, x)
        {
            n += n < most ? count_values(x, most - n) : 0;
        }
    } else if (json_is_object(v)) {
        void *it = json_object_iter((json_t *)(uintptr_t)v);
        for (; it && n < most; it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
            key = json_object_iter_key(it);
            n += key ? count_values(json_object_iter_value(it), most - n) : 0;
        }
    }
    return n;
}

static enum hv_status alias(struct reader *r, const yaml_event_t *e)
{
    for (size_t i = r->anchors.n; i > 0; i--) {
        struct anchor *a = &r->anchors.items[i - 1];
        if (strcmp(a->name, (const char *)e->data.alias.anchor) == 0) {
            for (size_t k = 0; k < r->open.n; k++) {
                if (r->open.items[k].v == a->v) {
                    return fail(r, &e->start_mark, "an alias that holds itself");
                }
            }
            r->values += count_values(a->v, HV__MAX_ITEMS);
            return place(r, json_deep_copy(a->v), e);
        }
    }
    return fail(r, &e->start_mark, "an alias without an anchor");
}

/* `<<: *base`: members of the base that the mapping does not have itself. */
static void merge(json_t *v)
{
    json_t *base = json_object_get(v, "<<");
    if (json_is_object(base)) {
        json_object_update_missing(v, base);
        json_object_del(v, "<<");
    }
}

static void close_level(struct reader *r)
{
    struct level *l = &r->open.items[--r->open.n];
    if (json_is_object(l->v)) {
        merge(l->v);
    }
    free(l->key);
    json_decref(l->v);
}

static enum hv_status take(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return scalar(r, e);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(r, json_array(), e->data.sequence_start.anchor, e);
    case YAML_MAPPING_START_EVENT:
        return open_level(r, json_object(), e->data.mapping_start.anchor, e);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_level(r);
        return HV_OK;
    case YAML_ALIAS_EVENT:
        return alias(r, e);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return HV_OK;
}

static enum hv_status read_all(struct reader *r)
{
    for (bool more = true; more;) {
        yaml_event_t e;
        if (!yaml_parser_parse(&r->parser, &e)) {
            return hv_err_at(r->err, HV_EINPUT, r->name, (unsigned)r->parser.problem_mark.line + 1,
                             (unsigned)r->parser.problem_mark.column + 1, "the YAML is broken: %s",
                             r->parser.problem ? r->parser.problem : "it ends too early");
        }
        more = e.type != YAML_STREAM_END_EVENT;
        enum hv_status st = take(r, &e);
        yaml_event_delete(&e);
        if (st != HV_OK) {
            return st;
        }
    }
    return HV_OK;
}

json_t *hv__yaml(const char *name, const char *text, size_t n, struct hv__line_list *lines,
                 struct hv_err *err)
{
    struct reader r = {.name = name, .lines = lines, .err = err, .documents = json_array()};
    json_t *out = NULL;
    if (!yaml_parser_initialize(&r.parser)) {
        hv_err_at(err, HV_EINTERNAL, name, 0, 0, "libyaml cannot be initialised");
        json_decref(r.documents);
        return NULL;
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
    if (read_all(&r) == HV_OK) {
        out = json_array_size(r.documents) == 1 ? json_array_get(r.documents, 0) : r.documents;
        json_incref(out);
    }
    while (r.open.n > 0) {
        close_level(&r);
    }
    for (size_t i = 0; i < r.anchors.n; i++) {
        free(r.anchors.items[i].name);
        json_decref(r.anchors.items[i].v);
    }
    json_decref(r.documents);
    hv_vec_free(&r.open);
    hv_vec_free(&r.anchors);
    yaml_parser_delete(&r.parser);
    return out;
}
