/** Private to the files of ui/lever. */
#ifndef HV_UI_LEVER_LEVER_INT_H
#define HV_UI_LEVER_LEVER_INT_H

#include "ui/lever/lever.h"
#include "ui/session/session.h"

/** Documents and plan of a trial, each shared with the session until it is changed. */
struct hv__trial {
    struct hv_session *s;
    const struct hv_levers *levers;
    const struct hv_plan *base;  /**< the present plan */
    json_t *tree[HV_DOC_INPUTS]; /**< owned */
    json_t *plan;                /**< owned */
    bool plan_changed;
    struct hv_err *err;
};

/** Seconds between checkpoints by position of the lever; position 0 is the optimal interval. */
enum { HV__LEVER_INTERVALS = 13 };
extern const double hv__lever_intervals_s[HV__LEVER_INTERVALS];

/** Applies one lever to a trial. */
enum hv_status hv__trial_turn(struct hv__trial *t, const struct hv_lever *l,
                              double value) HV_NODISCARD;
/** Turns a lever of the plan; first makes t->plan an unshared tree where it is shared. */
enum hv_status hv__trial_turn_plan(struct hv__trial *t, const struct hv_lever *l,
                                   double value) HV_NODISCARD;
/** Chunks that every rank of the plan holds, 0 where ranks differ or the pipelines cannot be split
 * again; *most = blocks of the rank with the fewest. */
int hv__plan_chunks(const struct hv_plan *p, int *most);
/** Sets the schedule and splits the pipelines into the chunks that it needs. Errors: HV_ENO with
 * the reason. */
enum hv_status hv__trial_set_schedule(struct hv__trial *t, const char *name) HV_NODISCARD;
/** Splits the pipelines into v chunks per rank; a schedule that does not support v is replaced by
 * "interleaved" (v > 1) or "1f1b". Errors: HV_ENO with the reason. */
enum hv_status hv__trial_set_chunks(struct hv__trial *t, int v) HV_NODISCARD;
/** Sets a value in a document of the trial. Takes over `value`. */
enum hv_status hv__trial_set(struct hv__trial *t, const char *path, json_t *value) HV_NODISCARD;
/** Numbers of the nodes a plan uses, ascending, in `arena`. */
uint32_t *hv__plan_nodes(const struct hv_plan *p, struct hv_arena *arena, size_t *n);

#endif
