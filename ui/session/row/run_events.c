/*
 * Applies the events of a worker to the row of its run: progress, better plans, the end. Not for
 * starting runs (ui/session/runs.c).
 */
#include "ui/session/row/run_events.h"

#include "solver/base/units.h"
#include "ui/session/row/row_int.h"
#include <string.h>

/* Bytes of a row's log that are kept (the end of it). */
#define LOG_KEPT 65536

/* An event that is being applied to a row. */
struct taking {
    struct hv__rows *rows;
    struct hv__row *row;
    const struct hv_pool_event *ev;
    struct hv__log *log;
    struct hv__run_news news;
};

static void add_log(struct hv__row *r, const char *text)
{
    if (text[0] == '\0') {
        return;
    }
    hv_str_adds(&r->log, text);
    if (r->log.p[r->log.n - 1] != '\n') {
        hv_str_addc(&r->log, '\n');
    }
    if (r->log.n <= 2 * LOG_KEPT) {
        return;
    }
    memmove(r->log.p, r->log.p + r->log.n - LOG_KEPT, LOG_KEPT + 1);
    r->log.n = LOG_KEPT;
}

/* A better plan of a run keeps the note on the one before. */
static void take_plan(struct taking *t, json_t *plan)
{
    const char *note = hv__note_of(t->row->plan);
    json_t *noted = note[0] != '\0' ? hv__note_put(plan, note) : json_incref(plan);
    hv__row_take_plan(t->row, noted);
    json_decref(noted);
    t->news.edited = true;
}

/* The best time of a run so far, formatted; "–" where there is none. */
static const char *best_text(const struct hv__row *r, char *buf, size_t cap)
{
    size_t n = r->points.n;
    return hv_fmt_seconds(buf, cap, n > 0 ? r->points.items[n - 1].iteration_s : HV_UNKNOWN);
}

static void take_incumbent(struct taking *t)
{
    const struct hv_pool_event *ev = t->ev;
    json_t *plan = json_object_get(ev->line, "plan");
    if (json_is_object(plan)) {
        take_plan(t, plan);
    }
    char now[HV_FMT_CAP], before[HV_FMT_CAP];
    (void)best_text(t->row, before, sizeof before);
    (void)hv_fmt_seconds(now, sizeof now, ev->seconds);
    /* a gain below the precision shown is not logged */
    if (hv_known(ev->seconds) && strcmp(now, before) != 0) {
        hv__log_add(t->log, HV_LOG_INFO, "run", "%s: new best %s", t->row->name, now);
    }
    struct hv_row_point point = {ev->elapsed_s, ev->seconds};
    hv_vec_push(&t->row->points, point);
}

/* A strategy may return several plans: the first is the row's, the others get rows of their own. */
static void take_more_plans(struct taking *t, const json_t *plans)
{
    const struct hv__row *r = t->row;
    for (size_t i = 1; i < json_array_size(plans); i++) {
        if (!json_is_object(json_array_get(plans, i))) {
            continue;
        }
        char *name = hv__rows_fresh_name(t->rows, r->strategy);
        struct hv__row *more = hv__rows_push(t->rows, name, r->strategy);
        free(name);
        more->options = json_incref(r->options);
        more->pub.state = HV_ROW_DONE;
        more->pub.outdated = r->pub.outdated;
        for (int d = 0; d < HV_DOC_INPUTS; d++) {
            more->made_for[d] = json_incref(r->made_for[d]);
        }
        hv__row_take_plan(more, json_array_get(plans, i));
        hv__row_publish(more);
    }
}

static void take_result(struct taking *t)
{
    struct hv__row *r = t->row;
    const json_t *line = t->ev->line, *plans = json_object_get(line, "plans");
    json_t *plan = json_object_get(line, "plan");
    const char *reason = json_string_value(json_object_get(line, "reason"));
    if (!json_is_object(plan)) {
        plan = json_array_get(plans, 0);
    }
    bool stopped = json_is_true(json_object_get(line, "stopped"));
    hv__row_set_text(&r->reason, reason != NULL ? reason : "");
    r->pub.progress_frac = 1;
    if (json_is_object(plan)) {
        take_plan(t, plan);
    }
    if (json_is_false(json_object_get(line, "applies"))) {
        r->pub.state = HV_ROW_NOT_APPLICABLE;
    } else if (r->plan == NULL) {
        r->pub.state = stopped ? HV_ROW_FAILED : HV_ROW_INFEASIBLE;
        if (reason == NULL) {
            hv__row_set_text(&r->reason, "the strategy found no plan and gave no reason");
        }
    } else {
        r->pub.state = HV_ROW_DONE;
        if (stopped && reason == NULL) {
            hv__row_set_text(&r->reason, "stopped by a limit; this is the best plan so far");
        }
    }
    take_more_plans(t, plans);
}

static void take_failure(struct taking *t)
{
    const char *trace = json_string_value(json_object_get(t->ev->line, "traceback"));
    t->row->pub.state = HV_ROW_FAILED;
    add_log(t->row, trace != NULL ? trace : "");
    add_log(t->row, t->ev->tail);
    hv__log_add(t->log, HV_LOG_ERROR, t->row->strategy, "%s", trace != NULL ? trace : "");
    hv__log_add(t->log, HV_LOG_ERROR, t->row->strategy, "%s", t->ev->tail);
}

/* "whale-1: done, best 1.2 s". */
static void describe_end(const struct hv__row *r, struct hv_str *out)
{
    char best[HV_FMT_CAP];
    hv_str_clear(out);
    hv_str_addf(out, "%s: %s", r->name, hv_row_state_name(r->pub.state));
    if (r->plan != NULL && r->points.n > 0 &&
        hv_known(r->points.items[r->points.n - 1].iteration_s)) {
        hv_str_addf(out, ", best %s", best_text(r, best, sizeof best));
    }
    hv_str_addf(out, "%s%s", r->reason[0] != '\0' ? ", " : "", r->reason);
}

static void take_end(struct taking *t, struct hv_str *notice)
{
    struct hv__row *r = t->row;
    hv__row_set_text(&r->reason, t->ev->text);
    if (t->ev->kind == HV_POOL_RESULT) {
        take_result(t);
    } else if (t->ev->kind == HV_POOL_FAILED) {
        take_failure(t);
    } else if (t->ev->timed_out) {
        r->pub.state = r->plan != NULL ? HV_ROW_DONE : HV_ROW_FAILED;
    } else {
        r->pub.state = HV_ROW_CANCELLED;
    }
    r->job = 0;
    r->pub.elapsed_s = t->ev->elapsed_s;
    t->news.ended = t->news.edited = true;
    describe_end(r, notice);
    hv__log_add(t->log, r->pub.state == HV_ROW_FAILED ? HV_LOG_ERROR : HV_LOG_INFO, "run", "%s",
                hv_str_cstr(notice));
}

struct hv__run_news hv__run_event_take(struct hv__rows *rows, const struct hv_pool_event *ev,
                                       double now_s, uint64_t seed, struct hv__log *log,
                                       struct hv_str *notice)
{
    struct taking t = {
        .rows = rows, .row = hv__rows_row_of_job(rows, ev->id), .ev = ev, .log = log};
    struct hv__row *r = t.row;
    if (r == NULL) {
        return t.news;
    }
    t.news.changed = true;
    switch (ev->kind) {
    case HV_POOL_STARTED:
        r->pub.state = HV_ROW_RUNNING;
        r->pub.started_s = now_s;
        hv__log_add(log, HV_LOG_INFO, "run", "%s started, seed %llu", r->name,
                    (unsigned long long)seed);
        break;
    case HV_POOL_PROGRESS:
        r->pub.progress_frac = ev->frac;
        hv__row_set_text(&r->progress, ev->text);
        break;
    case HV_POOL_INCUMBENT:
        take_incumbent(&t);
        break;
    case HV_POOL_BOUND:
        r->pub.bound_s = ev->seconds;
        break;
    case HV_POOL_LOG:
        add_log(r, ev->text);
        hv__log_add(log, HV_LOG_DEBUG, r->strategy, "%s", ev->text);
        break;
    case HV_POOL_RESULT:
    case HV_POOL_FAILED:
    case HV_POOL_CANCELLED:
        take_end(&t, notice);
        break;
    case HV_POOL_ANSWER: /* consoles only */
        break;
    }
    if (r->pub.state == HV_ROW_RUNNING) {
        r->pub.elapsed_s = ev->elapsed_s;
    }
    hv__row_publish(r);
    return t.news;
}
