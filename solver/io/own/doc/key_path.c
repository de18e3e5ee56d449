/*
 * Key paths: reading "cluster.nodes[0].count" and making a tree that differs at one place. Trees
 * are immutable; equal subtrees are shared, so a thousand undo steps need little memory.
 */
#include "solver/io/own/doc/key_path.h"

#include <stdlib.h>
#include <string.h>

const char *hv_doc_name(enum hv_doc d)
{
    static const char *const names[] = {
#define X(c, name) name,
        HV_DOC_MAP(X)
#undef X
    };
    return (unsigned)d < HV_DOC_N ? names[d] : "?";
}

static const char *const doc_words[] = {
#define X(c, name) name,
    HV_DOC_MAP(X)
#undef X
};

static enum hv_status parse_doc(const char **at, enum hv_doc *out, struct hv_err *err)
{
    size_t n = strcspn(*at, ".[");
    for (int d = 0; d < HV_DOC_N; d++) {
        if (strlen(doc_words[d]) == n && memcmp(*at, doc_words[d], n) == 0) {
            *out = (enum hv_doc)d;
            *at += n;
            return HV_OK;
        }
    }
    char word[40] = "";
    memcpy(word, *at, n < sizeof word - 1 ? n : sizeof word - 1);
    const char *near = hv_suggest(word, doc_words, HV_DOC_N);
    return hv_err_set(
        err, HV_EUSAGE,
        "a key path begins with cluster, model, job or strategies, found \"%s\"%s%s%s", word,
        near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* "[12]" or "[\"any key\"]", after the bracket. */
static bool parse_bracket(struct hv_arena *a, const char **at, struct hv_key_path_part *out)
{
    const char *p = *at;
    if (*p == '"') {
        struct hv_str key = {0};
        for (p++; *p != '\0' && *p != '"'; p++) {
            if (*p == '\\' && p[1] != '\0') {
                p++;
            }
            hv_str_addc(&key, *p);
        }
        out->name = hv_arena_strndup(a, hv_str_cstr(&key), key.n);
        bool ok = key.n > 0 && p[0] == '"' && p[1] == ']';
        hv_str_free(&key);
        *at = p + 2 * ok;
        return ok;
    }
    size_t digits = strspn(p, "0123456789");
    if (digits == 0 || digits > 9 || p[digits] != ']') {
        return false;
    }
    out->index = strtoul(p, NULL, 10);
    *at = p + digits + 1;
    return true;
}

enum hv_status hv_key_path_parse(struct hv_arena *a, const char *text, struct hv_key_path *out,
                                 struct hv_err *err)
{
    const char *at = text;
    *out = (struct hv_key_path){.keys = hv_arena_new(a, struct hv_key_path_part, strlen(text) + 1)};
    enum hv_status st = parse_doc(&at, &out->doc, err);
    while (st == HV_OK && *at != '\0') {
        struct hv_key_path_part *key = &out->keys[out->n++];
        bool ok = false;
        if (*at == '[') {
            at++;
            ok = parse_bracket(a, &at, key);
        } else if (*at == '.') {
            size_t n = strcspn(++at, ".[");
            ok = n > 0;
            key->name = hv_arena_strndup(a, at, n);
            at += n;
        }
        if (!ok) {
            st = hv_err_set(err, HV_EUSAGE,
                            "expected a key path such as cluster.nodes[0].count, found \"%.100s\"",
                            text);
        } else if (out->n > 100) {
            st = hv_err_set(err, HV_EUSAGE, "a key path of more than 100 keys");
        }
    }
    return st;
}

static json_t *child(json_t *v, const struct hv_key_path_part *key)
{
    return key->name != NULL ? json_object_get(v, key->name) : json_array_get(v, key->index);
}

json_t *hv_key_path_find(json_t *root, const struct hv_key_path *p)
{
    for (size_t i = 0; i < p->n && root != NULL; i++) {
        root = child(root, &p->keys[i]);
    }
    return root;
}

/* The first n keys as text, for messages. */
static void path_text(const struct hv_key_path *p, size_t n, struct hv_str *out)
{
    hv_str_adds(out, hv_doc_name(p->doc));
    for (size_t i = 0; i < n; i++) {
        if (p->keys[i].name != NULL) {
            hv_str_addf(out, ".%s", p->keys[i].name);
        } else {
            hv_str_addf(out, "[%zu]", p->keys[i].index);
        }
    }
}

/* Reports the error that key number i does not exist in v. */
static enum hv_status lost(const struct hv_key_path *p, size_t i, json_t *v, struct hv_err *err)
{
    struct hv_str where = {0};
    const struct hv_key_path_part *key = &p->keys[i];
    path_text(p, i, &where);
    if (key->name == NULL && json_is_array(v)) {
        hv_err_set(err, HV_EUSAGE, "%.300s has %zu elements, there is no [%zu]",
                   hv_str_cstr(&where), json_array_size(v), key->index);
    } else if (key->name != NULL && json_is_object(v)) {
        const char *names[64], *name;
        size_t n = 0;
        json_t *member;
        json_object_foreach(v, name, member)
        {
            if (n < HV_COUNT(names)) {
                names[n++] = name;
            }
        }
        const char *near = hv_suggest(key->name, names, n);
        hv_err_set(err, HV_EUSAGE, "%.300s has no member \"%.80s\"%s%.80s%s", hv_str_cstr(&where),
                   key->name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    } else {
        hv_err_set(err, HV_EUSAGE, "%.300s is not %s", hv_str_cstr(&where),
                   key->name != NULL ? "an object with members" : "a list");
    }
    hv_str_free(&where);
    return HV_EUSAGE;
}

/* The change itself at the last key; `copy` is a fresh shallow copy of its parent. */
static bool change_here(json_t *copy, const struct hv_key_path_part *key,
                        enum hv_key_path_edit change, json_t *value)
{
    if (key->name != NULL && json_is_object(copy)) {
        if (change == HV_KEY_PATH_REMOVE) {
            return json_object_del(copy, key->name) == 0;
        }
        return change == HV_KEY_PATH_SET && json_object_set(copy, key->name, value) == 0;
    }
    if (key->name != NULL || !json_is_array(copy)) {
        return false;
    }
    switch (change) {
    case HV_KEY_PATH_SET:
        return json_array_set(copy, key->index, value) == 0;
    case HV_KEY_PATH_REMOVE:
        return json_array_remove(copy, key->index) == 0;
    case HV_KEY_PATH_INSERT:
        return json_array_insert(copy, key->index, value) == 0;
    }
    return false;
}

static enum hv_status change_below(json_t *v, const struct hv_key_path *p, size_t i,
                                   enum hv_key_path_edit change, json_t *value, json_t **out,
                                   struct hv_err *err)
{
    const struct hv_key_path_part *key = &p->keys[i];
    json_t *copy = json_copy(v), *below = NULL;
    enum hv_status st = HV_OK;
    if (i + 1 == p->n) {
        st = change_here(copy, key, change, value) ? HV_OK : lost(p, i, v, err);
    } else {
        json_t *next = child(v, key);
        /* a missing optional member is created where a value inside it is set */
        bool make = next == NULL && key->name != NULL && json_is_object(v) &&
                    change == HV_KEY_PATH_SET && p->keys[i + 1].name != NULL;
        json_t *made = make ? json_object() : NULL;
        next = make ? made : next;
        st = next != NULL ? change_below(next, p, i + 1, change, value, &below, err)
                          : lost(p, i, v, err);
        if (st == HV_OK) {
            change_here(copy, key, HV_KEY_PATH_SET, below);
        }
        json_decref(below);
        json_decref(made);
    }
    if (st != HV_OK) {
        json_decref(copy);
        copy = NULL;
    }
    *out = copy;
    return st;
}

enum hv_status hv_key_path_change(json_t *root, const struct hv_key_path *p,
                                  enum hv_key_path_edit change, json_t *value, json_t **out,
                                  struct hv_err *err)
{
    *out = NULL;
    if (p->n > 0) {
        return change_below(root, p, 0, change, value, out, err);
    }
    if (change != HV_KEY_PATH_SET) {
        return hv_err_set(err, HV_EUSAGE, "%s is a whole document: it can only be replaced",
                          hv_doc_name(p->doc));
    }
    *out = json_incref(value);
    return HV_OK;
}

enum hv_status hv_value_parse(const char *text, json_t **out, struct hv_err *err)
{
    struct hv_json json = {0};
    struct hv_err why;
    *out = NULL;
    while (*text == ' ' || *text == '\t') {
        text++;
    }
    if (*text == '\0') {
        return hv_err_set(err, HV_EUSAGE, "expected a value: JSON or a word");
    }
    enum hv_status st = hv_json_parse(&json, text, strlen(text), "value", &why);
    if (st == HV_OK) {
        *out = json_incref(json.root);
        hv_json_free(&json);
        return HV_OK;
    }
    if (strchr("[{\"", *text) != NULL) {
        if (err != NULL) {
            *err = why;
        }
        return st;
    }
    *out = json_string(text);
    return *out != NULL ? HV_OK : hv_err_set(err, HV_EUSAGE, "the value is not valid UTF-8");
}
