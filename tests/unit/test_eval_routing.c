/** Tokens that the job routes unevenly: loads, exchanges and drops in the time of every layer, and
 * iterations that differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/eval_fixture.h"

/* Two layers of eight experts; nearly all the time is theirs. */
static const char experts_text[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"moe\",\"kind\":\"transformer\",\"layers\":2,"
    "\"hidden\":1024,\"heads\":16,\"kv_heads\":16,\"ffn\":4096,\"ffn_kind\":\"swiglu\","
    "\"vocab\":1000,\"max_sequence\":2048,"
    "\"moe\":{\"experts\":8,\"top_k\":2,\"ffn\":8192}}";

/* Sixteen A100 of two nodes, or eight of one. */
enum where { TWO_NODES, ONE_NODE };

static struct hv_verdict routed(const char *routing, const char *moe, enum where where,
                                struct hv_arena *a)
{
    char job[2048], body[1024];
    struct world w;
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":2048,"
                   "\"precision\":\"bf16\",\"optimizer\":\"adam\"%s%s}",
                   routing[0] != '\0' ? ",\"routing\":" : "", routing);
    open_world(&w, cluster_text, experts_text, job);
    int n = where == ONE_NODE ? 8 : 16;
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":[{"
                   "\"devices\":\"%s\",\"layers\":[0,2],\"dp\":%d,\"ep\":8,\"moe\":{"
                   "\"all_to_all\":\"flat\"%s}}]}]",
                   n, 64 / n, where == ONE_NODE ? "a[0].*" : "a[0-1].*", n, moe);
    struct hv_verdict v = judge(&w, a, false, body);
    close_world(&w);
    return v;
}

static double time_of(const char *routing, const char *moe, enum where where)
{
    struct hv_arena a = {0};
    struct hv_verdict v = routed(routing, moe, where, &a);
    double s = v.metrics.iteration_s;
    hv_arena_free(&a);
    return s;
}

static void assert_near(double got, double want, double by)
{
    if (!(fabs(got - want) <= by * fabs(want))) {
        fail_msg("%.17g is not %.17g", got, want);
    }
}

/* A trace of one iteration and two layers: one row for all sources and layers, or two rows. */
static const char *trace(char *out, size_t cap, const char *first, const char *second)
{
    (void)snprintf(out, cap, "{\"kind\":\"trace\",\"counts\":[[[[%s]],[[%s]]]]}", first, second);
    return out;
}

static void even_routing_moves_nothing(void **state)
{
    (void)state;
    char text[512];
    double even = time_of("", "", ONE_NODE);
    assert_near(time_of("{\"kind\":\"uniform\"}", "", ONE_NODE), even, 0);
    assert_near(time_of("{\"kind\":\"zipf\",\"skew\":0}", "", ONE_NODE), even, 0);
    assert_near(
        time_of(trace(text, sizeof text, "1,1,1,1,1,1,1,1", "7,7,7,7,7,7,7,7"), "", ONE_NODE), even,
        1e-9);
}

/* Loads swapped between layers do not even out: every layer waits for its busiest rank. Two layers
 * with different hot ranks take as long as two with the same. */
static void sums_of_maxima(void **state)
{
    (void)state;
    char a[512], b[512];
    const char *hot = "24,1,1,1,1,1,1,2", *other = "1,1,1,2,24,1,1,1";
    double same = time_of(trace(a, sizeof a, hot, hot), "", ONE_NODE);
    double swapped = time_of(trace(b, sizeof b, hot, other), "", ONE_NODE);
    assert_near(swapped, same, 1e-9);
    assert_true(same > 1.5 * time_of("", "", ONE_NODE));
    /* the scale of the counts does not matter, only their shares do */
    assert_near(time_of(trace(a, sizeof a, "48,2,2,2,2,2,2,4", other), "", ONE_NODE), same, 1e-6);
}

/* Sources that keep their tokens send nothing; computing is even, so only exchanges go away. */
static void own_tokens_are_free(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    char text[1024] = "{\"kind\":\"trace\",\"counts\":[[", *at = text + strlen(text);
    for (int layer = 0; layer < 2; layer++) {
        for (int s = 0; s < 8; s++) {
            at += snprintf(at, 64, "%s{\"%d\":5}", s > 0 ? "," : layer > 0 ? ",[" : "[", s);
        }
        at += snprintf(at, 8, "]");
    }
    (void)snprintf(at, 32, "]],\"experts\":8}");
    struct hv_verdict v = routed(text, "", ONE_NODE, &a), even = routed("", "", ONE_NODE, &a);
    assert_true(v.metrics.breakdown_s[HV_TIME_EP] == 0);
    assert_true(even.metrics.breakdown_s[HV_TIME_EP] > 0);
    assert_near(v.metrics.breakdown_s[HV_TIME_COMPUTE], even.metrics.breakdown_s[HV_TIME_COMPUTE],
                1e-9);
    hv_arena_free(&a);
}

/* Every place of an expert is filled or not; what finds none is dropped, source by source. */
static void capacity_drops(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    char text[512];
    struct hv_verdict half = routed("", ",\"capacity_factor\":0.5", ONE_NODE, &a);
    assert_near(half.metrics.dropped_frac, 0.5, 1e-12);
    assert_false(half.metrics.exact);
    assert_true(half.metrics.iteration_s < time_of("", "", ONE_NODE));
    /* shares of 1/2 and 1/14 against places for 1/8: 3/8 are dropped, in every layer */
    const char *row = "7,1,1,1,1,1,1,1";
    struct hv_verdict one =
        routed(trace(text, sizeof text, row, row), ",\"capacity_factor\":1", ONE_NODE, &a);
    assert_near(one.metrics.dropped_frac, 0.375, 1e-6);
    assert_near(one.routing.dropped_frac, 0.375, 1e-6);
    assert_near(one.metrics.iteration_s, time_of("", ",\"capacity_factor\":1", ONE_NODE), 1e-9);
    hv_arena_free(&a);
}

/* The tokens that a least number of places counts against are those of a rank of the layer's own
 * degrees. */
static void places_follow_degrees_of_layers(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char capacity[] = "\"capacity_factor\":0.5,\"min_capacity\":400";
    char job[] = "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":2048,"
                 "\"precision\":\"bf16\",\"optimizer\":\"adam\"}";
    const char *const keys[] = {"\"dp\":8", "\"tp\":8,\"degrees\":[{\"layers\":[0,2],\"dp\":8}]"};
    struct world w;
    open_world(&w, cluster_text, experts_text, job);
    double dropped[2];
    for (size_t i = 0; i < HV_COUNT(keys); i++) {
        char body[1024];
        (void)snprintf(body, sizeof body,
                       "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{"
                       "\"devices\":\"a[0].*\",\"layers\":[0,2],%s,\"ep\":8,\"moe\":{%s}}]}]",
                       keys[i], capacity);
        dropped[i] = judge(&w, &a, false, body).metrics.dropped_frac;
    }
    /* 2048 tokens of a rank and two choices over 8 experts: 512 for each, 400 places */
    assert_near(dropped[0], 1 - 400.0 / 512, 1e-12);
    assert_near(dropped[1], dropped[0], 1e-12);
    close_world(&w);
    hv_arena_free(&a);
}

/* Copies of the hottest expert pay where tokens are skewed, and cost where they are not. */
static void copies_pay_for_skew(void **state)
{
    (void)state;
    const char *skewed = "{\"kind\":\"zipf\",\"skew\":1.2}", *copies = ",\"copies\":{\"0\":\"*\"}";
    assert_true(time_of(skewed, copies, TWO_NODES) < time_of(skewed, "", TWO_NODES));
    assert_true(time_of("", copies, TWO_NODES) > time_of("", "", TWO_NODES));
}

/* Iterations are timed one by one: their mean, and the slow ones. */
static void iterations_differ(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *hot = "[[[24,1,1,1,1,1,1,2]],[[24,1,1,1,1,1,1,2]]]";
    const char *even = "[[[4,4,4,4,4,4,4,4]],[[4,4,4,4,4,4,4,4]]]";
    char text[1024], one[512];
    (void)snprintf(text, sizeof text, "{\"kind\":\"trace\",\"counts\":[%s,%s,%s,%s]}", even, hot,
                   even, even);
    (void)snprintf(one, sizeof one, "{\"kind\":\"trace\",\"counts\":[%s]}", hot);
    struct hv_verdict v = routed(text, "", ONE_NODE, &a), worst = routed(one, "", ONE_NODE, &a);
    double slow = worst.metrics.iteration_s, fast = time_of("", "", ONE_NODE), sum = 0;
    assert_int_equal(v.routing.n, 4);
    assert_near(v.metrics.iteration_s, (3 * fast + slow) / 4, 1e-9);
    assert_near(v.routing.mean_s, v.metrics.iteration_s, 0);
    assert_near(v.routing.p95_s, slow, 1e-9);
    assert_near(v.metrics.tokens_per_s, 64 * 2048 / v.metrics.iteration_s, 1e-9);
    assert_near(v.memory[0].peak_bytes, worst.memory[0].peak_bytes, 1e-12);
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        sum += v.metrics.breakdown_s[i];
    }
    assert_near(sum, v.metrics.iteration_s, 1e-9);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_routing_moves_nothing),
        cmocka_unit_test(sums_of_maxima),
        cmocka_unit_test(own_tokens_are_free),
        cmocka_unit_test(capacity_drops),
        cmocka_unit_test(places_follow_degrees_of_layers),
        cmocka_unit_test(copies_pay_for_skew),
        cmocka_unit_test(iterations_differ),
    };
    return cmocka_run_group_tests_name("eval_routing", tests, NULL, NULL);
}
