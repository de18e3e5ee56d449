/** Tensor parallelism on grids and cubes of ranks: Optimus (Xu et al. 2021), Tesseract (Wang et al.
 * 2021), whose depth holds copies of the weights, and 3d (Bian et al. 2021). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

static struct hv_verdict judge_stage(struct world *w, struct hv_arena *a, const char *devices,
                                     const char *degrees)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":"
                   "\"%s\",\"layers\":[0,24],%s}]}]",
                   devices, degrees);
    return judge(w, a, false, text);
}

/** Grids of one device each share the sequences and sum their gradients: that is data parallelism
 * by another name, and nothing is free. Also where states are sharded inside each grid's ranks. */
static void depth_alone_is_data_parallelism(void **state)
{
    struct hv_arena a = {0};
    static const char *const pairs[][2] = {
        {"\"tp\":{\"scheme\":\"2.5d\",\"degree\":4,\"depth\":4}", "\"dp\":4"},
        {"\"tp\":{\"scheme\":\"2.5d\",\"degree\":8,\"depth\":8}", "\"dp\":8"},
        {"\"tp\":{\"scheme\":\"2.5d\",\"degree\":2,\"depth\":2},\"dp\":4", "\"dp\":8"}};
    static const char *const devices[] = {"a[0].0-3", "a[0].*", "a[0].*"};
    for (size_t i = 0; i < HV_COUNT(pairs); i++) {
        struct hv_verdict grid = judge_stage(*state, &a, devices[i], pairs[i][0]),
                          dp = judge_stage(*state, &a, devices[i], pairs[i][1]);
        assert_near(grid.metrics.iteration_s, dp.metrics.iteration_s, 1e-6);
        assert_near(grid.metrics.breakdown_s[HV_TIME_DP], dp.metrics.breakdown_s[HV_TIME_DP], 1e-6);
        assert_true(grid.metrics.breakdown_s[HV_TIME_DP] > 0);
        assert_near(grid.memory[0].weights_bytes, dp.memory[0].weights_bytes, 1e-9);
        assert_near(grid.memory[0].optimizer_bytes, dp.memory[0].optimizer_bytes, 1e-9);
        assert_near(grid.memory[0].activations_bytes, dp.memory[0].activations_bytes, 0.01);
    }
    hv_arena_free(&a);
}

/** Weights are cut by q × q alone: with twice the ranks in depth each still holds as much, as the
 * paper says (12 h² / q² per layer); 2d of as many ranks would hold less. */
static void weights_are_cut_by_the_grid(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict flat = judge_stage(*state, &a, "a[0].0-3",
                                         "\"tp\":{\"scheme\":\"2d\",\"degree\":4}"),
                      deep = judge_stage(*state, &a, "a[0].*",
                                         "\"tp\":{\"scheme\":\"2.5d\",\"degree\":8,\"depth\":2}");
    assert_near(deep.memory[0].weights_bytes, flat.memory[0].weights_bytes, 0.01);
    double layers = 24 * 12.0 * 2560 * 2560 / 4 * 2; /* bytes of 16-bit weights without the ends */
    assert_true(deep.memory[0].weights_bytes > layers);
    assert_near(deep.memory[0].activations_bytes, flat.memory[0].activations_bytes / 2, 0.1);
    assert_true(flat.metrics.breakdown_s[HV_TIME_DP] == 0);
    assert_true(deep.metrics.breakdown_s[HV_TIME_DP] > 0);
    hv_arena_free(&a);
}

/** Beside the gradients' sum, an iteration with sharded states has each grid scatter among its data
 * ranks, and the grids add the shards. */
static void sharded_states_are_added_between_grids(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict one = judge_stage(*state, &a, "a[0].0-3", "\"dp\":4,\"zero\":1"),
                      two = judge_stage(*state, &a, "a[0].*",
                                        "\"tp\":{\"scheme\":\"2.5d\",\"degree\":2,\"depth\":2},"
                                        "\"dp\":4,\"zero\":1");
    assert_near(two.memory[0].optimizer_bytes, one.memory[0].optimizer_bytes, 1e-9);
    assert_true(two.metrics.breakdown_s[HV_TIME_DP] > one.metrics.breakdown_s[HV_TIME_DP]);
    hv_arena_free(&a);
}

/* ---- plain links ----------------------------------------------------------------------------- */

/** One block of hidden width 1024 and a vocabulary of 64 on nodes of four devices, links of 100
 * GB/s inside them and `nic_GBps` per node between them; latency 0, nothing calibrated. */
struct plain {
    double tflops, nic_GBps;
    const char *devices, *tp, *more;
    int micro_batch, sequence;
};

static struct hv_verdict plain_verdict(const struct plain *x, struct hv_arena *a)
{
    char cluster[1024], job[256], body[512];
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"p\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":4,\"device\":\"P\",\"devices\":4,\"intra\":{\"kind\":\"nvlink\","
                   "\"bandwidth_GBps\":100,\"latency_us\":0,\"curve\":\"plain\"},\"nic\":{"
                   "\"bandwidth_GBps\":%.17g,\"count\":4,\"latency_us\":0,\"curve\":\"plain\"}}],"
                   "\"devices\":{\"P\":{\"memory_GiB\":800,\"bandwidth_GBps\":1e6,"
                   "\"dense_TFLOPS\":{\"bf16\":%.17g},\"rates\":\"plain\"}}}",
                   x->nic_GBps, x->tflops);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":%d,"
                   "\"precision\":\"bf16\",\"optimizer\":\"none\",\"attention\":\"flash\","
                   "\"dropout\":\"off\"}",
                   x->micro_batch, x->sequence);
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":1,\"stages\":[{"
                   "\"devices\":%s,\"layers\":[0,1],\"tp\":{%s}%s}]}]",
                   x->micro_batch, x->devices, x->tp, x->more != NULL ? x->more : "");
    struct world w;
    open_world(&w, cluster,
               "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
               "\"layers\":1,\"hidden\":1024,\"heads\":16,\"ffn\":4096,\"ffn_kind\":\"gelu\","
               "\"vocab\":64,\"norm\":\"layernorm\",\"position\":\"rope\"}",
               job);
    struct hv_verdict v = judge(&w, a, false, body);
    close_world(&w);
    if (v.findings.n > 0) {
        fail_msg("%s: %s", v.findings.items[0].where, v.findings.items[0].text);
    }
    return v;
}

static double plain_tp_s(struct plain x)
{
    struct hv_arena a = {0};
    double time_s = plain_verdict(&x, &a).metrics.breakdown_s[HV_TIME_TP];
    hv_arena_free(&a);
    return time_s;
}

enum { B = 8, S = 512, H = 1024, V = 64 };
#define BSH ((double)B * S * H)
#define HH  ((double)H * H)

/** Devices so fast that only links count: a rank's links carry every panel. */
static void panels_of_a_grid(void **state)
{
    (void)state;
    double q = 2, per_s = 100e9 / 2; /* values of 2 bytes */
    double block = (7 * BSH + 12 * HH) / q, table = (double)V * H / q, head = BSH / q + table;
    double norms = 3 * 2 * (2 * B * S / q) * 2; /* LayerNorm: 2 sums of 4 bytes, both ways */
    const struct plain x = {1e7, 1, "\"a[0].*\"", "\"scheme\":\"2d\",\"degree\":4", "", B, S};
    assert_near(plain_tp_s(x), (3 * block + 2 * table + 3 * head + norms) / per_s, 3e-4);
    struct plain again = x;
    again.more = ",\"recompute\":\"full\"";
    norms += 2 * (2 * B * S / q) * 2; /* of the block, once more */
    assert_near(plain_tp_s(again), (4 * block + 2 * table + 3 * head + norms) / per_s, 3e-4);
}

/** Slow devices hide all panels but the first of each product, and the last sums. */
static void panels_beside_products(void **state)
{
    (void)state;
    double per_s = 100e9 / 2, share = 1.0 / 4;                         /* a panel of a 2 x 2 grid */
    static const double in[] = {1, 1, 1, 4}, weights[] = {3, 1, 4, 4}; /* qkv, out, up, down */
    double a = share * BSH, w = share * HH, table = share * V * H, sum = 0;
    for (int i = 0; i < 4; i++) {
        double one = in[i] * a + weights[i] * w; /* forward before; twice before and behind */
        sum += 3 * one;
    }
    sum += 3 * (a + table) + 2 * 2 * table; /* head; a look-up computes nothing */
    double norms = 3 * 2 * (2 * B * S / 2.0) * 2;
    const struct plain x = {0.001, 1, "\"a[0].*\"", "\"scheme\":\"2d\",\"degree\":4", "", B, S};
    assert_near(plain_tp_s(x), (sum + norms) / per_s, 1e-6);
}

/** Blocks of a cube: gathers of inputs and weights and a scatter of outputs, all exposed forward;
 * backward a gather, then two scatters. Gathering again adds inputs and weights. */
static void blocks_of_a_cube(void **state)
{
    (void)state;
    double per_s = 100e9 / 2, f = (1 - 1.0 / 2) / 4; /* of a gathered block of 1 / q² */
    double block = f * (16 * BSH + 12 * HH), table = f * V * H, logits = f * B * S * V;
    double head = f * BSH + table + logits, look_up = table + f * BSH;
    double norms = 3 * 2 * (2 * B * S / 4.0) * 2;
    const struct plain x = {
        1e7, 400, "[\"a[0].*\",\"a[1].*\"]", "\"scheme\":\"3d\",\"degree\":8", "", B, S};
    assert_near(plain_tp_s(x), (2 * (block + look_up + head) + norms) / per_s, 1e-4);
    struct plain again = x;
    again.tp = "\"scheme\":\"3d\",\"degree\":8,\"regather\":true";
    double more = f * (8 * BSH + 12 * HH + V * H); /* of the block and the head */
    assert_near(plain_tp_s(again), plain_tp_s(x) + more / per_s, 1e-4);
    again.more = ",\"recompute\":\"full\""; /* has just gathered */
    struct plain full = x;
    full.more = again.more;
    assert_near(plain_tp_s(again), plain_tp_s(full) + f * (BSH + V * H) / per_s, 1e-4);
}

/** What is gathered again is not kept: per product q - 1 more parts of the input and the weights.
 */
static void gathered_blocks_take_memory(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct plain x = {1, 100, "[\"a[0].*\",\"a[1].*\"]", "\"scheme\":\"3d\",\"degree\":8", "",
                      B, S};
    double kept = plain_verdict(&x, &a).memory[0].activations_bytes;
    x.tp = "\"scheme\":\"3d\",\"degree\":8,\"regather\":true";
    double dropped = plain_verdict(&x, &a).memory[0].activations_bytes;
    double inputs = (7 + 1) * BSH / 4 * (1 - 1.0 / 2), weights = (12 * HH + V * H) / 4;
    assert_near(kept - dropped, 2 * (inputs + weights), 0.06); /* and fragments of memory */
    hv_arena_free(&a);
}

/** Rows are neighbours in the order of devices: large inputs go along rows, large weights along
 * columns, and whichever is larger belongs inside nodes. */
static void the_order_of_devices_places_axes(void **state)
{
    (void)state;
    const char *rows_near = "\"a[0-3].*\"",
               *columns_near = "[\"a[0-3].0\",\"a[0-3].1\",\"a[0-3].2\",\"a[0-3].3\"]";
    struct plain wide = {1e7, 1, rows_near, "\"scheme\":\"2d\",\"degree\":16", "", 64, 512};
    struct plain turned = wide;
    turned.devices = columns_near;
    assert_true(plain_tp_s(wide) < 0.6 * plain_tp_s(turned)); /* inputs of 234 MB, weights of 12 */
    wide.micro_batch = turned.micro_batch = 4;
    wide.sequence = turned.sequence = 32;
    assert_true(plain_tp_s(turned) < 0.6 * plain_tp_s(wide));
    /* four columns share the NICs of every node; what goes along rows is hardly seen */
    wide = (struct plain){1e7, 1, rows_near, "\"scheme\":\"2d\",\"degree\":16", "", 4, 32};
    double weights = (3 * 12 * HH + 5 * (double)V * H) / 4;
    double inputs = (3 * 8 * 4.0 * 32 * H / 4 + 3 * 2 * 2 * 2 * 4.0 * 32) * 2 / 100e9;
    double time_s = plain_tp_s(wide), far_s = 4 * weights * 2 / 1e9;
    if (!(time_s >= far_s && time_s <= far_s + inputs)) {
        fail_msg("%.9g s is not between %.9g and %.9g", time_s, far_s, far_s + inputs);
    }
    double before = HUGE_VAL;
    for (double nic = 1; nic < 100; nic *= 2) {
        wide.nic_GBps = nic;
        time_s = plain_tp_s(wide);
        assert_true(time_s <= before);
        before = time_s;
    }
}

/** Panels are in two buffers of each operand: of four devices with a quarter of everything. */
static void panels_take_memory(void **state)
{
    struct world *w = *state;
    struct hv_part_query q = {.device = hv_cluster_device(w->in.cluster.cluster, 0).kind,
                              .tp = 4,
                              .cp = 1,
                              .ep = 1,
                              .tp_scheme = HV_TP_2D,
                              .sequences = 8,
                              .tokens = 2048};
    double h = 2560, x = 8 * 2048 * h / 4;
    struct hv_part_cost c = hv_cost_part(w->cost, HV_PART_ATTENTION, 0, &q, NULL);
    double scores = 0;
    assert_true(c.transient_bytes >= 2 * 2 * (x + 3 * h * h / 4) + scores);
    q.tp = 1;
    q.tp_scheme = HV_TP_1D;
    q.sequences = 2; /* as many values of every kind on this rank, and no buffers */
    struct hv_part_cost one = hv_cost_part(w->cost, HV_PART_FFN, 0, &q, NULL);
    q.tp = 4;
    q.tp_scheme = HV_TP_2D;
    q.sequences = 8;
    struct hv_part_cost four = hv_cost_part(w->cost, HV_PART_FFN, 0, &q, NULL);
    assert_near(four.transient_bytes - one.transient_bytes, 2 * 2 * (4 * x + 4 * h * h / 4), 1e-9);
    assert_near(four.saved_bytes, one.saved_bytes, 1e-9);
    assert_near(four.parameters,
                hv_block_ffn_parameters(w->in.model.model, w->in.model.model->blocks) / 4, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_alone_is_data_parallelism),
        cmocka_unit_test(weights_are_cut_by_the_grid),
        cmocka_unit_test(sharded_states_are_added_between_grids),
        cmocka_unit_test(panels_of_a_grid),
        cmocka_unit_test(panels_beside_products),
        cmocka_unit_test(blocks_of_a_cube),
        cmocka_unit_test(gathered_blocks_take_memory),
        cmocka_unit_test(the_order_of_devices_places_axes),
        cmocka_unit_test(panels_take_memory),
    };
    return cmocka_run_group_tests_name("eval grids", tests, setup, teardown);
}
