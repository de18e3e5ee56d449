/*
 * hv.cost: its rows, and collectives. Arguments that its calls share are cost_args.c, layer tables
 * api_cost_layers.c, one stage api_cost_stage.c, many ranges of a stage api_cost_stages.c. Every
 * number comes from solver/cost.
 */
#include "scripting/api/cost_int.h"
#include "scripting/api/input_int.h"
#include "scripting/api/table.h"
#include "solver/base/units.h"

#define BYTES_MAX 1e15

/** The field `matrix` of an all-to-all: rows of bytes from member to member, one after the other;
 * NULL where it is not given. */
static const double *matrix_of(lua_State *L, const char *fn, size_t n, int op)
{
    if (lua_getfield(L, 1, "matrix") == LUA_TNIL) {
        lua_pop(L, 1);
        return NULL;
    }
    if (op != HV_ALL_TO_ALL) {
        luaL_error(L, "%s: matrix: expected only for all_to_all", fn);
    }
    if (!lua_istable(L, -1) || lua_rawlen(L, -1) != n) {
        hv__bad(L, fn, "matrix", "one row of bytes per device", -1);
    }
    double *out = hv__scratch_new(L, double, n *n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t width = 0;
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        const double *row = hv__numbers(L, lua_gettop(L), fn, NULL, &width);
        for (size_t j = 0; j < n; j++) {
            if (width != n || !(row[j] >= 0 && row[j] <= BYTES_MAX)) {
                luaL_error(L, "%s: matrix: row %d: expected %d numbers from 0 on", fn, (int)i + 1,
                           (int)n);
            }
            out[i * n + j] = row[j];
        }
        lua_pop(L, 1);
    }
    return out;
}

/***
Prices a collective on the real topology.
@function hv.cost.collective
@tparam table q {op = "all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|reduce|p2p", bytes,
devices = list of numbers, algorithm, together, matrix, pipe = false}; bytes is the full gathered or
reduced tensor, for all_to_all the local send buffer, or instead of it matrix = for every device the
list of bytes it sends to each: every part takes the links between its two devices, the busiest
link, NIC or named link sets the time, and what a device keeps is free; pipe = true: a direct
all_to_all sends inside nodes and between them at the same time, over communicators of their own
(ScheMoE)
@treturn table {time_s, messages, bytes_by_level = {node, network}}: bytes that a device sends
inside its node and that a node sends to others, of a matrix the busiest device and node; nil and
the reason where members are not connected
@units seconds and bytes; together = how many equal groups run at the same time
@raise unknown operation, algorithm or device, too few devices
@usage local c = hv.cost.collective{op = "all_reduce", bytes = 1e9, devices = {1, 2}}
print(c and c.time_s)
*/
static int cost_collective(lua_State *L)
{
    static const char *const keys[] = {"op",       "bytes",  "devices", "algorithm",
                                       "together", "matrix", "pipe",    NULL};
    static const char fn[] = "hv.cost.collective";
    struct hv__run *r = hv__run_of(L, fn);
    const struct hv_cluster *c = hv_cost_cluster(r->cost);
    const char *ops[HV_COLLECTIVE_N];
    size_t n = 0;

    hv__check_keys(L, 1, fn, keys);
    for (int i = 0; i < HV_COLLECTIVE_N; i++) {
        ops[i] = hv_collective_name((enum hv_collective)i);
    }
    double *ids = hv__numbers(L, 1, fn, "devices", &n);
    uint32_t *devices = hv__scratch_new(L, uint32_t, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!(ids[i] >= 1 && ids[i] <= c->n_devices)) {
            luaL_error(L, "%s: devices: no device has number %f", fn, ids[i]);
        }
        devices[i] = (uint32_t)ids[i] - 1;
    }
    int op = hv__word(L, 1, fn, "op", ops, HV_COLLECTIVE_N, -1);
    const double *matrix = matrix_of(L, fn, n, op);
    const struct hv_collective_query q = {
        .op = (enum hv_collective)op,
        .bytes = matrix ? 0 : hv__num(L, 1, fn, "bytes", -1, 0, BYTES_MAX),
        .matrix = matrix,
        .devices = devices,
        .n = n,
        .algorithm = (enum hv_sync_algorithm)hv__word(
            L, 1, fn, "algorithm", hv_sync_algorithm_words, hv_sync_algorithm_N, HV_ALGO_AUTO),
        .together = hv__num(L, 1, fn, "together", 1, 1, 1e9),
        .pipe = hv__bool(L, 1, fn, "pipe", false)};
    if (n < (q.op == HV_P2P ? 2 : 1)) {
        luaL_error(L, "%s: devices: expected at least %d", fn, q.op == HV_P2P ? 2 : 1);
    }
    struct hv_collective_cost cost = hv_cost_collective(c, &q, NULL);
    if (!hv_known(cost.time_s)) {
        lua_pushnil(L);
        lua_pushliteral(L, "the devices are not all connected");
        return 2;
    }
    lua_createtable(L, 0, 3);
    hv__set_num(L, "time_s", cost.time_s);
    hv__set_num(L, "messages", cost.messages);
    lua_createtable(L, 0, 2);
    hv__set_num(L, "node", cost.node_bytes);
    hv__set_num(L, "network", cost.network_bytes);
    lua_setfield(L, -2, "bytes_by_level");
    return 1;
}

void hv__api_cost(lua_State *L)
{
    static const luaL_Reg rows[] = {{"layers", hv__cost_layers}, {"stage", hv__cost_stage},
                                    {"memory", hv__cost_memory}, {"collective", cost_collective},
                                    {"stages", hv__cost_stages}, {"op", hv__cost_op},
                                    {"splits", hv__cost_splits}, {NULL, NULL}};

    hv__api_layer_table(L);
    hv__api_add(L, "cost", rows);
}
