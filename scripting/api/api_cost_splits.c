/*
 * hv.cost.splits: operators of a stage under all their splits. Every number comes from solver/cost.
 */
#include "scripting/api/cost_int.h"
#include "scripting/api/input_int.h"
#include "solver/cost/graph/splits.h"

/** What is on its way to Lua. */
struct reply {
    lua_State *L;
    const struct hv_splits *s;
};

/** Pushes {axis = place}: of the axes that split a dimension its number, from 1. */
static void push_layout(const struct reply *r, const struct hv_layout *l)
{
    lua_newtable(r->L);
    for (size_t d = 0; d < l->n_dims; d++) {
        for (size_t i = 0; i < l->dim[d].n; i++) {
            size_t axis = hv_mesh_axis_of(&r->s->mesh, l->dim[d].atom[i]);
            lua_pushinteger(r->L, (lua_Integer)d + 1);
            lua_setfield(r->L, -2, r->s->axis[axis]);
        }
    }
}

/** Pushes {axis = factor}: which loop of the operator each axis splits, from 1. */
static void push_choice(const struct reply *r, const struct hv_choice *c, size_t n_factors)
{
    lua_newtable(r->L);
    for (size_t f = 0; f < n_factors; f++) {
        for (size_t i = 0; i < c->factor[f].n; i++) {
            size_t axis = hv_mesh_axis_of(&r->s->mesh, c->factor[f].atom[i]);
            lua_pushinteger(r->L, (lua_Integer)f + 1);
            lua_setfield(r->L, -2, r->s->axis[axis]);
        }
    }
}

static void push_way(const struct reply *r, const struct hv_op_split *w, size_t n_in,
                     size_t n_factors)
{
    lua_State *L = r->L;
    lua_createtable(L, 0, 9);
    push_choice(r, &w->choice, n_factors);
    lua_setfield(L, -2, "split");
    lua_createtable(L, (int)n_in, 0);
    for (size_t k = 0; k < n_in; k++) {
        push_layout(r, &w->layouts[k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, "operands");
    push_layout(r, &w->layouts[n_in]);
    lua_setfield(L, -2, "out");
    hv__set_num(L, "forward_s", w->forward_s);
    hv__set_num(L, "backward_s", w->backward_s);
    hv__set_num(L, "exchange_s", w->exchange_s);
    hv__set_num(L, "sums_s", w->sums_s);
    hv__set_num(L, "parameters", w->parameters);
    hv__set_num(L, "kept_bytes", w->kept_bytes);
}

static void push_classes(const struct reply *r)
{
    lua_State *L = r->L;
    lua_createtable(L, (int)r->s->n_classes, 0);
    for (size_t c = 0; c < r->s->n_classes; c++) {
        const struct hv_split_class *x = &r->s->classes[c];
        lua_createtable(L, (int)x->n, 0);
        for (size_t i = 0; i < x->n; i++) {
            push_way(r, &x->split[i], r->s->graph.ops[x->op].n_in, x->n_factors);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_rawseti(L, -2, (lua_Integer)c + 1);
    }
}

/** Pushes the names of dimensions. */
static void push_dims(const struct reply *r, const uint32_t *dim, size_t n)
{
    lua_createtable(r->L, (int)n, 0);
    for (size_t d = 0; d < n; d++) {
        lua_pushstring(r->L, r->s->graph.dims[dim[d]].name);
        lua_rawseti(r->L, -2, (lua_Integer)d + 1);
    }
}

/** The dimension of an operator that stands where `dim` stands in the first operator of its class;
 * HV_NO_DIM: nowhere. */
static uint32_t same_place(const struct reply *r, const struct hv_tensor_op *first,
                           const struct hv_tensor_op *op, uint32_t dim)
{
    const struct hv_tensor *t = r->s->graph.tensors;
    size_t at;
    if (dim == HV_NO_DIM) {
        return dim;
    }
    if (hv_dims_hold(t[first->out].dim, t[first->out].n_dims, dim, &at)) {
        return t[op->out].dim[at];
    }
    for (size_t k = 0; k < first->n_in; k++) {
        if (hv_dims_hold(first->in[k].dim, first->in[k].n_dims, dim, &at)) {
            return op->in[k].dim[at];
        }
    }
    return HV_NO_DIM;
}

static void push_factors(const struct reply *r, const struct hv_split_class *c,
                         const struct hv_tensor_op *op)
{
    const struct hv_tensor_op *first = &r->s->graph.ops[c->op];
    lua_createtable(r->L, (int)c->n_factors, 0);
    for (size_t f = 0; f < c->n_factors; f++) {
        uint32_t dim = same_place(r, first, op, c->factor_dim[f]);
        lua_pushstring(r->L, dim == HV_NO_DIM ? "" : r->s->graph.dims[dim].name);
        lua_rawseti(r->L, -2, (lua_Integer)f + 1);
    }
}

static void push_operands(const struct reply *r, const struct hv_tensor_op *op)
{
    lua_State *L = r->L;
    static const char *const role[] = {"input", "parameter", "state", "result"};
    lua_createtable(L, op->n_in, 0);
    for (size_t k = 0; k < op->n_in; k++) {
        const struct hv_tensor *t = &r->s->graph.tensors[op->in[k].tensor];
        lua_createtable(L, 0, 3);
        hv__set_text(L, "tensor", t->name);
        hv__set_text(L, "role", op->in[k].tensor < r->s->graph.n_given ? role[t->role] : "result");
        push_dims(r, t->dim, t->n_dims);
        lua_setfield(L, -2, "dims");
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
}

static void push_ops(const struct reply *r)
{
    lua_State *L = r->L;
    const struct hv_tensor_graph *g = &r->s->graph;
    lua_createtable(L, (int)g->n_ops, 0);
    for (size_t i = 0; i < g->n_ops; i++) {
        uint32_t class = r->s->class_of[i];
        const struct hv_tensor *out = &g->tensors[g->ops[i].out];
        lua_createtable(L, 0, 5);
        hv__set_text(L, "id", g->ops[i].id);
        lua_pushinteger(L, (lua_Integer) class + 1);
        lua_setfield(L, -2, "class");
        push_factors(r, &r->s->classes[class], &g->ops[i]);
        lua_setfield(L, -2, "factors");
        push_operands(r, &g->ops[i]);
        lua_setfield(L, -2, "operands");
        push_dims(r, out->dim, out->n_dims);
        lua_setfield(L, -2, "dims");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/** Pushes the list of edges; edges with the same seconds share their table. */
static void push_edges(const struct reply *r)
{
    lua_State *L = r->L;
    lua_createtable(L, (int)r->s->n_tables, 0);
    for (size_t t = 0; t < r->s->n_tables; t++) {
        const struct hv_split_table *x = &r->s->tables[t];
        lua_createtable(L, (int)x->n_from, 0);
        for (size_t i = 0; i < x->n_from; i++) {
            hv__push_numbers(L, x->s + i * x->n_to, x->n_to);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_rawseti(L, -2, (lua_Integer)t + 1);
    }
    lua_createtable(L, (int)r->s->n_edges, 0);
    for (size_t e = 0; e < r->s->n_edges; e++) {
        const struct hv_split_edge *x = &r->s->edges[e];
        lua_createtable(L, 3, 0);
        lua_pushinteger(L, (lua_Integer)x->from + 1);
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, (lua_Integer)x->to + 1);
        lua_rawseti(L, -2, 2);
        lua_rawgeti(L, -3, (lua_Integer)x->table + 1);
        lua_rawseti(L, -2, 3);
        lua_rawseti(L, -2, (lua_Integer)e + 1);
    }
    lua_remove(L, -2);
}

/***
Prices the operators of a stage, each by itself, under all the ways to split them over the stage's
mesh, and the ways between them: what hv.opt.graph_dp chooses from. Of a whole stage, exchanges
beside kernels that do not need them and operators that run together cost less than their sum.
@function hv.cost.splits
@tparam table q the stage's keys as in a plan file (devices, ops, mesh), and micro_batch; `shard`
does not count
@treturn table {ops = list of {id, class, factors = names of the dimensions that it loops over,
operands = list of {tensor, role, dims}, dims = of its result}, classes = for every class the list
of its ways {split = {axis = factor}, operands = list of {axis = place of a dimension}, out = {axis
= place}, forward_s, backward_s (kernels), exchange_s (both passes), sums_s (gradients of its
parameters), parameters, kept_bytes}, edges = list of {from, to, seconds by the way of `from` and
that of `to`}, for the operator that writes a tensor, or reads it first, and each other reader}; nil
and the reason for models other than graphs with tensors and operators that cannot be priced
@units seconds, bytes and parameters of one device for one micro-batch; operators, classes, factors,
places and ways are numbers from 1
@raise as hv.cost.stage
@usage if ctx.model.kind == "graph" then
  local devices = ctx.cluster:address{1, 2}
  local s = hv.cost.splits{devices = devices, ops = {"*"}, mesh = {x = 2}, micro_batch = 1}
  print(#s.ops, #s.classes[s.ops[1].class])
end
*/
int hv__cost_splits(lua_State *L)
{
    static const char fn[] = "hv.cost.splits";
    struct hv_splits s;
    struct hv_err err = {0};
    double in_flight = 1;
    struct hv__run *run = hv__run_of(L, fn);
    const struct hv__plan *p = hv__stage_plan(L, fn, &in_flight);
    struct hv_stage_query q = {.plan = p->doc.plan, .replica = &p->doc.plan->replicas[0]};

    enum hv_status st = hv_cost_splits(run->cost, &q, &hv__host(L)->arena, &s, &err);
    if (st == HV_ENO) {
        lua_pushnil(L);
        lua_pushstring(L, err.text);
        return 2;
    }
    if (st != HV_OK) {
        return hv__raise(L, &err);
    }
    struct reply r = {L, &s};
    luaL_checkstack(L, 20, NULL);
    lua_createtable(L, 0, 3);
    push_ops(&r);
    lua_setfield(L, -2, "ops");
    push_classes(&r);
    lua_setfield(L, -2, "classes");
    push_edges(&r);
    lua_setfield(L, -2, "edges");
    return 1;
}
