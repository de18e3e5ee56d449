/* Instance files: what is read, and that a refusal names the place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solver/io/own/partition_file.h"

static enum hv_status read_text(const char *text, struct hv_instance *in, struct hv_err *err)
{
    struct hv_json json = {0};
    *in = (struct hv_instance){.name = ""};
    enum hv_status st = hv_json_parse(&json, text, strlen(text), "f.json", err);
    if (st == HV_OK)
        st = hv_instance_read(in, &json, err);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_read),
        cmocka_unit_test(graphs_and_splits_are_read),
        cmocka_unit_test(refusals_name_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
