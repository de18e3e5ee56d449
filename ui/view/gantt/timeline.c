/** Adapter from solver/eval's timeline to the painter; no drawing here. */
#include "ui/view/gantt/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"

static enum hv_gantt_kind painted_kind(int kind)
{
    static const enum hv_gantt_kind map[HV_SPAN_KIND_N] = {
        [HV_SPAN_F] = HV_GANTT_F,         [HV_SPAN_B] = HV_GANTT_B,
        [HV_SPAN_W] = HV_GANTT_W,         [HV_SPAN_BW] = HV_GANTT_B,
        [HV_SPAN_R] = HV_GANTT_R,         [HV_SPAN_PAIR] = HV_GANTT_B,
        [HV_SPAN_HOP] = HV_GANTT_COMM,    [HV_SPAN_SYNC] = HV_GANTT_COMM,
        [HV_SPAN_LEAVE] = HV_GANTT_COMM,  [HV_SPAN_RETURN] = HV_GANTT_COMM,
        [HV_SPAN_GATHER] = HV_GANTT_COMM, [HV_SPAN_OPT] = HV_GANTT_OTHER,
        [HV_SPAN_STEP] = HV_GANTT_OTHER,  [HV_SPAN_WHOLE] = HV_GANTT_COMM,
        [HV_SPAN_SCATTER] = HV_GANTT_COMM};
    return map[kind];
}

static struct hv_gantt_span convert(const struct hv_span *s)
{
    return (struct hv_gantt_span){.start_s = s->start_s,
                                  .end_s = s->end_s,
                                  .id = s->id,
                                  .micro_batch = s->item,
                                  .stage = s->group,
                                  .kind = painted_kind(s->kind),
                                  .critical = (s->flags & HV_SPAN_CRITICAL) != 0};
}

static const struct hv_lane *lane_of(const struct hv_timeline *t, size_t row, bool link)
{
    return &t->lanes.items[link ? t->rows[row].link_lane : t->rows[row].compute_lane];
}

static void source_lane(const void *ctx, size_t lane, struct hv_gantt_lane *out)
{
    const struct hv_timeline *t = ctx;
    *out = (struct hv_gantt_lane){.name = t->rows[lane].name, .sublabel = t->rows[lane].layers};
}

/** Columns per batch of queries, so that their cache misses overlap. */
#define TOGETHER 64

/** Fills the empty ones of at most TOGETHER columns from one lane. */
static void fill_columns(const struct hv_lane *lane, const double *at_s, size_t n,
                         struct hv_gantt_cover *out)
{
    struct hv_cover covers[TOGETHER];
    hv_lane_columns(lane, at_s, n, covers);
    for (size_t i = 0; i < n; i++) {
        if (covers[i].i_span >= 0) {
            __builtin_prefetch(&lane->spans[covers[i].i_span]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct hv_cover *c = &covers[i];
        if (c->i_span >= 0 && out[i].n_spans == 0) {
            out[i] = (struct hv_gantt_cover){.span = convert(&lane->spans[c->i_span]),
                                             .busy_frac = c->busy_frac,
                                             .n_spans = c->n_spans};
        }
    }
}

/** Adds one lane of a row to the columns filled so far. */
static void add_columns(const struct hv_lane *lane, const double *at_s, size_t n,
                        struct hv_gantt_cover *out)
{
    for (size_t from = 0; lane->n_spans > 0 && from < n; from += TOGETHER) {
        fill_columns(lane, at_s + from, n - from < TOGETHER ? n - from : TOGETHER, out + from);
    }
}

/** The compute lane where it has an operation, else the link lane. */
static void source_columns(const void *ctx, size_t lane, const double *at_s, size_t n,
                           struct hv_gantt_cover *out)
{
    memset(out, 0, n * sizeof *out);
    add_columns(lane_of(ctx, lane, 0), at_s, n, out);
    add_columns(lane_of(ctx, lane, 1), at_s, n, out);
}

/* ---- what is seen: the compute lane, and the link lane where that is idle ---- */

/** Spans of a lane that touch [t0, t1): number `first` and the next n - 1. */
struct touched {
    size_t first, n;
};

static struct touched spans_in(const struct hv_lane *l, double t0_s, double t1_s)
{
    int32_t at = hv_lane_at(l, t0_s), after = hv_lane_next(l, t0_s), last = hv_lane_prev(l, t1_s);
    int32_t first = at >= 0 ? at : after;
    return first < 0 || last < first ? (struct touched){0}
                                     : (struct touched){(size_t)first, (size_t)(last - first) + 1};
}

/** Adds the shares of a lane. */
static void add_shares(const struct hv_lane *lane, const double *at_s, size_t n, double *out)
{
    double busy_s[TOGETHER * HV_SPAN_KINDS];
    for (size_t from = 0; lane->n_spans > 0 && from < n; from += TOGETHER) {
        size_t count = n - from < TOGETHER ? n - from : TOGETHER;
        hv_lane_busy(lane, at_s + from, count, busy_s);
        for (size_t i = from; i < from + count; i++) {
            for (size_t k = 0; k < lane->n_kinds; k++) {
                out[i * HV_GANTT_KIND_N + painted_kind(lane->kinds[k])] +=
                    busy_s[(i - from) * lane->n_kinds + k] / (at_s[i + 1] - at_s[i]);
            }
        }
    }
}

/** First of n windows that ends after t. */
static size_t window_at(const double *at_s, size_t n, double t_s)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (at_s[mid + 1] <= t_s) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/** Adds the shares of one span in which the compute lane is idle. */
static void add_free_part(const struct hv_lane *compute, const struct hv_span *s,
                          const double *at_s, size_t n, double *out)
{
    double busy_s[HV_SPAN_KINDS] = {0};
    for (size_t i = window_at(at_s, n, s->start_s); i < n && at_s[i] < s->end_s; i++) {
        double part[] = {fmax(s->start_s, at_s[i]), fmin(s->end_s, at_s[i + 1])};
        double free_s = part[1] - part[0];
        hv_lane_busy(compute, part, 1, busy_s);
        for (size_t k = 0; compute->n_spans > 0 && k < compute->n_kinds; k++) {
            free_s -= busy_s[k];
        }
        if (free_s > 0) {
            out[i * HV_GANTT_KIND_N + painted_kind(s->kind)] += free_s / (at_s[i + 1] - at_s[i]);
        }
    }
}

/** Most spans of a link lane that are compared with the compute lane one by one. */
#define MOST_FREE_PARTS 2000

/** Adds the shares of the link lane where the compute lane is idle. Where it has very many spans,
 * as much as there is idle time. */
static void add_free_shares(const struct hv_lane *compute, const struct hv_lane *link,
                            const double *at_s, size_t n, double *out)
{
    struct touched in = spans_in(link, at_s[0], at_s[n]);
    if (in.n <= MOST_FREE_PARTS) {
        for (size_t i = in.first; i < in.first + in.n; i++) {
            add_free_part(compute, &link->spans[i], at_s, n, out);
        }
        return;
    }
    double *more = hv_xcalloc(n * HV_GANTT_KIND_N, sizeof *more);
    add_shares(link, at_s, n, more);
    for (size_t i = 0; i < n; i++) {
        double *here = out + i * HV_GANTT_KIND_N, idle = 1, sum = 0;
        for (size_t k = 0; k < HV_GANTT_KIND_N; k++) {
            idle -= here[k];
            sum += more[i * HV_GANTT_KIND_N + k];
        }
        for (size_t k = 0; k < HV_GANTT_KIND_N && sum > 0; k++) {
            here[k] += more[i * HV_GANTT_KIND_N + k] * fmin(1, fmax(0, idle) / sum);
        }
    }
    free(more);
}

static void source_shares(const void *ctx, size_t lane, const double *at_s, size_t n, double *out)
{
    const struct hv_lane *compute = lane_of(ctx, lane, 0), *link = lane_of(ctx, lane, 1);
    memset(out, 0, n * HV_GANTT_KIND_N * sizeof *out);
    add_shares(compute, at_s, n, out);
    if (link->n_spans > 0) {
        add_free_shares(compute, link, at_s, n, out);
    }
}

/** Spans read one after the other from those of a lane that touch a window. */
struct cursor {
    const struct hv_span *spans;
    size_t n;
};

/** Spans written so far. */
struct written {
    struct hv_gantt_span *out;
    size_t n;
};

/** Writes [from, to) of a span. */
static void put_part(struct written *w, const struct hv_span *s, double from_s, double to_s)
{
    if (to_s > from_s) {
        w->out[w->n] = convert(s);
        w->out[w->n].start_s = from_s;
        w->out[w->n++].end_s = to_s;
    }
}

/** Writes what lies of the link's spans in [from, to), where nothing is computed. */
static void fill_gap(struct cursor *link, double from_s, double to_s, struct written *w)
{
    for (; link->n > 0 && link->spans->start_s < to_s; link->spans++, link->n--) {
        const struct hv_span *s = link->spans;
        put_part(w, s, fmax(from_s, s->start_s), fmin(to_s, s->end_s));
        if (s->end_s > to_s) { /* the rest of it may come after the next operation */
            return;
        }
    }
}

static size_t source_spans(const void *ctx, size_t lane, double t0_s, double t1_s, size_t most,
                           struct hv_gantt_span *out, size_t *n_out)
{
    const struct hv_lane *compute = lane_of(ctx, lane, 0), *link = lane_of(ctx, lane, 1);
    struct touched a = spans_in(compute, t0_s, t1_s), b = spans_in(link, t0_s, t1_s);
    struct written w = {.out = out};
    if (a.n + b.n <= most) {
        struct cursor rest = {link->spans + b.first, b.n};
        double at_s = t0_s;
        for (size_t i = a.first; i < a.first + a.n; i++) {
            const struct hv_span *s = &compute->spans[i];
            fill_gap(&rest, at_s, s->start_s, &w);
            out[w.n++] = convert(s);
            at_s = s->end_s;
        }
        fill_gap(&rest, at_s, HUGE_VAL, &w);
    }
    *n_out = w.n;
    return a.n + b.n;
}

static bool source_at(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_timeline *t = ctx;
    for (int link = 0; link < 2; link++) {
        const struct hv_lane *l = lane_of(t, lane, link);
        int32_t i = hv_lane_at(l, t_s);
        if (i >= 0) {
            *out = convert(&l->spans[i]);
            return true;
        }
    }
    return false;
}

/** Next (or previous) start on the compute lane, else on the link lane. */
static bool source_step(const struct hv_timeline *t, size_t lane, double t_s, bool forward,
                        struct hv_gantt_span *out)
{
    for (int link = 0; link < 2; link++) {
        const struct hv_lane *l = lane_of(t, lane, link);
        int32_t i = forward ? hv_lane_next(l, t_s) : hv_lane_prev(l, t_s);
        if (i >= 0) {
            *out = convert(&l->spans[i]);
            return true;
        }
    }
    return false;
}

static bool source_next(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    return source_step(ctx, lane, t_s, true, out);
}

static bool source_prev(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    return source_step(ctx, lane, t_s, false, out);
}

/* Reads the spans one by one: a million of them are some milliseconds. */
static bool seek_lane(const struct hv_lane *l, double t_s, const struct hv_gantt_wanted *w,
                      struct hv_gantt_span *out)
{
    int32_t i = w->back ? hv_lane_prev(l, t_s) : hv_lane_next(l, t_s);
    for (; i >= 0 && (size_t)i < l->n_spans; i += w->back ? -1 : 1) {
        const struct hv_span *s = &l->spans[i];
        if (w->back ? s->start_s < w->until_s : s->start_s > w->until_s) {
            return false;
        }
        if (s->item == w->micro_batch && (w->kind < 0 || (int)painted_kind(s->kind) == w->kind)) {
            *out = convert(s);
            return true;
        }
    }
    return false;
}

/** In the order of stepping: the compute lane to its end, then later operations of the link
 * lane. */
static bool source_seek(const void *ctx, size_t lane, double t_s, const struct hv_gantt_wanted *w,
                        struct hv_gantt_span *out)
{
    const struct hv_lane *l = lane_of(ctx, lane, 0);
    if (seek_lane(l, t_s, w, out)) {
        return true;
    }
    if (l->n_spans > 0) {
        double last_s = l->spans[w->back ? 0 : l->n_spans - 1].start_s;
        t_s = w->back ? fmin(t_s, last_s) : fmax(t_s, last_s);
    }
    return seek_lane(lane_of(ctx, lane, 1), t_s, w, out);
}

static double source_memory(const void *ctx, size_t lane, double t0_s, double t1_s)
{
    const struct hv_timeline *t = ctx;
    return hv_steps_max(&t->rows[lane].memory, t0_s, t1_s);
}

static double source_limit(const void *ctx, size_t lane)
{
    const struct hv_timeline *t = ctx;
    return t->rows[lane].memory_limit_bytes;
}

/* ---- the critical path ---- */

/** Pieces of the path that are looked at in one window, evenly spread where there are more. */
#define PIECES 64

/** Rows that hold pieces of a window, and how long. */
struct holders {
    int32_t row[PIECES];
    double s[PIECES];
    size_t n;
};

static void add_holder(struct holders *h, int32_t row, double s)
{
    size_t i = 0;
    while (i < h->n && h->row[i] != row) {
        i++;
    }
    h->s[i] = (i < h->n ? h->s[i] : 0) + s;
    h->row[i] = row;
    h->n += i == h->n;
}

static struct hv_gantt_holder holder_of(const struct hv_timeline *t, int32_t row, double frac)
{
    return (struct hv_gantt_holder){
        .row = row, .stage = row >= 0 ? (int32_t)t->rows[row].stage : -1, .frac = frac};
}

static struct hv_gantt_holder holder_in(const struct hv_timeline *t, double t0_s, double t1_s)
{
    const struct hv_lane *path = &t->path.lanes.items[0];
    struct touched in = spans_in(path, t0_s, t1_s);
    struct holders h = {.n = 0};
    size_t looked = in.n < PIECES ? in.n : PIECES, best = 0;
    double sum = 0;
    for (size_t k = 0; k < looked; k++) {
        const struct hv_span *s = &path->spans[in.first + k * in.n / looked];
        double part = fmin(s->end_s, t1_s) - fmax(s->start_s, t0_s);
        add_holder(&h, s->group, fmax(0, part));
        sum += fmax(0, part);
    }
    if (!(sum > 0)) {
        return (struct hv_gantt_holder){.row = -2, .stage = -1};
    }
    for (size_t i = 1; i < h.n; i++) {
        best = h.s[i] > h.s[best] ? i : best;
    }
    double covered = looked < in.n ? 1 : sum / (t1_s - t0_s);
    return holder_of(t, h.row[best], h.s[best] / sum * covered);
}

static void source_path(const void *ctx, const double *at_s, size_t n, struct hv_gantt_holder *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = holder_in(ctx, at_s[i], at_s[i + 1]);
    }
}

static int32_t source_path_row(const void *ctx, size_t lane)
{
    (void)ctx;
    return (int32_t)lane;
}

/** Who holds the most of the whole path. O(rows). */
static struct hv_gantt_holder most_of_path(const struct hv_timeline *t)
{
    int32_t best = -1;
    double most_s = t->path.links_s;
    for (size_t i = 0; i < t->n_rows; i++) {
        if (t->path.row_s[i] > most_s) {
            most_s = t->path.row_s[i];
            best = (int32_t)i;
        }
    }
    return holder_of(t, best, t->end_s > 0 ? most_s / t->end_s : 0);
}

/** Adds the path to a source, where the timeline has one. */
static void set_path(const struct hv_timeline *t, struct hv_gantt_source *src,
                     void (*path)(const void *, const double *, size_t, struct hv_gantt_holder *),
                     int32_t (*path_row)(const void *, size_t))
{
    if (t->path.lanes.n > 0) {
        src->path = path;
        src->path_row = path_row;
        src->path_most = most_of_path(t);
    }
}

struct hv_gantt_source hv_gantt_timeline_source(const struct hv_timeline *t)
{
    struct hv_gantt_source src = {.ctx = t,
                                  .n_lanes = t->n_rows,
                                  .end_s = t->end_s,
                                  .lane = source_lane,
                                  .columns = source_columns,
                                  .shares = source_shares,
                                  .spans = source_spans,
                                  .at = source_at,
                                  .next = source_next,
                                  .prev = source_prev,
                                  .seek = source_seek,
                                  .memory_max_bytes = source_memory,
                                  .memory_limit_bytes = source_limit};
    set_path(t, &src, source_path, source_path_row);
    return src;
}

/* ---- lines of a row one below the other ---- */

static const struct hv_timeline_row *row_of(const struct hv_timeline_tracks *k, size_t i)
{
    return &k->timeline->rows[k->items[i].row];
}

/** The subset of dp ranks of a line, or NULL. */
static const struct hv_timeline_part *part_of(const struct hv_timeline_tracks *k, size_t i)
{
    const struct hv_timeline_track *x = &k->items[i];
    return x->kind == HV_TRACK_PART ? &row_of(k, i)->parts[x->index] : NULL;
}

/** The one lane of a line that shows one. */
static const struct hv_lane *track_lane(const struct hv_timeline_tracks *k, size_t i)
{
    const struct hv_timeline *t = k->timeline;
    const struct hv_timeline_track *x = &k->items[i];
    return &t->lanes.items[x->kind == HV_TRACK_HOPS   ? t->links[x->index].lane
                           : x->kind == HV_TRACK_SYNC ? row_of(k, i)->link_lane
                                                      : row_of(k, i)->compute_lane];
}

static void track_lane_info(const void *ctx, size_t lane, struct hv_gantt_lane *out)
{
    const struct hv_timeline_tracks *k = ctx;
    const struct hv_timeline_track *x = &k->items[lane];
    switch (x->kind) {
    case HV_TRACK_ALL:
    case HV_TRACK_COMPUTE:
        source_lane(k->timeline, x->row, out);
        break;
    case HV_TRACK_PART:
        *out = (struct hv_gantt_lane){.name = part_of(k, lane)->name};
        break;
    case HV_TRACK_SYNC:
        *out = (struct hv_gantt_lane){.name = "  sync"};
        break;
    case HV_TRACK_HOPS:
        *out = (struct hv_gantt_lane){.name = k->timeline->links[x->index].name};
        break;
    }
}

/** Restricts the spans of a row in [from, to) to a subset of its dp ranks. */
static void cut_to_part(const struct hv_timeline_tracks *k, size_t lane, const struct hv_span *s,
                        double from_s, double to_s, struct hv_gantt_cover *out)
{
    double end = hv_timeline_part_end_s(k->timeline, part_of(k, lane), s);
    double begin = s->start_s > from_s ? s->start_s : from_s;
    double whole = (s->end_s < to_s ? s->end_s : to_s) - begin;
    double part = (end < to_s ? end : to_s) - begin;
    if (out->n_spans > 1) { /* several spans: all are treated like the longest */
        whole = s->end_s - s->start_s;
        part = end - s->start_s;
    }
    out->span.end_s = end;
    out->busy_frac *= part > 0 && whole > 0 ? part / whole : 0;
    out->n_spans = out->busy_frac > 0 ? out->n_spans : 0;
}

static void track_columns(const void *ctx, size_t lane, const double *at_s, size_t n,
                          struct hv_gantt_cover *out)
{
    const struct hv_timeline_tracks *k = ctx;
    if (k->items[lane].kind == HV_TRACK_ALL) {
        source_columns(k->timeline, k->items[lane].row, at_s, n, out);
        return;
    }
    memset(out, 0, n * sizeof *out);
    add_columns(track_lane(k, lane), at_s, n, out);
    for (size_t i = 0; part_of(k, lane) != NULL && i < n; i++) {
        if (out[i].n_spans > 0) {
            const struct hv_gantt_span *s = &out[i].span;
            cut_to_part(
                k, lane,
                &(struct hv_span){.start_s = s->start_s, .end_s = s->end_s, .id = (int32_t)s->id},
                at_s[i], at_s[i + 1], &out[i]);
        }
    }
}

/** Span i of a line, as that line shows it. */
static bool take_span(const struct hv_timeline_tracks *k, size_t lane, int32_t i,
                      struct hv_gantt_span *out)
{
    if (i < 0) {
        return false;
    }
    const struct hv_span *s = &track_lane(k, lane)->spans[i];
    *out = convert(s);
    if (part_of(k, lane) != NULL) {
        out->end_s = hv_timeline_part_end_s(k->timeline, part_of(k, lane), s);
    }
    return true;
}

/** Shares of a part of the dp ranks: in each window all spans are cut as the longest is. */
static void cut_shares(const struct hv_timeline_tracks *k, size_t lane, const double *at_s,
                       size_t n, double *out)
{
    struct hv_gantt_cover whole, part;
    for (size_t i = 0; i < n; i++) {
        whole = part = (struct hv_gantt_cover){0};
        add_columns(track_lane(k, lane), at_s + i, 1, &whole);
        track_columns(k, lane, at_s + i, 1, &part);
        for (size_t kind = 0; kind < HV_GANTT_KIND_N; kind++) {
            double *share = &out[i * HV_GANTT_KIND_N + kind];
            *share = whole.busy_frac > 0 ? *share * part.busy_frac / whole.busy_frac : 0;
        }
    }
}

static void track_shares(const void *ctx, size_t lane, const double *at_s, size_t n, double *out)
{
    const struct hv_timeline_tracks *k = ctx;
    if (k->items[lane].kind == HV_TRACK_ALL) {
        source_shares(k->timeline, k->items[lane].row, at_s, n, out);
        return;
    }
    memset(out, 0, n * HV_GANTT_KIND_N * sizeof *out);
    add_shares(track_lane(k, lane), at_s, n, out);
    if (part_of(k, lane) != NULL) {
        cut_shares(k, lane, at_s, n, out);
    }
}

static size_t track_spans(const void *ctx, size_t lane, double t0_s, double t1_s, size_t most,
                          struct hv_gantt_span *out, size_t *n_out)
{
    const struct hv_timeline_tracks *k = ctx;
    if (k->items[lane].kind == HV_TRACK_ALL) {
        return source_spans(k->timeline, k->items[lane].row, t0_s, t1_s, most, out, n_out);
    }
    struct touched in = spans_in(track_lane(k, lane), t0_s, t1_s);
    *n_out = in.n <= most ? in.n : 0;
    for (size_t i = 0; i < *n_out; i++) {
        (void)take_span(k, lane, (int32_t)(in.first + i), &out[i]);
    }
    return in.n;
}

static bool track_at(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_timeline_tracks *k = ctx;
    if (k->items[lane].kind == HV_TRACK_ALL) {
        return source_at(k->timeline, k->items[lane].row, t_s, out);
    }
    return take_span(k, lane, hv_lane_at(track_lane(k, lane), t_s), out) && t_s < out->end_s;
}

static bool track_next(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_timeline_tracks *k = ctx;
    return k->items[lane].kind == HV_TRACK_ALL
               ? source_next(k->timeline, k->items[lane].row, t_s, out)
               : take_span(k, lane, hv_lane_next(track_lane(k, lane), t_s), out);
}

static bool track_seek(const void *ctx, size_t lane, double t_s, const struct hv_gantt_wanted *w,
                       struct hv_gantt_span *out)
{
    const struct hv_timeline_tracks *k = ctx;
    if (k->items[lane].kind == HV_TRACK_ALL) {
        return source_seek(k->timeline, k->items[lane].row, t_s, w, out);
    }
    bool found = seek_lane(track_lane(k, lane), t_s, w, out);
    if (found && part_of(k, lane) != NULL) {
        const struct hv_span s = {
            .start_s = out->start_s, .end_s = out->end_s, .id = (int32_t)out->id};
        out->end_s = hv_timeline_part_end_s(k->timeline, part_of(k, lane), &s);
    }
    return found;
}

static bool track_prev(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_timeline_tracks *k = ctx;
    return k->items[lane].kind == HV_TRACK_ALL
               ? source_prev(k->timeline, k->items[lane].row, t_s, out)
               : take_span(k, lane, hv_lane_prev(track_lane(k, lane), t_s), out);
}

static double track_memory(const void *ctx, size_t lane, double t0_s, double t1_s)
{
    const struct hv_timeline_tracks *k = ctx;
    const struct hv_timeline_part *part = part_of(k, lane);
    return hv_steps_max(part ? &part->memory : &row_of(k, lane)->memory, t0_s, t1_s);
}

static double track_limit(const void *ctx, size_t lane)
{
    const struct hv_timeline_tracks *k = ctx;
    const struct hv_timeline_part *part = part_of(k, lane);
    return part ? part->memory_limit_bytes : row_of(k, lane)->memory_limit_bytes;
}

static void track_path(const void *ctx, const double *at_s, size_t n, struct hv_gantt_holder *out)
{
    const struct hv_timeline_tracks *k = ctx;
    source_path(k->timeline, at_s, n, out);
}

static int32_t track_path_row(const void *ctx, size_t lane)
{
    const struct hv_timeline_tracks *k = ctx;
    enum hv_track_kind kind = k->items[lane].kind;
    return kind == HV_TRACK_ALL || kind == HV_TRACK_COMPUTE ? (int32_t)k->items[lane].row : -1;
}

struct hv_gantt_source hv_gantt_tracks_source(const struct hv_timeline_tracks *tracks)
{
    struct hv_gantt_source src = {.ctx = tracks,
                                  .n_lanes = tracks->n,
                                  .end_s = tracks->timeline->end_s,
                                  .lane = track_lane_info,
                                  .columns = track_columns,
                                  .shares = track_shares,
                                  .spans = track_spans,
                                  .at = track_at,
                                  .next = track_next,
                                  .prev = track_prev,
                                  .seek = track_seek,
                                  .memory_max_bytes = track_memory,
                                  .memory_limit_bytes = track_limit};
    set_path(tracks->timeline, &src, track_path, track_path_row);
    return src;
}

const struct hv_timeline_op *hv_gantt_timeline_op(const struct hv_timeline *t,
                                                  const struct hv_gantt_span *s)
{
    return s->id >= 0 && (size_t)s->id < t->n_ops ? &t->ops[s->id] : NULL;
}
