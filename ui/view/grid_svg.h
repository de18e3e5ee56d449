/** A screen as a picture: cells to SVG, in the colours of a theme. For `:save-screen x.svg` and
 * documents. */
#ifndef HV_UI_VIEW_GRID_SVG_H
#define HV_UI_VIEW_GRID_SVG_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include "ui/view/grid.h"
#include "ui/view/theme.h"

/** Appends the grid as an SVG document on a dark ground. O(cells). */
void hv_grid_svg(const struct hv_grid *g, const struct hv_theme *theme, struct hv_str *out);

/** Writes the grid to a file: a picture in the default colours for `.svg`, else text. Errors:
 * HV_EIO. */
enum hv_status hv_grid_save(const struct hv_grid *g, const char *path,
                            struct hv_err *err) HV_NODISCARD;

#endif
