/*
 * Construction, tick and destruction of a session. Opening a workspace is in open.c; each subject
 * has its own file.
 */
#include "ui/session/session_int.h"

#include "solver/base/units.h"
#include <math.h>

/* Interval of updates of the elapsed time of running rows. */
#define RUNNING_MS 1000

/* ---- parts ----------------------------------------------------------------------------------- */

static double part_now_s(void *ctx)
{
    return hv_session_now_s(ctx);
}

struct hv_session *hv__session_new(const struct hv_session_env *env, const char *name)
{
    struct hv_session *s = hv_xcalloc(1, sizeof *s);
    s->env = *env;
    s->state_dir = env->state_dir != NULL ? hv_xstrdup(env->state_dir) : NULL;
    s->limits.seed = 1;
    s->docs = hv__docs_new();
    s->journal = hv__journal_new();
    s->strategies = hv__strategies_new(env->plugins, env->n_plugins, env->plugins_later);
    s->rows = hv__rows_new();
    s->cache = hv__cache_new(env->apart_from, env->timeline_bytes);
    s->log = hv__log_new(env->now_s, env->ctx);
    s->recording = hv__recording_new();
    s->place = hv__place_new(name);
    s->recovery = hv__recovery_new(s->state_dir);
    s->pool = hv_pool_new(&(struct hv_pool_config){.argv = env->worker_argv,
                                                   .n_workers = env->n_workers,
                                                   .on_event = hv__session_run_event,
                                                   .ctx = s,
                                                   .now_s = part_now_s});
    s->console =
        hv__console_new(&(struct hv__console_config){.docs = s->docs,
                                                     .log = s->log,
                                                     .worker_argv = env->worker_argv,
                                                     .now_s = part_now_s,
                                                     .on_commands = hv__session_console_commands,
                                                     .ctx = s});
    return s;
}

void hv__session_free(struct hv_session *s)
{
    hv__cache_free(s->cache);
    hv_pool_free(s->pool);
    hv__console_free(s->console);
    hv__journal_free(s->journal);
    hv__rows_free(s->rows);
    hv__docs_free(s->docs);
    hv__log_free(s->log);
    hv__recording_free(s->recording);
    hv__strategies_free(s->strategies);
    hv__recovery_free(s->recovery);
    hv__place_free(s->place);
    hv_str_free(&s->notice);
    hv_str_free(&s->notice_shown);
    free(s->state_dir);
    free(s);
}

void hv_session_close(struct hv_session *s)
{
    if (s == NULL) {
        return;
    }
    hv__recovery_remove(s->recovery);
    hv__session_free(s);
}

void hv_session_abandon(struct hv_session *s)
{
    if (s == NULL) {
        return;
    }
    enum hv_status st = HV_OK;
    if (hv_session_dirty(s)) {
        st = hv_session_autosave(s, NULL);
    }
    (void)st; /* the program ends: there is nowhere to report a failure */
    hv__session_free(s);
}

void hv_session_leave(struct hv_session *s)
{
    if (s == NULL || !hv_session_dirty(s)) {
        hv_session_close(s);
        return;
    }
    hv__recovery_leave(s->recovery);
    hv_session_abandon(s);
}

/* ---- the workspace --------------------------------------------------------------------------- */

bool hv_session_is_first(const struct hv_session *s)
{
    return s->first;
}

const char *hv_session_name(const struct hv_session *s)
{
    return hv__place_name(s->place);
}

const char *hv_session_path(const struct hv_session *s)
{
    return hv__place_path(s->place);
}

/* ---- the loop -------------------------------------------------------------------------------- */

size_t hv_session_fds(const struct hv_session *s, struct pollfd *out, size_t cap)
{
    size_t n = hv_pool_fds(s->pool, out, cap), used = n < cap ? n : cap;
    n += hv__cache_fds(s->cache, out + used, cap - used);
    used = n < cap ? n : cap;
    return n + hv__console_fds(s->console, out + used, cap - used);
}

/* Milliseconds until the elapsed time of a run changes; −1: no run. */
static int clock_timeout_ms(const struct hv_session *s)
{
    double now = hv_session_now_s(s), first_s = HV_UNKNOWN;
    for (size_t i = 0; hv_pool_n_running(s->pool) > 0 && i < hv__rows_n(s->rows); i++) {
        const struct hv_row *r = hv__rows_at(s->rows, i);
        double left_s = r->started_s + r->elapsed_s + 1e-3 * RUNNING_MS - now;
        if (r->state == HV_ROW_RUNNING && !(left_s >= first_s)) {
            first_s = left_s;
        }
    }
    return hv_known(first_s) ? (first_s > 0 ? (int)ceil(first_s * 1e3) : 0) : -1;
}

int hv_session_timeout_ms(const struct hv_session *s)
{
    int all[] = {hv_pool_timeout_ms(s->pool), hv__session_recovery_timeout_ms(s),
                 clock_timeout_ms(s), hv__console_timeout_ms(s->console),
                 hv__cache_timeout_ms(s->cache)};
    int ms = -1;
    for (size_t i = 0; i < HV_COUNT(all); i++) {
        if (all[i] >= 0 && (ms < 0 || all[i] < ms)) {
            ms = all[i];
        }
    }
    return ms;
}

/* Updates the elapsed time of running rows once a second. */
static void tick_clocks(struct hv_session *s)
{
    double now = hv_session_now_s(s);
    for (size_t i = 0; i < hv__rows_n(s->rows); i++) {
        const struct hv_row *r = hv__rows_at(s->rows, i);
        double elapsed_s = now - r->started_s;
        if (r->state == HV_ROW_RUNNING && elapsed_s >= r->elapsed_s + 1e-3 * RUNNING_MS) {
            hv__rows_set_elapsed(s->rows, r->id, elapsed_s);
            hv__session_moved(s);
        }
    }
}

bool hv_session_tick(struct hv_session *s)
{
    hv_pool_poll(s->pool);
    hv__console_poll(s->console);
    if (hv__cache_draw_tick(s->cache)) {
        hv__session_moved(s);
    }
    tick_clocks(s);
    if (s->sort_due) {
        hv__session_rows_sort(s);
    }
    hv__session_recovery_tick(s);
    bool moved = hv_session_changes(s) != s->ticked;
    s->ticked = hv_session_changes(s);
    return moved;
}
