/* Collectives and hops against the closed forms on a toy cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/cost/device/link_curve.h"
#include "tests/cost_fixture.h"

static double house_rate(enum hv_link_use use, double bytes)
{
    return 300e9 * hv_link_share(hv_link_curve(HV_CURVE_NVLINK3, use), bytes);
}

static double net_rate(enum hv_link_use use, double bytes)
{
    return 100e9 * hv_link_share(hv_link_curve(HV_CURVE_NETWORK, use), bytes);
}

static double start_s(enum hv_link_class c, enum hv_link_use use)
{
    return hv_link_curve(c, use)->start_s;
}

static int setup(void **state)
{
    *state = fixture_cost_cluster();
    return 0;
}

static int teardown(void **state)
{
    hv_cluster_unref(*state);
    return 0;
}

static double price(struct hv_cluster *c, enum hv_collective op, enum hv_sync_algorithm a,
                    double bytes, uint32_t first, uint32_t n, uint32_t step)
{
    uint32_t ids[256];
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = first + i * step;
    }
    struct hv_collective_query q = {op, bytes, ids, n, a, 1, 1, NULL, false};
    return hv_cost_collective(c, &q, NULL).time_s;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * want)) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

/* Steps inside a node cost a fifth of the link's latency, see collective.c. */
static const double step = 0.2 * 3e-6;

/* 2(n-1)α + 2(n-1)/n·S/B and its halves (Thakur et al. 2005). */
static void test_ring(void **state)
{
    double s = 64e6, bw = house_rate(HV_USE_RING, s);
    double start = start_s(HV_CURVE_NVLINK3, HV_USE_RING);
    double net_start = start_s(HV_CURVE_NETWORK, HV_USE_RING);
    near(price(*state, HV_ALL_REDUCE, HV_ALGO_RING, s, 0, 8, 1),
         start + 14 * step + 14.0 / 8 * s / bw);
    near(price(*state, HV_ALL_GATHER, HV_ALGO_RING, s, 0, 4, 1),
         start + 3 * step + 3.0 / 4 * s / bw);
    near(price(*state, HV_REDUCE_SCATTER, HV_ALGO_AUTO, s, 0, 4, 1),
         start + 3 * step + 3.0 / 4 * s / bw);
    /* one member per node has one of the node's eight NICs */
    near(price(*state, HV_ALL_REDUCE, HV_ALGO_RING, s, 0, 4, 8),
         net_start + 6 * 5e-6 + 6.0 / 4 * s / (net_rate(HV_USE_RING, s) / 8));
    /* two have two, however the group is written */
    uint32_t ids[] = {9, 0, 8, 1};
    struct hv_collective_query q = {HV_ALL_GATHER, s, ids, 4, HV_ALGO_RING, 1, 1, NULL, false};
    double both = fmax(start, net_start);
    near(hv_cost_collective(*state, &q, NULL).time_s,
         both + step + 2 * 5e-6 + 3.0 / 4 * s / (net_rate(HV_USE_RING, s) / 4));
}

/* Reduce-scatter in the node, ring of nodes on eight rails that share the NICs, all-gather in the
 * node. */
static void test_hierarchical(void **state)
{
    double s = 512e6, start = start_s(HV_CURVE_NVLINK3, HV_USE_RING);
    double inside = 7 * step + 7.0 / 8 * s / house_rate(HV_USE_RING, s);
    double across = 3 * 5e-6 + 3.0 / 4 * s / net_rate(HV_USE_RING, s);
    near(price(*state, HV_ALL_REDUCE, HV_ALGO_HIERARCHICAL, s, 0, 32, 1),
         start + 2 * (inside + across));
}

/* HFReduce: the slowest of its steps, which chunks keep busy at once, not their sum. Eight GPUs
 * pass host memory 24 times; alone in its node each meets the network, where a node of two trees
 * passes all twice each way, in 2 log2 k steps. */
static void test_in_host_memory(void **state)
{
    double s = 1e9, stage = 2 * 20e-6, start = start_s(HV_CURVE_NETWORK, HV_USE_RING);
    near(price(*state, HV_ALL_REDUCE, HV_ALGO_HFREDUCE, s, 0, 8, 1),
         stage + 24 * s / (0.8 * 200e9));
    near(price(*state, HV_ALL_REDUCE, HV_ALGO_HFREDUCE, s, 0, 1 + 1, 1),
         stage + s / (0.8 * 31.5e9)); /* two: the copies are slower than the memory */
    near(price(*state, HV_ALL_REDUCE, HV_ALGO_HFREDUCE, s, 0, 4, 8),
         start + stage + 4 * 5e-6 + 2 * s / (net_rate(HV_USE_RING, s) / 8));
}

/* The automatic choice: trees for few bytes over many devices, else the fastest of all. */
static void test_choice(void **state)
{
    uint32_t ids[128];
    for (uint32_t i = 0; i < 128; i++) {
        ids[i] = i;
    }
    struct hv_collective_query q = {HV_ALL_REDUCE, 1e3, ids, 128, HV_ALGO_AUTO, 1, 1, NULL, false};
    assert_int_equal(hv_cost_collective(*state, &q, NULL).algorithm, HV_ALGO_TREE);
    for (double bytes = 1e3; bytes < 1e11; bytes *= 10) {
        for (q.n = 2; q.n <= 128; q.n *= 4) {
            q.bytes = bytes;
            q.algorithm = HV_ALGO_AUTO;
            double best = hv_cost_collective(*state, &q, NULL).time_s;
            for (int a = HV_ALGO_RING; a <= HV_ALGO_NVLS; a++) {
                q.algorithm = (enum hv_sync_algorithm)a;
                assert_true(best <= hv_cost_collective(*state, &q, NULL).time_s);
            }
        }
    }
}

/* Hopper reduces in the switch by itself, Ampere does not, and no switch reaches a second node. */
static void test_in_switch(void **state)
{
    struct hv_device_kind hopper = kind_h100;
    struct hv_cluster *c = *state;
    uint32_t ids[16];
    for (uint32_t i = 0; i < 16; i++) {
        ids[i] = 128 + i;
    }
    hopper.link_kind = "NVLink4";
    struct hv_slots *slots = c->groups[1].slots;
    const struct hv_device_kind *before = slots->kind;
    slots->kind = &hopper;
    struct hv_collective_query q = {HV_ALL_REDUCE, 1e9, ids, 8, HV_ALGO_AUTO, 1, 1, NULL, false};
    struct hv_collective_cost r = hv_cost_collective(c, &q, NULL);
    assert_int_equal(r.algorithm, HV_ALGO_NVLS);
    near(r.node_bytes, 1e9 * (1 + 1.0 / 8));
    q.n = 16;
    assert_int_not_equal(hv_cost_collective(c, &q, NULL).algorithm, HV_ALGO_NVLS);
    slots->kind = before;
    q.n = 8;
    assert_int_not_equal(hv_cost_collective(c, &q, NULL).algorithm, HV_ALGO_NVLS);
}

static void test_all_to_all(void **state)
{
    double s = 8e6, start = start_s(HV_CURVE_NVLINK3, HV_USE_ALL_TO_ALL);
    double net_start = start_s(HV_CURVE_NETWORK, HV_USE_ALL_TO_ALL);
    near(price(*state, HV_ALL_TO_ALL, HV_ALGO_AUTO, s, 0, 8, 1),
         start + 7 * step + 7.0 / 8 * s / house_rate(HV_USE_ALL_TO_ALL, s));
    /* 16 members in two nodes: each node sends 8 members' halves through its NICs; more members,
     * smaller messages */
    near(price(*state, HV_ALL_TO_ALL, HV_ALGO_RING, s, 0, 16, 1),
         net_start + 7 * step + 5e-6 + 0.2 * 7 * 5e-6 +
             8 * 0.5 * s / net_rate(HV_USE_ALL_TO_ALL, s / 2));
    /* two hops: one message per node and rail */
    near(price(*state, HV_ALL_TO_ALL, HV_ALGO_HIERARCHICAL, s, 0, 16, 1),
         net_start + 7 * step + 5e-6 + 8 * 0.5 * s / net_rate(HV_USE_ALL_TO_ALL, s));
    assert_true(price(*state, HV_ALL_TO_ALL, HV_ALGO_AUTO, s, 0, 128, 1) <=
                fmin(price(*state, HV_ALL_TO_ALL, HV_ALGO_RING, s, 0, 128, 1),
                     price(*state, HV_ALL_TO_ALL, HV_ALGO_HIERARCHICAL, s, 0, 128, 1)));
}

/* One flow has the link, or one NIC of eight. */
static void test_p2p(void **state)
{
    double s = 8e6;
    near(price(*state, HV_P2P, HV_ALGO_AUTO, s, 0, 2, 1),
         start_s(HV_CURVE_NVLINK3, HV_USE_P2P) + 3e-6 + s / house_rate(HV_USE_P2P, s));
    near(price(*state, HV_P2P, HV_ALGO_AUTO, s, 0, 2, 8),
         start_s(HV_CURVE_NETWORK, HV_USE_P2P) + 5e-6 + s / (net_rate(HV_USE_P2P, s) / 8));
}

/* Groups with one member per node: eight of them share eight NICs, sixteen halve them. */
static void test_together_shares_the_nics(void **state)
{
    const uint32_t ids[] = {0, 8, 16};
    struct hv_collective_query q = {HV_ALL_REDUCE, 1e9, ids, 3, HV_ALGO_RING, 1, 1, NULL, false};
    struct hv_collective_cost alone = hv_cost_collective(*state, &q, NULL);
    q.together = 8;
    struct hv_collective_cost all = hv_cost_collective(*state, &q, NULL);
    near(all.time_s, alone.time_s);
    near(all.network_bytes, 8 * 2 * 2.0 / 3 * 1e9);
    q.together = 16;
    all = hv_cost_collective(*state, &q, NULL);
    near(all.time_s - all.alpha_s, 2 * (alone.time_s - alone.alpha_s));
}

static struct hv_collective_cost cost(struct hv_cluster *c, enum hv_collective op,
                                      enum hv_sync_algorithm a, double bytes, uint32_t n)
{
    uint32_t ids[64];
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = i;
    }
    struct hv_collective_query q = {op, bytes, ids, n, a, 1, 1, NULL, false};
    return hv_cost_collective(c, &q, NULL);
}

/* What is sent, per member inside a node and per node between nodes: exact for every form. */
static void test_volumes(void **state)
{
    const double s = 720e6;
    const struct {
        enum hv_collective op;
        enum hv_sync_algorithm a;
        uint32_t n;
        double inside, between, messages;
    } rows[] = {
        {HV_ALL_REDUCE, HV_ALGO_RING, 8, 2 * 7.0 / 8, 0, 14},
        {HV_ALL_GATHER, HV_ALGO_RING, 8, 7.0 / 8, 0, 7},
        {HV_REDUCE_SCATTER, HV_ALGO_RING, 6, 5.0 / 6, 0, 5},
        {HV_ALL_REDUCE, HV_ALGO_TREE, 8, 2 * 7.0 / 8, 0, 6},
        /* 32 in 4 nodes: one member of eight sends to the next node */
        {HV_ALL_REDUCE, HV_ALGO_RING, 32, 7.0 / 8 * 2 * 31 / 32, 2 * 31.0 / 32, 62},
        {HV_ALL_REDUCE, HV_ALGO_TREE, 32, 2 * 28.0 / 32, 2 * 3.0 / 4, 10},
        {HV_ALL_REDUCE, HV_ALGO_HIERARCHICAL, 32, 2 * 7.0 / 8, 2 * 3.0 / 4, 20},
        {HV_REDUCE_SCATTER, HV_ALGO_HIERARCHICAL, 32, 7.0 / 8, 3.0 / 4, 10},
        {HV_ALL_TO_ALL, HV_ALGO_RING, 8, 7.0 / 8, 0, 7},
        {HV_ALL_TO_ALL, HV_ALGO_RING, 32, 7.0 / 32, 8 * 24.0 / 32, 31},
        {HV_ALL_TO_ALL, HV_ALGO_HIERARCHICAL, 32, 7.0 / 8, 8 * 24.0 / 32, 10},
        {HV_BROADCAST, HV_ALGO_AUTO, 8, 7.0 / 8, 0, 3},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_collective_cost r = cost(*state, rows[i].op, rows[i].a, s, rows[i].n);
        near(r.node_bytes + 1, rows[i].inside * s + 1);
        near(r.network_bytes + 1, rows[i].between * s + 1);
        near(r.messages, rows[i].messages);
        assert_true(r.alpha_s > 0 && r.alpha_s < r.time_s);
    }
}

/* Tokens that go to 8 experts at random over 4 nodes meet 4(1 - (3/4)^8) of them: two hops send
 * each node one copy. */
static void test_copies(void **state)
{
    uint32_t ids[32];
    for (uint32_t i = 0; i < 32; i++) {
        ids[i] = i;
    }
    struct hv_collective_query q = {HV_ALL_TO_ALL, 1e9,  ids, 32, HV_ALGO_HIERARCHICAL, 1, 8,
                                    NULL,          false};
    double all = 8 * 24.0 / 32 * 1e9, met = 4 * (1 - pow(0.75, 8));
    near(hv_cost_collective(*state, &q, NULL).network_bytes, all * met / 8);
    q.algorithm = HV_ALGO_RING;
    near(hv_cost_collective(*state, &q, NULL).network_bytes, all);
}

/* A mesh gives a pair its own link and a group of m the links of m - 1 peers. */
static void test_mesh(void **state)
{
    struct hv_cluster *c = *state;
    struct hv_link before = c->groups[3].intra;
    c->groups[3].intra = (struct hv_link){HV_LINK_XGMI, 448e9, 3e-6, false};
    const uint32_t ids[] = {256, 257, 258, 259, 260, 261, 262, 263};
    double s = 8e9, start = start_s(HV_CURVE_MESH, HV_USE_RING);
    double share = hv_link_share(hv_link_curve(HV_CURVE_MESH, HV_USE_RING), s);
    for (size_t n = 2; n <= 8; n += 3) {
        struct hv_collective_query q = {HV_ALL_GATHER, s, ids, n, HV_ALGO_RING, 1, 1, NULL, false};
        double m = (double)n;
        near(hv_cost_collective(c, &q, NULL).time_s,
             start + (m - 1) * step + (m - 1) / m * s / (64e9 * (m - 1) * share));
    }
    c->groups[3].intra = before;
}

static void test_edges(void **state)
{
    for (int op = 0; op < HV_COLLECTIVE_N; op++) {
        double before = 0;
        assert_true(price(*state, (enum hv_collective)op, HV_ALGO_AUTO, 1e6, 3, 1, 1) == 0.0);
        assert_true(price(*state, (enum hv_collective)op, HV_ALGO_AUTO, 0, 0, 8, 1) == 0.0);
        for (double bytes = 1; bytes < 1e11; bytes *= 7) {
            double t = price(*state, (enum hv_collective)op, HV_ALGO_AUTO, bytes, 0, 20, 1);
            assert_true(t >= before && t > 0);
            before = t;
        }
    }
    /* collectives stay in one fabric, point to point goes through host memory */
    assert_true(isnan(price(*state, HV_ALL_REDUCE, HV_ALGO_AUTO, 1e6, 255, 2, 1)));
    assert_true(price(*state, HV_P2P, HV_ALGO_AUTO, 1e6, 255, 2, 1) >
                price(*state, HV_P2P, HV_ALGO_AUTO, 1e6, 247, 2, 1));
}

static void test_why(void **state)
{
    struct hv_arena arena = {0};
    struct hv_why why = {.arena = &arena};
    const uint32_t ids[] = {0, 1};
    struct hv_collective_query q = {HV_ALL_REDUCE, 1e6, ids, 2, HV_ALGO_AUTO, 1, 1, NULL, false};
    struct hv_collective_cost r = hv_cost_collective(*state, &q, &why);
    assert_int_equal(why.n, 1);
    assert_true(why.terms[0].value == r.time_s);
    assert_string_equal(why.terms[0].name, "all_reduce");
    assert_non_null(strstr(why.terms[0].text, "NVLink3 ring"));
    assert_non_null(strstr(why.terms[0].text, "1e+06 bytes"));
    assert_non_null(strstr(why.terms[0].text, "GB/s"));
    assert_non_null(strstr(why.terms[0].text, "fitted: vidur"));
    hv_arena_free(&arena);
}

/* Eight flows between two nodes have a NIC each; inside a node each has its own link. */
static void test_hop(void **state)
{
    uint32_t ids[24];
    for (uint32_t i = 0; i < 24; i++) {
        ids[i] = i;
    }
    double net = start_s(HV_CURVE_NETWORK, HV_USE_P2P) + 5e-6;
    near(hv_cost_hop(*state, ids, 8, ids + 8, 8, 80e6, NULL),
         net + 10e6 / (net_rate(HV_USE_P2P, 10e6) / 8));
    near(hv_cost_hop(*state, ids, 4, ids + 4, 4, 80e6, NULL),
         start_s(HV_CURVE_NVLINK3, HV_USE_P2P) + 3e-6 + 20e6 / house_rate(HV_USE_P2P, 20e6));
    assert_true(hv_cost_hop(*state, ids, 8, ids, 8, 80e6, NULL) == 0.0);
    /* sixteen flows out of eight devices: the sender's NICs carry everything */
    near(hv_cost_hop(*state, ids, 8, ids + 8, 16, 8e9, NULL),
         net + 8e9 / net_rate(HV_USE_ALL_TO_ALL, 8e9));
    assert_true(hv_cost_hop(*state, ids, 8, ids + 8, 8, 1, NULL) > 0);
}

/* Many flows that have nothing to share but their sides take as long as the slowest of them would
 * by itself, whichever devices they join in whatever order. */
static void test_hop_is_its_slowest_flow(void **state)
{
    enum { MOST = 40 };
    struct hv_cluster *c = *state;
    struct hv_rng r;
    hv_rng_seed(&r, 21);
    for (int i = 0; i < 400; i++) {
        uint32_t ids[2][MOST];
        size_t n[2];
        c->groups[1].domain_nodes = i % 2 ? 4 : 0;
        for (int side = 0; side < 2; side++) {
            n[side] = 1 + hv_rng_below(&r, MOST);
            uint32_t rise = (uint32_t)hv_rng_below(&r, 3), at = (uint32_t)hv_rng_below(&r, 256);
            for (size_t k = 0; k < n[side]; k++) { /* rising, or anywhere */
                ids[side][k] =
                    rise ? (at + rise * (uint32_t)k) % 264 : (uint32_t)hv_rng_below(&r, 264);
            }
        }
        size_t flows = n[0] > n[1] ? n[0] : n[1], n_uses = 0, n_same = 0;
        struct hv_wire_use uses[4 * MOST + 1], same[4 * MOST + 1];
        const struct hv_hop_query q = {ids[0], ids[1], n[0], n[1], 64e6};
        struct hv_hop_cost h = hv_cost_hop_parts(c, &q, uses, &n_uses, NULL);
        double alone_s = 0, latency_s = 0;
        for (size_t k = 0; k < flows; k++) {
            uint32_t a = ids[0][k * n[0] / flows], b = ids[1][k * n[1] / flows];
            const struct hv_hop_query one = {&a, &b, 1, 1, 64e6 / (double)flows};
            struct hv_hop_cost x = hv_cost_hop_parts(c, &one, same, &n_same, NULL);
            alone_s = fmax(alone_s, x.alone_s);
            latency_s = fmax(latency_s, x.latency_s);
        }
        assert_true(h.alone_s == alone_s && h.latency_s == latency_s);
        n_same = hv_cost_hop_uses(c, &q, same);
        assert_int_equal(n_same, n_uses);
        assert_memory_equal(same, uses, n_uses * sizeof *uses);
    }
    c->groups[1].domain_nodes = 0;
}

/* A link between two groups is one element: more nodes on both sides do not make it faster. */
static void test_hop_over_a_named_link(void **state)
{
    struct hv_cluster *c = *state;
    struct hv_network_link wan = {"a", "h", 1.25e9, 0.03};
    c->links = &wan;
    c->n_links = 1;
    uint32_t from[32], to[32];
    for (uint32_t i = 0; i < 32; i++) {
        from[i] = i;
        to[i] = 128 + i;
    }
    double one = hv_cost_hop(c, from, 8, to, 8, 8e9, NULL);
    double four = hv_cost_hop(c, from, 32, to, 32, 8e9, NULL);
    double share = hv_link_share(hv_link_curve(HV_CURVE_NETWORK, HV_USE_ALL_TO_ALL), 8e9);
    assert_true(four > 8e9 / (1.25e9 * share) && one > 8e9 / (1.25e9 * share));
    assert_true(four < 1.02 * one);
    c->links = NULL;
    c->n_links = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_hierarchical),
        cmocka_unit_test(test_in_host_memory),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_in_switch),
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_p2p),
        cmocka_unit_test(test_together_shares_the_nics),
        cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_mesh),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_why),
        cmocka_unit_test(test_hop),
        cmocka_unit_test(test_hop_is_its_slowest_flow),
        cmocka_unit_test(test_hop_over_a_named_link),
    };
    return cmocka_run_group_tests_name("cost_collective", tests, setup, teardown);
}
