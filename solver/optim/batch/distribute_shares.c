/*
 * A share of a distribution: whether it is valid, and its time by count, on a line or on a curve
 * through points.
 */
#include "solver/optim/batch/distribute_int.h"
#include <math.h>

/* Checks the points of share number i (from 0), where it has any. Errors: HV_EINPUT. */
static enum hv_status check_points(const struct hv_share *s, size_t i, struct hv_err *err)
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

enum hv_status hv_distribute_check(const struct hv_share *shares, size_t n, int64_t total,
                                   struct hv_err *err)
{
    if (n == 0) {
        return hv_err_set(err, HV_EINPUT, "expected at least one share");
    }
    if (n > HV_DISTRIBUTE_MAX_SHARES || total > HV_DISTRIBUTE_MAX_TOTAL) {
        return hv_err_set(err, HV_ELIMIT, "at most %zu shares and a total of %lld",
                          HV_DISTRIBUTE_MAX_SHARES, (long long)HV_DISTRIBUTE_MAX_TOTAL);
    }
    if (total < 0) {
        return hv_err_set(err, HV_EINPUT, "expected a total that is not negative");
    }
    for (size_t i = 0; i < n; i++) {
        const struct hv_share *s = &shares[i];
        if (!isfinite(s->fixed) || !isfinite(s->rate) || s->fixed < 0 || s->rate < 0) {
            return hv_err_set(err, HV_EINPUT,
                              "share %zu: expected finite times that are not negative", i + 1);
        }
        if (s->size < 1 || s->size > HV_DISTRIBUTE_MAX_TOTAL) {
            return hv_err_set(err, HV_EINPUT, "share %zu: expected a size of at least 1", i + 1);
        }
        if (s->min < 0 || s->min > s->max || s->min > HV_DISTRIBUTE_MAX_TOTAL) {
            return hv_err_set(err, HV_EINPUT, "share %zu: expected 0 <= min <= max", i + 1);
        }
        enum hv_status st = check_points(s, i, err);
        if (st != HV_OK) {
            return st;
        }
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

double hv__share_slope(const struct hv_share *s, size_t k)
{
    const struct hv_share_point *p = &s->points[k];
    return k + 1 < s->n_points ? (p[1].time - p[0].time) / (double)(p[1].count - p[0].count) : 0;
}

size_t hv__share_point(const struct hv_share *s, int64_t count)
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
    double v = p->time + (double)(count - p->count) * hv__share_slope(s, k);
    return k + 1 < s->n_points ? fmin(v, p[1].time) : v;
}

double hv__share_value(const struct hv_share *s, int64_t count)
{
    return s->points ? value_on(s, hv__share_point(s, count), count)
                     : s->fixed + (double)count * s->rate;
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
        double more = (t - s->points[lo].time) / hv__share_slope(s, lo);
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
