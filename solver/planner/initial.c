/*
 * Initial plans: all groupings of the pools into replicas, by the estimates of replicas.c. The most
 * promising are evaluated, best estimate first, and the best of every shape are kept as starting
 * points.
 */
#include "solver/planner/replicas_int.h"

#include "solver/base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SETS_JUDGED     600   /* sets of replicas evaluated at most */
#define SETS_SHARE      0.3   /* of the work left, for their evaluation */
#define GROUPING_JUDGED 48    /* of these, with the same grouping of pools */
#define SMALL_JUDGED    3000  /* sets of replicas on few devices */
#define QUICK_JUDGED    24    /* of the first, simple sets */
#define QUICK_ALIKE     4     /* of these, with the same grouping of pools */
#define QUICK_WORK      2.5e5 /* operations of evaluations for the first improvement */
#define BEST_WORK       8e5   /* and for improving the best of them after that */
#define QUICK_SHAPES    3     /* plans that are improved first */
#define QUICK_TRIES     60    /* evaluations for each of these, at least */
#define SOON_WORK       3e4   /* operations of evaluations for one set of pools */
#define PARTS_WORK      1e6   /* and for parts of all pools */
#define SECOND_LOOK                                                                                \
    1.1 /* times the best value so far: a plan of few devices that also gets fine moves */
#define START_WORSE  2.5        /* times the best value so far: too slow for a starting point */
#define LEAST_SHARE  (1.0 / 64) /* the smallest fraction of the pools that is tried */
#define STARTS_ALIKE 3          /* with the same grouping of pools, where there are several pools */
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

static int by_estimate(const void *a, const void *b)
{
    const struct hv__replica_set *x = a, *y = b;
    if (x->estimate != y->estimate) {
        return x->estimate < y->estimate ? -1 : 1;
    }
    return x->number - y->number;
}

/* Reverses the runs of a replica. */
static void reverse_runs(struct hv__replica_sketch *r)
{
    for (int i = 0, k = r->n_runs - 1; i < k; i++, k--) {
        struct hv__stage_run run = r->runs[i];
        r->runs[i] = r->runs[k];
        r->runs[k] = run;
    }
}

/* Limits: sets evaluated, of these with the same grouping of pools, and operations of one
 * evaluation. */
struct limits {
    int sets, alike;
    double work;
    bool all_schedules; /* also with the schedules that fill the start of a pipeline best */
};

/* Splits batch and blocks of a set of replicas and evaluates it; keeps it when it is good. */
static double try_set(struct hv__search *s, struct hv__diverse_starts *st, struct hv__sketch *k,
                      int schedule)
{
    k->schedule = schedule;
    double value = hv__refit(s, k, (struct hv__limits){START_WORSE * s->best_value, HUGE_VAL});
    if (hv__is_small(s) && value < SECOND_LOOK * s->best_value) {
        value = hv__fine_moves(s, k, value);
    }
    if (value < HUGE_VAL) {
        hv__keep_start(st, k, value);
    }
    return value;
}

static void try_schedules(struct hv__search *s, struct hv__diverse_starts *st,
                          const struct hv__sketch *k)
{
    int depth = 1;
    for (int r = 0; r < k->n_replicas; r++) {
        depth = hv__depth(&k->replicas[r]) > depth ? hv__depth(&k->replicas[r]) : depth;
    }
    for (int i = 1; i < hv__n_schedules && depth > 1; i++) {
        struct hv__sketch other = *k;
        if (hv__schedules[i].chunks == 1 && hv__schedules[i].slices == 1) {
            (void)try_set(s, st, &other, i);
        }
    }
}

/* True for a single replica whose weights have one copy only: listed once more with sharded
 * weights, it is the same plan as without. */
static bool shards_nothing(const struct hv__replica_set *x)
{
    bool copies = x->n > 1 || x->replicas[0].zero < 3;
    for (int i = 0; i < x->replicas[0].n_runs; i++) {
        copies = copies || hv__run_holders(&x->replicas[0].runs[i]) > 1;
    }
    return !copies;
}

static void judge_sets(struct hv__lister *l, struct hv__diverse_starts *st,
                       const struct limits *most)
{
    struct hv__search *s = l->s;
    if (l->sets.n > 0) {
        qsort(l->sets.items, l->sets.n, sizeof *l->sets.items, by_estimate);
    }
    int judged = 0, *of_grouping = hv_arena_new(&l->arena, int, (size_t)l->n_groupings + 1);
    for (size_t i = 0; i < l->sets.n && judged < most->sets && !hv__is_over(s); i++) {
        const struct hv__replica_set *x = &l->sets.items[i];
        int *alike = &of_grouping[x->grouping];
        if (*alike >= most->alike) {
            continue;
        }
        struct hv__sketch k = {.n_replicas = x->n};
        memcpy(k.replicas, x->replicas, (size_t)x->n * sizeof *k.replicas);
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
        if (most->all_schedules) {
            try_schedules(s, st, &k);
        }
        if (k.n_replicas == 1 && k.replicas[0].n_runs > 1 && *alike <= most->alike / 4) {
            reverse_runs(&k.replicas[0]);
            (void)try_set(s, st, &k, 0);
        }
    }
}

/* Unions of pools, fastest first: masks[i] holds the i + 2 fastest. */
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

/* Evaluates the sets listed, best estimate first, within `work` operations; then empties the
 * list. */
static void judge_soon(struct hv__lister *l, struct hv__diverse_starts *st,
                       const struct limits *most, double work)
{
    double limit = l->s->work_limit;
    l->s->work_limit = fmin(limit, l->s->work + work);
    judge_sets(l, st, most);
    l->s->work_limit = limit;
    l->sets.n = 0;
}

/* Pools by the speed of all their devices together, fastest first. */
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

/* Finds a good plan early: every pool alone, the fastest pools together, and all groupings of the
 * replicas listed for these. */
static void quick_plans(struct hv__lister *l, struct hv__diverse_starts *st)
{
    struct hv__search *s = l->s;
    unsigned masks[HV__POOLS + 1] = {0};
    const struct limits few_sets = {QUICK_ALIKE, QUICK_ALIKE, QUICK_WORK / 4, false};
    int pools[HV__POOLS], n = fastest_pools(l, masks);
    by_share(l, pools);
    for (int i = 0; i < s->n_pools && !hv__is_over(s); i++) {
        hv__list_candidates(l, 1U << pools[i]);
        hv__add_singles(l, &l->subsets[1U << pools[i]]);
        judge_soon(l, st, &few_sets, SOON_WORK);
    }
    for (int i = 0; i < n && !hv__is_over(s); i++) {
        hv__list_candidates(l, masks[i]);
        hv__add_singles(l, &l->subsets[masks[i]]);
        judge_soon(l, st, &few_sets, SOON_WORK);
    }
    memset(masks, 0, sizeof masks);
    hv__group_pools(l, masks, 0, 0);
    judge_soon(l, st, &(struct limits){QUICK_JUDGED, QUICK_ALIKE, QUICK_WORK / 4, false},
               QUICK_WORK);
}

/* Improves the best start of every shape for a short while, then the best of all for longer. */
static void improve_soon(struct hv__search *s, const struct hv__diverse_starts *st)
{
    double limit = s->work_limit;
    int n = 0;
    for (int i = 0; i < st->n && n < QUICK_SHAPES && !hv__is_over(s); i++) {
        struct hv__sketch k = st->items[i];
        if (!hv__is_new_shape(st, i)) {
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

/* Every set of replicas on a fraction of every pool. */
static void all_plans(struct hv__search *s, struct hv__diverse_starts *st, double shrink)
{
    struct hv__lister *l = open_lister(s, shrink, false);
    unsigned masks[HV__POOLS + 1] = {0};
    double limit = s->work_limit;
    for (unsigned mask = 1; mask < 1U << s->n_pools; mask++) {
        hv__list_candidates(l, mask);
    }
    hv__group_pools(l, masks, 0, 0);
    s->work_limit = s->work + SETS_SHARE * (limit - s->work);
    judge_sets(l, st, &(struct limits){SETS_JUDGED, GROUPING_JUDGED, HUGE_VAL, false});
    s->work_limit = limit;
    if (shrink >= 1 && hv__is_small(s)) {
        l->sets.n = 0;
        hv__list_exhaustively(l);
        judge_sets(l, st, &(struct limits){SMALL_JUDGED, SMALL_JUDGED, HUGE_VAL, true});
    }
    close_lister(l);
}

/* True where half of this fraction still uses fewer nodes of some pool. */
static bool has_nodes(const struct hv__search *s, double shrink)
{
    bool some = false;
    for (int i = 0; i < s->n_pools; i++) {
        some = some || 2 * shrink * s->pools[i].n / s->pools[i].node_devices > 1;
    }
    return some;
}

/* Quick plans on whole pools, the best of them improved, and on smaller and smaller fractions. */
static void quick_parts(struct hv__search *s, struct hv__diverse_starts *st)
{
    double limit = s->work_limit;
    for (double shrink = 1; shrink >= LEAST_SHARE && has_nodes(s, shrink) && !hv__is_over(s);
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

int hv__initial_plans(struct hv__search *s, struct hv__sketch *starts, int cap)
{
    const struct hv_objective *o = &s->job->objective;
    struct hv__diverse_starts st = {.items = starts, .cap = cap};
    st.alike = s->n_pools == 1 || hv__is_small(s) ? STARTS_ONE : STARTS_ALIKE;
    bool dear = o->minimize == HV_MIN_COST || hv_known(o->max_usd_per_h);
    bool limits = hv_known(o->deadline_s) || hv_known(o->max_usd_per_h);
    quick_parts(s, &st);
    if (!(s->best_value < HUGE_VAL) && limits &&
        !s->over_limits) { /* find any plan early, even one outside of the limits */
        struct hv__diverse_starts missing = st;
        s->over_limits = true;
        quick_parts(s, &missing);
        s->over_limits = false;
    }
    for (double shrink = 1; shrink >= LEAST_SHARE && !hv__is_over(s); shrink /= 2) {
        all_plans(s, &st, shrink);
        if (!dear) {
            break;
        }
    }
    return st.n;
}
