/* Bars, progress, charts and sparklines in cells. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/view/widget/plain.h"

void hv_progress_draw(struct hv_grid *g, struct hv_rect row, double frac, unsigned style)
{
    bool known = !isnan(frac);
    if (g->plain) {
        if (known) {
            (void)hv_grid_putf(g, row.x, row.y, style, "%.0f%%", frac * 100);
        }
        return;
    }
    int w = row.w - 2 - (known ? 5 : 0);
    if (w < 1) {
        return;
    }
    (void)hv_grid_put(g, row.x, row.y, 1, "[", HV_STYLE_DIM);
    if (known) {
        hv_grid_bar(g, row.x + 1, row.y, w, frac, style);
    } else {
        (void)hv_grid_put(g, row.x + 1 + w / 2, row.y, 1, g->ascii ? "~" : "…", style);
    }
    (void)hv_grid_put(g, row.x + 1 + w, row.y, 1, "]", HV_STYLE_DIM);
    if (known) {
        double shown = frac < 0 ? 0 : frac > 1 ? 1 : frac;
        (void)hv_grid_putf(g, row.x + w + 2, row.y, HV_STYLE_TEXT, "%4.0f%%", floor(shown * 100));
    }
}

void hv_bars_draw(struct hv_grid *g, struct hv_rect r, const struct hv_bar_row *rows, size_t n)
{
    int name_w = 0, text_w = 0;
    if (g->plain) {
        hv_plain_bars(g, rows, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int a = hv_text_width(rows[i].name), b = hv_text_width(rows[i].text);
        name_w = a > name_w ? a : name_w;
        text_w = b > text_w ? b : text_w;
    }
    name_w = name_w > r.w / 3 ? r.w / 3 : name_w;
    text_w = text_w > r.w / 2 ? r.w / 2 : text_w;
    int bar_w = r.w - name_w - text_w - 2;
    struct hv_rect old = hv_grid_clip(g, r);
    for (size_t i = 0; i < n && i < (size_t)(r.h > 0 ? r.h : 0); i++) {
        int y = r.y + (int)i;
        hv_grid_put_field(g, (struct hv_rect){r.x, y, name_w, 1}, HV_LEFT, rows[i].name,
                          HV_STYLE_TEXT);
        if (bar_w > 0) {
            hv_grid_bar(g, r.x + name_w + 1, y, bar_w, rows[i].frac, rows[i].style);
        }
        hv_grid_put_field(g, (struct hv_rect){r.x + r.w - text_w, y, text_w, 1}, HV_RIGHT,
                          rows[i].text, HV_STYLE_TEXT);
    }
    hv_grid_unclip(g, old);
}

#define Y_LABEL_W 8

/* Plot area and ranges of a chart. */
struct plot {
    struct hv_rect area;
    double x0, x1, y0, y1;
};

static void grow(double v, double *lo, double *hi)
{
    if (isfinite(v)) {
        *lo = isnan(*lo) || v < *lo ? v : *lo;
        *hi = isnan(*hi) || v > *hi ? v : *hi;
    }
}

static struct plot make_plot(struct hv_rect r, const struct hv_chart *c)
{
    struct plot p = {{r.x + Y_LABEL_W + 1, r.y, r.w - Y_LABEL_W - 1, r.h - 2},
                     HV_UNKNOWN,
                     HV_UNKNOWN,
                     HV_UNKNOWN,
                     HV_UNKNOWN};
    for (size_t s = 0; s < c->n_series; s++) {
        for (size_t i = 0; i < c->series[s].n; i++) {
            grow(c->series[s].points[i].x, &p.x0, &p.x1);
            grow(c->series[s].points[i].y, &p.y0, &p.y1);
        }
    }
    p.x0 = isnan(c->x_min) ? p.x0 : c->x_min;
    p.x1 = isnan(c->x_max) ? p.x1 : c->x_max;
    p.y0 = isnan(c->y_min) ? p.y0 : c->y_min;
    p.y1 = isnan(c->y_max) ? p.y1 : c->y_max;
    if (isnan(p.x0) || isnan(p.x1) || isnan(p.y0) || isnan(p.y1)) {
        p.x0 = p.x1 = p.y0 = p.y1 = 0;
    }
    if (!(p.x1 > p.x0)) {
        p.x1 = p.x0 + (p.x0 != 0 ? fabs(p.x0) * 0.1 : 1);
    }
    if (!(p.y1 > p.y0)) {
        p.y1 = p.y0 + (p.y0 != 0 ? fabs(p.y0) * 0.1 : 1);
    }
    return p;
}

static bool plot_cell(const struct plot *p, double x, double y, int *cx, int *cy)
{
    if (!isfinite(x) || !isfinite(y) || x < p->x0 || x > p->x1 || y < p->y0 || y > p->y1 ||
        p->area.w < 1 || p->area.h < 1) {
        return false;
    }
    *cx = p->area.x + (int)lround((x - p->x0) / (p->x1 - p->x0) * (p->area.w - 1));
    *cy = p->area.y + p->area.h - 1 - (int)lround((y - p->y0) / (p->y1 - p->y0) * (p->area.h - 1));
    return true;
}

bool hv_chart_cell(struct hv_rect r, const struct hv_chart *c, struct hv_point p, int *x, int *y)
{
    struct plot plot = make_plot(r, c);
    return plot_cell(&plot, p.x, p.y, x, y);
}

static void draw_axes(struct hv_grid *g, const struct plot *p, const struct hv_chart *c)
{
    char text[32];
    int x = p->area.x - 1, bottom = p->area.y + p->area.h;
    hv_grid_vline(g, x, p->area.y, p->area.h, HV_STYLE_AXIS);
    hv_grid_hline(g, p->area.x, bottom, p->area.w, HV_STYLE_AXIS);
    (void)hv_grid_put(g, x, bottom, 1, g->ascii ? "+" : "└", HV_STYLE_AXIS);
    for (int i = 0; i < 3; i++) {
        int y = p->area.y + (p->area.h - 1) * i / 2;
        double v = p->y1 - (p->y1 - p->y0) * i / 2;
        (void)snprintf(text, sizeof text, "%.4g", v);
        hv_grid_put_field(g, (struct hv_rect){x - Y_LABEL_W, y, Y_LABEL_W - 1, 1}, HV_RIGHT, text,
                          HV_STYLE_AXIS);
    }
    (void)snprintf(text, sizeof text, "%.4g", p->x0);
    (void)hv_grid_put(g, p->area.x, bottom + 1, p->area.w, text, HV_STYLE_AXIS);
    (void)snprintf(text, sizeof text, "%.4g", p->x1);
    (void)hv_grid_put(g, p->area.x + p->area.w - (int)strlen(text), bottom + 1, -1, text,
                      HV_STYLE_AXIS);
    if (c->x_label) {
        (void)hv_grid_put_user(g, p->area.x + (p->area.w - hv_text_width(c->x_label)) / 2,
                               bottom + 1, -1, c->x_label, HV_STYLE_AXIS);
    }
    if (c->y_label) {
        (void)hv_grid_put_user(g, p->area.x, p->area.y, p->area.w, c->y_label, HV_STYLE_AXIS);
    }
}

static void put_mark(struct hv_grid *g, const struct hv_series *s, size_t i, int x, int y)
{
    char mark[2] = {s->marks ? s->marks[i] : s->mark ? s->mark : '*', '\0'};
    bool own = s->kind == HV_CHART_DOTS || (s->mark != '\0' && s->mark != '*');
    const char *glyph = g->ascii || own ? mark : "•";
    (void)hv_grid_put(g, x, y, 1, glyph, s->style);
}

/* Steps hold their value to the next point; lines are sampled once per column. */
static void draw_curve(struct hv_grid *g, const struct plot *p, const struct hv_series *s)
{
    size_t i = 0;
    int last_y = 0, x, y;
    bool has_last = false;
    for (int col = 0; col < p->area.w; col++) {
        double at = p->x0 + (p->x1 - p->x0) * (p->area.w > 1 ? (double)col / (p->area.w - 1) : 0);
        while (i + 1 < s->n && s->points[i + 1].x <= at) {
            i++;
        }
        if (s->n == 0 || s->points[i].x > at) {
            continue;
        }
        double v = s->points[i].y;
        if (s->kind == HV_CHART_LINE && i + 1 < s->n && s->points[i + 1].x > s->points[i].x) {
            v += (s->points[i + 1].y - v) * (at - s->points[i].x) /
                 (s->points[i + 1].x - s->points[i].x);
        }
        if (s->kind == HV_CHART_LINE && i + 1 == s->n && s->points[i].x < at) {
            break;
        }
        if (!plot_cell(p, at, v, &x, &y)) {
            has_last = false;
            continue;
        }
        put_mark(g, s, i, x, y);
        for (int k = has_last ? last_y : y; s->kind == HV_CHART_STEP && k != y;
             k += k < y ? 1 : -1) {
            put_mark(g, s, i, x, k);
        }
        last_y = y;
        has_last = true;
    }
}

void hv_chart_draw(struct hv_grid *g, struct hv_rect r, const struct hv_chart *c)
{
    if (r.w < Y_LABEL_W + 4 || r.h < 4) {
        return;
    }
    if (g->plain) {
        hv_plain_chart(g, c);
        return;
    }
    struct hv_rect old = hv_grid_clip(g, r);
    struct plot p = make_plot(r, c);
    draw_axes(g, &p, c);
    for (size_t s = 0; s < c->n_series; s++) {
        const struct hv_series *one = &c->series[s];
        if (one->kind != HV_CHART_DOTS) {
            draw_curve(g, &p, one);
            continue;
        }
        for (size_t i = 0; i < one->n; i++) {
            int x, y;
            if (plot_cell(&p, one->points[i].x, one->points[i].y, &x, &y)) {
                put_mark(g, one, i, x, y);
            }
        }
    }
    hv_grid_unclip(g, old);
}
