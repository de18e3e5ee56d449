/*
 * First plans. All ways to cut the pools into teams, by the estimates of teams.c; the most
 * promising are judged, best estimate first, and the best of every sort are kept as starts.
 */
#include "solver/planner/replicas_int.h"

#include "solver/base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SETS_JUDGED  600   /* sets of teams judged at most */
#define SETS_SHARE   0.3   /* of the work left, for their judgement */
#define CUT_JUDGED   48    /* of these, with the pools cut in the same way */
#define FEW_JUDGED   3000  /* sets of teams of few devices */
#define QUICK_JUDGED 24    /* of the first, simple sets */
#define QUICK_ALIKE  4     /* of these, with the pools cut in the same way */
#define QUICK_WORK   2.5e5 /* operations of judgements for the first improvement */
#define BEST_WORK    8e5   /* of those that improve the best of them after that */
#define QUICK_SORTS  3     /* plans that are improved first */
#define QUICK_TRIES  60    /* and of these at least */
#define SOON_WORK    3e4   /* operations of judgements of one set of pools */
#define PARTS_WORK   1e6   /* of those of parts of all pools */
#define POLISHED     1.1   /* times the best so far: a plan of few devices worth a second look */
#define START_WORSE  2.5   /* times the best so far: no start */
#define LEAST_SHARE  (1.0 / 64) /* of a pool that is used alone */
#define LATE         1.2        /* estimates over the deadline that may still keep it */
#define VARIANTS     4          /* of a set of several teams */
#define STARTS_ALIKE 3          /* with the pools cut in the same way, where there are several */
#define STARTS_ONE   12         /* the same with one pool, or few devices */

static void share_subsets(struct hv__lister *l)
{
    double speed[HV__POOLS] = {0}, all = 0;
    for (int i = 0; i < l->s->n_pools; i++) {
        const struct hv__pool *p = &l->s->pools[i];
        speed[i] = hv__pool_devices(l, i) *
                   hv_or(hv_device_peak_flops_per_s(p->kind, l->s->job->precision), 1e12);
        all += speed[i];
    }
    for (unsigned mask = 1; mask < 1U << l->s->n_pools; mask++) {
        for (int i = 0; i < l->s->n_pools; i++) {
            l->subsets[mask].share += mask >> i & 1 ? speed[i] / all : 0;
        }
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

static double power_of(const struct hv__search *s, const struct hv__sketch *k)
{
    double w = 0;
    for (int i = 0; i < k->n_teams; i++) {
        for (int j = 0; j < k->teams[i].n_legs; j++) {
            const struct hv__leg *leg = &k->teams[i].legs[j];
            w += hv__leg_devices(leg) * s->pools[leg->pool].kind->tdp_w;
        }
    }
    return w;
}

/* What the job minimises of sets of teams that take `t_s`: behind all others where it is not known.
 */
static double figure_of(const struct hv__search *s, const struct hv__sketch *k, double t_s)
{
    enum hv_minimize aim = s->job->objective.minimize;
    double per_s = aim == HV_MIN_COST     ? price_of(s, k) / 3600
                   : aim == HV_MIN_ENERGY ? power_of(s, k)
                                          : 1;
    return t_s * hv_or(per_s, HV_EVAL_NO_FIGURE);
}

/* Lists a set of teams; deals the batch out to them. A sketch has room for many teams: here only
 * those that there are get copied. */
static void add_set(struct hv__lister *l, struct hv__sketch *k)
{
    struct hv__search *s = l->s;
    const struct hv_objective *o = &s->job->objective;
    double usd = price_of(s, k), worst = 0;
    if (!s->beyond && hv_known(o->max_usd_per_h) && usd > o->max_usd_per_h) {
        return;
    }
    if (!hv__deal(s, k, true)) {
        return;
    }
    for (int i = 0; i < k->n_teams; i++) {
        const struct hv__team *t = &k->teams[i];
        double each, fill;
        hv__team_times(s, t, k->order, &each, &fill);
        worst = fmax(worst, each * (double)(t->micro_batches + (t->more > 0)) + fill);
    }
    worst += hv__shared_sync_s(s, k);
    if (!s->beyond && hv_known(o->deadline_s) && worst > LATE * o->deadline_s) {
        return;
    }
    struct hv__set x = {
        .n = k->n_teams,
        .teams = hv_arena_copy(&l->arena, k->teams, (size_t)k->n_teams, sizeof *k->teams),
        .estimate = figure_of(s, k, worst),
        .number = (int)l->sets.n,
        .cut = l->n_cuts};
    hv_vec_push(&l->sets, x);
}

/* The team of the subset that does its share of `part` of the batch soonest; `nth`: the next best
 * after so many. NULL when there are fewer. */
static const struct hv__rough *fitting(const struct hv__lister *l, const struct hv__subset *sub,
                                       double part, int nth)
{
    const struct hv__rough *best = NULL;
    bool passed[HV__TEAMS_KEPT] = {false};
    double n = part * (double)l->s->job->global_batch;
    for (int round = 0; round <= nth; round++) {
        double least = HUGE_VAL;
        best = NULL;
        for (int i = 0; i < sub->n; i++) {
            const struct hv__rough *r = &sub->kept[i];
            double m = fmax(1, n / r->team.micro_batch), t = m * r->each_s + r->fill_s;
            if (!passed[i] && t < least) {
                least = t;
                best = r;
            }
        }
        if (best == NULL) {
            return NULL;
        }
        passed[best - sub->kept] = true;
    }
    return best;
}

void hv__add_teams(struct hv__lister *l, const struct hv__subset *const *subs, int n)
{
    double used = 0;
    for (int t = 0; t < n; t++) {
        used += subs[t]->share;
    }
    struct hv__sketch k = {.n_teams = n};
    for (int nth = 0; nth < VARIANTS; nth++) {
        bool some = true;
        for (int t = 0; t < n && some; t++) {
            const struct hv__rough *r = fitting(l, subs[t], subs[t]->share / used, nth);
            some = r != NULL;
            if (some) {
                k.teams[t] = r->team;
            }
        }
        if (some) {
            add_set(l, &k);
        }
    }
}

void hv__add_alone(struct hv__lister *l, const struct hv__subset *sub)
{
    struct hv__sketch k = {.n_teams = 1};
    for (int t = 0; t < sub->n; t++) {
        k.teams[0] = sub->kept[t].team;
        add_set(l, &k);
    }
}

/* Deals pool number `i` and those after it to teams of its own, to teams begun, or to none. */
static void cut_pools(struct hv__lister *l, unsigned *masks, int n, int i)
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
    const struct hv__subset *subs[HV__POOLS];
    for (int t = 0; t < n; t++) {
        subs[t] = &l->subsets[masks[t]];
    }
    l->n_cuts++;
    if (n > 1) {
        hv__add_teams(l, subs, n);
    } else if (n == 1) {
        hv__add_alone(l, subs[0]);
    }
}

static int by_estimate(const void *a, const void *b)
{
    const struct hv__set *x = a, *y = b;
    if (x->estimate != y->estimate) {
        return x->estimate < y->estimate ? -1 : 1;
    }
    return x->number - y->number;
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

/* How many sets are judged, how many of them with the pools cut in the same way, and operations of
 * one judgement. */
struct limits {
    int sets, alike;
    double work;
    bool all_orders; /* also with the orders that fill the start of a pipeline best */
};

/* Judges a set of teams, the batch and the blocks dealt out anew; kept when it is good. */
static double try_set(struct hv__search *s, struct hv__starts *st, struct hv__sketch *k, int order)
{
    k->order = order;
    double value = hv__refit(s, k, START_WORSE * s->best_value);
    if (hv__are_few(s) && value < POLISHED * s->best_value) {
        value = hv__polish(s, k, value);
    }
    if (value < HUGE_VAL) {
        hv__keep_start(st, k, value);
    }
    return value;
}

static void try_orders(struct hv__search *s, struct hv__starts *st, const struct hv__sketch *k)
{
    int depth = 1;
    for (int t = 0; t < k->n_teams; t++) {
        depth = hv__depth(&k->teams[t]) > depth ? hv__depth(&k->teams[t]) : depth;
    }
    for (int i = 1; i < hv__n_orders && depth > 1; i++) {
        struct hv__sketch other = *k;
        if (hv__orders[i].chunks == 1 && hv__orders[i].slices == 1) {
            (void)try_set(s, st, &other, i);
        }
    }
}

/* One team without copies of anything, listed once more with sharded weights: the plan before it.
 */
static bool shards_nothing(const struct hv__set *x)
{
    bool copies = x->n > 1 || x->teams[0].zero < 3;
    for (int i = 0; i < x->teams[0].n_legs; i++) {
        copies = copies || hv__leg_holders(&x->teams[0].legs[i]) > 1;
    }
    return !copies;
}

static void judge_sets(struct hv__lister *l, struct hv__starts *st, const struct limits *most)
{
    struct hv__search *s = l->s;
    if (l->sets.n > 0) {
        qsort(l->sets.items, l->sets.n, sizeof *l->sets.items, by_estimate);
    }
    int judged = 0, *of_cut = hv_arena_new(&l->arena, int, (size_t)l->n_cuts + 1);
    for (size_t i = 0; i < l->sets.n && judged < most->sets && !hv__over(s); i++) {
        const struct hv__set *x = &l->sets.items[i];
        int *alike = &of_cut[x->cut];
        if (*alike >= most->alike) {
            continue;
        }
        struct hv__sketch k = {.n_teams = x->n};
        memcpy(k.teams, x->teams, (size_t)x->n * sizeof *k.teams);
        if (hv__work_of(s, &k) > most->work) {
            continue;
        }
        bool known = shards_nothing(x);
        bool counts = known || try_set(s, st, &k, 0) < HUGE_VAL || i % 4 == 3;
        judged += counts;
        *alike += counts;
        if (known) {
            continue;
        }
        if (most->all_orders) {
            try_orders(s, st, &k);
        }
        if (k.n_teams == 1 && k.teams[0].n_legs > 1 && *alike <= most->alike / 4) {
            turn_round(&k.teams[0]);
            (void)try_set(s, st, &k, 0);
        }
    }
}

/* Adds up the pools, fastest first: masks[i] holds the i + 2 fastest. */
static int fastest_pools(const struct hv__lister *l, unsigned *masks)
{
    int n = 0, left = l->s->n_pools;
    unsigned mask = 0;
    for (; left > 0; left--) {
        int best = -1;
        for (int i = 0; i < l->s->n_pools; i++) {
            bool taken = mask >> i & 1;
            if (!taken && (best < 0 || l->subsets[1U << i].share > l->subsets[1U << best].share)) {
                best = i;
            }
        }
        mask |= 1U << best;
        if (left < l->s->n_pools) {
            masks[n++] = mask;
        }
    }
    return n;
}

/* Judges the sets listed, best estimate first, within `work` operations; forgets them. */
static void judge_soon(struct hv__lister *l, struct hv__starts *st, const struct limits *most,
                       double work)
{
    double limit = l->s->work_limit;
    l->s->work_limit = fmin(limit, l->s->work + work);
    judge_sets(l, st, most);
    l->s->work_limit = limit;
    l->sets.n = 0;
}

/* Pools by what all their devices do, fastest first. */
static void by_share(const struct hv__lister *l, int *pools)
{
    for (int i = 0; i < l->s->n_pools; i++) {
        int at = i;
        for (; at > 0 && l->subsets[1U << pools[at - 1]].share < l->subsets[1U << i].share; at--) {
            pools[at] = pools[at - 1];
        }
        pools[at] = i;
    }
}

/* A good plan soon: every pool alone, the fastest together, and all ways to have several of these;
 * the best of them improved for a short while. */
static void quick_plans(struct hv__lister *l, struct hv__starts *st)
{
    struct hv__search *s = l->s;
    unsigned masks[HV__POOLS + 1] = {0};
    const struct limits few = {QUICK_ALIKE, QUICK_ALIKE, QUICK_WORK / 4, false};
    int pools[HV__POOLS], n = fastest_pools(l, masks);
    by_share(l, pools);
    for (int i = 0; i < s->n_pools && !hv__over(s); i++) {
        hv__list_teams(l, 1U << pools[i]);
        hv__add_alone(l, &l->subsets[1U << pools[i]]);
        judge_soon(l, st, &few, SOON_WORK);
    }
    for (int i = 0; i < n && !hv__over(s); i++) {
        hv__list_teams(l, masks[i]);
        hv__add_alone(l, &l->subsets[masks[i]]);
        judge_soon(l, st, &few, SOON_WORK);
    }
    memset(masks, 0, sizeof masks);
    cut_pools(l, masks, 0, 0);
    judge_soon(l, st, &(struct limits){QUICK_JUDGED, QUICK_ALIKE, QUICK_WORK / 4, false},
               QUICK_WORK);
}

/* The best start of every sort, each improved for a short while; then what is best for longer. */
static void improve_soon(struct hv__search *s, const struct hv__starts *st)
{
    double limit = s->work_limit;
    int n = 0;
    for (int i = 0; i < st->n && n < QUICK_SORTS && !hv__over(s); i++) {
        struct hv__sketch k = st->items[i];
        if (!hv__is_new_sort(st, i)) {
            continue;
        }
        double work = fmax(QUICK_WORK, QUICK_TRIES * hv__work_of(s, &k));
        s->work_limit = s->work + fmin(work, SETS_SHARE / 4 * (limit - s->work));
        (void)hv__improve(s, &k, st->value[i], true);
        s->work_limit = limit;
        n++;
    }
    struct hv__sketch k = s->best;
    s->work_limit = s->work + fmin(BEST_WORK, SETS_SHARE / 4 * (limit - s->work));
    if (s->best_value < HUGE_VAL) {
        (void)hv__improve(s, &k, s->best_value, true);
    }
    s->work_limit = limit;
}

static struct hv__lister *open_lister(struct hv__search *s, double shrink, bool quick)
{
    struct hv__lister *l = hv_xcalloc(1, sizeof *l);
    l->s = s;
    l->shrink = shrink;
    l->quick = quick;
    share_subsets(l);
    return l;
}

static void close_lister(struct hv__lister *l)
{
    hv_vec_free(&l->sets);
    hv_arena_free(&l->arena);
    free(l);
}

/* Every set of teams on a part of every pool. */
static void all_plans(struct hv__search *s, struct hv__starts *st, double shrink)
{
    struct hv__lister *l = open_lister(s, shrink, false);
    unsigned masks[HV__POOLS + 1] = {0};
    double limit = s->work_limit;
    for (unsigned mask = 1; mask < 1U << s->n_pools; mask++) {
        hv__list_teams(l, mask);
    }
    cut_pools(l, masks, 0, 0);
    s->work_limit = s->work + SETS_SHARE * (limit - s->work);
    judge_sets(l, st, &(struct limits){SETS_JUDGED, CUT_JUDGED, HUGE_VAL, false});
    s->work_limit = limit;
    if (shrink >= 1 && hv__are_few(s)) {
        l->sets.n = 0;
        hv__list_few(l);
        judge_sets(l, st, &(struct limits){FEW_JUDGED, FEW_JUDGED, HUGE_VAL, true});
    }
    close_lister(l);
}

/* Does a smaller part of the pools differ from `shrink` of them? */
static bool has_nodes(const struct hv__search *s, double shrink)
{
    bool some = false;
    for (int i = 0; i < s->n_pools; i++) {
        some = some || 2 * shrink * s->pools[i].n / s->pools[i].node_devices > 1;
    }
    return some;
}

/* Quick plans on all of the pools, the best of them improved, and on smaller and smaller parts. */
static void quick_parts(struct hv__search *s, struct hv__starts *st)
{
    double limit = s->work_limit;
    for (double shrink = 1; shrink >= LEAST_SHARE && has_nodes(s, shrink) && !hv__over(s);
         shrink /= 2) {
        struct hv__lister *l = open_lister(s, shrink, true);
        quick_plans(l, st);
        close_lister(l);
        if (shrink >= 1) {
            improve_soon(s, st);
            s->work_limit = fmin(limit, s->work + PARTS_WORK);
        }
    }
    s->work_limit = limit;
}

int hv__first_plans(struct hv__search *s, struct hv__sketch *starts, int cap)
{
    const struct hv_objective *o = &s->job->objective;
    struct hv__starts st = {.items = starts, .cap = cap};
    st.alike = s->n_pools == 1 || hv__are_few(s) ? STARTS_ONE : STARTS_ALIKE;
    bool dear = o->minimize == HV_MIN_COST || hv_known(o->max_usd_per_h);
    bool limits = hv_known(o->deadline_s) || hv_known(o->max_usd_per_h);
    quick_parts(s, &st);
    if (!(s->best_value < HUGE_VAL) && limits && !s->beyond) { /* soon one that misses them */
        struct hv__starts missing = st;
        s->beyond = true;
        quick_parts(s, &missing);
        s->beyond = false;
    }
    for (double shrink = 1; shrink >= LEAST_SHARE && !hv__over(s); shrink /= 2) {
        all_plans(s, &st, shrink);
        if (!dear) {
            break;
        }
    }
    return st.n;
}
