/* Profile files: what is read, whom it is given to, what is refused and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/io/own/cluster/profile_file.h"
#include "solver/io/own/docs.h"

#define AXIS "{\"from\": 3, \"step\": 1, \"count\": 2}"
#define HEAD                                                                                       \
    "{\"format\": \"hetviz.profile/1\",\n \"device\": \"X\", \"source\": \"s\", "                  \
    "\"bandwidth_GBps\": 100"
#define AXES                                                                                       \
    "\"precision\": \"fp16\", \"peak_TFLOPS\": 100, \"log2_m\": " AXIS ", \"log2_n\": " AXIS       \
    ", \"log2_k\": " AXIS
#define GEMM   "{" AXES ", \"TFLOPS\": [[[1, 2], [2, 4]], [[2, 4], [4, 8]]]}"
#define STREAM "{\"kernel\": \"add\", \"log2_bytes\": " AXIS ", \"GBps\": "

static enum hv_status read_text(struct hv_arena *arena, const char *text, struct hv_profile **p,
                                struct hv_err *err)
{
    struct hv_json j = {0};
    assert_int_equal(hv_json_parse(&j, text, strlen(text), "p.json", err), HV_OK);
    enum hv_status st = hv_profile_read(&j, arena, p, err);
    hv_json_free(&j);
    return st;
}

static double rate(const struct hv_gemm_table *t, double m, double n, double k)
{
    return exp2(hv_gemm_table_log2_flops_per_s(t, log2(m), log2(n), log2(k)));
}

/* Is the profile for this device, measured or of the same chip? */
static bool covers(const struct hv_profile *p, const char *device)
{
    bool same = strcmp(p->device, device) == 0;
    for (size_t i = 0; i < p->n_same_chip; i++) {
        same = same || strcmp(p->same_chip[i], device) == 0;
    }
    return same;
}

static void near(double got, double want)
{
    if (!(fabs(got / want - 1) < 1e-12)) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static void tables_are_read_and_interpolated(void **state)
{
    (void)state;
    struct hv_arena arena = {0}, other = {0};
    struct hv_profile *p = NULL;
    struct hv_err err = {0};
    assert_int_equal(read_text(&arena,
                               HEAD ", \"same_chip\": [\"Y\", \"Z\"], \"kernel_start_us\": 2.5, "
                                    "\"gemm\": [" GEMM "], \"stream\": " STREAM "[50, 100]}}",
                               &p, &err),
                     HV_OK);
    const struct hv_profile *copy = hv_profile_copy(&other, p);
    assert_string_equal(copy->device, p->device);
    assert_int_equal(copy->n_gemm, 1);
    assert_int_equal(hv_gemm_table_size(copy->gemm), hv_gemm_table_size(p->gemm));
    assert_memory_equal(copy->gemm->log2_flops_per_s, p->gemm->log2_flops_per_s,
                        hv_gemm_table_size(p->gemm) * sizeof(double));
    assert_int_equal(copy->stream->bytes.count, p->stream->bytes.count);
    assert_memory_equal(copy->stream->log2_bytes_per_s, p->stream->log2_bytes_per_s,
                        p->stream->bytes.count * sizeof(double));
    hv_arena_free(&arena);
    assert_true(covers(copy, "X") && covers(copy, "Z"));
    assert_false(covers(copy, "W"));
    near(copy->kernel_start_s, 2.5e-6);
    near(copy->memory_bytes_per_s, 1e11);
    const struct hv_gemm_table *t = hv_profile_gemm(copy, HV_BF16);
    assert_non_null(t);
    assert_null(hv_profile_gemm(copy, HV_FP8));
    near(t->best_flops_per_s, 8e12);
    assert_true(isnan(t->error_frac));
    near(rate(t, 8, 8, 8), 1e12);
    near(rate(t, 16, 8, 16), 4e12);
    near(rate(t, 8 * sqrt(2), 8, 16), 2e12 * sqrt(2)); /* log-linear */
    near(rate(t, 1, 1e9, 12), 2e12 * 1.5);             /* nearest place of the grid */
    near(hv_stream_table_bytes_per_s(copy->stream, 8), 50e9);
    near(hv_stream_table_bytes_per_s(copy->stream, 1e6), 100e9);
    near(copy->stream->long_bytes_per_s, 100e9);
    hv_arena_free(&other);
}

static void wrong_files_name_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        unsigned line;
    } rows[] = {
        {HEAD "}", "\"gemm\" or \"stream\"", 1},
        {HEAD ", \"gem\": []}", "gemm", 2},
        {HEAD ",\n\"gemm\": [{" AXES "}]}", "TFLOPS", 3},
        {HEAD ",\n\"gemm\": [{" AXES ", \"TFLOPS\":\n[[[1, 2], [2, 4]]]}]}", "expected 2 values",
         4},
        {HEAD ",\n\"gemm\": [{" AXES ", \"TFLOPS\": [[[1, 2], [2, 4]], [[2, 4],\n [4]]]}]}",
         "expected 2 values", 4},
        {HEAD ",\n\"gemm\": [{" AXES ", \"TFLOPS\": [[[1, 2], [2, 4]],\n[[2, 4], [4, 8.1]]]}]}",
         "more work would take less time", 4},
        {HEAD ",\n\"gemm\": [{" AXES ", \"TFLOPS\": [[[1, 0], [2, 4]], [[2, 4], [4, 8]]]}]}",
         "TFLOPS[0][0][1]", 3},
        {HEAD ",\n\"gemm\": [" GEMM ", " GEMM "]}", "second table of fp16", 3},
        {HEAD ",\n\"stream\": " STREAM "[1, 2.5]}}", "at most 2", 3},
        {HEAD ",\n\"stream\": " STREAM "3}}", "GBps", 3},
        {"{\"format\": \"hetviz.profile/1\", \"device\": \"X\"}", "source", 1},
        {"{\"format\": \"hetviz.profile/2\"}", "hetviz.profile/1", 1},
        {HEAD ",\n\"stream\": {\"kernel\": \"add\", \"log2_bytes\": {\"from\": 0, \"step\": 1, "
              "\"count\": 1}, \"GBps\": [1]}}",
         "count", 3},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_arena arena = {0};
        struct hv_profile *p = NULL;
        struct hv_err err = {0};
        assert_int_equal(read_text(&arena, rows[i].text, &p, &err), HV_EINPUT);
        if (!strstr(err.text, rows[i].says) || err.line != rows[i].line || err.col == 0) {
            fail_msg("row %zu: %u:%u: %s", i, err.line, err.col, err.text);
        }
        hv_arena_free(&arena);
    }
}

static void kinds_must_be_in_the_catalogue(void **state)
{
    (void)state;
    static const char text[] = HEAD ", \"stream\": " STREAM "[1, 2]}}";
    struct hv_device_catalogue c = {0};
    struct hv_json j = {0};
    struct hv_err err = {0};
    assert_int_equal(hv_json_parse(&j, text, strlen(text), "p.json", &err), HV_OK);
    assert_int_equal(hv_profile_add(&c, &j, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "no device \"X\""));
    c.kinds = hv_arena_new(&c.arena, struct hv_device_kind, 1);
    c.kinds[0].name = "X";
    c.n_kinds = 1;
    assert_int_equal(hv_profile_add(&c, &j, &err), HV_OK);
    assert_non_null(c.kinds[0].profile);
    hv_json_free(&j);
    hv_device_catalogue_free(&c);
}

/* What is shipped: three chips, and a cluster that keeps its tables when the catalogue is gone. */
static void shipped_profiles(void **state)
{
    (void)state;
    struct hv_device_catalogue c;
    struct hv_cluster_doc doc;
    struct hv_err err = {0};
    assert_int_equal(hv_device_catalogue_read(&c, &err), HV_OK);
    static const char *const with[] = {"A100-SXM-80GB", "A100-SXM-40GB", "H100-SXM-80GB",
                                       "H200-SXM-141GB", "A40-48GB"};
    for (size_t i = 0; i < HV_COUNT(with); i++) {
        const struct hv_device_kind *k = hv_device_find(&c, with[i]);
        assert_non_null(k->profile);
        assert_true(covers(k->profile, with[i]));
        assert_string_equal(k->profile->licence, "MIT");
        const struct hv_gemm_table *t = hv_profile_gemm(k->profile, HV_BF16);
        assert_true(t->best_flops_per_s < t->peak_flops_per_s);
        assert_true(t->error_frac > 0 && t->error_frac < 0.1);
    }
    assert_null(hv_device_find(&c, "V100-SXM2-32GB")->profile);
    assert_int_equal(hv_cluster_doc_read(&doc, "a100-v100-t4", &c, &err), HV_OK);
    hv_device_catalogue_free(&c);
    const struct hv_device_kind *a = doc.cluster->kinds[0];
    assert_non_null(a->profile);
    assert_non_null(strstr(a->profile->source, "vidur"));
    near(hv_profile_gemm(a->profile, HV_FP16)->peak_flops_per_s, 312e12);
    hv_cluster_doc_free(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_are_read_and_interpolated),
                                       cmocka_unit_test(wrong_files_name_the_place),
                                       cmocka_unit_test(kinds_must_be_in_the_catalogue),
                                       cmocka_unit_test(shipped_profiles)};
    return cmocka_run_group_tests_name("io_profile", tests, NULL, NULL);
}
