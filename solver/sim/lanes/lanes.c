/*
 * Timelines with level of detail. A column of a picture reads a fixed number of places of a lane,
 * and places that are read together lie together, because access to memory dominates the time of a
 * picture of millions of spans:
 *  - a grid of equal times leads to the block of 4 spans where a time lies;
 *  - a block, two lines of memory where five kinds occur, holds the times of its spans, the busy
 *    time by kind before it, so that any stretch of whole blocks is a subtraction, and the longest
 *    span before and after it in its group of 8 blocks;
 *  - the longest span of every block, of every group, of every 8 groups, …: neighbours are read in
 *    a row.
 * Drawing belongs to the painters.
 */
#include "solver/sim/lanes/lanes_int.h"

#include <math.h>

enum { COLUMNS = 64 };

static double start_of(const struct hv_lane *lane, size_t i)
{
    return hv__lane_block_of(lane, i / HV__LANE_BLOCK)->start_s[i % HV__LANE_BLOCK];
}

static bool is_before(const struct hv_lane *lane, size_t i, double t_s, bool by_start)
{
    return by_start ? start_of(lane, i) < t_s
                    : hv__lane_block_of(lane, i / HV__LANE_BLOCK)->end_s[i % HV__LANE_BLOCK] <= t_s;
}

/* true where the block's first span starts before t (a start at t counts, unless `by_start`) */
static bool block_before(const struct hv_lane *lane, size_t block, double t_s, bool by_start)
{
    double at = hv__lane_block_start(lane, block);
    return by_start ? at < t_s : at <= t_s;
}

/* first of the blocks [lo, hi) that is not before t */
static size_t block_after(const struct hv_lane *lane, size_t lo, size_t hi, double t_s,
                          bool by_start)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (block_before(lane, mid, t_s, by_start)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* first span that ends after t (or starts at or after it, when `by_start`): the cell of the grid,
 * the last block in it that starts before t, its spans */
static size_t search(const struct hv_lane *lane, double t_s, bool by_start)
{
    if (lane->n_spans == 0) {
        return 0;
    }
    size_t cell = hv__lane_cell_of(lane, t_s);
    size_t next = block_after(lane, lane->grid[cell], lane->grid[cell + 1], t_s, by_start);
    size_t i = next > 0 ? (next - 1) * HV__LANE_BLOCK : 0;
    size_t end = next * HV__LANE_BLOCK < lane->n_spans ? next * HV__LANE_BLOCK : lane->n_spans;
    while (i < end && is_before(lane, i, t_s, by_start)) {
        i++;
    }
    return i;
}

/* the part of span k of a block that is inside the window */
static double clipped(const struct hv_lane_block *b, size_t k, double t0_s, double t1_s)
{
    double from = b->start_s[k], to = b->end_s[k];
    return (to < t1_s ? to : t1_s) - (from > t0_s ? from : t0_s);
}

/* sums over spans */
struct sums {
    double busy_s[HV_SPAN_KINDS]; /* by index into the lane's kinds */
    struct hv_longest most;
};

/* whole spans [from, to) of block i */
static inline void add_spans(const struct hv_lane_block *b, size_t i, size_t from, size_t to,
                             struct sums *s)
{
    for (size_t k = from; k < to; k++) {
        double length_s = b->end_s[k] - b->start_s[k];
        s->busy_s[b->kind[k]] += length_s;
        s->most = hv__lane_longer(
            s->most, (struct hv_longest){length_s, (uint32_t)(i * HV__LANE_BLOCK + k)});
    }
}

static inline struct hv_longest longest_of_row(const struct hv_longest *x, size_t from, size_t to)
{
    struct hv_longest best = hv__lane_none;
    for (size_t i = from; i < to; i++) {
        best = hv__lane_longer(best, x[i]);
    }
    return best;
}

/* longest of the groups [lo, hi) */
static struct hv_longest longest_of_groups(const struct hv_lane *lane, size_t lo, size_t hi)
{
    struct hv_longest best = hv__lane_none;
    size_t n = hv__lane_n_blocks(lane->n_spans);
    const struct hv_longest *level = lane->longest;
    while (lo < hi) {
        level += n;
        n = (n + HV__LANE_GROUP - 1) / HV__LANE_GROUP;
        size_t up = (lo + HV__LANE_GROUP - 1) / HV__LANE_GROUP, down = hi / HV__LANE_GROUP;
        if (up >= down) {
            return hv__lane_longer(best, longest_of_row(level, lo, hi));
        }
        best = hv__lane_longer(best, longest_of_row(level, lo, up * HV__LANE_GROUP));
        best = hv__lane_longer(best, longest_of_row(level, down * HV__LANE_GROUP, hi));
        lo = up;
        hi = down;
    }
    return best;
}

/* longest of the blocks between a and b, i and j their numbers, i + 1 < j */
static struct hv_longest longest_between(const struct hv_lane *lane, const struct hv_lane_block *a,
                                         size_t i, const struct hv_lane_block *b, size_t j)
{
    size_t left = i / HV__LANE_GROUP, right = j / HV__LANE_GROUP;
    if (left == right) {
        return longest_of_row(lane->longest, i + 1, j);
    }
    struct hv_longest x = {a->after_s,
                           (uint32_t)(left * HV__LANE_GROUP * HV__LANE_BLOCK + a->after_at)};
    struct hv_longest y = {b->before_s,
                           (uint32_t)(right * HV__LANE_GROUP * HV__LANE_BLOCK + b->before_at)};
    return hv__lane_longer(hv__lane_longer(x, y), longest_of_groups(lane, left + 1, right));
}

/* adds the whole spans between span k of block i and span l of a later block j */
static void add_between(const struct hv_lane *lane, size_t i, size_t k, size_t j, size_t l,
                        struct sums *s)
{
    const struct hv_lane_block *a = hv__lane_block_of(lane, i), *b = hv__lane_block_of(lane, j);
    double length_s[HV__LANE_BLOCK];
    for (size_t x = 0; x < HV__LANE_BLOCK; x++) {
        length_s[x] = a->end_s[x] - a->start_s[x];
    }
    for (size_t kind = 0; kind < lane->n_kinds; kind++) {
        double before_s = a->busy_s[kind]; /* summed as block i + 1 was, so that nothing is left */
        for (size_t x = 0; x < HV__LANE_BLOCK; x++) {
            before_s += a->kind[x] == kind ? length_s[x] : 0;
        }
        s->busy_s[kind] += b->busy_s[kind] - before_s;
    }
    add_spans(a, i, k + 1, HV__LANE_BLOCK, s);
    add_spans(b, j, 0, l, s);
    if (i + 1 < j) {
        s->most = hv__lane_longer(s->most, longest_between(lane, a, i, b, j));
    }
}

/* the cover of [t0, t1), which the spans [lo, hi) touch */
static struct hv_cover cover(const struct hv_lane *lane, size_t lo, size_t hi, double t0_s,
                             double t1_s)
{
    struct hv_cover c = {.kind = -1, .i_span = -1};
    if (lo >= hi || !(t1_s > t0_s)) {
        return c;
    }
    struct sums s = {.most = hv__lane_none};
    size_t last = hi - 1, i = lo / HV__LANE_BLOCK, k = lo % HV__LANE_BLOCK,
           j = last / HV__LANE_BLOCK, l = last % HV__LANE_BLOCK;
    const struct hv_lane_block *a = hv__lane_block_of(lane, i), *b = hv__lane_block_of(lane, j);
    s.most = (struct hv_longest){clipped(a, k, t0_s, t1_s), (uint32_t)lo};
    s.busy_s[a->kind[k]] += s.most.length_s;
    if (lo < last) {
        struct hv_longest x = {clipped(b, l, t0_s, t1_s), (uint32_t)last};
        s.busy_s[b->kind[l]] += x.length_s;
        s.most = hv__lane_longer(s.most, x);
        if (i == j) {
            add_spans(a, i, k + 1, l, &s);
        } else {
            add_between(lane, i, k, j, l, &s);
        }
    }
    double all_s = 0, most_s = 0;
    for (size_t x = 0; x < lane->n_kinds; x++) {
        all_s += s.busy_s[x];
        if (s.busy_s[x] > most_s) {
            most_s = s.busy_s[x];
            c.kind = lane->kinds[x];
        }
    }
    c.n_spans = hi - lo;
    c.i_span = (int32_t)s.most.i_span;
    c.busy_frac = fmin(1, all_s / (t1_s - t0_s));
    c.kind_frac = fmin(1, most_s / (t1_s - t0_s));
    return c;
}

/* ---- many windows
 * ------------------------------------------------------------------------------------------- */

/* Edges of windows that are searched together. Memory access dominates the time, so every step
 * prefetches the data of the next step for all edges before the next step begins. */
struct edges {
    const double *at_s;
    size_t n;
    size_t lo[COLUMNS + 1], hi[COLUMNS + 1]; /* of blocks; then first span that ends after the edge,
                                                and first one that starts at or after it */
};

static void find_cells(const struct hv_lane *lane, struct edges *e)
{
    for (size_t i = 0; i < e->n; i++) {
        e->lo[i] = hv__lane_cell_of(lane, e->at_s[i]);
        __builtin_prefetch(lane->grid + e->lo[i]);
    }
    for (size_t i = 0; i < e->n; i++) {
        e->hi[i] = lane->grid[e->lo[i] + 1];
        e->lo[i] = lane->grid[e->lo[i]];
        const char *block = (const char *)hv__lane_block_of(lane, e->lo[i]);
        __builtin_prefetch(block);
        __builtin_prefetch(block + HV__LANE_LINE);
    }
}

/* the last block that starts at or before each edge */
static void find_blocks(const struct hv_lane *lane, struct edges *e)
{
    for (size_t i = 0; i < e->n; i++) {
        size_t next = block_after(lane, e->lo[i], e->hi[i], e->at_s[i], false);
        e->lo[i] = next > 0 ? next - 1 : 0;
        const char *block = (const char *)hv__lane_block_of(lane, e->lo[i]);
        __builtin_prefetch(block);
        __builtin_prefetch(block + HV__LANE_LINE);
    }
}

static void find_spans(const struct hv_lane *lane, struct edges *e)
{
    for (size_t k = 0; k < e->n; k++) {
        size_t i = e->lo[k] * HV__LANE_BLOCK,
               end = i + HV__LANE_BLOCK < lane->n_spans ? i + HV__LANE_BLOCK : lane->n_spans;
        while (i < end && is_before(lane, i, e->at_s[k], false)) {
            i++;
        }
        e->lo[k] = i;
        i += i < lane->n_spans && is_before(lane, i, e->at_s[k], true);
        while (i > 0 && !is_before(lane, i - 1, e->at_s[k], true)) {
            i--; /* spans of no length at the edge */
        }
        e->hi[k] = i;
    }
}

void hv_lane_columns(const struct hv_lane *lane, const double *at_s, size_t n, struct hv_cover *out)
{
    for (size_t from = 0; from < n; from += COLUMNS) {
        size_t count = n - from < COLUMNS ? n - from : COLUMNS;
        struct edges e = {.at_s = at_s + from, .n = lane->n_spans > 0 ? count + 1 : 0};
        find_cells(lane, &e);
        find_blocks(lane, &e);
        find_spans(lane, &e);
        for (size_t i = 0; i < count; i++) {
            struct hv_cover *c = &out[from + i];
            *c = cover(lane, e.lo[i], e.hi[i + 1], at_s[from + i], at_s[from + i + 1]);
            __builtin_prefetch(lane->spans + (c->i_span < 0 ? 0 : c->i_span)); /* for next step */
        }
    }
}

/* busy time by kind before a time, `first` the first span that ends after it */
static void busy_before(const struct hv_lane *lane, double t_s, size_t first, double *out_s)
{
    bool is_end = first >= lane->n_spans;
    size_t i = (is_end ? lane->n_spans - 1 : first) / HV__LANE_BLOCK;
    size_t in_block = first - i * HV__LANE_BLOCK;
    const struct hv_lane_block *b = hv__lane_block_of(lane, i);
    for (size_t k = 0; k < lane->n_kinds; k++) {
        out_s[k] = b->busy_s[k];
    }
    for (size_t k = 0; k < in_block; k++) {
        out_s[b->kind[k]] += b->end_s[k] - b->start_s[k];
    }
    if (!is_end && b->start_s[in_block] < t_s) {
        out_s[b->kind[in_block]] += t_s - b->start_s[in_block];
    }
}

void hv_lane_busy(const struct hv_lane *lane, const double *at_s, size_t n, double *busy_s)
{
    size_t kinds = lane->n_kinds;
    double before[HV_SPAN_KINDS], after[HV_SPAN_KINDS];
    for (size_t from = 0; lane->n_spans > 0 && from < n; from += COLUMNS) {
        size_t count = n - from < COLUMNS ? n - from : COLUMNS;
        struct edges e = {.at_s = at_s + from, .n = count + 1};
        find_cells(lane, &e);
        find_blocks(lane, &e);
        find_spans(lane, &e);
        busy_before(lane, e.at_s[0], e.lo[0], before);
        for (size_t i = 0; i < count; i++) {
            busy_before(lane, e.at_s[i + 1], e.lo[i + 1], after);
            for (size_t k = 0; k < kinds; k++) {
                busy_s[(from + i) * kinds + k] = fmax(0, after[k] - before[k]);
                before[k] = after[k];
            }
        }
    }
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
