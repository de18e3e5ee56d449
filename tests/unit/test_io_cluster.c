/* Cluster files: what is refused, where, and in which words; the device catalogue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <string.h>

static struct hv_device_catalogue catalogue;

static int setup(void **state)
{
    (void)state;
    return hv_device_catalogue_read(&catalogue, NULL) ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    hv_device_catalogue_free(&catalogue);
    return 0;
}

static enum hv_status build(struct hv_cluster_doc *d, const char *text, struct hv_err *e)
{
    struct hv_json j = {0};
    enum hv_status st = hv_json_parse(&j, text, strlen(text), "t.json", e);
    return st ? st : hv_cluster_doc_build(d, j, &catalogue, e);
}

#define TOP  "{\"format\": \"hetviz.cluster/1\",\n"
#define A100 "\"device\": \"A100-SXM-80GB\""
static const struct {
    const char *text;
    unsigned line, col; /* 0: any */
    const char *says;
} bad[] = {
    {"{}", 1, 1, "format"},
    {"{\"format\": \"hetviz.model/1\"}", 1, 0, "hetviz.cluster/1"},
    {TOP "\"nodes\": []}", 2, 10, "nodes"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"cuont\": 2}]}", 2, 0, "count"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"count\": -2}]}", 2, 0, "nodes[0].count"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"count\": 1e9}]}", 2, 0, "4000000"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"count\": 1000000, \"devices\": 8}]}", 2, 0,
     "4000000"},
    {TOP "\"nodes\": [{\"name\": \"a\", \"device\": \"A100-SXM-80G\"}]}", 2, 0, "A100-SXM-80GB"},
    {TOP "\"nodes\": [{\"name\": \"a\"}]}", 2, 0, "device"},
    {TOP "\"nodes\": [{" A100 "}]}", 2, 11, "name"},
    {TOP "\"nodes\": [{\"name\": \"a.b\", " A100 "}]}", 2, 0, "dots"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 "},\n{\"name\": \"a\", " A100 "}]}", 3, 10,
     "taken by nodes[0]"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"devices\": []}]}", 2, 0, "at least one"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"devices\": \"8\"}]}", 2, 0,
     "a number or a list"},
    {TOP "\"nodes\": [{\"name\": \"a\", \"devices\": [{\"count\": 2}]}]}", 2, 0, "device"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"intra\": {\"kind\": \"nvlnik\"}}]}", 2, 0,
     "nvlink"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"intra\": {\"bandwidth_GBps\": 0}}]}", 2, 0,
     "bandwidth_GBps"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"devices\": 4, \"intra\": {\"groups\": [\n"
         "{\"devices\": \"0-2\"},\n{\"devices\": \"2-3\"}]}}]}",
     4, 13, "overlap"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100
         ", \"intra\": {\"groups\": [{\"devices\": \"0-1\"}]}}]}",
     2, 0, "inside 0-0"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100
         ", \"intra\": {\"groups\": [{\"devices\": \"0-\"}]}}]}",
     2, 0, "0-3"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 "}],\n\"network\": {\"links\": [{\"between\": "
         "[\"a\", \"b\"], \"latency_us\": 1}]}}",
     3, 0, "a zone"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 "}],\n\"network\": {\"links\": [{\"between\": "
         "[\"a\", \"a[1]\"], \"latency_us\": 1}]}}",
     3, 0, "links[0].between[1]"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 "}],\n\"network\": {\"links\": [{\"between\": "
         "[\"a\", \"a\"]}]}}",
     3, 0, "neither"},
    {TOP "\"nodes\": [{\"name\": \"a\", \"count\": 2, " A100 "}],\n\"network\": "
         "{\"matrix_bandwidth_GBps\": [[0, 1]]}}",
     3, 0, "2 rows"},
    {TOP "\"nodes\": [{\"name\": \"a\", \"count\": 2, " A100 "}],\n\"network\": "
         "{\"matrix_bandwidth_GBps\": [[0, 1], [1]]}}",
     3, 0, "[1]"},
    {TOP "\"nodes\": [{\"name\": \"a\", \"count\": 2, " A100 "}],\n\"network\": "
         "{\"matrix_bandwidth_GBps\": [[0, 1], [0, 0]]}}",
     3, 0, "[1][0]"},
    {TOP "\"nodes\": [{\"name\": \"a\", \"device\": \"X\"}],\n\"devices\": {\"X\": {\"base\": "
         "\"Y\"},\n\"Y\": {\"base\": \"X\"}}}",
     0, 0, "circle"},
    {TOP "\"nodes\": [{\"name\": \"a\", \"device\": \"X\"}],\n\"devices\": {\"X\": {\"base\": "
         "\"X\"}}}",
     3, 0, "its own base"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 "}],\n\"devices\": {\"X\": {\"memory_GiB\": 1}}}", 3,
     0, "dense_TFLOPS"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 "}],\n\"devices\": {\"X\": {\"base\": "
         "\"T4-16GB\", \"memory_GiB\": -1}}}",
     3, 0, "devices.X.memory_GiB"},
    {TOP "\"nodes\": [{\"name\": \"a\", " A100 ", \"state\": \"up\"}]}", 2, 0, "drain"},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(bad); i++) {
        struct hv_cluster_doc d = {0};
        struct hv_err e = {0};
        if (build(&d, bad[i].text, &e) != HV_EINPUT) {
            fail_msg("row %zu is read", i);
        }
        if (strcmp(e.file, "t.json") != 0 || e.line == 0 || !strstr(e.text, bad[i].says) ||
            (bad[i].line && e.line != bad[i].line) || (bad[i].col && e.col != bad[i].col)) {
            fail_msg("row %zu: %s:%u:%u: %s", i, e.file, e.line, e.col, e.text);
        }
    }
}

static void own_devices(void **state)
{
    (void)state;
    struct hv_cluster_doc d = {0};
    struct hv_err e = {0};
    enum hv_status st = build(
        &d,
        TOP "\"nodes\": [{\"name\": \"a\", \"device\": \"Mine\"}, {\"name\": \"b\", \"device\": "
            "\"T4-16GB\"}], \"devices\": {\"Mine\": {\"base\": \"Half\", \"memory_GiB\": 40},"
            "\"Half\": {\"base\": \"A100-SXM-80GB\", \"dense_TFLOPS\": {\"bf16\": 156}},"
            "\"T4-16GB\": {\"memory_GiB\": 15}}}",
        &e);
    if (st) {
        fail_msg("%s", e.text);
    }
    const struct hv_device_kind *k = hv_cluster_device(d.cluster, 0).kind;
    assert_string_equal(k->name, "Mine");
    assert_string_equal(k->fabric, "nvidia");
    assert_true(k->memory_bytes == 40 * HV_GIB && k->flops_per_s[HV_BF16] == 156e12);
    assert_true(k->flops_per_s[HV_FP16] == 312e12 && k->memory_bytes_per_s == 2039e9);
    k = hv_cluster_device(d.cluster, 1).kind;
    assert_true(k->memory_bytes == 15 * HV_GIB && k->flops_per_s[HV_FP16] == 65e12);
    hv_cluster_doc_free(&d);
}

static void catalogue_is_whole(void **state)
{
    (void)state;
    size_t accelerators = 0;
    for (size_t i = 0; i < catalogue.n_kinds; i++) {
        const struct hv_device_kind *k = &catalogue.kinds[i];
        accelerators += k->cls != HV_CLASS_CPU;
        assert_non_null(k->vendor);
        assert_non_null(k->fabric);
        assert_non_null(k->spec_source);
        assert_true(k->memory_bytes > 0 && k->memory_bytes_per_s > 0);
        if (hv_known(k->matmul_flops_per_s) && hv_known(k->flops_per_s[HV_BF16])) {
            assert_true(k->matmul_flops_per_s <= 1.02 * k->flops_per_s[HV_BF16]);
        }
        for (size_t p = 0; p < k->n_prices; p++) {
            assert_true(!(k->prices[p].spot_usd_per_h > k->prices[p].usd_per_h));
        }
    }
    assert_int_equal(accelerators, 76);
    /* NVIDIA A100 datasheet: 312 TFLOPS dense, 2,039 GB/s, 600 GB/s NVLink both ways */
    const struct hv_device_kind *a = hv_device_find(&catalogue, "A100-SXM-80GB");
    assert_non_null(a);
    assert_true(a->flops_per_s[HV_BF16] == 312e12 && a->memory_bytes_per_s == 2039e9);
    assert_true(a->link_bytes_per_s == 300e9 && a->link_domain == 8);
    assert_false(hv_device_has(hv_device_find(&catalogue, "V100-SXM2-32GB"), HV_BF16));
    assert_true(isnan(hv_device_peak_flops_per_s(a, HV_FP8)));
}

static void shipped_clusters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t devices;
    } rows[] = {{"two-generations", 32}, {"a100-v100-t4", 32}, {"spot-mix", 56},
                {"two-regions", 32},     {"thousand", 1024},   {"homogeneous", 64}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_cluster_doc d = {0};
        struct hv_err e = {0};
        if (hv_cluster_doc_read(&d, rows[i].name, &catalogue, &e)) {
            fail_msg("%s", e.text);
        }
        assert_int_equal(d.cluster->n_devices, rows[i].devices);
        hv_cluster_doc_free(&d);
    }
    struct hv_cluster_doc d = {0};
    struct hv_err e = {0};
    assert_int_equal(hv_cluster_doc_read(&d, "thousnad", &catalogue, &e), HV_EIO);
    assert_non_null(strstr(e.text, "\"thousand\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(own_devices),
                                       cmocka_unit_test(catalogue_is_whole),
                                       cmocka_unit_test(shipped_clusters)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
