/**
 * Cells to bytes: turns the difference between what a terminal shows and a grid into one piece of
 * output. Uses the terminfo description of the terminal, but no file, window or curses screen:
 * ncurses writes to the terminal after every movement of the cursor, a hundred times for a first
 * frame.
 */
#ifndef HV_UI_TERM_TERM_OUT_H
#define HV_UI_TERM_TERM_OUT_H

#include "ui/view/grid/grid.h"
#include "ui/view/grid/theme.h"

/** How text looks: HV_ATTR_* bits and colour numbers, −1 = the terminal's own. */
struct hv_pen {
    uint8_t attrs;
    int16_t fg, bg;
};

/** The capabilities in use; texts without padding, NULL = not supported. */
struct hv_out_caps {
    char *move;               /**< `cup`, with parameters */
    char *fore, *back;        /**< `setaf`, `setab`, with parameters */
    char *clear, *clear_line; /**< `clear`, `el` */
    char *hide, *show;        /**< the cursor: `civis`, `cnorm` */
    char *plain, *colours;    /**< `sgr0`, `op` */
    char *bold, *dim, *reverse, *underline;
    char *keys_off, *leave;   /**< `rmkx`, `rmcup` */
    int no_colour_attrs;      /**< HV_ATTR_* bits that do not go with colours (`ncv`) */
    bool ansi_move, ansi_pen; /**< movement and looks are those of ECMA-48 */
    bool wraps_late;          /**< the last column can be written without a scroll (`xenl`) */
};

/** An output. `{0}` after hv__out_open. Owner: hv__out_close. */
struct hv_out {
    struct hv_out_caps caps;
    struct hv_pen pens[HV_STYLE_N]; /**< by style id */
    struct hv_cell *shown;          /**< w·h cells as the terminal shows them */
    size_t cap;                     /**< cells that there is memory for */
    const struct hv_grid *grid;     /**< shown last, and its frame; never dereferenced */
    uint64_t frame;
    int w, h;
    int x, y; /**< its cursor; x < 0 = unknown */
    struct hv_pen pen;
    bool pen_known;
    unsigned style;        /**< that the pen was last set for */
    int cursor;            /**< 1 visible, 0 hidden, −1 unknown */
    bool cleared;          /**< the content of the terminal is known */
    struct hv_cell judged; /**< of more than one byte, looked at last; its style is unused */
    size_t n_judged;       /**< its bytes */
    bool safe, odd;        /**< the results: see judge in term_out.c */
    struct hv_str bytes;   /**< pending output; the caller writes and clears it */
};

/** Reads the description of the current terminal (setupterm). The cells of a theme get its colours
 * when `colour`; their number comes from the description. */
void hv__out_open(struct hv_out *o, const struct hv_theme *theme, bool colour);
/** Changes the styles; the caller must call hv__out_forget. */
void hv__out_look(struct hv_out *o, const struct hv_theme *theme, bool colour);
/** True where the kinds of operations all have one background. */
bool hv__out_is_mono(const struct hv_out *o);
void hv__out_close(struct hv_out *o);
/** The terminal has this size and may show anything: the next drawing clears and writes all. */
void hv__out_forget(struct hv_out *o, int w, int h);
/** Appends the output that shows the grid: only cells that differ. Of the grid that was shown last
 * only columns that changed since are compared, in this frame or the next; else O(cells). Two grids
 * one after the other at the same address need hv__out_forget between them. */
void hv__out_draw(struct hv_out *o, const struct hv_grid *g);
/** Appends the output that restores plain text and a visible cursor. */
void hv__out_leave(struct hv_out *o);

#endif
