/** A grid as a file: text, or a picture of what a terminal would show. */
#ifndef HV_UI_VIEW_GRID_PICTURE_H
#define HV_UI_VIEW_GRID_PICTURE_H

#include "solver/base/status.h"
#include "ui/view/grid/grid.h"
#include "ui/view/grid/theme.h"

/** Writes the grid to a file: a picture where the name ends in .svg or .png, else text. "-" is
 * standard output, as text. Theme NULL = the one that is compiled in. Errors: HV_EIO, HV_ELIMIT. */
enum hv_status hv_grid_save(const struct hv_grid *g, const struct hv_theme *theme, const char *path,
                            struct hv_err *err) HV_NODISCARD;

#endif
