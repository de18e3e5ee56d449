/** Requests in a queue: closed forms by hand, and the simulation against them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/units.h"
#include "solver/sim/events/requests.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

static struct hv_request_figures run(struct hv_arena *a, double per_s, size_t slots,
                                     const struct hv_request_class *classes, size_t n)
{
    const struct hv_requests q = {
        .per_s = per_s, .slots = slots, .classes = classes, .n_classes = n, .seed = 1};
    struct hv_request_figures f;
    hv_requests_run(&q, a, &f);
    return f;
}

static void formulas_by_hand(void **state)
{
    (void)state;
    /* one slot, exponential: load / (1 - load) · mean = 4 at 0.8 */
    assert_near(hv_requests_wait_s(0.8, 1, 1, 1), 4, 1e-12);
    /* one slot, always 1 s (Pollaczek and Khinchine): half of that */
    assert_near(hv_requests_wait_s(0.8, 1, 1, 0), 2, 1e-12);
    /* two slots, 1.5 Erlang: B = 1.125 / 3.625, C = B / (1 - 0.75 (1 - B)) = 9 / 14 */
    assert_near(hv_requests_wait_s(1.5, 2, 1, 1), 9.0 / 14 / 0.5, 1e-12);
    assert_true(!hv_known(hv_requests_wait_s(2, 2, 1, 1)));
}

static void simulated_as_the_formula_says(void **state)
{
    struct hv_arena a = {0};
    const struct hv_request_class same = {1, 0.25, 1, 1};
    const struct hv_request_class two[] = {{0.75, 0.1, 0.5, 1}, {0.25, 0.5, 2.5, 1}};
    (void)state;
    struct hv_request_figures f = run(&a, 0.6, 1, &same, 1); /* exact: 0.6 / 0.8 */
    assert_near(f.formula_wait_s, 0.75, 1e-12);
    assert_near(f.mean_wait_s, 0.75, 0.05);
    assert_near(f.load_frac, 0.6, 1e-12);
    f = run(&a, 0.5, 1, two, 2); /* exact: 0.5 E[S²] / 2 / 0.5 = 0.875 */
    assert_near(f.formula_wait_s, 0.5 * (0.75 * 0.25 + 0.25 * 6.25) / 2 / 0.5, 1e-12);
    assert_near(f.mean_wait_s, f.formula_wait_s, 0.1);
    f = run(&a, 7, 10, two, 2); /* many slots: an approximation */
    assert_near(f.mean_wait_s, f.formula_wait_s, 0.35);
    hv_arena_free(&a);
}

static void quantiles_and_order(void **state)
{
    struct hv_arena a = {0};
    const struct hv_request_class same = {1, 0.25, 1, 1};
    (void)state;
    struct hv_request_figures idle = run(&a, 0.001, 4, &same, 1);
    assert_near(idle.first_p50_s, 0.25, 1e-9);
    assert_near(idle.whole_p99_s, 1, 1e-9);
    double before = 0;
    for (int load = 1; load <= 9; load++) {
        struct hv_request_figures f = run(&a, 0.4 * load, 4, &same, 1);
        assert_true(f.first_p99_s >= before && f.whole_p50_s >= 1);
        assert_true(f.first_p99_s >= f.first_p50_s && f.whole_p99_s >= f.whole_p50_s);
        assert_near(f.whole_p99_s - f.first_p99_s, 0.75, 1e-9); /* of one size */
        before = f.first_p99_s;
    }
    struct hv_request_figures again = run(&a, 3.6, 4, &same, 1), once = run(&a, 3.6, 4, &same, 1);
    assert_true(again.mean_wait_s == once.mean_wait_s && again.whole_p99_s == once.whole_p99_s);
    struct hv_request_figures over = run(&a, 4, 4, &same, 1);
    assert_true(over.n == 0 && !hv_known(over.mean_wait_s) && over.load_frac == 1);
    hv_arena_free(&a);
}

/** One place for one request is a slot; so are two places for one each, whichever is asked first,
 * and a place for two that is filled to half of it. */
static void full_places_are_waited_for(void **state)
{
    struct hv_arena a = {0};
    const struct hv_request_class same = {1, 0.25, 1, 1};
    static const double one_room[] = {1, 1}, two_room[] = {2, 2};
    static const struct hv_request_link row[] = {{-1, 0, 1}, {0, 1, 1}, {1, -1, 1}};
    static const struct hv_request_link fork[] = {{-1, 0, 3}, {-1, 1, 1}, {0, -1, 3}, {1, -1, 1}};
    const struct hv_request_places places[] = {
        {one_room, 2, row, 3, 1}, {two_room, 2, row, 3, 0.5}, {one_room, 2, fork, 4, 1}};
    static const size_t like_slots[] = {1, 1, 2};
    (void)state;
    for (int k = 0; k < 3; k++) {
        double rate = 0.6 * (double)like_slots[k];
        struct hv_requests q = {
            .per_s = rate, .slots = 10, .classes = &same, .n_classes = 1, .places = &places[k]};
        q.seed = 1;
        struct hv_request_figures f, want = run(&a, rate, like_slots[k], &same, 1);
        hv_requests_run(&q, &a, &f);
        assert_true(want.mean_wait_s > 0.1 && want.room_wait_s == 0 && want.no_room_frac == 0);
        assert_near(f.mean_wait_s, want.mean_wait_s, 1e-12);
        assert_near(f.room_wait_s, want.mean_wait_s, 0.01); /* ten slots are hardly ever taken */
        assert_near(f.whole_p99_s, want.whole_p99_s, 1e-12);
        assert_true(f.no_room_frac > 0.3 && f.no_room_frac < 0.7);
    }
    hv_arena_free(&a);
}

/** Without a limit the ways are taken by their weights; too large a request goes in alone; a place
 * that no way leaves is an end. */
static void ways_by_weight(void **state)
{
    struct hv_arena a = {0};
    const struct hv_request_class large = {1, 0.25, 1, 5};
    static const double room[] = {1, HUGE_VAL};
    static const struct hv_request_link fork[] = {{-1, 0, 3}, {-1, 1, 1}};
    const struct hv_request_places p = {room, 2, fork, 2, 1};
    struct hv_requests q = {
        .per_s = 0.5, .slots = 4, .classes = &large, .n_classes = 1, .places = &p, .seed = 1};
    struct hv_request_figures f, want = run(&a, 0.5, 4, &large, 1);
    (void)state;
    hv_requests_run(&q, &a, &f);
    assert_near(1 + f.mean_wait_s, 1 + want.mean_wait_s, 1e-12); /* the other way is always open */
    assert_true(f.no_room_frac == 0);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_by_hand),    cmocka_unit_test(simulated_as_the_formula_says),
        cmocka_unit_test(quantiles_and_order), cmocka_unit_test(full_places_are_waited_for),
        cmocka_unit_test(ways_by_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
