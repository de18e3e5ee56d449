/**
 * Inside eval: the judges that hv_eval chooses from, and what they share. A new kind of plan is a
 * new row in the table of one.c with a judge of this form.
 */
#ifndef HV_SOLVER_EVAL_JUDGES_H
#define HV_SOLVER_EVAL_JUDGES_H

#include "solver/bound/bound.h"
#include "solver/eval/eval.h"
#include "solver/eval/lowered/lowered.h"

/** Input of a judge. */
struct hv__question {
    struct hv_cost *k;
    const struct hv_plan *plan;
    const struct hv_eval_options *options;
    struct hv_arena *arena;
};

/** A judge fills `out`. HV_ENO: nothing can be timed and no finding gives the reason. */
typedef enum hv_status hv__judge_fn(const struct hv__question *q, struct hv_verdict *out,
                                    struct hv_err *err);

/** An empty verdict: metrics HV_UNKNOWN, no findings. */
void hv__verdict_begin(const struct hv__question *q, struct hv_verdict *out);
/** Judges a plan for one job by the first judge that applies to it. */
hv__judge_fn hv__judge_one HV_NODISCARD;
/** Judges every job of a plan for many, and what they are together. HV_ENO: none can be timed. */
hv__judge_fn hv__judge_jobs HV_NODISCARD;

/** Sets bound, reason and gap of a judged plan to those of the bound that holds for it. `b`: for
 * any plan, where out->metrics.bound_s is known. O(devices · log(devices) + cuts · houses). */
void hv__apply_bound(const struct hv__lowered *l, const struct hv_bound *b, struct hv_verdict *out);

#endif
