/** Internals of the distributions, shared by their files; not for other modules. */
#ifndef HV_SOLVER_OPTIM_BATCH_DISTRIBUTE_INT_H
#define HV_SOLVER_OPTIM_BATCH_DISTRIBUTE_INT_H

#include "solver/optim/batch/distribute.h"

/** Largest count: its max, with points at most the last one's. */
int64_t hv__share_max(const struct hv_share *s);
/** Time of a count within its limits. O(log points). */
double hv__share_value(const struct hv_share *s, int64_t count);
/** Share with points: largest count in [min, most] whose time is <= t; min when none is. */
int64_t hv__share_under(const struct hv_share *s, int64_t most, double t);
/** Share with points: time per count between point k and the next; 0 behind the last. */
double hv__share_slope(const struct hv_share *s, size_t k);
/** Share with points: the last one that is not behind the count. O(log points). */
size_t hv__share_point(const struct hv_share *s, int64_t count);

#endif
