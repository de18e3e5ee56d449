/** Figures: the cost model, the lower bound, verdicts and timelines of rows. */
#ifndef HV_UI_SESSION_JUDGING_H
#define HV_UI_SESSION_JUDGING_H

#include "solver/bound/bound.h"
#include "solver/eval/eval.h"
#include "solver/io/own/docs.h"
#include "ui/session/row/drawing.h"
#include <stdbool.h>
#include <stdint.h>

struct hv_session;

/**
 * Verdict of a row's plan against the documents as they are now, computed at the first call and
 * kept until the plan or a document changes. NULL when there is no plan or it cannot be judged
 * (reason in err).
 * @param timeline  also keep spans for drawing. Where that takes long (hv_session_env.apart_from)
 * the result is NULL with HV_ESTOPPED in err until a thread has finished; see hv_session_drawing.
 */
const struct hv_verdict *hv_session_verdict(struct hv_session *s, uint32_t id, bool timeline,
                                            struct hv_err *err);
/** The row's plan as built against the documents as they are now; NULL as above. Borrowed as the
 * verdict. */
const struct hv_plan *hv_session_plan(struct hv_session *s, uint32_t id, struct hv_err *err);
/** Lower bound for the documents as they are now; iteration_s is HV_UNKNOWN when there is none.
 * Kept. */
struct hv_bound hv_session_bound(struct hv_session *s);
/** Cost model of the documents as they are now. Borrowed until the next edit. */
struct hv_cost *hv_session_cost(struct hv_session *s);

/* ---- timelines made by a thread -------------------------------------------------------------- */

/** State of a row's timeline: made by a thread or waiting for it, stopped, or neither; *frac (may
 * be NULL): the finished share. */
enum hv_drawing hv_session_drawing(const struct hv_session *s, uint32_t id, double *frac);
/** Stops the timeline of the row, or its wait for the thread; false where it is not in the
 * making. */
bool hv_session_draw_stop(struct hv_session *s, uint32_t id);
/** Lets a timeline that was stopped be made again: it starts at the next request. */
void hv_session_draw_again(struct hv_session *s, uint32_t id);

#endif
