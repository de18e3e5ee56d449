/** Drawing on pixels: the shapes of hetviz's pictures, as SVG text or through cairo. */
#ifndef HV_SOLVER_IO_EXPORT_PAINTER_H
#define HV_SOLVER_IO_EXPORT_PAINTER_H

#include "solver/base/status.h"
#include "solver/base/str.h"

/** Anchor of a text. */
enum hv_anchor { HV_ANCHOR_START, HV_ANCHOR_MIDDLE, HV_ANCHOR_END };

/** One rectangle; colours are 0xRRGGBB. */
struct hv_paint_rect {
    double x, y, w, h;
    unsigned fill;
    bool outlined;       /**< thin dark outline */
    const char *tooltip; /**< SVG only; NULL = none */
};

/** One line of text. */
struct hv_paint_text {
    double x, y, size_px;
    unsigned fill;
    enum hv_anchor anchor;
    bool bold, mono;
    double width_px;  /**< SVG only: width to which it is stretched; 0 = natural width */
    const char *text; /**< escaped by the painter */
};

/** One straight line. */
struct hv_paint_line {
    double x1, y1, x2, y2, width_px;
    unsigned colour;
    bool dashed;
};

/** Shapes of the points of a scatter plot. */
enum hv_mark {
    HV_MARK_CIRCLE,
    HV_MARK_SQUARE,
    HV_MARK_TRIANGLE,
    HV_MARK_DIAMOND,
    HV_MARK_DOWN,
    HV_MARK_PLUS,
    HV_MARK_N
};

/** One point: a small shape of about `size_px` around (x, y), with a thin light rim. */
struct hv_paint_mark {
    double x, y, size_px;
    enum hv_mark mark;
    unsigned fill;
    const char *tooltip; /**< SVG only; NULL = none */
};

/** A painter; ctx belongs to the back end. */
struct hv_painter {
    void (*rect)(void *ctx, const struct hv_paint_rect *r);
    void (*text)(void *ctx, const struct hv_paint_text *t);
    void (*line)(void *ctx, const struct hv_paint_line *l);
    void (*mark)(void *ctx, const struct hv_paint_mark *m);
    void *ctx;
};

/** Draws with the painter of a back end; `draw` is called once. */
typedef void hv_paint_fn(const struct hv_painter *p, const void *what);
/** Runs `draw` into an SVG document. */
void hv_paint_svg(int width_px, int height_px, hv_paint_fn *draw, const void *what,
                  struct hv_str *out);
/** Runs `draw` into a PNG. Errors: HV_ELIMIT from cairo; HV_EIO where cairo is not installed. */
enum hv_status hv_paint_png(int width_px, int height_px, hv_paint_fn *draw, const void *what,
                            struct hv_str *out, struct hv_err *err) HV_NODISCARD;

/** Can PNG be written: is cairo installed? */
bool hv_paint_has_png(void);

#endif
