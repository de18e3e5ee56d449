/* Link domains of several nodes (NVL72 racks): collectives, hops and remembered prices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/cost/device/link_curve.h"
#include "solver/cost/network/memo.h"
#include "tests/cost_fixture.h"

/* GB200-NVL72 as in share/devices: NVLink5, 900 GB/s to 72. */
static const struct hv_device_kind kind_gb200 = {
    .name = "GB200-NVL72",
    .fabric = "nvidia",
    .memory_bytes = 186 * HV_GIB,
    .memory_bytes_per_s = 8000e9,
    .flops_per_s = {80e12, 1250e12, 2500e12, 2500e12, 5000e12, 5000e12, 10000e12},
    .matmul_flops_per_s = 1822e12,
    .link_kind = "NVLink5",
    .link_bytes_per_s = 900e9,
    .link_domain = 72,
    .pcie_bytes_per_s = 63e9};

/* Two racks of 18 nodes of 4 and a half one: 45 nodes, 180 devices. 200 GB/s of NICs per node. */
static struct hv_cluster *racks(uint32_t domain_nodes)
{
    struct hv_cluster *c = hv_xcalloc(1, sizeof *c);
    c->refs = 1;
    c->groups = hv_arena_new(&c->arena, struct hv_node_group, 1);
    c->network_bytes_per_s = c->network_latency_s = HV_UNKNOWN;
    fixture_group(c, "n", 45, &kind_gb200);
    struct hv_node_group *g = c->groups;
    g->slots->count = g->n_nics = 4;
    g->intra = (struct hv_link){HV_LINK_NVLINK, 900e9, 3e-6, false};
    g->nic.bytes_per_s = 200e9;
    g->domain_nodes = domain_nodes;
    assert_int_equal(hv_cluster_finish(c, NULL), HV_OK);
    return c;
}

static struct hv_collective_cost cost(const struct hv_cluster *c, enum hv_collective op,
                                      enum hv_sync_algorithm a, uint32_t first, uint32_t n)
{
    uint32_t ids[180];
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = first + i;
    }
    struct hv_collective_query q = {op, 1e9, ids, n, a, 1, 1, NULL, false};
    return hv_cost_collective(c, &q, NULL);
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * want)) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

/* Inside a rack nothing goes over the NICs, and 64 GPUs exchange at the rate of the link. */
static void inside_a_rack(void **state)
{
    struct hv_cluster *c = racks(18), *off = racks(1);
    (void)state;
    for (int op = 0; op < HV_P2P; op++) {
        struct hv_collective_cost r = cost(c, (enum hv_collective)op, HV_ALGO_AUTO, 72, 64);
        assert_true(r.network_bytes == 0 && r.node_bytes > 0);
        struct hv_collective_cost o = cost(off, (enum hv_collective)op, HV_ALGO_AUTO, 72, 64);
        assert_true(o.network_bytes > 0 && o.time_s > 2 * r.time_s);
    }
    double share = hv_link_share(hv_link_curve(HV_CURVE_NVLINK5, HV_USE_ALL_TO_ALL), 1e9 / 8);
    struct hv_collective_cost r = cost(c, HV_ALL_TO_ALL, HV_ALGO_AUTO, 0, 64);
    near(r.time_s - r.alpha_s, 63.0 / 64 * 1e9 / (900e9 * share));
    hv_cluster_unref(c);
    hv_cluster_unref(off);
}

/* coreweave/nccl-tests pull request 43: all-reduce over the 72 GPUs of a rack, microseconds. */
static void all_reduce_of_a_rack(void **state)
{
    static const double measured[][2] = {
        {536870912, 1806.7}, {1073741824, 3108.8}, {2147483648, 5589.1}, {4294967296, 10094}};
    struct hv_cluster *c = racks(18);
    uint32_t ids[72];
    (void)state;
    for (uint32_t i = 0; i < 72; i++) {
        ids[i] = i;
    }
    for (size_t i = 0; i < HV_COUNT(measured); i++) {
        struct hv_collective_query q = {HV_ALL_REDUCE, measured[i][0], ids, 72, HV_ALGO_NVLS, 1, 1,
                                        NULL,          false};
        double us = 1e6 * hv_cost_collective(c, &q, NULL).time_s;
        if (!(fabs(us / measured[i][1] - 1) < 0.03)) {
            fail_msg("%.0f bytes: %.0f us, measured %.0f", measured[i][0], us, measured[i][1]);
        }
    }
    hv_cluster_unref(c);
}

/* A boundary between two racks is a network: eight devices on either side of it are not eight
 * devices of one rack. The house is the rack, so its nodes' NICs work together. */
static void across_racks(void **state)
{
    struct hv_cluster *c = racks(18);
    (void)state;
    struct hv_collective_cost in = cost(c, HV_ALL_GATHER, HV_ALGO_AUTO, 64, 8);
    struct hv_collective_cost out = cost(c, HV_ALL_GATHER, HV_ALGO_AUTO, 68, 8);
    assert_true(in.network_bytes == 0 && out.network_bytes > 0 && out.time_s > 2 * in.time_s);
    /* two whole racks: two houses of 72 with 18 nodes each */
    struct hv_collective_cost two = cost(c, HV_ALL_GATHER, HV_ALGO_HIERARCHICAL, 0, 144);
    const struct hv_link_curve *ring = hv_link_curve(HV_CURVE_NVLINK5, HV_USE_RING);
    const struct hv_link_curve *net = hv_link_curve(HV_CURVE_NETWORK, HV_USE_RING);
    double inside = 71.0 / 72 * 1e9 / (900e9 * hv_link_share(ring, 1e9 / 9));
    double across = 0.5 * 1e9 / (18 * 200e9 * hv_link_share(net, 1e9));
    near(two.time_s - two.alpha_s, inside + across);
    near(two.network_bytes, 0.5 * 1e9 / 18);
    hv_cluster_unref(c);
}

static void hops(void **state)
{
    struct hv_cluster *c = racks(18);
    const uint32_t near_by[] = {0, 1, 2, 3}, same_rack[] = {68, 69, 70, 71},
                   next_rack[] = {72, 73, 74, 75};
    (void)state;
    double in = hv_cost_hop(c, near_by, 4, same_rack, 4, 400e6, NULL);
    double out = hv_cost_hop(c, near_by, 4, next_rack, 4, 400e6, NULL);
    const struct hv_link_curve *p2p = hv_link_curve(HV_CURVE_NVLINK5, HV_USE_P2P);
    near(in, p2p->start_s + 3e-6 + 100e6 / (900e9 * hv_link_share(p2p, 100e6)));
    assert_true(out > 10 * in);
    hv_cluster_unref(c);
}

/* Prices are remembered by the pattern of nodes and racks: the same nodes apart, another boundary
 * between them. */
static void remembered(void **state)
{
    struct hv_cluster *c = racks(18), *off = racks(1);
    uint32_t first[8], same[8], other[8];
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        first[i] = i;
        same[i] = 72 + i;
        other[i] = 68 + i;
    }
    assert_true(hv__signature(c, first, 8) == hv__signature(c, same, 8));
    assert_true(hv__signature(c, first, 8) != hv__signature(c, other, 8));
    assert_true(hv__signature(off, first, 8) == hv__signature(off, other, 8));
    hv_cluster_unref(c);
    hv_cluster_unref(off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inside_a_rack), cmocka_unit_test(all_reduce_of_a_rack),
        cmocka_unit_test(across_racks),  cmocka_unit_test(hops),
        cmocka_unit_test(remembered),
    };
    return cmocka_run_group_tests_name("cost_domain", tests, NULL, NULL);
}
