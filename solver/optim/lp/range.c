/*
 * Sensitivity: the range of a cost in which the point of a linear program stays optimal, and that
 * of a right-hand side in which its duals stay the prices. Not here: lp_solve (lp.c), whose own
 * ranges are not used.
 *
 * A point x and prices y are optimal together exactly when both are feasible and complementary: a
 * row with a price is tight, a variable with a reduced cost is at its bound. With y kept, the
 * right-hand sides that allow such an x are an interval, and its ends are linear programs; with x
 * kept, so are the costs that allow such prices.
 */
#include "solver/base/units.h"
#include "solver/optim/lp/lp_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAR 1e5 /* times the number, or the largest of its kind: no end */
/* Ends are rounded to multiples of 1 / GRID: what is behind that are lp_solve's last digits. */
#define GRID  0x1p30
#define TIGHT 1e-7 /* relative: a price is 0, a row is tight, a variable is at its bound */

/* The program whose ranges are computed. */
struct probe {
    const struct hv_lp *lp;
    const struct hv_lp_result *r;
    const struct hv_lp_limits *limits;
    struct timespec start;
    struct hv__lp_entry *entries; /* by column, see hv__lp_columns */
    size_t *at;
    double sign;              /* 1 for a minimum, -1 for a maximum */
    double no_price, no_cost; /* up to here a dual or a reduced cost counts as 0 */
    /* The programs are in units of the largest cost, and of the largest right-hand side or value:
     * lp_solve's tolerances are absolute. */
    double cost_unit, value_unit;
};

/* True where the value is at this bound. */
static bool near(const struct probe *q, double x, double bound)
{
    return isfinite(bound) && fabs(x - bound) <= TIGHT * (q->value_unit + fabs(bound));
}

/* A power of two near x, 1 for 0. */
static double unit_near(double x)
{
    return x > 0 ? exp2(nearbyint(log2(x))) : 1;
}

static void find_scales(struct probe *q)
{
    double price = 0, cost = 0, value = 0;
    for (size_t i = 0; i < q->lp->rows.n; i++) {
        price = fmax(price, fabs(q->r->duals[i]));
        value = fmax(value, fabs(q->lp->rows.items[i].rhs));
    }
    for (size_t j = 0; j < q->lp->vars.n; j++) {
        cost = fmax(cost, fabs(q->lp->vars.items[j].cost));
        value = fmax(value, fabs(q->r->x[j]));
    }
    q->no_price = TIGHT * price;
    q->no_cost = TIGHT * cost;
    q->cost_unit = unit_near(cost);
    q->value_unit = unit_near(value);
}

/* The rest of the deadline; the other limits as they are. */
static bool rest_of(const struct probe *q, struct hv_lp_limits *out)
{
    struct timespec now;
    *out = *q->limits;
    out->gap = 0;
    if (out->deadline_s > 0) {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        out->deadline_s -= (double)(now.tv_sec - q->start.tv_sec) +
                           1e-9 * (double)(now.tv_nsec - q->start.tv_nsec);
        if (out->deadline_s <= 0) {
            return false;
        }
    }
    return !(out->cancel && out->cancel(out->ctx));
}

/* Largest and smallest shift in a program built for both; variable `shift` lies within ±far. */
static struct hv_lp_range ends(const struct probe *q, struct hv_lp *lp, size_t shift, double far)
{
    double end[2] = {HV_UNKNOWN, HV_UNKNOWN};
    for (int k = 0; k < 2; k++) {
        struct hv_lp_limits limits;
        struct hv_lp_result r = {0};
        const struct hv_lp_term objective = {shift, 1};
        lp->sense = k ? HV_LP_MAX : HV_LP_MIN;
        if (!rest_of(q, &limits) || hv_lp_set_objective(lp, &objective, 1, NULL) != HV_OK ||
            hv_lp_solve(lp, &limits, &r, NULL) != HV_OK) {
            continue;
        }
        if (r.proven) {
            end[k] = fabs(r.objective) > far * (1 - 1e-6) ? copysign(HUGE_VAL, r.objective)
                                                          : nearbyint(r.objective * GRID) / GRID;
        }
        hv_lp_result_free(&r);
    }
    return (struct hv_lp_range){end[0], end[1]};
}

/* The point's program for row i: rows with a price are tight, variables with a reduced cost stay;
 * the row's right-hand side moves by the last variable. */
static enum hv_status build_for_row(const struct probe *q, size_t i, double far, struct hv_lp *lp,
                                    size_t *shift)
{
    enum hv_status st = HV_OK;
    struct hv_lp_term *t = hv_xcalloc(q->lp->vars.n + 2, sizeof *t);
    for (size_t j = 0; j < q->lp->vars.n && st == HV_OK; j++) {
        const struct hv__lp_var *v = &q->lp->vars.items[j];
        double d = q->sign * q->r->reduced[j], lo = v->lower, hi = v->upper;
        if (fabs(d) > q->no_cost) {
            lo = hi = d > 0 ? v->lower : v->upper;
        }
        st = isinf(lo) && lo == hi
                 ? HV_EINPUT
                 : hv_lp_add_var(lp, lo / q->value_unit, hi / q->value_unit, false, NULL, NULL);
    }
    if (st == HV_OK) {
        st = hv_lp_add_var(lp, -far, far, false, shift, NULL);
    }
    for (size_t k = 0; k < q->lp->rows.n && st == HV_OK; k++) {
        const struct hv__lp_row *r = &q->lp->rows.items[k];
        size_t n = r->n;
        if (n) {
            memcpy(t, q->lp->terms.items + r->first, n * sizeof *t);
        }
        if (k == i) {
            t[n++] = (struct hv_lp_term){*shift, -1};
        }
        bool priced = fabs(q->r->duals[k]) > q->no_price;
        st = hv_lp_add_row(lp, t, n, priced ? HV_LP_EQ : r->op, r->rhs / q->value_unit, NULL);
    }
    free(t);
    return st;
}

/* The prices of rows that are tight at x: free, or of one sign; other rows have none. */
static enum hv_status add_prices(const struct probe *q, struct hv_lp *lp)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < q->lp->rows.n && st == HV_OK; i++) {
        const struct hv__lp_row *r = &q->lp->rows.items[i];
        double left = 0, size = fabs(r->rhs), lo = -HUGE_VAL, hi = HUGE_VAL;
        for (size_t k = r->first; k < r->first + r->n; k++) {
            double part = q->lp->terms.items[k].coef * q->r->x[q->lp->terms.items[k].var];
            left += part;
            size = fmax(size, fabs(part));
        }
        bool tight = fabs(left - r->rhs) <= TIGHT * size;
        if (!tight && r->op != HV_LP_EQ) {
            lo = hi = 0;
        } else if (r->op != HV_LP_EQ && (r->op == HV_LP_LE) == (q->sign > 0)) {
            hi = 0;
        } else if (r->op != HV_LP_EQ) {
            lo = 0;
        }
        st = hv_lp_add_var(lp, lo, hi, false, NULL, NULL);
    }
    return st;
}

/* The prices' program for variable j: what a variable costs beyond its prices is 0 inside its
 * bounds and pushes against the bound it is at; the cost of j moves by the last variable. */
static enum hv_status build_for_cost(const struct probe *q, size_t j, double far, struct hv_lp *lp,
                                     size_t *shift)
{
    struct hv_lp_term *t = hv_xcalloc(q->lp->rows.n + 2, sizeof *t);
    enum hv_status st = add_prices(q, lp);
    if (st == HV_OK) {
        st = hv_lp_add_var(lp, -far, far, false, shift, NULL);
    }
    for (size_t l = 0; l < q->lp->vars.n && st == HV_OK; l++) {
        const struct hv__lp_var *v = &q->lp->vars.items[l];
        bool low = near(q, q->r->x[l], v->lower), high = near(q, q->r->x[l], v->upper);
        size_t n = 0;
        if (low && high) {
            continue; /* a fixed variable may cost anything */
        }
        for (size_t k = q->at[l]; k < q->at[l + 1]; k++) {
            t[n++] = (struct hv_lp_term){q->entries[k].row, q->entries[k].coef};
        }
        if (l == j) {
            t[n++] = (struct hv_lp_term){*shift, -1};
        }
        enum hv_lp_op op = !low && !high ? HV_LP_EQ : low == (q->sign > 0) ? HV_LP_LE : HV_LP_GE;
        st = hv_lp_add_row(lp, t, n, op, v->cost / q->cost_unit, NULL);
    }
    free(t);
    return st;
}

/* One range: `base` moved by the ends of its program. */
static struct hv_lp_range range_of(const struct probe *q, size_t index, double base, bool is_row)
{
    size_t shift = 0;
    double unit = is_row ? q->value_unit : q->cost_unit, far = FAR * (1 + fabs(base) / unit);
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    struct hv_lp_range out = {HV_UNKNOWN, HV_UNKNOWN};
    enum hv_status st = is_row ? build_for_row(q, index, far, lp, &shift)
                               : build_for_cost(q, index, far, lp, &shift);
    if (st == HV_OK) {
        out = ends(q, lp, shift, far);
    }
    hv_lp_free(lp);
    /* the number itself belongs to its range, also with rounding errors */
    out.from = out.from > 0 ? base : base + unit * out.from;
    out.till = out.till < 0 ? base : base + unit * out.till;
    return out;
}

static bool known(struct hv_lp_range r)
{
    return hv_known(r.from) && hv_known(r.till);
}

enum hv_status hv_lp_ranges(const struct hv_lp *lp, const struct hv_lp_result *r,
                            const struct hv_lp_limits *limits, struct hv_lp_ranges *out,
                            struct hv_err *err)
{
    static const struct hv_lp_limits no_limits = {0};
    memset(out, 0, sizeof *out);
    if (lp->has_integers) {
        return hv_err_set(err, HV_EUSAGE,
                          "ranges exist for linear programs; this one has integer variables");
    }
    if (!r->proven || !r->duals || r->n_vars != lp->vars.n || r->n_rows != lp->rows.n) {
        return hv_err_set(err, HV_EUSAGE, "ranges need a proven answer of the same model");
    }
    struct probe q = {.lp = lp,
                      .r = r,
                      .limits = limits ? limits : &no_limits,
                      .sign = lp->sense == HV_LP_MIN ? 1 : -1};
    (void)clock_gettime(CLOCK_MONOTONIC, &q.start);
    find_scales(&q);
    q.at = hv_xcalloc(lp->vars.n + 3, sizeof *q.at);
    q.entries = hv__lp_columns(lp, q.at);
    out->n_vars = lp->vars.n;
    out->n_rows = lp->rows.n;
    out->cost = hv_xcalloc(lp->vars.n + 1, sizeof *out->cost);
    out->rhs = hv_xcalloc(lp->rows.n + 1, sizeof *out->rhs);
    out->complete = true;
    for (size_t j = 0; j < lp->vars.n; j++) {
        out->cost[j] = range_of(&q, j, lp->vars.items[j].cost, false);
        out->complete = out->complete && known(out->cost[j]);
    }
    for (size_t i = 0; i < lp->rows.n; i++) {
        out->rhs[i] = range_of(&q, i, lp->rows.items[i].rhs, true);
        out->complete = out->complete && known(out->rhs[i]);
    }
    free(q.at);
    free(q.entries);
    return HV_OK;
}

void hv_lp_ranges_free(struct hv_lp_ranges *r)
{
    free(r->cost);
    free(r->rhs);
    memset(r, 0, sizeof *r);
}
