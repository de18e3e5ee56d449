/** Stages that run micro-batches in their own way: fewer in flight, of their own size, in turns, on
 * devices that they share. Layers of known times on plain links, so that every time is exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

/** Layers of 1 ms forward and 2 ms backward per sequence on nodes of one device. */
struct pipeline {
    int layers, batch;   /**< batch: sequences of an iteration */
    double output_bytes; /**< of a layer and sequence; 0: transfers take no time */
    double gbps;
    const char *plan; /**< members of the plan; a[i].0 is device i */
};

static void open_pipeline(struct world *w, const struct pipeline *x)
{
    char cluster[1024], model[8192], job[256];
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":16,\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":%.17g,"
                   "\"latency_us\":0,\"curve\":\"plain\"}}],\"network\":{\"bandwidth_GBps\":1e6,"
                   "\"latency_us\":0,\"curve\":\"plain\"},\"devices\":{\"P\":{"
                   "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},"
                   "\"rates\":\"plain\"}}}",
                   x->gbps > 0 ? x->gbps : 1e6);
    size_t n = 0;
    for (int i = 0; i < x->layers; i++) {
        n += (size_t)snprintf(model + n, sizeof model - n,
                              "%s{\"forward_ms\":{\"P\":1},\"backward_ms\":{\"P\":2},"
                              "\"parameter_bytes\":0,\"activation_bytes\":1e9,"
                              "\"output_bytes\":%.17g}",
                              i > 0 ? ","
                                    : "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":"
                                      "\"layers\",\"layers\":[",
                              x->output_bytes);
    }
    (void)snprintf(model + n, sizeof model - n, "]}");
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":1,"
                   "\"precision\":\"fp32\",\"optimizer\":\"none\"}",
                   x->batch);
    open_world(w, cluster, model, job);
}

/** Milliseconds of the pipelines; the arena owns the verdict. */
static double time_ms(const struct pipeline *x, struct hv_arena *a, struct hv_verdict *out)
{
    struct world w;
    open_pipeline(&w, x);
    *out = judge(&w, a, false, x->plan);
    for (size_t i = 0; i < out->findings.n; i++) {
        fail_msg("%s: %s", out->findings.items[i].where, out->findings.items[i].text);
    }
    for (size_t i = 0; i < out->n_approximated; i++) {
        fail_msg("approximated: %s", out->approximated[i]);
    }
    assert_true(!hv_known(out->metrics.bound_s) ||
                out->metrics.bound_s <= out->metrics.iteration_s * (1 + 1e-9));
    close_world(&w);
    return out->metrics.pipeline_s * 1e3;
}

static void assert_ms(const struct pipeline *x, double want)
{
    struct hv_arena a = {0};
    struct hv_verdict v;
    double got = time_ms(x, &a, &v);
    if (!(fabs(got - want) <= 1e-6 * want)) {
        fail_msg("%.9g ms instead of %.9g: %s", got, want, x->plan);
    }
    hv_arena_free(&a);
}

/** One layer per stage on four devices: members of the plan, with members for every stage. */
static const char *four(struct hv_arena *a, const char *schedule, const char *each)
{
    return hv_arena_printf(
        a,
        "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":8,\"stages\":["
        "{\"devices\":\"a[0].0\",\"layers\":[0,1]%s},{\"devices\":\"a[1].0\",\"layers\":[1,2]%s},"
        "{\"devices\":\"a[2].0\",\"layers\":[2,3]%s},{\"devices\":\"a[3].0\",\"layers\":[3,4]%s}]}]"
        ",\"schedule\":{\"name\":\"%s\"}",
        each, each, each, each, schedule);
}

/* ---- fewer micro-batches in flight -------------------------------------------------------------
 */

/** One at a time: 4 forwards and 4 backwards of 2 ms; of zb-h1, 4 input gradients of 1 ms and the
 * first stage's weight gradient. Without limits 1F1B takes (8 + 3) · 3 ms. */
static void one_in_flight(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    static const struct {
        const char *schedule, *each;
        double ms;
    } cases[] = {
        {"1f1b", "", 33},
        {"1f1b", ",\"in_flight\":4", 33},
        {"1f1b", ",\"in_flight\":1", 8 * 12},
        {"zb-h1", "", 27},
        {"zb-h1", ",\"in_flight\":4", 27},
        {"zb-h1", ",\"in_flight\":1", 8 * 9},
        {"gpipe", ",\"in_flight\":2", 4 * 15},
        {"graphpipe", ",\"in_flight\":1", 8 * 12},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        const struct pipeline x = {4, 8, 0, 0, four(&a, cases[i].schedule, cases[i].each)};
        assert_ms(&x, cases[i].ms);
    }
    hv_arena_free(&a);
}

/** The memory and the micro-batches in flight that the verdict states keep to the limit. */
static void limits_show_in_memory(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_verdict v;
    const struct pipeline x = {4, 8, 0, 0, four(&a, "zb-h1", ",\"in_flight\":2")};
    double ms = time_ms(&x, &a, &v);
    assert_true(ms > 27 && ms < 72);
    for (size_t i = 0; i < v.n_memory; i++) {
        assert_true(v.memory[i].in_flight <= 2);
        assert_true(v.memory[i].activations_bytes <= 2e9 * (1 + 1e-9));
    }
    hv_arena_free(&a);
}

/* ---- ranks that take turns ----------------------------------------------------------------------
 */

/** A pipeline of one or two stages: 8 sequences, the first stage on `dp` devices. */
static const char *two(struct hv_arena *a, const char *schedule, int dp, const char *first,
                       const char *second)
{
    return hv_arena_printf(a,
                           "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":8,\"stages\":["
                           "{\"devices\":\"a[0-%d].0\",\"layers\":[0,2],\"dp\":%d%s},"
                           "{\"devices\":\"a[15].0\",\"layers\":[2,3]%s}]}],"
                           "\"schedule\":{\"name\":\"%s\"}",
                           dp - 1, dp, first, second, schedule);
}

static void turns(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    static const char turn[] = ",\"deal\":\"turns\"";
    const struct {
        struct pipeline x;
        double ms;
    } cases[] = {
        /* three ranks, ⌈8 / 3⌉ micro-batches of 3 ms on one after the other */
        {{1, 8, 0, 0,
          "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":"
          "\"a[0-2].0\",\"layers\":[0,1],\"dp\":3,\"deal\":\"turns\"}]}]"},
         9},
        /* two ranks of 2 + 4 ms feed one of 1 + 2: it is busy from 2 ms on */
        {{3, 8, 0, 0, two(&a, "1f1b", 2, turn, "")}, 2 + 8 * 3 + 4},
        /* all forwards first: 2 + 8 forwards of 1 ms, 8 backwards of 2 ms, and one of 4 */
        {{3, 8, 0, 0, two(&a, "gpipe", 2, turn, "")}, 30},
        {{3, 8, 0, 0, two(&a, "zb-list", 2, turn, "")}, 28},
        {{3, 8, 0, 0, two(&a, "1f1b", 1, turn, "")}, 8 * 6 + 1},
        {{3, 8, 0, 0, two(&a, "1f1b", 1, "", "")}, 8 * 6 + 1},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        assert_ms(&cases[i].x, cases[i].ms);
    }
    hv_arena_free(&a);
}

/** One figure per stage of the plan, not per rank in turns; a rank holds its own micro-batches. */
static void turns_in_the_verdict(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_verdict v;
    const struct pipeline x = {3, 8, 0, 0, two(&a, "1f1b", 2, ",\"deal\":\"turns\"", "")};
    (void)time_ms(&x, &a, &v);
    assert_int_equal(v.n_memory, 2);
    assert_int_equal(v.n_stages, 2);
    /* three in flight over two ranks, of two layers each; one in the last stage */
    assert_int_equal(v.memory[0].in_flight, 2);
    assert_int_equal(v.memory[1].in_flight, 1);
    assert_true(fabs(v.memory[0].activations_bytes - 4e9) < 1);
    assert_true(fabs(v.memory[1].activations_bytes - 1e9) < 1);
    assert_true(fabs(v.stages[0].forward_s - 2e-3) < 1e-12);
    assert_int_equal(v.metrics.n_devices_used, 3);
    double sum = 0;
    for (int k = 0; k < HV_BREAKDOWN_N; k++) {
        sum += v.metrics.breakdown_s[k];
    }
    assert_true(fabs(sum - v.metrics.iteration_s) < 1e-9);
    hv_arena_free(&a);
}

/** Rows and links of ranks in turns have the number of their stage and their turn, not of a lane.
 */
static void turns_in_the_chart(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct world w;
    const struct pipeline x = {3, 8, 1e6, 1, two(&a, "1f1b", 2, ",\"deal\":\"turns\"", "")};
    static const char *const rows[] = {"s0 turn 0 a[0].0", "s0 turn 1 a[1].0", "s1 a[15].0"};
    static const char *const links[] = {"  s0 turn 0>s1", "  s0 turn 1>s1", "  s1>s0 turn 0",
                                        "  s1>s0 turn 1"};
    open_pipeline(&w, &x);
    struct hv_verdict v = judge(&w, &a, true, x.plan);
    assert_int_equal(v.timeline->n_rows, HV_COUNT(rows));
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        assert_string_equal(v.timeline->rows[i].name, rows[i]);
    }
    for (size_t i = 0; i < HV_COUNT(links); i++) {
        bool found = false;
        for (size_t k = 0; k < v.timeline->n_links; k++) {
            found = found || strcmp(v.timeline->links[k].name, links[i]) == 0;
        }
        assert_true(found);
    }
    close_world(&w);
    hv_arena_free(&a);
}

/** PipeDream's 1F1B-RR without flush: two ranks of 6 ms take turns, so a minibatch ends every 3 ms.
 */
static void turns_without_flush(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct world w;
    struct pipeline x = {3, 8, 0, 0, two(&a, "pipedream", 2, ",\"deal\":\"turns\"", "")};
    open_pipeline(&w, &x);
    struct hv_verdict v = judge(&w, &a, false, x.plan);
    assert_true(fabs(v.metrics.iteration_s - 8 * 3e-3) < 1e-9);
    close_world(&w);
    hv_arena_free(&a);
}

/** Rank to rank: a transfer of 1 MB at 1 GB/s takes 1 ms and goes from the rank that ran the
 * micro-batch to the one that runs it next. */
static void turns_send_from_rank_to_rank(void **state)
{
    (void)state;
    static const char plan[] =
        "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":%d,\"stages\":[{\"devices\":\"a[0-1]."
        "0\""
        ",\"layers\":[0,1],\"dp\":2,\"deal\":\"turns\"},{\"devices\":\"a[2-3].0\",\"layers\":[1,2],"
        "\"dp\":2,\"deal\":\"turns\"}]}],\"schedule\":{\"name\":\"gpipe\"}";
    struct hv_arena a = {0};
    struct pipeline x = {2, 2, 1e6, 1, hv_arena_printf(&a, plan, 2)};
    /* every pair of ranks is alone: F, hop, F + B, hop, B */
    assert_ms(&x, 1 + 1 + 3 + 1 + 2);
    x.batch = 1;
    x.plan = hv_arena_printf(&a, plan, 1);
    assert_ms(&x, 1 + 1 + 3 + 1 + 2);
    hv_arena_free(&a);
}

/* ---- micro-batches of a stage's own size --------------------------------------------------------
 */

/** Two stages of one layer with their members; 8 sequences. */
static const char *sizes(struct hv_arena *a, int own, int micro_batches, const char *first,
                         const char *second)
{
    return hv_arena_printf(a,
                           "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":["
                           "{\"devices\":\"a[0].0\",\"layers\":[0,1]%s},"
                           "{\"devices\":\"a[1].0\",\"layers\":[1,2]%s}]}],"
                           "\"schedule\":{\"name\":\"graphpipe\"}",
                           own, micro_batches, first, second);
}

static void own_sizes(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const struct {
        struct pipeline x;
        double ms;
    } cases[] = {
        /* four by four: F 4, then 1F1B of two: 4 + 2 · 12 + 8 */
        {{2, 8, 0, 0, sizes(&a, 4, 2, "", "")}, 36},
        {{2, 8, 0, 0, sizes(&a, 4, 2, ",\"micro_batch\":4", ",\"micro_batch\":4")}, 36},
        /* one by one, said by the stages or by the plan: (8 + 1) · 3 */
        {{2, 8, 0, 0, sizes(&a, 1, 8, "", "")}, 27},
        {{2, 8, 0, 0, sizes(&a, 4, 2, ",\"micro_batch\":1", ",\"micro_batch\":1")}, 27},
        /* all of them once in the first stage, one by one in the second: F 8, 8 · 3, B 16 */
        {{2, 8, 0, 0, sizes(&a, 8, 1, "", ",\"micro_batch\":1")}, 8 + 24 + 16},
        /* one by one, then all at once: F 8, 8 + 16, B 16 */
        {{2, 8, 0, 0, sizes(&a, 1, 8, "", ",\"micro_batch\":8")}, 8 + 24 + 16},
        /* 1 MB per sequence at 1 GB/s: the second stage waits for the last of eight transfers, the
         * first for one of 8 MB */
        {{2, 8, 1e6, 1, sizes(&a, 1, 8, "", ",\"micro_batch\":8")}, 8 + 1 + 24 + 8 + 16},
        {{2, 8, 1e6, 1, sizes(&a, 8, 1, "", ",\"micro_batch\":1")}, 8 + 8 + 24 + 1 + 16},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        assert_ms(&cases[i].x, cases[i].ms);
    }
    hv_arena_free(&a);
}

/** Activations of 1 GB per sequence: of a stage's own micro-batches in flight. */
static void own_sizes_in_memory(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_verdict v;
    struct pipeline x = {2, 8, 0, 0, sizes(&a, 8, 1, "", ",\"micro_batch\":1")};
    (void)time_ms(&x, &a, &v);
    assert_true(fabs(v.memory[0].activations_bytes - 8e9) < 1);
    assert_true(fabs(v.memory[1].activations_bytes - 1e9) < 1);
    hv_arena_free(&a);
}

/** GraphPipe's case: two branches of three stages and their merge, four micro-batches: 21 ms, and
 * 30 as a chain (catalogue, from arXiv 2406.17145). Micro-batches of two sequences on the branches
 * and of one on the merge: it runs two for one, (2 · 4 + …) in its own time. */
static void graph_of_branches(void **state)
{
    (void)state;
    static const char plan[] =
        "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":4,\"stages\":["
        "{\"devices\":\"a[0].0\",\"layers\":[0,1],\"after\":[]},"
        "{\"devices\":\"a[1].0\",\"layers\":[1,2]},"
        "{\"devices\":\"a[2].0\",\"layers\":[2,3]},"
        "{\"devices\":\"a[3].0\",\"layers\":[3,4]%s},"
        "{\"devices\":\"a[4].0\",\"layers\":[4,5]},"
        "{\"devices\":\"a[5].0\",\"layers\":[5,6]},"
        "{\"devices\":\"a[6].0\",\"layers\":[6,7]%s%s}]}],\"schedule\":{\"name\":\"graphpipe\"}";
    struct hv_arena a = {0};
    struct pipeline x = {7, 4, 0, 0, hv_arena_printf(&a, plan, "", "", "")};
    assert_ms(&x, 30);
    x.plan = hv_arena_printf(&a, plan, ",\"after\":[]", ",\"after\":[2,5]", "");
    assert_ms(&x, 21);
    x.plan = hv_arena_printf(&a, plan, ",\"after\":[]", ",\"after\":[2,5]", ",\"micro_batch\":1");
    assert_ms(&x, 21);
    /* all four at once in the merge: three stages one by one, 1 + 1 + 4, then 12 and back */
    x.plan = hv_arena_printf(&a, plan, ",\"after\":[]", ",\"after\":[2,5]", ",\"micro_batch\":4");
    assert_ms(&x, 1 + 1 + 4 + 12 + 2 + 2 + 8);
    hv_arena_free(&a);
}

/* ---- overlapped pairs --------------------------------------------------------------------------
 */

/** Milliseconds of an iteration of `batch` micro-batches of one sequence per rank: 4 layers of
 * experts on two stages of two ranks, whose tokens cross a plain network. */
static double experts_ms(const char *schedule, int batch, double gbps, double *passes_ms)
{
    char cluster[1024], job[256];
    static const char model[] =
        "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":4,"
        "\"hidden\":2048,\"heads\":16,\"ffn\":8192,\"vocab\":32000,\"max_sequence\":2048,\"moe\":{"
        "\"experts\":8,\"top_k\":2,\"ffn\":8192}}";
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":4,\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":%.17g,"
                   "\"latency_us\":0,\"curve\":\"plain\"}}],\"network\":{\"bandwidth_GBps\":1e6,"
                   "\"latency_us\":0,\"curve\":\"plain\"},\"devices\":{\"P\":{\"memory_GiB\":800,"
                   "\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"bf16\":100}}}}",
                   gbps);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":2048,"
                   "\"precision\":\"bf16\",\"optimizer\":\"adamw\"}",
                   2 * batch);
    struct hv_arena a = {0};
    struct world w;
    bool chunks = strcmp(schedule, "dualpipev") == 0;
    const char *plan = hv_arena_printf(
        &a,
        "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":%d,\"stages\":["
        "{\"devices\":\"a[0-1].0\",\"layers\":%s,\"dp\":2,\"ep\":2},"
        "{\"devices\":\"a[2-3].0\",\"layers\":%s,\"dp\":2,\"ep\":2}]}],"
        "\"schedule\":{\"name\":\"%s\"}",
        batch, chunks ? "[[0,1],[3,4]]" : "[0,2]", chunks ? "[[1,2],[2,3]]" : "[2,4]", schedule);
    open_world(&w, cluster, model, job);
    struct hv_verdict v = judge(&w, &a, false, plan);
    double sum_s = 0, ms = v.metrics.pipeline_s * 1e3;
    for (int k = 0; k < HV_BREAKDOWN_N; k++) {
        assert_true(v.metrics.breakdown_s[k] >= -1e-12);
        sum_s += v.metrics.breakdown_s[k];
    }
    assert_true(fabs(sum_s - v.metrics.iteration_s) < 1e-9 * sum_s);
    assert_int_equal(v.n_approximated, 0);
    assert_true(v.metrics.bound_s <= v.metrics.iteration_s);
    *passes_ms = 0;
    for (size_t i = 0; i < v.n_stages; i++) {
        *passes_ms += (v.stages[i].forward_s + v.stages[i].backward_s) * 1e3;
    }
    hv_arena_free(&a);
    close_world(&w);
    return ms;
}

/** Milliseconds that one more micro-batch takes, and the two stages' forwards and backwards. */
struct growth {
    double each_ms, passes_ms;
};

static struct growth growth_of(const char *schedule, double gbps)
{
    struct growth g = {0};
    double passes_ms;
    double few = experts_ms(schedule, 16, gbps, &passes_ms);
    g.each_ms = (experts_ms(schedule, 32, gbps, &g.passes_ms) - few) / 16;
    return g;
}

/**
 * In the middle of DualPipe every pass is one of a pair, and each rank runs both stages for two
 * micro-batches, one per direction. So one more micro-batch takes half of both stages' passes:
 * their compute while the experts' exchanges are shorter, and else the exchanges. What is left at
 * 50 GB/s are transfers between the stages, which share the network with the exchanges.
 */
static void pairs_hide_exchanges(void **state)
{
    (void)state;
    struct growth fast = growth_of("dualpipe", 1e6), mid = growth_of("dualpipe", 50);
    struct growth slow = growth_of("dualpipe", 0.02), slower = growth_of("dualpipe", 0.01);
    double hop_ms = 2 * 2048 * 2048 * 2 * 2 / 2 / 50e6; /* there and back, two ranks at once */
    double slow_hop_ms = hop_ms * 50 / 0.02;
    assert_true(fabs(fast.each_ms - fast.passes_ms / 2) < 1e-4 * fast.each_ms);
    assert_true(mid.passes_ms > 1.02 * fast.passes_ms);
    assert_true(mid.each_ms < fast.passes_ms / 2 + hop_ms);
    double exchange_ms = slow.passes_ms - fast.passes_ms;
    assert_true(slow.each_ms >= exchange_ms / 2 * (1 - 1e-3));
    assert_true(slow.each_ms < (exchange_ms + fast.passes_ms) / 2 + slow_hop_ms);
    assert_true(fabs(slower.each_ms - 2 * slow.each_ms) < 2e-3 * slow.each_ms);
}

/** A faster link is never slower, and the bound stays below, for both orders with pairs. */
static void pairs_on_faster_links(void **state)
{
    (void)state;
    static const char *const duals[] = {"dualpipe", "dualpipev"};
    for (size_t i = 0; i < HV_COUNT(duals); i++) {
        double before_ms = HUGE_VAL, passes_ms;
        for (double gbps = 0.5; gbps < 1e4; gbps *= 4) {
            double ms = experts_ms(duals[i], 16, gbps, &passes_ms);
            assert_true(ms <= before_ms * (1 + 1e-12));
            before_ms = ms;
        }
    }
}

/* ---- stages on the same devices -----------------------------------------------------------------
 */

/** Three stages of one layer; the first and the last on devices that may be the same. */
static const char *three(struct hv_arena *a, int last, const char *schedule)
{
    return hv_arena_printf(a,
                           "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":4,\"stages\":["
                           "{\"devices\":\"a[0].0\",\"layers\":[0,1]},"
                           "{\"devices\":\"a[1].0\",\"layers\":[1,2]},"
                           "{\"devices\":\"a[%d].0\",\"layers\":[2,3]}]}],\"schedule\":{%s}",
                           last, schedule);
}

/** A device runs one pass at a time: four micro-batches of 1 + 2 ms on three stages of a chain take
 * (4 + 2) · 3 ms on three devices. On two the first does 4 · 6 ms of work and waits for the middle
 * stage in the first micro-batch, and with all three on one device nothing overlaps: 36 ms. */
static void shared_devices(void **state)
{
    (void)state;
    static const char forward[] = "\"name\":\"graphpipe\"";
    struct hv_arena a = {0};
    struct pipeline x = {3, 4, 0, 0, three(&a, 2, forward)};
    assert_ms(&x, 18);
    x.plan = "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":4,\"stages\":["
             "{\"devices\":\"a[0].0\",\"layers\":[0,1]},{\"devices\":\"a[0].0\",\"layers\":[1,2]},"
             "{\"devices\":\"a[0].0\",\"layers\":[2,3]}]}],\"schedule\":{\"name\":\"graphpipe\"}";
    assert_ms(&x, 36);
    struct hv_verdict v;
    x.plan = three(&a, 0, forward);
    double ms = time_ms(&x, &a, &v), sum_s = 0;
    assert_true(ms >= 24 && ms <= 30);
    assert_int_equal(v.metrics.n_devices_used, 2);
    for (int k = 0; k < HV_BREAKDOWN_N; k++) {
        assert_true(v.metrics.breakdown_s[k] >= 0);
        sum_s += v.metrics.breakdown_s[k];
    }
    assert_true(fabs(sum_s - v.metrics.iteration_s) < 1e-9);
    assert_true(fabs(v.metrics.breakdown_s[HV_TIME_COMPUTE] - 36e-3 / 2) < 1e-9);
    hv_arena_free(&a);
}

static double bytes_at(const struct hv_timeline_row *r, double at_s)
{
    double bytes = r->memory.steps[0].bytes;
    for (size_t i = 0; i < r->memory.n && r->memory.steps[i].at_s <= at_s; i++) {
        bytes = r->memory.steps[i].bytes;
    }
    return bytes;
}

/** A device with several stages needs what they hold together at any one time, by their rows in the
 * timeline, beside what is there all the time. */
static void shared_memory_over_time(void **state)
{
    (void)state;
    static const char *const schedules[] = {"graphpipe", "distmm", "tessel"};
    for (size_t k = 0; k < HV_COUNT(schedules); k++) {
        struct hv_arena a = {0};
        struct world w;
        struct pipeline x = {4, 8, 0, 0, NULL};
        x.plan = hv_arena_printf(
            &a,
            "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":8,\"stages\":["
            "{\"devices\":\"a[0].0\",\"layers\":[0,1]},{\"devices\":\"a[1].0\",\"layers\":[1,2]},"
            "{\"devices\":\"a[0].0\",\"layers\":[2,3]},{\"devices\":\"a[2].0\",\"layers\":[3,4]}]}]"
            ","
            "\"schedule\":{\"name\":\"%s\"}",
            schedules[k]);
        open_pipeline(&w, &x);
        struct hv_verdict v = judge(&w, &a, true, x.plan);
        const struct hv_timeline_row *r = v.timeline->rows;
        assert_int_equal(v.timeline->n_rows, 4);
        double base = r[0].memory.steps[r[0].memory.n - 1].bytes + /* all is given back */
                      r[2].memory.steps[r[2].memory.n - 1].bytes;
        double most = 0;
        for (int i = 0; i < 3; i += 2) {
            for (size_t s = 0; s < r[i].memory.n; s++) {
                double at_s = r[i].memory.steps[s].at_s;
                double both = bytes_at(&r[0], at_s) + bytes_at(&r[2], at_s) - base;
                most = fmax(most, both);
            }
        }
        const struct hv_stage_memory *alone = &v.memory[1];
        double alone_bytes = alone->peak_bytes - r[1].memory.steps[r[1].memory.n - 1].bytes;
        double fragmented = alone_bytes / (alone->activations_bytes + alone->transient_bytes);
        for (int i = 0; i < 3; i += 2) {
            const struct hv_stage_memory *m = &v.memory[i];
            double held = (m->activations_bytes + m->transient_bytes) * fragmented;
            assert_true(fabs(held - most) <= 1e-9 * most);
            double parts = m->weights_bytes + m->gradients_bytes + m->master_bytes +
                           m->optimizer_bytes + m->activations_bytes + m->transient_bytes +
                           m->overhead_bytes;
            assert_true(fabs(parts - m->peak_bytes) <= 1e-9 * m->peak_bytes);
        }
        hv_arena_free(&a);
        close_world(&w);
    }
    /* two stages that hold 2 + 2 and then 3 + 1 micro-batches of 1 GB: 4 GB and not 3 + 2 */
    struct hv_arena a = {0};
    struct hv_verdict v;
    const struct pipeline x = {
        2, 5, 0, 0,
        "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":5,\"stages\":["
        "{\"devices\":\"a[0].0\",\"layers\":[0,1]},{\"devices\":\"a[0].0\",\"layers\":[1,2]}]}],"
        "\"schedule\":{\"name\":\"explicit\",\"order\":[[\"F0.0\",\"F0.1\",\"F1.0\",\"F1.1\",\"BW1."
        "1\","
        "\"BW1.0\",\"BW0.0\",\"BW0.1\",\"F0.2\",\"F0.3\",\"F0.4\",\"F1.2\",\"BW1.2\",\"BW0.2\","
        "\"F1.3\",\"BW1.3\",\"BW0.3\",\"F1.4\",\"BW1.4\",\"BW0.4\"]]}"};
    (void)time_ms(&x, &a, &v);
    for (int i = 0; i < 2; i++) {
        double held = v.memory[i].activations_bytes + v.memory[i].transient_bytes;
        assert_true(fabs(held - 4e9) <= 1);
    }
    hv_arena_free(&a);
}

/** No two passes on one device at the same time, whatever the orders; and no more time than one
 * after the other. Three stages on the same two devices, two of them on both. */
static void one_pass_at_a_time(void **state)
{
    (void)state;
    static const char *const schedules[] = {"graphpipe", "distmm", "tessel"};
    for (size_t i = 0; i < HV_COUNT(schedules); i++) {
        struct hv_arena a = {0};
        struct world w;
        struct pipeline x = {4, 8, 0, 0, NULL};
        x.plan = hv_arena_printf(
            &a,
            "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":4,\"stages\":["
            "{\"devices\":\"a[0-1].0\",\"layers\":[0,1],\"dp\":2},"
            "{\"devices\":\"a[0].0\",\"layers\":[1,2]},{\"devices\":\"a[1].0\",\"layers\":[2,3]},"
            "{\"devices\":\"a[0-1].0\",\"layers\":[3,4],\"dp\":2}]}],\"schedule\":{\"name\":\"%"
            "s\"}",
            schedules[i]);
        open_pipeline(&w, &x);
        struct hv_verdict v = judge(&w, &a, true, x.plan);
        const struct hv_timeline *t = v.timeline;
        assert_int_equal(t->n_rows, 4);
        for (size_t r = 0; r < 4; r++) {
            for (size_t q = r + 1; q < 4; q++) {
                const struct hv_lane *one = &t->lanes.items[t->rows[r].compute_lane];
                const struct hv_lane *two = &t->lanes.items[t->rows[q].compute_lane];
                bool apart = r == 1 && q == 2;
                for (size_t k = 0; k < one->n_spans * two->n_spans && !apart; k++) {
                    const struct hv_span *s = &one->spans[k % one->n_spans];
                    const struct hv_span *u = &two->spans[k / one->n_spans];
                    assert_true(s->end_s <= u->start_s + 1e-12 || u->end_s <= s->start_s + 1e-12);
                }
            }
        }
        /* 3 + 6 + 6 + 3 ms for two sequences, four times; the two in the middle may overlap */
        assert_true(v.metrics.pipeline_s <= 4 * 18e-3 * (1 + 1e-9));
        assert_true(v.metrics.pipeline_s >= 4 * 12e-3 * (1 - 1e-9));
        close_world(&w);
        hv_arena_free(&a);
    }
}

/* ---- what is refused ----------------------------------------------------------------------------
 */

static void refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *schedule, *says;
    } cases[] = {
        {",\"deal\":\"turns\",\"zero\":3", "", "1f1b",
         "stages[0].deal: turns of ranks that gather"},
        {",\"deal\":\"turns\",\"zero\":{\"stage\":1,\"reduce\":\"each\"}", "", "1f1b",
         "stages[0].deal: turns of ranks that gather"},
        {",\"deal\":\"turns\",\"ep\":2", "", "1f1b", "stages[0].deal: turns of ranks that spread"},
        {",\"deal\":\"turns\",\"micro_batch\":4", "", "1f1b",
         "stages[0].deal: turns beside stages with micro-batches of unlike size"},
        {"", ",\"micro_batch\":2", "seq1f1b", NULL},
        {",\"deal\":\"turns\"", "", "chimera", NULL},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct hv_arena a = {0};
        struct hv_plan_doc doc;
        struct hv_verdict v = {0};
        struct hv_err err = {0};
        struct world w;
        struct pipeline x = {3, 8, 0, 0,
                             two(&a, cases[i].schedule, 2, cases[i].first, cases[i].second)};
        open_pipeline(&w, &x);
        const char *text = hv_arena_printf(&a, "{\"format\":\"hetviz.plan/1\",%s}", x.plan);
        assert_int_equal(hv_plan_doc_build(&doc, parse(text, "p"), w.in.cluster.cluster, &err),
                         HV_OK);
        enum hv_status st = hv_eval(w.cost, doc.plan, &(struct hv_eval_options){0}, &a, &v, &err);
        bool found =
            v.findings.n > 0 && v.findings.items[v.findings.n - 1].code == HV_V_SCHEDULE_NEEDS;
        if (cases[i].says != NULL) {
            assert_int_equal(st, HV_ENO);
            if (strstr(err.text, cases[i].says) == NULL) {
                fail_msg("%s", err.text);
            }
        } else if (!found) {
            fail_msg("case %zu is not refused by the schedule", i);
        }
        hv_plan_doc_free(&doc);
        close_world(&w);
        hv_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_in_flight),
        cmocka_unit_test(limits_show_in_memory),
        cmocka_unit_test(turns),
        cmocka_unit_test(turns_in_the_verdict),
        cmocka_unit_test(turns_in_the_chart),
        cmocka_unit_test(turns_without_flush),
        cmocka_unit_test(turns_send_from_rank_to_rank),
        cmocka_unit_test(own_sizes),
        cmocka_unit_test(own_sizes_in_memory),
        cmocka_unit_test(graph_of_branches),
        cmocka_unit_test(pairs_hide_exchanges),
        cmocka_unit_test(pairs_on_faster_links),
        cmocka_unit_test(shared_devices),
        cmocka_unit_test(shared_memory_over_time),
        cmocka_unit_test(one_pass_at_a_time),
        cmocka_unit_test(refused_by_name),
    };
    return cmocka_run_group_tests_name("eval_parts", tests, NULL, NULL);
}
