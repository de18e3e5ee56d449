/** Internal to solver/optim: the clock of one solve, which decides when to stop or report. */
#ifndef HV_SOLVER_OPTIM_WATCH_H
#define HV_SOLVER_OPTIM_WATCH_H

#include "solver/optim/limits.h"
#include <time.h>

/** A clock and the caller's limits. */
struct hv__watch {
    const struct hv_solve_limits *limits;
    struct timespec begin;
    double told_s; /* time of the last report */
    bool stopped;
    bool too_big; /* a program over device orders had too many states, or was stopped inside */
};

/** Starts the clock. */
void hv__watch_start(struct hv__watch *w, const struct hv_solve_limits *limits);
/** True once a limit is reached. */
bool hv__watch_over(struct hv__watch *w);
/** True when a report is due: the caller has a callback, and the last report is 0.1 s old. */
bool hv__watch_due(struct hv__watch *w);
/** Reports the best so far (infinity = none) and a bound to the caller. */
void hv__watch_tell(struct hv__watch *w, double incumbent, double bound);
/** The remaining limits for an inner problem: the remaining time, no reports. */
struct hv_solve_limits hv__watch_rest(const struct hv__watch *w);

#endif
