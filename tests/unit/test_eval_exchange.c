/** Exchange of gradients and of updated weights, by hand: ranks over plain links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/plain_fixture.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.12g is not %.12g", got, want);
    }
}

static struct ring with_stage(struct ring r, const char *stage)
{
    r.stage = stage;
    return r;
}

/** Two micro-batches through two layers of 10 MB on four ranks: a ring scatters or gathers 10 MB in
 * 0.75 ms. At the end: the first layer's sums go beside the last pass, 8 + 0.75 + 1.5 ms. After
 * each micro-batch: every pass waits for the scatter of its last layer, 2 (4 + 0.75) + 1.5 ms. */
static void stage_1_reduces_after_each_micro_batch(void **state)
{
    (void)state;
    struct ring r = with_sync(ddp, "\"bucket_MiB\":1");
    r.layers = 2;
    r.micro_batches = 2;
    assert_ms(with_stage(r, ",\"zero\":{\"stage\":1}"), 10.25);
    assert_ms(with_stage(r, ",\"zero\":{\"stage\":1,\"reduce\":\"each\"}"), 11);
    assert_ms(with_stage(r, ",\"zero\":{\"stage\":2,\"gather_at\":\"end\"}"), 11);
}

/** 10 MB on four ranks in a ring: six steps of 100 µs and 2.5 MB at 10 GB/s. Chunks of 4 MB, 4 MB
 * and 2 MB take their own steps. */
static void chunks_have_latencies(void **state)
{
    (void)state;
    struct ring r = with_sync(ddp, "\"algorithm\":\"ring\"");
    r.layers = 1;
    r.latency_us = 100;
    assert_ms(r, 2 + 6 * (0.1 + 0.25));
    assert_ms(with_sync(r, "\"algorithm\":\"ring\",\"chunk_MiB\":3.814697265625"),
              2 + 3 * 6 * 0.1 + 6 * 0.25);
    assert_ms(with_sync(r, "\"algorithm\":\"ring\",\"chunk_MiB\":3.814697265625,"
                           "\"overlap\":false"),
              2 + 3 * 6 * 0.1 + 6 * 0.25);
}

/** Shard groups of two ranks: the first hop scatters 10 MB in 0.5 ms after each of two passes of 2
 * ms, the second sums the shards of 5 MB over both groups in 0.5 ms, once; then the weights are
 * gathered in 0.5 ms (Zhang et al. 2022, MiCS, section 3.4). */
static void two_hops(void **state)
{
    (void)state;
    struct ring r = ddp;
    r.layers = 1;
    r.micro_batches = 2;
    r = with_stage(r, ",\"zero\":{\"stage\":1,\"shard_group\":2,\"reduce\":\"two_hop\"}");
    assert_ms(r, 2 * (2 + 0.5) + 0.5 + 0.5);
}

/**
 * Shard groups of p of n ranks, one layer of B bytes, m micro-batches: the group scatters or
 * gathers in (p - 1) / p B, and groups sum the shards in 2 (g - 1) / g B / p, g = n / p, over the
 * bandwidth. "end" does each once; "two_hop" scatters after every pass; "each" sums over the groups
 * then, too. Stages 1 and 2 gather once, stage 3 before every forward pass, and the last layer
 * stays for its backward pass. From stage 2 on, two hops are what a plan has that says nothing.
 */
static void groups_of_shards(void **state)
{
    (void)state;
    static const struct {
        int n, p, m;
    } sizes[] = {{4, 2, 1}, {4, 2, 3}, {8, 2, 4}, {8, 4, 2}, {6, 3, 2}, {6, 1, 2}, {4, 4, 3}};
    static const char *const words[] = {"end", "two_hop", "each", NULL};
    for (size_t i = 0; i < HV_COUNT(sizes) * 3 * HV_COUNT(words); i++) {
        const int n = sizes[i % HV_COUNT(sizes)].n, p = sizes[i % HV_COUNT(sizes)].p,
                  m = sizes[i % HV_COUNT(sizes)].m;
        int stage = 1 + (int)(i / HV_COUNT(sizes) % 3);
        const char *word = words[i / HV_COUNT(sizes) / 3];
        char zero[128];
        (void)snprintf(zero, sizeof zero, ",\"zero\":{\"stage\":%d,\"shard_group\":%d%s%s%s}",
                       stage, p, word ? ",\"reduce\":\"" : "", word ? word : "", word ? "\"" : "");
        word = word == NULL ? stage == 1 ? "end" : "two_hop" : word;
        double scatters = word[0] == 'e' && word[1] == 'n' ? 1 : m, sums = word[1] == 'a' ? m : 1;
        double layer_ms = 1, groups = (double)n / p, hop = (p - 1.0) / p;
        double sum_ms = 2 * (groups - 1) / groups / p * layer_ms;
        struct ring r = ddp;
        r.ranks = n;
        r.layers = 1;
        r.micro_batches = m;
        r = with_stage(r, zero);
        assert_ms(r, m * 2 + scatters * hop * layer_ms + sums * sum_ms +
                         (stage == 3 ? m : 1) * hop * layer_ms);
    }
}

/** MiCS (Zhang et al. 2022, section 3.4): 64 ranks in groups of 8, four micro-batches, 10 GB of
 * gradients: 35 GB in the groups and 2.1875 GB between them; with sums after every micro-batch 8.75
 * GB, and ZeRO over all ranks scatters 39.375 GB. A gather takes 8.75 GB of a group, 9.84375 of
 * all.
 */
static void published_volumes_of_two_hops(void **state)
{
    (void)state;
    struct ring r = ddp;
    r.ranks = 64;
    r.layers = 1;
    r.micro_batches = 4;
    r.parameter_bytes = 10e9;
    double passes_ms = 4 * 2, gb_ms = 100;
    assert_ms(with_stage(r, ",\"zero\":{\"stage\":2,\"shard_group\":8}"),
              passes_ms + (35 + 2.1875 + 8.75) * gb_ms);
    assert_ms(with_stage(r, ",\"zero\":{\"stage\":2,\"shard_group\":8,\"reduce\":\"each\"}"),
              passes_ms + (35 + 8.75 + 8.75) * gb_ms);
    assert_ms(with_stage(r, ",\"zero\":2"), passes_ms + (39.375 + 9.84375) * gb_ms);
}

/** Milliseconds of an iteration of 16 ranks on two nodes whose links inside take no time. */
static double two_nodes_ms(const char *gather)
{
    char body[512];
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":16,\"replicas\":[{\"micro_batches\":1,\"stages\":[{"
                   "\"devices\":\"a[0-1].*\",\"layers\":[0,1],\"dp\":16,\"zero\":{\"stage\":1%s}"
                   "}]}],\"sync\":{\"overlap\":false,\"algorithm\":\"hierarchical\"}",
                   gather);
    struct world w;
    struct hv_arena a = {0};
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"two\",\"nodes\":[{\"name\":\"a\","
               "\"count\":2,\"device\":\"P\",\"devices\":8,\"intra\":{\"bandwidth_GBps\":1e6,"
               "\"latency_us\":0,\"curve\":\"plain\"},\"nic\":{\"bandwidth_GBps\":10,"
               "\"latency_us\":0,\"curve\":\"plain\"}}],\"devices\":{\"P\":{\"memory_GiB\":80,"
               "\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},\"rates\":\"plain\"}}}",
               "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"layers\":[{"
               "\"forward_ms\":{\"P\":0},\"backward_ms\":{\"P\":2},\"parameter_bytes\":16e6,"
               "\"activation_bytes\":0,\"output_bytes\":0}]}",
               "{\"format\":\"hetviz.job/1\",\"global_batch\":16,\"sequence\":1,"
               "\"precision\":\"fp32\",\"optimizer\":\"none\"}");
    double ms = judge(&w, &a, false, body).metrics.iteration_s * 1e3;
    hv_arena_free(&a);
    close_world(&w);
    return ms;
}

/** Weights of 16 MB in shards on two nodes of eight: a flat ring brings 15/16 of them into each
 * node at 10 GB/s, 1.5 ms; by nodes half of them, 0.8 ms: 46.7 % less (Zhang et al. 2022, MiCS,
 * section 3.3). The scatter before takes 0.8 ms by nodes either way. */
static void flat_gathers_send_all_shards_between_nodes(void **state)
{
    (void)state;
    double flat = two_nodes_ms(",\"gather\":\"flat\""), by_nodes = two_nodes_ms("");
    assert_true(fabs(flat - (2 + 0.8 + 1.5)) < 1e-4);
    assert_true(fabs(by_nodes - (2 + 0.8 + 0.8)) < 1e-4);
    assert_true(fabs(two_nodes_ms(",\"gather\":\"hierarchical\"") - by_nodes) < 1e-9);
}

/** Weights of 4 GB per layer over eight ranks at 100 GB/s: a gather of a layer takes 35 ms, as does
 * the scatter of its gradients; an update of its shard 3.5 ms (Xu et al. 2020). With nothing to
 * hide behind it is all the same. With forward passes of 20 ms the second gather shows 15 ms after
 * the first pass; with 40 ms only the first gather shows. As one unit both show. */
static void weights_are_gathered_beside_the_next_forward_pass(void **state)
{
    (void)state;
    struct ring r = {.ranks = 8,
                     .layers = 2,
                     .gbps = 100,
                     .backward_ms = 2,
                     .update_ms = 28,
                     .parameter_bytes = 4e9,
                     .sync = "\"overlap\":false"};
    const char *late = ",\"zero\":{\"stage\":1,\"gather_at\":\"next_forward\"}";
    const char *stage = ",\"zero\":{\"stage\":2,\"gather_at\":\"next_forward\",\"unit\":\"stage\","
                        "\"reduce\":\"end\"}";
    assert_ms(with_stage(r, late), 4 + 70 + 7 + 70);
    r.forward_ms = 20;
    assert_ms(with_stage(r, ",\"zero\":{\"stage\":1}"), 40 + 4 + 70 + 7 + 70);
    assert_ms(with_stage(r, late), 35 + 20 + 15 + 20 + 4 + 70 + 7);
    assert_ms(with_stage(r, stage), 70 + 40 + 4 + 70 + 7);
    r.forward_ms = 40;
    assert_ms(with_stage(r, late), 35 + 80 + 4 + 70 + 7);
    r.micro_batches = 100; /* later micro-batches wait for nothing */
    assert_ms(with_stage(r, late), 35 + 100 * (80 + 4) + 70 + 7);
}

/** Two ranks whose compute takes next to no time and a network of 10 GB/s with 1 ms of latency: a
 * ring of them costs 2 ms for every bucket, and the bytes. */
struct wire {
    double gbps, latency_us, tflops;
    const char *runtime;
};

/** The verdict on a transformer of two layers whose gradients in fp32 are: attention 4 MiB (output)
 * and 12 MiB (queries, keys and values), feed-forward 16 MiB (down) and 16 MiB (up), norms of 8
 * KiB; head and embedding 4 MiB each with a norm and with 16 KiB of positions. */
static struct hv_verdict judge_wire(const struct wire *x, struct hv_arena *a, const char *sync)
{
    char cluster[1024], job[256], body[16384];
    (void)snprintf(
        cluster, sizeof cluster,
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"wire\",\"nodes\":[{\"name\":\"a\","
        "\"count\":2,\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":%.17g,"
        "\"latency_us\":%.17g,\"curve\":\"plain\"}}],\"devices\":{\"P\":{\"memory_GiB\":80,"
        "\"bandwidth_GBps\":1e6,\"dense_TFLOPS\":{\"fp32\":%.17g},\"rates\":\"plain\"}}}",
        x->gbps, x->latency_us, x->tflops);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":2,\"sequence\":4,\"precision\":"
                   "\"fp32\",\"optimizer\":\"none\",\"runtime\":\"%s\"}",
                   x->runtime);
    (void)snprintf(
        body, sizeof body,
        "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":1,\"stages\":[{\"devices\":"
        "\"a[0-1].0\",\"layers\":[0,2],\"dp\":2}]}],\"sync\":{\"algorithm\":\"ring\",%s}",
        sync);
    struct world w;
    open_world(
        &w, cluster,
        "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":2,"
        "\"hidden\":1024,\"heads\":16,\"kv_heads\":16,\"ffn\":4096,\"ffn_kind\":\"gelu\","
        "\"norm\":\"layernorm\",\"position\":\"learned\",\"vocab\":1024,\"max_sequence\":4}",
        job);
    struct hv_verdict v = judge(&w, a, false, body);
    close_world(&w);
    return v;
}

/** Buckets that were reduced, from the latency of each. */
static double count_buckets(const char *runtime, const char *sync)
{
    const struct wire x = {10, 1000, 1e6, runtime};
    struct hv_arena a = {0};
    double ms = judge_wire(&x, &a, sync).metrics.iteration_s * 1e3;
    hv_arena_free(&a);
    double bytes = 4.0 * (2 * (12.0 * 1024 * 1024 + 4 * 1024) + 2 * 1024 * 1024 + 2 * 1024 + 4096);
    return (ms - bytes / 10e9 * 1e3) / 2;
}

/**
 * Frameworks cut no tensor. To 25 MiB: head, down, up | norm, output, queries, norm, down | up,
 * norm, output, queries | norm, embedding. First size apart: head alone, and the others shift. 1
 * MiB: a norm goes with what follows it, everything else alone (Li et al. 2020, section 4.2).
 */
static void tensors_close_buckets(void **state)
{
    (void)state;
    assert_near(count_buckets("torchtitan", "\"bucket_MiB\":25"), 4, 0.01);
    assert_near(count_buckets("torchtitan", "\"bucket_MiB\":[1,25]"), 5, 0.01);
    assert_near(count_buckets("megatron", "\"bucket_MiB\":1"), 10, 0.01);
    assert_near(count_buckets("fsdp", "\"bucket_MiB\":1000"), 1, 0.01);
}

/** Without a runtime the blocks' 96 MiB and 32 KiB are cut at the size; head and embedding are a
 * bucket each. */
static void flat_gradients_are_cut(void **state)
{
    (void)state;
    assert_near(count_buckets("hetviz", "\"bucket_MiB\":25"), 2 + 4, 0.01);
    assert_near(count_buckets("hetviz", "\"bucket_MiB\":[1,25]"), 2 + 1 + 4, 0.01);
    assert_near(count_buckets("hetviz", "\"bucket_MiB\":[60,30,10]"), 2 + 2 + 1, 0.01);
    assert_near(count_buckets("hetviz", "\"bucket_MiB\":0.25"), 2 + 4 * 96 + 1, 0.01);
}

/** All gradients are there at the first tick, after 5 ms, and fused as they fit into 25 MiB: head,
 * down | up, norm, output | queries, norm | down | up, norm, output | queries, norm, embedding. */
static void ticks_fuse_tensors(void **state)
{
    (void)state;
    assert_near(count_buckets("hetviz", "\"bucket_MiB\":25,\"cycle_ms\":5"), 2.5 + 6, 0.01);
    assert_near(count_buckets("torchtitan", "\"bucket_MiB\":25,\"cycle_ms\":5"), 2.5 + 6, 0.01);
}

/** A list that names every bucket has them reduced one by one; one size has them in runs. */
static void runs_are_as_long_as_their_buckets(void **state)
{
    (void)state;
    static const double gbps[] = {1, 10, 20, 25, 50, 1000};
    char list[8192] = "\"bucket_MiB\":[0.5";
    for (size_t i = 1; i < 1000; i++) {
        strcat(list, ",0.5");
    }
    strcat(list, "]");
    for (size_t i = 0; i < HV_COUNT(gbps); i++) {
        const struct wire x = {gbps[i], 1, 0.001 * 20, "hetviz"};
        struct hv_arena a = {0};
        struct hv_verdict one = judge_wire(&x, &a, list);
        struct hv_verdict run = judge_wire(&x, &a, "\"bucket_MiB\":0.5");
        assert_near(run.metrics.iteration_s, one.metrics.iteration_s, 1e-9);
        assert_near(run.metrics.breakdown_s[HV_TIME_DP], one.metrics.breakdown_s[HV_TIME_DP], 1e-9);
        hv_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stage_1_reduces_after_each_micro_batch),
        cmocka_unit_test(chunks_have_latencies),
        cmocka_unit_test(two_hops),
        cmocka_unit_test(groups_of_shards),
        cmocka_unit_test(published_volumes_of_two_hops),
        cmocka_unit_test(flat_gathers_send_all_shards_between_nodes),
        cmocka_unit_test(weights_are_gathered_beside_the_next_forward_pass),
        cmocka_unit_test(tensors_close_buckets),
        cmocka_unit_test(flat_gradients_are_cut),
        cmocka_unit_test(ticks_fuse_tensors),
        cmocka_unit_test(runs_are_as_long_as_their_buckets),
    };
    return cmocka_run_group_tests_name("eval_exchange", tests, NULL, NULL);
}
