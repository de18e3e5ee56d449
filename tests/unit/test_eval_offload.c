/** What leaves the device memory takes the host link: by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "tests/eval_fixture.h"

static const double pcie_bytes_per_s = 31.5e9; /* PCIe 4.0 x16, as the catalogue has it for A100 */

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

static struct hv_verdict judge_one(struct world *w, struct hv_arena *a, const char *devices,
                                   const char *more)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":64,\"stages\":[{\"devices\":"
                   "\"%s\",\"layers\":[0,24]%s}]}]",
                   devices, more);
    return judge(w, a, false, text);
}

/** Parameters on the only device: its weights over 2 bytes each. */
static double parameters_of(const struct hv_verdict *v)
{
    return v->memory[0].weights_bytes / 2;
}

/**
 * One device, all of Adam on the host: 16-bit gradients leave while the last backward pass runs,
 * the host reads and writes 28 bytes per parameter at its share of 256 GB/s, and the weights come
 * back at the same time.
 */
static void the_optimizer_step_runs_on_the_host(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v =
        judge_one(*state, &a, "a[0].0", ",\"offload\":[{\"what\":\"optimizer\",\"to\":\"host\"}]");
    double n = parameters_of(&v), copy_s = 2 * n / (HV_EFF_HOST * pcie_bytes_per_s);
    double step_s = n * 2.57 / 10e9, shown_s = fmax(0, copy_s - v.stages[0].backward_s);
    assert_near(v.metrics.breakdown_s[HV_TIME_OPTIMIZER], fmax(step_s, copy_s) + shown_s, 1e-3);
    assert_true(v.memory[0].optimizer_bytes == 0 && v.memory[0].master_bytes == 0);
    hv_arena_free(&a);
}

/** Half of the states on the host: device and host work at the same time, the slower counts. */
static void a_part_of_it_runs_beside_the_device(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict none = judge_one(*state, &a, "a[0].0", ""),
                      half = judge_one(*state, &a, "a[0].0",
                                       ",\"offload\":[{\"what\":\"optimizer\",\"frac\":0.5}]"),
                      all = judge_one(*state, &a, "a[0].0",
                                      ",\"offload\":[{\"what\":\"optimizer\"}]");
    double t = half.metrics.breakdown_s[HV_TIME_OPTIMIZER];
    assert_near(t, all.metrics.breakdown_s[HV_TIME_OPTIMIZER] / 2, 0.2);
    assert_true(t > none.metrics.breakdown_s[HV_TIME_OPTIMIZER]);
    assert_near(half.memory[0].optimizer_bytes, none.memory[0].optimizer_bytes / 2, 1e-9);
    hv_arena_free(&a);
}

/**
 * The states on two other devices of the node: half of the gradients goes to each over the device's
 * link, one after the other, they update at their own rate, and nothing meets the host.
 */
static void other_devices_may_keep_the_states(void **state)
{
    struct hv_arena a = {0};
    struct world *w = *state;
    struct hv_verdict own = judge_one(w, &a, "a[0].0", "");
    struct hv_verdict v =
        judge_one(w, &a, "a[0].0", ",\"offload\":[{\"what\":\"optimizer\",\"to\":\"a[0].1-2\"}]");
    double n = parameters_of(&v), rate = hv_cluster_path(w->in.cluster.cluster, 0, 1).bytes_per_s;
    double copy_s = 2 * n / (HV_EFF_HOST * rate),
           shown_s = fmax(0, copy_s - v.stages[0].backward_s);
    double step_s = own.metrics.breakdown_s[HV_TIME_OPTIMIZER] / 2;
    assert_near(v.metrics.breakdown_s[HV_TIME_OPTIMIZER], fmax(step_s, copy_s) + shown_s, 1e-3);
    assert_true(v.memory[0].optimizer_bytes == 0 && v.memory[0].master_bytes == 0);
    hv_arena_free(&a);
}

/** Eight devices that each hold the whole model have one host: it updates eight times as many
 * parameters. Sharded over them (zero 1) it is the model once. */
static void devices_of_a_node_share_its_host(void **state)
{
    struct hv_arena a = {0};
    const char *whole = ",\"dp\":8,\"offload\":[{\"what\":\"optimizer\"}]",
               *shard = ",\"dp\":8,\"zero\":1,\"offload\":[{\"what\":\"optimizer\"}]";
    char text[512];
    double t[2];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":["
                       "{\"devices\":\"a[0].*\",\"layers\":[0,24]%s}]}]",
                       i ? shard : whole);
        struct hv_verdict v = judge(*state, &a, false, text);
        t[i] = parameters_of(&v) * 2.57 / 10e9 * (i ? 1 : 8);
        assert_true(v.metrics.breakdown_s[HV_TIME_OPTIMIZER] >= t[i] * 0.999);
        assert_true(v.metrics.iteration_s > v.metrics.pipeline_s + t[i] * 0.999);
    }
    hv_arena_free(&a);
}

/** Weights on the host come in with every forward and every backward pass; the layers hide what
 * they can: with one token per micro-batch that is next to nothing. */
static void weights_come_in_with_every_pass(void **state)
{
    struct world w;
    struct hv_arena a = {0};
    (void)state;
    open_world(&w, cluster_text, model_text,
               "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":64,\"precision\":"
               "\"fp16\",\"optimizer\":\"adam\"}");
    struct hv_verdict none = judge_one(&w, &a, "a[0].0", ""),
                      all = judge_one(&w, &a, "a[0].0", ",\"offload\":[{\"what\":\"weights\"}]");
    double copy_s = none.memory[0].weights_bytes / (HV_EFF_HOST * pcie_bytes_per_s);
    assert_true(copy_s > none.stages[0].backward_s);
    assert_near(all.stages[0].forward_s, copy_s, 0.02);
    assert_near(all.stages[0].backward_s, copy_s, 0.02);
    assert_true(all.metrics.breakdown_s[HV_TIME_ZERO] > 0);
    hv_arena_free(&a);
    close_world(&w);
}

/** A host whose memory is slower than the links of its devices together slows all of them. */
static void a_slow_host_memory_is_shared(void **state)
{
    struct hv_arena a = {0};
    (void)state;
    double t[2];
    for (int i = 0; i < 2; i++) {
        struct world w;
        char cluster[512];
        (void)snprintf(cluster, sizeof cluster,
                       "{\"format\":\"hetviz.cluster/1\",\"name\":\"host\",\"nodes\":[{\"name\":"
                       "\"a\",\"count\":1,\"device\":\"A100-SXM-80GB\",\"devices\":8,"
                       "\"host_memory_GBps\":%d}]}",
                       i ? 20 : 400);
        open_world(&w, cluster, model_text, job_text);
        t[i] = judge(&w, &a, false,
                     "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{"
                     "\"devices\":\"a[0].*\",\"layers\":[0,24],\"dp\":8,\"offload\":[{\"what\":"
                     "\"activations\"}]}]}]")
                   .metrics.pipeline_s;
        close_world(&w);
    }
    assert_true(t[1] > 4 * t[0]);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_optimizer_step_runs_on_the_host),
        cmocka_unit_test(a_part_of_it_runs_beside_the_device),
        cmocka_unit_test(other_devices_may_keep_the_states),
        cmocka_unit_test(devices_of_a_node_share_its_host),
        cmocka_unit_test(weights_come_in_with_every_pass),
        cmocka_unit_test(a_slow_host_memory_is_shared),
    };
    return cmocka_run_group_tests_name("eval offload", tests, setup, teardown);
}
