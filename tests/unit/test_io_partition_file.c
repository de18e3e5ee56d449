/* Instance files: what is read, and that a refusal names the place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "solver/io/own/instance/partition_file.h"

static enum hv_status read_text(const char *text, struct hv_instance *in, struct hv_err *err)
{
    struct hv_json json = {0};
    *in = (struct hv_instance){.name = ""};
    enum hv_status st = hv_json_parse(&json, text, strlen(text), "f.json", err);
    if (st == HV_OK) {
        st = hv_instance_read(in, &json, err);
    }
    hv_json_free(&json);
    return st;
}

static void a_chain_is_read(void **state)
{
    (void)state;
    struct hv_instance in;
    struct hv_partition_result r;
    const char *text =
        "{\"format\":\"hetviz.partition/1\",\"kind\":\"chain\",\"layers\":3,\"stages\":2,"
        "\"time_ms\":[[1,2,3],[1,2,3]],\"comm_ms\":[[0.5,0.25,9]],\"expected\":{}}";
    assert_int_equal(read_text(text, &in, NULL), HV_OK);
    assert_int_equal(in.kind, HV_INSTANCE_CHAIN);
    assert_true(in.chain.stages[0].time == in.chain.stages[1].time); /* equal devices share */
    assert_int_equal(hv_partition_solve(&in.chain, NULL, &in.arena, &r, NULL), HV_OK);
    assert_true(r.objective == 3.25 && r.cut[0] == 2);
    hv_instance_free(&in);
}

static void graphs_and_splits_are_read(void **state)
{
    (void)state;
    struct hv_instance in;
    const char *dag =
        "{\"format\":\"hetviz.partition/"
        "1\",\"kind\":\"dag\",\"accelerators\":2,\"node_fields\":[\"id\","
        "\"accel_latency\",\"cpu_latency\",\"size_bytes\",\"is_backward\",\"color_class\","
        "\"supported_on_accel\"],\"nodes\":[[5,1,2,3,0,7,1],[9,1,2,3,1,null,1],[6,1,2,3,1,7,0]],"
        "\"edge_fields\":[\"src\",\"dst\",\"cost\"],\"edges\":[[5,9,0.5]]}";
    assert_int_equal(read_text(dag, &in, NULL), HV_OK);
    assert_int_equal(in.dag.n_classes, 2);
    assert_int_equal(in.dag.nodes[0].color, in.dag.nodes[2].color);
    assert_int_not_equal(in.dag.nodes[0].color, in.dag.nodes[1].color);
    assert_true(in.dag.nodes[2].cpu_only && in.dag.nodes[1].backward);
    assert_int_equal(in.dag.edges[0].to, 1);
    hv_instance_free(&in);
    assert_int_equal(read_text("{\"format\":\"hetviz.distribute/1\",\"total\":8,\"replicas\":"
                               "[{\"per_microbatch_ms\":2,\"max\":3}]}",
                               &in, NULL),
                     HV_OK);
    assert_true(in.total == 8 && in.shares[0].max == 3 && in.shares[0].size == 1);
    hv_instance_free(&in);
}

static void refusals_name_the_place(void **state)
{
    (void)state;
    struct hv_instance in;
    struct hv_err err = {.status = HV_OK};
    const char *negative = "{\"format\":\"hetviz.partition/1\",\"kind\":\"chain\",\"layers\":2,\n"
                           "\"stages\":1,\"time_ms\":[[1,-2]]}";
    assert_int_equal(read_text(negative, &in, &err), HV_EINPUT);
    assert_int_equal(err.line, 2);
    assert_non_null(strstr(err.text, "time_ms[0][1]"));
    hv_instance_free(&in);
    const char *unknown = "{\"format\":\"hetviz.partition/1\",\"kind\":\"chain\",\"layer\":2}";
    assert_int_equal(read_text(unknown, &in, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "layers"));
    hv_instance_free(&in);
}

static void copies_and_chunks_are_read(void **state)
{
    (void)state;
    struct hv_instance in;
    struct hv_replicas_result r;
    const char *copies =
        "{\"format\":\"hetviz.partition/1\",\"kind\":\"replicas\",\"layers\":2,\"devices\":2,"
        "\"capacity_GiB\":4,\"widths\":[{\"sync_ms\":[9,9],\"comm_ms\":[0.5,7],\"options\":["
        "{\"time_ms\":[1,1],\"held_GiB\":[3,3]},{\"time_ms\":[2,2],\"held_GiB\":[1,1]}]}]}";
    assert_int_equal(read_text(copies, &in, NULL), HV_OK);
    assert_int_equal(in.kind, HV_INSTANCE_REPLICAS);
    assert_int_equal(in.replicas.widths[0].width, 1);
    assert_int_equal(hv_replicas_solve(&in.replicas, NULL, &in.arena, &r, NULL), HV_OK);
    /* the first stage holds two samples and recomputes; both pay the cut after layer 0 */
    assert_true(r.objective == 2.5 && r.choice[0] == 1 && r.choice[1] == 0);
    hv_instance_free(&in);
    const char *fold =
        "{\"format\":\"hetviz.partition/1\",\"kind\":\"chain\",\"layers\":2,\"stages\":4,"
        "\"min_layers\":0,\"ranks\":2,\"placement\":\"fold\",\"any_stages\":false,"
        "\"time_ms\":[[1,1],[1,1],[1,1],[1,1]]}";
    assert_int_equal(read_text(fold, &in, NULL), HV_OK);
    assert_true(in.n_ranks == 2 && in.rank[1] == 1 && in.rank[2] == 1 && in.rank[3] == 0);
    hv_instance_free(&in);
}

static void pipelines_are_read(void **state)
{
    (void)state;
    struct hv_instance in;
    struct hv_batch_layers_result r;
    const char *text =
        "{\"format\":\"hetviz.partition/1\",\"kind\":\"joint\",\"total\":9,\"pipelines\":["
        "{\"copies\":2,\"layers\":2,\"stages\":2,\"time_ms\":[[3,2],[1,1]],\"max\":5},"
        "{\"layers\":2,\"stages\":1,\"time_ms\":[[1,1]],\"min\":1}]}";
    assert_int_equal(read_text(text, &in, NULL), HV_OK);
    assert_int_equal(in.joint.n_pipelines, 3);
    assert_true(in.joint.pipelines[0].stages == in.joint.pipelines[1].stages); /* solved once */
    assert_true(in.joint.max[1] == 5 && in.joint.max[2] == 9 && in.joint.min[2] == 1);
    /* a copy takes 4 + 3 (n - 1), the other 2 n: (2, 2, 5) ends at 10 */
    assert_int_equal(hv_batch_layers_solve(&in.joint, NULL, &in.arena, &r, NULL), HV_OK);
    assert_true(r.proven && r.objective == 10);
    hv_instance_free(&in);
}

static void goals_are_read(void **state)
{
    (void)state;
    struct hv_instance in;
    const char *curve = "{\"format\":\"hetviz.distribute/1\",\"total\":8,\"objective\":\"sum\","
                        "\"replicas\":[{\"time_ms\":[[0,1],[4,2],[8,9]]}]}";
    assert_int_equal(read_text(curve, &in, NULL), HV_OK);
    assert_true(in.goal == HV_INSTANCE_SUM && in.shares[0].n_points == 3);
    assert_true(in.shares[0].points[1].count == 4 && in.shares[0].points[2].time == 9);
    hv_instance_free(&in);
    const char *items = "{\"format\":\"hetviz.distribute/1\",\"objective\":\"lpt\",\"slots\":2,"
                        "\"items_ms\":[3,1,2],\"most\":2}";
    assert_int_equal(read_text(items, &in, NULL), HV_OK);
    assert_true(in.n_items == 3 && in.n_slots == 2 && in.most == 2 && in.items[2] == 2);
    hv_instance_free(&in);
}

/* What an objective does not take is told with the place, not by the solver. */
static void goals_check_their_replicas(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"sum", "{\"time_ms\":[[0,0],[2,4],[9,5]]}", "replicas[0].time_ms[1]: sum needs convex"},
        {"sum", "{\"per_microbatch_ms\":1},{\"per_microbatch_ms\":1,\"size\":2}",
         "replicas[1].size: sum needs equal sizes"},
        {"minvar", "{\"per_microbatch_ms\":0}", "replicas[0].per_microbatch_ms: minvar"},
        {"ratio", "{\"per_microbatch_ms\":1,\"size\":3}", "replicas[0].size: ratio"},
        {"ratio", "{\"time_ms\":[[0,0],[2,4]]}", "replicas[0].time_ms: points go with"},
        {"minmax", "{\"time_ms\":[[0,4],[2,3]]}", "replicas[0].time_ms[1][1]: expected a time"},
        {"minmax", "{\"time_ms\":[[2,4],[2,5]],\"min\":2}", "replicas[0].time_ms[1][0]: expected"},
        {"minmax", "{\"time_ms\":[[1,4]]}", "replicas[0].time_ms: expected a first point"},
        {"minmax", "{\"time_ms\":[[0,4]],\"min\":3}", "expected points that reach the min 3"},
        {"minmax", "{\"time_ms\":[[0,4]],\"fixed_ms\":3}", "points stand instead of"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct hv_instance in;
        struct hv_err err = {.status = HV_OK};
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{\"format\":\"hetviz.distribute/1\",\"total\":8,\"objective\":\"%s\",\n"
                       "\"replicas\":[%s]}",
                       rows[k][0], rows[k][1]);
        assert_int_equal(read_text(text, &in, &err), HV_EINPUT);
        assert_int_equal(err.line, 2);
        if (!strstr(err.text, rows[k][2])) {
            fail_msg("row %zu: %s", k, err.text);
        }
        hv_instance_free(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_read),
        cmocka_unit_test(graphs_and_splits_are_read),
        cmocka_unit_test(copies_and_chunks_are_read),
        cmocka_unit_test(pipelines_are_read),
        cmocka_unit_test(goals_are_read),
        cmocka_unit_test(goals_check_their_replicas),
        cmocka_unit_test(refusals_name_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
