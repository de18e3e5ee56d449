/**
 * hetviz's own planner, `auto`: an anytime search over plans whose value comes from hv_eval only.
 *
 * Usable devices form pools (equal devices of equal nodes). A plan is a set of disjoint replicas on
 * these pools. The stages of a replica are runs of equal stages: each takes devices of one pool
 * with its own tensor-, context- and data-parallel degree, or mixes data-parallel ranks of two
 * pools that share micro-batches by their speed. Blocks may be split between attention and
 * feed-forward network; pools may stay unused. The search lists candidate replicas by estimates
 * from the prices of hv_cost, evaluates the most promising sets of them, and improves the best ones
 * move by move. Everything is deterministic: the default budget counts work, not seconds.
 */
#ifndef HV_SOLVER_PLANNER_PLANNER_H
#define HV_SOLVER_PLANNER_PLANNER_H

#include "solver/bound/bound.h"
#include "solver/eval/eval.h"

/** Limits and callbacks of a search; `{0}` = the default budget and no callbacks. */
struct hv_planner_options {
    int64_t budget;              /**< plans evaluated at most; 0: only the default budget of work */
    const struct hv_plan *start; /**< improve this plan only; NULL: search everything */
    const bool *lost;            /**< [devices of the cluster] true for lost devices; NULL: none */
    bool (*stop)(void *ctx);     /**< true ends the search with the best so far; may be NULL */
    /** Called for every plan that is at least 1 % better than all earlier ones; `plan` is
     * borrowed. */
    void (*incumbent)(void *ctx, const struct hv_plan *plan);
    void (*progress)(void *ctx, double frac, const char *text); /**< 0 … 1; may be NULL */
    void *ctx;
};

/** Result of a search. */
struct hv_planner_result {
    struct hv_plan *plan; /**< owner: caller, hv_plan_unref; NULL when there is none */
    double value;         /**< of the job's objective: seconds, USD or joules per iteration */
    double iteration_s, bound_s; /**< bound: of all plans, hv_bound.spread_s */
    int64_t evaluations;
    bool stopped; /**< `stop` or `budget` ended it */
};

/**
 * Searches for the best synchronous plan of the job: valid, within memory, within the objective's
 * price. Energy is iteration time × rated power of the devices in use. At most six pools are
 * distinguished: beyond that, pools of one kind are merged, then the weakest left out.
 *
 * With a start, only that plan is improved: the result may be worse than the start where a sketch
 * cannot represent all of its knobs.
 *
 * Errors: HV_ENO with the reason when no plan was found, or when the search cannot begin at the
 * start. Complexity: about 2^pools × the degrees of a replica for the estimates, and hv_eval per
 * plan.
 */
enum hv_status hv_planner_run(struct hv_cost *k, const struct hv_planner_options *o,
                              struct hv_planner_result *out, struct hv_err *err) HV_NODISCARD;

#endif
