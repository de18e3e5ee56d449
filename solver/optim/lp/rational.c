/*
 * The bounded simplex method of simplex.c in exact rational numbers (GMP), without scaling and
 * without tolerances; pivots by the rule of R. Bland (Math. Oper. Res. 2, 1977), so that it ends.
 * The only file that includes GMP. Not here: the method in doubles.
 */
#include "solver/optim/lp/rational.h"
#include "solver/base/units.h"
#include "solver/optim/lp/certificate.h"
#include <gmp.h>
#include <stdlib.h>

#define CELLS_MAX 4000    /* of a tableau */
#define BITS_MAX  20000   /* of a number */
#define OPS_MAX   1000000 /* multiplications of one solve */
#define LIMBS     4       /* words of a denominator that make a multiplication twice as long */
#define OP_WORK   200     /* operations on doubles that take as long */

bool hv__rational_fits(const struct hv_lp *lp)
{
    return lp->vars.n > 0 && lp->rows.n <= CELLS_MAX / lp->vars.n;
}

/* Where a variable ends. */
struct limits {
    bool has_lo, has_hi;
    mpq_t lo, hi;
};

/* State; variables and tableau as in struct hv__simplex. */
struct exact {
    const struct hv__simplex *start;
    size_t n, m;
    mpq_t *t, *cost, *phase, *x;
    struct limits *end;
    size_t *basic, *nonbasic;
    mpq_t a, b, c; /* scratch */
    double ops;
    bool long_numbers;
};

static mpq_t *numbers(size_t n)
{
    mpq_t *q = hv_xcalloc(n + 1, sizeof *q);
    for (size_t i = 0; i < n; i++) {
        mpq_init(q[i]);
    }
    return q;
}

static void free_numbers(mpq_t *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mpq_clear(q[i]);
    }
    free(q);
}

static void set_limits(struct limits *e, double lo, double hi)
{
    mpq_init(e->lo);
    mpq_init(e->hi);
    e->has_lo = isfinite(lo);
    e->has_hi = isfinite(hi);
    if (e->has_lo) {
        mpq_set_d(e->lo, lo);
    }
    if (e->has_hi) {
        mpq_set_d(e->hi, hi);
    }
}

static void exact_init(struct exact *s, const struct hv__simplex *start, const double *lo,
                       const double *hi)
{
    const struct hv_lp *lp = start->lp;
    *s = (struct exact){.start = start, .n = start->n, .m = start->m};
    s->t = numbers(s->m * s->n);
    s->cost = numbers(s->n);
    s->phase = numbers(s->n);
    s->x = numbers(s->n + s->m);
    s->end = hv_xcalloc(s->n + s->m + 1, sizeof *s->end);
    s->basic = hv_xcalloc(s->m + 1, sizeof *s->basic);
    s->nonbasic = hv_xcalloc(s->n + 1, sizeof *s->nonbasic);
    mpq_inits(s->a, s->b, s->c, (mpq_ptr)NULL);
    for (size_t j = 0; j < s->n; j++) {
        s->nonbasic[j] = j;
        mpq_set_d(s->cost[j], hv__lp_cost(lp, j));
        set_limits(&s->end[j], lo[j], hi[j]);
    }
    for (size_t i = 0; i < s->m; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        double lower, upper;
        hv__lp_row_limits(r, &lower, &upper);
        set_limits(&s->end[s->n + i], lower, upper);
        s->basic[i] = s->n + i;
        for (size_t k = r->first; k < r->first + r->n; k++) {
            mpq_set_d(s->t[i * s->n + lp->terms.items[k].var], lp->terms.items[k].coef);
        }
    }
}

static void exact_free(struct exact *s)
{
    free_numbers(s->t, s->m * s->n);
    free_numbers(s->cost, s->n);
    free_numbers(s->phase, s->n);
    free_numbers(s->x, s->n + s->m);
    for (size_t v = 0; v < s->n + s->m; v++) {
        mpq_clears(s->end[v].lo, s->end[v].hi, (mpq_ptr)NULL);
    }
    free(s->end);
    free(s->basic);
    free(s->nonbasic);
    mpq_clears(s->a, s->b, s->c, (mpq_ptr)NULL);
}

/* to += f · by, where f is not 0. */
static void add_product(struct exact *s, mpq_t to, mpq_t f, mpq_t by)
{
    if (mpq_sgn(by) != 0) {
        mpq_mul(s->a, f, by);
        mpq_add(to, to, s->a);
        s->ops += 1 + (double)mpz_size(mpq_denref(to)) / LIMBS;
    }
}

static void turn_row(struct exact *s, mpq_t *t, mpq_t *row, size_t q)
{
    if (mpq_sgn(t[q]) == 0) {
        return;
    }
    mpq_set(s->b, t[q]);
    mpq_set_ui(t[q], 0, 1);
    for (size_t k = 0; k < s->n; k++) {
        add_product(s, t[k], s->b, row[k]);
    }
    s->long_numbers = s->long_numbers || mpz_sizeinbase(mpq_denref(t[q]), 2) > BITS_MAX ||
                      mpz_sizeinbase(mpq_numref(t[q]), 2) > BITS_MAX;
}

static void pivot(struct exact *s, size_t r, size_t q)
{
    mpq_t *row = s->t + r * s->n;
    size_t var = s->basic[r];
    mpq_inv(s->c, row[q]);
    mpq_set_si(row[q], -1, 1);
    for (size_t k = 0; k < s->n; k++) {
        if (mpq_sgn(row[k]) != 0) {
            mpq_mul(row[k], row[k], s->c);
            mpq_neg(row[k], row[k]);
        }
    }
    for (size_t i = 0; i < s->m; i++) {
        if (i != r) {
            turn_row(s, s->t + i * s->n, row, q);
        }
    }
    turn_row(s, s->cost, row, q);
    turn_row(s, s->phase, row, q);
    s->basic[r] = s->nonbasic[q];
    s->nonbasic[q] = var;
    s->ops++;
}

static bool may_go_on(const struct exact *s)
{
    const struct hv__simplex *f = s->start;
    return s->ops < OPS_MAX && !s->long_numbers && !(f->stop && f->stop(f->ctx));
}

/* Brings the structural variables that are basic in `start` into the basis, as far as there are
 * pivots. */
static void adopt(struct exact *s)
{
    bool *wanted = hv_xcalloc(s->n + s->m + 1, sizeof *wanted);
    for (size_t i = 0; i < s->m; i++) {
        wanted[s->start->basic[i]] = true;
    }
    for (size_t q = 0; q < s->n; q++) {
        size_t r = 0;
        while (wanted[q] && r < s->m &&
               (s->basic[r] < s->n || wanted[s->basic[r]] || mpq_sgn(s->t[r * s->n + q]) == 0)) {
            r++;
        }
        if (wanted[q] && r < s->m && may_go_on(s)) {
            pivot(s, r, q);
        }
    }
    free(wanted);
}

/* Nonbasic variables at the bound that their cost wants; see place() in simplex.c. */
static bool place(struct exact *s)
{
    bool all = true;
    for (size_t k = 0; k < s->n; k++) {
        size_t v = s->nonbasic[k];
        const struct limits *e = &s->end[v];
        int sign = mpq_sgn(s->cost[k]);
        mpq_set(s->phase[k], s->cost[k]);
        if ((sign > 0 && !e->has_lo) || (sign < 0 && !e->has_hi)) {
            mpq_set_ui(s->phase[k], 0, 1);
            all = false;
        }
        bool high = sign < 0 ? e->has_hi : !e->has_lo;
        if (sign == 0 && e->has_lo && e->has_hi) {
            high = fabs(s->start->x[v] - s->start->lo[v]) > fabs(s->start->hi[v] - s->start->x[v]);
        }
        if (!e->has_lo && !e->has_hi) {
            mpq_set_ui(s->x[v], 0, 1);
        } else {
            mpq_set(s->x[v], high ? e->hi : e->lo);
        }
    }
    return all;
}

static void follow(struct exact *s)
{
    for (size_t i = 0; i < s->m; i++) {
        mpq_t *x = &s->x[s->basic[i]];
        mpq_set_ui(*x, 0, 1);
        for (size_t k = 0; k < s->n; k++) {
            if (mpq_sgn(s->t[i * s->n + k]) != 0) {
                add_product(s, *x, s->t[i * s->n + k], s->x[s->nonbasic[k]]);
            }
        }
    }
}

/* 1 below the lower limit, -1 above the upper one, 0 within. */
static int missing(const struct exact *s, size_t v)
{
    const struct limits *e = &s->end[v];
    if (e->has_lo && mpq_cmp(s->x[v], e->lo) < 0) {
        return 1;
    }
    return e->has_hi && mpq_cmp(s->x[v], e->hi) > 0 ? -1 : 0;
}

static bool can_rise(const struct exact *s, size_t v)
{
    return !s->end[v].has_hi || mpq_cmp(s->x[v], s->end[v].hi) < 0;
}

static bool can_fall(const struct exact *s, size_t v)
{
    return !s->end[v].has_lo || mpq_cmp(s->x[v], s->end[v].lo) > 0;
}

/* Sets c = |num / den| and returns true when it is below b, or b is not set yet, or equal and
 * `first`. b becomes c then. */
static bool is_less(struct exact *s, mpq_t num, mpq_t den, bool none_yet, bool first)
{
    mpq_div(s->c, num, den);
    mpq_abs(s->c, s->c);
    s->ops++;
    int order = none_yet ? -1 : mpq_cmp(s->c, s->b);
    if (order < 0 || (order == 0 && first)) {
        mpq_set(s->b, s->c);
        return true;
    }
    return false;
}

static size_t dual_column(struct exact *s, size_t r, int way)
{
    size_t best = s->n;
    for (size_t k = 0; k < s->n; k++) {
        mpq_t *a = &s->t[r * s->n + k];
        int sign = way * mpq_sgn(*a);
        size_t v = s->nonbasic[k];
        if (sign == 0 || !(sign > 0 ? can_rise(s, v) : can_fall(s, v))) {
            continue;
        }
        if (is_less(s, s->phase[k], *a, best == s->n, best < s->n && v < s->nonbasic[best])) {
            best = k;
        }
    }
    return best;
}

/* Moves the nonbasic variable of column q by c, and all basic ones. */
static void move(struct exact *s, size_t q)
{
    mpq_add(s->x[s->nonbasic[q]], s->x[s->nonbasic[q]], s->c);
    for (size_t i = 0; i < s->m; i++) {
        if (mpq_sgn(s->c) != 0) {
            add_product(s, s->x[s->basic[i]], s->c, s->t[i * s->n + q]);
        }
    }
}

/* What row r misses, as a share of its largest term. */
static double margin_of(struct exact *s, size_t r)
{
    const struct limits *e = &s->end[s->basic[r]];
    int way = missing(s, s->basic[r]);
    double size = 0;
    for (size_t k = 0; k < s->n; k++) {
        mpq_mul(s->a, s->t[r * s->n + k], s->x[s->nonbasic[k]]);
        size = fmax(size, fabs(mpq_get_d(s->a)));
    }
    mpq_sub(s->a, way > 0 ? e->lo : e->hi, s->x[s->basic[r]]);
    size = fmax(size, fabs(mpq_get_d(way > 0 ? e->lo : e->hi)));
    return size > 0 ? fabs(mpq_get_d(s->a)) / size : 0;
}

static enum hv__simplex_end find_point(struct exact *s, double *margin)
{
    while (may_go_on(s)) {
        size_t r = s->m;
        for (size_t i = 0; i < s->m; i++) {
            if (missing(s, s->basic[i]) && (r == s->m || s->basic[i] < s->basic[r])) {
                r = i;
            }
        }
        if (r == s->m) {
            return HV__SIMPLEX_OPTIMAL;
        }
        size_t v = s->basic[r];
        int way = missing(s, v);
        size_t q = dual_column(s, r, way);
        if (q == s->n) {
            *margin = margin_of(s, r);
            return HV__SIMPLEX_INFEASIBLE;
        }
        mpq_sub(s->c, way > 0 ? s->end[v].lo : s->end[v].hi, s->x[v]);
        mpq_div(s->c, s->c, s->t[r * s->n + q]);
        move(s, q);
        pivot(s, r, q);
    }
    return HV__SIMPLEX_LOST;
}

/* Row of the primal ratio test; m for none; b = how far column q may go. */
static size_t primal_row(struct exact *s, size_t q, int way)
{
    size_t best = s->m;
    for (size_t i = 0; i < s->m; i++) {
        mpq_t *a = &s->t[i * s->n + q];
        int sign = way * mpq_sgn(*a);
        size_t v = s->basic[i];
        const struct limits *e = &s->end[v];
        if (sign == 0 || !(sign > 0 ? e->has_hi : e->has_lo)) {
            continue;
        }
        mpq_sub(s->a, sign > 0 ? e->hi : e->lo, s->x[v]);
        if (is_less(s, s->a, *a, best == s->m, best < s->m && v < s->basic[best])) {
            best = i;
        }
    }
    return best;
}

/* One step of the primal method in column q, which rises (way = 1) or falls; false when nothing
 * ends it. */
static bool step(struct exact *s, size_t q, int way)
{
    size_t v = s->nonbasic[q], r = primal_row(s, q, way);
    bool flips = false;
    if (s->end[v].has_lo && s->end[v].has_hi) {
        mpq_sub(s->a, s->end[v].hi, s->end[v].lo);
        flips = r == s->m || mpq_cmp(s->a, s->b) <= 0;
    }
    if (!flips && r == s->m) {
        return false;
    }
    mpq_set(s->c, flips ? s->a : s->b);
    if (way < 0) {
        mpq_neg(s->c, s->c);
    }
    move(s, q);
    if (!flips) {
        pivot(s, r, q);
    }
    return true;
}

static enum hv__simplex_end improve(struct exact *s)
{
    while (may_go_on(s)) {
        size_t q = s->n;
        for (size_t k = 0; k < s->n; k++) {
            size_t v = s->nonbasic[k];
            int sign = mpq_sgn(s->cost[k]);
            if (sign != 0 && (sign < 0 ? can_rise(s, v) : can_fall(s, v)) &&
                (q == s->n || v < s->nonbasic[q])) {
                q = k;
            }
        }
        if (q == s->n) {
            return HV__SIMPLEX_OPTIMAL;
        }
        if (!step(s, q, mpq_sgn(s->cost[q]) < 0 ? 1 : -1)) {
            return HV__SIMPLEX_UNBOUNDED;
        }
    }
    return HV__SIMPLEX_LOST;
}

/* The double nearest to q. */
static double nearest(struct exact *s, mpq_t q)
{
    double d = mpq_get_d(q), further = nextafter(d, mpq_sgn(q) < 0 ? -HUGE_VAL : HUGE_VAL);
    if (!isfinite(d) || !isfinite(further)) {
        return d;
    }
    mpq_set_d(s->a, d);
    mpq_sub(s->a, q, s->a);
    mpq_set_d(s->b, further);
    mpq_sub(s->b, q, s->b);
    mpq_abs(s->a, s->a);
    mpq_abs(s->b, s->b);
    return mpq_cmp(s->b, s->a) < 0 ? further : d;
}

/* The integer variable whose value is nearest to a half, and the whole number below it. */
static void find_split(struct exact *s, struct hv__rational *out)
{
    double most = 0;
    mpz_t whole;
    mpz_init(whole);
    out->split = s->n;
    for (size_t j = 0; j < s->n; j++) {
        mpq_t *x = &s->x[j];
        if (!s->start->lp->vars.items[j].integer || mpz_cmp_ui(mpq_denref(*x), 1) == 0) {
            continue;
        }
        mpz_fdiv_q(whole, mpq_numref(*x), mpq_denref(*x));
        mpq_set_z(s->a, whole);
        mpq_sub(s->a, *x, s->a);
        double part = mpq_get_d(s->a), even = fmin(part, 1 - part);
        if (out->split == s->n || even > most) {
            most = even;
            out->split = j;
            out->floor = mpz_get_d(whole);
        }
    }
    mpz_clear(whole);
}

/* Rounds the optimum to doubles. */
static void take(struct exact *s, struct hv__rational *out)
{
    mpq_t sum;
    mpq_init(sum);
    for (size_t j = 0; j < s->n; j++) {
        mpq_set_d(s->b, hv__lp_cost(s->start->lp, j));
        if (mpq_sgn(s->b) != 0) {
            add_product(s, sum, s->b, s->x[j]);
        }
    }
    out->value = mpq_get_d(sum);
    if (isfinite(out->value)) {
        mpq_set_d(s->b, out->value);
        out->value = mpq_cmp(s->b, sum) > 0 ? nextafter(out->value, -HUGE_VAL) : out->value;
    } else {
        out->value = -HUGE_VAL;
    }
    find_split(s, out);
    for (size_t j = 0; j < s->n; j++) {
        out->x[j] = nearest(s, s->x[j]);
    }
    for (size_t i = 0; i < s->m; i++) {
        out->y[i] = 0;
    }
    for (size_t k = 0; k < s->n; k++) {
        if (s->nonbasic[k] >= s->n) {
            out->y[s->nonbasic[k] - s->n] = nearest(s, s->cost[k]);
        }
    }
    mpq_clear(sum);
}

enum hv__simplex_end hv__rational_solve(const struct hv__simplex *start, const double *lo,
                                        const double *hi, struct hv__rational *out)
{
    struct exact s;
    exact_init(&s, start, lo, hi);
    adopt(&s);
    bool all = place(&s);
    follow(&s);
    enum hv__simplex_end end = find_point(&s, &out->margin);
    if (end == HV__SIMPLEX_OPTIMAL && !all) {
        end = improve(&s);
    }
    if (end == HV__SIMPLEX_OPTIMAL) {
        take(&s, out);
    }
    out->work = s.ops * OP_WORK;
    exact_free(&s);
    return end;
}

const char *hv_lp_exact_library(void)
{
    return gmp_version;
}
