/** Possible improvements of the plan: levers are changed one at a time. What is shown of the trials
 * is in actions.c. Levers and trials are in ui/lever. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/sim/schedule/schedule.h"
#include "ui/screens/explain/explain_int.h"

/** Relative change of hardware levers. */
#define TURN 0.1
/** Changes below this share are ignored. */
#define LEAST_GAIN 0.0005

static void plan_try(struct hv_explain_data *d, size_t lever, double value)
{
    struct hv_explain_try t = {.lever = lever, .value = value};
    if (!hv_lever_is_base(&d->levers.items[lever], value)) {
        hv_vec_push(&d->tries, t);
    }
}

/** Schedules that train as this one does and are ordered without a search. */
static bool is_quick_schedule(const char *name)
{
    const struct hv_schedule_row *row = NULL;
    return hv_schedule_find(name, &row, NULL) == HV_OK &&
           (row->flags & (HV_SCHEDULE_BY_COST | HV_SCHEDULE_ASYNC)) == 0;
}

static void plan_words(struct hv_explain_data *d, size_t i)
{
    const struct hv_lever *l = &d->levers.items[i];
    for (size_t k = 0; k < l->n_values; k++) {
        if (l->kind != HV_LEVER_SCHEDULE || is_quick_schedule(l->words[k])) {
            plan_try(d, i, l->values[k]);
        }
    }
}

/** The next rate, in GB/s, that ports are sold with; the present one where none is faster. */
static double next_rate(double gbyte_per_s)
{
    static const double gbit[] = {1, 10, 25, 40, 50, 100, 200, 400, 800, 1600, 3200, 6400};
    for (size_t i = 0; i < HV_COUNT(gbit); i++) {
        if (gbit[i] / 8 > gbyte_per_s * 1.05) {
            return gbit[i] / 8;
        }
    }
    return gbyte_per_s;
}

void hv_explain_plan_tries(struct hv_explain_data *d)
{
    d->tries.n = d->n_done = 0;
    for (size_t i = 0; i < d->levers.n; i++) {
        const struct hv_lever *l = &d->levers.items[i];
        switch (l->kind) {
        case HV_LEVER_BATCH:
        case HV_LEVER_MICRO:
        case HV_LEVER_LAYERS:
        case HV_LEVER_CHUNKS:
        case HV_LEVER_TP:
            plan_try(d, i, hv_lever_step(l, l->base, 1));
            plan_try(d, i, hv_lever_step(l, l->base, -1));
            break;
        case HV_LEVER_SCHEDULE:
        case HV_LEVER_RECOMPUTE:
        case HV_LEVER_ZERO:
            plan_words(d, i);
            break;
        case HV_LEVER_NODES:
            plan_try(d, i, l->base + 1);
            break;
        case HV_LEVER_NIC:
        case HV_LEVER_NETWORK:
        case HV_LEVER_LINK:
            plan_try(d, i, next_rate(l->base));
            break;
        case HV_LEVER_INTRA:
        case HV_LEVER_FLOPS:
        case HV_LEVER_HBM:
        case HV_LEVER_MEMORY:
            plan_try(d, i, l->base * (1 + TURN));
            plan_try(d, i, l->base * (1 - TURN));
            break;
        case HV_LEVER_SEQUENCE: /* another task, not another way to do it */
        case HV_LEVER_FAILED:
        case HV_LEVER_SLOW:
        case HV_LEVER_PRICE:
        case HV_LEVER_PREEMPTED:
        case HV_LEVER_INTERVAL:
        case HV_LEVER_RESTART:
        case HV_LEVER_N:
            break;
        }
    }
}

double hv_explain_gain(const struct hv_explain_data *d, const struct hv_explain_try *t)
{
    if (!t->done || t->failed) {
        return 0;
    }
    double g = d->levers.items[t->lever].kind == HV_LEVER_NODES
                   ? 1 - t->figures.bound_s / d->base.bound_s
                   : 1 - d->base.tokens_per_s / t->figures.tokens_per_s;
    return hv_or(g, 0);
}

bool hv_explain_is_good(const struct hv_explain_data *d, const struct hv_explain_try *t)
{
    return hv_explain_gain(d, t) > LEAST_GAIN && t->figures.n_violations <= d->base.n_violations &&
           t->figures.exact >= d->base.exact;
}

static void try_one(struct hv_explain_data *d, struct hv_session *s, struct hv_explain_try *t,
                    double *values)
{
    struct hv_err err = {0};
    const struct hv_lever *l = &d->levers.items[t->lever];
    values[t->lever] = t->value;
    bool bound = l->kind == HV_LEVER_NODES;
    t->failed = hv_levers_try(s, &d->levers, values, bound, &t->figures, &err) != HV_OK;
    if (t->failed) {
        (void)snprintf(t->reason, sizeof t->reason, "%.150s", err.text);
    }
    t->done = true;
    values[t->lever] = l->base;
}

bool hv_explain_try_some(struct hv_explain_data *d, struct hv_session *s, double budget_s)
{
    double start_s = hv_session_now_s(s);
    double *values = hv_xcalloc(d->levers.n + 1, sizeof *values);
    for (size_t i = 0; i < d->levers.n; i++) {
        values[i] = d->levers.items[i].base;
    }
    while (d->n_done < d->tries.n) {
        try_one(d, s, &d->tries.items[d->n_done], values);
        d->n_done++;
        if (hv_session_now_s(s) - start_s > budget_s) {
            break;
        }
    }
    free(values);
    if (d->n_done == d->tries.n && !d->share.done) {
        hv_explain_share_try(d, s);
    }
    return hv_explain_is_busy(d);
}

bool hv_explain_is_busy(const struct hv_explain_data *d)
{
    return d->n_done < d->tries.n || !d->share.done;
}
