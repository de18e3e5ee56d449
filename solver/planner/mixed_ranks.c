/*
 * Moves that mix unequal devices in one stage: data-parallel ranks of two pools share every micro-
 * batch by their speed. This helps where a kind has too few devices for stages of its own, or where
 * its own stages would make the pipeline deeper than its micro-batches fill.
 */
#include "solver/base/units.h"
#include "solver/planner/improve_int.h"

#include <string.h>

/* Sets the degrees of all runs, those of run j on n devices of its own pool, and tries the plan. */
static void attempt_run(struct hv__climb *c, struct hv__sketch *next, int r, int j, int n)
{
    struct hv__replica_sketch *replica = &next->replicas[r];
    for (int i = 0; i < replica->n_runs; i++) {
        struct hv__stage_run *run = &replica->runs[i];
        if (!hv__set_degrees(c, replica, run, i == j ? n : hv__run_devices(run))) {
            return;
        }
    }
    (void)hv__attempt(c, next, true);
}

/* Unused devices of a pool as second pool of the run: all of them, or one rank per stage. */
static void try_spare(struct hv__climb *c, int r, int j, int pool)
{
    const struct hv__stage_run *now = &c->k.replicas[r].runs[j];
    int most = hv__spare_devices(c->s, &c->k, pool) / (now->n_stages * now->tp * now->cp);
    for (int i = 0; i < 4 && most > 0 && c->k.replicas[r].runs[j].second_dp == 0; i++) {
        struct hv__sketch next = c->k;
        struct hv__replica_sketch *replica = &next.replicas[r];
        struct hv__stage_run *run = &replica->runs[j];
        if (i % 2 == 1 && most == 1) {
            continue;
        }
        replica->micro_batch *= i < 2 ? 1 : 2;
        run->second_pool = pool;
        run->second_dp = i % 2 == 1 ? 1 : most;
        attempt_run(c, &next, r, j, hv__run_devices(&c->k.replicas[r].runs[j]));
    }
}

/* Merges this run and the next to one of `stages` stages, the next one's devices as its second
 * pool. */
static void merge(struct hv__climb *c, int r, int j, int stages, int tp, int by)
{
    struct hv__sketch next = c->k;
    struct hv__replica_sketch *replica = &next.replicas[r];
    struct hv__stage_run *run = &replica->runs[j];
    int own = hv__run_devices(run), second = hv__run_devices(run + 1);
    replica->micro_batch *= by;
    run->second_pool = run[1].pool;
    run->n_stages = stages;
    run->tp = tp;
    run->second_dp = second / (stages * tp * run->cp);
    memmove(run + 1, run + 2, (size_t)(replica->n_runs - j - 2) * sizeof *run);
    replica->n_runs--;
    if (run->second_dp > 0) {
        attempt_run(c, &next, r, j, own);
    }
}

static void try_merge(struct hv__climb *c, int r, int j)
{
    const struct hv__sketch before = c->k;
    const struct hv__stage_run *a = &before.replicas[r].runs[j], *b = a + 1;
    if (j + 1 >= before.replicas[r].n_runs || a->pool == b->pool || b->second_dp > 0 || b->ep > 1) {
        return;
    }
    for (int i = 0; i < 12; i++) {
        int stages = i % 3 == 0   ? a->n_stages
                     : i % 3 == 1 ? b->n_stages
                                  : a->n_stages + b->n_stages;
        int tp = i / 3 % 2 == 0 ? a->tp : b->tp, n_runs = c->k.replicas[r].n_runs;
        bool again =
            (i % 3 == 1 && b->n_stages == a->n_stages) || (i / 3 % 2 == 1 && b->tp == a->tp);
        if (!again && n_runs == before.replicas[r].n_runs) {
            merge(c, r, j, stages, tp, i < 6 ? 1 : 2);
        }
    }
}

/* Other shares than those by prices, and no second pool. */
static void try_shares(struct hv__climb *c, int r, int j)
{
    for (int by = -1; by <= 1; by += 2) {
        struct hv__sketch next = c->k;
        struct hv__stage_run *run = &next.replicas[r].runs[j];
        run->second_sequences += by;
        int own = next.replicas[r].micro_batch - run->second_sequences;
        if (run->second_sequences >= run->second_dp && own >= run->dp) {
            (void)hv__attempt(c, &next, true);
        }
    }
    struct hv__sketch next = c->k;
    struct hv__stage_run *run = &next.replicas[r].runs[j];
    int n = hv__run_devices(run);
    run->second_pool = run->second_dp = run->second_sequences = 0;
    attempt_run(c, &next, r, j, n);
}

void hv__try_mixed_ranks(struct hv__climb *c, int r, int j)
{
    const struct hv__stage_run *run = &c->k.replicas[r].runs[j];
    if (!c->s->fine || run->ep > 1) {
        return;
    }
    if (run->second_dp > 0) {
        try_shares(c, r, j);
        return;
    }
    try_merge(c, r, j);
    for (int pool = 0; pool < c->s->n_pools; pool++) {
        if (j < c->k.replicas[r].n_runs && c->k.replicas[r].runs[j].second_dp == 0 &&
            c->k.replicas[r].runs[j].pool != pool) {
            try_spare(c, r, j, pool);
        }
    }
}

/* The least divisor that is at least `least`: micro-batches of this size suit a single replica. */
static int divisor_from(int64_t total, int least)
{
    int n = least;
    while (n < total && total % n != 0) {
        n++;
    }
    return n;
}

/* Makes the devices of replica b the second pool of replica a. False where that is not better. */
static bool join_replicas(struct hv__climb *c, int a, int b, int zero, int by)
{
    struct hv__sketch next = c->k;
    struct hv__replica_sketch *replica = &next.replicas[a];
    struct hv__stage_run *run = &replica->runs[0];
    const struct hv__stage_run *from = &c->k.replicas[b].runs[0];
    int own = hv__run_devices(run);
    run->second_pool = from->pool;
    run->second_dp = hv__run_devices(from) / (run->n_stages * run->tp * run->cp);
    replica->micro_batch = divisor_from(c->s->job->global_batch,
                                        by * (replica->micro_batch + c->k.replicas[b].micro_batch));
    replica->zero = zero;
    if (run->second_dp == 0 || replica->micro_batch > c->s->job->global_batch ||
        !hv__set_degrees(c, replica, run, own)) {
        return false;
    }
    memmove(&next.replicas[b], &next.replicas[b + 1],
            (size_t)(next.n_replicas - b - 1) * sizeof *next.replicas);
    next.n_replicas--;
    return hv__attempt(c, &next, true);
}

static bool may_join(const struct hv__replica_sketch *a, const struct hv__replica_sketch *b)
{
    const struct hv__stage_run *x = &a->runs[0], *y = &b->runs[0];
    return a->n_runs == 1 && b->n_runs == 1 && x->pool != y->pool && x->second_dp == 0 &&
           y->second_dp == 0 && x->ep == 1 && y->ep == 1;
}

void hv__try_joined_replicas(struct hv__climb *c)
{
    static const int ways[][2] = {{1, 1}, {3, 1}, {1, 2}, {3, 2}}; /* zero, batch */
    for (int a = 0; c->s->fine && a < c->k.n_replicas; a++) {
        for (int b = 0; b < c->k.n_replicas; b++) {
            for (size_t i = 0; i < HV_COUNT(ways) && a < c->k.n_replicas && b < c->k.n_replicas;
                 i++) {
                if (a != b && may_join(&c->k.replicas[a], &c->k.replicas[b])) {
                    (void)join_replicas(c, a, b, ways[i][0], ways[i][1]);
                }
            }
        }
    }
}
