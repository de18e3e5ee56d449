/** Experts in the judge: who reduces the gradients of whole and of cut experts, bucket sizes, and
 * which knobs the verdict calls approximated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/eval_fixture.h"

static const char experts_text[] =
    "{\"format\":\"hetviz.model/"
    "1\",\"name\":\"moe\",\"kind\":\"transformer\",\"layers\":8,\"hidden\":1024,\"heads\":16,"
    "\"kv_heads\":16,\"ffn\":4096,\"ffn_kind\":\"swiglu\",\"vocab\":32000,\"max_sequence\":2048,"
    "\"moe\":{\"experts\":8,\"top_k\":2,\"ffn\":2048}}";

static int setup_experts(void **state)
{
    static struct world w;
    open_world(&w, cluster_text, experts_text, job_text);
    *state = &w;
    return 0;
}

/* One stage on the first eight A100: tp 4 x dp 2, with more keys and a way to synchronise. */
static struct hv_verdict on_one_node(void **state, struct hv_arena *a, const char *keys,
                                     const char *sync)
{
    char body[1024];
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":32,\"stages\":[{\"devices\":"
                   "\"a[0].*\",\"layers\":[0,8],\"tp\":4,\"dp\":2,\"sequence_parallel\":true%s}]}],"
                   "\"sync\":{%s}",
                   keys, sync);
    return judge(*state, a, false, body);
}

static double reduced_s(void **state, const char *keys)
{
    struct hv_arena a = {0};
    struct hv_verdict v = on_one_node(state, &a, keys, "\"overlap\":false");
    assert_int_equal(v.findings.n, 0);
    double s = v.metrics.breakdown_s[HV_TIME_DP];
    hv_arena_free(&a);
    return s;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) {
        fail_msg("%.17g is not %.17g", got, want);
    }
}

/* ep 2 cut by tp 4, and ep 8 of whole ones: each expert sits once, only the rest is reduced. ep 1
 * cut by tp 4, and ep 4 of whole ones: two holders of a quarter of the experts. */
static void gradients_of_experts_go_to_those_who_hold_them(void **state)
{
    double once = reduced_s(state, ",\"ep\":2"), twice = reduced_s(state, "");
    assert_true(once > 0 && twice > once);
    assert_near(reduced_s(state, ",\"ep\":8"), once);
    assert_near(reduced_s(state, ",\"ep\":4"), twice);
}

/* Reductions beside the backward pass show less than after it; one bucket waits for all layers. */
static void buckets_and_overlap_are_honoured(void **state)
{
    struct hv_arena a = {0};
    const char *const sync[] = {"\"overlap\":false", "\"bucket_MiB\":100000", "\"bucket_MiB\":25"};
    double s[3];
    for (int i = 0; i < 3; i++) {
        s[i] = on_one_node(state, &a, "", sync[i]).metrics.breakdown_s[HV_TIME_DP];
    }
    assert_true(s[0] >= s[1] && s[1] > s[2] && s[2] > 0);
    hv_arena_free(&a);
}

/* Optimizer, gather and what is around the steps on every rank besides passes and buckets. */
static void every_span_has_room(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(
        *state, &a, true,
        "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":32,\"stages\":[{\"devices\":\"a[0].*\","
        "\"layers\":[0,4],\"tp\":4,\"dp\":2,\"ep\":2,\"zero\":1},{\"devices\":\"a[1].*\","
        "\"layers\":[4,8],\"tp\":4,\"dp\":2,\"ep\":2,\"zero\":1}]}]");
    assert_non_null(v.timeline);
    size_t spans = 0;
    for (size_t i = 0; i < v.timeline->lanes.n; i++) {
        spans += v.timeline->lanes.items[i].n_spans;
    }
    assert_int_equal(spans, v.timeline->n_ops);
    hv_arena_free(&a);
}

static bool names(const struct hv_verdict *v, const char *key)
{
    for (size_t i = 0; i < v->n_approximated; i++) {
        if (strstr(v->approximated[i], key) != NULL) {
            return true;
        }
    }
    return false;
}

static void what_is_not_timed_is_named(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = on_one_node(
        state, &a,
        ",\"ep\":8,\"moe\":{\"degree\":4,\"all_to_all\":\"2dh\",\"capacity_factor\":1.25}", "");
    assert_int_equal(v.n_approximated, 0);
    v = on_one_node(state, &a,
                    ",\"ep\":8,\"moe\":{\"kernel\":\"padded\",\"order\":\"optsche\",\"copies\":{"
                    "\"0\":\"*\"},\"all_to_all\":\"tp_coordinated\",\"off_node_frac\":0.5}",
                    "");
    const char *const keys[] = {"moe.order", "moe.all_to_all"};
    for (size_t i = 0; i < HV_COUNT(keys); i++) {
        assert_true(names(&v, keys[i]));
    }
    assert_int_equal(v.n_approximated, HV_COUNT(keys));
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_experts_go_to_those_who_hold_them),
        cmocka_unit_test(buckets_and_overlap_are_honoured),
        cmocka_unit_test(every_span_has_room),
        cmocka_unit_test(what_is_not_timed_is_named),
    };
    return cmocka_run_group_tests_name("eval_moe", tests, setup_experts, teardown);
}
