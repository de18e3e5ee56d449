/* The report: understood, guessed, ignored. */
#include "solver/io/import/draft/draft.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT      300
#define MEMBERS_LINE  90 /* bytes of members in a line of the report */
#define MAX_RAW       200
#define MAX_RAW_VALUE 500

static void add(struct hv_import *im, const char *file, unsigned line, enum hv_import_level level,
                const char *fmt, va_list ap) HV_PRINTF(5, 0);

static void add(struct hv_import *im, const char *file, unsigned line, enum hv_import_level level,
                const char *fmt, va_list ap)
{
    char text[MAX_TEXT];
    struct hv_str clean = {0};
    (void)vsnprintf(text, sizeof text, fmt, ap);
    hv_text_clean(&clean, text, strlen(text));
    for (size_t i = im->notes.n; i > 0; i--) {
        struct hv_import_note *o = &im->notes.items[i - 1];
        if (!o->member && o->level == level && o->file == file &&
            strcmp(o->text, hv_str_cstr(&clean)) == 0) {
            o->times++;
            hv_str_free(&clean);
            return;
        }
    }
    if (im->notes.n < HV__MAX_NOTES) {
        hv_vec_push(&im->notes, (struct hv_import_note){
                                    .level = level,
                                    .file = file,
                                    .line = line,
                                    .times = 1,
                                    .text = hv_arena_strdup(&im->arena, hv_str_cstr(&clean))});
    } else {
        im->more_notes++;
    }
    hv_str_free(&clean);
}

/* One function per level, so that the level is visible at the call. */
#define NOTE(function, level)                                                                      \
    void function(struct hv__in *in, unsigned line, const char *fmt, ...)                          \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, fmt);                                                                         \
        add(in->im, in->name, line, level, fmt, ap);                                               \
        va_end(ap);                                                                                \
    }
NOTE(hv__understood, HV_IMPORT_UNDERSTOOD)
NOTE(hv__guessed, HV_IMPORT_GUESSED)
NOTE(hv__ignored, HV_IMPORT_IGNORED)

void hv__note(struct hv_import *im, enum hv_import_level level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(im, NULL, 0, level, fmt, ap);
    va_end(ap);
}

void hv__raw(struct hv__in *in, const char *key, const char *value)
{
    struct hv_import *im = in->im;
    if (!im->raw) {
        im->raw = json_object();
    }
    if (json_object_size(im->raw) >= MAX_RAW || strlen(value) > MAX_RAW_VALUE || !*key) {
        return;
    }
    struct hv_str clean = {0}, clean_key = {0};
    hv_text_clean(&clean, value, strlen(value));
    hv_text_clean(&clean_key, key, strlen(key));
    json_object_set_new(im->raw, hv_str_cstr(&clean_key), json_string(hv_str_cstr(&clean)));
    hv_str_free(&clean);
    hv_str_free(&clean_key);
}

/* Path to a value inside a JSON text, used to find its line. */
static bool find_place(const struct hv_jp *p, const json_t *v, int depth, unsigned *line)
{
    unsigned col;
    if (p->v == v) {
        hv_jp_where(p, line, &col);
        return true;
    }
    if (depth > 4) {
        return false;
    }
    if (json_is_object(p->v)) {
        for (void *it = json_object_iter(p->v); it; it = json_object_iter_next(p->v, it)) {
            struct hv_jp at = hv_jp_get(p, json_object_iter_key(it));
            if (find_place(&at, v, depth + 1, line)) {
                return true;
            }
        }
    }
    for (size_t i = 0; json_is_array(p->v) && i < json_array_size(p->v) && i < 64; i++) {
        struct hv_jp at = hv_jp_at(p, i);
        if (find_place(&at, v, depth + 1, line)) {
            return true;
        }
    }
    return false;
}

unsigned hv__line_of(const struct hv__in *in, const json_t *v)
{
    unsigned line = 0;
    for (size_t i = 0; v && i < in->lines.n; i++) {
        if (in->lines.items[i].v == v) {
            return in->lines.items[i].line;
        }
    }
    /* JSON trees hold no positions: they are searched in the text, if it is small enough */
    if (v && in->json.root && in->n < 262144 && in->im->notes.n < 100 && !json_is_true(v) &&
        !json_is_false(v) && !json_is_null(v)) {
        struct hv_jp root = hv_jp_root(&in->json);
        (void)find_place(&root, v, 0, &line);
    }
    return line;
}

const struct hv_import_note *hv_import_notes(const struct hv_import *im, size_t *n)
{
    *n = im->notes.n;
    return im->notes.items;
}

void hv__notes_sort(struct hv_import *im)
{
    /* the three groups one after the other, each in the order found: stable by a copy */
    struct hv_import_note *all =
        hv_arena_copy(&im->arena, im->notes.items, im->notes.n, sizeof *all);
    size_t to = 0;
    for (int l = 0; l < HV_IMPORT_LEVEL_N; l++) {
        for (size_t i = 0; i < im->notes.n; i++) {
            if (all[i].level == (enum hv_import_level)l) {
                im->notes.items[to++] = all[i];
            }
        }
    }
}

/* Length of the path in "path = value". */
static size_t path_length(const char *text)
{
    const char *end = strstr(text, " = ");
    return end ? (size_t)(end - text) : strlen(text);
}

/* Members of this level, as many in a line as fit, those that are ignored
 * without their values; `head` goes above the first, NULL: none. */
static void add_members(const struct hv_import *im, enum hv_import_level level, const char *head,
                        struct hv_str *out)
{
    const char *file = NULL;
    size_t used = 0;
    for (size_t i = 0; i < im->notes.n; i++) {
        const struct hv_import_note *x = &im->notes.items[i];
        struct hv_str text = {0};
        if (x->level != level || !x->member) {
            continue;
        }
        if (head) {
            hv_str_addf(out, "%s\n", head);
            head = NULL;
        }
        hv_str_add(&text, x->text,
                   level == HV_IMPORT_IGNORED ? path_length(x->text) : strlen(x->text));
        if (x->times > 1) {
            hv_str_addf(&text, " (%u times)", x->times);
        }
        if (x->file != file) {
            const char *slash = strrchr(x->file, '/');
            hv_str_adds(out, file ? "\n  members" : "  members");
            if (im->files.n > 1) {
                hv_str_addf(out, " of %s", slash ? slash + 1 : x->file);
            }
            hv_str_adds(out, ": ");
            file = x->file;
            used = 0;
        } else if (used + text.n > MEMBERS_LINE) {
            hv_str_adds(out, ",\n    ");
            used = 0;
        } else {
            hv_str_adds(out, ", ");
        }
        hv_str_add(out, hv_str_cstr(&text), text.n);
        used += text.n + 2;
        hv_str_free(&text);
    }
    hv_str_adds(out, file ? "\n" : "");
}

void hv_import_report(const struct hv_import *im, struct hv_str *out)
{
    static const char *const heads[HV_IMPORT_LEVEL_N] = {"understood", "guessed: check these",
                                                         "ignored"};
    for (int l = 0; l < HV_IMPORT_LEVEL_N; l++) {
        bool headed = false;
        for (size_t i = 0; i < im->notes.n; i++) {
            const struct hv_import_note *x = &im->notes.items[i];
            if (x->level != (enum hv_import_level)l || x->member) {
                continue;
            }
            hv_str_addf(out, "%s%s  ", headed ? "" : heads[l], headed ? "" : "\n");
            headed = true;
            hv_import_note_text(x, im->files.n > 1, out);
            hv_str_addc(out, '\n');
        }
        add_members(im, (enum hv_import_level)l, headed ? NULL : heads[l], out);
    }
    if (im->more_notes > 0) {
        hv_str_addf(out, "and %zu more notes\n", im->more_notes);
    }
}

void hv_import_note_text(const struct hv_import_note *x, bool name_file, struct hv_str *out)
{
    const char *slash = x->file ? strrchr(x->file, '/') : NULL;
    if (x->file && name_file) {
        hv_str_addf(out, x->line ? "%s:%u: " : "%s: ", slash ? slash + 1 : x->file, x->line);
    } else if (x->line > 0) {
        hv_str_addf(out, "line %u: ", x->line);
    }
    hv_str_adds(out, x->text);
    if (x->times > 1) {
        hv_str_addf(out, " (%u times)", x->times);
    }
}
