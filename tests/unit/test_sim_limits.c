/* Orders of every schedule within limits on the micro-batches that ranks hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim_fixture.h"

/* schedules without a limit of their own on each rank that could not be kept: a loss over a group
 * (distmm), searches that need a certain memory, orders written out, chunks of hanayo and zb-v */
static bool takes_any_limit(const struct hv_schedule_row *row)
{
    static const char *const refusing[] = {"distmm", "v-adaptive", "explicit"};
    for (size_t i = 0; i < HV_COUNT(refusing); i++) {
        if (strcmp(row->name, refusing[i]) == 0) {
            return false;
        }
    }
    return true;
}

/* a schedule with limits: the same for every rank, or those given. Returns its status */
static enum hv_status make_limited(struct fixture *x, const struct hv_schedule_row *row, int32_t p,
                                   int32_t m, const double *limits)
{
    struct hv_schedule_input in;
    struct hv_err err = {0};
    *x = (struct fixture){0};
    hv_schedule_input_init(&in, row, p, m);
    in.limits = limits;
    enum hv_status st = hv_schedule_make(&x->a, &in, &x->s, &err);
    if (st == HV_OK && hv_pipe_compile(&x->a, &x->s, &x->g, &err) != HV_OK) {
        fail_msg("%s, p = %d, m = %d: %s", row->name, p, m, err.text);
    }
    return st;
}

static bool same_order(const struct hv_schedule *a, const struct hv_schedule *b)
{
    size_t n = hv_schedule_n_ops(a);
    return n == hv_schedule_n_ops(b) && a->n_groups == b->n_groups &&
           memcmp(a->ops, b->ops, n * sizeof *a->ops) == 0;
}

/* most chunk activations of a rank, in halves where W gives back one of two */
static int peak(const struct hv_schedule *s, int32_t r)
{
    int now = 0, most = 0;
    for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1]; i++) {
        const struct hv_op *op = &s->ops[i];
        bool part = s->parts && op->slice > 0;
        now += op->kind == HV_OP_F ? !part : -(op->kind == HV_OP_BW || op->kind == HV_OP_W);
        most = now > most ? now : most;
    }
    return most;
}

/* limits at or above what the schedule keeps change nothing, whatever it is */
static void wide_limits_change_nothing(void **state)
{
    (void)state;
    size_t n_rows;
    const struct hv_schedule_row *rows = hv_schedules(&n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        struct fixture x, y;
        double wide[4];
        if (!takes_any_limit(&rows[i])) {
            continue;
        }
        assert_int_equal(make_limited(&x, &rows[i], 4, 12, NULL), HV_OK);
        for (int32_t r = 0; r < 4; r++) {
            int32_t unit = x.s.n_stages / 4 * (x.s.parts ? 1 : x.s.n_slices);
            wide[r] = ceil((double)peak(&x.s, r) / unit);
        }
        if (x.s.stash == NULL) {
            assert_int_equal(make_limited(&y, &rows[i], 4, 12, wide), HV_OK);
            assert_true(same_order(&x.s, &y.s));
            assert_false(y.s.held_back);
            hv_arena_free(&y.a);
        }
        hv_arena_free(&x.a);
    }
}

/* any limits that leave every rank room for one micro-batch are kept, without deadlock */
static void any_limits_are_kept(void **state)
{
    (void)state;
    size_t n_rows, n_held_back = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n_rows);
    struct hv_rng rng;
    hv_rng_seed(&rng, 7);
    for (size_t k = 0; k < 40 * n_rows; k++) {
        const struct hv_schedule_row *row = &rows[k % n_rows];
        struct fixture x;
        double limits[6];
        int32_t p = 2 + 2 * (int32_t)hv_rng_below(&rng, 2), m = 12;
        for (int32_t r = 0; r < p; r++) {
            limits[r] = 1 + (double)hv_rng_below(&rng, 5);
        }
        if (!takes_any_limit(row)) {
            continue;
        }
        assert_int_equal(make_limited(&x, row, p, m, limits), HV_OK);
        for (int32_t r = 0; r < p && x.s.stash == NULL; r++) {
            int32_t unit = x.s.n_stages / p * (x.s.parts ? 1 : x.s.n_slices);
            bool halves =
                (row->flags & HV_SCHEDULE_SPLIT) != 0 && (row->flags & HV_SCHEDULE_BY_COST) != 0;
            assert_true(halves || peak(&x.s, r) <= limits[r] * unit);
        }
        n_held_back += x.s.held_back;
        hv_arena_free(&x.a);
    }
    assert_true(n_held_back > 100);
}

/* One micro-batch at a time: every one runs alone through all stages and back, and where weight
 * gradients are apart the first rank's comes before its next forward. */
static void one_at_a_time(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double each; /* F = B = W = 1 on four ranks, per chunk */
    } rows[] = {
        {"zb-h1", 4 + 4 + 1},      {"zb-h2", 4 + 4 + 1},      {"gpipe", 4 + 8},
        {"1f1b", 4 + 8},           {"varuna", 3 + 3 + 8 + 1}, {"interleaved", 8 + 16},
        {"breadth-first", 8 + 16}, {"hanayo", 8 + 16},        {"graphpipe", 4 + 8},
        {"dapple", 4 + 8},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        const struct hv_schedule_row *row;
        struct fixture x;
        double one[4] = {1, 1, 1, 1};
        assert_int_equal(hv_schedule_find(rows[i].name, &row, NULL), HV_OK);
        assert_int_equal(make_limited(&x, row, 4, 8, one), HV_OK);
        price(&x, 1, 1, 1, 0);
        if (strcmp(rows[i].name, "varuna") == 0) {
            /* recompute waits for nothing: it runs while the stages behind are busy */
            assert_true(x.run.makespan_s <= 8 * rows[i].each);
            assert_true(x.run.makespan_s >= 8 * 12.0);
        } else if (!is_near(x.run.makespan_s, 8 * rows[i].each)) {
            fail_msg("%s: %g", rows[i].name, x.run.makespan_s);
        }
        hv_arena_free(&x.a);
    }
}

/* GPipe in rounds: (F + B) of the round through all ranks, one round after the other */
static void rounds_of_gpipe(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= 8; n *= 2) {
        const struct hv_schedule_row *row;
        struct fixture x;
        double limits[4] = {8, n, 8, 8};
        assert_int_equal(hv_schedule_find("gpipe", &row, NULL), HV_OK);
        assert_int_equal(make_limited(&x, row, 4, 8, limits), HV_OK);
        price(&x, 1, 1, 1, 0);
        NEAR(x.run.makespan_s, 8.0 / n * 3 * (n + 3));
        hv_arena_free(&x.a);
    }
}

/* a pair of which one half has no room is taken apart; the other half runs */
static void pairs_are_taken_apart(void **state)
{
    (void)state;
    const struct hv_schedule_row *row;
    struct fixture x, y;
    double limits[4] = {2, 2, 2, 2};
    assert_int_equal(hv_schedule_find("dualpipe", &row, NULL), HV_OK);
    assert_int_equal(make_limited(&x, row, 4, 8, NULL), HV_OK);
    assert_int_equal(make_limited(&y, row, 4, 8, limits), HV_OK);
    assert_true(y.s.n_groups < x.s.n_groups);
    assert_true(y.s.held_back);
    hv_arena_free(&x.a);
    hv_arena_free(&y.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_limits_change_nothing),
        cmocka_unit_test(any_limits_are_kept),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(rounds_of_gpipe),
        cmocka_unit_test(pairs_are_taken_apart),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
