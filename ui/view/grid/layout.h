/**
 * Layout: pure functions from a size to rectangles. Results never overlap, never leave the given
 * rectangle, and may be empty (w or h = 0) when there is no room.
 */
#ifndef HV_UI_VIEW_GRID_LAYOUT_H
#define HV_UI_VIEW_GRID_LAYOUT_H

#include "ui/view/grid/grid.h"
#include <stddef.h>

/** Size from which everything is shown at once; below, panels stack and one shows at a time. */
#define HV_FULL_W 80
#define HV_FULL_H 24
/** Floor: below it only a one-line summary with the needed size is shown. */
#define HV_FLOOR_W 40
#define HV_FLOOR_H 10
/** Width from which a third column is shown. */
#define HV_THREE_W 110

/** One part of a split: `fixed` cells, or (fixed = 0) a share by `flex`; at least `min`. */
struct hv_split {
    int fixed, flex, min;
};

/** Direction of a split. */
enum hv_axis { HV_ROWS, HV_COLUMNS };

/**
 * Splits r along an axis. When the minimums do not fit, parts at the end become empty, the last
 * kept part takes the rest. `out` has n entries. O(n).
 */
void hv_layout_split(struct hv_rect r, enum hv_axis axis, const struct hv_split *parts, size_t n,
                     struct hv_rect *out);

/** Rows of the screen: tabs (0), body, status (h-2), key bar (h-1). */
struct hv_frame {
    struct hv_rect tabs, body, status, keybar;
    bool tiny; /**< under the floor: only `body` (the whole screen) is set */
};
/** The frame of a screen of w × h cells. */
struct hv_frame hv_layout_frame(int w, int h);
/** Columns that fit a body of width w: 1 below 80, 2 below 110, else 3. */
int hv_layout_columns(int w);
/** True when panels must stack and only the focused one is shown (body of a screen below 80×24). */
bool hv_layout_stacked(struct hv_rect body);
/**
 * Rectangles of n panels in the body. Stacked: the focused one has the body, others are empty.
 * Else `split` is applied along `axis`.
 */
void hv_layout_panels(struct hv_rect body, enum hv_axis axis, const struct hv_split *parts,
                      size_t n, size_t focused, struct hv_rect *out);

#endif
