/** The planner's answers and what plans beside them are worth, for its tests. */
#ifndef HV_TESTS_PLANNER_FIXTURE_H
#define HV_TESTS_PLANNER_FIXTURE_H

#include <math.h>

#include "solver/planner/planner.h"
#include "tests/eval_fixture.h"

/** Six blocks; a batch of eight. */
static const char small_model[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"gpt-s\",\"kind\":\"transformer\",\"layers\":6,"
    "\"hidden\":2048,\"heads\":16,\"kv_heads\":16,\"ffn\":8192,\"ffn_kind\":\"gelu\","
    "\"vocab\":51200,\"max_sequence\":2048}";
static const char small_job[] =
    "{\"format\":\"hetviz.job/1\",\"global_batch\":8,\"sequence\":2048,\"precision\":\"fp16\","
    "\"optimizer\":\"adam\"}";

/** The planner's answer; its plan is the caller's. */
static inline struct hv_planner_result search(struct world *w, const struct hv_planner_options *o)
{
    struct hv_planner_result r;
    struct hv_err err = {0};
    if (hv_planner_run(w->cost, o, &r, &err) != HV_OK) {
        fail_msg("planner: %s", err.text);
    }
    return r;
}

/** Iteration time of a plan that breaks no rule, else infinity. */
static inline double time_of(struct world *w, const struct hv_plan *p)
{
    struct hv_arena a = {0};
    struct hv_verdict v;
    struct hv_eval_options o = {.no_bound = true};
    double t = HUGE_VAL;
    if (hv_eval(w->cost, p, &o, &a, &v, NULL) == HV_OK && v.findings.n == 0) {
        t = v.metrics.iteration_s;
    }
    hv_arena_free(&a);
    return t;
}

#endif
