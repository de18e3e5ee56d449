/** What failures leave of a plan: rates, states per node, who gives them back, against by-hand sums
 * and a simulation of nodes that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "tests/eval_fixture.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.12g is not within %g of %.12g", got, rel, want);
    }
}

static const char spot[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"spot\",\"nodes\":["
    "{\"name\":\"a\",\"count\":4,\"device\":\"A100-SXM-80GB\",\"devices\":8,\"nic\":{\"bandwidth_"
    "GBps\":100},\"price_usd_per_hour\":30,\"spot_usd_per_hour\":10,\"preemptions_per_hour\":0.5},"
    "{\"name\":\"v\",\"count\":2,\"device\":\"V100-SXM2-32GB\",\"devices\":8,\"nic\":{\"bandwidth_"
    "GBps\":12.5},\"price_usd_per_hour\":20,\"spot_usd_per_hour\":5}]}";
static const char job[] =
    "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":2048,\"precision\":\"fp16\","
    "\"failures\":{\"per_device_hour\":0.001,\"detect_s\":30,\"replace_s\":400,\"restart_s\":100,"
    "\"regroup_s\":8,\"checkpoint_GBps\":2}}";

/* Two pipelines of two stages, a node each. */
static const char two_pipelines[] =
    "\"micro_batch\":8,\"replicas\":["
    "{\"count\":2,\"micro_batches\":4,\"stages\":["
    "{\"devices\":[\"a[0].*\",\"a[2].*\"],\"layers\":[0,12],\"dp\":8},"
    "{\"devices\":[\"a[1].*\",\"a[3].*\"],\"layers\":[12,24],\"dp\":8}]}]";

static void figures_are_the_sums_by_hand(void **state)
{
    struct world w;
    struct hv_arena a = {0};
    (void)state;
    open_world(&w, spot, model_text, job);
    struct hv_verdict v = judge(&w, &a, false, two_pipelines);
    const struct hv_goodput *g = &v.goodput;
    assert_true(g->known);
    assert_int_equal(g->from, HV_RECOVER_CHECKPOINT);
    assert_int_equal(g->n_nodes, 4);
    assert_near(g->failures_per_h, 4 * (0.5 + 8 * 0.001), 1e-12);
    assert_near(g->usd_per_h, 4 * 10, 1e-12);
    /* fp16 weights, fp32 master copy, two fp32 states: 14 bytes */
    double bytes = 14 * hv_model_parameters(w.in.model.model);
    assert_near(g->checkpoint_bytes, bytes, 1e-6);
    /* both pipelines write half; the stages are about the same */
    assert_near(g->write_s, bytes / 4 / 2e9, 0.05);
    /* every rank reads the whole stage */
    assert_near(g->load_s, 8 * bytes / 2 / 2e9, 0.05);
    assert_near(g->restore_s, 400 + 100 + g->load_s, 1e-9);
    assert_near(g->interval_s, hv_failure_best_segment_s(g->write_s, 3600 / g->failures_per_h),
                1e-12);
    double left = g->tokens_per_s / v.metrics.tokens_per_s;
    assert_near(left, g->share.useful, 1e-12);
    assert_near(g->sequences_per_s, 64 / v.metrics.iteration_s * left, 1e-12);
    assert_near(g->usd_per_mtoken, 40 / 3600.0 / (g->tokens_per_s / 1e6), 1e-12);
    close_world(&w);
    hv_arena_free(&a);
}

static enum hv_recovery recovery_of(struct world *w, const char *plan)
{
    struct hv_arena a = {0};
    char text[4096];
    (void)snprintf(text, sizeof text, "%s,\"recovery\":\"peers\"", plan);
    enum hv_recovery from = judge(w, &a, false, text).goodput.from;
    hv_arena_free(&a);
    return from;
}

static void peers_help_where_every_state_outlives_any_node(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, spot, model_text, job);
    assert_int_equal(recovery_of(&w, two_pipelines), HV_RECOVER_PEERS);
    /* data-parallel ranks of one stage on two nodes hold the same */
    assert_int_equal(recovery_of(&w, "\"micro_batch\":16,\"replicas\":[{\"micro_batches\":4,"
                                     "\"stages\":[{\"devices\":\"a[0-1].*\",\"layers\":[0,24],"
                                     "\"dp\":16}]}]"),
                     HV_RECOVER_PEERS);
    /* unless they hold shards of it */
    assert_int_equal(recovery_of(&w, "\"micro_batch\":16,\"replicas\":[{\"micro_batches\":4,"
                                     "\"stages\":[{\"devices\":\"a[0-1].*\",\"layers\":[0,24],"
                                     "\"dp\":16,\"zero\":1}]}]"),
                     HV_RECOVER_CHECKPOINT);
    /* the last layer of both pipelines is on one node */
    assert_int_equal(
        recovery_of(&w, "\"micro_batch\":1,\"replicas\":[{\"count\":2,\"micro_batches\":32,"
                        "\"stages\":[{\"devices\":[\"a[0].0\",\"a[1].0\"],\"layers\":[0,23]},"
                        "{\"devices\":[\"a[2].0\",\"a[2].1\"],\"layers\":[23,24]}]}]"),
        HV_RECOVER_CHECKPOINT);
    close_world(&w);
}

static void who_says_nothing_of_failures_hears_nothing(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, false, four_stages);
    assert_false(v.goodput.known);
    hv_arena_free(&a);
}

/* Nodes come and go; the plan runs with the throughput of the number away, and stops for a while
 * whenever that changes. */
static double play(const struct hv_goodput *g, const double *tokens, size_t n, double per_s,
                   double away_s)
{
    struct hv_rng rng;
    double t = 0, done = 0, end = 4e8, stop = 0;
    double next[8]; /* when a node goes or is back */
    bool here[8];
    size_t away = 0;
    hv_rng_seed(&rng, 11);
    for (int i = 0; i < 4; i++) {
        here[i] = true;
        next[i] = -log(1 - hv_rng_double(&rng)) / per_s;
    }
    double segment = g->interval_s + g->write_s;
    while (t < end) {
        int first = 0;
        for (int i = 1; i < 4; i++) {
            first = next[i] < next[first] ? i : first;
        }
        double from = t > stop ? t : stop, span = next[first] - from;
        if (span > 0 && away < n) {
            /* a failure keeps what checkpoints hold; who comes back is let in at one */
            double runs = here[first] ? floor(span / segment) : span / segment;
            double whole = runs * g->interval_s;
            done += whole * tokens[away];
        }
        t = next[first];
        here[first] = !here[first];
        away += here[first] ? (size_t)-1 : 1;
        stop = fmax(stop, t + g->restore_s / 2 + (here[first] ? 0 : g->detect_s));
        double mean = here[first] ? 1 / per_s : away_s;
        next[first] = t - mean * log(1 - hv_rng_double(&rng));
    }
    return done / end;
}

static void mended_plans_do_what_a_simulation_does(void **state)
{
    struct world w;
    struct hv_arena a = {0};
    (void)state;
    open_world(&w, spot, model_text, job);
    char text[4096];
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}", two_pipelines);
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    assert_int_equal(hv_plan_doc_build(&doc, parse(text, "p"), w.in.cluster.cluster, &err), HV_OK);
    struct hv_goodput g;
    struct hv_elastic e;
    const struct hv_goodput_query q = {doc.plan, 10, 1000, false};
    const double tokens[] = {1000, 700, 300};
    hv_eval_goodput(w.cost, &q, &a, &g);
    hv_eval_elastic(w.cost, doc.plan, &g, tokens, 3, &a, &e);
    double p = g.failures_per_h / 3600 / 4 * 430, share = p / (1 + p);
    assert_near(e.probability[0], pow(1 - share, 4), 1e-9);
    assert_near(e.probability[3], 4 * pow(share, 3) * (1 - share) + pow(share, 4), 1e-9);
    assert_near(e.usd_per_h, 40 * (1 - share), 1e-9);
    assert_near(e.tokens_per_s, play(&g, tokens, 3, g.failures_per_h / 3600 / 4, 430), 0.03);
    const double none[] = {0};
    hv_eval_elastic(w.cost, doc.plan, &g, none, 1, &a, &e);
    assert_true(e.tokens_per_s == 0 && !hv_known(e.usd_per_mtoken)); /* not a price without end */
    hv_plan_doc_free(&doc);
    close_world(&w);
    hv_arena_free(&a);
}

/* Rates of 0: nothing is lost, and no figure is a number without end; a checkpoint that the job
 * asks for is still written. */
static void nothing_is_lost_where_nothing_fails(void **state)
{
    static const char *const ends[] = {"0}}", "0,\"checkpoint_interval_s\":100}}"};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(ends); i++) {
        struct world w;
        struct hv_arena a = {0};
        char never[512], quiet[1024];
        (void)snprintf(never, sizeof never,
                       "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":2048,"
                       "\"precision\":\"fp16\",\"failures\":{\"per_device_hour\":%s",
                       ends[i]);
        (void)snprintf(quiet, sizeof quiet, "%s", spot);
        char *rate = strstr(quiet, "0.5}");
        rate[2] = '0';
        open_world(&w, quiet, model_text, never);
        struct hv_verdict v = judge(&w, &a, false, two_pipelines);
        const struct hv_goodput *g = &v.goodput;
        double useful = i == 0 ? 1 : 100 / (100 + g->write_s);
        assert_true(g->known && g->failures_per_h == 0 && g->rollback_s == 0);
        assert_near(g->tokens_per_s, useful * v.metrics.tokens_per_s, 1e-12);
        assert_near(g->share.useful + g->share.write, 1, 1e-12);
        assert_true(i == 0 ? !hv_known(g->interval_s) : g->interval_s == 100);
        close_world(&w);
        hv_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_the_sums_by_hand),
        cmocka_unit_test(peers_help_where_every_state_outlives_any_node),
        cmocka_unit_test(who_says_nothing_of_failures_hears_nothing),
        cmocka_unit_test(nothing_is_lost_where_nothing_fails),
        cmocka_unit_test(mended_plans_do_what_a_simulation_does),
    };
    return cmocka_run_group_tests_name("eval_goodput", tests, setup, teardown);
}
