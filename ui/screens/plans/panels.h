/** Panels of the Plans screen beside the table: the comparison (compare.c) and the scatter
 * (scatter.c). Drawing only. */
#ifndef HV_UI_SCREENS_PLANS_PANELS_H
#define HV_UI_SCREENS_PLANS_PANELS_H

#include "ui/screens/facts/plan_facts.h"

/** Draws two plans side by side: the differences in words; field, A, B, change; then their stages;
 * from line `top` on (clamped). */
void hv_plan_compare_draw(const struct hv_plan_facts pair[2], size_t top, struct hv_grid *g,
                          struct hv_rect r);
/** Draws three plans or more in columns, as many as there is room for: fields with the best of each
 * row marked '*', stages, then how each differs from the first in words. */
void hv_plan_compare_many_draw(const struct hv_plan_facts *set, size_t n, size_t top,
                               struct hv_grid *g, struct hv_rect r);

/** A scatter of plans over two fields. */
struct hv_plan_scatter {
    const struct hv_plan_facts *facts;
    size_t n;
    uint32_t selected; /**< row id drawn as '@', 0 = none */
    enum hv_plan_field axes[2];
};
/** Name of an axis with its unit: "MFU %", "MJ/iter". */
const char *hv_plan_axis_name(enum hv_plan_field axis);
/** Draws it: 'P' on the front, 'o' others, 'x' with violations, '@' the selected one. O(n²). */
void hv_plan_scatter_draw(const struct hv_plan_scatter *s, struct hv_grid *g, struct hv_rect r);
/** Row id of the dot nearest to a cell (at most 3 columns and 1 row away), or 0. */
uint32_t hv_plan_scatter_hit(const struct hv_plan_scatter *s, struct hv_rect r, int x, int y);

#endif
