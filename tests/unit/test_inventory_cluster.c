/* Clusters: numbers, paths, prices; addresses as exact inverses. Reads small texts through io. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define assert_near(x, want, tolerance) assert_true(fabs((x) - (want)) <= (tolerance))

static struct hv_device_catalogue catalogue;

static int setup(void **state)
{
    struct hv_err e = {0};
    (void)state;
    if (hv_device_catalogue_read(&catalogue, &e)) {
        print_error("%s\n", e.text);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hv_device_catalogue_free(&catalogue);
    return 0;
}

static struct hv_cluster_doc build(const char *text)
{
    struct hv_err e = {0};
    struct hv_json j = {0};
    struct hv_cluster_doc d = {0};
    if (hv_json_parse(&j, text, strlen(text), "t.json", &e) ||
        hv_cluster_doc_build(&d, j, &catalogue, &e)) {
        fail_msg("%s:%u:%u: %s", e.file, e.line, e.col, e.text);
    }
    return d;
}

#define HEAD "{\"format\": \"hetviz.cluster/1\", "
static const char mixed[] =
    HEAD "\"nodes\": [\n"
         "{\"name\": \"a\", \"count\": 2, \"device\": \"A100-SXM-80GB\", \"devices\": 8,"
         " \"nic\": {\"bandwidth_GBps\": 50, \"latency_us\": 4}, \"zone\": \"east\"},\n"
         "{\"name\": \"v\", \"count\": 3, \"device\": \"V100-SXM2-32GB\", \"devices\": 4,"
         " \"nic\": {\"bandwidth_GBps\": 3}, \"zone\": \"west\"},\n"
         "{\"name\": \"t\", \"device\": \"T4-16GB\", \"zone\": \"west\"}],\n"
         "\"network\": {\"bandwidth_GBps\": 25, \"latency_us\": 20, \"links\": [\n"
         "{\"between\": [\"east\", \"west\"], \"bandwidth_GBps\": 2, \"latency_us\": 500},\n"
         "{\"between\": [\"v\", \"a\"], \"bandwidth_GBps\": 1},\n"
         "{\"between\": [\"v[2]\", \"a\"], \"bandwidth_GBps\": 0.5}]}}";

static void numbers(void **state)
{
    (void)state;
    struct hv_cluster_doc d = build(mixed);
    struct hv_cluster *c = d.cluster;
    assert_int_equal(c->n_devices, 29);
    assert_int_equal(c->n_nodes, 6);
    assert_int_equal(c->n_kinds, 3);
    uint32_t id = 0;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        for (uint32_t n = 0; n < c->groups[g].count; n++) {
            for (uint32_t s = 0; s < c->groups[g].n_devices; s++, id++) {
                struct hv_device_ref r = hv_cluster_device(c, id);
                assert_int_equal(r.group, g);
                assert_int_equal(r.node_in_group, n);
                assert_int_equal(r.slot, s);
                assert_int_equal(r.node, hv_cluster_node_of(c, id));
                assert_ptr_equal(hv_cluster_group_of_node(c, r.node), &c->groups[g]);
            }
        }
    }
    hv_cluster_doc_free(&d);
}

static void check_path(const struct hv_cluster *c, uint32_t a, uint32_t b, double gbps, double us,
                       enum hv_path_level level)
{
    struct hv_path p = hv_cluster_path(c, a, b), q = hv_cluster_path(c, b, a);
    assert_near(p.bytes_per_s / 1e9, gbps, 1e-9);
    assert_near(p.latency_s * 1e6, us, 1e-6);
    assert_int_equal(p.level, level);
    assert_true(p.bytes_per_s == q.bytes_per_s && p.latency_s == q.latency_s);
}

static void paths(void **state)
{
    (void)state;
    struct hv_cluster_doc d = build(mixed);
    const struct hv_cluster *c = d.cluster;
    check_path(c, 0, 0, 2039, 0, HV_PATH_SELF);
    check_path(c, 0, 7, 300, 3, HV_PATH_NODE);     /* NVLink3, domain 8 */
    check_path(c, 16, 19, 150, 3, HV_PATH_NODE);   /* NVLink2 */
    check_path(c, 0, 8, 25, 24, HV_PATH_NETWORK);  /* network is tighter than 50 */
    check_path(c, 16, 20, 3, 25, HV_PATH_NETWORK); /* NIC, default latency 5 */
    check_path(c, 0, 28, 2, 505, HV_PATH_WAN);     /* zone link */
    check_path(c, 0, 16, 1, 25, HV_PATH_WAN);      /* group before zone, written v–a */
    check_path(c, 0, 24, 0.5, 25, HV_PATH_WAN);    /* node before group */
    hv_cluster_doc_free(&d);
}

static void cards_below_10_gbit_are_one_that_all_share(void **state)
{
    (void)state;
    static const struct {
        const char *nic;
        double flow_gbps;
    } rows[] = {{"{\"bandwidth_GBps\": 1.25, \"count\": 4}", 1.25}, /* EC2 p3.8xlarge: 10 Gbit/s */
                {"{\"bandwidth_GBps\": 6.25, \"count\": 4}", 1.5625},
                {"{\"bandwidth_GBps\": 2.5, \"count\": 4}", 1.25},
                {"{\"bandwidth_GBps\": 0.5, \"count\": 8}", 0.5},
                {"{\"bandwidth_GBps\": 100, \"count\": 8}", 25}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       HEAD "\"nodes\": [{\"name\": \"v\", \"count\": 2, \"device\": "
                            "\"V100-SXM2-16GB\", \"devices\": 4, \"nic\": %s}]}",
                       rows[i].nic);
        struct hv_cluster_doc d = build(text);
        double flow_gbps = hv_node_flow_bytes_per_s(&d.cluster->groups[0]) / HV_GBPS;
        assert_true(fabs(flow_gbps - rows[i].flow_gbps) < 1e-9);
        hv_cluster_doc_free(&d);
    }
}

static void inside_a_node(void **state)
{
    (void)state;
    struct hv_cluster_doc d =
        build(HEAD "\"nodes\": [{\"name\": \"n\", \"device\": \"V100-PCIe-32GB\", \"devices\": 4, "
                   "\"intra\": {\"groups\": ["
                   "{\"devices\": \"0-1\", \"kind\": \"nvlink\", \"bandwidth_GBps\": 112, "
                   "\"latency_us\": 2}]}},\n"
                   "{\"name\": \"m\", \"device\": \"MI300X-192GB\", \"devices\": 8},\n"
                   "{\"name\": \"x\", \"devices\": [{\"device\": \"RTX4090-24GB\", \"count\": 2}, "
                   "{\"device\": \"CPU-generic\"}],"
                   " \"host_memory_GBps\": 20}]}");
    const struct hv_cluster *c = d.cluster;
    check_path(c, 0, 1, 112, 2, HV_PATH_ISLAND);
    check_path(c, 0, 2, 15.75, 5, HV_PATH_NODE);  /* PCIe 3.0 between islands */
    check_path(c, 4, 5, 64, 3, HV_PATH_NODE);     /* full mesh: 448 / 7 */
    check_path(c, 12, 13, 31.5, 5, HV_PATH_NODE); /* PCIe 4.0 */
    check_path(c, 12, 14, 20, 10, HV_PATH_NODE);  /* host memory */
    check_path(c, 0, 4, 12.5, 5, HV_PATH_NETWORK);
    hv_cluster_doc_free(&d);
}

/* Two PCIe roots with two cards each: a flow from one to the other crosses both roots. */
static void shared_roots(void **state)
{
    (void)state;
    struct hv_cluster_doc d =
        build(HEAD "\"nodes\": [{\"name\": \"n\", \"device\": \"V100-PCIe-32GB\", \"devices\": 5, "
                   "\"intra\": {\"groups\": ["
                   "{\"devices\": \"0-1\", \"kind\": \"pcie-root\", \"bandwidth_GBps\": 12, "
                   "\"shared\": true},"
                   "{\"devices\": \"2-3\", \"kind\": \"pcie-root\", \"bandwidth_GBps\": 8, "
                   "\"shared\": true}]}}]}");
    check_path(d.cluster, 0, 1, 12, 5, HV_PATH_ISLAND);
    check_path(d.cluster, 0, 2, 8, 5, HV_PATH_NODE);
    check_path(d.cluster, 0, 4, 12, 5, HV_PATH_NODE);
    hv_cluster_doc_free(&d);
}

static void check_domains(const char *node, uint32_t n_domains, uint32_t nodes_each)
{
    char text[512];
    snprintf(text, sizeof text, HEAD "\"nodes\": [{\"name\": \"g\", %s}]}", node);
    struct hv_cluster_doc d = build(text);
    const struct hv_cluster *c = d.cluster;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        if (hv_cluster_domain_of(c, i) != i / nodes_each) {
            fail_msg("%s: node %u in domain %u", node, i, hv_cluster_domain_of(c, i));
        }
    }
    assert_int_equal(hv_cluster_domain_of(c, c->n_nodes - 1), n_domains - 1);
    hv_cluster_doc_free(&d);
}

/* 72 devices share a rack's NVLink: 18 nodes of 4. A job of 64 nodes has 16 of each of four racks.
 * Eight SXM devices fill a chassis; splitting one gives no link between the halves. */
static void domains(void **state)
{
    (void)state;
    check_domains("\"count\": 36, \"device\": \"GB200-NVL72\", \"devices\": 4", 2, 18);
    check_domains("\"count\": 12, \"device\": \"GB300-NVL72\", \"devices\": 4", 1, 18);
    check_domains("\"count\": 64, \"device\": \"GB200-NVL72\", \"devices\": 4", 4, 16);
    check_domains("\"count\": 37, \"device\": \"GB200-NVL72\", \"devices\": 4", 3, 18);
    check_domains("\"count\": 20, \"device\": \"GB200-NVL72\", \"devices\": 4, "
                  "\"domain_nodes\": 18",
                  2, 18);
    check_domains("\"count\": 20, \"device\": \"GB200-NVL72\", \"devices\": 4, "
                  "\"intra\": {\"kind\": \"nvlink\", \"bandwidth_GBps\": 900}",
                  2, 10);
    check_domains("\"count\": 5, \"device\": \"GB200-NVL72\", \"devices\": 4, "
                  "\"domain_nodes\": 1",
                  5, 1);
    check_domains("\"count\": 5, \"device\": \"GB200-NVL72\", \"devices\": 4, "
                  "\"intra\": {\"kind\": \"pcie\"}",
                  5, 1);
    check_domains("\"count\": 8, \"device\": \"TPU-v5p\", \"devices\": 4", 1, 2240); /* a slice */
    check_domains("\"count\": 5, \"device\": \"B200-SXM-180GB\", \"devices\": 4", 5, 1);
    check_domains("\"count\": 5, \"device\": \"V100-SXM3-32GB\", \"devices\": 8", 5, 1);
    check_domains("\"count\": 6, \"device\": \"H100-SXM-80GB\", \"devices\": 8, "
                  "\"domain_nodes\": 3",
                  2, 3);
}

/* The last node of a rack and the first of the next are joined by the network alone; a CPU is on
 * no device link; another group starts a domain of its own. */
static void paths_of_racks(void **state)
{
    (void)state;
    struct hv_cluster_doc d =
        build(HEAD "\"nodes\": [{\"name\": \"g\", \"count\": 36, \"devices\": "
                   "[{\"device\": \"GB200-NVL72\", \"count\": 4}, {\"device\": \"CPU-Grace\"}],"
                   " \"nic\": {\"bandwidth_GBps\": 200, \"count\": 4}},"
                   " {\"name\": \"h\", \"count\": 2, \"device\": \"GB200-NVL72\", \"devices\": 4,"
                   " \"nic\": {\"bandwidth_GBps\": 100, \"count\": 16}}]}");
    const struct hv_cluster *c = d.cluster;
    check_path(c, 0, 3, 900, 3, HV_PATH_NODE);
    check_path(c, 0, 5, 900, 3, HV_PATH_DOMAIN);
    check_path(c, 0, 17 * 5, 900, 3, HV_PATH_DOMAIN);
    check_path(c, 18 * 5, 35 * 5 + 3, 900, 3, HV_PATH_DOMAIN);
    check_path(c, 17 * 5, 18 * 5, 50, 5, HV_PATH_NETWORK); /* one NIC of four */
    check_path(c, 0, 5 + 4, 50, 5, HV_PATH_NETWORK);       /* a CPU */
    check_path(c, 35 * 5, 180, 25, 5, HV_PATH_NETWORK);    /* sixteen NICs for four devices */
    check_path(c, 180, 184, 900, 3, HV_PATH_DOMAIN);
    struct hv_path p = hv_cluster_node_path(c, 0, 1);
    assert_int_equal(p.level, HV_PATH_NETWORK);
    assert_near(p.bytes_per_s, 200e9, 1);
    hv_cluster_doc_free(&d);
}

static void matrix(void **state)
{
    (void)state;
    struct hv_cluster_doc d =
        build(HEAD "\"nodes\": [{\"name\": \"n\", \"count\": 2, \"device\": \"T4-16GB\"}],"
                   "\"network\": {\"matrix_bandwidth_GBps\": [[0, 2], [1, 0]], "
                   "\"matrix_latency_us\": [[0, 10], [30, 0]]}}");
    struct hv_path p = hv_cluster_path(d.cluster, 0, 1), q = hv_cluster_path(d.cluster, 1, 0);
    assert_near(p.bytes_per_s, 2e9, 1);
    assert_near(q.bytes_per_s, 1e9, 1);
    assert_near(p.latency_s, 15e-6, 1e-12);
    assert_near(q.latency_s, 35e-6, 1e-12);
    hv_cluster_doc_free(&d);
}

/* Names of the groups in canonical order, each with a blank behind it. */
static void canonical_is(const char *nodes, const char *want)
{
    char text[1024], names[64] = "";
    (void)snprintf(text, sizeof text, HEAD "\"nodes\": [%s]}", nodes);
    struct hv_cluster_doc d = build(text);
    struct hv_cluster *c = hv_cluster_canonical(d.cluster), *again = hv_cluster_canonical(c);
    hv_cluster_doc_free(&d); /* the order keeps what it needs */
    for (size_t i = 0; i < c->n_groups; i++) {
        size_t n = strlen(names);
        (void)snprintf(names + n, sizeof names - n, "%s ", c->groups[i].name);
    }
    assert_string_equal(names, want);
    assert_ptr_equal(again, c);
    hv_cluster_unref(again);
    hv_cluster_unref(c);
}

static void canonical_order_is_by_hardware(void **state)
{
    (void)state;
    const char t[] = "{\"name\": \"t\", \"count\": 2, \"device\": \"T4-16GB\"}";
    const char a[] = "{\"name\": \"a\", \"device\": \"A100-SXM-80GB\"}";
    const char b[] = "{\"name\": \"b\", \"device\": \"A100-SXM-80GB\", \"domain_nodes\": 1}";
    const char y[] = "{\"name\": \"y\", \"device\": \"H100-SXM-80GB\", \"zone\": \"slow\"}";
    const char z[] = "{\"name\": \"z\", \"count\": 9, \"device\": \"A100-SXM-80GB\", "
                     "\"zone\": \"fast\"}";
    char nodes[512];
    (void)snprintf(nodes, sizeof nodes, "%s, %s", t, a);
    canonical_is(nodes, "a t ");
    /* equal nodes keep the order of the file; a domain of one node is none */
    (void)snprintf(nodes, sizeof nodes, "%s, %s, %s", t, a, b);
    canonical_is(nodes, "a b t ");
    (void)snprintf(nodes, sizeof nodes, "%s, %s, %s", b, t, a);
    canonical_is(nodes, "b a t ");
    /* the zone with the larger sum of peaks first, though its devices are slower */
    (void)snprintf(nodes, sizeof nodes, "%s, %s", y, z);
    canonical_is(nodes, "z y ");
}

static void canonical_order_moves_the_matrix(void **state)
{
    (void)state;
    struct hv_cluster_doc d = build(
        HEAD "\"nodes\": [{\"name\": \"t\", \"count\": 2, \"device\": \"T4-16GB\"}, {\"name\": "
             "\"a\", \"device\": \"A100-SXM-80GB\"}], \"network\": "
             "{\"matrix_bandwidth_GBps\": [[0, 1, 2], [3, 0, 4], [5, 6, 0]]}}");
    struct hv_cluster *c = hv_cluster_canonical(d.cluster);
    const double want[] = {0, 5, 6, 2, 0, 1, 4, 3, 0};
    hv_cluster_doc_free(&d);
    for (size_t i = 0; i < HV_COUNT(want); i++) {
        if (i % 4 != 0) {
            assert_near(c->matrix_bytes_per_s[i], want[i] * HV_GBPS, 1);
        }
    }
    hv_cluster_unref(c);
}

/* Does the network of these nodes and links tell groups 0 and 1 apart? */
static bool network_alike(const char *network)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%s%s}",
                   HEAD
                   "\"nodes\": ["
                   "{\"name\": \"n\", \"count\": 2, \"device\": \"T4-16GB\", \"zone\": \"x\"},"
                   "{\"name\": \"m\", \"device\": \"T4-16GB\", \"zone\": \"x\"},"
                   "{\"name\": \"far\", \"device\": \"T4-16GB\", \"zone\": \"y\"}], \"network\": ",
                   network);
    struct hv_cluster_doc d = build(text);
    const struct hv_node_group *g = d.cluster->groups;
    bool alike = hv_cluster_network_alike(d.cluster, &g[0], &g[1]);
    assert_int_equal(alike, hv_cluster_network_alike(d.cluster, &g[1], &g[0]));
    hv_cluster_doc_free(&d);
    return alike;
}

static void networks_that_tell_groups_apart(void **state)
{
    (void)state;
    assert_true(network_alike("{}"));
    assert_true(network_alike("{\"links\": [{\"between\": [\"x\", \"y\"], "
                              "\"bandwidth_GBps\": 1}]}"));
    assert_true(network_alike("{\"links\": [{\"between\": [\"x\", \"far[0]\"], "
                              "\"bandwidth_GBps\": 1}]}"));
    assert_false(network_alike("{\"links\": [{\"between\": [\"m\", \"y\"], "
                               "\"bandwidth_GBps\": 1}]}"));
    assert_false(network_alike("{\"links\": [{\"between\": [\"y\", \"n[1]\"], "
                               "\"bandwidth_GBps\": 1}]}"));
    assert_true(network_alike("{\"matrix_bandwidth_GBps\": "
                              "[[0, 3, 3, 1], [3, 0, 3, 1], [3, 3, 0, 1], [2, 2, 2, 0]]}"));
    assert_false(network_alike("{\"matrix_bandwidth_GBps\": " /* n and m are farther apart */
                               "[[0, 3, 2, 1], [3, 0, 2, 1], [2, 2, 0, 1], [2, 2, 2, 0]]}"));
    assert_false(network_alike("{\"matrix_latency_us\": " /* from m to the others */
                               "[[0, 3, 3, 1], [3, 0, 3, 1], [3, 3, 0, 4], [2, 2, 2, 0]]}"));
    assert_false(network_alike("{\"matrix_latency_us\": " /* from the others to m */
                               "[[0, 3, 3, 1], [3, 0, 3, 1], [3, 3, 0, 1], [2, 2, 4, 0]]}"));
}

static void resolve_is(const struct hv_cluster *c, const char *address, size_t n,
                       const uint32_t *want)
{
    struct hv_arena a = {0};
    struct hv_err e = {0};
    uint32_t *ids = NULL;
    size_t got = 0;
    if (hv_address_resolve(c, address, &a, &ids, &got, &e)) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(got, n);
    assert_memory_equal(ids, want, n * sizeof *ids);
    hv_arena_free(&a);
}

static void addresses(void **state)
{
    (void)state;
    struct hv_cluster_doc d = build(mixed);
    const struct hv_cluster *c = d.cluster;
    resolve_is(c, "a[0].0-2", 3, (const uint32_t[]){0, 1, 2});
    resolve_is(c, "v[0,2].[3,0]", 4, (const uint32_t[]){19, 16, 27, 24});
    resolve_is(c, "t", 1, (const uint32_t[]){28});
    resolve_is(c, "t, v[1].0", 2, (const uint32_t[]){28, 20});
    resolve_is(c, "v[*].1", 3, (const uint32_t[]){17, 21, 25});
    struct hv_arena a = {0};
    const char *const bad[] = {"",       "b[0]",     "a[2]",  "a[0].8", "a[0", "a[].0",
                               "a[1-0]", "a[0].",    "a.0-",  "a[0]x",  "a,,", "a[99999999999]",
                               "[0]",    "a[0].1.2", "a[0]]", "a[0].-1"};
    for (size_t i = 0; i < HV_COUNT(bad); i++) {
        struct hv_err e = {0};
        uint32_t *ids = NULL;
        size_t n = 0;
        assert_int_equal(hv_address_resolve(c, bad[i], &a, &ids, &n, &e), HV_EINPUT);
        assert_true(e.text[0] != 0 && n == 0);
    }
    hv_arena_free(&a);
    struct hv_str s = {0};
    uint32_t all[16];
    for (uint32_t i = 0; i < 16; i++) {
        all[i] = i;
    }
    hv_address_format(c, all, 16, ",", &s);
    assert_string_equal(hv_str_cstr(&s), "a[0-1].*");
    hv_str_clear(&s);
    hv_address_format(c, (const uint32_t[]){16, 17, 20, 21, 28, 3}, 6, " ", &s);
    assert_string_equal(hv_str_cstr(&s), "v[0-1].0-1 t[0].0 a[0].3");
    hv_str_free(&s);
    hv_cluster_doc_free(&d);
}

static void format_is_the_inverse(void **state)
{
    (void)state;
    struct hv_cluster_doc d = build(mixed);
    struct hv_rng r;
    hv_rng_seed(&r, 7);
    for (int round = 0; round < 3000; round++) {
        uint32_t ids[48];
        size_t n = 1 + (size_t)hv_rng_below(&r, 40);
        for (size_t i = 0; i < n; i++) { /* mostly runs, sometimes jumps */
            bool jump = i == 0 || hv_rng_below(&r, 6) == 0;
            ids[i] = jump ? (uint32_t)hv_rng_below(&r, d.cluster->n_devices)
                          : (ids[i - 1] + 1) % d.cluster->n_devices;
        }
        struct hv_str s = {0};
        hv_address_format(d.cluster, ids, n, ",", &s);
        resolve_is(d.cluster, hv_str_cstr(&s), n, ids);
        hv_str_free(&s);
    }
    hv_cluster_doc_free(&d);
}

static void prices(void **state)
{
    (void)state;
    struct hv_cluster_doc d = build(HEAD "\"nodes\": [{\"name\": \"a\", \"count\": 2, \"device\": "
                                         "\"V100-SXM2-16GB\", \"devices\": 8},"
                                         "{\"name\": \"b\", \"device\": \"T4-16GB\", "
                                         "\"price_usd_per_hour\": 3, \"spot_usd_per_hour\": 1}]}");
    /* catalogue: lowest V100 price 0.79 (Lambda) */
    assert_near(hv_node_price_usd_per_h(&d.cluster->groups[0], false), 8 * 0.79, 1e-9);
    assert_near(hv_node_price_usd_per_h(&d.cluster->groups[1], false), 3, 1e-9);
    assert_near(hv_node_price_usd_per_h(&d.cluster->groups[1], true), 1, 1e-9);
    /* Lambda has no spot price: another provider's, which is dearer than 0.79, does not count */
    assert_false(hv_known(hv_node_price_usd_per_h(&d.cluster->groups[0], true)));
    hv_cluster_doc_free(&d);
}

/* Both prices of a node are of one provider that has all its devices, and spot is not dearer. */
static void prices_are_of_one_provider(void **state)
{
    (void)state;
    struct hv_cluster_doc d = build(
        HEAD
        "\"devices\": {\"x\": {\"base\": \"T4-16GB\", \"prices\": ["
        "{\"provider\": \"P\", \"usd_per_hour\": 3, \"spot_usd_per_hour\": 2},"
        "{\"provider\": \"Q\", \"usd_per_hour\": 1, \"spot_usd_per_hour\": 4}]},"
        "\"y\": {\"base\": \"T4-16GB\", \"prices\": [{\"provider\": \"P\", \"usd_per_hour\": 5, "
        "\"spot_usd_per_hour\": 1}]}, \"z\": {\"base\": \"T4-16GB\", \"prices\": [{\"provider\": "
        "\"R\", "
        "\"usd_per_hour\": 1}]}}, \"nodes\": [{\"name\": \"a\", \"device\": \"x\"},"
        "{\"name\": \"b\", \"devices\": [{\"device\": \"x\", \"count\": 2}, {\"device\": \"y\", "
        "\"count\": 1}]}, {\"name\": \"c\", \"devices\": [{\"device\": \"x\", \"count\": 1}, "
        "{\"device\": \"z\", \"count\": 1}]}]}");
    const struct hv_node_group *g = d.cluster->groups;
    assert_near(hv_node_price_usd_per_h(&g[0], false), 1, 1e-9);
    assert_false(hv_known(hv_node_price_usd_per_h(&g[0], true))); /* 4 is more than 1 */
    assert_near(hv_node_price_usd_per_h(&g[1], false), 2 * 3 + 5, 1e-9);
    assert_near(hv_node_price_usd_per_h(&g[1], true), 2 * 2 + 1, 1e-9);
    assert_false(hv_known(hv_node_price_usd_per_h(&g[2], false)));
    hv_cluster_doc_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(paths),
        cmocka_unit_test(domains),
        cmocka_unit_test(shared_roots),
        cmocka_unit_test(paths_of_racks),
        cmocka_unit_test(cards_below_10_gbit_are_one_that_all_share),
        cmocka_unit_test(inside_a_node),
        cmocka_unit_test(matrix),
        cmocka_unit_test(canonical_order_is_by_hardware),
        cmocka_unit_test(canonical_order_moves_the_matrix),
        cmocka_unit_test(networks_that_tell_groups_apart),
        cmocka_unit_test(addresses),
        cmocka_unit_test(format_is_the_inverse),
        cmocka_unit_test(prices),
        cmocka_unit_test(prices_are_of_one_provider),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
