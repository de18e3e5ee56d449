/* The planner within limits: prices, deadlines, nodes that are lost or not to be used, and whatever
 * way an inventory lists its nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "solver/plan/says.h"
#include "tests/planner_fixture.h"

#include <stdlib.h>

/* Nodes that an inventory lists one by one are those of one group. */
static void groups_that_are_alike_are_one(void **state)
{
    (void)state;
    static const char form[] = "{\"format\":\"hetviz.cluster/1\",\"name\":\"g\",\"nodes\":[%s]}";
    static const char node[] = "{\"name\":\"%c\",\"count\":%d,\"device\":\"A100-SXM-80GB\","
                               "\"devices\":2,\"price_usd_per_hour\":3}%s";
    double time_s[2];
    for (int way = 0; way < 2; way++) {
        char nodes[2048] = "", cluster[2304];
        int n = way == 0 ? 1 : 12;
        for (int i = 0; i < n; i++) {
            size_t at = strlen(nodes);
            (void)snprintf(nodes + at, sizeof nodes - at, node, 'a' + i, 12 / n,
                           i + 1 < n ? "," : "");
        }
        (void)snprintf(cluster, sizeof cluster, form, nodes);
        struct world w;
        open_world(&w, cluster, small_model, job_text);
        struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
        time_s[way] = r.iteration_s;
        hv_plan_unref(r.plan);
        close_world(&w);
    }
    assert_true(time_s[0] == time_s[1]);
}

/* What a runtime can run limits the search for it, on a cluster of two kinds, where the best plan
 * has unlike stages. */
static void plans_for_a_runtime_are_ones_that_it_runs(void **state)
{
    (void)state;
    for (int i = 0; i < HV_RUNTIME_N; i++) {
        char job[512];
        enum hv_runtime runtime = (enum hv_runtime)i;
        (void)snprintf(job, sizeof job, "%.*s,\"runtime\":\"%s\"}", (int)strlen(job_text) - 1,
                       job_text, hv_runtime_name(runtime));
        struct world w;
        open_world(&w, cluster_text, model_text, job);
        struct hv_planner_result r = search(&w, &(struct hv_planner_options){.budget = 300});
        struct hv_arena a = {0};
        struct hv_unsaid *found;
        assert_non_null(r.plan);
        if (hv_plan_not_run(r.plan, runtime, &a, &found) > 0) {
            fail_msg("%s: %s", hv_runtime_name(runtime), found[0].text);
        }
        assert_true(time_of(&w, r.plan) == r.iteration_s);
        hv_arena_free(&a);
        hv_plan_unref(r.plan);
        close_world(&w);
    }
}

/* On many thousands of devices an evaluation takes many times as long as on a few: the default
 * search counts that as work, and ends after correspondingly fewer evaluations. */
static void large_clusters_get_fewer_evaluations(void **state)
{
    (void)state;
    static const char cluster[] =
        "{\"format\":\"hetviz.cluster/"
        "1\",\"name\":\"l\",\"nodes\":[{\"name\":\"a\",\"count\":20000,"
        "\"device\":\"A100-SXM-80GB\",\"devices\":8,\"nic\":{\"bandwidth_GBps\":100}}]}";
    static const char job[] =
        "{\"format\":\"hetviz.job/1\",\"global_batch\":131072,\"sequence\":512,"
        "\"precision\":\"fp16\",\"optimizer\":\"adam\"}";
    struct world w;
    open_world(&w, cluster, small_model, job);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_true(r.evaluations > 20 && r.evaluations < 500);
    assert_false(r.stopped);
    hv_plan_unref(r.plan);
    close_world(&w);
}

/* The order in which an inventory lists its groups does not matter. */
static void order_of_groups_does_not_matter(void **state)
{
    (void)state;
    static const char *const groups[] = {
        "{\"name\":\"a\",\"count\":1,\"device\":\"A100-SXM-80GB\",\"devices\":4,\"nic\":{"
        "\"bandwidth_GBps\":25}}",
        "{\"name\":\"v\",\"count\":2,\"device\":\"V100-SXM2-32GB\",\"devices\":4,\"nic\":{"
        "\"bandwidth_GBps\":12.5}}",
        "{\"name\":\"l\",\"count\":1,\"device\":\"L40S-48GB\",\"devices\":2,\"nic\":{"
        "\"bandwidth_GBps\":1.25}}"};
    static const int orders_of[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
    double time_s[HV_COUNT(orders_of)];
    for (size_t i = 0; i < HV_COUNT(orders_of); i++) {
        char cluster[1024];
        (void)snprintf(cluster, sizeof cluster,
                       "{\"format\":\"hetviz.cluster/1\",\"name\":\"g\",\"nodes\":[%s,%s,%s],"
                       "\"network\":{\"bandwidth_GBps\":25,\"latency_us\":10}}",
                       groups[orders_of[i][0]], groups[orders_of[i][1]], groups[orders_of[i][2]]);
        struct world w;
        open_world(&w, cluster, small_model, job_text);
        struct hv_planner_options o = {.budget = 400};
        struct hv_planner_result r = search(&w, &o);
        time_s[i] = r.iteration_s;
        hv_plan_unref(r.plan);
        close_world(&w);
        assert_true(fabs(time_s[i] - time_s[0]) <= 1e-12 * time_s[0]);
    }
}

static void leaves_drained_and_spare_nodes_alone(void **state)
{
    (void)state;
    static const char cluster[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"d\",\"nodes\":[{\"name\":\"a\",\"count\":1,"
        "\"device\":\"A100-SXM-80GB\",\"devices\":2},{\"name\":\"h\",\"count\":2,\"device\":"
        "\"H100-SXM-80GB\",\"devices\":8,\"state\":\"drain\"},{\"name\":\"s\",\"device\":"
        "\"H100-SXM-80GB\",\"devices\":8,\"state\":\"spare\"}]}";
    struct world w;
    open_world(&w, cluster, small_model, small_job);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    for (size_t i = 0; i < r.plan->n_replicas; i++) {
        for (size_t s = 0; s < r.plan->replicas[i].n_stages; s++) {
            const struct hv_stage *st = &r.plan->replicas[i].stages[s];
            for (size_t d = 0; d < st->n_devices; d++) {
                assert_true(st->devices[d] < 2);
            }
        }
    }
    hv_plan_unref(r.plan);
    close_world(&w);
}

static void keeps_to_the_price(void **state)
{
    (void)state;
    static const char cluster[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"p\",\"nodes\":[{\"name\":\"a\",\"count\":4,"
        "\"device\":\"A100-SXM-80GB\",\"devices\":8,\"price_usd_per_hour\":30},{\"name\":\"v\","
        "\"count\":4,\"device\":\"V100-SXM2-32GB\",\"devices\":8,\"price_usd_per_hour\":10}]}";
    static const char *const caps[] = {"500", "65", "12"};
    double before = 0;
    for (size_t i = 0; i < HV_COUNT(caps); i++) {
        struct world w;
        struct hv_arena a = {0};
        struct hv_verdict v;
        struct hv_eval_options o = {.no_bound = true};
        char job[512];
        (void)snprintf(job, sizeof job, "%.*s,\"objective\":{\"max_usd_per_hour\":%s}}",
                       (int)sizeof job_text - 2, job_text, caps[i]);
        open_world(&w, cluster, model_text, job);
        struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
        assert_int_equal(hv_eval(w.cost, r.plan, &o, &a, &v, NULL), HV_OK);
        assert_int_equal(v.findings.n, 0);
        assert_true(v.metrics.usd_per_h <= strtod(caps[i], NULL));
        assert_true(r.iteration_s > before); /* less money, more time */
        before = r.iteration_s;
        hv_arena_free(&a);
        hv_plan_unref(r.plan);
        close_world(&w);
    }
}

static void keeps_to_the_deadline(void **state)
{
    (void)state;
    static const char cluster[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"p\",\"nodes\":[{\"name\":\"a\",\"count\":4,"
        "\"device\":\"A100-SXM-80GB\",\"devices\":8,\"price_usd_per_hour\":30},{\"name\":\"v\","
        "\"count\":4,\"device\":\"V100-SXM2-32GB\",\"devices\":8,\"price_usd_per_hour\":4}]}";
    double cost = 0, limit_s = HUGE_VAL;
    for (int i = 0; i < 3; i++) {
        struct world w;
        struct hv_arena a = {0};
        struct hv_verdict v;
        struct hv_eval_options o = {.no_bound = true};
        char job[512], deadline[64] = "";
        if (i > 0) {
            (void)snprintf(deadline, sizeof deadline, ",\"deadline_s\":%.6g", limit_s);
        }
        (void)snprintf(job, sizeof job, "%.*s,\"objective\":{\"minimize\":\"cost\"%s}}",
                       (int)sizeof job_text - 2, job_text, deadline);
        open_world(&w, cluster, model_text, job);
        struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
        assert_int_equal(hv_eval(w.cost, r.plan, &o, &a, &v, NULL), HV_OK);
        assert_true(r.iteration_s <= limit_s);
        assert_true(r.value > cost); /* less time, more money */
        cost = r.value;
        limit_s = 0.6 * r.iteration_s;
        hv_arena_free(&a);
        hv_plan_unref(r.plan);
        close_world(&w);
    }
}

/** Where no plan keeps the limits the answer is the one that is nearest to them, and the judge says
 * by how much it misses: as short as possible for a deadline, as cheap for a price. */
static void comes_near_to_impossible_limits(void **state)
{
    (void)state;
    static const char cluster[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"p\",\"nodes\":[{\"name\":\"a\",\"count\":2,"
        "\"device\":\"A100-SXM-80GB\",\"devices\":8,\"price_usd_per_hour\":30},{\"name\":\"v\","
        "\"count\":2,\"device\":\"V100-SXM2-32GB\",\"devices\":8,\"price_usd_per_hour\":4}]}";
    static const struct {
        const char *objective;
        enum hv_violation_code code;
    } cases[] = {{"\"minimize\":\"cost\",\"deadline_s\":0.001", HV_V_DEADLINE},
                 {"\"max_usd_per_hour\":1", HV_V_PRICE}};
    struct world w;
    open_world(&w, cluster, model_text, job_text);
    struct hv_planner_result fastest = search(&w, &(struct hv_planner_options){0});
    close_world(&w);
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct hv_arena a = {0};
        struct hv_verdict v;
        struct hv_eval_options o = {.no_bound = true};
        char job[512];
        (void)snprintf(job, sizeof job, "%.*s,\"objective\":{%s}}", (int)sizeof job_text - 2,
                       job_text, cases[i].objective);
        open_world(&w, cluster, model_text, job);
        struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
        assert_int_equal(hv_eval(w.cost, r.plan, &o, &a, &v, NULL), HV_OK);
        assert_int_equal(v.findings.n, 1);
        assert_int_equal(v.findings.items[0].code, cases[i].code);
        assert_int_equal(hv_findings_of_rules(&v.findings), 0);
        if (i == 0) {
            assert_true(v.metrics.iteration_s < 1.05 * fastest.iteration_s);
            assert_true(fabs(v.findings.items[0].by - (v.metrics.iteration_s - 0.001)) < 1e-9);
        } else {
            assert_true(v.metrics.usd_per_h <= 8.001); /* no dearer than the two cheap nodes */
            assert_true(fabs(v.findings.items[0].by - (v.metrics.usd_per_h - 1)) < 1e-9);
        }
        hv_arena_free(&a);
        hv_plan_unref(r.plan);
        close_world(&w);
    }
    hv_plan_unref(fastest.plan);
}

/** Plans whose price or power nobody knows come behind all whose figure is known, never by seconds
 * among dollars or joules; where no figure is known, the fastest is first. */
static void prefers_plans_whose_figure_is_known(void **state)
{
    (void)state;
    static const char cluster[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"u\",\"nodes\":[{\"name\":\"t\","
        "\"device\":\"TPU-v5e\",\"devices\":4},{\"name\":\"v\",\"device\":\"A100-SXM-80GB\","
        "\"devices\":2,\"price_usd_per_hour\":30}]}";
    static const char *const aims[] = {"cost", "energy"};
    struct world w;
    for (size_t i = 0; i < HV_COUNT(aims); i++) {
        struct hv_arena a = {0};
        struct hv_verdict v;
        struct hv_eval_options o = {.no_bound = true};
        char job[512];
        (void)snprintf(job, sizeof job,
                       "{\"format\":\"hetviz.job/1\",\"global_batch\":8,\"sequence\":2048,"
                       "\"precision\":\"bf16\",\"objective\":{\"minimize\":\"%s\"}}",
                       aims[i]);
        open_world(&w, cluster, small_model, job);
        struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
        assert_int_equal(hv_eval(w.cost, r.plan, &o, &a, &v, NULL), HV_OK);
        const struct hv_objective *aim = &w.in.job.job.objective;
        assert_true(hv_eval_has_figure(aim, &v.metrics));
        struct hv_metrics other = v.metrics;
        other.usd_per_mtoken = other.energy_j = HV_UNKNOWN;
        other.iteration_s = 1e-6;
        assert_true(hv_eval_worth(aim, &other) > hv_eval_worth(aim, &v.metrics));
        struct hv_metrics slower = other, late = v.metrics;
        slower.iteration_s = 1e6;
        assert_true(hv_eval_worth(aim, &slower) > hv_eval_worth(aim, &other));
        struct hv_objective limited = *aim;
        limited.deadline_s = v.metrics.iteration_s / 2;
        assert_true(hv_eval_worth(&limited, &late) > hv_eval_worth(aim, &slower));
        hv_arena_free(&a);
        hv_plan_unref(r.plan);
        close_world(&w);
    }
}

/* The plan without lost devices is the plan of a cluster that never had them. */
static void does_without_what_is_lost(void **state)
{
    (void)state;
    static const char nodes[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"n\",\"nodes\":[{\"name\":\"a\",\"count\":%d,"
        "\"device\":\"A100-SXM-80GB\",\"devices\":%d,\"nic\":{\"bandwidth_GBps\":12.5}}]}";
    static const struct {
        bool lost[8];
        int nodes, devices; /* what is left is like these */
    } cases[] = {{{0, 0, 0, 0, 1, 1, 1, 1}, 1, 4},
                 {{1, 0, 0, 1, 0, 1, 1, 0}, 2, 2},
                 {{0, 1, 1, 1, 1, 1, 1, 1}, 1, 1}};
    char text[512];
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct world w, like;
        (void)snprintf(text, sizeof text, nodes, 2, 4);
        open_world(&w, text, small_model, small_job);
        (void)snprintf(text, sizeof text, nodes, cases[i].nodes, cases[i].devices);
        open_world(&like, text, small_model, small_job);
        struct hv_planner_result r =
            search(&w, &(struct hv_planner_options){.lost = cases[i].lost});
        struct hv_planner_result want = search(&like, &(struct hv_planner_options){0});
        for (size_t k = 0; k < r.plan->n_replicas; k++) {
            for (size_t s = 0; s < r.plan->replicas[k].n_stages; s++) {
                const struct hv_stage *stage = &r.plan->replicas[k].stages[s];
                for (size_t d = 0; d < stage->n_devices; d++) {
                    assert_false(cases[i].lost[stage->devices[d]]);
                }
            }
        }
        assert_true(fabs(r.iteration_s - want.iteration_s) <= 1e-9 * want.iteration_s);
        hv_plan_unref(r.plan);
        hv_plan_unref(want.plan);
        close_world(&w);
        close_world(&like);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_that_are_alike_are_one),
        cmocka_unit_test(plans_for_a_runtime_are_ones_that_it_runs),
        cmocka_unit_test(large_clusters_get_fewer_evaluations),
        cmocka_unit_test(order_of_groups_does_not_matter),
        cmocka_unit_test(leaves_drained_and_spare_nodes_alone),
        cmocka_unit_test(keeps_to_the_price),
        cmocka_unit_test(keeps_to_the_deadline),
        cmocka_unit_test(comes_near_to_impossible_limits),
        cmocka_unit_test(prefers_plans_whose_figure_is_known),
        cmocka_unit_test(does_without_what_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
