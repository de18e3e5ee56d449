/** Request of a strategy run: shared by the command line, the worker process and the tests. */
#ifndef HV_SCRIPTING_HOST_REQUEST_H
#define HV_SCRIPTING_HOST_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hv_cluster;
struct hv_cost;
struct hv_inputs;
struct hv_plugins;

/** Prices that runs on the same inputs share, one run after the other. {0} before the first, which
 * fills it in; owner: hv_run_prices_free (worker/run.h). They change no result. */
struct hv_run_prices {
    const struct hv_inputs *inputs; /**< those they are of */
    bool file_order;                /**< node groups are in the order of the cluster file */
    struct hv_cluster *cluster;
    struct hv_cost *cost; /**< NULL: none yet */
};

/** Strategy, inputs and limits of a run. Everything is borrowed. */
struct hv_run_request {
    const struct hv_inputs *inputs;
    const struct hv_plugins *plugins;
    const char *strategy; /**< id, or a composition "uniform+fireflyer": plan() of the first,
                             apply() or order() of the others */
    /** Values by key; with a composition also {"id": {key: value}}. Keys without id go to every
     * part that has them. */
    const json_t *options;
    /** A plan (as in its file) that has lost devices: replan(ctx, plan, lost) where the strategy
     * has it, else plan() again without them. May be NULL. */
    const json_t *replan;
    const char *const *lost; /**< addresses of devices that may not be used any more */
    size_t n_lost;
    uint64_t seed;
    int64_t budget;               /**< evaluations; 0 = no limit */
    double time_limit_s;          /**< wall clock; ≤ 0 = no limit */
    struct hv_run_prices *prices; /**< kept for the next run on the same inputs; NULL: for this one
                                     only */
    /** Receives each event as in ui/process/pool.h (start, progress, incumbent, bound, log);
     * borrowed. May be NULL. */
    void (*event)(void *ctx, const json_t *line);
    bool (*cancel)(void *ctx); /**< may be NULL */
    void *ctx;
};

#endif
