/* All-to-alls of unequal parts: bytes take the links between their two devices, and the busiest
 * element sets the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/rng.h"
#include "solver/cost/device/link_curve.h"
#include "tests/cost_fixture.h"

#define MOST 32

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

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

/* Members `first` + i × step, and their matrix. */
struct group {
    uint32_t ids[MOST];
    size_t n;
    double bytes[MOST * MOST];
};

static struct group group_of(uint32_t first, size_t n, uint32_t step)
{
    struct group g = {.n = n};
    for (size_t i = 0; i < n; i++) {
        g.ids[i] = first + (uint32_t)i * step;
    }
    return g;
}

static struct hv_collective_cost cost_of(struct hv_cluster *c, const struct group *g,
                                         enum hv_sync_algorithm a, double together)
{
    struct hv_collective_query q = {HV_ALL_TO_ALL, 0, g->ids,   g->n, a,
                                    together,      1, g->bytes, false};
    return hv_cost_collective(c, &q, NULL);
}

static double share(enum hv_link_class class, double bytes)
{
    return hv_link_share(hv_link_curve(class, HV_USE_ALL_TO_ALL), bytes);
}

/* Equal parts cost what the closed forms give for one send buffer. */
static void test_even_is_even(void **state)
{
    static const struct {
        uint32_t first, step;
        size_t n;
        double together;
    } rows[] = {{0, 1, 8, 1},  {0, 1, 2, 1},  {0, 1, 16, 1},
                {0, 1, 32, 3}, {0, 4, 16, 4}, {0, 8, 8, 8}};
    static const enum hv_sync_algorithm algorithms[] = {HV_ALGO_AUTO, HV_ALGO_RING,
                                                        HV_ALGO_HIERARCHICAL, HV_ALGO_TREE};
    for (size_t r = 0; r < HV_COUNT(rows); r++) {
        struct group g = group_of(rows[r].first, rows[r].n, rows[r].step);
        for (size_t i = 0; i < g.n * g.n; i++) {
            g.bytes[i] = 1e6;
        }
        for (size_t a = 0; a < HV_COUNT(algorithms); a++) {
            struct hv_collective_query q = {HV_ALL_TO_ALL, 1e6 * (double)g.n, g.ids, g.n,
                                            algorithms[a], rows[r].together,  1,     NULL,
                                            false};
            struct hv_collective_cost want = hv_cost_collective(*state, &q, NULL);
            struct hv_collective_cost got = cost_of(*state, &g, algorithms[a], rows[r].together);
            near(got.time_s, want.time_s);
            near(got.messages, want.messages);
            near(got.node_bytes, want.node_bytes);
            near(got.network_bytes, want.network_bytes);
        }
    }
}

/* Bytes inside nodes use no network; the same bytes between them take eight NICs per node. */
static void test_levels(void **state)
{
    struct group in = group_of(0, 16, 1), out = in;
    for (size_t i = 0; i < 16; i++) {
        for (size_t j = 0; j < 16; j++) {
            bool same = i / 8 == j / 8;
            in.bytes[i * 16 + j] = same && i != j ? 8e6 : 0;
            out.bytes[i * 16 + j] = same ? 0 : 7e6;
        }
    }
    struct hv_collective_cost a = cost_of(*state, &in, HV_ALGO_RING, 1);
    struct hv_collective_cost b = cost_of(*state, &out, HV_ALGO_RING, 1);
    const struct hv_link_curve *house = hv_link_curve(HV_CURVE_NVLINK3, HV_USE_ALL_TO_ALL);
    const struct hv_link_curve *net = hv_link_curve(HV_CURVE_NETWORK, HV_USE_ALL_TO_ALL);
    assert_true(a.network_bytes == 0 && b.node_bytes == 0);
    near(a.node_bytes, 56e6);
    near(b.network_bytes, 8 * 56e6);
    near(a.time_s,
         house->start_s + 0.2 * 7 * 3e-6 + 56e6 / (300e9 * share(HV_CURVE_NVLINK3, 8 * 8e6)));
    near(b.time_s, net->start_s + (1 + 0.2 * 7) * 5e-6 +
                       8 * 56e6 / (100e9 * share(HV_CURVE_NETWORK, 8 * 7e6)));
    near(cost_of(*state, &out, HV_ALGO_RING, 4).network_bytes, 4 * 8 * 56e6);
}

/* What stays on a member is free; the busiest sender or receiver sets the time, the mean does not.
 */
static void test_busiest(void **state)
{
    struct group g = group_of(0, 8, 1);
    for (size_t i = 0; i < 8; i++) {
        g.bytes[i * 8 + i] = 1e12;
    }
    assert_true(cost_of(*state, &g, HV_ALGO_AUTO, 1).time_s == 0);
    double start = hv_link_curve(HV_CURVE_NVLINK3, HV_USE_ALL_TO_ALL)->start_s;
    double rate = 300e9 * share(HV_CURVE_NVLINK3, 8 * 64e6);
    for (size_t i = 1; i < 8; i++) {
        g.bytes[i * 8] = 64e6; /* all to the first: its receiving side */
    }
    near(cost_of(*state, &g, HV_ALGO_AUTO, 1).time_s, start + 0.2 * 7 * 3e-6 + 7 * 64e6 / rate);
    struct group back = group_of(0, 8, 1);
    for (size_t i = 1; i < 8; i++) {
        back.bytes[i] = 64e6; /* the same from the first: its sending side */
    }
    near(cost_of(*state, &back, HV_ALGO_AUTO, 1).time_s,
         cost_of(*state, &g, HV_ALGO_AUTO, 1).time_s);
}

/* One flow between nodes has one of the node's eight NICs. */
static void test_one_flow(void **state)
{
    struct group g = group_of(0, 16, 1);
    g.bytes[9] = 64e6;
    double start = hv_link_curve(HV_CURVE_NETWORK, HV_USE_ALL_TO_ALL)->start_s;
    near(cost_of(*state, &g, HV_ALGO_RING, 1).time_s,
         start + 5e-6 + 64e6 / (100e9 / 8 * share(HV_CURVE_NETWORK, 8 * 64e6)));
}

/* Two hops: over the network to the neighbour at the sender's position, then on inside. */
static void test_two_hops(void **state)
{
    struct group g = group_of(0, 16, 1);
    g.bytes[9] = 64e6;
    struct hv_collective_cost x = cost_of(*state, &g, HV_ALGO_HIERARCHICAL, 1);
    near(x.node_bytes, 64e6);
    near(x.network_bytes, 64e6);
    assert_true(x.messages == 2);
    double inside = 64e6 / (300e9 * share(HV_CURVE_NVLINK3, 8 * 64e6));
    double across = 64e6 / (100e9 / 8 * share(HV_CURVE_NETWORK, 2 * 64e6));
    struct hv_collective_cost y = cost_of(*state, &g, HV_ALGO_TREE, 1);
    near(y.time_s - y.alpha_s, inside + across);
    near(x.time_s - x.alpha_s, across);
}

/* A named link carries what crosses it, in each direction by itself, and nothing else. */
static void test_named_link(void **state)
{
    struct hv_cluster *c = *state;
    struct hv_network_link link = {"a[0]", "a[1]", 1.25e9, 1e-3};
    struct group near_by = group_of(0, 32, 1), far = near_by;
    for (size_t i = 0; i < 32; i++) {
        for (size_t j = 0; j < 32; j++) {
            size_t a = i / 8, b = j / 8;
            near_by.bytes[i * 32 + j] = a / 2 != b / 2 ? 1e6 : 0; /* around the link */
            far.bytes[i * 32 + j] = a == 0 && b == 1 ? 1e6 : 0;   /* over it */
        }
    }
    double before = cost_of(c, &near_by, HV_ALGO_RING, 1).time_s;
    c->links = &link;
    c->n_links = 1;
    near(cost_of(c, &near_by, HV_ALGO_RING, 1).time_s, before);
    struct hv_collective_cost x = cost_of(c, &far, HV_ALGO_RING, 1);
    near(x.time_s - x.alpha_s, 64e6 / (1.25e9 * share(HV_CURVE_NETWORK, 8e6)));
    for (size_t i = 0; i < 8; i++) {
        for (size_t j = 0; j < 8; j++) {
            far.bytes[(8 + i) * 32 + j] = 1e6; /* the way back does not share it */
        }
    }
    near(cost_of(c, &far, HV_ALGO_RING, 1).time_s, x.time_s);
    c->links = NULL;
    c->n_links = 0;
}

/* More bytes anywhere never cost less, and members of another fabric are not reached. */
static void test_grows_and_apart(void **state)
{
    struct hv_rng r;
    hv_rng_seed(&r, 5);
    struct group g = group_of(120, 16, 1);
    double before = 0;
    for (int k = 0; k < 400; k++) {
        g.bytes[hv_rng_below(&r, 256)] += 1e5 * (double)hv_rng_below(&r, 1000);
        double now = cost_of(*state, &g, HV_ALGO_RING, 1).time_s;
        assert_true(now >= before * (1 - 1e-12));
        before = now;
    }
    struct group apart = group_of(248, 16, 1);
    apart.bytes[1] = 1e6;
    assert_true(hv_known(cost_of(*state, &apart, HV_ALGO_RING, 1).time_s));
    apart.bytes[9] = 1e6;
    assert_false(hv_known(cost_of(*state, &apart, HV_ALGO_RING, 1).time_s));
}

/* Bytes and messages of the busiest member and node by plain counting, for random matrices with
 * gaps; and the same matrix with its members in another order, node by node or mixed, costs the
 * same. */
static void test_counting(void **state)
{
    struct hv_cluster *c = *state;
    struct hv_rng r;
    hv_rng_seed(&r, 5);
    for (int round = 0; round < 40; round++) {
        struct group g = group_of(0, MOST, 1), mixed = g;
        size_t to[MOST];
        for (size_t i = 0; i < MOST; i++) {
            size_t k = (size_t)hv_rng_below(&r, i + 1);
            to[i] = to[k];
            to[k] = i;
        }
        for (size_t i = 0; i < MOST * MOST; i++) {
            bool gap = hv_rng_below(&r, 4) < (uint64_t)(round % 4);
            g.bytes[i] = gap ? 0 : 1e6 * hv_rng_double(&r);
        }
        double node_bytes = 0, network_bytes = 0, messages = 0;
        double out[MOST] = {0}, starts[2 * MOST] = {0};
        for (size_t a = 0; a < MOST; a++) {
            double inside = 0;
            mixed.ids[to[a]] = g.ids[a];
            for (size_t b = 0; b < MOST; b++) {
                double x = g.bytes[a * MOST + b];
                uint32_t from = hv_cluster_node_of(c, g.ids[a]),
                         into = hv_cluster_node_of(c, g.ids[b]);
                mixed.bytes[to[a] * MOST + to[b]] = x;
                inside += from == into && a != b ? x : 0;
                out[from] += from == into ? 0 : x;
                starts[a] += x > 0 && a != b;
                starts[MOST + b] += x > 0 && a != b;
            }
            node_bytes = fmax(node_bytes, inside);
        }
        for (size_t i = 0; i < 2 * MOST; i++) {
            network_bytes = fmax(network_bytes, i < MOST ? out[i] : 0);
            messages = fmax(messages, starts[i]);
        }
        struct hv_collective_cost x = cost_of(c, &g, HV_ALGO_RING, 1);
        struct hv_collective_cost y = cost_of(c, &mixed, HV_ALGO_RING, 1);
        near(x.node_bytes, node_bytes);
        near(x.network_bytes, network_bytes);
        near(x.messages, messages);
        near(y.time_s, x.time_s);
        near(y.network_bytes, x.network_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_even_is_even),    cmocka_unit_test(test_levels),
        cmocka_unit_test(test_busiest),         cmocka_unit_test(test_one_flow),
        cmocka_unit_test(test_two_hops),        cmocka_unit_test(test_named_link),
        cmocka_unit_test(test_grows_and_apart), cmocka_unit_test(test_counting),
    };
    return cmocka_run_group_tests_name("cost_matrix", tests, setup, teardown);
}
