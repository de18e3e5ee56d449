/** Adapter from solver/eval's timeline to the painter; no drawing here. */
#include "ui/view/gantt/timeline.h"

#include <math.h>
#include <string.h>

static enum hv_gantt_kind painted_kind(int kind)
{
    static const enum hv_gantt_kind map[HV_SPAN_KIND_N] = {
        [HV_SPAN_F] = HV_GANTT_F,         [HV_SPAN_B] = HV_GANTT_B,
        [HV_SPAN_W] = HV_GANTT_W,         [HV_SPAN_BW] = HV_GANTT_B,
        [HV_SPAN_R] = HV_GANTT_R,         [HV_SPAN_PAIR] = HV_GANTT_B,
        [HV_SPAN_HOP] = HV_GANTT_COMM,    [HV_SPAN_SYNC] = HV_GANTT_COMM,
        [HV_SPAN_LEAVE] = HV_GANTT_COMM,  [HV_SPAN_RETURN] = HV_GANTT_COMM,
        [HV_SPAN_GATHER] = HV_GANTT_COMM, [HV_SPAN_OPT] = HV_GANTT_OTHER,
        [HV_SPAN_STEP] = HV_GANTT_OTHER};
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

struct hv_gantt_source hv_gantt_timeline_source(const struct hv_timeline *t)
{
    return (struct hv_gantt_source){.ctx = t,
                                    .n_lanes = t->n_rows,
                                    .end_s = t->end_s,
                                    .lane = source_lane,
                                    .columns = source_columns,
                                    .at = source_at,
                                    .next = source_next,
                                    .prev = source_prev,
                                    .seek = source_seek,
                                    .memory_max_bytes = source_memory,
                                    .memory_limit_bytes = source_limit};
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

struct hv_gantt_source hv_gantt_tracks_source(const struct hv_timeline_tracks *tracks)
{
    return (struct hv_gantt_source){.ctx = tracks,
                                    .n_lanes = tracks->n,
                                    .end_s = tracks->timeline->end_s,
                                    .lane = track_lane_info,
                                    .columns = track_columns,
                                    .at = track_at,
                                    .next = track_next,
                                    .prev = track_prev,
                                    .seek = track_seek,
                                    .memory_max_bytes = track_memory,
                                    .memory_limit_bytes = track_limit};
}

const struct hv_timeline_op *hv_gantt_timeline_op(const struct hv_timeline *t,
                                                  const struct hv_gantt_span *s)
{
    return s->id >= 0 && (size_t)s->id < t->n_ops ? &t->ops[s->id] : NULL;
}
