/* Job files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <string.h>

static enum hv_status build(struct hv_job_doc *d, const char *text, struct hv_err *e)
{
    struct hv_json j = {0};
    enum hv_status st = hv_json_parse(&j, text, strlen(text), "t.json", e);
    return st ? st : hv_job_doc_build(d, j, 4096, e);
}

#define TOP "{\"format\": \"hetviz.job/1\",\n"

static void everything(void **state)
{
    (void)state;
    struct hv_job_doc d = {0};
    struct hv_err e = {0};
    if (build(&d,
              TOP "\"name\": \"n\", \"global_batch\": 96, \"sequence\": 1024, \"precision\": "
                  "\"fp8\", \"optimizer\": \"momentum\", \"master_weights\": false, "
                  "\"grad_precision\": \"same\", \"memory_reserve_GiB\": 2, "
                  "\"attention\": \"unfused\", \"dropout\": \"on\", \"runtime\": \"fsdp\", "
                  "\"sequence_lengths\": [{\"tokens\": 10, \"frac\": 0.25}, {\"tokens\": 20, "
                  "\"frac\": 0.75}], \"objective\": {\"minimize\": \"cost\", \"max_usd_per_hour\": "
                  "9, \"allow_stale\": true}}",
              &e)) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(d.job.global_batch, 96);
    assert_int_equal(d.job.precision, HV_FP8);
    assert_int_equal(d.job.optimizer, HV_OPT_MOMENTUM);
    assert_true(!d.job.master_weights && !d.job.grad_fp32);
    assert_int_equal(d.job.attention, HV_ATTENTION_UNFUSED);
    assert_int_equal(d.job.dropout, HV_DROPOUT_ON);
    assert_int_equal(d.job.runtime, HV_RUNTIME_FSDP);
    assert_true(d.job.memory_reserve_bytes == 2 * HV_GIB);
    assert_int_equal(d.job.n_lengths, 2);
    assert_int_equal(d.job.objective.minimize, HV_MIN_COST);
    assert_true(d.job.objective.allow_stale && isnan(d.job.objective.deadline_s));
    hv_job_doc_free(&d);
    assert_int_equal(hv_job_doc_read(&d, NULL, 4096, &e), HV_OK);
    assert_int_equal(d.job.sequence, 4096);
    assert_true(d.job.grad_fp32);
    assert_int_equal(d.job.attention, HV_ATTENTION_AUTO);
    assert_int_equal(d.job.dropout, HV_DROPOUT_AUTO);
    assert_int_equal(d.job.runtime, HV_RUNTIME_HETVIZ);
    hv_job_doc_free(&d);
}

static const struct {
    const char *text, *says;
} bad[] = {
    {TOP "\"global_batch\": 0}", "global_batch"},
    {TOP "\"global_batch\": 1e300}", "global_batch"},
    {TOP "\"precision\": \"int8\"}", "bf16"},
    {TOP "\"attention\": \"fused\"}", "unfused"},
    {TOP "\"dropout\": 0.1}", "dropout"},
    {TOP "\"runtime\": \"deepsped\"}", "deepspeed"},
    {TOP "\"optimiser\": \"adam\"}", "optimizer"},
    {TOP "\"objective\": {\"minimise\": \"time\"}}", "minimize"},
    {TOP "\"objective\": {\"deadline_s\": -1}}", "objective.deadline_s"},
    {TOP "\"sequence_lengths\": [{\"tokens\": 5, \"frac\": 0.5}]}", "add up to 1"},
    {TOP "\"sequence_lengths\": []}", "add up to 1"},
    {TOP "\"memory_reserve_GiB\": \"2\"}", "memory_reserve_GiB"},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(bad); i++) {
        struct hv_job_doc d = {0};
        struct hv_err e = {0};
        if (build(&d, bad[i].text, &e) != HV_EINPUT) {
            fail_msg("row %zu is read", i);
        }
        if (e.line != 2 || !strstr(e.text, bad[i].says)) {
            fail_msg("row %zu: %u:%u: %s", i, e.line, e.col, e.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
