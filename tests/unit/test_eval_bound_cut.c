/** Slow networks in the lower bound: what it says where that is known, and which plans it is for.
 * Soundness: test_eval_bound_cut_random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <string.h>

#include "tests/eval_fixture.h"

#define TWO_SITES(order, link, latency)                                                            \
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[" order "],\"network\":{"          \
    "\"bandwidth_GBps\":100,\"latency_us\":5,\"links\":[{\"between\":[\"east\",\"west\"],"         \
    "\"bandwidth_GBps\":" #link ",\"latency_us\":" #latency "}]}}"
#define SITE(name, zone)                                                                           \
    "{\"name\":\"" name                                                                            \
    "\",\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":8,\"zone\":\"" zone                   \
    "\",\"nic\":{\"bandwidth_GBps\":100}}"
#define EAST_WEST SITE("e", "east") "," SITE("w", "west")
#define WEST_EAST SITE("w", "west") "," SITE("e", "east")

/** The slower the link, the higher, up to one side alone; a fast one costs nothing. */
static void slower_links_raise_it_up_to_one_side_alone(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    static const char alone[] = "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[" SITE(
        "e", "east") "],"
                     "\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5}}";
    static const char *const clusters[] = {
        TWO_SITES(EAST_WEST, 100, 5), TWO_SITES(EAST_WEST, 5, 5), TWO_SITES(EAST_WEST, 1.25, 5),
        TWO_SITES(EAST_WEST, 0.3, 5), TWO_SITES(EAST_WEST, 0.01, 5)};
    struct hv_bound one = bound_of(alone, model_text, job_text, &a), b = {0};
    double before = 0;
    for (size_t i = 0; i < HV_COUNT(clusters); i++) {
        b = bound_of(clusters[i], model_text, job_text, &a);
        assert_true(i == 0 ? b.cut_s == 0 && b.n_cuts == 0 : b.iteration_s >= before);
        assert_true(b.iteration_s <= one.iteration_s);
        assert_true(fabs(b.spread_s + b.cut_s - b.iteration_s) < 1e-12);
        before = b.iteration_s;
    }
    assert_true(b.iteration_s > 0.99 * one.iteration_s && b.cut_s > 0.4 * b.iteration_s);
    assert_non_null(strstr(b.why, "because of the link between east and west (0.01 GB/s)"));
    hv_arena_free(&a);
}

/** Where activations are what a plan can afford: 64 sequences of 2048 tokens and 2560 values of 2
 * bytes at no more than 0.88 of 1.25 GB/s times the calibrated factor, and the latency. */
static void activations_of_the_batch_cross(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct world w;
    open_world(&w, TWO_SITES(EAST_WEST, 1.25, 30000), model_text, job_text);
    const struct hv_cluster *c = hv_cost_cluster(w.cost);
    double factor = hv_device_calibration(c->kinds[0])->v[HV_CAL_NETWORK];
    struct hv_cost_cuts cuts;
    hv_cost_cuts(w.cost, &a, &cuts);
    assert_true(cuts.houses.n_classes == 2 && cuts.n == 3); /* zones, and a node of either */
    double hop_s = 64.0 * 2048 * 2560 * 2 / (1.25e9 * 0.88 * factor);
    double byte_s = 1 / (1.25e9 * 0.9 * factor);
    assert_true(cuts.items[0].beyond[0] == 2 && cuts.items[0].beyond[1] == 0);
    assert_true(fabs(cuts.items[0].hop_s - hop_s) < 1e-9 * hop_s);
    assert_true(fabs(cuts.items[0].byte_s - byte_s) < 1e-9 * byte_s);
    assert_true(cuts.items[0].latency_s >= 0.03 && cuts.items[0].latency_s < 0.0301);
    double node_s = 64.0 * 2048 * 2560 * 2 / (100e9 * 0.88 * factor);
    for (size_t i = 1; i < 3; i++) { /* one of two nodes by its NIC, which link does not limit */
        assert_true(cuts.items[i].beyond[i - 1] == 1 && cuts.items[i].beyond[2 - i] == 0);
        assert_true(fabs(cuts.items[i].hop_s - node_s) < 1e-9 * node_s);
    }
    double sum = hv_cost_gradient_bytes(w.cost, HV_PART_EMBEDDING, 0) +
                 hv_cost_gradient_bytes(w.cost, HV_PART_HEAD, 0);
    for (size_t i = 0; i < 24; i++) {
        sum += hv_cost_gradient_bytes(w.cost, HV_PART_ATTENTION, i) +
               hv_cost_gradient_bytes(w.cost, HV_PART_FFN, i);
    }
    assert_true(fabs(sum - 4 * hv_model_parameters(hv_cost_model(w.cost))) < 1e-6 * sum);
    close_world(&w);
    hv_arena_free(&a);
}

/** A node of 8 A100 at each of two sites and a link of so many GB/s between them. */
static const char *pair_of_nodes(struct hv_arena *a, double rate)
{
    static const char node[] = "{\"name\":\"%c\",\"device\":\"A100-SXM-80GB\",\"devices\":8,"
                               "\"zone\":\"%s\",\"nic\":{\"bandwidth_GBps\":100}}";
    char east[160], west[160];
    (void)snprintf(east, sizeof east, node, 'e', "east");
    (void)snprintf(west, sizeof west, node, 'w', "west");
    return hv_arena_printf(a,
                           "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[%s,%s],"
                           "\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5,\"links\":[{"
                           "\"between\":[\"east\",\"west\"],\"bandwidth_GBps\":%.17g,"
                           "\"latency_us\":50}]}}",
                           east, west, rate);
}

struct patience {
    long asked, most;
};

static bool is_impatient(void *ctx)
{
    struct patience *p = ctx;
    return p->asked++ >= p->most;
}

/** Wherever the search is stopped: no figure is above that of a whole search, none is below the
 * work, and soon after the stop nothing is asked any more. */
static void stopped_bounds_hold(void **state)
{
    (void)state;
    static const char job[] =
        "{\"format\":\"hetviz.job/1\",\"global_batch\":1024,\"sequence\":1024,\"precision\":"
        "\"fp16\",\"grad_precision\":\"fp32\",\"optimizer\":\"adam\"}";
    struct hv_arena a = {0};
    struct world w;
    open_world(&w, pair_of_nodes(&a, 1), model_text, job);
    struct hv_bound whole, b;
    struct patience all = {0, LONG_MAX};
    hv_bound_within(w.cost, is_impatient, &all, &a, &whole);
    assert_true(!whole.stopped && all.asked > 50 && whole.n_cuts > 0);
    bool raised = false;
    for (long most = 0; most < all.asked; most += 1 + most / 8) {
        struct patience p = {0, most};
        hv_bound_within(w.cost, is_impatient, &p, &a, &b);
        assert_true(b.stopped && p.asked == most + 1);
        assert_true(b.compute_s > 0 && b.compute_s <= whole.compute_s);
        assert_true(b.any_s >= b.compute_s && b.any_s <= whole.any_s * (1 + 1e-12));
        assert_true(b.spread_s >= b.compute_s && b.spread_s <= whole.spread_s * (1 + 1e-12));
        assert_true(b.iteration_s >= b.spread_s);
        assert_true(b.iteration_s <= whole.iteration_s * (1 + 1e-12));
        assert_true(b.even_s <= fmax(whole.even_s, whole.spread_s));
        assert_non_null(b.why);
        raised = raised || b.spread_s > b.compute_s;
    }
    assert_true(raised);
    close_world(&w);
    hv_arena_free(&a);
}

/** A link that lets activations cross in that share of the time that one side alone takes, and a
 * pipeline over it: faster than any plan on one side, and no faster than the bound. */
static void a_pipeline_across_comes_close(void **state)
{
    (void)state;
    static const char job[] =
        "{\"format\":\"hetviz.job/1\",\"global_batch\":1024,\"sequence\":1024,\"precision\":"
        "\"fp16\",\"grad_precision\":\"fp32\",\"optimizer\":\"adam\"}";
    static const char plan[] =
        "\"micro_batch\":16,\"replicas\":[{\"micro_batches\":64,\"stages\":[{\"devices\":"
        "\"e[0].0-3\",\"layers\":[0,6],\"dp\":4},{\"devices\":\"e[0].4-7\",\"layers\":[6,12],"
        "\"dp\":4},{\"devices\":\"w[0].0-3\",\"layers\":[12,18],\"dp\":4},{\"devices\":"
        "\"w[0].4-7\",\"layers\":[18,24],\"dp\":4}]}],\"schedule\":{\"name\":\"zb-h2\"}";
    struct hv_arena a = {0};
    struct world w;
    struct hv_cost_cuts cuts;
    double alone_s = bound_of(pair_of_nodes(&a, 1e-6), model_text, job, &a).iteration_s;
    open_world(&w, pair_of_nodes(&a, 1), model_text, job);
    hv_cost_cuts(w.cost, &a, &cuts);
    assert_true(cuts.n == 1);
    double rate = cuts.items[0].hop_s / (0.65 * alone_s);
    close_world(&w);
    open_world(&w, pair_of_nodes(&a, rate), model_text, job);
    struct hv_bound b;
    hv_bound_iteration(w.cost, &a, &b);
    struct hv_verdict v = judge(&w, &a, false, plan);
    assert_true(v.findings.n == 0 && v.metrics.bound_s == b.iteration_s);
    assert_true(b.iteration_s > 0.65 * alone_s && b.spread_s < 0.55 * alone_s);
    assert_true(v.metrics.iteration_s < 0.9 * alone_s);
    assert_true(v.metrics.iteration_s > b.iteration_s);
    assert_true(v.metrics.iteration_s < 1.4 * b.iteration_s);
    close_world(&w);
    hv_arena_free(&a);
}

static void order_of_the_file_does_not_count(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_bound b = bound_of(TWO_SITES(EAST_WEST, 1.25, 30000), model_text, job_text, &a);
    struct hv_bound other = bound_of(TWO_SITES(WEST_EAST, 1.25, 30000), model_text, job_text, &a);
    assert_true(b.cut_s > 0 && b.iteration_s == other.iteration_s);
    assert_string_equal(b.why, other.why);
    hv_arena_free(&a);
}

/** Ranks of a stage may be on both sides, but what they exchange inside passes, and states that
 * they share, may not: then the cut does not hold. */
static void plans_that_do_not_keep_to_sides_have_their_own_bound(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    struct hv_bound b;
    open_world(&w, TWO_SITES(EAST_WEST, 1.25, 30000), model_text, job_text);
    hv_bound_iteration(w.cost, &a, &b);
    static const struct {
        const char *plan;
        bool keeps, even;
    } plans[] = {
        {"\"micro_batch\":4,\"replicas\":[{\"count\":4,\"micro_batches\":4,\"stages\":[{"
         "\"devices\":"
         "\"e.*,w.*\",\"layers\":[0,24],\"tp\":8}]}]",
         true, true},
        {"\"micro_batch\":4,\"replicas\":[{\"count\":4,\"micro_batches\":4,\"stages\":[{"
         "\"devices\":"
         "\"e.*,w.*\",\"layers\":[0,24],\"tp\":8,\"zero\":1}]}]",
         false, true},
        {"\"micro_batch\":16,\"replicas\":[{\"micro_batches\":4,\"stages\":[{\"devices\":"
         "\"e.*,w.*\",\"layers\":[0,24],\"dp\":4,\"tp\":8}]}]",
         true, true},
        {"\"micro_batch\":16,\"replicas\":[{\"micro_batches\":4,\"stages\":[{\"devices\":"
         "\"e.*,w.*\",\"layers\":[0,24],\"cp\":4,\"tp\":8}]}]",
         false, true},
        {"\"micro_batch\":16,\"replicas\":[{\"micro_batches\":4,\"stages\":[{\"devices\":"
         "\"e.*,w.*\",\"layers\":[0,24],\"dp\":4,\"tp\":8,\"shares\":[1,5,5,5]}]}]",
         false, false},
        {"\"micro_batch\":16,\"replicas\":[{\"micro_batches\":4,\"stages\":[{\"devices\":"
         "\"e.*,w[0].0-3\",\"layers\":[0,12],\"dp\":5,\"tp\":4,\"deal\":\"turns\"},{\"devices\":"
         "\"w[1].*\",\"layers\":[12,24],\"dp\":2,\"tp\":4}]}]",
         false, true},
        {"\"micro_batch\":4,\"replicas\":[{\"micro_batches\":16,\"stages\":[{\"devices\":"
         "\"e.*\",\"layers\":[0,12],\"dp\":2,\"tp\":8,\"zero\":1},{\"devices\":"
         "\"w.*\",\"layers\":[12,24],\"dp\":2,\"tp\":8,\"zero\":1}]}]",
         true, true},
    };
    for (size_t i = 0; i < HV_COUNT(plans); i++) {
        struct hv_verdict v = judge(&w, &a, false, plans[i].plan);
        if (v.findings.n > 0) {
            fail_msg("%s: %s", plans[i].plan, v.findings.items[0].text);
        }
        assert_true(b.spread_s < b.even_s && b.even_s < b.iteration_s);
        assert_true(v.metrics.bound_s == (plans[i].keeps  ? b.iteration_s
                                          : plans[i].even ? b.even_s
                                                          : b.spread_s));
        assert_true(v.metrics.iteration_s > v.metrics.bound_s);
    }
    close_world(&w);
    hv_arena_free(&a);
}

#define SLOW_NODES(name, count)                                                                    \
    "{\"name\":\"" name "\",\"count\":" #count                                                     \
    ",\"device\":\"A100-SXM-80GB\",\"devices\":8,\"nic\":{\"bandwidth_GBps\":1.25}}"
#define SLOW_NETWORK(nodes)                                                                        \
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[" nodes                            \
    "],\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5}}"

/** Eight equal nodes: one group, or any other way to write them. */
static void equal_nodes_may_be_in_any_groups(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    static const char *const others[] = {
        SLOW_NETWORK(SLOW_NODES("a", 5) "," SLOW_NODES("b", 3)),
        SLOW_NETWORK(SLOW_NODES("z", 1) "," SLOW_NODES("b", 6) "," SLOW_NODES("c", 1)),
        SLOW_NETWORK(
            SLOW_NODES("a", 1) "," SLOW_NODES("b", 1) "," SLOW_NODES("c", 1) "," SLOW_NODES(
                "d", 1) "," SLOW_NODES("e", 1) "," SLOW_NODES("f", 1) "," SLOW_NODES("g", 2)),
    };
    struct hv_bound b = bound_of(SLOW_NETWORK(SLOW_NODES("a", 8)), model_text, job_text, &a);
    assert_true(b.cut_s > 0.1 * b.iteration_s && b.n_cuts == 4);
    for (size_t i = 0; i < HV_COUNT(others); i++) {
        struct hv_bound other = bound_of(others[i], model_text, job_text, &a);
        assert_true(other.iteration_s == b.iteration_s && other.spread_s == b.spread_s &&
                    other.even_s == b.even_s && other.any_s == b.any_s);
        assert_true(other.n_cuts == b.n_cuts);
        for (size_t k = 0; k < b.n_cuts; k++) {
            assert_true(other.cuts[k].time_s == b.cuts[k].time_s);
        }
    }
    hv_arena_free(&a);
}

/** The bound by a cut with so many nodes on its far side; that of plans without a cut if there is
 * none. */
static double by_nodes(const struct hv_bound *b, uint32_t nodes)
{
    for (size_t i = 0; i < b->n_cuts; i++) {
        if (b->cuts[i].beyond[0] == nodes) {
            return b->cuts[i].time_s;
        }
    }
    return fmax(b->spread_s, b->even_s);
}

/** A plan gets the largest bound of the cuts that leave what it ties together on one side. */
static void plans_tie_nodes_together(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    struct hv_bound b;
    open_world(&w, SLOW_NETWORK(SLOW_NODES("a", 8)), model_text, job_text);
    hv_bound_iteration(w.cost, &a, &b);
    double any = 0, even = fmax(by_nodes(&b, 2), by_nodes(&b, 4));
    for (uint32_t n = 1; n <= 4; n++) {
        any = fmax(any, by_nodes(&b, n));
    }
    const struct {
        const char *plan;
        double bound_s;
    } plans[] = {
        {"\"micro_batch\":1,\"replicas\":[{\"count\":8,\"micro_batches\":8,\"stages\":[{"
         "\"devices\":\"a.*\",\"layers\":[0,24],\"tp\":8}]}]",
         any},
        {"\"micro_batch\":1,\"replicas\":[{\"count\":4,\"micro_batches\":16,\"stages\":[{"
         "\"devices\":\"a.*\",\"layers\":[0,24],\"tp\":8,\"cp\":2}]}]",
         even},
        {"\"replicas\":[{\"micro_batch\":5,\"micro_batches\":8,\"stages\":[{\"devices\":"
         "\"a[0-4].*\",\"layers\":[0,24],\"tp\":8,\"dp\":5,\"zero\":1}]},{\"micro_batch\":3,"
         "\"micro_batches\":8,\"stages\":[{\"devices\":\"a[5-7].*\",\"layers\":[0,24],\"tp\":8,"
         "\"dp\":3,\"zero\":1}]}]",
         by_nodes(&b, 3)},
        {"\"micro_batch\":3,\"replicas\":[{\"micro_batches\":21,\"stages\":[{\"devices\":"
         "\"a[1-6].*\",\"layers\":[0,24],\"tp\":8,\"dp\":6,\"zero\":1,\"deal\":\"turns\"}]},"
         "{\"micro_batch\":1,\"micro_batches\":1,\"stages\":[{\"devices\":\"a[7].*\",\"layers\":"
         "[0,24],\"tp\":8}]}]",
         fmax(by_nodes(&b, 1), by_nodes(&b, 2))},
        {"\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":"
         "\"a.*\",\"layers\":[0,24],\"tp\":8,\"dp\":8,\"zero\":1}]}]",
         fmax(b.spread_s, b.even_s)},
    };
    assert_true(b.n_cuts == 4 && by_nodes(&b, 1) < by_nodes(&b, 2));
    for (size_t i = 0; i < HV_COUNT(plans); i++) {
        struct hv_verdict v = judge(&w, &a, false, plans[i].plan);
        if (v.metrics.bound_s != plans[i].bound_s || v.findings.n > 0) {
            fail_msg("%s: bound %.9g, expected %.9g; %s", plans[i].plan, v.metrics.bound_s,
                     plans[i].bound_s, v.findings.n > 0 ? v.findings.items[0].text : "valid");
        }
        assert_true(v.metrics.iteration_s > v.metrics.bound_s);
    }
    close_world(&w);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slower_links_raise_it_up_to_one_side_alone),
        cmocka_unit_test(activations_of_the_batch_cross),
        cmocka_unit_test(stopped_bounds_hold),
        cmocka_unit_test(a_pipeline_across_comes_close),
        cmocka_unit_test(order_of_the_file_does_not_count),
        cmocka_unit_test(equal_nodes_may_be_in_any_groups),
        cmocka_unit_test(plans_tie_nodes_together),
        cmocka_unit_test(plans_that_do_not_keep_to_sides_have_their_own_bound),
    };
    return cmocka_run_group_tests_name("eval_bound_cut", tests, NULL, NULL);
}
