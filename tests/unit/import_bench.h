/** What the tests of the import share: one import of small texts, and questions about it. The texts
 * are written here in the shape of the programs' outputs; nothing is copied. */
#ifndef HV_TESTS_UNIT_IMPORT_BENCH_H
#define HV_TESTS_UNIT_IMPORT_BENCH_H

#include "solver/base/str.h"
#include "solver/io/import/import.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hv_device_catalogue import_devices;

/** An import of texts, with what came of it. */
struct import {
    struct hv_import *im;
    json_t *doc;
    struct hv_err err;
    enum hv_status st;
};

static inline int import_setup(void **state)
{
    (void)state;
    return hv_device_catalogue_read(&import_devices, NULL) == HV_OK ? 0 : -1;
}

static inline int import_teardown(void **state)
{
    (void)state;
    hv_device_catalogue_free(&import_devices);
    return 0;
}

/** Reads the texts (NULL-terminated) as files of one import; formats are found out. */
static inline struct import import_texts(const char *const *texts)
{
    struct import x = {.im = hv_import_new(&import_devices)};
    for (size_t i = 0; texts[i] != NULL && x.st == HV_OK; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "file%zu", i + 1);
        x.st = hv_import_text(x.im, NULL, name, texts[i], strlen(texts[i]), &x.err);
    }
    x.st = x.st ? x.st : hv_import_finish(x.im, &x.err);
    x.doc = hv_import_document(x.im);
    return x;
}

/** One text of a format, which has to be read. */
static inline struct import import_one(const char *format, const char *text)
{
    const char *const texts[] = {text, NULL};
    struct import x = import_texts(texts);
    if (x.st != HV_OK) {
        fail_msg("%s: %s", format, x.err.text);
    }
    assert_string_equal(hv_import_format_of(x.im, 0)->name, format);
    return x;
}

static inline void import_free(struct import *x)
{
    hv_import_free(x->im);
}

/** The value at a path such as "nodes[0].intra.kind"; NULL when there is none. */
static inline json_t *import_at(json_t *v, const char *path)
{
    while (v != NULL && *path != '\0') {
        size_t n = strcspn(path, ".[");
        char key[64] = "";
        if (*path == '[') {
            v = json_array_get(v, strtoul(path + 1, NULL, 10));
            path = strchr(path, ']') + 1;
        } else {
            memcpy(key, path, n);
            v = json_object_get(v, key);
            path += n;
        }
        path += *path == '.';
    }
    return v;
}

static inline void import_number(const struct import *x, const char *path, double want)
{
    json_t *v = import_at(x->doc, path);
    if (!json_is_number(v) || fabs(json_number_value(v) - want) > 1e-3 * fabs(want) + 1e-9) {
        char *all = json_dumps(x->doc, JSON_INDENT(1));
        fail_msg("%s is not %g in\n%s", path, want, all);
    }
}

static inline void import_word(const struct import *x, const char *path, const char *want)
{
    const char *s = json_string_value(import_at(x->doc, path));
    if (s == NULL || strcmp(s, want) != 0) {
        char *all = json_dumps(x->doc, JSON_INDENT(1));
        fail_msg("%s is %s, not %s, in\n%s", path, s != NULL ? s : "nothing", want, all);
    }
}

static inline void import_absent(const struct import *x, const char *path)
{
    if (import_at(x->doc, path) != NULL) {
        fail_msg("%s is there", path);
    }
}

/** Does the report hold a note of that level with these words? line 0: any. */
static inline void import_says(const struct import *x, enum hv_import_level level, unsigned line,
                               const char *words)
{
    size_t n;
    const struct hv_import_note *notes = hv_import_notes(x->im, &n);
    for (size_t i = 0; i < n; i++) {
        if (notes[i].level == level && (line == 0 || notes[i].line == line) &&
            strstr(notes[i].text, words) != NULL) {
            return;
        }
    }
    struct hv_str all = {0};
    hv_import_report(x->im, &all);
    fail_msg("no note \"%s\" in\n%s", words, hv_str_cstr(&all));
}

/** Does the report hold these words anywhere? */
static inline bool import_has(const struct import *x, const char *words)
{
    struct hv_str all = {0};
    hv_import_report(x->im, &all);
    bool has = strstr(hv_str_cstr(&all), words) != NULL;
    hv_str_free(&all);
    return has;
}

/** The text is refused with this status and these words. */
static inline void import_refused(const char *text, size_t n, enum hv_status st, const char *words)
{
    struct hv_import *im = hv_import_new(&import_devices);
    struct hv_err err = {0};
    enum hv_status got = hv_import_text(im, NULL, "f", text, n, &err);
    got = got ? got : hv_import_finish(im, &err);
    if (got != st || strstr(err.text, words) == NULL) {
        fail_msg("status %d, text \"%s\"", (int)got, err.text);
    }
    hv_import_free(im);
}

#endif
