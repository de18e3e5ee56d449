/*
 * hv.cost: layer tables, stages, memory, collectives. Every number comes from solver/cost; nothing
 * is computed here but sums.
 */
#include "scripting/run_int.h"
#include "solver/base/units.h"

#include <math.h>
#include <string.h>

#define TABLE     "hv.layer_table"
#define BYTES_MAX 1e15

/** Prefix sums of one kind, all in one userdata: `x` holds n_kinds × 2 rows of n + 1, then
 * parameters and saved bytes. */
struct table {
    size_t n, n_kinds;
    double output_bytes;
    double ends[64][2]; /**< per kind: embedding and head, forward + backward */
    double x[];
};

const struct hv_device_kind *hv__kind_by_name(const struct hv_cluster *c, const char *name)
{
    for (size_t i = 0; i < c->n_kinds; i++)
        if (strcmp(c->kinds[i]->name, name) == 0)
            return c->kinds[i];
    return NULL;
}

/** Recompute word or units joined by +. */
static unsigned recompute_of(lua_State *L, int i, const char *fn)
{
    const char *text = hv__text(L, i, fn, "recompute", "none");
    unsigned mask = HV_RC_NONE;

    if (strcmp(text, "none") == 0)
        return HV_RC_NONE;
    if (strcmp(text, "full") == 0)
        return HV_RC_FULL;
    if (strcmp(text, "selective") == 0)
        return HV_RC_CORE;
    while (text != NULL) {
        size_t len = strcspn(text, "+"), bit = 0;
        while (bit < hv_recompute_N && (strlen(hv_recompute_words[bit]) != len ||
                                        strncmp(hv_recompute_words[bit], text, len) != 0))
            bit++;
        if (bit == hv_recompute_N)
            luaL_error(L, "%s: recompute: expected none, selective, full or units joined by +", fn);
        mask |= 1U << bit;
        text = text[len] == '+' ? text + len + 1 : NULL;
    }
    return mask;
}

struct hv_part_query hv__part_args(lua_State *L, const char *fn, const struct hv_job *job)
{
    return (struct hv_part_query){
        .tp = (int)hv__int(L, 1, fn, "tp", 1, 1, 4096),
        .cp = (int)hv__int(L, 1, fn, "cp", 1, 1, 4096),
        .ep = (int)hv__int(L, 1, fn, "ep", 1, 1, 4096),
        .sequence_parallel = hv__bool(L, 1, fn, "sequence_parallel", false),
        .sequences = hv__num(L, 1, fn, "micro_batch", 1, 1e-9, 1e9),
        .tokens = hv__num(L, 1, fn, "tokens", (double)job->sequence, 1, 1e9),
        .context = hv__num(L, 1, fn, "context", 0, 0, 1e9),
        .recompute = recompute_of(L, 1, fn)};
}

static double part_s(const struct hv_part_cost *p)
{
    return p->forward_s + p->input_grad_s + p->weight_grad_s + p->recompute_s + p->tp_forward_s +
           p->tp_backward_s;
}

/** The kinds named in `kinds`; when the field is missing all of the cluster that compute in the
 * precision. */
static size_t push_kinds(lua_State *L, int i, const struct hv_cluster *c, enum hv_precision p,
                         const struct hv_device_kind **out)
{
    size_t n = 0;

    if (lua_getfield(L, i, "kinds") == LUA_TNIL) {
        lua_pop(L, 1);
        for (size_t k = 0; k < c->n_kinds && n < 64; k++)
            if (hv_device_has(c->kinds[k], p))
                out[n++] = c->kinds[k];
        return n;
    }
    if (!lua_istable(L, -1) || lua_rawlen(L, -1) < 1 || lua_rawlen(L, -1) > 64)
        hv__bad(L, "hv.cost.layers", "kinds", "a list of 1 to 64 device kinds", -1);
    for (lua_Unsigned k = 1; k <= lua_rawlen(L, -1); k++) {
        lua_rawgeti(L, -1, (lua_Integer)k);
        const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        out[n] = hv__kind_by_name(c, name);
        if (out[n++] == NULL)
            hv__bad(L, "hv.cost.layers", "kinds", "names of device kinds in the cluster", -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return n;
}

/***
Prices every layer on every kind of device once; sums over ranges are then free.
@function hv.cost.layers
@tparam table q {kinds = list of names (default: all that compute in the precision), tp, cp, ep,
micro_batch, tokens, context, recompute, sequence_parallel}; times are those of one rank for one
micro-batch
@treturn handle layers: with time, bytes, times and sizes
@units tokens per sequence; context = tokens seen before these; tp, cp, ep are numbers of ranks;
micro_batch is a number of sequences
@raise unknown kinds, a device without the precision, a model that has no layers
@usage local t = hv.cost.layers{tp = 2, micro_batch = 1}
print(t:time(1, 4, ctx.cluster:groups()[1].kind, "both"))
*/
static int cost_layers(lua_State *L)
{
    static const char *const keys[] = {"kinds",   "tp",          "cp",
                                       "ep",      "micro_batch", "tokens",
                                       "context", "recompute",   "sequence_parallel",
                                       NULL};
    static const char fn[] = "hv.cost.layers";
    struct hv__run *r = hv__run_of(L, fn);
    const struct hv_job *job = hv_cost_job(r->cost);
    const struct hv_device_kind *kinds[64];
    struct hv_arena *arena = &hv__host(L)->arena;
    struct hv_err err = {0};

    hv__check_keys(L, 1, fn, keys);
    struct hv_part_query q = hv__part_args(L, fn, job);
    size_t n_kinds = push_kinds(L, 1, hv_cost_cluster(r->cost), job->precision, kinds);
    size_t n = hv_cost_model(r->cost)->n_blocks, row = n + 1;
    struct table *t = lua_newuserdatauv(L, sizeof *t + (2 * n_kinds + 2) * row * sizeof(double), 1);
    memset(t, 0, sizeof *t);
    t->n = n;
    t->n_kinds = n_kinds;
    luaL_setmetatable(L, TABLE);
    lua_newtable(L);
    struct hv_arena_mark mark = hv_arena_mark(arena);
    for (size_t k = 0; k < n_kinds; k++) {
        struct hv_layer_table lt = {0};
        q.device = kinds[k];
        if (hv_cost_layers(r->cost, &q, arena, &lt, &err) != HV_OK)
            return hv__raise(L, &err);
        memcpy(t->x + 2 * k * row, lt.forward_s, row * sizeof(double));
        memcpy(t->x + (2 * k + 1) * row, lt.backward_s, row * sizeof(double));
        memcpy(t->x + 2 * n_kinds * row, lt.parameters, row * sizeof(double));
        memcpy(t->x + (2 * n_kinds + 1) * row, lt.saved_bytes, row * sizeof(double));
        t->output_bytes = lt.output_bytes;
        t->ends[k][0] = part_s(&lt.embedding);
        t->ends[k][1] = part_s(&lt.head);
        lua_pushinteger(L, (lua_Integer)k);
        lua_setfield(L, -2, kinds[k]->name);
    }
    hv_arena_rewind(arena, mark);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

static const char *const phases[] = {"forward", "backward", "both", NULL};
static const char *const what_words[] = {"parameters", "saved", "output", NULL};

/** Seconds of the layers i … j − 1 (from 0) on the k-th kind. */
static double range_s(const struct table *t, size_t k, int phase, size_t i, size_t j)
{
    size_t row = t->n + 1;
    const double *f = t->x + 2 * k * row, *b = f + row;
    double s = (phase != 1 ? f[j] - f[i] : 0) + (phase != 0 ? b[j] - b[i] : 0);
    double share = phase == 2 ? 1 : phase == 0 ? 1.0 / 3 : 2.0 / 3;

    if (i == 0 && j > i)
        s += share * hv_or(t->ends[k][0], 0);
    if (j == t->n && j > i)
        s += share * hv_or(t->ends[k][1], 0);
    return s;
}

/** Range i … j (from 1, inclusive; empty when j = i − 1) as prefix positions. */
static void check_range(lua_State *L, const struct table *t, size_t *from, size_t *to)
{
    lua_Integer i = luaL_checkinteger(L, 2), j = luaL_checkinteger(L, 3);
    luaL_argcheck(L, i >= 1 && i <= (lua_Integer)t->n + 1, 2, "no layer has this number");
    luaL_argcheck(L, j >= i - 1 && j <= (lua_Integer)t->n, 3, "no layer has this number");
    *from = (size_t)(i - 1);
    *to = (size_t)j;
}

/** Position of the kind named at argument `arg`. */
static size_t kind_at(lua_State *L, int arg)
{
    const char *kind = luaL_checkstring(L, arg);

    lua_getiuservalue(L, 1, 1);
    luaL_argcheck(L, lua_getfield(L, -1, kind) == LUA_TNUMBER, arg,
                  "not one of the table's device kinds");
    size_t k = (size_t)lua_tointeger(L, -1);
    lua_pop(L, 2);
    return k;
}

/***
Seconds of a range of layers on a kind of device. Embedding and head count with the first and the
last layer. O(1).
@function layers:time
@tparam integer i first layer, from 1
@tparam integer j last layer, i − 1 for an empty range
@tparam string kind device kind
@tparam[opt] string phase forward, backward or both (the default)
@treturn number time of one micro-batch on one rank
@units seconds
@raise a layer that is not there, a kind the table was not made for
@usage local kind = ctx.cluster:groups()[1].kind
print(hv.cost.layers{tp = 2}:time(1, 4, kind, "forward"))
*/
static int table_time(lua_State *L)
{
    const struct table *t = luaL_checkudata(L, 1, TABLE);
    size_t i, j;

    check_range(L, t, &i, &j);
    size_t k = kind_at(L, 4);
    int phase = luaL_checkoption(L, 5, "both", phases);
    lua_pushnumber(L, range_s(t, k, phase, i, j));
    return 1;
}

/***
The times of all layers at once, for loops in Lua and for hv.opt.partition.
@function layers:times
@tparam string kind device kind
@tparam[opt] string phase forward, backward or both (the default)
@treturn table list of one number per layer, layers:time(i, i) each
@units seconds
@raise a kind the table was not made for
@usage local kind, n = ctx.cluster:groups()[1].kind, ctx.model.n_layers
local times = hv.cost.layers{tp = 2}:times(kind)
print(#times, hv.opt.partition{n = n, parts = 2, load = times}.value)
*/
static int table_times(lua_State *L)
{
    const struct table *t = luaL_checkudata(L, 1, TABLE);
    size_t k = kind_at(L, 2);
    int phase = luaL_checkoption(L, 3, "both", phases);

    lua_createtable(L, (int)t->n, 0);
    for (size_t i = 0; i < t->n; i++) {
        lua_pushnumber(L, range_s(t, k, phase, i, i + 1));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/***
What layers:bytes says of every layer, at once.
@function layers:sizes
@tparam[opt] string what parameters, saved (the default) or output
@treturn table list of one number per layer
@units bytes; parameters are a count
@raise another word
@usage print(#hv.cost.layers{}:sizes("parameters"))
*/
static int table_sizes(lua_State *L)
{
    const struct table *t = luaL_checkudata(L, 1, TABLE);
    int w = luaL_checkoption(L, 2, "saved", what_words);
    const double *p = t->x + (2 * t->n_kinds + (w == 1 ? 1 : 0)) * (t->n + 1);

    lua_createtable(L, (int)t->n, 0);
    for (size_t i = 0; i < t->n; i++) {
        lua_pushnumber(L, w == 2 ? t->output_bytes : p[i + 1] - p[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/***
Bytes of a range of layers, or how many parameters it has.
@function layers:bytes
@tparam integer i first layer, from 1
@tparam integer j last layer, i − 1 for an empty range
@tparam[opt] string what parameters, saved (the default) or output
@treturn number parameters: a count on one rank; saved: bytes kept from forward to backward for one
micro-batch; output: bytes handed on behind layer j by all ranks of a tensor group
@units bytes; parameters are a count
@raise a layer that is not there, another word
@usage local t = hv.cost.layers{tp = 2}
print(t:bytes(1, 4, "saved"), t:bytes(1, 4, "parameters"))
*/
static int table_bytes(lua_State *L)
{
    const struct table *t = luaL_checkudata(L, 1, TABLE);
    size_t i, j, row = t->n + 1;

    check_range(L, t, &i, &j);
    int w = luaL_checkoption(L, 4, "saved", what_words);
    const double *p = t->x + (2 * t->n_kinds + (w == 1 ? 1 : 0)) * row;
    lua_pushnumber(L, w == 2 ? t->output_bytes : p[j] - p[i]);
    return 1;
}

struct hv__plan *hv__stage_plan(lua_State *L, const char *fn, double *in_flight)
{
    size_t n_layers = hv_cost_model(hv__run_of(L, fn)->cost)->n_blocks;

    if (!lua_istable(L, 1))
        luaL_error(L, "%s: expected a table with the keys of a stage", fn);
    *in_flight = hv__num(L, 1, fn, "in_flight", 1, 0, 1e9);
    int64_t mb = hv__int(L, 1, fn, "micro_batch", 1, 1, 1 << 30);
    int64_t count = hv__int(L, 1, fn, "count", 1, 1, 1 << 30);
    lua_newtable(L); /* the stage without our own keys */
    for (lua_pushnil(L); lua_next(L, 1) != 0;) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        bool ours = strcmp(key, "in_flight") == 0 || strcmp(key, "micro_batch") == 0 ||
                    strcmp(key, "count") == 0 || strcmp(key, "ranges") == 0;
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        if (ours)
            lua_pop(L, 2);
        else
            lua_rawset(L, -4);
    }
    if (lua_getfield(L, -1, "layers") ==
        LUA_TTABLE) { /* embedding and head by position in the model */
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        bool first = lua_isnumber(L, -2) && lua_tonumber(L, -2) <= 0;
        bool last = lua_isnumber(L, -1) && lua_tonumber(L, -1) >= (double)n_layers;
        lua_pop(L, 2);
        lua_pushboolean(L, first);
        lua_setfield(L, -3, "embedding");
        lua_pushboolean(L, last);
        lua_setfield(L, -3, "head");
    }
    lua_pop(L, 1);
    lua_newtable(L); /* stages */
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    lua_newtable(L); /* replica */
    hv__set_num(L, "count", (double)count);
    hv__set_num(L, "micro_batches", 1);
    lua_insert(L, -2);
    lua_setfield(L, -2, "stages");
    lua_newtable(L); /* replicas */
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    lua_newtable(L); /* plan */
    hv__set_num(L, "micro_batch", (double)mb);
    lua_insert(L, -2);
    lua_setfield(L, -2, "replicas");
    return hv__plan_make(L, -1);
}

double hv__stage_peak_bytes(const struct hv_memory *m, const struct hv_pass *p, double in_flight)
{
    double held = 1 + m->fragmentation_frac;
    return m->weights_bytes + m->gradients_bytes + m->master_bytes + m->optimizer_bytes +
           m->overhead_bytes + held * (in_flight * p->activation_bytes + p->transient_bytes);
}

static void push_memory(lua_State *L, const struct hv_memory *m, const struct hv_pass *p,
                        double in_flight)
{
    double activations = in_flight * p->activation_bytes;
    double peak = hv__stage_peak_bytes(m, p, in_flight);
    double limit = m->limit_bytes - hv_or(m->reserve_bytes, 0);

    lua_createtable(L, 0, 11);
    hv__set_num(L, "weights", m->weights_bytes);
    hv__set_num(L, "gradients", m->gradients_bytes);
    hv__set_num(L, "optimizer", m->optimizer_bytes + m->master_bytes);
    hv__set_num(L, "activations", activations);
    hv__set_num(L, "activation_bytes", p->activation_bytes);
    hv__set_num(L, "transient", p->transient_bytes);
    hv__set_num(L, "overhead", m->overhead_bytes);
    hv__set_num(L, "fragmentation", m->fragmentation_frac);
    hv__set_num(L, "peak_bytes", peak);
    hv__set_num(L, "limit_bytes", limit);
    lua_pushboolean(L, peak <= limit);
    lua_setfield(L, -2, "fits");
}

/** Prices the stage at argument 1 on its slowest data-parallel rank, as far as rank 1 stands for
 * all. */
static void price_stage(lua_State *L, const char *fn, struct hv_pass *pass,
                        struct hv_memory *memory, double *in_flight)
{
    struct hv__run *r = hv__run_of(L, fn);
    const struct hv__plan *p = hv__stage_plan(L, fn, in_flight);
    struct hv_err err = {0};
    const struct hv_stage_query q = {.plan = p->doc.plan, .replica = &p->doc.plan->replicas[0]};

    if (hv_cost_pass(r->cost, &q, pass, &err) != HV_OK ||
        hv_cost_memory(r->cost, &q, memory, &err) != HV_OK)
        hv__raise(L, &err);
}

/***
Prices one stage: what one micro-batch costs on its first data-parallel rank, and its memory.
@function hv.cost.stage
@tparam table q the stage's keys as in a plan file, and micro_batch, count (equal pipelines),
in_flight (micro-batches alive)
@treturn table {forward_s, backward_s (with recompute), weight_s, recompute_s, exposed = {tp, cp,
ep, zero}, hop_bytes, flops, memory = as hv.cost.memory}
@units seconds, bytes and FLOP; micro_batch is a number of sequences
@raise keys that no stage has, addresses that are not there, a device without the precision
@usage local s = hv.cost.stage{devices = ctx.cluster:address{1, 2}, layers = {0, 4}, tp = 2}
print(s.forward_s, s.memory.peak_bytes, s.memory.fits)
*/
static int cost_stage(lua_State *L)
{
    struct hv_pass p = {0};
    struct hv_memory m = {0};
    double in_flight = 1;

    price_stage(L, "hv.cost.stage", &p, &m, &in_flight);
    lua_createtable(L, 0, 8);
    hv__set_num(L, "forward_s", p.forward_s);
    hv__set_num(L, "backward_s", p.input_grad_s + p.weight_grad_s + p.recompute_s);
    hv__set_num(L, "weight_s", p.weight_grad_s);
    hv__set_num(L, "recompute_s", p.recompute_s);
    hv__set_num(L, "hop_bytes", p.hop_bytes);
    hv__set_num(L, "flops", p.flops);
    lua_createtable(L, 0, 4);
    hv__set_num(L, "tp", p.tp_s);
    hv__set_num(L, "cp", p.cp_s);
    hv__set_num(L, "ep", p.ep_s);
    hv__set_num(L, "zero", p.zero_s);
    lua_setfield(L, -2, "exposed");
    push_memory(L, &m, &p, in_flight);
    lua_setfield(L, -2, "memory");
    return 1;
}

/***
The memory part of hv.cost.stage.
@function hv.cost.memory
@tparam table q as hv.cost.stage
@treturn table {weights, gradients, optimizer, activations, activation_bytes (one micro-batch),
transient, overhead, fragmentation (share of activations and transients on top), peak_bytes,
limit_bytes, fits}
@units bytes; fragmentation is a share
@raise as hv.cost.stage
@usage print(hv.cost.memory{devices = ctx.cluster:address{1, 2}, layers = {0, 4}, tp = 2}.fits)
*/
static int cost_memory(lua_State *L)
{
    struct hv_pass p = {0};
    struct hv_memory m = {0};
    double in_flight = 1;

    price_stage(L, "hv.cost.memory", &p, &m, &in_flight);
    push_memory(L, &m, &p, in_flight);
    return 1;
}

/***
Prices a collective on the real topology.
@function hv.cost.collective
@tparam table q {op = "all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|reduce|p2p", bytes,
devices = list of numbers, algorithm, together}; bytes is the full gathered or reduced tensor, for
all_to_all the local send buffer
@treturn table {time_s, messages, bytes_by_level = {node, network}}; nil and the reason where
members are not connected
@units seconds and bytes; together = how many equal groups run at the same time
@raise unknown operation, algorithm or device, too few devices
@usage local c = hv.cost.collective{op = "all_reduce", bytes = 1e9, devices = {1, 2}}
print(c and c.time_s)
*/
static int cost_collective(lua_State *L)
{
    static const char *const keys[] = {"op", "bytes", "devices", "algorithm", "together", NULL};
    static const char fn[] = "hv.cost.collective";
    struct hv__run *r = hv__run_of(L, fn);
    const struct hv_cluster *c = hv_cost_cluster(r->cost);
    const char *ops[HV_COLLECTIVE_N];
    size_t n = 0;

    hv__check_keys(L, 1, fn, keys);
    for (int i = 0; i < HV_COLLECTIVE_N; i++)
        ops[i] = hv_collective_name((enum hv_collective)i);
    double *ids = hv__numbers(L, 1, fn, "devices", &n);
    uint32_t *devices = hv_arena_new(&hv__host(L)->arena, uint32_t, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!(ids[i] >= 1 && ids[i] <= c->n_devices))
            luaL_error(L, "%s: devices: no device has number %f", fn, ids[i]);
        devices[i] = (uint32_t)ids[i] - 1;
    }
    const struct hv_collective_query q = {
        .op = (enum hv_collective)hv__word(L, 1, fn, "op", ops, HV_COLLECTIVE_N, -1),
        .bytes = hv__num(L, 1, fn, "bytes", -1, 0, BYTES_MAX),
        .devices = devices,
        .n = n,
        .algorithm = (enum hv_sync_algorithm)hv__word(
            L, 1, fn, "algorithm", hv_sync_algorithm_words, hv_sync_algorithm_N, HV_ALGO_AUTO),
        .together = hv__num(L, 1, fn, "together", 1, 1, 1e9)};
    if (n < (q.op == HV_P2P ? 2 : 1))
        luaL_error(L, "%s: devices: expected at least %d", fn, q.op == HV_P2P ? 2 : 1);
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
    static const luaL_Reg rows[] = {{"layers", cost_layers},
                                    {"stage", cost_stage},
                                    {"memory", cost_memory},
                                    {"collective", cost_collective},
                                    {"stages", hv__cost_stages},
                                    {"op", hv__cost_op},
                                    {NULL, NULL}};
    static const luaL_Reg methods[] = {{"time", table_time},
                                       {"bytes", table_bytes},
                                       {"times", table_times},
                                       {"sizes", table_sizes},
                                       {NULL, NULL}};

    hv__api_names(L, "layers", methods);
    luaL_newmetatable(L, TABLE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    hv__api_add(L, "cost", rows);
}
