/* Calibrated classes: which device gets which, what is left out, what is refused and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "solver/io/own/cluster/calibration_file.h"
#include "solver/io/own/docs.h"

static enum hv_status add(struct hv_device_catalogue *c, const char *classes, struct hv_err *err)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"format\": \"hetviz.calibration/1\", \"classes\": [%s]}",
             classes);
    struct hv_json j = {0};
    assert_int_equal(hv_json_parse(&j, text, strlen(text), "cal.json", err), HV_OK);
    enum hv_status st = hv_calibration_add(c, &j, err);
    hv_json_free(&j);
    return st;
}

#define CLASS(parameters)                                                                          \
    "{\"name\": \"x\", \"devices\": \"A100,B2\", \"source\": \"s\", \"parameters\": " parameters "}"

static void names_match_whole_words(void **state)
{
    (void)state;
    struct hv_device_catalogue c = {0};
    assert_int_equal(add(&c, CLASS("{\"stream\": 0.5}"), NULL), HV_OK);
    const struct hv_calibration *x = hv_calibration_find(&c, "A100-SXM-80GB");
    assert_non_null(x);
    assert_true(x->v[HV_CAL_STREAM] == 0.5);
    assert_true(x->v[HV_CAL_GEMM_16] == hv_calibrated_rows[HV_CAL_GEMM_16].plain);
    assert_ptr_equal(hv_calibration_find(&c, "B2"), x);
    assert_ptr_equal(hv_calibration_find(&c, "A1000"), hv_calibration_typical());
    assert_ptr_equal(hv_calibration_find(&c, "B200-SXM"), hv_calibration_typical());
    hv_device_catalogue_free(&c);
}

static void wrong_files_name_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *classes, *says;
    } rows[] = {
        {CLASS("{\"steam\": 0.5}"), "stream"},
        {CLASS("{\"stream\": 5}"), "0.98"},
        {"{\"name\": \"x\"}", "devices"},
        {"3", "object"},
        {"{\"name\": \"x\", \"devices\": \"B\", \"source\": \"s\", \"parameters\": {}, "
         "\"errors\": {\"dense_16\": 0.1}}",
         "dense_16bit"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hv_device_catalogue c = {0};
        struct hv_err err = {0};
        assert_int_equal(add(&c, rows[i].classes, &err), HV_EINPUT);
        assert_non_null(strstr(err.text, rows[i].says));
        assert_int_equal(err.line, 1);
        assert_int_equal(c.n_classes, 0);
        hv_device_catalogue_free(&c);
    }
}

/* Half bands: those that a file gives, else those of devices without a class; written as read. */
static void half_bands_are_kept(void **state)
{
    (void)state;
    struct hv_device_catalogue c = {0}, again = {0};
    struct hv_err err = {0};
    assert_int_equal(add(&c,
                         "{\"name\": \"x\", \"devices\": \"A100\", \"source\": \"s\", "
                         "\"parameters\": {}, \"errors\": {\"dense_16bit\": 0.125}}",
                         &err),
                     HV_OK);
    const struct hv_calibration *x = hv_calibration_find(&c, "A100");
    assert_true(x->error[HV_ERROR_DENSE_16] == 0.125);
    assert_true(x->error[HV_ERROR_DENSE_8] == hv_calibration_typical()->error[HV_ERROR_DENSE_8]);
    struct hv_json j;
    hv_json_wrap(&j, hv_calibration_tree(c.classes, c.n_classes), "again");
    assert_int_equal(hv_calibration_add(&again, &j, &err), HV_OK);
    assert_memory_equal(again.classes[0].error, x->error, sizeof x->error);
    hv_json_free(&j);
    hv_device_catalogue_free(&again);
    hv_device_catalogue_free(&c);
}

/* Every shipped class holds for a device of the catalogue, and a cluster's kinds keep theirs. */
static void shipped_classes_hold(void **state)
{
    (void)state;
    struct hv_device_catalogue c;
    struct hv_cluster_doc doc = {0};
    struct hv_err err = {0};
    assert_int_equal(hv_device_catalogue_read(&c, &err), HV_OK);
    assert_true(c.n_classes > 0);
    for (size_t i = 0; i < c.n_classes; i++) {
        size_t n = 0;
        for (size_t k = 0; k < c.n_kinds; k++) {
            n += c.kinds[k].calibration == &c.classes[i];
        }
        assert_true(n > 0 || c.classes[i].devices[0] == '\0');
    }
    assert_int_equal(hv_cluster_doc_read(&doc, "a100-v100-t4", &c, &err), HV_OK);
    hv_device_catalogue_free(&c);
    assert_non_null(doc.cluster->kinds[0]->calibration);
    assert_true(
        hv_calibration_matches(doc.cluster->kinds[0]->calibration, doc.cluster->kinds[0]->name));
    hv_cluster_doc_free(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_match_whole_words),
        cmocka_unit_test(wrong_files_name_the_place),
        cmocka_unit_test(half_bands_are_kept),
        cmocka_unit_test(shipped_classes_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
