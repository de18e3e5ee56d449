/**
 * Checks of a schedule, rank by rank, for code that reads each rank anyway (hv_pipe_compile).
 *
 * Checked are: ranges; nothing twice; every backward has its forward, every B its W and vice versa;
 * forwards without backward only when there is no backward at all (serving); every op on the rank
 * of its stage (in its direction); pairs are adjacent; and on each rank the sequence F, R, B, W of
 * a (stage, micro-batch), slices forward ascending and backward descending. O(ops + stages ×
 * micro-batches × slices). For the files of solver/sim only.
 */
#ifndef HV_SOLVER_SIM_SCHEDULE_CHECK_INT_H
#define HV_SOLVER_SIM_SCHEDULE_CHECK_INT_H

#include "solver/sim/schedule/schedule.h"

/** State of the checks. */
struct hv__checker {
    const struct hv_schedule *s;
    struct hv_arena arena;
    uint16_t *seen; /**< by (stage, micro-batch, slice) */
    size_t count[HV_OP_KIND_N];
    struct hv_err *err;
};

/** Begins; hv__check_end must follow. Errors: HV_ELIMIT. */
enum hv_status hv__check_begin(struct hv__checker *c, const struct hv_schedule *s,
                               struct hv_err *err) HV_NODISCARD;
/** The ops of one rank; ranks in order. Errors: HV_EINPUT naming the operation; HV_ENO where only
 * the sequence is wrong. */
enum hv_status hv__check_rank(struct hv__checker *c, int32_t r) HV_NODISCARD;
/** Ends the checks: returns st, or an error for missing operations where st is HV_OK. */
enum hv_status hv__check_end(struct hv__checker *c, enum hv_status st) HV_NODISCARD;

#endif
