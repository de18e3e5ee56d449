/**
 * Goodput of a plan under failures: expected tokens per second and their price while nodes fail or
 * are preempted, and the causes of lost time.
 *
 * There are two ways to recover from a failure (`recovery` of a plan). `checkpoint`: all nodes
 * stop, wait for the replacement, restart and read the last checkpoint. `peers`: states are copied
 * from another holder, the iteration is lost, and the other nodes continue with one node less until
 * the replacement arrives (Oobleck, SOSP 2023, section 5). The job gives the durations
 * (`failures`), the inventory the rates of preemption. Formulae: sim/failures.h.
 */
#ifndef HV_SOLVER_EVAL_GOODPUT_H
#define HV_SOLVER_EVAL_GOODPUT_H

#include "solver/cost/cost.h"
#include "solver/eval/verdict/verdict.h"

/** Figures of one plan under failures. */
struct hv_goodput_query {
    const struct hv_plan *plan;
    double iteration_s, tokens_per_s;
    bool waits; /**< a plan recovered from checkpoints waits for the replacement; false: a new plan
                   is made for the remaining nodes */
};

/**
 * Expectations for a plan in train mode over layer ranges; `known` is false for others, and where
 * the iteration is not timed. O(devices + blocks × pipelines at worst).
 */
void hv_eval_goodput(struct hv_cost *k, const struct hv_goodput_query *q, struct hv_arena *arena,
                     struct hv_goodput *out);

/** A plan that is adapted while nodes are away and again when they return. */
struct hv_elastic {
    double tokens_per_s, usd_per_h, usd_per_mtoken;
    double *probability; /**< [n + 1] that 0, 1, … n − 1 nodes are away, and that more are */
};
/**
 * Expectations with the plan's own throughput [0] and that of its adapted plans: tokens_per_s[i]
 * with i nodes away, 0 where no plan fits; with more than n − 1 away training stops. `g` is
 * hv_eval_goodput of the plan with `waits` false. O(nodes · n).
 */
void hv_eval_elastic(struct hv_cost *k, const struct hv_plan *p, const struct hv_goodput *g,
                     const double *tokens_per_s, size_t n, struct hv_arena *arena,
                     struct hv_elastic *out);

/** True where the job or the inventory gives failure rates for the nodes that a plan uses.
 * O(devices). */
bool hv_goodput_asked(const struct hv_cost *k, const struct hv_plan *p);

/** Failures and preemptions of one node of a group, per second, by the rules of a job. */
double hv_node_failures_per_s(const struct hv_node_group *g, const struct hv_failure_rules *r);

#endif
