/** The registry of the functions that plugins can call: every api_*.c file with functions has its
 * opener here. Includes Lua. */
#ifndef HV_SCRIPTING_API_TABLE_H
#define HV_SCRIPTING_API_TABLE_H

#include <lua.h>

/** Adds all functions to the table `hv` at the top of the stack; for hv_host_limits.open_api. */
void hv_api_open(lua_State *L);

/** cluster and model of ctx, with pick, layers and graph: names of their methods. */
void hv__api_input(lua_State *L);
/** hv.log, hv.progress, hv.strategy, …: the run. */
void hv__api_run(lua_State *L);
/** hv.cost. */
void hv__api_cost(lua_State *L);
/** hv.opt.distribute. */
void hv__api_opt(lua_State *L);
/** hv.opt.lp. */
void hv__api_opt_lp(lua_State *L);
/** hv.routing, hv.attention_work, hv.lengths. */
void hv__api_work(lua_State *L);
/** hv.opt: knapsack, flow, assignment, paths, graphs. */
void hv__api_opt_classics(lua_State *L);
/** hv.opt.partition. */
void hv__api_opt_partition(lua_State *L);
/** hv.plan and plan handles. */
void hv__api_plan(lua_State *L);
/** hv.plan.auto. */
void hv__api_auto(lua_State *L);
/** hv.sim.schedule, hv.sim.schedules. */
void hv__api_sim(lua_State *L);
/** hv.sim.tasks. */
void hv__api_sim_tasks(lua_State *L);
/** hv.sim.repetend. */
void hv__api_sim_repetend(lua_State *L);
/** hv.sim.workers. */
void hv__api_sim_workers(lua_State *L);
/** hv.sim.replay. */
void hv__api_sim_replay(lua_State *L);

#endif
