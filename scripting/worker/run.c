/*
 * A strategy run from request to result: host, plan(), apply(), claim(). The parts of a composition
 * are in run_parts.c, the handling of plans in api/run_offer.c, the process in run_cell.c and
 * worker.c.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/offer_int.h"
#include "scripting/api/plan_int.h"
#include "scripting/api/queue_int.h"
#include "scripting/plugin/plugin_host.h"
#include "scripting/worker/parts_int.h"
#include "solver/base/units.h"
#include "solver/io/own/plan/claim_file.h"
#include "solver/io/own/verdict_file.h"

#include <stdlib.h>
#include <string.h>

#define LOG_LINE_MAX  4096
#define SOFT_FRACTION 0.85
#define HARD_FRACTION 0.97

/** An empty Lua table is a list or an object; the terms of a claim are an object. */
static void fix_empty_terms(json_t *claim)
{
    json_t *terms = json_object_get(claim, "terms");

    if (json_is_array(terms) && json_array_size(terms) == 0) {
        json_object_set_new(claim, "terms", json_object());
    }
}

/** Raises an error where a claim cannot stand in a plan file: a plan must not lose it silently. */
static void check_claim(lua_State *L, const struct hv_plugin *p, json_t *claim)
{
    struct hv_err err = {0};

    if (hv_claim_check(claim, &err) != HV_OK) {
        json_decref(claim);
        luaL_error(L, "claim() of %s: %s", p->id, err.text);
    }
}

/** Calls claim(plan table, ctx) of the first part and stores its result; the handle is at `plan`.
 */
static void add_claim(lua_State *L, struct hv__job *j, int plan, json_t *tree)
{
    const struct hv_plugin *p = j->parts[0].plugin;
    struct hv_err err = {0};

    if (!p->has[HV_PLUGIN_CLAIM]) {
        return;
    }
    if (hv__plugin_push_of(L, p, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    lua_getfield(L, -1, "claim");
    hv__blame(L);
    lua_pushvalue(L, plan);
    hv__push_ctx_of(L, -3, j->parts[0].options);
    lua_call(L, 2, 1);
    if (lua_istable(L, -1)) {
        json_t *claim = hv__to_json(L, -1, &err);
        if (claim == NULL) {
            hv__raise(L, &err);
        }
        fix_empty_terms(claim);
        check_claim(L, p, claim);
        json_object_set_new(tree, "claimed", claim);
    }
    lua_pop(L, 2);
}

/** Judges the plan at the top (a handle or a plan table) and pops it. */
static void take_plan(lua_State *L, struct hv__job *j)
{
    struct hv_err err = {0};

    hv__compose(L, &j->run);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    if (!lua_istable(L, -1) && !lua_isuserdata(L, -1)) {
        luaL_error(L, "plan() returned a %s, expected a plan or nil and a reason",
                   luaL_typename(L, -1));
    }
    struct hv__plan *p = hv__plan_make(L, -1);
    const char *lost = hv__uses_lost(&j->run, p->doc.plan, &j->run.host->arena);
    if (lost != NULL) {
        hv_str_clear(&j->out->reason);
        hv_str_adds(&j->out->reason, lost);
        lua_pop(L, 2);
        return;
    }
    json_t *tree = json_copy(p->doc.json.root);
    /* the tree hangs on a userdata while Lua may raise errors */
    json_t **guard = lua_newuserdatauv(L, sizeof *guard, 0);
    *guard = tree;
    luaL_setmetatable(L, HV__TREE);
    hv__sign_plan(j->parts, j->n_parts, tree);
    add_claim(L, j, lua_absindex(L, -2), tree);
    j->run.returned = true;
    j->status = hv__offer(&j->run, tree, &err);
    j->run.returned = false;
    if (j->status != HV_OK && j->out->reason.n == 0) {
        hv_str_adds(&j->out->reason, err.text);
    }
    lua_pop(L, 3);
}

/** Calls replan(ctx, plan, lost): leaves two results. */
static void call_replan(lua_State *L, struct hv__job *j)
{
    const struct hv_plugin *p = j->parts[0].plugin;
    const struct hv_cluster *c = hv_cost_cluster(j->run.cost);
    struct hv_err err = {0};
    lua_Integer n = 0;

    if (hv__plugin_push_of(L, p, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    int system = lua_gettop(L);
    lua_getfield(L, system, "replan");
    hv__blame(L);
    hv__push_ctx_of(L, system, j->parts[0].options);
    lua_remove(L, system);
    hv__push_json(L, j->run.request->replan);
    lua_newtable(L);
    for (uint32_t d = 0; d < c->n_devices; d++) {
        if (!j->run.lost[d]) {
            continue;
        }
        lua_pushinteger(L, (lua_Integer)d + 1);
        lua_rawseti(L, -2, ++n);
    }
    lua_call(L, 3, 2);
}

/** The run inside one protected call. */
static int run_protected(lua_State *L)
{
    struct hv__job *j = lua_touserdata(L, 1);

    lua_settop(L, 0);
    if (j->run.request->replan != NULL && j->parts[0].plugin->has[HV_PLUGIN_REPLAN]) {
        call_replan(L, j);
    } else {
        hv__call_plan(L, j->parts[0].plugin, j->parts[0].options);
    }
    if (lua_isnil(L, 1)) {
        hv_str_adds(&j->out->reason,
                    lua_isstring(L, 2)
                        ? lua_tostring(L, 2)
                        : "plan() returned nothing and no reason (return a plan, or nil and why)");
        return 0;
    }
    lua_settop(L, 1);
    bool is_list = lua_istable(L, 1) && lua_rawlen(L, 1) > 0;
    lua_Integer n = is_list ? (lua_Integer)lua_rawlen(L, 1) : 1;
    for (lua_Integer i = 1; i <= n; i++) {
        if (is_list) {
            lua_rawgeti(L, 1, i);
        } else {
            lua_pushvalue(L, 1);
        }
        take_plan(L, j);
    }
    return 0;
}

static void forward_log(void *ctx, const char *text)
{
    const struct hv__run *r = ctx;
    json_t *e = json_object();
    json_t *s = json_stringn(text, strnlen(text, LOG_LINE_MAX));

    json_object_set_new(e, "event", json_string("log"));
    json_object_set_new(e, "text", s != NULL ? s : json_string("(not UTF-8)"));
    if (r->request->event != NULL) {
        r->request->event(r->request->ctx, e);
    }
    json_decref(e);
}

static bool forward_cancel(void *ctx)
{
    const struct hv__run *r = ctx;
    return r->request->cancel != NULL && r->request->cancel(r->request->ctx);
}

/** Runs the job on a fresh host. */
static enum hv_status run_on_host(struct hv__job *j, struct hv_err *err)
{
    const struct hv_run_request *q = j->run.request;
    struct hv_host_limits limits = {
        .seed = q->seed, .log = forward_log, .cancel = forward_cancel, .ctx = &j->run};
    if (q->time_limit_s > 0) {
        limits.deadline_s = HARD_FRACTION * q->time_limit_s;
        j->run.soft_limit_s = SOFT_FRACTION * q->time_limit_s;
    }
    enum hv_status s = hv_plugin_host_new(&j->run.host, &limits, err);
    if (s != HV_OK) {
        return s;
    }
    j->run.host->run = &j->run;
    s = hv__guard(j->run.host, run_protected, j, err);
    if (s != HV_OK && err != NULL && err->file[0] == '\0') { /* out of memory: no line is known */
        hv_err_at(err, s, j->parts[0].plugin->name, 0, 0,
                  "%s; the cluster has %u devices: plan for fewer of them (lower the counts of its "
                  "node groups), or choose a strategy that needs less memory per device",
                  (const char *)err->text, q->inputs->cluster.cluster->n_devices);
    }
    if (s == HV_EPLUGIN) {
        hv_str_adds(&j->out->traceback, hv_host_traceback(j->run.host));
    }
    hv_host_free(j->run.host);
    return s;
}

/** True where a plan that exceeds the memory was requested (option allow_oom of `manual`) and
 * memory is its only violation. */
static bool is_allowed(const struct hv__job *j)
{
    const json_t *found = json_object_get(j->run.best, "violations");

    if (!json_is_true(json_object_get(j->parts[0].options, "allow_oom"))) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(found); i++) {
        const char *code = json_string_value(json_object_get(json_array_get(found, i), "code"));
        if (code == NULL || strcmp(code, hv_violation_name(HV_V_MEMORY)) != 0) {
            return false;
        }
    }
    return true;
}

/** Reports the cause of the end and whether a plan was found; for a plugin that was killed at the
 * time limit, also the line where it was stopped. */
static enum hv_status cut_short(struct hv__job *j, enum hv_status s, struct hv_err *err)
{
    bool asked = forward_cancel(&j->run);
    char place[sizeof err->file + 32] = "";
    if (s != HV_OK && !asked && err != NULL && err->file[0] != '\0') {
        (void)snprintf(place, sizeof place, " (stopped in %s:%u)", err->file, err->line);
    }
    return hv_err_set(
        err, HV_ESTOPPED, "%s: %s%s%s", j->run.request->strategy,
        asked ? "interrupted" : "the time limit is reached",
        j->run.best != NULL ? "; this is the best plan so far" : " before a plan was found", place);
}

/** A plan that violates a rule is not a valid result of a run that ended early: drops it and gives
 * the violation as the reason. */
static enum hv_status give_up_broken(struct hv__job *j, enum hv_status s, struct hv_err *err)
{
    const json_t *first = json_array_get(json_object_get(j->run.best, "violations"), 0);
    const char *text = json_string_value(json_object_get(first, "text"));
    char why[sizeof err->text];

    (void)snprintf(why, sizeof why, "%s", text != NULL ? text : "it violates a rule");
    json_decref(j->run.best);
    j->run.best = j->out->plan = NULL;
    s = cut_short(j, s, err);
    return hv_err_set(err, s, "%s; the best plan so far does not fit: %s", (const char *)err->text,
                      why);
}

/** From the best plan to status and reason. */
static enum hv_status conclude(struct hv__job *j, enum hv_status s, struct hv_err *err)
{
    struct hv_run_result *out = j->out;

    if (j->run.best != NULL && json_object_get(j->run.best, "strategy") == NULL) {
        hv__sign_plan(j->parts, j->n_parts, j->run.best);
    }
    out->plan = j->run.best;
    out->evaluations = j->run.evaluations;
    out->stopped = s == HV_ESTOPPED || (s == HV_OK && j->run.late);
    if (out->stopped && j->run.best != NULL && j->run.best_rank == HV__PLAN_BROKEN &&
        !is_allowed(j)) {
        return give_up_broken(j, s, err);
    }
    if (out->stopped) {
        return cut_short(j, s, err);
    }
    if (s != HV_OK) {
        return s;
    }
    if (out->plan == NULL) {
        return hv_err_set(err, HV_ENO, "%s: %s", j->run.request->strategy,
                          hv_str_cstr(&out->reason));
    }
    out->over_limits = j->run.best_rank == HV__PLAN_OVER;
    if (j->run.best_rank >= HV__PLAN_OVER && !is_allowed(j)) {
        const json_t *first = json_array_get(json_object_get(out->plan, "violations"), 0);
        const char *text = json_string_value(json_object_get(first, "text"));
        hv_str_clear(&out->reason);
        hv_str_adds(&out->reason, text != NULL ? text : "the plan violates a rule");
        return hv_err_set(err, HV_ENO, "%s: %s", j->run.request->strategy,
                          hv_str_cstr(&out->reason));
    }
    return HV_OK;
}

/** Marks the devices of the request's addresses as lost. */
static enum hv_status mark_lost(struct hv__job *j, bool **lost, struct hv_err *err)
{
    const struct hv_run_request *q = j->run.request;
    const struct hv_cluster *c = q->inputs->cluster.cluster;
    struct hv_arena arena = {0};
    enum hv_status s = HV_OK;

    if (q->replan == NULL && q->n_lost == 0) {
        return HV_OK;
    }
    *lost = hv_xcalloc(c->n_devices + 1, sizeof **lost);
    for (size_t i = 0; i < q->n_lost && s == HV_OK; i++) {
        uint32_t *ids = NULL;
        size_t n = 0;
        s = hv_address_resolve(c, q->lost[i], &arena, &ids, &n, err);
        for (size_t k = 0; s == HV_OK && k < n; k++) {
            (*lost)[ids[k]] = true;
        }
    }
    hv_arena_free(&arena);
    j->run.lost = *lost;
    return s;
}

/** True where a part of the composition takes node groups in the order of the file. */
static bool keeps_file_order(const struct hv__job *j)
{
    for (size_t i = 0; i < j->n_parts; i++) {
        if (j->parts[i].plugin->file_order) {
            return true;
        }
    }
    return false;
}

/** True where what the user gave is judged, whether or not the job's runtime can run it. */
static bool takes_as_given(const struct hv__job *j)
{
    return j->n_parts > 0 && j->parts[0].plugin->as_given;
}

void hv_run_prices_free(struct hv_run_prices *p)
{
    hv_cost_free(p->cost);
    hv_cluster_unref(p->cluster);
    *p = (struct hv_run_prices){0};
}

/** Prices of the inputs: those of the run before where they are the same, else new ones. */
static void open_prices(struct hv_run_prices *p, const struct hv_inputs *in, bool file_order)
{
    if (p->cost != NULL && p->inputs == in && p->file_order == file_order) {
        return;
    }
    hv_run_prices_free(p);
    p->inputs = in;
    p->file_order = file_order;
    p->cluster = file_order ? hv_cluster_ref(in->cluster.cluster)
                            : hv_cluster_canonical(in->cluster.cluster);
    p->cost = hv_cost_new(p->cluster, in->model.model, &in->job.job);
}

enum hv_status hv_run_strategy_here(const struct hv_run_request *r, struct hv_run_result *out,
                                    struct hv_err *err)
{
    struct hv_inputs inputs = *r->inputs; /* a view: the cluster in the order of the run */
    struct hv_run_request request = *r;
    struct hv__job j = {.run = {.request = &request, .calls = hv__run_calls(), .is_job = true},
                        .out = out,
                        .err = err};
    struct hv_run_prices own = {0}, *prices = r->prices != NULL ? r->prices : &own;
    bool *lost = NULL;

    *out = (struct hv_run_result){.applies = true};
    request.inputs = &inputs;
    enum hv_status s = hv__find_parts(r->plugins, r->strategy, j.parts, &j.n_parts, err);
    j.run.as_given = takes_as_given(&j);
    open_prices(prices, r->inputs, keeps_file_order(&j));
    inputs.cluster.cluster = prices->cluster;
    if (s == HV_OK) {
        s = hv__deal_options(j.parts, j.n_parts, r->options, err);
    }
    if (s == HV_OK) {
        s = hv__queue_open(&j.run, err);
    }
    for (size_t i = 0; s == HV_OK && i < j.n_parts; i++) {
        if (!hv__applies(&j.run, j.parts[i].plugin, &out->reason)) {
            out->applies = false;
            s = hv_err_set(err, HV_ENO, "does not apply: %s", hv_str_cstr(&out->reason));
        }
    }
    if (s == HV_OK) {
        s = mark_lost(&j, &lost, err);
    }
    if (s == HV_OK) {
        json_t *start = json_object();
        json_object_set_new(start, "event", json_string("start"));
        hv__emit(&j.run, start);
        j.run.cost = prices->cost;
        s = run_on_host(&j, err);
        s = conclude(&j, s, err);
    }
    free(lost);
    hv__queue_close(&j.run);
    hv__free_parts(j.parts, j.n_parts);
    hv_run_prices_free(&own);
    return s;
}

void hv_run_result_free(struct hv_run_result *r)
{
    json_decref(r->plan);
    hv_str_free(&r->reason);
    hv_str_free(&r->traceback);
    *r = (struct hv_run_result){0};
}

json_t *hv_run_result_event(const struct hv_run_result *r, enum hv_status s,
                            const struct hv_err *err)
{
    json_t *e = json_object();
    char text[1400];

    if (s != HV_OK && s != HV_ENO && s != HV_ESTOPPED) {
        json_object_set_new(e, "event", json_string("error"));
        json_object_set_new(e, "status", json_string(hv_status_name(s)));
        json_object_set_new(e, "text", json_string(hv_err_format(err, text, sizeof text)));
        if (r->traceback.n > 0) {
            json_object_set_new(e, "traceback", json_string(hv_str_cstr(&r->traceback)));
        }
        return e;
    }
    json_object_set_new(e, "event", json_string("result"));
    json_object_set_new(e, "applies", json_boolean(r->applies));
    if (r->stopped) {
        json_object_set_new(e, "stopped", json_true());
    }
    if (s != HV_OK) {
        json_object_set_new(e, "reason",
                            json_string(r->reason.n > 0 ? hv_str_cstr(&r->reason)
                                                        : hv_err_format(err, text, sizeof text)));
    }
    json_object_set_new(e, "plan", r->plan != NULL ? json_incref(r->plan) : json_null());
    json_object_set_new(e, "evaluations", json_integer(r->evaluations));
    return e;
}
