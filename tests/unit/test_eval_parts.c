/** Stages that run micro-batches in their own way: fewer in flight, of their own size, in turns, on
 * devices that they share. Layers of known times on plain links, so that every time is exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

/** Layers of 1 ms forward and 2 ms backward per sequence on nodes of one device. */
struct pipeline {
    int layers, batch;   /**< batch: sequences of an iteration */
    double output_bytes; /**< of a layer and sequence; 0: transfers take no time */
    double gbps;
    const char *plan; /**< members of the plan; a[i].0 is device i */
};

static void open_pipeline(struct world *w, const struct pipeline *x)
{
    char cluster[1024], model[8192], job[256];
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":16,\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":%.17g,"
                   "\"latency_us\":0,\"curve\":\"plain\"}}],\"network\":{\"bandwidth_GBps\":1e6,"
                   "\"latency_us\":0,\"curve\":\"plain\"},\"devices\":{\"P\":{"
                   "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},"
                   "\"rates\":\"plain\"}}}",
                   x->gbps > 0 ? x->gbps : 1e6);
    size_t n = 0;
    for (int i = 0; i < x->layers; i++) {
        n += (size_t)snprintf(model + n, sizeof model - n,
                              "%s{\"forward_ms\":{\"P\":1},\"backward_ms\":{\"P\":2},"
                              "\"parameter_bytes\":0,\"activation_bytes\":1e9,"
                              "\"output_bytes\":%.17g}",
                              i > 0 ? ","
                                    : "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":"
                                      "\"layers\",\"layers\":[",
                              x->output_bytes);
    }
    (void)snprintf(model + n, sizeof model - n, "]}");
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":1,"
                   "\"precision\":\"fp32\",\"optimizer\":\"none\"}",
                   x->batch);
    open_world(w, cluster, model, job);
}

/** Milliseconds of the pipelines; the arena owns the verdict. */
static double time_ms(const struct pipeline *x, struct hv_arena *a, struct hv_verdict *out)
{
    struct world w;
    open_pipeline(&w, x);
    *out = judge(&w, a, false, x->plan);
    for (size_t i = 0; i < out->findings.n; i++) {
        fail_msg("%s: %s", out->findings.items[i].where, out->findings.items[i].text);
    }
    for (size_t i = 0; i < out->n_approximated; i++) {
        fail_msg("approximated: %s", out->approximated[i]);
    }
    assert_true(!hv_known(out->metrics.bound_s) ||
                out->metrics.bound_s <= out->metrics.iteration_s * (1 + 1e-9));
    close_world(&w);
    return out->metrics.pipeline_s * 1e3;
}

static void assert_ms(const struct pipeline *x, double want)
{
    struct hv_arena a = {0};
    struct hv_verdict v;
    double got = time_ms(x, &a, &v);
    if (!(fabs(got - want) <= 1e-6 * want)) {
        fail_msg("%.9g ms instead of %.9g: %s", got, want, x->plan);
    }
    hv_arena_free(&a);
}

/** One layer per stage on four devices: members of the plan, with members for every stage. */
static const char *four(struct hv_arena *a, const char *schedule, const char *each)
{
    return hv_arena_printf(
        a,
        "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":8,\"stages\":["
        "{\"devices\":\"a[0].0\",\"layers\":[0,1]%s},{\"devices\":\"a[1].0\",\"layers\":[1,2]%s},"
        "{\"devices\":\"a[2].0\",\"layers\":[2,3]%s},{\"devices\":\"a[3].0\",\"layers\":[3,4]%s}]}]"
        ",\"schedule\":{\"name\":\"%s\"}",
        each, each, each, each, schedule);
}

/* ---- fewer micro-batches in flight -------------------------------------------------------------
 */

/** One at a time: 4 forwards and 4 backwards of 2 ms; of zb-h1, 4 input gradients of 1 ms and the
 * first stage's weight gradient. Without limits 1F1B takes (8 + 3) · 3 ms. */
static void one_in_flight(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    static const struct {
        const char *schedule, *each;
        double ms;
    } cases[] = {
        {"1f1b", "", 33},
        {"1f1b", ",\"in_flight\":4", 33},
        {"1f1b", ",\"in_flight\":1", 8 * 12},
        {"zb-h1", "", 27},
        {"zb-h1", ",\"in_flight\":4", 27},
        {"zb-h1", ",\"in_flight\":1", 8 * 9},
        {"gpipe", ",\"in_flight\":2", 4 * 15},
        {"graphpipe", ",\"in_flight\":1", 8 * 12},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        const struct pipeline x = {4, 8, 0, 0, four(&a, cases[i].schedule, cases[i].each)};
        assert_ms(&x, cases[i].ms);
    }
    hv_arena_free(&a);
}

/** The memory and the micro-batches in flight that the verdict states keep to the limit. */
static void limits_show_in_memory(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_verdict v;
    const struct pipeline x = {4, 8, 0, 0, four(&a, "zb-h1", ",\"in_flight\":2")};
    double ms = time_ms(&x, &a, &v);
    assert_true(ms > 27 && ms < 72);
    for (size_t i = 0; i < v.n_memory; i++) {
        assert_true(v.memory[i].in_flight <= 2);
        assert_true(v.memory[i].activations_bytes <= 2e9 * (1 + 1e-9));
    }
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_in_flight),
        cmocka_unit_test(limits_show_in_memory),
    };
    return cmocka_run_group_tests_name("eval_parts", tests, NULL, NULL);
}
