/**
 * The band of a verdict: a range around the simulated time of an iteration that holds the time of a
 * real one in four cases of five.
 *
 * Half its width, as a logarithm, is h · sqrt(1 + (r · x)²). h is what predictions of the same
 * class of devices, width of the number format and sort of model missed on published rows whose
 * source had no part in the fit (hv_calibration.error; solver/validate/bands.h). x is the part of
 * the iteration that is exposed exchange: so much an exchange that is twice as slow adds at least.
 * How fast exchange is differs more between installations than how fast devices compute: r = 5 fits
 * the rows, of which those with a sixth of exchange or more are off by twice what the others are.
 */
#ifndef HV_SOLVER_EVAL_VERDICT_BAND_H
#define HV_SOLVER_EVAL_VERDICT_BAND_H

#include "solver/eval/verdict/verdict.h"
#include "solver/workload/job.h"
#include "solver/workload/model.h"

/** Share of real iterations that a band holds. */
#define HV_BAND_COVER 0.8

/** The class of error that a job on a model belongs to. */
enum hv_error_of hv_band_error_of(const struct hv_model *m, enum hv_precision p);
/** Part of the iteration that is exposed exchange between devices; 0 where no parts are known. */
double hv_band_exposed_frac(const struct hv_metrics *m);
/** What an exposed part multiplies half a band with: at least 1. */
double hv_band_scale(double exposed_frac);
/**
 * Sets the band of figures that were computed for a plan: with the largest error among the classes
 * of the devices that it uses. No band (cover 0) without an iteration time, of steady states with
 * stale weights, and where a class says nothing about its error (`"rates": "plain"`). O(devices).
 */
void hv_band_of(const struct hv_plan *p, const struct hv_model *model, const struct hv_job *job,
                struct hv_metrics *m);
/** Half the width of a band relative to its middle, for people: 0.05 of "±5 %". HV_UNKNOWN without
 * a band. */
double hv_band_frac(const struct hv_band *b);
/** True where both have bands and neither time lies outside the other's band: figures of this
 * accuracy do not order them. */
bool hv_band_within(const struct hv_metrics *a, const struct hv_metrics *b);

#endif
