/*
 * The model as lists: its layers, and its operators with the data flows between them. Counts come
 * from solver/workload; prices are in api_cost*.c.
 */
#include "scripting/api/input_int.h"
#include "solver/base/units.h"

#include <stdio.h>

bool hv__model_has_layers(const struct hv_model *m)
{
    for (size_t i = 0; i < m->n_modules; i++) {
        if (!hv__model_has_layers(m->modules[i].model)) {
            return false;
        }
    }
    return m->kind != HV_MODEL_GRAPH;
}

static double block_parameters(const struct hv_model *m, size_t i)
{
    if (m->kind == HV_MODEL_LAYERS) {
        return m->measured[i].parameter_bytes / 2;
    }
    const struct hv_block *b = &m->blocks[i];
    return hv_block_attention_parameters(m, b) + hv_block_ffn_parameters(m, b) +
           hv_block_expert_parameters(m, b);
}

/** Sizes of a block of a transformer as members of the table on top. */
static void add_block_sizes(lua_State *L, const struct hv_model *m, const struct hv_block *b)
{
    hv__set_num(L, "heads", b->heads);
    hv__set_num(L, "kv_heads", b->kv_heads);
    hv__set_num(L, "head_dim", b->head_dim);
    hv__set_num(L, "experts", b->experts);
    hv__set_num(L, "ffn", b->ffn);
    if (b->attends > 0) {
        hv__set_text(L, "attends", m->token_dims[b->attends - 1].name);
    }
    if (b->experts > 0) {
        hv__set_num(L, "top_k", b->top_k);
        hv__set_num(L, "expert_ffn", b->expert_ffn);
        hv__set_num(L, "expert_parameters", hv_block_expert_parameters(m, b) / b->experts);
    }
}

/** Appends the layers of one leaf of the model to the list on top. */
static void add_layers(lua_State *L, const struct hv_model_leaf *leaf)
{
    const struct hv_model *m = leaf->model;

    for (size_t i = 0; i < m->n_blocks; i++) {
        lua_createtable(L, 0, 8);
        hv__set_num(L, "parameters", block_parameters(m, i));
        if (leaf->name != NULL) {
            hv__set_text(L, "module", leaf->name);
        }
        if (m->kind == HV_MODEL_LAYERS) {
            hv__set_text(L, "name", m->measured[i].name);
        } else {
            add_block_sizes(L, m, &m->blocks[i]);
        }
        lua_rawseti(L, -2, (lua_Integer)(leaf->first + i) + 1);
    }
}

/***
The layers (blocks) of the model in order; of a model of modules, those of all modules one after the
other.
@function model:layers
@treturn table list of {parameters, heads, kv_heads, head_dim, experts, ffn}, of measured layers
{parameters, name}; ffn is the width of the feed-forward; attends = the dimension of the tokens that
attention is along, where it is not along all tokens; layers with experts also have top_k = experts
of a token, expert_ffn and expert_parameters = of one expert; in a model of modules also module, its
name
@units none: counts
@raise a model of kind graph, or with such a module, which has no layers
@usage print(#ctx.model:layers(), ctx.model:layers()[1].parameters)
*/
int hv__model_layers(lua_State *L)
{
    const struct hv_model *m = hv__inputs_at(L, HV__MODEL)->model.model;
    size_t n = hv_model_n_leaves(m);
    struct hv_model_leaf *leaves = lua_newuserdatauv(L, n * sizeof *leaves, 0);

    if (!hv__model_has_layers(m)) {
        return luaL_error(L, "model:layers: a model of kind %s has no layers",
                          hv_model_kind_name(m->kind));
    }
    hv_model_leaves(m, leaves);
    lua_createtable(L, (int)m->n_blocks, 0);
    for (size_t i = 0; i < n; i++) {
        add_layers(L, &leaves[i]);
    }
    return 1;
}

/***
The dimensions that the tokens of a sequence are spread over, as time and space of a video.
@function model:tokens
@treturn table list of {name, size}; empty where a sequence has one dimension
@units none: counts
@raise none
@usage for _, dim in ipairs(ctx.model:tokens()) do print(dim.name, dim.size) end
*/
int hv__model_tokens(lua_State *L)
{
    const struct hv_model *m = hv__inputs_at(L, HV__MODEL)->model.model;

    lua_createtable(L, (int)m->n_token_dims, 0);
    for (size_t i = 0; i < m->n_token_dims; i++) {
        lua_createtable(L, 0, 2);
        hv__set_text(L, "name", m->token_dims[i].name);
        hv__set_num(L, "size", (double)m->token_dims[i].size);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/** One operator on its way to Lua. */
struct op {
    const char *id, *name;
    size_t layer; /**< from 1; 0: none */
    double flops, parameters, output_bytes;
};

/** Appends the row to the list `ops` at index `at`. */
static void add_op(lua_State *L, int ops, const struct op *o)
{
    lua_createtable(L, 0, 6);
    hv__set_text(L, "id", o->id);
    hv__set_text(L, "op", o->name);
    if (o->layer > 0) {
        hv__set_num(L, "layer", (double)o->layer);
    }
    hv__set_num(L, "flops", o->flops);
    hv__set_num(L, "parameters", o->parameters);
    hv__set_num(L, "output_bytes", o->output_bytes);
    lua_rawseti(L, ops, (lua_Integer)lua_rawlen(L, ops) + 1);
}

/** Appends {from, to, bytes} (from 1) to the list at index `edges`. */
static void add_edge(lua_State *L, int edges, size_t from, size_t to, double bytes)
{
    lua_createtable(L, 3, 0);
    lua_pushinteger(L, (lua_Integer)from);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, (lua_Integer)to);
    lua_rawseti(L, -2, 2);
    lua_pushnumber(L, hv_or(bytes, 0));
    lua_rawseti(L, -2, 3);
    lua_rawseti(L, edges, (lua_Integer)lua_rawlen(L, edges) + 1);
}

/** Arguments of model:graph. */
struct asked {
    const struct hv_model *m;
    const struct hv_job *job;
    size_t first, last; /**< layers, from 0, half open */
    bool fine;
};

/** Operators of one block of a transformer: one, or attention and feed-forward apart. */
static void add_block(lua_State *L, int ops, const struct asked *a, size_t i, double hand_on)
{
    const struct hv_model *m = a->m;
    const struct hv_block *b = &m->blocks[i];
    double tokens = m->patch_tokens > 0 ? m->patch_tokens : (double)a->job->sequence;
    double attention =
        tokens * (hv_block_attention_flops(m, b) + hv_block_core_flops(b, tokens, m->causal));
    double ffn = tokens * hv_block_ffn_flops(m, b);
    double ffn_parameters = hv_block_ffn_parameters(m, b) + hv_block_expert_parameters(m, b);
    char id[48];

    if (!a->fine) {
        (void)snprintf(id, sizeof id, "layer%zu", i + 1);
        add_op(L, ops,
               &(struct op){id, "layer", i + 1, attention + ffn,
                            hv_block_attention_parameters(m, b) + ffn_parameters, hand_on});
        return;
    }
    (void)snprintf(id, sizeof id, "layer%zu.attention", i + 1);
    add_op(L, ops,
           &(struct op){id, "attention", i + 1, attention, hv_block_attention_parameters(m, b),
                        hand_on});
    (void)snprintf(id, sizeof id, "layer%zu.ffn", i + 1);
    add_op(
        L, ops,
        &(struct op){id, b->experts > 0 ? "experts" : "ffn", i + 1, ffn, ffn_parameters, hand_on});
}

/** The chain of a transformer or of measured layers. */
static void add_chain(lua_State *L, int ops, int edges, const struct asked *a)
{
    const struct hv_model *m = a->m;
    bool measured = m->kind == HV_MODEL_LAYERS;
    double tokens = m->patch_tokens > 0 ? m->patch_tokens : (double)a->job->sequence;
    double hand_on = hv_job_activation_bytes(a->job) * tokens * m->hidden;

    if (!measured && a->first == 0) {
        add_op(L, ops,
               &(struct op){"embedding", "embedding", 0, 0, hv_model_embedding_parameters(m),
                            hand_on});
    }
    for (size_t i = a->first; i < a->last; i++) {
        const struct hv_measured_layer *l = measured ? &m->measured[i] : NULL;
        if (measured) {
            add_op(L, ops,
                   &(struct op){l->name, "layer", i + 1, HV_UNKNOWN, l->parameter_bytes / 2,
                                l->output_bytes});
        } else {
            add_block(L, ops, a, i, hand_on);
        }
    }
    if (!measured && a->last == m->n_blocks) {
        add_op(L, ops,
               &(struct op){"head", "head", 0, 2 * tokens * m->hidden * m->vocab,
                            hv_model_head_parameters(m), HV_UNKNOWN});
    }
    for (size_t i = 1; i < lua_rawlen(L, ops); i++) {
        lua_rawgeti(L, ops, (lua_Integer)i);
        lua_getfield(L, -1, "output_bytes");
        add_edge(L, edges, i, i + 1, lua_tonumber(L, -1));
        lua_pop(L, 2);
    }
}

/** Pushes a list of names. */
static void push_names(lua_State *L, const char *const *names, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/** Operators, edges and dimensions of a graph as its file has them. */
static void add_graph(lua_State *L, int ops, int edges, const struct hv_model *m)
{
    for (size_t i = 0; i < m->n_ops; i++) {
        const struct hv_graph_op *o = &m->ops[i];
        add_op(L, ops,
               &(struct op){o->id, o->op, 0, hv_graph_op_flops(m, o), o->parameter_bytes / 2,
                            o->bytes});
        lua_rawgeti(L, ops, (lua_Integer)i + 1);
        hv__set_num(L, "time_s", o->time_s);
        hv__set_text(L, "group", o->group);
        hv__set_text(L, "device_class", o->device_class);
        push_names(L, o->out_dims, o->n_out_dims);
        lua_setfield(L, -2, "out");
        push_names(L, o->contract_dims, o->n_contract_dims);
        lua_setfield(L, -2, "contract");
        lua_pop(L, 1);
    }
    for (size_t i = 0; i < m->n_edges; i++) {
        add_edge(L, edges, m->edges[i].from + 1, m->edges[i].to + 1,
                 m->ops[m->edges[i].from].bytes);
    }
}

static void add_modules(lua_State *L, int ops, int edges, const struct asked *a)
{
    const struct hv_model *m = a->m;

    for (size_t i = 0; i < m->n_modules; i++) {
        const struct hv_model *inner = m->modules[i].model;
        double flops = hv_model_forward_flops(inner, (double)a->job->sequence, inner->causal);
        add_op(L, ops,
               &(struct op){m->modules[i].name, "module", 0, flops, hv_model_parameters(inner),
                            HV_UNKNOWN});
    }
    for (size_t i = 0; i < m->n_edges; i++) {
        add_edge(L, edges, m->edges[i].from + 1, m->edges[i].to + 1, 0);
    }
}

/** The field `stage` of the table at 2 as a range of layers. */
static void read_stage(lua_State *L, struct asked *a)
{
    size_t n = 0;

    if (lua_getfield(L, 2, "stage") != LUA_TNIL) {
        const double *r = hv__numbers(L, 2, "model:graph", "stage", &n);
        if (n != 2 || !(r[0] >= 1 && r[1] >= r[0] && r[1] <= (double)a->last)) {
            luaL_error(L, "model:graph: stage: expected {first, last} from 1 to %d", (int)a->last);
        }
        a->first = (size_t)r[0] - 1;
        a->last = (size_t)r[1];
    }
    lua_pop(L, 1);
}

/***
The model as operators and the data flows between them: the chain of a transformer or of measured
layers, the operators of a graph model, or the modules.
@function model:graph
@tparam[opt] table q {stage = {first, last} layers (all), fine = attention and feed-forward as
operators of their own (false)}; both only for models with layers
@treturn table {ops = list of {id, op, layer, flops (forward), parameters, output_bytes, of graph
models also time_s, group, device_class, out, contract = lists of dimensions}, edges = list of
{from, to, bytes}, dims = {name = size}}; unknown values are missing, or 0 in an edge
@units FLOP and bytes of one sequence; parameters are counts; layers and positions in ops from 1
@raise layers the model does not have, unknown keys
@usage local g = ctx.model:graph{stage = {1, 4}, fine = true}
local weights = {}
for i, op in ipairs(g.ops) do weights[i] = op.flops end
print(hv.opt.cut{weights = weights, edges = g.edges, parts = 2}.value)
*/
int hv__model_graph(lua_State *L)
{
    static const char *const keys[] = {"stage", "fine", NULL};
    const struct hv_inputs *in = hv__inputs_at(L, HV__MODEL);
    struct asked a = {.m = in->model.model, .job = &in->job.job};
    bool layers = a.m->kind == HV_MODEL_TRANSFORMER || a.m->kind == HV_MODEL_LAYERS;

    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    hv__check_keys(L, 2, "model:graph", keys);
    a.last = layers ? a.m->n_blocks : 0;
    read_stage(L, &a);
    a.fine = hv__bool(L, 2, "model:graph", "fine", false);
    lua_createtable(L, 0, 3);
    lua_newtable(L);
    int ops = lua_gettop(L);
    lua_newtable(L);
    if (layers) {
        add_chain(L, ops, ops + 1, &a);
    } else if (a.m->kind == HV_MODEL_GRAPH) {
        add_graph(L, ops, ops + 1, a.m);
    } else {
        add_modules(L, ops, ops + 1, &a);
    }
    lua_setfield(L, ops - 1, "edges");
    lua_setfield(L, ops - 1, "ops");
    lua_createtable(L, 0, (int)a.m->n_dims);
    for (size_t i = 0; i < a.m->n_dims; i++) {
        hv__set_num(L, a.m->dims[i].name, (double)a.m->dims[i].size);
    }
    lua_setfield(L, -2, "dims");
    return 1;
}
