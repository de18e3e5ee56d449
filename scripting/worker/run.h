/**
 * Runs strategies: one path for the command line, the worker process and the tests. A run makes a
 * host, loads the plugin, calls plan() (and apply() of what is composed with it), judges every plan
 * and keeps the best one. Code of plugins runs in a child behind the walls of host/jail.h, or in a
 * process that stands behind them already.
 */
#ifndef HV_SCRIPTING_WORKER_RUN_H
#define HV_SCRIPTING_WORKER_RUN_H

#include "scripting/host/request.h"
#include "scripting/plugin/plugin.h"
#include "solver/base/str.h"
#include "solver/io/own/docs.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Result of a run. Owner: hv_run_result_free. */
struct hv_run_result {
    bool applies; /**< false: the strategy does not apply to these inputs, `reason` gives what it
                     needs */
    bool stopped; /**< a limit or cancel ended it; `plan` is the best until then */
    json_t *plan; /**< with strategy, inputs, claimed, simulated and, where there are any,
                     violations; or NULL */
    bool over_limits;        /**< HV_ENO: `plan` can be run, but misses the objective's limits */
    struct hv_str reason;    /**< why there is no plan, or what it misses */
    struct hv_str traceback; /**< of a plugin error */
    int64_t evaluations;
};

/**
 * Runs a strategy in a child process. Returns HV_OK with a plan; HV_ENO when there is no plan (err
 * gives the reason and the amount); HV_ESTOPPED when stopped early (with a plan where one was
 * found); HV_EPLUGIN with file:line, also where the child crashed; HV_EUSAGE for an unknown
 * strategy or option; HV_EIO where no child can be started. Events and `cancel` are called in this
 * process. A call that never looks at `cancel` or at the time limit is ended by force a second
 * later; the best plan that was reported until then is the result.
 */
enum hv_status hv_run_strategy(const struct hv_run_request *r, struct hv_run_result *out,
                               struct hv_err *err) HV_NODISCARD;
/** The same in this process, for one that has called hv_lock_process. Nothing is ended by force,
 * and a crash ends the process. Errors: as hv_run_strategy, but for HV_EIO. */
enum hv_status hv_run_strategy_here(const struct hv_run_request *r, struct hv_run_result *out,
                                    struct hv_err *err) HV_NODISCARD;
/** Frees it. */
void hv_run_result_free(struct hv_run_result *r);
/** Frees its contents. */
void hv_run_prices_free(struct hv_run_prices *p);
/** The `result` event of a run that ended with this status. Owner: caller. */
json_t *hv_run_result_event(const struct hv_run_result *r, enum hv_status s,
                            const struct hv_err *err);

/** Checks options of a strategy or composition without running anything. Errors: HV_EUSAGE. */
enum hv_status hv_run_check(const struct hv_plugins *plugins, const char *strategy,
                            const json_t *options, struct hv_err *err) HV_NODISCARD;

/** Counts of a self-test. */
struct hv_selftest_counts {
    size_t passed, failed;
};
/**
 * Runs the strategy's selftest(t, system) in a child process, and that of the selftest.lua beside
 * it. `system` is the plugin's table, of a row with the row's members; t has near(name, got, want,
 * tol, source), equal(name, got, want, source) and ok(name, condition, source). Each check appends
 * a line to `out`; an error counts as one failure and is a line with file:line, and so does a
 * crash. A plugin without self-test adds nothing. `times`: lines end with the CPU seconds since the
 * check before, or the start.
 */
void hv_selftest(const struct hv_plugin *p, bool times, struct hv_selftest_counts *counts,
                 struct hv_str *out);

#endif
