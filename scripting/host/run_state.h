/**
 * A run in progress: the state that the API tables read and change while a plugin runs. The runner
 * (scripting/worker) fills it; the host only points to it. Includes Lua.
 */
#ifndef HV_SCRIPTING_HOST_RUN_STATE_H
#define HV_SCRIPTING_HOST_RUN_STATE_H

#include "scripting/host/request.h"
#include <lua.h>

struct hv__run;
struct hv_cost;
struct hv_host;
struct hv_plugin;
struct hv_queued_job;
struct hv_schedule_input;

/** Classes of plans, the better ones first: no violation and exact; stale; plans that can run but
 * miss the objective's price or deadline; plans that violate a rule. */
enum hv__plan_rank { HV__PLAN_EXACT, HV__PLAN_STALE, HV__PLAN_OVER, HV__PLAN_BROKEN };

/** Calls of the API tables into the plugins and the runner, which are above them. Each may raise
 * Lua errors. */
struct hv__run_calls {
    /** hv.strategy(id, options) with its arguments at 1 and 2; returns the number of results. */
    int (*strategy)(lua_State *L, struct hv__run *r);
    /** Pushes the list of hv.strategies(). */
    void (*strategies)(lua_State *L, const struct hv__run *r);
    /** Applies the later parts of the run's composition to the plan at the top, in order; leaves
     * the changed plan there, or nil. */
    void (*compose)(lua_State *L, struct hv__run *r);
    /** The plugin of that id where it has order(p), else NULL. */
    const struct hv_plugin *(*find_schedule)(const struct hv__run *r, const char *id);
    /** The i-th plugin with order(p), from 0: its id, and *summary; NULL behind the last. */
    const char *(*schedule_at)(const struct hv__run *r, size_t i, const char **summary);
    /** Calls order(p) of the plugin for the shape and times of `in`, with the table of options at
     * the top, which two results replace. False when the first is nil. */
    bool (*order)(lua_State *L, const struct hv_plugin *p, const struct hv_schedule_input *in);
};

/** A run in progress. */
struct hv__run {
    const struct hv_run_request *request;
    const struct hv__run_calls *calls;
    struct hv_host *host;
    struct hv_cost *cost;
    int64_t evaluations;
    double soft_limit_s; /**< hv.stopping() is true from here on; 0 = none */
    bool late;           /**< hv.stopping() was true once: the search may have ended early */
    int depth;           /**< of hv.strategy calls */
    bool as_given;       /**< plans may be beyond what the job's runtime can run */
    bool is_job;         /**< the first member of the runner's job: there may be a composition */
    struct hv_queued_job *queue;  /**< jobs of the job file; empty where it is one job */
    size_t n_queue, i_job;        /**< the one that hv.for_job works on, from 1; 0: the run's own */
    struct hv_cost **queue_costs; /**< [n_queue] made when needed */
    const bool *lost;   /**< [devices of the cluster] those that may not be used, or NULL */
    json_t *best;       /**< best plan so far, judged; or NULL */
    double best_figure; /**< of it: what the job minimises */
    enum hv__plan_rank best_rank;
    double prefer_frac; /**< so much worse than the best one the returned plan may be and still be
                           the answer (hv.prefer) */
    bool returned;      /**< the plan that is being judged is the one that plan() returned */
};

#endif
