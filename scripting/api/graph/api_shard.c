/*
 * hv.shard: how operators and tensors are split over a mesh. Questions become cases of `hetviz
 * shard`, which its reader checks and solver/shard answers.
 */
#include "scripting/api/graph/handle.h"
#include "solver/base/units.h"
#include "solver/io/own/graph/shard_answer.h"
#include "solver/shard/overlap.h"
#include "solver/workload/graph/op_rule.h"

#include <math.h>
#include <string.h>

#define QUESTION "hv.shard.question"

/** A question and its answer, freed when Lua lets go of it. */
struct question {
    struct hv_json doc;
    struct hv_shard_cases cases;
    struct hv_arena arena;
    struct hv_shard_answer answer;
};

static int question_gc(lua_State *L)
{
    struct question *q = lua_touserdata(L, 1);
    hv_shard_cases_free(&q->cases);
    hv_json_free(&q->doc);
    hv_arena_free(&q->arena);
    memset(q, 0, sizeof *q);
    return 0;
}

static struct question *new_question(lua_State *L)
{
    struct question *q = lua_newuserdatauv(L, sizeof *q, 0);
    memset(q, 0, sizeof *q);
    luaL_setmetatable(L, QUESTION);
    return q;
}

/* ---- meshes ---------------------------------------------------------------------------------- */

/** Adds axis `name` of `size` devices. */
static void add_axis(lua_State *L, const char *fn, json_t *mesh, const char *name, lua_Number size)
{
    if (!(size >= 1 && size <= 2147483648.0) || size != floor(size)) {
        luaL_error(L, "%s: mesh: expected a number of devices for \"%s\"", fn, name);
    }
    json_object_set_new(mesh, name, json_integer((json_int_t)size));
}

/** The mesh at i: a list of {name, size}, or {name = size} in the order of the names. */
static json_t *mesh_at(lua_State *L, int i, const char *fn)
{
    luaL_checktype(L, i, LUA_TTABLE);
    json_t *mesh = json_object();
    hv__keep_json(L, mesh);
    lua_Integer n = (lua_Integer)lua_rawlen(L, i);
    for (lua_Integer k = 1; k <= n; k++) {
        if (lua_rawgeti(L, i, k) != LUA_TTABLE || lua_rawgeti(L, -1, 1) != LUA_TSTRING ||
            lua_rawgeti(L, -2, 2) != LUA_TNUMBER) {
            luaL_error(L, "%s: mesh: expected {name, size} at %d", fn, (int)k);
        }
        add_axis(L, fn, mesh, lua_tostring(L, -2), lua_tonumber(L, -1));
        lua_pop(L, 3);
    }
    if (n == 0) {
        struct hv_err err = {0};
        json_t *map = hv__to_json(L, i, &err), *size;
        const char *name;
        hv__keep_json(L, map);
        json_object_foreach(map, name, size)
        {
            add_axis(L, fn, mesh, name, json_number_value(size));
        }
        lua_pop(L, 1);
    }
    if (json_object_size(mesh) == 0) {
        luaL_error(L, "%s: mesh: expected {{\"x\", 8}, …}", fn);
    }
    return mesh;
}

/** {axis = dim} (of several axes on one dimension, the mesh's order decides) or {dim = axes} as
 * {dim: [axes]}. */
static json_t *layout_of(const json_t *mesh, json_t *given)
{
    json_t *layout = json_object(), *v;
    const char *key;
    json_object_foreach(given, key, v)
    {
        bool by_dim = json_is_array(v) || json_object_get(mesh, key) == NULL;
        if (by_dim) {
            json_object_set_new(layout, key,
                                json_is_array(v) ? json_incref(v) : json_pack("[O]", v));
        }
    }
    json_object_foreach((json_t *)(uintptr_t)mesh, key, v)
    {
        json_t *dim = json_object_get(given, key);
        if (json_is_string(dim)) {
            json_t *axes = json_object_get(layout, json_string_value(dim));
            if (axes == NULL) {
                axes = json_array();
                json_object_set_new(layout, json_string_value(dim), axes);
            }
            json_array_append_new(axes, json_string(key));
        }
    }
    return layout;
}

/** The layouts by tensor at i. */
static json_t *shards_at(lua_State *L, int i, const char *fn, const json_t *mesh)
{
    struct hv_err err = {0};
    json_t *shards = json_object(), *given, *layout;
    const char *name;
    hv__keep_json(L, shards);
    luaL_checktype(L, i, LUA_TTABLE);
    given = hv__to_json(L, i, &err);
    if (given == NULL) {
        hv__raise(L, &err);
    }
    hv__keep_json(L, given);
    json_object_foreach(given, name, layout)
    {
        if (!json_is_object(layout) && json_array_size(layout) > 0) {
            luaL_error(L, "%s: shards: expected {axis = dim} or {dim = {axes}} for \"%s\"", fn,
                       name);
        }
        json_object_set_new(shards, name, layout_of(mesh, layout));
    }
    return shards;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static const struct hv__graph *long_graph(lua_State *L, const char *fn)
{
    const struct hv__graph *g = hv__graph_at(L, 1);
    if (g->tensors == NULL) {
        luaL_error(L, "%s: expected a graph in long form (with tensors)", fn);
    }
    return g;
}

/** Makes and reads the one case of a graph on a mesh; `more`: members of the case, taken over. */
static struct question *ask(lua_State *L, const struct hv__graph *g, json_t *mesh, json_t *shards,
                            json_t *more)
{
    struct hv_err err = {0};
    json_t *c = json_pack("{s:s, s:s, s:O, s:O}", "id", "graph", "graph", "graph", "mesh", mesh,
                          "shard", shards);
    json_object_update(c, more);
    json_decref(more);
    json_t *graph =
        json_pack("{s:O, s:O, s:O}", "dims", json_object_get(g->doc, "dims"), "tensors",
                  json_object_get(g->doc, "tensors"), "ops", json_object_get(g->doc, "ops"));
    json_t *doc = json_pack("{s:s, s:{s:o}, s:[o]}", "format", "hetviz.shard-cases/1", "graphs",
                            "graph", graph, "cases", c);
    hv__keep_json(L, doc);
    struct question *q = new_question(L);
    hv_json_wrap(&q->doc, json_incref(doc), "hv.shard");
    if (hv_shard_cases_read(&q->cases, &q->doc, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    q->answer.asked = &q->cases.cases[0];
    return q;
}

static void solve(lua_State *L, struct question *q, enum hv_propagation how)
{
    struct hv_err err = {0};
    q->cases.cases[0].request.how = how;
    if (hv_shard_graph_solve(&q->answer.asked->request, &q->arena, &q->answer.sharding, &err) !=
        HV_OK) {
        hv__raise(L, &err);
    }
}

/** Pushes a tree and lets go of it. */
static void push_tree(lua_State *L, json_t *v)
{
    hv__keep_json(L, v);
    hv__push_json(L, v);
    lua_remove(L, -2);
}

/** Sets `layouts` of the table at the top: of every tensor. */
static void set_layouts(lua_State *L, const struct question *q)
{
    const struct hv_shard_case *c = q->answer.asked;
    json_t *all = json_object();
    for (size_t t = 0; t < c->graph->n_tensors; t++) {
        const struct hv_layout *l = q->answer.sharding.layout[t];
        if (l != NULL) {
            json_object_set_new(all, c->graph->tensors[t].name,
                                hv_shard_layout_json(c, &c->graph->tensors[t], l));
        }
    }
    push_tree(L, all);
    lua_setfield(L, -2, "layouts");
}

/** Ways of one operator on their way to Lua. */
struct candidates {
    lua_State *L;
    const struct hv_shard_case *c;
    const struct hv_tensor_op *op;
    const struct hv_op_rule *rule;
    const uint32_t *factor_dim;
    const struct hv_shape *const *shapes;
    json_t *list;
};

static json_t *split_json(const struct candidates *k, const struct hv_choice *choice)
{
    json_t *split = json_object();
    for (size_t f = 0; f < k->rule->n_factors; f++) {
        for (size_t i = 0; i < choice->factor[f].n && k->factor_dim[f] != HV_NO_DIM; i++) {
            size_t axis = hv_mesh_axis_of(&k->c->mesh, choice->factor[f].atom[i]);
            json_object_set_new(split, k->c->axis[axis],
                                json_string(k->c->graph->dims[k->factor_dim[f]].name));
        }
    }
    return split;
}

static bool add_candidate(void *ctx, const struct hv_choice *choice)
{
    const struct candidates *k = ctx;
    struct hv_layout layouts[65];
    if (!hv_choice_layouts(k->rule, &k->c->mesh, k->shapes, choice, layouts)) {
        return true;
    }
    json_t *operands = json_array();
    for (size_t i = 0; i < k->op->n_in; i++) {
        struct hv_tensor as = {.n_dims = k->op->in[i].n_dims};
        memcpy(as.dim, k->op->in[i].dim, sizeof as.dim);
        json_array_append_new(operands, hv_shard_layout_json(k->c, &as, &layouts[i]));
    }
    const struct hv_tensor *out = &k->c->graph->tensors[k->op->out];
    const struct hv_layout *l = &layouts[k->op->n_in];
    json_array_append_new(k->list,
                          json_pack("{s:o, s:o, s:o, s:o}", "split", split_json(k, choice),
                                    "operands", operands, "out", hv_shard_layout_json(k->c, out, l),
                                    "partial", hv_shard_axes_json(k->c, l->sum | l->max)));
    return true;
}

/***
The ways to split one operator over a mesh: each axis over one of its dimensions, or not at all.
@function hv.shard.candidates
@tparam handle graph in long form
@tparam integer|string op number or id of the operator
@tparam table mesh list of {axis, devices}, or {axis = devices} in the order of the names
@treturn table list of {split = {axis = dim}, operands = list of {dim = {axes}}, out = {dim =
{axes}}, partial = axes over which the result is a summand}; only those that are legal: dimensions
divide, and what the operator needs whole stays whole
@units none
@raise a graph without tensors, an unknown operator, more than 20000 ways
@usage local g = hv.graph{dims = {m = 8, k = 8, n = 8}, tensors = {a = {dims = {"m", "k"}},
  b = {dims = {"k", "n"}}}, ops = {{id = "c", op = "einsum", ["in"] = {"a", "b"}, out = {"m",
"n"}}}} assert(#hv.shard.candidates(g, "c", {{"x", 2}}) == 4)
*/
static int shard_candidates(lua_State *L)
{
    enum { MOST = 20000 };
    static const char fn[] = "hv.shard.candidates";
    struct hv_op_rule rule;
    struct hv_err err = {0};
    uint32_t factor_dim[HV_RULE_FACTORS];
    const struct hv__graph *g = long_graph(L, fn);
    size_t at = hv__graph_op_at(L, 2, g, fn);
    json_t *mesh = mesh_at(L, 3, fn), *none = json_object();

    hv__keep_json(L, none);
    struct question *q = ask(L, g, mesh, none, json_object());
    const struct hv_tensor_graph *graph = q->answer.asked->graph;
    const struct hv_tensor_op *op = &graph->ops[at];
    if (hv_tensor_op_rule(graph, op, &q->arena, &rule, factor_dim, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    struct hv_shape *shapes = hv_arena_new(&q->arena, struct hv_shape, op->n_in + 1);
    const struct hv_shape **all = hv_arena_new(&q->arena, const struct hv_shape *, op->n_in + 1);
    for (size_t i = 0; i <= op->n_in; i++) {
        uint32_t t = i < op->n_in ? op->in[i].tensor : op->out;
        shapes[i] = hv_tensor_shape(graph, &graph->tensors[t]);
        all[i] = &shapes[i];
    }
    struct candidates k = {L, q->answer.asked, op, &rule, factor_dim, all, json_array()};
    hv__keep_json(L, k.list);
    if (!hv_choice_each(&rule, &q->answer.asked->mesh, 0, MOST, add_candidate, &k)) {
        return luaL_error(L, "%s: the operator has more than %d ways", fn, MOST);
    }
    hv__push_json(L, k.list);
    return 1;
}

/***
Completes layouts: from those of a few tensors to those of all. "choose" decides between
contradictions as GSPMD does, "stop" leaves them and reports them.
@function hv.shard.propagate
@tparam handle graph in long form
@tparam table shards {tensor = {axis = dim} or {dim = {axes, the major one first}}}
@tparam table q {mesh = list of {axis, devices}, conflict = "choose" or "stop"}
@treturn table {layouts = {tensor = {dim = {axes}}}, conflicts = list of names of operators}
@units none
@raise unknown tensors, dimensions and axes, dimensions that do not divide
@usage local g = hv.graph{dims = {b = 8, m = 16, f = 32}, tensors = {x = {dims = {"b", "m"}},
  up = {dims = {"m", "f"}}}, ops = {{id = "h", op = "einsum", ["in"] = {"x", "up"}, out = {"b",
"f"}}, {id = "r", op = "relu", ["in"] = {"h"}, out = {"b", "f"}}}} local r = hv.shard.propagate(g,
{x = {d = "b"}}, {mesh = {{"d", 4}}}) assert(r.layouts.r.b[1] == "d" and #r.conflicts == 0)
*/
static int shard_propagate(lua_State *L)
{
    static const char *const keys[] = {"mesh", "conflict", NULL}, *const ways[] = {"choose",
                                                                                   "stop"};
    static const char fn[] = "hv.shard.propagate";
    const struct hv__graph *g = long_graph(L, fn);

    lua_settop(L, 3);
    hv__check_keys(L, 3, fn, keys);
    int how = hv__word(L, 3, fn, "conflict", ways, 2, 0);
    lua_getfield(L, 3, "mesh");
    json_t *mesh = mesh_at(L, 4, fn), *shards = shards_at(L, 2, fn, mesh);
    struct question *q = ask(L, g, mesh, shards, json_pack("{s:b}", "propagate_inputs", 1));
    solve(L, q, how == 1 ? HV_PROPAGATE_STOP : HV_PROPAGATE_CHOOSE);
    lua_createtable(L, 0, 2);
    set_layouts(L, q);
    json_t *conflicts = json_array();
    const struct hv_sharding *s = &q->answer.sharding;
    for (size_t i = 0; i < s->conflicts.n; i++) {
        uint32_t op = s->expansion.prims.prims[s->prim_of[s->conflicts.at[i].op]].op;
        json_array_append_new(conflicts, json_string(q->answer.asked->graph->ops[op].id));
    }
    push_tree(L, conflicts);
    lua_setfield(L, -2, "conflicts");
    return 1;
}

/***
The exchanges that a graph needs where tensors lie as `shards` says and all others follow.
@function hv.shard.lower
@tparam handle graph in long form
@tparam table shards {tensor = {axis = dim} or {dim = {axes, the major one first}}}
@tparam table mesh list of {axis, devices}, or {axis = devices} in the order of the names
@tparam[opt] table q {grad = also the gradients of all parameters (false), outputs = names of the
results (those that nobody reads)}
@treturn table {exchanges = list of {op, kind, axes, devices, local_bytes, sent_bytes}, counts =
{kind = how many}, sent_bytes, argument_bytes, output_bytes, layouts = {tensor = {dim = {axes}}}}
@units bytes per device; sent_bytes by rings
@raise unknown tensors, dimensions and axes, dimensions that do not divide, operators without
gradient
@usage local g = hv.graph{dims = {b = 8, m = 1024, h = 1024}, tensors = {x = {dims = {"b", "m"}},
  w = {dims = {"m", "h"}, role = "parameter"}},
  ops = {{id = "y", op = "einsum", ["in"] = {"x", "w"}, out = {"b", "h"}}}}
local r = hv.shard.lower(g, {x = {d = "m"}, w = {d = "m"}}, {{"d", 4}}, {outputs = {"y"}})
assert(r.counts.all_reduce == 1 and r.sent_bytes == 49152)
*/
static int shard_lower(lua_State *L)
{
    static const char *const keys[] = {"grad", "outputs", NULL};
    static const char fn[] = "hv.shard.lower";
    const struct hv__graph *g = long_graph(L, fn);
    struct hv_err err = {0};

    lua_settop(L, 4);
    if (lua_isnil(L, 4)) {
        lua_newtable(L);
        lua_replace(L, 4);
    }
    hv__check_keys(L, 4, fn, keys);
    json_t *mesh = mesh_at(L, 3, fn), *shards = shards_at(L, 2, fn, mesh);
    json_t *more = hv__to_json(L, 4, &err);
    if (more == NULL) {
        return hv__raise(L, &err);
    }
    if (!json_is_object(more)) { /* an empty table */
        json_decref(more);
        more = json_object();
    }
    json_object_set_new(more, "propagate_inputs", json_true());
    struct question *q = ask(L, g, mesh, shards, more);
    solve(L, q, HV_PROPAGATE_CHOOSE);
    const struct hv_sharding *s = &q->answer.sharding;
    size_t counts[HV_EXCHANGE_N] = {0};
    lua_createtable(L, 0, 6);
    push_tree(L, hv_shard_exchanges_json(&q->answer));
    lua_setfield(L, -2, "exchanges");
    for (size_t i = 0; i < s->lowered.n; i++) {
        counts[s->lowered.exchange[i].exchange.kind]++;
    }
    lua_newtable(L);
    for (size_t k = 0; k < HV_EXCHANGE_N; k++) {
        hv__set_num(L, hv_exchange_name((enum hv_exchange_kind)k),
                    counts[k] > 0 ? (double)counts[k] : HV_UNKNOWN);
    }
    lua_setfield(L, -2, "counts");
    hv__set_num(L, "sent_bytes", s->lowered.sent_bytes);
    hv__set_num(L, "argument_bytes", s->argument_bytes);
    hv__set_num(L, "output_bytes", s->output_bytes);
    set_layouts(L, q);
    return 1;
}

/* ---- resharding ------------------------------------------------------------------------------ */

/** A layout on its way from {dim: [axes]}; "partial" and "partial-max" are dims too. */
static struct hv_layout read_layout(lua_State *L, const json_t *layout, const json_t *dims,
                                    const json_t *axes, const struct hv_mesh *m)
{
    struct hv_layout l = hv_layout_whole(json_object_size(dims));
    const char *dim;
    json_t *list, *axis;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)layout, dim, list)
    {
        json_array_foreach(list, i, axis)
        {
            const char *name = json_string_value(axis);
            const json_t *number = name != NULL ? json_object_get(axes, name) : NULL;
            if (number == NULL) {
                luaL_error(L, "hv.shard.reshard: the mesh has no axis \"%s\"", name ? name : "?");
            }
            size_t a = (size_t)json_integer_value(number);
            uint32_t atoms = hv_mesh_axis_atoms(m, a);
            if ((hv_layout_used(&l) & atoms) != 0) {
                luaL_error(L, "hv.shard.reshard: the axis \"%s\" is used twice in a layout", name);
            }
            if (strcmp(dim, "partial") == 0) {
                l.sum |= atoms;
            } else if (strcmp(dim, "partial-max") == 0) {
                l.max |= atoms;
            } else {
                size_t d = (size_t)json_integer_value(json_object_get(dims, dim));
                for (uint8_t k = m->first[a]; k < m->first[a + 1]; k++) {
                    hv_axes_push(&l.dim[d], k);
                }
            }
        }
    }
    return l;
}

/** Adds the dimensions of a layout that are not there yet, numbered. */
static void add_dims(json_t *dims, const json_t *layout)
{
    const char *dim;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)layout, dim, v)
    {
        if (json_object_get(dims, dim) == NULL && strncmp(dim, "partial", 7) != 0) {
            json_object_set_new(dims, dim, json_integer((json_int_t)json_object_size(dims)));
        }
    }
}

/** A layout at i, {axis = dim} or {dim = axes}, as {dim: [axes]}. */
static json_t *layout_at(lua_State *L, int i, const json_t *mesh)
{
    struct hv_err err = {0};
    luaL_checktype(L, i, LUA_TTABLE);
    json_t *given = hv__to_json(L, i, &err);
    if (given == NULL) {
        hv__raise(L, &err);
    }
    hv__keep_json(L, given);
    json_t *layout = layout_of(mesh, given);
    hv__keep_json(L, layout);
    return layout;
}

/** Sets `pairs` of the table at the top: who sends what to whom. */
static void set_pairs(lua_State *L, const struct hv_mesh *m, const struct hv_shape *shape,
                      const struct hv_layout *from, const struct hv_layout *to, double scale)
{
    enum { MOST = 1024 }; /* devices: pairs are their product */
    if (from->sum != 0 || from->max != 0 || to->sum != 0 || to->max != 0 || m->n_devices > MOST) {
        return;
    }
    struct hv_pieces p = hv_overlap_pieces(m, from, m, to, shape, &hv__host(L)->arena);
    lua_createtable(L, (int)p.n, 0);
    for (size_t i = 0, n = 0; i < p.n; i++) {
        if (p.piece[i].from == p.piece[i].to) {
            continue;
        }
        lua_createtable(L, 3, 0);
        lua_pushinteger(L, (lua_Integer)p.piece[i].from + 1);
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, (lua_Integer)p.piece[i].to + 1);
        lua_rawseti(L, -2, 2);
        lua_pushnumber(L, p.piece[i].bytes * scale);
        lua_rawseti(L, -2, 3);
        lua_rawseti(L, -2, (lua_Integer)++n);
    }
    lua_setfield(L, -2, "pairs");
}

/** Pushes the steps of a path. */
static void push_steps(lua_State *L, const struct hv_shard_case *c, const struct hv_reshard *r,
                       double scale)
{
    lua_createtable(L, (int)r->n, 0);
    for (size_t i = 0; i < r->n; i++) {
        const struct hv_exchange *x = &r->step[i].exchange;
        lua_createtable(L, 0, 4);
        hv__set_text(L, "kind", hv_exchange_name(x->kind));
        hv__set_num(L, "devices", (double)x->group);
        hv__set_num(L, "bytes", x->sent_bytes * scale);
        push_tree(L, hv_shard_axes_json(c, x->atoms));
        lua_setfield(L, -2, "axes");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/** The mesh as the engine has it, its axes in `axes` by name → number. */
static void make_mesh(lua_State *L, const json_t *mesh, struct hv_shard_case *c, json_t *axes)
{
    int64_t sizes[HV_MESH_AXES];
    struct hv_err err = {0};
    const char *name;
    json_t *size;
    size_t n = 0;
    c->axis = hv__scratch_new(L, const char *, HV_MESH_AXES);
    json_object_foreach((json_t *)(uintptr_t)mesh, name, size)
    {
        if (n == HV_MESH_AXES) {
            luaL_error(L, "hv.shard.reshard: mesh: expected at most %d axes", HV_MESH_AXES);
        }
        c->axis[n] = name;
        sizes[n] = json_integer_value(size);
        json_object_set_new(axes, name, json_integer((json_int_t)n++));
    }
    if (hv_mesh_make(&c->mesh, sizes, n, &err) != HV_OK) {
        hv__raise(L, &err);
    }
}

/***
The cheapest way from one layout of a tensor to another, by the bytes that devices send in rings.
@function hv.shard.reshard
@tparam table from {axis = dim} or {dim = {axes, the major one first}}; the dim "partial" (or
"partial-max"): devices along the axis hold summands (candidates for the largest)
@tparam table to likewise {axis = dim} or {dim = {axes}}
@tparam number bytes of the whole tensor; its dimensions divide by all axes
@tparam table mesh list of {axis, devices}, or {axis = devices} in the order of the names
@treturn table {bytes, steps = list of {kind, axes, devices, bytes}, pairs = list of {from, to,
bytes} between devices (missing with partial values, and for more than 1024 devices)}
@units bytes per device; devices are numbers from 1, the last axis is the fastest
@raise unknown axes, an axis that is used twice, more than 8 dimensions
@usage local r = hv.shard.reshard({x = "partial"}, {}, 32768, {{"x", 4}})
assert(r.steps[1].kind == "all_reduce" and r.bytes == 49152)
*/
static int shard_reshard(lua_State *L)
{
    static const char fn[] = "hv.shard.reshard";
    struct hv_shard_case c = {0};
    struct hv_reshard r;
    struct hv_err err = {0};
    double bytes = luaL_checknumber(L, 3);

    luaL_argcheck(L, bytes >= 0 && bytes < 1e300, 3, "expected bytes");
    json_t *mesh = mesh_at(L, 4, fn), *axes = json_object(), *dims = json_object();
    hv__keep_json(L, axes);
    hv__keep_json(L, dims);
    json_t *from = layout_at(L, 1, mesh), *to = layout_at(L, 2, mesh);
    make_mesh(L, mesh, &c, axes);
    add_dims(dims, from);
    add_dims(dims, to);
    size_t n = json_object_size(dims);
    if (n > HV_SHARD_DIMS) {
        return luaL_error(L, "%s: expected at most %d dimensions", fn, HV_SHARD_DIMS);
    }
    struct hv_shape shape = {.n_dims = (uint8_t)n, .element_bytes = 1};
    double total = 1;
    for (size_t d = 0; d < n; d++) {
        shape.size[d] = c.mesh.n_devices;
        total *= (double)c.mesh.n_devices;
    }
    struct hv_layout a = read_layout(L, from, dims, axes, &c.mesh);
    struct hv_layout b = read_layout(L, to, dims, axes, &c.mesh);
    if (hv_reshard_path(&c.mesh, &shape, &a, &b, NULL, &hv__host(L)->arena, &r, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    double scale = bytes / total;
    lua_createtable(L, 0, 3);
    hv__set_num(L, "bytes", r.sent_bytes * scale);
    push_steps(L, &c, &r, scale);
    lua_setfield(L, -2, "steps");
    set_pairs(L, &c.mesh, &shape, &a, &b, scale);
    return 1;
}

void hv__api_shard(lua_State *L)
{
    static const luaL_Reg rows[] = {{"candidates", shard_candidates},
                                    {"propagate", shard_propagate},
                                    {"reshard", shard_reshard},
                                    {"lower", shard_lower},
                                    {NULL, NULL}};

    luaL_newmetatable(L, QUESTION);
    lua_pushcfunction(L, question_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    hv__api_add(L, "shard", rows);
}
