/**
 * SVG and cairo back ends of the painter. Pictures depend on their input alone: no dates, no ids.
 * Cairo depends on some twenty libraries, so it is loaded only when the first PNG is drawn and does
 * not slow the start of the program.
 */
#include "solver/io/export/painter.h"

#include <cairo.h>
#include <dlfcn.h>
#include <string.h>

/* Text as XML. Names come from files: what XML forbids and what would reorder or hide text is made
 * visible. */
static void add_escaped(struct hv_str *s, const char *text)
{
    struct hv_str clean = {0};
    hv_text_clean(&clean, text, strlen(text));
    for (const char *c = hv_str_cstr(&clean); *c != '\0'; c++) {
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
            hv_str_addc(s, *c);
        }
    }
    hv_str_free(&clean);
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

/* clang-format off */
/* Functions of cairo that are used. */
#define CAIRO_MAP(X)                                                                              \
    X(arc) X(close_path) X(create) X(destroy) X(fill_preserve) X(image_surface_create) X(line_to) \
    X(move_to) X(new_path) X(paint) X(rectangle) X(select_font_face) X(set_dash)                  \
    X(set_font_size) X(set_line_width) X(set_source_rgb) X(show_text) X(status)                   \
    X(status_to_string) X(stroke) X(stroke_preserve) X(surface_destroy)                           \
    X(surface_write_to_png_stream) X(text_extents)
/* clang-format on */
struct cairo {
#define X(f) __typeof__(cairo_##f) *f;
    CAIRO_MAP(X)
#undef X
};

/* A canvas of cairo: the painter's context. */
struct canvas {
    const struct cairo *cairo;
    cairo_t *c;
};

/* POSIX guarantees that function and data pointers have the same representation, but C has no cast
 * between them. */
static bool find_call(void *library, const char *name, void *call)
{
    void *found = dlsym(library, name);
    memcpy(call, &found, sizeof found);
    return found != NULL;
}

/* The library is never unloaded, so that fonts are looked up once per process. */
static enum hv_status load_cairo(struct cairo *out, struct hv_err *err)
{
    static const char *const names[] = {"libcairo.so.2", "libcairo.2.dylib"};
    void *library = NULL;
    for (size_t i = 0; library == NULL && i < HV_COUNT(names); i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    bool all = library != NULL;
#define X(f) all = all && find_call(library, "cairo_" #f, &out->f);
    CAIRO_MAP(X)
#undef X
    return all ? HV_OK
               : hv_err_set(err, HV_EIO,
                            "PNG needs the library cairo, and %s is not installed (Debian: apt-get "
                            "install libcairo2); SVG works without it",
                            names[0]);
}

bool hv_paint_has_png(void)
{
    struct cairo cairo = {0};
    struct hv_err none = {0};
    return load_cairo(&cairo, &none) == HV_OK;
}

static void set_colour(const struct canvas *v, unsigned rgb)
{
    v->cairo->set_source_rgb(v->c, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0,
                             (rgb & 255) / 255.0);
}

static void png_rect(void *ctx, const struct hv_paint_rect *r)
{
    const struct canvas *v = ctx;
    set_colour(v, r->fill);
    v->cairo->rectangle(v->c, r->x, r->y, r->w, r->h);
    v->cairo->fill_preserve(v->c);
    if (r->outlined) {
        set_colour(v, 0x222222);
        v->cairo->set_line_width(v->c, 0.5);
        v->cairo->stroke_preserve(v->c);
    }
    v->cairo->new_path(v->c);
}

static void png_text(void *ctx, const struct hv_paint_text *t)
{
    const struct canvas *v = ctx;
    v->cairo->select_font_face(v->c, t->mono ? "DejaVu Sans Mono" : "DejaVu Sans",
                               CAIRO_FONT_SLANT_NORMAL,
                               t->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    v->cairo->set_font_size(v->c, t->size_px);
    struct hv_str clean = {0};
    hv_text_clean(&clean, t->text, strlen(t->text));
    const char *text = hv_str_cstr(&clean);
    cairo_text_extents_t e;
    v->cairo->text_extents(v->c, text, &e);
    double x = t->x - (t->anchor == HV_ANCHOR_MIDDLE ? e.x_advance / 2
                       : t->anchor == HV_ANCHOR_END  ? e.x_advance
                                                     : 0);
    set_colour(v, t->fill);
    v->cairo->move_to(v->c, x, t->y);
    v->cairo->show_text(v->c, text);
    hv_str_free(&clean);
}

static void png_line(void *ctx, const struct hv_paint_line *l)
{
    static const double dashes[] = {5, 4};
    const struct canvas *v = ctx;
    set_colour(v, l->colour);
    v->cairo->set_line_width(v->c, l->width_px);
    v->cairo->set_dash(v->c, dashes, l->dashed ? 2 : 0, 0);
    v->cairo->move_to(v->c, l->x1, l->y1);
    v->cairo->line_to(v->c, l->x2, l->y2);
    v->cairo->stroke(v->c);
    v->cairo->set_dash(v->c, dashes, 0, 0);
}

static void png_mark(void *ctx, const struct hv_paint_mark *m)
{
    const struct canvas *v = ctx;
    double r = m->size_px / 2;
    int n = shapes[m->mark].n;
    v->cairo->new_path(v->c);
    if (n == 0) {
        v->cairo->arc(v->c, m->x, m->y, r, 0, 6.283185307179586);
    }
    for (int i = 0; i < n; i++) {
        v->cairo->line_to(v->c, m->x + r * shapes[m->mark].at[i][0],
                          m->y + r * shapes[m->mark].at[i][1]);
    }
    v->cairo->close_path(v->c);
    set_colour(v, m->fill);
    v->cairo->fill_preserve(v->c);
    set_colour(v, 0xffffff);
    v->cairo->set_line_width(v->c, 0.6);
    v->cairo->stroke(v->c);
}

static cairo_status_t append_png(void *closure, const unsigned char *data, unsigned n)
{
    hv_str_add(closure, (const char *)data, n);
    return CAIRO_STATUS_SUCCESS;
}

enum hv_status hv_paint_png(int width_px, int height_px, hv_paint_fn *draw, const void *what,
                            struct hv_str *out, struct hv_err *err)
{
    struct cairo cairo;
    enum hv_status loaded = load_cairo(&cairo, err);
    if (loaded != HV_OK) {
        return loaded;
    }
    cairo_surface_t *surface = cairo.image_surface_create(CAIRO_FORMAT_RGB24, width_px, height_px);
    struct canvas v = {&cairo, cairo.create(surface)};
    set_colour(&v, 0xffffff);
    cairo.paint(v.c);
    struct hv_painter p = {png_rect, png_text, png_line, png_mark, &v};
    draw(&p, what);
    cairo_status_t st = cairo.status(v.c);
    if (st == CAIRO_STATUS_SUCCESS) {
        st = cairo.surface_write_to_png_stream(surface, append_png, out);
    }
    cairo.destroy(v.c);
    cairo.surface_destroy(surface);
    if (st != CAIRO_STATUS_SUCCESS) {
        return hv_err_set(err, HV_ELIMIT,
                          "cannot draw a PNG of %d x %d pixels: %s; try a smaller width or --svg",
                          width_px, height_px, cairo.status_to_string(st));
    }
    return HV_OK;
}
