/** The judge: closed forms, rules D and E, conservation of time, the bound, findings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "tests/eval_fixture.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

#define ONE_STAGE(devices, dp, tp, mb, n, extra)                                                   \
    "\"micro_batch\":" #mb ",\"replicas\":[{\"micro_batches\":" #n                                 \
    ",\"stages\":[{\"devices\":\"" devices "\",\"layers\":[0,24],\"tp\":" #tp ",\"dp\":" #dp extra \
    "}]}]"

static double sum_breakdown(const struct hv_metrics *m)
{
    double s = 0;
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        s += m->breakdown_s[i];
    }
    return s;
}

static void one_device_spends_its_time_on_work(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, false, ONE_STAGE("a[0].0", 1, 1, 1, 64, ""));
    assert_int_equal(v.findings.n, 0);
    const struct hv_metrics *m = &v.metrics;
    assert_near(m->iteration_s,
                64 * (v.stages[0].forward_s + v.stages[0].backward_s) +
                    m->breakdown_s[HV_TIME_OPTIMIZER] + m->breakdown_s[HV_TIME_STEP],
                1e-9);
    assert_near(sum_breakdown(m), m->iteration_s, 1e-9);
    assert_true(m->breakdown_s[HV_TIME_BUBBLE] < 1e-9 * m->iteration_s);
    assert_near(m->tokens_per_s, 64 * 2048 / m->iteration_s, 1e-12);
    assert_true(m->mfu > 0.2 && m->mfu < 1);
    hv_arena_free(&a);
}

static void a_pipeline_is_at_least_its_slowest_stage_and_less_than_everything_in_a_row(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, false, four_stages);
    double slowest = 0, all = 0;
    for (size_t i = 0; i < 4; i++) {
        double t = v.stages[i].forward_s + v.stages[i].backward_s;
        slowest = fmax(slowest, t);
        all += t;
    }
    assert_true(v.metrics.pipeline_s >= 63 * slowest + all - 1e-9);
    /* 1F1B with hops: no more than (m + p - 1) slots of the slowest stage plus every hop on its way
     * (schedules.md 2.2) */
    double hops = 0;
    for (size_t i = 0; i < 4; i++) {
        hops += v.stages[i].hop_s;
    }
    assert_true(v.metrics.pipeline_s <= 67 * slowest + 2 * 64 * hops);
    assert_near(sum_breakdown(&v.metrics), v.metrics.iteration_s, 1e-9);
    hv_arena_free(&a);
}

static void one_stage_replicas_equal_data_parallel_ranks(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict dp = judge(*state, &a, false, ONE_STAGE("a[0].0-7", 8, 1, 8, 8, ""));
    struct hv_verdict count = judge(
        *state, &a, false,
        "\"micro_batch\":1,\"replicas\":[{\"count\":8,\"micro_batches\":8,\"stages\":[{\"devices\":"
        "\"a[0].0-7\",\"layers\":[0,24]}]}]");
    assert_int_equal(dp.findings.n + count.findings.n, 0);
    assert_near(dp.metrics.iteration_s, count.metrics.iteration_s, 1e-9);
    assert_near(dp.memory[0].peak_bytes, count.memory[0].peak_bytes, 1e-9);
    hv_arena_free(&a);
}

static void equal_copies_cost_what_separate_entries_cost(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict one =
        judge(*state, &a, false,
              "\"micro_batch\":2,\"replicas\":[{\"count\":2,\"micro_batches\":16,\"stages\":["
              "{\"devices\":[\"a[0].*\",\"a[2].*\"],\"layers\":[0,12],\"tp\":8},"
              "{\"devices\":[\"a[1].*\",\"a[3].*\"],\"layers\":[12,24],\"tp\":8}]}]");
    struct hv_verdict two =
        judge(*state, &a, false,
              "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":16,\"stages\":["
              "{\"devices\":\"a[0].*\",\"layers\":[0,12],\"tp\":8},{\"devices\":\"a[1].*\","
              "\"layers\":[12,24],\"tp\":8}]},"
              "{\"micro_batches\":16,\"stages\":["
              "{\"devices\":\"a[2].*\",\"layers\":[0,12],\"tp\":8},{\"devices\":\"a[3].*\","
              "\"layers\":[12,24],\"tp\":8}]}]");
    assert_int_equal(one.findings.n + two.findings.n, 0);
    assert_near(one.metrics.iteration_s, two.metrics.iteration_s, 1e-9);
    assert_near(one.metrics.mfu, two.metrics.mfu, 1e-9);
    hv_arena_free(&a);
}

static void explicit_order_equals_the_named_schedule(void **state)
{
    struct hv_arena a = {0};
    const char *stages = "\"stages\":[{\"devices\":\"a[0].0\",\"layers\":[0,12]},{\"devices\":\"a["
                         "0].1\",\"layers\":[12,24]}]";
    char named[1024], explicit_[1024];
    (void)snprintf(named, sizeof named,
                   "\"micro_batch\":16,\"replicas\":[{\"micro_batches\":4,%s}],\"schedule\":{"
                   "\"name\":\"1f1b\"}",
                   stages);
    (void)snprintf(
        explicit_, sizeof explicit_,
        "\"micro_batch\":16,\"replicas\":[{\"micro_batches\":4,%s}],\"schedule\":{\"name\":"
        "\"explicit\",\"order\":["
        "[\"F0.0\",\"F0.1\",\"BW0.0\",\"F0.2\",\"BW0.1\",\"F0.3\",\"BW0.2\",\"BW0.3\"],"
        "[\"F1.0\",\"BW1.0\",\"F1.1\",\"BW1.1\",\"F1.2\",\"BW1.2\",\"F1.3\",\"BW1.3\"]]}",
        stages);
    struct hv_verdict x = judge(*state, &a, false, named), y = judge(*state, &a, false, explicit_);
    assert_near(x.metrics.iteration_s, y.metrics.iteration_s, 1e-12);
    hv_arena_free(&a);
}

static bool has_code(const struct hv_verdict *v, enum hv_violation_code code)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        if (v->findings.items[i].code == code) {
            return true;
        }
    }
    return false;
}

static void an_order_that_cannot_run_is_found(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v =
        judge(*state, &a, false,
              "\"micro_batch\":32,\"replicas\":[{\"micro_batches\":2,\"stages\":[{\"devices\":\"a["
              "0].0\",\"layers\":[0,12]},"
              "{\"devices\":\"a[0].1\",\"layers\":[12,24]}]}],\"schedule\":{\"name\":\"explicit\","
              "\"order\":["
              "[\"F0.0\",\"BW0.0\",\"F0.1\",\"BW0.1\"],[\"F1.1\",\"BW1.1\",\"F1.0\",\"BW1.0\"]]}");
    assert_true(has_code(&v, HV_V_ORDER_DEADLOCK));
    assert_false(hv_known(v.metrics.iteration_s));
    hv_arena_free(&a);
}

static void an_order_that_leaves_work_out_is_found(void **state)
{
    static const char *const orders[] = {
        "[\"F0.0\",\"BW0.0\"],[\"F1.0\",\"BW1.0\"]", /* one of two */
        "[\"F0.0\",\"F0.1\"],[\"F1.0\",\"F1.1\"]",   /* no way back */
        "[],[]"};
    for (size_t i = 0; i < 3; i++) {
        struct hv_arena a = {0};
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":32,\"replicas\":[{\"micro_batches\":2,\"stages\":[{"
                       "\"devices\":\"a[0].0\",\"layers\":[0,12]},{\"devices\":\"a[0].1\","
                       "\"layers\":[12,24]}]}],\"schedule\":{\"name\":\"explicit\",\"order\":[%s]}",
                       orders[i]);
        struct hv_verdict v = judge(*state, &a, false, text);
        assert_true(has_code(&v, HV_V_SCHEDULE_NEEDS));
        assert_false(hv_known(v.metrics.iteration_s));
        hv_arena_free(&a);
    }
}

static void schedule_needs_are_findings(void **state)
{
    struct hv_arena a = {0};
    char text[2048];
    (void)snprintf(text, sizeof text, "%s,\"schedule\":{\"name\":\"interleaved\"}", four_stages);
    struct hv_verdict v = judge(*state, &a, false, text);
    assert_true(has_code(&v, HV_V_SCHEDULE_NEEDS));
    (void)snprintf(text, sizeof text, "%s,\"schedule\":{\"name\":\"explicit\"}", four_stages);
    v = judge(*state, &a, false, text);
    assert_true(has_code(&v, HV_V_SCHEDULE_NEEDS));
    assert_false(hv_known(v.metrics.iteration_s));
    (void)snprintf(text, sizeof text, "%s,\"schedule\":{\"name\":\"no-such\"}", four_stages);
    v = judge(*state, &a, false, text);
    assert_true(has_code(&v, HV_V_SCHEDULE_NEEDS));
    hv_arena_free(&a);
}

/* Nor does a search give an error to fill, nor the short run that a long one is folded from; both
 * once crashed. */
static void findings_need_no_error_to_be_told_in(void **state)
{
    struct world *w = *state;
    static const char *const micro_batches[] = {"64", "16384"};
    for (size_t i = 0; i < 2; i++) {
        struct hv_arena a = {0};
        struct hv_plan_doc doc;
        struct hv_verdict v;
        struct hv_eval_options o = {0};
        char text[2048];
        (void)snprintf(
            text, sizeof text,
            "{\"format\":\"hetviz.plan/1\",\"micro_batch\":1,\"replicas\":[{"
            "\"micro_batches\":%s,\"stages\":[{\"devices\":\"a[0].0\",\"layers\":[0,12]},"
            "{\"devices\":\"a[0].1\",\"layers\":[12,24]}]}],"
            "\"schedule\":{\"name\":\"interleaved\"}}",
            micro_batches[i]);
        enum hv_status st = hv_plan_doc_build(&doc, parse(text, "p"), w->in.cluster.cluster, NULL);
        assert_int_equal(st, HV_OK);
        assert_int_equal(hv_eval(w->cost, doc.plan, &o, &a, &v, NULL), HV_OK);
        assert_true(has_code(&v, HV_V_SCHEDULE_NEEDS));
        hv_plan_doc_free(&doc);
        hv_arena_free(&a);
    }
}

static void memory_is_saved_by_sharding_and_recompute(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict plain = judge(*state, &a, false, ONE_STAGE("a[0].0-7", 8, 1, 8, 8, ""));
    struct hv_verdict zero1 =
        judge(*state, &a, false, ONE_STAGE("a[0].0-7", 8, 1, 8, 8, ",\"zero\":1"));
    struct hv_verdict zero3 =
        judge(*state, &a, false, ONE_STAGE("a[0].0-7", 8, 1, 8, 8, ",\"zero\":3"));
    struct hv_verdict full =
        judge(*state, &a, false, ONE_STAGE("a[0].0-7", 8, 1, 8, 8, ",\"recompute\":\"full\""));
    assert_true(zero1.memory[0].peak_bytes < plain.memory[0].peak_bytes);
    assert_true(zero3.memory[0].peak_bytes < zero1.memory[0].peak_bytes);
    assert_near(zero1.memory[0].optimizer_bytes, plain.memory[0].optimizer_bytes / 8, 1e-9);
    assert_true(full.memory[0].peak_bytes < plain.memory[0].peak_bytes);
    assert_true(full.metrics.iteration_s > plain.metrics.iteration_s);
    assert_true(full.metrics.breakdown_s[HV_TIME_RECOMPUTE] > 0);
    assert_near(plain.metrics.breakdown_s[HV_TIME_RECOMPUTE] + 1, 1, 1e-9);
    hv_arena_free(&a);
}

static void what_does_not_fit_is_said_with_figures(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, false, ONE_STAGE("v[0].0", 1, 1, 64, 1, ""));
    assert_true(has_code(&v, HV_V_MEMORY));
    assert_true(v.findings.items[0].by > 0);
    assert_non_null(strstr(v.findings.items[0].text, "GiB"));
    assert_true(v.metrics.iteration_s > 0);
    hv_arena_free(&a);
}

/** A random valid plan: equal stages over nodes of a, sometimes v, with random degrees. */
static void random_plan(struct hv_rng *r, char *out, size_t cap)
{
    int tp = 1 << hv_rng_below(r, 4), stages = 1 << hv_rng_below(r, 3),
        micro = 1 << hv_rng_below(r, 3);
    int dp = 8 / tp;
    const char *recompute[] = {"none", "selective", "full"};
    size_t n = (size_t)snprintf(
        out, cap, "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":[", micro * dp,
        64 / (micro * dp) > 0 ? 64 / (micro * dp) : 1);
    for (int s = 0; s < stages; s++) {
        n += (size_t)snprintf(out + n, cap - n,
                              "%s{\"devices\":\"%s[%d].*\",\"layers\":[%d,%d],\"tp\":%d,\"dp\":%d,"
                              "\"recompute\":\"%s\",\"zero\":%d}",
                              s ? "," : "", s < 4 && !(s == 3 && hv_rng_below(r, 2)) ? "a" : "v",
                              s < 4 ? (s == 3 ? 1 : s) : 0, s * 24 / stages, (s + 1) * 24 / stages,
                              tp, dp, recompute[hv_rng_below(r, 3)], (int)hv_rng_below(r, 4));
    }
    (void)snprintf(out + n, cap - n, "]}]");
}

static void no_plan_beats_the_bound(void **state)
{
    struct hv_rng r;
    hv_rng_seed(&r, 7);
    int timed = 0;
    for (int i = 0; i < 200; i++) {
        struct hv_arena a = {0};
        char text[4096];
        random_plan(&r, text, sizeof text);
        struct hv_verdict v = judge(*state, &a, false, text);
        if (hv_known(v.metrics.iteration_s) && !has_code(&v, HV_V_BATCH_SUM) &&
            !has_code(&v, HV_V_DEVICES_OVERLAP)) {
            timed++;
            if (!(v.metrics.bound_s <= v.metrics.iteration_s * (1 + 1e-9)) ||
                !(v.metrics.bound_s > 0)) {
                fail_msg("bound %g, plan %g: %s", v.metrics.bound_s, v.metrics.iteration_s, text);
            }
            assert_near(sum_breakdown(&v.metrics), v.metrics.iteration_s, 1e-6);
        }
        hv_arena_free(&a);
    }
    assert_true(timed > 50);
}

static void the_timeline_lies_inside_the_iteration(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, four_stages);
    const struct hv_timeline *t = v.timeline;
    assert_non_null(t);
    assert_int_equal(t->n_rows, 4);
    for (size_t i = 0; i < t->lanes.n; i++) {
        for (size_t s = 0; s < t->lanes.items[i].n_spans; s++) {
            const struct hv_span *span = &t->lanes.items[i].spans[s];
            assert_true(span->start_s >= 0 && span->end_s <= t->end_s * (1 + 1e-12));
            assert_true((size_t)span->id < t->n_ops);
        }
    }
    /* 64 forwards and 64 backwards per rank, the optimizer and the host work */
    assert_int_equal(t->lanes.items[t->rows[0].compute_lane].n_spans, 130);
    double most = hv_steps_max(&t->rows[0].memory, 0, t->end_s);
    assert_near(most, v.memory[0].peak_bytes, 1e-9);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device_spends_its_time_on_work),
        cmocka_unit_test(
            a_pipeline_is_at_least_its_slowest_stage_and_less_than_everything_in_a_row),
        cmocka_unit_test(one_stage_replicas_equal_data_parallel_ranks),
        cmocka_unit_test(equal_copies_cost_what_separate_entries_cost),
        cmocka_unit_test(explicit_order_equals_the_named_schedule),
        cmocka_unit_test(an_order_that_cannot_run_is_found),
        cmocka_unit_test(an_order_that_leaves_work_out_is_found),
        cmocka_unit_test(schedule_needs_are_findings),
        cmocka_unit_test(findings_need_no_error_to_be_told_in),
        cmocka_unit_test(memory_is_saved_by_sharding_and_recompute),
        cmocka_unit_test(what_does_not_fit_is_said_with_figures),
        cmocka_unit_test(no_plan_beats_the_bound),
        cmocka_unit_test(the_timeline_lies_inside_the_iteration),
    };
    return cmocka_run_group_tests_name("eval", tests, setup, teardown);
}
