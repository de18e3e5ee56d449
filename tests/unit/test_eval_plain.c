/** Plain links and rates: closed forms of published systems go through the judge digit by digit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "solver/cost/device/gemm.h"
#include "tests/eval_fixture.h"

/** Ranks that reduce the gradients of equal measured layers over plain links of nothing else. */
struct ring {
    int ranks, layers;
    double gbps, latency_us;
    double forward_ms, backward_ms, update_ms; /**< per layer; update 0: no optimizer */
    double parameter_bytes;                    /**< per layer, fp32 */
    const char *stage, *sync;                  /**< further members of the stage, and `sync` */
};

static void add_layers(char *out, size_t n, const struct ring *r)
{
    size_t at = 0;
    for (int i = 0; i < r->layers; i++) {
        at += (size_t)snprintf(out + at, n - at,
                               "%s{\"forward_ms\":{\"P\":%.17g},\"backward_ms\":{\"P\":%.17g},"
                               "\"update_ms\":{\"P\":%.17g},\"parameter_bytes\":%.17g,"
                               "\"activation_bytes\":0,\"output_bytes\":0}",
                               i > 0 ? "," : "", r->forward_ms, r->backward_ms, r->update_ms,
                               r->parameter_bytes);
    }
}

/** Milliseconds of one iteration. */
static double iteration_ms(const struct ring *r)
{
    char cluster[1024], model[4096], layers[3072], job[256], body[512];
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"ring\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":%d,\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":%.17g,"
                   "\"latency_us\":%.17g,\"curve\":\"plain\"}}],\"devices\":{\"P\":{"
                   "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},"
                   "\"rates\":\"plain\"}}}",
                   r->ranks, r->gbps, r->latency_us);
    add_layers(layers, sizeof layers, r);
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\","
                   "\"layers\":[%s]}",
                   layers);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":1,"
                   "\"precision\":\"fp32\",\"optimizer\":\"%s\"}",
                   r->ranks, r->update_ms > 0 ? "adamw" : "none");
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":1,\"stages\":[{\"devices\":"
                   "\"a[0-%d].0\",\"layers\":[0,%d],\"dp\":%d%s}]}],\"schedule\":{\"name\":"
                   "\"1f1b\"},\"sync\":{%s}",
                   r->ranks, r->ranks - 1, r->layers, r->ranks, r->stage, r->sync);
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, cluster, model, job);
    double ms = judge(&w, &a, false, body).metrics.iteration_s * 1e3;
    hv_arena_free(&a);
    close_world(&w);
    return ms;
}

static void assert_ms(struct ring r, double want)
{
    r.stage = r.stage != NULL ? r.stage : "";
    double got = iteration_ms(&r);
    if (!(fabs(got - want) <= 1e-6 * want)) {
        fail_msg("%.9g ms instead of %.9g", got, want);
    }
}

/** Four layers of 10 MB whose backward passes take 2 ms each, four ranks, 10 GB/s: a ring
 * all-reduce takes 0.15 ms per MB (Li et al. 2020, PyTorch Distributed, section 3.2). */
static const struct ring ddp = {
    .ranks = 4, .layers = 4, .gbps = 10, .backward_ms = 2, .parameter_bytes = 10e6};

static struct ring with_sync(struct ring r, const char *sync)
{
    r.sync = sync;
    return r;
}

/** 8 ms and a ring of 40 MB: six steps of a quarter each; every step costs one latency. */
static void ring_steps(void **state)
{
    (void)state;
    struct ring slow = ddp;
    slow.latency_us = 1000;
    assert_ms(with_sync(ddp, "\"overlap\":false"), 14);
    assert_ms(with_sync(slow, "\"overlap\":false"), 20);
}

/** A bucket is closed after it has reached its size. First size apart: the last layer alone, 2
 * to 3.5 ms, then 30 MB, 8 to 12.5 ms; one size: 30 MB from 6 to 10.5 ms, then 10 MB to 12 ms. */
static void buckets(void **state)
{
    (void)state;
    assert_ms(with_sync(ddp, "\"bucket_MiB\":[1,25]"), 12.5);
    assert_ms(with_sync(ddp, "\"bucket_MiB\":25"), 12);
}

/** Layers that are there at a tick are fused up to 64 MB: 5 to 8 and 10 to 13 ms with ticks of 5
 * ms; with 1 ms every layer goes alone. With 1 ms a step of the ring the order turns (Sergeev and
 * Del Balso 2018). */
static void cycles(void **state)
{
    (void)state;
    struct ring slow = ddp;
    slow.latency_us = 1000;
    const char *five = "\"algorithm\":\"ring\",\"bucket_MiB\":61.03515625,\"cycle_ms\":5";
    const char *one = "\"algorithm\":\"ring\",\"bucket_MiB\":61.03515625,\"cycle_ms\":1";
    assert_ms(with_sync(ddp, five), 13);
    assert_ms(with_sync(ddp, one), 9.5);
    assert_ms(with_sync(slow, five), 23);
    assert_ms(with_sync(slow, one), 32);
}

/** Gradients and weights of 4 GB over eight ranks at 100 GB/s, an update of 28 ms: 70 + 28 ms
 * replicated, 35 + 3.5 + 35 ms sharded, beside 2 ms of backward pass (Xu et al. 2020). */
static void sharded_update(void **state)
{
    (void)state;
    struct ring r = {.ranks = 8,
                     .layers = 1,
                     .gbps = 100,
                     .backward_ms = 2,
                     .update_ms = 28,
                     .parameter_bytes = 4e9,
                     .sync = "\"overlap\":false"};
    assert_ms(r, 2 + 98);
    r.stage = ",\"zero\":{\"stage\":1}";
    assert_ms(r, 2 + 73.5);
}

/** Three equal units of 2 ms forward and 4 ms backward (Zhao et al. 2023, PyTorch FSDP, section
 * 3.3), over two ranks at 10 GB/s: gathers and scatters of 1 or 3 ms in one stream, at most two
 * units whole, the last one kept for its backward pass. With 1 ms the first gather and the last
 * scatter show; with 3 ms the forward pass ends at 11 ms, and AG2 RS3 AG1 RS2 RS1 follow from 11,
 * 15, 18, 21 and 25 ms on. */
static void sharded_units(void **state)
{
    (void)state;
    struct ring r = {.ranks = 2,
                     .layers = 3,
                     .gbps = 10,
                     .forward_ms = 2,
                     .backward_ms = 4,
                     .parameter_bytes = 20e6,
                     .stage = ",\"zero\":3",
                     .sync = ""};
    assert_ms(r, 20);
    r.parameter_bytes = 60e6;
    assert_ms(r, 28);
}

/** One layer of 2 m n k FLOPs: with plain rates the peak, however thin the product; a stream the
 * whole bandwidth. */
static void rates(void **state)
{
    (void)state;
    struct hv_device_kind k = {.name = "P", .memory_bytes_per_s = 1e12, .plain_rates = true};
    k.flops_per_s[HV_BF16] = 100e12;
    k.matmul_flops_per_s = 50e12;
    struct hv_gemm_price g = hv_gemm(&k, HV_BF16, 4096, 4096, 4096, 1);
    assert_true(fabs(g.time_s / (2.0 * 4096 * 4096 * 4096 / 100e12) - 1) < 1e-12);
    g = hv_gemm(&k, HV_BF16, 1, 1024, 1024, 1);
    assert_true(fabs(g.time_s / (2.0 * (1024 + 1024 * 1024 + 1024) / 1e12) - 1) < 1e-12);
    assert_true(fabs(hv_stream_s(&k, 1e9) - 1e-3) < 1e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_steps),     cmocka_unit_test(buckets),       cmocka_unit_test(cycles),
        cmocka_unit_test(sharded_update), cmocka_unit_test(sharded_units), cmocka_unit_test(rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
