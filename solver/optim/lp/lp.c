/*
 * Solving a model: the own branch and bound first for programs with integers, lp_solve first for
 * linear ones, each where the other leaves the proof open. The only file that includes lp_solve.
 * Not here: building models (model.c), what counts as proven (certificate.c).
 */
#include "solver/optim/lp/lp.h"
#include "solver/base/units.h"
#include "solver/optim/lp/branch.h"
#include "solver/optim/lp/certificate.h"
#include "solver/optim/lp/lp_int.h"
#include "solver/optim/lp/simplex.h"
#include <limits.h>
#include <lpsolve/lp_lib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* lp_solve's own defaults in this build, explicit because its documentation states other values:
 * pseudo-cost selection with greedy, dynamic and reduced-cost modes, automatic branch direction. */
#define NODE_RULE   (NODE_PSEUDONONINTSELECT + NODE_GREEDYMODE + NODE_DYNAMICMODE + NODE_RCOSTFIXING)
#define LP_INFINITE 1e30
#define TREE_WORK   1e9   /* operations of an own tree, about a second */
#define TREE_FIRST  10000 /* up to so many cells a program with integers needs no lp_solve */

/* Watches one solve. */
struct watch {
    const struct hv_lp_limits *limits;
    struct timespec start;
    lprec *rec;
    bool stopped;
    double share; /* of the deadline that an own tree may take */
};

/* Which rows get an explicit slack. */
enum slack_mode { SLACK_NONE, SLACK_REAL, SLACK_ALL };

/* One attempt: the variant of the model, and its result. */
struct attempt {
    const struct hv_lp *lp;
    const struct hv__lp_scale *scale;
    enum slack_mode slack;
    bool relaxed;  /* integrality dropped */
    double cutoff; /* a value that is known to be reached; HV_UNKNOWN without one */
    bool plain;    /* without lp_solve's scaling, primal simplex throughout */
    int code;      /* lp_solve's */
    double step;   /* bb_deltaOF after the solve */
};

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

static int should_stop(lprec *rec, void *ctx)
{
    struct watch *w = ctx;
    const struct hv_lp_limits *l = w->limits;
    if ((l->deadline_s > 0 && seconds_since(&w->start) > l->deadline_s) ||
        (l->cancel && l->cancel(l->ctx)) ||
        (l->max_nodes > 0 && (int64_t)get_total_nodes(w->rec) > l->max_nodes)) {
        w->stopped = true;
    }
    if (w->stopped) { /* lp_solve would make duals of a basis that it may not have factorised yet */
        set_presolve(rec, PRESOLVE_NONE, get_presolveloops(rec));
    }
    return w->stopped;
}

/* For own trees: true when the part of the deadline is over, or the caller cancels. */
static bool tree_stops(void *ctx)
{
    struct watch *w = ctx;
    const struct hv_lp_limits *l = w->limits;
    if (l->cancel && l->cancel(l->ctx)) {
        w->stopped = true;
    }
    double till = w->share * l->deadline_s;
    if (l->deadline_s > 0 && seconds_since(&w->start) > till) {
        w->stopped = w->stopped || w->share >= 1;
        return true;
    }
    return w->stopped;
}

/* True when the row must be built as an equality with a slack column. */
static bool row_has_slack(const struct attempt *a, const struct hv__lp_row *r)
{
    if (r->op == HV_LP_EQ || r->n == 0 || a->slack == SLACK_NONE) {
        return false;
    }
    if (a->slack == SLACK_ALL) {
        return true;
    }
    for (size_t k = r->first; k < r->first + r->n; k++) {
        if (!a->lp->vars.items[a->lp->terms.items[k].var].integer) {
            return true;
        }
    }
    return false;
}

static bool place_column(lprec *rec, const struct attempt *a, size_t j)
{
    const struct hv__lp_var *v = &a->lp->vars.items[j];
    double unit = a->scale->col[j];
    double lo = isinf(v->lower) ? -LP_INFINITE : v->lower / unit;
    double hi = isinf(v->upper) ? LP_INFINITE : v->upper / unit;
    bool ok = set_bounds(rec, (int)j + 1, lo, hi);
    if (v->integer && !a->relaxed) {
        ok = ok && set_int(rec, (int)j + 1, TRUE);
    }
    return ok;
}

static bool add_rows(lprec *rec, const struct attempt *a, double *value, int *column)
{
    const struct hv_lp *lp = a->lp;
    int slack = (int)lp->vars.n;
    bool ok = true;
    for (size_t i = 0; ok && i < lp->rows.n; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        int n = 0, op = r->op == HV_LP_EQ ? EQ : r->op == HV_LP_LE ? LE : GE;
        for (size_t k = r->first; k < r->first + r->n; k++, n++) {
            size_t j = lp->terms.items[k].var;
            column[n] = (int)j + 1;
            value[n] = lp->terms.items[k].coef * a->scale->col[j] * a->scale->row[i];
        }
        if (row_has_slack(a, r)) {
            column[n] = ++slack;
            value[n++] = r->op == HV_LP_LE ? 1 : -1;
            op = EQ;
        }
        ok = add_constraintex(rec, n, value, column, op, r->rhs * a->scale->row[i]);
    }
    return ok;
}

/* A fresh lp_solve object for the attempt, or NULL when lp_solve refuses it. */
static lprec *build(const struct attempt *a)
{
    const struct hv_lp *lp = a->lp;
    size_t n = lp->vars.n, n_slacks = 0;
    for (size_t i = 0; i < lp->rows.n; i++) {
        n_slacks += row_has_slack(a, &lp->rows.items[i]);
    }
    lprec *rec = make_lp(0, (int)(n + n_slacks));
    if (!rec) {
        return NULL;
    }
    set_verbose(rec, 0);
    double *value = hv_xcalloc(n + 2, sizeof *value);
    int *column = hv_xcalloc(n + 2, sizeof *column), used = 0;
    double sign = lp->sense == HV_LP_MIN ? 1 : -1;
    for (size_t j = 0; j < n; j++) {
        if (lp->vars.items[j].cost == 0) {
            continue;
        }
        column[used] = (int)j + 1;
        value[used++] = sign * lp->vars.items[j].cost * a->scale->col[j] * a->scale->objective;
    }
    bool ok = set_obj_fnex(rec, used, value, column);
    set_minim(rec);
    set_add_rowmode(rec, TRUE);
    ok = ok && add_rows(rec, a, value, column);
    set_add_rowmode(rec, FALSE);
    for (size_t j = 0; ok && j < n; j++) {
        ok = place_column(rec, a, j);
    }
    free(value);
    free(column);
    if (!ok) {
        delete_lp(rec);
        return NULL;
    }
    return rec;
}

static void set_up(lprec *rec, const struct attempt *a, struct watch *w)
{
    bool integer = a->lp->has_integers && !a->relaxed;
    set_presolve(rec, integer ? PRESOLVE_NONE : PRESOLVE_SENSDUALS, get_presolveloops(rec));
    set_bb_rule(rec, NODE_RULE);
    set_bb_floorfirst(rec, BRANCH_AUTOMATIC);
    set_scaling(rec, a->plain ? 0 : SCALE_GEOMETRIC + SCALE_EQUILIBRATE + SCALE_INTEGERS);
    if (a->plain) {
        set_simplextype(rec, SIMPLEX_PRIMAL_PRIMAL);
    }
    if (w->limits->gap > 0) {
        set_mip_gap(rec, FALSE, w->limits->gap);
    }
    w->rec = rec;
    put_abortfunc(rec, should_stop, w);
}

/* Copies the point out, back in the model's own units; integers are rounded. */
static void take_point(lprec *rec, const struct attempt *a, double *x)
{
    int m = get_Norig_rows(rec);
    for (size_t j = 0; j < a->lp->vars.n; j++) {
        const struct hv__lp_var *v = &a->lp->vars.items[j];
        double at = get_var_primalresult(rec, m + 1 + (int)j) * a->scale->col[j];
        if (v->integer && !a->relaxed && fabs(at - nearbyint(at)) <= 1e-5) {
            at = nearbyint(at);
        }
        if (at < v->lower && at > v->lower - 1e-7 * (1 + fabs(v->lower))) {
            at = v->lower;
        }
        if (at > v->upper && at < v->upper + 1e-7 * (1 + fabs(v->upper))) {
            at = v->upper;
        }
        x[j] = at;
    }
}

static void take_duals(lprec *rec, const struct attempt *a, double *duals)
{
    double sign = a->lp->sense == HV_LP_MIN ? 1 : -1, *all = NULL;
    if (!get_ptr_dual_solution(rec, &all) || !all) {
        return;
    }
    for (size_t i = 0; i < a->lp->rows.n; i++) {
        duals[i] = sign * all[i + 1] * a->scale->row[i] / a->scale->objective;
    }
}

static enum hv_lp_outcome outcome_of(int code, bool stopped)
{
    switch (code) {
    case OPTIMAL:
        return HV_LP_OPTIMAL;
    case SUBOPTIMAL:
    case FEASFOUND:
        return HV_LP_FEASIBLE;
    case INFEASIBLE:
        return stopped ? HV_LP_STOPPED : HV_LP_INFEASIBLE;
    case UNBOUNDED:
        return HV_LP_UNBOUNDED;
    case USERABORT:
    case TIMEOUT:
    case PROCBREAK:
    case NOFEASFOUND:
        return HV_LP_STOPPED;
    default:
        return HV_LP_FAILED;
    }
}

/* The bounds of the variables: n_vars lower ones, then the upper ones. Owner: caller frees. */
static double *box_of(const struct hv_lp *lp)
{
    double *box = hv_xcalloc(2 * lp->vars.n + 1, sizeof *box);
    for (size_t j = 0; j < lp->vars.n; j++) {
        box[j] = lp->vars.items[j].lower;
        box[lp->vars.n + j] = lp->vars.items[j].upper;
    }
    return box;
}

/* Whether the point and the duals of a linear program prove each other; fills the reduced costs
 * and the bound. `cutoff` bounds variables without bounds, see hv__lp_prover_reach. */
static bool prove_linear(const struct hv_lp *lp, double cutoff, struct hv_lp_result *r)
{
    double sign = lp->sense == HV_LP_MIN ? 1 : -1, size;
    double *box = box_of(lp);
    double *y = hv_xcalloc(lp->rows.n + 1, sizeof *y);
    struct hv__lp_prover prover;
    for (size_t i = 0; i < lp->rows.n; i++) {
        y[i] = sign * r->duals[i];
    }
    hv__lp_prover_init(&prover, lp);
    double bound = hv__lp_safe_bound(&prover, y, box, box + lp->vars.n, false);
    if (isinf(bound) && isfinite(cutoff)) {
        hv__lp_prover_reach(&prover, sign * cutoff);
        bound = hv__lp_safe_bound(&prover, y, box, box + lp->vars.n, false);
        bound = fmin(bound, sign * cutoff);
    }
    r->bound = isfinite(bound) ? sign * bound : HV_UNKNOWN;
    hv__lp_reduced_costs(lp, r->duals, r->reduced);
    double value = hv__lp_min_value(lp, r->x, &size);
    /* the own tree has better numbers where it can be asked */
    double slack = hv__simplex_fits(lp) ? 1e-14 * size : 1e-12 * fmax(size, prover.size);
    hv__lp_prover_free(&prover);
    free(box);
    free(y);
    return fabs(value - bound) <= 1e-9 * fabs(value) + slack &&
           hv__lp_point_holds(lp, r->x, HV__LP_LINEAR);
}

static void take_answer(lprec *rec, const struct attempt *a, struct hv_lp_result *out)
{
    const struct hv_lp *lp = a->lp;
    out->x = hv_xcalloc(lp->vars.n + 1, sizeof *out->x);
    take_point(rec, a, out->x);
    out->objective = hv__lp_value(lp, out->x);
    if (!a->relaxed && !hv__lp_point_holds(lp, out->x, HV__LP_LOOSE)) {
        out->outcome = HV_LP_FAILED;
        return;
    }
    if (lp->has_integers && !a->relaxed) {
        return; /* its word is no proof */
    }
    out->duals = hv_xcalloc(lp->rows.n + 1, sizeof *out->duals);
    out->reduced = hv_xcalloc(lp->vars.n + 1, sizeof *out->reduced);
    take_duals(rec, a, out->duals);
    double reached = a->relaxed ? a->cutoff : out->objective;
    out->proven = prove_linear(lp, reached, out) && a->code == OPTIMAL;
}

/* Builds, solves, checks and deletes one lp_solve object. */
static enum hv_status try_once(struct attempt *a, struct watch *w, struct hv_lp_result *out,
                               struct hv_err *err)
{
    lprec *rec = build(a);
    if (!rec) {
        return hv_err_set(err, HV_EINTERNAL,
                          "lp_solve refused a model of %zu variables and %zu rows", a->lp->vars.n,
                          a->lp->rows.n);
    }
    set_up(rec, a, w);
    a->code = solve(rec);
    a->step = rec->bb_deltaOF;
    out->stopped = w->stopped;
    out->nodes += (int64_t)get_total_nodes(rec);
    out->outcome = outcome_of(a->code, w->stopped);
    out->proven = false;
    if (out->outcome == HV_LP_OPTIMAL || out->outcome == HV_LP_FEASIBLE) {
        take_answer(rec, a, out);
    }
    delete_lp(rec);
    return HV_OK;
}

/* A bound for an integer program without proof: its relaxation, where the duals confirm it. */
static void bound_by_relaxation(const struct attempt *a, struct hv_lp_result *out)
{
    struct hv_lp_limits limits = {.deadline_s = fmax(0.05, 0.25 * out->seconds)};
    struct watch w = {.limits = &limits};
    struct attempt relaxed = {.lp = a->lp,
                              .scale = a->scale,
                              .slack = SLACK_NONE,
                              .relaxed = true,
                              .cutoff = out->objective};
    struct hv_lp_result r = {.bound = HV_UNKNOWN};
    clock_gettime(CLOCK_MONOTONIC, &w.start);
    if (try_once(&relaxed, &w, &r, NULL) == HV_OK) {
        out->bound = r.bound;
    }
    hv_lp_result_free(&r);
}

static bool has_point(const struct hv_lp_result *r)
{
    return r->outcome == HV_LP_OPTIMAL || r->outcome == HV_LP_FEASIBLE;
}

static void drop_point(struct hv_lp_result *r)
{
    free(r->x);
    free(r->duals);
    free(r->reduced);
    r->x = r->duals = r->reduced = NULL;
    r->objective = r->bound = HV_UNKNOWN;
    r->proven = false;
}

/* Solves again when the first answer is suspect, and keeps the better: integer programs with a
 * slack in every row, linear ones (accuracy errors) without scaling. */
static enum hv_status solve_guarded(struct attempt *a, struct watch *w, struct hv_lp_result *out,
                                    struct hv_err *err)
{
    enum hv_status st = try_once(a, w, out, err);
    bool suspect = out->outcome == HV_LP_FAILED || (out->outcome == HV_LP_OPTIMAL && a->step != 0);
    if (!a->lp->has_integers) {
        suspect = out->outcome == HV_LP_FAILED || (out->outcome == HV_LP_OPTIMAL && !out->proven);
    }
    if (st != HV_OK || !suspect || w->stopped) {
        return st;
    }
    struct hv_lp_result again = {.objective = HV_UNKNOWN, .bound = HV_UNKNOWN};
    a->slack = a->lp->has_integers ? SLACK_ALL : SLACK_NONE;
    a->plain = !a->lp->has_integers;
    st = try_once(a, w, &again, err);
    out->nodes += again.nodes;
    out->stopped = again.stopped;
    double sign = a->lp->sense == HV_LP_MIN ? 1 : -1;
    bool better = has_point(&again) && (!has_point(out) || again.proven ||
                                        sign * again.objective < sign * out->objective);
    if (st == HV_OK && better) {
        int64_t nodes = out->nodes;
        hv_lp_result_free(out);
        *out = again;
        out->nodes = nodes;
        return st;
    }
    if (out->outcome == HV_LP_FAILED && again.outcome != HV_LP_FAILED && !has_point(&again)) {
        out->outcome = again.outcome;
    }
    hv_lp_result_free(&again);
    return st;
}

/* Takes over the answer of an own tree where it is better than the one that is there. True when it
 * is final. */
static bool take_tree(const struct hv_lp *lp, struct hv__branch *b, struct hv_lp_result *out)
{
    double sign = lp->sense == HV_LP_MIN ? 1 : -1;
    bool decided = b->outcome == HV_LP_INFEASIBLE || b->outcome == HV_LP_UNBOUNDED;
    out->nodes += b->nodes;
    if (decided) {
        drop_point(out);
        out->outcome = b->outcome;
        return true;
    }
    bool better = b->x && (!has_point(out) || b->outcome == HV_LP_OPTIMAL ||
                           b->value <= sign * out->objective);
    double bound = hv_known(out->bound) ? fmax(b->bound, sign * out->bound) : b->bound;
    if (better) {
        drop_point(out);
        out->outcome = b->outcome;
        out->x = b->x;
        b->x = NULL;
        out->objective = hv__lp_value(lp, out->x);
        out->proven = b->outcome == HV_LP_OPTIMAL;
    }
    if (better && b->y) {
        out->duals = b->y;
        b->y = NULL;
        out->reduced = hv_xcalloc(lp->vars.n + 1, sizeof *out->reduced);
        for (size_t i = 0; i < lp->rows.n; i++) {
            out->duals[i] *= sign;
        }
        hv__lp_reduced_costs(lp, out->duals, out->reduced);
    }
    if (has_point(out) && isfinite(bound)) {
        out->bound = sign * bound;
    }
    return out->proven || (b->complete && b->x);
}

/* An own tree within a share of the deadline; `start` = a point to beat, also that of `out`, or
 * NULL. True when its answer is final. */
static bool solve_by_tree(const struct hv_lp *lp, struct watch *w, double share,
                          const double *start, struct hv_lp_result *out)
{
    const struct hv__branch_limits limits = {.work = TREE_WORK,
                                             .max_nodes = w->limits->max_nodes,
                                             .gap = w->limits->gap,
                                             .stop = tree_stops,
                                             .ctx = w};
    struct hv__branch b;
    if (!hv__simplex_fits(lp) || w->stopped) {
        return false;
    }
    w->share = share;
    hv__branch_solve(lp, &limits, start, &b);
    bool final = take_tree(lp, &b, out);
    out->stopped = w->stopped;
    hv__branch_free(&b);
    return final;
}

/* The model with a variable for what each row misses, whose sum is minimised. */
static struct hv_lp *elastic(const struct hv_lp *lp)
{
    struct hv_lp *e = hv_lp_new(HV_LP_MIN);
    size_t n = lp->vars.n, used = 0;
    struct hv_lp_term *t = hv_xcalloc(n + 3, sizeof *t);
    struct hv_lp_term *sum = hv_xcalloc(2 * lp->rows.n + 1, sizeof *sum);
    enum hv_status st = HV_OK;
    for (size_t j = 0; j < n && st == HV_OK; j++) {
        const struct hv__lp_var *v = &lp->vars.items[j];
        st = hv_lp_add_var(e, v->lower, v->upper, false, NULL, NULL);
    }
    for (size_t i = 0; i < lp->rows.n && st == HV_OK; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        size_t k = r->n;
        if (k) {
            memcpy(t, lp->terms.items + r->first, k * sizeof *t);
        }
        for (int way = -1; way <= 1 && st == HV_OK; way += 2) {
            if ((way < 0 && r->op == HV_LP_GE) || (way > 0 && r->op == HV_LP_LE)) {
                continue;
            }
            st = hv_lp_add_var(e, 0, HUGE_VAL, false, &t[k].var, NULL);
            t[k].coef = way;
            sum[used++] = (struct hv_lp_term){t[k++].var, 1};
        }
        st = st == HV_OK ? hv_lp_add_row(e, t, k, r->op, r->rhs, NULL) : st;
    }
    st = st == HV_OK ? hv_lp_set_objective(e, sum, used, NULL) : st;
    free(t);
    free(sum);
    if (st != HV_OK) {
        hv_lp_free(e);
        return NULL;
    }
    return e;
}

/* True when the duals of the elastic model prove that the model has no point. */
static bool has_no_point(const struct hv_lp *lp, struct watch *w)
{
    struct hv_lp *e = elastic(lp);
    struct hv__lp_scale scale;
    struct hv_lp_result r = {.bound = HV_UNKNOWN};
    bool none = false;
    if (!e) {
        return false;
    }
    hv__lp_scaling(e, &scale);
    struct attempt a = {.lp = e, .scale = &scale};
    if (try_once(&a, w, &r, NULL) == HV_OK && r.duals) {
        double *box = box_of(lp);
        struct hv__lp_prover prover;
        hv__lp_prover_init(&prover, lp);
        none = hv__lp_no_point(&prover, r.duals, box, box + lp->vars.n);
        hv__lp_prover_free(&prover);
        free(box);
    }
    hv_lp_result_free(&r);
    hv_lp_free(e);
    free(scale.row);
    free(scale.col);
    return none;
}

/* True for a program with integers that is so small that the own tree comes before lp_solve. */
static bool is_for_tree(const struct hv_lp *lp, const struct watch *w)
{
    return lp->has_integers && !w->limits->unproven && lp->rows.n * lp->vars.n <= TREE_FIRST;
}

/* What lp_solve leaves open: a linear program without proof, a better point for an integer one, an
 * outcome without a point that is not certified. */
static void settle(const struct attempt *a, struct watch *w, struct hv_lp_result *out)
{
    const struct hv_lp *lp = a->lp;
    bool integer = lp->has_integers;
    if (out->proven || out->stopped) {
        return;
    }
    if (!integer && solve_by_tree(lp, w, 1, NULL, out)) {
        return;
    }
    if (integer && !w->limits->unproven && (has_point(out) || !is_for_tree(lp, w))) {
        const double *start = has_point(out) ? out->x : NULL;
        if (solve_by_tree(lp, w, 1, start, out)) {
            return;
        }
    }
    if (has_point(out)) {
        return;
    }
    bool claimed = out->outcome == HV_LP_INFEASIBLE;
    if (out->outcome == HV_LP_INFEASIBLE || out->outcome == HV_LP_UNBOUNDED) {
        out->outcome = w->stopped ? HV_LP_STOPPED : HV_LP_FAILED;
    }
    if (claimed && !w->stopped && has_no_point(lp, w)) {
        out->outcome = HV_LP_INFEASIBLE;
    }
}

/* Without rows every variable takes its better bound; lp_solve is not called. */
static void solve_without_rows(const struct hv_lp *lp, struct hv_lp_result *out)
{
    double sign = lp->sense == HV_LP_MIN ? 1 : -1;
    out->x = hv_xcalloc(lp->vars.n + 1, sizeof *out->x);
    out->outcome = HV_LP_OPTIMAL;
    for (size_t j = 0; j < lp->vars.n; j++) {
        const struct hv__lp_var *v = &lp->vars.items[j];
        double at = sign * v->cost > 0 ? v->lower : v->upper;
        if (v->cost == 0) {
            at = fmin(fmax(0, v->lower), v->upper);
        }
        if (isinf(at)) {
            out->outcome = HV_LP_UNBOUNDED;
        }
        out->x[j] = at;
    }
    out->proven = out->outcome == HV_LP_OPTIMAL;
    if (!out->proven) {
        return;
    }
    out->objective = hv__lp_value(lp, out->x);
    out->bound = sign * hv__lp_min_value_down(lp, out->x);
    if (lp->has_integers) {
        return;
    }
    out->duals = hv_xcalloc(lp->rows.n + 1, sizeof *out->duals);
    out->reduced = hv_xcalloc(lp->vars.n + 1, sizeof *out->reduced);
    for (size_t j = 0; j < lp->vars.n; j++) {
        out->reduced[j] = lp->vars.items[j].cost;
    }
}

/* lp_solve, and what is needed after it. */
static enum hv_status solve_by_lp_solve(const struct hv_lp *lp, struct watch *w,
                                        struct hv_lp_result *out, struct hv_err *err)
{
    struct hv__lp_scale scale;
    struct hv_lp_result r = {
        .objective = HV_UNKNOWN, .bound = HV_UNKNOWN, .n_vars = lp->vars.n, .n_rows = lp->rows.n};
    hv__lp_scaling(lp, &scale);
    struct attempt a = {.lp = lp, .scale = &scale, .cutoff = HV_UNKNOWN};
    a.slack = lp->has_integers ? SLACK_REAL : SLACK_NONE;
    enum hv_status st = solve_guarded(&a, w, &r, err);
    double sign = lp->sense == HV_LP_MIN ? 1 : -1;
    if (has_point(out) && (!has_point(&r) || sign * out->objective <= sign * r.objective)) {
        out->stopped = r.stopped; /* the tree's point is as good */
        out->nodes += r.nodes;
        hv_lp_result_free(&r);
        st = HV_OK;
    } else {
        r.outcome = st == HV_OK ? r.outcome : HV_LP_FAILED;
        r.nodes += out->nodes;
        r.bound = lp->has_integers ? out->bound : r.bound;
        hv_lp_result_free(out);
        *out = r;
        settle(&a, w, out);
        st = out->outcome != HV_LP_FAILED ? HV_OK : st;
    }
    out->n_vars = lp->vars.n;
    out->n_rows = lp->rows.n;
    out->seconds = seconds_since(&w->start);
    if (st == HV_OK && has_point(out) && lp->has_integers && !w->limits->unproven &&
        !hv_known(out->bound)) {
        bound_by_relaxation(&a, out);
    }
    free(scale.row);
    free(scale.col);
    return st;
}

enum hv_status hv_lp_solve(const struct hv_lp *lp, const struct hv_lp_limits *limits,
                           struct hv_lp_result *out, struct hv_err *err)
{
    static const struct hv_lp_limits no_limits = {0};
    struct watch w = {.limits = limits ? limits : &no_limits};
    enum hv_status st = HV_OK;
    memset(out, 0, sizeof *out);
    out->objective = out->bound = HV_UNKNOWN;
    out->n_vars = lp->vars.n;
    out->n_rows = lp->rows.n;
    clock_gettime(CLOCK_MONOTONIC, &w.start);
    if (hv__lp_is_hopeless(lp)) {
        out->outcome = HV_LP_INFEASIBLE;
        return HV_OK;
    }
    if (lp->terms.n == 0) {
        solve_without_rows(lp, out);
        if (!out->proven) {
            drop_point(out);
        }
        return HV_OK;
    }
    out->outcome = HV_LP_FAILED;
    if (!is_for_tree(lp, &w) || !solve_by_tree(lp, &w, 0.5, NULL, out)) {
        st = solve_by_lp_solve(lp, &w, out, err);
    }
    out->seconds = seconds_since(&w.start);
    if (out->outcome == HV_LP_OPTIMAL && !out->proven) {
        out->outcome = HV_LP_FEASIBLE;
    }
    if (!has_point(out)) {
        drop_point(out);
    }
    return st;
}

void hv_lp_result_free(struct hv_lp_result *r)
{
    free(r->x);
    free(r->duals);
    free(r->reduced);
    memset(r, 0, sizeof *r);
}

void hv_lp_library(struct hv_str *out)
{
    int major = 0, minor = 0, release = 0, build = 0;

    lp_solve_version(&major, &minor, &release, &build);
    hv_str_addf(out, "%d.%d.%d.%d", major, minor, release, build);
}
