/* Window and cursor of a Gantt view: pure functions on the state. Paints nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/view/gantt/view.h"
#include "ui/view/widget/widgets.h"

static double end_of(const struct hv_gantt_source *src)
{
    return src->end_s > 0 && isfinite(src->end_s) ? src->end_s : 1.0;
}

static double clamp(double x, double lo, double hi)
{
    return !(x > lo) ? lo : x > hi ? hi : x;
}

/* Puts a window of width w at t0 inside the step. */
static void set_window(struct hv_gantt_state *st, double end, double t0, double w)
{
    w = clamp(w, end * 1e-9, end);
    st->t0_s = clamp(t0, 0, end - w);
    st->t1_s = st->t0_s + w;
}

static void follow_cursor(struct hv_gantt_state *st, double end)
{
    double w = st->t1_s - st->t0_s;
    st->cursor_s = clamp(st->cursor_s, 0, end);
    if (st->cursor_s < st->t0_s) {
        set_window(st, end, st->cursor_s - w * 0.1, w);
    } else if (st->cursor_s >= st->t1_s) {
        set_window(st, end, st->cursor_s - w * 0.9, w);
    }
}

void hv_gantt_init(struct hv_gantt_state *st, const struct hv_gantt_source *src)
{
    *st = (struct hv_gantt_state){.t1_s = end_of(src),
                                  .mark_s = HV_UNKNOWN,
                                  .show_memory = true,
                                  .show_critical = true,
                                  .show_minimap = true,
                                  .show_cursor = true};
}

void hv_gantt_fit(struct hv_gantt_state *st, const struct hv_gantt_source *src)
{
    st->t0_s = 0;
    st->t1_s = end_of(src);
    st->cursor_s = clamp(st->cursor_s, 0, st->t1_s);
}

void hv_gantt_zoom(struct hv_gantt_state *st, const struct hv_gantt_source *src, double factor,
                   double at_s)
{
    double end = end_of(src), w = st->t1_s - st->t0_s;
    if (!(factor > 0) || !isfinite(factor)) {
        return;
    }
    at_s = clamp(at_s, st->t0_s, st->t1_s);
    double share = w > 0 ? (at_s - st->t0_s) / w : 0;
    double next = clamp(w / factor, end * 1e-9, end);
    set_window(st, end, at_s - share * next, next);
    st->cursor_s = clamp(st->cursor_s, st->t0_s, st->t1_s);
}

void hv_gantt_zoom_to(struct hv_gantt_state *st, const struct hv_gantt_source *src, double a_s,
                      double b_s)
{
    double end = end_of(src), lo = clamp(fmin(a_s, b_s), 0, end),
           hi = clamp(fmax(a_s, b_s), 0, end);
    set_window(st, end, lo, hi - lo);
    st->cursor_s = clamp(st->cursor_s, st->t0_s, st->t1_s);
}

void hv_gantt_pan(struct hv_gantt_state *st, const struct hv_gantt_source *src, double frac)
{
    double w = st->t1_s - st->t0_s;
    set_window(st, end_of(src), st->t0_s + frac * w, w);
    st->cursor_s = clamp(st->cursor_s, st->t0_s, st->t1_s);
}

void hv_gantt_move(struct hv_gantt_state *st, const struct hv_gantt_source *src, int n, int columns)
{
    double column = (st->t1_s - st->t0_s) / (columns > 0 ? columns : 1);
    /* the middle of a column, so that rounding never leaves the cursor between two */
    double at = floor((st->cursor_s - st->t0_s) / column + 1e-9) + 0.5;
    st->cursor_s = st->t0_s + (at + n) * column;
    follow_cursor(st, end_of(src));
}

void hv_gantt_goto(struct hv_gantt_state *st, const struct hv_gantt_source *src, double t_s)
{
    if (isnan(t_s)) {
        return;
    }
    st->cursor_s = t_s;
    follow_cursor(st, end_of(src));
}

void hv_gantt_lane_move(struct hv_gantt_state *st, const struct hv_gantt_source *src, int n)
{
    size_t step = (size_t)(n < 0 ? -n : n), last = src->n_lanes > 0 ? src->n_lanes - 1 : 0;
    if (n < 0) {
        st->lane = st->lane > step ? st->lane - step : 0;
    } else {
        st->lane = last - (st->lane < last ? st->lane : last) > step ? st->lane + step : last;
    }
}

bool hv_gantt_at_cursor(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                        struct hv_gantt_span *out)
{
    return st->lane < src->n_lanes && src->at(src->ctx, st->lane, st->cursor_s, out);
}

/* Start time of the queries next and prev: the start of the operation under the cursor, else the
 * cursor. */
static double step_from(const struct hv_gantt_state *st, const struct hv_gantt_source *src)
{
    struct hv_gantt_span here;
    return hv_gantt_at_cursor(st, src, &here) ? here.start_s : st->cursor_s;
}

bool hv_gantt_step(struct hv_gantt_state *st, const struct hv_gantt_source *src, int direction)
{
    struct hv_gantt_span s = {0};
    if (st->lane >= src->n_lanes) {
        return false;
    }
    double from = step_from(st, src);
    if (!(direction < 0 ? src->prev : src->next)(src->ctx, st->lane, from, &s)) {
        return false;
    }
    hv_gantt_goto(st, src, s.start_s);
    return true;
}

/* Criteria of a search. */
struct wanted {
    struct hv_gantt_wanted span;
    const char *lane; /* what its name begins with; "" = any */
};

static bool is_wanted_lane(const struct wanted *w, const struct hv_gantt_source *src, size_t lane)
{
    struct hv_gantt_lane info = {0};
    size_t n = strlen(w->lane);
    if (n == 0) {
        return true;
    }
    src->lane(src->ctx, lane, &info);
    return info.name && strncmp(info.name, w->lane, n) == 0 &&
           (info.name[n] == '\0' || info.name[n] == ' ');
}

static bool is_wanted(const struct hv_gantt_wanted *w, const struct hv_gantt_span *s)
{
    return (w->kind < 0 || (int)s->kind == w->kind) && s->micro_batch == w->micro_batch;
}

/* Next match of a lane after (before) t. */
static bool seek(const struct hv_gantt_source *src, size_t lane, double t,
                 const struct hv_gantt_wanted *w, struct hv_gantt_span *out)
{
    if (src->seek) {
        return src->seek(src->ctx, lane, t, w, out);
    }
    while ((w->back ? src->prev : src->next)(src->ctx, lane, t, out)) {
        if (w->back ? out->start_s < w->until_s : out->start_s > w->until_s) {
            return false;
        }
        if (is_wanted(w, out)) {
            return true;
        }
        if (out->start_s == t) {
            return false;
        }
        t = out->start_s;
    }
    return false;
}

/* The nearest match in time over all lanes; one at the start time itself counts only in later
 * (going back: earlier) lanes. */
static bool seek_until(struct hv_gantt_state *st, const struct hv_gantt_source *src,
                       const struct wanted *w)
{
    struct hv_gantt_span s, best = {0};
    size_t best_lane = src->n_lanes;
    double from = step_from(st, src);
    bool back = w->span.back;
    for (size_t lane = 0; lane < src->n_lanes; lane++) {
        if (!is_wanted_lane(w, src, lane)) {
            continue;
        }
        bool beyond = back ? lane < st->lane : lane > st->lane;
        bool found = beyond && src->at(src->ctx, lane, from, &s) && s.start_s == from &&
                     is_wanted(&w->span, &s);
        if (!found && !seek(src, lane, from, &w->span, &s)) {
            continue;
        }
        bool closer = back ? s.start_s >= best.start_s : s.start_s < best.start_s;
        if (best_lane == src->n_lanes || closer) {
            best = s;
            best_lane = lane;
        }
    }
    if (best_lane == src->n_lanes) {
        return false;
    }
    st->lane = best_lane;
    hv_gantt_goto(st, src, best.start_s);
    return true;
}

/* Searches near the cursor first, because matches mostly are close and a lane may hold a million
 * operations. */
static bool seek_all(struct hv_gantt_state *st, const struct hv_gantt_source *src, int direction,
                     struct wanted w)
{
    double from = step_from(st, src), reach = fmax(st->t1_s - st->t0_s, src->end_s * 1e-6);
    w.span.back = direction < 0;
    for (bool all = false; !all; reach *= 4) {
        w.span.until_s = w.span.back ? from - reach : from + reach;
        all = !(reach > 0) || w.span.until_s <= 0 || w.span.until_s >= src->end_s;
        if (seek_until(st, src, &w)) {
            return true;
        }
    }
    return false;
}

bool hv_gantt_step_mb(struct hv_gantt_state *st, const struct hv_gantt_source *src, int direction)
{
    struct hv_gantt_span here;
    if (!hv_gantt_at_cursor(st, src, &here) || here.micro_batch < 0) {
        return hv_gantt_step(st, src, direction);
    }
    struct wanted w = {{.kind = -1, .micro_batch = here.micro_batch}, ""};
    return seek_all(st, src, direction, w);
}

static bool parse_wanted(const char *text, struct wanted *w)
{
    static const char letters[] = {
#define X(id, letter, fill, style, name) letter,
        HV_GANTT_KIND_MAP(X)
#undef X
    };
    const char *s = text;
    *w = (struct wanted){{.kind = -1, .micro_batch = -1}, ""};
    if (strncmp(s, "mb", 2) == 0) {
        s += 2;
        s += *s == ' ';
    } else {
        for (int k = 0; k < HV_GANTT_KIND_N; k++) {
            if (*s == letters[k] || *s == letters[k] - 'a' + 'A') {
                w->span.kind = k;
                s++;
                break;
            }
        }
    }
    size_t digits = strspn(s, "0123456789");
    if (digits == 0 || digits > 8 || (s[digits] && s[digits] != '@')) {
        return false;
    }
    w->span.micro_batch = (int32_t)strtol(s, NULL, 10);
    w->lane = s[digits] == '@' ? s + digits + 1 : "";
    return true;
}

static bool find_lane(struct hv_gantt_state *st, const struct hv_gantt_source *src,
                      const char *text, int direction)
{
    size_t n = src->n_lanes;
    for (size_t step = direction == 0 ? 0 : 1; step <= n && n > 0; step++) {
        size_t i = direction < 0 ? (st->lane + n - step % n) % n : (st->lane + step) % n;
        struct hv_gantt_lane lane = {0};
        src->lane(src->ctx, i, &lane);
        if (hv_text_has(lane.name ? lane.name : "", text)) {
            st->lane = i;
            return true;
        }
    }
    return false;
}

bool hv_gantt_find(struct hv_gantt_state *st, const struct hv_gantt_source *src, const char *text,
                   int direction)
{
    struct wanted w;
    struct hv_gantt_span here;
    if (!*text) {
        return false;
    }
    if (!parse_wanted(text, &w)) {
        return find_lane(st, src, text, direction);
    }
    if (direction == 0 && hv_gantt_at_cursor(st, src, &here) && is_wanted(&w.span, &here) &&
        is_wanted_lane(&w, src, st->lane)) {
        return true;
    }
    struct hv_gantt_state saved = *st;
    if (seek_all(st, src, direction, w)) {
        return true;
    }
    /* wrap: from before the beginning, or from behind the end */
    st->cursor_s = direction < 0 ? end_of(src) * 2 : -1;
    if (seek_all(st, src, direction, w)) {
        return true;
    }
    *st = saved;
    return find_lane(st, src, text, direction);
}
