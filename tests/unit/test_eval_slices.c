/** Token slices of unequal length (TeraPipe, Seq1F1B): each is priced with its tokens and with the
 * tokens before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tests/eval_fixture.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

static struct hv_verdict judge_slices(struct world *w, struct hv_arena *a, const char *slices,
                                      const char *stages)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "\"micro_batch\":2,\"schedule\":{\"name\":\"seq1f1b\",\"slices\":%s},"
                   "\"replicas\":[{\"micro_batches\":32,\"stages\":[%s]}]",
                   slices, stages);
    return judge(w, a, false, text);
}

static const char one_stage[] = "{\"devices\":\"a[0].0\",\"layers\":[0,24]}";
static const char two_stages[] = "{\"devices\":\"a[0].0\",\"layers\":[0,12]},"
                                 "{\"devices\":\"a[1].0\",\"layers\":[12,24]}";

/** A list of equal lengths is their number. */
static void equal_lengths_are_a_number(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict listed = judge_slices(*state, &a, "[512,512,512,512]", two_stages),
                      number = judge_slices(*state, &a, "4", two_stages);
    assert_true(listed.metrics.iteration_s == number.metrics.iteration_s);
    assert_true(listed.memory[0].peak_bytes == number.memory[0].peak_bytes);
    hv_arena_free(&a);
}

/** One stage runs its slices one after the other: the sum of passes with their tokens and those
 * before them. */
static void a_stage_takes_the_sum_of_its_slices(void **state)
{
    struct world *w = *state;
    struct hv_arena a = {0};
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    static const double tokens[] = {1500, 548}, before[] = {0, 1500};
    assert_int_equal(
        hv_plan_doc_build(&doc,
                          parse("{\"format\":\"hetviz.plan/1\",\"micro_batch\":2,\"replicas\":[{"
                                "\"micro_batches\":32,\"stages\":[{\"devices\":\"a[0].0\","
                                "\"layers\":[0,24]}]}]}",
                                "p"),
                          w->in.cluster.cluster, &err),
        HV_OK);
    double sum_s = 0;
    for (size_t i = 0; i < 2; i++) {
        const struct hv_stage_query q = {.plan = doc.plan,
                                         .replica = &doc.plan->replicas[0],
                                         .sequences = 2,
                                         .tokens = tokens[i],
                                         .context = before[i],
                                         .sliced = true};
        struct hv_pass p;
        assert_int_equal(hv_cost_pass(w->cost, &q, &p, &err), HV_OK);
        sum_s += p.forward_s + p.input_grad_s + p.weight_grad_s;
    }
    struct hv_verdict v = judge_slices(w, &a, "[1500,548]", one_stage);
    assert_near(v.metrics.pipeline_s, 32 * sum_s, 1e-9);
    assert_int_equal(v.n_rough, 0);
    struct hv_verdict turned = judge_slices(w, &a, "[548,1500]", one_stage);
    assert_true(turned.metrics.pipeline_s != v.metrics.pipeline_s); /* other tokens come before */
    hv_plan_doc_free(&doc);
    hv_arena_free(&a);
}

/** Keys and values of a slice are kept for the later ones, although everything is recomputed: 2
 * values of 2 bytes per token, channel and layer. */
static void keys_and_values_stay(void **state)
{
    struct world *w = *state;
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    struct hv_pass p[2];
    assert_int_equal(
        hv_plan_doc_build(&doc,
                          parse("{\"format\":\"hetviz.plan/1\",\"micro_batch\":2,\"replicas\":[{"
                                "\"micro_batches\":32,\"stages\":[{\"devices\":\"a[0].0\","
                                "\"layers\":[0,24],\"recompute\":\"full\"}]}]}",
                                "p"),
                          w->in.cluster.cluster, &err),
        HV_OK);
    for (int sliced = 0; sliced < 2; sliced++) {
        const struct hv_stage_query q = {.plan = doc.plan,
                                         .replica = &doc.plan->replicas[0],
                                         .sequences = 2,
                                         .tokens = 512,
                                         .context = 512,
                                         .sliced = sliced == 1};
        assert_int_equal(hv_cost_pass(w->cost, &q, &p[sliced], &err), HV_OK);
    }
    assert_near(p[1].activation_bytes - p[0].activation_bytes, 2.0 * 2 * 2 * 512 * 2560 * 24, 1e-9);
    hv_plan_doc_free(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_lengths_are_a_number),
        cmocka_unit_test(a_stage_takes_the_sum_of_its_slices),
        cmocka_unit_test(keys_and_values_stay),
    };
    return cmocka_run_group_tests_name("eval_slices", tests, setup, teardown);
}
