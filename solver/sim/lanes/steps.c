/*
 * Step functions (memory over time) with a range maximum: a pyramid with fan-out 8 of the largest
 * steps, so that the largest of any stretch is found in O(log n).
 */
#include "solver/sim/lanes/lanes.h"

#include <string.h>

enum { BLOCK = 8 };

/* ---- pyramid of the index of the largest value
 * ------------------------------------------------------- */

/* value of item i; ctx = the lane or the steps */
typedef double item_value(const void *ctx, uint32_t i);

static size_t n_blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

/* the values stand beside the indexes, so that a search reads neighbours in memory */
static struct hv_largest build_pyramid(struct hv_arena *a, const void *ctx, item_value *value,
                                       size_t n)
{
    size_t total = 0;
    for (size_t k = n_blocks(n);; k = n_blocks(k)) {
        total += k;
        if (k <= 1) {
            break;
        }
    }
    uint32_t *out = hv_arena_new(a, uint32_t, total + 1);
    double *values = hv_arena_new(a, double, total + 1);
    const uint32_t *below = NULL;
    size_t at = 0;
    for (size_t len = n; len > 0;) {
        size_t blocks = n_blocks(len);
        for (size_t b = 0; b < blocks; b++) {
            size_t end = (b + 1) * BLOCK < len ? (b + 1) * BLOCK : len;
            uint32_t best = below ? below[b * BLOCK] : (uint32_t)(b * BLOCK);
            for (size_t i = b * BLOCK + 1; i < end; i++) {
                uint32_t x = below ? below[i] : (uint32_t)i;
                best = value(ctx, x) > value(ctx, best) ? x : best;
            }
            out[at + b] = best;
            values[at + b] = value(ctx, best);
        }
        below = out + at;
        at += blocks;
        len = blocks > 1 ? blocks : 0;
    }
    return (struct hv_largest){out, values};
}

/* index of the largest value in [lo, hi), the first of equals; lo < hi */
static uint32_t query_pyramid(const void *ctx, item_value *value, struct hv_largest level, size_t n,
                              size_t lo, size_t hi)
{
    struct hv_largest below = {NULL, NULL};
    uint32_t best = UINT32_MAX;
    double most = 0;
    while (lo < hi) {
        size_t in_lo = n_blocks(lo), in_hi = hi / BLOCK;
        bool inner = in_lo < in_hi;
        for (size_t i = lo; i < hi; i++) {
            if (inner && i == in_lo * BLOCK) {
                i = in_hi * BLOCK;
                if (i >= hi) {
                    break;
                }
            }
            uint32_t x = below.index ? below.index[i] : (uint32_t)i;
            double v = below.index ? below.value[i] : value(ctx, x);
            if (best == UINT32_MAX || v > most || (!(v < most) && x < best)) {
                best = x;
                most = v;
            }
        }
        if (!inner) {
            break;
        }
        lo = in_lo;
        hi = in_hi;
        below = level;
        n = n_blocks(n);
        level.index += n;
        level.value += n;
    }
    return best;
}

/* ---- steps
 * ------------------------------------------------------------------------------------------- */

static double step_value(const void *ctx, uint32_t i)
{
    return ((const struct hv_steps *)ctx)->steps[i].bytes;
}

enum hv_status hv_steps_make(struct hv_arena *a, const struct hv_memory_step *steps, size_t n,
                             struct hv_steps *out, struct hv_err *err)
{
    for (size_t i = 1; i < n; i++) {
        if (!(steps[i].at_s >= steps[i - 1].at_s)) {
            return hv_err_set(err, HV_EUSAGE, "step %zu of a trace is before the one before it", i);
        }
    }
    *out = (struct hv_steps){.n = n};
    out->steps = hv_arena_copy(a, steps, n, sizeof *steps);
    out->largest = build_pyramid(a, out, step_value, n);
    return HV_OK;
}

/* number of steps at or before t (before t when `strict`) */
static size_t steps_until(const struct hv_steps *s, double t_s, bool strict)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strict ? s->steps[mid].at_s < t_s : s->steps[mid].at_s <= t_s) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

double hv_steps_at(const struct hv_steps *s, double t_s)
{
    size_t n = steps_until(s, t_s, false);
    return n > 0 ? s->steps[n - 1].bytes : 0;
}

double hv_steps_max(const struct hv_steps *s, double t0_s, double t1_s)
{
    double most = hv_steps_at(s, t0_s);
    size_t lo = steps_until(s, t0_s, false), hi = steps_until(s, t1_s, true);
    if (lo < hi) {
        double x = s->steps[query_pyramid(s, step_value, s->largest, s->n, lo, hi)].bytes;
        most = x > most ? x : most;
    }
    return most;
}
