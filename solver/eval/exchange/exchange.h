/** Inside eval: the end of an iteration, which follows the runs of solver/eval/train. */
#ifndef HV_SOLVER_EVAL_EXCHANGE_EXCHANGE_H
#define HV_SOLVER_EVAL_EXCHANGE_EXCHANGE_H

#include "solver/eval/train/steps.h"

/**
 * Gathers of updated weights beside the first forward passes of the next iteration (zero 1 and 2,
 * `gather_at` next_forward), in the steady state: delays the runs of the pipelines by what the
 * passes do not hide. Where no stage asks for it: nothing. O(nodes + edges) per pipeline.
 */
void hv__late_gathers(struct hv__lowered *l);
/** Gradient reductions, optimizer, gathers: sets l->iteration of plans that are not stale. */
void hv__tail(struct hv__lowered *l);
/** Steady time of stale plans: sets l->iteration and out->stale_sync. Every group of partial reduce
 * takes the time of its own members, and averages of several groups at once share links fairly;
 * where the time of a worker goes (waves.exposed_s) takes the mean of all groups. HV_ENO: groups
 * that cannot be simulated. */
enum hv_status hv__time_stale(struct hv__lowered *l, struct hv_verdict *out,
                              struct hv_err *err) HV_NODISCARD;

/* ---- iteration.c --------------------------------------------------------------------------------
 */

/**
 * All steps from the plan to the time of its iteration. Schedules that decide by cost estimate
 * times without the links that ranks in turns share and without streams of gathers; there, all
 * their orders are simulated whole and the shortest iteration is kept, the first of equal ones.
 * HV_ENO: cannot be timed. O(operations of the distinct pipelines), there for every order.
 */
enum hv_status hv__time_iteration(struct hv__lowered *l, struct hv_verdict *out,
                                  struct hv_err *err) HV_NODISCARD;

#endif
