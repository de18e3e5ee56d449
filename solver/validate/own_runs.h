/**
 * Calibration on runs of the user's own: the few numbers that a handful of measured iteration times
 * tell apart are fitted, all others stay where they are.
 *
 * The prior of every number is its present value with the spread of the calibration table times
 * `scale`; a measured time is believed to within `noise` of the judge's. Both are chosen so that
 * the measured times are most probable (type-II maximum likelihood on the linearised judge), with
 * weak priors of their own: runs that agree with the present numbers hardly move them, runs that
 * are all slower by a quarter do. By pivoted orthogonalisation of the derivatives of the logarithms
 * of the predicted times, those numbers are chosen one after the other about which the runs say
 * more than the prior does once the numbers chosen before are accounted for; they are then fitted
 * together (MAP estimate, optim/choice/fit). Nothing here parses or prints.
 */
#ifndef HV_SOLVER_VALIDATE_OWN_RUNS_H
#define HV_SOLVER_VALIDATE_OWN_RUNS_H

#include "solver/eval/eval.h"

/** A measured run and the plan that it followed. Everything is borrowed; runs may share objects,
 * but nobody else uses their clusters meanwhile. */
struct hv_own_run {
    const char *name;
    struct hv_cluster *cluster;
    struct hv_model *model;
    const struct hv_job *job;
    const struct hv_plan *plan;
    double measured_s; /**< time of one iteration */
};

/** A class of devices of the runs. */
struct hv_own_class {
    struct hv_calibration fit; /**< numbers after the fit, and from three runs on the half band of
                                  jobs like theirs: 1.28 deviations, the larger of `noise` and of
                                  what fits without a run miss there; name and devices as before */
    const char *kinds;         /**< names of the kinds that ran, joined by commas */
};

/** A fitted number. */
struct hv_own_number {
    size_t class_index;
    enum hv_calibrated number;
    double before, after;
    double deviation; /**< one standard deviation of the logarithm of `after` */
};

/** Result; arrays live in the arena given. */
struct hv_own_fit {
    struct hv_own_class *classes;
    size_t n_classes;
    struct hv_own_number *numbers; /**< in the order of choice: the best told first */
    size_t n_numbers;
    double noise; /**< deviation (of the logarithm) of a run's time from the judge's */
    double *before_s, *after_s; /**< per run: predicted with the old and with the new numbers */
    double *without_s; /**< per run: predicted by a fit without it; HV_UNKNOWN with fewer than 3 */
};

/**
 * Fits. Afterwards the clusters of the runs use the new numbers, which live as long as `arena`.
 * Errors: HV_ENO where a plan cannot be timed (naming the run) or where no device of the runs is
 * calibrated (`"rates": "plain"`). Time: O(runs) fits of O(numbers) evaluations of each run.
 */
enum hv_status hv_own_runs_fit(const struct hv_own_run *runs, size_t n, struct hv_arena *arena,
                               struct hv_own_fit *out, struct hv_err *err) HV_NODISCARD;

#endif
