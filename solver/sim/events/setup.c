/*
 * Preparation of the event-driven engine: checks of tasks, lists of dependencies and of tasks by
 * resource, durations with jitter.
 */
#include "solver/base/rng.h"
#include "solver/sim/events/events_int.h"
#include <math.h>

enum hv_status hv__event_check(const struct hv_event_graph *g, size_t i, struct hv_err *err)
{
    const struct hv_event_task *t = &g->tasks[i];
    bool ok = t->duration_s >= 0 && isfinite(t->duration_s) && t->piece_s >= 0 &&
              g->res_at[i + 1] > g->res_at[i] && t->pool < (int32_t)g->n_pools &&
              t->memory < (int32_t)g->n_memories && t->credits >= 0;
    for (int32_t k = g->res_at[i]; k < g->res_at[i + 1]; k++) {
        ok = ok && g->res[k] >= 0 && (size_t)g->res[k] < g->n_resources;
        ok = ok && (k == g->res_at[i] || g->res[k] > g->res[k - 1]);
    }
    for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
        ok = ok && g->dep[k] >= 0 && (size_t)g->dep[k] < g->n_tasks;
        ok = ok && (!g->lag_s || (g->lag_s[k] >= 0 && isfinite(g->lag_s[k])));
    }
    if (!ok) {
        return hv_err_set(
            err, HV_EUSAGE,
            "task %zu: its duration, resources (ascending, at least one), deps, lags, "
            "memory, pool or credits are out of range",
            i);
    }
    return HV_OK;
}

/* lists by counting: at[x]…at[x + 1] of the positions k in [0, n) with key[k] = x */
static void group(struct hv_arena *a, const int32_t *key, size_t n, size_t n_keys, int32_t **at,
                  int32_t **out)
{
    *at = hv_arena_new(a, int32_t, n_keys + 2);
    *out = hv_arena_new(a, int32_t, n + 1);
    for (size_t k = 0; k < n; k++) {
        (*at)[key[k] + 2]++;
    }
    for (size_t x = 2; x < n_keys + 2; x++) {
        (*at)[x] += (*at)[x - 1];
    }
    for (size_t k = 0; k < n; k++) {
        (*out)[(*at)[key[k] + 1]++] = (int32_t)k;
    }
}

/* a factor of mean 1 with the logarithm spread by `jitter` (Box and Muller, 1958) */
static double factor(const struct hv_event_rules *rules, size_t task)
{
    struct hv_rng r;
    if (!(rules->jitter > 0)) {
        return 1;
    }
    hv_rng_seed(
        &r, hv_hash(hv_hash(HV_HASH_START, &rules->seed, sizeof rules->seed), &task, sizeof task));
    double u = 1 - hv_rng_double(&r), v = hv_rng_double(&r);
    double z = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
    return exp(rules->jitter * z - rules->jitter * rules->jitter / 2);
}

void hv__event_set_up(struct hv__player *y)
{
    const struct hv_event_graph *g = y->g;
    struct hv_arena *a = &y->scratch;
    size_t n = g->n_tasks, n_res = g->n_resources, n_dep = (size_t)g->dep_at[n];
    y->p = hv_arena_new(a, struct hv__event_progress, n + 1);
    y->who = hv_arena_new(a, int32_t, n_dep + 1);
    int32_t *task_of = hv_arena_new(a, int32_t, (size_t)g->res_at[n] + 1);
    for (size_t i = 0; i < n; i++) {
        y->p[i].left_s = g->tasks[i].duration_s * factor(y->rules, i);
        y->p[i].waits = g->dep_at[i + 1] - g->dep_at[i];
        y->tangled |=
            g->res_at[i + 1] - g->res_at[i] > 1 || g->tasks[i].pool >= 0 || g->tasks[i].memory >= 0;
        for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
            y->who[k] = (int32_t)i;
        }
        for (int32_t k = g->res_at[i]; k < g->res_at[i + 1]; k++) {
            task_of[k] = (int32_t)i;
        }
    }
    group(a, g->dep, n_dep, n, &y->next_at, &y->next);
    group(a, g->res, (size_t)g->res_at[n], n_res, &y->list_at, &y->list);
    y->head = hv_arena_new(a, int32_t, n_res + 1);
    y->holder = hv_arena_new(a, int32_t, n_res + 1);
    y->ready = hv_arena_new(a, struct hv__heap, n_res + 1);
    y->dirty = hv_arena_new(a, int32_t, n_res + 1);
    y->is_dirty = hv_arena_new(a, bool, n_res + 1);
    for (int32_t k = 0; k < g->res_at[n]; k++) {
        y->list[k] = task_of[y->list[k]];
    }
    for (size_t r = 0; r < n_res; r++) {
        size_t on_it = (size_t)(y->list_at[r + 1] - y->list_at[r]);
        y->head[r] = y->list_at[r];
        y->holder[r] = -1;
        y->ready[r].items = hv_arena_new(a, struct hv__entry, on_it + 1);
    }
    y->events.items = hv_arena_new(a, struct hv__entry, 3 * n + n_dep + 1);
    y->bytes = hv_arena_new(a, double, g->n_memories + 1);
    y->credits = hv_arena_new(a, int32_t, g->n_pools + 1);
    for (size_t k = 0; k < g->n_pools; k++) {
        y->credits[k] = g->pool_credits[k];
    }
}
