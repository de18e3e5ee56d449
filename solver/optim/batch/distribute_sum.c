/*
 * Shares whose time is a curve through points, and the distribution with the least sum of times.
 * Not here: the least maximum (distribute.c).
 */
#include "solver/base/units.h"
#include "solver/optim/batch/distribute_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum hv_status hv__share_check_points(const struct hv_share *s, size_t i, struct hv_err *err)
{
    const struct hv_share_point *p = s->points;
    if (!p) {
        return HV_OK;
    }
    if (s->n_points == 0 || p[0].count > s->min) {
        return hv_err_set(err, HV_EINPUT,
                          "share %zu: expected a point at its least count %lld or below", i + 1,
                          (long long)s->min);
    }
    for (size_t k = 0; k < s->n_points; k++) {
        if (!isfinite(p[k].time) || p[k].time < 0 || p[k].count < 0 ||
            p[k].count > HV_DISTRIBUTE_MAX_TOTAL) {
            return hv_err_set(err, HV_EINPUT,
                              "share %zu, point %zu: expected numbers that are finite and not "
                              "negative",
                              i + 1, k + 1);
        }
        if (k && (p[k].count <= p[k - 1].count || p[k].time < p[k - 1].time)) {
            return hv_err_set(err, HV_EINPUT,
                              "share %zu, point %zu: expected counts that rise and times that "
                              "never fall",
                              i + 1, k + 1);
        }
    }
    if (p[s->n_points - 1].count < s->min) {
        return hv_err_set(err, HV_EINPUT, "share %zu: its points end at %lld, below its min %lld",
                          i + 1, (long long)p[s->n_points - 1].count, (long long)s->min);
    }
    return HV_OK;
}

int64_t hv__share_max(const struct hv_share *s)
{
    if (!s->points || s->points[s->n_points - 1].count >= s->max) {
        return s->max;
    }
    return s->points[s->n_points - 1].count;
}

/* Time per count between point k and the next; 0 behind the last. */
static double slope_of(const struct hv_share *s, size_t k)
{
    const struct hv_share_point *p = &s->points[k];
    return k + 1 < s->n_points ? (p[1].time - p[0].time) / (double)(p[1].count - p[0].count) : 0;
}

/* Last point that is not behind the count. */
static size_t point_at(const struct hv_share *s, int64_t count)
{
    size_t lo = 0, hi = s->n_points;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->points[mid].count <= count) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* On the line from point k; rounding must not carry it above the next point. */
static double value_on(const struct hv_share *s, size_t k, int64_t count)
{
    const struct hv_share_point *p = &s->points[k];
    double v = p->time + (double)(count - p->count) * slope_of(s, k);
    return k + 1 < s->n_points ? fmin(v, p[1].time) : v;
}

double hv__share_value(const struct hv_share *s, int64_t count)
{
    return s->points ? value_on(s, point_at(s, count), count) : s->fixed + (double)count * s->rate;
}

int64_t hv__share_under(const struct hv_share *s, int64_t most, double t)
{
    size_t lo = 0, hi = s->n_points;
    if (s->points[0].time > t) {
        return s->min;
    }
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->points[mid].time <= t) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    int64_t c = s->points[lo].count;
    if (lo + 1 < s->n_points) { /* the next point is above t, so the slope is not 0 */
        double more = (t - s->points[lo].time) / slope_of(s, lo);
        int64_t last = s->points[lo + 1].count - 1;
        c = more < (double)(last - c) ? c + (int64_t)more : last;
        while (c < last && value_on(s, lo, c + 1) <= t) {
            c++;
        }
        while (c > s->points[lo].count && value_on(s, lo, c) > t) {
            c--;
        }
    }
    c = c < most ? c : most;
    return c > s->min ? c : s->min;
}

/* A stretch of counts of one share, each of which costs the same. */
struct piece {
    double slope;
    int64_t n;
    size_t share, index;
};

static int by_slope(const void *pa, const void *pb)
{
    const struct piece *a = pa, *b = pb;
    if (a->slope != b->slope) {
        return a->slope < b->slope ? -1 : 1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

/* The pieces of share i above its min; HV_EINPUT where the slopes fall. */
static enum hv_status list_pieces(const struct hv_share *s, size_t i, struct piece *out, size_t *n,
                                  struct hv_err *err)
{
    int64_t from = s->min, max = hv__share_max(s);
    if (!s->points) {
        out[*n] = (struct piece){s->rate, max - from, i, *n};
        ++*n;
        return HV_OK;
    }
    for (size_t k = point_at(s, from); k + 1 < s->n_points && from < max; k++) {
        int64_t to = s->points[k + 1].count < max ? s->points[k + 1].count : max;
        double slope = slope_of(s, k), before = k ? slope_of(s, k - 1) : 0;
        if (slope < before * (1 - 1e-9)) {
            return hv_err_set(err, HV_EINPUT,
                              "share %zu, point %zu: the curve is not convex: a count costs %g "
                              "before it and %g behind it",
                              i + 1, k + 1, before, slope);
        }
        out[*n] = (struct piece){fmax(slope, before), to - from, i, *n};
        ++*n;
        from = to;
    }
    return HV_OK;
}

/* Counts at the minima; false with the reason when the total is out of reach. */
static bool start_at_minima(const struct hv_share *s, size_t n, int64_t units,
                            struct hv_arena *arena, struct hv_distribution *out)
{
    int64_t least = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t max = hv__share_max(&s[i]);
        out->count[i] = s[i].min;
        least += s[i].min;
        most += max < units ? max : units;
        if (least > units) {
            out->proof = hv_arena_printf(
                arena, "the minima of the first %zu shares exceed the total", i + 1);
            return false;
        }
    }
    if (most < units) {
        out->proof = hv_arena_printf(arena, "the maxima add up to %lld counts, %lld too few",
                                     (long long)most, (long long)(units - most));
    }
    return most >= units;
}

enum hv_status hv_distribute_sum(const struct hv_share *shares, size_t n, int64_t total,
                                 struct hv_arena *arena, struct hv_distribution *out,
                                 struct hv_err *err)
{
    memset(out, 0, sizeof *out);
    out->objective = out->bound = HV_UNKNOWN;
    out->method = "greedy-marginal";
    out->proven = true;
    enum hv_status st = hv_distribute_check(shares, n, total, err);
    size_t n_pieces = 0;
    for (size_t i = 0; i < n && st == HV_OK; i++) {
        n_pieces += shares[i].points ? shares[i].n_points : 1;
        if (shares[i].size != shares[0].size) {
            st = hv_err_set(err, HV_EINPUT, "share %zu: the least sum needs equal sizes", i + 1);
        }
    }
    if (st != HV_OK) {
        return st;
    }
    struct piece *pieces = hv_arena_new(arena, struct piece, n_pieces);
    out->count = hv_arena_new(arena, int64_t, n);
    n_pieces = 0;
    for (size_t i = 0; i < n && st == HV_OK; i++) {
        st = list_pieces(&shares[i], i, pieces, &n_pieces, err);
    }
    if (st != HV_OK) {
        return st;
    }
    int64_t left = total / shares[0].size;
    out->proof = "the total is not a multiple of the size";
    if (total % shares[0].size != 0 || !start_at_minima(shares, n, left, arena, out)) {
        return HV_OK;
    }
    for (size_t i = 0; i < n; i++) {
        left -= shares[i].min;
    }
    if (n_pieces) {
        qsort(pieces, n_pieces, sizeof *pieces, by_slope);
    }
    for (size_t k = 0; k < n_pieces && left > 0; k++) {
        int64_t take = pieces[k].n < left ? pieces[k].n : left;
        out->count[pieces[k].share] += take;
        left -= take;
    }
    out->feasible = true;
    out->objective = 0;
    for (size_t i = 0; i < n; i++) {
        out->objective += hv__share_value(&shares[i], out->count[i]);
    }
    out->bound = out->objective;
    out->proof = "convex times: no count elsewhere would have cost less";
    return HV_OK;
}
