/*
 * From any plan back to a sketch, so that a plan found elsewhere can be improved. What a sketch
 * cannot say is either refused with the reason (devices of three kinds in one stage, graphs,
 * modules) or left to the search (shares of a micro-batch, orders of operations it does not know):
 * the plan itself stays a candidate as it is.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* A plan on its way into a sketch. */
struct taking {
    struct hv__search *s;
    const struct hv_plan *plan;
    const int *pool_of; /* by device; -1: in no pool */
    struct hv__sketch *k;
    struct hv_err *err;
};

static enum hv_status refuse(const struct taking *t, const char *why)
{
    return hv_err_set(t->err, HV_ENO, "the search cannot start from this plan: %s", why);
}

/* The row of hv__orders that the schedule is; 0 (1F1B) for one the search does not know. */
static int order_of(const struct hv_plan *p)
{
    size_t chunks =
        p->n_replicas > 0 && p->replicas[0].n_stages > 0 ? p->replicas[0].stages[0].n_ranges : 1;
    for (int i = 0; i < hv__n_orders; i++) {
        const struct hv__order *o = &hv__orders[i];
        if (strcmp(o->name, p->schedule.name) == 0 && (size_t)o->chunks == chunks &&
            o->slices == p->schedule.slices) {
            return i;
        }
    }
    return 0;
}

/* The data-parallel ranks of the second pool, whose devices begin at `own`. */
static enum hv_status take_guests(const struct taking *t, const struct hv_replica *r,
                                  const struct hv_stage *st, size_t own, struct hv__leg *leg)
{
    size_t width = (size_t)leg->tp * (size_t)leg->cp;
    int batch = hv_stage_micro_batch(t->plan, r, st);
    if (r->count > 1 || own % width != 0 || st->ep > 1) {
        return refuse(t, "a group of ranks holds devices of several kinds or nodes");
    }
    leg->dp = (int)(own / width);
    leg->guests = st->dp - leg->dp;
    leg->guest_pool = t->pool_of[st->devices[own]];
    leg->guest_share = batch / st->dp * leg->guests;
    for (int i = leg->dp; st->shares != NULL && i < st->dp; i++) {
        leg->guest_share = (i > leg->dp ? leg->guest_share : 0) + st->shares[i];
    }
    if (leg->guest_share < leg->guests || batch - leg->guest_share < leg->dp) {
        return refuse(t, "ranks of a stage have no share of a micro-batch");
    }
    return HV_OK;
}

static enum hv_status take_stage(const struct taking *t, const struct hv_replica *r,
                                 const struct hv_stage *st, struct hv__leg *leg)
{
    int pool = st->n_devices > 0 ? t->pool_of[st->devices[0]] : -1;
    size_t own = 0;
    while (own < st->n_devices && t->pool_of[st->devices[own]] == pool) {
        own++;
    }
    int guests = own < st->n_devices ? t->pool_of[st->devices[own]] : pool;
    for (size_t i = own; i < st->n_devices; i++) {
        if (t->pool_of[st->devices[i]] != guests) {
            return refuse(t, "a stage holds devices of more than two kinds or nodes");
        }
    }
    if (pool < 0 || guests < 0) {
        return refuse(t, "it uses devices that the search leaves out");
    }
    if (st->n_ops > 0 || st->module != NULL || st->n_after > 0 || st->mesh.n > 0) {
        return refuse(t, "its stages are no plain chain of layers");
    }
    if (st->tp.shares != NULL) {
        return refuse(t, "its tensor shards are not equal");
    }
    *leg = (struct hv__leg){.pool = pool,
                            .n_stages = 1,
                            .tp = st->tp.degree,
                            .cp = st->cp.degree,
                            .dp = st->dp * r->count,
                            .ep = st->ep,
                            .recompute = st->recompute};
    for (size_t i = 0; i < st->n_recompute_per; i++) {
        leg->recompute |= st->recompute_per[i];
    }
    for (size_t i = 0; i < st->n_offload; i++) {
        leg->offload |= HV__HOST(st->offload[i].what);
    }
    return own < st->n_devices ? take_guests(t, r, st, own, leg) : HV_OK;
}

static bool same_leg(const struct hv__leg *a, const struct hv__leg *b)
{
    return a->pool == b->pool && a->tp == b->tp && a->cp == b->cp && a->dp == b->dp &&
           a->ep == b->ep && a->guests == b->guests && a->guest_pool == b->guest_pool &&
           a->guest_share == b->guest_share && a->recompute == b->recompute &&
           a->offload == b->offload;
}

/* Blocks of every chunk, where the plan has them as the order wants them; the search deals them out
 * anew otherwise. */
static void take_blocks(const struct taking *t, const struct hv_replica *r, struct hv__team *team)
{
    const struct hv__order *o = &hv__orders[t->k->order];
    int depth = (int)r->n_stages;
    for (int i = 0; i < depth * o->chunks && i < HV__CHUNKS; i++) {
        int turn = i / depth, rank = i % depth;
        if (o->folded && turn % 2 == 1) {
            rank = depth - 1 - rank;
        }
        const struct hv_stage *st = &r->stages[rank];
        if ((size_t)turn < st->n_ranges) {
            team->counts[i] = st->ranges[turn].to2 - st->ranges[turn].from2;
        }
    }
}

static enum hv_status take_replica(const struct taking *t, const struct hv_replica *r,
                                   struct hv__team *team)
{
    *team = (struct hv__team){.micro_batches = r->micro_batches};
    if (r->list != NULL) {
        return refuse(t, "its micro-batches differ in size");
    }
    for (size_t i = 0; i < r->n_stages; i++) {
        const struct hv_stage *st = &r->stages[i];
        struct hv__leg leg;
        enum hv_status s = take_stage(t, r, st, &leg);
        if (s != HV_OK) {
            return s;
        }
        if (st->micro_batch > 0 && st->micro_batch != hv_stage_micro_batch(t->plan, r, st)) {
            return refuse(t, "its stages differ in micro-batch");
        }
        if (st->zero.stage > team->zero) {
            team->zero = st->zero.stage;
            team->group = st->zero.shard_group;
            team->late = st->zero.reduce == HV_REDUCE_END;
            team->keeps = !st->zero.reshard;
        }
        team->micro_batch = r->count * hv_stage_micro_batch(t->plan, r, st);
        if (team->n_legs > 0 && same_leg(&team->legs[team->n_legs - 1], &leg)) {
            team->legs[team->n_legs - 1].n_stages++;
        } else if (team->n_legs < HV__LEGS) {
            team->legs[team->n_legs++] = leg;
        } else {
            return refuse(t, "its stages differ too often");
        }
    }
    if (team->n_legs == 0 || hv__depth(team) * hv__orders[t->k->order].chunks > HV__CHUNKS) {
        return refuse(t, "it has no stages, or too many");
    }
    take_blocks(t, r, team);
    return HV_OK;
}

static bool same_team(const struct hv__team *a, const struct hv__team *b)
{
    if (a->n_legs != b->n_legs || a->zero != b->zero || a->group != b->group ||
        a->late != b->late || a->keeps != b->keeps) {
        return false;
    }
    for (int i = 0; i < a->n_legs; i++) {
        const struct hv__leg *x = &a->legs[i], *y = &b->legs[i];
        if (x->n_stages != y->n_stages || x->pool != y->pool || x->tp != y->tp || x->cp != y->cp ||
            x->ep != y->ep || x->recompute != y->recompute ||
            x->dp * b->legs[0].dp != y->dp * a->legs[0].dp || x->guests + y->guests > 0) {
            return false;
        }
    }
    return true;
}

/* Adds the team to one like it, whose stages grow wider. False: there is none. */
static bool join(struct hv__sketch *k, const struct hv__team *more)
{
    for (int i = 0; i < k->n_teams; i++) {
        struct hv__team *t = &k->teams[i];
        if (!same_team(t, more) ||
            t->micro_batch / t->legs[0].dp != more->micro_batch / more->legs[0].dp) {
            continue;
        }
        for (int l = 0; l < t->n_legs; l++) {
            t->legs[l].dp += more->legs[l].dp;
        }
        t->micro_batch += more->micro_batch;
        return true;
    }
    return false;
}

enum hv_status hv__take_plan(struct hv__search *s, const struct hv_plan *p, struct hv__sketch *out,
                             struct hv_err *err)
{
    const struct hv_cluster *c = hv_cost_cluster(s->k);
    int *pool_of = hv_arena_new(&s->arena, int, c->n_devices + 1);
    struct taking t = {.s = s, .plan = p, .pool_of = pool_of, .k = out, .err = err};
    for (uint32_t d = 0; d < c->n_devices; d++) {
        pool_of[d] = -1;
    }
    for (int i = 0; i < s->n_pools; i++) {
        for (int d = 0; d < s->pools[i].n; d++) {
            pool_of[s->pools[i].ids[d]] = i;
        }
    }
    *out = (struct hv__sketch){.order = order_of(p)};
    out->bucket_mib = (int)fmin(INT_MAX, round(p->sync.bucket_bytes[0] / HV_MIB));
    if (p->mode != HV_MODE_TRAIN || p->n_jobs > 0 || p->n_replicas == 0) {
        return refuse(&t, "it is no plan that trains one model");
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        struct hv__team team;
        enum hv_status st = take_replica(&t, &p->replicas[i], &team);
        if (st != HV_OK) {
            return st;
        }
        if (out->n_teams == HV__TEAMS && !join(out, &team)) {
            return refuse(&t, "it has too many replicas of different shapes");
        }
        if (out->n_teams < HV__TEAMS) {
            out->teams[out->n_teams++] = team;
        }
    }
    return HV_OK;
}
