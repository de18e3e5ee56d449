/** Exchange of gradients and of updated weights, by hand: ranks over plain links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/plain_fixture.h"

static struct ring with_stage(struct ring r, const char *stage)
{
    r.stage = stage;
    return r;
}

/** Two micro-batches through two layers of 10 MB on four ranks: a ring scatters or gathers 10 MB in
 * 0.75 ms. At the end: the first layer's sums go beside the last pass, 8 + 0.75 + 1.5 ms. After
 * each micro-batch: every pass waits for the scatter of its last layer, 2 (4 + 0.75) + 1.5 ms. */
static void stage_1_reduces_after_each_micro_batch(void **state)
{
    (void)state;
    struct ring r = with_sync(ddp, "\"bucket_MiB\":1");
    r.layers = 2;
    r.micro_batches = 2;
    assert_ms(with_stage(r, ",\"zero\":{\"stage\":1}"), 10.25);
    assert_ms(with_stage(r, ",\"zero\":{\"stage\":1,\"reduce\":\"each\"}"), 11);
    assert_ms(with_stage(r, ",\"zero\":{\"stage\":2,\"gather_at\":\"end\"}"), 11);
}

/** Shard groups of two ranks: the first hop scatters 10 MB in 0.5 ms after each of two passes of 2
 * ms, the second sums the shards of 5 MB over both groups in 0.5 ms, once; then the weights are
 * gathered in 0.5 ms (Zhang et al. 2022, MiCS, section 3.4). */
static void two_hops(void **state)
{
    (void)state;
    struct ring r = ddp;
    r.layers = 1;
    r.micro_batches = 2;
    r = with_stage(r, ",\"zero\":{\"stage\":1,\"shard_group\":2,\"reduce\":\"two_hop\"}");
    assert_ms(r, 2 * (2 + 0.5) + 0.5 + 0.5);
}

/** Milliseconds of an iteration of 16 ranks on two nodes whose links inside take no time. */
static double two_nodes_ms(const char *gather)
{
    char body[512];
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":16,\"replicas\":[{\"micro_batches\":1,\"stages\":[{"
                   "\"devices\":\"a[0-1].*\",\"layers\":[0,1],\"dp\":16,\"zero\":{\"stage\":1%s}"
                   "}]}],\"sync\":{\"overlap\":false,\"algorithm\":\"hierarchical\"}",
                   gather);
    struct world w;
    struct hv_arena a = {0};
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"two\",\"nodes\":[{\"name\":\"a\","
               "\"count\":2,\"device\":\"P\",\"devices\":8,\"intra\":{\"bandwidth_GBps\":1e6,"
               "\"latency_us\":0,\"curve\":\"plain\"},\"nic\":{\"bandwidth_GBps\":10,"
               "\"latency_us\":0,\"curve\":\"plain\"}}],\"devices\":{\"P\":{\"memory_GiB\":80,"
               "\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},\"rates\":\"plain\"}}}",
               "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"layers\":[{"
               "\"forward_ms\":{\"P\":0},\"backward_ms\":{\"P\":2},\"parameter_bytes\":16e6,"
               "\"activation_bytes\":0,\"output_bytes\":0}]}",
               "{\"format\":\"hetviz.job/1\",\"global_batch\":16,\"sequence\":1,"
               "\"precision\":\"fp32\",\"optimizer\":\"none\"}");
    double ms = judge(&w, &a, false, body).metrics.iteration_s * 1e3;
    hv_arena_free(&a);
    close_world(&w);
    return ms;
}

/** Weights of 16 MB in shards on two nodes of eight: a flat ring brings 15/16 of them into each
 * node at 10 GB/s, 1.5 ms; by nodes half of them, 0.8 ms: 46.7 % less (Zhang et al. 2022, MiCS,
 * section 3.3). The scatter before takes 0.8 ms by nodes either way. */
static void flat_gathers_send_all_shards_between_nodes(void **state)
{
    (void)state;
    double flat = two_nodes_ms(",\"gather\":\"flat\""), by_nodes = two_nodes_ms("");
    assert_true(fabs(flat - (2 + 0.8 + 1.5)) < 1e-4);
    assert_true(fabs(by_nodes - (2 + 0.8 + 0.8)) < 1e-4);
    assert_true(fabs(two_nodes_ms(",\"gather\":\"hierarchical\"") - by_nodes) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stage_1_reduces_after_each_micro_batch),
        cmocka_unit_test(two_hops),
        cmocka_unit_test(flat_gathers_send_all_shards_between_nodes),
    };
    return cmocka_run_group_tests_name("eval_exchange", tests, NULL, NULL);
}
