/*
 * hv.graph: operator graphs of plugins. What is known of an order, of sets and of shapes is
 * solver/optim's; here are arguments and results. Numbers from Lua count from 1.
 */
#include "scripting/api/graph/handle.h"
#include "solver/base/units.h"
#include "solver/optim/graph/series_parallel.h"

#include <stdlib.h>
#include <string.h>

static int graph_gc(lua_State *L)
{
    struct hv__graph *g = lua_touserdata(L, 1);
    json_decref(g->doc);
    hv_arena_free(&g->arena);
    memset(g, 0, sizeof *g);
    return 0;
}

static int no(lua_State *L, const struct hv_err *err)
{
    lua_pushnil(L);
    lua_pushstring(L, err->text);
    return 2;
}

static void push_numbers(lua_State *L, const size_t *x, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushinteger(L, (lua_Integer)x[i] + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/***
An operator graph: in long form (dims, tensors, ops with in and out, as in files of kind graph), or
only operators and the edges between them, as model:graph gives them.
@function hv.graph
@tparam table q {dims = {name = size}, tensors = {name = {dims, role, dtype}}, ops = list of {id,
op, in, out, …}}; or {ops = list of {id, op, flops, parameters, output_bytes, all of them optional},
edges = list of {from, to, bytes}}
@treturn handle graph: with ops, edges, topo, liveness, coarsen, antichains, ideals, sp and table
@units sizes are elements; FLOP, bytes; operators are numbers from 1
@raise what the reader of files refuses, with the place in the table
@usage local g = hv.graph{dims = {batch = 8, hidden = 16, ffn = 64},
  tensors = {x = {dims = {"batch", "hidden"}, role = "input"},
    w = {dims = {"hidden", "ffn"}, role = "parameter"}},
  ops = {{id = "up", op = "einsum", ["in"] = {"x", "w"}, out = {"batch", "ffn"}}}}
assert(g:ops()[1].flops == 2 * 8 * 16 * 64)
*/
static int graph_new(lua_State *L)
{
    struct hv_err err = {0};

    luaL_checktype(L, 1, LUA_TTABLE);
    json_t *doc = hv__to_json(L, 1, &err);
    if (doc == NULL) {
        return hv__raise(L, &err);
    }
    hv__graph_push(L, doc, "hv.graph");
    return 1;
}

static void push_dims(lua_State *L, const struct hv_tensor_graph *g, const uint32_t *dims, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushstring(L, g->dims[dims[i]].name);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_operands(lua_State *L, const struct hv_tensor_graph *g,
                          const struct hv_tensor_op *op)
{
    lua_createtable(L, op->n_in, 0);
    for (size_t i = 0; i < op->n_in; i++) {
        lua_pushstring(L, g->tensors[op->in[i].tensor].name);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/***
The operators of a graph in their order.
@function graph:ops
@treturn table list of {id, op, flops (forward), parameters, output_bytes}, of graphs in long form
also in = names of tensors, out = names of dimensions; unknown values are missing
@units FLOP, bytes; parameters are counts
@raise none
@usage local g = hv.graph{ops = {{id = "a", flops = 4}, {id = "b"}}, edges = {{1, 2}}}
assert(g:ops()[1].flops == 4 and g:ops()[2].flops == nil)
*/
static int graph_ops(lua_State *L)
{
    const struct hv__graph *g = hv__graph_at(L, 1);

    lua_createtable(L, (int)g->n_ops, 0);
    for (size_t i = 0; i < g->n_ops; i++) {
        const struct hv__graph_op *o = &g->ops[i];
        lua_createtable(L, 0, 7);
        hv__set_text(L, "id", o->id);
        hv__set_text(L, "op", o->op);
        hv__set_num(L, "flops", o->flops);
        hv__set_num(L, "parameters", o->parameters);
        hv__set_num(L, "output_bytes", o->output_bytes);
        if (g->tensors != NULL) {
            const struct hv_tensor_op *op = &g->tensors->ops[i];
            const struct hv_tensor *out = &g->tensors->tensors[op->out];
            push_operands(L, g->tensors, op);
            lua_setfield(L, -2, "in");
            push_dims(L, g->tensors, out->dim, out->n_dims);
            lua_setfield(L, -2, "out");
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/***
The data flows between operators.
@function graph:edges
@treturn table list of {from, to, bytes}
@units operators are numbers from 1; bytes of the result of `from`, or as given
@raise none
@usage local g = hv.graph{ops = {{output_bytes = 8}, {}}, edges = {{1, 2}}}
assert(g:edges()[1][3] == 8)
*/
static int graph_edges(lua_State *L)
{
    const struct hv__graph *g = hv__graph_at(L, 1);

    lua_createtable(L, (int)g->flow.n_edges, 0);
    for (size_t i = 0; i < g->flow.n_edges; i++) {
        lua_createtable(L, 3, 0);
        lua_pushinteger(L, (lua_Integer)g->flow.edges[i].from + 1);
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, (lua_Integer)g->flow.edges[i].to + 1);
        lua_rawseti(L, -2, 2);
        lua_pushnumber(L, g->edge_bytes[i]);
        lua_rawseti(L, -2, 3);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/***
An order in which every operator stands behind those whose results it reads; of several that could
be next the first one of the list.
@function graph:topo
@treturn table list of operators; nil and the reason where the graph has a cycle
@units operators are numbers from 1
@raise none
@usage local g = hv.graph{ops = {{}, {}, {}}, edges = {{3, 1}, {1, 2}}}
assert(table.concat(g:topo(), " ") == "3 1 2")
*/
static int graph_topo(lua_State *L)
{
    const struct hv__graph *g = hv__graph_at(L, 1);
    struct hv_err err = {0};
    size_t *order = NULL;

    if (hv_precedence_order(&g->flow, &hv__host(L)->arena, &order, &err) != HV_OK) {
        return no(L, &err);
    }
    push_numbers(L, order, g->n_ops);
    return 1;
}

/* The order at argument 2, or that of graph:topo. NULL: a cycle. */
static const size_t *order_at(lua_State *L, const struct hv__graph *g, struct hv_err *err)
{
    static const char fn[] = "graph:liveness";
    size_t *order = NULL, n = 0;

    if (lua_isnoneornil(L, 2)) {
        return hv_precedence_order(&g->flow, &hv__host(L)->arena, &order, err) == HV_OK ? order
                                                                                        : NULL;
    }
    const double *x = hv__numbers(L, 2, fn, NULL, &n);
    order = hv__scratch_new(L, size_t, g->n_ops + 1);
    for (size_t i = 0; i < n && n == g->n_ops; i++) {
        order[i] = x[i] >= 1 && x[i] <= (double)n ? (size_t)x[i] - 1 : n;
    }
    if (n != g->n_ops || !hv_precedence_is_order(&g->flow, order, &hv__host(L)->arena)) {
        luaL_error(L, "%s: expected each of the %d operators once, behind those it reads", fn,
                   (int)g->n_ops);
    }
    return order;
}

/***
Bytes that are held while each operator of an order runs: results that are still read later, or by
nobody, and its own.
@function graph:liveness
@tparam[opt] table order list of operators (that of graph:topo)
@treturn table {peak_bytes, held = list of bytes, one per place of the order, order}; nil and the
reason where the graph has a cycle
@units bytes; results of unknown size count 0
@raise an order that lacks an operator or does not keep to the edges
@usage local g = hv.graph{ops = {{output_bytes = 4}, {output_bytes = 1}, {output_bytes = 2}},
  edges = {{1, 2}, {2, 3}}}
assert(g:liveness().peak_bytes == 5)
*/
static int graph_liveness(lua_State *L)
{
    const struct hv__graph *g = hv__graph_at(L, 1);
    struct hv_err err = {0};
    const size_t *order = order_at(L, g, &err);

    if (order == NULL) {
        return no(L, &err);
    }
    double *bytes = hv__scratch_new(L, double, g->n_ops + 1);
    double *held = hv__scratch_new(L, double, g->n_ops + 1);
    for (size_t i = 0; i < g->n_ops; i++) {
        bytes[i] = hv_or(g->ops[i].output_bytes, 0);
    }
    double peak = hv_precedence_held(&g->flow, order, bytes, &hv__host(L)->arena, held);
    lua_createtable(L, 0, 3);
    hv__set_num(L, "peak_bytes", peak);
    hv__push_numbers(L, held, g->n_ops);
    lua_setfield(L, -2, "held");
    push_numbers(L, order, g->n_ops);
    lua_setfield(L, -2, "order");
    return 1;
}

static void push_sets(lua_State *L, const struct hv_node_sets *s, size_t n_nodes)
{
    lua_createtable(L, (int)s->n, 0);
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t *set = &s->bits[i * s->n_words];
        lua_Integer n = 0;
        lua_newtable(L);
        for (size_t k = 0; k < n_nodes; k++) {
            if ((set[k / 64] >> k % 64 & 1) != 0) {
                lua_pushinteger(L, (lua_Integer)k + 1);
                lua_rawseti(L, -2, ++n);
            }
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/** Ideals, or antichains in their place. */
static int sets(lua_State *L, const char *fn, bool antichains)
{
    enum { MOST = 65536 };
    static const char *const keys[] = {"cap", NULL};
    const struct hv__graph *g = hv__graph_at(L, 1);
    struct hv_node_sets s;
    struct hv_err err = {0};
    int64_t cap = MOST;

    if (!lua_isnoneornil(L, 2)) {
        hv__check_keys(L, 2, fn, keys);
        cap = hv__int(L, 2, fn, "cap", MOST, 1, (int64_t)HV_PRECEDENCE_MAX_SETS);
    }
    if (hv_precedence_ideals(&g->flow, (size_t)cap, &hv__host(L)->arena, &s, &err) != HV_OK) {
        return no(L, &err);
    }
    if (antichains) {
        hv_precedence_antichains(&g->flow, &s);
    }
    push_sets(L, &s, g->n_ops);
    return 1;
}

/***
All ideals of a graph: sets that hold with an operator all those it depends on. They are what a
pipeline can have done at a cut.
@function graph:ideals
@tparam[opt] table q {cap = most of them (65536)}
@treturn table list of lists of operators, the empty one first, then by their number; nil and the
reason where there are more than cap, or the graph has a cycle
@units operators are numbers from 1
@raise a cap above 1048576
@usage local g = hv.graph{ops = {{}, {}, {}}, edges = {{1, 2}, {1, 3}}}
assert(#g:ideals() == 5)
*/
static int graph_ideals(lua_State *L)
{
    return sets(L, "graph:ideals", false);
}

/***
All antichains of a graph: sets of operators of which none depends on another. Each is the last ones
of an ideal, in the order of graph:ideals.
@function graph:antichains
@tparam[opt] table q {cap = most of them (65536)}
@treturn table list of lists of operators, the empty one first; nil and the reason where there are
more than cap, or the graph has a cycle
@units operators are numbers from 1
@raise a cap above 1048576
@usage local g = hv.graph{ops = {{}, {}, {}}, edges = {{1, 2}, {1, 3}}}
assert(table.concat(g:antichains()[5], " ") == "2 3")
*/
static int graph_antichains(lua_State *L)
{
    return sets(L, "graph:antichains", true);
}

/* ---- series-parallel ------------------------------------------------------------------------- */

/* The only operator without an edge in (`in`) or out; n_ops where there is none or several. */
static size_t terminal(const struct hv__graph *g, bool in, struct hv_arena *arena)
{
    bool *has = hv_arena_new(arena, bool, g->n_ops + 1);
    size_t found = g->n_ops, n = 0;
    for (size_t e = 0; e < g->flow.n_edges; e++) {
        has[in ? g->flow.edges[e].to : g->flow.edges[e].from] = true;
    }
    for (size_t i = 0; i < g->n_ops; i++) {
        if (!has[i]) {
            found = i;
            n++;
        }
    }
    return n == 1 ? found : g->n_ops;
}

static void push_part(lua_State *L, const struct hv_series_parallel_part *p)
{
    static const char *const kinds[] = {"edge", "series", "parallel"};
    lua_createtable(L, 0, 6);
    hv__set_text(L, "kind", kinds[p->kind]);
    hv__set_num(L, "from", (double)p->from + 1);
    hv__set_num(L, "to", (double)p->to + 1);
    if (p->kind == HV_SERIES_PARALLEL_EDGE) {
        hv__set_num(L, "edge", (double)p->edge + 1);
        return;
    }
    hv__set_num(L, "left", (double)p->left + 1);
    hv__set_num(L, "right", (double)p->right + 1);
    if (p->kind == HV_SERIES_PARALLEL_ROW) {
        hv__set_num(L, "vertex", (double)p->vertex + 1);
    }
}

/***
Takes a graph apart into parts one after the other and side by side. hv.opt.series folds such a
graph.
@function graph:sp
@treturn table {parts = list of {kind = "edge", from, to, edge} or {kind = "series", from, to, left,
vertex, right} or {kind = "parallel", from, to, left, right}; each behind its own parts, the last is
the whole}; nil and the reason where the graph is not series-parallel
@units operators, edges and parts are numbers from 1
@raise none
@usage local g = hv.graph{ops = {{}, {}, {}, {}}, edges = {{1, 2}, {1, 3}, {2, 4}, {3, 4}}}
local parts = g:sp().parts
assert(parts[#parts].kind == "parallel")
*/
static int graph_sp(lua_State *L)
{
    const struct hv__graph *g = hv__graph_at(L, 1);
    struct hv_arena *arena = &hv__host(L)->arena;
    struct hv_series_parallel_tree tree;
    struct hv_err err = {0};
    struct hv_series_parallel_graph q = {.n_vertices = g->n_ops, .n_edges = g->flow.n_edges};
    struct hv_series_parallel_edge *edges =
        hv__scratch_new(L, struct hv_series_parallel_edge, q.n_edges + 1);

    q.source = terminal(g, true, arena);
    q.sink = terminal(g, false, arena);
    for (size_t i = 0; i < q.n_edges; i++) {
        edges[i] = (struct hv_series_parallel_edge){g->flow.edges[i].from, g->flow.edges[i].to};
    }
    q.edges = edges;
    if (q.source == g->n_ops || q.sink == g->n_ops) {
        (void)hv_err_set(&err, HV_EINPUT, "the graph has several first or last operators");
        return no(L, &err);
    }
    if (hv_series_parallel_decompose(&q, arena, &tree, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    if (!tree.complete) {
        (void)hv_err_set(&err, HV_EINPUT, "the graph is not series-parallel: %zu edges are left",
                         tree.n_left);
        return no(L, &err);
    }
    lua_createtable(L, 0, 1);
    lua_createtable(L, (int)tree.n, 0);
    for (size_t i = 0; i < tree.n; i++) {
        push_part(L, &tree.parts[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "parts");
    return 1;
}

/* ---- coarser graphs -------------------------------------------------------------------------- */

/* Calls the function at 2 for every operator; group[i]: number of its group, of which *n arise; the
 * table at index `names` gets their names. */
static size_t group_ops(lua_State *L, const struct hv__graph *g, int names, size_t *group)
{
    size_t n = 0;
    graph_ops(L); /* rows, with the handle still at 1 */
    int rows = lua_gettop(L);
    lua_newtable(L);
    int known = lua_gettop(L);
    for (size_t i = 0; i < g->n_ops; i++) {
        lua_pushvalue(L, 2);
        lua_rawgeti(L, rows, (lua_Integer)i + 1);
        lua_pushinteger(L, (lua_Integer)i + 1);
        lua_call(L, 2, 1);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            lua_pushstring(L, g->ops[i].id);
        }
        if (lua_type(L, -1) != LUA_TSTRING) {
            luaL_error(L, "graph:coarsen: expected a name or nil from the function, found %s",
                       luaL_typename(L, -1));
        }
        lua_pushvalue(L, -1);
        if (lua_rawget(L, known) == LUA_TNIL) {
            lua_pop(L, 1);
            lua_pushvalue(L, -1);
            lua_rawseti(L, names, (lua_Integer)++n);
            lua_pushinteger(L, (lua_Integer)n);
            lua_pushvalue(L, -2);
            lua_pushvalue(L, -2);
            lua_rawset(L, known);
        }
        group[i] = (size_t)lua_tointeger(L, -1) - 1;
        lua_pop(L, 2);
    }
    return n;
}

static void add_to(json_t *row, const char *key, double x)
{
    double before = json_number_value(json_object_get(row, key));
    if (hv_known(x)) {
        json_object_set_new(row, key, hv_json_num(before + x));
    }
}

/** A flow between groups. */
struct flow {
    size_t from, to, op; /* groups; the operator whose result it is */
    double bytes;
};

static int by_groups(const void *a, const void *b)
{
    const struct flow *x = a, *y = b;
    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    if (x->to != y->to) {
        return x->to < y->to ? -1 : 1;
    }
    return x->op != y->op ? (x->op < y->op ? -1 : 1) : 0;
}

/* Edges between groups: a result that several operators of a group read crosses once. */
static json_t *group_edges(lua_State *L, const struct hv__graph *g, const size_t *group)
{
    struct flow *flows = hv__scratch_new(L, struct flow, g->flow.n_edges + 1);
    json_t *edges = json_array();
    size_t n = 0;
    for (size_t e = 0; e < g->flow.n_edges; e++) {
        size_t from = g->flow.edges[e].from, a = group[from], b = group[g->flow.edges[e].to];
        if (a != b) {
            flows[n++] = (struct flow){a, b, from, g->edge_bytes[e]};
        }
    }
    qsort(flows, n, sizeof *flows, by_groups);
    for (size_t i = 0; i < n;) {
        size_t first = i;
        double bytes = 0;
        for (; i < n && flows[i].from == flows[first].from && flows[i].to == flows[first].to; i++) {
            bool again = i > first && flows[i].op == flows[i - 1].op;
            bytes += again ? 0 : flows[i].bytes;
        }
        json_array_append_new(edges,
                              json_pack("[I, I, o]", (json_int_t)flows[first].from + 1,
                                        (json_int_t)flows[first].to + 1, hv_json_num(bytes)));
    }
    return edges;
}

/* Bytes of the results that others read, or nobody. */
static void add_outputs(const struct hv__graph *g, const size_t *group, bool *inside, json_t *rows)
{
    for (size_t i = 0; i < g->n_ops; i++) {
        inside[i] = false;
    }
    for (size_t e = 0; e < g->flow.n_edges; e++) { /* read inside, and, below, nowhere else */
        const struct hv_precedence_edge *x = &g->flow.edges[e];
        inside[x->from] = inside[x->from] || group[x->from] == group[x->to];
    }
    for (size_t e = 0; e < g->flow.n_edges; e++) {
        const struct hv_precedence_edge *x = &g->flow.edges[e];
        inside[x->from] = inside[x->from] && group[x->from] == group[x->to];
    }
    for (size_t i = 0; i < g->n_ops; i++) {
        if (!inside[i]) {
            add_to(json_array_get(rows, group[i]), "output_bytes", g->ops[i].output_bytes);
        }
    }
}

/***
A coarser graph: operators that the function gives one name become one, with the sums of their
figures. A result that several operators of a group read crosses to it once.
@function graph:coarsen
@tparam function name function (row of graph:ops, number) that returns the name of the group, or nil
for an operator that stays alone
@treturn handle graph of {id = name, op = "group", flops, parameters, output_bytes, members =
numbers of its operators}; nil and the reason where two groups would depend on each other
@units FLOP, bytes; parameters are counts (those that operators share count for each)
@raise a name that is no text, errors of the function
@usage local g = hv.graph{ops = {{flops = 1}, {flops = 2}, {flops = 4}}, edges = {{1, 2}, {2, 3}}}
local c = g:coarsen(function(_, i) return i < 3 and "first" or nil end)
assert(c:ops()[1].flops == 3 and #c:ops() == 2)
*/
static int graph_coarsen(lua_State *L)
{
    const struct hv__graph *g = hv__graph_at(L, 1);
    struct hv_err err = {0};
    size_t *group = hv__scratch_new(L, size_t, g->n_ops + 1), *order = NULL;

    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    lua_newtable(L);
    size_t n = group_ops(L, g, 3, group);
    json_t *doc = json_object(), *rows = json_array();
    hv__keep_json(L, doc);
    json_object_set_new(doc, "ops", rows);
    for (size_t k = 0; k < n; k++) {
        lua_rawgeti(L, 3, (lua_Integer)k + 1);
        json_array_append_new(rows, json_pack("{s:s, s:s, s:[]}", "id", lua_tostring(L, -1), "op",
                                              "group", "members"));
        lua_pop(L, 1);
    }
    for (size_t i = 0; i < g->n_ops; i++) {
        json_t *row = json_array_get(rows, group[i]);
        add_to(row, "flops", g->ops[i].flops);
        add_to(row, "parameters", g->ops[i].parameters);
        json_array_append_new(json_object_get(row, "members"), json_integer((json_int_t)i + 1));
    }
    add_outputs(g, group, hv__scratch_new(L, bool, g->n_ops + 1), rows);
    json_object_set_new(doc, "edges", group_edges(L, g, group));
    struct hv__graph *coarse = hv__graph_push(L, json_incref(doc), "graph:coarsen");
    if (hv_precedence_order(&coarse->flow, &hv__host(L)->arena, &order, &err) != HV_OK) {
        lua_pushnil(L);
        lua_pushstring(L, "groups depend on each other");
        return 2;
    }
    return 1;
}

/***
A graph as a table that hv.graph takes; of one in long form, what stands in a file of kind graph.
@function graph:table
@treturn table {dims, tensors, ops}, or {ops, edges}
@units sizes are elements; bytes
@raise none
@usage local g = hv.graph{ops = {{id = "a"}, {id = "b"}}, edges = {{1, 2}}}
assert(hv.graph(g:table()):ops()[2].id == "b")
*/
static int graph_table(lua_State *L)
{
    hv__push_json(L, hv__graph_at(L, 1)->doc);
    return 1;
}

void hv__api_graph(lua_State *L)
{
    static const luaL_Reg rows[] = {{"graph", graph_new}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"ops", graph_ops},
                                       {"edges", graph_edges},
                                       {"topo", graph_topo},
                                       {"ideals", graph_ideals},
                                       {"antichains", graph_antichains},
                                       {"sp", graph_sp},
                                       {"coarsen", graph_coarsen},
                                       {"liveness", graph_liveness},
                                       {"table", graph_table},
                                       {NULL, NULL}};

    luaL_newmetatable(L, HV__GRAPH);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pushcfunction(L, graph_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    hv__api_names(L, "graph", methods);
    hv__api_add(L, NULL, rows);
}
