/**
 * The steady state of a pipeline: its exact period (the maximum cycle ratio of solver/sim/cycle.h),
 * and from it the time of more micro-batches than can be simulated one by one.
 */
#ifndef HV_SOLVER_SIM_PIPELINE_STEADY_H
#define HV_SOLVER_SIM_PIPELINE_STEADY_H

#include "solver/sim/pipeline/pipeline.h"

/** The steady state of a pipeline. */
struct hv_steady {
    double period_s;       /**< of `micro_batches` more */
    int32_t micro_batches; /**< after which every rank repeats itself */
    double per_micro_batch_s;
    int32_t n_ranks; /**< ranks on the circle that sets the pace */
    int32_t rank; /**< the lowest of them, -1 = not known; with n_ranks 1 it is busy all the time,
                     or waits only for itself */
};

/**
 * The steady state of a compiled pipeline: the repeating pattern of its middle if it continued for
 * ever. Errors: HV_ENO where the middle does not repeat (all forwards before all backwards, or too
 * few micro-batches), or where micro-batches differ. O(nodes of a period · edges) per round.
 */
enum hv_status hv_pipe_steady(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                              struct hv_steady *out, struct hv_err *err) HV_NODISCARD;

/** A makespan extrapolated from smaller runs. */
struct hv_extrapolated {
    double makespan_s;
    int32_t from_micro_batches; /**< the largest that was laid out */
    struct hv_steady steady;
    bool exact; /**< it was laid out in full, proved (fold.h), or four sizes in a row grew by the
                   period exactly */
};

/**
 * Time of a schedule for any number of micro-batches: lays out small numbers until the makespan
 * grows by the steady period, then adds periods. `in->micro_batches` is ignored; durations: stage_s
 * and hop_all_s of `c`. Where the middle of an order does not repeat, the period is the time of p
 * further micro-batches. Errors: those of hv_schedule_make and hv_pipe_compile.
 */
enum hv_status hv_schedule_extrapolate(const struct hv_schedule_input *in,
                                       const struct hv_pipe_cost *c, int64_t micro_batches,
                                       struct hv_extrapolated *out,
                                       struct hv_err *err) HV_NODISCARD;

#endif
