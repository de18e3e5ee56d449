/*
 * The bounded simplex method on a dense tableau: the dual method after bounds change, the primal
 * one after it. Not here: proofs (certificate.c), exact numbers (rational.c), branching (branch.c).
 *
 * A tableau whose reduced costs do not fit the bounds (the first one, usually) is made feasible by
 * the dual method with the costs at fault taken as 0, and then optimal by the primal method.
 */
#include "solver/optim/lp/simplex.h"
#include "solver/base/units.h"
#include "solver/optim/lp/certificate.h"
#include <stdlib.h>
#include <string.h>

#define CELLS_MAX 400000 /* of a tableau */
#define FEASIBLE  1e-9   /* a scaled value within its bounds */
#define SNAP      1e-12  /* a value this near to a bound is the bound */
#define PRICED    1e-9   /* a scaled reduced cost that is not 0 */
#define PIVOT     1e-9   /* the least pivot */
#define NOISE     1e-13  /* a scaled multiplier that is rounding errors only */
#define FRESH     100    /* pivots after which the tableau is made again */
#define ASK       16     /* steps between two questions to the callback */

bool hv__simplex_fits(const struct hv_lp *lp)
{
    return lp->vars.n > 0 && lp->rows.n <= CELLS_MAX / lp->vars.n;
}

/* Integers are scaled too: bounds and points are converted to the model's units. */
static void find_scales(struct hv__simplex *s)
{
    struct hv__lp_scale scale = {.row = s->row, .col = s->col};
    hv__lp_scale_all(s->lp, true, &scale);
    s->unit = scale.objective;
}

/* The tableau of the logical basis: the matrix itself. */
static void fill(struct hv__simplex *s)
{
    const struct hv_lp *lp = s->lp;
    memset(s->tableau, 0, s->m * s->n * sizeof *s->tableau);
    for (size_t i = 0; i < s->m; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        s->basic[i] = s->n + i;
        for (size_t k = r->first; k < r->first + r->n; k++) {
            size_t j = lp->terms.items[k].var;
            s->tableau[i * s->n + j] = lp->terms.items[k].coef * s->row[i] * s->col[j];
        }
    }
    for (size_t j = 0; j < s->n; j++) {
        s->nonbasic[j] = j;
        s->cost[j] = s->phase[j] = hv__lp_cost(lp, j) * s->col[j] * s->unit;
    }
    s->pivots = 0;
}

void hv__simplex_init(struct hv__simplex *s, const struct hv_lp *lp)
{
    size_t n = lp->vars.n, m = lp->rows.n;
    memset(s, 0, sizeof *s);
    s->lp = lp;
    s->n = n;
    s->m = m;
    s->tableau = hv_xcalloc(m * n + 1, sizeof *s->tableau);
    s->cost = hv_xcalloc(n + 1, sizeof *s->cost);
    s->phase = hv_xcalloc(n + 1, sizeof *s->phase);
    s->lo = hv_xcalloc(n + m + 1, sizeof *s->lo);
    s->hi = hv_xcalloc(n + m + 1, sizeof *s->hi);
    s->x = hv_xcalloc(n + m + 1, sizeof *s->x);
    s->basic = hv_xcalloc(m + 1, sizeof *s->basic);
    s->nonbasic = hv_xcalloc(n + 1, sizeof *s->nonbasic);
    s->list = hv_xcalloc(n + 1, sizeof *s->list);
    s->row = hv_xcalloc(m + 1, sizeof *s->row);
    s->col = hv_xcalloc(n + 1, sizeof *s->col);
    find_scales(s);
    for (size_t j = 0; j < n; j++) {
        hv__simplex_bound(s, j, lp->vars.items[j].lower, lp->vars.items[j].upper);
    }
    for (size_t i = 0; i < m; i++) {
        double lower, upper;
        hv__lp_row_limits(&lp->rows.items[i], &lower, &upper);
        s->lo[n + i] = lower * s->row[i];
        s->hi[n + i] = upper * s->row[i];
    }
    fill(s);
}

void hv__simplex_free(struct hv__simplex *s)
{
    free(s->tableau);
    free(s->cost);
    free(s->phase);
    free(s->lo);
    free(s->hi);
    free(s->x);
    free(s->basic);
    free(s->nonbasic);
    free(s->list);
    free(s->row);
    free(s->col);
    memset(s, 0, sizeof *s);
}

void hv__simplex_bound(struct hv__simplex *s, size_t j, double lo, double hi)
{
    s->lo[j] = lo / s->col[j];
    s->hi[j] = hi / s->col[j];
}

/* A row of the tableau, or of costs, after a pivot in column q: `row` is the new row of the pivot,
 * with `used` entries that are not 0, in these columns. */
static void turn(const struct hv__simplex *s, double *t, const double *row, size_t used, size_t q)
{
    double f = t[q];
    if (f == 0) {
        return;
    }
    if (used < s->n / 2) {
        for (size_t k = 0; k < used; k++) {
            t[s->list[k]] += f * row[s->list[k]];
        }
    } else {
        for (size_t k = 0; k < s->n; k++) {
            t[k] += f * row[k];
        }
    }
    t[q] = f * row[q];
}

/* Exchanges the basic variable of row r and the nonbasic one of column q. */
static void pivot(struct hv__simplex *s, size_t r, size_t q)
{
    size_t n = s->n, var = s->basic[r], used = 0;
    double *row = s->tableau + r * n, inverse = 1 / row[q];
    for (size_t k = 0; k < n; k++) {
        row[k] *= -inverse;
        s->list[used] = k;
        used += row[k] != 0;
    }
    row[q] = inverse;
    for (size_t i = 0; i < s->m; i++) {
        if (i != r) {
            turn(s, s->tableau + i * n, row, used, q);
        }
    }
    turn(s, s->cost, row, used, q);
    turn(s, s->phase, row, used, q);
    s->basic[r] = s->nonbasic[q];
    s->nonbasic[q] = var;
    s->pivots++;
    s->work += (double)(s->m + 2) * (double)(used < n / 2 ? 2 * used : n) + (double)s->m;
}

/* Makes the tableau again from the model with the same basis: rounding errors go. A structural
 * variable that finds no pivot stays nonbasic. */
static void refresh(struct hv__simplex *s)
{
    bool *wanted = hv_xcalloc(s->n + s->m + 1, sizeof *wanted);
    for (size_t i = 0; i < s->m; i++) {
        wanted[s->basic[i]] = true;
    }
    fill(s);
    for (size_t q = 0; q < s->n; q++) {
        size_t best = s->m;
        double most = PIVOT;
        for (size_t i = 0; wanted[q] && i < s->m; i++) {
            double v = fabs(s->tableau[i * s->n + q]);
            if (s->basic[i] >= s->n && !wanted[s->basic[i]] && v > most) {
                most = v;
                best = i;
            }
        }
        if (best < s->m) {
            pivot(s, best, q);
        }
    }
    s->pivots = 0;
    free(wanted);
}

/* The bound nearest to x; 0 without bounds. */
static double resting(double x, double lo, double hi)
{
    if (isinf(lo)) {
        return isinf(hi) ? 0 : hi;
    }
    return isinf(hi) || fabs(x - lo) <= fabs(hi - x) ? lo : hi;
}

/* Puts nonbasic variables to the bound that their reduced cost wants, and basic ones to what
 * follows. Columns whose wanted bound does not exist have no cost in this phase. */
static bool place(struct hv__simplex *s)
{
    bool all = true;
    for (size_t k = 0; k < s->n; k++) {
        size_t v = s->nonbasic[k];
        double lo = s->lo[v], hi = s->hi[v], d = s->cost[k];
        s->phase[k] = d;
        if ((d > PRICED && isinf(lo)) || (d < -PRICED && isinf(hi))) {
            s->phase[k] = 0;
            all = false;
        }
        if (s->phase[k] == 0 || fabs(d) <= PRICED) {
            s->x[v] = resting(s->x[v], lo, hi);
        } else {
            s->x[v] = d > 0 ? lo : hi;
        }
    }
    return all;
}

static void follow(struct hv__simplex *s)
{
    size_t used = 0;
    for (size_t k = 0; k < s->n; k++) {
        s->list[used] = k;
        used += s->x[s->nonbasic[k]] != 0;
    }
    for (size_t i = 0; i < s->m; i++) {
        const double *t = s->tableau + i * s->n;
        double v = 0;
        for (size_t k = 0; k < used; k++) {
            v += t[s->list[k]] * s->x[s->nonbasic[s->list[k]]];
        }
        s->x[s->basic[i]] = v;
    }
    s->work += (double)s->m * (double)(used + 1);
}

/* How far basic variable v is out of its bounds: > 0 below, < 0 above, 0 within. */
static double missing(const struct hv__simplex *s, size_t v)
{
    double x = s->x[v], slack = FEASIBLE * (1 + fabs(x));
    if (x < s->lo[v] - slack) {
        return s->lo[v] - x;
    }
    return x > s->hi[v] + slack ? s->hi[v] - x : 0;
}

/* Column of the dual ratio test for row r, which must grow (way = 1) or shrink (-1); n for none. */
static size_t dual_column(const struct hv__simplex *s, size_t r, double way, bool bland)
{
    const double *t = s->tableau + r * s->n;
    size_t best = s->n;
    double least = HUGE_VAL, most = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = 0; k < s->n; k++) {
            size_t v = s->nonbasic[k];
            double a = way * t[k], ratio = fabs(s->phase[k]) / fabs(a);
            bool can_move = a > 0 ? s->x[v] < s->hi[v] : s->x[v] > s->lo[v];
            if (fabs(a) <= PIVOT || !can_move) {
                continue;
            }
            if (pass == 0) { /* the least ratio, with reduced costs allowed to miss a little */
                least = fmin(least, (fabs(s->phase[k]) + PRICED) / fabs(a));
            } else if (ratio <= least &&
                       (bland ? best == s->n || v < s->nonbasic[best] : fabs(a) > most)) {
                most = fabs(a);
                best = k;
            }
        }
    }
    return best;
}

/* Moves the nonbasic variable of column q by `step`, with all basic ones. */
static void move(struct hv__simplex *s, size_t q, double step)
{
    s->x[s->nonbasic[q]] += step;
    for (size_t i = 0; i < s->m; i++) {
        s->x[s->basic[i]] += s->tableau[i * s->n + q] * step;
    }
}

static bool may_go_on(struct hv__simplex *s, size_t step, size_t most)
{
    return step < most && !(s->stop && step % ASK == ASK - 1 && s->stop(s->ctx));
}

static void make_fresh(struct hv__simplex *s)
{
    if (s->pivots >= FRESH + s->m) {
        refresh(s);
        (void)place(s);
        follow(s);
    }
}

/* The dual method on the costs of the phase. */
static enum hv__simplex_end find_point(struct hv__simplex *s)
{
    size_t most = 200 + 20 * (s->m + s->n);
    for (size_t step = 0; may_go_on(s, step, most); step++) {
        bool bland = step > most / 2;
        size_t r = s->m;
        double worst = 0;
        make_fresh(s);
        for (size_t i = 0; i < s->m; i++) {
            double gap = fabs(missing(s, s->basic[i]));
            if (gap > 0 && (bland ? r == s->m || s->basic[i] < s->basic[r] : gap > worst)) {
                worst = gap;
                r = i;
            }
        }
        if (r == s->m) {
            return HV__SIMPLEX_OPTIMAL;
        }
        size_t v = s->basic[r];
        double gap = missing(s, v), way = gap > 0 ? 1 : -1;
        size_t q = dual_column(s, r, way, bland);
        if (q == s->n) {
            s->at = r;
            s->sign = way;
            return isfinite(gap) ? HV__SIMPLEX_INFEASIBLE : HV__SIMPLEX_LOST;
        }
        move(s, q, gap / s->tableau[r * s->n + q]);
        s->x[v] = way > 0 ? s->lo[v] : s->hi[v];
        pivot(s, r, q);
    }
    return HV__SIMPLEX_LOST;
}

/* Entering column of the primal method; n when the point is optimal. */
static size_t primal_column(const struct hv__simplex *s, bool bland)
{
    size_t best = s->n;
    double most = PRICED;
    for (size_t k = 0; k < s->n; k++) {
        size_t v = s->nonbasic[k];
        double d = s->cost[k];
        bool improves = d < -PRICED ? s->x[v] < s->hi[v] : d > PRICED && s->x[v] > s->lo[v];
        if (improves && (bland ? best == s->n || v < s->nonbasic[best] : fabs(d) > most)) {
            most = fabs(d);
            best = k;
        }
    }
    return best;
}

/* Row of the primal ratio test for column q in direction `way`; m for none. *room = how far the
 * column may go until then. */
static size_t primal_row(const struct hv__simplex *s, size_t q, double way, bool bland,
                         double *room)
{
    size_t best = s->m;
    double most = 0, loose = HUGE_VAL;
    *room = HUGE_VAL;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < s->m; i++) {
            size_t v = s->basic[i];
            double a = way * s->tableau[i * s->n + q], end = a > 0 ? s->hi[v] : s->lo[v];
            if (fabs(a) <= PIVOT || isinf(end)) {
                continue;
            }
            double left = fmax(0, a > 0 ? end - s->x[v] : s->x[v] - end), size = fabs(a);
            if (pass == 0) {
                loose = fmin(loose, (left + FEASIBLE * (1 + fabs(end))) / size);
            } else if (left / size <= loose &&
                       (bland ? best == s->m || v < s->basic[best] : size > most)) {
                most = size;
                best = i;
                *room = left / size;
            }
        }
    }
    return best;
}

/* The primal method on the true costs, from a point within all bounds. */
static enum hv__simplex_end improve(struct hv__simplex *s)
{
    size_t most = 200 + 20 * (s->m + s->n);
    for (size_t step = 0; may_go_on(s, step, most); step++) {
        bool bland = step > most / 2;
        double room;
        size_t q = primal_column(s, bland);
        if (q == s->n) {
            return HV__SIMPLEX_OPTIMAL;
        }
        size_t v = s->nonbasic[q];
        double way = s->cost[q] < 0 ? 1 : -1;
        double flip = way > 0 ? s->hi[v] - s->x[v] : s->x[v] - s->lo[v];
        size_t r = primal_row(s, q, way, bland, &room);
        if (isinf(room) && isinf(flip)) {
            s->at = q;
            s->sign = way;
            return HV__SIMPLEX_UNBOUNDED;
        }
        if (flip <= room) {
            move(s, q, way * flip);
            s->x[v] = way > 0 ? s->hi[v] : s->lo[v];
            continue;
        }
        size_t out = s->basic[r];
        move(s, q, way * room);
        s->x[out] = way * s->tableau[r * s->n + q] > 0 ? s->hi[out] : s->lo[out];
        pivot(s, r, q);
    }
    return HV__SIMPLEX_LOST;
}

enum hv__simplex_end hv__simplex_run(struct hv__simplex *s)
{
    for (int round = 0; round < 2; round++) {
        bool all = place(s);
        follow(s);
        enum hv__simplex_end end = find_point(s);
        if (end == HV__SIMPLEX_OPTIMAL && (!all || primal_column(s, false) < s->n)) {
            end = improve(s);
        }
        if (end != HV__SIMPLEX_LOST || s->pivots == 0) {
            return end;
        }
        refresh(s);
    }
    return HV__SIMPLEX_LOST;
}

void hv__simplex_point(const struct hv__simplex *s, double *x)
{
    for (size_t j = 0; j < s->n; j++) {
        double v = s->x[j], lo = s->lo[j], hi = s->hi[j];
        if (isfinite(lo) && fabs(v - lo) <= SNAP * (1 + fabs(lo))) {
            v = lo;
        } else if (isfinite(hi) && fabs(v - hi) <= SNAP * (1 + fabs(hi))) {
            v = hi;
        }
        x[j] = v * s->col[j];
    }
}

void hv__simplex_duals(const struct hv__simplex *s, double *y)
{
    memset(y, 0, s->m * sizeof *y);
    for (size_t k = 0; k < s->n; k++) {
        if (s->nonbasic[k] >= s->n) {
            size_t i = s->nonbasic[k] - s->n;
            y[i] = fabs(s->cost[k]) > NOISE ? s->cost[k] * s->row[i] / s->unit : 0;
        }
    }
}

void hv__simplex_farkas(const struct hv__simplex *s, double *y)
{
    const double *t = s->tableau + s->at * s->n;
    memset(y, 0, s->m * sizeof *y);
    if (s->basic[s->at] >= s->n) {
        y[s->basic[s->at] - s->n] = s->sign * s->row[s->basic[s->at] - s->n];
    }
    for (size_t k = 0; k < s->n; k++) {
        if (s->nonbasic[k] >= s->n) {
            size_t i = s->nonbasic[k] - s->n; /* a rounding error is no multiplier */
            y[i] = fabs(t[k]) > NOISE ? -s->sign * t[k] * s->row[i] : 0;
        }
    }
}

void hv__simplex_ray(const struct hv__simplex *s, double *ray)
{
    memset(ray, 0, s->n * sizeof *ray);
    if (s->nonbasic[s->at] < s->n) {
        ray[s->nonbasic[s->at]] = s->sign * s->col[s->nonbasic[s->at]];
    }
    for (size_t i = 0; i < s->m; i++) {
        if (s->basic[i] < s->n) {
            ray[s->basic[i]] = s->sign * s->tableau[i * s->n + s->at] * s->col[s->basic[i]];
        }
    }
}
