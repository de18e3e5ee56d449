/**
 * Plans whose pipelines do not wait for all gradients of an iteration: each is a worker with a pace
 * of its own. With parameter servers, or with all-reduce behind an asynchronous pipeline, all
 * workers run at the pace of the slowest in the long run, since their distance is bounded; groups
 * that average without the others are simulated event by event (sim/events/workers.h). iteration_s
 * is the steady time of one global batch.
 */
#include "solver/base/rng.h"
#include "solver/eval/train/steps.h"
#include "solver/sim/events/workers.h"

#include <stdlib.h>
#include <string.h>

/** Largest number of workers that is simulated. */
#define WORKERS_MOST 256
/** Simulated steps of the slowest worker; the second half is measured. */
#define STEPS_PLAYED 100
/** Different groups whose prices are kept, and places looked at for one. */
#define PRICES_KEPT   16384
#define PRICES_PROBED 16
/** Weight of a member's model for every clock that it is behind the furthest of its group: a moving
 * average, of which a plan does not give the decay. */
#define STALE_DECAY 0.5
/** Seed of gossip, where peers are drawn at random. */
#define SEED 1

/** One worker: a copy of a pipeline. */
struct worker {
    size_t pipeline;
    int copy;
};

/** The average of a group: seconds alone, and the networks it uses. */
struct average {
    double time_s;
    struct hv_workers_links links;
};

/** Averages of groups, priced once each. */
struct prices {
    struct hv__lowered *l;
    const struct worker *workers;
    bool **members; /**< [pipelines][copies] */
    uint64_t *keys; /**< [PRICES_KEPT] of members, whatever their order; 0: none */
    struct average *values;
    struct average last; /**< where all are taken; in memory of its own */
    struct hv_arena arena;
};

/** Seconds of one wave of a pipeline: its period where it never flushes, else a whole run. */
static double pipeline_wave_s(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    return l->schedule.row->flags & HV_SCHEDULE_ASYNC
               ? (double)pl->replica->micro_batches * pl->period_s
               : pl->run.makespan_s;
}

/** Optimizer and gather of a pipeline's slowest rank. */
static double pipeline_step_s(struct hv__lowered *l, struct hv__pipeline *pl)
{
    double most = 0;
    for (size_t k = 0; k < pl->n_ranks; k++) {
        hv__optimizer_step(l, pl, &pl->ranks[k]);
        most = fmax(most, pl->ranks[k].optimizer_s + pl->ranks[k].gather_s);
    }
    return most;
}

/** Micro-batches in flight besides the one that ends: they run without its update. Pipelines that
 * flush have none. */
static int own_staleness(const struct hv__lowered *l)
{
    int in_flight = 1;
    for (size_t i = 0; (l->schedule.row->flags & HV_SCHEDULE_ASYNC) && i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        int32_t *peak = hv_arena_new(l->arena, int32_t, pl->n_ranks);
        hv_schedule_peak_inflight(pl->schedule, peak);
        in_flight = peak[0] > in_flight ? peak[0] : in_flight;
    }
    return in_flight - 1;
}

static size_t list_workers(const struct hv__lowered *l, struct worker **out)
{
    size_t n = 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        n += (size_t)l->pipelines.items[i].multiplicity;
    }
    *out = hv_arena_new(l->arena, struct worker, n + 1);
    n = 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        for (int c = 0; c < l->pipelines.items[i].multiplicity; c++) {
            (*out)[n++] = (struct worker){i, c};
        }
    }
    return n;
}

/* ---- all at the pace of the slowest ---------------------------------------------------------- */

/** Pushes and pulls of a wave overlap with the next one; the rest is exposed. */
static void at_one_pace(struct hv__lowered *l, const double *period_s, struct hv_stale_sync *a)
{
    double slowest_s = 0, sum_s = 0, sequences = 0;
    size_t at = 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        sequences += (double)(hv_replica_sequences(l->plan, pl->replica) * pl->multiplicity);
        slowest_s = fmax(slowest_s, period_s[at]);
        sum_s += period_s[at] * pl->multiplicity;
        at += (size_t)pl->multiplicity;
    }
    a->exchange_s = l->plan->sync.kind == HV_SYNC_NONE ? 0 : hv__exchange_round(l).time_s;
    double exposed_s = fmax(0, a->exchange_s - slowest_s);
    a->wave_s = slowest_s + exposed_s;
    a->wait_frac = (slowest_s - sum_s / (double)a->n_workers) / a->wave_s;
    a->staleness_clocks = a->clock_distance;
    double waves = (double)hv_cost_job(l->k)->global_batch / sequences;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        l->pipelines.items[i].waves.per_iteration = waves;
        l->pipelines.items[i].waves.exposed_s = exposed_s;
    }
    l->iteration.total_s = a->wave_s * waves + l->iteration.step_s;
}

/** Pushes and pulls behind every wave of the run as it is drawn. */
static void keep_pushes(struct hv__lowered *l)
{
    const double *busy_s = hv__exchange_round(l).rank_s;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *pl = &l->pipelines.items[i];
        int64_t wave = pl->replica->micro_batches;
        pl->waves.n_exchanges = (size_t)(pl->n_mb / wave);
        pl->waves.exchanges =
            hv_arena_new(l->arena, struct hv_span, pl->waves.n_exchanges * pl->n_ranks + 1);
        size_t n_ops = hv_schedule_n_ops(pl->schedule);
        for (size_t k = 0; k < n_ops; k++) {
            const struct hv_op *op = &pl->schedule->ops[k];
            size_t at = (size_t)(op->mb / wave);
            size_t stage = (size_t)op->pipe * pl->n_gstages + (size_t)op->stage;
            if (at < pl->waves.n_exchanges && op->kind != HV_OP_F && op->kind != HV_OP_R) {
                struct hv_span *s =
                    &pl->waves
                         .exchanges[at * pl->n_ranks + (size_t)pl->schedule->stage_to_rank[stage]];
                s->start_s = fmax(s->start_s, hv_pipe_op_end_s(pl->pipe, &pl->run, k));
            }
        }
        for (size_t k = 0; k < pl->waves.n_exchanges * pl->n_ranks; k++) {
            struct hv_span *s = &pl->waves.exchanges[k];
            double before = k >= pl->n_ranks ? pl->waves.exchanges[k - pl->n_ranks].end_s : 0;
            s->start_s = fmax(s->start_s, before);
            s->end_s = s->start_s + busy_s[l->pipelines.rank_at[i] + k % pl->n_ranks];
        }
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int compare_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static uint64_t key_of(const size_t *members, size_t n)
{
    size_t sorted[WORKERS_MOST];
    memcpy(sorted, members, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_size);
    return hv_hash(HV_HASH_START, sorted, n * sizeof *sorted);
}

/** The networks that a round keeps busy, in an arena. */
static struct hv_workers_links links_of(const struct hv__round *r, struct hv_arena *arena)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_lanes; i++) {
        n += r->lane_s[i] > 0;
    }
    struct hv_workers_link *links = hv_arena_new(arena, struct hv_workers_link, n + 1);
    n = 0;
    for (size_t i = 0; i < r->n_lanes; i++) {
        if (r->lane_s[i] > 0) {
            links[n++] = (struct hv_workers_link){i, r->lane_s[i] / r->time_s};
        }
    }
    return (struct hv_workers_links){links, n};
}

/** The reductions of all stages over these workers alone; the links go into `arena`. */
static struct average price_group(struct prices *p, const size_t *members, size_t n,
                                  struct hv_arena *arena)
{
    struct hv__lowered *l = p->l;
    for (size_t u = 0; u < l->pipelines.n; u++) {
        memset(p->members[u], 0, (size_t)l->pipelines.items[u].multiplicity * sizeof **p->members);
    }
    for (size_t k = 0; k < n; k++) {
        p->members[p->workers[members[k]].pipeline][p->workers[members[k]].copy] = true;
    }
    struct hv_arena_mark mark = hv_arena_mark(l->arena);
    l->members = (const bool *const *)p->members;
    struct hv__round r = hv__exchange_round(l);
    struct average x = {r.time_s, links_of(&r, arena)};
    l->members = NULL;
    hv_arena_rewind(l->arena, mark);
    return x;
}

/** The average of these workers: where it is kept, else priced. */
static const struct average *average_of(struct prices *p, const size_t *members, size_t n)
{
    uint64_t key = key_of(members, n) | 1;
    for (size_t k = 0; k < PRICES_PROBED; k++) {
        size_t at = (key + k) % PRICES_KEPT;
        if (p->keys[at] == key) {
            return &p->values[at];
        }
        if (p->keys[at] == 0) {
            p->keys[at] = key;
            p->values[at] = price_group(p, members, n, &p->arena);
            return &p->values[at];
        }
    }
    struct hv_arena_mark mark = hv_arena_mark(&p->arena); /* lives until the next call */
    p->last = price_group(p, members, n, &p->arena);
    hv_arena_rewind(&p->arena, mark);
    return &p->last;
}

/** Seconds of the average of these workers alone, and its links where they are asked for. */
static double group_s(void *ctx, const size_t *members, size_t n, struct hv_workers_links *links)
{
    const struct average *x = average_of(ctx, members, n);
    if (links != NULL) {
        *links = x->links;
    }
    return x->time_s;
}

static struct prices open_prices(struct hv__lowered *l, const struct worker *workers)
{
    struct prices p = {.l = l, .workers = workers};
    p.keys = hv_arena_new(l->arena, uint64_t, PRICES_KEPT);
    p.values = hv_arena_new(l->arena, struct average, PRICES_KEPT);
    p.members = hv_arena_new(l->arena, bool *, l->pipelines.n + 1);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        p.members[i] = hv_arena_new(l->arena, bool, (size_t)l->pipelines.items[i].multiplicity + 1);
    }
    return p;
}

/** The first average of a pipeline's first copy, on all its links. */
static void keep_group(const struct hv__lowered *l, struct hv__pipeline *pl,
                       const struct hv_workers_group *g)
{
    pl->waves.n_exchanges = 1;
    pl->waves.exchanges = hv_arena_new(l->arena, struct hv_span, pl->n_ranks);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        pl->waves.exchanges[r] = (struct hv_span){.start_s = g->start_s, .end_s = g->end_s};
    }
}

static void keep_groups(const struct hv__lowered *l, const struct hv_workers_run *run,
                        const struct worker *workers)
{
    for (size_t g = 0; g < run->n_groups; g++) {
        for (size_t m = 0; m < run->groups[g].n; m++) {
            const struct worker *w = &workers[run->groups[g].members[m]];
            if (w->copy == 0 && l->pipelines.items[w->pipeline].waves.n_exchanges == 0) {
                keep_group(l, &l->pipelines.items[w->pipeline], &run->groups[g]);
            }
        }
    }
}

/** Steps per second of a worker: never more than its own pace, which counting may round up to. */
static double rate_of(const struct hv_workers_run *run, const double *period_s, size_t i)
{
    return fmin(run->rate_per_s[i], 1 / period_s[i]);
}

/** Waves of every pipeline in an iteration of batch_s, and what of each its exchanges take; the
 * rest is waiting time. */
static void set_waves(const struct hv__lowered *l, const struct hv_workers_run *run,
                      const double *period_s, double batch_s, double exchange_s)
{
    size_t n = 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *pl = &l->pipelines.items[i];
        double rate = 0;
        for (int c = 0; c < pl->multiplicity; c++) {
            rate += rate_of(run, period_s, n + (size_t)c) / pl->multiplicity;
        }
        pl->waves.per_iteration = batch_s * rate;
        pl->waves.exposed_s = rate > 0 ? fmin(exchange_s, fmax(0, 1 / rate - period_s[n])) : 0;
        n += (size_t)pl->multiplicity;
    }
}

/** Takes the results of the simulation over into the plan's figures. */
static void take_run(struct hv__lowered *l, const struct hv_workers_run *run,
                     const struct worker *workers, const double *period_s, struct hv_stale_sync *a)
{
    double sequences_per_s = 0, sum_per_s = 0;
    for (size_t i = 0; i < a->n_workers; i++) {
        const struct hv_replica *r = l->pipelines.items[workers[i].pipeline].replica;
        double rate = rate_of(run, period_s, i);
        sum_per_s += rate;
        sequences_per_s += rate * (double)hv_replica_sequences(l->plan, r);
        a->wait_frac += run->wait_frac[i] / (double)a->n_workers;
    }
    double batch_s = (double)hv_cost_job(l->k)->global_batch / sequences_per_s;
    a->wave_s = (double)a->n_workers / sum_per_s;
    a->staleness_clocks = run->mean_staleness;
    a->rho = hv_workers_mixing_rho(run->mixing, a->n_workers);
    a->mean_group = run->mean_group;
    set_waves(l, run, period_s, batch_s, a->exchange_s);
    l->iteration.staleness = 0;
    for (int k = 0; k < HV_WORKERS_STALENESS; k++) {
        l->iteration.staleness = run->staleness[k] > 0 ? k : l->iteration.staleness;
    }
    l->iteration.staleness += a->own_staleness;
    l->iteration.total_s = batch_s + l->iteration.step_s;
}

/** Simulates the workers; each continues as soon as its group or its peer has averaged with it. */
static enum hv_status in_groups(struct hv__lowered *l, const struct worker *workers,
                                const double *period_s, struct hv_stale_sync *a, struct hv_err *err)
{
    struct prices p = open_prices(l, workers);
    double slowest_s = 0;
    bool gossip = a->kind == HV_SYNC_GOSSIP;
    bool weighted = !gossip && l->plan->sync.weights == HV_WEIGHTS_STALENESS;
    size_t least = (size_t)l->plan->sync.least;
    for (size_t i = 0; i < a->n_workers; i++) {
        slowest_s = fmax(slowest_s, period_s[i]);
    }
    struct hv_workers w = {.kind = gossip ? HV_WORKERS_GOSSIP : HV_WORKERS_PARTIAL,
                           .n = a->n_workers,
                           .period_s = period_s,
                           .group = (size_t)a->group,
                           .connect = l->plan->sync.connect,
                           .staleness = gossip ? -1 : l->plan->sync.staleness,
                           .wait_s = l->plan->sync.wait_s,
                           .wait_most_s = l->plan->sync.wait_most_s,
                           .least = least < a->n_workers ? least : a->n_workers,
                           .decay = weighted ? STALE_DECAY : 0,
                           .exchange_s = group_s,
                           .ctx = &p,
                           .n_links = hv__exchange_round(l).n_lanes,
                           .keep = l->spans ? 4 * a->n_workers : 0,
                           .horizon_s = STEPS_PLAYED * slowest_s,
                           .seed = SEED};
    struct hv_workers_run run;
    enum hv_status st = hv_workers_run(l->arena, &w, &run, err);
    hv_arena_free(&p.arena);
    if (st != HV_OK) {
        return st;
    }
    a->exchange_s = run.mean_exchange_s;
    take_run(l, &run, workers, period_s, a);
    if (l->spans) {
        keep_groups(l, &run, workers);
    }
    return HV_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static double *periods(struct hv__lowered *l, size_t n)
{
    double *period_s = hv_arena_new(l->arena, double, n + 1);
    size_t at = 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        double t =
            pipeline_wave_s(l, &l->pipelines.items[i]) + pipeline_step_s(l, &l->pipelines.items[i]);
        for (int c = 0; c < l->pipelines.items[i].multiplicity; c++) {
            period_s[at++] = t;
        }
    }
    return period_s;
}

static struct hv_stale_sync *open_stale_sync(const struct hv__lowered *l, size_t n)
{
    const struct hv_sync *y = &l->plan->sync;
    struct hv_stale_sync *a = hv_arena_new(l->arena, struct hv_stale_sync, 1);
    int most = (int)n;
    *a = (struct hv_stale_sync){.kind = y->kind,
                                .n_workers = n,
                                .clock_distance = y->staleness,
                                .own_staleness = own_staleness(l),
                                .rho = HV_UNKNOWN};
    if (y->kind == HV_SYNC_PARTIAL) {
        a->group = y->group < 1 || y->group > most ? most : y->group;
    }
    return a;
}

enum hv_status hv__time_stale(struct hv__lowered *l, struct hv_verdict *out, struct hv_err *err)
{
    const struct hv_sync *y = &l->plan->sync;
    struct worker *workers = NULL;
    size_t n = list_workers(l, &workers);
    struct hv_stale_sync *a = open_stale_sync(l, n);
    const double *period_s = periods(l, n);
    bool apart = y->kind == HV_SYNC_PARTIAL || y->kind == HV_SYNC_GOSSIP;
    l->iteration.step_s = hv__step_s(l);
    out->stale_sync = a;
    /* HetPipe (Park et al., ATC'20, §5): s_global = (D+1)(s_local+1) + s_local − 1 */
    int own = a->own_staleness, d = y->staleness;
    l->iteration.staleness = y->kind == HV_SYNC_WSP ? (d + 1) * (own + 1) + own - 1 : own + d;
    if (apart && n <= WORKERS_MOST) {
        return in_groups(l, workers, period_s, a, err);
    }
    if (apart) {
        hv__add_approximated(
            out, l->arena,
            hv_arena_printf(l->arena,
                            "sync.kind: more than %d workers, timed as if all of them "
                            "took part in every average",
                            WORKERS_MOST));
    }
    at_one_pace(l, period_s, a);
    if (l->spans && y->kind != HV_SYNC_NONE) {
        keep_pushes(l);
    }
    return HV_OK;
}
