/** The cache of judged plans; for cache.c, judged.c and drawing.c only. */
#ifndef HV_UI_SESSION_ROW_JUDGED_INT_H
#define HV_UI_SESSION_ROW_JUDGED_INT_H

#include "solver/base/arena.h"
#include "solver/base/vec.h"
#include "ui/session/row/judged.h"

/** Rows whose timeline is kept at the same time. */
#define HV__TIMELINES 4

/** A timeline made by a thread, with all that it was made from (drawing.c). */
struct hv__drawn;
/** The thread that makes one. */
struct hv__drawing;

/** A row's plan, built and judged against the documents as they were at `epoch`. */
struct hv__judged {
    uint32_t row;
    uint64_t epoch; /**< 0 = not judged */
    const json_t *plan_tree;
    struct hv_plan_doc plan;
    struct hv_job_inputs *own; /**< of a plan for many jobs: the inputs of each, and its context */
    size_t n_own;
    struct hv_cost **costs;
    struct hv_arena arena, timeline_arena;
    struct hv_verdict verdict, with_timeline;
    bool has_plan, has_verdict, has_timeline;
    struct hv__drawn *drawn; /**< verdict with the timeline as a thread made it, or NULL */
    bool draw_stopped;       /**< the user stopped the thread: no automatic restart */
    struct hv_err err;       /**< why one of them is missing */
};

/** The cached results, and the thread that makes a timeline. */
struct hv__cache {
    size_t apart_from, timeline_bytes;
    struct hv_cost *cost;
    uint64_t cost_epoch, bound_epoch;
    struct hv_arena bound_arena;
    struct hv_bound bound;
    HV_VEC(struct hv__judged *) judged;
    struct hv__drawing *drawing;       /**< NULL = no thread is at work */
    uint32_t timelines[HV__TIMELINES]; /**< rows with a timeline, the latest first */
};

/** The entry of a row, or NULL. O(rows that were judged). */
struct hv__judged *hv__cache_find(const struct hv__cache *cache, uint32_t row);
/** Inputs and contexts of every job of a plan for many (none of other plans). */
enum hv_status hv__cache_open_jobs(const struct hv_inputs *in, const struct hv_plan_doc *plan,
                                   struct hv_job_inputs **own, size_t *n_own,
                                   struct hv_cost ***costs, struct hv_err *err) HV_NODISCARD;
/** True where a thread makes the timeline of this plan. */
bool hv__cache_draws_apart(const struct hv__cache *cache, const struct hv__judged *j);
/** The verdict with the timeline where it is finished; else NULL, and starts a thread to make it
 * unless it was stopped. */
const struct hv_verdict *hv__cache_draw(struct hv__cache *cache, const struct hv__docs *docs,
                                        struct hv__judged *j, struct hv_err *err);
/** Cancels a thread that works on this entry; its result is discarded. */
void hv__cache_draw_drop(struct hv__cache *cache, const struct hv__judged *j);
void hv__drawn_free(struct hv__drawn *d);
/** Memory of its verdict with the timeline (bytes); 0 for NULL. */
size_t hv__drawn_bytes(const struct hv__drawn *d);

#endif
