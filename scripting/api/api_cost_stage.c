/*
 * hv.cost.stage and hv.cost.memory: one stage priced. A loop over candidates prices the same stage
 * many times, with other layers or another micro-batch; the plan behind the stage is built once per
 * set of the other keys. Every number comes from solver/cost.
 */
#include "scripting/api/cost_int.h"
#include "scripting/api/input_int.h"
#include "solver/base/units.h"
#include "solver/workload/router.h"

#include <math.h>
#include <string.h>

#define CACHE     "hv.stage_plans"
#define CACHE_MAX 256
#define BATCH_MAX (1 << 30)
#define KEY_MAX   1024
#define KEY_DEPTH 4

/** Key of a stage query: the members that determine its plan besides `layers` and micro_batch, as
 * bytes. */
struct key {
    char text[KEY_MAX];
    size_t n;
    bool complete; /**< false: the query is too long or too deep for a key */
};

static void add_bytes(struct key *k, const void *bytes, size_t n)
{
    k->complete = k->complete && n <= KEY_MAX - k->n;
    if (!k->complete) {
        return;
    }
    memcpy(k->text + k->n, bytes, n);
    k->n += n;
}

static void add_value(lua_State *L, int i, struct key *k, int depth);

/** The members of the table at t in the order in which Lua keeps them: the same table, the same
 * bytes. */
static void add_members(lua_State *L, int t, struct key *k, int depth, const char *const *but)
{
    for (lua_pushnil(L); k->complete && lua_next(L, t) != 0; lua_pop(L, 1)) {
        bool skipped = false;
        for (size_t i = 0; but != NULL && but[i] != NULL && !skipped; i++) {
            skipped = lua_type(L, -2) == LUA_TSTRING && strcmp(lua_tostring(L, -2), but[i]) == 0;
        }
        if (skipped) {
            continue;
        }
        add_value(L, lua_gettop(L) - 1, k, depth);
        add_value(L, lua_gettop(L), k, depth);
    }
    add_bytes(k, "}", 1);
}

/* Recursion is bounded by KEY_DEPTH. */
static void add_value(lua_State *L, int i, struct key *k, int depth)
{
    int type = lua_type(L, i);
    char tag = (char)('a' + type);
    size_t n = 0;

    add_bytes(k, &tag, 1);
    if (type == LUA_TNUMBER) {
        double x = lua_tonumber(L, i);
        add_bytes(k, &x, sizeof x);
    } else if (type == LUA_TBOOLEAN) {
        tag = lua_toboolean(L, i) ? '1' : '0';
        add_bytes(k, &tag, 1);
    } else if (type == LUA_TSTRING) {
        const char *text = lua_tolstring(L, i, &n);
        add_bytes(k, &n, sizeof n);
        add_bytes(k, text, n);
    } else if (type == LUA_TTABLE && depth < KEY_DEPTH) {
        add_members(L, i, k, depth + 1, NULL);
    } else {
        k->complete = false;
    }
}

/** True where `layers` of argument 1 is one range inside the model, cut between layers or their
 * halves. */
static bool read_range(lua_State *L, size_t n_layers, struct hv_range *out)
{
    bool ok = lua_getfield(L, 1, "layers") == LUA_TTABLE && lua_rawlen(L, -1) == 2;

    if (ok) {
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        double from = 2 * lua_tonumber(L, -2), to = 2 * lua_tonumber(L, -1);
        ok = lua_type(L, -2) == LUA_TNUMBER && lua_type(L, -1) == LUA_TNUMBER && from >= 0 &&
             to >= from && to <= 2 * (double)n_layers && from == floor(from) && to == floor(to);
        if (ok) {
            *out = (struct hv_range){(int)from, (int)to};
        }
        lua_pop(L, 2);
    }
    lua_pop(L, 1);
    return ok;
}

/** Sets embedding and head of the stage table at the top: by the position of its layers. */
static void set_ends(lua_State *L, size_t n_layers)
{
    if (lua_getfield(L, -1, "layers") != LUA_TTABLE) {
        lua_pop(L, 1);
        return;
    }
    lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    if (lua_rawgeti(L, -1, 1) == LUA_TTABLE) { /* a list of ranges */
        lua_rawgeti(L, -1, 1);
        lua_replace(L, -2);
    }
    if (lua_rawgeti(L, -2, n) == LUA_TTABLE) {
        lua_rawgeti(L, -1, 2);
        lua_replace(L, -2);
    }
    bool first = lua_isnumber(L, -2) && lua_tonumber(L, -2) <= 0;
    bool last = lua_isnumber(L, -1) && lua_tonumber(L, -1) >= (double)n_layers;
    lua_pop(L, 3);
    lua_pushboolean(L, first);
    lua_setfield(L, -2, "embedding");
    lua_pushboolean(L, last);
    lua_setfield(L, -2, "head");
}

/** Keys of argument 1 that are not a stage's. */
static const char *const own_keys[] = {"in_flight", "micro_batch", "count", "ranges",
                                       "tp_rank",   "iteration",   NULL};

static bool is_own(const char *key)
{
    for (size_t i = 0; own_keys[i] != NULL; i++) {
        if (strcmp(key, own_keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

/** Wraps the value at the top: {[1] = value} where `key` is NULL, else {key = value}. */
static void wrap(lua_State *L, const char *key)
{
    lua_newtable(L);
    lua_insert(L, -2);
    if (key != NULL) {
        lua_setfield(L, -2, key);
    } else {
        lua_rawseti(L, -2, 1);
    }
}

/** Builds the plan and pushes its handle. */
static struct hv__plan *build_plan(lua_State *L, int64_t micro_batch, int64_t count,
                                   size_t n_layers)
{
    lua_newtable(L); /* the stage without our own keys */
    for (lua_pushnil(L); lua_next(L, 1) != 0;) {
        bool ours = is_own(lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "");
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        if (ours) {
            lua_pop(L, 2);
        } else {
            lua_rawset(L, -4);
        }
    }
    set_ends(L, n_layers);
    wrap(L, NULL); /* stages */
    wrap(L, "stages");
    hv__set_num(L, "count", (double)count);
    hv__set_num(L, "micro_batches", 1);
    wrap(L, NULL); /* replicas */
    wrap(L, "replicas");
    hv__set_num(L, "micro_batch", (double)micro_batch);
    struct hv__plan *p = hv__plan_make(L, -1);
    lua_replace(L, -2);
    return p;
}

/** Pushes the table of plans by key; at 0 it has their number, at -1 the generation of the handles.
 * A full or stale table is replaced by an empty one. */
static void push_cache(lua_State *L)
{
    lua_Integer generation = hv__host(L)->generation;

    if (lua_getfield(L, LUA_REGISTRYINDEX, CACHE) == LUA_TTABLE) {
        lua_rawgeti(L, -1, 0);
        lua_rawgeti(L, -2, -1);
        bool usable = lua_tointeger(L, -2) < CACHE_MAX && lua_tointeger(L, -1) == generation;
        lua_pop(L, 2);
        if (usable) {
            return;
        }
    }
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushinteger(L, generation);
    lua_rawseti(L, -2, -1);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, CACHE);
}

/** Puts the handle at the top under the key at `key` into the table at `cache`. */
static void keep_plan(lua_State *L, int cache, int key)
{
    lua_pushvalue(L, key);
    lua_pushvalue(L, -2);
    lua_rawset(L, cache);
    lua_rawgeti(L, cache, 0);
    lua_Integer n = lua_tointeger(L, -1);
    lua_pop(L, 1);
    lua_pushinteger(L, n + 1);
    lua_rawseti(L, cache, 0);
}

void hv__stage_set_range(struct hv_stage *s, struct hv_range range, size_t n_layers)
{
    s->ranges[0] = range;
    s->embedding = range.from2 <= 0;
    s->head = range.to2 >= 2 * (int)n_layers;
}

struct hv__plan *hv__stage_plan(lua_State *L, const char *fn, double *in_flight)
{
    static const char *const varying[] = {"in_flight", "micro_batch", "ranges", "layers",
                                          "tp_rank",   "iteration",   NULL};
    size_t n_layers = hv_cost_model(hv__run_of(L, fn)->cost)->n_blocks;
    struct hv_range range = {0, 0};
    struct key key = {.complete = true};

    if (!lua_istable(L, 1)) {
        luaL_error(L, "%s: expected a table with the keys of a stage, found %s", fn,
                   luaL_typename(L, 1));
    }
    luaL_checkstack(L, 40, NULL);
    *in_flight = hv__num(L, 1, fn, "in_flight", 1, 0, 1e9);
    int64_t mb = hv__int(L, 1, fn, "micro_batch", 1, 1, BATCH_MAX);
    int64_t count = hv__int(L, 1, fn, "count", 1, 1, 1 << 30);
    int top = lua_gettop(L);
    if (read_range(L, n_layers, &range)) {
        add_members(L, 1, &key, 0, varying);
    } else {
        key.complete = false;
    }
    lua_settop(L, top);
    if (!key.complete) {
        return build_plan(L, mb, count, n_layers);
    }
    push_cache(L);
    lua_pushlstring(L, key.text, key.n);
    lua_pushvalue(L, -1);
    struct hv__plan *p = NULL;
    if (lua_rawget(L, top + 1) == LUA_TUSERDATA) {
        p = hv__plan_at(L, -1);
    } else {
        lua_pop(L, 1);
        p = build_plan(L, mb, count, n_layers);
        keep_plan(L, top + 1, top + 2);
    }
    p->doc.plan->micro_batch = (int)mb;
    hv__stage_set_range(&p->doc.plan->replicas[0].stages[0], range, n_layers);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return p;
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

    lua_createtable(L, 0, 13);
    hv__set_num(L, "weights", m->weights_bytes);
    hv__set_num(L, "gradients", m->gradients_bytes);
    hv__set_num(L, "optimizer", m->optimizer_bytes + m->master_bytes);
    hv__set_num(L, "activations", activations);
    hv__set_num(L, "activation_bytes", p->activation_bytes);
    hv__set_num(L, "transient", p->transient_bytes);
    hv__set_num(L, "overhead", m->overhead_bytes);
    hv__set_num(L, "boundary", m->boundary_bytes);
    hv__set_num(L, "communicator", m->communicator_bytes);
    hv__set_num(L, "fragmentation", m->fragmentation_frac);
    hv__set_num(L, "peak_bytes", peak);
    hv__set_num(L, "limit_bytes", limit);
    lua_pushboolean(L, peak <= limit);
    lua_setfield(L, -2, "fits");
}

/** Adds the pass of another chunk of the same stage, in what scripts see of a pass. */
static void add_chunk(struct hv_pass *sum, const struct hv_pass *chunk)
{
    sum->forward_s += chunk->forward_s;
    sum->input_grad_s += chunk->input_grad_s;
    sum->weight_grad_s += chunk->weight_grad_s;
    sum->recompute_s += chunk->recompute_s;
    sum->tp_s += chunk->tp_s;
    sum->cp_s += chunk->cp_s;
    sum->ep_s += chunk->ep_s;
    sum->zero_s += chunk->zero_s;
    sum->gather_s += chunk->gather_s;
    sum->scatter_s += chunk->scatter_s;
    sum->flops += chunk->flops;
    sum->activation_bytes += chunk->activation_bytes;
    sum->transient_bytes = fmax(sum->transient_bytes, chunk->transient_bytes);
}

/** Prices the stage at argument 1, all chunks of it, on its first data-parallel rank, which stands
 * for all. Returns the seconds of that rank's optimizer step, all of it on the device. */
static double price_stage(lua_State *L, const char *fn, struct hv_pass *pass,
                          struct hv_memory *memory, double *in_flight)
{
    struct hv__run *r = hv__run_of(L, fn);
    const struct hv__plan *p = hv__stage_plan(L, fn, in_flight);
    struct hv_err err = {0};
    const struct hv_replica *replica = &p->doc.plan->replicas[0];
    int64_t rank = hv__int(L, 1, fn, "tp_rank", 1, 1, replica->stages[0].tp.degree);
    const struct hv_router *routing = hv_cost_job(r->cost)->routing;
    int64_t routed =
        hv_router_is_even(routing) || routing->iterations < 1 ? 1 : (int64_t)routing->iterations;
    int64_t iteration = hv__int(L, 1, fn, "iteration", 1, 1, routed);
    struct hv_stage_query q = {.plan = p->doc.plan,
                               .replica = replica,
                               .tp_rank = (int)rank - 1,
                               .iteration = (size_t)iteration - 1};

    if (hv_cost_pass(r->cost, &q, pass, &err) != HV_OK ||
        hv_cost_memory(r->cost, &q, memory, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    for (q.chunk = 1; q.chunk < replica->stages[0].n_ranges; q.chunk++) {
        struct hv_pass chunk = {0};
        if (hv_cost_pass(r->cost, &q, &chunk, &err) != HV_OK) {
            hv__raise(L, &err);
        }
        add_chunk(pass, &chunk);
    }
    uint32_t first = q.replica->stages[0].devices[0];
    const struct hv_device_kind *kind = hv_cluster_device(hv_cost_cluster(r->cost), first).kind;
    return hv_cost_optimizer_s(r->cost, kind, memory->updated_parameters);
}

/***
Prices one stage: the time of one micro-batch on its first data-parallel rank, and its memory. The
chunks of a stage that has several add up.
@function hv.cost.stage
@tparam table q the stage's keys as in a plan file, and micro_batch, count (equal pipelines),
in_flight (micro-batches alive), tp_rank (from 1: whose memory, where tensor shards are unequal),
iteration (from 1: of the job's routing, where it has several)
@treturn table {forward_s, backward_s (with recompute), weight_s, recompute_s, exposed = {tp, cp,
ep, zero}, gather_s and scatter_s (of all its weights and gradients, where zero.unit is "chunk" or
"stage": the schedule places them, else 0), optimizer_s (the step after the last micro-batch),
hop_bytes, flops, memory = as hv.cost.memory}
@units seconds, bytes and FLOP; micro_batch is a number of sequences
@raise keys that a stage does not have, addresses that do not exist, a device without the precision
@usage local s = hv.cost.stage{devices = ctx.cluster:address{1, 2}, layers = {0, 4}, tp = 2}
print(s.forward_s, s.memory.peak_bytes, s.memory.fits)
*/
int hv__cost_stage(lua_State *L)
{
    struct hv_pass p = {0};
    struct hv_memory m = {0};
    double in_flight = 1;

    double optimizer_s = price_stage(L, "hv.cost.stage", &p, &m, &in_flight);
    lua_createtable(L, 0, 11);
    hv__set_num(L, "optimizer_s", optimizer_s);
    hv__set_num(L, "forward_s", p.forward_s);
    hv__set_num(L, "backward_s", p.input_grad_s + p.weight_grad_s + p.recompute_s);
    hv__set_num(L, "weight_s", p.weight_grad_s);
    hv__set_num(L, "recompute_s", p.recompute_s);
    hv__set_num(L, "gather_s", p.gather_s);
    hv__set_num(L, "scatter_s", p.scatter_s);
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
transient, overhead, boundary (of a stage with neighbours, not in overhead), communicator (of each
group of ranks that a rank is in, in overhead where the stage alone has such a group), fragmentation
(share of activations and transients on top), peak_bytes, limit_bytes, fits}
@units bytes; fragmentation is a share
@raise as hv.cost.stage
@usage print(hv.cost.memory{devices = ctx.cluster:address{1, 2}, layers = {0, 4}, tp = 2}.fits)
*/
int hv__cost_memory(lua_State *L)
{
    struct hv_pass p = {0};
    struct hv_memory m = {0};
    double in_flight = 1;

    price_stage(L, "hv.cost.memory", &p, &m, &in_flight);
    push_memory(L, &m, &p, in_flight);
    return 1;
}
