/**
 * Cache of the values computed from the documents and the plans of rows, valid until either
 * changes: the cost model, the lower bound, and per row the built plan, its verdict and its
 * timeline. A thread makes timelines of very many operations while the program handles events.
 */
#ifndef HV_UI_SESSION_ROW_JUDGED_H
#define HV_UI_SESSION_ROW_JUDGED_H

#include "solver/bound/bound.h"
#include "solver/eval/eval.h"
#include "ui/session/doc/documents.h"
#include "ui/session/row/drawing.h"
#include "ui/session/row/rows.h"
#include <poll.h>

/** The cache. Owner: hv__cache_free. */
struct hv__cache;

/**
 * An empty cache.
 * @param apart_from      timelines of at least about so many operations are made by a thread; 0 =
 *                        none are
 * @param timeline_bytes  memory limit of kept timelines; the last two are always kept; 0 = 512 MiB
 */
struct hv__cache *hv__cache_new(size_t apart_from, size_t timeline_bytes);
/** Ends the thread and frees everything. */
void hv__cache_free(struct hv__cache *cache);
/** Drops the entries of freed rows. O(rows log rows). */
void hv__cache_sweep(struct hv__cache *cache, const struct hv__rows *rows);

/** Cost model of the documents as they are. Borrowed until the next edit. */
struct hv_cost *hv__cache_cost(struct hv__cache *cache, const struct hv__docs *docs);
/** Lower bound of the documents as they are; iteration_s is HV_UNKNOWN when there is none. */
struct hv_bound hv__cache_bound(struct hv__cache *cache, const struct hv__docs *docs);
/** The plan of a row that has one, built against the documents. Borrowed until plan or documents
 * change. NULL and *err where it cannot be built. */
const struct hv_plan *hv__cache_plan(struct hv__cache *cache, const struct hv__docs *docs,
                                     const struct hv_row *row, struct hv_err *err);
/** Its verdict; as hv_session_verdict, for a row that has a plan. */
const struct hv_verdict *hv__cache_verdict(struct hv__cache *cache, const struct hv__docs *docs,
                                           const struct hv_row *row, bool timeline,
                                           struct hv_err *err);

/* ---- the thread ------------------------------------------------------------------------------ */

/** State of a row's timeline: made by a thread or waiting for it, stopped, or neither; *frac (may
 * be NULL): the finished share. */
enum hv_drawing hv__cache_drawing(const struct hv__cache *cache, uint32_t row, double *frac);
/** Stops the timeline of the row, or its wait for the thread; false where it is not in the
 * making. */
bool hv__cache_draw_stop(struct hv__cache *cache, uint32_t row);
/** Lets a timeline that was stopped be made again: it starts at the next request. False where it
 * was not stopped. */
bool hv__cache_draw_again(struct hv__cache *cache, uint32_t row);
/** Ends the thread and waits for it. True where one was running. */
bool hv__cache_draw_end(struct hv__cache *cache);
/** Stores the result of the thread. True where something visible changed. */
bool hv__cache_draw_tick(struct hv__cache *cache);
/** As hv_session_fds and hv_session_timeout_ms, for the thread. */
size_t hv__cache_fds(const struct hv__cache *cache, struct pollfd *out, size_t cap);
int hv__cache_timeout_ms(const struct hv__cache *cache);

#endif
