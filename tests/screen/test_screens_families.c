/* What families of strategies add to the Gantt and Explain screens: loads of ranks with experts
 * over iterations and their moves, lanes of what leaves a stage and comes back and of sharded
 * weights, hops of rings, and arrows of the operation at the cursor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screens_bench.h"

/* A model, a job and the stages of a plan, opened in place of the bench's workspace. */
struct world {
    const char *model, *job, *stages, *schedule;
    int micro_batch, micro_batches;
};

static void open_world(struct bench *b, const struct world *w)
{
    struct hv_str text = {0};
    struct hv_err err = {0};
    hv_str_addf(&text,
                "{\"format\": \"hetviz.workspace/1\", \"name\": \"fam\", \"cluster\": "
                "\"homogeneous\", \"model\": \"%s\", \"job\": {\"format\": \"hetviz.job/1\", %s}, "
                "\"plans\": [{\"format\": \"hetviz.plan/1\", \"name\": \"fam-1\", \"micro_batch\": "
                "%d, \"replicas\": [{\"micro_batches\": %d, \"stages\": [%s]}], \"schedule\": "
                "{\"name\": \"%s\"}}]}",
                w->model, w->job, w->micro_batch, w->micro_batches, w->stages, w->schedule);
    assert_int_equal(hv_file_write("fam.json", hv_str_cstr(&text), text.n, NULL), HV_OK);
    hv_str_free(&text);
    hv_app_free(b->app);
    hv_session_close(b->session);
    struct hv_session_env env = {
        .state_dir = "state", .plugins = bench_plugins, .n_plugins = HV_COUNT(bench_plugins)};
    if (hv_session_open(&b->session, "fam.json", &env, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    b->ui = (struct hv_ui){.session = b->session};
    b->app = hv_ui_app(&b->ui, &b->keys, true);
}

/* Ends the trials of the Explain screen. */
static void settle(struct bench *b)
{
    int left = 100000;
    hv_app_tick(b->app, 0);
    while (hv_app_timeout_ms(b->app) == 0 && --left > 0) {
        hv_app_tick(b->app, 0);
    }
    assert_true(left > 0);
}

/* Three iterations of 32 layers with experts used as FALLING says; equal numbers of experts move
 * after the first where a policy says so. */
#define FALLING "[[8, 7, 6, 5, 4, 3, 2, 1]]"

static void open_experts(struct bench *b, const char *moe)
{
    struct hv_str job = {0}, stages = {0};
    hv_str_adds(&job,
                "\"sequence\": 4096, \"global_batch\": 64, \"routing\": {\"kind\": \"trace\", "
                "\"counts\": [");
    for (int t = 0; t < 3; t++) {
        hv_str_adds(&job, t > 0 ? ", [" : "[");
        for (int layer = 0; layer < 32; layer++) {
            hv_str_addf(&job, "%s%s", layer > 0 ? ", " : "", FALLING);
        }
        hv_str_adds(&job, "]");
    }
    hv_str_adds(&job, "]}");
    hv_str_addf(&stages,
                "{\"devices\": \"a[0].*\", \"layers\": [0, 32], \"dp\": 8, \"ep\": 4, \"zero\": 1, "
                "\"moe\": {%s}}",
                moe);
    const struct world w = {"mixtral-8x7b", hv_str_cstr(&job), hv_str_cstr(&stages), "1f1b", 8, 1};
    open_world(b, &w);
    hv_str_free(&job);
    hv_str_free(&stages);
}

/* Two experts a rank: 15, 11, 7, 3 of 36 against a mean of 9; balanced after the first iteration,
 * for which four experts move in each of 32 layers and both groups of ranks: 256. */
static void loads_are_strips_over_iterations(void **state)
{
    struct bench *b = *state;
    open_experts(b, "\"adapt\": {\"policy\": \"balance\"}");
    bench_script(b, "resize 80x24\nkeys 5\nwait f0\nkeys X\nwait rank 3: e6 e7\n");
    assert_true(bench_sees(b, "hottest expert e0: 1.78x the mean of the experts, 22.2% of the"));
    assert_true(bench_sees(b, "busiest rank 1.67x the mean, rank 0: e0 e1 1.67x"));
    assert_true(bench_sees(b, "no expert moves before it"));
    bench_golden(b, "experts_80x24");
    bench_script(b, "keys l\nwait before it 256 experts move\n");
    assert_true(bench_sees(b, "iteration 1 of 3 | rank 0 has 1.00x the mean"));
    bench_script(b, "keys jjl\nwait iteration 2 of 3 | rank 2\nkeys ]\nwait layer 2 of 32\nkeys [\n"
                    "wait layer 1 of 32\nresize 120x40\n");
    bench_golden(b, "experts_120x40");
    bench_script(b, "resize 160x48\n");
    bench_golden(b, "experts_160x48");
    bench_script(b, "keys <Esc>\nwait At cursor\nkeys XX\nwait At cursor\nresize 160x48\nkeys "
                    "6/Experts:<Enter><Right>\nwait moves: 256 "
                    "experts placed anew before 1 of 3 iterations\n");
    bench_fuzz(b, 5, 200);
}

/* The hottest expert, and blocks of 128 rows. Each of 4 ranks sends 4096 tokens to 2 experts each:
 * 32,768 rows in all. 8/36 of them fill 57 blocks, 7/36 50: 13,696 rows on rank 0 for 13,653.3
 * tokens, 0.31 %, 438,272 in 32 layers. Likewise 79, 51 and 23 blocks on ranks 1 to 3: the busiest
 * has 107 where the mean is 65. */
static void explain_names_the_hottest_expert_and_tiles(void **state)
{
    struct bench *b = *state;
    open_experts(b, "\"kernel\": \"block\"");
    bench_script(b,
                 "resize 160x48\nkeys 6\nwait Experts: the busiest rank has 1.65x the mean load, "
                 "at most 1.65x\nwait expert products in s0: 0.3% of the rows hold no token, "
                 "1,365 of 438,272 a pass in iteration 0\nkeys /Experts:<Enter><Right>\nwait "
                 "hottest: e0 of layer 0 (s0), 1.78x the mean: 22% of the tokens in "
                 "iteration 0\n");
    assert_false(bench_sees(b, "experts placed anew"));
}

/* Even routing has no strips: a message says so, and the lanes stay. */
static void even_routing_has_no_strips(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 120x40\nkeys 5\nwait f0\nkeys X\nwait the job routes tokens evenly\n");
    assert_true(bench_sees(b, "At cursor"));
}

/* Four stages of bpipe: the first sends activations to the last and gets them back. Both directions
 * have a lane of their own below the stage that sends, without K; the box names the peer. */
static void evictions_have_lanes_with_their_peer(void **state)
{
    struct bench *b = *state;
    const struct world w = {
        "llama-2-7b",
        "\"sequence\": 2048, \"global_batch\": 8",
        "{\"devices\": \"a[0].0\", \"layers\": [0, 8]}, {\"devices\": \"a[0].1\", \"layers\": [8, "
        "16]}, {\"devices\": \"a[0].2\", \"layers\": [16, 24]}, {\"devices\": \"a[0].3\", "
        "\"layers\": [24, 32]}",
        "bpipe",
        1,
        8};
    open_world(b, &w);
    bench_script(b, "resize 160x48\nkeys 5\nwait s0>s3\n");
    assert_true(bench_sees(b, "s3>s0"));
    assert_false(bench_sees(b, "s0>s1"));
    bench_script(b, "keys j]\nwait activations leave of micro-batch\n");
    assert_true(bench_sees(b, "from s0 a[0].0 to s3 a[0].3"));
    bench_golden(b, "evictions_160x48");
    bench_script(b, "resize 80x24\n");
    bench_golden(b, "evictions_80x24");
    bench_script(b, "resize 120x40\nkeys K\nwait s0>s1\n");
    bench_golden(b, "evictions_120x40");
}

/* Two rings of 8 ranks: the box says which hop shows, and lists the steps where there is room; so
 * does Explain. */
static void hops_of_rings_are_told(void **state)
{
    struct bench *b = *state;
    const struct world w = {"llama-2-7b",
                            "\"sequence\": 32768, \"global_batch\": 8",
                            "{\"devices\": \"a[0-1].*\", \"layers\": [0, 32], \"dp\": 2, \"cp\": "
                            "{\"degree\": 8, \"scheme\": \"ring\"}, \"zero\": 1, \"recompute\": "
                            "\"full\"}",
                            "1f1b",
                            2,
                            4};
    open_world(b, &w);
    bench_script(b, "resize 160x48\nkeys 5\nwait forward ring of 8: all hops hidden\n");
    assert_true(bench_sees(b, "step 7"));
    bench_golden(b, "ring_160x48");
    bench_script(b, "keys ]\nwait backward ring of 8\nresize 80x24\n");
    bench_golden(b, "ring_80x24");
    bench_script(b, "resize 120x40\n");
    bench_golden(b, "ring_120x40");
    bench_script(b, "resize 160x48\nkeys 6\n");
    settle(b);
    bench_script(b, "wait context parallelism in s0: \n");
    assert_true(bench_sees(b, "backward ring of 8: return of sums not hidden"));
    bench_script(b, "resize 160x48\nkeys 4\nwait 1/1/2 cp8\n");
}

/* Breadth-first with ZeRO 3 gathers whole chunks: a line below each stage has them. */
static void gathers_of_shards_have_a_lane(void **state)
{
    struct bench *b = *state;
    const struct world w = {
        "llama-2-7b",
        "\"sequence\": 2048, \"global_batch\": 64",
        "{\"devices\": \"a[0].*\", \"layers\": [[0, 8], [16, 24]], \"dp\": 8, \"zero\": "
        "{\"stage\": "
        "3, \"unit\": \"stage\"}}, {\"devices\": \"a[1].*\", \"layers\": [[8, 16], [24, 32]], "
        "\"dp\": 8, \"zero\": {\"stage\": 3, \"unit\": \"stage\"}}",
        "breadth-first",
        8,
        8};
    open_world(b, &w);
    bench_script(b, "resize 120x40\nkeys 5\nwait s0 shards\n");
    assert_true(bench_sees(b, "s1 shards"));
    bench_script(b, "keys j\nwait gather of a chunk of sharded weights\n");
    bench_golden(b, "shards_120x40");
}

/* Arrows at the backward of s1: its input came from s0's forward above, its result goes up. */
static void arrows_show_the_way(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 120x40\nkeys 5\nwait f0\nkeys j]]\nwait waits for\n");
    bench_golden(b, "arrows_120x40");
    bench_script(b, "keys w\nwait waits for\n");
    bench_fuzz(b, 9, 200);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(loads_are_strips_over_iterations),
        TEST(explain_names_the_hottest_expert_and_tiles),
        TEST(even_routing_has_no_strips),
        TEST(evictions_have_lanes_with_their_peer),
        TEST(hops_of_rings_are_told),
        TEST(gathers_of_shards_have_a_lane),
        TEST(arrows_show_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
