/** SVG and cairo back ends of the painter. Pictures depend on their input alone: no dates, no ids.
 */
#include "solver/io/export/painter.h"

#include <cairo.h>

static void add_escaped(struct hv_str *s, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        switch (*c) {
        case '<':
            hv_str_adds(s, "&lt;");
            break;
        case '>':
            hv_str_adds(s, "&gt;");
            break;
        case '&':
            hv_str_adds(s, "&amp;");
            break;
        case '"':
            hv_str_adds(s, "&quot;");
            break;
        default:
            if ((unsigned char)*c >= ' ') {
                hv_str_addc(s, *c);
            }
        }
    }
}

static void svg_rect(void *ctx, const struct hv_paint_rect *r)
{
    struct hv_str *s = ctx;
    hv_str_addf(s, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"",
                r->x, r->y, r->w, r->h, r->fill);
    if (r->outlined) {
        hv_str_adds(s, " stroke=\"#222222\" stroke-width=\"0.5\"");
    }
    if (r->tooltip == NULL) {
        hv_str_adds(s, "/>\n");
        return;
    }
    hv_str_adds(s, "><title>");
    add_escaped(s, r->tooltip);
    hv_str_adds(s, "</title></rect>\n");
}

static void svg_text(void *ctx, const struct hv_paint_text *t)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    struct hv_str *s = ctx;
    hv_str_addf(
        s, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.*f\" fill=\"#%06x\" text-anchor=\"%s\"%s%s",
        t->x, t->y, t->mono ? 2 : 1, t->size_px, t->fill, anchors[t->anchor],
        t->bold ? " font-weight=\"bold\"" : "", t->mono ? " class=\"m\"" : "");
    if (t->width_px > 0) {
        hv_str_addf(s, " textLength=\"%.2f\"", t->width_px);
    }
    hv_str_addc(s, '>');
    add_escaped(s, t->text);
    hv_str_adds(s, "</text>\n");
}

static void svg_line(void *ctx, const struct hv_paint_line *l)
{
    hv_str_addf(ctx,
                "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"#%06x\" "
                "stroke-width=\"%.1f\"%s/>\n",
                l->x1, l->y1, l->x2, l->y2, l->colour, l->width_px,
                l->dashed ? " stroke-dasharray=\"5 4\"" : "");
}

/* Corners of the shapes in a square from -1 to 1; a circle has none. */
static const struct {
    int n;
    double at[12][2];
} shapes[HV_MARK_N] = {
    [HV_MARK_SQUARE] = {4, {{-0.85, -0.85}, {0.85, -0.85}, {0.85, 0.85}, {-0.85, 0.85}}},
    [HV_MARK_TRIANGLE] = {3, {{0, -1.1}, {1.05, 0.8}, {-1.05, 0.8}}},
    [HV_MARK_DIAMOND] = {4, {{0, -1.2}, {1.2, 0}, {0, 1.2}, {-1.2, 0}}},
    [HV_MARK_DOWN] = {3, {{0, 1.1}, {1.05, -0.8}, {-1.05, -0.8}}},
    [HV_MARK_PLUS] = {12,
                      {{-0.4, -1.1},
                       {0.4, -1.1},
                       {0.4, -0.4},
                       {1.1, -0.4},
                       {1.1, 0.4},
                       {0.4, 0.4},
                       {0.4, 1.1},
                       {-0.4, 1.1},
                       {-0.4, 0.4},
                       {-1.1, 0.4},
                       {-1.1, -0.4},
                       {-0.4, -0.4}}},
};

static void svg_mark(void *ctx, const struct hv_paint_mark *m)
{
    struct hv_str *s = ctx;
    double r = m->size_px / 2;
    int n = shapes[m->mark].n;
    if (n == 0) {
        hv_str_addf(s, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", m->x, m->y, r);
    } else {
        hv_str_adds(s, "<path d=\"");
        for (int i = 0; i < n; i++) {
            hv_str_addf(s, "%c%.1f %.1f", i == 0 ? 'M' : 'L', m->x + r * shapes[m->mark].at[i][0],
                        m->y + r * shapes[m->mark].at[i][1]);
        }
        hv_str_adds(s, "Z\"");
    }
    hv_str_addf(s, " fill=\"#%06x\" stroke=\"#ffffff\" stroke-width=\"0.6\"", m->fill);
    if (m->tooltip == NULL) {
        hv_str_adds(s, "/>\n");
        return;
    }
    hv_str_adds(s, "><title>");
    add_escaped(s, m->tooltip);
    hv_str_adds(s, n == 0 ? "</title></circle>\n" : "</title></path>\n");
}

void hv_paint_svg(int width_px, int height_px, hv_paint_fn *draw, const void *what,
                  struct hv_str *out)
{
    hv_str_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 "
                "0 %d %d\" "
                "font-family=\"DejaVu Sans, Verdana, sans-serif\">\n"
                "<style>.m{font-family:DejaVu Sans Mono,Menlo,Consolas,monospace;white-space:pre}"
                "</style>\n",
                width_px, height_px, width_px, height_px);
    struct hv_painter p = {svg_rect, svg_text, svg_line, svg_mark, out};
    draw(&p, what);
    hv_str_adds(out, "</svg>\n");
}

static void set_colour(cairo_t *c, unsigned rgb)
{
    cairo_set_source_rgb(c, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0,
                         (rgb & 255) / 255.0);
}

static void cairo_rect(void *ctx, const struct hv_paint_rect *r)
{
    cairo_t *c = ctx;
    set_colour(c, r->fill);
    cairo_rectangle(c, r->x, r->y, r->w, r->h);
    cairo_fill_preserve(c);
    if (r->outlined) {
        set_colour(c, 0x222222);
        cairo_set_line_width(c, 0.5);
        cairo_stroke_preserve(c);
    }
    cairo_new_path(c);
}

static void cairo_text(void *ctx, const struct hv_paint_text *t)
{
    cairo_t *c = ctx;
    cairo_select_font_face(c, t->mono ? "DejaVu Sans Mono" : "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                           t->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c, t->size_px);
    cairo_text_extents_t e;
    cairo_text_extents(c, t->text, &e);
    double x = t->x - (t->anchor == HV_ANCHOR_MIDDLE ? e.x_advance / 2
                       : t->anchor == HV_ANCHOR_END  ? e.x_advance
                                                     : 0);
    set_colour(c, t->fill);
    cairo_move_to(c, x, t->y);
    cairo_show_text(c, t->text);
}

static void cairo_line(void *ctx, const struct hv_paint_line *l)
{
    static const double dashes[] = {5, 4};
    cairo_t *c = ctx;
    set_colour(c, l->colour);
    cairo_set_line_width(c, l->width_px);
    cairo_set_dash(c, dashes, l->dashed ? 2 : 0, 0);
    cairo_move_to(c, l->x1, l->y1);
    cairo_line_to(c, l->x2, l->y2);
    cairo_stroke(c);
    cairo_set_dash(c, dashes, 0, 0);
}

static void cairo_mark(void *ctx, const struct hv_paint_mark *m)
{
    cairo_t *c = ctx;
    double r = m->size_px / 2;
    int n = shapes[m->mark].n;
    cairo_new_path(c);
    if (n == 0) {
        cairo_arc(c, m->x, m->y, r, 0, 6.283185307179586);
    }
    for (int i = 0; i < n; i++) {
        cairo_line_to(c, m->x + r * shapes[m->mark].at[i][0], m->y + r * shapes[m->mark].at[i][1]);
    }
    cairo_close_path(c);
    set_colour(c, m->fill);
    cairo_fill_preserve(c);
    set_colour(c, 0xffffff);
    cairo_set_line_width(c, 0.6);
    cairo_stroke(c);
}

static cairo_status_t append_png(void *closure, const unsigned char *data, unsigned n)
{
    hv_str_add(closure, (const char *)data, n);
    return CAIRO_STATUS_SUCCESS;
}

enum hv_status hv_paint_png(int width_px, int height_px, hv_paint_fn *draw, const void *what,
                            struct hv_str *out, struct hv_err *err)
{
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width_px, height_px);
    cairo_t *c = cairo_create(surface);
    set_colour(c, 0xffffff);
    cairo_paint(c);
    struct hv_painter p = {cairo_rect, cairo_text, cairo_line, cairo_mark, c};
    draw(&p, what);
    cairo_status_t st = cairo_status(c);
    if (st == CAIRO_STATUS_SUCCESS) {
        st = cairo_surface_write_to_png_stream(surface, append_png, out);
    }
    cairo_destroy(c);
    cairo_surface_destroy(surface);
    if (st != CAIRO_STATUS_SUCCESS) {
        return hv_err_set(err, HV_ELIMIT,
                          "cannot draw a PNG of %d x %d pixels: %s; try a smaller width or --svg",
                          width_px, height_px, cairo_status_to_string(st));
    }
    return HV_OK;
}
