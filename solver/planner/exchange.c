/*
 * Moves of what ranks exchange for one step: how many gradients are reduced at once, and who shares
 * states with whom. They change little of a plan's time, so they come after all moves of devices.
 */
#include "solver/base/units.h"
#include "solver/planner/improve_int.h"

/* Are there gradients to reduce? */
static bool reduces(const struct hv__sketch *k)
{
    bool some = k->n_teams > 1;
    for (int t = 0; t < k->n_teams; t++) {
        for (int l = 0; l < k->teams[t].n_legs; l++) {
            some = some || hv__leg_holders(&k->teams[t].legs[l]) > 1;
        }
    }
    return some;
}

/* Small buckets begin soon, large ones pay for fewer starts. */
static void try_buckets(struct hv__climb *c)
{
    static const int mib[] = {10, 25, 50, 100, 200, 400};
    for (size_t i = 0; i < HV_COUNT(mib); i++) {
        struct hv__sketch next = c->k;
        next.bucket_mib = mib[i];
        if (c->k.bucket_mib != mib[i]) {
            (void)hv__attempt(c, &next, false);
        }
    }
}

static void try_shards(struct hv__climb *c, int t, int group)
{
    static const struct {
        int zero;
        bool late, keeps;
    } ways[] = {{1, false, false}, {2, false, false}, {3, false, false},
                {3, true, false},  {3, false, true},  {3, true, true}};
    for (size_t i = 0; i < HV_COUNT(ways); i++) {
        struct hv__sketch next = c->k;
        struct hv__team *team = &next.teams[t];
        team->zero = ways[i].zero;
        team->late = ways[i].late;
        team->keeps = ways[i].keeps;
        team->group = group;
        (void)hv__attempt(c, &next, true);
    }
}

void hv__try_exchanges(struct hv__climb *c)
{
    if (!reduces(&c->k)) {
        return;
    }
    try_buckets(c);
    for (int t = 0; t < c->k.n_teams; t++) {
        const struct hv__leg *l = &c->k.teams[t].legs[0];
        int inside = c->s->pools[l->pool].node_devices / l->tp, holders = hv__leg_holders(l);
        if (holders == 1) {
            continue;
        }
        try_shards(c, t, 0);
        if (holders > 2) {
            try_shards(c, t, 2);
        }
        if (inside > 2 && holders > inside && holders % inside == 0) {
            try_shards(c, t, inside);
        }
    }
}
