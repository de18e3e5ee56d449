/* The lp_solve wrapper: the known wrong answers, refusals, random programs against enumeration. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/optim/lp/branch.h"
#include "solver/optim/lp/lp.h"
#include "tests/lp_fixture.h"

static size_t add_var(struct hv_lp *lp, double lo, double hi, bool integer)
{
    size_t id = 0;
    assert_int_equal(hv_lp_add_var(lp, lo, hi, integer, &id, NULL), HV_OK);
    return id;
}

static void add_row(struct hv_lp *lp, const struct hv_lp_term *t, size_t n, enum hv_lp_op op,
                    double rhs)
{
    assert_int_equal(hv_lp_add_row(lp, t, n, op, rhs, NULL), HV_OK);
}

/* The min-max model on which lp_solve 5.5.2.5 answers 156.917290192; b = 1 gives 155.2. */
static void wrong_answer_model(struct hv_lp *lp, double unit)
{
    size_t t = add_var(lp, 0, HUGE_VAL, false), a = add_var(lp, 0, 1, true),
           b = add_var(lp, 0, 1, true);
    add_row(lp, (struct hv_lp_term[]){{a, 1}, {b, 1}}, 2, HV_LP_EQ, 1);
    const struct hv_lp_term first[] = {{t, 1}, {a, -78 * unit}, {b, -155.2 * unit}};
    add_row(lp, first, 3, HV_LP_GE, 0);
    const struct hv_lp_term second[] = {{a, 156.917290192 * unit}, {b, 147.159959555 * unit}};
    assert_int_equal(hv_lp_add_max_row(lp, t, second, 2, 0, NULL), HV_OK);
    assert_int_equal(hv_lp_set_objective(lp, (struct hv_lp_term[]){{t, 1}}, 1, NULL), HV_OK);
}

static void known_wrong_answer_is_right(void **state)
{
    (void)state;
    const double units[] = {1, 1e-3, 1e3, 1e6, 1e9};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
        struct hv_lp_result r;
        wrong_answer_model(lp, units[i]);
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
        assert_int_equal(r.outcome, HV_LP_OPTIMAL);
        assert_true(r.proven);
        assert_true(fabs(r.objective - 155.2 * units[i]) < 1e-6 * units[i]);
        assert_true(r.x[2] == 1);
        hv_lp_result_free(&r);
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK); /* a model can be solved again */
        assert_true(r.proven);
        hv_lp_result_free(&r);
        hv_lp_free(lp);
    }
}

static void hopeless_models_are_infeasible(void **state)
{
    (void)state;
    struct hv_lp_result r;
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    add_var(lp, 0, 1, false);
    add_row(lp, NULL, 0, HV_LP_EQ, 1); /* 0 = 1 */
    assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
    assert_int_equal(r.outcome, HV_LP_INFEASIBLE);
    assert_null(r.x);
    hv_lp_result_free(&r);
    hv_lp_free(lp);
    lp = hv_lp_new(HV_LP_MIN);
    size_t a = add_var(lp, 2, 1, false);
    assert_int_equal(hv_lp_set_objective(lp, (struct hv_lp_term[]){{a, 1}}, 1, NULL), HV_OK);
    assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
    assert_int_equal(r.outcome, HV_LP_INFEASIBLE);
    hv_lp_result_free(&r);
    hv_lp_free(lp);
    lp = hv_lp_new(HV_LP_MAX);
    a = add_var(lp, 0, HUGE_VAL, false);
    assert_int_equal(hv_lp_set_objective(lp, (struct hv_lp_term[]){{a, 1}}, 1, NULL), HV_OK);
    assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
    assert_int_equal(r.outcome, HV_LP_UNBOUNDED);
    hv_lp_result_free(&r);
    hv_lp_free(lp);
}

static void bad_numbers_are_refused(void **state)
{
    (void)state;
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    struct hv_err err = {0};
    size_t a = add_var(lp, 0, 1, false);
    assert_int_equal(hv_lp_add_var(lp, (double)NAN, 1, false, NULL, &err), HV_EINPUT);
    assert_int_equal(hv_lp_add_var(lp, HUGE_VAL, HUGE_VAL, false, NULL, &err), HV_EINPUT);
    assert_int_equal(
        hv_lp_add_row(lp, (struct hv_lp_term[]){{a, (double)NAN}}, 1, HV_LP_LE, 1, &err),
        HV_EINPUT);
    assert_int_equal(hv_lp_add_row(lp, (struct hv_lp_term[]){{a, HUGE_VAL}}, 1, HV_LP_LE, 1, &err),
                     HV_EINPUT);
    assert_int_equal(
        hv_lp_add_row(lp, (struct hv_lp_term[]){{a, 1}}, 1, HV_LP_LE, (double)NAN, &err),
        HV_EINPUT);
    assert_int_equal(hv_lp_add_row(lp, (struct hv_lp_term[]){{7, 1}}, 1, HV_LP_LE, 1, &err),
                     HV_EINPUT);
    assert_non_null(strstr(err.text, "names variable 8"));
    assert_int_equal(hv_lp_set_objective(lp, (struct hv_lp_term[]){{1, 1}}, 1, &err), HV_EINPUT);
    hv_lp_free(lp);
}

static void equal_terms_are_added_up(void **state)
{
    (void)state;
    struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
    struct hv_lp_result r;
    size_t a = add_var(lp, 0, HUGE_VAL, true);
    add_row(lp, (struct hv_lp_term[]){{a, 1}, {a, 1}, {a, 1}}, 3, HV_LP_LE, 10);
    assert_int_equal(hv_lp_set_objective(lp, (struct hv_lp_term[]){{a, 2}, {a, 3}}, 2, NULL),
                     HV_OK);
    assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
    assert_true(r.objective == 15 && r.x[0] == 3);
    hv_lp_result_free(&r);
    hv_lp_free(lp);
}

/* max 3x + 5y, x ≤ 4, 2y ≤ 12, 3x + 2y ≤ 18: 36 at (2, 6), duals 0, 1.5, 1 (the textbook example
 * of Hillier and Lieberman, Wyndor Glass). */
static void duals_of_a_small_lp(void **state)
{
    (void)state;
    struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
    struct hv_lp_result r;
    struct hv_str text = {0};
    size_t x = add_var(lp, 0, HUGE_VAL, false), y = add_var(lp, 0, HUGE_VAL, false);
    add_row(lp, (struct hv_lp_term[]){{x, 1}}, 1, HV_LP_LE, 4);
    add_row(lp, (struct hv_lp_term[]){{y, 2}}, 1, HV_LP_LE, 12);
    add_row(lp, (struct hv_lp_term[]){{x, 3}, {y, 2}}, 2, HV_LP_LE, 18);
    assert_int_equal(hv_lp_set_objective(lp, (struct hv_lp_term[]){{x, 3}, {y, 5}}, 2, NULL),
                     HV_OK);
    assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
    assert_true(r.proven);
    assert_true(fabs(r.objective - 36) < 1e-9 && fabs(r.bound - 36) < 1e-9);
    assert_true(fabs(r.duals[0]) < 1e-9 && fabs(r.duals[1] - 1.5) < 1e-9);
    assert_true(fabs(r.duals[2] - 1) < 1e-9);
    assert_true(fabs(r.reduced[0]) < 1e-9 && fabs(r.reduced[1]) < 1e-9);
    hv_lp_write(lp, &text);
    assert_non_null(strstr(hv_str_cstr(&text), "max: +3 x1 +5 x2;"));
    assert_non_null(strstr(hv_str_cstr(&text), "r3: +3 x1 +2 x2 <= 18;"));
    hv_str_free(&text);
    hv_lp_result_free(&r);
    hv_lp_free(lp);
}

static void assert_range(struct hv_lp_range r, double from, double till)
{
    if ((fabs(r.from - from) > 1e-6 && r.from != from) ||
        (fabs(r.till - till) > 1e-6 && r.till != till)) {
        fail_msg("[%g, %g], expected [%g, %g]", r.from, r.till, from, till);
    }
}

/* The same example: how far its six numbers may move (Hillier and Lieberman, section 6.7). */
static void ranges_of_a_small_lp(void **state)
{
    (void)state;
    struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
    struct hv_lp_result r;
    struct hv_lp_ranges g;
    size_t x = add_var(lp, 0, HUGE_VAL, false), y = add_var(lp, 0, HUGE_VAL, false);
    add_row(lp, (struct hv_lp_term[]){{x, 1}}, 1, HV_LP_LE, 4);
    add_row(lp, (struct hv_lp_term[]){{y, 2}}, 1, HV_LP_LE, 12);
    add_row(lp, (struct hv_lp_term[]){{x, 3}, {y, 2}}, 2, HV_LP_LE, 18);
    assert_int_equal(hv_lp_set_objective(lp, (struct hv_lp_term[]){{x, 3}, {y, 5}}, 2, NULL),
                     HV_OK);
    assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
    assert_int_equal(hv_lp_ranges(lp, &r, NULL, &g, NULL), HV_OK);
    assert_true(g.complete);
    assert_range(g.cost[0], 0, 7.5);
    assert_range(g.cost[1], 2, HUGE_VAL);
    assert_range(g.rhs[0], 2, HUGE_VAL);
    assert_range(g.rhs[1], 6, 18);
    assert_range(g.rhs[2], 12, 24);
    assert_true(g.cost[0].from == 0 && g.cost[0].till == 7.5 && g.rhs[2].till == 24);
    hv_lp_ranges_free(&g);
    const struct hv_lp_limits none = {.deadline_s = 1e-9};
    assert_int_equal(hv_lp_ranges(lp, &r, &none, &g, NULL), HV_OK);
    assert_true(!g.complete && !hv_known(g.rhs[0].from));
    hv_lp_ranges_free(&g);
    r.proven = false;
    assert_int_equal(hv_lp_ranges(lp, &r, NULL, &g, NULL), HV_EUSAGE);
    hv_lp_result_free(&r);
    hv_lp_free(lp);
}

/* The same in other units: nothing depends on how large numbers are. */
static void ranges_do_not_depend_on_units(void **state)
{
    (void)state;
    const double units[] = {1e-6, 1e-3, 1e3, 1e6, 1e9};
    for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
        double u = units[k];
        struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
        struct hv_lp_result r;
        struct hv_lp_ranges g;
        size_t x = add_var(lp, 0, HUGE_VAL, false), y = add_var(lp, 0, HUGE_VAL, false);
        add_row(lp, (struct hv_lp_term[]){{x, 1}}, 1, HV_LP_LE, 4 * u);
        add_row(lp, (struct hv_lp_term[]){{y, 2}}, 1, HV_LP_LE, 12 * u);
        add_row(lp, (struct hv_lp_term[]){{x, 3}, {y, 2}}, 2, HV_LP_LE, 18 * u);
        assert_int_equal(
            hv_lp_set_objective(lp, (struct hv_lp_term[]){{x, 3 / u}, {y, 5 / u}}, 2, NULL), HV_OK);
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
        assert_int_equal(hv_lp_ranges(lp, &r, NULL, &g, NULL), HV_OK);
        assert_true(g.complete);
        for (int i = 0; i < 2; i++) {
            g.cost[i].from *= u;
            g.cost[i].till *= u;
        }
        for (int i = 0; i < 3; i++) {
            g.rhs[i].from /= u;
            g.rhs[i].till /= u;
        }
        assert_range(g.cost[0], 0, 7.5);
        assert_range(g.cost[1], 2, HUGE_VAL);
        assert_range(g.rhs[0], 2, HUGE_VAL);
        assert_range(g.rhs[1], 6, 18);
        assert_range(g.rhs[2], 12, 24);
        hv_lp_ranges_free(&g);
        hv_lp_result_free(&r);
        hv_lp_free(lp);
    }
}

/* A random bounded linear program; `cost` and `rhs` can be changed and the model built again. */
struct linear {
    size_t n, m;
    double coef[4][4], rhs[4], cost[4], upper[4];
    enum hv_lp_op op[4];
    enum hv_lp_sense sense;
};

static struct hv_lp *linear_model(const struct linear *s)
{
    struct hv_lp *lp = hv_lp_new(s->sense);
    struct hv_lp_term t[4];
    for (size_t j = 0; j < s->n; j++) {
        add_var(lp, 0, s->upper[j], false);
    }
    for (size_t i = 0; i <= s->m; i++) {
        for (size_t j = 0; j < s->n; j++) {
            t[j] = (struct hv_lp_term){j, i < s->m ? s->coef[i][j] : s->cost[j]};
        }
        if (i < s->m) {
            add_row(lp, t, s->n, s->op[i], s->rhs[i]);
        }
    }
    assert_int_equal(hv_lp_set_objective(lp, t, s->n, NULL), HV_OK);
    return lp;
}

/* Optimum; NaN where there is none. */
static double linear_optimum(const struct linear *s)
{
    struct hv_lp *lp = linear_model(s);
    struct hv_lp_result r;
    assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
    double v = r.proven ? r.objective : HV_UNKNOWN;
    hv_lp_result_free(&r);
    hv_lp_free(lp);
    return v;
}

/* Solves again at and behind every end of every range. */
static void check_ranges(struct linear *s, const struct hv_lp_result *r,
                         const struct hv_lp_ranges *g)
{
    for (size_t k = 0; k < s->n + s->m; k++) {
        bool is_row = k >= s->n;
        size_t at = is_row ? k - s->n : k;
        double *number = is_row ? &s->rhs[at] : &s->cost[at], base = *number;
        double slope = is_row ? r->duals[at] : r->x[at];
        const struct hv_lp_range *one = is_row ? &g->rhs[at] : &g->cost[at];
        const double end[] = {one->from, one->till}, away[] = {-0.01, 0.01};
        for (int e = 0; e < 2; e++) {
            double to = isinf(end[e]) ? base + 1000 * away[e] * 100 : end[e];
            struct linear moved = *s;
            double *moved_number = is_row ? &moved.rhs[at] : &moved.cost[at];
            *moved_number = to;
            double now = linear_optimum(&moved), predicted = r->objective + slope * (to - base);
            if (fabs(now - predicted) > 1e-6 * (1 + fabs(predicted))) {
                fail_msg("number %zu at %.9g: optimum %.9g, predicted %.9g", k, to, now, predicted);
            }
            if (isinf(end[e])) {
                continue;
            }
            *moved_number = to + away[e];
            now = linear_optimum(&moved);
            predicted = r->objective + slope * (to + away[e] - base);
            if (hv_known(now) && fabs(now - predicted) <= 1e-9 * (1 + fabs(predicted))) {
                fail_msg("number %zu behind %.9g: still as predicted, %.9g", k, to, now);
            }
        }
    }
}

static void ranges_end_where_answers_change(void **state)
{
    (void)state;
    struct hv_rng rng;
    int checked = 0;
    hv_rng_seed(&rng, 8);
    for (int k = 0; k < 400; k++) {
        struct linear s = {.n = 1 + hv_rng_below(&rng, 4), .m = 1 + hv_rng_below(&rng, 4)};
        s.sense = hv_rng_below(&rng, 2) ? HV_LP_MIN : HV_LP_MAX;
        for (size_t i = 0; i < 4; i++) {
            s.op[i] = (enum hv_lp_op)hv_rng_below(&rng, 3);
            s.rhs[i] = (double)hv_rng_below(&rng, 9);
            s.cost[i] = (double)hv_rng_below(&rng, 15) - 7;
            s.upper[i] = 1 + (double)hv_rng_below(&rng, 6);
            for (size_t j = 0; j < 4; j++) {
                s.coef[i][j] = (double)hv_rng_below(&rng, 7) - 2;
            }
        }
        struct hv_lp *lp = linear_model(&s);
        struct hv_lp_result r;
        struct hv_lp_ranges g;
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
        if (r.proven) {
            assert_int_equal(hv_lp_ranges(lp, &r, NULL, &g, NULL), HV_OK);
            assert_true(g.complete);
            check_ranges(&s, &r, &g);
            hv_lp_ranges_free(&g);
            checked++;
        }
        hv_lp_result_free(&r);
        hv_lp_free(lp);
    }
    assert_true(checked > 150);
}

/* Best sum of a set's variables, each alone or two neighbours, within Σ ≤ cap. */
static void ordered_sets_allow_neighbours_only(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 17);
    for (int k = 0; k < 300; k++) {
        struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
        struct hv_lp_term cost[6], sum[6];
        struct hv_lp_result r;
        size_t n = 2 + hv_rng_below(&rng, 5), vars[6];
        int type = 1 + k % 2;
        double upper[6], cap = 1 + (double)hv_rng_below(&rng, 9), want = 0;
        for (size_t j = 0; j < n; j++) {
            bool binary = hv_rng_below(&rng, 3) == 0;
            upper[j] = binary ? 1 : 1 + (double)hv_rng_below(&rng, 6);
            vars[j] = add_var(lp, 0, upper[j], binary);
            cost[j] = (struct hv_lp_term){vars[j], (double)hv_rng_below(&rng, 9)};
            sum[j] = (struct hv_lp_term){vars[j], 1};
        }
        for (size_t j = 0; j < n; j++) { /* the dearer of two first; cap and bounds are whole */
            size_t a = j, b = type == 2 && j + 1 < n ? j + 1 : j;
            if (cost[b].coef > cost[a].coef) {
                a = j + 1;
                b = j;
            }
            double x = fmin(upper[a], cap), y = a == b ? 0 : fmin(upper[b], cap - x);
            want = fmax(want, cost[a].coef * x + (a == b ? 0 : cost[b].coef * y));
        }
        add_row(lp, sum, n, HV_LP_LE, cap);
        assert_int_equal(hv_lp_set_objective(lp, cost, n, NULL), HV_OK);
        assert_int_equal(hv_lp_add_sos(lp, type, vars, n, NULL), HV_OK);
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
        assert_true(r.outcome == HV_LP_OPTIMAL || r.outcome == HV_LP_FEASIBLE);
        if (fabs(r.objective - want) > 1e-6 * (1 + want)) {
            fail_msg("case %d: %g, expected %g", k, r.objective, want);
        }
        hv_lp_result_free(&r);
        hv_lp_free(lp);
    }
}

static void bad_sets_are_refused(void **state)
{
    (void)state;
    struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
    struct hv_err err = {0};
    size_t a = add_var(lp, 0, 1, false), b = add_var(lp, 0, HUGE_VAL, false);
    assert_int_equal(hv_lp_add_sos(lp, 3, (size_t[]){a, a}, 2, &err), HV_EINPUT);
    assert_int_equal(hv_lp_add_sos(lp, 1, (size_t[]){a}, 1, &err), HV_EINPUT);
    assert_int_equal(hv_lp_add_sos(lp, 1, (size_t[]){a, a}, 2, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "names variable 1 twice"));
    assert_int_equal(hv_lp_add_sos(lp, 2, (size_t[]){a, b}, 2, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "variable 2 of a special ordered set needs finite bounds"));
    assert_int_equal(hv_lp_add_sos(lp, 1, (size_t[]){a, 9}, 2, &err), HV_EINPUT);
    hv_lp_free(lp);
}

static bool yes(void *ctx)
{
    (void)ctx;
    return true;
}

static bool at_last(void *ctx)
{
    int *left = ctx;
    return --*left < 0;
}

/* lp_solve asks from its first step on, before there is anything to make duals of. */
static void cancel_ends_a_solve_at_any_question(void **state)
{
    (void)state;
    enum { N = 300, MOST = 400 };
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    for (int j = 0; j < N; j++) {
        (void)add_var(lp, 0, HUGE_VAL, false);
    }
    const struct hv_lp_term ends[] = {{0, 1}, {N - 1, 1}};
    for (int i = 0; i < N; i++) {
        add_row(lp, ends, 2, HV_LP_GE, 1);
    }
    assert_int_equal(hv_lp_set_objective(lp, ends, 2, NULL), HV_OK);
    bool stopped = true;
    int asked = 0;
    for (; stopped && asked < MOST; asked++) {
        int left = asked;
        const struct hv_lp_limits limits = {.cancel = at_last, .ctx = &left};
        struct hv_lp_result r;
        assert_int_equal(hv_lp_solve(lp, &limits, &r, NULL), HV_OK);
        stopped = r.stopped;
        assert_true(stopped || (r.proven && fabs(r.objective - 1) < 1e-9));
        hv_lp_result_free(&r);
    }
    assert_true(asked > 1 && asked < MOST);
    hv_lp_free(lp);
}

static void cancel_ends_a_solve(void **state)
{
    (void)state;
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    struct hv_lp_result r;
    struct hv_rng rng;
    struct hv_lp_term all[60];
    hv_rng_seed(&rng, 3);
    for (size_t j = 0; j < 60; j++) {
        all[j].var = add_var(lp, 0, 1, true);
    }
    for (int i = 0; i < 40; i++) { /* a market-split instance: far beyond any node limit */
        double sum = 0;
        for (size_t j = 0; j < 60; j++) {
            all[j].coef = (double)hv_rng_below(&rng, 100);
            sum += all[j].coef;
        }
        add_row(lp, all, 60, HV_LP_EQ, floor(sum / 2));
    }
    assert_int_equal(hv_lp_set_objective(lp, all, 60, NULL), HV_OK);
    const struct hv_lp_limits limits = {.cancel = yes};
    assert_int_equal(hv_lp_solve(lp, &limits, &r, NULL), HV_OK);
    assert_true(r.stopped);
    assert_false(r.proven);
    assert_int_equal(r.outcome, HV_LP_STOPPED);
    hv_lp_result_free(&r);
    hv_lp_free(lp);
}

/* Best value of a program with integer variables in 0..2 and one continuous top T ≥ every max row.
 */
struct small {
    size_t n, rows, tops;
    int coef[4][6], rhs[4], cost[6];
    double top[4][6];
    enum hv_lp_op op[4];
};

static bool point_is_allowed(const struct small *s, const int *x)
{
    for (size_t i = 0; i < s->rows; i++) {
        int left = 0;
        for (size_t j = 0; j < s->n; j++) {
            left += s->coef[i][j] * x[j];
        }
        if ((s->op[i] == HV_LP_LE && left > s->rhs[i]) ||
            (s->op[i] == HV_LP_GE && left < s->rhs[i]) ||
            (s->op[i] == HV_LP_EQ && left != s->rhs[i])) {
            return false;
        }
    }
    return true;
}

static double brute(const struct small *s)
{
    int x[6] = {0};
    double best = HUGE_VAL;
    for (;;) {
        if (point_is_allowed(s, x)) {
            double v = 0, top = 0;
            for (size_t j = 0; j < s->n; j++) {
                v += s->cost[j] * x[j];
            }
            for (size_t i = 0; i < s->tops; i++) {
                double t = 0;
                for (size_t j = 0; j < s->n; j++) {
                    t += s->top[i][j] * x[j];
                }
                top = fmax(top, t);
            }
            best = fmin(best, v + (s->tops ? top : 0));
        }
        size_t j = 0;
        while (j < s->n && ++x[j] == 3) {
            x[j++] = 0;
        }
        if (j == s->n) {
            return best;
        }
    }
}

static void make_small(struct hv_rng *rng, struct small *s)
{
    memset(s, 0, sizeof *s);
    s->n = 2 + hv_rng_below(rng, 5);
    s->rows = 1 + hv_rng_below(rng, 4);
    s->tops = hv_rng_below(rng, 5);
    for (size_t j = 0; j < s->n; j++) {
        s->cost[j] = s->tops ? 0 : (int)hv_rng_below(rng, 19) - 9;
    }
    for (size_t i = 0; i < 4; i++) {
        s->op[i] = (enum hv_lp_op)hv_rng_below(rng, 3);
        s->rhs[i] = (int)hv_rng_below(rng, 8);
        for (size_t j = 0; j < s->n; j++) {
            s->coef[i][j] = (int)hv_rng_below(rng, 7) - 2;
            s->top[i][j] = 200 * hv_rng_double(rng);
        }
    }
}

static struct hv_lp *model_of(const struct small *s)
{
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    struct hv_lp_term t[8];
    for (size_t j = 0; j < s->n; j++) {
        add_var(lp, 0, 2, true);
    }
    for (size_t i = 0; i < s->rows; i++) {
        for (size_t j = 0; j < s->n; j++) {
            t[j] = (struct hv_lp_term){j, s->coef[i][j]};
        }
        add_row(lp, t, s->n, s->op[i], s->rhs[i]);
    }
    size_t top = s->tops ? add_var(lp, 0, HUGE_VAL, false) : 0;
    for (size_t i = 0; i < s->tops; i++) {
        for (size_t j = 0; j < s->n; j++) {
            t[j] = (struct hv_lp_term){j, s->top[i][j]};
        }
        assert_int_equal(hv_lp_add_max_row(lp, top, t, s->n, 0, NULL), HV_OK);
    }
    for (size_t j = 0; j < s->n; j++) {
        t[j] = (struct hv_lp_term){j, s->cost[j]};
    }
    t[s->n] = (struct hv_lp_term){top, 1};
    assert_int_equal(hv_lp_set_objective(lp, t, s->n + (s->tops ? 1 : 0), NULL), HV_OK);
    return lp;
}

static void random_programs_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    size_t proven = 0, solved = 0;
    hv_rng_seed(&rng, 42);
    for (int k = 0; k < 4000; k++) {
        struct small s;
        struct hv_lp_result r;
        make_small(&rng, &s);
        double want = brute(&s);
        struct hv_lp *lp = model_of(&s);
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
        if (isinf(want)) {
            assert_int_equal(r.outcome, HV_LP_INFEASIBLE);
        } else {
            assert_true(r.outcome == HV_LP_OPTIMAL || r.outcome == HV_LP_FEASIBLE);
            if (fabs(r.objective - want) > 1e-6 * fmax(1, fabs(want))) {
                fail_msg("case %d: %.9g, enumeration says %.9g", k, r.objective, want);
            }
            solved++;
            proven += r.proven;
            if (hv_known(r.bound)) {
                assert_true(r.bound <= want + 1e-6 * fmax(1, fabs(want)));
            }
        }
        hv_lp_result_free(&r);
        hv_lp_free(lp);
    }
    assert_true(solved > 1500);
    assert_true(proven * 2 > solved);
}

/* The family in which plain lp_solve calls about 3 % of its answers optimal that are not. */
static void min_max_chains_are_never_wrongly_proven(void **state)
{
    (void)state;
    struct fix_tally n = {0};
    struct hv_rng rng;
    hv_rng_seed(&rng, 77);
    while (n.runs < 1500) {
        fix_run(&rng, &n);
    }
    assert_true(n.wrong_proven == 0 && n.wrong_infeasible == 0);
    assert_true(n.proven > 1000);
}

/* Coefficients spread over twelve decades: lp_solve alone calls 0 the optimum, -9.4625 is. */
static void spread_coefficients_are_solved(void **state)
{
    (void)state;
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    struct hv_lp_result r;
    size_t a = add_var(lp, 0, 3, false), b = add_var(lp, 0, 1, true),
           c = add_var(lp, 0, 2.5, false);
    add_row(lp, (struct hv_lp_term[]){{a, -1.847e-06}, {b, 2}, {c, -6752000}}, 3, HV_LP_LE, 0);
    const struct hv_lp_term cost[] = {{a, 3}, {c, -3.785}};
    assert_int_equal(hv_lp_set_objective(lp, cost, 2, NULL), HV_OK);
    assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
    assert_int_equal(r.outcome, HV_LP_OPTIMAL);
    assert_true(r.proven && fabs(r.objective + 9.4625) < 1e-9 && r.bound <= -9.4625 + 1e-12);
    hv_lp_result_free(&r);
    hv_lp_free(lp);
}

/* 0.1 + 0.2 = 0.3 holds but for the rounding of the numbers, and counts as a point. */
static void decimal_equations_hold(void **state)
{
    (void)state;
    struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
    struct hv_lp_result r;
    size_t a = add_var(lp, 0, 1, true), b = add_var(lp, 0, 1, true);
    const struct hv_lp_term t[] = {{a, 0.1}, {b, 0.2}};
    add_row(lp, t, 2, HV_LP_EQ, 0.3);
    assert_int_equal(hv_lp_set_objective(lp, t, 2, NULL), HV_OK);
    assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
    assert_true(r.proven && r.x[a] == 1 && r.x[b] == 1);
    hv_lp_result_free(&r);
    hv_lp_free(lp);
}

/* 6a - 10b + 4c = 7 has no solution in whole numbers, however large; = 8 has. */
static void divisors_decide_equations(void **state)
{
    (void)state;
    for (int rhs = 7; rhs <= 8; rhs++) {
        struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
        struct hv_lp_result r;
        size_t a = add_var(lp, 0, HUGE_VAL, true), b = add_var(lp, 0, HUGE_VAL, true),
               c = add_var(lp, 0, HUGE_VAL, true);
        add_row(lp, (struct hv_lp_term[]){{a, 6}, {b, -10}, {c, 4}}, 3, HV_LP_EQ, rhs);
        assert_int_equal(
            hv_lp_set_objective(lp, (struct hv_lp_term[]){{a, 1}, {b, 1}, {c, 3}}, 3, NULL), HV_OK);
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
        assert_int_equal(r.outcome, rhs == 7 ? HV_LP_INFEASIBLE : HV_LP_OPTIMAL);
        assert_true(rhs == 7 || r.objective == 4); /* a = 3, b = 1 */
        hv_lp_result_free(&r);
        hv_lp_free(lp);
    }
}

/* 2a + 2b = 3 has solutions, but none in whole numbers; a - b >= 0 has no largest a. */
static void integers_without_an_optimum(void **state)
{
    (void)state;
    for (int open = 0; open < 2; open++) {
        struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
        struct hv_lp_result r;
        double top = open ? HUGE_VAL : 5;
        size_t a = add_var(lp, 0, top, true), b = add_var(lp, 0, top, true);
        if (open) {
            add_row(lp, (struct hv_lp_term[]){{a, 1}, {b, -1}}, 2, HV_LP_GE, 0.5);
        } else {
            add_row(lp, (struct hv_lp_term[]){{a, 2}, {b, 2}}, 2, HV_LP_EQ, 3);
        }
        assert_int_equal(hv_lp_set_objective(lp, (struct hv_lp_term[]){{a, 1}}, 1, NULL), HV_OK);
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
        assert_int_equal(r.outcome, open ? HV_LP_UNBOUNDED : HV_LP_INFEASIBLE);
        assert_true(!r.proven && !r.x);
        hv_lp_result_free(&r);
        hv_lp_free(lp);
    }
}

/* A knapsack of 14 things: with a gap the bound says how far the answer may be off. */
static struct hv_lp *knapsack(struct hv_rng *rng)
{
    struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
    struct hv_lp_term value[14], weight[14];
    for (size_t j = 0; j < 14; j++) {
        size_t id = add_var(lp, 0, 1, true);
        value[j] = (struct hv_lp_term){id, 50 + 10 * hv_rng_double(rng)};
        weight[j] = (struct hv_lp_term){id, 50 + 10 * hv_rng_double(rng)};
    }
    add_row(lp, weight, 14, HV_LP_LE, 350);
    assert_int_equal(hv_lp_set_objective(lp, value, 14, NULL), HV_OK);
    return lp;
}

static void a_gap_is_no_proof(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 5);
    for (int k = 0; k < 20; k++) {
        struct hv_lp *lp = knapsack(&rng);
        const struct hv_lp_limits wide = {.gap = 0.05}, plain = {.unproven = true};
        struct hv_lp_result best, near, word;
        assert_int_equal(hv_lp_solve(lp, NULL, &best, NULL), HV_OK);
        assert_int_equal(hv_lp_solve(lp, &wide, &near, NULL), HV_OK);
        assert_int_equal(hv_lp_solve(lp, &plain, &word, NULL), HV_OK);
        assert_true(best.proven && best.outcome == HV_LP_OPTIMAL);
        assert_true(near.bound >= best.objective - 1e-9 && near.bound <= 1.06 * near.objective);
        assert_true(near.objective <= best.objective + 1e-9);
        assert_true(near.proven == (near.outcome == HV_LP_OPTIMAL));
        assert_true(!near.proven || fabs(near.objective - best.objective) < 1e-6);
        assert_true(!word.proven && word.outcome == HV_LP_FEASIBLE && word.x);
        hv_lp_result_free(&best);
        hv_lp_result_free(&near);
        hv_lp_result_free(&word);
        hv_lp_free(lp);
    }
}

/* The largest and smallest numbers that there are: every solve ends, and x is kept or missing. */
static void extreme_numbers_end(void **state)
{
    (void)state;
    static const double sizes[] = {0, 1, -3, 1e308, -1e308, 1e-308, 5e-324, 1e150, -1e-150, 7e15};
    struct hv_rng rng;
    hv_rng_seed(&rng, 31);
    for (int k = 0; k < 1000; k++) {
        struct hv_lp *lp = hv_lp_new(k % 2 ? HV_LP_MIN : HV_LP_MAX);
        struct hv_lp_term t[4];
        struct hv_lp_result r;
        const struct hv_lp_limits limits = {.max_nodes = 100};
        for (size_t j = 0; j < 4; j++) {
            double a = sizes[hv_rng_below(&rng, 10)], b = sizes[hv_rng_below(&rng, 10)];
            add_var(lp, fmin(a, b), j % 2 ? HUGE_VAL : fmax(a, b), hv_rng_below(&rng, 2));
        }
        for (int i = 0; i < 4; i++) {
            for (size_t j = 0; j < 4; j++) {
                t[j] = (struct hv_lp_term){j, sizes[hv_rng_below(&rng, 10)]};
            }
            if (i < 3) {
                add_row(lp, t, 4, (enum hv_lp_op)hv_rng_below(&rng, 3),
                        sizes[hv_rng_below(&rng, 10)]);
            }
        }
        assert_int_equal(hv_lp_set_objective(lp, t, 4, NULL), HV_OK);
        enum hv_status st = hv_lp_solve(lp, &limits, &r, NULL);
        assert_true(st == HV_OK || (st == HV_EINTERNAL && r.outcome == HV_LP_FAILED));
        assert_true((r.x != NULL) == (r.outcome == HV_LP_OPTIMAL || r.outcome == HV_LP_FEASIBLE));
        assert_true(r.proven == (r.outcome == HV_LP_OPTIMAL));
        hv_lp_result_free(&r);
        hv_lp_free(lp);
    }
}

/* Too large for the dense tableau: Σ x <= 1 in every row of a grid, and a row that asks for more.
 */
static void large_programs_are_certified(void **state)
{
    (void)state;
    enum { SIDE = 30 };
    for (int much = 0; much < 2; much++) {
        struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
        struct hv_lp_result r;
        struct hv_lp_term *all = calloc(SIDE * SIDE, sizeof *all), row[SIDE];
        for (size_t j = 0; j < SIDE * SIDE; j++) {
            all[j] = (struct hv_lp_term){add_var(lp, 0, HUGE_VAL, false), 1};
        }
        for (size_t way = 0; way < 2 * SIDE; way++) {
            for (size_t k = 0; k < SIDE; k++) {
                size_t at = way < SIDE ? way * SIDE + k : k * SIDE + way - SIDE;
                row[k] = (struct hv_lp_term){at, 0.7 + 0.01 * (double)(way % 7)};
            }
            add_row(lp, row, SIDE, HV_LP_LE, 1.1);
        }
        for (size_t k = 0; k < 400; k++) {
            add_row(lp, (struct hv_lp_term[]){{k, 1}, {k + 400, 1}}, 2, HV_LP_LE, 1.3);
        }
        if (much) {
            add_row(lp, all, SIDE, HV_LP_GE, 2);
        }
        assert_int_equal(hv_lp_set_objective(lp, all, SIDE * SIDE, NULL), HV_OK);
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
        assert_int_equal(r.outcome, much ? HV_LP_INFEASIBLE : HV_LP_OPTIMAL);
        assert_true(r.proven == !much);
        hv_lp_result_free(&r);
        hv_lp_free(lp);
        free(all);
    }
}

/** A tree that knows a point and finds a ray says so, also where its limits end the search for
 * another point: this one has none without branching. */
static void a_known_point_and_a_ray_are_unbounded(void **state)
{
    (void)state;
    const struct hv__branch_limits limits = {.work = 1e9, .max_nodes = 1};
    const double start[] = {2, 1};
    struct hv_lp *lp = hv_lp_new(HV_LP_MAX);
    struct hv__branch b;
    size_t x = add_var(lp, 0, HUGE_VAL, true), y = add_var(lp, 0, HUGE_VAL, true);
    add_row(lp, (struct hv_lp_term[]){{x, 2}, {y, -3}}, 2, HV_LP_GE, 1);
    assert_int_equal(hv_lp_set_objective(lp, (struct hv_lp_term[]){{x, 1}}, 1, NULL), HV_OK);
    hv__branch_solve(lp, &limits, start, &b);
    assert_int_equal(b.outcome, HV_LP_UNBOUNDED);
    hv__branch_free(&b);
    hv__branch_solve(lp, &limits, NULL, &b);
    assert_int_equal(b.outcome, HV_LP_FAILED);
    assert_null(b.x);
    hv__branch_free(&b);
    hv_lp_free(lp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_wrong_answer_is_right),
        cmocka_unit_test(hopeless_models_are_infeasible),
        cmocka_unit_test(bad_numbers_are_refused),
        cmocka_unit_test(equal_terms_are_added_up),
        cmocka_unit_test(duals_of_a_small_lp),
        cmocka_unit_test(ranges_of_a_small_lp),
        cmocka_unit_test(ranges_do_not_depend_on_units),
        cmocka_unit_test(ranges_end_where_answers_change),
        cmocka_unit_test(ordered_sets_allow_neighbours_only),
        cmocka_unit_test(bad_sets_are_refused),
        cmocka_unit_test(cancel_ends_a_solve),
        cmocka_unit_test(cancel_ends_a_solve_at_any_question),
        cmocka_unit_test(spread_coefficients_are_solved),
        cmocka_unit_test(decimal_equations_hold),
        cmocka_unit_test(integers_without_an_optimum),
        cmocka_unit_test(a_known_point_and_a_ray_are_unbounded),
        cmocka_unit_test(divisors_decide_equations),
        cmocka_unit_test(a_gap_is_no_proof),
        cmocka_unit_test(extreme_numbers_end),
        cmocka_unit_test(large_programs_are_certified),
        cmocka_unit_test(random_programs_match_enumeration),
        cmocka_unit_test(min_max_chains_are_never_wrongly_proven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
