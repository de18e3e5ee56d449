/* Fitting of device classes on published rows. Selects rows, weights and parameters; the
 * least-squares solver is optim/fit and the times come from the simulator. */
#include "solver/validate/fit_int.h"

#include "solver/base/units.h"
#include "solver/optim/choice/fit.h"
#include "solver/validate/memo.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Residuals are logarithms: beyond 3 % they count as absolute values. */
#define HUBER 0.03
/* Step of the finite differences of a Jacobian, in units of a parameter's spread. */
#define DIFFERENCE 0.05
/* Ridge: a parameter one spread from its typical value adds 0.2 % to the mean error. */
#define RIDGE 2e-3
/* Rows of a family from which on all of its numbers are fitted; fewer tell only the shares of
 * products in their formats. */
#define ENOUGH 10
#define STEPS  24
/* Jacobians after the first; a second one changes no group by more than 0.4 %. */
#define JACOBIANS 1
#define TOLERANCE 2e-3

enum { N = HV_CALIBRATED_N };

/* ---- rows of one class ----------------------------------------------------------------------- */

/* State of the fit of one class. Arrays have one entry per row of the class. */
struct work {
    struct hv_validation *v;
    struct hv_arena scratch;
    struct hv_calibration *numbers; /* calibration that the clusters of the class use */
    size_t *rows, n;                /* indices into v->rows */
    size_t *same;                   /* first entry of the same configuration */
    struct hv_plan **plans;         /* of the first entries; NULL elsewhere */
    double *log_measured, *weights;
    struct hv__memo memo;        /* predicted seconds of the first entries */
    struct hv__memo_point aside; /* the same at a finite-difference step */
    double *jacobian, *r;        /* n × N, n */
    struct hv__fit_prior prior;  /* target of the ridge */
};

/* Rows of one sort of model. */
enum family { DENSE, EXPERTS, BOTH };

/* Times of the first entries at x, for rows of non-zero weight only, into `at`, the point of x,
 * which may hold some already. */
static void evaluate(struct work *w, const double *x, struct hv__memo_point *at,
                     const struct hv__memo_point *near, int param)
{
    hv__fit_to_v(x, w->numbers->v);
    for (size_t i = 0; i < w->n; i++) {
        size_t s = w->same[i];
        if (w->weights[i] <= 0 || at->known[s]) {
            continue;
        }
        bool held = near != NULL && hv__memo_holds(&w->memo, near, param, s);
        at->value[s] =
            held ? near->value[s]
                 : hv_validation_time_s(&w->v->rows[w->rows[s]], w->plans[s], &w->scratch, NULL);
        at->known[s] = true;
    }
}

/* Residuals: log(predicted / measured). Rows of weight 0 are not evaluated; next to a point that
 * was evaluated, only rows that depend on the parameter that differs. */
static enum hv_status residuals(void *ctx, const double *x, double *r, struct hv_err *err)
{
    struct work *w = ctx;
    struct hv__memo_point *at = &w->aside;
    int param = -1;
    struct hv__memo_point *near = hv__memo_near(&w->memo, x, &param);
    (void)err;
    if (near == NULL) {
        at = hv__memo_add(&w->memo, x);
    } else if (param < 0) {
        at = near;
    } else {
        memset(at->known, 0, w->n * sizeof *at->known);
    }
    evaluate(w, x, at, param < 0 ? NULL : near, param);
    for (size_t i = 0; i < w->n; i++) {
        r[i] = w->weights[i] > 0 ? log(at->value[w->same[i]]) - w->log_measured[i] : HV_UNKNOWN;
    }
    return HV_OK;
}

static bool same_group(const struct hv_validation_row *a, const struct hv_validation_row *b)
{
    return a->low_bits == b->low_bits && a->experts == b->experts &&
           strcmp(a->device, b->device) == 0;
}

/* True for a row that counts in a fit of that family without a source. */
static bool counts(const struct hv_validation_row *row, const char *without, enum family f)
{
    return (f == BOTH || row->experts == (f == EXPERTS)) &&
           (without == NULL || strcmp(row->source, without) != 0);
}

/* Weights of the rows of a family: each source the same, inside it each group, inside that each
 * row; 0 for `without`. Groups of mixtures hold rows of one to three models, the smallest of one
 * model, whose own ways would count as much as all others: they weigh by the root of their rows.
 * From ENOUGH rows on they sum up to 1 / HUBER, so that the objective is
 * about the mean error; fewer weigh less against the prior. Returns the number of rows. */
static size_t weigh(struct work *w, const char *without, enum family f)
{
    double total = 0;
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct hv_validation_row *a = &w->v->rows[w->rows[i]];
        size_t group = 0, groups = 0;
        w->weights[i] = 0;
        if (!counts(a, without, f)) {
            continue;
        }
        n++;
        for (size_t k = 0; k < w->n; k++) {
            const struct hv_validation_row *b = &w->v->rows[w->rows[k]];
            if (strcmp(a->source, b->source) != 0 || !counts(b, without, f)) {
                continue;
            }
            group += same_group(a, b);
            bool first = true;
            for (size_t j = 0; first && j < k; j++) {
                const struct hv_validation_row *c = &w->v->rows[w->rows[j]];
                first = strcmp(c->source, b->source) != 0 || !same_group(c, b);
            }
            groups += first;
        }
        double rows = a->experts ? sqrt((double)group) : (double)group;
        w->weights[i] = 1.0 / (rows * (double)groups);
        total += w->weights[i];
    }
    for (size_t i = 0; i < w->n && total > 0; i++) {
        w->weights[i] *= fmin((double)n / ENOUGH, 1) / (total * HUBER);
    }
    return n;
}

/* Mean error of the objective at residuals r. */
static double mean_error(const struct work *w, const double *r)
{
    double sum = 0, total = 0;
    for (size_t i = 0; i < w->n; i++) {
        sum += w->weights[i] > 0 ? w->weights[i] * fabs(r[i]) : 0;
        total += w->weights[i];
    }
    return total > 0 ? sum / total : 0;
}

/* True for a row that cannot have run as it is described: without the recomputation that its source
 * does not state, it needs more than twice the memory of its devices. Between once and twice,
 * cheaper parts of layers may have been computed again. */
static bool incredible(const struct hv_validation_row *row, const struct hv_prediction *p)
{
    double room = hv_cluster_device(row->cluster, 0).kind->memory_bytes;
    return row->recompute == HV_ROW_RECOMPUTE_UNKNOWN && p->peak_bytes > 2 * room;
}

/* Collects the class's timed rows and builds their plans. */
static enum hv_status open_class(struct work *w, struct hv_validation *v,
                                 const struct hv_prediction *shipped, const char *name,
                                 struct hv_arena *arena, struct hv_err *err)
{
    *w = (struct work){.v = v};
    w->rows = hv_arena_new(arena, size_t, v->n_rows + 1);
    for (size_t i = 0; i < v->n_rows; i++) {
        bool timed = hv_known(v->rows[i].measured_s) && hv_known(shipped[i].iteration_s);
        if (timed && !v->rows[i].mixed && !v->rows[i].held_out &&
            !incredible(&v->rows[i], &shipped[i]) &&
            strcmp(hv__fit_class_of(&v->rows[i])->name, name) == 0) {
            w->rows[w->n++] = i;
        }
    }
    w->same = hv_arena_new(arena, size_t, w->n + 1);
    w->plans = hv_arena_new(arena, struct hv_plan *, w->n + 1);
    w->log_measured = hv_arena_new(arena, double, w->n + 1);
    w->weights = hv_arena_new(arena, double, w->n + 1);
    w->aside.value = hv_arena_new(arena, double, w->n + 1);
    w->aside.known = hv_arena_new(arena, bool, w->n + 1);
    hv__memo_init(&w->memo, N, w->n, arena);
    w->jacobian = hv_arena_new(arena, double, 2 * w->n * N + N);
    w->r = hv_arena_new(arena, double, w->n + 1);
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < w->n; i++) {
        const struct hv_validation_row *row = &v->rows[w->rows[i]];
        w->log_measured[i] = log(row->measured_s);
        while (!hv_validation_same(&v->rows[w->rows[w->same[i]]], row)) {
            w->same[i]++;
        }
        if (w->same[i] == i) {
            st = hv__fit_plan(row, &shipped[w->rows[i]], &w->plans[i], err);
        }
    }
    return st;
}

static void close_class(struct work *w)
{
    for (size_t i = 0; i < w->n; i++) {
        hv_plan_unref(w->plans[i]);
    }
    hv_arena_free(&w->scratch);
}

/* Makes the clusters of the class use a calibration that the fit may change. */
static void borrow_clusters(struct work *w, struct hv_calibration *numbers)
{
    w->numbers = numbers;
    for (size_t i = 0; i < w->n; i++) {
        struct hv_cluster *c = w->v->rows[w->rows[i]].cluster;
        if (hv_device_calibration(hv_cluster_device(c, 0).kind) != numbers) {
            hv_cluster_calibrate(c, numbers);
        }
    }
}

/* ---- fits ------------------------------------------------------------------------------------ */

static void fill_sources(const struct work *w, struct hv_class_fit *out, struct hv_arena *arena)
{
    out->n_rows = w->n;
    out->sources = hv_arena_new(arena, const char *, w->n + 1);
    for (size_t i = 0; i < w->n; i++) {
        const char *s = w->v->rows[w->rows[i]].source;
        size_t k = 0;
        while (k < out->n_sources && strcmp(out->sources[k], s) != 0) {
            k++;
        }
        if (k == out->n_sources) {
            out->sources[out->n_sources++] = s;
        }
    }
}

/* The class being fitted, and the finished fits of other classes. */
struct others {
    const struct hv_calibration *self;
    const struct hv_class_fit *fits;
    size_t n;
};

/* What is fitted, on how many rows. */
struct part {
    enum family family;
    size_t n_rows;
    bool wide; /* some of them in 16 bit */
};

/* True for a number that the rows of this part tell. */
static bool is_fitted(int k, const struct part *p)
{
    bool product = k == HV_CAL_GEMM_16 ? p->wide : k == HV_CAL_GEMM_8 || k == HV_CAL_GEMM_4;
    return hv_calibrated_by_experts(k) == (p->family == EXPERTS) &&
           (p->family == EXPERTS || p->n_rows >= ENOUGH || product);
}

/* Fits the numbers of a part with the weights of w from x, and writes x; the others stay. `known`:
 * `jacobian` holds the derivatives there already. */
static enum hv_status solve(struct work *w, const struct part *part, bool known, double *jacobian,
                            struct hv_fit_result *out, struct hv_err *err)
{
    double least[N], most[N], ridge[N], low[N], high[N], start[N];
    for (int k = 0; k < N; k++) {
        low[k] = hv_calibrated_rows[k].least;
        high[k] = hv_calibrated_rows[k].most;
        start[k] = out->x[k];
    }
    hv__fit_to_x(low, least);
    hv__fit_to_x(high, most);
    for (int k = 0; k < N; k++) {
        bool fixed = !is_fitted(k, part);
        bool ratio = k == HV_CAL_GEMM_8 || k == HV_CAL_GEMM_4;
        least[k] = fixed ? start[k] : ratio ? -HV__FIT_FARTHEST : least[k];
        most[k] = fixed ? start[k] : ratio ? HV__FIT_FARTHEST : most[k];
        ridge[k] = RIDGE * w->prior.pull[k];
    }
    const struct hv_fit f = {.n_params = N,
                             .n_residuals = w->n,
                             .start = start,
                             .least = least,
                             .most = most,
                             .prior = w->prior.x,
                             .ridge = ridge,
                             .weights = w->weights,
                             .huber = HUBER,
                             .step = DIFFERENCE,
                             .max_jacobians = known ? JACOBIANS : JACOBIANS + 1,
                             .max_steps = STEPS,
                             .tolerance = TOLERANCE,
                             .residuals = residuals,
                             .ctx = w};
    out->jacobian = jacobian;
    out->residuals = w->r;
    out->known_jacobian = known;
    return hv_fit_solve(&f, out, err);
}

/* Inverse of a symmetric positive matrix of size N at (k, k), by elimination of a copy. */
static double inverse_at(const double *normal, int k)
{
    double a[N][N], e[N] = {0};
    memcpy(a, normal, sizeof a);
    e[k] = 1;
    for (int p = 0; p < N; p++) {
        for (int q = p + 1; q < N; q++) {
            double f = a[q][p] / a[p][p];
            for (int c = p; c < N; c++) {
                a[q][c] -= f * a[p][c];
            }
            e[q] -= f * e[p];
        }
    }
    for (int p = N; p-- > k;) {
        for (int c = p + 1; c < N; c++) {
            e[p] -= a[p][c] * e[c];
        }
        e[p] /= a[p][p];
    }
    return e[k];
}

/* One standard deviation of the logarithm of every number of a family: the curvature of the
 * objective at its end, in which a pull of 1 stands for one spread. */
static void take_uncertainty(struct work *w, enum family family, const double *jacobian,
                             double *uncertainty)
{
    double normal[N * N] = {0};
    for (size_t i = 0; i < w->n; i++) {
        double wi = w->weights[i] > 0 ? w->weights[i] : 0;
        wi *= wi > 0 ? fmin(1, HUBER / fmax(fabs(w->r[i]), HUBER)) : 0;
        for (int p = 0; p < N; p++) {
            for (int q = 0; q < N; q++) {
                normal[p * N + q] +=
                    wi > 0 ? wi * jacobian[i * N + (size_t)p] * jacobian[i * N + (size_t)q] / RIDGE
                           : 0;
            }
        }
    }
    for (int k = 0; k < N; k++) {
        normal[k * N + k] += w->prior.pull[k];
    }
    for (int k = 0; k < N; k++) {
        if (hv_calibrated_by_experts(k) == (family == EXPERTS)) {
            uncertainty[k] = hv__fit_spread(k) * sqrt(inverse_at(normal, k));
        }
    }
}

/* The numbers of dense models on rows of dense models, then those of experts on mixtures: what is
 * not understood of mixtures moves nothing else. `uncertainty` may be NULL. */
static enum hv_status solve_families(struct work *w, const char *without, struct hv_calibration *to,
                                     double *uncertainty, size_t *n_calls, struct hv_err *err)
{
    double x[N], *carried = w->jacobian + w->n * N;
    enum hv_status st = HV_OK;
    memcpy(carried, w->jacobian, w->n * N * sizeof *carried);
    for (enum family f = DENSE; st == HV_OK && f <= EXPERTS; f++) {
        struct part part = {f, weigh(w, without, f), false};
        struct hv_fit_result r = {.x = x};
        for (size_t i = 0; i < w->n; i++) {
            part.wide = part.wide || (w->weights[i] > 0 && !w->v->rows[w->rows[i]].low_bits);
        }
        for (int k = 0; k < N; k++) {
            bool mine = hv_calibrated_by_experts(k) == (f == EXPERTS);
            if (f == DENSE || mine) {
                x[k] = mine && is_fitted(k, &part) && part.n_rows > 0 ? 0 : w->prior.x[k];
            }
        }
        if (part.n_rows > 0) {
            /* the first derivatives were taken at the typical values */
            st = solve(w, &part, f == DENSE && part.n_rows >= ENOUGH, carried, &r, err);
        }
        if (uncertainty != NULL) {
            take_uncertainty(w, f, carried, uncertainty);
        }
        *n_calls += (size_t)r.n_calls;
    }
    hv__fit_to_v(x, to->v);
    return st;
}

/* Sets the target of the ridge without `source` (NULL: with all). The search itself starts at the
 * typical values. */
static void set_prior(struct work *w, const struct others *o, const char *source)
{
    hv__fit_prior_of(w->v, o->self, source, o->fits, o->n, &w->prior);
}

/* Fits the class without each of its sources, from the typical values and the Jacobian there, so
 * that no figure of the left-out source has an influence. */
static enum hv_status fit_left_out(struct work *w, const struct others *o, struct hv_class_fit *out,
                                   struct hv_arena *arena, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    out->without = hv_arena_new(arena, struct hv_class_without, out->n_sources);
    for (size_t s = 0; st == HV_OK && s < out->n_sources; s++) {
        set_prior(w, o, out->sources[s]);
        out->without[s] = (struct hv_class_without){out->sources[s], out->all};
        st = solve_families(w, out->sources[s], &out->without[s].fit, NULL, &out->n_calls, err);
        out->n_without++;
    }
    return st;
}

/* The error of some numbers on all rows of the class. */
static enum hv_status error_of(struct work *w, const struct hv_calibration *c, double *error,
                               struct hv_err *err)
{
    double x[N];
    hv__fit_to_x(c->v, x);
    (void)weigh(w, NULL, BOTH);
    enum hv_status st = residuals(w, x, w->r, err);
    *error = mean_error(w, w->r);
    return st;
}

/* Derivatives of all residuals at the typical values, into w->jacobian. Afterwards a row counts as
 * independent of the parameters that did not change its time. */
static enum hv_status first_jacobian(struct work *w, struct hv_arena *arena, struct hv_err *err)
{
    double x[N] = {0}, *moved = w->jacobian + w->n * N;
    bool *moves = hv_arena_new(arena, bool, w->n *N + 1);
    enum hv_status st = residuals(w, x, w->r, err);
    for (int k = 0; st == HV_OK && k < N; k++) {
        x[k] = DIFFERENCE;
        st = residuals(w, x, moved, err);
        x[k] = 0;
        for (size_t i = 0; i < w->n; i++) {
            w->jacobian[i * N + (size_t)k] = (moved[i] - w->r[i]) / DIFFERENCE;
            if (moved[i] != w->r[i]) {
                moves[w->same[i] * N + (size_t)k] = true;
            }
        }
    }
    w->memo.moves = moves;
    return st;
}

static enum hv_status fit_class(struct hv_validation *v, const struct hv_prediction *shipped,
                                const struct hv_fit_request *what, size_t i, struct hv_arena *arena,
                                struct hv_class_fit *all, struct hv_err *err)
{
    const struct hv_calibration *c = &what->classes[i];
    const struct others others = {c, all, what->n_classes};
    struct hv_class_fit *out = &all[i];
    struct work w;
    *out = (struct hv_class_fit){.all = *c};
    enum hv_status st = open_class(&w, v, shipped, c->name, arena, err);
    if (st == HV_OK && w.n > 0) {
        struct hv_calibration *numbers = hv_arena_copy(arena, c, 1, sizeof *numbers);
        borrow_clusters(&w, numbers);
        fill_sources(&w, out, arena);
        (void)weigh(&w, NULL, BOTH);
        set_prior(&w, &others, NULL);
        st = first_jacobian(&w, arena, err);
        st = st ? st : error_of(&w, c, &out->error_before, err);
        st = st ? st : solve_families(&w, NULL, &out->all, out->uncertainty, &out->n_calls, err);
        st = st ? st : error_of(&w, &out->all, &out->error_after, err);
        if (st == HV_OK && what->leave_out && out->n_sources > 1) {
            st = fit_left_out(&w, &others, out, arena, err);
        }
        *numbers = out->all;
    }
    close_class(&w);
    return st;
}

/* True where the similar class of class i is not fitted yet. */
static bool waits(const struct hv_fit_request *what, size_t i, const bool *done)
{
    const char *like = what->classes[i].like;
    for (size_t k = 0; like != NULL && k < what->n_classes; k++) {
        if (k != i && !done[k] && strcmp(what->classes[k].name, like) == 0) {
            return true;
        }
    }
    return false;
}

enum hv_status hv_validation_fit(struct hv_validation *v, const struct hv_prediction *shipped,
                                 const struct hv_fit_request *what, struct hv_arena *arena,
                                 struct hv_class_fit *out, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    bool *done = hv_arena_new(arena, bool, what->n_classes + 1);
    for (size_t i = 0; i < what->n_classes; i++) {
        out[i] = (struct hv_class_fit){.all = what->classes[i]};
    }
    /* similar classes first; classes in a cycle of similarity keep their order */
    for (size_t left = what->n_classes, i = 0, passed = 0; st == HV_OK && left > 0;
         i = (i + 1) % what->n_classes) {
        if (done[i] || (waits(what, i, done) && passed++ < what->n_classes)) {
            continue;
        }
        st = fit_class(v, shipped, what, i, arena, out, err);
        done[i] = true;
        passed = 0;
        left--;
    }
    return st;
}
