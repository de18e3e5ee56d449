/* The clock of one solve: deadline, cancellation by the caller, and reports ten times a second. */
#include "solver/optim/watch.h"

#include <stddef.h>

void hv__watch_start(struct hv__watch *w, const struct hv_solve_limits *limits)
{
    static const struct hv_solve_limits none = {0};
    w->limits = limits ? limits : &none;
    w->stopped = w->too_big = false;
    w->told_s = 0;
    clock_gettime(CLOCK_MONOTONIC, &w->begin);
}

static double seconds_of(const struct hv__watch *w)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - w->begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - w->begin.tv_nsec);
}

bool hv__watch_over(struct hv__watch *w)
{
    if (!w->stopped && w->limits->deadline_s > 0) {
        w->stopped = seconds_of(w) > w->limits->deadline_s;
    }
    if (!w->stopped && w->limits->cancel) {
        w->stopped = w->limits->cancel(w->limits->ctx);
    }
    return w->stopped;
}

bool hv__watch_due(struct hv__watch *w)
{
    return w->limits->report && seconds_of(w) > w->told_s + 0.1;
}

void hv__watch_tell(struct hv__watch *w, double incumbent, double bound)
{
    w->told_s = seconds_of(w);
    w->limits->report(w->limits->ctx, incumbent, bound);
}

struct hv_solve_limits hv__watch_rest(const struct hv__watch *w)
{
    struct hv_solve_limits rest = *w->limits;
    if (rest.deadline_s > 0) {
        rest.deadline_s -= seconds_of(w);
        if (rest.deadline_s < 1e-9) {
            rest.deadline_s = 1e-9;
        }
    }
    rest.report = NULL;
    return rest;
}
