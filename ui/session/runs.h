/** Runs of strategies in worker processes; each run is a row. */
#ifndef HV_UI_SESSION_RUNS_H
#define HV_UI_SESSION_RUNS_H

#include "scripting/plugin/plugin.h"
#include "solver/base/status.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hv_session;

/** Limits of every run. */
struct hv_session_limits {
    double time_limit_s; /**< wall clock per run; ≤ 0 = none */
    int64_t budget;      /**< evaluations; 0 = none */
    uint64_t seed;       /**< 1 */
};
/** The limits of future runs. */
struct hv_session_limits hv_session_limits(const struct hv_session *s);
/** Sets them. */
void hv_session_limits_set(struct hv_session *s, struct hv_session_limits limits);

/**
 * Queues a run of a strategy or composition ("uniform+fireflyer") with the options set for it,
 * changed by `options` (an object, borrowed; NULL = none). *id (may be NULL) = the new row. Errors:
 * HV_EUSAGE for an unknown strategy (with the nearest) or a wrong option.
 */
enum hv_status hv_session_run(struct hv_session *s, const char *strategy, const json_t *options,
                              uint32_t *id, struct hv_err *err) HV_NODISCARD;
/**
 * Queues the strategies of a list, borrowed, with the options set for them. Those of one family
 * share a process, which prices their common stages once. Returns how many; err: the last refusal
 * (may be NULL).
 */
size_t hv_session_run_list(struct hv_session *s, const struct hv_plugin *const *list, size_t n,
                           struct hv_err *err);
/** Queues every strategy with the options set for it; returns how many. */
size_t hv_session_run_all(struct hv_session *s);
/** Queues every strategy of a kind that plans, with the options set for it; HV_KIND_N: of
 * all kinds. Returns how many. */
size_t hv_session_run_kind(struct hv_session *s, enum hv_kind kind);
/** Cancels a queued or running row, the best plan stays. False when it was neither. */
bool hv_session_cancel(struct hv_session *s, uint32_t id);
/** Cancels all; returns how many. */
size_t hv_session_cancel_all(struct hv_session *s);
/** Number of runs with a worker process. */
size_t hv_session_n_running(const struct hv_session *s);
/** Number of queued runs. */
size_t hv_session_n_queued(const struct hv_session *s);

#endif
