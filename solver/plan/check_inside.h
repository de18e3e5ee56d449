/** Internals of the plan checker: shared by check.c, check_blocks.c, check_degrees.c,
 * check_schemes.c and check_devices.c. */
#ifndef HV_SOLVER_PLAN_CHECK_INSIDE_H
#define HV_SOLVER_PLAN_CHECK_INSIDE_H

#include "solver/plan/check.h"

/** Input of the checks. */
struct hv_check {
    const struct hv_plan *p;
    const struct hv_model *m;
    const struct hv_job *j;
    struct hv_findings *out;
    size_t n_halves; /**< half blocks of the whole model */
};

/** One stage of one replica, with its position. */
struct hv_check_stage {
    size_t replica, stage;
    const struct hv_replica *r;
    const struct hv_stage *s;
};

/** Adds a finding at "replicas[i].stages[k].<key>" (key NULL: the stage itself). */
void hv_check_stage_add(const struct hv_check *c, const struct hv_check_stage *at, const char *key,
                        enum hv_violation_code code, double by, const char *fmt, ...)
    HV_PRINTF(6, 7);
/** Adds a finding at "replicas[i].<key>". */
void hv_check_replica_add(const struct hv_check *c, size_t replica, const char *key,
                          enum hv_violation_code code, double by, const char *fmt, ...)
    HV_PRINTF(6, 7);

/** First half block of the module whose blocks the stage numbers, and its number of half blocks;
 * false: no such module. */
bool hv_check_module(const struct hv_check *c, const struct hv_stage *s, size_t *first2,
                     size_t *n2);
/** Marks the half blocks a stage holds: adds 1 to held[half]. Indices out of range are left out. */
void hv_check_mark(const struct hv_check *c, const struct hv_stage *s, unsigned *held);
/** Block number `half / 2` of a transformer (also inside modules), or NULL for other kinds. */
const struct hv_block *hv_check_block(const struct hv_check *c, size_t half);

/** Rule C. */
void hv_check_blocks(const struct hv_check *c);
/** Rules D and E and everything about degrees of one stage. */
void hv_check_degrees(const struct hv_check *c, const struct hv_check_stage *at);
/** Sizes and keys that schemes of tensor and context parallelism need, of one set of degrees. */
void hv_check_schemes(const struct hv_check *c, const struct hv_check_stage *at);
/** q with q² × depth = degree (2d, 2.5d) or q³ = degree (3d); 0: there is none. O(q). */
int hv_check_grid_side(const struct hv_tp *tp);
/** Rule B: exclusive, present, able devices; fabrics. */
void hv_check_devices(const struct hv_check *c);

#endif
