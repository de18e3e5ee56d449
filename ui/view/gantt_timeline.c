/** Adapter from solver/eval's timeline to the painter; no drawing here. */
#include "ui/view/gantt_timeline.h"

#include <math.h>
#include <string.h>

static enum hv_gantt_kind painted_kind(int kind)
{
    static const enum hv_gantt_kind map[HV_SPAN_KIND_N] = {
        [HV_SPAN_F] = HV_GANTT_F,         [HV_SPAN_B] = HV_GANTT_B,
        [HV_SPAN_W] = HV_GANTT_W,         [HV_SPAN_BW] = HV_GANTT_B,
        [HV_SPAN_R] = HV_GANTT_R,         [HV_SPAN_PAIR] = HV_GANTT_B,
        [HV_SPAN_HOP] = HV_GANTT_COMM,    [HV_SPAN_SYNC] = HV_GANTT_COMM,
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

/** Columns asked for together, so that their memory is waited for together. */
#define TOGETHER 64

/** Columns of one lane, at most TOGETHER of them, that have nothing yet. */
static void fill_columns(const struct hv_lane *lane, const double *at_s, size_t n,
                         struct hv_gantt_cover *out)
{
    struct hv_cover covers[TOGETHER];
    hv_lane_columns(lane, at_s, n, covers);
    for (size_t i = 0; i < n; i++)
        if (covers[i].i_span >= 0)
            __builtin_prefetch(&lane->spans[covers[i].i_span]);
    for (size_t i = 0; i < n; i++) {
        const struct hv_cover *c = &covers[i];
        if (c->i_span >= 0 && out[i].n_spans == 0)
            out[i] = (struct hv_gantt_cover){.span = convert(&lane->spans[c->i_span]),
                                             .busy_frac = c->busy_frac,
                                             .n_spans = c->n_spans};
    }
}

/** One lane of a row, on top of what is there already. */
static void add_columns(const struct hv_lane *lane, const double *at_s, size_t n,
                        struct hv_gantt_cover *out)
{
    for (size_t from = 0; lane->n_spans > 0 && from < n; from += TOGETHER)
        fill_columns(lane, at_s + from, n - from < TOGETHER ? n - from : TOGETHER, out + from);
}

/** The compute lane where it has something, else the link lane. */
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
        if (w->back ? s->start_s < w->until_s : s->start_s > w->until_s)
            return false;
        if (s->item == w->micro_batch && (w->kind < 0 || (int)painted_kind(s->kind) == w->kind)) {
            *out = convert(s);
            return true;
        }
    }
    return false;
}

/** As stepping does: the compute lane to its end, then what the link lane holds beyond. */
static bool source_seek(const void *ctx, size_t lane, double t_s, const struct hv_gantt_wanted *w,
                        struct hv_gantt_span *out)
{
    const struct hv_lane *l = lane_of(ctx, lane, 0);
    if (seek_lane(l, t_s, w, out))
        return true;
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

/* ---- compute and links apart: lane 2k computes, lane 2k + 1 sends ---- */

static void apart_lane(const void *ctx, size_t lane, struct hv_gantt_lane *out)
{
    source_lane(ctx, lane / 2, out);
    if (lane % 2 == 1)
        *out = (struct hv_gantt_lane){.name = "   links"};
}

static bool take_span(const struct hv_lane *l, int32_t i, struct hv_gantt_span *out)
{
    if (i >= 0)
        *out = convert(&l->spans[i]);
    return i >= 0;
}

static void apart_columns(const void *ctx, size_t lane, const double *at_s, size_t n,
                          struct hv_gantt_cover *out)
{
    memset(out, 0, n * sizeof *out);
    add_columns(lane_of(ctx, lane / 2, lane % 2 == 1), at_s, n, out);
}

static bool apart_at(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_lane *l = lane_of(ctx, lane / 2, lane % 2 == 1);
    return take_span(l, hv_lane_at(l, t_s), out);
}

static bool apart_next(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_lane *l = lane_of(ctx, lane / 2, lane % 2 == 1);
    return take_span(l, hv_lane_next(l, t_s), out);
}

static bool apart_prev(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_lane *l = lane_of(ctx, lane / 2, lane % 2 == 1);
    return take_span(l, hv_lane_prev(l, t_s), out);
}

static bool apart_seek(const void *ctx, size_t lane, double t_s, const struct hv_gantt_wanted *w,
                       struct hv_gantt_span *out)
{
    return seek_lane(lane_of(ctx, lane / 2, lane % 2 == 1), t_s, w, out);
}

static double apart_memory(const void *ctx, size_t lane, double t0_s, double t1_s)
{
    return source_memory(ctx, lane / 2, t0_s, t1_s);
}

static double apart_limit(const void *ctx, size_t lane)
{
    return source_limit(ctx, lane / 2);
}

struct hv_gantt_source hv_gantt_links_source(const struct hv_timeline *t)
{
    return (struct hv_gantt_source){.ctx = t,
                                    .n_lanes = 2 * t->n_rows,
                                    .end_s = t->end_s,
                                    .lane = apart_lane,
                                    .columns = apart_columns,
                                    .at = apart_at,
                                    .next = apart_next,
                                    .prev = apart_prev,
                                    .seek = apart_seek,
                                    .memory_max_bytes = apart_memory,
                                    .memory_limit_bytes = apart_limit};
}

const struct hv_timeline_op *hv_gantt_timeline_op(const struct hv_timeline *t,
                                                  const struct hv_gantt_span *s)
{
    return s->id >= 0 && (size_t)s->id < t->n_ops ? &t->ops[s->id] : NULL;
}
