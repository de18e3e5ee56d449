/** Inside of a run: shared by the runner and the API tables that need one. */
#ifndef HV_SCRIPTING_WORKER_RUN_INT_H
#define HV_SCRIPTING_WORKER_RUN_INT_H

#include "scripting/host/host_int.h"
#include "scripting/plugin/plugin_int.h"
#include "scripting/worker/run.h"
#include "solver/eval/eval.h"

/** Classes of plans, the better ones first: no violation and exact; stale; what can be run but
 * misses the objective's price or deadline; what breaks a rule. */
enum hv__plan_rank { HV__PLAN_EXACT, HV__PLAN_STALE, HV__PLAN_OVER, HV__PLAN_BROKEN };

/** A run in progress. */
struct hv__run {
    const struct hv_run_request *request;
    struct hv_host *host;
    struct hv_cost *cost;
    int64_t evaluations;
    double soft_limit_s; /**< hv.stopping() says true from here on; 0 = none */
    bool late;           /**< somebody was told so, or of a share of it, and may have ended early */
    int depth;           /**< of hv.strategy calls */
    bool is_job;         /**< the first member of run.c's job: there may be a composition */
    struct hv_queued_job *queue;  /**< jobs of the job file; empty where it is one job */
    size_t n_queue, i_job;        /**< the one that hv.for_job works on, from 1; 0: the run's own */
    struct hv_cost **queue_costs; /**< [n_queue] made when needed */
    const bool *lost;   /**< [devices of the cluster] those that may not be used, or NULL */
    json_t *best;       /**< best plan so far, judged; or NULL */
    double best_figure; /**< of it: what the job minimises */
    enum hv__plan_rank best_rank;
};

/** A plan handle: in Lua a userdata of this. */
struct hv__plan {
    struct hv_plan_doc doc;
    uint32_t generation; /**< of the host when it was made */
};
#define HV__PLAN "hv.plan"

/** Most plugins of a composition. */
#define HV__PARTS_MAX 8
/** One plugin of a composition with its options. */
struct hv__part {
    const struct hv_plugin *plugin;
    json_t *options; /**< checked; owner: hv__free_parts */
};
/** Splits "a+b" and finds the plugins. Errors: HV_EUSAGE, HV_EPLUGIN. */
enum hv_status hv__find_parts(const struct hv_plugins *plugins, const char *strategy,
                              struct hv__part *parts, size_t *n, struct hv_err *err) HV_NODISCARD;
/** Deals the given options out to the parts and checks them. Errors: HV_EUSAGE. */
enum hv_status hv__deal_options(struct hv__part *parts, size_t n, const json_t *options,
                                struct hv_err *err) HV_NODISCARD;
void hv__free_parts(struct hv__part *parts, size_t n);

/** Is this share of the time limit used up (1: should the run come to its end)? */
bool hv__run_is_late(struct hv__run *r, double share);
/** The run in progress; raises an error that names `fn` when there is none. */
struct hv__run *hv__run_of(lua_State *L, const char *fn);
/** The plan at argument i; raises an error when it is none or stale. */
struct hv__plan *hv__plan_at(lua_State *L, int i);
/** Builds a plan from the table (or takes the handle) at i; pushes the handle and returns it. */
struct hv__plan *hv__plan_make(lua_State *L, int i);
/** Reads the queue of the run's job document. Errors: of hv_queue_read. */
enum hv_status hv__queue_open(struct hv__run *r, struct hv_err *err) HV_NODISCARD;
void hv__queue_close(struct hv__run *r);
/** The context of a job of the queue, from 0. */
struct hv_cost *hv__queue_cost(struct hv__run *r, size_t i);
/** Position from 0 of the job of that name in the queue, or n_queue. */
size_t hv__queue_find(const struct hv__run *r, const char *name);
/** Gives the jobs of a plan tree the model and job that the queue has for them. */
void hv__queue_complete(const struct hv__run *r, json_t *plan);
/** A document as plans refer to it: by the name it was read from, or whole where that cannot be
 * read twice (standard input, a pipe of the shell). Owner: caller. */
json_t *hv__reference(const char *path, const struct hv_json *json);
/** hv.for_job. */
int hv__for_job(lua_State *L);
/** Pushes the list of jobs of ctx. */
void hv__push_queue(lua_State *L, const struct hv__run *r);
/** Pushes the fields of a job. */
void hv__push_job(lua_State *L, const struct hv_job *j);
/** Pushes ctx for a plugin with checked options. */
void hv__push_ctx(lua_State *L, const json_t *options);
/** Judges a plan; counts as one evaluation. */
enum hv_status hv__judge(struct hv__run *r, const struct hv_plan *p, bool bound,
                         struct hv_arena *arena, struct hv_verdict *out,
                         struct hv_err *err) HV_NODISCARD;
/** Is the model one chain of layers, or modules of such chains? */
bool hv__model_has_layers(const struct hv_model *m);
/** Where a judged plan stands. */
enum hv__plan_rank hv__plan_rank(const struct hv_verdict *v);
/** Judges the plan and keeps it when it is the best so far; then emits an incumbent event. */
enum hv_status hv__offer(struct hv__run *r, json_t *plan, struct hv_err *err) HV_NODISCARD;
/** Sends an event (takes the reference). */
void hv__emit(struct hv__run *r, json_t *line);
/**
 * Loads a plugin and calls its plan(ctx): leaves two results on the stack. Raises errors. Used by
 * hv.strategy and the runner.
 */
void hv__call_plan(lua_State *L, const struct hv_plugin *p, const json_t *options);
/**
 * Gives the plan at the top (handle or table) the order that the plugin's order(p) makes for it:
 * pushes the changed plan as a table and nil, or nil and the reason. Raises errors.
 */
void hv__apply_order(lua_State *L, const struct hv_plugin *p, const json_t *options);
/** Applies the later parts of the run's composition to the plan at the top, in order; leaves the
 * changed plan there, or nil. */
void hv__compose(lua_State *L, struct hv__run *r);
/** Raises no error: is one of the plan's devices lost? Then a text saying so, else NULL. */
const char *hv__uses_lost(const struct hv__run *r, const struct hv_plan *p, struct hv_arena *a);

/** Device kind of that name in the cluster, or NULL. */
const struct hv_device_kind *hv__kind_by_name(const struct hv_cluster *c, const char *name);
/** The fields tp, cp, ep, micro_batch, tokens, context, recompute, sequence_parallel of argument 1.
 */
struct hv_part_query hv__part_args(lua_State *L, const char *fn, const struct hv_job *job);
/**
 * Plan with the one stage at argument 1; keys that are not a stage's are taken out first. Pushes
 * and returns the handle, which later calls with other layers or another micro_batch change: not
 * for the plugin. O(keys of the stage) where the stage was seen before.
 */
struct hv__plan *hv__stage_plan(lua_State *L, const char *fn, double *in_flight);
/** Most bytes of a rank with so many micro-batches in flight. */
double hv__stage_peak_bytes(const struct hv_memory *m, const struct hv_pass *p, double in_flight);
/** Puts a range of layers into a stage of such a plan, with embedding and head by its position. */
void hv__stage_set_range(struct hv_stage *s, struct hv_range range, size_t n_layers);
/** Functions of hv.cost that live in files of their own. */
int hv__cost_layers(lua_State *L);
int hv__cost_stage(lua_State *L);
int hv__cost_memory(lua_State *L);
int hv__cost_stages(lua_State *L);
int hv__cost_op(lua_State *L);
/** Makes the metatable of layer tables. */
void hv__api_layer_table(lua_State *L);

/** Does the plugin fit the inputs? Writes the reason otherwise. */
bool hv__applies(const struct hv__run *r, const struct hv_plugin *p, struct hv_str *reason);

#endif
