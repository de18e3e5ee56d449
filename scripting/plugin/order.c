/*
 * Calls order(p) of a plugin and copies its tokens; without a run, in a child process that sends
 * them as one line. Their meaning is checked by solver/sim.
 */
#include "scripting/plugin/order.h"

#include "scripting/api/order_tokens.h"
#include "scripting/host/message.h"
#include "scripting/plugin/order_int.h"
#include "scripting/plugin/plugin_host.h"
#include "scripting/plugin/plugin_int.h"

#include <stdint.h>
#include <string.h>

#define ORDER_DEADLINE_S 60.0

/** A call in progress; it has a host of its own, so that a schedule can be made without a strategy.
 */
struct call {
    const struct hv_order_request *request;
    struct hv_arena *arena;
    struct hv_order_text *out;
    struct hv_str reason;
};

/** Pushes the known figures of every stage. */
static void push_stages(lua_State *L, const struct hv_order_request *r)
{
    size_t n = (size_t)r->ranks * (size_t)r->chunks;

    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        const struct hv_stage_cost *c = r->costs != NULL ? &r->costs[i] : &r->cost;
        lua_createtable(L, 0, 4);
        hv__set_num(L, "f", c->f_s);
        hv__set_num(L, "b", c->b_s);
        hv__set_num(L, "w", c->w_s);
        if (r->activation_bytes != NULL) {
            hv__set_num(L, "memory_bytes", r->activation_bytes[i]);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/** Pushes p; its options are the table at `options`. */
static void push_argument(lua_State *L, const struct hv_order_request *r, int options)
{
    static const char *const sizes[] = {"ranks", "micro_batches", "chunks", "stages"};
    const int32_t values[] = {r->ranks, r->micro_batches, r->chunks, r->ranks * r->chunks};

    lua_newtable(L);
    for (size_t i = 0; i < HV_COUNT(sizes); i++) {
        lua_pushinteger(L, values[i]);
        lua_setfield(L, -2, sizes[i]);
    }
    lua_newtable(L);
    hv__set_num(L, "f", r->cost.f_s);
    hv__set_num(L, "b", r->cost.b_s);
    hv__set_num(L, "w", r->cost.w_s);
    hv__set_num(L, "hop", r->hop_s);
    lua_setfield(L, -2, "times");
    push_stages(L, r);
    lua_setfield(L, -2, "per_stage");
    lua_getfield(L, options, "memory");
    lua_setfield(L, -2, "memory");
    lua_pushvalue(L, options);
    lua_setfield(L, -2, "options");
}

bool hv__call_order(lua_State *L, const struct hv_order_request *r)
{
    struct hv_err err = {0};
    int options = lua_gettop(L);

    if (!r->plugin->has[HV_PLUGIN_ORDER]) {
        luaL_error(L, "strategy %s has no order(p), so it is not a schedule", r->plugin->id);
    }
    if (hv__plugin_push_of(L, r->plugin, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    lua_getfield(L, -1, "order");
    lua_remove(L, -2);
    push_argument(L, r, options);
    lua_call(L, 1, 2);
    lua_remove(L, options);
    return !lua_isnil(L, -2);
}

static int run_order(lua_State *L)
{
    struct call *c = lua_touserdata(L, 1);

    if (c->request->options != NULL) {
        hv__push_json(L, c->request->options);
    } else {
        lua_newtable(L);
    }
    if (!hv__call_order(L, c->request)) {
        hv_str_adds(&c->reason, lua_isstring(L, -1) ? lua_tostring(L, -1) : "no reason given");
    } else {
        c->out = hv__take_order(L, lua_gettop(L) - 1, "order", c->request->ranks, c->arena);
    }
    return 0;
}

/** Runs order(p) in this process; *out is of the arena. */
static enum hv_status run_here(struct hv_arena *a, const struct hv_order_request *r,
                               const struct hv_order_text **out, struct hv_err *err)
{
    const struct hv_host_limits limits = {.deadline_s = ORDER_DEADLINE_S, .seed = r->seed};
    struct call c = {.request = r, .arena = a};
    struct hv_host *h = NULL;
    enum hv_status s = hv_plugin_host_new(&h, &limits, err);

    if (s == HV_OK) {
        s = hv__guard(h, run_order, &c, err);
    }
    if (s == HV_OK && c.out == NULL) {
        s = hv_err_set(err, HV_ENO, "schedule %s gives no order for p = %d, m = %d, v = %d: %s",
                       r->plugin->id, r->ranks, r->micro_batches, r->chunks,
                       hv_str_cstr(&c.reason));
    }
    *out = c.out;
    hv_str_free(&c.reason);
    hv_host_free(h);
    return s;
}

/** The child: {"rows": one list of tokens per rank} or {"error": …}. */
static void run_inside(void *ctx, struct hv__cell_inside *inside)
{
    const struct hv_order_request *r = ctx;
    const struct hv_order_text *order = NULL;
    struct hv_arena arena = {0};
    struct hv_err err = {0};
    enum hv_status s = run_here(&arena, r, &order, &err);

    if (s != HV_OK) {
        hv__message_send(inside, json_pack("{s:o}", "error", hv__pack_err(s, &err)));
    } else {
        json_t *rows = json_array();
        for (int32_t rank = 0; rank < r->ranks; rank++) {
            json_t *row = json_array();
            for (size_t i = 0; i < order[rank].n; i++) {
                const char *token = order[rank].tokens[i];
                json_array_append_new(row, hv__pack_text(token, strlen(token)));
            }
            json_array_append_new(rows, row);
        }
        hv__message_send(inside, json_pack("{s:o}", "rows", rows));
    }
    hv_arena_free(&arena);
}

/** The tokens of one rank. */
static struct hv_order_text unpack_row(struct hv_arena *a, const json_t *row)
{
    size_t n = json_array_size(row);
    const char **tokens = hv_arena_new(a, const char *, n + 1);
    struct hv_str text = {0};

    for (size_t i = 0; i < n; i++) {
        hv_str_clear(&text);
        hv__unpack_text(json_array_get(row, i), &text);
        tokens[i] = hv_arena_strdup(a, hv_str_cstr(&text));
    }
    hv_str_free(&text);
    return (struct hv_order_text){.tokens = tokens, .n = n};
}

/** From the child's answer to the order. */
static enum hv_status unpack(struct hv_arena *a, const struct hv_order_request *r,
                             const json_t *answer, const struct hv_order_text **out,
                             struct hv_err *err)
{
    const json_t *rows = json_object_get(answer, "rows");
    struct hv_order_text *order = hv_arena_new(a, struct hv_order_text, (size_t)r->ranks + 1);

    if (json_array_size(rows) != (size_t)r->ranks) {
        return hv__unpack_err(json_object_get(answer, "error"), err);
    }
    for (int32_t rank = 0; rank < r->ranks; rank++) {
        order[rank] = unpack_row(a, json_array_get(rows, (size_t)rank));
    }
    *out = order;
    return HV_OK;
}

enum hv_status hv_run_order(struct hv_arena *a, const struct hv_order_request *r,
                            const struct hv_order_text **out, struct hv_err *err)
{
    const struct hv__cell_work work = {.run = run_inside,
                                       .ctx = (void *)(uintptr_t)r,
                                       .limit_s = ORDER_DEADLINE_S,
                                       .cpu_s = ORDER_DEADLINE_S};
    struct hv__cell cell;
    const char *line = NULL;
    size_t n = 0;

    *out = NULL;
    if (r->plugin->error != NULL) {
        return hv_err_set(err, HV_EPLUGIN, "%s", r->plugin->error);
    }
    enum hv_status s = hv__cell_start(&cell, &work, err);
    if (s != HV_OK) {
        return s;
    }
    enum hv__heard heard = hv__cell_next(&cell, &line, &n);
    json_t *answer = heard == HV__CELL_LINE ? hv__message_read(line, n) : NULL;
    int status = hv__cell_end(&cell);
    if (answer != NULL) {
        s = unpack(a, r, answer, out, err);
        json_decref(answer);
        return s;
    }
    struct hv_str how = {0};
    hv__cell_describe(status, &how);
    s = heard == HV__CELL_LATE
            ? hv_err_at(err, HV_ESTOPPED, r->plugin->name, 0, 0,
                        "order(p) is not done after %g s, in a call that cannot be interrupted",
                        ORDER_DEADLINE_S)
            : hv_err_at(err, HV_EPLUGIN, r->plugin->name, 0, 0,
                        "the process of order(p) has no result: %s", hv_str_cstr(&how));
    hv_str_free(&how);
    return s;
}
