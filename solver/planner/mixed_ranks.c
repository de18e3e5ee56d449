/*
 * Moves of unequal devices inside one stage: data-parallel ranks of two pools that share every
 * micro-batch by their speed. Where there are too few devices of a kind for stages of their own, or
 * stages of their own would make the pipeline deeper than its micro-batches fill.
 */
#include "solver/base/units.h"
#include "solver/planner/improve_int.h"

#include <string.h>

/* The team with micro-batches of `by` times the size and the leg as wanted, on n devices of its
 * own pool. */
static void attempt_leg(struct hv__climb *c, struct hv__sketch *next, int t, int leg, int n)
{
    struct hv__team *team = &next->teams[t];
    for (int i = 0; i < team->n_legs; i++) {
        struct hv__leg *l = &team->legs[i];
        if (!hv__shape(c, team, l, i == leg ? n : hv__leg_devices(l))) {
            return;
        }
    }
    (void)hv__attempt(c, next, true);
}

/* Devices that nobody takes, as guests: all of them, or one rank per stage. */
static void try_spare(struct hv__climb *c, int t, int leg, int pool)
{
    const struct hv__leg *now = &c->k.teams[t].legs[leg];
    int most = hv__spare_devices(c->s, &c->k, pool) / (now->n_stages * now->tp * now->cp);
    for (int i = 0; i < 4 && most > 0 && c->k.teams[t].legs[leg].guests == 0; i++) {
        struct hv__sketch next = c->k;
        struct hv__team *team = &next.teams[t];
        struct hv__leg *l = &team->legs[leg];
        if (i % 2 == 1 && most == 1) {
            continue;
        }
        team->micro_batch *= i < 2 ? 1 : 2;
        l->guest_pool = pool;
        l->guests = i % 2 == 1 ? 1 : most;
        attempt_leg(c, &next, t, leg, hv__leg_devices(&c->k.teams[t].legs[leg]));
    }
}

/* This leg and the next as one of `stages` stages, the next one's devices as guests of the first's:
 * as wide tensor groups as either has. */
static void merge(struct hv__climb *c, int t, int leg, int stages, int tp, int by)
{
    struct hv__sketch next = c->k;
    struct hv__team *team = &next.teams[t];
    struct hv__leg *l = &team->legs[leg];
    int own = hv__leg_devices(l), guests = hv__leg_devices(l + 1);
    team->micro_batch *= by;
    l->guest_pool = l[1].pool;
    l->n_stages = stages;
    l->tp = tp;
    l->guests = guests / (stages * tp * l->cp);
    memmove(l + 1, l + 2, (size_t)(team->n_legs - leg - 2) * sizeof *l);
    team->n_legs--;
    if (l->guests > 0) {
        attempt_leg(c, &next, t, leg, own);
    }
}

static void try_merge(struct hv__climb *c, int t, int leg)
{
    const struct hv__sketch before = c->k;
    const struct hv__leg *a = &before.teams[t].legs[leg], *b = a + 1;
    if (leg + 1 >= before.teams[t].n_legs || a->pool == b->pool || b->guests > 0 || b->ep > 1) {
        return;
    }
    for (int i = 0; i < 12; i++) {
        int stages = i % 3 == 0   ? a->n_stages
                     : i % 3 == 1 ? b->n_stages
                                  : a->n_stages + b->n_stages;
        int tp = i / 3 % 2 == 0 ? a->tp : b->tp, n_legs = c->k.teams[t].n_legs;
        bool again =
            (i % 3 == 1 && b->n_stages == a->n_stages) || (i / 3 % 2 == 1 && b->tp == a->tp);
        if (!again && n_legs == before.teams[t].n_legs) {
            merge(c, t, leg, stages, tp, i < 6 ? 1 : 2);
        }
    }
}

/* Other shares than prices say, and no guests. */
static void try_shares(struct hv__climb *c, int t, int leg)
{
    for (int by = -1; by <= 1; by += 2) {
        struct hv__sketch next = c->k;
        struct hv__leg *l = &next.teams[t].legs[leg];
        l->guest_share += by;
        int own = next.teams[t].micro_batch - l->guest_share;
        if (l->guest_share >= l->guests && own >= l->dp) {
            (void)hv__attempt(c, &next, true);
        }
    }
    struct hv__sketch next = c->k;
    struct hv__leg *l = &next.teams[t].legs[leg];
    int n = hv__leg_devices(l);
    l->guest_pool = l->guests = l->guest_share = 0;
    attempt_leg(c, &next, t, leg, n);
}

void hv__try_guests(struct hv__climb *c, int t, int leg)
{
    const struct hv__leg *l = &c->k.teams[t].legs[leg];
    if (!c->s->fine || l->ep > 1) {
        return;
    }
    if (l->guests > 0) {
        try_shares(c, t, leg);
        return;
    }
    try_merge(c, t, leg);
    for (int pool = 0; pool < c->s->n_pools; pool++) {
        if (leg < c->k.teams[t].n_legs && c->k.teams[t].legs[leg].guests == 0 &&
            c->k.teams[t].legs[leg].pool != pool) {
            try_spare(c, t, leg, pool);
        }
    }
}

/* The least divisor that is no less than `least`: such micro-batches suit one team alone. */
static int divisor_from(int64_t total, int least)
{
    int n = least;
    while (n < total && total % n != 0) {
        n++;
    }
    return n;
}

/* Team b as guests of team a, in its place. False where it is not better. */
static bool unite(struct hv__climb *c, int a, int b, int zero, int by)
{
    struct hv__sketch next = c->k;
    struct hv__team *team = &next.teams[a];
    struct hv__leg *l = &team->legs[0];
    const struct hv__leg *from = &c->k.teams[b].legs[0];
    int own = hv__leg_devices(l);
    l->guest_pool = from->pool;
    l->guests = hv__leg_devices(from) / (l->n_stages * l->tp * l->cp);
    team->micro_batch =
        divisor_from(c->s->job->global_batch, by * (team->micro_batch + c->k.teams[b].micro_batch));
    team->zero = zero;
    if (l->guests == 0 || team->micro_batch > c->s->job->global_batch ||
        !hv__shape(c, team, l, own)) {
        return false;
    }
    memmove(&next.teams[b], &next.teams[b + 1],
            (size_t)(next.n_teams - b - 1) * sizeof *next.teams);
    next.n_teams--;
    return hv__attempt(c, &next, true);
}

static bool may_unite(const struct hv__team *a, const struct hv__team *b)
{
    const struct hv__leg *x = &a->legs[0], *y = &b->legs[0];
    return a->n_legs == 1 && b->n_legs == 1 && x->pool != y->pool && x->guests == 0 &&
           y->guests == 0 && x->ep == 1 && y->ep == 1;
}

void hv__try_united(struct hv__climb *c)
{
    static const int ways[][2] = {{1, 1}, {3, 1}, {1, 2}, {3, 2}}; /* zero, batch */
    for (int a = 0; c->s->fine && a < c->k.n_teams; a++) {
        for (int b = 0; b < c->k.n_teams; b++) {
            for (size_t i = 0; i < HV_COUNT(ways) && a < c->k.n_teams && b < c->k.n_teams; i++) {
                if (a != b && may_unite(&c->k.teams[a], &c->k.teams[b])) {
                    (void)unite(c, a, b, ways[i][0], ways[i][1]);
                }
            }
        }
    }
}
