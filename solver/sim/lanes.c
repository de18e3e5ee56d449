/*
 * Timelines with level of detail. A lane keeps, for every block of 8 spans, the busy time by kind
 * that lies before it (so that any stretch of whole blocks is a subtraction), and a pyramid with
 * fan-out 8 of the longest spans (so that the longest of any stretch is found in O(log n)).
 * Drawing belongs to the painters.
 */
#include "solver/sim/lanes.h"

#include <math.h>
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

/* ---- lanes
 * ------------------------------------------------------------------------------------------- */

static double span_length(const void *ctx, uint32_t i)
{
    const struct hv_span *s = &((const struct hv_lane *)ctx)->spans[i];
    return s->end_s - s->start_s;
}

static enum hv_status check_spans(const struct hv_lane *lane, struct hv_err *err)
{
    for (size_t i = 0; i < lane->n_spans; i++) {
        const struct hv_span *s = &lane->spans[i];
        if (!(s->end_s >= s->start_s) || s->kind >= HV_SPAN_KINDS || !isfinite(s->start_s) ||
            !isfinite(s->end_s)) {
            return hv_err_set(err, HV_EUSAGE, "lane %s, span %zu: runs backwards or has no kind",
                              lane->name, i);
        }
        if (i > 0 && s->start_s < lane->spans[i - 1].end_s) {
            return hv_err_set(err, HV_EUSAGE, "lane %s, span %zu: overlaps the one before it",
                              lane->name, i);
        }
    }
    return HV_OK;
}

/* columns only for the kinds that occur, so that rows lie close together */
static double *busy_table(struct hv_arena *a, struct hv_lane *lane)
{
    size_t blocks = n_blocks(lane->n_spans), kinds = 0;
    for (size_t i = 0; i < lane->n_spans; i++) {
        kinds = lane->spans[i].kind >= kinds ? lane->spans[i].kind + (size_t)1 : kinds;
    }
    lane->n_kinds = kinds;
    double *table = hv_arena_new(a, double, (blocks + 1) * kinds);
    for (size_t i = 0; i < lane->n_spans; i++) {
        double *next = table + (i / BLOCK + 1) * kinds;
        if (i % BLOCK == 0) {
            memmove(next, next - kinds, kinds * sizeof *next);
        }
        next[lane->spans[i].kind] += lane->spans[i].end_s - lane->spans[i].start_s;
    }
    return table;
}

enum hv_status hv_lanes_add(struct hv_arena *a, struct hv_lanes *t, const struct hv_lane *lane,
                            struct hv_err *err)
{
    if (lane->n_spans > (size_t)INT32_MAX) {
        return hv_err_set(err, HV_ELIMIT, "lane %s: more than %d spans", lane->name, INT32_MAX);
    }
    enum hv_status st = check_spans(lane, err);
    if (st != HV_OK) {
        return st;
    }
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 16;
        struct hv_lane *items = hv_arena_new(a, struct hv_lane, cap);
        if (t->n > 0) {
            memcpy(items, t->items, t->n * sizeof *items);
        }
        t->items = items;
        t->cap = cap;
    }
    struct hv_lane *l = &t->items[t->n++];
    *l = *lane;
    l->spans = hv_arena_copy(a, lane->spans, lane->n_spans, sizeof *lane->spans);
    l->busy_before_s = busy_table(a, l);
    double *starts = hv_arena_new(a, double, n_blocks(l->n_spans) + 1);
    for (size_t i = 0; i < l->n_spans; i += BLOCK) {
        starts[i / BLOCK] = l->spans[i].start_s;
    }
    l->block_start_s = starts;
    l->longest = build_pyramid(a, l, span_length, l->n_spans);
    if (l->n_spans > 0 && l->spans[l->n_spans - 1].end_s > t->end_s) {
        t->end_s = l->spans[l->n_spans - 1].end_s;
    }
    return HV_OK;
}

static bool is_before(const struct hv_lane *lane, size_t i, double t_s, bool by_start)
{
    const struct hv_span *s = &lane->spans[i];
    return by_start ? s->start_s < t_s : s->end_s <= t_s;
}

/* does the block's first span start before t (at t is before, unless `by_start`)? */
static bool block_before(const struct hv_lane *lane, size_t block, double t_s, bool by_start)
{
    double at = lane->block_start_s[block];
    return by_start ? at < t_s : at <= t_s;
}

/* first span from `lo` on that ends after t (or starts at or after it, when `by_start`); all before
 * lo are known to be before t. First over the starts of blocks, which stand together in memory, in
 * steps that double until they are beyond, so that near is cheap; then inside the block */
static size_t search_from(const struct hv_lane *lane, size_t from, double t_s, bool by_start)
{
    size_t blocks = n_blocks(lane->n_spans), lo = from / BLOCK, hi = lo + 1, step = 1;
    while (hi < blocks && block_before(lane, hi, t_s, by_start)) {
        lo = hi;
        hi = blocks - hi > step ? hi + step : blocks;
        step *= 2;
    }
    while (lo + 1 < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (mid < blocks && block_before(lane, mid, t_s, by_start)) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    size_t i = lo * BLOCK > from ? lo * BLOCK : from;
    size_t end = (lo + 1) * BLOCK < lane->n_spans ? (lo + 1) * BLOCK : lane->n_spans;
    while (i < end && is_before(lane, i, t_s, by_start)) {
        i++;
    }
    return i;
}

static size_t search(const struct hv_lane *lane, double t_s, bool by_start)
{
    return search_from(lane, 0, t_s, by_start);
}

/* adds the busy time by kind of the spans [lo, hi), all of them whole */
static void add_busy(const struct hv_lane *lane, size_t lo, size_t hi, double *busy)
{
    size_t in_lo = n_blocks(lo), in_hi = hi / BLOCK;
    bool inner = in_lo < in_hi;
    for (size_t k = 0; inner && k < lane->n_kinds; k++) {
        busy[k] += lane->busy_before_s[in_hi * lane->n_kinds + k] -
                   lane->busy_before_s[in_lo * lane->n_kinds + k];
    }
    for (size_t i = lo; i < hi; i++) {
        if (inner && i == in_lo * BLOCK) {
            i = in_hi * BLOCK;
            if (i >= hi) {
                break;
            }
        }
        busy[lane->spans[i].kind] += lane->spans[i].end_s - lane->spans[i].start_s;
    }
}

/* the part of span i inside the window */
static double clipped(const struct hv_lane *lane, size_t i, double t0_s, double t1_s)
{
    double from = lane->spans[i].start_s, to = lane->spans[i].end_s;
    return (to < t1_s ? to : t1_s) - (from > t0_s ? from : t0_s);
}

/* the span that covers most: a clipped one at either side, or the longest between */
static int32_t biggest(const struct hv_lane *lane, size_t lo, size_t hi, double t0_s, double t1_s)
{
    size_t best = lo;
    if (hi - lo > 2) {
        size_t mid = query_pyramid(lane, span_length, lane->longest, lane->n_spans, lo + 1, hi - 1);
        best = clipped(lane, mid, t0_s, t1_s) > clipped(lane, best, t0_s, t1_s) ? mid : best;
    }
    if (clipped(lane, hi - 1, t0_s, t1_s) > clipped(lane, best, t0_s, t1_s)) {
        best = hi - 1;
    }
    return (int32_t)best;
}

/* what covers [t0, t1), which the spans [lo, hi) touch */
static struct hv_cover cover(const struct hv_lane *lane, size_t lo, size_t hi, double t0_s,
                             double t1_s)
{
    struct hv_cover c = {.kind = -1, .i_span = -1};
    if (lo >= hi || !(t1_s > t0_s)) {
        return c;
    }
    double busy[HV_SPAN_KINDS] = {0}, all = 0;
    c.n_spans = hi - lo;
    c.i_span = biggest(lane, lo, hi, t0_s, t1_s);
    busy[lane->spans[lo].kind] += clipped(lane, lo, t0_s, t1_s);
    if (hi - lo > 1) {
        busy[lane->spans[hi - 1].kind] += clipped(lane, hi - 1, t0_s, t1_s);
        add_busy(lane, lo + 1, hi - 1, busy);
    }
    for (int k = 0; k < (int)lane->n_kinds; k++) {
        all += busy[k];
        if (busy[k] > 0 && (c.kind < 0 || busy[k] > busy[c.kind])) {
            c.kind = k;
        }
    }
    c.busy_frac = fmin(1, all / (t1_s - t0_s));
    c.kind_frac = c.kind < 0 ? 0 : fmin(1, busy[c.kind] / (t1_s - t0_s));
    return c;
}

struct hv_cover hv_lane_cover(const struct hv_lane *lane, double t0_s, double t1_s)
{
    return cover(lane, search(lane, t0_s, false), search(lane, t1_s, true), t0_s, t1_s);
}

struct hv_cover hv_lane_cover_next(const struct hv_lane *lane, double t0_s, double t1_s,
                                   size_t *cursor)
{
    size_t lo = *cursor < lane->n_spans ? *cursor : lane->n_spans;
    if (lo > 0 && lane->spans[lo - 1].end_s > t0_s) {
        lo = 0;
    }
    lo = lo == 0 ? search(lane, t0_s, false) : search_from(lane, lo, t0_s, false);
    size_t hi = search_from(lane, lo, t1_s, true);
    *cursor = hi > 0 && hi > lo ? hi - 1 : lo; /* the last may reach into the next window */
    return cover(lane, lo, hi, t0_s, t1_s);
}

int32_t hv_lane_at(const struct hv_lane *lane, double t_s)
{
    size_t i = search(lane, t_s, false);
    return i < lane->n_spans && lane->spans[i].start_s <= t_s ? (int32_t)i : -1;
}

int32_t hv_lane_next(const struct hv_lane *lane, double t_s)
{
    size_t i = search(lane, t_s, true);
    while (i < lane->n_spans && lane->spans[i].start_s <= t_s) {
        i++; /* spans of no length may share one start */
    }
    return i < lane->n_spans ? (int32_t)i : -1;
}

int32_t hv_lane_prev(const struct hv_lane *lane, double t_s)
{
    return (int32_t)search(lane, t_s, true) - 1;
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
