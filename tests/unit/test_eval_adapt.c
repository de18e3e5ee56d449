/** Places of experts that follow the routing: what policies may see, what moves cost, and when they
 * are not made. Links and rates are plain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "tests/eval_fixture.h"

/** One layer of eight experts, each of two matrices, on four nodes of one device. */
static const double expert = 2.0 * 1024 * 4096;

/** `lengths`: members of the job, or "". */
static struct hv_verdict verdict_of(const char *counts, const char *moe, int batch,
                                    const char *lengths, struct hv_arena *a)
{
    char cluster[1024], job[4096], body[1024];
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"plain\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":4,\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":10,"
                   "\"latency_us\":0,\"curve\":\"plain\"}}],\"devices\":{\"P\":{\"memory_GiB\":80,"
                   "\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":10},\"rates\":\"plain\"}}}");
    const char *model = "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
                        "\"layers\":1,\"hidden\":1024,\"heads\":8,\"kv_heads\":8,\"ffn\":4096,"
                        "\"ffn_kind\":\"gelu\",\"ffn_bias\":false,\"vocab\":1000,"
                        "\"max_sequence\":1024,\"moe\":{\"experts\":8,\"top_k\":1,\"ffn\":4096}}";
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":1024,"
                   "\"precision\":\"fp32\",\"optimizer\":\"adam\",\"routing\":{\"kind\":\"trace\","
                   "\"counts\":[%s]}%s}",
                   batch, counts, lengths);
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":1,\"stages\":[{"
                   "\"devices\":\"a[0-3].0\",\"layers\":[0,1],\"dp\":4,\"ep\":4,\"moe\":{"
                   "\"all_to_all\":\"flat\"%s}}]}]",
                   batch, moe);
    struct world w;
    open_world(&w, cluster, model, job);
    struct hv_verdict v = judge(&w, a, false, body);
    close_world(&w);
    return v;
}

static struct hv_verdict verdict(const char *counts, const char *moe, int batch, struct hv_arena *a)
{
    return verdict_of(counts, moe, batch, "", a);
}

static void assert_near(double got, double want, double by)
{
    if (!(fabs(got - want) <= by * fabs(want))) {
        fail_msg("%.17g is not %.17g", got, want);
    }
}

#define FALLING "[[[8,7,6,5,4,3,2,1]]]"
#define RISING  "[[[1,2,3,4,5,6,7,8]]]"
#define HOT     "[[[40,1,1,1,1,1,1,1]]]"
#define COLD    "[[[1,1,1,1,1,1,1,40]]]"
#define BALANCE ",\"adapt\":{\"policy\":\"balance\"}"

static double time_of(const char *counts, const char *moe)
{
    struct hv_arena a = {0};
    double s = verdict(counts, moe, 64, &a).metrics.iteration_s;
    hv_arena_free(&a);
    return s;
}

/** SmartMoE's case: 8 … 1 on four ranks of two places, 15, 11, 7, 3 in their usual order and 9 each
 * after the first iteration. Ranks 0 and 3 exchange an expert, and so do 1 and 2: four moves of
 * weights and both moments, one out of every node. */
static void balanced_after_the_first(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_verdict v = verdict(FALLING "," FALLING "," FALLING, BALANCE, 64, &a);
    double first_s = time_of(FALLING, "");
    double even_s = time_of(FALLING, ",\"owners\":[0,3,1,2,2,1,3,0]");
    double move_s = expert * 12 / 10e9;
    assert_int_equal(v.routing.moves, 4);
    assert_near(v.routing.moved_bytes, 4 * expert * 12, 1e-9);
    assert_near(v.routing.mean_s, (first_s + move_s + 2 * even_s) / 3, 1e-9);
    assert_near(v.metrics.iteration_s, v.routing.mean_s, 0);
    double sum = 0;
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        sum += v.metrics.breakdown_s[i];
    }
    assert_near(sum, v.metrics.iteration_s, 1e-9);
    hv_arena_free(&a);
}

/** Sequences of two lengths: 64 to a micro-batch, all short with 0.99^64. The places are the same,
 * and every iteration has the expected time of its own lengths; the moves come once. */
static void lengths_beside_places(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *some = ",\"sequence_lengths\":[{\"tokens\":512,\"frac\":0.99},"
                       "{\"tokens\":1024,\"frac\":0.01}]";
    const char *all_short = ",\"sequence_lengths\":[{\"tokens\":512,\"frac\":1}]";
    const char *all_long = ",\"sequence_lengths\":[{\"tokens\":1024,\"frac\":1}]";
    const char *counts = FALLING "," FALLING "," FALLING;
    struct hv_verdict plain = verdict(counts, BALANCE, 64, &a);
    struct hv_verdict same = verdict_of(counts, BALANCE, 64, all_long, &a);
    assert_near(same.metrics.iteration_s, plain.metrics.iteration_s, 1e-12);
    assert_near(same.routing.moved_bytes, plain.routing.moved_bytes, 0);
    struct hv_verdict less = verdict_of(counts, BALANCE, 64, all_short, &a);
    struct hv_verdict both = verdict_of(counts, BALANCE, 64, some, &a);
    assert_int_equal(less.routing.moves, 4);
    assert_int_equal(both.routing.moves, 4);
    double share = pow(0.99, 64);
    assert_near(both.routing.mean_s,
                share * less.routing.mean_s + (1 - share) * same.routing.mean_s, 1e-9);
    hv_arena_free(&a);
}

/** A policy sees the iterations before its own: what comes in the last one changes nothing. Loads
 * that turn round every time are met by the places for the other half. */
static void policies_do_not_see_what_comes(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_verdict same = verdict(FALLING "," FALLING, BALANCE, 64, &a);
    struct hv_verdict other = verdict(FALLING "," HOT, BALANCE, 64, &a);
    assert_int_equal(same.routing.moves, other.routing.moves);
    assert_near(same.routing.moved_bytes, other.routing.moved_bytes, 0);
    double want =
        time_of(FALLING, "") + expert * 12 / 10e9 + time_of(HOT, ",\"owners\":[0,3,1,2,2,1,3,0]");
    assert_near(other.routing.mean_s, want / 2, 1e-9);
    hv_arena_free(&a);
}

/** Few tokens gain less in one iteration than a move takes, and more in four. */
static void moves_must_pay(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *six = FALLING "," FALLING "," FALLING "," FALLING "," FALLING "," FALLING;
    const char *four = ",\"adapt\":{\"policy\":\"balance\",\"interval\":4}";
    struct hv_verdict hasty = verdict(six, BALANCE, 4, &a), still = verdict(six, "", 4, &a);
    struct hv_verdict patient = verdict(six, four, 4, &a);
    double gain_s = verdict(FALLING, "", 4, &a).metrics.iteration_s -
                    verdict(FALLING, ",\"owners\":[0,3,1,2,2,1,3,0]", 4, &a).metrics.iteration_s;
    double move_s = expert * 12 / 10e9;
    assert_true(gain_s < move_s && 4 * gain_s > move_s);
    assert_int_equal(hasty.routing.moves, 0);
    assert_near(hasty.routing.mean_s, still.routing.mean_s, 1e-12);
    /* decided before the fifth iteration: two of six have the new places */
    assert_int_equal(patient.routing.moves, 4);
    assert_near(still.routing.mean_s - patient.routing.mean_s, (2 * gain_s - move_s) / 6, 1e-6);
    hv_arena_free(&a);
}

/** Copies follow the hottest expert; those of one iteration are sent and never moved. A second one
 * is not made where the last iteration would have been longer with it. */
static void copies_follow(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *three = HOT "," COLD "," COLD;
    const char *follow =
        ",\"copy_life\":\"iteration\",\"adapt\":{\"policy\":\"copy\",\"experts\":4}";
    const char *first = ",\"copies\":{\"0\":\"*\"},\"copy_life\":\"iteration\"";
    const char *last = ",\"copies\":{\"7\":\"*\"},\"copy_life\":\"iteration\"";
    struct hv_verdict v = verdict(three, follow, 64, &a);
    assert_near(v.routing.mean_s,
                (time_of(HOT, "") + time_of(COLD, first) + time_of(COLD, last)) / 3, 1e-9);
    assert_int_equal(v.routing.moves, 0);
    assert_true(v.routing.moved_bytes == 0.0);
    assert_true(v.routing.mean_s < verdict(HOT "," HOT "," HOT, "", 64, &a).routing.mean_s);
    hv_arena_free(&a);
}

/** A record is followed from the iterations that it names, and costs its moves. */
static void records_are_followed(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *record = ",\"adapt\":{\"policy\":\"record\",\"placements\":[{\"iteration\":1,"
                         "\"owners\":[3,2,1,0,0,1,2,3]}]}";
    struct hv_verdict v = verdict(RISING "," RISING, record, 64, &a);
    double want = time_of(RISING, "") + time_of(RISING, ",\"owners\":[3,2,1,0,0,1,2,3]");
    /* all but experts 2 and 7 move; two leave rank 0 and two arrive there, as at rank 2 */
    assert_int_equal(v.routing.moves, 6);
    assert_near(2 * v.routing.mean_s - want, 2 * expert * 12 / 10e9, 1e-9);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced_after_the_first),
        cmocka_unit_test(lengths_beside_places),
        cmocka_unit_test(policies_do_not_see_what_comes),
        cmocka_unit_test(moves_must_pay),
        cmocka_unit_test(copies_follow),
        cmocka_unit_test(records_are_followed),
    };
    return cmocka_run_group_tests_name("eval_adapt", tests, NULL, NULL);
}
