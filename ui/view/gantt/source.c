/* Timeline source over arrays, for pictures of few operations and for tests. */
#include <math.h>

#include "ui/view/gantt/view.h"

static const struct hv_gantt_array_lane *lane_of(const void *ctx, size_t lane)
{
    const struct hv_gantt_array *a = ctx;
    return &a->lanes[lane];
}

/* Index of the first span that starts after t. */
static size_t upper(const struct hv_gantt_array_lane *l, double t)
{
    size_t lo = 0, hi = l->n_spans;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->spans[mid].start_s > t) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return lo;
}

static void get_lane(const void *ctx, size_t lane, struct hv_gantt_lane *out)
{
    *out = lane_of(ctx, lane)->lane;
}

static void get_cover(const struct hv_gantt_array_lane *l, double t0_s, double t1_s,
                      struct hv_gantt_cover *out)
{
    size_t i = upper(l, t0_s);
    double busy = 0, most = -1;
    *out = (struct hv_gantt_cover){0};
    for (i = i > 0 ? i - 1 : 0; i < l->n_spans && l->spans[i].start_s < t1_s; i++) {
        double part = fmin(l->spans[i].end_s, t1_s) - fmax(l->spans[i].start_s, t0_s);
        if (part <= 0) {
            continue;
        }
        busy += part;
        out->n_spans++;
        if (part > most) {
            most = part;
            out->span = l->spans[i];
        }
    }
    out->busy_frac = t1_s > t0_s ? busy / (t1_s - t0_s) : 0;
}

static void get_columns(const void *ctx, size_t lane, const double *at_s, size_t n,
                        struct hv_gantt_cover *out)
{
    for (size_t i = 0; i < n; i++) {
        get_cover(lane_of(ctx, lane), at_s[i], at_s[i + 1], &out[i]);
    }
}

static bool get_at(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_gantt_array_lane *l = lane_of(ctx, lane);
    size_t i = upper(l, t_s);
    if (i == 0 || l->spans[i - 1].end_s <= t_s) {
        return false;
    }
    *out = l->spans[i - 1];
    return true;
}

static bool get_next(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_gantt_array_lane *l = lane_of(ctx, lane);
    size_t i = upper(l, t_s);
    if (i == l->n_spans) {
        return false;
    }
    *out = l->spans[i];
    return true;
}

static bool get_prev(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out)
{
    const struct hv_gantt_array_lane *l = lane_of(ctx, lane);
    size_t i = upper(l, t_s);
    while (i > 0 && l->spans[i - 1].start_s >= t_s) {
        i--;
    }
    if (i == 0) {
        return false;
    }
    *out = l->spans[i - 1];
    return true;
}

struct hv_gantt_source hv_gantt_array_source(const struct hv_gantt_array *a)
{
    double end = 0;
    for (size_t i = 0; i < a->n_lanes; i++) {
        if (a->lanes[i].n_spans > 0) {
            end = fmax(end, a->lanes[i].spans[a->lanes[i].n_spans - 1].end_s);
        }
    }
    return (struct hv_gantt_source){.ctx = a,
                                    .n_lanes = a->n_lanes,
                                    .end_s = end,
                                    .lane = get_lane,
                                    .columns = get_columns,
                                    .at = get_at,
                                    .next = get_next,
                                    .prev = get_prev};
}
