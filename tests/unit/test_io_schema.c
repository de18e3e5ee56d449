/*
 * The JSON Schemas agree with the readers: same members for every object, and every shipped file
 * passes a validator that knows the keywords the schemas use (and fails on one it does not know).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/io/own/doc/keys.h"
#include <dirent.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *load(const char *name)
{
    struct hv_str path = {0}, text = {0};
    struct hv_json j = {0};
    struct hv_err e = {0};
    if (hv_data_path(&path, name, &e) || hv_file_read(hv_str_cstr(&path), &text, &e) ||
        hv_json_parse(&j, hv_str_cstr(&text), text.n, name, &e)) {
        fail_msg("%s: %s", name, e.text);
    }
    json_t *root = json_incref(j.root);
    hv_json_free(&j);
    hv_str_free(&path);
    hv_str_free(&text);
    return root;
}

static json_t *load_schema(const char *kind)
{
    char name[128];
    snprintf(name, sizeof name, "share/schema/%s.schema.json", kind);
    return load(name);
}

/* "/$defs/x" inside the schema. */
static json_t *follow(json_t *root, const char *pointer)
{
    if (*pointer == '\0') {
        return root;
    }
    assert_int_equal(strncmp(pointer, "/$defs/", 7), 0);
    return json_object_get(json_object_get(root, "$defs"), pointer + 7);
}

static void same_members(void **state)
{
    (void)state;
    for (int k = 0; k < HV_KEYS_N; k++) {
        const struct hv_key_set *set = hv_keys_of((enum hv_keys)k);
        json_t *root = load_schema(set->schema), *o = follow(root, set->where);
        json_t *properties = json_object_get(o, "properties");
        if (!json_is_false(json_object_get(o, "additionalProperties"))) {
            fail_msg("%s%s is open", set->schema, set->where);
        }
        for (size_t i = 0; i < set->n; i++) {
            if (!json_object_get(properties, set->keys[i])) {
                fail_msg("%s%s lacks %s", set->schema, set->where, set->keys[i]);
            }
        }
        assert_int_equal(json_object_size(properties), set->n);
        json_decref(root);
    }
}

static bool has_type(json_t *v, const char *t)
{
    double x = json_number_value(v);
    return (!strcmp(t, "object") && json_is_object(v)) ||
           (!strcmp(t, "array") && json_is_array(v)) ||
           (!strcmp(t, "string") && json_is_string(v)) || (!strcmp(t, "null") && json_is_null(v)) ||
           (!strcmp(t, "boolean") && json_is_boolean(v)) ||
           (!strcmp(t, "number") && json_is_number(v)) ||
           (!strcmp(t, "integer") && json_is_number(v) && x == (double)(long long)x);
}

static bool valid(json_t *root, json_t *schema, json_t *v);

static bool type_ok(json_t *type, json_t *v)
{
    if (json_is_string(type)) {
        return has_type(v, json_string_value(type));
    }
    for (size_t i = 0; i < json_array_size(type); i++) {
        if (has_type(v, json_string_value(json_array_get(type, i)))) {
            return true;
        }
    }
    return false;
}

static bool member_ok(json_t *root, json_t *schema, const char *key, json_t *v)
{
    json_t *p = json_object_get(json_object_get(schema, "properties"), key);
    json_t *more = json_object_get(schema, "additionalProperties");
    if (p) {
        return valid(root, p, v);
    }
    if (json_object_get(schema, "patternProperties") && strncmp(key, "x-", 2) == 0) {
        return true;
    }
    return json_is_object(more) ? valid(root, more, v) : !json_is_false(more);
}

static bool members_ok(json_t *root, json_t *schema, json_t *v)
{
    const char *key;
    json_t *m;
    json_object_foreach(v, key, m)
    {
        if (!member_ok(root, schema, key, m)) {
            return false;
        }
    }
    return true;
}

static bool any_of(json_t *root, json_t *list, json_t *v)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (valid(root, json_array_get(list, i), v)) {
            return true;
        }
    }
    return false;
}

static bool in_list(json_t *list, json_t *v)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (json_equal(json_array_get(list, i), v)) {
            return true;
        }
    }
    return false;
}

static bool matches(const char *pattern, const char *s)
{
    regex_t r;
    assert_int_equal(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool ok = regexec(&r, s, 0, NULL, 0) == 0;
    regfree(&r);
    return ok;
}

static bool items_ok(json_t *root, json_t *schema, json_t *v)
{
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!valid(root, schema, json_array_get(v, i))) {
            return false;
        }
    }
    return true;
}

static bool all_there(json_t *names, json_t *v)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        if (!json_object_get(v, json_string_value(json_array_get(names, i)))) {
            return false;
        }
    }
    return true;
}

static bool size_ok(const char *k, double x, json_t *v)
{
    double n = json_number_value(v), items = (double)json_array_size(v);
    return (strcmp(k, "minimum") || !json_is_number(v) || n >= x) &&
           (strcmp(k, "maximum") || !json_is_number(v) || n <= x) &&
           (strcmp(k, "minItems") || !json_is_array(v) || items >= x) &&
           (strcmp(k, "maxItems") || !json_is_array(v) || items <= x) &&
           (strcmp(k, "minProperties") || !json_is_object(v) || (double)json_object_size(v) >= x) &&
           (strcmp(k, "minLength") || !json_is_string(v) || (double)json_string_length(v) >= x);
}

static bool keyword_ok(json_t *root, json_t *schema, const char *k, json_t *a, json_t *v)
{
    static const char *const silent[] = {
        "$schema", "$defs", "title", "description", "patternProperties", "additionalProperties"};
    static const char *const sizes[] = {"minimum",  "maximum",       "minItems",
                                        "maxItems", "minProperties", "minLength"};
    for (size_t i = 0; i < HV_COUNT(silent); i++) {
        if (strcmp(k, silent[i]) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < HV_COUNT(sizes); i++) {
        if (strcmp(k, sizes[i]) == 0) {
            return size_ok(k, json_number_value(a), v);
        }
    }
    if (strcmp(k, "$ref") == 0) {
        return valid(root, follow(root, json_string_value(a) + 1), v);
    }
    if (strcmp(k, "type") == 0) {
        return type_ok(a, v);
    }
    if (strcmp(k, "properties") == 0) {
        return !json_is_object(v) || members_ok(root, schema, v);
    }
    if (strcmp(k, "required") == 0) {
        return !json_is_object(v) || all_there(a, v);
    }
    if (strcmp(k, "items") == 0) {
        return items_ok(root, a, v);
    }
    if (strcmp(k, "anyOf") == 0) {
        return any_of(root, a, v);
    }
    if (strcmp(k, "not") == 0) {
        return !valid(root, a, v);
    }
    if (strcmp(k, "enum") == 0) {
        return in_list(a, v);
    }
    if (strcmp(k, "const") == 0) {
        return json_equal(a, v);
    }
    if (strcmp(k, "pattern") == 0) {
        return !json_is_string(v) || matches(json_string_value(a), json_string_value(v));
    }
    fail_msg("the validator does not know \"%s\"", k);
    return false;
}

static bool valid(json_t *root, json_t *schema, json_t *v)
{
    const char *k;
    json_t *a;
    assert_non_null(schema);
    json_object_foreach(schema, k, a)
    {
        if (!keyword_ok(root, schema, k, a, v)) {
            return false;
        }
    }
    return json_object_get(schema, "properties") || !json_is_object(v) ||
           members_ok(root, schema, v);
}

/* Writing what was read gives the same content, and the same bytes when read once more. */
static void check_round_trip(json_t *v, const char *name)
{
    struct hv_str a = {0}, b = {0};
    struct hv_json j = {0};
    hv_json_write(&a, v, true);
    if (hv_json_parse(&j, hv_str_cstr(&a), a.n, name, NULL)) {
        fail_msg("%s does not read back", name);
    }
    assert_true(json_equal(v, j.root));
    hv_json_write(&b, j.root, true);
    assert_string_equal(hv_str_cstr(&a), hv_str_cstr(&b));
    hv_json_free(&j);
    hv_str_free(&a);
    hv_str_free(&b);
}

static void check_folder(const char *folder, const char *kind, const char *inner)
{
    struct hv_str path = {0};
    assert_int_equal(hv_data_path(&path, folder, NULL), HV_OK);
    json_t *schema = load_schema(kind);
    DIR *d = opendir(hv_str_cstr(&path));
    assert_non_null(d);
    int n = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char name[512];
        const char *dot = strrchr(e->d_name, '.');
        if (e->d_name[0] == '.' || (!*inner && (!dot || strcmp(dot, ".json") != 0))) {
            continue;
        }
        snprintf(name, sizeof name, "%s/%s%s", folder, e->d_name, inner);
        json_t *v = load(name);
        if (!valid(schema, schema, v)) {
            fail_msg("%s does not fit its schema", name);
        }
        check_round_trip(v, name);
        json_decref(v);
        n++;
    }
    assert_true(n > 0);
    closedir(d);
    json_decref(schema);
    hv_str_free(&path);
}

static void shipped_files_fit(void **state)
{
    (void)state;
    check_folder("share/devices", "devices", "");
    check_folder("share/calibration", "calibration", "");
    check_folder("share/profiles", "profile", "");
    check_folder("share/validation", "validation", "");
    check_folder("share/models", "model", "");
    check_folder("samples/models", "model", "");
    check_folder("samples/clusters", "cluster", "");
    check_folder("samples/jobs", "job", "");
    check_folder("samples/instances", "instance", "");
    check_folder("samples/workspaces", "workspace", "/workspace.json");
}

static void wrong_files_do_not(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *text;
    } rows[] = {
        {"cluster", "{\"format\": \"hetviz.cluster/1\", \"nodes\": []}"},
        {"cluster",
         "{\"format\": \"hetviz.cluster/1\", \"nodes\": [{\"name\": \"a\", \"cuont\": 1}]}"},
        {"cluster", "{\"format\": \"hetviz.job/1\", \"nodes\": [{\"name\": \"a\"}]}"},
        {"job", "{\"format\": \"hetviz.job/1\", \"global_batch\": 0}"},
        {"job", "{\"format\": \"hetviz.job/1\", \"precision\": \"bf17\"}"},
        {"instance", "{\"format\": \"hetviz.partition/1\", \"kind\": \"chain\", \"layers\": 3}"},
        {"instance", "{\"format\": \"hetviz.distribute/1\", \"totel\": 3}"},
        {"model", "{\"format\": \"hetviz.model/1\", \"layers\": 3}"},
        {"validation", "{\"format\": \"hetviz.validation/1\", \"rows\": [{\"id\": \"a\"}]}"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        json_t *schema = load_schema(rows[i].kind), *v = json_loads(rows[i].text, 0, NULL);
        assert_non_null(v);
        if (valid(schema, schema, v)) {
            fail_msg("row %zu fits", i);
        }
        json_decref(v);
        json_decref(schema);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_members),
                                       cmocka_unit_test(shipped_files_fit),
                                       cmocka_unit_test(wrong_files_do_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
