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

/** Judges for a search of something shorter than beat_s, 0: for itself. */
static struct hv_verdict judge_to_beat(struct world *w, struct hv_arena *a, double beat_s,
                                       const char *body)
{
    char text[4096];
    struct hv_plan_doc doc;
    struct hv_verdict v;
    struct hv_err err = {0};
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}", body);
    assert_int_equal(hv_plan_doc_build(&doc, parse(text, "p"), w->in.cluster.cluster, &err), HV_OK);
    const struct hv_eval_options o = {.beat_s = beat_s};
    if (hv_eval(w->cost, doc.plan, &o, a, &v, &err) != HV_OK) {
        fail_msg("eval: %s", err.text);
    }
    hv_plan_doc_free(&doc);
    return v;
}

static double beat_s; /* of the plans that verdict_of judges */

static struct hv_verdict verdict_of(const char *job, const char *micro_batches, const char *stage,
                                    struct hv_arena *a)
{
    char text[512], body[2048];
    bool two = strstr(stage, "\"layers\"") != NULL;
    (void)snprintf(text, sizeof text,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":4,\"sequence\":2048,"
                   "\"precision\":\"bf16\",\"attention\":\"flash\"%s}",
                   job);
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":%s,\"stages\":[{"
                   "\"devices\":\"%s\"%s%s}]}]",
                   micro_batches, two ? "a[0].0-3" : "a[0].*", two ? "" : ",\"layers\":[0,24]",
                   stage);
    struct world w;
    open_world(&w, cluster_text, model_text, text);
    struct hv_verdict v = judge_to_beat(&w, a, beat_s, body);
    close_world(&w);
    return v;
}

/* The longest of 5 sequences, against draws, and by hand: of two sequences both are short with 0.9
 * x 0.9. */
static void test_padded_lengths(void **state)
{
    (void)state;
    const struct hv_length_bin bins[] = {{4096, 0.1}, {512, 0.6}, {512, 0.3}};
    struct hv_job j = hv_job_default(4096);
    j.sequence = 4096;
    is(hv_job_mean_tokens(&j), 4096);
    is(hv_job_padded_tokens(&j, 8, 0.3), 4096);
    j.lengths = bins;
    j.n_lengths = 3;
    is(hv_job_mean_tokens(&j), 0.1 * 4096 + 0.9 * 512);
    is(hv_job_padded_share(&j, 2, 512), 0.81);
    is(hv_job_padded_share(&j, 2, 4096), 1);
    is(hv_job_padded_tokens(&j, 2, 0.8), 512);
    is(hv_job_padded_tokens(&j, 2, 0.82), 4096);
    const struct hv_length_bin many[] = {{100, 0.25}, {300, 0.25}, {200, 0.4}, {9000, 0.1}};
    j.lengths = many;
    j.n_lengths = 4;
    struct hv_rng r;
    hv_rng_seed(&r, 3);
    double upto = 0;
    for (int i = 0; i < 200000; i++) {
        double longest = 0;
        for (int k = 0; k < 5; k++) {
            double x = hv_rng_double(&r);
            double tokens = x < 0.25 ? 100 : x < 0.5 ? 300 : x < 0.9 ? 200 : 4096;
            longest = fmax(longest, tokens);
        }
        upto += longest <= 300;
    }
    assert_true(fabs(upto / 200000 / hv_job_padded_share(&j, 5, 300) - 1) < 0.01);
}

/* The lengths of two micro-batches of two sequences: 1024 with 1/4, 2048 with 3/4. */
static const char two_lengths[] = ",\"sequence_lengths\":[{\"tokens\":1024,\"frac\":0.5},"
                                  "{\"tokens\":2048,\"frac\":0.5}]";

/* An iteration with these micro-batches. */
static struct hv_verdict with_lengths(int a, int b, const char *stage, struct hv_arena *arena)
{
    char list[128];
    (void)snprintf(list, sizeof list,
                   "[{\"sequences\":2,\"tokens\":%d},{\"sequences\":2,\"tokens\":%d}]", 2 * a,
                   2 * b);
    return verdict_of("", list, stage, arena);
}

/* The expectation over all pairs of lengths. */
static double expected_s(const char *stage, struct hv_arena *a)
{
    const int lengths[] = {1024, 2048};
    const double share[] = {0.25, 0.75};
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++) {
            sum += share[i] * share[k] *
                   with_lengths(lengths[i], lengths[k], stage, a).metrics.iteration_s;
        }
    }
    return sum;
}

/* One pipeline of one stage: the expected time is exact, with attention and reductions, and above
 * the time of the expected length; memory has room for the longest. */
static void test_expected_time(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    static const char *const stages[] = {",\"dp\":2,\"tp\":4", ",\"dp\":2,\"tp\":4,\"zero\":3",
                                         ",\"dp\":1,\"cp\":8",
                                         ",\"dp\":2,\"tp\":4,\"recompute\":\"full\",\"zero\":1"};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct hv_verdict v = verdict_of(two_lengths, "2", stages[i], &a);
        is(v.metrics.iteration_s, expected_s(stages[i], &a));
        is(v.memory[0].peak_bytes, with_lengths(2048, 2048, stages[i], &a).memory[0].peak_bytes);
        assert_int_equal(v.n_approximated, 0);
        is(v.metrics.tokens_per_s, 4 * 1536 / v.metrics.iteration_s); /* without padding */
        assert_false(hv_known(v.metrics.bound_s));
        double sum = 0;
        for (int k = 0; k < HV_BREAKDOWN_N; k++) {
            sum += v.metrics.breakdown_s[k];
        }
        is(sum, v.metrics.iteration_s);
    }
    /* attention grows with the square: more than at the expected length of 1792 */
    struct hv_verdict mean = with_lengths(1792, 1792, stages[0], &a);
    assert_true(verdict_of(two_lengths, "2", stages[0], &a).metrics.iteration_s >
                1.0001 * mean.metrics.iteration_s);
    hv_arena_free(&a);
}

/* Stages that wait for each other: draws, within a percent of all pairs, and it is said. */
static void test_expected_time_of_stages(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *stages = ",\"layers\":[0,12],\"tp\":4},{\"devices\":\"a[0].4-7\",\"layers\":[12,24]"
                         ",\"tp\":4";
    struct hv_verdict v = verdict_of(two_lengths, "2", stages, &a);
    assert_true(fabs(v.metrics.iteration_s / expected_s(stages, &a) - 1) < 0.01);
    assert_int_equal(v.n_approximated, 1);
    assert_non_null(strstr(v.approximated[0], "24 drawn iterations"));
    struct hv_verdict again = verdict_of(two_lengths, "2", stages, &a);
    is(again.metrics.iteration_s, v.metrics.iteration_s); /* a plan has one answer */
    /* one length with certainty needs no luck */
    v = verdict_of(",\"sequence_lengths\":[{\"tokens\":1024,\"frac\":1}]", "2", stages, &a);
    is(v.metrics.iteration_s, with_lengths(1024, 1024, stages, &a).metrics.iteration_s);
    hv_arena_free(&a);
}

/* A search for something shorter: plans that are longer with equal lengths are not drawn. */
static void test_expected_time_to_beat(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *stages = ",\"layers\":[0,12],\"tp\":4},{\"devices\":\"a[0].4-7\",\"layers\":[12,24]"
                         ",\"tp\":4";
    double equal_s = 0.25 * with_lengths(1024, 1024, stages, &a).metrics.iteration_s +
                     0.75 * with_lengths(2048, 2048, stages, &a).metrics.iteration_s;
    struct hv_verdict whole = verdict_of(two_lengths, "2", stages, &a);
    is(whole.common_s, equal_s);
    assert_false(whole.common_only);
    assert_true(whole.metrics.iteration_s > 1.001 * equal_s); /* one waits for the other */
    beat_s = 1.001 * equal_s;
    struct hv_verdict near = verdict_of(two_lengths, "2", stages, &a);
    is(near.metrics.iteration_s, whole.metrics.iteration_s);
    assert_false(near.common_only);
    beat_s = 0.999 * equal_s;
    struct hv_verdict far = verdict_of(two_lengths, "2", stages, &a);
    beat_s = 0;
    is(far.metrics.iteration_s, equal_s);
    assert_true(far.common_only);
    is(far.memory[0].peak_bytes, whole.memory[0].peak_bytes);
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

/* Seconds of a forward pass of one rank's attention half in a ring of two over 4096 tokens. */
static double ring_s(struct hv_cost *k, const int *lengths, size_t n)
{
    const struct hv_documents d = {lengths, n, 4096};
    const uint32_t ids[] = {0, 1};
    struct hv_part_query q = {.device = hv_cluster_device(hv_cost_cluster(k), 0).kind,
                              .tp = 1,
                              .cp = 2,
                              .ep = 1,
                              .sequences = 1,
                              .tokens = 4096,
                              .documents = &d,
                              .group = ids};
    return hv_cost_part(k, HV_PART_ATTENTION, 0, &q, NULL).forward_s;
}

/* Work of n documents of 2 c tokens in a ring of two, in pairs: each is halved, the second half
 * lies on the second rank, which computes a triangle of tiles of 128, then a whole square that is
 * merged for 3 % more. The rate of the core is that of the mean over the ranks. */
static double ring_work(double n, double c)
{
    double triangle = c * (c + 128) / 2, square = c * c, all = 2 * c * (2 * c + 128) / 2;
    return n * (2 * c) * (2 * c) / 2 * (triangle + 1.03 * square) / all;
}

/* Documents in a ring, by hand: steps of each rank over every document by itself. */
static void test_documents_in_a_ring(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, cluster_text, model_text,
               "{\"format\":\"hetviz.job/1\",\"global_batch\":4,\"sequence\":4096,"
               "\"precision\":\"bf16\",\"attention\":\"flash\"}");
    double one = ring_s(w.cost, (const int[]){4096}, 1);
    double two = ring_s(w.cost, (const int[]){2048, 2048}, 2);
    double four = ring_s(w.cost, (const int[]){1024, 1024, 1024, 1024}, 4);
    is((one - two) / (one - four),
       (ring_work(1, 2048) - ring_work(2, 1024)) / (ring_work(1, 2048) - ring_work(4, 512)));
    /* their order does not matter */
    is(ring_s(w.cost, (const int[]){1024, 3072}, 2), ring_s(w.cost, (const int[]){3072, 1024}, 2));
    close_world(&w);
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
        cmocka_unit_test(test_padded_lengths),
        cmocka_unit_test(test_expected_time),
        cmocka_unit_test(test_expected_time_of_stages),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_documents_in_a_ring),
        cmocka_unit_test(test_pairs_of_documents),
        cmocka_unit_test(test_too_many_documents),
        cmocka_unit_test(test_expected_time_to_beat),
    };
    return cmocka_run_group_tests_name("eval_lengths", tests, NULL, NULL);
}
