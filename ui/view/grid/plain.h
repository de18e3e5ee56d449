/**
 * The second medium of a grid: lines of words instead of cells, for screen readers and terminals
 * that cannot place a cursor. A grid with a `plain` is drawn into as always; tables, forms, bars,
 * charts and timelines add lines to it in place of cells, and what is put as text between them is
 * read off the cells panel by panel. So every screen has both forms from one drawing.
 */
#ifndef HV_UI_VIEW_GRID_PLAIN_H
#define HV_UI_VIEW_GRID_PLAIN_H

#include "ui/view/gantt/view.h"
#include "ui/view/grid/grid.h"
#include "ui/view/widget/widgets.h"

/** Rows of a table that are told; the rest is counted. */
#define HV_PLAIN_ROWS 500
/** Operations of a lane that are told. */
#define HV_PLAIN_OPS 400

/** Lines so far, and the panel that is being drawn. */
struct hv_plain {
    struct hv_str *out;
    struct hv_rect panel; /**< w = 0: none yet */
};

/** Takes off the text of the panel drawn until now, then tells the title of the next. */
void hv_plain_panel(struct hv_grid *g, struct hv_rect r, const char *title);
/** Tells what is left on the grid. */
void hv_plain_end(struct hv_grid *g);
/** Numbered rows: "2 > plan: auto-1; s/iter: 5.02 s". Cells without text are left out. */
void hv_plain_table(struct hv_grid *g, const struct hv_table *t, const struct hv_table_source *s,
                    const struct hv_table_look *look);
/** "seed: 1" per field, with what is wrong and what may be chosen. */
void hv_plain_form(struct hv_grid *g, const struct hv_form *f);
/** "compute: 91.8% 4.61 s" per bar. */
void hv_plain_bars(struct hv_grid *g, const struct hv_bar_row *rows, size_t n);
/** Ends of each series in words. */
void hv_plain_chart(struct hv_grid *g, const struct hv_chart *c);
/** Per lane its name, memory and the order of its operations; then cursor and window. */
void hv_plain_gantt(struct hv_grid *g, const struct hv_gantt_state *st,
                    const struct hv_gantt_source *src);

#endif
