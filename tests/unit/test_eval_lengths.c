/* Sequences of unequal length: padding by the job's distribution, and documents packed into
 * sequences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "tests/eval_fixture.h"

static void is(double got, double want)
{
    if (!(fabs(got / want - 1) < 1e-9)) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static struct hv_verdict verdict_of(const char *job, const char *micro_batches, const char *stage,
                                    struct hv_arena *a)
{
    char text[512], body[2048];
    (void)snprintf(text, sizeof text,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":4,\"sequence\":2048,"
                   "\"precision\":\"bf16\",\"attention\":\"flash\"%s}",
                   job);
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":%s,\"stages\":[{"
                   "\"devices\":\"a[0].*\",\"layers\":[0,24]%s}]}]",
                   micro_batches, stage);
    struct world w;
    open_world(&w, cluster_text, model_text, text);
    struct hv_verdict v = judge(&w, a, false, body);
    close_world(&w);
    return v;
}

/* Against draws, and by hand: of two sequences both are short with 0.9 x 0.9. */
static void test_expected_longest(void **state)
{
    (void)state;
    const struct hv_length_bin bins[] = {{4096, 0.1}, {512, 0.6}, {512, 0.3}};
    struct hv_job j = hv_job_default(4096);
    j.sequence = 4096;
    is(hv_job_mean_tokens(&j), 4096);
    is(hv_job_padded_tokens(&j, 8), 4096);
    j.lengths = bins;
    j.n_lengths = 3;
    is(hv_job_mean_tokens(&j), 0.1 * 4096 + 0.9 * 512);
    is(hv_job_padded_tokens(&j, 1), hv_job_mean_tokens(&j));
    is(hv_job_padded_tokens(&j, 2), 0.19 * 4096 + 0.81 * 512);
    const struct hv_length_bin many[] = {{100, 0.25}, {300, 0.25}, {200, 0.4}, {9000, 0.1}};
    j.lengths = many;
    j.n_lengths = 4;
    struct hv_rng r;
    hv_rng_seed(&r, 3);
    double sum = 0;
    for (int i = 0; i < 200000; i++) {
        double longest = 0;
        for (int k = 0; k < 5; k++) {
            double x = hv_rng_double(&r);
            double tokens = x < 0.25 ? 100 : x < 0.5 ? 300 : x < 0.9 ? 200 : 4096;
            longest = fmax(longest, tokens);
        }
        sum += longest;
    }
    assert_true(fabs(sum / 200000 / hv_job_padded_tokens(&j, 5) - 1) < 0.01);
}

/* A distribution is timed as micro-batches of its expected longest sequence, and it is said. */
static void test_padded_micro_batches(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *lengths = ",\"sequence_lengths\":[{\"tokens\":1024,\"frac\":0.5},"
                          "{\"tokens\":2048,\"frac\":0.5}]";
    struct hv_verdict v = verdict_of(lengths, "2", ",\"dp\":2,\"tp\":4", &a);
    struct hv_verdict same =
        verdict_of("", "[{\"sequences\":2,\"tokens\":3584},{\"sequences\":2,\"tokens\":3584}]",
                   ",\"dp\":2,\"tp\":4", &a); /* 2 x (0.75 x 2048 + 0.25 x 1024) */
    struct hv_verdict whole = verdict_of("", "2", ",\"dp\":2,\"tp\":4", &a);
    is(v.metrics.iteration_s, same.metrics.iteration_s);
    assert_true(v.metrics.iteration_s < whole.metrics.iteration_s);
    assert_int_equal(v.n_approximated, 1);
    assert_non_null(strstr(v.approximated[0], "expected length of its longest sequence"));
    is(v.metrics.tokens_per_s, 4 * 1536 / v.metrics.iteration_s); /* tokens without padding */
    assert_false(hv_known(v.metrics.bound_s));
    hv_arena_free(&a);
}

/* One document per sequence is no packing; smaller ones save the pairs between them. */
static void test_documents(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    static const char *const stages[] = {
        ",\"dp\":2,\"tp\":4", ",\"dp\":1,\"cp\":8",
        ",\"dp\":1,\"cp\":{\"degree\":8,\"layout\":\"zigzag\",\"tile\":16}",
        ",\"dp\":2,\"cp\":{\"degree\":4,\"scheme\":\"distflash\"}"};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        double plain = verdict_of("", "[{\"sequences\":2},{\"sequences\":2}]", stages[i], &a)
                           .metrics.iteration_s;
        double one = verdict_of("",
                                "[{\"sequences\":2,\"documents\":[2048,2048]},"
                                "{\"sequences\":2,\"documents\":[2048,2048]}]",
                                stages[i], &a)
                         .metrics.iteration_s;
        double small = verdict_of("",
                                  "[{\"sequences\":2,\"documents\":[1024,1024,2048]},"
                                  "{\"sequences\":2,\"documents\":[256,256,512,1024,2048]}]",
                                  stages[i], &a)
                           .metrics.iteration_s;
        is(one, plain);
        if (!(small < one)) {
            fail_msg("%s: %.9g is not below %.9g", stages[i], small, one);
        }
    }
    hv_arena_free(&a);
}

/* FLOP of attention by the pairs of each document: 24 blocks, 2560 values, forward and backward. */
static void test_pairs_of_documents(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_metrics one = verdict_of("", "[{\"sequences\":4}]", ",\"dp\":2,\"tp\":4", &a).metrics;
    struct hv_verdict v = verdict_of("",
                                     "[{\"sequences\":4,\"documents\":[2048,2048,2048,512,1024,"
                                     "512]}]",
                                     ",\"dp\":2,\"tp\":4", &a);
    double peak = 8 * 312e12;
    double saved = (one.mfu * one.iteration_s - v.metrics.mfu * v.metrics.iteration_s) * peak;
    double pairs = 2048.0 * 2048 / 2 - (2 * 512.0 * 512 + 1024.0 * 1024) / 2;
    is(saved, 3 * 4 * 2560 * 24 * pairs);
    assert_int_equal(v.n_approximated, 0);
    assert_false(hv_known(v.metrics.bound_s)); /* that of whole sequences does not hold */
    hv_arena_free(&a);
}

static void test_too_many_documents(void **state)
{
    (void)state;
    struct world w;
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    open_world(&w, cluster_text, model_text, job_text);
    const char *text = "{\"format\":\"hetviz.plan/1\",\"micro_batch\":1,\"replicas\":[{"
                       "\"micro_batches\":[{\"tokens\":1000,\"documents\":[600,500]}],\"stages\":[{"
                       "\"devices\":\"a[0].0\",\"layers\":[0,24]}]}]}";
    assert_int_equal(hv_plan_doc_build(&doc, parse(text, "p"), w.in.cluster.cluster, &err),
                     HV_EINPUT);
    assert_non_null(strstr(err.text, "documents of 1100 tokens in a micro-batch of 1000"));
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expected_longest),   cmocka_unit_test(test_padded_micro_batches),
        cmocka_unit_test(test_documents),          cmocka_unit_test(test_pairs_of_documents),
        cmocka_unit_test(test_too_many_documents),
    };
    return cmocka_run_group_tests_name("eval_lengths", tests, NULL, NULL);
}
