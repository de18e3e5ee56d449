/**
 * The keys of a plan and of a job that decide something, and how the judge treats each: simulated
 * in full, or approximated for some of their values. One table feeds the list `approximated` of
 * every verdict, `hetviz help knobs` and the tests.
 */
#ifndef HV_SOLVER_EVAL_KNOBS_H
#define HV_SOLVER_EVAL_KNOBS_H

#include "solver/cost/cost.h"
#include "solver/eval/verdict/verdict.h"
#include "solver/plan/plan.h"
#include <stdbool.h>
#include <stddef.h>

/** Object of a file that holds a knob. */
enum hv_knob_object {
    HV_KNOB_STAGE,
    HV_KNOB_MOE, /**< `moe` of a stage */
    HV_KNOB_PLAN,
    HV_KNOB_JOB,
};

/** Where a row of the table is looked up. */
struct hv_knob_place {
    const struct hv_plan *plan;
    const struct hv_job *job;
    const struct hv_cluster *cluster; /**< NULL: not known */
    const struct hv_replica *replica; /**< of a stage, else NULL */
    const struct hv_stage *stage;     /**< HV_KNOB_STAGE and HV_KNOB_MOE, else NULL */
    size_t stage_number;              /**< in its replica */
    const struct hv_moe_knobs *moe;   /**< HV_KNOB_MOE, else NULL */
};

/** One row: a knob that is simulated, or some values of a knob that are approximated or refused. */
struct hv_knob {
    enum hv_knob_object object;
    const char *key;  /**< below its object: "zero.gather_at" */
    const char *when; /**< values concerned; NULL: every value */
    /** How the judge approximates these values, or why it refuses them; NULL: they are simulated in
     * full. */
    const char *text;
    /** True where the plan sets such a value; NULL in rows that are simulated or refused. */
    bool (*applies)(const struct hv_knob_place *p);
};

/** All rows in the order of the plan format, those of one key behind each other; `n` receives their
 * number. Static storage. */
const struct hv_knob *hv_knobs(size_t *n);

/** Prefix of a knob's key in its file: "stage.", "stage.moe.", "" or "job.". */
const char *hv_knob_prefix(enum hv_knob_object object);

/** Lists in `out` the values of the plan that are approximated, each with its place:
 * "replicas[0].stages[1].deal: …". O(rows · stages + micro-batches of lists). */
void hv__find_approximated(const struct hv_plan *p, const struct hv_cost *k, struct hv_arena *arena,
                           struct hv_verdict *out);

#endif
