/*
 * Integer distribution: the least sum of times, one unit of count after the other where it costs
 * least.
 */
#include "solver/base/units.h"
#include "solver/optim/batch/distribute_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    for (size_t k = hv__share_point(s, from); k + 1 < s->n_points && from < max; k++) {
        int64_t to = s->points[k + 1].count < max ? s->points[k + 1].count : max;
        double slope = hv__share_slope(s, k), before = k ? hv__share_slope(s, k - 1) : 0;
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

/* Assigns the counts above the minima to the pieces with the least cost. */
static void give_rest(struct piece *pieces, size_t n, int64_t left, int64_t *count)
{
    if (n) {
        qsort(pieces, n, sizeof *pieces, by_slope);
    }
    for (size_t k = 0; k < n && left > 0; k++) {
        int64_t take = pieces[k].n < left ? pieces[k].n : left;
        count[pieces[k].share] += take;
        left -= take;
    }
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
    give_rest(pieces, n_pieces, left, out->count);
    out->feasible = true;
    out->objective = 0;
    for (size_t i = 0; i < n; i++) {
        out->objective += hv__share_value(&shares[i], out->count[i]);
    }
    out->bound = out->objective;
    out->proof = "convex times: no count elsewhere would have cost less";
    return HV_OK;
}
