/** Plain links and rates: closed forms of published systems go through the judge digit by digit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/cost/device/gemm.h"
#include "tests/plain_fixture.h"

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
