/** Private to the files of the grid: changed cells, and text by graphemes. */
#ifndef HV_UI_VIEW_GRID_GRID_INT_H
#define HV_UI_VIEW_GRID_GRID_INT_H

#include "ui/view/grid/grid.h"
#include <string.h>

/* ---- cells (cells.c) */

/** A cell that was not drawn. */
extern const struct hv_cell hv__cell_blank;

/** True where two cells look the same. */
static inline bool hv__cell_same(const struct hv_cell *a, const struct hv_cell *b)
{
    return memcmp(a->utf8, b->utf8, sizeof a->utf8) == 0 && a->style == b->style &&
           a->width == b->width;
}

/** The cell at (x, y), inside the grid. */
static inline struct hv_cell *hv__grid_at(const struct hv_grid *g, int x, int y)
{
    return &g->cells[(size_t)y * (size_t)g->w + (size_t)x];
}

/** Marks columns [from, to) of a row as changed. */
static inline void hv__grid_changed(struct hv_grid *g, int y, int from, int to)
{
    struct hv_grid_columns *c = &g->changed[y];
    c->from = from < c->from ? from : c->from;
    c->to = to > c->to ? to : c->to;
}

/** Marks columns [from, to) of a row as drawn in this frame. Other cells count as blank, whatever
 * their old content. */
static inline void hv__grid_drawn(struct hv_grid *g, int y, int from, int to)
{
    uint64_t *words = g->drawn + (size_t)y * g->n_words;
    while (from < to) {
        int bit = from % 64, n = to - from < 64 - bit ? to - from : 64 - bit;
        words[from / 64] |= (UINT64_MAX >> (64 - n)) << bit;
        from += n;
    }
}

/** Blanks the other half of a wide grapheme of which one half is overwritten. */
void hv__grid_break_wide(struct hv_grid *g, int x, int y);
/** Puts a cell of one column; inside the grid. */
static inline void hv__grid_put(struct hv_grid *g, int x, int y, const struct hv_cell *cell)
{
    struct hv_cell *to = hv__grid_at(g, x, y);
    hv__grid_drawn(g, y, x, x + 1);
    if (hv__cell_same(to, cell)) {
        return;
    }
    if (to->width != 1) {
        hv__grid_break_wide(g, x, y);
    }
    *to = *cell;
    hv__grid_changed(g, y, x, x + 1);
}

/** Puts n cells over those at (x, y); all inside the grid, no grapheme cut. */
void hv__grid_put_cells(struct hv_grid *g, int x, int y, const struct hv_cell *from, int n);
/** Blanks the cells of r that were not drawn in this frame. */
void hv__grid_blank_rest(struct hv_grid *g, struct hv_rect r);

/* ---- text (text.c) */

/** A grapheme: bytes of the whole, bytes that fit a cell, columns. */
struct hv__grapheme {
    size_t n, keep;
    int width;
};

/** A character of one byte and one column, whatever stands beside it; `left` bytes are there. */
static inline bool hv__text_is_plain(const char *s, size_t left)
{
    return s[0] >= ' ' && s[0] < 0x7f && (left == 1 || (unsigned char)s[1] < 0x80);
}

/** Length of a text of nothing but such characters, else SIZE_MAX. */
size_t hv__text_plain(const char *s);
/** The first grapheme of n > 0 bytes. */
struct hv__grapheme hv__text_grapheme(const char *s, size_t n);

/* ---- parts (part.c) */

/** Removes all parts and frees their memory. */
void hv__grid_parts_free(struct hv_grid *g);

#endif
