/* Axes: their names and places, and their values as lists or ranges. */
#include "solver/sweep/sweep_int.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/sweep/figures.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { VALUES_MAX = 1000000, NAME_MAX_BYTES = 64, LABEL_MAX_BYTES = 200 };

static uint64_t hash_of(const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    uint64_t h = text != NULL ? hv_hash(HV_HASH_START, text, strlen(text)) : 0;
    free(text);
    return h;
}

/** A number or word as it is shown; NULL for lists and objects, which need a label. */
static const char *plain_label(struct hv_arena *a, const json_t *v)
{
    char number[HV_FMT_CAP];
    if (json_is_string(v)) {
        return hv_arena_strndup(a, json_string_value(v), strlen(json_string_value(v)));
    }
    if (json_is_number(v)) {
        (void)hv_fmt_double(number, sizeof number, json_number_value(v));
        return hv_arena_strndup(a, number, strlen(number));
    }
    return json_is_boolean(v) ? (json_is_true(v) ? "true" : "false")
           : json_is_null(v)  ? "null"
                              : NULL;
}

/** True for an object {"label", "value"}. */
static bool is_labelled(const json_t *v)
{
    return json_is_object(v) && json_object_size(v) == 2 && json_object_get(v, "value") != NULL &&
           json_is_string(json_object_get(v, "label"));
}

/** Adds a value. Takes the reference, also on failure. */
static enum hv_status add_value(struct hv_sweep *s, struct hv_sweep_axis *a, const struct hv_jp *at,
                                const char *label, json_t *value, struct hv_err *err)
{
    struct hv_sweep_value v = {.label = label, .value = value, .hash = hash_of(value)};
    enum hv_status st = HV_OK;

    if (v.label == NULL) {
        v.label = plain_label(&s->arena, value);
    }
    if (v.label == NULL) {
        st = hv_jp_fail(at, err,
                        "a value that is a list or an object needs a label: "
                        "{\"label\": \"short\", \"value\": …}");
    } else if (strlen(v.label) > LABEL_MAX_BYTES) {
        st = hv_jp_fail(at, err, "a label of at most %d bytes is expected", LABEL_MAX_BYTES);
    }
    if (st != HV_OK) {
        json_decref(value);
        return st;
    }
    a->values[a->n++] = v;
    a->numeric = a->numeric && json_is_number(value);
    return HV_OK;
}

/** A listed value: any JSON, with a label where one is given; a document where the place is one. */
static enum hv_status read_value(struct hv_sweep *s, struct hv_sweep_axis *a,
                                 const struct hv_jp *given, const char *folder, struct hv_err *err)
{
    bool labelled = is_labelled(given->v);
    struct hv_jp at = labelled ? hv_jp_get(given, "value") : *given;
    const char *label = labelled ? json_string_value(json_object_get(given->v, "label")) : NULL;
    json_t *value = NULL;

    if (a->option != NULL || a->path.n > 0) {
        return add_value(s, a, given, label, json_incref(at.v), err);
    }
    if (label == NULL && json_is_string(at.v)) {
        label = json_string_value(at.v);
    }
    enum hv_status st = hv__sweep_document(a->path.doc, &at, folder, &value, err);
    return st == HV_OK ? add_value(s, a, given, label, value, err) : st;
}

static int by_label(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** Refuses two values of one label, which nobody could tell apart. O(n log n). */
static enum hv_status check_labels(const struct hv_sweep_axis *a, const struct hv_jp *list,
                                   struct hv_err *err)
{
    const char **labels = hv_xcalloc(a->n, sizeof *labels);
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < a->n; i++) {
        labels[i] = a->values[i].label;
    }
    qsort(labels, a->n, sizeof *labels, by_label);
    for (size_t i = 1; i < a->n && st == HV_OK; i++) {
        if (strcmp(labels[i - 1], labels[i]) == 0) {
            st = hv_jp_fail(list, err, "the axis %s has %s twice", a->name, labels[i]);
        }
    }
    free(labels);
    return st;
}

static enum hv_status read_list(struct hv_sweep *s, struct hv_sweep_axis *a,
                                const struct hv_jp *list, const char *folder, struct hv_err *err)
{
    size_t n = 0;
    enum hv_status st = hv_jp_array(list, &n, err);
    if (st == HV_OK && (n == 0 || n > VALUES_MAX)) {
        return hv_jp_fail(list, err, "expected 1 to %d values, found %zu", VALUES_MAX, n);
    }
    a->values = hv_arena_new(&s->arena, struct hv_sweep_value, n);
    for (size_t i = 0; i < n && st == HV_OK; i++) {
        struct hv_jp at = hv_jp_at(list, i);
        st = read_value(s, a, &at, folder, err);
    }
    return st == HV_OK ? check_labels(a, list, err) : st;
}

/** from, to and a step or a factor. */
static enum hv_status read_range(struct hv_sweep *s, struct hv_sweep_axis *a,
                                 const struct hv_jp *at, struct hv_err *err)
{
    double from = 0, to = 0, step = 0, times = 0;
    struct hv_jp member;
    enum hv_status st = hv_jp_need(at, "from", "a number (or `values`)", &member, err);
    st = st == HV_OK ? hv_jp_number(&member, -1e15, 1e15, &from, err) : st;
    st = st == HV_OK ? hv_jp_need(at, "to", "a number", &member, err) : st;
    st = st == HV_OK ? hv_jp_number(&member, -1e15, 1e15, &to, err) : st;
    st = st == HV_OK ? hv_jp_opt_number(at, "step", 1e-9, 1e15, &step, err) : st;
    st = st == HV_OK ? hv_jp_opt_number(at, "times", 1.0 + 1e-9, 1e15, &times, err) : st;
    if (st != HV_OK) {
        return st;
    }
    if (step > 0 && times > 0) {
        return hv_jp_fail(at, err, "a range has a `step` or `times`, not both");
    }
    if (to < from || (times > 0 && from <= 0)) {
        return hv_jp_fail(at, err,
                          times > 0 && from <= 0 ? "a range that multiplies starts above 0"
                                                 : "a range goes upwards: `to` is below `from`");
    }
    step = step > 0 || times > 0 ? step : 1;
    /* a value that rounding puts a little above the end belongs to the range */
    double slack = 1e-9 * fmax(1, fabs(to));
    double n = times > 0 ? floor(log((to + slack) / from) / log(times)) + 1
                         : floor((to + slack - from) / step) + 1;
    if (n > VALUES_MAX) {
        return hv_jp_fail(at, err, "the range has more than %d values", VALUES_MAX);
    }
    a->values = hv_arena_new(&s->arena, struct hv_sweep_value, (size_t)n);
    for (size_t i = 0; i < (size_t)n && st == HV_OK; i++) {
        double x = times > 0 ? from * pow(times, (double)i) : from + step * (double)i;
        double whole = nearbyint(x);
        bool is_whole = fabs(x - whole) <= 1e-9 * fmax(1, fabs(x));
        st = add_value(s, a, at, NULL, hv_json_num(is_whole ? whole : x), err);
    }
    return st;
}

/** A name that can be a column of a table, and no figure of a result. */
static enum hv_status check_name(const struct hv_sweep *s, const char *name, const struct hv_jp *at,
                                 struct hv_err *err)
{
    bool ok = isalpha((unsigned char)name[0]) != 0 && strlen(name) <= NAME_MAX_BYTES;
    for (const char *p = name; *p != '\0'; p++) {
        ok = ok && (isalnum((unsigned char)*p) != 0 || *p == '_');
    }
    if (!ok) {
        return hv_jp_fail(at, err,
                          "the name of an axis begins with a letter and has letters, "
                          "digits and _ only, found \"%.80s\"",
                          name);
    }
    if (hv_sweep_is_column(name)) {
        return hv_jp_fail(at, err, "%s is a column of every result; call the axis differently",
                          name);
    }
    for (size_t i = 0; i < s->n_axes; i++) {
        if (strcasecmp(s->axes[i].name, name) == 0) {
            return hv_jp_fail(at, err, "two axes are called %s", name);
        }
    }
    return HV_OK;
}

/** The name that an axis has where none is given: the last key of its place. */
static const char *name_of_place(struct hv_arena *a, const char *place)
{
    const char *dot = strrchr(place, '.');
    const char *last = dot != NULL ? dot + 1 : place;
    return hv_arena_strndup(a, last, strcspn(last, "["));
}

static enum hv_status read_place(struct hv_sweep *s, struct hv_sweep_axis *a,
                                 const struct hv_jp *at, struct hv_err *err)
{
    static const char prefix[] = "options.";
    enum hv_status st = hv_jp_string(at, &a->at, err);
    if (st != HV_OK) {
        return st;
    }
    if (strncmp(a->at, prefix, sizeof prefix - 1) == 0) {
        a->option = a->at + sizeof prefix - 1;
        return a->option[0] != '\0' ? HV_OK : hv_jp_expected(at, err, "options.KEY of a strategy");
    }
    st = hv_key_path_parse(&s->arena, a->at, &a->path, err);
    if (st == HV_OK && a->path.doc >= HV_DOC_INPUTS) {
        st = hv_err_set(err, HV_EINPUT, "an axis changes cluster, model, job or options.KEY");
    }
    if (st != HV_OK) {
        hv_jp_blame(at, err);
    }
    return st != HV_OK ? HV_EINPUT : HV_OK;
}

static enum hv_status read_axis(struct hv_sweep *s, const struct hv_jp *at, const char *folder,
                                struct hv_err *err)
{
    static const char *const keys[] = {"name", "at", "values", "from", "to", "step", "times"};
    struct hv_sweep_axis *a = &s->axes[s->n_axes];
    struct hv_jp place = {0}, values = hv_jp_get(at, "values"), name = hv_jp_get(at, "name");
    enum hv_status st = hv_jp_object(at, keys, HV_COUNT(keys), err);

    a->numeric = true;
    st = st == HV_OK ? hv_jp_need(at, "at", "a key path", &place, err) : st;
    st = st == HV_OK ? read_place(s, a, &place, err) : st;
    if (st != HV_OK) {
        return st;
    }
    a->name = name_of_place(&s->arena, a->at);
    st = hv_jp_none(&name) ? HV_OK : hv_jp_string(&name, &a->name, err);
    st = st == HV_OK ? check_name(s, a->name, hv_jp_none(&name) ? &place : &name, err) : st;
    for (size_t i = 0; i < s->n_axes && st == HV_OK; i++) {
        if (strcmp(s->axes[i].at, a->at) == 0) {
            st = hv_jp_fail(&place, err, "two axes change %s", a->at);
        }
    }
    if (st != HV_OK) {
        return st;
    }
    s->n_axes++; /* its values are freed from here on */
    if (hv_jp_none(&values)) {
        return read_range(s, a, at, err);
    }
    for (size_t i = 3; i < HV_COUNT(keys); i++) {
        struct hv_jp other = hv_jp_get(at, keys[i]);
        if (!hv_jp_none(&other)) {
            return hv_jp_fail(&other, err, "an axis has `values` or a range, not both");
        }
    }
    return read_list(s, a, &values, folder, err);
}

enum hv_status hv__sweep_axes(struct hv_sweep *s, const struct hv_jp *list, const char *folder,
                              struct hv_err *err)
{
    size_t n = 0;
    enum hv_status st = hv_jp_array(list, &n, err);
    if (st == HV_OK && n > HV_SWEEP_AXES_MAX) {
        return hv_jp_fail(list, err, "at most %d axes are expected, found %zu", HV_SWEEP_AXES_MAX,
                          n);
    }
    for (size_t i = 0; i < n && st == HV_OK; i++) {
        struct hv_jp at = hv_jp_at(list, i);
        st = read_axis(s, &at, folder, err);
    }
    return st;
}
