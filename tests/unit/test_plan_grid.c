/* Uniform plans from degrees: how layers, devices and batches are dealt out, and what is refused.
 * That the plans are those of the strategy `manual` is tested in test_scripting_grid.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/plan/check.h"
#include "solver/plan/grid.h"
#include "tests/plan_fixture.h"
#include <string.h>

static void expect_counts(size_t blocks, int parts, const char *want)
{
    int counts[64] = {0};
    struct hv_str text = {0};
    assert_int_equal(hv_grid_counts(blocks, parts, counts, NULL), HV_OK);
    for (int i = 0; i < parts; i++) {
        hv_str_addf(&text, "%s%d", i > 0 ? "," : "", counts[i]);
    }
    assert_string_equal(hv_str_cstr(&text), want);
    hv_str_free(&text);
}

static void layers_are_dealt_out(void **state)
{
    (void)state;
    expect_counts(9, 4, "3,2,2,2");
    expect_counts(8, 4, "2,2,2,2");
    /* Llama 3, section 3.3.2: the first and the last stage one layer less */
    expect_counts(126, 16, "7,8,8,8,8,8,8,8,8,8,8,8,8,8,8,7");
    expect_counts(6, 8, "0,1,1,1,1,1,1,0"); /* embedding and head alone in their chunks */
    int counts[9];
    struct hv_err err = {0};
    assert_int_equal(hv_grid_counts(6, 9, counts, &err), HV_ENO);
    assert_non_null(strstr(err.text, "6 layers"));
}

static void stages_are_blocks_of_devices(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cluster();
    struct hv_plan *p = NULL;
    const struct hv_grid g = {.tp = 2,
                              .pp = 2,
                              .dp = 2,
                              .chunks = 2,
                              .micro_batch = 3,
                              .global_batch = 24,
                              .zero = 1,
                              .shard_group = 2,
                              .recompute = HV_RC_CORE,
                              .sequence_parallel = true};
    assert_int_equal(hv_plan_grid(c, HV_BF16, 9, &g, &p, NULL), HV_OK);
    assert_int_equal(p->micro_batch, 6); /* what enters the pipeline at once, rule D */
    assert_int_equal(p->n_replicas, 1);
    const struct hv_replica *r = &p->replicas[0];
    assert_int_equal(r->micro_batches, 4);
    assert_int_equal(r->n_stages, 2);
    assert_string_equal(p->schedule.name, "interleaved");
    for (uint32_t s = 0; s < 2; s++) {
        assert_int_equal(r->stages[s].n_devices, 4);
        for (uint32_t d = 0; d < 4; d++) {
            assert_int_equal(r->stages[s].devices[d], 4 * s + d);
        }
        assert_true(r->stages[s].sequence_parallel);
        assert_int_equal(r->stages[s].zero.stage, 1);
        assert_int_equal(r->stages[s].zero.shard_group, 2);
        assert_int_equal(r->stages[s].recompute, HV_RC_CORE);
        assert_int_equal(r->stages[s].embedding, -1);
    }
    /* 9 layers on 4 chunks: 3, 2, 2, 2; stage 1 runs chunks 1 and 3 */
    assert_int_equal(r->stages[1].n_ranges, 2);
    assert_int_equal(r->stages[1].ranges[0].from2, 6);
    assert_int_equal(r->stages[1].ranges[1].to2, 18);
    hv_plan_unref(p);
    hv_cluster_unref(c);
}

static void embedding_and_head_may_stand_alone(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cluster();
    struct hv_plan *p = NULL;
    const struct hv_grid g = {.pp = 8, .global_batch = 8};
    assert_int_equal(hv_plan_grid(c, HV_BF16, 6, &g, &p, NULL), HV_OK);
    for (int s = 0; s < 8; s++) {
        assert_int_equal(p->replicas[0].stages[s].embedding, s == 0);
        assert_int_equal(p->replicas[0].stages[s].head, s == 7);
    }
    assert_string_equal(p->schedule.name, "1f1b");
    assert_false(p->replicas[0].stages[0].sequence_parallel);
    hv_plan_unref(p);
    hv_cluster_unref(c);
}

/* The fixture has 8 devices of one fabric with bf16 and 4 more without, 4 of another maker, and 4
 * that are drained. */
static void only_devices_that_can_take_part(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cluster();
    struct hv_plan *p = NULL;
    struct hv_err err = {0};
    struct hv_grid g = {.dp = 12, .global_batch = 12};
    assert_int_equal(hv_plan_grid(c, HV_BF16, 4, &g, &p, &err), HV_ENO);
    assert_null(p);
    assert_non_null(strstr(err.text, "12 devices, the cluster has 8 that can compute in bf16"));
    assert_int_equal(hv_plan_grid(c, HV_FP16, 4, &g, &p, &err), HV_OK);
    assert_int_equal(p->replicas[0].stages[0].n_devices, 12);
    hv_plan_unref(p);
    g.dp = 8;
    g.global_batch = 12;
    assert_int_equal(hv_plan_grid(c, HV_BF16, 4, &g, &p, &err), HV_ENO);
    assert_non_null(strstr(err.text, "global batch of 12"));
    hv_cluster_unref(c);
}

static void wild_degrees_are_refused(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cluster();
    struct hv_plan *p = NULL;
    const int huge = 2147483647;
    const struct hv_grid rows[] = {
        {.tp = huge, .pp = huge, .dp = huge, .cp = huge, .global_batch = 1},
        {.pp = 2, .chunks = huge, .global_batch = 1},
        {.dp = 2, .micro_batch = huge, .global_batch = 1},
    };
    assert_int_equal(hv_grid_devices(&rows[0]), HV_CLUSTER_MAX_DEVICES + 1);
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        assert_int_equal(hv_plan_grid(c, HV_BF16, 4, &rows[i], &p, NULL), HV_ENO);
    }
    hv_cluster_unref(c);
}

static void given_counts_are_taken(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cluster();
    struct hv_plan *p = NULL;
    const int counts[] = {1, 5};
    const struct hv_grid g = {.pp = 2, .global_batch = 4, .counts = counts};
    assert_int_equal(hv_plan_grid(c, HV_BF16, 6, &g, &p, NULL), HV_OK);
    assert_int_equal(p->replicas[0].stages[1].ranges[0].from2, 2);
    assert_int_equal(p->replicas[0].stages[1].ranges[0].to2, 12);
    hv_plan_unref(p);
    hv_cluster_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_dealt_out),
        cmocka_unit_test(stages_are_blocks_of_devices),
        cmocka_unit_test(embedding_and_head_may_stand_alone),
        cmocka_unit_test(only_devices_that_can_take_part),
        cmocka_unit_test(wild_degrees_are_refused),
        cmocka_unit_test(given_counts_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
