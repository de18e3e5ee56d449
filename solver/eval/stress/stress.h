/**
 * What a plan loses where a run turns out worse than the cluster file says: exchange between
 * devices takes twice as long, memory is a tenth larger, a node is slower by a twentieth. The three
 * are where runs were off by most: gradient exchange on fresh clusters by factors of 1.5 to 9,
 * memory of processes and fragmentation by a tenth, single nodes by their cooling.
 */
#ifndef HV_SOLVER_EVAL_STRESS_STRESS_H
#define HV_SOLVER_EVAL_STRESS_STRESS_H

#include "solver/cost/cost.h"
#include "solver/eval/eval.h"

/** How many times as long everything takes on every link. */
#define HV_STRESS_EXCHANGE 2.0
/** How many times the memory of every stage. */
#define HV_STRESS_MEMORY 1.1
/** How many times as long the computing of a node takes. */
#define HV_STRESS_NODE 1.05
/** A plan that loses no more than this in each of the three is robust; and plans no farther apart
 * are as good as each other for `auto`'s option `robust`. */
#define HV_STRESS_ROBUST 0.06

/** Figures of a plan under stress. */
struct hv_stress {
    double exchange_s;  /**< iteration with slow links; judged again on such a cluster */
    double memory_frac; /**< fullest device: its peak with more memory, of its limit; above 1 the
                           plan does not fit any more */
    size_t fullest;     /**< that entry of hv_verdict.memory */
    double node_s;      /**< iteration with a slow node in the busiest stage: so much longer as that
                           stage computes, to first order of the critical path */
    size_t busiest;     /**< that entry of hv_verdict.stages */
    double worst_s;     /**< the longest of them; HV_UNKNOWN where the plan does not fit any more */
    double worst_frac; /**< lost at worst, relative to the iteration; HUGE_VAL where it does not fit
                          any more */
};

/**
 * Fills the figures of a judged training plan for one job. Errors: HV_ENO for other plans and
 * where nothing was timed; HV_ESTOPPED where `watch` (or NULL) asks to stop. O(one judgement
 * without its bound).
 */
enum hv_status hv_eval_stress(struct hv_cost *k, const struct hv_plan *p,
                              const struct hv_verdict *v, struct hv_eval_watch *watch,
                              struct hv_stress *out, struct hv_err *err) HV_NODISCARD;

/**
 * A cost context for searches of plans that stand all of it at once: on a cluster with slow links,
 * whose devices have so much less memory for a plan. Devices have the same numbers. Owner:
 * hv_cost_free, and hv_cluster_unref of `*cluster`. O(groups + links).
 */
struct hv_cost *hv_stress_cost(const struct hv_cost *k, struct hv_cluster **cluster) HV_NODISCARD;
/** True where it loses at most HV_STRESS_ROBUST in each of the three. */
bool hv_stress_is_robust(const struct hv_stress *s);
/** Name of the figure that is the worst: "exchange 2x slower", "memory 10% larger", "a node 5%
 * slower". Static. */
const char *hv_stress_worst_name(const struct hv_stress *s);

#endif
