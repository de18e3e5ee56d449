/* Forms over key paths: reading, checking and writing values. The screens define the rows. */
#include "ui/screens/form/doc_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/units.h"
#include "ui/command/typed.h"
#include "ui/screens/common/ui.h"

/* From this many choices on Enter opens the list instead of taking the next one. */
enum { MANY_CHOICES = 6 };

static void free_bases(struct hv_doc_form *f)
{
    for (size_t i = 0; i < f->bases.n; i++) {
        free(f->bases.items[i]);
    }
    f->bases.n = 0;
}

void hv_doc_form_free(struct hv_doc_form *f)
{
    free_bases(f);
    hv_vec_free(&f->bases);
    hv_form_free(&f->form);
    *f = (struct hv_doc_form){0};
}

void hv_doc_form_clear(struct hv_doc_form *f)
{
    free_bases(f);
    f->form.n_fields = 0;
}

void hv_doc_form_base(struct hv_doc_form *f, const char *base)
{
    hv_vec_push(&f->bases, hv_xstrdup(base));
}

/* Numbers are text to the form: they may have units, and are checked here. */
static enum hv_field_kind field_kind(const struct hv_doc_row *row)
{
    switch (row->value) {
    case HV_DOC_CHOICE:
        return HV_FIELD_CHOICE;
    case HV_DOC_BOOL:
        return HV_FIELD_BOOL;
    case HV_DOC_LABEL:
        return HV_FIELD_LABEL;
    case HV_DOC_NUMBER:
    case HV_DOC_WHOLE:
    case HV_DOC_WORD:
    case HV_DOC_JSON:
    case HV_DOC_DERIVED:
    case HV_DOC_VALUE_N:
        break;
    }
    return HV_FIELD_TEXT;
}

static bool is_number(const struct hv_doc_row *row)
{
    return row->value == HV_DOC_NUMBER || row->value == HV_DOC_WHOLE;
}

/* What a typed text stands for: empty and, where a member may be left out, "auto" are no value. */
static bool is_nothing(const struct hv_doc_row *row, const char *value)
{
    return value[0] == '\0' || (row->optional && is_number(row) && strcmp(value, "auto") == 0);
}

static bool is_shape(const struct hv_doc_form *f, size_t i, const char *value)
{
    double a, b;
    return f->shape != NULL &&
           (strcmp(f->paths[i], f->shape[0]) == 0 || strcmp(f->paths[i], f->shape[1]) == 0) &&
           hv_typed_shape(value, &a, &b);
}

static void check_number(const struct hv_doc_row *row, const char *value, char *bad, size_t cap)
{
    struct hv_err err = {0};
    double x = 0;
    if (hv_typed_number(value, row->unit, &x, &err) != HV_OK) {
        (void)snprintf(bad, cap, "%s%s", err.text, row->optional ? ", or nothing" : "");
    } else if (row->value == HV_DOC_WHOLE && floor(x) < x) {
        (void)snprintf(bad, cap, "expected a whole number");
    } else if (x < row->min) {
        (void)snprintf(bad, cap, "must be at least %g", row->min);
    } else if (x > row->max) {
        (void)snprintf(bad, cap, "must be at most %g", row->max);
    }
}

/* An empty text keeps values that differ. */
static void check_value(void *ctx, size_t i, const char *value, char *bad, size_t cap)
{
    const struct hv_doc_form *f = ctx;
    const struct hv_doc_row *row = &f->rows[i];
    bool nothing = is_nothing(row, value);
    if (nothing && !row->optional && !f->fields[i].mixed) {
        (void)snprintf(bad, cap, "must not be empty");
    } else if (!nothing && is_number(row) && !is_shape(f, i, value)) {
        check_number(row, value, bad, cap);
    }
}

void hv_doc_form_add(struct hv_doc_form *f, const struct hv_doc_row *row)
{
    size_t i = f->form.n_fields;
    if (i == HV_DOC_FORM_MAX) {
        return;
    }
    f->rows[i] = *row;
    (void)snprintf(f->names[i], sizeof f->names[i], "%s", row->name);
    (void)snprintf(f->paths[i], sizeof f->paths[i], "%s", row->path != NULL ? row->path : "");
    f->rows[i].name = f->names[i];
    f->rows[i].path = f->paths[i];
    struct hv_field *d = &f->fields[i];
    *d = (struct hv_field){.name = f->names[i],
                           .help = row->help,
                           .kind = field_kind(row),
                           .choices = row->choices,
                           .n_choices = row->n_choices,
                           .min = row->min,
                           .max = row->max,
                           .integer = row->value == HV_DOC_WHOLE,
                           .read_only = row->value == HV_DOC_DERIVED};
    f->form.fields = f->fields;
    f->form.n_fields = i + 1;
    f->form.check = check_value;
    f->form.check_ctx = f;
}

static void full_path(const struct hv_doc_form *f, size_t base, size_t i, struct hv_str *out)
{
    const char *b = f->bases.n > base ? f->bases.items[base] : "";
    hv_str_addf(out, "%s%s%s", b, b[0] != '\0' ? "." : "", f->paths[i]);
}

static void show_value(const json_t *v, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    if (json_is_string(v)) {
        hv_str_adds(out, json_string_value(v));
    } else if (json_is_number(v)) {
        hv_str_adds(out, hv_fmt_double(buf, sizeof buf, json_number_value(v)));
    } else if (json_is_boolean(v)) {
        hv_str_adds(out, json_is_true(v) ? "yes" : "no");
    } else {
        hv_json_write(out, v, false);
    }
}

/* Appends the value of a base, or what counts without one; true where it is given. */
static bool value_of(const struct hv_doc_form *f, const struct hv_session *s, size_t i, size_t base,
                     struct hv_str *out)
{
    const struct hv_doc_row *row = &f->rows[i];
    struct hv_str path = {0};
    full_path(f, base, i, &path);
    const json_t *v = row->value == HV_DOC_DERIVED || row->value == HV_DOC_LABEL ? NULL
                      : f->store != NULL ? f->store->get(f->ctx, s, row)
                                         : hv_session_get(s, hv_str_cstr(&path));
    bool given = v != NULL && !json_is_null(v);
    if (given) {
        show_value(v, out);
    } else if (f->fallback != NULL) {
        f->fallback(f->ctx, s, row, base, out);
    }
    hv_str_free(&path);
    return given;
}

static void load_row(struct hv_doc_form *f, const struct hv_session *s, size_t i)
{
    const struct hv_doc_row *row = &f->rows[i];
    struct hv_field *d = &f->fields[i];
    struct hv_str text = {0}, other = {0};
    bool given = value_of(f, s, i, 0, &text);
    d->mixed = false;
    for (size_t base = 1; base < f->bases.n && !d->mixed; base++) {
        hv_str_clear(&other);
        given = value_of(f, s, i, base, &other) || given;
        d->mixed = strcmp(hv_str_cstr(&text), hv_str_cstr(&other)) != 0;
    }
    if (d->mixed) {
        hv_str_clear(&text);
    }
    if (strcmp(d->value, hv_str_cstr(&text)) != 0) {
        d->bad[0] = '\0';
    }
    (void)snprintf(d->value, sizeof d->value, "%s", hv_str_cstr(&text));
    const char *unit = row->unit != NULL ? row->unit : "";
    const char *note = given || text.n == 0 || row->value == HV_DOC_DERIVED ? "" : "auto";
    (void)snprintf(f->units[i], sizeof f->units[i], "%s%s%s", unit,
                   unit[0] != '\0' && note[0] != '\0' ? ", " : "", note);
    d->unit = f->units[i][0] != '\0' ? f->units[i] : NULL;
    hv_str_free(&other);
    hv_str_free(&text);
}

void hv_doc_form_load(struct hv_doc_form *f, const struct hv_session *s)
{
    for (size_t i = 0; i < f->form.n_fields; i++) {
        load_row(f, s, i);
    }
    if (f->form.cursor >= f->form.n_fields) {
        f->form.cursor = 0;
    }
    size_t tries = f->form.n_fields;
    while (tries-- > 0 && (f->fields[f->form.cursor].read_only ||
                           f->fields[f->form.cursor].kind == HV_FIELD_LABEL)) {
        f->form.cursor = (f->form.cursor + 1) % f->form.n_fields;
    }
}

void hv_doc_form_draw(const struct hv_doc_form *f, const struct hv_session *s, struct hv_grid *g,
                      struct hv_rect r, bool focused)
{
    if (f->pick.open) {
        hv_doc_pick_draw(f, s, g, r);
    } else {
        hv_form_draw(&f->form, g, r, focused);
    }
}

/* The typed text as JSON; "null" for nothing. */
static void to_json(const struct hv_doc_row *row, const char *typed, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    double x = 0;
    if (is_nothing(row, typed)) {
        hv_str_adds(out, "null");
    } else if (is_number(row) && hv_typed_number(typed, row->unit, &x, NULL) == HV_OK) {
        hv_str_adds(out, hv_fmt_double(buf, sizeof buf, x));
    } else if (row->value == HV_DOC_BOOL) {
        hv_str_adds(out, strcmp(typed, "yes") == 0 ? "true" : "false");
    } else if (row->value == HV_DOC_JSON) {
        hv_str_adds(out, typed);
    } else {
        json_t *v = json_string(typed);
        hv_json_write(out, v, false);
        json_decref(v);
    }
}

/* Length of the path without its last member, 0 when it has one word only. */
static size_t parent_length(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL ? (size_t)(dot - path) : 0;
}

static bool has_parent(const struct hv_session *s, const char *path)
{
    struct hv_str up = {0};
    hv_str_add(&up, path, parent_length(path));
    bool ok = json_is_object(hv_session_get(s, hv_str_cstr(&up)));
    hv_str_free(&up);
    return ok;
}

/* One member; the object that holds it is made when it is not there. */
static enum hv_status write_one(struct hv_session *s, const char *path, const char *json,
                                struct hv_err *err)
{
    bool nothing = strcmp(json, "null") == 0;
    if (nothing) {
        return hv_session_get(s, path) != NULL ? hv_session_remove(s, path, err) : HV_OK;
    }
    if (has_parent(s, path)) {
        return hv_session_set_text(s, path, json, err);
    }
    size_t n = parent_length(path);
    struct hv_str up = {0}, object = {0};
    hv_str_add(&up, path, n);
    hv_str_addf(&object, "{\"%s\": %s}", path + n + 1, json);
    enum hv_status st = hv_session_set_text(s, hv_str_cstr(&up), hv_str_cstr(&object), err);
    hv_str_free(&object);
    hv_str_free(&up);
    return st;
}

/* Follows a path such as nodes[3].nic below v, making objects on the way; the last key is set. */
static bool patch(json_t *v, const char *path, const char *json)
{
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
    char key[64];
    while (value != NULL && v != NULL) {
        size_t n = strcspn(path, ".[");
        if (n >= sizeof key) {
            break;
        }
        (void)snprintf(key, sizeof key, "%.*s", (int)n, path);
        path += n;
        if (*path == '\0') {
            return json_object_set_new(v, key, value) == 0;
        }
        json_t *next = json_object_get(v, key);
        if (!json_is_object(next) && !json_is_array(next)) {
            next = json_object();
            (void)json_object_set_new(v, key, next);
        }
        v = next;
        if (*path == '[') {
            char *end = NULL;
            v = json_array_get(v, strtoul(path + 1, &end, 10));
            path = *end == ']' ? end + 1 : end;
        }
        path += *path == '.';
    }
    json_decref(value);
    return false;
}

/* Puts a value into a changed copy of the cluster, at a path below a base: objects are made on the
 * way. */
static void patch_below(json_t *tree, const char *base, const char *path, const char *json)
{
    struct hv_str whole = {0};
    hv_str_addf(&whole, "%s.%s", base, path);
    const char *dot = strchr(hv_str_cstr(&whole), '.');
    (void)patch(tree, dot != NULL ? dot + 1 : hv_str_cstr(&whole), json);
    hv_str_free(&whole);
}

/* Many members whose objects are partly missing: a changed copy of the document. */
static enum hv_status write_copy(struct hv_session *s, const struct hv_doc_form *f, size_t i,
                                 const char *json, struct hv_err *err)
{
    json_t *tree = json_deep_copy(hv_session_tree(s, HV_DOC_CLUSTER));
    struct hv_str label = {0};
    for (size_t b = 0; b < f->bases.n; b++) {
        patch_below(tree, f->bases.items[b], f->paths[i], json);
    }
    hv_str_addf(&label, "set %s of %zu groups", f->names[i], f->bases.n);
    enum hv_status st = hv_session_replace(s, HV_DOC_CLUSTER, tree, hv_str_cstr(&label), err);
    hv_str_free(&label);
    return st;
}

/* "2x8" sets two members of every base. */
static enum hv_status write_shape(struct hv_session *s, const struct hv_doc_form *f,
                                  const char *typed, struct hv_err *err)
{
    json_t *tree = json_deep_copy(hv_session_tree(s, HV_DOC_CLUSTER));
    char label[64], buf[HV_FMT_CAP];
    double x[2] = {0};
    (void)hv_typed_shape(typed, &x[0], &x[1]);
    for (size_t b = 0; b < f->bases.n; b++) {
        for (size_t k = 0; k < 2; k++) {
            patch_below(tree, f->bases.items[b], f->shape[k], hv_fmt_double(buf, sizeof buf, x[k]));
        }
    }
    (void)snprintf(label, sizeof label, "set %.16s and %.16s", f->shape[0], f->shape[1]);
    return hv_session_replace(s, HV_DOC_CLUSTER, tree, label, err);
}

static enum hv_status write_many(struct hv_session *s, const struct hv_doc_form *f, size_t i,
                                 const char *json, struct hv_err *err)
{
    size_t n = f->bases.n;
    char **paths = hv_xcalloc(n, sizeof *paths);
    bool all = true;
    for (size_t b = 0; b < n; b++) {
        struct hv_str path = {0};
        full_path(f, b, i, &path);
        all = all && has_parent(s, hv_str_cstr(&path));
        paths[b] = path.p;
    }
    enum hv_status st = all ? hv_session_set_many(s, (const char *const *)paths, n, json, err)
                            : write_copy(s, f, i, json, err);
    for (size_t b = 0; b < n; b++) {
        free(paths[b]);
    }
    free(paths);
    return st;
}

static enum hv_status write_store(const struct hv_doc_form *f, struct hv_session *s, size_t i,
                                  const char *json, struct hv_err *err)
{
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
    if (value == NULL) {
        return hv_err_set(err, HV_EINPUT, "%s: expected JSON, found '%.60s'", f->names[i], json);
    }
    return f->store->set(f->ctx, s, &f->rows[i], value, err);
}

/* Writes a typed value of row i to all bases as one undo step. Errors: as hv_session_set_text. */
static enum hv_status write_value(struct hv_doc_form *f, struct hv_session *s, size_t i,
                                  const char *typed, struct hv_err *err)
{
    struct hv_str json = {0}, path = {0};
    enum hv_status st;
    to_json(&f->rows[i], typed, &json);
    if (is_shape(f, i, typed)) {
        st = write_shape(s, f, typed, err);
    } else if (f->store != NULL) {
        st = write_store(f, s, i, hv_str_cstr(&json), err);
    } else if (f->bases.n > 1) {
        st = write_many(s, f, i, hv_str_cstr(&json), err);
    } else {
        full_path(f, 0, i, &path);
        st = write_one(s, hv_str_cstr(&path), hv_str_cstr(&json), err);
    }
    hv_str_free(&path);
    hv_str_free(&json);
    return st;
}

/* Writes the accepted value of row i; an error is shown and the old value restored. */
static unsigned commit(struct hv_doc_form *f, struct hv_app *app, struct hv_session *s,
                       const char *typed)
{
    size_t i = f->form.cursor;
    struct hv_err err = {0};
    if (write_value(f, s, i, typed, &err) != HV_OK) {
        hv_doc_form_load(f, s);
        (void)snprintf(f->fields[i].bad, sizeof f->fields[i].bad, "not accepted: %.140s", err.text);
        hv_ui_error(app, &err);
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    hv_doc_form_load(f, s);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

const struct hv_key_hint *hv_doc_form_hints(const struct hv_doc_form *f)
{
    static const struct hv_key_hint list[] = {{"Enter", "Choose"},
                                              {"Down", "Next"},
                                              {"Backspace", "Widen"},
                                              {"Esc", "Cancel"},
                                              {NULL, NULL}};
    return f->pick.open ? list : hv_form_hints(&f->form);
}

static bool opens_list(const struct hv_doc_form *f, struct hv_key k)
{
    const struct hv_field *d = &f->fields[f->form.cursor];
    bool open = k.code == HV_KEY_ENTER ||
                (k.code == HV_KEY_CHAR && k.mods == 0 && (k.cp == 'v' || k.cp == ' '));
    return f->form.n_fields > 0 && !f->form.editing && d->kind == HV_FIELD_CHOICE &&
           d->n_choices > MANY_CHOICES && open;
}

static bool is_figure(struct hv_key k)
{
    return k.code == HV_KEY_CHAR && k.mods == 0 &&
           ((k.cp >= '0' && k.cp <= '9') || k.cp == '-' || k.cp == '.');
}

static unsigned key_event(struct hv_doc_form *f, struct hv_app *app, struct hv_session *s,
                          struct hv_key k)
{
    const unsigned done = HV_APP_HANDLED | HV_APP_REDRAW;
    if (f->pick.open) {
        const char *picked = hv_doc_pick_key(f, k);
        return picked != NULL ? commit(f, app, s, picked) : done;
    }
    if (opens_list(f, k)) {
        hv_doc_pick_open(f);
        return done;
    }
    if (!f->form.editing && is_figure(k)) {
        return 0; /* digits switch screens here as everywhere */
    }
    bool was_editing = f->form.editing;
    struct hv_field *d = f->form.n_fields > 0 ? &f->fields[f->form.cursor] : NULL;
    switch (hv_form_key(&f->form, k)) {
    case HV_FORM_NONE:
        return f->form.editing ? done : 0;
    case HV_FORM_MOVED:
        return done;
    case HV_FORM_CHANGED:
        if (!was_editing || strcmp(d->value, f->form.before) != 0) {
            (void)commit(f, app, s, d->value);
        }
        if (k.code == HV_KEY_TAB && f->open && f->fields[f->form.cursor].bad[0] == '\0') {
            (void)hv_form_key(&f->form, k);
        }
        return done;
    case HV_FORM_REFUSED:
        hv_app_message(app, HV_MSG_ERROR, "%s: %s", d->name, d->bad);
        return done;
    case HV_FORM_CLOSE:
        f->open = false;
        return done;
    }
    return 0;
}

unsigned hv_doc_form_event(struct hv_doc_form *f, struct hv_app *app, struct hv_session *s,
                           const struct hv_event *ev, struct hv_rect r)
{
    if (ev->type == HV_EV_PASTE) {
        bool taken = !f->pick.open && hv_form_paste(&f->form, ev->text) != HV_FORM_NONE;
        return taken ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
    }
    if (ev->type == HV_EV_KEY) {
        return key_event(f, app, s, ev->key);
    }
    if (ev->type != HV_EV_MOUSE || f->pick.open || f->form.editing) {
        return f->pick.open || f->form.editing ? HV_APP_HANDLED : 0;
    }
    size_t hit = hv_form_hit(&f->form, r, ev->x, ev->y);
    if (ev->mouse != HV_MOUSE_PRESS || hit == SIZE_MAX) {
        return 0;
    }
    if (hit == f->form.cursor) {
        return key_event(f, app, s, (struct hv_key){.code = HV_KEY_ENTER});
    }
    f->form.cursor = hit;
    return HV_APP_HANDLED | HV_APP_REDRAW;
}
