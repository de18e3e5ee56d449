/*
 * Runs: a strategy with its options becomes a job of the pool and a row. Not for events of workers
 * (row/run_events.c).
 */
#include "ui/session/runs.h"
#include "ui/session/session_int.h"

#include "scripting/worker/run.h"
#include "ui/session/log/recording.h"
#include "ui/session/row/run_events.h"
#include <string.h>

/* A worker stops at the time limit and returns its best plan; the pool waits this much longer
 * (s). */
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
    hv__docs_add_inputs(s->docs, job);
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

/* "run whale faults=2": only the options of this run; the others are set with `option`. */
static void tell_run(struct hv_session *s, const char *strategy, const json_t *options)
{
    struct hv_str line = {0};
    const char *key;
    json_t *value;
    hv_str_adds(&line, "run ");
    hv__word_add(&line, strategy);
    json_object_foreach((json_t *)(uintptr_t)options, key, value)
    {
        char text[512];
        struct hv_str pair = {0};
        hv_str_addf(&pair, "%s=%s", key, hv_option_text(value, text, sizeof text));
        hv_str_addc(&line, ' ');
        hv__word_add(&line, hv_str_cstr(&pair));
        hv_str_free(&pair);
    }
    hv__session_did(s, "%s", hv_str_cstr(&line));
    hv_str_free(&line);
}

/* The process of a run: behind which job it waits (0: none), and how many jobs share it. */
struct shared {
    uint32_t behind;
    size_t jobs;
};

static enum hv_status run(struct hv_session *s, const char *strategy, const json_t *options,
                          struct shared process, uint32_t *id, struct hv_err *err)
{
    const struct hv_plugins plugins = hv__strategies_list(s->strategies);
    json_t *all = all_options(s, strategy, options);
    enum hv_status st = hv_run_check(&plugins, strategy, all, err);
    if (st != HV_OK) {
        json_decref(all);
        return st;
    }
    char *name = hv__rows_fresh_name(s->rows, strategy);
    uint32_t row = hv__rows_add(s->rows, s->docs, name, strategy);
    free(name);
    hv__rows_set_options(s->rows, row, all);
    json_t *job = make_job(s, strategy, all);
    if (process.jobs > 1) {
        json_object_set_new(job, "jobs_in_process", json_integer((json_int_t)process.jobs));
    }
    double limit_s = s->limits.time_limit_s > 0 ? s->limits.time_limit_s + GRACE_S : 0;
    hv__rows_set_job(s->rows, row, hv_pool_submit_behind(s->pool, job, limit_s, process.behind));
    json_decref(job);
    json_decref(all);
    hv__session_rows_sort(s);
    tell_run(s, strategy, options);
    hv__session_moved(s);
    if (id != NULL) {
        *id = row;
    }
    return HV_OK;
}

enum hv_status hv_session_run(struct hv_session *s, const char *strategy, const json_t *options,
                              uint32_t *id, struct hv_err *err)
{
    return run(s, strategy, options, (struct shared){0, 1}, id, err);
}

static bool same_family(const struct hv_plugin *a, const struct hv_plugin *b)
{
    return a->family != NULL && b->family != NULL && strcmp(a->path, b->path) == 0;
}

/* The process of run i of a list: that of the first of its family that was queued. */
static struct shared process_of(const struct hv_session *s, const struct hv_plugin *const *list,
                                const uint32_t *rows, size_t n, size_t i)
{
    struct shared p = {0, 1};
    for (size_t k = 0; k < n; k++) {
        if (k == i || !same_family(list[k], list[i])) {
            continue;
        }
        p.jobs++;
        if (k < i && p.behind == 0 && rows[k] != 0) {
            p.behind = hv__rows_job(s->rows, rows[k]);
        }
    }
    return p;
}

size_t hv_session_run_list(struct hv_session *s, const struct hv_plugin *const *list, size_t n,
                           struct hv_err *err)
{
    uint32_t *rows = hv_xcalloc(n + 1, sizeof *rows);
    size_t queued = 0;
    for (size_t i = 0; i < n; i++) {
        queued +=
            run(s, list[i]->id, NULL, process_of(s, list, rows, n, i), &rows[i], err) == HV_OK;
    }
    free(rows);
    return queued;
}

size_t hv_session_run_kind(struct hv_session *s, enum hv_kind kind)
{
    size_t n = 0, n_all = 0;
    const struct hv_plugin *all = hv_session_strategies(s, &n_all);
    const struct hv_plugin **list = hv_xcalloc(n_all + 1, sizeof *list);
    for (size_t i = 0; i < n_all; i++) {
        const struct hv_plugin *p = &all[i];
        bool chosen = kind == HV_KIND_N || hv_plugin_is_of(p, kind);
        if (chosen && p->error == NULL && p->has[HV_PLUGIN_PLAN]) {
            list[n++] = p;
        }
    }
    n = hv_session_run_list(s, list, n, NULL);
    free(list);
    return n;
}

size_t hv_session_run_all(struct hv_session *s)
{
    return hv_session_run_kind(s, HV_KIND_N);
}

bool hv_session_cancel(struct hv_session *s, uint32_t id)
{
    const struct hv_row *r = hv__rows_any(s->rows, id);
    uint32_t job = r != NULL ? hv__rows_job(s->rows, id) : 0;
    if (job == 0) {
        return false;
    }
    hv__session_did(s, "cancel %s", r->name);
    return hv_pool_cancel(s->pool, job);
}

size_t hv_session_cancel_all(struct hv_session *s)
{
    size_t n = 0;
    for (size_t i = hv__rows_n(s->rows); i-- > 0;) { /* backwards: no queued run starts */
        n += hv_session_cancel(s, hv__rows_at(s->rows, i)->id);
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

void hv__session_run_event(void *ctx, const struct hv_pool_event *ev)
{
    struct hv_session *s = ctx;
    struct hv__run_news news =
        hv__run_event_take(s->rows, ev, hv_session_now_s(s), s->limits.seed, s->log, &s->notice);
    s->sort_due |= news.ended;
    if (news.edited) {
        hv__session_touch(s);
    } else if (news.changed) {
        hv__session_moved(s);
    }
}
