/* Handles of operator graphs: from tables, read by the reader of files. */
#include "scripting/api/graph/handle.h"

#include "solver/base/units.h"
#include "solver/io/own/graph/long_form.h"
#include "solver/workload/graph/work.h"
#include <string.h>

#define TREE "hv.tree"

static int tree_gc(lua_State *L)
{
    json_t **t = lua_touserdata(L, 1);
    json_decref(*t);
    *t = NULL;
    return 0;
}

void hv__keep_json(lua_State *L, json_t *v)
{
    json_t **t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = v;
    if (luaL_newmetatable(L, TREE)) {
        lua_pushcfunction(L, tree_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
}

struct hv__graph *hv__graph_at(lua_State *L, int i)
{
    struct hv__graph *g = luaL_checkudata(L, i, HV__GRAPH);
    hv__check_stop(L);
    return g;
}

size_t hv__graph_op_at(lua_State *L, int i, const struct hv__graph *g, const char *fn)
{
    if (lua_isinteger(L, i)) {
        lua_Integer k = lua_tointeger(L, i);
        if (k < 1 || k > (lua_Integer)g->n_ops) {
            luaL_error(L, "%s: expected an operator from 1 to %d, found %I", fn, (int)g->n_ops,
                       (LUAI_UACINT)k);
        }
        return (size_t)k - 1;
    }
    const char *id = luaL_checkstring(L, i);
    for (size_t k = 0; k < g->n_ops; k++) {
        if (strcmp(g->ops[k].id, id) == 0) {
            return k;
        }
    }
    luaL_error(L, "%s: the graph has no operator \"%s\"", fn, id);
    return 0;
}

/* ---- long form ------------------------------------------------------------------------------- */

static double parameters_of(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    double sum = 0;
    for (size_t i = 0; i < op->n_in; i++) {
        const struct hv_tensor *t = &g->tensors[op->in[i].tensor];
        sum += t->role == HV_TENSOR_PARAMETER ? hv_tensor_elements(g, t) : 0;
    }
    return sum;
}

static void long_ops(struct hv__graph *h, const struct hv_tensor_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_ops; i++) {
        n += g->ops[i].n_in;
    }
    struct hv_precedence_edge *edges = hv_arena_new(&h->arena, struct hv_precedence_edge, n + 1);
    h->edge_bytes = hv_arena_new(&h->arena, double, n + 1);
    h->ops = hv_arena_new(&h->arena, struct hv__graph_op, g->n_ops + 1);
    h->n_ops = h->flow.n_nodes = g->n_ops;
    for (size_t i = 0; i < g->n_ops; i++) {
        const struct hv_tensor_op *op = &g->ops[i];
        const struct hv_tensor *out = &g->tensors[op->out];
        h->ops[i] = (struct hv__graph_op){
            op->id, hv_op_kind_row(op->kind)->name, hv_tensor_op_flops(g, op), parameters_of(g, op),
            hv_tensor_elements(g, out) * (double)hv_dtype_bytes(out->dtype)};
        size_t first = h->flow.n_edges;
        for (size_t k = 0; k < op->n_in; k++) {
            size_t from = op->in[k].tensor - g->n_given, e = first;
            while (e < h->flow.n_edges && edges[e].from != from) {
                e++;
            }
            if (op->in[k].tensor >= g->n_given && e == h->flow.n_edges) {
                h->edge_bytes[e] = h->ops[from].output_bytes;
                edges[h->flow.n_edges++] = (struct hv_precedence_edge){from, i};
            }
        }
    }
    h->flow.edges = edges;
}

static enum hv_status read_long(struct hv__graph *h, const struct hv_jp *root, struct hv_err *err)
{
    struct hv_tensor_graph *g = hv_arena_new(&h->arena, struct hv_tensor_graph, 1);
    enum hv_status st = hv_long_graph_read(root, &h->arena, g, err);
    if (st == HV_OK) {
        h->tensors = g;
        long_ops(h, g);
    }
    return st;
}

/* ---- operators and edges --------------------------------------------------------------------- */

static enum hv_status read_row(struct hv__graph *h, const struct hv_jp *p, size_t i,
                               struct hv_err *err)
{
    struct hv__graph_op *o = &h->ops[i];
    const char *id = NULL, *op = "op";
    *o = (struct hv__graph_op){NULL, NULL, HV_UNKNOWN, HV_UNKNOWN, HV_UNKNOWN};
    enum hv_status st = hv_jp_opt_string(p, "id", &id, err);
    st = st ? st : hv_jp_opt_string(p, "op", &op, err);
    st = st ? st : hv_jp_opt_number(p, "flops", 0, 1e300, &o->flops, err);
    st = st ? st : hv_jp_opt_number(p, "parameters", 0, 1e300, &o->parameters, err);
    st = st ? st : hv_jp_opt_number(p, "output_bytes", 0, 1e300, &o->output_bytes, err);
    o->id =
        id != NULL ? hv_arena_strdup(&h->arena, id) : hv_arena_printf(&h->arena, "op%zu", i + 1);
    o->op = hv_arena_strdup(&h->arena, op);
    return st;
}

static enum hv_status read_edge(struct hv__graph *h, const struct hv_jp *p,
                                struct hv_precedence_edge *e, double *bytes, struct hv_err *err)
{
    struct hv_jp from = hv_jp_at(p, 0), to = hv_jp_at(p, 1);
    int64_t a = 0, b = 0;
    size_t n = 0;
    enum hv_status st = hv_jp_array(p, &n, err);
    if (st == HV_OK && (n < 2 || n > 3)) {
        return hv_jp_fail(p, err, "expected {from, to} or {from, to, bytes}");
    }
    st = st ? st : hv_jp_int(&from, 1, (int64_t)h->n_ops, &a, err);
    st = st ? st : hv_jp_int(&to, 1, (int64_t)h->n_ops, &b, err);
    *e = (struct hv_precedence_edge){(size_t)a - 1, (size_t)b - 1};
    *bytes = st == HV_OK ? hv_or(h->ops[e->from].output_bytes, 0) : 0;
    if (st == HV_OK && n == 3) {
        struct hv_jp at = hv_jp_at(p, 2);
        st = hv_jp_number(&at, 0, 1e300, bytes, err);
    }
    return st;
}

static enum hv_status read_short(struct hv__graph *h, const struct hv_jp *root, struct hv_err *err)
{
    struct hv_jp ops, list = hv_jp_get(root, "edges");
    size_t n = 0;
    enum hv_status st = hv_jp_need(root, "ops", "a list of operators", &ops, err);
    st = st ? st : hv_jp_array(&ops, &h->n_ops, err);
    st = st || hv_jp_none(&list) ? st : hv_jp_array(&list, &n, err);
    if (st) {
        return st;
    }
    struct hv_precedence_edge *edges = hv_arena_new(&h->arena, struct hv_precedence_edge, n + 1);
    h->edge_bytes = hv_arena_new(&h->arena, double, n + 1);
    h->ops = hv_arena_new(&h->arena, struct hv__graph_op, h->n_ops + 1);
    for (size_t i = 0; st == HV_OK && i < h->n_ops; i++) {
        struct hv_jp at = hv_jp_at(&ops, i);
        st = read_row(h, &at, i, err);
    }
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_edge(h, &at, &edges[i], &h->edge_bytes[i], err);
    }
    h->flow = (struct hv_precedence){h->n_ops, n, edges};
    return st;
}

/* ---- handles --------------------------------------------------------------------------------- */

struct hv__graph *hv__graph_push(lua_State *L, json_t *doc, const char *fn)
{
    struct hv_err err = {0};
    struct hv_json json = {0};
    hv__keep_json(L, doc); /* until the handle holds it */
    struct hv__graph *g = lua_newuserdatauv(L, sizeof *g, 0);
    memset(g, 0, sizeof *g);
    luaL_setmetatable(L, HV__GRAPH);
    g->doc = json_incref(doc);
    lua_remove(L, -2);
    hv_json_wrap(&json, json_incref(doc), fn);
    struct hv_jp root = hv_jp_root(&json);
    struct hv_jp tensors = hv_jp_get(&root, "tensors");
    enum hv_status st =
        hv_jp_none(&tensors) ? read_short(g, &root, &err) : read_long(g, &root, &err);
    hv_json_free(&json);
    if (st != HV_OK) {
        hv__raise(L, &err);
    }
    return g;
}
