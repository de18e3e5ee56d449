/*
 * hv.cost.stages and hv.cost.op: many ranges of one stage priced in one call, and one part of a
 * layer with the reasons for its price. Numbers come from solver/cost.
 */
#include "scripting/api/cost_int.h"
#include "scripting/api/input_int.h"
#include "solver/base/units.h"

#include <math.h>
#include <string.h>

/** Figures of every range. */
struct figures {
    size_t n;
    double *forward, *backward, *weight, *activation, *peak, *hop;
    double limit;
};

/** The field `in_flight` as one number per range. */
static const double *in_flight_of(lua_State *L, const char *fn, size_t n, double *one)
{
    size_t given = 0;
    const double *list = NULL;

    *one = 1;
    if (lua_getfield(L, 1, "in_flight") == LUA_TTABLE) {
        list = hv__numbers(L, lua_gettop(L), fn, NULL, &given);
        if (given != n) {
            luaL_error(L, "%s: in_flight: expected %d numbers, one per range, found %d", fn, (int)n,
                       (int)given);
        }
        lua_pushnil(L); /* hv__stage_plan reads a number */
        lua_setfield(L, 1, "in_flight");
    }
    lua_pop(L, 1);
    return list;
}

/** Raises an error where one of the n ranges lies outside of the model's layers or is not whole. */
static void check_ranges(lua_State *L, const char *fn, const double *ranges, size_t n)
{
    int n_layers = (int)hv_cost_model(hv__run_of(L, fn)->cost)->n_blocks;

    for (size_t i = 0; i < n; i++) {
        double a = ranges[2 * i], b = ranges[2 * i + 1];
        if (!(a >= 1 && b >= a && b <= n_layers) || a != floor(a) || b != floor(b)) {
            luaL_error(L, "%s: ranges: expected first and last layer from 1 to %d, found %f, %f",
                       fn, n_layers, a, b);
        }
    }
}

static void price_ranges(lua_State *L, const char *fn, const struct hv__plan *p,
                         const double *ranges, struct figures *f)
{
    struct hv__run *r = hv__run_of(L, fn);
    struct hv_stage *stage = &p->doc.plan->replicas[0].stages[0];
    const struct hv_stage_query q = {.plan = p->doc.plan, .replica = &p->doc.plan->replicas[0]};
    size_t n_layers = hv_cost_model(r->cost)->n_blocks;
    struct hv_err err = {0};

    for (size_t i = 0; i < f->n; i++) {
        struct hv_pass pass;
        struct hv_memory m;
        const struct hv_range range = {2 * ((int)ranges[2 * i] - 1), 2 * (int)ranges[2 * i + 1]};
        hv__stage_set_range(stage, range, n_layers);
        if (hv_cost_pass(r->cost, &q, &pass, &err) != HV_OK ||
            hv_cost_memory(r->cost, &q, &m, &err) != HV_OK) {
            hv__raise(L, &err);
        }
        f->forward[i] = pass.forward_s;
        f->backward[i] = pass.input_grad_s + pass.weight_grad_s + pass.recompute_s;
        f->weight[i] = pass.weight_grad_s;
        f->activation[i] = pass.activation_bytes;
        f->hop[i] = pass.hop_bytes;
        f->peak[i] = hv__stage_peak_bytes(&m, &pass, f->peak[i]);
        f->limit = m.limit_bytes - hv_or(m.reserve_bytes, 0);
        if (i % 1024 == 1023) {
            hv__check_stop(L);
        }
    }
}

static void set_list(lua_State *L, const char *key, const double *x, size_t n)
{
    hv__push_numbers(L, x, n);
    lua_setfield(L, -2, key);
}

/***
Prices one stage for many ranges of layers in one call, for inner loops over cuts. Each figure
equals that of hv.cost.stage for the same range.
@function hv.cost.stages
@tparam table q the stage's keys as in a plan file but `layers`, micro_batch, count, in_flight (a
number, or a list of one per range), and ranges = {first, last, first, last, …} (flat list, from 1,
inclusive)
@treturn table lists of one number per range: {forward_s, backward_s (with recompute), weight_s,
activation_bytes (one micro-batch), hop_bytes, peak_bytes}, and limit_bytes, one number
@units seconds and bytes
@raise wrong keys, ranges outside the model, devices that do not exist
@usage local ids = {}
for i, d in ipairs(ctx.cluster:devices()) do if i <= 2 then ids[i] = d.id end end
local f = hv.cost.stages{devices = ctx.cluster:address(ids), tp = 2, ranges = {1, 2, 1, 4}}
print(#f.forward_s, f.peak_bytes[2] < f.limit_bytes)
*/
int hv__cost_stages(lua_State *L)
{
    static const char fn[] = "hv.cost.stages";
    struct hv_arena *a = &hv__host(L)->arena;
    size_t n = 0;
    double one = 1;

    hv__run_of(L, fn);
    luaL_checktype(L, 1, LUA_TTABLE);
    const double *ranges = hv__numbers(L, 1, fn, "ranges", &n);
    if (n < 2 || n % 2 != 0) {
        return luaL_error(L, "%s: ranges: expected {first, last, first, last, …}", fn);
    }
    struct figures f = {.n = n / 2};
    check_ranges(L, fn, ranges, f.n);
    double *x = hv_arena_new(a, double, 6 * f.n);
    lua_newtable(L); /* a copy: in_flight and layers are ours to change */
    for (lua_pushnil(L); lua_next(L, 1) != 0;) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_replace(L, 1);
    const double *in_flight = in_flight_of(L, fn, f.n, &one);
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, (lua_Integer)ranges[0] - 1);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, (lua_Integer)ranges[1]);
    lua_rawseti(L, -2, 2);
    lua_setfield(L, 1, "layers");
    const struct hv__plan *p = hv__stage_plan(L, fn, &one);
    f.forward = x;
    f.backward = x + f.n;
    f.weight = x + 2 * f.n;
    f.activation = x + 3 * f.n;
    f.hop = x + 4 * f.n;
    f.peak = x + 5 * f.n;
    for (size_t i = 0; i < f.n; i++) {
        f.peak[i] = in_flight != NULL ? in_flight[i] : one;
    }
    price_ranges(L, fn, p, ranges, &f);
    lua_createtable(L, 0, 7);
    set_list(L, "forward_s", f.forward, f.n);
    set_list(L, "backward_s", f.backward, f.n);
    set_list(L, "weight_s", f.weight, f.n);
    set_list(L, "activation_bytes", f.activation, f.n);
    set_list(L, "hop_bytes", f.hop, f.n);
    set_list(L, "peak_bytes", f.peak, f.n);
    hv__set_num(L, "limit_bytes", f.limit);
    return 1;
}

static void push_why(lua_State *L, const struct hv_why *why)
{
    lua_createtable(L, (int)why->n, 0);
    for (size_t i = 0; i < why->n; i++) {
        lua_createtable(L, 0, 4);
        hv__set_text(L, "name", why->terms[i].name);
        hv__set_num(L, "value", why->terms[i].value);
        hv__set_text(L, "unit", why->terms[i].unit);
        hv__set_text(L, "text", why->terms[i].text);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/***
Prices one half of a layer, the embedding or the head on a kind of device, and explains the price.
@function hv.cost.op
@tparam table q {op = "attention|ffn|embedding|head", layer = 1, device = name of a kind, phase =
"forward|backward|both" (both), tp, cp, ep, micro_batch, tokens, context, recompute,
sequence_parallel as in hv.cost.layers}
@treturn table {time_s (with exposed exchanges), flops (forward), bytes (parameters held),
saved_bytes, transient_bytes, output_bytes, why = list of {name, value, unit, text}}
@units seconds, FLOP and bytes of one micro-batch on one rank; each why row names its unit
@raise unknown op or kind, a layer the model does not have
@usage local kind = ctx.cluster:groups()[1].kind
local o = hv.cost.op{op = "ffn", device = kind, tp = 2}
print(o.time_s, o.why[1].text)
*/
int hv__cost_op(lua_State *L)
{
    static const char *const keys[] = {"op",      "layer",       "device",    "phase",
                                       "tp",      "cp",          "ep",        "tokens",
                                       "context", "micro_batch", "recompute", "sequence_parallel",
                                       NULL};
    static const char *const ops[] = {"attention", "ffn", "embedding", "head"};
    static const char *const phases[] = {"forward", "backward", "both"};
    static const char fn[] = "hv.cost.op";
    struct hv__run *r = hv__run_of(L, fn);
    const struct hv_job *job = hv_cost_job(r->cost);
    struct hv_why why = {.arena = &hv__host(L)->arena};

    hv__check_keys(L, 1, fn, keys);
    int op = hv__word(L, 1, fn, "op", ops, HV_COUNT(ops), -1);
    int phase = hv__word(L, 1, fn, "phase", phases, HV_COUNT(phases), 2);
    size_t n = hv_cost_model(r->cost)->n_blocks;
    size_t layer = (size_t)hv__int(L, 1, fn, "layer", 1, 1, n > 0 ? (int64_t)n : 1);
    struct hv_part_query q = hv__part_args(L, fn, job);
    const char *kind = hv__text(L, 1, fn, "device", "");
    q.device = hv__kind_by_name(hv_cost_cluster(r->cost), kind);
    if (q.device == NULL || !hv_device_has(q.device, job->precision) || n == 0) {
        return luaL_error(
            L, "%s: device: expected a kind of the cluster that computes in %s, found '%s'", fn,
            hv_precision_name(job->precision), kind);
    }
    struct hv_part_cost c = hv_cost_part(r->cost, (enum hv_part)op, layer - 1, &q, &why);
    double forward = c.forward_s + c.tp_forward_s + c.cp_forward_s + c.ep_forward_s;
    double backward = c.input_grad_s + c.weight_grad_s + c.recompute_s + c.tp_backward_s +
                      c.cp_backward_s + c.ep_backward_s;
    lua_createtable(L, 0, 7);
    hv__set_num(L, "time_s", (phase != 1 ? forward : 0) + (phase != 0 ? backward : 0));
    hv__set_num(L, "flops", c.flops_forward);
    hv__set_num(L, "bytes", (c.parameters + c.expert_parameters) * hv_job_weight_bytes(job));
    hv__set_num(L, "saved_bytes", c.saved_bytes);
    hv__set_num(L, "transient_bytes", c.transient_bytes);
    hv__set_num(L, "output_bytes", c.output_bytes);
    push_why(L, &why);
    lua_setfield(L, -2, "why");
    return 1;
}
