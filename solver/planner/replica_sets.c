/*
 * Sets of disjoint replicas: the pools are grouped, every group gets a replica, and the batch is
 * split between them by estimated times.
 */
#include "solver/planner/replicas_int.h"

#include "solver/base/units.h"

#include <math.h>

#define VARIANTS 4   /* of a set of several replicas */
#define LATE     1.2 /* times the deadline: estimates above may still meet it */

static double price_of(const struct hv__search *s, const struct hv__sketch *k)
{
    double usd = 0;
    for (int i = 0; i < k->n_replicas; i++) {
        for (int j = 0; j < k->replicas[i].n_runs; j++) {
            const struct hv__stage_run *run = &k->replicas[i].runs[j];
            const struct hv__pool *p = &s->pools[run->pool];
            usd += ceil((double)hv__run_devices(run) / p->node_devices) * p->node_usd_h;
        }
    }
    return usd;
}

static double power_of(const struct hv__search *s, const struct hv__sketch *k)
{
    double w = 0;
    for (int i = 0; i < k->n_replicas; i++) {
        for (int j = 0; j < k->replicas[i].n_runs; j++) {
            const struct hv__stage_run *run = &k->replicas[i].runs[j];
            w += hv__run_devices(run) * s->pools[run->pool].kind->tdp_w;
        }
    }
    return w;
}

/* The job's objective for a set of replicas that takes `t_s`; larger than all others where it
 * is not known. */
static double figure_of(const struct hv__search *s, const struct hv__sketch *k, double t_s)
{
    enum hv_minimize aim = s->job->objective.minimize;
    double per_s = aim == HV_MIN_COST     ? price_of(s, k) / 3600
                   : aim == HV_MIN_ENERGY ? power_of(s, k)
                                          : 1;
    return t_s * hv_or(per_s, HV_EVAL_NO_FIGURE);
}

/* Splits the batch between the replicas of a set and lists it. Only the replicas in use are
 * copied. */
static void add_set(struct hv__lister *l, struct hv__sketch *k)
{
    struct hv__search *s = l->s;
    const struct hv_objective *o = &s->job->objective;
    double usd = price_of(s, k), worst = 0;
    if (!s->over_limits && hv_known(o->max_usd_per_h) && usd > o->max_usd_per_h) {
        return;
    }
    if (!hv__split_batch(s, k, true)) {
        return;
    }
    for (int i = 0; i < k->n_replicas; i++) {
        const struct hv__replica_sketch *r = &k->replicas[i];
        double each, fill;
        hv__replica_times(s, r, k->schedule, &each, &fill);
        worst = fmax(worst, each * (double)(r->micro_batches + (r->n_longer > 0)) + fill);
    }
    worst += hv__shared_sync_s(s, k);
    if (!s->over_limits && hv_known(o->deadline_s) && worst > LATE * o->deadline_s) {
        return;
    }
    struct hv__replica_set x = {
        .n = k->n_replicas,
        .replicas =
            hv_arena_copy(&l->arena, k->replicas, (size_t)k->n_replicas, sizeof *k->replicas),
        .estimate = figure_of(s, k, worst),
        .number = (int)l->sets.n,
        .grouping = l->n_groupings};
    hv_vec_push(&l->sets, x);
}

/* The candidate of the subset that runs the fraction `part` of the batch fastest, or the next
 * best after `nth` others. NULL when there are fewer. */
static const struct hv__candidate *fitting(const struct hv__lister *l,
                                           const struct hv__pool_subset *sub, double part, int nth)
{
    const struct hv__candidate *best = NULL;
    bool passed[HV__CANDIDATES_KEPT] = {false};
    double n = part * (double)l->s->job->global_batch;
    for (int round = 0; round <= nth; round++) {
        double least = HUGE_VAL;
        best = NULL;
        for (int i = 0; i < sub->n; i++) {
            const struct hv__candidate *cand = &sub->kept[i];
            double m = fmax(1, n / cand->replica.micro_batch), t = m * cand->each_s + cand->fill_s;
            if (!passed[i] && t < least) {
                least = t;
                best = cand;
            }
        }
        if (best == NULL) {
            return NULL;
        }
        passed[best - sub->kept] = true;
    }
    return best;
}

void hv__add_sets(struct hv__lister *l, const struct hv__pool_subset *const *subs, int n)
{
    double used = 0;
    for (int r = 0; r < n; r++) {
        used += subs[r]->share;
    }
    struct hv__sketch k = {.n_replicas = n};
    for (int nth = 0; nth < VARIANTS; nth++) {
        bool some = true;
        for (int r = 0; r < n && some; r++) {
            const struct hv__candidate *cand = fitting(l, subs[r], subs[r]->share / used, nth);
            some = cand != NULL;
            if (some) {
                k.replicas[r] = cand->replica;
            }
        }
        if (some) {
            add_set(l, &k);
        }
    }
}

void hv__add_singles(struct hv__lister *l, const struct hv__pool_subset *sub)
{
    struct hv__sketch k = {.n_replicas = 1};
    for (int t = 0; t < sub->n; t++) {
        k.replicas[0] = sub->kept[t].replica;
        add_set(l, &k);
    }
}

/* Assigns pool number `i` and the later ones to existing groups, to new groups, or to none. */
void hv__group_pools(struct hv__lister *l, unsigned *masks, int n, int i)
{
    if (i < l->s->n_pools) {
        for (int t = 0; t < n; t++) {
            masks[t] |= 1U << i;
            hv__group_pools(l, masks, n, i + 1);
            masks[t] &= ~(1U << i);
        }
        masks[n] = 1U << i;
        hv__group_pools(l, masks, n + 1, i + 1);
        hv__group_pools(l, masks, n, i + 1);
        return;
    }
    const struct hv__pool_subset *subs[HV__POOLS];
    for (int t = 0; t < n; t++) {
        subs[t] = &l->subsets[masks[t]];
    }
    l->n_groupings++;
    if (n > 1) {
        hv__add_sets(l, subs, n);
    } else if (n == 1) {
        hv__add_singles(l, subs[0]);
    }
}
