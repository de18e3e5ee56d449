/** The terms of the lower bound one by one: memory, links that cannot be avoided, fill and drain;
 * and that the order of a file does not count. Soundness: test_eval_bound_random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/bound/bound.h"
#include "solver/cost/floor/exchange.h"
#include "tests/eval_fixture.h"

#define CLUSTER(nodes)                                                                             \
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[" nodes "],"                       \
    "\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5}}"
#define NODES(name, count, device, each, nic)                                                      \
    "{\"name\":\"" name "\",\"count\":" #count ",\"device\":\"" device "\",\"devices\":" #each     \
    ",\"nic\":{\"bandwidth_GBps\":" #nic "}}"
#define MODEL(layers, hidden)                                                                      \
    "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":" #layers   \
    ",\"hidden\":" #hidden ",\"heads\":32,\"kv_heads\":32,\"ffn\":16384,\"ffn_kind\":\"gelu\","    \
    "\"vocab\":32000,\"max_sequence\":2048}"
#define JOB(batch, more)                                                                           \
    "{\"format\":\"hetviz.job/1\",\"global_batch\":" #batch ",\"sequence\":2048,"                  \
    "\"precision\":\"fp16\",\"optimizer\":\"adam\"" more "}"

static void gradients_have_to_fit(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    /* 40 layers of 12 h² and more: 8.3 G parameters; 2 bytes of sums and 4 unscaled each */
    struct hv_bound b =
        bound_of(CLUSTER(NODES("t", 2, "T4-16GB", 1, 10)), MODEL(40, 4096), JOB(64, ""), &a);
    assert_true(b.iteration_s == 0);
    assert_non_null(strstr(b.why, "the gradients, which no plan can offload, need"));
    b = bound_of(CLUSTER(NODES("t", 4, "T4-16GB", 1, 10)), MODEL(40, 4096), JOB(64, ""), &a);
    assert_true(b.iteration_s > 0 && b.fewest == 4);
    /* fp32 sums: 4 bytes, and no other copy */
    b = bound_of(CLUSTER(NODES("t", 4, "T4-16GB", 1, 10)), MODEL(40, 4096),
                 JOB(64, ",\"grad_precision\":\"fp32\""), &a);
    assert_true(b.iteration_s > 0 && b.fewest == 3);
    hv_arena_free(&a);
}

/** Small devices do not hold the model without the large ones, and are counted with them. */
static void kinds_that_hold_too_little_are_not_enough(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    static const char both[] =
        CLUSTER(NODES("t", 2, "T4-16GB", 1, 10) "," NODES("a", 1, "A100-SXM-80GB", 1, 10));
    struct hv_bound b = bound_of(both, MODEL(40, 4096), JOB(64, ""), &a);
    assert_true(b.iteration_s > 0 && b.fewest == 1);
    struct hv_bound large =
        bound_of(CLUSTER(NODES("a", 1, "A100-SXM-80GB", 1, 10)), MODEL(40, 4096), JOB(64, ""), &a);
    assert_true(b.iteration_s < large.iteration_s);
    hv_arena_free(&a);
}

/** One sequence on many nodes of one device: only its ranks could share it, over the network. */
static void slow_links_that_cannot_be_avoided_count(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    double before = 0;
    static const char *const clusters[] = {CLUSTER(NODES("h", 64, "H100-SXM-80GB", 1, 100)),
                                           CLUSTER(NODES("h", 64, "H100-SXM-80GB", 1, 10)),
                                           CLUSTER(NODES("h", 64, "H100-SXM-80GB", 1, 1))};
    for (size_t i = 0; i < HV_COUNT(clusters); i++) {
        struct hv_bound b = bound_of(clusters[i], MODEL(24, 4096), JOB(1, ""), &a);
        assert_true(b.iteration_s > before);
        before = b.iteration_s;
    }
    /* the same devices eight to a node, whose own links are fast */
    struct hv_bound near =
        bound_of(CLUSTER(NODES("h", 8, "H100-SXM-80GB", 8, 1)), MODEL(24, 4096), JOB(1, ""), &a);
    assert_true(near.iteration_s < 0.95 * before);
    hv_arena_free(&a);
}

/** Twice the devices for as much work: half the work, but not half the way through the layers. */
static void fill_and_drain_count(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_bound few =
        bound_of(CLUSTER(NODES("h", 1, "H100-SXM-80GB", 8, 400)), MODEL(24, 4096), JOB(8, ""), &a);
    struct hv_bound many =
        bound_of(CLUSTER(NODES("h", 16, "H100-SXM-80GB", 8, 400)), MODEL(24, 4096), JOB(8, ""), &a);
    assert_true(many.passes_s > 0);
    assert_true(fabs(many.compute_s * 16 - few.compute_s) < 1e-9 * few.compute_s);
    assert_true(16 * many.passes_s > few.passes_s + 0.1 * few.compute_s);
    assert_non_null(strstr(many.why, "to fill and drain"));
    hv_arena_free(&a);
}

static void parts_add_up(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_bound b = bound_of(cluster_text, model_text, job_text, &a);
    double sum = b.compute_s + b.shapes_s + b.passes_s + b.optimizer_s + b.host_s + b.wait_s;
    assert_true(fabs(sum - b.iteration_s) < 1e-5 * b.iteration_s);
    assert_true(b.any_s <= b.iteration_s && b.compute_s <= b.any_s);
    hv_arena_free(&a);
}

/** The same nodes in another order are the same cluster, to the last digit. */
static void order_of_the_file_does_not_count(void **state)
{
    (void)state;
    struct hv_arena a = {0};
#define A NODES("a", 2, "A100-SXM-80GB", 8, 100)
#define T NODES("t", 3, "T4-16GB", 4, 3)
#define H NODES("h", 1, "H100-SXM-80GB", 8, 400)
    static const char *const clusters[] = {CLUSTER(A "," T "," H), CLUSTER(H "," T "," A),
                                           CLUSTER(T "," H "," A), CLUSTER(A "," H "," T)};
#undef A
#undef T
#undef H
    struct hv_bound first = bound_of(clusters[0], MODEL(24, 4096), JOB(64, ""), &a);
    for (size_t i = 1; i < HV_COUNT(clusters); i++) {
        struct hv_bound b = bound_of(clusters[i], MODEL(24, 4096), JOB(64, ""), &a);
        assert_true(b.iteration_s == first.iteration_s && b.any_s == first.any_s);
        assert_string_equal(b.why, first.why);
    }
    hv_arena_free(&a);
}

/* ---- the least exchange ------------------------------------------------------------------------
 */

static const char links_cluster[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"links\",\"nodes\":["
    "{\"name\":\"h\",\"count\":2,\"device\":\"H100-SXM-80GB\",\"devices\":8,"
    "\"nic\":{\"bandwidth_GBps\":400,\"count\":8},\"zone\":\"east\"},"
    "{\"name\":\"a\",\"count\":2,\"devices\":[{\"device\":\"A100-SXM-80GB\",\"count\":4},"
    "{\"device\":\"L40S-48GB\",\"count\":4}],\"intra\":{\"kind\":\"pcie\",\"bandwidth_GBps\":25},"
    "\"nic\":{\"bandwidth_GBps\":25},\"zone\":\"west\"},"
    "{\"name\":\"v\",\"count\":3,\"device\":\"V100-PCIe-32GB\",\"devices\":4,\"intra\":"
    "{\"kind\":\"pcie\",\"bandwidth_GBps\":12,\"groups\":[{\"devices\":\"0-1\",\"kind\":\"nvlink\","
    "\"bandwidth_GBps\":50},{\"devices\":\"2-3\",\"kind\":\"pcie-root\",\"bandwidth_GBps\":14,"
    "\"shared\":true}]},\"nic\":{\"bandwidth_GBps\":1.25}},"
    "{\"name\":\"m\",\"count\":2,\"device\":\"MI300X-192GB\",\"devices\":8,"
    "\"nic\":{\"bandwidth_GBps\":50}},"
    "{\"name\":\"r\",\"count\":6,\"device\":\"GB200-NVL72\",\"devices\":4,\"domain_nodes\":3,"
    "\"nic\":{\"bandwidth_GBps\":200,\"count\":4}}],"
    "\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5,\"links\":[{\"between\":[\"east\","
    "\"west\"],\"bandwidth_GBps\":1.25,\"latency_us\":30000}]}}";

/** Members for a group: devices of a run, or from anywhere, all of one fabric. */
static size_t random_group(struct hv_rng *r, const struct hv_cluster *c, uint32_t *ids)
{
    size_t want = 2 + (size_t)hv_rng_below(r, 15), n = 0;
    uint32_t at = (uint32_t)hv_rng_below(r, c->n_devices), stride = 1;
    stride += hv_rng_below(r, 2) ? 0 : (uint32_t)hv_rng_below(r, 9);
    const struct hv_device_kind *first = hv_cluster_device(c, at).kind;
    for (; n < want && at < c->n_devices; at += stride) {
        if (strcmp(hv_cluster_device(c, at).kind->fabric, first->fabric) == 0) {
            ids[n++] = at;
        }
    }
    return n;
}

/** Whatever group: no member's kind is promised more than the judge charges it. */
static void no_group_is_faster_than_its_least_exchange(void **state)
{
    (void)state;
    struct world w;
    struct hv_rng r;
    uint32_t ids[16];
    int seen = 0;
    open_world(&w, links_cluster, model_text, job_text);
    const struct hv_cluster *c = w.in.cluster.cluster;
    hv_rng_seed(&r, 3);
    for (int i = 0; i < 20000; i++) {
        size_t n = random_group(&r, c, ids);
        double bytes = exp2(8 + 24 * hv_rng_double(&r));
        for (int half = 0; half < 2 && n > 1; half++) {
            struct hv_collective_query q = {.op = half ? HV_ALL_GATHER : HV_ALL_REDUCE,
                                            .bytes = bytes,
                                            .devices = ids,
                                            .n = n,
                                            .together = 1};
            double time_s = hv_cost_collective(c, &q, NULL).time_s;
            struct hv__least_exchange least[2];
            const struct hv_device_kind *d = hv_cluster_device(c, ids[hv_rng_below(&r, n)]).kind;
            struct hv_arena a = {0};
            const struct hv__reach reach = hv__reach_of(c, d, &a);
            const struct hv__exchange_query of = {d, &reach, (double)n, (double)n,
                                                  bytes * (1 + hv_rng_double(&r))};
            hv__least_exchange(&of, least);
            hv_arena_free(&a);
            double bound_s = least[half].start_s + bytes * least[half].per_byte_s;
            seen += bound_s > 0.8 * time_s;
            if (!(bound_s <= time_s * (1 + 1e-12))) {
                fail_msg("%zu members from %u on, %g bytes: %g s is above %g s", n, ids[0], bytes,
                         bound_s, time_s);
            }
        }
    }
    assert_true(seen > 1000); /* and often it is close */
    close_world(&w);
}

/** What an exchange looks at is listed by class of links and size of houses, not by node group. */
static void many_groups_have_few_links(void **state)
{
    (void)state;
    struct hv_str text = {0};
    struct hv_arena a = {0};
    struct world w;
    hv_str_addf(&text, "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[");
    for (int i = 0; i < 3000; i++) {
        hv_str_addf(&text,
                    "%s{\"name\":\"g%d\",\"device\":\"A100-SXM-80GB\",\"devices\":%d,\"nic\":{"
                    "\"bandwidth_GBps\":%d},\"intra\":{\"kind\":\"nvlink\",\"bandwidth_GBps\":%d}}",
                    i > 0 ? "," : "", i, 1 + i % 3, 1 + i, 1000 + i);
    }
    hv_str_addf(&text, "]}");
    open_world(&w, hv_str_cstr(&text), model_text, job_text);
    const struct hv_cluster *c = w.in.cluster.cluster;
    struct hv__reach r = hv__reach_of(c, c->kinds[0], &a);
    assert_true(r.n_links == 1 && r.links[0].devices == 3 && r.links[0].bytes_per_s == 3999e9);
    assert_true(r.net_bytes_per_s == 3000e9 && r.in_house == 3 && r.devices == 6000);
    for (int each = 3; each >= 1; each--) { /* smaller houses with faster links are kept */
        hv_str_clear(&text);
        hv_str_addf(&text, "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[");
        for (int i = 0; i < 3; i++) {
            hv_str_addf(&text,
                        "%s{\"name\":\"g%d\",\"device\":\"A100-SXM-80GB\",\"devices\":%d,"
                        "\"intra\":{\"kind\":\"nvlink\",\"bandwidth_GBps\":%d}}",
                        i > 0 ? "," : "", i, 1 + (i + each) % 3, 1000 - (i + each) % 3);
        }
        hv_str_addf(&text, "]}");
        struct world small;
        open_world(&small, hv_str_cstr(&text), model_text, job_text);
        c = small.in.cluster.cluster;
        r = hv__reach_of(c, c->kinds[0], &a);
        assert_int_equal(r.n_links, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_true(r.links[i].devices == 3 - (double)i);
            assert_true(r.links[i].bytes_per_s == (998 + (double)i) * 1e9);
        }
        close_world(&small);
    }
    close_world(&w);
    hv_arena_free(&a);
    hv_str_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_have_to_fit),
        cmocka_unit_test(kinds_that_hold_too_little_are_not_enough),
        cmocka_unit_test(slow_links_that_cannot_be_avoided_count),
        cmocka_unit_test(fill_and_drain_count),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(order_of_the_file_does_not_count),
        cmocka_unit_test(no_group_is_faster_than_its_least_exchange),
        cmocka_unit_test(many_groups_have_few_links),
    };
    return cmocka_run_group_tests_name("eval_bound_terms", tests, NULL, NULL);
}
