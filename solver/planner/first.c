/*
 * First plans. Estimates of all teams (subsets of pools with their degrees), then of all ways to
 * cut the pools into teams; the most promising are judged, best estimate first.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"
#include "solver/base/vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEAMS_KEPT   96  /* per subset of pools */
#define SETS_JUDGED  600 /* sets of teams judged at most */
#define QUICK_JUDGED 40  /* of the first, simple sets */
#define QUICK_WORK   2e5
#define CUT_JUDGED   48 /* of these, with the pools cut in the same way */
#define STARTS_ALIKE 3
#define VARIANTS     4  /* of a set of several teams */
#define RANK_BATCH   16 /* sequences per rank and micro-batch at most */
#define STARTS_MAX   24 /* hv__first_plans: cap at most */
#define LEG_OPTIONS  64

/* A team by its estimate. */
struct rough {
    struct hv__team team;
    double each_s, fill_s, score;
    double speed; /* while legs are chosen: blocks per second, and stages, so far */
    int depth;
};

/* All teams of one subset of pools that were worth keeping, best score first. */
struct subset {
    struct rough *kept;
    int n;
    double share; /* of the batch, by peak speed */
};

/* A set of disjoint teams. */
struct set {
    struct hv__sketch *sketch;
    double estimate;
    int number, cut; /* cut: which way to cut the pools */
};

struct lister {
    struct hv__search *s;
    struct subset subsets[1 << HV__POOLS];
    double shrink; /* share of every pool that is used */
    struct hv_arena arena;
    HV_VEC(struct set) sets;
    int n_cuts;
};

/* Degrees that a leg may have for a micro-batch, least score first. */
struct leg_options {
    struct hv__leg legs[LEG_OPTIONS];
    double score[LEG_OPTIONS], pace[LEG_OPTIONS]; /* pace: seconds per block over all stages */
    int n, cap;
};

static int devices_of(const struct lister *l, int pool)
{
    const struct hv__pool *p = &l->s->pools[pool];
    int nodes = (int)ceil(l->shrink * p->n / p->node_devices);
    return nodes * p->node_devices;
}

static int largest_divisor(int n, int at_most)
{
    for (int d = at_most < n ? at_most : n; d > 1; d--) {
        if (n % d == 0)
            return d;
    }
    return 1;
}

/* Experts over as many data-parallel ranks of a node as divide both. */
static int experts_over(const struct hv__search *s, int dp)
{
    const struct hv_model *m = hv_cost_model(s->k);
    int experts = 0;
    for (size_t i = 0; m->blocks != NULL && i < m->n_blocks && experts == 0; i++)
        experts = m->blocks[i].experts;
    if (experts <= 1)
        return 1;
    int ep = 1;
    while (2 * ep <= 8 && experts % (2 * ep) == 0 && dp % (2 * ep) == 0)
        ep *= 2;
    return ep;
}

static bool heads_allow(const struct hv__search *s, int tp)
{
    const struct hv_model *m = hv_cost_model(s->k);
    for (size_t i = 0; m->blocks != NULL && i < m->n_blocks; i++) {
        if (m->blocks[i].heads > 0 && m->blocks[i].heads % tp != 0)
            return false;
    }
    return true;
}

static void add_option(struct leg_options *o, const struct hv__leg *leg, double score, double pace)
{
    int at = o->n;
    while (at > 0 && o->score[at - 1] > score)
        at--;
    if (at >= o->cap)
        return;
    int last = o->n < o->cap ? o->n : o->cap - 1;
    memmove(&o->legs[at + 1], &o->legs[at], (size_t)(last - at) * sizeof *o->legs);
    memmove(&o->score[at + 1], &o->score[at], (size_t)(last - at) * sizeof *o->score);
    memmove(&o->pace[at + 1], &o->pace[at], (size_t)(last - at) * sizeof *o->pace);
    o->legs[at] = *leg;
    o->score[at] = score;
    o->pace[at] = pace;
    o->n = last + 1;
}

static bool is_depth(int n)
{
    return n <= 4 || (n % 2 == 0 && n <= 12) || n % 8 == 0;
}

/* Bytes of all blocks on one rank, if this leg held them all: the smaller, the more fits. */
static double leanness(const struct hv__search *s, const struct hv__leg *leg,
                       const struct hv__price *c)
{
    return (hv__state_bytes(s->job, 1, leg, c) + leg->n_stages * c->saved_bytes) / leg->n_stages;
}

static bool is_listed(const struct leg_options *o, const struct hv__leg *leg)
{
    for (int i = 0; i < o->n; i++) {
        const struct hv__leg *x = &o->legs[i];
        if (x->n_stages == leg->n_stages && x->tp == leg->tp && x->ep == leg->ep)
            return true;
    }
    return false;
}

/* One shape of a leg, with experts spread and whole. */
static void add_legs(struct lister *l, struct hv__leg leg, int batch, struct leg_options *fast,
                     struct leg_options *lean)
{
    int most = experts_over(l->s, leg.dp);
    for (int i = 0; i < (most > 1 ? 2 : 1); i++) {
        leg.ep = i == 0 ? most : 1;
        const struct hv__price *c = hv__price_of(l->s, leg.pool, &leg, batch / leg.dp);
        if (!c->known)
            continue;
        double pace = c->block_s / leg.n_stages;
        add_option(fast, &leg, pace, pace);
        add_option(lean, &leg, leanness(l->s, &leg, c), pace);
    }
}

/* Stage counts and tensor degrees of a pool for micro-batches of `batch` sequences: `cap` of them,
 * the fastest and some that need little memory. */
static void list_legs(struct lister *l, int pool, int batch, unsigned recompute, int cap,
                      struct leg_options *out)
{
    const struct hv__pool *p = &l->s->pools[pool];
    int n = devices_of(l, pool);
    struct leg_options lean = {.cap = (cap + 2) / 3};
    *out = (struct leg_options){.cap = cap};
    for (int tp = 1; tp <= p->per_node && tp <= 16; tp *= 2) {
        if (p->per_node % tp != 0 || !heads_allow(l->s, tp))
            continue;
        for (int stages = 1; stages * tp <= n && stages <= l->s->n_blocks; stages++) {
            int dp = largest_divisor(batch, n / (stages * tp));
            if (!is_depth(stages) || batch / dp > RANK_BATCH || 4 * stages * tp * dp < 3 * n)
                continue;
            struct hv__leg leg = {
                .pool = pool, .n_stages = stages, .tp = tp, .dp = dp, .recompute = recompute};
            add_legs(l, leg, batch, out, &lean);
        }
    }
    int more = lean.n;
    for (int i = 0; i < more; i++) {
        if (is_listed(out, &lean.legs[i]))
            continue;
        int at = out->n < cap ? out->n++ : cap - 1 - i;
        if (at > 0) {
            out->legs[at] = lean.legs[i];
            out->pace[at] = lean.pace[i];
        }
    }
}

/* Blocks that one stage of the leg can hold `behind` stages before the end. */
static double room_of(struct hv__search *s, const struct hv__team *t, const struct hv__leg *leg,
                      double behind)
{
    const struct hv__price *c = hv__price_of(s, leg->pool, leg, t->micro_batch / leg->dp);
    double state = hv__state_bytes(s->job, t->zero, leg, c);
    double room = 0.95 * s->pools[leg->pool].limit_bytes - 1.5 * HV_GIB - c->peak_bytes;
    return room / (state + behind * c->saved_bytes);
}

/* Seconds to reduce the gradients of a leg's stages, when nothing hides it. */
static double sync_of(struct hv__search *s, const struct hv__team *t, const struct hv__leg *leg,
                      double blocks)
{
    const struct hv__pool *p = &s->pools[leg->pool];
    const struct hv__price *c = hv__price_of(s, leg->pool, leg, t->micro_batch / leg->dp);
    if (leg->dp == 1)
        return 0;
    double bytes = 2 * blocks * c->parameters * hv_job_grad_bytes(s->job);
    bool inside = leg->tp * leg->dp <= p->per_node;
    double rate = inside ? hv_or(p->kind->link_bytes_per_s, 1e10) : p->flow_bytes_per_s;
    return bytes / rate;
}

/* Adds what it takes to pass from pool to pool: twice in filling, and, as 1F1B keeps only so many
 * micro-batches ahead as there are stages to come, a wait per micro-batch. */
static void add_hops(struct hv__search *s, struct rough *r)
{
    const struct hv__team *t = &r->team;
    int behind = hv__depth(t);
    double stall = 0, sum = 0;
    for (int i = 1; i < t->n_legs; i++) {
        const struct hv__leg *a = &t->legs[i - 1], *b = &t->legs[i];
        const struct hv__price *c = hv__price_of(s, a->pool, a, t->micro_batch / a->dp);
        double hop = hv_cost_hop(hv_cost_cluster(s->k), s->pools[a->pool].ids,
                                 (size_t)(a->tp * a->dp), s->pools[b->pool].ids,
                                 (size_t)(b->tp * b->dp), c->table.output_bytes * a->dp, NULL);
        behind -= a->n_stages;
        stall += 2 * hop / (behind + 1);
        sum += 2 * hop;
    }
    r->each_s += 0.5 * stall;
    r->fill_s += sum;
}

/* Balanced time of a stage when blocks could be cut at will, memory kept: legs that are full are
 * taken out one by one. False when the blocks do not fit. */
static bool estimate(struct hv__search *s, struct rough *r)
{
    struct hv__team *t = &r->team;
    double room[HV__POOLS], pace[HV__POOLS], left = s->n_blocks, ends = 0;
    int depth = hv__depth(t), behind = depth;
    bool full[HV__POOLS] = {false};
    for (int i = 0; i < t->n_legs; i++) {
        struct hv__leg *leg = &t->legs[i];
        const struct hv__price *c = hv__price_of(s, leg->pool, leg, t->micro_batch / leg->dp);
        double flight = behind - (leg->n_stages - 1) / 2.0;
        room[i] = leg->n_stages * floor(room_of(s, t, leg, flight));
        pace[i] = c->block_s / leg->n_stages;
        ends += (c->ends_s[0] + c->ends_s[1]) / t->n_legs;
        behind -= leg->n_stages;
    }
    double each = 0, sync = 0;
    for (int round = 0; round <= t->n_legs; round++) {
        double speed = 0;
        for (int i = 0; i < t->n_legs; i++)
            speed += full[i] ? 0 : 1 / pace[i];
        if (left > 1e-9 && !(speed > 0))
            return false;
        each = speed > 0 ? left / speed : each;
        bool again = false;
        for (int i = 0; i < t->n_legs; i++) {
            if (!full[i] && each / pace[i] > room[i]) {
                full[i] = again = true;
                left -= fmax(0, room[i]);
            }
        }
        if (!again)
            break;
    }
    for (int i = 0; i < t->n_legs; i++)
        sync = fmax(sync, sync_of(s, t, &t->legs[i], s->n_blocks / (double)depth));
    each += ends / depth;
    double whole = ceil((double)s->n_blocks / depth) / ((double)s->n_blocks / depth);
    r->each_s = t->n_legs == 1 ? each * whole : each;
    r->fill_s = r->each_s * (depth - 1) + 0.5 * sync;
    return isfinite(r->each_s);
}

static void keep(struct lister *l, struct subset *sub, const struct rough *r)
{
    if (sub->kept == NULL)
        sub->kept = hv_arena_new(&l->arena, struct rough, TEAMS_KEPT);
    int at = sub->n;
    while (at > 0 && sub->kept[at - 1].score > r->score)
        at--;
    if (at >= TEAMS_KEPT)
        return;
    int last = sub->n < TEAMS_KEPT ? sub->n : TEAMS_KEPT - 1;
    memmove(&sub->kept[at + 1], &sub->kept[at], (size_t)(last - at) * sizeof *sub->kept);
    sub->kept[at] = *r;
    sub->n = last + 1;
}

static void score(const struct lister *l, const struct subset *sub, struct rough *r)
{
    double total = (double)l->s->job->global_batch;
    double m = fmax(1, sub->share * total / r->team.micro_batch);
    r->score = (m * r->each_s + r->fill_s) / (m * r->team.micro_batch);
}

/* Would it be kept? */
static bool beats(const struct lister *l, const struct subset *sub, struct rough *r)
{
    score(l, sub, r);
    return sub->n < TEAMS_KEPT || r->score < sub->kept[sub->n - 1].score;
}

static void rate(struct lister *l, struct subset *sub, struct rough *r)
{
    if (!estimate(l->s, r) || !beats(l, sub, r))
        return;
    add_hops(l->s, r);
    score(l, sub, r);
    keep(l, sub, r);
}

/* Could any team of these legs still be kept? `speed` is in blocks per second, memory and
 * communication left out. */
static bool may_beat(const struct lister *l, const struct subset *sub, const struct rough *r,
                     double speed, int depth)
{
    double m = fmax(1, sub->share * (double)l->s->job->global_batch / r->team.micro_batch);
    double each = l->s->n_blocks / speed;
    double score = each * (m + depth - 1) / (m * r->team.micro_batch);
    return sub->n < TEAMS_KEPT || score < sub->kept[sub->n - 1].score;
}

/* All products of the legs' options. */
static void cross(struct lister *l, struct subset *sub, const struct leg_options *options,
                  struct rough *r, int leg)
{
    if (leg == r->team.n_legs) {
        rate(l, sub, r);
        return;
    }
    double speed = r->speed;
    int depth = r->depth;
    for (int i = 0; i < options[leg].n; i++) {
        r->team.legs[leg] = options[leg].legs[i];
        r->speed = speed + 1 / options[leg].pace[i];
        r->depth = depth + r->team.legs[leg].n_stages;
        if (leg + 1 < r->team.n_legs || may_beat(l, sub, r, r->speed, r->depth))
            cross(l, sub, options, r, leg + 1);
    }
    r->speed = speed;
    r->depth = depth;
}

/* Pools in the order of their stages: most memory first, where most is in flight. */
static int order_pools(const struct hv__search *s, unsigned mask, int *pools)
{
    int n = 0;
    for (int i = 0; i < s->n_pools; i++) {
        if (!(mask >> i & 1))
            continue;
        int at = n++;
        while (at > 0 && s->pools[pools[at - 1]].limit_bytes < s->pools[i].limit_bytes) {
            pools[at] = pools[at - 1];
            at--;
        }
        pools[at] = i;
    }
    return n;
}

static bool is_batch(int64_t b)
{
    while (b % 2 == 0)
        b /= 2;
    return b == 1 || b == 3 || b == 5 || b == 7 || b == 9;
}

static void list_teams(struct lister *l, unsigned mask)
{
    static const unsigned recomputes[] = {HV_RC_NONE, HV_RC_CORE, HV_RC_FULL};
    static const int caps[] = {0, 48, 16, 8, 5, 3, 2};
    struct subset *sub = &l->subsets[mask];
    int pools[HV__POOLS];
    int n = order_pools(l->s, mask, pools);
    struct leg_options options[HV__POOLS];
    int64_t most = l->s->job->global_batch;
    most = most < 4096 ? most : 4096;
    for (int64_t b = 1; b <= most && !hv__over(l->s); b++) {
        if (!is_batch(b))
            continue;
        for (size_t rc = 0; rc < HV_COUNT(recomputes); rc++) {
            bool some = true;
            for (int i = 0; i < n && some; i++) {
                list_legs(l, pools[i], (int)b, recomputes[rc], caps[n], &options[i]);
                some = options[i].n > 0;
            }
            for (int zero = 1; some && zero <= 3; zero += 2) {
                struct rough r = {.team = {.n_legs = n, .zero = zero, .micro_batch = (int)b}};
                cross(l, sub, options, &r, 0);
            }
        }
    }
}

static void share_subsets(struct lister *l)
{
    double speed[HV__POOLS] = {0}, all = 0;
    for (int i = 0; i < l->s->n_pools; i++) {
        const struct hv__pool *p = &l->s->pools[i];
        speed[i] = devices_of(l, i) *
                   hv_or(hv_device_peak_flops_per_s(p->kind, l->s->job->precision), 1e12);
        all += speed[i];
    }
    for (unsigned mask = 1; mask < 1U << l->s->n_pools; mask++) {
        for (int i = 0; i < l->s->n_pools; i++)
            l->subsets[mask].share += mask >> i & 1 ? speed[i] / all : 0;
    }
}

static double price_of(const struct hv__search *s, const struct hv__sketch *k)
{
    double usd = 0;
    for (int i = 0; i < k->n_teams; i++) {
        for (int j = 0; j < k->teams[i].n_legs; j++) {
            const struct hv__leg *leg = &k->teams[i].legs[j];
            const struct hv__pool *p = &s->pools[leg->pool];
            usd += ceil((double)hv__leg_devices(leg) / p->node_devices) * p->node_usd_h;
        }
    }
    return usd;
}

static void add_set(struct lister *l, const struct hv__sketch *k)
{
    struct hv__search *s = l->s;
    struct hv__sketch dealt = *k;
    const struct hv_objective *o = &s->job->objective;
    double usd = price_of(s, k), worst = 0;
    if (hv_known(o->max_usd_per_h) && usd > o->max_usd_per_h)
        return;
    if (!hv__deal(s, &dealt))
        return;
    for (int i = 0; i < k->n_teams; i++) {
        double each, fill;
        hv__team_times(s, &dealt.teams[i], &each, &fill);
        worst = fmax(worst, each * (double)dealt.teams[i].micro_batches + fill);
    }
    if (o->minimize == HV_MIN_COST && hv_known(usd))
        worst *= usd;
    struct set x = {.estimate = worst, .number = (int)l->sets.n, .cut = l->n_cuts};
    x.sketch = hv_arena_copy(&l->arena, &dealt, 1, sizeof dealt);
    hv_vec_push(&l->sets, x);
}

/* The team of the subset that does its share of `part` of the batch soonest; `nth`: the next best
 * after so many. NULL when there are fewer. */
static const struct rough *fitting(const struct lister *l, unsigned mask, double part, int nth)
{
    const struct subset *sub = &l->subsets[mask];
    const struct rough *best = NULL;
    bool passed[TEAMS_KEPT] = {false};
    double n = part * (double)l->s->job->global_batch;
    for (int round = 0; round <= nth; round++) {
        double least = HUGE_VAL;
        best = NULL;
        for (int i = 0; i < sub->n; i++) {
            const struct rough *r = &sub->kept[i];
            double m = fmax(1, n / r->team.micro_batch), t = m * r->each_s + r->fill_s;
            if (!passed[i] && t < least) {
                least = t;
                best = r;
            }
        }
        if (best == NULL)
            return NULL;
        passed[best - sub->kept] = true;
    }
    return best;
}

/* Sets of several teams: each with its best, its next best, … */
static void add_teams(struct lister *l, const unsigned *masks, int n)
{
    double used = 0;
    for (int t = 0; t < n; t++)
        used += l->subsets[masks[t]].share;
    for (int nth = 0; nth < VARIANTS; nth++) {
        struct hv__sketch k = {.n_teams = n};
        bool some = true;
        for (int t = 0; t < n && some; t++) {
            const struct rough *r = fitting(l, masks[t], l->subsets[masks[t]].share / used, nth);
            some = r != NULL;
            if (some)
                k.teams[t] = r->team;
        }
        if (some)
            add_set(l, &k);
    }
}

/* Sets of one team. */
static void add_alone(struct lister *l, unsigned mask)
{
    for (int t = 0; t < l->subsets[mask].n; t++) {
        struct hv__sketch k = {.n_teams = 1};
        k.teams[0] = l->subsets[mask].kept[t].team;
        add_set(l, &k);
    }
}

/* Deals pool number `i` and those after it to teams of its own, to teams begun, or to none. */
static void cut_pools(struct lister *l, unsigned *masks, int n, int i)
{
    if (i < l->s->n_pools) {
        for (int t = 0; t < n; t++) {
            masks[t] |= 1U << i;
            cut_pools(l, masks, n, i + 1);
            masks[t] &= ~(1U << i);
        }
        masks[n] = 1U << i;
        cut_pools(l, masks, n + 1, i + 1);
        cut_pools(l, masks, n, i + 1);
        return;
    }
    l->n_cuts++;
    if (n > 1)
        add_teams(l, masks, n);
    else if (n == 1)
        add_alone(l, masks[0]);
}

static int by_estimate(const void *a, const void *b)
{
    const struct set *x = a, *y = b;
    if (x->estimate != y->estimate)
        return x->estimate < y->estimate ? -1 : 1;
    return x->number - y->number;
}

/* How alike are two plans? 0: other teams of pools; 1: the same; 2: also cut into as many stages
 * and micro-batches of the same size. */
static int likeness(const struct hv__sketch *a, const struct hv__sketch *b)
{
    int like = 2;
    if (a->n_teams != b->n_teams)
        return 0;
    for (int i = 0; i < a->n_teams; i++) {
        const struct hv__team *x = &a->teams[i], *y = &b->teams[i];
        if (x->n_legs != y->n_legs)
            return 0;
        for (int j = 0; j < x->n_legs; j++) {
            if (x->legs[j].pool != y->legs[j].pool)
                return 0;
        }
        if (x->micro_batch != y->micro_batch || hv__depth(x) != hv__depth(y))
            like = 1;
    }
    return like;
}

/* Good plans of different sorts, best first. */
struct starts {
    struct hv__sketch *items;
    double value[STARTS_MAX];
    int n, cap;
};

/* Where a plan of this value may stand, so that no sort of plan takes all places; -1: nowhere. */
static int place_of(const struct starts *st, const struct hv__sketch *k)
{
    int alike = 0, worst = -1;
    for (int i = 0; i < st->n; i++) {
        int like = likeness(&st->items[i], k);
        if (like == 2)
            return i;
        if (like == 1) {
            alike++;
            worst = i;
        }
    }
    if (alike >= STARTS_ALIKE)
        return worst;
    return st->n < st->cap ? st->n : st->n - 1;
}

static void keep_start(struct starts *st, const struct hv__sketch *k, double value)
{
    int at = place_of(st, k);
    if (at < st->n && st->value[at] <= value)
        return;
    if (at == st->n)
        st->n++;
    for (; at > 0 && st->value[at - 1] > value; at--) {
        st->items[at] = st->items[at - 1];
        st->value[at] = st->value[at - 1];
    }
    st->items[at] = *k;
    st->value[at] = value;
}

/* The legs of a team in the opposite order. */
static void turn_round(struct hv__team *t)
{
    for (int i = 0, k = t->n_legs - 1; i < k; i++, k--) {
        struct hv__leg l = t->legs[i];
        t->legs[i] = t->legs[k];
        t->legs[k] = l;
    }
}

static void judge_sets(struct lister *l, struct starts *st, int at_most)
{
    struct hv__search *s = l->s;
    if (l->sets.n > 0)
        qsort(l->sets.items, l->sets.n, sizeof *l->sets.items, by_estimate);
    int judged = 0, *of_cut = hv_arena_new(&l->arena, int, (size_t)l->n_cuts + 1);
    for (size_t i = 0; i < l->sets.n && judged < at_most && !hv__over(s); i++) {
        struct hv__sketch k = *l->sets.items[i].sketch;
        int *alike = &of_cut[l->sets.items[i].cut];
        if (*alike >= CUT_JUDGED)
            continue;
        double value = hv__refit(s, &k);
        bool counts = value < HUGE_VAL || i % 4 == 3;
        judged += counts;
        *alike += counts;
        if (value < HUGE_VAL)
            keep_start(st, &k, value);
        if (k.n_teams == 1 && k.teams[0].n_legs > 1 && *alike <= CUT_JUDGED / 4) {
            turn_round(&k.teams[0]);
            value = hv__refit(s, &k);
            if (value < HUGE_VAL)
                keep_start(st, &k, value);
        }
    }
}

/* A good plan soon: every pool alone, all in one team, each a team; the best of these improved for
 * a short while. */
static void quick_plans(struct lister *l, struct starts *st)
{
    struct hv__search *s = l->s;
    unsigned all = (1U << s->n_pools) - 1, masks[HV__POOLS];
    for (int i = 0; i <= s->n_pools && !hv__over(s); i++) {
        unsigned mask = i < s->n_pools ? 1U << i : all;
        l->n_cuts++;
        if (i < s->n_pools || s->n_pools > 1)
            list_teams(l, mask);
        add_alone(l, mask);
        if (i < s->n_pools)
            masks[i] = mask;
    }
    l->n_cuts++;
    if (s->n_pools > 1)
        add_teams(l, masks, s->n_pools);
    judge_sets(l, st, QUICK_JUDGED);
    l->sets.n = 0;
    if (st->n > 0 && !hv__over(s)) {
        double limit = s->work_limit;
        struct hv__sketch k = st->items[0];
        s->work_limit = fmin(limit, s->work + QUICK_WORK);
        hv__improve(s, &k, st->value[0]);
        s->work_limit = limit;
    }
}

int hv__first_plans(struct hv__search *s, struct hv__sketch *starts, int cap)
{
    const struct hv_objective *o = &s->job->objective;
    struct starts st = {.items = starts, .cap = cap};
    bool dear = o->minimize == HV_MIN_COST || hv_known(o->max_usd_per_h);
    for (double shrink = 1; shrink >= 1.0 / 64 && !hv__over(s); shrink /= 2) {
        struct lister *l = hv_xcalloc(1, sizeof *l);
        unsigned masks[HV__POOLS + 1] = {0};
        l->s = s;
        l->shrink = shrink;
        share_subsets(l);
        if (shrink >= 1)
            quick_plans(l, &st);
        for (unsigned mask = 1; mask < 1U << s->n_pools; mask++) {
            if (l->subsets[mask].n == 0)
                list_teams(l, mask);
        }
        cut_pools(l, masks, 0, 0);
        judge_sets(l, &st, SETS_JUDGED);
        hv_vec_free(&l->sets);
        hv_arena_free(&l->arena);
        free(l);
        if (!dear)
            break;
    }
    return st.n;
}
