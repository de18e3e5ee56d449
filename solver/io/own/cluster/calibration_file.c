/*
 * Calibration files: the shares of their peaks that classes of devices reach. Devices are matched
 * to classes by name (solver/inventory/calibration).
 */
#include "solver/io/own/cluster/calibration_file.h"

#include "solver/io/own/doc/keys.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum hv_status read_parameters(const struct hv_jp *p, struct hv_calibration *c,
                                      struct hv_err *err)
{
    const char *names[HV_CALIBRATED_N];
    for (int i = 0; i < HV_CALIBRATED_N; i++) {
        names[i] = hv_calibrated_rows[i].name;
    }
    enum hv_status st = hv_jp_object(p, names, HV_CALIBRATED_N, err);
    for (int i = 0; st == HV_OK && i < HV_CALIBRATED_N; i++) {
        const struct hv_calibrated_row *r = &hv_calibrated_rows[i];
        st = hv_jp_opt_number(p, r->name, r->least, r->most, &c->v[i], err);
    }
    return st;
}

/* Half bands; a kind that the file does not give keeps that of devices without a class. */
static enum hv_status read_errors(const struct hv_jp *p, struct hv_calibration *c,
                                  struct hv_err *err)
{
    const char *names[HV_ERROR_N];
    struct hv_jp errors = hv_jp_get(p, "errors");
    if (hv_jp_none(&errors)) {
        return HV_OK;
    }
    for (int i = 0; i < HV_ERROR_N; i++) {
        names[i] = hv_error_name((enum hv_error_of)i);
    }
    enum hv_status st = hv_jp_object(&errors, names, HV_ERROR_N, err);
    for (int i = 0; st == HV_OK && i < HV_ERROR_N; i++) {
        st = hv_jp_opt_number(&errors, names[i], 0, HV_ERROR_MOST, &c->error[i], err);
    }
    return st;
}

static enum hv_status read_class(const struct hv_jp *p, struct hv_arena *arena,
                                 struct hv_calibration *c, struct hv_err *err)
{
    *c = *hv_calibration_generic();
    const struct {
        const char *key, *what;
        const char **to;
    } texts[] = {{"name", "the name of the class", &c->name},
                 {"devices", "prefixes of device names joined by commas", &c->devices},
                 {"source", "where the numbers come from", &c->source}};
    enum hv_status st = hv_keys_check(p, HV_KEYS_CALIBRATED_CLASS, err);
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(texts); i++) {
        struct hv_jp at = {0};
        const char *s = NULL;
        if ((st = hv_jp_need(p, texts[i].key, texts[i].what, &at, err)) == HV_OK &&
            (st = hv_jp_string(&at, &s, err)) == HV_OK) {
            *texts[i].to = hv_arena_strdup(arena, s);
        }
    }
    const char *like = NULL;
    if (st == HV_OK && (st = hv_jp_opt_string(p, "like", &like, err)) == HV_OK && like) {
        c->like = hv_arena_strdup(arena, like);
    }
    struct hv_jp numbers = {0};
    if (st == HV_OK) {
        st = hv_jp_need(p, "parameters", "an object of calibrated numbers", &numbers, err);
    }
    st = st ? st : read_parameters(&numbers, c, err);
    return st ? st : read_errors(p, c, err);
}

enum hv_status hv_calibration_add(struct hv_device_catalogue *c, const struct hv_json *json,
                                  struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(json), list = {0};
    size_t n = 0;
    enum hv_status st;
    if ((st = hv_jp_format(&root, "hetviz.calibration/1", err)) ||
        (st = hv_keys_check(&root, HV_KEYS_CALIBRATION, err)) ||
        (st = hv_jp_need(&root, "classes", "a list of calibrated classes", &list, err)) ||
        (st = hv_jp_array(&list, &n, err))) {
        return st;
    }
    struct hv_calibration *all = hv_arena_new(&c->arena, struct hv_calibration, c->n_classes + n);
    if (c->n_classes) {
        memcpy(all, c->classes, c->n_classes * sizeof *all);
    }
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_class(&at, &c->arena, &all[c->n_classes + i], err);
    }
    if (st == HV_OK) {
        c->classes = all;
        c->n_classes += n;
    }
    return st;
}

const struct hv_calibration *hv_calibration_find(const struct hv_device_catalogue *c,
                                                 const char *device)
{
    for (size_t i = 0; i < c->n_classes; i++) {
        if (hv_calibration_matches(&c->classes[i], device)) {
            return &c->classes[i];
        }
    }
    return hv_calibration_typical();
}

/* Four significant digits: more than the accuracy of any of these parameters. */
static double rounded(double x)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.4g", x);
    return strtod(text, NULL);
}

static json_t *errors_tree(const struct hv_calibration *c)
{
    json_t *errors = json_object();
    for (int i = 0; i < HV_ERROR_N; i++) {
        double half = rounded(fmin(c->error[i], HV_ERROR_MOST));
        if (half != hv_calibration_typical()->error[i]) {
            json_object_set_new(errors, hv_error_name((enum hv_error_of)i), hv_json_num(half));
        }
    }
    return errors;
}

static json_t *class_tree(const struct hv_calibration *c)
{
    json_t *numbers = json_object();
    for (int i = 0; i < HV_CALIBRATED_N; i++) {
        const struct hv_calibrated_row *r = &hv_calibrated_rows[i];
        double v = fmin(fmax(rounded(c->v[i]), r->least), r->most);
        if (v != rounded(r->plain)) {
            json_object_set_new(numbers, r->name, hv_json_num(v));
        }
    }
    json_t *t =
        json_pack("{s:s, s:s, s:s}", "name", c->name, "devices", c->devices, "source", c->source);
    if (c->like) {
        json_object_set_new(t, "like", json_string(c->like));
    }
    json_object_set_new(t, "parameters", numbers);
    json_t *errors = errors_tree(c);
    if (json_object_size(errors) > 0) {
        json_object_set(t, "errors", errors);
    }
    json_decref(errors);
    return t;
}

json_t *hv_calibration_tree(const struct hv_calibration *classes, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, class_tree(&classes[i]));
    }
    return json_pack("{s:s, s:o}", "format", "hetviz.calibration/1", "classes", list);
}
