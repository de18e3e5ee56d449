/**
 * Times a probe until its median is known well enough: warm-up, batches long enough for the clock,
 * median and spread. Robust against the odd slow run; deterministic given the timings.
 */
#ifndef HV_SOLVER_PROFILER_SAMPLER_H
#define HV_SOLVER_PROFILER_SAMPLER_H

#include "solver/profiler/bench.h"

/** Rules for the end of sampling. */
struct hv_sampling {
    double batch_s;   /**< target duration of one timing, which sets its number of runs */
    double band_frac; /**< stop when half the band of the median is within this share of it */
    int min_n, max_n; /**< timings; max_n ≤ HV_SAMPLING_MAX */
    double max_s;     /**< no further timing after this time, once there are min_n */
};
#define HV_SAMPLING_MAX 64

/** Median of n numbers, which are sorted in place. n > 0. O(n log n). */
double hv_median(double *x, size_t n);
/**
 * Times probes that run one after the other as a whole. Errors: HV_ENO when the bench does not
 * support them; errors of the bench's run.
 */
enum hv_status hv_sample_run(const struct hv_bench *b, const struct hv_probe *probes, size_t n,
                             const struct hv_sampling *how, struct hv_probe_sample *out,
                             struct hv_err *err) HV_NODISCARD;

#endif
