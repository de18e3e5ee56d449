/*
 * Branch and bound with a certificate at every leaf. Not here: the linear programs (simplex.c,
 * rational.c), what counts as a certificate (certificate.c), lp_solve (lp.c).
 */
#include "solver/optim/lp/branch.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/optim/lp/certificate.h"
#include "solver/optim/lp/rational.h"
#include <stdlib.h>
#include <string.h>

#define OPEN_MAX  64     /* leaves without a certificate before a tree is given up */
#define NODE_WORK 8      /* operations of a node for each term, variable and row */
#define WHOLE     1e-7   /* a value this near to a whole number is tried as one */
#define EXACT     1e-13  /* below it a fraction of a value in doubles says nothing */
#define FAR       0x1p50 /* integers beyond it are not branched on */

/* One branching: variable `var`, whose value was x, is split at `at`; bounds [lo, hi] stand before
 * it. */
struct split {
    size_t var;
    double lo, hi, x, at, bound;
    bool up, second; /* the first child is the upper one; the second one has begun */
};

/* Pseudo-costs of a variable: by how much the bound rose for each unit that a branching moved it
 * down [0] or up [1], summed, and how often. */
struct price {
    double rise[2], n[2];
};

struct tree {
    const struct hv_lp *lp;
    const struct hv__branch_limits *limits;
    struct hv__branch *out;
    struct hv__simplex simplex;
    struct hv__lp_prover prover;
    double *lo, *hi, *x, *y; /* bounds, point and duals of the node */
    HV_VEC(struct split) path;
    struct price *price, all;          /* of each variable, and of all together */
    double lowest;                     /* of the bounds of closed leaves */
    double size;                       /* largest term of the best value */
    struct hv__lp_tolerance tolerance; /* of a point */
    double rounding;                   /* of a value, as a share of its largest term */
    double extra_work;                 /* besides that of the tableau */
    bool has_far;                      /* a variable without a bound */
    bool whole_value;                  /* every value is a whole number */
};

/* What became of a node. */
enum leaf {
    LEAF_CLOSED,
    LEAF_SPLIT, /* the new split is on the path */
    LEAF_OPEN,  /* no certificate */
    LEAF_STOPPED,
    LEAF_UNBOUNDED
};

static bool out_of_limits(void *ctx)
{
    struct tree *t = ctx;
    const struct hv__branch_limits *l = t->limits;
    return t->simplex.work + t->extra_work > l->work || (l->stop && l->stop(l->ctx));
}

/* Nodes with a bound from here on hold nothing better. */
static double cutoff(const struct tree *t)
{
    if (!t->out->x) {
        return HUGE_VAL;
    }
    double v = t->out->value, less = 1e-9 * fabs(v) + t->rounding * t->size;
    if (t->whole_value) {
        return v - 1 + 2e-6;
    }
    return v - fmax(less, t->limits->gap * fabs(v));
}

/* Keeps the bound of a closed leaf. */
static enum leaf close_leaf(struct tree *t, double bound)
{
    if (t->whole_value && isfinite(bound) && fabs(bound) < 0x1p50) {
        bound = fmax(bound, ceil(bound - 1e-6));
    }
    t->lowest = fmin(t->lowest, bound);
    return LEAF_CLOSED;
}

/* Takes t->x as the best point when it holds and is better. False when it does not hold. */
static bool keep_point(struct tree *t)
{
    double size;
    if (!hv__lp_point_holds(t->lp, t->x, t->tolerance)) {
        return false;
    }
    double v = hv__lp_min_value(t->lp, t->x, &size);
    if (t->out->x && v >= t->out->value) {
        return true;
    }
    if (!t->out->x) {
        t->out->x = hv_xcalloc(t->lp->vars.n + 1, sizeof *t->x);
    }
    memcpy(t->out->x, t->x, t->lp->vars.n * sizeof *t->x);
    t->out->value = v;
    t->size = size;
    if (t->has_far) {
        hv__lp_prover_reach(&t->prover, v);
    }
    return true;
}

/* Puts a split on the path and its first child's bound in place. */
static enum leaf split_at(struct tree *t, size_t var, double x, bool up, double bound)
{
    double at = floor(x);
    if (!(fabs(at) < FAR)) {
        return LEAF_OPEN;
    }
    hv_vec_push(&t->path, (struct split){.var = var,
                                         .lo = t->lo[var],
                                         .hi = t->hi[var],
                                         .x = x,
                                         .at = at,
                                         .bound = bound,
                                         .up = up});
    return LEAF_SPLIT;
}

/* The node in exact numbers, which decide it. */
static enum leaf look_exactly(struct tree *t, double parent)
{
    struct hv__rational r = {.x = t->x, .y = t->y};
    if (!hv__rational_fits(t->lp) || out_of_limits(t)) {
        return out_of_limits(t) ? LEAF_STOPPED : LEAF_OPEN;
    }
    enum hv__simplex_end end = hv__rational_solve(&t->simplex, t->lo, t->hi, &r);
    t->extra_work += r.work;
    switch (end) {
    case HV__SIMPLEX_OPTIMAL:
        if (r.value >= cutoff(t)) {
            return close_leaf(t, r.value);
        }
        if (r.split < t->lp->vars.n) {
            return split_at(t, r.split, r.floor + 0.5, false, fmax(r.value, parent));
        }
        return keep_point(t) ? close_leaf(t, r.value) : LEAF_OPEN;
    case HV__SIMPLEX_INFEASIBLE:
        return r.margin > HV__LP_MARGIN ? LEAF_CLOSED : LEAF_OPEN;
    case HV__SIMPLEX_UNBOUNDED:
        return LEAF_UNBOUNDED;
    case HV__SIMPLEX_LOST:
        break;
    }
    return LEAF_OPEN;
}

/* The integer variable whose value is nearest to a half; n when all are whole within `within`. */
static size_t most_fractional(const struct tree *t, double within)
{
    size_t best = t->lp->vars.n;
    double most = within;
    for (size_t j = 0; j < t->lp->vars.n; j++) {
        double away = fabs(t->x[j] - nearbyint(t->x[j]));
        if (t->lp->vars.items[j].integer && t->lo[j] < t->hi[j] && away > most) {
            most = away;
            best = j;
        }
    }
    return best;
}

/* The integer variable whose two branches promise the largest rise of the bound, by pseudo-costs
 * (M. Benichou and others, Math. Program. 1, 1971); n when all are whole. */
static size_t dearest_fraction(const struct tree *t)
{
    size_t best = t->lp->vars.n;
    double most = -1;
    for (size_t j = 0; j < t->lp->vars.n; j++) {
        double part = t->x[j] - floor(t->x[j]), rise[2];
        if (!t->lp->vars.items[j].integer || fmin(part, 1 - part) <= WHOLE) {
            continue;
        }
        for (int up = 0; up < 2; up++) {
            const struct price *p = t->price[j].n[up] > 0 ? &t->price[j] : &t->all;
            double each = p->n[up] > 0 ? p->rise[up] / p->n[up] : 1;
            rise[up] = each * (up ? 1 - part : part);
        }
        double little =
            1e-3 * (t->all.rise[0] + t->all.rise[1] + 1e-9) / (t->all.n[0] + t->all.n[1] + 1);
        double score = fmax(rise[0], little) * fmax(rise[1], little);
        if (score > most) {
            most = score;
            best = j;
        }
    }
    return best;
}

/* Learns pseudo-costs from the node's bound v and the branching that led to it. */
static void learn(struct tree *t, double v)
{
    if (!t->path.n) {
        return;
    }
    const struct split *s = &t->path.items[t->path.n - 1];
    int up = s->up != s->second;
    double way = up ? s->at + 1 - s->x : s->x - s->at, rise = v - s->bound;
    if (isfinite(rise) && way > WHOLE) {
        t->price[s->var].rise[up] += fmax(rise, 0) / way;
        t->price[s->var].n[up]++;
        t->all.rise[up] += fmax(rise, 0) / way;
        t->all.n[up]++;
    }
}

/* Rounds integers, and puts the other variables within their bounds. */
static void round_point(struct tree *t)
{
    for (size_t j = 0; j < t->lp->vars.n; j++) {
        t->x[j] = t->lp->vars.items[j].integer ? nearbyint(t->x[j])
                                               : fmin(fmax(t->x[j], t->lo[j]), t->hi[j]);
    }
}

/* A node whose relaxation has an optimum with duals. */
static enum leaf look_at_optimum(struct tree *t, double parent)
{
    const struct hv_lp *lp = t->lp;
    hv__simplex_duals(&t->simplex, t->y);
    hv__simplex_point(&t->simplex, t->x);
    double v = fmax(parent, hv__lp_safe_bound(&t->prover, t->y, t->lo, t->hi, false));
    learn(t, v);
    if (v >= cutoff(t)) {
        return close_leaf(t, v);
    }
    size_t j = dearest_fraction(t);
    if (j < lp->vars.n) {
        return split_at(t, j, t->x[j], t->x[j] - floor(t->x[j]) > 0.5, v);
    }
    j = most_fractional(t, EXACT);
    double fraction = j < lp->vars.n ? t->x[j] : 0, size;
    round_point(t);
    bool exact = hv__rational_fits(lp);
    double value = hv__lp_min_value(lp, t->x, &size);
    if (!exact && keep_point(t)) { /* a value that bounds variables without bounds */
        v = fmax(v, hv__lp_safe_bound(&t->prover, t->y, t->lo, t->hi, false));
        size = fmax(size, t->prover.size);
    }
    bool agrees = fabs(value - v) <= 0.5e-9 * fabs(value) + t->rounding * size;
    if (agrees && keep_point(t)) {
        t->size = fmax(t->size, size);
        return close_leaf(t, v);
    }
    if (exact) {
        return look_exactly(t, parent);
    }
    return j < lp->vars.n ? split_at(t, j, fraction, false, v) : LEAF_OPEN;
}

/* True when the relaxation has a ray along which the value falls, and a checked point; with
 * integers any_point looks for the point. */
static bool has_ray(struct tree *t)
{
    hv__simplex_ray(&t->simplex, t->x);
    if (!hv__lp_is_ray(t->lp, t->x)) {
        return false;
    }
    hv__simplex_point(&t->simplex, t->x);
    return t->lp->has_integers || hv__lp_point_holds(t->lp, t->x, t->tolerance);
}

/* Solves the node whose bounds are in place; `parent` is a bound that holds for it. */
static enum leaf look(struct tree *t, double parent)
{
    t->out->nodes++;
    t->extra_work += NODE_WORK * (double)(t->lp->terms.n + t->lp->vars.n + t->lp->rows.n);
    if (out_of_limits(t) || (t->limits->max_nodes && t->out->nodes > t->limits->max_nodes)) {
        return LEAF_STOPPED;
    }
    switch (hv__simplex_run(&t->simplex)) {
    case HV__SIMPLEX_OPTIMAL:
        return look_at_optimum(t, parent);
    case HV__SIMPLEX_INFEASIBLE:
        hv__simplex_farkas(&t->simplex, t->y);
        if (hv__lp_no_point(&t->prover, t->y, t->lo, t->hi)) {
            return LEAF_CLOSED;
        }
        break;
    case HV__SIMPLEX_UNBOUNDED:
        if (has_ray(t)) {
            return LEAF_UNBOUNDED;
        }
        break;
    case HV__SIMPLEX_LOST:
        break;
    }
    return look_exactly(t, parent);
}

static void set_bounds(struct tree *t, size_t j, double lo, double hi)
{
    t->lo[j] = lo;
    t->hi[j] = hi;
    hv__simplex_bound(&t->simplex, j, lo, hi);
}

/* Bounds of the child that the last split of the path is at. */
static void enter(struct tree *t)
{
    const struct split *s = &t->path.items[t->path.n - 1];
    if (s->up != s->second) {
        set_bounds(t, s->var, s->at + 1, s->hi);
    } else {
        set_bounds(t, s->var, s->lo, s->at);
    }
}

/* Goes to the next child that is not closed; false when the tree is finished. */
static bool next_child(struct tree *t)
{
    while (t->path.n) {
        struct split *s = &t->path.items[t->path.n - 1];
        if (!s->second && s->bound < cutoff(t)) {
            s->second = true;
            enter(t);
            return true;
        }
        if (!s->second) {
            (void)close_leaf(t, s->bound);
        }
        set_bounds(t, s->var, s->lo, s->hi);
        t->path.n--;
    }
    return false;
}

/* Walks the tree. LEAF_CLOSED when all of it is, LEAF_OPEN when it ended with open leaves: they
 * count with the bound of their parent. */
static enum leaf walk(struct tree *t)
{
    double parent = -HUGE_VAL;
    size_t n_open = 0;
    for (;;) {
        enum leaf leaf = look(t, parent);
        if (leaf == LEAF_OPEN && n_open < OPEN_MAX) {
            n_open++;
            t->lowest = fmin(t->lowest, parent);
            leaf = LEAF_CLOSED;
        }
        if (leaf == LEAF_SPLIT) {
            enter(t);
        } else if (leaf != LEAF_CLOSED) {
            t->lowest = fmin(t->lowest, parent);
            for (size_t k = 0; k < t->path.n; k++) {
                t->lowest = fmin(t->lowest, t->path.items[k].bound);
            }
            return leaf;
        } else if (!next_child(t)) {
            return n_open ? LEAF_OPEN : LEAF_CLOSED;
        }
        parent = t->path.items[t->path.n - 1].bound;
    }
}

/* Once more with the point of the first time, which bounds variables and closes leaves early. */
static enum leaf walk_again(struct tree *t)
{
    double before = t->lowest;
    while (t->path.n) {
        const struct split *s = &t->path.items[--t->path.n];
        set_bounds(t, s->var, s->lo, s->hi);
    }
    t->lowest = HUGE_VAL;
    enum leaf leaf = walk(t);
    t->lowest = leaf == LEAF_CLOSED ? t->lowest : fmax(t->lowest, before);
    return leaf;
}

/* True when costs are whole numbers, and only integer variables have them. */
static bool has_whole_value(const struct hv_lp *lp)
{
    double sum = 0;
    for (size_t j = 0; j < lp->vars.n; j++) {
        const struct hv__lp_var *v = &lp->vars.items[j];
        if (v->cost != 0 && (!v->integer || v->cost != nearbyint(v->cost))) {
            return false;
        }
        sum += fabs(v->cost);
    }
    return sum < 0x1p20;
}

/* Takes the integers of a point, with the best continuous variables beside them. */
static void start_from(struct tree *t, const double *start)
{
    const struct hv_lp *lp = t->lp;
    for (size_t j = 0; j < lp->vars.n; j++) {
        if (lp->vars.items[j].integer) {
            hv__simplex_bound(&t->simplex, j, start[j], start[j]);
        }
    }
    memcpy(t->x, start, lp->vars.n * sizeof *start);
    if (hv__simplex_run(&t->simplex) == HV__SIMPLEX_OPTIMAL) {
        hv__simplex_point(&t->simplex, t->x);
    }
    for (size_t j = 0; j < lp->vars.n; j++) {
        t->x[j] = lp->vars.items[j].integer ? start[j] : t->x[j];
        hv__simplex_bound(&t->simplex, j, t->lo[j], t->hi[j]);
    }
    (void)keep_point(t);
}

static void plant(struct tree *t, const double *start)
{
    size_t n = t->lp->vars.n;
    t->lo = hv_xcalloc(n + 1, sizeof *t->lo);
    t->hi = hv_xcalloc(n + 1, sizeof *t->hi);
    t->x = hv_xcalloc(n + 1, sizeof *t->x);
    t->y = hv_xcalloc(t->lp->rows.n + 1, sizeof *t->y);
    t->price = hv_xcalloc(n + 1, sizeof *t->price);
    t->whole_value = has_whole_value(t->lp);
    t->tolerance = !t->lp->has_integers       ? HV__LP_LINEAR
                   : hv__rational_fits(t->lp) ? HV__LP_EXACT
                                              : HV__LP_ROUNDED;
    t->rounding = t->lp->has_integers || hv__rational_fits(t->lp) ? 1e-14 : 1e-12;
    for (size_t j = 0; j < n; j++) {
        t->lo[j] = t->lp->vars.items[j].lower;
        t->hi[j] = t->lp->vars.items[j].upper;
        t->has_far = t->has_far || isinf(t->lo[j]) || isinf(t->hi[j]);
    }
    hv__simplex_init(&t->simplex, t->lp);
    t->simplex.stop = out_of_limits;
    t->simplex.ctx = t;
    hv__lp_prover_init(&t->prover, t->lp);
    if (start) {
        start_from(t, start);
    }
}

/* An integer program whose relaxation is unbounded is so itself exactly when it has a point (its
 * numbers are rational): the tree without costs decides. */
static enum hv_lp_outcome any_point(const struct hv_lp *lp, const struct hv__branch_limits *limits)
{
    struct hv_lp plain = *lp;
    struct hv__branch b;
    plain.vars.items = hv_xcalloc(lp->vars.n + 1, sizeof *plain.vars.items);
    memcpy(plain.vars.items, lp->vars.items, lp->vars.n * sizeof *plain.vars.items);
    for (size_t j = 0; j < lp->vars.n; j++) {
        plain.vars.items[j].cost = 0;
    }
    hv__branch_solve(&plain, limits, NULL, &b);
    enum hv_lp_outcome found = b.x ? HV_LP_UNBOUNDED : b.outcome;
    hv__branch_free(&b);
    free(plain.vars.items);
    return found;
}

static enum hv_lp_outcome outcome_of(struct tree *t, enum leaf leaf)
{
    if (leaf == LEAF_UNBOUNDED) {
        bool has_point = t->out->x || !t->lp->has_integers;
        return has_point ? HV_LP_UNBOUNDED : any_point(t->lp, t->limits);
    }
    if (leaf == LEAF_CLOSED && !t->out->x) {
        return HV_LP_INFEASIBLE;
    }
    if (!t->out->x) {
        return HV_LP_FAILED;
    }
    double gap = t->out->value - t->out->bound;
    bool proven = fabs(gap) <= 2e-9 * fabs(t->out->value) + 10 * t->rounding * t->size;
    return proven ? HV_LP_OPTIMAL : HV_LP_FEASIBLE;
}

void hv__branch_solve(const struct hv_lp *lp, const struct hv__branch_limits *limits,
                      const double *start, struct hv__branch *out)
{
    struct tree t = {.lp = lp, .limits = limits, .out = out, .lowest = HUGE_VAL};
    memset(out, 0, sizeof *out);
    plant(&t, start);
    enum leaf leaf = walk(&t);
    if (leaf == LEAF_OPEN && out->x) {
        leaf = walk_again(&t);
    }
    out->bound = out->x ? fmin(t.lowest, hv__lp_min_value_down(lp, out->x)) : t.lowest;
    out->outcome = outcome_of(&t, leaf);
    out->complete = leaf == LEAF_CLOSED;
    if (out->x && !lp->has_integers) {
        out->y = t.y;
        t.y = NULL;
    }
    hv__simplex_free(&t.simplex);
    hv__lp_prover_free(&t.prover);
    hv_vec_free(&t.path);
    free(t.price);
    free(t.lo);
    free(t.hi);
    free(t.x);
    free(t.y);
}

void hv__branch_free(struct hv__branch *b)
{
    free(b->x);
    free(b->y);
    memset(b, 0, sizeof *b);
}
