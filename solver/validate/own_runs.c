/* Calibration on the user's own runs: classes of the runs, choice of numbers, fit, and the check by
 * leaving runs out. */
#include "solver/validate/own_runs.h"

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "solver/eval/verdict/band.h"
#include "solver/optim/choice/cholesky.h"
#include "solver/optim/choice/fit.h"
#include "solver/validate/fit_int.h"
#include <math.h>
#include <string.h>

/* Step of the finite differences, in spreads. */
#define DIFFERENCE 0.1
/* Typical noise and scale, and the spread of their logarithms: published runs of one software
 * differ from fits of their class by 2 to 5 %, fits of two sources of one class by half a spread.
 */
#define NOISE_TYPICAL 0.03
#define NOISE_SPREAD  0.5
#define SCALE_TYPICAL 0.5
#define SCALE_SPREAD  1.0
/* Half of the band that holds HV_BAND_COVER of a normal distribution, in deviations. */
#define HALF_BAND 1.2816
#define STEPS     30
#define JACOBIANS 3

enum { N = HV_CALIBRATED_N };

/* State of a fit. Numbers are counted over all classes: class · N + number. */
struct work {
    const struct hv_own_run *runs;
    size_t n;
    struct hv_own_class *classes; /* their fits are what the clusters use */
    size_t n_classes, n_params;
    double *start;    /* n_params: present values, in spreads from the typical ones */
    double *before;   /* n_params: present values */
    double *jacobian; /* n × n_params, of log(predicted) at the start */
    double *log_measured;
    size_t *chosen, n_chosen; /* parameters that are fitted */
    double *x;                /* n_params */
    size_t without;           /* run that is left out; n: none */
    double noise, scale;      /* see own_runs.h */
    double *residual;         /* n: log(predicted / measured) at the start */
    struct hv_arena scratch;
};

/* ---- classes --------------------------------------------------------------------------------- */

static bool same_class(const struct hv_calibration *a, const struct hv_calibration *b)
{
    return strcmp(a->name, b->name) == 0 && memcmp(a->v, b->v, sizeof a->v) == 0;
}

static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, ",");
        if (len == n && memcmp(at, name, n) == 0) {
            return true;
        }
        at += len + (at[len] == ',');
    }
    return false;
}

/* A class of its own for a kind that no class names: what prices it now becomes its numbers. */
static struct hv_calibration class_of_unknown(const struct hv_device_kind *kind)
{
    struct hv_calibration c = *hv_device_calibration(kind);
    enum hv_precision wide = kind->flops_per_s[HV_BF16] > 0 ? HV_BF16 : HV_FP16;
    double share = hv_efficiency_of(kind, wide).gemm_frac / c.v[HV_CAL_GEMM_16];
    c.name = c.devices = kind->name;
    for (int k = HV_CAL_GEMM_16; k <= HV_CAL_GEMM_4; k++) {
        c.v[k] *= share;
    }
    return c;
}

/* The class that a kind of device belongs to, added where it is new. */
static struct hv_own_class *class_of(struct work *w, const struct hv_device_kind *kind,
                                     struct hv_arena *arena)
{
    struct hv_calibration c = *hv_device_calibration(kind);
    if (c.devices[0] == '\0') {
        c = class_of_unknown(kind);
    }
    size_t i = 0;
    while (i < w->n_classes && !same_class(&w->classes[i].fit, &c)) {
        i++;
    }
    struct hv_own_class *mine = &w->classes[i];
    if (i == w->n_classes) {
        *mine = (struct hv_own_class){.fit = c, .kinds = ""};
        w->n_classes++;
    }
    if (!is_listed(mine->kinds, kind->name)) {
        mine->kinds =
            hv_arena_printf(arena, "%s%s%s", mine->kinds, *mine->kinds ? "," : "", kind->name);
    }
    return mine;
}

/* Collects the classes of all runs' devices and makes the clusters use them. Kinds of plain rates
 * have no numbers to fit. */
static void open_classes(struct work *w, struct hv_arena *arena)
{
    size_t most = 0;
    for (size_t i = 0; i < w->n; i++) {
        most += w->runs[i].cluster->n_kinds;
    }
    w->classes = hv_arena_new(arena, struct hv_own_class, most + 1);
    for (size_t i = 0; i < w->n; i++) {
        struct hv_cluster *c = w->runs[i].cluster;
        for (size_t k = 0; k < c->n_kinds; k++) {
            const struct hv_calibration *from = hv_device_calibration(c->kinds[k]);
            if (from != hv_calibration_plain()) {
                hv_cluster_calibrate_kind(c, k, &class_of(w, c->kinds[k], arena)->fit);
            }
        }
    }
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* Makes the clusters use the numbers x; those that do not move keep their very values. */
static void use(struct work *w, const double *x)
{
    double start[N];
    for (size_t c = 0; c < w->n_classes; c++) {
        double *v = w->classes[c].fit.v;
        hv__fit_to_v(w->start + c * N, start);
        hv__fit_to_v(x + c * N, v);
        for (size_t k = 0; k < N; k++) {
            v[k] = v[k] == start[k] ? w->before[c * N + k] : v[k];
        }
    }
}

/* Time of a run with the numbers that its cluster uses now. */
static enum hv_status predict(struct work *w, size_t i, double *out_s, struct hv_err *err)
{
    const struct hv_own_run *r = &w->runs[i];
    const struct hv_eval_options options = {.no_bound = true};
    struct hv_arena_mark mark = hv_arena_mark(&w->scratch);
    struct hv_cost *cost = hv_cost_new(r->cluster, r->model, r->job);
    struct hv_verdict verdict = {0};
    enum hv_status st = hv_eval(cost, r->plan, &options, &w->scratch, &verdict, err);
    *out_s = verdict.metrics.iteration_s;
    if (st == HV_OK && !(hv_known(*out_s) && *out_s > 0)) {
        st = hv_err_set(err, HV_ENO, "%s: the plan has no iteration time: %s", r->name,
                        verdict.findings.n > 0 ? verdict.findings.items[0].text : "unknown reason");
    }
    hv_cost_free(cost);
    hv_arena_rewind(&w->scratch, mark);
    return st;
}

static enum hv_status predict_all(struct work *w, double *out_s, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < w->n; i++) {
        st = predict(w, i, &out_s[i], err);
    }
    return st;
}

/* Derivatives of the logarithms of all times at the start. */
static enum hv_status take_jacobian(struct work *w, const double *at_start_s, struct hv_err *err)
{
    double s;
    enum hv_status st = HV_OK;
    memcpy(w->x, w->start, w->n_params * sizeof *w->x);
    for (size_t p = 0; st == HV_OK && p < w->n_params; p++) {
        w->x[p] = w->start[p] + DIFFERENCE;
        use(w, w->x);
        for (size_t i = 0; st == HV_OK && i < w->n; i++) {
            st = predict(w, i, &s, err);
            w->jacobian[i * w->n_params + p] = st ? 0 : log(s / at_start_s[i]) / DIFFERENCE;
        }
        w->x[p] = w->start[p];
    }
    use(w, w->x);
    return st;
}

/* ---- noise and scale --------------------------------------------------------------------------
 */

/* Covariance of the residuals of the runs that count, their residuals beside it; returns their
 * number m. Lower triangle, m × m. */
static size_t covariance(const struct work *w, double noise, double scale, double *c, double *r)
{
    size_t m = w->n - (w->without < w->n), a = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (i == w->without) {
            continue;
        }
        size_t b = 0;
        for (size_t j = 0; j <= i; j++) {
            if (j == w->without) {
                continue;
            }
            double sum = i == j ? noise * noise : 0;
            for (size_t p = 0; p < w->n_params; p++) {
                sum += scale * scale * w->jacobian[i * w->n_params + p] *
                       w->jacobian[j * w->n_params + p];
            }
            c[a * m + b++] = sum;
        }
        r[a++] = w->residual[i];
    }
    return m;
}

/* log det c + rᵀ c⁻¹ r of a covariance in the lower triangle c; overwrites both. Infinite where
 * rounding leaves c not positive. */
static double log_density(double *c, double *r, size_t m)
{
    double sum = 0;
    if (!hv_cholesky(c, m)) {
        return (double)INFINITY;
    }
    hv_cholesky_forward(c, m, r);
    for (size_t a = 0; a < m; a++) {
        sum += 2 * log(c[a * m + a]) + r[a] * r[a];
    }
    return sum;
}

static double square(double x)
{
    return x * x;
}

/* The noise and scale under which the measured times are most probable, on a grid. */
static void set_noise_and_scale(struct work *w)
{
    double *c = hv_arena_new(&w->scratch, double, w->n * w->n + 1);
    double *r = hv_arena_new(&w->scratch, double, w->n + 1);
    double best = (double)INFINITY;
    for (double noise = 0.01; noise < 0.13; noise *= 1.25) {
        for (double scale = 0.03; scale < 4; scale *= 1.25) {
            size_t m = covariance(w, noise, scale, c, r);
            double d = log_density(c, r, m) + square(log(noise / NOISE_TYPICAL) / NOISE_SPREAD) +
                       square(log(scale / SCALE_TYPICAL) / SCALE_SPREAD);
            if (d < best) {
                best = d;
                w->noise = noise;
                w->scale = scale;
            }
        }
    }
}

/* ---- choice ---------------------------------------------------------------------------------- */

/* Length of column p of the runs that count. */
static double length_of(const struct work *w, const double *columns, size_t p)
{
    double sum = 0;
    for (size_t i = 0; i < w->n; i++) {
        double d = i == w->without ? 0 : columns[i * w->n_params + p] / w->noise;
        sum += d * d;
    }
    return sqrt(sum);
}

/* Takes what lies along column p out of all columns. */
static void project_out(const struct work *w, double *columns, size_t p, double length)
{
    for (size_t q = 0; q < w->n_params; q++) {
        double dot = 0;
        for (size_t i = 0; i < w->n; i++) {
            dot +=
                i == w->without ? 0 : columns[i * w->n_params + p] * columns[i * w->n_params + q];
        }
        dot /= length * length * w->noise * w->noise;
        for (size_t i = 0; q != p && i < w->n; i++) {
            columns[i * w->n_params + q] -= dot * columns[i * w->n_params + p];
        }
    }
    for (size_t i = 0; i < w->n; i++) {
        columns[i * w->n_params + p] = 0;
    }
}

/* Chooses the numbers to fit; ties go to the first. */
static void choose(struct work *w)
{
    double *columns = hv_arena_copy(&w->scratch, w->jacobian, w->n * w->n_params, sizeof *columns);
    size_t runs = w->n - (w->without < w->n);
    w->n_chosen = 0;
    while (w->n_chosen < runs) {
        size_t best = 0;
        double longest = 0;
        for (size_t p = 0; p < w->n_params; p++) {
            double length = length_of(w, columns, p);
            if (length > longest * (1 + 1e-9)) {
                longest = length;
                best = p;
            }
        }
        if (longest * w->scale < 1) { /* the prior says more than the runs */
            return;
        }
        w->chosen[w->n_chosen++] = best;
        project_out(w, columns, best, longest);
    }
}

/* ---- fit ------------------------------------------------------------------------------------- */

/* Residuals of the chosen numbers at y. */
static enum hv_status residuals(void *ctx, const double *y, double *r, struct hv_err *err)
{
    struct work *w = ctx;
    enum hv_status st = HV_OK;
    for (size_t c = 0; c < w->n_chosen; c++) {
        w->x[w->chosen[c]] = y[c];
    }
    use(w, w->x);
    for (size_t i = 0; st == HV_OK && i < w->n; i++) {
        double s = 0;
        r[i] = HV_UNKNOWN;
        if (i != w->without && (st = predict(w, i, &s, err)) == HV_OK) {
            r[i] = log(s) - w->log_measured[i];
        }
    }
    return st;
}

/* One standard deviation of every chosen number, in spreads: the inverse of JᵀJ / noise² + 1 /
 * scale²; `jacobian` is n × n_chosen. Infinite where rounding leaves that not positive. */
static void take_deviations(const struct work *w, const double *jacobian, double *out,
                            struct hv_arena *scratch)
{
    size_t m = w->n_chosen;
    double *a = hv_arena_new(scratch, double, m *m + 1);
    double *e = hv_arena_new(scratch, double, m + 1);
    for (size_t p = 0; p < m; p++) {
        for (size_t q = 0; q <= p; q++) {
            a[p * m + q] = p == q ? 1 / (w->scale * w->scale) : 0;
            for (size_t i = 0; i < w->n; i++) {
                a[p * m + q] += i == w->without ? 0
                                                : jacobian[i * m + p] * jacobian[i * m + q] /
                                                      (w->noise * w->noise);
            }
        }
    }
    bool positive = hv_cholesky(a, m);
    for (size_t k = 0; k < m; k++) { /* |L⁻¹ e_k|² is the k-th entry of the inverse's diagonal */
        double square = positive ? 0 : (double)INFINITY;
        memset(e, 0, m * sizeof *e);
        e[k] = 1;
        if (positive) {
            hv_cholesky_forward(a, m, e);
        }
        for (size_t p = 0; positive && p < m; p++) {
            square += e[p] * e[p];
        }
        out[k] = sqrt(square);
    }
}

/* Chooses and fits without run `without`; the classes hold the fitted numbers then. `deviations`:
 * of the chosen numbers, at most one per run; may be NULL. */
static enum hv_status solve(struct work *w, size_t without, double *deviations, struct hv_err *err)
{
    struct hv_arena_mark mark = hv_arena_mark(&w->scratch);
    w->without = without;
    set_noise_and_scale(w);
    choose(w);
    size_t m = w->n_chosen;
    double *start = hv_arena_new(&w->scratch, double, m + 1),
           *y = hv_arena_copy(&w->scratch, start, m + 1, sizeof *y);
    double *least = hv_arena_new(&w->scratch, double, m + 1),
           *most = hv_arena_new(&w->scratch, double, m + 1);
    double *ridge = hv_arena_new(&w->scratch, double, m + 1),
           *weights = hv_arena_new(&w->scratch, double, w->n + 1);
    double *jacobian = hv_arena_new(&w->scratch, double, w->n *m + 1),
           *r = hv_arena_new(&w->scratch, double, w->n + 1);
    memcpy(w->x, w->start, w->n_params * sizeof *w->x);
    for (size_t c = 0; c < m; c++) {
        start[c] = w->start[w->chosen[c]];
        least[c] = -HV__FIT_FARTHEST;
        most[c] = HV__FIT_FARTHEST;
        ridge[c] = 1 / (w->scale * w->scale);
        for (size_t i = 0; i < w->n; i++) {
            jacobian[i * m + c] = w->jacobian[i * w->n_params + w->chosen[c]];
        }
    }
    for (size_t i = 0; i < w->n; i++) {
        weights[i] = i == without ? 0 : 1 / (w->noise * w->noise);
    }
    const struct hv_fit f = {.n_params = m,
                             .n_residuals = w->n,
                             .start = start,
                             .least = least,
                             .most = most,
                             .prior = start,
                             .ridge = ridge,
                             .weights = weights,
                             .step = DIFFERENCE,
                             .max_jacobians = JACOBIANS,
                             .max_steps = STEPS,
                             .tolerance = 1e-4,
                             .residuals = residuals,
                             .ctx = w};
    struct hv_fit_result result = {
        .x = y, .residuals = r, .jacobian = jacobian, .known_jacobian = true};
    enum hv_status st = m > 0 ? hv_fit_solve(&f, &result, err) : HV_OK;
    for (size_t c = 0; st == HV_OK && c < m; c++) {
        w->x[w->chosen[c]] = y[c];
    }
    if (st == HV_OK && deviations != NULL) {
        take_deviations(w, jacobian, deviations, &w->scratch);
    }
    use(w, w->x);
    hv_arena_rewind(&w->scratch, mark);
    return st;
}

/* Predicts every run by a fit without it. */
static enum hv_status leave_out(struct work *w, struct hv_own_fit *out, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < w->n; i++) {
        out->without_s[i] = HV_UNKNOWN;
        if (st == HV_OK && w->n >= 3) {
            st = solve(w, i, NULL, err);
            st = st ? st : predict(w, i, &out->without_s[i], err);
        }
    }
    return st;
}

static void list_numbers(const struct work *w, const double *deviations, struct hv_own_fit *out)
{
    for (size_t c = 0; c < w->n_chosen; c++) {
        size_t class_index = w->chosen[c] / N, k = w->chosen[c] % N;
        out->numbers[c] =
            (struct hv_own_number){.class_index = class_index,
                                   .number = (enum hv_calibrated)k,
                                   .before = w->before[w->chosen[c]],
                                   .after = w->classes[class_index].fit.v[k],
                                   .deviation = deviations[c] * hv__fit_spread((int)k)};
    }
    out->noise = w->noise;
    out->n_numbers = w->n_chosen;
    out->classes = w->classes;
    out->n_classes = w->n_classes;
}

/* The half bands of jobs like those of the runs, from what fits without a run miss there. Fewer
 * than three runs say nothing about it. */
static void set_half_bands(struct work *w, const struct hv_own_fit *out)
{
    double sum = 0, n = (double)w->n;
    for (size_t i = 0; i < w->n; i++) {
        sum += square(log(out->without_s[i]) - w->log_measured[i]);
    }
    if (!hv_known(sum) || w->n < 3) {
        return;
    }
    double deviation = fmax(sqrt(sum / n), w->noise) * sqrt(1 + 1 / n);
    for (size_t i = 0; i < w->n; i++) {
        enum hv_error_of e = hv_band_error_of(w->runs[i].model, w->runs[i].job->precision);
        for (size_t c = 0; c < w->n_classes; c++) {
            w->classes[c].fit.error[e] = fmin(HALF_BAND * deviation, HV_ERROR_MOST);
        }
    }
}

/* Allocates what depends on the number of parameters, and notes the present values. */
static void open_numbers(struct work *w, struct hv_arena *arena)
{
    w->n_params = w->n_classes * N;
    w->start = hv_arena_new(arena, double, w->n_params + 1);
    w->x = hv_arena_new(arena, double, w->n_params + 1);
    w->jacobian = hv_arena_new(arena, double, w->n * w->n_params + 1);
    w->log_measured = hv_arena_new(arena, double, w->n + 1);
    w->residual = hv_arena_new(arena, double, w->n + 1);
    w->chosen = hv_arena_new(arena, size_t, w->n + 1);
    w->before = hv_arena_new(arena, double, w->n_params + 1);
    for (size_t c = 0; c < w->n_classes; c++) {
        memcpy(w->before + c * N, w->classes[c].fit.v, sizeof w->classes[c].fit.v);
        hv__fit_to_x(w->classes[c].fit.v, w->start + c * N);
    }
    for (size_t i = 0; i < w->n; i++) {
        w->log_measured[i] = log(w->runs[i].measured_s);
    }
}

enum hv_status hv_own_runs_fit(const struct hv_own_run *runs, size_t n, struct hv_arena *arena,
                               struct hv_own_fit *out, struct hv_err *err)
{
    struct work w = {.runs = runs, .n = n, .without = n};
    *out = (struct hv_own_fit){0};
    open_classes(&w, arena);
    if (w.n_classes == 0) {
        return hv_err_set(
            err, HV_ENO,
            "the devices of these runs have plain rates: there is nothing to calibrate");
    }
    open_numbers(&w, arena);
    double *deviations = hv_arena_new(arena, double, n + 1);
    out->before_s = hv_arena_new(arena, double, n + 1);
    out->after_s = hv_arena_new(arena, double, n + 1);
    out->without_s = hv_arena_new(arena, double, n + 1);
    out->numbers = hv_arena_new(arena, struct hv_own_number, n + 1);
    enum hv_status st = predict_all(&w, out->before_s, err);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        w.residual[i] = log(out->before_s[i]) - w.log_measured[i];
    }
    st = st ? st : take_jacobian(&w, out->before_s, err);
    st = st ? st : leave_out(&w, out, err);
    st = st ? st : solve(&w, n, deviations, err);
    st = st ? st : predict_all(&w, out->after_s, err);
    if (st == HV_OK) {
        list_numbers(&w, deviations, out);
        set_half_bands(&w, out);
    }
    hv_arena_free(&w.scratch);
    return st;
}
