/** What a worker reports of a run, taken into the run's row. */
#ifndef HV_UI_SESSION_ROW_RUN_EVENTS_H
#define HV_UI_SESSION_ROW_RUN_EVENTS_H

#include "ui/process/pool.h"
#include "ui/session/log/log.h"
#include "ui/session/row/rows.h"

/** What an event of the pool changed. */
struct hv__run_news {
    bool changed; /**< a row shows something else */
    bool edited;  /**< a plan came or a run ended: something that would have to be saved */
    bool ended;   /**< the run is over: rows may stand in another order */
};

/**
 * Takes an event into the row of its job; new bests, starts and ends are logged. At the end of a
 * run its outcome in words replaces *notice. Where a run hands in several plans the others become
 * rows of their own.
 * @param now_s  clock of the session
 * @param seed   of the run, for the log
 */
struct hv__run_news hv__run_event_take(struct hv__rows *rows, const struct hv_pool_event *ev,
                                       double now_s, uint64_t seed, struct hv__log *log,
                                       struct hv_str *notice);

#endif
