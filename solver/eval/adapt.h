/**
 * Places of experts that follow the routing (moe.adapt): before every iteration a policy that knows
 * the tokens of the iterations before it, and no others, may place the experts of each layer anew;
 * weights and states of experts that are placed anew are moved before the iteration begins.
 *
 * `balance`: equal numbers of experts per rank, the hottest first on the least loaded (longest
 * processing time with slots; SmartMoE, Zhai et al. 2023). `copy`: copies of the hottest experts on
 * every rank, one more as long as the last iteration would have been shorter with it (FasterMoE, He
 * et al. 2022). `record`: as the plan lists them. A decision is kept only if what the last
 * iteration would have gained by it, times the interval, is more than the move takes.
 */
#ifndef HV_SOLVER_EVAL_ADAPT_H
#define HV_SOLVER_EVAL_ADAPT_H

#include "solver/eval/lowered/lowered.h"

struct hv__adaption;

/** Seconds of an iteration of the routing with another plan in the place of the one at hand. */
struct hv__trial {
    enum hv_status (*time)(const struct hv__lowered *l, const struct hv_plan *plan,
                           size_t iteration, double *time_s, struct hv_err *err);
};

/** True where some blocks of the plan have a policy. O(stages · knobs). */
bool hv__adapts(const struct hv_plan *p);
/** Opens the walk over the iterations of the job's routing; all in the arena of *l. */
struct hv__adaption *hv__adapt_open(const struct hv__lowered *l, const struct hv__trial *trial);
/** The plan of iteration t, called for t = 0, 1, …; `last_s`: seconds of the iteration before.
 * *move_s: seconds in which experts move before it. */
enum hv_status hv__adapt_next(struct hv__adaption *a, size_t t, double last_s,
                              const struct hv_plan **plan, double *move_s,
                              struct hv_err *err) HV_NODISCARD;
/** The plan of an iteration that was asked for. O(1). */
const struct hv_plan *hv__adapt_plan(const struct hv__adaption *a, size_t t);
/** Experts placed anew so far, of all replicas, and the bytes that this sent. O(1). */
void hv__adapt_moved(const struct hv__adaption *a, size_t *moves, double *bytes);

#endif
