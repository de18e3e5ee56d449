/** Ends of the transfers of a timeline. A transfer has the stage and the micro-batch of the
 * operation that sends it; the receiver works on the same micro-batch in the same direction. */
#include "solver/io/export/trace_flow.h"

#include <stdlib.h>

/** An operation on a row, in one direction. */
struct work {
    size_t row;
    bool backward;
    int32_t micro_batch, slice;
    const struct hv_span *span;
};

struct hv__flows {
    const struct hv_timeline *t;
    struct work *items;
    size_t n;
};

/** Times that differ by less are equal: ends and starts are computed apart. */
#define SAME_S 1e-9

static int compare_keys(const struct work *a, const struct work *b)
{
    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    if (a->backward != b->backward) {
        return a->backward ? 1 : -1;
    }
    if (a->micro_batch != b->micro_batch) {
        return a->micro_batch < b->micro_batch ? -1 : 1;
    }
    return (a->slice > b->slice) - (a->slice < b->slice);
}

static int compare_works(const void *x, const void *y)
{
    const struct work *a = x, *b = y;
    int order = compare_keys(a, b);
    return order ? order
                 : (a->span->start_s > b->span->start_s) - (a->span->start_s < b->span->start_s);
}

/** Adds an operation; both halves of an overlapped pair, in either direction, are found. */
static void add_work(struct hv__flows *f, size_t row, const struct hv_span *s)
{
    const struct hv_timeline_op *op = &f->t->ops[s->id];
    bool pair = op->kind == HV_SPAN_PAIR, forward = op->kind == HV_SPAN_F;
    bool backward = op->kind == HV_SPAN_B || op->kind == HV_SPAN_BW;
    for (int back = 0; back < 2; back++) {
        if (pair || (back ? backward : forward)) {
            f->items[f->n++] = (struct work){row, back, op->micro_batch, op->slice, s};
        }
        if (pair) {
            f->items[f->n++] = (struct work){row, back, op->paired, op->slice, s};
        }
    }
}

struct hv__flows *hv__flows_new(struct hv_arena *arena, const struct hv_timeline *t)
{
    struct hv__flows *f = hv_arena_new(arena, struct hv__flows, 1);
    size_t n = 0;
    for (size_t i = 0; i < t->n_rows; i++) {
        n += t->lanes.items[t->rows[i].compute_lane].n_spans;
    }
    *f = (struct hv__flows){.t = t, .items = hv_arena_new(arena, struct work, 4 * n + 1)};
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct hv_lane *l = &t->lanes.items[t->rows[i].compute_lane];
        for (size_t s = 0; s < l->n_spans; s++) {
            add_work(f, i, &l->spans[s]);
        }
    }
    if (f->n > 1) {
        qsort(f->items, f->n, sizeof *f->items, compare_works);
    }
    return f;
}

/** The first operation with the key of a transfer at one of its ends. */
static size_t first_of(const struct hv__flows *f, const struct work *key)
{
    size_t lo = 0, hi = f->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_keys(&f->items[mid], key) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static struct work key_of(const struct hv__flows *f, const struct hv_span *hop, bool to)
{
    const struct hv_timeline_op *op = &f->t->ops[hop->id];
    const struct hv_timeline_hop *h = &f->t->hops[op->paired];
    const struct hv_timeline_link *link = &f->t->links[h->i_link];
    return (struct work){to ? link->to_row : link->from_row, h->backward, op->micro_batch,
                         op->slice, NULL};
}

const struct hv_span *hv__flow_from(const struct hv__flows *f, const struct hv_span *hop)
{
    struct work key = key_of(f, hop, false);
    const struct hv_span *best = NULL;
    int32_t stage = f->t->ops[hop->id].stage;
    for (size_t i = first_of(f, &key); i < f->n && compare_keys(&f->items[i], &key) == 0; i++) {
        const struct hv_span *s = f->items[i].span;
        const struct hv_timeline_op *op = &f->t->ops[s->id];
        bool same = op->kind == HV_SPAN_PAIR || op->stage == stage;
        if (same && s->end_s <= hop->start_s + SAME_S && (!best || s->end_s >= best->end_s)) {
            best = s;
        }
    }
    return best;
}

const struct hv_span *hv__flow_to(const struct hv__flows *f, const struct hv_span *hop)
{
    struct work key = key_of(f, hop, true);
    for (size_t i = first_of(f, &key); i < f->n && compare_keys(&f->items[i], &key) == 0; i++) {
        if (f->items[i].span->start_s >= hop->end_s - SAME_S) {
            return f->items[i].span;
        }
    }
    return NULL;
}
