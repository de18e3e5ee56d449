/** Traffic of several pipelines over one link: from first principles. */
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

/** Two regions of two nodes with a link of 0.5 GB/s between them, NICs of 50 GB/s; `nics` each. */
static const char regions[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"regions\",\"nodes\":["
    "{\"name\":\"a\",\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":8,\"zone\":\"east\","
    "\"nic\":{\"bandwidth_GBps\":50,\"count\":8}},"
    "{\"name\":\"b\",\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":8,\"zone\":\"west\","
    "\"nic\":{\"bandwidth_GBps\":50,\"count\":8}}],"
    "\"network\":{\"bandwidth_GBps\":50,\"latency_us\":5,\"links\":["
    "{\"between\":[\"east\",\"west\"],\"bandwidth_GBps\":0.5,\"latency_us\":20000}]}}";

static int setup_regions(void **state)
{
    static struct world w;
    open_world(&w, regions, model_text, job_text);
    *state = &w;
    return 0;
}

/** One pipeline of two stages, one device each, for `pairs` pairs of nodes. */
static struct hv_verdict judge_pairs(struct world *w, struct hv_arena *a, bool entries, int pairs,
                                     int m, const char *sync)
{
    char text[2048], from[64] = "", to[64] = "";
    size_t n = (size_t)snprintf(text, sizeof text, "\"micro_batch\":1,\"replicas\":[");
    for (int i = 0; i < pairs && entries; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%s{\"micro_batches\":%d,\"stages\":[{\"devices\":\"a[%d].0\","
                              "\"layers\":[0,12]},{\"devices\":\"b[%d].0\",\"layers\":[12,24]}]}",
                              i ? "," : "", m, i, i);
    }
    (void)snprintf(from, sizeof from, pairs > 1 ? "a[0-1].0" : "a[0].0");
    (void)snprintf(to, sizeof to, pairs > 1 ? "b[0-1].0" : "b[0].0");
    if (!entries) {
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"count\":%d,\"micro_batches\":%d,\"stages\":[{\"devices\":\"%s\","
                              "\"layers\":[0,12]},{\"devices\":\"%s\",\"layers\":[12,24]}]}",
                              pairs, m, from, to);
    }
    (void)snprintf(text + n, sizeof text - n, "],\"sync\":{\"kind\":\"%s\"}", sync);
    return judge(w, a, false, text);
}

/** Bytes of a micro-batch's activations: 2048 tokens of 2560 in fp16. */
static const double hop_bytes = 2048.0 * 2560 * 2;

/** The link has to carry every micro-batch of every pipeline, forward in one direction and back in
 * the other: no iteration is faster than that, however many pipelines they come from. */
static void all_pipelines_share_the_link_between_regions(void **state)
{
    struct hv_arena a = {0};
    for (int pairs = 1; pairs <= 2; pairs++) {
        struct hv_verdict v = judge_pairs(*state, &a, false, pairs, 64 / pairs, "none");
        assert_true(v.metrics.pipeline_s > 64 * hop_bytes / 0.5e9);
    }
    hv_arena_free(&a);
}

/** Twice the pipelines with as many micro-batches each take twice as long where the link is all
 * they wait for: its share of the time is near 1. */
static void twice_the_traffic_takes_twice_as_long(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict one = judge_pairs(*state, &a, false, 1, 64, "none"),
                      two = judge_pairs(*state, &a, false, 2, 64, "none");
    double link_s = 64 * hop_bytes / 0.5e9;
    assert_true(two.metrics.pipeline_s > 2 * link_s);
    assert_true(two.metrics.pipeline_s - one.metrics.pipeline_s > 0.8 * link_s);
    hv_arena_free(&a);
}

/** Copies of one entry run in step; the same pipelines as entries of their own are told apart and
 * played: the figures are the same. */
static void copies_share_as_entries_do(void **state)
{
    struct hv_arena a = {0};
    for (int m = 1; m <= 32; m *= 2) {
        struct hv_verdict x = judge_pairs(*state, &a, false, 2, m, "allreduce"),
                          y = judge_pairs(*state, &a, true, 2, m, "allreduce");
        assert_true(fabs(x.metrics.iteration_s - y.metrics.iteration_s) <
                    0.02 * y.metrics.iteration_s);
        assert_true(fabs(x.metrics.pipeline_s - y.metrics.pipeline_s) <
                    0.02 * y.metrics.pipeline_s);
    }
    hv_arena_free(&a);
}

/** Gradients of both stages go over the link too: one after the other, whatever nodes they come
 * from. Each of 2 × 1.2 G parameters in fp32 crosses it once per direction of the ring. */
static void reductions_share_the_link(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(
        *state, &a, false,
        "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":32,\"stages\":[{\"devices\":\"a[0].0\","
        "\"layers\":[0,12]},{\"devices\":\"a[1].0\",\"layers\":[12,24]}]},{\"micro_batches\":32,"
        "\"stages\":[{\"devices\":\"b[0].0\",\"layers\":[0,12]},{\"devices\":\"b[1].0\","
        "\"layers\":[12,24]}]}]");
    double parameters = 24 * 12.0 * 2560 * 2560; /* blocks alone */
    double link_s = parameters * 4 / 0.5e9;      /* 2 (n − 1)/n = 1 times the bytes */
    assert_true(v.metrics.iteration_s - v.metrics.pipeline_s > link_s);
    hv_arena_free(&a);
}

/** Pipelines on nodes of their own without a link in common do not slow each other. */
static void what_shares_nothing_is_not_slowed(void **state)
{
    struct world w;
    struct hv_arena a = {0};
    (void)state;
    open_world(&w, cluster_text, model_text, job_text);
    double t[2];
    for (int i = 0; i < 2; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":1,\"replicas\":[{\"count\":%d,\"micro_batches\":%d,"
                       "\"stages\":[{\"devices\":\"a[%s].0\",\"layers\":[0,12]},"
                       "{\"devices\":\"a[%s].0\",\"layers\":[12,24]}]}],\"sync\":{\"kind\":"
                       "\"none\"}",
                       1 + i, 32, i ? "0-1" : "0", i ? "2-3" : "2");
        t[i] = judge(&w, &a, false, text).metrics.pipeline_s;
    }
    assert_true(fabs(t[0] - t[1]) < 1e-9 * t[0]);
    hv_arena_free(&a);
    close_world(&w);
}

/** Nodes of eight devices with NICs and a network of so many GB/s, without latency. */
static void open_nics(struct world *w, int nodes, double gbps)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"nic\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":%d,\"device\":\"A100-SXM-80GB\",\"devices\":8,\"nic\":{"
                   "\"bandwidth_GBps\":%g,\"latency_us\":0,\"count\":1}}],"
                   "\"network\":{\"latency_us\":0}}",
                   nodes, gbps);
    open_world(w, text, model_text, job_text);
}

/** Eight pipelines between the same two nodes, over one NIC each: what they send at once shares it,
 * so a transfer takes eight times as long as that of one alone. */
static void pipelines_share_the_nics_of_their_nodes(void **state)
{
    struct world w;
    struct hv_arena a = {0};
    (void)state;
    open_nics(&w, 2, 1);
    double t[2];
    for (int i = 0; i < 2; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":1,\"replicas\":[{\"count\":%d,\"micro_batches\":1,"
                       "\"stages\":[{\"devices\":\"a[0].%s\",\"layers\":[0,12]},"
                       "{\"devices\":\"a[1].%s\",\"layers\":[12,24]}]}],\"sync\":{\"kind\":"
                       "\"allreduce\"}",
                       i ? 8 : 1, i ? "*" : "0", i ? "*" : "0");
        t[i] = judge(&w, &a, false, text).metrics.breakdown_s[HV_TIME_PP];
    }
    assert_true(t[1] / t[0] > 6 && t[1] / t[0] < 8.5);
    hv_arena_free(&a);
    close_world(&w);
}

/** Gathers of sharded weights over the link between regions, of two stages on nodes of their own:
 * the link needs twice as long as for those of one stage, and a pipeline that waits for little else
 * is nearly as much slower. What is waited for is part of the iteration. */
static void gathers_of_stages_share_the_link(void **state)
{
    struct hv_arena a = {0};
    double t[2];
    for (int both = 0; both < 2; both++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":32,\"stages\":["
                       "{\"devices\":\"a[0].0,b[0].0\",\"layers\":[0,12],\"dp\":2,\"zero\":3},"
                       "{\"devices\":\"%s\",\"layers\":[12,24],\"dp\":2,\"zero\":3}]}],"
                       "\"sync\":{\"kind\":\"none\"}",
                       both ? "a[1].0,b[1].0" : "a[1].0-1");
        struct hv_verdict v = judge(*state, &a, both == 1, text);
        double sum_s = 0;
        for (int k = 0; k < HV_BREAKDOWN_N; k++) {
            assert_true(v.metrics.breakdown_s[k] >= 0);
            sum_s += v.metrics.breakdown_s[k];
        }
        assert_true(fabs(sum_s - v.metrics.iteration_s) < 1e-9 * sum_s);
        t[both] = v.metrics.pipeline_s;
    }
    assert_true(t[1] > 1.7 * t[0] && t[1] < 2.1 * t[0]);
    hv_arena_free(&a);
}

/** Tensor-parallel sums over the NICs of two nodes: two stages on the same nodes wait for each
 * other, but never longer than if one ran after the other; on nodes of their own they do not. As
 * pipelines of their own they do the same. */
static void sums_of_stages_share_nics(void **state)
{
    struct world w;
    struct hv_arena a = {0};
    (void)state;
    open_nics(&w, 4, 6.25);
    for (int pipelines = 0; pipelines < 2; pipelines++) {
        static const char *const places[3][2] = {{"a[0-1].0-3", "a[2-3].0-3"},
                                                 {"a[0-1].0-3", "a[0-1].4-7"},
                                                 {"a[0-1].0-3", "a[1-2].4-7"}};
        double t[3];
        for (int i = 0; i < 3; i++) {
            char text[1024];
            const char *between = pipelines ? "]},{\"micro_batches\":16,\"stages\":[" : ",";
            (void)snprintf(text, sizeof text,
                           "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":16,\"stages\":["
                           "{\"devices\":\"%s\",\"layers\":[0,%d],\"tp\":8}%s"
                           "{\"devices\":\"%s\",\"layers\":[%d,24],\"tp\":8}]}],"
                           "\"sync\":{\"kind\":\"none\"}",
                           places[i][0], pipelines ? 24 : 12, between, places[i][1],
                           pipelines ? 0 : 12);
            t[i] = judge(&w, &a, false, text).metrics.pipeline_s;
        }
        assert_true(t[1] > 1.3 * t[0] && t[1] < 2.05 * t[0]);
        assert_true(fabs(t[2] - t[1]) < 0.05 * t[1]); /* one node in common is enough */
    }
    hv_arena_free(&a);
    close_world(&w);
}

/** Copies that hold shards of the same weights gather them together, not once each: as ranks of one
 * stage do. */
static void copies_gather_together(void **state)
{
    static const char *const plans[2] = {
        "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":16,\"stages\":[{\"devices\":"
        "\"a[0-1].0-1\",\"layers\":[0,24],\"dp\":4,\"zero\":3}]}],\"sync\":{\"kind\":\"none\"}",
        "\"micro_batch\":1,\"replicas\":[{\"count\":4,\"micro_batches\":16,\"stages\":[{"
        "\"devices\":\"a[0-1].0-1\",\"layers\":[0,24],\"zero\":3}]}],"
        "\"sync\":{\"kind\":\"none\"}"};
    struct world w;
    struct hv_arena a = {0};
    (void)state;
    open_world(&w, cluster_text, model_text, job_text);
    double t[2];
    for (int i = 0; i < 2; i++) {
        t[i] = judge(&w, &a, false, plans[i]).metrics.pipeline_s;
    }
    assert_true(fabs(t[0] - t[1]) < 1e-9 * t[0]);
    hv_arena_free(&a);
    close_world(&w);
}

#define NODE(name, count)                                                                          \
    "{\"name\":\"" name "\",\"count\":" count ",\"device\":\"A100-SXM-80GB\",\"devices\":2,"       \
    "\"nic\":{\"bandwidth_GBps\":2}}"
#define CLUSTER(nodes) "{\"format\":\"hetviz.cluster/1\",\"name\":\"g\",\"nodes\":[" nodes "]}"
/** Two pipelines that share the nodes of their first stages and no others. */
#define PLAN(first, second, third, last)                                                           \
    "\"micro_batch\":2,\"replicas\":[{\"count\":2,\"micro_batches\":16,\"stages\":[{\"devices\":"  \
    "[" first "],\"layers\":[0,1]},{\"devices\":[" second                                          \
    "],\"layers\":[1,8]},{\"devices\":[" third "],\"layers\":[8,16],\"dp\":2},{\"devices\":[" last \
    "],\"layers\":[16,24],\"dp\":2}]}],\"schedule\":{\"name\":\"zb-2p\"}"

/** An inventory may list every node by itself: a plan is worth the same. */
static void node_by_node(void **state)
{
    static const char *const clusters[] = {
        CLUSTER(NODE("a", "6")),
        CLUSTER(NODE("a", "1") "," NODE("b", "1") "," NODE("c", "1") "," /* one by one */
                NODE("d", "1") "," NODE("e", "1") "," NODE("f", "1"))};
    static const char *const plans[] = {
        PLAN("\"a[0].*\"", "\"a[1].*\"", "\"a[2-3].*\"", "\"a[4-5].*\""),
        PLAN("\"a[0].*\"", "\"b[0].*\"", "\"c[0].*\",\"d[0].*\"", "\"e[0].*\",\"f[0].*\"")};
    (void)state;
    double t[2];
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct hv_arena a = {0};
        open_world(&w, clusters[i], model_text, job_text);
        t[i] = judge(&w, &a, false, plans[i]).metrics.iteration_s;
        hv_arena_free(&a);
        close_world(&w);
    }
    assert_true(t[0] > 0 && fabs(t[0] - t[1]) < 1e-12 * t[0]);
}

/** Exchanges inside passes whose time is latency leave the links to others: two pipelines on the
 * same two nodes take as long as one, with tensor, context and expert parallelism between the
 * nodes.
 */
static void latency_takes_no_bandwidth(void **state)
{
    static const char *const degrees[] = {"\"tp\":2", "\"cp\":2",
                                          "\"cp\":{\"degree\":2,\"scheme\":\"ulysses\"}",
                                          "\"dp\":2,\"ep\":2"};
    struct world w;
    struct hv_arena a = {0};
    (void)state;
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"far\",\"nodes\":[{\"name\":\"a\","
               "\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":2,\"nic\":{"
               "\"bandwidth_GBps\":50,\"latency_us\":10000,\"count\":1}}],"
               "\"network\":{\"latency_us\":0}}",
               "{\"format\":\"hetviz.model/1\",\"name\":\"small\",\"kind\":\"transformer\","
               "\"layers\":4,\"hidden\":256,\"heads\":4,\"kv_heads\":4,\"ffn\":1024,"
               "\"ffn_kind\":\"gelu\",\"vocab\":1024,\"max_sequence\":2048,\"moe\":{\"experts\":4,"
               "\"top_k\":1,\"ffn\":1024}}",
               job_text);
    for (size_t i = 0; i < HV_COUNT(degrees); i++) {
        double t[2];
        for (int both = 0; both < 2; both++) {
            char text[1024];
            size_t n = (size_t)snprintf(text, sizeof text, "\"micro_batch\":2,\"replicas\":[");
            for (int k = 0; k <= both; k++) {
                n += (size_t)snprintf(text + n, sizeof text - n,
                                      "%s{\"micro_batches\":16,\"stages\":[{\"devices\":"
                                      "\"a[0-1].%d\",\"layers\":[0,4],%s}]}",
                                      k > 0 ? "," : "", k, degrees[i]);
            }
            (void)snprintf(text + n, sizeof text - n, "],\"sync\":{\"kind\":\"none\"}");
            t[both] = judge(&w, &a, false, text).metrics.pipeline_s;
        }
        assert_true(t[0] > 16 * 4 * 10e-3); /* latency is what it waits for */
        assert_true(t[1] >= t[0] && t[1] < 1.01 * t[0]);
    }
    hv_arena_free(&a);
    close_world(&w);
}

/** Seconds of gradient exchange of two ranks of data parallelism with two of tensor parallelism, on
 * nodes of so many devices with NICs of 1 GB/s. */
static double exchange_s(int nodes, int devices, const char *where, const char *zero)
{
    struct world w;
    struct hv_arena a = {0};
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"nic\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":%d,\"device\":\"A100-SXM-80GB\",\"devices\":%d,\"nic\":{"
                   "\"bandwidth_GBps\":1,\"latency_us\":0,\"count\":1}}],"
                   "\"network\":{\"latency_us\":0}}",
                   nodes, devices);
    open_world(&w, text, model_text, job_text);
    (void)snprintf(text, sizeof text,
                   "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":32,\"stages\":[{"
                   "\"devices\":\"%s\",\"layers\":[0,24],\"tp\":2,\"dp\":2%s}]}],"
                   "\"sync\":{\"kind\":\"allreduce\",\"overlap\":false}",
                   where, zero);
    struct hv_verdict v = judge(&w, &a, false, text);
    double t = v.metrics.breakdown_s[HV_TIME_DP];
    hv_arena_free(&a);
    close_world(&w);
    return t;
}

/** Slices of gradients that are on one node share its NIC; those on nodes of their own do not, and
 * take half as long. So do shards that are scattered and gathered again. */
static void slices_share_the_nics_of_their_nodes(void **state)
{
    (void)state;
    double apart = exchange_s(4, 1, "a[0-3].0", ""), beside = exchange_s(2, 2, "a[0-1].0-1", "");
    double bytes = 4 * 24 * 12.0 * 2560 * 2560 / 2; /* of a slice of the blocks */
    assert_true(fabs(beside - 2 * apart) < 1e-3 * beside);
    assert_true(apart > bytes / 1e9 && apart < 1.4 * bytes / 1e9);
    apart = exchange_s(4, 1, "a[0-3].0", ",\"zero\":1");
    beside = exchange_s(2, 2, "a[0-1].0-1", ",\"zero\":1");
    assert_true(fabs(beside - 2 * apart) < 1e-3 * beside);
}

/** Ranks that look alike are not where one shares its NICs with another: which comes first does not
 * matter. */
static void ranks_that_share_nics_are_told_apart(void **state)
{
    const char *devices[] = {"a[0-1].0,a[2-3].0,a[2-3].1", "a[2-3].0,a[0-1].0,a[2-3].1"};
    struct world w;
    struct hv_arena a = {0};
    double t[2];
    (void)state;
    open_nics(&w, 4, 1);
    for (int i = 0; i < 2; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":3,\"replicas\":[{\"micro_batches\":4,\"stages\":[{"
                       "\"devices\":\"%s\",\"layers\":[0,24],\"tp\":2,\"dp\":3}]}],"
                       "\"sync\":{\"kind\":\"none\"}",
                       devices[i]);
        t[i] = judge(&w, &a, false, text).metrics.pipeline_s;
    }
    assert_true(fabs(t[0] - t[1]) < 1e-9 * t[0]);
    hv_arena_free(&a);
    close_world(&w);
}

/** Four nodes of one device with NICs of 1 GB/s. */
static const char four_nics[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"nic\",\"nodes\":[{\"name\":\"a\",\"count\":4,"
    "\"device\":\"A100-SXM-80GB\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":1,\"latency_us\":0,"
    "\"count\":1}}],\"network\":{\"latency_us\":0}}";
static const char two_blocks[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"two\",\"kind\":\"transformer\",\"layers\":2,"
    "\"hidden\":2560,\"heads\":32,\"kv_heads\":32,\"ffn\":10240,\"ffn_kind\":\"gelu\","
    "\"vocab\":1024,\"max_sequence\":2048}";

/** Gathers of one stage and what it sends to the next go over the same NIC: in the forward phase
 * all activations and gathers of the first stage, in the backward phase all gradients, gathers and
 * scatters of the last. Neither alone would take as long. */
static void gathers_and_activations_share_nics(void **state)
{
    struct world w;
    struct hv_arena a = {0};
    (void)state;
    open_world(&w, four_nics, two_blocks, job_text);
    struct hv_verdict v = judge(
        &w, &a, false,
        "\"micro_batch\":32,\"replicas\":[{\"micro_batches\":32,\"stages\":[{\"devices\":"
        "\"a[0-1].0\",\"layers\":[0,1],\"dp\":2,\"zero\":3},{\"devices\":\"a[2-3].0\",\"layers\":"
        "[1,2],\"dp\":2,\"zero\":3}]}],\"schedule\":{\"name\":\"gpipe\"},\"sync\":{\"kind\":"
        "\"none\"}");
    double parameters = 12.0 * 2560 * 2560, half = 0.5; /* of a ring of two */
    double forward = 16 * hop_bytes + half * 2 * parameters;
    double backward = 16 * hop_bytes + half * (2 + 4) * parameters;
    assert_true(v.metrics.pipeline_s > 32 * (forward + backward) / 1e9);
    assert_true(v.metrics.pipeline_s < 64 * (forward + backward) / 1e9);
    hv_arena_free(&a);
    close_world(&w);
}

/** Sums of tensor parallelism that fill a NIC leave nothing of it to the gradients: these are not
 * hidden behind passes that wait for the same wire. */
static void passes_and_reductions_share_nics(void **state)
{
    struct world w;
    struct hv_arena a = {0};
    double t[2], tp_s = 0, dp_s = 0;
    (void)state;
    open_world(&w, four_nics, model_text, job_text);
    for (int i = 0; i < 2; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":1,\"stages\":[{"
                       "\"devices\":\"a[0-3].0\",\"layers\":[0,24],\"tp\":2,\"dp\":2}]}],"
                       "\"sync\":{\"kind\":\"allreduce\",\"bucket_MiB\":600,\"overlap\":%s}",
                       i ? "true" : "false");
        struct hv_verdict v = judge(&w, &a, false, text);
        t[i] = v.metrics.iteration_s;
        tp_s = v.metrics.breakdown_s[HV_TIME_TP];
        dp_s = i ? dp_s : v.metrics.breakdown_s[HV_TIME_DP];
    }
    assert_true(t[1] <= t[0] * (1 + 1e-9));
    assert_true(t[1] > tp_s + dp_s);
    hv_arena_free(&a);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pipelines_share_the_link_between_regions),
        cmocka_unit_test(twice_the_traffic_takes_twice_as_long),
        cmocka_unit_test(copies_share_as_entries_do),
        cmocka_unit_test(reductions_share_the_link),
        cmocka_unit_test(what_shares_nothing_is_not_slowed),
        cmocka_unit_test(pipelines_share_the_nics_of_their_nodes),
        cmocka_unit_test(gathers_of_stages_share_the_link),
        cmocka_unit_test(sums_of_stages_share_nics),
        cmocka_unit_test(copies_gather_together),
        cmocka_unit_test(node_by_node),
        cmocka_unit_test(latency_takes_no_bandwidth),
        cmocka_unit_test(gathers_and_activations_share_nics),
        cmocka_unit_test(passes_and_reductions_share_nics),
        cmocka_unit_test(slices_share_the_nics_of_their_nodes),
        cmocka_unit_test(ranks_that_share_nics_are_told_apart),
    };
    return cmocka_run_group_tests_name("eval contend", tests, setup_regions, teardown);
}
