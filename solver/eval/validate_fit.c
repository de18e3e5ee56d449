/* Fitting of device classes on published rows. Which rows, which weights, which numbers; the
 * least squares are optim/fit's and the times the judge's. */
#include "solver/eval/validate_fit.h"

#include "solver/base/units.h"
#include "solver/eval/validate_memo.h"
#include "solver/optim/fit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Residuals are logarithms: beyond 3 % they count as absolute values. */
#define HUBER 0.03
/* Difference of a Jacobian, in units of a number's spread. */
#define DIFFERENCE 0.05
/* No number moves farther from its typical value than this many spreads. */
#define FARTHEST 6.0
/* Ridge: a number one spread from its typical value costs 0.2 % of mean error. */
#define RIDGE 2e-3
#define STEPS 24
/* Jacobians after the first; a second one changes no group by more than 0.4 %. */
#define JACOBIANS 1
#define TOLERANCE 2e-3

enum { N = HV_CALIBRATED_N };

/* ---- the numbers as the fitter sees them ----------------------------------------------------- */

/* By its logarithm, in units of its spread, from its typical value. */
static double to_x(int k, double v)
{
    const struct hv_calibrated_row *r = &hv_calibrated_rows[k];
    double x = v > 0 ? log(v / r->typical) / r->spread : -FARTHEST;
    return x < -FARTHEST ? -FARTHEST : x > FARTHEST ? FARTHEST : x;
}

static double to_v(int k, double x)
{
    const struct hv_calibrated_row *r = &hv_calibrated_rows[k];
    double v = r->typical * exp(x * r->spread);
    return v < r->least ? r->least : v > r->most ? r->most : v;
}

/* ---- rows of one class ----------------------------------------------------------------------- */

/* Everything one class is fitted with. Arrays have one entry per row of the class. */
struct work {
    struct hv_validation *v;
    struct hv_arena scratch;
    struct hv_calibration *numbers; /* what the clusters of the class point at */
    size_t *rows, n;                /* numbers in v->rows */
    size_t *same;                   /* first entry of the same configuration */
    struct hv_plan **plans;         /* of the first entries; NULL elsewhere */
    double *log_measured, *weights;
    struct hv__memo memo;        /* predicted seconds of the first entries */
    struct hv__memo_point aside; /* the same where x is a step of a derivative */
    double *jacobian, *r;        /* n × N, n */
};

static const struct hv_calibration *class_of(const struct hv_validation_row *row)
{
    return hv_device_calibration(hv_cluster_device(row->cluster, 0).kind);
}

/* Times of the first entries at x, as far as weights ask for them; `at` is new, or x itself. */
static void evaluate(struct work *w, const double *x, struct hv__memo_point *at,
                     const struct hv__memo_point *near, int param)
{
    for (int k = 0; k < N; k++) {
        w->numbers->v[k] = to_v(k, x[k]);
    }
    for (size_t i = 0; i < w->n; i++) {
        size_t s = w->same[i];
        if (w->weights[i] <= 0 || at->known[s]) {
            continue;
        }
        bool held = near != NULL && hv__memo_holds(&w->memo, near, param, s);
        at->value[s] =
            held ? near->value[s]
                 : hv_validation_time_s(&w->v->rows[w->rows[s]], w->plans[s], &w->scratch);
        at->known[s] = true;
    }
}

/* Residuals: log(predicted / measured). Rows of weight 0 are not evaluated; next to a point that
 * is known, only rows that react to the number that differs. */
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

/* Weights: each source the same, inside it each group, inside that each row; 0 for `without`. They
 * sum up to 1 / HUBER, so that the objective is about the mean error. */
static void weigh(struct work *w, const char *without)
{
    double total = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct hv_validation_row *a = &w->v->rows[w->rows[i]];
        size_t group = 0, groups = 0;
        for (size_t k = 0; k < w->n; k++) {
            const struct hv_validation_row *b = &w->v->rows[w->rows[k]];
            if (strcmp(a->source, b->source) != 0) {
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
        bool counts = without == NULL || strcmp(a->source, without) != 0;
        w->weights[i] = counts ? 1.0 / ((double)group * (double)groups) : 0;
        total += w->weights[i];
    }
    for (size_t i = 0; i < w->n && total > 0; i++) {
        w->weights[i] /= total * HUBER;
    }
}

/* Mean error of the objective at residuals r. */
static double mean_error(const struct work *w, const double *r)
{
    double sum = 0;
    for (size_t i = 0; i < w->n; i++) {
        sum += w->weights[i] > 0 ? w->weights[i] * HUBER * fabs(r[i]) : 0;
    }
    return sum;
}

/* The plan of a first entry, with the recomputation that its prediction took. */
static enum hv_status make_plan(const struct hv_validation_row *row,
                                const struct hv_prediction *shipped, struct hv_plan **out,
                                struct hv_err *err)
{
    struct hv_grid g = row->grid;
    g.recompute = shipped->recompute;
    return hv_plan_grid(row->cluster, row->job.precision, row->model->n_blocks, &g, out, err);
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
        if (timed && strcmp(class_of(&v->rows[i])->name, name) == 0) {
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
            st = make_plan(row, &shipped[w->rows[i]], &w->plans[i], err);
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

/* Points the clusters of the class at numbers that may change. */
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

/* Fits with the weights of w from `start`; the Jacobian in w->jacobian is used where known. */
static enum hv_status solve(struct work *w, const double *start, double *jacobian, bool known,
                            struct hv_fit_result *out, struct hv_err *err)
{
    double least[N], most[N], prior[N], ridge[N];
    for (int k = 0; k < N; k++) {
        least[k] = to_x(k, hv_calibrated_rows[k].least);
        most[k] = to_x(k, hv_calibrated_rows[k].most);
        prior[k] = 0;
        ridge[k] = RIDGE;
    }
    const struct hv_fit f = {.n_params = N,
                             .n_residuals = w->n,
                             .start = start,
                             .least = least,
                             .most = most,
                             .prior = prior,
                             .ridge = ridge,
                             .weights = w->weights,
                             .huber = HUBER,
                             .step = DIFFERENCE,
                             .max_jacobians = JACOBIANS,
                             .max_steps = STEPS,
                             .tolerance = TOLERANCE,
                             .residuals = residuals,
                             .ctx = w};
    out->jacobian = jacobian;
    out->residuals = w->r;
    out->known_jacobian = known;
    return hv_fit_solve(&f, out, err);
}

static void take_numbers(struct hv_calibration *c, const double *x)
{
    for (int k = 0; k < N; k++) {
        c->v[k] = to_v(k, x[k]);
    }
}

/* The class without each of its sources: from the typical values and the Jacobian there, so that
 * nothing of the source gets in. */
static enum hv_status fit_left_out(struct work *w, struct hv_class_fit *out, struct hv_arena *arena,
                                   struct hv_err *err)
{
    enum hv_status st = HV_OK;
    size_t size = w->n * N;
    double x[N], start[N] = {0}, *carried = w->jacobian + size;
    out->without = hv_arena_new(arena, struct hv_class_without, out->n_sources);
    for (size_t s = 0; st == HV_OK && s < out->n_sources; s++) {
        struct hv_fit_result r = {.x = x};
        weigh(w, out->sources[s]);
        memcpy(carried, w->jacobian, size * sizeof *carried);
        st = solve(w, start, carried, true, &r, err);
        out->without[s] = (struct hv_class_without){out->sources[s], out->all};
        take_numbers(&out->without[s].fit, x);
        out->n_calls += (size_t)r.n_calls;
        out->n_without++;
    }
    return st;
}

/* The error of the shipped numbers. */
static enum hv_status before(struct work *w, const struct hv_calibration *c,
                             struct hv_class_fit *out, struct hv_err *err)
{
    double x[N];
    for (int k = 0; k < N; k++) {
        x[k] = to_x(k, c->v[k]);
    }
    enum hv_status st = residuals(w, x, w->r, err);
    out->error_before = mean_error(w, w->r);
    return st;
}

/* Derivatives of all residuals at the typical values, into w->jacobian. From then on a row counts
 * as blind to the numbers that did not move it at all. */
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
                                struct hv_class_fit *out, struct hv_err *err)
{
    const struct hv_calibration *c = &what->classes[i];
    struct work w;
    double start[N] = {0}, x[N];
    *out = (struct hv_class_fit){.all = *c};
    enum hv_status st = open_class(&w, v, shipped, c->name, arena, err);
    if (st == HV_OK && w.n > 0) {
        struct hv_fit_result r = {.x = x};
        struct hv_calibration *numbers = hv_arena_copy(arena, c, 1, sizeof *numbers);
        borrow_clusters(&w, numbers);
        fill_sources(&w, out, arena);
        weigh(&w, NULL);
        st = first_jacobian(&w, arena, err);
        st = st ? st : before(&w, c, out, err);
        size_t size = w.n * N;
        memcpy(w.jacobian + size, w.jacobian, size * sizeof *w.jacobian);
        st = st ? st : solve(&w, start, w.jacobian + size, true, &r, err);
        out->error_after = mean_error(&w, w.r);
        out->n_calls = (size_t)r.n_calls;
        take_numbers(&out->all, x);
        if (st == HV_OK && what->leave_out && out->n_sources > 1) {
            st = fit_left_out(&w, out, arena, err);
        }
        *numbers = out->all;
    }
    close_class(&w);
    return st;
}

enum hv_status hv_validation_fit(struct hv_validation *v, const struct hv_prediction *shipped,
                                 const struct hv_fit_request *what, struct hv_arena *arena,
                                 struct hv_class_fit *out, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < what->n_classes; i++) {
        st = fit_class(v, shipped, what, i, arena, &out[i], err);
    }
    return st;
}

/* ---- prediction by fits that did not see the source -------------------------------------------
 */

/* The numbers of a class as far as they know nothing of `source`; NULL where they know only it. */
static const struct hv_calibration *without_source(const struct hv_class_fit *f, const char *source)
{
    for (size_t i = 0; i < f->n_without; i++) {
        if (strcmp(f->without[i].source, source) == 0) {
            return &f->without[i].fit;
        }
    }
    for (size_t i = 0; i < f->n_sources; i++) {
        if (strcmp(f->sources[i], source) == 0) {
            return NULL;
        }
    }
    return f->n_rows > 0 ? &f->all : NULL;
}

/* Mean of the classes other than `own` that know nothing of `source`; false when there are none. */
static bool generic_fit(const struct hv_class_fit *fits, size_t n, const char *own,
                        const char *source, struct hv_calibration *out)
{
    double x[N] = {0};
    size_t many = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hv_calibration *c = without_source(&fits[i], source);
        if (c == NULL || strcmp(fits[i].all.name, own) == 0) {
            continue;
        }
        many++;
        for (int k = 0; k < N; k++) {
            x[k] += to_x(k, c->v[k]);
        }
    }
    for (int k = 0; many > 0 && k < N; k++) {
        out->v[k] = to_v(k, x[k] / (double)many);
    }
    return many > 0;
}

static const struct hv_class_fit *fit_named(const struct hv_class_fit *fits, size_t n,
                                            const char *name)
{
    for (size_t i = 0; name != NULL && i < n; i++) {
        if (strcmp(fits[i].all.name, name) == 0) {
            return &fits[i];
        }
    }
    return NULL;
}

/* Watts that a kind has for every 16-bit FLOP/s of its data sheet. */
static double watts_per_flops(const struct hv_device_kind *d)
{
    double peak = d->flops_per_s[HV_BF16] > 0 ? d->flops_per_s[HV_BF16] : d->flops_per_s[HV_FP16];
    return d->tdp_w / peak;
}

static const struct hv_device_kind *kind_of_class(const struct hv_validation *v, const char *name)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        if (strcmp(class_of(&v->rows[i])->name, name) == 0) {
            return hv_cluster_device(v->rows[i].cluster, 0).kind;
        }
    }
    return NULL;
}

/* Numbers of the class that this one is like. Chips of one process need about the same energy for a
 * product: one with fewer watts per FLOP/s of its data sheet sustains as much less of it. */
static bool relative_fit(const struct hv_validation *v, const struct hv_validation_row *row,
                         const struct hv_class_fit *fits, size_t n, struct hv_calibration *out)
{
    const struct hv_class_fit *f = fit_named(fits, n, class_of(row)->like);
    const struct hv_calibration *c = f != NULL ? without_source(f, row->source) : NULL;
    const struct hv_device_kind *theirs = c != NULL ? kind_of_class(v, f->all.name) : NULL;
    if (theirs == NULL) {
        return false;
    }
    double power =
        watts_per_flops(hv_cluster_device(row->cluster, 0).kind) / watts_per_flops(theirs);
    memcpy(out->v, c->v, sizeof out->v);
    for (int k = HV_CAL_GEMM_16; power < 1 && k <= HV_CAL_GEMM_4; k++) {
        out->v[k] *= power;
    }
    return true;
}

/* Fills `numbers` for a row and says what they are. */
static enum hv_predicted_by choose(const struct hv_validation *v,
                                   const struct hv_validation_row *row,
                                   const struct hv_class_fit *fits, size_t n,
                                   struct hv_calibration *numbers)
{
    const char *name = class_of(row)->name;
    const struct hv_class_fit *own = fit_named(fits, n, name);
    const struct hv_calibration *c = own != NULL ? without_source(own, row->source) : NULL;
    if (c != NULL) {
        memcpy(numbers->v, c->v, sizeof numbers->v);
        return HV_BY_LEFT_OUT;
    }
    if (relative_fit(v, row, fits, n, numbers)) {
        return HV_BY_RELATIVE;
    }
    return generic_fit(fits, n, name, row->source, numbers) ? HV_BY_GENERIC : HV_BY_SHIPPED;
}

enum hv_status hv_validation_predict_left_out(struct hv_validation *v,
                                              const struct hv_class_fit *fits, size_t n_fits,
                                              struct hv_arena *arena, struct hv_prediction *io,
                                              struct hv_err *err)
{
    struct hv_arena scratch = {0};
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < v->n_rows; i++) {
        const struct hv_validation_row *row = &v->rows[i];
        struct hv_plan *plan = NULL;
        const struct hv_calibration *mine = class_of(row);
        if (!hv_known(row->measured_s) || !hv_known(io[i].iteration_s)) {
            continue;
        }
        struct hv_calibration *numbers = hv_arena_copy(arena, mine, 1, sizeof *numbers);
        io[i].by = choose(v, row, fits, n_fits, numbers);
        st = make_plan(row, &io[i], &plan, err);
        if (st == HV_OK && io[i].by != HV_BY_SHIPPED) {
            hv_cluster_calibrate(row->cluster, numbers);
            io[i].iteration_s = hv_validation_time_s(row, plan, &scratch);
            hv_cluster_calibrate(row->cluster, mine);
        }
        hv_plan_unref(plan);
    }
    hv_arena_free(&scratch);
    return st;
}
