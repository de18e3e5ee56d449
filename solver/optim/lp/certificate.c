/*
 * Certificates: points, bounds by duals, proofs that no point exists, rays. Not here: where points
 * and duals come from (lp.c, simplex.c, rational.c).
 */
#include "solver/optim/lp/certificate.h"
#include "solver/base/units.h"
#include <stdlib.h>
#include <string.h>

#define ROUNDS 4 /* of implied bounds */

double hv__lp_cost(const struct hv_lp *lp, size_t j)
{
    return lp->sense == HV_LP_MIN ? lp->vars.items[j].cost : -lp->vars.items[j].cost;
}

void hv__lp_row_limits(const struct hv__lp_row *r, double *lower, double *upper)
{
    *lower = r->op == HV_LP_LE ? -HUGE_VAL : r->rhs;
    *upper = r->op == HV_LP_GE ? HUGE_VAL : r->rhs;
}

static bool row_holds(const struct hv_lp *lp, const struct hv__lp_row *r, const double *x,
                      struct hv__lp_tolerance tolerance)
{
    struct hv__sum s = {0};
    double size = fabs(r->rhs);
    bool whole = true;
    hv__sum_add(&s, -1, r->rhs);
    for (size_t k = r->first; k < r->first + r->n; k++) {
        const struct hv_lp_term *t = &lp->terms.items[k];
        hv__sum_add(&s, t->coef, x[t->var]);
        size = fmax(size, fabs(t->coef * x[t->var]));
        whole = whole && lp->vars.items[t->var].integer;
    }
    double left = s.hi + s.lo, over = r->op == HV_LP_EQ ? fabs(left) : left;
    over = r->op == HV_LP_GE ? -left : over;
    double most = size * (whole ? tolerance.whole : tolerance.mixed);
    return over <= 0 || over + hv__sum_error(&s) <= most;
}

bool hv__lp_point_holds(const struct hv_lp *lp, const double *x, struct hv__lp_tolerance t)
{
    for (size_t j = 0; j < lp->vars.n; j++) {
        const struct hv__lp_var *v = &lp->vars.items[j];
        bool in = x[j] >= v->lower && x[j] <= v->upper;
        if (v->integer && !(in && x[j] == nearbyint(x[j]) && fabs(x[j]) <= 0x1p53)) {
            return false;
        }
        if (!isfinite(x[j]) || (!in && (x[j] < v->lower - t.mixed * fabs(v->lower) ||
                                        x[j] > v->upper + t.mixed * fabs(v->upper)))) {
            return false;
        }
    }
    for (size_t i = 0; i < lp->rows.n; i++) {
        if (!row_holds(lp, &lp->rows.items[i], x, t)) {
            return false;
        }
    }
    return true;
}

static struct hv__sum min_value(const struct hv_lp *lp, const double *x)
{
    struct hv__sum s = {0};
    for (size_t j = 0; j < lp->vars.n; j++) {
        if (lp->vars.items[j].cost != 0) {
            hv__sum_add(&s, hv__lp_cost(lp, j), x[j]);
        }
    }
    return s;
}

double hv__lp_min_value(const struct hv_lp *lp, const double *x, double *size)
{
    struct hv__sum s = min_value(lp, x);
    *size = 0;
    for (size_t j = 0; j < lp->vars.n; j++) {
        *size = fmax(*size, fabs(lp->vars.items[j].cost * x[j]));
    }
    return s.hi + s.lo;
}

double hv__lp_min_value_down(const struct hv_lp *lp, const double *x)
{
    struct hv__sum s = min_value(lp, x);
    return hv__sum_down(&s);
}

void hv__lp_prover_init(struct hv__lp_prover *p, const struct hv_lp *lp)
{
    p->lp = lp;
    p->d = hv_xcalloc(lp->vars.n + 1, sizeof *p->d);
    p->far_lo = hv_xcalloc(lp->vars.n + 1, sizeof *p->far_lo);
    p->far_hi = hv_xcalloc(lp->vars.n + 1, sizeof *p->far_hi);
    p->size = 0;
    hv__lp_prover_reach(p, HUGE_VAL);
}

void hv__lp_prover_free(struct hv__lp_prover *p)
{
    free(p->d);
    free(p->far_lo);
    free(p->far_hi);
    memset(p, 0, sizeof *p);
}

/* A constraint Σ sign · coef · x ≤ most; for the objective the terms are all variables. */
struct limit {
    const struct hv_lp_term *terms;
    size_t n;
    double sign, most;
};

static struct hv_lp_term term_of(const struct hv__lp_prover *p, const struct limit *l, size_t k)
{
    struct hv_lp_term t = l->terms ? l->terms[k] : (struct hv_lp_term){k, hv__lp_cost(p->lp, k)};
    t.coef *= l->sign;
    return t;
}

/* Bounds that one constraint implies for variables without one. True when there is a new one. */
static bool imply(struct hv__lp_prover *p, const struct limit *l)
{
    double least = 0, size = fabs(l->most);
    size_t open = 0;
    bool any = false;
    for (size_t k = 0; k < l->n; k++) {
        struct hv_lp_term t = term_of(p, l, k);
        double at = t.coef > 0 ? p->far_lo[t.var] : p->far_hi[t.var];
        if (t.coef != 0 && isinf(at)) {
            open++;
        } else if (t.coef != 0) {
            least += t.coef * at;
            size += fabs(t.coef * at);
        }
    }
    for (size_t k = 0; k < l->n && open <= 1; k++) {
        struct hv_lp_term t = term_of(p, l, k);
        double *end = t.coef > 0 ? &p->far_hi[t.var] : &p->far_lo[t.var];
        double at = t.coef > 0 ? p->far_lo[t.var] : p->far_hi[t.var];
        if (t.coef == 0 || !isinf(*end) || (open == 1 && !isinf(at))) {
            continue;
        }
        double rest = isinf(at) ? least : least - t.coef * at;
        double room = l->most - rest + 0x1p-50 * (double)(l->n + 4) * size;
        double value = room / t.coef;
        value += copysign(0x1p-50 * fabs(value) + 0x1p-900, t.coef);
        if (isfinite(value)) {
            *end = value;
            any = true;
        }
    }
    return any;
}

void hv__lp_prover_reach(struct hv__lp_prover *p, double cutoff)
{
    const struct hv_lp *lp = p->lp;
    bool open = false, any = true;
    for (size_t j = 0; j < lp->vars.n; j++) {
        p->far_lo[j] = lp->vars.items[j].lower;
        p->far_hi[j] = lp->vars.items[j].upper;
        open = open || isinf(p->far_lo[j]) || isinf(p->far_hi[j]);
    }
    for (int round = 0; round < ROUNDS && open && any; round++) {
        any = false;
        for (size_t i = 0; i < lp->rows.n; i++) {
            const struct hv__lp_row *r = &lp->rows.items[i];
            struct limit l = {lp->terms.items + r->first, r->n, 1, r->rhs};
            any = (r->n > 0 && r->op != HV_LP_GE && imply(p, &l)) || any;
            l.sign = -1;
            l.most = -r->rhs;
            any = (r->n > 0 && r->op != HV_LP_LE && imply(p, &l)) || any;
        }
        const struct limit better = {NULL, lp->vars.n, 1, cutoff};
        any = (isfinite(cutoff) && imply(p, &better)) || any;
    }
}

/* Adds the least of d · x over the interval of x; false when it has no limit. */
static bool add_column(struct hv__sum *bound, const struct hv__sum *d, double lo, double hi,
                       double *error, double *size)
{
    double v = d->hi + d->lo, e = hv__sum_error(d), at = v > 0 ? lo : hi;
    if (v == 0 && e == 0) {
        return true;
    }
    if (fabs(v) <= 2 * e) { /* either sign */
        double most = (fabs(v) + e) * fmax(fabs(lo), fabs(hi));
        *error += most * (1 + 0x1p-50);
        return isfinite(most);
    }
    if (isinf(at)) {
        return false;
    }
    hv__sum_add(bound, d->hi, at);
    hv__sum_add(bound, d->lo, at);
    *error += e * fabs(at) * (1 + 0x1p-50);
    *size = fmax(*size, fabs(v * at));
    return true;
}

double hv__lp_safe_bound(struct hv__lp_prover *p, const double *y, const double *lo,
                         const double *hi, bool no_cost)
{
    const struct hv_lp *lp = p->lp;
    struct hv__sum bound = {0};
    double error = 0, size = 0;
    memset(p->d, 0, lp->vars.n * sizeof *p->d);
    for (size_t j = 0; j < lp->vars.n && !no_cost; j++) {
        if (lp->vars.items[j].cost != 0) {
            hv__sum_add(&p->d[j], 1, hv__lp_cost(lp, j));
        }
    }
    for (size_t i = 0; i < lp->rows.n; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        bool useful = isfinite(y[i]) && (r->op == HV_LP_EQ || (y[i] > 0) == (r->op == HV_LP_GE));
        if (y[i] == 0 || !useful) {
            continue;
        }
        hv__sum_add(&bound, y[i], r->rhs);
        size = fmax(size, fabs(y[i] * r->rhs));
        for (size_t k = r->first; k < r->first + r->n; k++) {
            hv__sum_add(&p->d[lp->terms.items[k].var], -y[i], lp->terms.items[k].coef);
        }
    }
    bool limited = true;
    for (size_t j = 0; j < lp->vars.n && limited; j++) {
        double a = isinf(lo[j]) ? p->far_lo[j] : lo[j], b = isinf(hi[j]) ? p->far_hi[j] : hi[j];
        limited = add_column(&bound, &p->d[j], a, b, &error, &size);
    }
    double v = hv__sum_down(&bound) - error;
    p->size = size;
    v = error > 0 ? v - 0x1p-52 * fabs(v) : v;
    return limited && !isnan(v) ? v : -HUGE_VAL;
}

bool hv__lp_no_point(struct hv__lp_prover *p, const double *y, const double *lo, const double *hi)
{
    double v = hv__lp_safe_bound(p, y, lo, hi, true);
    return v > HV__LP_MARGIN * p->size;
}

void hv__lp_reduced_costs(const struct hv_lp *lp, const double *duals, double *out)
{
    for (size_t j = 0; j < lp->vars.n; j++) {
        out[j] = lp->vars.items[j].cost;
    }
    for (size_t i = 0; i < lp->rows.n; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        for (size_t k = r->first; k < r->first + r->n; k++) {
            out[lp->terms.items[k].var] -= duals[i] * lp->terms.items[k].coef;
        }
    }
}

bool hv__lp_is_ray(const struct hv_lp *lp, const double *ray)
{
    struct hv__sum cost = {0};
    for (size_t j = 0; j < lp->vars.n; j++) {
        const struct hv__lp_var *v = &lp->vars.items[j];
        if (!isfinite(ray[j]) || (ray[j] > 0 && !isinf(v->upper)) ||
            (ray[j] < 0 && !isinf(v->lower))) {
            return false;
        }
        hv__sum_add(&cost, hv__lp_cost(lp, j), ray[j]);
    }
    for (size_t i = 0; i < lp->rows.n; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        struct hv__sum s = {0};
        for (size_t k = r->first; k < r->first + r->n; k++) {
            hv__sum_add(&s, lp->terms.items[k].coef, ray[lp->terms.items[k].var]);
        }
        double v = s.hi + s.lo, e = hv__sum_error(&s);
        if (isnan(v) || (r->op != HV_LP_GE && v + e > 0) || (r->op != HV_LP_LE && v - e < 0)) {
            return false;
        }
    }
    return cost.hi + cost.lo + hv__sum_error(&cost) < 0;
}
