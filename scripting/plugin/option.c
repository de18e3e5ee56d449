/*
 * Values of plugin options: from KEY=VALUE or JSON to a checked object with defaults. The rows of
 * options are read in meta.c.
 */
#include "scripting/plugin/plugin.h"
#include "solver/base/json/json.h"
#include "solver/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hv_option_row *find_row(const struct hv_plugin *p, const char *key,
                                            struct hv_err *err)
{
    const char *names[128];
    size_t n = 0;

    for (size_t i = 0; i < p->n_options; i++) {
        if (strcmp(p->options[i].key, key) == 0) {
            return &p->options[i];
        }
        if (n < HV_COUNT(names)) {
            names[n++] = p->options[i].key;
        }
    }
    const char *near = hv_suggest(key, names, n);
    if (near != NULL) {
        hv_err_set(err, HV_EUSAGE, "%s: unknown option '%s', did you mean '%s'?", p->id, key, near);
    } else {
        hv_err_set(err, HV_EUSAGE, "%s: unknown option '%s' (see `hetviz strategies %s`)", p->id,
                   key, p->id);
    }
    return NULL;
}

static enum hv_status bad_value(const struct hv_plugin *p, const struct hv_option_row *o,
                                const json_t *v, struct hv_err *err)
{
    char found[80], range[120] = "";
    struct hv_str all = {0};

    if (o->type == HV_OPTION_CHOICE) {
        hv_str_adds(&all, "one of ");
        for (size_t i = 0; i < o->n_choices; i++) {
            hv_str_addf(&all, "%s%s", i > 0 ? ", " : "", o->choices[i]);
        }
    } else {
        hv_str_adds(&all, o->type == HV_OPTION_INTEGER   ? "a whole number"
                          : o->type == HV_OPTION_NUMBER  ? "a number"
                          : o->type == HV_OPTION_BOOLEAN ? "true or false"
                                                         : "a text");
    }
    if (hv_known(o->min) && hv_known(o->max)) {
        snprintf(range, sizeof range, " from %.17g to %.17g", o->min, o->max);
    } else if (hv_known(o->min)) {
        snprintf(range, sizeof range, " of at least %.17g", o->min);
    } else if (hv_known(o->max)) {
        snprintf(range, sizeof range, " of at most %.17g", o->max);
    }
    enum hv_status s =
        hv_err_set(err, HV_EUSAGE, "%s: option %s: expected %s%s, found '%s'", p->id, o->key,
                   hv_str_cstr(&all), range, hv_option_text(v, found, sizeof found));
    hv_str_free(&all);
    return s;
}

static bool in_range(const struct hv_option_row *o, double x)
{
    return isfinite(x) && !(hv_known(o->min) && x < o->min) && !(hv_known(o->max) && x > o->max);
}

static bool fits(const struct hv_option_row *o, const json_t *v)
{
    switch (o->type) {
    case HV_OPTION_INTEGER:
        return json_is_number(v) && in_range(o, json_number_value(v)) &&
               json_number_value(v) == floor(json_number_value(v));
    case HV_OPTION_NUMBER:
        return json_is_number(v) && in_range(o, json_number_value(v));
    case HV_OPTION_BOOLEAN:
        return json_is_boolean(v);
    case HV_OPTION_STRING:
    case HV_OPTION_SCHEDULE: /* the run checks this name, which is not known here */
        return json_is_string(v);
    case HV_OPTION_CHOICE:
        for (size_t i = 0; json_is_string(v) && i < o->n_choices; i++) {
            if (strcmp(o->choices[i], json_string_value(v)) == 0) {
                return true;
            }
        }
        return false;
    case HV_OPTION_TYPE_N:
        break;
    }
    return false;
}

enum hv_status hv_options_check(const struct hv_plugin *p, const json_t *given, json_t **out,
                                struct hv_err *err)
{
    json_t *o = json_object();

    *out = NULL;
    for (void *it = json_object_iter((json_t *)(uintptr_t)given); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)given, it)) {
        if (find_row(p, json_object_iter_key(it), err) == NULL) {
            json_decref(o);
            return HV_EUSAGE;
        }
    }
    for (size_t i = 0; i < p->n_options; i++) {
        const struct hv_option_row *row = &p->options[i];
        const json_t *v = json_object_get(given, row->key);
        if (v == NULL || json_is_null(v)) {
            v = row->def;
        }
        if (v == NULL) {
            continue;
        }
        if (!fits(row, v)) {
            json_decref(o);
            return bad_value(p, row, v, err);
        }
        json_object_set_new(o, row->key, json_copy((json_t *)(uintptr_t)v));
    }
    *out = o;
    return HV_OK;
}

/** Value of a text by the row's type; a text that is not of the type stays a text and fails the
 * check. */
static json_t *typed(const struct hv_option_row *o, const char *text)
{
    char *end = NULL;

    if (o->type == HV_OPTION_INTEGER || o->type == HV_OPTION_NUMBER) {
        errno = 0;
        double x = strtod(text, &end);
        if (end != text && *end == '\0' && isfinite(x) && strpbrk(text, "xX ") == NULL) {
            return hv_json_num(x);
        }
    }
    if (o->type == HV_OPTION_BOOLEAN) {
        if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || strcmp(text, "yes") == 0) {
            return json_true();
        }
        if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0 || strcmp(text, "no") == 0) {
            return json_false();
        }
    }
    json_t *s = json_string(text);
    return s != NULL ? s : json_null();
}

enum hv_status hv_options_parse(const struct hv_plugin *p, const char *const *texts, size_t n,
                                json_t **out, struct hv_err *err)
{
    json_t *given = json_object();
    enum hv_status s = HV_OK;

    *out = NULL;
    for (size_t i = 0; i < n && s == HV_OK; i++) {
        char key[128];
        size_t len = strcspn(texts[i], "=");
        if (texts[i][len] != '=' || len == 0 || len >= sizeof key) {
            s = hv_err_set(err, HV_EUSAGE, "%s: expected KEY=VALUE, found '%s'", p->id, texts[i]);
            break;
        }
        memcpy(key, texts[i], len);
        key[len] = '\0';
        const struct hv_option_row *row = find_row(p, key, err);
        if (row == NULL) {
            s = HV_EUSAGE;
        } else {
            json_object_set_new(given, key, typed(row, texts[i] + len + 1));
        }
    }
    if (s == HV_OK) {
        s = hv_options_check(p, given, out, err);
    }
    json_decref(given);
    return s;
}

const char *hv_option_text(const json_t *value, char *buf, size_t cap)
{
    if (json_is_string(value)) {
        snprintf(buf, cap, "%s", json_string_value(value));
    } else if (json_is_boolean(value)) {
        snprintf(buf, cap, "%s", json_is_true(value) ? "true" : "false");
    } else if (json_is_number(value)) {
        hv_fmt_double(buf, cap, json_number_value(value));
    } else {
        snprintf(buf, cap, "%s", "");
    }
    return buf;
}
