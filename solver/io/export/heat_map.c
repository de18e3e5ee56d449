/* Heat maps. The caller gives the figures their meaning. */
#include "solver/io/export/heat_map.h"

#include "solver/base/units.h"
#include "solver/io/export/painter.h"
#include <math.h>
#include <string.h>

enum { CELL_W = 84, CELL_H = 34, TOP = 76, BOTTOM = 26, MARGIN = 16, CHAR_W = 7, SMALL = 12 };

#define TEXT_COLOUR    0x222222u
#define NOTHING_COLOUR 0xf2f2f2u

/* The two ends of a sequence of blues that stays readable in grey. */
static const unsigned light[3] = {0xe8, 0xf1, 0xfa}, dark[3] = {0x08, 0x45, 0x94};

struct picture {
    const struct hv_heat_map *m;
    double left;
    double least, most; /* of the values, or of their logarithms */
    bool logarithmic;
};

static size_t widest(const char *const *names, size_t n)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++) {
        most = strlen(names[i]) > most ? strlen(names[i]) : most;
    }
    return most;
}

static double scaled(const struct picture *p, double x)
{
    return p->logarithmic ? log(x) : x;
}

static struct picture make_picture(const struct hv_heat_map *m)
{
    size_t row = widest(m->y, m->n_y), label = strlen(m->y_label);
    struct picture p = {.m = m,
                        .left = MARGIN + CHAR_W * (double)(row > label ? row : label) + 8,
                        .least = (double)INFINITY,
                        .most = -(double)INFINITY,
                        .logarithmic = true};
    for (size_t i = 0; i < m->n_x * m->n_y; i++) {
        p.logarithmic = p.logarithmic && !(m->values[i] <= 0);
    }
    for (size_t i = 0; i < m->n_x * m->n_y; i++) {
        if (hv_known(m->values[i])) {
            p.least = fmin(p.least, scaled(&p, m->values[i]));
            p.most = fmax(p.most, scaled(&p, m->values[i]));
        }
    }
    return p;
}

/** 0 for the worst value, 1 for the best. */
static double goodness(const struct picture *p, double x)
{
    double share = p->most > p->least ? (scaled(p, x) - p->least) / (p->most - p->least) : 1;
    return p->m->more_is_better ? share : p->most > p->least ? 1 - share : 1;
}

static unsigned colour(double good)
{
    unsigned rgb = 0;
    for (int i = 0; i < 3; i++) {
        double c = (double)light[i] + good * ((double)dark[i] - (double)light[i]);
        rgb = rgb << 8 | (unsigned)lround(c);
    }
    return rgb;
}

static void put_text(const struct hv_painter *p, double x, double y, enum hv_anchor anchor,
                     unsigned fill, const char *text)
{
    struct hv_paint_text t = {
        .x = x, .y = y, .size_px = SMALL, .fill = fill, .anchor = anchor, .text = text};
    p->text(p->ctx, &t);
}

static void put_cell(const struct hv_painter *p, const struct picture *pic, size_t row,
                     size_t column)
{
    const struct hv_heat_map *m = pic->m;
    size_t i = row * m->n_x + column;
    double x = pic->left + CELL_W * (double)column, y = TOP + CELL_H * (double)row;
    double good = hv_known(m->values[i]) ? goodness(pic, m->values[i]) : 0;
    char text[HV_FMT_CAP];
    struct hv_paint_rect r = {.x = x,
                              .y = y,
                              .w = CELL_W - 2,
                              .h = CELL_H - 2,
                              .fill = hv_known(m->values[i]) ? colour(good) : NOTHING_COLOUR,
                              .tooltip = m->tips != NULL ? m->tips[i] : NULL};
    p->rect(p->ctx, &r);
    if (!hv_known(m->values[i])) {
        put_text(p, x + CELL_W / 2.0, y + CELL_H / 2.0 + 4, HV_ANCHOR_MIDDLE, TEXT_COLOUR, "×");
        return;
    }
    put_text(p, x + CELL_W / 2.0, y + CELL_H / 2.0 + 4, HV_ANCHOR_MIDDLE,
             good > 0.5 ? 0xffffffu : TEXT_COLOUR,
             hv_fmt_general(text, sizeof text, m->values[i], 4));
}

static void draw(const struct hv_painter *p, const void *what)
{
    const struct picture *pic = what;
    const struct hv_heat_map *m = pic->m;
    struct hv_paint_text title = {.x = MARGIN,
                                  .y = 26,
                                  .size_px = 16,
                                  .fill = TEXT_COLOUR,
                                  .anchor = HV_ANCHOR_START,
                                  .bold = true,
                                  .text = m->title};
    p->text(p->ctx, &title);
    put_text(p, pic->left, TOP - 28, HV_ANCHOR_START, TEXT_COLOUR, m->x_label);
    put_text(p, pic->left - 8, TOP - 8, HV_ANCHOR_END, TEXT_COLOUR, m->y_label);
    for (size_t k = 0; k < m->n_x; k++) {
        put_text(p, pic->left + CELL_W * ((double)k + 0.5), TOP - 8, HV_ANCHOR_MIDDLE, TEXT_COLOUR,
                 m->x[k]);
    }
    for (size_t row = 0; row < m->n_y; row++) {
        put_text(p, pic->left - 8, TOP + CELL_H * ((double)row + 0.5) + 4, HV_ANCHOR_END,
                 TEXT_COLOUR, m->y[row]);
        for (size_t column = 0; column < m->n_x; column++) {
            put_cell(p, pic, row, column);
        }
    }
}

void hv_heat_map_svg(const struct hv_heat_map *m, struct hv_str *out)
{
    struct picture pic = make_picture(m);
    double title = 9.0 * (double)strlen(m->title) + 2 * MARGIN;
    double width = pic.left + CELL_W * (double)m->n_x + MARGIN;
    hv_paint_svg((int)fmax(width, title), TOP + CELL_H * (int)m->n_y + BOTTOM, draw, &pic, out);
}
