/** Experts that travel to tokens: FasterMoE's shadows and Janus's experts, on plain links and
 * rates.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "tests/eval_fixture.h"

/** One layer with experts on devices that compute and copy in no time, unless told otherwise. */
struct asked {
    int nodes, devices; /**< of a node */
    double tflops, nic_gbps;
    const char *precision, *routing, *moe;
    int experts, top_k, ffn, sequence, batch, micro_batch; /**< batch: sequences of a rank */
};

static void assert_near(double got, double want, double by)
{
    if (!(fabs(got - want) <= by * fabs(want))) {
        fail_msg("%.17g is not %.17g", got, want);
    }
}

static struct hv_metrics metrics_of(struct asked q)
{
    char cluster[1024], model[1024], job[2048], body[1024];
    int n = q.nodes * q.devices, micro = q.micro_batch > 0 ? q.micro_batch : q.batch;
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"plain\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":%d,\"device\":\"P\",\"devices\":%d,\"intra\":{\"kind\":\"nvlink\","
                   "\"bandwidth_GBps\":1e6,\"latency_us\":0,\"curve\":\"plain\"},\"nic\":{"
                   "\"bandwidth_GBps\":%.17g,\"latency_us\":0,\"curve\":\"plain\"}}],\"devices\":{"
                   "\"P\":{\"memory_GiB\":800,\"bandwidth_GBps\":1e6,\"dense_TFLOPS\":{\"%s\":"
                   "%.17g},\"rates\":\"plain\"}}}",
                   q.nodes, q.devices, q.nic_gbps, q.precision, q.tflops);
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
                   "\"layers\":2,\"hidden\":1024,\"heads\":8,\"kv_heads\":8,\"ffn\":4096,"
                   "\"ffn_kind\":\"gelu\",\"ffn_bias\":false,\"vocab\":1000,\"max_sequence\":8192,"
                   "\"moe\":{\"experts\":%d,\"top_k\":%d,\"ffn\":%d,\"first_dense\":1}}",
                   q.experts, q.top_k, q.ffn);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":%d,"
                   "\"precision\":\"%s\",\"grad_precision\":\"same\",\"optimizer\":\"adam\"%s%s}",
                   n * q.batch, q.sequence, q.precision, q.routing != NULL ? ",\"routing\":" : "",
                   q.routing != NULL ? q.routing : "");
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":[{"
                   "\"devices\":\"a[0-%d].*\",\"layers\":[0,2],\"dp\":%d,\"ep\":%d,\"moe\":{"
                   "\"all_to_all\":\"flat\"%s}}]}],\"sync\":{\"overlap\":false}",
                   n * micro, q.batch / micro, q.nodes - 1, n, n, q.moe);
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, cluster, model, job);
    struct hv_metrics m = judge(&w, &a, false, body).metrics;
    hv_arena_free(&a);
    close_world(&w);
    return m;
}

/* ---- shadows -------------------------------------------------------------------------------- */

/** Tokens of eight ranks: experts get 4000, 1500, 1200 and 300; nobody has own tokens at the
 * hottest one, and with it on all ranks nobody computes or receives more than 1500. */
static const char four_loads[] =
    "{\"kind\":\"trace\",\"counts\":[[["
    "[0,750,600,0,0,0,0,0],[0,0,600,300,0,0,0,0],[300,0,0,0,0,0,0,0],[500,750,0,0,0,0,0,0],"
    "[800,0,0,0,0,0,0,0],[800,0,0,0,0,0,0,0],[800,0,0,0,0,0,0,0],[800,0,0,0,0,0,0,0]]]]}";
/** The same with 2000 at the hottest one. */
static const char half_load[] =
    "{\"kind\":\"trace\",\"counts\":[[["
    "[0,750,600,0,0,0,0,0],[0,0,600,300,0,0,0,0],[300,0,0,0,0,0,0,0],[500,750,0,0,0,0,0,0],"
    "[300,0,0,0,500,0,0,0],[300,0,0,0,500,0,0,0],[300,0,0,0,0,500,0,0],[300,0,0,0,0,500,0,0]]]]}";

/** Milliseconds of an iteration without the sums of gradients after it. */
static double shadowed_ms(const char *routing, const char *moe)
{
    struct hv_metrics m = metrics_of((struct asked){.nodes = 8,
                                                    .devices = 1,
                                                    .tflops = 50,
                                                    .nic_gbps = 12.5,
                                                    .precision = "fp32",
                                                    .routing = routing,
                                                    .moe = moe,
                                                    .experts = 8,
                                                    .top_k = 1,
                                                    .ffn = 2048,
                                                    .sequence = 875,
                                                    .batch = 1});
    return (m.iteration_s - m.breakdown_s[HV_TIME_DP]) * 1e3;
}

/** FasterMoE's model (He et al. 2022; fastmoe, shadow_policy.py): 3 · 4αH²/F and 4 · Hw/BW for each
 * of the most tokens of a rank, and 2αH²w/BW for a shadow; α 2, H 1024, fp32, 12.5 GB/s, 50 TFLOPS.
 * 4000 tokens take 7.256 ms, the shadow of the hottest expert 4.063 ms. */
static void shadow_of_the_hottest_expert(void **state)
{
    (void)state;
    const char *shadow = ",\"copies\":{\"0\":\"*\"},\"copy_life\":\"iteration\"";
    double base_ms = shadowed_ms(four_loads, ""), half_ms = shadowed_ms(half_load, "");
    double token_ms = (3 * 4 * 2 * 1024.0 * 1024 / 50e12 + 4 * 1024 * 4 / 12.5e9) * 1e3;
    assert_near(base_ms - half_ms, 2000 * token_ms, 1e-4);
    double rest_ms = base_ms - 4000 * token_ms; /* a dense layer, attention, router, ends */
    assert_near(4000 * token_ms, 7.256212, 1e-4);
    assert_near(shadowed_ms(four_loads, shadow) - rest_ms, 4.063257, 1e-4);
    /* two shadows: one of the two kinds of work falls less than the broadcast costs */
    const char *two = ",\"copies\":{\"0\":\"*\",\"1\":\"*\"},\"copy_life\":\"iteration\"";
    assert_true(shadowed_ms(four_loads, two) > shadowed_ms(four_loads, shadow));
    /* copies that stay are never sent */
    double kept_ms = shadowed_ms(four_loads, ",\"copies\":{\"0\":\"*\"}");
    double send_ms = 2 * 2 * 1024.0 * 1024 * 4 / 12.5e9 * 1e3;
    assert_near(shadowed_ms(four_loads, shadow) - kept_ms, send_ms, 1e-4);
}

/** Shadows set out once in an iteration, however many micro-batches it has, and hide behind the
 * layer before theirs where they set out early. */
static void shadows_set_out_once(void **state)
{
    (void)state;
    struct asked q = {.nodes = 8,
                      .devices = 1,
                      .tflops = 50,
                      .nic_gbps = 12.5,
                      .precision = "fp32",
                      .experts = 8,
                      .top_k = 1,
                      .ffn = 2048,
                      .sequence = 875,
                      .batch = 8,
                      .micro_batch = 1};
    double send_s = 2 * 2 * 1024.0 * 1024 * 4 / 12.5e9, ep_s[3];
    const char *const keys[] = {",\"copies\":{\"0\":\"*\"}",
                                ",\"copies\":{\"0\":\"*\"},\"copy_life\":\"iteration\"",
                                ",\"copies\":{\"0\":\"*\"},\"copy_life\":\"iteration\","
                                "\"prefetch\":1"};
    for (int i = 0; i < 3; i++) {
        q.moe = keys[i];
        ep_s[i] = metrics_of(q).breakdown_s[HV_TIME_EP];
    }
    assert_near(ep_s[1] - ep_s[0], send_s, 1e-4);
    /* the dense layer's forward pass: projections, causal scores and a feed-forward of 4096 */
    double h = 1024, t = 875, dense_s = t * (2 * 4 * h * h + 2 * 2 * h * 4096) / 50e12;
    assert_true(ep_s[2] - ep_s[0] < send_s - dense_s);
    assert_true(ep_s[2] - ep_s[0] > send_s - 1.2 * dense_s);
}

/* ---- experts that move ---------------------------------------------------------------------- */

static double moved_s(int batch, const char *moe)
{
    return metrics_of((struct asked){.nodes = 4,
                                     .devices = 8,
                                     .tflops = 1e7,
                                     .nic_gbps = 100,
                                     .precision = "bf16",
                                     .moe = moe,
                                     .experts = 32,
                                     .top_k = 2,
                                     .ffn = 4096,
                                     .sequence = 512,
                                     .batch = batch})
        .breakdown_s[HV_TIME_EP];
}

/** Janus (Liu et al. 2023): bytes between machines, tokens over experts, are R = BSk/(4nhE), here
 * with n = 4 machines, h = 1024 and one expert per device: 2 for 32 sequences of 512. */
static void experts_move_where_that_is_less(void **state)
{
    (void)state;
    const char *move = ",\"move\":\"experts\"";
    const int batches[] = {4, 8, 16, 32, 128};
    for (size_t i = 0; i < HV_COUNT(batches); i++) {
        double ratio = batches[i] * 512 * 2 / (4.0 * 4 * 1024);
        assert_near(moved_s(batches[i], "") / moved_s(batches[i], move), ratio, 1e-3);
    }
    /* 24 experts of other machines of 8h² values in, each way once: independent of the tokens */
    double want_s = 2 * 24 * 8 * 1024.0 * 1024 * 2 / 100e9;
    assert_near(moved_s(8, move), want_s, 1e-3);
    assert_near(moved_s(128, move), want_s, 1e-3);
}

/** On links inside a machine that are not free, experts come again before the backward pass. */
static void moved_experts_make_compute_even(void **state)
{
    (void)state;
    struct asked q = {.nodes = 2,
                      .devices = 4,
                      .tflops = 50,
                      .nic_gbps = 100,
                      .precision = "bf16",
                      .routing = "{\"kind\":\"zipf\",\"skew\":1.2}",
                      .experts = 8,
                      .top_k = 2,
                      .ffn = 4096,
                      .sequence = 2048,
                      .batch = 8,
                      .moe = ",\"move\":\"experts\""};
    struct hv_metrics skewed = metrics_of(q);
    q.routing = NULL;
    struct hv_metrics even = metrics_of(q);
    assert_near(skewed.iteration_s, even.iteration_s, 1e-12);
    q.moe = "";
    assert_near(even.breakdown_s[HV_TIME_COMPUTE], metrics_of(q).breakdown_s[HV_TIME_COMPUTE],
                1e-9);
    /* hidden behind the layer before, as far as that computes */
    q.moe = ",\"move\":\"experts\",\"prefetch\":1";
    assert_true(metrics_of(q).iteration_s < even.iteration_s);
}

/**
 * Experts that move share the NICs of their nodes with what goes to the next stage. Two stages of
 * two ranks, every rank on a node of its own: in each of 8 micro-batches the first rank sends its
 * expert of 2 x 1024 x 4096 values to the other and a gradient of as many, and 8192 x 1024 values
 * to the next stage, all over one NIC that carries 1 GB/s.
 */
static void moved_experts_share_links(void **state)
{
    (void)state;
    static const char cluster[] =
        "{\"format\":\"hetviz.cluster/"
        "1\",\"name\":\"plain\",\"nodes\":[{\"name\":\"a\",\"count\":4,"
        "\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":1,\"latency_us\":0,\"curve\":"
        "\"plain\"}}],\"devices\":{\"P\":{\"memory_GiB\":800,\"bandwidth_GBps\":1e6,\"dense_"
        "TFLOPS\":{"
        "\"fp16\":1e6},\"rates\":\"plain\"}}}";
    static const char model[] =
        "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":2,"
        "\"hidden\":1024,\"heads\":8,\"kv_heads\":8,\"ffn\":4096,\"ffn_kind\":\"gelu\","
        "\"ffn_bias\":false,\"vocab\":1000,\"max_sequence\":8192,\"moe\":{\"experts\":2,\"top_k\":"
        "1,"
        "\"ffn\":4096}}";
    static const char job[] = "{\"format\":\"hetviz.job/1\",\"global_batch\":16,\"sequence\":8192,"
                              "\"precision\":\"fp16\",\"optimizer\":\"adam\"}";
    char body[1024];
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":"
                   "\"a[0-1].0\",\"layers\":[0,1],%s},{\"devices\":\"a[2-3].0\",\"layers\":[1,2],%s"
                   "}]}],\"schedule\":{\"name\":\"gpipe\"},\"sync\":{\"overlap\":false}",
                   "\"dp\":2,\"ep\":2,\"moe\":{\"move\":\"experts\"}",
                   "\"dp\":2,\"ep\":2,\"moe\":{\"move\":\"experts\"}");
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, cluster, model, job);
    double pipeline_s = judge(&w, &a, false, body).metrics.pipeline_s;
    double each_s = 2 * 1024 * 4096 * 2 / 1e9, hop_s = 8192 * 1024 * 2 / 1e9;
    if (!(pipeline_s > 8 * (2 * each_s + hop_s) * (1 - 1e-6))) {
        fail_msg("%.9g s are less than the %.9g s of what one NIC sends", pipeline_s,
                 8 * (2 * each_s + hop_s));
    }
    hv_arena_free(&a);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shadow_of_the_hottest_expert),
        cmocka_unit_test(shadows_set_out_once),
        cmocka_unit_test(experts_move_where_that_is_less),
        cmocka_unit_test(moved_experts_make_compute_even),
        cmocka_unit_test(moved_experts_share_links),
    };
    return cmocka_run_group_tests_name("eval_travel", tests, NULL, NULL);
}
