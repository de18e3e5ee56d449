/**
 * Explanation of the cost of a stage: the terms behind the seconds of its passes and its transfer
 * and behind the bytes of its memory, each with formula and source.
 */
#ifndef HV_SOLVER_EVAL_EXPLAIN_H
#define HV_SOLVER_EVAL_EXPLAIN_H

#include "solver/cost/cost.h"

/** One chapter of an explanation. */
struct hv_explained {
    const char *title; /**< "one micro-batch, chunk 1 of 2: forward 12 ms, backward 25 ms" */
    const struct hv_why_term *terms;
    size_t n_terms;
};

/**
 * Explains stage `stage` of replica entry `replica`, as its first copy's first data-parallel rank
 * runs it: a chapter per chunk, one for the transfer to the next stage where there is one, and one
 * for static memory, which does not depend on micro-batches in flight. Everything lives in `arena`.
 * Errors: HV_ENO when there is no such stage (the text gives the number of stages), it cannot be
 * priced, or the plan uses what no judge simulates (not_simulated.h). O(blocks of the stage).
 */
enum hv_status hv_eval_explain(struct hv_cost *k, const struct hv_plan *p, size_t replica,
                               size_t stage, struct hv_arena *arena, struct hv_explained **out,
                               size_t *n_out, struct hv_err *err) HV_NODISCARD;

#endif
