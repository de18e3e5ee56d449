/** 2.5d tensor parallelism (Wang et al. 2021, Tesseract): its depth holds copies of the weights. */
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

static struct hv_verdict judge_stage(struct world *w, struct hv_arena *a, const char *devices,
                                     const char *degrees)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":"
                   "\"%s\",\"layers\":[0,24],%s}]}]",
                   devices, degrees);
    return judge(w, a, false, text);
}

/** Grids of one device each share the sequences and sum their gradients: that is data parallelism
 * by another name, and nothing is free. Also where states are sharded inside each grid's ranks. */
static void depth_alone_is_data_parallelism(void **state)
{
    struct hv_arena a = {0};
    static const char *const pairs[][2] = {
        {"\"tp\":{\"scheme\":\"2.5d\",\"degree\":4,\"depth\":4}", "\"dp\":4"},
        {"\"tp\":{\"scheme\":\"2.5d\",\"degree\":8,\"depth\":8}", "\"dp\":8"},
        {"\"tp\":{\"scheme\":\"2.5d\",\"degree\":2,\"depth\":2},\"dp\":4", "\"dp\":8"}};
    static const char *const devices[] = {"a[0].0-3", "a[0].*", "a[0].*"};
    for (size_t i = 0; i < HV_COUNT(pairs); i++) {
        struct hv_verdict grid = judge_stage(*state, &a, devices[i], pairs[i][0]),
                          dp = judge_stage(*state, &a, devices[i], pairs[i][1]);
        assert_near(grid.metrics.iteration_s, dp.metrics.iteration_s, 1e-6);
        assert_near(grid.metrics.breakdown_s[HV_TIME_DP], dp.metrics.breakdown_s[HV_TIME_DP], 1e-6);
        assert_true(grid.metrics.breakdown_s[HV_TIME_DP] > 0);
        assert_near(grid.memory[0].weights_bytes, dp.memory[0].weights_bytes, 1e-9);
        assert_near(grid.memory[0].optimizer_bytes, dp.memory[0].optimizer_bytes, 1e-9);
        assert_near(grid.memory[0].activations_bytes, dp.memory[0].activations_bytes, 0.01);
    }
    hv_arena_free(&a);
}

/** Weights are cut by q × q alone: with twice the ranks in depth each still holds as much, as the
 * paper says (12 h² / q² per layer); 2d of as many ranks would hold less. */
static void weights_are_cut_by_the_grid(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict flat = judge_stage(*state, &a, "a[0].0-3",
                                         "\"tp\":{\"scheme\":\"2d\",\"degree\":4}"),
                      deep = judge_stage(*state, &a, "a[0].*",
                                         "\"tp\":{\"scheme\":\"2.5d\",\"degree\":8,\"depth\":2}");
    assert_near(deep.memory[0].weights_bytes, flat.memory[0].weights_bytes, 0.01);
    double layers = 24 * 12.0 * 2560 * 2560 / 4 * 2; /* bytes of 16-bit weights without the ends */
    assert_true(deep.memory[0].weights_bytes > layers);
    assert_near(deep.memory[0].activations_bytes, flat.memory[0].activations_bytes / 2, 0.1);
    assert_true(flat.metrics.breakdown_s[HV_TIME_DP] == 0);
    assert_true(deep.metrics.breakdown_s[HV_TIME_DP] > 0);
    hv_arena_free(&a);
}

/** Beside the gradients' sum, an iteration with sharded states has each grid scatter among its data
 * ranks, and the grids add the shards. */
static void sharded_states_are_added_between_grids(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict one = judge_stage(*state, &a, "a[0].0-3", "\"dp\":4,\"zero\":1"),
                      two = judge_stage(*state, &a, "a[0].*",
                                        "\"tp\":{\"scheme\":\"2.5d\",\"degree\":2,\"depth\":2},"
                                        "\"dp\":4,\"zero\":1");
    assert_near(two.memory[0].optimizer_bytes, one.memory[0].optimizer_bytes, 1e-9);
    assert_true(two.metrics.breakdown_s[HV_TIME_DP] > one.metrics.breakdown_s[HV_TIME_DP]);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_alone_is_data_parallelism),
        cmocka_unit_test(weights_are_cut_by_the_grid),
        cmocka_unit_test(sharded_states_are_added_between_grids),
    };
    return cmocka_run_group_tests_name("eval grids", tests, setup, teardown);
}
