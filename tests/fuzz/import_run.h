/** One file of another program for the fuzz targets of imports. */
#ifndef TESTS_FUZZ_IMPORT_RUN_H
#define TESTS_FUZZ_IMPORT_RUN_H

#include "solver/base/vec.h"
#include "solver/io/import/import.h"
#include "solver/io/own/docs.h"
#include <stdint.h>
#include <stdlib.h>

/* Read once and kept for all inputs. */
static const struct hv_device_catalogue *catalogue(void)
{
    static struct hv_device_catalogue devices;
    if (devices.n_kinds == 0 && hv_device_catalogue_read(&devices, NULL)) {
        abort();
    }
    return &devices;
}

static void check_refusal(enum hv_status st, const struct hv_err *err)
{
    if (err->text[0] == '\0' || st == HV_EINTERNAL) {
        abort(); /* a refusal without a word, or a mistake of ours */
    }
}

static void run(const struct hv_import_format *format, const uint8_t *data, size_t size)
{
    struct hv_import *im = hv_import_new(catalogue());
    struct hv_err err = {0};
    enum hv_status st = hv_import_text(im, format, "fuzz", (const char *)data, size, &err);
    if (st != HV_OK) {
        check_refusal(st, &err);
    } else if ((st = hv_import_finish(im, &err)) != HV_OK) {
        check_refusal(st, &err);
        if (st == HV_EINPUT) {
            abort(); /* what the import wrote, our own reader does not take */
        }
    } else {
        struct hv_str text = {0};
        hv_json_write(&text, hv_import_document(im), true);
        hv_import_report(im, &text);
        if (text.n == 0) {
            abort();
        }
        hv_str_free(&text);
    }
    hv_import_free(im);
}

#endif
