/*
 * Builds the sketch of a given plan, so that a plan of any origin can be improved. Properties that
 * a sketch cannot express are either rejected with the reason (devices of three kinds in one stage,
 * graphs, modules) or left to the search (shares of a micro-batch, schedules it does not use): the
 * plan itself stays a candidate as it is.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* A plan being read into a sketch. */
struct reading {
    struct hv__search *s;
    const struct hv_plan *plan;
    const int *pool_of; /* by device; -1: in no pool */
    struct hv__sketch *k;
    struct hv_err *err;
};

static enum hv_status refuse(const struct reading *t, const char *why)
{
    return hv_err_set(t->err, HV_ENO, "the search cannot start from this plan: %s", why);
}

/* The row of hv__schedules for the plan's schedule; 0 (1F1B) for one that the search does not
 * use. */
static int schedule_of(const struct hv_plan *p)
{
    size_t chunks =
        p->n_replicas > 0 && p->replicas[0].n_stages > 0 ? p->replicas[0].stages[0].n_ranges : 1;
    for (int i = 0; i < hv__n_schedules; i++) {
        const struct hv__schedule_row *o = &hv__schedules[i];
        if (strcmp(o->name, p->schedule.name) == 0 && (size_t)o->chunks == chunks &&
            o->slices == p->schedule.slices) {
            return i;
        }
    }
    return 0;
}

/* The row of hv__cp_ways for a plan's exchange; 0 for one that the search does not use. */
static int cp_way_of(const struct hv_cp *cp)
{
    for (int i = 0; i < hv__n_cp_ways; i++) {
        const struct hv__cp_row *way = &hv__cp_ways[i];
        if (cp->degree > 1 && way->scheme == cp->scheme && way->backward == cp->backward) {
            return i;
        }
    }
    return 0;
}

/* The data-parallel ranks of the second pool, whose devices begin at `own`. */
static enum hv_status read_mixed_ranks(const struct reading *t, const struct hv_replica *r,
                                       const struct hv_stage *st, size_t own,
                                       struct hv__stage_run *run)
{
    size_t width = (size_t)run->tp * (size_t)run->cp;
    int batch = hv_stage_micro_batch(t->plan, r, st);
    if (r->count > 1 || own % width != 0 || st->ep > 1) {
        return refuse(t, "a group of ranks holds devices of several kinds or nodes");
    }
    run->dp = (int)(own / width);
    run->second_dp = st->dp - run->dp;
    run->second_pool = t->pool_of[st->devices[own]];
    run->second_sequences = batch / st->dp * run->second_dp;
    for (int i = run->dp; st->shares != NULL && i < st->dp; i++) {
        run->second_sequences = (i > run->dp ? run->second_sequences : 0) + st->shares[i];
    }
    if (run->second_sequences < run->second_dp || batch - run->second_sequences < run->dp) {
        return refuse(t, "ranks of a stage have no share of a micro-batch");
    }
    return HV_OK;
}

static enum hv_status read_stage(const struct reading *t, const struct hv_replica *r,
                                 const struct hv_stage *st, struct hv__stage_run *run)
{
    int pool = st->n_devices > 0 ? t->pool_of[st->devices[0]] : -1;
    size_t own = 0;
    while (own < st->n_devices && t->pool_of[st->devices[own]] == pool) {
        own++;
    }
    int second = own < st->n_devices ? t->pool_of[st->devices[own]] : pool;
    for (size_t i = own; i < st->n_devices; i++) {
        if (t->pool_of[st->devices[i]] != second) {
            return refuse(t, "a stage holds devices of more than two kinds or nodes");
        }
    }
    if (pool < 0 || second < 0) {
        return refuse(t, "it uses devices that the search excludes");
    }
    if (st->n_ops > 0 || st->module != NULL || st->n_after > 0 || st->mesh.n > 0) {
        return refuse(t, "its stages do not form a chain of layers");
    }
    if (st->tp.shares != NULL) {
        return refuse(t, "its tensor shards are not equal");
    }
    *run = (struct hv__stage_run){.pool = pool,
                                  .n_stages = 1,
                                  .tp = st->tp.degree,
                                  .cp = st->cp.degree,
                                  .cp_way = cp_way_of(&st->cp),
                                  .dp = st->dp * r->count,
                                  .ep = st->ep,
                                  .recompute = st->recompute};
    for (size_t i = 0; i < st->n_recompute_per; i++) {
        run->recompute |= st->recompute_per[i];
    }
    for (size_t i = 0; i < st->n_offload; i++) {
        run->offload |= HV__HOST(st->offload[i].what);
    }
    return own < st->n_devices ? read_mixed_ranks(t, r, st, own, run) : HV_OK;
}

static bool same_run(const struct hv__stage_run *a, const struct hv__stage_run *b)
{
    return a->pool == b->pool && a->tp == b->tp && a->cp == b->cp && a->cp_way == b->cp_way &&
           a->dp == b->dp && a->ep == b->ep && a->second_dp == b->second_dp &&
           a->second_pool == b->second_pool && a->second_sequences == b->second_sequences &&
           a->recompute == b->recompute && a->offload == b->offload;
}

/* Blocks of every chunk, where the plan has them in the schedule's placement; otherwise the
 * search partitions them anew. */
static void read_blocks(const struct reading *t, const struct hv_replica *r,
                        struct hv__replica_sketch *replica)
{
    const struct hv__schedule_row *o = &hv__schedules[t->k->schedule];
    int depth = (int)r->n_stages;
    for (int i = 0; i < depth * o->chunks && i < HV__CHUNKS; i++) {
        int turn = i / depth, rank = i % depth;
        if (o->folded && turn % 2 == 1) {
            rank = depth - 1 - rank;
        }
        const struct hv_stage *st = &r->stages[rank];
        if ((size_t)turn < st->n_ranges) {
            replica->counts[i] = st->ranges[turn].to2 - st->ranges[turn].from2;
        }
    }
}

static enum hv_status read_replica(const struct reading *t, const struct hv_replica *r,
                                   struct hv__replica_sketch *replica)
{
    *replica = (struct hv__replica_sketch){.micro_batches = r->micro_batches};
    if (r->list != NULL) {
        return refuse(t, "its micro-batches differ in size");
    }
    for (size_t i = 0; i < r->n_stages; i++) {
        const struct hv_stage *st = &r->stages[i];
        struct hv__stage_run run;
        enum hv_status s = read_stage(t, r, st, &run);
        if (s != HV_OK) {
            return s;
        }
        if (st->micro_batch > 0 && st->micro_batch != hv_stage_micro_batch(t->plan, r, st)) {
            return refuse(t, "its stages have micro-batches of different sizes");
        }
        if (st->zero.stage > replica->zero) {
            replica->zero = st->zero.stage;
            replica->shard_group = st->zero.shard_group;
            replica->reduce_late = st->zero.stage >= 2 && st->zero.reduce == HV_REDUCE_END;
            replica->keeps_gathered = !st->zero.reshard;
        }
        replica->micro_batch = r->count * hv_stage_micro_batch(t->plan, r, st);
        if (replica->n_runs > 0 && same_run(&replica->runs[replica->n_runs - 1], &run)) {
            replica->runs[replica->n_runs - 1].n_stages++;
        } else if (replica->n_runs < HV__RUNS) {
            replica->runs[replica->n_runs++] = run;
        } else {
            return refuse(t, "its neighbouring stages differ too often");
        }
    }
    if (replica->n_runs == 0 ||
        hv__depth(replica) * hv__schedules[t->k->schedule].chunks > HV__CHUNKS) {
        return refuse(t, "it has no stages, or too many");
    }
    read_blocks(t, r, replica);
    return HV_OK;
}

static bool same_replica(const struct hv__replica_sketch *a, const struct hv__replica_sketch *b)
{
    if (a->n_runs != b->n_runs || a->zero != b->zero || a->shard_group != b->shard_group ||
        a->reduce_late != b->reduce_late || a->keeps_gathered != b->keeps_gathered) {
        return false;
    }
    for (int i = 0; i < a->n_runs; i++) {
        const struct hv__stage_run *x = &a->runs[i], *y = &b->runs[i];
        if (x->n_stages != y->n_stages || x->pool != y->pool || x->tp != y->tp || x->cp != y->cp ||
            x->cp_way != y->cp_way || x->ep != y->ep || x->recompute != y->recompute ||
            x->dp * b->runs[0].dp != y->dp * a->runs[0].dp || x->second_dp + y->second_dp > 0) {
            return false;
        }
    }
    return true;
}

/* Merges the replica into an equal one, whose stages get more ranks. False: there is none. */
static bool join(struct hv__sketch *k, const struct hv__replica_sketch *more)
{
    for (int i = 0; i < k->n_replicas; i++) {
        struct hv__replica_sketch *r = &k->replicas[i];
        if (!same_replica(r, more) ||
            r->micro_batch / r->runs[0].dp != more->micro_batch / more->runs[0].dp) {
            continue;
        }
        for (int j = 0; j < r->n_runs; j++) {
            r->runs[j].dp += more->runs[j].dp;
        }
        r->micro_batch += more->micro_batch;
        return true;
    }
    return false;
}

enum hv_status hv__sketch_of_plan(struct hv__search *s, const struct hv_plan *p,
                                  struct hv__sketch *out, struct hv_err *err)
{
    const struct hv_cluster *c = hv_cost_cluster(s->k);
    int *pool_of = hv_arena_new(&s->arena, int, c->n_devices + 1);
    struct reading t = {.s = s, .plan = p, .pool_of = pool_of, .k = out, .err = err};
    for (uint32_t d = 0; d < c->n_devices; d++) {
        pool_of[d] = -1;
    }
    for (int i = 0; i < s->n_pools; i++) {
        for (int d = 0; d < s->pools[i].n; d++) {
            pool_of[s->pools[i].ids[d]] = i;
        }
    }
    *out = (struct hv__sketch){.schedule = schedule_of(p)};
    out->bucket_mib = (int)fmin(INT_MAX, round(p->sync.bucket_bytes[0] / HV_MIB));
    if (p->mode != HV_MODE_TRAIN || p->n_jobs > 0 || p->n_replicas == 0) {
        return refuse(&t, "it is not a plan that trains one model");
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        struct hv__replica_sketch replica;
        enum hv_status st = read_replica(&t, &p->replicas[i], &replica);
        if (st != HV_OK) {
            return st;
        }
        if (out->n_replicas == HV__REPLICAS && !join(out, &replica)) {
            return refuse(&t, "it has too many replicas of different shapes");
        }
        if (out->n_replicas < HV__REPLICAS) {
            out->replicas[out->n_replicas++] = replica;
        }
    }
    return HV_OK;
}
