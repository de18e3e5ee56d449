/*
 * Clusters of few devices: every replica that can be made of single devices, where stages of
 * different width and several replicas may share a pool. Estimates, and which candidates are kept,
 * are those of replicas.c.
 */
#include "solver/planner/replicas_int.h"

#include "solver/base/units.h"

#define SMALL_DEVICES     8      /* of all pools together */
#define SMALL_RATED       200000 /* candidates estimated at most */
#define SMALL_MICRO_BATCH 64     /* sequences in a micro-batch */

/* An enumeration: candidates by the number of devices that they take of each pool. */
struct enumeration {
    struct hv__lister *l;
    struct hv__pool_subset *subsets; /* by code: the digits of the code are devices of each pool */
    int n_codes, rated;
    int left[HV__POOLS], most[HV__POOLS];
    struct hv__candidate draft;
};

bool hv__is_small(const struct hv__search *s)
{
    int n = 0;
    for (int i = 0; i < s->n_pools; i++) {
        n += s->pools[i].n;
    }
    return n <= SMALL_DEVICES;
}

static int code_of(const struct enumeration *f)
{
    int code = 0;
    for (int i = 0; i < f->l->s->n_pools; i++) {
        code = code * (f->most[i] + 1) + f->most[i] - f->left[i];
    }
    return code;
}

/* Subtracts the devices of a code from those left, or (by = -1) adds them. False where too few
 * are left; nothing changes then. */
static bool take(struct enumeration *f, int code, int by)
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

static void rate(struct enumeration *f)
{
    struct hv__search *s = f->l->s;
    struct hv__candidate cand = f->draft;
    s->work += 10;
    f->rated++;
    for (int i = 0; i < cand.replica.n_runs; i++) {
        if (!hv__price_of(s, &cand.replica, &cand.replica.runs[i])->known) {
            return;
        }
    }
    hv__rate_candidate(f->l, &f->subsets[code_of(f)], &cand);
}

static void add_stage(struct enumeration *f);

/* Adds a stage to the last run where its stages are equal, else as a new run. */
static void add_run(struct enumeration *f, const struct hv__stage_run *run)
{
    struct hv__replica_sketch *r = &f->draft.replica;
    struct hv__stage_run *last = r->n_runs > 0 ? &r->runs[r->n_runs - 1] : NULL;
    bool same =
        last != NULL && last->pool == run->pool && last->tp == run->tp && last->dp == run->dp;
    if (!same && r->n_runs == HV__RUNS) {
        return;
    }
    if (same) {
        last->n_stages++;
    } else {
        r->runs[r->n_runs++] = *run;
    }
    f->left[run->pool] -= run->tp * run->dp;
    add_stage(f);
    f->left[run->pool] += run->tp * run->dp;
    if (same) {
        last->n_stages--;
    } else {
        r->n_runs--;
    }
}

/* Estimates the replica as it is, and with every possible further stage. */
static void add_stage(struct enumeration *f)
{
    struct hv__search *s = f->l->s;
    struct hv__replica_sketch *r = &f->draft.replica;
    if (r->n_runs > 0) {
        rate(f);
    }
    if (hv__depth(r) > s->n_blocks) {
        return;
    }
    for (int p = 0; p < s->n_pools; p++) {
        for (int tp = 1; tp <= f->left[p] && tp <= s->pools[p].per_node; tp *= 2) {
            for (int dp = 1; dp * tp <= f->left[p] && hv__heads_allow(s, tp); dp++) {
                struct hv__stage_run run = {.pool = p, .n_stages = 1, .tp = tp, .cp = 1, .dp = dp};
                run.ep = 1;
                run.recompute = f->draft.replica.runs[0].recompute;
                run.offload = s->offload;
                if (r->micro_batch >= dp && f->rated < SMALL_RATED) {
                    add_run(f, &run);
                }
            }
        }
    }
}

/* All sets of replicas, in order of falling codes. */
static void list_sets(struct enumeration *f, const struct hv__pool_subset **subs, int n, int code)
{
    for (; code > 0 && n < HV__REPLICAS; code--) {
        if (f->subsets[code].n == 0 || !take(f, code, 1)) {
            continue;
        }
        subs[n] = &f->subsets[code];
        f->l->n_groupings++;
        if (n > 0) {
            hv__add_sets(f->l, subs, n + 1);
        } else {
            hv__add_singles(f->l, subs[0]);
        }
        list_sets(f, subs, n + 1, code);
        (void)take(f, code, -1);
    }
}

static void share_codes(struct enumeration *f)
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

void hv__list_exhaustively(struct hv__lister *l)
{
    static const unsigned recomputes[] = {HV_RC_NONE, HV_RC_CORE, HV_RC_FULL};
    struct enumeration f = {.l = l, .n_codes = 1};
    const struct hv__pool_subset *subs[HV__REPLICAS];
    for (int i = 0; i < l->s->n_pools; i++) {
        f.left[i] = f.most[i] = l->s->pools[i].n;
        f.n_codes *= f.most[i] + 1;
    }
    f.subsets = hv_arena_new(&l->arena, struct hv__pool_subset, (size_t)f.n_codes);
    share_codes(&f);
    for (int64_t b = 1; b <= l->s->job->global_batch && b <= SMALL_MICRO_BATCH; b++) {
        for (size_t i = 0; i < HV_COUNT(recomputes) && hv__is_batch(b, l->s->job->global_batch);
             i++) {
            f.draft = (struct hv__candidate){.replica = {.zero = 1, .micro_batch = (int)b}};
            f.draft.replica.runs[0].recompute = recomputes[i];
            add_stage(&f);
        }
    }
    list_sets(&f, subs, 0, f.n_codes - 1);
}
