/**
 * The second medium of a grid: lines of words instead of cells, for screen readers and terminals
 * that cannot place a cursor. A grid with a `plain` is drawn into as always; tables, forms, bars,
 * charts and timelines add lines to it in place of cells (widget/plain.h, gantt/gantt_int.h), and
 * other text is read from the cells panel by panel. So one drawing function serves both forms of a
 * screen.
 */
#ifndef HV_UI_VIEW_GRID_PLAIN_H
#define HV_UI_VIEW_GRID_PLAIN_H

#include "ui/view/grid/grid.h"

/** Most rows of a table and lanes of a timeline that are written out; others are only counted. */
#define HV_PLAIN_ROWS 500

/** Lines so far, and the panel that is being drawn. */
struct hv_plain {
    struct hv_str *out;   /**< borrowed */
    struct hv_rect panel; /**< w = 0: none yet */
};

/** Writes the text of the panel drawn until now, then the title of the next. O(cells). */
void hv_plain_panel(struct hv_grid *g, struct hv_rect r, const char *title);
/** Writes the remaining text of the grid. O(cells). */
void hv_plain_end(struct hv_grid *g);
/** Appends a line to g's plain medium; the text is cleaned (hv_text_clean). */
void hv_plain_line(struct hv_grid *g, const char *text);
/** Appends a row of cells as words with single blanks, without words that only draw ("####", "|"),
 * and a newline; nothing when no word is left. */
void hv_plain_words(struct hv_str *out, const char *text);

#endif
