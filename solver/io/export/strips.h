/** Loads of ranks with experts over the iterations of a routing, as a part of a picture. */
#ifndef HV_SOLVER_IO_EXPORT_STRIPS_H
#define HV_SOLVER_IO_EXPORT_STRIPS_H

#include "solver/eval/experts/loads.h"
#include "solver/io/export/painter.h"

/** What is painted. Borrowed. */
struct hv_strips {
    const struct hv_expert_loads *loads;
    const struct hv_routing_step *steps; /**< [iterations], or NULL */
};

/** Pixels that hv_paint_strips needs in height. O(iterations). */
int hv_strips_height(const struct hv_strips *s);
/** Paints a title, a strip per rank and the moves; names at `left`, strips from `x0` on, `width`
 * pixels wide; columns are the largest of their iterations where there are more than pixels.
 * O(ranks · iterations). */
void hv_paint_strips(const struct hv_painter *p, const struct hv_strips *s, double left, double x0,
                     double y, int width);

#endif
