/** Requests in a queue: closed forms by hand, and the simulation against them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/units.h"
#include "solver/sim/requests.h"

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
    const struct hv_request_class same = {1, 0.25, 1};
    const struct hv_request_class two[] = {{0.75, 0.1, 0.5}, {0.25, 0.5, 2.5}};
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
    const struct hv_request_class same = {1, 0.25, 1};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_by_hand),
        cmocka_unit_test(simulated_as_the_formula_says),
        cmocka_unit_test(quantiles_and_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
