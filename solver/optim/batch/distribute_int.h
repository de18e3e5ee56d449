/** Inside of the distributions, shared by their files; not for other modules. */
#ifndef HV_SOLVER_OPTIM_BATCH_DISTRIBUTE_INT_H
#define HV_SOLVER_OPTIM_BATCH_DISTRIBUTE_INT_H

#include "solver/optim/batch/distribute.h"

/** Checks the points of share number i (from 0), where it has any. Errors: HV_EINPUT. */
enum hv_status hv__share_check_points(const struct hv_share *s, size_t i,
                                      struct hv_err *err) HV_NODISCARD;
/** Largest count: its max, with points at most the last one's. */
int64_t hv__share_max(const struct hv_share *s);
/** Time of a count within its limits. O(log points). */
double hv__share_value(const struct hv_share *s, int64_t count);
/** Share with points: largest count in [min, most] whose time is <= t; min when none is. */
int64_t hv__share_under(const struct hv_share *s, int64_t most, double t);

#endif
