/*
 * One timing is a batch of runs between two events, divided by their number: the clock of events
 * ticks in half microseconds, and launches of a batch overlap as they do in training.
 */
#include "solver/profiler/sampler.h"

#include "solver/base/units.h"
#include <math.h>
#include <stdlib.h>

#define MAX_REPEATS 100000u

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double hv_median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Runs it once cold and once warm and sets *repeats to the runs of a batch. */
static enum hv_status warm_up(const struct hv_bench *b, double batch_s, unsigned *repeats,
                              struct hv_err *err)
{
    double cold = 0, once = 0;
    enum hv_status st;
    if ((st = b->run(b->self, 1, &cold, err)) || (st = b->run(b->self, 1, &once, err))) {
        return st;
    }
    double want = once > 0 ? ceil(batch_s / once) : MAX_REPEATS;
    *repeats = (unsigned)fmin(fmax(want, 1), MAX_REPEATS);
    return HV_OK;
}

/* Median and median absolute deviation of the timings so far. */
static void sum_up(const double *t, int n, struct hv_probe_sample *out)
{
    double x[HV_SAMPLING_MAX] = {0};
    for (int i = 0; i < n; i++) {
        x[i] = t[i];
    }
    out->median_s = hv_median(x, (size_t)n);
    for (int i = 0; i < n; i++) {
        x[i] = fabs(t[i] - out->median_s);
    }
    out->spread_frac = out->median_s > 0 ? hv_median(x, (size_t)n) / out->median_s : 0;
    out->n = n;
}

/* Half the 95 % band of a median over the median: 1.96 standard errors of 1.253 σ/√n, σ from the
 * median absolute deviation (normal errors: Rousseeuw and Croux 1993). */
static double band(const struct hv_probe_sample *s)
{
    return 1.96 * 1.253 * 1.4826 * s->spread_frac / sqrt(s->n);
}

static enum hv_status take(const struct hv_bench *b, const struct hv_sampling *how,
                           struct hv_probe_sample *out, struct hv_err *err)
{
    double t[HV_SAMPLING_MAX], start_s = b->now_s(b->self);
    unsigned repeats = 1;
    enum hv_status st = warm_up(b, how->batch_s, &repeats, err);
    for (int n = 0; st == HV_OK && n < how->max_n;) {
        double seconds = 0;
        st = b->run(b->self, repeats, &seconds, err);
        if (st == HV_OK && !(seconds > 0)) {
            st = hv_err_set(err, HV_ENO, "the device's clock shows no time for %u runs", repeats);
        }
        t[n++] = seconds / repeats;
        sum_up(t, n, out);
        if (n >= how->min_n &&
            (band(out) <= how->band_frac || b->now_s(b->self) - start_s >= how->max_s)) {
            break;
        }
    }
    return st;
}

enum hv_status hv_sample_run(const struct hv_bench *b, const struct hv_probe *probes, size_t n,
                             const struct hv_sampling *how, struct hv_probe_sample *out,
                             struct hv_err *err)
{
    *out = (struct hv_probe_sample){.probe = probes[0], .clock_hz = HV_UNKNOWN};
    enum hv_status st = b->prepare(b->self, probes, n, err);
    if (st) {
        return st;
    }
    st = take(b, how, out, err);
    out->clock_hz = b->clock_hz(b->self);
    b->release(b->self);
    return st;
}
