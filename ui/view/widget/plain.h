/** Widgets as lines of words, for a grid that has a `plain` (grid/plain.h). */
#ifndef HV_UI_VIEW_WIDGET_PLAIN_H
#define HV_UI_VIEW_WIDGET_PLAIN_H

#include "ui/view/widget/widgets.h"

/** Numbered rows: "2 > plan: auto-1; s/iter: 5.02 s". Cells without text are left out. At most
 * HV_PLAIN_ROWS rows around the cursor. O(rows · columns). */
void hv_plain_table(struct hv_grid *g, const struct hv_table *t, const struct hv_table_source *s,
                    const struct hv_table_look *look);
/** "seed: 1" per field, with its error and its choices. */
void hv_plain_form(struct hv_grid *g, const struct hv_form *f);
/** "compute: 91.8% 4.61 s" per bar. */
void hv_plain_bars(struct hv_grid *g, const struct hv_bar_row *rows, size_t n);
/** The first and the last point of each series in words. */
void hv_plain_chart(struct hv_grid *g, const struct hv_chart *c);

#endif
