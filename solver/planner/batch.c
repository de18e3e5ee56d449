/*
 * The batch over replicas, and a micro-batch over the unequal ranks of a mixed stage: exact with
 * respect to the prices of blocks.
 */
#include "solver/optim/batch/distribute.h"
#include "solver/planner/planner_int.h"

#include <math.h>

#define STEPS 4096 /* rounds of micro-batches, at most, that are split exactly */
#define UNEVEN                                                                                     \
    0.995 /* unequal pipelines must take less than this fraction of the time of equal ones */
#define MIXED_BATCH 64 /* sequences of a micro-batch that ranks of two pools share, at most */

/* Seconds of a block as a function of the sequences that the run's ranks share as evenly as
 * possible. */
static bool fill_curve(struct hv__search *s, const struct hv__replica_sketch *r,
                       const struct hv__stage_run *run, struct hv_arena *a, struct hv_share *out)
{
    int most = r->micro_batch - run->second_dp;
    struct hv__stage_run at = *run;
    *out = (struct hv_share){.size = 1, .min = run->dp, .max = most};
    struct hv_share_point *x = hv_arena_new(a, struct hv_share_point, (size_t)(most - run->dp + 1));
    for (int n = run->dp; n <= most; n++) {
        at.second_sequences = r->micro_batch - n;
        const struct hv__price *p = hv__price_of(s, r, &at);
        double least_s = n > run->dp ? x[n - run->dp - 1].time : 0;
        if (!p->known) {
            return false;
        }
        x[n - run->dp] = (struct hv_share_point){n, fmax(least_s, p->block_s)};
    }
    out->points = x;
    out->n_points = (size_t)(most - run->dp + 1);
    return true;
}

bool hv__share_micro_batch(struct hv__search *s, const struct hv__replica_sketch *r,
                           struct hv__stage_run *run)
{
    struct hv_share shares[2];
    struct hv_arena a = {0};
    struct hv_distribution d = {0};
    struct hv__stage_run turned = hv__run_swapped(r, run);
    const struct hv__pool *second = &s->pools[run->second_pool];
    if (run->tp > second->per_node || hv__second_devices(run) > second->n) {
        return false;
    }
    bool ok = r->micro_batch >= run->dp + run->second_dp && r->micro_batch <= MIXED_BATCH &&
              fill_curve(s, r, run, &a, &shares[0]) && fill_curve(s, r, &turned, &a, &shares[1]) &&
              hv_distribute_minmax(shares, 2, r->micro_batch, &a, &d, NULL) == HV_OK && d.feasible;
    if (ok) {
        run->second_sequences = (int)d.count[1];
    }
    hv_arena_free(&a);
    return ok;
}

static int halves_of(const struct hv__replica_sketch *r, int schedule, int stage, int depth)
{
    const struct hv__schedule_row *o = &hv__schedules[schedule];
    int n = 0;
    for (int turn = 0; turn < o->chunks; turn++) {
        bool back = o->folded && turn % 2 == 1;
        n += r->counts[turn * depth + (back ? depth - 1 - stage : stage)];
    }
    return n;
}

/* Times before the blocks are partitioned: as if they could be divided into any fractions. */
static void smooth_times(struct hv__search *s, const struct hv__replica_sketch *r, double *each,
                         double *fill)
{
    double speed = 0, ends = 0;
    for (int i = 0; i < r->n_runs; i++) {
        const struct hv__price *p = hv__slower_of(s, r, &r->runs[i]);
        speed += r->runs[i].n_stages / p->block_s;
        ends = fmax(ends, p->ends_s[0] + p->ends_s[1]);
    }
    *each = s->n_blocks / speed + ends / hv__depth(r);
    *fill = *each * (hv__depth(r) - 1);
}

void hv__replica_times(struct hv__search *s, const struct hv__replica_sketch *r, int schedule,
                       double *each, double *fill)
{
    int depth = hv__depth(r), all = 0;
    int last =
        hv__schedules[schedule].folded && hv__schedules[schedule].chunks % 2 == 0 ? 0 : depth - 1;
    double sum = 0, most = 0;
    for (int i = 0; i < depth; i++) {
        const struct hv__price *p = hv__slower_of(s, r, hv__run_at(r, i));
        int n = halves_of(r, schedule, i, depth);
        double x =
            n / 2.0 * p->block_s + (i == 0 ? p->ends_s[0] : 0) + (i == last ? p->ends_s[1] : 0);
        all += n;
        sum += x;
        most = fmax(most, x);
    }
    if (all != 2 * s->n_blocks) {
        smooth_times(s, r, each, fill);
        return;
    }
    *each = most;
    *fill = sum - most;
}

/* The share of one replica in the batch: counts are micro-batches of one pipeline or, with
 * `whole`, of all its pipelines at once. */
static bool fill_share(struct hv__search *s, const struct hv__replica_sketch *r, int schedule,
                       bool whole, struct hv_share *out)
{
    int pipelines = whole ? 1 : hv__pipelines(r);
    double each, fill;
    hv__replica_times(s, r, schedule, &each, &fill);
    *out = (struct hv_share){.rate = each / pipelines,
                             .fixed = fill,
                             .size = r->micro_batch / pipelines,
                             .min = pipelines,
                             .max = s->job->global_batch / (r->micro_batch / pipelines)};
    return isfinite(each + fill) && out->max >= out->min;
}

/* Times as a step function: as soon as one pipeline runs one micro-batch more, the replica
 * takes the longer time. */
static void fill_steps(const struct hv__replica_sketch *r, struct hv_arena *a, struct hv_share *out)
{
    int64_t n = hv__pipelines(r), rounds = (out->max + n - 1) / n;
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

static double time_of_split(const struct hv__sketch *k, const struct hv_share *shares)
{
    double worst = 0;
    for (int i = 0; i < k->n_replicas; i++) {
        const struct hv__replica_sketch *r = &k->replicas[i];
        double each_s = shares[i].rate * (shares[i].min > 1 ? hv__pipelines(r) : 1);
        double rounds = (double)r->micro_batches + (r->n_longer > 0);
        worst = fmax(worst, shares[i].fixed + each_s * rounds);
    }
    return worst;
}

/* One way to split the batch; *time_s: of the slowest replica then. */
static bool split_batch(struct hv__search *s, struct hv__sketch *k, bool whole, bool steps,
                        double *time_s)
{
    struct hv_share shares[HV__REPLICAS] = {{0}};
    struct hv_arena a = {0};
    struct hv_distribution d = {0};
    bool ok = true;
    for (int i = 0; i < k->n_replicas && ok; i++) {
        ok = fill_share(s, &k->replicas[i], k->schedule, whole, &shares[i]);
        if (ok && steps) {
            fill_steps(&k->replicas[i], &a, &shares[i]);
        }
    }
    ok = ok &&
         hv_distribute_minmax(shares, (size_t)k->n_replicas, s->job->global_batch, &a, &d, NULL) ==
             HV_OK &&
         d.feasible;
    for (int i = 0; ok && i < k->n_replicas; i++) {
        struct hv__replica_sketch *r = &k->replicas[i];
        int pipelines = whole ? 1 : hv__pipelines(r);
        r->micro_batches = d.count[i] / pipelines;
        r->n_longer = (int)(d.count[i] % pipelines);
    }
    *time_s = ok ? time_of_split(k, shares) : HUGE_VAL;
    hv_arena_free(&a);
    return ok;
}

bool hv__split_batch(struct hv__search *s, struct hv__sketch *k, bool fractions)
{
    double whole_s, uneven_s;
    if (fractions) {
        return split_batch(s, k, false, false, &uneven_s);
    }
    struct hv__sketch uneven = *k;
    bool ok = split_batch(s, k, true, false, &whole_s);
    if (ok && k->n_replicas == 1) {
        return true;
    }
    if (split_batch(s, &uneven, false, true, &uneven_s) && uneven_s < UNEVEN * whole_s) {
        *k = uneven;
        return true;
    }
    return ok;
}
