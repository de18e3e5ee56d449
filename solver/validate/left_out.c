/* Prediction of rows by fits without their source: the class's own fit, that of the similar class,
 * or the mean of the others. Fitting itself is in fit.c. */
#include "solver/validate/fit_int.h"

#include "solver/base/units.h"
#include <math.h>
#include <string.h>

enum { N = HV_CALIBRATED_N };

/* By its logarithm, in units of its spread, from its typical value. */
double hv__fit_to_x(int k, double v)
{
    const struct hv_calibrated_row *r = &hv_calibrated_rows[k];
    double x = v > 0 ? log(v / r->typical) / r->spread : -HV__FIT_FARTHEST;
    return x < -HV__FIT_FARTHEST ? -HV__FIT_FARTHEST : x > HV__FIT_FARTHEST ? HV__FIT_FARTHEST : x;
}

double hv__fit_to_v(int k, double x)
{
    const struct hv_calibrated_row *r = &hv_calibrated_rows[k];
    double v = r->typical * exp(x * r->spread);
    return v < r->least ? r->least : v > r->most ? r->most : v;
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
    double x[N] = {0};
    size_t many = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hv_calibration *c = without_source(&fits[i], source);
        if (c == NULL || strcmp(fits[i].all.name, own) == 0) {
            continue;
        }
        many++;
        for (int k = 0; k < N; k++) {
            x[k] += hv__fit_to_x(k, c->v[k]);
        }
    }
    for (int k = 0; many > 0 && k < N; k++) {
        out->v[k] = hv__fit_to_v(k, x[k] / (double)many);
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

bool hv__fit_relative(const struct hv_validation *v, const struct hv_calibration *c,
                      const char *source, const struct hv_class_fit *fits, size_t n,
                      struct hv_calibration *out)
{
    const struct hv_class_fit *f = fit_named(fits, n, c->like);
    const struct hv_calibration *known = f == NULL ? NULL : without_source(f, source);
    const struct hv_device_kind *theirs = known ? kind_of_class(v, f->all.name) : NULL;
    const struct hv_device_kind *ours = theirs ? kind_of_class(v, c->name) : NULL;
    if (ours == NULL) {
        return false;
    }
    double power = watts_per_flops(ours) / watts_per_flops(theirs);
    memcpy(out->v, known->v, sizeof out->v);
    for (int k = HV_CAL_GEMM_16; power < 1 && k <= HV_CAL_GEMM_4; k++) {
        out->v[k] *= power;
    }
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
        if (row->mixed || !hv_known(row->measured_s) || !hv_known(io[i].iteration_s)) {
            continue;
        }
        struct hv_calibration *numbers = hv_arena_copy(arena, mine, 1, sizeof *numbers);
        io[i].by = choose(v, row, fits, n_fits, numbers);
        st = hv__fit_plan(row, &io[i], &plan, err);
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
