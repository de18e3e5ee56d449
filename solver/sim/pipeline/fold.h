/**
 * Runs of very many micro-batches, computed exactly from short ones.
 *
 * The order of a schedule for more micro-batches is usually that for fewer with the same stretch of
 * every rank put in several times, each time for later micro-batches. Where all of a few such
 * stretches lie behind each other at one distance, so would any number of them: see fold.c.
 */
#ifndef HV_SOLVER_SIM_PIPELINE_FOLD_H
#define HV_SOLVER_SIM_PIPELINE_FOLD_H

#include "solver/sim/pipeline/pipeline.h"

/** A folded run. Owner: the arena. */
struct hv_fold {
    struct hv_schedule s;      /**< the short order */
    struct hv_pipe g;          /**< compiled */
    struct hv_pipe_run run;    /**< of the whole run: operations behind the omitted part have their
                                  final times; the sums are those of the whole run */
    struct hv_pipe_rank *idle; /**< [n_ranks] of the whole, as hv_pipe_idle */
    int64_t more; /**< micro-batches that were left out of the middle: s.n_micro_batches and these
                     are the whole */
    double period_s; /**< time of `step` further micro-batches */
    int32_t step;
};

/**
 * A number of micro-batches that the schedule can have and that leaves the same rest as
 * `micro_batches` when groups are made: as many as a folded run would begin with.
 */
int64_t hv_fold_least(const struct hv_schedule_input *in, int64_t micro_batches);

/**
 * Folds a run of `micro_batches` (`in->micro_batches` is ignored). Memory peaks and in-flight
 * micro-batches of the short order are those of the whole. Durations: the table stage_s with
 * rank_scale and hops; hops are numbered alike for every number of micro-batches. Errors: HV_ENO,
 * with the reason, where it is not proved that the middle repeats: an order that depends on cost or
 * is written out, all forwards before all backwards, a steady state that takes long to
 * settle; those of hv_schedule_make. O(operations of the short order), at most about 2^18 of them.
 */
enum hv_status hv_schedule_fold(struct hv_arena *a, const struct hv_schedule_input *in,
                                const struct hv_pipe_cost *c, int64_t micro_batches,
                                struct hv_fold *out, struct hv_err *err) HV_NODISCARD;

#endif
