/*
 * Few devices: every way to make teams of single devices, where a pool may be cut between stages of
 * different width and between teams. Estimates and the keeping of teams are those of teams.c.
 */
#include "solver/planner/replicas_int.h"

#include "solver/base/units.h"

#define FEW_DEVICES 8      /* of all pools together */
#define FEW_ROUGH   200000 /* teams rated at most */
#define FEW_BATCH   64     /* sequences in a micro-batch */

/* An enumeration: teams by how many devices of each pool they take. */
struct few {
    struct hv__lister *l;
    struct hv__subset *subsets; /* by code: devices of each pool as digits */
    int n_codes, rated;
    int left[HV__POOLS], most[HV__POOLS];
    struct hv__rough rough;
};

bool hv__are_few(const struct hv__search *s)
{
    int n = 0;
    for (int i = 0; i < s->n_pools; i++) {
        n += s->pools[i].n;
    }
    return n <= FEW_DEVICES;
}

static int code_of(const struct few *f)
{
    int code = 0;
    for (int i = 0; i < f->l->s->n_pools; i++) {
        code = code * (f->most[i] + 1) + f->most[i] - f->left[i];
    }
    return code;
}

/* Takes the devices of a code off those left, or (by = -1) gives them back. False where there are
 * not so many; nothing is taken then. */
static bool take(struct few *f, int code, int by)
{
    int left[HV__POOLS];
    for (int i = f->l->s->n_pools - 1; i >= 0; i--) {
        left[i] = f->left[i] - by * (code % (f->most[i] + 1));
        code /= f->most[i] + 1;
        if (left[i] < 0) {
            return false;
        }
    }
    for (int i = 0; i < f->l->s->n_pools; i++) {
        f->left[i] = left[i];
    }
    return true;
}

static void rate(struct few *f)
{
    struct hv__search *s = f->l->s;
    struct hv__rough r = f->rough;
    s->work += 10;
    f->rated++;
    for (int i = 0; i < r.team.n_legs; i++) {
        if (!hv__price_of(s, &r.team, &r.team.legs[i])->known) {
            return;
        }
    }
    hv__rate_team(f->l, &f->subsets[code_of(f)], &r);
}

static void add_stage(struct few *f);

/* One more stage like the last leg, or a leg of its own. */
static void add_leg(struct few *f, const struct hv__leg *leg)
{
    struct hv__team *t = &f->rough.team;
    struct hv__leg *last = t->n_legs > 0 ? &t->legs[t->n_legs - 1] : NULL;
    bool same =
        last != NULL && last->pool == leg->pool && last->tp == leg->tp && last->dp == leg->dp;
    if (!same && t->n_legs == HV__LEGS) {
        return;
    }
    if (same) {
        last->n_stages++;
    } else {
        t->legs[t->n_legs++] = *leg;
    }
    f->left[leg->pool] -= leg->tp * leg->dp;
    add_stage(f);
    f->left[leg->pool] += leg->tp * leg->dp;
    if (same) {
        last->n_stages--;
    } else {
        t->n_legs--;
    }
}

/* Rates the team as it is, and with every stage more. */
static void add_stage(struct few *f)
{
    struct hv__search *s = f->l->s;
    struct hv__team *t = &f->rough.team;
    if (t->n_legs > 0) {
        rate(f);
    }
    if (hv__depth(t) > s->n_blocks) {
        return;
    }
    for (int p = 0; p < s->n_pools; p++) {
        for (int tp = 1; tp <= f->left[p] && tp <= s->pools[p].per_node; tp *= 2) {
            for (int dp = 1; dp * tp <= f->left[p] && hv__heads_allow(s, tp); dp++) {
                struct hv__leg leg = {.pool = p, .n_stages = 1, .tp = tp, .cp = 1, .dp = dp};
                leg.ep = 1;
                leg.recompute = f->rough.team.legs[0].recompute;
                leg.offload = s->offload;
                if (t->micro_batch >= dp && f->rated < FEW_ROUGH) {
                    add_leg(f, &leg);
                }
            }
        }
    }
}

/* All sets of teams whose codes do not grow. */
static void list_sets(struct few *f, const struct hv__subset **subs, int n, int code)
{
    for (; code > 0 && n < HV__TEAMS; code--) {
        if (f->subsets[code].n == 0 || !take(f, code, 1)) {
            continue;
        }
        subs[n] = &f->subsets[code];
        f->l->n_cuts++;
        if (n > 0) {
            hv__add_teams(f->l, subs, n + 1);
        } else {
            hv__add_alone(f->l, subs[0]);
        }
        list_sets(f, subs, n + 1, code);
        (void)take(f, code, -1);
    }
}

static void share_codes(struct few *f)
{
    struct hv__search *s = f->l->s;
    double all = 0;
    for (int i = 0; i < s->n_pools; i++) {
        all += s->pools[i].n *
               hv_or(hv_device_peak_flops_per_s(s->pools[i].kind, s->job->precision), 1e12);
    }
    for (int code = 0; code < f->n_codes; code++) {
        for (int i = s->n_pools - 1, rest = code; i >= 0; i--) {
            f->subsets[code].share +=
                rest % (f->most[i] + 1) *
                hv_or(hv_device_peak_flops_per_s(s->pools[i].kind, s->job->precision), 1e12) / all;
            rest /= f->most[i] + 1;
        }
    }
}

void hv__list_few(struct hv__lister *l)
{
    static const unsigned recomputes[] = {HV_RC_NONE, HV_RC_CORE, HV_RC_FULL};
    struct few f = {.l = l, .n_codes = 1};
    const struct hv__subset *subs[HV__TEAMS];
    for (int i = 0; i < l->s->n_pools; i++) {
        f.left[i] = f.most[i] = l->s->pools[i].n;
        f.n_codes *= f.most[i] + 1;
    }
    f.subsets = hv_arena_new(&l->arena, struct hv__subset, (size_t)f.n_codes);
    share_codes(&f);
    for (int64_t b = 1; b <= l->s->job->global_batch && b <= FEW_BATCH; b++) {
        for (size_t i = 0; i < HV_COUNT(recomputes) && hv__is_batch(b, l->s->job->global_batch);
             i++) {
            f.rough = (struct hv__rough){.team = {.zero = 1, .micro_batch = (int)b}};
            f.rough.team.legs[0].recompute = recomputes[i];
            add_stage(&f);
        }
    }
    list_sets(&f, subs, 0, f.n_codes - 1);
}
