/* The registry: the API tables in the order in which `hetviz help api` and the tests list them. */
#include "scripting/api/table.h"
#include "scripting/api/graph/handle.h"

void hv_api_open(lua_State *L)
{
    hv__api_input(L);
    hv__api_run(L);
    hv__api_cost(L);
    hv__api_opt(L);
    hv__api_opt_lp(L);
    hv__api_work(L);
    hv__api_opt_classics(L);
    hv__api_opt_partition(L);
    hv__api_plan(L);
    hv__api_auto(L);
    hv__api_sim(L);
    hv__api_sim_tasks(L);
    hv__api_sim_repetend(L);
    hv__api_sim_workers(L);
    hv__api_sim_replay(L);
    hv__api_graph(L);
    hv__api_shard(L);
}
