/** Plans for many jobs: each as if alone, together only where they share no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

#define ON(node)                                                                                   \
    "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":16,\"stages\":[{\"devices\":\"" node       \
    ".0-3\",\"layers\":[0,12],\"tp\":4},{\"devices\":\"" node                                      \
    ".4-7\",\"layers\":[12,24],\"tp\":4}]}]"
#define JOB(name, times, node) "{\"name\":\"" name "\"," times "\"plan\":{" ON(node) "}}"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

static void one_job_is_its_plan(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict plan = judge(*state, &a, true, ON("a[0]"));
    struct hv_verdict v = judge(*state, &a, true, "\"jobs\":[" JOB("only", "", "a[0]") "]");
    assert_int_equal(v.findings.n, 0);
    assert_int_equal(v.jobs->n, 1);
    const struct hv_verdict *own = &v.jobs->items[0].verdict;
    assert_true(own->metrics.iteration_s == plan.metrics.iteration_s);
    assert_true(own->metrics.bound_s == plan.metrics.bound_s);
    assert_true(own->memory[1].peak_bytes == plan.memory[1].peak_bytes);
    assert_true(v.metrics.tokens_per_s == plan.metrics.tokens_per_s);
    assert_near(v.metrics.usd_per_h, plan.metrics.usd_per_h, 1e-12);
    assert_int_equal(v.metrics.n_devices_used, plan.metrics.n_devices_used);
    assert_true(!hv_known(v.metrics.iteration_s) && !hv_known(v.metrics.bound_s));
    const struct hv_timeline *t = hv_eval_jobs_timeline(&v, &a);
    assert_non_null(t);
    assert_int_equal(t->n_rows, plan.timeline->n_rows);
    assert_int_equal(t->n_ops, plan.timeline->n_ops);
    assert_true(strncmp(t->rows[0].name, "only s0", strlen("only s0")) == 0);
    hv_arena_free(&a);
}

static void jobs_beside_each_other_add_up(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict one = judge(*state, &a, false, ON("a[0]"));
    struct hv_verdict v = judge(*state, &a, false,
                                "\"jobs\":[" JOB("p", "", "a[0]") "," JOB(
                                    "q", "\"arrival_s\":10,\"start_s\":40,", "a[1]") "]");
    assert_int_equal(v.findings.n, 0);
    assert_near(v.metrics.tokens_per_s, 2 * one.metrics.tokens_per_s, 1e-9);
    assert_int_equal(v.metrics.n_devices_used, 16);
    assert_near(v.metrics.usd_per_mtoken, one.metrics.usd_per_mtoken, 1e-9);
    assert_near(v.jobs->mean_wait_s, (0 + 30) / 2.0, 1e-12);
    assert_true(!hv_known(v.jobs->makespan_s)); /* they have no end */
    hv_arena_free(&a);
}

static void jobs_one_after_the_other_share_devices(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict one = judge(*state, &a, false, ON("a[0]"));
    double t = one.metrics.iteration_s;
    char text[4096];
    /* 10 iterations, then 20 on the same devices; the second came at the beginning */
    (void)snprintf(text, sizeof text,
                   "\"jobs\":[" JOB("p", "\"iterations\":10,", "a[0]") "," JOB(
                       "q", "\"start_s\":%.17g,\"iterations\":20,", "a[0]") "]",
                   10 * t);
    struct hv_verdict v = judge(*state, &a, false, text);
    assert_int_equal(v.findings.n, 0);
    assert_near(v.jobs->makespan_s, 30 * t, 1e-12);
    assert_near(v.jobs->mean_wait_s, 10 * t / 2, 1e-12);
    assert_near(v.jobs->mean_completion_s, (10 * t + 30 * t) / 2, 1e-12);
    assert_near(v.metrics.tokens_per_s, one.metrics.tokens_per_s, 1e-9);
    assert_near(v.jobs->items[1].usd, 20 * t / 3600 * one.metrics.usd_per_h, 1e-9);
    /* half an iteration too early */
    (void)snprintf(text, sizeof text,
                   "\"jobs\":[" JOB("p", "\"iterations\":10,", "a[0]") "," JOB(
                       "q", "\"start_s\":%.17g,\"iterations\":20,", "a[0]") "]",
                   9.5 * t);
    v = judge(*state, &a, false, text);
    assert_int_equal(v.findings.n, 1);
    assert_int_equal(v.findings.items[0].code, HV_V_DEVICES_OVERLAP);
    assert_near(v.findings.items[0].by, 8, 0);
    assert_string_equal(v.findings.items[0].where, "jobs[1].plan");
    hv_arena_free(&a);
}

/* 10 iterations, then 20 elsewhere from 12 iterations on: one job, that waits once and ends once.
 */
static void a_job_goes_on_elsewhere(void **state)
{
    struct hv_arena a = {0};
    double t = judge(*state, &a, false, ON("a[0]")).metrics.iteration_s;
    char text[4096];
    (void)snprintf(text, sizeof text,
                   "\"jobs\":[" JOB("p", "\"arrival_s\":1,\"start_s\":3,\"iterations\":10,",
                                    "a[0]") "," JOB("q",
                                                    "\"continues\":\"p\",\"start_s\":%.17g,"
                                                    "\"iterations\":20,",
                                                    "a[1]") "]",
                   3 + 12 * t);
    struct hv_verdict v = judge(*state, &a, false, text);
    assert_int_equal(v.findings.n, 0);
    assert_near(v.jobs->mean_wait_s, 2, 1e-12);
    assert_near(v.jobs->mean_completion_s, 2 + 32 * t, 1e-12);
    assert_near(v.jobs->items[1].wait_s, 2 * t, 1e-9);
    /* with no start of its own it goes on where the first part ends */
    v = judge(*state, &a, false,
              "\"jobs\":[" JOB("p", "\"iterations\":10,", "a[0]") "," JOB(
                  "q", "\"continues\":\"p\",\"iterations\":20,", "a[0]") "]");
    assert_int_equal(v.findings.n, 0);
    assert_near(v.jobs->makespan_s, 30 * t, 1e-12);
    hv_arena_free(&a);
}

static void what_is_wrong_in_a_job_is_found_there(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v =
        judge(*state, &a, false,
              "\"jobs\":[" JOB("p", "", "a[0]") ",{\"name\":\"q\",\"plan\":{\"replicas\":[{"
                                                "\"micro_batches\":64,\"stages\":[{\"devices\":"
                                                "\"a[1].0\",\"layers\":[0,20]}]}]}}]");
    assert_true(v.findings.n > 0);
    assert_int_equal(v.findings.items[0].code, HV_V_LAYERS_MISSING);
    assert_true(strncmp(v.findings.items[0].where, "jobs[1].plan.replicas[0]",
                        strlen("jobs[1].plan.replicas[0]")) == 0);
    hv_arena_free(&a);
}

static void times_that_cannot_be_are_refused(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"{\"format\":\"hetviz.plan/1\",\"jobs\":[" JOB("p", "\"arrival_s\":5,\"start_s\":4,",
                                                        "a[0]") "]}",
         "arrival"},
        {"{\"format\":\"hetviz.plan/1\",\"jobs\":[" JOB("p", "", "a[0]") "," JOB("p", "",
                                                                                 "a[1]") "]"
                                                                                         "}",
         "name of its own"},
        {"{\"format\":\"hetviz.plan/1\",\"jobs\":[]}", "at least one job"},
        {"{\"format\":\"hetviz.plan/1\",\"jobs\":[" JOB("p", "\"iterations\":-1,", "a[0]") "]}",
         "iterations"},
        {"{\"format\":\"hetviz.plan/1\",\"jobs\":[" JOB("p", "\"continues\":\"p\",", "a[0]") "]}",
         "before this one"},
        {"{\"format\":\"hetviz.plan/1\",\"jobs\":[" JOB("p", "", "a[0]") "," JOB(
             "q", "\"continues\":\"p\",", "a[1]") "]}",
         "no end"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_plan_doc doc;
        struct hv_err err = {0};
        assert_int_equal(
            hv_plan_doc_build(&doc, parse(rows[i].text, "p"), w->in.cluster.cluster, &err),
            HV_EINPUT);
        assert_non_null(strstr(err.text, rows[i].says));
        assert_int_equal(err.line, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_job_is_its_plan),
        cmocka_unit_test(jobs_beside_each_other_add_up),
        cmocka_unit_test(jobs_one_after_the_other_share_devices),
        cmocka_unit_test(a_job_goes_on_elsewhere),
        cmocka_unit_test(what_is_wrong_in_a_job_is_found_there),
        cmocka_unit_test(times_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
