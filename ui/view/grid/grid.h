/**
 * Cell grid: the whole screen as data. Views draw into it; a back end shows it, tests dump it.
 *
 * Every put is clipped to `clip`; nothing outside is ever touched. A cell holds one grapheme; the
 * right half of a double-width grapheme has width 0. Style ids are `enum hv_style` (theme.h) with
 * HV_STYLE_REVERSE / _BOLD / _UNDERLINE or-ed in.
 */
#ifndef HV_UI_VIEW_GRID_GRID_H
#define HV_UI_VIEW_GRID_GRID_H

#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A rectangle of cells; empty when w or h ≤ 0. */
struct hv_rect {
    int x, y, w, h;
};

/** One cell. `width`: 1, 2 (left half of a wide grapheme) or 0 (its right half). */
struct hv_cell {
    char utf8[8];
    uint8_t width;
    uint16_t style;
};

struct hv_plain;
struct hv__grid_parts;

/** Columns [from, to) of a row; none when to <= from. */
struct hv_grid_columns {
    int from, to;
};

/** The grid. `{0}` is an empty one. Owner: whoever owns the struct calls hv_grid_free. */
struct hv_grid {
    struct hv_cell *cells; /**< h rows of w cells */
    int w, h;
    size_t cap; /**< cells that there is memory for */
    struct hv_rect clip;
    bool ascii;             /**< frames, bars and marks in ASCII; non-ASCII text becomes '?' */
    bool mono;              /**< colours cannot be told apart: nothing may be shown by them alone */
    int cursor_x, cursor_y; /**< hardware cursor; x < 0 = hidden */
    struct hv_plain *plain; /**< takes lines of words instead of cells (grid/plain.h), or NULL */
    struct hv__grid_parts *parts; /**< the cache of hv_grid_part, or NULL */
    uint64_t frame;               /**< number of this frame */
    /** Per row, the columns whose content changed in this frame and in the one before; a back end
     * that showed the grid then can skip all others. */
    struct hv_grid_columns *changed, *changed_before;
    uint64_t *drawn, *drawn_before; /**< cells drawn in these frames: bits, n_words per row */
    size_t n_words;
};

/** Largest side that hv_grid_resize gives (cells); larger wishes are cut. */
#define HV_GRID_MAX 2000

/** Sets the size and clears; contents are lost, but not those of parts. O(w·h). */
void hv_grid_resize(struct hv_grid *g, int w, int h);
/**
 * Begins a frame: as hv_grid_resize for the drawing code, but where the size is unchanged the cells
 * are kept until hv_grid_end, so that only cells drawn differently count as changed. Cells must not
 * be read in between. O(h).
 */
void hv_grid_begin(struct hv_grid *g, int w, int h);
/** Ends the frame: cells that were not drawn become blank. O(w·h / 64 + cells that become
 * blank). */
void hv_grid_end(struct hv_grid *g);
/** Frees the cells; empty and usable again. */
void hv_grid_free(struct hv_grid *g);
/** Narrows the clip to its intersection with r; returns the old one for hv_grid_unclip. */
struct hv_rect hv_grid_clip(struct hv_grid *g, struct hv_rect r);
/** Sets the clip back. */
void hv_grid_unclip(struct hv_grid *g, struct hv_rect old);
/** Intersection; w = h = 0 when they do not meet. */
struct hv_rect hv_rect_meet(struct hv_rect a, struct hv_rect b);
/** True when the cell lies inside. */
bool hv_rect_has(struct hv_rect r, int x, int y);
/** The part of r inside a one-cell frame. */
struct hv_rect hv_rect_inner(struct hv_rect r);

/**
 * Puts trusted text at (x, y), at most `max_w` columns (< 0 = to the clip's edge). A wide grapheme
 * that would be cut becomes a blank. Returns the columns used. O(length).
 */
int hv_grid_put(struct hv_grid *g, int x, int y, int max_w, const char *text, unsigned style);
/** As hv_grid_put with a format (cut at 1023 bytes). */
int hv_grid_putf(struct hv_grid *g, int x, int y, unsigned style, const char *fmt, ...)
    HV_PRINTF(5, 6);
/** As hv_grid_put for text from users, files or plugins: it passes hv_text_clean first. */
int hv_grid_put_user(struct hv_grid *g, int x, int y, int max_w, const char *text, unsigned style);
/** How to place text inside a field of fixed width. */
enum hv_align { HV_LEFT, HV_RIGHT, HV_CENTER };
/** Puts cleaned text into exactly `w` columns, padded, cut with '~' ("…" in UTF-8) when too long.
 */
void hv_grid_put_field(struct hv_grid *g, struct hv_rect at, enum hv_align align, const char *text,
                       unsigned style);
/** Columns that trusted text needs. */
int hv_text_width(const char *text);
/** Bytes of the longest prefix of `text` that fits `max_w` columns, cut between graphemes. */
size_t hv_text_fit(const char *text, int max_w);
/** Bytes of the next line of at most `w` columns, cut between words where that is possible and at a
 * newline; the caller skips the separator (a blank or the newline). */
size_t hv_text_wrap(const char *text, int w);
/** Bytes of the grapheme at `text[at]`; 0 at the end. */
size_t hv_text_next(const char *text, size_t at);
/** Start of the grapheme before `at`; 0 at the beginning. */
size_t hv_text_prev(const char *text, size_t at);

/** Horizontal line of n cells. */
void hv_grid_hline(struct hv_grid *g, int x, int y, int n, unsigned style);
/** Vertical line of n cells. */
void hv_grid_vline(struct hv_grid *g, int x, int y, int n, unsigned style);
/** A frame with a title ("" = none); a focused one is heavy (UTF-8) or drawn with '=' (ASCII). */
void hv_grid_box(struct hv_grid *g, struct hv_rect r, const char *title, bool focused,
                 unsigned style);
/** Fills a rectangle with one ASCII character. */
void hv_grid_fill(struct hv_grid *g, struct hv_rect r, char c, unsigned style);
/** Changes only the style: style = (style & keep) | set. */
void hv_grid_restyle(struct hv_grid *g, struct hv_rect r, unsigned keep, unsigned set);
/** Bar of frac (0…1, clamped; NaN = empty) of w cells: eighths in UTF-8, '#' in ASCII. */
void hv_grid_bar(struct hv_grid *g, int x, int y, int w, double frac, unsigned style);
/** A column of cells in which a bar of style `left` ends after 1…7 eighths and `right` begins (see
 * HV_STYLE_EDGE). In ASCII the side with more has the whole cell. */
void hv_grid_edge(struct hv_grid *g, struct hv_rect r, int eighths, unsigned left, unsigned right);
/** As hv_grid_edge, with a bar that stands on the bottom of a cell: `lower` has 1…7 eighths of its
 * height, `upper` the rest. */
void hv_grid_stack(struct hv_grid *g, struct hv_rect r, int eighths, unsigned lower,
                   unsigned upper);
/** The eighths of a cell that hv_grid_edge or hv_grid_stack put, for terminals without the colours
 * to show it. */
int hv_cell_eighths(const struct hv_cell *c);
/** Places the hardware cursor when (x, y) is inside the clip. */
void hv_grid_cursor(struct hv_grid *g, int x, int y);

/**
 * Begins a part of the frame that is drawn again only where its content changed. `what` is a number
 * that differs whenever the cells or the cursor in r would, but for the size, the clip, `ascii` and
 * `mono`, which are looked at here: a hash (hv_hash) of which part it is and of all it shows, which
 * may not depend on the place; 0 is never remembered. Nothing was drawn in r before in this frame;
 * of parts inside others only the outer ones are remembered. True: the cells are there, as the same
 * part left them in an earlier frame, here or elsewhere, and the caller draws nothing. False: the
 * caller draws, in r only, and calls hv_grid_part_end. Some hundred parts are remembered. O(cells
 * of r), O(rows of r) where nothing changed at its place.
 */
bool hv_grid_part(struct hv_grid *g, struct hv_rect r, uint64_t what);
/** Remembers the part begun last; called once for every one that was to be drawn. */
void hv_grid_part_end(struct hv_grid *g);

/** Appends the text plane: h lines, trailing blanks cut. */
void hv_grid_dump(const struct hv_grid *g, struct hv_str *out);

#endif
