/** Applies the events of a worker to the row of its run. */
#ifndef HV_UI_SESSION_ROW_RUN_EVENTS_H
#define HV_UI_SESSION_ROW_RUN_EVENTS_H

#include "ui/process/pool.h"
#include "ui/session/log/log.h"
#include "ui/session/row/rows.h"

/** Effects of an event of the pool. */
struct hv__run_news {
    bool changed; /**< the visible content of a row changed */
    bool edited;  /**< a plan arrived or a run ended: the workspace has unsaved changes */
    bool ended;   /**< the run ended: the order of rows may change */
};

/**
 * Applies an event to the row of its job; new best plans, starts and ends are logged. At the end of
 * a run a description of its outcome replaces *notice. Where a run returns several plans each
 * further plan becomes a new row.
 * @param now_s  clock of the session
 * @param seed   of the run, for the log
 */
struct hv__run_news hv__run_event_take(struct hv__rows *rows, const struct hv_pool_event *ev,
                                       double now_s, uint64_t seed, struct hv__log *log,
                                       struct hv_str *notice);

#endif
