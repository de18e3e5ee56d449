/** Tensor shards of unequal size: fast ranks hold more, and each rank's memory is its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

/** One stage of all layers on these devices; `keys` are its degrees. */
static struct hv_verdict judge_stage(struct world *w, struct hv_arena *a, const char *devices,
                                     const char *keys)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":16,\"stages\":[{\"devices\":"
                   "\"%s\",\"layers\":[0,24],%s}]}]",
                   devices, keys);
    return judge(w, a, false, text);
}

/** Shares that are equal are what no shares are: time, memory, and time by cause; beside data
 * parallelism, whose gradients are summed shard by shard, and sharded states. */
static void equal_shares_change_nothing(void **state)
{
    static const char *const pairs[][2] = {
        {"\"tp\":4", "\"tp\":{\"shares\":[1,1,1,1]}"},
        {"\"tp\":2,\"dp\":2", "\"tp\":{\"shares\":[3,3]},\"dp\":2"},
        {"\"tp\":2,\"dp\":2,\"zero\":1", "\"tp\":{\"shares\":[2,2]},\"dp\":2,\"zero\":1"},
        {"\"tp\":2,\"dp\":2,\"shares\":[3,1]",
         "\"tp\":{\"shares\":[1,1]},\"dp\":2,\"shares\":[3,1]"},
        {"\"tp\":4,\"sequence_parallel\":true,\"recompute\":\"selective\"",
         "\"tp\":{\"shares\":[1,1,1,1]},\"sequence_parallel\":true,\"recompute\":\"selective\""}};
    struct hv_arena a = {0};
    for (size_t i = 0; i < HV_COUNT(pairs); i++) {
        struct hv_verdict want = judge_stage(*state, &a, "a[0].0-3", pairs[i][0]),
                          got = judge_stage(*state, &a, "a[0].0-3", pairs[i][1]);
        assert_near(got.metrics.iteration_s, want.metrics.iteration_s, 1e-9);
        assert_near(got.memory[0].peak_bytes, want.memory[0].peak_bytes, 1e-9);
        for (int k = 0; k < HV_BREAKDOWN_N; k++) {
            assert_true(fabs(got.metrics.breakdown_s[k] - want.metrics.breakdown_s[k]) <
                        1e-6 * want.metrics.iteration_s);
        }
        assert_near(got.metrics.mfu, want.metrics.mfu, 1e-9);
    }
    hv_arena_free(&a);
}

/** On equal devices the largest shard sets the pace, and holds the most: 5 of 8 heads' worth of
 * weights are 5/4 of a half. */
static void the_largest_shard_sets_the_pace(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict half = judge_stage(*state, &a, "a[0].0-1", "\"tp\":2"),
                      more = judge_stage(*state, &a, "a[0].0-1", "\"tp\":{\"shares\":[5,3]}");
    double compute_s = more.metrics.iteration_s / half.metrics.iteration_s;
    assert_true(compute_s > 1.1 && compute_s < 1.25);
    assert_near(more.memory[0].weights_bytes, 1.25 * half.memory[0].weights_bytes, 0.01);
    /* the same the other way round, seen from the other device */
    struct hv_verdict turned = judge_stage(*state, &a, "a[0].0-1", "\"tp\":{\"shares\":[3,5]}");
    assert_near(turned.metrics.iteration_s, more.metrics.iteration_s, 1e-9);
    assert_int_equal(turned.memory[0].device, 1);
    assert_int_equal(more.memory[0].device, 0);
    hv_arena_free(&a);
}

/** A fast device and a slow one: shards by speed beat halves, halves beat shards the wrong way. */
static void shards_by_speed_are_faster(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict half = judge_stage(*state, &a, "a[0].0,v[0].0",
                                         "\"tp\":2,\"recompute\":\"full\""),
                      good = judge_stage(*state, &a, "a[0].0,v[0].0",
                                         "\"tp\":{\"shares\":[3,1]},\"recompute\":\"full\""),
                      bad = judge_stage(*state, &a, "a[0].0,v[0].0",
                                        "\"tp\":{\"shares\":[1,3]},\"recompute\":\"full\"");
    double slack = 1.02; /* exchanges over the network take most of it */
    assert_true(slack * good.metrics.iteration_s < half.metrics.iteration_s);
    assert_true(slack * half.metrics.iteration_s < bad.metrics.iteration_s);
    /* three quarters of the states are too much for 32 GB, a quarter is not */
    assert_true(bad.memory[0].peak_bytes > bad.memory[0].limit_bytes);
    assert_true(good.memory[0].peak_bytes < good.memory[0].limit_bytes);
    assert_true(good.metrics.bound_s <= good.metrics.iteration_s);
    hv_arena_free(&a);
}

/** Parts of the work add up: what all ranks compute is what one device does. */
static void flops_add_up(void **state)
{
    struct hv_arena a = {0};
    struct world *w = *state;
    struct hv_verdict v = judge_stage(w, &a, "a[0].0-1", "\"tp\":{\"shares\":[5,3]}"),
                      u = judge_stage(w, &a, "a[0].0-1", "\"tp\":2");
    assert_near(v.metrics.mfu * v.metrics.iteration_s, u.metrics.mfu * u.metrics.iteration_s, 1e-6);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shares_change_nothing),
        cmocka_unit_test(the_largest_shard_sets_the_pace),
        cmocka_unit_test(shards_by_speed_are_faster),
        cmocka_unit_test(flops_add_up),
    };
    return cmocka_run_group_tests_name("eval shares", tests, setup, teardown);
}
