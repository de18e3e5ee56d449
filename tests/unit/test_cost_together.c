/* Groups that meet on a NIC: each takes as many times as long, at every place that prices one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/cost_fixture.h"

struct world {
    struct hv_cluster *cluster;
    struct hv_model *gpt;
    struct hv_job job;
    struct fixture_plan p;
};

/* Without latency, and with one NIC per node that a flow can fill. */
static int setup(void **state)
{
    struct world *w = hv_xcalloc(1, sizeof *w);
    w->cluster = fixture_cost_cluster();
    for (size_t g = 0; g < w->cluster->n_groups; g++) {
        w->cluster->groups[g].n_nics = 1;
        w->cluster->groups[g].nic.latency_s = 0;
    }
    w->gpt = fixture_gpt(4, 4096, 32);
    w->job = fixture_job(2048);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    hv_model_unref(w->gpt);
    hv_cluster_unref(w->cluster);
    free(w);
    return 0;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * want)) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static double together(const struct world *w, const uint32_t *d, size_t n, size_t stride,
                       size_t size, size_t member)
{
    const struct hv_family f = {d, n, stride, size};
    return hv_cost_together(w->cluster, &f, member);
}

/* Eight devices on each node, three nodes. */
static void test_groups_on_one_nic(void **state)
{
    struct world *w = *state;
    uint32_t rising[24], dealt[16];
    for (uint32_t i = 0; i < 24; i++) {
        rising[i] = i;
    }
    for (uint32_t i = 0; i < 16; i++) {
        dealt[i] = i / 2 + i % 2 * 8;
    }
    near(together(w, rising, 16, 1, 8, 0), 1);  /* a node each */
    near(together(w, rising, 24, 1, 12, 0), 2); /* both on the second node */
    near(together(w, rising, 24, 1, 24, 5), 1); /* there is but one */
    near(together(w, rising, 16, 1, 3, 6), 1);  /* of these only 6, 7, 8 leave a node */
    near(together(w, rising, 24, 1, 3, 6), 2);  /* and 15, 16, 17 */
    near(together(w, rising, 24, 1, 6, 0), 1);  /* 0 … 5 do not */
    near(together(w, dealt, 16, 1, 2, 6), 8);   /* every pair over both nodes */
    near(together(w, rising, 16, 8, 2, 3), 8);  /* the same pairs as slices */
    near(together(w, rising, 16, 16, 1, 0), 1); /* groups of one exchange nothing */
    near(together(w, rising, 24, 4, 6, 0), 4);  /* slices of four: four per node */
}

/* A node of a fast NIC with two slow ones: it carries both at their rate. */
static void test_the_tightest_counts(void **state)
{
    struct world *w = *state;
    const uint32_t star[] = {0, 192, 1, 200}, crowd[] = {0, 192, 1, 193};
    w->cluster->groups[2].nic.bytes_per_s = 10e9;
    near(together(w, star, 4, 1, 2, 0), 1);
    near(together(w, crowd, 4, 1, 2, 0), 2);
    w->cluster->groups[2].nic.bytes_per_s = 80e9;
    near(together(w, star, 4, 1, 2, 2), 80.0 / 50); /* half of the fast one is less */
    w->cluster->groups[2].nic.bytes_per_s = 100e9;
}

/* Groups over a link of a name share it, whichever nodes they are on. */
static void test_groups_on_a_named_link(void **state)
{
    struct world *w = *state;
    struct hv_network_link link = {"a", "h", 1e9, 0};
    const uint32_t pairs[] = {0, 128, 8, 136, 16, 144};
    w->cluster->links = &link;
    w->cluster->n_links = 1;
    near(together(w, pairs, 6, 1, 2, 0), 3);
    w->cluster->n_links = 0;
    near(together(w, pairs, 6, 1, 2, 0), 1);
}

static struct hv_pass pass_of(struct world *w, int dp_rank)
{
    struct hv_cost *k = hv_cost_new(w->cluster, w->gpt, &w->job);
    struct hv_stage_query q = {
        .plan = &w->p.plan, .replica = &w->p.replica, .dp_rank = dp_rank, .sequences = 1};
    struct hv_pass out;
    struct hv_err err = {0};
    if (hv_cost_pass(k, &q, &out, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    hv_cost_free(k);
    return out;
}

/* Pairs of tensor-parallel ranks, one on each of two nodes. */
static struct hv_pass pairs_pass(struct world *w, int dp, int dp_rank)
{
    fixture_stages(&w->p, w->cluster, 4, 1, dp, 2);
    for (int i = 0; i < dp; i++) {
        w->p.devices[2 * i] = (uint32_t)i;
        w->p.devices[2 * i + 1] = (uint32_t)(8 + i);
    }
    return pass_of(w, dp_rank);
}

/* All data-parallel ranks sum over the same two NICs: twice as many take twice as long. */
static void test_ranks_share_nics(void **state)
{
    struct world *w = *state;
    double one = pairs_pass(w, 1, 0).tp_s, two = pairs_pass(w, 2, 1).tp_s,
           four = pairs_pass(w, 4, 2).tp_s, eight = pairs_pass(w, 8, 7).tp_s;
    near(four - two, 2 * (two - one)); /* but for the starts */
    near(eight - four, 4 * (two - one));
    assert_true(two - one > 0.8 * one);
    w->cluster->groups[0].n_nics = 8; /* a NIC each: nobody waits for another */
    near(pairs_pass(w, 8, 7).tp_s, pairs_pass(w, 1, 0).tp_s);
    w->cluster->groups[0].n_nics = 1;
}

/* Rank 0 has its nodes to itself, rank 1 shares its with rank 2. */
static void test_only_those_that_meet_wait(void **state)
{
    struct world *w = *state;
    const uint32_t d[] = {0, 8, 16, 24, 17, 25};
    fixture_stages(&w->p, w->cluster, 4, 1, 3, 2);
    memcpy(w->p.devices, d, sizeof d);
    double alone = pass_of(w, 0).tp_s, meets = pass_of(w, 1).tp_s;
    near(alone, pairs_pass(w, 1, 0).tp_s);
    near(meets, pairs_pass(w, 2, 0).tp_s);
}

/* Shards of slices that are on nodes of their own do not share a NIC; those of one node do. */
static void test_gathers_share_nics(void **state)
{
    struct world *w = *state;
    double t[2];
    for (int i = 0; i < 2; i++) {
        const uint32_t apart[] = {0, 8, 16, 24}, beside[] = {0, 1, 16, 17};
        fixture_stages(&w->p, w->cluster, 4, 1, 2, 2);
        memcpy(w->p.devices, i ? beside : apart, sizeof apart);
        w->p.stages[0].zero.stage = 3;
        t[i] = pass_of(w, 0).network_forward_s;
        w->p.stages[0].zero.stage = 0; /* sums of tensor parallelism go over the network too */
        t[i] -= pass_of(w, 0).network_forward_s;
    }
    assert_true(t[1] > 1.7 * t[0] && t[1] < 2.0 * t[0]); /* twice, but for the starts */
}

/* Sums in halves beside products: compute hides no more of them than it lasts. A pass over a slow
 * network takes as long as what it sends, one over a fast network hides a part. */
static void test_passes_wait_for_the_network(void **state)
{
    struct world *w = *state;
    struct hv_calibration hides = *hv_calibration_generic();
    hides.v[HV_CAL_TP_HIDDEN] = 0.9;
    hv_cluster_calibrate(w->cluster, &hides);
    for (int slow = 0; slow < 2; slow++) {
        w->cluster->groups[0].nic.bytes_per_s = slow ? 0.1e9 : 100e9;
        struct hv_pass whole = pairs_pass(w, 1, 0);
        w->p.stages[0].sequence_parallel = true;
        struct hv_pass halves = pass_of(w, 0);
        double forward_s = halves.network_forward_s, backward_s = halves.network_backward_s;
        double took_s = halves.input_grad_s + halves.weight_grad_s + halves.recompute_s;
        assert_true(halves.forward_s >= forward_s && took_s >= backward_s);
        near(halves.compute_s + halves.tp_s, halves.forward_s + took_s);
        if (slow) { /* bytes are the same, and count alone */
            assert_true(fabs(forward_s - whole.network_forward_s) < 0.3 * forward_s);
            assert_true(halves.forward_s < 1.1 * forward_s && took_s < 1.1 * backward_s);
        } else {
            assert_true(halves.tp_s < 0.2 * (forward_s + backward_s));
        }
    }
    w->cluster->groups[0].nic.bytes_per_s = 100e9;
    hv_cluster_calibrate(w->cluster, hv_calibration_generic());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_on_one_nic),
        cmocka_unit_test(test_the_tightest_counts),
        cmocka_unit_test(test_groups_on_a_named_link),
        cmocka_unit_test(test_ranks_share_nics),
        cmocka_unit_test(test_only_those_that_meet_wait),
        cmocka_unit_test(test_gathers_share_nics),
        cmocka_unit_test(test_passes_wait_for_the_network),
    };
    return cmocka_run_group_tests_name("cost together", tests, setup, teardown);
}
