/*
 * Making timelines with level of detail: spans are checked and copied, blocks, longest spans and
 * the grid of times are filled. Reading is in lanes.c.
 */
#include "solver/sim/lanes/lanes_int.h"

#include <math.h>
#include <string.h>

/* room for n objects at the start of a line of memory, not cleared when it has been used before */
static void *take(struct hv_arena *a, struct hv_lanes *t, size_t n, size_t size)
{
    size_t bytes = (n * size + HV__LANE_LINE - 1) / HV__LANE_LINE * HV__LANE_LINE;
    if (bytes > t->left_bytes) {
        size_t least = bytes > t->taken_bytes ? bytes : t->taken_bytes;
        t->room = hv_arena_alloc(a, least + HV__LANE_LINE, 1);
        t->room += (HV__LANE_LINE - (uintptr_t)t->room % HV__LANE_LINE) % HV__LANE_LINE;
        t->left_bytes = least;
        t->taken_bytes += least;
    }
    void *p = t->room;
    t->room += bytes;
    t->left_bytes -= bytes;
    return p;
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
    struct hv_lane_block *b = hv__lane_block_at(lane->blocks, lane->stride_bytes, i);
    memcpy(b->busy_s, busy_s, lane->n_kinds * sizeof *busy_s);
    *out = hv__lane_none;
    for (size_t k = 0; k < HV__LANE_BLOCK; k++) {
        size_t at = i * HV__LANE_BLOCK + k;
        bool is_there = at < lane->n_spans;
        b->start_s[k] = is_there ? lane->spans[at].start_s : HUGE_VAL;
        b->end_s[k] = is_there ? lane->spans[at].end_s : HUGE_VAL;
        b->kind[k] = is_there ? index[lane->spans[at].kind] : 0;
        if (is_there) {
            double length_s = b->end_s[k] - b->start_s[k];
            busy_s[b->kind[k]] += length_s;
            *out = hv__lane_longer(*out, (struct hv_longest){length_s, (uint32_t)at});
        }
    }
}

/* the longest before and after each block in its group */
static void fill_longest(const struct hv_lane *lane, const struct hv_longest *of_block)
{
    size_t blocks = hv__lane_n_blocks(lane->n_spans);
    struct hv_longest best = hv__lane_none;
    for (size_t i = 0; i < blocks; i++) {
        struct hv_lane_block *b = hv__lane_block_at(lane->blocks, lane->stride_bytes, i);
        best = i % HV__LANE_GROUP == 0 ? hv__lane_none : hv__lane_longer(best, of_block[i - 1]);
        b->before_s = best.length_s;
        b->before_at = (uint8_t)(best.i_span % (HV__LANE_GROUP * HV__LANE_BLOCK));
    }
    for (size_t i = blocks; i-- > 0;) {
        struct hv_lane_block *b = hv__lane_block_at(lane->blocks, lane->stride_bytes, i);
        best = i + 1 == blocks || (i + 1) % HV__LANE_GROUP == 0
                   ? hv__lane_none
                   : hv__lane_longer(of_block[i + 1], best);
        b->after_s = best.length_s;
        b->after_at = (uint8_t)(best.i_span % (HV__LANE_GROUP * HV__LANE_BLOCK));
    }
}

/* the longest of every block and of every HV__LANE_GROUP of those below, level after level */
static size_t n_longest(size_t blocks)
{
    size_t sum = blocks;
    for (size_t n = blocks; n > 1; sum += n) {
        n = (n + HV__LANE_GROUP - 1) / HV__LANE_GROUP;
    }
    return sum;
}

static void make_blocks(struct hv_arena *a, struct hv_lanes *t, struct hv_lane *lane)
{
    size_t blocks = hv__lane_n_blocks(lane->n_spans);
    uint8_t index[HV_SPAN_KINDS];
    double busy_s[HV_SPAN_KINDS] = {0};
    find_kinds(lane, index);
    size_t bytes = sizeof(struct hv_lane_block) + lane->n_kinds * sizeof(double);
    lane->stride_bytes = (bytes + HV__LANE_LINE - 1) / HV__LANE_LINE * HV__LANE_LINE;
    lane->blocks = take(a, t, blocks, lane->stride_bytes);
    struct hv_longest *longest = take(a, t, n_longest(blocks), sizeof *longest), *level = longest;
    for (size_t i = 0; i < blocks; i++) {
        fill_block(lane, i, index, busy_s, &longest[i]);
    }
    for (size_t n = blocks; n > 1; n = (n + HV__LANE_GROUP - 1) / HV__LANE_GROUP) {
        struct hv_longest *next = level + n;
        for (size_t i = 0; i < n; i++) {
            next[i / HV__LANE_GROUP] = i % HV__LANE_GROUP == 0
                                           ? level[i]
                                           : hv__lane_longer(next[i / HV__LANE_GROUP], level[i]);
        }
        level = next;
    }
    lane->longest = longest;
    fill_longest(lane, longest);
}

/* as many cells as blocks, from the first start to the last; one cell where they are all at once */
static const uint32_t *make_grid(struct hv_arena *a, struct hv_lanes *t, struct hv_lane *lane)
{
    size_t blocks = hv__lane_n_blocks(lane->n_spans);
    uint32_t *first = take(a, t, blocks + 1, sizeof *first);
    if (blocks > 0) {
        double wide = hv__lane_block_start(lane, blocks - 1) - hv__lane_block_start(lane, 0);
        double per_s = wide > 0 ? (double)blocks / wide : 0;
        lane->cells_per_s = isfinite(per_s) ? per_s : 0;
    }
    size_t cell = 0;
    for (size_t b = 0; b < blocks; b++) {
        for (size_t to = hv__lane_cell_of(lane, hv__lane_block_start(lane, b)); cell <= to;
             cell++) {
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
