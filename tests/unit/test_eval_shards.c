/** Sharded weights that a schedule gathers chunk by chunk, through the judge: over plain links of
 * nothing else, digit by digit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/eval/timeline/timeline.h"
#include "tests/eval_fixture.h"

/** A pipeline of equal chunks of one measured layer, 2 ms forward and 4 ms backward. */
struct shape {
    int stages, chunks, dp, micro_batches;
    double megabytes;        /**< of a chunk's weights and of its gradients, fp32 */
    double gbps;             /**< 0: 10 */
    double output_megabytes; /**< of a chunk, per sequence */
    const char *schedule, *zero;
    const char *more; /**< further members of the plan; NULL: none */
};

static size_t add_stages(char *out, size_t n, const struct shape *x)
{
    size_t at = 0;
    for (int i = 0; i < x->stages; i++) {
        at += (size_t)snprintf(out + at, n - at, "%s{\"devices\":\"a[%d-%d].0\",\"layers\":[",
                               i > 0 ? "," : "", i * x->dp, (i + 1) * x->dp - 1);
        for (int c = 0; c < x->chunks; c++) {
            int block = c * x->stages + i;
            at +=
                (size_t)snprintf(out + at, n - at, "%s[%d,%d]", c > 0 ? "," : "", block, block + 1);
        }
        at += (size_t)snprintf(out + at, n - at, "],\"dp\":%d,\"zero\":%s}", x->dp, x->zero);
    }
    return at;
}

static void open_shape(struct world *w, const struct shape *x)
{
    char cluster[1024], model[4096], job[256];
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"plain\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":%d,\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":%g,"
                   "\"latency_us\":0,\"curve\":\"plain\"}}],\"devices\":{\"P\":{"
                   "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},"
                   "\"rates\":\"plain\"}}}",
                   x->stages * x->dp, x->gbps > 0 ? x->gbps : 10);
    size_t at = (size_t)snprintf(model, sizeof model,
                                 "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":"
                                 "\"layers\",\"layers\":[");
    for (int i = 0; i < x->stages * x->chunks; i++) {
        at += (size_t)snprintf(model + at, sizeof model - at,
                               "%s{\"forward_ms\":{\"P\":2},\"backward_ms\":{\"P\":4},"
                               "\"parameter_bytes\":%g,\"activation_bytes\":0,\"output_bytes\":%g}",
                               i > 0 ? "," : "", x->megabytes * 1e6, x->output_megabytes * 1e6);
    }
    (void)snprintf(model + at, sizeof model - at, "]}");
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":1,"
                   "\"precision\":\"fp32\",\"optimizer\":\"none\"}",
                   x->dp * x->micro_batches);
    open_world(w, cluster, model, job);
}

static void write_body(char *out, size_t n, const struct shape *x)
{
    size_t at = (size_t)snprintf(out, n,
                                 "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,"
                                 "\"stages\":[",
                                 x->dp, x->micro_batches);
    at += add_stages(out + at, n - at, x);
    (void)snprintf(out + at, n - at, "]}],\"schedule\":{\"name\":\"%s\"}%s", x->schedule,
                   x->more != NULL ? x->more : "");
}

/** What the judge says of a shape, without the verdict's own memory. */
struct said {
    double ms, zero_ms, sum_ms;
    double weights_bytes, gradients_bytes, peak_bytes; /**< of stage 0 */
    size_t n_approximated;
};

static struct said ask(struct shape x)
{
    char body[8000];
    struct world w;
    struct hv_arena a = {0};
    struct said s = {0};
    open_shape(&w, &x);
    write_body(body, sizeof body, &x);
    struct hv_verdict v = judge(&w, &a, true, body);
    s.ms = v.metrics.iteration_s * 1e3;
    s.zero_ms = v.metrics.breakdown_s[HV_TIME_ZERO] * 1e3;
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        s.sum_ms += v.metrics.breakdown_s[i] * 1e3;
    }
    s.weights_bytes = v.memory[0].weights_bytes;
    s.gradients_bytes = v.memory[0].gradients_bytes;
    s.peak_bytes = v.memory[0].peak_bytes;
    s.n_approximated = v.n_approximated;
    if (!(fabs(s.sum_ms / s.ms - 1) < 1e-9)) {
        fail_msg("the breakdown adds up to %.9g of %.9g ms", s.sum_ms, s.ms);
    }
    const struct hv_stage_memory *m = &v.memory[0];
    double parts = m->weights_bytes + m->gradients_bytes + m->master_bytes + m->optimizer_bytes +
                   m->activations_bytes + m->transient_bytes + m->overhead_bytes;
    if (!(fabs(parts / m->peak_bytes - 1) < 1e-9)) {
        fail_msg("memory adds up to %.9g of %.9g bytes", parts, m->peak_bytes);
    }
    hv_arena_free(&a);
    close_world(&w);
    return s;
}

static void assert_ms(struct shape x, double want_ms, double want_zero_ms)
{
    struct said s = ask(x);
    assert_int_equal(s.n_approximated, 0);
    if (!(fabs(s.ms / want_ms - 1) < 1e-6 && fabs(s.zero_ms - want_zero_ms) < 1e-6)) {
        fail_msg("%s: %.9g ms, %.9g of zero, instead of %.9g and %.9g", x.zero, s.ms, s.zero_ms,
                 want_ms, want_zero_ms);
    }
}

/** Two chunks on two ranks: F0 F0 F1 F1 B1 B1 B0 B0, 24 ms. Gathers and scatters take 1 ms. */
static const struct shape chunks = {.stages = 1,
                                    .chunks = 2,
                                    .dp = 2,
                                    .micro_batches = 2,
                                    .megabytes = 20,
                                    .schedule = "breadth-first"};

static struct shape with(struct shape x, const char *zero)
{
    x.zero = zero;
    return x;
}

/** One chunk held: gathers at 0, 5 and, behind the scatter of chunk 1, at 19; last scatter to 29.
 * Two: only the first gather and the last scatter show. Without resharding chunk 0 is not gathered
 * again; a whole stage is gathered and scattered in 2 ms. */
static void windows(void **state)
{
    (void)state;
    struct shape slow = chunks;
    slow.megabytes = 60;
    assert_ms(with(chunks, "{\"stage\":3,\"unit\":\"chunk\",\"limit\":1}"), 29, 5);
    assert_ms(with(chunks, "{\"stage\":3,\"unit\":\"chunk\",\"prefetch\":0,\"limit\":1}"), 29, 5);
    assert_ms(with(slow, "{\"stage\":3,\"unit\":\"chunk\",\"limit\":1}"), 39, 15);
    assert_ms(with(chunks, "{\"stage\":3,\"unit\":\"chunk\"}"), 26, 2);
    assert_ms(with(chunks, "{\"stage\":3,\"unit\":\"chunk\",\"reduce\":\"end\"}"), 26, 2);
    assert_ms(with(chunks, "{\"stage\":3,\"unit\":\"chunk\",\"limit\":1,\"reshard\":false}"), 27,
              3);
    assert_ms(with(chunks, "{\"stage\":3,\"unit\":\"stage\"}"), 28, 4);
}

/** Nothing is gathered twice where the window holds all that a rank has: 1F1B of four micro-batches
 * on two stages takes 30 ms, one gather before and one scatter behind; the second stage gathers
 * while it waits for the first. Layer by layer, as FSDP's
 * hooks do, every pass gathers: 2 + 4 ms become 3 + 6 in the middle of the pipeline. */
static void one_chunk(void **state)
{
    (void)state;
    struct shape x = {.stages = 2,
                      .chunks = 1,
                      .dp = 2,
                      .micro_batches = 4,
                      .megabytes = 20,
                      .schedule = "1f1b",
                      .zero = "{\"stage\":3,\"unit\":\"chunk\"}"};
    assert_ms(x, 32, 1.5);
    assert_true(ask(with(x, "3")).ms > 40);
}

/** Groups of two hold the shards: 1 ms to gather, 6 of passes, 1 to scatter, and 1 for the
 * all-reduce of 10 MB between the groups. */
static void shard_groups(void **state)
{
    (void)state;
    struct shape x = {.stages = 1,
                      .chunks = 1,
                      .dp = 4,
                      .micro_batches = 1,
                      .megabytes = 20,
                      .schedule = "1f1b",
                      .zero = "{\"stage\":3,\"unit\":\"chunk\",\"shard_group\":2}"};
    assert_ms(x, 9, 2);
}

/** One micro-batch on two stages whose outputs take 2 ms: gather to 1, forward to 3, transfer to 5,
 * forward to 7, backward to 11. Then the gradients of the input leave the nodes that scatter those
 * of the weights: each has half of the NIC, the scatter ends at 13 and the transfer at 14; backward
 * to 18, scatter to 19. On a network that holds nothing else it would be 18. */
static void shared_links(void **state)
{
    (void)state;
    struct shape x = {.stages = 2,
                      .chunks = 1,
                      .dp = 2,
                      .micro_batches = 1,
                      .megabytes = 20,
                      .output_megabytes = 20,
                      .schedule = "1f1b",
                      .zero = "{\"stage\":3,\"unit\":\"chunk\"}"};
    assert_ms(x, 19, 2);
}

/** Two chunks on groups of two of four ranks, as the windows above: scatters end at 18 and 26 ms,
 * and the groups then reduce 10 MB each in 1 ms, from 18 to 19 beside the passes and from 26 to 27.
 * With three times the bytes: gathers to 3 and to 6, scatters from 19 and 27, reductions from 22
 * and 30 ms. */
static void groups_behind_scatters(void **state)
{
    (void)state;
    struct shape x = chunks;
    x.dp = 4;
    x.zero = "{\"stage\":3,\"unit\":\"chunk\",\"shard_group\":2}";
    assert_ms(x, 27, 2);
    x.megabytes = 60;
    assert_ms(x, 3 + 24 + 3 + 3, 6);
}

/** One holder keeps its weights and gradients whole: nothing is gathered, and nothing is there
 * twice.
 */
static void one_holder(void **state)
{
    (void)state;
    struct shape x = chunks;
    x.dp = 1;
    struct said plain = ask(with(x, "0")),
                sharded = ask(with(x, "{\"stage\":3,\"unit\":\"chunk\"}"));
    assert_true(fabs(plain.ms - sharded.ms) < 1e-9);
    assert_true(fabs(sharded.weights_bytes + sharded.gradients_bytes - 80e6) < 1);
    assert_true(fabs(plain.weights_bytes + plain.gradients_bytes - 80e6) < 1);
}

/** Lamy-Poirier 2023: breadth-first passes gather a chunk for all micro-batches, interleaved ones
 * again and again; without sharding the two take equally long. */
static void breadth_first(void **state)
{
    (void)state;
    struct shape bf = {.stages = 4,
                       .chunks = 4,
                       .dp = 2,
                       .micro_batches = 8,
                       .megabytes = 20,
                       .schedule = "breadth-first",
                       .zero = "0"};
    struct shape il = bf;
    il.schedule = "interleaved";
    assert_true(fabs(ask(bf).ms - ask(il).ms) < 1e-6);
    for (double gbps = 10; gbps > 1; gbps /= 2) {
        bf.gbps = il.gbps = gbps;
        struct said a = ask(with(bf, "{\"stage\":3,\"unit\":\"chunk\",\"limit\":1}"));
        struct said b = ask(with(il, "{\"stage\":3,\"unit\":\"chunk\",\"limit\":1}"));
        assert_true(a.ms < b.ms && a.zero_ms < b.zero_ms);
        a = ask(with(bf, "{\"stage\":3,\"unit\":\"chunk\"}"));
        b = ask(with(il, "{\"stage\":3,\"unit\":\"chunk\"}"));
        assert_true(a.ms <= b.ms && a.zero_ms <= b.zero_ms);
    }
}

/** With one chunk held 20 MB are gathered at the peak and those of one chunk unsent; with two the
 * gradients of the chunk before are still on their way. Half of all 40 MB are there all the time.
 */
static void memory(void **state)
{
    (void)state;
    struct said one = ask(with(chunks, "{\"stage\":3,\"unit\":\"chunk\",\"limit\":1}"));
    struct said two = ask(with(chunks, "{\"stage\":3,\"unit\":\"chunk\"}"));
    struct said all = ask(with(chunks, "{\"stage\":3,\"unit\":\"stage\"}"));
    assert_true(fabs(one.weights_bytes - 40e6) < 1);
    assert_true(fabs(one.gradients_bytes - 40e6) < 1);
    assert_true(fabs(two.weights_bytes + two.gradients_bytes - (40e6 + 60e6)) < 1);
    assert_true(fabs(all.weights_bytes - 60e6) < 1);
    assert_true(one.peak_bytes < two.peak_bytes && two.peak_bytes < all.peak_bytes);
}

/** The lane of a row's gathers and scatters, as one_held of the window above has them. */
static void lane(void **state)
{
    (void)state;
    static const double from_ms[] = {0, 5, 18, 19, 28};
    static const enum hv_span_kind kinds[] = {HV_SPAN_WHOLE, HV_SPAN_WHOLE, HV_SPAN_SCATTER,
                                              HV_SPAN_WHOLE, HV_SPAN_SCATTER};
    char body[8000];
    struct world w;
    struct hv_arena a = {0};
    struct shape x = with(chunks, "{\"stage\":3,\"unit\":\"chunk\",\"limit\":1}");
    open_shape(&w, &x);
    write_body(body, sizeof body, &x);
    const struct hv_timeline *t = judge(&w, &a, true, body).timeline;
    assert_int_equal(t->n_links, 1);
    assert_int_equal(t->links[0].to_row, t->links[0].from_row);
    const struct hv_lane *l = &t->lanes.items[t->links[0].lane];
    assert_int_equal(l->n_spans, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_true(fabs(l->spans[i].start_s * 1e3 - from_ms[i]) < 1e-9);
        assert_true(fabs(l->spans[i].end_s * 1e3 - from_ms[i] - 1) < 1e-9);
        assert_int_equal(l->spans[i].kind, kinds[i]);
    }
    hv_arena_free(&a);
    close_world(&w);
}

/** The reason for which a plan is refused. */
static void assert_refused(const struct shape *x, const char *why)
{
    char body[8000], text[8192];
    struct world w;
    struct hv_arena a = {0};
    struct hv_err err = {0};
    struct hv_plan_doc doc;
    struct hv_verdict v;
    open_shape(&w, x);
    write_body(body, sizeof body, x);
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}", body);
    if (hv_plan_doc_build(&doc, parse(text, "p"), w.in.cluster.cluster, &err) != HV_OK) {
        fail_msg("plan: %s", err.text);
    }
    assert_int_equal(hv_eval(w.cost, doc.plan, &(struct hv_eval_options){0}, &a, &v, &err), HV_ENO);
    if (strstr(err.text, why) == NULL) {
        fail_msg("%s", err.text);
    }
    hv_plan_doc_free(&doc);
    hv_arena_free(&a);
    close_world(&w);
}

static void refused(void **state)
{
    (void)state;
    struct shape x = {.stages = 2,
                      .chunks = 1,
                      .dp = 2,
                      .micro_batches = 4,
                      .megabytes = 20,
                      .schedule = "pipedream-2bw",
                      .zero = "{\"stage\":3,\"unit\":\"chunk\"}"};
    assert_refused(&x, "stages[0].zero.unit: chunks that stay gathered");
    x.schedule = "1f1b";
    x.zero = "1";
    x.more = ",\"mode\":\"serve\"";
    assert_refused(&x, "stages[0].zero.stage: states sharded over the ranks of a serving plan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(one_chunk),
        cmocka_unit_test(shard_groups),
        cmocka_unit_test(memory),
        cmocka_unit_test(breadth_first),
        cmocka_unit_test(lane),
        cmocka_unit_test(groups_behind_scatters),
        cmocka_unit_test(one_holder),
        cmocka_unit_test(shared_links),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
