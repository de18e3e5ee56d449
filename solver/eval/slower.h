/** Parts of a cluster that, made faster, make a plan slower: anomalies of list scheduling. */
#ifndef HV_SOLVER_EVAL_SLOWER_H
#define HV_SOLVER_EVAL_SLOWER_H

#include "solver/eval/verdict/verdict.h"

#include "solver/cost/cost.h"

/** Every part is tried this many times as fast. */
#define HV_SLOWER_TIMES 2
/** Smaller shares are not told: orders that are as good as each other differ by as much. */
#define HV_SLOWER_FRAC 0.005

/** One anomaly. */
struct hv_slower {
    double iteration_s; /**< with the faster part */
    const char *text; /**< "list scheduling: with twice the FLOP/s of … this plan takes 1.9 % longer
                         (…), since …" */
};

/**
 * Judges a training plan again with each part of the cluster that it uses HV_SLOWER_TIMES as fast,
 * and lists those with which its iteration takes longer than `iteration_s` by more
 * than HV_SLOWER_FRAC, the longest first. That happens where the schedule derives its order from
 * the times of the passes, or where transfers share links: operations with fixed predecessors that
 * become shorter may then run in a worse order (R. L. Graham, Bounds on Multiprocessing Timing
 * Anomalies, SIAM J. Appl. Math. 17, 1969). Nothing is tried, and nothing listed, where neither is
 * so: a plan on one node with a fixed order, a plan that serves or is for many jobs. Of plans with
 * many operations fewer parts are tried (SLOWER_WORK), devices before links.
 *
 * Everything lives in `arena`. Errors: HV_ESTOPPED where `watch` (or NULL) asks to stop.
 * O(parts · one judgement without its bound).
 */
enum hv_status hv_eval_slower(struct hv_cost *k, const struct hv_plan *p, double iteration_s,
                              struct hv_eval_watch *watch, struct hv_arena *arena,
                              struct hv_slower **out, size_t *n_out,
                              struct hv_err *err) HV_NODISCARD;

#endif
