/* Cluster and Model over a session: editing, refusing, undoing, saving, and how they look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screen_bench.h"

/* Totals of the workspace: 2 × 8 A100 80 GiB + 8 V100 32 GiB = 1.5 TiB. */
static void editing_a_count_changes_totals_and_can_be_undone(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "wait 3 nodes, 24 GPUs, 1.5 TiB\n"
                   "keys e<Enter>^U4<Enter>\n"
                   "wait 5 nodes, 40 GPUs, 2.75 TiB\n"
                   "keys qu\n"
                   "wait 3 nodes, 24 GPUs\n"
                   "wait undone\n"
                   "keys ^R\n"
                   "wait 5 nodes, 40 GPUs\n");
    assert_int_equal(json_integer_value(hv_session_get(s.session, "cluster.nodes[0].count")), 4);
    assert_int_equal(hv_session_n_undo(s.session), 1);
    screen_close(&s);
}

static void wrong_values_are_refused_and_say_why(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys e<Enter>^U-3<Enter>\n"
                   "wait nodes: must be at least 1\n"
                   "keys <Esc>\n"
                   "wait 3 nodes, 24 GPUs\n"
                   "keys k<Enter>nothing<Enter>\n" /* the list: no device has this text */
                   "wait none; Backspace widens\n"
                   "keys <Esc>k<Enter>^Uv<Enter>\n" /* a name that is taken: the session's word */
                   "wait not accepted\n");
    assert_int_equal(hv_session_n_undo(s.session), 0);
    assert_string_equal(json_string_value(hv_session_get(s.session, "cluster.nodes[0].name")), "a");
    screen_close(&s);
}

static void the_list_of_devices_is_picked_by_typing(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys ek<Enter>h100-sxm<Enter>\nwait H100-SXM\n");
    assert_non_null(
        strstr(json_string_value(hv_session_get(s.session, "cluster.nodes[0].device")), "H100"));
    /* words in any order; a blank belongs to what is typed */
    screen_run(&s, "keys <Enter>32 v100 sxm2<Enter>\n");
    assert_string_equal(json_string_value(hv_session_get(s.session, "cluster.nodes[0].device")),
                        "V100-SXM2-32GB");
    screen_run(&s, "keys <Enter>a100 80\nwait A100-PCIe-80GB\nkeys <Down><Enter>\n");
    assert_string_equal(json_string_value(hv_session_get(s.session, "cluster.nodes[0].device")),
                        "A100-SXM-80GB");
    screen_close(&s);
}

static void marked_groups_change_together_as_one_step(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys <Space><Space>e\nwait Edit 2 marked groups\n"
                   "keys <Enter>^U3<Enter>\nwait 6 nodes, 48 GPUs\n"); /* nodes of both */
    assert_int_equal(hv_session_n_undo(s.session), 1);
    /* objects that are not there yet are made, still one step */
    screen_run(&s, "keys jjjjjj<Enter>^U25<Enter>\n");
    assert_int_equal(hv_session_n_undo(s.session), 2);
    for (int i = 0; i < 2; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "cluster.nodes[%d].nic.bandwidth_GBps", i);
        assert_non_null(hv_session_get(s.session, path));
        assert_true(json_number_value(hv_session_get(s.session, path)) > 24.5);
    }
    screen_run(&s, "keys <Esc>uu\nwait 3 nodes, 24 GPUs\n");
    screen_close(&s);
}

/* 25 Gb/s are 3.125 GB/s; capital letters tell bits from bytes, and small ones are asked about. */
static void numbers_are_typed_as_people_say_them(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys L<Enter>25GbE<Enter>\nwait 3.12/\n"
                   "keys <Enter>100 Gb/s<Enter>\nwait 12.5\n"
                   "keys <Enter>25gb/s<Enter>\nwait write Gb/s for bits or GB/s for bytes\n"
                   "keys <Esc><Esc><Esc>e<Enter>3 x 4<Enter>\nwait 3 x 4\nwait 4 nodes, 20 GPUs\n");
    assert_int_equal(hv_session_n_undo(s.session), 3);
    assert_int_equal(json_integer_value(hv_session_get(s.session, "cluster.nodes[0].count")), 3);
    assert_int_equal(json_integer_value(hv_session_get(s.session, "cluster.nodes[0].devices")), 4);
    /* both members are one step; "auto" is no value */
    screen_run(&s, "keys u\nwait 3 nodes, 24 GPUs\nkeys jjjjjj<Enter>auto<Enter>\nwait 12.5\n");
    assert_null(hv_session_get(s.session, "cluster.nodes[0].nic.bandwidth_GBps"));
    screen_close(&s);
}

/* The first character replaces a value, a cursor key keeps it. */
static void typing_replaces_a_value_and_a_cursor_key_goes_on(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys e<Enter>\nwait End Go on\nkeys 4<Enter>\nwait 5 nodes\n"
                   "keys <Enter><End>0<Enter>\nwait 41 nodes\n");
    screen_close(&s);
}

static void values_that_differ_are_shown_as_mixed_and_kept(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    json_t *before = json_deep_copy(hv_session_tree(s.session, HV_DOC_CLUSTER));
    screen_run(&s, "resize 80x24\nkeys <Space><Space>e\n"
                   "wait >nodes            [mixed\nwait device           [mixed\n"
                   "wait devices per node [8\n"
                   "keys <Enter><Enter>\n"); /* nothing was typed: nothing changes */
    assert_int_equal(hv_session_n_undo(s.session), 0);
    assert_true(json_equal(before, hv_session_tree(s.session, HV_DOC_CLUSTER)));
    screen_golden(&s, "cluster_mixed", 80, 24);
    screen_run(&s, "keys <Enter>2x4<Enter>\nwait 4 nodes, 16 GPUs\nwait >nodes            [2\n");
    assert_int_equal(hv_session_n_undo(s.session), 1);
    json_decref(before);
    screen_close(&s);
}

static void groups_are_drained_added_pasted_and_deleted(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys D\nwait 1 node (+2 not in use), 8 GPUs\nkeys D\nwait 3 nodes, 24 GPUs\n"
                   "keys a\nwait group a2 added\nwait 5 nodes, 40 GPUs\n"
                   "keys yP\nwait group a3 added\nwait 7 nodes, 56 GPUs\n"
                   "keys <Space>kk<Space>d\nwait 2 groups deleted\nwait 3 nodes\n"
                   "keys u\nwait 7 nodes\n");
    screen_close(&s);
}

static void the_last_group_cannot_be_deleted(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys d\nwait 1 node, 8 GPUs\nkeys d\nwait error: \nwait 1 node, 8 GPUs\n");
    screen_close(&s);
}

static void the_network_is_edited_and_a_made_object_is_one_step(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys L\nwait Edit network\nkeys <Enter>2.5<Enter><Esc>\nwait 2.5/\n");
    assert_int_equal(hv_session_n_undo(s.session), 1);
    screen_run(&s, "keys u\n");
    assert_null(hv_session_get(s.session, "cluster.network"));
    screen_close(&s);
}

static void tab_takes_a_value_and_goes_on(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys e\nwait >nodes\nwait Tab Next field\nkeys <Enter>\nwait Tab Accept, next\n"
                   "keys ^U3<Tab>\nwait >devices per node\nwait u Undo\nkeys <Enter>^Ux<Tab>\n"
                   "wait error: \nkeys <Esc><Esc>\nwait a Add\n");
    assert_int_equal(hv_session_n_undo(s.session), 1);
    screen_close(&s);
}

static void the_matrix_follows_the_table_and_has_keys_of_its_own(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys j<Tab>\nwait v -> a\nwait d Del  L Links  Tab Panel\n");
    screen_close(&s);
}

static void links_between_groups_are_added_and_deleted(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys <Tab>la\nwait Edit network\nwait a - v\nkeys "
                   "<Enter>^U1.5<Enter><Esc>\nwait a -> v: 1.5 GB/s\nkeys jh\nwait v -> a: 1.5 "
                   "GB/s\nkeys d\nwait link a - v deleted\nwait v -> a: 12.5 GB/s\nkeys u\nwait v "
                   "-> a: 1.5 GB/s\nkeys kd\nwait this link has no individual values\n");
    screen_close(&s);
}

static void sorting_filtering_and_finding_keep_the_group(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys /V100<Enter>\nwait > v\nkeys s\nwait sort: name\nkeys S\nwait > v\n"
                   "keys fa100<Enter>\nwait filter: a100\nkeys <Esc>\nwait V100-SXM2-32GB\n");
    screen_close(&s);
}

static void what_is_saved_is_what_was_edited(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys e<Enter>^U7<Enter><Esc>^S\nwait saved\n");
    screen_close(&s);
    screen_open(&s, *state);
    screen_run(&s, "wait 8 nodes, 64 GPUs\n");
    const json_t *rack = hv_session_get(s.session, "cluster.nodes[0].x-rack");
    assert_string_equal(json_string_value(rack), "r1"); /* what is not ours stays */
    screen_close(&s);
}

static void models_are_edited_checked_and_imported(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "resize 160x48\n:screen model\nwait 8 blocks\nkeys j<Enter>^U12<Enter>\n"
                   "wait + 0-11\nkeys u\nwait + 0-7\n"
                   "keys <Tab>j<Enter>\nwait feed-forward\nkeys <Enter>\n"
                   "keys illama-3-8b<Enter>\nwait imported 8.03B parameters in 32 layers\n"
                   "keys u\nwait tiny\n"
                   "keys ino-such-model<Enter>\nwait error: \nkeys <Esc>\n"
                   ":set job.sequence 4096\n"
                   "wait sequence 4096 is longer than the model's 2048 tokens\n"
                   ":set job.precision bf16\nwait V100-SXM2-32GB has no bf16: 8 devices stay idle\n"
                   "keys 1\nwait no bf16\n");
    screen_close(&s);
}

static void imports_replace_the_cluster_as_one_step(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "keys ia100-v100-t4<Enter>\nwait imported 3 groups, 5 nodes, 32 devices\n"
                   "keys u\nwait 3 nodes, 24 GPUs\n"
                   "keys ino-such-file<Enter>\nwait error: \nwait 3 nodes, 24 GPUs\n");
    screen_close(&s);
}

static void screens_look_as_they_did(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_goldens(&s, "cluster");
    screen_run(&s, "keys e\n");
    screen_goldens(&s, "cluster_form");
    screen_run(&s, "keys k<Enter>a1\n");
    screen_goldens(&s, "cluster_list");
    screen_run(&s, "keys <Esc><Esc>2\n");
    screen_goldens(&s, "model");
    screen_run(&s, "keys <Tab><Tab>\n");
    screen_golden(&s, "model_fit", 40, 10);
    screen_close(&s);
}

static void random_keys_and_sizes_do_no_harm(void **state)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct screen s;
        screen_open(&s, *state);
        screen_random(&s, seed, 1500);
        screen_close(&s);
    }
}

/* All kinds of clusters and models: mixed slots, islands, matrices, zones, a thousand nodes; MoE,
 * MLA, alternating windows, images, measured layers, operators, modules. */
static void every_kind_of_cluster_and_model_is_shown(void **state)
{
    static const char *const clusters[] = {"desktop", "two-regions", "thousand", "spot-mix"};
    static const char *const models[] = {"deepseek-v3",
                                         "gpt-oss-120b",
                                         "vit-h-14",
                                         "samples/models/measured-layers.json",
                                         "samples/models/mlp-graph.json",
                                         "samples/models/two-towers.json"};
    for (size_t i = 0; i < HV_COUNT(models); i++) {
        struct screen s;
        struct hv_str path = {0};
        bool file = strchr(models[i], '/') != NULL;
        hv_str_addf(&path, "%s%s%s", file ? screen_root() : "", file ? "/" : "", models[i]);
        screen_open_new(&s, *state, clusters[i % HV_COUNT(clusters)], hv_str_cstr(&path));
        hv_str_free(&path);
        screen_run(&s, "resize 160x48\nwait GB/s\nkeys 2\nwait Layers, 1 sequence\n"
                       "keys <Tab>jt\nresize 80x24\nwait Layers\nkeys 1\nwait Nodes\n"
                       "keys <Tab><Tab>G\nresize 40x10\nwait Details\n");
        screen_random(&s, 100 + i, 400);
        screen_close(&s);
    }
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
    (void)screen_root();
    const struct CMUnitTest tests[] = {
        WITH_BENCH(editing_a_count_changes_totals_and_can_be_undone),
        WITH_BENCH(wrong_values_are_refused_and_say_why),
        WITH_BENCH(the_list_of_devices_is_picked_by_typing),
        WITH_BENCH(marked_groups_change_together_as_one_step),
        WITH_BENCH(numbers_are_typed_as_people_say_them),
        WITH_BENCH(typing_replaces_a_value_and_a_cursor_key_goes_on),
        WITH_BENCH(values_that_differ_are_shown_as_mixed_and_kept),
        WITH_BENCH(groups_are_drained_added_pasted_and_deleted),
        WITH_BENCH(the_last_group_cannot_be_deleted),
        WITH_BENCH(the_network_is_edited_and_a_made_object_is_one_step),
        WITH_BENCH(tab_takes_a_value_and_goes_on),
        WITH_BENCH(the_matrix_follows_the_table_and_has_keys_of_its_own),
        WITH_BENCH(links_between_groups_are_added_and_deleted),
        WITH_BENCH(sorting_filtering_and_finding_keep_the_group),
        WITH_BENCH(what_is_saved_is_what_was_edited),
        WITH_BENCH(models_are_edited_checked_and_imported),
        WITH_BENCH(imports_replace_the_cluster_as_one_step),
        WITH_BENCH(screens_look_as_they_did),
        WITH_BENCH(every_kind_of_cluster_and_model_is_shown),
        WITH_BENCH(random_keys_and_sizes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
