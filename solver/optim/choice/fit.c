/*
 * Levenberg–Marquardt with bounds, Huber weights and a ridge. The Jacobian comes from forward
 * differences and is updated by Broyden's secant formula; when steps with the updated Jacobian no
 * longer reduce the objective it is computed again, within the budget. Not for problems with too
 * many parameters for a dense normal matrix.
 */
#include "solver/optim/choice/fit.h"

#include "solver/base/arena.h"
#include "solver/optim/choice/cholesky.h"
#include <math.h>
#include <string.h>

#define DEFAULT_STEP      1e-5
#define DEFAULT_TOLERANCE 1e-8
#define DAMPING_START     1e-3
#define DAMPING_LEAST     1e-9
#define DAMPING_MOST      1e8

/* Work of one fit; every array lives in the arena. */
struct work {
    const struct hv_fit *f;
    struct hv_fit_result *out;
    struct hv_arena arena;
    double *normal; /* n × n, damped and factorised in place */
    double *gradient, *direction, *trial, *trial_r;
    double step, tolerance, damping;
    int jacobians_left;
    bool fresh; /* the Jacobian belongs to x, not to a point before */
};

static double weight(const struct hv_fit *f, size_t i)
{
    return f->weights != NULL ? f->weights[i] : 1;
}

static double clip(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* The objective, or infinity where a residual that counts is not finite. */
static double objective(const struct hv_fit *f, const double *x, const double *r)
{
    double sum = 0;
    for (size_t i = 0; i < f->n_residuals; i++) {
        double w = weight(f, i), a = fabs(r[i]);
        if (w <= 0) {
            continue;
        }
        if (!isfinite(r[i])) {
            return (double)INFINITY;
        }
        sum += w * (f->huber > 0 && a > f->huber ? f->huber * (a - f->huber / 2) : a * a / 2);
    }
    for (size_t k = 0; f->prior != NULL && k < f->n_params; k++) {
        sum += f->ridge[k] * (x[k] - f->prior[k]) * (x[k] - f->prior[k]) / 2;
    }
    return sum;
}

static enum hv_status call(struct work *w, const double *x, double *r, struct hv_err *err)
{
    w->out->n_calls++;
    return w->f->residuals(w->f->ctx, x, r, err);
}

/* Forward differences, backward ones at the upper bound. Not finite counts as no dependence. */
static enum hv_status differentiate(struct work *w, struct hv_err *err)
{
    const struct hv_fit *f = w->f;
    size_t n = f->n_params;
    enum hv_status st = HV_OK;
    w->jacobians_left--;
    w->fresh = true;
    for (size_t k = 0; st == HV_OK && k < n; k++) {
        memcpy(w->trial, w->out->x, n * sizeof *w->trial);
        double h = w->out->x[k] + w->step <= f->most[k] ? w->step : -w->step;
        if (w->out->x[k] + h < f->least[k]) { /* fixed, or closer together than a step */
            h = 0;
        }
        w->trial[k] += h;
        if (h != 0) {
            st = call(w, w->trial, w->trial_r, err);
        }
        for (size_t i = 0; st == HV_OK && i < f->n_residuals; i++) {
            double d = h != 0 ? (w->trial_r[i] - w->out->residuals[i]) / h : 0;
            w->out->jacobian[i * n + k] = isfinite(d) ? d : 0;
        }
    }
    return st;
}

/* Normal matrix and gradient of the reweighted squares at x. */
static void make_normal(struct work *w)
{
    const struct hv_fit *f = w->f;
    size_t n = f->n_params;
    memset(w->normal, 0, n * n * sizeof *w->normal);
    memset(w->gradient, 0, n * sizeof *w->gradient);
    for (size_t i = 0; i < f->n_residuals; i++) {
        double r = w->out->residuals[i], wi = weight(f, i), a = fabs(r);
        if (wi <= 0) {
            continue;
        }
        if (f->huber > 0 && a > f->huber) {
            wi *= f->huber / a;
        }
        const double *j = &w->out->jacobian[i * n];
        for (size_t p = 0; p < n; p++) {
            w->gradient[p] += wi * j[p] * r;
            for (size_t q = 0; q <= p; q++) {
                w->normal[p * n + q] += wi * j[p] * j[q];
            }
        }
    }
    for (size_t k = 0; f->prior != NULL && k < n; k++) {
        w->gradient[k] += f->ridge[k] * (w->out->x[k] - f->prior[k]);
        w->normal[k * n + k] += f->ridge[k];
    }
}

/* Parameters at a bound that the gradient pushes against stay where they are. */
static void hold_at_bounds(struct work *w)
{
    const struct hv_fit *f = w->f;
    size_t n = f->n_params;
    for (size_t k = 0; k < n; k++) {
        double x = w->out->x[k], g = w->gradient[k];
        bool held =
            f->most[k] <= f->least[k] || (x <= f->least[k] && g > 0) || (x >= f->most[k] && g < 0);
        for (size_t q = 0; held && q < n; q++) {
            w->normal[k * n + q] = 0;
            w->normal[q * n + k] = 0;
        }
        if (held) {
            w->normal[k * n + k] = 1;
            w->gradient[k] = 0;
        } else {
            double d = w->normal[k * n + k];
            w->normal[k * n + k] += d > 0 ? w->damping * d : 1;
        }
    }
}

/* The direction −N⁻¹g; false where N is not positive. */
static bool solve_normal(struct work *w)
{
    size_t n = w->f->n_params;
    if (!hv_cholesky(w->normal, n)) {
        return false;
    }
    for (size_t p = 0; p < n; p++) {
        w->direction[p] = -w->gradient[p];
    }
    hv_cholesky_forward(w->normal, n, w->direction);
    hv_cholesky_back(w->normal, n, w->direction);
    return true;
}

/* Broyden: the least change of the Jacobian that explains the step just made. */
static void carry_jacobian(struct work *w, const double *old_r)
{
    size_t n = w->f->n_params;
    double length = 0;
    for (size_t k = 0; k < n; k++) {
        length += w->direction[k] * w->direction[k];
    }
    for (size_t i = 0; length > 0 && i < w->f->n_residuals; i++) {
        double *j = &w->out->jacobian[i * n], gap = w->out->residuals[i] - old_r[i];
        for (size_t k = 0; k < n; k++) {
            gap -= j[k] * w->direction[k];
        }
        for (size_t k = 0; isfinite(gap) && k < n; k++) {
            j[k] += gap * w->direction[k] / length;
        }
    }
    w->fresh = false;
}

/* One trial step: *gain = how much the objective fell, 0 when the step was refused. */
static enum hv_status try_step(struct work *w, double *gain, struct hv_err *err)
{
    const struct hv_fit *f = w->f;
    size_t n = f->n_params;
    *gain = 0;
    make_normal(w);
    hold_at_bounds(w);
    if (!solve_normal(w)) {
        w->damping *= 10;
        return HV_OK;
    }
    for (size_t k = 0; k < n; k++) {
        w->trial[k] = clip(w->out->x[k] + w->direction[k], f->least[k], f->most[k]);
        w->direction[k] = w->trial[k] - w->out->x[k];
    }
    enum hv_status st = call(w, w->trial, w->trial_r, err);
    if (st != HV_OK) {
        return st;
    }
    double value = objective(f, w->trial, w->trial_r);
    if (value < w->out->objective) {
        *gain = w->out->objective - value;
        w->out->objective = value;
        memcpy(w->out->x, w->trial, n * sizeof *w->trial);
        double *old = w->trial_r;
        for (size_t i = 0; i < f->n_residuals; i++) { /* swap: trial_r keeps the old residuals */
            double r = old[i];
            old[i] = w->out->residuals[i];
            w->out->residuals[i] = r;
        }
        carry_jacobian(w, old);
        w->damping = fmax(w->damping / 5, DAMPING_LEAST);
    } else {
        w->damping *= 8;
    }
    return HV_OK;
}

static enum hv_status iterate(struct work *w, struct hv_err *err)
{
    int refused = 0;
    enum hv_status st = HV_OK;
    for (int i = 0; i < w->f->max_steps; i++) {
        double gain, before = w->out->objective;
        st = try_step(w, &gain, err);
        if (st != HV_OK || before == 0) {
            return st;
        }
        refused = gain > 0 ? 0 : refused + 1;
        bool stalled = refused >= 3 || (gain > 0 && gain <= w->tolerance * before);
        if (!stalled && w->damping < DAMPING_MOST) {
            continue;
        }
        if (w->fresh || w->jacobians_left <= 0) {
            if (gain > 0 || refused >= 8 || w->damping >= DAMPING_MOST || w->jacobians_left <= 0) {
                return HV_OK;
            }
            continue;
        }
        w->damping = fmin(w->damping, DAMPING_START);
        refused = 0;
        st = differentiate(w, err);
        if (st != HV_OK) {
            return st;
        }
    }
    return HV_OK;
}

enum hv_status hv_fit_solve(const struct hv_fit *f, struct hv_fit_result *out, struct hv_err *err)
{
    size_t n = f->n_params, m = f->n_residuals;
    struct work w = {.f = f, .out = out, .damping = DAMPING_START};
    w.step = f->step > 0 ? f->step : DEFAULT_STEP;
    w.tolerance = f->tolerance > 0 ? f->tolerance : DEFAULT_TOLERANCE;
    w.jacobians_left = f->max_jacobians;
    w.normal = hv_arena_new(&w.arena, double, n *n + 1);
    w.gradient = hv_arena_new(&w.arena, double, n + 1);
    w.direction = hv_arena_new(&w.arena, double, n + 1);
    w.trial = hv_arena_new(&w.arena, double, n + 1);
    w.trial_r = hv_arena_new(&w.arena, double, m + 1);
    out->n_calls = 0;
    for (size_t k = 0; k < n; k++) {
        out->x[k] = clip(f->start[k], f->least[k], f->most[k]);
    }
    enum hv_status st = call(&w, out->x, out->residuals, err);
    if (st == HV_OK) {
        out->objective = out->objective_at_start = objective(f, out->x, out->residuals);
        if (!isfinite(out->objective)) {
            st = hv_err_set(err, HV_ENO, "a residual is not a number at the start of the fit");
        }
    }
    if (st == HV_OK && !out->known_jacobian) {
        st = differentiate(&w, err);
    }
    if (st == HV_OK) {
        st = iterate(&w, err);
    }
    hv_arena_free(&w.arena);
    return st;
}
