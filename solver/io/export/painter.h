/** Drawing on pixels: the few shapes our pictures need, as SVG text or through cairo. */
#ifndef HV_SOLVER_IO_EXPORT_PAINTER_H
#define HV_SOLVER_IO_EXPORT_PAINTER_H

#include "solver/base/status.h"
#include "solver/base/str.h"

/** Where a text hangs on its point. */
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
    bool bold;
    const char *text; /**< escaped by the painter */
};

/** A painter; ctx belongs to the back end. */
struct hv_painter {
    void (*rect)(void *ctx, const struct hv_paint_rect *r);
    void (*text)(void *ctx, const struct hv_paint_text *t);
    void *ctx;
};

/** Draws with the painter of a back end; `draw` is called once. */
typedef void hv_paint_fn(const struct hv_painter *p, const void *what);
/** Runs `draw` into an SVG document. */
void hv_paint_svg(int width_px, int height_px, hv_paint_fn *draw, const void *what,
                  struct hv_str *out);
/** Runs `draw` into a PNG. Errors: HV_ELIMIT from cairo. */
enum hv_status hv_paint_png(int width_px, int height_px, hv_paint_fn *draw, const void *what,
                            struct hv_str *out, struct hv_err *err) HV_NODISCARD;

#endif
