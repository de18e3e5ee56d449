/*
 * JSON documents and places in them: parsing by jansson, key paths, error messages.
 * Most texts are read by fast.c. The checks of single values are in check.c, positions in
 * locate.c, the wording of syntax errors in diagnose.c, the writer in write.c.
 */
#include "solver/base/json/json.h"

#include "solver/base/arena.h"
#include "solver/base/json/json_int.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True where the tree is within the limits that jansson does not check (depth, empty keys). */
static bool is_within_limits(json_t *v, size_t depth)
{
    const char *key;
    size_t i;
    json_t *child;
    if (!json_is_object(v) && !json_is_array(v)) {
        return true;
    }
    if (depth >= HV__JSON_DEPTH) {
        return false;
    }
    json_array_foreach(v, i, child)
    {
        if (!is_within_limits(child, depth + 1)) {
            return false;
        }
    }
    json_object_foreach(v, key, child)
    {
        if (!key[0] || !is_within_limits(child, depth + 1)) {
            return false;
        }
    }
    return true;
}

static enum hv_status parse_error(const char *text, size_t n, const char *name,
                                  const json_error_t *e, struct hv_err *err)
{
    bool dup = json_error_code(e) == json_error_duplicate_key;
    enum hv_status s =
        hv__json_diagnose(text, n, name, dup && e->position > 0 ? (size_t)e->position : 0, err);
    if (s != HV_OK) {
        return s;
    }
    return hv_err_at(err, HV_EINPUT, name, e->line > 0 ? (unsigned)e->line : 1,
                     e->column > 0 ? (unsigned)e->column : 1, "not JSON: %s", e->text);
}

/* Parses with jansson; NULL on an error, with its position. */
static json_t *parse_all(const char *text, size_t n, json_error_t *e)
{
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, e);
    if (root && !is_within_limits(root, 0)) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

enum hv_status hv_json_parse(struct hv_json *out, const char *text, size_t n, const char *name,
                             struct hv_err *err)
{
    *out = (struct hv_json){0};
    json_error_t e = {.line = 1, .column = 1};
    char *copy = hv_xmalloc(n + 1);
    if (n > 0) {
        memcpy(copy, text, n);
    }
    copy[n] = '\0';
    json_t *root = hv__json_fast(copy, n);
    if (!root) {
        root = parse_all(copy, n, &e);
    }
    if (!root) {
        enum hv_status st = parse_error(copy, n, name, &e, err);
        free(copy);
        return st;
    }
    *out =
        (struct hv_json){.root = root, .name = hv_xstrdup(name ? name : ""), .text = copy, .n = n};
    return HV_OK;
}

void hv_json_wrap(struct hv_json *out, json_t *root, const char *name)
{
    *out = (struct hv_json){.root = root, .name = hv_xstrdup(name ? name : "")};
}

void hv_json_free(struct hv_json *j)
{
    json_decref(j->root);
    free(j->name);
    free(j->text);
    *j = (struct hv_json){0};
}
