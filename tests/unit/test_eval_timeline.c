/** Timelines: what goes over links between ranks, and dp ranks that wait for slower ones. */
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

#define TWO_WAYS                                                                                   \
    "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":64,\"stages\":["                           \
    "{\"devices\":\"a[0].0-3\",\"layers\":[0,12],\"tp\":4},"                                       \
    "{\"devices\":\"a[1].0-3\",\"layers\":[12,24],\"tp\":4}]}],\"schedule\":{\"name\":"            \
    "\"chimera\"}"

/** The span of an operation on a row's compute lane, NULL when there is none. */
static const struct hv_span *find_op(const struct hv_timeline *t, size_t row, int32_t micro_batch,
                                     bool backward)
{
    const struct hv_lane *l = &t->lanes.items[t->rows[row].compute_lane];
    for (size_t i = 0; i < l->n_spans; i++) {
        const struct hv_timeline_op *op = &t->ops[l->spans[i].id];
        bool is_backward = op->kind == HV_SPAN_B || op->kind == HV_SPAN_BW;
        if (op->micro_batch == micro_batch &&
            (backward ? is_backward : op->kind == (uint8_t)HV_SPAN_F)) {
            return &l->spans[i];
        }
    }
    return NULL;
}

/** Every hop begins when its sender is done and is through when its receiver begins. Returns how
 * many there are. */
static size_t check_hops(const struct hv_timeline *t)
{
    size_t n = 0;
    double eps = 1e-9 * t->end_s;
    for (size_t k = 0; k < t->n_links; k++) {
        const struct hv_timeline_link *link = &t->links[k];
        const struct hv_lane *l = &t->lanes.items[link->lane];
        for (size_t i = 0; i < l->n_spans; i++, n++) {
            const struct hv_timeline_op *op = &t->ops[l->spans[i].id];
            assert_int_equal(op->kind, HV_SPAN_HOP);
            const struct hv_timeline_hop *hop = &t->hops[op->paired];
            assert_true(&t->links[hop->i_link] == link);
            assert_true(hop->bytes > 0 && hop->seconds > 0);
            const struct hv_span *from = find_op(t, link->from_row, op->micro_batch, hop->backward);
            const struct hv_span *to = find_op(t, link->to_row, op->micro_batch, hop->backward);
            assert_non_null(from);
            assert_non_null(to);
            assert_true(fabs(from->end_s - (l->spans[i].end_s - hop->seconds)) <= eps);
            assert_true(to->start_s >= l->spans[i].end_s - eps);
            assert_true(fabs(op->slack_s - (to->start_s - l->spans[i].end_s) -
                             t->ops[to->id].slack_s) <= 1e-6);
        }
    }
    return n;
}

static const char four[] =
    "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":64,\"stages\":["
    "{\"devices\":\"a[0].*\",\"layers\":[0,6],\"tp\":8},"
    "{\"devices\":\"a[1].*\",\"layers\":[6,12],\"tp\":8},"
    "{\"devices\":\"a[2].*\",\"layers\":[12,18],\"tp\":8},"
    "{\"devices\":\"a[3].*\",\"layers\":[18,24],\"tp\":8}]}],\"schedule\":{\"name\":\"1f1b\"}";

static void hops_lie_between_their_ends(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, four);
    assert_int_equal(v.timeline->n_links, 6);
    assert_int_equal(check_hops(v.timeline), 2 * 3 * 64);
    hv_arena_free(&a);
}

/* Both directions send both ways over one pair of links. */
static void two_way_schedules_share_links(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, TWO_WAYS);
    assert_int_equal(v.timeline->n_links, 2);
    assert_int_equal(check_hops(v.timeline), 2 * 64);
    hv_arena_free(&a);
}

static void one_stage_sends_nothing(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true,
                                "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":["
                                "{\"devices\":\"a[0].*\",\"layers\":[0,24],\"dp\":8}]}]");
    assert_int_equal(v.timeline->n_links, 0);
    assert_int_equal(v.timeline->rows[0].n_parts, 0); /* all alike */
    hv_arena_free(&a);
}

static const char unequal[] =
    "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":16,\"stages\":["
    "{\"devices\":[\"a[0].0-3\",\"v[0].0-3\",\"v[1].0-3\"],\"layers\":[0,12],\"tp\":4,\"dp\":3,"
    "\"shares\":[2,1,1]},"
    "{\"devices\":\"a[0].4-7\",\"layers\":[12,24],\"tp\":4}]}],\"schedule\":{\"name\":\"1f1b\"}";

/* The slowest dp rank takes as long as the row, every other less, and the row shows the fullest. */
static void parts_of_a_stage_wait_for_the_slowest(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, unequal);
    const struct hv_timeline *t = v.timeline;
    const struct hv_timeline_row *row = &t->rows[0];
    assert_int_equal(row->n_parts, 2);
    assert_int_equal(row->parts[0].n_alike, 1);
    assert_int_equal(row->parts[1].n_alike, 2);
    assert_string_equal(row->parts[1].name, "  v[0].0-3 x2");
    const struct hv_lane *l = &t->lanes.items[row->compute_lane];
    size_t waits = 0;
    for (size_t i = 0; i < l->n_spans; i++) {
        double last = 0;
        for (size_t k = 0; k < row->n_parts; k++) {
            double end = hv_timeline_part_end_s(t, &row->parts[k], &l->spans[i]);
            assert_true(end > l->spans[i].start_s && end <= l->spans[i].end_s);
            waits += end < l->spans[i].end_s;
            last = fmax(last, end);
        }
        assert_true(last == l->spans[i].end_s);
    }
    assert_int_equal(waits, 2 * 16); /* every forward and backward, on the faster of the two */
    assert_true(fabs(hv_steps_max(&row->memory, 0, t->end_s) / v.memory[0].peak_bytes - 1) < 1e-9);
    assert_true(fabs(row->memory_limit_bytes - v.memory[0].limit_bytes) < 1);
    assert_int_equal(t->tracks[0].n, 2);
    assert_int_equal(t->tracks[HV_TRACKS_PARTS].n, 4);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hops_lie_between_their_ends),
                                       cmocka_unit_test(two_way_schedules_share_links),
                                       cmocka_unit_test(one_stage_sends_nothing),
                                       cmocka_unit_test(parts_of_a_stage_wait_for_the_slowest)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
