/** Bands of verdicts and plans under stress: figures by hand, and laws that they obey. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/units.h"
#include "solver/eval/stress/stress.h"
#include "solver/eval/verdict/band.h"
#include "solver/inventory/faster.h"
#include "tests/eval_fixture.h"

#define assert_near(a, b, frac) assert_true(fabs((a) - (b)) <= (frac)*fabs((double)(b)))

/** Ten seconds, of them one of gradient reduction and half a second between stages: 15 % exposed,
 * sqrt(1 + (5 · 0.15)²) = 1.25. */
static void exposed_exchange_widens(void **state)
{
    (void)state;
    struct hv_metrics m = {.iteration_s = 10};
    m.breakdown_s[HV_TIME_COMPUTE] = 8;
    m.breakdown_s[HV_TIME_DP] = 1;
    m.breakdown_s[HV_TIME_PP] = 0.5;
    m.breakdown_s[HV_TIME_BUBBLE] = 0.5;
    assert_near(hv_band_exposed_frac(&m), 0.15, 1e-12);
    assert_near(hv_band_scale(0.15), 1.25, 1e-12);
    assert_near(hv_band_scale(0), 1, 1e-12);
}

static void bands_that_meet(void **state)
{
    (void)state;
    struct hv_metrics a = {.iteration_s = 1, .band = {0.9, 1.11, 0.8}};
    struct hv_metrics b = {.iteration_s = 1.1, .band = {1.0, 1.2, 0.8}};
    assert_true(hv_band_within(&a, &b) && hv_band_within(&b, &a));
    b.band.low_s = 1.05; /* the first lies outside the band of the second */
    assert_false(hv_band_within(&a, &b) || hv_band_within(&b, &a));
    b.band = (struct hv_band){0};
    assert_false(hv_band_within(&a, &b));
    assert_near(hv_band_frac(&(struct hv_band){0.8, 1.25, 0.8}), 0.25, 1e-12);
    assert_true(isnan(hv_band_frac(&b.band)));
}

/** The fixture's plan on one kind, and the same with a stage on another: the larger error of the
 * two classes. */
static void a_plan_has_the_largest_error_of_its_devices(void **state)
{
    struct world *w = *state;
    struct hv_arena a = {0};
    const struct hv_cluster *c = w->in.cluster.cluster;
    const struct hv_calibration *one = hv_device_calibration(c->kinds[0]),
                                *two = hv_device_calibration(c->kinds[1]);
    double first = one->error[HV_ERROR_DENSE_16], second = two->error[HV_ERROR_DENSE_16];
    assert_true(first > 0 && second > first);
    static const char mixed[] =
        "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":64,\"stages\":["
        "{\"devices\":\"a[0].0\",\"layers\":[0,12]},{\"devices\":\"v[0].1\",\"layers\":[12,24]}]}]";
    const struct hv_verdict v[] = {judge(w, &a, false, four_stages), judge(w, &a, false, mixed)};
    const double errors[] = {first, second};
    for (size_t i = 0; i < HV_COUNT(v); i++) {
        const struct hv_metrics *m = &v[i].metrics;
        double half = errors[i] * hv_band_scale(hv_band_exposed_frac(m));
        assert_near(m->band.low_s, m->iteration_s * exp(-half), 1e-9);
        assert_near(m->band.high_s, m->iteration_s * exp(half), 1e-9);
        assert_near(m->band.cover, 0.8, 1e-12);
    }
    hv_arena_free(&a);
}

static void plain_rates_and_stale_plans_have_none(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct world w;
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"x\",\"nodes\":[{\"name\":\"a\","
               "\"count\":1,\"device\":\"P\",\"devices\":4}],\"devices\":{\"P\":{"
               "\"rates\":\"plain\",\"memory_GiB\":80,\"bandwidth_GBps\":2000,"
               "\"dense_TFLOPS\":{\"fp16\":300}}}}",
               model_text, job_text);
    assert_true(judge(&w, &a, false, four_stages).metrics.band.cover == 0);
    close_world(&w);
    struct hv_metrics m = {.iteration_s = 1, .staleness = 2};
    struct hv_plan none = {0};
    open_world(&w, cluster_text, model_text, job_text);
    hv_band_of(&none, w.in.model.model, &w.in.job.job, &m);
    assert_true(m.band.cover == 0);
    close_world(&w);
    hv_arena_free(&a);
}

/** A link of 10 GB/s and 5 us becomes one of 5 GB/s and 10 us, wherever it is written. */
static void slow_links_are_slow_everywhere(void **state)
{
    (void)state;
    struct world w;
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"x\",\"nodes\":["
               "{\"name\":\"a\",\"count\":1,\"device\":\"A100-SXM-80GB\",\"devices\":2,\"intra\":{"
               "\"kind\":\"nvlink\",\"bandwidth_GBps\":300},\"nic\":{\"bandwidth_GBps\":10,"
               "\"latency_us\":3}},{\"name\":\"b\",\"count\":2,\"device\":\"V100-SXM2-32GB\","
               "\"devices\":2,\"nic\":{\"bandwidth_GBps\":10,\"latency_us\":3}}],\"network\":{"
               "\"bandwidth_GBps\":40,\"latency_us\":2,\"links\":[{\"between\":[\"a\",\"b[0]\"],"
               "\"bandwidth_GBps\":1,\"latency_us\":700}]}}",
               model_text, job_text);
    struct hv_cluster *c = w.in.cluster.cluster, *slow = hv_cluster_slow_links(c, 2);
    for (uint32_t i = 0; i < c->n_devices; i++) {
        for (uint32_t k = 0; k < c->n_devices; k++) {
            struct hv_path x = hv_cluster_path(c, i, k), y = hv_cluster_path(slow, i, k);
            bool far = i != k;
            assert_int_equal(x.level, y.level);
            assert_near(y.bytes_per_s, x.bytes_per_s / (far ? 2 : 1), 1e-12);
            assert_near(y.latency_s, x.latency_s * (far ? 2 : 1), 1e-12);
        }
    }
    hv_cluster_unref(slow);
    close_world(&w);
}

static struct hv_stress stress_of(struct world *w, struct hv_arena *a, const char *body,
                                  struct hv_verdict *v)
{
    char text[8192];
    struct hv_plan_doc doc;
    struct hv_stress s;
    struct hv_err err = {0};
    *v = judge(w, a, false, body);
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}", body);
    if (hv_plan_doc_build(&doc, parse(text, "p"), w->in.cluster.cluster, &err) != HV_OK ||
        hv_eval_stress(w->cost, doc.plan, v, NULL, &s, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    hv_plan_doc_free(&doc);
    return s;
}

/** Data parallel over two nodes: exchange of gradients doubles at least where it is exposed; on one
 * device nothing is exchanged. */
static void losses_under_stress(void **state)
{
    struct world *w = *state;
    struct hv_arena a = {0};
    struct hv_verdict v;
    static const char wide[] =
        "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":2,\"stages\":[{\"devices\":"
        "\"v[0].*,v[1].*\",\"layers\":[0,24],\"dp\":4,\"tp\":4,\"zero\":1,"
        "\"recompute\":\"full\"}]}]";
    struct hv_stress s = stress_of(w, &a, wide, &v);
    double t = v.metrics.iteration_s;
    assert_true(s.exchange_s >= t * (1 + 0.9 * hv_band_exposed_frac(&v.metrics)));
    assert_true(s.exchange_s <= 2 * t);
    assert_near(s.node_s, t * (1 + 0.05 * v.stages[0].busy_frac), 1e-12);
    assert_near(s.memory_frac, 1.1 * v.memory[0].peak_bytes / v.memory[0].limit_bytes, 1e-12);
    assert_near(s.worst_frac, fmax(s.exchange_s, s.node_s) / t - 1, 1e-9);
    static const char alone[] =
        "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":64,\"stages\":[{\"devices\":"
        "\"a[0].0\",\"layers\":[0,24],\"recompute\":\"full\"}]}]";
    s = stress_of(w, &a, alone, &v);
    assert_near(s.exchange_s, v.metrics.iteration_s, 1e-9);
    assert_true(s.worst_s == s.node_s || s.memory_frac > 1);
    hv_arena_free(&a);
}

/** A reserve chosen so that the fullest device is 95 % full: it fits, and not with a tenth more. */
static void more_memory_may_not_fit(void **state)
{
    struct world *w = *state;
    struct hv_arena a = {0};
    struct hv_verdict v;
    struct hv_stress s = stress_of(w, &a, four_stages, &v);
    const struct hv_stage_memory *m = &v.memory[s.fullest];
    double memory = hv_cluster_device(w->in.cluster.cluster, m->device).kind->memory_bytes;
    struct world tight;
    char job[512];
    double reserve_gib = (memory - m->peak_bytes / 0.95) / HV_GIB;
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":2048,"
                   "\"precision\":\"fp16\",\"grad_precision\":\"fp32\",\"optimizer\":\"adam\","
                   "\"memory_reserve_GiB\":%.17g}",
                   reserve_gib);
    open_world(&tight, cluster_text, model_text, job);
    s = stress_of(&tight, &a, four_stages, &v);
    assert_int_equal(v.findings.n, 0);
    assert_near(s.memory_frac, 1.1 * 0.95, 1e-6);
    assert_true(isinf(s.worst_frac) && isnan(s.worst_s));
    assert_string_equal(hv_stress_worst_name(&s), "memory 10% larger");
    close_world(&tight);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exposed_exchange_widens),
        cmocka_unit_test(bands_that_meet),
        cmocka_unit_test_setup_teardown(a_plan_has_the_largest_error_of_its_devices, setup,
                                        teardown),
        cmocka_unit_test(plain_rates_and_stale_plans_have_none),
        cmocka_unit_test(slow_links_are_slow_everywhere),
        cmocka_unit_test_setup_teardown(losses_under_stress, setup, teardown),
        cmocka_unit_test_setup_teardown(more_memory_may_not_fit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
