/* The least-squares fitter against optima known in closed form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solver/optim/choice/fit.h"

enum { MOST = 16 };

/* A line through points: r_i = a + b·t_i − y_i. */
struct line {
    const double *t, *y;
    size_t n;
    int fail_at; /* call that fails, or 0 */
    int calls;
};

static enum hv_status line_residuals(void *ctx, const double *x, double *r, struct hv_err *err)
{
    struct line *l = ctx;
    if (++l->calls == l->fail_at) {
        return hv_err_set(err, HV_ESTOPPED, "enough");
    }
    for (size_t i = 0; i < l->n; i++) {
        r[i] = x[0] + x[1] * l->t[i] - l->y[i];
    }
    return HV_OK;
}

struct arrays {
    double x[MOST], r[MOST], j[MOST * MOST];
};

static struct hv_fit_result result_in(struct arrays *a)
{
    *a = (struct arrays){0};
    return (struct hv_fit_result){.x = a->x, .residuals = a->r, .jacobian = a->j};
}

static const double times[] = {0, 1, 2, 3, 4}, zeros[] = {0, 0}, low[] = {-100, -100},
                    high[] = {100, 100};

static struct hv_fit line_fit(struct line *l)
{
    return (struct hv_fit){.n_params = 2,
                           .n_residuals = l->n,
                           .start = zeros,
                           .least = low,
                           .most = high,
                           .max_jacobians = 10,
                           .max_steps = 200,
                           .residuals = line_residuals,
                           .ctx = l};
}

static void squares_of_a_line(void **state)
{
    (void)state;
    /* least squares of y = {1, 3, 2, 5, 4}: slope Σ(t−2)(y−3)/10 = 0.8, intercept 3 − 1.6 */
    const double y[] = {1, 3, 2, 5, 4};
    struct line l = {times, y, 5, 0, 0};
    struct hv_fit f = line_fit(&l);
    struct arrays a;
    struct hv_fit_result out = result_in(&a);
    assert_int_equal(hv_fit_solve(&f, &out, NULL), HV_OK);
    assert_float_equal(a.x[1], 0.8, 1e-6);
    assert_float_equal(a.x[0], 1.4, 1e-6);
    assert_float_equal(out.objective, 1.8, 1e-9); /* half of Σr² = 10 − 6.4 */
    assert_true(out.objective_at_start > out.objective);
    assert_int_equal(out.n_calls, l.calls);
}

static void bounds_hold(void **state)
{
    (void)state;
    /* with the slope held at 0.5 or less the best intercept is 3 − 2·0.5 */
    const double y[] = {1, 3, 2, 5, 4}, most[] = {100, 0.5};
    struct line l = {times, y, 5, 0, 0};
    struct hv_fit f = line_fit(&l);
    struct arrays a;
    struct hv_fit_result out = result_in(&a);
    f.most = most;
    assert_int_equal(hv_fit_solve(&f, &out, NULL), HV_OK);
    assert_float_equal(a.x[1], 0.5, 1e-12);
    assert_float_equal(a.x[0], 2.0, 1e-6);
}

static void fixed_parameters_stay(void **state)
{
    (void)state;
    const double y[] = {1, 3, 2, 5, 4}, start[] = {0, 0.25}, least[] = {-100, 0.25},
                 most[] = {100, 0.25};
    struct line l = {times, y, 5, 0, 0};
    struct hv_fit f = line_fit(&l);
    struct arrays a;
    struct hv_fit_result out = result_in(&a);
    f.start = start;
    f.least = least;
    f.most = most;
    assert_int_equal(hv_fit_solve(&f, &out, NULL), HV_OK);
    assert_true(a.x[1] == 0.25);
    assert_float_equal(a.x[0], 2.5, 1e-6);
}

static void outliers_hardly_count(void **state)
{
    (void)state;
    /* on y = 1 + 2t but for one wild point, the line of least absolute deviations */
    const double y[] = {1, 3, 5, 7, 1000};
    struct line l = {times, y, 5, 0, 0};
    struct hv_fit f = line_fit(&l);
    struct arrays a;
    struct hv_fit_result out = result_in(&a);
    f.huber = 1e-3;
    f.max_steps = 2000;
    f.max_jacobians = 50;
    assert_int_equal(hv_fit_solve(&f, &out, NULL), HV_OK);
    assert_float_equal(a.x[0], 1, 5e-3);
    assert_float_equal(a.x[1], 2, 5e-3);
}

static void weights_and_ridge(void **state)
{
    (void)state;
    /* one point (t = 0, y = 4), weight 3, prior a = 0 with q = 1: a = 3·4 / (3 + 1); a residual of
     * weight 0 may be NaN */
    const double t[] = {0, 0}, y[] = {4, (double)NAN}, w[] = {3, 0}, ridge[] = {1, 1};
    struct line l = {t, y, 2, 0, 0};
    struct hv_fit f = line_fit(&l);
    struct arrays a;
    struct hv_fit_result out = result_in(&a);
    f.weights = w;
    f.prior = zeros;
    f.ridge = ridge;
    assert_int_equal(hv_fit_solve(&f, &out, NULL), HV_OK);
    assert_float_equal(a.x[0], 3, 1e-6);
    assert_float_equal(a.x[1], 0, 1e-9);
    f.weights = NULL;
    out = result_in(&a);
    struct hv_err err = {0};
    assert_int_equal(hv_fit_solve(&f, &out, &err), HV_ENO);
}

/* Rosenbrock's valley as residuals 10(y − x²) and 1 − x: optimum (1, 1) with objective 0. */
static enum hv_status valley(void *ctx, const double *x, double *r, struct hv_err *err)
{
    (void)ctx;
    (void)err;
    r[0] = 10 * (x[1] - x[0] * x[0]);
    r[1] = 1 - x[0];
    return HV_OK;
}

static void curved_valley(void **state)
{
    (void)state;
    const double start[] = {-1.2, 1};
    struct hv_fit f = {.n_params = 2,
                       .n_residuals = 2,
                       .start = start,
                       .least = low,
                       .most = high,
                       .max_jacobians = 60,
                       .max_steps = 500,
                       .tolerance = 1e-14,
                       .residuals = valley};
    struct arrays a, b;
    struct hv_fit_result out = result_in(&a), again = result_in(&b);
    assert_int_equal(hv_fit_solve(&f, &out, NULL), HV_OK);
    assert_float_equal(a.x[0], 1, 1e-4);
    assert_float_equal(a.x[1], 1, 1e-4);
    assert_int_equal(hv_fit_solve(&f, &again, NULL), HV_OK);
    assert_memory_equal(a.x, b.x, sizeof a.x);
    assert_int_equal(out.n_calls, again.n_calls);
}

static void known_jacobian_saves_calls(void **state)
{
    (void)state;
    const double y[] = {1, 3, 2, 5, 4};
    struct line l = {times, y, 5, 0, 0};
    struct hv_fit f = line_fit(&l);
    struct arrays a;
    struct hv_fit_result out = result_in(&a);
    for (size_t i = 0; i < 5; i++) {
        a.j[2 * i] = 1;
        a.j[2 * i + 1] = times[i];
    }
    out.known_jacobian = true;
    f.max_jacobians = 0;
    assert_int_equal(hv_fit_solve(&f, &out, NULL), HV_OK);
    assert_float_equal(a.x[1], 0.8, 1e-4);
    assert_true(out.n_calls < 30);
}

static void callbacks_may_stop_it(void **state)
{
    (void)state;
    const double y[] = {1, 3, 2, 5, 4};
    for (int at = 1; at <= 5; at++) {
        struct line l = {times, y, 5, at, 0};
        struct hv_fit f = line_fit(&l);
        struct arrays a;
        struct hv_fit_result out = result_in(&a);
        struct hv_err err = {0};
        assert_int_equal(hv_fit_solve(&f, &out, &err), HV_ESTOPPED);
        assert_string_equal(err.text, "enough");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squares_of_a_line),          cmocka_unit_test(bounds_hold),
        cmocka_unit_test(fixed_parameters_stay),      cmocka_unit_test(outliers_hardly_count),
        cmocka_unit_test(weights_and_ridge),          cmocka_unit_test(curved_valley),
        cmocka_unit_test(known_jacobian_saves_calls), cmocka_unit_test(callbacks_may_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
