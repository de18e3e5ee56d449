/** Scatter plots on logarithmic axes. The caller gives the points their meaning. */
#include "solver/io/export/scatter.h"

#include "solver/io/export/painter.h"
#include <math.h>
#include <stdio.h>

enum { PLOT = 620, LEFT = 76, TOP = 84, LEGEND = 210, BOTTOM = 62, MARGIN = 14, LINE = 22 };
#define TEXT_COLOUR 0x222222u

/* Okabe and Ito, "Color Universal Design" (2008), without the yellow, which is invisible on
 * white */
static const unsigned hues[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                0xe69f00, 0x56b4e9, 0x444444};

struct picture {
    const struct hv_scatter *s;
    double low[2], high[2]; /* decades (log10) of x and y */
};

static bool is_drawn(const struct hv_scatter_point *p)
{
    return p->x > 0 && p->y > 0 && isfinite(p->x) && isfinite(p->y);
}

/* Extends an axis to a value. */
static void reach(struct picture *pic, int axis, double value)
{
    pic->low[axis] = fmin(pic->low[axis], log10(value));
    pic->high[axis] = fmax(pic->high[axis], log10(value));
}

/* Whole decades around all points: 0.1 to 10 where there are none. */
static struct picture make_picture(const struct hv_scatter *s)
{
    const double inf = (double)INFINITY;
    struct picture pic = {s, {inf, inf}, {-inf, -inf}};
    for (size_t i = 0; i < s->n_points; i++) {
        const struct hv_scatter_point *p = &s->points[i];
        if (is_drawn(p)) {
            reach(&pic, 0, p->x);
            reach(&pic, 1, p->y);
        }
    }
    for (size_t i = 0; i < s->n_roofs; i++) {
        reach(&pic, 0, s->roofs[i].most / s->roofs[i].per_x);
        reach(&pic, 1, s->roofs[i].most);
    }
    if (s->n_roofs == 0) {
        pic.low[0] = pic.low[1] = fmin(pic.low[0], pic.low[1]);
        pic.high[0] = pic.high[1] = fmax(pic.high[0], pic.high[1]);
    }
    for (int axis = 0; axis < 2; axis++) {
        if (pic.low[axis] > pic.high[axis]) {
            pic.low[axis] = pic.high[axis] = 0;
        }
        pic.low[axis] = floor(pic.low[axis] - 0.05);
        pic.high[axis] = ceil(pic.high[axis] + 0.05);
    }
    return pic;
}

static double along(const struct picture *pic, int axis, double log_value)
{
    return PLOT * (log_value - pic->low[axis]) / (pic->high[axis] - pic->low[axis]);
}

static double x_of(const struct picture *pic, double value)
{
    return LEFT + along(pic, 0, log10(value));
}

static double y_of(const struct picture *pic, double value)
{
    return TOP + PLOT - along(pic, 1, log10(value));
}

static void put_text(const struct hv_painter *p, double x, double y, double size, enum hv_anchor a,
                     const char *text)
{
    const struct hv_paint_text t = {
        .x = x, .y = y, .size_px = size, .anchor = a, .fill = TEXT_COLOUR, .text = text};
    p->text(p->ctx, &t);
}

static void put_line(const struct hv_painter *p, const double at[4], double width, unsigned colour,
                     bool dashed)
{
    const struct hv_paint_line l = {at[0], at[1], at[2], at[3], width, colour, dashed};
    p->line(p->ctx, &l);
}

/* Grid line, number, and short ticks at 2 and 5, of one decade of an axis. */
static void draw_decade(const struct hv_painter *p, const struct picture *pic, int axis, double d)
{
    char number[32];
    double x = LEFT + along(pic, 0, d), y = TOP + PLOT - along(pic, 1, d);
    (void)snprintf(number, sizeof number, "%g", pow(10, d));
    if (axis == 0) {
        put_line(p, (const double[]){x, TOP, x, TOP + PLOT}, 1, 0xdddddd, false);
        put_text(p, x, TOP + PLOT + 20, 13, HV_ANCHOR_MIDDLE, number);
    } else {
        put_line(p, (const double[]){LEFT, y, LEFT + PLOT, y}, 1, 0xdddddd, false);
        put_text(p, LEFT - 8, y + 5, 13, HV_ANCHOR_END, number);
    }
    for (int k = 0; k < 2 && d < pic->high[axis]; k++) {
        double value = pow(10, d) * (k == 0 ? 2 : 5);
        x = x_of(pic, value);
        y = y_of(pic, value);
        if (axis == 0) {
            put_line(p, (const double[]){x, TOP + PLOT - 6, x, TOP + PLOT}, 1, 0x888888, false);
        } else {
            put_line(p, (const double[]){LEFT, y, LEFT + 6, y}, 1, 0x888888, false);
        }
    }
}

static void draw_axes(const struct hv_painter *p, const struct picture *pic)
{
    for (int axis = 0; axis < 2; axis++) {
        for (double d = pic->low[axis]; d <= pic->high[axis]; d++) {
            draw_decade(p, pic, axis, d);
        }
    }
    put_text(p, LEFT + PLOT / 2.0, TOP + PLOT + 46, 14, HV_ANCHOR_MIDDLE, pic->s->x_label);
    put_text(p, MARGIN, TOP - 14, 14, HV_ANCHOR_START, pic->s->y_label);
}

/* y = factor · x from edge to edge of a plot with equal axes. */
static void draw_diagonal(const struct hv_painter *p, const struct picture *pic, double factor)
{
    double shift = along(pic, 0, pic->low[0] + log10(factor));
    double x1 = LEFT + fmax(0, -shift), y1 = TOP + PLOT - fmax(0, shift);
    double x2 = LEFT + PLOT - fmax(0, shift), y2 = TOP - fmin(0, shift);
    put_line(p, (const double[]){x1, y1, x2, y2}, factor == 1 ? 1.5 : 1, 0x666666, factor != 1);
}

/* The slope from the lower edge to the ridge, then flat to the right edge, with its name on it. */
static void draw_roof(const struct hv_painter *p, const struct picture *pic, size_t i)
{
    const struct hv_scatter_roof *r = &pic->s->roofs[i];
    double left = fmax(pow(10, pic->low[0]), pow(10, pic->low[1]) / r->per_x);
    double ridge = r->most / r->per_x, y = y_of(pic, r->most);
    put_line(p, (const double[]){x_of(pic, left), y_of(pic, left * r->per_x), x_of(pic, ridge), y},
             1.5, 0x666666, i > 0);
    put_line(p, (const double[]){x_of(pic, ridge), y, LEFT + PLOT, y}, 1.5, 0x666666, i > 0);
    put_text(p, LEFT + PLOT - 4, y - 5, 12, HV_ANCHOR_END, r->name);
}

static void draw_lines(const struct hv_painter *p, const struct picture *pic)
{
    for (size_t i = 0; i < pic->s->n_roofs; i++) {
        draw_roof(p, pic, i);
    }
    if (pic->s->n_roofs == 0) {
        draw_diagonal(p, pic, 1.1);
        draw_diagonal(p, pic, 1 / 1.1);
        draw_diagonal(p, pic, 1);
    }
}

static void draw_mark(const struct hv_painter *p, size_t series, double x, double y,
                      const char *tooltip)
{
    const struct hv_paint_mark m = {.x = x,
                                    .y = y,
                                    .size_px = 8,
                                    .mark = (enum hv_mark)(series % HV_MARK_N),
                                    .fill = hues[series % HV_COUNT(hues)],
                                    .tooltip = tooltip};
    p->mark(p->ctx, &m);
}

static void draw_legend(const struct hv_painter *p, const struct picture *pic)
{
    double x = LEFT + PLOT + 24, y = TOP + 10;
    for (size_t i = 0; i < pic->s->n_series; i++, y += LINE) {
        draw_mark(p, i, x, y - 5, NULL);
        put_text(p, x + 14, y, 13, HV_ANCHOR_START, pic->s->series[i]);
    }
    if (pic->s->n_roofs > 0) {
        return;
    }
    y += 8;
    put_line(p, (const double[]){x - 6, y - 4, x + 8, y - 4}, 1.5, 0x666666, false);
    put_text(p, x + 14, y, 13, HV_ANCHOR_START, "equal");
    y += LINE;
    put_line(p, (const double[]){x - 6, y - 4, x + 8, y - 4}, 1, 0x666666, true);
    put_text(p, x + 14, y, 13, HV_ANCHOR_START, "10% off");
}

static int width_px(void)
{
    return LEFT + PLOT + LEGEND + MARGIN;
}

static int height_px(const struct hv_scatter *s)
{
    int legend = TOP + (int)(s->n_series + 3) * LINE + MARGIN, plot = TOP + PLOT + BOTTOM;
    return legend > plot ? legend : plot;
}

static void draw(const struct hv_painter *p, const void *what)
{
    const struct picture *pic = what;
    const struct hv_scatter *s = pic->s;
    p->rect(p->ctx, &(struct hv_paint_rect){.w = width_px(), .h = height_px(s), .fill = 0xffffff});
    const struct hv_paint_text title = {
        .x = MARGIN, .y = 24, .size_px = 16, .bold = true, .fill = 0x111111, .text = s->title};
    p->text(p->ctx, &title);
    put_text(p, MARGIN, 43, 12, HV_ANCHOR_START, s->subtitle);
    draw_axes(p, pic);
    draw_lines(p, pic);
    for (size_t i = 0; i < s->n_points; i++) {
        const struct hv_scatter_point *q = &s->points[i];
        if (is_drawn(q)) {
            draw_mark(p, q->series, x_of(pic, q->x), y_of(pic, q->y), q->tooltip);
        }
    }
    draw_legend(p, pic);
}

void hv_scatter_svg(const struct hv_scatter *s, struct hv_str *out)
{
    struct picture pic = make_picture(s);
    hv_paint_svg(width_px(), height_px(s), draw, &pic, out);
}
