/*
 * A strategy run in a child process: its events and its result come as lines. The run itself is in
 * run.c, the child in host/cell.c.
 */
#include "scripting/host/message.h"
#include "scripting/worker/parts_int.h"
#include "solver/base/units.h"
#include "solver/plan/check.h"

#include <string.h>

/* ---- the child ------------------------------------------------------------------------------- */

/** Arguments of the child. */
struct job {
    const struct hv_run_request *request;
    struct hv__cell_inside *inside;
};

/** Incumbents are sent always: the last one is the result of a child that is ended by force. */
static void send_event(void *ctx, const json_t *line)
{
    const struct job *j = ctx;
    const char *event = json_string_value(json_object_get(line, "event"));

    if (j->request->event != NULL || (event != NULL && strcmp(event, "incumbent") == 0)) {
        hv__message_send(j->inside, json_pack("{s:O}", "event", line));
    }
}

static bool is_asked(void *ctx)
{
    return hv__cell_is_asked(((struct job *)ctx)->inside);
}

static json_t *pack_result(const struct hv_run_result *r, enum hv_status s,
                           const struct hv_err *err)
{
    json_t *out = json_object();

    json_object_set_new(out, "error", hv__pack_err(s, err));
    json_object_set_new(out, "applies", json_boolean(r->applies));
    json_object_set_new(out, "stopped", json_boolean(r->stopped));
    json_object_set_new(out, "over_limits", json_boolean(r->over_limits));
    json_object_set_new(out, "evaluations", json_integer(r->evaluations));
    json_object_set_new(out, "reason", hv__pack_text(hv_str_cstr(&r->reason), r->reason.n));
    json_object_set_new(out, "traceback",
                        hv__pack_text(hv_str_cstr(&r->traceback), r->traceback.n));
    json_object_set_new(out, "plan", r->plan != NULL ? json_incref(r->plan) : json_null());
    return out;
}

static void run_inside(void *ctx, struct hv__cell_inside *inside)
{
    struct job j = {.request = ctx, .inside = inside};
    struct hv_run_request r = *j.request;
    struct hv_run_result result = {0};
    struct hv_err err = {0};

    r.event = send_event;
    r.cancel = is_asked;
    r.ctx = &j;
    enum hv_status s = hv_run_strategy_here(&r, &result, &err);
    hv__message_send(inside, json_pack("{s:o}", "result", pack_result(&result, s, &err)));
    hv_run_result_free(&result);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/** What has come of the child so far. */
struct heard {
    json_t *incumbent; /**< the plan of the last one, or NULL */
    json_t *result;    /**< or NULL */
};

static void take_line(const struct hv_run_request *r, struct heard *h, const char *line, size_t n)
{
    json_t *message = hv__message_read(line, n);
    const json_t *event = json_object_get(message, "event");
    json_t *result = json_object_get(message, "result");
    const char *name = json_string_value(json_object_get(event, "event"));

    if (result != NULL) {
        json_decref(h->result);
        h->result = json_incref(result);
    }
    if (name != NULL && strcmp(name, "incumbent") == 0) {
        json_decref(h->incumbent);
        h->incumbent = json_incref(json_object_get(event, "plan"));
    }
    if (name != NULL && r->event != NULL) {
        r->event(r->ctx, event);
    }
    json_decref(message);
}

static enum hv_status unpack_result(const json_t *packed, struct hv_run_result *out,
                                    struct hv_err *err)
{
    json_t *plan = json_object_get(packed, "plan");

    out->applies = json_is_true(json_object_get(packed, "applies"));
    out->stopped = json_is_true(json_object_get(packed, "stopped"));
    out->over_limits = json_is_true(json_object_get(packed, "over_limits"));
    out->evaluations = json_integer_value(json_object_get(packed, "evaluations"));
    hv__unpack_text(json_object_get(packed, "reason"), &out->reason);
    hv__unpack_text(json_object_get(packed, "traceback"), &out->traceback);
    out->plan = json_is_object(plan) ? json_incref(plan) : NULL;
    return hv__unpack_err(json_object_get(packed, "error"), err);
}

/** True where a plan can be run: what it violates, if anything, are limits of the objective. */
static bool can_run(const json_t *plan)
{
    const json_t *found = json_object_get(plan, "violations");

    for (size_t i = 0; i < json_array_size(found); i++) {
        const char *code = json_string_value(json_object_get(json_array_get(found, i), "code"));
        if (code == NULL || (strcmp(code, hv_violation_name(HV_V_DEADLINE)) != 0 &&
                             strcmp(code, hv_violation_name(HV_V_PRICE)) != 0)) {
            return false;
        }
    }
    return json_is_object(plan);
}

/** The last incumbent with its strategy; NULL where there is none that can be run. */
static json_t *best_so_far(const struct hv_run_request *r, const struct heard *h)
{
    struct hv__part parts[HV__PARTS_MAX] = {{0}};
    size_t n = 0;

    if (!can_run(h->incumbent)) {
        return NULL;
    }
    json_t *plan = json_copy(h->incumbent);
    if (json_object_get(plan, "strategy") == NULL &&
        hv__find_parts(r->plugins, r->strategy, parts, &n, NULL) == HV_OK &&
        hv__deal_options(parts, n, r->options, NULL) == HV_OK) {
        hv__sign_plan(parts, n, plan);
    }
    hv__free_parts(parts, n);
    return plan;
}

/** A run that was ended by force. */
static enum hv_status cut_off(const struct hv_run_request *r, const struct heard *h, bool late,
                              struct hv_run_result *out, struct hv_err *err)
{
    out->stopped = true;
    out->plan = best_so_far(r, h);
    if (out->plan == NULL) {
        return hv_err_set(err, HV_ESTOPPED,
                          "stopped during a long operation that cannot be interrupted; no result");
    }
    return hv_err_set(err, HV_ESTOPPED, "%s: %s; this is the best plan so far", r->strategy,
                      late ? "the time limit is reached" : "interrupted");
}

/** A run whose child crashed. */
static enum hv_status crashed(const struct hv_run_request *r, int status, struct hv_err *err)
{
    struct hv__part parts[HV__PARTS_MAX] = {{0}};
    struct hv_str how = {0};
    size_t n = 0;

    bool known = hv__find_parts(r->plugins, r->strategy, parts, &n, NULL) == HV_OK;
    hv__cell_describe(status, &how);
    (void)hv_err_at(err, HV_EPLUGIN, known ? parts[0].plugin->name : r->strategy, 0, 0,
                    "the process of this strategy has no result: %s", hv_str_cstr(&how));
    hv_str_free(&how);
    return HV_EPLUGIN;
}

enum hv_status hv_run_strategy(const struct hv_run_request *r, struct hv_run_result *out,
                               struct hv_err *err)
{
    const struct hv__cell_work work = {.run = run_inside,
                                       .ctx = (void *)(uintptr_t)r,
                                       .limit_s = r->time_limit_s,
                                       .cpu_s = r->time_limit_s,
                                       .cancel = r->cancel,
                                       .cancel_ctx = r->ctx};
    struct hv__cell cell;
    struct heard h = {0};
    enum hv__heard heard;
    const char *line = NULL;
    size_t n = 0;

    *out = (struct hv_run_result){.applies = true};
    enum hv_status s = hv__cell_start(&cell, &work, err);
    if (s != HV_OK) {
        return s;
    }
    while ((heard = hv__cell_next(&cell, &line, &n)) == HV__CELL_LINE) {
        take_line(r, &h, line, n);
    }
    int status = hv__cell_end(&cell);
    bool leaks = HV_ASAN && status != 0; /* found when the child had sent its result */
    if (h.result != NULL && !leaks) {
        s = unpack_result(h.result, out, err);
    } else if (heard == HV__CELL_END) {
        s = crashed(r, status, err);
    } else {
        s = cut_off(r, &h, heard == HV__CELL_LATE, out, err);
    }
    json_decref(h.result);
    json_decref(h.incumbent);
    return s;
}
