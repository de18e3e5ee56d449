/** Checking a schedule rank by rank, for who reads each rank anyway. Between files of this room. */
#ifndef HV_SOLVER_SIM_SCHEDULE_CHECK_INT_H
#define HV_SOLVER_SIM_SCHEDULE_CHECK_INT_H

#include "solver/sim/schedule/schedule.h"

/** What has been seen so far. */
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
/** The ops of one rank; ranks in order. Errors: those of hv_schedule_check. */
enum hv_status hv__check_rank(struct hv__checker *c, int32_t r) HV_NODISCARD;
/** Ends: st, or what is missing where it is HV_OK. */
enum hv_status hv__check_end(struct hv__checker *c, enum hv_status st) HV_NODISCARD;

#endif
