/*
 * The LP model: building it with checks, its objective, scaling.
 * Not here: anything that calls lp_solve (lp.c), certificates (certificate.c), text (write.c).
 */
#include "solver/base/units.h"
#include "solver/optim/lp/lp.h"
#include "solver/optim/lp/lp_int.h"
#include <math.h>
#include <stdlib.h>

#define LIMIT_VARS  ((size_t)4 << 20)
#define LIMIT_TERMS ((size_t)64 << 20)
#define WHOLE       1e-9 /* how far a bound of an integer variable may miss a whole number */

struct hv_lp *hv_lp_new(enum hv_lp_sense sense)
{
    struct hv_lp *lp = hv_xcalloc(1, sizeof *lp);
    lp->sense = sense;
    return lp;
}

void hv_lp_free(struct hv_lp *lp)
{
    if (!lp) {
        return;
    }
    hv_vec_free(&lp->vars);
    hv_vec_free(&lp->rows);
    hv_vec_free(&lp->terms);
    free(lp);
}

enum hv_status hv_lp_add_var(struct hv_lp *lp, double lower, double upper, bool integer,
                             size_t *out, struct hv_err *err)
{
    size_t id = lp->vars.n;
    if (isnan(lower) || isnan(upper)) {
        return hv_err_set(err, HV_EINPUT, "variable %zu: expected bounds, found NaN", id + 1);
    }
    if ((isinf(lower) && lower > 0) || (isinf(upper) && upper < 0)) {
        return hv_err_set(err, HV_EINPUT,
                          "variable %zu: a lower bound of +inf or an upper bound of -inf leaves no "
                          "value",
                          id + 1);
    }
    if (id >= LIMIT_VARS) {
        return hv_err_set(err, HV_ELIMIT, "a model may have at most %zu variables", LIMIT_VARS);
    }
    if (integer) {
        lower = ceil(lower - WHOLE);
        upper = floor(upper + WHOLE);
        lp->has_integers = true;
    }
    hv_vec_push(&lp->vars, (struct hv__lp_var){lower, upper, 0, integer});
    if (out) {
        *out = id;
    }
    return HV_OK;
}

static int by_var(const void *pa, const void *pb)
{
    const struct hv_lp_term *a = pa, *b = pb;
    return (a->var > b->var) - (a->var < b->var);
}

static enum hv_status check_terms(const struct hv_lp *lp, const struct hv_lp_term *terms, size_t n,
                                  struct hv_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (terms[i].var >= lp->vars.n) {
            return hv_err_set(err, HV_EINPUT,
                              "term %zu names variable %zu, but the model has %zu variables", i + 1,
                              terms[i].var + 1, lp->vars.n);
        }
        if (!isfinite(terms[i].coef)) {
            return hv_err_set(err, HV_EINPUT, "term %zu: expected a finite coefficient, found %g",
                              i + 1, terms[i].coef);
        }
    }
    if (n > LIMIT_TERMS - lp->terms.n) {
        return hv_err_set(err, HV_ELIMIT, "a model may have at most %zu terms", LIMIT_TERMS);
    }
    return HV_OK;
}

/* Sorts the terms from `first` on by variable, adds up duplicates and drops zeros. */
static void merge_terms(struct hv_lp *lp, size_t first)
{
    struct hv_lp_term *t = lp->terms.items + first;
    size_t n = lp->terms.n - first, kept = 0;
    qsort(t, n, sizeof *t, by_var);
    for (size_t i = 0; i < n;) {
        struct hv_lp_term sum = t[i];
        for (i++; i < n && t[i].var == sum.var; i++) {
            sum.coef += t[i].coef;
        }
        if (sum.coef != 0) {
            t[kept++] = sum;
        }
    }
    lp->terms.n = first + kept;
}

enum hv_status hv_lp_add_row(struct hv_lp *lp, const struct hv_lp_term *terms, size_t n,
                             enum hv_lp_op op, double rhs, struct hv_err *err)
{
    enum hv_status st = check_terms(lp, terms, n, err);
    if (st != HV_OK) {
        return st;
    }
    if (!isfinite(rhs)) {
        return hv_err_set(err, HV_EINPUT, "row %zu: expected a finite right-hand side, found %g",
                          lp->rows.n + 1, rhs);
    }
    size_t first = lp->terms.n;
    for (size_t i = 0; i < n; i++) {
        hv_vec_push(&lp->terms, terms[i]);
    }
    if (n) {
        merge_terms(lp, first);
    }
    for (size_t i = first; i < lp->terms.n; i++) {
        if (isfinite(lp->terms.items[i].coef)) {
            continue;
        }
        lp->terms.n = first;
        return hv_err_set(err, HV_EINPUT, "row %zu: the sum of equal terms is not finite",
                          lp->rows.n + 1);
    }
    hv_vec_push(&lp->rows, (struct hv__lp_row){first, lp->terms.n - first, op, rhs});
    return HV_OK;
}

enum hv_status hv_lp_add_max_row(struct hv_lp *lp, size_t top, const struct hv_lp_term *terms,
                                 size_t n, double constant, struct hv_err *err)
{
    struct hv_lp_term *all = hv_xcalloc(n + 1, sizeof *all);
    all[0] = (struct hv_lp_term){top, 1};
    for (size_t i = 0; i < n; i++) {
        all[i + 1] = (struct hv_lp_term){terms[i].var, -terms[i].coef};
    }
    enum hv_status st = hv_lp_add_row(lp, all, n + 1, HV_LP_GE, constant, err);
    free(all);
    return st;
}

enum hv_status hv_lp_set_objective(struct hv_lp *lp, const struct hv_lp_term *terms, size_t n,
                                   struct hv_err *err)
{
    enum hv_status st = check_terms(lp, terms, n, err);
    if (st != HV_OK) {
        return st;
    }
    for (size_t j = 0; j < lp->vars.n; j++) {
        lp->vars.items[j].cost = 0;
    }
    for (size_t i = 0; i < n; i++) {
        lp->vars.items[terms[i].var].cost += terms[i].coef;
    }
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(lp->vars.items[terms[i].var].cost)) {
            return hv_err_set(err, HV_EINPUT, "objective: the sum of equal terms is not finite");
        }
    }
    return HV_OK;
}

size_t hv_lp_n_vars(const struct hv_lp *lp)
{
    return lp->vars.n;
}

/* True for an equation of integer variables with whole coefficients whose greatest common divisor
 * does not divide the right-hand side: no branching on variables without bounds would end. */
static bool has_no_whole_solution(const struct hv_lp *lp, const struct hv__lp_row *r)
{
    double divisor = 0;
    if (r->op != HV_LP_EQ) {
        return false;
    }
    for (size_t k = r->first; k < r->first + r->n; k++) {
        const struct hv_lp_term *t = &lp->terms.items[k];
        double a = fabs(t->coef), b = divisor;
        if (!lp->vars.items[t->var].integer || a != nearbyint(a) || a > 0x1p53) {
            return false;
        }
        while (b != 0) { /* Euclid; fmod is exact */
            double rest = fmod(a, b);
            a = b;
            b = rest;
        }
        divisor = a;
    }
    double rest = divisor > 0 ? fabs(fmod(r->rhs, divisor)) : 0;
    return fmin(rest, divisor - rest) > HV__LP_MARGIN * fabs(r->rhs);
}

bool hv__lp_is_hopeless(const struct hv_lp *lp)
{
    for (size_t j = 0; j < lp->vars.n; j++) {
        if (lp->vars.items[j].lower > lp->vars.items[j].upper) {
            return true;
        }
    }
    for (size_t i = 0; i < lp->rows.n; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        bool wrong = r->op == HV_LP_EQ ? r->rhs != 0 : r->op == HV_LP_LE ? r->rhs < 0 : r->rhs > 0;
        if (r->n ? has_no_whole_solution(lp, r) : wrong) {
            return true;
        }
    }
    return false;
}

double hv__lp_value(const struct hv_lp *lp, const double *x)
{
    double v = 0;
    for (size_t j = 0; j < lp->vars.n; j++) {
        v += lp->vars.items[j].cost * x[j];
    }
    return v;
}

/* The power of two nearest to 1 / x in the logarithm; 1 for 0 and infinity. */
static double inverse_power(double x)
{
    return x > 0 && isfinite(x) ? exp2(-nearbyint(log2(x))) : 1;
}

static bool needs_scaling(const struct hv_lp *lp)
{
    double lo = HUGE_VAL, hi = 0;
    for (size_t k = 0; k < lp->terms.n; k++) {
        double c = fabs(lp->terms.items[k].coef);
        lo = fmin(lo, c);
        hi = fmax(hi, c);
    }
    for (size_t j = 0; j < lp->vars.n; j++) {
        double c = fabs(lp->vars.items[j].cost);
        if (c > 0) {
            lo = fmin(lo, c);
            hi = fmax(hi, c);
        }
    }
    return hi > 1e4 || lo < 1e-4;
}

/* One round: every row's geometric middle to 1, then every column's. */
static void scale_once(const struct hv_lp *lp, bool integers, struct hv__lp_scale *s, double *lo,
                       double *hi)
{
    for (size_t j = 0; j < lp->vars.n; j++) {
        lo[j] = HUGE_VAL;
        hi[j] = 0;
    }
    for (size_t i = 0; i < lp->rows.n; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        const struct hv_lp_term *t = lp->terms.items + r->first;
        double small = HUGE_VAL, big = 0;
        for (size_t k = 0; k < r->n; k++) {
            double c = fabs(t[k].coef) * s->col[t[k].var];
            small = fmin(small, c);
            big = fmax(big, c);
        }
        s->row[i] = r->n ? inverse_power(sqrt(small) * sqrt(big)) : 1;
        for (size_t k = 0; k < r->n; k++) {
            double c = fabs(t[k].coef) * s->row[i];
            lo[t[k].var] = fmin(lo[t[k].var], c);
            hi[t[k].var] = fmax(hi[t[k].var], c);
        }
    }
    for (size_t j = 0; j < lp->vars.n; j++) {
        if ((integers || !lp->vars.items[j].integer) && hi[j] > 0) {
            s->col[j] = inverse_power(sqrt(lo[j]) * sqrt(hi[j]));
        }
    }
}

static void set_ones(const struct hv_lp *lp, struct hv__lp_scale *s)
{
    s->objective = 1;
    for (size_t i = 0; i < lp->rows.n; i++) {
        s->row[i] = 1;
    }
    for (size_t j = 0; j < lp->vars.n; j++) {
        s->col[j] = 1;
    }
}

void hv__lp_scale_all(const struct hv_lp *lp, bool integers, struct hv__lp_scale *s)
{
    size_t n = lp->vars.n;
    double *lo = hv_xcalloc(n + 1, sizeof *lo), *hi = hv_xcalloc(n + 1, sizeof *hi), big = 0;
    set_ones(lp, s);
    for (int round = 0; round < 4; round++) {
        scale_once(lp, integers, s, lo, hi);
    }
    for (size_t j = 0; j < n; j++) {
        big = fmax(big, fabs(lp->vars.items[j].cost) * s->col[j]);
    }
    s->objective = inverse_power(big);
    free(lo);
    free(hi);
}

void hv__lp_scaling(const struct hv_lp *lp, struct hv__lp_scale *out)
{
    out->row = hv_xcalloc(lp->rows.n + 1, sizeof *out->row);
    out->col = hv_xcalloc(lp->vars.n + 1, sizeof *out->col);
    if (needs_scaling(lp)) {
        hv__lp_scale_all(lp, false, out);
    } else {
        set_ones(lp, out);
    }
}
