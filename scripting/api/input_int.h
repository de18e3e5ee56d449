/** ctx and its views on the inputs (api_input.c): declarations shared by their files and the
 * runner. Includes Lua. */
#ifndef HV_SCRIPTING_API_INPUT_INT_H
#define HV_SCRIPTING_API_INPUT_INT_H

#include "scripting/host/host_int.h"
#include "scripting/host/run_state.h"
#include "solver/io/own/docs.h"

#define HV__CLUSTER "hv.cluster"
#define HV__MODEL   "hv.model"

/** The run in progress; raises an error that names `fn` when there is none. */
struct hv__run *hv__run_of(lua_State *L, const char *fn);
/** Pushes ctx for a plugin with checked options. */
void hv__push_ctx(lua_State *L, const json_t *options);
/** The same for the plugin whose table is at index `system`: it is ctx.system. */
void hv__push_ctx_of(lua_State *L, int system, const json_t *options);
/** Pushes the fields of a job. */
void hv__push_job(lua_State *L, const struct hv_job *j);
/** Makes the views show the run's inputs again after these have changed. */
void hv__renew_views(lua_State *L);
/** True where the model is one chain of layers, or consists of modules that are such chains. */
bool hv__model_has_layers(const struct hv_model *m);

/** Pushes a handle of that type, which goes stale when the run ends. */
void hv__push_view(lua_State *L, const char *type);
/** The inputs behind the view of that type at argument 1; a view of a run that has ended raises an
 * error. */
const struct hv_inputs *hv__inputs_at(lua_State *L, const char *type);
/** The cluster behind the view at argument 1. */
const struct hv_cluster *hv__cluster_at(lua_State *L);
/** Dense peak in the job's precision; HV_UNKNOWN where the kind has none. */
double hv__peak_of(lua_State *L, const struct hv_device_kind *k);
/** True where the device's node is in state `ok` and the device is not one that a replan lost. */
bool hv__is_usable(lua_State *L, const struct hv_cluster *c, uint32_t device);

/** cluster:pick, model:layers, model:tokens and model:graph of the Lua API. */
int hv__cluster_pick(lua_State *L);
/** See hv__cluster_pick. */
int hv__model_layers(lua_State *L);
/** See hv__cluster_pick. */
int hv__model_tokens(lua_State *L);
/** See hv__cluster_pick. */
int hv__model_operators(lua_State *L);
int hv__model_graph(lua_State *L);

#endif
