/** Experts that a plan places itself: memory of every rank, and sums of gradients over the real
 * holders. Links and rates are plain, so that closed forms hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "tests/eval_fixture.h"

/** One layer of four experts, each of two matrices with biases, on four devices; 10 GB/s between
 * nodes. */
static const double expert = 2.0 * 1024 * 4096 + 1024 + 4096, bytes_per_s = 10e9;

struct asked {
    int nodes; /**< of four devices in all */
    const char *moe, *stage, *routing;
    int batch; /**< sequences; 0: 8 */
};

static struct hv_verdict verdict(struct asked q, struct hv_arena *a)
{
    char cluster[1024], job[1024], body[1024];
    int batch = q.batch > 0 ? q.batch : 8;
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"plain\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":%d,\"device\":\"P\",\"devices\":%d,\"intra\":{\"kind\":\"nvlink\","
                   "\"bandwidth_GBps\":1e6,\"latency_us\":0,\"curve\":\"plain\"},\"nic\":{"
                   "\"bandwidth_GBps\":10,\"latency_us\":0,\"curve\":\"plain\"}}],\"devices\":{"
                   "\"P\":{\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":"
                   "100},\"rates\":\"plain\"}}}",
                   q.nodes, 4 / q.nodes);
    const char *model = "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
                        "\"layers\":1,\"hidden\":1024,\"heads\":8,\"kv_heads\":8,\"ffn\":4096,"
                        "\"ffn_kind\":\"gelu\",\"vocab\":1000,\"max_sequence\":256,"
                        "\"moe\":{\"experts\":4,\"top_k\":1,\"ffn\":4096}}";
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":256,"
                   "\"precision\":\"fp32\",\"optimizer\":\"adam\"%s%s}",
                   batch, q.routing != NULL ? ",\"routing\":" : "",
                   q.routing != NULL ? q.routing : "");
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":1,\"stages\":[{\"devices\":"
                   "\"a[0-%d].*\",\"layers\":[0,1],\"dp\":4%s,\"moe\":{\"all_to_all\":\"flat\"%s}"
                   "}]}],\"sync\":{\"overlap\":false,\"algorithm\":\"ring\"}",
                   batch, q.nodes - 1, q.stage, q.moe);
    struct world w;
    open_world(&w, cluster, model, job);
    struct hv_verdict v = judge(&w, a, false, body);
    close_world(&w);
    return v;
}

/** Seconds of gradient sums that are exposed. */
static double sums_s(struct asked q)
{
    struct hv_arena a = {0};
    double s = verdict(q, &a).metrics.breakdown_s[HV_TIME_DP];
    hv_arena_free(&a);
    return s;
}

static void assert_near(double got, double want, double by)
{
    if (!(fabs(got - want) <= by * fabs(want))) {
        fail_msg("%.17g is not %.17g", got, want);
    }
}

static struct asked at(int nodes, const char *moe, const char *stage)
{
    return (struct asked){nodes, moe, stage, NULL, 0};
}

#define EP2 ",\"ep\":2"

/** Two groups of two ranks that each have a node of their own: an all-reduce of two members sends
 * what it sums. With three experts on one rank and one on the other, the three set the time. */
static void owners_reduce_what_they_hold(void **state)
{
    (void)state;
    double unit_s = expert * 4 / bytes_per_s;
    double even_s = sums_s(at(4, "", EP2));
    double same_s = sums_s(at(4, ",\"owners\":[0,0,1,1]", EP2));
    double three_s = sums_s(at(4, ",\"owners\":[0,0,0,1]", EP2));
    assert_near(same_s, even_s, 1e-12);
    assert_near(three_s - even_s, unit_s, 1e-9);
    /* both ranks of a group behind one NIC: it carries the same bytes, whoever holds them */
    assert_near(sums_s(at(2, ",\"owners\":[0,0,0,1]", EP2)), sums_s(at(2, "", EP2)), 1e-9);
}

/** Expert 0 on both ranks: rank 0 has expert 1 alone to sum with its peer, rank 1 two; then all
 * four sum expert 0, six steps of a quarter each. */
static void copies_are_summed_over_all_holders(void **state)
{
    (void)state;
    double unit_s = expert * 4 / bytes_per_s;
    double even_s = sums_s(at(4, "", EP2));
    double copied_s = sums_s(at(4, ",\"copies\":{\"0\":\"*\"}", EP2));
    assert_near(copied_s - even_s, 1.5 * unit_s, 1e-9);
    /* a list of all ranks is the same */
    assert_near(sums_s(at(4, ",\"copies\":{\"0\":[0,1]}", EP2)), copied_s, 1e-12);
    /* one group of four: an expert of each rank has no peer, a copied one has three */
    double alone_s = sums_s(at(4, "", ",\"ep\":4"));
    double pair_s = sums_s(at(4, ",\"copies\":{\"0\":[1]}", ",\"ep\":4"));
    assert_near(pair_s - alone_s, unit_s, 1e-9);
    /* two pairs that share no node are summed at once */
    const char *two = ",\"copies\":{\"0\":[1],\"2\":[3]}",
               *chain = ",\"copies\":{\"0\":[1],\"1\":[2]}";
    assert_near(sums_s(at(4, two, ",\"ep\":4")), pair_s, 1e-9);
    assert_near(sums_s(at(4, chain, ",\"ep\":4")) - alone_s, 2 * unit_s, 1e-9);
}

/** Sharded sums of two holders take half of what an all-reduce takes. */
static void copies_are_sharded(void **state)
{
    (void)state;
    double unit_s = expert * 4 / bytes_per_s;
    const char *zero = ",\"ep\":4,\"zero\":{\"stage\":1,\"gather_at\":\"end\"}";
    double alone_s = sums_s(at(4, "", zero));
    double pair_s = sums_s(at(4, ",\"copies\":{\"0\":[1]}", zero));
    assert_near(pair_s - alone_s, 0.5 * unit_s, 1e-6);
}

static struct asked of_128(const char *moe, const char *routing)
{
    return (struct asked){4, moe, EP2, routing, 128};
}

static struct hv_stage_memory memory_of(struct asked q)
{
    struct hv_arena a = {0};
    struct hv_stage_memory m = verdict(q, &a).memory[0];
    hv_arena_free(&a);
    return m;
}

/** The busiest rank and the one that holds most are different ones: neither has the sum. */
static void memory_is_of_each_rank(void **state)
{
    (void)state;
    const char *hot = "{\"kind\":\"trace\",\"counts\":[[[[1,1,1,400]]]]}";
    struct hv_stage_memory apart = memory_of(of_128(",\"owners\":[0,0,0,1]", hot));
    struct hv_stage_memory both = memory_of(of_128(",\"owners\":[0,1,1,1]", hot));
    struct hv_stage_memory cold = memory_of(of_128(",\"owners\":[0,0,0,1]", NULL));
    assert_near(both.weights_bytes - apart.weights_bytes, 2 * expert * 4, 1e-9);
    assert_near(both.activations_bytes, apart.activations_bytes, 0.02);
    assert_true(apart.peak_bytes < both.peak_bytes);
    /* without hot tokens the rank with three experts needs most */
    assert_near(cold.weights_bytes, both.weights_bytes, 1e-12);
    assert_true(cold.activations_bytes < apart.activations_bytes);
}

/** A permanent copy has states of its own; one that comes anew has weights and gradients only. */
static void copies_take_memory_where_they_are(void **state)
{
    (void)state;
    const char *four = ",\"ep\":4", *zero = ",\"ep\":4,\"zero\":1";
    struct hv_stage_memory none = memory_of(at(4, "", four));
    struct hv_stage_memory kept = memory_of(at(4, ",\"copies\":{\"0\":\"*\"}", four));
    struct hv_stage_memory lent =
        memory_of(at(4, ",\"copies\":{\"0\":\"*\"},\"copy_life\":\"iteration\"", four));
    assert_near(kept.weights_bytes - none.weights_bytes, 4 * expert, 1e-9);
    assert_near(kept.gradients_bytes - none.gradients_bytes, 4 * expert, 1e-9);
    assert_near(kept.optimizer_bytes - none.optimizer_bytes, 8 * expert, 1e-9);
    assert_near(lent.weights_bytes, kept.weights_bytes, 1e-12);
    assert_near(lent.gradients_bytes, kept.gradients_bytes, 1e-12);
    assert_near(lent.optimizer_bytes, none.optimizer_bytes, 1e-12);
    /* states of a copy are sharded over all four that hold it, those of the others over one */
    struct hv_stage_memory plain = memory_of(at(4, "", zero));
    struct hv_stage_memory sharded = memory_of(at(4, ",\"copies\":{\"0\":\"*\"}", zero));
    assert_near(sharded.optimizer_bytes - plain.optimizer_bytes, 8 * expert / 4, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_reduce_what_they_hold),
        cmocka_unit_test(copies_are_summed_over_all_holders),
        cmocka_unit_test(copies_are_sharded),
        cmocka_unit_test(memory_is_of_each_rank),
        cmocka_unit_test(copies_take_memory_where_they_are),
    };
    return cmocka_run_group_tests_name("eval_placing", tests, NULL, NULL);
}
