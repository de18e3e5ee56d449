/*
 * Timelines with level of detail. What a column of a picture asks of a lane is read from tables, a
 * fixed number of entries each:
 *  - a grid of equal times leads to the block of 4 spans where a time lies;
 *  - a row per block, a line of memory where three kinds occur, holds its start, the busy time by
 *    kind before it, so that any stretch of whole blocks is a subtraction, and the longest span
 *    before and after it in its group of 8 blocks;
 *  - the longest span of every run of 1, 2, 4, … groups: two runs that overlap cover any stretch.
 * Only the spans of the blocks at both ends of a column are looked at one by one. Drawing belongs
 * to the painters.
 */
#include "solver/sim/lanes.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 4, GROUP = 8, LINE = 64, COLUMNS = 64 };

/* what a row holds, in doubles so that it lies together: the longest spans are told by length and
 * index */
enum { START, BEFORE, AFTER = BEFORE + 2, BUSY = AFTER + 2 };

static size_t n_blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

/* ---- building
 * ------------------------------------------------------------------------------------------- */

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

static double *row_of(const struct hv_lane *lane, size_t block)
{
    return lane->rows + block * (BUSY + lane->n_kinds);
}

/* the longer of two, the one on the left when they are equal */
static struct hv_longest longer(struct hv_longest left, struct hv_longest right)
{
    return right.length_s > left.length_s ? right : left;
}

static struct hv_longest read_longest(const double *of)
{
    return (struct hv_longest){of[0], (uint32_t)of[1]};
}

static void write_longest(double *of, struct hv_longest x)
{
    of[0] = x.length_s;
    of[1] = x.i_span;
}

static void make_blocks(struct hv_arena *a, struct hv_lane *lane)
{
    struct hv_longest *out = hv_arena_new(a, struct hv_longest, n_blocks(lane->n_spans) + 1);
    for (size_t i = 0; i < lane->n_spans; i++) {
        struct hv_longest *b = &out[i / BLOCK];
        double length_s = lane->spans[i].end_s - lane->spans[i].start_s;
        struct hv_longest x = {length_s, (uint32_t)i};
        *b = i % BLOCK == 0 ? x : longer(*b, x);
    }
    lane->of_block = out;
}

/* the longest before and after each block in its group; a length of -1 = none */
static void fill_longest(struct hv_lane *lane)
{
    size_t blocks = n_blocks(lane->n_spans);
    const struct hv_longest none = {-1, 0};
    struct hv_longest best = none;
    for (size_t b = 0; b <= blocks; b++) {
        best = b % GROUP == 0 ? none : longer(best, lane->of_block[b - 1]);
        write_longest(row_of(lane, b) + BEFORE, best);
    }
    write_longest(row_of(lane, blocks) + AFTER, none);
    for (size_t b = blocks; b-- > 0;) {
        best = b + 1 == blocks || (b + 1) % GROUP == 0 ? none : best;
        best = longer(lane->of_block[b], best);
        write_longest(row_of(lane, b) + AFTER, best);
    }
}

/* columns only for the kinds that occur, so that rows lie close together */
static void make_rows(struct hv_arena *a, struct hv_lane *lane)
{
    size_t blocks = n_blocks(lane->n_spans), kinds = 0;
    for (size_t i = 0; i < lane->n_spans; i++) {
        kinds = lane->spans[i].kind >= kinds ? lane->spans[i].kind + (size_t)1 : kinds;
    }
    lane->n_kinds = kinds;
    double *rows = hv_arena_new(a, double, (blocks + 1) * (BUSY + kinds) + LINE / sizeof *rows);
    while ((uintptr_t)rows % LINE != 0) {
        rows++;
    }
    lane->rows = rows;
    for (size_t i = 0; i < lane->n_spans; i++) {
        double *row = row_of(lane, i / BLOCK), *next = row_of(lane, i / BLOCK + 1);
        if (i % BLOCK == 0) {
            row[START] = lane->spans[i].start_s;
            memcpy(next + BUSY, row + BUSY, kinds * sizeof *next);
        }
        next[BUSY + lane->spans[i].kind] += lane->spans[i].end_s - lane->spans[i].start_s;
    }
    fill_longest(lane);
}

static double block_start(const struct hv_lane *lane, size_t block)
{
    return row_of(lane, block)[START];
}

/* cell of the grid that t lies in; never falls as t grows */
static size_t cell_of(const struct hv_lane *lane, double t_s)
{
    double x = (t_s - lane->spans[0].start_s) * lane->cells_per_s;
    size_t last = n_blocks(lane->n_spans) - 1;
    if (!(x > 0)) {
        return 0;
    }
    return x >= (double)last ? last : (size_t)x;
}

/* as many cells as blocks, from the first start to the last; one cell where they are all at once */
static const uint32_t *make_grid(struct hv_arena *a, struct hv_lane *lane)
{
    size_t blocks = n_blocks(lane->n_spans);
    uint32_t *first = hv_arena_new(a, uint32_t, blocks + 1);
    if (blocks > 0) {
        double wide = block_start(lane, blocks - 1) - block_start(lane, 0);
        double per_s = wide > 0 ? (double)blocks / wide : 0;
        lane->cells_per_s = isfinite(per_s) ? per_s : 0;
    }
    size_t cell = 0;
    for (size_t b = 0; b < blocks; b++) {
        for (size_t to = cell_of(lane, block_start(lane, b)); cell <= to; cell++) {
            first[cell] = (uint32_t)b;
        }
    }
    for (; cell <= blocks; cell++) {
        first[cell] = (uint32_t)blocks;
    }
    return first;
}

static size_t n_groups(const struct hv_lane *lane)
{
    return n_blocks(lane->n_spans) / GROUP; /* whole ones */
}

/* exponent of the largest power of two up to n; n > 0 */
static unsigned power_of(size_t n)
{
    unsigned k = 0;
    while (n >>= 1) {
        k++;
    }
    return k;
}

static void make_runs(struct hv_arena *a, struct hv_lane *lane)
{
    size_t groups = n_groups(lane), levels = groups > 0 ? power_of(groups) + (size_t)1 : 0;
    struct hv_longest *of_run = hv_arena_new(a, struct hv_longest, levels * groups + 1);
    for (size_t g = 0; g < groups; g++) {
        of_run[g] = read_longest(row_of(lane, g * GROUP) + AFTER);
    }
    for (size_t k = 1; k < levels; k++) {
        struct hv_longest *below = of_run + (k - 1) * groups, *level = of_run + k * groups;
        for (size_t g = 0; g + ((size_t)1 << k) <= groups; g++) {
            level[g] = longer(below[g], below[g + ((size_t)1 << (k - 1))]);
        }
    }
    lane->of_run = of_run;
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
    make_blocks(a, l);
    make_rows(a, l);
    l->grid = make_grid(a, l);
    make_runs(a, l);
    if (l->n_spans > 0 && l->spans[l->n_spans - 1].end_s > t->end_s) {
        t->end_s = l->spans[l->n_spans - 1].end_s;
    }
    return HV_OK;
}

/* ---- reading
 * ------------------------------------------------------------------------------------------- */

static bool is_before(const struct hv_lane *lane, size_t i, double t_s, bool by_start)
{
    const struct hv_span *s = &lane->spans[i];
    return by_start ? s->start_s < t_s : s->end_s <= t_s;
}

/* does the block's first span start before t (at t is before, unless `by_start`)? */
static bool block_before(const struct hv_lane *lane, size_t block, double t_s, bool by_start)
{
    double at = block_start(lane, block);
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
    size_t cell = cell_of(lane, t_s);
    size_t next = block_after(lane, lane->grid[cell], lane->grid[cell + 1], t_s, by_start);
    size_t i = next > 0 ? (next - 1) * BLOCK : 0;
    size_t end = next * BLOCK < lane->n_spans ? next * BLOCK : lane->n_spans;
    while (i < end && is_before(lane, i, t_s, by_start)) {
        i++;
    }
    return i;
}

/* the part of span i inside the window */
static double clipped(const struct hv_lane *lane, size_t i, double t0_s, double t1_s)
{
    double from = lane->spans[i].start_s, to = lane->spans[i].end_s;
    return (to < t1_s ? to : t1_s) - (from > t0_s ? from : t0_s);
}

/* what whole spans add up to */
struct whole {
    double busy_s[HV_SPAN_KINDS];
    struct hv_longest longest;
};

/* spans [lo, hi) one by one */
static void add_spans(const struct hv_lane *lane, size_t lo, size_t hi, struct whole *w)
{
    for (size_t i = lo; i < hi; i++) {
        double length_s = lane->spans[i].end_s - lane->spans[i].start_s;
        w->busy_s[lane->spans[i].kind] += length_s;
        w->longest = longer(w->longest, (struct hv_longest){length_s, (uint32_t)i});
    }
}

/* longest of the blocks [lo, hi), lo < hi */
static struct hv_longest longest_of_blocks(const struct hv_lane *lane, size_t lo, size_t hi)
{
    size_t from = lo / GROUP + 1, to = hi / GROUP;
    if (from > to) { /* all in one group */
        struct hv_longest best = lane->of_block[lo];
        for (size_t b = lo + 1; b < hi; b++) {
            best = longer(best, lane->of_block[b]);
        }
        return best;
    }
    struct hv_longest best = read_longest(row_of(lane, lo) + AFTER);
    if (from < to) {
        unsigned k = power_of(to - from);
        const struct hv_longest *level = lane->of_run + k * n_groups(lane);
        best = longer(best, longer(level[from], level[to - ((size_t)1 << k)]));
    }
    return longer(best, read_longest(row_of(lane, hi) + BEFORE));
}

/* adds the spans [lo, hi), all of them whole */
static void add_whole(const struct hv_lane *lane, size_t lo, size_t hi, struct whole *w)
{
    size_t in_lo = n_blocks(lo), in_hi = hi / BLOCK;
    if (in_lo >= in_hi) {
        add_spans(lane, lo, hi, w);
        return;
    }
    const double *from = row_of(lane, in_lo) + BUSY, *to = row_of(lane, in_hi) + BUSY;
    for (size_t k = 0; k < lane->n_kinds; k++) {
        w->busy_s[k] += to[k] - from[k];
    }
    add_spans(lane, lo, in_lo * BLOCK, w);
    w->longest = longer(w->longest, longest_of_blocks(lane, in_lo, in_hi));
    add_spans(lane, in_hi * BLOCK, hi, w);
}

/* what covers [t0, t1), which the spans [lo, hi) touch */
static struct hv_cover cover(const struct hv_lane *lane, size_t lo, size_t hi, double t0_s,
                             double t1_s)
{
    struct hv_cover c = {.kind = -1, .i_span = -1};
    if (lo >= hi || !(t1_s > t0_s)) {
        return c;
    }
    struct whole w = {.longest = {-1, 0}};
    double first_s = clipped(lane, lo, t0_s, t1_s), all = 0;
    struct hv_longest most = {first_s, (uint32_t)lo};
    w.busy_s[lane->spans[lo].kind] += first_s;
    if (hi - lo > 1) {
        double last_s = clipped(lane, hi - 1, t0_s, t1_s);
        w.busy_s[lane->spans[hi - 1].kind] += last_s;
        add_whole(lane, lo + 1, hi - 1, &w);
        most = longer(longer(most, w.longest), (struct hv_longest){last_s, (uint32_t)(hi - 1)});
    }
    c.n_spans = hi - lo;
    c.i_span = (int32_t)most.i_span;
    for (int k = 0; k < (int)lane->n_kinds; k++) {
        all += w.busy_s[k];
        if (w.busy_s[k] > 0 && (c.kind < 0 || w.busy_s[k] > w.busy_s[c.kind])) {
            c.kind = k;
        }
    }
    c.busy_frac = fmin(1, all / (t1_s - t0_s));
    c.kind_frac = c.kind < 0 ? 0 : fmin(1, w.busy_s[c.kind] / (t1_s - t0_s));
    return c;
}

struct hv_cover hv_lane_cover(const struct hv_lane *lane, double t0_s, double t1_s)
{
    return cover(lane, search(lane, t0_s, false), search(lane, t1_s, true), t0_s, t1_s);
}

/* ---- many windows
 * ------------------------------------------------------------------------------------------- */

/* Edges of windows that are searched together. Memory is far slower than all the rest, so every
 * step asks for what the next one will read, for all edges before it goes on. */
struct edges {
    const double *at_s;
    size_t n;
    size_t lo[COLUMNS + 1], hi[COLUMNS + 1]; /* of blocks; then first span that ends after the edge,
                                                and first one that starts at or after it */
};

static void find_cells(const struct hv_lane *lane, struct edges *e)
{
    for (size_t i = 0; i < e->n; i++) {
        e->lo[i] = cell_of(lane, e->at_s[i]);
        __builtin_prefetch(lane->grid + e->lo[i]);
    }
    for (size_t i = 0; i < e->n; i++) {
        e->hi[i] = lane->grid[e->lo[i] + 1];
        e->lo[i] = lane->grid[e->lo[i]];
        __builtin_prefetch(row_of(lane, e->lo[i]));
    }
}

/* the last block that starts at or before each edge */
static void find_blocks(const struct hv_lane *lane, struct edges *e)
{
    for (size_t i = 0; i < e->n; i++) {
        size_t block = block_after(lane, e->lo[i], e->hi[i], e->at_s[i], false);
        e->lo[i] = block > 0 ? block - 1 : 0;
        const char *spans = (const char *)(lane->spans + e->lo[i] * BLOCK);
        __builtin_prefetch(spans);
        __builtin_prefetch(spans + LINE);
        __builtin_prefetch(row_of(lane, e->lo[i] + 1));
    }
}

static void find_spans(const struct hv_lane *lane, struct edges *e)
{
    for (size_t k = 0; k < e->n; k++) {
        size_t i = e->lo[k] * BLOCK, end = i + BLOCK < lane->n_spans ? i + BLOCK : lane->n_spans;
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

/* the runs of groups that longest_of_blocks will look up */
static void find_runs(const struct hv_lane *lane, const struct edges *e)
{
    for (size_t i = 0; i + 1 < e->n; i++) {
        size_t from = e->lo[i] / (BLOCK * GROUP) + 1, to = e->hi[i + 1] / (BLOCK * GROUP);
        if (from < to) {
            unsigned k = power_of(to - from);
            const struct hv_longest *level = lane->of_run + k * n_groups(lane);
            __builtin_prefetch(level + from);
            __builtin_prefetch(level + to - ((size_t)1 << k));
        }
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
        find_runs(lane, &e);
        for (size_t i = 0; i < count; i++) {
            out[from + i] = cover(lane, e.lo[i], e.hi[i + 1], at_s[from + i], at_s[from + i + 1]);
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
