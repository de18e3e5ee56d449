/*
 * ctx: read-only views of cluster, model, job and options. Views are handles of the run: after it
 * they are stale, not dangling. Picking devices is api_input_pick.c, the model's layers and graph
 * are api_model.c.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/table.h"
#include "solver/base/units.h"
#include "solver/cost/stage/stage.h"

#include <string.h>

static void set_kind(lua_State *L, const struct hv_device_kind *k)
{
    hv__set_text(L, "kind", k->name);
    hv__set_text(L, "class", hv_device_class_name(k->cls));
    hv__set_text(L, "fabric", k->fabric);
    hv__set_num(L, "memory_bytes", k->memory_bytes);
    hv__set_num(L, "memory_bytes_per_s", k->memory_bytes_per_s);
    hv__set_num(L, "flops_per_s", hv__peak_of(L, k));
}

/***
All devices of nodes in state `ok`, in the order of their numbers.
@function cluster:devices
@treturn table list of {id, kind, class, group, node, domain, slot, zone, fabric, memory_bytes,
memory_bytes_per_s, host_bytes_per_s (copies to and from its host, no other device copying),
flops_per_s, usd_per_h}; domain numbers the runs of nodes that share the device
link (a node alone is one); flops_per_s is the dense peak in the job's precision and missing where
the device cannot compute in it; usd_per_h is the node's price divided by its devices; the list
leaves out devices that a replan lost
@units bytes, FLOP per second, USD per hour; id, node, domain and slot are numbers from 1
@raise a handle of a run that has ended
@usage for _, d in ipairs(ctx.cluster:devices()) do print(d.id, d.kind) end
*/
static int cluster_devices(lua_State *L)
{
    const struct hv_cluster *c = hv__cluster_at(L);
    lua_Integer n = 0;

    lua_createtable(L, (int)c->n_devices, 0);
    for (uint32_t i = 0; i < c->n_devices; i++) {
        struct hv_device_ref r = hv_cluster_device(c, i);
        const struct hv_node_group *g = &c->groups[r.group];
        if (!hv__is_usable(L, c, i)) {
            continue;
        }
        lua_createtable(L, 0, 14);
        hv__set_num(L, "id", (double)i + 1);
        set_kind(L, r.kind);
        hv__set_num(L, "host_bytes_per_s", hv_cost_host_bytes_per_s(c, &i, 1, i));
        hv__set_text(L, "group", g->name);
        hv__set_num(L, "node", (double)r.node + 1);
        hv__set_num(L, "domain", (double)hv_node_group_domain(g, r.node) + 1);
        hv__set_num(L, "slot", (double)r.slot + 1);
        hv__set_text(L, "zone", g->zone);
        hv__set_num(L, "usd_per_h", hv_node_price_usd_per_h(g, false) / g->n_devices);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

/** First node behind the run of nodes from `from` on of which no device is lost. */
static uint32_t whole_run(lua_State *L, const struct hv_cluster *c, const struct hv_node_group *g,
                          uint32_t from)
{
    uint32_t to = from;

    for (bool whole = true; whole && to < (uint32_t)g->count; to += whole) {
        uint32_t first = g->first_device + to * (uint32_t)g->n_devices;
        if (hv__host(L)->run->lost == NULL) {
            return (uint32_t)g->count;
        }
        for (uint32_t i = 0; i < (uint32_t)g->n_devices && whole; i++) {
            whole = hv__is_usable(L, c, first + i);
        }
    }
    return to;
}

/** Pushes the row of one kind of device in `count` nodes from the node `from` (from 0) on. */
static void push_group(lua_State *L, const struct hv_node_group *group, size_t slot, uint32_t from,
                       uint32_t count)
{
    lua_newtable(L);
    hv__set_text(L, "name", group->name);
    set_kind(L, group->slots[slot].kind);
    hv__set_text(L, "zone", group->zone);
    hv__set_num(L, "count", count);
    hv__set_num(L, "from", (double)from + 1);
    hv__set_num(L, "devices", group->slots[slot].count);
    hv__set_num(L, "first",
                (double)group->first_device + (double)from * group->n_devices +
                    group->slots[slot].first + 1);
    hv__set_num(L, "stride", group->n_devices);
    hv__set_num(L, "first_node", (double)group->first_node + from + 1);
    hv__set_num(L, "domain_nodes", hv_node_group_domain_nodes(group));
    hv__set_num(L, "usd_per_h", hv_node_price_usd_per_h(group, false));
}

/***
Groups of identical nodes in state `ok`, one row per device kind of the node. Device i of node k
(from 1) has the number first + (k - 1) * stride + (i - 1).
@function cluster:groups
@treturn table list of {name, kind, class, fabric, zone, count (nodes), from (number of the row's
first node in its group; 1 except in a replan, where a row is a run of nodes without lost devices),
devices (of this kind in a node), first, stride, first_node, domain_nodes, memory_bytes,
flops_per_s, usd_per_h}; domain_nodes consecutive nodes share the device link
@units bytes, FLOP per second, USD per hour of one node; first and first_node are numbers from 1
@raise a handle of a run that has ended
@usage for _, g in ipairs(ctx.cluster:groups()) do print(g.name, g.count * g.devices, g.kind) end
*/
static int cluster_groups(lua_State *L)
{
    const struct hv_cluster *c = hv__cluster_at(L);
    lua_Integer n = 0;

    lua_newtable(L);
    for (size_t g = 0; g < c->n_groups; g++) {
        const struct hv_node_group *group = &c->groups[g];
        for (uint32_t from = 0; group->state == HV_NODE_OK && from < (uint32_t)group->count;) {
            uint32_t to = whole_run(L, c, group, from);
            for (size_t s = 0; s < group->n_slots && to > from; s++) {
                push_group(L, group, s, from, to - from);
                lua_rawseti(L, -2, ++n);
            }
            from = to > from ? to : from + 1;
        }
    }
    return 1;
}

static uint32_t device_at(lua_State *L, int i, const struct hv_cluster *c)
{
    lua_Integer id = luaL_checkinteger(L, i);
    luaL_argcheck(L, id >= 1 && id <= (lua_Integer)c->n_devices, i, "no device has this number");
    return (uint32_t)(id - 1);
}

/***
The path of one flow between two devices.
@function cluster:link
@tparam integer a device number
@tparam integer b device number
@treturn table {bandwidth_bytes_per_s, latency_s, path} where path names the tightest element
@units bytes per second, seconds
@raise a number that no device has
@usage print(ctx.cluster:link(1, 2).bandwidth_bytes_per_s)
*/
static int cluster_link(lua_State *L)
{
    const struct hv_cluster *c = hv__cluster_at(L);
    uint32_t a = device_at(L, 2, c), b = device_at(L, 3, c);
    struct hv_path p = hv_cluster_path(c, a, b);

    lua_newtable(L);
    hv__set_num(L, "bandwidth_bytes_per_s", p.bytes_per_s);
    hv__set_num(L, "latency_s", p.latency_s);
    hv__set_text(L, "path", p.why);
    return 1;
}

/** Device numbers (from 0) of the list at i, in the host's arena. */
static uint32_t *ids_at(lua_State *L, int i, const struct hv_cluster *c, size_t *n)
{
    luaL_checktype(L, i, LUA_TTABLE);
    *n = (size_t)lua_rawlen(L, i);
    luaL_argcheck(L, *n >= 1 && *n <= c->n_devices, i, "expected a list of device numbers");
    uint32_t *ids = hv__scratch_new(L, uint32_t, *n);
    for (size_t k = 0; k < *n; k++) {
        lua_rawgeti(L, i, (lua_Integer)k + 1);
        ids[k] = device_at(L, -1, c);
        lua_pop(L, 1);
    }
    return ids;
}

/***
The address of a list of devices, order kept, as plans write it.
@function cluster:address
@tparam table ids list of device numbers
@treturn string|table one address, or a list of addresses where one cannot describe the devices
@units none: device numbers, from 1
@raise an empty list, one longer than the cluster, a number that no device has
@usage print(ctx.cluster:address{1, 2})
*/
static int cluster_address(lua_State *L)
{
    const struct hv_cluster *c = hv__cluster_at(L);
    size_t n = 0;
    struct hv_str text = {0};
    const uint32_t *ids = ids_at(L, 2, c, &n);

    hv_address_format(c, ids, n, "\n", &text);
    const char *s = hv_arena_strdup(&hv__host(L)->arena, hv_str_cstr(&text));
    hv_str_free(&text);
    if (strchr(s, '\n') == NULL) {
        lua_pushstring(L, s);
        return 1;
    }
    lua_newtable(L);
    for (lua_Integer k = 1; s != NULL; k++) {
        size_t len = strcspn(s, "\n");
        lua_pushlstring(L, s, len);
        lua_rawseti(L, -2, k);
        s = s[len] == '\n' ? s + len + 1 : NULL;
    }
    return 1;
}

/***
The devices of an address, the way back from cluster:address.
@function cluster:ids
@tparam string|table address one address or a list of them, as a stage's `devices`
@treturn table list of device numbers in written order
@units none: device numbers, from 1
@raise an address that the cluster does not have; the message names a similar group, or the last
node or device there is
@usage print(#ctx.cluster:ids(ctx.cluster:groups()[1].name .. "[0].*"))
*/
static int cluster_ids(lua_State *L)
{
    const struct hv_cluster *c = hv__cluster_at(L);
    struct hv_err err = {0};
    bool is_list = lua_istable(L, 2);
    lua_Unsigned n_items = is_list ? lua_rawlen(L, 2) : 1;
    lua_Integer at = 0;

    lua_newtable(L);
    for (lua_Unsigned i = 1; i <= n_items; i++) {
        uint32_t *ids = NULL;
        size_t n = 0;
        if (is_list) {
            lua_rawgeti(L, 2, (lua_Integer)i);
        } else {
            lua_pushvalue(L, 2);
        }
        luaL_argcheck(L, lua_type(L, -1) == LUA_TSTRING, 2,
                      "expected an address or a list of addresses");
        if (hv_address_resolve(c, lua_tostring(L, -1), &hv__host(L)->arena, &ids, &n, &err) !=
            HV_OK) {
            return hv__raise(L, &err);
        }
        lua_pop(L, 1);
        for (size_t k = 0; k < n; k++) {
            lua_pushinteger(L, (lua_Integer)ids[k] + 1);
            lua_rawseti(L, -2, ++at);
        }
    }
    return 1;
}

/** Fields of a view: a method, or a member of the table in the second upvalue. */
static int view_index(lua_State *L)
{
    lua_pushvalue(L, 2);
    lua_gettable(L, lua_upvalueindex(1));
    return 1;
}

static int view_newindex(lua_State *L)
{
    return luaL_error(L, "inputs are read-only");
}

/** Makes the metatable of a view type from the table of fields at the top (popped). */
static void seal_view(lua_State *L, const char *type, const luaL_Reg *methods)
{
    luaL_setfuncs(L, methods, 0);
    luaL_newmetatable(L, type);
    lua_insert(L, -2);
    lua_pushcclosure(L, view_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, view_newindex);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

static const luaL_Reg cluster_methods[] = {{"devices", cluster_devices},
                                           {"groups", cluster_groups},
                                           {"link", cluster_link},
                                           {"address", cluster_address},
                                           {"ids", cluster_ids},
                                           {"pick", hv__cluster_pick},
                                           {NULL, NULL}};
static const luaL_Reg model_methods[] = {{"layers", hv__model_layers},
                                         {"tokens", hv__model_tokens},
                                         {"graph", hv__model_graph},
                                         {"operators", hv__model_operators},
                                         {NULL, NULL}};

void hv__api_input(lua_State *L)
{
    hv__api_names(L, "cluster", cluster_methods);
    hv__api_names(L, "model", model_methods);
}

static void open_views(lua_State *L, const struct hv_inputs *in)
{
    const struct hv_model *m = in->model.model;

    lua_newtable(L);
    hv__set_text(L, "name", in->cluster.cluster->name);
    hv__set_num(L, "n_devices", in->cluster.cluster->n_devices);
    hv__set_num(L, "n_nodes", in->cluster.cluster->n_nodes);
    seal_view(L, HV__CLUSTER, cluster_methods);
    lua_newtable(L);
    hv__set_text(L, "name", m->name);
    hv__set_text(L, "kind", hv_model_kind_name(m->kind));
    hv__set_num(L, "n_layers", (double)m->n_blocks);
    hv__set_num(L, "hidden", m->hidden);
    hv__set_num(L, "vocab", m->vocab);
    hv__set_num(L, "max_sequence", m->max_sequence);
    hv__set_num(L, "parameters", hv_model_parameters(m));
    lua_pushboolean(L, m->causal);
    lua_setfield(L, -2, "causal");
    seal_view(L, HV__MODEL, model_methods);
}

void hv__renew_views(lua_State *L)
{
    open_views(L, hv__host(L)->run->request->inputs);
}

/** Pushes the list of jobs of ctx: the queue. */
static void push_queue(lua_State *L, const struct hv__run *r)
{
    lua_createtable(L, (int)r->n_queue, 0);
    for (size_t i = 0; i < r->n_queue; i++) {
        const struct hv_queued_job *q = &r->queue[i];
        const struct hv_inputs *in = r->request->inputs;
        const struct hv_model *m =
            q->own.model.model != NULL ? q->own.model.model : in->model.model;
        lua_createtable(L, 0, 9);
        hv__set_num(L, "position", (double)i + 1);
        hv__set_text(L, "name", q->name);
        hv__set_num(L, "arrival_s", q->arrival_s);
        hv__set_num(L, "weight", q->weight);
        hv__set_num(L, "iterations", q->iterations);
        hv__set_num(L, "deadline_s", q->deadline_s);
        hv__set_num(L, "devices", q->n_devices > 0 ? (double)q->n_devices : HV_UNKNOWN);
        hv__push_job(L, q->own.has_job ? &q->own.job.job : &in->job.job);
        lua_setfield(L, -2, "job");
        lua_createtable(L, 0, 3);
        hv__set_text(L, "name", m->name);
        hv__set_text(L, "kind", hv_model_kind_name(m->kind));
        hv__set_num(L, "n_layers", (double)m->n_blocks);
        lua_setfield(L, -2, "model");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/** Pushes the list of jobs of the ctx at the top: the one job of this run, under the keys that a
 * workspace gives its jobs. */
static void push_jobs(lua_State *L)
{
    int ctx = lua_gettop(L);

    lua_createtable(L, 1, 0);
    lua_createtable(L, 0, 5);
    lua_getfield(L, ctx, "job");
    lua_getfield(L, -1, "name");
    lua_setfield(L, -3, "name");
    lua_setfield(L, -2, "job");
    lua_getfield(L, ctx, "model");
    lua_setfield(L, -2, "model");
    hv__set_num(L, "arrival_s", 0);
    hv__set_num(L, "weight", 1);
    lua_rawseti(L, -2, 1);
}

void hv__push_ctx(lua_State *L, const json_t *options)
{
    const struct hv__run *r = hv__run_of(L, "ctx");

    if (luaL_getmetatable(L, HV__CLUSTER) != LUA_TTABLE) {
        open_views(L, r->request->inputs);
    }
    lua_pop(L, 1);
    lua_createtable(L, 0, 6);
    hv__push_view(L, HV__CLUSTER);
    lua_setfield(L, -2, "cluster");
    hv__push_view(L, HV__MODEL);
    lua_setfield(L, -2, "model");
    hv__push_job(L, &r->request->inputs->job.job);
    lua_setfield(L, -2, "job");
    if (r->n_queue > 0 && r->i_job == 0) {
        push_queue(L, r);
    } else {
        push_jobs(L);
    }
    lua_setfield(L, -2, "jobs");
    hv__push_json(L, options);
    lua_setfield(L, -2, "options");
    lua_pushinteger(L, (lua_Integer)r->request->seed);
    lua_setfield(L, -2, "seed");
}

void hv__push_ctx_of(lua_State *L, int system, const json_t *options)
{
    int table = lua_absindex(L, system);

    hv__push_ctx(L, options);
    lua_pushvalue(L, table);
    lua_setfield(L, -2, "system");
}
