/*
 * Timelines with level of detail. What a column of a picture asks of a lane is read from a fixed
 * number of places, and what is asked together lies together, because waiting for memory is what a
 * picture of millions of spans costs:
 *  - a grid of equal times leads to the block of 4 spans where a time lies;
 *  - a block, two lines of memory where five kinds occur, holds the times of its spans, the busy
 *    time by kind before it, so that any stretch of whole blocks is a subtraction, and the longest
 *    span before and after it in its group of 8 blocks;
 *  - the longest span of every block, of every group, of every 8 groups, …: neighbours are read in
 *    a row.
 * Drawing belongs to the painters.
 */
#include "solver/sim/lanes.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 4, GROUP = 8, LINE = 64, COLUMNS = 64 };

/* a block of spans. Where the last one is not full, what is missing starts at infinity */
struct hv_lane_block {
    double start_s[BLOCK], end_s[BLOCK];
    double before_s, after_s;    /* longest before and after it in its group, -1 = none */
    uint8_t before_at, after_at; /* which that is, counted from the first span of the group */
    uint8_t kind[BLOCK];         /* of each span, as an index into the lane's kinds */
    double busy_s[];             /* by kind, before the block */
};

/* room for n objects at the start of a line of memory, not cleared when it has been used before */
static void *take(struct hv_arena *a, struct hv_lanes *t, size_t n, size_t size)
{
    size_t bytes = (n * size + LINE - 1) / LINE * LINE;
    if (bytes > t->left_bytes) {
        size_t least = bytes > t->taken_bytes ? bytes : t->taken_bytes;
        t->room = hv_arena_alloc(a, least + LINE, 1);
        t->room += (LINE - (uintptr_t)t->room % LINE) % LINE;
        t->left_bytes = least;
        t->taken_bytes += least;
    }
    void *p = t->room;
    t->room += bytes;
    t->left_bytes -= bytes;
    return p;
}

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

static struct hv_lane_block *block_at(const struct hv_lane_block *blocks, size_t stride, size_t i)
{
    return (struct hv_lane_block *)((uintptr_t)blocks + i * stride);
}

static const struct hv_lane_block *block_of(const struct hv_lane *lane, size_t i)
{
    return block_at(lane->blocks, lane->stride_bytes, i);
}

/* the longer of two, the first of equals */
static inline struct hv_longest longer(struct hv_longest x, struct hv_longest y)
{
    bool second = y.length_s > x.length_s || (y.length_s >= x.length_s && y.i_span < x.i_span);
    return second ? y : x;
}

static const struct hv_longest none = {-1, UINT32_MAX};

/* which kinds occur; index[kind] = where in the list */
static void find_kinds(struct hv_lane *lane, uint8_t *index)
{
    bool occurs[HV_SPAN_KINDS] = {false};
    for (size_t i = 0; i < lane->n_spans; i++) {
        occurs[lane->spans[i].kind] = true;
    }
    lane->n_kinds = 0;
    for (uint8_t k = 0; k < HV_SPAN_KINDS; k++) {
        index[k] = lane->n_kinds;
        lane->kinds[lane->n_kinds] = k;
        lane->n_kinds = (uint8_t)(lane->n_kinds + occurs[k]);
    }
}

/* times, kinds and sums; the longest of each block into out */
static void fill_block(const struct hv_lane *lane, size_t i, const uint8_t *index, double *busy_s,
                       struct hv_longest *out)
{
    struct hv_lane_block *b = block_at(lane->blocks, lane->stride_bytes, i);
    memcpy(b->busy_s, busy_s, lane->n_kinds * sizeof *busy_s);
    *out = none;
    for (size_t k = 0; k < BLOCK; k++) {
        size_t at = i * BLOCK + k;
        bool is_there = at < lane->n_spans;
        b->start_s[k] = is_there ? lane->spans[at].start_s : HUGE_VAL;
        b->end_s[k] = is_there ? lane->spans[at].end_s : HUGE_VAL;
        b->kind[k] = is_there ? index[lane->spans[at].kind] : 0;
        if (is_there) {
            double length_s = b->end_s[k] - b->start_s[k];
            busy_s[b->kind[k]] += length_s;
            *out = longer(*out, (struct hv_longest){length_s, (uint32_t)at});
        }
    }
}

/* the longest before and after each block in its group */
static void fill_longest(const struct hv_lane *lane, const struct hv_longest *of_block)
{
    size_t blocks = n_blocks(lane->n_spans);
    struct hv_longest best = none;
    for (size_t i = 0; i < blocks; i++) {
        struct hv_lane_block *b = block_at(lane->blocks, lane->stride_bytes, i);
        best = i % GROUP == 0 ? none : longer(best, of_block[i - 1]);
        b->before_s = best.length_s;
        b->before_at = (uint8_t)(best.i_span % (GROUP * BLOCK));
    }
    for (size_t i = blocks; i-- > 0;) {
        struct hv_lane_block *b = block_at(lane->blocks, lane->stride_bytes, i);
        best = i + 1 == blocks || (i + 1) % GROUP == 0 ? none : longer(of_block[i + 1], best);
        b->after_s = best.length_s;
        b->after_at = (uint8_t)(best.i_span % (GROUP * BLOCK));
    }
}

/* the longest of every block and of every GROUP of those below, level after level */
static size_t n_longest(size_t blocks)
{
    size_t sum = blocks;
    for (size_t n = blocks; n > 1; sum += n) {
        n = (n + GROUP - 1) / GROUP;
    }
    return sum;
}

static void make_blocks(struct hv_arena *a, struct hv_lanes *t, struct hv_lane *lane)
{
    size_t blocks = n_blocks(lane->n_spans);
    uint8_t index[HV_SPAN_KINDS];
    double busy_s[HV_SPAN_KINDS] = {0};
    find_kinds(lane, index);
    size_t bytes = sizeof(struct hv_lane_block) + lane->n_kinds * sizeof(double);
    lane->stride_bytes = (bytes + LINE - 1) / LINE * LINE;
    lane->blocks = take(a, t, blocks, lane->stride_bytes);
    struct hv_longest *longest = take(a, t, n_longest(blocks), sizeof *longest), *level = longest;
    for (size_t i = 0; i < blocks; i++) {
        fill_block(lane, i, index, busy_s, &longest[i]);
    }
    for (size_t n = blocks; n > 1; n = (n + GROUP - 1) / GROUP) {
        struct hv_longest *next = level + n;
        for (size_t i = 0; i < n; i++) {
            next[i / GROUP] = i % GROUP == 0 ? level[i] : longer(next[i / GROUP], level[i]);
        }
        level = next;
    }
    lane->longest = longest;
    fill_longest(lane, longest);
}

static double block_start(const struct hv_lane *lane, size_t block)
{
    return block_of(lane, block)->start_s[0];
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
static const uint32_t *make_grid(struct hv_arena *a, struct hv_lanes *t, struct hv_lane *lane)
{
    size_t blocks = n_blocks(lane->n_spans);
    uint32_t *first = take(a, t, blocks + 1, sizeof *first);
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
    struct hv_span *spans = take(a, t, lane->n_spans, sizeof *spans);
    if (lane->n_spans > 0) {
        memcpy(spans, lane->spans, lane->n_spans * sizeof *spans);
    }
    l->spans = spans;
    make_blocks(a, t, l);
    l->grid = make_grid(a, t, l);
    if (l->n_spans > 0 && l->spans[l->n_spans - 1].end_s > t->end_s) {
        t->end_s = l->spans[l->n_spans - 1].end_s;
    }
    return HV_OK;
}

/* ---- reading
 * ------------------------------------------------------------------------------------------- */

static double start_of(const struct hv_lane *lane, size_t i)
{
    return block_of(lane, i / BLOCK)->start_s[i % BLOCK];
}

static bool is_before(const struct hv_lane *lane, size_t i, double t_s, bool by_start)
{
    return by_start ? start_of(lane, i) < t_s : block_of(lane, i / BLOCK)->end_s[i % BLOCK] <= t_s;
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

/* the part of span k of a block that is inside the window */
static double clipped(const struct hv_lane_block *b, size_t k, double t0_s, double t1_s)
{
    double from = b->start_s[k], to = b->end_s[k];
    return (to < t1_s ? to : t1_s) - (from > t0_s ? from : t0_s);
}

/* what spans add up to */
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
        s->most = longer(s->most, (struct hv_longest){length_s, (uint32_t)(i * BLOCK + k)});
    }
}

static inline struct hv_longest longest_of_row(const struct hv_longest *x, size_t from, size_t to)
{
    struct hv_longest best = none;
    for (size_t i = from; i < to; i++) {
        best = longer(best, x[i]);
    }
    return best;
}

/* longest of the groups [lo, hi) */
static struct hv_longest longest_of_groups(const struct hv_lane *lane, size_t lo, size_t hi)
{
    struct hv_longest best = none;
    size_t n = n_blocks(lane->n_spans);
    const struct hv_longest *level = lane->longest;
    while (lo < hi) {
        level += n;
        n = (n + GROUP - 1) / GROUP;
        size_t up = (lo + GROUP - 1) / GROUP, down = hi / GROUP;
        if (up >= down) {
            return longer(best, longest_of_row(level, lo, hi));
        }
        best = longer(best, longest_of_row(level, lo, up * GROUP));
        best = longer(best, longest_of_row(level, down * GROUP, hi));
        lo = up;
        hi = down;
    }
    return best;
}

/* longest of the blocks between a and b, i and j their numbers, i + 1 < j */
static struct hv_longest longest_between(const struct hv_lane *lane, const struct hv_lane_block *a,
                                         size_t i, const struct hv_lane_block *b, size_t j)
{
    size_t left = i / GROUP, right = j / GROUP;
    if (left == right) {
        return longest_of_row(lane->longest, i + 1, j);
    }
    struct hv_longest x = {a->after_s, (uint32_t)(left * GROUP * BLOCK + a->after_at)};
    struct hv_longest y = {b->before_s, (uint32_t)(right * GROUP * BLOCK + b->before_at)};
    return longer(longer(x, y), longest_of_groups(lane, left + 1, right));
}

/* adds what is whole between span k of block i and span l of a later block j */
static void add_between(const struct hv_lane *lane, size_t i, size_t k, size_t j, size_t l,
                        struct sums *s)
{
    const struct hv_lane_block *a = block_of(lane, i), *b = block_of(lane, j);
    double length_s[BLOCK];
    for (size_t x = 0; x < BLOCK; x++) {
        length_s[x] = a->end_s[x] - a->start_s[x];
    }
    for (size_t kind = 0; kind < lane->n_kinds; kind++) {
        double before_s = a->busy_s[kind]; /* summed as block i + 1 was, so that nothing is left */
        for (size_t x = 0; x < BLOCK; x++) {
            before_s += a->kind[x] == kind ? length_s[x] : 0;
        }
        s->busy_s[kind] += b->busy_s[kind] - before_s;
    }
    add_spans(a, i, k + 1, BLOCK, s);
    add_spans(b, j, 0, l, s);
    if (i + 1 < j) {
        s->most = longer(s->most, longest_between(lane, a, i, b, j));
    }
}

/* what covers [t0, t1), which the spans [lo, hi) touch */
static struct hv_cover cover(const struct hv_lane *lane, size_t lo, size_t hi, double t0_s,
                             double t1_s)
{
    struct hv_cover c = {.kind = -1, .i_span = -1};
    if (lo >= hi || !(t1_s > t0_s)) {
        return c;
    }
    struct sums s = {.most = none};
    size_t last = hi - 1, i = lo / BLOCK, k = lo % BLOCK, j = last / BLOCK, l = last % BLOCK;
    const struct hv_lane_block *a = block_of(lane, i), *b = block_of(lane, j);
    s.most = (struct hv_longest){clipped(a, k, t0_s, t1_s), (uint32_t)lo};
    s.busy_s[a->kind[k]] += s.most.length_s;
    if (lo < last) {
        struct hv_longest x = {clipped(b, l, t0_s, t1_s), (uint32_t)last};
        s.busy_s[b->kind[l]] += x.length_s;
        s.most = longer(s.most, x);
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
        const char *block = (const char *)block_of(lane, e->lo[i]);
        __builtin_prefetch(block);
        __builtin_prefetch(block + LINE);
    }
}

/* the last block that starts at or before each edge */
static void find_blocks(const struct hv_lane *lane, struct edges *e)
{
    for (size_t i = 0; i < e->n; i++) {
        size_t next = block_after(lane, e->lo[i], e->hi[i], e->at_s[i], false);
        e->lo[i] = next > 0 ? next - 1 : 0;
        const char *block = (const char *)block_of(lane, e->lo[i]);
        __builtin_prefetch(block);
        __builtin_prefetch(block + LINE);
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
            __builtin_prefetch(lane->spans + (c->i_span < 0 ? 0 : c->i_span)); /* asked for next */
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
