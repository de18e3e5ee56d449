/** Heat maps: a figure over two axes of named values, as an SVG picture. */
#ifndef HV_SOLVER_IO_EXPORT_HEAT_MAP_H
#define HV_SOLVER_IO_EXPORT_HEAT_MAP_H

#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** Contents of a map. Borrowed. */
struct hv_heat_map {
    const char *title, *x_label, *y_label;
    const char *const *x; /**< [n_x] names of the columns */
    const char *const *y; /**< [n_y] names of the rows, the first at the top */
    size_t n_x, n_y;
    const double *values;    /**< [n_y × n_x]; HV_UNKNOWN: nothing there */
    const char *const *tips; /**< [n_y × n_x] tooltips, or NULL */
    bool more_is_better;     /**< the best value is the darkest */
};
/**
 * Appends an SVG document: one rectangle per pair of values with the figure in it, from light
 * (worst) to dark (best) by rank of the logarithm where all are positive; what is unknown is
 * hatched by a cross. O(n_x · n_y).
 */
void hv_heat_map_svg(const struct hv_heat_map *m, struct hv_str *out);

#endif
