/**
 * Iterations of a job whose sequences have a distribution of lengths. Thread: any. Errors: none.
 */
#ifndef HV_SOLVER_EVAL_LENGTHS_H
#define HV_SOLVER_EVAL_LENGTHS_H

#include "solver/eval/lowered/lowered.h"

/** Iterations whose weighted times add up to the expected one; n = 0: micro-batches have the
 * lengths that the plan or the job gives. */
struct hv__length_runs {
    struct hv__length_run *items;
    size_t n;
};
/** Lists them, in the arena of the evaluation. O(bins · sizes of micro-batches · log), and
 * O(micro-batches · bins) where lengths are drawn. */
struct hv__length_runs hv__length_runs(const struct hv__lowered *l);
/** True where the expectation needs draws: stages or replicas wait for each other. O(1). */
bool hv__lengths_are_drawn(const struct hv_plan *p);

#endif
