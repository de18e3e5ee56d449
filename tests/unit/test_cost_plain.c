/** All-to-alls over plain links: published closed forms, digit by digit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "solver/cost/network/collective.h"
#include "tests/eval_fixture.h"

/** Nodes of equal devices; GB/s and us of the device link and of the one NIC per device. */
struct plain {
    int nodes, each;
    double near_GBps, near_us, far_GBps, far_us;
};

/** How an exchange goes. */
struct form {
    enum hv_sync_algorithm algorithm;
    bool pipe, matrix; /**< matrix: the same even parts, as an exchange of unequal parts */
};

static double exchange_ms(const struct plain *p, struct form f, double bytes)
{
    char text[1024];
    size_t n = (size_t)(p->nodes * p->each);
    struct hv_device_catalogue devices = {0};
    struct hv_cluster_doc doc = {0};
    struct hv_err err = {0};
    (void)snprintf(
        text, sizeof text,
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\",\"count\":%d,"
        "\"device\":\"A100-SXM-80GB\",\"devices\":%d,\"intra\":{\"kind\":\"nvlink\","
        "\"bandwidth_GBps\":%.17g,\"latency_us\":%.17g,\"curve\":\"plain\"},\"nic\":{"
        "\"bandwidth_GBps\":%.17g,\"latency_us\":%.17g,\"count\":%d,\"curve\":\"plain\"}}]}",
        p->nodes, p->each, p->near_GBps, p->near_us, p->far_GBps * p->each, p->far_us, p->each);
    if (hv_device_catalogue_read(&devices, &err) != HV_OK ||
        hv_cluster_doc_build(&doc, parse(text, "c"), &devices, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    uint32_t *ids = hv_xcalloc(n, sizeof *ids);
    double *matrix = hv_xcalloc(n * n, sizeof *matrix);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (uint32_t)i;
        for (size_t k = 0; k < n; k++) {
            matrix[i * n + k] = bytes / (double)n;
        }
    }
    const struct hv_collective_query q = {.op = HV_ALL_TO_ALL,
                                          .bytes = bytes,
                                          .devices = ids,
                                          .n = n,
                                          .algorithm = f.algorithm,
                                          .together = 1,
                                          .pipe = f.pipe,
                                          .matrix = f.matrix ? matrix : NULL};
    double ms = hv_cost_collective(doc.cluster, &q, NULL).time_s * 1e3;
    free(ids);
    free(matrix);
    hv_cluster_doc_free(&doc);
    hv_device_catalogue_free(&devices);
    return ms;
}

static void assert_ms(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * want)) {
        fail_msg("%.12g ms instead of %.12g", got, want);
    }
}

static const struct form flat = {HV_ALGO_RING, false, false},
                         flat_matrix = {HV_ALGO_RING, false, true},
                         two_hops = {HV_ALGO_TREE, false, false},
                         two_hops_matrix = {HV_ALGO_TREE, false, true},
                         pipe = {HV_ALGO_RING, true, false},
                         pipe_matrix = {HV_ALGO_RING, true, true};

/** 64 GPUs in 8 nodes, 5 us and 200 GB/s inside, 20 us and 25 GB/s between them (Hwang et al. 2023,
 * Tutel): 63 messages of 1/64 one after the other against 7 of 1/8 inside and then 7 of 1/8. */
static void two_dimensional_hierarchical(void **state)
{
    (void)state;
    const struct plain p = {8, 8, 200, 5, 25, 20};
    const double sizes[] = {1e6, 64e6, 1e9}, in_turn[] = {1.190546875, 3.43, 36.701875},
                 hops[] = {0.214375, 2.695, 39.55};
    for (size_t i = 0; i < 3; i++) {
        assert_ms(exchange_ms(&p, flat, sizes[i]), in_turn[i]);
        assert_ms(exchange_ms(&p, flat_matrix, sizes[i]), in_turn[i]);
        assert_ms(exchange_ms(&p, two_hops, sizes[i]), hops[i]);
        assert_ms(exchange_ms(&p, two_hops_matrix, sizes[i]), hops[i]);
    }
    assert_ms(exchange_ms(&p, flat, 256e6),
              exchange_ms(&p, two_hops, 256e6)); /* where they cross */
}

/** 64 MB over 8 nodes of 4, 12.5 GB/s outside (Shi et al. 2024, ScheMoE): 3 + 4.48 ms over PCIe of
 * 2 GB/s in turn, 4.48 at once; over NVLink of 100 GB/s 4.54 and 4.48. */
static void inside_and_between_at_once(void **state)
{
    (void)state;
    const struct plain pcie = {8, 4, 2, 0, 12.5, 0}, nvlink = {8, 4, 100, 0, 12.5, 0};
    assert_ms(exchange_ms(&pcie, flat, 64e6), 7.48);
    assert_ms(exchange_ms(&pcie, pipe, 64e6), 4.48);
    assert_ms(exchange_ms(&pcie, pipe_matrix, 64e6), 4.48);
    assert_ms(exchange_ms(&nvlink, flat, 64e6), 4.54);
    assert_ms(exchange_ms(&nvlink, pipe, 64e6), 4.48);
    const struct plain slow = {8, 4, 1, 0, 12.5, 0}; /* the inside is the longer one */
    assert_ms(exchange_ms(&slow, pipe, 64e6), 6);
    assert_ms(exchange_ms(&slow, pipe_matrix, 64e6), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_dimensional_hierarchical),
        cmocka_unit_test(inside_and_between_at_once),
    };
    return cmocka_run_group_tests_name("cost_plain", tests, NULL, NULL);
}
