/*
 * The batch over teams, and a micro-batch over the unequal ranks of a stage: exact, by the prices
 * of blocks.
 */
#include "solver/optim/batch/distribute.h"
#include "solver/planner/planner_int.h"

#include <math.h>

#define STEPS       4096  /* rounds of micro-batches, at most, that are dealt out exactly */
#define UNEVEN      0.995 /* of the time of whole rounds, at most, is worth two sorts of pipelines */
#define GUEST_BATCH 64    /* sequences of a micro-batch that ranks of two pools share, at most */

/* Seconds of a block on ranks that share 1, 2, … sequences as evenly as can be, as a curve. */
static bool fill_curve(struct hv__search *s, const struct hv__team *t, const struct hv__leg *l,
                       struct hv_arena *a, struct hv_share *out)
{
    int most = t->micro_batch - l->guests;
    struct hv__leg at = *l;
    *out = (struct hv_share){.size = 1, .min = l->dp, .max = most};
    struct hv_share_point *x = hv_arena_new(a, struct hv_share_point, (size_t)(most - l->dp + 1));
    for (int n = l->dp; n <= most; n++) {
        at.guest_share = t->micro_batch - n;
        const struct hv__price *p = hv__price_of(s, t, &at);
        double least_s = n > l->dp ? x[n - l->dp - 1].time : 0;
        if (!p->known) {
            return false;
        }
        x[n - l->dp] = (struct hv_share_point){n, fmax(least_s, p->block_s)};
    }
    out->points = x;
    out->n_points = (size_t)(most - l->dp + 1);
    return true;
}

bool hv__share_guests(struct hv__search *s, const struct hv__team *t, struct hv__leg *l)
{
    struct hv_share shares[2];
    struct hv_arena a = {0};
    struct hv_distribution d = {0};
    struct hv__leg turned = hv__leg_turned(t, l);
    const struct hv__pool *guest = &s->pools[l->guest_pool];
    if (l->tp > guest->per_node || hv__guest_devices(l) > guest->n) {
        return false;
    }
    bool ok = t->micro_batch >= l->dp + l->guests && t->micro_batch <= GUEST_BATCH &&
              fill_curve(s, t, l, &a, &shares[0]) && fill_curve(s, t, &turned, &a, &shares[1]) &&
              hv_distribute_minmax(shares, 2, t->micro_batch, &a, &d, NULL) == HV_OK && d.feasible;
    if (ok) {
        l->guest_share = (int)d.count[1];
    }
    hv_arena_free(&a);
    return ok;
}

static int halves_of(const struct hv__team *t, int order, int stage, int depth)
{
    const struct hv__order *o = &hv__orders[order];
    int n = 0;
    for (int turn = 0; turn < o->chunks; turn++) {
        bool back = o->folded && turn % 2 == 1;
        n += t->counts[turn * depth + (back ? depth - 1 - stage : stage)];
    }
    return n;
}

/* Before the blocks are dealt out: as if they could be cut at will. */
static void smooth_times(struct hv__search *s, const struct hv__team *t, double *each, double *fill)
{
    double speed = 0, ends = 0;
    for (int i = 0; i < t->n_legs; i++) {
        const struct hv__price *p = hv__slower_of(s, t, &t->legs[i]);
        speed += t->legs[i].n_stages / p->block_s;
        ends = fmax(ends, p->ends_s[0] + p->ends_s[1]);
    }
    *each = s->n_blocks / speed + ends / hv__depth(t);
    *fill = *each * (hv__depth(t) - 1);
}

void hv__team_times(struct hv__search *s, const struct hv__team *t, int order, double *each,
                    double *fill)
{
    int depth = hv__depth(t), all = 0;
    int last = hv__orders[order].folded && hv__orders[order].chunks % 2 == 0 ? 0 : depth - 1;
    double sum = 0, most = 0;
    for (int i = 0; i < depth; i++) {
        const struct hv__price *p = hv__slower_of(s, t, hv__leg_at(t, i));
        int n = halves_of(t, order, i, depth);
        double x =
            n / 2.0 * p->block_s + (i == 0 ? p->ends_s[0] : 0) + (i == last ? p->ends_s[1] : 0);
        all += n;
        sum += x;
        most = fmax(most, x);
    }
    if (all != 2 * s->n_blocks) {
        smooth_times(s, t, each, fill);
        return;
    }
    *each = most;
    *fill = sum - most;
}

/* A share of the batch: counts are micro-batches of one pipeline, or (whole) of all pipelines of
 * the team at once. */
static bool fill_share(struct hv__search *s, const struct hv__team *t, int order, bool whole,
                       struct hv_share *out)
{
    int pipelines = whole ? 1 : hv__pipelines(t);
    double each, fill;
    hv__team_times(s, t, order, &each, &fill);
    *out = (struct hv_share){.rate = each / pipelines,
                             .fixed = fill,
                             .size = t->micro_batch / pipelines,
                             .min = pipelines,
                             .max = s->job->global_batch / (t->micro_batch / pipelines)};
    return isfinite(each + fill) && out->max >= out->min;
}

/* Times in steps: a pipeline more that runs one micro-batch more makes the team wait for it. */
static void fill_steps(const struct hv__team *t, struct hv_arena *a, struct hv_share *out)
{
    int64_t n = hv__pipelines(t), rounds = (out->max + n - 1) / n;
    if (n == 1 || rounds > STEPS) {
        return;
    }
    struct hv_share_point *x = hv_arena_new(a, struct hv_share_point, (size_t)(2 * rounds));
    for (int64_t i = 1; i <= rounds; i++) {
        double time = out->fixed + (double)(i * n) * out->rate;
        if (i > 1) {
            x[out->n_points++] = (struct hv_share_point){(i - 1) * n + 1, time};
        }
        if (i < rounds || out->max == i * n) {
            x[out->n_points++] = (struct hv_share_point){i * n, time};
        } else if (x[out->n_points - 1].count < out->max) {
            x[out->n_points++] = (struct hv_share_point){out->max, time};
        }
    }
    out->points = x;
}

static double time_dealt(const struct hv__sketch *k, const struct hv_share *shares)
{
    double worst = 0;
    for (int i = 0; i < k->n_teams; i++) {
        const struct hv__team *t = &k->teams[i];
        double each_s = shares[i].rate * (shares[i].min > 1 ? hv__pipelines(t) : 1);
        double rounds = (double)t->micro_batches + (t->more > 0);
        worst = fmax(worst, shares[i].fixed + each_s * rounds);
    }
    return worst;
}

/* One way to deal the batch out; *time_s: of the slowest team then. */
static bool deal(struct hv__search *s, struct hv__sketch *k, bool whole, bool steps, double *time_s)
{
    struct hv_share shares[HV__TEAMS] = {{0}};
    struct hv_arena a = {0};
    struct hv_distribution d = {0};
    bool ok = true;
    for (int i = 0; i < k->n_teams && ok; i++) {
        ok = fill_share(s, &k->teams[i], k->order, whole, &shares[i]);
        if (ok && steps) {
            fill_steps(&k->teams[i], &a, &shares[i]);
        }
    }
    ok = ok &&
         hv_distribute_minmax(shares, (size_t)k->n_teams, s->job->global_batch, &a, &d, NULL) ==
             HV_OK &&
         d.feasible;
    for (int i = 0; ok && i < k->n_teams; i++) {
        struct hv__team *t = &k->teams[i];
        int pipelines = whole ? 1 : hv__pipelines(t);
        t->micro_batches = d.count[i] / pipelines;
        t->more = (int)(d.count[i] % pipelines);
    }
    *time_s = ok ? time_dealt(k, shares) : HUGE_VAL;
    hv_arena_free(&a);
    return ok;
}

bool hv__deal(struct hv__search *s, struct hv__sketch *k, bool rough)
{
    double whole_s, uneven_s;
    if (rough) {
        return deal(s, k, false, false, &uneven_s);
    }
    struct hv__sketch uneven = *k;
    bool ok = deal(s, k, true, false, &whole_s);
    if (ok && k->n_teams == 1) {
        return true;
    }
    if (deal(s, &uneven, false, true, &uneven_s) && uneven_s < UNEVEN * whole_s) {
        *k = uneven;
        return true;
    }
    return ok;
}
