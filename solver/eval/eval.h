/**
 * The judge: it turns a plan into passes, a task graph, the end of the iteration, a timeline and
 * metrics. All plans are judged here and only here.
 */
#ifndef HV_SOLVER_EVAL_EVAL_H
#define HV_SOLVER_EVAL_EVAL_H

#include "solver/cost/cost.h"
#include "solver/eval/goodput.h"
#include "solver/eval/timeline/timeline.h"
#include "solver/eval/verdict/objective.h"
#include "solver/eval/verdict/verdict.h"

/** What to compute. */
struct hv_eval_options {
    bool timeline; /**< keep spans for drawing */
    bool no_bound; /**< leave the bound unknown, band and goodput (inner loops) */
    bool failures; /**< goodput also with no_bound */
    /** What the job's runtime cannot run is a violation, for searches; else the plan is judged as
     * if it could, and the verdict says so (hv_verdict.approximated). */
    bool runtime_limits;
    /** For searches, 0: none. A plan for a job with sequence_lengths is judged first with equal
     * lengths for all micro-batches of an iteration; where the expected time of that
     * (hv_verdict.common_s) is above this, those are its figures, and the iterations in which
     * micro-batches wait for longer ones are left out. */
    double beat_s;
    /** For searches, 0: none. A plan whose iteration is known to take longer than this is not
     * simulated to its end: its verdict has hv_verdict.at_least_s and the findings so far, no
     * memory and no figures. */
    double give_up_s;
    /** For searches, 0: all. Of a job's routing so many iterations are timed, evenly spaced, and
     * stand for all; memory is theirs too. All are timed where experts follow the routing. */
    size_t iterations;
    struct hv_cost *const *jobs; /**< plan for many jobs: cost context of each job with its own
                                    model and job; NULL, or a NULL entry: the one given */
    struct hv_eval_watch *watch; /**< NULL = no observer */
};

/**
 * Judges a plan. A plan with violations still gets all figures that can be computed; the others are
 * HV_UNKNOWN. Errors: HV_ENO with the reason when the plan cannot be timed; never HV_EINPUT.
 * Complexity O(operations of one pipeline per distinct replica entry).
 */
enum hv_status hv_eval(struct hv_cost *k, const struct hv_plan *p, const struct hv_eval_options *o,
                       struct hv_arena *arena, struct hv_verdict *out,
                       struct hv_err *err) HV_NODISCARD;

/**
 * The timelines of all jobs as one, each iteration from 0 on, rows named by their jobs. NULL where
 * no job has one. Rows count replicas and stages in the plans of their jobs. O(spans).
 */
struct hv_timeline *hv_eval_jobs_timeline(const struct hv_verdict *v, struct hv_arena *arena);

#endif
