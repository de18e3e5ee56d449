/*
 * Integer distribution in proportion to weights. Not here: least maximum (distribute.c).
 */
#include "solver/base/units.h"
#include "solver/optim/batch/distribute_int.h"
#include <math.h>
#include <string.h>

/* Fixes the shares whose proportion lies outside their limits; returns false when none does. */
static bool fix_outside(const struct hv_share *s, size_t n, double each, int64_t *count,
                        bool *fixed)
{
    double above = 0, below = 0;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        double x = each * s[i].rate;
        above += fixed[i] ? 0 : fmax(0, x - (double)s[i].max);
        below += fixed[i] ? 0 : fmax(0, (double)s[i].min - x);
    }
    for (size_t i = 0; i < n; i++) {
        double x = each * s[i].rate;
        bool hit = above >= below ? x > (double)s[i].max : x < (double)s[i].min;
        if (fixed[i] || !hit) {
            continue;
        }
        fixed[i] = any = true;
        count[i] = above >= below ? s[i].max : s[i].min;
    }
    return any;
}

/* Whole parts, then one more each by falling remainder, lowest index first. */
static void round_shares(const struct hv_share *s, size_t n, double each, int64_t left,
                         struct hv_distribution *out, const bool *fixed)
{
    for (size_t i = 0; i < n; i++) {
        if (fixed[i]) {
            continue;
        }
        double x = each * s[i].rate, whole = floor(x + 1e-9);
        out->count[i] = (int64_t)fmin(fmax(whole, (double)s[i].min), (double)s[i].max);
        left -= out->count[i];
    }
    for (int64_t round = left; round != 0; round += round > 0 ? -1 : 1) {
        size_t best = n;
        double most = -HUGE_VAL;
        for (size_t i = 0; i < n; i++) {
            int64_t next = out->count[i] + (round > 0 ? 1 : -1);
            if (s[i].rate <= 0 || next > s[i].max || next < s[i].min) {
                continue;
            }
            double gain = (round > 0 ? 1 : -1) * (each * s[i].rate - (double)out->count[i]);
            if (gain > most + 1e-12) {
                most = gain;
                best = i;
            }
        }
        if (best == n) {
            out->feasible = false;
            return;
        }
        out->count[best] += round > 0 ? 1 : -1;
    }
}

enum hv_status hv_distribute_ratio(const struct hv_share *shares, size_t n, int64_t total,
                                   struct hv_arena *arena, struct hv_distribution *out,
                                   struct hv_err *err)
{
    memset(out, 0, sizeof *out);
    out->objective = out->bound = HV_UNKNOWN;
    out->method = "largest-remainder";
    out->proof = "proportions rounded; no optimum is claimed";
    enum hv_status st = hv_distribute_check(shares, n, total, err);
    if (st != HV_OK) {
        return st;
    }
    double all = 0, each = 0, weight;
    bool *fixed = hv_arena_new(arena, bool, n), again = true;
    int64_t left = total;
    out->count = hv_arena_new(arena, int64_t, n);
    for (size_t i = 0; i < n; i++) {
        if (shares[i].size != 1 || shares[i].points) {
            return hv_err_set(err, HV_EINPUT,
                              "share %zu: proportions need sizes of 1 and no curves", i + 1);
        }
        all += shares[i].rate;
    }
    while (again) {
        left = total;
        weight = 0;
        for (size_t i = 0; i < n; i++) {
            left -= fixed[i] ? out->count[i] : 0;
            weight += fixed[i] ? 0 : shares[i].rate;
        }
        each = weight > 0 ? (double)left / weight : 0;
        again = fix_outside(shares, n, each, out->count, fixed);
    }
    out->feasible = true;
    round_shares(shares, n, each, left, out, fixed);
    out->objective = 0;
    for (size_t i = 0; i < n && all > 0; i++) {
        out->objective = fmax(out->objective,
                              fabs((double)out->count[i] - (double)total * shares[i].rate / all));
    }
    if (!out->feasible) {
        out->objective = HV_UNKNOWN;
    }
    return HV_OK;
}
