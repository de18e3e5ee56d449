/*
 * Moves of the communication of one step: sizes of gradient buckets, and the groups that shard
 * states. They change a plan's time little, so they come after all moves of devices.
 */
#include "solver/base/units.h"
#include "solver/planner/improve_int.h"

/* True where gradients are all-reduced at all. */
static bool reduces(const struct hv__sketch *k)
{
    bool some = k->n_replicas > 1;
    for (int r = 0; r < k->n_replicas; r++) {
        for (int j = 0; j < k->replicas[r].n_runs; j++) {
            some = some || hv__run_holders(&k->replicas[r].runs[j]) > 1;
        }
    }
    return some;
}

/* Small buckets overlap earlier, large ones pay the latency less often. */
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

static void try_shards(struct hv__climb *c, int r, int group)
{
    static const struct {
        int zero;
        bool reduce_late, keeps_gathered;
    } ways[] = {{1, false, false}, {2, false, false}, {3, false, false},
                {3, true, false},  {3, false, true},  {3, true, true}};
    for (size_t i = 0; i < HV_COUNT(ways); i++) {
        struct hv__sketch next = c->k;
        struct hv__replica_sketch *replica = &next.replicas[r];
        replica->zero = ways[i].zero;
        replica->reduce_late = ways[i].reduce_late;
        replica->keeps_gathered = ways[i].keeps_gathered;
        replica->shard_group = group;
        (void)hv__attempt(c, &next, true);
    }
}

void hv__try_exchanges(struct hv__climb *c)
{
    if (!reduces(&c->k)) {
        return;
    }
    try_buckets(c);
    for (int r = 0; r < c->k.n_replicas; r++) {
        const struct hv__stage_run *run = &c->k.replicas[r].runs[0];
        int inside = c->s->pools[run->pool].node_devices / run->tp, holders = hv__run_holders(run);
        if (holders == 1) {
            continue;
        }
        try_shards(c, r, 0);
        if (holders > 2) {
            try_shards(c, r, 2);
        }
        if (inside > 2 && holders > inside && holders % inside == 0) {
            try_shards(c, r, inside);
        }
    }
}
