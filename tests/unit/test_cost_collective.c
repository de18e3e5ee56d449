/* Collectives and hops against the closed forms on a toy cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tests/cost_fixture.h"

static const double node_bw = 300e9 * HV_EFF_NODE_COLLECTIVE, net_bw = 100e9 * HV_EFF_NETWORK;

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
    for (uint32_t i = 0; i < n; i++)
        ids[i] = first + i * step;
    struct hv_collective_query q = {op, bytes, ids, n, a, 1};
    return hv_cost_collective(c, &q, NULL).time_s;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * want))
        fail_msg("got %.17g, want %.17g", got, want);
}

/* 2(n-1)α + 2(n-1)/n·S/B and its halves (Thakur et al. 2005). */
static void test_ring(void **state)
{
    double s = 64e6;
    near(price(*state, HV_ALL_REDUCE, HV_ALGO_RING, s, 0, 8, 1),
         14 * 3e-6 + 14.0 / 8 * s / node_bw);
    near(price(*state, HV_ALL_GATHER, HV_ALGO_RING, s, 0, 4, 1), 3 * 3e-6 + 3.0 / 4 * s / node_bw);
    near(price(*state, HV_REDUCE_SCATTER, HV_ALGO_AUTO, s, 0, 4, 1),
         3 * 3e-6 + 3.0 / 4 * s / node_bw);
    /* one member per node: the NIC is the ring's link */
    near(price(*state, HV_ALL_REDUCE, HV_ALGO_RING, s, 0, 4, 8), 6 * 5e-6 + 6.0 / 4 * s / net_bw);
}

/* Reduce-scatter in the node, ring of nodes on eight rails that share the NIC, all-gather in the
 * node. */
static void test_hierarchical(void **state)
{
    double s = 512e6;
    double inside = 7 * 3e-6 + 7.0 / 8 * s / node_bw, across = 3 * 5e-6 + 3.0 / 4 * s / net_bw;
    near(price(*state, HV_ALL_REDUCE, HV_ALGO_HIERARCHICAL, s, 0, 32, 1), 2 * (inside + across));
}

static void test_tree_wins_when_small(void **state)
{
    uint32_t ids[128];
    for (uint32_t i = 0; i < 128; i++)
        ids[i] = i;
    struct hv_collective_query q = {HV_ALL_REDUCE, 1e3, ids, 128, HV_ALGO_AUTO, 1};
    assert_int_equal(hv_cost_collective(*state, &q, NULL).algorithm, HV_ALGO_TREE);
    q.bytes = 1e9;
    double best = hv_cost_collective(*state, &q, NULL).time_s;
    for (int a = HV_ALGO_RING; a <= HV_ALGO_HIERARCHICAL; a++) {
        q.algorithm = (enum hv_sync_algorithm)a;
        assert_true(best <= hv_cost_collective(*state, &q, NULL).time_s);
    }
}

static void test_all_to_all_and_p2p(void **state)
{
    double s = 8e6;
    near(price(*state, HV_ALL_TO_ALL, HV_ALGO_AUTO, s, 0, 8, 1), 7 * 3e-6 + 7.0 / 8 * s / node_bw);
    /* 16 members in two nodes: each node sends 8 members' halves through its NICs */
    near(price(*state, HV_ALL_TO_ALL, HV_ALGO_AUTO, s, 0, 16, 1),
         7 * 3e-6 + 8 * 5e-6 + 8 * 0.5 * s / net_bw);
    near(price(*state, HV_P2P, HV_ALGO_AUTO, s, 0, 2, 1), 3e-6 + s / (300e9 * HV_EFF_NODE_P2P));
    near(price(*state, HV_P2P, HV_ALGO_AUTO, s, 0, 2, 8), 5e-6 + s / net_bw);
}

static void test_together_shares_the_nic(void **state)
{
    const uint32_t ids[] = {0, 8, 16};
    struct hv_collective_query q = {HV_ALL_REDUCE, 1e9, ids, 3, HV_ALGO_RING, 1};
    double alone = hv_cost_collective(*state, &q, NULL).time_s;
    q.together = 8;
    struct hv_collective_cost all = hv_cost_collective(*state, &q, NULL);
    near(all.time_s - 4 * 5e-6, 8 * (alone - 4 * 5e-6));
    near(all.network_bytes, 8 * 2 * 2.0 / 3 * 1e9);
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
    struct hv_collective_query q = {HV_ALL_REDUCE, 1e6, ids, 2, HV_ALGO_AUTO, 1};
    struct hv_collective_cost r = hv_cost_collective(*state, &q, &why);
    assert_int_equal(why.n, 1);
    assert_true(why.terms[0].value == r.time_s);
    assert_string_equal(why.terms[0].name, "all_reduce");
    hv_arena_free(&arena);
}

/* Eight flows between two nodes share one NIC; inside a node each has its own link. */
static void test_hop(void **state)
{
    uint32_t ids[24];
    for (uint32_t i = 0; i < 24; i++)
        ids[i] = i;
    near(hv_cost_hop(*state, ids, 8, ids + 8, 8, 80e6, NULL), 5e-6 + 80e6 / net_bw);
    near(hv_cost_hop(*state, ids, 4, ids + 4, 4, 80e6, NULL),
         3e-6 + 20e6 / (300e9 * HV_EFF_NODE_P2P));
    assert_true(hv_cost_hop(*state, ids, 8, ids, 8, 80e6, NULL) == 0.0);
    /* two receiving nodes: the sender's NIC still carries everything */
    near(hv_cost_hop(*state, ids, 8, ids + 8, 16, 80e6, NULL), 5e-6 + 80e6 / net_bw);
    assert_true(hv_cost_hop(*state, ids, 8, ids + 8, 8, 1, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_hierarchical),
        cmocka_unit_test(test_tree_wins_when_small),
        cmocka_unit_test(test_all_to_all_and_p2p),
        cmocka_unit_test(test_together_shares_the_nic),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_why),
        cmocka_unit_test(test_hop),
    };
    return cmocka_run_group_tests_name("cost_collective", tests, setup, teardown);
}
