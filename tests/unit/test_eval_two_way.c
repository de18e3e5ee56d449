/** Schedules of two directions through the judge: gradients of the copies of a stage, one in each
 * direction, also where their states are sharded. Layers of known size on plain links without
 * latency, so that every time is exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "solver/base/str.h"
#include "solver/base/units.h"
#include "tests/eval_fixture.h"

/** Milliseconds in which a NIC sends the gradients of a layer. */
enum { LAYER_MS = 100 };

/** A plan: as many stages of one layer, on nodes of one device. */
struct two_way {
    const char *schedule; /**< members of `schedule` */
    int stages, dp, count, micro_batches;
    const char *stage; /**< more members of every stage */
    bool turns;        /**< dp ranks take whole micro-batches, `micro_batches` each */
};

static void open_two_way(struct world *w, const struct two_way *x)
{
    static const char cluster[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\",\"count\":32,"
        "\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":1,\"latency_us\":0,\"curve\":"
        "\"plain\"}}],\"network\":{\"bandwidth_GBps\":1000,\"latency_us\":0,\"curve\":\"plain\"},"
        "\"devices\":{\"P\":{\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":"
        "100},\"rates\":\"plain\"}}}";
    char job[256];
    struct hv_str model = {0};
    hv_str_adds(&model, "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\","
                        "\"layers\":[");
    for (int i = 0; i < x->stages; i++) {
        hv_str_addf(&model,
                    "%s{\"forward_ms\":{\"P\":1},\"backward_ms\":{\"P\":2},\"parameter_bytes\":%d,"
                    "\"activation_bytes\":1e6,\"output_bytes\":0}",
                    i > 0 ? "," : "", LAYER_MS * 1000000);
    }
    hv_str_adds(&model, "]}");
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":1,"
                   "\"precision\":\"fp32\",\"optimizer\":\"none\"}",
                   x->micro_batches * x->dp * x->count);
    open_world(w, cluster, hv_str_cstr(&model), job);
    hv_str_free(&model);
}

static void judge_two_way(const struct two_way *x, struct hv_arena *a, struct hv_verdict *out)
{
    struct world w;
    struct hv_str s = {0};
    open_two_way(&w, x);
    int many = x->turns ? x->dp : 1; /* micro-batches for one of the others */
    hv_str_addf(&s,
                "\"micro_batch\":%d,\"sync\":{\"overlap\":false},\"schedule\":{%s},"
                "\"replicas\":[{\"count\":%d,\"micro_batches\":%d,\"stages\":[",
                x->dp / many, x->schedule, x->count, x->micro_batches * many);
    for (int i = 0; i < x->stages; i++) {
        int each = x->dp * x->count;
        hv_str_addf(&s, "%s{\"devices\":\"a[%d-%d].0\",\"layers\":[%d,%d],\"dp\":%d%s}",
                    i > 0 ? "," : "", i * each, (i + 1) * each - 1, i, i + 1, x->dp, x->stage);
    }
    hv_str_adds(&s, "]}]");
    *out = judge(&w, a, false, hv_str_cstr(&s));
    for (size_t i = 0; i < out->findings.n; i++) {
        fail_msg("%s: %s", out->findings.items[i].where, out->findings.items[i].text);
    }
    hv_str_free(&s);
    close_world(&w);
}

/** Milliseconds behind the passes: sums of gradients and gathers of weights. */
static double tail_ms(const struct two_way *x)
{
    struct hv_arena a = {0};
    struct hv_verdict v;
    judge_two_way(x, &a, &v);
    double ms = (v.metrics.iteration_s - v.metrics.pipeline_s) * 1e3;
    hv_arena_free(&a);
    return ms;
}

/* ---- gradients ----------------------------------------------------------------------------------
 */

/**
 * Every rank holds a stage of each of k directions, k layers of B = 100 ms, and sums layer after
 * layer over its k · n holders, n = dp · count: rings of m members send 2 (m − 1) / m of what is
 * summed, half of that for a scatter or a gather.
 *
 * Not sharded: k · 2 (k n − 1) / (k n) B. ZeRO 1 shards over the n holders of a direction: k times
 * a scatter, (n − 1) / n B, and the sum of the shards over the directions, 2 (k − 1) / k · B / n;
 * then one gather of k layers. Both send the same, as a ring over a product of groups does. Where
 * passes scatter (stages 2 and 3) only the sum of shards is left, and the gather in stage 2.
 */
static void sums_of_both_directions(void **state)
{
    (void)state;
    static const struct {
        const char *schedule;
        int stages, micro_batches;
        double k;
    } schedules[] = {
        {"\"name\":\"chimera\"", 2, 4, 2},
        {"\"name\":\"chimera\"", 4, 8, 2},
        {"\"name\":\"chimera\",\"pipes\":4", 4, 8, 4},
        {"\"name\":\"dualpipe\"", 2, 4, 2},
    };
    static const struct {
        int dp, count;
    } sizes[] = {{2, 1}, {3, 1}, {4, 1}, {1, 2}, {2, 2}};
    for (size_t i = 0; i < HV_COUNT(schedules) * HV_COUNT(sizes); i++) {
        const size_t at = i / HV_COUNT(sizes), size = i % HV_COUNT(sizes);
        double k = schedules[at].k, n = sizes[size].dp * sizes[size].count, all = k * n;
        double sum = 2 * (k - 1) / k / n, scatter = (n - 1) / n, gather = scatter;
        const struct {
            const char *stage;
            double layers;
        } cases[] = {
            {"", k * 2 * (all - 1) / all},
            {",\"zero\":1", k * (scatter + sum + gather)},
            {",\"zero\":{\"stage\":2,\"reduce\":\"end\"}", k * (scatter + sum + gather)},
            {",\"zero\":2", k * (sum + gather)},
            {",\"zero\":3", k * sum},
            {",\"zero\":{\"stage\":3,\"unit\":\"stage\"}", -1},
        };
        for (size_t z = 0; z < HV_COUNT(cases); z++) {
            const struct two_way x = {.schedule = schedules[at].schedule,
                                      .stages = schedules[at].stages,
                                      .dp = sizes[size].dp,
                                      .count = sizes[size].count,
                                      .micro_batches = schedules[at].micro_batches,
                                      .stage = cases[z].stage};
            double ms = tail_ms(&x), want_ms = cases[z].layers * LAYER_MS;
            if (cases[z].layers >= 0 && !(fabs(ms - want_ms) < 1e-6 * want_ms)) {
                fail_msg("%s on %d stages, dp %d, count %d%s: %.9g ms instead of %.9g", x.schedule,
                         x.stages, x.dp, x.count, x.stage, ms, want_ms);
            }
            /* chunks are scattered beside the passes, and summed over the directions at the end */
            assert_true(ms >= k * sum * LAYER_MS * (1 - 1e-9));
        }
    }
}

/* ---- turns --------------------------------------------------------------------------------------
 */

/** d ranks of every stage that take turns are d pipelines: as many copies with a d-th of the
 * micro-batches each take the same time, hold the same states and activations and sum the same
 * gradients. Whole micro-batches go to one rank, so dp does not cut them. */
static void turns_are_pipelines(void **state)
{
    (void)state;
    static const char *const schedules[] = {"\"name\":\"chimera\"", "\"name\":\"dualpipe\""};
    static const char *const states[] = {"", ",\"zero\":1"};
    for (size_t i = 0; i < HV_COUNT(schedules) * HV_COUNT(states) * 2; i++) {
        int stages = i % 2 == 0 ? 2 : 4, d = i % 2 == 0 ? 3 : 2, m = 2 * stages;
        const char *zero = states[i / 2 % HV_COUNT(states)];
        const char *schedule = schedules[i / 2 / HV_COUNT(states)];
        struct hv_arena a = {0};
        struct hv_verdict one, two;
        const struct two_way copies = {schedule, stages, 1, d, m, zero, false};
        struct two_way turns = {schedule, stages, d, 1, m, NULL, true};
        turns.stage = hv_arena_printf(&a, "%s,\"deal\":\"turns\"", zero);
        judge_two_way(&copies, &a, &one);
        judge_two_way(&turns, &a, &two);
        assert_true(fabs(one.metrics.iteration_s - two.metrics.iteration_s) < 1e-12);
        assert_true(fabs(one.metrics.pipeline_s - two.metrics.pipeline_s) < 1e-12);
        assert_int_equal(one.metrics.n_devices_used, two.metrics.n_devices_used);
        assert_int_equal(one.n_memory, two.n_memory);
        for (size_t s = 0; s < one.n_memory; s++) {
            const struct hv_stage_memory *x = &one.memory[s], *y = &two.memory[s];
            assert_true(fabs(x->weights_bytes - y->weights_bytes) < 1);
            assert_true(fabs(x->gradients_bytes - y->gradients_bytes) < 1);
            assert_true(fabs(x->activations_bytes - y->activations_bytes) < 1);
            assert_int_equal(x->in_flight, y->in_flight);
        }
        hv_arena_free(&a);
    }
}

/** Stages with unlike numbers of ranks have no common turns in two directions. */
static void unlike_turns_are_refused(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct world w;
    const struct two_way x = {"", 2, 1, 1, 4, "", false};
    open_two_way(&w, &x);
    struct hv_verdict v =
        judge(&w, &a, false,
              "\"micro_batch\":1,\"schedule\":{\"name\":\"chimera\"},\"replicas\":[{"
              "\"micro_batches\":4,\"stages\":[{\"devices\":\"a[0-1].0\",\"layers\":[0,1],"
              "\"dp\":2,\"deal\":\"turns\"},{\"devices\":\"a[2].0\",\"layers\":[1,2]}]}]");
    assert_int_equal(v.findings.n, 1);
    assert_int_equal(v.findings.items[0].code, HV_V_SCHEDULE_NEEDS);
    assert_non_null(strstr(v.findings.items[0].text, "all stages need as many ranks; found 2 and "
                                                     "stage 1 with 1"));
    close_world(&w);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_both_directions),
        cmocka_unit_test(turns_are_pipelines),
        cmocka_unit_test(unlike_turns_are_refused),
    };
    return cmocka_run_group_tests_name("eval_two_way", tests, NULL, NULL);
}
