/** Layer-wise degrees of a stage (Miao et al., VLDB 2023): parts add up, a change of layout costs
 * its exchange, and equal degrees change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/units.h"
#include "solver/cost/network/collective.h"
#include "solver/plan/parts.h"
#include "tests/eval_fixture.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

/** One stage of 8 devices with these further keys; 8 micro-batches of 8 sequences. */
static struct hv_verdict judge_stage(struct world *w, struct hv_arena *a, const char *more)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":"
                   "\"a[0].*\",\"layers\":[0,24]%s}]}]",
                   more);
    return judge(w, a, false, text);
}

/** A plan of that stage, for the cost model. */
static struct hv_plan_doc plan_of(struct world *w, const char *more)
{
    char text[1024];
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    (void)snprintf(
        text, sizeof text,
        "{\"format\":\"hetviz.plan/1\",\"micro_batch\":8,\"replicas\":[{"
        "\"micro_batches\":8,\"stages\":[{\"devices\":\"a[0].*\",\"layers\":[0,24]%s}]}]}",
        more);
    if (hv_plan_doc_build(&doc, parse(text, "p"), w->in.cluster.cluster, &err) != HV_OK) {
        fail_msg("plan: %s", err.text);
    }
    return doc;
}

static struct hv_pass pass_of(struct world *w, const struct hv_plan *p, const struct hv_stage *as,
                              bool continued, bool continues)
{
    struct hv_err err = {0};
    struct hv_pass out;
    const struct hv_stage_query q = {.plan = p,
                                     .replica = &p->replicas[0],
                                     .as = as,
                                     .continued = continued,
                                     .continues = continues};
    if (hv_cost_pass(w->cost, &q, &out, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return out;
}

/** Entries that give what the stage gives, however they are cut: the same verdict to the last
 * digit. */
static void equal_degrees_change_nothing(void **state)
{
    struct hv_arena a = {0};
    const char own[] = ",\"tp\":4,\"dp\":2,\"sequence_parallel\":true,\"zero\":1";
    const char *const entries[] = {
        ",\"degrees\":[{\"layers\":[0,24],\"tp\":4,\"dp\":2,\"sequence_parallel\":true,\"zero\":1}"
        "]",
        ",\"degrees\":[{\"layers\":[3,7],\"tp\":4,\"dp\":2,\"sequence_parallel\":true,\"zero\":1}]",
        ",\"degrees\":[{\"layers\":[3,7],\"tp\":8},{\"layers\":[0,24],\"tp\":4,\"dp\":2,"
        "\"sequence_parallel\":true,\"zero\":1}]",
    };
    struct hv_verdict plain = judge_stage(*state, &a, own);
    for (size_t i = 0; i < HV_COUNT(entries); i++) {
        char more[512];
        (void)snprintf(more, sizeof more, "%s%s", own, entries[i]);
        struct hv_verdict v = judge_stage(*state, &a, more);
        assert_int_equal(v.findings.n, 0);
        assert_true(v.metrics.iteration_s == plain.metrics.iteration_s);
        assert_true(v.memory[0].peak_bytes == plain.memory[0].peak_bytes);
    }
    /* the entry that covers everything against the stage's own keys */
    struct hv_verdict v = judge_stage(*state, &a,
                                      ",\"tp\":8,\"degrees\":[{\"layers\":[0,24],"
                                      "\"tp\":4,\"dp\":2,\"sequence_parallel\":true,"
                                      "\"zero\":1}]");
    assert_near(v.metrics.iteration_s, plain.metrics.iteration_s, 1e-12);
    hv_arena_free(&a);
}

/**
 * Blocks 0 to 11 on tp 2 x dp 4 without sequence parallelism, 12 to 23 on tp 8: a pass is the sum
 * of two halves and of one all-gather of 8 sequences over the 4 tensor groups, forward; backward
 * every device has the whole gradient already.
 */
static void a_pass_is_the_sum_of_its_parts(void **state)
{
    struct world *w = *state;
    struct hv_plan_doc doc =
        plan_of(w, ",\"tp\":8,\"degrees\":[{\"layers\":[0,12],\"tp\":2,\"dp\":4}]");
    const struct hv_stage *s = &doc.plan->replicas[0].stages[0];
    struct hv_range low = {0, 24}, high = {24, 48};
    struct hv_stage first = hv_stage_part(s, &low), second = hv_stage_part(s, &high);
    first.embedding = second.head = 1;
    first.head = second.embedding = 0;
    assert_true(first.tp.degree == 2 && first.dp == 4 && second.tp.degree == 8);
    struct hv_pass a = pass_of(w, doc.plan, &first, false, true);
    struct hv_pass b = pass_of(w, doc.plan, &second, true, false);
    struct hv_pass sum = pass_of(w, doc.plan, NULL, false, false);
    const uint32_t heads[] = {0, 2, 4, 6};
    const struct hv_collective_query gather = {.op = HV_ALL_GATHER,
                                               .bytes = 8.0 * 2048 * 2560 * 2,
                                               .devices = heads,
                                               .n = HV_COUNT(heads),
                                               .together = 2};
    double gather_s = hv_cost_collective(w->in.cluster.cluster, &gather, NULL).time_s;
    assert_true(gather_s > 0);
    assert_near(sum.forward_s, a.forward_s + b.forward_s + gather_s, 1e-12);
    assert_near(sum.input_grad_s, a.input_grad_s + b.input_grad_s, 1e-12);
    assert_near(sum.activation_bytes, a.activation_bytes + b.activation_bytes, 1e-12);
    assert_near(sum.flops, a.flops + b.flops, 1e-12);
    hv_plan_doc_free(&doc);
}

/** With sequence parallelism both layouts hold every token once: an all-to-all there and back. */
static void token_shards_are_exchanged_both_ways(void **state)
{
    struct world *w = *state;
    struct hv_plan_doc doc = plan_of(
        w, ",\"tp\":8,\"sequence_parallel\":true,\"degrees\":[{\"layers\":[0,12],\"dp\":8}]");
    const struct hv_stage *s = &doc.plan->replicas[0].stages[0];
    struct hv_range low = {0, 24}, high = {24, 48};
    struct hv_stage first = hv_stage_part(s, &low), second = hv_stage_part(s, &high);
    first.embedding = second.head = 1;
    first.head = second.embedding = 0;
    struct hv_pass a = pass_of(w, doc.plan, &first, false, true);
    struct hv_pass b = pass_of(w, doc.plan, &second, true, false);
    struct hv_pass sum = pass_of(w, doc.plan, NULL, false, false);
    const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct hv_collective_query moved = {.op = HV_ALL_TO_ALL,
                                              .bytes = 8.0 * 2048 * 2560 * 2 / 8,
                                              .devices = all,
                                              .n = HV_COUNT(all),
                                              .together = 1};
    double moved_s = hv_cost_collective(w->in.cluster.cluster, &moved, NULL).time_s;
    assert_near(sum.forward_s, a.forward_s + b.forward_s + moved_s, 1e-12);
    assert_near(sum.input_grad_s, a.input_grad_s + b.input_grad_s + moved_s, 1e-12);
    hv_plan_doc_free(&doc);
}

/** Weights by hand: half of the blocks whole on every device, the others and the head cut in eight.
 */
static void memory_is_that_of_both_parts(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict whole = judge_stage(*state, &a, ",\"dp\":8"),
                      cut = judge_stage(*state, &a, ",\"tp\":8"),
                      mixed = judge_stage(*state, &a,
                                          ",\"dp\":8,\"degrees\":[{\"layers\":[12,24],\"tp\":8}]");
    double block = 12.0 * 2560 * 2560 * 2, head = 2560.0 * 51200 * 2;
    assert_true(mixed.memory[0].weights_bytes > cut.memory[0].weights_bytes);
    assert_true(mixed.memory[0].weights_bytes < whole.memory[0].weights_bytes);
    assert_near(whole.memory[0].weights_bytes - mixed.memory[0].weights_bytes,
                (12 * block + head) * 7 / 8, 2e-3);
    assert_true(mixed.metrics.exact && mixed.n_approximated == 0);
    hv_arena_free(&a);
}

/** Seconds of gradients after the last backward pass of a stage of tp 8 with one part of dp 2. */
static double reduced_after_s(struct world *w, int layers)
{
    struct hv_arena a = {0};
    char text[512];
    (void)snprintf(text, sizeof text,
                   "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":"
                   "\"a[0].*\",\"layers\":[0,24],\"tp\":8,\"degrees\":[{\"layers\":[0,%d],\"tp\":4,"
                   "\"dp\":2}]}]}],\"sync\":{\"overlap\":false}",
                   layers);
    double s = judge(w, &a, false, text).metrics.breakdown_s[HV_TIME_DP];
    hv_arena_free(&a);
    return s;
}

/** Gradients of each part are summed over its own ranks: a part without copies sends nothing, three
 * times as many blocks send three times as much, beside the embedding. */
static void parts_reduce_over_their_own_ranks(void **state)
{
    struct hv_arena a = {0};
    double six_s = reduced_after_s(*state, 6), twelve_s = reduced_after_s(*state, 12);
    assert_true(judge_stage(*state, &a, ",\"tp\":8").metrics.breakdown_s[HV_TIME_DP] == 0);
    assert_true(six_s > 0 && twelve_s > six_s);
    assert_near(reduced_after_s(*state, 18) - twelve_s, twelve_s - six_s, 0.05);
    hv_arena_free(&a);
}

/** What cannot be judged is refused by name. */
static void wrong_degrees_are_findings(void **state)
{
    static const struct {
        const char *more, *text;
    } rows[] = {
        {",\"tp\":8,\"degrees\":[{\"layers\":[0,12],\"tp\":4}]", "the stage has 8 devices"},
        {",\"tp\":8,\"degrees\":[{\"layers\":[30,32],\"dp\":8}]", "of which the stage has none"},
        {",\"dp\":8,\"shares\":[1,1,1,1,1,1,1,1],\"degrees\":[{\"layers\":[0,12],\"tp\":8}]",
         "shares of unequal size"},
        {",\"tp\":8,\"degrees\":[{\"layers\":[0,12],\"dp\":8,\"zero\":{\"stage\":1,"
         "\"shard_group\":3}}]",
         "not divisible by shard_group 3"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_arena a = {0};
        struct hv_verdict v = judge_stage(*state, &a, rows[i].more);
        bool found = false;
        for (size_t k = 0; k < v.findings.n; k++) {
            found = found || strstr(v.findings.items[k].text, rows[i].text) != NULL;
        }
        if (!found) {
            fail_msg("%s: %s", rows[i].text, v.findings.n > 0 ? v.findings.items[0].text : "none");
        }
        hv_arena_free(&a);
    }
}

/** Each half of a stage gathers its weights at the end or beside the next forward pass, where they
 * show alike before the first pass: a half that moves takes its gather from the end of the
 * iteration to its start, two equal halves as much as each other. Neighbours with equal degrees are
 * one part, gathered at once: both together cost less than twice one, by what a collective costs
 * besides its bytes. */
static void halves_gather_at_times_of_their_own(void **state)
{
    struct hv_arena a = {0};
    double pipeline_s[4], iteration_s[4];
    for (int k = 0; k < 4; k++) {
        char more[512];
        (void)snprintf(more, sizeof more,
                       ",\"tp\":8,\"degrees\":[{\"layers\":[1,12],\"tp\":4,\"dp\":2,\"zero\":{"
                       "\"stage\":1,\"gather_at\":\"%s\"}},{\"layers\":[12,23],\"tp\":4,\"dp\":2,"
                       "\"zero\":{\"stage\":1,\"gather_at\":\"%s\"}}]",
                       k & 1 ? "next_forward" : "end", k & 2 ? "next_forward" : "end");
        struct hv_verdict v = judge_stage(*state, &a, more);
        assert_int_equal(v.findings.n, 0);
        pipeline_s[k] = v.metrics.pipeline_s;
        iteration_s[k] = v.metrics.iteration_s;
    }
    double half_s = pipeline_s[1] - pipeline_s[0], both_s = pipeline_s[3] - pipeline_s[0];
    assert_true(half_s > 0);
    assert_near(pipeline_s[2] - pipeline_s[0], half_s, 1e-9);
    assert_true(both_s > 1.5 * half_s && both_s < 2 * half_s);
    for (int k = 1; k < 4; k++) { /* what moves shows at either end */
        assert_true(fabs(iteration_s[k] - iteration_s[0]) < 0.25 * half_s);
    }
    hv_arena_free(&a);
}

/** A schedule of two directions runs blocks of other stages on a rank. */
static void two_directions_are_refused(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v =
        judge(*state, &a, false,
              "\"micro_batch\":8,\"schedule\":{\"name\":\"chimera\"},\"replicas\":[{"
              "\"micro_batches\":8,\"stages\":[{\"devices\":\"a[0].*\",\"layers\":[0,12],\"tp\":8,"
              "\"degrees\":[{\"layers\":[0,6],\"tp\":4,\"dp\":2}]},{\"devices\":\"a[1].*\","
              "\"layers\":[12,24],\"tp\":8}]}]");
    assert_true(v.findings.n > 0);
    assert_non_null(strstr(v.findings.items[0].text, "one direction"));
    hv_arena_free(&a);
}

/** A list of recomputations counts the blocks of all chunks: the same blocks recomputed in the
 * first or in the second chunk take the same time. */
static void recomputation_of_chunks(void **state)
{
    struct hv_arena a = {0};
    double recompute_s[2];
    for (int k = 0; k < 2; k++) {
        char text[1024];
        const char *list =
            k == 0 ? "\"full\",\"full\",\"none\",\"none\"" : "\"none\",\"none\",\"full\",\"full\"";
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":1,\"schedule\":{\"name\":\"interleaved\"},\"replicas\":[{"
                       "\"micro_batches\":64,\"stages\":[{\"devices\":\"a[0].0\",\"layers\":[[0,2],"
                       "[12,14]],\"recompute\":[%s]},{\"devices\":\"a[0].1\",\"layers\":[[2,12],"
                       "[14,24]]}]}]",
                       list);
        struct hv_verdict v = judge(*state, &a, false, text);
        recompute_s[k] = v.metrics.breakdown_s[HV_TIME_RECOMPUTE];
    }
    assert_true(recompute_s[0] > 0);
    assert_near(recompute_s[1], recompute_s[0], 1e-9);
    hv_arena_free(&a);
}

/** Parts, their common unit, and the recomputation of their blocks. */
static void parts_of_a_stage(void **state)
{
    (void)state;
    unsigned recompute[] = {0, 1, 2, 3, 4, 5};
    struct hv_range ranges[] = {{4, 8}, {20, 28}};
    struct hv_degrees degrees[] = {
        {.from = 3, .to = 11, .tp = {.degree = 4, .depth = 1}, .cp = {.degree = 1}, .dp = 2},
        {.from = 12, .to = 13, .tp = {.degree = 2, .depth = 1}, .cp = {.degree = 3}, .dp = 1}};
    struct hv_stage s = {.ranges = ranges,
                         .embedding = -1,
                         .head = -1,
                         .n_ranges = HV_COUNT(ranges),
                         .tp = {.degree = 8, .depth = 1},
                         .cp = {.degree = 1},
                         .dp = 1,
                         .degrees = degrees,
                         .n_degrees = HV_COUNT(degrees),
                         .recompute_per = recompute,
                         .n_recompute_per = HV_COUNT(recompute)};
    assert_int_equal(hv_stage_width(&s), 2);
    assert_int_equal(hv_stage_part_end(&s, 4, 8), 6);
    assert_int_equal(hv_stage_part_end(&s, 6, 8), 8);
    assert_int_equal(hv_stage_part_end(&s, 20, 28), 22);
    assert_int_equal(hv_stage_part_end(&s, 22, 28), 24);
    assert_int_equal(hv_stage_part_end(&s, 24, 28), 26);
    assert_int_equal(hv_stage_part_end(&s, 26, 28), 28);
    struct hv_replica r = {.count = 1, .stages = &s, .n_stages = 1};
    struct hv_part_walk w = {.replica = &r};
    static const struct hv_range want[] = {{4, 6}, {6, 8}, {20, 22}, {22, 24}, {24, 26}, {26, 28}};
    for (size_t i = 0; i < HV_COUNT(want); i++) {
        assert_true(hv_stage_next_part(&w));
        assert_true(w.range.from2 == want[i].from2 && w.range.to2 == want[i].to2);
        assert_true(w.part.ranges == &w.range && w.part.n_degrees == 0);
        assert_true(w.part.embedding == (i == 0) && w.part.head == (i + 1 == HV_COUNT(want)));
    }
    assert_false(hv_stage_next_part(&w));
    struct hv_range part = {24, 26};
    struct hv_stage p = hv_stage_part(&s, &part);
    assert_true(p.tp.degree == 2 && p.cp.degree == 3 && p.n_degrees == 0);
    assert_int_equal(p.recompute_per[0], 4);
    assert_int_equal(p.n_recompute_per, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_degrees_change_nothing),
        cmocka_unit_test(a_pass_is_the_sum_of_its_parts),
        cmocka_unit_test(token_shards_are_exchanged_both_ways),
        cmocka_unit_test(memory_is_that_of_both_parts),
        cmocka_unit_test(parts_reduce_over_their_own_ranks),
        cmocka_unit_test(wrong_degrees_are_findings),
        cmocka_unit_test(halves_gather_at_times_of_their_own),
        cmocka_unit_test(two_directions_are_refused),
        cmocka_unit_test(recomputation_of_chunks),
        cmocka_unit_test(parts_of_a_stage),
    };
    return cmocka_run_group_tests_name("eval_degrees", tests, setup, teardown);
}
