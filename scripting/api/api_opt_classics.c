/*
 * hv.opt, the classics: knapsack, flow, assignment, paths, cuts and choices on graphs.
 * Only arguments and results; the solvers are solver/optim's. Numbers from Lua count from 1.
 */
#include "scripting/api/table.h"
#include "scripting/host/host_int.h"
#include "solver/base/units.h"
#include "solver/optim/choice/assign.h"
#include "solver/optim/choice/knapsack.h"
#include "solver/optim/graph/flow.h"
#include "solver/optim/graph/graph_dp.h"
#include "solver/optim/graph/partition.h"
#include "solver/optim/graph/path.h"
#include "solver/optim/graph/series_parallel.h"

#include <math.h>
#include <string.h>

#define MAX_LIST ((size_t)1 << 22)

static struct hv_arena *arena_of(lua_State *L)
{
    return &hv__host(L)->arena;
}

/** Pushes the list at field `key` of argument 1 and returns its length. */
static size_t push_list(lua_State *L, const char *fn, const char *key)
{
    if (lua_getfield(L, 1, key) != LUA_TTABLE) {
        hv__bad(L, fn, key, "a list", -1);
    }
    size_t n = (size_t)lua_rawlen(L, -1);
    if (n > MAX_LIST) {
        luaL_error(L, "%s: %s: the list is too long", fn, key);
    }
    return n;
}

/** Row k of the list at the top; *n = how many numbers it has. */
static const double *any_row_at(lua_State *L, const char *fn, const char *key, size_t k, size_t *n)
{

    if (lua_rawgeti(L, -1, (lua_Integer)k + 1) != LUA_TTABLE) {
        luaL_error(L, "%s: %s: expected a list at %d", fn, key, (int)k + 1);
    }
    const double *x = hv__numbers(L, lua_gettop(L), fn, NULL, n);
    lua_pop(L, 1);
    return x;
}

/** Row k of the list at the top: exactly n numbers. */
static const double *row_at(lua_State *L, const char *fn, const char *key, size_t k, size_t n)
{
    size_t len = 0;
    const double *x = any_row_at(L, fn, key, k, &len);

    if (len != n) {
        luaL_error(L, "%s: %s: expected %d numbers at %d, found %d", fn, key, (int)n, (int)k + 1,
                   (int)len);
    }
    return x;
}

/** A number from 1 to n out of a row, counted from 0. */
static size_t index_at(lua_State *L, const char *fn, const char *key, double x, size_t n)
{
    if (!(x >= 1 && x <= (double)n) || x != floor(x)) {
        luaL_error(L, "%s: %s: expected a whole number from 1 to %d, found %f", fn, key, (int)n,
                   (lua_Number)x);
    }
    return (size_t)x - 1;
}

static void push_indices(lua_State *L, const size_t *x, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t k = 0; k < n; k++) {
        lua_pushinteger(L, (lua_Integer)x[k] + 1);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
}

static void set_indices(lua_State *L, const char *key, const size_t *x, size_t n)
{
    push_indices(L, x, n);
    lua_setfield(L, -2, key);
}

static void set_numbers(lua_State *L, const char *key, const double *x, size_t n)
{
    hv__push_numbers(L, x, n);
    lua_setfield(L, -2, key);
}

static void set_proven(lua_State *L, bool proven)
{
    lua_pushboolean(L, proven);
    lua_setfield(L, -2, "proven");
}

static int no(lua_State *L, const char *why)
{
    lua_pushnil(L);
    lua_pushstring(L, why);
    return 2;
}

/***
Chooses one option of every group so that the sum of values is largest within the capacity. Exact.
@function hv.opt.knapsack
@tparam table q {items = list of groups, each a list of options {value, weight}; cap}
@treturn table {choices = option of each group, value, weight, bound, proven}; nil and the reason
when even the lightest options weigh too much
@units values and weights in any unit, the same in and out; choices count from 1
@raise negative or unknown weights, groups without options
@usage local r = hv.opt.knapsack{items = {{{3, 2}, {5, 4}}, {{1, 1}, {4, 3}}}, cap = 5}
assert(r.choices[1] == 1 and r.choices[2] == 2)
*/
static int opt_knapsack(lua_State *L)
{
    static const char *const keys[] = {"items", "cap", NULL};
    static const char fn[] = "hv.opt.knapsack";
    struct hv_knapsack_result r;
    struct hv_err err = {0};

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    if (lua_getfield(L, 1, "cap") == LUA_TNIL) {
        luaL_error(L, "%s: cap: expected a number", fn);
    }
    double cap = hv__num(L, 1, fn, "cap", 0, -1e300, HUGE_VAL);
    size_t n_groups = push_list(L, fn, "items"), n = 0;
    size_t *first = hv__scratch_new(L, size_t, n_groups + 1);
    for (size_t g = 0; g < n_groups; g++) {
        if (lua_rawgeti(L, -1, (lua_Integer)g + 1) != LUA_TTABLE) {
            luaL_error(L, "%s: items: group %d: expected a list of {value, weight}", fn,
                       (int)g + 1);
        }
        n += (size_t)lua_rawlen(L, -1);
        first[g + 1] = n;
        lua_pop(L, 1);
    }
    if (n > HV_KNAPSACK_MAX_OPTIONS) {
        luaL_error(L, "%s: items: too many options", fn);
    }
    struct hv_knapsack_option *o = hv__scratch_new(L, struct hv_knapsack_option, n + 1);
    for (size_t g = 0; g < n_groups; g++) {
        lua_rawgeti(L, -1, (lua_Integer)g + 1);
        for (size_t i = first[g]; i < first[g + 1]; i++) {
            const double *x = row_at(L, fn, "items", i - first[g], 2);
            o[i] = (struct hv_knapsack_option){x[0], x[1]};
        }
        lua_pop(L, 1);
    }
    if (hv_knapsack_solve(o, first, n_groups, cap, arena_of(L), &r, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    if (!r.feasible) {
        lua_pushnil(L);
        lua_pushfstring(L, "the lightest options weigh %f more than the capacity",
                        (lua_Number)r.excess);
        return 2;
    }
    lua_createtable(L, 0, 5);
    set_indices(L, "choices", r.choice, n_groups);
    hv__set_num(L, "value", r.value);
    hv__set_num(L, "weight", r.weight);
    hv__set_num(L, "bound", r.bound);
    set_proven(L, r.proven);
    return 1;
}

/** Rows {from, to, number} at field `edges`; the largest node number is returned. */
static size_t read_edges(lua_State *L, const char *fn, struct hv_flow_edge **out, size_t *n)
{
    size_t n_nodes = 0;

    *n = push_list(L, fn, "edges");
    *out = hv__scratch_new(L, struct hv_flow_edge, *n + 1);
    for (size_t e = 0; e < *n; e++) {
        const double *x = row_at(L, fn, "edges", e, 3);
        (*out)[e] = (struct hv_flow_edge){index_at(L, fn, "edges", x[0], MAX_LIST),
                                          index_at(L, fn, "edges", x[1], MAX_LIST), x[2]};
        n_nodes = (*out)[e].from >= n_nodes ? (*out)[e].from + 1 : n_nodes;
        n_nodes = (*out)[e].to >= n_nodes ? (*out)[e].to + 1 : n_nodes;
    }
    lua_pop(L, 1);
    return n_nodes;
}

/***
The maximum flow from source to sink, and the minimum cut that limits it. Exact.
@function hv.opt.maxflow
@tparam table q {edges = list of {from, to, capacity}, source, sink}
@treturn table {value, flows = one per edge, cut = nodes on the source's side, proven}
@units any unit of flow, the same in and out; nodes are numbers from 1
@raise negative or unknown capacities, source equal to sink
@usage assert(hv.opt.maxflow{edges = {{1, 2, 3}, {2, 3, 2}}, source = 1, sink = 3}.value == 2)
*/
static int opt_maxflow(lua_State *L)
{
    static const char *const keys[] = {"edges", "source", "sink", NULL};
    static const char fn[] = "hv.opt.maxflow";
    struct hv_flow_result r;
    struct hv_flow_edge *e = NULL;
    struct hv_err err = {0};
    size_t n = 0, n_side = 0;

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    size_t source = (size_t)hv__int(L, 1, fn, "source", 0, 1, (int64_t)MAX_LIST) - 1;
    size_t sink = (size_t)hv__int(L, 1, fn, "sink", 0, 1, (int64_t)MAX_LIST) - 1;
    size_t n_nodes = read_edges(L, fn, &e, &n);
    n_nodes = source >= n_nodes ? source + 1 : n_nodes;
    n_nodes = sink >= n_nodes ? sink + 1 : n_nodes;
    if (hv_flow_max(e, n, n_nodes, source, sink, arena_of(L), &r, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    size_t *side = hv__scratch_new(L, size_t, n_nodes);
    for (size_t v = 0; v < n_nodes; v++) {
        if (r.source_side[v]) {
            side[n_side++] = v;
        }
    }
    lua_createtable(L, 0, 4);
    hv__set_num(L, "value", r.value);
    set_numbers(L, "flows", r.flow, n);
    set_indices(L, "cut", side, n_side);
    set_proven(L, r.proven);
    return 1;
}

/** Matrix at field `cost`, row after row: all as long as the first, which may be empty. */
static const double *read_matrix(lua_State *L, const char *fn, size_t *rows, size_t *columns)
{
    double *all = NULL;

    *rows = push_list(L, fn, "cost");
    *columns = 0;
    for (size_t r = 0; r < *rows; r++) {
        const double *x =
            r == 0 ? any_row_at(L, fn, "cost", r, columns) : row_at(L, fn, "cost", r, *columns);
        if (r == 0 && *rows * *columns > MAX_LIST) {
            luaL_error(L, "%s: cost: the matrix is too large", fn);
        }
        if (r == 0) {
            all = hv__scratch_new(L, double, *rows **columns + 1);
        }
        memcpy(all + r * *columns, x, *columns * sizeof *all);
    }
    lua_pop(L, 1);
    return all;
}

/***
Gives every row a column of its own, with the least sum or the least maximum of costs. Exact.
@function hv.opt.assign
@tparam table q {cost = list of rows (math.huge = not allowed), objective = "sum|bottleneck"}
@treturn table {columns = one per row, value, bound, proven}; nil and the reason when rows are left
over
@units any, the same in and out; columns are numbers from 1
@raise rows of different length, unknown costs
@usage assert(hv.opt.assign{cost = {{1, 9}, {2, 3}}}.value == 4)
*/
static int opt_assign(lua_State *L)
{
    static const char *const keys[] = {"cost", "objective", NULL};
    static const char *const goals[] = {"sum", "bottleneck"};
    static const char fn[] = "hv.opt.assign";
    struct hv_assign_result r;
    struct hv_err err = {0};
    size_t rows = 0, columns = 0;

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    int goal = hv__word(L, 1, fn, "objective", goals, HV_COUNT(goals), 0);
    const double *cost = read_matrix(L, fn, &rows, &columns);
    if (hv_assign_solve(cost, rows, columns, (enum hv_assign_goal)goal, arena_of(L), &r, &err) !=
        HV_OK) {
        return hv__raise(L, &err);
    }
    if (!r.feasible) {
        lua_pushnil(L);
        lua_pushfstring(L, "at least %d rows have no allowed column", (int)r.unmatched);
        return 2;
    }
    lua_createtable(L, 0, 4);
    set_indices(L, "columns", r.column, rows);
    hv__set_num(L, "value", r.value);
    hv__set_num(L, "bound", r.bound);
    set_proven(L, r.proven);
    return 1;
}

/***
A path over a square matrix of costs: the shortest between two nodes, or the best order of all.
@function hv.opt.path
@tparam table q {cost = list of rows (math.huge = no edge), kind = "shortest|tsp_open|heaviest",
from, to (shortest only)}; tsp_open: least sum through all nodes, heaviest: largest sum; exact up to
18 nodes, beyond that a search with a bound
@treturn table {order, value, bound, proven}; nil and the reason when there is no path
@units any, the same in and out; nodes are numbers from 1
@raise a matrix that is not square, unknown costs, negative ones for the shortest path
@usage local r = hv.opt.path{cost = {{0, 1, 5}, {1, 0, 1}, {5, 1, 0}}, kind = "tsp_open"}
assert(r.value == 2)
*/
static int opt_path(lua_State *L)
{
    static const char *const keys[] = {"cost", "kind", "from", "to", NULL};
    static const char *const kinds[] = {"shortest", "tsp_open", "heaviest"};
    static const char fn[] = "hv.opt.path";
    struct hv_path_result r;
    struct hv_err err = {0};
    enum hv_status s;
    size_t rows = 0, columns = 0;

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    int kind = hv__word(L, 1, fn, "kind", kinds, HV_COUNT(kinds), 0);
    const double *cost = read_matrix(L, fn, &rows, &columns);
    if (rows == 0 || rows != columns) {
        luaL_error(L, "%s: cost: expected a square matrix, found %d rows of %d", fn, (int)rows,
                   (int)columns);
    }
    if (kind == 0) {
        size_t from = (size_t)hv__int(L, 1, fn, "from", 0, 1, (int64_t)rows) - 1;
        size_t to = (size_t)hv__int(L, 1, fn, "to", 0, 1, (int64_t)rows) - 1;
        s = hv_path_shortest(cost, rows, from, to, arena_of(L), &r, &err);
    } else {
        s = hv_path_through_all(cost, rows, kind == 2, arena_of(L), &r, &err);
    }
    if (s != HV_OK) {
        return hv__raise(L, &err);
    }
    if (!r.feasible) {
        return no(L, kind == 0 ? "no path joins the two nodes" : "no path through all nodes found");
    }
    lua_createtable(L, 0, 4);
    set_indices(L, "order", r.order, r.n);
    hv__set_num(L, "value", r.value);
    hv__set_num(L, "bound", r.bound);
    set_proven(L, r.proven);
    return 1;
}

/** Optional list of n numbers, or NULL. */
static const double *numbers_or_null(lua_State *L, const char *fn, const char *key, size_t n)
{
    size_t len = 0;
    bool there = lua_getfield(L, 1, key) != LUA_TNIL;

    lua_pop(L, 1);
    if (!there) {
        return NULL;
    }
    const double *x = hv__numbers(L, 1, fn, key, &len);
    if (len != n) {
        luaL_error(L, "%s: %s: expected %d numbers, found %d", fn, key, (int)n, (int)len);
    }
    return x;
}

/***
Cuts a weighted graph into balanced parts with little weight between them. A multilevel heuristic.
@function hv.opt.cut
@tparam table q {weights = one per node, edges = list of {u, v, weight}, parts, shares = target
share of the weight per part (equal), tolerance = 0.05, seed = 1}
@treturn table {parts = one per node, loads, value = weight of the cut edges, excess = largest load
above its tolerance}
@units any, the same in and out; nodes and parts are numbers from 1; tolerance and shares are shares
@raise negative or unknown weights, nodes that do not exist
@usage local r = hv.opt.cut{weights = {1, 1, 1, 1}, edges = {{1, 2, 5}, {2, 3, 1}, {3, 4, 5}}, parts
= 2} assert(r.value == 1)
*/
static int opt_cut(lua_State *L)
{
    static const char *const keys[] = {"weights",   "edges", "parts", "shares",
                                       "tolerance", "seed",  NULL};
    static const char fn[] = "hv.opt.cut";
    struct hv_graph_partition_result r;
    struct hv_flow_edge *rows = NULL;
    struct hv_err err = {0};
    struct hv_graph_partition g = {0};

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    g.weight = hv__numbers(L, 1, fn, "weights", &g.n_nodes);
    g.n_parts = (size_t)hv__int(L, 1, fn, "parts", 0, 1, (int64_t)HV_GRAPH_PARTITION_MAX_PARTS);
    g.share = numbers_or_null(L, fn, "shares", g.n_parts);
    g.tolerance = hv__num(L, 1, fn, "tolerance", 0.05, 0, 1e6);
    g.seed = (uint64_t)hv__int(L, 1, fn, "seed", 1, 0, INT64_MAX);
    size_t n_nodes = read_edges(L, fn, &rows, &g.n_edges);
    if (n_nodes > g.n_nodes) {
        luaL_error(L, "%s: edges: node %d has no weight", fn, (int)n_nodes);
    }
    struct hv_graph_partition_edge *e =
        hv__scratch_new(L, struct hv_graph_partition_edge, g.n_edges + 1);
    for (size_t k = 0; k < g.n_edges; k++) {
        e[k] = (struct hv_graph_partition_edge){rows[k].from, rows[k].to, rows[k].capacity};
    }
    g.edges = e;
    if (hv_graph_partition_solve(&g, arena_of(L), &r, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    lua_createtable(L, 0, 4);
    set_indices(L, "parts", r.part, g.n_nodes);
    set_numbers(L, "loads", r.load, g.n_parts);
    hv__set_num(L, "value", r.cut);
    hv__set_num(L, "excess", r.excess);
    return 1;
}

/** Costs out of the list at the top: numbers, or pairs {time, memory}. */
static const struct hv_graph_cost *costs_at_top(lua_State *L, const char *fn, const char *key,
                                                size_t *n)
{
    *n = (size_t)lua_rawlen(L, -1);
    struct hv_graph_cost *c = hv__scratch_new(L, struct hv_graph_cost, *n + 1);
    for (size_t k = 0; k < *n; k++) {
        int type = lua_rawgeti(L, -1, (lua_Integer)k + 1);
        double one = type == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
        lua_pop(L, 1);
        if (type == LUA_TNUMBER && !isnan(one)) {
            c[k].a = one;
        } else {
            const double *x = row_at(L, fn, key, k, 2);
            c[k] = (struct hv_graph_cost){x[0], x[1]};
        }
    }
    return c;
}

static const struct hv_graph_node *read_choices(lua_State *L, const char *fn, size_t *n)
{
    *n = push_list(L, fn, "nodes");
    struct hv_graph_node *nodes = hv__scratch_new(L, struct hv_graph_node, *n + 1);
    for (size_t v = 0; v < *n; v++) {
        if (lua_rawgeti(L, -1, (lua_Integer)v + 1) != LUA_TTABLE) {
            luaL_error(L, "%s: nodes: expected a list of costs at %d", fn, (int)v + 1);
        }
        nodes[v].cost = costs_at_top(L, fn, "nodes", &nodes[v].n_choices);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return nodes;
}

/** The row {u, v, {row of costs, …}} at the top. */
static struct hv_graph_edge edge_at_top(lua_State *L, const char *fn, const struct hv_graph_dp *g)
{
    struct hv_graph_edge e = {0};

    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    e.u = index_at(L, fn, "edges", lua_tonumber(L, -2), g->n_nodes);
    e.v = index_at(L, fn, "edges", lua_tonumber(L, -1), g->n_nodes);
    lua_pop(L, 2);
    size_t rows = g->nodes[e.u].n_choices, columns = g->nodes[e.v].n_choices;
    if (lua_rawgeti(L, -1, 3) != LUA_TTABLE || (size_t)lua_rawlen(L, -1) != rows) {
        luaL_error(L, "%s: edges: expected %d rows of costs between nodes %d and %d", fn, (int)rows,
                   (int)e.u + 1, (int)e.v + 1);
    }
    struct hv_graph_cost *all = hv__scratch_new(L, struct hv_graph_cost, rows * columns + 1);
    for (size_t r = 0; r < rows; r++) {
        size_t n = 0;
        if (lua_rawgeti(L, -1, (lua_Integer)r + 1) != LUA_TTABLE) {
            luaL_error(L, "%s: edges: expected a list of costs", fn);
        }
        const struct hv_graph_cost *c = costs_at_top(L, fn, "edges", &n);
        if (n != columns) {
            luaL_error(L, "%s: edges: expected %d costs in a row between nodes %d and %d, found %d",
                       fn, (int)columns, (int)e.u + 1, (int)e.v + 1, (int)n);
        }
        memcpy(all + r * columns, c, columns * sizeof *all);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    e.cost = all;
    return e;
}

static void push_point(lua_State *L, const struct hv_graph_point *p, size_t n_nodes, bool pareto)
{
    lua_createtable(L, 0, 4);
    set_indices(L, "choices", p->choice, n_nodes);
    hv__set_num(L, "value", p->a);
    if (pareto) {
        hv__set_num(L, "memory", p->b);
    }
}

/***
Best choices on the nodes of a graph with costs on nodes and edges, or the front of time against
memory. Exact by summing nodes out; refuses graphs whose tables would be too large.
@function hv.opt.graph_dp
@tparam table q {nodes = for each node the list of its choices' costs, edges = list of {u, v, rows
of costs: choices of u times choices of v}, semiring = "min|pareto" (then costs are pairs {time,
memory}), method = "eliminate|chain|frontier", keep = points per table cell of a front (all)}
@treturn table min: {choices, value, proven, width}; pareto: {front = list of {choices, value,
memory}, proven, width}; nil and the reason when no choice is allowed
@units any, the same in and out; nodes and choices are numbers from 1
@raise tables of another shape, unknown costs, graphs whose tables would be too large
@usage local r = hv.opt.graph_dp{nodes = {{1, 2}, {3, 1}}, edges = {{1, 2, {{0, 9}, {0, 0}}}}}
assert(r.value == 3)
*/
static int opt_graph_dp(lua_State *L)
{
    static const char *const keys[] = {"nodes", "edges", "semiring", "method", "keep", NULL};
    static const char *const semirings[] = {"min", "pareto"};
    static const char *const methods[] = {"eliminate", "chain", "frontier"};
    static const char fn[] = "hv.opt.graph_dp";
    struct hv_graph_dp_result r;
    struct hv_err err = {0};
    struct hv_graph_dp g = {0};

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    g.pareto = hv__word(L, 1, fn, "semiring", semirings, HV_COUNT(semirings), 0) == 1;
    g.method = (enum hv_graph_method)hv__word(L, 1, fn, "method", methods, HV_COUNT(methods), 0);
    g.keep = (size_t)hv__int(L, 1, fn, "keep", 0, 0, (int64_t)MAX_LIST);
    g.nodes = read_choices(L, fn, &g.n_nodes);
    g.n_edges = push_list(L, fn, "edges");
    struct hv_graph_edge *edges = hv__scratch_new(L, struct hv_graph_edge, g.n_edges + 1);
    for (size_t e = 0; e < g.n_edges; e++) {
        if (lua_rawgeti(L, -1, (lua_Integer)e + 1) != LUA_TTABLE) {
            luaL_error(L, "%s: edges: expected {u, v, costs} at %d", fn, (int)e + 1);
        }
        edges[e] = edge_at_top(L, fn, &g);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    g.edges = edges;
    if (hv_graph_dp_solve(&g, arena_of(L), &r, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    if (!r.feasible) {
        return no(L, "no combination of choices is allowed");
    }
    if (g.pareto) {
        lua_createtable(L, 0, 3);
        lua_createtable(L, (int)r.n_points, 0);
        for (size_t k = 0; k < r.n_points; k++) {
            push_point(L, &r.points[k], g.n_nodes, true);
            lua_rawseti(L, -2, (lua_Integer)k + 1);
        }
        lua_setfield(L, -2, "front");
    } else {
        push_point(L, &r.points[0], g.n_nodes, false);
    }
    hv__set_num(L, "width", (double)r.width);
    set_proven(L, r.proven);
    return 1;
}

/** A fold in progress: the functions leaf, series and parallel at `functions` + 1, 2, 3, and the
 * values of parts in the list at `functions`. */
struct fold {
    lua_State *L;
    int functions;
    lua_Integer n_values;
};

/** Calls function k of the fold with the n arguments at the top; the value is kept, *out = its
 * number. */
static enum hv_status fold_call(struct fold *f, int k, int n, void **out, struct hv_err *err)
{
    lua_State *L = f->L;

    lua_pushvalue(L, f->functions + k);
    lua_insert(L, -n - 1);
    if (lua_pcall(L, n, 1, 0) != LUA_OK) {
        const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        enum hv_status s =
            hv_err_set(err, HV_EPLUGIN, "%s", text != NULL ? text : "error in a callback");
        lua_pop(L, 1);
        return s;
    }
    lua_rawseti(L, f->functions, ++f->n_values);
    *out = (void *)(uintptr_t)f->n_values;
    return HV_OK;
}

static void push_value(const struct fold *f, const void *value)
{
    lua_rawgeti(f->L, f->functions, (lua_Integer)(uintptr_t)value);
}

static enum hv_status fold_edge(void *ctx, size_t edge, void **out, struct hv_err *err)
{
    struct fold *f = ctx;

    lua_pushinteger(f->L, (lua_Integer)edge + 1);
    return fold_call(f, 1, 1, out, err);
}

static enum hv_status fold_row(void *ctx, size_t vertex, void *left, void *right, void **out,
                               struct hv_err *err)
{
    struct fold *f = ctx;

    push_value(f, left);
    lua_pushinteger(f->L, (lua_Integer)vertex + 1);
    push_value(f, right);
    return fold_call(f, 2, 3, out, err);
}

static enum hv_status fold_side(void *ctx, void *left, void *right, void **out, struct hv_err *err)
{
    struct fold *f = ctx;

    push_value(f, left);
    push_value(f, right);
    return fold_call(f, 3, 2, out, err);
}

/** Pushes the list of values and the functions of a fold. */
static struct fold fold_begin(lua_State *L, const char *fn)
{
    static const char *const names[] = {"leaf", "series", "parallel"};
    struct fold f = {L, 0, 0};

    luaL_checkstack(L, 12, fn);
    lua_newtable(L);
    f.functions = lua_gettop(L);
    for (size_t k = 0; k < HV_COUNT(names); k++) {
        if (lua_getfield(L, 1, names[k]) != LUA_TFUNCTION) {
            hv__bad(L, fn, names[k], "a function", -1);
        }
    }
    return f;
}

/** The rows {from, to} at field `edges`. */
static const struct hv_series_parallel_edge *read_arcs(lua_State *L, const char *fn,
                                                       struct hv_series_parallel_graph *g)
{
    g->n_edges = push_list(L, fn, "edges");
    struct hv_series_parallel_edge *out =
        hv__scratch_new(L, struct hv_series_parallel_edge, g->n_edges + 1);
    for (size_t e = 0; e < g->n_edges; e++) {
        const double *x = row_at(L, fn, "edges", e, 2);
        out[e] = (struct hv_series_parallel_edge){index_at(L, fn, "edges", x[0], MAX_LIST),
                                                  index_at(L, fn, "edges", x[1], MAX_LIST)};
        g->n_vertices = out[e].from >= g->n_vertices ? out[e].from + 1 : g->n_vertices;
        g->n_vertices = out[e].to >= g->n_vertices ? out[e].to + 1 : g->n_vertices;
    }
    lua_pop(L, 1);
    return out;
}

/***
Takes a series-parallel graph apart and folds it: values of edges are joined to those of larger and
larger parts, until one is left. Values are whatever the functions return, as a front of times and
memories, or a function of a budget.
@function hv.opt.series
@tparam table q {edges = list of {from, to} (several between two vertices are allowed), source,
sink, leaf = function (edge) that gives the value of an edge by its number, series = function (left,
vertex, right) that gives the value of two parts one after the other with the vertex between them,
parallel = function (left, right) that gives the value of two parts side by side}
@treturn any the value of the whole; nil and the reason when the graph is not series-parallel
@units the caller's; vertices and edges are numbers from 1
@raise equal or unknown terminals, errors of the functions
@usage local n = hv.opt.series{edges = {{1, 2}, {2, 4}, {1, 3}, {3, 4}}, source = 1, sink = 4,
  leaf = function() return 1 end, series = function(a, _, b) return a + b end,
  parallel = function(a, b) return math.max(a, b) end}
assert(n == 2)
*/
static int opt_series(lua_State *L)
{
    static const char *const keys[] = {"edges",  "source",   "sink", "leaf",
                                       "series", "parallel", NULL};
    static const char fn[] = "hv.opt.series";
    static const struct hv_series_parallel_ops ops = {fold_edge, fold_row, fold_side};
    struct hv_series_parallel_graph g = {0};
    struct hv_series_parallel_tree tree;
    struct hv_err err = {0};
    void *value = NULL;

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    g.source = (size_t)hv__int(L, 1, fn, "source", 0, 1, (int64_t)MAX_LIST) - 1;
    g.sink = (size_t)hv__int(L, 1, fn, "sink", 0, 1, (int64_t)MAX_LIST) - 1;
    g.edges = read_arcs(L, fn, &g);
    struct fold f = fold_begin(L, fn);
    if (hv_series_parallel_decompose(&g, arena_of(L), &tree, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    if (!tree.complete) {
        return no(L, "the graph is not series-parallel");
    }
    if (hv_series_parallel_fold(&tree, &ops, &f, &value, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    push_value(&f, value);
    return 1;
}

void hv__api_opt_classics(lua_State *L)
{
    static const luaL_Reg rows[] = {{"knapsack", opt_knapsack}, {"maxflow", opt_maxflow},
                                    {"assign", opt_assign},     {"path", opt_path},
                                    {"cut", opt_cut},           {"graph_dp", opt_graph_dp},
                                    {"series", opt_series},     {NULL, NULL}};

    hv__api_add(L, "opt", rows);
}
