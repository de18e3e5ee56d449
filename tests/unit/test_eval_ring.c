/* Context parallelism against published counts of values, closed forms and limits that must hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/attr.h"
#include "tests/eval_fixture.h"

/* 4 x 8 and 8 x 8 devices, one layer with 32 heads of 128, one sequence of 65536 tokens. */
static const char machines[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\",\"count\":8,"
    "\"device\":\"A100-SXM-80GB\",\"devices\":8,\"nic\":{\"bandwidth_GBps\":100,\"count\":4}}],"
    "\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5}}";

struct scene {
    const char *devices, *cp;
    int kv_heads;
    bool causal;
};

static struct hv_verdict verdict_with(const struct scene *s, bool timeline, struct hv_arena *a)
{
    char model[512], body[1024];
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
                   "\"layers\":1,\"hidden\":4096,\"heads\":32,\"kv_heads\":%d,\"ffn\":16384,"
                   "\"ffn_kind\":\"gelu\",\"vocab\":32000,\"causal\":%s}",
                   s->kv_heads, s->causal ? "true" : "false");
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":1,\"stages\":[{"
                   "\"devices\":\"%s\",\"layers\":[0,1],\"cp\":{%s}}]}]",
                   s->devices, s->cp);
    struct world w;
    open_world(&w, machines, model,
               "{\"format\":\"hetviz.job/1\",\"global_batch\":1,\"sequence\":65536,"
               "\"precision\":\"bf16\",\"dropout\":\"off\"}");
    struct hv_verdict v = judge(&w, a, timeline, body);
    close_world(&w);
    return v;
}

static struct hv_verdict verdict_of(const struct scene *s, struct hv_arena *a)
{
    return verdict_with(s, false, a);
}

static struct hv_verdict verdict_drawn(const struct scene *s, struct hv_arena *a)
{
    return verdict_with(s, true, a);
}

static struct hv_traffic traffic_of(const char *devices, const char *cp, int kv_heads)
{
    struct hv_arena a = {0};
    const struct scene s = {devices, cp, kv_heads, true};
    struct hv_traffic t = verdict_of(&s, &a).metrics.traffic;
    hv_arena_free(&a);
    return t;
}

static double time_of(const char *devices, const char *cp)
{
    struct hv_arena a = {0};
    const struct scene s = {devices, cp, 32, true};
    double time_s = verdict_of(&s, &a).metrics.iteration_s;
    hv_arena_free(&a);
    return time_s;
}

static void is(double got, double want)
{
    if (!(fabs(got / want - 1) < 1e-9)) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

/* Each counted by hand for 8 ranks: the last rank sends no keys and asks for no help at steps 1 to
 * 3 that it does not need; rank 4 sends 3 keys, asks nobody and helps nobody. */
static void test_ranks_of_helpers_differ(void **state)
{
    (void)state;
    struct hv_traffic t = traffic_of("a[0].*", "\"degree\":8,\"scheme\":\"distflash\"", 32);
    double c = 8192.0 * 4096;
    /* rank 0: keys to 1..4 (2c each), results at steps 1, 2 and 3 (c each) */
    is(t.cp_most.forward, (4 * 2 + 3) * c);
    assert_true(t.cp_most.forward > t.cp.forward);
}

/* Work alone: a contiguous ring waits for its last rank, which computes all blocks; helpers halve
 * that; zigzag and gathered keys of a zigzag are even; whole tiles cost a striped ring. */
static void test_times_follow_the_work(void **state)
{
    (void)state;
    double ring = time_of("a[0].*", "\"degree\":8");
    double zigzag = time_of("a[0].*", "\"degree\":8,\"layout\":\"zigzag\"");
    double striped = time_of("a[0].*", "\"degree\":8,\"layout\":\"striped\"");
    double tiles = time_of("a[0].*", "\"degree\":8,\"layout\":\"striped\",\"tile\":4096");
    double whole = time_of("a[0].*", "\"degree\":8,\"layout\":\"striped\",\"tile\":8192");
    double helped = time_of("a[0].*", "\"degree\":8,\"scheme\":\"distflash\"");
    double gathered = time_of("a[0].*", "\"degree\":8,\"scheme\":\"all_gather\","
                                        "\"layout\":\"zigzag\"");
    double late = time_of("a[0].*", "\"degree\":8,\"scheme\":\"all_gather\"");
    double scores = time_of("a[0].*", "\"degree\":8,\"scheme\":\"rsa\"");
    assert_true(zigzag < striped && striped < tiles && tiles < whole);
    assert_true(helped < 0.8 * ring && gathered < 0.8 * late && scores > ring);
}

/* One ring over two nodes uses one NIC of each; nested rings use all, and their hop between nodes
 * hides behind a window. */
static void test_nested_rings_use_all_nics(void **state)
{
    (void)state;
    double ring = time_of("a[0-3].*", "\"degree\":32,\"layout\":\"zigzag\"");
    double nested = time_of("a[0-3].*", "\"degree\":32,\"layout\":\"zigzag\",\"inner\":8");
    assert_true(nested < ring);
    double one = time_of("a[0].*", "\"degree\":8,\"layout\":\"zigzag\"");
    double same = time_of("a[0].*", "\"degree\":8,\"layout\":\"zigzag\",\"inner\":8");
    is(same, one); /* a window of all ranks is the ring itself */
}

/* Scores of every pair are kept: 2 bytes x 32 heads x 8192 x 65536 (Li et al. 2021: 34.36 GB), and
 * teams hold the inputs of all their ranks. */
static void test_memory(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const struct scene rsa = {"a[0].*", "\"degree\":8,\"scheme\":\"rsa\"", 32, false};
    const struct scene ring = {"a[0].*", "\"degree\":8", 32, false};
    const struct scene one = {"a[0-1].*", "\"degree\":16,\"scheme\":\"wallfacer\"", 32, true};
    const struct scene four = {"a[0-1].*", "\"degree\":16,\"scheme\":\"wallfacer\",\"inner\":4", 32,
                               true};
    double more = verdict_of(&rsa, &a).memory[0].activations_bytes -
                  verdict_of(&ring, &a).memory[0].activations_bytes;
    double statistics = 4.0 * 8192 * 32; /* of the fused core */
    is(more, 2.0 * 32 * 8192 * 65536 - statistics);
    double c = 4096.0 * 4096; /* values of a rank */
    double teams = verdict_of(&four, &a).memory[0].transient_bytes -
                   verdict_of(&one, &a).memory[0].transient_bytes;
    assert_true(teams <= 3 * (4 * 2 + 2 * 2 + 2 * 8) * c && teams >= 0);
    hv_arena_free(&a);
}

/* A video of 16 x 1024 tokens, hidden 4096, 4 sequences: M = 268435456 values. */
static struct hv_verdict video(const char *cp, const char *attends, struct hv_arena *a)
{
    char model[512], body[512];
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"v\",\"kind\":\"transformer\","
                   "\"layers\":4,\"hidden\":4096,\"heads\":32,\"vocab\":1000,\"causal\":false,"
                   "\"tokens\":{\"time\":16,\"space\":1024},\"attends\":%s}",
                   attends);
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":1,\"stages\":[{"
                   "\"devices\":\"a[0].*\",\"layers\":[0,4],\"cp\":{%s}}]}]",
                   cp);
    struct world w;
    open_world(&w, machines, model,
               "{\"format\":\"hetviz.job/1\",\"global_batch\":4,\"sequence\":16384,"
               "\"precision\":\"bf16\",\"dropout\":\"off\"}");
    struct hv_verdict v = judge(&w, a, false, body);
    close_world(&w);
    return v;
}

/* Zhao et al. 2024: two switches of M / n per pair of blocks, a quarter of the values of an
 * all-to-all of heads. */
static void test_switched_dimensions(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *turns = "[\"space\",\"time\"]", *dsp = "\"degree\":8,\"scheme\":\"dsp\"";
    double local = 268435456.0 / 8 * 7 / 8; /* of one switch: what leaves the rank */
    struct hv_metrics m = video(dsp, turns, &a).metrics;
    struct hv_metrics heads = video("\"degree\":8,\"scheme\":\"ulysses\"", turns, &a).metrics;
    is(m.traffic.cp.forward, 4 * local);
    is(m.traffic.cp.backward, 4 * local);
    is(heads.traffic.cp.forward, 16 * local);
    assert_true(m.iteration_s < heads.iteration_s);
    /* equal neighbours: one switch to the other dimension, one back */
    const char *pairs = "[\"space\",\"space\",\"time\",\"time\"]";
    is(video(dsp, pairs, &a).metrics.traffic.cp.forward, 2 * local);
    assert_true(video(dsp, "\"time\"", &a).metrics.traffic.cp.forward <= 0);
    is(video("\"degree\":8,\"scheme\":\"dsp\",\"dims\":[\"time\",\"space\"]", turns, &a)
           .metrics.traffic.cp.forward,
       4 * local);
    hv_arena_free(&a);
}

/* Attention along one dimension computes its pairs: 16384 x 16, x 1024, or x 16384. */
static void test_attends(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *cp = "\"degree\":8,\"scheme\":\"ulysses\"";
    struct hv_metrics all = video(cp, "null", &a).metrics;
    struct hv_metrics space = video(cp, "\"space\"", &a).metrics;
    struct hv_metrics time = video(cp, "\"time\"", &a).metrics;
    double peak = 8 * 312e12;
    double saved = (all.mfu * all.iteration_s - space.mfu * space.iteration_s) * peak;
    double more = (space.mfu * space.iteration_s - time.mfu * time.iteration_s) * peak;
    double pair = 3 * 4 * 4096.0 * 4 * 4; /* FLOP, blocks, sequences */
    is(saved, pair * 16384 * (16384.0 - 1024));
    is(more, pair * 16384 * (1024.0 - 16));
    assert_true(time.iteration_s < space.iteration_s && space.iteration_s < all.iteration_s);
    hv_arena_free(&a);
}

/* What dsp cannot do is refused with the reason. */
static void test_refused_dimensions(void **state)
{
    (void)state;
    static const struct {
        const char *model, *cp, *why;
    } rows[] = {
        {"", "", "two dimensions of tokens"},
        {",\"tokens\":{\"time\":16,\"space\":128}", "", "attends along all tokens"},
        {",\"tokens\":{\"time\":16,\"space\":128},\"attends\":\"time\"", ",\"dims\":[\"time\"]",
         "cannot be cut along it"},
        {",\"tokens\":{\"time\":16,\"space\":128},\"attends\":\"time\"", ",\"dims\":[\"depth\"]",
         "no dimension \"depth\""},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        char model[512], text[512];
        (void)snprintf(model, sizeof model,
                       "{\"format\":\"hetviz.model/1\",\"name\":\"v\",\"kind\":\"transformer\","
                       "\"layers\":2,\"hidden\":1024,\"heads\":8,\"vocab\":1000%s}",
                       rows[i].model);
        (void)snprintf(text, sizeof text,
                       "{\"format\":\"hetviz.plan/1\",\"micro_batch\":1,\"replicas\":[{"
                       "\"micro_batches\":64,\"stages\":[{\"devices\":\"a[0].*\",\"layers\":"
                       "[0,2],\"cp\":{\"degree\":8,\"scheme\":\"dsp\"%s}}]}]}",
                       rows[i].cp);
        struct hv_arena a = {0};
        struct hv_err err = {0};
        struct hv_plan_doc doc;
        struct hv_verdict v;
        struct world w;
        open_world(&w, machines, model, job_text);
        assert_int_equal(hv_plan_doc_build(&doc, parse(text, "p"), w.in.cluster.cluster, &err),
                         HV_OK);
        assert_int_equal(hv_eval(w.cost, doc.plan, &(struct hv_eval_options){0}, &a, &v, &err),
                         HV_ENO);
        assert_non_null(strstr(err.text, rows[i].why));
        hv_plan_doc_free(&doc);
        close_world(&w);
        hv_arena_free(&a);
    }
}

/* Without a causal mask nobody is idle and nobody needs help. */
static void test_without_mask(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const struct scene ring = {"a[0].*", "\"degree\":8", 32, false};
    const struct scene zigzag = {"a[0].*", "\"degree\":8,\"layout\":\"contiguous\"", 32, false};
    const struct scene helped = {"a[0].*", "\"degree\":8,\"scheme\":\"distflash\"", 32, false};
    double time_s = verdict_of(&ring, &a).metrics.iteration_s;
    is(verdict_of(&zigzag, &a).metrics.iteration_s, time_s);
    is(verdict_of(&helped, &a).metrics.iteration_s, time_s);
    hv_arena_free(&a);
}

/* Eight ranks in a ring over two nodes: seven hops forward, and seven with eight returns backward.
 * What the timeline says that rings leave exposed is the breakdown's share of it, less the slowdown
 * of compute beside hops that are hidden, which is never negative; a single block has both rings.
 */
static void test_rings_of_a_timeline(void **state)
{
    (void)state;
    static const char *const cps[] = {"\"degree\":8,\"scheme\":\"ring\"",
                                      "\"degree\":8,\"scheme\":\"ring\",\"backward\":\"q_do\"",
                                      "\"degree\":8,\"scheme\":\"usp\",\"ulysses\":2"};
    for (size_t i = 0; i < HV_COUNT(cps); i++) {
        struct hv_arena a = {0};
        const struct scene s = {"a[0-1].0-3", cps[i], 8, true};
        struct hv_verdict v = verdict_drawn(&s, &a);
        const struct hv_timeline_row *row = &v.timeline->rows[0];
        assert_int_equal(row->n_rings, 2);
        double exposed_s = 0;
        for (size_t k = 0; k < 2; k++) {
            const struct hv_timeline_ring *x = &row->rings[k];
            assert_int_equal(x->ring->backward, k == 1);
            assert_int_equal(x->ring->n, i == 2 ? 4 : 8);
            is(x->times, 1);
            exposed_s += hv_timeline_ring_exposed_s(x);
        }
        assert_true(exposed_s > 0);
        assert_true(exposed_s <= v.metrics.breakdown_s[HV_TIME_CP] * (1 + 1e-12));
        hv_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_of_helpers_differ),
        cmocka_unit_test(test_times_follow_the_work),
        cmocka_unit_test(test_nested_rings_use_all_nics),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_switched_dimensions),
        cmocka_unit_test(test_attends),
        cmocka_unit_test(test_refused_dimensions),
        cmocka_unit_test(test_without_mask),
        cmocka_unit_test(test_rings_of_a_timeline),
    };
    return cmocka_run_group_tests_name("eval_ring", tests, NULL, NULL);
}
