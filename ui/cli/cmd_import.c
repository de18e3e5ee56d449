/** `hetviz import`: reads files of other programs, writes a document of ours, reports on standard
 * error. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/io/import/import.h"
#include "solver/io/own/docs.h"
#include "ui/cli/cli.h"
#include "ui/cli/print.h"
#include "ui/session/import/local.h"

static enum hv_status unknown_format(const char *name, struct hv_err *err)
{
    const char *names[64] = {"auto", "local"};
    size_t n = 2;
    for (size_t i = 0; hv_import_format_at(i) != NULL && n < HV_COUNT(names); i++) {
        names[n++] = hv_import_format_at(i)->name;
    }
    const char *near = hv_suggest(name, names, n);
    return hv_err_set(
        err, HV_EUSAGE,
        "import: \"%s\" is no format and no file%s%s%s; `hetviz help import` lists the "
        "formats, `auto` detects them",
        name, near != NULL ? ", did you mean \"" : "", near != NULL ? near : "",
        near != NULL ? "\"?" : "");
}

static void print_report(const struct hv_import *im)
{
    struct hv_str text = {0}, clean = {0};
    hv_import_report(im, &text);
    hv_text_clean_lines(&clean, hv_str_cstr(&text), text.n);
    (void)fputs(hv_str_cstr(&clean), stderr);
    hv_str_free(&text);
    hv_str_free(&clean);
}

static json_t *texts_of(const struct hv_import *im, enum hv_import_level level)
{
    json_t *list = json_array();
    size_t n;
    const struct hv_import_note *notes = hv_import_notes(im, &n);
    bool several = hv_import_format_of(im, 1) != NULL;
    for (size_t i = 0; i < n; i++) {
        struct hv_str text = {0};
        if (notes[i].level == level) {
            hv_import_note_text(&notes[i], several, &text);
            json_array_append_new(list, json_string(hv_str_cstr(&text)));
        }
        hv_str_free(&text);
    }
    return list;
}

/* The report as JSON: parameters of the model, and the three lists of notes. */
static void print_json_report(const struct hv_import *im)
{
    struct hv_str text = {0};
    double parameters = hv_import_parameters(im);
    json_t *o =
        json_pack("{s:o, s:o, s:o, s:o}", "parameters",
                  hv_known(parameters) ? hv_json_num(parameters) : json_null(), "understood",
                  texts_of(im, HV_IMPORT_UNDERSTOOD), "guessed", texts_of(im, HV_IMPORT_GUESSED),
                  "ignored", texts_of(im, HV_IMPORT_IGNORED));
    hv_json_write(&text, o, true);
    (void)fwrite(hv_str_cstr(&text), 1, text.n, stdout);
    hv_str_free(&text);
    json_decref(o);
}

/* What the first argument is: a format, `auto`, `local`, or the first file already. */
struct what {
    const struct hv_import_format *format;
    bool local;
    size_t first; /* index of the first file */
};

static enum hv_status read_what(const struct hv_args *args, struct what *out, struct hv_err *err)
{
    const char *name = args->positional[0];
    *out = (struct what){hv_import_format_find(name), strcmp(name, "local") == 0, 1};
    if (hv_args_has(args, "json") && strcmp(hv_args_text(args, "out", ""), "-") == 0) {
        return hv_err_set(err, HV_EUSAGE,
                          "import: --json prints the report on standard output; give --out a file "
                          "for the document");
    }
    if (out->format == NULL && !out->local && strcmp(name, "auto") != 0) {
        if (strcmp(name, "-") != 0 && access(name, F_OK) != 0 && strchr(name, '/') == NULL) {
            return unknown_format(name, err);
        }
        out->first = 0;
    }
    if (args->n_positional <= out->first && !out->local) {
        return hv_err_set(err, HV_EUSAGE, "import: which FILE? (- is standard input)");
    }
    return HV_OK;
}

static enum hv_status read_files(struct hv_args *args, struct hv_import *im, struct hv_err *err)
{
    struct what what;
    size_t n_devices = 0;
    enum hv_status st = read_what(args, &what, err);
    const char **devices = hv_args_all(args, "device", &n_devices);
    for (size_t i = 0; i < n_devices && st == HV_OK; i++) {
        st = hv_import_device(im, devices[i], err);
    }
    if (st == HV_OK && what.local) {
        st = hv_import_local(im, err);
    }
    for (size_t i = what.first; i < args->n_positional && st == HV_OK; i++) {
        st = hv_import_file(im, what.format, args->positional[i], err);
    }
    return st ? st : hv_import_finish(im, err);
}

enum hv_status hv_cli_import(struct hv_args *args, struct hv_err *err)
{
    struct hv_device_catalogue devices = {0};
    enum hv_status st = hv_device_catalogue_read(&devices, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_import *im = hv_import_new(&devices);
    st = read_files(args, im, err);
    bool json = hv_args_has(args, "json");
    if (st == HV_OK && json) {
        print_json_report(im);
    } else if (st == HV_OK && !hv_args_has(args, "quiet")) {
        print_report(im);
    }
    if (st == HV_OK && (!json || hv_args_has(args, "out"))) {
        struct hv_str text = {0};
        hv_json_write(&text, hv_import_document(im), true);
        st = hv_cli_write(args, &text, err);
        hv_str_free(&text);
    }
    hv_import_free(im);
    hv_device_catalogue_free(&devices);
    return st;
}
