/** Scatter plots on logarithmic axes; what the points mean is the caller's. */
#include "solver/io/export/scatter.h"

#include "solver/io/export/painter.h"
#include <math.h>
#include <stdio.h>

enum { PLOT = 620, LEFT = 76, TOP = 84, LEGEND = 210, BOTTOM = 62, MARGIN = 14, LINE = 22 };
#define TEXT_COLOUR 0x222222u

/* Okabe and Ito, "Color Universal Design" (2008), without the yellow that white swallows */
static const unsigned hues[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                0xe69f00, 0x56b4e9, 0x444444};

struct picture {
    const struct hv_scatter *s;
    double low, high; /* decades (log10) of both axes */
};

static bool is_drawn(const struct hv_scatter_point *p)
{
    return p->x > 0 && p->y > 0 && isfinite(p->x) && isfinite(p->y);
}

/* Whole decades around all points: 0.1 to 10 where there are none. */
static struct picture make_picture(const struct hv_scatter *s)
{
    struct picture pic = {s, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < s->n_points; i++) {
        const struct hv_scatter_point *p = &s->points[i];
        if (is_drawn(p)) {
            pic.low = fmin(pic.low, log10(fmin(p->x, p->y)));
            pic.high = fmax(pic.high, log10(fmax(p->x, p->y)));
        }
    }
    if (pic.low > pic.high) {
        pic.low = pic.high = 0;
    }
    pic.low = floor(pic.low - 0.05);
    pic.high = ceil(pic.high + 0.05);
    return pic;
}

static double along(const struct picture *pic, double log_value)
{
    return PLOT * (log_value - pic->low) / (pic->high - pic->low);
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

/* Grid and numbers at whole decades, short ticks at 2 and 5. */
static void draw_axes(const struct hv_painter *p, const struct picture *pic)
{
    char number[32];
    for (double d = pic->low; d <= pic->high; d++) {
        double a = along(pic, d), x = LEFT + a, y = TOP + PLOT - a;
        put_line(p, (const double[]){x, TOP, x, TOP + PLOT}, 1, 0xdddddd, false);
        put_line(p, (const double[]){LEFT, y, LEFT + PLOT, y}, 1, 0xdddddd, false);
        (void)snprintf(number, sizeof number, "%g", pow(10, d));
        put_text(p, x, TOP + PLOT + 20, 13, HV_ANCHOR_MIDDLE, number);
        put_text(p, LEFT - 8, y + 5, 13, HV_ANCHOR_END, number);
        for (int k = 0; k < 2 && d < pic->high; k++) {
            a = along(pic, d + log10(k == 0 ? 2 : 5));
            x = LEFT + a;
            y = TOP + PLOT - a;
            put_line(p, (const double[]){x, TOP + PLOT - 6, x, TOP + PLOT}, 1, 0x888888, false);
            put_line(p, (const double[]){LEFT, y, LEFT + 6, y}, 1, 0x888888, false);
        }
    }
    put_text(p, LEFT + PLOT / 2.0, TOP + PLOT + 46, 14, HV_ANCHOR_MIDDLE, pic->s->x_label);
    put_text(p, MARGIN, TOP - 14, 14, HV_ANCHOR_START, pic->s->y_label);
}

/* y = factor · x from edge to edge of the plot. */
static void draw_diagonal(const struct hv_painter *p, const struct picture *pic, double factor)
{
    double shift = along(pic, pic->low + log10(factor));
    double x1 = LEFT + fmax(0, -shift), y1 = TOP + PLOT - fmax(0, shift);
    double x2 = LEFT + PLOT - fmax(0, shift), y2 = TOP - fmin(0, shift);
    put_line(p, (const double[]){x1, y1, x2, y2}, factor == 1 ? 1.5 : 1, 0x666666, factor != 1);
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
    draw_diagonal(p, pic, 1.1);
    draw_diagonal(p, pic, 1 / 1.1);
    draw_diagonal(p, pic, 1);
    for (size_t i = 0; i < s->n_points; i++) {
        const struct hv_scatter_point *q = &s->points[i];
        if (is_drawn(q)) {
            draw_mark(p, q->series, LEFT + along(pic, log10(q->x)),
                      TOP + PLOT - along(pic, log10(q->y)), q->tooltip);
        }
    }
    draw_legend(p, pic);
}

void hv_scatter_svg(const struct hv_scatter *s, struct hv_str *out)
{
    struct picture pic = make_picture(s);
    hv_paint_svg(width_px(), height_px(s), draw, &pic, out);
}

enum hv_status hv_scatter_png(const struct hv_scatter *s, struct hv_str *out, struct hv_err *err)
{
    struct picture pic = make_picture(s);
    return hv_paint_png(width_px(), height_px(s), draw, &pic, out, err);
}
