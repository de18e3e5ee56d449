/* The import over a session: looked at, taken over as one step, left alone; how it looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screen_bench.h"

/* What the programs would write, in the folder of the test. */
static void write_files(void)
{
    static const struct {
        const char *name, *text;
    } files[] = {
        {"smi.txt", "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n"
                    "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"},
        {"topo.txt", "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV18\tPIX\t0-11\n"
                     "GPU1\tNV18\t X \tPIX\t0-11\n"},
        {"args.txt", "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --bf16\n"
                     "--micro-batch-size 2 --global-batch-size 32 --seq-length 1024\n"
                     "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2\n"},
        {"prices.csv", "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\n"
                       "big,A100-80GB,8,30.5,,x\n"},
        {"trace.json", "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1}]"},
        {"broken.xml", "<nvidia_smi_log><gpu>"},
        {"nodes.txt", "NodeName=n[1-2] Gres=gpu:a100:4\nNodeName=v1 Gres=gpu:v100:2\n"},
    };
    for (size_t i = 0; i < HV_COUNT(files); i++) {
        assert_int_equal(hv_file_write(files[i].name, files[i].text, strlen(files[i].text), NULL),
                         HV_OK);
    }
}

static void a_cluster_is_looked_at_and_replaced_as_one_step(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    write_files();
    json_t *before = json_deep_copy(hv_session_tree(s.session, HV_DOC_CLUSTER));
    screen_run(&s, "keys 1ismi.txt topo.txt<Enter>\nwait Guessed\nwait replace the cluster\n");
    assert_int_equal(hv_session_n_undo(s.session), 0); /* nothing has changed yet */
    screen_goldens(&s, "import");
    screen_run(&s, "keys <Esc>\nwait nothing was changed\nwait 3 nodes, 24 GPUs\n");
    assert_int_equal(hv_session_n_undo(s.session), 0);
    assert_true(json_equal(before, hv_session_tree(s.session, HV_DOC_CLUSTER)));
    screen_run(&s, "keys <F7>smi.txt topo.txt<Enter><Enter>\nwait 1 node, 2 GPUs\nwait u undoes "
                   "the import\nkeys u\nwait 3 nodes, 24 GPUs\n");
    assert_true(json_equal(before, hv_session_tree(s.session, HV_DOC_CLUSTER)));
    json_decref(before);
    screen_close(&s);
}

/* Kinds of guessed cards are chosen on the screen, card by card, and only then taken over. */
static void kinds_of_guessed_cards_are_chosen(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    write_files();
    screen_run(&s, "keys 1inodes.txt<Enter>\nwait > a100: A100-SXM-40GB (1 of 4)\n"
                   "wait v100: V100-SXM2-16GB (1 of 5)\nkeys d\nwait > a100: A100-PCIe-40GB (2 of "
                   "4)\nkeys DD\nwait > a100: A100-SXM-80GB (4 of 4)\nkeys c\n"
                   "wait > v100: V100-SXM2-16GB (1 of 5)\nkeys d\n");
    screen_goldens(&s, "import-cards");
    /* one is named by words, also one that was not among the guesses */
    screen_run(&s, "resize 80x24\nkeys e32<Enter>\nwait '32' may be V100-\n"
                   "keys ez9<Enter>\nwait no kind of the catalogue has 'z9'\n"
                   "keys esxm3 v100<Enter>\nwait > v100: V100-SXM3-32GB\n"
                   "keys eT4<Enter>\nwait > v100: T4-16GB\nkeys e16 pcie<Enter>\n"
                   "wait > v100: V100-PCIe-16GB\n");
    screen_run(&s, "keys <Enter>\nwait u undoes the import\n");
    assert_string_equal(json_string_value(hv_session_get(s.session, "cluster.nodes[0].device")),
                        "A100-SXM-80GB");
    assert_string_equal(json_string_value(hv_session_get(s.session, "cluster.nodes[1].device")),
                        "V100-PCIe-16GB");
    screen_close(&s);
}

static void nodes_are_added_under_new_names(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    write_files();
    screen_run(&s, "keys :import smi.txt<Enter><Tab>\nwait > add its nodes\n"
                   "keys <Enter>\nwait 4 nodes, 26 GPUs\n"
                   "keys :import smi.txt<Enter><Tab><Enter>\nwait 5 nodes, 28 GPUs\n");
    assert_string_equal(json_string_value(hv_session_get(s.session, "cluster.nodes[3].name")),
                        "node-2");
    screen_close(&s);
}

static void a_launch_brings_model_job_and_layout_together(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    write_files();
    screen_run(&s, "keys 2iargs.txt<Enter>\nwait layout: options of the strategy manual\nkeys "
                   "<Enter>\nwait u undoes the import\n");
    assert_int_equal(json_integer_value(hv_session_get(s.session, "model.layers")), 4);
    assert_int_equal(json_integer_value(hv_session_get(s.session, "job.global_batch")), 32);
    /* the cluster is not in the file: the one that is there stays */
    assert_int_equal(json_integer_value(hv_session_get(s.session, "cluster.nodes[0].count")), 2);
    screen_run(&s, "keys u\nwait undone\n");
    assert_int_equal(hv_session_n_undo(s.session), 0);
    assert_int_equal(json_integer_value(hv_session_get(s.session, "model.layers")), 8);
    assert_int_equal(json_integer_value(hv_session_get(s.session, "job.global_batch")), 64);
    screen_run(&s, "keys ^R\nwait redone\n");
    assert_int_equal(json_integer_value(hv_session_get(s.session, "model.layers")), 4);
    assert_int_equal(json_integer_value(hv_session_get(s.session, "job.global_batch")), 32);
    screen_close(&s);
}

static void prices_go_to_nodes_with_the_same_devices(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    write_files();
    screen_run(&s, "keys 1iprices.csv<Enter>\nwait > update nodes with equal devices\nkeys "
                   "<Enter>\nwait done\n");
    const json_t *price = hv_session_get(s.session, "cluster.nodes[0].price_usd_per_hour");
    assert_true(json_number_value(price) > 30.4 && json_number_value(price) < 30.6);
    assert_null(hv_session_get(s.session, "cluster.nodes[1].price_usd_per_hour"));
    screen_close(&s);
}

static void what_cannot_be_taken_says_why(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    write_files();
    screen_run(&s,
               "keys 1itrace.json<Enter>\nwait the result is not part of a workspace\nkeys "
               "<Enter>\nwait not part of a workspace\nkeys <Esc>\nkeys ibroken.xml<Enter>\nwait "
               "XML is broken\nkeys <Esc>i/nowhere/at/all<Enter>\nwait No such file\nkeys "
               "<Esc>itwo-regions<Enter>\nwait restores the old cluster\n");
    assert_int_equal(hv_session_n_undo(s.session), 1);
    screen_close(&s);
}

static void tab_completes_files(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    write_files();
    screen_run(&s,
               "keys 1ism<Tab>\nwait local: smi.txt\nkeys <Space>top<Tab>\nwait smi.txt topo.txt\n"
               "keys <Enter>\nwait 2 cards\nkeys <Esc>:import pri<Tab>\nwait prices.csv\n");
    screen_close(&s);
}

static void any_size_and_any_key_does_no_harm(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    write_files();
    for (int w = 1; w < 60; w += 3) {
        for (int h = 1; h < 14; h++) {
            struct hv_event size = hv_event_resize(w, h);
            screen_run(&s, "keys :import smi.txt topo.txt<Enter>\n");
            (void)hv_app_feed(s.app, &size);
            hv_app_draw(s.app, &s.grid);
            screen_run(&s, "keys jjjGkk<Tab><PgDn>g<Esc>\n");
        }
    }
    assert_int_equal(hv_session_n_undo(s.session), 0);
    screen_close(&s);
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
    (void)screen_root();
    const struct CMUnitTest tests[] = {
        WITH_BENCH(a_cluster_is_looked_at_and_replaced_as_one_step),
        WITH_BENCH(kinds_of_guessed_cards_are_chosen),
        WITH_BENCH(nodes_are_added_under_new_names),
        WITH_BENCH(a_launch_brings_model_job_and_layout_together),
        WITH_BENCH(prices_go_to_nodes_with_the_same_devices),
        WITH_BENCH(what_cannot_be_taken_says_why),
        WITH_BENCH(tab_completes_files),
        WITH_BENCH(any_size_and_any_key_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
