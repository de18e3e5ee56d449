/** Scatter plots on logarithmic axes: predicted against measured figures, or rates under roofs. */
#ifndef HV_SOLVER_IO_EXPORT_SCATTER_H
#define HV_SOLVER_IO_EXPORT_SCATTER_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stddef.h>

/** One point: position, series and tooltip (NULL: none). */
struct hv_scatter_point {
    double x, y; /**< > 0; points with anything else are not drawn */
    size_t series;
    const char *tooltip;
};

/** A roof (Williams, Waterman and Patterson 2009): y = min(per_x · x, most). */
struct hv_scatter_roof {
    double per_x, most; /**< > 0 */
    const char *name;
};

/** Contents of a plot. Borrowed. */
struct hv_scatter {
    const char *title, *subtitle, *x_label, *y_label;
    const char *const *series; /**< names, in the order of the legend */
    size_t n_series;
    const struct hv_scatter_point *points;
    size_t n_points;
    const struct hv_scatter_roof *roofs; /**< none: x and y are the same figure, see below */
    size_t n_roofs;
};

/**
 * Appends an SVG document: axes over whole decades and the roofs; without roofs both axes over the
 * same decades, the diagonal, and dashed lines 10 % above and below it. Every series has a hue and
 * a shape of its own. O(points).
 */
void hv_scatter_svg(const struct hv_scatter *s, struct hv_str *out);

#endif
