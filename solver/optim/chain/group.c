/*
 * Choice of groups for a threshold, and the threshold. Not here: pricing groups (group_chains.c).
 */
#include "solver/optim/chain/group.h"
#include "solver/base/units.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define NONE UINT32_MAX

struct search {
    const struct hv_group *g;
    struct hv__watch watch;
    size_t n_states, *radix, *weight; /* weight: of a type's uses in a state's number */
    int64_t *most, *gain;             /* per state; per type under the threshold */
    uint32_t *last;                   /* type that was added last; NONE = a device stays unused */
    unsigned short *left; /* state · n_kinds + kind: devices of the kind in the state */
};

static double time_of(const struct hv_group_type *t, int64_t n)
{
    double best = n > 0 ? HUGE_VAL : 0;
    for (size_t k = 0; n > 0 && k < t->n_lines; k++) {
        best = fmin(best, t->lines[k].fixed + (double)n * t->lines[k].rate);
    }
    return best;
}

/* Most micro-batches, at most `total`, that a group ends by t. */
static int64_t count_by(const struct hv_group_type *type, double t, int64_t total)
{
    int64_t best = 0;
    for (size_t k = 0; k < type->n_lines; k++) {
        const struct hv_group_line *l = &type->lines[k];
        double n = l->rate > 0 ? (t - l->fixed) / l->rate : t >= l->fixed ? (double)total : 0;
        int64_t c = n >= (double)total ? total : n > 0 ? (int64_t)n : 0;
        best = c > best ? c : best;
    }
    while (best < total && time_of(type, best + 1) <= t) {
        best++;
    }
    while (best > 0 && time_of(type, best) > t) {
        best--;
    }
    return best;
}

static bool holds(const struct search *q, size_t state, const size_t *uses)
{
    const unsigned short *left = q->left + state * q->g->n_kinds;
    for (size_t k = 0; k < q->g->n_kinds; k++) {
        if (left[k] < uses[k]) {
            return false;
        }
    }
    return true;
}

/* The most micro-batches that all devices end by t. */
static int64_t fill(struct search *q, double t)
{
    const struct hv_group *g = q->g;
    for (size_t i = 0; i < g->n_types; i++) {
        q->gain[i] = count_by(&g->types[i], t, g->total);
    }
    q->most[0] = 0;
    q->last[0] = NONE;
    for (size_t s = 1; s < q->n_states; s++) {
        int64_t best = -1;
        for (size_t k = 0; k < g->n_kinds; k++) { /* leave one device of a kind out */
            if (q->left[s * g->n_kinds + k] > 0 && q->most[s - q->radix[k]] > best) {
                best = q->most[s - q->radix[k]];
            }
        }
        q->last[s] = NONE;
        for (size_t i = 0; i < g->n_types && best < g->total; i++) {
            if (q->gain[i] == 0 || q->weight[i] > s || !holds(q, s, g->types[i].uses)) {
                continue;
            }
            int64_t v = q->most[s - q->weight[i]] + q->gain[i];
            if (v > best) {
                best = v < g->total ? v : g->total;
                q->last[s] = (uint32_t)i;
            }
        }
        q->most[s] = best;
    }
    return q->most[q->n_states - 1];
}

static enum hv_status check(const struct hv_group *g, struct hv_err *err)
{
    if (g->n_kinds == 0 || g->total <= 0) {
        return hv_err_set(err, HV_EINPUT, "expected at least one kind and one micro-batch");
    }
    if (g->total > (int64_t)1 << 40) {
        return hv_err_set(err, HV_ELIMIT, "too many micro-batches");
    }
    size_t states = 1;
    for (size_t k = 0; k < g->n_kinds; k++) {
        if (g->count[k] >= UINT16_MAX || g->count[k] + 1 > HV_GROUP_MAX_STATES / states) {
            return hv_err_set(err, HV_ELIMIT,
                              "more than %zu ways to use the devices of the first %zu kinds",
                              HV_GROUP_MAX_STATES, k + 1);
        }
        states *= g->count[k] + 1;
    }
    if (g->n_types > HV_GROUP_MAX_WORK / states) {
        return hv_err_set(err, HV_ELIMIT, "%zu kinds of groups times %zu states are too many",
                          g->n_types, states);
    }
    for (size_t i = 0; i < g->n_types; i++) {
        size_t devices = 0;
        for (size_t k = 0; k < g->n_kinds; k++) {
            devices += g->types[i].uses[k];
        }
        if (devices == 0) {
            return hv_err_set(err, HV_EINPUT, "group %zu uses no device", i + 1);
        }
        for (size_t k = 0; k < g->types[i].n_lines; k++) {
            const struct hv_group_line *l = &g->types[i].lines[k];
            if (!isfinite(l->fixed) || !(l->rate >= 0) || isinf(l->rate) ||
                l->fixed + l->rate < -1e-9 * l->rate) {
                return hv_err_set(err, HV_EINPUT, "group %zu: expected a time that is not negative",
                                  i + 1);
            }
        }
    }
    return HV_OK;
}

static void prepare(struct search *q, struct hv_arena *a)
{
    const struct hv_group *g = q->g;
    q->n_states = 1;
    q->radix = hv_arena_new(a, size_t, g->n_kinds);
    for (size_t k = 0; k < g->n_kinds; k++) {
        q->radix[k] = q->n_states;
        q->n_states *= g->count[k] + 1;
    }
    q->weight = hv_arena_new(a, size_t, g->n_types);
    for (size_t i = 0; i < g->n_types; i++) {
        for (size_t k = 0; k < g->n_kinds; k++) {
            q->weight[i] += g->types[i].uses[k] * q->radix[k];
        }
    }
    q->most = hv_arena_new(a, int64_t, q->n_states);
    q->gain = hv_arena_new(a, int64_t, g->n_types);
    q->last = hv_arena_new(a, uint32_t, q->n_states);
    q->left = hv_arena_new(a, unsigned short, q->n_states * g->n_kinds);
    for (size_t s = 0; s < q->n_states; s++) {
        for (size_t k = 0; k < g->n_kinds; k++) {
            q->left[s * g->n_kinds + k] = (unsigned short)(s / q->radix[k] % (g->count[k] + 1));
        }
    }
}

/* Reads the groups of the last fill; then the slowest give back what is above the total. */
static void take(struct search *q, struct hv_arena *arena, struct hv_group_result *out)
{
    const struct hv_group *g = q->g;
    size_t devices = 0, n = 0, s = q->n_states - 1;
    int64_t sum = 0;
    for (size_t k = 0; k < g->n_kinds; k++) {
        devices += g->count[k];
    }
    out->type = hv_arena_new(arena, size_t, devices);
    out->share = hv_arena_new(arena, int64_t, devices);
    while (s > 0 && sum < g->total) {
        size_t i = q->last[s], k = 0;
        if (i != NONE) {
            out->type[n] = i;
            sum += out->share[n++] = q->gain[i];
            s -= q->weight[i];
            continue;
        }
        while (q->left[s * g->n_kinds + k] == 0 || q->most[s - q->radix[k]] != q->most[s]) {
            k++;
        }
        s -= q->radix[k];
    }
    for (; sum > g->total; sum--) {
        size_t worst = 0;
        for (size_t k = 1; k < n; k++) {
            if (time_of(&g->types[out->type[k]], out->share[k]) >
                time_of(&g->types[out->type[worst]], out->share[worst])) {
                worst = k;
            }
        }
        if (out->share[worst] > 0) {
            out->share[worst]--;
        }
    }
    out->objective = 0;
    for (size_t k = 0; k < n; k++) {
        if (out->share[k] == 0) {
            continue;
        }
        out->type[out->n_groups] = out->type[k];
        out->share[out->n_groups++] = out->share[k];
        out->objective = fmax(out->objective, time_of(&g->types[out->type[k]], out->share[k]));
    }
}

/* A time by which one group alone takes the whole total; infinity when there is none. */
static double lone_time(const struct search *q)
{
    double best = HUGE_VAL;
    for (size_t i = 0; i < q->g->n_types; i++) {
        if (holds(q, q->n_states - 1, q->g->types[i].uses)) {
            best = fmin(best, time_of(&q->g->types[i], q->g->total));
        }
    }
    return best;
}

enum hv_status hv_group_solve(const struct hv_group *g, const struct hv_part_limits *limits,
                              struct hv_arena *arena, struct hv_group_result *out,
                              struct hv_err *err)
{
    struct search q = {.g = g};
    struct hv_arena scratch = {0};
    memset(out, 0, sizeof *out);
    out->objective = out->bound = HV_UNKNOWN;
    out->method = "threshold-dp-kinds";
    enum hv_status st = check(g, err);
    if (st != HV_OK) {
        return st;
    }
    hv__watch_start(&q.watch, limits);
    prepare(&q, &scratch);
    double low = 0, high = lone_time(&q);
    out->feasible = !isinf(high);
    out->proof = "no group can be formed from the devices";
    out->proven = !out->feasible;
    if (out->feasible) {
        while (high - low > 2e-10 * high && !hv__watch_over(&q.watch)) {
            double mid = 0.5 * (low + high);
            if (hv__watch_due(&q.watch)) {
                hv__watch_tell(&q.watch, high, low);
            }
            if (fill(&q, mid) >= g->total) {
                high = mid;
            } else {
                low = mid;
            }
        }
        (void)fill(&q, high);
        take(&q, arena, out);
        out->stopped = q.watch.stopped;
        out->bound = fmin(low, out->objective);
        out->proven = out->objective <= low * (1 + 1e-9);
        out->proof = "below the bound no choice of groups ends the total (all choices by dynamic "
                     "program)";
    }
    hv_arena_free(&scratch);
    return HV_OK;
}
