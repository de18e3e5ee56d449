/* The Explain screen about experts: loads of the ranks over the iterations of the routing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screens_bench.h"

/* Opens a workspace with eight experts on eight ranks and that routing in place of the bench's. */
static void open_routed(struct bench *b, const char *routing, const char *moe)
{
    struct hv_str text = {0};
    struct hv_err err = {0};
    hv_str_addf(&text,
                "{\"format\": \"hetviz.workspace/1\", \"name\": \"moe\", \"cluster\": "
                "\"homogeneous\", \"model\": \"mixtral-8x7b\", \"job\": {\"format\": "
                "\"hetviz.job/1\", \"sequence\": 4096, \"global_batch\": 64%s}, \"plans\": "
                "[{\"format\": \"hetviz.plan/1\", \"name\": \"ep8\", \"micro_batch\": 8, "
                "\"replicas\": [{\"micro_batches\": 8, \"stages\": [{\"devices\": \"a[0].*\", "
                "\"layers\": [0, 32], \"dp\": 8, \"ep\": 8, \"zero\": 1%s}]}], \"schedule\": "
                "{\"name\": \"1f1b\"}}]}",
                routing, moe);
    assert_int_equal(hv_file_write("moe.json", hv_str_cstr(&text), text.n, NULL), HV_OK);
    hv_str_free(&text);
    hv_app_free(b->app);
    hv_session_close(b->session);
    struct hv_session_env env = {
        .state_dir = "state", .plugins = bench_plugins, .n_plugins = HV_COUNT(bench_plugins)};
    if (hv_session_open(&b->session, "moe.json", &env, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    b->ui = (struct hv_ui){.session = b->session};
    b->app = hv_ui_app(&b->ui, &b->keys, true);
}

/* Zipf with skew 1 over eight experts, one on each rank: the first of them gets 1/H_8 of the
 * tokens, H_8 = 1 + 1/2 + ... + 1/8 = 2.717857, which is 36.8 %, and 8 * 0.36794 = 2.94 times the
 * mean. Places do not drift, so that every iteration is alike. */
static void the_busiest_rank_is_that_of_the_law(void **state)
{
    struct bench *b = *state;
    open_routed(b, ", \"routing\": {\"kind\": \"zipf\", \"skew\": 1}", "");
    bench_script(b, "resize 120x40\nkeys 6\nwait Experts: the busiest rank has 2.94x the mean "
                    "load, at most 2.94x\nkeys /Experts:<Enter><Right>\nwait 37% of the tokens\n"
                    "wait rank 7: e\n");
    assert_true(bench_sees(b, "2.94x  @")); /* at least twice the mean: a full cell */
}

/* A copy of every expert on every rank: nobody waits for anybody. */
static void copies_everywhere_level_the_loads(void **state)
{
    struct bench *b = *state;
    struct hv_str moe = {0};
    hv_str_adds(&moe, ", \"moe\": {\"copies\": {");
    for (int e = 0; e < 8; e++) {
        hv_str_addf(&moe, "%s\"%d\": \"*\"", e > 0 ? ", " : "", e);
    }
    hv_str_adds(&moe, "}}");
    open_routed(b, ", \"routing\": {\"kind\": \"zipf\", \"skew\": 1}", hv_str_cstr(&moe));
    bench_script(b, "resize 120x40\nkeys 6\nwait the busiest rank has 1.00x the mean load, at most "
                    "1.00x\n");
    hv_str_free(&moe);
}

/* Skew 0, and no routing at all, are even: there is nothing to tell. */
static void even_routing_is_passed_over(void **state)
{
    struct bench *b = *state;
    open_routed(b, "", "");
    bench_script(b, "resize 120x40\nkeys 6\nwait What determines\n");
    assert_false(bench_sees(b, "Experts:"));
}

/* More iterations than columns: each column shows the largest of several. */
static void columns_hold_several_iterations(void **state)
{
    struct bench *b = *state;
    open_routed(b,
                ", \"routing\": {\"kind\": \"zipf\", \"skew\": 1, \"drift\": 0.3, "
                "\"iterations\": 130}",
                "");
    bench_script(
        b,
        "resize 170x45\nkeys 6/Experts:<Enter><Right>jj\nwait iterations a column, the largest\n");
    bench_fuzz(b, 5, 300);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_busiest_rank_is_that_of_the_law),
        TEST(copies_everywhere_level_the_loads),
        TEST(even_routing_is_passed_over),
        TEST(columns_hold_several_iterations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
