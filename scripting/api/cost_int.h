/** Declarations shared by the files of hv.cost (api_cost*.c). Includes Lua. */
#ifndef HV_SCRIPTING_API_COST_INT_H
#define HV_SCRIPTING_API_COST_INT_H

#include "scripting/api/plan_int.h"
#include "solver/cost/cost.h"

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
int hv__cost_splits(lua_State *L);
/** Makes the metatable of layer tables. */
void hv__api_layer_table(lua_State *L);

#endif
