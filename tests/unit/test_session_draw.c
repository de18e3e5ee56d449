/* Timelines made by a thread: the same as without one, told of meanwhile, ended when asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/session_bench.h"

/* Waits until no thread is at work; the session says so through its descriptors. */
static void settle(struct hv_session *s, uint32_t id)
{
    struct pollfd rows[8];
    while (hv_session_drawing(s, id, NULL) == HV_DRAWING_RUNS) {
        size_t n = hv_session_fds(s, rows, 8);
        assert_true(n > 0);
        assert_true(hv_session_timeout_ms(s) >= 0);
        assert_true(poll(rows, (nfds_t)n, 60000) > 0);
        (void)hv_session_tick(s);
        (void)hv_session_verdict(s, id, true, NULL); /* as a screen that is drawn again */
    }
}

static const struct hv_timeline *timeline(struct hv_session *s, uint32_t id)
{
    const struct hv_verdict *v = hv_session_verdict(s, id, true, NULL);
    return v != NULL ? v->timeline : NULL;
}

static void old_timelines_go_by_their_size(void **state)
{
    struct bench *b = *state;
    b->env.apart_from = 1;
    for (size_t few = 0; few < 2; few++) {
        b->env.timeline_bytes = few; /* else there is room for all */
        struct hv_session *s = bench_open(b, "ws");
        const uint32_t ids[] = {bench_add_plan(s, "p"), bench_add_plan(s, "q"),
                                bench_add_plan(s, "r")};
        for (size_t i = 0; i < HV_COUNT(ids); i++) {
            assert_null(timeline(s, ids[i]));
            settle(s, ids[i]);
            assert_non_null(timeline(s, ids[i]));
        }
        assert_non_null(timeline(s, ids[1])); /* the last two stay in any case */
        assert_non_null(timeline(s, ids[2]));
        assert_true((timeline(s, ids[0]) == NULL) == (few == 1));
        hv_session_close(s);
    }
    b->env.timeline_bytes = 0;
}

static void a_thread_makes_the_same(void **state)
{
    struct bench *b = *state;
    struct hv_session *here = bench_open(b, "ws");
    b->env.apart_from = 1;
    struct hv_session *apart = bench_open(b, "ws");
    uint32_t i = bench_add_plan(here, "p"), k = bench_add_plan(apart, "p");
    struct hv_err err = {0};
    const struct hv_timeline *want = timeline(here, i);
    assert_non_null(want);
    assert_null(hv_session_verdict(apart, k, true, &err));
    assert_int_equal(err.status, HV_ESTOPPED);
    assert_int_equal(hv_session_drawing(apart, k, NULL), HV_DRAWING_RUNS);
    settle(apart, k);
    const struct hv_timeline *got = timeline(apart, k);
    assert_non_null(got);
    assert_int_equal(hv_session_drawing(apart, k, NULL), HV_DRAWING_NONE);
    assert_int_equal(got->n_ops, want->n_ops);
    for (size_t o = 0; o < want->n_ops; o++) {
        const struct hv_timeline_op *x = &got->ops[o], *y = &want->ops[o];
        assert_true(x->stage == y->stage && x->micro_batch == y->micro_batch &&
                    x->kind == y->kind && x->critical == y->critical && x->slack_s == y->slack_s);
    }
    assert_true(got->end_s == want->end_s);
    assert_int_equal(got->n_rows, want->n_rows);
    for (size_t r = 0; r < want->n_rows; r++) {
        assert_string_equal(got->rows[r].name, want->rows[r].name);
    }
    hv_session_close(here);
    hv_session_close(apart);
}

static void short_ones_need_no_thread(void **state)
{
    struct bench *b = *state;
    b->env.apart_from = 1000000;
    struct hv_session *s = bench_open(b, "ws");
    assert_non_null(timeline(s, bench_add_plan(s, "p")));
    hv_session_close(s);
}

static void stopped_it_waits_to_be_asked(void **state)
{
    struct bench *b = *state;
    b->env.apart_from = 1;
    struct hv_session *s = bench_open(b, "ws");
    uint32_t id = bench_add_plan(s, "p");
    assert_false(hv_session_draw_stop(s, id + 1));
    assert_null(timeline(s, id));
    assert_true(hv_session_draw_stop(s, id));
    assert_false(hv_session_draw_stop(s, id));
    assert_null(timeline(s, id));
    assert_int_equal(hv_session_drawing(s, id, NULL), HV_DRAWING_STOPPED);
    hv_session_draw_again(s, id);
    assert_null(timeline(s, id));
    settle(s, id);
    assert_non_null(timeline(s, id));
    hv_session_close(s);
}

/* What an edit makes void is not shown; the one after it is made of the new documents. */
static void an_edit_begins_anew(void **state)
{
    struct bench *b = *state;
    b->env.apart_from = 1;
    struct hv_session *s = bench_open(b, "ws");
    uint32_t id = bench_add_plan(s, "p");
    assert_null(timeline(s, id));
    settle(s, id);
    double before = timeline(s, id)->end_s;
    assert_int_equal(hv_session_set_text(s, "model.hidden", "2048", NULL), HV_OK);
    assert_null(timeline(s, id));
    assert_int_equal(hv_session_set_text(s, "model.hidden", "4096", NULL), HV_OK);
    assert_null(timeline(s, id)); /* the thread for 2048 is told to end */
    settle(s, id);
    double after = timeline(s, id)->end_s;
    assert_true(after > 2 * before);
    hv_session_close(s);
}

static void rows_wait_for_one_thread(void **state)
{
    struct bench *b = *state;
    b->env.apart_from = 1;
    struct hv_session *s = bench_open(b, "ws");
    uint32_t p = bench_add_plan(s, "p"), q = bench_add_plan(s, "q");
    assert_null(timeline(s, p));
    assert_null(timeline(s, q));
    assert_int_equal(hv_session_drawing(s, q, NULL), HV_DRAWING_RUNS);
    assert_true(hv_session_row_delete(s, p)); /* what was made for it is thrown away */
    settle(s, q);
    assert_non_null(timeline(s, q));
    hv_session_close(s);
}

static void closing_ends_the_thread(void **state)
{
    struct bench *b = *state;
    b->env.apart_from = 1;
    struct hv_session *s = bench_open(b, "ws");
    assert_null(timeline(s, bench_add_plan(s, "p")));
    hv_session_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
        TEST(old_timelines_go_by_their_size),
        TEST(a_thread_makes_the_same),
        TEST(short_ones_need_no_thread),
        TEST(stopped_it_waits_to_be_asked),
        TEST(an_edit_begins_anew),
        TEST(rows_wait_for_one_thread),
        TEST(closing_ends_the_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
