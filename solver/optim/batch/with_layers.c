/*
 * Layers and batch together: the threshold over the known partitions of every pipeline, and the
 * search for partitions that change it.
 * Not here: partitions of one chain (solver/optim/chain/partition.c).
 */
#include "solver/optim/batch/with_layers.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <string.h>

#define CLOSE (1 + 1e-12)

/* The least of Σ + weight · max over all partitions of a kind of pipeline. */
struct point {
    double weight, value;
};

/* Equal pipelines. */
struct kind {
    const struct hv_partition *p;
    HV_VEC(struct hv_partition_result) lines;
    HV_VEC(struct point) exact;
    double least_max;
};

/* A search in progress. */
struct search {
    const struct hv_batch_layers *j;
    struct hv__watch watch;
    struct hv_arena *arena;
    struct hv_err *err;
    struct kind *kinds;
    size_t n_kinds, *kind_of;
    int64_t *count, n_programs;
};

static bool same_pipeline(const struct hv_partition *a, const struct hv_partition *b)
{
    return a->n_layers == b->n_layers && a->n_stages == b->n_stages && a->stages == b->stages &&
           a->cuts == b->cuts && a->min_layers == b->min_layers && a->any_stages == b->any_stages &&
           a->free_order == b->free_order;
}

static int64_t least_count(const struct search *q, size_t p)
{
    return q->j->min ? q->j->min[p] : 0;
}

static int64_t most_count(const struct search *q, size_t p)
{
    if (q->kinds[q->kind_of[p]].lines.n == 0) {
        return 0;
    }
    return q->j->max && q->j->max[p] < q->j->total ? q->j->max[p] : q->j->total;
}

/* Time of a pipeline for n micro-batches under the partitions known so far. */
static double time_of(const struct kind *k, int64_t n)
{
    double best = n > 0 ? HUGE_VAL : 0;
    for (size_t i = 0; n > 0 && i < k->lines.n; i++) {
        best = fmin(best, k->lines.items[i].sum + (double)(n - 1) * k->lines.items[i].max);
    }
    return best;
}

/* Largest count within [least, most] whose known time is ≤ t; least when none is. */
static int64_t count_under(const struct search *q, size_t p, double t)
{
    const struct kind *k = &q->kinds[q->kind_of[p]];
    int64_t least = least_count(q, p), most = most_count(q, p), best = 0;
    for (size_t i = 0; i < k->lines.n; i++) {
        const struct hv_partition_result *l = &k->lines.items[i];
        double n = l->sum <= t ? (l->max > 0 ? (t - l->sum) / l->max + 1 : (double)most) : 0;
        int64_t c = n >= (double)most ? most : (int64_t)n;
        best = c > best ? c : best;
    }
    while (best < most && time_of(k, best + 1) <= t) {
        best++;
    }
    while (best > least && time_of(k, best) > t) {
        best--;
    }
    return best < least ? least : best;
}

static int64_t fill(struct search *q, double t)
{
    int64_t sum = 0;
    for (size_t p = 0; p < q->j->n_pipelines; p++) {
        q->count[p] = count_under(q, p, t);
        sum += q->count[p];
    }
    return sum;
}

/* Adds the micro-batch that ends first until the total is met. */
static void settle(struct search *q, int64_t sum)
{
    for (; sum < q->j->total; sum++) {
        size_t best = 0;
        double v = HUGE_VAL;
        for (size_t p = 0; p < q->j->n_pipelines; p++) {
            double next = q->count[p] < most_count(q, p)
                              ? time_of(&q->kinds[q->kind_of[p]], q->count[p] + 1)
                              : HUGE_VAL;
            if (next < v) {
                v = next;
                best = p;
            }
        }
        q->count[best]++;
    }
}

static double slowest(const struct search *q)
{
    double v = 0;
    for (size_t p = 0; p < q->j->n_pipelines; p++) {
        v = fmax(v, time_of(&q->kinds[q->kind_of[p]], q->count[p]));
    }
    return v;
}

/* The best counts for the known partitions; returns the slowest pipeline's time. */
static double balance(struct search *q)
{
    double low = 0, high = 0;
    for (size_t p = 0; p < q->j->n_pipelines; p++) {
        high = fmax(high, time_of(&q->kinds[q->kind_of[p]], most_count(q, p)));
    }
    int64_t sum = fill(q, 0);
    for (int k = 0; k < 200 && q->j->total - sum > (int64_t)q->j->n_pipelines; k++) {
        double mid = 0.5 * (low + high);
        if (!(mid > low && mid < high)) {
            break;
        }
        if ((sum = fill(q, mid)) <= q->j->total) {
            low = mid;
        } else {
            high = mid;
        }
        if (sum > q->j->total) {
            sum = 0; /* too far: the loop resumes from `low` */
        }
    }
    settle(q, fill(q, low));
    return slowest(q);
}

/* Solves a kind for a weight, remembers the line and the exact value. */
static enum hv_status solve_kind(struct search *q, struct kind *k, double weight, bool *stopped)
{
    struct hv_partition p = *k->p;
    struct hv_partition_result r;
    p.sum_weight = weight < 0 ? 0 : 1;
    p.max_weight = weight < 0 ? 1 : weight;
    const struct hv_solve_limits rest = hv__watch_rest(&q->watch);
    q->n_programs++;
    enum hv_status st = hv_partition_solve(&p, &rest, q->arena, &r, q->err);
    if (st != HV_OK) {
        return st;
    }
    *stopped = *stopped || r.stopped || !r.proven;
    if (!r.feasible) {
        return HV_OK;
    }
    hv_vec_push(&k->lines, r);
    if (weight >= 0) {
        hv_vec_push(&k->exact, (struct point){weight, r.bound});
    }
    return HV_OK;
}

/* The least maximum, and the least sum that goes with it. */
static enum hv_status start_kind(struct search *q, struct kind *k, bool *stopped)
{
    struct hv_partition_result r;
    enum hv_status st = solve_kind(q, k, -1, stopped);
    if (st != HV_OK || k->lines.n == 0) {
        return st;
    }
    k->least_max = k->lines.items[0].bound;
    if (k->p->free_order) {
        return HV_OK;
    }
    q->n_programs++;
    st = hv_partition_min_sum(k->p, k->lines.items[0].max, q->arena, &r, q->err);
    if (st == HV_OK && r.feasible) {
        k->lines.items[0] = r;
    }
    return st;
}

/* Lower bound on the time of any partition for this weight, from the solved weights. */
static double least_time(const struct kind *k, double weight)
{
    double low = 0;
    for (size_t i = 0; i < k->exact.n; i++) {
        if (k->exact.items[i].weight <= weight) {
            low = fmax(low, k->exact.items[i].value +
                                (weight - k->exact.items[i].weight) * k->least_max);
        }
    }
    return low;
}

/* Checks that pipeline p cannot take one more micro-batch below t; solves its kind where this is
 * not known. */
static enum hv_status confirm(struct search *q, size_t p, double t, bool *changed, bool *stopped)
{
    struct kind *k = &q->kinds[q->kind_of[p]];
    int64_t n = count_under(q, p, nextafter(t, 0));
    n += time_of(k, n) < t; /* else its own minimum reaches the threshold */
    if (n > most_count(q, p) || n == 0) {
        return HV_OK;
    }
    double weight = (double)(n - 1);
    if (least_time(k, weight) * CLOSE >= t) {
        return HV_OK;
    }
    /* a little less than needed: if it is the hull's last line, it proves all larger weights too */
    double lower = floor(weight * 0.96), before = time_of(k, n);
    enum hv_status st = solve_kind(q, k, lower, stopped);
    if (st == HV_OK && !*stopped && least_time(k, weight) * CLOSE < fmin(t, time_of(k, n))) {
        st = solve_kind(q, k, weight, stopped);
    }
    *changed = *changed || time_of(k, n) < fmin(before, t) * (1 - 1e-12);
    return st;
}

static enum hv_status check_joint(const struct hv_batch_layers *j, struct hv_err *err)
{
    if (j->n_pipelines == 0 || j->total < 0) {
        return hv_err_set(err, HV_EINPUT,
                          "expected at least one pipeline and a total that is not negative");
    }
    if (j->n_pipelines > HV_BATCH_LAYERS_MAX_PIPELINES || j->total > HV_BATCH_LAYERS_MAX_TOTAL) {
        return hv_err_set(err, HV_ELIMIT, "at most %zu pipelines and a total of %lld",
                          HV_BATCH_LAYERS_MAX_PIPELINES, (long long)HV_BATCH_LAYERS_MAX_TOTAL);
    }
    for (size_t p = 0; p < j->n_pipelines; p++) {
        int64_t least = j->min ? j->min[p] : 0, most = j->max ? j->max[p] : j->total;
        if (least < 0 || most < least || least > HV_BATCH_LAYERS_MAX_TOTAL) {
            return hv_err_set(err, HV_EINPUT, "pipeline %zu: expected 0 <= min <= max", p + 1);
        }
    }
    return HV_OK;
}

static enum hv_status start(struct search *q, bool *stopped)
{
    const struct hv_batch_layers *j = q->j;
    q->kinds = hv_arena_new(q->arena, struct kind, j->n_pipelines);
    q->kind_of = hv_arena_new(q->arena, size_t, j->n_pipelines);
    q->count = hv_arena_new(q->arena, int64_t, j->n_pipelines);
    for (size_t p = 0; p < j->n_pipelines; p++) {
        size_t k = 0;
        while (k < q->n_kinds && !same_pipeline(q->kinds[k].p, &j->pipelines[p])) {
            k++;
        }
        q->kind_of[p] = k;
        if (k < q->n_kinds) {
            continue;
        }
        q->kinds[q->n_kinds++].p = &j->pipelines[p];
        enum hv_status st = start_kind(q, &q->kinds[k], stopped);
        if (st != HV_OK) {
            return st;
        }
    }
    return HV_OK;
}

/* False where minima and maxima cannot add up to the total; writes the reason. */
static bool adds_up(const struct search *q, struct hv_batch_layers_result *out)
{
    int64_t least = 0, most = 0;
    for (size_t p = 0; p < q->j->n_pipelines; p++) {
        int64_t top = most_count(q, p);
        if (least_count(q, p) > top) {
            out->proof =
                hv_arena_printf(q->arena, "pipeline %zu must take %lld but no partition fits it",
                                p + 1, (long long)least_count(q, p));
            return false;
        }
        least += least_count(q, p);
        most = most > q->j->total - top ? q->j->total : most + top;
    }
    if (least <= q->j->total && most >= q->j->total) {
        return true;
    }
    out->proof = hv_arena_printf(
        q->arena, "the pipelines must take at least %lld and can take at most %lld of %lld",
        (long long)least, (long long)most, (long long)q->j->total);
    return false;
}

/* A bound from the exact solutions: the threshold with every pipeline at its lower bound. */
static double lower_threshold(struct search *q, double t)
{
    double low = 0, high = t;
    for (int k = 0; k < 60; k++) {
        double mid = 0.5 * (low + high), sum = 0;
        for (size_t p = 0; p < q->j->n_pipelines; p++) {
            const struct kind *kd = &q->kinds[q->kind_of[p]];
            double top = (double)most_count(q, p);
            sum += kd->least_max > 0 ? fmin(top, mid / kd->least_max) : top;
        }
        if (sum < (double)q->j->total) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

static void finish(struct search *q, double t, struct hv_batch_layers_result *out)
{
    size_t n = q->j->n_pipelines;
    out->feasible = true;
    out->proven = !out->stopped;
    out->objective = t;
    out->bound = out->proven ? t : lower_threshold(q, t);
    out->count = q->count;
    out->part = hv_arena_new(q->arena, struct hv_partition_result, n);
    for (size_t p = 0; p < n; p++) {
        const struct kind *k = &q->kinds[q->kind_of[p]];
        double v = time_of(k, q->count[p] > 0 ? q->count[p] : 1);
        for (size_t i = 0; i < k->lines.n; i++) {
            const struct hv_partition_result *l = &k->lines.items[i];
            if (l->sum + (double)((q->count[p] > 0 ? q->count[p] : 1) - 1) * l->max <= v) {
                out->part[p] = *l;
            }
        }
    }
    out->proof = out->proven
                     ? "every pipeline solved exactly at the first count that reaches the threshold"
                     : "stopped; the bound lets every pipeline run at its least maximum";
}

enum hv_status hv_batch_layers_solve(const struct hv_batch_layers *j,
                                     const struct hv_solve_limits *limits, struct hv_arena *arena,
                                     struct hv_batch_layers_result *out, struct hv_err *err)
{
    struct search q = {.j = j, .arena = arena, .err = err};
    double t = 0;
    memset(out, 0, sizeof *out);
    out->objective = out->bound = HV_UNKNOWN;
    out->method = "hull-threshold";
    enum hv_status st = check_joint(j, err);
    if (st != HV_OK) {
        return st;
    }
    hv__watch_start(&q.watch, limits);
    st = start(&q, &out->stopped);
    bool feasible = st == HV_OK && adds_up(&q, out), changed = feasible;
    while (st == HV_OK && changed) {
        t = balance(&q);
        changed = false;
        if (hv__watch_due(&q.watch)) {
            hv__watch_tell(&q.watch, t, lower_threshold(&q, t));
        }
        out->stopped = out->stopped || hv__watch_over(&q.watch);
        for (size_t p = 0; p < j->n_pipelines && st == HV_OK && !out->stopped; p++) {
            st = confirm(&q, p, t, &changed, &out->stopped);
        }
    }
    if (st == HV_OK && feasible) {
        finish(&q, out->stopped ? balance(&q) : t, out);
    } else {
        out->proven = st == HV_OK && !out->stopped;
    }
    out->n_programs = q.n_programs;
    for (size_t k = 0; k < q.n_kinds; k++) {
        hv_vec_free(&q.kinds[k].lines);
        hv_vec_free(&q.kinds[k].exact);
    }
    return st;
}
