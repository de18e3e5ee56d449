/** Linear and integer programs against their exact optimum: random small ones, whose numbers spread
 * over 1 to 1e9, solved by enumeration of integers and vertices in rational numbers. With a number
 * as argument that many programs instead of the few of every test run, a second one is the seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gmp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/optim/lp/lp.h"

enum { VARS = 6, FREE = 3, ROWS = 4, SIDES = ROWS + 2 * FREE, DECADES = 10, FEW = 5000 };

static int wanted;
static unsigned seed = 1;

/** A program with the integer variables first. */
struct program {
    size_t n, n_int, m;
    double coef[ROWS][VARS], rhs[ROWS], cost[VARS], lo[VARS], hi[VARS];
    enum hv_lp_op op[ROWS];
    enum hv_lp_sense sense;
    bool open[VARS]; /* a row of its own bounds the variable from above */
    bool decimal;
};

/** Exact answer of a program. */
struct exact {
    bool feasible, unbounded;
    mpq_t best;
};

/** Numbers of the enumeration: sides are "Σ a x ≤ b", or equal. */
struct sides {
    size_t k, n;
    bool equal[SIDES];
    mpq_t a[SIDES][FREE], b[SIDES], c[FREE], base, work[FREE][FREE + 1], x[FREE], t, u, far;
};

/** Numbers of an answer by decade of the spread. */
struct tally {
    long runs, integer, solved, proven, none, none_found, unbounded, unbounded_found;
};

static void each(struct sides *s, void (*f)(mpq_ptr))
{
    for (size_t i = 0; i < SIDES; i++) {
        for (size_t j = 0; j < FREE; j++) {
            f(s->a[i][j]);
        }
        f(s->b[i]);
    }
    for (size_t j = 0; j < FREE; j++) {
        f(s->c[j]);
        f(s->x[j]);
        for (size_t l = 0; l <= FREE; l++) {
            f(s->work[j][l]);
        }
    }
    f(s->base);
    f(s->t);
    f(s->u);
    f(s->far);
}

/** The point where the chosen sides meet; false when they do not in one. */
static bool meet(struct sides *s, const size_t *chosen)
{
    size_t k = s->k;
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j < k; j++) {
            mpq_set(s->work[i][j], s->a[chosen[i]][j]);
        }
        mpq_set(s->work[i][k], s->b[chosen[i]]);
    }
    for (size_t p = 0; p < k; p++) {
        size_t r = p;
        while (r < k && mpq_sgn(s->work[r][p]) == 0) {
            r++;
        }
        if (r == k) {
            return false;
        }
        for (size_t j = 0; j <= k && r != p; j++) {
            mpq_swap(s->work[r][j], s->work[p][j]);
        }
        for (size_t i = 0; i < k; i++) {
            if (i == p || mpq_sgn(s->work[i][p]) == 0) {
                continue;
            }
            mpq_div(s->t, s->work[i][p], s->work[p][p]);
            for (size_t j = p; j <= k; j++) {
                mpq_mul(s->u, s->t, s->work[p][j]);
                mpq_sub(s->work[i][j], s->work[i][j], s->u);
            }
        }
    }
    for (size_t p = 0; p < k; p++) {
        mpq_div(s->x[p], s->work[p][k], s->work[p][p]);
    }
    return true;
}

static bool inside(struct sides *s)
{
    for (size_t i = 0; i < s->n; i++) {
        mpq_set_ui(s->t, 0, 1);
        for (size_t j = 0; j < s->k; j++) {
            mpq_mul(s->u, s->a[i][j], s->x[j]);
            mpq_add(s->t, s->t, s->u);
        }
        int order = mpq_cmp(s->t, s->b[i]);
        if (order > 0 || (s->equal[i] && order < 0)) {
            return false;
        }
    }
    return true;
}

/** The best vertex of the continuous part, whose sides include a bound on every variable. */
static void best_vertex(struct sides *s, struct exact *out)
{
    size_t chosen[FREE] = {0};
    for (size_t j = 0; j < s->k; j++) {
        chosen[j] = j;
    }
    for (;;) {
        if (meet(s, chosen) && inside(s)) {
            mpq_set(s->t, s->base);
            for (size_t j = 0; j < s->k; j++) {
                mpq_mul(s->u, s->c[j], s->x[j]);
                mpq_add(s->t, s->t, s->u);
            }
            if (!out->feasible || mpq_cmp(s->t, out->best) < 0) {
                mpq_set(out->best, s->t);
            }
            out->feasible = true;
        }
        size_t j = s->k;
        while (j > 0 && chosen[j - 1] == s->n - s->k + j - 1) {
            j--;
        }
        if (j == 0) {
            return;
        }
        chosen[j - 1]++;
        for (; j < s->k; j++) {
            chosen[j] = chosen[j - 1] + 1;
        }
    }
}

/** One side in the continuous variables, with the integers at their values. */
static void add_side(struct sides *s, const struct program *p, size_t row, double sign,
                     const double *x)
{
    mpq_set_d(s->b[s->n], sign * p->rhs[row]);
    for (size_t j = 0; j < p->n; j++) {
        mpq_set_d(s->t, sign * p->coef[row][j]);
        if (j >= p->n_int) {
            mpq_set(s->a[s->n][j - p->n_int], s->t);
            continue;
        }
        mpq_set_d(s->u, x[j]);
        mpq_mul(s->t, s->t, s->u);
        mpq_sub(s->b[s->n], s->b[s->n], s->t);
    }
    s->equal[s->n++] = p->op[row] == HV_LP_EQ;
}

static void add_bound(struct sides *s, size_t j, int sign, double at)
{
    for (size_t l = 0; l < s->k; l++) {
        mpq_set_si(s->a[s->n][l], l == j ? sign : 0, 1);
    }
    if (isinf(at)) {
        mpq_set(s->b[s->n], s->far);
    } else {
        mpq_set_d(s->b[s->n], sign * at);
    }
    s->equal[s->n++] = false;
}

/** Sides of the continuous part for one choice of the integers. */
static void cut_out(struct sides *s, const struct program *p, const double *x)
{
    double sign = p->sense == HV_LP_MIN ? 1 : -1;
    s->n = 0;
    s->k = p->n - p->n_int;
    for (size_t i = 0; i < p->m; i++) {
        add_side(s, p, i, p->op[i] == HV_LP_GE ? -1 : 1, x);
    }
    for (size_t j = 0; j < s->k; j++) {
        add_bound(s, j, -1, p->lo[p->n_int + j]);
        add_bound(s, j, 1, p->hi[p->n_int + j]);
        mpq_set_d(s->c[j], sign * p->cost[p->n_int + j]);
    }
    mpq_set_ui(s->base, 0, 1);
    for (size_t j = 0; j < p->n_int; j++) {
        mpq_set_d(s->t, sign * p->cost[j]);
        mpq_set_d(s->u, x[j]);
        mpq_mul(s->t, s->t, s->u);
        mpq_add(s->base, s->base, s->t);
    }
}

/** The optimum of the minimum. Variables without a bound end at 10^90, far behind every vertex
 * that they do not make themselves. */
static void enumerate(const struct program *p, struct sides *s, struct exact *out)
{
    double x[VARS];
    memcpy(x, p->lo, sizeof x);
    out->feasible = false;
    for (;;) {
        cut_out(s, p, x);
        best_vertex(s, out);
        size_t j = 0;
        while (j < p->n_int && (x[j] += 1) > p->hi[j]) {
            x[j] = p->lo[j];
            j++;
        }
        if (j == p->n_int) {
            break;
        }
    }
    out->unbounded = out->feasible && fabs(mpq_get_d(out->best)) > 1e50;
}

/** A number of 14 bits, its size spread over so many decades: sums of a few are exact, so that an
 * equation holds or is far from it. */
static double number(struct hv_rng *r, double decades)
{
    double size = exp2(nearbyint(decades * log2(10) * (hv_rng_double(r) - 0.5)));
    double v = (double)(1 + hv_rng_below(r, 9999)) * 0x1p-10 * size;
    return hv_rng_below(r, 2) ? v : -v;
}

/** The same with four decimal digits, rounded to a double. */
static double decimal(struct hv_rng *r, double decades)
{
    double size = pow(10, nearbyint(decades * (hv_rng_double(r) - 0.5)));
    double v = (double)(1 + hv_rng_below(r, 9999)) / 1000 * size;
    return hv_rng_below(r, 2) ? v : -v;
}

static void make_variable(struct hv_rng *r, size_t j, struct program *p)
{
    bool integer = j < p->n_int;
    p->lo[j] = hv_rng_below(r, 4) ? 0 : -(double)hv_rng_below(r, 4);
    p->hi[j] = p->lo[j] + (double)(1 + hv_rng_below(r, 3));
    if (!integer && hv_rng_below(r, 3) == 0) {
        p->hi[j] = HUGE_VAL;
    }
    if (!integer && hv_rng_below(r, 10) == 0) {
        p->lo[j] = -HUGE_VAL;
    }
    p->open[j] = integer && hv_rng_below(r, 8) == 0;
}

static void make_row(struct hv_rng *r, double decades, size_t i, struct program *p)
{
    double (*const draw)(struct hv_rng *, double) = p->decimal ? decimal : number;
    double middle = 0;
    p->op[i] = (enum hv_lp_op)(hv_rng_below(r, 7) / 3);
    for (size_t j = 0; j < p->n; j++) {
        p->coef[i][j] = hv_rng_below(r, 4) ? draw(r, decades) : 0;
        middle += p->coef[i][j] * (isfinite(p->lo[j]) ? p->lo[j] : 0);
    }
    p->rhs[i] = hv_rng_below(r, 3) ? draw(r, decades) : 0;
    if (!p->decimal && hv_rng_below(r, 6) == 0) {
        p->rhs[i] = middle;
    }
}

static void make(struct hv_rng *r, double decades, struct program *p)
{
    memset(p, 0, sizeof *p);
    p->decimal = hv_rng_below(r, 2);
    p->sense = hv_rng_below(r, 2) ? HV_LP_MIN : HV_LP_MAX;
    p->n_int = hv_rng_below(r, 8) ? 1 + hv_rng_below(r, 3) : 0;
    size_t k = hv_rng_below(r, 8) ? hv_rng_below(r, 3) : 3;
    p->n = p->n_int + k + (p->n_int + k == 0);
    p->m = 1 + hv_rng_below(r, ROWS);
    for (size_t j = 0; j < p->n; j++) {
        make_variable(r, j, p);
        p->cost[j] = hv_rng_below(r, 5) == 0 ? 0
                     : p->decimal            ? decimal(r, decades)
                                             : number(r, decades);
    }
    for (size_t i = 0; i < p->m; i++) {
        make_row(r, decades, i, p);
    }
}

static struct hv_lp *model_of(const struct program *p)
{
    struct hv_lp *lp = hv_lp_new(p->sense);
    struct hv_lp_term t[VARS];
    for (size_t j = 0; j < p->n; j++) {
        double top = p->open[j] ? HUGE_VAL : p->hi[j];
        assert_int_equal(hv_lp_add_var(lp, p->lo[j], top, j < p->n_int, NULL, NULL), HV_OK);
        t[0] = (struct hv_lp_term){j, exp2((double)j)};
        if (p->open[j]) {
            assert_int_equal(hv_lp_add_row(lp, t, 1, HV_LP_LE, t[0].coef * p->hi[j], NULL), HV_OK);
        }
    }
    for (size_t i = 0; i <= p->m; i++) {
        for (size_t j = 0; j < p->n; j++) {
            t[j] = (struct hv_lp_term){j, i < p->m ? p->coef[i][j] : p->cost[j]};
        }
        enum hv_status st = i < p->m ? hv_lp_add_row(lp, t, p->n, p->op[i], p->rhs[i], NULL)
                                     : hv_lp_set_objective(lp, t, p->n, NULL);
        assert_int_equal(st, HV_OK);
    }
    return lp;
}

static void wrong(const struct program *p, const struct exact *e, const struct hv_lp_result *r,
                  const char *why)
{
    static const char *const outcomes[] = {"optimal",   "feasible", "infeasible",
                                           "unbounded", "stopped",  "failed"};
    struct hv_lp *lp = model_of(p);
    struct hv_str text = {0};
    hv_lp_write(lp, &text);
    double sign = p->sense == HV_LP_MIN ? 1 : -1;
    fail_msg("%s: %s, proven %d, objective %.17g, bound %.17g; exact: %s %.17g\n%s", why,
             outcomes[r->outcome], r->proven, r->objective, r->bound,
             e->unbounded  ? "unbounded"
             : e->feasible ? "optimum"
                           : "infeasible",
             e->feasible && !e->unbounded ? sign * mpq_get_d(e->best) : 0, hv_str_cstr(&text));
}

/** True when every row of the point is kept within `share` of its largest number, exactly. */
static bool holds(const struct program *p, const double *x, double share, struct sides *s)
{
    for (size_t j = 0; j < p->n; j++) {
        if (!(x[j] >= p->lo[j] && x[j] <= p->hi[j]) || (j < p->n_int && x[j] != floor(x[j]))) {
            return false;
        }
    }
    for (size_t i = 0; i < p->m; i++) {
        double size = fabs(p->rhs[i]);
        mpq_set_d(s->t, -p->rhs[i]);
        for (size_t j = 0; j < p->n; j++) {
            mpq_set_d(s->u, p->coef[i][j]);
            mpq_set_d(s->far, x[j]);
            mpq_mul(s->u, s->u, s->far);
            mpq_add(s->t, s->t, s->u);
            size = fmax(size, fabs(p->coef[i][j] * x[j]));
        }
        double over = mpq_get_d(s->t);
        over = p->op[i] == HV_LP_EQ ? fabs(over) : p->op[i] == HV_LP_GE ? -over : over;
        if (over > share * size) {
            return false;
        }
    }
    return true;
}

static void check(const struct program *p, const struct exact *e, const struct hv_lp_result *r,
                  struct sides *s)
{
    double sign = p->sense == HV_LP_MIN ? 1 : -1;
    bool has_optimum = e->feasible && !e->unbounded;
    if ((r->outcome == HV_LP_INFEASIBLE && e->feasible) ||
        (r->outcome == HV_LP_UNBOUNDED && !e->unbounded) || (r->proven && !has_optimum)) {
        wrong(p, e, r, "another outcome");
    }
    if (has_optimum && hv_known(r->bound)) {
        mpq_set_d(s->t, sign * r->bound);
        if (mpq_cmp(s->t, e->best) > 0) {
            wrong(p, e, r, "the optimum is better than the bound");
        }
    }
    if (!r->proven) {
        return;
    }
    double size = 0, best = mpq_get_d(e->best);
    for (size_t j = 0; j < p->n; j++) {
        size = fmax(size, fabs(p->cost[j]) * fmax(1e-3, fabs(r->x[j])));
    }
    if (fabs(sign * r->objective - best) > 4e-9 * fabs(best) + 1e-11 * size) {
        wrong(p, e, r, "another optimum");
    }
    if (!holds(p, r->x, p->n_int ? 1e-12 : 1e-9, s)) {
        wrong(p, e, r, "a point that breaks a row");
    }
}

static void count(const struct exact *e, const struct hv_lp_result *r, bool integer,
                  struct tally *n)
{
    n->runs++;
    n->integer += integer;
    n->solved += e->feasible && !e->unbounded;
    n->proven += r->proven;
    n->none += !e->feasible;
    n->none_found += r->outcome == HV_LP_INFEASIBLE;
    n->unbounded += e->unbounded;
    n->unbounded_found += r->outcome == HV_LP_UNBOUNDED;
}

static void answers_are_never_wrong(void **state)
{
    (void)state;
    struct hv_rng rng;
    struct sides s;
    struct exact e;
    struct tally all[DECADES] = {{0}};
    each(&s, mpq_init);
    mpq_init(e.best);
    hv_rng_seed(&rng, seed);
    for (int k = 0; k < (wanted ? wanted : FEW); k++) {
        struct program p;
        struct hv_lp_result r;
        make(&rng, (double)(k % DECADES), &p);
        mpz_ui_pow_ui(mpq_numref(s.far), 10, 90);
        mpz_set_ui(mpq_denref(s.far), 1);
        enumerate(&p, &s, &e);
        struct hv_lp *lp = model_of(&p);
        assert_int_equal(hv_lp_solve(lp, NULL, &r, NULL), HV_OK);
        check(&p, &e, &r, &s);
        count(&e, &r, p.n_int > 0, &all[k % DECADES]);
        hv_lp_result_free(&r);
        hv_lp_free(lp);
    }
    for (int d = 0; d < DECADES; d++) {
        const struct tally *n = &all[d];
        print_message("spread 1e%d: %ld cases, %ld with integers; optimum %ld, proven %ld; "
                      "infeasible %ld, certified %ld; unbounded %ld, certified %ld\n",
                      d, n->runs, n->integer, n->solved, n->proven, n->none, n->none_found,
                      n->unbounded, n->unbounded_found);
        /* a proof may be given up, but not often */
        assert_true(n->proven * 100 >= n->solved * 99);
        assert_true(n->none_found * 100 >= n->none * 99);
    }
    each(&s, mpq_clear);
    mpq_clear(e.best);
}

/** A program of middle size, in one order and unit or another. */
struct middle {
    size_t n, m;
    double coef[20][24], rhs[20], cost[24], hi[24];
    enum hv_lp_op op[20];
    bool integer[24];
};

static void make_middle(struct hv_rng *r, double decades, struct middle *p)
{
    memset(p, 0, sizeof *p);
    p->n = 6 + hv_rng_below(r, 19);
    p->m = 3 + hv_rng_below(r, 18);
    for (size_t j = 0; j < p->n; j++) {
        p->integer[j] = hv_rng_below(r, 2);
        p->hi[j] =
            hv_rng_below(r, 3) || p->integer[j] ? (double)(1 + hv_rng_below(r, 4)) : HUGE_VAL;
        p->cost[j] = number(r, decades);
    }
    for (size_t i = 0; i < p->m; i++) {
        p->op[i] = (enum hv_lp_op)(hv_rng_below(r, 7) / 3);
        for (size_t j = 0; j < p->n; j++) {
            p->coef[i][j] = hv_rng_below(r, 2) ? number(r, decades) : 0;
            p->rhs[i] += p->coef[i][j] * (double)hv_rng_below(r, 2);
        }
        p->rhs[i] +=
            p->op[i] == HV_LP_EQ ? 0 : fabs(number(r, decades)) * (p->op[i] == HV_LP_LE ? 1 : -1);
    }
}

/** The program with variables and rows shifted by `turn` places, and numbers times powers of two.
 */
static struct hv_lp *turned(const struct middle *p, size_t turn)
{
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    struct hv_lp_term t[24];
    double unit = exp2((double)turn);
    for (size_t j = 0; j < p->n; j++) {
        size_t at = (j + turn) % p->n;
        assert_int_equal(hv_lp_add_var(lp, 0, p->hi[at], p->integer[at], NULL, NULL), HV_OK);
    }
    for (size_t i = 0; i <= p->m; i++) {
        size_t row = (i + turn) % p->m;
        for (size_t j = 0; j < p->n; j++) {
            size_t at = (j + turn) % p->n;
            t[j] = (struct hv_lp_term){j, i < p->m ? unit * p->coef[row][at] : p->cost[at]};
        }
        enum hv_status st = i < p->m
                                ? hv_lp_add_row(lp, t, p->n, p->op[row], unit * p->rhs[row], NULL)
                                : hv_lp_set_objective(lp, t, p->n, NULL);
        assert_int_equal(st, HV_OK);
    }
    return lp;
}

static bool is_none(const struct hv_lp_result *r)
{
    return r->outcome == HV_LP_INFEASIBLE || r->outcome == HV_LP_UNBOUNDED;
}

/** True when what answer a certifies excludes answer b. */
static bool excludes(const struct hv_lp_result *a, const struct hv_lp_result *b)
{
    if (is_none(a)) {
        return b->x || (is_none(b) && a->outcome != b->outcome);
    }
    double slack = 1e-8 * fabs(a->objective) + 1e-12;
    return a->proven && ((b->proven && fabs(a->objective - b->objective) > slack) ||
                         (hv_known(b->bound) && b->bound > a->objective + slack));
}

/** Two ways to write a program have one answer: no proof of one says other than that of another. */
static void answers_do_not_depend_on_the_order(void **state)
{
    (void)state;
    struct hv_rng rng;
    long solved[DECADES] = {0}, proven[DECADES] = {0}, none[DECADES] = {0};
    hv_rng_seed(&rng, seed);
    for (int k = 0; k < (wanted ? wanted / 50 : 100); k++) {
        struct middle p;
        struct hv_lp_result r[2];
        make_middle(&rng, (double)(k % DECADES), &p);
        for (int w = 0; w < 2; w++) {
            struct hv_lp *lp = turned(&p, w ? 1 + hv_rng_below(&rng, p.n - 1) : 0);
            assert_int_equal(hv_lp_solve(lp, NULL, &r[w], NULL), HV_OK);
            solved[k % DECADES] += r[w].x != NULL;
            proven[k % DECADES] += r[w].proven;
            none[k % DECADES] += is_none(&r[w]);
            hv_lp_free(lp);
        }
        if (excludes(&r[0], &r[1]) || excludes(&r[1], &r[0])) {
            fail_msg("case %d: outcomes %d and %d, proven %d and %d, %.17g and %.17g", k,
                     r[0].outcome, r[1].outcome, r[0].proven, r[1].proven, r[0].objective,
                     r[1].objective);
        }
        hv_lp_result_free(&r[0]);
        hv_lp_result_free(&r[1]);
    }
    for (int d = 0; d < DECADES; d++) {
        print_message("spread 1e%d, up to 24 variables and 20 rows: cases with a point %ld, proven "
                      "%ld; without an optimum, certified, %ld\n",
                      d, solved[d], proven[d], none[d]);
        assert_true(proven[d] * 10 >= solved[d] * 9);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_never_wrong),
        cmocka_unit_test(answers_do_not_depend_on_the_order),
    };
    wanted = argc > 1 ? atoi(argv[1]) : 0;
    seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    return cmocka_run_group_tests_name("optim_lp_exact", tests, NULL, NULL);
}
