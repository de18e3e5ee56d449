/* Gantt painter: axis, labels, cursor and the rows below the lanes. A lane is drawn in lane.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/units.h"
#include "ui/view/gantt/gantt_int.h"

#define MINIMAP_W 48
/* Columns from which on the zoom line has room for shares and the path. */
#define PATH_TOO 90

/* ---- axis ---- */

/* 1, 2 or 5 times a power of ten, at least x. */
static double round_step(double x)
{
    double p = pow(10, floor(log10(x)));
    double m = x / p;
    return (m <= 1.0000001 ? 1 : m <= 2.0000001 ? 2 : m <= 5.0000001 ? 5 : 10) * p;
}

static void tick_label(char *buf, size_t cap, double t, double step)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    size_t u = 0;
    while (u < 3 && step < units[u].unit * 0.0999) {
        u++;
    }
    double decimals = ceil(-log10(step / units[u].unit) - 1e-9);
    int d = decimals < 0 ? 0 : decimals > 6 ? 6 : (int)decimals;
    (void)snprintf(buf, cap, "%.*f%s", d, t / units[u].unit, units[u].name);
}

static void draw_axis(const struct hv_gantt_state *st, struct hv_grid *g, struct hv_rect at)
{
    double w = st->t1_s - st->t0_s;
    if (!(w > 0) || at.w < 4) {
        return;
    }
    hv_grid_hline(g, at.x, at.y, at.w, HV_STYLE_AXIS);
    double step = round_step(w * 12 / at.w), first = ceil(st->t0_s / step - 1e-9);
    int n = at.w / 8 + 2;
    for (int i = 0; i < n; i++) {
        double t = (first + i) * step;
        int x = (int)lround((t - st->t0_s) / w * at.w);
        char text[48];
        tick_label(text, sizeof text, t, step);
        if (x + 1 + (int)strlen(text) > at.w) {
            break;
        }
        (void)hv_grid_put(g, at.x + x, at.y, 1, g->ascii ? "|" : "├", HV_STYLE_AXIS);
        (void)hv_grid_put(g, at.x + x + 1, at.y, -1, text, HV_STYLE_AXIS);
    }
}

/* ---- lanes ---- */

static void draw_label(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                       struct hv_grid *g, struct hv_rect at, size_t lane)
{
    struct hv_gantt_lane info = {0};
    src->lane(src->ctx, lane, &info);
    bool here = st->show_cursor && lane == st->lane;
    bool pinned = st->has_pin && lane == st->pin_lane;
    (void)hv_grid_put(g, at.x, at.y, 1, here ? ">" : pinned ? "^" : " ", HV_STYLE_TITLE);
    hv_grid_put_field(g, (struct hv_rect){at.x + 1, at.y, at.w - 2, 1}, HV_LEFT,
                      info.name ? info.name : "", here ? HV_STYLE_TITLE : HV_STYLE_TEXT);
    if (at.h > 1 && info.sublabel) {
        hv_grid_put_field(g, (struct hv_rect){at.x + 2, at.y + 1, at.w - 3, 1}, HV_LEFT,
                          info.sublabel, HV_STYLE_DIM);
    }
}

/* ---- rows below the lanes ---- */

/* The name of the stage that holds a column of the path: one character. */
static char holder_name(const struct hv_gantt_holder *h)
{
    return h->row == -2         ? ' '
           : h->row < 0         ? '~'
           : h->stage < 10      ? (char)('0' + h->stage)
           : h->stage < 10 + 26 ? (char)('a' + h->stage - 10)
                                : '+';
}

/* Who holds the critical path in each column, of all lanes; where only marked operations are known,
 * the columns of those that are drawn. */
static void draw_critical(struct hv_grid *g, const struct hv_gantt_places *p,
                          const struct hv__gantt_pen *pen)
{
    struct hv_rect c = p->critical;
    hv_grid_put_field(g, (struct hv_rect){p->labels.x + 1, c.y, p->labels.w - 2, 1}, HV_LEFT,
                      "critical", HV_STYLE_CRITICAL);
    for (int i = 0; i < c.w; i++) {
        char name = pen->path ? holder_name(&pen->path[i]) : pen->critical[i] ? '^' : ' ';
        hv_grid_fill(g, (struct hv_rect){c.x + i, c.y, 1, 1}, name, HV_STYLE_CRITICAL);
    }
}

/* Zoom, time of a column, and how many operations a column of shares holds. */
static void zoom_text(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                      int columns, double ops_per_column, struct hv_str *out)
{
    char per[HV_FMT_CAP], n[HV_FMT_CAP];
    double w = st->t1_s - st->t0_s;
    hv_str_addf(out, " zoom %.1fx  %s a column", w > 0 ? src->end_s / w : 1.0,
                hv_fmt_seconds(per, sizeof per, columns > 0 ? w / columns : 0));
    if (ops_per_column >= 1.5) {
        hv_str_addf(out, "  %s ops each: shares, no order",
                    hv_fmt_count(n, sizeof n, round(ops_per_column)));
    } else if (ops_per_column > 0) {
        hv_str_adds(out, "  short ops: shares, no order");
    }
    if (st->show_critical && src->path && (!(ops_per_column > 0) || columns >= PATH_TOO)) {
        if (src->path_most.row >= 0) {
            hv_str_addf(out, "  path: s%d ", (int)src->path_most.stage);
        } else {
            hv_str_adds(out, "  path: links ");
        }
        hv_str_addf(out, "%.0f%%", src->path_most.frac * 100);
    }
}

static void draw_minimap(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                         struct hv_grid *g, const struct hv_gantt_places *p, double ops_per_column)
{
    struct hv_rect at = p->minimap;
    struct hv_str zoom = {0};
    zoom_text(st, src, p->chart.w, ops_per_column, &zoom);
    double end = src->end_s > 0 ? src->end_s : 1;
    int room = at.w - 3 - (int)zoom.n, n = room < MINIMAP_W ? room : MINIMAP_W;
    int x = at.x + 1;
    if (n >= 8) {
        int a = (int)floor(st->t0_s / end * n), b = (int)ceil(st->t1_s / end * n);
        (void)hv_grid_put(g, x, at.y, 1, "[", HV_STYLE_AXIS);
        for (int i = 0; i < n; i++) {
            (void)hv_grid_put(g, x + 1 + i, at.y, 1,
                              i >= a && i < b ? (g->ascii ? "=" : "━") : (g->ascii ? "." : "·"),
                              i >= a && i < b ? HV_STYLE_BAR : HV_STYLE_AXIS);
        }
        (void)hv_grid_put(g, x + 1 + n, at.y, 1, "]", HV_STYLE_AXIS);
        x += n + 2;
    }
    (void)hv_grid_put(g, x, at.y, at.x + at.w - x, hv_str_cstr(&zoom), HV_STYLE_DIM);
    hv_str_free(&zoom);
}

static void draw_cursor(const struct hv_gantt_state *st, struct hv_grid *g,
                        const struct hv_gantt_places *p)
{
    double w = st->t1_s - st->t0_s;
    if (!(w > 0)) {
        return;
    }
    int i = (int)floor((st->cursor_s - st->t0_s) / w * p->chart.w + 1e-9);
    i = i < 0 ? 0 : i >= p->chart.w ? p->chart.w - 1 : i;
    int x = p->chart.x + i, lane_y = (int)(st->lane - p->top_lane) * p->rows_per_lane;
    lane_y = p->pinned && st->lane == st->pin_lane ? 0 : lane_y;
    hv_grid_restyle(g, (struct hv_rect){x, p->axis.y, 1, 1}, 0xffffu, HV_STYLE_REVERSE);
    hv_grid_restyle(g, (struct hv_rect){x, p->chart.y + lane_y, 1, p->rows_per_lane}, 0xffffu,
                    HV_STYLE_REVERSE);
    if (hv_known(st->mark_s)) {
        double a = fmin(st->mark_s, st->cursor_s), b = fmax(st->mark_s, st->cursor_s);
        int x0 = (int)floor((fmax(a, st->t0_s) - st->t0_s) / w * p->chart.w);
        int x1 = (int)ceil((fmin(b, st->t1_s) - st->t0_s) / w * p->chart.w);
        hv_grid_restyle(g, (struct hv_rect){p->axis.x + x0, p->axis.y, x1 - x0, 1}, 0xffffu,
                        HV_STYLE_REVERSE);
    }
    hv_grid_cursor(g, x, p->chart.y + lane_y);
}

/* Arrows in the last row of the lanes that are shown and have several. */
static void draw_flows(const struct hv_gantt_state *st, struct hv_grid *g,
                       const struct hv_gantt_places *p)
{
    double w = st->t1_s - st->t0_s;
    for (size_t i = 0; p->rows_per_lane > 1 && w > 0 && i < st->n_flows; i++) {
        const struct hv_gantt_flow *f = &st->flows[i];
        int x = (int)floor((f->at_s - st->t0_s) / w * p->chart.w + 1e-9);
        for (size_t k = 0; k < p->n_shown && x >= 0 && x < p->chart.w; k++) {
            if (hv_gantt_lane_at(st, p, k) == f->lane) {
                int y = p->chart.y + (int)(k + 1) * p->rows_per_lane - 1;
                (void)hv_grid_put(g, p->chart.x + x, y, 1,
                                  g->ascii ? (f->up ? "^" : "v") : (f->up ? "▴" : "▾"),
                                  HV_STYLE_TITLE);
            }
        }
    }
}

/* The lanes that are shown with their labels; below a tall lane the same lane of the compared
 * plan. */
static void draw_lanes(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                       struct hv_grid *g, const struct hv_gantt_places *p,
                       struct hv__gantt_pen *pen)
{
    for (size_t k = 0; k < p->n_shown; k++) {
        int y = p->chart.y + (int)k * p->rows_per_lane, h = p->rows_per_lane;
        size_t lane = hv_gantt_lane_at(st, p, k);
        bool ghost = h > 1 && st->ghost && lane < st->ghost->n_lanes;
        hv__gantt_lane_draw(pen, src, lane, g,
                            (struct hv_rect){p->chart.x, y, p->chart.w, ghost ? h - 1 : h});
        draw_label(st, src, g, (struct hv_rect){p->labels.x, y, p->labels.w, h}, lane);
        if (ghost) {
            struct hv_rect last = {p->chart.x, y + h - 1, p->chart.w, 1};
            hv__gantt_lane_draw(pen, st->ghost, lane, g, last);
            hv_grid_restyle(g, last, 0, HV_STYLE_DIM);
        }
    }
}

void hv_gantt_draw(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                   struct hv_grid *g, struct hv_rect r)
{
    if (g->plain) {
        hv_plain_gantt(g, st, src);
        return;
    }
    struct hv_gantt_places p = hv_gantt_layout(st, src, r);
    struct hv_rect old = hv_grid_clip(g, r);
    if (p.chart.w <= 0) {
        (void)hv_grid_put(g, r.x, r.y, r.w, src->n_lanes ? "too narrow" : "nothing to draw",
                          HV_STYLE_DIM);
        hv_grid_unclip(g, old);
        return;
    }
    struct hv__gantt_pen pen;
    hv__gantt_pen_open(&pen, st, src, &p.chart, p.rows_per_lane);
    draw_axis(st, g, p.axis);
    draw_lanes(st, src, g, &p, &pen);
    draw_flows(st, g, &p);
    hv__gantt_hidden_draw(st, src, g, &p);
    if (p.memory.h > 0) {
        hv__gantt_memory_draw(st, src, g, &p, st->lane < src->n_lanes ? st->lane : 0);
    }
    if (p.critical.h > 0) {
        draw_critical(g, &p, &pen);
    }
    if (p.minimap.h > 0) {
        draw_minimap(st, src, g, &p, pen.ops_per_column);
    }
    hv__gantt_pen_close(&pen);
    if (st->show_cursor) {
        draw_cursor(st, g, &p);
    }
    hv_grid_unclip(g, old);
}
