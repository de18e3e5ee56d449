/** Internals of the runner: the parts of a composition, and the calls of plan() and order(p).
 * Includes Lua. */
#ifndef HV_SCRIPTING_WORKER_PARTS_INT_H
#define HV_SCRIPTING_WORKER_PARTS_INT_H

#include "scripting/host/host_int.h"
#include "scripting/host/run_state.h"
#include "scripting/plugin/plugin_int.h"
#include "scripting/worker/run.h"

/** Most plugins of a composition. */
#define HV__PARTS_MAX 8
/** One plugin of a composition with its options. */
struct hv__part {
    const struct hv_plugin *plugin;
    json_t *options; /**< checked; owner: hv__free_parts */
};
/** A run with the plugins that take part in it. */
struct hv__job {
    struct hv__run run;
    struct hv__part parts[HV__PARTS_MAX];
    size_t n_parts;
    struct hv_run_result *out;
    struct hv_err *err;
    enum hv_status status;
};
/** Splits "a+b" and finds the plugins. Errors: HV_EUSAGE, HV_EPLUGIN. */
enum hv_status hv__find_parts(const struct hv_plugins *plugins, const char *strategy,
                              struct hv__part *parts, size_t *n, struct hv_err *err) HV_NODISCARD;
/** Deals the given options out to the parts and checks them. Errors: HV_EUSAGE. */
enum hv_status hv__deal_options(struct hv__part *parts, size_t n, const json_t *options,
                                struct hv_err *err) HV_NODISCARD;
void hv__free_parts(struct hv__part *parts, size_t n);
/** Sets the member `strategy` of a plan's tree: the names of the parts and their options. */
void hv__sign_plan(const struct hv__part *parts, size_t n, json_t *tree);

/** True where the plugin applies to the inputs; otherwise writes the reason. */
bool hv__applies(const struct hv__run *r, const struct hv_plugin *p, struct hv_str *reason);

/** Loads a plugin and calls its plan(ctx): leaves two results on the stack. Raises errors. */
void hv__call_plan(lua_State *L, const struct hv_plugin *p, const json_t *options);
/**
 * Gives the plan at the top (handle or table) the order that the plugin's order(p) makes for it:
 * pushes the changed plan as a table and nil, or nil and the reason. Raises errors.
 */
void hv__apply_order(lua_State *L, const struct hv_plugin *p, const json_t *options);
/**
 * The method t.with(inputs, f) of self-tests: calls f(ctx, system) with all of `hv` working on the
 * inputs {cluster, model, job (else the default), options} in the table at 1; `system` is the
 * plugin's table of a chunk and modules of their own, which know these inputs only. Leaves what f
 * returns. Raises errors.
 */
int hv__selftest_with(lua_State *L, const struct hv_plugin *p);
/** Applies the later parts of the run's composition to the plan at the top, in order; leaves the
 * changed plan there, or nil. */
void hv__compose(lua_State *L, struct hv__run *r);
/** Functions that the API tables call back: hv.strategy, composition, schedules of plugins
 * (run_calls.c). */
const struct hv__run_calls *hv__run_calls(void);

#endif
