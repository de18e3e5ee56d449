/*
 * Runs: a strategy becomes a job of the pool and a row; what the worker says goes into the row. Not
 * for judging plans (session_judge.c) nor for the list of rows (session_rows.c).
 */
#include "ui/session/session_int.h"

#include "scripting/worker/run.h"
#include "solver/base/units.h"
#include <math.h>
#include <string.h>

/* A worker ends itself at the limit and hands in its best; the pool waits this much longer (s). */
#define GRACE_S 1.0

struct hv_session_limits hv_session_limits(const struct hv_session *s)
{
    return s->limits;
}

void hv_session_limits_set(struct hv_session *s, struct hv_session_limits limits)
{
    s->limits = limits;
    hv__session_did(s, "limit time=%.15g evaluations=%lld seed=%llu", limits.time_limit_s,
                    (long long)limits.budget, (unsigned long long)limits.seed);
}

/* Options set for the strategy, changed by those of this run; for a composition {"part": {…}}. */
static json_t *all_options(const struct hv_session *s, const char *strategy, const json_t *given)
{
    json_t *out = json_object();
    bool composed = strchr(strategy, '+') != NULL;
    const char *at = strategy;
    do {
        size_t n = strcspn(at, "+");
        struct hv_str id = {0};
        hv_str_add(&id, at, n);
        json_t *options = hv__session_options_of(s, hv_str_cstr(&id));
        if (options != NULL && composed) {
            json_object_set(out, hv_str_cstr(&id), options);
        } else if (options != NULL) {
            json_object_update(out, options);
        }
        hv_str_free(&id);
        at += n;
    } while (*at++ != '\0');
    if (given != NULL) {
        json_object_update(out, (json_t *)(uintptr_t)given);
    }
    return out;
}

static json_t *make_job(const struct hv_session *s, const char *strategy, json_t *options)
{
    json_t *job = json_object();
    for (int d = 0; d < HV__INPUTS; d++) {
        json_object_set(job, hv_doc_name((enum hv_doc)d), s->tree[d]);
    }
    json_object_set_new(job, "strategy", json_string(strategy));
    json_object_set(job, "options", options);
    json_object_set_new(job, "seed", json_integer((json_int_t)s->limits.seed));
    if (s->limits.budget > 0) {
        json_object_set_new(job, "budget", json_integer(s->limits.budget));
    }
    if (s->limits.time_limit_s > 0) {
        json_object_set_new(job, "time_limit_s", json_real(s->limits.time_limit_s));
    }
    return job;
}

/* "run whale faults=2": what was said for this run only; the rest is set with `option`. */
static void tell_run(struct hv_session *s, const char *strategy, const json_t *options)
{
    struct hv_str line = {0};
    const char *key;
    json_t *value;
    hv_str_adds(&line, "run ");
    hv__session_add_word(&line, strategy);
    json_object_foreach((json_t *)(uintptr_t)options, key, value)
    {
        char text[512];
        struct hv_str pair = {0};
        hv_str_addf(&pair, "%s=%s", key, hv_option_text(value, text, sizeof text));
        hv_str_addc(&line, ' ');
        hv__session_add_word(&line, hv_str_cstr(&pair));
        hv_str_free(&pair);
    }
    hv__session_did(s, "%s", hv_str_cstr(&line));
    hv_str_free(&line);
}

enum hv_status hv_session_run(struct hv_session *s, const char *strategy, const json_t *options,
                              uint32_t *id, struct hv_err *err)
{
    const struct hv_plugins plugins = hv__session_plugins(s);
    json_t *all = all_options(s, strategy, options);
    enum hv_status st = hv_run_check(&plugins, strategy, all, err);
    if (st != HV_OK) {
        json_decref(all);
        return st;
    }
    char *name = hv__session_row_fresh_name(s, strategy);
    struct hv__row *r = hv__session_row_new(s, name, strategy);
    free(name);
    r->options = all;
    r->pub.state = HV_ROW_QUEUED;
    hv__session_row_made_now(s, r);
    json_t *job = make_job(s, strategy, all);
    r->job = hv_pool_submit(s->pool, job,
                            s->limits.time_limit_s > 0 ? s->limits.time_limit_s + GRACE_S : 0);
    json_decref(job);
    hv__session_row_publish(s, r);
    hv__session_rows_sort(s);
    tell_run(s, strategy, options);
    hv__session_moved(s);
    if (id != NULL) {
        *id = r->pub.id;
    }
    return HV_OK;
}

size_t hv_session_run_all(struct hv_session *s)
{
    size_t n = 0, n_all = 0;
    const struct hv_plugin *all = hv_session_strategies(s, &n_all);
    for (size_t i = 0; i < n_all; i++) {
        const struct hv_plugin *p = &all[i];
        if (p->error == NULL && p->has[HV_PLUGIN_PLAN]) {
            n += hv_session_run(s, p->id, NULL, NULL, NULL) == HV_OK;
        }
    }
    return n;
}

bool hv_session_cancel(struct hv_session *s, uint32_t id)
{
    struct hv__row *r = hv__session_row_any(s, id);
    if (r == NULL || r->job == 0) {
        return false;
    }
    hv__session_did(s, "cancel %s", r->name);
    return hv_pool_cancel(s->pool, r->job);
}

size_t hv_session_cancel_all(struct hv_session *s)
{
    size_t n = 0;
    for (size_t i = s->rows.n; i-- > 0;) { /* from the end: what waits must not start meanwhile */
        n += hv_session_cancel(s, s->rows.items[i]->pub.id);
    }
    return n;
}

size_t hv_session_n_running(const struct hv_session *s)
{
    return hv_pool_n_running(s->pool);
}

size_t hv_session_n_queued(const struct hv_session *s)
{
    return hv_pool_n_queued(s->pool);
}

/* ---- what workers say --------------------------------------------------------------------------
 */

static struct hv__row *row_of_job(const struct hv_session *s, uint32_t job)
{
    for (size_t i = s->rows.n; i-- > 0;) {
        if (s->rows.items[i]->job == job) {
            return s->rows.items[i];
        }
    }
    return NULL;
}

static void add_log(struct hv__row *r, const char *text)
{
    if (text[0] == '\0') {
        return;
    }
    hv_str_adds(&r->log, text);
    if (r->log.p[r->log.n - 1] != '\n') {
        hv_str_addc(&r->log, '\n');
    }
    if (r->log.n <= 2 * HV__LOG_KEPT) {
        return;
    }
    memmove(r->log.p, r->log.p + r->log.n - HV__LOG_KEPT, HV__LOG_KEPT + 1);
    r->log.n = HV__LOG_KEPT;
}

/* A better plan of a run keeps the note on the one before. */
static void take_plan(struct hv_session *s, struct hv__row *r, json_t *plan)
{
    const char *note = hv__session_note_of(r->plan);
    json_t *noted = note[0] != '\0' ? hv__session_note_put(plan, note) : json_incref(plan);
    hv__session_row_set_plan(s, r, noted);
    json_decref(noted);
}

/* The best time of a run so far as it is shown; "–" when there is none. */
static const char *best_text(const struct hv__row *r, char *buf, size_t cap)
{
    size_t n = r->points.n;
    return hv_fmt_seconds(buf, cap, n > 0 ? r->points.items[n - 1].iteration_s : HV_UNKNOWN);
}

static void take_incumbent(struct hv_session *s, struct hv__row *r, const struct hv_pool_event *ev)
{
    json_t *plan = json_object_get(ev->line, "plan");
    if (json_is_object(plan)) {
        take_plan(s, r, plan);
    }
    char t[HV_FMT_CAP], before[HV_FMT_CAP];
    (void)best_text(r, before, sizeof before);
    (void)hv_fmt_seconds(t, sizeof t, ev->seconds);
    if (hv_known(ev->seconds) && strcmp(t, before) != 0) { /* less than is shown is no news */
        hv_session_log(s, HV_LOG_INFO, "run", "%s: new best %s", r->name, t);
    }
    struct hv_row_point point = {ev->elapsed_s, ev->seconds};
    hv_vec_push(&r->points, point);
}

/* A strategy may hand in several plans: the first is the row's, the others get rows of their own.
 */
static void take_more_plans(struct hv_session *s, const struct hv__row *r, const json_t *plans)
{
    for (size_t i = 1; i < json_array_size(plans); i++) {
        if (!json_is_object(json_array_get(plans, i))) {
            continue;
        }
        char *name = hv__session_row_fresh_name(s, r->strategy);
        struct hv__row *more = hv__session_row_new(s, name, r->strategy);
        free(name);
        more->options = json_incref(r->options);
        more->pub.state = HV_ROW_DONE;
        for (int d = 0; d < HV__INPUTS; d++) {
            more->made_for[d] = json_incref(r->made_for[d]);
        }
        hv__session_row_set_plan(s, more, json_array_get(plans, i));
        hv__session_row_publish(s, more);
    }
}

static void take_result(struct hv_session *s, struct hv__row *r, const struct hv_pool_event *ev)
{
    const json_t *plans = json_object_get(ev->line, "plans");
    json_t *plan = json_object_get(ev->line, "plan");
    const char *reason = json_string_value(json_object_get(ev->line, "reason"));
    if (!json_is_object(plan)) {
        plan = json_array_get(plans, 0);
    }
    bool stopped = json_is_true(json_object_get(ev->line, "stopped"));
    hv__session_set_text(&r->reason, reason != NULL ? reason : "");
    r->pub.progress_frac = 1;
    if (json_is_object(plan)) {
        take_plan(s, r, plan);
    }
    if (json_is_false(json_object_get(ev->line, "applies"))) {
        r->pub.state = HV_ROW_NOT_APPLICABLE;
    } else if (r->plan == NULL) {
        r->pub.state = stopped ? HV_ROW_FAILED : HV_ROW_INFEASIBLE;
        if (reason == NULL) {
            hv__session_set_text(&r->reason, "the strategy found no plan and gave no reason");
        }
    } else {
        r->pub.state = HV_ROW_DONE;
        if (stopped && reason == NULL) {
            hv__session_set_text(&r->reason, "stopped by a limit; this is the best until then");
        }
    }
    take_more_plans(s, r, plans);
}

static void take_end(struct hv_session *s, struct hv__row *r, const struct hv_pool_event *ev)
{
    hv__session_set_text(&r->reason, ev->text);
    if (ev->kind == HV_POOL_RESULT) {
        take_result(s, r, ev);
    } else if (ev->kind == HV_POOL_FAILED) {
        r->pub.state = HV_ROW_FAILED;
        const char *trace = json_string_value(json_object_get(ev->line, "traceback"));
        add_log(r, trace != NULL ? trace : "");
        add_log(r, ev->tail);
        hv_session_log(s, HV_LOG_ERROR, r->strategy, "%s", trace != NULL ? trace : "");
        hv_session_log(s, HV_LOG_ERROR, r->strategy, "%s", ev->tail);
    } else if (ev->timed_out) {
        r->pub.state = r->plan != NULL ? HV_ROW_DONE : HV_ROW_FAILED;
    } else {
        r->pub.state = HV_ROW_CANCELLED;
    }
    r->job = 0;
    r->pub.elapsed_s = ev->elapsed_s;
    s->sort_due = true;
    hv__session_touch(s);
    hv_str_clear(&s->notice);
    hv_str_addf(&s->notice, "%s: %s", r->name, hv_row_state_name(r->pub.state));
    char best[HV_FMT_CAP];
    if (r->plan != NULL && r->points.n > 0 &&
        hv_known(r->points.items[r->points.n - 1].iteration_s)) {
        hv_str_addf(&s->notice, ", best %s", best_text(r, best, sizeof best));
    }
    hv_str_addf(&s->notice, "%s%s", r->reason[0] != '\0' ? ", " : "", r->reason);
    hv_session_log(s, r->pub.state == HV_ROW_FAILED ? HV_LOG_ERROR : HV_LOG_INFO, "run", "%s",
                   hv_str_cstr(&s->notice));
}

void hv__session_run_event(void *ctx, const struct hv_pool_event *ev)
{
    struct hv_session *s = ctx;
    struct hv__row *r = row_of_job(s, ev->id);
    if (r == NULL) {
        return;
    }
    switch (ev->kind) {
    case HV_POOL_STARTED:
        r->pub.state = HV_ROW_RUNNING;
        r->pub.started_s = hv__session_now(s);
        hv_session_log(s, HV_LOG_INFO, "run", "%s started, seed %llu", r->name,
                       (unsigned long long)s->limits.seed);
        break;
    case HV_POOL_PROGRESS:
        r->pub.progress_frac = ev->frac;
        hv__session_set_text(&r->progress, ev->text);
        break;
    case HV_POOL_INCUMBENT:
        take_incumbent(s, r, ev);
        break;
    case HV_POOL_BOUND:
        r->pub.bound_s = ev->seconds;
        break;
    case HV_POOL_LOG:
        add_log(r, ev->text);
        hv_session_log(s, HV_LOG_DEBUG, r->strategy, "%s", ev->text);
        break;
    case HV_POOL_RESULT:
    case HV_POOL_FAILED:
    case HV_POOL_CANCELLED:
        take_end(s, r, ev);
        break;
    case HV_POOL_ANSWER: /* consoles only */
    case HV_POOL_EVENT_N:
        break;
    }
    if (r->pub.state == HV_ROW_RUNNING) {
        r->pub.elapsed_s = ev->elapsed_s;
    }
    hv__session_row_publish(s, r);
    hv__session_moved(s);
}
