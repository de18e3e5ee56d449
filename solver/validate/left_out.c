/* Prediction of rows by fits without their source: the class's own fit, that of the similar class,
 * or the mean of the others. Fitting itself is in fit.c. */
#include "solver/validate/fit_int.h"

#include "solver/base/units.h"
#include "solver/inventory/profile.h"
#include <math.h>
#include <string.h>

enum { N = HV_CALIBRATED_N };

/* Spread of the logarithm of the ratio between the shares of two number formats of one card. */
#define RATIO_SPREAD 0.1

/* The number that number k stands relative to; negative: none. */
static int relative_to(int k)
{
    return k == HV_CAL_GEMM_8 ? HV_CAL_GEMM_16 : k == HV_CAL_GEMM_4 ? HV_CAL_GEMM_8 : -1;
}

double hv__fit_spread(int k)
{
    return relative_to(k) < 0 ? hv_calibrated_rows[k].spread : RATIO_SPREAD;
}

void hv__fit_to_x(const double *v, double *x)
{
    for (int k = 0; k < N; k++) {
        const struct hv_calibrated_row *r = &hv_calibrated_rows[k];
        int to = relative_to(k);
        double typical = to < 0 ? r->typical : r->typical / hv_calibrated_rows[to].typical;
        double value = to < 0 ? v[k] : v[k] / v[to];
        double far = value > 0 ? log(value / typical) / hv__fit_spread(k) : -HV__FIT_FARTHEST;
        x[k] = fmin(fmax(far, -HV__FIT_FARTHEST), HV__FIT_FARTHEST);
    }
}

void hv__fit_to_v(const double *x, double *v)
{
    for (int k = 0; k < N; k++) { /* a format stands behind the one that it is relative to */
        const struct hv_calibrated_row *r = &hv_calibrated_rows[k];
        int to = relative_to(k);
        double near = to < 0 ? 1 : v[to] / hv_calibrated_rows[to].typical;
        v[k] = fmin(fmax(near * r->typical * exp(x[k] * hv__fit_spread(k)), r->least), r->most);
    }
}

const struct hv_calibration *hv__fit_class_of(const struct hv_validation_row *row)
{
    return hv_device_calibration(hv_cluster_device(row->cluster, 0).kind);
}

enum hv_status hv__fit_plan(const struct hv_validation_row *row,
                            const struct hv_prediction *shipped, struct hv_plan **out,
                            struct hv_err *err)
{
    struct hv_grid g = row->grid;
    g.recompute = shipped->recompute;
    g.grad_bytes = hv_job_grad_bytes(&row->job);
    return hv_plan_grid(row->cluster, row->job.precision, row->model->n_blocks, &g, out, err);
}

/* Parameters of a class fitted without `source` (NULL: on all rows); NULL where the class has no
 * other source. */
static const struct hv_calibration *without_source(const struct hv_class_fit *f, const char *source)
{
    for (size_t i = 0; source != NULL && i < f->n_without; i++) {
        if (strcmp(f->without[i].source, source) == 0) {
            return &f->without[i].fit;
        }
    }
    for (size_t i = 0; source != NULL && i < f->n_sources; i++) {
        if (strcmp(f->sources[i], source) == 0) {
            return NULL;
        }
    }
    return f->n_rows > 0 ? &f->all : NULL;
}

/* Mean over the classes other than `own`, each fitted without `source`; false when there are
 * none. */
static bool generic_fit(const struct hv_class_fit *fits, size_t n, const char *own,
                        const char *source, struct hv_calibration *out)
{
    double x[N] = {0}, one[N];
    size_t many = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hv_calibration *c = without_source(&fits[i], source);
        if (c == NULL || strcmp(fits[i].all.name, own) == 0) {
            continue;
        }
        many++;
        hv__fit_to_x(c->v, one);
        for (int k = 0; k < N; k++) {
            x[k] += one[k];
        }
    }
    for (int k = 0; many > 0 && k < N; k++) {
        x[k] /= (double)many;
    }
    if (many > 0) {
        hv__fit_to_v(x, out->v);
    }
    return many > 0;
}

/* The fit of the class of that name, or NULL. */
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

/* Rated watts of a kind per 16-bit FLOP/s of its data sheet. */
static double watts_per_flops(const struct hv_device_kind *d)
{
    double peak = d->flops_per_s[HV_BF16] > 0 ? d->flops_per_s[HV_BF16] : d->flops_per_s[HV_FP16];
    return d->tdp_w / peak;
}

static const struct hv_device_kind *kind_of_class(const struct hv_validation *v, const char *name)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        if (strcmp(hv__fit_class_of(&v->rows[i])->name, name) == 0) {
            return hv_cluster_device(v->rows[i].cluster, 0).kind;
        }
    }
    return NULL;
}

/* The kind of that name among the rows, or NULL. */
static const struct hv_device_kind *kind_named(const struct hv_validation *v, const char *name)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct hv_device_kind *d = hv_cluster_device(v->rows[i].cluster, 0).kind;
        if (strcmp(d->name, name) == 0) {
            return d;
        }
    }
    return NULL;
}

/* Part of the best product of a table that training sustains: geometric mean of 0.80 of 0.789
 * (A100) and 0.65 of 0.753 (H100), fits on rows of training against vidur's products. */
#define OF_BEST_PRODUCT 0.94
/* Pull of a measured table of products: a third of the spread between any two classes. */
#define PULL_TABLE 9

/* Share of the 16-bit peak that training sustains by the table of the chip; HV_UNKNOWN without
 * one. */
static double share_by_table(const struct hv_validation *v, const struct hv_device_kind *d)
{
    const struct hv_gemm_table *t = hv_profile_gemm(d->profile, HV_BF16);
    if (t == NULL) {
        return HV_UNKNOWN;
    }
    const struct hv_device_kind *measured = kind_named(v, d->profile->device);
    double power = measured != NULL ? watts_per_flops(d) / watts_per_flops(measured) : 1;
    return OF_BEST_PRODUCT * t->best_flops_per_s / t->peak_flops_per_s * power;
}

/* The similar class, or the one that is similar to it, and so on, that has a fit without `source`;
 * NULL where there is none. A circle ends after as many steps as there are classes. */
static const struct hv_calibration *relative_of(const struct hv_calibration *c, const char *source,
                                                const struct hv_class_fit *fits, size_t n)
{
    const struct hv_class_fit *f = fit_named(fits, n, c->like);
    for (size_t i = 0; i < n && f != NULL; i++) {
        const struct hv_calibration *known = without_source(f, source);
        if (known != NULL) {
            return known;
        }
        f = fit_named(fits, n, f->all.like);
    }
    return NULL;
}

/* Takes the numbers of a similar class; false where there are none. */
static bool take_relative(const struct hv_validation *v, const struct hv_calibration *known,
                          const struct hv_device_kind *ours, double *numbers)
{
    const struct hv_device_kind *theirs = known ? kind_of_class(v, known->name) : NULL;
    if (theirs == NULL || ours == NULL) {
        return false;
    }
    double power = watts_per_flops(ours) / watts_per_flops(theirs);
    bool same_chip = ours->profile != NULL && theirs->profile != NULL &&
                     strcmp(ours->profile->device, theirs->profile->device) == 0;
    memcpy(numbers, known->v, N * sizeof *numbers);
    for (int k = HV_CAL_GEMM_16; (power < 1 || same_chip) && k <= HV_CAL_GEMM_4; k++) {
        numbers[k] *= power;
    }
    numbers[HV_CAL_TP_HIDDEN] =
        sqrt(numbers[HV_CAL_TP_HIDDEN] * hv_calibrated_rows[HV_CAL_TP_HIDDEN].typical);
    return true;
}

void hv__fit_prior_of(const struct hv_validation *v, const struct hv_calibration *c,
                      const char *source, const struct hv_class_fit *fits, size_t n,
                      struct hv__fit_prior *out)
{
    const struct hv_calibration *known = relative_of(c, source, fits, n);
    const struct hv_device_kind *ours = kind_of_class(v, c->name);
    struct hv_calibration numbers = *hv_calibration_typical();
    (void)take_relative(v, known, ours, numbers.v);
    double share = ours != NULL ? share_by_table(v, ours) : HV_UNKNOWN;
    for (int k = 0; k < N; k++) {
        out->pull[k] = 1;
    }
    if (hv_known(share) && c->like != NULL) {
        double move = share / numbers.v[HV_CAL_GEMM_16];
        for (int k = HV_CAL_GEMM_16; k <= HV_CAL_GEMM_4; k++) {
            numbers.v[k] *= move;
        }
        out->pull[HV_CAL_GEMM_16] = PULL_TABLE;
    }
    if (hv_known(share) && strcmp(ours->profile->device, ours->name) == 0) {
        /* typical values of grouped products are those of the kernels of such a table */
        numbers.v[HV_CAL_GROUPED_16] = hv_calibrated_rows[HV_CAL_GROUPED_16].typical;
        numbers.v[HV_CAL_GROUPED_8] = hv_calibrated_rows[HV_CAL_GROUPED_8].typical;
    }
    hv__fit_to_x(numbers.v, out->x);
}

bool hv__fit_relative(const struct hv_validation *v, const struct hv_calibration *c,
                      const char *source, const struct hv_class_fit *fits, size_t n,
                      struct hv_calibration *out)
{
    struct hv__fit_prior p;
    if (relative_of(c, source, fits, n) == NULL || kind_of_class(v, c->name) == NULL) {
        return false;
    }
    hv__fit_prior_of(v, c, source, fits, n, &p);
    hv__fit_to_v(p.x, out->v);
    return true;
}

/* Fills `numbers` for a row and returns their origin. */
static enum hv_predicted_by choose(const struct hv_validation *v,
                                   const struct hv_validation_row *row,
                                   const struct hv_class_fit *fits, size_t n,
                                   struct hv_calibration *numbers)
{
    const char *name = hv__fit_class_of(row)->name;
    const struct hv_class_fit *own = fit_named(fits, n, name);
    const struct hv_calibration *c = own != NULL ? without_source(own, row->source) : NULL;
    if (c != NULL) {
        memcpy(numbers->v, c->v, sizeof numbers->v);
        return HV_BY_LEFT_OUT;
    }
    if (hv__fit_relative(v, hv__fit_class_of(row), row->source, fits, n, numbers)) {
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
        const struct hv_calibration *mine = hv__fit_class_of(row);
        if (row->held_out) {
            io[i].by = HV_BY_HELD_OUT;
        }
        if (row->held_out || row->mixed || !hv_known(row->measured_s) ||
            !hv_known(io[i].iteration_s)) {
            continue;
        }
        struct hv_calibration *numbers = hv_arena_copy(arena, mine, 1, sizeof *numbers);
        io[i].by = choose(v, row, fits, n_fits, numbers);
        st = hv__fit_plan(row, &io[i], &plan, err);
        if (st == HV_OK && io[i].by != HV_BY_SHIPPED) {
            hv_cluster_calibrate(row->cluster, numbers);
            io[i].iteration_s = hv_validation_time_s(row, plan, &scratch, &io[i].exposed_frac);
            hv_cluster_calibrate(row->cluster, mine);
        }
        hv_plan_unref(plan);
    }
    hv_arena_free(&scratch);
    return st;
}
