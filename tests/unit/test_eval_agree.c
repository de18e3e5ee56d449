/** Workers that do not wait for all gradients: paces, groups and staleness by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

static const char mixed_cluster[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"mixed\",\"nodes\":["
    "{\"name\":\"a\",\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":1,"
    "\"nic\":{\"bandwidth_GBps\":10,\"latency_us\":1}},"
    "{\"name\":\"v\",\"count\":2,\"device\":\"V100-SXM2-32GB\",\"devices\":1,"
    "\"nic\":{\"bandwidth_GBps\":10,\"latency_us\":1}}]}";
/** One layer: a sequence takes 1 s on an A100 and 2 s on a V100. */
#define ONE_LAYER(bytes)                                                                           \
    "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"layers\":[{\"name\":"     \
    "\"l\",\"forward_ms\":{\"A100-SXM-80GB\":400,\"V100-SXM2-32GB\":800},\"backward_ms\":{"        \
    "\"A100-SXM-80GB\":600,\"V100-SXM2-32GB\":1200},\"parameter_bytes\":" #bytes                   \
    ",\"activation_bytes\":0,\"output_bytes\":0}]}"
static const char job_of_4[] = "{\"format\":\"hetviz.job/1\",\"global_batch\":4,\"sequence\":16,"
                               "\"precision\":\"fp16\",\"optimizer\":\"none\"}";

#define ENTRY(devices, count, n)                                                                   \
    "{\"count\":" #count ",\"micro_batches\":" #n ",\"stages\":[{\"devices\":\"" devices           \
    "\",\"layers\":[0,1]}]}"
/** Two workers of 1 s and one of 2 s. */
#define THREE_WORKERS "\"replicas\":[" ENTRY("a[0-1].0", 2, 1) "," ENTRY("v[0].0", 1, 1) "]"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

/** The catalogue's case: 3 workers of 1, 1 and 2 s in pairs make one group a second, which are two
 * gradients; all-reduce makes 1.5. */
static void pairs_of_three_workers(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, mixed_cluster, ONE_LAYER(0), job_of_4);
    struct hv_verdict v = judge(&w, &a, false,
                                THREE_WORKERS ",\"sync\":{\"kind\":\"partial_reduce\","
                                              "\"group\":2}");
    assert_int_equal(v.findings.n, 0);
    assert_near(v.metrics.iteration_s, 4 / 2.0, 0.02);
    assert_false(v.metrics.exact);
    const struct hv_stale_sync *x = v.stale_sync;
    assert_non_null(x);
    assert_int_equal(x->n_workers, 3);
    assert_int_equal(x->group, 2);
    assert_near(x->rho, (1 + sqrt(1.0 / 3)) / 2, 0.03);
    assert_int_equal(x->own_staleness, 0);
    assert_true(v.metrics.staleness >= 1);
    /* all of them in one group are all-reduce: at the pace of the slowest, agreed at once */
    v = judge(&w, &a, false, THREE_WORKERS ",\"sync\":{\"kind\":\"partial_reduce\",\"group\":3}");
    assert_near(v.metrics.iteration_s, 4 / 1.5, 0.02);
    assert_near(1 + v.stale_sync->rho, 1, 1e-9);
    assert_int_equal(v.metrics.staleness, 0);
    assert_near(v.stale_sync->wait_frac, (0.5 + 0.5 + 0) / 3, 0.02);
    /* nobody waits longer than a thousandth of a second: all go at their own pace */
    v = judge(&w, &a, false,
              THREE_WORKERS ",\"sync\":{\"kind\":\"partial_reduce\",\"group\":3,\"wait_ms\":1}");
    assert_int_equal(v.findings.n, 0);
    assert_near(v.metrics.iteration_s, 4 / 2.5, 0.02);
    assert_true(v.stale_sync->mean_group < 3);
    /* gossip waits for nobody: 1 + 1 + 1/2 a second */
    v = judge(&w, &a, false, THREE_WORKERS ",\"sync\":{\"kind\":\"gossip\"}");
    assert_near(v.metrics.iteration_s, 4 / 2.5, 0.02);
    assert_near(1 + v.stale_sync->wait_frac, 1, 1e-9);
    hv_arena_free(&a);
    close_world(&w);
}

/** HetPipe's hand case: waves of 4 and 6 s, D = 0: both go at 6 s per wave, the fast one waits. */
static void waves_go_at_the_pace_of_the_slowest(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, mixed_cluster, ONE_LAYER(0), job_of_4);
#define WAVES                                                                                      \
    "\"replicas\":[" ENTRY("a[0].0", 1, 4) "," ENTRY(                                              \
        "v[0].0", 1, 3) "],\"schedule\":{\"name\":"                                                \
                        "\"hetpipe\",\"in_flight\":1},\"sync\":{\"kind\":\"wsp\",\"staleness\":"
    struct hv_verdict v = judge(&w, &a, false, WAVES "0}");
    assert_int_equal(v.findings.n, 0);
    /* 7 sequences per wave of all, 4 are wanted */
    assert_near(v.metrics.iteration_s, 6 * 4 / 7.0, 1e-6);
    assert_near(v.stale_sync->wave_s, 6, 1e-6);
    assert_near(v.stale_sync->wait_frac, (2.0 / 6 + 0) / 2, 1e-6);
    assert_int_equal(v.metrics.staleness, 0); /* s_global of Nm = 1, D = 0 */
    assert_true(!hv_known(v.stale_sync->rho));
    v = judge(&w, &a, false, WAVES "3}");
    assert_near(v.metrics.iteration_s, 6 * 4 / 7.0, 1e-6); /* D does not help in the long run */
    assert_int_equal(v.metrics.staleness, 3);
    hv_arena_free(&a);
    close_world(&w);
}

static size_t count_sync(const struct hv_timeline *t, size_t row, double *first_s, double *length_s)
{
    const struct hv_lane *lane = &t->lanes.items[t->rows[row].link_lane];
    size_t n = 0;
    for (size_t i = 0; i < lane->n_spans; i++) {
        if (t->ops[lane->spans[i].id].kind == HV_SPAN_SYNC) {
            *first_s = n == 0 ? lane->spans[i].start_s : *first_s;
            *length_s = lane->spans[i].end_s - lane->spans[i].start_s;
            n++;
        }
    }
    return n;
}

static void exchanges_are_drawn(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    double first_s = 0, length_s = 0;
    open_world(&w, mixed_cluster, ONE_LAYER(1000000000), job_of_4);
    /* a push behind every wave: after 4 s on a[0], for as long as the judge says */
    struct hv_verdict v = judge(&w, &a, true, WAVES "0}");
    assert_true(v.stale_sync->exchange_s > 0);
    assert_true(count_sync(v.timeline, 0, &first_s, &length_s) > 0);
    assert_near(first_s, 4, 1e-6);
    assert_near(length_s, v.stale_sync->exchange_s, 1e-6);
    assert_true(v.timeline->end_s >= first_s + length_s);
    /* groups: the workers of 1 s average first, at 1 s */
    v = judge(&w, &a, true, THREE_WORKERS ",\"sync\":{\"kind\":\"partial_reduce\",\"group\":2}");
    assert_int_equal(count_sync(v.timeline, 0, &first_s, &length_s), 1);
    assert_near(first_s, 1, 1e-6);
    assert_true(length_s > 0.1 && length_s < 1); /* 1 GB there and back at 10 GB/s */
    assert_int_equal(count_sync(v.timeline, 1, &first_s, &length_s), 1);
    assert_true(first_s >= 2);
    hv_arena_free(&a);
    close_world(&w);
}

static void time_is_kept(void **state)
{
    static const char *const kinds[] = {"partial_reduce", "gossip", "wsp", "ps"};
    for (size_t i = 0; i < HV_COUNT(kinds); i++) {
        struct hv_arena a = {0};
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":1,\"replicas\":[{\"count\":4,\"micro_batches\":8,"
                       "\"stages\":[{\"devices\":\"a[0].0-3\",\"layers\":[0,24]}]},{\"count\":2,"
                       "\"micro_batches\":16,\"stages\":[{\"devices\":\"v[0].0-1\",\"layers\":[0,"
                       "12],\"recompute\":\"full\"},{\"devices\":\"v[0].2-3\",\"layers\":[12,24],"
                       "\"recompute\":\"full\"}]}],\"sync\":{\"kind\":\"%s\",\"staleness\":2,"
                       "\"group\":3}",
                       kinds[i]);
        struct hv_verdict v = judge(*state, &a, false, text);
        double sum = 0;
        for (int k = 0; k < HV_BREAKDOWN_N; k++) {
            assert_true(v.metrics.breakdown_s[k] >= 0);
            sum += v.metrics.breakdown_s[k];
        }
        assert_near(sum, v.metrics.iteration_s, 1e-9);
        assert_true(v.metrics.iteration_s >= v.metrics.bound_s);
        struct hv_str words = {0};
        hv_eval_stale_sync_text(v.stale_sync, &words);
        assert_non_null(strstr(hv_str_cstr(&words), "6 workers"));
        hv_str_free(&words);
        hv_arena_free(&a);
    }
}

/** A hundred workers are played one by one, too: none is faster than its work lets it, waits for
 * one other at a time, and nothing is approximated. */
static void a_hundred_workers_are_played(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"many\",\"nodes\":[{\"name\":\"a\","
               "\"count\":100,\"device\":\"A100-SXM-80GB\",\"devices\":1}]}",
               ONE_LAYER(0), job_of_4);
    struct hv_verdict v = judge(
        &w, &a, false,
        "\"replicas\":[" ENTRY("a[0-99].0", 100, 1) "],\"sync\":{"
                                                    "\"kind\":\"partial_reduce\",\"group\":2}");
    assert_int_equal(v.stale_sync->n_workers, 100);
    assert_true(hv_known(v.stale_sync->rho) && v.stale_sync->rho < 1);
    assert_true(v.metrics.iteration_s > 0.99 * 4 / 100 && v.metrics.iteration_s < 2.0 * 4 / 100);
    assert_int_equal(v.n_approximated, 0);
    hv_arena_free(&a);
    close_world(&w);
}

/** Mean exchange of four workers in pairs, on nodes with NICs of 1 GB/s. */
static struct hv_stale_sync pairs_on(const char *nodes, const char *devices, const char *sync)
{
    struct world w;
    struct hv_arena a = {0};
    char cluster[512], body[512];
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"pairs\",\"nodes\":[{\"name\":\"a\","
                   "%s,\"device\":\"A100-SXM-80GB\",\"nic\":{\"bandwidth_GBps\":1,"
                   "\"latency_us\":0,\"curve\":\"plain\"}}]}",
                   nodes);
    (void)snprintf(body, sizeof body,
                   "\"replicas\":[{\"count\":4,\"micro_batches\":1,\"stages\":[{\"devices\":%s,"
                   "\"layers\":[0,1]}]}],\"sync\":{%s}",
                   devices, sync);
    open_world(&w, cluster, ONE_LAYER(1e9), job_of_4);
    struct hv_verdict v = judge(&w, &a, false, body);
    assert_int_equal(v.n_approximated, 0);
    struct hv_stale_sync x = *v.stale_sync;
    hv_arena_free(&a);
    close_world(&w);
    return x;
}

/** Two pairs that average at the same time between the same two nodes take twice as long as on
 * nodes of their own, and inside nodes they use no network. Gossip of four on their own links is
 * faster than of four behind two NICs. */
static void averages_share_networks(void **state)
{
    (void)state;
    const char *pairs = "\"kind\":\"partial_reduce\",\"group\":2,\"connect\":false";
    const char *two = "\"count\":2,\"devices\":2", *four = "\"count\":4,\"devices\":1";
    double apart = pairs_on(four, "\"a[0-3].0\"", pairs).exchange_s;
    double bytes = 1e9; /* 16-bit gradients of 1 GB of weights; a ring of two moves them once */
    assert_near(apart, bytes / 1e9, 1e-9);
    assert_near(pairs_on(two, "[\"a[0].0\",\"a[1].0\",\"a[0].1\",\"a[1].1\"]", pairs).exchange_s,
                2 * apart, 1e-9);
    assert_true(pairs_on(two, "\"a[0-1].*\"", pairs).exchange_s < 0.1 * apart);
    double alone = pairs_on(four, "\"a[0-3].0\"", "\"kind\":\"gossip\"").exchange_s;
    double shared = pairs_on(two, "\"a[0-1].*\"", "\"kind\":\"gossip\"").exchange_s;
    assert_true(alone > apart); /* a worker may be asked while it exchanges itself */
    assert_true(shared < 2 * alone);
    double slow = pairs_on(four, "\"a[0-3].0\"",
                           "\"kind\":\"partial_reduce\",\"group\":2,\"weights\":\"staleness\"")
                      .rho;
    assert_true(slow > 0 && slow < 1);
}

/** Seconds of an exchange between four workers on nodes of their own with NICs of 1 GB/s. */
static double push_s(struct world *w, const char *servers)
{
    struct hv_arena a = {0};
    char text[512];
    (void)snprintf(text, sizeof text,
                   "\"replicas\":[" ENTRY("a[0-3].0", 4, 1) "],\"sync\":{\"kind\":\"wsp\","
                                                            "\"servers\":\"%s\"}",
                   servers);
    struct hv_verdict v = judge(w, &a, false, text);
    assert_int_equal(v.findings.n, 0);
    assert_non_null(v.stale_sync);
    double t = v.stale_sync->exchange_s;
    hv_arena_free(&a);
    return t;
}

/**
 * Sharded over the four nodes, every node sends 3/4 of S and, as a server, receives S/4 from three
 * workers; then the same back: as much as a ring all-reduce. One node as the only server receives
 * 3 S and sends 3 S: four times as long. Two servers: each receives 3/2 S.
 */
static void servers_are_as_fast_as_their_links(void **state)
{
    (void)state;
    struct world w;
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"ps\",\"nodes\":[{\"name\":\"a\","
               "\"count\":4,\"device\":\"A100-SXM-80GB\",\"devices\":2,\"nic\":{"
               "\"bandwidth_GBps\":1,\"latency_us\":1,\"count\":1}}]}",
               ONE_LAYER(8e9), job_of_4);
    double sharded = push_s(&w, "sharded");
    assert_true(sharded > 2 * 0.75 * 8); /* of the weights there are 8 GB; NICs reach a share */
    assert_near(push_s(&w, "a[0]"), 4 * sharded, 0.01);
    assert_near(push_s(&w, "a[0-1]"), 2 * sharded, 0.01);
    close_world(&w);
}

/** Workers of one node with their server there: nothing leaves the node, only the links to its host
 * are used, push and pull. */
static void local_servers_stay_in_the_node(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"ps\",\"nodes\":[{\"name\":\"a\","
               "\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":2,\"nic\":{"
               "\"bandwidth_GBps\":1,\"latency_us\":1,\"count\":1}}]}",
               ONE_LAYER(8e9), job_of_4);
    struct hv_verdict v =
        judge(&w, &a, false,
              "\"replicas\":[" ENTRY("a[0].*", 2, 2) "],\"sync\":{\"kind\":"
                                                     "\"wsp\",\"servers\":\"local\"}");
    double grads = hv_job_grad_bytes(&w.in.job.job) / 2 * 8e9; /* 4 G parameters */
    assert_near(v.stale_sync->exchange_s, (grads + 8e9) / (0.8 * 31.5e9), 1e-6);
    assert_int_equal(v.n_approximated, 0);
    hv_arena_free(&a);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_three_workers),
        cmocka_unit_test(waves_go_at_the_pace_of_the_slowest),
        cmocka_unit_test(exchanges_are_drawn),
        cmocka_unit_test(time_is_kept),
        cmocka_unit_test(a_hundred_workers_are_played),
        cmocka_unit_test(averages_share_networks),
        cmocka_unit_test(servers_are_as_fast_as_their_links),
        cmocka_unit_test(local_servers_stay_in_the_node),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
